/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's words: answers as frameworks and public services give them, and answers that nobody should give. What they say
 * decides the group of a dead letter, so the groups are tested here, too. */
#include <stdlib.h>

#include "base/str.h"
#include "base/utf8.h"
#include "check.h"
#include "core/letter.h"
#include "failing.h"
#include "payload/answer.h"
#include "payload/scan.h"

#define S(text) hk_str_of(text)

static const struct hk_mask_about nothing = {.n_payloads = 0};

static const char *error_of(struct hk_str body)
{
    static char out[HK_ANSWER_ERROR_MAX];
    struct hk_str error = hk_answer_error(NULL, &nothing, 422, body, out);
    assert_int_equal(strlen(out), error.len);
    return out;
}

/* "" = the receiver said nothing. */
static const struct {
    const char *body, *words;
} answers[] = {
    /* plain text */
    {"field 'currency' is missing", "field 'currency' is missing"},
    {"\n\n  unknown currency\r\nat line 7\n", "unknown currency"},
    {"[ERROR] out of stock", "[ERROR] out of stock"},
    {"\"a\" is not a currency", "\"a\" is not a currency"},
    {"error code: 1020", "error code: 1020"},
    {"\u901a\u8ca8\u304c\u3042\u308a\u307e\u305b\u3093", "\u901a\u8ca8\u304c\u3042\u308a\u307e\u305b\u3093"},
    {"", ""},
    {" \r\n\t ", ""},
    /* the usual fields */
    {"{\"message\":\"field 'currency' is missing\"}", "field 'currency' is missing"},
    {"{\"error\":\"unknown currency\"}", "unknown currency"},
    {"{\"ok\":false,\"error\":\"invalid_auth\"}", "invalid_auth"},
    {"{\"detail\":\"Not found.\"}", "Not found."},
    {"{\"code\":\"E_STOCK\"}", "E_STOCK"},
    {"{\"Message\":\"An error has occurred.\"}", "An error has occurred."},
    {"{\"errorMessage\":\"Task timed out\",\"errorType\":\"x\"}", "Task timed out"},
    {"\"just a string\"\n", "just a string"},
    {"\xef\xbb\xbf{\"message\":\"after a mark\"}", "after a mark"},
    /* RFC 9457 */
    {"{\"type\":\"https://example.com/probs/out-of-credit\",\"title\":\"You do not have enough credit.\","
     "\"detail\":\"Your balance is 30, but that costs 50.\",\"instance\":\"/account/12345/msgs/abc\"}",
     "You do not have enough credit. Your balance is 30, but that costs 50."},
    /* Stripe, Google, Slack, OAuth 2, Twilio, AWS, Salesforce, GitHub, SendGrid, Shopify */
    {"{\"error\":{\"code\":\"resource_missing\",\"doc_url\":\"https://stripe.com/docs\",\"message\":\"No such "
     "customer: 'cus_9s6XKzkNRiz8i3'\",\"param\":\"customer\",\"type\":\"invalid_request_error\"}}",
     "No such customer: 'cus_9s6XKzkNRiz8i3' (resource_missing)"},
    {"{\"error\":{\"code\":400,\"message\":\"Invalid value at 'price'\",\"status\":\"INVALID_ARGUMENT\"}}",
     "Invalid value at 'price'"},
    {"{\"error\":\"invalid_grant\",\"error_description\":\"Token has expired\"}",
     "Token has expired (invalid_grant)"},
    {"{\"code\":20003,\"message\":\"Authenticate\",\"more_info\":\"https://x\",\"status\":401}",
     "Authenticate (20003)"},
    {"{\"__type\":\"com.amazon.coral.validate#ValidationException\",\"message\":\"1 validation error\"}",
     "1 validation error (com.amazon.coral.validate#ValidationException)"},
    {"[{\"message\":\"Required fields are missing: [Name]\",\"errorCode\":\"REQUIRED_FIELD_MISSING\"}]",
     "Required fields are missing: [Name] (REQUIRED_FIELD_MISSING)"},
    {"{\"message\":\"Validation Failed\",\"errors\":[{\"resource\":\"Issue\",\"field\":\"title\","
     "\"code\":\"missing_field\"}]}",
     "Validation Failed: title (missing_field)"},
    {"{\"errors\":[{\"message\":\"The from email does not match\",\"field\":\"from\",\"help\":null}]}",
     "The from email does not match"},
    {"{\"errors\":{\"title\":[\"can't be blank\"]}}", "title: can't be blank"},
    {"{\"errors\":\"Not Found\"}", "Not Found"},
    /* Spring, NestJS, FastAPI, Laravel, Rails, Django, GraphQL, JSON:API, Mongoose, Express */
    {"{\"timestamp\":\"2026-11-16T08:00:00Z\",\"status\":400,\"error\":\"Bad Request\",\"message\":\"currency must "
     "not be blank\",\"path\":\"/orders\"}",
     "currency must not be blank"},
    {"{\"statusCode\":400,\"message\":[\"currency must be a string\",\"price must be positive\"],\"error\":\"Bad "
     "Request\"}",
     "currency must be a string"},
    {"{\"detail\":[{\"loc\":[\"body\",\"currency\"],\"msg\":\"field required\",\"type\":\"value_error.missing\"},"
     "{\"loc\":[\"body\",\"price\"],\"msg\":\"field required\"}]}",
     "currency: field required"},
    {"{\"message\":\"The given data was invalid.\",\"errors\":{\"currency\":[\"The currency field is "
     "required.\"]}}",
     "The given data was invalid. The currency field is required."},
    {"{\"errors\":[\"Currency can't be blank\",\"Price is not a number\"]}", "Currency can't be blank"},
    {"{\"errors\":{\"name\":[\"can't be blank\"],\"code\":[\"is taken\"]}}", "name: can't be blank"},
    {"{\"currency\":[\"This field is required.\"]}", "currency: This field is required."},
    {"{\"errors\":[{\"message\":\"Cannot query field 'x'\",\"locations\":[{\"line\":1}]}],\"data\":null}",
     "Cannot query field 'x'"},
    {"{\"errors\":[{\"status\":\"422\",\"source\":{\"pointer\":\"/data/attributes/currency\"},\"title\":\"Invalid "
     "Attribute\",\"detail\":\"must be given\"}]}",
     "/data/attributes/currency: must be given"},
    {"{\"errors\":{\"currency\":{\"message\":\"Path is required\",\"kind\":\"required\"}}}",
     "currency: Path is required"},
    {"{\"status\":\"fail\",\"data\":{\"title\":\"A title is required\"}}", "title: A title is required"},
    /* names with capitals, strokes and escapes */
    {"{\"Error-Message\":\"a\\u0062\\n\\\"c\\\"\"}", "ab \"c\""},
    /* nothing in it */
    {"{}", ""},
    {"[]", ""},
    {"{\"ok\":false}", ""},
    {"{\"message\":\"\"}", ""},
    {"{\"message\":null,\"error\":{\"message\":\"inner\"}}", "inner"},
    {"404", ""},
    /* cut, or not JSON to its end */
    {"{\"message\":\"whole\",\"trace\":\"cut he", "whole"},
    {"{\"trace\":\"cut he", "{\"trace\":\"cut he"},
    /* XML and HTML */
    {"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>502 Bad Gateway</h1></center>",
     "502 Bad Gateway"},
    {"<!DOCTYPE html><html lang=\"en\"><head><title>Error</title></head><body><pre>Cannot POST "
     "/orders</pre></body></html>",
     "Cannot POST /orders"},
    {"<HTML><H1 class='x'>Oops &amp; sorry</H1></HTML>", "Oops & sorry"},
    {"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>The specified key does not "
     "exist.</Message></Error>",
     "The specified key does not exist."},
    {"<soap:Envelope><soap:Body><soap:Fault><faultcode>soap:Client</faultcode><faultstring>Bad "
     "&lt;currency&gt;</faultstring>",
     "Bad <currency>"},
    {"<r><message><![CDATA[a < b]]></message></r>", "a < b"},
    {"<r><message> </message><title>second</title></r>", "second"},
    {"<html><body></body></html>", ""},
    {"<", ""},
    {"<title", ""},
    {"<title>", ""},
};

