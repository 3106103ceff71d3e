/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of messages by filter: what fits is found in every place, page by page, and a call looks at a bounded number of rows. And messages
 * that people force. */
#include <stdlib.h>

#include "admin_suite.h"
#include "base/str.h"
#include "payload/filter.h"

#define assert_text(s, text) assert_true(hk_str_eq(s, hk_str_of(text)))
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)
#define CREATED              "'2027-01-02T00:00:00Z'"

/* One message in each place, each with its own key and correlation id, and others beside them. */
static void fill_places(void)
{
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, message_key, correlation_id, created_at, payload) "
        "VALUES ('o1', 'a', 'Made', 'k1', 'c1', " CREATED ", '{\"n\":42,\"t\":\"Tokyo\"}'), "
        "('o2', 'b', 'Order.Made', 'k2', 'c2', '2027-01-05T00:00:00Z', '{\"n\":7}'), "
        "('o3', 'b', 'Order.Gone', NULL, NULL, '2027-01-05T00:00:00Z', NULL)");
    store_kind->sql(
        "INSERT INTO outbox_retry (message_id, destination, event_type, message_key, correlation_id, created_at, due_ms, "
        "attempts, last_error, payload) VALUES "
        "('r1', 'a', 'Made', 'k1', 'c3', " CREATED ", 1, 1, 'connection RESET', '{\"n\":42}'), "
        "('r2', 'b', 'Order.Made', 'k3', 'c1', '2027-01-05T00:00:00Z', 1, 0, NULL, '{\"n\":\"42\"}')");
    store_kind->sql(
        "INSERT INTO dead_letters (message_id, destination, event_type, message_key, correlation_id, message_created_at, "
        "reason_code, error_message, attempts, first_failed_at, last_failed_at, created_at, payload) VALUES "
        "('d1', 'a', 'Made', 'k1', 'c1', " CREATED ", 'X', 'connection reset', 1, " CREATED ", " CREATED
        ", " CREATED ", '{\"n\":42}')");
    store_kind->sql(
        "INSERT INTO outbox_cancelled (message_id, destination, event_type, message_key, correlation_id, created_at, actor, "
        "reason, cancelled_ms, payload) VALUES ('x1', 'a', 'Made', 'k1', 'c1', " CREATED
        ", 'ann', 'why', 1, '{\"n\":42}')");
    store_kind->sql(
        "INSERT INTO outbox_sent (message_id, destination, event_type, message_key, correlation_id, attempts, status, life, "
        "created_at, sent_ms) VALUES ('s1', 'a', 'Made', 'k1', 'c1', 1, 200, 1, " CREATED ", 1)");
}

/* All that fits, in the order of the list, by pages of `limit`. */
static void list_all(struct hk_admin *admin, struct hk_list how, uint32_t limit, char out[200])
{
    const struct hk_rows *rows = NULL;
    struct hk_err err = {0};
    size_t len = 0;
    int calls = 0;
    out[0] = '\0';
    how.limit = limit;
    do {
        enum hk_code rc = admin_ops->list(admin, &how, &rows, &err);
        NOTE_IF(rc != HK_OK, "list: %s\n", err.message);
        assert_int_equal(rc, HK_OK);
        assert_true(rows->n <= limit && ++calls < 50);
        for (size_t i = 0; i < rows->n; i++)
            len += (size_t)snprintf(out + len, 200 - len, "%s%.*s", len ? " " : "",
                                    (int)rows->items[i].message_id.len, rows->items[i].message_id.ptr);
        how.resume = true;
        how.after_place = rows->last_place;
        how.after_id = rows->last_id;
    } while (rows->more);
}

static struct hk_list list_of(const struct hk_filter *filter, enum hk_state state)
{
    const struct hk_letter_query *q = hk_filter_query(filter);
    return (struct hk_list){.state = state,
                            .destination = q->destination,
                            .correlation_id = q->correlation_id,
                            .key = q->key,
                            .event_type = q->event_type,
                            .since_ms = q->since_ms,
                            .before_ms = q->before_ms,
                            .match = q->match,
                            .match_arg = q->match_arg,
                            .sieve = q->sieve};
}

