/* SPDX-License-Identifier: Apache-2.0 */
/* What the checker could not know from outside: how long a healed world may take, and when a relay got to know of a pause. */
#include "base/str.h"
#include "core/engine_impl.h"
#include "world_impl.h"

/* Lease and poll; breakers and the store's back-off; and as long as all messages take, one after the other, at the lowest rate. */
int64_t hk_world_bound_ms(const struct world *w)
{
    int64_t each_ms = 10 * (int64_t)w->c.store_ms + 50;
    for (size_t i = 0; i < w->c.n_dests; i++) {
        double rate = w->engine_dests[i].limiter.rate_per_s;
        if (rate > 0 && (int64_t)(2000 / rate) > each_ms)
            each_ms = (int64_t)(2000 / rate);
        if (w->engine_dests[i].shared) /* a seat goes from relay to relay */
            each_ms += 500;
    }
    return (int64_t)w->options.lease_ms + (int64_t)w->options.poll_max_ms + 30000 +
           (int64_t)w->c.n_messages * each_ms;
}

uint32_t hk_world_cap(const struct world *w, size_t dest)
{
    uint32_t cap = w->engine_dests[dest].limiter.concurrency;
    return cap ? cap : w->options.concurrency < 64 ? w->options.concurrency : 64;
}

/* What the relay's own breaker is, now that it heard. "" = it has news of its own, which the store does not know yet. */
static struct hk_str breaker_of(const struct world *w, const struct relay *r, size_t d)
{
    struct hk_dest_view view;
    size_t place = hk_engine_find_dest(r->engine, w->dests[d].name);
    if (place == HK_NO_DEST || r->engine->dests[place].tell_circuit ||
        !hk_engine_view_dest(r->engine, place, w->now + r->clock_ms, &view))
        return hk_str_of("");
    return hk_str_of(hk_breaker_state_name(view.breaker));
}

/* Whose breaker it is does not matter: who hears of it keeps to it, unless it was closed while the answer was on its way. */
static void heard_breakers(struct world *w, struct relay *r, const struct hk_poll *poll)
{
    for (size_t d = 0; d < w->c.n_dests; d++) {
        int64_t until_ms = 0;
        for (size_t i = 0; i < poll->n_dests; i++)
            if (hk_str_eq(poll->dests[i].name, hk_str_of(w->dests[d].name)))
                until_ms = poll->dests[i].open_until_ms;
        if (until_ms != r->open_until_ms[d] && w->engine_dests[d].breaker &&
            hk_model_open_until(w->model, w->dests[d].name) == until_ms)
            hk_world_log(w, (struct hk_event_line){.ev = until_ms ? HK_LOG_TOLD : HK_LOG_CLOSED,
                                                   .dest = hk_str_of(w->dests[d].name),
                                                   .relay = hk_str_of(r->name),
                                                   .kind = breaker_of(w, r, d),
                                                   .until = until_ms});
        r->open_until_ms[d] = until_ms;
    }
}

void hk_world_heard(struct world *w, struct relay *r, const struct hk_poll *poll)
{
    if (!poll->changed)
        return;
    uint32_t paused = 0;
    for (size_t i = 0; i < poll->n_dests; i++)
        for (size_t d = 0; poll->dests[i].paused && d < w->c.n_dests; d++)
            if (hk_str_eq(poll->dests[i].name, hk_str_of(w->dests[d].name)))
                paused |= 1u << d;
    for (size_t d = 0; d < w->c.n_dests; d++)
        if ((paused & ~r->paused) >> d & 1)
            hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_TOLD,
                                                   .dest = hk_str_of(w->dests[d].name),
                                                   .relay = hk_str_of(r->name)});
    r->paused = paused;
    heard_breakers(w, r, poll);
}
