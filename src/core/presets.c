/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that ship. Each is a small function over the same starting point (DESIGN: failure classes as
 * data), so that a preset reads as what makes it different. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "core/policy_impl.h"

enum {
    SECOND = 1000,
    MINUTE = 60 * SECOND,
    HOUR = 60 * MINUTE
};

/* rate_limit costs nothing and is bounded by time alone; auth and permanent die at once; unknown gets four */
static void defaults(struct hk_policy *p)
{
    p->backoff = (struct hk_backoff){
        .kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1 * SECOND, .factor = 2.0, .cap_ms = 1 * HOUR};
    p->jitter = (struct hk_jitter){.kind = HK_JITTER_FULL};
    p->limits = (struct hk_limits){.max_attempts = 30,
                                   .max_elapsed_ms = (uint64_t)24 * HOUR,
                                   .timeout_ms = 30 * SECOND,
                                   .hint_cap_ms = 1 * HOUR};
    p->classes[HK_CLASS_TRANSIENT] = (struct hk_class_rule){.retry = true, .charge = true};
    p->classes[HK_CLASS_RATE_LIMIT] = (struct hk_class_rule){.retry = true, .charge = false};
    p->classes[HK_CLASS_AUTH] = (struct hk_class_rule){.charge = true, .max_attempts = 1, .pause_after = 5};
    p->classes[HK_CLASS_PERMANENT] = (struct hk_class_rule){.charge = true, .max_attempts = 1};
    p->classes[HK_CLASS_UNKNOWN] = (struct hk_class_rule){.retry = true, .charge = true, .max_attempts = 4};
    p->has_breaker = true;
    hk_breaker_options_init(&p->breaker);
}

/* Requirements 401 and 402: ten attempts 1, 2, 4, 8 s … apart; 429 four attempts, 10 s apart. The document's
 * waits are exact, so there is no jitter; set one where many relays share a destination. */
static void sync_pipeline(struct hk_policy *p)
{
    p->jitter.kind = HK_JITTER_NONE;
    p->limits.max_attempts = 10;
    p->classes[HK_CLASS_RATE_LIMIT] = (struct hk_class_rule){
        .retry = true,
        .charge = true, /* "at most 10 tries" holds for all of them together */
        .max_attempts = 4,
        .has_backoff = true,
        .backoff = {.kind = HK_BACKOFF_FIXED, .base_ms = 10 * SECOND, .cap_ms = 1 * HOUR}};
}

/* Requirement 202: the document's example. Its count is of retries; ours includes the first attempt. */
static void azure_exponential(struct hk_policy *p)
{
    p->backoff = (struct hk_backoff){.kind = HK_BACKOFF_AZURE_EXPONENTIAL,
                                     .base_ms = 10 * SECOND,
                                     .min_ms = 1 * SECOND,
                                     .cap_ms = 30 * SECOND};
    p->jitter.kind = HK_JITTER_NONE;
    p->limits.max_attempts = 11;
    p->classes[HK_CLASS_RATE_LIMIT].charge = true; /* ten retries are ten retries, whatever they are for */
}

/* Requirement 203. The form knows no maximum. */
static void azure_linear(struct hk_policy *p)
{
    p->backoff = (struct hk_backoff){
        .kind = HK_BACKOFF_AZURE_LINEAR, .base_ms = 1 * SECOND, .cap_ms = HK_DURATION_MAX_MS};
    p->jitter.kind = HK_JITTER_NONE;
    p->limits.max_attempts = 11;
    p->classes[HK_CLASS_RATE_LIMIT].charge = true;
}

static struct hk_rule status_rule(int lo, int hi, enum hk_class cls)
{
    return (struct hk_rule){.kind = HK_MATCH_STATUS, .status_lo = lo, .status_hi = hi, .to_class = cls};
}

static struct hk_rule fault_rule(enum hk_fault fault)
{
    return (struct hk_rule){.kind = HK_MATCH_FAULT, .fault = fault, .to_class = HK_CLASS_TRANSIENT};
}