static void answers_give_their_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        char expected[HK_ANSWER_ERROR_MAX + 64];
        (void)snprintf(expected, sizeof expected,
                       answers[i].words[0] ? "HTTP 422: %s" : "the answer was HTTP 422", answers[i].words);
        const char *error = error_of(S(answers[i].body));
        NOTE_IF(strcmp(error, expected) != 0, "%s\n", answers[i].body);
        assert_string_equal(error, expected);
    }
}

/* ---- one printable line ---- */

static void check_line(struct hk_str error)
{
    assert_true(error.len < HK_ANSWER_ERROR_MAX);
    for (size_t at = 0; at < error.len;) {
        uint32_t c;
        at += hk_utf8_next((struct hk_str){error.ptr + at, error.len - at}, &c);
        assert_true(c != HK_UTF8_BAD && c >= ' ' && !hk_utf8_is_unruly(c));
    }
}

static void whatever_comes_is_one_printable_line(void **state)
{
    (void)state;

    static const struct {
        const char *body, *error;
    } rows[] = {
        {"a\tb\rc\vd", "HTTP 422: a b c d"},
        {"\x1b[31mred\x1b[0m", "HTTP 422: [31mred [0m"},
        {"{\"message\":\"two\\nlines \\u0000 \\u202eevil\\u200b\"}", "HTTP 422: two lines evil"},
        {"a\u2028b\u00a0c\u3000d", "HTTP 422: a b c d"},
        {"caf\xe9 is closed today", "HTTP 422: caf\xef\xbf\xbd is closed today"},
        {"\x83\x47\x83\x89\x81\x5b", "the answer was HTTP 422"}, /* Shift_JIS: nobody can read it here */
        {"\x1f\x8b\x08\xff\xfe\xfd\xfc", "the answer was HTTP 422"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *error = error_of(S(rows[i].body));
        assert_string_equal(error, rows[i].error);
        check_line(S(error));
    }
    assert_string_equal(error_of((struct hk_str){"a\0b", 3}), "the answer was HTTP 422");
}

static void a_huge_answer_is_cut_at_a_character(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        struct hk_buf body;
        hk_buf_init(&body, 1 << 20);
        for (size_t i = 0; i < shift; i++)
            (void)hk_buf_addc(&body, 'x');
        for (size_t i = 0; i < 100000; i++)
            (void)hk_buf_adds(&body, "\u901a");
        const char *error = error_of(hk_buf_str(&body));
        check_line(S(error));
        assert_true(strlen(error) <= HK_ANSWER_WORDS + 10);
        assert_true(strlen(error) > HK_ANSWER_WORDS);
        assert_string_equal(error + strlen(error) - 3, "\u2026");
        hk_buf_fini(&body);
    }
    /* one that just fits is whole */
    char body[HK_ANSWER_WORDS + 1];
    memset(body, 'a', sizeof body);
    const char *error = error_of((struct hk_str){body, HK_ANSWER_WORDS});
    assert_int_equal(strlen(error), HK_ANSWER_WORDS + 10);
    assert_int_equal(error[strlen(error) - 1], 'a');
    error = error_of((struct hk_str){body, HK_ANSWER_WORDS + 1});
    assert_string_equal(error + strlen(error) - 3, "\u2026");
}

