/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics keeps the rules for names, and the watcher counts what the relay tells. Also what the service manager
 * is told. */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hikyaku/policy.h>

#include "base/str.h"
#include "check.h"
#include "daemon/meter_watch.h"
#include "daemon/meters.h"
#include "daemon/service.h"

/* ---- the table ---- */

static bool ends(const char *s, const char *with)
{
    size_t n = strlen(s), m = strlen(with);
    return n >= m && strcmp(s + n - m, with) == 0;
}

static void test_names_keep_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < HK_NMETERS; i++) {
        const struct hk_metric_def *d = &hk_meters[i];
        assert_non_null(d->name);
        NOTE_IF(strncmp(d->name, "hikyaku_", 8) != 0, "%s\n", d->name);
        assert_int_equal(strncmp(d->name, "hikyaku_", 8), 0);
        assert_int_equal(strspn(d->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(d->name));
        assert_int_equal(ends(d->name, "_total"), d->type == HK_METRIC_COUNTER);
        assert_int_equal(d->decimals > 0, ends(d->name, "_seconds"));
        assert_int_equal(d->type == HK_METRIC_HISTOGRAM, d->n_bounds > 0);
        assert_true(ends(d->help, "."));
        assert_null(strpbrk(d->help, "\n\\"));
        assert_false(d->labels[1].name && !d->labels[1].values); /* destinations stand first */
        for (size_t j = 1; j < d->n_bounds; j++)
            assert_true(d->bounds[j - 1] < d->bounds[j]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(hk_meters[j].name, d->name);
    }
}

static void test_every_reason_of_a_relay_has_a_value_of_its_own(void **state)
{
    (void)state;
    const char *const *words = hk_meters[HK_METER_DEAD].labels[1].values;
    const char *name = NULL;
    size_t other = hk_meter_reason(hk_str_of("MY_OWN"));
    assert_string_equal(words[other], "other");
    for (size_t i = 0; (name = hk_reason_name(i)) != NULL; i++) {
        if (strcmp(name, "HTTP_nnn") == 0)
            continue;
        size_t at = hk_meter_reason(hk_str_of(name));
        bool known = strcmp(words[at], name) == 0;
        bool only_execute = strstr(hk_reason_rule(i), "hk_execute only") != NULL;
        NOTE_IF(known == only_execute, "%s\n", name);
        assert_int_not_equal(known, only_execute);
    }
    assert_string_equal(words[hk_meter_reason(hk_str_of("HTTP_302"))], "HTTP_3xx");
    assert_string_equal(words[hk_meter_reason(hk_str_of("HTTP_422"))], "HTTP_4xx");
    assert_string_equal(words[hk_meter_reason(hk_str_of("HTTP_599"))], "HTTP_5xx");
    static const char *const strange[] = {"HTTP_200", "HTTP_9",    "HTTP_4222", "http_404",
                                          "",         "HTTP_4\"}", "\xff"};
    for (size_t i = 0; i < COUNT(strange); i++)
        assert_true(hk_meter_reason(hk_str_of(strange[i])) == other ||
                    strcmp(words[hk_meter_reason(hk_str_of(strange[i]))], "HTTP_4xx") == 0);
}

/* ---- the watcher ---- */

struct rig {
    struct hk_config *config;
    struct hk_log log;
    struct hk_part_env env;
    struct hk_metrics *m;
    struct hk_health health;
    struct hk_meter_watch *w;
    struct hk_onlooker look;
};

static struct hk_config *config_of(const char *text)
{
    struct hk_config *c = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse(text, strlen(text), "test.yaml", NULL, &diags, &c), HK_OK);
    hk_diags_fini(&diags);
    return c;
}

static int set_up(void **state)
{
    static struct rig r;
    memset(&r, 0, sizeof r);
    r.config = config_of("relay: { concurrency: 4, batch: 4 }\n"
                         "destinations: { shop: { null: {} }, web: { null: {} } }\n");
    r.env.config = r.config;
    r.env.log = &r.log;
    hk_health_init(&r.health, 1);
    assert_int_equal(hk_metrics_new(hk_meters, HK_NMETERS, &r.m, NULL), HK_OK);
    assert_int_equal(hk_meter_watch_new(&r.env, r.m, &r.health, &r.w, NULL), HK_OK);
    hk_meter_watch_look(r.w, &r.look);
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    hk_meter_watch_free(r->w);
    hk_metrics_free(r->m);
    hk_config_free(r->config);
    return 0;
}

