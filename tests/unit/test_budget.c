/* SPDX-License-Identifier: Apache-2.0 */
/* The retry budget against the two published rules, and against a model that replays every event. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hikyaku/breaker.h>

#include "check.h"
#include "failing.h"

static struct hk_budget *make(enum hk_budget_kind kind)
{
    struct hk_budget_options o;
    struct hk_budget *b = NULL;
    hk_budget_options_init(&o, kind);
    assert_int_equal(hk_budget_new(&o, &b, NULL), HK_OK);
    return b;
}

static void the_defaults_are_the_published_ones(void **state)
{
    (void)state;
    struct hk_budget_options o;
    hk_budget_options_init(&o, HK_BUDGET_GRPC);
    assert_int_equal(o.kind, HK_BUDGET_GRPC);
    assert_true(o.max_tokens == 10.0 && o.success_gain == 0.1 && o.retry_cost == 1.0);
    hk_budget_options_init(&o, HK_BUDGET_AWS);
    assert_int_equal(o.kind, HK_BUDGET_AWS);
    assert_true(o.max_tokens == 500.0 && o.success_gain == 1.0);
    assert_true(o.retry_cost == 5.0 && o.timeout_cost == 10.0);
}

enum field {
    KIND,
    MAX,
    GAIN,
    COST,
    TIMEOUT_COST
};

static void set_field(struct hk_budget_options *o, enum field field, double value)
{
    switch (field) {
    case KIND:
        o->kind = (enum hk_budget_kind)(int)value;
        break;
    case MAX:
        o->max_tokens = value;
        break;
    case GAIN:
        o->success_gain = value;
        break;
    case COST:
        o->retry_cost = value;
        break;
    case TIMEOUT_COST:
        o->timeout_cost = value;
        break;
    }
}

static void options_outside_their_range_are_refused_by_name(void **state)
{
    (void)state;

    static const struct {
        enum hk_budget_kind kind;
        enum field field;
        double value;
        enum hk_code code;
        const char *names;
    } cases[] = {
        {HK_BUDGET_GRPC, KIND, 2, HK_INVALID, "kind"},
        {HK_BUDGET_GRPC, MAX, 0, HK_RANGE, "max_tokens"},
        {HK_BUDGET_GRPC, MAX, -1, HK_RANGE, "max_tokens"},
        {HK_BUDGET_GRPC, MAX, 1e-7, HK_RANGE, "max_tokens"},
        {HK_BUDGET_GRPC, MAX, 1e-6, HK_OK, ""},
        {HK_BUDGET_GRPC, MAX, 1e9, HK_OK, ""},
        {HK_BUDGET_GRPC, MAX, 1e9 + 1, HK_RANGE, "max_tokens"},
        {HK_BUDGET_GRPC, MAX, (double)NAN, HK_INVALID, "max_tokens"},
        {HK_BUDGET_GRPC, MAX, HUGE_VAL, HK_INVALID, "max_tokens"},
        {HK_BUDGET_GRPC, GAIN, 0, HK_RANGE, "success_gain"},
        {HK_BUDGET_GRPC, GAIN, -HUGE_VAL, HK_INVALID, "success_gain"},
        {HK_BUDGET_GRPC, COST, 0, HK_RANGE, "retry_cost"},
        {HK_BUDGET_GRPC, COST, (double)NAN, HK_INVALID, "retry_cost"},
        {HK_BUDGET_GRPC, TIMEOUT_COST, 0, HK_OK, ""}, /* gRPC has none */
        {HK_BUDGET_AWS, TIMEOUT_COST, 0, HK_RANGE, "timeout_cost"},
        {HK_BUDGET_AWS, TIMEOUT_COST, 2e9, HK_RANGE, "timeout_cost"},
        {HK_BUDGET_AWS, COST, 2e9, HK_RANGE, "retry_cost"},
        {HK_BUDGET_AWS, MAX, 1e9, HK_OK, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_budget_options o;
        struct hk_budget *b = NULL;
        struct hk_err err = {0};
        hk_budget_options_init(&o, cases[i].kind);
        set_field(&o, cases[i].field, cases[i].value);
        assert_int_equal(hk_budget_new(&o, &b, &err), cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_int_equal(strncmp(err.message, cases[i].names, strlen(cases[i].names)), 0);
        assert_true((b != NULL) == (cases[i].code == HK_OK));
        hk_budget_free(b);
    }
}

static void an_unknown_kind_stays_unknown(void **state)
{
    (void)state;
    struct hk_budget_options o;
    int outside = 3;
    hk_budget_options_init(&o, (enum hk_budget_kind)outside);
    assert_int_equal(o.kind, outside);
}

