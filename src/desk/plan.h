/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a policy at a destination that never works: its waits, their end, and the reason for the end. Runs the library's own
 * hk_policy_decide on a virtual clock, so that a program that passes the same seed to hk_execute waits exactly as long. */
#ifndef HK_DESK_PLAN_H
#define HK_DESK_PLAN_H

#include <hikyaku/policy.h>

#define HK_PLAN_ROWS_MAX 1000 /* attempts that a run makes; the rest of a longer one is reckoned, not drawn */
#define HK_PLAN_RUNS     2001 /* odd, so that the median is one of them */
#define HK_PLAN_FEW_RUNS 201  /* when the seeded one is longer than its rows: chance evens out within each */

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
    uint32_t n_rows; /* the seeded run's attempts, as far as they are kept */
    /* the seeded run */
    uint64_t attempts;          /* all of them */
    char reason[HK_REASON_MAX]; /* why it ends */
    uint64_t elapsed_ms;        /* from first attempt to dead */
    /* over all runs */
    uint32_t n_runs;
    char usual_reason[HK_REASON_MAX]; /* of most of them */
    uint64_t median_attempts;
    uint64_t median_ms, mean_ms;
    bool estimated; /* some of them, or the seeded one, went past HK_PLAN_ROWS_MAX */
};

/* The limits that can end retries of one class; 0: no such limit. */
struct hk_plan_limits {
    uint32_t attempts;      /* alone */
    uint64_t elapsed_ms;    /* alone */
    uint32_t both_attempts; /* only together with both_ms (limit_mode: all) */
    uint64_t both_ms;
};

void hk_plan_limits(const struct hk_policy *policy, enum hk_class cls, struct hk_plan_limits *out_limits);

/* Finds a plain answer that `policy` puts into `cls` (503 for transient …); false when there is none. */
bool hk_plan_facts(const struct hk_policy *policy, enum hk_class cls, struct hk_facts *out_facts);

/* HK_NOMEM, HK_INVALID (success is not planned for). */
enum hk_code hk_plan_make(const struct hk_policy *policy, enum hk_class cls, const struct hk_facts *facts,
                          uint64_t seed, struct hk_plan *out_plan, struct hk_err *err) HK_MUSTCHECK;
void hk_plan_fini(struct hk_plan *plan);

#endif
