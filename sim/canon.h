/* SPDX-License-Identifier: Apache-2.0 */
/* A state as a row of values in which nothing stands but what the future depends on, and its 128-bit hash. Times are
 * relative to now; lanes, claims and times that are past are numbered by their order alone: two states that differ in
 * nothing else hash equal. */
#ifndef HK_SIM_CANON_H
#define HK_SIM_CANON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct hk_hash128 {
    uint64_t a, b;
};

enum {
    HK_CANON_KINDS = 3, /* of values that are renamed */
    HK_CANON_NAMES = 64 /* different ones of a kind, at most */
};

struct hk_canon {
    struct hk_canon_item *items;
    size_t n, room;
    int64_t now_ms;
    int64_t names[HK_CANON_KINDS][HK_CANON_NAMES]; /* sorted */
    size_t n_names[HK_CANON_KINDS];
};

void hk_canon_begin(struct hk_canon *canon, int64_t now_ms); /* `canon` zeroed before its first use */
void hk_canon_fini(struct hk_canon *canon);

void hk_canon_number(struct hk_canon *canon, int64_t value);
void hk_canon_text(struct hk_canon *canon, struct hk_str text);
/* Exactly as far from now as it is; INT64_MIN and INT64_MAX stand for themselves. */
void hk_canon_time(struct hk_canon *canon, int64_t t);
/* One that is only asked whether it has come: all that is past is the same. */
void hk_canon_deadline(struct hk_canon *canon, int64_t t);
/* One that is compared with others of its kind, too: of those past the order counts. */
void hk_canon_due(struct hk_canon *canon, int64_t t);
void hk_canon_lane(struct hk_canon *canon, int64_t lane);   /* 0 = none */
void hk_canon_claim(struct hk_canon *canon, int64_t claim); /* 0 = none; its lane is in the upper half */
/* Was it named since the beginning? */
bool hk_canon_has_lane(const struct hk_canon *canon, int64_t lane);
bool hk_canon_has_claim(const struct hk_canon *canon, int64_t claim);

struct hk_hash128 hk_canon_hash(struct hk_canon *canon);

/* ---- sets of hashes ---- */

struct hk_hash_set {
    struct hk_hash128 *places; /* both halves 0 = free */
    uint64_t *values;          /* NULL = a mere set */
    size_t n, room;
    uint64_t sum; /* of all that is in it, whatever the order */
};

/* False: it was there. */
bool hk_hash_set_add(struct hk_hash_set *set, struct hk_hash128 hash);
/* Remembers `value` for it; false: another value was told before. */
bool hk_hash_set_map(struct hk_hash_set *set, struct hk_hash128 hash, uint64_t value);
void hk_hash_set_fini(struct hk_hash_set *set);

#endif
