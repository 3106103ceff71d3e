/* SPDX-License-Identifier: Apache-2.0 */
/* What those who look on make of the relay's calls, above all where it goes wrong: attempts whose fate nobody tells any more, answers that a
 * rule takes for a success, and no memory at any place: then something is left out, never shown, and nothing leaks. */
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/spans.h"
#include "failing.h"
#include "observe/log.h"
#include "relay/attempt_log.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct hk_config *config;
static struct hk_span *got[64];
static size_t n_got, n_none;
static int64_t clock_ns;

static void take(void *arg, struct hk_span *span)
{
    (void)arg;
    if (span)
        got[n_got++] = span;
    else
        n_none++;
}

static int64_t now_ns(void)
{
    return clock_ns += 1000;
}

static const struct hk_spans_options options = {
    .sampler = {.root = HK_SAMPLE_ALWAYS, .parent_based = true}, .seed = 7, .add = take, .now_ns = now_ns};

static int setup(void **state)
{
    static const char text[] =
        "destinations:\n  shop: { http: { url: \"https://[2001:db8::1]:8443/x\" } }\n"
        "  plain: { http: { url: http://shop.example/x } }\nmasks: [{ paths: [email] }]\n";
    struct hk_diags diags;
    (void)state;
    n_got = n_none = 0;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse(text, strlen(text), "test", NULL, &diags, &config), HK_OK);
    hk_diags_fini(&diags);
    return 0;
}

static void forget(void)
{
    for (size_t i = 0; i < n_got; i++)
        hk_mem_free(got[i]);
    n_got = 0;
}

static int teardown(void **state)
{
    (void)state;
    forget();
    hk_config_free(config);
    return 0;
}

struct rig {
    struct hk_spans *spans;
    struct hk_onlooker watch;
    struct hk_message message;
    struct hk_try attempt;
    char traceparent[HK_TRACEPARENT_SIZE];
};

static void rig_init(struct rig *r)
{
    memset(r, 0, sizeof *r);
    assert_int_equal(hk_spans_new(&options, config, &r->spans, NULL), HK_OK);
    hk_spans_watch(r->spans, &r->watch);
    r->message = (struct hk_message){.id = 5,
                                     .message_id = hk_str_of("m-1"),
                                     .event_type = hk_str_of("E"),
                                     .payload = hk_str_of("{\"email\":\"alice@example.org\"}"),
                                     .life = 1,
                                     .created_ms = 1700000000000};
    r->attempt =
        (struct hk_try){.message = &r->message, .destination = "shop", .n = 1, .traceparent = r->traceparent};
}

static void attempt(struct rig *r, uint32_t n, const struct hk_facts *facts)
{
    r->attempt.n = n;
    r->traceparent[0] = '\0';
    r->watch.attempt_begins(r->watch.arg, &r->attempt);
    r->watch.attempt_ended(r->watch.arg, &r->attempt, facts);
}

static void settle(struct rig *r, enum hk_settle_kind kind, bool stale)
{
    const struct hk_settle s = {.id = 5,
                                .kind = kind,
                                .due_ms = 1700000001500,
                                .reason = hk_str_of("RETRY_EXHAUSTED"),
                                .attempt = {.made = true, .started_ms = 1700000001000, .duration_ms = 100}};
    const struct hk_exchange asked = {.settles = &s, .n_settles = 1};
    const struct hk_exchanged done = {.stale = &stale};
    r->watch.exchanged(r->watch.arg, &asked, &done);
}

static const struct hk_facts refused = {.status = 409}, fine = {.status = 200};

static const struct hk_attr *attr_of(const struct hk_span *span, const char *key)
{
    for (size_t i = 0; i < span->n_attrs; i++)
        if (strcmp(span->attrs[i].key, key) == 0)
            return &span->attrs[i];
    return NULL;
}

static void a_failure_waits_for_what_was_decided(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    attempt(&r, 1, &refused);
    assert_int_equal(n_got, 0);
    settle(&r, HK_SETTLE_RETRY, false);
    assert_int_equal(n_got, 1);
    assert_true(got[0]->failed && got[0]->n_events == 2);
    assert_string_equal(got[0]->events[1].name, "hikyaku.retry");
    assert_int_equal(got[0]->events[1].attrs[1].number, 400);
    settle(&r, HK_SETTLE_RETRY, false);
    assert_int_equal(n_got, 1);
    hk_spans_free(r.spans);
}

