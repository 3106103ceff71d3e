/* SPDX-License-Identifier: Apache-2.0 */
/* MQTT 5 as bytes, and what its reason codes mean. */
#include "base/str.h"
#include "check.h"
#include "sink/mqtt/impl.h"

#define BYTES(text) ((struct hk_str){(text), sizeof(text) - 1})

static enum hk_mqtt_next read_one(struct hk_str in, struct hk_mqtt_packet *out)
{
    const char *why = "";
    size_t used = 0;
    enum hk_mqtt_next next = hk_mqtt_read(in, out, &used, &why);
    assert_true(next != HK_MQTT_WHOLE || used == in.len);
    assert_true(next != HK_MQTT_WRONG || why[0]);
    return next;
}

static void check_cuts(struct hk_str in)
{
    struct hk_mqtt_packet p;
    for (size_t n = 0; n < in.len; n++)
        assert_int_equal(read_one((struct hk_str){in.ptr, n}, &p), HK_MQTT_MORE);
    assert_int_equal(read_one(in, &p), HK_MQTT_WHOLE);
}

static void packets_are_read_as_a_whole(void **state)
{
    (void)state;
    struct hk_mqtt_packet p;
    static const char connack[] =
        "\x20\x19\x00\x00\x16\x21\x00\x14\x24\x01\x25\x00\x27\x00\x01\x00\x00\x13\x00\x1e\x26\x00\x01"
        "a\x00\x01"
        "b";
    check_cuts(BYTES(connack));
    assert_int_equal(read_one(BYTES(connack), &p), HK_MQTT_WHOLE);
    assert_true(p.type == HK_MQTT_CONNACK && p.code == 0 && p.receive_maximum == 20 && p.maximum_qos == 1 &&
                !p.retains && p.maximum_packet == 65536 && p.keep_alive == 30);
    static const char plain[] = "\x20\x03\x00\x87\x00";
    check_cuts(BYTES(plain));
    assert_int_equal(read_one(BYTES(plain), &p), HK_MQTT_WHOLE);
    assert_true(p.code == 0x87 && p.receive_maximum == 65535 && p.maximum_qos == 2 && p.retains);
    static const char ack[] = "\x40\x02\x01\x02";
    check_cuts(BYTES(ack));
    assert_int_equal(read_one(BYTES(ack), &p), HK_MQTT_WHOLE);
    assert_true(p.type == HK_MQTT_PUBACK && p.id == 258 && p.code == 0);
    static const char reason[] = "\x40\x0a\x00\x07\x97\x06\x1f\x00\x03"
                                 "why";
    check_cuts(BYTES(reason));
    assert_int_equal(read_one(BYTES(reason), &p), HK_MQTT_WHOLE);
    assert_true(p.id == 7 && p.code == 0x97 && hk_str_eq(p.reason, hk_str_of("why")));
    assert_int_equal(read_one(BYTES("\xe0\x00"), &p), HK_MQTT_WHOLE);
    assert_true(p.type == HK_MQTT_DISCONNECT && p.code == 0);
    assert_int_equal(read_one(BYTES("\xd0\x00"), &p), HK_MQTT_WHOLE);
    assert_int_equal(p.type, HK_MQTT_PINGRESP);
}

static void what_is_no_mqtt_is_refused(void **state)
{
    (void)state;
    const struct hk_str bad[] = {BYTES("HTTP/1.1 400"),
                                 BYTES("\x00\x00"),
                                 BYTES("\x10\x00"),
                                 BYTES("\x62\x02\x00\x01"),
                                 BYTES("\x41\x02\x00\x01"),
                                 BYTES("\x40\xff\xff\xff\xff\x01"),
                                 BYTES("\x40\xff\xff\x7f"),
                                 BYTES("\x20\x01\x00"),
                                 BYTES("\x40\x01\x00"),
                                 BYTES("\x40\x05\x00\x01\x00\x01\xff"),
                                 BYTES("\x40\x07\x00\x01\x00\x03\x1f\x00\x09"),
                                 BYTES("\x20\x06\x00\x00\x03\x21\x00\x00")};
    struct hk_mqtt_packet p;
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *why = "";
        size_t used = 0;
        NOTE_IF(hk_mqtt_read(bad[i], &p, &used, &why) != HK_MQTT_WRONG, "%zu\n", i);
        assert_int_equal(hk_mqtt_read(bad[i], &p, &used, &why), HK_MQTT_WRONG);
    }
}

