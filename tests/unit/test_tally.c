/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of a minute become rows; an hour holds its minutes; a store that does not answer costs the oldest. */
#include "base/str.h"
#include "check.h"
#include "daemon/tally.h"

#define HOUR_3 (3 * HK_SERIES_HOUR_MS)

static void an_hour_holds_its_minutes(void **state)
{
    (void)state;
    struct hk_tallies t = {.named = true};
    for (int i = 1; i <= 3; i++) {
        struct hk_tally_batch *b = hk_tally_batch_new(HOUR_3 + i * HK_SERIES_MINUTE_MS, 2);
        t.minute.sent = 10;
        t.minute.failed = 1;
        hk_histogram_add(&t.minute.latency, 5);
        assert_true(hk_tally_batch_take(b, 9, hk_str_of("shop"), &t));
        assert_true(hk_tally_is_empty(&t.minute));
        assert_int_equal(b->n, 2);
        assert_int_equal(b->rows[0].step_ms, HK_SERIES_MINUTE_MS);
        assert_int_equal(b->rows[0].at_ms, HOUR_3 + i * HK_SERIES_MINUTE_MS);
        assert_int_equal(b->rows[0].sent, 10);
        assert_true(hk_str_eq(b->rows[0].latency, hk_str_of("5:1")));
        assert_int_equal(b->rows[1].step_ms, HK_SERIES_HOUR_MS);
        assert_int_equal(b->rows[1].at_ms, HOUR_3);
        assert_int_equal(b->rows[1].sent, 10 * i);
        assert_int_equal(b->rows[1].failed, i);
        assert_int_equal(b->rows[1].lane, 9);
        assert_false(hk_tally_batch_take(b, 9, hk_str_of("other"), &t)); /* there is no room for it */
        assert_int_equal(b->n, 2);
        hk_tally_batch_free(b);
    }
}

static void the_oldest_batch_is_dropped_when_many_wait(void **state)
{
    (void)state;
    struct hk_tally_batch *list = NULL;
    for (int i = 0; i < HK_TALLY_BATCHES + 2; i++)
        assert_int_equal(hk_tally_batch_queue(&list, hk_tally_batch_new(i, 1)), i >= HK_TALLY_BATCHES);
    int64_t next = 2;
    while (list) {
        struct hk_tally_batch *first = list;
        assert_int_equal(first->minute_ms, next++);
        list = first->next;
        hk_tally_batch_free(first);
    }
    assert_int_equal(next, HK_TALLY_BATCHES + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_holds_its_minutes),
        cmocka_unit_test(the_oldest_batch_is_dropped_when_many_wait),
    };
    return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
