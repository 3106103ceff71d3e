/* SPDX-License-Identifier: Apache-2.0 */
/* AMQP 0-9-1 as bytes. */
#include "base/str.h"
#include "check.h"
#include "sink/amqp/wire.h"

#define BYTES(text) ((struct hk_str){(text), sizeof(text) - 1})

static void frames_are_read_as_a_whole(void **state)
{
    (void)state;
    static const char bytes[] = "\x01\0\x02\0\0\0\x04\0\x14\0\x0b\xce\x08\0\0\0\0\0\0\xce";
    struct hk_amqp_frame f;
    const char *why = "";
    size_t used = 0;
    for (size_t n = 0; n < 12; n++)
        assert_int_equal(hk_amqp_read_frame((struct hk_str){bytes, n}, &f, &used, &why), HK_AMQP_MORE);
    assert_int_equal(hk_amqp_read_frame(BYTES(bytes), &f, &used, &why), HK_AMQP_WHOLE);
    assert_true(used == 12 && f.type == HK_AMQP_METHOD && f.channel == 2 && f.payload.len == 4);
    assert_int_equal(hk_amqp_read_frame((struct hk_str){bytes + 12, 8}, &f, &used, &why), HK_AMQP_WHOLE);
    assert_true(used == 8 && f.type == HK_AMQP_HEARTBEAT && !f.payload.len);
}

static void what_is_no_frame_is_refused(void **state)
{
    (void)state;

    const struct {
        struct hk_str bytes;
        const char *says;
    } rows[] = {{BYTES("AMQP\0\0\x09\x01"), "0-9-1"},
                {BYTES("A"), "0-9-1"},
                {BYTES("HTTP/1.1 400"), "other than AMQP"},
                {BYTES("\x04\0\0\0\0\0\0\xce"), "other than AMQP"},
                {BYTES("\x01\0\0\0\x02\0\x01"), "too long"},
                {BYTES("\x01\0\0\xff\xff\xff\xff"), "too long"},
                {BYTES("\x01\0\0\0\0\0\0\x00"), "without its end"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_amqp_frame f;
        const char *why = "";
        size_t used = 0;
        assert_int_equal(hk_amqp_read_frame(rows[i].bytes, &f, &used, &why), HK_AMQP_WRONG);
        NOTE_IF(!strstr(why, rows[i].says), "%zu: %s\n", i, why);
        assert_non_null(strstr(why, rows[i].says));
    }
}

static void check_cut(struct hk_str payload)
{
    struct hk_amqp_method m;
    for (size_t n = 0; n < payload.len; n++)
        assert_false(hk_amqp_read_method((struct hk_str){payload.ptr, n}, &m));
    assert_true(hk_amqp_read_method(payload, &m));
}

static void methods_are_read_and_cut_ones_refused(void **state)
{
    (void)state;
    static const char close[] = "\0\x14\0\x28\x01\x94\x05hello\0\x3c\0\x28";
    static const char ack[] = "\0\x3c\0\x50\0\0\0\0\0\0\x01\x02\x01";
    static const char tune[] = "\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c";
    static const char start[] = "\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\x0e"
                                "PLAIN AMQPLAIN";
    struct hk_amqp_method m;
    check_cut(BYTES(close));
    assert_true(hk_amqp_read_method(BYTES(close), &m));
    assert_true(m.id == HK_AMQP_CHANNEL_CLOSE && m.code == 404 && m.about == HK_AMQP_PUBLISH);
    assert_true(hk_str_eq(m.text, hk_str_of("hello")));
    check_cut(BYTES(ack));
    assert_true(hk_amqp_read_method(BYTES(ack), &m));
    assert_true(m.id == HK_AMQP_ACK && m.tag == 258 && m.multiple);
    check_cut(BYTES(tune));
    assert_true(hk_amqp_read_method(BYTES(tune), &m));
    assert_true(m.channel_max == 2047 && m.frame_max == 131072 && m.heartbeat == 60);
    check_cut(BYTES(start));
    assert_true(hk_amqp_read_method(BYTES(start), &m));
    assert_true(hk_str_eq(m.mechanisms, hk_str_of("PLAIN AMQPLAIN")));
    assert_true(hk_amqp_read_method(BYTES("\0\x3c\0\x63"), &m)); /* one that nobody needs to know */
}

/* What we write before the message-id is passed over, in the order of the flags. */
static void the_message_id_is_found_in_a_returned_header(void **state)
{
    (void)state;
    struct hk_buf out;
    struct hk_str id;
    hk_buf_init(&out, 1024);
    hk_amqp_u16(&out, 60);
    hk_amqp_u16(&out, 0);
    hk_amqp_u64(&out, 5);
    hk_amqp_u16(&out, 0xffe0); /* all down to the type */
    hk_amqp_short(&out, hk_str_of("application/json"));
    hk_amqp_short(&out, hk_str_of("gzip"));
    size_t table = hk_amqp_begin_table(&out);
    hk_amqp_short(&out, hk_str_of("x"));
    hk_amqp_u8(&out, 'S');
    hk_amqp_long(&out, hk_str_of("y"));
    hk_amqp_end_table(&out, table);
    hk_amqp_u8(&out, 2);
    hk_amqp_u8(&out, 9);
    hk_amqp_short(&out, hk_str_of("correlation"));
    hk_amqp_short(&out, hk_str_of("reply"));
    hk_amqp_short(&out, hk_str_of("60000"));
    hk_amqp_short(&out, hk_str_of("m-17"));
    size_t enough = out.len;
    hk_amqp_u64(&out, 1);
    hk_amqp_short(&out, hk_str_of("type"));
    assert_true(hk_amqp_read_header(hk_buf_str(&out), &id));
    assert_true(hk_str_eq(id, hk_str_of("m-17")));
    for (size_t n = 0; n < enough; n++)
        assert_false(hk_amqp_read_header((struct hk_str){out.data, n}, &id));
    assert_true(hk_amqp_read_header(BYTES("\0\x3c\0\0\0\0\0\0\0\0\0\0\0\0"), &id));
    assert_int_equal(id.len, 0);
    hk_buf_fini(&out);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct hk_buf out;
    struct hk_amqp_frame f;
    struct hk_amqp_method m;
    const char *why = "";
    size_t used = 0;
    char text[300];
    hk_buf_init(&out, 1024);
    memset(text, 'x', sizeof text);
    size_t at = hk_amqp_begin_method(&out, 7, HK_AMQP_RETURN);
    hk_amqp_u16(&out, 312);
    hk_amqp_short(&out, (struct hk_str){text, sizeof text}); /* cut at 255 */
    hk_amqp_end(&out, at);
    assert_int_equal(hk_amqp_read_frame(hk_buf_str(&out), &f, &used, &why), HK_AMQP_WHOLE);
    assert_true(used == out.len && f.channel == 7);
    assert_true(hk_amqp_read_method(f.payload, &m));
    assert_true(m.id == HK_AMQP_RETURN && m.code == 312 && m.text.len == 255);
    hk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_read_as_a_whole),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(methods_are_read_and_cut_ones_refused),
        cmocka_unit_test(the_message_id_is_found_in_a_returned_header),
        cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
