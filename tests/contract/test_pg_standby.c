/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL with a standby: what doctor says of those who hold the horizon back when they are real, and which of several hosts a
 * service file leads to. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pg_kind.h"
#include "store/pg/admin.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

static struct hk_err err;

static PGconn *connect_standby(void)
{
    char url[400];
    snprintf(url, sizeof url, "postgres:///%s?host=%s&port=5433&user=postgres", pg_database(),
             pg_server_dir());
    PGconn *conn = PQconnectdb(url);
    NOTE_IF(PQstatus(conn) != CONNECTION_OK, "%s", PQerrorMessage(conn));
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    return conn;
}

/* ---- who holds vacuum back ---- */

static void until(PGconn *conn, const char *sql)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    for (int i = 0; i < 3000 && strcmp(pg_ask(conn, sql), "t") != 0; i++)
        nanosleep(&pause, NULL);
    assert_string_equal(pg_ask(conn, sql), "t");
}

/* The standby hears of everything from here on, and tells what it still reads. */
static void follow(PGconn *standby, const char *slot)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "ALTER SYSTEM SET primary_conninfo = 'host=%s port=5432 user=postgres application_name=mirror'",
             pg_server_dir());
    pg_exec(standby, sql);
    snprintf(sql, sizeof sql, "ALTER SYSTEM SET primary_slot_name = '%s'", slot);
    pg_exec(standby, sql);
    pg_exec(standby, "ALTER SYSTEM SET hot_standby_feedback = on");
    pg_exec(standby, "ALTER SYSTEM SET wal_receiver_status_interval = '1s'");
    pg_exec(standby, "SELECT pg_reload_conf()");
}

/* The text of doctor's line about vacuum in which `word` occurs; "" when there is none. */
static const char *line_with(const char *word)
{
    static const struct hk_pa_limits strict = {
        .held_s = -1, .held_xids = -1, .connections = 5, .clock_ms = 5000};
    static struct hk_store_health h;
    assert_int_equal(hk_pa_inspect_with(pg_url(NULL, ""), &strict, &h, &err), HK_OK);
    for (size_t i = 0; i < h.n_notes; i++)
        if (strcmp(h.notes[i].about, "vacuum") == 0 && h.notes[i].level == HK_NOTE_WARN &&
            strstr(h.notes[i].text, word))
            return h.notes[i].text;
    return "";
}

static void write_some(PGconn *app)
{
    for (int i = 0; i < 5; i++)
        pg_exec(app, "INSERT INTO outbox (event_type) VALUES ('T'); DELETE FROM outbox");
}

/* What the line says is so: vacuum removes nothing, and does when it is done with. */
static bool vacuum_removes_all(PGconn *app)
{
    pg_exec(app, "VACUUM outbox");
    return strcmp(pg_ask(app, "SELECT pg_relation_size('outbox')"), "0") == 0;
}

