/* SPDX-License-Identifier: Apache-2.0 */
/* Who may call the HTTP API: every way to be let in or refused, the waits of those who fail, and the bound of each table. The store is
 * a puppet; tests/contract/test_auth_sqlite.c asks a real one. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "admin/auth.h"
#include "admin/offenders.h"
#include "base/str.h"
#include "check.h"
#include "desk/token.h"
#include "failing.h"

#define TOKENS 400

/* ---- a store that does as it is told ---- */

struct row {
    char text[HK_TOKEN_LEN + 1], hash[HK_API_HASH_LEN + 1];
    const char *role;
    bool reveal;
    int64_t expires_ms, revoked_ms, last_used_ms;
};

static struct {
    pthread_mutex_t lock;
    struct row rows[TOKENS];
    size_t n;
    bool down, refuses_writes, lies;
    unsigned finds, uses, told;
    struct hk_offence last;
} store;

/* One for each thread, as a store's handle is. */
struct handle {
    struct hk_token_found found;
    char name[24];
};

static int64_t clock_ms = 1000000; /* ours; the store's is another one */
#define STORE_MS (clock_ms + INT64_C(1800000000000))

static int64_t now_ms(void)
{
    return clock_ms;
}

static enum hk_code find_token(struct hk_admin *admin, const char *hash, const struct hk_token_found **out,
                               struct hk_err *err)
{
    struct handle *h = (struct handle *)admin;
    enum hk_code rc = HK_OK;
    pthread_mutex_lock(&store.lock);
    store.finds++;
    h->found = (struct hk_token_found){.now_ms = STORE_MS, .any = store.n > 0};
    for (size_t i = 0; hash && i < store.n; i++) {
        const struct row *r = &store.rows[i];
        if (strcmp(r->hash, hash) != 0)
            continue;
        (void)snprintf(h->name, sizeof h->name, "t%zu", i);
        h->found.found = true;
        h->found.hash = hk_str_of(store.lies ? store.rows[0].hash : r->hash);
        h->found.token = (struct hk_token){.id = (int64_t)i + 1,
                                           .name = hk_str_of(h->name),
                                           .role = hk_str_of(r->role),
                                           .reveal = r->reveal,
                                           .expires_ms = r->expires_ms,
                                           .revoked_ms = r->revoked_ms,
                                           .last_used_ms = r->last_used_ms};
    }
    if (store.down)
        rc = hk_err_set(err, HK_UNAVAILABLE, "it is down");
    pthread_mutex_unlock(&store.lock);
    *out = &h->found;
    return rc;
}

static enum hk_code use_token(struct hk_admin *admin, int64_t id, struct hk_err *err)
{
    (void)admin;
    pthread_mutex_lock(&store.lock);
    store.uses++;
    enum hk_code rc = store.refuses_writes ? hk_err_set(err, HK_BUSY, "busy") : HK_OK;
    if (rc == HK_OK)
        store.rows[id - 1].last_used_ms = STORE_MS;
    pthread_mutex_unlock(&store.lock);
    return rc;
}

static enum hk_code note_refused(struct hk_admin *admin, const char *address, const char *code, uint64_t n,
                                 struct hk_err *err)
{
    (void)admin;
    pthread_mutex_lock(&store.lock);
    enum hk_code rc = store.refuses_writes ? hk_err_set(err, HK_BUSY, "busy") : HK_OK;
    if (rc == HK_OK) {
        store.told++;
        store.last = (struct hk_offence){.code = code, .n = n};
        (void)snprintf(store.last.address, sizeof store.last.address, "%s", address);
    }
    pthread_mutex_unlock(&store.lock);
    return rc;
}

static const struct hk_store_api_ops api = {
    .find_token = find_token, .use_token = use_token, .refused = note_refused};

static struct handle handle;
static struct hk_auth *auth;

