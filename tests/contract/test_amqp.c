/* SPDX-License-Identifier: Apache-2.0 */
/* The RabbitMQ sink against a broker that follows a script: the contract of sinks, and what each answer of a broker means. The real
 * broker is in tests/e2e/brokers.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"
#include "fake_amqp.h"
#include "fixture.h"
#include "sink/amqp/amqp.h"
#include "sink_suite.h"

static char urls[8][64];

static const char *url_to(const struct fake_broker *broker, unsigned i)
{
    (void)snprintf(urls[i], sizeof urls[i], "amqp://127.0.0.1:%d", fake_broker_port(broker));
    return urls[i];
}

static struct hk_amqp_options options_to(const char *url)
{
    return (struct hk_amqp_options){.name = "billing",
                                    .url = url,
                                    .exchange = "events",
                                    .routing_key = "{event_type}.{message_key}",
                                    .mandatory = true,
                                    .persistent = true,
                                    .allow = loopback_allowed,
                                    .n_allow = 2};
}

/* ---- the contract ---- */

static struct amqp_script quick_script, slow_script = {.mute = true}, refusing_script = {.return_every = 7};
static struct fake_broker *quick_broker, *slow_broker, *refusing_broker;

static struct hk_sink *open_to(struct hk_loop *loop, const struct fake_broker *broker, size_t window)
{
    struct hk_amqp_options o = options_to(url_to(broker, 0));
    struct hk_sink *sink = NULL;
    o.window = window;
    return hk_amqp_open(loop, &o, &sink, NULL) == HK_OK ? sink : NULL;
}

static struct hk_sink *quick(struct hk_loop *loop)
{
    return open_to(loop, quick_broker, 0);
}

static struct hk_sink *slow(struct hk_loop *loop)
{
    return open_to(loop, slow_broker, 0);
}

static struct hk_sink *narrow(struct hk_loop *loop)
{
    return open_to(loop, quick_broker, 3);
}

static struct hk_sink *refusing(struct hk_loop *loop)
{
    return open_to(loop, refusing_broker, 0);
}

/* ---- one broker, one or more messages ---- */

enum {
    MANY = 50
};

struct
try {
    struct amqp_script *script;
    struct fake_broker *broker;
    struct client client;
    struct hk_message msgs[MANY];
    char ids[MANY][16];
    struct outcome out[MANY];
};

static void begin(struct try *t, struct amqp_script *script)
{
    struct hk_err err = {.message = ""};
    memset(t, 0, sizeof *t);
    t->script = script;
    t->broker = fake_broker_start(fake_amqp_serve, script);
    client_open_loop(&t->client);
    struct hk_amqp_options o = options_to(url_to(t->broker, 1));
    enum hk_code rc = hk_amqp_open(t->client.loop, &o, &t->client.sink, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(t->ids[i], sizeof t->ids[i], "msg-%zu", i);
        t->msgs[i] = message_of("{}", 2);
        t->msgs[i].message_id = hk_str_of(t->ids[i]);
    }
}

static void end(struct try *t)
{
    client_close(&t->client);
    fake_broker_stop(t->broker);
}

static void flush(struct try *t)
{
    t->client.sink->ops->flush(t->client.sink);
}

static void send_all(struct try *t, size_t n, uint64_t timeout_ms)
{
    for (size_t i = 0; i < n; i++)
        client_send(&t->client, &t->msgs[i], timeout_ms, &t->out[i]);
    flush(t);
    client_wait(&t->client);
}

/* ---- what each answer means ---- */

struct row {
    const char *name;
    struct amqp_script script;
    enum hk_fault fault;
    bool possibly;
    const char *code, *says;
};

