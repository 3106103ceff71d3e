/* SPDX-License-Identifier: Apache-2.0 */
/* The MQTT sink against a broker that follows a script: the contract of sinks, and what each answer means. The real broker is in
 * tests/e2e/brokers.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"
#include "fake_mqtt.h"
#include "fixture.h"
#include "sink/mqtt/mqtt.h"
#include "sink_suite.h"

struct wish {
    unsigned qos;
    bool require_subscriber, retain;
    size_t window;
    const char *topic;
};

static enum hk_code open_to(struct hk_loop *loop, const struct fake_broker *broker, const struct wish *wish,
                            struct hk_sink **out, struct hk_err *err)
{
    char url[64];
    (void)snprintf(url, sizeof url, "mqtt://127.0.0.1:%d", fake_broker_port(broker));
    const struct hk_mqtt_options o = {.name = "billing",
                                      .url = url,
                                      .topic = wish->topic ? wish->topic : "events/{event_type}",
                                      .qos = wish->qos,
                                      .retain = wish->retain,
                                      .require_subscriber = wish->require_subscriber,
                                      .window = wish->window,
                                      .allow = loopback_allowed,
                                      .n_allow = 2};
    return hk_mqtt_open(loop, &o, out, err);
}

/* ---- the contract ---- */

static struct mqtt_script quick_script, slow_script = {.mute = true},
                                        refusing_script = {.refuse_every = 7, .code = 0x90};
static struct fake_broker *quick_broker, *slow_broker, *refusing_broker;

static struct hk_sink *make(struct hk_loop *loop, const struct fake_broker *broker, unsigned qos,
                            size_t window)
{
    struct hk_sink *sink = NULL;
    const struct wish wish = {.qos = qos, .window = window};
    return open_to(loop, broker, &wish, &sink, NULL) == HK_OK ? sink : NULL;
}

static struct hk_sink *quick(struct hk_loop *loop)
{
    return make(loop, quick_broker, 2, 0);
}

static struct hk_sink *slow(struct hk_loop *loop)
{
    return make(loop, slow_broker, 1, 0);
}

static struct hk_sink *narrow(struct hk_loop *loop)
{
    return make(loop, quick_broker, 1, 3);
}

static struct hk_sink *refusing(struct hk_loop *loop)
{
    return make(loop, refusing_broker, 1, 0);
}

static int run_contract(void)
{
    static const struct sink_maker makers[] = {
        {.name = "mqtt", .quick = quick, .slow = slow, .narrow = narrow, .refusing = refusing}};
    quick_broker = fake_broker_start(fake_mqtt_serve, &quick_script);
    slow_broker = fake_broker_start(fake_mqtt_serve, &slow_script);
    refusing_broker = fake_broker_start(fake_mqtt_serve, &refusing_script);
    int failed = sink_suite(makers, COUNT(makers));
    fake_broker_stop(quick_broker);
    fake_broker_stop(slow_broker);
    fake_broker_stop(refusing_broker);
    return failed;
}

/* ---- what each answer means ---- */

struct row {
    const char *name;
    struct mqtt_script script;
    struct wish wish;
    enum hk_fault fault;
    bool possibly;
    const char *code, *says;
};

