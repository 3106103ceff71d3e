/* SPDX-License-Identifier: Apache-2.0 */
/* One run with the user's seed gives the drawn waits; the same loop over many seeds gives what is usual.
 *
 * A policy may allow billions of attempts. Whatever goes past HK_PLAN_ROWS_MAX is therefore reckoned with mean
 * waits, in steps that grow with the attempt's number: after so many draws chance has evened out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "desk/plan.h"

/* The wait and the running total behind each attempt, of all runs: [attempt][run]. */
struct sample {
    uint64_t *waits_ms;
    uint64_t *totals_ms;
};

struct run {
    uint64_t attempts;
    uint64_t elapsed_ms;
    char reason[HK_REASON_MAX];
};

bool hk_plan_facts(const struct hk_policy *policy, enum hk_class cls, struct hk_facts *out_facts)
{
    /* the plain examples first; then whatever the policy's own rules made of the others */
    static const int usual[] = {503, 429, 401, 400, 302};
    char cause[HK_REASON_MAX];
    bool pause = false;

    for (int i = 0; i < (int)(sizeof usual / sizeof usual[0]) + 500; i++) {
        int n_usual = (int)(sizeof usual / sizeof usual[0]);
        struct hk_facts facts = {.status = i < n_usual ? usual[i] : 599 - (i - n_usual)};
        if (hk_policy_classify(policy, &facts, cause, &pause) == cls) {
            *out_facts = facts;
            return true;
        }
    }
    for (int f = 1; f < HK_NFAULTS; f++) {
        struct hk_facts facts = {.fault = (enum hk_fault)f};
        if (hk_policy_classify(policy, &facts, cause, &pause) == cls) {
            *out_facts = facts;
            return true;
        }
    }
    return false;
}

static const struct hk_backoff *backoff_of(const struct hk_policy *policy, enum hk_class cls)
{
    const struct hk_class_rule *rule = hk_policy_class(policy, cls);
    return rule->has_backoff ? &rule->backoff : hk_policy_backoff(policy);
}

static const struct hk_jitter *jitter_of(const struct hk_policy *policy, enum hk_class cls)
{
    const struct hk_class_rule *rule = hk_policy_class(policy, cls);
    return rule->has_jitter ? &rule->jitter : hk_policy_jitter(policy);
}

void hk_plan_limits(const struct hk_policy *policy, enum hk_class cls, struct hk_plan_limits *out_limits)
{
    const struct hk_limits *limits = hk_policy_limits(policy);
    const struct hk_class_rule *rule = hk_policy_class(policy, cls);
    bool both = limits->mode == HK_LIMIT_ALL && limits->max_attempts != 0 && limits->max_elapsed_ms != 0;
    uint32_t total = rule->charge ? limits->max_attempts : 0;

    *out_limits = (struct hk_plan_limits){.attempts = rule->max_attempts};
    if (both && total != 0) {
        out_limits->both_attempts = total;
        out_limits->both_ms = limits->max_elapsed_ms;
    }
    if (both)
        return;
    if (total != 0 && (rule->max_attempts == 0 || total < rule->max_attempts))
        out_limits->attempts = total;
    out_limits->elapsed_ms = limits->max_elapsed_ms;
}

/* A run so far. */
struct progress {
    double attempts; /* made */
    double now_ms;   /* the next one starts */
    double tail_ms;  /* mean wait of the second half of what was drawn */
};

static double mean_wait_ms(const struct hk_policy *policy, enum hk_class cls, double n, double tail_ms)
{
    const struct hk_jitter *jitter = jitter_of(policy, cls);
    uint64_t lo = 0, hi = 0;

    if (jitter->kind == HK_JITTER_DECORRELATED)
        return tail_ms; /* not in the middle of its bounds, but it has settled by now */
    hk_backoff_bounds_ms(backoff_of(policy, cls), jitter, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX, &lo,
                         &hi);
    return ((double)lo + (double)hi) / 2;
}

