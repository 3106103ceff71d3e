/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to PostgreSQL: pipelines, values, errors and what they mean, lost connections, no memory. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hikyaku/alloc.h>

#include "base/str.h"
#include "pg_kind.h"
#include "store/pg/pg.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- statements of our own ---- */

enum {
    ONE = 0,
    ECHO,
    ECHO_ARRAYS,
    ECHO_BYTES,
    ADD,
    COUNT_ROWS,
    RAISE,
    WAIT,
    SETTINGS,
    NO_TABLE,
    NO_RIGHT,
    LOCK,
    BROKEN,
    ISOLATION,
    N_STATEMENTS
};

static const char *sql_of(unsigned id)
{
    static const char *const texts[N_STATEMENTS] = {
        [ONE] = "SELECT 1",
        [ECHO] = "SELECT $1::bigint, $2::boolean, $3::text, $4::text",
        [ECHO_ARRAYS] =
            "SELECT array_to_string($1::bigint[], ' '), array_to_string($2::text[], '|', 'is null'), "
            "cardinality($2::text[])",
        [ECHO_BYTES] = "SELECT $1::bytea, length($1::bytea)",
        [ADD] = "INSERT INTO @things (name) VALUES ($1)",
        [COUNT_ROWS] = "SELECT count(*) FROM @things",
        [RAISE] = "SELECT @raise($1)",
        [WAIT] = "SELECT pg_sleep($1)",
        [SETTINGS] = "SELECT current_setting($1)",
        [NO_TABLE] = "SELECT * FROM @nowhere",
        [NO_RIGHT] = "SELECT * FROM pg_authid",
        [LOCK] = "SELECT * FROM @things WHERE id = $1 FOR UPDATE",
        [BROKEN] = "SELEKT",
        [ISOLATION] = "SELECT current_setting('transaction_isolation') || ' ' || "
                      "current_setting('transaction_read_only')",
    };
    return texts[id];
}

static const char *const guards[] = {"enable_seqscan", "off", NULL};
static const struct hk_pg_table table = {sql_of, N_STATEMENTS, guards, NULL};

static struct hk_pg pg;
static struct hk_err err;
static PGconn *app;

static int setup(void **state)
{
    (void)state;
    if (!pg_make_database())
        return -1;
    app = pg_connect(NULL);
    pg_exec(app,
            "CREATE TABLE things (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL);"
            "CREATE FUNCTION raise(state text) RETURNS void LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = E'no\\nway \\x1b[2J'; END$$");
    err = (struct hk_err){0};
    enum hk_code rc = hk_pg_open(&pg, pg_url(NULL, "&password=gEhe1m"), &table, 0, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    return rc == HK_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    hk_pg_close(&pg);
    PQfinish(app);
    pg_kind.drop();
    return 0;
}

static enum hk_code end_call(void)
{
    enum hk_code rc = hk_pg_end(&pg, "try it", &err);
    assert_null(strstr(err.message, "gEhe1m"));
    return rc;
}

/* One statement in a call of its own, its results not looked at. */
static enum hk_code call(unsigned id, bool writes, const char *argument)
{
    struct hk_pg_args a = {0};
    hk_pg_call(&pg);
    if (argument)
        hk_pg_arg_text(&pg, &a, hk_str_of(argument));
    PQclear(hk_pg_query(&pg, writes, id, &a));
    return end_call();
}

static void assert_works(void)
{
    enum hk_code rc = call(ONE, false, NULL);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

/* ---- pipelines ---- */

static void add_name(const char *name)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_text(&pg, &a, hk_str_of(name));
    hk_pg_add(&pg, ADD, &a);
}

static void statements_are_answered_in_their_order_and_commit_together(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_true(hk_pg_call(&pg));
        hk_pg_begin(&pg, true);
        for (int i = 0; i < 200; i++) { /* more than what is kept room for at first */
            add_name("x");
            hk_pg_add(&pg, COUNT_ROWS, NULL);
        }
        hk_pg_send(&pg);
        for (int i = 0; i < 200; i++) {
            PGresult *res = hk_pg_result(&pg);
            assert_int_equal(hk_pg_touched(res), 1);
            PQclear(res);
            res = hk_pg_result(&pg);
            assert_int_equal(hk_pg_i64(res, 0, 0), round * 200 + i + 1);
            PQclear(res);
        }
        assert_string_equal(pg_ask(app, "SELECT pg_sleep(0.01)"), "");
        assert_int_equal(end_call(), HK_OK);
        assert_true(pg.committed && !pg.commit_unknown);
    }
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "600");
    assert_int_equal(pg.connects, 1);
}

