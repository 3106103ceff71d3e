/* SPDX-License-Identifier: Apache-2.0 */
/* A queue's retryConfig as a policy: the one that the queue names, changed by what the queue gives, with Google's rule for the end. */
#include <string.h>

#include "base/pool.h"
#include "config/build.h"
#include "config/tables.h"
#include "core/policy_impl.h"

#define LIFE_MS UINT64_C(2678400000) /* 31 days: as long as Cloud Tasks keeps a task */

/* One queue in trouble is slowed by the share of its failures: a single task that fails ten times in a row must keep its waits. */
static void set_breaker(struct hk_policy *p)
{
    hk_breaker_options_init(&p->breaker);
    p->has_breaker = true;
    p->breaker.failures = 0;
    p->breaker.ratio = 0.9;
    p->breaker.min_throughput = 50;
}

static void set_waits(const struct hk_conf_queue *conf, struct hk_policy *p)
{
    bool any = HK_GIVEN(conf, HK_QUEUE_MIN_BACKOFF_OPT) || HK_GIVEN(conf, HK_QUEUE_MAX_BACKOFF_OPT) ||
               HK_GIVEN(conf, HK_QUEUE_MAX_DOUBLINGS_OPT);
    if (any && p->backoff.kind != HK_BACKOFF_CLOUD_TASKS) {
        uint64_t base_ms = p->backoff.base_ms, cap_ms = p->backoff.cap_ms;
        p->backoff = (struct hk_backoff){
            .kind = HK_BACKOFF_CLOUD_TASKS, .base_ms = base_ms, .cap_ms = cap_ms, .max_doublings = 16};
        p->jitter = (struct hk_jitter){.kind = HK_JITTER_NONE};
    }
    if (HK_GIVEN(conf, HK_QUEUE_MIN_BACKOFF_OPT))
        p->backoff.base_ms = conf->min_backoff_ms;
    if (HK_GIVEN(conf, HK_QUEUE_MAX_BACKOFF_OPT))
        p->backoff.cap_ms = conf->max_backoff_ms;
    if (HK_GIVEN(conf, HK_QUEUE_MAX_DOUBLINGS_OPT))
        p->backoff.max_doublings = conf->max_doublings;
}

/* Attempts and time must both be spent, where both are limited; and nothing is tried for ever. */
static void set_limits(const struct hk_conf_queue *conf, struct hk_policy *p)
{
    if (HK_GIVEN(conf, HK_QUEUE_MAX_ATTEMPTS_OPT))
        p->limits.max_attempts = (uint32_t)conf->max_attempts;
    if (HK_GIVEN(conf, HK_QUEUE_MAX_RETRY_OPT))
        p->limits.max_elapsed_ms = conf->max_retry_ms;
    if (HK_GIVEN(conf, HK_QUEUE_MAX_ATTEMPTS_OPT) || HK_GIVEN(conf, HK_QUEUE_MAX_RETRY_OPT))
        p->limits.mode = HK_LIMIT_ALL;
    if (!p->limits.max_attempts && !p->limits.max_elapsed_ms)
        p->limits.max_elapsed_ms = LIFE_MS;
}

enum hk_code hk_build_queue_policy(const struct hk_conf_queue *conf, const struct hk_policy *base,
                                   struct hk_pool *arena, const struct hk_policy **out, struct hk_err *err)
{
    struct hk_policy *p = base ? hk_pool_alloc(arena, 1, sizeof *p) : NULL;
    if (!base)
        return hk_err_set(err, HK_INVALID, "its policy is not known");
    if (!p)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    memcpy(p, base, sizeof *p);
    set_waits(conf, p);
    set_limits(conf, p);
    set_breaker(p);
    enum hk_code rc = hk_policy_check(p, err);
    if (rc == HK_OK)
        *out = p;
    return rc;
}
