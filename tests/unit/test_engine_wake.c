/* SPDX-License-Identifier: Apache-2.0 */
/* The engine when somebody says that there may be something new, and when it wants to be told. */
#include "engine_rig.h"

static uint64_t polls(const struct rig *rig)
{
    return hk_engine_stats(rig->engine)->polls;
}

/* Long enough for polls to be as rare as they get. */
static struct rig *idle_rig(size_t n_dests)
{
    struct rig *rig = rig_new(n_dests);
    rig_start(rig);
    wait_ms(rig, 500);
    run(rig);
    assert_true(rig->last.wake_ms > rig->now_ms + 1);
    rig->now_ms = rig->last.wake_ms;
    run(rig); /* a poll, just now */
    rig->now_ms += 10;
    run(rig);
    return rig;
}

static void a_wake_up_is_a_poll_at_once(void **state)
{
    (void)state;
    struct rig *rig = idle_rig(1);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    assert_false(in_flight(rig, "m"));
    hk_engine_wake(rig->engine, rig->now_ms);
    run(rig);
    assert_true(in_flight(rig, "m"));
    rig_free(rig);
}

static void wake_ups_without_end_are_a_few_polls(void **state)
{
    (void)state;
    struct rig *rig = idle_rig(1);
    uint64_t before = polls(rig);
    for (int i = 0; i < 1000; i++) {
        hk_engine_wake(rig->engine, rig->now_ms);
        run(rig);
        rig->now_ms += i % 10 == 0; /* 100 ms in all */
    }
    assert_in_range(polls(rig) - before, 10, 21);
    rig_free(rig);
}

/* One that comes too early for a poll of its own is not forgotten. */
static void a_wake_up_right_behind_a_poll_is_heeded_soon(void **state)
{
    (void)state;
    struct rig *rig = idle_rig(1);
    hk_engine_wake(rig->engine, rig->now_ms);
    run(rig);
    commit(rig, put(rig, "m", "a", ""));
    hk_engine_wake(rig->engine, rig->now_ms);
    run(rig);
    assert_false(in_flight(rig, "m"));
    assert_int_equal(rig->last.kind, HK_ACT_WAIT);
    assert_int_equal(rig->last.wake_ms, rig->now_ms + 5);
    wait_ms(rig, 5);
    assert_true(in_flight(rig, "m"));
    rig_free(rig);
}

/* The poll under way may have looked before whoever wakes was done. */
static void a_wake_up_during_a_poll_asks_for_another(void **state)
{
    (void)state;
    struct rig *rig = idle_rig(1);
    hk_engine_wake(rig->engine, rig->now_ms);
    hk_engine_next(rig->engine, rig->now_ms, &rig->last);
    assert_int_equal(rig->last.kind, HK_ACT_POLL);
    hk_engine_wake(rig->engine, rig->now_ms);
    hk_engine_on_poll(rig->engine, rig->now_ms, HK_OK, &(struct hk_poll){.now_ms = store_now(rig)});
    run(rig);
    assert_int_equal(rig->last.wake_ms, rig->now_ms + 5);
    uint64_t before = polls(rig);
    wait_ms(rig, 5);
    assert_int_equal(polls(rig), before + 1);
    rig_free(rig);
}

static void polling_goes_on_without_being_woken(void **state)
{
    (void)state;
    struct rig *rig = idle_rig(1);
    commit(rig, put(rig, "m", "a", ""));
    wait_ms(rig, (int64_t)rig->options.poll_max_ms);
    assert_true(in_flight(rig, "m"));
    rig_free(rig);
}

/* ---- hungry ---- */

static void an_idle_engine_is_hungry_and_one_without_a_lane_is_not(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    assert_false(hk_engine_hungry(rig->engine));
    wait_ms(rig, 100);
    assert_true(hk_engine_hungry(rig->engine));
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 100);
    assert_false(hk_engine_hungry(rig->engine));
    rig_free(rig);
}

/* Some in flight, and room for more: hungry. Full, or with more to read than it can take: not. */
static void a_full_engine_is_not_hungry(void **state)
{
    (void)state;
    struct rig *rig = idle_rig(2);
    put_many(rig, "m", CONCURRENCY - 1, "a");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), CONCURRENCY - 1);
    assert_true(hk_engine_hungry(rig->engine));
    put_many(rig, "n", 20, "b");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 1), 1);
    assert_false(hk_engine_hungry(rig->engine));
    for (int i = 0; i < 20; i++) {
        answer_all(rig, 0, 200);
        answer_all(rig, 1, 200);
        wait_ms(rig, 20);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_true(hk_engine_hungry(rig->engine));
    rig_free(rig);
}

/* What it could not take is there already: one more makes no difference. */
static void an_engine_whose_only_destination_is_full_is_not_hungry(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].limiter.concurrency = 2;
    rig_start(rig);
    put_many(rig, "m", 5, "a");
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 2);
    assert_false(hk_engine_hungry(rig->engine));
    for (int i = 0; i < 10; i++) {
        answer_all(rig, 0, 200);
        wait_ms(rig, 20);
    }
    assert_true(hk_engine_hungry(rig->engine));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wake_up_is_a_poll_at_once),
        cmocka_unit_test(wake_ups_without_end_are_a_few_polls),
        cmocka_unit_test(a_wake_up_right_behind_a_poll_is_heeded_soon),
        cmocka_unit_test(a_wake_up_during_a_poll_asks_for_another),
        cmocka_unit_test(polling_goes_on_without_being_woken),
        cmocka_unit_test(an_idle_engine_is_hungry_and_one_without_a_lane_is_not),
        cmocka_unit_test(a_full_engine_is_not_hungry),
        cmocka_unit_test(an_engine_whose_only_destination_is_full_is_not_hungry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