static void an_error_undoes_all_and_the_connection_goes_on(void **state)
{
    (void)state;
    struct hk_pg_args a = {0};
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, true);
    add_name("gone");
    hk_pg_arg_text(&pg, &a, hk_str_of("22012"));
    hk_pg_add(&pg, RAISE, &a);
    hk_pg_add(&pg, COUNT_ROWS, NULL); /* prepared for the first time behind the error: it is not */
    hk_pg_send(&pg);
    PGresult *res = hk_pg_result(&pg);
    assert_non_null(res);
    PQclear(res);
    assert_null(hk_pg_result(&pg));
    assert_null(hk_pg_result(&pg));
    assert_false(hk_pg_ok(&pg));
    assert_int_equal(end_call(), HK_IO);
    assert_non_null(strstr(err.message, "cannot try it: no way [2J (SQLSTATE 22012)"));
    assert_true(pg.aborted && !pg.committed && !pg.commit_unknown);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "0");
    assert_int_equal(call(COUNT_ROWS, false, NULL), HK_OK);
    assert_int_equal(call(ADD, true, "kept"), HK_OK);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "1");
    assert_int_equal(pg.connects, 1);
}

static void a_statement_that_cannot_be_prepared_is_an_error_each_time(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call(BROKEN, false, NULL), HK_IO);
        assert_non_null(strstr(err.message, "42601"));
    }
    assert_works();
    assert_int_equal(pg.connects, 1);
}

static void an_error_at_commit_is_an_error(void **state)
{
    (void)state;
    pg_exec(app, "ALTER TABLE things ADD UNIQUE (name) DEFERRABLE INITIALLY DEFERRED");
    assert_int_equal(call(ADD, true, "a"), HK_OK);
    assert_int_equal(call(ADD, true, "a"), HK_IO);
    assert_non_null(strstr(err.message, "23505"));
    assert_true(pg.aborted && !pg.committed && !pg.commit_unknown);
    assert_works();
    assert_int_equal(pg.connects, 1);
}

static void a_failure_of_our_own_before_sending_leaves_nothing_behind(void **state)
{
    (void)state;
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, true);
    add_name("never");
    hk_pg_fail(&pg, HK_CONFLICT, "changed our mind");
    add_name("nor this");
    hk_pg_send(&pg);
    assert_null(hk_pg_result(&pg));
    assert_int_equal(end_call(), HK_CONFLICT);
    assert_false(pg.commit_sent || pg.commit_unknown);
    assert_works();
    assert_int_equal(call(ADD, true, "prepared after all"), HK_OK);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "1");
    assert_int_equal(pg.connects, 1);
}

static void a_failure_of_our_own_after_sending_does_not_hide_the_commit(void **state)
{
    (void)state;
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, true);
    add_name("there");
    hk_pg_send(&pg);
    hk_pg_fail(&pg, HK_NOMEM, "no memory for the answer");
    assert_int_equal(end_call(), HK_NOMEM);
    assert_true(pg.committed);
    assert_works();
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "1");
    assert_int_equal(pg.connects, 1);
}

static void results_that_nobody_asks_for_do_no_harm(void **state)
{
    (void)state;
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, true);
    add_name("a");
    add_name("b");
    hk_pg_send(&pg);
    PQclear(hk_pg_result(&pg));
    hk_pg_begin(&pg, true); /* a second transaction in the same call */
    add_name("c");
    hk_pg_send(&pg);
    assert_int_equal(end_call(), HK_OK);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "3");
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, true);
    add_name("d");
    hk_pg_send(&pg);
    assert_works(); /* the call before was never ended */
}

static void a_large_pipeline_with_large_answers_does_not_block(void **state)
{
    (void)state;

    enum {
        MANY = 400,
        SIZE = 20000
    };

    static char big[SIZE + 1];
    memset(big, 'b', SIZE);
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, false);
    for (int i = 0; i < MANY; i++) {
        struct hk_pg_args a = {0};
        hk_pg_arg_i64(&pg, &a, i);
        hk_pg_arg_bool(&pg, &a, true);
        hk_pg_arg_text(&pg, &a, hk_str_of(big));
        hk_pg_arg_null(&pg, &a);
        hk_pg_add(&pg, ECHO, &a);
    }
    hk_pg_send(&pg);
    for (int i = 0; i < MANY; i++) {
        PGresult *res = hk_pg_result(&pg);
        assert_int_equal(hk_pg_i64(res, 0, 0), i);
        assert_int_equal(PQgetlength(res, 0, 2), SIZE);
        PQclear(res);
    }
    assert_int_equal(end_call(), HK_OK);
}

/* A process that is stopped while it collects must not hold locks, nor a transaction. */
static void nothing_goes_out_before_everything_is_ready(void **state)
{
    (void)state;
    static char big[20000];
    char sql[200];
    memset(big, 'b', sizeof big - 1);
    snprintf(sql, sizeof sql, "SELECT state || ' ' || query FROM pg_stat_activity WHERE pid = %d",
             PQbackendPID(pg.conn));
    assert_works();
    assert_string_equal(pg_ask(app, sql), "idle SELECT 1");
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, true);
    for (int i = 0; i < 100; i++)
        add_name(big);
    assert_string_equal(pg_ask(app, "SELECT pg_sleep(0.1)"), "");
    assert_string_equal(pg_ask(app, sql), "idle SELECT 1");
    hk_pg_send(&pg);
    assert_int_equal(end_call(), HK_OK);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "100");
}

