/* SPDX-License-Identifier: Apache-2.0 */
/* Building and checking a policy. Applying it is decide.c. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/policy_impl.h"

static enum hk_code no_such_preset(const char *preset, struct hk_err *err)
{
    char list[256] = "";
    size_t len = 0;
    for (size_t i = 0; hk_preset_name(i); i++) {
        size_t n = strlen(hk_preset_name(i));
        assert(len + n + 3 <= sizeof list); /* a new preset may want more room */
        if (len) {
            memcpy(list + len, ", ", 2);
            len += 2;
        }
        memcpy(list + len, hk_preset_name(i), n + 1);
        len += n;
    }
    return hk_err_set(err, HK_NOTFOUND, "there is no preset \"%.60s\": choose from %s", preset, list);
}

enum hk_code hk_policy_new(const char *preset, struct hk_policy **out_policy, struct hk_err *err)
{
    struct hk_policy *policy = hk_mem_zalloc(1, sizeof *policy);
    if (!policy)
        return hk_err_set(err, HK_NOMEM, "out of memory for a policy");
    if (!hk_preset_apply(preset, policy)) {
        hk_policy_free(policy);
        return no_such_preset(preset, err);
    }
    *out_policy = policy;
    return HK_OK;
}

enum hk_code hk_policy_copy(const struct hk_policy *policy, struct hk_policy **out_policy, struct hk_err *err)
{
    struct hk_policy *copy = hk_mem_alloc(sizeof *copy);
    if (!copy)
        return hk_err_set(err, HK_NOMEM, "out of memory for a policy");
    *copy = *policy;
    *out_policy = copy;
    return HK_OK;
}

void hk_policy_free(struct hk_policy *policy)
{
    hk_mem_free(policy);
}

static bool is_name_char(char c, bool first)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || c == '_' || (!first && (c == '-' || c == '.'));
}

enum hk_code hk_policy_set_name(struct hk_policy *policy, const char *name, struct hk_err *err)
{
    size_t len = strlen(name);
    bool ok = len > 0 && len < HK_NAME_MAX;
    for (size_t i = 0; ok && i < len; i++)
        ok = is_name_char(name[i], i == 0);
    if (!ok)
        return hk_err_set(
            err, HK_INVALID,
            "\"%.60s\" is no name for a policy: 1 to %d letters, digits and _, and behind the first also - and .",
            name, HK_NAME_MAX - 1);
    memcpy(policy->name, name, len + 1);
    return HK_OK;
}

enum hk_code hk_policy_set_backoff(struct hk_policy *policy, const struct hk_backoff *backoff,
                                   const struct hk_jitter *jitter, struct hk_err *err)
{
    enum hk_code rc = hk_backoff_check(backoff, jitter, err);
    if (rc != HK_OK)
        return rc;
    policy->backoff = *backoff;
    policy->jitter = *jitter;
    return HK_OK;
}

static enum hk_code check_limits(const struct hk_limits *limits, struct hk_err *err)
{
    if (limits->max_elapsed_ms > HK_DURATION_MAX_MS)
        return hk_err_set(err, HK_RANGE, "max_elapsed must be at most 100 years");
    if (limits->timeout_ms > HK_DURATION_MAX_MS)
        return hk_err_set(err, HK_RANGE, "timeout must be at most 100 years");
    if (limits->hint_cap_ms > HK_DURATION_MAX_MS)
        return hk_err_set(err, HK_RANGE, "hint_cap must be at most 100 years");
    if ((unsigned)limits->mode > HK_LIMIT_ALL || (unsigned)limits->hints > HK_HINTS_NONE)
        return hk_err_set(err, HK_INVALID, "limit_mode or hints has a value that does not exist");
    if (limits->hint_cap_ms == 0 && limits->hints != HK_HINTS_NONE)
        return hk_err_set(err, HK_RANGE, "hint_cap must be above 0 (hints: none turns hints off)");
    return HK_OK;
}

