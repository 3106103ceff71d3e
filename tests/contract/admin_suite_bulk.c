/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on many messages: what is cancelled together, comes back together, with all that it had and in its order. */
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "admin_suite.h"
#include "base/str.h"
#include "payload/keyring.h"

#define assert_count(sql, n)    assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)
#define assert_value(sql, text) assert_string_equal(store_kind->value("SELECT " sql), text)

typedef enum hk_code refs_fn(struct hk_admin *, const struct hk_refs_act *, struct hk_refs_done *,
                             struct hk_err *);

/* On rows `ids` of one place; as destination "a" keeps order. */
static struct hk_refs_done act_on(refs_fn *fn, struct hk_admin *admin, enum hk_place place,
                                  const int64_t *ids, size_t n)
{
    static const char *const ordered[] = {"a"};
    struct hk_ref refs[16];
    struct hk_refs_done done = {0};
    struct hk_err err = {0};
    assert_true(n <= COUNT(refs));
    for (size_t i = 0; i < n; i++)
        refs[i] = (struct hk_ref){place, ids[i]};
    const struct hk_refs_act act = {
        .refs = refs, .n = n, .actor = "ann", .reason = "because", .ordered = ordered, .n_ordered = 1};
    enum hk_code rc = fn(admin, &act, &done, &err);
    NOTE_IF(rc != HK_OK, "act: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(done.n, n);
    return done;
}

#define ON(fn, admin, place, ...)                                                                            \
    act_on(fn, admin, place, (const int64_t[]){__VA_ARGS__}, sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))

static void insert_key(const char *message_id, const char *destination, const char *key)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (message_id, destination, event_type, message_key, payload) "
             "VALUES ('%s', '%s', 'Made', '%s', 'p')",
             message_id, destination, key);
    store_kind->sql(sql);
}

/* Fails once: in outbox_retry from now on. */
static void fail_once(struct hk_store *store, int64_t lane, int64_t id)
{
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, id);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, id, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
}

/* Their message_ids, in the order in which rows of outbox_retry go. */
static void assert_retries(const char *wanted)
{
    char all[200] = "";
    int64_t n = suite_number("SELECT count(*) FROM outbox_retry");
    for (int64_t i = 0; i < n; i++) {
        char sql[120];
        snprintf(sql, sizeof sql, "SELECT message_id FROM outbox_retry ORDER BY id LIMIT 1 OFFSET %d",
                 (int)i);
        size_t len = strlen(all);
        snprintf(all + len, sizeof all - len, "%s%s", len ? " " : "", store_kind->value(sql));
    }
    assert_string_equal(all, wanted);
}

/* ---- cancel ---- */

