/* SPDX-License-Identifier: Apache-2.0 */
/* The store's time: how far it is from the clock, and setting it back after the clock was ahead. */
#ifndef HK_DESK_CLOCK_H
#define HK_DESK_CLOCK_H

#include "desk/desk.h"

struct hk_clock_reset_ask {
    bool dry_run;
};

/* The result of both is a struct hk_clock_state (store/clock.h).
 *
 * reset: HK_CONFLICT: a relay runs. HK_BUSY: nobody can tell yet whether one does; it is known when this desk has been asked again and
 * again for as long as a lease lasts. HK_RANGE: the clock itself cannot be right. */
extern const struct hk_op hk_op_clock_show, hk_op_clock_reset;

/* By how much the store's time is ahead; 0 when they are in step. */
uint64_t hk_clock_ahead_ms(const struct hk_clock_state *state);

#endif
