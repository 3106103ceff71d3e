/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL alone: rows that hold anything that PostgreSQL lets in, texts that nobody foresaw, and no memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <hikyaku/alloc.h>

#include "base/str.h"
#include "pg_relay.h"

#define TEST(name)           cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)
#define LEASE_MS             30000
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)

static struct hk_head scan_one(struct hk_store *store)
{
    const struct hk_heads *heads = NULL;
    struct hk_err err = {0};
    while (relay_poll(store)->late) /* the horizon moves when what it uncovered was looked at */
        relay_scan(store, (struct hk_scan){.late = true, .after_id = HK_FIRST_ID, .limit = 10});
    enum hk_code rc =
        store_kind->ops->scan(store, &(struct hk_scan){.after_id = HK_FIRST_ID, .limit = 10}, &heads, &err);
    NOTE_IF(rc != HK_OK, "scan: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(heads->n, 1);
    return heads->items[0];
}

static const struct hk_message *claim_one(struct hk_store *store, int64_t lane, bool payload)
{
    const struct hk_want claim = {HK_FROM_OUTBOX, suite_number("SELECT max(id) FROM outbox"), payload};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_int_equal(done->n_messages, 1);
    return &done->messages[0];
}

static void insert(const char *column, const char *value)
{
    char sql[600];
    store_kind->sql("DELETE FROM outbox");
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (destination, event_type, payload, %s) VALUES ('a', 'Made', 'p', %s)",
             column, value);
    store_kind->sql(sql);
}

static void times_may_be_infinite_and_numbers_useless(void **state)
{
    (void)state;

    static const struct {
        const char *column, *value, *malformed;
        int64_t not_before_ms, expires_ms;
    } rows[] = {
        {"not_before", "'infinity'", "not_before", 0, 0},
        {"not_before", "'-infinity'", NULL, 0, 0},
        {"not_before", "NULL", NULL, 0, 0},
        {"not_before", "'1960-01-01Z'", NULL, 0, 0},
        {"not_before", "'2027-01-15T09:00:00.0000Z'", NULL, INT64_C(1800003600000), 0},
        {"not_before", "'2027-01-15T09:00:00.000001Z'", NULL, INT64_C(1800003600001), 0}, /* never early */
        {"not_before", "'294276-12-31T23:59:59Z'", NULL, INT64_C(9224318015999000), 0},
        {"expires_at", "'infinity'", NULL, 0, 0},
        {"expires_at", "'-infinity'", NULL, 0, 1},
        {"expires_at", "'1970-01-01T00:00:00Z'", NULL, 0, 1},
        {"expires_at", "'4713-01-01 BC'", NULL, 0, 1},
        {"expires_at", "'2027-01-15T09:00:00.0005Z'", NULL, 0, INT64_C(1800003600000)},
        {"max_attempts", "-1", "max_attempts", 0, 0},
        {"max_attempts", "0", NULL, 0, 0},
        {"max_attempts", "NULL", NULL, 0, 0},
        {"encoding", "'rot13'", "encoding", 0, 0},
        {"encoding", "'BASE64'", NULL, 0, 0},
        {"encoding", "''", NULL, 0, 0},
        {"encoding", "NULL", NULL, 0, 0},
    };

    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        insert(rows[i].column, rows[i].value);
        struct hk_head head = scan_one(store);
        const struct hk_message *m = claim_one(store, lane, true);
        const char *got[] = {head.malformed, m->malformed};
        for (size_t k = 0; k < 2; k++) {
            bool same = got[k] == rows[i].malformed ||
                        (got[k] && rows[i].malformed && !strcmp(got[k], rows[i].malformed));
            NOTE_IF(!same, "row %zu: %s\n", i, got[k] ? got[k] : "good");
            assert_true(same);
        }
        assert_int_equal(head.not_before_ms, rows[i].not_before_ms);
        assert_int_equal(head.expires_ms, rows[i].expires_ms);
        assert_int_equal(m->expires_ms, rows[i].expires_ms);
    }
    suite_close(store);
}

