/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's main part: lanes, claims, settles, fencing. What is read and shown is in store_suite_read.c. */
#include <stdlib.h>

#include "base/str.h"
#include "store_suite.h"
#include "store_suite_impl.h"

#define LEASE_MS 30000

const struct store_kind *store_kind;
int64_t suite_clock_ms;

static int64_t read_clock(void *arg)
{
    (void)arg;
    return suite_clock_ms;
}

int suite_setup(void **state)
{
    (void)state;
    suite_clock_ms = INT64_C(1800000000000); /* 2027-01-15T08:00:00Z */
    return store_kind->make() ? 0 : -1;
}

int suite_teardown(void **state)
{
    (void)state;
    store_kind->drop();
    return 0;
}

struct hk_store *suite_open(const struct hk_store_options *options)
{
    struct hk_store_options o = options ? *options : (struct hk_store_options){.keep_sent = true};
    struct hk_store *store = NULL;
    struct hk_err err = {0};
    if (!o.clock_ms)
        o.clock_ms = read_clock;
    enum hk_code rc = store_kind->ops->open(store_kind->url(), &o, &store, &err);
    NOTE_IF(rc != HK_OK, "open: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return store;
}

void suite_close(struct hk_store *store)
{
    store_kind->ops->close(store);
}

void suite_fill(int n, const char *destination, const char *key)
{
    char sql[400];
    for (int i = 1; i <= n; i++) {
        snprintf(
            sql, sizeof sql,
            "INSERT INTO outbox (destination, event_type, message_key, payload) VALUES ('%s', 'Made', %s%s%s, 'p%d')",
            destination, key ? "'" : "", key ? key : "NULL", key ? "'" : "", i);
        store_kind->sql(sql);
    }
}

int64_t suite_acquire(struct hk_store *store)
{
    int64_t lane = 0, now_ms = 0;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->acquire(store, "relay", "boot", LEASE_MS, &lane, &now_ms, &err);
    NOTE_IF(rc != HK_OK, "acquire: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_true(lane > 0);
    return lane;
}

const struct hk_exchanged *suite_exchange(struct hk_store *store, int64_t lane,
                                          const struct hk_settle *settles, size_t n_settles,
                                          const struct hk_want *wants, size_t n_wants)
{
    const struct hk_exchange x = {.lane = lane,
                                  .lease_ms = LEASE_MS,
                                  .settles = settles,
                                  .n_settles = n_settles,
                                  .wants = wants,
                                  .n_wants = n_wants};
    const struct hk_exchanged *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->exchange(store, &x, &done, &err);
    NOTE_IF(rc != HK_OK, "exchange: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return done;
}

enum hk_code suite_try_exchange(struct hk_store *store, int64_t lane, const struct hk_settle *settles,
                                size_t n_settles, const struct hk_exchanged **out)
{
    const struct hk_exchange x = {
        .lane = lane, .lease_ms = LEASE_MS, .settles = settles, .n_settles = n_settles};
    struct hk_err err;
    return store_kind->ops->exchange(store, &x, out, &err);
}

int64_t suite_claim(struct hk_store *store, int64_t lane, enum hk_source source, int64_t id)
{
    const struct hk_want claim = {source, id, true};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_int_equal(done->n_messages, 1);
    assert_true(done->claim > 0);
    return done->claim;
}

struct hk_settle suite_settle(int64_t claim, enum hk_source source, int64_t id, enum hk_settle_kind kind)
{
    struct hk_settle s = {.claim = claim, .source = source, .id = id, .kind = kind};
    s.destination = hk_str_of("a");
    s.attempt.made = kind == HK_SETTLE_SENT || kind == HK_SETTLE_RETRY || kind == HK_SETTLE_DEAD;
    s.attempt.started_ms = suite_clock_ms - 20;
    s.attempt.duration_ms = 20;
    s.history.attempts = s.attempt.made;
    if (kind == HK_SETTLE_RETRY || kind == HK_SETTLE_DEAD) {
        s.due_ms = suite_clock_ms + 1000;
        s.reason = hk_str_of("HTTP_500");
        s.first_failed_ms = suite_clock_ms;
        s.attempt.status = 500;
        s.attempt.failure_class = HK_CLASS_TRANSIENT;
        s.attempt.cause = hk_str_of("HTTP_500");
        s.attempt.error = hk_str_of("it said no");
        s.history.failures[HK_CLASS_TRANSIENT] = 1;
    }
    return s;
}

void suite_settle_one(struct hk_store *store, int64_t lane, const struct hk_settle *settle)
{
    const struct hk_exchanged *done = suite_exchange(store, lane, settle, 1, NULL, 0);
    assert_false(done->stale[0]);
}

int64_t suite_number(const char *sql)
{
    return (int64_t)strtod(store_kind->value(sql), NULL);
}

#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)

/* One manifest, which names this row of outbox alone. */
static void assert_manifest(int id)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM outbox_claim WHERE ids = '%c%d%c'",
             store_kind->brackets[0], id, store_kind->brackets[1]);
    assert_int_equal(suite_number(sql), 1);
}

/* ---- lanes ---- */

static void a_live_lane_is_not_taken(void **state)
{
    (void)state;
    struct hk_store *one = suite_open(NULL), *two = suite_open(NULL);
    int64_t lane = suite_acquire(one), other = 0, now_ms = 0;
    struct hk_err err;
    suite_clock_ms += LEASE_MS - 1;
    if (!store_kind->one_lane) { /* it is joined by another, and goes on */
        assert_int_equal(store_kind->ops->acquire(two, "other", "b", LEASE_MS, &other, &now_ms, &err), HK_OK);
        assert_true(other > lane);
        suite_exchange(one, lane, NULL, 0, NULL, 0);
        suite_close(one);
        suite_close(two);
        return;
    }
    assert_int_equal(store_kind->ops->acquire(two, "other", "b", LEASE_MS, &other, &now_ms, &err), HK_BUSY);
    assert_non_null(strstr(err.message, "relay"));
    assert_int_equal(other, 0);

    suite_exchange(one, lane, NULL, 0, NULL, 0); /* renews */
    suite_clock_ms += LEASE_MS - 1;
    assert_int_equal(store_kind->ops->acquire(two, "other", "b", LEASE_MS, &other, &now_ms, &err), HK_BUSY);
    suite_clock_ms += 1;
    assert_int_equal(store_kind->ops->acquire(two, "other", "b", LEASE_MS, &other, &now_ms, &err), HK_OK);
    assert_true(other > lane);
    assert_int_equal(now_ms, suite_clock_ms);
    suite_close(one);
    suite_close(two);
}

static void a_lane_is_never_used_again(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t last = 0;
    for (int i = 0; i < 3; i++) {
        int64_t lane = suite_acquire(store);
        assert_true(lane > last);
        last = lane;
        struct hk_err err;
        assert_int_equal(store_kind->ops->release(store, lane, &err), HK_OK);
        assert_int_equal(store_kind->ops->release(store, lane, &err), HK_CONFLICT);
    }
    suite_close(store);
}

static void a_released_lane_gives_back_what_it_holds_uncharged(void **state)
{
    (void)state;
    struct hk_err err;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    struct hk_settle retry =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &retry);
    suite_claim(store, lane, HK_FROM_OUTBOX, 2);
    suite_claim(store, lane, HK_FROM_RETRY, 1);
    assert_int_equal(store_kind->ops->release(store, lane, &err), HK_OK);
    assert_count("outbox WHERE id = 2", 1);
    assert_count("outbox_retry WHERE claim IS NULL AND crashes = 0 AND attempts = 1", 1);
    assert_count("outbox_claim", 0);
    assert_count("outbox_relay", 0);
    suite_close(store);
}

