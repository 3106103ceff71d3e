/* SPDX-License-Identifier: Apache-2.0 */
/* A COMMIT that nobody answers: the store finds out what became of it, and never guesses. And a server that goes away in the
 * middle of everything. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "pg_proxy.h"
#include "pg_relay.h"

#define LEASE_MS             30000
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)
#define TEST(name)           cmocka_unit_test_setup_teardown(name, setup, teardown)

static int setup(void **state)
{
    return suite_setup(state) == 0 && proxy_start() ? 0 : -1;
}

static int teardown(void **state)
{
    proxy_stop();
    return suite_teardown(state);
}

static int64_t read_clock(void *arg)
{
    (void)arg;
    return suite_clock_ms;
}

static struct hk_store *open_through_proxy(void)
{
    struct hk_store_options options = {.keep_sent = true, .clock_ms = read_clock, .busy_ms = 2000};
    struct hk_store *store = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->open(proxy_url(), &options, &store, &err);
    NOTE_IF(rc != HK_OK, "open: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return store;
}

/* A store with message 1 claimed and its settle ready; 2 and 3 wait. */
struct scene {
    struct hk_store *store;
    int64_t lane;
    struct hk_settle settle;
    struct hk_want claim;
    struct hk_exchange x;
    const struct hk_exchanged *done;
};

static void set_scene(struct scene *s, enum hk_settle_kind kind)
{
    *s = (struct scene){.store = open_through_proxy(), .claim = {HK_FROM_OUTBOX, 2, true}};
    s->lane = suite_acquire(s->store);
    suite_fill(3, "a", NULL);
    s->settle = suite_settle(suite_claim(s->store, s->lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, kind);
    s->x = (struct hk_exchange){.lane = s->lane, .lease_ms = LEASE_MS, .settles = &s->settle, .n_settles = 1};
}

static enum hk_code try(struct scene *s)
{
    struct hk_err err = {0};
    s->done = NULL;
    return store_kind->ops->exchange(s->store, &s->x, &s->done, &err);
}

static void claim_too(struct scene *s)
{
    s->x.wants = &s->claim;
    s->x.n_wants = 1;
}

/* ---- the answer is lost ---- */

static void what_was_committed_counts_when_it_is_repeated(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_SENT);
    proxy_arm(PROXY_LOSE_REPLY);
    assert_int_equal(try(&s), HK_UNAVAILABLE); /* nothing of the answer came through */
    assert_count("outbox_sent", 1);
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    assert_true(s.done->now_ms > 0);
    assert_count("outbox_sent", 1);
    assert_count("outbox_claim", 0);
    assert_int_equal(try(&s), HK_OK); /* told and done: a second time it is stale */
    assert_true(s.done->stale[0]);
    assert_count("outbox_sent", 1);
    suite_close(s.store);
}

static void a_claim_whose_rows_came_through_is_kept(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_SENT);
    claim_too(&s);
    proxy_arm(PROXY_LOSE_COMMIT);
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    assert_int_equal(s.done->n_messages, 1);
    assert_int_equal(s.done->messages[0].id, 2);
    assert_int_equal(s.done->messages[0].payload.len, 2);
    struct hk_settle next = suite_settle(s.done->claim, HK_FROM_OUTBOX, 2, HK_SETTLE_SENT);
    suite_settle_one(s.store, s.lane, &next);
    assert_count("outbox_sent", 2);
    assert_count("outbox_claim", 0);
    suite_close(s.store);
}

/* Nobody knows what the manifest names: it is given back, and all is asked for again. */
static void a_claim_that_nobody_heard_of_is_given_back_and_what_was_settled_counts(void **state)
{
    (void)state;

    static const enum hk_settle_kind kinds[] = {HK_SETTLE_SENT, HK_SETTLE_RETRY, HK_SETTLE_DEAD,
                                                HK_SETTLE_DEFER, HK_SETTLE_RELEASE};

    static const char *const ends[] = {"outbox_sent", "outbox_retry", "dead_letters", "outbox_retry",
                                       "outbox WHERE id % 3 = 1"};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct scene s;
        char sql[100];
        store_kind->sql(
            "TRUNCATE outbox, outbox_sent, outbox_retry, dead_letters, dead_letter_versions, outbox_claim, outbox_relay; "
            "ALTER SEQUENCE outbox_id_seq RESTART; UPDATE outbox_shard SET lane = NULL");
        set_scene(&s, kinds[k]);
        claim_too(&s);
        proxy_arm(PROXY_LOSE_REPLY);
        assert_int_equal(try(&s), HK_UNAVAILABLE);
        assert_count("outbox_claim", 1); /* that nobody knows */
        assert_int_equal(try(&s), HK_OK);
        assert_false(s.done->stale[0]);
        assert_int_equal(s.done->n_messages, 1);
        assert_count("outbox_claim", 1);
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", ends[k]);
        NOTE_IF(suite_number(sql) != 1, "kind %zu\n", k);
        assert_int_equal(suite_number(sql), 1);
        assert_int_equal(try(&s), HK_OK);
        assert_true(s.done->stale[0]); /* known once */
        suite_close(s.store);
    }
}

