/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite alone: rows that hold anything, and the schema that they lie in. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "sqlite_kind.h"
#include "store/migration.h"
#include "store/sqlite/admin.h"

#define NEWEST hk_migrations_newest(hk_migrations_sqlite)

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)
#define LEASE_MS   30000

static struct hk_head scan_one(struct hk_store *store)
{
    const struct hk_heads *heads = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->scan(store, &(struct hk_scan){.limit = 10}, &heads, &err);
    NOTE_IF(rc != HK_OK, "scan: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(heads->n, 1);
    return heads->items[0];
}

/* Fits in one statement, so that a row can be anything. */
static void insert(const char *columns, const char *values)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (destination, event_type, payload%s%s) VALUES ('a', 'Made', 'p'%s%s)",
             *columns ? ", " : "", columns, *values ? ", " : "", values);
    store_kind->sql(sql);
}

static void bad_values_mark_the_column_and_nothing_else(void **state)
{
    (void)state;

    static const struct {
        const char *column, *value, *malformed;
    } rows[] = {
        {"not_before", "'soon'", "not_before"},
        {"not_before", "1800000000", "not_before"},
        {"not_before", "'2027-02-30T00:00:00Z'", "not_before"},
        {"not_before", "x'00ff'", "not_before"},
        {"not_before", "'2027-01-15T08:00:00' || char(0) || 'Z'", "not_before"},
        {"not_before", "'2027-01-15T08:00:00.000000000000000000000000000000000000000000'", "not_before"},
        {"not_before", "''", NULL},
        {"not_before", "NULL", NULL},
        {"not_before", "datetime('now')", NULL}, /* SQLite's own form, UTC without saying so */
        {"not_before", "'2027-01-15 08:00:00.123'", NULL},
        {"expires_at", "'never'", "expires_at"},
        {"expires_at", "'9999-12-31T23:59:59Z'", NULL},
        {"max_attempts", "'many'", "max_attempts"},
        {"max_attempts", "-1", "max_attempts"},
        {"max_attempts", "2.5", "max_attempts"},
        {"max_attempts", "99999999999", "max_attempts"},
        {"max_attempts", "0", NULL},
        {"max_attempts", "'3'", NULL},
        {"encoding", "'rot13'", "encoding"},
        {"encoding", "'BASE64'", NULL},
        {"encoding", "''", NULL},
        {"message_key", "x'6b00'", NULL},
        {"message_key", "''", NULL},
        {"headers", "42", NULL},
        {"created_at", "'yesterday'", NULL},
    };
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        store_kind->sql("DELETE FROM outbox");
        insert(rows[i].column, rows[i].value);
        struct hk_head head = scan_one(store);
        const struct hk_want claim = {HK_FROM_OUTBOX, head.id, true};
        const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
        const char *said = head.malformed ? head.malformed : "",
                   *want = rows[i].malformed ? rows[i].malformed : "";
        const char *whole = done->messages[0].malformed ? done->messages[0].malformed : "";
        NOTE_IF(strcmp(said, want) != 0 || strcmp(whole, want) != 0, "%s = %s: \"%s\", \"%s\"\n",
                rows[i].column, rows[i].value, said, whole);
        assert_string_equal(said, want);
        assert_string_equal(whole, want);
        struct hk_settle s = suite_settle(done->claim, HK_FROM_OUTBOX, head.id, HK_SETTLE_DEAD);
        suite_settle_one(store, lane, &s); /* whatever it is, it can be buried */
    }
    assert_int_equal(suite_number("SELECT count(*) FROM dead_letters"), COUNT(rows));
    suite_close(store);
}

static void a_retry_with_bad_values_is_marked_too(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    insert("expires_at", "'never'");
    suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    suite_clock_ms += LEASE_MS;
    suite_acquire(store); /* the relay died before it could bury it */
    const struct hk_heads *heads = NULL;
    const struct hk_scan scan = {.source = HK_FROM_RETRY, .destination = "a", .limit = 10};
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
    assert_int_equal(heads->n, 1);
    assert_string_equal(heads->items[0].malformed, "expires_at");
    assert_int_equal(heads->items[0].crashes, 1);
    suite_close(store);
}

