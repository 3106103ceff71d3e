/* SPDX-License-Identifier: Apache-2.0 */
/* `policy plan` promises the waits that hk_execute will draw: held to its word here, for every preset and class. */
#include <stdlib.h>

#include <hikyaku/alloc.h>
#include <hikyaku/execute.h>

#include "check.h"
#include "cli/out.h"
#include "desk/plan.h"

struct world {
    int64_t now_ms;
    struct hk_facts facts;
    uint64_t sleeps[HK_PLAN_ROWS_MAX + 1];
    uint32_t n_sleeps;
};

static int64_t world_now(void *arg)
{
    return ((struct world *)arg)->now_ms;
}

static bool world_sleep(void *arg, uint64_t ms)
{
    struct world *world = arg;
    world->now_ms += (int64_t)ms;
    return world->n_sleeps < HK_PLAN_ROWS_MAX; /* a plan shows no more */
}

static void world_retry(void *arg, const struct hk_retry_event *event)
{
    struct world *world = arg;
    assert_true(world->n_sleeps < COUNT(world->sleeps));
    world->sleeps[world->n_sleeps++] = event->sleep_ms;
}

static enum hk_code always_fails(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts)
{
    (void)attempt;
    *facts = ((struct world *)arg)->facts;
    return HK_OK;
}

static struct hk_policy *preset(const char *name)
{
    struct hk_policy *policy = NULL;
    assert_int_equal(hk_policy_new(name, &policy, NULL), HK_OK);
    return policy;
}

static void compare(const struct hk_policy *policy, enum hk_class cls, uint64_t seed)
{
    struct hk_execute_result result;
    struct hk_plan plan;
    struct world world = {.now_ms = 5};
    struct hk_execute_options options = {
        .policy = policy,
        .on_retry = world_retry,
        .on_retry_arg = &world,
        .has_seed = true,
        .seed = seed,
        .clock = {.now_ms = world_now, .wall_ms = world_now, .sleep_ms = world_sleep, .arg = &world}};

    assert_true(hk_plan_facts(policy, cls, &world.facts));
    assert_int_equal(hk_plan_make(policy, cls, &world.facts, seed, &plan, NULL), HK_OK);
    enum hk_code rc = hk_execute(&options, always_fails, &world, &result, NULL);
    assert_int_equal(rc, HK_GAVE_UP);
    NOTE_IF(plan.n_rows != result.attempts, "%s, class %s, seed %u\n", hk_policy_name(policy),
            hk_class_name(cls), (unsigned)seed);
    assert_int_equal(plan.n_rows, result.attempts);
    assert_int_equal(plan.n_rows, world.n_sleeps + 1);
    for (uint32_t i = 0; i < world.n_sleeps; i++) {
        assert_int_equal(plan.rows[i].wait_ms, world.sleeps[i]);
        assert_false(plan.rows[i].last);
    }
    assert_true(plan.rows[plan.n_rows - 1].last);
    assert_string_equal(plan.reason, result.decision.reason);
    assert_int_equal(plan.attempts, result.attempts);
    assert_int_equal(plan.elapsed_ms, result.elapsed_ms);
    hk_plan_fini(&plan);
}

static void drawn_waits_are_those_that_hk_execute_draws(void **state)
{
    (void)state;
    for (size_t p = 0; hk_preset_name(p) != NULL; p++) {
        struct hk_policy *policy = preset(hk_preset_name(p));
        for (int cls = HK_CLASS_TRANSIENT; cls < HK_NCLASSES; cls++) {
            struct hk_facts facts;
            bool some = hk_plan_facts(policy, (enum hk_class)cls, &facts);
            uint64_t seeds = cls == HK_CLASS_TRANSIENT ? 3 : 1;
            for (uint64_t seed = 0; some && seed < seeds; seed++)
                compare(policy, (enum hk_class)cls, seed);
        }
        hk_policy_free(policy);
    }
}