static void what_was_settled_counts_however_often_the_answer_is_lost(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_RETRY);
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            proxy_arm(PROXY_LOSE_REPLY);
        else /* on a new connection more is asked before */
            proxy_arm_on(PROXY_LOSE_REPLY, "(lane, number) VALUES");
        assert_int_equal(try(&s), HK_UNAVAILABLE);
    }
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    assert_count("outbox_retry", 1);
    assert_int_equal(try(&s), HK_OK);
    assert_true(s.done->stale[0]); /* known once */
    suite_close(s.store);
}

static void a_retry_row_of_a_lost_claim_is_free_again(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_RETRY);
    suite_settle_one(s.store, s.lane, &s.settle);
    s.x.n_settles = 0;
    s.claim = (struct hk_want){HK_FROM_RETRY, 1, true};
    claim_too(&s);
    proxy_arm(PROXY_LOSE_REPLY);
    assert_int_equal(try(&s), HK_UNAVAILABLE);
    assert_count("outbox_retry WHERE claim IS NOT NULL", 1);
    assert_int_equal(try(&s), HK_OK);
    assert_int_equal(s.done->n_messages, 1);
    assert_count("outbox_retry WHERE crashes = 0 AND attempts = 1", 1);
    assert_count("outbox_claim", 1);
    suite_close(s.store);
}

static void what_never_arrived_was_not_done(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_SENT);
    claim_too(&s);
    proxy_arm(PROXY_LOSE_REQUEST);
    assert_int_equal(try(&s), HK_UNAVAILABLE);
    assert_count("outbox", 3);
    assert_count("outbox_claim", 1);
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    assert_int_equal(s.done->n_messages, 1);
    assert_count("outbox_sent", 1);
    suite_close(s.store);
}

/* A manifest that the store has to read first, as after a take-over by hand. */
static void a_server_that_is_gone_before_the_manifests_were_read_is_survived(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_SENT);
    int64_t claim = s.settle.claim;
    s.settle.claim = claim + 1000;
    proxy_arm(PROXY_LOSE_REQUEST);
    assert_int_equal(try(&s), HK_UNAVAILABLE);
    assert_int_equal(try(&s), HK_OK);
    assert_true(s.done->stale[0]);
    s.settle.claim = claim;
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    assert_count("outbox_sent", 1);
    suite_close(s.store);
}

/* It was still under way when we asked, and comes through afterwards: too late. */
static void what_comes_through_after_it_was_given_up_is_refused(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_DEAD);
    claim_too(&s);
    proxy_arm(PROXY_HOLD_REQUEST);
    assert_int_equal(try(&s), HK_UNAVAILABLE);
    assert_false(proxy_deliver());
    assert_count("dead_letters", 0);
    assert_count("outbox", 3);
    assert_count("outbox_claim", 1);
    s.settle = suite_settle(s.settle.claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    assert_count("outbox_sent", 1);
    suite_close(s.store);
}

/* Asking changes the lane's row, so that asking again must not mistake that for the exchange. */
static void the_answer_to_the_question_may_be_lost_too(void **state)
{
    (void)state;
    struct scene s;
    for (int arrived = 0; arrived <= 1; arrived++) {
        store_kind->sql(
            "TRUNCATE outbox, outbox_sent, outbox_claim, outbox_relay; UPDATE outbox_shard SET lane = NULL; "
            "ALTER SEQUENCE outbox_id_seq RESTART");
        set_scene(&s, HK_SETTLE_SENT);
        proxy_arm(arrived ? PROXY_LOSE_REPLY : PROXY_LOSE_REQUEST);
        proxy_arm_on(PROXY_LOSE_REPLY, "SET exchange = $2");
        assert_int_equal(try(&s), HK_UNAVAILABLE);
        assert_count("outbox_sent", arrived);
        assert_count("outbox", 3 - arrived);
        assert_int_equal(try(&s), HK_OK);
        assert_false(s.done->stale[0]);
        assert_count("outbox_sent", 1);
        suite_close(s.store);
    }
}

