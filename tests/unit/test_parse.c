/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, durations, sizes and rates: what is taken, what is refused, and with which words. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include <hikyaku/rng.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "check.h"

/* A slice of a literal, which may hold NUL bytes. */
#define S(literal)                                                                                           \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }

enum {
    UNTOUCHED = 4711
};

/* A refusal says what was wrong: its code, its class, and a printable line that shows the input. */
static void assert_refused(enum hk_code want, enum hk_code got, const struct hk_err *err, struct hk_str input)
{
    if (got != want)
        fail_msg("%.*s: want %s, got %s", (int)input.len, input.ptr, hk_code_name(want), hk_code_name(got));
    assert_int_equal(err->code, want);
    assert_int_equal(err->errclass, HK_ERRCLASS_INPUT);
    char shown[HK_SHOW_MAX];
    if (!strstr(err->message, hk_show(input, shown)))
        fail_msg("the message \"%s\" does not show %s", err->message, shown);
    for (const char *c = err->message; *c; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
}

struct whole_case {
    struct hk_str text;
    enum hk_code rc;
    uint64_t value;
};

static void whole_numbers_are_digits_and_nothing_else(void **state)
{
    (void)state;
    static const struct whole_case cases[] = {
        {S("0"), HK_OK, 0},
        {S("7"), HK_OK, 7},
        {S("007"), HK_OK, 7},
        {S("00000000000000000000000000000001"), HK_OK, 1},
        {S("18446744073709551615"), HK_OK, UINT64_MAX},
        {S("18446744073709551616"), HK_RANGE, 0},
        {S("18446744073709551620"), HK_RANGE, 0},
        {S("99999999999999999999999999"), HK_RANGE, 0},
        {S(""), HK_INVALID, 0},
        {S(" 5"), HK_INVALID, 0},
        {S("5 "), HK_INVALID, 0},
        {S("+5"), HK_INVALID, 0},
        {S("-5"), HK_INVALID, 0},
        {S("-0"), HK_INVALID, 0},
        {S("0x5"), HK_INVALID, 0},
        {S("5a"), HK_INVALID, 0},
        {S("1_000"), HK_INVALID, 0},
        {S("1,000"), HK_INVALID, 0},
        {S("1.0"), HK_INVALID, 0},
        {S("1e3"), HK_INVALID, 0},
        {S("5\0"), HK_INVALID, 0},
        {S("\0"), HK_INVALID, 0},
        {S("\xd9\xa5"), HK_INVALID, 0},              /* an Arabic five */
        {S("\xef\xbc\x95"), HK_INVALID, 0},          /* a full-width five */
        {S("99999999999999999999x"), HK_INVALID, 0}, /* malformed comes before too large */
        {{NULL, 0}, HK_INVALID, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        uint64_t value = UNTOUCHED;
        enum hk_code rc = hk_parse_u64(cases[i].text, &value, &err);
        assert_int_equal(rc, hk_parse_u64(cases[i].text, &(uint64_t){0}, NULL));
        if (cases[i].rc != HK_OK) {
            assert_refused(cases[i].rc, rc, &err, cases[i].text);
            assert_int_equal(value, UNTOUCHED);
            continue;
        }
        assert_int_equal(rc, HK_OK);
        assert_true(value == cases[i].value);
        assert_int_equal(err.message[0], '\0');
    }
}

static void signed_numbers_take_one_minus(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        enum hk_code rc;
        int64_t value;
    } cases[] = {
        {S("0"), HK_OK, 0},
        {S("-0"), HK_OK, 0},
        {S("-1"), HK_OK, -1},
        {S("-0042"), HK_OK, -42},
        {S("9223372036854775807"), HK_OK, INT64_MAX},
        {S("-9223372036854775808"), HK_OK, INT64_MIN},
        {S("-9223372036854775807"), HK_OK, -INT64_MAX},
        {S("9223372036854775808"), HK_RANGE, 0},
        {S("-9223372036854775809"), HK_RANGE, 0},
        {S("-99999999999999999999999"), HK_RANGE, 0},
        {S(""), HK_INVALID, 0},
        {S("-"), HK_INVALID, 0},
        {S("--1"), HK_INVALID, 0},
        {S("+1"), HK_INVALID, 0},
        {S("- 1"), HK_INVALID, 0},
        {S("1-"), HK_INVALID, 0},
        {S("-0x1"), HK_INVALID, 0},
        {S("-1\0"), HK_INVALID, 0},
        {S("\xe2\x88\x92"
           "1"),
         HK_INVALID, 0}, /* a typographic minus */
        {{NULL, 0}, HK_INVALID, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        int64_t value = UNTOUCHED;
        enum hk_code rc = hk_parse_i64(cases[i].text, &value, &err);
        if (cases[i].rc != HK_OK) {
            assert_refused(cases[i].rc, rc, &err, cases[i].text);
            assert_int_equal(value, UNTOUCHED);
            continue;
        }
        assert_int_equal(rc, HK_OK);
        assert_true(value == cases[i].value);
    }
}

static void whole_numbers_read_back_what_printf_wrote(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 1, 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t u = hk_rng_next(&rng) >> hk_rng_upto(&rng, 63);
        int64_t s = (int64_t)u;
        char text[32];
        uint64_t u_read;
        int64_t s_read;
        snprintf(text, sizeof text, "%" PRIu64, u);
        assert_int_equal(hk_parse_u64(hk_str_of(text), &u_read, NULL), HK_OK);
        assert_true(u_read == u);
        snprintf(text, sizeof text, "%" PRId64, s);
        assert_int_equal(hk_parse_i64(hk_str_of(text), &s_read, NULL), HK_OK);
        assert_true(s_read == s);
    }
}

static void decimals_are_exact_and_bounded(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        enum hk_code rc;
        double value;
    } cases[] = {
        {S("0"), HK_OK, 0},
        {S("0.0"), HK_OK, 0},
        {S("000.000"), HK_OK, 0},
        {S("1"), HK_OK, 1},
        {S("1.5"), HK_OK, 1.5},
        {S("0.1"), HK_OK, 0.1},
        {S("0.2"), HK_OK, 0.2},
        {S("0.30000000000000004"), HK_OK, 0.30000000000000004},
        {S("00.50"), HK_OK, 0.5},
        {S("10"), HK_OK, 10},
        {S("1000000000000000000000"), HK_OK, 1e21}, /* one significant digit */
        {S("1.00000000000000000000000000000000"), HK_OK, 1},
        {S("9007199254740993"), HK_OK, 9007199254740992.0}, /* half to even */
        {S("9007199254740995"), HK_OK, 9007199254740996.0},
        {S("12345678901234567"), HK_OK, 12345678901234568.0},
        {S("123456789012345678"), HK_RANGE, 0},
        {S("1.23456789012345678"), HK_RANGE, 0},
        {S("0.00000000000000000000000000000001"), HK_OK, 1e-32},
        {S(""), HK_INVALID, 0},
        {S("."), HK_INVALID, 0},
        {S(".5"), HK_INVALID, 0},
        {S("5."), HK_INVALID, 0},
        {S("1.2.3"), HK_INVALID, 0},
        {S("1,5"), HK_INVALID, 0},
        {S("-1"), HK_INVALID, 0},
        {S("+1"), HK_INVALID, 0},
        {S("1e5"), HK_INVALID, 0},
        {S("1.5e5"), HK_INVALID, 0},
        {S("0x1"), HK_INVALID, 0},
        {S("inf"), HK_INVALID, 0},
        {S("nan"), HK_INVALID, 0},
        {S(" 1"), HK_INVALID, 0},
        {S("1 "), HK_INVALID, 0},
        {S("1\0"), HK_INVALID, 0},
        {S("1.\0"), HK_INVALID, 0},
        {{NULL, 0}, HK_INVALID, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        double value = UNTOUCHED;
        enum hk_code rc = hk_parse_decimal(cases[i].text, &value, &err);
        if (cases[i].rc != HK_OK) {
            assert_refused(cases[i].rc, rc, &err, cases[i].text);
            assert_true(value == UNTOUCHED);
            continue;
        }
        assert_int_equal(rc, HK_OK);
        assert_true(value == cases[i].value);
    }
}

static void decimals_beyond_a_double_are_out_of_range(void **state)
{
    (void)state;
    static char text[20002];
    double value = UNTOUCHED;
    memset(text, '0', sizeof text);
    text[0] = '1';
    assert_int_equal(hk_parse_decimal((struct hk_str){text, 309}, &value, NULL), HK_OK);
    assert_true(value == 1e308);
    value = UNTOUCHED;
    assert_int_equal(hk_parse_decimal((struct hk_str){text, 310}, &value, NULL), HK_RANGE);
    assert_int_equal(hk_parse_decimal((struct hk_str){text, sizeof text}, &value, NULL), HK_RANGE);
    text[0] = '0';
    text[1] = '.';
    text[sizeof text - 1] = '1';
    assert_int_equal(hk_parse_decimal((struct hk_str){text, sizeof text}, &value, NULL), HK_RANGE);
    assert_true(value == UNTOUCHED);
}

/* strtod rounds correctly; the text given to it here is the plain one, not ours. */
static void decimals_agree_with_the_c_library(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 2, 0);
    for (int i = 0; i < 100000; i++) {
        char text[64];
        uint64_t whole = hk_rng_next(&rng) >> hk_rng_between(&rng, 34, 63);
        uint64_t fraction = hk_rng_upto(&rng, 9999999);
        snprintf(text, sizeof text, "%" PRIu64 ".%0*" PRIu64, whole, 7, fraction);
        double value;
        assert_int_equal(hk_parse_decimal(hk_str_of(text), &value, NULL), HK_OK);
        assert_true(value == strtod(text, NULL));
    }
}