/* Also where a row goes on to: settled as far as it can be, with nothing but what PostgreSQL itself demands. */
static void nulls_from_orms_stand_for_the_default(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (int kind = HK_SETTLE_SENT; kind <= HK_SETTLE_FAN_OUT; kind++) {
        store_kind->sql("DELETE FROM outbox");
        store_kind->sql(
            "INSERT INTO outbox (max_attempts, not_before, expires_at, created_at, message_id, destination, "
            "event_type, message_key, headers, content_type, encoding, correlation_id, traceparent, "
            "idempotency_key, policy, payload) VALUES (NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, "
            "NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
        struct hk_head head = scan_one(store);
        assert_null(head.malformed);
        assert_int_equal(head.destination.len + head.key.len + head.payload_bytes, 0);
        const struct hk_message *m = claim_one(store, lane, true);
        char id[30];
        snprintf(id, sizeof id, "outbox-%lld", (long long)m->id);
        assert_true(hk_str_eq(m->message_id, hk_str_of(id)));
        assert_null(m->malformed);
        int64_t claim = suite_number("SELECT max(claim) FROM outbox_claim");
        struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, m->id, (enum hk_settle_kind)kind);
        const struct hk_str to[] = {hk_str_of("x"), hk_str_of("y")};
        s.fan_out = to;
        s.n_fan_out = 2;
        suite_settle_one(store, lane, &s);
    }
    assert_count("outbox", 0);
    assert_count("outbox_sent WHERE message_id LIKE 'outbox-%' AND destination = 'a'", 1);
    assert_count("outbox_retry WHERE message_id LIKE 'outbox-%'", 4);
    assert_count("dead_letters WHERE message_id LIKE 'outbox-%' AND payload IS NULL", 1);
    assert_int_equal(
        suite_number("SELECT count(DISTINCT shard) FROM outbox_retry WHERE destination IN ('x', 'y')"), 1);
    suite_close(store);
}

/* Destinations that are NULL are shown to whoever reads for himself, as those that are '' are. */
static void rows_without_destination_are_found_by_every_destinations_scan(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    store_kind->sql(
        "INSERT INTO outbox (destination, event_type, message_key) VALUES ('b', 'M', 'k'), (NULL, 'M', 'k'), "
        "('a', 'M', 'k'), ('', 'M', 'k'), ('a', 'M', 'l'), (NULL, 'M', NULL)");
    relay_poll(store);
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = "a", .limit = 9}), "2,3,4,5,6");
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = "a", .after_id = 2, .limit = 2}),
                        "3,4+");
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = "a", .key = "k", .limit = 9}),
                        "2,3,4");
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = "", .limit = 9}), "2,4,6");
    suite_close(store);
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* None of it is read, and all of it can be buried. */
static void huge_rows_cost_nothing(void **state)
{
    (void)state;
    static const char *const columns[] = {"payload",      "headers",        "message_key", "message_id",
                                          "content_type", "encoding",       "destination", "event_type",
                                          "policy",       "correlation_id", "traceparent", "idempotency_key"};
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(columns); i++) {
        char sql[300];
        store_kind->sql("DELETE FROM outbox");
        store_kind->sql("INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'Made', 'p')");
        snprintf(sql, sizeof sql, "UPDATE outbox SET %s = repeat('x', 50000000)", columns[i]);
        store_kind->sql(sql);
        long before = peak_kib();
        struct hk_head head = scan_one(store);
        bool in_head = i == 2 || i == 5 || i == 6 || i == 7;
        NOTE_IF((head.malformed != NULL) != in_head, "%s: %s\n", columns[i],
                head.malformed ? head.malformed : "good");
        assert_int_equal(head.malformed != NULL, in_head);
        const struct hk_message *m = claim_one(store, lane, true);
        NOTE_IF(m->oversized != (i == 0) || (m->malformed != NULL) != (i != 0), "%s\n", columns[i]);
        assert_int_equal(m->oversized, i == 0);
        assert_int_equal(m->malformed != NULL, i != 0);
        assert_true(peak_kib() - before < 20000);
        int64_t claim = suite_number("SELECT max(claim) FROM outbox_claim");
        struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, m->id, HK_SETTLE_DEAD);
        suite_settle_one(store, lane, &s);
    }
    assert_count("dead_letters", (int)COUNT(columns));
    assert_count("outbox", 0);
    const struct hk_held_key *keys = NULL;
    size_t n = 1;
    long before = peak_kib();
    assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, NULL), HK_OK);
    assert_int_equal(n, 0);
    assert_true(peak_kib() - before < 20000);
    suite_close(store);
}

