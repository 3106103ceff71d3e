/* SPDX-License-Identifier: Apache-2.0 */
/* The model behind `policy simulate`, against cases that can be worked out by hand and laws that always hold. */
#include <stdlib.h>

#include <hikyaku/alloc.h>
#include <hikyaku/policy.h>

#include "check.h"
#include "cli/policy/chart.h"
#include "desk/herd.h"

static struct hk_policy *preset(const char *name)
{
    struct hk_policy *policy = NULL;
    assert_int_equal(hk_policy_new(name, &policy, NULL), HK_OK);
    return policy;
}

/* Waits of exactly `base_ms`, for ever or `max_attempts` times. */
static struct hk_policy *fixed(uint64_t base_ms, uint32_t max_attempts)
{
    struct hk_policy *policy = preset("standard");
    struct hk_backoff backoff = {.kind = HK_BACKOFF_FIXED, .base_ms = base_ms, .cap_ms = base_ms};
    struct hk_jitter none = {.kind = HK_JITTER_NONE};
    struct hk_limits limits = *hk_policy_limits(policy);

    limits.max_attempts = max_attempts;
    limits.max_elapsed_ms = 0;
    assert_int_equal(hk_policy_set_backoff(policy, &backoff, &none, NULL), HK_OK);
    assert_int_equal(hk_policy_set_limits(policy, &limits, NULL), HK_OK);
    return policy;
}

static struct hk_herd run(const struct hk_policy *policy, uint32_t clients, uint64_t outage_ms,
                          uint64_t spread_ms, double capacity, uint64_t seed)
{
    struct hk_herd_options options = {policy, clients, outage_ms, spread_ms, capacity, seed};
    struct hk_herd load;

    assert_int_equal(hk_herd_run(&options, &load, NULL), HK_OK);
    return load;
}

static uint64_t sum(const struct hk_herd *load)
{
    uint64_t total = 0;
    for (size_t i = 0; i < load->n_slots; i++)
        total += load->slots[i];
    return total;
}

/* ---- worked out by hand ---- */

static void one_client_without_jitter_follows_the_exponential_schedule(void **state)
{
    static const size_t at[] = {0, 10, 30, 70, 150, 310, 630}; /* 0, 1, 3, 7, 15, 31, 63 s */
    struct hk_policy *policy = preset("standard"), *steady = NULL;

    (void)state;
    assert_int_equal(hk_herd_without_jitter(policy, &steady, NULL), HK_OK);
    struct hk_herd load = run(steady, 1, 60000, 0, 10, 1);
    assert_int_equal(load.attempts, COUNT(at));
    assert_int_equal(sum(&load), COUNT(at));
    for (size_t i = 0; i < COUNT(at); i++)
        assert_int_equal(load.slots[at[i]], 1);
    assert_int_equal(load.delivered, 1);
    assert_int_equal(load.half_ms, 3000);
    assert_int_equal(load.most_ms, 3000);
    assert_int_equal(load.all_ms, 3000);
    assert_int_equal(load.last_ms, 63000);
    assert_int_equal(load.n_slots, 631);
    hk_herd_fini(&load);
    hk_policy_free(steady);
    hk_policy_free(policy);
}