static void shows(struct rig *r, const char *line)
{
    struct hk_buf out;
    char whole[256];
    hk_buf_init(&out, (size_t)1 << 20);
    hk_metrics_write(r->m, &out);
    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    bool found = strstr(hk_buf_cstr(&out), whole) != NULL;
    NOTE_IF(!found, "no %s\n", line);
    hk_buf_fini(&out);
    assert_true(found);
}

static void lacks(struct rig *r, const char *part)
{
    struct hk_buf out;
    hk_buf_init(&out, (size_t)1 << 20);
    hk_metrics_write(r->m, &out);
    bool found = strstr(hk_buf_cstr(&out), part) != NULL;
    hk_buf_fini(&out);
    assert_false(found);
}

static void tried(struct rig *r, int64_t id, uint32_t slot, int64_t created_ms)
{
    struct hk_message message = {.id = id, .created_ms = created_ms};
    struct hk_try attempt = {.message = &message, .destination = "shop", .slot = slot};
    struct hk_facts facts = {.status = 200};
    r->look.attempt_begins(r->look.arg, &attempt);
    shows(r, "hikyaku_in_flight 1");
    r->look.attempt_ended(r->look.arg, &attempt, &facts);
    shows(r, "hikyaku_in_flight 0");
}

static void settle(struct rig *r, const struct hk_settle *settles, size_t n, bool stale, int64_t now_ms)
{
    bool is_stale[8] = {stale, stale, stale, stale, stale, stale, stale, stale};
    struct hk_exchange asked = {.settles = settles, .n_settles = n};
    struct hk_exchanged done = {.now_ms = now_ms, .stale = is_stale};
    assert_true(n <= COUNT(is_stale));
    r->look.exchanged(r->look.arg, &asked, &done);
}

static void test_latency_runs_from_insert_to_settle(void **state)
{
    struct rig *r = *state;
    for (int64_t id = 1; id <= 5; id++)
        tried(r, id, (uint32_t)id % 4, 1000 * id);
    struct hk_settle s[5];
    for (int i = 0; i < 5; i++)
        s[i] = (struct hk_settle){.id = i + 1, .kind = HK_SETTLE_SENT, .destination = hk_str_of("shop")};
    settle(r, s, 5, false, 5250); /* 4250, 3250, 2250, 1250 and 250 ms */
    shows(r, "hikyaku_insert_to_ack_seconds_sum{destination=\"shop\"} 11.25");
    shows(r, "hikyaku_insert_to_ack_seconds_bucket{destination=\"shop\",le=\"0.25\"} 1");
    shows(r, "hikyaku_insert_to_ack_seconds_count{destination=\"shop\"} 5");
    shows(r, "hikyaku_messages_sent_total{destination=\"shop\"} 5");
    shows(r, "hikyaku_attempts_total{destination=\"shop\",outcome=\"success\",class=\"none\"} 5");
    shows(r, "hikyaku_attempt_duration_seconds_count{destination=\"shop\"} 5");
    settle(r, s, 1, false, 9000); /* nobody knows when it was written: counted, not measured */
    shows(r, "hikyaku_messages_sent_total{destination=\"shop\"} 6");
    shows(r, "hikyaku_insert_to_ack_seconds_count{destination=\"shop\"} 5");
    tried(r, 6, 100000, 8000); /* a slot that nobody reckoned with; a clock that went back */
    s[0].id = 6;
    settle(r, s, 1, false, 7000);
    shows(r, "hikyaku_insert_to_ack_seconds_count{destination=\"shop\"} 6");
    shows(r, "hikyaku_insert_to_ack_seconds_sum{destination=\"shop\"} 11.25");
}

/* Ids that collide, and far more than fit: nothing is mixed up, and the table never fills. */
static void test_what_is_never_settled_is_forgotten(void **state)
{
    struct rig *r = *state;
    for (int64_t id = 1; id <= 5000; id++) {
        tried(r, id * 1024, 0, 0);
        if (id % 2)
            continue;
        struct hk_settle s = {.id = id * 1024, .kind = HK_SETTLE_SENT, .destination = hk_str_of("shop")};
        settle(r, &s, 1, false, 10);
    }
    shows(r, "hikyaku_insert_to_ack_seconds_count{destination=\"shop\"} 2500");
    shows(r, "hikyaku_insert_to_ack_seconds_sum{destination=\"shop\"} 25");
}