/* proposal A6: maxTokens 10, tokenRatio 0.1: retries stop at half, every success brings a tenth back */
static void grpc_allows_retries_above_half_of_the_tokens(void **state)
{
    (void)state;
    struct hk_budget *b = make(HK_BUDGET_GRPC);
    for (int left = 9; left >= 6; left--) {
        assert_true(hk_budget_failure(b, left % 2, true)); /* a timeout costs the same */
        assert_true(hk_budget_tokens(b) == (double)left);
    }
    assert_false(hk_budget_failure(b, false, true)); /* 5 is not above 5 */
    for (int i = 0; i < 10; i++)
        assert_false(hk_budget_failure(b, false, true)); /* failures go on costing … */
    assert_true(hk_budget_tokens(b) == 0.0);             /* … down to nothing, not below */
    for (int i = 0; i < 60; i++)
        hk_budget_success(b, 0);
    assert_true(hk_budget_tokens(b) == 6.0);
    assert_false(hk_budget_failure(b, false, true));
    for (int i = 0; i < 11; i++)
        hk_budget_success(b, 100); /* what was paid means nothing here */
    assert_true(hk_budget_tokens(b) == 6.1);
    assert_true(hk_budget_failure(b, false, true));
    assert_true(hk_budget_tokens(b) == 5.1);
    for (int i = 0; i < 1000; i++)
        hk_budget_success(b, 0);
    assert_true(hk_budget_tokens(b) == 10.0);
    assert_true(hk_budget_cost(b, false) == 1.0 && hk_budget_cost(b, true) == 1.0);
    hk_budget_free(b);
}

static void aws_refuses_a_retry_that_cannot_pay(void **state)
{
    (void)state;
    struct hk_budget *b = make(HK_BUDGET_AWS);
    assert_true(hk_budget_cost(b, false) == 5.0 && hk_budget_cost(b, true) == 10.0);
    for (int i = 0; i < 49; i++)
        assert_true(hk_budget_failure(b, true, true));
    assert_true(hk_budget_failure(b, false, true));
    assert_true(hk_budget_tokens(b) == 5.0);
    assert_false(hk_budget_failure(b, true, true)); /* 10 is too much … */
    assert_true(hk_budget_tokens(b) == 5.0);        /* … and refusing costs nothing */
    assert_true(hk_budget_failure(b, false, true)); /* 5 is just there */
    assert_true(hk_budget_tokens(b) == 0.0);
    hk_budget_success(b, 0); /* first try: the gain */
    assert_true(hk_budget_tokens(b) == 1.0);
    hk_budget_success(b, hk_budget_cost(b, true)); /* a retry: what it had paid */
    assert_true(hk_budget_tokens(b) == 11.0);
    hk_budget_free(b);
}

static void aws_takes_no_nonsense_as_payment(void **state)
{
    (void)state;

    static const struct {
        double paid;
        double tokens; /* from 0 */
    } cases[] = {
        {(double)NAN, 1}, {-HUGE_VAL, 1}, {-5, 1},     {-0.0, 1},      {HUGE_VAL, 500},
        {1e300, 500},     {1e9, 500},     {1e-300, 0}, {499.5, 499.5}, {0.000001, 0.000001},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_budget *b = make(HK_BUDGET_AWS);
        for (int k = 0; k < 50; k++)
            assert_true(hk_budget_failure(b, true, true));
        hk_budget_success(b, cases[i].paid);
        assert_true(hk_budget_tokens(b) == cases[i].tokens);
        hk_budget_free(b);
    }
}

static void a_million_small_gains_do_not_drift(void **state)
{
    (void)state;
    struct hk_budget_options o = {HK_BUDGET_GRPC, 300000, 0.1, 299999, 0};
    struct hk_budget *b = NULL;
    assert_int_equal(hk_budget_new(&o, &b, NULL), HK_OK);
    assert_false(hk_budget_failure(b, false, true));
    for (int i = 0; i < 1000000; i++)
        hk_budget_success(b, 0);
    assert_true(hk_budget_tokens(b) == 100001.0);
    hk_budget_free(b);
}

/* ---- memory ---- */

static enum hk_code make_and_free(void)
{
    struct hk_budget_options o;
    hk_budget_options_init(&o, HK_BUDGET_AWS);
    struct hk_budget *b = NULL;
    struct hk_err err = {0};
    enum hk_code rc = hk_budget_new(&o, &b, &err);
    assert_true((b != NULL) == (rc == HK_OK));
    assert_int_equal(err.code, rc);
    hk_budget_free(b);
    return rc;
}

static void out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(make_and_free, HK_OK), 1);
    hk_budget_free(NULL);
}

/* ---- the model: the list of all events, replayed from the start each time, in whole millionths ---- */

#define EPISODE 400

struct micro_options {
    enum hk_budget_kind kind;
    int64_t max, gain, cost, timeout_cost;
};

