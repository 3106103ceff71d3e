/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin server answers, without a socket: health, routes, roles, requests that are meant badly. */
#include <stdbool.h>
#include <unistd.h>

#include "admin/listen.h"
#include "admin/route.h"
#include "check.h"

static int64_t now;

static int64_t clock_ms(void)
{
    return now;
}

struct rig {
    struct hk_health health;
    struct hk_metrics *metrics;
    struct hk_admin_site site;
    struct hk_admin_reply reply;
    int refreshed;
};

static const struct hk_metric_def defs[] = {{"t_total", "T.", HK_METRIC_COUNTER, 0, {{0}}, NULL, 0}};

static void refresh(void *arg)
{
    ((struct rig *)arg)->refreshed++;
}

static int set_up(void **state)
{
    static struct rig r;
    memset(&r, 0, sizeof r);
    now = 1000000;
    hk_health_init(&r.health, now);
    assert_int_equal(hk_metrics_new(defs, 1, &r.metrics, NULL), HK_OK);
    r.site = (struct hk_admin_site){
        .health = &r.health, .metrics = r.metrics, .refresh = refresh, .arg = &r, .now_ms = clock_ms};
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    hk_buf_fini(&r->reply.body);
    hk_metrics_free(r->metrics);
    return 0;
}

static unsigned ask_with(struct rig *r, struct hk_admin_request request)
{
    hk_buf_fini(&r->reply.body);
    hk_admin_answer(&r->site, &request, &r->reply);
    assert_int_equal(hk_buf_status(&r->reply.body), HK_OK);
    return r->reply.status;
}

static unsigned ask(struct rig *r, const char *method, const char *path)
{
    return ask_with(r, (struct hk_admin_request){.method = method, .path = path, .role = HK_ROLE_METRICS});
}

static void says(const struct rig *r, const char *text)
{
    assert_non_null(strstr(hk_buf_cstr(&r->reply.body), text));
}

static void be_well(struct rig *r)
{
    hk_health_turned(&r->health, now, true);
    hk_health_stored(&r->health, now, HK_OK);
}

static void test_live_is_a_loop_that_turns(void **state)
{
    struct rig *r = *state;
    assert_int_equal(ask(r, "GET", "/livez"), 200);
    says(r, "{\"status\":\"ok\"}");
    now += HK_HEALTH_LOOP_MS;
    assert_int_equal(ask(r, "GET", "/livez"), 200);
    now += 1;
    assert_int_equal(ask(r, "GET", "/livez"), 503);
    says(r, "{\"status\":\"fail\",\"why\":\"the loop does not turn\"}");
    be_well(r);
    assert_int_equal(ask(r, "GET", "/livez"), 200);
    hk_health_stored(&r->health, now, HK_UNAVAILABLE); /* restarting would not bring the store back */
    assert_int_equal(ask(r, "GET", "/livez"), 200);
}

static void test_ready_is_a_store_that_answers(void **state)
{
    struct rig *r = *state;
    assert_int_equal(ask(r, "GET", "/readyz"), 503);
    says(r, "starting");
    be_well(r);
    assert_int_equal(ask(r, "GET", "/readyz"), 200);
    hk_health_stored(&r->health, now, HK_UNAVAILABLE);
    assert_int_equal(ask(r, "GET", "/readyz"), 503);
    says(r, "the store does not answer");
    hk_health_stored(&r->health, now, HK_BUSY); /* a standby is well */
    assert_int_equal(ask(r, "GET", "/readyz"), 200);
    hk_health_stored(&r->health, now, HK_CONFLICT); /* acquires a new lane */
    assert_int_equal(ask(r, "GET", "/readyz"), 200);
    now += HK_HEALTH_STORE_MS + 1; /* a call that hangs */
    hk_health_turned(&r->health, now, true);
    assert_int_equal(ask(r, "GET", "/readyz"), 503);
    says(r, "the store does not answer");
    be_well(r);
    assert_int_equal(ask(r, "GET", "/readyz"), 200);
    now += HK_HEALTH_LOOP_MS + 1;
    assert_int_equal(ask(r, "GET", "/readyz"), 503);
    says(r, "the loop does not turn");
}

static void test_ready_ends_with_a_drain(void **state)
{
    struct rig *r = *state;
    be_well(r);
    hk_health_drains(&r->health);
    assert_int_equal(ask(r, "GET", "/readyz"), 503);
    says(r, "draining");
    assert_int_equal(ask(r, "GET", "/livez"), 200);
}

static void test_metrics_are_fresh(void **state)
{
    struct rig *r = *state;
    assert_int_equal(ask(r, "GET", "/metrics"), 200);
    assert_int_equal(r->refreshed, 1);
    assert_string_equal(r->reply.content_type, "text/plain; version=0.0.4; charset=utf-8");
    says(r, "# TYPE t_total counter\nt_total 0\n");
    assert_int_equal(ask(r, "HEAD", "/metrics"), 200);
}

