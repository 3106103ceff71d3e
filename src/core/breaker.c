/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker: stops calls to a destination that keeps failing, and feels its way back.
 *
 * DESIGN
 * - Stored are three phases only. "Open" and "half-open" are one phase, TRIPPED, told apart by the time: nothing
 *   has to run when the open time ends, and hk_breaker_state can be const.
 * - Every change of phase starts a new generation, and a permit carries the generation that it was given in. An
 *   outcome of an earlier one is ignored: it tells about a destination as it was.
 * - A probe that is still out when its generation ends keeps its slot until it comes back, so that a destination
 *   in trouble never has more than `probes` probes to answer, hung ones included. Only a reset forgets them.
 * - Closing forgets outcomes at once, but the growth of the open time only after window_ms without opening again:
 *   a destination that passes each probe and falls over under load is left alone longer each time. (Were growth
 *   forgotten on closing, it would be hit every open_ms for ever.)
 * - The rule of failures in a row is exact: it remembers the time of each of the last `failures` failures.
 * - The rule of the ratio counts in slices of window_ms/20, rounded up, and drops a slice as a whole: an outcome
 *   of an age of window_ms or more never counts, and one of up to window_ms - 2 slices always does.
 * - Queries do not move the clock: only the calls that change something remember the latest time. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include <hikyaku/breaker.h>

#include "base/mem.h"
#include "base/ms.h"
#include "base/parse.h"
#include "core/bounds.h"

#define FAILURES_MAX 1000u
#define SLICES       20u

enum phase {
    CLOSED,
    TRIPPED,
    ISOLATED
};

struct slice {
    uint64_t number; /* which stretch of time it counts; another number: it is stale */
    uint64_t total;
    uint64_t failed;
};

struct hk_breaker {
    struct hk_breaker_options options;
    enum phase phase;
    uint64_t generation;
    int64_t latest_ms;
    int64_t entered_ms; /* when this phase began */

    /* CLOSED: the counts that the rules need */
    struct slice slices[SLICES];
    uint64_t slice_ms;
    uint64_t n_slices;
    uint64_t streak; /* failures since the last success */

    /* TRIPPED */
    int64_t open_until_ms;
    double grown_ms; /* the last open time before jitter; 0: the next one is the first again */
    uint32_t probe_successes;

    uint32_t probes_out;     /* of this and of earlier generations … */
    uint64_t probes_counted; /* … from this one on */

    int64_t failed_at_ms[]; /* ring of options.failures times, indexed by streak */
};

/* ---- options ---- */

void hk_breaker_options_init(struct hk_breaker_options *options)
{
    *options = (struct hk_breaker_options){
        .failures = 5,
        .ratio = 0,
        .min_throughput = 20,
        .window_ms = 30 * 1000,
        .open_ms = 10 * 1000,
        .open_factor = 2,
        .open_cap_ms = 5 * 60 * 1000,
        .open_jitter = 0.1,
        .probes = 1,
        .successes = 1,
    };
}

enum hk_code hk_breaker_options_check(const struct hk_breaker_options *options, struct hk_err *err)
{
    const struct hk_breaker_options *o = options;

    enum hk_code rc = hk_bounds_u64("failures", o->failures, 0, FAILURES_MAX, err);
    if (rc == HK_OK)
        rc = hk_bounds_double("ratio", o->ratio, 0, 1, err);
    if (rc == HK_OK && o->failures == 0 && o->ratio <= 0)
        rc = hk_err_set(err, HK_INVALID, "failures, ratio: one of the two must be set");
    if (rc == HK_OK)
        rc = hk_bounds_u64("window_ms", o->window_ms, 1, HK_DURATION_MAX_MS, err);
    if (rc == HK_OK)
        rc = hk_bounds_u64("open_ms", o->open_ms, 1, HK_DURATION_MAX_MS, err);
    if (rc == HK_OK)
        rc = hk_bounds_double("open_factor", o->open_factor, 1, HUGE_VAL, err);
    if (rc == HK_OK)
        rc = hk_bounds_u64("open_cap_ms", o->open_cap_ms, 1, HK_DURATION_MAX_MS, err);
    if (rc == HK_OK)
        rc = hk_bounds_double("open_jitter", o->open_jitter, 0, 1, err);
    if (rc == HK_OK)
        rc = hk_bounds_u64("probes", o->probes, 1, UINT32_MAX, err);
    if (rc == HK_OK)
        rc = hk_bounds_u64("successes", o->successes, 1, UINT32_MAX, err);
    return rc;
}

/* ---- time ---- */

