/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed makes of the world. Swarm: each seed draws which faults exist at all, and then how often, so that rare
 * combinations are not drowned by a little of everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world_impl.h"

static uint32_t maybe(struct hk_rng *rng, uint32_t in_100, uint32_t lo, uint32_t hi)
{
    return hk_rng_upto(rng, 99) < in_100 ? (uint32_t)hk_rng_between(rng, lo, hi) : 0;
}

static void draw_sizes(struct config *c, struct hk_rng *rng)
{
    c->n_relays =
        hk_rng_upto(rng, 2) ? (size_t)hk_rng_between(rng, 1, 3) : (size_t)hk_rng_between(rng, 1, MAX_RELAYS);
    c->n_dests =
        hk_rng_upto(rng, 3) ? (size_t)hk_rng_between(rng, 1, 4) : (size_t)hk_rng_between(rng, 1, MAX_DESTS);
    c->n_apps = (size_t)hk_rng_between(rng, 1, MAX_APPS);
    c->n_policies = (size_t)hk_rng_between(rng, 1, MAX_POLICIES);
    c->n_messages = (size_t)hk_rng_between(rng, 5, hk_rng_upto(rng, 3) ? 60 : 150);
    c->fault_ms = hk_world_between(rng, 2000, 60000);
    c->app_gap_ms = hk_world_between(rng, 1, c->fault_ms / (int64_t)c->n_messages);
    c->keys = maybe(rng, 60, 1, 6);
    c->max_payload = 1000;
    c->schedule_ms = 20000;
}

static void draw_messages(struct config *c, struct hk_rng *rng)
{
    c->p_key = c->keys ? (uint32_t)hk_rng_between(rng, 10000, 65536) : 0;
    c->p_routed = maybe(rng, 40, 1000, 40000);
    c->n_routes = c->p_routed ? (size_t)hk_rng_between(rng, 1, 3) : 0;
    c->p_unknown = maybe(rng, 20, 100, 5000);
    c->p_scheduled = maybe(rng, 30, 500, 20000);
    c->p_expiring = maybe(rng, 25, 500, 20000);
    c->p_too_big = maybe(rng, 15, 100, 5000);
    c->p_malformed = maybe(rng, 15, 100, 5000);
    c->p_undecodable = maybe(rng, 15, 100, 5000);
    c->p_poison = maybe(rng, 12, 100, 2500);
    c->p_policy = maybe(rng, 20, 500, 20000);
    c->p_override = maybe(rng, 20, 500, 20000);
    c->p_rollback = maybe(rng, 40, 1000, 25000);
    c->p_hold = maybe(rng, 50, 1000, 40000);
    c->hold_ms = hk_world_between(rng, 10, hk_rng_upto(rng, 1) ? 1000 : 20000);
}

static void draw_faults(struct config *c, struct hk_rng *rng)
{
    c->ids_at_insert = hk_rng_upto(rng, 1) == 1;
    c->hide_claimed = hk_rng_upto(rng, 1) == 1;
    c->store_ms = (uint32_t)hk_rng_between(rng, 0, hk_rng_upto(rng, 1) ? 3 : 40);
    c->p_store_fail = maybe(rng, 40, 50, 10000);
    c->p_store_slow = maybe(rng, 40, 50, 5000);
    c->p_store_hang = maybe(rng, 25, 20, 400);
    c->p_crash = maybe(rng, 45, 20, 700);
    c->p_stop = maybe(rng, 35, 20, 400);
    c->p_drain = maybe(rng, 25, 5, 150);
    c->clock_jumps = hk_rng_upto(rng, 4) == 0;
    c->operator_gap_ms = hk_rng_upto(rng, 1) ? hk_world_between(rng, 50, 5000) : 0;
    c->op_pauses = hk_rng_upto(rng, 1);
    c->op_cancels = hk_rng_upto(rng, 1);
    c->op_discards = hk_rng_upto(rng, 1);
    c->op_requeues = hk_rng_upto(rng, 2) == 0;
    c->heal_discards = hk_rng_upto(rng, 3) != 0;
    c->late_silent = hk_rng_upto(rng, 3) == 0;
    c->late_vague = hk_rng_upto(rng, 1) == 1;
    c->locks = hk_rng_upto(rng, 1) == 1;
    c->first_id = hk_rng_upto(rng, 3) ? 1 : -20;
    c->p_shards = maybe(rng, 25, 100, 20000);
}

/* ---- policies ---- */

static void must(enum hk_code rc, const struct hk_err *err)
{
    if (rc == HK_OK)
        return;
    (void)fprintf(stderr, "the world's own settings are refused: %s\n", err->message);
    abort();
}

