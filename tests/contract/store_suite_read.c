/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's other part: what is read, shown, kept and thrown away. */
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "store_suite_impl.h"

#define LEASE_MS             30000
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)
#define TEST(name)           cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

static const struct hk_poll *poll_it(struct hk_store *store)
{
    const struct hk_poll *poll = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->poll(store, &poll, &err);
    NOTE_IF(rc != HK_OK, "poll: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return poll;
}

/* Polls first: where ids are not in the order of commits, a scan shows what the last poll saw. */
static const struct hk_heads *scan_it(struct hk_store *store, struct hk_scan scan)
{
    const struct hk_heads *heads = NULL;
    struct hk_err err = {0};
    (void)poll_it(store);
    enum hk_code rc = store_kind->ops->scan(store, &scan, &heads, &err);
    NOTE_IF(rc != HK_OK, "scan: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return heads;
}

/* Claims and settles one message, so that it ends where `kind` puts it. */
static void put(struct hk_store *store, int64_t lane, enum hk_source source, int64_t id,
                enum hk_settle_kind kind, int64_t due_ms)
{
    struct hk_settle s = suite_settle(suite_claim(store, lane, source, id), source, id, kind);
    s.destination = (struct hk_str){0}; /* as the row says */
    s.due_ms = due_ms;
    suite_settle_one(store, lane, &s);
}

static const struct hk_poll_dest *dest_of(const struct hk_poll *poll, const char *name)
{
    for (size_t i = 0; i < poll->n_dests; i++)
        if (hk_str_eq(poll->dests[i].name, hk_str_of(name)))
            return &poll->dests[i];
    return NULL;
}

/* ---- poll ---- */

static void poll_tells_of_changes_and_only_of_them(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    const struct hk_poll *poll = poll_it(store);
    assert_true(poll->changed); /* the first */
    assert_int_equal(poll->last_id, HK_FIRST_ID);
    assert_int_equal(poll->now_ms, suite_clock_ms);
    assert_false(poll_it(store)->changed);
    suite_fill(2, "a", NULL);
    poll = poll_it(store);
    assert_true(poll->changed);
    assert_int_equal(poll->last_id, 2);
    assert_false(poll_it(store)->changed);

    /* and of what we did ourselves, where a poll shows it */
    int64_t lane = suite_acquire(store);
    assert_true(poll_it(store)->changed);
    assert_false(poll_it(store)->changed);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY, suite_clock_ms + 5);
    poll = poll_it(store);
    assert_true(poll->changed);
    assert_int_equal(dest_of(poll, "a")->retry_due_ms, suite_clock_ms + 5);
    assert_false(poll_it(store)->changed);
    suite_claim(store, lane, HK_FROM_RETRY, 1);
    assert_true(poll_it(store)->changed);
    put(store, lane, HK_FROM_OUTBOX, 2, HK_SETTLE_RETRY, suite_clock_ms);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, 2), HK_FROM_RETRY, 2, HK_SETTLE_SENT);
    assert_true(poll_it(store)->changed);
    suite_settle_one(store, lane, &s);
    assert_true(poll_it(store)->changed); /* when the next one is due may not have been told yet */
    assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
    poll = poll_it(store);
    assert_int_equal(dest_of(poll, "a")->retry_due_ms, suite_clock_ms + 5);
    suite_close(store);
}

static void poll_tells_that_a_person_acted_and_settles_are_not_persons(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    int64_t acts = poll_it(store)->acts;
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY, suite_clock_ms + 5);
    assert_int_equal(poll_it(store)->acts, acts);
    store_kind->sql(
        "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1, 'person', 'discard', 'why')");
    const struct hk_poll *poll = poll_it(store);
    assert_true(poll->changed);
    assert_true(poll->acts != acts);
    suite_close(store);
}

static void poll_lists_destinations_with_retries_and_paused_ones(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    struct hk_err err;
    suite_fill(3, "a", NULL);
    suite_fill(1, "b", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY, suite_clock_ms + 700);
    put(store, lane, HK_FROM_OUTBOX, 2, HK_SETTLE_RETRY, suite_clock_ms + 300);
    put(store, lane, HK_FROM_OUTBOX, 4, HK_SETTLE_RETRY, suite_clock_ms + 900);
    assert_int_equal(store_kind->ops->pause(store, "c", true, "ann", "they asked", &err), HK_OK);
    assert_int_equal(store_kind->ops->pause(store, "b", true, "ann", "they asked", &err), HK_OK);
    const struct hk_poll *poll = poll_it(store);
    assert_int_equal(poll->n_dests, 3);
    assert_int_equal(dest_of(poll, "a")->retry_due_ms, suite_clock_ms + 300);
    assert_false(dest_of(poll, "a")->paused);
    assert_int_equal(dest_of(poll, "b")->retry_due_ms, suite_clock_ms + 900);
    assert_true(dest_of(poll, "b")->paused);
    assert_int_equal(dest_of(poll, "c")->retry_due_ms, INT64_MAX);
    assert_true(dest_of(poll, "c")->paused);

    assert_int_equal(store_kind->ops->pause(store, "c", false, "ann", "done", &err), HK_OK);
    suite_claim(store, lane, HK_FROM_RETRY,
                suite_number("SELECT id FROM outbox_retry WHERE destination = 'b'"));
    poll = poll_it(store);
    assert_true(poll->changed); /* what we did ourselves is seen, too */
    assert_null(dest_of(poll, "c"));
    assert_int_equal(dest_of(poll, "b")->retry_due_ms, INT64_MAX); /* claimed: nothing to take there */
    suite_close(store);
}

/* ---- scan ---- */