/* ---- texts that no B-tree takes ---- */

/* 10 KiB that cannot be compressed. */
#define NOISE                                                                                                \
    "(SELECT string_agg(chr(20000 + floor(random() * 20000)::integer), '') FROM generate_series(1, 3500))"

static const char *const text_columns[] = {"message_id",  "destination",     "event_type", "message_key",
                                           "headers",     "content_type",    "encoding",   "correlation_id",
                                           "traceparent", "idempotency_key", "policy",     "payload"};

static void insert_noise(const char *column)
{
    char sql[900];
    if (column)
        snprintf(sql, sizeof sql, "INSERT INTO outbox (%s%s) VALUES (%s%s)", column,
                 strcmp(column, "event_type") ? ", event_type" : "", NOISE,
                 strcmp(column, "event_type") ? ", 'Made'" : "");
    else
        snprintf(
            sql, sizeof sql,
            "INSERT INTO outbox (message_id, destination, event_type, message_key, headers, content_type, "
            "encoding, correlation_id, traceparent, idempotency_key, policy, payload) "
            "SELECT n, n, n, n, n, n, n, n, n, n, n, n FROM (SELECT %s AS n) x",
            NOISE);
    store_kind->sql(sql); /* which is the application's transaction */
}

/* The row of outbox_retry that a poll shows, and the scan of its destination. */
static int64_t find_retry(struct hk_store *store)
{
    const struct hk_poll *poll = relay_poll(store);
    const struct hk_heads *heads = NULL;
    char name[256]; /* as much as the engine remembers of a name that it does not know */
    assert_true(poll->changed);
    assert_int_equal(poll->n_dests, 1);
    assert_true(hk_str_copy(name, sizeof name, poll->dests[0].name));
    const struct hk_scan scan = {
        .source = HK_FROM_RETRY, .destination = name, .after_due_ms = INT64_MIN, .limit = 9};
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
    assert_int_equal(heads->n, 1);
    return heads->items[0].id;
}

static void end_as_letter(const char *column, struct hk_store **store, bool crash)
{
    const struct hk_held_key *keys = NULL;
    size_t n = 0;
    int64_t lane = suite_acquire(*store), claim, id;
    insert_noise(column);
    const struct hk_message *m = claim_one(*store, lane, true);
    claim = suite_number("SELECT max(claim) FROM outbox_claim");
    if (crash) {
        suite_clock_ms += LEASE_MS + 1;
        suite_close(*store);
        *store = suite_open(NULL);
        lane = suite_acquire(*store);
    } else {
        struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, m->id, HK_SETTLE_RETRY);
        s.destination = (struct hk_str){"", 0}; /* as the row says */
        s.due_ms = suite_clock_ms;
        suite_settle_one(*store, lane, &s);
    }
    assert_int_equal(store_kind->ops->held_keys(*store, &keys, &n, NULL), HK_OK);
    id = find_retry(*store);
    claim = suite_claim(*store, lane, HK_FROM_RETRY, id);
    struct hk_settle s = suite_settle(claim, HK_FROM_RETRY, id, HK_SETTLE_DEAD);
    s.destination = (struct hk_str){"", 0};
    suite_settle_one(*store, lane, &s);
    assert_int_equal(store_kind->ops->held_keys(*store, &keys, &n, NULL), HK_OK);
    assert_int_equal(n, !column || strcmp(column, "message_key") == 0);
    assert_int_equal(store_kind->ops->release(*store, lane, NULL), HK_OK);
}

