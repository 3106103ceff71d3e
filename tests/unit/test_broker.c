/* SPDX-License-Identifier: Apache-2.0 */
/* What all brokers share, without a connection: URLs of servers, names with fields, headers, numbers of what was written. */
#include "base/mem.h"
#include "base/servers.h"
#include "base/str.h"
#include "check.h"
#include "payload/names.h"
#include "sink/broker/broker.h"

static void urls_are_read(void **state)
{
    (void)state;
    struct hk_servers s;
    assert_null(hk_servers_parse(hk_str_of("amqp://r1"), &hk_scheme_amqp, &s));
    assert_true(!s.tls && s.n == 1 && s.at[0].port == 5672 && !s.user[0] && !s.path[0]);
    assert_null(hk_servers_parse(hk_str_of("AMQPS://a%40b@r1,r2:7,[::1],[2001:db8::1]:8/orders%2fnew"),
                                 &hk_scheme_amqp, &s));
    assert_true(s.tls && s.n == 4);
    assert_string_equal(s.user, "a@b");
    assert_string_equal(s.path, "orders/new");
    assert_string_equal(s.at[0].host, "r1");
    assert_int_equal(s.at[0].port, 5671);
    assert_int_equal(s.at[1].port, 7);
    assert_string_equal(s.at[2].host, "::1");
    assert_int_equal(s.at[2].port, 5671);
    assert_string_equal(s.at[3].host, "2001:db8::1");
    assert_int_equal(s.at[3].port, 8);
}

static void bad_urls_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "amqp",
                                      "amqp:",
                                      "amqp:/h",
                                      "amqp://",
                                      "amqp:///v",
                                      "amqps://,h",
                                      "amqp://h,",
                                      "amqp://h:",
                                      "amqp://h:x",
                                      "amqp://h:0",
                                      "amqp://h:65536",
                                      "amqp://[h]",
                                      "amqp://[::1]x",
                                      "amqp://[::1",
                                      "amqp://u:p@h",
                                      "amqp://@h",
                                      "amqp://a@b@h",
                                      "amqp://h/a?b",
                                      "amqp://h#a",
                                      "amqp://h/a b",
                                      "amqp://h\n",
                                      "amqp://h/%00",
                                      "http://h",
                                      "amqp://h_/\xc3\xa4"};
    struct hk_servers s;
    for (size_t i = 0; i < COUNT(bad); i++) {
        NOTE_IF(!hk_servers_parse(hk_str_of(bad[i]), &hk_scheme_amqp, &s), "%s\n", bad[i]);
        assert_non_null(hk_servers_parse(hk_str_of(bad[i]), &hk_scheme_amqp, &s));
    }
    assert_non_null(
        strstr(hk_servers_parse(hk_str_of("amqp://u:secret@h"), &hk_scheme_amqp, &s), "password"));
}

static void check_name(const char *pattern, const char *expected)
{
    const struct hk_name_values values = {hk_str_of("Order"), hk_str_of("k 1"), hk_str_of("billing")};
    struct hk_buf out;
    hk_buf_init(&out, 1024);
    assert_null(hk_name_wrong(hk_str_of(pattern)));
    hk_name_expand(hk_str_of(pattern), &values, &out);
    assert_string_equal(hk_buf_cstr(&out), expected);
    hk_buf_fini(&out);
}

