/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy show */
#include <stdio.h>

#include <hikyaku/breaker.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "desk/put.h"

#define TEXT_MAX ((size_t)1 << 18)

/* Answers that people ask about. */
static const struct hk_facts samples[] = {
    {.status = 200},
    {.status = 302},
    {.status = 400},
    {.status = 401},
    {.status = 403},
    {.status = 404},
    {.status = 408},
    {.status = 409},
    {.status = 410},
    {.status = 413},
    {.status = 422},
    {.status = 423},
    {.status = 425},
    {.status = 429},
    {.status = 500},
    {.status = 502},
    {.status = 503},
    {.status = 504},
    {.fault = HK_FAULT_DNS},
    {.fault = HK_FAULT_CONNECT},
    {.fault = HK_FAULT_TIMEOUT},
    {.fault = HK_FAULT_RESET},
    {.fault = HK_FAULT_TLS_VERIFY},
    {.fault = HK_FAULT_BLOCKED},
    {.fault = HK_FAULT_INVALID_PAYLOAD},
};

enum {
    N_SAMPLES = sizeof samples / sizeof samples[0]
};

static void sample_name(const struct hk_facts *facts, char out[HK_REASON_MAX])
{
    if (facts->status != 0)
        (void)snprintf(out, HK_REASON_MAX, "%d", facts->status);
    else
        (void)snprintf(out, HK_REASON_MAX, "%s", hk_fault_name(facts->fault));
}

/* What becomes of a message whose attempt ended in this class. */
static const char *outcome(const struct hk_policy *policy, enum hk_class cls)
{
    if (cls == HK_CLASS_SUCCESS)
        return "delivered";
    return hk_policy_class(policy, cls)->retry ? "retry" : "dead letter";
}

static int show_yaml(const struct hk_policy *policy)
{
    struct hk_buf buf;

    hk_buf_init(&buf, TEXT_MAX);
    hk_policy_yaml(policy, &buf);
    (void)hk_buf_addf(&buf, "\n# how it classes common answers\n# %-16s %-11s %-20s %s\n", "answer", "class",
                      "reason", "then");
    for (size_t i = 0; i < N_SAMPLES; i++) {
        char name[HK_REASON_MAX], cause[HK_REASON_MAX];
        bool pause = false;
        enum hk_class cls = hk_policy_classify(policy, &samples[i], cause, &pause);
        sample_name(&samples[i], name);
        (void)hk_buf_addf(&buf, "# %-16s %-11s %-20s %s%s\n", name, hk_class_name(cls),
                          cause[0] != '\0' ? cause : "-", outcome(policy, cls),
                          pause ? ", and the destination is paused" : "");
    }
    return hk_out_buffer(&buf);
}

/* ---- JSON ---- */

static void backoff_json(struct hk_json *json, const struct hk_backoff *b)
{
    hk_json_key(json, "backoff");
    hk_json_object(json);
    hk_put_cstr(json, "kind", hk_backoff_kind_name(b->kind));
    if (b->kind == HK_BACKOFF_LIST) {
        hk_json_key(json, "waits_ms");
        hk_json_array(json);
        for (uint32_t i = 0; i < b->n_waits; i++)
            hk_json_u64(json, b->waits_ms[i]);
        hk_json_end(json);
    } else {
        hk_put_u64(json, "base_ms", b->base_ms);
    }
    if (b->kind == HK_BACKOFF_EXPONENTIAL)
        hk_put_double(json, "factor", b->factor);
    if (b->kind == HK_BACKOFF_AZURE_EXPONENTIAL)
        hk_put_u64(json, "min_ms", b->min_ms);
    if (b->kind == HK_BACKOFF_CLOUD_TASKS)
        hk_put_u64(json, "max_doublings", b->max_doublings);
    hk_put_u64(json, "cap_ms", b->cap_ms);
    hk_put_bool(json, "fast_first", b->fast_first);
    hk_json_end(json);
}

static void jitter_json(struct hk_json *json, const struct hk_backoff *b, const struct hk_jitter *j)
{
    hk_json_key(json, "jitter");
    hk_json_object(json);
    hk_put_cstr(json, "kind", hk_policy_jitter_kind(b, j));
    if (hk_backoff_is_azure(b->kind))
        hk_put_double(json, "ratio", 0.2);
    else if (j->kind == HK_JITTER_RATIO)
        hk_put_double(json, "ratio", j->ratio);
    if (j->kind == HK_JITTER_ADD)
        hk_put_u64(json, "add_ms", j->add_ms);
    hk_json_end(json);
}

