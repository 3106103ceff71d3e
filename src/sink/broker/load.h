/* SPDX-License-Identifier: Apache-2.0 */
/* A load: the flights that one request carries. A kind that sends many messages in a request fills a load from the queue of its sink,
 * as long as the next flight goes along.
 *
 * A request of several messages that is refused as a whole says nothing of the single message. Then each of them goes out again in
 * smaller company (hk_load_split), within the same attempt, because the other side has taken none of them. Two messages with the
 * same key are never in one load, since the engine never has both in flight. */
#ifndef HK_SINK_BROKER_LOAD_H
#define HK_SINK_BROKER_LOAD_H

#include "sink/broker/broker.h"

struct hk_load {
    struct hk_flight **flights;
    size_t room;       /* of them */
    size_t n, bytes;   /* there are so many, of so many bytes as the kind counts them */
    size_t most_bytes; /* of several; a single one may have more */
};

/* `flights` has room for `room` of them, and stays the caller's. */
void hk_load_init(struct hk_load *load, struct hk_flight **flights, size_t room, size_t most_bytes);
/* Does this flight go with those that are there? One request has one deadline, so theirs are no further apart than a second, or an eighth of their time; and
 * flights of one refusal stay among themselves. */
bool hk_load_takes(const struct hk_load *load, const struct hk_flight *flight, size_t bytes);
/* The flight leaves the queue: the kind will end it in time. */
void hk_load_add(struct hk_load *load, struct hk_flight *flight, size_t bytes);
/* Until the first of their deadlines; at least 1. */
uint64_t hk_load_timeout_ms(const struct hk_load *load, uint64_t now_ms);
/* As hk_flight_fail, for all. */
void hk_load_fail(struct hk_load *load, enum hk_fault fault, bool possibly_delivered, const char *code,
                  const char *words, const char *error);
/* As hk_load_fail, with what a request without a status reports: it never left, or nobody answered. */
void hk_load_unanswered(struct hk_load *load, const struct hk_facts *facts);
/* The address that the request went to, for each of their reports. */
void hk_load_note_address(struct hk_load *load, struct hk_str address);
/* All are queued again, to travel in a company of so many. */
void hk_load_split(struct hk_load *load, size_t company);

#endif