static void scan_walks_outbox_in_order_and_changes_nothing(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_fill(5, "a", NULL);
    int64_t after = 0;
    int seen = 0;
    for (;;) {
        const struct hk_heads *heads = scan_it(store, (struct hk_scan){.after_id = after, .limit = 2});
        for (size_t i = 0; i < heads->n; i++)
            assert_int_equal(heads->items[i].id, ++seen);
        assert_int_equal(heads->more, heads->n == 2);
        if (!heads->more)
            break;
        after = heads->last_id;
    }
    assert_int_equal(seen, 5);
    const struct hk_heads *none = scan_it(store, (struct hk_scan){.after_id = 5, .limit = 2});
    assert_int_equal(none->n, 0);
    assert_false(none->more);
    assert_int_equal(none->last_id, 5);
    assert_count("outbox_claim", 0);
    suite_close(store);
}

static void scan_shows_what_is_needed_to_choose(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    store_kind->sql(
        "INSERT INTO outbox (destination, event_type, payload, message_key, not_before, expires_at) VALUES "
        "('a', 'Made', 'h\xc3\xa4', 'k', '2027-01-15T09:00:00.5Z', '2027-01-15T12:00:00+02:00')");
    const struct hk_heads *heads = scan_it(store, (struct hk_scan){.limit = 10});
    assert_int_equal(heads->n, 1);
    const struct hk_head *h = &heads->items[0];
    assert_int_equal(h->source, HK_FROM_OUTBOX);
    assert_true(hk_str_eq(h->destination, hk_str_of("a")));
    assert_true(hk_str_eq(h->event_type, hk_str_of("Made")));
    assert_true(hk_str_eq(h->key, hk_str_of("k")));
    assert_int_equal(h->payload_bytes, 3); /* bytes, not characters */
    assert_int_equal(h->not_before_ms, INT64_C(1800003600500));
    assert_int_equal(h->expires_ms, INT64_C(1800007200000));
    assert_null(h->malformed);
    assert_int_equal(heads->now_ms, suite_clock_ms);
    suite_close(store);
}

/* The store's time stays ahead, for leases and waits; what an application named goes by the clock. */
static void one_wrong_moment_of_the_clock_makes_nothing_due(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600 * 1000, day_ms = 24 * hour_ms;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER, suite_clock_ms + hour_ms);
    suite_clock_ms += day_ms;
    suite_exchange(store, lane, NULL, 0, NULL, 0);
    const struct hk_heads *heads = scan_it(store, (struct hk_scan){.limit = 10});
    assert_int_equal(heads->behind_ms, 0);
    suite_clock_ms -= day_ms - 4000;
    heads = scan_it(store, (struct hk_scan){.limit = 10});
    assert_true(heads->behind_ms > (uint64_t)day_ms / 2);
    assert_int_equal(heads->now_ms - (int64_t)heads->behind_ms, suite_clock_ms);
    if (store_kind->host_clock) { /* else the rows are due by the server's clock, which no test moves */
        const struct hk_poll *poll = NULL;
        struct hk_err err;
        struct hk_scan due = {
            .source = HK_FROM_RETRY, .destination = "a", .after_due_ms = INT64_MIN, .limit = 10};
        assert_int_equal(scan_it(store, due)->n, 0);
        suite_clock_ms += hour_ms;
        assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
        assert_true(poll->changed && poll->n_dests == 1 && poll->dests[0].retry_due_ms <= poll->now_ms);
        assert_int_equal(scan_it(store, due)->n, 1);
    }
    suite_close(store);
}

/* While the clock is behind a poll says that something may be due by it. When it has caught up the next poll says when what is
 * left is due, though nothing has changed: no other need come for long. */
static void a_clock_that_has_caught_up_is_told(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600 * 1000, day_ms = 24 * hour_ms, right_ms = suite_clock_ms;
    const struct hk_poll *poll = NULL;
    struct hk_err err;
    if (!store_kind->host_clock)
        return; /* the time of a poll is the server's */
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER, right_ms + 3 * day_ms);
    suite_clock_ms = right_ms + day_ms;
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed && poll->dests[0].retry_due_ms == right_ms + 3 * day_ms);
    suite_clock_ms = right_ms + hour_ms;
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed && poll->behind_ms && poll->dests[0].retry_due_ms == poll->now_ms);
    suite_clock_ms = right_ms + 2 * day_ms;
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed && !poll->behind_ms);
    assert_int_equal(poll->dests[0].retry_due_ms, right_ms + 3 * day_ms);
    suite_clock_ms += hour_ms;
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_false(poll->changed);
    suite_close(store);
}

/* A message that was deferred was due by a clock that was wrong, and is fanned out then. Its parts do not wait for the wrong time. */
static void parts_of_a_deferred_message_are_due_when_it_was(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600 * 1000, day_ms = 24 * hour_ms, right_ms = suite_clock_ms;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_str to[] = {hk_str_of("x"), hk_str_of("y")};
    suite_fill(1, "", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER, right_ms + hour_ms);
    suite_clock_ms = right_ms + day_ms;
    int64_t id = suite_number("SELECT id FROM outbox_retry");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, id), HK_FROM_RETRY, id, HK_SETTLE_FAN_OUT);
    s.fan_out = to;
    s.n_fan_out = 2;
    suite_settle_one(store, lane, &s);
    assert_int_equal(suite_number("SELECT min(due_ms) FROM outbox_retry"), right_ms + hour_ms);
    assert_int_equal(suite_number("SELECT max(due_ms) FROM outbox_retry"), right_ms + hour_ms);
    const struct hk_scan due = {
        .source = HK_FROM_RETRY, .destination = "x", .after_due_ms = INT64_MIN, .limit = 10};
    suite_clock_ms = right_ms + hour_ms - 1;
    assert_int_equal(scan_it(store, due)->n, 0);
    suite_clock_ms = right_ms + hour_ms;
    assert_int_equal(scan_it(store, due)->n, 1);
    suite_close(store);
}

