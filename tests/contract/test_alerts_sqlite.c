/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's alerts under their contract, and migrations from older schemas. */
#include "alerts_suite.h"
#include "base/buf.h"
#include "base/str.h"
#include "sqlite_kind.h"

/* The schema as an older version had it, from its own text. */
static void make_version(int version)
{
    struct hk_buf sql;
    struct hk_store_inited done;
    struct hk_err err = {0};
    sqlite3 *db = NULL;
    assert_true(sqlite_make_dir());
    hk_buf_init(&sql, 1 << 20);
    const struct hk_store_init print = {.print = &sql};
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &print, &done, &err), HK_OK);
    char *end = sql.data;
    for (int i = 0; i < version; i++) {
        end = strstr(end, "COMMIT;");
        assert_non_null(end);
        end += strlen("COMMIT;");
    }
    *end = '\0';
    assert_int_equal(sqlite3_open(sqlite_path(), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql.data, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    hk_buf_fini(&sql);
}

/* Whatever came before: what lies there stays, and is told. */
static void letters_of_older_schemas_are_told(void **state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        struct hk_store_inited done = {0};
        struct hk_err err = {0};
        suite_clock_ms = INT64_C(1800000000000);
        make_version(version);
        sqlite3 *db = sqlite_connect();
        assert_int_equal(
            sqlite3_exec(
                db,
                "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, "
                "first_failed_at, last_failed_at, created_at) VALUES ('m1', 'E', 'a', 'R', 1, "
                "'2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')",
                NULL, NULL, NULL),
            SQLITE_OK);
        sqlite3_close(db);
        assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err),
                         HK_OK);
        assert_true((int)done.from == version && done.to >= 4);
        struct hk_admin *admin = admin_open();
        const struct hk_alerts_looked *looked = alerts_look(admin);
        assert_int_equal(looked->n_deaths, 1);
        assert_true(hk_str_eq(looked->deaths[0].message_id, hk_str_of("m1")));
        alerts_decide(admin, looked);
        admin_ops->close(admin);
        sqlite_kind.drop();
    }
}

int main(void)
{
    static struct CMUnitTest tests[40];
    store_kind = &sqlite_kind;
    admin_ops = &hk_store_admin_sqlite;
    letters_ops = &hk_store_letters_sqlite;
    alerts_ops = &hk_store_alerts_sqlite;
    size_t n = alerts_suite_tests(tests, COUNT(tests));
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(letters_of_older_schemas_are_told);
    return _cmocka_run_group_tests("alerts (sqlite)", tests, n, NULL, NULL);
}
