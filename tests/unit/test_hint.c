/* SPDX-License-Identifier: Apache-2.0 */
/* The wait that an answer's headers ask for: Retry-After in every form, its kin, and the RateLimit fields. */
#include <inttypes.h>
#include <stdlib.h>

#include <hikyaku/policy.h>
#include <hikyaku/rng.h>

#include "base/parse.h"
#include "base/str.h"
#include "check.h"
#include "core/sfield.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }

/* 2026-11-15T08:30:00Z, a Sunday */
#define NOW INT64_C(1794731400000)
/* What stands in place of a wait when there is no hint. */
#define NONE      UINT64_MAX
#define UNTOUCHED UINT64_C(4711)
#define MOST      HK_DURATION_MAX_MS

static uint64_t hint_at(const struct hk_header *headers, size_t n, int64_t wall_ms)
{
    uint64_t ms = UNTOUCHED;
    if (hk_hint_ms(headers, n, wall_ms, &ms)) {
        assert_true(ms > 0 && ms <= MOST);
        return ms;
    }
    assert_true(ms == UNTOUCHED);
    return NONE;
}

static uint64_t hint(const struct hk_header *headers, size_t n)
{
    return hint_at(headers, n, NOW);
}

static void assert_hint(struct hk_str value, uint64_t want, uint64_t got)
{
    if (got != want)
        fail_msg("\"%.*s\": want %" PRIu64 ", got %" PRIu64, (int)value.len, value.ptr, want, got);
}

/* One header field, and the wait that comes of it. */
struct row {
    struct hk_str value;
    uint64_t ms;
};

static void check_rows(struct hk_str name, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hk_header header = {name, rows[i].value};
        assert_hint(rows[i].value, rows[i].ms, hint(&header, 1));
    }
}

static void retry_after_in_seconds(void **state)
{
    (void)state;

    static const struct row rows[] = {
        {S("1"), 1000},
        {S("7"), 7000},
        {S("120"), 120000},
        {S("007"), 7000},
        {S(" 7"), 7000},
        {S("7 \t"), 7000},
        {S("\t 7 "), 7000},
        {S("3600"), 3600000},
        {S("3155760000"), MOST},
        {S("3155759999"), MOST - 1000},
        {S("3155760001"), MOST},
        {S("18446744073709551"), MOST},
        {S("18446744073709552"), MOST}, /* times 1000 does not fit */
        {S("18446744073709551615"), MOST},
        {S("18446744073709551616"), MOST},
        {S("99999999999999999999999999999999999999999999999999"), MOST},
        {S("0"), NONE},
        {S("000"), NONE},
        {S(""), NONE},
        {S(" "), NONE},
        {S("-1"), NONE},
        {S("-0"), NONE},
        {S("+5"), NONE},
        {S("1.5"), NONE},
        {S("1."), NONE},
        {S(".5"), NONE},
        {S("1,5"), NONE},
        {S("0x10"), NONE},
        {S("1e3"), NONE},
        {S("5s"), NONE},
        {S("5 seconds"), NONE},
        {S("5;"), NONE},
        {S("5, 10"), NONE},
        {S("5 10"), NONE},
        {S("\"5\""), NONE},
        {S("5\0"), NONE},
        {S("5\0"
           "5"),
         NONE},
        {S("\0"
           "5"),
         NONE},
        {S("5\n"), NONE},
        {S("5\r"), NONE},
        {S("\v5"), NONE},
        {S("\xef\xbc\x95"), NONE}, /* a full-width five */
        {S("\xc2\xa0"
           "5"),
         NONE}, /* a no-break space */
        {S("99999999999999999999x"), NONE},
        {S("soon"), NONE},
        {S("NaN"), NONE},
        {{NULL, 0}, NONE},
    };

    check_rows((struct hk_str)S("Retry-After"), rows, COUNT(rows));
}