static void many_are_cancelled_in_one_act(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    for (int i = 1; i <= 4; i++)
        insert_key((const char *[]){"a", "b", "c", "d"}[i - 1], "a", "");
    fail_once(store, lane, 2);
    (void)suite_claim(store, lane, HK_FROM_OUTBOX, 3);
    const struct hk_ref refs[] = {
        {HK_IN_OUTBOX, 1}, {HK_IN_RETRY, 1}, {HK_IN_OUTBOX, 3}, {HK_IN_OUTBOX, 2}, {HK_IN_SENT, 1}};

    const enum hk_ref_did wanted[] = {HK_REF_DONE, HK_REF_DONE, HK_REF_IN_FLIGHT, HK_REF_GONE, HK_REF_GONE};
    const struct hk_refs_act act = {
        .refs = refs, .n = COUNT(refs), .actor = "ann", .reason = "because", .filter = "type:Made"};
    struct hk_refs_done done = {0};
    struct hk_err err = {0};
    assert_int_equal(admin_ops->cancel_refs(admin, &act, &done, &err), HK_OK);
    for (size_t i = 0; i < COUNT(refs); i++)
        assert_int_equal(done.did[i], wanted[i]);
    assert_int_equal(done.changed, 2);
    assert_true(done.act_id > 0);
    int64_t first = done.act_id;
    assert_count("outbox", 2);
    assert_count("outbox_retry", 0);
    assert_value("message_id || attempts || actor || reason FROM outbox_cancelled WHERE message_id = 'b'",
                 "b1annbecause");
    assert_count("outbox_audit", 1);
    assert_count(
        "outbox_audit WHERE act = 'cancel' AND message_id IS NULL AND letter_id IS NULL AND detail LIKE "
        "'{\"messages\":2,\"list\":\"%\",\"filter\":\"type:Made\"}'",
        1);
    assert_count(
        "outbox_audit_messages m JOIN outbox_cancelled c ON c.id = m.cancelled_id AND c.message_id = "
        "m.message_id AND m.destination = 'a' AND m.act_id = m.audit_id",
        2);

    /* goes on with the act: another row, which names it, and all of them are of one act */
    const struct hk_refs_act more = {.refs = &(struct hk_ref){HK_IN_OUTBOX, 4},
                                     .n = 1,
                                     .actor = "ann",
                                     .reason = "because",
                                     .filter = "type:Made",
                                     .act_id = first};
    assert_int_equal(admin_ops->cancel_refs(admin, &more, &done, &err), HK_OK);
    assert_int_equal(done.act_id, first);
    assert_count("outbox_audit WHERE detail LIKE '{\"act\":1,\"messages\":1,\"list\":\"%\"}'", 1);
    assert_count("outbox_audit_messages WHERE act_id = 1", 3);

    /* nothing to do leaves nothing */
    assert_int_equal(admin_ops->cancel_refs(admin, &more, &done, &err), HK_OK);
    assert_int_equal(done.changed, 0);
    assert_int_equal(done.did[0], HK_REF_GONE);
    assert_int_equal(done.act_id, first);
    assert_count("outbox_audit", 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void what_is_stuck_is_not_cancelled(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    insert_key("a", "x", "");
    if (store_kind->one_lane)
        store_kind->sql(
            "INSERT INTO outbox_stuck VALUES (0, 1, 1, 1, 1, 'a', 'x', NULL, 'no', 1, NULL, NULL)");
    else
        store_kind->sql(
            "INSERT INTO outbox_stuck VALUES (0, 1, 1, 1, true, true, 'a', 'x', NULL, 'no', 1, NULL, NULL)");
    struct hk_refs_done done = ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 1);
    assert_int_equal(done.did[0], HK_REF_IN_FLIGHT);
    assert_count("outbox", 1);
    admin_ops->close(admin);
}

/* ---- restore ---- */

#define ALL_OF_RETRY                                                                                         \
    "coalesce(original_outbox_id, -1) || '|' || message_id || destination || event_type || "                 \
    "coalesce(message_key, '-') || coalesce(headers, '-') || coalesce(content_type, '-') || "                \
    "coalesce(encoding, '-') || coalesce(correlation_id, '-') || coalesce(traceparent, '-') || "             \
    "coalesce(idempotency_key, '-') || '|' || coalesce(CAST(not_before AS TEXT), '-') || "                   \
    "coalesce(CAST(expires_at AS TEXT), '-') || coalesce(policy, '-') || coalesce(max_attempts, -1) || "     \
    "CAST(created_at AS TEXT) || '|' || due_ms || '|' || CAST(deferred AS TEXT) || attempts || '|' || "      \
    "charged || '|' || failed_transient || failed_rate_limit || failed_auth || failed_permanent || "         \
    "failed_unknown || '|' || prev_wait_ms || '|' || first_attempt_ms || '|' || paused_mark_ms || '|' || "   \
    "first_failed_ms || '|' || last_attempt_ms || coalesce(last_cause, '-') || coalesce(last_error, '-') "   \
    "|| '|' || crashes || '|' || life || '|' || letter_id || CAST(possibly_delivered AS TEXT) || payload "   \
    "FROM outbox_retry"

static void a_restored_message_has_all_that_it_had(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    char before[1000];
    store_kind->sql(
        "INSERT INTO outbox_retry (original_outbox_id, message_id, destination, event_type, message_key, headers, "
        "content_type, encoding, correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, "
        "max_attempts, created_at, due_ms, attempts, charged, failed_transient, failed_rate_limit, failed_auth, "
        "failed_permanent, failed_unknown, prev_wait_ms, first_attempt_ms, paused_mark_ms, first_failed_ms, "
        "last_attempt_ms, last_cause, last_error, crashes, life, payload) VALUES (77, 'm', 'x', 'Made', 'k', '{}', 't', "
        "'utf8', 'c', 'tp', 'i', '2027-01-01T00:00:00Z', '2028-01-01T00:00:00Z', 'p', 9, '2026-12-31T00:00:00Z', 42, 8, 7, "
        "1, 2, 1, 1, 2, 11, 12, 13, 14, 15, 'HTTP_500', 'it said no', 1, 1, 'body')");
    (void)snprintf(before, sizeof before, "%s", store_kind->value("SELECT " ALL_OF_RETRY));
    assert_true(strlen(before) > 100);
    assert_int_equal(ON(admin_ops->cancel_refs, admin, HK_IN_RETRY, 1).changed, 1);
    assert_count("outbox_retry", 0);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).changed, 1);
    assert_value(ALL_OF_RETRY, before);
    assert_count("outbox_cancelled", 0);
    if (store_kind->one_lane)
        assert_count("outbox_cancelled_past", 0);
    /* of one message a row without a list, both times */
    assert_count("outbox_audit WHERE message_id = 'm' AND destination = 'x' AND detail IS NULL", 2);
    assert_value("act FROM outbox_audit WHERE id = 2", "restore");
    assert_count("outbox_audit_messages", 0);
    /* so does one that was cancelled by itself */
    const struct hk_act act = {"m", NULL, "ann", "because"};
    struct hk_acted acted = {0};
    struct hk_err err = {0};
    assert_int_equal(admin_ops->cancel(admin, &act, &acted, &err), HK_OK);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 2).changed, 1);
    assert_value(ALL_OF_RETRY, before);
    admin_ops->close(admin);
}

