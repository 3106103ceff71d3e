/* SPDX-License-Identifier: Apache-2.0 */
/* Being woken on PostgreSQL: the flag, the trigger, the listener, each by itself and against strangers. That messages arrive
 * whatever becomes of them is shown by tests/e2e/notify.py. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <hikyaku/alloc.h>

#include "base/buf.h"
#include "pg_bouncer.h"
#include "pg_kind.h"
#include "store/pg/listen.h"
#include "store/pg/pg.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define INSERT     "INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'b', 'c')"
#define ARMED      "SELECT is_called AND last_value % 1000000 = 0 FROM outbox_wake"

enum {
    PATIENCE_MS = 60000
};

static PGconn *app, *ear; /* an application; somebody who counts notifications */
static struct hk_err err;

/* ---- */

static void set_notify(const char *url, enum hk_store_notify notify)
{
    struct hk_store_inited done = {0};
    enum hk_code rc = hk_store_postgres.init(url, &(struct hk_store_init){.notify = notify}, &done, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static void listen_to(PGconn *conn, const char *table)
{
    char sql[200];
    snprintf(sql, sizeof sql, "DO $$BEGIN EXECUTE 'LISTEN hikyaku_' || '%s'::regclass::oid; END$$", table);
    pg_exec(conn, sql);
}

static int setup(void **state)
{
    (void)state;
    if (!pg_make_database())
        return -1;
    app = pg_connect(NULL);
    ear = pg_connect(NULL);
    set_notify(pg_url(NULL, ""), HK_NOTIFY_ON);
    listen_to(ear, "outbox");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    PQfinish(app);
    PQfinish(ear);
    pg_kind.drop();
    return 0;
}

static void doze(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* Notifications since the last call: all that were sent by what was committed before. */
static size_t count_heard(void)
{
    size_t n = 0;
    (void)pg_ask(ear, "SELECT 1");
    for (PGnotify *note; (note = PQnotifies(ear)) != NULL; n++)
        PQfreemem(note);
    return n;
}

/* ---- the flag ---- */

static struct hk_store *open_store(void)
{
    struct hk_store *store = NULL;
    int64_t lane = 0, now_ms = 0;
    assert_int_equal(hk_store_postgres.open(pg_url(NULL, ""), &(struct hk_store_options){0}, &store, &err),
                     HK_OK);
    assert_int_equal(hk_store_postgres.acquire(store, "r", "b", 30000, &lane, &now_ms, &err), HK_OK);
    return store;
}

static void poll_it(struct hk_store *store, struct hk_store_hint hint)
{
    const struct hk_poll *poll = NULL;
    hk_store_postgres.hint(store, &hint);
    enum hk_code rc = hk_store_postgres.poll(store, &poll, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static bool is_armed(void)
{
    return strcmp(pg_ask(app, ARMED), "t") == 0;
}

/* It was armed shortly before, perhaps, and then it takes a moment. */
static void arm(struct hk_store *store)
{
    for (int i = 0; i < 1000 && !is_armed(); i++) {
        doze(2);
        poll_it(store, (struct hk_store_hint){.woken = true, .hungry = true});
    }
    assert_true(is_armed());
}

static void one_insert_of_many_wakes_a_relay_that_has_nothing_to_do(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    for (int round = 0; round < 3; round++) {
        arm(store);
        for (int i = 0; i < 50; i++)
            pg_exec(app, INSERT);
        assert_int_equal(count_heard(), 1);
        assert_false(is_armed());
    }
    hk_store_postgres.close(store);
}

static void a_busy_relay_is_not_told(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    for (int i = 0; i < 50; i++) {
        pg_exec(app, INSERT);
        poll_it(store, (struct hk_store_hint){.woken = i % 2});
        doze(i % 10 == 0 ? 25 : 0);
    }
    assert_false(is_armed());
    assert_int_equal(count_heard(), 0);
    hk_store_postgres.close(store);
}

/* Neither arming nor disarming takes a transaction number: polls see by them whether something was committed. */
static void the_flag_is_no_matter_of_transactions(void **state)
{
    (void)state;
    char before[100];
    struct hk_store *store = open_store();
    arm(store);
    snprintf(before, sizeof before, "%s", pg_ask(app, "SELECT pg_current_snapshot()"));
    for (int i = 0; i < 5; i++) {
        pg_exec(app, "DO $$BEGIN PERFORM nextval('outbox_wake'); END$$");
        arm(store);
    }
    assert_string_equal(pg_ask(app, "SELECT pg_current_snapshot()"), before);
    hk_store_postgres.close(store);
}

static void what_is_rolled_back_wakes_nobody_and_the_flag_is_armed_again(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    arm(store);
    pg_exec(app, "BEGIN; " INSERT "; ROLLBACK");
    assert_int_equal(count_heard(), 0);
    assert_false(is_armed());
    arm(store);
    pg_exec(app, "BEGIN; SAVEPOINT s; " INSERT "; ROLLBACK TO s; COMMIT");
    assert_int_equal(count_heard(), 0);
    arm(store);
    pg_exec(app, INSERT);
    assert_int_equal(count_heard(), 1);
    hk_store_postgres.close(store);
}

/* Nobody waits for the one who has the turn, and his turn comes with his commit. */
static void a_late_commit_wakes_when_it_comes_and_others_do_not_wait(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    PGconn *late = pg_connect(NULL);
    arm(store);
    pg_exec(late, "BEGIN; " INSERT);
    pg_exec(app, "SET lock_timeout = '10s'; " INSERT);
    assert_int_equal(count_heard(), 0);
    pg_exec(late, "COMMIT");
    assert_int_equal(count_heard(), 1);
    pg_exec(late, "BEGIN; " INSERT);
    arm(store); /* meanwhile */
    pg_exec(app, INSERT);
    assert_int_equal(count_heard(), 1);
    PQfinish(late);
    hk_store_postgres.close(store);
}

static void after_a_crash_the_flag_is_down_and_can_be_armed(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    const struct hk_poll *poll = NULL;
    arm(store);
    PQfinish(app);
    PQfinish(ear);
    pg_server_crash();
    pg_server_resume();
    app = pg_connect(NULL);
    ear = pg_connect(NULL);
    listen_to(ear, "outbox");
    assert_false(is_armed());
    pg_exec(app, INSERT);
    assert_int_equal(count_heard(), 0);
    for (int i = 0; i < 100 && hk_store_postgres.poll(store, &poll, &err) != HK_OK; i++)
        doze(20);
    arm(store);
    pg_exec(app, INSERT);
    assert_int_equal(count_heard(), 1);
    hk_store_postgres.close(store);
}

/* ---- the trigger ---- */

static void nothing_that_happens_to_the_flag_stops_an_insert_or_a_poll(void **state)
{
    (void)state;
    static const char *const hurts[] = {
        "DROP SEQUENCE outbox_wake",
        "DROP SEQUENCE IF EXISTS outbox_wake; CREATE TABLE outbox_wake (last_value bigint)",
        "DROP TABLE outbox_wake; CREATE SEQUENCE outbox_wake MAXVALUE 3",
        "DROP TRIGGER outbox_wake_up ON outbox",
    };
    struct hk_store *store = open_store();
    arm(store);
    for (size_t i = 0; i < sizeof hurts / sizeof hurts[0]; i++) {
        pg_exec(app, hurts[i]);
        for (int k = 0; k < 3; k++) {
            pg_exec(app, INSERT);
            poll_it(store, (struct hk_store_hint){.woken = true, .hungry = true});
        }
    }
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM outbox"), "12");
    hk_store_postgres.close(store);
}

static void applications_need_no_right_to_wake_and_cannot_arm(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    pg_exec(app, "DO $$BEGIN CREATE ROLE hk_writer LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END$$; "
                 "GRANT INSERT (destination, event_type, payload) ON outbox TO hk_writer");
    PGconn *writer = pg_connect("hk_writer");
    arm(store);
    /* names of its own in front of ours, which run with the owner's rights */
    pg_exec(app, "CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO hk_writer");
    pg_exec(
        writer,
        "CREATE FUNCTION evil.f(bigint, integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''ours''; END'; "
        "CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.f); "
        "CREATE SEQUENCE evil.outbox_wake; SET search_path = evil, public, pg_catalog; " INSERT);
    assert_int_equal(count_heard(), 1);
    assert_string_equal(pg_refusal(writer, "SELECT setval('public.outbox_wake', 5000000)"), "42501");
    assert_string_equal(pg_refusal(writer, "CREATE TEMP TABLE t (a int); CREATE TRIGGER t AFTER INSERT ON t "
                                           "EXECUTE FUNCTION public.outbox_wake_up()"),
                        "42501");
    PQfinish(writer);
    pg_exec(app, "DROP OWNED BY hk_writer; DROP ROLE hk_writer");
    hk_store_postgres.close(store);
}

static void who_prepares_transactions_can_opt_out(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    arm(store);
    pg_exec(app, "BEGIN; " INSERT);
    assert_string_equal(pg_refusal(app, "PREPARE TRANSACTION 'x'"), "0A000");
    arm(store);
    pg_exec(app, "SET hikyaku.notify = off; BEGIN; " INSERT "; PREPARE TRANSACTION 'x'");
    assert_true(is_armed());
    pg_exec(app, "COMMIT PREPARED 'x'");
    pg_exec(app, "RESET hikyaku.notify; " INSERT);
    assert_int_equal(count_heard(), 1);
    hk_store_postgres.close(store);
}

static void init_may_be_repeated_printed_and_undone(void **state)
{
    (void)state;
    static const char parts[] =
        "SELECT (SELECT count(*) FROM pg_trigger WHERE tgname = 'outbox_wake_up') + "
        "(SELECT count(*) FROM pg_proc WHERE proname = 'outbox_wake_up') + "
        "(SELECT count(*) FROM pg_class WHERE relname = 'outbox_wake' AND relpersistence = 'u')";
    struct hk_store_inited done = {0};
    struct hk_buf sql;
    hk_buf_init(&sql, 1 << 20);
    assert_string_equal(pg_ask(app, parts), "3");
    set_notify(pg_url(NULL, ""), HK_NOTIFY_ON);
    assert_string_equal(pg_ask(app, parts), "3");
    set_notify(pg_url(NULL, ""), HK_NOTIFY_AS_IT_IS);
    assert_string_equal(pg_ask(app, parts), "3");
    set_notify(pg_url(NULL, ""), HK_NOTIFY_OFF);
    assert_string_equal(pg_ask(app, parts), "0");
    set_notify(pg_url(NULL, ""), HK_NOTIFY_OFF);
    struct hk_store_init how = {.notify = HK_NOTIFY_ON, .print = &sql};
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &how, &done, &err), HK_OK);
    assert_true(done.two_phase); /* the tests' server is set up so */
    assert_string_equal(pg_ask(app, parts), "0");
    pg_exec(app, hk_buf_cstr(&sql));
    assert_string_equal(pg_ask(app, parts), "3");
    hk_buf_fini(&sql);
}

/* A new database, printed as a whole. */
static void what_is_printed_makes_a_schema_with_its_trigger(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_buf sql;
    hk_buf_init(&sql, 1 << 20);
    struct hk_store_init how = {.notify = HK_NOTIFY_ON, .print = &sql};
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, "&schema=Box&prefix=p_"), &how, &done, &err), HK_OK);
    pg_exec(app, hk_buf_cstr(&sql));
    pg_exec(app, "INSERT INTO \"Box\".p_outbox (event_type) VALUES ('a')");
    hk_buf_fini(&sql);
}

