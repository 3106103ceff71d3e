/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the dashboard on a clock of ours: when they end, whose cookie counts, tickets, and the bound of the table. */
#include <string.h>

#include "admin/exchange.h"
#include "admin/sessions.h"
#include "base/str.h"
#include "check.h"

#define HASH   "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
#define ORIGIN "http://localhost:8189"
#define MINUTE INT64_C(60000)

static int64_t clock_ms;

static int64_t now_ms(void)
{
    return clock_ms;
}

struct rig {
    struct hk_hub *hub;
    struct hk_sessions *sessions;
};

static int set_up(void **state)
{
    static struct rig r;
    clock_ms = 1000000;
    struct hk_admin_room *room = hk_admin_room_new();
    assert_non_null(room);
    r.hub = hk_hub_new(room);
    hk_admin_room_unref(room); /* the hub has its own share */
    r.sessions = hk_sessions_new("sesame", now_ms);
    assert_non_null(r.hub);
    assert_non_null(r.sessions);
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    hk_sessions_free(r->sessions);
    hk_hub_unref(r->hub);
    return 0;
}

/* ---- requests ---- */

/* Headers: name, value, …, NULL. */
static struct hk_admin_exchange *ask(struct rig *r, const char *method, enum hk_gate_way way,
                                     const char *const *headers)
{
    struct hk_admin_exchange *x = hk_exchange_new(r->hub, "/api/v1/me");
    assert_non_null(x);
    x->ask.method = method;
    x->ask.way = way;
    for (; *headers; headers += 2)
        assert_true(hk_exchange_add_header(x, headers[0], headers[1]));
    return x;
}

#define ASK(r, method, ...) ask(r, method, HK_GATE_LOCAL, (const char *const[]){__VA_ARGS__, NULL})

/* The cookie that a reply sets: "NAME=VALUE", and what follows it. */
static void take_cookie(const struct hk_admin_reply *reply, char *pair, size_t room, char *rest)
{
    assert_int_equal(reply->n_headers, 1);
    assert_string_equal(reply->headers[0].name, "Set-Cookie");
    const char *text = reply->headers[0].value, *end = strchr(text, ';');
    assert_non_null(end);
    assert_true((size_t)(end - text) < room);
    memcpy(pair, text, (size_t)(end - text));
    pair[end - text] = '\0';
    (void)snprintf(rest, 100, "%s", end);
}

static void open_session(struct rig *r, char pair[200])
{
    struct hk_admin_reply reply;
    char rest[100];
    struct hk_admin_exchange *x = ASK(r, "POST", "Host", "localhost:8189", "Origin", ORIGIN);
    hk_admin_reply_init(&reply, 204);
    assert_int_equal(hk_sessions_open(r->sessions, x, HASH, &reply), HK_OK);
    take_cookie(&reply, pair, 200, rest);
    hk_exchange_leave(x);
    hk_buf_fini(&reply.body);
}

static bool counts(struct rig *r, const char *cookie)
{
    struct hk_session found = {.id = ""};
    struct hk_admin_exchange *x = ASK(r, "GET", "Host", "localhost:8189", "Cookie", cookie);
    bool is = hk_sessions_find(r->sessions, x, &found);
    assert_true(!is || strcmp(found.token_hash, HASH) == 0);
    hk_exchange_leave(x);
    return is;
}

/* ---- the cookie ---- */