static const struct row rows[] = {
    {"confirmed", {0}, HK_FAULT_NONE},
    {"confirmed in frames of 4 KiB", {.frame_max = 4096}, HK_FAULT_NONE},
    {"unroutable", {.return_every = 1}, HK_FAULT_BROKER_REFUSED, .code = "312", .says = "312 NO_ROUTE"},
    {"nack", {.nack_every = 1}, HK_FAULT_BROKER_THROTTLED, true, "nack", "queue is full"},
    {"wrong password", {.login_code = 403}, HK_FAULT_BROKER_AUTH, .code = "403", .says = "ACCESS_REFUSED"},
    {"no such vhost", {.login_code = 530}, HK_FAULT_BROKER_AUTH, .code = "530"},
    {"the broker has an error of its own", {.login_code = 541}, HK_FAULT_BROKER_TRANSIENT, .code = "541"},
    {"no such log-in", {.no_plain = true}, HK_FAULT_BROKER_AUTH, .says = "PLAIN"},
    {"no such exchange",
     {.declare_code = 404},
     HK_FAULT_BROKER_REFUSED,
     .code = "404",
     .says = "no exchange 'events'"},
    {"no right to it", {.declare_code = 403}, HK_FAULT_BROKER_AUTH, .code = "403"},
    {"refused by a close of the channel",
     {.poison = "{}", .poison_code = 406},
     HK_FAULT_BROKER_REFUSED,
     .code = "406",
     .says = "words about the poison"},
    {"not allowed, by a close of the channel",
     {.poison = "{}", .poison_code = 403},
     HK_FAULT_BROKER_AUTH,
     .code = "403"},
    {"short of something", {.poison = "{}", .poison_code = 506}, HK_FAULT_BROKER_THROTTLED, true, "506"},
    {"a code that nobody knows", {.poison = "{}", .poison_code = 999}, HK_FAULT_BROKER_UNKNOWN, true, "999"},
    {"the connection ends", {.cut_at = 1}, HK_FAULT_RESET, true},
    {"the broker shuts down", {.close_at = 1}, HK_FAULT_BROKER_TRANSIENT, true, "320", "CONNECTION_FORCED"},
    {"no confirm", {.silent_from = 1}, HK_FAULT_TIMEOUT, true, .says = "not confirmed"},
    {"no greeting", {.mute = true}, HK_FAULT_TIMEOUT, .says = "not ready in time"},
    {"another version", {.garbage = "AMQP\1\1\1\1"}, HK_FAULT_PROTOCOL, .says = "does not speak AMQP 0-9-1"},
    {"another protocol",
     {.garbage = "SSH-2.0-OpenSSH_9.2\r\n"},
     HK_FAULT_PROTOCOL,
     .says = "something other than AMQP"},
    {"a frame that is too long",
     {.garbage = "\x01\x01\x01\x7f\x7f\x7f\x7f"},
     HK_FAULT_PROTOCOL,
     .says = "too long"},
};

static bool holds(const struct row *row, const struct outcome *out)
{
    return out->n_done == 1 && out->fault == row->fault && out->possibly_delivered == row->possibly &&
           strcmp(out->code, row->code ? row->code : "") == 0 &&
           (!row->says || strstr(out->error, row->says)) && out->placed == (row->fault == HK_FAULT_NONE) &&
           (out->error[0] != '\0') == (row->fault != HK_FAULT_NONE);
}

static void every_answer_means_what_the_table_says(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct amqp_script script = rows[i].script;
        struct try t;
        begin(&t, &script);
        char *payload = filled(20000);
        if (script.frame_max)
            t.msgs[0].payload = (struct hk_str){payload, 20000};
        send_all(&t, 1, 700);
        bool good = holds(&rows[i], &t.out[0]);
        NOTE_IF(!good, "%s: %s, possibly %d, code \"%s\", error \"%s\"\n", rows[i].name,
                hk_fault_name(t.out[0].fault), t.out[0].possibly_delivered, t.out[0].code, t.out[0].error);
        wrong += !good;
        end(&t);
        free(payload);
    }
    assert_int_equal(wrong, 0);
}

/* ---- several under way ---- */