static void what_a_broker_said_stands_in_the_span(void **state)
{
    struct rig r;
    (void)state;
    const struct hk_facts placed = {.status = 0, .placed = true, .partition = 3, .sequence = 77};
    const struct hk_facts no_route = {.fault = HK_FAULT_BROKER_REFUSED,
                                      .broker_code = hk_str_of("312"),
                                      .error = hk_str_of("312 NO_ROUTE")};
    rig_init(&r);
    attempt(&r, 1, &placed);
    assert_int_equal(n_got, 1);
    assert_int_equal(attr_of(got[0], "messaging.destination.partition.id")->number, 3);
    assert_int_equal(attr_of(got[0], "hikyaku.broker.sequence")->number, 77);
    assert_null(attr_of(got[0], "hikyaku.broker.code"));
    attempt(&r, 2, &no_route);
    settle(&r, HK_SETTLE_DEAD, false);
    assert_int_equal(n_got, 2);
    assert_true(hk_str_eq(attr_of(got[1], "hikyaku.broker.code")->text, hk_str_of("312")));
    assert_null(attr_of(got[1], "hikyaku.broker.sequence"));
    hk_spans_free(r.spans);
}

static void an_answer_that_a_rule_takes_for_a_success_is_no_failure(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    attempt(&r, 1, &refused);
    settle(&r, HK_SETTLE_SENT, false);
    assert_int_equal(n_got, 1);
    assert_true(!got[0]->failed && got[0]->n_events == 0);
    assert_null(attr_of(got[0], "error.type"));
    assert_non_null(attr_of(got[0], "http.response.status_code"));
    hk_spans_free(r.spans);
}

static void who_loses_the_lane_or_stops_still_tells_what_failed(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    attempt(&r, 1, &refused);
    r.watch.lane(r.watch.arg, HK_LANE_LOST, 1);
    assert_int_equal(n_got, 1);
    attempt(&r, 2, &refused);
    settle(&r, HK_SETTLE_RETRY, true); /* stale: nobody knows */
    assert_true(n_got == 2 && got[1]->n_events == 1);
    attempt(&r, 3, &refused);
    hk_spans_free(r.spans);
    assert_int_equal(n_got, 3);
}

static void a_retry_is_linked_and_a_message_that_arrived_is_forgotten(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    attempt(&r, 1, &refused);
    settle(&r, HK_SETTLE_RETRY, false);
    attempt(&r, 2, &fine);
    assert_true(got[1]->has_link && memcmp(got[1]->link.span_id, got[0]->trace.span_id, 8) == 0);
    assert_memory_equal(got[0]->trace.trace_id, got[1]->trace.trace_id, 16);
    attempt(&r, 3, &fine);
    assert_false(got[2]->has_link);
    r.attempt.destination = "plain"; /* another leg of the same message */
    attempt(&r, 2, &fine);
    assert_false(got[3]->has_link);
    assert_memory_equal(got[0]->trace.trace_id, got[3]->trace.trace_id, 16);
    hk_spans_free(r.spans);
}

static void addresses_are_read_from_urls(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    attempt(&r, 1, &fine);
    assert_true(hk_str_eq(attr_of(got[0], "server.address")->text, hk_str_of("2001:db8::1")));
    assert_int_equal(attr_of(got[0], "server.port")->number, 8443);
    r.attempt.destination = "plain";
    r.attempt.dest = 1;
    attempt(&r, 1, &fine);
    assert_true(hk_str_eq(attr_of(got[1], "server.address")->text, hk_str_of("shop.example")));
    assert_int_equal(attr_of(got[1], "server.port")->number, 80);
    r.attempt.dest = 0; /* not the place of that name: the configuration is another */
    attempt(&r, 1, &fine);
    assert_null(attr_of(got[2], "server.address"));
    hk_spans_free(r.spans);
}

/* With the k-th allocation failing, and all later ones as well: calls return, what is made is whole, and nothing is shown that masks
 * hide. */