static void a_message_without_an_id_is_marked(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    insert("message_id", "''");
    const struct hk_want claim = {HK_FROM_OUTBOX, 1, true};
    assert_string_equal(suite_exchange(store, lane, NULL, 0, &claim, 1)->messages[0].malformed, "message_id");
    suite_close(store);
}

static void payloads_arrive_byte_for_byte(void **state)
{
    (void)state;

    static const struct {
        const char *value, *encoding;
        struct hk_str bytes;
        bool undecodable;
    } rows[] = {
        {"'{\"a\" :  1}\n'", "utf8", {"{\"a\" :  1}\n", 11}, false},
        {"x'00ff0a'", "utf8", {"\x00\xff\x0a", 3}, false},
        {"'a' || char(0) || 'b'", "utf8", {"a\0b", 3}, false},
        {"''", "utf8", {"", 0}, false},
        {"NULL", "utf8", {"", 0}, false},
        {"42", "utf8", {"42", 2}, false},
        {"1.5", "utf8", {"1.5", 3}, false},
        {"zeroblob(0)", "utf8", {"", 0}, false},
        {"'AP8K'", "base64", {"\x00\xff\x0a", 3}, false},
        {"'AP8='", "base64", {"\x00\xff", 2}, false},
        {"'AA=='", "base64", {"\x00", 1}, false},
        {"'AP8K' || char(13, 10) || 'AP8K '", "base64", {"\x00\xff\x0a\x00\xff\x0a", 6}, false},
        {"x'41503843'", "base64", {"\x00\xff\x02", 3}, false}, /* base64 kept as a BLOB */
        {"''", "base64", {"", 0}, false},
        {"'AP8'", "base64", {"", 0}, true},
        {"'AP8=='", "base64", {"", 0}, true},
        {"'AP9='", "base64", {"", 0}, true}, /* bits left over */
        {"'A'", "base64", {"", 0}, true},
        {"'AB=='", "base64", {"", 0}, true},
        {"'AA=A'", "base64", {"", 0}, true},
        {"'===='", "base64", {"", 0}, true},
        {"'AA==AA=='", "base64", {"", 0}, true},
        {"'A-_K'", "base64", {"", 0}, true},
        {"'{}'", "base64", {"", 0}, true},
    };
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char sql[300];
        snprintf(
            sql, sizeof sql,
            "INSERT INTO outbox (destination, event_type, payload, encoding) VALUES ('a', 'Made', %s, '%s')",
            rows[i].value, rows[i].encoding);
        store_kind->sql(sql);
        struct hk_want claim = {HK_FROM_OUTBOX, (int64_t)i + 1, true};
        const struct hk_message *m = suite_exchange(store, lane, NULL, 0, &claim, 1)->messages;
        NOTE_IF(!hk_str_eq(m->payload, rows[i].bytes) || m->undecodable != rows[i].undecodable,
                "row %zu: %s\n", i, rows[i].value);
        assert_true(hk_str_eq(m->payload, rows[i].bytes));
        assert_int_equal(m->undecodable, rows[i].undecodable);
        assert_false(m->oversized);
    }
    suite_close(store);
}

