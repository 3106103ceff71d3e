/* SPDX-License-Identifier: Apache-2.0 */
/* Into the outbox, without an application: one message, or many as lines of NDJSON. */
#ifndef HK_DESK_ENQUEUE_H
#define HK_DESK_ENQUEUE_H

#include "desk/desk.h"

/* ---- one ---- */

/* NULL, 0 and a payload without bytes: not given. */
struct hk_enqueue_ask {
    const char *destination, *event_type;
    struct hk_str payload;
    const char *key;
    const char *target_url, *target_method; /* for destinations with url: message; kept among the headers */
    uint64_t timeout;                       /* of one attempt, in ms; kept there, too */
    struct hk_texts header;                 /* NAME=VALUE */
    const char *headers; /* not of the table: the same as a JSON object, in place of `header` */
    const char *content_type, *encoding;
    const char *not_before, *expires; /* a time, or a wait from now on */
    const char *message_id, *idempotency_key, *correlation_id, *traceparent, *policy;
    uint64_t max_attempts;
};

struct hk_enqueued {
    struct hk_str message_id;
    /* A warning for the sender, even if nothing was written; NULL = none. The relay may have another configuration than the desk, so a
     * message to an unknown destination is accepted. */
    const char *warning;
};

extern const struct hk_op hk_op_enqueue;

/* The same message as a line of NDJSON, for a desk elsewhere. Bytes that are no text are sent as base64. */
enum hk_code hk_enqueue_write(struct hk_desk *desk, const struct hk_enqueue_ask *ask, struct hk_pool *mem,
                              struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;

/* ---- many ---- */

#define HK_LINE_MAX ((size_t)16 << 20)

/* The caller supplies the lines, and gets the ids of each batch when it is committed. An error of either function ends the operation. */
struct hk_enqueue_lines_ask {
    /* The next line, without its end, valid until the next call; ptr NULL: there are no more. HK_TOOBIG: it is longer than
     * HK_LINE_MAX. */
    enum hk_code (*next)(void *arg, struct hk_str *out, struct hk_err *err);
    enum hk_code (*took)(void *arg, const struct hk_str *ids, size_t n, struct hk_err *err);
    void *arg;
};

/* Filled after an error, too: committed batches stay. */
struct hk_enqueued_lines {
    uint64_t messages; /* committed */
    uint64_t lines;    /* up to this one, from 1 */
};

/* One JSON object a line (ndjson.h), in batches of up to 500 that are each committed whole; blank lines count and say nothing. An
 * error names its line, and nothing of that line's batch is written. */
extern const struct hk_op hk_op_enqueue_lines;

#endif