/* ---- crash and take-over ---- */

/* As where nothing but its lease tells that a relay is dead. */
static const struct hk_store_options lease_only = {.keep_sent = true, .lease_only = true};

static void what_a_dead_lane_held_goes_to_retry_due_at_once_uncharged(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(&lease_only);
    int64_t lane = suite_acquire(store);
    suite_fill(3, "a", NULL);
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 2, true}};
    int64_t claim = suite_exchange(store, lane, NULL, 0, wants, 2)->claim;
    struct hk_settle sent = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    suite_settle_one(store, lane, &sent); /* a part of the manifest */
    suite_close(store);                   /* without release: as a crash leaves it */

    store = suite_open(&lease_only);
    suite_clock_ms += LEASE_MS - 1;
    int64_t next = 0, now_ms = 0;
    if (store_kind->one_lane)
        assert_int_equal(store_kind->ops->acquire(store, "relay", "b", LEASE_MS, &next, &now_ms, NULL),
                         HK_BUSY);
    suite_clock_ms += 1;
    next = suite_acquire(store);
    assert_count("outbox", 1);
    assert_count("outbox WHERE id = 3", 1);
    assert_count("outbox_sent", 1);
    assert_count("outbox_retry", 1);
    assert_count("outbox_retry WHERE original_outbox_id = 2 AND crashes = 1 AND attempts = 0 AND charged = 0",
                 1);
    assert_int_equal(suite_number("SELECT due_ms FROM outbox_retry"), suite_clock_ms);

    /* and once more, from retry: one that was only deferred takes its turn from now on, since it may have arrived */
    assert_count("outbox_retry WHERE possibly_delivered", 1);
    store_kind->sql("UPDATE outbox_retry SET deferred = true, possibly_delivered = false");
    suite_claim(store, next, HK_FROM_RETRY, suite_number("SELECT id FROM outbox_retry"));
    suite_close(store);
    store = suite_open(NULL);
    suite_clock_ms += LEASE_MS;
    suite_acquire(store);
    assert_count("outbox_retry WHERE claim IS NULL AND crashes = 2 AND attempts = 0 AND NOT deferred "
                 "AND possibly_delivered",
                 1);
    suite_close(store);
}

