/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON scanner: what it takes and refuses, with a second opinion, and that its tokens stand where they say. */
#include <stdlib.h>

#include <jansson.h>

#include "base/mem.h"
#include "check.h"
#include "payload/pretty.h"
#include "payload/scan.h"
#include "payload_json.h"

static struct hk_str S(const char *s) {
    return hk_str_of(s);
}

static const char *const good[] = {
    "0",
    "-0",
    "null",
    "true",
    "false",
    "\"\"",
    "{}",
    "[]",
    " [ ] ",
    "{\"a\":1}",
    "[1,2]",
    "1.5",
    "1e9",
    "1E+9",
    "1e-9",
    "-1.0e00",
    "[[[[]]]]",
    "{\"a\":{\"b\":[{}]}}",
    "\t\r\n 1 \n",
    "{\"a\":1,\"a\":2}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"東京 😀 \x7f\"",
    "\"\xf4\x8f\xbf\xbf\"",
    "\"\xc2\x80\"",
    "\"\\u00e9\"",
    "{\"\":\"\"}",
    "12345678901234567890",
};

static const struct {
    const char *text;
    size_t at;
    const char *why;
} bad[] = {
    {"", 0, "the text is empty"},
    {"  ", 2, "the text is empty"},
    {"{", 1, "the text ends too early"},
    {"[1", 2, "the text ends too early"},
    {"{\"a\"", 4, "the text ends too early"},
    {"{\"a\":", 5, "the text ends too early"},
    {"{\"a\":1,", 7, "the text ends too early"},
    {"[1,]", 3, "a comma before the end of an array"},
    {"{\"a\":1,}", 7, "a comma before the end of an object"},
    {"[1 2]", 3, "a comma or ] is expected here"},
    {"{\"a\":1 \"b\":2}", 7, "a comma or } is expected here"},
    {"{\"a\" 1}", 5, "a colon is expected after the name"},
    {"{a:1}", 1, "a name in double quotes is expected here"},
    {"{1:1}", 1, "a name in double quotes is expected here"},
    {"{\"a\":1]", 6, "a comma or } is expected here"},
    {"[1}", 2, "a comma or ] is expected here"},
    {"1 1", 2, "there is more text after the end of the value"},
    {"{}{}", 2, "there is more text after the end of the value"},
    {"]", 0, "a value is expected here"},
    {"'a'", 0, "strings stand in double quotes"},
    {"nul", 0, "a value is expected here"},
    {"True", 0, "a value is expected here"},
    {"nullx", 4, "there is more text after the end of the value"},
    {"NaN", 0, "a value is expected here"},
    {"+1", 0, "a value is expected here"},
    {".5", 0, "a value is expected here"},
    {"-", 1, "a digit is expected here"},
    {"-a", 1, "a digit is expected here"},
    {"01", 0, "a number must not begin with 0"},
    {"-01", 1, "a number must not begin with 0"},
    {"1.", 2, "a digit is expected after the point"},
    {"1.e1", 2, "a digit is expected after the point"},
    {"1e", 2, "a digit is expected in the exponent"},
    {"1e+", 3, "a digit is expected in the exponent"},
    {"0x10", 1, "there is more text after the end of the value"},
    {"\"abc", 0, "a string that begins here does not end"},
    {"\"a\\", 2, "a backslash that begins no escape sequence of JSON"},
    {"\"\\x41\"", 1, "a backslash that begins no escape sequence of JSON"},
    {"\"\\u12\"", 1, "a backslash that begins no escape sequence of JSON"},
    {"\"\\u00g0\"", 1, "a backslash that begins no escape sequence of JSON"},
    {"\"a\nb\"", 2, "a control character inside a string; JSON writes it as \\n, \\t or \\u00XX"},
    {"\"\x1f\"", 1, "a control character inside a string; JSON writes it as \\n, \\t or \\u00XX"},
    {"\"\x80\"", 1, "the text is not UTF-8"},
    {"\"\xc0\xaf\"", 1, "the text is not UTF-8"},         /* overlong */
    {"\"\xed\xa0\x80\"", 1, "the text is not UTF-8"},     /* half a pair */
    {"\"\xf4\x90\x80\x80\"", 1, "the text is not UTF-8"}, /* beyond U+10FFFF */
    {"\"\xe3\x81\"", 1, "the text is not UTF-8"},
    {"\xef\xbb\xbf{}", 0, "a byte order mark, which JSON does not have"},
    {"[\xc2\xa0]", 1, "a value is expected here"}, /* a blank of Unicode is none of JSON's */
    {"[1,\v2]", 3, "a value is expected here"},
    {"//c\n1", 0, "a value is expected here"},
};

