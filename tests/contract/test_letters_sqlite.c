/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's dead letters under their contract, and what only SQLite has: payloads of bytes, rows that hold anything, letters
 * that are older than the schema. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "letters_suite_impl.h"
#include "sqlite_kind.h"
#include "store/migration.h"

#define NEWEST hk_migrations_newest(hk_migrations_sqlite)

static bool try_sql(const char *sql)
{
    sqlite3 *db = sqlite_connect();
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
    return rc == SQLITE_OK;
}

static void a_payload_of_bytes_stays_bytes(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    uint32_t version = 0;
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 1, NULL);
    const struct hk_letter_edit e = {1, 1, {"a\0\xff", 3}, "ann", "why", "fix"};
    assert_int_equal(letters_ops->edit(admin, &e, &version, &err), HK_OK);
    const struct hk_letter *l = &letters_show(admin, 1)->letter;
    assert_true(l->payload_bytes == 3 && memcmp(l->payload.ptr, "a\0\xff", 3) == 0);
    assert_string_equal(sqlite_kind.value("SELECT act FROM outbox_audit"), "fix");
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_SAME).did, HK_DID_IT);
    const struct hk_want claim = {HK_FROM_RETRY, letters_retry_of(1), true};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_int_equal(done->n_messages, 1);
    assert_true(done->messages[0].payload.len == 3 &&
                memcmp(done->messages[0].payload.ptr, "a\0\xff", 3) == 0);
    suite_close(store);
    admin_ops->close(admin);
}

static bool matches_nothing(const void *arg, const struct hk_letter *letter)
{
    size_t *const *seen = arg;
    **seen += letter->payload.len <= letter->payload_bytes;
    return false;
}

static void rows_that_hold_anything_are_shown(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_letter_groups *groups = NULL;
    const struct hk_letter_stats *stats = NULL;
    struct hk_err err = {0};
    size_t seen = 0, *counter = &seen;
    sqlite_kind.sql(
        "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, error_message, attempts, "
        "first_failed_at, last_failed_at, created_at, status, life, requeues, fingerprint, headers, redrive_id, payload) "
        "VALUES (x'ff00fe', x'c328', x'1b5b324a', x'00', zeroblob(200000), 'many', 'never', x'ff', '', 'odd', 1e300, "
        "-7, zeroblob(3000), 'no json', 'x', 12.5)");
    sqlite_kind.sql("INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, "
                    "first_failed_at, last_failed_at, created_at, payload) "
                    "VALUES ('big', 'T', 'a', 'X', 1, 'x', 'x', 'x', zeroblob(50000000))");
    const struct hk_letters *all = letters_list(admin, &(struct hk_letter_query){.statuses = 0});
    assert_int_equal(all->n, 2);
    assert_int_equal(all->items[0].error.len, 64 * 1024);
    assert_true(hk_str_eq(all->items[0].payload, hk_str_of("12.5")));
    assert_int_equal(all->items[1].payload_bytes, 50000000);
    assert_int_equal(all->items[1].payload.len, 1000);
    const struct hk_letter_query query = {.match = matches_nothing, .match_arg = &counter};
    assert_int_equal(letters_list(admin, &query)->n, 0);
    assert_int_equal(seen, 2);
    assert_int_equal(letters_ops->groups(admin, &(struct hk_letter_query){.statuses = 0}, 9, &groups, &err),
                     HK_OK);
    assert_true(groups->n >= 1 && groups->letters == 2);
    assert_int_equal(letters_ops->stats(admin, &stats, &err), HK_OK);
    assert_int_equal(stats->n_reasons, 2);
    assert_int_equal(letters_show(admin, 1)->letter.id, 1);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did,
                     HK_DID_REFUSE); /* of no state that is known */
    assert_int_equal(letters_requeue(admin, 2, HK_REQUEUE_AUTO).did, HK_DID_IT);
    assert_int_equal(letters_verify_audit(admin), 1);
    admin_ops->close(admin);
}