static const char *isolation(bool writes)
{
    static char text[64];
    hk_pg_begin(&pg, writes);
    hk_pg_add(&pg, ISOLATION, NULL);
    hk_pg_send(&pg);
    PGresult *res = hk_pg_result(&pg);
    assert_non_null(res);
    snprintf(text, sizeof text, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    return text;
}

static void reading_is_read_only_and_one_snapshot(void **state)
{
    (void)state;
    assert_true(hk_pg_call(&pg));
    assert_string_equal(isolation(false), "repeatable read on");
    assert_string_equal(isolation(true), "read committed off");
    assert_int_equal(end_call(), HK_OK);
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, false);
    add_name("x");
    hk_pg_send(&pg);
    assert_int_equal(end_call(), HK_UNAVAILABLE);
    assert_works();
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "0");
}

static void a_script_is_one_transaction_and_knows_names(void **state)
{
    (void)state;
    hk_pg_call(&pg);
    PGresult *res =
        hk_pg_script(&pg, "INSERT INTO @things (name) VALUES ('a'); SELECT 7; SELECT count(*) FROM @things");
    assert_int_equal(hk_pg_i64(res, 0, 0), 1);
    PQclear(res);
    assert_null(hk_pg_script(&pg, "INSERT INTO @things (name) VALUES ('b'); SELECT 1/0"));
    assert_null(hk_pg_script(&pg, "SELECT 1"));
    assert_int_equal(end_call(), HK_IO);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "1");
    assert_works();
    hk_pg_call(&pg);
    PQclear(hk_pg_script(&pg, "BEGIN; INSERT INTO @things (name) VALUES ('b')"));
    assert_null(hk_pg_script(&pg, "SELECT 1/0")); /* the open transaction is rolled back */
    assert_int_equal(end_call(), HK_IO);
    assert_int_equal(call(ADD, true, "c"), HK_OK);
    assert_string_equal(pg_ask(app, "SELECT string_agg(name, '') FROM things"), "ac");
    assert_int_equal(pg.connects, 1);
}

/* ---- values ---- */

static void values_go_there_and_back(void **state)
{
    (void)state;
    static const int64_t numbers[] = {0, 1, -1, INT64_MAX, INT64_MIN};
    static const char *const texts[] = {
        "", "x", "it's", "\"\\", "$1", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x93\xae", "NULL"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hk_pg_args a = {0};
        assert_true(hk_pg_call(&pg));
        hk_pg_arg_i64(&pg, &a, numbers[i % COUNT(numbers)]);
        hk_pg_arg_bool(&pg, &a, i % 2);
        hk_pg_arg_text(&pg, &a, hk_str_of(texts[i]));
        hk_pg_arg_text_or_null(&pg, &a, hk_str_of(texts[i]));
        PGresult *res = hk_pg_query(&pg, false, ECHO, &a);
        assert_int_equal(hk_pg_i64(res, 0, 0), numbers[i % COUNT(numbers)]);
        assert_int_equal(hk_pg_bool(res, 0, 1), i % 2);
        assert_true(hk_str_eq(hk_pg_text(&pg, res, 0, 2), hk_str_of(texts[i])));
        assert_int_equal(hk_pg_null(res, 0, 3), i == 0);
        assert_true(hk_str_eq(hk_pg_text(&pg, res, 0, 3), hk_str_of(texts[i])));
        PQclear(res);
        assert_int_equal(end_call(), HK_OK);
    }
}

static void what_text_cannot_hold_is_replaced(void **state)
{
    (void)state;
    const struct hk_str bad = {"a\0b\xff\xc3(\xed\xa0\x80", 9};
    const struct hk_str plain = {"a\0b", 3};
    struct hk_pg_args a = {0};
    assert_true(hk_pg_call(&pg));
    hk_pg_arg_u64(&pg, &a, UINT64_MAX);
    hk_pg_arg_bool(&pg, &a, true);
    hk_pg_arg_text(&pg, &a, bad);
    hk_pg_arg_text(&pg, &a, plain);
    PGresult *res = hk_pg_query(&pg, false, ECHO, &a);
    assert_int_equal(hk_pg_i64(res, 0, 0), INT64_MAX);
#define FFFD "\xef\xbf\xbd"
    assert_string_equal(PQgetvalue(res, 0, 2), "a" FFFD "b" FFFD FFFD "(" FFFD FFFD FFFD);
    assert_string_equal(PQgetvalue(res, 0, 3), "a" FFFD "b");
    PQclear(res);
    assert_int_equal(end_call(), HK_OK);
}

