/* SPDX-License-Identifier: Apache-2.0 */
/* The header block of one request, as sent to the destination and as shown to people. */
#ifndef HK_SINK_HTTP_REQUEST_H
#define HK_SINK_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/buf.h"
#include "core/message.h"
#include "payload/target.h"
#include "sink/http/fields.h"
#include "sink/http/header.h"
#include "sink/http/http.h"
#include "sink/http/sign.h"

#define HK_REQUEST_LINES_MAX 144

struct hk_request {
    struct hk_buf
        text; /* as it goes out: what stands before the lines (the base's start), then "Name: value\r\n" each */

    struct {
        uint32_t at; /* in text */
        uint16_t name_len, value_len;
        bool secret;
    } lines[HK_REQUEST_LINES_MAX];

    size_t n;

    /* What goes out behind the lines: the payload, or `made` of it. */
    struct hk_str body;
    struct hk_buf made, packed; /* an event around the payload; either compressed */

    /* What the message says of its own request (payload/target.h); "" = nothing. */
    struct hk_buf url;
    char method[HK_TARGET_METHOD_MAX];
};

void hk_request_init(struct hk_request *request);
void hk_request_fini(struct hk_request *request); /* wipes */
struct hk_str hk_request_name(const struct hk_request *request, size_t i);
struct hk_str hk_request_value(const struct hk_request *request, size_t i);
/* "00-<32 hex>-<16 hex>-<2 hex>", lower case; ids are not all zero. Nothing else goes out as a traceparent. */
bool hk_request_is_traceparent(struct hk_str s);
bool hk_request_has(const struct hk_request *request, struct hk_str name);

/* What a message says of itself, besides its id: each is a header field, under a name that the destination may change. */
enum hk_request_field {
    HK_FIELD_EVENT_TYPE = 0,
    HK_FIELD_CORRELATION_ID,
    HK_FIELD_ATTEMPT,
    HK_FIELD_IDEMPOTENCY_KEY,
    HK_FIELD_TRACEPARENT,
    HK_NFIELDS
};

/* What is the same for all requests of a destination. */
struct hk_request_base {
    struct hk_request fixed; /* the start, and the lines that never change */

    struct {
        char name[HK_HEADER_NAME_MAX + 1]; /* "" = it is left out */
        bool moved;                        /* the destination gave it that name */
        bool secret;
    } fields[HK_NFIELDS];

    bool typed;      /* one of them is Content-Type */
    bool targeted;   /* messages name their URL */
    bool bare;       /* nothing is said of the message */
    bool structured; /* a CloudEvent is the body, not header fields */
    bool gzip;
    char *name;               /* the destination's */
    char *url_template;       /* NULL: it is none */
    char *ce_source;          /* NULL = no CloudEvents */
    char *queue;              /* of Cloud Tasks' requests; NULL = they are none */
    struct hk_signer *signer; /* NULL = unsigned */
    hk_http_late_fn *late;    /* with `bare`; NULL = none */
    void *late_arg;
};

/* Checks and copies. `start` is put before the lines as it is. HK_INVALID, HK_TOOBIG, HK_NOMEM. */
enum hk_code hk_request_base_init(struct hk_request_base *base, const struct hk_http_options *options,
                                  struct hk_str start, struct hk_err *err) HK_MUSTCHECK;
void hk_request_base_fini(struct hk_request_base *base); /* wipes what is secret */

/* HK_INVALID: this message cannot be made a request, ever; `err` says why. HK_NOMEM. */
enum hk_code hk_request_build(struct hk_request *request, struct hk_request_base *base,
                              const struct hk_message *msg, uint32_t attempt, int64_t wall_ms,
                              struct hk_err *err) HK_MUSTCHECK;

/* Frees what only a large body needed. */
void hk_request_shrink(struct hk_request *request);

/* The end of what is built; hk_request_authorize cuts there, and adds an Authorization line with the token. */
struct hk_request_mark {
    size_t len, n;
};

struct hk_request_mark hk_request_mark(const struct hk_request *request);
enum hk_code hk_request_authorize(struct hk_request *request, const struct hk_request_mark *mark,
                                  const char *token, struct hk_err *err) HK_MUSTCHECK;
/* Adds a JSON object with secrets masked. */
void hk_request_show(const struct hk_request *request, struct hk_buf *out);

#endif