enum hk_code hk_policy_set_limits(struct hk_policy *policy, const struct hk_limits *limits,
                                  struct hk_err *err)
{
    enum hk_code rc = check_limits(limits, err);
    if (rc == HK_OK)
        policy->limits = *limits;
    return rc;
}

/* The backoff that a class really uses. */
static const struct hk_backoff *backoff_of(const struct hk_policy *policy, const struct hk_class_rule *rule)
{
    return rule->has_backoff ? &rule->backoff : &policy->backoff;
}

static enum hk_code check_class(const struct hk_policy *policy, const struct hk_class_rule *rule,
                                struct hk_err *err)
{
    static const struct hk_jitter none = {.kind = HK_JITTER_NONE};
    if (!rule->has_backoff && !rule->has_jitter)
        return HK_OK;
    return hk_backoff_check(backoff_of(policy, rule), rule->has_jitter ? &rule->jitter : &none, err);
}

enum hk_code hk_policy_set_class(struct hk_policy *policy, enum hk_class cls,
                                 const struct hk_class_rule *rule, struct hk_err *err)
{
    if (cls == HK_CLASS_SUCCESS || (unsigned)cls >= HK_NCLASSES)
        return hk_err_set(err, HK_INVALID, "class %d has no rule", (int)cls);
    enum hk_code rc = check_class(policy, rule, err);
    if (rc == HK_OK)
        policy->classes[cls] = *rule;
    return rc;
}

static bool texts_end(const struct hk_rule *rule)
{
    return memchr(rule->match_reason, 0, sizeof rule->match_reason) &&
           memchr(rule->header, 0, sizeof rule->header) &&
           memchr(rule->header_contains, 0, sizeof rule->header_contains) &&
           memchr(rule->body_contains, 0, sizeof rule->body_contains) &&
           memchr(rule->to_reason, 0, sizeof rule->to_reason);
}

enum hk_code hk_policy_add_rule(struct hk_policy *policy, const struct hk_rule *rule, struct hk_err *err)
{
    if ((unsigned)rule->to_class >= HK_NCLASSES)
        return hk_err_set(err, HK_INVALID, "class %d does not exist", (int)rule->to_class);
    if (!texts_end(rule))
        return hk_err_set(err, HK_TOOBIG, "a text of the rule does not end within its %d bytes",
                          HK_PATTERN_MAX);
    if ((unsigned)rule->kind > HK_MATCH_REASON)
        return hk_err_set(err, HK_INVALID, "match kind %d does not exist", (int)rule->kind);
    if (rule->kind == HK_MATCH_STATUS &&
        (rule->status_lo < 100 || rule->status_hi > 599 || rule->status_lo > rule->status_hi))
        return hk_err_set(err, HK_RANGE, "statuses %d to %d: they run from 100 to 599", rule->status_lo,
                          rule->status_hi);
    if (rule->kind == HK_MATCH_FAULT && (rule->fault == HK_FAULT_NONE || (unsigned)rule->fault >= HK_NFAULTS))
        return hk_err_set(err, HK_INVALID, "fault %d does not exist", (int)rule->fault);
    if (rule->to_reason[0] && !hk_reason_is_valid(rule->to_reason))
        return hk_err_set(err, HK_INVALID, "\"%.40s\" is no reason code: capitals, digits and underscores",
                          rule->to_reason);
    if (rule->header_contains[0] && !rule->header[0])
        return hk_err_set(err, HK_INVALID, "a header's text is given, but not which header");
    if (rule->kind == HK_MATCH_ANY && !rule->header[0] && !rule->body_contains[0] &&
        rule->to_class == HK_CLASS_SUCCESS)
        return hk_err_set(err, HK_INVALID, "a rule that makes everything a success would lose messages");
    if (policy->n_rules == HK_POLICY_RULES)
        return hk_err_set(err, HK_TOOBIG, "a policy holds at most %d classify rules, the preset's included",
                          HK_POLICY_RULES);
    memmove(&policy->rules[policy->n_added + 1], &policy->rules[policy->n_added],
            (policy->n_rules - policy->n_added) * sizeof policy->rules[0]);
    policy->rules[policy->n_added++] = *rule;
    policy->n_rules++;
    return HK_OK;
}