static void a_scheduled_row_of_a_dead_lane_still_waits_for_its_time(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql("INSERT INTO outbox (destination, event_type, payload, not_before) "
                    "VALUES ('a', 'Made', 'p', '2027-01-15T09:00:00Z')");
    suite_claim(store, lane, HK_FROM_OUTBOX, 1); /* to defer it */
    suite_clock_ms += LEASE_MS;
    suite_acquire(store);
    assert_int_equal(suite_number("SELECT due_ms FROM outbox_retry"), INT64_C(1800003600000));
    suite_close(store);
}

static void a_stale_settle_changes_nothing_and_is_reported(void **state)
{
    (void)state;
    struct hk_store *stalled = suite_open(NULL), *fresh = suite_open(NULL);
    int64_t lane = suite_acquire(stalled);
    suite_fill(1, "a", NULL);
    int64_t claim = suite_claim(stalled, lane, HK_FROM_OUTBOX, 1);
    suite_clock_ms += LEASE_MS;
    int64_t next = suite_acquire(fresh);
    for (int kind = HK_SETTLE_SENT; kind <= HK_SETTLE_DEFER; kind++) {
        struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, (enum hk_settle_kind)kind);
        const struct hk_exchanged *done = NULL;
        assert_int_equal(suite_try_exchange(stalled, lane, &s, 1, &done), HK_CONFLICT);
        assert_non_null(done);
        assert_true(done->stale[0]);
    }
    /* nor under the new owner's lane with the old manifest */
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    assert_true(suite_exchange(fresh, next, &s, 1, NULL, 0)->stale[0]);
    assert_count("outbox_retry WHERE crashes = 1", 1);
    assert_count("outbox_sent", 0);
    assert_count("dead_letters", 0);
    assert_count("outbox_attempts WHERE n > 0", 0);
    suite_close(stalled);
    suite_close(fresh);
}

static void the_manifest_is_the_fence_even_while_the_lane_stands(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    store_kind->sql("DELETE FROM outbox_claim");
    assert_true(suite_exchange(store, lane, &s, 1, NULL, 0)->stale[0]);
    assert_count("outbox", 1);
    suite_close(store);
}

static void a_lane_that_is_late_but_not_taken_over_goes_on(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    suite_clock_ms += 10 * LEASE_MS;
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    suite_settle_one(store, lane, &s);
    assert_count("outbox", 0);
    suite_close(store);
}

/* ---- claims ---- */

static void a_claim_is_on_disk_and_gives_the_whole_message(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, payload, message_key, headers, content_type, "
        "encoding, correlation_id, traceparent, idempotency_key, expires_at, policy, max_attempts, created_at) "
        "VALUES ('m-1', 'a', 'Made', '{\"x\" : 1}', 'k', '{\"h\":\"v\"}', 'application/json', 'utf8', 'c', 't', "
        "'i', '2030-01-01T00:00:00Z', 'p', 7, '2027-01-15T07:59:59.250Z')");
    const struct hk_want wants[] = {
        {HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 99, true}, {HK_FROM_RETRY, 99, true}};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, wants, 3);
    assert_int_equal(done->n_messages, 1); /* what is not there is left out */
    const struct hk_message *m = &done->messages[0];
    assert_true(hk_str_eq(m->message_id, hk_str_of("m-1")));
    assert_true(hk_str_eq(m->destination, hk_str_of("a")));
    assert_true(hk_str_eq(m->event_type, hk_str_of("Made")));
    assert_true(hk_str_eq(m->key, hk_str_of("k")));
    assert_true(hk_str_eq(m->headers, hk_str_of("{\"h\":\"v\"}")));
    assert_true(hk_str_eq(m->content_type, hk_str_of("application/json")));
    assert_true(hk_str_eq(m->correlation_id, hk_str_of("c")));
    assert_true(hk_str_eq(m->traceparent, hk_str_of("t")));
    assert_true(hk_str_eq(m->idempotency_key, hk_str_of("i")));
    assert_true(hk_str_eq(m->policy, hk_str_of("p")));
    assert_true(hk_str_eq(m->payload, hk_str_of("{\"x\" : 1}")));
    assert_int_equal(m->max_attempts, 7);
    assert_int_equal(m->life, 1);
    assert_int_equal(m->created_ms, INT64_C(1799999999250));
    assert_int_equal(m->expires_ms, INT64_C(1893456000000));
    assert_null(m->malformed);
    assert_manifest(1);
    suite_close(store);
}

