/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks that have no room: a window of requests that are under way at once, times in which a destination takes nothing
 * (as a broker does that runs out of memory), and confirms that come late and many together. A relay hears of room some
 * time after there is some, as a client's thread would tell it. */
#include "base/str.h"
#include "world_impl.h"

enum {
    HEARS_MS = 20 /* of room, at the latest */
};

void hk_world_room_draw(struct world *w, uint64_t seed)
{
    struct hk_rng *rng = &w->room_rng;
    hk_rng_seed(rng, seed, RNG_ROOM);
    if (hk_rng_upto(rng, 3) != 0)
        return; /* worlds without these are what they were */
    if (hk_world_judges_turns(w))
        return;
    for (size_t i = 0; i < w->c.n_dests; i++) {
        struct dest *d = &w->dests[i];
        if (hk_rng_upto(rng, 1))
            d->window = (uint32_t)hk_rng_between(rng, 1, 5);
        if (hk_rng_upto(rng, 2) == 0) {
            d->blocked_from = hk_world_between(rng, 0, w->c.fault_ms);
            d->blocked_to = d->blocked_from + hk_world_between(rng, 100, w->c.fault_ms);
        }
        if (hk_rng_upto(rng, 2) == 0)
            d->together_ms = hk_world_between(rng, 2, 200);
    }
}

static bool is_blocked(const struct world *w, const struct dest *d)
{
    return !w->healed && w->now >= d->blocked_from && w->now < d->blocked_to;
}

bool hk_world_has_room(const struct world *w, size_t relay, size_t dest)
{
    const struct dest *d = &w->dests[dest];
    uint32_t n = 0;
    for (size_t i = 0; d->window && i < w->n_sends; i++) {
        const struct send *s = w->sends[i];
        n += s->relay == relay && s->dest == dest && s->incarnation == w->relays[relay].incarnation &&
             !s->over;
    }
    return !is_blocked(w, d) && (!d->window || n < d->window);
}

static void tell_later(struct world *w, size_t relay, size_t dest, int64_t at)
{
    hk_world_at(w, at + hk_world_between(&w->room_rng, 0, HEARS_MS), EV_ROOM, relay,
                (uint64_t)w->relays[relay].incarnation << 8 | dest);
}

void hk_world_room_refused(struct world *w, size_t relay, struct send *send)
{
    struct relay *r = &w->relays[relay];
    struct hk_event_line line = send->line;
    line.ev = HK_LOG_BUSY;
    hk_world_log(w, line);
    send->over = true;
    r->full |= 1u << send->dest;
    if (is_blocked(w, &w->dests[send->dest]))
        tell_later(w, relay, send->dest, w->dests[send->dest].blocked_to);
    hk_engine_on_busy(r->engine, w->now + r->clock_ms, send->slot);
}

/* A request is over. */
void hk_world_room_freed(struct world *w, size_t relay, size_t dest)
{
    if (w->relays[relay].full >> dest & 1)
        tell_later(w, relay, dest, w->now);
}

void hk_world_room_healed(struct world *w)
{
    for (size_t i = 0; i < w->c.n_relays; i++)
        for (size_t d = 0; d < w->c.n_dests; d++)
            hk_world_room_freed(w, i, d);
}

/* Also when the destination gets another sink. */
void hk_world_room_tell(struct world *w, size_t relay, size_t dest)
{
    struct relay *r = &w->relays[relay];
    if (!(r->full >> dest & 1))
        return;
    r->full &= ~(1u << dest);
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_ROOM,
                                           .dest = hk_str_of(w->dests[dest].name),
                                           .relay = hk_str_of(r->name)});
    size_t place = hk_engine_find_dest(r->engine, w->dests[dest].name);
    if (place != SIZE_MAX)
        hk_engine_on_room(r->engine, w->now + r->clock_ms, place);
}

void hk_world_room_step(struct world *w, const struct event *ev)
{
    struct relay *r = &w->relays[ev->who];
    size_t dest = ev->number & 0xff;
    if (!r->engine || r->incarnation != ev->number >> 8 || !hk_world_has_room(w, ev->who, dest))
        return;
    hk_world_room_tell(w, ev->who, dest);
    hk_world_at(w, w->now, EV_WAKE, ev->who, ++r->wake);
}
