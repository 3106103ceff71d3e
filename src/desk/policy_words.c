/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as text: the YAML that reads back as the same policy, and short forms for tables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hikyaku/breaker.h>

#include "base/json.h"
#include "base/parse.h"
#include "desk/policy.h"

static void add_duration(struct hk_buf *out, const char *before, uint64_t ms)
{
    char text[HK_DURATION_TEXT_MAX];

    (void)hk_format_duration(ms, text);
    (void)hk_buf_addf(out, "%s%s", before, text);
}

/* The writer of JSON prints the shortest number that reads back; YAML takes it as it is. */
static void add_number(struct hk_buf *out, const char *before, double value)
{
    struct hk_json json;

    (void)hk_buf_adds(out, before);
    hk_json_init(&json, out, false);
    hk_json_double(&json, value);
}

/* A double-quoted YAML scalar has JSON's escapes. `${` is written `$${`: the reader
 * would look for a variable. */
static void add_quoted(struct hk_buf *out, const char *before, const char *value)
{
    struct hk_buf escaped;
    struct hk_json json;

    hk_buf_init(&escaped, 1024);
    for (const char *p = value; *p != '\0'; p++) {
        if (p[0] == '$' && p[1] == '{')
            (void)hk_buf_addc(&escaped, '$');
        (void)hk_buf_addc(&escaped, *p);
    }
    (void)hk_buf_adds(out, before);
    hk_json_init(&json, out, false);
    hk_json_str(&json, hk_buf_str(&escaped));
    hk_buf_fini(&escaped);
}

static void add_waits(struct hk_buf *out, const struct hk_backoff *b)
{
    for (uint32_t i = 0; i < b->n_waits; i++)
        add_duration(out, i == 0 ? ", waits: [" : ", ", b->waits_ms[i]);
    (void)hk_buf_addc(out, ']');
}

static void add_backoff(struct hk_buf *out, const struct hk_backoff *b)
{
    (void)hk_buf_addf(out, "{ kind: %s", hk_backoff_kind_name(b->kind));
    switch (b->kind) {
    case HK_BACKOFF_FIXED:
    case HK_BACKOFF_LINEAR:
        add_duration(out, ", base: ", b->base_ms);
        break;
    case HK_BACKOFF_EXPONENTIAL:
        add_duration(out, ", base: ", b->base_ms);
        add_number(out, ", factor: ", b->factor);
        break;
    case HK_BACKOFF_LIST:
        add_waits(out, b);
        break;
    case HK_BACKOFF_CLOUD_TASKS:
        add_duration(out, ", base: ", b->base_ms);
        (void)hk_buf_addf(out, ", max_doublings: %" PRIu32, b->max_doublings);
        break;
    case HK_BACKOFF_AZURE_EXPONENTIAL:
        add_duration(out, ", delta: ", b->base_ms);
        add_duration(out, ", min: ", b->min_ms);
        break;
    case HK_BACKOFF_AZURE_LINEAR:
        add_duration(out, ", delta: ", b->base_ms);
        break;
    case HK_NBACKOFFS:
        break;
    }
    add_duration(out, ", cap: ", b->cap_ms);
    (void)hk_buf_adds(out, b->fast_first ? ", fast_first: true }" : " }");
}

static void add_jitter(struct hk_buf *out, const struct hk_jitter *j)
{
    if (j->kind == HK_JITTER_RATIO)
        add_number(out, "{ ratio: ", j->ratio);
    else if (j->kind == HK_JITTER_ADD)
        add_duration(out, "{ add: ", j->add_ms);
    else
        (void)hk_buf_adds(out, hk_jitter_kind_name(j->kind));
    if (j->kind == HK_JITTER_RATIO || j->kind == HK_JITTER_ADD)
        (void)hk_buf_adds(out, " }");
}

const char *hk_policy_limit_mode_text(enum hk_limit_mode mode)
{
    switch (mode) {
    case HK_LIMIT_ANY:
        return "any";
    case HK_LIMIT_ALL:
        return "all";
    }
    return "any";
}

const char *hk_policy_hints_text(enum hk_hint_mode mode)
{
    switch (mode) {
    case HK_HINTS_STANDARD:
        return "standard";
    case HK_HINTS_ALL:
        return "all";
    case HK_HINTS_NONE:
        return "none";
    }
    return "standard";
}

/* 0 has a word, which says more. */
static void add_count(struct hk_buf *out, const char *before, uint32_t n, const char *none)
{
    (void)hk_buf_adds(out, before);
    if (n == 0)
        (void)hk_buf_adds(out, none);
    else
        (void)hk_buf_addf(out, "%" PRIu32, n);
}

static void add_time_limit(struct hk_buf *out, const char *before, uint64_t ms)
{
    if (ms == 0)
        (void)hk_buf_addf(out, "%snever", before);
    else
        add_duration(out, before, ms);
}

