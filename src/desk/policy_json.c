/* SPDX-License-Identifier: Apache-2.0 */
/* Policies as JSON: what is written, what it plans, what it does to a crowd. */
#include <hikyaku/breaker.h>

#include "base/str.h"
#include "desk/forms.h"
#include "desk/policy.h"

/* ---- list ---- */

static void list_row_json(struct hk_json *json, const struct hk_policy *policy, bool fallback)
{
    const struct hk_limits *limits = hk_policy_limits(policy);

    hk_json_object(json);
    hk_put_cstr(json, "name", hk_policy_name(policy));
    hk_put_bool(json, "default", fallback);
    hk_put_cstr(json, "origin", hk_policy_is_preset(policy) ? "preset" : "file");
    hk_put_cstr(json, "preset", hk_policy_preset(policy));
    hk_put_cstr(json, "backoff", hk_backoff_kind_name(hk_policy_backoff(policy)->kind));
    hk_put_cstr(json, "jitter", hk_policy_jitter_kind(hk_policy_backoff(policy), hk_policy_jitter(policy)));
    hk_put_bool(json, "custom", hk_policy_ops(policy, NULL) != NULL);
    hk_put_limit(json, "max_attempts", limits->max_attempts);
    hk_put_limit(json, "max_elapsed_ms", limits->max_elapsed_ms);
    hk_json_end(json);
}

void hk_encode_policy_list(struct hk_json *json, const void *result)
{
    const struct hk_policy_list *all = result;
    const struct hk_policy *policy = NULL;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; (policy = hk_policies_at(all->policies, i)) != NULL; i++)
        list_row_json(json, policy, policy == all->fallback);
    hk_json_end(json);
    hk_json_key(json, "next");
    hk_json_null(json);
    hk_json_end(json);
}

/* ---- show ---- */

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

static void answers_json(struct hk_json *json, const struct hk_policy_shown *shown)
{
    hk_json_key(json, "answers");
    hk_json_array(json);
    for (size_t i = 0; i < shown->n_answers; i++) {
        const struct hk_policy_answer *a = &shown->answers[i];
        hk_json_object(json);
        hk_put_cstr(json, "answer", a->name);
        hk_put_cstr(json, "class", hk_class_name(a->cls));
        hk_put_cstr(json, "reason", a->cause[0] ? a->cause : NULL);
        hk_put_bool(json, "retry", a->retry);
        hk_put_bool(json, "pause", a->pause);
        hk_json_end(json);
    }
    hk_json_end(json);
}

void hk_encode_policy(struct hk_json *json, const void *result)
{
    const struct hk_policy_shown *shown = result;
    const struct hk_policy *policy = shown->policy;
    hk_json_object(json);
    hk_put_cstr(json, "name", hk_policy_name(policy));
    hk_put_cstr(json, "preset", hk_policy_preset(policy));
    backoff_json(json, hk_policy_backoff(policy));
    jitter_json(json, hk_policy_backoff(policy), hk_policy_jitter(policy));
    hk_put_bool(json, "custom", hk_policy_ops(policy, NULL) != NULL);
    limits_json(json, hk_policy_limits(policy));
    classes_json(json, policy);
    rules_json(json, policy);
    breaker_json(json, hk_policy_breaker(policy));
    answers_json(json, shown);
    hk_put_cstr(json, "yaml", shown->yaml.ptr);
    hk_json_end(json);
}

/* ---- plan ---- */

static void plan_row_json(struct hk_json *json, const struct hk_plan_row *row, uint32_t attempt)
{
    const struct {
        const char *key;
        uint64_t ms;
    } fields[] = {{"wait_ms", row->wait_ms},
                  {"earliest_ms", row->earliest_ms},
                  {"median_ms", row->median_ms},
                  {"latest_ms", row->latest_ms},
                  {"cumulative_ms", row->cumulative_ms}};

    hk_json_object(json);
    hk_put_u64(json, "attempt", attempt);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        hk_json_key(json, fields[i].key);
        if (row->last)
            hk_json_null(json);
        else
            hk_json_u64(json, fields[i].ms);
    }
    hk_json_end(json);
}

static void end_json(struct hk_json *json, const struct hk_plan *plan)
{
    hk_json_key(json, "end");
    hk_json_object(json);
    hk_put_cstr(json, "reason", plan->usual_reason);
    hk_put_u64(json, "attempts", plan->median_attempts);
    hk_put_u64(json, "median_ms", plan->median_ms);
    hk_put_u64(json, "mean_ms", plan->mean_ms);
    hk_put_bool(json, "estimated", plan->estimated);
    hk_json_end(json);
}

void hk_encode_policy_plan(struct hk_json *json, const void *result)
{
    const struct hk_policy_planned *p = result;
    hk_json_object(json);
    hk_put_cstr(json, "policy", hk_policy_name(p->policy));
    hk_put_u64(json, "seed", p->seed);
    hk_put_cstr(json, "class", hk_class_name(p->cls));
    hk_json_key(json, "attempts");
    hk_json_array(json);
    for (uint32_t i = 0; i < p->shown; i++)
        plan_row_json(json, &p->plan.rows[i], i + 1);
    hk_json_end(json);
    end_json(json, &p->plan);
    hk_json_end(json);
}

/* ---- simulate ---- */

static void member_u64(struct hk_json *json, const char *key, uint64_t value)
{
    hk_json_key(json, key);
    if (value == UINT64_MAX)
        hk_json_null(json);
    else
        hk_json_u64(json, value);
}

static void herd_json(struct hk_json *json, const char *key, const struct hk_herd *load)
{
    hk_json_key(json, key);
    hk_json_object(json);
    member_u64(json, "attempts", load->attempts);
    member_u64(json, "peak_during_outage_per_s", load->peak_down);
    member_u64(json, "peak_after_outage_per_s", load->peak_up);
    hk_put_double(json, "herding_factor", load->herding);
    member_u64(json, "served_50_ms", load->half_ms);
    member_u64(json, "served_99_ms", load->most_ms);
    member_u64(json, "served_all_ms", load->all_ms);
    member_u64(json, "delivered", load->delivered);
    member_u64(json, "dead", load->dead);
    member_u64(json, "waiting", load->waiting);
    hk_json_end(json);
}

void hk_encode_policy_simulation(struct hk_json *json, const void *result)
{
    const struct hk_policy_simulated *s = result;
    hk_json_object(json);
    hk_put_cstr(json, "policy", hk_policy_name(s->policy));
    member_u64(json, "clients", s->options.clients);
    member_u64(json, "outage_ms", s->options.outage_ms);
    member_u64(json, "spread_ms", s->options.spread_ms);
    hk_put_double(json, "capacity_per_s", s->options.capacity_per_s);
    hk_put_u64(json, "seed", s->options.seed);
    herd_json(json, "as_is", &s->as_is);
    herd_json(json, s->has_jitter ? "without_jitter" : "with_full_jitter", &s->other);
    hk_put_str(json, "conclusion", s->conclusion);
    hk_json_end(json);
}
