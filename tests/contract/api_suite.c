/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API's part of a store: tokens by their hashes, and calls that are done once. */
#include <pthread.h>
#include <stdlib.h>

#include "api_suite.h"
#include "base/str.h"
#include "letters_suite_impl.h"

const struct hk_store_api_ops *api_ops;

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* ---- what the suite is made of ---- */

/* 64 hex digits that begin with `n`. */
static const char *hash_of(unsigned n)
{
    static char out[4][HK_API_HASH_LEN + 1];
    static unsigned next;
    char *hash = out[next++ % 4];
    snprintf(hash, HK_API_HASH_LEN + 1, "%08x%056d", n, 0);
    return hash;
}

static enum hk_code try_create(struct hk_admin *admin, const struct hk_token_new *ask,
                               struct hk_token_made *made)
{
    struct hk_err err = {0};
    enum hk_code rc = api_ops->create_token(admin, ask, made, &err);
    NOTE_IF(rc != HK_OK && rc != HK_CONFLICT, "create: %s\n", err.message);
    assert_true(rc == HK_OK || (err.code == rc && err.message[0]));
    return rc;
}

static struct hk_token_made create(struct hk_admin *admin, const char *name, unsigned hash, uint64_t for_ms)
{
    struct hk_token_made made = {0};
    const struct hk_token_new ask = {.name = name,
                                     .role = "operator",
                                     .hash = hash_of(hash),
                                     .for_ms = for_ms,
                                     .actor = "ann",
                                     .reason = "for the script"};
    assert_int_equal(try_create(admin, &ask, &made), HK_OK);
    return made;
}