/* Many that wait for their settles share places in the table; those that leave leave no gap. */
static void test_many_in_hand_are_all_found(void **state)
{
    struct rig *r = *state;

    enum {
        N = 500
    };

    for (int64_t i = 0; i < N; i++)
        tried(r, i * 7919 + 1, 0, i);
    for (int64_t i = 0; i < N; i++) {
        int64_t which = i * 293 % N;
        struct hk_settle s = {
            .id = which * 7919 + 1, .kind = HK_SETTLE_SENT, .destination = hk_str_of("shop")};
        settle(r, &s, 1, false, which + 4);
    }
    shows(r, "hikyaku_insert_to_ack_seconds_count{destination=\"shop\"} 500");
    shows(r, "hikyaku_insert_to_ack_seconds_sum{destination=\"shop\"} 2");
}

static void test_outcomes_are_told_apart(void **state)
{
    struct rig *r = *state;
    const struct hk_settle s[] = {
        {.id = 1,
         .kind = HK_SETTLE_RETRY,
         .destination = hk_str_of("web"),
         .attempt = {.made = true, .failure_class = HK_CLASS_TRANSIENT, .possibly_delivered = true}},
        {.id = 2,
         .kind = HK_SETTLE_DEAD,
         .destination = hk_str_of("web"),
         .reason = hk_str_of("HTTP_422"),
         .attempt = {.made = true, .failure_class = HK_CLASS_PERMANENT}},
        {.id = 3,
         .kind = HK_SETTLE_DEAD,
         .destination = hk_str_of("nobody\"}\n"),
         .reason = hk_str_of("UNKNOWN_DESTINATION")},
        {.id = 4, .kind = HK_SETTLE_RELEASE, .destination = hk_str_of("web")},
    };
    settle(r, s, COUNT(s), false, 1);
    shows(r, "hikyaku_attempts_total{destination=\"web\",outcome=\"failure\",class=\"transient\"} 1");
    shows(r, "hikyaku_attempts_total{destination=\"web\",outcome=\"failure\",class=\"permanent\"} 1");
    shows(r, "hikyaku_retries_total{destination=\"web\"} 1");
    shows(r, "hikyaku_possibly_delivered_total{destination=\"web\"} 1");
    shows(r, "hikyaku_dead_letters_total{destination=\"web\",reason=\"HTTP_4xx\"} 1");
    shows(r, "hikyaku_dead_letters_total{destination=\"other\",reason=\"UNKNOWN_DESTINATION\"} 1");
    shows(r, "hikyaku_settles_total{kind=\"dead\"} 2");
    shows(r, "hikyaku_settles_total{kind=\"release\"} 1");
    lacks(r, "hikyaku_attempts_total{destination=\"other\""); /* none was made */
    settle(r, s, COUNT(s), true, 1);
    shows(r, "hikyaku_retries_total{destination=\"web\"} 1"); /* stale ones changed nothing */
}

static void test_the_store_and_its_troubles(void **state)
{
    struct rig *r = *state;
    struct hk_poll poll = {.changed = true};
    r->look.store_called(r->look.arg, HK_ACT_POLL, HK_OK, 900);
    r->look.polled(r->look.arg, &poll);
    r->look.store_called(r->look.arg, HK_ACT_EXCHANGE, HK_UNAVAILABLE, 20000000);
    r->look.lane(r->look.arg, HK_LANE_ACQUIRED, 7);
    shows(r, "hikyaku_store_call_duration_seconds_bucket{call=\"poll\",le=\"0.001\"} 1");
    shows(r, "hikyaku_store_call_duration_seconds_sum{call=\"exchange\"} 20");
    shows(r, "hikyaku_store_errors_total{call=\"exchange\",code=\"unavailable\"} 1");
    shows(r, "hikyaku_polls_total{result=\"changed\"} 1");
    shows(r, "hikyaku_lane_held 1");
    r->look.lane(r->look.arg, HK_LANE_LOST, 7);
    shows(r, "hikyaku_lane_held 0");
    shows(r, "hikyaku_lane_events_total{event=\"lost\"} 1");
    hk_health_turned(&r->health, 1, true);
    assert_string_equal(hk_health_ready(&r->health, 2), "the store does not answer");
}

