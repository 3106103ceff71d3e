/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: an HTTP destination that gets many messages in one request, and may answer for each. docs/batches.md is the reference. */
#ifndef HK_SINK_BATCH_BATCH_H
#define HK_SINK_BATCH_BATCH_H

#include "sink/http/http.h"

#define HK_BATCH_MESSAGES_MAX 1000

enum hk_batch_format {
    HK_BATCH_JSON = 0, /* an array; with CloudEvents one of events */
    HK_BATCH_NDJSON
};

/* All is copied. */
struct hk_batch_options {
    struct hk_http_options
        http; /* of the requests. With `cloudevents` the items are events. Not: from_message, queue, bare */
    size_t messages;  /* in one request, 1 to HK_BATCH_MESSAGES_MAX */
    size_t bytes;     /* of their items; a single larger one travels alone */
    uint64_t wait_ms; /* while a request is in flight, a message waits so long for others */
    enum hk_batch_format format;
    size_t window; /* messages that the sink takes at a time [HK_BROKER_WINDOW] */
};

/* As hk_http_open. In the result of a delivery
 * - a request's own facts are those of each of its messages;
 * - a status of 2xx with a list of results (results.h) gives each message its own status. HK_FAULT_PROTOCOL with possibly_delivered: the
 *   list says nothing of this one, or cannot be read;
 * - a status that refuses what was sent (most of 4xx) says nothing of the single message: they go out again in halves, at last alone. */
enum hk_code hk_batch_open(struct hk_loop *loop, const struct hk_batch_options *options,
                           struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;

#endif