static void arrays_hold_any_text(void **state)
{
    (void)state;
    const int64_t numbers[] = {INT64_MIN, 0, INT64_MAX};
    const struct hk_str texts[] = {{"", 0},   {"NULL", 4},   {"a,b", 3},
                                   {"{}", 2}, {"\"\\\"", 3}, {"x\0\xff", 3}};
    struct hk_pg_args a = {0};
    assert_true(hk_pg_call(&pg));
    hk_pg_arg_i64s(&pg, &a, numbers, COUNT(numbers));
    hk_pg_arg_texts(&pg, &a, texts, COUNT(texts));
    PGresult *res = hk_pg_query(&pg, false, ECHO_ARRAYS, &a);
    assert_non_null(res);
    assert_string_equal(PQgetvalue(res, 0, 0), "-9223372036854775808 0 9223372036854775807");
    assert_string_equal(PQgetvalue(res, 0, 1), "|NULL|a,b|{}|\"\\\"|x" FFFD FFFD);
    PQclear(res);
    assert_int_equal(end_call(), HK_OK);

    a = (struct hk_pg_args){0};
    assert_true(hk_pg_call(&pg));
    hk_pg_arg_i64s(&pg, &a, NULL, 0);
    hk_pg_arg_texts(&pg, &a, NULL, 0);
    res = hk_pg_query(&pg, false, ECHO_ARRAYS, &a);
    assert_int_equal(hk_pg_i64(res, 0, 2), 0);
    assert_false(hk_pg_null(res, 0, 0));
    PQclear(res);
    assert_int_equal(end_call(), HK_OK);
}

static void bytes_stay_as_they_are(void **state)
{
    (void)state;
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    for (size_t n = 0; n <= sizeof all; n += 128) {
        struct hk_pg_args a = {0};
        assert_true(hk_pg_call(&pg));
        hk_pg_arg_bytes(&pg, &a, (struct hk_str){all, n});
        PGresult *res = hk_pg_query(&pg, false, ECHO_BYTES, &a);
        assert_int_equal(hk_pg_i64(res, 0, 1), n);
        assert_true(hk_str_eq(hk_pg_bytes(&pg, res, 0, 0), (struct hk_str){all, n}));
        PQclear(res);
        assert_int_equal(end_call(), HK_OK);
    }
}

static void results_live_until_the_next_call_but_one(void **state)
{
    (void)state;
    struct hk_pg_args a = {0};
    assert_true(hk_pg_call(&pg));
    hk_pg_arg_text(&pg, &a, hk_str_of("server_version"));
    PGresult *res = hk_pg_query(&pg, false, SETTINGS, &a);
    struct hk_str version = hk_pg_text(&pg, res, 0, 0);
    PQclear(res);
    assert_int_equal(end_call(), HK_OK);
    assert_works();
    assert_string_equal(version.ptr, pg_ask(app, "SHOW server_version"));
}

static void time_never_goes_back_and_never_stands_still(void **state)
{
    (void)state;
    struct hk_pg clock = {0};
    assert_int_equal(hk_pg_now(&clock, 100000), 100000);
    assert_int_equal(hk_pg_now(&clock, 100100), 100100);
    assert_int_equal(hk_pg_now(&clock, 50000), 100100);
    assert_int_equal(hk_pg_now(&clock, 51000), 100600);
    assert_int_equal(hk_pg_now(&clock, 40000), 100600);
    assert_int_equal(hk_pg_now(&clock, 42000), 101600);
    assert_int_equal(hk_pg_now(&clock, 200000), 200000);
}

/* ---- settings ---- */

static void assert_setting(const char *name, const char *expected)
{
    struct hk_pg_args a = {0};
    hk_pg_call(&pg);
    hk_pg_arg_text(&pg, &a, hk_str_of(name));
    PGresult *res = hk_pg_query(&pg, false, SETTINGS, &a);
    NOTE_IF(res && strcmp(PQgetvalue(res, 0, 0), expected) != 0, "%s\n", name);
    assert_non_null(res);
    assert_string_equal(PQgetvalue(res, 0, 0), expected);
    PQclear(res);
    assert_int_equal(end_call(), HK_OK);
}