static void every_filter_finds_what_fits_in_every_place(void **state)
{
    static const struct {
        const char *filter;
        enum hk_state state;
        bool live;
        const char *found;
    } cases[] = {
        {"", HK_STATE_NONE, false, "r2 r1 o3 o2 o1 d1 x1 s1"},
        {"", HK_STATE_NONE, true, "r2 r1 o3 o2 o1"},
        {"key:k1", HK_STATE_NONE, false, "r1 o1 d1 x1 s1"},
        {"key:k1", HK_STATE_NONE, true, "r1 o1"},
        {"correlation:c1", HK_STATE_NONE, false, "r2 o1 d1 x1 s1"},
        {"correlation:c1 destination:a", HK_STATE_NONE, false, "o1 d1 x1 s1"},
        {"type:Order.*", HK_STATE_NONE, false, "r2 o3 o2"},
        {"type:Order.?ade", HK_STATE_NONE, false, ""},
        {"type:*Made", HK_PENDING, false, "r2 o2 o1"},
        {"type:Order_Made", HK_STATE_NONE, false, ""},
        {"before:2027-01-03", HK_STATE_NONE, false, "r1 o1 d1 x1 s1"},
        {"since:2027-01-03", HK_STATE_NONE, false, "r2 o3 o2"},
        {"since:2027-01-02 before:2027-01-03 destination:a", HK_RETRYING, false, "r1"},
        {"payload.n:42", HK_STATE_NONE, false, "r2 r1 o1 d1 x1"},
        {"payload.n:42", HK_PENDING, false, "r2 o1"},
        {"payload.n:42 destination:a", HK_STATE_NONE, true, "r1 o1"},
        {"text:tokyo", HK_STATE_NONE, false, "o1"},
        {"\"connection reset\"", HK_STATE_NONE, false, "r1 d1"},
        {"text:s1", HK_STATE_NONE, false, "s1"},
        {"text:nowhere", HK_STATE_NONE, false, ""},
    };

    struct hk_admin *admin = admin_open();
    (void)state;
    fill_places();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint32_t limit = 1; limit < 12; limit += 2) {
            struct hk_filter *filter = NULL;
            char found[200];
            struct hk_err err = {0};
            assert_int_equal(hk_filter_parse_messages(cases[i].filter, 1, &filter, &err), HK_OK);
            struct hk_list how = list_of(filter, cases[i].state);
            how.live = cases[i].live;
            how.looks = limit < 6 ? limit : 0;
            list_all(admin, how, limit, found);
            NOTE_IF(strcmp(found, cases[i].found) != 0, "'%s' by %u\n", cases[i].filter, (unsigned)limit);
            assert_string_equal(found, cases[i].found);
            hk_filter_free(filter);
        }
    admin_ops->close(admin);
}

/* A needle in 12,000 rows: no call looks at all of them, each says how many it looked at, and none is left out in between. */
static void a_long_look_is_made_in_bounded_steps(void **state)
{
    struct hk_admin *admin = admin_open();
    struct hk_filter *filter = NULL;
    struct hk_err err = {0};
    const struct hk_rows *rows = NULL;
    uint64_t looked = 0;
    size_t n = 0, calls = 0;
    (void)state;
    store_kind->sql(
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 12000) INSERT INTO outbox "
        "(message_id, destination, event_type, payload) SELECT 'm' || x, 'a', 'T', CASE WHEN x IN (1, 6000, 12000) "
        "THEN '{\"n\":\"needle\"}' ELSE '{\"n\":\"hay\"}' END FROM c");
    assert_int_equal(hk_filter_parse_messages("payload.n:needle", 1, &filter, &err), HK_OK);
    struct hk_list how = list_of(filter, HK_STATE_NONE);
    how.limit = 10;
    do {
        assert_int_equal(admin_ops->list(admin, &how, &rows, &err), HK_OK);
        assert_true(rows->looked <= 5000);
        looked += rows->looked;
        n += rows->n;
        how.resume = true;
        how.after_place = rows->last_place;
        how.after_id = rows->last_id;
    } while (rows->more && ++calls < 50);
    assert_int_equal(n, 3);
    assert_int_equal(looked, 12000);
    assert_true(calls >= 2);
    hk_filter_free(filter);
    admin_ops->close(admin);
}

