/* SPDX-License-Identifier: Apache-2.0 */
/* RESP, and what the errors of Redis mean. */
#include "base/str.h"
#include "check.h"
#include "sink/redis/impl.h"

static void replies_are_read_as_a_whole(void **state)
{
    (void)state;

    static const struct {
        const char *bytes;
        enum hk_resp_kind kind;
        const char *text;
    } rows[] = {{"+OK\r\n", HK_RESP_STATUS, "OK"},
                {"-ERR no\r\n", HK_RESP_ERROR, "ERR no"},
                {":17\r\n", HK_RESP_NUMBER, "17"},
                {"$5\r\na\r\nbc\r\n", HK_RESP_TEXT, "a\r\nbc"},
                {"$0\r\n\r\n", HK_RESP_TEXT, ""},
                {"$-1\r\n", HK_RESP_NIL, ""},
                {"*-1\r\n", HK_RESP_NIL, ""},
                {"*0\r\n", HK_RESP_LIST, ""},
                {"*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n", HK_RESP_LIST, ""}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_str in = hk_str_of(rows[i].bytes);
        struct hk_resp reply;
        const char *why = "";
        size_t used = 0;
        for (size_t n = 0; n < in.len; n++) {
            NOTE_IF(hk_resp_read((struct hk_str){in.ptr, n}, &reply, &used, &why) != HK_RESP_MORE,
                    "%s, %zu\n", in.ptr, n);
            assert_int_equal(hk_resp_read((struct hk_str){in.ptr, n}, &reply, &used, &why), HK_RESP_MORE);
        }
        assert_int_equal(hk_resp_read(in, &reply, &used, &why), HK_RESP_WHOLE);
        assert_true(used == in.len && reply.kind == rows[i].kind &&
                    hk_str_eq(reply.text, hk_str_of(rows[i].text)));
    }
}

static void what_is_no_resp_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "HTTP/1.1 400\r\n", "\r\n",      ":x\r\n",
        "$x\r\n",           "$-2\r\n",   "$99999999\r\n",
        "*99999\r\n",       "$1\r\nabc", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"};
    struct hk_resp reply;
    const char *why = "";
    size_t used = 0;
    for (size_t i = 0; i < COUNT(bad); i++) {
        NOTE_IF(hk_resp_read(hk_str_of(bad[i]), &reply, &used, &why) != HK_RESP_WRONG, "%s\n", bad[i]);
        assert_int_equal(hk_resp_read(hk_str_of(bad[i]), &reply, &used, &why), HK_RESP_WRONG);
    }
}

static void redirections_and_ids_are_read(void **state)
{
    (void)state;
    struct hk_str to;
    bool ask = false;
    int64_t ms = 0;
    assert_true(hk_resp_moved(hk_str_of("MOVED 3999 127.0.0.1:6381"), &to, &ask));
    assert_true(!ask && hk_str_eq(to, hk_str_of("127.0.0.1:6381")));
    assert_true(hk_resp_moved(hk_str_of("ASK 3999 127.0.0.1:6381"), &to, &ask) && ask);
    static const char *const bad[] = {"MOVED", "MOVED 1", "MOVED 1 ", "ERR MOVED 1 a:1", ""};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(hk_resp_moved(hk_str_of(bad[i]), &to, &ask));
    assert_true(hk_resp_entry(hk_str_of("1526919030474-55"), &ms) && ms == 1526919030474);
    static const char *const no_ids[] = {"", "1", "1-", "-1", "a-1", "18446744073709551615-1"};
    for (size_t i = 0; i < COUNT(no_ids); i++)
        assert_false(hk_resp_entry(hk_str_of(no_ids[i]), &ms));
}

static void every_error_has_its_meaning(void **state)
{
    (void)state;

    static const struct {
        const char *error;
        enum hk_fault fault;
    } rows[] = {
        {"OOM command not allowed when used memory > 'maxmemory'.", HK_FAULT_BROKER_THROTTLED},
        {"BUSY Redis is busy running a script.", HK_FAULT_BROKER_THROTTLED},
        {"ERR max number of clients reached", HK_FAULT_BROKER_THROTTLED},
        {"NOAUTH Authentication required.", HK_FAULT_BROKER_AUTH},
        {"WRONGPASS invalid username-password pair", HK_FAULT_BROKER_AUTH},
        {"NOPERM this user has no permissions", HK_FAULT_BROKER_AUTH},
        {"DENIED Redis is running in protected mode", HK_FAULT_BROKER_AUTH},
        {"LOADING Redis is loading the dataset in memory", HK_FAULT_BROKER_TRANSIENT},
        {"READONLY You can't write against a read only replica.", HK_FAULT_BROKER_TRANSIENT},
        {"MASTERDOWN Link with MASTER is down", HK_FAULT_BROKER_TRANSIENT},
        {"CLUSTERDOWN Hash slot not served", HK_FAULT_BROKER_TRANSIENT},
        {"TRYAGAIN Multiple keys request during rehashing of slot", HK_FAULT_BROKER_TRANSIENT},
        {"MISCONF Redis is configured to save RDB snapshots", HK_FAULT_BROKER_TRANSIENT},
        {"NOREPLICAS Not enough good replicas to write.", HK_FAULT_BROKER_TRANSIENT},
        {"WRONGTYPE Operation against a key holding the wrong kind of value", HK_FAULT_BROKER_REFUSED},
        {"ERR unknown command", HK_FAULT_BROKER_REFUSED},
        {"CROSSSLOT Keys in request don't hash to the same slot", HK_FAULT_BROKER_REFUSED},
        {"SOMETHING new", HK_FAULT_BROKER_UNKNOWN},
        {"", HK_FAULT_BROKER_UNKNOWN}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        NOTE_IF(hk_redis_fault(hk_str_of(rows[i].error)) != rows[i].fault, "%s\n", rows[i].error);
        assert_int_equal(hk_redis_fault(hk_str_of(rows[i].error)), rows[i].fault);
    }
}

static void commands_are_written_with_their_lengths(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 1024);
    hk_resp_begin(&out, 3);
    hk_resp_text(&out, "XADD");
    hk_resp_word(&out, (struct hk_str){"a\r\n\0b", 5});
    hk_resp_u64(&out, UINT64_MAX);
    static const char expected[] = "*3\r\n$4\r\nXADD\r\n$5\r\na\r\n\0b\r\n$20\r\n18446744073709551615\r\n";
    assert_true(out.len == sizeof expected - 1 && memcmp(out.data, expected, out.len) == 0);
    hk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_read_as_a_whole),
        cmocka_unit_test(what_is_no_resp_is_refused),
        cmocka_unit_test(redirections_and_ids_are_read),
        cmocka_unit_test(every_error_has_its_meaning),
        cmocka_unit_test(commands_are_written_with_their_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
