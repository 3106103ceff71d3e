/* SPDX-License-Identifier: Apache-2.0 */
/* The retry budget: retries may be a share of the traffic, never a multiple of it.
 *
 * Two published rules: gRPC's (proposal A6, "retry throttling") and that of AWS's SDKs (the "standard" retry
 * mode's quota). Tokens are counted in whole millionths, because a million additions of 0.1 to a double are not
 * 100,000, and a budget that drifts refuses or allows at the wrong failure. */
#include <hikyaku/breaker.h>

#include "base/mem.h"
#include "core/bounds.h"

#define MICRO      1e6
#define TOKENS_MAX 1e9

struct hk_budget {
    enum hk_budget_kind kind;
    uint64_t max; /* this and all below: millionths of a token, at most 1e15 */
    uint64_t gain;
    uint64_t retry_cost;
    uint64_t timeout_cost;
    uint64_t tokens;
};

void hk_budget_options_init(struct hk_budget_options *options, enum hk_budget_kind kind)
{
    static const struct hk_budget_options grpc = {HK_BUDGET_GRPC, 10, 0.1, 1, 1};
    static const struct hk_budget_options aws = {HK_BUDGET_AWS, 500, 1, 5, 10};

    *options = kind == HK_BUDGET_AWS ? aws : grpc;
    options->kind = kind; /* kept even when it is neither: hk_budget_new refuses it */
}

static uint64_t to_micro(double tokens)
{
    return (uint64_t)(tokens * MICRO + 0.5);
}

static enum hk_code read_tokens(const char *name, double value, uint64_t *out_micro, struct hk_err *err)
{
    enum hk_code rc = hk_bounds_double(name, value, 1 / MICRO, TOKENS_MAX, err);
    if (rc == HK_OK)
        *out_micro = to_micro(value);
    return rc;
}

static enum hk_code read_options(const struct hk_budget_options *o, struct hk_budget *b, struct hk_err *err)
{
    if (o->kind != HK_BUDGET_GRPC && o->kind != HK_BUDGET_AWS)
        return hk_err_set(err, HK_INVALID, "kind: there is no retry budget %d", (int)o->kind);
    b->kind = o->kind;
    enum hk_code rc = read_tokens("max_tokens", o->max_tokens, &b->max, err);
    if (rc == HK_OK)
        rc = read_tokens("success_gain", o->success_gain, &b->gain, err);
    if (rc == HK_OK)
        rc = read_tokens("retry_cost", o->retry_cost, &b->retry_cost, err);
    if (rc == HK_OK && o->kind == HK_BUDGET_AWS)
        return read_tokens("timeout_cost", o->timeout_cost, &b->timeout_cost, err);
    b->timeout_cost = b->retry_cost; /* gRPC knows no other */
    return rc;
}

enum hk_code hk_budget_new(const struct hk_budget_options *options, struct hk_budget **out_budget,
                           struct hk_err *err)
{
    struct hk_budget read = {0};
    enum hk_code rc = read_options(options, &read, err);
    if (rc != HK_OK)
        return rc;
    struct hk_budget *b = hk_mem_alloc(sizeof *b);
    if (!b)
        return hk_err_set(err, HK_NOMEM, "out of memory for a retry budget");
    read.tokens = read.max;
    *b = read;
    *out_budget = b;
    return HK_OK;
}

void hk_budget_free(struct hk_budget *budget)
{
    hk_mem_free(budget);
}

static uint64_t cost_of(const struct hk_budget *b, bool timeout)
{
    return timeout ? b->timeout_cost : b->retry_cost;
}

bool hk_budget_failure(struct hk_budget *budget, bool timeout, bool wants_retry)
{
    uint64_t cost = cost_of(budget, timeout);
    bool can_pay = budget->tokens >= cost;

    switch (budget->kind) {
    case HK_BUDGET_GRPC:
        budget->tokens = can_pay ? budget->tokens - cost : 0;
        return wants_retry && budget->tokens * 2 > budget->max;
    case HK_BUDGET_AWS:
        budget->tokens -= wants_retry && can_pay ? cost : 0;
        break;
    }
    return wants_retry && can_pay;
}

void hk_budget_success(struct hk_budget *budget, double paid)
{
    uint64_t gain = budget->gain;
    if (budget->kind == HK_BUDGET_AWS && paid > 0) /* not so for NaN */
        gain = paid < TOKENS_MAX ? to_micro(paid) : budget->max;
    uint64_t room = budget->max - budget->tokens;
    budget->tokens += gain < room ? gain : room;
}

double hk_budget_cost(const struct hk_budget *budget, bool timeout)
{
    return (double)cost_of(budget, timeout) / MICRO;
}

double hk_budget_tokens(const struct hk_budget *budget)
{
    return (double)budget->tokens / MICRO;
}
