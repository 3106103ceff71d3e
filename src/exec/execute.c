/* SPDX-License-Identifier: Apache-2.0 */
/* hk_execute: the blocking shell around the pure core.
 *
 *   admit (breaker, limiter) -> attempt -> decide -> budget -> tell -> wait -> admit …
 *
 * A breaker that is open and a limiter that is empty are waited for without charging an attempt, as long as
 * the wait fits into the time that the policy leaves. */
#include <stdio.h>
#include <string.h>

#include "base/ms.h"
#include "core/policy_impl.h"
#include "exec/clock.h"

struct run {
    const struct hk_execute_options *options;
    const struct hk_policy *policy;
    struct hk_limits limits;
    struct hk_clock clock;
    struct hk_history history;
    struct hk_rng backoff_rng, breaker_rng;
    void *instance;
    double paid; /* what the last retry cost the budget */
    int64_t start_wall_ms;
    struct hk_execute_result result;
};

static int64_t now_ms(const struct run *run)
{
    return run->clock.now_ms(run->clock.arg);
}

static enum hk_code pause_ms(struct run *run, uint64_t ms)
{
    if (ms == 0)
        return HK_OK;
    run->result.slept_ms += ms;
    return run->clock.sleep_ms(run->clock.arg, ms) ? HK_OK : HK_CANCELLED;
}

static void end_with(struct run *run, const char *reason)
{
    struct hk_decision *d = &run->result.decision;
    d->verdict = HK_DEAD;
    d->wait_ms = 0;
    snprintf(d->reason, sizeof d->reason, "%s", reason);
}

static enum hk_code unavailable(struct run *run, const char *reason)
{
    end_with(run, reason);
    return HK_UNAVAILABLE;
}

static enum hk_code wait_until(struct run *run, int64_t ready_ms, const char *reason)
{
    int64_t now = now_ms(run);
    if (ready_ms == INT64_MAX)
        return unavailable(run, reason);
    uint64_t wait = ready_ms > now ? (uint64_t)ready_ms - (uint64_t)now : 1;
    if (wait >= hk_limits_time_left_ms(&run->limits, &run->history, now))
        return unavailable(run, reason);
    return pause_ms(run, wait);
}

/* Passes breaker and limiter, waiting for both. The breaker is asked for its time first, so that waiting for it costs no
 * token; its permit is taken last, so that a probe's place is not kept while waiting for a token. */
static enum hk_code admit(struct run *run, hk_breaker_permit *out_permit)
{
    struct hk_limiter *limiter = run->options->limiter;
    struct hk_breaker *breaker = run->options->breaker;

    for (;;) {
        enum hk_code rc;
        int64_t now = now_ms(run);
        int64_t breaker_at = breaker ? hk_breaker_ready_at_ms(breaker, now) : now;
        if (breaker_at > now) {
            rc = wait_until(run, breaker_at, "BREAKER_OPEN");
        } else if (limiter && !hk_limiter_acquire(limiter, now)) {
            rc = wait_until(run, hk_limiter_ready_at_ms(limiter, now), "LIMITED");
        } else {
            if (breaker)
                (void)hk_breaker_acquire(breaker, now, out_permit); /* it is ready at this very time */
            return HK_OK;
        }
        if (rc != HK_OK)
            return rc;
    }
}

static struct hk_attempt next_attempt(const struct run *run)
{
    int64_t now = now_ms(run);
    uint64_t room = hk_limits_time_left_ms(&run->limits, &run->history, now);
    if (run->limits.timeout_ms && run->limits.timeout_ms < room)
        room = run->limits.timeout_ms;
    return (struct hk_attempt){
        .number = run->result.attempts + 1, .timeout_ms = room, .deadline_ms = hk_ms_after(now, room)};
}

/* The function's return code as a fact, where it gave none itself. */
static void complete_facts(struct hk_facts *facts, enum hk_code rc)
{
    if (rc == HK_OK || facts->fault != HK_FAULT_NONE)
        return;
    if (facts->status >= 400)
        return;        /* the destination's own word says more */
    facts->status = 0; /* an attempt that failed on our side is no success, whatever was read before */
    facts->fault = rc == HK_TIMEOUT ? HK_FAULT_TIMEOUT : HK_FAULT_LOCAL;
    if (facts->error.len == 0)
        facts->error = (struct hk_str){hk_code_name(rc), strlen(hk_code_name(rc))};
}

