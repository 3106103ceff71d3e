/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a policy, shared by the files that build, check and apply one. */
#ifndef HK_CORE_POLICY_IMPL_H
#define HK_CORE_POLICY_IMPL_H

#include <hikyaku/breaker.h>
#include <hikyaku/policy.h>

struct hk_policy {
    char name[HK_NAME_MAX];
    char preset[HK_NAME_MAX];
    struct hk_backoff backoff;
    struct hk_jitter jitter;
    struct hk_limits limits;
    struct hk_class_rule classes[HK_NCLASSES]; /* [HK_CLASS_SUCCESS] is unused */
    struct hk_rule rules[HK_POLICY_RULES];     /* added ones first, then the preset's */
    size_t n_rules;
    size_t n_added;
    bool has_breaker;
    struct hk_breaker_options breaker;
    const struct hk_policy_ops *ops;
    void *ops_arg;
};

/* Fills `policy` with the preset's values; false when there is no such preset. */
bool hk_preset_apply(const char *preset, struct hk_policy *policy);

/* Do they decide alike? Their names count, too. */
bool hk_policy_same(const struct hk_policy *a, const struct hk_policy *b);

/* The default table alone: class, reason code and whether the destination is paused. */
enum hk_class hk_default_class(const struct hk_facts *facts, char out_cause[HK_REASON_MAX], bool *out_pause);

/* Our own side failed or refused, so that the outcome says nothing about the destination. */
bool hk_fault_is_ours(const struct hk_facts *facts);

/* The policy's limits with what an operation overrides (`overrides` may be NULL). */
struct hk_limits hk_policy_effective_limits(const struct hk_policy *policy,
                                            const struct hk_overrides *overrides);

/* How many attempts a message gets that asks for `asked`: any number below the policy's own, and above it up to the ceiling
 * (0 = there is none). A policy that names no number is bounded by time alone, so that any number is fewer. */
uint32_t hk_limits_attempts_within(const struct hk_limits *limits, uint32_t asked, uint32_t ceiling);

/* Time until the limits end the life that began at history->first_attempt_ms; UINT64_MAX: time alone does not. */
uint64_t hk_limits_time_left_ms(const struct hk_limits *limits, const struct hk_history *history,
                                int64_t now_ms);

/* Reason codes that end a life whatever its class. */
#define HK_REASON_EXHAUSTED "RETRY_EXHAUSTED"
#define HK_REASON_DEADLINE  "DEADLINE_EXCEEDED"

#endif
