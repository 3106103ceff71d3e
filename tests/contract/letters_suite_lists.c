/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on many letters: one row of the audit, the list of its letters beside it, and the chain that covers both. */
#include <string.h>

#include "base/str.h"
#include "letters_suite_impl.h"

/* ---- what the tests are made of ---- */

static const struct hk_letters_done *act_on(letters_act_fn *fn, struct hk_admin *admin,
                                            const struct hk_letter_act *act)
{
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = fn(admin, act, &done, &err);
    NOTE_IF(rc != HK_OK, "act: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return done;
}

static const struct hk_audit_rows *read_audit(struct hk_admin *admin, struct hk_audit_page page)
{
    const struct hk_audit_rows *rows = NULL;
    struct hk_err err = {0};
    page.limit = page.limit ? page.limit : 100;
    page.oldest_first = true;
    assert_int_equal(letters_ops->audit(admin, &page, &rows, &err), HK_OK);
    return rows;
}

static const struct hk_audit_letters *letters_of(struct hk_admin *admin, int64_t act_id, int64_t after,
                                                 uint32_t limit)
{
    const struct hk_audit_letters *letters = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->act_letters(admin, act_id, after, limit, &letters, &err), HK_OK);
    return letters;
}

static bool holds(struct hk_str text, const char *part)
{
    char copy[2000];
    assert_true(hk_str_copy(copy, sizeof copy, text));
    return strstr(copy, part) != NULL;
}

/* Two transactions of one act by filter: letters 1 to 3, then 4 and 5. Its id. */
static int64_t discard_in_two_steps(struct hk_admin *admin)
{
    struct hk_letter_act act = {.ids = (const int64_t[]){3, 1, 2},
                                .n = 3,
                                .actor = "ann",
                                .reason = "test data",
                                .filter = "type:\"Made\""};
    const struct hk_letters_done *done = act_on(letters_ops->discard, admin, &act);
    assert_int_equal(done->changed, 3);
    int64_t id = done->act_id;
    assert_true(id > 0);
    act.ids = (const int64_t[]){4, 5, 99};
    act.act_id = id;
    done = act_on(letters_ops->discard, admin, &act);
    assert_int_equal(done->changed, 2);
    assert_int_equal(done->act_id, id);
    return id;
}

/* ---- one row, one list ---- */

