/* SPDX-License-Identifier: Apache-2.0 */
/* Proto-JSON in every form that Google's clients write, and everything that is none; and what a message says of its own request. */
#include <stdio.h>

#include "admin/tasks/proto.h"
#include "base/str.h"
#include "check.h"
#include "payload/target.h"

struct inner {
    uint32_t given;
    int64_t wait;
};

struct outer {
    uint32_t given;
    struct hk_str text, bytes;
    int64_t wait, when, count, word;
    double rate;
    struct hk_proto_map map;
    struct inner inner;
};

static const struct hk_proto_word words[] = {{"NONE", 0}, {"POST", 1}, {"GET", 2}, {NULL, 0}};
static const struct hk_proto_field inner_fields[] = {
    {"max_backoff", HK_PROTO_DURATION, offsetof(struct inner, wait), NULL, NULL}};
static const struct hk_proto_type inner_type = {inner_fields, 1, offsetof(struct inner, given)};
static const struct hk_proto_field fields[] = {
    {"some_text", HK_PROTO_TEXT, offsetof(struct outer, text), NULL, NULL},
    {"body", HK_PROTO_BYTES, offsetof(struct outer, bytes), NULL, NULL},
    {"wait", HK_PROTO_DURATION, offsetof(struct outer, wait), NULL, NULL},
    {"when", HK_PROTO_TIME, offsetof(struct outer, when), NULL, NULL},
    {"max_count", HK_PROTO_INT32, offsetof(struct outer, count), NULL, NULL},
    {"method", HK_PROTO_ENUM, offsetof(struct outer, word), NULL, words},
    {"rate", HK_PROTO_DOUBLE, offsetof(struct outer, rate), NULL, NULL},
    {"headers", HK_PROTO_MAP, offsetof(struct outer, map), NULL, NULL},
    {"retry_config", HK_PROTO_MESSAGE, offsetof(struct outer, inner), &inner_type, NULL},
    {"output_only", HK_PROTO_SKIP, 0, NULL, NULL},
};
static const struct hk_proto_type type = {fields, 10, offsetof(struct outer, given)};

static struct hk_pool mem;
static struct outer out;
static struct hk_err err;

static enum hk_code read_text(const char *text)
{
    hk_pool_fini(&mem);
    mem = (struct hk_pool){NULL};
    out = (struct outer){.given = 0};
    err = (struct hk_err){.message = ""};
    return hk_proto_read(hk_str_of(text), &type, &mem, &out, &err);
}

#define TAKES(text) assert_int_equal(read_text(text), HK_OK)
#define REFUSES(text, words)                                                                                 \
    do {                                                                                                     \
        assert_int_equal(read_text(text), HK_INVALID);                                                       \
        if (!strstr(err.message, words))                                                                     \
            fail_msg("%s: %s", text, err.message);                                                           \
    } while (0)

static void names_have_two_forms(void **state)
{
    (void)state;
    TAKES("{\"someText\":\"a\",\"maxCount\":3}");
    assert_true(hk_str_eq(out.text, hk_str_of("a")) && out.count == 3);
    TAKES("{\"some_text\":\"\\u00e9\"}");
    assert_true(hk_str_eq(out.text, hk_str_of("\xc3\xa9")));
    REFUSES("{\"sometext\":\"a\"}", "Unknown name \"sometext\": Cannot find field");
    REFUSES("{\"retryConfig\":{\"x\":1}}", "Unknown name \"x\" at 'retry_config'");
    REFUSES("{\"someText\":\"a\",\"some_text\":\"b\"}", "given twice");
    TAKES("");
    TAKES("{}");
    TAKES("{\"someText\":null,\"retryConfig\":null}");
    assert_int_equal(out.given, 0);
    TAKES("{\"outputOnly\":{\"a\":[1,{\"b\":2}]},\"maxCount\":1}");
    assert_int_equal(out.count, 1);
}

static void numbers_are_numbers_or_texts(void **state)
{
    (void)state;
    TAKES("{\"maxCount\":\"-1\",\"rate\":\"2.5\"}");
    assert_true(out.count == -1 && out.rate > 2.4 && out.rate < 2.6);
    TAKES("{\"maxCount\":1e2,\"rate\":7}");
    assert_int_equal(out.count, 100);
    const char *const bad[] = {"2147483648", "1.5", "\"1 \"", "\"\"",    "\"0x10\"",
                               "true",       "[1]", "{}",     "\"NaN\"", "1e99"};
    char text[64];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(text, sizeof text, "{\"maxCount\":%s}", bad[i]);
        REFUSES(text, "max_count");
    }
    REFUSES("{\"rate\":\"inf\"}", "TYPE_DOUBLE");
    REFUSES("{\"rate\":1e999}", "TYPE_DOUBLE");
}