static void deep_json_is_passed_over(void **state)
{
    (void)state;
    struct hk_buf body;
    hk_buf_init(&body, 1 << 16);
    (void)hk_buf_adds(&body, "{\"error\":");
    for (int i = 0; i < 400; i++)
        (void)hk_buf_adds(&body, i % 2 ? "[" : "{\"error\":");
    (void)hk_buf_adds(&body, "0");
    for (int i = 399; i >= 0; i--)
        (void)hk_buf_adds(&body, i % 2 ? "]" : "}");
    (void)hk_buf_adds(&body, ",\"message\":\"here\"}");
    assert_string_equal(error_of(hk_buf_str(&body)), "HTTP 422: here");
    hk_buf_fini(&body);
}

/* ---- masks ---- */

static const char *const paths[] = {"customer.email", "card", "message"};
static const char *const headers[] = {"x-api-key"};
static const struct hk_mask_rule rules[] = {
    {.event_type = "Order", .paths = paths, .n_paths = 3, .headers = headers, .n_headers = 1}};

#define PAYLOAD                                                                                              \
    "{\"customer\":{\"email\":\"jiro@example.jp\"},\"card\":\"4111 1111\\t2222\",\"item\":\"tea\"}"

static void masked_values_do_not_appear(void **state)
{
    (void)state;

    static const struct {
        const char *body, *error;
    } rows[] = {
        {"no mail to jiro@example.jp today", "HTTP 422: no mail to *** today"},
        {"{\"error\":\"bad address 'jiro\\u0040example.jp'\"}", "HTTP 422: bad address '***'"},
        {"{\"error\":\"card 4111 1111\\t2222 refused\"}", "HTTP 422: card *** refused"},
        {"<pre>key K-1234-5678 is wrong</pre>", "HTTP 422: key *** is wrong"},
        /* a masked path of the payload hides the same path of an answer */
        {"{\"message\":\"hello Jiro\",\"detail\":\"x\"}", "HTTP 422: ***: x"},
        {"{\"message\":{\"message\":\"cut he", "HTTP 422: ***"},
        {"tea is out of stock", "HTTP 422: tea is out of stock"},
    };

    struct hk_masks *masks = NULL;
    struct hk_err err;
    struct hk_str payload = S(PAYLOAD);
    const struct hk_mask_about about = {.event_type = S("Order"),
                                        .headers = S("{\"X-Api-Key\":\"K-1234-5678\"}"),
                                        .payloads = &payload,
                                        .n_payloads = 1};
    assert_int_equal(hk_masks_new(rules, COUNT(rules), &masks, &err), HK_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[HK_ANSWER_ERROR_MAX];
        (void)hk_answer_error(masks, &about, 422, S(rows[i].body), out);
        assert_string_equal(out, rows[i].error);
    }
    hk_masks_free(masks);
}