static void names_are_filled_in(void **state)
{
    (void)state;
    check_name("", "");
    check_name("events", "events");
    check_name("{event_type}", "Order");
    check_name("a.{event_type}.{message_key}.{destination}.b", "a.Order.k 1.billing.b");
    check_name("{event_type}{event_type}", "OrderOrder");
    static const char *const bad[] = {"{",           "}",           "{}",   "{event}",
                                      "{event_type", "event_type}", "a\nb", "{{event_type}}"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_non_null(hk_name_wrong(hk_str_of(bad[i])));
    assert_true(hk_name_is_fixed(hk_str_of("a.{destination}")));
    assert_false(hk_name_is_fixed(hk_str_of("a.{event_type}")));
    assert_false(hk_name_is_fixed(hk_str_of("{message_key}")));
}

/* ---- fields ---- */

static const char *const reserved[] = {"cc", "x-ours-*", NULL};
static const struct hk_fields_rule rule = {
    .names =
        {[HK_FIELD_OF_KEY] = "key", [HK_FIELD_OF_IDEMPOTENCY] = "idem", [HK_FIELD_OF_ATTEMPT] = "attempt"},
    .ce_prefix = "ce_",
    .reserved = reserved};

static struct hk_message message(void)
{
    return (struct hk_message){.message_id = hk_str_of("m1"),
                               .event_type = hk_str_of("Order"),
                               .key = hk_str_of("k"),
                               .idempotency_key = hk_str_of("m1"),
                               .traceparent =
                                   hk_str_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                               .created_ms = INT64_C(1794731400250)};
}

static const struct hk_field *field(const struct hk_fields *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (hk_str_eq(f->at[i].name, hk_str_of(name)))
            return &f->at[i];
    return NULL;
}

static void check_field(const struct hk_fields *f, const char *name, const char *value)
{
    const struct hk_field *found = field(f, name);
    NOTE_IF(!found, "no %s\n", name);
    assert_non_null(found);
    assert_true(hk_str_eq(found->value, hk_str_of(value)));
}

static void fields_follow_their_rule(void **state)
{
    (void)state;
    struct hk_fields f;
    struct hk_err err;
    struct hk_message msg = message();
    msg.headers = hk_str_of("{\"X-A\":\"1\",\":timeout\":\"5s\",\"X-Token\":\"t\"}");
    hk_fields_init(&f);
    assert_int_equal(hk_fields_make(&f, &rule, NULL, &msg, 3, &err), HK_OK);
    assert_int_equal(f.n, 4);
    check_field(&f, "key", "k");
    check_field(&f, "attempt", "3");
    check_field(&f, "X-A", "1");
    assert_true(field(&f, "X-Token")->secret && !field(&f, "X-A")->secret);
    msg.idempotency_key = hk_str_of("other");
    assert_int_equal(hk_fields_make(&f, &rule, "/shop", &msg, 1, &err), HK_OK);
    check_field(&f, "idem", "other");
    check_field(&f, "ce_specversion", "1.0");
    check_field(&f, "ce_id", "m1");
    check_field(&f, "ce_source", "/shop");
    check_field(&f, "ce_type", "Order");
    check_field(&f, "ce_partitionkey", "k");
    check_field(&f, "ce_time", "2026-11-15T08:30:00.250Z");
    hk_fields_fini(&f);
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"[]",
                                      "{\"a\":1}",
                                      "{\"a b\":\"x\"}",
                                      "{\"a\":\"x\\ny\"}",
                                      "{\"KEY\":\"x\"}",
                                      "{\"Cc\":\"x\"}",
                                      "{\"x-ours-a\":\"x\"}",
                                      "{\"ce_id\":\"x\"}",
                                      "{\":url\":\"x\"}",
                                      "{\":timeout\":\"soon\"}",
                                      "{\"a\":\"x\",\"a\":\"y\"}"};
    struct hk_fields f;
    struct hk_err err;
    hk_fields_init(&f);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hk_message msg = message();
        msg.headers = hk_str_of(bad[i]);
        NOTE_IF(hk_fields_make(&f, &rule, NULL, &msg, 1, &err) != HK_INVALID, "%s\n", bad[i]);
        assert_int_equal(hk_fields_make(&f, &rule, NULL, &msg, 1, &err), HK_INVALID);
    }
    struct hk_message msg = message();
    msg.event_type = hk_str_of("");
    assert_int_equal(hk_fields_make(&f, &rule, "/shop", &msg, 1, &err), HK_INVALID);
    hk_fields_fini(&f);
}

/* ---- numbers ---- */

static void numbers_find_their_flight_until_it_is_settled(void **state)
{
    (void)state;

    enum {
        N = 300
    };
    static struct hk_flight flights[N];
    struct hk_flights f = {.at = NULL};
    hk_flights_reset(&f, 1);
    assert_null(hk_flights_get(&f, 0));
    for (uint64_t i = 0; i < N; i++) {
        assert_true(hk_flights_add(&f, &flights[i]));
        assert_int_equal(flights[i].number, i + 1);
    }
    for (uint64_t i = 2; i <= N; i += 2)
        hk_flights_drop(&f, i);
    assert_int_equal(f.first, 1);
    assert_ptr_equal(hk_flights_get(&f, 299), &flights[298]);
    assert_null(hk_flights_get(&f, 298));
    assert_null(hk_flights_get(&f, N + 1));
    for (uint64_t i = 1; i <= N; i += 2)
        hk_flights_drop(&f, i);
    assert_true(f.first == f.next && f.next == N + 1);
    hk_flights_drop(&f, UINT64_MAX);
    for (size_t i = 0; i < 65536; i++)
        assert_true(hk_flights_add(&f, &flights[0]));
    assert_false(hk_flights_add(&f, &flights[0])); /* bounded */
    hk_flights_reset(&f, 7);
    assert_true(hk_flights_add(&f, &flights[1]));
    assert_ptr_equal(hk_flights_get(&f, 7), &flights[1]);
    hk_flights_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_read),
        cmocka_unit_test(bad_urls_are_refused),
        cmocka_unit_test(names_are_filled_in),
        cmocka_unit_test(fields_follow_their_rule),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(numbers_find_their_flight_until_it_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
