/* SPDX-License-Identifier: Apache-2.0 */
/* Renaming: all values of a kind are collected first; what is hashed is each one's place among them. A renaming that keeps
 * the order is sound as long as such values are only compared with each other, and new ones are above all old ones. */
#include <stdlib.h>

#include "canon.h"

enum tag {
    TAG_NUMBER,
    TAG_TIME, /* exact, relative to now */
    TAG_PAST, /* from here on: by order */
    TAG_LANE,
    TAG_CLAIM,
    N_TAGS
};

_Static_assert(N_TAGS - TAG_PAST == HK_CANON_KINDS, "what is renamed");

struct hk_canon_item {
    enum tag tag;
    int64_t value;
};

/* ---- collecting ---- */

void hk_canon_begin(struct hk_canon *canon, int64_t now_ms)
{
    canon->n = 0;
    canon->now_ms = now_ms;
    for (int i = 0; i < HK_CANON_KINDS; i++)
        canon->n_names[i] = 0;
}

void hk_canon_fini(struct hk_canon *canon)
{
    free(canon->items);
    *canon = (struct hk_canon){.n = 0};
}

/* Where it is, or should be, among those of its kind. */
static size_t find(const struct hk_canon *canon, enum tag tag, int64_t value)
{
    const int64_t *names = canon->names[tag - TAG_PAST];
    size_t i = 0;
    while (i < canon->n_names[tag - TAG_PAST] && names[i] < value)
        i++;
    return i;
}

static bool has(const struct hk_canon *canon, enum tag tag, int64_t value)
{
    size_t i = find(canon, tag, value);
    return i < canon->n_names[tag - TAG_PAST] && canon->names[tag - TAG_PAST][i] == value;
}

static void name(struct hk_canon *canon, enum tag tag, int64_t value)
{
    if (has(canon, tag, value))
        return;
    size_t *n = &canon->n_names[tag - TAG_PAST], at = find(canon, tag, value);
    int64_t *names = canon->names[tag - TAG_PAST];
    if (*n == HK_CANON_NAMES)
        abort();
    for (size_t i = (*n)++; i > at; i--)
        names[i] = names[i - 1];
    names[at] = value;
}

static void add(struct hk_canon *canon, enum tag tag, int64_t value)
{
    if (tag >= TAG_PAST)
        name(canon, tag, value);
    if (canon->n == canon->room) {
        canon->room = canon->room ? canon->room * 2 : 256;
        canon->items = realloc(canon->items, canon->room * sizeof *canon->items);
        if (!canon->items)
            abort();
    }
    canon->items[canon->n++] = (struct hk_canon_item){tag, value};
}

void hk_canon_number(struct hk_canon *canon, int64_t value)
{
    add(canon, TAG_NUMBER, value);
}

void hk_canon_text(struct hk_canon *canon, struct hk_str text)
{
    add(canon, TAG_NUMBER, (int64_t)text.len);
    for (size_t i = 0; i < text.len; i++)
        add(canon, TAG_NUMBER, text.ptr[i]);
}

void hk_canon_time(struct hk_canon *canon, int64_t t)
{
    if (t == INT64_MAX || t == INT64_MIN)
        add(canon, TAG_NUMBER, t);
    else
        add(canon, TAG_TIME, t - canon->now_ms);
}

void hk_canon_deadline(struct hk_canon *canon, int64_t t)
{
    hk_canon_time(canon, t > canon->now_ms ? t : canon->now_ms);
}

void hk_canon_due(struct hk_canon *canon, int64_t t)
{
    if (t > canon->now_ms || t == INT64_MIN)
        hk_canon_time(canon, t);
    else
        add(canon, TAG_PAST, t);
}

void hk_canon_lane(struct hk_canon *canon, int64_t lane)
{
    add(canon, lane ? TAG_LANE : TAG_NUMBER, lane);
}

void hk_canon_claim(struct hk_canon *canon, int64_t claim)
{
    hk_canon_lane(canon, claim >> 32);
    add(canon, claim ? TAG_CLAIM : TAG_NUMBER, claim);
}

bool hk_canon_has_lane(const struct hk_canon *canon, int64_t lane)
{
    return has(canon, TAG_LANE, lane);
}

bool hk_canon_has_claim(const struct hk_canon *canon, int64_t claim)
{
    return has(canon, TAG_CLAIM, claim);
}

/* ---- hashing ---- */

static uint64_t stir(uint64_t h, uint64_t word, uint64_t factor)
{
    h = (h ^ word) * factor;
    h ^= h >> 29;
    h *= 0x9fb21c651e98df25u;
    return h ^ h >> 32;
}

struct hk_hash128 hk_canon_hash(struct hk_canon *canon)
{
    struct hk_hash128 h = {0x243f6a8885a308d3u, 0x13198a2e03707344u};
    for (size_t i = 0; i < canon->n; i++) {
        const struct hk_canon_item *item = &canon->items[i];
        int64_t value = item->tag < TAG_PAST ? item->value : (int64_t)find(canon, item->tag, item->value);
        uint64_t word = (uint64_t)value * N_TAGS + item->tag;
        h.a = stir(h.a, word, 0xd1342543de82ef95u);
        h.b = stir(h.b, word + i, 0xaf251af3b0f025b5u);
    }
    if (!h.a && !h.b)
        h.a = 1; /* a free place in the sets */
    return h;
}

/* ---- sets ---- */

static size_t place_of(const struct hk_hash_set *set, struct hk_hash128 hash)
{
    size_t i = (size_t)hash.a & (set->room - 1);
    while ((set->places[i].a || set->places[i].b) &&
           (set->places[i].a != hash.a || set->places[i].b != hash.b))
        i = (i + 1) & (set->room - 1);
    return i;
}

static void grow(struct hk_hash_set *set, bool valued)
{
    struct hk_hash_set bigger = {.n = set->n, .room = set->room ? set->room * 2 : 1024, .sum = set->sum};
    bigger.places = calloc(bigger.room, sizeof *bigger.places);
    bigger.values = valued ? calloc(bigger.room, sizeof *bigger.values) : NULL;
    if (!bigger.places || (valued && !bigger.values))
        abort();
    for (size_t i = 0; i < set->room; i++) {
        if (!set->places[i].a && !set->places[i].b)
            continue;
        size_t to = place_of(&bigger, set->places[i]);
        bigger.places[to] = set->places[i];
        if (valued)
            bigger.values[to] = set->values[i];
    }
    hk_hash_set_fini(set);
    *set = bigger;
}

static size_t put(struct hk_hash_set *set, struct hk_hash128 hash, bool valued, bool *out_new)
{
    if (set->n * 2 >= set->room)
        grow(set, valued);
    size_t i = place_of(set, hash);
    *out_new = !set->places[i].a && !set->places[i].b;
    if (*out_new) {
        set->places[i] = hash;
        set->sum += hash.a ^ hash.b;
        set->n++;
    }
    return i;
}

bool hk_hash_set_add(struct hk_hash_set *set, struct hk_hash128 hash)
{
    bool fresh;
    (void)put(set, hash, false, &fresh);
    return fresh;
}

bool hk_hash_set_map(struct hk_hash_set *set, struct hk_hash128 hash, uint64_t value)
{
    bool fresh;
    size_t i = put(set, hash, true, &fresh);
    if (fresh)
        set->values[i] = value;
    return set->values[i] == value;
}

void hk_hash_set_fini(struct hk_hash_set *set)
{
    free(set->places);
    free(set->values);
    *set = (struct hk_hash_set){.n = 0};
}