/* The same, and the clock is right again before the parts are written. */
static void parts_of_a_deferred_message_are_not_due_before_it(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600 * 1000, day_ms = 24 * hour_ms, right_ms = suite_clock_ms;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_str to[] = {hk_str_of("x"), hk_str_of("y")};
    suite_fill(1, "", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER, right_ms + hour_ms);
    suite_clock_ms = right_ms + day_ms;
    int64_t id = suite_number("SELECT id FROM outbox_retry");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, id), HK_FROM_RETRY, id, HK_SETTLE_FAN_OUT);
    s.fan_out = to;
    s.n_fan_out = 2;
    suite_clock_ms = right_ms;
    suite_settle_one(store, lane, &s);
    assert_int_equal(suite_number("SELECT min(due_ms) FROM outbox_retry"), right_ms + hour_ms);
    suite_close(store);
}

/* It was routed by a clock that was wrong, and its parts could not leave then: each waits for its time, and is sent in it. */
static void parts_of_a_scheduled_message_wait_for_its_time(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600 * 1000, day_ms = 24 * hour_ms, right_ms = suite_clock_ms;
    if (!store_kind->host_clock)
        return; /* they are due by the server's clock, and so not before the wrong moment */
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_str to[] = {hk_str_of("x"), hk_str_of("y")};
    struct hk_scan due = {
        .source = HK_FROM_RETRY, .destination = "x", .after_due_ms = INT64_MIN, .limit = 10};
    suite_fill(1, "", NULL);
    char text[HK_TIME_TEXT_MAX], sql[128];
    hk_format_rfc3339(right_ms + hour_ms, text);
    (void)snprintf(sql, sizeof sql, "UPDATE outbox SET not_before = '%s'", text);
    store_kind->sql(sql);
    suite_clock_ms = right_ms + day_ms;
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_FAN_OUT);
    s.fan_out = to;
    s.n_fan_out = 2;
    suite_settle_one(store, lane, &s);
    int64_t id = suite_number("SELECT id FROM outbox_retry WHERE destination = 'x'");
    struct hk_want want = {.source = HK_FROM_RETRY, .id = id, .payload = true};
    suite_clock_ms = right_ms + 1000;
    assert_int_equal(suite_exchange(store, lane, NULL, 0, &want, 1)->n_messages, 0);
    assert_int_equal(scan_it(store, due)->n, 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 0);
    suite_clock_ms = right_ms + hour_ms;
    assert_int_equal(scan_it(store, due)->n, 1);
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &want, 1);
    assert_int_equal(done->n_messages, 1);
    assert_string_equal(done->messages[0].destination.ptr, "x");
    suite_close(store);
}

/* 0 ms is a time like any other, and not "never". */
static void what_expired_with_the_epoch_has_expired(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    store_kind->sql("INSERT INTO outbox (destination, event_type, payload, not_before, expires_at) VALUES "
                    "('a', 'Made', 'p', '1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z'), "
                    "('a', 'Made', 'p', '1969-12-31T00:00:00Z', '1969-12-31T00:00:00Z'), "
                    "('a', 'Made', 'p', NULL, NULL)");
    const struct hk_heads *heads = scan_it(store, (struct hk_scan){.limit = 10});
    assert_int_equal(heads->n, 3);
    for (size_t i = 0; i < 2; i++) {
        assert_true(heads->items[i].expires_ms != 0 && heads->items[i].expires_ms <= 1);
        assert_true(heads->items[i].not_before_ms <= 1);
        assert_null(heads->items[i].malformed);
    }
    assert_int_equal(heads->items[2].expires_ms, 0);
    suite_close(store);
}

static void scan_finds_by_destination_and_by_key(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    suite_fill(2, "a", "k");  /* 1, 2 */
    suite_fill(2, "b", "k");  /* 3, 4 */
    suite_fill(1, "a", NULL); /* 5 */
    suite_fill(1, "a", "l");  /* 6 */
    suite_fill(1, "a", "k");  /* 7 */
    const struct hk_heads *h =
        scan_it(store, (struct hk_scan){.destination = "a", .after_id = 1, .limit = 3});
    assert_int_equal(h->n, 3);
    assert_int_equal(h->items[0].id, 2);
    assert_int_equal(h->items[1].id, 5);
    assert_int_equal(h->items[2].id, 6);
    assert_true(h->more);
    h = scan_it(store, (struct hk_scan){.destination = "a", .key = "k", .limit = 9});
    assert_int_equal(h->n, 3);
    assert_int_equal(h->items[0].id, 1);
    assert_int_equal(h->items[2].id, 7);
    h = scan_it(store, (struct hk_scan){.destination = "a", .key = "k", .after_id = 2, .limit = 9});
    assert_int_equal(h->n, 1);
    h = scan_it(store, (struct hk_scan){.destination = "nobody", .limit = 9});
    assert_int_equal(h->n, 0);

    struct hk_err err;
    assert_int_equal(
        store_kind->ops->scan(store, &(struct hk_scan){.source = HK_FROM_RETRY, .limit = 1}, &h, &err),
        HK_INVALID);
    suite_close(store);
}

