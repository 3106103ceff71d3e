/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store's reader: ids are not in the order of commits, and still nothing is left behind, nothing is invented,
 * nobody waits for a stranger's transaction, and a key's messages stay in order. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hikyaku/rng.h>

#include "base/str.h"
#include "pg_relay.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)
#define INSERT     "INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'Made', 'p')"
#define NUMBERED(id)                                                                                         \
    "INSERT INTO outbox (id, destination, event_type, payload) OVERRIDING SYSTEM VALUE VALUES (" id          \
    ", 'a', 'Made', 'p')"
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)

static const struct hk_scan all = {.after_id = HK_FIRST_ID, .limit = 50};
static const struct hk_scan late = {.late = true, .after_id = HK_FIRST_ID, .limit = 50};

static struct hk_scan after(int64_t id)
{
    return (struct hk_scan){.after_id = id, .limit = 50};
}

/* A poll, and what it uncovers late. It may say that there is something when there is nothing. */
static void expect_late(struct hk_store *store, const char *ids)
{
    bool told = relay_poll(store)->late;
    assert_true(told || !ids[0]);
    assert_string_equal(relay_scan(store, late), ids);
    assert_string_equal(relay_scan(store, late), "");
}

/* ---- late rows ---- */

static void a_late_commit_is_told_and_shown_once(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; " INSERT);
    store_kind->sql(INSERT);
    assert_false(relay_poll(store)->late);
    assert_string_equal(relay_scan(store, all), "2");
    pg_exec(slow, "COMMIT");
    expect_late(store, "1");
    assert_false(relay_poll(store)->late);
    assert_string_equal(relay_scan(store, after(2)), "");
    PQfinish(slow);
    suite_close(store);
}

static void what_lies_ahead_of_all_scans_is_not_late(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    store_kind->sql(INSERT);
    pg_exec(slow, "BEGIN; " INSERT);
    relay_poll(store);
    assert_string_equal(relay_scan(store, all), "1");
    store_kind->sql(INSERT);
    pg_exec(slow, "COMMIT");
    expect_late(store, "");
    assert_string_equal(relay_scan(store, after(1)), "2,3");
    PQfinish(slow);
    suite_close(store);
}

/* Of two messages of a key, written one after the other, never only the second is seen. */
static void no_scan_sees_past_the_last_poll(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; " INSERT);
    store_kind->sql(INSERT);
    relay_poll(store);
    assert_string_equal(relay_scan(store, all), "2");
    pg_exec(slow, "COMMIT");
    store_kind->sql(INSERT); /* later than 1 */
    assert_string_equal(relay_scan(store, after(2)), "");
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = "a", .after_id = 0, .limit = 9}),
                        "2");
    assert_true(relay_poll(store)->late);
    assert_string_equal(relay_scan(store, after(2)), "3");
    assert_string_equal(relay_scan(store, late), "1");
    PQfinish(slow);
    suite_close(store);
}

static void a_late_scan_comes_in_pages_and_is_begun_again_when_it_was_not_ended(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; " INSERT ";" INSERT ";" INSERT ";" INSERT ";" INSERT);
    store_kind->sql(INSERT);
    relay_poll(store);
    relay_scan(store, all);
    pg_exec(slow, "COMMIT");
    assert_true(relay_poll(store)->late);
    struct hk_scan page = {.late = true, .after_id = HK_FIRST_ID, .limit = 2};
    assert_string_equal(relay_scan(store, page), "1,2+");
    page.after_id = 2;
    assert_string_equal(relay_scan(store, page), "3,4+");
    store_kind->sql(INSERT); /* 7: what a late scan covers is fixed */
    assert_true(relay_poll(store)->late);
    assert_string_equal(relay_scan(store, after(6)), "");
    page.after_id = HK_FIRST_ID;
    assert_string_equal(relay_scan(store, page), "1,2+");
    page.after_id = 2;
    assert_string_equal(relay_scan(store, page), "3,4+");
    page.after_id = 4;
    assert_string_equal(relay_scan(store, page), "5");
    assert_false(relay_poll(store)->late);
    assert_string_equal(relay_scan(store, after(6)), "7");
    PQfinish(slow);
    suite_close(store);
}