static void one_bad_message_takes_nobody_along(void **state)
{
    (void)state;
    struct amqp_script script = {.poison = "poison", .poison_code = 406};
    struct try t;
    unsigned delivered = 0, rounds = 0;
    bool over[MANY] = {false};
    begin(&t, &script);
    t.msgs[17].payload = hk_str_of("poison");
    for (unsigned left = MANY; left > 0 && rounds < 5;
         rounds++) { /* as a policy does: what may work is sent again */
        for (size_t i = 0; i < MANY; i++)
            if (!over[i])
                client_send(&t.client, &t.msgs[i], 5000, &t.out[i]);
        flush(&t);
        client_wait(&t.client);
        for (size_t i = 0; i < MANY; i++) {
            bool ends = t.out[i].fault == HK_FAULT_NONE || t.out[i].fault == HK_FAULT_BROKER_REFUSED;
            assert_true(ends || (t.out[i].fault == HK_FAULT_BROKER_TRANSIENT && t.out[i].possibly_delivered));
            delivered += !over[i] && t.out[i].fault == HK_FAULT_NONE;
            left -= !over[i] && ends;
            over[i] |= ends;
        }
    }
    assert_int_equal(delivered, MANY - 1);
    assert_int_equal(t.out[17].fault, HK_FAULT_BROKER_REFUSED);
    assert_false(t.out[17].possibly_delivered);
    assert_int_equal(rounds, 2);
    end(&t);
}

static void confirms_of_several_together_are_understood(void **state)
{
    (void)state;
    struct amqp_script script = {.confirm_after = 10, .return_every = 4};
    struct try t;
    begin(&t, &script);
    send_all(&t, MANY, 5000);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(t.out[i].fault, (i + 1) % 4 ? HK_FAULT_NONE : HK_FAULT_BROKER_REFUSED);
        assert_int_equal(t.out[i].placed ? t.out[i].sequence : (int64_t)i + 1, i + 1);
    }
    end(&t);
}

static void what_was_never_sent_is_not_possibly_delivered(void **state)
{
    (void)state;
    struct amqp_script script = {.block = true, .silent_from = 1};
    struct try t;
    begin(&t, &script);
    client_send(&t.client, &t.msgs[0], 2000, &t.out[0]);
    flush(&t);
    while (script.published < 1)
        client_run_ms(&t.client, 5);
    client_run_ms(&t.client, 50); /* blocked is heard */
    const struct hk_delivery more = {.msg = &t.msgs[1], .timeout_ms = 1000};
    struct hk_err err;
    assert_int_equal(t.client.sink->ops->send(t.client.sink, &more, &err), HK_BUSY);
    client_run_ms(&t.client, 300); /* unblocked */
    client_send(&t.client, &t.msgs[1], 100, &t.out[1]);
    client_wait(&t.client);
    assert_int_equal(t.out[1].fault, HK_FAULT_TIMEOUT);
    assert_false(t.out[1].possibly_delivered); /* not flushed: it never left */
    assert_true(t.out[0].possibly_delivered);
    end(&t);
}

static void a_connection_is_shared_and_channels_are_not(void **state)
{
    (void)state;
    struct amqp_script script = {.poison = "poison", .poison_code = 403};
    struct try t;
    struct client other;
    begin(&t, &script);
    struct hk_amqp_options o = options_to(url_to(t.broker, 2));
    o.name = "other";
    other = (struct client){.loop = t.client.loop, .guard = t.client.guard};
    assert_int_equal(hk_amqp_open(other.loop, &o, &other.sink, NULL), HK_OK);
    client_send(&t.client, &t.msgs[0], 5000, &t.out[0]);
    flush(&t);
    client_wait(&t.client);
    assert_int_equal(fake_broker_connections(t.broker), 1);
    client_send(&other, &t.msgs[1], 300,
                &t.out[1]); /* this fake knows one channel only: it does not confirm the second */
    other.sink->ops->flush(other.sink);
    client_wait(&other);
    assert_int_equal(t.out[0].fault, HK_FAULT_NONE);
    assert_int_equal(fake_broker_connections(t.broker), 1);
    assert_int_equal(script.channels, 2);
    other.sink->ops->close(other.sink);
    client_send(&t.client, &t.msgs[2], 5000, &t.out[2]); /* the connection stays for those that are left */
    flush(&t);
    client_wait(&t.client);
    assert_int_equal(fake_broker_connections(t.broker), 1);
    end(&t);
}