static const char *add_token(const char *role, bool reveal)
{
    struct row *r = &store.rows[store.n];
    unsigned char bytes[32] = {7, (unsigned char)store.n, (unsigned char)(store.n >> 8)};
    *r = (struct row){.role = role, .reveal = reveal};
    assert_true(hk_token_text(bytes, r->text));
    assert_true(hk_token_hash(hk_str_of(r->text), r->hash));
    store.n++;
    return r->text;
}

static int set_up(void **state)
{
    (void)state;
    memset(&store, 0, sizeof store);
    assert_int_equal(pthread_mutex_init(&store.lock, NULL), 0);
    auth = hk_auth_new(&(struct hk_auth_options){.now_ms = now_ms});
    assert_non_null(auth);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hk_auth_free(auth);
    pthread_mutex_destroy(&store.lock);
    return 0;
}

/* ---- asking ---- */

static struct hk_auth_ask from(const char *address, const char *token, char header[100])
{
    if (token)
        (void)snprintf(header, 100, "Bearer %s", token);
    return (struct hk_auth_ask){
        .authorization = token ? header : NULL, .address = address, .actor = "root via loopback"};
}

static struct hk_auth_answer check(const struct hk_auth_ask *ask)
{
    struct hk_auth_answer out = {0};
    struct hk_err err = {0};
    hk_auth_check(auth, &api, (struct hk_admin *)&handle, ask, &out, &err);
    assert_true(out.status == 200 || out.code);
    assert_true(out.status != 503 || err.message[0]);
    return out;
}

static struct hk_auth_answer check_token(const char *address, const char *token)
{
    char header[100];
    struct hk_auth_ask ask = from(address, token, header);
    return check(&ask);
}

static bool quick(const char *address, const char *token, struct hk_auth_answer *out)
{
    char header[100];
    struct hk_auth_ask ask = from(address, token, header);
    return hk_auth_quick(auth, &ask, out);
}

#define assert_refused(answer, number, word)                                                                 \
    do {                                                                                                     \
        struct hk_auth_answer a_ = (answer);                                                                 \
        assert_int_equal(a_.status, number);                                                                 \
        assert_string_equal(a_.code, word);                                                                  \
        assert_int_equal(a_.role, HK_ROLE_NONE);                                                             \
        assert_false(a_.may_reveal);                                                                         \
    } while (0)

/* A text with the form of a token, that nobody has. */
static const char *stranger(unsigned n)
{
    static char text[HK_TOKEN_LEN + 1];
    unsigned char bytes[32] = {9, (unsigned char)n, (unsigned char)(n >> 8)};
    assert_true(hk_token_text(bytes, text));
    return text;
}

/* ---- who is let in ---- */

static void this_machine_is_let_in_only_while_there_was_no_token(void **state)
{
    (void)state;
    const struct hk_auth_ask local = {.address = "127.0.0.1", .local = true, .actor = "root via loopback"};
    const struct hk_auth_ask remote = {.address = "192.0.2.1", .actor = "x"};
    struct hk_auth_answer out = {0};
    assert_false(hk_auth_quick(auth, &local, &out));
    out = check(&local);
    assert_int_equal(out.status, 200);
    assert_int_equal(out.role, HK_ROLE_ADMIN);
    assert_true(out.may_reveal);
    assert_string_equal(out.name, "root via loopback");
    assert_string_equal(out.key, "local");
    clock_ms += HK_AUTH_FRESH_MS - 1;
    assert_true(hk_auth_quick(auth, &local, &out) && out.status == 200);
    assert_true(hk_auth_quick(auth, &remote, &out)); /* needs no store */
    assert_refused(out, 401, "TOKEN_MISSING");
    assert_refused(check(&remote), 401, "TOKEN_MISSING");
    add_token("metrics", false);
    clock_ms += 1;
    assert_false(hk_auth_quick(auth, &local, &out));
    assert_refused(check(&local), 401, "TOKEN_MISSING");
    assert_true(hk_auth_quick(auth, &local, &out) && out.status == 401);
    store.rows[0].revoked_ms = 1; /* and it stays so */
    clock_ms += HK_AUTH_FRESH_MS;
    assert_refused(check(&local), 401, "TOKEN_MISSING");
    assert_int_equal(store.told, 0); /* nobody tried anything */
}

