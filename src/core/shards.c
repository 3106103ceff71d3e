/* SPDX-License-Identifier: Apache-2.0 */
/* Fair shares differ by one at the most, and those with lower numbers have the larger ones: so all lanes that see the same
 * come to the same. */
#include <assert.h>

#include "core/shards.h"

static unsigned count_bits(uint64_t set)
{
    unsigned n = 0;
    for (; set; set &= set - 1)
        n++;
    return n;
}

static unsigned fair_share(const struct hk_shards_view *v)
{
    unsigned n = v->n_live ? v->n_live : 1; /* we live */
    return v->n_shards / n + (v->before < v->n_shards % n);
}

/* The highest ones, and rather those of which nothing is in hand. */
static uint64_t choose_one(uint64_t from, uint64_t in_hand)
{
    uint64_t idle = from & ~in_hand, pick = UINT64_C(1) << (HK_SHARDS_MAX - 1);
    assert(from); /* who has more than his share has one to choose */
    for (uint64_t set = idle ? idle : from; !(set & pick);)
        pick >>= 1;
    return pick;
}

void hk_shards_decide(const struct hk_shards_view *v, struct hk_shards_plan *out)
{
    unsigned fair = fair_share(v), have = count_bits(v->mine);
    unsigned surplus = have > fair ? have - fair : 0;
    *out = (struct hk_shards_plan){.leaving = v->leaving & v->mine};
    if (count_bits(out->leaving) > surplus) { /* somebody has left */
        out->leaving = 0;
        out->stay = true;
    }
    while (count_bits(out->leaving) < surplus)
        out->leaving |= choose_one(v->mine & ~out->leaving, v->in_hand);
    out->let_go = out->leaving & ~v->in_hand;
    if (!surplus && have < fair && v->n_free)
        out->take = fair - have;
}