static struct hk_policy *draw_policy(struct hk_rng *rng, size_t i)
{
    struct hk_policy *policy = NULL;
    struct hk_err err;
    char name[HK_MODEL_TEXT];
    must(hk_policy_new("standard", &policy, &err), &err);
    (void)snprintf(name, sizeof name, "p%zu", i);
    must(hk_policy_set_name(policy, name, &err), &err);
    struct hk_limits limits = *hk_policy_limits(policy);
    limits.max_attempts = (uint32_t)hk_rng_between(rng, 1, hk_rng_upto(rng, 1) ? 4 : 15);
    limits.max_elapsed_ms = hk_rng_upto(rng, 2) ? 3600000 : hk_rng_between(rng, 1000, 60000);
    limits.timeout_ms = hk_rng_between(rng, 50, 5000);
    limits.hint_cap_ms = hk_rng_between(rng, 1000, 10000);
    struct hk_backoff backoff = *hk_policy_backoff(policy);
    backoff.base_ms = hk_rng_between(rng, 10, 1000);
    backoff.cap_ms = hk_rng_between(rng, 1000, 5000);
    struct hk_jitter jitter = *hk_policy_jitter(policy);
    must(hk_policy_set_limits(policy, &limits, &err), &err);
    must(hk_policy_set_backoff(policy, &backoff, &jitter, &err), &err);
    struct hk_class_rule unknown = *hk_policy_class(policy, HK_CLASS_UNKNOWN);
    unknown.max_attempts = 0; /* the total alone, so that the checker can count */
    must(hk_policy_set_class(policy, HK_CLASS_UNKNOWN, &unknown, &err), &err);
    return policy;
}

static const struct hk_policy *policy_by_name(void *arg, const char *name)
{
    struct world *w = arg;
    for (size_t i = 0; i < w->c.n_policies; i++)
        if (strcmp(hk_policy_name(w->policies[i]), name) == 0)
            return w->policies[i];
    return NULL;
}

/* ---- destinations ---- */

static void draw_script(struct dest *d, const struct config *c, struct hk_rng *rng)
{
    static const uint32_t at_most[N_OUTCOMES] = {
        [OUT_5XX] = 60,        [OUT_503_HINT] = 20, [OUT_429] = 30,  [OUT_4XX] = 6,
        [OUT_401] = 10,        [OUT_410] = 2,       [OUT_3XX] = 8,   [OUT_REFUSED] = 40,
        [OUT_LOST_REPLY] = 30, [OUT_LATE] = 20,     [OUT_HANG] = 20,
    };
    d->weights[OUT_OK] = d->total = 100;
    for (int i = OUT_OK + 1; i < N_OUTCOMES; i++) {
        d->weights[i] = maybe(rng, 30, 1, at_most[i]);
        d->total += d->weights[i];
    }
    d->latency_ms = hk_world_between(rng, 0, hk_rng_upto(rng, 2) ? 20 : 400);
    if (hk_rng_upto(rng, 4) == 0) {
        d->outage_from = hk_world_between(rng, 0, c->fault_ms);
        d->outage_to = d->outage_from + hk_world_between(rng, 500, 30000);
    }
}

static void draw_breaker(struct dest *d, struct hk_engine_dest *conf, struct hk_rng *rng)
{
    hk_breaker_options_init(&d->breaker);
    d->breaker.failures = (uint32_t)hk_rng_between(rng, 2, 6);
    d->breaker.open_ms = hk_rng_between(rng, 100, 3000);
    d->breaker.open_cap_ms = 10000;
    if (hk_rng_upto(rng, 1))
        conf->breaker = &d->breaker;
}

void hk_world_dest_draw(struct world *w, size_t i, uint64_t seed)
{
    struct hk_rng *rng = &w->config_rng;
    struct dest *d = &w->dests[i];
    struct hk_engine_dest *conf = &w->engine_dests[i];
    (void)snprintf(d->name, sizeof d->name, "d%zu", i);
    hk_rng_seed(&d->rng, seed, RNG_SINKS + i);
    draw_script(d, &w->c, rng);
    *conf = (struct hk_engine_dest){.name = d->name,
                                    .policy = w->policies[hk_rng_upto(rng, w->c.n_policies - 1)]};
    hk_limiter_options_init(&conf->limiter);
    conf->limiter.concurrency = maybe(rng, 60, 1, 6);
    if (hk_rng_upto(rng, 4) == 0) {
        conf->limiter.rate_per_s = (double)hk_rng_between(rng, 2, 100);
        conf->limiter.burst = (double)hk_rng_between(rng, 1, 10);
        conf->limiter.ramp_ms = hk_rng_upto(rng, 1) ? 500 : 0;
    }
    conf->ordered = w->c.keys && hk_rng_upto(rng, 3) != 0;
    conf->skip_dead = hk_rng_upto(rng, 1);
    draw_breaker(d, conf, rng);
}

