/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before retry n. These functions have no state and read no clock: the same arguments and random numbers
 * give the same wait. No 64-bit value and no retry number overflows, and no wait is longer than `cap_ms`. */
#ifndef HIKYAKU_BACKOFF_H
#define HIKYAKU_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/rng.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hk_backoff_kind {
    HK_BACKOFF_FIXED = 0,         /* base */
    HK_BACKOFF_LINEAR,            /* base * n */
    HK_BACKOFF_EXPONENTIAL,       /* base * factor^(n-1) */
    HK_BACKOFF_LIST,              /* waits[n-1], the last one repeats */
    HK_BACKOFF_CLOUD_TASKS,       /* base * 2^(n-1) for D doublings, then base * 2^D * (n-D) */
    HK_BACKOFF_AZURE_EXPONENTIAL, /* min + (2^(n-1) - 1) * random(0.8 .. 1.2) * base */
    HK_BACKOFF_AZURE_LINEAR,      /* random(0.8 .. 1.2) * base */
    HK_NBACKOFFS
};

#define HK_BACKOFF_WAITS_MAX 32

struct hk_backoff {
    enum hk_backoff_kind kind;
    uint64_t base_ms;       /* the Azure forms' delta, Cloud Tasks' minBackoff */
    uint64_t min_ms;        /* HK_BACKOFF_AZURE_EXPONENTIAL only: added to every wait */
    uint64_t cap_ms;        /* no wait is longer */
    double factor;          /* HK_BACKOFF_EXPONENTIAL only, >= 1 */
    uint32_t max_doublings; /* HK_BACKOFF_CLOUD_TASKS only */
    bool fast_first;        /* make the first retry immediate, and no other */
    uint32_t n_waits;       /* HK_BACKOFF_LIST only */
    uint64_t waits_ms[HK_BACKOFF_WAITS_MAX];
};

enum hk_jitter_kind {
    HK_JITTER_NONE = 0,
    HK_JITTER_RATIO,        /* ceiling * (1 ± ratio), cut at the cap */
    HK_JITTER_ADD,          /* ceiling + 0 .. add_ms; at the cap the range moves below it */
    HK_JITTER_FULL,         /* 0 .. ceiling */
    HK_JITTER_EQUAL,        /* ceiling/2 .. ceiling */
    HK_JITTER_DECORRELATED, /* first wait .. 3 * previous wait */
    HK_NJITTERS
};

struct hk_jitter {
    enum hk_jitter_kind kind;
    double ratio;    /* HK_JITTER_RATIO only, 0 .. 1 */
    uint64_t add_ms; /* HK_JITTER_ADD only */
};

/* The wait before retry `n` (1 = after the first failure) without jitter; never above cap_ms.
 * For the Azure forms: with the random factor at 1. Never falls as n grows (a list may). */
HK_API uint64_t hk_backoff_ceiling_ms(const struct hk_backoff *b, uint32_t n);

/* Draws the wait before retry `n`. `prev_ms` is the wait before the previous retry (0: there was none); only
 * HK_JITTER_DECORRELATED uses it. The Azure forms have their own randomness, so jitter is not
 * applied to them. Draws from `rng` at most once. */
HK_API uint64_t hk_backoff_wait_ms(const struct hk_backoff *b, const struct hk_jitter *j, uint32_t n,
                                   uint64_t prev_ms, struct hk_rng *rng);

/* The least and the greatest wait that retry `n` can draw. */
HK_API void hk_backoff_bounds_ms(const struct hk_backoff *b, const struct hk_jitter *j, uint32_t n,
                                 uint64_t *out_lo_ms, uint64_t *out_hi_ms);

/* Returns HK_INVALID or HK_RANGE, and names the field, when the parameters are not valid. */
HK_API enum hk_code hk_backoff_check(const struct hk_backoff *b, const struct hk_jitter *j,
                                     struct hk_err *err) HK_MUSTCHECK;

/* True for the two forms that have their own randomness: jitter is not applied to them. */
HK_API bool hk_backoff_is_azure(enum hk_backoff_kind kind);

/* Names as in the configuration ("exponential", "azure-linear", "full" …). An unknown name gives HK_NBACKOFFS or HK_NJITTERS. */
HK_API const char *hk_backoff_kind_name(enum hk_backoff_kind kind);
HK_API enum hk_backoff_kind hk_backoff_kind_by_name(const char *name);
HK_API const char *hk_jitter_kind_name(enum hk_jitter_kind kind);
HK_API enum hk_jitter_kind hk_jitter_kind_by_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