static void huge_rows_cost_nothing_and_can_be_buried(void **state)
{
    (void)state;

    static const struct {
        const char *columns, *values;
        const char *head, *whole;
        bool oversized;
        uint64_t bytes;
    } rows[] = {
        {"payload", "hex(zeroblob(1500000))", NULL, NULL, true, 3000000},
        {"payload", "zeroblob(3000000)", NULL, NULL, true, 3000000},
        {"payload", "hex(zeroblob(100000))", NULL, NULL, true,
         200000}, /* small enough to load, too large to send */
        {"event_type, payload", "hex(zeroblob(3000000)), 'p'", "row", "row", true, 0},
        {"message_key, event_type, payload", "hex(zeroblob(30000)), 'E', 'p'", "row", NULL, false, 0},
        {"headers, event_type, payload", "hex(zeroblob(3000000)), 'E', 'p'", NULL, "row", true, 1},
    };
    struct hk_store *store = suite_open(&(struct hk_store_options){.max_payload_bytes = 150000});
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char sql[300];
        bool type = strstr(rows[i].columns, "event_type") != NULL;
        snprintf(sql, sizeof sql, "INSERT INTO outbox (destination, %s%s) VALUES ('a', %s%s)",
                 type ? "" : "event_type, ", rows[i].columns, type ? "" : "'E', ", rows[i].values);
        store_kind->sql(sql);
        struct hk_head head = scan_one(store);
        NOTE_IF((head.malformed != NULL) != (rows[i].head != NULL), "row %zu\n", i);
        assert_int_equal(head.malformed != NULL, rows[i].head != NULL);
        assert_int_equal(head.payload_bytes, rows[i].bytes);
        const struct hk_want claim = {HK_FROM_OUTBOX, head.id, true};
        const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
        assert_int_equal(done->n_messages, 1);
        NOTE_IF(done->messages[0].oversized != rows[i].oversized, "row %zu\n", i);
        assert_int_equal(done->messages[0].oversized, rows[i].oversized);
        assert_int_equal(done->messages[0].malformed != NULL, rows[i].whole != NULL);
        struct hk_settle s =
            suite_settle(done->claim, HK_FROM_OUTBOX, head.id, i % 2 ? HK_SETTLE_DEAD : HK_SETTLE_RETRY);
        suite_settle_one(store, lane, &s);
    }
    assert_int_equal(suite_number("SELECT count(*) FROM dead_letters"), 3);
    assert_int_equal(suite_number("SELECT length(payload) FROM dead_letters ORDER BY id"), 3000000);
    suite_clock_ms += 2000;
    const struct hk_scan scan = {.source = HK_FROM_RETRY, .destination = "a", .limit = 10};
    const struct hk_heads *heads = NULL;
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
    assert_int_equal(heads->n, 3);
    assert_null(heads->items[0].malformed);
    assert_string_equal(heads->items[2].malformed, "row"); /* and the scan went on to here */
    struct hk_want wants[] = {{HK_FROM_RETRY, 1, true}, {HK_FROM_RETRY, 2, true}, {HK_FROM_RETRY, 3, false}};
    assert_int_equal(suite_exchange(store, lane, NULL, 0, wants, 3)->n_messages, 3);
    suite_close(store);
}

/* Sixteen megabytes, then a small one with the same statement. */
static void a_huge_payload_is_buried_in_little_memory_and_byte_for_byte(void **state)
{
    (void)state;
    static const char *const values[] = {"hex(randomblob(8000000))", "randomblob(16000000)", "'small'"};
    static const char whole[] = "SELECT count(*) FROM dead_letters d JOIN twin t ON d.id = t.id "
                                "AND CAST(d.payload AS BLOB) = CAST(t.payload AS BLOB)";
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql("CREATE TABLE twin (id INTEGER PRIMARY KEY, payload)");
    for (size_t i = 0; i < COUNT(values); i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'E', %s)", values[i]);
        store_kind->sql(sql);
        store_kind->sql("INSERT INTO twin (payload) SELECT payload FROM outbox");
        (void)sqlite3_memory_highwater(1);
        struct hk_head head = scan_one(store);
        const struct hk_want claim = {HK_FROM_OUTBOX, head.id, false};
        const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
        struct hk_settle s = suite_settle(done->claim, HK_FROM_OUTBOX, head.id, HK_SETTLE_DEAD);
        s.attempt.made = false;
        suite_settle_one(store, lane, &s);
        assert_true(sqlite3_memory_highwater(0) < (sqlite3_int64)12 << 20);
        assert_int_equal(suite_number(whole), i + 1);
    }
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 0);
    assert_int_equal(suite_number("SELECT count(*) FROM dead_letters WHERE fingerprint_made IS NULL"), 2);
    suite_close(store);
}

