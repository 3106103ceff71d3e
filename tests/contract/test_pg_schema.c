/* SPDX-License-Identifier: Apache-2.0 */
/* `hikyaku init` on PostgreSQL: repeated, interrupted, in company, and in databases that belong to somebody else. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hikyaku/alloc.h>

#include "base/buf.h"
#include "pg_kind.h"
#include "store/pg/pg.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static PGconn *app;
static struct hk_err err;
static struct hk_store_inited done;

static int setup(void **state)
{
    (void)state;
    if (!pg_make_database())
        return -1;
    app = pg_connect(NULL);
    err = (struct hk_err){0};
    done = (struct hk_store_inited){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    PQfinish(app);
    pg_kind.drop();
    return 0;
}

static enum hk_code init(const char *user, const char *more)
{
    return hk_store_postgres.init(pg_url(user, more), &(struct hk_store_init){0}, &done, &err);
}

static void assert_init(const char *more, uint32_t from)
{
    enum hk_code rc = init(NULL, more);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(done.from, from);
    assert_int_equal(done.to, hk_pg_schema_wanted());
}

static enum hk_code open_it(const char *user, const char *more)
{
    struct hk_store *store = NULL;
    enum hk_code rc = hk_store_postgres.open(pg_url(user, more), &(struct hk_store_options){0}, &store, &err);
    if (rc == HK_OK)
        hk_store_postgres.close(store);
    return rc;
}

/* ---- where, and again ---- */

static void init_may_be_repeated(void **state)
{
    (void)state;
    assert_int_equal(open_it(NULL, ""), HK_NOTFOUND);
    assert_non_null(strstr(err.message, "hikyaku init"));
    assert_init("", 0);
    pg_exec(app, "INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'b', 'c')");
    assert_init("", hk_pg_schema_wanted());
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM outbox"), "1");
    assert_int_equal(open_it(NULL, ""), HK_OK);
}

static void schemas_and_prefixes_stand_side_by_side(void **state)
{
    (void)state;
    static const char *const places[] = {
        "",
        "&schema=Box",
        "&schema=box",
        "&schema=Box&prefix=other_",
        "&prefix=aaaaaaaaaabbbbbbbbbbccccccccccdd", /* the longest */
        ("&schema=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
         "&prefix=AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDD"),
        "&schema=select&prefix=FROM_",
    };
    for (size_t i = 0; i < COUNT(places); i++)
        assert_init(places[i], 0);
    for (size_t i = 0; i < COUNT(places); i++) {
        assert_init(places[i], hk_pg_schema_wanted());
        assert_int_equal(open_it(NULL, places[i]), HK_OK);
    }
    pg_exec(app,
            "INSERT INTO \"Box\".other_outbox (destination, event_type, payload) VALUES ('a', 'b', 'c')");
    assert_string_equal(pg_ask(app, "SELECT status FROM \"Box\".other_outbox_messages"), "pending");
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM box.outbox_messages"), "0");
}

static void the_names_that_init_looks_for_are_those_it_makes(void **state)
{
    (void)state;
    assert_init("&schema=box", 0);
    /* each alone in the way of a new schema is noticed */
    static char names[40][64];
    size_t n = 0;
    PGresult *res = PQexec(
        app,
        "SELECT relname FROM pg_class WHERE relnamespace = 'box'::regnamespace AND relkind IN ('r', 'v')");
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    for (; n < (size_t)PQntuples(res); n++)
        snprintf(names[n], sizeof names[n], "%s", PQgetvalue(res, (int)n, 0));
    PQclear(res);
    assert_in_range(n, 12, COUNT(names));
    for (size_t i = 0; i < n; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "CREATE SCHEMA s%zu; CREATE TABLE s%zu.%s (x integer)", i, i, names[i]);
        pg_exec(app, sql);
        snprintf(sql, sizeof sql, "&schema=s%zu", i);
        enum hk_code rc = init(NULL, sql);
        NOTE_IF(rc != HK_CONFLICT, "%s\n", names[i]);
        assert_int_equal(rc, HK_CONFLICT);
        assert_non_null(strstr(err.message, names[i]));
    }
}

/* ---- what is not ours ---- */