static void an_act_on_many_is_one_row_and_a_list(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 6, NULL);
    int64_t id = discard_in_two_steps(admin);
    assert_rows("outbox_audit", 2);
    assert_rows("outbox_audit_letters", 5);

    const struct hk_audit_rows *rows = read_audit(admin, (struct hk_audit_page){0});
    assert_int_equal(rows->n, 1); /* what goes on with an act is not shown beside it */
    const struct hk_audit_row *row = &rows->items[0];
    assert_int_equal(row->id, id);
    assert_int_equal(row->letters, 5);
    assert_int_equal(row->letter_id, 0);
    assert_text(row->act, "discard");
    assert_text(row->reason, "test data");
    assert_true(holds(row->detail, "\"filter\":\"type:\\\"Made\\\"\"") &&
                holds(row->detail, "\"letters\":3"));
    assert_false(holds(row->detail, "\"jq\""));
    assert_int_equal(read_audit(admin, (struct hk_audit_page){.parts = true})->n, 2);

    const struct hk_audit_letters *letters = letters_of(admin, id, 0, 3);
    assert_true(letters->n == 3 && letters->more);
    assert_int_equal(letters->items[0].letter_id, 1);
    assert_text(letters->items[0].message_id, "m1");
    assert_text(letters->items[0].destination, "a");
    letters = letters_of(admin, id, letters->items[2].letter_id, 3);
    assert_true(letters->n == 2 && !letters->more);
    assert_true(letters->items[1].letter_id == 5 && letters->items[1].audit_id != id);
    assert_int_equal(letters_of(admin, id + 1, 0, 10)->n, 0); /* it goes on with an act, and is none */
    assert_int_equal(letters_verify_audit(admin), 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void one_letter_by_name_has_no_list(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    const int64_t one = 1;
    const struct hk_letter_act named = {.ids = &one, .n = 1, .actor = "ann", .reason = "because"};
    assert_int_equal(act_on(letters_ops->discard, admin, &named)->act_id, 0);
    assert_rows("outbox_audit WHERE letter_id = 1", 1);
    assert_rows("outbox_audit_letters", 0);
    struct hk_letter_act meant = named;
    meant.filter = "id:m2";
    meant.ids = (const int64_t[]){2};
    assert_true(act_on(letters_ops->discard, admin, &meant)->act_id > 0);
    assert_rows("outbox_audit_letters WHERE letter_id = 2", 1);
    /* what changes nothing leaves nothing, and does not forget its act */
    meant.act_id = 77;
    assert_int_equal(act_on(letters_ops->discard, admin, &meant)->act_id, 77);
    assert_int_equal(letters_verify_audit(admin), 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_letter_knows_the_acts_that_list_it(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 6, NULL);
    int64_t id = discard_in_two_steps(admin);
    letters_act(letters_ops->restore, admin, 4);
    const struct hk_letter_act two = {
        .ids = (const int64_t[]){4, 6}, .n = 2, .actor = "bob", .reason = "fixed"};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->requeue(admin, &two, HK_REQUEUE_NEW, &done, &err), HK_OK);
    int64_t requeued = done->act_id;
    char newest[64];
    assert_true(hk_str_copy(newest, sizeof newest, done->items[0].message_id));

    const struct hk_letter_shown *shown = letters_show(admin, 4);
    assert_int_equal(shown->n_acts, 3);
    assert_text(shown->acts[0].act, "discard");
    assert_int_equal(shown->acts[0].act_id, id);
    assert_int_equal(shown->acts[0].letter_id, 4);
    assert_text(shown->acts[0].message_id, "m4");
    assert_text(shown->acts[1].act, "restore");
    assert_int_equal(shown->acts[1].act_id, 0);
    assert_text(shown->acts[2].act, "requeue");
    assert_int_equal(shown->acts[2].act_id, requeued);
    assert_true(holds(shown->acts[2].detail, newest));

    const struct hk_audit_rows *rows = read_audit(admin, (struct hk_audit_page){.letter_id = 4, .limit = 2});
    assert_true(rows->n == 2 && rows->more);
    rows = read_audit(admin, (struct hk_audit_page){.letter_id = 4, .after_id = rows->last_id});
    assert_true(rows->n == 1 && !rows->more);
    assert_text(rows->items[0].actor, "bob");

    /* attempts under the id that only the list tells */
    letters_try_again(store, lane, letters_retry_of(4), HK_SETTLE_DEAD);
    assert_int_equal(letters_requeue(admin, 4, HK_REQUEUE_NEW).did, HK_DID_IT);
    letters_try_again(store, lane, letters_retry_of(4), HK_SETTLE_DEAD);
    assert_int_equal(letters_show(admin, 4)->n_attempts, 3);
    letters_verify_audit(admin);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- the chain ---- */

static void the_digest_is_the_same_in_both_stores(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 5, NULL);
    store_kind->sql("UPDATE dead_letters SET message_id = 'Größe, 大:1', destination = '' WHERE id = 2");
    int64_t id = discard_in_two_steps(admin);
    char digest[HK_AUDIT_HASH_MAX], want[HK_AUDIT_HASH_MAX + 20];
    const struct hk_audit_letters *letters = letters_of(admin, id, 0, 3);
    hk_audit_list_hash(letters->items, letters->n, digest);
    const struct hk_audit_rows *rows = read_audit(admin, (struct hk_audit_page){.lists = true});
    assert_text(rows->items[0].list, digest);
    snprintf(want, sizeof want, "\"list\":\"%s\"", digest);
    assert_true(holds(rows->items[0].detail, want));
    suite_close(store);
    admin_ops->close(admin);
}

static bool lists_fit(struct hk_admin *admin)
{
    const struct hk_audit_rows *rows =
        read_audit(admin, (struct hk_audit_page){.parts = true, .lists = true});
    bool fit = true;
    for (size_t i = 0; i < rows->n; i++) {
        char want[HK_AUDIT_HASH_MAX + 20];
        snprintf(want, sizeof want, "\"list\":\"%.*s\"", (int)rows->items[i].list.len,
                 rows->items[i].list.ptr);
        fit = fit && holds(rows->items[i].detail, rows->items[i].list.len ? want : "{") &&
              (rows->items[i].list.len || !holds(rows->items[i].detail, "\"list\":"));
    }
    return fit;
}

/* Whoever can write to the list, with the owner's rights, is found out. */
static void a_list_that_was_changed_does_not_fit(void **state)
{
    (void)state;
    static const char *const forgeries[] = {
        "INSERT INTO outbox_audit_letters (audit_id, letter_id, act_id) SELECT max(id), 77, max(id) FROM outbox_audit",
        "DELETE FROM outbox_audit_letters WHERE letter_id = 2",
        "DELETE FROM outbox_audit_letters",
    };
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 5, NULL);
    discard_in_two_steps(admin);
    assert_true(lists_fit(admin));
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        store_kind->sql("CREATE TABLE kept AS SELECT * FROM outbox_audit_letters");
        store_kind->sql(forgeries[i]);
        assert_false(lists_fit(admin));
        store_kind->sql("DELETE FROM outbox_audit_letters");
        store_kind->sql("INSERT INTO outbox_audit_letters SELECT * FROM kept");
        store_kind->sql("DROP TABLE kept");
        assert_true(lists_fit(admin));
    }
    suite_close(store);
    admin_ops->close(admin);
}

static void retention_takes_lists_with_their_rows(void **state)
{
    (void)state;
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct hk_err err = {0};
    uint32_t deleted = 0;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 5, NULL);
    discard_in_two_steps(admin);
    suite_clock_ms += 100000;
    letters_act(letters_ops->restore, admin, 1);
    keep.audit_ms = 50000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_rows("outbox_audit WHERE act = 'restore'", 1);
    assert_rows("outbox_audit_letters", 0);
    assert_int_equal(letters_verify_audit(admin), 2); /* and what retention says of itself */
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- undoing one act ---- */

