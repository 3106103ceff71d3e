/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the next step of a redrive.
 *
 *   canary -> as many as the rate allows, step by step -> wait for the last outcomes -> done
 *
 * and at each step: did too many fail? are too many on their way?
 *
 * The rate is a bucket of tokens that holds half a second's worth: over any time t no more than rate * (t + 0.5 s) letters
 * go out (and one letter at once, however low the rate). A step waits until half the bucket is there, so that a job costs
 * a few transactions a second whatever its rate. Time is counted in ms since the job's start, in doubles: what comes from
 * a store may be any number. */
#include <math.h>

#include "core/redrive.h"

#define RATE_MAX  1e6 /* letters/s; nothing is faster, and no sum overflows */
#define RAMP_FROM 0.1 /* of the rate */
#define BUCKET_S  0.5
/* So much of the rate may be on its way: a destination that is slower sets the pace. */
#define OUTSTANDING_S     10.0
#define OUTSTANDING_LEAST 10

enum {
    WAIT_LEAST_MS = 10,
    ASK_LEAST_MS = 250,
    ASK_MOST_MS = 30000 /* between looks at outcomes that take long */
};

static const char *const names[HK_NREDRIVE_STATUSES] = {
    [HK_REDRIVE_RUNNING] = "running",
    [HK_REDRIVE_DONE] = "done",
    [HK_REDRIVE_CANCELLED] = "cancelled",
    [HK_REDRIVE_ABORTED] = "aborted",
};

const char *hk_redrive_status_name(enum hk_redrive_status status)
{
    return (unsigned)status < HK_NREDRIVE_STATUSES ? names[status] : "unknown";
}

/* ---- the rate ---- */

static double rate_per_ms(const struct hk_redrive_pace *pace)
{
    double rate = pace->rate_per_s > 0 ? pace->rate_per_s : HK_REDRIVE_RATE; /* NaN is not above 0 */
    return fmin(rate, RATE_MAX) / 1000;
}

/* ms since the start, none before it. */
static double since_start(const struct hk_redrive_facts *facts, int64_t at_ms)
{
    return fmax((double)at_ms - (double)facts->started_ms, 0);
}

/* How many letters the rate has allowed after `x` ms. */
static double allowed(const struct hk_redrive_pace *pace, double x)
{
    double rate = rate_per_ms(pace), ramp = (double)pace->ramp_ms;
    double up = fmin(x, ramp);
    double before = ramp > 0 ? up * (RAMP_FROM + (1 - RAMP_FROM) / 2 * up / ramp) : 0;
    return rate * (before + (x - up));
}

/* After how many ms it has allowed `n`: the other way round. */
static double when_allowed(const struct hk_redrive_pace *pace, double n)
{
    double rate = rate_per_ms(pace), ramp = (double)pace->ramp_ms;
    double in_ramp = allowed(pace, ramp);
    if (n >= in_ramp)
        return ramp + (n - in_ramp) / rate;
    /* half x^2 + RAMP_FROM x = ms, solved in the form that loses no digits when half is tiny */
    double half = (1 - RAMP_FROM) / 2 / ramp, ms = n / rate;
    return 2 * ms / (RAMP_FROM + sqrt(RAMP_FROM * RAMP_FROM + 4 * half * ms));
}

static double bucket(const struct hk_redrive_pace *pace, double x)
{
    double ramp = (double)pace->ramp_ms;
    double share = x < ramp ? RAMP_FROM + (1 - RAMP_FROM) * x / ramp : 1;
    return fmax(rate_per_ms(pace) * share * BUCKET_S * 1000, 1);
}

static double tokens_at(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts,
                        int64_t now_ms)
{
    double x = since_start(facts, now_ms), then = 0;
    double kept = 1; /* a job begins with one */
    if (facts->tokens_ms) {
        then = fmin(since_start(facts, facts->tokens_ms), x);
        kept = fmax(facts->tokens, 0); /* also where it is not a number */
    }
    return fmin(kept + allowed(pace, x) - allowed(pace, then), bucket(pace, x));
}

/* ---- what became of them ---- */

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t outstanding(const struct hk_redrive_facts *facts)
{
    return minus(minus(facts->requeued, facts->resolved), facts->failed);
}

