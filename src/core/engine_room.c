/* SPDX-License-Identifier: Apache-2.0 */
/* Room: a sink may refuse a message because its client takes no more at the moment (a full window, a blocked broker). Then
 * nothing was sent, no attempt is charged, and the message is given back. The destination gets nothing more until its sink
 * says that there is room again: otherwise the relay would claim and give back the same messages without end.
 *
 * A sink does not tell how much it takes, so the engine learns it, as TCP learns what a network takes. A refusal beside
 * requests on their way says that so many are the bound; a refusal without any says nothing of a bound, and the destination
 * begins again with one. Up to the bound it grows with each answer; beyond it one place is tried, now and then. */
#include "core/engine_impl.h"

enum {
    TRY_AFTER = 16 /* rounds of answers within the bound before one place more is tried */
};

uint32_t hk_room_places(const struct hk_dest *d)
{
    return d->places && d->places < d->cap ? d->places : d->cap;
}

/* The shell asks a sink for several sends in a row: those that it did not come to count as being on their way, so only the
 * last refusal of a row knows the bound. */
static void learn_bound(struct hk_dest *d)
{
    if (!d->full)
        d->bound_before = d->bound;
    d->bound = d->sending ? d->sending : d->bound_before;
    d->places = d->sending ? d->sending : 1;
    d->within = 0;
}

void hk_engine_on_busy(struct hk_engine *e, int64_t now_ms, uint32_t i)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    struct hk_dest *d = &e->dests[slot->dest];
    e->load.sending--;
    *(slot->forced ? &d->forced_sending : &d->sending) -= 1;
    e->stats.no_room++;
    learn_bound(d);
    d->full = true;
    if (!d->sending)
        hk_reserve_give_back(e, d, now_ms); /* no request is on its way whose answer would make room */
    if (slot->phase == HK_SLOT_ORPHANED) {
        hk_slot_landed(e, slot, now_ms);
        hk_slot_free(e, i, HK_MOVE_LEAVE);
        return;
    }
    hk_slot_give_back(e, i, now_ms);
}

void hk_engine_on_room(struct hk_engine *e, int64_t now_ms, size_t dest)
{
    if (dest >= e->n_places || !e->dests[dest].name || !e->dests[dest].full)
        return;
    struct hk_dest *d = &e->dests[dest];
    d->full = false;
    hk_dest_wake(e, dest);
    hk_forced_has_room(e, now_ms);
    for (uint32_t n = d->reserve_len; n; n--)
        hk_reserve_next(e, d, now_ms);
}

void hk_room_answered(struct hk_dest *d)
{
    if (!d->places)
        return;
    uint32_t bound = d->bound ? d->bound : d->cap;
    if (d->places < bound) {
        d->places++;
    } else if (++d->within >= d->places * TRY_AFTER) {
        d->within = 0;
        d->bound = ++d->places;
    }
    if (d->places >= d->cap)
        d->places = d->bound = 0;
}