/* An engine reads late rows first, and goes on only when the poll says that there is more. */
static bool tells(struct hk_store *store, int64_t id)
{
    const struct hk_poll *poll = relay_poll(store);
    bool told = poll->changed && poll->last_id >= id;
    if (poll->late)
        relay_scan(store, late);
    return told;
}

static void ids_that_the_sequence_does_not_know_are_told(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    assert_int_equal(relay_poll(store)->last_id, HK_FIRST_ID);
    store_kind->sql(NUMBERED("-7")); /* before the sequence was asked for the first time */
    assert_true(tells(store, -7));
    assert_string_equal(relay_scan(store, all), "-7");
    store_kind->sql(INSERT);
    assert_true(tells(store, 1));
    assert_string_equal(relay_scan(store, after(-7)), "1");
    store_kind->sql(NUMBERED("5000"));
    assert_true(tells(store, 5000));
    assert_string_equal(relay_scan(store, after(1)), "5000");
    store_kind->sql(INSERT); /* below what was read */
    expect_late(store, "2");
    store_kind->sql(NUMBERED("9000"));
    store_kind->sql(NUMBERED("9001"));
    assert_true(tells(store, 9001));
    assert_string_equal(relay_scan(store, (struct hk_scan){.after_id = 5000, .limit = 1}), "9000+");
    store_kind->sql("DELETE FROM outbox WHERE id = 9000");
    assert_true(tells(store, 9001));
    assert_string_equal(relay_scan(store, after(9000)), "9001");
    store_kind->sql("DELETE FROM outbox");
    assert_int_equal(relay_poll(store)->last_id, 9001); /* what was read, no more: nobody looks in vain */
    suite_close(store);
}

static void what_is_in_our_own_hands_is_not_shown_late(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; " INSERT ";" INSERT ";" INSERT);
    store_kind->sql(INSERT);
    relay_poll(store);
    relay_scan(store, all);
    pg_exec(slow, "COMMIT");
    assert_true(relay_poll(store)->late);
    suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    suite_claim(store, lane, HK_FROM_OUTBOX, 2);
    struct hk_scan page = {.late = true, .after_id = HK_FIRST_ID, .limit = 1};
    assert_string_equal(relay_scan(store, page), "3+"); /* two pages full of our own are passed over */
    page.after_id = 3;
    assert_string_equal(relay_scan(store, page), "");
    assert_false(relay_poll(store)->late);
    PQfinish(slow);
    suite_close(store);
}

static void savepoints_belong_to_their_transaction(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; SAVEPOINT a; " INSERT "; SAVEPOINT b; " INSERT "; ROLLBACK TO b; " INSERT
                  "; RELEASE a; SAVEPOINT c; " INSERT);
    store_kind->sql(INSERT);
    assert_true(relay_poll(store)->changed);
    assert_string_equal(relay_scan(store, all), "5");
    pg_exec(slow, INSERT); /* 6 */
    store_kind->sql(INSERT);
    expect_late(store, "");
    assert_string_equal(relay_scan(store, after(5)), "7");
    pg_exec(slow, "COMMIT");
    expect_late(store, "1,3,4,6");
    PQfinish(slow);
    suite_close(store);
}

static void prepared_transactions_count_when_they_end(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; " INSERT "; PREPARE TRANSACTION 'kept'");
    pg_exec(slow, "BEGIN; " INSERT "; PREPARE TRANSACTION 'not kept'");
    PQfinish(slow);
    for (int i = 0; i < 5; i++) {
        store_kind->sql(INSERT);
        expect_late(store, "");
        char expected[16];
        snprintf(expected, sizeof expected, "%d", i + 3);
        assert_string_equal(relay_scan(store, after(i + 2)), expected);
    }
    store_kind->sql("ROLLBACK PREPARED 'not kept'");
    expect_late(store, "");
    store_kind->sql("COMMIT PREPARED 'kept'");
    expect_late(store, "1");
    suite_close(store);
}