static void tokens_may_be_asked_for_on_this_machine_too(void **state)
{
    (void)state;
    const struct hk_auth_ask local = {.address = "", .local = true};
    struct hk_auth_answer out = {0};
    assert_int_equal(check(&local).status, 200);
    assert_string_equal(check(&local).name, "local");
    hk_auth_set_tokens_only(auth, true);
    assert_true(hk_auth_quick(auth, &local, &out));
    assert_refused(out, 401, "TOKEN_MISSING");
    hk_auth_set_tokens_only(auth, false);
    assert_int_equal(check(&local).status, 200);
}

static void probes_and_local_metrics_are_for_everybody(void **state)
{
    (void)state;
    assert_false(hk_auth_is_needed(HK_ROLE_NONE, false));
    assert_false(hk_auth_is_needed(HK_ROLE_METRICS, true));
    assert_true(hk_auth_is_needed(HK_ROLE_METRICS, false));
    for (int role = HK_ROLE_VIEWER; role <= HK_ROLE_ADMIN; role++)
        assert_true(hk_auth_is_needed((enum hk_role)role, true) &&
                    hk_auth_is_needed((enum hk_role)role, false));
}

static void a_token_gives_what_it_says(void **state)
{
    (void)state;
    static const char *const roles[] = {"metrics", "viewer", "operator", "admin", "emperor", ""};

    static const enum hk_role wanted[] = {HK_ROLE_METRICS, HK_ROLE_VIEWER, HK_ROLE_OPERATOR,
                                          HK_ROLE_ADMIN,   HK_ROLE_NONE,   HK_ROLE_NONE};

    for (size_t i = 0; i < COUNT(roles); i++) {
        char name[24];
        struct hk_auth_answer out = check_token("192.0.2.1", add_token(roles[i], i % 2));
        assert_int_equal(out.status, 200);
        assert_null(out.code);
        assert_int_equal(out.role, wanted[i]);
        assert_int_equal(out.may_reveal, i % 2);
        (void)snprintf(name, sizeof name, "t%zu", i);
        assert_string_equal(out.name, name);
        (void)snprintf(name, sizeof name, "token %zu", i + 1);
        assert_string_equal(out.key, name);
        struct hk_auth_answer again = {0};
        assert_true(quick("192.0.2.1", store.rows[i].text, &again));
        assert_memory_equal(&again, &out, sizeof out);
    }
}

static void the_header_is_read_strictly(void **state)
{
    (void)state;

    static const struct {
        const char *format, *code;
    } cases[] = {{"Bearer %s", NULL},
                 {"bearer   %s", NULL},
                 {"  BEARER %s \t", NULL},
                 {"", "TOKEN_MISSING"},
                 {"   ", "TOKEN_MISSING"},
                 {"Bearer", "TOKEN_INVALID"},
                 {"Bearer ", "TOKEN_INVALID"},
                 {"%s", "TOKEN_INVALID"},
                 {"Bearer%s", "TOKEN_INVALID"},
                 {"Basic %s", "TOKEN_INVALID"},
                 {"Bearer %s, Bearer x", "TOKEN_INVALID"},
                 {"Bearer \"%s\"", "TOKEN_INVALID"},
                 {"Bearer hk_%s", "TOKEN_INVALID"},
                 {"Bearer %sa", "TOKEN_INVALID"},
                 {"Bearer \xff\xfe", "TOKEN_INVALID"}};

    const char *token = add_token("viewer", false);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char header[200] = "", address[24];
        const char *at = strstr(cases[i].format, "%s");
        size_t before = at ? (size_t)(at - cases[i].format) : strlen(cases[i].format);
        (void)snprintf(header, sizeof header, "%.*s%s%s", (int)before, cases[i].format, at ? token : "",
                       at ? at + 2 : "");
        (void)snprintf(address, sizeof address, "192.0.2.%zu", i);
        struct hk_auth_answer out = check(&(struct hk_auth_ask){.authorization = header, .address = address});
        if (cases[i].code)
            assert_refused(out, 401, cases[i].code);
        else
            assert_int_equal(out.status, 200);
    }
}

