/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka sink under the contract, and what a broker may answer: against the cluster that librdkafka brings for tests. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"
#include "sink/kafka/impl.h"
#include "sink_suite.h"

enum {
    API_PRODUCE = 0
};

static rd_kafka_t *host; /* of the cluster */
static rd_kafka_mock_cluster_t *cluster;
static int silent = -1; /* a socket that listens, and nobody answers there */
static char silent_at[32];

/* ---- servers ---- */

static void start_cluster(void)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(host);
    cluster = rd_kafka_mock_cluster_new(host, 1);
    assert_non_null(cluster);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, "orders", 1, 1), 0);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, "wide", 4, 1), 0);
}

static void start_silence(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(silent >= 0);
    assert_int_equal(bind(silent, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(silent, 16), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(silent_at, sizeof silent_at, "127.0.0.1:%u", ntohs(at.sin_port));
}

static struct hk_kafka_options options(void)
{
    return (struct hk_kafka_options){.name = "orders",
                                     .brokers = rd_kafka_mock_cluster_bootstraps(cluster),
                                     .topic = "orders",
                                     .linger_ms = 1,
                                     .allow = loopback_allowed,
                                     .n_allow = 2};
}

static struct hk_sink *open_sink(struct hk_loop *loop, const struct hk_kafka_options *o)
{
    struct hk_err err = {.message = ""};
    struct hk_sink *sink = NULL;
    enum hk_code rc = hk_kafka_calls.open(loop, o, &sink, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return sink;
}

/* ---- the contract ---- */

static struct hk_sink *quick(struct hk_loop *loop)
{
    struct hk_kafka_options o = options();
    return open_sink(loop, &o);
}

static struct hk_sink *slow(struct hk_loop *loop)
{
    struct hk_kafka_options o = options();
    o.brokers = silent_at;
    return open_sink(loop, &o);
}

static struct hk_sink *narrow(struct hk_loop *loop)
{
    struct hk_kafka_options o = options();
    o.window = 3;
    return open_sink(loop, &o);
}

static void push(rd_kafka_resp_err_t code, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rd_kafka_mock_push_request_errors(cluster, API_PRODUCE, 1, code);
}

static struct hk_sink *refusing(struct hk_loop *loop)
{
    struct hk_kafka_options o = options();
    o.batch = 1;
    push(RD_KAFKA_RESP_ERR_INVALID_RECORD, 7);
    return open_sink(loop, &o);
}

static void nothing(void)
{
}

/* ---- what a broker answers ---- */

static void deliver(const struct hk_kafka_options *o, const struct hk_message *msg, uint64_t timeout_ms,
                    struct outcome *out)
{
    struct client c;
    client_open_loop(&c);
    c.sink = open_sink(c.loop, o);
    client_deliver(&c, msg, timeout_ms, out);
    client_close(&c);
    assert_int_equal(out->n_done, 1);
}

static void a_confirmed_one_says_where_it_is(void **state)
{
    (void)state;
    struct outcome out;
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    deliver(&o, &m, 10000, &out);
    assert_int_equal(out.fault, HK_FAULT_NONE);
    assert_true(out.placed && out.partition == 0 && out.sequence >= 0);
    assert_string_equal(out.error, "");
    assert_non_null(strstr(out.response_headers, "\"topic\":\"orders\",\"partition\":\"0\",\"offset\":\""));
    assert_non_null(strstr(out.request_headers, "\"message-id\":\"msg_2Lh9\""));
    assert_true(strncmp(out.address, "127.0.0.1:", 10) == 0);
}

/* As Kafka's own Java client has it: murmur2 of the key, modulo the partitions. */
static void a_key_finds_the_partition_that_java_gives_it(void **state)
{
    (void)state;

    static const struct {
        const char *key;
        int partition;
    } cases[] = {{"21", -973932308},
                 {"foobar", -790332482},
                 {"abc", 479470107},
                 {"a-little-bit-long-string", -985981536}};
    struct hk_kafka_options o = options();
    o.topic = "wide";
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct outcome out;
        struct hk_message m = message_of("{}", 2);
        m.key = hk_str_of(cases[i].key);
        deliver(&o, &m, 10000, &out);
        assert_int_equal(out.fault, HK_FAULT_NONE);
        assert_int_equal(out.partition, (int)((unsigned)cases[i].partition & 0x7fffffffu) % 4);
    }
}

static void what_a_broker_answers_is_told_in_its_words(void **state)
{
    (void)state;

    static const struct {
        rd_kafka_resp_err_t code;
        const char *name;
        enum hk_fault fault;
    } cases[] = {
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED", HK_FAULT_BROKER_AUTH},
        {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, "CLUSTER_AUTHORIZATION_FAILED",
         HK_FAULT_BROKER_AUTH},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, "INVALID_RECORD", HK_FAULT_BROKER_REFUSED},
        {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, "POLICY_VIOLATION", HK_FAULT_BROKER_REFUSED},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, "TOPIC_EXCEPTION", HK_FAULT_BROKER_REFUSED},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, "UNSUPPORTED_COMPRESSION_TYPE",
         HK_FAULT_BROKER_REFUSED},
        {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, "INVALID_TIMESTAMP", HK_FAULT_BROKER_REFUSED},
    };
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"secret\":1}", 12);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct outcome out;
        push(cases[i].code, 1);
        deliver(&o, &m, 10000, &out);
        rd_kafka_mock_clear_request_errors(cluster, API_PRODUCE);
        assert_string_equal(out.code, cases[i].name);
        assert_int_equal(out.fault, cases[i].fault);
        assert_false(out.possibly_delivered || out.placed);
        assert_string_equal(out.body, rd_kafka_err2str(cases[i].code));
        assert_non_null(strstr(out.error, out.body));
        assert_null(strstr(out.error, "secret")); /* librdkafka gives the payload for an error's text */
    }
}