static void add_limits(struct hk_buf *out, const struct hk_limits *l)
{
    add_count(out, "    max_attempts: ", l->max_attempts, "unlimited");
    add_time_limit(out, "\n    max_elapsed: ", l->max_elapsed_ms);
    add_time_limit(out, "\n    timeout: ", l->timeout_ms);
    (void)hk_buf_addf(out, "\n    limit_mode: %s\n    hints: %s\n", hk_policy_limit_mode_text(l->mode),
                      hk_policy_hints_text(l->hints));
    add_duration(out, "    hint_cap: ", l->hint_cap_ms);
    (void)hk_buf_addc(out, '\n');
}

static void add_class(struct hk_buf *out, enum hk_class cls, const struct hk_class_rule *rule)
{
    (void)hk_buf_addf(out, "      %s: { action: %s, charge: %s", hk_class_name(cls),
                      rule->retry ? "retry" : "dead", rule->charge ? "true" : "false");
    add_count(out, ", max_attempts: ", rule->max_attempts, "unlimited");
    add_count(out, ", pause_after: ", rule->pause_after, "never");
    if (rule->has_backoff) {
        (void)hk_buf_adds(out, ", backoff: ");
        add_backoff(out, &rule->backoff);
    }
    if (rule->has_jitter) {
        (void)hk_buf_adds(out, ", jitter: ");
        add_jitter(out, &rule->jitter);
    }
    (void)hk_buf_adds(out, " }\n");
}

void hk_policy_match_text(const struct hk_rule *rule, struct hk_buf *out)
{
    switch (rule->kind) {
    case HK_MATCH_ANY:
        (void)hk_buf_addc(out, '*');
        return;
    case HK_MATCH_STATUS:
        if (rule->status_lo == rule->status_hi)
            (void)hk_buf_addf(out, "%d", rule->status_lo);
        else
            (void)hk_buf_addf(out, "%d-%d", rule->status_lo, rule->status_hi);
        return;
    case HK_MATCH_FAULT:
        (void)hk_buf_adds(out, hk_fault_name(rule->fault));
        return;
    case HK_MATCH_REASON:
        (void)hk_buf_adds(out, rule->match_reason);
        return;
    }
}

static void add_rule(struct hk_buf *out, const char *before, const struct hk_rule *rule)
{
    const char *quote = rule->kind == HK_MATCH_ANY ? "\"" : ""; /* a plain * would be an alias */

    (void)hk_buf_addf(out, "%s- { match: %s", before, quote);
    hk_policy_match_text(rule, out);
    (void)hk_buf_adds(out, quote);
    if (rule->header[0] != '\0')
        add_quoted(out, ", header: ", rule->header);
    if (rule->header_contains[0] != '\0')
        add_quoted(out, ", contains: ", rule->header_contains);
    if (rule->body_contains[0] != '\0')
        add_quoted(out, ", body: ", rule->body_contains);
    (void)hk_buf_addf(out, ", class: %s", hk_class_name(rule->to_class));
    if (rule->to_reason[0] != '\0')
        (void)hk_buf_addf(out, ", reason: %s", rule->to_reason);
    (void)hk_buf_adds(out, rule->pause ? ", pause: true }\n" : " }\n");
}

static size_t count_rules(const struct hk_policy *policy)
{
    size_t n = 0;
    while (hk_policy_rule(policy, n) != NULL)
        n++;
    return n;
}

size_t hk_policy_own_rules(const struct hk_policy *policy)
{
    struct hk_policy *preset = NULL;
    size_t own = count_rules(policy);

    if (hk_policy_new(hk_policy_preset(policy), &preset, NULL) == HK_OK)
        own -= count_rules(preset) < own ? count_rules(preset) : own;
    hk_policy_free(preset);
    return own;
}

/* The preset's own rules come with it, behind these: they are shown, but not written again. */
static void add_rules(struct hk_buf *out, const struct hk_policy *policy)
{
    size_t all = count_rules(policy), own = hk_policy_own_rules(policy);

    if (own > 0)
        (void)hk_buf_adds(out, "    classify:\n");
    for (size_t i = 0; i < own; i++)
        add_rule(out, "      ", hk_policy_rule(policy, i));
    if (own < all)
        (void)hk_buf_adds(out, "    # then the preset's own rules:\n");
    for (size_t i = own; i < all; i++)
        add_rule(out, "    #   ", hk_policy_rule(policy, i));
}