static void test_whatever_else_is_asked_for_is_a_problem(void **state)
{
    struct rig *r = *state;

    static const struct {
        const char *method, *path;
        unsigned status;
    } cases[] = {
        {"GET", "/", 404},           {"GET", "", 404},           {"GET", "*", 404},
        {"GET", "/metrics/", 404},   {"GET", "/METRICS", 404},   {"GET", "//metrics", 404},
        {"GET", "/../metrics", 404}, {"GET", "/metrics\n", 404}, {"GET", "http://x/metrics", 404},
        {"GET", "\xff\xfe", 404},    {"POST", "/nowhere", 404},  {"POST", "/metrics", 405},
        {"OPTIONS", "/livez", 405},  {"DELETE", "/readyz", 405}, {"get", "/livez", 405},
        {"", "/livez", 405},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned status = ask(r, cases[i].method, cases[i].path);
        NOTE_IF(status != cases[i].status, "%s %s: %u\n", cases[i].method, cases[i].path, status);
        assert_int_equal(status, cases[i].status);
        assert_string_equal(r->reply.content_type, "application/problem+json");
        says(r, "{\"type\":\"about:blank\",\"title\":\"");
        if (status == 405)
            assert_string_equal(r->reply.allow, "GET, HEAD");
        else
            assert_null(r->reply.allow);
    }
    assert_int_equal(ask_with(r, (struct hk_admin_request){.method = "GET",
                                                           .path = "/metrics",
                                                           .has_body = true,
                                                           .role = HK_ROLE_ADMIN}),
                     413);
    assert_int_equal(r->refreshed, 0);
}

static void test_a_row_is_there_only_for_its_role(void **state)
{
    struct rig *r = *state;
    struct hk_admin_request request = {.method = "GET", .path = "/metrics", .role = HK_ROLE_NONE};
    assert_int_equal(ask_with(r, request), 404);
    request.method = "POST"; /* nor is it betrayed by a 405 */
    assert_int_equal(ask_with(r, request), 404);
    request.path = "/livez";
    request.method = "GET";
    assert_int_equal(ask_with(r, request), 200);
    request.path = "/metrics";
    request.role = HK_ROLE_ADMIN;
    assert_int_equal(ask_with(r, request), 200);
}

static void test_a_strangers_host_is_refused_on_loopback(void **state)
{
    struct rig *r = *state;

    static const struct {
        const char *host;
        unsigned status;
    } cases[] = {{"localhost", 200},
                 {"LocalHost:8189", 200},
                 {"127.0.0.1:8189", 200},
                 {"127.9.9.9", 200},
                 {"[::1]:8189", 200},
                 {"[::1]", 200},
                 {NULL, 200},
                 {"evil.example", 421},
                 {"localhost.evil.example:1", 421},
                 {"", 421},
                 {"10.0.0.1", 421},
                 {"127.0.0.1.evil.example", 421},
                 {"[fe80::1]:8189", 421},
                 {"0.0.0.0:8189", 421},
                 {"[", 421},
                 {"2130706433", 421},
                 {"127.1", 421},
                 {"[::1].evil", 421},
                 {"[::1].evil.example:8189", 421},
                 {"[::1]8189", 421},
                 {"[::1", 421},
                 {"[127.0.0.1]", 421},
                 {"[localhost]", 421},
                 {"localhost:evil", 421},
                 {"127.0.0.1:80:90", 421},
                 {"[::1]:80.evil", 421},
                 {"localhost:", 200}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_admin_request request = {
            .method = "GET", .path = "/livez", .host = cases[i].host, .loopback_only = true};
        unsigned status = ask_with(r, request);
        NOTE_IF(status != cases[i].status, "%s: %u\n", cases[i].host, status);
        assert_int_equal(status, cases[i].status);
        request.loopback_only = false;
        assert_int_equal(ask_with(r, request), 200);
    }
}

static void test_a_port_can_be_listened_on_once(void **state)
{
    (void)state;
    char address[HK_LISTEN_TEXT_MAX], again[HK_LISTEN_TEXT_MAX];
    int fd = -1, other = -1;
    struct hk_err err = {.message = ""};
    assert_int_equal(hk_listen("localhost:0", &fd, address, &err), HK_OK);
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    assert_int_not_equal(strcmp(address, "127.0.0.1:0"), 0);
    assert_int_equal(hk_listen(address, &other, again, &err), HK_BUSY);
    assert_non_null(strstr(err.message, "the port is taken"));
    assert_int_equal(close(fd), 0);
    static const char *const bad[] = {"",     "x",           "127.0.0.1",    "127.0.0.1:", "127.0.0.1:65536",
                                      "[::1", "a.example:1", "127.0.0.1:1x", "192.0.2.1:0"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(hk_listen(bad[i], &other, again, &err), HK_INVALID);
    assert_int_equal(other, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_live_is_a_loop_that_turns),
        TEST(test_ready_is_a_store_that_answers),
        TEST(test_ready_ends_with_a_drain),
        TEST(test_metrics_are_fresh),
        TEST(test_whatever_else_is_asked_for_is_a_problem),
        TEST(test_a_row_is_there_only_for_its_role),
        TEST(test_a_strangers_host_is_refused_on_loopback),
        cmocka_unit_test(test_a_port_can_be_listened_on_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