static void what_is_rolled_back_is_never_seen(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; " INSERT ";" INSERT);
    store_kind->sql(INSERT);
    relay_poll(store);
    assert_string_equal(relay_scan(store, all), "3");
    pg_exec(slow, "ROLLBACK");
    expect_late(store, "");
    assert_string_equal(relay_scan(store, all), "3");
    PQfinish(slow);
    suite_close(store);
}

static void a_stranger_in_an_open_transaction_holds_nobody_up(void **state)
{
    (void)state;
    struct relay relay;
    relay_open(&relay, &(struct hk_store_options){.keep_sent = true});
    PGconn *slow = pg_connect(NULL);
    pg_exec(slow, "BEGIN; CREATE TABLE theirs (x int); " INSERT);
    for (int i = 0; i < 40; i++) {
        store_kind->sql(INSERT);
        assert_true(relay_turn(&relay, 1));
    }
    relay_settle(&relay);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    relay_turn(&relay, 9);
    relay_settle(&relay);
    assert_count("outbox_sent", 40);
    assert_true(relay.n_late == 0);
    pg_exec(slow, "COMMIT");
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    relay_turn(&relay, 9);
    relay_settle(&relay);
    assert_count("outbox_sent", 41);
    assert_int_equal(relay.n_late, 1);
    relay_check(&relay, 1);
    PQfinish(slow);
    relay_close(&relay);
}

/* Rows of a dump from elsewhere: their transactions are still to come here. */
static void rows_from_the_future_are_seen(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    store_kind->sql("INSERT INTO outbox (xid, destination, event_type) VALUES ('9999999999', 'a', 'Made')");
    relay_poll(store);
    assert_string_equal(relay_scan(store, all), "1");
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = "a", .limit = 9}), "1");
    suite_close(store);
}

/* ---- what a poll says ---- */

static void a_renewal_is_no_news(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    assert_true(relay_poll(store)->changed);
    for (int i = 0; i < 3; i++) {
        suite_exchange(store, lane, NULL, 0, NULL, 0);
        assert_false(relay_poll(store)->changed);
    }
    store_kind->sql(INSERT);
    suite_exchange(store, lane, NULL, 0, NULL, 0);
    assert_true(relay_poll(store)->changed);
    suite_close(store);
}

static void a_new_connection_begins_anew(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql(INSERT);
    assert_false(relay_poll(store)->reset);
    assert_string_equal(relay_scan(store, all), "1");
    store_kind->value("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
                      "WHERE application_name = 'hikyaku' AND datname = current_database()");
    /* perhaps to a standby, where the same number is another's: what was read before is not claimed */
    const struct hk_want claim = {HK_FROM_OUTBOX, 1, true};
    assert_int_equal(suite_exchange(store, lane, NULL, 0, &claim, 1)->n_messages, 0);
    assert_string_equal(relay_scan(store, all), "1");
    assert_int_equal(suite_exchange(store, lane, NULL, 0, &claim, 1)->n_messages, 0);
    const struct hk_poll *poll = relay_poll(store);
    assert_true(poll->changed && poll->reset);
    assert_string_equal(relay_scan(store, all), "1");
    assert_int_equal(suite_exchange(store, lane, NULL, 0, &claim, 1)->n_messages, 1);
    assert_false(relay_poll(store)->reset);
    suite_close(store);
}

static void a_changed_table_is_refused(void **state)
{
    (void)state;
    static const char *const changes[] = {"ALTER TABLE outbox ALTER xid DROP DEFAULT",
                                          "ALTER TABLE outbox ALTER xid SET DEFAULT '5'::xid8",
                                          "ALTER SEQUENCE outbox_id_seq CACHE 10"};
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct hk_store *store = suite_open(NULL);
        int64_t lane = 0, now_ms = 0;
        struct hk_err err = {0};
        store_kind->sql(changes[i]);
        assert_int_equal(store_kind->ops->acquire(store, "r", "b", 30000, &lane, &now_ms, &err),
                         HK_UNSUPPORTED);
        assert_non_null(strstr(err.message, "outbox was changed"));
        assert_count("outbox_relay", 0);
        store_kind->sql("ALTER TABLE outbox ALTER xid SET DEFAULT pg_current_xact_id()");
        store_kind->sql("ALTER SEQUENCE outbox_id_seq CACHE 1");
        suite_acquire(store);
        store_kind->sql("DELETE FROM outbox_relay");
        suite_close(store);
    }
}

