/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the host on which the store lives, which may be wrong, and the store's time, which never goes back: the same rule
 * as hk_sq_now and hk_pg_now. What is written with a time (not_before, expires_at) means the right clock. */
#include "world_impl.h"

int64_t hk_world_right_clock(const struct world *w)
{
    return STORE_EPOCH_MS + w->now;
}

int64_t hk_world_clock(void *arg)
{
    const struct world *w = arg;
    return hk_world_right_clock(w) + w->wall_jump_ms;
}

/* While the clock is behind, the store's time goes on at half its speed. */
int64_t hk_world_store_now(void *arg)
{
    struct world *w = arg;
    int64_t wall_ms = hk_world_clock(w);
    if (wall_ms >= w->wall_high_ms) {
        w->wall_high_ms = w->wall_from_ms = wall_ms;
        return wall_ms;
    }
    if (wall_ms < w->wall_from_ms)
        w->wall_from_ms = wall_ms;
    int64_t half_ms = (wall_ms - w->wall_from_ms) / 2;
    w->wall_from_ms += 2 * half_ms;
    w->wall_high_ms += half_ms;
    return w->wall_high_ms;
}

static void jump(struct world *w, int64_t by_ms)
{
    w->wall_jump_ms += by_ms;
    w->result->faults++;
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_CLOCK, .wait = by_ms});
}

/* From one wrong time to the next. */
static void wander(struct world *w)
{
    if (w->healed)
        return;
    jump(w, hk_world_between(&w->fault_rng, 0, 1) ? hk_world_between(&w->fault_rng, -20000, 20000)
                                                  : hk_world_between(&w->fault_rng, -500, 500));
    hk_world_at(w, w->now + hk_world_between(&w->fault_rng, 1000, 20000), EV_CLOCK, 0, 0);
}

/* A wrong moment begins, and ends with the next event. */
static void be_wrong(struct world *w, size_t i)
{
    const struct wrong_moment *wrong = &w->c.wrong[i];
    if (w->is_wrong[i]) {
        jump(w, -wrong->by_ms);
    } else if (!w->healed) {
        jump(w, wrong->by_ms);
        hk_world_at(w, w->now + wrong->for_ms, EV_CLOCK, i, 1);
        w->is_wrong[i] = true;
    }
}

void hk_world_clock_begin(struct world *w)
{
    if (w->c.clock_jumps)
        hk_world_at(w, 1000, EV_CLOCK, 0, 0);
    for (size_t i = 0; i < w->c.n_wrong; i++)
        hk_world_at(w, w->c.wrong[i].at_ms, EV_CLOCK, i, 1);
}

void hk_world_clock_step(struct world *w, const struct event *ev)
{
    if (ev->number)
        be_wrong(w, ev->who);
    else
        wander(w);
}