static void nothing_to_claim_makes_no_manifest(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_want claim = {HK_FROM_OUTBOX, 5, true};
    assert_int_equal(suite_exchange(store, lane, NULL, 0, &claim, 1)->claim, 0);
    assert_count("outbox_claim", 0);
    suite_close(store);
}

static void a_row_is_claimed_once(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    const struct hk_want twice[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 1, true}};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, twice, 2);
    assert_int_equal(done->n_messages, 1);
    int64_t claim = done->claim;
    assert_int_equal(suite_exchange(store, lane, NULL, 0, twice, 2)->n_messages, 0);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    suite_claim(store, lane, HK_FROM_RETRY, 1);
    for (int payload = 0; payload <= 1; payload++) {
        const struct hk_want again = {HK_FROM_RETRY, 1, payload};
        assert_int_equal(suite_exchange(store, lane, NULL, 0, &again, 1)->n_messages, 0);
    }
    suite_close(store);
}

static void a_claim_without_payload_reads_none(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    const struct hk_want claim = {HK_FROM_OUTBOX, 1, false};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_int_equal(done->n_messages, 1);
    assert_int_equal(done->messages[0].payload.len, 0);
    assert_false(done->messages[0].oversized);
    suite_close(store);
}

/* ---- settles ---- */

static void sent_leaves_only_its_metadata(void **state)
{
    (void)state;
    for (int keep = 0; keep <= 1; keep++) {
        struct hk_store *store = suite_open(&(struct hk_store_options){.keep_sent = keep});
        int64_t lane = suite_acquire(store);
        suite_fill(1, "", NULL);
        int64_t id = suite_number("SELECT max(id) FROM outbox");
        struct hk_settle s =
            suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
        s.attempt.status = 204;
        suite_settle_one(store, lane, &s);
        assert_count("outbox", 0);
        assert_count("outbox_claim", 0);
        assert_count("outbox_sent WHERE destination = 'a' AND attempts = 1 AND status = 204", keep);
        assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
        suite_close(store);
    }
}

static void neighbours_that_are_not_meant_stay_as_they_are(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(5, "a", NULL);
    const struct hk_want wants[] = {
        {HK_FROM_OUTBOX, 4, true}, {HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 3, true}};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, wants, 3);
    assert_int_equal(done->n_messages, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_not_equal(done->messages[i].id, 2);
    struct hk_settle s[3];
    for (size_t i = 0; i < 3; i++) {
        s[i] = suite_settle(done->claim, HK_FROM_OUTBOX, wants[i].id, HK_SETTLE_SENT);
        s[i].attempt.status = 200 + (int)wants[i].id;
    }
    suite_exchange(store, lane, s, 3, NULL, 0);
    assert_string_equal(store_kind->value("SELECT min(id) || ' ' || max(id) || ' ' || count(*) FROM outbox"),
                        "2 5 2");
    assert_count("outbox_sent WHERE status = 200 + original_outbox_id", 3);
    suite_close(store);
}

static void neighbours_that_went_elsewhere_are_kept_with_where_they_went(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "", NULL); /* a route says where to */
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 2, true}};
    int64_t claim = suite_exchange(store, lane, NULL, 0, wants, 2)->claim;
    struct hk_settle s[] = {suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT),
                            suite_settle(claim, HK_FROM_OUTBOX, 2, HK_SETTLE_SENT)};
    s[0].destination = hk_str_of("a");
    s[1].destination = hk_str_of("b");
    suite_exchange(store, lane, s, 2, NULL, 0);
    assert_count("outbox_sent WHERE original_outbox_id = 1 AND destination = 'a'", 1);
    assert_count("outbox_sent WHERE original_outbox_id = 2 AND destination = 'b'", 1);
    suite_close(store);
}

