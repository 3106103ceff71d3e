/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that are kept in the store: made, changed and deleted by operators, each on condition of its version, with a row of the
 * audit; and read by relays, whose polls tell that there is something new. */
#include "admin_suite.h"
#include "base/str.h"

#define assert_text(s, text) assert_true(hk_str_eq(s, hk_str_of(text)))
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)

static enum hk_code define(struct hk_admin *admin, const char *name, const char *text, int64_t version,
                           struct hk_defined *out)
{
    struct hk_err err = {0};
    const struct hk_define ask = {
        .name = name, .text = hk_str_of(text), .version = version, .actor = "ann", .reason = "new customer"};
    enum hk_code rc = admin_ops->define(admin, &ask, out, &err);
    assert_true(rc == HK_OK || (err.message[0] && err.code == rc));
    return rc;
}

static enum hk_code undefine(struct hk_admin *admin, const char *name, int64_t version, bool force)
{
    struct hk_err err = {0};
    struct hk_defined done;
    const struct hk_undefine ask = {
        .name = name, .version = version, .force = force, .actor = "bob", .reason = "left us"};
    enum hk_code rc = admin_ops->undefine(admin, &ask, &done, &err);
    assert_true(rc == HK_OK || (err.message[0] && err.code == rc));
    return rc;
}

