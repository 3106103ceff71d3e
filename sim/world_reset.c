/* SPDX-License-Identifier: Apache-2.0 */
/* An operator who sets the store right after the clock was ahead: stops every relay (one drains, one is killed, one is only asleep and nobody
 * knows), asks for the reset until it is done, and lets them start again. Those that slept wake when they do. */
#include "world_impl.h"

enum {
    ASK_AGAIN_MS = 700
};

/* Behind the wrong moments. From a stream of its own: worlds without it are what they were. */
void hk_world_reset_draw(struct world *w, uint64_t seed)
{
    struct config *c = &w->c;
    int64_t over_ms = 0;
    bool ahead = false;
    hk_rng_seed(&w->reset_rng, seed, RNG_RESET);
    for (size_t i = 0; i < c->n_wrong; i++) {
        int64_t end_ms = c->wrong[i].at_ms + c->wrong[i].for_ms;
        over_ms = end_ms > over_ms ? end_ms : over_ms;
        ahead |= c->wrong[i].by_ms > 0;
    }
    if (!ahead || hk_rng_upto(&w->reset_rng, 2) == 0)
        return;
    int64_t lease_ms = (int64_t)w->options.lease_ms;
    c->reset_at = over_ms + hk_world_between(&w->reset_rng, 1, 3000);
    c->fault_ms = c->reset_at + 3 * lease_ms + 5000;
    c->forget_at = c->keep_at = c->away_to = 0;
}

static void put_to_rest(struct world *w, size_t relay)
{
    int64_t lease_ms = (int64_t)w->options.lease_ms;
    if (!w->relays[relay].engine || w->relays[relay].stopped)
        return;
    switch (hk_rng_upto(&w->reset_rng, 3)) {
    case 0:
        hk_world_relay_crash(w, relay);
        break;
    case 1:
        hk_world_relay_stop(w, relay, hk_world_between(&w->reset_rng, 1, 4 * lease_ms));
        break;
    default:
        hk_world_relay_drain(w, relay);
        break;
    }
}

static void set_back(struct world *w)
{
    int64_t mark_ms = hk_world_store_now(w);
    w->wall_high_ms = w->wall_from_ms = hk_world_clock(w);
    hk_model_reset(w->model, mark_ms);
    w->result->faults++;
    w->result->resets++;
}

/* Whoever runs all the same is to drain. */
static void ask(struct world *w)
{
    uint64_t lease_ms =
        hk_rng_between(&w->reset_rng, 1, w->options.lease_ms); /* the operator may know less */
    if (hk_model_may_reset(w->model, &w->watch, lease_ms, w->c.locks, w->now)) {
        set_back(w);
        w->maintenance = false;
        return;
    }
    for (size_t i = 0; i < w->c.n_relays; i++)
        if (!w->relays[i].stopped)
            hk_world_relay_drain(w, i);
    hk_world_at(w, w->now + hk_world_between(&w->reset_rng, 1, ASK_AGAIN_MS), EV_RESET, 0, 0);
}

void hk_world_reset_step(struct world *w)
{
    if (w->healed || hk_model_in_step(w->model)) {
        w->maintenance = false;
        return;
    }
    if (!w->maintenance) {
        w->maintenance = true;
        for (size_t i = 0; i < w->c.n_relays; i++)
            put_to_rest(w, i);
    }
    ask(w);
}
