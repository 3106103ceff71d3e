/* SPDX-License-Identifier: Apache-2.0 */
/* What this store's manifests name, in memory: the database has the fence, this says what is left of each manifest
 * without reading it back. Changes are tentative until the transaction ends. */
#ifndef HK_STORE_SQLITE_CLAIMS_H
#define HK_STORE_SQLITE_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/message.h"

enum hk_sq_member_state {
    HK_SQ_OPEN = 0,
    HK_SQ_SETTLING, /* in the transaction under way */
    HK_SQ_SETTLED
};

struct hk_sq_member {
    int64_t id;
    enum hk_source source;
    enum hk_sq_member_state state;
};

/* One manifest. */
struct hk_sq_claim {
    int64_t claim;
    int64_t min_id, max_id;       /* of outbox members; min > max: none */
    struct hk_sq_member *members; /* sorted by source and id */
    size_t n_members, n_open;
    bool stands;  /* fence looked at in the transaction under way, and found standing */
    bool checked; /* fence looked at */
    bool rewrite; /* something was released: its ids must be written again */
    bool added;   /* in the transaction under way */
};

struct hk_sq_claims {
    struct hk_sq_claim *items; /* sorted by claim: ids only rise */
    size_t n, room;
};

/* Keeps a copy of `members`, which it sorts. False: out of memory, nothing was added. */
bool hk_sq_claims_add(struct hk_sq_claims *claims, int64_t claim, const struct hk_sq_member *members,
                      size_t n);
struct hk_sq_claim *hk_sq_claims_find(struct hk_sq_claims *claims, int64_t claim);
/* NULL: not named, or settled already. */
struct hk_sq_member *hk_sq_claim_open_member(struct hk_sq_claim *claim, enum hk_source source, int64_t id);
/* Does any manifest name this row of outbox and still have it open? */
bool hk_sq_claims_hold(struct hk_sq_claims *claims, int64_t id);
/* The transaction ended: what was tentative holds (manifests with nothing open are forgotten), or never was. */
void hk_sq_claims_commit(struct hk_sq_claims *claims);
void hk_sq_claims_rollback(struct hk_sq_claims *claims);
void hk_sq_claims_clear(struct hk_sq_claims *claims);

#endif