static void every_reason_has_its_meaning(void **state)
{
    (void)state;

    static const struct {
        uint8_t code;
        enum hk_fault fault;
    } rows[] = {{0x10, HK_FAULT_BROKER_REFUSED},   {0x80, HK_FAULT_BROKER_UNKNOWN},
                {0x83, HK_FAULT_BROKER_UNKNOWN},   {0x86, HK_FAULT_BROKER_AUTH},
                {0x87, HK_FAULT_BROKER_AUTH},      {0x8a, HK_FAULT_BROKER_AUTH},
                {0x88, HK_FAULT_BROKER_TRANSIENT}, {0x89, HK_FAULT_BROKER_TRANSIENT},
                {0x8b, HK_FAULT_BROKER_TRANSIENT}, {0x9c, HK_FAULT_BROKER_TRANSIENT},
                {0x9d, HK_FAULT_BROKER_TRANSIENT}, {0x96, HK_FAULT_BROKER_THROTTLED},
                {0x97, HK_FAULT_BROKER_THROTTLED}, {0x9f, HK_FAULT_BROKER_THROTTLED},
                {0x90, HK_FAULT_BROKER_REFUSED},   {0x95, HK_FAULT_BROKER_REFUSED},
                {0x99, HK_FAULT_BROKER_REFUSED},   {0x8e, HK_FAULT_BROKER_UNKNOWN},
                {0x84, HK_FAULT_PROTOCOL},         {0xff, HK_FAULT_BROKER_UNKNOWN}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(hk_mqtt_fault(rows[i].code), rows[i].fault);
        assert_true(rows[i].code == 0xff || hk_mqtt_reason(rows[i].code)[0]);
    }
}

static void what_goes_is_as_the_protocol_has_it(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 127, 128, 16383, 16384, 2097151, 2097152, 268435455};
    static const size_t lens[] = {1, 1, 2, 2, 3, 3, 4, 4};
    struct hk_buf out;
    hk_buf_init(&out, 1024);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        hk_buf_reset(&out);
        hk_mqtt_size(&out, sizes[i]);
        assert_true(out.len == lens[i] && hk_mqtt_size_len(sizes[i]) == lens[i]);
    }
    assert_memory_equal(out.data, "\xff\xff\xff\x7f", 4);
    hk_buf_reset(&out);
    hk_mqtt_pair(&out, hk_str_of("a"), hk_str_of("bc"));
    assert_true(out.len == 8 && memcmp(out.data,
                                       "\x26\x00\x01"
                                       "a\x00\x02"
                                       "bc",
                                       8) == 0);
    hk_buf_fini(&out);
    assert_true(hk_mqtt_topic_ok(hk_str_of("a/b")) && !hk_mqtt_topic_ok(hk_str_of("")) &&
                !hk_mqtt_topic_ok(hk_str_of("a/+")) && !hk_mqtt_topic_ok(hk_str_of("#")) &&
                !hk_mqtt_topic_ok(hk_str_of("a\xff")) && !hk_mqtt_topic_ok(hk_str_of("a\x01")));
    assert_true(hk_mqtt_text_ok(hk_str_of("\xe9\xa3\x9b\xe8\x84\x9a")) &&
                !hk_mqtt_text_ok(hk_str_of("\xc2\x85")) && !hk_mqtt_text_ok(hk_str_of("\xef\xbf\xbe")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_are_read_as_a_whole),
        cmocka_unit_test(what_is_no_mqtt_is_refused),
        cmocka_unit_test(every_reason_has_its_meaning),
        cmocka_unit_test(what_goes_is_as_the_protocol_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
