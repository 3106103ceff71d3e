/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in the last minute: counts and durations in slots of five seconds, the oldest of which is forgotten when a new
 * one begins. Bounded: about 10 KB for each destination that does anything. Time is an argument. */
#ifndef HK_DAEMON_WINDOW_H
#define HK_DAEMON_WINDOW_H

#include "base/histogram.h"

#define HK_WINDOW_SLOTS   12
#define HK_WINDOW_SLOT_MS 5000

struct hk_window_slot {
    uint64_t seen, sent, failed, dead;
    struct hk_histogram latency;
};

struct hk_window {
    int64_t began_ms;
    int64_t slot; /* the current one's number since the clock began */
    struct hk_window_slot slots[HK_WINDOW_SLOTS];
};

void hk_window_init(struct hk_window *window, int64_t now_ms);
/* Where to count now. `now_ms` never goes back. */
struct hk_window_slot *hk_window_at(struct hk_window *window, int64_t now_ms);
/* All slots together, and the time that they cover. */
uint64_t hk_window_sum(struct hk_window *window, int64_t now_ms, struct hk_window_slot *out);

#endif
