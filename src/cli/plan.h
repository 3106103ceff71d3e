/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy does with a destination that never works: which waits, until when, ended by what. Runs the
 * library's own hk_policy_decide on a clock of its own, so that a program that passes the same seed to
 * hk_execute waits exactly as long. */
#ifndef HK_CLI_PLAN_H
#define HK_CLI_PLAN_H

#include <hikyaku/policy.h>

#define HK_PLAN_ATTEMPTS_MAX 1000 /* where a policy that goes on counts as endless */
#define HK_PLAN_RUNS         2001 /* odd, so that the median is one of them */

/* One attempt and the wait behind it. */
struct hk_plan_row {
    bool last; /* of the seeded run: no wait behind it */
    uint64_t wait_ms;
    /* over all runs that went on after this attempt; zero when none did */
    uint32_t runs;
    uint64_t earliest_ms, median_ms, latest_ms;
    uint64_t cumulative_ms; /* median time from the first attempt to the end of this wait */
};

struct hk_plan {
    struct hk_plan_row *rows;
    uint32_t n_rows;            /* attempts of the seeded run */
    char reason[HK_REASON_MAX]; /* why it ends; "" when it goes on past HK_PLAN_ATTEMPTS_MAX */
    uint64_t elapsed_ms;        /* the seeded run, from first attempt to dead */
    /* over all runs */
    char usual_reason[HK_REASON_MAX]; /* of most of them */
    uint32_t median_attempts;
    uint64_t median_ms, mean_ms;
};

/* Finds a plain answer that `policy` puts into `cls` (503 for transient …); false when there is none. */
bool hk_plan_facts(const struct hk_policy *policy, enum hk_class cls, struct hk_facts *out_facts);

/* HK_NOMEM, HK_INVALID (success is not planned for). */
enum hk_code hk_plan_make(const struct hk_policy *policy, enum hk_class cls, const struct hk_facts *facts,
                          uint64_t seed, struct hk_plan *out_plan, struct hk_err *err) HK_MUSTCHECK;
void hk_plan_fini(struct hk_plan *plan);

#endif
