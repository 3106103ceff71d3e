/* SPDX-License-Identifier: Apache-2.0 */
/* Figures over time: rows are found once, by time; what was counted is replaced, levels stay at their largest; old rows go. */
#include "admin_suite.h"
#include "base/str.h"

#define T0 INT64_C(1800000000000) /* a whole hour */

static struct hk_series_row row(int64_t step, int64_t at, int64_t lane, const char *name, uint64_t n)
{
    return (struct hk_series_row){.step_ms = step,
                                  .at_ms = at,
                                  .lane = lane,
                                  .destination = hk_str_of(name),
                                  .seen = n,
                                  .sent = n + 1,
                                  .failed = n + 2,
                                  .retried = n + 3,
                                  .dead = n + 4,
                                  .latency = hk_str_of("3:1 20:2"),
                                  .waiting = n + 5,
                                  .in_flight = n + 6,
                                  .dead_open = n + 7,
                                  .oldest_ms = n + 8};
}

static void put(struct hk_admin *admin, const struct hk_series_row *rows, size_t n)
{
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->series_put(admin, rows, n, &err);
    NOTE_IF(rc != HK_OK, "series_put: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static const struct hk_series *series(struct hk_admin *admin, const struct hk_series_ask *ask)
{
    struct hk_err err = {0};
    const struct hk_series *found = NULL;
    enum hk_code rc = admin_ops->series(admin, ask, &found, &err);
    NOTE_IF(rc != HK_OK, "series: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return found;
}

static void rows_are_replaced_and_levels_only_rise(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_series_row r = row(HK_SERIES_MINUTE_MS, T0, 7, "it's \"a\" {名}", 100);
    put(admin, &r, 1);
    r = row(HK_SERIES_MINUTE_MS, T0, 7, "it's \"a\" {名}", 10);
    put(admin, &r, 1);
    const struct hk_series_ask ask = {
        .step_ms = HK_SERIES_MINUTE_MS, .since_ms = T0, .until_ms = T0 + 1, .limit = 10};
    const struct hk_series *found = series(admin, &ask);
    assert_int_equal(found->now_ms, suite_clock_ms);
    assert_int_equal(found->n, 1);
    const struct hk_series_row *got = &found->items[0];
    assert_true(hk_str_eq(got->destination, r.destination) && hk_str_eq(got->latency, r.latency));
    assert_int_equal(got->lane, 7);
    assert_int_equal(got->seen, 10);
    assert_int_equal(got->sent, 11);
    assert_int_equal(got->failed, 12);
    assert_int_equal(got->retried, 13);
    assert_int_equal(got->dead, 14);
    assert_int_equal(got->waiting, 105);
    assert_int_equal(got->in_flight, 106);
    assert_int_equal(got->dead_open, 107);
    assert_int_equal(got->oldest_ms, 108);
    admin_ops->close(admin);
}

static void pages_show_every_row_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_series_row rows[18];
    size_t n = 0;
    for (int at = 0; at < 3; at++)
        for (int lane = -1; lane < 2; lane++)
            for (int name = 0; name < 2; name++)
                rows[n++] = row(HK_SERIES_MINUTE_MS, T0 + at * HK_SERIES_MINUTE_MS, lane, name ? "b" : "", 1);
    put(admin, rows, n);
    struct hk_series_row hour = row(HK_SERIES_HOUR_MS, T0, 1, "b", 1);
    put(admin, &hour, 1);
    for (uint32_t limit = 1; limit <= 19; limit++) {
        struct hk_series_ask ask = {.step_ms = HK_SERIES_MINUTE_MS,
                                    .since_ms = T0 + 1,
                                    .until_ms = T0 + 2 * HK_SERIES_MINUTE_MS + 1,
                                    .limit = limit};
        size_t seen = 6; /* the first minute is before */
        const struct hk_series *found = NULL;
        char name[8];
        do {
            found = series(admin, &ask);
            for (size_t i = 0; i < found->n; i++, seen++) {
                assert_int_equal(found->items[i].at_ms, rows[seen].at_ms);
                assert_int_equal(found->items[i].lane, rows[seen].lane);
                assert_true(hk_str_eq(found->items[i].destination, rows[seen].destination));
                ask.resume = true;
                ask.after_at_ms = rows[seen].at_ms;
                ask.after_lane = rows[seen].lane;
                (void)snprintf(name, sizeof name, "%.*s", (int)rows[seen].destination.len,
                               rows[seen].destination.ptr);
                ask.after_destination = hk_str_of(name);
            }
        } while (found->n == limit);
        assert_int_equal(seen, 18);
    }
    struct hk_series_ask of_b = {.step_ms = HK_SERIES_MINUTE_MS,
                                 .since_ms = 0,
                                 .until_ms = INT64_MAX,
                                 .destination = "b",
                                 .limit = 100};
    assert_int_equal(series(admin, &of_b)->n, 9);
    of_b.step_ms = HK_SERIES_HOUR_MS;
    assert_int_equal(series(admin, &of_b)->n, 1);
    admin_ops->close(admin);
}

static void the_busiest_destinations_come_first(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    const struct hk_series_names *names = NULL;
    const struct hk_series_row rows[] = {
        row(HK_SERIES_MINUTE_MS, T0, 1, "quiet", 1), row(HK_SERIES_MINUTE_MS, T0, 1, "busy", 100),
        row(HK_SERIES_MINUTE_MS, T0, 2, "both", 60), row(HK_SERIES_MINUTE_MS, T0, 1, "both", 60),
        row(HK_SERIES_MINUTE_MS, T0, 1, "", 1000)};
    put(admin, rows, COUNT(rows));
    struct hk_series_ask ask = {
        .step_ms = HK_SERIES_MINUTE_MS, .since_ms = T0, .until_ms = T0 + 1, .limit = 2};
    assert_int_equal(admin_ops->series_names(admin, &ask, &names, &err), HK_OK);
    assert_int_equal(names->n, 2);
    assert_true(hk_str_eq(names->items[0], hk_str_of("both")));
    assert_true(hk_str_eq(names->items[1], hk_str_of("busy")));
    admin_ops->close(admin);
}

static void old_rows_are_purged(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    const struct hk_retention never = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                       UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    int64_t minute = suite_clock_ms - (int64_t)HK_SERIES_KEEP_MINUTE_MS,
            hour = suite_clock_ms - (int64_t)HK_SERIES_KEEP_HOUR_MS;
    const struct hk_series_row rows[] = {
        row(HK_SERIES_MINUTE_MS, minute, 1, "a", 1), row(HK_SERIES_MINUTE_MS, minute + 1, 1, "a", 1),
        row(HK_SERIES_HOUR_MS, minute, 1, "a", 1), row(HK_SERIES_HOUR_MS, hour, 1, "a", 1),
        row(HK_SERIES_HOUR_MS, hour + 1, 1, "a", 1)};
    uint32_t deleted = 0;
    put(admin, rows, COUNT(rows));
    assert_int_equal(store_kind->ops->purge(store, &never, 1, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 1);
    assert_int_equal(store_kind->ops->purge(store, &never, 100, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 1);
    struct hk_series_ask ask = {
        .step_ms = HK_SERIES_MINUTE_MS, .since_ms = 0, .until_ms = INT64_MAX, .limit = 10};
    assert_int_equal(series(admin, &ask)->n, 1);
    ask.step_ms = HK_SERIES_HOUR_MS;
    assert_int_equal(series(admin, &ask)->n, 2);
    suite_close(store);
    admin_ops->close(admin);
}

size_t admin_series_tests(struct CMUnitTest *out, size_t room)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_replaced_and_levels_only_rise),
        TEST(pages_show_every_row_once),
        TEST(the_busiest_destinations_come_first),
        TEST(old_rows_are_purged),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
