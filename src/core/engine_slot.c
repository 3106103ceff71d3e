/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and the queues they wait in. A slot holds one message from the scan that chose it until its settle is on disk:
 *
 *   FREE -take-> CHOSEN -claim-> CLAIMING -ready-> READY -send-> SENDING -decide-> SETTLE -settle-> SETTLING -leave-> FREE
 *
 * Besides: a failed exchange puts a slot back to where it was before (undo); a message that is claimed but not to be sent goes
 * straight to SETTLE; a message that is gone, or not to be claimed after all, leaves early; and a lost lane frees every slot
 * but those on their way, whose requests cannot be taken back. */
#include <assert.h>

#include "base/mem.h"
#include "core/engine_impl.h"

/* A pair that is not listed is forbidden. The entries are one more than the phase, so that 0 is "not listed". */
#define TO(phase) ((phase) + 1)

static const uint8_t next_phase[HK_NPHASES][HK_NMOVES] = {
    [HK_SLOT_FREE][HK_MOVE_TAKE] = TO(HK_SLOT_CHOSEN),

    [HK_SLOT_CHOSEN][HK_MOVE_CLAIM] = TO(HK_SLOT_CLAIMING),
    [HK_SLOT_CHOSEN][HK_MOVE_LEAVE] = TO(HK_SLOT_FREE),
    [HK_SLOT_CHOSEN][HK_MOVE_LOSE_LANE] = TO(HK_SLOT_FREE),

    [HK_SLOT_CLAIMING][HK_MOVE_UNDO] = TO(HK_SLOT_CHOSEN),
    [HK_SLOT_CLAIMING][HK_MOVE_READY] = TO(HK_SLOT_READY),
    [HK_SLOT_CLAIMING][HK_MOVE_DECIDE] = TO(HK_SLOT_SETTLE),
    [HK_SLOT_CLAIMING][HK_MOVE_LEAVE] = TO(HK_SLOT_FREE),
    [HK_SLOT_CLAIMING][HK_MOVE_LOSE_LANE] = TO(HK_SLOT_FREE),

    [HK_SLOT_READY][HK_MOVE_SEND] = TO(HK_SLOT_SENDING),
    [HK_SLOT_READY][HK_MOVE_DECIDE] = TO(HK_SLOT_SETTLE),
    [HK_SLOT_READY][HK_MOVE_LOSE_LANE] = TO(HK_SLOT_FREE),

    [HK_SLOT_SENDING][HK_MOVE_DECIDE] = TO(HK_SLOT_SETTLE),
    [HK_SLOT_SENDING][HK_MOVE_LOSE_LANE] = TO(HK_SLOT_ORPHANED),

    [HK_SLOT_SETTLE][HK_MOVE_SETTLE] = TO(HK_SLOT_SETTLING),
    [HK_SLOT_SETTLE][HK_MOVE_LOSE_LANE] = TO(HK_SLOT_FREE),

    [HK_SLOT_SETTLING][HK_MOVE_UNDO] = TO(HK_SLOT_SETTLE),
    [HK_SLOT_SETTLING][HK_MOVE_LEAVE] = TO(HK_SLOT_FREE),
    [HK_SLOT_SETTLING][HK_MOVE_LOSE_LANE] = TO(HK_SLOT_FREE),

    [HK_SLOT_ORPHANED][HK_MOVE_LEAVE] = TO(HK_SLOT_FREE),
};

/* ---- rings ---- */

bool hk_ring_init(struct hk_ring *ring, uint32_t room)
{
    ring->items = hk_mem_zalloc(room, sizeof *ring->items);
    ring->room = room;
    return ring->items != NULL;
}

void hk_ring_push(struct hk_ring *ring, uint32_t item)
{
    assert(ring->len < ring->room);
    ring->items[(ring->head + ring->len++) % ring->room] = item;
}

bool hk_ring_pop(struct hk_ring *ring, uint32_t *out_item)
{
    if (ring->len == 0)
        return false;
    *out_item = ring->items[ring->head];
    ring->head = (ring->head + 1) % ring->room;
    ring->len--;
    return true;
}

/* ---- slots ---- */

struct hk_slot *hk_engine_slot(struct hk_engine *e, uint32_t i)
{
    return &e->slots[i];
}

/* Where a slot of that phase waits; NULL: somebody else has it in hand. */
static struct hk_ring *queue_of(struct hk_engine *e, enum hk_phase phase)
{
    switch (phase) {
    case HK_SLOT_FREE:
        return &e->free;
    case HK_SLOT_CHOSEN:
        return &e->chosen;
    case HK_SLOT_READY:
        return &e->ready;
    case HK_SLOT_SETTLE:
        return &e->settle;
    case HK_SLOT_CLAIMING:
    case HK_SLOT_SENDING:
    case HK_SLOT_SETTLING:
    case HK_SLOT_ORPHANED:
    case HK_NPHASES:
        break;
    }
    return NULL;
}

void hk_slot_move(struct hk_engine *e, uint32_t i, enum hk_move move)
{
    struct hk_slot *slot = &e->slots[i];
    uint8_t to = next_phase[slot->phase][move];
    assert(to); /* a move that the table does not list */
    slot->phase = (enum hk_phase)(to - 1);
    struct hk_ring *queue = queue_of(e, slot->phase);
    if (queue)
        hk_ring_push(queue, i);
}

void hk_slot_free(struct hk_engine *e, uint32_t i, enum hk_move move)
{
    struct hk_slot *slot = &e->slots[i];
    hk_hand_remove(e, i);
    if (slot->dest != HK_NO_DEST)
        e->dests[slot->dest].in_hand--;
    hk_mem_free(slot->block);
    hk_mem_free(slot->record);
    hk_mem_free(slot->fan_out);
    hk_mem_free(slot->fan_key);
    hk_slot_move(e, i, move);
    assert(slot->phase == HK_SLOT_FREE);
    *slot = (struct hk_slot){.phase = slot->phase};
    e->used_slots--;
}