static void foreign_tables_are_left_alone(void **state)
{
    (void)state;
    static const char *const theirs[] = {
        "CREATE TABLE outbox (id bigint)",
        "CREATE VIEW outbox AS SELECT 1 AS id",
        "CREATE MATERIALIZED VIEW dead_letters AS SELECT 1 AS id",
        "CREATE SEQUENCE outbox",
        "CREATE TABLE outbox_meta (id bigint)",
        "CREATE TABLE outbox_meta (key integer, value integer)",
        "CREATE TABLE outbox_meta (key text, value text)",
        "CREATE TABLE outbox_meta (key text, value text); INSERT INTO outbox_meta VALUES ('schema_version', 'one')",
        "CREATE TABLE outbox_meta (key text, value text); INSERT INTO outbox_meta VALUES ('schema_version', '-1')",
        "CREATE TABLE outbox_meta (key text, value text); INSERT INTO outbox_meta VALUES ('schema_version', '0')",
        "CREATE TABLE outbox_meta (key text, value text); INSERT INTO outbox_meta VALUES ('schema_version', NULL)",
        /* a name that only an index of ours would have */
        "CREATE TABLE outbox_by_key (id bigint)",
    };
    for (size_t i = 0; i < COUNT(theirs); i++) {
        pg_exec(app, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
        pg_exec(app, theirs[i]);
        enum hk_code rc = init(NULL, "");
        NOTE_IF(rc != HK_CONFLICT, "%s: %s\n", theirs[i], err.message);
        assert_int_equal(rc, HK_CONFLICT);
        assert_int_equal(open_it(NULL, ""), i + 1 < COUNT(theirs) ? HK_CONFLICT : HK_NOTFOUND);
        assert_string_equal(
            pg_ask(app, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace "
                        "AND relkind IN ('r', 'v', 'm', 'S')"),
            "1");
        assert_init("&prefix=hk_", 0); /* which the message advises */
    }
}

static void a_newer_schema_is_refused(void **state)
{
    (void)state;
    assert_init("", 0);
    pg_exec(app, "UPDATE outbox_meta SET value = '999' WHERE key IN ('schema_version', 'compatible_from')");
    assert_int_equal(init(NULL, ""), HK_UNSUPPORTED);
    assert_non_null(strstr(err.message, "999"));
    assert_int_equal(open_it(NULL, ""), HK_UNSUPPORTED);
    pg_exec(app, "UPDATE outbox_meta SET value = '99999999999999999999' WHERE key = 'schema_version'");
    assert_int_equal(init(NULL, ""), HK_CONFLICT); /* not a version */
}

/* Relays are exchanged one by one, behind init. */
static void a_newer_schema_is_opened_if_it_says_so(void **state)
{
    (void)state;
    assert_init("", 0);
    assert_string_equal(pg_ask(app, "SELECT value FROM outbox_meta WHERE key = 'compatible_from'"), "2");
    pg_exec(app, "UPDATE outbox_meta SET value = '99' WHERE key = 'schema_version'");
    assert_int_equal(open_it(NULL, ""), HK_OK);
    assert_int_equal(init(NULL, ""), HK_OK);
    assert_true(done.from == 99 && done.to == 99);
    static const char *const refused[] = {"99", "x", "0", ""};
    for (size_t i = 0; i < COUNT(refused); i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "UPDATE outbox_meta SET value = '%s' WHERE key = 'compatible_from'",
                 refused[i]);
        pg_exec(app, sql);
        assert_int_equal(open_it(NULL, ""), HK_UNSUPPORTED);
        assert_int_equal(init(NULL, ""), HK_UNSUPPORTED);
    }
    pg_exec(app, "DELETE FROM outbox_meta WHERE key = 'compatible_from'");
    assert_int_equal(open_it(NULL, ""), HK_UNSUPPORTED);
}

static void without_the_right_to_create_init_says_so(void **state)
{
    (void)state;
    pg_exec(app, "DROP ROLE IF EXISTS weak; CREATE ROLE weak LOGIN");
    static const char *const places[] = {"", "&schema=new", "&schema=public"};
    for (size_t i = 0; i < COUNT(places); i++) {
        assert_int_equal(init("weak", places[i]), HK_UNAVAILABLE);
        NOTE_IF(!strstr(err.message, "may create"), "%s\n", err.message);
        assert_non_null(strstr(err.message, "may create"));
    }
    /* who may not create schemas may use one */
    pg_exec(app, "CREATE SCHEMA given; GRANT CREATE, USAGE ON SCHEMA given TO weak");
    assert_int_equal(init("weak", "&schema=given"), HK_OK);
    /* nowhere to create in */
    pg_exec(app, "ALTER ROLE weak SET search_path = nowhere");
    assert_int_equal(init("weak", ""), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "3F000"));
    pg_exec(app, "DROP OWNED BY weak; DROP ROLE weak");
}

/* ---- printing ---- */

static void what_is_printed_makes_the_same_schema(void **state)
{
    (void)state;
    struct hk_buf sql;
    hk_buf_init(&sql, 1 << 20);
    const struct hk_store_init how = {.print = &sql};
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, "&schema=box&prefix=p_"), &how, &done, &err), HK_OK);
    assert_int_equal(done.from, 0);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM pg_namespace WHERE nspname = 'box'"), "0");
    pg_exec(app, hk_buf_cstr(&sql));
    assert_init("&schema=box&prefix=p_", hk_pg_schema_wanted());
    assert_init("&schema=made&prefix=p_", 0);
#define SHAPE(schema)                                                                                                            \
    "SELECT md5(string_agg(c.relname || ' ' || c.relkind::text || ' ' || coalesce(a.attname || a.attnum || a.atttypid::text || " \
    "a.attnotnull::text, '') || ' ' || coalesce(c.reloptions::text, ''), ',' ORDER BY c.relname, a.attnum)) "                    \
    "FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "                                           \
    "WHERE c.relnamespace = '" schema "'::regnamespace"
    char shape[64];
    snprintf(shape, sizeof shape, "%s", pg_ask(app, SHAPE("box")));
    assert_string_equal(pg_ask(app, SHAPE("made")), shape);
    assert_int_equal(strlen(shape), 32);

    hk_buf_reset(&sql);
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, "&schema=box&prefix=p_"), &how, &done, &err), HK_OK);
    assert_string_equal(hk_buf_cstr(&sql), ""); /* nothing is to be done */
    hk_buf_fini(&sql);
}