static void what_was_not_tried_waits_for_its_time(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, not_before, expires_at, max_attempts, "
        "idempotency_key, payload) VALUES "
        "('later', 'x', 'Made', '2027-01-15T09:00:00Z', '2027-01-16T00:00:00Z', 3, 'i', 'p'), "
        "('past', 'x', 'Made', '2027-01-15T07:00:00Z', '2027-01-15T07:30:00Z', NULL, NULL, 'p'), "
        "('now', 'x', 'Made', NULL, NULL, NULL, NULL, NULL)");
    assert_int_equal(ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 3, 2, 1).changed, 3);
    suite_clock_ms += 1000;
    struct hk_refs_done done = ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1, 2, 3);
    assert_int_equal(done.changed, 3);
    assert_retries("later past now");
    assert_count(
        "outbox_retry WHERE message_id = 'later' AND due_ms = 1800003600000 AND CAST(deferred AS INTEGER) = 1 "
        "AND max_attempts = 3 AND idempotency_key = 'i' AND attempts = 0 AND expires_at > '2027-01-15T12:00:00Z'",
        1);
    assert_count(
        "outbox_retry WHERE message_id = 'past' AND due_ms = 1800000001000 AND CAST(deferred AS INTEGER) = 0 "
        "AND expires_at < '2027-01-15T08:00:00Z'",
        1);
    assert_count("outbox_retry WHERE message_id = 'now' AND due_ms = 1800000001000 AND payload IS NULL AND "
                 "original_outbox_id = 3 AND life = 1",
                 1);
    assert_count("outbox_messages WHERE status = 'pending'", 3);
    admin_ops->close(admin);
}

static void what_an_older_version_cancelled_is_due_now(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    store_kind->sql(
        "INSERT INTO outbox_cancelled (message_id, destination, event_type, attempts, actor, reason, "
        "cancelled_ms, payload) VALUES ('old', 'x', 'Made', 2, 'ann', 'why', 1, 'p')");
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).changed, 1);
    assert_count(
        "outbox_retry WHERE message_id = 'old' AND attempts = 2 AND due_ms = 1800000000000 AND life = 1 AND "
        "letter_id = 0 AND original_outbox_id IS NULL AND payload = 'p'",
        1);
    admin_ops->close(admin);
}

static void restoring_twice_restores_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    insert_key("a", "x", "");
    insert_key("b", "x", "");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 1, 2);
    struct hk_refs_done done = ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1, 1, 9);
    assert_int_equal(done.changed, 1);
    assert_true((done.did[0] == HK_REF_DONE) + (done.did[1] == HK_REF_DONE) == 1);
    assert_int_equal(done.did[2], HK_REF_GONE);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).did[0], HK_REF_GONE);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_OUTBOX, 2).did[0], HK_REF_GONE);
    assert_retries("a");
    assert_count("outbox_cancelled", 1);
    admin_ops->close(admin);
}