/* Each is seen once whatever the size of a page, the oldest first, and those of other messages are not. */
static void pages_show_every_attempt_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_tries *page = NULL;
    struct hk_err err = {0};
    for (int n = 1; n <= 7; n++) {
        char sql[512];
        (void)snprintf(
            sql, sizeof sql,
            "INSERT INTO outbox_attempts (message_id, destination, life, n, started_ms, duration_ms, "
            "settled_ms, status, class, error, possibly_delivered) VALUES "
            "('many', 'shop', 1, %d, 0, 3, 0, 500, 'transient', 'no', false), "
            "('other', 'shop', 1, %d, 0, 3, 0, 500, 'transient', 'no', false)",
            n, n);
        store_kind->sql(sql);
    }
    for (uint32_t limit = 1; limit <= 8; limit++) {
        uint32_t seen = 0;
        int64_t after = 0;
        do {
            assert_int_equal(admin_ops->attempts(admin, "many", after, limit, &page, &err), HK_OK);
            assert_true(page->n <= limit);
            for (size_t i = 0; i < page->n; i++) {
                assert_int_equal(page->items[i].n, ++seen);
                assert_true(page->items[i].id > after);
                assert_true(hk_str_eq(page->items[i].error, hk_str_of("no")));
                after = page->items[i].id;
            }
        } while (page->n > 0);
        assert_int_equal(seen, 7);
    }
    assert_int_equal(admin_ops->attempts(admin, "nobody", 0, 10, &page, &err), HK_OK);
    assert_int_equal(page->n, 0);
    admin_ops->close(admin);
}

/* ---- tasks ---- */

static enum hk_code create_task(struct hk_admin *admin, const char *queue, const char *name)
{
    const struct hk_str *ids = NULL;
    struct hk_err err = {0};
    const struct hk_enqueue item = {
        .message = {.destination = queue, .event_type = "task", .message_id = name}, .is_task = true};
    return admin_ops->enqueue(admin, &item, 1, &ids, &err);
}

static void names_of_tasks_are_given_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    assert_int_equal(create_task(admin, "q", "t1"), HK_OK);
    assert_int_equal(create_task(admin, "q", "t1"), HK_EXISTS);
    assert_int_equal(create_task(admin, "other", "t1"), HK_OK);
    assert_count("outbox WHERE message_id = 't1'", 2);
    store_kind->sql("UPDATE outbox_task SET created_ms = 1"); /* long ago, but it lives */
    assert_int_equal(create_task(admin, "q", "t1"), HK_EXISTS);
    store_kind->sql("DELETE FROM outbox WHERE destination = 'q'");
    assert_int_equal(create_task(admin, "q", "t1"), HK_OK);
    store_kind->sql("DELETE FROM outbox WHERE destination = 'q'");
    assert_int_equal(create_task(admin, "q", "t1"), HK_EXISTS); /* for an hour */
    store_kind->sql("UPDATE outbox_task SET created_ms = 1");
    store_kind->sql(
        "INSERT INTO dead_letters (message_id, destination, event_type, reason_code, attempts, first_failed_at, "
        "last_failed_at, created_at) VALUES ('t1', 'q', 'task', 'X', 1, " CREATED ", " CREATED ", " CREATED
        ")");
    assert_int_equal(create_task(admin, "q", "t1"), HK_EXISTS); /* a dead letter is no end */
    store_kind->sql("UPDATE dead_letters SET status = 'resolved'");
    assert_int_equal(create_task(admin, "q", "t1"), HK_OK);
    admin_ops->close(admin);
}

static void rows_are_fetched_by_where_they_lie(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_shown *out = NULL;
    struct hk_err err = {0};
    fill_places();
    const struct hk_ref refs[] = {{HK_IN_OUTBOX, 1}, {HK_IN_RETRY, 1}, {HK_IN_OUTBOX, 99}};
    assert_int_equal(admin_ops->fetch(admin, refs, 3, 100, &out, &err), HK_OK);
    assert_int_equal(out->n_rows, 2);
    for (size_t i = 0; i < 2; i++) {
        bool fresh = out->rows[i].place == HK_IN_OUTBOX;
        assert_text(out->rows[i].message_id, fresh ? "o1" : "r1");
        assert_text(out->rows[i].payload, fresh ? "{\"n\":42,\"t\":\"Tokyo\"}" : "{\"n\":42}");
    }
    assert_int_equal(admin_ops->fetch(admin, refs, 0, 100, &out, &err), HK_OK);
    assert_int_equal(out->n_rows, 0);
    admin_ops->close(admin);
}

/* ---- forced messages ---- */