static void retry_after_as_a_date(void **state)
{
    (void)state;

    static const struct row rows[] = {
        /* IMF-fixdate */
        {S("Sun, 15 Nov 2026 08:30:07 GMT"), 7000},
        {S("  Sun, 15 Nov 2026 08:30:07 GMT\t"), 7000},
        {S("Sun, 15 Nov 2026 09:30:00 GMT"), 3600000},
        {S("Mon, 16 Nov 2026 08:30:00 GMT"), 86400000},
        {S("Tue, 29 Feb 2028 00:00:00 GMT"), UINT64_C(40663800000)},
        {S("Tue, 19 Jan 2038 03:14:08 GMT"), UINT64_C(352752248000)},
        {S("Fri, 31 Dec 9999 23:59:59 GMT"), MOST},
        {S("Sun, 15 Nov 2026 08:30:00 GMT"), NONE}, /* now is no wait */
        {S("Sun, 15 Nov 2026 08:29:59 GMT"), NONE},
        {S("Sun, 06 Nov 1994 08:49:37 GMT"), NONE},
        {S("Mon, 01 Jan 0001 00:00:00 GMT"), NONE},
        {S("Mon, 15 Nov 2026 08:30:07 GMT"), NONE}, /* wrong weekday */
        {S("Sun, 15 Nov 2026 08:30:07 gmt"), NONE},
        {S("Sun, 15 Nov 2026 08:30:07 UTC"), NONE},
        {S("Sun, 15 Nov 2026 08:30:07"), NONE},
        {S("Sun, 15 Nov 2026 08:30:07 GMT x"), NONE},
        {S("Sun, 15 Nov 2026 08:30:07 GMT\0"), NONE},
        {S("sun, 15 nov 2026 08:30:07 GMT"), NONE},
        {S("Mon, 29 Feb 2027 00:00:00 GMT"), NONE},
        {S("Sun, 15 Nov 2026 25:00:00 GMT"), NONE},
        {S("2026-11-15T08:30:07Z"), NONE},
        /* RFC 850: the year is at most 50 years ahead */
        {S("Sunday, 15-Nov-26 08:30:07 GMT"), 7000},
        {S("Sunday, 15-Nov-76 08:30:00 GMT"), UINT64_C(1577923200000)},
        {S("Monday, 15-Nov-76 08:30:01 GMT"), NONE}, /* 1976 */
        {S("Sunday, 06-Nov-94 08:49:37 GMT"), NONE}, /* 1994 */
        {S("Sun, 15-Nov-26 08:30:07 GMT"), NONE},
        {S("Monday, 15-Nov-26 08:30:07 GMT"), NONE},
        /* asctime */
        {S("Sun Nov 15 08:30:07 2026"), 7000},
        {S("Sun Dec  6 08:30:00 2026"), UINT64_C(1814400000)},
        {S("Sun Dec 6 08:30:00 2026"), NONE},
        {S("Sun Nov 15 08:30:07 2026 GMT"), NONE},
    };

    check_rows((struct hk_str)S("Retry-After"), rows, COUNT(rows));
}

static void milliseconds_are_digits_only(void **state)
{
    (void)state;

    static const struct {
        struct hk_str value;
        uint64_t ms;
    } cases[] = {
        {S("1"), 1},
        {S("1500"), 1500},
        {S(" 1500 "), 1500},
        {S("3155760000000"), MOST},
        {S("3155760000001"), MOST},
        {S("99999999999999999999999"), MOST},
        {S("0"), NONE},
        {S(""), NONE},
        {S("-1"), NONE},
        {S("+1"), NONE},
        {S("1.5"), NONE},
        {S("1500ms"), NONE},
        {S("1500\0"), NONE},
        {S("0x1"), NONE},
        {S("Sun, 15 Nov 2026 08:30:07 GMT"), NONE},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_header plain = {S("retry-after-ms"), cases[i].value};
        struct hk_header azure = {S("x-ms-retry-after-ms"), cases[i].value};
        assert_hint(cases[i].value, cases[i].ms, hint(&plain, 1));
        assert_hint(cases[i].value, cases[i].ms, hint(&azure, 1));
    }
}

struct line {
    const char *name, *value;
};

enum {
    LINES = 5
};