/* ---- in company, and interrupted ---- */

static void many_at_once_do_it_once(void **state)
{
    (void)state;

    enum {
        MANY = 6
    };

    pid_t pids[MANY];
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(init(NULL, "&schema=box") == HK_OK ? 0 : 1);
    }
    for (int i = 0; i < MANY; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_init("&schema=box", hk_pg_schema_wanted());
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM box.outbox_meta"), "7");
}

static void init_waits_for_another_one_and_gives_way_meanwhile(void **state)
{
    (void)state;
    PGconn *other = pg_connect(NULL);
    assert_int_equal(
        PQsendQuery(other,
                    "BEGIN; SELECT pg_advisory_xact_lock(7523377975159973749); SELECT pg_sleep(1.5); COMMIT"),
        1);
    for (int i = 0;
         i < 1000 &&
         strcmp(pg_ask(app, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "1") != 0;
         i++)
        pg_ask(app, "SELECT pg_sleep(0.01)");
    assert_init("", 0);
    PQfinish(other);
}

/* One version is one transaction: what is there is nothing, or one of them as a whole. */
static void assert_whole_versions(void)
{
    if (strcmp(pg_ask(app, "SELECT count(*) FROM pg_namespace WHERE nspname = 'box'"), "0") == 0)
        return;
    bool first =
        strcmp(pg_ask(app, "SELECT value FROM box.outbox_meta WHERE key = 'schema_version'"), "1") == 0;
    assert_string_equal(pg_ask(app, "SELECT to_regclass('box.outbox_redrive') IS NULL"), first ? "t" : "f");
    assert_string_equal(
        pg_ask(app, "SELECT count(*) FROM pg_attribute WHERE attrelid = 'box.dead_letters'::regclass "
                    "AND attname = 'fingerprint'"),
        first ? "0" : "1");
}

/* The server ends the session at the k-th command, for every k. */
static void an_interrupted_init_leaves_nothing(void **state)
{
    (void)state;
    pg_exec(
        app,
        "CREATE SCHEMA t; CREATE SEQUENCE t.n; CREATE TABLE t.k (k bigint); INSERT INTO t.k VALUES (0);"
        "CREATE FUNCTION t.end_it() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN "
        "IF nextval('t.n') = (SELECT k FROM t.k) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; END$$;"
        "CREATE EVENT TRIGGER end_it ON ddl_command_end EXECUTE FUNCTION t.end_it()");
    int k = 0;
    for (bool ended = true; ended && k < 150;) {
        char sql[160];
        snprintf(
            sql, sizeof sql,
            "UPDATE t.k SET k = 0; DROP SCHEMA IF EXISTS box CASCADE; UPDATE t.k SET k = %d; SELECT setval('t.n', 1, false)",
            ++k);
        pg_exec(app, sql);
        enum hk_code rc = init(NULL, "&schema=box");
        assert_true(rc == HK_OK || rc == HK_UNAVAILABLE);
        ended = rc != HK_OK;
        assert_whole_versions();
    }
    assert_in_range(k, 50, 149); /* commands */
    pg_exec(app, "DROP EVENT TRIGGER end_it");
    assert_init("&schema=box", hk_pg_schema_wanted());
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

static void no_memory_leaves_nothing(void **state)
{
    (void)state;
    const struct hk_allocator allocator = {fail_resize, fail_release, NULL};
    enum hk_code rc = HK_NOMEM;
    hk_allocator_set(&allocator);
    for (fail_at = 1; rc != HK_OK && fail_at < 300; fail_at++) {
        pg_exec(app, "DROP SCHEMA IF EXISTS box CASCADE");
        allocations = 0;
        rc = init(NULL, "&schema=box");
        assert_true(rc == HK_OK || rc == HK_NOMEM);
        assert_whole_versions();
    }
    hk_allocator_set(NULL);
    assert_int_equal(rc, HK_OK);
    assert_true(fail_at > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(init_may_be_repeated),
        TEST(schemas_and_prefixes_stand_side_by_side),
        TEST(the_names_that_init_looks_for_are_those_it_makes),
        TEST(foreign_tables_are_left_alone),
        TEST(a_newer_schema_is_refused),
        TEST(a_newer_schema_is_opened_if_it_says_so),
        TEST(without_the_right_to_create_init_says_so),
        TEST(what_is_printed_makes_the_same_schema),
        TEST(many_at_once_do_it_once),
        TEST(init_waits_for_another_one_and_gives_way_meanwhile),
        TEST(an_interrupted_init_leaves_nothing),
        TEST(no_memory_leaves_nothing),
    };
    const int *ended_early = pg_server_start();
    return ended_early ? *ended_early : cmocka_run_group_tests_name("PostgreSQL schema", tests, NULL, NULL);
}