static void a_second_settle_is_stale(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 2, true}};
    int64_t claim = suite_exchange(store, lane, NULL, 0, wants, 2)->claim;
    struct hk_settle both[] = {suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT),
                               suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD)};
    const struct hk_exchanged *done = suite_exchange(store, lane, both, 2, NULL, 0);
    assert_false(done->stale[0]);
    assert_true(done->stale[1]); /* in the same exchange */
    assert_true(suite_exchange(store, lane, both, 1, NULL, 0)->stale[0]);
    assert_count("dead_letters", 0);
    assert_count("outbox_sent", 1);
    assert_count("outbox", 1);
    /* an id that the manifest does not name, and a manifest that never was */
    struct hk_settle wrong = suite_settle(claim, HK_FROM_OUTBOX, 77, HK_SETTLE_SENT);
    assert_true(suite_exchange(store, lane, &wrong, 1, NULL, 0)->stale[0]);
    wrong = suite_settle(claim + 50, HK_FROM_OUTBOX, 2, HK_SETTLE_SENT);
    assert_true(suite_exchange(store, lane, &wrong, 1, NULL, 0)->stale[0]);
    assert_count("outbox", 1);
    suite_close(store);
}

static void a_settle_through_another_store_of_the_same_lane_counts(void **state)
{
    (void)state;
    struct hk_store *one = suite_open(NULL), *two = suite_open(NULL);
    int64_t lane = suite_acquire(one);
    suite_fill(2, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(one, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(two, lane, &s);
    s = suite_settle(suite_claim(one, lane, HK_FROM_RETRY, 1), HK_FROM_RETRY, 1, HK_SETTLE_SENT);
    suite_settle_one(two, lane, &s);
    assert_count("outbox_retry", 0);
    assert_count("outbox_claim", 0);
    suite_close(one);
    suite_close(two);
}

static void retry_keeps_the_message_and_its_history(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "", "k");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    s.history = (struct hk_history){.attempts = 2, .charged = 1, .prev_wait_ms = 500, .first_attempt_ms = 17};
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        s.history.failures[c] = 10 + (uint32_t)c;
    suite_settle_one(store, lane, &s);
    assert_count("outbox", 0);
    assert_count("outbox_claim", 0);
    assert_int_equal(suite_number("SELECT due_ms FROM outbox_retry"), s.due_ms);

    for (int round = 0; round < 2; round++) { /* once moved, once updated in place */
        const struct hk_want claim = {HK_FROM_RETRY, 1, true};
        const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
        assert_int_equal(done->n_messages, 1);
        const struct hk_message *m = &done->messages[0];
        assert_memory_equal(&m->history, &s.history, sizeof s.history);
        assert_int_equal(m->first_failed_ms, s.first_failed_ms);
        assert_true(hk_str_eq(m->destination, hk_str_of("a"))); /* as it was resolved */
        assert_true(hk_str_eq(m->key, hk_str_of("k")));
        assert_true(hk_str_eq(m->payload, hk_str_of("p1")));
        s.claim = done->claim;
        s.source = HK_FROM_RETRY;
        s.history.attempts++;
        s.history.prev_wait_ms = 1;
        suite_settle_one(store, lane, &s);
    }
    assert_count("outbox_retry WHERE claim IS NULL AND last_cause = 'HTTP_500' AND last_error = 'it said no'",
                 1);
    suite_close(store);
}

/* Claims the only retry row, looks for how long it says that it was paused, and fails it once more. */
static uint64_t paused_ms_at_claim(struct hk_store *store, int64_t lane)
{
    const struct hk_want claim = {HK_FROM_RETRY, 1, true};
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, &claim, 1);
    assert_int_equal(done->n_messages, 1);
    uint64_t paused_ms = done->messages[0].history.paused_ms;
    struct hk_settle s = suite_settle(done->claim, HK_FROM_RETRY, 1, HK_SETTLE_RETRY);
    s.history = done->messages[0].history;
    s.history.attempts++;
    if (!s.history.first_attempt_ms)
        s.history.first_attempt_ms = suite_clock_ms;
    suite_settle_one(store, lane, &s);
    return paused_ms;
}

static void set_paused(struct hk_store *store, bool paused)
{
    assert_int_equal(store_kind->ops->pause(store, "a", paused, "ann", "because", NULL), HK_OK);
}

void suite_circuit(struct hk_store *store, int64_t lane, int64_t open_until_ms)
{
    const struct hk_circuit circuit = {.destination = "a", .open_until_ms = open_until_ms};
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS, .circuits = &circuit, .n_circuits = 1};
    const struct hk_exchanged *done = NULL;
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_OK);
}

