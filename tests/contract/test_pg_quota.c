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

/* A relay that has seen a clock which was ahead goes by that time; its breaker is written in the server's, as others read it. */
static void a_breaker_goes_by_the_servers_clock(void **state)
{
    (void)state;
    const int64_t day_ms = 86400000;
    bool paused = false;
    struct hk_store *one = suite_open(NULL);
    suite_clock_ms += day_ms;
    int64_t lane = suite_acquire(one);
    suite_clock_ms -= day_ms;
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(one, &poll, NULL), HK_OK);
    int64_t own_ms = poll->now_ms;
    assert_int_equal(own_ms, suite_clock_ms + day_ms);
    const struct hk_circuit circuit = {.destination = "a", .open_until_ms = own_ms + 10000};
    (void)exchange(one, lane, NULL, 0, &circuit, 1);
    assert_int_equal(suite_number("SELECT open_until_ms FROM outbox_destination"), suite_clock_ms + 10000);
    assert_int_equal(seen(one, "a", &paused), own_ms + 10000); /* what it said itself is no news */
    struct hk_store *other = suite_open(NULL);
    (void)suite_acquire(other);
    assert_int_equal(seen(other, "a", &paused), suite_clock_ms + 10000);
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

/* ---- a bucket that somebody has in hand ---- */

/* A role without any right, which holds whatever it can guess. */
static PGconn *connect_stranger(void)
{
    PGconn *owner = pg_connect(NULL);
    pg_exec(owner, "DO $$BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END$$");
    PQfinish(owner);
    PGconn *stranger = pg_connect("stranger");
    pg_exec(stranger, "SELECT pg_advisory_lock(hashtextextended(k, 0)) FROM unnest(ARRAY["
                      "'\"public\".\"outbox_bucket\" 0a', '\"public\".\"outbox_bucket\" 1a', "
                      "'\"public\".\"outbox_meta\" purge', 'outbox_redrive'::regclass::oid || ' start', "
                      "'outbox_sent'::regclass::oid || ' days']) k");
    pg_exec(stranger, "SELECT pg_advisory_lock(7523377975159973749)");
    return stranger;
}

static void nobody_without_rights_stops_a_relay(void **state)
{
    (void)state;
    const struct hk_quota quotas[] = {
        {.destination = "a", .rate_per_s = 1, .burst = 1, .want = 1},
        {.destination = "a", .probe = true, .rate_per_s = 1, .burst = 1, .want = 1}};
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint32_t deleted = 0;
    struct hk_store_inited done;
    pg_make_version("&prefix=old_", 4);
    PGconn *stranger = connect_stranger();
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_exchanged *drawn = exchange(store, lane, quotas, COUNT(quotas), NULL, 0);
    assert_int_equal(drawn->grants[0].n, 1);
    assert_int_equal(drawn->grants[1].n, 1);
    keep.sent_ms = 1000;
    store_kind->sql("INSERT INTO outbox_sent (message_id, destination, event_type, attempts, status, life, "
                    "sent_ms) VALUES ('m', 'a', 'Made', 1, 200, 1, 1)");
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, NULL), HK_OK);
    assert_int_equal(deleted, 1);
    suite_close(store);
    assert_int_equal(
        store_kind->ops->init(pg_url(NULL, "&prefix=old_"), &(struct hk_store_init){0}, &done, NULL), HK_OK);
    PQfinish(stranger);
}

/* As another relay that has drawn, and whose COMMIT takes its time. */
static void a_bucket_in_other_hands_gives_nothing_and_holds_no_settle(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "SELECT 1 FROM outbox_bucket FOR UPDATE",
        "WITH z AS (DELETE FROM outbox_bucket RETURNING turn, at_ms) INSERT INTO outbox_bucket SELECT 'a', 0, turn + 2, 0, "
        "at_ms FROM z"};
    const struct hk_quota quota = {.destination = "a", .rate_per_s = 1, .burst = 1, .want = 1};
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    PGconn *other = pg_connect(NULL);
    suite_fill(COUNT(ways), "a", NULL);
    assert_int_equal(draw(store, lane, quota).n, 1);
    for (size_t i = 0; i < COUNT(ways); i++) {
        int64_t id = (int64_t)i + 1;
        struct hk_settle sent =
            suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
        const struct hk_exchange x = {.lane = lane,
                                      .lease_ms = LEASE_MS,
                                      .settles = &sent,
                                      .n_settles = 1,
                                      .quotas = &quota,
                                      .n_quotas = 1};
        const struct hk_exchanged *done = NULL;
        suite_clock_ms += 1000; /* there would be a token */
        pg_exec(other, "BEGIN");
        pg_exec(other, ways[i]);
        assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_OK);
        assert_false(done->stale[0]);
        assert_int_equal(done->grants[0].n, 0);
        assert_in_range(done->grants[0].ready_ms, suite_clock_ms + 1, suite_clock_ms + 100);
        assert_int_equal(suite_number("SELECT count(*) FROM outbox"), (int64_t)COUNT(ways) - id);
        pg_exec(other, "ROLLBACK");
        assert_int_equal(draw(store, lane, quota).n, 1);
    }
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_bucket"), 1);
    PQfinish(other);
    suite_close(store);
}