/* ---- order ---- */

static void messages_come_back_in_their_order(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    insert_key("a", "a", "q");
    insert_key("b", "a", "q");
    insert_key("c", "a", "q");
    insert_key("d", "a", "q");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 3);
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 1, 2);
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 4);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 4, 1, 3, 2).changed, 4);
    assert_retries("a b c d");
    admin_ops->close(admin);
}

static void what_waits_before_it_stays_before_it(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    for (size_t i = 0; i < COUNT(names); i++)
        insert_key(names[i], "a", i == 1 ? "other" : "q");
    store_kind->sql("UPDATE outbox SET not_before = '2028-01-01T00:00:00Z' WHERE message_id = 'd'");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 3, 5);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1, 2).changed, 2);
    assert_retries(
        "a c e"); /* another key, one that is scheduled, and what comes behind stay where they are */
    assert_value(
        "payload || attempts || due_ms || original_outbox_id FROM outbox_retry WHERE message_id = 'a'",
        "p018000000000001");
    assert_count("outbox WHERE message_id IN ('b', 'd', 'f')", 3);
    admin_ops->close(admin);
}

static void a_destination_without_order_leaves_others_in_peace(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    insert_key("a", "x", "q");
    insert_key("b", "x", "q");
    insert_key("c", "x", "q");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 3);
    (void)suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).changed, 1);
    assert_retries("c");
    assert_count("outbox", 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void none_overtakes_what_is_in_flight(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    insert_key("a", "a", "q");
    insert_key("b", "a", "q");
    insert_key("c", "a", "q");
    insert_key("z", "a", "other");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 3, 4);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    struct hk_refs_done done = ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1, 2);
    assert_int_equal(done.did[0], HK_REF_OVERTAKING);
    assert_int_equal(done.did[1], HK_REF_DONE);
    assert_retries("z");
    assert_count("outbox", 2);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).did[0], HK_REF_DONE);
    assert_retries("z a b c");
    suite_close(store);
    admin_ops->close(admin);
}

static size_t held(struct hk_store *store)
{
    const struct hk_held_key *keys = NULL;
    struct hk_err err = {0};
    size_t n = 0;
    assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, &err), HK_OK);
    return n;
}

static void a_restored_head_holds_its_key_again(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_poll *poll = NULL;
    struct hk_err err = {0};
    int64_t lane = suite_acquire(store);
    insert_key("a", "a", "q");
    insert_key("b", "a", "q");
    fail_once(store, lane, 1);
    assert_int_equal(held(store), 1);
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_RETRY, 1);
    assert_int_equal(held(store), 0);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    int64_t acts = poll->acts;
    (void)ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1);
    assert_int_equal(held(store), 1);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->acts > acts); /* by which a relay knows that keys may be held */
    suite_clock_ms += 3600000;
    const struct hk_scan scan = {
        .source = HK_FROM_RETRY, .after_due_ms = INT64_MIN, .destination = "a", .limit = 10};
    const struct hk_heads *heads = NULL;
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, &err), HK_OK);
    assert_int_equal(heads->n, 1);
    assert_true(heads->items[0].key_first);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- letters ---- */

static void a_letter_waits_for_the_outcome_again(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    insert_key("x", "a", "");
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    store_kind->sql("UPDATE dead_letters SET status = 'retrying'");
    store_kind->sql(
        "INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, letter_id, life, payload) "
        "VALUES ('x', 'a', 'Made', 0, 1, 2, 'fixed')");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_RETRY, 1);
    assert_value("status || resolution FROM dead_letters", "discardedcancelled");
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).changed, 1);
    assert_value("status FROM dead_letters WHERE resolution IS NULL AND resolved_at IS NULL", "retrying");
    assert_value("letter_id || ' ' || life FROM outbox_retry", "1 2");

    /* somebody has opened it again: it is that letter that goes out, once */
    int64_t row = suite_number("SELECT id FROM outbox_retry");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_RETRY, row);
    store_kind->sql("UPDATE dead_letters SET status = 'failed', resolution = NULL, resolved_at = NULL");
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 2).did[0], HK_REF_LETTER);
    assert_count("outbox_cancelled", 1);
    /* and when the letter is gone, the message has none */
    store_kind->sql("DELETE FROM dead_letters");
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 2).did[0], HK_REF_DONE);
    assert_value("letter_id || ' ' || life FROM outbox_retry", "0 2");
    suite_close(store);
    admin_ops->close(admin);
}