/* ---- who is refused ---- */

static void a_wrong_token_says_why_by_its_code(void **state)
{
    (void)state;
    add_token("admin", true);
    const char *expired = add_token("admin", true), *revoked = add_token("admin", true);
    store.rows[1].expires_ms = STORE_MS;
    store.rows[2].revoked_ms = STORE_MS;
    assert_refused(check_token("192.0.2.1", stranger(1)), 401, "TOKEN_INVALID");
    assert_refused(check_token("192.0.2.2", "hk_nonsense"), 401, "TOKEN_INVALID");
    assert_refused(check_token("192.0.2.3", expired), 401, "TOKEN_EXPIRED");
    assert_refused(check_token("192.0.2.4", revoked), 401, "TOKEN_REVOKED");
    assert_refused(check_token("192.0.2.5", NULL), 401, "TOKEN_MISSING");
    struct hk_auth_answer out = {0};
    assert_true(quick("192.0.2.3", expired, &out));
    assert_refused(out, 401, "TOKEN_EXPIRED");
    assert_true(quick("192.0.2.4", revoked, &out));
    assert_refused(out, 401, "TOKEN_REVOKED");
    store.rows[2].expires_ms = 1; /* revoked comes first */
    clock_ms += HK_AUTH_FRESH_MS;
    assert_refused(check_token("192.0.2.6", revoked), 401, "TOKEN_REVOKED");
    store.rows[1].expires_ms = -INT64_MAX;
    assert_refused(check_token("192.0.2.7", expired), 401, "TOKEN_EXPIRED");
    store.rows[1].expires_ms = INT64_MAX;
    clock_ms += HK_AUTH_FRESH_MS;
    assert_int_equal(check_token("192.0.2.7", expired).status, 200);
}

static void a_revoked_token_is_refused_within_a_second(void **state)
{
    (void)state;
    const char *token = add_token("admin", false);
    struct hk_auth_answer out = {0};
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    store.rows[0].revoked_ms = STORE_MS;
    unsigned finds = store.finds;
    clock_ms += HK_AUTH_FRESH_MS - 1;
    assert_true(quick("192.0.2.1", token, &out) && out.status == 200);
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    assert_int_equal(store.finds, finds);
    clock_ms += 1;
    assert_false(quick("192.0.2.1", token, &out));
    assert_refused(check_token("192.0.2.1", token), 401, "TOKEN_REVOKED");
}

static void a_token_expires_while_it_is_remembered(void **state)
{
    (void)state;
    const char *token = add_token("admin", false);
    struct hk_auth_answer out = {0};
    store.rows[0].expires_ms = STORE_MS + 500;
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    clock_ms += 499;
    assert_true(quick("192.0.2.1", token, &out) && out.status == 200);
    clock_ms += 1;
    assert_true(quick("192.0.2.1", token, &out));
    assert_refused(out, 401, "TOKEN_EXPIRED");
}

static void nobody_comes_in_when_the_store_cannot_be_asked(void **state)
{
    (void)state;
    const char *token = add_token("admin", false);
    struct hk_auth_answer out = {0};
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    store.down = true;
    assert_true(quick("192.0.2.1", token, &out) && out.status == 200); /* it was asked just now */
    clock_ms += HK_AUTH_FRESH_MS;
    assert_refused(check_token("192.0.2.1", token), 503, "STORE_UNAVAILABLE");
    const struct hk_auth_ask local = {.address = "127.0.0.1", .local = true};
    assert_refused(check(&local), 401, "TOKEN_MISSING"); /* that there are tokens stays true */
    store.down = false;
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
}

static void a_store_that_finds_another_token_is_not_believed(void **state)
{
    (void)state;
    add_token("admin", true);
    const char *token = add_token("viewer", false);
    store.lies = true;
    assert_refused(check_token("192.0.2.1", token), 401, "TOKEN_INVALID");
}

/* ---- who fails has to wait ---- */