static void whatever_was_written_can_become_a_dead_letter(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    for (size_t i = 0; i < 2 * (COUNT(text_columns) + 1); i++) {
        const char *column = i / 2 < COUNT(text_columns) ? text_columns[i / 2] : NULL;
        char sql[200];
        end_as_letter(column, &store, i % 2);
        snprintf(sql, sizeof sql, "SELECT octet_length(%s) FROM dead_letters", column ? column : "payload");
        NOTE_IF(suite_number(sql) != 10500, "%s\n", column ? column : "all");
        assert_int_equal(suite_number(sql), 10500);
        assert_count("outbox", 0);
        assert_count("outbox_retry", 0);
        store_kind->sql("DELETE FROM dead_letters");
    }
    suite_close(store);
}

/* Names that begin alike are shown together, each row with its own name; keys are told apart to the last byte. */
static void long_names_and_keys_are_told_apart(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    char name[80], longer[80], key[300], sql[1600];
    memset(name, 'd', sizeof name);
    memset(longer, 'd', sizeof longer);
    memset(key, 'k', sizeof key);
    name[63] = longer[70] = key[299] = '\0';
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (destination, event_type, message_key) VALUES ('%s', 'M', '%sa'), "
             "('%s', 'M', '%sb'), ('other', 'M', '%sa')",
             name, key, longer, key, key);
    store_kind->sql(sql);
    relay_poll(store);
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = name, .limit = 9}), "1,2");
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = longer, .limit = 9}), "1,2");
    snprintf(sql, sizeof sql, "%sb", key);
    assert_string_equal(relay_scan(store, (struct hk_scan){.destination = name, .key = sql, .limit = 9}),
                        "2");
    for (int64_t id = 1; id <= 3; id++) {
        struct hk_settle s =
            suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_RETRY);
        s.destination = (struct hk_str){"", 0};
        s.due_ms = suite_clock_ms;
        suite_settle_one(store, lane, &s);
    }
    const struct hk_poll *poll = relay_poll(store);
    assert_int_equal(poll->n_dests, 2);
    assert_int_equal(poll->dests[0].name.len, 63);
    assert_string_equal(relay_scan(store, (struct hk_scan){.source = HK_FROM_RETRY,
                                                           .destination = name,
                                                           .after_due_ms = INT64_MIN,
                                                           .limit = 9}),
                        "1,2");
    assert_string_equal(relay_scan(store, (struct hk_scan){.source = HK_FROM_RETRY,
                                                           .destination = name,
                                                           .key = sql,
                                                           .after_due_ms = INT64_MIN,
                                                           .limit = 9}),
                        "2");
    suite_close(store);
}

static void payloads_arrive_byte_for_byte(void **state)
{
    (void)state;

    static const struct {
        const char *encoding, *payload;
        struct hk_str expected;
        bool undecodable;
    } rows[] = {
        {"'utf8'", "'{\"a\": \"h\xc3\xa4\"}'", {"{\"a\": \"h\xc3\xa4\"}", 12}, false},
        {"'base64'", "'AAEC/w=='", {"\0\1\2\xff", 4}, false},
        {"'base64'",
         "encode(decode(repeat('41', 100), 'hex'), 'base64')",
         {NULL, 100},
         false}, /* breaks its lines */
        {"'base64'", "'not base64!'", {"", 0}, true},
        {"'base64'", "''", {"", 0}, false},
        {"'utf8'", "E'\\x01\\x1f'", {"\1\x1f", 2}, false},
    };

    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char sql[400];
        snprintf(sql, sizeof sql, "INSERT INTO outbox (event_type, encoding, payload) VALUES ('M', %s, %s)",
                 rows[i].encoding, rows[i].payload);
        store_kind->sql(sql);
        const struct hk_message *m = claim_one(store, lane, true);
        assert_int_equal(m->undecodable, rows[i].undecodable);
        assert_int_equal(m->payload.len, rows[i].expected.len);
        if (rows[i].expected.ptr)
            assert_true(hk_str_eq(m->payload, rows[i].expected));
    }
    suite_close(store);
}

