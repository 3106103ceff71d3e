/* SPDX-License-Identifier: Apache-2.0 */
/* Order per key: the keys that are held, their holders, and the messages that the engine passed over meanwhile.
 * A key is known by its 64-bit hash: a collision makes two keys wait for each other, and never overtake. */
#ifndef HK_CORE_ORDER_H
#define HK_CORE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

struct hk_order;

#define HK_NONE_PASSED INT64_MAX

/* One key of one destination. The entry disappears (do not use it any more) once nothing holds the key and no message of it was passed
 * over. */
struct hk_order_key {
    uint64_t hash;      /* 0 = free place in the table */
    uint32_t waiting;   /* retry rows */
    uint32_t unrouted;  /* retry rows that may yet be routed here */
    uint32_t in_flight; /* claimed, or about to be */
    uint32_t dead;      /* open dead letters that block */
    bool doubtful; /* a holder may not be counted: the key counts as held until the holders are read again */
    int64_t passed_id; /* lowest id in outbox that was passed over; HK_NONE_PASSED = none */
    bool queued;       /* is in the queue of ready keys */
    size_t dest;
    char *text; /* the key itself, kept while passed_id is set */
};

enum hk_code hk_order_new(uint64_t seed, struct hk_order **out_order, struct hk_err *err) HK_MUSTCHECK;
void hk_order_free(struct hk_order *order);
void hk_order_clear(struct hk_order *order);
/* Forgets retry rows and dead heads before they are read again. Until hk_order_settle no key becomes ready. */
void hk_order_clear_held(struct hk_order *order);
/* All holders are known again: drops keys without holders and queues keys that became free. */
void hk_order_settle(struct hk_order *order);

/* Drops every key of the destination, which has nothing in flight. Returns the lowest id that was passed over; HK_NONE_PASSED = none. */
int64_t hk_order_forget(struct hk_order *order, size_t dest);

uint64_t hk_order_hash(const struct hk_order *order, size_t dest, struct hk_str key); /* never 0 */
/* NULL: the key has no entry, so it is free. */
struct hk_order_key *hk_order_find(struct hk_order *order, uint64_t hash);
/* The entry, created if there is none; NULL when out of memory. Moves other entries: keep no pointers across the call. */
struct hk_order_key *hk_order_get(struct hk_order *order, uint64_t hash, size_t dest);
/* After a holder is gone: drops the entry, or queues it as ready if a message was passed over. */
void hk_order_tidy(struct hk_order *order, uint64_t hash);

/* May the engine claim a message that has not been tried? */
bool hk_order_free_for_first(const struct hk_order_key *key);
/* Remembers that `id` was passed over; false when out of memory. */
bool hk_order_pass(struct hk_order_key *key, int64_t id, struct hk_str text);
/* The key that is free and has had messages passed over for longest, or NULL. It stays first until it is held again. */
struct hk_order_key *hk_order_ready(struct hk_order *order);
/* Moves the key that hk_order_ready returns to the end of the queue. */
void hk_order_rotate(struct hk_order *order);
/* Removes the key from the queue although it is free, because its next message waits for something else. hk_order_tidy queues it
 * again. */
void hk_order_park(struct hk_order_key *key);
size_t hk_order_count(const struct hk_order *order);
size_t hk_order_queue(const struct hk_order *order); /* places in the queue, skipped ones included */

#endif