/* ---- writers who do everything that transactions can ---- */

enum {
    WRITERS = 8,
    KEYS = 12,
    SECONDS = 3
};

/* ---- what is read ahead ---- */

#define MANY                                                                                                 \
    "INSERT INTO outbox (destination, event_type, payload) SELECT 'a', 'Made', 'p' FROM generate_series(1, 40)"

static struct hk_scan few(int64_t id)
{
    return (struct hk_scan){.after_id = id, .limit = 4};
}

/* Whoever takes fewer than he was shown comes back to the rest, and to nothing else. */
static void what_is_read_ahead_is_served_from_where_one_likes(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    store_kind->sql(MANY);
    relay_poll(store);
    assert_string_equal(relay_scan(store, few(HK_FIRST_ID)), "1,2,3,4+");
    assert_string_equal(relay_scan(store, few(4)), "5,6,7,8+");
    assert_string_equal(relay_scan(store, few(6)), "7,8,9,10+");
    assert_string_equal(relay_scan(store, few(10)), "11,12+"); /* the page ends */
    assert_string_equal(relay_scan(store, few(1)), "2,3,4,5+");
    assert_string_equal(relay_scan(store, few(38)), "39,40");
    assert_string_equal(relay_scan(store, few(40)), "");
    struct hk_scan one = few(20);
    one.destination = "a";
    assert_string_equal(relay_scan(store, one), "21,22,23,24+");
    one.destination = "b";
    assert_string_equal(relay_scan(store, one), "");
    suite_close(store);
}

/* A row that comes to light among those that were read ahead is not late: nobody was shown what lies behind it. */
static void what_comes_to_light_among_them_is_seen_in_its_place(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    PGconn *slow = pg_connect(NULL);
    store_kind->sql("INSERT INTO outbox (destination, event_type, payload) SELECT 'a', 'Made', 'p' "
                    "FROM generate_series(1, 9)");
    pg_exec(slow, "BEGIN; " INSERT); /* 10 */
    store_kind->sql(MANY);
    relay_poll(store);
    assert_string_equal(relay_scan(store, few(HK_FIRST_ID)), "1,2,3,4+");
    assert_string_equal(relay_scan(store, few(4)), "5,6,7,8+"); /* and up to 12 in memory */
    pg_exec(slow, "COMMIT");
    expect_late(store, "");
    assert_string_equal(relay_scan(store, few(8)), "9,10,11,12+");
    PQfinish(slow);
    suite_close(store);
}

/* Claims what was read ahead. How many messages; "payload" of the last in `out`. */
static size_t claim_ahead(struct hk_store *store, int64_t lane, int64_t lo, int64_t hi, char out[8])
{
    struct hk_want wants[8];
    size_t n = 0;
    for (int64_t id = lo; id <= hi; id++)
        wants[n++] = (struct hk_want){HK_FROM_OUTBOX, id, true};
    const struct hk_exchange x = {.lane = lane, .lease_ms = 30000, .wants = wants, .n_wants = n};
    const struct hk_exchanged *done = NULL;
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_OK);
    if (done->n_messages)
        assert_true(hk_str_copy(out, 8, done->messages[done->n_messages - 1].payload));
    return done->n_messages;
}