static void sessions_do_not_depend_on_what_the_role_has_set(void **state)
{
    (void)state;
    hk_pg_close(&pg);
    pg_exec(
        app,
        "DROP ROLE IF EXISTS odd; CREATE ROLE odd LOGIN;"
        "ALTER ROLE odd SET bytea_output = 'escape'; ALTER ROLE odd SET datestyle = 'German';"
        "ALTER ROLE odd SET timezone = 'Asia/Tokyo'; ALTER ROLE odd SET synchronous_commit = off;"
        "ALTER ROLE odd SET statement_timeout = '30s'; ALTER ROLE odd SET lock_timeout = '30s';"
        "ALTER ROLE odd SET standard_conforming_strings = off; ALTER ROLE odd SET client_encoding = 'LATIN1';"
        "ALTER ROLE odd SET default_transaction_isolation = 'serializable'");
    assert_int_equal(hk_pg_open(&pg, pg_url("odd", ""), &table, 1234, &err), HK_OK);
    assert_setting("bytea_output", "hex");
    assert_setting("datestyle", "ISO, DMY");
    assert_setting("timezone", "UTC");
    assert_setting("synchronous_commit", "on");
    assert_setting("lock_timeout", "1234ms");
    assert_setting("statement_timeout", "6234ms");
    assert_setting("standard_conforming_strings", "on");
    assert_setting("client_encoding", "UTF8");
    assert_setting("enable_seqscan", "off");
    assert_setting("application_name", "hikyaku");
    assert_setting("transaction_isolation", "read committed");
    assert_false(pg.pooled);
    hk_pg_close(&pg);

    pg_exec(app, "ALTER ROLE odd RESET ALL; ALTER ROLE odd SET synchronous_commit = local");
    assert_int_equal(hk_pg_open(&pg, pg_url("odd", "&application_name=mine"), &table, 0, &err), HK_OK);
    assert_setting("synchronous_commit", "local"); /* what is not off is the server's business */
    assert_setting("application_name", "mine");
}

static void a_database_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    struct hk_pg other;
    char url[500];
    pg_exec(app, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    snprintf(url, sizeof url, "postgres:///latin?host=%s&user=postgres", pg_server_dir());
    assert_int_equal(hk_pg_open(&other, url, &table, 0, &err), HK_UNSUPPORTED);
    assert_non_null(strstr(err.message, "UTF8"));
    pg_exec(app, "DROP DATABASE latin");
}

/* ---- errors ---- */

static void states_of_the_server_have_their_meaning(void **state)
{
    (void)state;

    static const struct {
        const char *sqlstate;
        enum hk_code code;
        const char *advice;
        bool keeps; /* the connection */
    } rows[] = {
        {"40001", HK_BUSY, "try again", true},
        {"40P01", HK_BUSY, "try again", true},
        {"55P03", HK_BUSY, "lock", true},
        {"57014", HK_BUSY, "time-out", true},
        {"53100", HK_UNAVAILABLE, "room", true},
        {"53200", HK_UNAVAILABLE, "room", true},
        {"53300", HK_UNAVAILABLE, "room", true},
        {"58030", HK_UNAVAILABLE, "log", true},
        {"25006", HK_UNAVAILABLE, "read-only", false},
        {"57P01", HK_UNAVAILABLE, "try again", false},
        {"57P03", HK_UNAVAILABLE, "try again", false},
        {"42P01", HK_NOTFOUND, "hikyaku init", true},
        {"3F000", HK_NOTFOUND, "hikyaku init", true},
        {"42703", HK_NOTFOUND, "give it its name back", true},
        {"42501", HK_UNAVAILABLE, "--print-grants", true},
        {"23503", HK_CONFLICT, "gone", true},
        {"XX001", HK_IO, "damaged", true},
        {"XX002", HK_IO, "REINDEX", true},
        {"54000", HK_TOOBIG, "more", true},
        {"P0001", HK_IO, "doctor", true},
        {"XX000", HK_IO, "doctor", true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t connects = pg.connects;
        err = (struct hk_err){0};
        enum hk_code rc = call(RAISE, true, rows[i].sqlstate);
        NOTE_IF(rc != rows[i].code, "%s: %s\n", rows[i].sqlstate, err.message);
        assert_int_equal(rc, rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].sqlstate));
        assert_non_null(strstr(err.message, rows[i].advice));
        assert_non_null(strstr(err.message, "postgres://postgres@"));
        assert_true(pg.aborted && !pg.commit_unknown);
        assert_works();
        assert_int_equal(pg.connects, connects + !rows[i].keeps);
    }
}

static void missing_tables_and_rights_say_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(call(NO_TABLE, false, NULL), HK_NOTFOUND);
    assert_non_null(strstr(err.message, "hikyaku init"));
    pg_exec(app, "DROP ROLE IF EXISTS nobody_much; CREATE ROLE nobody_much LOGIN");
    hk_pg_close(&pg);
    assert_int_equal(hk_pg_open(&pg, pg_url("nobody_much", ""), &table, 0, &err), HK_OK);
    assert_int_equal(call(NO_RIGHT, false, NULL), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "--print-grants"));
}