static void one_huge_row_does_not_hide_its_neighbours(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    store_kind->sql(
        "INSERT INTO outbox (destination, event_type, payload) VALUES ('a', hex(zeroblob(3000000)), 'p')");
    suite_fill(2, "a", NULL);
    const struct hk_heads *heads = NULL;
    for (uint32_t limit = 3; limit <= 6; limit++) {
        assert_int_equal(store_kind->ops->scan(store, &(struct hk_scan){.limit = limit}, &heads, NULL),
                         HK_OK);
        assert_int_equal(heads->n, limit < 5 ? limit : 5);
        assert_int_equal(heads->more, limit <= 5);
        for (size_t i = 0; i < heads->n; i++) {
            assert_int_equal(heads->items[i].id, i + 1);
            assert_int_equal(heads->items[i].malformed != NULL, i == 2);
        }
    }
    struct hk_want wants[5];
    for (int i = 0; i < 5; i++)
        wants[i] = (struct hk_want){HK_FROM_OUTBOX, i + 1, true};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, wants, 5);
    assert_int_equal(done->n_messages, 5);
    int sound = 0;
    for (size_t i = 0; i < 5; i++)
        sound += !done->messages[i].malformed && done->messages[i].payload.len == 2;
    assert_int_equal(sound, 4);
    suite_close(store);
}

static void the_least_insert_and_nulls_from_orms_work(void **state)
{
    (void)state;
    store_kind->sql(
        "INSERT INTO outbox (destination, event_type, payload) VALUES ('billing', 'OrderCreated', '{}')");
    store_kind->sql(
        "INSERT INTO outbox (id, message_id, destination, event_type, payload, message_key, headers, content_type, "
        "encoding, correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, max_attempts, "
        "created_at) VALUES (NULL, NULL, NULL, 'E', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
        "NULL, NULL, NULL)");
    assert_int_equal(
        suite_number("SELECT count(*) FROM outbox WHERE created_at LIKE '____-__-__T__:__:__.___Z' AND "
                     "message_id LIKE '________-____-7___-____-____________' AND encoding = 'utf8'"),
        2);
    assert_int_equal(suite_number("SELECT count(DISTINCT message_id) FROM outbox"), 2);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox WHERE message_id GLOB '*.*'"), 0);
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type) VALUES ('same', 'a', 'E'), ('same', 'a', 'E')");
}

static void ids_below_one_are_found(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql(
        "INSERT INTO outbox (id, destination, event_type, payload) VALUES (-5, 'a', 'E', 'p'), (0, 'a', 'E', 'p'), "
        "(7, 'a', 'E', 'p')");
    const struct hk_heads *heads = NULL;
    assert_int_equal(
        store_kind->ops->scan(store, &(struct hk_scan){.after_id = HK_FIRST_ID, .limit = 10}, &heads, NULL),
        HK_OK);
    assert_int_equal(heads->n, 3);
    assert_int_equal(heads->items[0].id, -5);
    assert_int_equal(
        store_kind->ops->scan(store, &(struct hk_scan){.after_id = -5, .limit = 10}, &heads, NULL), HK_OK);
    assert_int_equal(heads->n, 2);
    for (int64_t id = -5; id <= 0; id += 5) {
        struct hk_settle s =
            suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
        suite_settle_one(store, lane, &s);
    }
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 1);
    suite_close(store);
}