static void what_is_gone_is_not_claimed_from_memory(void **state)
{
    (void)state;
    char payload[8] = "";
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql(MANY "; UPDATE outbox SET payload = 'eight' WHERE id = 8");
    relay_poll(store);
    relay_scan(store, few(HK_FIRST_ID));
    relay_scan(store, few(4));
    relay_scan(store, few(8));
    store_kind->sql("DELETE FROM outbox WHERE id IN (1, 3, 4, 5)");
    assert_int_equal(claim_ahead(store, lane, 1, 4, payload), 1);
    assert_string_equal(payload, "p");
    assert_int_equal(claim_ahead(store, lane, 5, 5, payload), 0);
    assert_int_equal(claim_ahead(store, lane, 6, 8, payload), 3);
    assert_string_equal(payload, "eight");
    assert_int_equal(claim_ahead(store, lane, 6, 9, payload), 1); /* the others are in hand */
    assert_string_equal(store_kind->value("SELECT array_agg(i ORDER BY i) FROM outbox_claim, unnest(ids) i"),
                        "{2,6,7,8,9}");
    suite_close(store);
}

/* A large one among small ones, binary ones, and one without a message_id: as if it had been read for the claim. */
static void messages_at_hand_are_whole(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_exchanged *done = NULL;
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, payload, encoding, headers, message_key, "
        "correlation_id, traceparent, idempotency_key, policy, content_type, max_attempts, created_at) VALUES "
        "('m', 'a', 'Made', 'aGk=', 'base64', '{\"h\":1}', 'k', 'c', 't', 'i', 'p', 'x/y', 3, "
        "'1970-01-01 00:00:01+00'), "
        "('n', 'a', 'Made', repeat('x', 1024), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, now()), "
        "('o', 'a', 'Made', repeat('x', 1025), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, now())");
    relay_poll(store);
    for (int64_t last = 2; last <= 3; last++) { /* all of them at hand; not all */
        relay_scan(store, all);
        struct hk_want wants[3];
        for (int64_t i = 0; i < last; i++)
            wants[i] = (struct hk_want){HK_FROM_OUTBOX, i + 1, true};
        const struct hk_exchange x = {
            .lane = lane, .lease_ms = 30000, .wants = wants, .n_wants = (size_t)last};
        assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_OK);
        assert_int_equal(done->n_messages, last);
        const struct hk_message *m = &done->messages[0];
        const struct hk_str texts[] = {m->message_id,  m->destination,     m->event_type, m->payload,
                                       m->encoding,    m->headers,         m->key,        m->correlation_id,
                                       m->traceparent, m->idempotency_key, m->policy,     m->content_type};
        static const char *const want[] = {"m", "a", "Made", "hi", "base64", "{\"h\":1}",
                                           "k", "c", "t",    "i",  "p",      "x/y"};
        for (size_t i = 0; i < COUNT(want); i++)
            assert_true(hk_str_eq(texts[i], hk_str_of(want[i])));
        assert_true(m->max_attempts == 3 && m->created_ms == 1000 && m->life == 1 && !m->malformed);
        assert_int_equal(done->messages[1].payload.len, 1024);
        if (last == 3)
            assert_int_equal(done->messages[2].payload.len, 1025);
        struct hk_settle back[3];
        for (int64_t i = 0; i < last; i++)
            back[i] = suite_settle(done->claim, HK_FROM_OUTBOX, i + 1, HK_SETTLE_RELEASE);
        const struct hk_exchange y = {
            .lane = lane, .lease_ms = 30000, .settles = back, .n_settles = (size_t)last};
        assert_int_equal(store_kind->ops->exchange(store, &y, &done, NULL), HK_OK);
    }
    suite_close(store);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The row, and a note of it that lives and dies with it. */
static void write_row(PGconn *conn, int key)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "WITH o AS (INSERT INTO outbox (destination, event_type, message_key, payload) "
             "VALUES ('a', 'Made', 'k%d', 'p') RETURNING id) INSERT INTO written SELECT id FROM o",
             key);
    pg_exec(conn, sql);
}

static void pause_up_to(struct hk_rng *rng, uint64_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)hk_rng_upto(rng, us) * 1000}, NULL);
}