static uint64_t hint_of(const struct line lines[LINES], bool backwards)
{
    struct hk_header headers[LINES];
    size_t n = 0;
    for (size_t i = 0; i < LINES; i++) {
        const struct line *line = &lines[backwards ? LINES - 1 - i : i];
        if (line->name)
            headers[n++] = (struct hk_header){hk_str_of(line->name), hk_str_of(line->value)};
    }
    return hint(headers, n);
}

static void the_first_well_formed_field_decides(void **state)
{
    (void)state;

    static const struct {
        struct line lines[LINES];
        uint64_t ms;
    } cases[] = {
        {{{NULL, NULL}}, NONE},
        {{{"Content-Type", "7"}}, NONE},
        {{{"Retry-Afte", "7"}, {"Retry-After2", "7"}, {"", "7"}}, NONE},
        {{{"retry-after", "7"}}, 7000},
        {{{"RETRY-AFTER", "7"}}, 7000},
        {{{"Retry-After-MS", "7"}}, 7},
        {{{"X-MS-Retry-After-MS", "7"}}, 7},
        /* precedence, not size */
        {{{"Retry-After", "1"}, {"retry-after-ms", "9000"}}, 1000},
        {{{"Retry-After", "9"}, {"retry-after-ms", "1"}}, 9000},
        {{{"retry-after-ms", "2"}, {"x-ms-retry-after-ms", "9000"}}, 2},
        {{{"x-ms-retry-after-ms", "3"}, {"RateLimit", "\"a\";r=0;t=9"}}, 3},
        {{{"Retry-After", "1"}, {"RateLimit", "\"a\";r=0;t=9"}}, 1000},
        /* malformed is as good as absent */
        {{{"Retry-After", "soon"}, {"retry-after-ms", "9"}}, 9},
        {{{"Retry-After", ""}, {"retry-after-ms", "x"}, {"x-ms-retry-after-ms", "8"}}, 8},
        {{{"Retry-After", "-1"},
          {"retry-after-ms", "-1"},
          {"x-ms-retry-after-ms", "-1"},
          {"RateLimit", "a;r=0;t=2"}},
         2000},
        /* no wait asked for is an answer, too */
        {{{"Retry-After", "0"}, {"retry-after-ms", "9"}}, NONE},
        {{{"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}, {"retry-after-ms", "9"}}, NONE},
        {{{"retry-after-ms", "0"}, {"x-ms-retry-after-ms", "9"}}, NONE},
        {{{"x-ms-retry-after-ms", "0"}, {"RateLimit", "a;r=0;t=2"}}, NONE},
        /* the same header again: the larger, whichever comes first */
        {{{"Retry-After", "3"}, {"Retry-After", "5"}}, 5000},
        {{{"Retry-After", "3"}, {"retry-after", "0"}}, 3000},
        {{{"Retry-After", "3"}, {"Retry-After", "Sun, 15 Nov 2026 08:30:07 GMT"}}, 7000},
        {{{"Retry-After", "3"}, {"Retry-After", "later"}}, 3000},
        {{{"Retry-After", "x"}, {"Retry-After", "y"}, {"retry-after-ms", "4"}}, 4},
        {{{"retry-after-ms", "3"}, {"retry-after-ms", "5"}, {"retry-after-ms", "-"}}, 5},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t forwards = hint_of(cases[i].lines, false);
        NOTE_IF(forwards != cases[i].ms, "row %zu\n", i);
        assert_true(forwards == cases[i].ms);
        assert_true(hint_of(cases[i].lines, true) == cases[i].ms);
    }
}

static void no_clock_makes_a_date_overflow(void **state)
{
    (void)state;
    struct hk_header late = {S("Retry-After"), S("Fri, 31 Dec 9999 23:59:59 GMT")};
    struct hk_header early = {S("Retry-After"), S("Mon, 01 Jan 0001 00:00:00 GMT")};
    assert_true(hint_at(&late, 1, INT64_MIN) == MOST);
    assert_true(hint_at(&early, 1, INT64_MIN) == MOST);
    assert_true(hint_at(&late, 1, INT64_MAX) == NONE);
    assert_true(hint_at(&early, 1, INT64_MAX) == NONE);
    assert_true(hint_at(&late, 1, INT64_C(253402300798999)) == 1);
    assert_true(hint_at(&late, 1, INT64_C(253402300799000)) == NONE);
    assert_true(hint_at(&early, 1, INT64_C(-62135596800250)) == 250);
}

static void no_headers_no_hint(void **state)
{
    (void)state;
    assert_true(hint(NULL, 0) == NONE);
}

static void rate_limit_alone(void **state)
{
    (void)state;

    static const struct row rows[] = {
        {S("\"default\";r=0;t=30"), 30000},
        {S("\"default\";r=50;t=30"), NONE},
        {S("default;r=0;t=30"), 30000},
        {S("*star;r=0;t=30"), 30000},
        {S("a/b:c!#$%&'*+-.^_`|~;r=0;t=30"), 30000},
        {S("\"a\";t=30;r=0"), 30000},
        {S("  \"a\";r=0;t=30\t"), 30000},
        {S("\"a\"; r=0;  t=30"), 30000},
        {S("\"a\";r=0;t=30,\"b\";r=0;t=60"), 60000},
        {S("\"a\";r=0;t=60 , \t\"b\";r=0;t=30"), 60000},
        {S("\"a\";r=5;t=60, \"b\";r=0;t=30"), 30000},
        {S("\"a\";r=0, \"b\";r=0;t=30"), 30000},
        {S("\"\";r=0;t=30"), 30000},
        {S("\"q\\\"uo\\\\te\";r=0;t=30"), 30000},
        {S("\"comma, semi; r=1\";r=0;t=30"), 30000},
        {S("\"a\";r=0;t=0"), NONE},
        {S("\"a\";r=0"), NONE},
        {S("\"a\";r=-0;t=3"), 3000},
        {S("\"a\";r=0;t=999999999999999"), MOST},
        {S("\"a\";r=1;t=9;r=0"), 9000}, /* the last of a name wins */
        {S("\"a\";r=0;t=9;t=2"), 2000},
        {S("\"a\";r=00;t=007"), 7000},
        /* parameters that are not ours are skipped, whatever their type */
        {S("\"a\";pk=:cHsdsRa894==:;r=0;t=30"), 30000},
        {S("\"a\";pk=::;r=0;t=30"), 30000},
        {S("\"a\";pk=:YQ:;r=0;t=30"), 30000},
        {S("\"a\";r=0;x;t=30"), 30000},
        {S("\"a\";r=0;x=?1;y=?0;t=30"), 30000},
        {S("\"a\";r=0;x=1.5;y=-12.125;t=30"), 30000},
        {S("\"a\";r=0;x=123456789012.123;t=30"), 30000},
        {S("\"a\";r=0;x=\"t=99, \\\"r\";t=30"), 30000},
        {S("\"a\";r=0;x=tok/en:*;t=30"), 30000},
        {S("\"a\";r=0;x=@1659578233;t=30"), 30000},
        {S("\"a\";r=0;x=@-1;t=30"), 30000},
        {S("\"a\";r=0;x=%\"f%c3%bc\";t=30"), 30000},
        {S("\"a\";r=0;*x_-.*9=1;t=30"), 30000},
        {S("\"a\";r=0;tt=99;t=30"), 30000},
    };

    check_rows((struct hk_str)S("ratelimit"), rows, COUNT(rows));
}

/* The whole field counts for nothing. */
static void rate_limit_that_is_malformed(void **state)
{
    (void)state;

    static const struct row rows[] = {
        {S(""), NONE},
        {S(","), NONE},
        {S("\"a\";r=0;t=30,"), NONE},
        {S(",\"a\";r=0;t=30"), NONE},
        {S("\"a\";r=0;t=30,,\"b\";r=0;t=30"), NONE},
        {S("\"a\";r=0;t=30 \"b\";r=0;t=30"), NONE},
        {S("\"a\";r=0;t=30;"), NONE},
        {S("\"a\";;r=0;t=30"), NONE},
        {S("\"a\" ;r=0;t=30"), NONE},
        {S("\"a\";\tr=0;t=30"), NONE},
        {S("\"a\";r =0;t=30"), NONE},
        {S("\"a\";r= 0;t=30"), NONE},
        {S("\"a\";r=0;t="), NONE},
        {S("\"a\";R=0;T=30"), NONE},
        {S("\"a;r=0;t=30"), NONE},
        {S("a\";r=0;t=30"), NONE},
        {S("\"a\\n\";r=0;t=30"), NONE},
        {S("\"a\\"), NONE},
        {S("\"a\x7f\";r=0;t=30"), NONE},
        {S("\"a\0\";r=0;t=30"), NONE},
        {S("\"\xe9\xa3\x9b\";r=0;t=30"), NONE},
        {S("\"a\";r=0;t=30\0"), NONE},
        {S("a\0;r=0;t=30"), NONE},
        {S("a\0b;r=0;t=30"), NONE},
        {S("\"a\";t=30"), NONE}, /* r is required */
        {S("\"a\""), NONE},
        {S("\"a\";r=0;t=-1"), NONE},
        {S("\"a\";r=-1;t=30"), NONE},
        {S("\"a\";r;t=30"), NONE},
        {S("\"a\";r=0;t"), NONE},
        {S("\"a\";r=0.0;t=30"), NONE},
        {S("\"a\";r=0;t=1.5"), NONE},
        {S("\"a\";r=\"0\";t=30"), NONE},
        {S("\"a\";r=0;t=\"30\""), NONE},
        {S("\"a\";r=?0;t=30"), NONE},
        {S("\"a\";r=0;t=@30"), NONE},
        {S("\"a\";r=0;t=soon"), NONE},
        {S("\"a\";r=0;t=+30"), NONE},
        {S("\"a\";r=0;t=-"), NONE},
        {S("\"a\";r=0;t=1000000000000000"), NONE}, /* 16 digits are no integer here */
        {S("\"a\";r=0;t=30s"), NONE},
        {S("\"a\";r=0;t=30, b"), NONE},
        {S("\"a\";r=0;t=30, \"b\";r=x"), NONE},
        {S("\"a\";r=0;t=30;x=1.2345"), NONE},
        {S("\"a\";r=0;t=30;x=1."), NONE},
        {S("\"a\";r=0;t=30;x=1234567890123.1"), NONE},
        {S("\"a\";r=0;t=30;x=?2"), NONE},
        {S("\"a\";r=0;t=30;x=?"), NONE},
        {S("\"a\";r=0;t=30;x=:a"), NONE},
        {S("\"a\";r=0;t=30;x=:a b:"), NONE},
        {S("\"a\";r=0;t=30;x=:a===:"), NONE},
        {S("\"a\";r=0;t=30;x=:=a:"), NONE},
        {S("\"a\";r=0;t=30;x=@1.5"), NONE},
        {S("\"a\";r=0;t=30;x=@"), NONE},
        {S("\"a\";r=0;t=30;x=%\"%C3\""), NONE},
        {S("\"a\";r=0;t=30;x=%\"%c\""), NONE},
        {S("\"a\";r=0;t=30;x=%\"%"), NONE},
        {S("\"a\";r=0;t=30;x=%a"), NONE},
        {S("\"a\";r=0;t=30;9x=1"), NONE},
        {S("\"a\";r=0;t=30;-x=1"), NONE},
        {S("1;r=0;t=30"), NONE},
        {S("?1;r=0;t=30"), NONE},
        {S(":YQ==:;r=0;t=30"), NONE},
        {S("(\"a\" \"b\");r=0;t=30"), NONE},
        {S("limit=100, remaining=0, reset=30"), NONE}, /* an older draft's dictionary */
        {S("100;w=10"), NONE},
        {{NULL, 0}, NONE},
    };

    check_rows((struct hk_str)S("ratelimit"), rows, COUNT(rows));
}

static void rate_limit_with_policy_and_in_lines(void **state)
{
    (void)state;

    static const struct {
        struct line lines[LINES];
        uint64_t ms;
    } cases[] = {
        {{{"RateLimit", "\"default\";r=0"}, {"RateLimit-Policy", "\"default\";q=100;w=10"}}, 10000},
        {{{"ratelimit", "\"default\";r=0"}, {"ratelimit-policy", "\"default\";q=100;w=10"}}, 10000},
        {{{"RateLimit", "\"a\";r=0"}, {"RateLimit-Policy", "\"b\";q=9;w=1, \"a\";q=100;w=10"}}, 10000},
        {{{"RateLimit", "\"a\";r=0"},
          {"RateLimit-Policy", "\"b\";q=9;w=1"},
          {"RateLimit-Policy", "\"a\";q=1;w=7"}},
         7000},
        {{{"RateLimit", "\"a\";r=0"}, {"RateLimit-Policy", "\"b\";q=100;w=10"}}, NONE},
        {{{"RateLimit", "\"a\";r=0"}, {"RateLimit-Policy", "\"a\";q=100"}}, NONE},
        {{{"RateLimit", "\"a\";r=0"}, {"RateLimit-Policy", "\"a\";q=100;w=0"}}, NONE},
        {{{"RateLimit", "\"a\";r=0"}, {"RateLimit-Policy", "a;q=100;w=10"}}, NONE}, /* a token is no string */
        {{{"RateLimit", "a;r=0"}, {"RateLimit-Policy", "a;q=100;w=10"}}, 10000},
        {{{"RateLimit", "\"A\";r=0"}, {"RateLimit-Policy", "\"a\";q=100;w=10"}}, NONE},
        {{{"RateLimit", "\"\\\"\";r=0"}, {"RateLimit-Policy", "\"\\\"\";q=100;w=10"}}, 10000},
        {{{"RateLimit", "\"a\";r=3"}, {"RateLimit-Policy", "\"a\";q=100;w=10"}}, NONE},
        {{{"RateLimit-Policy", "\"a\";q=100;w=10"}}, NONE},
        /* t is nearer to the truth than w */
        {{{"RateLimit", "\"a\";r=0;t=3"}, {"RateLimit-Policy", "\"a\";q=100;w=10"}}, 3000},
        {{{"RateLimit", "\"a\";r=0;t=0"}, {"RateLimit-Policy", "\"a\";q=100;w=10"}}, NONE},
        {{{"RateLimit", "\"a\";r=0;t=3, \"b\";r=0"}, {"RateLimit-Policy", "\"b\";q=100;w=10"}}, 10000},
        /* a malformed policy is ignored, RateLimit is not */
        {{{"RateLimit", "\"a\";r=0;t=3, \"b\";r=0"}, {"RateLimit-Policy", "\"b\";q=100;w=x"}}, 3000},
        {{{"RateLimit", "\"a\";r=0"}, {"RateLimit-Policy", "\"a\";w=10"}}, NONE}, /* q is required */
        {{{"RateLimit", "\"a\";r=0"}, {"RateLimit-Policy", "\"a\";q=1;w=9"}, {"RateLimit-Policy", "!"}},
         NONE},
        {{{"RateLimit", "\"a\";r=0"},
          {"RateLimit-Policy", "\"a\";q=65535;qu=\"content-bytes\";w=10;pk=:sdfjLJUOUH==:"}},
         10000},
        {{{"RateLimit", "\"a\";r=0"},
          {"RateLimit-Policy", "\"a\";q=1;w=5"},
          {"RateLimit-Policy", "\"a\";q=1;w=4"}},
         5000},
        {{{"RateLimit", "\"a\";r=0;t=-1"}, {"RateLimit-Policy", "\"a\";q=1;w=9"}}, NONE}, /* not "no t" */
        /* lines of one name are one list */
        {{{"RateLimit", "\"a\";r=0;t=3"}, {"RateLimit", "\"b\";r=0;t=5"}}, 5000},
        {{{"RateLimit", "\"a\";r=0;t=3"}, {"RateLimit", ""}}, 3000},
        {{{"RateLimit", "\"a\";r=0;t=3"}, {"RateLimit", "oops oops"}}, NONE},
        {{{"RateLimit-Limit", "\"a\";r=0;t=3"}, {"X-RateLimit", "\"a\";r=0;t=3"}}, NONE},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t forwards = hint_of(cases[i].lines, false);
        NOTE_IF(forwards != cases[i].ms, "row %zu: %" PRIu64 "\n", i, forwards);
        assert_true(forwards == cases[i].ms);
        assert_true(hint_of(cases[i].lines, true) == cases[i].ms);
    }
}

static void rate_limit_takes_64_items_and_not_one_more(void **state)
{
    (void)state;
    char value[1024] = "";
    size_t len = 0;
    for (unsigned i = 1; i <= 65; i++) {
        len += (size_t)snprintf(value + len, sizeof value - len, "%sa;r=0;t=%u", i > 1 ? "," : "", i);
        struct hk_header header = {S("RateLimit"), {value, len}};
        assert_true(hint(&header, 1) == (i <= 64 ? i * UINT64_C(1000) : NONE));
    }
    struct hk_header lines[65];
    for (size_t i = 0; i < 65; i++) {
        lines[i] = (struct hk_header){S("RateLimit"), S("a;r=0;t=1")};
        assert_true(hint(lines, i + 1) == (i < 64 ? UINT64_C(1000) : NONE));
    }
}

/* Every prefix of a good field is either good or ignored, and none is read past its end (the copy is exact, so that
 * AddressSanitizer would tell). */
static void no_prefix_is_read_past_its_end(void **state)
{
    (void)state;
    static const char text[] = "\"a\\\"b\";r=0;t=30;x=:YQ==:;y=%\"%c3%bc\";z=-1.5;d=@1;b=?1, tok;r=0;t=2";
    for (size_t len = 0; len < sizeof text; len++) {
        char *copy = malloc(len ? len : 1);
        assert_non_null(copy);
        memcpy(copy, text, len);
        struct hk_header header = {S("RateLimit"), {copy, len}};
        uint64_t ms = hint(&header, 1);
        assert_true(ms == NONE || ms == 30000 || ms == 3000);
        header.name = (struct hk_str)S("Retry-After");
        assert_true(hint(&header, 1) == NONE);
        free(copy);
    }
}

static void structured_values_have_the_type_they_are_written_in(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        enum hk_sf_type type;
        int64_t integer;
        const char *rest;
    } cases[] = {
        {"0", HK_SF_INTEGER, 0, ""},
        {"-0", HK_SF_INTEGER, 0, ""},
        {"42;a", HK_SF_INTEGER, 42, ";a"},
        {"-999999999999999", HK_SF_INTEGER, INT64_C(-999999999999999), ""},
        {"999999999999999,", HK_SF_INTEGER, INT64_C(999999999999999), ","},
        {"1.5 ", HK_SF_DECIMAL, 1, " "},
        {"\"a b\"c", HK_SF_STRING, 0, "c"},
        {"a b", HK_SF_TOKEN, 0, " b"},
        {"*", HK_SF_TOKEN, 0, ""},
        {":YQ==:;", HK_SF_BYTES, 0, ";"},
        {"?1", HK_SF_BOOLEAN, 1, ""},
        {"?0", HK_SF_BOOLEAN, 0, ""},
        {"@-5", HK_SF_DATE, -5, ""},
        {"%\"a\"", HK_SF_DISPLAY, 0, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_str rest = hk_str_of(cases[i].text);
        struct hk_sf_value value;
        assert_true(hk_sf_read_value(&rest, &value));
        assert_int_equal(value.type, cases[i].type);
        assert_int_equal(value.integer, cases[i].integer);
        assert_true(hk_str_eq(rest, hk_str_of(cases[i].rest)));
        assert_int_equal(value.text.len, strlen(cases[i].text) - rest.len);
    }
}

static void a_list_goes_on_after_a_comma_only(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool ok, more;
    } cases[] = {
        {"", true, false},   {" \t", true, false},  {",a", true, true},  {" \t,\t a", true, true},
        {",", false, false}, {" , ", false, false}, {"a", false, false}, {";", false, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_str rest = hk_str_of(cases[i].text);
        bool more = false;
        assert_int_equal(hk_sf_read_comma(&rest, &more), cases[i].ok);
        if (!cases[i].ok)
            continue;
        assert_int_equal(more, cases[i].more);
        assert_true(hk_str_eq(rest, hk_str_of(cases[i].more ? "a" : "")));
    }
}

/* Random fields, built with their answer. */
static void random_well_formed_fields_give_the_latest_reset(void **state)
{
    (void)state;
    static const char *const noise[] = {
        "",        ";x",       ";x=?0",  ";pk=:AbC/+9==:",   ";s=\"r=0;t=9, \\\\\"",
        ";d=1.25", ";k=a/b:c", ";w=@12", ";u=%\"%e9%a3%9b\""};
    struct hk_rng rng;
    hk_rng_seed(&rng, 7, 0);
    for (int i = 0; i < 20000; i++) {
        char value[4096] = "";
        size_t len = 0;
        uint64_t most = 0, n = hk_rng_between(&rng, 1, 20);
        for (uint64_t k = 0; k < n; k++) {
            uint64_t r = hk_rng_upto(&rng, 2), t = hk_rng_upto(&rng, 100000);
            const char *before = noise[hk_rng_upto(&rng, COUNT(noise) - 1)];
            const char *after = noise[hk_rng_upto(&rng, COUNT(noise) - 1)];
            len += (size_t)snprintf(value + len, sizeof value - len,
                                    "%s\"n%" PRIu64 "\"%s;r=%" PRIu64 ";t=%" PRIu64 "%s",
                                    k ? (hk_rng_upto(&rng, 1) ? " ,\t" : ",") : "", k, before, r, t, after);
            most = r == 0 && t > most ? t : most;
        }
        struct hk_header header = {S("RateLimit"), {value, len}};
        assert_hint(header.value, most ? most * 1000 : NONE, hint(&header, 1));
    }
}

/* Beside the last good character of each class stands the first bad one. */
static void bad_characters_end_a_value_or_make_it_malformed(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        size_t len;
        bool ok;
        size_t left;
    } cases[] = {
        {"%\"a\x1f\"", 5, false, 0}, {"%\"a\x7f\"", 5, false, 0}, {"%\"\xe9\"", 4, false, 0},
        {"%\"%ff\"", 6, true, 0},    {"%\"%fg\"", 6, false, 0},   {"%\"%g0\"", 6, false, 0},
        {"%\"%FF\"", 6, false, 0},   {"%\"%4\"", 5, false, 0},    {"a{b", 3, true, 2},
        {"z9|~", 4, true, 0},        {"a\0b", 3, true, 2},        {"{", 1, false, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_str rest = {cases[i].text, cases[i].len};
        struct hk_sf_value value;
        NOTE_IF(hk_sf_read_value(&(struct hk_str){cases[i].text, cases[i].len}, &value) != cases[i].ok,
                "case %zu\n", i);
        assert_int_equal(hk_sf_read_value(&rest, &value), cases[i].ok);
        if (cases[i].ok)
            assert_int_equal(rest.len, cases[i].left);
    }
    /* the same where a parameter's name begins */
    struct hk_header header = {S("RateLimit"), S("a;r=0;t=2;{=1")};
    assert_hint(header.value, NONE, hint(&header, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_after_in_seconds),
        cmocka_unit_test(retry_after_as_a_date),
        cmocka_unit_test(milliseconds_are_digits_only),
        cmocka_unit_test(the_first_well_formed_field_decides),
        cmocka_unit_test(no_clock_makes_a_date_overflow),
        cmocka_unit_test(no_headers_no_hint),
        cmocka_unit_test(rate_limit_alone),
        cmocka_unit_test(rate_limit_that_is_malformed),
        cmocka_unit_test(rate_limit_with_policy_and_in_lines),
        cmocka_unit_test(rate_limit_takes_64_items_and_not_one_more),
        cmocka_unit_test(no_prefix_is_read_past_its_end),
        cmocka_unit_test(structured_values_have_the_type_they_are_written_in),
        cmocka_unit_test(a_list_goes_on_after_a_comma_only),
        cmocka_unit_test(random_well_formed_fields_give_the_latest_reset),
        cmocka_unit_test(bad_characters_end_a_value_or_make_it_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