static const struct hk_definitions *read_all(struct hk_admin *admin, const char *name)
{
    const struct hk_definitions *found = NULL;
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->definitions(admin, name, &found, &err);
    NOTE_IF(rc != HK_OK, "definitions: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return found;
}

static const struct hk_definitions *relay_reads(struct hk_store *store, int64_t known)
{
    const struct hk_definitions *found = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->definitions(store, known, &found, &err);
    NOTE_IF(rc != HK_OK, "definitions: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return found;
}

static void each_change_has_its_version_and_a_row_of_the_audit(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_defined done = {.version = -7};
    assert_int_equal(read_all(admin, NULL)->n, 0);
    assert_int_equal(read_all(admin, NULL)->version, 0);
    assert_int_equal(define(admin, "b", "{\"x\":1}", HK_DEFINITION_MISSING, &done), HK_OK);
    assert_true(done.made && done.version == 1);
    assert_int_equal(define(admin, "b", "{}", HK_DEFINITION_MISSING, &done), HK_CONFLICT);
    assert_int_equal(define(admin, "a", "{}", 3, &done), HK_NOTFOUND);
    assert_int_equal(define(admin, "a", "{\"y\":\"'\"}", HK_DEFINITION_ANY, &done), HK_OK);
    assert_true(done.made);
    suite_clock_ms += 5000;
    assert_int_equal(define(admin, "b", "{\"x\":2}", 1, &done), HK_OK);
    assert_true(!done.made && done.version == 2);
    assert_int_equal(define(admin, "b", "{\"x\":3}", 1, &done), HK_CONFLICT);
    assert_int_equal(define(admin, "b", "{\"x\":4}", HK_DEFINITION_ANY, &done), HK_OK);
    const struct hk_definitions *all = read_all(admin, NULL);
    assert_int_equal(all->n, 2);
    assert_text(all->items[0].name, "a");
    assert_text(all->items[0].text, "{\"y\":\"'\"}");
    assert_text(all->items[1].text, "{\"x\":4}");
    assert_int_equal(all->items[1].version, 3);
    assert_int_equal(all->items[1].changed_ms - all->items[1].created_ms, 5000);
    assert_text(all->items[1].changed_by, "ann");
    assert_text(all->items[1].reason, "new customer");
    assert_true(all->items[1].seq <= all->version && all->items[0].seq < all->items[1].seq);
    assert_int_equal(read_all(admin, "a")->n, 1);
    assert_int_equal(read_all(admin, "nobody")->n, 0);
    assert_count("outbox_audit WHERE act = 'destination-create' AND actor = 'ann'", 2);
    assert_count(
        "outbox_audit WHERE act = 'destination-update' AND destination = 'b' AND reason = 'new customer'", 2);
    assert_count("outbox_audit", 4); /* of what was refused there is none */
    admin_ops->close(admin);
}

static void one_that_messages_wait_for_is_deleted_by_force_only(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_defined done;
    assert_int_equal(undefine(admin, "a", HK_DEFINITION_ANY, true), HK_NOTFOUND);
    assert_int_equal(define(admin, "a", "{}", HK_DEFINITION_ANY, &done), HK_OK);
    assert_int_equal(undefine(admin, "a", 7, false), HK_CONFLICT);
    suite_fill(1, "a", "");
    assert_int_equal(undefine(admin, "a", 1, false), HK_CONFLICT);
    assert_int_equal(read_all(admin, NULL)->n, 1);
    int64_t before = read_all(admin, NULL)->version;
    assert_int_equal(undefine(admin, "a", 1, true), HK_OK);
    assert_int_equal(read_all(admin, NULL)->n, 0);
    assert_true(read_all(admin, NULL)->version > before);
    assert_count("outbox_audit WHERE act = 'destination-delete' AND actor = 'bob' AND destination = 'a'", 1);
    assert_int_equal(define(admin, "b", "{}", HK_DEFINITION_ANY, &done), HK_OK);
    assert_int_equal(undefine(admin, "b", HK_DEFINITION_ANY, false), HK_OK); /* nobody waits for this one */
    admin_ops->close(admin);
}

static void relays_are_told_and_read_what_is_new(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_store *store = suite_open(NULL);
    const struct hk_poll *poll = NULL;
    struct hk_defined done;
    struct hk_err err = {0};
    int64_t lane = suite_acquire(store);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_int_equal(poll->definitions, 0);
    assert_int_equal(define(admin, "a", "{\"x\":1}", HK_DEFINITION_ANY, &done), HK_OK);
    assert_int_equal(define(admin, "b", "{\"x\":2}", HK_DEFINITION_ANY, &done), HK_OK);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed && poll->definitions > 0);
    int64_t first = poll->definitions;
    const struct hk_definitions *found = relay_reads(store, 0);
    assert_true(found->version == first && found->n == 2);
    assert_text(found->items[1].text, "{\"x\":2}");
    assert_int_equal(define(admin, "b", "{\"x\":3}", HK_DEFINITION_ANY, &done), HK_OK);
    found = relay_reads(store, first);
    assert_true(found->version > first && found->n == 2 && !found->items[0].text.ptr);
    assert_text(found->items[1].text, "{\"x\":3}");
    assert_int_equal(found->items[1].version, 2);
    assert_int_equal(undefine(admin, "a", HK_DEFINITION_ANY, false), HK_OK);
    found = relay_reads(store, found->version);
    assert_int_equal(found->n, 1);
    int64_t last = found->version;
    /* a poll that is to tell all does */
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_false(poll->changed);
    store_kind->ops->hint(store, &(struct hk_store_hint){.all = true});
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed && poll->definitions == last);
    /* an exchange says it where somebody wants to know */
    suite_fill(1, "nobody", "");
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    const struct hk_exchanged *exchanged = NULL;
    const struct hk_want want = {.source = HK_FROM_OUTBOX, .id = suite_number("SELECT max(id) FROM outbox")};
    const struct hk_exchange x = {
        .lane = lane, .lease_ms = 30000, .wants = &want, .n_wants = 1, .unknown = true};
    assert_int_equal(store_kind->ops->exchange(store, &x, &exchanged, &err), HK_OK);
    assert_int_equal(exchanged->n_messages, 1);
    assert_int_equal(exchanged->definitions, last);
    suite_close(store);
    admin_ops->close(admin);
}

size_t admin_define_tests(struct CMUnitTest *out, size_t room)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_change_has_its_version_and_a_row_of_the_audit),
        TEST(one_that_messages_wait_for_is_deleted_by_force_only),
        TEST(relays_are_told_and_read_what_is_new),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