static void a_connection_that_fails_says_what_to_check(void **state)
{
    (void)state;

    const struct {
        const char *url, *advice;
    } cases[] = {
        {pg_url("nosuch", ""), "user"},
        {pg_url(NULL, "&dbname=nosuch"), "database's name"},
        {"postgres://?service=nosuch", "PGSERVICEFILE"},
        {"postgres://127.0.0.1:1/x", "server runs"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_pg other;
        assert_int_equal(hk_pg_open(&other, cases[i].url, &table, 0, &err), HK_UNAVAILABLE);
        const char *advice = strrchr(err.message, ':');
        NOTE_IF(!strstr(advice, cases[i].advice), "%s\n", err.message);
        assert_non_null(strstr(advice, cases[i].advice));
    }
}

static void a_lock_and_a_slow_statement_are_waited_for_only_so_long(void **state)
{
    (void)state;
    static const char *const hasty[] = {"statement_timeout", "400", NULL};
    static const struct hk_pg_table hasty_table = {sql_of, N_STATEMENTS, hasty, NULL};
    hk_pg_close(&pg);
    assert_int_equal(hk_pg_open(&pg, pg_url(NULL, ""), &hasty_table, 100, &err), HK_OK);
    pg_exec(app, "INSERT INTO things (name) VALUES ('a')");
    pg_exec(app, "BEGIN; SELECT * FROM things FOR UPDATE");
    assert_int_equal(call(LOCK, true, "1"), HK_BUSY);
    assert_non_null(strstr(err.message, "55P03"));
    pg_exec(app, "ROLLBACK");
    assert_int_equal(call(LOCK, true, "1"), HK_OK);
    assert_int_equal(call(WAIT, true, "30"), HK_BUSY); /* statement_timeout */
    assert_non_null(strstr(err.message, "57014"));
    assert_int_equal(pg.connects, 1);
}

/* ---- lost connections ---- */

static void rest_ms(int ms)
{
    struct timespec ts = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&ts, NULL);
}

static int backend(void)
{
    return PQbackendPID(pg.conn);
}

static void kill_backend(int pid)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 10000)", pid);
    assert_string_equal(pg_ask(app, sql), "t");
}

/* In a child, as soon as our backend sleeps: whatever `sql` does. */
static pid_t while_it_sleeps(void (*act)(int pid))
{
    int pid = backend();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0)
        return child;
    char info[300], sql[200];
    snprintf(info, sizeof info, "host=%s port=5432 user=postgres dbname=postgres", pg_server_dir());
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND wait_event = 'PgSleep'", pid);
    PGconn *conn = PQconnectdb(info);
    for (int i = 0; i < 1000; i++) {
        PGresult *res = PQexec(conn, sql);
        bool sleeps = PQresultStatus(res) == PGRES_TUPLES_OK && PQgetvalue(res, 0, 0)[0] == '1';
        PQclear(res);
        if (sleeps)
            break;
        rest_ms(5);
    }
    act(pid);
    PQfinish(conn);
    _exit(0);
}

static void ended(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void terminate(int pid)
{
    kill(pid, SIGTERM);
}

static void stop(int pid)
{
    kill(pid, SIGSTOP);
}

static void a_connection_that_ended_while_idle_is_replaced_unnoticed(void **state)
{
    (void)state;
    assert_works();
    for (uint64_t i = 1; i < 4; i++) {
        kill_backend(backend());
        assert_works();
        assert_int_equal(pg.connects, i + 1);
    }
    pg_server_stop();
    PQfinish(app);
    pg_server_resume();
    assert_works();
    assert_int_equal(pg.connects, 5);
    app = pg_connect(NULL);
}

static void a_session_that_is_ended_before_commit_is_known_to_be_undone(void **state)
{
    (void)state;
    pid_t child = while_it_sleeps(terminate);
    assert_int_equal(call(WAIT, true, "20"), HK_UNAVAILABLE);
    ended(child);
    assert_non_null(strstr(err.message, "57P01"));
    assert_false(pg.commit_unknown || pg.committed);
    assert_works();
    assert_int_equal(pg.connects, 2);
}

/* By then it may be committed already: the server says nothing of it. */
static void a_session_that_is_ended_in_commit_leaves_the_outcome_unknown(void **state)
{
    (void)state;
    pg_exec(app, "CREATE FUNCTION dream() RETURNS trigger LANGUAGE plpgsql AS "
                 "$$BEGIN PERFORM pg_sleep(20); RETURN NULL; END$$;"
                 "CREATE CONSTRAINT TRIGGER dream AFTER INSERT ON things DEFERRABLE INITIALLY DEFERRED "
                 "FOR EACH ROW EXECUTE FUNCTION dream()");
    pid_t child = while_it_sleeps(terminate);
    assert_int_equal(call(ADD, true, "x"), HK_UNAVAILABLE);
    ended(child);
    assert_non_null(strstr(err.message, "57P01"));
    assert_true(pg.commit_unknown && !pg.aborted && !pg.committed);
    assert_works();
}

/* The server's words of its sudden end may be lost, so that all is possible. */
static void a_server_that_crashes_leaves_the_outcome_unknown(void **state)
{
    (void)state;
    struct hk_pg_args a = {0};
    assert_true(hk_pg_call(&pg));
    hk_pg_begin(&pg, true);
    hk_pg_arg_text(&pg, &a, hk_str_of("20"));
    hk_pg_add(&pg, WAIT, &a);
    hk_pg_send(&pg);
    pg_server_crash();
    assert_null(hk_pg_result(&pg));
    assert_int_equal(end_call(), HK_UNAVAILABLE);
    assert_true(pg.commit_unknown);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call(ONE, false, NULL), HK_UNAVAILABLE);
        assert_true(pg.commit_unknown); /* there was no transaction since */
        assert_null(pg.conn);
    }
    PQfinish(app);
    pg_server_resume();
    app = pg_connect(NULL);
    assert_works();
    assert_false(pg.commit_unknown);
    assert_int_equal(pg.connects, 2);
}