static void json_is_taken_and_all_else_is_refused_with_place_and_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct hk_err err = {.code = HK_OK};
        NOTE_IF(hk_scan_check(S(good[i]), &err) != HK_OK, "%s: %s\n", good[i], err.message);
        assert_int_equal(hk_scan_check(S(good[i]), NULL), HK_OK);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hk_json_scan scan;
        struct hk_scan_token token;
        enum hk_scan_kind kind = HK_SCAN_END;
        hk_scan_init(&scan, S(bad[i].text));
        do
            kind = hk_scan_next(&scan, &token);
        while (kind != HK_SCAN_END && kind != HK_SCAN_ERROR);
        NOTE_IF(kind != HK_SCAN_ERROR, "accepted: %s\n", bad[i].text);
        assert_int_equal(kind, HK_SCAN_ERROR);
        NOTE_IF(scan.error_at != bad[i].at, "%s\n", bad[i].text);
        assert_int_equal(scan.error_at, bad[i].at);
        assert_string_equal(scan.why, bad[i].why);
        assert_int_equal(hk_scan_next(&scan, &token), HK_SCAN_ERROR); /* it stays */
    }
}

static void errors_name_bytes_and_in_longer_texts_the_line(void **state)
{
    (void)state;
    struct hk_err err;
    assert_int_equal(hk_scan_check(S("{\"a\" 1}"), &err), HK_INVALID);
    assert_string_equal(err.message, "not JSON: byte 5: a colon is expected after the name");
    assert_int_equal(hk_scan_check(S("{\n  \"東京\" 1}"), &err), HK_INVALID);
    assert_string_equal(err.message,
                        "not JSON: byte 13 (line 2, column 8): a colon is expected after the name");
}

static void a_nul_byte_ends_nothing(void **state)
{
    (void)state;
    assert_int_equal(hk_scan_check((struct hk_str){"1\0", 2}, NULL), HK_INVALID);
    assert_int_equal(hk_scan_check((struct hk_str){"\"\0\"", 3}, NULL), HK_INVALID);
    assert_int_equal(hk_scan_check((struct hk_str){"\"\\\0\"", 4}, NULL), HK_INVALID);
    assert_int_equal(hk_scan_check((struct hk_str){"1\0"
                                                   "5",
                                                   3},
                                   NULL),
                     HK_INVALID);
}

static void depth_is_bounded_and_costs_no_stack(void **state)
{
    (void)state;
    char text[2 * HK_SCAN_DEPTH_MAX + 2];
    memset(text, '[', HK_SCAN_DEPTH_MAX);
    memset(text + HK_SCAN_DEPTH_MAX, ']', HK_SCAN_DEPTH_MAX);
    assert_int_equal(hk_scan_check((struct hk_str){text, (size_t)2 * HK_SCAN_DEPTH_MAX}, NULL), HK_OK);
    memset(text, '[', HK_SCAN_DEPTH_MAX + 1);
    struct hk_err err;
    assert_int_equal(hk_scan_check((struct hk_str){text, sizeof text - 1}, &err), HK_INVALID);
    assert_non_null(strstr(err.message, "nested too deeply"));
    size_t n = (size_t)10 << 20;
    char *deep = malloc(n);
    assert_non_null(deep);
    memset(deep, '[', n);
    assert_int_equal(hk_scan_check((struct hk_str){deep, n}, NULL), HK_INVALID);
    free(deep);
}

static void objects_and_arrays_close_as_they_opened(void **state)
{
    (void)state; /* at depths around a word of the bit set */
    for (unsigned depth = 60; depth < 70; depth++) {
        char text[200];
        memset(text, '[', depth);
        memcpy(text + depth, "{}", 2);
        memset(text + depth + 2, ']', depth);
        struct hk_str s = {text, (size_t)2 * depth + 2};
        assert_int_equal(hk_scan_check(s, NULL), HK_OK);
        text[depth + 1] = ']';
        assert_int_equal(hk_scan_check(s, NULL), HK_INVALID);
    }
}