/* "e0", "e1" … each to one, two or three destinations. "e9" matches none. */
static void draw_routes(struct world *w)
{
    static const char *const types[] = {"e0", "e1*", "*2"};
    for (size_t i = 0; i < w->c.n_routes; i++) {
        size_t most = w->c.n_dests < MAX_ROUTE ? w->c.n_dests : MAX_ROUTE;
        size_t n = (size_t)hk_rng_between(&w->config_rng, 1, most);
        size_t first = (size_t)hk_rng_upto(&w->config_rng, w->c.n_dests - 1);
        for (size_t k = 0; k < n; k++)
            w->route_dests[i][k] = (first + k) % w->c.n_dests;
        w->routes[i] =
            (struct hk_engine_route){.event_type = types[i], .dests = w->route_dests[i], .n_dests = n};
    }
}

static void draw_engine(struct world *w, uint64_t seed)
{
    struct hk_rng *rng = &w->config_rng;
    w->options = (struct hk_engine_options){
        .dests = w->engine_dests,
        .n_dests = w->c.n_dests,
        .routes = w->routes,
        .n_routes = w->c.n_routes,
        .policy_by_name = policy_by_name,
        .policy_arg = w,
        .concurrency = (uint32_t)hk_rng_between(rng, 1, hk_rng_upto(rng, 1) ? 4 : 32),
        .batch = (uint32_t)hk_rng_between(rng, 1, hk_rng_upto(rng, 1) ? 8 : 100),
        .batch_bytes = hk_rng_between(rng, 100, 100000),
        .max_payload_bytes = w->c.max_payload,
        .lease_ms = hk_rng_between(rng, 500, hk_rng_upto(rng, 1) ? 3000 : 30000),
        .poll_min_ms = hk_rng_between(rng, 1, 20),
        .poll_max_ms = hk_rng_between(rng, 20, 1000),
        .linger_ms = hk_rng_between(rng, 0, 20),
        .seed = seed,
        .ahead_ms = maybe(rng, 50, 20, 1000),
    };
}

/* By a stream of its own. */
static void draw_ceiling(struct world *w, uint64_t seed)
{
    struct hk_rng rng;
    hk_rng_seed(&rng, seed, RNG_CEILING);
    w->options.max_attempts_ceiling = maybe(&rng, 70, 1, 6);
}

void hk_world_config_draw(struct world *w, uint64_t seed)
{
    hk_rng_seed(&w->config_rng, seed, RNG_CONFIG);
    hk_rng_seed(&w->app_rng, seed, RNG_APPS);
    hk_rng_seed(&w->store_rng, seed, RNG_STORE);
    hk_rng_seed(&w->fault_rng, seed, RNG_FAULTS);
    hk_rng_seed(&w->operator_rng, seed, RNG_OPERATOR);
    draw_sizes(&w->c, &w->config_rng);
    draw_messages(&w->c, &w->config_rng);
    draw_faults(&w->c, &w->config_rng);
    for (size_t i = 0; i < w->c.n_policies; i++)
        w->policies[i] = draw_policy(&w->config_rng, i);
    for (size_t i = 0; i < w->c.n_dests; i++)
        hk_world_dest_draw(w, i, seed);
    draw_routes(w);
    draw_engine(w, seed);
    draw_ceiling(w, seed);
    hk_world_store_draw(w, seed);
    hk_rng_seed(&w->stuck_rng, seed, RNG_STUCK); /* worlds without these are what they were */
    w->c.p_stuck = maybe(&w->stuck_rng, 12, 500, 12000);
    hk_world_desk_draw(w, seed);
    hk_world_crowd_draw(w, seed);
    hk_world_seats_draw(w, seed);
    hk_world_define_draw(w, seed);
    hk_world_room_draw(w, seed);
    hk_rng_seed(&w->keyless_rng, seed, RNG_KEYLESS); /* of its own: worlds with all keys are what they were */
    uint32_t p_keyless = maybe(&w->keyless_rng, 20, 200, 20000);
    w->c.p_keyless = hk_world_judges_turns(w) ? 0 : p_keyless;
    hk_world_force_draw(w, seed);
    hk_world_timeout_draw(w, seed);
    hk_world_cut(w);
    w->messages = calloc(w->c.n_messages, sizeof *w->messages);
    if (!w->messages)
        abort();
    struct hk_model_options options = {.ids_at_insert = w->c.ids_at_insert,
                                       .hide_claimed = w->c.hide_claimed,
                                       .late_silent = w->c.late_silent,
                                       .late_vague = w->c.late_vague,
                                       .many = w->c.many,
                                       .first_id = w->c.first_id,
                                       .log = w->log,
                                       .now_ms = hk_world_store_now,
                                       .clock_ms = hk_world_clock,
                                       .now_arg = w};
    w->model = hk_model_new(&options);
    for (size_t i = 0; i < w->c.n_relays; i++)
        (void)snprintf(w->relays[i].name, sizeof w->relays[i].name, "relay%zu", i);
}

void hk_world_config_fini(struct world *w)
{
    for (size_t i = 0; i < w->c.n_policies; i++)
        hk_policy_free(w->policies[i]);
}