/* -1: the poll does not speak of it. */
static int64_t polled_circuit(struct hk_store *store)
{
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_true(poll->changed);
    for (size_t i = 0; i < poll->n_dests; i++)
        if (hk_str_eq(poll->dests[i].name, hk_str_of("a")))
            return poll->dests[i].open_until_ms;
    return -1;
}

static void an_open_breaker_is_in_polls_until_it_closes_or_a_person_resumes(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store), until_ms = suite_clock_ms + 10000;
    assert_int_equal(polled_circuit(store), -1);
    suite_circuit(store, lane, until_ms);
    assert_int_equal(polled_circuit(store), until_ms); /* also with a retry row and without */
    suite_fill(1, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(polled_circuit(store), until_ms);
    assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
    suite_close(store);
    store = suite_open(NULL); /* whoever comes next is told */
    lane = suite_acquire(store);
    assert_int_equal(polled_circuit(store), until_ms);
    set_paused(store, true);
    assert_int_equal(polled_circuit(store), until_ms);
    set_paused(store, false);
    assert_int_equal(polled_circuit(store), 0);
    suite_circuit(store, lane, until_ms + 1);
    assert_int_equal(polled_circuit(store), until_ms + 1);
    suite_circuit(store, lane, 0);
    assert_int_equal(polled_circuit(store), 0);
    suite_close(store);
}

/* Paused time since the first attempt does not count towards max_elapsed; before it there is nothing to count. */
static void paused_time_is_counted_from_the_first_attempt_and_outlives_relays(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    set_paused(store, true);
    suite_clock_ms += 1000;
    set_paused(store, false); /* before */
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    s.history.first_attempt_ms = suite_clock_ms;
    suite_settle_one(store, lane, &s);
    suite_clock_ms += 10;
    assert_int_equal(paused_ms_at_claim(store, lane), 0);
    set_paused(store, true);
    suite_clock_ms += 200;
    set_paused(store, true); /* once more: it was paused all the while */
    suite_clock_ms += 30;
    assert_int_equal(paused_ms_at_claim(store, lane), 230); /* while it is */
    assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
    suite_close(store);

    store = suite_open(NULL); /* another relay */
    lane = suite_acquire(store);
    suite_clock_ms += 4;
    set_paused(store, false);
    suite_clock_ms += 5000;
    assert_int_equal(paused_ms_at_claim(store, lane), 234);
    assert_int_equal(store_kind->ops->pause(store, "b", true, "ann", "", NULL), HK_OK);
    suite_clock_ms += 7;
    assert_int_equal(paused_ms_at_claim(store, lane), 234); /* another destination's is not its own */
    suite_close(store);
}

/* The relay died with it before anything was sent: its clock starts with the first attempt that was settled. */
static void paused_time_before_the_first_settled_attempt_does_not_count(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    suite_clock_ms += LEASE_MS;
    lane = suite_acquire(store);
    set_paused(store, true);
    suite_clock_ms += 100;
    assert_int_equal(paused_ms_at_claim(store, lane), 0);
    suite_clock_ms += 20;
    assert_int_equal(paused_ms_at_claim(store, lane), 20);
    suite_close(store);
}

static void an_attempt_that_was_made_forgets_crashes(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    suite_clock_ms += LEASE_MS;
    lane = suite_acquire(store);
    assert_count("outbox_retry WHERE crashes = 1", 1);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, 1), HK_FROM_RETRY, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_count("outbox_retry WHERE crashes = 0 AND attempts = 1", 1);
    suite_close(store);
}

static void release_is_as_if_it_had_never_been_claimed(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 2, true}};
    int64_t claim = suite_exchange(store, lane, NULL, 0, wants, 2)->claim;
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RELEASE);
    suite_settle_one(store, lane, &s);
    assert_manifest(2);
    assert_true(suite_exchange(store, lane, &s, 1, NULL, 0)->stale[0]);
    int64_t again = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    assert_true(again > claim);

    s = suite_settle(again, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    claim = suite_claim(store, lane, HK_FROM_RETRY, 1);
    s = suite_settle(claim, HK_FROM_RETRY, 1, HK_SETTLE_RELEASE);
    suite_settle_one(store, lane, &s);
    assert_count("outbox_retry WHERE claim IS NULL AND attempts = 1 AND crashes = 0", 1);
    assert_count("outbox_claim", 1);

    suite_close(store); /* a crash now concerns only what is still held */
    store = suite_open(NULL);
    suite_clock_ms += LEASE_MS;
    suite_acquire(store);
    assert_count("outbox_retry WHERE crashes = 0", 1);
    assert_count("outbox_retry WHERE crashes = 1 AND original_outbox_id = 2", 1);
    suite_close(store);
}