static void a_page_of_many_that_do_not_fit_comes_in_bounded_steps(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    sqlite_kind.sql(
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 150000) "
        "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, "
        "first_failed_at, last_failed_at, created_at, fingerprint) SELECT 'm' || x, "
        "CASE WHEN x % 30000 = 0 THEN 'Rare.1' ELSE 'T' END, 'a', 'X', 1, '2027', '2027', '2027', 'f' "
        "FROM c");
    const struct hk_letter_query rare = {.event_type = "Rare*", .statuses = 1u << HK_LETTER_FAILED};
    for (int way = 0; way < 2; way++) {
        struct hk_letter_page page = {.limit = 10, .oldest_first = way == 1};
        const struct hk_letters *letters = NULL;
        size_t found = 0;
        int calls = 0;
        do {
            assert_int_equal(letters_ops->list(admin, &rare, &page, &letters, &err), HK_OK);
            found += letters->n;
            page.after_id = letters->last_id;
            calls++;
        } while (letters->more);
        assert_int_equal(found, 5);
        assert_true(calls >= 3 && calls < 10);
    }
    struct hk_count count = {0};
    const struct hk_letter_query all = {.statuses = 1u << HK_LETTER_FAILED};
    assert_int_equal(letters_ops->count(admin, &all, &count, &err), HK_OK);
    assert_true(count.about && count.n > 149000 && count.n < 151000);
    admin_ops->close(admin);
}

/* ---- migration ---- */

static const char old_letters[] =
    "INSERT INTO dead_letters (message_id, event_type, destination, message_key, reason_code, error_message, error_detail, "
    "attempts, first_failed_at, last_failed_at, status, resolution, life, created_at, payload) VALUES "
    "('m1', 'T', 'a', 'k', 'HTTP_422', 'no 1', '{\"cause\":\"HTTP_422\",\"class\":\"permanent\",\"status\":422,"
    "\"possibly_delivered\":true}', 3, '2027-01-01T00:00:00.000Z', '2027-01-02T00:00:00.000Z', 'failed', NULL, 2, "
    "'2027-01-02T00:00:00.000Z', x'00ff'), "
    "('m2', 'T', 'a', NULL, 'EXPIRED', NULL, 'no json', 0, '2027-01-01T00:00:00.000Z', '2027-01-02T00:00:00.000Z', "
    "'resolved', 'sent', 1, '2027-01-02T00:00:00.000Z', 'p'), "
    "('m3', 'T', 'a', NULL, 'X', NULL, NULL, 0, '2027', '2027', 'failed', NULL, 1, '2027', NULL); "
    "DELETE FROM dead_letters WHERE message_id = 'm3'; "
    "INSERT INTO outbox_destination (name, paused, actor, reason, since_ms) VALUES ('b', 1, 'ann', 'works', 1); "
    "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1, 'ann', 'pause', 'before')";

/* The schema as version 1 had it, from its own text. */
static void make_version_1(void)
{
    struct hk_buf sql;
    struct hk_store_inited done;
    struct hk_err err = {0};
    assert_true(sqlite_make_dir());
    hk_buf_init(&sql, 1 << 20);
    const struct hk_store_init print = {.print = &sql};
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &print, &done, &err), HK_OK);
    char *text = hk_buf_detach(&sql);
    char *end = strstr(text, "-- hikyaku, schema version 2");
    assert_non_null(end);
    end = strstr(text, "COMMIT;");
    end[strlen("COMMIT;")] = '\0';
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(sqlite_path(), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, old_letters, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_exec(db, "ALTER TABLE outbox_destination DROP COLUMN open_until_ms", NULL, NULL,
                       NULL); /* older yet */
    sqlite3_close(db);
    hk_mem_free(text);
}