static void the_lowest_and_the_highest_id_are_found(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    store_kind->sql("INSERT INTO outbox (id, destination, event_type, message_key, payload) VALUES "
                    "(-9223372036854775808, 'a', 'E', 'k', 'p'), (9223372036854775807, 'a', 'E', 'k', 'p')");
    for (int kind = 0; kind < 3; kind++) { /* all, a destination's, a key's */
        struct hk_scan scan = {.after_id = HK_FIRST_ID,
                               .destination = kind ? "a" : NULL,
                               .key = kind == 2 ? "k" : NULL,
                               .limit = 10};
        const struct hk_heads *heads = NULL;
        assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
        assert_int_equal(heads->n, 2);
        assert_true(heads->items[0].id == INT64_MIN && heads->items[1].id == INT64_MAX);
        scan.after_id = heads->last_id;
        assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
        assert_int_equal(heads->n, 0);
        scan.after_id = INT64_MIN + 1;
        assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
        assert_int_equal(heads->n, 1);
    }
    suite_close(store);
}

/* What the admin writes with every act, and nothing that a relay or an application does. */
static void a_poll_tells_that_a_person_acted(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    const struct hk_poll *poll = NULL;
    int64_t lane = suite_acquire(store);
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    int64_t acts = poll->acts;
    suite_fill(1, "a", "k");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_true(poll->changed);
    assert_int_equal(poll->acts, acts);
    for (int i = 0; i < 3; i++) {
        store_kind->sql(
            i == 2 ? "DELETE FROM outbox_audit; INSERT INTO outbox_audit (at_ms, actor, act, reason) "
                     "VALUES (0, 'ann', 'discard', '')"
                   : "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (0, 'ann', 'discard', '')");
        assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
        assert_true(poll->changed && poll->acts != acts);
        acts = poll->acts;
    }
    suite_close(store);
}

/* What was undone in the file is undone in what the store remembers of its manifests, too. */
static void an_exchange_that_failed_leaves_its_manifest_as_it_was(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 2, true}};
    int64_t claim = suite_exchange(store, lane, NULL, 0, wants, 2)->claim;
    const struct hk_exchanged *done = NULL;
    for (int64_t id = 1; id <= 2; id++) {
        struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
        struct hk_exchange x = {.lane = lane, .lease_ms = 30000, .settles = &s, .n_settles = 1};
        store_kind->sql(
            "CREATE TRIGGER no BEFORE UPDATE ON outbox_relay BEGIN SELECT RAISE(ABORT, 'no'); END");
        assert_int_not_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_OK);
        store_kind->sql("DROP TRIGGER no");
        suite_settle_one(store, lane, &s); /* not stale */
        assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 2 - id);
    }
    suite_close(store);
}

/* What others have committed since is not undone by a checkpoint of the old log. */
static void a_log_that_was_deleted_ends_the_store_without_a_checkpoint(void **state)
{
    (void)state;
    static const char *const suffixes[] = {"-wal", "-shm"};
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_poll *poll = NULL;
    const struct hk_exchanged *done = NULL;
    struct hk_err err = {0};
    suite_fill(2, "a", NULL);
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        char file[400];
        snprintf(file, sizeof file, "%s%s", sqlite_path(), suffixes[i]);
        assert_int_equal(unlink(file), 0);
    }
    sqlite3 *app = sqlite_connect();
    assert_int_equal(
        sqlite3_exec(app, "CREATE TABLE kept (n); INSERT INTO kept VALUES (1)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_IO);
    assert_non_null(strstr(err.message, "-wal"));
    struct hk_exchange x = {.lane = lane, .lease_ms = 30000};
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_IO);
    suite_close(store);
    assert_int_equal(sqlite3_exec(app, "INSERT INTO kept SELECT n + 1 FROM kept", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(app);
}

static void an_id_is_never_given_out_twice(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(3, "a", NULL);
    for (int64_t id = 1; id <= 3; id++) {
        struct hk_settle s =
            suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_RETRY);
        suite_settle_one(store, lane, &s);
    }
    suite_fill(1, "a", NULL);
    assert_int_equal(suite_number("SELECT id FROM outbox"), 4);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, 3), HK_FROM_RETRY, 3, HK_SETTLE_SENT);
    suite_settle_one(store, lane, &s);
    s = suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 4), HK_FROM_OUTBOX, 4, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(suite_number("SELECT max(id) FROM outbox_retry"), 4);
    suite_close(store);
}