/* A relay of schema version 4 waits for its own lock and not for ours, and may write the turn behind the one that it saw. */
static void an_older_relays_turn_is_never_ours(void **state)
{
    (void)state;
    const struct hk_quota quota = {.destination = "a", .rate_per_s = 1, .burst = 5, .want = 1};
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    PGconn *old = pg_connect(NULL);
    assert_int_equal(draw(store, lane, quota).n, 1);
    pg_exec(old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT turn FROM outbox_bucket");
    assert_int_equal(draw(store, lane, quota).n, 1);
    pg_exec(old, "INSERT INTO outbox_bucket SELECT 'a', 0, turn + 1, 0, at_ms FROM outbox_bucket; COMMIT");
    assert_int_equal(draw(store, lane, quota).n, 1); /* of the newer one */
    PQfinish(old);
    suite_close(store);
}

/* ---- seats ---- */

static struct hk_seats_given seat(struct hk_store *store, int64_t lane, uint32_t most, uint32_t hold, uint32_t want)
{
    const struct hk_seat_ask ask = {.destination = "a", .most = most, .hold = hold, .want = want};
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS, .seats = &ask, .n_seats = 1};
    const struct hk_exchanged *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->exchange(store, &x, &done, &err);
    NOTE_IF(rc != HK_OK, "exchange: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return done->seats[0];
}

static uint32_t held(struct hk_store *store, int64_t lane, uint32_t most, uint32_t hold, uint32_t want)
{
    struct hk_seats_given given = seat(store, lane, most, hold, want);
    assert_true(given.written);
    return given.held;
}

static void lanes_share_the_seats_of_a_destination(void **state)
{
    (void)state;
    struct hk_store *one = suite_open(NULL), *other = suite_open(NULL);
    int64_t lane = suite_acquire(one), second = suite_acquire(other);
    assert_int_equal(held(one, lane, 4, 0, 3), 3);
    assert_int_equal(held(other, second, 4, 0, 3), 1);
    struct hk_seats_given given = seat(one, lane, 4, 3, 3);
    assert_int_equal(given.held, 3);
    assert_int_equal(given.limit, 2); /* the other waits for its half */
    assert_int_equal(held(one, lane, 4, 2, 2), 2);
    assert_int_equal(held(other, second, 4, 1, 3), 2);
    suite_clock_ms += 1001; /* it has not asked for a second: it does not wait any more */
    given = seat(one, lane, 4, 2, 2);
    assert_int_equal(given.limit, HK_SEATS_NO_LIMIT);
    assert_int_equal(held(other, second, 4, 0, 0), 0);
    assert_int_equal(held(one, lane, 4, 2, 9), 4);
    assert_int_equal(held(one, lane, 3, 4, 4), 4); /* it has fewer seats now: who has them keeps them as long as they are in use */
    assert_int_equal(held(other, second, 3, 0, 1), 0);
    assert_int_equal(store_kind->ops->release(one, lane, NULL), HK_OK);
    assert_int_equal(held(other, second, 3, 0, 3), 3); /* who is gone has none */
    suite_close(one);
    suite_close(other);
}

static void the_only_seat_goes_to_who_has_waited_longest(void **state)
{
    (void)state;
    struct hk_store *stores[3];
    int64_t lanes[3];
    for (int i = 0; i < 3; i++) {
        stores[i] = suite_open(NULL);
        lanes[i] = suite_acquire(stores[i]);
    }
    assert_int_equal(held(stores[0], lanes[0], 1, 0, 1), 1);
    suite_clock_ms += 10;
    assert_int_equal(held(stores[2], lanes[2], 1, 0, 1), 0);
    suite_clock_ms += 10;
    assert_int_equal(held(stores[1], lanes[1], 1, 0, 1), 0);
    suite_clock_ms += 10;
    struct hk_seats_given given = seat(stores[0], lanes[0], 1, 1, 1);
    assert_int_equal(given.held, 1);
    assert_int_equal(given.limit, 0);
    assert_int_equal(held(stores[0], lanes[0], 1, 0, 1), 0); /* it gives it back, and waits */
    assert_int_equal(held(stores[1], lanes[1], 1, 0, 1), 0);
    given = seat(stores[2], lanes[2], 1, 0, 1);
    assert_int_equal(given.held, 1);
    assert_int_equal(given.limit, 1); /* it has a turn */
    assert_int_equal(held(stores[2], lanes[2], 1, 0, 0), 0);
    assert_int_equal(held(stores[0], lanes[0], 1, 0, 1), 0);
    assert_int_equal(held(stores[1], lanes[1], 1, 0, 1), 1);
    for (int i = 0; i < 3; i++)
        suite_close(stores[i]);
}

/* Whatever is asked, in whatever order: never more than there are, and nobody loses what he keeps. */
static void no_seat_is_given_twice(void **state)
{
    (void)state;
    struct hk_store *stores[3];
    int64_t lanes[3];
    uint32_t have[3] = {0}, random = 12345;
    for (int i = 0; i < 3; i++) {
        stores[i] = suite_open(NULL);
        lanes[i] = suite_acquire(stores[i]);
    }
    for (int n = 0; n < 150; n++) {
        random = random * 1103515245u + 12345u;
        uint32_t who = (random >> 8) % 3, keep = have[who] ? (random >> 12) % (have[who] + 1) : 0;
        struct hk_seats_given given = seat(stores[who], lanes[who], 5, keep, keep + (random >> 20) % 6);
        assert_true(given.written);
        assert_true(given.held >= keep);
        have[who] = given.held;
        assert_true(have[0] + have[1] + have[2] <= 5);
        suite_clock_ms += (random >> 24) % 40;
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(held(stores[i], lanes[i], 5, 0, 0), 0);
    assert_int_equal(held(stores[1], lanes[1], 5, 0, 5), 5);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_seats"), 1);
    for (int i = 0; i < 3; i++)
        suite_close(stores[i]);
}

static void a_book_in_other_hands_is_not_written_and_holds_no_settle(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    PGconn *other = pg_connect(NULL);
    suite_fill(1, "a", NULL);
    assert_int_equal(held(store, lane, 2, 0, 2), 2);
    struct hk_settle sent =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    const struct hk_seat_ask ask = {.destination = "a", .most = 2};
    const struct hk_exchange x = {
        .lane = lane, .lease_ms = LEASE_MS, .settles = &sent, .n_settles = 1, .seats = &ask, .n_seats = 1};
    const struct hk_exchanged *done = NULL;
    pg_exec(other, "BEGIN; SELECT 1 FROM outbox_seats FOR UPDATE");
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_OK);
    assert_false(done->stale[0]);
    assert_false(done->seats[0].written);
    pg_exec(other, "ROLLBACK");
    struct hk_store *late = suite_open(NULL);
    int64_t second = suite_acquire(late);
    assert_int_equal(held(late, second, 2, 0, 2), 0); /* what was not written was not given back */
    assert_int_equal(held(store, lane, 2, 0, 0), 0);
    assert_int_equal(held(late, second, 2, 0, 2), 2);
    PQfinish(other);
    suite_close(late);
    suite_close(store);
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
        TEST(nobody_without_rights_stops_a_relay),
        TEST(a_bucket_in_other_hands_gives_nothing_and_holds_no_settle),
        TEST(an_older_relays_turn_is_never_ours),
        TEST(each_destination_and_its_probes_have_a_bucket_of_their_own),
        TEST(a_breaker_that_opens_is_heard_of_and_so_is_its_closing),
        TEST(a_breaker_goes_by_the_servers_clock),
        TEST(what_was_drawn_is_drawn_only_when_it_was_committed),
        TEST(lanes_share_the_seats_of_a_destination),
        TEST(the_only_seat_goes_to_who_has_waited_longest),
        TEST(no_seat_is_given_twice),
        TEST(a_book_in_other_hands_is_not_written_and_holds_no_settle),
    };
    return cmocka_run_group_tests_name("quotas (postgres)", tests, NULL, NULL);
}