static void init_leaves_a_stranger_s_sequence_alone(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    set_notify(pg_url(NULL, ""), HK_NOTIFY_OFF);
    pg_exec(app, "DO $$BEGIN CREATE ROLE hk_owner LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END$$; "
                 "CREATE SCHEMA theirs; GRANT ALL ON SCHEMA theirs TO hk_owner");
    set_notify(pg_url("hk_owner", "&schema=theirs"), HK_NOTIFY_ON);
    set_notify(pg_url("hk_owner", "&schema=theirs"), HK_NOTIFY_OFF);
    pg_exec(app, "CREATE SEQUENCE theirs.outbox_wake");
    enum hk_code rc = hk_store_postgres.init(pg_url("hk_owner", "&schema=theirs"),
                                             &(struct hk_store_init){.notify = HK_NOTIFY_ON}, &done, &err);
    assert_int_equal(rc, HK_UNAVAILABLE);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM pg_trigger WHERE tgname = 'outbox_wake_up'"), "0");
    pg_exec(app, "DROP OWNED BY hk_owner CASCADE; DROP SCHEMA theirs CASCADE; DROP ROLE hk_owner");
}

/* ---- the listener ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t wakes;

static void count_wake(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    wakes++;
    pthread_mutex_unlock(&lock);
}

static size_t count_wakes(void)
{
    pthread_mutex_lock(&lock);
    size_t n = wakes;
    pthread_mutex_unlock(&lock);
    return n;
}

static struct hk_listener *start_listener(const char *url)
{
    struct hk_listener *l = NULL;
    const struct hk_pg_listen_options options = {
        .url = url, .wake = count_wake, .look_ms = 100, .backoff_min_ms = 10, .backoff_max_ms = 100};
    assert_int_equal(hk_pg_listen_start(&options, &l, &err), HK_OK);
    return l;
}

static void wait_until(struct hk_listener *l, enum hk_listening wanted, const char *why_has)
{
    char why[HK_LISTENING_WHY_MAX] = "";
    for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
        if (hk_pg_listening(l, why) == wanted && strstr(why, why_has))
            return;
        doze(10);
    }
    fail_msg("still: %s", why);
}

static void wait_woken(size_t before)
{
    for (int ms = 0; ms < PATIENCE_MS && count_wakes() == before; ms += 5)
        doze(5);
    assert_true(count_wakes() > before);
}

static void insert_armed(struct hk_store *store)
{
    arm(store);
    size_t before = count_wakes();
    pg_exec(app, INSERT);
    wait_woken(before);
}

static void a_listener_hears_an_insert(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    struct hk_listener *l = start_listener(pg_url(NULL, ""));
    wait_until(l, HK_LISTENING_YES, "");
    for (int i = 0; i < 5; i++)
        insert_armed(store);
    hk_pg_unlisten(l);
    hk_store_postgres.close(store);
}

#define LISTENERS                                                                                            \
    "FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = " HK_PG_LISTENERS                       \
    " AND objid = 'outbox'::regclass"

static void a_listener_whose_session_is_ended_listens_again(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    struct hk_listener *l = start_listener(pg_url(NULL, ""));
    for (int i = 0; i < 3; i++) {
        wait_until(l, HK_LISTENING_YES, "");
        size_t before = count_wakes();
        pg_exec(app, "SELECT pg_terminate_backend(pid) " LISTENERS);
        wait_woken(before); /* its state has changed */
        wait_until(l, HK_LISTENING_YES, "");
        insert_armed(store);
    }
    hk_pg_unlisten(l);
    for (int ms = 0; ms < PATIENCE_MS && strcmp(pg_ask(app, "SELECT count(*) " LISTENERS), "0") != 0;
         ms += 10)
        doze(10);
    assert_string_equal(pg_ask(app, "SELECT count(*) " LISTENERS), "0");
    hk_store_postgres.close(store);
}