static void tokens_stand_where_they_say(void **state)
{
    (void)state;

    static const struct {
        enum hk_scan_kind kind;
        const char *raw;
    } expected[] = {
        {HK_SCAN_OBJECT, "{"},     {HK_SCAN_KEY, "\"a\\n\""}, {HK_SCAN_ARRAY, "["},
        {HK_SCAN_NUMBER, "-1.50"}, {HK_SCAN_TRUE, "true"},    {HK_SCAN_FALSE, "false"},
        {HK_SCAN_NULL, "null"},    {HK_SCAN_ARRAY_END, "]"},  {HK_SCAN_KEY, "\"b\""},
        {HK_SCAN_STRING, "\"x\""}, {HK_SCAN_KEY, "\"c\""},    {HK_SCAN_NUMBER, "7"},
        {HK_SCAN_OBJECT_END, "}"},
    };
    struct hk_str text = S(" {\"a\\n\" : [-1.50 ,true,false, null],\"b\":\"x\",\"c\":7}\n");
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, text);
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_int_equal(hk_scan_next(&scan, &token), expected[i].kind);
        assert_int_equal(token.kind, expected[i].kind);
        assert_true(hk_str_eq(token.raw, S(expected[i].raw)));
        assert_ptr_equal(token.raw.ptr, text.ptr + token.at);
        assert_int_equal(token.escaped, i == 1);
        assert_int_equal(token.integer, i == 11);
    }
    assert_int_equal(hk_scan_next(&scan, &token), HK_SCAN_END);
    assert_int_equal(hk_scan_next(&scan, &token), HK_SCAN_END);
}

static void leaving_a_container_ends_behind_it(void **state)
{
    (void)state;
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, S("[{\"a\":[1,{}]} , 2]"));
    assert_int_equal(hk_scan_next(&scan, &token), HK_SCAN_ARRAY);
    assert_int_equal(hk_scan_next(&scan, &token), HK_SCAN_OBJECT);
    assert_true(hk_scan_leave(&scan));
    assert_int_equal(scan.pos, 13);
    assert_int_equal(hk_scan_next(&scan, &token), HK_SCAN_NUMBER);
    hk_scan_init(&scan, S("[[1,]"));
    assert_int_equal(hk_scan_next(&scan, &token), HK_SCAN_ARRAY);
    assert_false(hk_scan_leave(&scan));
}

/* ---- strings ---- */