static void spans_do_without_memory(void **state)
{
    const struct hk_facts leaky = {.fault = HK_FAULT_LOCAL,
                                   .error = hk_str_of("cannot send to alice@example.org")};
    (void)state;
    for (size_t k = 0;; k++) {
        struct failing f = {.fail_at = k, .for_ever = true};
        struct hk_allocator allocator = {failing_resize, failing_release, &f};
        struct rig r;
        rig_init(&r);
        hk_allocator_set(&allocator);
        f.live = 0;
        attempt(&r, 1, &leaky);
        settle(&r, HK_SETTLE_RETRY, false);
        attempt(&r, 2, &fine);
        hk_allocator_set(NULL);
        for (size_t i = 0; i < n_got; i++)
            for (size_t at = 0; at + 5 <= got[i]->used; at++)
                assert_memory_not_equal(got[i]->text + at, "alice", 5);
        assert_true(n_got + n_none <= 2);
        forget();
        n_none = 0;
        hk_spans_free(r.spans);
        if (!f.failed)
            break;
    }
}

static void the_log_of_attempts_does_without_memory(void **state)
{
    const struct hk_facts leaky = {.fault = HK_FAULT_LOCAL,
                                   .error = hk_str_of("cannot send to alice@example.org")};
    const struct hk_message m = {.id = 5,
                                 .message_id = hk_str_of("m-1"),
                                 .correlation_id = hk_str_of("c-1"),
                                 .traceparent = hk_str_of(PARENT),
                                 .event_type = hk_str_of("E"),
                                 .payload = hk_str_of("{\"email\":\"alice@example.org\"}")};
    const struct hk_settle s = {.id = 5,
                                .kind = HK_SETTLE_DEAD,
                                .message_id = m.message_id,
                                .destination = hk_str_of("shop"),
                                .attempt = {.made = true, .error = leaky.error}};
    (void)state;
    for (size_t k = 0;; k++) {
        struct failing f = {.fail_at = k, .for_ever = true};
        struct hk_allocator allocator = {failing_resize, failing_release, &f};
        struct hk_attempt_log *al = NULL;
        struct hk_log log;
        struct hk_message claimed = m;
        bool stale = false;
        char said[HK_LOG_LINE_MAX] = "";
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        hk_log_init(&log, ends[1], HK_LOG_INFO);
        assert_int_equal(hk_attempt_log_new(&log, &al, NULL), HK_OK);
        assert_int_equal(hk_attempt_log_configure(al, config, NULL), HK_OK);
        hk_allocator_set(&allocator);
        hk_attempt_log_exchanged(al, &(struct hk_exchange){.n_settles = 0},
                                 &(struct hk_exchanged){.messages = &claimed, .n_messages = 1});
        hk_attempt_log_ended(al, &m, NULL, "", &leaky, 0);
        hk_attempt_log_exchanged(al, &(struct hk_exchange){.settles = &s, .n_settles = 1},
                                 &(struct hk_exchanged){.stale = &stale});
        hk_allocator_set(NULL);
        assert_true(read(ends[0], said, sizeof said - 1) > 0);
        assert_non_null(strstr(said, "msg=\"dead letter\" message_id=m-1"));
        assert_null(strstr(said, "alice"));
        hk_attempt_log_free(al);
        hk_log_fini(&log);
        close(ends[0]);
        close(ends[1]);
        if (f.failed)
            continue;
        assert_non_null(
            strstr(said, "correlation_id=c-1 trace_id=0af7651916cd43dd8448eb211c80319c destination=shop"));
        assert_non_null(strstr(said, "error=\"cannot send to ***\""));
        break;
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_failure_waits_for_what_was_decided),
        TEST(what_a_broker_said_stands_in_the_span),
        TEST(an_answer_that_a_rule_takes_for_a_success_is_no_failure),
        TEST(who_loses_the_lane_or_stops_still_tells_what_failed),
        TEST(a_retry_is_linked_and_a_message_that_arrived_is_forgotten),
        TEST(addresses_are_read_from_urls),
        TEST(spans_do_without_memory),
        TEST(the_log_of_attempts_does_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