/* How many attempts may be made at once without passing a limit; 0: the next one is the last. */
static double stride(const struct hk_plan_limits *limits, const struct progress *at, double wait_ms)
{
    double next = at->attempts + 1, steps = fmax(1, floor(at->attempts / 64));
    bool late = limits->elapsed_ms != 0 && at->now_ms + wait_ms >= (double)limits->elapsed_ms;
    bool both_late = limits->both_attempts != 0 && at->now_ms + wait_ms >= (double)limits->both_ms;

    if (late || (limits->attempts != 0 && next >= limits->attempts) ||
        (both_late && next >= limits->both_attempts))
        return 0;
    if (limits->attempts != 0)
        steps = fmin(steps, limits->attempts - next);
    if (limits->elapsed_ms != 0)
        steps = fmin(steps, ceil(((double)limits->elapsed_ms - at->now_ms) / wait_ms) - 1);
    if (limits->both_attempts != 0 && next < limits->both_attempts)
        steps = fmin(steps, limits->both_attempts - next);
    else if (limits->both_attempts != 0)
        steps = fmin(steps, ceil(((double)limits->both_ms - at->now_ms) / wait_ms) - 1);
    return fmax(1, steps);
}

static uint64_t whole(double value)
{
    return value < 0x1.0p63 ? (uint64_t)(value + 0.5) : UINT64_C(1) << 63;
}

/* The rest of a long run. Every policy that hk_policy_check accepts has a limit, so that it ends; a mean wait is
 * never 0, since only the first one may be. */
static void run_on(const struct hk_policy *policy, enum hk_class cls, struct progress *at,
                   struct run *out_run)
{
    struct hk_plan_limits limits;
    double steps = 1;

    hk_plan_limits(policy, cls, &limits);
    while (steps > 0) {
        double ahead = floor(at->attempts / 128);
        double wait_ms = fmax(0.5, mean_wait_ms(policy, cls, at->attempts + 1 + ahead, at->tail_ms));
        steps = stride(&limits, at, wait_ms);
        at->attempts += steps;
        at->now_ms += steps * wait_ms;
    }
    bool counted = (limits.attempts != 0 && at->attempts + 1 >= limits.attempts) || limits.elapsed_ms == 0;
    out_run->attempts = whole(at->attempts + 1);
    out_run->elapsed_ms = whole(at->now_ms);
    (void)snprintf(out_run->reason, sizeof out_run->reason, "%s",
                   counted ? "RETRY_EXHAUSTED" : "DEADLINE_EXCEEDED");
}

/* Called behind each attempt that is followed by another. */
typedef enum hk_code wait_fn(void *arg, uint32_t attempt, uint64_t wait_ms, uint64_t total_ms);

/* A life that only fails. As in hk_execute, an attempt that no time is left for is not made. */
static enum hk_code run_once(const struct hk_policy *policy, const struct hk_facts *facts, uint64_t seed,
                             wait_fn *on_wait, void *arg, struct run *out_run)
{
    struct hk_history history = {.attempts = 0};
    struct hk_decision decision;
    struct hk_rng rng;
    uint64_t now_ms = 0, half_ms = 0;

    *out_run = (struct run){.attempts = 0};
    hk_rng_seed(&rng, seed, HK_RNG_BACKOFF);
    for (uint32_t attempt = 1; attempt <= HK_PLAN_ROWS_MAX; attempt++) {
        out_run->attempts = attempt;
        out_run->elapsed_ms = now_ms;
        hk_policy_decide(policy, NULL, NULL, &history, facts, (int64_t)now_ms, (int64_t)now_ms, &rng,
                         &decision);
        if (decision.verdict != HK_RETRY) {
            memcpy(out_run->reason, decision.reason, sizeof out_run->reason);
            return HK_OK;
        }
        now_ms += decision.wait_ms;
        if (attempt == HK_PLAN_ROWS_MAX / 2)
            half_ms = now_ms;
        enum hk_code rc = on_wait(arg, attempt, decision.wait_ms, now_ms);
        if (rc != HK_OK)
            return rc;
    }
    run_on(policy, decision.failure_class,
           &(struct progress){.attempts = HK_PLAN_ROWS_MAX,
                              .now_ms = (double)now_ms,
                              .tail_ms = (double)(now_ms - half_ms) * 2 / HK_PLAN_ROWS_MAX},
           out_run);
    return HK_OK;
}

