/* SPDX-License-Identifier: Apache-2.0 */
/* Circuit breaker, retry budget and limiter. Create one of each for a destination and share it between the calls to it.
 * Time and randomness are arguments. Time never goes back: an earlier `now_ms` counts as the latest one seen.
 * Not thread-safe. */
#ifndef HIKYAKU_BREAKER_H
#define HIKYAKU_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/rng.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- circuit breaker ---- */

enum hk_breaker_state {
    HK_BREAKER_CLOSED = 0,
    HK_BREAKER_OPEN,
    HK_BREAKER_HALF_OPEN,
    HK_BREAKER_ISOLATED /* held open by a person */
};

struct hk_breaker_options {
    uint32_t failures; /* this many in a row, all within window_ms, open it; 0 = rule off, at most 1000 */
    double ratio;      /* this share of failures within window_ms opens it; 0 = rule off */
    uint32_t min_throughput; /* … once there were this many outcomes in the window */
    uint64_t window_ms;      /* the ratio forgets in steps of a twentieth of it */
    uint64_t open_ms;        /* how long it stays open the first time */
    double open_factor;   /* times this, each time that it re-opens: a probe failed, or it had been closed for
                           * less than window_ms */
    uint64_t open_cap_ms; /* at most */
    double open_jitter;   /* 0 .. this share is added to it, within the cap */
    uint32_t probes;      /* at once while half-open */
    uint32_t successes;   /* probes that must succeed to close it */
};

struct hk_breaker;

/* A permit ties an outcome to the period in which the call started. A late outcome from before the breaker opened
 * neither closes nor re-opens it. 0 is never a permit. */
typedef uint64_t hk_breaker_permit;

HK_API void hk_breaker_options_init(struct hk_breaker_options *options); /* the `standard` preset's */
HK_API enum hk_code hk_breaker_options_check(const struct hk_breaker_options *options,
                                             struct hk_err *err) HK_MUSTCHECK;
HK_API enum hk_code hk_breaker_new(const struct hk_breaker_options *options, struct hk_breaker **out_breaker,
                                   struct hk_err *err) HK_MUSTCHECK;
HK_API void hk_breaker_free(struct hk_breaker *breaker);

/* Returns whether a call may start now. Return each permit exactly once, with record or with release. */
HK_API bool hk_breaker_acquire(struct hk_breaker *breaker, int64_t now_ms, hk_breaker_permit *out_permit);
HK_API void hk_breaker_record(struct hk_breaker *breaker, hk_breaker_permit permit, bool success,
                              int64_t now_ms, struct hk_rng *rng);
/* For a call that did not take place, or that says nothing about the destination. */
HK_API void hk_breaker_release(struct hk_breaker *breaker, hk_breaker_permit permit, int64_t now_ms);
/* Opens the breaker until `until_ms` and makes it half-open after that, because another process saw failures. A breaker
 * that is open for longer stays open. */
HK_API void hk_breaker_trip(struct hk_breaker *breaker, int64_t until_ms, int64_t now_ms);
HK_API void hk_breaker_isolate(struct hk_breaker *breaker, int64_t now_ms);
/* Closes the breaker and forgets its history. */
HK_API void hk_breaker_reset(struct hk_breaker *breaker, int64_t now_ms);
HK_API enum hk_breaker_state hk_breaker_state(const struct hk_breaker *breaker, int64_t now_ms);
/* The earliest time at which acquire may succeed: now_ms if it would succeed now, INT64_MAX while the breaker is isolated or
 * while all probes are in flight (their outcome decides). */
HK_API int64_t hk_breaker_ready_at_ms(const struct hk_breaker *breaker, int64_t now_ms);
HK_API const char *hk_breaker_state_name(enum hk_breaker_state state);

/* ---- retry budget ---- */

enum hk_budget_kind {
    HK_BUDGET_GRPC = 0, /* every failure costs; retry only above half of the tokens */
    HK_BUDGET_AWS       /* a retry costs, and is refused when it cannot pay; success pays back */
};

struct hk_budget_options {
    enum hk_budget_kind kind;
    double max_tokens;
    double success_gain; /* gRPC: each success; AWS: a success without retry */
    double retry_cost;   /* gRPC: each failure */
    double timeout_cost; /* AWS: instead of retry_cost after a timeout */
};

struct hk_budget;

HK_API void hk_budget_options_init(struct hk_budget_options *options, enum hk_budget_kind kind);
HK_API enum hk_code hk_budget_new(const struct hk_budget_options *options, struct hk_budget **out_budget,
                                  struct hk_err *err) HK_MUSTCHECK;
HK_API void hk_budget_free(struct hk_budget *budget);
/* Reports a failed attempt and returns whether the budget allows a retry. `wants_retry` false: there will be no retry, because
 * attempts or time are used up; this costs nothing in AWS's form. */
HK_API bool hk_budget_failure(struct hk_budget *budget, bool timeout, bool wants_retry);
/* Reports a successful attempt. `paid` is what its retry cost, from hk_budget_cost; 0 for a first attempt. */
HK_API void hk_budget_success(struct hk_budget *budget, double paid);
HK_API double hk_budget_cost(const struct hk_budget *budget, bool timeout);
HK_API double hk_budget_tokens(const struct hk_budget *budget);

/* ---- rate and concurrency limiter ---- */

struct hk_limiter_options {
    double rate_per_s;    /* 0 = no rate limit */
    double burst;         /* tokens that may be saved up; at least 1 with a rate */
    uint32_t concurrency; /* 0 = no limit */
    uint64_t ramp_ms;     /* after a resume the rate grows from ramp_start to 1 over this time; 0 = at once */
    double ramp_start;    /* 0 .. 1 */
};

struct hk_limiter;

HK_API void hk_limiter_options_init(struct hk_limiter_options *options); /* no limits */
HK_API enum hk_code hk_limiter_new(const struct hk_limiter_options *options, int64_t now_ms,
                                   struct hk_limiter **out_limiter, struct hk_err *err) HK_MUSTCHECK;
HK_API void hk_limiter_free(struct hk_limiter *limiter);
/* Takes a token and a slot, or changes nothing. Release the slot once after every success. */
HK_API bool hk_limiter_acquire(struct hk_limiter *limiter, int64_t now_ms);
HK_API void hk_limiter_release(struct hk_limiter *limiter);
/* Lets nothing pass before `until_ms`, for a rate limit that the destination announced. The latest time wins. */
HK_API void hk_limiter_hold(struct hk_limiter *limiter, int64_t until_ms);
/* Starts the ramp, with an empty bucket. */
HK_API void hk_limiter_resume(struct hk_limiter *limiter, int64_t now_ms);
/* The earliest time at which acquire may succeed; INT64_MAX while all slots are taken. */
HK_API int64_t hk_limiter_ready_at_ms(const struct hk_limiter *limiter, int64_t now_ms);
HK_API uint32_t hk_limiter_in_flight(const struct hk_limiter *limiter);

#ifdef __cplusplus
}
#endif
#endif