static enum hk_code force(struct hk_admin *admin, const char *message_id)
{
    struct hk_err err = {0};
    struct hk_acted acted = {0};
    const struct hk_act act = {message_id, NULL, "ann", "because"};
    enum hk_code rc = admin_ops->force(admin, &act, &acted, &err);
    assert_int_equal(acted.changed, rc == HK_OK);
    assert_int_equal(err.message[0] != '\0', rc != HK_OK);
    return rc;
}

static size_t forced_heads(struct hk_store *store, int64_t *out_ids)
{
    const struct hk_heads *heads = NULL;
    struct hk_err err = {0};
    const struct hk_scan scan = {
        .source = HK_FROM_RETRY, .forced = true, .after_due_ms = INT64_MIN, .limit = 10};
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, &err), HK_OK);
    for (size_t i = 0; i < heads->n; i++)
        out_ids[i] = heads->items[i].id;
    return heads->n;
}

static void a_forced_message_is_found_until_an_attempt_is_settled(void **state)
{
    (void)state;
    int64_t ids[20];
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, not_before) "
                    "VALUES ('failed', 'a', 'Made', 'p', NULL)");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, not_before) "
                    "VALUES ('fresh', 'b', 'Made', 'p', NULL)");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, not_before) "
                    "VALUES ('later', 'c', 'Made', 'p', '2028-01-01T00:00:00Z')");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, not_before) "
                    "VALUES ('other', 'a', 'Made', 'p', NULL)");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    s.due_ms = suite_clock_ms + 100000;
    suite_settle_one(store, lane, &s);
    assert_int_equal(forced_heads(store, ids), 0);
    assert_int_equal(force(admin, "failed"), HK_OK);
    assert_int_equal(force(admin, "fresh"), HK_OK);
    assert_int_equal(force(admin, "later"), HK_OK);
    assert_int_equal(force(admin, "nobody"), HK_NOTFOUND);
    assert_count("outbox_audit WHERE act = 'force'", 3);
    assert_count("outbox", 1);
    assert_int_equal(forced_heads(store, ids), 3); /* of all destinations */
    int64_t claim = suite_claim(store, lane, HK_FROM_RETRY, ids[0]);
    assert_int_equal(forced_heads(store, ids + 1), 2);
    assert_int_equal(force(admin, "failed"), HK_BUSY);
    struct hk_settle back = suite_settle(claim, HK_FROM_RETRY, ids[0], HK_SETTLE_RELEASE);
    suite_settle_one(store, lane, &back);
    assert_int_equal(forced_heads(store, ids), 3); /* nothing was tried */
    claim = suite_claim(store, lane, HK_FROM_RETRY, ids[0]);
    s = suite_settle(claim, HK_FROM_RETRY, ids[0], HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(forced_heads(store, ids), 2);
    assert_count("outbox_retry WHERE forced", 2);
    suite_close(store);
    admin_ops->close(admin);
}

/* Others of its key may wait in outbox before it; and where one goes that a route leads only the relay knows. */
static void what_may_overtake_others_cannot_be_forced(void **state)
{
    (void)state;
    int64_t ids[20];
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, message_key) "
                    "VALUES ('tried', 'a', 'Made', 'p', 'k')");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, message_key) "
                    "VALUES ('keyed', 'a', 'Made', 'p', 'k')");
    store_kind->sql("INSERT INTO outbox (message_id, event_type, payload) VALUES ('routed', 'Made', 'p')");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(force(admin, "keyed"), HK_CONFLICT);
    assert_int_equal(force(admin, "routed"), HK_CONFLICT);
    assert_count("outbox", 2);
    assert_count("outbox_audit", 0);
    assert_int_equal(force(admin, "tried"), HK_OK);
    assert_int_equal(forced_heads(store, ids), 1);
    suite_close(store);
    admin_ops->close(admin);
}

size_t admin_list_tests(struct CMUnitTest *out, size_t room)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_filter_finds_what_fits_in_every_place),
        TEST(a_long_look_is_made_in_bounded_steps),
        TEST(pages_show_every_attempt_once),
        TEST(names_of_tasks_are_given_once),
        TEST(rows_are_fetched_by_where_they_lie),
        TEST(a_forced_message_is_found_until_an_attempt_is_settled),
        TEST(what_may_overtake_others_cannot_be_forced),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