static void scan_gives_due_retries_by_keyset(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    static const int due[] = {30, 10, 10, 90, 20}; /* ms after the start */
    suite_fill(COUNT(due), "a", NULL);
    suite_fill(1, "b", NULL);
    for (size_t i = 0; i < COUNT(due); i++)
        put(store, lane, HK_FROM_OUTBOX, (int64_t)i + 1, HK_SETTLE_RETRY, suite_clock_ms + due[i]);
    put(store, lane, HK_FROM_OUTBOX, 6, HK_SETTLE_RETRY, suite_clock_ms + 10);
    struct hk_scan scan = {
        .source = HK_FROM_RETRY, .destination = "a", .after_due_ms = INT64_MIN, .limit = 2};
    assert_int_equal(scan_it(store, scan)->n, 0);
    suite_clock_ms += 50;
    static const int64_t expected[] = {2, 3, 5, 1}; /* ids of outbox_retry are those of outbox here */
    size_t seen = 0;
    for (;;) {
        const struct hk_heads *heads = scan_it(store, scan);
        for (size_t i = 0; i < heads->n; i++, seen++) {
            assert_true(seen < COUNT(expected));
            assert_int_equal(heads->items[i].id, expected[seen]);
            assert_int_equal(heads->items[i].not_before_ms, 0);
        }
        if (!heads->more)
            break;
        scan.after_due_ms = heads->last_due_ms;
        scan.after_id = heads->last_id;
    }
    assert_int_equal(seen, COUNT(expected));
    suite_claim(store, lane, HK_FROM_RETRY, 2);
    scan = (struct hk_scan){.source = HK_FROM_RETRY, .destination = "a", .limit = 9};
    assert_int_equal(scan_it(store, scan)->n, 3); /* what is claimed is not shown */
    suite_fill(1, "a", "k");
    put(store, lane, HK_FROM_OUTBOX, 7, HK_SETTLE_RETRY, suite_clock_ms);
    scan.key = "k";
    assert_int_equal(scan_it(store, scan)->n, 1);
    suite_claim(store, lane, HK_FROM_RETRY, 7);
    assert_int_equal(scan_it(store, scan)->n, 0);
    suite_close(store);
}

static void a_scheduled_row_is_due_when_its_time_has_come(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql("INSERT INTO outbox (destination, event_type, payload, not_before) "
                    "VALUES ('a', 'Made', 'p', '2027-01-15T09:00:00Z')");
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER, suite_clock_ms); /* earlier than it may be */
    const struct hk_scan scan = {.source = HK_FROM_RETRY, .destination = "a", .limit = 9};
    suite_clock_ms += 3600 * 1000 - 1;
    assert_int_equal(scan_it(store, scan)->n, 0);
    suite_clock_ms++;
    const struct hk_heads *heads = scan_it(store, scan);
    assert_int_equal(heads->n, 1);
    assert_int_equal(heads->items[0].not_before_ms, 0);
    suite_close(store);
}

static void a_retry_knows_whether_it_is_the_first_of_its_key(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", "k");
    suite_fill(1, "a", "l");
    suite_fill(1, "a", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER, suite_clock_ms); /* retry 1: k, holds nothing */
    struct hk_scan scan = {.source = HK_FROM_RETRY, .destination = "a", .limit = 9};
    assert_true(scan_it(store, scan)->items[0].key_first);
    for (int64_t id = 2; id <= 4; id++)
        put(store, lane, HK_FROM_OUTBOX, id, HK_SETTLE_RETRY, suite_clock_ms);
    const struct hk_heads *h = scan_it(store, scan);
    assert_int_equal(h->n, 4);
    assert_false(h->items[0].key_first); /* deferred: retry 2 holds the key */
    assert_true(h->items[1].key_first);
    assert_true(h->items[2].key_first);
    assert_true(h->items[3].key_first); /* no key */
    put(store, lane, HK_FROM_RETRY, 1, HK_SETTLE_RETRY, suite_clock_ms);
    h = scan_it(store, (struct hk_scan){.source = HK_FROM_RETRY, .destination = "a", .key = "k", .limit = 9});
    assert_int_equal(h->n, 2);
    assert_true(h->items[0].key_first);
    assert_false(h->items[1].key_first);
    suite_close(store);
}

static void held_keys_are_those_of_retries_and_open_letters(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", "retried");
    suite_fill(1, "b", "dead");
    suite_fill(1, "a", "deferred");
    suite_fill(1, "a", "waiting");
    suite_fill(1, "a", NULL);
    suite_fill(1, "a", "sent");
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY, suite_clock_ms);
    put(store, lane, HK_FROM_OUTBOX, 2, HK_SETTLE_RETRY, suite_clock_ms);
    put(store, lane, HK_FROM_OUTBOX, 3, HK_SETTLE_DEAD, 0);
    put(store, lane, HK_FROM_OUTBOX, 4, HK_SETTLE_DEFER, suite_clock_ms + 1);
    put(store, lane, HK_FROM_OUTBOX, 6, HK_SETTLE_RETRY, suite_clock_ms);
    put(store, lane, HK_FROM_OUTBOX, 7, HK_SETTLE_SENT, 0);
    const struct hk_held_key *keys = NULL;
    size_t n = 0;
    assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, NULL), HK_OK);
    assert_int_equal(n, 3); /* one for each row: the engine counts them */
    size_t dead = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_dead = keys[i].dead;
        dead += is_dead;
        assert_true(hk_str_eq(keys[i].destination, hk_str_of(is_dead ? "b" : "a")));
        assert_true(hk_str_eq(keys[i].key, hk_str_of(is_dead ? "dead" : "retried")));
    }
    assert_int_equal(dead, 1);
    store_kind->sql("UPDATE dead_letters SET status = 'discarded'");
    assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, NULL), HK_OK);
    assert_int_equal(n, 2);
    suite_close(store);
}

