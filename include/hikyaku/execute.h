/* SPDX-License-Identifier: Apache-2.0 */
/* hk_execute calls a function and retries it by a policy, in the caller's thread. A breaker, a retry budget and a limiter can
 * guard the calls. */
#ifndef HIKYAKU_EXECUTE_H
#define HIKYAKU_EXECUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/breaker.h>
#include <hikyaku/error.h>
#include <hikyaku/facts.h>
#include <hikyaku/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the function learns about the attempt that it makes. */
struct hk_attempt {
    uint32_t number;     /* 1 = the first */
    uint64_t timeout_ms; /* how long this attempt may take; UINT64_MAX = no limit */
    int64_t deadline_ms; /* the same as a time on the executor's clock; INT64_MAX = none */
};

/* Makes one attempt and reports what happened in `facts`. `facts` is zeroed before the call; unchanged with HK_OK it means
 * success. The function must keep to `attempt->timeout_ms` itself, because a thread cannot be stopped from outside. Memory that
 * `facts` points to must stay valid until the next call or the end of hk_execute.
 * Returns HK_OK: `facts` says what happened. HK_CANCELLED: stop now. Any other code: our own side failed (HK_FAULT_LOCAL, or
 * HK_FAULT_TIMEOUT for HK_TIMEOUT), unless `facts` has a fault or a status of 400 or above. */
typedef enum hk_code hk_attempt_fn(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts);

/* A retry, reported before its wait, with every field of requirement 207. Pointers are valid during the call. */
struct hk_retry_event {
    const char *request_id;
    const char *policy;      /* the policy's name */
    const char *policy_type; /* its backoff ("exponential" …), "adaptive" when hinted, "custom" with ops */
    const char *operation;
    int64_t operation_start_ms; /* Unix time: of the call of hk_execute */
    int64_t operation_end_ms;   /* Unix time: of this attempt's end */
    uint32_t iteration;         /* 0 = the first error */
    uint64_t sleep_ms;
    const char *error_type;    /* reason code of the attempt */
    const char *error_message; /* "" when the attempt gave none */
    enum hk_class failure_class;
};

typedef void hk_retry_fn(void *arg, const struct hk_retry_event *event);

/* The clock, and how to wait. A NULL member stands for the system's. */
struct hk_clock {
    int64_t (*now_ms)(void *arg);  /* monotonic */
    int64_t (*wall_ms)(void *arg); /* Unix time */
    /* Returns false when the wait ended early because the caller wants to stop. */
    bool (*sleep_ms)(void *arg, uint64_t ms);
    void *arg;
};

struct hk_execute_options {
    const struct hk_policy *policy;
    const char *preset; /* instead of `policy`, e.g. "standard"; both NULL is HK_INVALID, so that a policy
                                       that was not found is noticed */
    struct hk_overrides overrides; /* for this operation; 0 = as the policy says */
    struct hk_breaker *breaker;    /* these three may be NULL and may be shared by calls of one thread */
    struct hk_budget *budget;
    struct hk_limiter *limiter;
    const char *operation;  /* for telemetry; may be NULL */
    const char *request_id; /* likewise */
    hk_retry_fn *on_retry;  /* may be NULL */
    void *on_retry_arg;
    bool has_seed; /* false: seeded from the system's randomness */
    uint64_t seed;
    struct hk_clock clock;
};

struct hk_execute_result {
    struct hk_decision
        decision;      /* of the last attempt; its reason also names a breaker or budget that ended it */
    uint32_t attempts; /* calls made */
    uint64_t elapsed_ms;
    uint64_t slept_ms;
};

/* HK_OK: delivered. HK_GAVE_UP: the policy gave up (`out_result->decision.reason` says why).
 * HK_UNAVAILABLE: the breaker stays open, or the limiter closed, beyond the deadline; no attempt is charged.
 * HK_CANCELLED: the function or the clock asked to stop. HK_INVALID, HK_RANGE, HK_NOTFOUND, HK_NOMEM: `fn` was not called.
 * `out_result` may be NULL; it is filled for HK_OK, HK_GAVE_UP, HK_UNAVAILABLE and HK_CANCELLED. */
HK_API enum hk_code hk_execute(const struct hk_execute_options *options, hk_attempt_fn *fn, void *arg,
                               struct hk_execute_result *out_result, struct hk_err *err) HK_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
