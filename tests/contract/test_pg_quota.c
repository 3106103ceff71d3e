/* SPDX-License-Identifier: Apache-2.0 */
/* What relays of one database do together: however many they are, they draw no more tokens than one would, and what one
 * says of its breaker the others hear at their next poll. */
#include <string.h>

#include "base/str.h"
#include "pg_kind.h"

enum {
    LEASE_MS = 30000
};

static const struct hk_exchanged *exchange(struct hk_store *store, int64_t lane,
                                           const struct hk_quota *quotas, size_t n_quotas,
                                           const struct hk_circuit *circuits, size_t n_circuits)
{
    const struct hk_exchange x = {.lane = lane,
                                  .lease_ms = LEASE_MS,
                                  .quotas = quotas,
                                  .n_quotas = n_quotas,
                                  .circuits = circuits,
                                  .n_circuits = n_circuits};
    const struct hk_exchanged *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->exchange(store, &x, &done, &err);
    NOTE_IF(rc != HK_OK, "exchange: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return done;
}

static struct hk_grant draw(struct hk_store *store, int64_t lane, struct hk_quota quota)
{
    return exchange(store, lane, &quota, 1, NULL, 0)->grants[0];
}

static void relays_draw_from_one_bucket(void **state)
{
    (void)state;
    struct hk_store *stores[3];
    int64_t lanes[3];
    struct hk_quota quota = {.destination = "a", .rate_per_s = 50, .burst = 10, .want = 4};
    for (int i = 0; i < 3; i++) {
        stores[i] = suite_open(NULL);
        lanes[i] = suite_acquire(stores[i]);
    }
    assert_int_equal(draw(stores[0], lanes[0], quota).n, 4); /* a new bucket is full */
    assert_int_equal(draw(stores[1], lanes[1], quota).n, 4);
    struct hk_grant last = draw(stores[2], lanes[2], quota);
    assert_int_equal(last.n, 2);
    assert_int_equal(last.ready_ms, suite_clock_ms + 20);
    assert_int_equal(draw(stores[0], lanes[0], quota).n, 0);
    uint64_t drawn = 0;
    for (int ms = 0; ms < 10000; ms += 7) { /* ten seconds of asking for more than there is */
        suite_clock_ms += 7;
        drawn += draw(stores[ms % 3], lanes[ms % 3], quota).n;
    }
    assert_in_range(drawn, 499, 500);
    suite_clock_ms += 3600000; /* what nobody drew is not saved up beyond the burst */
    quota.want = 1000;
    assert_int_equal(draw(stores[1], lanes[1], quota).n, 10);
    for (int i = 0; i < 3; i++)
        suite_close(stores[i]);
}

static void each_destination_and_its_probes_have_a_bucket_of_their_own(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_quota quotas[] = {
        {.destination = "b", .rate_per_s = 1, .burst = 3, .want = 9},
        {.destination = "a", .rate_per_s = 1, .burst = 1, .want = 9},
        {.destination = "b", .probe = true, .rate_per_s = 0.1, .burst = 1, .want = 1},
        {.destination = "quote'\\\"{},NULL", .rate_per_s = 0.5, .burst = 2.5, .want = 9},
    };
    const struct hk_exchanged *done = exchange(store, lane, quotas, COUNT(quotas), NULL, 0);
    assert_int_equal(done->grants[0].n, 3);
    assert_int_equal(done->grants[1].n, 1);
    assert_int_equal(done->grants[2].n, 1);
    assert_int_equal(done->grants[3].n, 2);
    assert_int_equal(done->grants[2].ready_ms, suite_clock_ms + 10000);
    assert_int_equal(done->grants[3].ready_ms, suite_clock_ms + 1000);
    suite_clock_ms += 1000;
    done = exchange(store, lane, quotas, COUNT(quotas), NULL, 0);
    assert_int_equal(done->grants[0].n, 1);
    assert_int_equal(done->grants[1].n, 1);
    assert_int_equal(done->grants[2].n, 0);
    assert_int_equal(done->grants[3].n, 1);
    struct hk_quota quota = {.destination = "c", .probe = true, .rate_per_s = 0.1, .burst = 1, .want = 9};
    assert_int_equal(draw(store, lane, quota).n, 1);
    quota.probe = false;
    quota.burst = 3;
    assert_int_equal(draw(store, lane, quota).n, 3); /* who probed has not drawn from these */
    suite_close(store);
}

static int64_t seen(struct hk_store *store, const char *name, bool *out_paused)
{
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_true(poll->changed);
    for (size_t i = 0; i < poll->n_dests; i++)
        if (hk_str_eq(poll->dests[i].name, hk_str_of(name))) {
            *out_paused = poll->dests[i].paused;
            return poll->dests[i].open_until_ms;
        }
    return -1;
}

static void a_breaker_that_opens_is_heard_of_and_so_is_its_closing(void **state)
{
    (void)state;
    bool paused = true;
    struct hk_store *one = suite_open(NULL), *other = suite_open(NULL);
    int64_t lane = suite_acquire(one);
    (void)suite_acquire(other);
    assert_int_equal(seen(other, "a", &paused), -1);
    struct hk_circuit circuit = {.destination = "a", .open_until_ms = suite_clock_ms + 10000};
    (void)exchange(one, lane, NULL, 0, &circuit, 1);
    assert_int_equal(seen(other, "a", &paused), suite_clock_ms + 10000);
    assert_false(paused);
    assert_int_equal(store_kind->ops->pause(one, "a", true, "person", "why", NULL), HK_OK);
    assert_int_equal(seen(other, "a", &paused), suite_clock_ms + 10000);
    assert_true(paused); /* neither forgets the other */
    circuit.open_until_ms = 0;
    (void)exchange(one, lane, NULL, 0, &circuit, 1);
    assert_int_equal(seen(other, "a", &paused), 0);
    assert_true(paused);
    suite_close(one);
    suite_close(other);
}

static void what_was_drawn_is_drawn_only_when_it_was_committed(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    struct hk_quota quota = {.destination = "a", .rate_per_s = 1, .burst = 1, .want = 1};
    assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS, .quotas = &quota, .n_quotas = 1};
    const struct hk_exchanged *done = NULL;
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_CONFLICT);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_bucket"), 0);
    suite_close(store);
}