/* Where no such locale is installed this proves nothing, and says so. */
static void decimals_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip();
    double value;
    enum hk_code rc = hk_parse_decimal(hk_str_of("1.5"), &value, NULL);
    enum hk_code comma = hk_parse_decimal(hk_str_of("1,5"), &(double){0}, NULL);
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(rc, HK_OK);
    assert_true(value == 1.5);
    assert_int_equal(comma, HK_INVALID);
}

static void durations_that_are_taken(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"0ms", 0},
        {"0us", 0},
        {"0.0s", 0},
        {"0w0d0h0m0s0ms0us", 0},
        {"1ms", 1},
        {"250ms", 250},
        {"999ms", 999},
        {"1000ms", 1000},
        {"1s", 1000},
        {"90s", 90000},
        {"1m", 60000},
        {"90m", 5400000},
        {"1h", 3600000},
        {"1d", 86400000},
        {"2d", 172800000},
        {"1w", 604800000},
        {"007s", 7000},
        {"1h30m", 5400000},
        {"1h30s", 3630000},
        {"1w2d3h4m5s6ms", 788645006},
        {"1w2d3h4m5s6ms7000us", 788645013},
        {"1d1ms", 86400001},
        {"1m1ms", 60001}, /* m then ms: not m, m, s */
        {"1.5s", 1500},
        {"0.5s", 500},
        {"1.001s", 1001},
        {"1.500s", 1500},
        {"1.5000000000000000000000000000000s", 1500},
        {"0.25h", 900000},
        {"0.1w", 60480000},
        {"0.0009765625w", 590625}, /* 1/1024 week, exactly */
        {"1h1.5m", 3690000},
        {"1000us", 1},
        {"1ms1000us", 2},
        {"1.0ms", 1},
        {"2000.0us", 2},
        {"36525d", HK_DURATION_MAX_MS},
        {"3155760000000ms", HK_DURATION_MAX_MS},
        {"3155760000000000us", HK_DURATION_MAX_MS},
        {"5217w6d", HK_DURATION_MAX_MS},
        {"00000000000000000000000000000000001s", 1000},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        uint64_t ms = UNTOUCHED;
        enum hk_code rc = hk_parse_duration(hk_str_of(cases[i].text), &ms, &err);
        if (rc != HK_OK || ms != cases[i].ms)
            fail_msg("%s: %s, %" PRIu64 " ms: %s", cases[i].text, hk_code_name(rc), ms, err.message);
        assert_int_equal(err.message[0], '\0');
    }
}

