/* SPDX-License-Identifier: Apache-2.0 */
/* A message as a record of Kafka, and librdkafka's errors as faults. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "sink/kafka/record.h"
#include "sink/kafka/verdict.h"

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static struct hk_message message(void)
{
    return (struct hk_message){.id = 1,
                               .message_id = hk_str_of("m-1"),
                               .destination = hk_str_of("shop"),
                               .event_type = hk_str_of("OrderCreated"),
                               .key = hk_str_of("k7"),
                               .correlation_id = hk_str_of("c-1"),
                               .traceparent = hk_str_of(TRACE),
                               .payload = hk_str_of("{}"),
                               .created_ms = INT64_C(1794731400250),
                               .life = 1};
}

/* All headers as people see them; or "! " and why there is no record. */
static const char *made(const char *topic, const char *source, const struct hk_message *m, char out[4096])
{
    struct hk_kafka_record record;
    struct hk_err err = {.message = ""};
    struct hk_buf shown;
    hk_buf_init(&shown, 4000);
    hk_kafka_record_init(&record);
    enum hk_code rc = hk_kafka_record_build(&record, &(struct hk_kafka_shape){topic, source}, m, 2, &err);
    if (rc == HK_OK)
        hk_kafka_record_show(&record, &shown);
    (void)snprintf(out, 4096, "%s%s", rc == HK_OK ? record.topic : "! ",
                   rc == HK_OK ? hk_buf_cstr(&shown) : err.message);
    assert_true(rc == HK_OK || rc == HK_INVALID);
    hk_kafka_record_fini(&record);
    hk_buf_fini(&shown);
    return out;
}

static void a_record_says_what_the_message_is(void **state)
{
    (void)state;
    char text[4096];
    struct hk_message m = message();
    assert_string_equal(
        made("orders", NULL, &m, text),
        "orders{\"message-id\":\"m-1\",\"event-type\":\"OrderCreated\",\"correlation-id\":\"c-1\","
        "\"traceparent\":\"" TRACE "\",\"content-type\":\"application/json\",\"hikyaku-attempt\":\"2\"}");
    assert_string_equal(
        made("orders", "/shop", &m, text),
        "orders{\"correlation-id\":\"c-1\",\"traceparent\":\"" TRACE
        "\",\"content-type\":\"application/json\",\"hikyaku-attempt\":\"2\",\"ce_specversion\":\"1.0\","
        "\"ce_id\":\"m-1\",\"ce_source\":\"/shop\",\"ce_type\":\"OrderCreated\","
        "\"ce_time\":\"2026-11-15T08:30:00.250Z\",\"ce_partitionkey\":\"k7\",\"ce_traceparent\":\"" TRACE
        "\"}");
    m = (struct hk_message){.message_id = hk_str_of("m-1"),
                            .content_type = hk_str_of("text/plain"),
                            .traceparent = hk_str_of("junk"),
                            .idempotency_key = hk_str_of("i-1")};
    assert_string_equal(
        made("t", NULL, &m, text),
        "t{\"message-id\":\"m-1\",\"idempotency-key\":\"i-1\",\"content-type\":\"text/plain\",\"hikyaku-attempt\":\"2\"}");
    assert_string_equal(made("t", "/shop", &m, text), "! a CloudEvent needs an event_type");
}

static void headers_of_the_message_go_along(void **state)
{
    (void)state;
    char text[4096];
    struct hk_message m = message();
    m.traceparent = hk_str_of("");
    m.headers = hk_str_of(
        "{\"X-Tenant\":\"acme\",\"Authorization\":\"Bearer x\",\"empty\":\"\",\":timeout\":\"90s\"}");
    (void)made("orders", NULL, &m, text);
    assert_non_null(strstr(text, ",\"X-Tenant\":\"acme\",\"Authorization\":\"***\",\"empty\":\"\"}"));

    static const struct {
        const char *headers, *wrong;
    } cases[] = {
        {"[]", "! headers: must be a JSON object of strings"},
        {"{\"a\":1}", "! headers: the value of \"a\" must be a string"},
        {"{\"\":\"x\"}", "! headers: \"\" is not for a message to set"},
        {"{\"Message-Id\":\"forged\"}", "! headers: \"Message-Id\" is not for a message to set"},
        {"{\"ce_id\":\"forged\"}", "! headers: \"ce_id\" is not for a message to set"},
        {"{\":url\":\"https://x.example/\"}", "! headers: \":url\" is not for a message to set"},
        {"{\":timeout\":\"soon\"}", "! headers: :timeout is not a duration such as 90s"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        m.headers = hk_str_of(cases[i].headers);
        assert_string_equal(made("orders", NULL, &m, text), cases[i].wrong);
    }
}

static void too_many_headers_are_refused(void **state)
{
    (void)state;
    char text[4096], headers[4096] = "{";
    struct hk_message m = message();
    for (size_t i = 0; i < 100; i++)
        (void)snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\"h%zu\":\"\"",
                       i ? "," : "", i);
    (void)snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "}");
    m.headers = hk_str_of(headers);
    assert_string_equal(made("orders", NULL, &m, text), "! headers: more than 64");
}

