/* SPDX-License-Identifier: Apache-2.0 */
/* The Pub/Sub sink against a server that follows a script: the contract of sinks, what each answer means, batches with a bad message in them,
 * and tokens. Google's emulator is in tests/e2e/pubsub.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"
#include "fake_pubsub.h"
#include "fixture.h"
#include "sink/pubsub/pubsub.h"
#include "sink_suite.h"

struct trial {
    struct pubsub_script script;
    struct fake_broker *server;
    struct client client;
    char url[64];
};

static struct hk_pubsub_options options_to(const char *url)
{
    return (struct hk_pubsub_options){.name = "billing",
                                      .project = "shop",
                                      .topic = "orders",
                                      .endpoint = url,
                                      .emulator = true,
                                      .allow = loopback_allowed,
                                      .n_allow = 2};
}

static void url_to(const struct fake_broker *server, char out[64])
{
    (void)snprintf(out, 64, "http://127.0.0.1:%d", fake_broker_port(server));
}

/* `change` may be NULL. */
static void begin(struct trial *t, const struct pubsub_script *script, const struct hk_pubsub_options *change)
{
    struct hk_err err = {.message = ""};
    t->script = *script;
    t->server = fake_broker_start(fake_pubsub_serve, &t->script);
    url_to(t->server, t->url);
    struct hk_pubsub_options o = options_to(t->url);
    if (change) {
        o.emulator = change->emulator;
        o.metadata = change->emulator || change->key ? NULL : t->url;
        o.key = change->key;
        o.ordering = change->ordering;
        o.cloudevents = change->cloudevents;
    }
    client_open_loop(&t->client);
    enum hk_code rc = hk_pubsub_open(t->client.loop, &o, &t->client.sink, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static void end(struct trial *t)
{
    client_close(&t->client);
    fake_broker_stop(t->server);
}

static void flush(struct trial *t)
{
    t->client.sink->ops->flush(t->client.sink);
}

static void deliver(struct trial *t, const struct hk_message *msg, struct outcome *out)
{
    client_send(&t->client, msg, 5000, out);
    flush(t);
    client_wait(&t->client);
    assert_int_equal(out->n_done, 1);
}

/* ---- the contract ---- */

static struct pubsub_script quick_script, slow_script = {.mute = true};
static struct fake_broker *quick_server, *slow_server;

static struct hk_sink *make(struct hk_loop *loop, const struct fake_broker *server, size_t window)
{
    char url[64];
    struct hk_sink *sink = NULL;
    url_to(server, url);
    struct hk_pubsub_options o = options_to(url);
    o.window = window;
    return hk_pubsub_open(loop, &o, &sink, NULL) == HK_OK ? sink : NULL;
}

static struct hk_sink *quick(struct hk_loop *loop)
{
    return make(loop, quick_server, 0);
}

static struct hk_sink *slow(struct hk_loop *loop)
{
    return make(loop, slow_server, 0);
}

static struct hk_sink *narrow(struct hk_loop *loop)
{
    return make(loop, quick_server, 3);
}

static int run_contract(void)
{
    const struct sink_maker makers[] = {{.name = "pubsub", .quick = quick, .slow = slow, .narrow = narrow}};
    quick_server = fake_broker_start(fake_pubsub_serve, &quick_script);
    slow_server = fake_broker_start(fake_pubsub_serve, &slow_script);
    int failed = sink_suite(makers, COUNT(makers));
    fake_broker_stop(quick_server);
    fake_broker_stop(slow_server);
    return failed;
}

/* ---- what each answer means ---- */

#define ERROR(code, status, words)                                                                           \
    "{\"error\":{\"code\":" code ",\"message\":\"" words "\",\"status\":\"" status "\"}}"

struct row {
    const char *name;
    struct pubsub_script script;
    enum hk_fault fault;
    bool possibly;
    const char *code, *says;
};

static const struct row rows[] = {
    {"taken", {0}, HK_FAULT_NONE},
    {"no such topic",
     {.status = "404 Not Found", .body = ERROR("404", "NOT_FOUND", "Resource not found (resource=orders).")},
     HK_FAULT_BROKER_REFUSED,
     .code = "NOT_FOUND",
     .says = "NOT_FOUND Resource not found"},
    {"no right",
     {.status = "403 Forbidden", .body = ERROR("403", "PERMISSION_DENIED", "User not authorized")},
     HK_FAULT_BROKER_AUTH,
     .code = "PERMISSION_DENIED"},
    {"no credentials",
     {.status = "401 Unauthorized", .body = ERROR("401", "UNAUTHENTICATED", "Request is missing")},
     HK_FAULT_BROKER_AUTH,
     .code = "UNAUTHENTICATED"},
    {"too much",
     {.status = "429 Too Many Requests", .body = ERROR("429", "RESOURCE_EXHAUSTED", "Quota exceeded")},
     HK_FAULT_BROKER_THROTTLED,
     .code = "RESOURCE_EXHAUSTED"},
    {"a bad message, alone",
     {.status = "400 Bad Request", .body = ERROR("400", "INVALID_ARGUMENT", "too large")},
     HK_FAULT_BROKER_REFUSED,
     .code = "INVALID_ARGUMENT"},
    {"too large for what stands in front",
     {.status = "413 Payload Too Large", .body = "<html>"},
     HK_FAULT_BROKER_REFUSED,
     .code = "HTTP 413"},
    {"billing is off",
     {.status = "400 Bad Request", .body = ERROR("400", "FAILED_PRECONDITION", "Billing is not enabled")},
     HK_FAULT_BROKER_TRANSIENT,
     .code = "FAILED_PRECONDITION"},
    {"not now",
     {.status = "503 Service Unavailable", .body = ERROR("503", "UNAVAILABLE", "try again")},
     HK_FAULT_BROKER_TRANSIENT,
     true,
     "UNAVAILABLE"},
    {"late",
     {.status = "504 Gateway Timeout", .body = ERROR("504", "DEADLINE_EXCEEDED", "")},
     HK_FAULT_BROKER_TRANSIENT,
     true,
     "DEADLINE_EXCEEDED"},
    {"a gateway", {.status = "502 Bad Gateway", .body = ""}, HK_FAULT_BROKER_TRANSIENT, true, "HTTP 502"},
    {"somebody else", {.status = "302 Found"}, HK_FAULT_BROKER_UNKNOWN, true, "HTTP 302"},
    {"no ids",
     {.status = "200 OK", .body = "{\"ok\":true}"},
     HK_FAULT_BROKER_UNKNOWN,
     true,
     .says = "does not answer as Pub/Sub does"},
    {"an id too many",
     {.status = "200 OK", .body = "{\"messageIds\":[\"1\",\"2\"]}"},
     HK_FAULT_BROKER_UNKNOWN,
     true},
    {"the connection ends", {.cut = true}, HK_FAULT_RESET, true},
    {"no answer", {.mute = true}, HK_FAULT_TIMEOUT, true},
};

static bool run_row(const struct row *row)
{
    struct trial t;
    struct outcome out;
    struct hk_message msg = message_of("{}", 2);
    begin(&t, &row->script, NULL);
    client_send(&t.client, &msg, 3000, &out);
    flush(&t);
    client_wait(&t.client);
    bool good = out.n_done == 1 && out.fault == row->fault && out.possibly_delivered == row->possibly &&
                strcmp(out.code, row->code ? row->code : "") == 0 && !out.placed &&
                (!row->says || strstr(out.error, row->says)) &&
                (out.error[0] != '\0') == (row->fault != HK_FAULT_NONE);
    NOTE_IF(!good, "%s: %s, possibly %d, code \"%s\", error \"%s\"\n", row->name, hk_fault_name(out.fault),
            out.possibly_delivered, out.code, out.error);
    end(&t);
    return good;
}

static void every_answer_means_what_the_table_says(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        wrong += !run_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

/* ---- batches ---- */

enum {
    MANY = 100
};

/* "YmFk" is "bad". */
static const struct pubsub_script poisoned = {.poison = "\"YmFk\""};

static void send_many(struct trial *t, const struct hk_message msgs[MANY], struct outcome outs[MANY])
{
    for (size_t i = 0; i < MANY; i++)
        client_send(&t->client, &msgs[i], 10000, &outs[i]);
    flush(t);
    client_wait(&t->client);
}

static void a_bad_message_takes_no_other_along(void **state)
{
    (void)state;
    struct trial t;
    static struct hk_message msgs[MANY];
    static struct outcome outs[MANY];
    for (size_t i = 0; i < MANY; i++)
        msgs[i] = message_of(i == 17 || i == 60 ? "bad" : "good", i == 17 || i == 60 ? 3 : 4);
    begin(&t, &poisoned, NULL);
    send_many(&t, msgs, outs);
    for (size_t i = 0; i < MANY; i++) {
        bool bad = i == 17 || i == 60;
        NOTE_IF((outs[i].fault != HK_FAULT_NONE) != bad, "message %zu: %s\n", i, outs[i].error);
        assert_int_equal(outs[i].n_done, 1);
        assert_int_equal(outs[i].fault, bad ? HK_FAULT_BROKER_REFUSED : HK_FAULT_NONE);
        assert_false(outs[i].possibly_delivered);
    }
    assert_string_equal(outs[60].code, "INVALID_ARGUMENT");
    assert_int_equal(t.script.messages, MANY - 2);        /* no message twice */
    assert_in_range(t.script.requests, 3, 1 + 2 * 2 * 7); /* halves, not one by one */
    end(&t);
}

/* What Pub/Sub would refuse for its form alone is refused here, and goes into no request. */
static void what_pubsub_cannot_carry_is_not_sent(void **state)
{
    (void)state;
    static const char *const headers[] = {"{\"goog-x\":\"1\"}", "{\"message-id\":\"1\"}"};
    struct trial t;
    struct outcome out;
    char long_header[HK_HTTP_HEAD_MAX / 32 + 64];
    char *large = filled(10 * 1000 * 1000);
    begin(&t, &(struct pubsub_script){0}, NULL);
    (void)snprintf(long_header, sizeof long_header, "{\"X-Long\":\"%01200d\"}", 7);
    for (size_t i = 0; i < COUNT(headers) + 2; i++) {
        bool is_large = i == COUNT(headers) + 1;
        struct hk_message msg = message_of(is_large ? large : "{}", is_large ? 10 * 1000 * 1000 : 2);
        msg.headers = hk_str_of(i < COUNT(headers) ? headers[i] : is_large ? "{}" : long_header);
        deliver(&t, &msg, &out);
        assert_int_equal(out.fault, is_large ? HK_FAULT_TOO_LARGE : HK_FAULT_INVALID_PAYLOAD);
        assert_false(out.possibly_delivered);
    }
    assert_int_equal(t.script.requests, 0);
    free(large);
    end(&t);
}

static void order_by_key_makes_ordering_keys(void **state)
{
    (void)state;
    for (int ordering = 0; ordering < 2; ordering++) {
        struct trial t;
        struct outcome out;
        struct hk_message msg = message_of("{}", 2);
        msg.key = hk_str_of("k \"1\"");
        begin(&t, &(struct pubsub_script){0},
              &(struct hk_pubsub_options){.emulator = true, .ordering = ordering});
        deliver(&t, &msg, &out);
        assert_int_equal(out.fault, HK_FAULT_NONE);
        assert_string_equal(out.body, "messageId 1");
        assert_int_equal(strstr(t.script.last, "\"orderingKey\":\"k \\\"1\\\"\"") != NULL, ordering);
        assert_int_equal(strstr(t.script.last, "\"message-key\":\"k \\\"1\\\"\"") != NULL, !ordering);
        assert_non_null(strstr(t.script.last, "POST /v1/projects/shop/topics/orders:publish HTTP/1.1\r\n"));
        assert_null(strstr(t.script.last, "Authorization:"));
        end(&t);
    }
}

/* ---- tokens ---- */

static const struct hk_pubsub_options by_metadata = {.emulator = false};

static void one_token_carries_many_messages(void **state)
{
    (void)state;
    struct trial t;
    static struct hk_message msgs[MANY];
    static struct outcome outs[MANY];
    for (size_t i = 0; i < MANY; i++)
        msgs[i] = message_of("good", 4);
    begin(&t, &(struct pubsub_script){.token_from = 1}, &by_metadata);
    for (int round = 0; round < 3; round++) {
        send_many(&t, msgs, outs);
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(outs[i].fault, HK_FAULT_NONE);
    }
    assert_int_equal(t.script.tokens, 1);
    assert_int_equal(t.script.denied, 0);
    assert_null(strstr(outs[0].request_headers, "token-1"));
    end(&t);
}

/* In a request for each message, so that many are refused at once. */
static void a_refused_token_is_fetched_again_once(void **state)
{
    (void)state;
    struct trial t;
    static struct hk_message msgs[MANY];
    static struct outcome outs[MANY];
    for (size_t i = 0; i < MANY; i++)
        msgs[i] = message_of("good", 4);
    begin(&t, &(struct pubsub_script){.token_from = 2}, &by_metadata);
    for (size_t i = 0; i < MANY; i++) {
        client_send(&t.client, &msgs[i], 10000, &outs[i]);
        flush(&t);
    }
    client_wait(&t.client);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(outs[i].fault, HK_FAULT_NONE);
    assert_int_equal(t.script.tokens, 2);
    assert_int_equal(t.script.messages, MANY);
    end(&t);
    begin(&t, &(struct pubsub_script){.token_from = 1000}, &by_metadata); /* the second one is no better */
    deliver(&t, &msgs[0], &outs[0]);
    assert_int_equal(outs[0].fault, HK_FAULT_BROKER_AUTH);
    assert_string_equal(outs[0].code, "UNAUTHENTICATED");
    assert_int_equal(t.script.tokens, 2);
    assert_int_equal(t.script.requests, 2);
    end(&t);
}

static void a_token_that_ends_is_fetched_before(void **state)
{
    (void)state;
    struct trial t;
    struct outcome out;
    struct hk_message msg = message_of("good", 4);
    begin(&t, &(struct pubsub_script){.token_from = 1, .life_s = 1}, &by_metadata);
    for (int i = 0; i < 3; i++) {
        deliver(&t, &msg, &out);
        assert_int_equal(out.fault, HK_FAULT_NONE);
        client_run_ms(&t.client, 1100);
    }
    assert_in_range(t.script.tokens, 3, 4);
    end(&t);
}

static void without_a_token_nothing_is_sent(void **state)
{
    (void)state;
    struct trial t;
    struct outcome out;
    struct hk_message msg = message_of("good", 4);
    begin(&t, &(struct pubsub_script){.no_account = true}, &by_metadata);
    deliver(&t, &msg, &out);
    assert_int_equal(out.fault, HK_FAULT_TOKEN_REFUSED);
    assert_false(out.possibly_delivered);
    assert_non_null(strstr(out.error, "metadata server: HTTP 404"));
    assert_int_equal(t.script.requests, 0);
    end(&t);
    begin(&t, &(struct pubsub_script){0},
          &(struct hk_pubsub_options){.key = "{\"type\":\"authorized_user\",\"refresh_token\":\"hush\"}"});
    deliver(&t, &msg, &out);
    assert_int_equal(out.fault, HK_FAULT_TOKEN_REFUSED);
    assert_non_null(strstr(out.error, "only the key of a service_account"));
    assert_null(strstr(out.error, "hush"));
    assert_int_equal(t.script.requests, 0);
    end(&t);
}

/* ---- probes ---- */

static void a_probe_says_whether_it_may_publish(void **state)
{
    (void)state;

    static const struct {
        const char *status, *body;
        bool emulator;
        enum hk_code rc;
        const char *says;
    } cases[] = {
        {"200 OK", "{\"permissions\":[\"pubsub.topics.publish\"]}", false, HK_OK, "may publish"},
        {"200 OK", "{}", false, HK_DENIED, "may not publish to it (pubsub.topics.publish), or there is no"},
        {"200 OK", "[]", false, HK_UNAVAILABLE, "does not answer as Pub/Sub"},
        {"403 Forbidden", ERROR("403", "PERMISSION_DENIED", "API is off"), false, HK_DENIED, "API is off"},
        {"503 Service Unavailable", "", false, HK_UNAVAILABLE, "HTTP 503"},
        {"400 Bad Request", ERROR("400", "INVALID_ARGUMENT", "No messages"), true, HK_OK, "in an emulator"},
        {"400 Bad Request", ERROR("400", "INVALID_ARGUMENT", "odd"), false, HK_UNAVAILABLE, "odd"},
        {"404 Not Found", ERROR("404", "NOT_FOUND", "Topic not found"), true, HK_NOTFOUND, "Topic not found"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pubsub_script script = {.status = cases[i].status, .body = cases[i].body};
        struct fake_broker *server = fake_broker_start(fake_pubsub_serve, &script);
        char url[64], out[HK_PUBSUB_PROBE_MAX] = "";
        struct hk_err err = {.message = ""};
        url_to(server, url);
        struct hk_pubsub_options o = options_to(url);
        o.emulator = cases[i].emulator;
        o.metadata = url;
        enum hk_code rc = hk_pubsub_probe(&o, 5000, out, &err);
        NOTE_IF(rc != cases[i].rc, "case %zu: %s%s\n", i, out, err.message);
        assert_int_equal(rc, cases[i].rc);
        assert_non_null(strstr(rc == HK_OK ? out : err.message, cases[i].says));
        fake_broker_stop(server);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_means_what_the_table_says),
        cmocka_unit_test(a_bad_message_takes_no_other_along),
        cmocka_unit_test(what_pubsub_cannot_carry_is_not_sent),
        cmocka_unit_test(order_by_key_makes_ordering_keys),
        cmocka_unit_test(one_token_carries_many_messages),
        cmocka_unit_test(a_refused_token_is_fetched_again_once),
        cmocka_unit_test(a_token_that_ends_is_fetched_before),
        cmocka_unit_test(without_a_token_nothing_is_sent),
        cmocka_unit_test(a_probe_says_whether_it_may_publish),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return argc > 1 && strstr(argv[1], "contract") ? run_contract()
                                                   : cmocka_run_group_tests(tests, NULL, NULL);
}
