/* SPDX-License-Identifier: Apache-2.0 */
/* When two payloads say the same, and when a name stands twice. */
#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "failing.h"
#include "payload/canon.h"
#include "payload/scan.h"

static bool same(const char *a, const char *b)
{
    bool forth = hk_json_same(hk_str_of(a), hk_str_of(b)), back = hk_json_same(hk_str_of(b), hk_str_of(a));
    assert_int_equal(forth, back);
    return forth;
}

static void another_way_to_write_it_is_the_same(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"a\":1}", " {\n \"a\" :\t1 }\r\n"},
        {"{\"a\":1,\"b\":[true,null]}", "{\"b\": [true, null], \"a\": 1}"},
        {"\"\\u00e9\\/\\n\"", "\"\xc3\xa9/\\u000a\""},
        {"{\"\\u0061\":1}", "{\"a\":1}"},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
        {"[1.50]", "[1.5]"},
        {"[1.5]", "[15e-1]"},
        {"[100]", "[1e2]"},
        {"[1E+02]", "[100]"},
        {"[0.00012]", "[12e-5]"},
        {"[0e7]", "[0]"},
        {"[123456789012345678901234567890]", "[12345678901234567890123456789e1]"},
        {"{\"x\":{\"c\":1,\"b\":{\"z\":1,\"y\":2}},\"a\":[]}",
         "{\"a\":[],\"x\":{\"b\":{\"y\":2,\"z\":1},\"c\":1}}"},
        {"{\"a\":1,\"a\":2}", "{ \"a\":1, \"a\":2 }"},
        {"no JSON", "no JSON"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        NOTE_IF(!same(pairs[i][0], pairs[i][1]), "%s, %s\n", pairs[i][0], pairs[i][1]);
        assert_true(same(pairs[i][0], pairs[i][1]));
    }
}

static void another_value_is_not(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"a\":1}", "{\"a\":2}"},
        {"{\"a\":1}", "{\"a\":\"1\"}"},
        {"{\"a\":1}", "{\"a\":1,\"b\":null}"},
        {"{\"a\":1}", "{\"A\":1}"},
        {"[1,2]", "[2,1]"},
        {"[1]", "[1.0]"}, /* strict receivers tell them apart */
        {"[12]", "[120]"},
        {"[12]", "[1.2]"},
        {"[1]", "[-1]"},
        {"[0]", "[-0]"},
        {"[9007199254740993]", "[9007199254740992]"},
        {"[1e999999999999999999999]", "[1e999999999999999999998]"},
        {"[true]", "[false]"},
        {"[null]", "[false]"},
        {"[]", "{}"},
        {"[[]]", "[]"},
        {"[\"\"]", "[]"},
        {"[\"a\",\"b\"]", "[\"a\\\",\\\"b\"]"},
        {"\"\\ud800\"", "\"\\udbff\""}, /* half a pair each: both are read as U+FFFD */
        {"\"\\ud800\"", "\"\xef\xbf\xbd\""},
        {"{\"a\":1,\"a\":2}", "{\"a\":2,\"a\":1}"},
        {"{\"a\":1,\"a\":1}", "{\"a\":1}"},
        {"no JSON", "no  JSON"},
        {"{\"a\":1", "{\"a\": 1"},
        {"{\"a\":1} 2", "{\"a\":1}  2"},
        {"1", ""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        NOTE_IF(same(pairs[i][0], pairs[i][1]), "%s, %s\n", pairs[i][0], pairs[i][1]);
        assert_false(same(pairs[i][0], pairs[i][1]));
    }
}

static void a_name_that_stands_twice_is_found(void **state)
{
    (void)state;

    static const struct {
        const char *json;
        bool twins, known;
    } rows[] = {
        {"{\"a\":1,\"b\":2}", false, true},
        {"{\"a\":1,\"b\":2,\"a\":3}", true, true},
        {"{\"a\":1,\"\\u0061\":1}", true, true},
        {"[{\"x\":{\"y\":[{\"k\":1,\"k\":1}]}}]", true, true},
        {"[{\"k\":1},{\"k\":1}]", false, true},
        {"{\"k\":{\"k\":1}}", false, true},
        {"{\"a\":1,\"ab\":2,\"\":3}", false, true},
        {"{\"a\":1,\"a\":2", false, false},
        {"", false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool known = !rows[i].known;
        assert_int_equal(hk_json_has_twins(hk_str_of(rows[i].json), &known), rows[i].twins);
        assert_int_equal(known, rows[i].known);
    }
}

static void depth_is_bounded(void **state)
{
    (void)state;
    char deep[2 * HK_SCAN_DEPTH_MAX + 8], spaced[2 * HK_SCAN_DEPTH_MAX + 16];
    for (size_t over = 0; over < 2; over++) {
        size_t n = HK_SCAN_DEPTH_MAX + over;
        memset(deep, '[', n);
        memset(deep + n, ']', n);
        deep[2 * n] = '\0';
        (void)snprintf(spaced, sizeof spaced, " %s", deep);
        assert_int_equal(same(deep, spaced), over == 0);
    }
}

static enum hk_code compare(void)
{
    bool known = true;
    bool one = hk_json_same(hk_str_of("{\"a\":\"\\u0041\",\"b\":1}"), hk_str_of("{\"b\":1,\"a\":\"A\"}"));
    bool twins = hk_json_has_twins(hk_str_of("{\"a\":1,\"a\":\"\\n\"}"), &known);
    assert_int_equal(twins, known);
    return one && twins ? HK_OK : HK_NOMEM;
}

static void short_memory_calls_nothing_the_same(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(compare, HK_OK) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_way_to_write_it_is_the_same), cmocka_unit_test(another_value_is_not),
        cmocka_unit_test(a_name_that_stands_twice_is_found),   cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(short_memory_calls_nothing_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
