/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer, judged by a reader that somebody else wrote (jansson), and byte by byte where form matters. */
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hikyaku/alloc.h>
#include <hikyaku/rng.h>
#include <jansson.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "check.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }

enum {
    BIG = 1 << 22
};

/* One of everything. */
static void write_sample(struct hk_json *json)
{
    hk_json_object(json);
    hk_json_key(json, "id");
    hk_json_u64(json, UINT64_MAX);
    hk_json_key(json, "low");
    hk_json_i64(json, INT64_MIN);
    hk_json_key(json, "empty");
    hk_json_array(json);
    hk_json_end(json);
    hk_json_key(json, "none");
    hk_json_object(json);
    hk_json_end(json);
    hk_json_key(json, "list");
    hk_json_array(json);
    hk_json_bool(json, true);
    hk_json_bool(json, false);
    hk_json_null(json);
    hk_json_double(json, 0.1);
    hk_json_array(json);
    hk_json_cstr(json, "a\"b");
    hk_json_end(json);
    hk_json_end(json);
    hk_json_key(json, "raw");
    hk_json_raw(json, hk_str_of("{ \"x\" : [1] }"));
    hk_json_key(json, "gone");
    hk_json_cstr(json, NULL);
    hk_json_end(json);
}

static void compact_and_pretty_forms(void **state)
{
    (void)state;
    struct hk_buf buf;
    struct hk_json json;
    hk_buf_init(&buf, BIG);
    hk_json_init(&json, &buf, false);
    write_sample(&json);
    assert_string_equal(hk_buf_cstr(&buf),
                        "{\"id\":18446744073709551615,\"low\":-9223372036854775808,\"empty\":[],\"none\":{},"
                        "\"list\":[true,false,null,0.1,[\"a\\\"b\"]],\"raw\":{ \"x\" : [1] },\"gone\":null}");
    hk_buf_reset(&buf);
    hk_json_init(&json, &buf, true);
    write_sample(&json);
    assert_string_equal(hk_buf_cstr(&buf), "{\n"
                                           "  \"id\": 18446744073709551615,\n"
                                           "  \"low\": -9223372036854775808,\n"
                                           "  \"empty\": [],\n"
                                           "  \"none\": {},\n"
                                           "  \"list\": [\n"
                                           "    true,\n"
                                           "    false,\n"
                                           "    null,\n"
                                           "    0.1,\n"
                                           "    [\n"
                                           "      \"a\\\"b\"\n"
                                           "    ]\n"
                                           "  ],\n"
                                           "  \"raw\": { \"x\" : [1] },\n"
                                           "  \"gone\": null\n"
                                           "}");
    assert_int_equal(hk_buf_status(&buf), HK_OK);
    hk_buf_fini(&buf);
}

#define BAD "\xef\xbf\xbd"