static void test_reloads_bring_other_destinations(void **state)
{
    struct rig *r = *state;
    struct hk_config *before = r->config;
    r->config =
        config_of("relay: { concurrency: 9 }\ndestinations: { shop: { null: {} }, fresh: { null: {} } }\n");
    r->env.config = r->config;
    hk_meter_watch_reloaded(r->w);
    hk_config_free(before);
    shows(r, "hikyaku_retries_total{destination=\"fresh\"} 0");
    shows(r, "hikyaku_concurrency_limit 9");
    shows(r, "hikyaku_reloads_total 1");
    lacks(r, "\"web\"");
    r->log.dropped = 3;
    hk_meter_watch_tick(r->w);
    shows(r, "hikyaku_log_lines_dropped_total 3");
}

/* ---- the service manager ---- */

static void test_who_is_watched(void **state)
{
    (void)state;
    assert_int_equal(hk_service_watchdog_ms("30000000", NULL, 42), 30000);
    assert_int_equal(hk_service_watchdog_ms("30000000", "42", 42), 30000);
    assert_int_equal(hk_service_watchdog_ms("30000000", "41", 42), 0);
    assert_int_equal(hk_service_watchdog_ms("30000000", "x", 42), 0);
    assert_int_equal(hk_service_watchdog_ms(NULL, NULL, 42), 0);
    assert_int_equal(hk_service_watchdog_ms("-1", NULL, 42), 0);
}

static void check_socket(const char *where, const struct sockaddr_un *at, socklen_t len)
{
    struct hk_service service;
    char got[64] = "";
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)at, len), 0);
    assert_int_equal(hk_service_open(&service, where, NULL), HK_OK);
    hk_service_tell(&service, "READY=1");
    assert_int_equal(recv(fd, got, sizeof got, 0), 7);
    assert_string_equal(got, "READY=1");
    for (int i = 0; i < 10000; i++) /* nobody reads: it does not block */
        hk_service_tell(&service, "WATCHDOG=1");
    assert_int_equal(close(fd), 0);
    hk_service_tell(&service, "WATCHDOG=1"); /* nobody is there: no signal */
    hk_service_close(&service);
}

static void test_both_kinds_of_sockets(void **state)
{
    (void)state;
    char folder[] = "/tmp/hikyaku-service-XXXXXX", where[100];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    assert_non_null(mkdtemp(folder));
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s/notify", folder);
    assert_true(n > 0);
    (void)snprintf(where, sizeof where, "%s/notify", folder);
    check_socket(where, &at, sizeof at);
    assert_int_equal(unlink(where), 0);
    assert_int_equal(rmdir(folder), 0);
    n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "hikyaku-test-%ld", (long)getpid());
    at.sun_path[0] = '\0';
    (void)snprintf(where, sizeof where, "@hikyaku-test-%ld", (long)getpid());
    check_socket(where, &at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

static void test_other_sockets_are_refused(void **state)
{
    (void)state;
    struct hk_service service;
    char long_name[300];
    memset(long_name, '/', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(hk_service_open(&service, NULL, NULL), HK_OK);
    assert_int_equal(service.fd, -1);
    hk_service_tell(&service, "READY=1");
    assert_int_equal(hk_service_open(&service, "vsock:2:3", NULL), HK_INVALID);
    assert_int_equal(hk_service_open(&service, "/", NULL), HK_INVALID);
    assert_int_equal(hk_service_open(&service, long_name, NULL), HK_INVALID);
    assert_int_equal(hk_service_open(&service, "/nowhere/at/all", NULL), HK_UNAVAILABLE);
    assert_int_equal(service.fd, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_keep_the_rules),
        cmocka_unit_test(test_every_reason_of_a_relay_has_a_value_of_its_own),
        TEST(test_latency_runs_from_insert_to_settle),
        TEST(test_what_is_never_settled_is_forgotten),
        TEST(test_many_in_hand_are_all_found),
        TEST(test_outcomes_are_told_apart),
        TEST(test_the_store_and_its_troubles),
        TEST(test_reloads_bring_other_destinations),
        cmocka_unit_test(test_who_is_watched),
        cmocka_unit_test(test_both_kinds_of_sockets),
        cmocka_unit_test(test_other_sockets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