static const struct {
    const char *raw, *text;
} strings[] = {
    {"\"\"", ""},
    {"\"abc\"", "abc"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
    {"\"\\u0041\\u00e9\\u6771\\ud83d\\ude00\"", "A\xc3\xa9東😀"},
    {"\"\\uD83D\\uDE00\"", "😀"},
    {"\"\\ud83d\"", "\xef\xbf\xbd"},
    {"\"\\ud83dx\"", "\xef\xbf\xbdx"},
    {"\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\"\\ude00\\ude00\"", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                           "A"},
    {"\"東京\\n\"", "東京\n"},
};

static void strings_say_what_their_escapes_mean(void **state)
{
    (void)state;
    struct hk_buf buf;
    hk_buf_init(&buf, 1000);
    for (size_t i = 0; i < COUNT(strings); i++) {
        hk_buf_reset(&buf);
        assert_int_equal(hk_scan_text(S(strings[i].raw), &buf), HK_OK);
        assert_string_equal(hk_buf_cstr(&buf), strings[i].text);
        assert_true(hk_scan_text_eq(S(strings[i].raw), S(strings[i].text)));
        assert_true(hk_scan_text_containsi(S(strings[i].raw), S(strings[i].text)));
        hk_buf_addc(&buf, '!');
        assert_false(hk_scan_text_eq(S(strings[i].raw), hk_buf_str(&buf)));
        assert_false(hk_scan_text_eq(S("\"other\""), S(strings[i].text)));
    }
    hk_buf_fini(&buf);
    assert_true(hk_scan_text_eqi(S("\"X-Api-\\u004bey\""), S("x-api-key")));
    assert_false(hk_scan_text_eq(S("\"X\""), S("x")));
    assert_false(hk_scan_text_eq(S("\"ab\""), S("a")));
    assert_false(hk_scan_text_eq(S("\"a\""), S("ab")));
    assert_false(hk_scan_text_eq(S("\"a\\u0000b\""), S("a")));
    assert_true(hk_scan_text_containsi(S("\"in \\u6771\\u4eac TOWER\""), S("東京 tower")));
    assert_true(hk_scan_text_containsi(S("\"aab\""), S("ab")));
    assert_false(hk_scan_text_containsi(S("\"aab\""), S("abb")));
}

static void numbers_that_others_round_are_found(void **state)
{
    (void)state;

    static const struct {
        const char *json;
        long at; /* -1: none */
    } rows[] = {
        {"9007199254740992", -1},
        {"-9007199254740992", -1},
        {"9007199254740993", 0},
        {"-9007199254740993", 0},
        {"[1, 9007199254740993]", 4},
        {"{\"id\": 12345678901234567890, \"x\": 1}", 7},
        {"\"9007199254740993\"", -1},
        {"{\"9007199254740993\":1}", -1},
        {"9999999999999999", 0},
        {"10000000000000000", 0},
        {"9007199254740993.0", 0},
        {"0.30000000000000004", -1},
        {"3.14159265358979323846", 0},
        {"1.0000000000000000000000", -1},
        {"0.00000000000000000000012345", -1},
        {"1e20", -1},
        {"1e400", 0},
        {"1e-400", 0},
        {"1e0000000003", -1},
        {"1e99999999999999999999", 0},
        {"123456789012345678e-17", 0},
        {"[1,2,{\"a\":[1.5,true]}]", -1},
        {"[9007199254740993", 1},
        {"[x, 9007199254740993]", -1}, /* not JSON up to there */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t at = 99;
        bool found = hk_scan_has_big_integer(S(rows[i].json), &at);
        NOTE_IF(found != (rows[i].at >= 0), "%s\n", rows[i].json);
        assert_int_equal(found, rows[i].at >= 0);
        assert_int_equal(at, found ? (size_t)rows[i].at : 99);
        assert_int_equal(hk_scan_has_big_integer(S(rows[i].json), NULL), found);
    }
}

static void half_a_pair_is_found(void **state)
{
    (void)state;

    static const struct {
        const char *json;
        bool half;
    } rows[] = {
        {"\"\\ud83d\\ude00\"", false},
        {"\"\\uD83D\\uDE00\\u00e9\\n\"", false},
        {"\"\\ud83d\"", true},
        {"\"\\ude00\"", true},
        {"\"\\ude00\\ud83d\"", true},
        {"\"\\ud83d\\ud83d\\ude00\"", true},
        {"\"\\ud83dx\\ude00\"", true},
        {"\"\\\\ud83d\"", false}, /* a backslash, and letters */
        {"\"\\\\\\ud83d\"", true},
        {"{\"a\\udc00\":1}", true},
        {"[1, {\"a\": [\"x\", \"\\udfff\"]}]", true},
        {"[\"\\ud7ff\", \"\\ue000\", 1, null, \"\\\"\"]", false},
        {"[\"\\udc00", false}, /* not JSON up to there */
        {"12", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bool found = hk_scan_has_half_pair(S(rows[i].json));
        NOTE_IF(found != rows[i].half, "%s\n", rows[i].json);
        assert_int_equal(found, rows[i].half);
    }
}

/* ---- a second opinion ---- */

/* 1: taken, 0: refused, -1: what it refuses is beyond the grammar (our header says which). */
static int jansson_takes(struct hk_str text)
{
    json_error_t error;
    json_t *root = json_loadb(text.len ? text.ptr : "", text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (root) {
        json_decref(root);
        return 1;
    }
    bool beyond = json_error_code(&error) == json_error_numeric_overflow || strstr(error.text, "too big") ||
                  strstr(error.text, "invalid Unicode");
    return beyond ? -1 : 0;
}

static void jansson_takes_and_refuses_the_same(void **state)
{
    (void)state;
    struct hk_rng rng;
    struct hk_buf buf;
    size_t taken = 0, refused = 0;
    hk_rng_seed(&rng, 20261115, 7);
    hk_buf_init(&buf, (size_t)1 << 20);
    for (int i = 0; i < 20000; i++) {
        random_json(&rng, &buf);
        if (i % 4)
            spoil(&rng, &buf);
        bool ours = hk_scan_check(hk_buf_str(&buf), NULL) == HK_OK;
        int theirs = jansson_takes(hk_buf_str(&buf));
        NOTE_IF(theirs >= 0 && ours != theirs, "we %d, jansson %d: %.*s\n", ours, theirs, (int)buf.len,
                buf.data);
        assert_true(theirs < 0 || ours == theirs);
        taken += ours;
        refused += !ours;
    }
    hk_buf_fini(&buf);
    assert_true(taken > 5000 && refused > 5000); /* both are tried */
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(jansson_takes(S(good[i])) != 0);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_true(jansson_takes(S(bad[i].text)) != 1);
}

static void jansson_reads_strings_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(strings); i++) {
        json_t *value = json_loads(strings[i].raw, JSON_DECODE_ANY, NULL);
        if (!value) /* half a pair */
            continue;
        assert_string_equal(json_string_value(value), strings[i].text);
        json_decref(value);
    }
}

/* ---- laid out ---- */

static void laying_out_changes_white_space_only(void **state)
{
    (void)state;
    struct hk_buf out, again;
    struct hk_rng rng;
    hk_buf_init(&out, (size_t)1 << 24);
    hk_buf_init(&again, (size_t)1 << 24);
    assert_int_equal(hk_pretty_write(S("{\"a\":[1.50,{}],\"b\":{\"c\":[]}}"), &out), HK_OK);
    assert_string_equal(hk_buf_cstr(&out),
                        "{\n  \"a\": [\n    1.50,\n    {}\n  ],\n  \"b\": {\n    \"c\": []\n  }\n}\n");
    hk_buf_reset(&out);
    assert_int_equal(hk_pretty_write(S("{\"a\":}"), &out), HK_INVALID);
    assert_int_equal(out.len, 0);
    hk_rng_seed(&rng, 4, 4);
    struct hk_buf json;
    hk_buf_init(&json, (size_t)1 << 20);
    for (int i = 0; i < 500; i++) {
        random_json(&rng, &json);
        hk_buf_reset(&out);
        hk_buf_reset(&again);
        assert_int_equal(hk_pretty_write(hk_buf_str(&json), &out), HK_OK);
        assert_int_equal(hk_pretty_write(hk_buf_str(&out), &again), HK_OK);
        assert_true(hk_str_eq(hk_buf_str(&out), hk_buf_str(&again)));
        struct hk_json_scan a, b;
        struct hk_scan_token x, y;
        hk_scan_init(&a, hk_buf_str(&json));
        hk_scan_init(&b, hk_buf_str(&out));
        enum hk_scan_kind kind = HK_SCAN_END;
        do {
            kind = hk_scan_next(&a, &x);
            assert_int_equal(hk_scan_next(&b, &y), kind);
            assert_true(kind == HK_SCAN_END || hk_str_eq(x.raw, y.raw));
        } while (kind != HK_SCAN_END);
    }
    hk_buf_fini(&json);
    hk_buf_fini(&out);
    hk_buf_fini(&again);
}

static void laying_out_brackets_does_not_explode(void **state)
{
    (void)state;
    char text[2 * HK_SCAN_DEPTH_MAX];
    struct hk_buf out;
    memset(text, '[', HK_SCAN_DEPTH_MAX);
    memset(text + HK_SCAN_DEPTH_MAX, ']', HK_SCAN_DEPTH_MAX);
    hk_buf_init(&out, sizeof text * 80);
    assert_int_equal(hk_pretty_write((struct hk_str){text, sizeof text}, &out), HK_OK);
    size_t deepest = 0;
    for (const char *p = hk_buf_cstr(&out); *p; p += strcspn(p, "\n") + 1)
        deepest = strspn(p, " ") > deepest ? strspn(p, " ") : deepest;
    assert_int_equal(deepest, 64);
    hk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_taken_and_all_else_is_refused_with_place_and_words),
        cmocka_unit_test(errors_name_bytes_and_in_longer_texts_the_line),
        cmocka_unit_test(a_nul_byte_ends_nothing),
        cmocka_unit_test(depth_is_bounded_and_costs_no_stack),
        cmocka_unit_test(objects_and_arrays_close_as_they_opened),
        cmocka_unit_test(tokens_stand_where_they_say),
        cmocka_unit_test(leaving_a_container_ends_behind_it),
        cmocka_unit_test(strings_say_what_their_escapes_mean),
        cmocka_unit_test(numbers_that_others_round_are_found),
        cmocka_unit_test(half_a_pair_is_found),
        cmocka_unit_test(jansson_takes_and_refuses_the_same),
        cmocka_unit_test(jansson_reads_strings_the_same),
        cmocka_unit_test(laying_out_changes_white_space_only),
        cmocka_unit_test(laying_out_brackets_does_not_explode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