static void classes_json(struct hk_json *json, const struct hk_policy *policy)
{
    hk_json_key(json, "classes");
    hk_json_object(json);
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++) {
        const struct hk_class_rule *rule = hk_policy_class(policy, (enum hk_class)c);
        hk_json_key(json, hk_class_name((enum hk_class)c));
        hk_json_object(json);
        hk_put_cstr(json, "action", rule->retry ? "retry" : "dead");
        hk_put_bool(json, "charge", rule->charge);
        hk_put_limit(json, "max_attempts", rule->max_attempts);
        hk_put_limit(json, "pause_after", rule->pause_after);
        if (rule->has_backoff)
            backoff_json(json, &rule->backoff);
        const struct hk_backoff *b = rule->has_backoff ? &rule->backoff : hk_policy_backoff(policy);
        if (rule->has_jitter || (rule->has_backoff && hk_backoff_is_azure(b->kind)))
            jitter_json(json, b, &rule->jitter);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void rule_json(struct hk_json *json, const struct hk_rule *rule, bool of_preset)
{
    struct hk_buf match;

    hk_buf_init(&match, HK_PATTERN_MAX);
    hk_policy_match_text(rule, &match);
    hk_json_object(json);
    hk_buf_inherit(json->out, &match);
    hk_put_cstr(json, "match", hk_buf_cstr(&match));
    hk_put_cstr(json, "header", rule->header[0] != '\0' ? rule->header : NULL);
    hk_put_cstr(json, "contains", rule->header_contains[0] != '\0' ? rule->header_contains : NULL);
    hk_put_cstr(json, "body", rule->body_contains[0] != '\0' ? rule->body_contains : NULL);
    hk_put_cstr(json, "class", hk_class_name(rule->to_class));
    hk_put_cstr(json, "reason", rule->to_reason[0] != '\0' ? rule->to_reason : NULL);
    hk_put_bool(json, "pause", rule->pause);
    hk_put_bool(json, "of_preset", of_preset);
    hk_json_end(json);
    hk_buf_fini(&match);
}

/* In the order in which they are tried. */
static void rules_json(struct hk_json *json, const struct hk_policy *policy)
{
    size_t own = hk_policy_own_rules(policy);
    const struct hk_rule *rule = NULL;

    hk_json_key(json, "classify");
    hk_json_array(json);
    for (size_t i = 0; (rule = hk_policy_rule(policy, i)) != NULL; i++)
        rule_json(json, rule, i >= own);
    hk_json_end(json);
}

static void limits_json(struct hk_json *json, const struct hk_limits *limits)
{
    hk_put_limit(json, "max_attempts", limits->max_attempts);
    hk_put_limit(json, "max_elapsed_ms", limits->max_elapsed_ms);
    hk_put_limit(json, "timeout_ms", limits->timeout_ms);
    hk_put_cstr(json, "limit_mode", hk_policy_limit_mode_text(limits->mode));
    hk_put_cstr(json, "hints", hk_policy_hints_text(limits->hints));
    hk_put_u64(json, "hint_cap_ms", limits->hint_cap_ms);
}

static void breaker_json(struct hk_json *json, const struct hk_breaker_options *b)
{
    hk_json_key(json, "breaker");
    if (b == NULL) {
        hk_json_null(json);
        return;
    }
    hk_json_object(json);
    hk_put_u64(json, "failures", b->failures);
    hk_put_double(json, "ratio", b->ratio);
    hk_put_u64(json, "min_throughput", b->min_throughput);
    hk_put_u64(json, "window_ms", b->window_ms);
    hk_put_u64(json, "open_ms", b->open_ms);
    hk_put_double(json, "open_factor", b->open_factor);
    hk_put_u64(json, "open_cap_ms", b->open_cap_ms);
    hk_put_double(json, "open_jitter", b->open_jitter);
    hk_put_u64(json, "probes", b->probes);
    hk_put_u64(json, "successes", b->successes);
    hk_json_end(json);
}

static void answers_json(struct hk_json *json, const struct hk_policy *policy)
{
    hk_json_key(json, "answers");
    hk_json_array(json);
    for (size_t i = 0; i < N_SAMPLES; i++) {
        char name[HK_REASON_MAX], cause[HK_REASON_MAX];
        bool pause = false;
        enum hk_class cls = hk_policy_classify(policy, &samples[i], cause, &pause);
        sample_name(&samples[i], name);
        hk_json_object(json);
        hk_put_cstr(json, "answer", name);
        hk_put_cstr(json, "class", hk_class_name(cls));
        hk_put_cstr(json, "reason", cause[0] != '\0' ? cause : NULL);
        hk_put_bool(json, "retry", cls != HK_CLASS_SUCCESS && hk_policy_class(policy, cls)->retry);
        hk_put_bool(json, "pause", pause);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static int show_json(const struct hk_policy *policy)
{
    struct hk_json json;
    struct hk_buf buf, yaml;

    hk_buf_init(&buf, TEXT_MAX);
    hk_buf_init(&yaml, TEXT_MAX);
    hk_policy_yaml(policy, &yaml);
    hk_json_init(&json, &buf, true);
    hk_json_object(&json);
    hk_put_cstr(&json, "name", hk_policy_name(policy));
    hk_put_cstr(&json, "preset", hk_policy_preset(policy));
    backoff_json(&json, hk_policy_backoff(policy));
    jitter_json(&json, hk_policy_backoff(policy), hk_policy_jitter(policy));
    hk_put_bool(&json, "custom", hk_policy_ops(policy, NULL) != NULL);
    limits_json(&json, hk_policy_limits(policy));
    classes_json(&json, policy);
    rules_json(&json, policy);
    breaker_json(&json, hk_policy_breaker(policy));
    answers_json(&json, policy);
    hk_buf_inherit(&buf, &yaml);
    hk_put_cstr(&json, "yaml", hk_buf_cstr(&yaml));
    hk_json_end(&json);
    (void)hk_buf_addc(&buf, '\n');
    hk_buf_fini(&yaml);
    return hk_out_buffer(&buf);
}

int hk_cmd_policy_show(struct hk_cli *cli)
{
    const struct hk_policy *policy = NULL;
    struct hk_policies *policies = NULL;

    int code = hk_cli_policy(cli, &policies, &policy);
    if (code == HK_EXIT_OK)
        code = hk_args_flag(cli, "json") ? show_json(policy) : show_yaml(policy);
    hk_policies_free(policies);
    return code;
}
