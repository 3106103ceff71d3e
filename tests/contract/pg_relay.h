/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest relay there is, for tests of the PostgreSQL store: reads as the engine reads (late rows first, then onwards from
 * its cursor), claims whatever it sees, and has it sent by the next exchange. It keeps a log. */
#ifndef HK_TESTS_PG_RELAY_H
#define HK_TESTS_PG_RELAY_H

#include "pg_kind.h"

enum {
    RELAY_BATCH = 64
};

struct delivery {
    int64_t id;
    size_t place; /* among the deliveries of all relays */
    char key[24];
};

struct relay {
    struct hk_store *store;
    int64_t lane;
    int64_t cursor;
    int64_t claim;
    int64_t held[RELAY_BATCH]; /* ids of the manifest that is to be settled */
    size_t n_held;
    struct delivery *log;
    size_t n_log, room;
    size_t n_late, n_resets, n_errors;
};

void relay_open(struct relay *relay,
                const struct hk_store_options *options); /* and acquires a lane, for 30 s */
/* One turn: poll, late rows, up to `pages` of fresh rows. Errors that will pass are counted; false: the lane is gone. */
bool relay_turn(struct relay *relay, int pages);
void relay_settle(struct relay *relay); /* what is still in hand */
void relay_leave(struct relay *relay);  /* settles and releases; relay_close is still the caller's */
void relay_close(struct relay *relay);  /* without release, as a crash leaves it */
/* Fails the test when something was delivered twice, or out of the order of its key. */
void relay_check(const struct relay *relays, size_t n);

const struct hk_poll *relay_poll(struct hk_store *store);
/* Ids that a scan gives, as "1,2,5"; a '+' behind them when there is more. Valid until the next call. */
const char *relay_scan(struct hk_store *store, struct hk_scan scan);

#endif
