/* SPDX-License-Identifier: Apache-2.0 */
/* The deliveries of one request, for sinks that stand on HTTP and send several messages in a request. Each ends with its own result, or
 * all of them with what became of the request. */
#ifndef HK_SINK_BROKER_BATCH_H
#define HK_SINK_BROKER_BATCH_H

#include "sink/broker/broker.h"

/* One request has one deadline: those of its messages are no further apart than this, nor than a tenth of a message's time-out. */
#define HK_BATCH_TOGETHER_MS 1000

struct hk_batch {
    /* The owner's memory. `number` of a flight: its deadline, before it was written. */
    struct hk_flight **flights;
    size_t n, bytes;
};

/* Does it go with those that are in it: so many messages and bytes at the most, and deadlines that are close? */
bool hk_batch_goes_along(const struct hk_batch *batch, const struct hk_flight *f, size_t bytes, size_t most,
                         size_t most_bytes);
/* Into the batch, and written. */
void hk_batch_take(struct hk_batch *batch, struct hk_flight *f, size_t bytes);
/* Until the first deadline of them; at least 1. */
uint64_t hk_batch_timeout_ms(const struct hk_batch *batch, uint64_t now_ms);
void hk_batch_fail(const struct hk_batch *batch, enum hk_fault fault, bool possibly_delivered,
                   const char *code, const char *words, const char *error);
/* There is no status: it never became a request, or nobody answered. */
void hk_batch_unanswered(const struct hk_batch *batch, const struct hk_facts *facts);
void hk_batch_note_address(const struct hk_batch *batch, struct hk_str address);
/* This one can never be sent: HK_INVALID, HK_TOOBIG; else our side failed. */
void hk_flight_refuse(struct hk_flight *f, enum hk_code rc, const char *why);

#endif
