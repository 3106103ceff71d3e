/* SPDX-License-Identifier: Apache-2.0 */
/* Waits between attempts. Every product saturates and every result is cut to the cap, so that no attempt
 * number and no 64-bit parameter can overflow.
 *
 * A wait is one uniform draw from a window [lo, hi]; a backoff and a jitter only say where the window lies.
 * That keeps the three questions (what may come out, what comes out, is it allowed) in one place.
 *
 * At the cap, a plain clamp would put half of the clients of a ± jitter, and all of those of an added one,
 * at exactly the same wait: the herd that jitter is there to break up. So ± is cut off at the cap
 * (uniform over what is left), and the window of an added jitter slides down until it ends at the cap. */
#include <math.h>
#include <string.h>

#include <hikyaku/backoff.h>

#include "base/parse.h"

struct window {
    uint64_t lo, hi;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t add_sat(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t mul_sat(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t shift_sat(uint64_t a, uint32_t bits)
{
    if (a == 0)
        return 0;
    return bits > 63 || a > UINT64_MAX >> bits ? UINT64_MAX : a << bits;
}

/* A share (0 .. 1) of `ms`. As a double, a large `ms` may be rounded up beyond itself. */
static uint64_t share_of(uint64_t ms, double share)
{
    double part = (double)ms * share;
    return part >= (double)ms ? ms : (uint64_t)part;
}

static uint64_t grow(uint64_t base_ms, double factor, uint32_t steps)
{
    if (factor == 2.0)
        return shift_sat(base_ms, steps);
    double ms = (double)base_ms * pow(factor, (double)steps);
    if (!(ms < 0x1.0p64))
        return UINT64_MAX; /* also for infinity times zero */
    return ms < 0x1.0p52 ? (uint64_t)(ms + 0.5) : (uint64_t)ms;
}

static uint64_t cloud_tasks(const struct hk_backoff *b, uint32_t n)
{
    if (n - 1 <= b->max_doublings)
        return shift_sat(b->base_ms, n - 1);
    return mul_sat(shift_sat(b->base_ms, b->max_doublings), n - b->max_doublings);
}

/* (2^(n-1) - 1) * delta on top of min: requirement 202, with n = 1 for the first retry */
static uint64_t azure_exponential(const struct hk_backoff *b, uint64_t delta_ms, uint32_t n)
{
    return add_sat(b->min_ms, mul_sat(shift_sat(1, n - 1) - 1, delta_ms));
}

static uint64_t list_wait(const struct hk_backoff *b, uint32_t n)
{
    uint32_t len = b->n_waits < HK_BACKOFF_WAITS_MAX ? b->n_waits : HK_BACKOFF_WAITS_MAX;
    return len == 0 ? 0 : b->waits_ms[n <= len ? n - 1 : len - 1];
}

/* without fast_first, before the cap */
static uint64_t nominal(const struct hk_backoff *b, uint32_t n)
{
    switch (b->kind) {
    case HK_BACKOFF_FIXED:
    case HK_BACKOFF_AZURE_LINEAR:
        return b->base_ms;
    case HK_BACKOFF_LINEAR:
        return mul_sat(b->base_ms, n);
    case HK_BACKOFF_EXPONENTIAL:
        return grow(b->base_ms, b->factor, n - 1);
    case HK_BACKOFF_LIST:
        return list_wait(b, n);
    case HK_BACKOFF_CLOUD_TASKS:
        return cloud_tasks(b, n);
    case HK_BACKOFF_AZURE_EXPONENTIAL:
        return azure_exponential(b, b->base_ms, n);
    case HK_NBACKOFFS:
        break;
    }
    return b->cap_ms;
}

bool hk_backoff_is_azure(enum hk_backoff_kind kind)
{
    return kind == HK_BACKOFF_AZURE_EXPONENTIAL || kind == HK_BACKOFF_AZURE_LINEAR;
}

static bool comes_at_once(const struct hk_backoff *b, uint32_t n)
{
    return n == 0 || (n == 1 && b->fast_first);
}

uint64_t hk_backoff_ceiling_ms(const struct hk_backoff *b, uint32_t n)
{
    return comes_at_once(b, n) ? 0 : min_u64(nominal(b, n), b->cap_ms);
}

static struct window azure_delta(const struct hk_backoff *b)
{
    uint64_t fifth = b->base_ms / 5;
    return (struct window){b->base_ms - fifth, add_sat(b->base_ms, fifth)};
}

static struct window added(uint64_t ceiling, uint64_t add_ms, uint64_t cap_ms)
{
    uint64_t hi = min_u64(add_sat(ceiling, add_ms), cap_ms);
    return (struct window){min_u64(ceiling, hi - min_u64(hi, add_ms)), hi};
}

static struct window decorrelated(const struct hk_backoff *b, uint64_t prev_ms)
{
    uint64_t first = min_u64(nominal(b, 1), b->cap_ms);
    uint64_t hi = min_u64(mul_sat(prev_ms ? prev_ms : first, 3), b->cap_ms);
    return (struct window){first, hi > first ? hi : first};
}

/* the window of retry n, for every kind except Azure's */
static struct window jittered(const struct hk_backoff *b, const struct hk_jitter *j, uint32_t n,
                              uint64_t prev_ms)
{
    uint64_t c = hk_backoff_ceiling_ms(b, n);
    switch (j->kind) {
    case HK_JITTER_NONE:
        return (struct window){c, c};
    case HK_JITTER_RATIO: {
        uint64_t part = share_of(c, j->ratio);
        return (struct window){c - part, min_u64(add_sat(c, part), b->cap_ms)};
    }
    case HK_JITTER_ADD:
        return added(c, j->add_ms, b->cap_ms);
    case HK_JITTER_FULL:
        return (struct window){0, c};
    case HK_JITTER_EQUAL:
        return (struct window){c - c / 2, c};
    case HK_JITTER_DECORRELATED:
        return decorrelated(b, prev_ms);
    case HK_NJITTERS:
        break;
    }
    return (struct window){c, c};
}

uint64_t hk_backoff_wait_ms(const struct hk_backoff *b, const struct hk_jitter *j, uint32_t n,
                            uint64_t prev_ms, struct hk_rng *rng)
{
    if (comes_at_once(b, n))
        return 0;
    if (hk_backoff_is_azure(b->kind)) {
        struct window delta = azure_delta(b);
        uint64_t drawn = hk_rng_between(rng, delta.lo, delta.hi);
        if (b->kind == HK_BACKOFF_AZURE_EXPONENTIAL)
            drawn = azure_exponential(b, drawn, n);
        return min_u64(drawn, b->cap_ms);
    }
    struct window w = jittered(b, j, n, prev_ms);
    return hk_rng_between(rng, w.lo, w.hi);
}

static struct window azure_bounds(const struct hk_backoff *b, uint32_t n)
{
    struct window w = azure_delta(b);
    if (b->kind == HK_BACKOFF_AZURE_EXPONENTIAL) {
        w.lo = azure_exponential(b, w.lo, n);
        w.hi = azure_exponential(b, w.hi, n);
    }
    return (struct window){min_u64(w.lo, b->cap_ms), min_u64(w.hi, b->cap_ms)};
}

/* the longest that the waits before this one can have been: each at most three times its predecessor */
static uint64_t longest_before(const struct hk_backoff *b, uint32_t n)
{
    uint64_t first = min_u64(nominal(b, 1), b->cap_ms);
    uint64_t longest = first;
    for (uint32_t i = b->fast_first ? 2 : 1; i < n && longest > 0 && longest < b->cap_ms; i++)
        longest = mul_sat(longest, 3);
    return min_u64(longest, b->cap_ms);
}

void hk_backoff_bounds_ms(const struct hk_backoff *b, const struct hk_jitter *j, uint32_t n,
                          uint64_t *out_lo_ms, uint64_t *out_hi_ms)
{
    struct window w = {0, 0};
    if (!comes_at_once(b, n)) {
        w = hk_backoff_is_azure(b->kind) ? azure_bounds(b, n) : jittered(b, j, n, longest_before(b, n));
    }
    *out_lo_ms = w.lo;
    *out_hi_ms = w.hi;
}

static enum hk_code check_list(const struct hk_backoff *b, struct hk_err *err)
{
    if (b->n_waits == 0 || b->n_waits > HK_BACKOFF_WAITS_MAX)
        return hk_err_set(err, HK_RANGE, "backoff.waits must hold 1 to %d waits, not %u",
                          HK_BACKOFF_WAITS_MAX, (unsigned)b->n_waits);
    for (uint32_t i = 0; i < b->n_waits; i++)
        if (b->waits_ms[i] > HK_DURATION_MAX_MS)
            return hk_err_set(err, HK_RANGE, "backoff.waits[%u] is over 100 years", (unsigned)i);
    if (b->waits_ms[b->n_waits - 1] == 0)
        return hk_err_set(err, HK_RANGE, "the last of backoff.waits repeats, so it must be above 0");
    return HK_OK;
}

static enum hk_code check_backoff(const struct hk_backoff *b, struct hk_err *err)
{
    if ((unsigned)b->kind >= HK_NBACKOFFS)
        return hk_err_set(err, HK_INVALID, "backoff.kind %d does not exist", (int)b->kind);
    if (b->cap_ms == 0 || b->cap_ms > HK_DURATION_MAX_MS)
        return hk_err_set(err, HK_RANGE, "backoff.cap must be above 0 and at most 100 years");
    if (b->kind == HK_BACKOFF_LIST)
        return check_list(b, err);
    if (b->base_ms == 0 || b->base_ms > HK_DURATION_MAX_MS)
        return hk_err_set(err, HK_RANGE, "backoff.base must be above 0 and at most 100 years");
    if (b->min_ms > HK_DURATION_MAX_MS)
        return hk_err_set(err, HK_RANGE, "backoff.min must be at most 100 years");
    if (b->kind == HK_BACKOFF_EXPONENTIAL && !(b->factor >= 1.0 && b->factor <= 1000.0))
        return hk_err_set(err, HK_RANGE, "backoff.factor must be from 1 to 1000");
    return HK_OK;
}

static enum hk_code check_jitter(const struct hk_jitter *j, struct hk_err *err)
{
    if ((unsigned)j->kind >= HK_NJITTERS)
        return hk_err_set(err, HK_INVALID, "jitter %d does not exist", (int)j->kind);
    if (j->kind == HK_JITTER_RATIO && !(j->ratio >= 0.0 && j->ratio <= 1.0))
        return hk_err_set(err, HK_RANGE, "jitter.ratio must be from 0 to 1");
    if (j->kind == HK_JITTER_ADD && j->add_ms > HK_DURATION_MAX_MS)
        return hk_err_set(err, HK_RANGE, "jitter.add must be at most 100 years");
    return HK_OK;
}

enum hk_code hk_backoff_check(const struct hk_backoff *b, const struct hk_jitter *j, struct hk_err *err)
{
    enum hk_code rc = check_backoff(b, err);
    if (rc == HK_OK)
        rc = check_jitter(j, err);
    if (rc != HK_OK)
        return rc;
    if (j->kind == HK_JITTER_DECORRELATED && b->kind == HK_BACKOFF_LIST)
        return hk_err_set(
            err, HK_INVALID,
            "decorrelated jitter grows by itself and would use the first wait of the list only");
    if (j->kind != HK_JITTER_NONE && hk_backoff_is_azure(b->kind))
        return hk_err_set(err, HK_INVALID, "backoff %s brings its own randomness: jitter must be none",
                          hk_backoff_kind_name(b->kind));
    return HK_OK;
}

static const char *const backoff_names[HK_NBACKOFFS] = {
    [HK_BACKOFF_FIXED] = "fixed",
    [HK_BACKOFF_LINEAR] = "linear",
    [HK_BACKOFF_EXPONENTIAL] = "exponential",
    [HK_BACKOFF_LIST] = "list",
    [HK_BACKOFF_CLOUD_TASKS] = "cloud-tasks",
    [HK_BACKOFF_AZURE_EXPONENTIAL] = "azure-exponential",
    [HK_BACKOFF_AZURE_LINEAR] = "azure-linear",
};

static const char *const jitter_names[HK_NJITTERS] = {
    [HK_JITTER_NONE] = "none", [HK_JITTER_RATIO] = "ratio", [HK_JITTER_ADD] = "add",
    [HK_JITTER_FULL] = "full", [HK_JITTER_EQUAL] = "equal", [HK_JITTER_DECORRELATED] = "decorrelated",
};

const char *hk_backoff_kind_name(enum hk_backoff_kind kind)
{
    return (unsigned)kind < HK_NBACKOFFS ? backoff_names[kind] : "unknown";
}

enum hk_backoff_kind hk_backoff_kind_by_name(const char *name)
{
    unsigned i = 0;
    while (i < HK_NBACKOFFS && strcmp(backoff_names[i], name) != 0)
        i++;
    return (enum hk_backoff_kind)i;
}

const char *hk_jitter_kind_name(enum hk_jitter_kind kind)
{
    return (unsigned)kind < HK_NJITTERS ? jitter_names[kind] : "unknown";
}

enum hk_jitter_kind hk_jitter_kind_by_name(const char *name)
{
    unsigned i = 0;
    while (i < HK_NJITTERS && strcmp(jitter_names[i], name) != 0)
        i++;
    return (enum hk_jitter_kind)i;
}
