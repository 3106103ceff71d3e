/* SPDX-License-Identifier: Apache-2.0 */
/* What people do with dead letters, beside a relay that works on the same store. */
#include <stdlib.h>

#include "base/str.h"
#include "letters_suite_impl.h"

/* ---- edit ---- */

static enum hk_code edit(struct hk_admin *admin, int64_t id, uint32_t version, const char *payload)
{
    const struct hk_letter_edit e = {id, version, hk_str_of(payload), "ann", "typo", "edit"};
    struct hk_err err = {0};
    uint32_t out = 0;
    enum hk_code rc = letters_ops->edit(admin, &e, &out, &err);
    assert_true(rc == HK_OK ? out == version + 1 : err.code == rc && err.message[0] != '\0');
    return rc;
}

static void an_edit_keeps_every_version_and_is_refused_to_the_second_editor(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 1, NULL);
    assert_int_equal(edit(admin, 1, 1, "{\"x\": 1.0}"), HK_OK);
    suite_clock_ms += 1000;
    assert_int_equal(edit(admin, 1, 1, "mine"), HK_CONFLICT);
    assert_int_equal(edit(admin, 1, 2, ""), HK_OK);
    assert_int_equal(edit(admin, 9, 1, "x"), HK_NOTFOUND);
    const struct hk_letter_shown *shown = letters_show(admin, 1);
    assert_int_equal(shown->letter.version, 3);
    assert_int_equal(shown->letter.edited_ms, suite_clock_ms);
    assert_int_equal(shown->letter.payload_bytes, 0);
    assert_true(shown->letter.has_payload);
    assert_int_equal(shown->n_versions, 2);
    assert_int_equal(shown->versions[0].version, 1);
    assert_text(shown->versions[0].payload, "p1");
    assert_text(shown->versions[0].actor, "ann");
    assert_text(shown->versions[0].reason, "typo");
    assert_int_equal(shown->versions[0].replaced_ms, suite_clock_ms - 1000);
    assert_text(shown->versions[1].payload, "{\"x\": 1.0}");
    assert_int_equal(shown->versions[1].payload_bytes, 10);

    char before[HK_AUDIT_HASH_MAX], after[HK_AUDIT_HASH_MAX];
    hk_digest_hex(hk_str_of("p1"), before);
    hk_digest_hex(hk_str_of("{\"x\": 1.0}"), after);
    assert_int_equal(shown->n_acts, 2);
    assert_text(shown->acts[0].act, "edit");
    assert_text(shown->acts[0].before, before);
    assert_text(shown->acts[0].after, after);
    assert_text(shown->acts[0].reason, "typo");
    assert_int_equal(letters_verify_audit(admin), 2);
    assert_int_equal(letters_act(letters_ops->discard, admin, 1).did, HK_DID_IT);
    assert_int_equal(edit(admin, 1, 3, "x"), HK_CONFLICT); /* somebody has settled it meanwhile */
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- requeue ---- */

static void asked_twice_it_is_requeued_once(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    const struct hk_poll *poll = NULL;
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 1, "k");
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    int64_t acts = poll->acts;
    struct hk_letter_done done = letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    assert_int_equal(done.did, HK_DID_IT);
    assert_int_equal(done.status, HK_LETTER_RETRYING);
    assert_text(done.message_id, "m1");
    done = letters_requeue(admin, 1, HK_REQUEUE_NEW);
    assert_int_equal(done.did, HK_DID_NOTHING);
    assert_text(done.message_id, "m1");
    assert_rows("outbox_retry", 1);
    assert_rows(
        "outbox_retry WHERE message_id = 'm1' AND letter_id = 1 AND life = 2 AND attempts = 0 AND charged = 0 "
        "AND crashes = 0 AND first_attempt_ms = 0 AND first_failed_ms = 0 AND claim IS NULL "
        "AND original_outbox_id = 1 AND message_key = 'k' AND correlation_id = 'c1' AND destination = 'a'",
        1);
    assert_number("due_ms FROM outbox_retry", suite_clock_ms);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed && poll->acts != acts);
    const struct hk_letter_shown *shown = letters_show(admin, 1);
    assert_int_equal(shown->letter.status, HK_LETTER_RETRYING);
    assert_int_equal(shown->letter.requeues, 1);
    assert_int_equal(shown->letter.requeued_ms, suite_clock_ms);
    assert_int_equal(shown->n_acts, 1);
    assert_int_equal(letters_requeue(admin, 7, HK_REQUEUE_AUTO).did, HK_DID_NOT_FIND);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_requeued_letter_is_resolved_when_it_arrives(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 1, NULL);
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    suite_clock_ms += 500;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_SENT);
    const struct hk_letter *l = &letters_show(admin, 1)->letter;
    assert_int_equal(l->status, HK_LETTER_RESOLVED);
    assert_text(l->resolution, "delivered");
    assert_int_equal(l->resolved_ms, suite_clock_ms);
    assert_rows("outbox_retry", 0);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_REFUSE);
    assert_int_equal(letters_act(letters_ops->resolve, admin, 1).did, HK_DID_NOTHING);
    assert_int_equal(letters_act(letters_ops->discard, admin, 1).did, HK_DID_REFUSE);
    assert_int_equal(letters_act(letters_ops->restore, admin, 1).did, HK_DID_REFUSE);
    assert_rows("outbox_audit", 1);
    assert_value("status FROM outbox_messages WHERE message_id = 'm1'", "sent");
    suite_close(store);
    admin_ops->close(admin);
}