static void whoever_fails_often_waits_longer_and_longer(void **state)
{
    (void)state;
    struct hk_auth_answer out = {0};
    add_token("admin", false);
    for (unsigned i = 0; i < HK_OFFENDERS_FREE; i++)
        assert_refused(check_token("192.0.2.1", stranger(i)), 401, "TOKEN_INVALID");
    uint64_t wait = HK_OFFENDERS_WAIT_MS;
    for (unsigned i = 0; i < 12; i++) {
        assert_refused(check_token("192.0.2.1", stranger(100 + i)), 401, "TOKEN_INVALID");
        unsigned finds = store.finds;
        assert_true(quick("192.0.2.1", stranger(1), &out));
        assert_refused(out, 429, "TOO_MANY_FAILURES");
        assert_int_equal(out.retry_after_ms, wait);
        clock_ms += (int64_t)wait - 1;
        assert_true(quick("192.0.2.1", "nonsense", &out) && out.status == 429);
        assert_refused(check_token("192.0.2.1", stranger(2)), 429, "TOO_MANY_FAILURES");
        assert_int_equal(store.finds, finds); /* costs the store nothing */
        clock_ms += 1;                        /* asking meanwhile made it no longer */
        wait = wait * 2 < HK_OFFENDERS_WAIT_MAX_MS ? wait * 2 : HK_OFFENDERS_WAIT_MAX_MS;
    }
    clock_ms += HK_OFFENDERS_FORGET_MS + 1;
    assert_refused(check_token("192.0.2.1", stranger(3)), 401, "TOKEN_INVALID");
    assert_refused(check_token("192.0.2.1", stranger(3)), 401, "TOKEN_INVALID");
}

static void nobody_else_is_locked_out(void **state)
{
    (void)state;
    const char *token = add_token("operator", false), *fresh = add_token("viewer", false);
    struct hk_auth_answer out = {0};
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    for (unsigned i = 0; i < 10; i++)
        (void)check_token("192.0.2.1", stranger(i));
    assert_true(quick("192.0.2.1", stranger(1), &out) && out.status == 429);
    assert_int_equal(check_token("192.0.2.2", fresh).status, 200); /* from elsewhere */
    assert_true(quick("192.0.2.1", token, &out) && out.status == 200);
    clock_ms += HK_AUTH_FRESH_MS; /* it is looked up again, and lets its address in */
    for (unsigned i = 0; i < 10; i++)
        (void)check_token("192.0.2.1", stranger(i));
    assert_false(quick("192.0.2.1", token, &out));
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    assert_refused(check_token("192.0.2.1", stranger(1)), 401, "TOKEN_INVALID");
    /* a token that was right long ago, or is not any more, has to wait with its address */
    for (unsigned i = 0; i < 10; i++)
        (void)check_token("192.0.2.1", stranger(i));
    store.rows[0].revoked_ms = 1;
    clock_ms += HK_AUTH_FRESH_MS;
    assert_refused(check_token("192.0.2.1", token), 401, "TOKEN_REVOKED");
    clock_ms += HK_AUTH_FRESH_MS;
    assert_true(quick("192.0.2.1", token, &out) && out.status == 429);
}

static void addresses_of_one_customer_are_one(void **state)
{
    (void)state;
    struct hk_offenders *o = hk_offenders_new();
    for (unsigned i = 0; i < 6; i++) {
        char address[40];
        (void)snprintf(address, sizeof address, "2001:db8:0:1::%x", i + 1);
        hk_offenders_failed(o, address, "X", false, 1);
        (void)snprintf(address, sizeof address, i % 2 ? "::ffff:192.0.2.9" : "192.0.2.9");
        hk_offenders_failed(o, address, "X", false, 1);
        hk_offenders_failed(o, i % 2 ? "" : NULL, "X", false, 1);
    }
    assert_int_equal(hk_offenders_count(o), 3);
    assert_true(hk_offenders_wait_ms(o, "2001:db8:0:1:ffff::", 1) > 0);
    assert_true(hk_offenders_wait_ms(o, "2001:db8:0:2::1", 1) == 0);
    assert_true(hk_offenders_wait_ms(o, "192.0.2.9", 1) > 0);
    assert_true(hk_offenders_wait_ms(o, "192.0.2.8", 1) == 0);
    hk_offenders_free(o);
}

