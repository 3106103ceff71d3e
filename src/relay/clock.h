/* SPDX-License-Identifier: Apache-2.0 */
/* The relay's log lines about clocks: when one jumps, and when the store's clock falls behind the store's time. */
#ifndef HK_RELAY_CLOCK_H
#define HK_RELAY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct hk_log;

/* One line when it begins, one when it is over. Returns whether the clock counts as behind now. */
bool hk_clock_log(struct hk_log *log, bool was_behind, uint64_t behind_ms);

enum hk_clock_whose {
    HK_CLOCK_OF_STORE_HOST = 0, /* the host's, and the store goes by it (SQLite) */
    HK_CLOCK_OF_HOST,           /* the host's, where the store has its own */
    HK_CLOCK_OF_SERVER          /* the database server's */
};

/* One clock, as it was read last, beside one that nobody can set. Zeroed: not read yet. */
struct hk_clock_watch {
    bool known;
    int64_t apart_ms; /* what the clock said, less what the steady one said */
    uint32_t late_ms; /* the clock may have been later by so much */
};

/* Logs once for each jump of more than two seconds, ahead or back. `clock_ms` and `steady_ms` were read together, or `late_ms`
 * apart. Slow corrections, as NTP makes them, are none. */
void hk_clock_watch(struct hk_clock_watch *watch, struct hk_log *log, enum hk_clock_whose whose,
                    int64_t clock_ms, int64_t steady_ms, uint32_t late_ms);

/* The clocks that a relay uses. All zero except `shared`: nothing was read yet. */
struct hk_clocks {
    bool shared; /* the store is a server with its own clock (hk_store_ops.shared) */
    bool behind;
    int64_t asked_ms; /* monotonic: when the store was done with the last call */
    struct hk_clock_watch host, server;
};

struct hk_poll;
/* Looks at the host's clock: about every second. */
void hk_clocks_beat(struct hk_clocks *clocks, struct hk_log *log);
/* Takes in the store's time, which a poll reported. */
void hk_clocks_polled(struct hk_clocks *clocks, struct hk_log *log, const struct hk_poll *poll);

#endif
