/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of outbox are in hand: a set of slots, found by the row's id. A row stays in outbox while it is in a slot, so
 * every scan meets it again. Open addressing, linear probing, removal by shifting back; at most half full, as it is twice
 * as long as there are slots. */
#include <assert.h>

#include "base/mem.h"
#include "core/engine_impl.h"

bool hk_hand_init(struct hk_hand *hand, uint32_t n_slots)
{
    uint32_t room = 16;
    while (room < 2 * n_slots)
        room *= 2;
    hand->places = hk_mem_zalloc(room, sizeof *hand->places);
    hand->mask = room - 1;
    return hand->places != NULL;
}

static uint32_t home_of(const struct hk_hand *hand, int64_t id)
{
    uint64_t h = (uint64_t)id * 0x9e3779b97f4a7c15u; /* neighbours, which ids mostly are, land far apart */
    return (uint32_t)(h >> 32) & hand->mask;
}

void hk_hand_add(struct hk_engine *e, uint32_t slot)
{
    struct hk_hand *hand = &e->hand;
    if (e->slots[slot].source != HK_FROM_OUTBOX)
        return;
    uint32_t i = home_of(hand, e->slots[slot].id);
    while (hand->places[i])
        i = (i + 1) & hand->mask;
    hand->places[i] = slot + 1;
}

bool hk_hand_has(const struct hk_engine *e, int64_t id)
{
    const struct hk_hand *hand = &e->hand;
    for (uint32_t i = home_of(hand, id); hand->places[i]; i = (i + 1) & hand->mask) {
        const struct hk_slot *slot = &e->slots[hand->places[i] - 1];
        if (slot->id == id && slot->phase != HK_SLOT_ORPHANED)
            return true;
    }
    return false;
}

void hk_hand_remove(struct hk_engine *e, uint32_t slot)
{
    struct hk_hand *hand = &e->hand;
    if (e->slots[slot].source != HK_FROM_OUTBOX)
        return;
    uint32_t gap = home_of(hand, e->slots[slot].id);
    while (hand->places[gap] != slot + 1) {
        assert(hand->places[gap]); /* it was added */
        gap = (gap + 1) & hand->mask;
    }
    for (uint32_t i = (gap + 1) & hand->mask; hand->places[i]; i = (i + 1) & hand->mask) {
        uint32_t home = home_of(hand, e->slots[hand->places[i] - 1].id);
        if (((i - home) & hand->mask) < ((i - gap) & hand->mask))
            continue; /* its home is behind the gap: it may stay */
        hand->places[gap] = hand->places[i];
        gap = i;
    }
    hand->places[gap] = 0;
}
