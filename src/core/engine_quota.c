/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that several relays of one store keep together. Each relay has its own limiter and breaker. Where lanes share a store
 * (hk_engine_options.shared), this alone would multiply the configured rate by the number of relays, and so the probes of a broken
 * destination. So before the engine chooses a message, its destination needs a token from the store: one of its rate, and, while its
 * breaker is half-open, one for a probe. The engine asks for tokens in small lots with the exchange, when there is work for them, and
 * throws away tokens that it does not use at once: relays that come and go never save up.
 *
 * Every store records a breaker that opens or closes: people want to see it, and a relay that is restarted begins where the last
 * one ended. */
#include <assert.h>

#include "base/mem.h"
#include "core/engine_impl.h"

enum {
    TOKENS_LAST_MS = 500,
    LOT_MS = 100 /* so much of the rate is asked for at a time */
};

static bool meter_ready(struct hk_meter *m, int64_t now_ms)
{
    if (m->tokens && now_ms < m->until_ms)
        return true;
    m->tokens = 0;
    m->asks = true;
    return false;
}

static bool is_probing(const struct hk_engine *e, const struct hk_dest *d, int64_t now_ms)
{
    return e->options.shared && d->breaker && hk_breaker_state(d->breaker, now_ms) == HK_BREAKER_HALF_OPEN;
}

static bool is_rated(const struct hk_engine *e, const struct hk_dest *d)
{
    return e->options.shared && d->conf.limiter.rate_per_s > 0;
}

bool hk_quota_ready(const struct hk_engine *e, struct hk_dest *d, int64_t now_ms)
{
    if (is_probing(e, d, now_ms) && !meter_ready(&d->probe, now_ms))
        return false;
    return !is_rated(e, d) || meter_ready(&d->rate, now_ms);
}

bool hk_quota_waits(const struct hk_engine *e, const struct hk_dest *d, int64_t now_ms)
{
    return (d->probe.asks && is_probing(e, d, now_ms)) || d->rate.asks;
}

static void meter_take(struct hk_meter *m)
{
    assert(m->tokens); /* hk_quota_ready has said so */
    m->tokens--;
}

void hk_quota_take(const struct hk_engine *e, struct hk_dest *d, int64_t now_ms)
{
    if (is_probing(e, d, now_ms))
        meter_take(&d->probe);
    if (is_rated(e, d))
        meter_take(&d->rate);
}

/* ---- asking ---- */

static int64_t meter_at(const struct hk_meter *m)
{
    return m->asks ? m->ask_at_ms : INT64_MAX;
}

int64_t hk_quota_at(const struct hk_engine *e)
{
    int64_t at = INT64_MAX;
    if (e->drain.on && !e->used_slots)
        return at; /* what is left goes with the lane */
    for (size_t k = 0; e->options.shared && k < e->n_awake; k++) {
        const struct hk_dest *d = &e->dests[e->awake[k]];
        at = hk_ms_earlier(at, hk_seats_at(d));
        if (e->drain.on)
            continue;
        int64_t rate = meter_at(&d->rate), probe = meter_at(&d->probe);
        at = rate < at ? rate : at;
        at = probe < at ? probe : at;
        if (d->tell_circuit)
            at = INT64_MIN;
    }
    return at;
}

static void ask(struct hk_engine *e, size_t dest, bool probe, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    struct hk_meter *m = probe ? &d->probe : &d->rate;
    if (!m->asks || now_ms < m->ask_at_ms)
        return;
    const struct hk_engine_dest *conf = &d->conf;
    struct hk_quota q = {.destination = d->name, .probe = probe, .want = 1};
    if (probe) {
        q.rate_per_s = 1000.0 / (double)conf->breaker->open_ms;
        q.burst = conf->breaker->successes;
        q.want = conf->breaker->successes;
    } else {
        /* A token is used a moment after it was drawn: as much room is left as a lot takes, so that the destination's own
         * clock sees no more than rate and burst either. */
        double late = conf->limiter.rate_per_s * LOT_MS / 1000;
        q.rate_per_s = conf->limiter.rate_per_s;
        q.burst = conf->limiter.burst - late > 1 ? conf->limiter.burst - late : 1;
        uint32_t room = d->cap - d->in_flight;
        assert(room >= 1 && room <= d->cap); /* there was when it asked, and nothing is taken meanwhile */
        q.want = late + 1 < room ? (uint32_t)late + 1 : room;
    }
    e->exchange.quota_dests[e->exchange.n_quotas] = dest;
    e->exchange.quotas[e->exchange.n_quotas++] = q;
}

static void tell(struct hk_engine *e, size_t dest)
{
    struct hk_dest *d = &e->dests[dest];
    if (!d->tell_circuit)
        return;
    /* In the store's time of now: it may have been set back since the breaker opened. */
    int64_t until_ms = d->circuit == HK_BREAKER_OPEN ? hk_engine_store_now(e, d->circuit_open_ms) : 0;
    e->exchange.circuits[e->exchange.n_circuits++] =
        (struct hk_circuit){.destination = d->name, .open_until_ms = until_ms};
    d->tell_circuit = false;
    d->circuit_seen_ms = until_ms; /* what we said ourselves is no news */
}

