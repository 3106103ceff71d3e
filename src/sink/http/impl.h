/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP sink share. http.c is a delivery's life, the same for all; how a request travels is one of
 * two wires: libcurl (curl.c), or our own HTTP/1.1 (h1.c) for plain http://, which takes a fifth of the time. */
#ifndef HK_SINK_HTTP_IMPL_H
#define HK_SINK_HTTP_IMPL_H

#include "base/buf.h"
#include "base/cidr.h"
#include "base/proxy.h"
#include "sink/http/http.h"
#include "sink/http/request.h"
#include "sink/http/response.h"

#define HK_HTTP_ERROR_MAX 320
/* libcurl may wait for minutes after an address was refused: the name's others have this long to be tried. */
#define HK_HTTP_BLOCKED_MS 1000

struct hk_access;

struct hk_http_list {
    struct hk_http_transfer *first, *last;
};

/* One delivery. Each wire has a longer struct of its own, which begins with this. */
struct hk_http_transfer {
    struct hk_http_transfer *next, *prev;
    struct hk_http_list *in; /* live, waiting, unauthorized, ended or spare */
    struct hk_http_sink *self;
    struct hk_request request;
    struct hk_response response;

    hk_sink_done_fn *done;
    void *arg;
    struct hk_str payload;
    uint64_t start_ms, deadline_ms;
    uint64_t look_ms;    /* no deadline passes before */
    uint64_t connect_ms; /* when it began to connect, 0 = not yet (it waits for a connection) */
    uint64_t request_ms; /* when the request began to go out */
    uint64_t window_ms;  /* when the present window for the speed began */
    uint64_t window_bytes;
    unsigned requests;   /* times that a request went out */
    bool blocked, tried; /* some address was refused; some was not */
    bool excused;        /* the other side said that it does not want the rest of the request */
    bool ended;          /* the answer came to its end, and did not break off */
    uint64_t blocked_ms; /* when the last one was */
    enum hk_response_next stop;
    char address[HK_IP_TEXT_MAX + 16];

    /* with access tokens (oauth.c) */
    struct hk_request_mark unsigned_at; /* the request without its token */
    uint64_t token_serial;
    bool renewed; /* it had a 401, and got another token */

    /* the verdict */
    enum hk_fault fault;
    int status;
    bool possibly_delivered;
    uint64_t duration_ms;
    char error[HK_HTTP_ERROR_MAX];
};

struct hk_http_wire {
    /* NULL: out of memory. */
    struct hk_http_transfer *(*make)(struct hk_http_sink *self);
    void (*unmake)(struct hk_http_transfer *t);
    /* Its request and payload are there; puts it into `live` or `waiting`, or ends it. */
    void (*begin)(struct hk_http_transfer *t);
    /* It ends: nothing more may happen to it. */
    void (*leave)(struct hk_http_transfer *t);
    /* Some have ended: those that wait may have their turn. */
    void (*next)(struct hk_http_sink *self);
    /* Bytes that were handed to the system, and whether that is the whole request. */
    uint64_t (*sent)(const struct hk_http_transfer *t, bool *out_whole);
    /* It is being connected; returns when to look again, UINT64_MAX = no need. NULL: no need, ever. */
    uint64_t (*look)(struct hk_http_transfer *t, uint64_t now_ms);
    /* Frees the sink; nothing is in flight. Also one that was never opened as a whole. */
    void (*destroy)(struct hk_http_sink *self);
};