/* What comes from outside goes in as it is, or with a mark where PostgreSQL cannot keep it; it is never SQL. */
static void hostile_texts_are_only_texts(void **state)
{
    (void)state;
    const struct hk_str evil[] = {hk_str_of("'; DROP TABLE outbox; --"),
                                  hk_str_of("\",{}\\\"NULL"),
                                  hk_str_of("NULL"),
                                  {"a\0b", 3},
                                  {"\xff\xfe", 2},
                                  hk_str_of("$1 @outbox ?1 %s")};
    struct hk_store *store =
        suite_open(&(struct hk_store_options){.keep_sent = true, .history = HK_STORE_HISTORY_ALL});
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(evil); i++)
        for (int kind = HK_SETTLE_SENT; kind <= HK_SETTLE_FAN_OUT; kind++) {
            suite_fill(1, "a", NULL);
            int64_t id = suite_number("SELECT max(id) FROM outbox");
            struct hk_settle s = suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX,
                                              id, (enum hk_settle_kind)kind);
            s.destination = s.reason = s.attempt.error = s.attempt.cause = s.attempt.address = evil[i];
            s.attempt.response_body = s.attempt.request_headers = evil[i];
            s.fan_out = &evil[i];
            s.n_fan_out = 1;
            suite_settle_one(store, lane, &s);
        }
    assert_count("outbox_sent WHERE destination = '''; DROP TABLE outbox; --'", 1);
    assert_count("outbox_sent WHERE destination = 'NULL'", 1);
    assert_count("outbox_sent WHERE destination = E'\",{}\\\\\"NULL'", 1);
    assert_count("outbox_sent WHERE destination = E'a\\uFFFDb'", 1);
    assert_count("outbox_retry WHERE destination = '$1 @outbox ?1 %s'", 3);
    assert_count("outbox_attempts WHERE response_body = '\\x610062'", 3);
    assert_count("dead_letters", (int)COUNT(evil));
    struct hk_err err;
    assert_int_equal(store_kind->ops->pause(store, "'; --", true, "\"ann\"", "\\", &err), HK_OK);
    const struct hk_poll *poll = relay_poll(store);
    assert_true(poll->n_dests >= COUNT(evil));
    suite_close(store);
}

/* Many ways to be sent in one exchange, from several manifests, with gaps: each row of outbox_sent is its own message's. */
static void many_are_sent_at_once_each_as_it_was(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);

    enum {
        MANY = 300
    };
    static struct hk_settle settles[MANY];
    static struct hk_want wants[MANY];
    static char names[7][8];
    suite_fill(MANY, "", NULL);
    size_t n = 0;
    for (int part = 0; part < 3; part++) { /* of each manifest every third id, some left out */
        size_t n_wants = 0;
        for (int id = 1 + part; id <= MANY; id += 3)
            if (id % 11)
                wants[n_wants++] = (struct hk_want){HK_FROM_OUTBOX, id, true};
        const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, wants, n_wants);
        assert_int_equal(done->n_messages, n_wants);
        for (size_t i = 0; i < n_wants; i++) {
            int64_t id = wants[i].id;
            struct hk_settle *s = &settles[n++];
            *s = suite_settle(done->claim, HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
            snprintf(names[id % 7], sizeof names[0], "d%d", (int)(id % 7));
            s->destination = hk_str_of(names[id % 7]);
            s->attempt.status = 200 + (int)(id % 5);
            s->history.attempts = 1 + (uint32_t)(id % 2);
        }
    }
    const struct hk_exchanged *done = suite_exchange(store, lane, settles, n, NULL, 0);
    for (size_t i = 0; i < n; i++)
        assert_false(done->stale[i]);
    assert_int_equal(
        suite_number("SELECT count(*) FROM outbox_sent WHERE destination = 'd' || original_outbox_id % 7 AND "
                     "status = 200 + original_outbox_id % 5 AND attempts = 1 + original_outbox_id % 2"),
        (int64_t)n);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox WHERE id % 11 = 0"), MANY / 11);
    assert_count("outbox", MANY / 11);
    assert_count("outbox_claim", 0);
    suite_close(store);
}