static void settle_guards(struct run *run, hk_breaker_permit permit)
{
    const struct hk_decision *d = &run->result.decision;
    struct hk_breaker *breaker = run->options->breaker;
    struct hk_limiter *limiter = run->options->limiter;

    if (breaker && d->own_fault)
        hk_breaker_release(breaker, permit, now_ms(run));
    else if (breaker)
        hk_breaker_record(breaker, permit, !d->unhealthy, now_ms(run), &run->breaker_rng);
    if (limiter) {
        hk_limiter_release(limiter);
        if (d->hold_ms)
            hk_limiter_hold(limiter, hk_ms_after(now_ms(run), d->hold_ms));
    }
}

/* Nothing was called: gives back what admit took. */
static void release_guards(struct run *run, hk_breaker_permit permit)
{
    if (run->options->breaker)
        hk_breaker_release(run->options->breaker, permit, now_ms(run));
    if (run->options->limiter)
        hk_limiter_release(run->options->limiter);
}

static enum hk_code attempt_once(struct run *run, hk_attempt_fn *fn, void *arg, struct hk_facts *facts)
{
    hk_breaker_permit permit = 0;
    enum hk_code rc = admit(run, &permit);
    if (rc != HK_OK)
        return rc;
    struct hk_attempt attempt = next_attempt(run);
    if (attempt.timeout_ms == 0) { /* a sleep that took too long: what cannot fit is not started */
        release_guards(run, permit);
        end_with(run, HK_REASON_DEADLINE);
        return HK_GAVE_UP;
    }
    int64_t began = now_ms(run);
    *facts = (struct hk_facts){.fault = HK_FAULT_NONE};
    rc = fn(arg, &attempt, facts);
    run->result.attempts++;
    if (rc == HK_CANCELLED) {
        release_guards(run, permit);
        return rc;
    }
    complete_facts(facts, rc);
    int64_t ended = now_ms(run);
    if (facts->duration_ms == 0 && ended > began)
        facts->duration_ms = (uint64_t)ended - (uint64_t)began;
    hk_policy_decide(run->policy, run->instance, &run->options->overrides, &run->history, facts, ended,
                     run->clock.wall_ms(run->clock.arg), &run->backoff_rng, &run->result.decision);
    settle_guards(run, permit);
    return HK_OK;
}

static const char *policy_type(const struct run *run)
{
    const struct hk_decision *d = &run->result.decision;
    const struct hk_class_rule *rule = hk_policy_class(run->policy, d->failure_class);
    if (run->policy->ops)
        return "custom";
    if (d->hinted)
        return "adaptive";
    return hk_backoff_kind_name(rule->has_backoff ? rule->backoff.kind : run->policy->backoff.kind);
}

static void tell_retry(const struct run *run, const struct hk_facts *facts)
{
    const struct hk_execute_options *o = run->options;
    char message[256];
    int shown = facts->error.len < sizeof message ? (int)facts->error.len : (int)sizeof message - 1;
    snprintf(message, sizeof message, "%.*s", shown, facts->error.ptr ? facts->error.ptr : "");
    o->on_retry(o->on_retry_arg, &(struct hk_retry_event){
                                     .request_id = o->request_id ? o->request_id : "",
                                     .policy = run->policy->name,
                                     .policy_type = policy_type(run),
                                     .operation = o->operation ? o->operation : "",
                                     .operation_start_ms = run->start_wall_ms,
                                     .operation_end_ms = run->clock.wall_ms(run->clock.arg),
                                     .iteration = run->history.attempts - 1,
                                     .sleep_ms = run->result.decision.wait_ms,
                                     .error_type = run->result.decision.cause,
                                     .error_message = message,
                                     .failure_class = run->result.decision.failure_class,
                                 });
}

/* Tells the budget of a failure; true: it lets us retry. What is not worth a retry is not its business. */
static bool pay(struct run *run, bool timeout)
{
    struct hk_budget *budget = run->options->budget;
    const struct hk_decision *d = &run->result.decision;
    const struct hk_class_rule *rule = hk_policy_class(run->policy, d->failure_class);
    if (!budget || !rule->retry)
        return true;
    run->paid = hk_budget_cost(budget, timeout);
    return hk_budget_failure(budget, timeout, d->verdict == HK_RETRY);
}