static void without_an_outage_nobody_needs_a_second_attempt(void **state)
{
    struct hk_policy *policy = preset("standard");

    (void)state;
    struct hk_herd load = run(policy, 500, 0, 1000, 1e6, 3);
    assert_int_equal(load.attempts, 500);
    assert_int_equal(load.delivered, 500);
    assert_true(load.all_ms < 1000);
    assert_int_equal(load.peak_down, 0);
    assert_int_equal(load.peak_up, 500);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

/* Ten clients at 0, 500, 1000 ms …; capacity 20/s is two a slot, so two of ten are served at each of them. */
static void the_destination_serves_what_it_can_and_answers_503_to_the_rest(void **state)
{
    struct hk_policy *policy = fixed(500, 100);

    (void)state;
    struct hk_herd load = run(policy, 10, 1000, 0, 20, 1);
    assert_int_equal(load.attempts, 10 + 10 + 10 + 8 + 6 + 4 + 2);
    assert_int_equal(load.slots[0], 10);
    assert_int_equal(load.slots[5], 10);
    assert_int_equal(load.slots[10], 10);
    assert_int_equal(load.slots[15], 8);
    assert_int_equal(load.slots[30], 2);
    assert_int_equal(load.half_ms, 1000); /* two each at 0, 500 and 1000 ms */
    assert_int_equal(load.all_ms, 2000);
    assert_int_equal(load.peak_down, 20); /* 0 and 500 ms lie within a second */
    assert_int_equal(load.peak_up, 18);
    /* 30 attempts from 1000 ms until the slot of the last one is over, at 3100 ms */
    assert_true(load.herding > 18.0 * 2.1 / 30 - 1e-9 && load.herding < 18.0 * 2.1 / 30 + 1e-9);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

static void a_capacity_below_one_a_slot_still_serves(void **state)
{
    struct hk_policy *policy = fixed(100, 1000);

    (void)state;
    struct hk_herd load = run(policy, 3, 0, 0, 1, 1);
    assert_int_equal(load.delivered, 3);
    assert_int_equal(load.all_ms, 2000);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

/* One a slot: client k is served at k * 100 ms. */
static void shares_are_of_all_clients(void **state)
{
    struct hk_policy *policy = fixed(100, 1000);

    (void)state;
    struct hk_herd load = run(policy, 100, 0, 0, 10, 1);
    assert_int_equal(load.half_ms, 4900);
    assert_int_equal(load.most_ms, 9800);
    assert_int_equal(load.all_ms, 9900);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

static void who_runs_out_of_attempts_is_dead(void **state)
{
    struct hk_policy *policy = fixed(1000, 3);

    (void)state;
    struct hk_herd load = run(policy, 50, 60000, 1000, 10, 1);
    assert_int_equal(load.dead, 50);
    assert_int_equal(load.delivered, 0);
    assert_int_equal(load.attempts, 150);
    assert_true(load.half_ms == UINT64_MAX && load.most_ms == UINT64_MAX && load.all_ms == UINT64_MAX);
    assert_int_equal(load.peak_up, 0);
    assert_true(load.herding >= 0.0 && load.herding <= 0.0);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

/* The destination's answers go through the policy's own classification. */
static void a_policy_that_calls_a_refused_connection_permanent_gives_up_at_once(void **state)
{
    struct hk_policy *policy = preset("standard");
    struct hk_rule rule = {.kind = HK_MATCH_FAULT, .fault = HK_FAULT_CONNECT, .to_class = HK_CLASS_PERMANENT};

    (void)state;
    assert_int_equal(hk_policy_add_rule(policy, &rule, NULL), HK_OK);
    struct hk_herd load = run(policy, 20, 5000, 0, 10, 1);
    assert_int_equal(load.dead, 20);
    assert_int_equal(load.attempts, 20);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

static void who_waits_longer_than_a_week_is_left_waiting(void **state)
{
    struct hk_policy *policy = fixed(UINT64_C(8) * 24 * 3600 * 1000, 100);

    (void)state;
    struct hk_herd load = run(policy, 4, 1000, 0, 10, 1);
    assert_int_equal(load.waiting, 4);
    assert_int_equal(load.attempts, 4);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

/* ---- laws ---- */

static void every_client_ends_once_and_every_attempt_is_counted(void **state)
{
    (void)state;
    for (size_t p = 0; hk_preset_name(p) != NULL; p++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct hk_policy *policy = preset(hk_preset_name(p));
            struct hk_herd load = run(policy, 700, 20000, 2000, 35, seed);
            NOTE_IF(sum(&load) != load.attempts, "preset %s\n", hk_preset_name(p));
            assert_int_equal(load.delivered + load.dead + load.waiting, 700);
            assert_int_equal(sum(&load), load.attempts);
            assert_true(load.slots[load.n_slots - 1] > 0);
            assert_int_equal(load.n_slots, load.last_ms / HK_HERD_SLOT_MS + 1);
            assert_true(load.half_ms <= load.most_ms && load.most_ms <= load.all_ms);
            if (load.delivered == 700) /* 35 a second, and one slot's worth at once */
                assert_true(load.all_ms >= UINT64_C(700 - 4) * 1000 / 35 - HK_HERD_SLOT_MS);
            hk_herd_fini(&load);
            hk_policy_free(policy);
        }
}

static void the_same_seed_gives_the_same_load_and_another_seed_another(void **state)
{
    struct hk_policy *policy = preset("standard");

    (void)state;
    struct hk_herd a = run(policy, 300, 10000, 1000, 30, 7);
    struct hk_herd b = run(policy, 300, 10000, 1000, 30, 7);
    struct hk_herd c = run(policy, 300, 10000, 1000, 30, 8);
    assert_int_equal(a.n_slots, b.n_slots);
    assert_memory_equal(a.slots, b.slots, a.n_slots * sizeof a.slots[0]);
    assert_true(a.n_slots != c.n_slots || memcmp(a.slots, c.slots, a.n_slots * sizeof a.slots[0]) != 0);
    hk_herd_fini(&a);
    hk_herd_fini(&b);
    hk_herd_fini(&c);
    hk_policy_free(policy);
}

static void without_jitter_no_wait_depends_on_chance(void **state)
{
    (void)state;
    for (size_t p = 0; hk_preset_name(p) != NULL; p++) {
        struct hk_policy *policy = preset(hk_preset_name(p)), *steady = NULL;
        assert_int_equal(hk_herd_without_jitter(policy, &steady, NULL), HK_OK);
        assert_int_equal(hk_policy_check(steady, NULL), HK_OK);
        assert_false(hk_herd_has_jitter(steady));
        for (uint32_t n = 1; n < 50; n++) {
            uint64_t lo = 1, hi = 0;
            hk_backoff_bounds_ms(hk_policy_backoff(steady), hk_policy_jitter(steady), n, &lo, &hi);
            NOTE_IF(lo != hi, "preset %s, retry %u\n", hk_preset_name(p), (unsigned)n);
            assert_true(lo == hi);
            assert_true(lo == hk_backoff_ceiling_ms(hk_policy_backoff(policy), n));
        }
        hk_policy_free(steady);
        hk_policy_free(policy);
    }
}

static void a_class_of_its_own_loses_its_jitter_too(void **state)
{
    struct hk_policy *policy = preset("sync-pipeline"), *steady = NULL;
    struct hk_class_rule rule = *hk_policy_class(policy, HK_CLASS_TRANSIENT);

    (void)state;
    assert_false(hk_herd_has_jitter(policy));
    rule.has_backoff = rule.has_jitter = true;
    rule.backoff = (struct hk_backoff){.kind = HK_BACKOFF_FIXED, .base_ms = 1000, .cap_ms = 1000};
    rule.jitter = (struct hk_jitter){.kind = HK_JITTER_FULL};
    assert_int_equal(hk_policy_set_class(policy, HK_CLASS_TRANSIENT, &rule, NULL), HK_OK);
    assert_true(hk_herd_has_jitter(policy));
    assert_int_equal(hk_herd_without_jitter(policy, &steady, NULL), HK_OK);
    assert_false(hk_herd_has_jitter(steady));
    hk_policy_free(steady);
    hk_policy_free(policy);
}

static void full_jitter_breaks_up_the_herd(void **state)
{
    struct hk_policy *policy = preset("standard"), *steady = NULL;

    (void)state;
    assert_int_equal(hk_herd_without_jitter(policy, &steady, NULL), HK_OK);
    struct hk_herd with = run(policy, 2000, 60000, 1000, 200, 1);
    struct hk_herd without = run(steady, 2000, 60000, 1000, 200, 1);
    assert_int_equal(without.peak_up, 2000);
    assert_true(with.peak_up < 100);
    assert_true(with.most_ms < without.most_ms);
    assert_true(with.herding < without.herding);
    hk_herd_fini(&with);
    hk_herd_fini(&without);
    hk_policy_free(steady);
    hk_policy_free(policy);
}

/* ---- refusals ---- */

static void options_outside_their_bounds_are_refused(void **state)
{
    struct hk_policy *policy = preset("standard");
    const struct hk_herd_options bad[] = {
        {policy, 0, 1000, 1000, 10, 1},
        {policy, HK_HERD_CLIENTS_MAX + 1, 1000, 1000, 10, 1},
        {policy, 10, HK_HERD_OUTAGE_MAX + 1, 1000, 10, 1},
        {policy, 10, 1000, HK_HERD_OUTAGE_MAX + 1, 10, 1},
        {policy, 10, 1000, 1000, 0, 1},
        {policy, 10, 1000, 1000, -1, 1},
        {policy, 10, 1000, 1000, 1e10, 1},
    };
    struct hk_herd load;
    struct hk_err err;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(hk_herd_run(&bad[i], &load, &err), HK_RANGE);
    hk_policy_free(policy);
}

struct failing {
    unsigned left;   /* allocations that still succeed */
    bool for_ever;   /* or only one fails */
    unsigned failed; /* so many did */
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
    (void)state;
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (unsigned k = 0;; k++) {
            struct failing f = {.left = k, .for_ever = for_ever != 0};
            struct hk_allocator allocator = {failing_resize, failing_release, &f};
            struct hk_policy *policy = preset("azure-exponential"), *steady = NULL;
            struct hk_herd_options options = {NULL, 20, 200000, 0, 5, 1};
            struct hk_herd load = {.slots = NULL};
            struct hk_err err = {.code = HK_OK};

            assert_int_equal(f.live, 0);
            hk_allocator_set(&allocator);
            enum hk_code rc = hk_herd_without_jitter(policy, &steady, &err);
            options.policy = steady;
            if (rc == HK_OK)
                rc = hk_herd_run(&options, &load, &err);
            hk_herd_fini(&load);
            hk_policy_free(steady);
            hk_allocator_set(NULL);
            hk_policy_free(policy);
            assert_int_equal(f.live, 0);
            assert_int_equal(rc, f.failed > 0 ? HK_NOMEM : HK_OK);
            assert_int_equal(err.code, rc);
            if (rc == HK_OK)
                break;
            assert_true(k < 100);
        }
}

/* ---- axes ---- */

static void round_numbers_are_never_too_small(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 2000000; n += n / 7 + 1) {
        assert_true(hk_chart_nice_count(n) >= n);
        assert_true(hk_chart_nice_count(n) < 3 * n || n == 1);
        assert_true(hk_chart_tick_ms(n) >= n);
        assert_true(hk_chart_bar_ms(n) >= n);
        assert_int_equal(hk_chart_bar_ms(n) % HK_HERD_SLOT_MS, 0);
    }
    assert_int_equal(hk_chart_nice_count(10000), 10000);
    assert_int_equal(hk_chart_nice_count(10001), 20000);
    assert_int_equal(hk_chart_tick_ms(7), 100);
    assert_int_equal(hk_chart_tick_ms(UINT64_C(90000000)), UINT64_C(2) * 86400000);
}

static void pictures_end_behind_the_outage_and_hold_both_series(void **state)
{
    struct hk_policy *policy = preset("standard");
    struct hk_herd_options options = {policy, 100, 10000, 1000, 10, 1};
    struct hk_herd load;
    struct hk_buf text, svg;

    (void)state;
    assert_int_equal(hk_herd_run(&options, &load, NULL), HK_OK);
    struct hk_chart chart = {
        "<p&q>", "without jitter", &options, {&load, &load}, hk_chart_span_ms(&options, &load)};
    assert_true(chart.span_ms > options.outage_ms + load.most_ms);
    hk_buf_init(&text, 1 << 16);
    hk_buf_init(&svg, 1 << 20);
    for (unsigned width = 40; width <= 240; width += 25) {
        struct hk_chart_look look = {.width = width};
        hk_buf_reset(&text);
        hk_chart_text(&chart, &look, &text);
        assert_int_equal(hk_buf_status(&text), HK_OK);
        size_t longest = 0;
        for (const char *p = hk_buf_cstr(&text), *end; (end = strchr(p, '\n')) != NULL; p = end + 1)
            if (strstr(p, "attempts per") > end || strstr(p, "attempts per") == NULL)
                longest = (size_t)(end - p) > longest ? (size_t)(end - p) : longest;
        assert_true(longest <= width);
        for (const char *p = hk_buf_cstr(&text); *p != '\0'; p++)
            assert_true((unsigned char)*p < 0x80);
    }
    hk_chart_svg(&chart, &svg);
    assert_int_equal(hk_buf_status(&svg), HK_OK);
    assert_non_null(strstr(hk_buf_cstr(&svg), "&lt;p&amp;q>"));
    assert_null(strstr(hk_buf_cstr(&svg), "nan"));
    hk_buf_fini(&text);
    hk_buf_fini(&svg);
    hk_herd_fini(&load);
    hk_policy_free(policy);
}

static void full_jitter_is_put_on_every_class_that_can_have_it(void **state)
{
    (void)state;
    for (size_t p = 0; hk_preset_name(p) != NULL; p++) {
        struct hk_policy *policy = preset(hk_preset_name(p)), *spread = NULL;
        assert_int_equal(hk_herd_with_full_jitter(policy, &spread, NULL), HK_OK);
        assert_int_equal(hk_policy_check(spread, NULL), HK_OK);
        assert_true(hk_herd_has_jitter(spread));
        for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++) {
            const struct hk_class_rule *rule = hk_policy_class(spread, (enum hk_class)c);
            bool azure =
                hk_backoff_is_azure(rule->has_backoff ? rule->backoff.kind : hk_policy_backoff(spread)->kind);
            assert_true(azure || (rule->has_jitter && rule->jitter.kind == HK_JITTER_FULL));
        }
        hk_policy_free(spread);
        hk_policy_free(policy);
    }
}

/* The class in question has no chance in its waits, though the policy's own backoff has. */
static void full_jitter_beside_an_azure_backoff(void **state)
{
    struct hk_policy *policy = preset("azure-linear"), *spread = NULL;
    struct hk_class_rule rule = *hk_policy_class(policy, HK_CLASS_TRANSIENT);

    (void)state;
    rule.has_backoff = rule.has_jitter = true;
    rule.backoff = (struct hk_backoff){.kind = HK_BACKOFF_FIXED, .base_ms = 1000, .cap_ms = 1000};
    rule.jitter = (struct hk_jitter){.kind = HK_JITTER_NONE};
    assert_int_equal(hk_policy_set_class(policy, HK_CLASS_TRANSIENT, &rule, NULL), HK_OK);
    assert_false(hk_herd_has_jitter(policy));
    assert_int_equal(hk_herd_with_full_jitter(policy, &spread, NULL), HK_OK);
    assert_true(hk_herd_has_jitter(spread));
    assert_int_equal(hk_policy_class(spread, HK_CLASS_TRANSIENT)->jitter.kind, HK_JITTER_FULL);
    assert_false(hk_policy_class(spread, HK_CLASS_UNKNOWN)->has_jitter);
    hk_policy_free(spread);
    hk_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_client_without_jitter_follows_the_exponential_schedule),
        cmocka_unit_test(without_an_outage_nobody_needs_a_second_attempt),
        cmocka_unit_test(the_destination_serves_what_it_can_and_answers_503_to_the_rest),
        cmocka_unit_test(a_capacity_below_one_a_slot_still_serves),
        cmocka_unit_test(shares_are_of_all_clients),
        cmocka_unit_test(who_runs_out_of_attempts_is_dead),
        cmocka_unit_test(a_policy_that_calls_a_refused_connection_permanent_gives_up_at_once),
        cmocka_unit_test(who_waits_longer_than_a_week_is_left_waiting),
        cmocka_unit_test(every_client_ends_once_and_every_attempt_is_counted),
        cmocka_unit_test(the_same_seed_gives_the_same_load_and_another_seed_another),
        cmocka_unit_test(without_jitter_no_wait_depends_on_chance),
        cmocka_unit_test(full_jitter_is_put_on_every_class_that_can_have_it),
        cmocka_unit_test(full_jitter_beside_an_azure_backoff),
        cmocka_unit_test(a_class_of_its_own_loses_its_jitter_too),
        cmocka_unit_test(full_jitter_breaks_up_the_herd),
        cmocka_unit_test(options_outside_their_bounds_are_refused),
        cmocka_unit_test(out_of_memory_is_returned_and_leaks_nothing),
        cmocka_unit_test(round_numbers_are_never_too_small),
        cmocka_unit_test(pictures_end_behind_the_outage_and_hold_both_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