static void a_listener_outlives_the_server(void **state)
{
    (void)state;
    struct hk_listener *l = start_listener(pg_url(NULL, ""));
    wait_until(l, HK_LISTENING_YES, "");
    PQfinish(app);
    PQfinish(ear);
    app = ear = NULL;
    pg_server_stop();
    wait_until(l, HK_LISTENING_NO, "");
    pg_server_resume();
    wait_until(l, HK_LISTENING_YES, "");
    hk_pg_unlisten(l);
}

static void strangers_may_say_what_they_like(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    struct hk_listener *l = start_listener(pg_url(NULL, ""));
    wait_until(l, HK_LISTENING_YES, "");
    size_t before = count_wakes();
    pg_exec(app, "DO $$BEGIN FOR i IN 1..2000 LOOP PERFORM pg_notify('hikyaku_' || 'outbox'::regclass::oid, "
                 "i || repeat(E'\\x01%s''\"\\\\; DROP TABLE outbox; \\n', 200)); END LOOP; END$$");
    wait_woken(before);
    wait_until(l, HK_LISTENING_YES, "");
    (void)count_heard();
    insert_armed(store);
    assert_string_equal(pg_ask(app, "SELECT floor(pg_notification_queue_usage() * 10)"), "0");
    hk_pg_unlisten(l);
    hk_store_postgres.close(store);
}