/* One of a batch is too large: librdkafka reports all of them. */
static void a_batch_that_is_too_large_takes_no_small_ones_along(void **state)
{
    (void)state;
    struct client c;
    struct outcome out[20];
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    o.linger_ms = 100;
    client_open_loop(&c);
    c.sink = open_sink(c.loop, &o);
    push(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
    for (size_t i = 0; i < COUNT(out); i++)
        client_send(&c, &m, 10000, &out[i]);
    client_wait(&c);
    for (size_t i = 0; i < COUNT(out); i++)
        assert_int_equal(out[i].fault, HK_FAULT_NONE);
    /* from now on each goes by itself, and one that is refused then is too large */
    push(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
    client_deliver(&c, &m, 10000, &out[0]);
    assert_int_equal(out[0].fault, HK_FAULT_BROKER_REFUSED);
    assert_string_equal(out[0].code, "MSG_SIZE_TOO_LARGE");
    client_close(&c);
    rd_kafka_mock_clear_request_errors(cluster, API_PRODUCE);
}

static void a_fatal_error_brings_a_new_producer(void **state)
{
    (void)state;
    struct client c;
    struct outcome out[3];
    struct hk_err err;
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    client_open_loop(&c);
    c.sink = open_sink(c.loop, &o);
    struct hk_kafka_client *k = ((struct hk_kafka_sink *)c.sink)->client;
    client_deliver(&c, &m, 10000, &out[0]);
    assert_int_equal(out[0].fault, HK_FAULT_NONE);
    const struct hk_kafka_producer *before = k->usual;
    assert_int_equal(
        rd_kafka_test_fatal_error(k->usual->rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "lost"), 0);
    client_run_ms(&c, 300);
    const struct hk_delivery again = {.msg = &m, .attempt = 1, .timeout_ms = 10000};
    assert_int_equal(c.sink->ops->send(c.sink, &again, &err), HK_BUSY); /* not at once */
    client_run_ms(&c, 1100);
    client_deliver(&c, &m, 10000, &out[1]);
    assert_int_equal(out[1].fault, HK_FAULT_NONE);
    assert_non_null(k->usual);
    assert_ptr_not_equal(k->producers->next, before); /* it has gone */
    client_close(&c);
}

static void destinations_of_a_cluster_share_a_client(void **state)
{
    (void)state;
    struct client c;
    struct hk_kafka_options o = options(), other = options();
    client_open_loop(&c);
    c.sink = open_sink(c.loop, &o);
    other.name = "wide";
    other.topic = "wide";
    struct hk_sink *same = open_sink(c.loop, &other);
    other.mechanism = "PLAIN";
    other.user = "relay";
    other.password = "secret";
    struct hk_sink *unlike = open_sink(c.loop, &other);
    const struct hk_kafka_client *k = ((struct hk_kafka_sink *)c.sink)->client;
    assert_ptr_equal(((struct hk_kafka_sink *)same)->client, k);
    assert_ptr_not_equal(((struct hk_kafka_sink *)unlike)->client, k);
    same->ops->close(same);
    unlike->ops->close(unlike);
    client_close(&c);
}

/* Aborting one destination leaves what others of the cluster have under way. */
static void an_abort_is_of_one_destination(void **state)
{
    (void)state;
    struct client c;
    struct outcome out[2];
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    o.linger_ms = 800;
    client_open_loop(&c);
    struct hk_sink *one = open_sink(c.loop, &o), *two = open_sink(c.loop, &o);
    c.sink = one;
    client_send(&c, &m, 10000, &out[0]);
    c.sink = two;
    client_send(&c, &m, 10000, &out[1]);
    one->ops->abort(one);
    client_wait(&c);
    assert_int_equal(out[0].fault, HK_FAULT_LOCAL);
    assert_true(out[0].possibly_delivered);
    assert_int_equal(out[1].fault, HK_FAULT_NONE);
    one->ops->close(one);
    client_close(&c);
}

static void what_was_not_sent_is_known_after_an_abort(void **state)
{
    (void)state;
    struct client c;
    struct outcome out;
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    o.brokers = silent_at;
    client_open_loop(&c);
    c.sink = open_sink(c.loop, &o);
    client_send(&c, &m, 10000, &out);
    client_run_ms(&c, 100);
    c.sink->ops->abort(c.sink);
    client_wait(&c);
    assert_int_equal(out.fault, HK_FAULT_LOCAL);
    assert_false(out.possibly_delivered);
    client_close(&c);
}

static void an_address_that_is_not_allowed_is_not_connected_to(void **state)
{
    (void)state;
    struct outcome out;
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    o.n_allow = 0;
    deliver(&o, &m, 1000, &out);
    assert_int_equal(out.fault, HK_FAULT_BLOCKED);
    assert_non_null(strstr(out.error, "127.0.0.1"));
    assert_non_null(strstr(out.error, "\"allow\""));
}

static void what_cannot_be_a_record_is_not_sent(void **state)
{
    (void)state;
    struct outcome out;
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    o.topic = "events.{event_type}";
    m.event_type = hk_str_of("Order created!");
    deliver(&o, &m, 10000, &out);
    assert_int_equal(out.fault, HK_FAULT_INVALID_PAYLOAD);
    assert_false(out.possibly_delivered);
    assert_non_null(strstr(out.error, "events.Order created!"));
}

static void nobody_there_is_told_with_the_time_out(void **state)
{
    (void)state;
    struct outcome out;
    struct hk_kafka_options o = options();
    struct hk_message m = message_of("{\"a\":1}", 7);
    o.brokers = "127.0.0.1:1";
    deliver(&o, &m, 1000, &out);
    assert_int_equal(out.fault, HK_FAULT_CONNECT);
    assert_string_equal(out.code, "_TRANSPORT");
    assert_non_null(strstr(out.error, "refused"));
}

static void a_probe_says_what_is_there(void **state)
{
    (void)state;
    char text[HK_KAFKA_PROBE_MAX];
    struct hk_err err;
    struct hk_kafka_options o = options();
    o.topic = "wide";
    assert_int_equal(hk_kafka_calls.probe(&o, 5000, text, &err), HK_OK);
    assert_string_equal(text, "1 broker; topic wide has 4 partitions");
    o.brokers = "127.0.0.1:1";
    assert_int_equal(hk_kafka_calls.probe(&o, 1000, text, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "refused"));
    o.n_allow = 0;
    assert_int_equal(hk_kafka_calls.probe(&o, 1000, text, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "blocked"));
}

/* `test_sink_kafka`: the contract; `test_sink_kafka answers`: the rest. */
int main(int argc, char **argv)
{
    static const struct sink_maker makers[] = {{"kafka", quick, slow, narrow, slow, nothing, refusing}};
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confirmed_one_says_where_it_is),
        cmocka_unit_test(a_key_finds_the_partition_that_java_gives_it),
        cmocka_unit_test(what_a_broker_answers_is_told_in_its_words),
        cmocka_unit_test(a_batch_that_is_too_large_takes_no_small_ones_along),
        cmocka_unit_test(a_fatal_error_brings_a_new_producer),
        cmocka_unit_test(destinations_of_a_cluster_share_a_client),
        cmocka_unit_test(an_abort_is_of_one_destination),
        cmocka_unit_test(what_was_not_sent_is_known_after_an_abort),
        cmocka_unit_test(an_address_that_is_not_allowed_is_not_connected_to),
        cmocka_unit_test(what_cannot_be_a_record_is_not_sent),
        cmocka_unit_test(nobody_there_is_told_with_the_time_out),
        cmocka_unit_test(a_probe_says_what_is_there),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    start_cluster();
    start_silence();
    (void)argv;
    int failed = argc == 1 ? sink_suite(makers, COUNT(makers))
                           : cmocka_run_group_tests_name("kafka", tests, NULL, NULL);
    (void)close(silent);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(host);
    return failed;
}