static void waits_lie_between_earliest_and_latest_and_medians_too(void **state)
{
    (void)state;
    for (size_t p = 0; hk_preset_name(p) != NULL; p++) {
        struct hk_policy *policy = preset(hk_preset_name(p));
        struct hk_facts facts = {.status = 503};
        struct hk_plan plan;
        uint64_t so_far = 0;

        assert_int_equal(hk_plan_make(policy, HK_CLASS_TRANSIENT, &facts, 1, &plan, NULL), HK_OK);
        for (uint32_t i = 0; i + 1 < plan.n_rows; i++) {
            const struct hk_plan_row *row = &plan.rows[i];
            assert_true(row->earliest_ms <= row->wait_ms && row->wait_ms <= row->latest_ms);
            assert_true(row->earliest_ms <= row->median_ms && row->median_ms <= row->latest_ms);
            assert_true(row->cumulative_ms >= so_far);
            assert_true(row->runs > 0 && row->runs <= HK_PLAN_RUNS);
            so_far = row->cumulative_ms;
        }
        assert_string_equal(plan.usual_reason, "RETRY_EXHAUSTED");
        hk_plan_fini(&plan);
        hk_policy_free(policy);
    }
}

/* The numbers of requirement 402, which has no jitter: 1 + 2 + 4 + … + 256 s. */
static void a_plan_without_chance_is_exact(void **state)
{
    struct hk_policy *policy = preset("sync-pipeline");
    struct hk_facts facts = {.status = 503};
    struct hk_plan plan;

    (void)state;
    assert_int_equal(hk_plan_make(policy, HK_CLASS_TRANSIENT, &facts, 9, &plan, NULL), HK_OK);
    assert_int_equal(plan.n_rows, 10);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(plan.rows[i].wait_ms, 1000u << i);
        assert_int_equal(plan.rows[i].earliest_ms, 1000u << i);
        assert_int_equal(plan.rows[i].latest_ms, 1000u << i);
        assert_int_equal(plan.rows[i].median_ms, 1000u << i);
        assert_int_equal(plan.rows[i].cumulative_ms, (2000u << i) - 1000);
    }
    assert_int_equal(plan.mean_ms, 511000);
    assert_int_equal(plan.median_ms, 511000);
    assert_int_equal(plan.median_attempts, 10);
    hk_plan_fini(&plan);
    hk_policy_free(policy);
}

static void a_class_with_waits_of_its_own_is_planned_with_them(void **state)
{
    struct hk_policy *policy = preset("sync-pipeline");
    struct hk_facts facts = {.status = 429};
    struct hk_plan plan;

    (void)state;
    assert_int_equal(hk_plan_make(policy, HK_CLASS_RATE_LIMIT, &facts, 1, &plan, NULL), HK_OK);
    assert_int_equal(plan.n_rows, 4);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(plan.rows[i].wait_ms, 10000);
        assert_int_equal(plan.rows[i].earliest_ms, 10000);
        assert_int_equal(plan.rows[i].latest_ms, 10000);
    }
    hk_plan_fini(&plan);
    hk_policy_free(policy);
}

/* Full jitter is even, so that its median lies in the middle. */
static void medians_lie_in_the_middle_of_an_even_draw(void **state)
{
    struct hk_policy *policy = preset("standard");
    struct hk_facts facts = {.status = 503};
    struct hk_plan plan;

    (void)state;
    assert_int_equal(hk_plan_make(policy, HK_CLASS_TRANSIENT, &facts, 1, &plan, NULL), HK_OK);
    for (uint32_t i = 0; i + 1 < plan.n_rows; i++) {
        assert_true(plan.rows[i].median_ms * 10 > plan.rows[i].latest_ms * 4);
        assert_true(plan.rows[i].median_ms * 10 < plan.rows[i].latest_ms * 6);
    }
    hk_plan_fini(&plan);
    hk_policy_free(policy);
}

