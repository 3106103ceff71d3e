/* SPDX-License-Identifier: Apache-2.0 */
/* Sent rows by the day (`hikyaku init --partition-sent`): days come and go by themselves, nothing that was there is lost, and
 * for everybody else it is the table that it was: both contracts hold on it. */
#include <stdlib.h>
#include <string.h>

#include "admin_suite.h"
#include "base/buf.h"
#include "base/str.h"
#include "pg_kind.h"
#include "store/pg/pg.h"

#define TEST(name)           cmocka_unit_test_setup_teardown(name, setup, suite_teardown)
#define DAY_MS               (INT64_C(86400) * 1000)
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)

static const struct hk_retention keep_all = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                             UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
static struct hk_err err;

/* By the server's own day: the first partition ends with it. */
static int setup(void **state)
{
    store_kind = &pg_kind;
    int rc = suite_setup(state);
    suite_clock_ms = suite_number("SELECT floor(extract(epoch FROM now()) * 1000)::bigint");
    return rc;
}

static enum hk_code partition(const char *user, const char *more)
{
    struct hk_store_inited done;
    return hk_store_postgres.init(pg_url(user, more), &(struct hk_store_init){.partition_sent = true}, &done,
                                  &err);
}

static void must_partition(const char *more)
{
    enum hk_code rc = partition(NULL, more);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static bool make_daily(void)
{
    return pg_kind.make() && partition(NULL, "") == HK_OK;
}

static void send_some(struct hk_store *store, int64_t lane, int n)
{
    suite_fill(n, "a", NULL);
    for (int i = 0; i < n; i++) {
        int64_t id = suite_number("SELECT min(id) FROM outbox");
        struct hk_settle s =
            suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
        suite_settle_one(store, lane, &s);
    }
}

/* One call, as the relay makes it every minute. */
static uint32_t purge(struct hk_store *store, uint64_t sent_ms, uint64_t sent_rows)
{
    struct hk_retention r = keep_all;
    uint32_t deleted = 0;
    r.sent_ms = sent_ms;
    r.sent_rows = sent_rows;
    enum hk_code rc = store_kind->ops->purge(store, &r, 100, &deleted, NULL, &err);
    NOTE_IF(rc != HK_OK, "purge: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return deleted;
}

static void purge_all(struct hk_store *store, uint64_t sent_ms)
{
    for (int i = 0; i < 100 && purge(store, sent_ms, UINT64_MAX) == 100; i++)
        continue;
}

#define DAYS                                                                                                 \
    "pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'outbox_sent'::regclass AND "   \
    "c.relname LIKE 'outbox_sent_d%'"

/* Where the newest row lies: behind "outbox_sent_". */
static const char *newest(void)
{
    return store_kind->value(
        "SELECT substr(tableoid::regclass::text, 13) FROM outbox_sent ORDER BY id DESC LIMIT 1");
}

static const char *day_name(int64_t ms)
{
    static char name[40];
    char sql[120];
    snprintf(sql, sizeof sql, "SELECT to_char(to_timestamp(%lld) AT TIME ZONE 'UTC', '\"d\"YYYYMMDD')",
             (long long)(ms / 1000));
    snprintf(name, sizeof name, "%s", store_kind->value(sql));
    return name;
}

/* ---- from one table to many ---- */

static void what_was_sent_before_stays_and_ids_go_on(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql("CREATE ROLE reader; GRANT SELECT ON outbox_sent TO reader WITH GRANT OPTION; "
                    "GRANT INSERT ON outbox_sent TO PUBLIC");
    send_some(store, lane, 5);
    assert_int_equal(purge(store, UINT64_MAX, UINT64_MAX), 0); /* its statements are prepared by now */
    int64_t file = suite_number("SELECT pg_relation_filenode('outbox_sent')");
    must_partition("");
    send_some(store, lane, 1);
    assert_int_equal(purge(store, UINT64_MAX, UINT64_MAX), 0);
    must_partition(""); /* again: nothing to be done */
    assert_count("outbox_sent", 6);
    assert_count("outbox_messages WHERE status = 'sent'", 6);
    assert_int_equal(suite_number("SELECT max(id) FROM outbox_sent"), 6);
    assert_int_equal(suite_number("SELECT pg_relation_filenode('outbox_sent_before')"), file);
    assert_string_equal(newest(), "before");
    assert_count(DAYS, 3);
    assert_string_equal(
        store_kind->value(
            "SELECT has_table_privilege('reader', 'outbox_sent', 'SELECT WITH GRANT OPTION')::text || "
            "has_table_privilege('reader', 'outbox_sent', 'INSERT') || "
            "has_table_privilege('reader', 'outbox_sent', 'DELETE')"),
        "truetruefalse");
    suite_close(store);
    store_kind->sql("DROP OWNED BY reader; DROP ROLE reader");
}

static void it_can_be_asked_for_from_the_start_and_anywhere(void **state)
{
    (void)state;
    static const char *const places[] = {"&schema=Box", "&schema=Box&prefix=p_",
                                         "&schema=select&prefix=AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDD"};
    for (size_t i = 0; i < COUNT(places); i++) {
        must_partition(places[i]);
        must_partition(places[i]);
    }
    assert_count("pg_class WHERE relkind = 'p' AND relname LIKE '%outbox_sent'", 3);
    /* and so by hand */
    struct hk_buf sql;
    struct hk_store_inited done;
    hk_buf_init(&sql, 1 << 20);
    const struct hk_store_init how = {.print = &sql, .partition_sent = true};
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, "&schema=hand"), &how, &done, &err), HK_OK);
    assert_count("pg_namespace WHERE nspname = 'hand'", 0);
    store_kind->sql(hk_buf_cstr(&sql));
    hk_buf_fini(&sql);
    assert_count("pg_inherits WHERE inhparent = 'hand.outbox_sent'::regclass", 5);
}