static enum hk_code add_row(void *arg, uint32_t attempt, uint64_t wait_ms, uint64_t total_ms)
{
    struct hk_plan *plan = arg;

    (void)total_ms;
    plan->rows[attempt - 1].wait_ms = wait_ms;
    return HK_OK;
}

struct sampler {
    struct sample *samples; /* one per row of the plan */
    uint32_t n_samples;
    uint32_t *counts;
};

static enum hk_code add_sample(void *arg, uint32_t attempt, uint64_t wait_ms, uint64_t total_ms)
{
    struct sampler *s = arg;

    if (attempt > s->n_samples)
        return HK_OK; /* the seeded run ended before: no row shows it */
    uint32_t at = s->counts[attempt - 1]++;
    s->samples[attempt - 1].waits_ms[at] = wait_ms;
    s->samples[attempt - 1].totals_ms[at] = total_ms;
    return HK_OK;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t median(uint64_t *values, uint32_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof values[0], by_value);
    return values[(n - 1) / 2];
}

static void sampler_fini(struct sampler *s)
{
    for (uint32_t i = 0; s->samples != NULL && i < s->n_samples; i++) {
        hk_mem_free(s->samples[i].waits_ms);
        hk_mem_free(s->samples[i].totals_ms);
    }
    hk_mem_free(s->samples);
    hk_mem_free(s->counts);
}

static bool sampler_init(struct sampler *s, uint32_t n_samples, uint32_t n_runs)
{
    s->samples = hk_mem_zalloc(n_samples, sizeof s->samples[0]);
    s->counts = hk_mem_zalloc(n_samples, sizeof s->counts[0]);
    s->n_samples = n_samples;
    if (s->samples == NULL || s->counts == NULL)
        return false;
    for (uint32_t i = 0; i < n_samples; i++) {
        s->samples[i].waits_ms = hk_mem_zalloc(n_runs, sizeof(uint64_t));
        s->samples[i].totals_ms = hk_mem_zalloc(n_runs, sizeof(uint64_t));
        if (s->samples[i].waits_ms == NULL || s->samples[i].totals_ms == NULL)
            return false;
    }
    return true;
}

static void fill_rows(const struct hk_policy *policy, enum hk_class cls, struct sampler *s,
                      struct hk_plan *plan)
{
    struct hk_backoff backoff = *backoff_of(policy, cls);

    if (cls == HK_CLASS_RATE_LIMIT)
        backoff.fast_first = false; /* as hk_policy_decide: nobody hurries back to who asks to slow down */
    for (uint32_t i = 0; i < plan->n_rows; i++) {
        struct hk_plan_row *row = &plan->rows[i];
        row->last = i + 1 == plan->attempts;
        row->runs = s->counts[i];
        if (row->runs == 0)
            continue;
        hk_backoff_bounds_ms(&backoff, jitter_of(policy, cls), i + 1, &row->earliest_ms, &row->latest_ms);
        row->median_ms = median(s->samples[i].waits_ms, row->runs);
        row->cumulative_ms = median(s->samples[i].totals_ms, row->runs);
    }
}

/* How the runs ended. `runs` is sorted in place. */
static int by_reason(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return strcmp(x->reason, y->reason);
}

static int by_attempts(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->attempts > y->attempts) - (x->attempts < y->attempts);
}