static void letters_of_version_1_are_taken_along(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_store *store = NULL;
    struct hk_err err = {0};
    make_version_1();
    assert_int_equal(hk_store_sqlite.open(sqlite_kind.url(), &(struct hk_store_options){0}, &store, &err),
                     HK_NOTFOUND);
    assert_non_null(strstr(err.message, "hikyaku init"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err),
                         HK_OK);
    assert_true(done.from == NEWEST && done.to == NEWEST);
    struct hk_admin *admin = admin_open();
    const struct hk_letters *all = letters_list(admin, &(struct hk_letter_query){.statuses = 0});
    assert_int_equal(all->n, 2);
    const struct hk_letter *l = &all->items[0];
    char print[HK_FINGERPRINT_MAX];
    hk_fingerprint(HK_CLASS_PERMANENT, hk_str_of("HTTP_422"), hk_str_of("a"), hk_str_of("no 1"), print);
    assert_true(hk_str_eq(l->fingerprint, hk_str_of(print)));
    assert_true(hk_str_eq(l->failure_class, hk_str_of("permanent")));
    assert_true(hk_str_eq(l->blame, hk_str_of("destination")));
    assert_true(l->possibly_delivered && l->requeues == 1 && l->life == 2 && l->version == 1);
    assert_true(l->payload_bytes == 2 && l->payload.ptr[0] == '\0');
    l = &all->items[1];
    assert_true(hk_str_eq(l->resolution, hk_str_of("delivered")));
    assert_true(hk_str_eq(l->blame, hk_str_of("pipeline")));
    assert_int_equal(l->fingerprint.len, 16);
    store = suite_open(NULL);
    const struct hk_poll *poll = NULL;
    assert_int_equal(hk_store_sqlite.poll(store, &poll, &err), HK_OK);
    assert_true(poll->n_dests == 1 && poll->dests[0].paused && poll->dests[0].open_until_ms == 0);
    suite_close(store);
    /* what was done before the chain began is still there, and the chain begins behind it */
    const struct hk_audit_rows *rows = NULL;
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    assert_int_equal(
        letters_ops->audit(admin, &(struct hk_audit_page){.oldest_first = true, .limit = 9}, &rows, &err),
        HK_OK);
    assert_int_equal(rows->n, 2);
    assert_true(rows->items[0].hash.len == 0 && rows->items[1].hash.len == 64 && rows->first_id == 2);
    admin_ops->close(admin);
    sqlite3 *db = sqlite_connect();
    assert_int_equal(
        sqlite3_exec(db,
                     "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, "
                     "attempts, first_failed_at, last_failed_at, created_at) "
                     "VALUES ('new', 'T', 'a', 'X', 0, 'x', 'x', 'x')",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_last_insert_rowid(db), 4); /* 3 was given before, and does not come back */
    sqlite3_close(db);
    sqlite_kind.drop();
}

/* A rate of one letter in a day begins with one: a step that looked at as many as it may and found none has not used it. */
static void a_step_that_finds_no_letter_costs_none_of_the_rate(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    int64_t id = 0, wake_ms = 0;
    sqlite_kind.sql("WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 10001) "
                    "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, attempts, "
                    "first_failed_at, last_failed_at, created_at, fingerprint) SELECT 'm' || x, "
                    "CASE WHEN x > 10000 THEN 'Rare.1' ELSE 'T' END, 'a', 'X', 1, '2027', '2027', '2027', "
                    "'f' FROM c");
    const struct hk_letter_query rare = {.event_type = "Rare*", .statuses = 1u << HK_LETTER_FAILED};
    const struct hk_redrive_job job = {
        .filter = hk_str_of("type:Rare*"), .pace = {.rate_per_s = 1.0 / 86400}, .actor = hk_str_of("ann")};
    assert_int_equal(letters_ops->redrive_start(admin, &rare, &job, &id, &err), HK_OK);
    for (int steps = 1; steps <= 2; steps++) {
        assert_int_equal(letters_ops->redrive_step(admin, id, &rare, &wake_ms, &(bool){false}, &err), HK_OK);
        assert_int_equal(suite_number("SELECT requeued FROM outbox_redrive"), steps - 1);
    }
    admin_ops->close(admin);
}

static void a_newer_schema_is_opened_if_it_says_so(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_store *store = NULL;
    struct hk_err err = {0};
    const struct hk_store_options options = {0};
    assert_string_equal(sqlite_kind.value("SELECT value FROM outbox_meta WHERE key = 'compatible_from'"),
                        "2");
    sqlite_kind.sql("UPDATE outbox_meta SET value = '99' WHERE key = 'schema_version'");
    assert_int_equal(hk_store_sqlite.open(sqlite_kind.url(), &options, &store, &err), HK_OK);
    hk_store_sqlite.close(store);
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err), HK_OK);
    assert_true(done.from == 99 && done.to == 99);
    const char *const refused[] = {"99", "x", "0", ""};
    for (size_t i = 0; i < COUNT(refused); i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "UPDATE outbox_meta SET value = '%s' WHERE key = 'compatible_from'",
                 refused[i]);
        sqlite_kind.sql(sql);
        assert_int_equal(hk_store_sqlite.open(sqlite_kind.url(), &options, &store, &err), HK_UNSUPPORTED);
        assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err),
                         HK_UNSUPPORTED);
    }
}

/* ---- payloads larger than a relay takes ---- */

#define HUGE   "hex(randomblob(8000000))"
#define LITTLE ((sqlite3_int64)12 << 20)

/* What was done since the last look took little memory, and the row in `place` still has every byte. */
static void assert_moved(const char *what, const char *place)
{
    char sql[400];
    sqlite3_int64 used = sqlite3_memory_highwater(0);
    NOTE_IF(used >= LITTLE, "%s: %lld bytes\n", what, (long long)used);
    assert_true(used < LITTLE);
    snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM (SELECT payload FROM %s) p JOIN twin t ON CAST(p.payload AS BLOB) = CAST(t.payload AS BLOB)",
        place);
    NOTE_IF(suite_number(sql) != 1, "%s: not in %s\n", what, place);
    assert_int_equal(suite_number(sql), 1);
    assert_rows("outbox_aside", 0);
    (void)sqlite3_memory_highwater(1);
}