static void durations(void **state)
{
    const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0s", 0},          {"3.5s", 3500},      {"0.100s", 100},
                {"3600s", 3600000}, {"0.000000001s", 1}, {"1.0005s", 1001}};

    const char *const bad[] = {
        "", "s", "5", "-1s", "1e3s", "1.s", ".5s", "1 s", "1.0000000001s", "999999999999s", "1m"};
    int64_t ms = -1;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(hk_proto_duration(hk_str_of(good[i].text), &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(hk_proto_duration(hk_str_of(bad[i]), &ms));
    TAKES("{\"retryConfig\":{\"maxBackoff\":\"2s\"}}");
    assert_int_equal(out.inner.wait, 2000);
    REFUSES("{\"wait\":5}", "Duration");
}

static void bytes_times_and_words(void **state)
{
    (void)state;
    TAKES("{\"body\":\"-_8=\",\"when\":\"2026-01-01T00:00:00.005Z\",\"method\":2}");
    assert_true(hk_str_eq(out.bytes, (struct hk_str){"\xfb\xff", 2}));
    assert_int_equal(out.when, INT64_C(1767225600005));
    assert_int_equal(out.word, 2);
    TAKES("{\"body\":\"+/8\",\"method\":\"POST\"}");
    assert_true(hk_str_eq(out.bytes, (struct hk_str){"\xfb\xff", 2}));
    TAKES("{\"body\":\"\"}");
    assert_int_equal(out.bytes.len, 0);
    REFUSES("{\"body\":\"a\"}", "base64");
    REFUSES("{\"body\":\"####\"}", "base64");
    REFUSES("{\"when\":\"yesterday\"}", "Timestamp");
    REFUSES("{\"method\":\"FETCH\"}", "TYPE_ENUM");
    REFUSES("{\"method\":9}", "TYPE_ENUM");
    REFUSES("{\"someText\":\"a\\u0000b\"}", "TYPE_STRING");
}

static void maps_and_what_is_no_json(void **state)
{
    (void)state;
    TAKES("{\"headers\":{\"A\":\"1\",\"b\":\"2\"}}");
    assert_true(out.map.n == 2 && hk_str_eq(out.map.items[1].key, hk_str_of("b")));
    REFUSES("{\"headers\":{\"A\":1}}", "headers");
    REFUSES("{\"headers\":[]}", "headers");
    REFUSES("[]", "object");
    REFUSES("{", "Invalid JSON");
    REFUSES("{} x", "Invalid JSON");
    REFUSES("{\"retryConfig\":5}", "retry_config");
}

static void targets(void **state)
{
    char out_text[32];
    (void)state;
    struct hk_str headers =
        hk_str_of("{\"X\":{\":timeout\":\"1s\"},\":timeout\":\"90s\",\":method\":\"P\\u0055T\"}");
    assert_int_equal(hk_target_timeout_ms(headers), 90000);
    assert_true(hk_target_read(headers, HK_TARGET_METHOD, out_text, sizeof out_text) &&
                strcmp(out_text, "PUT") == 0);
    assert_false(hk_target_read(headers, HK_TARGET_URL, out_text, sizeof out_text));
    assert_false(hk_target_read(headers, HK_TARGET_METHOD, out_text, 3));
    assert_int_equal(hk_target_timeout_ms(hk_str_of("{\":timeout\":90}")), 0);
    assert_int_equal(hk_target_timeout_ms(hk_str_of("{\":timeout\":\"soon\"}")), 0);
    assert_int_equal(hk_target_timeout_ms(hk_str_of("not JSON \":timeout\"")), 0);
    assert_int_equal(hk_target_timeout_ms(hk_str_of("")), 0);
    const char *const good[] = {"https://a.example:8443/x?y=%20", "http://a:/", "http://a:65535?x",
                                "http://[::1]:80/", "http://[fd00::a]"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_null(hk_target_url_wrong(hk_str_of(good[i])));
    const char *const bad[] = {"",
                               "http://",
                               "https:///x",
                               "http://:80/",
                               "ftp://a/",
                               "//a",
                               "http://u@a/",
                               "http://a/#b",
                               "http://a:0/",
                               "http://a:65536/",
                               "http://a:99999999999999999999/",
                               "http://a:-1/",
                               "http://a:+80/",
                               "http://a:8x/",
                               "http://[::1/",
                               "http://[::1]80/",
                               "http://[]/",
                               "http://[1::2::3]/",
                               "http://[127.0.0.1]/",
                               "http://a/ b",
                               "http://a/\r\nX: y",
                               "http://a/\"",
                               "http://\xc3\xa9/"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_non_null(hk_target_url_wrong(hk_str_of(bad[i])));
    assert_true(hk_target_method_ok(hk_str_of("PATCH")) && !hk_target_method_ok(hk_str_of("post")));
}

static int tear_down(void **state)
{
    (void)state;
    hk_pool_fini(&mem);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_two_forms),
        cmocka_unit_test(numbers_are_numbers_or_texts),
        cmocka_unit_test(durations),
        cmocka_unit_test(bytes_times_and_words),
        cmocka_unit_test(maps_and_what_is_no_json),
        cmocka_unit_test(targets),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