/* ---- the schema ---- */

static int dir_only(void **state)
{
    (void)state;
    suite_clock_ms = INT64_C(1800000000000);
    return sqlite_make_dir() ? 0 : -1;
}

static sqlite3 *raw(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(sqlite_path(), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static char *schema_of(sqlite3 *db)
{
    sqlite3_stmt *q = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema ORDER BY name)",
                           -1, &q, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    char *text = sqlite3_mprintf("%s", sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    return text;
}

static void init_creates_once_and_may_be_repeated(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_err err = {0};
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err), HK_OK);
    assert_true(done.created && done.wal);
    assert_int_equal(done.from, 0);
    assert_int_equal(done.to, NEWEST);
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err), HK_OK);
    assert_true(!done.created && done.wal);
    assert_int_equal(done.from, NEWEST);
    assert_int_equal(done.to, NEWEST);
}

static void printing_changes_nothing_and_gives_the_same_schema(void **state)
{
    (void)state;
    struct hk_buf sql;
    hk_buf_init(&sql, 1 << 20);
    struct hk_store_inited done = {0};
    struct hk_err err = {0};
    assert_int_equal(
        hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){.print = &sql}, &done, &err), HK_OK);
    assert_int_equal(done.to, NEWEST);
    assert_int_not_equal(access(sqlite_path(), F_OK), 0);
    sqlite3 *db = raw(hk_buf_cstr(&sql));
    char *printed = schema_of(db);
    sqlite3_close(db);
    assert_int_equal(unlink(sqlite_path()), 0);
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err), HK_OK);
    db = raw("SELECT 1");
    char *made = schema_of(db);
    sqlite3_close(db);
    assert_string_equal(printed, made);
    sqlite3_free(printed);
    sqlite3_free(made);
    hk_buf_reset(&sql);
    assert_int_equal(
        hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){.print = &sql}, &done, &err), HK_OK);
    assert_string_equal(hk_buf_cstr(&sql), ""); /* nothing to do */
    hk_buf_fini(&sql);
}

static void what_is_not_ours_is_not_touched(void **state)
{
    (void)state;
    static const char *const tables[] = {
        "CREATE TABLE outbox (id INTEGER PRIMARY KEY, body TEXT)",
        "CREATE TABLE Dead_Letters (x)",
        "CREATE TABLE outbox_meta (a, b)",
        "CREATE TABLE outbox_meta (key, value); INSERT INTO outbox_meta VALUES ('schema_version', 'one')",
        "CREATE VIEW outbox_messages AS SELECT 1",
    };
    for (size_t i = 0; i < COUNT(tables); i++) {
        sqlite3 *db = raw(tables[i]);
        struct hk_store_inited done;
        struct hk_store *store = NULL;
        struct hk_err err = {0};
        char *before = schema_of(db);
        enum hk_code rc =
            hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){.allow_wal = true}, &done, &err);
        NOTE_IF(rc != HK_CONFLICT, "row %zu: %s\n", i, err.message);
        assert_int_equal(rc, HK_CONFLICT);
        assert_non_null(strstr(err.message, "not hikyaku's"));
        rc =
            hk_store_sqlite.open(sqlite_kind.url(), &(struct hk_store_options){.create = true}, &store, &err);
        assert_int_equal(rc, HK_CONFLICT);
        char *after = schema_of(db);
        assert_string_equal(before, after);
        sqlite3_free(before);
        sqlite3_free(after);
        sqlite3_close(db);
        unlink(sqlite_path());
    }
}

