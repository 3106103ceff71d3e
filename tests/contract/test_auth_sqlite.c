/* SPDX-License-Identifier: Apache-2.0 */
/* Who may call the HTTP API, on a real store: tokens made and revoked at the desk, callers checked by another handle. */
#include "admin/auth.h"
#include "base/str.h"
#include "desk/token.h"
#include "letters_suite_impl.h"
#include "sqlite_kind.h"

static struct hk_desk desk, worker;
static struct hk_pool mem;
static struct hk_auth *auth;
static int64_t clock_ms = 5000;

static int64_t now_ms(void)
{
    return clock_ms;
}

static int set_up(void **state)
{
    if (suite_setup(state) != 0)
        return -1;
    hk_desk_init(&desk, NULL, sqlite_kind.url());
    hk_desk_init(&worker, NULL, sqlite_kind.url());
    auth = hk_auth_new(&(struct hk_auth_options){.now_ms = now_ms});
    return auth && hk_desk_open(&worker, NULL) == HK_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    hk_auth_free(auth);
    hk_desk_fini(&desk);
    hk_desk_fini(&worker);
    hk_pool_fini(&mem);
    return suite_teardown(state);
}

static const struct hk_caller owner = {
    .role = HK_ROLE_ADMIN, .actor = "ann", .reason = "why", .may_reveal = true};

static struct hk_token_created create(const char *name, const char *role, const char *expires)
{
    struct hk_token_created made = {.id = 0};
    struct hk_err err = {.message = ""};
    const struct hk_token_create_ask ask = {.name = name, .role = role, .expires = expires};
    enum hk_code rc = hk_desk_ask(&desk, &hk_op_token_create, &owner, &ask, &mem, &made, &err);
    NOTE_IF(rc != HK_OK, "create: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return made;
}

static struct hk_auth_answer check(const char *address, const char *token)
{
    char header[100];
    struct hk_err err = {.message = ""};
    struct hk_auth_answer out = {.status = 0};
    (void)snprintf(header, sizeof header, "Bearer %s", token ? token : "");
    hk_auth_check(
        auth, worker.api, worker.admin,
        &(struct hk_auth_ask){
            .authorization = token ? header : NULL, .address = address, .local = true, .actor = "somebody"},
        &out, &err);
    NOTE_IF(out.status == 503, "%s\n", err.message);
    return out;
}

static void a_token_of_the_desk_is_let_in_until_it_is_revoked(void **state)
{
    (void)state;
    struct hk_token_revoked revoked;
    struct hk_err err = {.message = ""};
    struct hk_auth_answer a = check("127.0.0.1", NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.role, HK_ROLE_ADMIN);
    assert_string_equal(a.name, "somebody");
    struct hk_token_created made = create("ci", "operator", NULL);
    clock_ms += HK_AUTH_FRESH_MS;
    assert_string_equal(check("127.0.0.1", NULL).code, "TOKEN_MISSING");
    a = check("127.0.0.1", made.token);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.role, HK_ROLE_OPERATOR);
    assert_false(a.may_reveal);
    assert_string_equal(a.name, "ci");
    assert_rows("outbox_tokens WHERE last_used_ms > 0", 1);
    assert_int_equal(hk_desk_ask(&desk, &hk_op_token_revoke, &owner,
                                 &(struct hk_token_revoke_ask){.token = "ci"}, &mem, &revoked, &err),
                     HK_OK);
    clock_ms += HK_AUTH_FRESH_MS;
    a = check("127.0.0.1", made.token);
    assert_int_equal(a.status, 401);
    assert_string_equal(a.code, "TOKEN_REVOKED");
    assert_string_equal(check("127.0.0.1", NULL).code, "TOKEN_MISSING");
    assert_rows("outbox_audit WHERE act = 'api-refused' AND reason = 'TOKEN_REVOKED' AND "
                "detail = '{\"address\":\"127.0.0.1\",\"requests\":1}'",
                1);
    assert_rows("outbox_audit WHERE act = 'api-refused'", 1);
}

static void a_stranger_waits_and_the_audit_knows(void **state)
{
    (void)state;
    unsigned char bytes[32] = {1};
    char text[HK_TOKEN_LEN + 1];
    struct hk_token_created made = create("ci", "viewer", "1s");
    assert_true(hk_token_text(bytes, text));
    for (int i = 0; i < 5; i++)
        assert_string_equal(check("192.0.2.1", text).code, "TOKEN_INVALID");
    assert_int_equal(check("192.0.2.1", text).status, 429);
    assert_int_equal(check("192.0.2.2", made.token).status, 200);
    assert_rows("outbox_audit WHERE act = 'api-refused' AND reason = 'TOKEN_INVALID'", 1);
    sqlite_kind.sql("UPDATE outbox_tokens SET expires_ms = 1");
    clock_ms += HK_AUTH_FRESH_MS;
    assert_string_equal(check("192.0.2.2", made.token).code, "TOKEN_EXPIRED");
    sqlite_kind.sql("DROP TABLE outbox_tokens");
    clock_ms += HK_AUTH_FRESH_MS;
    assert_int_equal(check("192.0.2.3", made.token).status, 503);
    assert_int_equal(check("127.0.0.1", NULL).status, 401); /* that there are tokens stays true */
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_token_of_the_desk_is_let_in_until_it_is_revoked),
        TEST(a_stranger_waits_and_the_audit_knows),
    };
    store_kind = &sqlite_kind;
    admin_ops = &hk_store_admin_sqlite;
    letters_ops = &hk_store_letters_sqlite;
    return cmocka_run_group_tests_name("auth (sqlite)", tests, NULL, NULL);
}