/* base64 of PAYLOAD's e-mail in JSON, and an older payload beside it */
#define CODED "eyJjdXN0b21lciI6eyJlbWFpbCI6Imppcm9AZXhhbXBsZS5qcCJ9fQ=="

static char shown_text[256];

static enum hk_code mask_about_letter(void)
{
    struct hk_masks *masks = NULL;
    struct hk_err err;
    struct hk_buf out;
    const struct hk_str payloads[] = {S("eyJjYXJkIjoiNTU1NSJ9"), S(CODED)};
    const struct hk_mask_about about = {
        .event_type = S("Order"), .encoding = S("BASE64"), .payloads = payloads, .n_payloads = 2};
    shown_text[0] = '\0';
    hk_buf_init(&out, 10000);
    enum hk_code rc = hk_masks_new(rules, COUNT(rules), &masks, &err);
    if (rc == HK_OK)
        rc = hk_mask_about(masks, &about, S("jiro@example.jp, once 5555"), &out);
    if (rc == HK_OK || out.len) /* also what a caller sees that looks at the buffer alone */
        (void)snprintf(shown_text, sizeof shown_text, "%s", hk_buf_cstr(&out));
    if (masks && rc != HK_OK)
        assert_int_not_equal(out.status, HK_OK);
    hk_masks_free(masks);
    hk_buf_fini(&out);
    assert_null(strstr(shown_text, "jiro"));
    return rc;
}

/* An undecoded payload would hide nothing. */
static void without_memory_nothing_is_shown(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(mask_about_letter, HK_OK) > 8);
    assert_int_equal(mask_about_letter(), HK_OK);
    assert_string_equal(shown_text, "***, once ***");
}

static enum hk_code answer_without_memory(void)
{
    struct hk_masks *masks = NULL;
    struct hk_err err;
    struct hk_str payload = S(CODED);
    const struct hk_mask_about about = {
        .event_type = S("Order"), .encoding = S("base64"), .payloads = &payload, .n_payloads = 1};
    char out[HK_ANSWER_ERROR_MAX];
    enum hk_code rc = hk_masks_new(rules, COUNT(rules), &masks, &err);
    if (rc != HK_OK)
        return rc;
    (void)hk_answer_error(masks, &about, 422, S("{\"error\":\"no jiro@example.jp\",\"code\":\"C\"}"), out);
    hk_masks_free(masks);
    assert_null(strstr(out, "jiro"));
    return strcmp(out, "HTTP 422: no *** (C)") == 0 ? HK_OK : HK_NOMEM;
}

static void an_answer_without_memory_says_its_status(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(answer_without_memory, HK_OK) > 8);
}

/* ---- groups ---- */

static const char *group_of(const char *body)
{
    static char out[2][HK_FINGERPRINT_MAX];
    static unsigned turn;
    char *at = out[turn++ % 2];
    hk_fingerprint(HK_CLASS_PERMANENT, S("HTTP_422"), S("billing"), S(error_of(S(body))), at);
    return at;
}