static void what_is_not_retried_ends_at_the_first_attempt(void **state)
{
    struct hk_policy *policy = preset("standard");
    struct hk_facts facts;
    struct hk_plan plan;

    (void)state;
    assert_true(hk_plan_facts(policy, HK_CLASS_AUTH, &facts));
    assert_int_equal(facts.status, 401);
    assert_int_equal(hk_plan_make(policy, HK_CLASS_AUTH, &facts, 1, &plan, NULL), HK_OK);
    assert_int_equal(plan.n_rows, 1);
    assert_true(plan.rows[0].last);
    assert_int_equal(plan.elapsed_ms, 0);
    assert_string_equal(plan.reason, "AUTH_FAILED");
    assert_string_equal(plan.usual_reason, "AUTH_FAILED");
    hk_plan_fini(&plan);
    hk_policy_free(policy);
}

static void plain_answers_stand_for_the_classes(void **state)
{
    static const struct {
        enum hk_class cls;
        int status;
    } rows[] = {{HK_CLASS_TRANSIENT, 503},
                {HK_CLASS_RATE_LIMIT, 429},
                {HK_CLASS_AUTH, 401},
                {HK_CLASS_PERMANENT, 400},
                {HK_CLASS_UNKNOWN, 302}};
    struct hk_policy *policy = preset("standard");
    struct hk_rule all = {.kind = HK_MATCH_ANY, .to_class = HK_CLASS_PERMANENT};
    struct hk_facts facts;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(hk_plan_facts(policy, rows[i].cls, &facts));
        assert_int_equal(facts.status, rows[i].status);
    }
    assert_int_equal(hk_policy_add_rule(policy, &all, NULL), HK_OK);
    assert_false(hk_plan_facts(policy, HK_CLASS_TRANSIENT, &facts));
    assert_true(hk_plan_facts(policy, HK_CLASS_PERMANENT, &facts));
    hk_policy_free(policy);
}

/* One row of what follows: a policy whose runs are longer than what is drawn. */
struct long_run {
    struct hk_backoff backoff;
    enum hk_jitter_kind jitter;
    struct hk_limits limits;
    uint32_t class_attempts;
    const char *reason;
};

static struct hk_policy *long_policy(const struct long_run *row)
{
    struct hk_policy *policy = preset("standard");
    struct hk_jitter jitter = {.kind = row->jitter};
    struct hk_limits limits = row->limits;
    struct hk_class_rule rule = *hk_policy_class(policy, HK_CLASS_TRANSIENT);

    limits.hint_cap_ms = 1000;
    rule.max_attempts = row->class_attempts;
    assert_int_equal(hk_policy_set_backoff(policy, &row->backoff, &jitter, NULL), HK_OK);
    assert_int_equal(hk_policy_set_limits(policy, &limits, NULL), HK_OK);
    assert_int_equal(hk_policy_set_class(policy, HK_CLASS_TRANSIENT, &rule, NULL), HK_OK);
    return policy;
}

/* The truth: every attempt made. */
static uint64_t live_on(const struct hk_policy *policy, uint64_t seed, struct hk_decision *d,
                        uint64_t *now_ms)
{
    struct hk_history history = {.attempts = 0};
    struct hk_facts facts = {.status = 503};
    struct hk_rng rng;

    *now_ms = 0;
    hk_rng_seed(&rng, seed, HK_RNG_BACKOFF);
    for (;;) {
        hk_policy_decide(policy, NULL, NULL, &history, &facts, (int64_t)*now_ms, 0, &rng, d);
        if (d->verdict != HK_RETRY)
            return history.attempts;
        *now_ms += d->wait_ms;
    }
}

static bool is_near(uint64_t a, uint64_t b)
{
    uint64_t apart = a > b ? a - b : b - a;
    return apart <= b / 50; /* 2 % */
}