static void a_topic_may_depend_on_the_message(void **state)
{
    (void)state;

    static const struct {
        const char *topic, *event_type, *made;
    } cases[] = {
        {"events.{event_type}", "OrderCreated", "events.OrderCreated{"},
        {"{destination}-{message_key}", "x", "shop-k7{"},
        {"{event_type}", "", "! the topic \"\" of this message is empty"},
        {"{event_type}", "..", "! the topic \"..\" of this message is no name"},
        {"x.{event_type}", "a b",
         "! the topic \"x.a b\" of this message may hold letters, digits, '.', '_' and '-' only"},
        {"x.{event_type}", "{destination}",
         "! the topic \"x.{destination}\" of this message may hold"}, /* not twice */
        {"x.{event_type}", "\xe6\xb3\xa8", "! the topic"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[4096], longer[400];
        struct hk_message m = message();
        m.event_type = hk_str_of(cases[i].event_type);
        assert_int_equal(strncmp(made(cases[i].topic, NULL, &m, text), cases[i].made, strlen(cases[i].made)),
                         0);
        memset(longer, 'x', sizeof longer);
        m.event_type = (struct hk_str){longer, sizeof longer};
        if (strstr(cases[i].topic, "{event_type}"))
            assert_non_null(strstr(made(cases[i].topic, NULL, &m, text), "longer than 249"));
    }
}

/* docs/kafka.md has this table. */
static void each_error_has_its_fault(void **state)
{
    (void)state;
    const rd_kafka_msg_status_t no = RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
                                maybe = RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED;

    const struct {
        rd_kafka_resp_err_t code;
        rd_kafka_msg_status_t status;
        enum hk_fault fault;
        bool possibly;
    } cases[] = {
        {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_MSG_STATUS_PERSISTED, HK_FAULT_NONE, false},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, no, HK_FAULT_BROKER_TRANSIENT, false},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, maybe, HK_FAULT_TIMEOUT, true},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, no, HK_FAULT_BROKER_TRANSIENT, false},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, no, HK_FAULT_BROKER_TRANSIENT, true},
        {RD_KAFKA_RESP_ERR__PURGE_QUEUE, no, HK_FAULT_BROKER_TRANSIENT, false},
        {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, maybe, HK_FAULT_BROKER_TRANSIENT, true},
        {RD_KAFKA_RESP_ERR__FATAL, no, HK_FAULT_BROKER_TRANSIENT, true},
        {RD_KAFKA_RESP_ERR__QUEUE_FULL, no, HK_FAULT_BROKER_THROTTLED, false},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, no, HK_FAULT_BROKER_AUTH, false},
        {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, no, HK_FAULT_BROKER_AUTH, false},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, no, HK_FAULT_BROKER_REFUSED, false},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, no, HK_FAULT_BROKER_REFUSED, false},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, no, HK_FAULT_BROKER_REFUSED, false},
        {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, no, HK_FAULT_BROKER_REFUSED, false},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, no, HK_FAULT_BROKER_REFUSED, false},
        {RD_KAFKA_RESP_ERR_UNKNOWN, no, HK_FAULT_BROKER_UNKNOWN, true},
        {(rd_kafka_resp_err_t)9999, no, HK_FAULT_BROKER_UNKNOWN, true},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_kafka_verdict v = hk_kafka_judge(cases[i].code, cases[i].status);
        assert_int_equal(v.fault, cases[i].fault);
        assert_int_equal(v.possibly_delivered, cases[i].possibly);
    }
}

static void what_the_client_meets_says_why_a_message_timed_out(void **state)
{
    (void)state;

    static const struct {
        rd_kafka_resp_err_t code;
        const char *text;
        enum hk_fault fault;
    } cases[] = {
        {RD_KAFKA_RESP_ERR__AUTHENTICATION, "SASL authentication error", HK_FAULT_BROKER_AUTH},
        {RD_KAFKA_RESP_ERR__SSL, "certificate verify failed: self-signed", HK_FAULT_TLS_VERIFY},
        {RD_KAFKA_RESP_ERR__SSL, "Disconnected: connecting to a PLAINTEXT broker listener?", HK_FAULT_TLS},
        {RD_KAFKA_RESP_ERR__RESOLVE, "Failed to resolve", HK_FAULT_DNS},
        {RD_KAFKA_RESP_ERR__TRANSPORT, "Connect to ipv4#127.0.0.1:1 failed: Connection refused",
         HK_FAULT_CONNECT},
        {RD_KAFKA_RESP_ERR__TRANSPORT, "Disconnected", HK_FAULT_NETWORK},
        {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down", HK_FAULT_NONE},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(hk_kafka_trouble(cases[i].code, cases[i].text), cases[i].fault);
    assert_string_equal(hk_kafka_login_hint("PLAIN"), "");
    assert_string_equal(hk_kafka_login_hint(NULL), "");
    bool old = rd_kafka_version() < 0x020601ff;
    assert_true((strstr(hk_kafka_login_hint("SCRAM-SHA-256"), "2.6.1") != NULL) == old);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_says_what_the_message_is),
        cmocka_unit_test(headers_of_the_message_go_along),
        cmocka_unit_test(too_many_headers_are_refused),
        cmocka_unit_test(a_topic_may_depend_on_the_message),
        cmocka_unit_test(each_error_has_its_fault),
        cmocka_unit_test(what_the_client_meets_says_why_a_message_timed_out),
    };
    return cmocka_run_group_tests_name("kafka", tests, NULL, NULL);
}
