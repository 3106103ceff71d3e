/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds that are made for one kind of trouble: few seeds meet it by chance, since much has to come together. Of each kind
 * there is one in twelve; what else befalls them is drawn as for all. */
#include "world_impl.h"

enum {
    KINDS = 12 /* most of them are none */
};

/* Dead heads do not hold their key, somebody requeues one after the other, and the key goes on meanwhile. So a message may
 * come back before the relay has read who waits for the key: between two acts in quick succession it does not read anew. */
static void requeues_among_others(struct world *w, struct hk_rng *rng)
{
    struct config *c = &w->c;
    c->keys = 1;
    c->p_key = 60000;
    c->p_scheduled = c->p_unknown = c->p_routed = 0;
    c->n_messages = 60 + (size_t)hk_rng_upto(rng, 60);
    c->app_gap_ms = hk_world_between(rng, 5, 100);
    c->store_ms = (uint32_t)hk_rng_upto(rng, 3);
    c->desk_hurry = c->desk_renames = c->desk_bulk = c->desk_twice = true;
    c->desk_gap_ms = hk_world_between(rng, 100, 1000);
    for (size_t i = 0; i < c->n_dests; i++) {
        struct dest *d = &w->dests[i];
        w->engine_dests[i].ordered = w->engine_dests[i].skip_dead = true;
        d->total += 80 - d->weights[OUT_5XX] - d->weights[OUT_4XX];
        d->weights[OUT_5XX] = d->weights[OUT_4XX] = 40;
        d->latency_ms = hk_world_between(rng, 5, 100);
    }
}

/* Fan-outs that die before they are routed, are mended and requeued, and whose parts die again: they came from one letter. */
static void fan_outs_requeued(struct world *w, struct hk_rng *rng)
{
    struct config *c = &w->c;
    if (c->n_dests < 2)
        return;
    c->p_routed = 40000;
    c->p_malformed = c->p_too_big = 12000;
    c->desk_hurry = c->desk_edits = c->desk_bulk = true;
    c->desk_gap_ms = hk_world_between(rng, 100, 2000);
    c->n_routes = 1;
    w->routes[0] = (struct hk_engine_route){.event_type = "e0", .dests = w->route_dests[0], .n_dests = 2};
    w->route_dests[0][0] = 0;
    w->route_dests[0][1] = 1;
    for (size_t i = 0; i < 2; i++) {
        w->dests[i].total += 60 - w->dests[i].weights[OUT_4XX];
        w->dests[i].weights[OUT_4XX] = 60;
    }
}

/* A flood for destinations that are away, with few places and a breaker: whatever it lets pass is seen. */
static void broken_and_crowded(struct world *w, struct hk_rng *rng)
{
    struct config *c = &w->c;
    c->n_messages = 150;
    c->app_gap_ms = hk_world_between(rng, 1, 20);
    c->p_routed = c->p_key = 0;
    for (size_t i = 0; i < c->n_dests; i++) {
        struct dest *d = &w->dests[i];
        w->engine_dests[i].limiter.concurrency = 1 + (uint32_t)hk_rng_upto(rng, 1);
        w->engine_dests[i].limiter.rate_per_s = 0;
        w->engine_dests[i].breaker = &d->breaker;
        d->breaker.open_ms = hk_rng_between(rng, 1000, 5000);
        d->latency_ms = hk_world_between(rng, 0, 20);
        d->outage_from = 0;
        d->outage_to = c->fault_ms;
    }
}

void hk_world_crowd_draw(struct world *w, uint64_t seed)
{
    struct hk_rng rng;
    hk_rng_seed(&rng, seed, RNG_CROWD);
    switch (hk_rng_upto(&rng, KINDS - 1)) {
    case 0:
        requeues_among_others(w, &rng);
        break;
    case 1:
        fan_outs_requeued(w, &rng);
        break;
    case 2:
        broken_and_crowded(w, &rng);
        break;
    default:
        break;
    }
    w->options.n_routes = w->c.n_routes;
}