/* What differs from message to message does not make another group. */
static const struct {
    const char *a, *b;
} alike[] = {
    {"order 550e8400-e29b-41d4-a716-446655440000 not found",
     "order 6ba7b810-9dad-11d1-80b4-00c04fd430c8 not found"},
    {"request 01ARZ3NDEKTSV4RRFFQ69G5FAV failed", "request 01BX5ZZKBKACTAV9WEVGEMMVRZ failed"},
    {"request deadbeefcafebabe failed", "request 1f3870be274f6c49 failed"},
    {"id V1StGXR8_Z5jdHi6B-myT is taken", "id _9Kx-WvQ2_aB3dE5fG7h- is taken"},
    {"{\"message\":\"No such customer: 'cus_9s6XKzkNRiz8i3'\"}",
     "{\"message\":\"No such customer: 'cus_00aa'\"}"},
    {"amount 12.50 is too high", "amount -1,200 is too high"},
    {"amount $12 is too high", "amount $1,234.56 is too high"},
    {"mail to a@example.com bounced", "mail to taro.yamada+x@example.co.jp bounced"},
    {"invalid value 'Taro Yamada'", "invalid value 'Hanako Suzuki'"},
    {"invalid value '12.50'", "invalid value \"0.5\""},
    {"invalid values 'a1', 'b2'", "invalid values 'c3'"},
    {"expired at 2026-11-16T08:30:00.250Z", "expired at 2025-01-02T23:59:59Z"},
    {"expired at 2026-11-16T08:30:00+09:00", "expired at 2025-01-02T23:59:59Z"},
    {"expired at Mon, 16 Nov 2026 08:30:00 GMT", "expired at Tue, 1 Dec 2026 23:01:02 GMT"},
    {"expired on November 16, 2026", "expired on December 1, 2025"},
    {"try again in 1 minute", "try again in 5 minutes"},
    {"connect to 10.0.0.7:8443 failed", "connect to 192.168.100.12:80 failed"},
    {"unknown sku in items[0]", "unknown sku in items[17]"},
    {"'items[0].price' is negative", "'items[12].price' is negative"},
    {"signature dGhpcyBpcyBhIHNpZ25hdHVyZQ== is wrong", "signature QUJDREVGR0hJSktMTU5PUA== is wrong"},
    {"<title>Error 1020 ray 7d1c2f3a4b5c6d7e</title>", "<title>Error 1020 ray 8e2d3c4b5a697887</title>"},
    {"{\"message\":\"no\",\"code\":20003}", "{\"message\":\"no\",\"code\":21211}"},
    {"{\"message\":\"too large: 1048577 bytes\",\"request_id\":\"a1\"}",
     "{\"message\":\"too large: 1 byte\",\"request_id\":\"b2\"}"},
    {"\u6ce8\u6587123\u306f\u5b58\u5728\u3057\u307e\u305b\u3093",
     "\u6ce8\u6587\uff19\uff18\u306f\u5b58\u5728\u3057\u307e\u305b\u3093"},
    {"member \u300c\u5c71\u7530 \u592a\u90ce\u300d is gone",
     "member \u300c\u9234\u6728 \u82b1\u5b50\u300d is gone"},
    {"no mail to *** today", "no mail to jiro1@example.jp today"},
};

static const struct {
    const char *a, *b;
} unlike[] = {
    {"field 'currency' is missing", "field 'price' is missing"},
    {"field 'currency' is missing", "unknown currency"},
    {"field \"currency\" is missing", "field \"price\" is missing"},
    {"field `currency` is missing", "field `price` is missing"},
    {"'customer.address' is missing", "'customer.name' is missing"},
    {"'items[0].price' is missing", "'items[0].sku' is missing"},
    {"'/data/attributes/price' is missing", "'/data/attributes/sku' is missing"},
    {"\u300c\u901a\u8ca8\u300d\u3092\u5165\u529b\u3057\u3066\u304f\u3060\u3055\u3044",
     "\u300c\u4fa1\u683c\u300d\u3092\u5165\u529b\u3057\u3066\u304f\u3060\u3055\u3044"},
    {"{\"errors\":{\"currency\":[\"is required\"]}}", "{\"errors\":{\"price\":[\"is required\"]}}"},
    {"{\"detail\":[{\"loc\":[\"body\",\"currency\"],\"msg\":\"field required\"}]}",
     "{\"detail\":[{\"loc\":[\"body\",\"price\"],\"msg\":\"field required\"}]}"},
    {"{\"message\":\"declined\",\"code\":\"card_declined\"}",
     "{\"message\":\"declined\",\"code\":\"expired_card\"}"},
    {"you may not pay in March", "you may not pay in May"}, /* no date: no number beside it */
    {"", "field 'currency' is missing"},
    {"<title>502 Bad Gateway</title>", "<title>504 Gateway Time-out</title>"},
};