static void an_applications_file_is_switched_to_wal_only_when_allowed(void **state)
{
    (void)state;
    sqlite3_close(raw("CREATE TABLE orders (x)"));
    struct hk_store_inited done;
    struct hk_err err = {0};
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err), HK_OK);
    assert_true(!done.created && !done.wal);
    assert_int_equal(done.to, NEWEST);
    struct hk_store *store = suite_open(NULL); /* works without, too */
    suite_acquire(store);
    suite_close(store);
    assert_int_equal(
        hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){.allow_wal = true}, &done, &err),
        HK_OK);
    assert_true(done.wal);
    assert_int_equal(done.from, NEWEST);
}

static void versions_that_do_not_fit_are_refused_with_advice(void **state)
{
    (void)state;
    struct hk_store_inited done;
    struct hk_store *store = NULL;
    struct hk_err err = {0};
    const struct hk_store_options options = {0};
    assert_int_equal(hk_store_sqlite.open(sqlite_kind.url(), &options, &store, &err), HK_NOTFOUND);
    assert_non_null(strstr(err.message, "hikyaku init"));
    assert_int_not_equal(access(sqlite_path(), F_OK), 0); /* looking creates nothing */

    sqlite3_close(raw("CREATE TABLE orders (x)"));
    const struct hk_store_options create = {.create = true};
    assert_int_equal(hk_store_sqlite.open(sqlite_kind.url(), &create, &store, &err),
                     HK_NOTFOUND); /* it does exist */
    assert_non_null(strstr(err.message, "hikyaku init"));

    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err), HK_OK);
    sqlite3_close(
        raw("UPDATE outbox_meta SET value = '99' WHERE key IN ('schema_version', 'compatible_from')"));
    assert_int_equal(hk_store_sqlite.open(sqlite_kind.url(), &options, &store, &err), HK_UNSUPPORTED);
    assert_non_null(strstr(err.message, "newer hikyaku"));
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err),
                     HK_UNSUPPORTED);
}

static void open_creates_a_file_that_is_not_there_when_asked(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(&(struct hk_store_options){.create = true});
    suite_acquire(store);
    suite_close(store);
}