static void a_view_of_somebody_elses_is_not_left_behind(void **state)
{
    (void)state;
    store_kind->sql("CREATE VIEW theirs AS SELECT count(*) FROM outbox_sent");
    assert_int_not_equal(partition(NULL, ""), HK_OK);
    NOTE_IF(!strstr(err.message, "theirs"), "%s\n", err.message);
    assert_non_null(strstr(err.message, "theirs"));
    assert_string_equal(store_kind->value("SELECT relkind FROM pg_class WHERE relname = 'outbox_sent'"), "r");
    store_kind->sql("DROP VIEW theirs");
    must_partition("");
}

/* ---- days ---- */

static void days_are_made_ahead_and_dropped_whole(void **state)
{
    (void)state;
    must_partition("");
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    send_some(store, lane, 2);
    for (int day = 1; day <= 10; day++) {
        suite_clock_ms += DAY_MS;
        send_some(store, lane, 1); /* before anybody has looked today */
        assert_string_equal(newest(), day_name(suite_clock_ms));
        purge_all(store, 2 * DAY_MS);
    }
    /* today and the two before; of the third it is not yet known to be past at each hour; and three ahead */
    assert_in_range(suite_number("SELECT count(*) FROM " DAYS), 6, 7);
    assert_in_range(suite_number("SELECT count(*) FROM outbox_sent"), 3, 4);
    assert_count("pg_class WHERE relname = 'outbox_sent_before'", 0);
    assert_count("outbox_sent_rest", 0);
    assert_int_equal(suite_number("SELECT max(id) FROM outbox_sent"), 12);
    suite_close(store);
}

static void what_has_no_day_goes_to_the_rest_and_leaves_it_by_the_row(void **state)
{
    (void)state;
    must_partition("");
    struct hk_store *store = suite_open(NULL);
    suite_clock_ms += 30 * DAY_MS;
    int64_t lane = suite_acquire(store);
    send_some(store, lane, 3);
    assert_string_equal(newest(), "rest");
    purge_all(store, 7 * DAY_MS);
    assert_count("outbox_sent", 3);
    assert_count(DAYS, 3); /* all that was there before is past; today lies in the rest */
    send_some(store, lane, 1);
    assert_string_equal(newest(), "rest");
    suite_clock_ms += DAY_MS;
    send_some(store, lane, 1);
    assert_string_equal(newest(), day_name(suite_clock_ms));
    suite_clock_ms += 6 * DAY_MS + 1;
    purge_all(store, 7 * DAY_MS);
    assert_count("outbox_sent_rest", 0);
    assert_count("outbox_sent", 1);
    suite_close(store);
}

static void for_ever_means_for_ever(void **state)
{
    (void)state;
    must_partition("");
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    send_some(store, lane, 1);
    suite_clock_ms += 1000 * DAY_MS;
    purge_all(store, UINT64_MAX);
    assert_count("outbox_sent", 1);
    suite_close(store);
}

