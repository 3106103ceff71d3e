/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' side of SQLite under its contract, and what only SQLite has: estimates of large tables, health. */
#include <string.h>

#include "admin_suite.h"
#include "base/str.h"
#include "sqlite_kind.h"

static void rows_that_hold_anything_are_shown(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_shown *shown = NULL;
    const struct hk_rows *rows = NULL;
    const struct hk_store_status *s = NULL;
    const struct hk_relays *relays = NULL;
    struct hk_acted acted = {0};
    struct hk_err err = {0};
    sqlite_kind.sql(
        "INSERT INTO outbox (message_id, destination, event_type, headers, not_before, max_attempts, created_at, "
        "payload) VALUES (x'ff00fe', x'c328', x'1b5b324a', 'no json', 'never', 'many', 'whenever', 12.5)");
    sqlite_kind.sql("INSERT INTO outbox (message_id, destination, event_type, payload) "
                    "VALUES ('big', 'a', 'T', zeroblob(50000000))");
    sqlite_kind.sql(
        "INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, attempts, life, created_at) "
        "VALUES ('odd', '', '', 'soon', -5, 1e300, x'00')");
    sqlite_kind.sql("INSERT INTO outbox_relay (name, boot, started_ms, until_ms) VALUES (x'00ff', '', 0, 0)");
    sqlite_kind.sql("INSERT INTO outbox_claim (lane, claimed_ms, ids) VALUES (1, 0, '[1, ')");
    assert_int_equal(hk_store_admin_sqlite.list(admin, &(struct hk_list){.limit = 10}, &rows, &err), HK_OK);
    assert_int_equal(rows->n, 3);
    assert_int_equal(hk_store_admin_sqlite.status(admin, &s, &err), HK_OK);
    assert_int_equal(s->n_dests, 3);
    assert_int_equal(hk_store_admin_sqlite.relays(admin, &relays, &err), HK_OK);
    assert_int_equal(relays->n, 1);
    assert_int_equal(hk_store_admin_sqlite.show(admin, "big", 1000, &shown, &err), HK_OK);
    assert_int_equal(shown->rows[0].payload_bytes, 50000000);
    assert_int_equal(shown->rows[0].payload.len, 1000);
    assert_int_equal(hk_store_admin_sqlite.show(admin, "odd", 10, &shown, &err), HK_OK);
    assert_int_equal(hk_store_admin_sqlite.show(admin, "\xff", 10, &shown, &err), HK_NOTFOUND);
    const struct hk_act cancel = {"odd", NULL, "ann", "because"};
    assert_int_equal(hk_store_admin_sqlite.cancel(admin, &cancel, &acted, &err), HK_OK);
    hk_store_admin_sqlite.close(admin);
}

static void large_tables_are_estimated(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_store_status *s = NULL;
    struct hk_err err = {0};
    sqlite_kind.sql("WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 150000) "
                    "INSERT INTO outbox (message_id, destination, event_type) "
                    "SELECT 'm', CASE WHEN x % 10 = 0 THEN 'b' ELSE 'a' END, 'T' FROM c");
    assert_int_equal(hk_store_admin_sqlite.status(admin, &s, &err), HK_OK);
    assert_true(s->due.about && s->due.n > 145000 && s->due.n < 155000);
    assert_int_equal(s->n_dests, 2);
    assert_true(s->dests[0].pending.about && s->dests[0].pending.n > 120000 &&
                s->dests[0].pending.n < 150000);
    assert_true(!s->dests[1].pending.about && s->dests[1].pending.n == 15000);
    assert_true(s->attempts[0].about);
    sqlite_kind.sql(
        "UPDATE outbox SET event_type = 'rare' WHERE id IN (1, 50000, 50001, 100000, 100001, 150000)");
    const struct hk_rows *rows = NULL;
    struct hk_list list = {.event_type = "rare", .limit = 10};
    size_t found = 0;
    int calls = 0;
    do { /* each call looks at a bounded number of rows, and none is left out in between */
        assert_int_equal(hk_store_admin_sqlite.list(admin, &list, &rows, &err), HK_OK);
        list.resume = true;
        list.after_place = rows->last_place;
        list.after_id = rows->last_id;
        found += rows->n;
        calls++;
    } while (rows->more);
    assert_int_equal(found, 6);
    assert_true(calls >= 3 && calls < 10);
    hk_store_admin_sqlite.close(admin);
}

/* Far more than are counted are known from a sample alone; few that lie side by side, or are in no sample, are counted. */
static void large_destinations_are_known_from_a_sample(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_store_status *s = NULL;
    struct hk_err err = {0};
    sqlite_kind.sql("WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 600000) "
                    "INSERT INTO outbox (message_id, destination, event_type) "
                    "SELECT 'm', CASE WHEN x BETWEEN 300000 AND 305000 THEN 'block' WHEN x = 7 THEN 'one' "
                    "ELSE 'large' END, 'T' FROM c");
    sqlite_kind.sql(
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 600000) "
        "INSERT INTO outbox_retry (message_id, original_outbox_id, destination, event_type, due_ms, "
        "attempts) SELECT 'r', -x, 'large', 'T', 1, x % 3 > 0 FROM c");
    assert_int_equal(hk_store_admin_sqlite.status(admin, &s, &err), HK_OK);
    assert_int_equal(s->n_dests, 3);
    assert_true(!s->dests[0].pending.about && s->dests[0].pending.n == 5001);
    const struct hk_dest_status *large = &s->dests[1];
    assert_true(large->pending.about && large->pending.n > 760000 && large->pending.n < 840000);
    assert_true(large->retrying.about && large->retrying.n > 380000 && large->retrying.n < 420000);
    assert_true(!s->dests[2].pending.about && s->dests[2].pending.n == 1);
    assert_int_equal(hk_store_admin_sqlite.status_exact(admin, &s, &err), HK_OK);
    assert_true(!s->dests[1].pending.about && s->dests[1].pending.n == 600000 - 5002 + 200000);
    assert_true(!s->dests[1].retrying.about && s->dests[1].retrying.n == 400000);
    hk_store_admin_sqlite.close(admin);
}

