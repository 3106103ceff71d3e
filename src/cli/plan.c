/* SPDX-License-Identifier: Apache-2.0 */
/* One run with the user's seed gives the drawn waits; the same loop over many seeds gives what is usual. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/plan.h"

/* The wait and the running total behind each attempt, of all runs: [attempt][run]. */
struct sample {
    uint64_t *waits_ms;
    uint64_t *totals_ms;
};

struct run {
    uint32_t attempts;
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

/* Called behind each attempt that is followed by another. */
typedef enum hk_code wait_fn(void *arg, uint32_t attempt, uint64_t wait_ms, uint64_t total_ms);

/* A life that only fails. As in hk_execute, an attempt that no time is left for is not made. */
static enum hk_code run_once(const struct hk_policy *policy, const struct hk_facts *facts, uint64_t seed,
                             wait_fn *on_wait, void *arg, struct run *out_run)
{
    struct hk_history history = {.attempts = 0};
    struct hk_decision decision;
    struct hk_rng rng;
    uint64_t now_ms = 0;

    *out_run = (struct run){.attempts = 0};
    hk_rng_seed(&rng, seed, HK_RNG_BACKOFF);
    while (out_run->attempts < HK_PLAN_ATTEMPTS_MAX) {
        out_run->attempts++;
        out_run->elapsed_ms = now_ms;
        hk_policy_decide(policy, NULL, NULL, &history, facts, (int64_t)now_ms, (int64_t)now_ms, &rng,
                         &decision);
        if (decision.verdict != HK_RETRY) {
            memcpy(out_run->reason, decision.reason, sizeof out_run->reason);
            break;
        }
        if (out_run->attempts == HK_PLAN_ATTEMPTS_MAX)
            break;
        now_ms += decision.wait_ms;
        enum hk_code rc = on_wait(arg, out_run->attempts, decision.wait_ms, now_ms);
        if (rc != HK_OK)
            return rc;
    }
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

static bool sampler_init(struct sampler *s, uint32_t n_samples)
{
    s->samples = hk_mem_zalloc(n_samples, sizeof s->samples[0]);
    s->counts = hk_mem_zalloc(n_samples, sizeof s->counts[0]);
    s->n_samples = n_samples;
    if (s->samples == NULL || s->counts == NULL)
        return false;
    for (uint32_t i = 0; i < n_samples; i++) {
        s->samples[i].waits_ms = hk_mem_zalloc(HK_PLAN_RUNS, sizeof(uint64_t));
        s->samples[i].totals_ms = hk_mem_zalloc(HK_PLAN_RUNS, sizeof(uint64_t));
        if (s->samples[i].waits_ms == NULL || s->samples[i].totals_ms == NULL)
            return false;
    }
    return true;
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

static void fill_rows(const struct hk_policy *policy, enum hk_class cls, struct sampler *s,
                      struct hk_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_rows; i++) {
        struct hk_plan_row *row = &plan->rows[i];
        row->last = i + 1 == plan->n_rows;
        row->runs = s->counts[i];
        if (row->runs == 0)
            continue;
        hk_backoff_bounds_ms(backoff_of(policy, cls), jitter_of(policy, cls), i + 1, &row->earliest_ms,
                             &row->latest_ms);
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

    qsort(runs, HK_PLAN_RUNS, sizeof runs[0], by_attempts);
    plan->median_attempts = runs[HK_PLAN_RUNS / 2].attempts;
    qsort(runs, HK_PLAN_RUNS, sizeof runs[0], by_elapsed);
    plan->median_ms = runs[HK_PLAN_RUNS / 2].elapsed_ms;
    for (uint32_t i = 0; i < HK_PLAN_RUNS; i++)
        sum_ms += (double)runs[i].elapsed_ms;
    plan->mean_ms = (uint64_t)(sum_ms / HK_PLAN_RUNS + 0.5);
    qsort(runs, HK_PLAN_RUNS, sizeof runs[0], by_reason);
    for (uint32_t i = 0; i < HK_PLAN_RUNS; i++) {
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
    struct run *runs = hk_mem_zalloc(HK_PLAN_RUNS, sizeof runs[0]);
    enum hk_code rc = runs != NULL && sampler_init(&sampler, plan->n_rows) ? HK_OK : HK_NOMEM;

    for (uint32_t i = 0; rc == HK_OK && i < HK_PLAN_RUNS; i++)
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
    struct hk_plan plan = {.rows = hk_mem_zalloc(HK_PLAN_ATTEMPTS_MAX, sizeof plan.rows[0])};
    struct run run;

    if (cls == HK_CLASS_SUCCESS || cls >= HK_NCLASSES) {
        hk_plan_fini(&plan);
        return hk_err_set(err, HK_INVALID, "only failures have a plan");
    }
    enum hk_code rc = plan.rows == NULL ? HK_NOMEM : run_once(policy, facts, seed, add_row, &plan, &run);
    if (rc == HK_OK) {
        plan.n_rows = run.attempts;
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