static void a_server_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    int pid = backend();
    pg.call_ms = 1500;
    pid_t child = while_it_sleeps(stop);
    enum hk_code rc = call(WAIT, true, "1");
    ended(child);
    kill(pid, SIGCONT);
    assert_int_equal(rc, HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "does not answer"));
    assert_true(pg.commit_unknown);
    pg.call_ms = 15000;
    assert_works();
    assert_int_equal(pg.connects, 2);
}

static void a_server_that_became_read_only_is_left_until_it_is_not(void **state)
{
    (void)state;
    assert_int_equal(call(ADD, true, "a"), HK_OK);
    pg_exec(app, "ALTER SYSTEM SET default_transaction_read_only = on");
    pg_exec(app, "SELECT pg_reload_conf()");
    for (int i = 0; i < 500 && call(ADD, true, "b") == HK_OK; i++)
        rest_ms(10);
    assert_int_equal(err.code, HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "25006"));
    assert_null(pg.conn);
    assert_int_equal(call(ADD, true, "c"), HK_UNAVAILABLE); /* nobody to connect to that takes writes */
    assert_non_null(strstr(err.message, "session is read-only"));
    pg_exec(app, "SET default_transaction_read_only = off");
    pg_exec(app, "ALTER SYSTEM RESET default_transaction_read_only");
    pg_exec(app, "SELECT pg_reload_conf()");
    for (int i = 0; i < 500 && call(ADD, true, "d") != HK_OK; i++)
        rest_ms(10);
    assert_int_equal(call(ADD, true, "e"), HK_OK);
}

static void of_several_hosts_the_primary_is_found_and_found_again(void **state)
{
    (void)state;
    char url[500];
    const char *dir = pg_server_dir();
    PQfinish(app);
    hk_pg_close(&pg);
    pg_server_add_standby();
    snprintf(url, sizeof url, "postgres:///%s?host=%s,%s&port=5433,5432&user=postgres", pg_database(), dir,
             dir);
    assert_int_equal(hk_pg_open(&pg, url, &table, 0, &err), HK_OK);
    assert_string_equal(PQport(pg.conn), "5432"); /* although the standby stands before it */
    assert_int_equal(call(ADD, true, "before"), HK_OK);

    pg_server_crash();
    assert_int_equal(call(ADD, true, "nobody takes writes"), HK_UNAVAILABLE);
    snprintf(url, sizeof url, "postgres:///%s?host=%s&port=5433&user=postgres", pg_database(), dir);
    PGconn *standby = PQconnectdb(url);
    assert_string_equal(pg_ask(standby, "SELECT pg_promote()"), "t");
    assert_int_equal(call(ADD, true, "after"), HK_OK);
    assert_string_equal(PQport(pg.conn), "5433");
    assert_int_equal(pg.connects, 2);
    assert_string_equal(pg_ask(standby, "SELECT string_agg(name, ' ') FROM things"), "after");
    PQfinish(standby);
    hk_pg_close(&pg);
    pg_server_drop_standby();
    pg_server_resume();
    app = pg_connect(NULL);
    assert_int_equal(hk_pg_open(&pg, pg_url(NULL, ""), &table, 0, &err), HK_OK);
}

static void refused_connections_say_why(void **state)
{
    (void)state;
    struct hk_pg other;
    char url[500];

    static const struct {
        const char *format, *words;
    } rows[] = {
        {"postgres:///nowhere?host=%s&user=postgres", "does not exist"},
        {"postgres:///postgres?host=%s&user=nobody_at_all", "does not exist"},
        {"postgres:///postgres?host=%s/nowhere&user=postgres", "No such file"},
        {"postgres:///postgres?host=%s&port=1&user=postgres&password=gEhe1m", "No such file"},
        {"postgres://gEhe1m:gEhe1m@127.0.0.1:1/postgres?options=-csearch_path%%3D%s", "refused"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(url, sizeof url, rows[i].format, pg_server_dir());
#pragma GCC diagnostic pop
        assert_int_equal(hk_pg_open(&other, url, &table, 0, &err), HK_UNAVAILABLE);
        NOTE_IF(!strstr(err.message, rows[i].words), "%s\n", err.message);
        assert_non_null(strstr(err.message, rows[i].words));
        assert_null(strstr(err.message, ":gEhe1m"));
        assert_null(strchr(err.message, '\n'));
    }
}

static void statements_that_vanish_betray_a_pooler(void **state)
{
    (void)state;
    assert_works();
    hk_pg_call(&pg);
    PQclear(hk_pg_script(&pg, "DEALLOCATE ALL"));
    assert_int_equal(end_call(), HK_OK);
    assert_int_equal(call(ONE, false, NULL), HK_BUSY);
    assert_works();
    assert_true(pg.pooled && pg.never_prepare);
    assert_setting("lock_timeout", "5s");
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM pg_prepared_statements"), "0");
}

/* ---- no memory ---- */

static unsigned allocations, fail_at;

static void *fail_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return ++allocations == fail_at ? NULL : realloc(ptr, bytes);
}