/* ---- no memory ---- */

static int left = -1; /* allocations; below 0: any number */

static void *resize_counted(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    if (left == 0)
        return NULL;
    left -= left > 0;
    return realloc(ptr, bytes);
}

static void release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

/* Whenever memory runs out, the next call goes on as if that one had not been: also when it ran out behind the COMMIT. */
static void an_exchange_without_memory_can_be_repeated(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql("INSERT INTO outbox (event_type, encoding, payload) "
                    "SELECT 'M', 'base64', repeat('QUJD', 30000) FROM generate_series(1, 60)");
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    int failures = 0;
    for (int64_t id = 1; id < 60; id++) {
        struct hk_settle s =
            suite_settle(claim, HK_FROM_OUTBOX, id, id % 2 ? HK_SETTLE_SENT : HK_SETTLE_DEAD);
        const struct hk_want next = {HK_FROM_OUTBOX, id + 1, true};
        const struct hk_exchange x = {
            .lane = lane, .lease_ms = LEASE_MS, .settles = &s, .n_settles = 1, .wants = &next, .n_wants = 1};
        const struct hk_exchanged *done = NULL;
        struct hk_err err;
        enum hk_code rc = HK_NOMEM;
        left = (int)(id % 30);
        rc = store_kind->ops->exchange(store, &x, &done, &err);
        left = -1;
        failures += rc != HK_OK;
        assert_true(rc == HK_OK || rc == HK_NOMEM);
        if (rc != HK_OK)
            rc = store_kind->ops->exchange(store, &x, &done, &err);
        assert_int_equal(rc, HK_OK);
        assert_false(done->stale[0]);
        assert_int_equal(done->n_messages, 1);
        assert_int_equal(done->messages[0].payload.len, 90000);
        claim = done->claim;
    }
    print_message("# out of memory %d times\n", failures);
    assert_true(failures > 3);
    assert_int_equal(
        suite_number("SELECT (SELECT count(*) FROM outbox_sent) + (SELECT count(*) FROM dead_letters)"), 59);
    assert_count("outbox_claim", 1);
    suite_close(store);
}

static void reading_without_memory_can_be_repeated(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    suite_fill(3, "a", "k");
    PGconn *slow = pg_connect(NULL);
    int failures = 0;
    for (int room = 0; room < 40; room++) {
        const struct hk_poll *poll = NULL;
        const struct hk_heads *heads = NULL;
        const struct hk_held_key *keys = NULL;
        size_t n = 0;
        pg_exec(slow, "SELECT pg_current_xact_id()"); /* so that there is something to see */
        left = room;
        bool failed = store_kind->ops->poll(store, &poll, NULL) != HK_OK;
        failed |= store_kind->ops->scan(store, &(struct hk_scan){.limit = 300}, &heads, NULL) != HK_OK;
        failed |= store_kind->ops->held_keys(store, &keys, &n, NULL) != HK_OK;
        left = -1;
        failures += failed;
        if (failed && !poll)
            assert_true(relay_poll(store)->changed); /* what was not told is told now */
        assert_string_equal(relay_scan(store, (struct hk_scan){.limit = 9}), "1,2,3");
    }
    print_message("# out of memory %d times\n", failures);
    assert_true(failures > 0);
    PQfinish(slow);
    suite_close(store);
}

/* ---- what applications put on our tables ---- */

/* One message, claimed and confirmed; the answer to its settle. */
static const struct hk_exchanged *send_one(struct hk_store *store)
{
    int64_t lane = suite_acquire(store), id = suite_number("SELECT min(id) FROM outbox");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
    return suite_exchange(store, lane, &s, 1, NULL, 0);
}

