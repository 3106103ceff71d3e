/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink: one request for each delivery, signed as Standard Webhooks, over HTTP/1.1 or (TLS only) HTTP/2.
 * Addresses that are not of the public internet are refused unless allowed; redirects are never followed; answers are
 * read up to a bound and never decoded. Each sink has its own connections, so that policies and slowness do not mix. */
#ifndef HK_SINK_HTTP_HTTP_H
#define HK_SINK_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/buf.h"
#include "base/cidr.h"
#include "base/proxy.h"
#include "loop/loop.h"
#include "sink/sink.h"

/* Of an answer's body; then its status decides. Twice the payload is added to it: who echoes what it reads must not be cut off. */
#define HK_HTTP_READ_MAX         ((size_t)64 * 1024)
#define HK_HTTP_GZIP_MIN         ((size_t)1024)     /* of a body, to be worth compressing */
#define HK_HTTP_KEEP_MAX         ((size_t)4 * 1024) /* of an answer's body, for facts.body */
#define HK_HTTP_HEAD_MAX         ((size_t)64 * 1024) /* of an answer's header lines, informational ones included */
#define HK_HTTP_HEAD_LINES_MAX   512
#define HK_HTTP_HEADERS_MAX      64                 /* headers kept for facts.headers */
#define HK_HTTP_HEADERS_KEEP_MAX ((size_t)8 * 1024) /* and their bytes */

/* A value that is "{event_type}", "{correlation_id}", "{attempt}", "{idempotency_key}" or "{traceparent}" names the field
 * under which that goes out, instead of its usual name; "" with the usual name leaves it out. */
struct hk_http_header {
    const char *name, *value;
    bool secret; /* shown as "***" in hk_sink_result.request_headers; Authorization and the like always are */
};

/* Makes an access token, at most 8 KiB of visible ASCII, without asking anybody. HK_DENIED: there are no credentials, or none that can be
 * used, for the reason in `err`; HK_NOMEM. */
typedef enum hk_code hk_access_mint_fn(void *arg, int64_t wall_ms, struct hk_buf *out, uint64_t *out_life_s,
                                       struct hk_err *err);

/* Access tokens: by client credentials, from Google's metadata server, or made here. */
struct hk_http_oauth {
    const char *token_url; /* as `url` */
    const char *client_id, *client_secret;
    const char *scope, *audience; /* NULL: not sent */
    bool in_body;                 /* id and secret; else in the Authorization header */
    bool metadata;                /* token_url is asked as Google's metadata server is; no id, no proxy */
    const struct hk_cidr *allow;  /* of token_url; NULL: as of `url` */
    size_t n_allow;
    hk_access_mint_fn *mint; /* NULL: token_url is asked. `mint_arg` outlives the sink */
    void *mint_arg;
};

#define HK_HTTP_LATE_MAX 8

/* Header fields that follow from the body of a request, such as a signature over it. Fills `out` and returns how many; what they point at
 * stays until the next call. */
typedef size_t hk_http_late_fn(void *arg, const struct hk_message *msg, int64_t wall_ms,
                               struct hk_http_header out[HK_HTTP_LATE_MAX]);

/* All is copied. 0 and NULL: the default in brackets. */
struct hk_http_options {
    const char *name; /* the destination's, for messages ["http"] */
    const char *
        url; /* http:// or https://, no user, no fragment; fields of the message may stand in it (body.h); NULL with from_message */
    const char *method; /* POST, PUT or PATCH; with `bare` also GET [POST] */
    /* Each message names its URL, and may name its method (payload/target.h); `method` is for those that do not. Always by libcurl. */
    bool from_message;
    const char
        *queue; /* requests as Google's Cloud Tasks makes them, of this queue; NULL: as Standard Webhooks */
    const struct hk_http_header *headers;
    size_t n_headers;
    const char *const *secrets; /* "whsec_…" or "whsk_…"; one signature for each */
    size_t n_secrets;
    const char *basic_user, *basic_password; /* both or none */
    const char *bearer;
    const struct hk_http_oauth *oauth; /* NULL: none */
    bool bare; /* requests say nothing of the message but its payload, and 64 KiB of answers are kept */
    hk_http_late_fn *late; /* with `bare`: fields of each request; NULL: none */
    void *late_arg;
    size_t keep_bytes; /* of an answer's body [HK_HTTP_KEEP_MAX] */
    const char *hide;  /* a secret that answers must not show */
    const char *ca_file, *cert_file, *key_file;
    bool cloudevents;        /* 1.0, binary mode … */
    bool structured;         /* … or structured */
    bool gzip;               /* bodies of HK_HTTP_GZIP_MIN and more, where it makes them smaller */
    const char *const *pins; /* "sha256//…": the server's public key must be one of these, too */
    size_t n_pins;
    const char *socket;             /* of the file system, in place of the URL's host; NULL: none */
    const char *cloudevents_source; /* [/hikyaku] */
    const struct hk_cidr *allow;    /* though not of the public internet */
    size_t n_allow;
    const struct hk_proxy *proxy; /* NULL: requests go directly. Else by libcurl, in a tunnel */
    const char *user_agent;       /* [hikyaku/VERSION] */
    uint64_t connect_timeout_ms;  /* name, TCP and TLS [10 s] */
    uint64_t
        first_byte_timeout_ms; /* from the request being under way to the answer's first byte [no limit] */
    uint64_t low_speed_ms;     /* ends a transfer that moved fewer than low_speed_bytes in this time [15 s] */
    uint32_t low_speed_bytes;  /* [16] */
    uint32_t max_connections;  /* [64] */
    uint32_t more_connections; /* beside those: for what is sent past a limit [0] */
    uint64_t max_connection_age_ms; /* then a new one is made, and the name resolved again [5 min] */
    bool
        libcurl; /* also for plain http://, which our own HTTP/1.1 does at a fifth of the cost: to compare them */
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM, HK_UNSUPPORTED. The loop must
 * outlive the sink, and the process ignore SIGPIPE (OpenSSL writes to connections that are gone). In the result of a delivery
 * - `status` is set (and `fault` HK_FAULT_NONE) as soon as a whole final header block came, whatever happened later. One of
 *   2xx counts when the whole request was handed to the system, or (HTTP/2) the other side said that it does not want the rest;
 * - `possibly_delivered`: the whole request was handed to the system, and no final status came; or a 2xx came early, and the
 *   rest of the request could not be sent. One send is one request:
 *   nothing is repeated here once a byte of it was written, so that the bound on repeats holds. With `oauth` there is one
 *   exception: after a 401 the same request goes out once more with a new token, for the receiver has not acted;
 * - HK_FAULT_BLOCKED: the address policy; HK_FAULT_INVALID_PAYLOAD: this message cannot be made a request, nothing was
 *   sent; HK_FAULT_LOCAL: aborted, or our side failed. */
enum hk_code hk_http_open(struct hk_loop *loop, const struct hk_http_options *options,
                          struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;

#endif