/* No message with such a key can be sent, so that nobody waits for it; and it may be as long as a row can be. */
static void a_key_that_is_too_long_holds_nobody(void **state)
{
    (void)state;
    static const int lengths[] = {262144, 262145};
    static char sql[263000], key[262146];
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        memset(key, 'k', (size_t)lengths[i]);
        snprintf(
            sql, sizeof sql,
            "INSERT INTO outbox (destination, event_type, message_key, payload) VALUES ('a', 'Made', '%s', 'p')",
            key);
        store_kind->sql(sql);
        store_kind->sql(sql);
        (void)poll_it(store);
        put(store, lane, HK_FROM_OUTBOX, (int64_t)i * 2 + 1, HK_SETTLE_RETRY, suite_clock_ms);
        put(store, lane, HK_FROM_OUTBOX, (int64_t)i * 2 + 2, HK_SETTLE_DEAD, 0);
        const struct hk_held_key *keys = NULL;
        size_t n = 0;
        assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, NULL), HK_OK);
        assert_int_equal(n, 2); /* the retry and the letter of the shorter one */
        assert_int_equal(keys[0].key.len, 262144);
        assert_int_equal(keys[1].key.len, 262144);
    }
    suite_close(store);
}

/* ---- dead letters ---- */

static void a_dead_letter_tells_the_whole_story(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, payload, correlation_id, traceparent, headers, "
        "created_at) VALUES ('m', '', 'Made', 'p', 'c', 't', '{}', '2027-01-01T00:00:00.000Z')");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    s.reason = hk_str_of("HTTP_422");
    s.first_failed_ms = suite_clock_ms - 5000;
    s.attempt.response_body = hk_str_of("no\"\n");
    s.attempt.response_headers = hk_str_of("{\"x\":\"y\"}");
    suite_settle_one(store, lane, &s);
    assert_count("outbox", 0);
    assert_count(
        "dead_letters WHERE message_id = 'm' AND original_outbox_id = 1 AND event_type = 'Made' AND "
        "destination = 'a' AND payload = 'p' AND headers = '{}' AND reason_code = 'HTTP_422' AND "
        "error_message = 'it said no' AND attempts = 1 AND first_failed_at = '2027-01-15T07:59:55.000Z' AND "
        "last_failed_at = '2027-01-15T08:00:00.000Z' AND last_attempt_at = '2027-01-15T07:59:59.980Z' AND "
        "correlation_id = 'c' AND traceparent = 't' AND status = 'failed' AND life = 1 AND requeued_at IS NULL AND "
        "resolved_at IS NULL AND created_at = '2027-01-15T08:00:00.000Z' AND "
        "message_created_at = '2027-01-01T00:00:00.000Z'",
        1);
    assert_string_equal(
        store_kind->value("SELECT error_detail FROM dead_letters"),
        "{\"cause\":\"HTTP_500\",\"class\":\"transient\",\"status\":500,\"address\":\"\",\"duration_ms\":20,"
        "\"possibly_delivered\":false,\"response_headers\":{\"x\":\"y\"},\"response_body\":\"no\\\"\\n\"}");
    suite_close(store);
}

static void a_message_that_was_never_sent_dies_without_an_attempt(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "nowhere", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    s.attempt = (struct hk_attempt_record){.error = hk_str_of("no such destination")};
    s.history.attempts = 0;
    s.first_failed_ms = 0;
    s.destination = (struct hk_str){0};
    s.reason = hk_str_of("UNKNOWN_DESTINATION");
    suite_settle_one(store, lane, &s);
    assert_count(
        "dead_letters WHERE destination = 'nowhere' AND attempts = 0 AND last_attempt_at IS NULL AND "
        "error_message = 'no such destination' AND error_detail IS NULL",
        1);
    assert_count("outbox_attempts", 0);
    suite_close(store);
}

/* As the rescue commands will: a letter goes back through outbox_retry under its own id. */
static void requeue(void)
{
    store_kind->sql(
        "INSERT INTO outbox_retry (original_outbox_id, message_id, destination, event_type, payload, due_ms, "
        "life, letter_id) SELECT original_outbox_id, message_id, destination, event_type, 'fixed', 0, life + 1, id "
        "FROM dead_letters");
    store_kind->sql("UPDATE dead_letters SET status = 'retrying', requeued_at = '2027-01-15T08:00:00.000Z'");
}

static void a_requeued_message_resolves_or_reopens_its_letter(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD, 0);
    requeue();
    const struct hk_want claim = {HK_FROM_RETRY, 1, true};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_int_equal(done->messages[0].life, 2);
    assert_int_equal(done->messages[0].letter_id, 1);
    struct hk_settle s = suite_settle(done->claim, HK_FROM_RETRY, 1, HK_SETTLE_DEAD);
    s.reason = hk_str_of("HTTP_404");
    suite_settle_one(store, lane, &s);
    assert_count("dead_letters", 1);
    assert_count(
        "dead_letters WHERE id = 1 AND status = 'failed' AND life = 2 AND reason_code = 'HTTP_404' AND "
        "payload = 'fixed' AND requeued_at IS NOT NULL",
        1);
    assert_count("outbox_retry", 0);

    requeue();
    put(store, lane, HK_FROM_RETRY, 2, HK_SETTLE_SENT, 0);
    assert_count(
        "dead_letters WHERE status = 'resolved' AND resolved_at = '2027-01-15T08:00:00.000Z' AND life = 2",
        1);
    assert_count("outbox_sent WHERE life = 3", 1);

    store_kind->sql("UPDATE dead_letters SET status = 'failed', resolved_at = NULL");
    requeue();
    store_kind->sql("DELETE FROM dead_letters"); /* somebody purged it */
    put(store, lane, HK_FROM_RETRY, 3, HK_SETTLE_DEAD, 0);
    assert_count("dead_letters WHERE status = 'failed' AND life = 3", 1);
    suite_close(store);
}