/* The application has taken it into its own hands: restored, it would go out twice. */
static void what_was_written_again_stays_cancelled(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    insert_key("again", "a", "k");
    insert_key("again", "b", "k");
    assert_int_equal(ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 2, 3).changed, 2);
    insert_key("again", "a", "k");
    struct hk_refs_done done = ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1, 2);
    assert_true(done.did[0] == HK_REF_AGAIN && done.did[1] == HK_REF_DONE); /* for b it was not */
    fail_once(store, lane, 4);
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).did[0], HK_REF_AGAIN);
    store_kind->sql("DELETE FROM outbox_retry WHERE destination = 'a'");
    store_kind->sql(
        "INSERT INTO outbox_sent (message_id, destination, event_type, original_outbox_id, attempts, status, life, created_at, "
        "sent_ms) VALUES ('again', 'a', 'Made', 4, 1, 200, 1, '2027-01-10T08:00:00.000Z', 1)");
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).did[0], HK_REF_AGAIN);
    store_kind->sql(
        "UPDATE outbox_sent SET original_outbox_id = 1"); /* before: it was cancelled as the second of its id */
    assert_int_equal(ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1).did[0], HK_REF_DONE);
    insert_key("twice", "a", "k");
    insert_key("twice", "a", "k");
    assert_int_equal(ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 5, 6).changed, 2);
    done = ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 3, 4);
    assert_true(done.did[0] == HK_REF_DONE && done.did[1] == HK_REF_AGAIN);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- which ---- */

/* message_ids by origin, in pages of `limit`. */
static void list_by_origin(struct hk_admin *admin, int64_t act_id, const char *destination, uint32_t limit,
                           char out[200])
{
    struct hk_list how = {.state = HK_STATE_CANCELLED,
                          .by_origin = true,
                          .act_id = act_id,
                          .destination = destination,
                          .limit = limit};
    const struct hk_rows *rows = NULL;
    struct hk_err err = {0};
    size_t len = 0;
    int calls = 0;
    out[0] = '\0';
    do {
        enum hk_code rc = admin_ops->list(admin, &how, &rows, &err);
        NOTE_IF(rc != HK_OK, "list: %s\n", err.message);
        assert_int_equal(rc, HK_OK);
        assert_true(rows->n <= limit && ++calls < 50);
        for (size_t i = 0; i < rows->n; i++) {
            assert_int_equal(rows->items[i].place, HK_IN_CANCELLED);
            len += (size_t)snprintf(out + len, 200 - len, "%.*s", (int)rows->items[i].message_id.len,
                                    rows->items[i].message_id.ptr);
        }
        how.resume = true;
        how.after_origin = rows->last_origin;
        how.after_id = rows->last_id;
    } while (rows->more);
}

static void cancelled_messages_are_listed_in_their_order(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    char found[200];
    for (size_t i = 0; i < 6; i++)
        insert_key((const char *[]){"a", "b", "c", "d", "e", "f"}[i], i % 2 ? "x" : "y", "");
    store_kind->sql(
        "INSERT INTO outbox_cancelled (message_id, destination, event_type, actor, reason, cancelled_ms) "
        "VALUES ('0', 'x', 'Made', 'ann', 'why', 1)");
    int64_t first = ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 5, 2, 4).act_id;
    int64_t second = ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 6, 1, 3).act_id;
    assert_true(first != second);
    for (uint32_t limit = 1; limit < 10; limit++) {
        list_by_origin(admin, 0, NULL, limit, found);
        assert_string_equal(found, "0abcdef");
        list_by_origin(admin, 0, "x", limit, found);
        assert_string_equal(found, "0bdf");
        list_by_origin(admin, first, NULL, limit, found);
        assert_string_equal(found, "bde");
        list_by_origin(admin, second, "x", limit, found);
        assert_string_equal(found, "f");
    }
    /* what was restored and cancelled again is of the later act */
    (void)ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED,
             suite_number("SELECT id FROM outbox_cancelled WHERE message_id = 'd'"));
    list_by_origin(admin, first, NULL, 2, found);
    assert_string_equal(found, "be");
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_RETRY, 1);
    list_by_origin(admin, first, NULL, 2, found);
    assert_string_equal(found, "be");
    list_by_origin(admin, 0, NULL, 2, found);
    assert_string_equal(found, "0abcdef");
    admin_ops->close(admin);
}