static void tick(struct hk_breaker *b, int64_t now_ms)
{
    b->latest_ms = hk_ms_later(b->latest_ms, now_ms);
}

/* ---- life ---- */

/* The one place where the phase changes. */
static void enter(struct hk_breaker *b, enum phase phase)
{
    b->phase = phase;
    b->generation++;
    b->entered_ms = b->latest_ms;
    b->streak = 0;
    memset(b->slices, 0, sizeof b->slices);
    b->probe_successes = 0;
}

static void forget(struct hk_breaker *b)
{
    enter(b, CLOSED);
    b->grown_ms = 0;
    b->probes_out = 0;
    b->probes_counted = b->generation;
}

enum hk_code hk_breaker_new(const struct hk_breaker_options *options, struct hk_breaker **out_breaker,
                            struct hk_err *err)
{
    enum hk_code rc = hk_breaker_options_check(options, err);
    if (rc != HK_OK)
        return rc;
    struct hk_breaker *b = hk_mem_zalloc(1, sizeof *b + options->failures * sizeof b->failed_at_ms[0]);
    if (!b)
        return hk_err_set(err, HK_NOMEM, "out of memory for a circuit breaker");
    b->options = *options;
    b->latest_ms = INT64_MIN;
    b->slice_ms = (options->window_ms - 1) / SLICES + 1;
    b->n_slices = options->window_ms / b->slice_ms;
    forget(b);
    *out_breaker = b;
    return HK_OK;
}

void hk_breaker_free(struct hk_breaker *breaker)
{
    hk_mem_free(breaker);
}

/* ---- opening ---- */

static uint64_t draw_open_ms(struct hk_breaker *b, struct hk_rng *rng)
{
    const struct hk_breaker_options *o = &b->options;
    double cap_ms = (double)o->open_cap_ms;

    double ms = b->grown_ms > 0 ? b->grown_ms * o->open_factor : (double)o->open_ms;
    b->grown_ms = ms < cap_ms ? ms : cap_ms;
    uint64_t base_ms = (uint64_t)b->grown_ms;
    uint64_t extra_ms = hk_rng_between(rng, 0, (uint64_t)(b->grown_ms * o->open_jitter));
    return base_ms + extra_ms < o->open_cap_ms ? base_ms + extra_ms : o->open_cap_ms;
}

static void trip(struct hk_breaker *b, struct hk_rng *rng)
{
    enter(b, TRIPPED);
    b->open_until_ms = hk_ms_after(b->latest_ms, draw_open_ms(b, rng));
}

/* One more failure: were there too many in a row? */
static bool streak_trips(struct hk_breaker *b)
{
    uint64_t n = b->options.failures;
    if (n == 0)
        return false;
    b->failed_at_ms[b->streak % n] = b->latest_ms;
    b->streak++;
    if (b->streak < n)
        return false;
    int64_t oldest_ms = b->failed_at_ms[b->streak % n];
    return hk_ms_since(oldest_ms, b->latest_ms) < b->options.window_ms;
}

/* One more outcome: is the share of failures too high? */
static bool ratio_trips(struct hk_breaker *b, bool success)
{
    if (b->options.ratio <= 0)
        return false;
    uint64_t number = hk_ms_since(INT64_MIN, b->latest_ms) / b->slice_ms;
    struct slice *mine = &b->slices[number % b->n_slices];
    if (mine->number != number)
        *mine = (struct slice){.number = number};
    mine->total++;
    mine->failed += !success;

    uint64_t total = 0;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < b->n_slices; i++) {
        const struct slice *s = &b->slices[i];
        if (number - s->number >= b->n_slices)
            continue;
        total += s->total;
        failed += s->failed;
    }
    /* divided, not multiplied: 2 of 20 is exactly the double that 0.1 is read as */
    return total >= b->options.min_throughput && (double)failed / (double)total >= b->options.ratio;
}

static void record_call(struct hk_breaker *b, bool success, struct hk_rng *rng)
{
    bool too_many = false;
    if (success)
        b->streak = 0;
    else
        too_many = streak_trips(b);
    bool too_large = ratio_trips(b, success);
    if (!too_many && !too_large)
        return;
    if (hk_ms_since(b->entered_ms, b->latest_ms) >= b->options.window_ms)
        b->grown_ms = 0;
    trip(b, rng);
}

static void record_probe(struct hk_breaker *b, bool success, struct hk_rng *rng)
{
    if (!success)
        trip(b, rng);
    else if (++b->probe_successes >= b->options.successes)
        enter(b, CLOSED);
}

/* ---- permits ---- */