static void defer_waits_without_an_attempt_and_keeps_the_past(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_DEFER);
    s.due_ms = suite_clock_ms + 5000;
    suite_settle_one(store, lane, &s);
    assert_count("outbox_retry WHERE attempts = 0 AND crashes = 0 AND deferred", 1);
    s = suite_settle(suite_claim(store, lane, HK_FROM_RETRY, 1), HK_FROM_RETRY, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_count("outbox_retry WHERE attempts = 1 AND NOT deferred", 1);

    s = suite_settle(suite_claim(store, lane, HK_FROM_RETRY, 1), HK_FROM_RETRY, 1, HK_SETTLE_DEFER);
    s.due_ms = suite_clock_ms + 9000;
    suite_settle_one(store, lane, &s);
    assert_count(
        "outbox_retry WHERE attempts = 1 AND NOT deferred AND failed_transient = 1 AND claim IS NULL", 1);
    assert_int_equal(suite_number("SELECT due_ms FROM outbox_retry"), s.due_ms);
    suite_close(store);
}

static void fan_out_makes_one_row_per_destination(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "", NULL);
    const struct hk_str to[] = {hk_str_of("x"), hk_str_of("y"), hk_str_of("z")};
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_FAN_OUT);
    struct hk_err err;
    const struct hk_exchange nowhere = {.lane = lane, .lease_ms = LEASE_MS, .settles = &s, .n_settles = 1};
    const struct hk_exchanged *done;
    assert_int_equal(store_kind->ops->exchange(store, &nowhere, &done, &err), HK_INVALID);
    assert_count("outbox", 1);
    s.fan_out = to;
    s.n_fan_out = 2;
    suite_settle_one(store, lane, &s);
    assert_count("outbox", 0);
    assert_count("outbox_retry WHERE attempts = 0", 2);
    assert_int_equal(suite_number("SELECT count(DISTINCT message_id) FROM outbox_retry"), 1);
    assert_int_equal(suite_number("SELECT count(DISTINCT destination) FROM outbox_retry"), 2);
    assert_int_equal(suite_number("SELECT max(due_ms) FROM outbox_retry"), suite_clock_ms);

    int64_t id = suite_number("SELECT id FROM outbox_retry WHERE destination = 'y'");
    s = suite_settle(suite_claim(store, lane, HK_FROM_RETRY, id), HK_FROM_RETRY, id, HK_SETTLE_FAN_OUT);
    s.fan_out = to + 1;
    s.n_fan_out = 2;
    suite_settle_one(store, lane, &s);
    assert_count("outbox_retry", 3);
    assert_int_equal(suite_number("SELECT count(DISTINCT destination) FROM outbox_retry"), 3);
    assert_count("outbox_claim", 0);
    suite_close(store);
}

static void attempts_are_kept_as_asked(void **state)
{
    (void)state;

    static const struct {
        enum hk_store_history history;
        int failures, successes;
    } rows[] = {
        {HK_STORE_HISTORY_FAILURES, 1, 0}, {HK_STORE_HISTORY_ALL, 1, 1}, {HK_STORE_HISTORY_NONE, 0, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_store *store = suite_open(&(struct hk_store_options){.history = rows[i].history});
        int64_t lane = suite_acquire(store);
        store_kind->sql("DELETE FROM outbox_attempts");
        suite_fill(1, "a", NULL);
        int64_t id = suite_number("SELECT max(id) FROM outbox");
        struct hk_settle s =
            suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_RETRY);
        s.attempt.response_body = (struct hk_str){"a\0b", 3};
        suite_settle_one(store, lane, &s);
        id = suite_number("SELECT max(id) FROM outbox_retry");
        s = suite_settle(suite_claim(store, lane, HK_FROM_RETRY, id), HK_FROM_RETRY, id, HK_SETTLE_SENT);
        s.history.attempts = 2;
        suite_settle_one(store, lane, &s);
        assert_count(
            "outbox_attempts WHERE class = 'transient' AND n = 1 AND status = 500 AND cause = 'HTTP_500'",
            rows[i].failures);
        assert_count("outbox_attempts WHERE class = 'success' AND n = 2", rows[i].successes);
        assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
        suite_close(store);
    }
}