static void too_many_at_once_are_refused(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_ref *refs = calloc(HK_REFS_MAX + 1, sizeof *refs);
    struct hk_refs_done done = {0};
    struct hk_err err = {0};
    assert_non_null(refs);
    const struct hk_refs_act act = {.refs = refs, .n = HK_REFS_MAX + 1, .actor = "ann", .reason = "because"};
    assert_int_equal(admin_ops->cancel_refs(admin, &act, &done, &err), HK_INVALID);
    assert_int_equal(admin_ops->restore_refs(admin, &act, &done, &err), HK_INVALID);
    free(refs);
    admin_ops->close(admin);
}

/* ---- without memory ---- */

static long allowed;

static void *choosy_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    if (allowed == 0)
        return NULL;
    allowed--;
    return realloc(ptr, bytes);
}

static void choosy_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static enum hk_code there_and_back(void)
{
    const struct hk_ref waiting[] = {{HK_IN_OUTBOX, 1}, {HK_IN_OUTBOX, 2}, {HK_IN_RETRY, 1}};
    const struct hk_refs_act there = {.refs = waiting, .n = 3, .actor = "ann", .reason = "because"};
    struct hk_ref cancelled[10];
    struct hk_refs_act back = {.refs = cancelled, .actor = "ann", .reason = "because"};
    struct hk_admin *admin = NULL;
    const struct hk_rows *rows = NULL;
    struct hk_refs_done done = {0};
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->open(store_kind->url(), &(struct hk_store_options){0}, &admin, &err);
    if (rc == HK_OK)
        rc = admin_ops->cancel_refs(admin, &there, &done, &err);
    if (rc == HK_OK)
        rc = admin_ops->list(admin, &(struct hk_list){.limit = 10, .by_origin = true}, &rows, &err);
    for (size_t i = 0; rc == HK_OK && i < rows->n; i++)
        cancelled[back.n++] = (struct hk_ref){HK_IN_CANCELLED, rows->items[i].id};
    if (rc == HK_OK)
        rc = admin_ops->restore_refs(admin, &back, &done, &err);
    admin_ops->close(admin);
    return rc;
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    bool done = false;
    suite_fill(3, "a", "q");
    for (long k = 0; !done; k++) {
        struct hk_allocator allocator = {.resize = choosy_resize, .release = choosy_release};
        allowed = k;
        hk_allocator_set(&allocator);
        enum hk_code rc = there_and_back();
        done = allowed > 0;
        hk_allocator_set(NULL);
        assert_true(rc == HK_OK || rc == HK_NOMEM);
        assert_true(k < 2000);
        assert_count("outbox_messages", 3);
    }
    assert_count("outbox_cancelled", 0);
}

/* ---- erase ---- */

#define INSERT_LETTER                                                                                                     \
    "INSERT INTO dead_letters (message_id, event_type, destination, reason_code, error_message, error_detail, attempts, " \
    "first_failed_at, last_failed_at, created_at, status, headers, encoding, payload) "

static void insert_letter(const char *message_id, const char *status, const char *encoding,
                          const char *payload)
{
    char sql[700];
    snprintf(sql, sizeof sql,
             INSERT_LETTER
             "VALUES ('%s', 'Made', 'a', 'X', 'no', '{\"response_body\":\"no\"}', 1, CURRENT_TIMESTAMP, "
             "CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, '%s', '{}', '%s', '%s')",
             message_id, status, encoding, payload);
    store_kind->sql(sql);
}