/* ---- where it connects to ---- */

static void deliver_to(const char *url, const struct hk_cidr *allow, size_t n_allow, struct outcome *out)
{
    struct client c;
    struct hk_message msg = message_of("{}", 2);
    client_open_loop(&c);
    struct hk_amqp_options o = options_to(url);
    o.allow = allow;
    o.n_allow = n_allow;
    assert_int_equal(hk_amqp_open(c.loop, &o, &c.sink, NULL), HK_OK);
    client_send(&c, &msg, 5000, out);
    c.sink->ops->flush(c.sink);
    client_wait(&c);
    client_close(&c);
}

static void every_address_is_checked(void **state)
{
    (void)state;
    struct amqp_script script = {.mute = false};
    struct fake_broker *broker = fake_broker_start(fake_amqp_serve, &script);
    struct outcome out;
    char url[128];
    deliver_to(url_to(broker, 3), NULL, 0, &out);
    assert_int_equal(out.fault, HK_FAULT_BLOCKED);
    assert_false(out.possibly_delivered);
    (void)snprintf(url, sizeof url, "amqp://localhost:%d", fake_broker_port(broker));
    deliver_to(url, NULL, 0, &out);
    assert_int_equal(out.fault, HK_FAULT_BLOCKED);
    assert_int_equal(fake_broker_connections(broker), 0);
    fake_broker_stop(broker);
}

static void the_next_server_is_tried(void **state)
{
    (void)state;
    struct amqp_script script = {.mute = false}, no = {.login_code = 541};
    struct fake_broker *broker = fake_broker_start(fake_amqp_serve, &script);
    struct fake_broker *bad = fake_broker_start(fake_amqp_serve, &no);
    struct outcome out;
    char url[128];
    (void)snprintf(url, sizeof url, "amqp://127.0.0.1:1,127.0.0.1:%d,127.0.0.1:%d", fake_broker_port(bad),
                   fake_broker_port(broker));
    deliver_to(url, loopback_allowed, 2, &out);
    assert_int_equal(out.fault, HK_FAULT_NONE);
    fake_broker_stop(bad);
    fake_broker_stop(broker);
    deliver_to("amqp://127.0.0.1:1", loopback_allowed, 2, &out);
    assert_int_equal(out.fault, HK_FAULT_CONNECT);
    assert_false(out.possibly_delivered);
}

static void a_connection_that_ends_is_made_anew(void **state)
{
    (void)state;
    struct amqp_script script = {.cut_at = 3};
    struct try t;
    begin(&t, &script);
    for (size_t i = 0; i < 6; i++) {
        client_send(&t.client, &t.msgs[i], 10000, &t.out[i]);
        flush(&t);
        client_wait(&t.client);
        assert_int_equal(t.out[i].fault, i == 2 ? HK_FAULT_RESET : HK_FAULT_NONE);
    }
    assert_int_equal(fake_broker_connections(t.broker), 2);
    end(&t);
}

/* ---- messages that cannot be sent ---- */

