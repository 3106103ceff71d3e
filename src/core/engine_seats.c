/* SPDX-License-Identifier: Apache-2.0 */
/* Seats: the concurrency of a destination, kept by all relays of a store together. The store has a book for each such destination: how
 * many seats each living lane has. A message is chosen only when there is a seat for it.
 *
 *   - Relays ask for seats with the exchange, a few at a time, when there is work for them, and so they give them back: those that
 *     nothing has taken for a while, and those that others wait for.
 *   - `held` is what the engine goes by, and the book never has fewer: it is lowered before the store is asked to write it, and raised
 *     when the store says that it has.
 *   - What was asked may not have been written: another relay had the book, or the answer was lost. It is asked again until the store
 *     confirms it, or a lane that lives would keep seats that nobody uses, and the destination could stop for ever.
 *   - While others wait, the store names a limit. With fewer seats than relays it is 0: whoever has a seat gives it back when its
 *     request has ended, and comes after those that have waited longer.
 *   - A lane that is gone has no seats. Its sends may still be on their way for a moment; they are not counted. */
#include <assert.h>

#include "core/engine_impl.h"

enum {
    FEW = 4,        /* asked for at a time, or as many as are in use, if that is more */
    KEEP_MS = 150,  /* seats that nothing has taken for so long are given back */
    HEAR_MS = 200,  /* so often a relay with seats asks who waits; and one without enough asks again */
    AGAIN_MS = 50,  /* … and one without any */
    LOCKED_MS = 10, /* another relay had the book */
    GIVE_MS = 10 /* what others wait for goes with the exchange that settles, or so soon after the last one */
};

static bool is_shared(const struct hk_engine *e, const struct hk_dest *d)
{
    return e->options.shared && d->conf.shared;
}

uint32_t hk_seats_usable(const struct hk_engine *e, const struct hk_dest *d)
{
    return is_shared(e, d) ? hk_fewer(d->cap, hk_fewer(d->seats.held, d->seats.limit)) : UINT32_MAX;
}

int64_t hk_seats_ready_at(const struct hk_engine *e, const struct hk_dest *d)
{
    if (!is_shared(e, d) || d->in_flight < hk_seats_usable(e, d))
        return INT64_MIN;
    return d->seats.asks ? INT64_MAX : d->seats.ask_at_ms;
}

bool hk_seats_ready(const struct hk_engine *e, struct hk_dest *d)
{
    if (!is_shared(e, d) || d->in_flight < hk_seats_usable(e, d))
        return true;
    d->seats.asks = true;
    return false;
}

void hk_seats_take(struct hk_dest *d, int64_t now_ms)
{
    d->seats.used_ms = now_ms;
}

bool hk_seats_owed(const struct hk_dest *d)
{
    return d->seats.held || d->seats.unsure || d->seats.asks;
}

void hk_seats_lost(struct hk_dest *d)
{
    d->seats = (struct hk_seats){.limit = HK_SEATS_NO_LIMIT};
}

/* ---- asking, and giving back ---- */

/* So many stay with us. What is in flight does, as far as it has seats: not what an earlier lane has left. */
static uint32_t kept(const struct hk_engine *e, const struct hk_dest *d, int64_t now_ms)
{
    const struct hk_seats *s = &d->seats;
    uint32_t busy = hk_fewer(d->in_flight, s->held);
    if (!is_shared(e, d) || d->state == HK_DEST_LEAVING || now_ms - s->used_ms >= KEEP_MS)
        return busy;
    uint32_t most = hk_fewer(s->limit, d->cap);
    return s->held <= most ? s->held : busy > most ? busy : most;
}

static uint32_t wanted(const struct hk_engine *e, const struct hk_dest *d, uint32_t hold)
{
    if (!d->seats.asks || !is_shared(e, d) || d->state == HK_DEST_LEAVING || e->drain.on)
        return hold;
    uint32_t more = d->in_flight > FEW ? d->in_flight : FEW;
    uint32_t want = hk_fewer(d->in_flight + more, d->cap);
    return want > hold ? want : hold;
}

int64_t hk_seats_at(const struct hk_dest *d)
{
    const struct hk_seats *s = &d->seats;
    if (!hk_seats_owed(d))
        return INT64_MAX;
    int64_t at = s->asks || s->unsure ? s->ask_at_ms : INT64_MAX;
    if (!s->held)
        return at;
    at = hk_ms_earlier(at, s->heard_ms + HEAR_MS);
    if (s->held > d->in_flight && (s->held > hk_fewer(s->limit, d->cap) || d->state == HK_DEST_LEAVING))
        at = hk_ms_earlier(at, s->heard_ms + GIVE_MS);
    if (s->held > d->in_flight)
        at = hk_ms_earlier(at, hk_ms_later(s->used_ms + KEEP_MS, s->heard_ms + GIVE_MS));
    return at;
}

void hk_seats_ask(struct hk_engine *e, size_t dest, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    struct hk_seats *s = &d->seats;
    if (!hk_seats_owed(d))
        return;
    uint32_t hold = kept(e, d, now_ms);
    if (hold == s->held && hk_seats_at(d) > now_ms)
        return;
    e->exchange.seat_dests[e->exchange.n_seats] = dest;
    e->exchange.seats[e->exchange.n_seats++] = (struct hk_seat_ask){
        .destination = d->name, .most = d->cap, .hold = hold, .want = wanted(e, d, hold)};
    s->held = hold;
    s->unsure = true;
}

void hk_seats_told(struct hk_engine *e, const struct hk_seats_given *given, int64_t now_ms)
{
    for (size_t i = 0; i < e->exchange.n_seats; i++) {
        struct hk_dest *d = &e->dests[e->exchange.seat_dests[i]];
        struct hk_seats *s = &d->seats;
        if (!given[i].written) {
            s->ask_at_ms = now_ms + LOCKED_MS;
            continue;
        }
        assert(given[i].held >= s->held);
        s->held = given[i].held;
        s->limit = given[i].limit;
        s->asks = s->unsure = false;
        s->heard_ms = now_ms;
        const struct hk_seat_ask *asked = &e->exchange.seats[i];
        if (asked->want >
            asked
                ->hold) /* else the relay only wanted to hear from the others, and asks for seats at its own time */
            s->ask_at_ms = now_ms + (s->held ? HEAR_MS : AGAIN_MS);
        if (s->held > asked->hold) { /* there was one, so there may be more */
            s->ask_at_ms = now_ms;
            s->used_ms = now_ms;
        }
    }
    e->exchange.n_seats = 0;
}

void hk_seats_undone(struct hk_engine *e, int64_t now_ms)
{
    for (size_t i = 0; e->lease.lane && i < e->exchange.n_seats; i++)
        e->dests[e->exchange.seat_dests[i]].seats.ask_at_ms = now_ms;
    e->exchange.n_seats = 0;
}