static void huge_insert(const char *message_id, const char *not_before)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (message_id, destination, event_type, not_before, payload) "
             "VALUES ('%s', 'a', 'Made', %s, " HUGE ")",
             message_id, not_before);
    sqlite_kind.sql(sql);
    sqlite_kind.sql("DROP TABLE IF EXISTS twin");
    sqlite_kind.sql("CREATE TABLE twin AS SELECT payload FROM outbox");
    (void)sqlite3_memory_highwater(1);
}

/* Claims the row as the relay does that knows its size, and settles it without an attempt. */
static void huge_settle(struct hk_store *store, int64_t lane, enum hk_source source, enum hk_settle_kind kind)
{
    static const struct hk_str to[] = {{"a", 1}, {"b", 1}};
    const char *table = source == HK_FROM_OUTBOX ? "outbox" : "outbox_retry";
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT id FROM %s WHERE destination = 'a'", table);
    const struct hk_want claim = {source, suite_number(sql), false};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_int_equal(done->n_messages, 1);
    struct hk_settle s = suite_settle(done->claim, source, claim.id, kind);
    s.attempt.made = false;
    s.due_ms = suite_clock_ms;
    s.fan_out = to;
    s.n_fan_out = kind == HK_SETTLE_FAN_OUT ? 2 : 0;
    suite_settle_one(store, lane, &s);
}

static int64_t die_and_take_over(struct hk_store **store)
{
    suite_clock_ms += 40000;
    struct hk_store *next = suite_open(NULL);
    int64_t lane = suite_acquire(next);
    suite_close(*store);
    *store = next;
    return lane;
}

static void a_relay_moves_a_huge_payload_in_little_memory(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    huge_insert("m", "NULL");
    (void)suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    lane = die_and_take_over(&store);
    assert_moved("orphan", "outbox_retry");
    (void)suite_claim(store, lane, HK_FROM_RETRY, 1);
    assert_moved("claim", "outbox_retry WHERE claim IS NOT NULL");
    lane = die_and_take_over(&store);
    assert_moved("orphan again", "outbox_retry WHERE claim IS NULL AND crashes = 2");
    huge_settle(store, lane, HK_FROM_RETRY, HK_SETTLE_DEFER);
    assert_moved("defer", "outbox_retry");
    huge_settle(store, lane, HK_FROM_RETRY, HK_SETTLE_RELEASE);
    assert_moved("release", "outbox_retry");
    huge_settle(store, lane, HK_FROM_RETRY, HK_SETTLE_FAN_OUT);
    assert_moved("fan out", "outbox_retry WHERE destination = 'a'");
    assert_moved("fan out", "outbox_retry WHERE destination = 'b'");
    huge_settle(store, lane, HK_FROM_RETRY, HK_SETTLE_DEAD);
    assert_moved("dead", "dead_letters");
    sqlite_kind.sql("DELETE FROM outbox_retry");
    huge_insert("n", "NULL");
    huge_settle(store, lane, HK_FROM_OUTBOX, HK_SETTLE_FAN_OUT);
    assert_moved("fan out of a fresh one", "outbox_retry WHERE destination = 'b'");
    suite_close(store);
}

static enum hk_code huge_act(enum hk_code (*fn)(struct hk_admin *, const struct hk_act *, struct hk_acted *,
                                                struct hk_err *),
                             struct hk_admin *admin, const char *message_id)
{
    struct hk_acted acted = {0};
    struct hk_err err = {0};
    return fn(admin, &(struct hk_act){message_id, NULL, "ann", "because"}, &acted, &err);
}