static void fail_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static enum hk_code everything(struct hk_pg *p)
{
    const struct hk_str texts[] = {{"a", 1}, {"b", 1}};
    const int64_t numbers[] = {1, 2};
    struct hk_pg_args a = {0};
    enum hk_code rc = hk_pg_open(p, pg_url(NULL, "&schema=public"), &table, 0, &err);
    if (rc != HK_OK)
        return rc;
    hk_pg_call(p);
    PQclear(hk_pg_script(p, "SELECT 1"));
    hk_pg_arg_i64s(p, &a, numbers, COUNT(numbers));
    hk_pg_arg_texts(p, &a, texts, COUNT(texts));
    hk_pg_begin(p, true);
    hk_pg_add(p, ECHO_ARRAYS, &a);
    a.n = 0;
    hk_pg_arg_text(p, &a, hk_str_of("name"));
    hk_pg_add(p, ADD, &a);
    hk_pg_send(p);
    PGresult *res = hk_pg_result(p);
    hk_pg_text(p, res, 0, 0);
    PQclear(res);
    rc = hk_pg_end(p, "try it", &err);
    assert_int_equal(rc == HK_OK, hk_pg_ok(p));
    hk_pg_close(p);
    return rc;
}

static void no_memory_is_said_and_nothing_leaks(void **state)
{
    (void)state;
    const struct hk_allocator allocator = {fail_resize, fail_release, NULL};
    struct hk_pg other;
    enum hk_code rc = HK_NOMEM;
    hk_allocator_set(&allocator);
    for (fail_at = 1; rc != HK_OK && fail_at < 200; fail_at++) {
        allocations = 0;
        rc = everything(&other);
        NOTE_IF(rc != HK_OK && rc != HK_NOMEM, "%u: %s\n", fail_at, err.message);
        assert_true(rc == HK_OK || rc == HK_NOMEM);
    }
    hk_allocator_set(NULL);
    assert_int_equal(rc, HK_OK);
    assert_true(fail_at > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(statements_are_answered_in_their_order_and_commit_together),
        TEST(an_error_undoes_all_and_the_connection_goes_on),
        TEST(a_statement_that_cannot_be_prepared_is_an_error_each_time),
        TEST(an_error_at_commit_is_an_error),
        TEST(a_failure_of_our_own_before_sending_leaves_nothing_behind),
        TEST(a_failure_of_our_own_after_sending_does_not_hide_the_commit),
        TEST(results_that_nobody_asks_for_do_no_harm),
        TEST(a_large_pipeline_with_large_answers_does_not_block),
        TEST(nothing_goes_out_before_everything_is_ready),
        TEST(reading_is_read_only_and_one_snapshot),
        TEST(a_script_is_one_transaction_and_knows_names),
        TEST(values_go_there_and_back),
        TEST(what_text_cannot_hold_is_replaced),
        TEST(arrays_hold_any_text),
        TEST(bytes_stay_as_they_are),
        TEST(results_live_until_the_next_call_but_one),
        TEST(time_never_goes_back_and_never_stands_still),
        TEST(sessions_do_not_depend_on_what_the_role_has_set),
        TEST(a_database_that_is_not_utf8_is_refused),
        TEST(states_of_the_server_have_their_meaning),
        TEST(missing_tables_and_rights_say_what_to_do),
        TEST(a_connection_that_fails_says_what_to_check),
        TEST(a_lock_and_a_slow_statement_are_waited_for_only_so_long),
        TEST(a_connection_that_ended_while_idle_is_replaced_unnoticed),
        TEST(a_session_that_is_ended_before_commit_is_known_to_be_undone),
        TEST(a_session_that_is_ended_in_commit_leaves_the_outcome_unknown),
        TEST(a_server_that_crashes_leaves_the_outcome_unknown),
        TEST(a_server_that_does_not_answer_is_given_up),
        TEST(a_server_that_became_read_only_is_left_until_it_is_not),
        TEST(of_several_hosts_the_primary_is_found_and_found_again),
        TEST(refused_connections_say_why),
        TEST(statements_that_vanish_betray_a_pooler),
        TEST(no_memory_is_said_and_nothing_leaks),
    };
    const int *ended_early = pg_server_start();
    return ended_early ? *ended_early
                       : cmocka_run_group_tests_name("PostgreSQL connection", tests, NULL, NULL);
}