enum hk_code hk_policy_set_breaker(struct hk_policy *policy, const struct hk_breaker_options *options,
                                   struct hk_err *err)
{
    if (!options) {
        policy->has_breaker = false;
        return HK_OK;
    }
    enum hk_code rc = hk_breaker_options_check(options, err);
    if (rc != HK_OK)
        return rc;
    policy->has_breaker = true;
    policy->breaker = *options;
    return HK_OK;
}

void hk_policy_set_ops(struct hk_policy *policy, const struct hk_policy_ops *ops, void *arg)
{
    policy->ops = ops;
    policy->ops_arg = arg;
}

/* Failures that cost nothing are bounded by their own count, or by time; and time ends a policy in mode
 * `all` only when attempts are not limited as well, since those may never be used up. */
static bool class_ends(const struct hk_policy *policy, const struct hk_class_rule *rule)
{
    const struct hk_limits *limits = &policy->limits;
    if (!rule->retry || rule->max_attempts || (rule->charge && limits->max_attempts))
        return true;
    return limits->max_elapsed_ms && (limits->mode == HK_LIMIT_ANY || !limits->max_attempts);
}

enum hk_code hk_policy_check(const struct hk_policy *policy, struct hk_err *err)
{
    enum hk_code rc = hk_backoff_check(&policy->backoff, &policy->jitter, err);
    if (rc == HK_OK)
        rc = check_limits(&policy->limits, err);
    if (rc != HK_OK)
        return rc;
    if (policy->ops && !policy->ops->should_retry)
        return hk_err_set(err, HK_INVALID, "policy %s has ops without should_retry", policy->name);
    if (!policy->limits.max_attempts && !policy->limits.max_elapsed_ms)
        return hk_err_set(err, HK_RANGE, "policy %s would retry for ever: set max_attempts or max_elapsed",
                          policy->name);
    for (int cls = HK_CLASS_TRANSIENT; cls < HK_NCLASSES; cls++) {
        rc = check_class(policy, &policy->classes[cls], err);
        if (rc != HK_OK)
            return rc;
        if (!class_ends(policy, &policy->classes[cls]))
            return hk_err_set(
                err, HK_RANGE,
                "policy %s would retry class %s for ever: set its max_attempts, charge: true, or a "
                "max_elapsed that ends the policy",
                policy->name, hk_class_name((enum hk_class)cls));
    }
    return HK_OK;
}

bool hk_policy_same(const struct hk_policy *a, const struct hk_policy *b)
{
    /* Both were zeroed before they were filled. Should padding differ all the same, they count as changed, which costs a reload.
     * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
    return memcmp(a, b, sizeof *a) == 0;
}

const char *hk_policy_name(const struct hk_policy *policy)
{
    return policy->name;
}

const char *hk_policy_preset(const struct hk_policy *policy)
{
    return policy->preset;
}

const struct hk_backoff *hk_policy_backoff(const struct hk_policy *policy)
{
    return &policy->backoff;
}

const struct hk_jitter *hk_policy_jitter(const struct hk_policy *policy)
{
    return &policy->jitter;
}

const struct hk_limits *hk_policy_limits(const struct hk_policy *policy)
{
    return &policy->limits;
}

const struct hk_class_rule *hk_policy_class(const struct hk_policy *policy, enum hk_class cls)
{
    return cls != HK_CLASS_SUCCESS && (unsigned)cls < HK_NCLASSES ? &policy->classes[cls] : NULL;
}

const struct hk_rule *hk_policy_rule(const struct hk_policy *policy, size_t i)
{
    return i < policy->n_rules ? &policy->rules[i] : NULL;
}

const struct hk_breaker_options *hk_policy_breaker(const struct hk_policy *policy)
{
    return policy->has_breaker ? &policy->breaker : NULL;
}

const struct hk_policy_ops *hk_policy_ops(const struct hk_policy *policy, void **out_arg)
{
    if (out_arg)
        *out_arg = policy->ops_arg;
    return policy->ops;
}