static void a_letter_of_an_act_tells_that_a_later_one_has_decided(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 5, NULL);
    int64_t id = discard_in_two_steps(admin);
    letters_act(letters_ops->restore, admin, 2);
    letters_act(letters_ops->discard, admin, 2); /* once more, and for another reason */
    const struct hk_letter_act two = {
        .ids = (const int64_t[]){3, 4}, .n = 2, .actor = "ann", .reason = "because"};
    act_on(letters_ops->restore, admin, &two);
    letters_act(letters_ops->discard, admin, 3);
    const struct hk_letter_act note = {.ids = (const int64_t[]){1}, .n = 1, .actor = "ann", .reason = "hm"};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->remark(admin, &note, "note", &done, &err), HK_OK);
    const struct hk_audit_letters *letters = letters_of(admin, id, 0, 10);
    static const bool overtaken[] = {false, true, true, true, false};
    assert_int_equal(letters->n, 5);
    for (size_t i = 0; i < letters->n; i++)
        assert_int_equal(letters->items[i].overtaken, overtaken[i]);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- fix ---- */

static void a_fix_changes_many_payloads_at_once(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    letters_fill(store, suite_acquire(store), 5, NULL);
    letters_act(letters_ops->discard, admin, 3);
    uint32_t version = 0;
    const struct hk_letter_edit edit = {
        .id = 4, .version = 1, .payload = {"other", 5}, .actor = "bob", .reason = "first", .act = "edit"};
    assert_int_equal(letters_ops->edit(admin, &edit, &version, &err), HK_OK);

    const struct hk_letter_fix fixes[] = {
        {1, hk_str_of("{\"n\":\"\\\\ 'x' ü\"}")},
        {1, hk_str_of("two")},
        {1, hk_str_of("three")},
        {1, hk_str_of("four")},
        {1, hk_str_of("99")},
    };
    const struct hk_letter_act act = {.ids = (const int64_t[]){2, 1, 3, 4, 99},
                                      .n = 5,
                                      .actor = "ann",
                                      .reason = "currency",
                                      .filter = "type:Made",
                                      .program = ".currency = \"EUR\""};
    assert_int_equal(letters_ops->fix(admin, &act, fixes, &done, &err), HK_OK);
    assert_int_equal(done->changed, 2);
    assert_true(done->items[0].did == HK_DID_IT && done->items[0].id == 2 && done->items[0].version == 2);
    assert_true(done->items[1].did == HK_DID_IT && done->items[1].status == HK_LETTER_FAILED);
    assert_true(done->items[2].did == HK_DID_REFUSE && done->items[2].status == HK_LETTER_DISCARDED);
    assert_true(done->items[3].did == HK_DID_REFUSE && done->items[3].version == 2);
    assert_int_equal(done->items[4].did, HK_DID_NOT_FIND);
    assert_value("payload FROM dead_letters WHERE id = 2", "{\"n\":\"\\\\ 'x' ü\"}");
    assert_value("payload FROM dead_letters WHERE id = 1", "two");
    assert_value("payload FROM dead_letters WHERE id = 4", "other");
    assert_value("payload FROM dead_letter_versions WHERE letter_id = 2 AND version = 1 AND actor = 'ann'",
                 "p2");
    assert_rows("dead_letters WHERE id IN (1, 2) AND edited_at IS NOT NULL AND payload_version = 2", 2);

    const struct hk_audit_rows *rows = read_audit(admin, (struct hk_audit_page){.act = "fix"});
    assert_true(rows->n == 1 && rows->items[0].letters == 2);
    assert_true(holds(rows->items[0].detail, "\"jq\":\".currency = \\\"EUR\\\"\""));
    const struct hk_audit_letters *letters = letters_of(admin, done->act_id, 0, 10);
    char before[HK_AUDIT_HASH_MAX], after[HK_AUDIT_HASH_MAX];
    hk_digest_hex(hk_str_of("p1"), before);
    hk_digest_hex(hk_str_of("two"), after);
    assert_text(letters->items[0].before, before);
    assert_text(letters->items[0].after, after);
    assert_text(letters->items[0].detail, "{\"version\":2}");
    letters_verify_audit(admin);
    suite_close(store);
    admin_ops->close(admin);
}

const struct CMUnitTest letters_list_tests[] = {
    TEST(an_act_on_many_is_one_row_and_a_list),
    TEST(one_letter_by_name_has_no_list),
    TEST(a_letter_knows_the_acts_that_list_it),
    TEST(the_digest_is_the_same_in_both_stores),
    TEST(a_list_that_was_changed_does_not_fit),
    TEST(retention_takes_lists_with_their_rows),
    TEST(a_letter_of_an_act_tells_that_a_later_one_has_decided),
    TEST(a_fix_changes_many_payloads_at_once),
};
const size_t letters_list_count = sizeof letters_list_tests / sizeof letters_list_tests[0];