/* One that died before it was routed, requeued, goes to several: each that dies has a letter. */
static void a_requeued_fan_out_has_a_letter_for_each_that_dies(void **state)
{
    (void)state;
    static const struct hk_str to[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD, 0);
    requeue();
    store_kind->sql("UPDATE outbox_retry SET crashes = 2");
    const struct hk_want claim = {HK_FROM_RETRY, 1, true};
    struct hk_settle s = suite_settle(suite_exchange(store, lane, NULL, 0, &claim, 1)->claim, HK_FROM_RETRY,
                                      1, HK_SETTLE_FAN_OUT);
    s.fan_out = to;
    s.n_fan_out = 3;
    suite_settle_one(store, lane, &s);
    assert_count("outbox_retry WHERE letter_id = 1 AND life = 2 AND crashes = 2", 3);
    put(store, lane, HK_FROM_RETRY, 2, HK_SETTLE_DEAD, 0);
    assert_count("dead_letters", 1);
    assert_count("dead_letters WHERE status = 'failed'", 1);
    put(store, lane, HK_FROM_RETRY, 3, HK_SETTLE_SENT, 0); /* resolves nobody else's */
    assert_count("dead_letters WHERE status = 'failed'", 1);
    store_kind->sql("UPDATE dead_letters SET status = 'discarded'"); /* whose record is kept */
    put(store, lane, HK_FROM_RETRY, 4, HK_SETTLE_DEAD, 0);
    assert_count("dead_letters WHERE status = 'discarded' AND life = 2 AND destination = 'a'", 1);
    assert_count("dead_letters WHERE status = 'failed' AND life = 2 AND destination = 'c'", 1);
    assert_count("outbox_retry", 0);
    suite_close(store);
}

static void a_letter_that_one_part_resolved_is_open_again_when_another_dies(void **state)
{
    (void)state;
    static const struct hk_str to[] = {{"a", 1}, {"b", 1}};
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD, 0);
    requeue();
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, 1), HK_FROM_RETRY, 1, HK_SETTLE_FAN_OUT);
    s.fan_out = to;
    s.n_fan_out = 2;
    suite_settle_one(store, lane, &s);
    put(store, lane, HK_FROM_RETRY, 2, HK_SETTLE_SENT, 0);
    assert_count("dead_letters WHERE status = 'resolved' AND resolved_at IS NOT NULL", 1);
    put(store, lane, HK_FROM_RETRY, 3, HK_SETTLE_DEAD, 0);
    assert_count("dead_letters", 1);
    assert_count("dead_letters WHERE status = 'failed' AND resolved_at IS NULL AND resolution IS NULL", 1);
    suite_close(store);
}

/* ---- the view ---- */

static void expect_view(const char *message_id, const char *expected)
{
    char sql[900], locked[200], next[200];
    store_kind->time_text("locked_at", locked, sizeof locked);
    store_kind->time_text("next_attempt_at", next, sizeof next);
    snprintf(
        sql, sizeof sql,
        "SELECT status || '|' || attempts || '|' || coalesce(locked_by, '-') || '|' || coalesce(%s, '-') || '|' || "
        "coalesce(%s, '-') || '|' || coalesce(last_error, '-') FROM outbox_messages WHERE message_id = '%s'",
        locked, next, message_id);
    assert_string_equal(store_kind->value(sql), expected);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM outbox_messages WHERE message_id = '%s'", message_id);
    assert_int_equal(suite_number(sql), 1);
}

static void the_view_tells_the_truth_in_every_state(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, payload) VALUES ('m', 'a', 'Made', 'p')");
    expect_view("m", "pending|0|-|-|-|-");
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    expect_view("m", "processing|0|relay|2027-01-15T08:00:00.000Z|-|-");
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RELEASE);
    suite_settle_one(store, lane, &s);
    expect_view("m", "pending|0|-|-|-|-");
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER, suite_clock_ms + 1500);
    expect_view("m", "pending|0|-|-|2027-01-15T08:00:01.500Z|-");
    put(store, lane, HK_FROM_RETRY, 1, HK_SETTLE_RETRY, suite_clock_ms + 2000);
    expect_view("m", "retrying|1|-|-|2027-01-15T08:00:02.000Z|it said no");
    suite_clock_ms += 2000;
    suite_claim(store, lane, HK_FROM_RETRY, 1);
    expect_view("m", "processing|1|relay|2027-01-15T08:00:02.000Z|2027-01-15T08:00:02.000Z|it said no");
    suite_clock_ms += LEASE_MS;
    lane = suite_acquire(store);
    expect_view("m", "retrying|1|-|-|2027-01-15T08:00:32.000Z|it said no");
    put(store, lane, HK_FROM_RETRY, 1, HK_SETTLE_DEAD, 0);
    expect_view("m", "dead|1|-|-|-|it said no");
    requeue();
    assert_string_equal(store_kind->value("SELECT status FROM outbox_messages WHERE message_id = 'm'"),
                        "pending");
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_messages"), 1);
    put(store, lane, HK_FROM_RETRY, 2, HK_SETTLE_SENT, 0);
    expect_view("m", "sent|1|-|-|-|-"); /* once, though the letter is there, too */
    store_kind->sql("DELETE FROM outbox_sent");
    assert_string_equal(store_kind->value("SELECT status FROM outbox_messages WHERE message_id = 'm'"),
                        "sent");
    store_kind->sql("UPDATE dead_letters SET status = 'discarded'");
    assert_string_equal(store_kind->value("SELECT status FROM outbox_messages WHERE message_id = 'm'"),
                        "dead");
    store_kind->sql(
        "INSERT INTO outbox_cancelled (message_id, destination, event_type, actor, reason, cancelled_ms) "
        "VALUES ('n', 'a', 'Made', 'ann', 'a mistake', 1)");
    expect_view("n", "cancelled|0|-|-|-|a mistake");
    suite_close(store);
}

