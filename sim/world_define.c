/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that are kept in the store: an operator makes, changes and removes them while relays run, and each relay gets to know of it
 * when a poll or an exchange says that the definitions have another version. It reads them, and some time later it goes by what it has
 * read; one that it cannot use (a secret that is not there) it holds for a while. */
#include "base/str.h"
#include "world_impl.h"

enum {
    LOOK_AGAIN_MS = 300 /* at what could not be used */
};

/* From a stream of its own: worlds without these are what they were. Routes name only what the configuration has. */
void hk_world_define_draw(struct world *w, uint64_t seed)
{
    struct config *c = &w->c;
    size_t first = 1;
    c->first_kept = c->n_dests;
    hk_rng_seed(&w->define_rng, seed, RNG_DEFINE);
    for (size_t i = 0; i < c->n_routes; i++)
        for (size_t k = 0; k < w->routes[i].n_dests; k++)
            first = w->routes[i].dests[k] >= first ? w->routes[i].dests[k] + 1 : first;
    if (hk_rng_upto(&w->define_rng, 4) != 0 || first >= c->n_dests)
        return;
    c->first_kept = first;
    c->define_gap_ms = hk_world_between(&w->define_rng, 30, hk_rng_upto(&w->define_rng, 1) ? 400 : 4000);
    c->p_held = hk_rng_upto(&w->define_rng, 1) ? (uint32_t)hk_rng_between(&w->define_rng, 1000, 20000) : 0;
    c->forget_at = c->keep_at = c->away_to = 0;
    w->options.n_dests = first;
    for (size_t i = 0; i < c->n_dests; i++) {
        w->dests[i].turn_ms = 0; /* nobody's places are known */
        w->defined[i] = (struct defined){.there = i < first || hk_rng_upto(&w->define_rng, 1),
                                         .conf = w->engine_dests[i],
                                         .breaker = w->dests[i].breaker};
    }
}

/* Within what the checker was told: no more at once than at first, and a breaker that opens for as long. */
static void vary(struct world *w, size_t dest)
{
    struct defined *d = &w->defined[dest];
    d->conf.limiter.concurrency = (uint32_t)hk_rng_between(&w->define_rng, 1, hk_world_cap(w, dest));
    d->breaker.failures = (uint32_t)hk_rng_between(&w->define_rng, 2, 6);
}

void hk_world_define_step(struct world *w)
{
    struct hk_rng *rng = &w->define_rng;
    if (w->healed)
        return;
    size_t dest = (size_t)hk_rng_between(rng, w->c.first_kept, w->c.n_dests - 1);
    struct defined *d = &w->defined[dest];
    const char *kind = !d->there ? "made" : hk_rng_upto(rng, 1) ? "removed" : "changed";
    d->there = !d->there || kind[0] == 'c';
    d->version++;
    if (d->there)
        vary(w, dest);
    hk_model_define(w->model, w->dests[dest].name, kind);
    w->result->defines++;
    hk_world_at(w, w->now + hk_world_between(rng, 1, 2 * w->c.define_gap_ms), EV_DEFINE, 0, 0);
}

/* ---- a relay ---- */

static void log_learnt(struct world *w, const struct relay *r, size_t dest, const char *kind)
{
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_LEARN,
                                           .dest = hk_str_of(w->dests[dest].name),
                                           .relay = hk_str_of(r->name),
                                           .kind = hk_str_of(kind)});
}

static void go_by(struct world *w, struct relay *r, size_t dest, const struct defined *read)
{
    struct learnt *l = &r->learnt[dest];
    struct hk_engine_dest conf = read->conf;
    struct hk_err err;
    size_t place = hk_engine_find_dest(r->engine, w->dests[dest].name);
    hk_world_room_tell(w, (size_t)(r - w->relays), dest); /* it gets another sink */
    if (!read->there) {
        if (l->there || l->version < 0)
            log_learnt(w, r, dest, "gone");
        if (l->there && !hk_engine_remove_dest(r->engine, w->now + r->clock_ms, place))
            hk_world_fail(w, "%s: cannot remove %s", r->name, w->dests[dest].name);
        *l = (struct learnt){.version = read->version};
        return;
    }
    conf.held = !w->healed && hk_world_chance(&w->define_rng, w->c.p_held);
    conf.breaker = conf.breaker ? &read->breaker : NULL;
    log_learnt(w, r, dest, conf.held ? "held" : "used");
    if (hk_engine_put_dest(r->engine, w->now + r->clock_ms, &conf, &place, &err) != HK_OK)
        hk_world_fail(w, "%s: %s", r->name, err.message);
    r->dest_of[place] = dest;
    *l = (struct learnt){.there = true, .version = read->version, .held = conf.held};
}

/* What was read is now gone by. */
static void learn(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    bool held = false;
    for (size_t i = w->c.first_kept; i < w->c.n_dests; i++) {
        const struct learnt *l = &r->learnt[i];
        if (l->there != r->read[i].there || l->version != r->read[i].version || l->held)
            go_by(w, r, i, &r->read[i]);
        held |= r->learnt[i].held;
    }
    hk_engine_know_dests(r->engine, r->read_version);
    if (held)
        hk_world_at(w, w->now + LOOK_AGAIN_MS, EV_LEARN, relay, r->incarnation);
}

void hk_world_define_begin(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    for (size_t i = 0; i < w->c.n_dests; i++) {
        r->dest_of[i] = i;
        r->learnt[i] = (struct learnt){.version = -1};
        r->read[i] = w->defined[i];
    }
    r->reading = false;
    r->read_version = hk_model_definitions(w->model);
    if (w->c.define_gap_ms)
        learn(w, relay);
}

void hk_world_define_told(struct world *w, size_t relay, int64_t version)
{
    struct relay *r = &w->relays[relay];
    if (!w->c.define_gap_ms || r->reading || version == r->read_version)
        return;
    r->reading = true;
    hk_world_at(w, w->now + hk_world_between(&w->define_rng, 0, 2 * (int64_t)w->c.store_ms), EV_LEARN, relay,
                r->incarnation);
}

/* First they are read; some time later the relay goes by them. */
void hk_world_define_learn(struct world *w, const struct event *ev)
{
    struct relay *r = &w->relays[ev->who];
    if (!r->engine || r->incarnation != ev->number || r->draining)
        return;
    if (r->reading) {
        for (size_t i = 0; i < w->c.n_dests; i++)
            r->read[i] = w->defined[i];
        r->read_version = hk_model_definitions(w->model);
        r->reading = false;
        hk_world_at(w, w->now + hk_world_between(&w->define_rng, 0, (int64_t)w->c.store_ms), EV_LEARN,
                    ev->who, ev->number);
        return;
    }
    learn(w, ev->who);
    hk_world_at(w, w->now, EV_WAKE, ev->who, ++r->wake);
}