/* ---- what the audit is told ---- */

static void the_audit_hears_of_an_address_once_a_minute(void **state)
{
    (void)state;
    add_token("admin", false);
    (void)check_token("192.0.2.1", stranger(1));
    assert_int_equal(store.told, 1);
    assert_string_equal(store.last.address, "192.0.2.1");
    assert_string_equal(store.last.code, "TOKEN_INVALID");
    assert_int_equal(store.last.n, 1);
    for (unsigned i = 0; i < 50; i++)
        (void)check_token("192.0.2.1", "nonsense");
    (void)check_token("192.0.2.2", stranger(1));
    assert_int_equal(store.told, 2);
    struct hk_auth_answer out = {0};
    assert_true(quick("192.0.2.1", "nonsense", &out));
    assert_false(out.audit);
    clock_ms += HK_OFFENDERS_TELL_MS;
    assert_true(quick("192.0.2.1", "nonsense", &out)); /* whoever does not block asks somebody to tell it */
    assert_true(out.audit);
    hk_auth_audit(auth, &api, (struct hk_admin *)&handle);
    assert_int_equal(store.told, 3);
    assert_int_equal(store.last.n, 52);
    hk_auth_audit(auth, &api, (struct hk_admin *)&handle);
    assert_int_equal(store.told, 3);
}

static void what_could_not_be_told_is_told_later(void **state)
{
    (void)state;
    add_token("admin", false);
    store.refuses_writes = true;
    assert_refused(check_token("192.0.2.1", stranger(1)), 401, "TOKEN_INVALID");
    assert_refused(check_token("192.0.2.2", stranger(1)), 401, "TOKEN_INVALID");
    assert_int_equal(store.told, 0);
    store.refuses_writes = false;
    clock_ms += HK_OFFENDERS_TELL_MS;
    hk_auth_audit(auth, &api, (struct hk_admin *)&handle);
    assert_true(store.told >= 1);
    assert_string_equal(store.last.address, "others");
    assert_int_equal(store.last.n, 2);
}

static void many_addresses_fill_neither_table_nor_audit(void **state)
{
    (void)state;
    struct hk_offenders *o = hk_offenders_new();
    struct hk_offence out;
    uint64_t rows = 0, told = 0;
    for (int i = 0; i < HK_OFFENDERS_FREE + 1; i++)
        hk_offenders_failed(o, "198.51.100.1", "X", false, 1000);
    for (unsigned i = 0; i < 5000; i++) {
        char address[24];
        (void)snprintf(address, sizeof address, "10.%u.%u.1", i / 250, i % 250);
        hk_offenders_failed(o, address, "X", false, 1001);
        assert_true(hk_offenders_count(o) <= HK_OFFENDERS_MAX);
    }
    assert_int_equal(hk_offenders_count(o), HK_OFFENDERS_MAX);
    assert_true(hk_offenders_wait_ms(o, "198.51.100.1", 1002) > 0); /* nobody frees it that way */
    assert_true(hk_offenders_has_news(o, 1002));
    while (hk_offenders_tell(o, 1002, &out)) {
        rows++;
        told += out.n;
    }
    assert_int_equal(rows, HK_OFFENDERS_TOLD_MAX + 1);
    assert_string_equal(out.address, "others");
    assert_int_equal(told, 5000 + HK_OFFENDERS_FREE + 1);
    assert_false(hk_offenders_has_news(o, 1002));
    hk_offenders_free(o);
}

/* ---- what is remembered, and written ---- */