/* Cloud Tasks retries every answer that is not 2xx, and stops when attempts and duration are both spent;
 * its default duration is unlimited. What our own validation refuses stays permanent. */
static void cloud_tasks(struct hk_policy *p)
{
    p->backoff = (struct hk_backoff){
        .kind = HK_BACKOFF_CLOUD_TASKS, .base_ms = 100, .cap_ms = 1 * HOUR, .max_doublings = 16};
    p->jitter.kind = HK_JITTER_NONE;
    p->limits.max_attempts = 100;
    p->limits.max_elapsed_ms = 0;
    p->limits.timeout_ms = 10 * MINUTE;
    p->limits.mode = HK_LIMIT_ALL;
    p->classes[HK_CLASS_RATE_LIMIT].charge = true;
    p->classes[HK_CLASS_UNKNOWN].max_attempts = 0;
    p->rules[p->n_rules++] = status_rule(429, 429, HK_CLASS_RATE_LIMIT);
    /* responses that are no 5xx are a class by themselves: X-CloudTasks-TaskExecutionCount counts them */
    p->rules[p->n_rules++] = status_rule(100, 199, HK_CLASS_UNKNOWN);
    p->rules[p->n_rules++] = status_rule(300, 499, HK_CLASS_UNKNOWN);
    p->rules[p->n_rules++] = fault_rule(HK_FAULT_TLS);
    p->rules[p->n_rules++] = fault_rule(HK_FAULT_TLS_VERIFY);
    p->rules[p->n_rules++] = fault_rule(HK_FAULT_PROTOCOL);
}

/* The schedule that Standard Webhooks suggests. The cap leaves room for the jitter on the last wait. */
static void standard_webhooks(struct hk_policy *p)
{
    p->backoff = (struct hk_backoff){.kind = HK_BACKOFF_LIST,
                                     .cap_ms = 27 * HOUR,
                                     .n_waits = 9,
                                     .waits_ms = {5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR,
                                                  10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR}};
    p->jitter = (struct hk_jitter){.kind = HK_JITTER_RATIO, .ratio = 0.1};
    p->limits.max_attempts = 10;
    p->limits.max_elapsed_ms = (uint64_t)96 * HOUR;
}

static const struct {
    const char *name, *summary;
    void (*apply)(struct hk_policy *); /* NULL: the defaults as they are */
} presets[] = {
    {"standard", "exponential 1s x2 up to 1h, full jitter, 30 attempts or 24h", NULL},
    {"sync-pipeline", "1, 2, 4, 8s …, 10 attempts; 429: 4 attempts 10s apart; auth and bad data: none",
     sync_pipeline},
    {"azure-exponential", "min 1s + (2^n - 1) x 10s ±20 %, max 30s, 10 retries", azure_exponential},
    {"azure-linear", "1s ±20 %, 10 retries", azure_linear},
    {"cloud-tasks", "0.1s doubling 16 times, then linear, up to 1h, 100 attempts; any non-2xx is retried",
     cloud_tasks},
    {"standard-webhooks", "5s, 5m, 30m, 2h, 5h, 10h, 14h, 20h, 24h, ±10 %", standard_webhooks},
};

enum {
    N_PRESETS = sizeof presets / sizeof presets[0]
};

const char *hk_preset_name(size_t i)
{
    return i < N_PRESETS ? presets[i].name : NULL;
}

const char *hk_preset_summary(size_t i)
{
    return i < N_PRESETS ? presets[i].summary : NULL;
}

bool hk_preset_apply(const char *preset, struct hk_policy *policy)
{
    for (size_t i = 0; i < N_PRESETS; i++) {
        if (strcmp(presets[i].name, preset) != 0)
            continue;
        *policy = (struct hk_policy){.n_rules = 0};
        defaults(policy);
        if (presets[i].apply)
            presets[i].apply(policy);
        snprintf(policy->name, sizeof policy->name, "%s", preset);
        snprintf(policy->preset, sizeof policy->preset, "%s", preset);
        return true;
    }
    return false;
}
