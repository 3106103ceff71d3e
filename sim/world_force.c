/* SPDX-License-Identifier: Apache-2.0 */
/* Concurrency that relays share, messages that people force, and messages that name the time of an attempt. Each from a stream of its
 * own: worlds without these are what they were. */
#include <string.h>

#include "world_impl.h"

static uint32_t maybe(struct hk_rng *rng, uint32_t in_100, uint32_t lo, uint32_t hi)
{
    return hk_rng_upto(rng, 99) < in_100 ? (uint32_t)hk_rng_between(rng, lo, hi) : 0;
}

/* ---- seats ---- */

/* Only where the store is shared, and the destination names a number. */
void hk_world_seats_draw(struct world *w, uint64_t seed)
{
    struct hk_rng rng;
    hk_rng_seed(&rng, seed, RNG_SEATS);
    if (!w->c.many || hk_rng_upto(&rng, 1))
        return;
    for (size_t i = 0; i < w->c.n_dests; i++) {
        struct hk_engine_dest *d = &w->engine_dests[i];
        d->shared = d->limiter.concurrency && hk_rng_upto(&rng, 3) != 0;
        if (d->shared)
            w->dests[i].turn_ms = 0; /* others may have its places */
    }
}

/* ---- forced messages ---- */

enum {
    LAST_MS = 4000 /* after the faults, so long some are forced … */
};

void hk_world_force_draw(struct world *w, uint64_t seed)
{
    struct hk_rng *rng = &w->force_rng;
    hk_rng_seed(rng, seed, RNG_FORCE);
    w->c.force_gap_ms =
        hk_rng_upto(rng, 2) == 0 ? hk_world_between(rng, 20, hk_rng_upto(rng, 1) ? 300 : 3000) : 0;
    for (size_t i = 0; w->c.force_gap_ms && i < w->c.n_dests; i++)
        w->dests[i].turn_ms = 0; /* forced ones have its places */
}

static bool is_ordered(void *arg, const char *name)
{
    struct world *w = arg;
    size_t i = 0;
    while (i < w->c.n_dests && strcmp(w->dests[i].name, name) != 0)
        i++;
    return i == w->c.n_dests || w->engine_dests[i].ordered;
}

/* … while one destination is paused: not one that keeps an order, behind which others wait. */
static size_t paused_at_last(const struct world *w)
{
    size_t i = 0;
    while (i < w->c.n_dests && w->engine_dests[i].ordered)
        i++;
    return i;
}

void hk_world_force_heal(struct world *w)
{
    size_t dest = paused_at_last(w);
    struct hk_model_reply reply = {.rc = HK_OK};
    if (!w->c.force_gap_ms || dest == w->c.n_dests)
        return;
    hk_model_pause(w->model, w->dests[dest].name, true, "operator", &reply);
    hk_model_reply_free(&reply);
}

void hk_world_force_step(struct world *w)
{
    struct hk_rng *rng = &w->force_rng;
    if (w->finishing || (w->healed && w->now - w->healed_at > LAST_MS))
        return;
    uint64_t pick = hk_rng_next(rng);
    if (!hk_world_store_full(w) && !hk_world_store_away(w))
        (void)hk_model_force(w->model, pick, is_ordered, w);
    hk_world_at(w, w->now + hk_world_between(rng, 1, 2 * w->c.force_gap_ms), EV_FORCE, 0, 0);
}

/* It stays so for as long as they may take. */
bool hk_world_force_holds(const struct world *w, size_t dest)
{
    return w->c.force_gap_ms && dest == paused_at_last(w) &&
           w->now - w->healed_at < LAST_MS + hk_world_bound_ms(w);
}

/* Until then there is no rest: nothing but the pause may hold what waits there. */
bool hk_world_force_pauses(const struct world *w)
{
    size_t dest = paused_at_last(w);
    return w->c.force_gap_ms && dest < w->c.n_dests && hk_model_is_paused(w->model, w->dests[dest].name);
}

/* ---- time-outs ---- */

enum {
    TIMEOUT_MAX_MS =
        1000 /* no policy gives up sooner: so the first attempt has as long as its message asks for */
};

void hk_world_timeout_draw(struct world *w, uint64_t seed)
{
    struct hk_rng *rng = &w->timeout_rng;
    hk_rng_seed(rng, seed, RNG_TIMEOUT);
    uint32_t p_timeout = maybe(rng, 30, 2000, 40000);
    w->c.p_timeout = hk_world_judges_turns(w) ? 0 : p_timeout; /* each that runs out is looked for again */
    w->options.timeout_ceiling_ms = hk_rng_upto(rng, 1) ? hk_rng_between(rng, 50, TIMEOUT_MAX_MS) : 0;
}

void hk_world_timeout_set(struct world *w, struct hk_model_msg *msg)
{
    uint64_t ceiling_ms = w->options.timeout_ceiling_ms;
    if (!w->c.p_timeout || !hk_world_chance(&w->timeout_rng, w->c.p_timeout))
        return;
    msg->timeout_ms = hk_rng_between(&w->timeout_rng, 20, ceiling_ms ? 3 * ceiling_ms : TIMEOUT_MAX_MS);
    msg->timeout_logged = ceiling_ms && msg->timeout_ms > ceiling_ms ? ceiling_ms : msg->timeout_ms;
}