static void the_bound_on_rows_holds_over_all_days(void **state)
{
    (void)state;
    must_partition("");
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (int day = 0; day < 3; day++) {
        send_some(store, lane, 4);
        suite_clock_ms += DAY_MS;
    }
    assert_int_equal(purge(store, 30 * DAY_MS, 5), 7);
    assert_count("outbox_sent", 5);
    assert_int_equal(suite_number("SELECT min(id) FROM outbox_sent"), 8);
    assert_int_equal(purge(store, 30 * DAY_MS, 0), 5);
    suite_close(store);
}

/* ---- in company ---- */

static void only_one_of_many_does_it_and_nobody_waits(void **state)
{
    (void)state;
    must_partition("");
    struct hk_store *store = suite_open(&(struct hk_store_options){.keep_sent = true, .busy_ms = 20000});
    int64_t lane = suite_acquire(store);
    send_some(store, lane, 1);
    suite_clock_ms += 2 * DAY_MS;
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "BEGIN; SELECT 1 FROM outbox_turn WHERE name = 'days' FOR UPDATE");
    assert_int_equal(purge(store, 0, UINT64_MAX), 0);
    assert_count("outbox_sent", 1);
    pg_exec(other, "COMMIT");
    /* somebody reads it, for hours: it is left for later, and what relays do goes on */
    pg_exec(other, "BEGIN; SELECT count(*) FROM outbox_messages");
    assert_int_equal(purge(store, 0, UINT64_MAX), 0);
    assert_count("outbox_sent", 1);
    send_some(store, lane, 1);
    pg_exec(other, "COMMIT");
    PQfinish(other);
    assert_int_equal(purge(store, DAY_MS / 2, UINT64_MAX), 100); /* a whole day: look again */
    assert_count("outbox_sent", 1);
    suite_close(store);
}

/* ---- roles ---- */

static void relays_keep_house_with_the_rights_that_they_are_given(void **state)
{
    (void)state;
    static const struct hk_store_roles roles = {
        .app = "days_app", .relay = "days_relay", .viewer = "days_viewer", .partitions = true};
    struct hk_store *store = NULL;
    struct hk_buf sql;
    uint32_t deleted = 0;
    store_kind->sql(
        "CREATE ROLE days_app LOGIN; CREATE ROLE days_relay LOGIN; CREATE ROLE days_viewer LOGIN");
    must_partition("");
    assert_int_equal(
        hk_store_postgres.open(pg_url("days_relay", ""), &(struct hk_store_options){0}, &store, &err),
        HK_UNAVAILABLE);
    hk_buf_init(&sql, 1 << 16);
    assert_int_equal(hk_store_postgres.grants(pg_url(NULL, ""), &roles, &sql, &err), HK_OK);
    store_kind->sql(hk_buf_cstr(&sql));
    hk_buf_fini(&sql);
    assert_int_equal(
        hk_store_postgres.open(pg_url("days_relay", ""), &(struct hk_store_options){0}, &store, &err), HK_OK);
    enum hk_code rc = hk_store_postgres.purge(store, &keep_all, 100, &deleted, NULL, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    /* only it, and only through the function */
    PGconn *relay = pg_connect("days_relay"), *app = pg_connect("days_app");
    assert_string_equal(pg_refusal(app, "SELECT outbox_sent_days(NULL, 0, 1)"), "42501");
    assert_string_equal(pg_refusal(relay, "DROP TABLE outbox_sent_before"), "42501");
    /* what it may call it cannot bend: names are looked for in the catalog alone */
    pg_exec(relay, "CREATE TEMPORARY TABLE pg_inherits (inhparent regclass, inhrelid regclass)");
    pg_exec(relay, "SELECT outbox_sent_days(NULL, NULL, 1)");
    /* who has lost that right is told what to do */
    store_kind->sql("REVOKE EXECUTE ON FUNCTION outbox_sent_days FROM days_relay");
    assert_int_equal(hk_store_postgres.purge(store, &keep_all, 100, &deleted, NULL, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "--print-grants"));
    must_partition(""); /* and has it back by that, too */
    assert_int_equal(hk_store_postgres.purge(store, &keep_all, 100, &deleted, NULL, &err), HK_OK);
    hk_store_postgres.close(store);
    PQfinish(relay);
    PQfinish(app);
    store_kind->sql(
        "DROP OWNED BY days_app, days_relay, days_viewer; DROP ROLE days_app, days_relay, days_viewer");
}

/* ---- operators ---- */

static void estimates_add_the_days_up(void **state)
{
    (void)state;
    const struct hk_store_status *s = NULL;
    must_partition("");
    store_kind->sql(
        "INSERT INTO outbox_sent (sent_ms, attempts, status, life, message_id, destination, event_type) "
        "SELECT floor(extract(epoch FROM now()) * 1000) + 86400000 * (i % 3), 1, 200, 1, repeat('s', 300), 'a', 'T' "
        "FROM generate_series(1, 120000) i");
    struct hk_admin *admin = admin_open();
    assert_int_equal(admin_ops->status(admin, &s, &err), HK_OK);
    assert_true(s->sent.about && s->sent.n > 112000 && s->sent.n < 128000);
    admin_ops->close(admin);
}

static void doctor_tells_of_days(void **state)
{
    (void)state;

    static const struct {
        const char *sql, *words;
        enum hk_note_level level;
    } steps[] = {
        {"SELECT 1", "daily partitions", HK_NOTE_OK},
        {"INSERT INTO outbox_sent (sent_ms, attempts, status, life, message_id, destination, event_type) "
         "VALUES (9000000000000, 1, 200, 1, 'm', 'a', 'T')",
         "outbox_sent_rest", HK_NOTE_WARN},
        {"DO $$DECLARE p regclass; BEGIN FOR p IN SELECT c.oid FROM " DAYS
         " LOOP EXECUTE format('DROP TABLE %s', p); END LOOP; END$$",
         "tomorrow", HK_NOTE_WARN},
    };

    must_partition("");
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct hk_store_health h;
        bool told = false;
        store_kind->sql(steps[i].sql);
        assert_int_equal(admin_ops->inspect(pg_url(NULL, ""), 0, &h, &err), HK_OK);
        for (size_t k = 0; k < h.n_notes; k++)
            told |= strcmp(h.notes[k].about, "sent rows") == 0 && h.notes[k].level == steps[i].level &&
                    strstr(h.notes[k].text, steps[i].words);
        NOTE_IF(!told, "%s\n", steps[i].words);
        assert_true(told);
    }
}

