/* SPDX-License-Identifier: Apache-2.0 */
/* The limiter: a token bucket for the rate, slots for the concurrency, and a ramp for the way back.
 *
 * DESIGN
 * - What the bucket holds is never carried along from call to call, where rounding would add up. Kept are where
 *   it stood at some time (the anchor) and the whole number of tokens taken since; what came in since is computed
 *   afresh, in thousandths of a token, as rate_per_s * ms. With a rate like 100/s or 0.25/s each of these numbers
 *   is a double without any rounding; with others the error stays below a millionth of a token for 10^9 tokens
 *   handed out. Whenever an acquire finds the bucket full it becomes the new anchor.
 * - The ramp: x ms after a resume the rate is rate * (s + (1 - s) * x / ramp). Its integral is rate * area(x), with
 *   area(x) = s * x + (1 - s) * x^2 / (2 * ramp): full-rate milliseconds.
 * - Each step of that rounds correctly, hence never falls as time grows. So ready_at can search for the first
 *   millisecond that acquire itself would accept, and the two cannot disagree.
 * - A hold stops grants only: the bucket goes on filling behind it, and the ramp goes on. */
#include <assert.h>

#include <hikyaku/breaker.h>

#include "base/mem.h"
#include "base/ms.h"
#include "base/parse.h"
#include "core/bounds.h"
#include "core/limiter.h"

#define MILLI     1000.0
#define RATE_MIN  1e-5 /* a little less than one a day, which is 1.157e-5 */
#define RATE_MAX  1e6
#define BURST_MAX 1e9

struct hk_limiter {
    double rate; /* tokens a second = thousandths of a token a millisecond; 0: no limit */
    double room; /* thousandths of a token that fit into the bucket */
    uint64_t ramp_ms;
    double ramp_start;
    uint32_t slots;

    uint32_t in_flight;
    int64_t latest_ms;
    int64_t held_until_ms;

    int64_t origin_ms;    /* time is counted from here: the ramp's start while one is on, else the anchor */
    bool ramping;         /* origin_ms is a resume's */
    double anchor_area;   /* area(anchor - origin) */
    double anchor_tokens; /* what the bucket held at the anchor, in thousandths */
    uint64_t taken;       /* whole tokens, since the anchor */
};

/* ---- options and life ---- */

void hk_limiter_options_init(struct hk_limiter_options *options)
{
    *options = (struct hk_limiter_options){
        .rate_per_s = 0,
        .burst = 1,
        .concurrency = 0,
        .ramp_ms = 0,
        .ramp_start = 0.1,
    };
}

static enum hk_code check_rate(const struct hk_limiter_options *o, struct hk_err *err)
{
    if (o->rate_per_s == 0.0)
        return HK_OK; /* no rate limit: burst says nothing */
    enum hk_code rc = hk_bounds_double("rate_per_s", o->rate_per_s, RATE_MIN, RATE_MAX, err);
    if (rc == HK_OK)
        rc = hk_bounds_double("burst", o->burst, 1, BURST_MAX, err);
    return rc;
}

static enum hk_code check_options(const struct hk_limiter_options *o, struct hk_err *err)
{
    enum hk_code rc = check_rate(o, err);
    if (rc == HK_OK)
        rc = hk_bounds_u64("ramp_ms", o->ramp_ms, 0, HK_DURATION_MAX_MS, err);
    if (rc == HK_OK)
        rc = hk_bounds_double("ramp_start", o->ramp_start, 0, 1, err);
    return rc;
}

enum hk_code hk_limiter_new(const struct hk_limiter_options *options, int64_t now_ms,
                            struct hk_limiter **out_limiter, struct hk_err *err)
{
    enum hk_code rc = check_options(options, err);
    if (rc != HK_OK)
        return rc;
    struct hk_limiter *l = hk_mem_alloc(sizeof *l);
    if (!l)
        return hk_err_set(err, HK_NOMEM, "out of memory for a limiter");
    *l = (struct hk_limiter){
        .rate = options->rate_per_s,
        .room = options->burst * MILLI,
        .ramp_ms = options->ramp_ms,
        .ramp_start = options->ramp_start,
        .slots = options->concurrency ? options->concurrency : UINT32_MAX,
        .latest_ms = now_ms,
        .held_until_ms = INT64_MIN,
        .origin_ms = now_ms,
        .anchor_tokens = options->burst * MILLI,
    };
    *out_limiter = l;
    return HK_OK;
}

void hk_limiter_free(struct hk_limiter *limiter)
{
    hk_mem_free(limiter);
}

/* ---- the bucket ---- */