/* generation * 2, + 1 for a probe; generations start at 1, so that no permit is 0 */
static hk_breaker_permit make_permit(const struct hk_breaker *b, bool probe)
{
    return b->generation << 1 | probe;
}

static bool is_probe(hk_breaker_permit permit)
{
    return permit & 1;
}

/* Frees the slot of a probe. Returns whether the permit is of this generation. */
static bool take_back(struct hk_breaker *b, hk_breaker_permit permit)
{
    uint64_t generation = permit >> 1;
    if (is_probe(permit) && generation >= b->probes_counted) {
        assert(b->probes_out > 0); /* else a permit was given back twice */
        b->probes_out--;
    }
    return generation == b->generation;
}

static bool may_pass(const struct hk_breaker *b, enum hk_breaker_state state)
{
    switch (state) {
    case HK_BREAKER_CLOSED:
        return true;
    case HK_BREAKER_HALF_OPEN:
        return b->probes_out < b->options.probes;
    case HK_BREAKER_OPEN:
    case HK_BREAKER_ISOLATED:
        break;
    }
    return false;
}

bool hk_breaker_acquire(struct hk_breaker *breaker, int64_t now_ms, hk_breaker_permit *out_permit)
{
    tick(breaker, now_ms);
    enum hk_breaker_state state = hk_breaker_state(breaker, now_ms);
    if (!may_pass(breaker, state))
        return false;
    bool probe = state == HK_BREAKER_HALF_OPEN;
    breaker->probes_out += probe;
    *out_permit = make_permit(breaker, probe);
    return true;
}

void hk_breaker_record(struct hk_breaker *breaker, hk_breaker_permit permit, bool success, int64_t now_ms,
                       struct hk_rng *rng)
{
    tick(breaker, now_ms);
    if (!take_back(breaker, permit))
        return;
    if (is_probe(permit))
        record_probe(breaker, success, rng);
    else
        record_call(breaker, success, rng);
}

void hk_breaker_release(struct hk_breaker *breaker, hk_breaker_permit permit, int64_t now_ms)
{
    tick(breaker, now_ms);
    (void)take_back(breaker, permit);
}

/* ---- the operator's side ---- */

void hk_breaker_trip(struct hk_breaker *breaker, int64_t until_ms, int64_t now_ms)
{
    tick(breaker, now_ms);
    bool longer = breaker->phase == TRIPPED && breaker->open_until_ms >= until_ms;
    if (breaker->phase == ISOLATED || longer || until_ms <= breaker->latest_ms)
        return;
    double left_ms = (double)hk_ms_since(breaker->latest_ms, until_ms),
           first_ms = (double)breaker->options.open_ms, cap_ms = (double)breaker->options.open_cap_ms;
    double open_ms = left_ms > first_ms ? left_ms : first_ms; /* little may be left of a long time */
    enter(breaker, TRIPPED);
    breaker->open_until_ms = until_ms;
    if (open_ms > breaker->grown_ms) /* the next open time grows from this one */
        breaker->grown_ms = open_ms < cap_ms ? open_ms : cap_ms;
}

void hk_breaker_isolate(struct hk_breaker *breaker, int64_t now_ms)
{
    tick(breaker, now_ms);
    enter(breaker, ISOLATED);
}

void hk_breaker_reset(struct hk_breaker *breaker, int64_t now_ms)
{
    tick(breaker, now_ms);
    forget(breaker);
}

enum hk_breaker_state hk_breaker_state(const struct hk_breaker *breaker, int64_t now_ms)
{
    if (breaker->phase == CLOSED)
        return HK_BREAKER_CLOSED;
    if (breaker->phase == ISOLATED)
        return HK_BREAKER_ISOLATED;
    bool over = hk_ms_later(now_ms, breaker->latest_ms) >= breaker->open_until_ms;
    return over ? HK_BREAKER_HALF_OPEN : HK_BREAKER_OPEN;
}

int64_t hk_breaker_ready_at_ms(const struct hk_breaker *breaker, int64_t now_ms)
{
    enum hk_breaker_state state = hk_breaker_state(breaker, now_ms);
    if (may_pass(breaker, state))
        return now_ms;
    /* once it is half-open a slot is free: the probe that ended the last half-open period has come back */
    return state == HK_BREAKER_OPEN ? breaker->open_until_ms : INT64_MAX;
}

const char *hk_breaker_state_name(enum hk_breaker_state state)
{
    switch (state) {
    case HK_BREAKER_CLOSED:
        return "closed";
    case HK_BREAKER_OPEN:
        return "open";
    case HK_BREAKER_HALF_OPEN:
        return "half_open";
    case HK_BREAKER_ISOLATED:
        return "isolated";
    }
    return "unknown";
}
