/* SPDX-License-Identifier: Apache-2.0 */
/* Fair shares of the relay's places and of its memory (engine_share.c). */
#include "engine_rig.h"

enum {
    PLACES = 32,
    KEPT = PLACES / 8
};

static struct rig *crowded(size_t n_dests)
{
    struct rig *rig = rig_new(n_dests);
    rig->options.concurrency = PLACES;
    rig->options.batch = 64;
    rig->options.lease_ms = 60000;
    struct hk_limits limits = *hk_policy_limits(rig->policy);
    limits.timeout_ms = 30000;
    assert_int_equal(hk_policy_set_limits(rig->policy, &limits, NULL), HK_OK);
    return rig;
}

/* One message goes and is answered, `after_ms` later. */
static void once(struct rig *rig, const char *m, const char *dest, int64_t after_ms)
{
    commit(rig, put(rig, m, dest, ""));
    wait_ms(rig, 60);
    assert_true(in_flight(rig, m));
    wait_ms(rig, after_ms);
    answer(rig, m, 200);
    wait_ms(rig, 60);
}

static void where_many_are_configured_each_starts_with_its_share_of_all(void **state)
{
    (void)state;
    struct rig *rig = crowded(4);
    rig->options.concurrency = 7;
    rig_start(rig);
    put_many(rig, "a", 60, "a");
    put_many(rig, "b", 60, "b");
    put_many(rig, "c", 60, "c");
    wait_ms(rig, 60);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(count_flying(rig, i), 1);
    put_many(rig, "d", 1, "d");
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "d0"));
    rig_free(rig);
}

/* Begun cold, with nobody known to be quick: the first three must not take what the fourth needs. */
static void those_that_never_answered_leave_room_for_the_next(void **state)
{
    (void)state;
    struct rig *rig = crowded(4);
    rig_start(rig);
    put_many(rig, "a", 60, "a");
    put_many(rig, "b", 60, "b");
    put_many(rig, "c", 60, "c");
    wait_ms(rig, 60);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(count_flying(rig, i), (PLACES - KEPT) / 4);
    put_many(rig, "d", 1, "d");
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "d0"));
    rig_free(rig);
}

static void slow_ones_leave_the_last_places_to_a_quick_one(void **state)
{
    (void)state;
    struct rig *rig = crowded(4);
    rig_start(rig);
    once(rig, "a", "a", 2000);
    once(rig, "b", "b", 2000);
    once(rig, "c", "c", 2000);
    once(rig, "d", "d", 5);
    put_many(rig, "a", 60, "a");
    put_many(rig, "b", 60, "b");
    put_many(rig, "c", 60, "c");
    wait_ms(rig, 60);
    size_t slow = count_flying(rig, 0) + count_flying(rig, 1) + count_flying(rig, 2);
    assert_in_range(slow, PLACES / 2, PLACES - KEPT);
    put_many(rig, "d", 60, "d");
    wait_ms(rig, 60);
    assert_in_range(count_flying(rig, 3), KEPT / 2, KEPT); /* if it hangs, too, not all is lost */
    rig_free(rig);
}

static void a_quick_one_uses_all_of_its_own_places(void **state)
{
    (void)state;
    struct rig *rig = crowded(4);
    rig->dests[3].limiter.concurrency = 24;
    rig_start(rig);
    once(rig, "a", "a", 2000);
    once(rig, "d", "d", 5);
    put_many(rig, "a", 4, "a");
    put_many(rig, "d", 60, "d");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 4);
    assert_int_equal(count_flying(rig, 3), 24);
    rig_free(rig);
}

static void a_slow_one_that_is_alone_uses_all_of_its_own_places(void **state)
{
    (void)state;
    struct rig *rig = crowded(2);
    rig->dests[0].limiter.concurrency = 20;
    rig_start(rig);
    once(rig, "a", "a", 2000);
    put_many(rig, "a", 60, "a");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 20);
    rig_free(rig);
}

static void the_only_destination_has_every_place(void **state)
{
    (void)state;
    struct rig *rig = crowded(1);
    rig_start(rig);
    put_many(rig, "a", 60, "a");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), PLACES);
    rig_free(rig);
}

/* Two quick ones fill what they may, and hang: some places are left. */
static void quick_ones_that_hang_do_not_take_everything(void **state)
{
    (void)state;
    struct rig *rig = crowded(4);
    rig_start(rig);
    once(rig, "a", "a", 5);
    once(rig, "b", "b", 5);
    once(rig, "d", "d", 5);
    put_many(rig, "a", 60, "a");
    put_many(rig, "b", 60, "b");
    wait_ms(rig, 60);
    assert_in_range(count_flying(rig, 0) + count_flying(rig, 1), PLACES - KEPT, PLACES - KEPT / 2);
    put_many(rig, "d", 1, "d");
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "d0"));
    rig_free(rig);
}

