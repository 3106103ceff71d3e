/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL's alerts under their contract: directly, and (by the argument "pooler") behind PgBouncer in transaction mode.
 * And what only PostgreSQL has: letters that appear out of the order of their ids. */
#include "alerts_suite.h"
#include "base/str.h"
#include "letters_suite_impl.h"
#include "pg_bouncer.h"
#include "pg_kind.h"

#define LETTER                                                                                                \
    "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, first_failed_at, " \
    "last_failed_at, created_at) SELECT 'm', 'E', '%s', 'R', 1, t.t, t.t, t.t FROM (SELECT to_timestamp(%lld / 1000.0)) t (t)"

static void bury(PGconn *conn, const char *destination)
{
    char sql[500];
    snprintf(sql, sizeof sql, LETTER, destination, (long long)suite_clock_ms);
    pg_exec(conn, sql);
}

static const struct hk_alerts_looked *next(struct hk_admin *admin)
{
    suite_clock_ms += 10000;
    const struct hk_alerts_looked *looked = alerts_look(admin);
    alerts_decide(admin, looked);
    return looked;
}

static void a_letter_that_is_committed_late_is_seen_all_the_same(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    PGconn *slow = pg_connect(NULL), *fast = pg_connect(NULL), *never = pg_connect(NULL);
    pg_exec(slow, "BEGIN");
    pg_exec(never, "BEGIN");
    bury(slow, "slow");
    bury(never, "never");
    bury(slow, "slow");
    bury(fast, "fast");
    const struct hk_alerts_looked *looked = next(admin);
    assert_int_equal(looked->n_deaths, 1);
    assert_text(looked->deaths[0].destination, "fast");
    assert_int_equal(next(admin)->n_deaths, 0);
    bury(fast, "fast");
    pg_exec(slow, "COMMIT");
    looked = next(admin);
    assert_int_equal(looked->n_deaths, 2);
    assert_int_equal(looked->deaths[0].n + looked->deaths[1].n, 3);
    assert_int_equal(next(admin)->n_deaths, 0);
    assert_string_not_equal(pg_ask(fast, "SELECT gaps FROM outbox_alert_look"), "");
    for (int i = 0; i < 7; i++)
        assert_int_equal(next(admin)->n_deaths, 0);
    assert_string_equal(pg_ask(fast, "SELECT gaps FROM outbox_alert_look"), "");
    pg_exec(never, "ROLLBACK");
    PQfinish(slow);
    PQfinish(fast);
    PQfinish(never);
    admin_ops->close(admin);
}

/* What retention took long ago is no gap. */
static void holes_of_old_do_not_count(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    PGconn *conn = pg_connect(NULL);
    bury(conn, "a");
    bury(conn, "a");
    bury(conn, "a");
    pg_exec(conn, "DELETE FROM dead_letters WHERE id < 3");
    suite_clock_ms += 3600000;
    assert_int_equal(next(admin)->n_deaths, 1);
    assert_string_equal(pg_ask(conn, "SELECT gaps FROM outbox_alert_look"), "");
    PQfinish(conn);
    admin_ops->close(admin);
}

/* The statements that run every few seconds are found by indexes, however many letters there are. */
static void a_look_reads_what_is_new_and_no_more(void **state)
{
    (void)state;
    PGconn *conn = pg_connect(NULL);
    static const char *const texts[] = {
        "SELECT id FROM dead_letters WHERE id > 5 ORDER BY id LIMIT 20000",
        "SELECT id FROM dead_letters d WHERE d.life > 1 AND d.last_failed_at >= now() AND d.last_failed_at < now()",
    };
    static const char *const wanted[] = {"dead_letters_pkey", "dead_letters_again"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        char sql[400];
        pg_exec(conn, "SET enable_seqscan = off; SET enable_bitmapscan = off");
        snprintf(sql, sizeof sql, "EXPLAIN (FORMAT JSON) %s", texts[i]);
        assert_non_null(strstr(pg_ask(conn, sql), wanted[i]));
    }
    PQfinish(conn);
}

/* Whatever came before: what lies there stays, and is told; and a relay's role can go on without a new grant. */
static void letters_of_older_schemas_are_told(void **state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        struct hk_store_inited done = {0};
        struct hk_err err = {0};
        suite_clock_ms = INT64_C(1800000000000);
        assert_true(pg_make_database());
        PGconn *conn = pg_connect(NULL);
        pg_make_version("", (unsigned)version);
        bury(conn, "old");
        pg_exec(conn, "DO $$ BEGIN CREATE ROLE worker; EXCEPTION WHEN duplicate_object THEN NULL; END $$; "
                      "GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_retry TO worker");
        assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){0}, &done, &err),
                         HK_OK);
        assert_true((int)done.from == version && done.to >= 4);
        assert_string_equal(pg_ask(conn, "SELECT value FROM outbox_meta WHERE key = 'compatible_from'"), "2");
        assert_string_equal(pg_ask(conn,
                                   "SELECT has_table_privilege('worker', 'outbox_notice', 'DELETE') AND "
                                   "has_table_privilege('worker', 'outbox_alert_look', 'UPDATE') AND "
                                   "NOT has_table_privilege('worker', 'outbox_alert_look', 'DELETE')"),
                            "t");
        struct hk_admin *admin = admin_open();
        const struct hk_alerts_looked *looked = alerts_look(admin);
        assert_int_equal(looked->n_deaths, 1);
        assert_text(looked->deaths[0].destination, "old");
        alerts_decide(admin, looked);
        admin_ops->close(admin);
        PQfinish(conn);
        pg_kind.drop();
    }
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[40];
    bool pooler;
    int code;
    const struct CMUnitTest own[] = {
        TEST(a_letter_that_is_committed_late_is_seen_all_the_same), TEST(holes_of_old_do_not_count),
        TEST(a_look_reads_what_is_new_and_no_more), cmocka_unit_test(letters_of_older_schemas_are_told)};
    if (!bouncer_choose(argc, argv, &pooler, &code))
        return code;
    admin_ops = &hk_store_admin_postgres;
    letters_ops = &hk_store_letters_postgres;
    alerts_ops = &hk_store_alerts_postgres;
    size_t n = alerts_suite_tests(tests, COUNT(tests));
    if (pooler)
        return _cmocka_run_group_tests("alerts (postgres, behind PgBouncer)", tests, n, bouncer_start,
                                       bouncer_end);
    memcpy(&tests[n], own, sizeof own);
    return _cmocka_run_group_tests("alerts (postgres)", tests, n + COUNT(own), NULL, NULL);
}