static void add_breaker(struct hk_buf *out, const struct hk_breaker_options *b)
{
    if (b == NULL) {
        (void)hk_buf_adds(out, "    breaker: off\n");
        return;
    }
    (void)hk_buf_addf(out, "    breaker:\n      failures: %" PRIu32 "\n", b->failures);
    add_number(out, "      ratio: ", b->ratio);
    (void)hk_buf_addf(out, "\n      min_throughput: %" PRIu32, b->min_throughput);
    add_duration(out, "\n      window: ", b->window_ms);
    add_duration(out, "\n      open: ", b->open_ms);
    add_number(out, "\n      open_factor: ", b->open_factor);
    add_duration(out, "\n      open_cap: ", b->open_cap_ms);
    add_number(out, "\n      open_jitter: ", b->open_jitter);
    (void)hk_buf_addf(out, "\n      probes: %" PRIu32 "\n      successes: %" PRIu32 "\n", b->probes,
                      b->successes);
}

void hk_policy_yaml(const struct hk_policy *policy, struct hk_buf *out)
{
    (void)hk_buf_addf(out, "policies:\n  %s:\n    preset: %s\n", hk_policy_name(policy),
                      hk_policy_preset(policy));
    if (hk_policy_ops(policy, NULL) != NULL)
        (void)hk_buf_adds(out,
                          "    # custom: it decides in code that a program registers, within these limits\n");
    (void)hk_buf_adds(out, "    backoff: ");
    add_backoff(out, hk_policy_backoff(policy));
    (void)hk_buf_adds(out, "\n    jitter: ");
    add_jitter(out, hk_policy_jitter(policy));
    (void)hk_buf_adds(out, hk_backoff_is_azure(hk_policy_backoff(policy)->kind)
                               ? " # this backoff draws each wait itself, +-20%\n"
                               : "\n");
    add_limits(out, hk_policy_limits(policy));
    (void)hk_buf_adds(out, "    classes:\n");
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        add_class(out, (enum hk_class)c, hk_policy_class(policy, (enum hk_class)c));
    add_rules(out, policy);
    add_breaker(out, hk_policy_breaker(policy));
}

bool hk_policy_is_preset(const struct hk_policy *policy)
{
    struct hk_policy *preset = NULL;
    struct hk_buf ours, theirs;

    if (hk_policy_new(hk_policy_name(policy), &preset, NULL) != HK_OK)
        return false;
    hk_buf_init(&ours, 1 << 16);
    hk_buf_init(&theirs, 1 << 16);
    hk_policy_yaml(policy, &ours);
    hk_policy_yaml(preset, &theirs);
    bool same = hk_buf_status(&ours) == HK_OK && hk_buf_status(&theirs) == HK_OK &&
                strcmp(hk_buf_cstr(&ours), hk_buf_cstr(&theirs)) == 0;
    hk_buf_fini(&ours);
    hk_buf_fini(&theirs);
    hk_policy_free(preset);
    return same;
}

static void waits_text(const struct hk_backoff *b, struct hk_buf *out)
{
    for (uint32_t i = 0; i < b->n_waits && i < 4; i++)
        add_duration(out, i == 0 ? "" : ", ", b->waits_ms[i]);
    if (b->n_waits > 4)
        add_duration(out, " ... ", b->waits_ms[b->n_waits - 1]);
}

const char *hk_policy_backoff_text(const struct hk_backoff *b, char out[HK_POLICY_TEXT])
{
    struct hk_buf buf;

    hk_buf_init(&buf, HK_POLICY_TEXT - 1);
    (void)hk_buf_addf(&buf, "%s ", hk_backoff_kind_name(b->kind));
    if (b->kind == HK_BACKOFF_LIST)
        waits_text(b, &buf);
    else
        add_duration(&buf, "", b->base_ms);
    if (b->kind == HK_BACKOFF_EXPONENTIAL)
        add_number(&buf, " x", b->factor);
    if (b->kind != HK_BACKOFF_LIST && b->kind != HK_BACKOFF_FIXED && b->kind != HK_BACKOFF_AZURE_LINEAR)
        add_duration(&buf, " to ", b->cap_ms);
    (void)snprintf(out, HK_POLICY_TEXT, "%s", hk_buf_cstr(&buf));
    hk_buf_fini(&buf);
    return out;
}

const char *hk_policy_jitter_kind(const struct hk_backoff *b, const struct hk_jitter *j)
{
    return hk_backoff_is_azure(b->kind) ? "own" : hk_jitter_kind_name(j->kind);
}

const char *hk_policy_jitter_text(const struct hk_jitter *j, char out[HK_POLICY_TEXT])
{
    char text[HK_DURATION_TEXT_MAX];

    if (j->kind == HK_JITTER_RATIO)
        (void)snprintf(out, HK_POLICY_TEXT, "+-%.3g%%", j->ratio * 100);
    else if (j->kind == HK_JITTER_ADD && hk_format_duration(j->add_ms, text) > 0)
        (void)snprintf(out, HK_POLICY_TEXT, "+%s", text);
    else
        (void)snprintf(out, HK_POLICY_TEXT, "%s", hk_jitter_kind_name(j->kind));
    return out;
}
