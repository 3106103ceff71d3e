/* SPDX-License-Identifier: Apache-2.0 */
/* The decision: one settled attempt -> delivered, retry after a wait, or dead with a reason.
 *
 *   classify -> count -> does the class still allow it? -> how long to wait? -> do attempts and time still allow it?
 *
 * The order matters: the wait is known before the time limit is asked, so that an attempt which could not start
 * before the deadline is given up now and not after waiting for it. */
#include "base/parse.h"
#include "base/str.h"
#include "core/policy_impl.h"

/* One decision in the making. */
struct judgement {
    const struct hk_policy *policy;
    struct hk_limits limits; /* the policy's, with what the operation overrides */
    struct hk_history *history;
    const struct hk_facts *facts;
    int64_t now_ms;
    struct hk_decision d;
};

static uint32_t count_up(uint32_t n)
{
    return n < UINT32_MAX ? n + 1 : n;
}

struct hk_limits hk_policy_effective_limits(const struct hk_policy *policy,
                                            const struct hk_overrides *overrides)
{
    struct hk_limits limits = policy->limits;
    if (!overrides)
        return limits;
    if (overrides->max_attempts || overrides->max_elapsed_ms)
        limits.mode = HK_LIMIT_ANY; /* who sets a limit for one operation means it to end that operation */
    if (overrides->max_attempts)
        limits.max_attempts = overrides->max_attempts;
    if (overrides->max_elapsed_ms)
        limits.max_elapsed_ms = overrides->max_elapsed_ms;
    if (overrides->timeout_ms)
        limits.timeout_ms = overrides->timeout_ms;
    return limits;
}

uint32_t hk_limits_attempts_within(const struct hk_limits *limits, uint32_t asked, uint32_t ceiling)
{
    if (!ceiling || !limits->max_attempts || asked <= limits->max_attempts)
        return asked;
    uint32_t most = ceiling > limits->max_attempts ? ceiling : limits->max_attempts;
    return asked < most ? asked : most;
}

/* Cloud Tasks' rule: time alone ends nothing while attempts are limited as well. */
static bool both_must_be_spent(const struct hk_limits *limits)
{
    return limits->mode == HK_LIMIT_ALL && limits->max_attempts && limits->max_elapsed_ms;
}

static uint64_t time_left_ms(const struct hk_limits *limits, const struct hk_history *history, int64_t now_ms)
{
    if (!limits->max_elapsed_ms)
        return UINT64_MAX;
    uint64_t elapsed =
        now_ms > history->first_attempt_ms ? (uint64_t)now_ms - (uint64_t)history->first_attempt_ms : 0;
    elapsed -= elapsed < history->paused_ms ? elapsed : history->paused_ms;
    return elapsed < limits->max_elapsed_ms ? limits->max_elapsed_ms - elapsed : 0;
}

uint64_t hk_limits_time_left_ms(const struct hk_limits *limits, const struct hk_history *history,
                                int64_t now_ms)
{
    return both_must_be_spent(limits) ? UINT64_MAX : time_left_ms(limits, history, now_ms);
}

uint64_t hk_policy_attempt_ms(const struct hk_policy *policy, const struct hk_overrides *overrides,
                              const struct hk_history *history, int64_t now_ms)
{
    struct hk_limits limits = hk_policy_effective_limits(policy, overrides);
    struct hk_history fresh = {.first_attempt_ms = now_ms}; /* the first attempt starts the clock */
    uint64_t left = hk_limits_time_left_ms(&limits, history->attempts ? history : &fresh, now_ms);
    return limits.timeout_ms && limits.timeout_ms < left ? limits.timeout_ms : left;
}

static void set_dead(struct hk_decision *d, const char *reason)
{
    d->verdict = HK_DEAD;
    (void)hk_str_copy(d->reason, sizeof d->reason, hk_str_of(reason));
}

/* A limit of one attempt was never a retry: the attempt's own cause says more than "exhausted". */
static void set_exhausted(struct hk_decision *d, uint32_t max_attempts)
{
    set_dead(d, max_attempts == 1 ? d->cause : HK_REASON_EXHAUSTED);
}

static bool hint_counts(const struct judgement *j)
{
    switch (j->limits.hints) {
    case HK_HINTS_STANDARD:
        return j->d.failure_class == HK_CLASS_RATE_LIMIT || j->facts->status == 503;
    case HK_HINTS_ALL:
        return true;
    case HK_HINTS_NONE:
        return false;
    }
    return false;
}

static bool is_random(const struct hk_backoff *b, const struct hk_jitter *jitter)
{
    return jitter->kind != HK_JITTER_NONE || hk_backoff_is_azure(b->kind);
}

/* An accepted hint is kept to: jitter only adds, at most a tenth, and never past the cap. */
static uint64_t wait_as_hinted(uint64_t hint_ms, uint64_t cap_ms, bool random, struct hk_rng *rng)
{
    if (hint_ms >= cap_ms)
        return cap_ms;
    uint64_t room = hint_ms / 10 < cap_ms - hint_ms ? hint_ms / 10 : cap_ms - hint_ms;
    return random ? hint_ms + hk_rng_upto(rng, room) : hint_ms;
}

/* Cloud Tasks counts retries, whatever they were for. */
static uint32_t all_failures(const struct hk_history *history)
{
    uint32_t n = 0;
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        n = n > UINT32_MAX - history->failures[c] ? UINT32_MAX : n + history->failures[c];
    return n;
}

/* Each class counts its own failures, but only the operation's very first retry may be a fast one, and never towards a
 * destination that asks us to slow down. */