static void a_listener_comes_and_goes_with_the_trigger(void **state)
{
    (void)state;
    struct hk_store *store = open_store();
    set_notify(pg_url(NULL, ""), HK_NOTIFY_OFF);
    struct hk_listener *l = start_listener(pg_url(NULL, ""));
    wait_until(l, HK_LISTENING_NO, "hikyaku init --notify");
    set_notify(pg_url(NULL, ""), HK_NOTIFY_ON);
    wait_until(l, HK_LISTENING_YES, "");
    insert_armed(store);
    pg_exec(app, "ALTER TABLE outbox DISABLE TRIGGER outbox_wake_up");
    wait_until(l, HK_LISTENING_NO, "disabled");
    pg_exec(app, "ALTER TABLE outbox ENABLE TRIGGER outbox_wake_up");
    wait_until(l, HK_LISTENING_YES, "");
    pg_exec(app, "DROP TRIGGER outbox_wake_up ON outbox");
    wait_until(l, HK_LISTENING_NO, "hikyaku init --notify");
    hk_pg_unlisten(l);
    hk_store_postgres.close(store);
}

static void two_outboxes_do_not_wake_each_other(void **state)
{
    (void)state;
    static const char *const places[] = {"&schema=Box&prefix=p_", "&prefix=q_"};
    set_notify(pg_url(NULL, places[0]), HK_NOTIFY_ON);
    set_notify(pg_url(NULL, places[1]), HK_NOTIFY_ON);
    struct hk_listener *l = start_listener(pg_url(NULL, places[0]));
    wait_until(l, HK_LISTENING_YES, "");
    PGconn *other = pg_connect(NULL);
    listen_to(other, "q_outbox");
    pg_exec(app, "SELECT setval('q_outbox_wake', 7000000), setval('\"Box\".p_outbox_wake', 7000000)");
    pg_exec(app, "INSERT INTO q_outbox (event_type) VALUES ('a')");
    (void)pg_ask(other, "SELECT 1");
    PGnotify *note = PQnotifies(other);
    assert_non_null(note);
    PQfreemem(note);
    assert_string_equal(pg_ask(app, "SELECT last_value FROM \"Box\".p_outbox_wake"), "7000000");
    size_t before = count_wakes();
    pg_exec(app, "INSERT INTO \"Box\".p_outbox (event_type) VALUES ('a')");
    wait_woken(before);
    (void)pg_ask(other, "SELECT 1");
    assert_null(PQnotifies(other));
    assert_int_equal(count_heard(), 0);
    PQfinish(other);
    hk_pg_unlisten(l);
}

