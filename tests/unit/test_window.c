/* SPDX-License-Identifier: Apache-2.0 */
/* The last minute: what is older is forgotten slot by slot, and the time that is covered is told. */
#include "check.h"
#include "daemon/window.h"

static void what_is_older_than_a_minute_is_forgotten(void **state)
{
    (void)state;
    struct hk_window w;
    struct hk_window_slot sum;
    int64_t now = 1000000;
    hk_window_init(&w, now);
    for (int i = 0; i < 30; i++, now += HK_WINDOW_SLOT_MS) {
        hk_window_at(&w, now)->sent++;
        hk_window_at(&w, now + 1)->failed += 2;
        hk_histogram_add(&hk_window_at(&w, now)->latency, 7);
        uint64_t covered = hk_window_sum(&w, now + HK_WINDOW_SLOT_MS - 1, &sum);
        uint64_t slots = i < HK_WINDOW_SLOTS ? (uint64_t)i + 1 : HK_WINDOW_SLOTS;
        assert_int_equal(sum.sent, slots);
        assert_int_equal(sum.failed, slots * 2);
        assert_int_equal(hk_histogram_count(&sum.latency), slots);
        assert_int_equal(covered, slots * HK_WINDOW_SLOT_MS - 1);
    }
}

static void after_a_long_silence_nothing_is_left(void **state)
{
    (void)state;
    struct hk_window w;
    struct hk_window_slot sum;
    hk_window_init(&w, 12345);
    hk_window_at(&w, 12345)->dead = 5;
    hk_window_at(&w, 12345)->seen = 6;
    (void)hk_window_sum(&w, 12346, &sum);
    assert_true(sum.dead == 5 && sum.seen == 6);
    assert_int_equal(hk_window_sum(&w, INT64_MAX / 2, &sum) / 10000, 5); /* 55 to 60 s */
    assert_true(sum.dead == 0 && sum.seen == 0);
}

static void each_slot_goes_in_its_time(void **state)
{
    (void)state;
    struct hk_window w;
    struct hk_window_slot sum;
    hk_window_init(&w, 0);
    hk_window_at(&w, 0)->sent = 1;
    hk_window_at(&w, 5000)->sent = 10;
    (void)hk_window_sum(&w, 59999, &sum);
    assert_int_equal(sum.sent, 11);
    (void)hk_window_sum(&w, 60000, &sum);
    assert_int_equal(sum.sent, 10);
    (void)hk_window_sum(&w, 65000, &sum);
    assert_int_equal(sum.sent, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_older_than_a_minute_is_forgotten),
        cmocka_unit_test(after_a_long_silence_nothing_is_left),
        cmocka_unit_test(each_slot_goes_in_its_time),
    };
    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