/* Who writes a key holds its lock until he ends: only then do its messages have an order. */
static void write_once(PGconn *conn, struct hk_rng *rng, int me, int count)
{
    char sql[200];
    int key = (int)hk_rng_upto(rng, KEYS - 1);
    pg_exec(conn, "BEGIN");
    if (hk_rng_upto(rng, 1))
        pg_exec(conn, "SELECT pg_current_xact_id()");
    snprintf(sql, sizeof sql, "SELECT pg_advisory_xact_lock(%d)", key);
    pg_exec(conn, sql);
    write_row(conn, key);
    uint64_t dice = hk_rng_upto(rng, 9);
    if (dice < 3) { /* subtransactions, one of them undone */
        pg_exec(conn, "SAVEPOINT s");
        write_row(conn, key);
        pg_exec(conn, dice ? "ROLLBACK TO s" : "RELEASE s");
        write_row(conn, key);
    }
    pause_up_to(rng, 20000);
    if (dice == 9) {
        pg_exec(conn, "ROLLBACK");
    } else if (dice == 8) {
        snprintf(sql, sizeof sql, "PREPARE TRANSACTION 'w%d-%d'", me, count);
        pg_exec(conn, sql); /* keeps its locks */
        pause_up_to(rng, 20000);
        snprintf(sql, sizeof sql, "%s PREPARED 'w%d-%d'", hk_rng_upto(rng, 3) ? "COMMIT" : "ROLLBACK", me,
                 count);
        pg_exec(conn, sql);
    } else {
        pg_exec(conn, "COMMIT");
    }
}

static void write_on(int me)
{
    struct hk_rng rng;
    hk_rng_seed(&rng, 77, (uint64_t)me);
    PGconn *conn = pg_connect(NULL);
    double end = now_s() + SECONDS;
    for (int count = 0; now_s() < end; count++)
        write_once(conn, &rng, me, count);
    PQfinish(conn);
}

static pid_t start_writer(int me)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        write_on(me);
        _exit(0);
    }
    return pid;
}

static size_t reap(pid_t *pids, size_t n)
{
    size_t running = 0;
    for (size_t i = 0; i < n; i++) {
        int status = 0;
        if (pids[i] && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
            assert_int_equal(status, 0);
            pids[i] = 0;
        }
        running += pids[i] != 0;
    }
    return running;
}

static void check_delivered(void)
{
    assert_count("outbox", 0);
    assert_count("(SELECT id FROM written EXCEPT SELECT original_outbox_id FROM outbox_sent) left_behind", 0);
    assert_count("(SELECT original_outbox_id FROM outbox_sent EXCEPT SELECT id FROM written) invented", 0);
    assert_count("(SELECT 1 FROM outbox_sent GROUP BY original_outbox_id HAVING count(*) > 1) twice", 0);
}

static size_t turn_all(struct relay *relays, size_t n, int pages)
{
    size_t open = 0;
    for (size_t i = 0; i < n; i++) {
        if (!relays[i].store)
            continue;
        assert_true(relay_turn(&relays[i], pages));
        open++;
    }
    return open;
}