static enum hk_code loop(struct run *run, hk_attempt_fn *fn, void *arg)
{
    struct hk_decision *d = &run->result.decision;
    struct hk_facts facts;

    for (;;) {
        enum hk_code rc = attempt_once(run, fn, arg, &facts);
        if (rc != HK_OK)
            return rc;
        if (d->verdict == HK_DELIVERED) {
            if (run->options->budget)
                hk_budget_success(run->options->budget, run->paid);
            return HK_OK;
        }
        bool paid = pay(run, facts.fault == HK_FAULT_TIMEOUT);
        if (d->verdict == HK_DEAD)
            return HK_GAVE_UP;
        if (!paid) {
            end_with(run, "RETRY_BUDGET_SPENT");
            return HK_GAVE_UP;
        }
        if (run->options->on_retry)
            tell_retry(run, &facts);
        rc = pause_ms(run, d->wait_ms);
        if (rc != HK_OK)
            return rc;
    }
}

static enum hk_code explain(const struct run *run, enum hk_code rc, struct hk_err *err)
{
    const struct hk_decision *d = &run->result.decision;
    unsigned n = run->result.attempts;
    const char *s = n == 1 ? "" : "s";
    if (rc == HK_GAVE_UP)
        return hk_err_set(err, rc, "gave up after %u attempt%s: %s%s%s%s", n, s, d->reason,
                          d->cause[0] ? " (last: " : "", d->cause, d->cause[0] ? ")" : "");
    if (rc == HK_UNAVAILABLE)
        return hk_err_set(err, rc, "not tried%s: %s", n ? " again" : "", d->reason);
    if (rc == HK_CANCELLED)
        return hk_err_set(err, rc, "cancelled after %u attempt%s", n, s);
    return rc;
}

static enum hk_code execute(struct run *run, hk_attempt_fn *fn, void *arg, struct hk_err *err)
{
    const struct hk_policy_ops *ops = run->policy->ops;
    run->instance = run->policy->ops_arg;
    if (ops && ops->create) {
        run->instance = ops->create(run->policy->ops_arg);
        if (!run->instance)
            return hk_err_set(err, HK_NOMEM, "policy %s could not make an instance", run->policy->name);
    }
    int64_t start = now_ms(run);
    run->start_wall_ms = run->clock.wall_ms(run->clock.arg);
    run->history.first_attempt_ms = start;
    enum hk_code rc = loop(run, fn, arg);
    int64_t end = now_ms(run);
    run->result.elapsed_ms = end > start ? (uint64_t)end - (uint64_t)start : 0;
    if (ops && ops->destroy)
        ops->destroy(run->instance);
    return explain(run, rc, err);
}

/* The caller's policy, or the preset that it names. */
static enum hk_code find_policy(const struct hk_execute_options *options, struct hk_policy *storage,
                                const struct hk_policy **out_policy, struct hk_err *err)
{
    if (!options->policy && !options->preset)
        return hk_err_set(err, HK_INVALID,
                          "no policy was given: set `policy` (is there one of that name?) or `preset`");
    if (!options->policy && !hk_preset_apply(options->preset, storage))
        return hk_err_set(err, HK_NOTFOUND, "there is no preset \"%.60s\"", options->preset);
    const struct hk_policy *policy = options->policy ? options->policy : storage;
    enum hk_code rc = hk_policy_check(policy, err);
    if (rc == HK_OK)
        *out_policy = policy;
    return rc;
}

enum hk_code hk_execute(const struct hk_execute_options *options, hk_attempt_fn *fn, void *arg,
                        struct hk_execute_result *out_result, struct hk_err *err)
{
    struct hk_policy preset;
    struct run run = {.options = options, .clock = hk_clock_complete(&options->clock)};

    enum hk_code rc = find_policy(options, &preset, &run.policy, err);
    if (rc != HK_OK)
        return rc;
    uint64_t seed = options->has_seed ? options->seed : hk_clock_seed();
    hk_rng_seed(&run.backoff_rng, seed, HK_RNG_BACKOFF);
    hk_rng_seed(&run.breaker_rng, seed, HK_RNG_BREAKER);
    run.limits = hk_policy_effective_limits(run.policy, &options->overrides);
    rc = execute(&run, fn, arg, err);
    if (out_result && rc != HK_NOMEM)
        *out_result = run.result;
    return rc;
}
