/* SPDX-License-Identifier: Apache-2.0 */
/* What this store's manifests name, in memory: the database has the fence, this says what is left of each manifest
 * without reading it back. Changes are tentative until the transaction ends. */
#ifndef HK_STORE_MANIFESTS_H
#define HK_STORE_MANIFESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/message.h"

enum hk_member_state {
    HK_MEMBER_OPEN = 0,
    HK_MEMBER_SETTLING, /* in the transaction under way */
    HK_MEMBER_SETTLED
};

struct hk_member {
    int64_t id;
    enum hk_source source;
    enum hk_member_state state;
    uint8_t shard; /* where a store has several */
};

/* One manifest. */
struct hk_manifest {
    int64_t claim;
    int64_t min_id, max_id;    /* of outbox members; min > max: none */
    struct hk_member *members; /* sorted by source and id */
    size_t n_members, n_open;
    bool stands;  /* fence looked at in the transaction under way, and found standing */
    bool checked; /* fence looked at */
    bool rewrite; /* something was released: its ids must be written again */
    bool added;   /* in the transaction under way */
};

struct hk_manifests {
    struct hk_manifest *items; /* sorted by claim: ids only rise */
    size_t n, room;
    struct hk_member *spare; /* for the next one */
    size_t spare_room;
};

/* So that the next hk_manifests_add of up to `n` members cannot fail: for a store that knows what it has claimed only when
 * it is too late to undo it. False: out of memory. */
bool hk_manifests_reserve(struct hk_manifests *claims, size_t n);

/* Keeps a copy of `members`, which it sorts. False: out of memory, nothing was added. */
bool hk_manifests_add(struct hk_manifests *claims, int64_t claim, const struct hk_member *members, size_t n);
struct hk_manifest *hk_manifests_find(struct hk_manifests *claims, int64_t claim);
/* NULL: not named, or settled already. */
struct hk_member *hk_manifest_open_member(struct hk_manifest *claim, enum hk_source source, int64_t id);
/* Does any manifest name this row of outbox and still have it open? */
bool hk_manifests_hold(struct hk_manifests *claims, int64_t id);
/* The transaction ended: what was tentative holds (manifests with nothing open are forgotten), or never was. */
void hk_manifests_commit(struct hk_manifests *claims);
void hk_manifests_rollback(struct hk_manifests *claims);
void hk_manifests_clear(struct hk_manifests *claims);

#endif