/* Who had to wait for the bucket draws at the time when it is his turn, not at the one when he began to wait: what lies between
 * was counted for the one before. And it is one bucket, whichever way a URL says where it lies. */
static void who_waits_for_the_bucket_counts_no_time_twice(void **state)
{
    (void)state;
    static const char *const ways[] = {"", "&schema=public"};
    const struct hk_quota quota = {.destination = "a", .rate_per_s = 1, .burst = 1, .want = 1};
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "CREATE TABLE drew (at_ms bigint)");
    for (size_t i = 0; i < COUNT(ways); i++) {
        struct hk_store *store = NULL;
        int64_t lane = 0, now_ms = 0;
        assert_int_equal(
            store_kind->ops->open(pg_url(NULL, ways[i]), &(struct hk_store_options){0}, &store, NULL), HK_OK);
        assert_int_equal(store_kind->ops->acquire(store, "r", "b", LEASE_MS, &lane, &now_ms, NULL), HK_OK);
        pg_exec(other, "TRUNCATE outbox_bucket, drew");
        assert_int_equal(
            PQsendQuery(other, "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended("
                               "'\"public\".\"outbox_bucket\" 0a', 0)); SELECT pg_sleep(0.5); "
                               "INSERT INTO drew SELECT floor(extract(epoch FROM clock_timestamp()) * 1000); "
                               "INSERT INTO outbox_bucket SELECT 'a', 0, 7, 0, at_ms FROM drew; COMMIT"),
            1);
        while (suite_number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted") == 0)
            continue;
        assert_int_equal(draw(store, lane, quota).n, 0);
        assert_int_equal(suite_number("SELECT turn FROM outbox_bucket"), 8);
        assert_int_equal(suite_number("SELECT count(*) FROM outbox_bucket b, drew d WHERE b.at_ms < d.at_ms"),
                         0);
        for (PGresult *res = PQgetResult(other); res; res = PQgetResult(other))
            PQclear(res);
        assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
        store_kind->ops->close(store);
    }
    PQfinish(other);
}

int main(void)
{
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(relays_draw_from_one_bucket),
        TEST(who_waits_for_the_bucket_counts_no_time_twice),
        TEST(each_destination_and_its_probes_have_a_bucket_of_their_own),
        TEST(a_breaker_that_opens_is_heard_of_and_so_is_its_closing),
        TEST(what_was_drawn_is_drawn_only_when_it_was_committed),
    };
    return cmocka_run_group_tests_name("quotas (postgres)", tests, NULL, NULL);
}