static void nothing_is_done_before_it_is_known(void **state)
{
    (void)state;
    struct scene s;
    const struct hk_poll *poll = NULL;
    set_scene(&s, HK_SETTLE_SENT);
    claim_too(&s);
    proxy_arm(PROXY_LOSE_REPLY);
    proxy_refuse(true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(try(&s), HK_UNAVAILABLE);
        assert_int_equal(store_kind->ops->poll(s.store, &poll, NULL), HK_UNAVAILABLE);
    }
    proxy_refuse(false);
    assert_true(relay_poll(s.store)->changed); /* a poll finds it out as well */
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    assert_int_equal(s.done->n_messages, 1);
    assert_count("outbox_sent", 1);
    assert_count("outbox_claim", 1);
    suite_close(s.store);
}

static void a_lane_that_was_taken_over_meanwhile_is_a_conflict(void **state)
{
    (void)state;
    for (int polls = 0; polls <= 1; polls++) {
        struct scene s;
        const struct hk_poll *poll = NULL;
        set_scene(&s, HK_SETTLE_SENT);
        claim_too(&s);
        proxy_arm(PROXY_LOSE_REPLY);
        proxy_refuse(true);
        assert_int_equal(try(&s), HK_UNAVAILABLE);
        suite_clock_ms += LEASE_MS;
        struct hk_store *other = suite_open(NULL);
        int64_t lane = suite_acquire(other);
        proxy_refuse(false);
        if (polls)
            assert_int_equal(store_kind->ops->poll(s.store, &poll, NULL), HK_CONFLICT);
        assert_int_equal(try(&s), HK_CONFLICT);
        assert_true(s.done->stale[0]);
        assert_count("outbox_retry WHERE crashes = 1 AND original_outbox_id = 2", 1);
        assert_int_equal(store_kind->ops->release(other, lane, NULL), HK_OK);
        suite_close(other);
        suite_close(s.store);
        store_kind->sql("TRUNCATE outbox, outbox_sent, outbox_retry; ALTER SEQUENCE outbox_id_seq RESTART");
    }
}

/* ---- locks and servers ---- */

static void a_locked_lane_is_busy_and_nothing_is_done(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s, HK_SETTLE_SENT);
    PGconn *person = pg_connect(NULL);
    pg_exec(person, "BEGIN; SELECT 1 FROM outbox_relay FOR UPDATE");
    assert_int_equal(try(&s), HK_BUSY);
    assert_count("outbox", 3);
    pg_exec(person, "COMMIT");
    PQfinish(person);
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    suite_close(s.store);
}

static void a_read_only_server_is_waited_for(void **state)
{
    (void)state;
    struct scene s;
    char sql[100];
    set_scene(&s, HK_SETTLE_SENT);
    snprintf(sql, sizeof sql, "ALTER DATABASE %s SET default_transaction_read_only = on", pg_database());
    store_kind->sql(sql);
    store_kind->value("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
                      "WHERE application_name = 'hikyaku' AND datname = current_database()");
    assert_int_equal(try(&s), HK_UNAVAILABLE);
    snprintf(sql, sizeof sql, "ALTER DATABASE %s RESET default_transaction_read_only", pg_database());
    store_kind->sql(sql);
    assert_int_equal(try(&s), HK_OK);
    assert_false(s.done->stale[0]);
    suite_close(s.store);
}

static void *crash_twice(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
        pg_server_crash();
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        pg_server_resume();
    }
    return NULL;
}

