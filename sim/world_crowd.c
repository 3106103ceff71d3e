/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds that are made for one kind of trouble: few seeds meet it by chance, since much has to come together. Of each kind
 * there is one in twelve; what else befalls them is drawn as for all. */
#include <stdio.h>
#include <stdlib.h>

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

/* Nothing fails, so that whoever waits, waits for a place. */
static void calm(struct world *w, struct hk_rng *rng)
{
    struct config *c = &w->c;
    c->n_relays = 1;
    c->n_messages = 150;
    c->fault_ms = 60000;
    c->app_gap_ms = hk_world_between(rng, 10, 150);
    c->p_routed = c->p_unknown = c->p_scheduled = c->p_expiring = c->p_too_big = c->p_malformed = 0;
    c->p_undecodable = c->p_poison = c->p_policy = c->p_override = c->p_hold = c->p_shards = 0;
    c->p_store_fail = c->p_store_slow = c->p_store_hang = c->p_crash = c->p_stop = c->p_drain = 0;
    c->p_lost_reply = c->p_deadlock = 0;
    c->clock_jumps = c->late_silent = false;
    c->operator_gap_ms = c->desk_gap_ms = 0;
    c->full_from = c->full_to = c->keep_at = c->forget_at = c->away_to = 0;
    w->options.batch_bytes = 100000;
    w->options.batch += 20; /* what others have to send is walked over in few steps */
    for (size_t i = 0; i < c->n_policies; i++) {
        struct hk_limits limits = *hk_policy_limits(w->policies[i]);
        limits.timeout_ms = 60000;
        limits.max_elapsed_ms = 3600000;
        if (hk_policy_set_limits(w->policies[i], &limits, NULL) != HK_OK)
            abort();
    }
}

static void plain_dest(struct world *w, size_t i, int64_t least_ms, int64_t most_ms)
{
    struct dest *d = &w->dests[i];
    struct hk_engine_dest *conf = &w->engine_dests[i];
    *d = (struct dest){
        .rng = d->rng, .weights = {[OUT_OK] = 1}, .total = 1, .least_ms = least_ms, .latency_ms = most_ms};
    (void)snprintf(d->name, sizeof d->name, "d%zu", i);
    hk_limiter_options_init(&conf->limiter);
    conf->limiter.concurrency = 0;
    conf->breaker = NULL;
}

/* Messages keep coming, and every other destination has keys, of which the next message could go at once. */
static void take_turns(struct world *w, struct hk_rng *rng)
{
    w->c.app_gap_ms = hk_world_between(rng, 10, 1500);
    w->c.keys = (uint32_t)hk_rng_between(rng, 1, 2);
    w->c.p_key = 60000;
    for (size_t i = 0; i < w->c.n_dests; i++)
        w->engine_dests[i].ordered = i % 2 == 0;
}

/* So many that the equal shares of all slow destinations fill every place but those that are kept for quick ones: who is not
 * taken for quick then finds none. */
static uint32_t places_for(uint32_t least, uint32_t slow)
{
    uint32_t places = least;
    while ((places - places / 8) % slow)
        places++;
    return places;
}

/* Destinations that take many seconds to answer, as many as would fill every place. Beside them a quick one, which must
 * hardly notice; or nobody, but fewer places than destinations, and each must have its turn. */
static void slow_neighbours(struct world *w, struct hk_rng *rng, uint64_t seed)
{
    struct config *c = &w->c;
    bool quick = hk_rng_upto(rng, 1) == 1;
    size_t drawn = c->n_dests;
    calm(w, rng);
    w->options.concurrency = (uint32_t)(quick ? hk_rng_between(rng, 16, 32) : hk_rng_between(rng, 16, 18));
    size_t places = w->options.concurrency, least = quick ? 4 : places + 1,
           most = quick ? places / 2 : 2 * (places - 2);
    c->n_dests =
        (size_t)hk_rng_between(rng, least, most) + quick; /* of 16 or 18 places two are kept for the quick */
    for (size_t i = drawn; i < c->n_dests; i++)
        hk_world_dest_draw(w, i, seed);
    w->options.n_dests = c->n_dests;
    if (quick) {
        w->options.concurrency = places_for(w->options.concurrency, (uint32_t)c->n_dests - 1);
        if (hk_rng_upto(rng, 1)) /* messages keep coming when the first have been answered */
            c->app_gap_ms = hk_world_between(rng, 100, 400);
    }
    /* to hear of a message, to walk over those of others, and to claim it */
    int64_t store_ms = 2 * (int64_t)c->store_ms + (int64_t)w->options.linger_ms + 1;
    int64_t look_ms = (int64_t)w->options.poll_max_ms + 30 * store_ms;
    for (size_t i = 0; i < c->n_dests; i++) {
        plain_dest(w, i, 4000 + look_ms, 20000);
        w->dests[i].turn_ms = quick ? 0 : 20000 + look_ms;
    }
    if (!quick) {
        take_turns(w, rng);
        c->n_flood = hk_rng_upto(rng, 1) ? places : 0;
        return;
    }
    plain_dest(w, 0, 0, 50);
    w->engine_dests[0].ordered = false;
    w->dests[0].turn_ms = look_ms;
    w->dests[0].unknown = true;
}