/* ---- retention ---- */

static const struct hk_retention keep_all = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                             UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

static uint32_t purge_it(struct hk_store *store, const struct hk_retention *retention, uint32_t limit)
{
    uint32_t deleted = 0;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->purge(store, retention, limit, &deleted, NULL, &err);
    NOTE_IF(rc != HK_OK, "purge: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return deleted;
}

static void purge_deletes_what_is_too_old_in_bounded_batches(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(10, "a", NULL);
    for (int64_t id = 1; id <= 10; id++, suite_clock_ms += 1000)
        put(store, lane, HK_FROM_OUTBOX, id, HK_SETTLE_SENT, 0);
    assert_int_equal(purge_it(store, &keep_all, 100), 0);
    struct hk_retention r = keep_all;
    r.sent_ms = 5000; /* those of 0 s to 5 s */
    assert_int_equal(purge_it(store, &r, 4), 4);
    assert_int_equal(purge_it(store, &r, 4), 2);
    assert_int_equal(purge_it(store, &r, 4), 0);
    assert_count("outbox_sent", 4);
    r = keep_all;
    r.sent_rows = 3;
    assert_int_equal(purge_it(store, &r, 100), 1);
    assert_count("outbox_sent", 3);
    r.sent_rows = 0;
    assert_int_equal(purge_it(store, &r, 100), 3);
    assert_int_equal(purge_it(store, &r, 0), 0);

    suite_fill(6, "a", NULL); /* the bound is for all kinds together */
    for (int64_t id = 11; id <= 16; id++)
        put(store, lane, HK_FROM_OUTBOX, id, id % 2 ? HK_SETTLE_SENT : HK_SETTLE_DEAD, 0);
    suite_clock_ms += 1000;
    r = (struct hk_retention){.dead_ms = UINT64_MAX};
    assert_int_equal(purge_it(store, &r, 4), 4);
    assert_int_equal(purge_it(store, &r, 4), 2); /* three sent rows and three attempts */
    assert_count("dead_letters", 3);
    suite_close(store);
}

static void each_kind_has_its_own_retention(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(4, "a", NULL);
    for (int64_t id = 1; id <= 4; id++)
        put(store, lane, HK_FROM_OUTBOX, id, HK_SETTLE_DEAD, 0);
    store_kind->sql(
        "UPDATE dead_letters SET status = 'resolved', resolved_at = '2027-01-15T08:00:00.000Z' WHERE id = 1");
    store_kind->sql(
        "UPDATE dead_letters SET status = 'discarded', resolved_at = '2027-01-15T08:00:00.000Z' WHERE id = 2");
    store_kind->sql("UPDATE dead_letters SET status = 'retrying' WHERE id = 3");
    store_kind->sql(
        "INSERT INTO outbox_cancelled (message_id, destination, event_type, actor, reason, cancelled_ms) "
        "VALUES ('n', 'a', 'Made', 'ann', 'a mistake', 1800000000000)");
    store_kind->sql(
        "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1800000000000, 'ann', 'cancel', 'a mistake')");
    assert_count("outbox_attempts", 4);
    suite_clock_ms += 1000;

    static const struct {
        size_t offset;
        const char *count;
        int before, after;
    } rows[] = {
        {offsetof(struct hk_retention, resolved_ms),
         "SELECT count(*) FROM dead_letters WHERE status = 'resolved'", 1, 0},
        {offsetof(struct hk_retention, discarded_ms),
         "SELECT count(*) FROM dead_letters WHERE status = 'discarded'", 1, 0},
        {offsetof(struct hk_retention, cancelled_ms), "SELECT count(*) FROM outbox_cancelled", 1, 0},
        {offsetof(struct hk_retention, audit_ms), "SELECT count(*) FROM outbox_audit WHERE act = 'cancel'", 1,
         0},
        {offsetof(struct hk_retention, dead_ms), "SELECT count(*) FROM dead_letters WHERE status = 'failed'",
         1, 0},
        {offsetof(struct hk_retention, attempts_ms), "SELECT count(*) FROM outbox_attempts", 4, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_retention r = keep_all;
        uint64_t *keep_ms = (uint64_t *)((char *)&r + rows[i].offset);
        *keep_ms = 1001;
        purge_it(store, &r, 100);
        NOTE_IF(suite_number(rows[i].count) != rows[i].before, "row %zu: too early\n", i);
        assert_int_equal(suite_number(rows[i].count), rows[i].before);
        *keep_ms = 1000;
        assert_int_equal(purge_it(store, &r, 100), rows[i].before);
        NOTE_IF(suite_number(rows[i].count) != rows[i].after, "row %zu: not gone\n", i);
        assert_int_equal(suite_number(rows[i].count), rows[i].after);
    }
    assert_count("dead_letters WHERE status = 'retrying'", 1);
    suite_close(store);
}

static void a_letter_that_died_again_is_kept_from_then_on(void **state)
{
    (void)state;
    struct hk_retention r = keep_all;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    put(store, lane, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD, 0);
    requeue();
    suite_clock_ms += 500;
    put(store, lane, HK_FROM_RETRY, 1, HK_SETTLE_DEAD, 0);
    r.dead_ms = 1000;
    suite_clock_ms += 999;
    assert_int_equal(purge_it(store, &r, 100), 0);
    suite_clock_ms += 1;
    assert_int_equal(purge_it(store, &r, 100), 1);
    assert_count("dead_letters", 0);
    suite_close(store);
}

/* ---- what a crash leaves ---- */

/* What the store says that it took over: one lane, one destination. */
static void assert_taken(struct hk_store *store, int64_t lane, uint64_t messages, int64_t since_ms)
{
    struct hk_takings found;
    store_kind->ops->taken_over(store, &found);
    assert_int_equal(found.n, 1);
    assert_int_equal(found.items[0].lane, lane);
    assert_string_equal(found.items[0].relay, "relay");
    assert_int_equal(found.items[0].messages, messages);
    assert_string_equal(found.items[0].destination, messages ? "a" : "");
    assert_int_equal(found.items[0].since_ms, since_ms);
    store_kind->ops->taken_over(store, &found);
    assert_int_equal(found.n, 0); /* told once */
}

#define OF_CRASHES                                                                                           \
    "outbox_attempts WHERE n = 0 AND possibly_delivered AND status = 0 AND cause = 'RELAY_CRASHED' "         \
    "AND destination = 'a' AND error = 'relay died while sending; may have arrived'"

static void a_crash_leaves_a_trace(void **state)
{
    (void)state;

    static const enum hk_store_history histories[] = {HK_STORE_HISTORY_FAILURES, HK_STORE_HISTORY_ALL,
                                                      HK_STORE_HISTORY_NONE};

    suite_fill(3, "a", NULL);
    for (size_t i = 0; i < COUNT(histories); i++) {
        const struct hk_store_options options = {.lease_only = true, .history = histories[i]};
        bool kept = histories[i] != HK_STORE_HISTORY_NONE;
        struct hk_store *store = suite_open(&options);
        int64_t lane = suite_acquire(store), since_ms = suite_clock_ms;
        struct hk_takings none;
        store_kind->ops->taken_over(store, &none);
        assert_int_equal(none.n, 0);
        const struct hk_want wants[] = {{HK_FROM_OUTBOX, (int64_t)i + 1, true}};
        suite_exchange(store, lane, NULL, 0, wants, 1);
        suite_close(store);
        store = suite_open(&options);
        suite_clock_ms += LEASE_MS;
        int64_t next = suite_acquire(store);
        assert_taken(store, lane, 1, since_ms);
        assert_count(OF_CRASHES, kept ? 1 : 0);

        since_ms = suite_clock_ms; /* the same once more, from retry, with the row's own life */
        store_kind->sql("UPDATE outbox_retry SET life = 3");
        suite_claim(store, next, HK_FROM_RETRY, suite_number("SELECT id FROM outbox_retry"));
        suite_close(store);
        store = suite_open(&options);
        suite_clock_ms += LEASE_MS;
        lane = suite_acquire(store);
        assert_taken(store, next, 1, since_ms);
        assert_count(OF_CRASHES " AND life = 3", kept ? 1 : 0);
        assert_count("outbox_retry WHERE attempts = 0 AND charged = 0 AND crashes = 2", 1);
        suite_close(store); /* and one that dies with empty hands */
        store = suite_open(&options);
        suite_clock_ms += LEASE_MS;
        next = suite_acquire(store);
        assert_taken(store, lane, 0, 0);
        assert_count("outbox_attempts", kept ? 2 : 0);
        assert_int_equal(store_kind->ops->release(store, next, NULL), HK_OK);
        suite_close(store);
        store_kind->sql("DELETE FROM outbox_attempts");
        store_kind->sql("DELETE FROM outbox_retry");
    }
}

const struct CMUnitTest suite_read_tests[] = {
    TEST(poll_tells_of_changes_and_only_of_them),
    TEST(poll_tells_that_a_person_acted_and_settles_are_not_persons),
    TEST(poll_lists_destinations_with_retries_and_paused_ones),
    TEST(scan_walks_outbox_in_order_and_changes_nothing),
    TEST(scan_shows_what_is_needed_to_choose),
    TEST(what_expired_with_the_epoch_has_expired),
    TEST(one_wrong_moment_of_the_clock_makes_nothing_due),
    TEST(a_clock_that_has_caught_up_is_told),
    TEST(parts_of_a_scheduled_message_wait_for_its_time),
    TEST(parts_of_a_deferred_message_are_due_when_it_was),
    TEST(parts_of_a_deferred_message_are_not_due_before_it),
    TEST(scan_finds_by_destination_and_by_key),
    TEST(scan_gives_due_retries_by_keyset),
    TEST(a_scheduled_row_is_due_when_its_time_has_come),
    TEST(a_retry_knows_whether_it_is_the_first_of_its_key),
    TEST(held_keys_are_those_of_retries_and_open_letters),
    TEST(a_key_that_is_too_long_holds_nobody),
    TEST(a_dead_letter_tells_the_whole_story),
    TEST(a_message_that_was_never_sent_dies_without_an_attempt),
    TEST(a_requeued_message_resolves_or_reopens_its_letter),
    TEST(a_requeued_fan_out_has_a_letter_for_each_that_dies),
    TEST(a_letter_that_one_part_resolved_is_open_again_when_another_dies),
    TEST(the_view_tells_the_truth_in_every_state),
    TEST(purge_deletes_what_is_too_old_in_bounded_batches),
    TEST(each_kind_has_its_own_retention),
    TEST(a_letter_that_died_again_is_kept_from_then_on),
    TEST(a_crash_leaves_a_trace),
};
const size_t suite_read_count = COUNT(suite_read_tests);