static void strings_are_escaped_and_repaired(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        const char *json;
    } cases[] = {
        {{NULL, 0}, "\"\""},
        {S(""), "\"\""},
        {S("plain"), "\"plain\""},
        {S("\"\\/"), "\"\\\"\\\\/\""},
        {S("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
        {S("\0\x01\x1f\x7f"), "\"\\u0000\\u0001\\u001f\\u007f\""},
        {S("\xc2\x9b"
           "2J"),
         "\"\\u009b2J\""},                                                      /* C1: moves a cursor */
        {S("\xe2\x80\xae\xe2\x81\xa6"), "\"\\u202e\\u2066\""},                  /* turns a line around */
        {S("a\xe2\x80\x8b\xef\xbb\xbf\xc2\xad"), "\"a\\u200b\\ufeff\\u00ad\""}, /* not to be seen */
        {S("\xe2\x80\xa8\xf3\xa0\x81\x81"), "\"\\u2028\\udb40\\udc41\""},
        {S("a\nb\nc"), "\"a\\nb\\nc\""},
        {S("\xe9\xa3\x9b\xe8\x84\x9a"), "\"\xe9\xa3\x9b\xe8\x84\x9a\""},
        {S("\xf0\x9f\x93\xae"), "\"\xf0\x9f\x93\xae\""},
        {S("\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
         "\"\\u0080\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""},
        {S("\x80"), "\"" BAD "\""},
        {S("\xff\xfe"), "\"" BAD BAD "\""},
        {S("\xc0\xaf"), "\"" BAD BAD "\""},                 /* overlong */
        {S("\xe0\x80\xaf"), "\"" BAD BAD BAD "\""},         /* overlong */
        {S("\xed\xa0\x80"), "\"" BAD BAD BAD "\""},         /* surrogate */
        {S("\xf4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\""}, /* past U+10FFFF */
        {S("\xf5"), "\"" BAD "\""},
        {S("\xe2\x82"), "\"" BAD "\""}, /* cut short: one for the whole start */
        {S("\xe2\x82z"), "\"" BAD "z\""},
        {S("\xf0\x9f\x93"), "\"" BAD "\""},
        {S("\xf0\x9f\xf0\x9f\x93\xae"), "\"" BAD "\xf0\x9f\x93\xae\""},
        {S("\xc2"), "\"" BAD "\""},
        {S("\xc2\""), "\"" BAD "\\\"\""},
        /* the examples of the Unicode standard, tables 3-8 to 3-11 */
        {S("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), "\"" BAD BAD BAD BAD BAD BAD BAD BAD "A\""},
        {S("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), "\"" BAD BAD BAD BAD BAD BAD BAD BAD "A\""},
        {S("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"), "\"" BAD BAD BAD BAD BAD "A" BAD BAD "B\""},
        {S("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), "\"" BAD BAD BAD BAD "A\""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_buf buf;
        struct hk_json json;
        hk_buf_init(&buf, BIG);
        hk_json_init(&json, &buf, false);
        hk_json_str(&json, cases[i].text);
        NOTE_IF(strcmp(hk_buf_cstr(&buf), cases[i].json) != 0, "row %zu\n", i);
        assert_string_equal(hk_buf_cstr(&buf), cases[i].json);
        hk_buf_fini(&buf);
    }
}

static void keys_are_escaped_like_strings(void **state)
{
    (void)state;
    struct hk_buf buf;
    struct hk_json json;
    hk_buf_init(&buf, BIG);
    hk_json_init(&json, &buf, false);
    hk_json_object(&json);
    hk_json_key(&json, "a\"\n\xff");
    hk_json_raw(&json, (struct hk_str){NULL, 0}); /* nothing at all is written as null */
    hk_json_end(&json);
    assert_string_equal(hk_buf_cstr(&buf), "{\"a\\\"\\n" BAD "\":null}");
    hk_buf_fini(&buf);
}

/* Every code point in its shortest form is kept; every one of its prefixes is one bad character. */
static void every_character_survives_and_none_is_cut(void **state)
{
    (void)state;
    for (uint32_t c = 0x80; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c <= 0xdfff)
            continue;
        unsigned char b[4];
        size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        for (size_t i = n; i-- > 1;)
            b[i] = (unsigned char)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
        b[0] = (unsigned char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | c >> (6 * (n - 1)));
        uint32_t read;
        assert_int_equal(hk_utf8_next((struct hk_str){(const char *)b, n}, &read), n);
        assert_int_equal(read, c);
        for (size_t cut = 1; cut < n; cut++) {
            assert_int_equal(hk_utf8_next((struct hk_str){(const char *)b, cut}, &read), cut);
            assert_true(read == HK_UTF8_BAD);
        }
    }
}

static const char *double_text(struct hk_buf *buf, double value)
{
    struct hk_json json;
    hk_buf_reset(buf);
    hk_json_init(&json, buf, false);
    hk_json_double(&json, value);
    return hk_buf_cstr(buf);
}

static void doubles_are_short(void **state)
{
    (void)state;

    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.2, "0.2"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {100, "100"},
        {123456789012345, "123456789012345"},
        {9007199254740992.0, "9007199254740992"},
        {1e21, "1e+21"},
        {1e-7, "1e-07"},
        {5e-324, "5e-324"},
        {1e-320, "1e-320"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {NAN, "null"},
    };
    struct hk_buf buf;
    hk_buf_init(&buf, BIG);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(double_text(&buf, cases[i].value), cases[i].text);
    hk_buf_fini(&buf);
}

static double random_double(struct hk_rng *rng)
{
    double value;
    do {
        uint64_t bits = hk_rng_next(rng);
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return hk_rng_upto(rng, 1) ? value : (double)(int64_t)hk_rng_next(rng) / 1024;
}

static void doubles_read_back_exactly(void **state)
{
    (void)state;
    struct hk_rng rng;
    struct hk_buf buf;
    hk_rng_seed(&rng, 8, 0);
    hk_buf_init(&buf, BIG);
    for (int i = 0; i < 100000; i++) {
        double value = random_double(&rng);
        const char *text = double_text(&buf, value);
        assert_true(strtod(text, NULL) == value);
        json_t *read = json_loads(text, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(read);
        assert_true(json_number_value(read) == value);
        json_decref(read);
    }
    hk_buf_fini(&buf);
}

/* Where no such locale is installed this proves nothing, and says so. */
static void doubles_have_a_point_in_every_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip();
    struct hk_buf buf;
    hk_buf_init(&buf, BIG);
    double_text(&buf, -1234.5e-20);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(hk_buf_cstr(&buf), "-1.2345e-17");
    hk_buf_fini(&buf);
}

/* ---- random documents, built once for us and once for jansson ---- */

static size_t random_text(struct hk_rng *rng, char *out)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "\"",
                                         "\\",
                                         "/",
                                         "\n",
                                         "\t",
                                         "\x01",
                                         "\x1f",
                                         "\x7f",
                                         "\xc2\xa0",
                                         "\xe9\xa3\x9b",
                                         "\xe2\x80\xa8",
                                         "\xf0\x9f\x93\xae",
                                         "</",
                                         "{",
                                         "]"};
    size_t len = 0;
    for (uint64_t n = hk_rng_upto(rng, 12); n > 0; n--) {
        const char *piece = pieces[hk_rng_upto(rng, COUNT(pieces) - 1)];
        memcpy(out + len, piece, strlen(piece));
        len += strlen(piece);
        if (hk_rng_upto(rng, 15) == 0)
            out[len++] = '\0';
    }
    return len;
}

static json_t *write_scalar(struct hk_rng *rng, struct hk_json *json)
{
    char text[128];
    int64_t whole = (int64_t)hk_rng_next(rng) >> hk_rng_upto(rng, 63);
    double real = random_double(rng);
    size_t len = random_text(rng, text);
    switch (hk_rng_upto(rng, 5)) {
    case 0:
        hk_json_null(json);
        return json_null();
    case 1:
        hk_json_bool(json, whole & 1);
        return json_boolean(whole & 1);
    case 2:
        hk_json_i64(json, whole);
        return json_integer(whole);
    case 3:
        hk_json_u64(json, (uint64_t)whole >> 1);
        return json_integer((json_int_t)((uint64_t)whole >> 1));
    case 4:
        if (rint(real) == real && fabs(real) < 1e18)
            real += 0.5; /* a whole number would be read back as an integer */
        if (rint(real) == real && fabs(real) < 1e18)
            real = 0.5;
        hk_json_double(json, real);
        return json_real(real);
    default:
        hk_json_str(json, (struct hk_str){text, len});
        return json_stringn(text, len);
    }
}

static json_t *write_value(struct hk_rng *rng, struct hk_json *json, unsigned depth)
{
    uint64_t kind = hk_rng_upto(rng, 3);
    if (depth == HK_JSON_DEPTH || kind > 1)
        return write_scalar(rng, json);
    json_t *node = kind ? json_object() : json_array();
    if (kind)
        hk_json_object(json);
    else
        hk_json_array(json);
    for (uint64_t i = 0, n = hk_rng_upto(rng, depth < 3 ? 6 : 3); i < n; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s%" PRIu64, hk_rng_upto(rng, 1) ? "k" : "\"\xe9\xa3\x9b\n", i);
        if (kind)
            hk_json_key(json, key);
        json_t *child = write_value(rng, json, depth + 1);
        assert_int_equal(kind ? json_object_set_new(node, key, child) : json_array_append_new(node, child),
                         0);
    }
    hk_json_end(json);
    return node;
}

static void random_documents_are_read_back_by_a_strangers_reader(void **state)
{
    (void)state;
    struct hk_rng rng;
    struct hk_buf buf;
    hk_rng_seed(&rng, 9, 0);
    hk_buf_init(&buf, BIG);
    for (int i = 0; i < 5000; i++) {
        struct hk_json json;
        hk_buf_reset(&buf);
        hk_json_init(&json, &buf, i % 2);
        json_t *want = write_value(&rng, &json, 0);
        assert_int_equal(hk_buf_status(&buf), HK_OK);
        assert_int_equal(json.depth, 0);
        json_error_t why;
        struct hk_str text = hk_buf_str(&buf);
        json_t *read =
            json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
        if (!read)
            fail_msg("%s in %s", why.text, text.ptr);
        assert_true(json_equal(read, want));
        json_decref(read);
        json_decref(want);
    }
    hk_buf_fini(&buf);
}

/* Whatever bytes come, what goes out is valid: jansson refuses bad UTF-8 and bare controls. */
static void random_bytes_become_a_valid_string(void **state)
{
    (void)state;
    struct hk_rng rng;
    struct hk_buf buf;
    hk_rng_seed(&rng, 10, 0);
    hk_buf_init(&buf, BIG);
    for (int i = 0; i < 30000; i++) {
        char bytes[40];
        size_t len = (size_t)hk_rng_upto(&rng, sizeof bytes);
        for (size_t k = 0; k < len; k++) /* mostly lead and continuation bytes */
            bytes[k] =
                (char)(hk_rng_upto(&rng, 3) ? 0x80 + hk_rng_upto(&rng, 0x7f) : hk_rng_upto(&rng, 0x7f));
        struct hk_json json;
        hk_buf_reset(&buf);
        hk_json_init(&json, &buf, false);
        hk_json_str(&json, (struct hk_str){bytes, len});
        struct hk_str text = hk_buf_str(&buf);
        json_t *read = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(read);
        json_t *plain = json_stringn(bytes, len); /* NULL unless it was UTF-8 */
        assert_true(!plain || json_equal(plain, read));
        json_decref(plain);
        json_decref(read);
    }
    hk_buf_fini(&buf);
}

static void thirty_two_levels_fit(void **state)
{
    (void)state;
    struct hk_buf buf;
    struct hk_json json;
    hk_buf_init(&buf, BIG);
    hk_json_init(&json, &buf, true);
    for (int i = 0; i < HK_JSON_DEPTH; i++)
        hk_json_array(&json);
    for (int i = 0; i < HK_JSON_DEPTH; i++)
        hk_json_end(&json);
    json_t *read = json_loads(hk_buf_cstr(&buf), 0, NULL);
    assert_non_null(read);
    json_decref(read);
    hk_buf_fini(&buf);
}

/* ---- misuse ---- */

static void misuse_too_deep(struct hk_json *json)
{
    for (int i = 0; i <= HK_JSON_DEPTH; i++)
        hk_json_array(json);
}

static void misuse_value_without_key(struct hk_json *json)
{
    hk_json_object(json);
    hk_json_null(json);
}

static void misuse_key_in_array(struct hk_json *json)
{
    hk_json_array(json);
    hk_json_key(json, "k");
}

static void misuse_key_at_top(struct hk_json *json)
{
    hk_json_key(json, "k");
}

static void misuse_two_keys(struct hk_json *json)
{
    hk_json_object(json);
    hk_json_key(json, "k");
    hk_json_key(json, "k");
}

static void misuse_end_after_key(struct hk_json *json)
{
    hk_json_object(json);
    hk_json_key(json, "k");
    hk_json_end(json);
}

static void misuse_end_at_top(struct hk_json *json)
{
    hk_json_end(json);
}

static void misuse_is_an_assertion(void **state)
{
    (void)state;
    static void (*const misuses[])(struct hk_json *) = {
        misuse_too_deep, misuse_value_without_key, misuse_key_in_array, misuse_key_at_top,
        misuse_two_keys, misuse_end_after_key,     misuse_end_at_top,
    };
    for (size_t i = 0; i < COUNT(misuses); i++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct hk_buf buf;
            struct hk_json json;
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO);
            hk_buf_init(&buf, BIG);
            hk_json_init(&json, &buf, false);
            misuses[i](&json);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        NOTE_IF(!WIFSIGNALED(status), "misuse %zu went unnoticed\n", i);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* ---- the buffer's errors ---- */

static void a_document_over_the_maximum_is_refused(void **state)
{
    (void)state;
    struct hk_buf whole;
    struct hk_json json;
    hk_buf_init(&whole, BIG);
    hk_json_init(&json, &whole, true);
    write_sample(&json);
    for (size_t max = 0; max <= whole.len + 1; max++) {
        struct hk_buf buf;
        hk_buf_init(&buf, max);
        hk_json_init(&json, &buf, true);
        write_sample(&json);
        assert_int_equal(hk_buf_status(&buf), max < whole.len ? HK_TOOBIG : HK_OK);
        assert_true(buf.len <= max);
        assert_memory_equal(hk_buf_cstr(&buf), hk_buf_cstr(&whole), buf.len); /* a prefix, nothing skipped */
        hk_buf_fini(&buf);
    }
    hk_buf_fini(&whole);
}

/* Allocation number `fail_at` fails, and with `for_ever` all that follow. */
struct faults {
    size_t fail_at, seen, live;
    bool for_ever;
};

static void *faulty_resize(void *arg, void *ptr, size_t bytes)
{
    struct faults *faults = arg;
    size_t number = faults->seen++;
    if (number == faults->fail_at || (faults->for_ever && number > faults->fail_at))
        return NULL;
    void *now = realloc(ptr, bytes);
    faults->live += now && !ptr;
    return now;
}

static void faulty_release(void *arg, void *ptr)
{
    struct faults *faults = arg;
    faults->live--;
    free(ptr);
}

/* Writes under an allocator that fails; false when it did not come to that. */
static bool fails_cleanly(size_t fail_at, bool for_ever)
{
    struct faults faults = {.fail_at = fail_at, .for_ever = for_ever};
    struct hk_allocator allocator = {faulty_resize, faulty_release, &faults};
    struct hk_buf buf;
    struct hk_json json;
    hk_allocator_set(&allocator);
    hk_buf_init(&buf, BIG);
    hk_json_init(&json, &buf, true);
    write_sample(&json);
    write_sample(&json);
    enum hk_code rc = hk_buf_status(&buf);
    hk_buf_fini(&buf);
    hk_allocator_set(NULL);
    assert_int_equal(faults.live, 0);
    assert_int_equal(rc, faults.seen > fail_at ? HK_NOMEM : HK_OK);
    return rc != HK_OK;
}

static void out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    size_t k = 0;
    while (fails_cleanly(k, false) && fails_cleanly(k, true))
        k++;
    assert_true(k > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compact_and_pretty_forms),
        cmocka_unit_test(strings_are_escaped_and_repaired),
        cmocka_unit_test(keys_are_escaped_like_strings),
        cmocka_unit_test(every_character_survives_and_none_is_cut),
        cmocka_unit_test(doubles_are_short),
        cmocka_unit_test(doubles_read_back_exactly),
        cmocka_unit_test(doubles_have_a_point_in_every_locale),
        cmocka_unit_test(random_documents_are_read_back_by_a_strangers_reader),
        cmocka_unit_test(random_bytes_become_a_valid_string),
        cmocka_unit_test(thirty_two_levels_fit),
        cmocka_unit_test(misuse_is_an_assertion),
        cmocka_unit_test(a_document_over_the_maximum_is_refused),
        cmocka_unit_test(out_of_memory_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