static void what_is_erased_leaves_its_record(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    insert_letter("m", "failed", "utf8", "secret");
    insert_letter("r", "retrying", "utf8", "secret");
    store_kind->sql(
        "INSERT INTO dead_letter_versions (letter_id, version, replaced_ms, actor, reason, payload) "
        "VALUES (1, 1, 1, 'ann', 'x', 'secret')");
    store_kind->sql(
        "INSERT INTO outbox_cancelled (message_id, destination, event_type, actor, reason, cancelled_ms, payload) "
        "VALUES ('m', 'b', 'Made', 'ann', 'x', 1, 'secret')");
    const struct hk_ref refs[] = {{HK_IN_DEAD, 1}, {HK_IN_DEAD, 2}, {HK_IN_DEAD, 77}, {HK_IN_OUTBOX, 1}};

    const enum hk_ref_did wanted[] = {HK_REF_DONE, HK_REF_IN_FLIGHT, HK_REF_GONE, HK_REF_GONE};
    const struct hk_refs_act act = {.refs = refs, .n = COUNT(refs), .actor = "ann", .reason = "asked for"};
    struct hk_refs_done done = {0};
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->erase_refs(admin, &act, &done, &err);
    NOTE_IF(rc != HK_OK, "erase: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    for (size_t i = 0; i < COUNT(refs); i++)
        assert_int_equal(done.did[i], wanted[i]);
    assert_int_equal(done.changed, 1);
    assert_count(
        "dead_letters WHERE message_id = 'm' AND status = 'discarded' AND encoding = 'erased' AND payload IS NULL AND "
        "headers IS NULL AND error_message IS NULL AND error_detail IS NULL AND reason_code = 'X'",
        1);
    assert_count("dead_letter_versions WHERE payload IS NULL AND actor = 'ann'", 1);
    assert_count("outbox_cancelled WHERE payload IS NULL AND encoding = 'erased'",
                 1); /* all of the message goes */
    assert_count("dead_letters WHERE message_id = 'r' AND payload = 'secret'", 1);
    assert_count("outbox_audit WHERE act = 'erase' AND message_id = 'm' AND reason = 'asked for'", 1);
    assert_count("outbox_audit", 1);
    struct hk_refs_done back = ON(admin_ops->restore_refs, admin, HK_IN_CANCELLED, 1);
    assert_int_equal(back.did[0], HK_REF_ERASED);
    admin_ops->close(admin);
}

/* ---- sealed texts ---- */

static uint64_t uses_of(struct hk_admin *admin, unsigned home, const char *key)
{
    const struct hk_seal_uses *uses = NULL;
    uint64_t n = 0;
    assert_int_equal(admin_ops->seal_uses(admin, &uses, NULL), HK_OK);
    for (size_t i = 0; i < uses->n; i++)
        if (uses->items[i].home == home && hk_str_eq(uses->items[i].key_id, hk_str_of(key)))
            n += uses->items[i].n;
    return n;
}

static void a_text_is_exchanged_while_it_is_the_same(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_seal_rows *rows = NULL;
    bool changed = true;
    insert_letter("open", "failed", "utf8", "as it is");
    insert_letter("old", "failed", "sealed", "hk1.k1.0a0b0c0d.QUFB");
    insert_letter("new", "failed", "sealed:base64", "hk1.k2.0a0b0c0d.QUFB");
    struct hk_seal_page page = {.home = HK_SEAL_LETTERS, .after_id = INT64_MIN, .limit = 10, .bytes = 1};
    assert_int_equal(admin_ops->seal_page(admin, &page, &rows, NULL), HK_OK);
    assert_int_equal(rows->n, 1); /* one is more than a byte */
    assert_int_equal(rows->items[0].id, 2);
    assert_true(hk_str_eq(rows->items[0].a, hk_str_of("hk1.k1.0a0b0c0d.QUFB")));
    page.bytes = 1000;
    page.open = true;
    assert_int_equal(admin_ops->seal_page(admin, &page, &rows, NULL), HK_OK);
    assert_int_equal(rows->n, 3);
    assert_int_equal(uses_of(admin, HK_SEAL_LETTERS, ""), 1);
    assert_int_equal(uses_of(admin, HK_SEAL_LETTERS, "k1"), 1);
    struct hk_seal_put put = {
        .home = HK_SEAL_LETTERS, .id = 2, .old = hk_str_of("another"), .text = hk_str_of("hk1.k2.x")};
    assert_int_equal(admin_ops->seal_put(admin, &put, &changed, NULL), HK_OK);
    assert_false(changed);
    put.old = hk_str_of("hk1.k1.0a0b0c0d.QUFB");
    assert_int_equal(admin_ops->seal_put(admin, &put, &changed, NULL), HK_OK);
    assert_true(changed);
    put = (struct hk_seal_put){.home = HK_SEAL_LETTERS,
                               .id = 1,
                               .old = hk_str_of("as it is"),
                               .text = hk_str_of("hk1.k2.y"),
                               .encoding = hk_str_of("sealed")};
    assert_int_equal(admin_ops->seal_put(admin, &put, &changed, NULL), HK_OK);
    assert_true(changed);
    assert_count("dead_letters WHERE encoding = 'sealed' AND payload LIKE 'hk1.k2.%'", 2);
    assert_int_equal(uses_of(admin, HK_SEAL_LETTERS, "k1") + uses_of(admin, HK_SEAL_LETTERS, ""), 0);
    assert_int_equal(uses_of(admin, HK_SEAL_LETTERS, "k2"), 3);
    admin_ops->close(admin);
}

static enum hk_code key_of_sevens(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    (void)arg, (void)i, (void)err;
    memset(out, 7, HK_KEY_BYTES);
    return HK_OK;
}

static void what_leaves_outbox_is_sealed(void **state)
{
    (void)state;
    static const char *const ids[] = {"k1"};
    const struct hk_keyring_options options = {.store = "shop", .ids = ids, .n = 1, .fetch = key_of_sevens};
    struct hk_keyring *keys = NULL;
    struct hk_admin *admin = NULL;
    assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_OK);
    struct hk_store *store = suite_open(&(struct hk_store_options){.seal = keys});
    assert_int_equal(
        admin_ops->open(store_kind->url(), &(struct hk_store_options){.seal = keys}, &admin, NULL), HK_OK);
    int64_t lane = suite_acquire(store);
    insert_key("retry", "a", "");
    insert_key("dead", "a", "");
    insert_key("cancelled", "a", "");
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, encoding, payload) VALUES ('b', 'a', 'Made', 'base64', 'cA==')");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type) VALUES ('none', 'a', 'Made')");
    fail_once(store, lane, 1);
    fail_once(store, lane, 5);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 2);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 2, HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    (void)ON(admin_ops->cancel_refs, admin, HK_IN_OUTBOX, 3, 4);
    assert_count("outbox", 0);
    assert_count(
        "outbox_retry WHERE message_id = 'retry' AND encoding = 'sealed' AND payload LIKE 'hk1.k1.%'", 1);
    assert_count("outbox_retry WHERE message_id = 'none' AND encoding = 'utf8' AND payload IS NULL", 1);
    assert_count("dead_letters WHERE message_id = 'dead' AND encoding = 'sealed' AND payload LIKE 'hk1.k1.%'",
                 1);
    assert_count(
        "outbox_cancelled WHERE message_id = 'cancelled' AND encoding = 'sealed' AND payload LIKE 'hk1.k1.%'",
        1);
    assert_count(
        "outbox_cancelled WHERE message_id = 'b' AND encoding = 'sealed:base64' AND payload LIKE 'hk1.k1.%'",
        1);
    suite_close(store);
    admin_ops->close(admin);
    hk_keyring_free(keys);
}

size_t admin_bulk_tests(struct CMUnitTest *out, size_t room)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(many_are_cancelled_in_one_act),
        TEST(what_is_stuck_is_not_cancelled),
        TEST(a_restored_message_has_all_that_it_had),
        TEST(what_was_not_tried_waits_for_its_time),
        TEST(what_an_older_version_cancelled_is_due_now),
        TEST(restoring_twice_restores_once),
        TEST(messages_come_back_in_their_order),
        TEST(what_waits_before_it_stays_before_it),
        TEST(a_destination_without_order_leaves_others_in_peace),
        TEST(none_overtakes_what_is_in_flight),
        TEST(a_restored_head_holds_its_key_again),
        TEST(a_letter_waits_for_the_outcome_again),
        TEST(what_was_written_again_stays_cancelled),
        TEST(cancelled_messages_are_listed_in_their_order),
        TEST(too_many_at_once_are_refused),
        TEST(every_failing_allocation_is_survived),
        TEST(what_is_erased_leaves_its_record),
        TEST(a_text_is_exchanged_while_it_is_the_same),
        TEST(what_leaves_outbox_is_sealed),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