/* Full-rate milliseconds from the origin to `t`. */
static double area(const struct hk_limiter *l, int64_t t)
{
    double x = (double)hk_ms_since(l->origin_ms, t); /* t is never before it */
    if (!l->ramping)
        return x;
    double ramp = (double)l->ramp_ms;
    double risen = x < ramp ? x : ramp;
    double slope = (1 - l->ramp_start) * risen * risen / (2 * ramp);
    return l->ramp_start * risen + slope + (x - risen);
}

/* Thousandths of a token in the bucket at `t`, were it without a brim. */
static double tokens_at(const struct hk_limiter *l, int64_t t)
{
    double came = l->rate * (area(l, t) - l->anchor_area);
    return l->anchor_tokens + came - (double)l->taken * MILLI;
}

static bool has_token(const struct hk_limiter *l, int64_t t)
{
    return l->rate == 0.0 || tokens_at(l, t) >= MILLI;
}

/* Tokens above the bucket's size are lost: the count begins again from a full bucket. */
static void skim(struct hk_limiter *l)
{
    if (tokens_at(l, l->latest_ms) < l->room)
        return;
    l->anchor_area = area(l, l->latest_ms);
    if (!l->ramping || (uint64_t)l->latest_ms - (uint64_t)l->origin_ms >= l->ramp_ms) {
        l->ramping = false;
        l->origin_ms = l->latest_ms;
        l->anchor_area = 0;
    }
    l->anchor_tokens = l->room;
    l->taken = 0;
}

bool hk_limiter_acquire(struct hk_limiter *limiter, int64_t now_ms)
{
    struct hk_limiter *l = limiter;

    l->latest_ms = hk_ms_later(l->latest_ms, now_ms);
    if (l->in_flight == l->slots || l->latest_ms < l->held_until_ms || !has_token(l, l->latest_ms))
        return false;
    skim(l);
    l->taken++;
    l->in_flight++;
    return true;
}

void hk_limiter_release(struct hk_limiter *limiter)
{
    assert(limiter->in_flight > 0);
    limiter->in_flight--;
}

void hk_limiter_hold(struct hk_limiter *limiter, int64_t until_ms)
{
    limiter->held_until_ms = hk_ms_later(limiter->held_until_ms, until_ms);
}

void hk_limiter_resume(struct hk_limiter *limiter, int64_t now_ms)
{
    struct hk_limiter *l = limiter;

    l->latest_ms = hk_ms_later(l->latest_ms, now_ms);
    l->origin_ms = l->latest_ms;
    l->ramping = l->ramp_ms > 0;
    l->anchor_area = 0;
    l->anchor_tokens = 0;
    l->taken = 0;
}

void hk_limiter_change(struct hk_limiter *limiter, const struct hk_limiter_options *options, int64_t now_ms)
{
    struct hk_limiter *l = limiter;

    l->latest_ms = hk_ms_later(l->latest_ms, now_ms);
    if (l->rate == options->rate_per_s && l->room == options->burst * MILLI &&
        l->ramp_ms == options->ramp_ms && l->ramp_start == options->ramp_start)
        return;
    bool had_rate = l->rate != 0.0;
    double left = tokens_at(l, l->latest_ms);
    l->rate = options->rate_per_s;
    l->room = options->burst * MILLI;
    l->ramp_ms = options->ramp_ms;
    l->ramp_start = options->ramp_start;
    l->origin_ms = l->latest_ms;
    l->ramping = false;
    l->anchor_area = 0;
    l->anchor_tokens = !had_rate || left > l->room ? l->room : left;
    l->taken = 0;
}

/* ---- waiting ---- */

/* The first time after `lo` with a token; there is none at `lo`. */
static int64_t first_token_ms(const struct hk_limiter *l, int64_t lo)
{
    /* as long as it would take at the full rate, then longer and longer until it is too far */
    uint64_t step = (uint64_t)(MILLI / l->rate) + 1;
    int64_t hi = hk_ms_after(lo, step);
    while (hi < INT64_MAX && !has_token(l, hi)) {
        lo = hi;
        step *= 2; /* ends at INT64_MAX long before it could overflow */
        hi = hk_ms_after(lo, step);
    }
    while (hk_ms_since(lo, hi) > 1) {
        int64_t mid = hk_ms_after(lo, hk_ms_since(lo, hi) / 2);
        if (has_token(l, mid))
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

int64_t hk_limiter_ready_at_ms(const struct hk_limiter *limiter, int64_t now_ms)
{
    if (limiter->in_flight == limiter->slots)
        return INT64_MAX;
    int64_t t = hk_ms_later(now_ms, limiter->latest_ms);
    bool held = t < limiter->held_until_ms;
    if (held)
        t = limiter->held_until_ms;
    if (!has_token(limiter, t))
        return first_token_ms(limiter, t);
    return held ? t : now_ms;
}

uint32_t hk_limiter_in_flight(const struct hk_limiter *limiter)
{
    return limiter->in_flight;
}