static void test_the_cookie_is_strict_and_says_nothing(void **state)
{
    struct rig *r = *state;
    char pair[200], rest[100], other[200];
    struct hk_admin_reply reply;
    open_session(r, pair);
    open_session(r, other);
    assert_string_not_equal(pair, other);
    assert_int_equal(strncmp(pair, "hikyaku-8189=", 13), 0);
    assert_int_equal(strlen(pair), 13 + HK_SESSION_ID_LEN);
    assert_null(strstr(pair, HASH));

    static const enum hk_gate_way ways[] = {HK_GATE_TLS, HK_GATE_PROXIED};

    for (size_t i = 0; i < COUNT(ways); i++) {
        const char *const headers[] = {"Host", "relay.example", "Origin", "https://relay.example", NULL};
        struct hk_admin_exchange *x = ask(r, "POST", ways[i], headers);
        hk_admin_reply_init(&reply, 204);
        assert_int_equal(hk_sessions_open(r->sessions, x, "", &reply), HK_OK);
        take_cookie(&reply, pair, sizeof pair, rest);
        assert_int_equal(strncmp(pair, "__Host-hikyaku-0=", 17), 0);
        assert_string_equal(rest, "; Path=/; HttpOnly; SameSite=Strict; Secure");
        hk_exchange_leave(x);
    }
    struct hk_admin_exchange *x = ASK(r, "DELETE", "Host", "localhost:8189");
    hk_admin_reply_init(&reply, 204);
    hk_sessions_forget(x, &reply);
    take_cookie(&reply, pair, sizeof pair, rest);
    assert_string_equal(pair, "hikyaku-8189=");
    assert_non_null(strstr(rest, "; Max-Age=0"));
    hk_exchange_leave(x);
}

static void test_only_the_whole_cookie_of_this_port_counts(void **state)
{
    struct rig *r = *state;
    char pair[200], text[600];
    open_session(r, pair);
    assert_true(counts(r, pair));
    (void)snprintf(text, sizeof text, "a=b; %s; c=d", pair);
    assert_true(counts(r, text));
    (void)snprintf(text, sizeof text, "hikyaku-8190=%s", strchr(pair, '=') + 1);
    assert_false(counts(r, text));
    (void)snprintf(text, sizeof text, "%s0", pair);
    assert_false(counts(r, text));
    (void)snprintf(text, sizeof text, "%.*s", (int)strlen(pair) - 1, pair);
    assert_false(counts(r, text));
    (void)snprintf(text, sizeof text, "%s", pair);
    text[strlen(text) - 1] ^= 1;
    assert_false(counts(r, text));
    assert_false(counts(r, "hikyaku-8189="));
    assert_false(counts(r, "hikyaku-8189"));
    assert_false(counts(r, ";;; ="));
}

/* What a browser says of where a request comes from. */
static void test_a_cookie_counts_for_requests_of_our_own_pages(void **state)
{
    static const struct {
        const char *method, *site;
        bool origin, own;
    } rows[] = {
        {"GET", NULL, false, true},          {"GET", "same-origin", false, true},
        {"GET", "none", false, true},        {"GET", "same-site", false, false},
        {"GET", "cross-site", false, false}, {"HEAD", "none", false, true},
        {"POST", NULL, true, true},          {"POST", "same-origin", true, true},
        {"POST", NULL, false, false},        {"POST", "none", true, false},
        {"PUT", "same-site", true, false},   {"DELETE", "cross-site", true, false},
        {"DELETE", NULL, false, false},      {"PUT", "same-origin", true, true},
    };
    struct rig *r = *state;
    char pair[200];
    open_session(r, pair);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_session found;
        struct hk_admin_exchange *x = ASK(r, rows[i].method, "Host", "localhost:8189", "Cookie", pair);
        if (rows[i].site)
            assert_true(hk_exchange_add_header(x, "Sec-Fetch-Site", rows[i].site));
        if (rows[i].origin)
            assert_true(hk_exchange_add_header(x, "Origin", ORIGIN));
        bool is = hk_sessions_find(r->sessions, x, &found);
        NOTE_IF(is != rows[i].own, "row %zu\n", i);
        assert_int_equal(is, rows[i].own);
        hk_exchange_leave(x);
    }
}

/* ---- how they end ---- */

static void test_a_session_ends_when_nobody_uses_it(void **state)
{
    struct rig *r = *state;
    char pair[200];
    open_session(r, pair);
    clock_ms += HK_SESSION_IDLE_MS - 1;
    assert_true(counts(r, pair));
    clock_ms += HK_SESSION_IDLE_MS - 1; /* the call before has begun its time anew */
    assert_true(counts(r, pair));
    clock_ms += HK_SESSION_IDLE_MS;
    assert_false(counts(r, pair));
    assert_false(counts(r, pair)); /* and a refused call begins nothing */
}