static void a_standby_that_reads_for_long_is_named(void **state)
{
    (void)state;
    pg_server_add_standby();
    PGconn *app = pg_connect(NULL), *standby = connect_standby(), *reader = connect_standby();
    assert_string_equal(line_with("standby"), ""); /* from its first feedback on it may hold something back */
    follow(standby, "");
    until(app, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'");
    pg_exec(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox");
    until(app, "SELECT backend_xmin IS NOT NULL FROM pg_stat_replication");
    write_some(app);
    assert_non_null(strstr(line_with("standby"), "mirror"));
    assert_non_null(strstr(line_with("standby"), "hot_standby_feedback"));
    assert_false(vacuum_removes_all(app));
    pg_exec(reader, "COMMIT");
    PQfinish(reader);
    PQfinish(standby);
    pg_server_drop_standby();
    until(app, "SELECT count(*) = 0 FROM pg_stat_replication");
    assert_string_equal(line_with("standby"), "");
    assert_true(vacuum_removes_all(app));
    PQfinish(app);
}

/* A standby that went away for good: its slot remembers what it was reading then. */
static void a_slot_that_nobody_uses_any_more_is_named(void **state)
{
    (void)state;
    pg_server_add_standby();
    PGconn *app = pg_connect(NULL), *standby = connect_standby(), *reader = connect_standby();
    pg_exec(app, "SELECT pg_create_physical_replication_slot('mirror_slot', true)");
    assert_string_equal(line_with("mirror_slot"), ""); /* it holds WAL, but no rows */
    follow(standby, "mirror_slot");
    pg_exec(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox");
    until(app, "SELECT xmin IS NOT NULL AND active FROM pg_replication_slots");
    assert_non_null(strstr(line_with("mirror_slot"), "(in use)"));
    PQfinish(reader);
    PQfinish(standby);
    pg_server_drop_standby();
    until(app, "SELECT NOT active FROM pg_replication_slots");
    write_some(app);
    assert_non_null(strstr(line_with("mirror_slot"), "(not in use)"));
    assert_non_null(strstr(line_with("mirror_slot"), "pg_drop_replication_slot"));
    assert_false(vacuum_removes_all(app));
    pg_exec(app, "SELECT pg_drop_replication_slot('mirror_slot')");
    assert_string_equal(line_with("mirror_slot"), "");
    assert_true(vacuum_removes_all(app));
    PQfinish(app);
}

static void an_old_transaction_is_named_with_its_age(void **state)
{
    (void)state;
    static const struct hk_pa_limits limits = {
        .held_s = 1, .held_xids = 1000000, .connections = 5, .clock_ms = 5000};
    struct hk_store_health h;
    char words[100];
    bool told = false;
    PGconn *app = pg_connect(NULL), *idler = pg_connect(NULL);
    pg_exec(idler, "BEGIN; INSERT INTO outbox (event_type) VALUES ('T')");
    snprintf(words, sizeof words,
             "SELECT now() - xact_start > interval '2 seconds' FROM pg_stat_activity WHERE pid = %d",
             PQbackendPID(idler));
    until(app, words);
    assert_int_equal(hk_pa_inspect_with(pg_url(NULL, ""), &limits, &h, &err), HK_OK);
    snprintf(words, sizeof words, "pg_terminate_backend(%d)", PQbackendPID(idler));
    for (size_t i = 0; i < h.n_notes; i++)
        told |= h.notes[i].level == HK_NOTE_WARN && strstr(h.notes[i].text, words) &&
                strstr(h.notes[i].text, "open for ");
    assert_true(told);
    PQfinish(idler);
    PQfinish(app);
}

/* ---- services ---- */

static const char *no_sql(unsigned id)
{
    (void)id;
    return "SELECT 1";
}

/* The port that the service leads to, the standby's standing first; "" = nowhere. Sets what the connection was made with. */
static const char *port_of_service(const char *ports, const char *more, char out_timeout[16])
{
    static const struct hk_pg_table table = {no_sql, 1, NULL, NULL};
    static char port[16];
    char path[300], url[100];
    struct hk_pg pg;
    snprintf(path, sizeof path, "%s/service.conf", pg_server_dir());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "[shop]\nhost=%s%s%s\nport=%s\nuser=postgres\ndbname=%s\n%s\n", pg_server_dir(),
            strchr(ports, ',') ? "," : "", strchr(ports, ',') ? pg_server_dir() : "", ports, pg_database(),
            more);
    fclose(file);
    setenv("PGSERVICEFILE", path, 1);
    snprintf(url, sizeof url, "postgres://?service=shop");
    port[0] = '\0';
    if (hk_pg_open(&pg, url, &table, 0, &err) != HK_OK)
        return port;
    snprintf(port, sizeof port, "%s", PQport(pg.conn));
    PQconninfoOption *info = PQconninfo(pg.conn);
    for (const PQconninfoOption *o = info; o->keyword; o++)
        if (strcmp(o->keyword, "connect_timeout") == 0)
            snprintf(out_timeout, 16, "%s", o->val ? o->val : "");
    PQconninfoFree(info);
    hk_pg_close(&pg);
    return port;
}

static void a_services_own_word_wins_over_our_defaults(void **state)
{
    (void)state;
    char timeout[16] = "";
    pg_server_add_standby();
    /* nothing is said: we look for a server that can be written to */
    assert_string_equal(port_of_service("5433,5432", "", timeout), "5432");
    assert_string_equal(timeout, "5");
    /* something is said: so be it */
    assert_string_equal(
        port_of_service("5433,5432", "target_session_attrs=standby\nconnect_timeout=7", timeout), "5433");
    assert_string_equal(timeout, "7");
    assert_string_equal(port_of_service("5432,5433", "target_session_attrs=read-only", timeout), "5433");
    assert_string_equal(port_of_service("5433,5432", "target_session_attrs=primary", timeout), "5432");
    assert_string_equal(port_of_service("5433", "target_session_attrs=primary", timeout), "");
    /* any: also one that cannot be written to, when there is no other */
    assert_string_equal(port_of_service("5433", "target_session_attrs=any", timeout), "5433");
    unsetenv("PGSERVICEFILE");
    pg_server_drop_standby();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_standby_that_reads_for_long_is_named),
        TEST(a_slot_that_nobody_uses_any_more_is_named),
        TEST(an_old_transaction_is_named_with_its_age),
        TEST(a_services_own_word_wins_over_our_defaults),
    };
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    return cmocka_run_group_tests_name("PostgreSQL with a standby", tests, NULL, NULL);
}