static void settles_and_claims_share_a_transaction(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    const struct hk_want next = {HK_FROM_OUTBOX, 2, true};
    const struct hk_exchanged *done = suite_exchange(store, lane, &s, 1, &next, 1);
    assert_int_equal(done->n_messages, 1);
    assert_int_equal(done->messages[0].id, 2);
    assert_int_equal(done->now_ms, suite_clock_ms);
    assert_count("outbox_claim", 1);
    suite_close(store);
}

/* ---- time ---- */

static void time_never_goes_back_and_never_stands_still(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(&lease_only);
    int64_t start = suite_clock_ms, last = start, lane = 0, now_ms = 0;
    lane = suite_acquire(store);
    suite_clock_ms -= 3600 * 1000;
    for (int i = 0; i < 1000; i++) {
        suite_clock_ms += 10;
        now_ms = suite_exchange(store, lane, NULL, 0, NULL, 0)->now_ms;
        assert_true(now_ms >= last);
        assert_true(now_ms - last <= 10); /* no wait becomes shorter */
        last = now_ms;
    }
    assert_true(now_ms - start >= 4000);
    suite_close(store);
    if (!store_kind->host_clock)
        return;

    store = suite_open(&lease_only); /* nor over a restart */
    suite_clock_ms -= 1000;
    struct hk_err err;
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->now_ms >= last - 1000);
    assert_int_equal(store_kind->ops->acquire(store, "r", "b", LEASE_MS, &lane, &now_ms, &err), HK_BUSY);
    for (int i = 0; i < 1000; i++) { /* and it comes back to the clock's */
        suite_clock_ms += 10000;
        assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
        assert_true(poll->now_ms >= suite_clock_ms);
    }
    assert_int_equal(poll->now_ms, suite_clock_ms);
    suite_close(store);
}

static void the_time_of_a_lane_is_kept_over_a_restart(void **state)
{
    (void)state;
    if (!store_kind->host_clock)
        return;
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    suite_close(store);
    suite_clock_ms -= 3600 * 1000;
    store = suite_open(NULL);
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_int_equal(poll->now_ms, suite_clock_ms + 3600 * 1000);
    suite_close(store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

static const struct CMUnitTest own[] = {
    TEST(a_live_lane_is_not_taken),
    TEST(a_lane_is_never_used_again),
    TEST(a_released_lane_gives_back_what_it_holds_uncharged),
    TEST(what_a_dead_lane_held_goes_to_retry_due_at_once_uncharged),
    TEST(a_scheduled_row_of_a_dead_lane_still_waits_for_its_time),
    TEST(a_stale_settle_changes_nothing_and_is_reported),
    TEST(the_manifest_is_the_fence_even_while_the_lane_stands),
    TEST(a_lane_that_is_late_but_not_taken_over_goes_on),
    TEST(a_claim_is_on_disk_and_gives_the_whole_message),
    TEST(nothing_to_claim_makes_no_manifest),
    TEST(a_row_is_claimed_once),
    TEST(a_claim_without_payload_reads_none),
    TEST(sent_leaves_only_its_metadata),
    TEST(neighbours_that_are_not_meant_stay_as_they_are),
    TEST(neighbours_that_went_elsewhere_are_kept_with_where_they_went),
    TEST(a_second_settle_is_stale),
    TEST(a_settle_through_another_store_of_the_same_lane_counts),
    TEST(retry_keeps_the_message_and_its_history),
    TEST(an_open_breaker_is_in_polls_until_it_closes_or_a_person_resumes),
    TEST(paused_time_is_counted_from_the_first_attempt_and_outlives_relays),
    TEST(paused_time_before_the_first_settled_attempt_does_not_count),
    TEST(an_attempt_that_was_made_forgets_crashes),
    TEST(release_is_as_if_it_had_never_been_claimed),
    TEST(defer_waits_without_an_attempt_and_keeps_the_past),
    TEST(fan_out_makes_one_row_per_destination),
    TEST(attempts_are_kept_as_asked),
    TEST(settles_and_claims_share_a_transaction),
    TEST(time_never_goes_back_and_never_stands_still),
    TEST(the_time_of_a_lane_is_kept_over_a_restart),
};

size_t suite_tests(struct CMUnitTest *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(own) && n < room; i++)
        out[n++] = own[i];
    for (size_t i = 0; i < suite_read_count && n < room; i++)
        out[n++] = suite_read_tests[i];
    for (size_t i = 0; i < suite_stuck_count && n < room; i++)
        out[n++] = suite_stuck_tests[i];
    return n;
}