static void a_server_that_dies_twice_loses_nothing_and_repeats_nothing(void **state)
{
    (void)state;
    struct relay relay;
    pthread_t thread;

    enum {
        ROWS = 6000
    };

    store_kind->sql("INSERT INTO outbox (destination, event_type, message_key) "
                    "SELECT 'a', 'Made', 'k' || g % 5 FROM generate_series(1, 6000) g");
    relay_open(&relay, &(struct hk_store_options){.keep_sent = true, .busy_ms = 2000});
    assert_int_equal(pthread_create(&thread, NULL, crash_twice, NULL), 0);
    time_t end = time(NULL) + 240;
    while (relay.n_log < ROWS && time(NULL) < end) {
        assert_true(relay_turn(&relay, 1));
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    pthread_join(thread, NULL);
    relay_settle(&relay);
    print_message("# %zu delivered, %zu errors, %zu resets\n", relay.n_log, relay.n_errors, relay.n_resets);
    assert_int_equal(relay.n_log, ROWS);
    relay_check(&relay, 1);
    assert_true(relay.n_resets > 0);
    PGconn *conn = pg_connect(NULL); /* the suite's own died */
    assert_string_equal(
        pg_ask(conn, "SELECT count(DISTINCT original_outbox_id) || ' ' || count(*) FROM outbox_sent"),
        "6000 6000");
    assert_string_equal(pg_ask(conn, "SELECT count(*) FROM outbox_claim"), "0");
    PQfinish(conn);
    relay_close(&relay);
}

/* ---- a lane that nobody heard of ---- */

static enum hk_code acquire(struct hk_store *store, const char *boot, int64_t *out_lane)
{
    int64_t now_ms = 0;
    return store_kind->ops->acquire(store, "relay", boot, LEASE_MS, out_lane, &now_ms, NULL);
}

/* Its share of the shards would lie idle until its lease ends. */
static void a_lane_that_nobody_heard_of_is_given_back(void **state)
{
    (void)state;

    static const enum proxy_mode modes[] = {PROXY_LOSE_REPLY, PROXY_LOSE_COMMIT, PROXY_LOSE_REQUEST};

    for (size_t i = 0; i < COUNT(modes); i++) {
        int64_t lane = 0, other = 0;
        store_kind->sql("DELETE FROM outbox_relay; UPDATE outbox_shard SET lane = NULL");
        struct hk_store *neighbour = suite_open(NULL), *store = open_through_proxy();
        assert_int_equal(acquire(neighbour, "theirs", &other), HK_OK);
        proxy_arm_on(modes[i], "ours");
        assert_int_equal(acquire(store, "ours", &lane), HK_UNAVAILABLE);
        assert_count("outbox_relay", modes[i] == PROXY_LOSE_REQUEST ? 1 : 2);
        assert_int_equal(acquire(store, "ours", &lane), HK_OK);
        assert_count("outbox_relay", 2);
        suite_clock_ms += 1000;
        relay_poll(neighbour);
        suite_clock_ms += 1000;
        relay_poll(store);
        assert_count("outbox_shard s JOIN outbox_relay r ON r.lane = s.lane WHERE r.boot = 'ours'", 32);
        assert_count("outbox_shard s JOIN outbox_relay r ON r.lane = s.lane", 64);
        suite_close(store);
        suite_close(neighbour);
    }
}

/* Also one that comes through only when its successor is at work, which is left alone itself. */
static void a_lane_that_comes_late_is_given_back(void **state)
{
    (void)state;
    int64_t lane = 0;
    struct hk_store *store = open_through_proxy();
    proxy_arm_on(PROXY_HOLD_REQUEST, "ours");
    assert_int_equal(acquire(store, "ours", &lane), HK_UNAVAILABLE);
    assert_int_equal(acquire(store, "ours", &lane), HK_OK);
    assert_count("outbox_relay", 1);
    assert_true(proxy_deliver());
    assert_count("outbox_relay", 2);
    suite_clock_ms += 1000;
    relay_poll(store);
    assert_count("outbox_relay", 1);
    assert_int_equal(suite_number("SELECT lane FROM outbox_relay"), lane);
    /* what has been at work is never taken for one */
    suite_exchange(store, lane, NULL, 0, NULL, 0);
    suite_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_committed_counts_when_it_is_repeated),
        TEST(a_claim_whose_rows_came_through_is_kept),
        TEST(a_claim_that_nobody_heard_of_is_given_back_and_what_was_settled_counts),
        TEST(what_was_settled_counts_however_often_the_answer_is_lost),
        TEST(a_retry_row_of_a_lost_claim_is_free_again),
        TEST(what_never_arrived_was_not_done),
        TEST(a_server_that_is_gone_before_the_manifests_were_read_is_survived),
        TEST(what_comes_through_after_it_was_given_up_is_refused),
        TEST(the_answer_to_the_question_may_be_lost_too),
        TEST(nothing_is_done_before_it_is_known),
        TEST(a_lane_that_was_taken_over_meanwhile_is_a_conflict),
        TEST(a_locked_lane_is_busy_and_nothing_is_done),
        TEST(a_lane_that_nobody_heard_of_is_given_back),
        TEST(a_lane_that_comes_late_is_given_back),
        TEST(a_read_only_server_is_waited_for),
        TEST(a_server_that_dies_twice_loses_nothing_and_repeats_nothing),
    };
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    return cmocka_run_group_tests_name("PostgreSQL commits", tests, NULL, NULL);
}
