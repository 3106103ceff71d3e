/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that the database does not let us take away: a trigger of the application's ignores or refuses it. Three messages, p1 to p3, of
 * which p2 is the one. */
#include <string.h>

#include "base/str.h"
#include "store_suite_impl.h"

#define RETRY_MS 30000

static int64_t id_of(int i)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT id FROM outbox WHERE payload = 'p%d'", i);
    return suite_number(sql);
}

/* All three in one manifest. */
static int64_t claim_all(struct hk_store *store, int64_t lane, int64_t ids[3])
{
    struct hk_want wants[3];
    for (int i = 0; i < 3; i++) {
        ids[i] = id_of(i + 1);
        wants[i] = (struct hk_want){HK_FROM_OUTBOX, ids[i], true};
    }
    const struct hk_exchanged *done = suite_exchange(store, lane, NULL, 0, wants, 3);
    assert_int_equal(done->n_messages, 3);
    return done->claim;
}

static const struct hk_exchanged *settle_all(struct hk_store *store, int64_t lane, enum hk_settle_kind kind)
{
    int64_t ids[3];
    int64_t claim = claim_all(store, lane, ids);
    struct hk_settle settles[3];
    for (int i = 0; i < 3; i++)
        settles[i] = suite_settle(claim, HK_FROM_OUTBOX, ids[i], kind);
    return suite_exchange(store, lane, settles, 3, NULL, 0);
}

static void assert_second_is_stuck(const struct hk_exchanged *done)
{
    assert_non_null(done->stuck);
    for (int i = 0; i < 3; i++) {
        assert_false(done->stale[i]);
        assert_true((done->stuck[i] != NULL) == (i == 1));
    }
}

static size_t scan_outbox(struct hk_store *store)
{
    const struct hk_poll *poll = NULL;
    const struct hk_heads *heads = NULL;
    const struct hk_scan scan = {.source = HK_FROM_OUTBOX, .after_id = HK_FIRST_ID, .limit = 10};
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
    return heads->n;
}

static size_t held_keys(struct hk_store *store)
{
    const struct hk_held_key *keys = NULL;
    size_t n = 0;
    assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, NULL), HK_OK);
    return n;
}

/* Neither this relay nor the next one is shown the row, or may claim it. */
static void assert_nobody_gets_it(struct hk_store **store, int64_t *lane)
{
    for (int i = 0; i < 2; i++) {
        const struct hk_want claim = {HK_FROM_OUTBOX, id_of(2), true};
        assert_int_equal(scan_outbox(*store), 0);
        assert_int_equal(suite_exchange(*store, *lane, NULL, 0, &claim, 1)->n_messages, 0);
        suite_clock_ms += 1000;
        assert_int_equal(store_kind->ops->release(*store, *lane, NULL), HK_OK);
        suite_close(*store);
        *store = suite_open(NULL);
        *lane = suite_acquire(*store);
    }
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 1);
}

static void unguard(struct hk_store *store, int64_t lane)
{
    store_kind->guard(NULL, NULL, false);
    suite_clock_ms += RETRY_MS;
    suite_exchange(store, lane, NULL, 0, NULL, 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_stuck"), 0);
}

static void check_delivered(bool loud)
{
    suite_fill(3, "a", "k");
    store_kind->guard("outbox", "DELETE", loud);
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_exchanged *done = settle_all(store, lane, HK_SETTLE_SENT);
    assert_second_is_stuck(done);
    assert_non_null(strstr(done->stuck[1], loud ? "not p2" : "keep_p2"));
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_sent"), 2);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_stuck"), 1);
    assert_int_equal(held_keys(store), 0);
    assert_nobody_gets_it(&store, &lane);
    suite_clock_ms += RETRY_MS; /* tried again, in vain */
    suite_exchange(store, lane, NULL, 0, NULL, 0);
    assert_nobody_gets_it(&store, &lane);
    unguard(store, lane);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_sent"), 3);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 0);
    suite_close(store);
}

static void a_row_that_delete_does_not_remove_is_stuck_and_not_sent_again(void **state)
{
    (void)state;
    check_delivered(false);
}

static void a_row_whose_delete_is_refused_is_stuck_and_the_others_go(void **state)
{
    (void)state;
    check_delivered(true);
}

static void check_undelivered(enum hk_settle_kind kind, const char *table, const char *act, bool loud)
{
    suite_fill(3, "a", "k");
    store_kind->guard(table, act, loud);
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    assert_second_is_stuck(settle_all(store, lane, kind));
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s",
             kind == HK_SETTLE_DEAD ? "dead_letters" : "outbox_retry");
    assert_int_equal(suite_number(sql), 2);
    assert_int_equal(held_keys(store), 3);
    assert_nobody_gets_it(&store, &lane);
    assert_int_equal(held_keys(store), 3);
    unguard(store, lane);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 0);
    assert_int_equal(suite_number(sql), 3); /* what it was to become, it became at last */
    suite_close(store);
}

static void a_retry_that_cannot_leave_outbox_is_stuck_and_holds_its_key(void **state)
{
    (void)state;
    check_undelivered(HK_SETTLE_RETRY, "outbox", "DELETE", false);
}

static void a_letter_that_cannot_leave_outbox_is_stuck(void **state)
{
    (void)state;
    check_undelivered(HK_SETTLE_DEAD, "outbox", "DELETE", true);
}

static void what_cannot_become_a_retry_is_stuck_and_not_lost(void **state)
{
    (void)state;
    check_undelivered(HK_SETTLE_RETRY, "outbox_retry", "INSERT", false);
}