static void what_amqp_cannot_carry_is_refused_unsent(void **state)
{
    (void)state;
    struct amqp_script script = {.mute = false};
    struct try t;
    char *text = filled(300);
    begin(&t, &script);
    t.msgs[0].event_type = (struct hk_str){text, 300};
    t.msgs[1].correlation_id = (struct hk_str){text, 300};
    t.msgs[2].key = (struct hk_str){text, 250};
    t.msgs[3].headers = hk_str_of("{\"CC\":\"elsewhere\"}");
    t.msgs[4].headers = hk_str_of("{\"X-A\":\"b\\r\\nc\"}");
    t.msgs[5].headers = hk_str_of("{\"hikyaku-attempt\":\"7\"}");
    t.msgs[6].headers = hk_str_of("not JSON");
    t.msgs[7].headers = hk_str_of("{\"X-A\":\"b\"}");
    send_all(&t, 8, 5000);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(t.out[i].fault, i < 7 ? HK_FAULT_INVALID_PAYLOAD : HK_FAULT_NONE);
        assert_false(t.out[i].possibly_delivered);
    }
    assert_int_equal(script.published, 1);
    end(&t);
    free(text);
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    struct amqp_script script = {.return_every = 1};
    struct try t;
    begin(&t, &script);
    t.msgs[0].headers = hk_str_of("{\"X-Auth-Token\":\"s3cret\",\"X-Tenant\":\"acme\"}");
    t.msgs[0].key = hk_str_of("k1");
    send_all(&t, 1, 5000);
    assert_null(strstr(t.out[0].request_headers, "s3cret"));
    assert_non_null(strstr(t.out[0].request_headers, "\"X-Tenant\":\"acme\""));
    assert_non_null(strstr(t.out[0].request_headers, "\"routing_key\":\"OrderCreated.k1\""));
    assert_non_null(strstr(t.out[0].response_headers, "\"code\":\"312\""));
    end(&t);
}

static void options_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "http://127.0.0.1", "amqp://",     "amqp://a:b@127.0.0.1", "amqp://h:0", "amqp://h:65536",
        "amqp://h,",        "amqp://[::1", "amqp://h/v?x=1",       "amqp://h o", "amqp://@h"};
    struct hk_loop *loop;
    struct hk_sink *sink = NULL;
    struct hk_err err;
    assert_int_equal(hk_loop_new(&loop, NULL), HK_OK);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hk_amqp_options o = options_to(bad[i]);
        NOTE_IF(hk_amqp_open(loop, &o, &sink, &err) != HK_INVALID, "%s\n", bad[i]);
        assert_int_equal(hk_amqp_open(loop, &o, &sink, &err), HK_INVALID);
        assert_non_null(strstr(err.message, "billing"));
    }
    struct hk_amqp_options o = options_to("amqp://h");
    o.routing_key = "{nobody}";
    assert_int_equal(hk_amqp_open(loop, &o, &sink, &err), HK_INVALID);
    o = options_to("amqps://h");
    o.ca_file = "/nowhere/ca.pem";
    assert_int_equal(hk_amqp_open(loop, &o, &sink, &err), HK_INVALID);
    hk_loop_free(loop);
}

static int run_contract(void)
{
    static const struct sink_maker makers[] = {
        {.name = "amqp", .quick = quick, .slow = slow, .narrow = narrow, .refusing = refusing}};
    quick_broker = fake_broker_start(fake_amqp_serve, &quick_script);
    slow_broker = fake_broker_start(fake_amqp_serve, &slow_script);
    refusing_broker = fake_broker_start(fake_amqp_serve, &refusing_script);
    int failed = sink_suite(makers, COUNT(makers));
    fake_broker_stop(quick_broker);
    fake_broker_stop(slow_broker);
    fake_broker_stop(refusing_broker);
    return failed;
}

/* "contract": the contract of all sinks. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_means_what_the_table_says),
        cmocka_unit_test(one_bad_message_takes_nobody_along),
        cmocka_unit_test(confirms_of_several_together_are_understood),
        cmocka_unit_test(what_was_never_sent_is_not_possibly_delivered),
        cmocka_unit_test(a_connection_is_shared_and_channels_are_not),
        cmocka_unit_test(every_address_is_checked),
        cmocka_unit_test(the_next_server_is_tried),
        cmocka_unit_test(a_connection_that_ends_is_made_anew),
        cmocka_unit_test(what_amqp_cannot_carry_is_refused_unsent),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(options_are_checked),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return argc > 1 ? run_contract() : cmocka_run_group_tests(tests, NULL, NULL);
}
