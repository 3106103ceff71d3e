/* SPDX-License-Identifier: Apache-2.0 */
/* What the stores share when they make fingerprints of an older version anew (store/letters.h, regroup). */
#ifndef HK_STORE_REGROUP_H
#define HK_STORE_REGROUP_H

#include "base/buf.h"
#include "store/letters.h"

/* A letter's new group. */
struct hk_regrouped {
    int64_t id;                   /* 0 = it is gone */
    char was[HK_FINGERPRINT_MAX]; /* as it was seen; "" = what stands there was never a fingerprint of ours */
    char print[HK_FINGERPRINT_MAX];
    struct hk_buf error; /* "" = it keeps the one that it has */
};

void hk_regrouped_init(struct hk_regrouped *out);
void hk_regrouped_fini(struct hk_regrouped *letter);
/* As a settle of this version would have written it. False: out of memory. */
bool hk_regroup_judge(const struct hk_regrouping *how, const struct hk_letter *letter,
                      struct hk_regrouped *out);

#endif
