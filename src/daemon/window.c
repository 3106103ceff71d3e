/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of slots. */
#include <string.h>

#include "daemon/window.h"

void hk_window_init(struct hk_window *w, int64_t now_ms)
{
    *w = (struct hk_window){.began_ms = now_ms, .slot = now_ms / HK_WINDOW_SLOT_MS};
}

struct hk_window_slot *hk_window_at(struct hk_window *w, int64_t now_ms)
{
    int64_t slot = now_ms / HK_WINDOW_SLOT_MS, gone = slot - w->slot;
    for (int64_t i = 1; i <= gone && i <= HK_WINDOW_SLOTS; i++)
        memset(&w->slots[(w->slot + i) % HK_WINDOW_SLOTS], 0, sizeof w->slots[0]);
    if (gone > 0)
        w->slot = slot;
    return &w->slots[w->slot % HK_WINDOW_SLOTS];
}

uint64_t hk_window_sum(struct hk_window *w, int64_t now_ms, struct hk_window_slot *out)
{
    (void)hk_window_at(w, now_ms);
    *out = (struct hk_window_slot){.seen = 0};
    for (size_t i = 0; i < HK_WINDOW_SLOTS; i++) {
        const struct hk_window_slot *s = &w->slots[i];
        out->seen += s->seen;
        out->sent += s->sent;
        out->failed += s->failed;
        out->dead += s->dead;
        hk_histogram_merge(&out->latency, &s->latency);
    }
    int64_t from_ms = (w->slot - HK_WINDOW_SLOTS + 1) * HK_WINDOW_SLOT_MS;
    from_ms = from_ms > w->began_ms ? from_ms : w->began_ms;
    return now_ms > from_ms ? (uint64_t)(now_ms - from_ms) : 0;
}