/* For all that are awake. Nobody reads the lists of the last exchange any more. */
static bool make_room(struct hk_engine *e)
{
    struct hk_engine_exchange *x = &e->exchange;
    if (e->n_awake <= x->room)
        return true;
    size_t room = e->n_awake * 2;
    struct hk_quota *quotas = hk_mem_zalloc(2 * room, sizeof *quotas);
    size_t *dests = hk_mem_zalloc(2 * room, sizeof *dests);
    struct hk_circuit *circuits = hk_mem_zalloc(room, sizeof *circuits);
    struct hk_seat_ask *seats = hk_mem_zalloc(room, sizeof *seats);
    size_t *seat_dests = hk_mem_zalloc(room, sizeof *seat_dests);
    bool ok = quotas && dests && circuits && seats && seat_dests;
    hk_mem_free(ok ? x->quotas : quotas);
    hk_mem_free(ok ? x->quota_dests : dests);
    hk_mem_free(ok ? x->circuits : circuits);
    hk_mem_free(ok ? x->seats : seats);
    hk_mem_free(ok ? x->seat_dests : seat_dests);
    if (!ok)
        return false;
    x->quotas = quotas;
    x->quota_dests = dests;
    x->circuits = circuits;
    x->seats = seats;
    x->seat_dests = seat_dests;
    x->room = room;
    return true;
}

void hk_quota_fill(struct hk_engine *e, int64_t now_ms)
{
    e->exchange.n_quotas = e->exchange.n_circuits = e->exchange.n_seats = 0;
    if (!make_room(e))
        return; /* out of memory: the next exchange tries again */
    for (size_t k = 0; k < e->n_awake; k++) {
        ask(e, e->awake[k], false, now_ms);
        ask(e, e->awake[k], true, now_ms);
        tell(e, e->awake[k]);
        hk_seats_ask(e, e->awake[k], now_ms);
    }
}

void hk_quota_granted(struct hk_engine *e, const struct hk_grant *grants, int64_t now_ms)
{
    for (size_t i = 0; i < e->exchange.n_quotas; i++) {
        struct hk_dest *d = &e->dests[e->exchange.quota_dests[i]];
        if (e->exchange.quotas[i].probe && !d->conf.breaker)
            continue; /* not any more */
        struct hk_meter *m = e->exchange.quotas[i].probe ? &d->probe : &d->rate;
        int64_t ready_ms = grants[i].ready_ms - e->clock.hi_ms;
        m->tokens = grants[i].n;
        m->until_ms =
            now_ms + (int64_t)(e->exchange.quotas[i].probe ? d->conf.breaker->open_ms : TOKENS_LAST_MS);
        m->asks = !m->tokens;
        m->ask_at_ms = ready_ms > now_ms ? ready_ms : now_ms + 1;
    }
    e->exchange.n_quotas = e->exchange.n_circuits = 0;
}

/* The exchange with these questions and reports did not happen: they are due again. */
void hk_quota_undone(struct hk_engine *e)
{
    for (size_t i = 0; i < e->exchange.n_circuits; i++)
        for (size_t k = 0; k < e->n_awake; k++)
            if (e->dests[e->awake[k]].name == e->exchange.circuits[i].destination)
                e->dests[e->awake[k]].tell_circuit = true;
    e->exchange.n_quotas = e->exchange.n_circuits = 0;
}

/* ---- circuits: one relay's breaker is everybody's ---- */

void hk_circuit_note(struct hk_dest *d, int64_t now_ms)
{
    enum hk_breaker_state state = hk_breaker_state(d->breaker, now_ms);
    bool open = state == HK_BREAKER_OPEN;
    int64_t until_ms = open ? hk_breaker_ready_at_ms(d->breaker, now_ms) : 0;
    if (state == HK_BREAKER_HALF_OPEN || (state == d->circuit && until_ms == d->circuit_open_ms))
        return;
    d->circuit = state;
    d->circuit_open_ms = until_ms;
    d->tell_circuit = true;
}

void hk_circuit_resumed(struct hk_dest *d, int64_t now_ms)
{
    if (!d->breaker)
        return;
    hk_breaker_reset(d->breaker, now_ms);
    d->circuit = HK_BREAKER_CLOSED;
    d->circuit_open_ms = d->circuit_seen_ms = 0;
    d->tell_circuit = false;
}

void hk_circuit_told(struct hk_engine *e, struct hk_dest *d, int64_t open_until_ms, int64_t now_ms)
{
    if (!d->conf.breaker || d->tell_circuit || open_until_ms == d->circuit_seen_ms ||
        !hk_dest_make_guards(d, now_ms))
        return;
    d->circuit_seen_ms = open_until_ms;
    if (open_until_ms == 0)
        hk_breaker_reset(d->breaker, now_ms);         /* another's probes went well, or a person resumed it */
    else if (open_until_ms - e->clock.lo_ms > now_ms) /* rather late than early: clocks are known vaguely */
        hk_breaker_trip(d->breaker, open_until_ms - e->clock.lo_ms, now_ms);
    d->circuit = hk_breaker_state(d->breaker, now_ms);
    d->circuit_open_ms = d->circuit == HK_BREAKER_OPEN ? hk_breaker_ready_at_ms(d->breaker, now_ms) : 0;
}