/* Leases that are nearly out when a slow store has answered, so that what was claimed is given back; among it retries that hold
 * their keys, of which there are few. */
static void leases_nearly_out(struct world *w, struct hk_rng *rng)
{
    struct config *c = &w->c;
    c->keys = (uint32_t)hk_rng_between(rng, 1, 2);
    c->p_key = 60000;
    c->p_scheduled = c->p_unknown = c->p_routed = 0;
    c->p_store_slow = 20000;
    c->p_stop = c->p_crash = 0;
    w->options.lease_ms = hk_rng_between(rng, 500, 900);
    for (size_t i = 0; i < c->n_dests; i++) {
        struct dest *d = &w->dests[i];
        w->engine_dests[i].ordered = true;
        d->total += 60 - d->weights[OUT_5XX];
        d->weights[OUT_5XX] = 60;
        d->latency_ms = hk_world_between(rng, 0, 50);
    }
}

/* Relays of many come and go, and destinations take their time: shards move with something of them in hand. */
static void shards_on_the_move(struct world *w, struct hk_rng *rng)
{
    struct config *c = &w->c;
    if (!c->many)
        return;
    c->n_relays = (size_t)hk_rng_between(rng, 3, MAX_RELAYS);
    c->p_drain = (uint32_t)hk_rng_between(rng, 100, 600);
    c->p_crash = 0;
    c->n_messages = 150;
    c->app_gap_ms = hk_world_between(rng, 5, 50);
    for (size_t i = 0; i < c->n_dests; i++)
        w->dests[i].latency_ms = hk_world_between(rng, 200, 3000);
}

/* Ahead by seconds or up to a day, or behind: by so little that no clock shows a time before 0, also when moments overlap. With
 * many lanes rows are due by the clock, and what was written in a wrong moment waits for that time: not for a day here. */
static int64_t wrong_by_ms(const struct config *c, struct hk_rng *rng)
{
    bool back = hk_rng_upto(rng, 2) == 0, much = hk_rng_upto(rng, 1) == 1;
    if (c->many || !much)
        return (back ? -1 : 1) * hk_world_between(rng, 1000, c->many ? 60000 : 20000);
    return back ? -hk_world_between(rng, 20000, 5 * 60000) : hk_world_between(rng, 10 * 60000, 24 * 3600000);
}

/* The host's clock is wrong for a moment, and right again; and messages name times of the next minutes. */
static void wrong_moments(struct world *w, struct hk_rng *rng)
{
    struct config *c = &w->c;
    c->clock_jumps = false;
    c->fault_ms = hk_world_between(rng, 6000, 20000);
    c->n_messages = 10 + (size_t)hk_rng_upto(rng, 30);
    c->app_gap_ms = c->fault_ms / (int64_t)c->n_messages;
    c->p_scheduled = 40000;
    c->p_expiring = 30000;
    c->schedule_ms = 10 * 60000;
    w->options.poll_max_ms += 500; /* there is little to do for minutes */
    c->n_wrong = (size_t)hk_rng_between(rng, 1, MAX_WRONG);
    for (size_t i = 0; i < c->n_wrong; i++)
        c->wrong[i] = (struct wrong_moment){.at_ms = hk_world_between(rng, 0, c->fault_ms - 5000),
                                            .for_ms = hk_world_between(rng, 100, 4000),
                                            .by_ms = wrong_by_ms(c, rng)};
}

/* Turns are reckoned for worlds in which nothing but places is scarce and nothing fails. A relay that has no key for a message, or
 * a sink that has no room, uses up its destination's turn for nothing. */
bool hk_world_judges_turns(const struct world *w)
{
    for (size_t i = 0; i < w->c.n_dests; i++)
        if (w->dests[i].turn_ms)
            return true;
    return false;
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
    case 3:
        slow_neighbours(w, &rng, seed);
        break;
    case 4:
        wrong_moments(w, &rng);
        hk_world_reset_draw(w, seed);
        break;
    case 5:
        leases_nearly_out(w, &rng);
        break;
    case 6:
        shards_on_the_move(w, &rng);
        break;
    default:
        break;
    }
    w->options.n_routes = w->c.n_routes;
}