static void people_act_on_a_huge_payload_in_little_memory(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    huge_insert("m", "NULL");
    huge_settle(store, lane, HK_FROM_OUTBOX, HK_SETTLE_DEAD);
    assert_moved("dead", "dead_letters");
    const int64_t ids[] = {1};
    const struct hk_letter_act act = {.ids = ids, .n = 1, .actor = "ann", .reason = "because"};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->discard(admin, &act, &done, &err), HK_OK);
    assert_moved("discard", "dead_letters WHERE status = 'discarded'");
    assert_int_equal(letters_ops->restore(admin, &act, &done, &err), HK_OK);
    assert_moved("restore", "dead_letters WHERE status = 'failed'");
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    assert_moved("requeue", "outbox_retry");
    assert_moved("requeue", "dead_letters WHERE status = 'retrying'");
    huge_settle(store, lane, HK_FROM_RETRY, HK_SETTLE_DEAD);
    assert_moved("dead again", "dead_letters WHERE status = 'failed' AND life = 2");
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    assert_int_equal(huge_act(admin_ops->cancel, admin, "m"), HK_OK);
    assert_moved("cancel", "outbox_cancelled");
    assert_moved("cancel", "dead_letters WHERE status = 'discarded' AND resolution = 'cancelled'");
    const struct hk_ref cancelled = {HK_IN_CANCELLED, 1};
    const struct hk_refs_act back = {.refs = &cancelled, .n = 1, .actor = "ann", .reason = "because"};
    struct hk_refs_done restored = {0};
    assert_int_equal(admin_ops->restore_refs(admin, &back, &restored, &err), HK_OK);
    assert_int_equal(restored.changed, 1);
    assert_moved("restore a message", "outbox_retry");
    assert_moved("restore a message", "dead_letters WHERE status = 'retrying'");
    assert_int_equal(huge_act(admin_ops->cancel, admin, "m"), HK_OK);
    assert_moved("cancel again", "outbox_cancelled");
    assert_int_equal(letters_ops->restore(admin, &act, &done, &err), HK_OK);
    assert_int_equal(letters_ops->send_begin(admin, &act, &done, &err), HK_OK);
    const struct hk_attempt_record attempt = {
        .made = true, .failure_class = HK_CLASS_TRANSIENT, .cause = hk_str_of("TIMEOUT")};
    assert_int_equal(letters_ops->send_end(admin, 1, done->items[0].begun_ms, "ann", &attempt, false, &err),
                     HK_OK);
    assert_moved("send", "dead_letters WHERE status = 'failed' AND reason_code = 'TIMEOUT'");
    uint32_t version = 0;
    const struct hk_letter_edit edit = {1, 1, hk_str_of("{}"), "ann", "why", "edit"};
    assert_int_equal(letters_ops->edit(admin, &edit, &version, &err), HK_OK);
    (void)sqlite3_memory_highwater(1); /* its digest was taken */
    assert_moved("edit", "dead_letter_versions");
    sqlite_kind.sql("DELETE FROM outbox_cancelled");
    huge_insert("n", "'2099-01-01T00:00:00Z'");
    assert_int_equal(huge_act(admin_ops->retry, admin, "n"), HK_OK);
    assert_moved("retry", "outbox_retry");
    sqlite_kind.sql("UPDATE outbox_retry SET due_ms = due_ms + 60000");
    (void)sqlite3_memory_highwater(1);
    assert_int_equal(huge_act(admin_ops->retry, admin, "n"), HK_OK);
    assert_moved("retry once more", "outbox_retry");
    huge_insert("o", "NULL");
    assert_int_equal(huge_act(admin_ops->cancel, admin, "o"), HK_OK);
    assert_moved("cancel", "outbox_cancelled");
    suite_close(store);
    admin_ops->close(admin);
}

static const struct letters_dialect dialect = {
    .refuse = "CREATE TRIGGER t BEFORE INSERT ON outbox_audit WHEN new.reason = 'refused' "
              "BEGIN SELECT raise(ABORT, 'no'); END",
    .allow = "DROP TRIGGER t",
    .try_sql = try_sql,
};

int main(void)
{
    static struct CMUnitTest tests[80];
    store_kind = &sqlite_kind;
    admin_ops = &hk_store_admin_sqlite;
    letters_ops = &hk_store_letters_sqlite;
    letters_dialect = &dialect;
    size_t n = letters_suite_tests(tests, COUNT(tests) - 8);
#undef TEST
#define TEST(f) (struct CMUnitTest) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    tests[n++] = TEST(a_payload_of_bytes_stays_bytes);
    tests[n++] = TEST(rows_that_hold_anything_are_shown);
    tests[n++] = TEST(a_page_of_many_that_do_not_fit_comes_in_bounded_steps);
    tests[n++] = TEST(a_step_that_finds_no_letter_costs_none_of_the_rate);
    tests[n++] = TEST(a_relay_moves_a_huge_payload_in_little_memory);
    tests[n++] = TEST(people_act_on_a_huge_payload_in_little_memory);
    tests[n++] = TEST(a_newer_schema_is_opened_if_it_says_so);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(letters_of_version_1_are_taken_along);
    return _cmocka_run_group_tests("dead letters (sqlite)", tests, n, NULL, NULL);
}