/* ---- both contracts ---- */

static const struct admin_dialect dialect = {
    .bytes = "SELECT encoding || payload FROM outbox WHERE id = 1",
    .bytes_value = "base64YQBi",
    .refuse =
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON outbox FOR EACH ROW WHEN (new.event_type = 'B') EXECUTE FUNCTION no()",
    .allow = "DROP TRIGGER t ON outbox",
};

/* All but those that count on rows going one by one. */
static size_t without_retention(struct CMUnitTest *tests, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!strstr(tests[i].name, "purge") && !strstr(tests[i].name, "retention"))
            tests[kept++] = tests[i];
    return kept;
}

int main(void)
{
    static struct CMUnitTest tests[200];
    static struct store_kind daily;
    const struct CMUnitTest own[] = {
        TEST(what_was_sent_before_stays_and_ids_go_on),
        TEST(it_can_be_asked_for_from_the_start_and_anywhere),
        TEST(a_view_of_somebody_elses_is_not_left_behind),
        TEST(days_are_made_ahead_and_dropped_whole),
        TEST(what_has_no_day_goes_to_the_rest_and_leaves_it_by_the_row),
        TEST(for_ever_means_for_ever),
        TEST(the_bound_on_rows_holds_over_all_days),
        TEST(only_one_of_many_does_it_and_nobody_waits),
        TEST(relays_keep_house_with_the_rights_that_they_are_given),
        TEST(estimates_add_the_days_up),
        TEST(doctor_tells_of_days),
    };
    const int *over = pg_server_start();
    if (over)
        return *over;
    admin_ops = &hk_store_admin_postgres;
    admin_dialect = &dialect;
    daily = pg_kind;
    daily.make = make_daily;
    store_kind = &daily;
    size_t n = without_retention(tests, suite_tests(tests, COUNT(tests) - COUNT(own)));
    n += admin_suite_tests(tests + n, COUNT(tests) - COUNT(own) - n);
    memcpy(tests + n, own, sizeof own);
    return _cmocka_run_group_tests("sent rows by the day", tests, n + COUNT(own), NULL, NULL);
}