static const struct hk_token_found *find(struct hk_admin *admin, const char *hash)
{
    const struct hk_token_found *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = api_ops->find_token(admin, hash, &out, &err);
    NOTE_IF(rc != HK_OK, "find: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

static const struct hk_tokens *list(struct hk_admin *admin)
{
    const struct hk_tokens *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = api_ops->list_tokens(admin, &out, &err);
    NOTE_IF(rc != HK_OK, "list: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

static enum hk_code revoke(struct hk_admin *admin, int64_t id, const char *name, struct hk_token_revoked *out)
{
    struct hk_err err = {0};
    const struct hk_token_revoke ask = {.id = id, .name = name, .actor = "bob", .reason = "it leaked"};
    enum hk_code rc = api_ops->revoke_token(admin, &ask, out, &err);
    NOTE_IF(rc != HK_OK && rc != HK_NOTFOUND, "revoke: %s\n", err.message);
    return rc;
}

static void use(struct hk_admin *admin, int64_t id)
{
    struct hk_err err = {0};
    enum hk_code rc = api_ops->use_token(admin, id, &err);
    NOTE_IF(rc != HK_OK, "use: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static const struct hk_api_begun *begin(struct hk_admin *admin, const struct hk_api_call *call)
{
    const struct hk_api_begun *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = api_ops->begin_call(admin, call, &out, &err);
    NOTE_IF(rc != HK_OK, "begin: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

static void finish(struct hk_admin *admin, const struct hk_api_call *call, int64_t run,
                   const struct hk_api_response *response)
{
    struct hk_err err = {0};
    enum hk_code rc = api_ops->finish_call(admin, call, run, response, &err);
    NOTE_IF(rc != HK_OK, "finish: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static void forget(struct hk_admin *admin, const struct hk_api_call *call, int64_t run)
{
    struct hk_err err = {0};
    enum hk_code rc = api_ops->forget_call(admin, call, run, &err);
    NOTE_IF(rc != HK_OK, "forget: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static const struct hk_api_response plain = {
    .status = 200, .content_type = "application/json", .body = {"{}", 2}};

/* ---- tokens ---- */

static void a_token_is_found_by_its_hash(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_token_found *f = find(admin, hash_of(1));
    assert_false(f->any || f->found);
    struct hk_token_made made = {0};
    const struct hk_token_new ask = {.name = "ci",
                                     .role = "viewer",
                                     .reveal = true,
                                     .hash = hash_of(1),
                                     .for_ms = (uint64_t)DAY,
                                     .actor = "ann",
                                     .reason = "for the script"};
    assert_int_equal(try_create(admin, &ask, &made), HK_OK);
    assert_int_equal(made.created_ms, suite_clock_ms);
    assert_int_equal(made.expires_ms, suite_clock_ms + DAY);
    f = find(admin, hash_of(1));
    assert_true(f->any && f->found && f->token.reveal);
    assert_int_equal(f->now_ms, suite_clock_ms);
    assert_int_equal(f->token.id, made.id);
    assert_text(f->hash, hash_of(1));
    assert_text(f->token.name, "ci");
    assert_text(f->token.role, "viewer");
    assert_text(f->token.created_by, "ann");
    assert_text(f->token.reason, "for the script");
    assert_int_equal(f->token.expires_ms, made.expires_ms);
    assert_int_equal(f->token.revoked_ms, 0);
    assert_int_equal(f->token.last_used_ms, 0);
    const char *const others[] = {hash_of(2), "", "%", NULL};
    for (size_t i = 0; i < COUNT(others); i++) {
        f = find(admin, others[i]);
        assert_true(f->any);
        assert_false(f->found);
    }
    assert_rows(
        "outbox_audit WHERE act = 'token-create' AND actor = 'ann' AND reason = 'for the script' AND "
        "detail LIKE '{\"token\":\"ci\",\"id\":%,\"role\":\"viewer\",\"reveal\":true,\"expires_ms\":%}'",
        1);
    assert_rows("outbox_audit WHERE detail LIKE '%00000001%'", 0);
    assert_int_equal(letters_verify_audit(admin), 1);
    admin_ops->close(admin);
}

static void a_name_belongs_to_one_token_at_a_time(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_token_made made = {0};
    struct hk_token_revoked revoked;
    const struct hk_token_new again = {
        .name = "ci", .role = "admin", .hash = hash_of(2), .actor = "eve", .reason = "mine"};
    int64_t first = create(admin, "ci", 1, (uint64_t)HOUR).id;
    assert_int_equal(try_create(admin, &again, &made), HK_CONFLICT);
    assert_false(find(admin, hash_of(2))->found);
    assert_rows("outbox_audit", 1);
    suite_clock_ms += HOUR - 1;
    assert_int_equal(try_create(admin, &again, &made), HK_CONFLICT);
    suite_clock_ms += 1; /* it has expired: its name is free, and it stays unusable whatever the clock does */
    assert_int_equal(try_create(admin, &again, &made), HK_OK);
    assert_int_not_equal(made.id, first);
    assert_int_equal(made.expires_ms, 0);
    assert_int_equal(find(admin, hash_of(1))->token.revoked_ms, suite_clock_ms);
    assert_int_equal(find(admin, hash_of(2))->token.revoked_ms, 0);
    assert_int_equal(revoke(admin, 0, "ci", &revoked), HK_OK);
    assert_int_equal(revoked.token.id, made.id);
    create(admin, "ci", 3, 0);
    create(admin, "CI", 4, 0);
    assert_int_equal(list(admin)->n, 4);
    assert_int_equal(letters_verify_audit(admin), 5);
    admin_ops->close(admin);
}

static void a_hash_belongs_to_one_token_for_ever(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_token_made made = {0};
    struct hk_token_revoked revoked;
    struct hk_err err = {0};
    create(admin, "ci", 1, 0);
    assert_int_equal(revoke(admin, 0, "ci", &revoked), HK_OK);
    const struct hk_token_new same = {
        .name = "other", .role = "admin", .hash = hash_of(1), .actor = "eve", .reason = "mine"};
    assert_int_not_equal(api_ops->create_token(admin, &same, &made, &err), HK_OK);
    assert_int_equal(list(admin)->n, 1);
    assert_int_equal(letters_verify_audit(admin), 2);
    admin_ops->close(admin);
}

static void revoking_is_by_name_or_id_and_leaves_a_trail(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_token_revoked r;
    int64_t a = create(admin, "a", 1, 0).id, b = create(admin, "b", 2, 0).id;
    assert_int_equal(revoke(admin, 0, "c", &r), HK_NOTFOUND);
    assert_int_equal(revoke(admin, b + 1, NULL, &r), HK_NOTFOUND);
    suite_clock_ms += 5;
    assert_int_equal(revoke(admin, 0, "a", &r), HK_OK);
    assert_true(r.changed);
    assert_int_equal(r.token.id, a);
    assert_text(r.token.name, "a");
    assert_text(r.token.revoked_by, "bob");
    assert_int_equal(r.token.revoked_ms, suite_clock_ms);
    const struct hk_token_found *f = find(admin, hash_of(1));
    assert_true(f->found);
    assert_int_equal(f->token.revoked_ms, suite_clock_ms);
    assert_text(f->token.revoked_by, "bob");
    assert_rows(
        "outbox_audit WHERE act = 'token-revoke' AND actor = 'bob' AND reason = 'it leaked' AND detail "
        "LIKE '{\"token\":\"a\",\"id\":%}'",
        1);
    suite_clock_ms += 5;
    assert_int_equal(revoke(admin, 0, "a", &r), HK_OK); /* again */
    assert_false(r.changed);
    assert_int_equal(r.token.revoked_ms, suite_clock_ms - 5);
    assert_int_equal(revoke(admin, a, NULL, &r), HK_OK);
    assert_false(r.changed);
    assert_int_equal(revoke(admin, b, NULL, &r), HK_OK);
    assert_true(r.changed);
    assert_true(find(admin, NULL)->any); /* for good: who revokes the last opens no door */
    assert_int_equal(letters_verify_audit(admin), 4);
    admin_ops->close(admin);
}

static void a_list_has_those_in_use_first_and_an_end(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_token_revoked r;
    assert_int_equal(list(admin)->n, 0);
    assert_int_equal(list(admin)->now_ms, suite_clock_ms);
    for (unsigned i = 1; i <= 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%u", i);
        create(admin, name, i, 0);
    }
    assert_int_equal(revoke(admin, 0, "t4", &r), HK_OK);
    static const char *const wanted[] = {"t3", "t2", "t1", "t4"};
    const struct hk_tokens *tokens = list(admin);
    assert_int_equal(tokens->n, 4);
    assert_false(tokens->more);
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_text(tokens->items[i].name, wanted[i]);
    store_kind->sql("INSERT INTO outbox_tokens (name, role, hash, created_ms, created_by, reason) "
                    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 996) "
                    "SELECT 'more' || i, 'viewer', 'h' || i, 1, 'x', 'y' FROM n");
    tokens = list(admin);
    assert_int_equal(tokens->n, HK_TOKENS_MAX);
    assert_false(tokens->more);
    create(admin, "t5", 5, 0);
    tokens = list(admin);
    assert_int_equal(tokens->n, HK_TOKENS_MAX);
    assert_true(tokens->more);
    assert_text(tokens->items[0].name, "t5");
    admin_ops->close(admin);
}

static void a_use_is_written_once_a_minute(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    int64_t id = create(admin, "a", 1, 0).id, first = suite_clock_ms;
    use(admin, id);
    assert_int_equal(find(admin, hash_of(1))->token.last_used_ms, first);
    suite_clock_ms += MINUTE - 1;
    use(admin, id);
    assert_int_equal(find(admin, hash_of(1))->token.last_used_ms, first);
    suite_clock_ms += 1;
    use(admin, id);
    assert_int_equal(find(admin, hash_of(1))->token.last_used_ms, first + MINUTE);
    store_kind->sql("UPDATE outbox_tokens SET last_used_ms = 9000000000000");
    use(admin, id);
    assert_int_equal(find(admin, hash_of(1))->token.last_used_ms, suite_clock_ms);
    use(admin, id + 1); /* nobody's */
    assert_rows("outbox_audit", 1);
    admin_ops->close(admin);
}

static void who_was_refused_stands_in_the_audit(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    assert_int_equal(api_ops->refused(admin, "2001:db8::1", "TOKEN_INVALID", 17, &err), HK_OK);
    assert_int_equal(api_ops->refused(admin, "\"'\\\n", "TOKEN_EXPIRED", UINT64_MAX, &err), HK_OK);
    assert_rows(
        "outbox_audit WHERE act = 'api-refused' AND actor = 'hikyaku' AND reason = 'TOKEN_INVALID' AND "
        "detail = '{\"address\":\"2001:db8::1\",\"requests\":17}'",
        1);
    assert_int_equal(letters_verify_audit(admin), 2);
    admin_ops->close(admin);
}

/* Names that no desk would let through, and rows as somebody wrote them by hand. */
static void no_value_makes_a_look_fail(void **state)
{
    (void)state;
    static const char *const names[] = {
        "", "'; DROP TABLE outbox_tokens; --", "a\nb\x1b[2J", "\xff\xfe\x80", "飛脚", "\"}{", "%s%n"};
    struct hk_admin *admin = admin_open();
    char *huge = malloc(100001);
    assert_non_null(huge);
    memset(huge, 'x', 100000);
    huge[100000] = '\0';
    for (unsigned i = 0; i < COUNT(names); i++) {
        struct hk_token_made made = {0};
        struct hk_token_revoked r;
        const struct hk_token_new ask = {
            .name = names[i], .role = names[i], .hash = hash_of(i + 1), .actor = names[i], .reason = huge};
        assert_int_equal(try_create(admin, &ask, &made), HK_OK);
        assert_true(find(admin, hash_of(i + 1))->found);
        if (i % 2) {
            assert_int_equal(revoke(admin, 0, names[i], &r), HK_OK);
            assert_true(r.changed);
        }
    }
    assert_int_equal(list(admin)->n, COUNT(names));
    assert_true(list(admin)->items[0].reason.len <= HK_TOKEN_TEXT_MAX);
    store_kind->sql("UPDATE outbox_tokens SET created_ms = -5, expires_ms = -9223372036854775807, "
                    "last_used_ms = 9223372036854775807, role = '', revoked_by = NULL");
    const struct hk_token_found *f = find(admin, hash_of(1));
    assert_true(f->found);
    assert_int_equal(f->token.expires_ms, -INT64_C(9223372036854775807));
    assert_text(f->token.role, "");
    assert_int_equal(list(admin)->n, COUNT(names));
    use(admin, f->token.id);
    letters_verify_audit(admin);
    free(huge);
    admin_ops->close(admin);
}

/* ---- calls ---- */

static void a_call_that_was_done_answers_again(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open(), *other = admin_open();
    const struct hk_api_call call = {"ci", hash_of(1), hash_of(2)};
    const struct hk_api_call changed = {"ci", call.key_hash, hash_of(3)};
    const struct hk_api_call anothers = {"deploy", call.key_hash, call.request_hash};
    const struct hk_api_begun *b = begin(admin, &call);
    assert_int_equal(b->verdict, HK_API_YOURS);
    int64_t run = b->run;
    assert_int_equal(begin(other, &call)->verdict, HK_API_RUNNING);
    assert_int_equal(begin(other, &changed)->verdict, HK_API_OTHER);
    assert_int_equal(begin(other, &anothers)->verdict, HK_API_YOURS);
    finish(admin, &call, run,
           &(struct hk_api_response){
               .status = 201, .content_type = "application/json", .body = {"{\"a\":\0\xff}", 8}});
    b = begin(other, &call);
    assert_int_equal(b->verdict, HK_API_DONE);
    assert_int_equal(b->status, 201);
    assert_text(b->content_type, "application/json");
    assert_true(b->has_body);
    assert_int_equal(b->body.len, 8);
    assert_memory_equal(b->body.ptr, "{\"a\":\0\xff}", 8);
    assert_int_equal(begin(other, &changed)->verdict, HK_API_OTHER);
    suite_clock_ms += DAY - 1;
    assert_int_equal(begin(other, &call)->verdict, HK_API_DONE);
    admin_ops->close(admin);
    admin_ops->close(other);
}

static void what_is_large_or_secret_is_not_kept(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    size_t len = HK_API_KEPT_MAX + 1;
    char *body = malloc(len);
    assert_non_null(body);
    memset(body, 'x', len);
    const struct hk_api_response cases[] = {
        {.status = 200, .content_type = "text/plain", .body = {body, len}},
        {.status = 200, .content_type = "text/plain", .body = {"hk_secret", 9}, .secret = true},
        {.status = 200, .content_type = "text/plain", .body = {body, len - 1}},
        {.status = 204, .content_type = NULL, .body = {NULL, 0}}};
    for (unsigned i = 0; i < COUNT(cases); i++) {
        const struct hk_api_call call = {"ci", hash_of(10 + i), hash_of(2)};
        finish(admin, &call, begin(admin, &call)->run, &cases[i]);
        const struct hk_api_begun *b = begin(admin, &call);
        assert_int_equal(b->verdict, HK_API_DONE);
        assert_int_equal(b->status, cases[i].status);
        assert_int_equal(b->has_body, i >= 2);
        assert_int_equal(b->body.len, i == 2 ? HK_API_KEPT_MAX : 0);
    }
    free(body);
    admin_ops->close(admin);
}

static void a_call_whose_process_died_is_free_after_a_minute(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_api_call call = {"ci", hash_of(1), hash_of(2)}, changed = {"ci", hash_of(1), hash_of(3)};
    int64_t dead = begin(admin, &call)->run, began = suite_clock_ms;
    suite_clock_ms += HK_API_LEASE_MS - 1;
    assert_int_equal(begin(admin, &call)->verdict, HK_API_RUNNING);
    suite_clock_ms += 1;
    assert_int_equal(begin(admin, &changed)->verdict, HK_API_OTHER);
    const struct hk_api_begun *b = begin(admin, &call);
    assert_int_equal(b->verdict, HK_API_YOURS);
    int64_t mine = b->run;
    assert_int_not_equal(mine, dead);
    /* it was not dead, only slow: its word counts no more */
    finish(admin, &call, dead, &(struct hk_api_response){.status = 500, .body = {"late", 4}});
    assert_int_equal(begin(admin, &call)->verdict, HK_API_RUNNING);
    forget(admin, &call, dead);
    assert_int_equal(begin(admin, &call)->verdict, HK_API_RUNNING);
    finish(admin, &call, mine, &plain);
    assert_int_equal(begin(admin, &call)->status, 200);
    finish(admin, &call, mine, &(struct hk_api_response){.status = 500, .body = {"twice", 5}});
    forget(admin, &call, mine);
    assert_int_equal(begin(admin, &call)->status, 200);
    assert_int_equal(suite_number("SELECT created_ms FROM outbox_api_calls"), began);
    admin_ops->close(admin);
}

static void a_call_that_is_forgotten_may_be_done_again(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_api_call call = {"ci", hash_of(1), hash_of(2)}, changed = {"ci", hash_of(1), hash_of(3)};
    forget(admin, &call, begin(admin, &call)->run);
    assert_rows("outbox_api_calls", 0);
    assert_int_equal(begin(admin, &changed)->verdict, HK_API_YOURS);
    admin_ops->close(admin);
}

static void a_key_is_free_after_a_day(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_api_call call = {"ci", hash_of(1), hash_of(2)}, changed = {"ci", hash_of(1), hash_of(3)};
    finish(admin, &call, begin(admin, &call)->run, &plain);
    suite_clock_ms += HK_API_KEEP_MS;
    const struct hk_api_begun *b = begin(admin, &changed);
    assert_int_equal(b->verdict, HK_API_YOURS);
    finish(admin, &changed, b->run, &(struct hk_api_response){.status = 202, .body = {"", 0}});
    assert_int_equal(begin(admin, &changed)->status, 202);
    assert_int_equal(begin(admin, &call)->verdict, HK_API_OTHER);
    /* a clock that was years ahead holds no key for years */
    store_kind->sql("UPDATE outbox_api_calls SET created_ms = 9000000000000");
    assert_int_equal(begin(admin, &call)->verdict, HK_API_YOURS);
    store_kind->sql("UPDATE outbox_api_calls SET started_ms = 9000000000000");
    assert_int_equal(begin(admin, &call)->verdict, HK_API_YOURS);
    assert_rows("outbox_api_calls", 1);
    admin_ops->close(admin);
}

static void retention_takes_what_is_older_than_a_day(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_store *store = suite_open(NULL);
    struct hk_err err = {0};
    uint32_t deleted = 0;
    const struct hk_retention never = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                       UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (unsigned i = 1; i <= 5; i++) {
        const struct hk_api_call call = {"ci", hash_of(i), hash_of(99)};
        (void)begin(admin, &call);
    }
    suite_clock_ms += HK_API_KEEP_MS - 1;
    const struct hk_api_call young = {"ci", hash_of(6), hash_of(99)};
    (void)begin(admin, &young);
    assert_int_equal(store_kind->ops->purge(store, &never, 3, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 0);
    suite_clock_ms += 1;
    assert_int_equal(store_kind->ops->purge(store, &never, 3, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 3);
    assert_rows("outbox_api_calls", 3);
    assert_int_equal(store_kind->ops->purge(store, &never, 3, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 2);
    assert_rows("outbox_api_calls", 1);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- at once ---- */

#define THREADS 6

struct racer {
    pthread_barrier_t *start;
    enum hk_code rc;
    enum hk_api_verdict verdict;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    const struct hk_api_begun *b = NULL;
    const struct hk_api_call call = {"ci", "1", "2"};
    r->rc = admin_ops->open(store_kind->url(), &(struct hk_store_options){.busy_ms = 60000}, &admin, &err);
    (void)pthread_barrier_wait(r->start);
    if (r->rc == HK_OK)
        r->rc = api_ops->begin_call(admin, &call, &b, &err);
    if (r->rc == HK_OK)
        r->verdict = b->verdict;
    admin_ops->close(admin);
    return NULL;
}

static void of_many_at_once_one_does_it(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    struct racer racers[THREADS] = {0};
    int yours = 0;
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        racers[i].start = &start;
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(racers[i].rc, HK_OK);
        assert_true(racers[i].verdict == HK_API_YOURS || racers[i].verdict == HK_API_RUNNING);
        yours += racers[i].verdict == HK_API_YOURS;
    }
    assert_int_equal(yours, 1);
    assert_rows("outbox_api_calls", 1);
    pthread_barrier_destroy(&start);
}

/* ---- the suite ---- */

size_t api_suite_tests(struct CMUnitTest *out, size_t room)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_found_by_its_hash),
        TEST(a_name_belongs_to_one_token_at_a_time),
        TEST(a_hash_belongs_to_one_token_for_ever),
        TEST(revoking_is_by_name_or_id_and_leaves_a_trail),
        TEST(a_list_has_those_in_use_first_and_an_end),
        TEST(a_use_is_written_once_a_minute),
        TEST(who_was_refused_stands_in_the_audit),
        TEST(no_value_makes_a_look_fail),
        TEST(a_call_that_was_done_answers_again),
        TEST(what_is_large_or_secret_is_not_kept),
        TEST(a_call_whose_process_died_is_free_after_a_minute),
        TEST(a_call_that_is_forgotten_may_be_done_again),
        TEST(a_key_is_free_after_a_day),
        TEST(retention_takes_what_is_older_than_a_day),
        TEST(of_many_at_once_one_does_it),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