static void a_long_run_is_reckoned_to_its_end(void **state)
{
    const struct hk_backoff fixed = {.kind = HK_BACKOFF_FIXED, .base_ms = 10, .cap_ms = 1000};
    const struct hk_backoff linear = {.kind = HK_BACKOFF_LINEAR, .base_ms = 1, .cap_ms = 3600000};
    const struct hk_backoff grown = {
        .kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 10, .cap_ms = 5000, .factor = 1.001};
    const struct hk_backoff azure = {.kind = HK_BACKOFF_AZURE_LINEAR, .base_ms = 100, .cap_ms = 1000};
    const struct long_run rows[] = {
        {fixed, HK_JITTER_NONE, {.max_attempts = 5000}, 0, "RETRY_EXHAUSTED"},
        {fixed, HK_JITTER_FULL, {.max_attempts = 5000}, 0, "RETRY_EXHAUSTED"},
        {fixed, HK_JITTER_NONE, {.max_elapsed_ms = 100000}, 0, "DEADLINE_EXCEEDED"},
        {fixed, HK_JITTER_FULL, {.max_elapsed_ms = 100000, .max_attempts = 90000}, 0, "DEADLINE_EXCEEDED"},
        {fixed, HK_JITTER_NONE, {.max_elapsed_ms = 100000, .max_attempts = 3000}, 0, "RETRY_EXHAUSTED"},
        {fixed, HK_JITTER_NONE, {.max_elapsed_ms = 100000}, 2500, "RETRY_EXHAUSTED"},
        {fixed,
         HK_JITTER_EQUAL,
         {.max_elapsed_ms = 100000, .max_attempts = 3, .mode = HK_LIMIT_ALL},
         0,
         "RETRY_EXHAUSTED"},
        {fixed,
         HK_JITTER_EQUAL,
         {.max_elapsed_ms = 10, .max_attempts = 7000, .mode = HK_LIMIT_ALL},
         0,
         "RETRY_EXHAUSTED"},
        {linear, HK_JITTER_NONE, {.max_elapsed_ms = 50000000}, 0, "DEADLINE_EXCEEDED"},
        {linear, HK_JITTER_DECORRELATED, {.max_attempts = 5000}, 0, "RETRY_EXHAUSTED"},
        {grown, HK_JITTER_NONE, {.max_elapsed_ms = 20000000}, 0, "DEADLINE_EXCEEDED"},
        {azure, HK_JITTER_NONE, {.max_elapsed_ms = 1000000}, 0, "DEADLINE_EXCEEDED"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_policy *policy = long_policy(&rows[i]);
        struct hk_facts facts = {.status = 503};
        struct hk_decision d;
        struct hk_plan plan;
        uint64_t elapsed_ms = 0;
        uint64_t attempts = live_on(policy, 7, &d, &elapsed_ms);

        assert_int_equal(hk_plan_make(policy, HK_CLASS_TRANSIENT, &facts, 7, &plan, NULL), HK_OK);
        NOTE_IF(!is_near(plan.attempts, attempts) || !is_near(plan.elapsed_ms, elapsed_ms),
                "row %zu: %u attempts in %u ms, really %u in %u\n", i, (unsigned)plan.attempts,
                (unsigned)plan.elapsed_ms, (unsigned)attempts, (unsigned)elapsed_ms);
        assert_true(attempts > HK_PLAN_ROWS_MAX);
        assert_true(plan.estimated);
        assert_int_equal(plan.n_rows, HK_PLAN_ROWS_MAX);
        assert_false(plan.rows[HK_PLAN_ROWS_MAX - 1].last);
        assert_true(is_near(plan.attempts, attempts));
        if (rows[i].jitter != HK_JITTER_DECORRELATED) /* whose single runs differ more */
            assert_true(is_near(plan.elapsed_ms, elapsed_ms));
        assert_string_equal(d.reason, rows[i].reason);
        assert_string_equal(plan.reason, rows[i].reason);
        assert_string_equal(plan.usual_reason, rows[i].reason);
        hk_plan_fini(&plan);
        hk_policy_free(policy);
    }
}

/* Billions of attempts, ages of time: still an answer, and soon. */
static void the_longest_runs_that_are_accepted_end(void **state)
{
    const uint64_t century = UINT64_C(100) * 365 * 24 * 3600 * 1000;
    const struct hk_backoff tick = {.kind = HK_BACKOFF_FIXED, .base_ms = 1, .cap_ms = 1};
    const struct hk_backoff slow = {.kind = HK_BACKOFF_FIXED, .base_ms = century, .cap_ms = century};
    const struct long_run rows[] = {
        {tick, HK_JITTER_FULL, {.max_elapsed_ms = century}, 0, "DEADLINE_EXCEEDED"},
        {tick, HK_JITTER_NONE, {.max_attempts = UINT32_MAX}, 0, "RETRY_EXHAUSTED"},
        {slow, HK_JITTER_NONE, {.max_attempts = UINT32_MAX}, 0, "RETRY_EXHAUSTED"},
        {tick,
         HK_JITTER_NONE,
         {.max_attempts = UINT32_MAX, .max_elapsed_ms = century, .mode = HK_LIMIT_ALL},
         0,
         "RETRY_EXHAUSTED"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_policy *policy = long_policy(&rows[i]);
        struct hk_facts facts = {.status = 503};
        struct hk_plan plan;

        assert_int_equal(hk_plan_make(policy, HK_CLASS_TRANSIENT, &facts, 1, &plan, NULL), HK_OK);
        assert_string_equal(plan.usual_reason, rows[i].reason);
        assert_true(plan.median_attempts >= UINT32_MAX);
        assert_true(plan.mean_ms > 0);
        hk_plan_fini(&plan);
        hk_policy_free(policy);
    }
}

static void limits_that_end_a_class_are_told_apart(void **state)
{
    static const struct {
        struct hk_limits limits;
        uint32_t class_attempts;
        bool charge;
        struct hk_plan_limits expected;
    } rows[] = {
        {{.max_attempts = 9, .max_elapsed_ms = 50}, 0, true, {9, 50, 0, 0}},
        {{.max_attempts = 9, .max_elapsed_ms = 50}, 4, true, {4, 50, 0, 0}},
        {{.max_attempts = 9, .max_elapsed_ms = 50}, 12, true, {9, 50, 0, 0}},
        {{.max_attempts = 9, .max_elapsed_ms = 50}, 0, false, {0, 50, 0, 0}},
        {{.max_attempts = 9, .max_elapsed_ms = 50, .mode = HK_LIMIT_ALL}, 0, true, {0, 0, 9, 50}},
        {{.max_attempts = 9, .max_elapsed_ms = 50, .mode = HK_LIMIT_ALL}, 12, true, {12, 0, 9, 50}},
        {{.max_attempts = 9, .max_elapsed_ms = 50, .mode = HK_LIMIT_ALL}, 12, false, {12, 0, 0, 0}},
        {{.max_elapsed_ms = 50, .mode = HK_LIMIT_ALL}, 0, true, {0, 50, 0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_policy *policy = preset("standard");
        struct hk_limits limits = rows[i].limits;
        struct hk_class_rule rule = *hk_policy_class(policy, HK_CLASS_TRANSIENT);
        struct hk_plan_limits got;

        limits.hint_cap_ms = 1;
        rule.max_attempts = rows[i].class_attempts;
        rule.charge = rows[i].charge;
        assert_int_equal(hk_policy_set_limits(policy, &limits, NULL), HK_OK);
        assert_int_equal(hk_policy_set_class(policy, HK_CLASS_TRANSIENT, &rule, NULL), HK_OK);
        hk_plan_limits(policy, HK_CLASS_TRANSIENT, &got);
        assert_int_equal(got.attempts, rows[i].expected.attempts);
        assert_int_equal(got.elapsed_ms, rows[i].expected.elapsed_ms);
        assert_int_equal(got.both_attempts, rows[i].expected.both_attempts);
        assert_int_equal(got.both_ms, rows[i].expected.both_ms);
        hk_policy_free(policy);
    }
}

static void only_failures_are_planned(void **state)
{
    struct hk_policy *policy = preset("standard");
    struct hk_facts facts = {.status = 200};
    struct hk_plan plan;

    (void)state;
    assert_int_equal(hk_plan_make(policy, HK_CLASS_SUCCESS, &facts, 1, &plan, NULL), HK_INVALID);
    hk_policy_free(policy);
}

struct failing {
    unsigned left;
    bool for_ever;
    unsigned failed;
    int live;
};

static void *failing_resize(void *arg, void *ptr, size_t bytes)
{
    struct failing *f = arg;

    if (f->left == 0 && (f->for_ever || f->failed == 0)) {
        f->failed++;
        return NULL;
    }
    if (f->left > 0)
        f->left--;
    void *got = realloc(ptr, bytes);
    if (got != NULL && ptr == NULL)
        f->live++;
    return got;
}

static void failing_release(void *arg, void *ptr)
{
    struct failing *f = arg;
    if (ptr != NULL)
        f->live--;
    free(ptr);
}

static void out_of_memory_is_returned_and_leaks_nothing(void **state)
{
    struct hk_facts facts = {.status = 503};

    (void)state;
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (unsigned k = 0;; k++) {
            struct failing f = {.left = k, .for_ever = for_ever != 0};
            struct hk_allocator allocator = {failing_resize, failing_release, &f};
            struct hk_policy *policy = preset("sync-pipeline");
            struct hk_plan plan = {.rows = NULL};

            hk_allocator_set(&allocator);
            enum hk_code rc = hk_plan_make(policy, HK_CLASS_TRANSIENT, &facts, 1, &plan, NULL);
            hk_plan_fini(&plan);
            hk_allocator_set(NULL);
            hk_policy_free(policy);
            assert_int_equal(f.live, 0);
            assert_int_equal(rc, f.failed > 0 ? HK_NOMEM : HK_OK);
            if (rc == HK_OK)
                break;
            assert_true(k < 100);
        }
}

static void durations_read_well(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {1, "1ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1049, "1s"},
        {1050, "1.1s"},
        {59949, "59.9s"},
        {59950, "1m"},
        {60000, "1m"},
        {2048000, "34m08s"},
        {3599499, "59m59s"},
        {3599500, "1h"},
        {32657672, "9h04m"},
        {86399999, "24h"},
        {86400000, "24h"},
        {90000000, "25h"},
        {172800000, "2d"},
        {UINT64_C(345600000), "4d"},
        {UINT64_C(306000000), "3d13h"},
    };

    char out[HK_SHOW_NUMBER];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(hk_show_duration(rows[i].ms, out), rows[i].text);
    assert_true(strlen(hk_show_duration(UINT64_MAX, out)) < HK_SHOW_NUMBER);
    assert_string_equal(hk_show_count(0, out), "0");
    assert_string_equal(hk_show_count(999, out), "999");
    assert_string_equal(hk_show_count(1000, out), "1,000");
    assert_string_equal(hk_show_count(1234567, out), "1,234,567");
    assert_string_equal(hk_show_count(UINT64_MAX, out), "18,446,744,073,709,551,615");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_waits_are_those_that_hk_execute_draws),
        cmocka_unit_test(waits_lie_between_earliest_and_latest_and_medians_too),
        cmocka_unit_test(a_plan_without_chance_is_exact),
        cmocka_unit_test(a_class_with_waits_of_its_own_is_planned_with_them),
        cmocka_unit_test(medians_lie_in_the_middle_of_an_even_draw),
        cmocka_unit_test(what_is_not_retried_ends_at_the_first_attempt),
        cmocka_unit_test(plain_answers_stand_for_the_classes),
        cmocka_unit_test(a_long_run_is_reckoned_to_its_end),
        cmocka_unit_test(the_longest_runs_that_are_accepted_end),
        cmocka_unit_test(limits_that_end_a_class_are_told_apart),
        cmocka_unit_test(only_failures_are_planned),
        cmocka_unit_test(out_of_memory_is_returned_and_leaks_nothing),
        cmocka_unit_test(durations_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