/* What is in flight for long says so before any answer does. */
static void a_quick_one_that_hangs_is_not_quick_any_more(void **state)
{
    (void)state;
    struct rig *rig = crowded(4);
    rig_start(rig);
    once(rig, "a", "a", 5);
    once(rig, "c", "c", 2000);
    put_many(rig, "a", 10, "a");
    put_many(rig, "c", 2, "c");
    wait_ms(rig, 1500);
    put_many(rig, "more", 60, "a");
    wait_ms(rig, 60);
    assert_in_range(count_flying(rig, 0), 10, PLACES / 2);
    rig_free(rig);
}

static void put_large(struct rig *rig, const char *prefix, size_t n, const char *dest)
{
    for (size_t i = 0; i < n; i++) {
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "%s%zu", prefix, i);
        struct hk_model_msg *msg = put(rig, name, dest, "");
        msg->payload_bytes = 100;
        commit(rig, msg);
    }
}

static void large_payloads_of_slow_ones_leave_room_for_a_quick_one(void **state)
{
    (void)state;
    struct rig *rig = crowded(3);
    rig->options.batch_bytes = 800;
    rig_start(rig);
    once(rig, "a", "a", 2000);
    once(rig, "b", "b", 2000);
    once(rig, "c", "c", 5);
    put_large(rig, "b-first", 1, "b");
    put_large(rig, "a", 20, "a");
    put_large(rig, "b", 20, "b");
    wait_ms(rig, 60);
    assert_in_range(count_flying(rig, 0) + count_flying(rig, 1), 4, 7);
    assert_in_range(count_flying(rig, 1), 2, 4); /* not all of it is the first one's */
    size_t calls = rig->calls;
    wait_ms(rig, 100);
    assert_in_range(rig->calls - calls, 0, 30); /* it is not looked for over and over */
    put_large(rig, "c", 1, "c");
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "c0"));
    for (int i = 0; i < 60; i++) {
        answer_all(rig, 0, 200);
        answer_all(rig, 1, 200);
        answer_all(rig, 2, 200);
        wait_ms(rig, 10);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

/* A payload that needs most of the memory goes as soon as it fits, whoever it is for. */
static void one_that_needs_most_of_the_memory_is_not_forgotten(void **state)
{
    (void)state;
    struct rig *rig = crowded(2);
    rig->options.batch_bytes = 120;
    rig_start(rig);
    once(rig, "b", "b", 5);
    put_many(rig, "b", 1, "b"); /* stays */
    put_large(rig, "a", 2, "a");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 1), 1);
    assert_int_equal(count_flying(rig, 0), 1);
    rig_free(rig);
}

/* Retries of slow ones have all the places that retries may have; a quick one's goes all the same. */
static void a_flood_of_retries_does_not_hold_up_a_quick_one(void **state)
{
    (void)state;
    struct rig *rig = crowded(4);
    rig_start(rig);
    once(rig, "a", "a", 2000);
    once(rig, "b", "b", 2000);
    once(rig, "c", "c", 2000);
    once(rig, "d", "d", 5);
    put_many(rig, "a", 12, "a");
    put_many(rig, "b", 12, "b");
    put_many(rig, "c", 12, "c");
    for (int i = 0; i < 5; i++) {
        wait_ms(rig, 10);
        for (size_t k = 0; k < 3; k++)
            answer_all(rig, k, 500);
    }
    commit(rig, put(rig, "d0", "d", ""));
    wait_ms(rig, 60);
    answer(rig, "d0", 500);
    wait_ms(rig, 200);
    assert_true(in_flight(rig, "d0"));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_many_are_configured_each_starts_with_its_share_of_all),
        cmocka_unit_test(those_that_never_answered_leave_room_for_the_next),
        cmocka_unit_test(slow_ones_leave_the_last_places_to_a_quick_one),
        cmocka_unit_test(a_quick_one_uses_all_of_its_own_places),
        cmocka_unit_test(a_slow_one_that_is_alone_uses_all_of_its_own_places),
        cmocka_unit_test(the_only_destination_has_every_place),
        cmocka_unit_test(quick_ones_that_hang_do_not_take_everything),
        cmocka_unit_test(a_quick_one_that_hangs_is_not_quick_any_more),
        cmocka_unit_test(large_payloads_of_slow_ones_leave_room_for_a_quick_one),
        cmocka_unit_test(one_that_needs_most_of_the_memory_is_not_forgotten),
        cmocka_unit_test(a_flood_of_retries_does_not_hold_up_a_quick_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