static uint64_t own_wait(const struct judgement *j, const struct hk_backoff *backoff,
                         const struct hk_jitter *jitter, struct hk_rng *rng)
{
    uint32_t n = backoff->kind == HK_BACKOFF_CLOUD_TASKS ? all_failures(j->history)
                                                         : j->history->failures[j->d.failure_class];
    uint64_t prev_ms =
        n > 1 ? j->history->prev_wait_ms : 0; /* a class's first wait knows nothing of the others' */
    if (backoff->fast_first && (j->history->attempts > 1 || j->d.failure_class == HK_CLASS_RATE_LIMIT)) {
        struct hk_backoff slow = *backoff;
        slow.fast_first = false;
        return hk_backoff_wait_ms(&slow, jitter, n, prev_ms, rng);
    }
    return hk_backoff_wait_ms(backoff, jitter, n, prev_ms, rng);
}

static void set_wait(struct judgement *j, const struct hk_class_rule *rule, int64_t wall_ms,
                     struct hk_rng *rng)
{
    const struct hk_backoff *backoff = rule->has_backoff ? &rule->backoff : &j->policy->backoff;
    const struct hk_jitter *jitter = rule->has_jitter ? &rule->jitter : &j->policy->jitter;
    uint64_t hint_ms;

    if (hint_counts(j) && hk_hint_ms(j->facts->headers, j->facts->n_headers, wall_ms, &hint_ms)) {
        j->d.hinted = true;
        j->d.wait_ms = wait_as_hinted(hint_ms, j->limits.hint_cap_ms, is_random(backoff, jitter), rng);
    } else {
        j->d.wait_ms = own_wait(j, backoff, jitter, rng);
        j->history->prev_wait_ms = j->d.wait_ms;
    }
    if (j->d.hinted || j->d.failure_class == HK_CLASS_RATE_LIMIT)
        j->d.hold_ms = j->d.wait_ms; /* also when this message dies: the destination asked all the same */
}

/* The class's own say. */
static void ask_class(struct judgement *j, int64_t wall_ms, struct hk_rng *rng)
{
    const struct hk_class_rule *rule = &j->policy->classes[j->d.failure_class];
    if (rule->retry || j->d.failure_class == HK_CLASS_RATE_LIMIT)
        set_wait(j, rule, wall_ms, rng); /* a rate limit holds the destination also when its message dies */
    if (!rule->retry)
        set_dead(&j->d, j->d.cause);
    else if (rule->max_attempts && j->history->failures[j->d.failure_class] >= rule->max_attempts)
        set_exhausted(&j->d, rule->max_attempts);
}

static void ask_ops(struct judgement *j, void *instance)
{
    uint64_t wait_ms = 0;
    if (!j->policy->ops->should_retry(instance, j->history->attempts - 1, j->facts->status, j->facts,
                                      &wait_ms))
        set_dead(&j->d, j->d.cause);
    j->d.wait_ms = wait_ms < HK_DURATION_MAX_MS ? wait_ms : HK_DURATION_MAX_MS;
}

/* Attempts and time over all classes. */
static void apply_limits(struct judgement *j)
{
    const struct hk_limits *limits = &j->limits;
    bool spent = limits->max_attempts && j->history->charged >= limits->max_attempts;
    bool late = j->d.wait_ms >= time_left_ms(limits, j->history, j->now_ms);

    if (both_must_be_spent(limits) ? spent && late : spent)
        set_exhausted(&j->d, limits->max_attempts);
    else if (late && !both_must_be_spent(limits))
        set_dead(&j->d, HK_REASON_DEADLINE);
}

static void count_failure(struct judgement *j)
{
    const struct hk_class_rule *rule = &j->policy->classes[j->d.failure_class];
    uint32_t *failures = &j->history->failures[j->d.failure_class];

    *failures = count_up(*failures);
    j->d.charged =
        rule->charge || j->policy->ops; /* one's own policy is bounded by the total, whatever the class */
    if (j->d.charged)
        j->history->charged = count_up(j->history->charged);
    j->d.own_fault = hk_fault_is_ours(j->facts);
    j->d.unhealthy = !j->d.own_fault &&
                     (j->d.failure_class == HK_CLASS_TRANSIENT || j->d.failure_class == HK_CLASS_UNKNOWN);
    uint32_t in_row = j->facts->failures_in_row ? j->facts->failures_in_row : 1;
    if (rule->pause_after && in_row >= rule->pause_after)
        j->d.pause_destination = true;
}

void hk_policy_decide(const struct hk_policy *policy, void *instance, const struct hk_overrides *overrides,
                      struct hk_history *history, const struct hk_facts *facts, int64_t now_ms,
                      int64_t wall_ms, struct hk_rng *rng, struct hk_decision *out_decision)
{
    struct judgement j = {
        policy, hk_policy_effective_limits(policy, overrides), history, facts, now_ms, {.verdict = HK_RETRY}};

    history->attempts = count_up(history->attempts);
    j.d.failure_class = hk_policy_classify(policy, facts, j.d.cause, &j.d.pause_destination);
    if (j.d.failure_class == HK_CLASS_SUCCESS) {
        j.d.verdict = HK_DELIVERED;
        j.d.charged = true;
        history->charged = count_up(history->charged);
    } else {
        count_failure(&j);
        if (policy->ops)
            ask_ops(&j, instance);
        else
            ask_class(&j, wall_ms, rng);
        if (j.d.verdict == HK_RETRY)
            apply_limits(&j);
        if (j.d.verdict == HK_DEAD)
            j.d.wait_ms = 0;
    }
    *out_decision = j.d;
}

const char *hk_verdict_name(enum hk_verdict verdict)
{
    switch (verdict) {
    case HK_DELIVERED:
        return "delivered";
    case HK_RETRY:
        return "retry";
    case HK_DEAD:
        return "dead";
    }
    return "none";
}
