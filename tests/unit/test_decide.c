/* SPDX-License-Identifier: Apache-2.0 */
/* What single settings of a policy do to a decision; whole lives of messages are in test_policy.c. */
#include <hikyaku/policy.h>

#include "check.h"
#include "core/policy_impl.h"

static struct hk_decision decide(const struct hk_policy *p, struct hk_history *history, struct hk_facts facts,
                                 struct hk_rng *rng)
{
    struct hk_decision d;
    hk_policy_decide(p, NULL, NULL, history, &facts, 0, 0, rng, &d);
    assert_int_equal(d.verdict, HK_RETRY);
    return d;
}

static void a_class_has_its_own_jitter(void **state)
{
    (void)state;
    struct hk_policy *p = NULL;
    assert_int_equal(hk_policy_new("sync-pipeline", &p, NULL), HK_OK); /* which has none */
    struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_TRANSIENT);
    rule.has_jitter = true;
    rule.jitter = (struct hk_jitter){.kind = HK_JITTER_ADD, .add_ms = 400};
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_TRANSIENT, &rule, NULL), HK_OK);
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct hk_history history = {.attempts = 0};
        struct hk_rng rng;
        hk_rng_seed(&rng, seed, HK_RNG_BACKOFF);
        uint64_t wait_ms = decide(p, &history, (struct hk_facts){.status = 503}, &rng).wait_ms;
        assert_true(wait_ms >= 1000 && wait_ms <= 1400);
        least = wait_ms < least ? wait_ms : least;
        most = wait_ms > most ? wait_ms : most;
        /* the other classes keep the policy's */
        assert_int_equal(decide(p, &history, (struct hk_facts){.status = 302}, &rng).wait_ms, 1000);
    }
    assert_true(least < 1040 && most > 1360);
    hk_policy_free(p);
}

/* Chance lengthens an accepted hint only where the class's own waits are random. */
static void a_hint_is_lengthened_where_the_class_has_jitter(void **state)
{
    (void)state;
    struct hk_header after = {{"Retry-After", 11}, {"100", 3}};
    for (int has_jitter = 0; has_jitter < 2; has_jitter++) {
        struct hk_policy *p = NULL;
        assert_int_equal(hk_policy_new("sync-pipeline", &p, NULL), HK_OK);
        struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_TRANSIENT);
        rule.has_jitter = has_jitter;
        rule.jitter = (struct hk_jitter){.kind = HK_JITTER_FULL};
        assert_int_equal(hk_policy_set_class(p, HK_CLASS_TRANSIENT, &rule, NULL), HK_OK);
        struct hk_history history = {.attempts = 0};
        struct hk_rng rng;
        hk_rng_seed(&rng, 1, HK_RNG_BACKOFF);
        bool longer = false;
        for (int i = 0; i < 8; i++) {
            struct hk_facts facts = {.status = 503, .headers = &after, .n_headers = 1};
            struct hk_decision d = decide(p, &history, facts, &rng);
            assert_true(d.hinted && d.wait_ms >= 100000 && d.wait_ms <= 110000);
            longer = longer || d.wait_ms > 100000;
        }
        assert_int_equal(longer, has_jitter);
        hk_policy_free(p);
    }
}

/* The setters refuse these; whoever fills a policy in another way is told by the check. */
static void the_check_finds_what_a_setter_would_have_refused(void **state)
{
    (void)state;
    struct hk_policy *p = NULL;
    assert_int_equal(hk_policy_new("standard", &p, NULL), HK_OK);
    double factor = p->backoff.factor;
    p->backoff.factor = 1e300;
    assert_int_equal(hk_policy_check(p, NULL), HK_RANGE);
    p->backoff.factor = factor;
    p->limits.timeout_ms = UINT64_MAX;
    assert_int_equal(hk_policy_check(p, NULL), HK_RANGE);
    hk_policy_free(p);
}

static void a_message_may_ask_for_attempts_up_to_a_ceiling(void **state)
{
    (void)state;
    struct hk_limits limits = {.max_attempts = 30};

    const struct {
        uint32_t own, asked, ceiling, gets;
    } cases[] = {
        {30, 0, 100, 0},     {30, 1, 100, 1},      {30, 30, 100, 30},      {30, 31, 100, 31},
        {30, 100, 100, 100}, {30, 101, 100, 100},  {30, 999999, 100, 100}, {30, 40, 20, 30},
        {30, 10, 20, 10},    {200, 500, 100, 200}, {30, 5000, 0, 5000},    {0, 5000, 100, 5000},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        limits.max_attempts = cases[i].own;
        assert_int_equal(hk_limits_attempts_within(&limits, cases[i].asked, cases[i].ceiling), cases[i].gets);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_has_its_own_jitter),
        cmocka_unit_test(a_hint_is_lengthened_where_the_class_has_jitter),
        cmocka_unit_test(a_message_may_ask_for_attempts_up_to_a_ceiling),
        cmocka_unit_test(the_check_finds_what_a_setter_would_have_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