static uint64_t outstanding_max(const struct hk_redrive_pace *pace)
{
    return (uint64_t)fmax(rate_per_ms(pace) * 1000 * OUTSTANDING_S, OUTSTANDING_LEAST);
}

/* More went out than the canary: so it has arrived, whatever became of its letters since. */
static bool in_canary(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts)
{
    return facts->requeued < pace->canary ||
           (facts->requeued == pace->canary && facts->resolved < pace->canary);
}

/* One that struggles may arrive yet, but as long as more could follow it counts: the attempts of a whole life can take
 * days. */
static bool too_many_fail(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts)
{
    uint64_t least = facts->exhausted ? 0 : least_of(facts->total, HK_REDRIVE_MIN_OUTCOMES);
    double bad = (double)facts->failed + (facts->exhausted ? 0 : (double)facts->struggling);
    double seen = bad + (double)facts->resolved;
    return pace->abort_ratio > 0 && seen >= (double)least && bad > pace->abort_ratio * seen;
}

/* ---- the next step ---- */

static void wait_for_outcomes(const struct hk_redrive_facts *facts, int64_t now_ms,
                              struct hk_redrive_next *out)
{
    double waited = fmax((double)now_ms - (double)facts->tokens_ms, 0);
    out->wake_ms = now_ms + (int64_t)fmin(fmax(waited / 4, ASK_LEAST_MS), ASK_MOST_MS);
}

/* When there are `want` tokens, of which `have` are there. */
static int64_t when_tokens(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts,
                           int64_t now_ms, double have, double want)
{
    double x = since_start(facts, now_ms);
    double wait = when_allowed(pace, allowed(pace, x) + want - have) - x;
    return now_ms + (int64_t)fmin(fmax(ceil(wait), WAIT_LEAST_MS), ASK_MOST_MS);
}

/* Half a bucket a step, and of the canary no more than is left of it. */
static double step_size(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts,
                        int64_t now_ms, uint64_t most)
{
    double half = floor(bucket(pace, since_start(facts, now_ms)) / 2);
    return fmin(fmax(half, 1), (double)most);
}

static void go_on(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts, int64_t now_ms,
                  uint64_t most, struct hk_redrive_next *out)
{
    double want = step_size(pace, facts, now_ms, most);
    double room = (double)minus(outstanding_max(pace), outstanding(facts));
    if (most == 0 || room < want) {
        wait_for_outcomes(facts, now_ms, out);
        return;
    }
    if (out->tokens >= want) {
        out->step = HK_REDRIVE_REQUEUE;
        out->n = (uint32_t)fmin(fmin(floor(out->tokens), room), (double)most);
        out->tokens -= out->n;
    }
    out->wake_ms = out->tokens >= want ? now_ms : when_tokens(pace, facts, now_ms, out->tokens, want);
}

static void abort_job(struct hk_redrive_next *out, const char *why)
{
    out->step = HK_REDRIVE_ABORT;
    out->why = why;
}

void hk_redrive_decide(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts,
                       int64_t now_ms, struct hk_redrive_next *out)
{
    bool canary = in_canary(pace, facts);
    uint64_t most = canary ? minus(pace->canary, facts->requeued) : HK_REDRIVE_STEP;

    *out = (struct hk_redrive_next){.step = HK_REDRIVE_WAIT, .tokens = tokens_at(pace, facts, now_ms)};
    if (canary && facts->failed)
        abort_job(out, "a canary failed again");
    else if (facts->exhausted && outstanding(facts))
        wait_for_outcomes(facts, now_ms, out);
    else if (!canary && too_many_fail(pace, facts))
        abort_job(out, "too many failed again");
    else if (facts->exhausted)
        out->step = HK_REDRIVE_FINISH;
    else
        go_on(pace, facts, now_ms, least_of(most, HK_REDRIVE_STEP), out);
}

uint64_t hk_redrive_eta_ms(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts,
                           int64_t now_ms)
{
    double left = facts->exhausted ? 0 : (double)minus(facts->total, facts->requeued);
    double have = tokens_at(pace, facts, now_ms);
    if (left <= have)
        return 0;
    double x = since_start(facts, now_ms);
    double ms = ceil(when_allowed(pace, allowed(pace, x) + left - have) - x);
    return ms < 0x1p63 ? (uint64_t)ms : INT64_MAX;
}
