/* SPDX-License-Identifier: Apache-2.0 */
/* Who looks after dead letters: edits, requeues (one, one under a new id, all of them, twice by a double click), restores what
 * was discarded, and redrives as jobs that relays carry on. */
#include "core/redrive.h"
#include "world_impl.h"

enum {
    HURRY_MS = 60,
    ASK_MS = 1000,          /* how long a relay goes without asking for jobs */
    PATIENCE_MS = 2 * 60000 /* after the faults: what then still waits for outcomes is cancelled */
};

void hk_world_desk_draw(struct world *w, uint64_t seed)
{
    struct hk_rng *rng = &w->desk_rng;
    struct config *c = &w->c;
    hk_rng_seed(rng, seed, RNG_DESK);
    c->desk_gap_ms = hk_rng_upto(rng, 2) == 0 ? hk_world_between(rng, 100, 5000) : 0;
    c->desk_edits = hk_rng_upto(rng, 1);
    c->desk_renames = hk_rng_upto(rng, 2) == 0;
    c->desk_restores = hk_rng_upto(rng, 1);
    c->desk_bulk = hk_rng_upto(rng, 2) == 0;
    c->desk_twice = hk_rng_upto(rng, 1);
    c->desk_redrives = hk_rng_upto(rng, 1);
}

static void start_redrive(struct world *w)
{
    struct hk_rng *rng = &w->desk_rng;
    const struct hk_redrive_pace pace = {.rate_per_s = (double)hk_rng_between(rng, 1, 60),
                                         .ramp_ms = hk_rng_upto(rng, 1) ? hk_rng_between(rng, 100, 5000) : 0,
                                         .canary = (uint32_t)hk_rng_upto(rng, 3),
                                         .abort_ratio = (double)hk_rng_upto(rng, 10) / 10};
    if (!hk_model_redrive_start(w->model, &pace) || w->redriving)
        return;
    w->redriving = true;
    hk_world_at(w, w->now, EV_REDRIVE, 0, 0);
}

static void act(struct world *w, uint64_t which, uint64_t pick)
{
    const struct config *c = &w->c;
    switch (which) {
    case 0:
        (void)(c->desk_edits && hk_model_edit(w->model, pick));
        break;
    case 1:
        (void)(c->desk_renames && hk_model_requeue_anew(w->model, pick));
        break;
    case 2:
        (void)(c->desk_restores && hk_model_restore(w->model, pick));
        break;
    case 3:
        (void)(c->desk_bulk && hk_model_requeue_all(w->model));
        break;
    case 4:
        (void)(c->desk_twice && hk_model_requeue_twice(w->model, pick));
        break;
    case 5:
        if (c->desk_redrives)
            start_redrive(w);
        break;
    case 6:
        (void)hk_model_redrive_cancel(w->model, pick);
        break;
    default:
        (void)(c->desk_restores && hk_model_discard(w->model, pick));
        break;
    }
}

void hk_world_desk_step(struct world *w)
{
    struct hk_rng *rng = &w->desk_rng;
    if (w->healed)
        return;
    uint64_t pick = hk_rng_next(rng);
    static const uint64_t hurried[] = {0, 1, 3, 4, 1, 3, 4, 3};
    uint64_t which = hk_rng_upto(rng, 7);
    if (w->c.desk_hurry)
        which = hurried[which];
    if (!hk_world_store_full(w) && !hk_world_store_away(w))
        act(w, which, pick);
    int64_t gap_ms = w->c.desk_hurry && hk_rng_upto(rng, 1) ? HURRY_MS : w->c.desk_gap_ms;
    hk_world_at(w, w->now + hk_world_between(rng, 1, 2 * gap_ms), EV_DESK, 0, 0);
}

static bool somebody_is_up(const struct world *w)
{
    for (size_t i = 0; i < w->c.n_relays; i++)
        if (w->relays[i].engine && !w->relays[i].stopped)
            return true;
    return false;
}

void hk_world_redrive_step(struct world *w)
{
    int64_t wait_ms = ASK_MS;
    if (w->healed && w->now - w->healed_at > PATIENCE_MS)
        for (uint64_t i = 0; i < w->c.n_messages; i++)
            (void)hk_model_redrive_cancel(w->model, i);
    if (somebody_is_up(w) && !hk_world_store_full(w) && !hk_world_store_away(w)) {
        int64_t wake_ms = hk_model_redrive_step(w->model);
        if (wake_ms == INT64_MAX) {
            w->redriving = false;
            return;
        }
        int64_t until_ms = wake_ms - hk_world_store_now(w);
        wait_ms = until_ms < 1 ? 1 : until_ms < ASK_MS ? until_ms : ASK_MS;
    }
    hk_world_at(w, w->now + wait_ms, EV_REDRIVE, 0, 0);
}
