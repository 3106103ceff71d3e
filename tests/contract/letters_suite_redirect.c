/* SPDX-License-Identifier: Apache-2.0 */
/* A letter that goes to another destination than its own: it is that one's letter from then on, and no receiver gets one message twice
 * under one id. */
#include <stdlib.h>

#include "base/str.h"
#include "letters_suite_impl.h"

static struct hk_letter_done redirect(struct hk_admin *admin, int64_t id, enum hk_requeue_id ids,
                                      const char *to)
{
    const struct hk_letter_act act = {.ids = &id, .n = 1, .actor = "ann", .reason = "moved", .to = to};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = letters_ops->requeue(admin, &act, ids, &done, &err);
    NOTE_IF(rc != HK_OK, "redirect: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(done->n, 1);
    return done->items[0];
}

/* Its newest life ends so at b. */
static void end_at_b(struct hk_store *store, int64_t lane, enum hk_settle_kind kind)
{
    int64_t id = letters_retry_of(1);
    struct hk_settle s = suite_settle(suite_claim(store, lane, HK_FROM_RETRY, id), HK_FROM_RETRY, id, kind);
    s.destination = hk_str_of("b");
    suite_settle_one(store, lane, &s);
}

static void a_redirected_letter_is_of_its_new_destination(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    char print[HK_FINGERPRINT_MAX];
    letters_fill(store, lane, 1, "k");
    struct hk_letter_done done = redirect(admin, 1, HK_REQUEUE_AUTO, "b");
    assert_int_equal(done.did, HK_DID_IT);
    assert_text(done.message_id, "m1");
    assert_value("destination || message_id || life || message_key FROM outbox_retry", "bm12k");
    assert_value("destination || status FROM dead_letters", "bretrying");
    assert_value("detail FROM outbox_audit WHERE act = 'requeue'",
                 "{\"message_id\":\"m1\",\"from\":\"a\",\"to\":\"b\"}");
    assert_int_equal(redirect(admin, 1, HK_REQUEUE_AUTO, "c").did, HK_DID_NOTHING); /* on its way already */

    end_at_b(store, lane, HK_SETTLE_DEAD);
    const struct hk_letter_shown *shown = letters_show(admin, 1);
    assert_text(shown->letter.destination, "b");
    assert_int_equal(shown->letter.status, HK_LETTER_FAILED);
    assert_int_equal(shown->letter.life, 2);
    hk_fingerprint(HK_CLASS_TRANSIENT, hk_str_of("HTTP_500"), hk_str_of("b"), hk_str_of("it said no"), print);
    assert_text(shown->letter.fingerprint, print);
    assert_int_equal(shown->n_attempts, 2); /* of both destinations */
    assert_text(shown->attempts[0].destination, "a");
    assert_text(shown->attempts[1].destination, "b");
    assert_rows("dead_letters", 1);

    assert_int_equal(redirect(admin, 1, HK_REQUEUE_AUTO, NULL).did, HK_DID_IT); /* its own is b now */
    end_at_b(store, lane, HK_SETTLE_SENT);
    assert_value("destination || status FROM dead_letters", "bresolved");
    assert_value("destination || message_id FROM outbox_sent", "bm1");
    assert_true(letters_verify_audit(admin) > 0);
    suite_close(store);
    admin_ops->close(admin);
}

/* The key that a dead letter holds at its old destination is free, and the order at the new one is kept. */
static void a_redirected_letter_frees_the_key_at_its_old_destination(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 1, "k");
    assert_rows("dead_letters WHERE status = 'failed' AND destination = 'a' AND message_key = 'k'", 1);
    assert_int_equal(redirect(admin, 1, HK_REQUEUE_AUTO, "b").did, HK_DID_IT);
    assert_rows("dead_letters WHERE destination = 'a'", 0);
    assert_rows("outbox_retry WHERE destination = 'b' AND message_key = 'k'", 1);
    suite_close(store);
    admin_ops->close(admin);
}