static void test_a_session_that_is_used_ends_in_a_week(void **state)
{
    struct rig *r = *state;
    char pair[200];
    open_session(r, pair);
    int64_t end_ms = clock_ms + HK_SESSION_MAX_MS;
    while (clock_ms + 7 * 60 * MINUTE < end_ms) {
        clock_ms += 7 * 60 * MINUTE;
        assert_true(counts(r, pair));
    }
    clock_ms = end_ms - 1;
    assert_true(counts(r, pair));
    clock_ms = end_ms;
    assert_false(counts(r, pair));
}

static void test_a_session_that_is_closed_is_over(void **state)
{
    struct rig *r = *state;
    char pair[200], other[200];
    open_session(r, pair);
    open_session(r, other);
    hk_sessions_close(r->sessions, "of nobody");
    assert_true(counts(r, pair));
    hk_sessions_close(r->sessions, strchr(pair, '=') + 1);
    assert_false(counts(r, pair));
    assert_true(counts(r, other));
}

static void test_the_one_that_was_idle_longest_makes_room(void **state)
{
    struct rig *r = *state;
    char first[200], second[200], last[200];
    open_session(r, first);
    clock_ms++;
    open_session(r, second);
    for (int i = 2; i < HK_SESSIONS_MAX; i++) {
        clock_ms++;
        open_session(r, last);
    }
    clock_ms++;
    assert_true(counts(r, first)); /* so that the second is the oldest */
    open_session(r, last);
    assert_true(counts(r, first));
    assert_false(counts(r, second));
    assert_true(counts(r, last));
    clock_ms += HK_SESSION_IDLE_MS; /* all are over, and there is room */
    open_session(r, first);
    assert_true(counts(r, first));
    assert_false(counts(r, last));
}

/* ---- tickets ---- */

static bool takes(struct rig *r, const char *ticket, const char *site)
{
    struct hk_admin_exchange *x = ASK(r, "POST", "Host", "localhost:8189", "Origin", ORIGIN);
    if (ticket)
        assert_true(hk_exchange_add_header(x, HK_SESSION_TICKET, ticket));
    if (site)
        assert_true(hk_exchange_add_header(x, "Sec-Fetch-Site", site));
    bool is = hk_sessions_take_ticket(r->sessions, x);
    hk_exchange_leave(x);
    return is;
}

static void test_a_ticket_is_good_for_one_session(void **state)
{
    struct rig *r = *state;
    assert_false(takes(r, NULL, NULL));
    assert_false(takes(r, "", NULL));
    assert_false(takes(r, "sesam", NULL));
    assert_false(takes(r, "sesame ", NULL));
    assert_false(takes(r, "sesame", "cross-site"));
    assert_true(takes(r, "sesame", "same-origin")); /* wrong ones have not used it up */
    assert_false(takes(r, "sesame", "same-origin"));
}

static void test_without_a_ticket_none_is_right(void **state)
{
    struct rig *r = *state;
    static const char *const none[] = {NULL, ""};
    for (size_t i = 0; i < COUNT(none); i++) {
        hk_sessions_free(r->sessions);
        r->sessions = hk_sessions_new(none[i], now_ms);
        assert_non_null(r->sessions);
        assert_false(takes(r, "", NULL));
        assert_false(takes(r, "sesame", NULL));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_cookie_is_strict_and_says_nothing),
        TEST(test_only_the_whole_cookie_of_this_port_counts),
        TEST(test_a_cookie_counts_for_requests_of_our_own_pages),
        TEST(test_a_session_ends_when_nobody_uses_it),
        TEST(test_a_session_that_is_used_ends_in_a_week),
        TEST(test_a_session_that_is_closed_is_over),
        TEST(test_the_one_that_was_idle_longest_makes_room),
        TEST(test_a_ticket_is_good_for_one_session),
        TEST(test_without_a_ticket_none_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