static void utf16_databases_work(void **state)
{
    (void)state;
    sqlite3_close(raw("PRAGMA encoding = 'UTF-16le'; CREATE TABLE orders (x)"));
    struct hk_store_inited done;
    struct hk_err err = {0};
    assert_int_equal(hk_store_sqlite.init(sqlite_kind.url(), &(struct hk_store_init){0}, &done, &err), HK_OK);
    sqlite3_close(
        raw("INSERT INTO outbox (destination, event_type, payload) VALUES ('\xc3\xa4', 'E', 'h\xc3\xa4')"));
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_heads *heads = NULL;
    const struct hk_scan scan = {.destination = "\xc3\xa4", .limit = 1};
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
    assert_int_equal(heads->n, 1);
    const struct hk_want claim = {HK_FROM_OUTBOX, 1, true};
    const struct hk_exchanged *x = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_true(hk_str_eq(x->messages[0].payload, hk_str_of("h\xc3\xa4")));
    struct hk_settle s = suite_settle(x->claim, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    suite_close(store);
}

static void urls_are_checked(void **state)
{
    (void)state;
    struct hk_err err = {0};
    struct hk_store *store = NULL;
    const struct hk_store_options options = {0};
    assert_ptr_equal(hk_store_by_url("sqlite:x", &err), &hk_store_sqlite);
    assert_null(hk_store_by_url("oracle://u:secret@h/d", &err));
    assert_int_equal(err.code, HK_UNSUPPORTED);
    assert_null(strstr(err.message, "secret"));
    assert_null(hk_store_by_url("outbox.db", &err));
    assert_null(hk_store_by_url("", &err));
    assert_int_equal(hk_store_sqlite.open("sqlite:", &options, &store, &err), HK_INVALID);
    assert_int_equal(hk_store_sqlite.open("sqlite::memory:", &options, &store, &err), HK_INVALID);
    assert_int_equal(hk_store_sqlite.open("sqlite:file:x?mode=memory", &options, &store, &err), HK_NOTFOUND);
    assert_int_equal(hk_store_sqlite.open("sqlite:/no/such/folder/x.db",
                                          &(struct hk_store_options){.create = true}, &store, &err),
                     HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/no/such/folder/x.db"));
    hk_store_sqlite.close(NULL);
}

/* ---- columns that are gone ---- */

static void a_renamed_column_keeps_relays_from_starting(void **state)
{
    (void)state;
    static const char *const columns[] = {"outbox.payload", "outbox.policy", "outbox_retry.due_ms",
                                          "dead_letters.error_detail"};
    for (size_t i = 0; i < COUNT(columns); i++) {
        char sql[120], words[120];
        const char *column = strchr(columns[i], '.') + 1;
        int table = (int)(column - columns[i]) - 1;
        struct hk_err err = {0};
        int64_t lane = 0, now_ms = 0;
        struct hk_store *store = suite_open(NULL);
        snprintf(sql, sizeof sql, "ALTER TABLE %.*s RENAME %s TO other", table, columns[i], column);
        snprintf(words, sizeof words, "the table %.*s lacks %s:", table, columns[i], column);
        store_kind->sql(sql);
        assert_int_equal(store_kind->ops->acquire(store, "r", "b", 30000, &lane, &now_ms, &err),
                         HK_UNSUPPORTED);
        assert_non_null(strstr(err.message, words));
        struct hk_store_health health;
        assert_int_equal(hk_sa_inspect(store_kind->url(), 1000, &health, NULL), HK_OK);
        assert_int_equal(health.notes[0].level, HK_NOTE_FAIL);
        assert_non_null(strstr(health.notes[0].text, words));
        snprintf(sql, sizeof sql, "ALTER TABLE %.*s RENAME other TO %s", table, columns[i], column);
        store_kind->sql(sql);
        lane = suite_acquire(store);
        assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
        suite_close(store);
    }
}

int main(void)
{
    store_kind = &sqlite_kind;
    const struct CMUnitTest tests[] = {
        TEST(bad_values_mark_the_column_and_nothing_else),
        TEST(a_retry_with_bad_values_is_marked_too),
        TEST(a_message_without_an_id_is_marked),
        TEST(payloads_arrive_byte_for_byte),
        TEST(huge_rows_cost_nothing_and_can_be_buried),
        TEST(a_huge_payload_is_buried_in_little_memory_and_byte_for_byte),
        TEST(one_huge_row_does_not_hide_its_neighbours),
        TEST(the_least_insert_and_nulls_from_orms_work),
        TEST(ids_below_one_are_found),
        TEST(the_lowest_and_the_highest_id_are_found),
        TEST(a_poll_tells_that_a_person_acted),
        TEST(an_exchange_that_failed_leaves_its_manifest_as_it_was),
        TEST(a_log_that_was_deleted_ends_the_store_without_a_checkpoint),
        TEST(an_id_is_never_given_out_twice),
        TEST(a_renamed_column_keeps_relays_from_starting),
        cmocka_unit_test_setup_teardown(init_creates_once_and_may_be_repeated, dir_only, suite_teardown),
        cmocka_unit_test_setup_teardown(printing_changes_nothing_and_gives_the_same_schema, dir_only,
                                        suite_teardown),
        cmocka_unit_test_setup_teardown(what_is_not_ours_is_not_touched, dir_only, suite_teardown),
        cmocka_unit_test_setup_teardown(an_applications_file_is_switched_to_wal_only_when_allowed, dir_only,
                                        suite_teardown),
        cmocka_unit_test_setup_teardown(versions_that_do_not_fit_are_refused_with_advice, dir_only,
                                        suite_teardown),
        cmocka_unit_test_setup_teardown(open_creates_a_file_that_is_not_there_when_asked, dir_only,
                                        suite_teardown),
        cmocka_unit_test_setup_teardown(utf16_databases_work, dir_only, suite_teardown),
        cmocka_unit_test(urls_are_checked),
    };
    return cmocka_run_group_tests_name("store rows (sqlite)", tests, NULL, NULL);
}