static void a_requeued_letter_that_dies_again_is_open_again(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 1, NULL);
    int64_t first_ms = suite_clock_ms;
    char print[HK_FINGERPRINT_MAX];
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    suite_clock_ms += 60000;
    int64_t id = letters_retry_of(1);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, id), HK_FROM_RETRY, id, HK_SETTLE_DEAD);
    s.reason = s.attempt.cause = hk_str_of("HTTP_422");
    s.attempt.error = hk_str_of("it says no again");
    s.attempt.failure_class = HK_CLASS_PERMANENT;
    s.attempt.status = 422;
    s.attempt.possibly_delivered = true;
    suite_settle_one(store, lane, &s);
    const struct hk_letter *l = &letters_show(admin, 1)->letter;
    assert_int_equal(l->status, HK_LETTER_FAILED);
    assert_int_equal(l->life, 2);
    assert_int_equal(l->requeues, 1);
    assert_text(l->reason, "HTTP_422");
    assert_text(l->error, "it says no again");
    assert_text(l->failure_class, hk_class_name(HK_CLASS_PERMANENT));
    hk_fingerprint(HK_CLASS_PERMANENT, s.reason, hk_str_of("a"), s.attempt.error, print);
    assert_text(l->fingerprint, print);
    assert_int_equal(l->first_failed_ms, first_ms); /* the very first */
    assert_int_equal(l->last_failed_ms, suite_clock_ms);
    assert_true(l->possibly_delivered);
    assert_text(l->payload, "p1");

    letters_requeue(admin, 1, HK_REQUEUE_AUTO); /* an attempt of some life may have arrived: it stays so */
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    l = &letters_show(admin, 1)->letter;
    assert_true(l->possibly_delivered && l->life == 3 && l->requeues == 2);
    assert_rows("dead_letters", 1);
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    id = letters_retry_of(1);
    store_kind->sql("DELETE FROM dead_letters"); /* somebody purged it */
    letters_try_again(store, lane, id, HK_SETTLE_DEAD);
    assert_true(letters_show(admin, 2)->letter.possibly_delivered);
    suite_close(store);
    admin_ops->close(admin);
}

static void what_an_earlier_attempt_may_have_delivered_is_remembered(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(&(struct hk_store_options){.history = HK_STORE_HISTORY_NONE});
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    s.attempt.possibly_delivered = true;
    suite_settle_one(store, lane, &s);
    suite_clock_ms += 5000;
    letters_try_again(store, lane, 1, HK_SETTLE_RETRY);
    suite_clock_ms += 5000;
    letters_try_again(store, lane, 1, HK_SETTLE_DEAD);
    assert_true(letters_show(admin, 1)->letter.possibly_delivered);
    suite_close(store);
    admin_ops->close(admin);
}

static void what_its_relay_died_with_may_have_been_delivered(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    suite_close(store);
    suite_clock_ms += 60000;
    store = suite_open(NULL);
    lane = suite_acquire(store);
    assert_rows("outbox_retry", 1);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_RETRY, 1), HK_FROM_RETRY, 1, HK_SETTLE_DEAD);
    s.attempt = (struct hk_attempt_record){.made = false};
    s.reason = hk_str_of("RELAY_CRASHED");
    suite_settle_one(store, lane, &s);
    assert_true(letters_show(admin, 1)->letter.possibly_delivered);
    suite_close(store);
    admin_ops->close(admin);
}

/* Whoever looks for a message finds it, whatever is being done with its letter. */
static void the_list_of_messages_agrees_with_the_view(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    letters_fill(store, suite_acquire(store), 6, NULL);
    letters_act(letters_ops->send_begin, admin, 1);
    letters_requeue(admin, 2, HK_REQUEUE_NEW);
    letters_requeue(admin, 3, HK_REQUEUE_SAME);
    letters_act(letters_ops->resolve, admin, 4);
    letters_act(letters_ops->discard, admin, 5);
    assert_rows("outbox_messages", 7); /* 2 has two ids */
    for (int st = HK_STATE_NONE; st < HK_NSTATES; st++) {
        char sql[200];
        const struct hk_rows *rows = NULL;
        const struct hk_list how = {.state = (enum hk_state)st, .limit = 100};
        snprintf(sql, sizeof sql, "SELECT count(*) FROM outbox_messages WHERE status = '%s' OR '%d' = '0'",
                 hk_state_name((enum hk_state)st), st);
        assert_int_equal(admin_ops->list(admin, &how, &rows, &err), HK_OK);
        assert_int_equal(rows->n, suite_number(sql));
        for (size_t i = 0; i < rows->n; i++)
            assert_true(st == HK_STATE_NONE || (int)rows->items[i].state == st);
    }
    suite_close(store);
    admin_ops->close(admin);
}