static int by_elapsed(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->elapsed_ms > y->elapsed_ms) - (x->elapsed_ms < y->elapsed_ms);
}

static void summarise(struct run *runs, struct hk_plan *plan)
{
    double sum_ms = 0;
    uint32_t streak = 0, longest = 0;

    qsort(runs, plan->n_runs, sizeof runs[0], by_attempts);
    plan->median_attempts = runs[plan->n_runs / 2].attempts;
    qsort(runs, plan->n_runs, sizeof runs[0], by_elapsed);
    plan->median_ms = runs[plan->n_runs / 2].elapsed_ms;
    for (uint32_t i = 0; i < plan->n_runs; i++) {
        sum_ms += (double)runs[i].elapsed_ms;
        plan->estimated = plan->estimated || runs[i].attempts > HK_PLAN_ROWS_MAX;
    }
    plan->mean_ms = whole(sum_ms / plan->n_runs);
    qsort(runs, plan->n_runs, sizeof runs[0], by_reason);
    for (uint32_t i = 0; i < plan->n_runs; i++) {
        streak = i > 0 && by_reason(&runs[i], &runs[i - 1]) == 0 ? streak + 1 : 1;
        if (streak > longest) {
            longest = streak;
            memcpy(plan->usual_reason, runs[i].reason, sizeof plan->usual_reason);
        }
    }
}

static enum hk_code sample_runs(const struct hk_policy *policy, enum hk_class cls,
                                const struct hk_facts *facts, struct hk_plan *plan)
{
    struct sampler sampler = {.samples = NULL};
    struct run *runs = hk_mem_zalloc(plan->n_runs, sizeof runs[0]);
    enum hk_code rc = runs != NULL && sampler_init(&sampler, plan->n_rows, plan->n_runs) ? HK_OK : HK_NOMEM;

    for (uint32_t i = 0; rc == HK_OK && i < plan->n_runs; i++)
        rc = run_once(policy, facts, i + 1, add_sample, &sampler, &runs[i]);
    if (rc == HK_OK) {
        fill_rows(policy, cls, &sampler, plan);
        summarise(runs, plan);
    }
    sampler_fini(&sampler);
    hk_mem_free(runs);
    return rc;
}

enum hk_code hk_plan_make(const struct hk_policy *policy, enum hk_class cls, const struct hk_facts *facts,
                          uint64_t seed, struct hk_plan *out_plan, struct hk_err *err)
{
    struct hk_plan plan = {.rows = hk_mem_zalloc(HK_PLAN_ROWS_MAX, sizeof plan.rows[0])};
    struct run run;

    if (cls == HK_CLASS_SUCCESS || cls >= HK_NCLASSES) {
        hk_plan_fini(&plan);
        return hk_err_set(err, HK_INVALID, "only failures have a plan");
    }
    enum hk_code rc = plan.rows == NULL ? HK_NOMEM : run_once(policy, facts, seed, add_row, &plan, &run);
    if (rc == HK_OK) {
        plan.attempts = run.attempts;
        plan.n_rows = run.attempts < HK_PLAN_ROWS_MAX ? (uint32_t)run.attempts : HK_PLAN_ROWS_MAX;
        plan.estimated = run.attempts > HK_PLAN_ROWS_MAX;
        plan.n_runs = plan.estimated ? HK_PLAN_FEW_RUNS : HK_PLAN_RUNS;
        plan.elapsed_ms = run.elapsed_ms;
        memcpy(plan.reason, run.reason, sizeof plan.reason);
        rc = sample_runs(policy, cls, facts, &plan);
    }
    if (rc != HK_OK) {
        hk_plan_fini(&plan);
        return hk_err_set(err, rc, "not enough memory for the plan");
    }
    *out_plan = plan;
    return HK_OK;
}

void hk_plan_fini(struct hk_plan *plan)
{
    hk_mem_free(plan->rows);
    plan->rows = NULL;
    plan->n_rows = 0;
}
