/* SPDX-License-Identifier: Apache-2.0 */
/* The traces of a clock that was ahead in a store, and their repair once the clock is right: for both kinds of store.
 *
 * Two times: the *clock*, which is right again (the host's for SQLite, the server's for PostgreSQL), and the *mark*, the latest time
 * that the store has seen. SQLite keeps it (high_water_ms); PostgreSQL does not, so there it is the latest time in rows that
 * can only have been written with the time of then. Where the mark is not ahead nothing is wrong.
 *
 * The rules, of which sql/clock.sql is made:
 *   - No wait becomes shorter than it was meant to be. When a message was tried is known: its wait begins anew now. Of what only says
 *     "until" (breakers, notices) there remains what the store's own time would still make it wait.
 *   - What an application named (not_before, expires_at) is not touched, and neither is what tells of the past: attempts, letters,
 *     sent and cancelled messages, the audit. */
#ifndef HK_STORE_CLOCK_H
#define HK_STORE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/str.h"

struct hk_buf;

enum hk_clock_part {
    HK_CLOCK_WAITS = 0, /* messages that were tried then, and wait for the next attempt */
    HK_CLOCK_DUE, /* messages that were to go at once: requeued, fanned out, found in a dead relay's hands */
    HK_CLOCK_BREAKERS,
    HK_CLOCK_STATES, /* of destinations: since when they are paused */
    HK_CLOCK_LEASES, /* of relays that are dead */
    HK_CLOCK_CLAIMS,
    HK_CLOCK_REDRIVES,
    HK_CLOCK_NOTICES, /* of alerts, not told yet */
    HK_CLOCK_MUTES,
    HK_CLOCK_LOOKS, /* up to when alerts were looked for */
    HK_NCLOCK_PARTS
};

const char *hk_clock_part_name(enum hk_clock_part part); /* for JSON: "waits" … */
/* "3 breakers" … */
const char *hk_clock_part_words(enum hk_clock_part part, uint64_t n, char out[96]);

enum {
    HK_CLOCK_IN_STEP_MS = 2000 /* by so much the mark may be ahead, and rows of it */
};

struct hk_clock_state {
    bool of_server; /* the clock is the database server's; else this host's */
    int64_t clock_ms, mark_ms;
    uint64_t rows[HK_NCLOCK_PARTS]; /* that are wrong, or were mended */
    bool mended;
    uint64_t lease_ms; /* the longest lease of those that may live: HK_BUSY becomes something else after it */
};

bool hk_clock_in_step(const struct hk_clock_state *state);

/* `reason` NULL: only look. Else mend, unless the clock is in step. */
struct hk_clock_ask {
    const char *actor, *reason;
    /* A relay that left its lane behind without a word is dead when it has not been heard of for so long, on the same handle, and
     * for as long as its own lease. */
    uint64_t lease_ms;
};

/* Adds the detail of the audit's row. */
void hk_clock_detail(struct hk_buf *out, const struct hk_clock_state *state);
/* HK_RANGE when the clock cannot be right: a store must not be set back to 1970. */
enum hk_code hk_clock_check(const struct hk_clock_state *state, struct hk_err *err);

/* ---- is its relay dead? ---- */

#define HK_LANES_WATCHED 128

/* The lanes that a handle has seen, with something that changes whenever their relay does anything, and since when it is so. */
struct hk_lane_watch {
    struct {
        int64_t lane, sign, since_ms; /* monotonic */
        bool alive;                   /* it has changed */
    } items[HK_LANES_WATCHED];

    size_t n;
};

/* HK_OK: dead. HK_BUSY: nobody can tell yet. HK_CONFLICT: it runs. `err` says what to do. */
enum hk_code hk_lane_watch(struct hk_lane_watch *watch, int64_t lane, int64_t sign, uint64_t lease_ms,
                           struct hk_str relay, struct hk_err *err);
enum hk_code hk_lane_runs(struct hk_str relay, struct hk_err *err); /* HK_CONFLICT */
/* The longer of both: a relay may have another lease than the configuration says that is at hand. */
uint64_t hk_lane_lease(uint64_t lease_ms, int64_t of_lane_ms);

#endif