/* Its rights come with those of a relay, whichever is first. */
static void a_relay_s_role_needs_the_flag(void **state)
{
    (void)state;
    const struct hk_store_roles roles = {.relay = "hk_r", .notify = true};
    struct hk_buf sql;
    hk_buf_init(&sql, 1 << 16);
    assert_int_equal(hk_store_postgres.grants(pg_url(NULL, ""), &roles, &sql, &err), HK_OK);
    pg_exec(app, "DO $$BEGIN CREATE ROLE hk_r LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END$$");
    struct hk_listener *l = start_listener(pg_url("hk_r", ""));
    wait_until(l, HK_LISTENING_NO, "--print-grants --notify");
    pg_exec(app, hk_buf_cstr(&sql));
    wait_until(l, HK_LISTENING_YES, "");
    set_notify(pg_url(NULL, ""), HK_NOTIFY_OFF);
    wait_until(l, HK_LISTENING_NO, "no trigger");
    set_notify(pg_url(NULL, ""), HK_NOTIFY_ON);
    wait_until(l, HK_LISTENING_YES, "");
    hk_pg_unlisten(l);
    hk_buf_fini(&sql);
    pg_exec(app, "DROP OWNED BY hk_r; DROP ROLE hk_r");
}

/* It connects to somebody who never answers: whoever ends the listener does not wait for that. */
static void a_listener_that_nobody_answers_ends_at_once(void **state)
{
    (void)state;
    char url[100];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(url, sizeof url, "postgres://x@127.0.0.1:%u/x", (unsigned)ntohs(at.sin_port));
    struct hk_listener *l = start_listener(url);
    int conn = accept(fd, NULL, NULL);
    assert_true(conn >= 0);
    char why[HK_LISTENING_WHY_MAX];
    assert_int_equal(hk_pg_listening(l, why), HK_LISTENING_NOT_YET);
    hk_pg_unlisten(l);
    (void)close(conn);
    (void)close(fd);
    hk_pg_unlisten(NULL);
}

