/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array: it is nearly always empty. */
#include <string.h>

#include "base/mem.h"
#include "store/stuck.h"

/* Where it is, or belongs. */
static size_t place_of(const struct hk_stuck *stuck, enum hk_source source, int64_t id)
{
    size_t lo = 0, hi = stuck->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct hk_stuck_row *row = &stuck->items[mid];
        if (row->source < source || (row->source == source && row->id < id))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool is_at(const struct hk_stuck *stuck, size_t at, enum hk_source source, int64_t id)
{
    return at < stuck->n && stuck->items[at].source == source && stuck->items[at].id == id;
}

bool hk_stuck_add(struct hk_stuck *stuck, enum hk_source source, int64_t id)
{
    size_t at = place_of(stuck, source, id);
    if (is_at(stuck, at, source, id))
        return true;
    if (stuck->n == stuck->room) {
        size_t room = stuck->room ? 2 * stuck->room : 16;
        struct hk_stuck_row *items = hk_mem_resize(stuck->items, room * sizeof *items);
        if (!items)
            return false;
        stuck->items = items;
        stuck->room = room;
    }
    memmove(stuck->items + at + 1, stuck->items + at, (stuck->n - at) * sizeof *stuck->items);
    stuck->items[at] = (struct hk_stuck_row){.source = source, .id = id};
    stuck->n++;
    return true;
}

bool hk_stuck_has(const struct hk_stuck *stuck, enum hk_source source, int64_t id)
{
    return stuck->n && is_at(stuck, place_of(stuck, source, id), source, id);
}

void hk_stuck_drop(struct hk_stuck *stuck, enum hk_source source, int64_t id)
{
    size_t at = place_of(stuck, source, id);
    if (!is_at(stuck, at, source, id))
        return;
    stuck->n--;
    memmove(stuck->items + at, stuck->items + at + 1, (stuck->n - at) * sizeof *stuck->items);
    if (stuck->turn > at)
        stuck->turn--;
}

enum hk_settle_kind hk_stuck_kind(enum hk_source source, bool delivered, struct hk_str reason)
{
    if (delivered)
        return HK_SETTLE_SENT;
    if (reason.len)
        return HK_SETTLE_DEAD;
    return source == HK_FROM_OUTBOX ? HK_SETTLE_RETRY : HK_SETTLE_RELEASE;
}

bool hk_stuck_next(struct hk_stuck *stuck, struct hk_stuck_row *out)
{
    if (!stuck->n)
        return false;
    if (stuck->turn >= stuck->n)
        stuck->turn = 0;
    *out = stuck->items[stuck->turn++];
    return true;
}

void hk_stuck_clear(struct hk_stuck *stuck)
{
    hk_mem_free(stuck->items);
    *stuck = (struct hk_stuck){.items = NULL};
}
