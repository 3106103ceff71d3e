/* SPDX-License-Identifier: Apache-2.0 */
/* How the relays of a shared store divide its shards among themselves, without a leader. Each relay sees which lanes live, computes its
 * fair share, releases surplus shards once it has none of their messages in hand, and takes free shards. Pure. */
#ifndef HK_CORE_SHARDS_H
#define HK_CORE_SHARDS_H

#include <stdbool.h>
#include <stdint.h>

#define HK_SHARDS_MAX 64

/* What one lane knows. A set of shards is a bit mask. */
struct hk_shards_view {
    unsigned n_shards;       /* at most HK_SHARDS_MAX */
    unsigned n_live, before; /* lanes that live, this one included; those of them with a lower number */
    unsigned n_free;         /* shards that belong to nobody who lives */
    uint64_t mine;
    uint64_t leaving; /* of mine: no longer read, and given away when nothing of them is in hand */
    uint64_t in_hand; /* shards of which something is claimed */
};

struct hk_shards_plan {
    uint64_t leaving; /* as it is now */
    bool stay;        /* what was leaving stays after all: it is to be read anew */
    uint64_t let_go;  /* to be given away now */
    unsigned take;    /* how many of the free ones to take */
};

void hk_shards_decide(const struct hk_shards_view *view, struct hk_shards_plan *out);

#endif