static void a_foreign_key_of_the_applications_is_named_also_when_it_is_deferred(void **state)
{
    (void)state;
    char found[HK_STORE_GUARDS_MAX];
    struct hk_store *store = suite_open(NULL);
    assert_int_equal(store_kind->ops->guards(store, found, NULL), HK_OK);
    assert_string_equal(found, ""); /* of ours nothing is told */
    suite_close(store);
    suite_fill(1, "a", NULL);
    store_kind->sql("CREATE TABLE orders (message bigint CONSTRAINT orders_message_fk REFERENCES outbox (id) "
                    "DEFERRABLE INITIALLY DEFERRED); INSERT INTO orders SELECT id FROM outbox");
    store = suite_open(NULL);
    const struct hk_exchanged *done = send_one(store);
    assert_non_null(done->stuck);
    assert_non_null(strstr(done->stuck[0], "orders_message_fk"));
    assert_int_equal(store_kind->ops->guards(store, found, NULL), HK_OK);
    assert_non_null(strstr(found, "foreign key orders_message_fk on outbox"));
    suite_close(store);
    store_kind->sql("DROP TABLE orders");
}

/* COMMIT is the first to refuse: what the exchange claimed was answered by then, and is claimed again without what is refused. */
static void what_is_refused_at_commit_is_claimed_once_all_the_same(void **state)
{
    (void)state;
    suite_fill(3, "a", NULL);
    store_kind->sql(
        "CREATE TABLE orders (message bigint REFERENCES outbox (id) DEFERRABLE INITIALLY DEFERRED); "
        "INSERT INTO orders SELECT min(id) FROM outbox");
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store), id = suite_number("SELECT min(id) FROM outbox");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
    struct hk_want wants[] = {{HK_FROM_OUTBOX, id + 1, true}, {HK_FROM_OUTBOX, id + 2, true}};
    const struct hk_exchanged *done = suite_exchange(store, lane, &s, 1, wants, 2);
    assert_non_null(done->stuck);
    assert_non_null(done->stuck[0]);
    assert_int_equal(done->n_messages, 2);
    assert_int_equal(done->messages[0].id + done->messages[1].id, 2 * id + 3);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 1);
    suite_close(store);
    store_kind->sql("DROP TABLE orders");
}

/* Who may read and not delete sees rows that never go. */
static void row_level_security_without_a_policy_for_delete_holds_rows(void **state)
{
    (void)state;
    suite_fill(1, "a", NULL);
    store_kind->sql(
        "ALTER TABLE outbox ENABLE ROW LEVEL SECURITY; ALTER TABLE outbox FORCE ROW LEVEL SECURITY; "
        "CREATE POLICY look ON outbox FOR SELECT USING (true); CREATE ROLE stranger LOGIN; "
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO stranger; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO stranger");
    struct hk_store *store = NULL;
    assert_int_equal(store_kind->ops->open(pg_url("stranger", ""),
                                           &(struct hk_store_options){.keep_sent = true}, &store, NULL),
                     HK_OK);
    const struct hk_exchanged *done = send_one(store);
    assert_non_null(done->stuck);
    assert_non_null(strstr(done->stuck[0], "row-level security active for stranger on outbox"));
    suite_close(store);
    store_kind->sql("DROP OWNED BY stranger; DROP ROLE stranger");
}

static void assert_no_lane(const char *sql, const char *words)
{
    struct hk_err err = {0};
    int64_t lane = 0, now_ms = 0;
    store_kind->sql(sql);
    struct hk_store *store = suite_open(NULL);
    assert_int_equal(store_kind->ops->acquire(store, "r", "b", 30000, &lane, &now_ms, &err), HK_UNSUPPORTED);
    assert_non_null(strstr(err.message, words));
    suite_close(store);
}

static void a_rule_on_outbox_keeps_relays_from_starting(void **state)
{
    (void)state;
    assert_no_lane("CREATE RULE keep AS ON DELETE TO outbox DO INSTEAD NOTHING", "the rule keep on ");
}

static void a_renamed_column_keeps_relays_from_starting(void **state)
{
    (void)state;
    assert_no_lane("ALTER TABLE outbox RENAME payload TO body", "the column payload of outbox");
}

/* Columns that are called as something in our statements is. */
static void columns_of_the_applications_get_in_nobodys_way(void **state)
{
    (void)state;
    store_kind->sql(
        "ALTER TABLE outbox ADD small text, ADD fits text, ADD now text, ADD earliest_ms text, ADD how text, "
        "ADD name text, ADD claim text, ADD source text, ADD huge text, ADD due_ms text");
    suite_fill(3, "a", NULL);
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (int i = 0; i < 3; i++) { /* the later ones read small messages along */
        relay_poll(store);
        assert_string_equal(relay_scan(store, (struct hk_scan){.limit = 9}), "1,2,3");
        assert_string_equal(relay_scan(store, (struct hk_scan){.destination = "a", .limit = 9}), "1,2,3");
    }
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    suite_claim(store, lane, HK_FROM_OUTBOX, 2);
    suite_close(store);
    suite_clock_ms += 60000;
    store = suite_open(NULL);
    suite_acquire(store); /* takes over */
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 2);
    suite_close(store);
}