static void durations_that_are_refused(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        enum hk_code rc;
        const char *says; /* NULL: anything */
    } cases[] = {
        {S(""), HK_INVALID, "like 30s"},
        {S("90"), HK_INVALID, "\"90\" has no unit: write 90s, 90ms, 90m"},
        {S("00"), HK_INVALID, "no unit"},
        {S("1"), HK_INVALID, "write 1s"},
        {S("1.5"), HK_INVALID, "without a unit"},
        {S("0.0"), HK_INVALID, "without a unit"},
        {S("1h30"), HK_INVALID, "without a unit"},
        {S("99999999999999999999999999"), HK_INVALID, "without a unit"},
        {S("s"), HK_INVALID, "not a duration"},
        {S("ms"), HK_INVALID, NULL},
        {S("."), HK_INVALID, NULL},
        {S(".s"), HK_INVALID, NULL},
        {S(".5s"), HK_INVALID, "not a duration"},
        {S("5.s"), HK_INVALID, "not a duration"},
        {S("1..5s"), HK_INVALID, NULL},
        {S("1.5.5s"), HK_INVALID, NULL},
        {S("-5s"), HK_INVALID, "not a duration"},
        {S("+5s"), HK_INVALID, NULL},
        {S(" 5s"), HK_INVALID, NULL},
        {S("5s "), HK_INVALID, "unknown unit \"s \""},
        {S("5 s"), HK_INVALID, "unknown unit \" s\""},
        {S("1h 30m"), HK_INVALID, "unknown unit"},
        {S("1h,30m"), HK_INVALID, NULL},
        {S("5x"), HK_INVALID, "unknown unit \"x\": use w, d, h"},
        {S("5S"), HK_INVALID, "unknown unit \"S\""},
        {S("5M"), HK_INVALID, "unknown unit"},
        {S("5H"), HK_INVALID, "unknown unit"},
        {S("5sec"), HK_INVALID, "unknown unit \"sec\""},
        {S("5min"), HK_INVALID, "unknown unit"},
        {S("5ns"), HK_INVALID, "unknown unit"},
        {S("1y"), HK_INVALID, "unknown unit"},
        {S("5\xc2\xb5s"), HK_INVALID, "unknown unit"},
        {S("30\xe7\xa7\x92"), HK_INVALID, "30\xe7\xa7\x92"},
        {S("P1D"), HK_INVALID, NULL},
        {S("PT5S"), HK_INVALID, NULL},
        {S("1e3s"), HK_INVALID, "unknown unit \"e\""},
        {S("0x10s"), HK_INVALID, NULL},
        {S("1_000s"), HK_INVALID, NULL},
        {S("1,5s"), HK_INVALID, NULL},
        {S("30m1h"), HK_INVALID, "has h after m: write the larger unit first"},
        {S("1s1m"), HK_INVALID, "larger unit first"},
        {S("1us1ms"), HK_INVALID, "larger unit first"},
        {S("1h1h"), HK_INVALID, "the unit h twice"},
        {S("1s2s"), HK_INVALID, "twice"},
        {S("1.5h30m"), HK_INVALID, "only the last number"},
        {S("1.0h30m"), HK_INVALID, "only the last number"},
        {S("1h-30m"), HK_INVALID, NULL},
        {S("never"), HK_INVALID, NULL},
        {S("5s\0"), HK_INVALID, "\\x00"},
        {S("5\0s"), HK_INVALID, NULL},
        {S("\0"), HK_INVALID, NULL},
        {S("5s\n"), HK_INVALID, "\\x0a"},
        {S("5s\x1b[31m"), HK_INVALID, "\\x1b[31m"},
        {S("1us"), HK_RANGE, "whole number of milliseconds"},
        {S("999us"), HK_RANGE, "whole number of milliseconds"},
        {S("1500us"), HK_RANGE, "milliseconds"},
        {S("1ms1us"), HK_RANGE, "milliseconds"},
        {S("0.5ms"), HK_RANGE, "milliseconds"},
        {S("1.0005s"), HK_RANGE, "milliseconds"},
        {S("0.1us"), HK_RANGE, "milliseconds"},
        {S("0.00000000000000000000001w"), HK_RANGE, "milliseconds"},
        {S("0.3333333333333h"), HK_RANGE, "milliseconds"},
        {S("36525d1ms"), HK_RANGE, "too long: at most 36525d"},
        {S("36526d"), HK_RANGE, "too long"},
        {S("5218w"), HK_RANGE, "too long"},
        {S("36525.5d"), HK_RANGE, "too long"},
        {S("3155760000001ms"), HK_RANGE, "too long"},
        {S("18446744073709551616s"), HK_RANGE, "too long"},
        {S("99999999999999999999999999999999s"), HK_RANGE, "too long"},
        {S("99999999999999999999999999999999w99999999999999999999999999999d"), HK_RANGE, "too long"},
        {S("99999999999999999999999999999999s5x"), HK_INVALID, "unknown unit"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        uint64_t ms = UNTOUCHED;
        enum hk_code rc = hk_parse_duration(cases[i].text, &ms, &err);
        assert_refused(cases[i].rc, rc, &err, cases[i].text);
        assert_int_equal(ms, UNTOUCHED);
        if (cases[i].says && !strstr(err.message, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.message, cases[i].says);
        assert_int_equal(hk_parse_duration(cases[i].text, &ms, NULL), rc);
    }
}

static void durations_are_written_as_people_would(void **state)
{
    (void)state;

    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "1ms"},
        {250, "250ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1001, "1.001s"},
        {1010, "1.01s"},
        {1500, "1.5s"},
        {59999, "59.999s"},
        {60000, "1m"},
        {60250, "1m250ms"},
        {61500, "1m1.5s"},
        {90000, "1m30s"},
        {5400000, "1h30m"},
        {86400000, "1d"},
        {90000000, "1d1h"},
        {604800000, "1w"},
        {1209600000, "2w"},
        {1213200000, "2w1h"},
        {7776000000, "90d"},
        {2592000000, "30d"},
        {HK_DURATION_MAX_MS, "36525d"},
        {UINT64_MAX, "213503982334d14h25m51.615s"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[HK_DURATION_TEXT_MAX];
        size_t len = hk_format_duration(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(len, strlen(text));
    }
}

static void assert_duration_round_trip(uint64_t ms)
{
    char text[HK_DURATION_TEXT_MAX];
    uint64_t back = UNTOUCHED;
    size_t len = hk_format_duration(ms, text);
    assert_int_equal(len, strlen(text));
    enum hk_code rc = hk_parse_duration((struct hk_str){text, len}, &back, NULL);
    if (rc != HK_OK || back != ms)
        fail_msg("%" PRIu64 " -> %s -> %s %" PRIu64, ms, text, hk_code_name(rc), back);
}

static void durations_read_back_what_was_written(void **state)
{
    (void)state;
    static const uint64_t edges[] = {1, 1000, 60000, 3600000, 86400000, 604800000, HK_DURATION_MAX_MS};
    struct hk_rng rng;
    hk_rng_seed(&rng, 3, 0);
    for (size_t i = 0; i < COUNT(edges); i++) {
        assert_duration_round_trip(edges[i] - 1);
        assert_duration_round_trip(edges[i]);
        if (edges[i] < HK_DURATION_MAX_MS)
            assert_duration_round_trip(edges[i] + 1);
    }
    for (uint64_t ms = 0; ms < 70000; ms++)
        assert_duration_round_trip(ms);
    for (int i = 0; i < 200000; i++)
        assert_duration_round_trip(hk_rng_upto(&rng, HK_DURATION_MAX_MS) >> hk_rng_upto(&rng, 41));
}

/* Any mix of units in falling order adds up. */
static void durations_are_the_sum_of_their_parts(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {{"w", UINT64_C(604800000000)},
                 {"d", UINT64_C(86400000000)},
                 {"h", UINT64_C(3600000000)},
                 {"m", 60000000},
                 {"s", 1000000},
                 {"ms", 1000},
                 {"us", 1}};
    struct hk_rng rng;
    hk_rng_seed(&rng, 4, 0);
    for (int i = 0; i < 50000; i++) {
        char text[256] = "";
        size_t len = 0;
        uint64_t us = 0;
        for (size_t u = 0; u < COUNT(units); u++) {
            if (hk_rng_upto(&rng, 1) == 0)
                continue;
            uint64_t n = hk_rng_upto(&rng, 700) * (u == 6 ? 500 : 1);
            len += (size_t)snprintf(text + len, sizeof text - len, "%" PRIu64 "%s", n, units[u].name);
            us += n * units[u].us;
        }
        uint64_t ms = UNTOUCHED;
        enum hk_code rc = hk_parse_duration(hk_str_of(text), &ms, NULL);
        enum hk_code want = len == 0 ? HK_INVALID : us % 1000 ? HK_RANGE : HK_OK;
        if (rc != want || (rc == HK_OK && ms != us / 1000))
            fail_msg("%s: %s %" PRIu64, text, hk_code_name(rc), ms);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct whole_case cases[] = {
        {S("0"), HK_OK, 0},
        {S("512"), HK_OK, 512},
        {S("512B"), HK_OK, 512},
        {S("64KiB"), HK_OK, 65536},
        {S("4MiB"), HK_OK, 4194304},
        {S("1GiB"), HK_OK, 1073741824},
        {S("1KB"), HK_OK, 1000},
        {S("5MB"), HK_OK, 5000000},
        {S("2GB"), HK_OK, 2000000000},
        {S("010KB"), HK_OK, 10000},
        {S("18446744073709551615"), HK_OK, UINT64_MAX},
        {S("17179869183GiB"), HK_OK, UINT64_C(17179869183) << 30},
        {S("17179869184GiB"), HK_RANGE, 0},
        {S("18446744073709551616"), HK_RANGE, 0},
        {S("99999999999999999999999GB"), HK_RANGE, 0},
        {S(""), HK_INVALID, 0},
        {S("B"), HK_INVALID, 0},
        {S("KiB"), HK_INVALID, 0},
        {S("4 MiB"), HK_INVALID, 0},
        {S("4MiB "), HK_INVALID, 0},
        {S(" 4MiB"), HK_INVALID, 0},
        {S("4mib"), HK_INVALID, 0},
        {S("4kB"), HK_INVALID, 0},
        {S("4K"), HK_INVALID, 0},
        {S("4M"), HK_INVALID, 0},
        {S("1.5MiB"), HK_INVALID, 0},
        {S("-1"), HK_INVALID, 0},
        {S("+1"), HK_INVALID, 0},
        {S("4MiBB"), HK_INVALID, 0},
        {S("4MiB4KiB"), HK_INVALID, 0},
        {S("4Mi"), HK_INVALID, 0},
        {S("4MiB\0"), HK_INVALID, 0},
        {S("0x10"), HK_INVALID, 0},
        {{NULL, 0}, HK_INVALID, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        uint64_t bytes = UNTOUCHED;
        enum hk_code rc = hk_parse_size(cases[i].text, &bytes, &err);
        if (cases[i].rc != HK_OK) {
            assert_refused(cases[i].rc, rc, &err, cases[i].text);
            assert_int_equal(bytes, UNTOUCHED);
            continue;
        }
        assert_int_equal(rc, HK_OK);
        assert_true(bytes == cases[i].value);
    }
}

static void rates(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        enum hk_code rc;
        double per_s;
    } cases[] = {
        {S("100/s"), HK_OK, 100},
        {S("6000/m"), HK_OK, 100},
        {S("1800/h"), HK_OK, 0.5},
        {S("0.5/s"), HK_OK, 0.5},
        {S("1/m"), HK_OK, 1.0 / 60},
        {S("0/s"), HK_OK, 0},
        {S("123456789012345678/s"), HK_RANGE, 0},
        {S(""), HK_INVALID, 0},
        {S("/"), HK_INVALID, 0},
        {S("100"), HK_INVALID, 0},
        {S("100/"), HK_INVALID, 0},
        {S("/s"), HK_INVALID, 0},
        {S("100/d"), HK_INVALID, 0},
        {S("100/S"), HK_INVALID, 0},
        {S("100/sec"), HK_INVALID, 0},
        {S("100/5s"), HK_INVALID, 0},
        {S("100 / s"), HK_INVALID, 0},
        {S("100/s/s"), HK_INVALID, 0},
        {S("100//s"), HK_INVALID, 0},
        {S("-1/s"), HK_INVALID, 0},
        {S("1e3/s"), HK_INVALID, 0},
        {S("1/s\0"), HK_INVALID, 0},
        {S("123456789012345678/x"), HK_INVALID, 0},
        {{NULL, 0}, HK_INVALID, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        double per_s = UNTOUCHED;
        enum hk_code rc = hk_parse_rate(cases[i].text, &per_s, &err);
        if (cases[i].rc != HK_OK) {
            assert_refused(cases[i].rc, rc, &err, cases[i].text);
            assert_true(per_s == UNTOUCHED);
            continue;
        }
        assert_int_equal(rc, HK_OK);
        assert_true(per_s == cases[i].per_s);
    }
}

static void shown_text_is_quoted_short_and_harmless(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        const char *shown;
    } cases[] = {
        {{NULL, 0}, "\"\""},
        {S("plain"), "\"plain\""},
        {S("a\"b\\c"), "\"a\\\"b\\\\c\""},
        {S("\0\t\n\x1b\x7f"), "\"\\x00\\x09\\x0a\\x1b\\x7f\""},
        {S("\xe9\xa3\x9b\xe8\x84\x9a"), "\"\xe9\xa3\x9b\xe8\x84\x9a\""},
        {S("a\xff\xe9\xa3"), "\"a\\xff\\xe9\\xa3\""},
        {S("\xc2\x9b"
           "2J"),
         "\"\\u{009b}2J\""},                      /* a C1 control, CSI */
        {S("a\xe2\x80\xaez"), "\"a\\u{202e}z\""}, /* right-to-left override */
        {S("\xef\xbb\xbf"), "\"\\u{feff}\""},
        {S("\xf3\xa0\x80\x81"), "\"\\u{e0001}\""}, /* a tag character */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char shown[HK_SHOW_MAX];
        assert_ptr_equal(hk_show(cases[i].text, shown), shown);
        assert_string_equal(shown, cases[i].shown);
    }
}

static void shown_text_never_outgrows_its_room(void **state)
{
    (void)state;
    static const char *const fillers[] = {
        "a", "\"", "\x01", "\xff", "\xe9\xa3\x9b", "\xf4\x8f\xbf\xbf", "\xe2\x80\xae"};
    char text[400];
    for (size_t f = 0; f < COUNT(fillers); f++) {
        size_t unit = strlen(fillers[f]), len = 0;
        while (len + unit <= sizeof text) {
            memcpy(text + len, fillers[f], unit);
            len += unit;
            char shown[HK_SHOW_MAX];
            memset(shown, 'x', sizeof shown);
            hk_show((struct hk_str){text, len}, shown);
            size_t n = strnlen(shown, sizeof shown);
            assert_true(n < sizeof shown);
            assert_int_equal(shown[n - 1], '"');
            bool cut = n >= 5 && memcmp(shown + n - 4, "\xe2\x80\xa6", 3) == 0;
            assert_true(cut || len < sizeof shown);
            assert_true(!cut || n > sizeof shown - 20); /* cut only when it had to be */
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_digits_and_nothing_else),
        cmocka_unit_test(signed_numbers_take_one_minus),
        cmocka_unit_test(whole_numbers_read_back_what_printf_wrote),
        cmocka_unit_test(decimals_are_exact_and_bounded),
        cmocka_unit_test(decimals_beyond_a_double_are_out_of_range),
        cmocka_unit_test(decimals_agree_with_the_c_library),
        cmocka_unit_test(decimals_do_not_depend_on_the_locale),
        cmocka_unit_test(durations_that_are_taken),
        cmocka_unit_test(durations_that_are_refused),
        cmocka_unit_test(durations_are_written_as_people_would),
        cmocka_unit_test(durations_read_back_what_was_written),
        cmocka_unit_test(durations_are_the_sum_of_their_parts),
        cmocka_unit_test(sizes),
        cmocka_unit_test(rates),
        cmocka_unit_test(shown_text_is_quoted_short_and_harmless),
        cmocka_unit_test(shown_text_never_outgrows_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