static void what_cannot_become_a_letter_is_stuck_and_not_lost(void **state)
{
    (void)state;
    check_undelivered(HK_SETTLE_DEAD, "dead_letters", "INSERT", false);
}

/* A retry row of p2, claimed. */
static struct hk_settle claimed_retry(struct hk_store *store, int64_t lane, enum hk_settle_kind kind)
{
    suite_fill(3, "a", "k");
    settle_all(store, lane, HK_SETTLE_RETRY);
    suite_clock_ms += 5000;
    int64_t id = suite_number("SELECT id FROM outbox_retry WHERE payload = 'p2'");
    int64_t claim = suite_claim(store, lane, HK_FROM_RETRY, id);
    return suite_settle(claim, HK_FROM_RETRY, id, kind);
}

static void check_retry(enum hk_settle_kind kind, const char *act, bool loud)
{
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    struct hk_settle s = claimed_retry(store, lane, kind);
    store_kind->guard("outbox_retry", act, loud);
    const struct hk_exchanged *done = suite_exchange(store, lane, &s, 1, NULL, 0);
    assert_non_null(done->stuck);
    assert_non_null(done->stuck[0]);
    assert_int_equal(held_keys(store), kind == HK_SETTLE_SENT ? 2 : 3);
    const struct hk_want claim = {HK_FROM_RETRY, s.id, true};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(suite_exchange(store, lane, NULL, 0, &claim, 1)->n_messages, 0);
        store_kind->ops->release(store, lane, NULL);
        suite_close(store);
        store = suite_open(NULL);
        lane = suite_acquire(store);
    }
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 3);
    unguard(store, lane);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry WHERE claim IS NULL"),
                     kind == HK_SETTLE_SENT ? 2 : 3);
    suite_close(store);
}

static void a_retry_row_that_cannot_go_is_stuck(void **state)
{
    (void)state;
    check_retry(HK_SETTLE_SENT, "DELETE", false);
}

static void a_retry_row_that_cannot_be_changed_is_stuck(void **state)
{
    (void)state;
    check_retry(HK_SETTLE_RETRY, "UPDATE", true);
}

static void a_retry_row_whose_change_is_ignored_is_stuck(void **state)
{
    (void)state;
    check_retry(HK_SETTLE_RETRY, "UPDATE", false);
}

/* The next relay takes over; the others go to retry with its first exchange. */
static void check_orphans(bool loud)
{
    suite_fill(3, "a", NULL);
    struct hk_store *store = suite_open(NULL);
    int64_t ids[3];
    claim_all(store, suite_acquire(store), ids);
    suite_close(store);
    store_kind->guard("outbox", "DELETE", loud);
    suite_clock_ms += 60000;
    store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_exchange(store, lane, NULL, 0, NULL, 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 2);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 1);
    if (loud)
        assert_nobody_gets_it(&store, &lane);
    suite_close(store);
}

static void a_take_over_is_not_stopped_by_a_row_that_cannot_go(void **state)
{
    (void)state;
    check_orphans(true);
}

static void a_row_that_somebody_deletes_meanwhile_is_not_stuck(void **state)
{
    (void)state;
    int64_t ids[3];
    suite_fill(3, "a", NULL);
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store), claim = claim_all(store, lane, ids);
    store_kind->sql("DELETE FROM outbox WHERE payload = 'p2'");
    struct hk_settle settles[3];
    for (int i = 0; i < 3; i++)
        settles[i] = suite_settle(claim, HK_FROM_OUTBOX, ids[i], i ? HK_SETTLE_SENT : HK_SETTLE_RETRY);
    assert_null(suite_exchange(store, lane, settles, 3, NULL, 0)->stuck);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_stuck"), 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 0);
    suite_close(store);
}

/* What is to be claimed is claimed all the same, in the same exchange. */
static void a_stuck_row_keeps_nothing_from_being_claimed(void **state)
{
    (void)state;
    int64_t ids[3];
    suite_fill(3, "a", NULL);
    store_kind->guard("outbox", "DELETE", true);
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store), claim = claim_all(store, lane, ids);
    store_kind->sql("INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'Made', 'p4')");
    const struct hk_want more = {HK_FROM_OUTBOX, id_of(4), true};
    struct hk_settle settles[3];
    for (int i = 0; i < 3; i++)
        settles[i] = suite_settle(claim, HK_FROM_OUTBOX, ids[i], HK_SETTLE_SENT);
    const struct hk_exchanged *done = suite_exchange(store, lane, settles, 3, &more, 1);
    assert_second_is_stuck(done);
    assert_int_equal(done->n_messages, 1);
    suite_close(store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

const struct CMUnitTest suite_stuck_tests[] = {
    TEST(a_row_that_delete_does_not_remove_is_stuck_and_not_sent_again),
    TEST(a_row_whose_delete_is_refused_is_stuck_and_the_others_go),
    TEST(a_retry_that_cannot_leave_outbox_is_stuck_and_holds_its_key),
    TEST(a_letter_that_cannot_leave_outbox_is_stuck),
    TEST(what_cannot_become_a_retry_is_stuck_and_not_lost),
    TEST(what_cannot_become_a_letter_is_stuck_and_not_lost),
    TEST(a_retry_row_that_cannot_go_is_stuck),
    TEST(a_retry_row_that_cannot_be_changed_is_stuck),
    TEST(a_retry_row_whose_change_is_ignored_is_stuck),
    TEST(a_take_over_is_not_stopped_by_a_row_that_cannot_go),
    TEST(a_row_that_somebody_deletes_meanwhile_is_not_stuck),
    TEST(a_stuck_row_keeps_nothing_from_being_claimed),
};
const size_t suite_stuck_count = COUNT(suite_stuck_tests);
