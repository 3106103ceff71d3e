/* SPDX-License-Identifier: Apache-2.0 */
/* Behind PgBouncer in transaction mode, where neither prepared statements nor settings last, and with one server connection
 * for all. */
#include <time.h>

#include "base/str.h"
#include "pg_bouncer.h"
#include "pg_kind.h"
#include "store/pg/pg.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

enum {
    SETTING = 0,
    ADD,
    FAIL,
    N_STATEMENTS
};

static const char *sql_of(unsigned id)
{
    static const char *const texts[N_STATEMENTS] = {
        [SETTING] = "SELECT current_setting($1)",
        [ADD] = "INSERT INTO @things (name) VALUES ($1)",
        [FAIL] = "SELECT 1 / $1::bigint",
    };
    return texts[id];
}

static const char *const guards[] = {"enable_seqscan", "off", "enable_sort", "off", NULL};
static const struct hk_pg_table table = {sql_of, N_STATEMENTS, guards, NULL};
static PGconn *app;

/* ---- */

static int setup(void **state)
{
    (void)state;
    if (!pg_make_database())
        return -1;
    app = pg_connect(NULL);
    pg_exec(app,
            "CREATE TABLE things (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL)");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    PQfinish(app);
    pg_kind.drop();
    return 0;
}

/* ---- */

static void open_pooled(struct hk_pg *pg)
{
    struct hk_err err = {0};
    enum hk_code rc = hk_pg_open(pg, bouncer_url(""), &table, 1234, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_true(pg->pooled);
}

static enum hk_code call(struct hk_pg *pg, unsigned id, const char *argument, char *out, size_t room)
{
    struct hk_pg_args a = {0};
    struct hk_err err = {0};
    hk_pg_call(pg);
    hk_pg_arg_text(pg, &a, hk_str_of(argument));
    PGresult *res = hk_pg_query(pg, true, id, &a);
    if (res && out)
        snprintf(out, room, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "try it", &err);
    NOTE_IF(rc != HK_OK && id != FAIL, "%s\n", err.message);
    return rc;
}

static void assert_setting(struct hk_pg *pg, const char *name, const char *expected)
{
    char value[100] = "";
    assert_int_equal(call(pg, SETTING, name, value, sizeof value), HK_OK);
    assert_string_equal(value, expected);
}

static void a_pooler_is_noticed_and_settings_go_with_each_transaction(void **state)
{
    (void)state;
    struct hk_pg pg;
    open_pooled(&pg);
    for (int i = 0; i < 3; i++) {
        assert_setting(&pg, "enable_seqscan", "off");
        assert_setting(&pg, "enable_sort", "off");
        assert_setting(&pg, "lock_timeout", "1234ms");
        assert_setting(&pg, "statement_timeout", "6234ms");
        assert_setting(&pg, "bytea_output", "hex");
    }
    hk_pg_close(&pg);
}

/* The one server connection is the application's, too. */
static void nothing_of_ours_stays_on_the_shared_connection(void **state)
{
    (void)state;
    struct hk_pg pg;
    open_pooled(&pg);
    assert_int_equal(call(&pg, ADD, "a", NULL, 0), HK_OK);
    PGconn *neighbour = PQconnectdb(bouncer_url(""));
    assert_int_equal(PQstatus(neighbour), CONNECTION_OK);
    assert_string_equal(pg_ask(neighbour, "SHOW enable_seqscan"), "on");
    assert_string_equal(pg_ask(neighbour, "SHOW lock_timeout"), "0");
    assert_string_equal(pg_ask(neighbour, "SHOW tcp_keepalives_idle"), "0");
    assert_string_equal(pg_ask(neighbour, "SELECT count(*) FROM pg_prepared_statements"), "0");
    PQfinish(neighbour);
    hk_pg_close(&pg);
}

static void two_handles_share_one_server_connection(void **state)
{
    (void)state;
    struct hk_pg a, b;
    open_pooled(&a);
    open_pooled(&b);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(call(&a, ADD, "a", NULL, 0), HK_OK);
        assert_int_equal(call(&b, FAIL, "0", NULL, 0), HK_IO);
        assert_int_equal(call(&b, ADD, "b", NULL, 0), HK_OK);
        assert_int_equal(call(&a, FAIL, "0", NULL, 0), HK_IO);
    }
    assert_int_equal(a.connects + b.connects, 2);
    hk_pg_close(&a);
    hk_pg_close(&b);
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM things"), "40");
}

static void a_server_connection_that_dies_is_only_one_failed_call(void **state)
{
    (void)state;
    struct hk_pg pg;
    open_pooled(&pg);
    assert_int_equal(call(&pg, ADD, "a", NULL, 0), HK_OK);
    pg_exec(app, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                 "WHERE datname = current_database() AND pid <> pg_backend_pid()");
    for (int i = 0; i < 1200 && call(&pg, ADD, "b", NULL, 0) != HK_OK; i++)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(call(&pg, ADD, "c", NULL, 0), HK_OK);
    hk_pg_close(&pg);
}

static void init_and_housekeeping_work_behind_a_pooler(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_err err = {0};
    struct hk_store *store = NULL;
    uint32_t deleted = 99;
    for (uint32_t i = 0; i < 2; i++) {
        enum hk_code rc = hk_store_postgres.init(bouncer_url("&schema=box&prefix=p_"),
                                                 &(struct hk_store_init){0}, &done, &err);
        NOTE_IF(rc != HK_OK, "%s\n", err.message);
        assert_int_equal(rc, HK_OK);
        assert_int_equal(done.from, i == 0 ? 0 : done.to);
    }
    assert_int_equal(hk_store_postgres.open(bouncer_url("&schema=box&prefix=p_"),
                                            &(struct hk_store_options){0}, &store, &err),
                     HK_OK);
    assert_int_equal(hk_store_postgres.pause(store, "there", true, "me", "because", &err), HK_OK);
    pg_exec(
        app,
        "INSERT INTO box.p_outbox_audit (at_ms, actor, act, reason) VALUES (1, 'me', 'pause', 'because')");
    assert_int_equal(hk_store_postgres.purge(store, &(struct hk_retention){0}, 10, &deleted, NULL, &err),
                     HK_OK);
    assert_int_equal(deleted, 2); /* this one, and the pause's own */
    hk_store_postgres.close(store);
    assert_string_equal(pg_ask(app, "SELECT name FROM box.p_outbox_destination WHERE paused"), "there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pooler_is_noticed_and_settings_go_with_each_transaction),
        TEST(nothing_of_ours_stays_on_the_shared_connection),
        TEST(two_handles_share_one_server_connection),
        TEST(a_server_connection_that_dies_is_only_one_failed_call),
        TEST(init_and_housekeeping_work_behind_a_pooler),
    };
    if (!bouncer_is_here()) {
        printf("1..0 # SKIP no PgBouncer (Debian: pgbouncer)\n");
        return 0;
    }
    const int *ended_early = pg_server_start();
    return ended_early ? *ended_early
                       : cmocka_run_group_tests_name("PgBouncer", tests, bouncer_start, bouncer_end);
}