/* Each wire has a longer one. */
struct hk_http_sink {
    struct hk_sink sink;
    const struct hk_http_wire *wire;
    struct hk_loop *loop;
    struct hk_timer *soon;  /* something has ended outside of the loop's callbacks */
    struct hk_timer *clock; /* all deadlines */
    uint64_t clock_ms;      /* what it is set to */
    struct hk_request_base base;
    char *url, *method, *ca_file, *cert_file, *key_file; /* url: NULL when messages name theirs */
    bool tls;                                            /* of `url` */
    bool from_message;
    bool varies;               /* each request has a URL of its own, by its message or with fields of it */
    const char *pins, *socket; /* in `kept`; NULL: none. Pins as libcurl has them */
    bool hides_url;            /* parts of the URL are not for people to see */
    struct hk_cidr *allow;
    size_t n_allow;
    const struct hk_proxy *proxy; /* that requests go by; NULL: none. In `kept` */
    struct hk_pool kept;          /* wiped at the end */
    struct hk_access *token;      /* NULL: requests carry no access token */
    const char *hide;             /* in `kept` */
    uint64_t connect_timeout_ms, first_byte_timeout_ms, low_speed_ms, max_age_ms;
    uint32_t low_speed_bytes, max_connections;
    size_t keep_bytes; /* of an answer's body; 0: as usual */
    struct hk_http_list live, waiting, unauthorized, ended, spare;
    size_t n_spare;
    struct hk_buf shown_request, shown_response;
    struct hk_header headers[HK_HTTP_HEADERS_MAX]; /* of the answer that is being reported */
    unsigned depth;                                /* > 0: inside one of our callbacks from the loop */
    bool closed;                                   /* close was called there */
};

/* ---- http.c ---- */

extern const struct hk_sink_ops hk_http_ops;

/* For a wire: what every callback from the loop begins and ends with. The sink may be gone afterwards. */
void hk_http_enter(struct hk_http_sink *self);
void hk_http_leave(struct hk_http_sink *self);

void hk_http_say(struct hk_http_transfer *t, const char *text); /* sets t->error, printable */
void hk_http_move(struct hk_http_transfer *t, struct hk_http_list *to);
/* After its response, or `fault` and `error`, were set. A status beats every fault. */
void hk_http_end(struct hk_http_transfer *t);
void hk_http_fail(struct hk_http_transfer *t, enum hk_fault fault, const char *text);
/* A success is there and the request is not all out. It counts when the rest is; if that fails, nobody knows. */
bool hk_http_early(const struct hk_http_transfer *t);
/* Look at its deadlines then at the latest. */
void hk_http_look_at(struct hk_http_transfer *t, uint64_t at_ms);
const char *hk_http_stop_text(enum hk_response_next stop); /* NULL: it did not stop for that */

/* The address policy, and what to say of an address that it refuses. */
bool hk_http_allowed(const struct hk_http_sink *self, const struct hk_ip *ip);
void hk_http_say_blocked(struct hk_http_transfer *t, const struct hk_ip *ip);
void hk_http_note_address(struct hk_http_transfer *t, const struct hk_ip *ip, int port);

/* As if it had not been sent; its clock goes on. */
void hk_http_rewind(struct hk_http_transfer *t);
/* Closes a sink whatever is in flight; no `done` runs. */
void hk_http_discard(struct hk_sink *sink);

/* Where it goes, and whether by TLS. */
const char *hk_http_url(const struct hk_http_transfer *t);
const char *hk_http_method(const struct hk_http_transfer *t);
bool hk_http_is_tls(const struct hk_http_transfer *t);

/* For `make` and `unmake`. */
void hk_http_transfer_init(struct hk_http_transfer *t, struct hk_http_sink *self);
void hk_http_transfer_fini(struct hk_http_transfer *t);

void hk_http_on_soon(void *sink);
void hk_http_on_clock(void *sink);

/* ---- open.c ---- */

/* What all wires share of a sink; the struct itself stays. */
void hk_http_fini(struct hk_http_sink *self);

/* ---- curl.c ---- */

struct hk_http_sink *hk_http_curl_new(void); /* NULL: out of memory */
enum hk_code hk_http_curl_open(struct hk_http_sink *self, struct hk_err *err) HK_MUSTCHECK;

/* ---- h1.c ---- */

struct hk_http_sink *hk_h1_new(void); /* NULL: out of memory */
/* `host` as in a URL, in brackets if IPv6. */
enum hk_code hk_h1_open(struct hk_http_sink *self, const char *host, uint16_t port,
                        struct hk_err *err) HK_MUSTCHECK;

#endif