/* A message that fanned out to a, b and c, and died at a and c: b has it, or had it, in one state after the other. */
static void no_destination_gets_a_message_twice_under_one_id(void **state)
{
    static const char *const at_b[] = {
        "INSERT INTO outbox_retry (message_id, destination, event_type, due_ms) VALUES ('m1', 'b', 'T', 1)",
        "INSERT INTO outbox_sent (message_id, destination, event_type, attempts, status, life, sent_ms) "
        "VALUES ('m1', 'b', 'T', 1, 200, 1, 1)",
        "INSERT INTO dead_letters (message_id, destination, event_type, reason_code, attempts, first_failed_at, last_failed_at, "
        "created_at) VALUES ('m1', 'b', 'T', 'X', 1, '2027-01-01T00:00:00Z', '2027-01-01T00:00:00Z', '2027-01-01T00:00:00Z')"};

    static const char *const gone[] = {"DELETE FROM outbox_retry", "DELETE FROM outbox_sent",
                                       "DELETE FROM dead_letters WHERE destination = 'b'"};

    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    const struct hk_letters_done *done = NULL;
    letters_fill(store, suite_acquire(store), 2, NULL);
    store_kind->sql("UPDATE dead_letters SET message_id = 'm1', destination = 'c' WHERE id = 2");
    for (size_t i = 0; i < COUNT(at_b); i++) {
        store_kind->sql(at_b[i]);
        struct hk_letter_done one = redirect(admin, 1, HK_REQUEUE_AUTO, "b");
        assert_int_equal(one.did, HK_DID_REFUSE);
        assert_int_equal(one.status, HK_LETTER_FAILED);
        store_kind->sql(gone[i]);
    }
    assert_value("destination || status FROM dead_letters WHERE id = 1", "afailed");
    /* both at once: the first goes, the second would be its repeat */
    const struct hk_letter_act both = {
        .ids = (int64_t[]){2, 1}, .n = 2, .actor = "ann", .reason = "moved", .to = "b"};
    assert_int_equal(letters_ops->requeue(admin, &both, HK_REQUEUE_AUTO, &done, &err), HK_OK);
    assert_int_equal(done->items[0].did, HK_DID_REFUSE);
    assert_int_equal(done->items[1].did, HK_DID_IT);
    assert_rows("outbox_retry", 1);
    struct hk_letter_done anew = redirect(admin, 2, HK_REQUEUE_NEW, "b"); /* another id: no repeat */
    assert_int_equal(anew.did, HK_DID_IT);
    assert_rows("outbox_retry WHERE destination = 'b'", 2);
    assert_rows("outbox_retry WHERE message_id = 'm1'", 1);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_job_sends_its_letters_to_another_destination(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    const struct hk_redrive_jobs *jobs = NULL;
    bool changed = false;
    int64_t lane = suite_acquire(store), id = 0, wake_ms = -1;
    const struct hk_letter_query open_letters = {.statuses = 1u << HK_LETTER_FAILED};
    const struct hk_redrive_job job = {.filter = hk_str_of("destination:a"),
                                       .pace = {.rate_per_s = 1000},
                                       .to = hk_str_of("b"),
                                       .actor = hk_str_of("ann"),
                                       .reason = hk_str_of("moved")};
    letters_fill(store, lane, 3, NULL);
    assert_int_equal(letters_ops->redrive_start(admin, &open_letters, &job, &id, &err), HK_OK);
    assert_int_equal(letters_ops->redrive_list(admin, id, false, &jobs, &err), HK_OK);
    assert_text(jobs->items[0].to, "b");
    assert_int_equal(admin_ops->pause(admin, "b", true, "ann", "full", &changed, &err), HK_OK);
    suite_clock_ms += 10000;
    assert_int_equal(letters_ops->redrive_step(admin, id, &open_letters, &wake_ms, &(bool){false}, &err), HK_OK);
    assert_rows("outbox_retry", 0); /* it waits for the destination that they go to */
    assert_int_equal(letters_ops->redrive_list(admin, id, false, &jobs, &err), HK_OK);
    assert_text(jobs->items[0].held, "b");
    assert_int_equal(admin_ops->pause(admin, "b", false, "ann", "well", &changed, &err), HK_OK);
    for (int i = 0; i < 50 && suite_number("SELECT count(*) FROM outbox_retry") < 3; i++) {
        suite_clock_ms += 10000;
        assert_int_equal(letters_ops->redrive_step(admin, id, &open_letters, &wake_ms, &(bool){false}, &err), HK_OK);
    }
    assert_rows("outbox_retry WHERE destination = 'b'", 3);
    assert_rows("dead_letters WHERE destination = 'b' AND status = 'retrying'", 3);
    suite_close(store);
    admin_ops->close(admin);
}

const struct CMUnitTest letters_redirect_tests[] = {
    TEST(a_redirected_letter_is_of_its_new_destination),
    TEST(a_redirected_letter_frees_the_key_at_its_old_destination),
    TEST(no_destination_gets_a_message_twice_under_one_id),
    TEST(a_job_sends_its_letters_to_another_destination),
};
const size_t letters_redirect_count = COUNT(letters_redirect_tests);