static void health_is_told_of_sound_missing_and_damaged_files(void **state)
{
    (void)state;
    struct hk_store_health h;
    struct hk_err err = {0};
    char path[400], url[420];
    assert_int_equal(hk_store_admin_sqlite.inspect(sqlite_kind.url(), 5000, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_OK);
    assert_int_equal(h.schema_version, h.schema_wanted);
    assert_string_equal(h.journal, "wal");
    assert_int_equal(h.integrity, HK_INTEGRITY_OK);
    assert_true(h.file_bytes > 0 && h.free_bytes > 0 && h.clock_ms > 0);
    snprintf(path, sizeof path, "%s/other.db", sqlite_dir());
    snprintf(url, sizeof url, "sqlite:%s", path);
    assert_int_equal(hk_store_admin_sqlite.inspect(url, 5000, &h, &err), HK_NOTFOUND);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database", file);
    fclose(file);
    assert_int_equal(hk_store_admin_sqlite.inspect(url, 5000, &h, &err), HK_IO);
    sqlite_kind.sql("UPDATE outbox_meta SET value = '99' WHERE key IN ('schema_version', 'compatible_from')");
    assert_int_equal(hk_store_admin_sqlite.inspect(sqlite_kind.url(), 5000, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_UNSUPPORTED);
    assert_int_equal(h.schema_version, 99);
}

static const struct admin_dialect dialect = {
    .bytes = "SELECT hex(payload) FROM outbox WHERE id = 1",
    .bytes_value = "610062",
    .refuse = "CREATE TRIGGER t BEFORE INSERT ON outbox WHEN new.event_type = 'B' "
              "BEGIN SELECT raise(ABORT, 'no'); END",
    .allow = "DROP TRIGGER t",
};

static const struct hk_health_note *find_note(const struct hk_store_health *h, const char *about)
{
    for (size_t i = 0; i < h->n_notes; i++)
        if (strcmp(h->notes[i].about, about) == 0)
            return &h->notes[i];
    return NULL;
}

static void health_tells_of_triggers_and_stuck_rows(void **state)
{
    (void)state;
    struct hk_store_health h;
    struct hk_err err = {0};
    const struct hk_store_status *status = NULL;
    struct hk_admin *admin = NULL;
    assert_int_equal(hk_store_admin_sqlite.inspect(sqlite_kind.url(), 5000, &h, &err), HK_OK);
    assert_null(find_note(&h, "tables"));
    assert_null(find_note(&h, "stuck rows"));
    sqlite_kind.guard("outbox", "DELETE", false);
    sqlite_kind.sql("INSERT INTO outbox_stuck VALUES (0, 1, 1, 1, 1, 'm', 'a', NULL, 'no', 1, NULL, NULL)");
    assert_int_equal(hk_store_admin_sqlite.inspect(sqlite_kind.url(), 5000, &h, &err), HK_OK);
    assert_non_null(find_note(&h, "tables"));
    assert_non_null(strstr(find_note(&h, "tables")->text, "trigger keep_p2 on outbox"));
    assert_non_null(find_note(&h, "stuck rows"));
    assert_int_equal(
        hk_store_admin_sqlite.open(sqlite_kind.url(), &(struct hk_store_options){.busy_ms = 0}, &admin, &err),
        HK_OK);
    assert_int_equal(hk_store_admin_sqlite.status(admin, &status, &err), HK_OK);
    assert_int_equal(status->stuck, 1);
    hk_store_admin_sqlite.close(admin);
}

int main(void)
{
    static struct CMUnitTest tests[120];
    store_kind = &sqlite_kind;
    admin_ops = &hk_store_admin_sqlite;
    admin_dialect = &dialect;
    size_t n = admin_suite_tests(tests, COUNT(tests) - 5);
    n += admin_clock_tests(tests + n, COUNT(tests) - 5 - n);
    n += admin_define_tests(tests + n, COUNT(tests) - 5 - n);
    n += admin_list_tests(tests + n, COUNT(tests) - 5 - n);
    n += admin_series_tests(tests + n, COUNT(tests) - 5 - n);
    n += admin_bulk_tests(tests + n, COUNT(tests) - 5 - n);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(rows_that_hold_anything_are_shown,
                                                                    suite_setup, suite_teardown);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(large_tables_are_estimated, suite_setup,
                                                                    suite_teardown);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(
        large_destinations_are_known_from_a_sample, suite_setup, suite_teardown);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(
        health_is_told_of_sound_missing_and_damaged_files, suite_setup, suite_teardown);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup_teardown(health_tells_of_triggers_and_stuck_rows,
                                                                    suite_setup, suite_teardown);
    return _cmocka_run_group_tests("operators (sqlite)", tests, n, NULL, NULL);
}
