/* SPDX-License-Identifier: Apache-2.0 */
/* `policy show`: whatever policies a configuration has, what is printed of each is a configuration that is accepted, has the same policy, and
 * is printed as the same text again. Any bytes as the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hikyaku/breaker.h>

#include "base/str.h"
#include "config/config.h"
#include "desk/policy.h"
#include "fuzz.h"

static const char *get(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "N") == 0 ? "5" : NULL;
}

static enum hk_code read_file(void *arg, const char *path, struct hk_buf *out, struct hk_err *err)
{
    (void)arg, (void)path, (void)out;
    return hk_err_set(err, HK_NOTFOUND, "not here");
}

static struct hk_config *parse(struct hk_str text)
{
    const struct hk_config_env env = {.get = get, .read_file = read_file, .foreign_custom = true};
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(text.ptr, text.len, "f", &env, &diags, &config);
    MUST((rc == HK_OK) == (config != NULL));
    hk_diags_fini(&diags);
    return config;
}

/* ---- the same policy, not only the same text ---- */

static void check_backoff(const struct hk_backoff *a, const struct hk_backoff *b)
{
    MUST(a->kind == b->kind && a->fast_first == b->fast_first && a->cap_ms == b->cap_ms);
    for (uint32_t n = 1; n < 9; n++)
        MUST(hk_backoff_ceiling_ms(a, n) == hk_backoff_ceiling_ms(b, n));
}

static void check_rule(const struct hk_rule *a, const struct hk_rule *b)
{
    MUST(a->kind == b->kind && a->to_class == b->to_class && a->pause == b->pause);
    MUST(a->kind != HK_MATCH_STATUS || (a->status_lo == b->status_lo && a->status_hi == b->status_hi));
    MUST(a->kind != HK_MATCH_FAULT || a->fault == b->fault);
    MUST(a->kind != HK_MATCH_REASON || strcmp(a->match_reason, b->match_reason) == 0);
    MUST(strcmp(a->header, b->header) == 0 && strcmp(a->header_contains, b->header_contains) == 0 &&
         strcmp(a->body_contains, b->body_contains) == 0 && strcmp(a->to_reason, b->to_reason) == 0);
}

static void check_class(const struct hk_class_rule *a, const struct hk_class_rule *b)
{
    MUST(a->retry == b->retry && a->charge == b->charge && a->max_attempts == b->max_attempts &&
         a->pause_after == b->pause_after && a->has_backoff == b->has_backoff &&
         a->has_jitter == b->has_jitter);
    if (a->has_backoff)
        check_backoff(&a->backoff, &b->backoff);
    MUST(!a->has_jitter || a->jitter.kind == b->jitter.kind);
}

static void check_same(const struct hk_policy *a, const struct hk_policy *b)
{
    const struct hk_limits *x = hk_policy_limits(a), *y = hk_policy_limits(b);
    const struct hk_breaker_options *p = hk_policy_breaker(a), *q = hk_policy_breaker(b);
    MUST(x->max_attempts == y->max_attempts && x->max_elapsed_ms == y->max_elapsed_ms &&
         x->timeout_ms == y->timeout_ms && x->mode == y->mode && x->hints == y->hints &&
         x->hint_cap_ms == y->hint_cap_ms);
    MUST((p == NULL) == (q == NULL));
    MUST(p == NULL ||
         (p->failures == q->failures && p->min_throughput == q->min_throughput &&
          p->window_ms == q->window_ms && p->open_ms == q->open_ms && p->open_cap_ms == q->open_cap_ms &&
          p->probes == q->probes && p->successes == q->successes));
    check_backoff(hk_policy_backoff(a), hk_policy_backoff(b));
    MUST(hk_policy_jitter(a)->kind == hk_policy_jitter(b)->kind);
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        check_class(hk_policy_class(a, (enum hk_class)c), hk_policy_class(b, (enum hk_class)c));
    size_t i = 0;
    for (; hk_policy_rule(a, i) != NULL && hk_policy_rule(b, i) != NULL; i++)
        check_rule(hk_policy_rule(a, i), hk_policy_rule(b, i));
    MUST(hk_policy_rule(a, i) == hk_policy_rule(b, i));
}

static void check_policy(const struct hk_policy *policy)
{
    struct hk_buf first, second;
    char shown[HK_POLICY_TEXT];
    hk_buf_init(&first, 1 << 20);
    hk_buf_init(&second, 1 << 20);
    hk_policy_yaml(policy, &first);
    MUST(hk_buf_status(&first) == HK_OK);
    struct hk_config *again = parse(hk_buf_str(&first));
    MUST(again != NULL);
    const struct hk_policy *other = hk_policies_get(again->policies, hk_policy_name(policy));
    MUST(other != NULL);
    check_same(policy, other);
    hk_policy_yaml(other, &second);
    if (hk_policy_ops(policy, NULL) == NULL) /* else it says, in a comment, that code decides */
        MUST(hk_str_eq(hk_buf_str(&first), hk_buf_str(&second)));
    MUST(strlen(hk_policy_backoff_text(hk_policy_backoff(policy), shown)) < sizeof shown);
    MUST(strlen(hk_policy_jitter_text(hk_policy_jitter(policy), shown)) < sizeof shown);
    hk_config_free(again);
    hk_buf_fini(&first);
    hk_buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_policy *policy = NULL;
    if (size > 4096)
        return 0;
    struct hk_config *config = parse((struct hk_str){(const char *)data, size});
    for (size_t i = 0; config != NULL && (policy = hk_policies_at(config->policies, i)) != NULL; i++)
        check_policy(policy);
    hk_config_free(config);
    return 0;
}
