/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that a person has forced: past pause, breaker, rate, concurrency; not past the order of their key, the relay's own places
 * or a destination that cannot be used; once, and so many at a time. */
#include "engine_rig.h"

static bool ordered(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "b") == 0;
}

/* Whatever waits, one after the other. */
static size_t force_all(struct rig *rig, size_t most)
{
    size_t n = 0;
    for (uint64_t i = 0; i < most; i++)
        n += hk_model_force(rig->model, i, ordered, NULL);
    return n;
}

static void pause_a(struct rig *rig, const char *name, bool paused)
{
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_pause(rig->model, name, paused, "person", &reply);
    hk_model_reply_free(&reply);
}

static void it_goes_past_a_pause_and_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    pause_a(rig, "a", true);
    commit(rig, put(rig, "m", "a", ""));
    wait_ms(rig, 1000);
    assert_int_equal(rig->n_sends, 0);
    assert_int_equal(force_all(rig, 1), 1);
    wait_ms(rig, 200);
    assert_true(in_flight(rig, "m"));
    answer(rig, "m", 500);
    wait_ms(rig, 20000); /* it waits again as any other does */
    assert_int_equal(rig->n_sends, 1);
    assert_true(settled(rig, "m", "retry"));
    pause_a(rig, "a", false);
    wait_ms(rig, 200);
    answer(rig, "m", 200);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void it_goes_past_a_rate_and_concurrency(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->options.shared = true;
    rig->dests[0].limiter.rate_per_s = 0.001;
    rig->dests[0].limiter.burst = 1;
    rig->dests[0].limiter.concurrency = 1;
    rig->tokens = 1;
    rig_start(rig);
    put_many(rig, "m", 4, "a");
    wait_ms(rig, 300);
    assert_int_equal(count_flying(rig, 0), 1);
    assert_int_equal(force_all(rig, 3), 3);
    wait_ms(rig, 300);
    assert_true(count_flying(rig, 0) > 1);
    answer_all(rig, 0, 200);
    wait_ms(rig, 2000);
    rig_free(rig);
}

static void it_goes_past_a_breaker_and_tells_it_nothing(void **state)
{
    (void)state;
    struct hk_breaker_options breaker;
    struct hk_dest_view view;
    hk_breaker_options_init(&breaker);
    breaker.failures = 1;
    breaker.open_ms = 100000;
    breaker.open_cap_ms = 200000;
    struct rig *rig = rig_new(1);
    rig->dests[0].breaker = &breaker;
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    answer(rig, "m", 500);
    wait_ms(rig, 1000);
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view));
    assert_int_equal(view.breaker, HK_BREAKER_OPEN);
    assert_int_equal(force_all(rig, 1), 1);
    wait_ms(rig, 200);
    assert_true(in_flight(rig, "m"));
    answer(rig, "m", 200);
    wait_ms(rig, 100);
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view));
    assert_int_equal(view.breaker, HK_BREAKER_OPEN);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void sixteen_at_a_time(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->options.concurrency = 64;
    rig_start(rig);
    pause_a(rig, "a", true);
    put_many(rig, "m", 40, "a");
    wait_ms(rig, 100);
    while (force_all(rig, 200) && hk_model_live(rig->model) > 40)
        ;
    wait_ms(rig, 1500);
    assert_int_equal(count_flying(rig, 0), 16);
    answer(rig, rig->sends[0].m, 200);
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 16);
    rig_free(rig);
}

static void the_relays_own_places_are_kept_to(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig->dests[1].limiter.concurrency = CONCURRENCY;
    rig_start(rig);
    pause_a(rig, "a", true);
    put_many(rig, "n", CONCURRENCY, "b");
    run(rig);
    assert_int_equal(count_flying(rig, 1), CONCURRENCY);
    commit(rig, put(rig, "m", "a", ""));
    wait_ms(rig, 100);
    assert_int_equal(force_all(rig, 1), 1);
    wait_ms(rig, 500);
    assert_int_equal(count_flying(rig, 0), 0);
    answer(rig, "n0", 200);
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 1);
    rig_free(rig);
}

static void a_destination_that_cannot_be_used_takes_none(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].held = true;
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    wait_ms(rig, 100);
    assert_int_equal(force_all(rig, 1), 1);
    size_t calls = rig->calls;
    wait_ms(rig, 10000);
    assert_int_equal(rig->n_sends, 0);
    assert_true(rig->calls - calls < 300); /* it polls, and looks once a second */
    size_t place;
    struct hk_engine_dest conf = rig->dests[0];
    conf.held = false;
    assert_int_equal(hk_engine_put_dest(rig->engine, rig->now_ms, &conf, &place, NULL), HK_OK);
    wait_ms(rig, 1100);
    assert_int_equal(rig->n_sends, 1);
    rig_free(rig);
}

static void the_order_of_a_key_is_kept(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig->dests[1].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "first", "b", "k"));
    commit(rig, put(rig, "second", "b", "k"));
    run(rig);
    answer(rig, "first", 500); /* it waits, and holds the key */
    pause_a(rig, "b", true);
    wait_ms(rig, 50);
    size_t n = force_all(rig, 2);
    assert_int_equal(n, 1); /* what was not tried stays where it is */
    wait_ms(rig, 500);
    assert_true(in_flight(rig, "first"));
    assert_false(in_flight(rig, "second"));
    answer(rig, "first", 200);
    wait_ms(rig, 500);
    assert_false(in_flight(rig, "second"));
    rig_free(rig);
}

/* It could not be sent at all, and was not charged for it. */
static void what_a_held_destination_could_not_send_is_given_back(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    assert_true(in_flight(rig, "m"));
    size_t place;
    struct hk_engine_dest conf = rig->dests[0];
    conf.held = true;
    assert_int_equal(hk_engine_put_dest(rig->engine, rig->now_ms, &conf, &place, NULL), HK_OK);
    answer_facts(rig, "m", (struct hk_facts){.fault = HK_FAULT_LOCAL});
    wait_ms(rig, 100);
    assert_true(settled(rig, "m", "release"));
    assert_false(settled(rig, "m", "retry"));
    size_t calls = rig->calls;
    wait_ms(rig, 10000);
    assert_int_equal(rig->n_sends, 1);
    assert_true(rig->calls - calls < 300);
    conf.held = false;
    assert_int_equal(hk_engine_put_dest(rig->engine, rig->now_ms, &conf, &place, NULL), HK_OK);
    wait_ms(rig, 100);
    assert_true(in_flight(rig, "m"));
    assert_int_equal(found(rig, "m")->attempt, 1);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_past_a_pause_and_once),
        cmocka_unit_test(it_goes_past_a_rate_and_concurrency),
        cmocka_unit_test(it_goes_past_a_breaker_and_tells_it_nothing),
        cmocka_unit_test(sixteen_at_a_time),
        cmocka_unit_test(the_relays_own_places_are_kept_to),
        cmocka_unit_test(a_destination_that_cannot_be_used_takes_none),
        cmocka_unit_test(the_order_of_a_key_is_kept),
        cmocka_unit_test(what_a_held_destination_could_not_send_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