static void an_edited_payload_goes_out_under_a_new_id(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    char as[100], again[100];
    letters_fill(store, lane, 3, NULL);
    store_kind->sql("UPDATE dead_letters SET idempotency_key = 'mine'");
    assert_int_equal(edit(admin, 1, 1, "fixed"), HK_OK);
    assert_true(hk_str_copy(as, sizeof as, letters_requeue(admin, 1, HK_REQUEUE_AUTO).message_id));
    assert_int_equal(strlen(as), 36);
    assert_value("payload FROM outbox_retry WHERE letter_id = 1", "fixed");
    assert_value("message_id FROM outbox_retry WHERE letter_id = 1", as);
    assert_value("coalesce(idempotency_key, '-') FROM outbox_retry WHERE letter_id = 1", "-");
    assert_text(letters_show(admin, 1)->letter.requeued_as, as);
    assert_value("status FROM outbox_messages WHERE message_id = 'm1'", "retrying");
    suite_clock_ms += 1000;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    /* nobody has edited it since: it may have arrived under that id */
    suite_clock_ms += 1000;
    assert_true(hk_str_copy(again, sizeof again, letters_requeue(admin, 1, HK_REQUEUE_AUTO).message_id));
    assert_string_equal(as, again);
    suite_clock_ms += 1000;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    suite_clock_ms += 1000;
    assert_int_equal(edit(admin, 1, 2, "fixed once more"), HK_OK);
    assert_true(hk_str_copy(again, sizeof again, letters_requeue(admin, 1, HK_REQUEUE_AUTO).message_id));
    assert_string_not_equal(as, again);

    assert_int_equal(edit(admin, 2, 1, "fixed"), HK_OK); /* asked for */
    assert_text(letters_requeue(admin, 2, HK_REQUEUE_SAME).message_id, "m2");
    assert_value("idempotency_key FROM outbox_retry WHERE letter_id = 2", "mine");
    assert_text(letters_show(admin, 2)->letter.requeued_as, "");
    assert_int_equal(letters_requeue(admin, 3, HK_REQUEUE_NEW).message_id.len, 36);
    assert_int_equal(letters_verify_audit(admin), 8);
    suite_close(store);
    admin_ops->close(admin);
}

/* A life whose relay died with it, and that then failed, waited and died: it may have arrived all the same, and may do so yet. */
static void what_may_have_arrived_goes_out_with_other_bytes_under_another_id(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    char as[100];
    letters_fill(store, lane, 1, NULL);
    assert_false(letters_show(admin, 1)->letter.possibly_delivered);
    assert_int_equal(edit(admin, 1, 1, "second"), HK_OK);
    assert_text(letters_requeue(admin, 1, HK_REQUEUE_SAME).message_id, "m1"); /* nothing has arrived */
    suite_claim(store, lane, HK_FROM_RETRY, letters_retry_of(1));
    suite_close(store);
    suite_clock_ms += 60000;
    store = suite_open(NULL);
    lane = suite_acquire(store);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_RETRY);
    suite_clock_ms += 60000;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    assert_true(letters_show(admin, 1)->letter.possibly_delivered);
    assert_text(letters_requeue(admin, 1, HK_REQUEUE_SAME).message_id, "m1"); /* the same bytes */
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);

    assert_int_equal(edit(admin, 1, 2, "third"), HK_OK);
    assert_true(hk_str_copy(as, sizeof as, letters_requeue(admin, 1, HK_REQUEUE_SAME).message_id));
    assert_int_equal(strlen(as), 36);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    assert_text(letters_requeue(admin, 1, HK_REQUEUE_SAME).message_id, as);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    assert_int_equal(edit(admin, 1, 3, "fourth"), HK_OK);
    assert_text(letters_requeue(admin, 1, HK_REQUEUE_SAME_ALWAYS).message_id, as); /* a person insists */
    suite_close(store);
    admin_ops->close(admin);
}