static void no_more_tokens_are_remembered_than_there_is_room_for(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TOKENS; i++)
        add_token("viewer", false);
    for (unsigned i = 0; i < TOKENS; i++) {
        assert_int_equal(check_token("192.0.2.1", store.rows[i].text).status, 200);
        clock_ms += i % 2;
    }
    struct hk_auth_answer out = {0};
    unsigned known = 0;
    for (unsigned i = 0; i < TOKENS; i++)
        known += quick("192.0.2.1", store.rows[i].text, &out);
    assert_int_equal(known, HK_AUTH_CACHE_MAX);
    assert_true(quick("192.0.2.1", store.rows[TOKENS - 1].text, &out));
    assert_false(quick("192.0.2.1", store.rows[0].text, &out));
    assert_int_equal(check_token("192.0.2.1", store.rows[0].text).status, 200);
}

static void a_use_is_written_once_a_minute(void **state)
{
    (void)state;
    const char *token = add_token("viewer", false);
    for (unsigned i = 0; i < 60; i++, clock_ms += HK_AUTH_FRESH_MS)
        assert_int_equal(check_token("192.0.2.1", token).status, 200);
    assert_int_equal(store.uses, 1);
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    assert_int_equal(store.uses, 2);
    clock_ms += HK_TOKEN_USED_MS; /* another relay has just written it */
    store.rows[0].last_used_ms = STORE_MS;
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    assert_int_equal(store.uses, 2);
    clock_ms += HK_TOKEN_USED_MS;
    store.refuses_writes = true;
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    clock_ms += HK_AUTH_FRESH_MS;
    assert_int_equal(check_token("192.0.2.1", token).status, 200);
    assert_int_equal(store.uses, 3);
    store.rows[0].revoked_ms = 1;
    clock_ms += HK_TOKEN_USED_MS;
    (void)check_token("192.0.2.1", token);
    assert_int_equal(store.uses, 3); /* a refusal is no use */
}

static enum hk_code make_one(void)
{
    struct hk_auth *one = hk_auth_new(&(struct hk_auth_options){.now_ms = now_ms});
    hk_auth_free(one);
    return one ? HK_OK : HK_NOMEM;
}

static void no_memory_makes_none(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(make_one, HK_OK), 2);
    hk_auth_free(NULL);
}

/* ---- at once ---- */

#define ROUNDS 3000

static void *ask_often(void *arg)
{
    const char *token = arg;
    struct handle own = {.name = ""};
    char header[100];
    uintptr_t wrong = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct hk_auth_answer out = {0};
        struct hk_auth_ask ask =
            from(i % 2 ? "192.0.2.1" : "192.0.2.2", i % 5 == 4 ? "nonsense" : token, header);
        if (i % 7 != 0 || !hk_auth_quick(auth, &ask, &out))
            hk_auth_check(auth, &api, (struct hk_admin *)&own, &ask, &out, NULL);
        wrong += i % 5 == 4 ? out.status == 200 : out.status != 200;
    }
    return (void *)wrong;
}

static void any_number_of_threads_may_ask(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        add_token("viewer", false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, store.rows[i % 2].text), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(this_machine_is_let_in_only_while_there_was_no_token),
        TEST(tokens_may_be_asked_for_on_this_machine_too),
        TEST(probes_and_local_metrics_are_for_everybody),
        TEST(a_token_gives_what_it_says),
        TEST(the_header_is_read_strictly),
        TEST(a_wrong_token_says_why_by_its_code),
        TEST(a_revoked_token_is_refused_within_a_second),
        TEST(a_token_expires_while_it_is_remembered),
        TEST(nobody_comes_in_when_the_store_cannot_be_asked),
        TEST(a_store_that_finds_another_token_is_not_believed),
        TEST(whoever_fails_often_waits_longer_and_longer),
        TEST(nobody_else_is_locked_out),
        TEST(addresses_of_one_customer_are_one),
        TEST(the_audit_hears_of_an_address_once_a_minute),
        TEST(what_could_not_be_told_is_told_later),
        TEST(many_addresses_fill_neither_table_nor_audit),
        TEST(no_more_tokens_are_remembered_than_there_is_room_for),
        TEST(a_use_is_written_once_a_minute),
        TEST(no_memory_makes_none),
        TEST(any_number_of_threads_may_ask),
    };
    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