/* By OVERRIDING SYSTEM VALUE, by replication, or from a dump with an old sequence. */
static void an_id_that_the_sequence_did_not_give_out_is_polled_for(void **state)
{
    (void)state;
    suite_fill(1, "a", NULL);
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    assert_int_equal(relay_poll(store)->last_id, 1);
    assert_string_equal(relay_scan(store, (struct hk_scan){.limit = 9}), "1");
    store_kind->sql(
        "INSERT INTO outbox (id, destination, event_type) OVERRIDING SYSTEM VALUE VALUES (1000000, 'a', 'Made')");
    assert_true(relay_poll(store)->last_id >= 1000000);
    assert_string_equal(relay_scan(store, (struct hk_scan){.after_id = 1, .limit = 9}), "1000000");
    suite_fill(1, "a", NULL); /* and one below it is late */
    assert_true(relay_poll(store)->late);
    suite_close(store);
}

static void a_child_of_outbox_keeps_relays_from_starting(void **state)
{
    (void)state;
    assert_no_lane("CREATE TABLE more () INHERITS (outbox)", "more inherits from ");
}

int main(void)
{
    static const struct hk_allocator allocator = {resize_counted, release, NULL};
    const struct CMUnitTest tests[] = {
        TEST(times_may_be_infinite_and_numbers_useless),
        TEST(nulls_from_orms_stand_for_the_default),
        TEST(rows_without_destination_are_found_by_every_destinations_scan),
        TEST(huge_rows_cost_nothing),
        TEST(whatever_was_written_can_become_a_dead_letter),
        TEST(long_names_and_keys_are_told_apart),
        TEST(payloads_arrive_byte_for_byte),
        TEST(hostile_texts_are_only_texts),
        TEST(many_are_sent_at_once_each_as_it_was),
        TEST(an_exchange_without_memory_can_be_repeated),
        TEST(reading_without_memory_can_be_repeated),
        TEST(a_foreign_key_of_the_applications_is_named_also_when_it_is_deferred),
        TEST(what_is_refused_at_commit_is_claimed_once_all_the_same),
        TEST(row_level_security_without_a_policy_for_delete_holds_rows),
        TEST(a_rule_on_outbox_keeps_relays_from_starting),
        TEST(a_child_of_outbox_keeps_relays_from_starting),
        TEST(a_renamed_column_keeps_relays_from_starting),
        TEST(columns_of_the_applications_get_in_nobodys_way),
        TEST(an_id_that_the_sequence_did_not_give_out_is_polled_for),
    };
    hk_allocator_set(&allocator);
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    return cmocka_run_group_tests_name("PostgreSQL rows", tests, NULL, NULL);
}