/* Edited after it went out, and requeued after that: in one millisecond, and while the clock goes back. */
static void an_edit_is_later_than_the_requeue_before_it_whatever_the_clock_says(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    char as[100], again[100];
    letters_fill(store, lane, 1, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(edit(admin, 1, i + 1, "fixed"), HK_OK);
        assert_true(hk_str_copy(again, sizeof again, letters_requeue(admin, 1, HK_REQUEUE_AUTO).message_id));
        assert_true(i == 0 || strcmp(as, again) != 0);
        assert_true(hk_str_copy(as, sizeof as, hk_str_of(again)));
        letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
        /* nobody has edited it since */
        assert_text(letters_requeue(admin, 1, HK_REQUEUE_AUTO).message_id, as);
        letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
        suite_clock_ms -= i * 5000;
    }
    suite_close(store);
    admin_ops->close(admin);
}

static void what_had_expired_does_not_expire_again(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 3, NULL);
    store_kind->sql("UPDATE dead_letters SET expires_at = '1970-01-01T00:00:00Z' WHERE id = 3");
    store_kind->sql("UPDATE dead_letters SET expires_at = '2027-01-15T07:00:00.000Z' WHERE id = 1");
    store_kind->sql("UPDATE dead_letters SET expires_at = '2027-01-15T09:00:00.000Z' WHERE id = 2");
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    letters_requeue(admin, 2, HK_REQUEUE_AUTO);
    letters_requeue(admin, 3, HK_REQUEUE_AUTO);
    assert_rows("outbox_retry WHERE letter_id IN (1, 3) AND expires_at IS NULL", 2);
    assert_rows("outbox_retry WHERE letter_id = 2 AND expires_at IS NOT NULL", 1);
    suite_close(store);
    admin_ops->close(admin);
}

/* The clock was a day ahead, and the store's time still is: by the clock the letter is good for an hour, and then it is not. */
static void what_has_not_expired_by_the_clock_keeps_its_expiry(void **state)
{
    (void)state;
    const int64_t day_ms = 24 * 3600 * 1000;
    if (!store_kind->host_clock)
        return; /* there is one time in these tests */
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    store_kind->sql("UPDATE dead_letters SET expires_at = '2027-01-15T09:00:00.000Z' WHERE id = 1");
    suite_clock_ms += day_ms;
    letters_requeue(admin, 2, HK_REQUEUE_AUTO);
    suite_clock_ms -= day_ms;
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    assert_rows("outbox_retry WHERE letter_id = 1 AND expires_at IS NOT NULL", 1);
    suite_close(store);
    admin_ops->close(admin);
}