static void behind_a_pooler_nobody_listens_and_nobody_is_told(void **state)
{
    (void)state;
    if (!bouncer_is_here())
        skip();
    assert_int_equal(bouncer_start(NULL), 0);
    struct hk_listener *l = start_listener(bouncer_url(""));
    wait_until(l, HK_LISTENING_NO, "pooler");
    struct hk_store *store = NULL;
    int64_t lane = 0, now_ms = 0;
    assert_int_equal(hk_store_postgres.open(bouncer_url(""), &(struct hk_store_options){0}, &store, &err),
                     HK_OK);
    assert_int_equal(hk_store_postgres.acquire(store, "r", "b", 30000, &lane, &now_ms, &err), HK_OK);
    for (int i = 0; i < 5; i++) {
        poll_it(store, (struct hk_store_hint){.woken = true, .hungry = true});
        pg_exec(app, INSERT);
    }
    assert_false(is_armed());
    assert_int_equal(count_heard(), 0);
    hk_store_postgres.close(store);
    hk_pg_unlisten(l);
    assert_int_equal(bouncer_end(NULL), 0);
}

/* ---- memory ---- */

static size_t allocations, fail_at;

static void *fail_resize(void *arg, void *ptr, size_t size)
{
    (void)arg;
    return ++allocations == fail_at ? NULL : realloc(ptr, size);
}

static void fail_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void no_memory_is_said_and_leaves_nothing(void **state)
{
    (void)state;
    const struct hk_allocator allocator = {fail_resize, fail_release, NULL};
    const struct hk_pg_listen_options options = {.url = pg_url(NULL, ""),
                                                 .wake = count_wake,
                                                 .look_ms = 100,
                                                 .backoff_min_ms = 10,
                                                 .backoff_max_ms = 100};
    struct hk_listener *l = NULL;
    struct hk_store_inited done;
    enum hk_code rc = HK_NOMEM;
    hk_allocator_set(&allocator);
    for (fail_at = 1; rc != HK_OK && fail_at < 50; fail_at++) {
        allocations = 0;
        rc = hk_pg_listen_start(&options, &l, &err);
        assert_true(rc == HK_OK || (rc == HK_NOMEM && !l));
    }
    hk_pg_unlisten(l);
    assert_in_range(fail_at, 4, 49);
    rc = HK_NOMEM;
    for (fail_at = 1; rc != HK_OK && fail_at < 200; fail_at++) {
        allocations = 0;
        rc = hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){.notify = HK_NOTIFY_OFF}, &done,
                                    &err);
        assert_true(rc == HK_OK || rc == HK_NOMEM);
    }
    hk_allocator_set(NULL);
    assert_int_equal(rc, HK_OK);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM pg_class WHERE relname = 'outbox_wake'"), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_insert_of_many_wakes_a_relay_that_has_nothing_to_do),
        TEST(a_busy_relay_is_not_told),
        TEST(the_flag_is_no_matter_of_transactions),
        TEST(what_is_rolled_back_wakes_nobody_and_the_flag_is_armed_again),
        TEST(a_late_commit_wakes_when_it_comes_and_others_do_not_wait),
        TEST(after_a_crash_the_flag_is_down_and_can_be_armed),
        TEST(nothing_that_happens_to_the_flag_stops_an_insert_or_a_poll),
        TEST(applications_need_no_right_to_wake_and_cannot_arm),
        TEST(who_prepares_transactions_can_opt_out),
        TEST(init_may_be_repeated_printed_and_undone),
        TEST(what_is_printed_makes_a_schema_with_its_trigger),
        TEST(init_leaves_a_stranger_s_sequence_alone),
        TEST(a_listener_hears_an_insert),
        TEST(a_listener_whose_session_is_ended_listens_again),
        TEST(a_listener_outlives_the_server),
        TEST(strangers_may_say_what_they_like),
        TEST(a_listener_comes_and_goes_with_the_trigger),
        TEST(two_outboxes_do_not_wake_each_other),
        TEST(a_relay_s_role_needs_the_flag),
        TEST(a_listener_that_nobody_answers_ends_at_once),
        TEST(behind_a_pooler_nobody_listens_and_nobody_is_told),
        TEST(no_memory_is_said_and_leaves_nothing),
    };
    const int *ended_early = pg_server_start();
    return ended_early ? *ended_early
                       : cmocka_run_group_tests_name("being woken on PostgreSQL", tests, NULL, NULL);
}
