/* SPDX-License-Identifier: Apache-2.0 */
/* What this relay counted of a destination in this minute and in this hour, and batches of rows (store/series.h) that are made of it when
 * the minute is over. Bounded: 2 KB for each destination that did anything, and at most HK_TALLY_BATCHES batches that wait for the store;
 * then the oldest is dropped. Time is an argument: the store's. */
#ifndef HK_DAEMON_TALLY_H
#define HK_DAEMON_TALLY_H

#include "base/histogram.h"
#include "base/pool.h"
#include "store/series.h"

struct hk_tally {
    uint64_t seen, sent, failed, retried, dead;
    struct hk_histogram latency;
};

struct hk_tallies {
    struct hk_tally minute, hour; /* the hour without this minute */
    bool named;                   /* has rows of its own in this hour */
};

void hk_tally_add(struct hk_tally *into, const struct hk_tally *from);
bool hk_tally_is_empty(const struct hk_tally *tally);

/* Rows of one minute, in memory of their own. */
struct hk_tally_batch {
    struct hk_tally_batch *next;
    struct hk_pool mem;
    int64_t minute_ms;
    struct hk_series_row *rows;
    size_t n, room;
};

#define HK_TALLY_BATCHES 5

/* NULL: out of memory. */
struct hk_tally_batch *hk_tally_batch_new(int64_t minute_ms, size_t room);
void hk_tally_batch_free(struct hk_tally_batch *batch); /* accepts NULL */
/* The minute of a destination, and the hour with it: two rows. The minute is empty afterwards. False: out of memory, and it stays. */
bool hk_tally_batch_take(struct hk_tally_batch *batch, int64_t lane, struct hk_str destination,
                         struct hk_tallies *of);
/* At the end of a list, of which the first is dropped when it is long. True: one was. */
bool hk_tally_batch_queue(struct hk_tally_batch **list, struct hk_tally_batch *batch);

#endif