struct event {
    bool success;
    bool timeout;
    int64_t paid;
};

/* Returns the tokens after all events; *allowed is what the last failure was told. */
static int64_t replay(const struct micro_options *o, const struct event *events, size_t n, bool *allowed)
{
    int64_t tokens = o->max;
    for (size_t i = 0; i < n; i++) {
        const struct event *e = &events[i];
        bool aws = o->kind == HK_BUDGET_AWS;
        if (e->success) {
            tokens += aws && e->paid ? e->paid : o->gain;
        } else if (aws) {
            int64_t cost = e->timeout ? o->timeout_cost : o->cost;
            *allowed = tokens >= cost;
            if (*allowed)
                tokens -= cost;
        } else {
            tokens -= o->cost;
            if (tokens < 0)
                tokens = 0;
            *allowed = (double)tokens > (double)o->max / 2;
        }
        if (tokens > o->max)
            tokens = o->max;
    }
    return tokens;
}

static void run_episode(const struct micro_options *m, struct hk_rng *rng, unsigned seen[2])
{
    struct hk_budget_options o = {m->kind, (double)m->max / 1e6, (double)m->gain / 1e6, (double)m->cost / 1e6,
                                  (double)m->timeout_cost / 1e6};
    struct hk_budget *b = NULL;
    struct event events[EPISODE];
    assert_int_equal(hk_budget_new(&o, &b, NULL), HK_OK);
    uint64_t health = hk_rng_upto(rng, 100);
    for (size_t n = 0; n < EPISODE; n++) {
        struct event *e = &events[n];
        *e = (struct event){.success = hk_rng_upto(rng, 99) < health, .timeout = hk_rng_upto(rng, 1)};
        if (e->success && hk_rng_upto(rng, 2) == 0)
            e->paid = e->timeout ? m->timeout_cost : m->cost;
        bool want = false;
        int64_t tokens = replay(m, events, n + 1, &want);
        if (e->success) {
            hk_budget_success(b, e->paid ? hk_budget_cost(b, e->timeout) : 0);
        } else {
            assert_int_equal(hk_budget_failure(b, e->timeout, true), want);
            seen[want]++;
        }
        assert_true(hk_budget_tokens(b) == (double)tokens / 1e6);
    }
    hk_budget_free(b);
}

static void it_does_what_the_model_does(void **state)
{
    (void)state;
    static const struct micro_options sets[] = {
        {HK_BUDGET_GRPC, 10000000, 100000, 1000000, 0},
        {HK_BUDGET_GRPC, 7, 1, 2, 0},
        {HK_BUDGET_GRPC, 100300000, 333333, 700000, 0},
        {HK_BUDGET_AWS, 500000000, 1000000, 5000000, 10000000},
        {HK_BUDGET_AWS, 10, 3, 4, 7},
        {HK_BUDGET_AWS, 1000000000000000, 123456789, 99999999999999, 77777777777777},
    };
    for (size_t i = 0; i < COUNT(sets); i++) {
        unsigned seen[2] = {0};
        struct hk_rng rng;
        hk_rng_seed(&rng, i, 5);
        for (unsigned n = 0; n < 100; n++)
            run_episode(&sets[i], &rng, seen);
        assert_true(seen[0] > 500 && seen[1] > 500); /* both answers were given */
    }
}

/* A failure that will not be retried counts for gRPC's form, and costs nothing in AWS's. */
static void test_a_failure_without_retry(void **state)
{
    (void)state;
    struct hk_budget_options o;
    struct hk_budget *b = NULL;
    hk_budget_options_init(&o, HK_BUDGET_GRPC);
    assert_int_equal(hk_budget_new(&o, &b, NULL), HK_OK);
    assert_false(hk_budget_failure(b, false, false));
    assert_true(hk_budget_tokens(b) == 9);
    hk_budget_free(b);
    hk_budget_options_init(&o, HK_BUDGET_AWS);
    assert_int_equal(hk_budget_new(&o, &b, NULL), HK_OK);
    assert_false(hk_budget_failure(b, true, false));
    assert_true(hk_budget_tokens(b) == 500);
    hk_budget_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failure_without_retry),
        cmocka_unit_test(the_defaults_are_the_published_ones),
        cmocka_unit_test(options_outside_their_range_are_refused_by_name),
        cmocka_unit_test(an_unknown_kind_stays_unknown),
        cmocka_unit_test(grpc_allows_retries_above_half_of_the_tokens),
        cmocka_unit_test(aws_refuses_a_retry_that_cannot_pay),
        cmocka_unit_test(aws_takes_no_nonsense_as_payment),
        cmocka_unit_test(a_million_small_gains_do_not_drift),
        cmocka_unit_test(out_of_memory_is_an_error_and_leaks_nothing),
        cmocka_unit_test(it_does_what_the_model_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