static void finish_all(struct relay *relays, size_t n)
{
    for (int i = 0; i < 150 && suite_number("SELECT count(*) FROM outbox") > 0; i++) {
        turn_all(relays, n, 20);
        for (size_t k = 0; k < n; k++)
            if (relays[k].store)
                relay_settle(&relays[k]);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static PGconn *start_writers(pid_t *pids)
{
    store_kind->sql("CREATE TABLE written (id bigint)");
    PGconn *holder = pg_connect(NULL); /* open all the while, with a row */
    pg_exec(holder, "BEGIN");
    write_row(holder, KEYS);
    for (int i = 0; i < WRITERS; i++)
        pids[i] = start_writer(i);
    return holder;
}

static void hostile_writers_are_read_to_the_last_row_in_order(void **state)
{
    (void)state;
    pid_t pids[WRITERS];
    struct relay relay;
    PGconn *holder = start_writers(pids);
    relay_open(&relay, &(struct hk_store_options){.keep_sent = true});
    while (reap(pids, WRITERS))
        assert_true(relay_turn(&relay, 3));
    pg_exec(holder, "COMMIT");
    PQfinish(holder);
    finish_all(&relay, 1);
    print_message("# %zu delivered, %zu of them late\n", relay.n_log, relay.n_late);
    check_delivered();
    relay_check(&relay, 1);
    assert_int_equal(relay.n_errors, 0);
    assert_true(relay.n_late > 0); /* or this test shows nothing */
    relay_close(&relay);
}

/* Two stay, and a third comes and goes: shards are handed over all the while. */
static void relays_that_come_and_go_leave_nothing_behind_and_keep_the_order(void **state)
{
    (void)state;

    enum {
        STAYING = 2,
        COMING = 6
    };

    pid_t pids[WRITERS];
    static struct relay relays[STAYING + COMING];
    static struct relay gone[STAYING + COMING]; /* their logs */
    PGconn *holder = start_writers(pids);
    for (size_t i = 0; i < STAYING; i++)
        relay_open(&relays[i], &(struct hk_store_options){.keep_sent = true});
    size_t guest = STAYING;
    double next_s = now_s() + 0.1; /* when one comes or goes; a look round takes a quarter of a second */
    while (reap(pids, WRITERS)) {
        turn_all(relays, STAYING + COMING, 2);
        if (now_s() < next_s || guest == STAYING + COMING)
            continue;
        if (!relays[guest].store) {
            relay_open(&relays[guest], &(struct hk_store_options){.keep_sent = true});
            next_s = now_s() + 0.8;
            continue;
        }
        relay_leave(&relays[guest]);
        gone[guest] = relays[guest]; /* the log stays */
        store_kind->ops->close(relays[guest].store);
        relays[guest++] = (struct relay){0};
        next_s = now_s() + 0.1;
    }
    pg_exec(holder, "COMMIT");
    PQfinish(holder);
    finish_all(relays, STAYING + COMING);
    check_delivered();
    size_t n = 0, resets = 0, guests = 0;
    for (size_t i = 0; i < STAYING + COMING; i++) {
        if (relays[i].store)
            gone[i] = relays[i];
        n += gone[i].n_log;
        resets += gone[i].n_resets;
        guests += i >= STAYING && gone[i].n_log > 0;
        assert_int_equal(gone[i].n_errors, 0);
    }
    print_message("# %zu delivered, %zu resets, %zu guests had something to do\n", n, resets, guests);
    relay_check(gone, STAYING + COMING);
    for (size_t i = 0; i < STAYING + COMING; i++) {
        if (relays[i].store)
            store_kind->ops->close(relays[i].store);
        free(gone[i].log);
        relays[i] = gone[i] = (struct relay){0};
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_late_commit_is_told_and_shown_once),
        TEST(what_lies_ahead_of_all_scans_is_not_late),
        TEST(no_scan_sees_past_the_last_poll),
        TEST(a_late_scan_comes_in_pages_and_is_begun_again_when_it_was_not_ended),
        TEST(ids_that_the_sequence_does_not_know_are_told),
        TEST(what_is_in_our_own_hands_is_not_shown_late),
        TEST(savepoints_belong_to_their_transaction),
        TEST(prepared_transactions_count_when_they_end),
        TEST(what_is_rolled_back_is_never_seen),
        TEST(a_stranger_in_an_open_transaction_holds_nobody_up),
        TEST(rows_from_the_future_are_seen),
        TEST(a_renewal_is_no_news),
        TEST(a_new_connection_begins_anew),
        TEST(a_changed_table_is_refused),
        TEST(what_is_read_ahead_is_served_from_where_one_likes),
        TEST(what_comes_to_light_among_them_is_seen_in_its_place),
        TEST(what_is_gone_is_not_claimed_from_memory),
        TEST(messages_at_hand_are_whole),
        TEST(hostile_writers_are_read_to_the_last_row_in_order),
        TEST(relays_that_come_and_go_leave_nothing_behind_and_keep_the_order),
    };
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    return cmocka_run_group_tests_name("PostgreSQL reader", tests, NULL, NULL);
}