static void answers_that_say_the_same_are_one_group(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(alike); i++) {
        const char *a = group_of(alike[i].a), *b = group_of(alike[i].b);
        NOTE_IF(strcmp(a, b) != 0, "%s | %s\n", alike[i].a, alike[i].b);
        assert_string_equal(a, b);
    }
    for (size_t i = 0; i < COUNT(unlike); i++) {
        const char *a = group_of(unlike[i].a), *b = group_of(unlike[i].b);
        NOTE_IF(strcmp(a, b) == 0, "%s | %s\n", unlike[i].a, unlike[i].b);
        assert_string_not_equal(a, b);
    }
}

/* 10,000 answers with request ids, times, amounts and addresses of their own are one group. */
static void ten_thousand_answers_are_one_group(void **state)
{
    (void)state;
    char first[HK_FINGERPRINT_MAX] = "", body[512];
    uint64_t x = 1;
    for (int i = 0; i < 10000; i++) {
        uint64_t r[4];
        for (size_t k = 0; k < 4; k++)
            r[k] = x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        (void)snprintf(
            body, sizeof body,
            "{\"timestamp\":\"2026-%02u-%02uT%02u:%02u:%02uZ\",\"message\":\"field 'currency' is missing in "
            "order %08x-%04x-4%03x-8%03x-%012llx of %llx%s@example.com: amount %s%llu.%02u (request %016llx)\"}",
            (unsigned)(r[0] >> 8) % 12 + 1, (unsigned)(r[0] >> 16) % 28 + 1, (unsigned)(r[0] >> 24) % 24,
            (unsigned)(r[0] >> 32) % 60, (unsigned)(r[0] >> 40) % 60, (unsigned)(r[1] >> 32),
            (unsigned)(r[1] >> 16) & 0xffff, (unsigned)(r[2] >> 52), (unsigned)(r[2] >> 40) & 0xfff,
            (unsigned long long)r[2] & 0xffffffffffff, (unsigned long long)r[3] >> 20, i % 2 ? ".y" : "",
            i % 3 ? "" : "-", (unsigned long long)r[3] % 1000000, (unsigned)(r[1] >> 8) % 100,
            (unsigned long long)r[0]);
        const char *group = group_of(body);
        if (!first[0])
            memcpy(first, group, sizeof first);
        NOTE_IF(strcmp(first, group) != 0, "%s\n", body);
        assert_string_equal(first, group);
    }
}

static void the_status_is_read_back_from_what_is_kept(void **state)
{
    (void)state;

    static const struct {
        const char *cause, *error;
        int status;
    } kept[] = {
        {"HTTP_503", "", 503},
        {"HTTP_503", "HTTP 502: of a try before", 503},
        {"AUTH_FAILED", "HTTP 403: not you", 403},
        {"AUTH_FAILED", HK_ANSWER_SILENT "401", 401},
        {"RATE_LIMITED", "HTTP 429: slow down", 429},
        {"TIMEOUT", "no answer within 30 s", 0},
        {"TIMEOUT", "HTTP 5031: no status", 0},
        {"TIMEOUT", "HTTP 50", 0},
        {"HTTP_", "HTTP ", 0},
        {"", "", 0},
    };

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert_int_equal(hk_answer_status(S(kept[i].cause), S(kept[i].error)), kept[i].status);
    char error[HK_ANSWER_ERROR_MAX];
    assert_int_equal(hk_answer_status(S(""), hk_answer_error(NULL, &nothing, 418, S("tea"), error)), 418);
    assert_int_equal(hk_answer_status(S(""), hk_answer_error(NULL, &nothing, 418, S(""), error)), 418);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_give_their_words),
        cmocka_unit_test(whatever_comes_is_one_printable_line),
        cmocka_unit_test(a_huge_answer_is_cut_at_a_character),
        cmocka_unit_test(deep_json_is_passed_over),
        cmocka_unit_test(masked_values_do_not_appear),
        cmocka_unit_test(without_memory_nothing_is_shown),
        cmocka_unit_test(an_answer_without_memory_says_its_status),
        cmocka_unit_test(answers_that_say_the_same_are_one_group),
        cmocka_unit_test(ten_thousand_answers_are_one_group),
        cmocka_unit_test(the_status_is_read_back_from_what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