static void many_are_requeued_in_the_order_of_their_ids(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 5, "k");
    letters_act(letters_ops->discard, admin, 4);
    const int64_t ids[] = {5, 99, 2, 4, 3, 2};
    const struct hk_letter_act act = {.ids = ids, .n = 6, .actor = "ann", .reason = "because"};
    assert_int_equal(letters_ops->requeue(admin, &act, HK_REQUEUE_AUTO, &done, &err), HK_OK);
    assert_int_equal(done->n, 6);
    assert_int_equal(done->changed, 3);
    assert_int_equal(done->now_ms, suite_clock_ms);

    const enum hk_letter_did did[] = {HK_DID_IT,     HK_DID_NOT_FIND, HK_DID_IT,
                                      HK_DID_REFUSE, HK_DID_IT,       HK_DID_NOTHING};

    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(done->items[i].id, ids[i]);
        assert_int_equal(done->items[i].did, did[i]);
    }
    assert_int_equal(done->items[3].status, HK_LETTER_DISCARDED);
    assert_text(done->items[4].message_id, "m3");
    assert_true(letters_retry_of(2) < letters_retry_of(3) && letters_retry_of(3) < letters_retry_of(5));
    assert_rows("outbox_retry", 3);

    const struct hk_letter_act none = {.ids = ids, .n = 0, .actor = "ann", .reason = "because"};
    assert_int_equal(letters_ops->requeue(admin, &none, HK_REQUEUE_AUTO, &done, &err), HK_OK);
    assert_int_equal(done->n, 0);
    int64_t *many = calloc(HK_LETTER_ACTS_MAX + 1, sizeof *many);
    const struct hk_letter_act too_many = {
        .ids = many, .n = HK_LETTER_ACTS_MAX + 1, .actor = "ann", .reason = "because"};
    assert_int_equal(letters_ops->requeue(admin, &too_many, HK_REQUEUE_AUTO, &done, &err), HK_INVALID);
    free(many);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_cancelled_requeue_is_discarded_and_can_be_restored(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_acted acted = {0};
    struct hk_err err = {0};
    letters_fill(store, suite_acquire(store), 1, NULL);
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    const struct hk_act cancel = {"m1", NULL, "ann", "because"};
    assert_int_equal(admin_ops->cancel(admin, &cancel, &acted, &err), HK_OK);
    assert_int_equal(letters_show(admin, 1)->letter.status, HK_LETTER_DISCARDED);
    assert_int_equal(letters_act(letters_ops->restore, admin, 1).did, HK_DID_IT);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- resolve, discard, restore, remark ---- */

static void a_letter_is_closed_with_who_and_why_and_opened_again(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    assert_int_equal(letters_act(letters_ops->restore, admin, 1).did, HK_DID_NOTHING);
    struct hk_letter_done done = letters_act(letters_ops->discard, admin, 1);
    assert_true(done.did == HK_DID_IT && done.status == HK_LETTER_DISCARDED && !done.sending);
    assert_int_equal(letters_act(letters_ops->discard, admin, 1).did, HK_DID_NOTHING);
    assert_int_equal(letters_act(letters_ops->resolve, admin, 1).did, HK_DID_REFUSE);
    const struct hk_letter *l = &letters_show(admin, 1)->letter;
    assert_int_equal(l->status, HK_LETTER_DISCARDED);
    assert_int_equal(l->resolved_ms, suite_clock_ms);
    assert_text(l->resolution, "ann: because");
    assert_value("status FROM outbox_messages WHERE message_id = 'm1'", "dead");
    assert_int_equal(letters_act(letters_ops->restore, admin, 1).status, HK_LETTER_FAILED);
    l = &letters_show(admin, 1)->letter;
    assert_true(l->status == HK_LETTER_FAILED && l->resolved_ms == 0 && l->resolution.len == 0);

    assert_int_equal(letters_act(letters_ops->resolve, admin, 2).status, HK_LETTER_RESOLVED);
    l = &letters_show(admin, 2)->letter;
    assert_int_equal(l->resolved_ms, suite_clock_ms);
    assert_text(l->resolution, "ann: because");
    assert_int_equal(letters_act(letters_ops->discard, admin, 99).did, HK_DID_NOT_FIND);
    assert_int_equal(letters_verify_audit(admin), 3); /* what changed nothing leaves no row */
    suite_close(store);
    admin_ops->close(admin);
}

static void what_is_on_its_way_cannot_be_closed(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 1, NULL);
    letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    letters_act_fn *const acts[] = {letters_ops->resolve, letters_ops->discard, letters_ops->restore,
                                    letters_ops->send_begin};
    for (size_t i = 0; i < COUNT(acts); i++) {
        struct hk_letter_done done = letters_act(acts[i], admin, 1);
        assert_true(done.did == HK_DID_REFUSE && done.status == HK_LETTER_RETRYING && !done.sending);
    }
    assert_int_equal(edit(admin, 1, 1, "x"), HK_CONFLICT);
    assert_rows("outbox_audit", 1);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_remark_is_a_word_to_the_trail(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    letters_fill(store, suite_acquire(store), 2, NULL);
    letters_act(letters_ops->discard, admin, 2);
    const int64_t ids[] = {1, 2, 3};
    const struct hk_letter_act act = {.ids = ids, .n = 3, .actor = "ann", .reason = "asked them"};
    assert_int_equal(letters_ops->remark(admin, &act, "note", &done, &err), HK_OK);
    assert_int_equal(done->changed, 2);
    assert_int_equal(done->items[1].did, HK_DID_IT);
    assert_int_equal(done->items[1].status, HK_LETTER_DISCARDED);
    assert_int_equal(done->items[2].did, HK_DID_NOT_FIND);
    assert_rows("outbox_audit WHERE act = 'note' AND reason = 'asked them'", 1);
    assert_rows("outbox_audit_of_letters WHERE act = 'note' AND letter_id IN (1, 2)", 2);
    assert_int_equal(letters_verify_audit(admin), 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void an_act_without_its_trail_does_not_happen(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    uint32_t version = 0;
    int64_t id = 1;
    letters_fill(store, suite_acquire(store), 1, NULL);
    store_kind->sql(letters_dialect->refuse);
    const struct hk_letter_act act = {.ids = &id, .n = 1, .actor = "ann", .reason = "refused"};
    const struct hk_letter_edit e = {1, 1, hk_str_of("x"), "ann", "refused", "edit"};
    const struct hk_redrive_job job = {
        .filter = hk_str_of(""), .actor = hk_str_of("ann"), .reason = hk_str_of("refused")};
    const struct hk_letter_query all = {.statuses = 1u << HK_LETTER_FAILED};
    assert_int_not_equal(letters_ops->requeue(admin, &act, HK_REQUEUE_AUTO, &done, &err), HK_OK);
    assert_int_not_equal(letters_ops->discard(admin, &act, &done, &err), HK_OK);
    assert_int_not_equal(letters_ops->resolve(admin, &act, &done, &err), HK_OK);
    assert_int_not_equal(letters_ops->send_begin(admin, &act, &done, &err), HK_OK);
    assert_int_not_equal(letters_ops->edit(admin, &e, &version, &err), HK_OK);
    assert_int_not_equal(letters_ops->redrive_start(admin, &all, &job, &id, &err), HK_OK);
    store_kind->sql(letters_dialect->allow);
    assert_value("status || payload FROM dead_letters", "failedp1");
    assert_rows("outbox_retry", 0);
    assert_rows("dead_letter_versions", 0);
    assert_rows("outbox_redrive", 0);
    assert_int_equal(letters_verify_audit(admin), 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_letter_is_found_by_the_id_that_it_was_requeued_under(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    int64_t lane = suite_acquire(store), id = 0;
    char as[64], older[64];
    letters_fill(store, lane, 3, NULL);
    assert_true(hk_str_copy(as, sizeof as, letters_requeue(admin, 2, HK_REQUEUE_NEW).message_id));
    assert_int_equal(letters_ops->find_requeued(admin, as, &id, &err), HK_OK);
    assert_int_equal(id, 2);
    assert_int_equal(letters_ops->find_requeued(admin, "m1", &id, &err), HK_NOTFOUND); /* its own */
    assert_int_equal(letters_ops->find_requeued(admin, "'; --", &id, &err), HK_NOTFOUND);
    letters_try_again(store, lane, letters_retry_of(2), HK_SETTLE_DEAD); /* in every state */
    assert_int_equal(letters_ops->find_requeued(admin, as, &id, &err), HK_OK);
    memcpy(older, as, sizeof older);
    assert_true(hk_str_copy(as, sizeof as, letters_requeue(admin, 2, HK_REQUEUE_NEW).message_id));
    assert_int_equal(letters_ops->find_requeued(admin, older, &id, &err),
                     HK_NOTFOUND); /* the newest counts */
    letters_try_again(store, lane, letters_retry_of(2), HK_SETTLE_SENT);
    id = 0;
    assert_int_equal(letters_ops->find_requeued(admin, as, &id, &err), HK_OK);
    assert_int_equal(id, 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void destinations_that_are_paused_are_known_by_name(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_names *names = NULL;
    struct hk_err err = {0};
    bool changed = false;
    assert_int_equal(letters_ops->paused(admin, &names, &err), HK_OK);
    assert_int_equal(names->n, 0);
    for (const char *const *name = (const char *const[]){"c", "a", "b", NULL}; *name; name++)
        assert_int_equal(admin_ops->pause(admin, *name, true, "ann", "x", &changed, &err), HK_OK);
    assert_int_equal(admin_ops->pause(admin, "b", false, "ann", "x", &changed, &err), HK_OK);
    assert_int_equal(letters_ops->paused(admin, &names, &err), HK_OK);
    assert_int_equal(names->n, 2);
    assert_text(names->items[0], "a");
    assert_text(names->items[1], "c");
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- send ---- */

static enum hk_code end_send(struct hk_admin *admin, int64_t id, int64_t begun_ms, bool ok)
{
    struct hk_attempt_record a = {.made = true,
                                  .started_ms = suite_clock_ms - 5,
                                  .duration_ms = 5,
                                  .status = ok ? 204 : 422,
                                  .failure_class = ok ? HK_CLASS_SUCCESS : HK_CLASS_PERMANENT};
    if (!ok) {
        a.cause = hk_str_of("HTTP_422");
        a.error = hk_str_of("still no");
    }
    struct hk_err err = {0};
    return letters_ops->send_end(admin, id, begun_ms, "ann", &a, ok, &err);
}

/* Of the send that is under way. */
static enum hk_code send_end(struct hk_admin *admin, int64_t id, bool ok)
{
    const struct hk_letter_shown *shown = NULL;
    struct hk_err err = {0};
    enum hk_code rc = letters_ops->show(admin, id, 0, &shown, &err);
    return end_send(admin, id, rc == HK_OK ? shown->letter.sending_ms : 0, ok);
}

static size_t held_dead(struct hk_store *store)
{
    const struct hk_held_key *keys = NULL;
    struct hk_err err = {0};
    size_t n = 0, dead = 0;
    assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, &err), HK_OK);
    for (size_t i = 0; i < n; i++)
        dead += keys[i].dead;
    return dead;
}

static void a_send_that_arrives_resolves_the_letter(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 1, "k");
    assert_int_equal(held_dead(store), 1);
    struct hk_letter_done done = letters_act(letters_ops->send_begin, admin, 1);
    assert_true(done.did == HK_DID_IT && done.status == HK_LETTER_RETRYING);
    assert_text(done.message_id, "m1");
    assert_int_equal(letters_show(admin, 1)->letter.sending_ms, suite_clock_ms);
    assert_int_equal(held_dead(store), 1); /* no successor may pass meanwhile */
    assert_value("status FROM outbox_messages WHERE message_id = 'm1'", "processing");
    suite_clock_ms += 100;
    assert_int_equal(send_end(admin, 1, true), HK_OK);
    const struct hk_letter_shown *shown = letters_show(admin, 1);
    assert_int_equal(shown->letter.status, HK_LETTER_RESOLVED);
    assert_int_equal(shown->letter.sending_ms, 0);
    assert_int_equal(shown->letter.resolved_ms, suite_clock_ms);
    assert_text(shown->letter.resolution, "delivered");
    assert_int_equal(shown->n_attempts, 2); /* a success, too: somebody waits for it */
    assert_int_equal(shown->attempts[1].status, 204);
    assert_int_equal(shown->attempts[1].n, 2);
    assert_int_equal(shown->n_acts, 2);
    assert_text(shown->acts[0].act, "send");
    assert_text(shown->acts[1].act, "sent");
    assert_rows("outbox_retry", 0);
    assert_int_equal(held_dead(store), 0);
    assert_int_equal(letters_verify_audit(admin), 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_send_that_fails_leaves_the_letter_open(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 1, NULL);
    letters_act(letters_ops->send_begin, admin, 1);
    suite_clock_ms += 100;
    assert_int_equal(send_end(admin, 1, false), HK_OK);
    const struct hk_letter_shown *shown = letters_show(admin, 1);
    assert_int_equal(shown->letter.status, HK_LETTER_FAILED);
    assert_int_equal(shown->letter.sending_ms, 0);
    assert_text(shown->letter.reason, "HTTP_422");
    assert_text(shown->letter.error, "still no");
    assert_int_equal(shown->letter.attempts, 2);
    assert_int_equal(shown->letter.last_failed_ms, suite_clock_ms);
    assert_int_equal(shown->letter.life, 1);
    assert_text(shown->acts[1].act, "send-failed");
    assert_text(shown->acts[1].reason, "still no");
    assert_non_null(
        strstr(shown->letter.error_detail.ptr, "\"status\":422")); /* of this send, not of the one before */
    assert_int_equal(letters_act(letters_ops->send_begin, admin, 1).did, HK_DID_IT);
    suite_close(store);
    admin_ops->close(admin);
}

/* A crash between begin and end. */
static void a_send_without_an_outcome_waits_for_a_person(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    for (int i = 1; i <= 2; i++)
        letters_act(letters_ops->send_begin, admin, i);
    struct hk_letter_done done = letters_act(letters_ops->send_begin, admin, 1);
    assert_true(done.did == HK_DID_REFUSE && done.sending);
    done = letters_requeue(admin, 1, HK_REQUEUE_AUTO);
    assert_true(done.did == HK_DID_REFUSE && done.sending && done.status == HK_LETTER_RETRYING);
    done = letters_act(letters_ops->discard, admin, 1);
    assert_true(done.did == HK_DID_REFUSE && done.sending);
    assert_int_equal(edit(admin, 1, 1, "x"), HK_CONFLICT);
    assert_int_equal(letters_act(letters_ops->resolve, admin, 1).did, HK_DID_IT);
    assert_int_equal(letters_act(letters_ops->restore, admin, 2).did, HK_DID_IT);
    const struct hk_letter *l = &letters_show(admin, 2)->letter;
    assert_true(l->status == HK_LETTER_FAILED && l->sending_ms == 0);
    assert_true(l->possibly_delivered); /* nobody knows */
    l = &letters_show(admin, 1)->letter;
    assert_true(l->status == HK_LETTER_RESOLVED && l->sending_ms == 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_late_outcome_is_recorded_but_decides_nothing(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 1, NULL);
    assert_int_equal(send_end(admin, 1, true), HK_CONFLICT); /* never begun */
    letters_act(letters_ops->send_begin, admin, 1);
    letters_act(letters_ops->restore, admin, 1);
    assert_int_equal(send_end(admin, 1, true), HK_CONFLICT);
    const struct hk_letter_shown *shown = letters_show(admin, 1);
    assert_int_equal(shown->letter.status, HK_LETTER_FAILED);
    assert_true(shown->letter.possibly_delivered);
    assert_int_equal(shown->n_attempts, 3);
    assert_int_equal(shown->attempts[2].status, 204);
    assert_int_equal(send_end(admin, 99, true), HK_NOTFOUND);
    letters_fill(store, lane, 1, NULL);
    letters_requeue(admin, 2, HK_REQUEUE_SAME);
    assert_int_equal(send_end(admin, 2, true), HK_CONFLICT); /* while it is on its way */
    letters_try_again(store, lane, letters_retry_of(2), HK_SETTLE_DEAD);
    assert_true(letters_show(admin, 2)->letter.possibly_delivered);
    letters_verify_audit(admin);
    const struct hk_letter_act two = {
        .ids = (const int64_t[]){1, 2}, .n = 2, .actor = "ann", .reason = "because"};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->send_begin(admin, &two, &done, &err), HK_INVALID);
    suite_close(store);
    admin_ops->close(admin);
}

/* The first process hung, somebody restored the letter and sent it again: the first one's outcome is not the second's. */
static void an_outcome_settles_only_the_send_that_it_is_of(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    for (int i = 1; i <= 2; i++) {
        int64_t first = letters_act(letters_ops->send_begin, admin, i).begun_ms;
        suite_clock_ms += 10;
        letters_act(letters_ops->restore, admin, i);
        int64_t second = letters_act(letters_ops->send_begin, admin, i).begun_ms;
        assert_true(first > 0 && second > first);
        assert_int_equal(letters_show(admin, i)->letter.sending_ms, second);
        assert_int_equal(end_send(admin, i, first, i == 1), HK_CONFLICT);
        const struct hk_letter *l = &letters_show(admin, i)->letter;
        assert_true(l->status == HK_LETTER_RETRYING && l->sending_ms == second); /* it goes on */
        assert_int_equal(l->possibly_delivered, true);
        assert_int_equal(end_send(admin, i, second, i == 2), HK_OK);
        l = &letters_show(admin, i)->letter;
        assert_int_equal(l->status, i == 2 ? HK_LETTER_RESOLVED : HK_LETTER_FAILED);
        assert_int_equal(l->sending_ms, 0);
        assert_int_equal(letters_show(admin, i)->n_attempts, 3);
    }
    letters_verify_audit(admin);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- retention ---- */

static void a_letter_takes_its_versions_along(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    uint32_t deleted = 0, open = 9;
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    letters_fill(store, suite_acquire(store), 4, NULL);
    for (int i = 1; i <= 4; i++)
        assert_int_equal(edit(admin, i, 1, "x"), HK_OK);
    letters_act(letters_ops->discard, admin, 1);
    letters_act(letters_ops->resolve, admin, 2);
    letters_act(letters_ops->send_begin, admin, 4);
    suite_clock_ms += 10000;
    assert_rows("dead_letter_versions", 4);
    keep.discarded_ms = 5000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 1);
    assert_rows("dead_letter_versions WHERE letter_id = 1", 0);
    keep.resolved_ms = 5000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_rows("dead_letter_versions", 2);
    keep.dead_ms = 5000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, &open, &err), HK_OK);
    assert_int_equal(open, 1);
    assert_rows("outbox_audit WHERE act = 'purge-dead' AND actor = 'hikyaku' AND reason = 'retention.dead' "
                "AND detail = '{\"letters\":1}'",
                1); /* none for those that somebody had settled */
    assert_rows("outbox_audit WHERE act LIKE 'purge%'", 1);
    letters_verify_audit(admin);
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, &open, &err), HK_OK);
    assert_int_equal(open, 0);
    assert_rows("outbox_audit WHERE act LIKE 'purge%'", 1);
    assert_rows("dead_letter_versions", 1); /* a send without an outcome is not thrown away */
    assert_rows("dead_letters", 1);
    suite_close(store);
    admin_ops->close(admin);
}

const struct CMUnitTest letters_act_tests[] = {
    TEST(an_edit_keeps_every_version_and_is_refused_to_the_second_editor),
    TEST(asked_twice_it_is_requeued_once),
    TEST(a_requeued_letter_is_resolved_when_it_arrives),
    TEST(a_requeued_letter_that_dies_again_is_open_again),
    TEST(what_an_earlier_attempt_may_have_delivered_is_remembered),
    TEST(what_its_relay_died_with_may_have_been_delivered),
    TEST(the_list_of_messages_agrees_with_the_view),
    TEST(an_edited_payload_goes_out_under_a_new_id),
    TEST(what_may_have_arrived_goes_out_with_other_bytes_under_another_id),
    TEST(an_edit_is_later_than_the_requeue_before_it_whatever_the_clock_says),
    TEST(what_had_expired_does_not_expire_again),
    TEST(what_has_not_expired_by_the_clock_keeps_its_expiry),
    TEST(many_are_requeued_in_the_order_of_their_ids),
    TEST(a_cancelled_requeue_is_discarded_and_can_be_restored),
    TEST(a_letter_is_closed_with_who_and_why_and_opened_again),
    TEST(what_is_on_its_way_cannot_be_closed),
    TEST(a_remark_is_a_word_to_the_trail),
    TEST(an_act_without_its_trail_does_not_happen),
    TEST(a_send_that_arrives_resolves_the_letter),
    TEST(a_send_that_fails_leaves_the_letter_open),
    TEST(a_send_without_an_outcome_waits_for_a_person),
    TEST(a_late_outcome_is_recorded_but_decides_nothing),
    TEST(an_outcome_settles_only_the_send_that_it_is_of),
    TEST(a_letter_is_found_by_the_id_that_it_was_requeued_under),
    TEST(destinations_that_are_paused_are_known_by_name),
    TEST(a_letter_takes_its_versions_along),
};
const size_t letters_act_count = COUNT(letters_act_tests);