static const struct row rows[] = {
    {"QoS 1", {0}, {.qos = 1}, HK_FAULT_NONE},
    {"QoS 2", {0}, {.qos = 2}, HK_FAULT_NONE},
    {"nobody has it, and that is fine", {.refuse_every = 1, .code = 0x10}, {.qos = 1}, HK_FAULT_NONE},
    {"nobody has it, QoS 1",
     {.refuse_every = 1, .code = 0x10},
     {.qos = 1, .require_subscriber = true},
     HK_FAULT_BROKER_REFUSED,
     .code = "0x10",
     .says = "No matching subscribers"},
    {"nobody has it, QoS 2",
     {.refuse_every = 1, .code = 0x10},
     {.qos = 2, .require_subscriber = true},
     HK_FAULT_BROKER_REFUSED,
     .code = "0x10"},
    {"no right",
     {.refuse_every = 1, .code = 0x87},
     {.qos = 1},
     HK_FAULT_BROKER_AUTH,
     .code = "0x87",
     .says = "0x87 Not authorized"},
    {"no right, QoS 2", {.refuse_every = 1, .code = 0x87}, {.qos = 2}, HK_FAULT_BROKER_AUTH, .code = "0x87"},
    {"quota", {.refuse_every = 1, .code = 0x97}, {.qos = 1}, HK_FAULT_BROKER_THROTTLED, .code = "0x97"},
    {"something", {.refuse_every = 1, .code = 0x80}, {.qos = 1}, HK_FAULT_BROKER_UNKNOWN, true, "0x80"},
    {"too large for the broker",
     {.maximum_packet = 20},
     {.qos = 1},
     HK_FAULT_TOO_LARGE,
     .says = "at most 20"},
    {"no QoS 2", {.maximum_qos_1 = 1}, {.qos = 2}, HK_FAULT_INVALID_PAYLOAD, .says = "QoS 1"},
    {"a topic with a wildcard", {0}, {.qos = 1, .topic = "a/#"}, HK_FAULT_INVALID_PAYLOAD, .says = "topic"},
    {"wrong password",
     {.login_code = 0x86},
     {.qos = 1},
     HK_FAULT_BROKER_AUTH,
     .code = "0x86",
     .says = "Bad User Name"},
    {"busy", {.login_code = 0x89}, {.qos = 1}, HK_FAULT_BROKER_TRANSIENT, .code = "0x89"},
    {"an older version", {.login_code = 0x84}, {.qos = 1}, HK_FAULT_PROTOCOL, .code = "0x84"},
    {"thrown out",
     {.disconnect_at = 1, .code = 0x8b},
     {.qos = 1},
     HK_FAULT_BROKER_TRANSIENT,
     true,
     "0x8b",
     "shutting down"},
    {"another protocol",
     {.garbage = "HTTP/1.1 400\r\n"},
     {.qos = 1},
     HK_FAULT_PROTOCOL,
     .says = "other than MQTT"},
    {"the connection ends", {.cut_at = 1}, {.qos = 1}, HK_FAULT_RESET, true},
    {"no answer", {.silent_from = 1}, {.qos = 1}, HK_FAULT_TIMEOUT, true, .says = "not confirmed"},
    {"no greeting", {.mute = true}, {.qos = 1}, HK_FAULT_TIMEOUT, .says = "not ready in time"},
};

static bool holds(const struct row *row, const struct outcome *out)
{
    return out->n_done == 1 && out->fault == row->fault && out->possibly_delivered == row->possibly &&
           strcmp(out->code, row->code ? row->code : "") == 0 &&
           (!row->says || strstr(out->error, row->says)) && out->placed == (row->fault == HK_FAULT_NONE) &&
           (out->error[0] != '\0') == (row->fault != HK_FAULT_NONE);
}

static bool run_row(const struct row *row)
{
    struct mqtt_script script = row->script;
    struct fake_broker *broker = fake_broker_start(fake_mqtt_serve, &script);
    struct client c;
    struct outcome out;
    struct hk_message msg = message_of("{}", 2);
    client_open_loop(&c);
    assert_int_equal(open_to(c.loop, broker, &row->wish, &c.sink, NULL), HK_OK);
    client_send(&c, &msg, 1500, &out);
    c.sink->ops->flush(c.sink);
    client_wait(&c);
    bool good = holds(row, &out);
    NOTE_IF(!good, "%s: %s, possibly %d, code \"%s\", error \"%s\"\n", row->name, hk_fault_name(out.fault),
            out.possibly_delivered, out.code, out.error);
    client_close(&c);
    fake_broker_stop(broker);
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

static void no_more_are_under_way_than_the_broker_allows(void **state)
{
    (void)state;

    enum {
        N = 50
    };
    struct mqtt_script script = {.receive_max = 5, .hold = 5};
    struct fake_broker *broker = fake_broker_start(fake_mqtt_serve, &script);
    static struct outcome out[N];
    struct client c, other;
    struct hk_message msg = message_of("{}", 2);
    const struct wish wish = {.qos = 1};
    client_open_loop(&c);
    assert_int_equal(open_to(c.loop, broker, &wish, &c.sink, NULL), HK_OK);
    other = c; /* a second destination on the same connection: the broker's bound is for both */
    assert_int_equal(open_to(c.loop, broker, &(struct wish){.qos = 1, .topic = "other"}, &other.sink, NULL),
                     HK_OK);
    for (size_t i = 0; i < N; i++) {
        struct hk_sink *mine = c.sink;
        c.sink = i % 2 ? other.sink : mine;
        client_send(&c, &msg, 10000, &out[i]);
        c.sink = mine;
    }
    c.sink->ops->flush(c.sink);
    other.sink->ops->flush(other.sink);
    client_wait(&c);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(out[i].fault, HK_FAULT_NONE);
    assert_int_equal(script.most, 5);
    assert_int_equal(fake_broker_connections(broker), 1);
    other.sink->ops->close(other.sink);
    client_close(&c);
    fake_broker_stop(broker);
}

/* "contract": the contract of all sinks. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_means_what_the_table_says),
        cmocka_unit_test(no_more_are_under_way_than_the_broker_allows),
    };
    (void)argv;
    (void)signal(SIGPIPE, SIG_IGN);
    return argc > 1 ? run_contract() : cmocka_run_group_tests(tests, NULL, NULL);
}
