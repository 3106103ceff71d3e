/* SPDX-License-Identifier: Apache-2.0 */
/* Times as text: RFC 3339 and the three HTTP forms, checked against tables and against the C library's calendar. */
#define _DEFAULT_SOURCE /* timegm */
#include <inttypes.h>
#include <time.h>

#include <hikyaku/rng.h>

#include "base/parse.h"
#include "base/str.h"
#include "check.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }

#define YEAR_1    INT64_C(-62135596800000)
#define YEAR_9999 INT64_C(253402300799999)
#define UNTOUCHED INT64_C(-4711)

static void assert_refused(enum hk_code want, enum hk_code got, const struct hk_err *err, struct hk_str text)
{
    if (got != want)
        fail_msg("%.*s: want %s, got %s", (int)text.len, text.ptr, hk_code_name(want), hk_code_name(got));
    assert_int_equal(err->code, want);
    assert_int_equal(err->message[0], '"');
    for (const char *c = err->message; *c; c++)
        assert_true((unsigned char)*c >= 0x20);
}

static void rfc3339_times_that_are_taken(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.000Z", 0},
        {"1970-01-01T00:00:00.001Z", 1},
        {"1969-12-31T23:59:59.999Z", -1},
        {"1969-12-31T23:59:59Z", -1000},
        {"2026-11-15T08:30:00.250Z", INT64_C(1794731400250)},
        {"2026-11-15t08:30:00.250z", INT64_C(1794731400250)},
        {"2026-11-15 08:30:00.250Z", INT64_C(1794731400250)},
        {"2026-11-15T17:30:00.250+09:00", INT64_C(1794731400250)},
        {"2026-11-15T03:00:00.250-05:30", INT64_C(1794731400250)},
        {"2026-11-15T08:30:00.250+00:00", INT64_C(1794731400250)},
        {"2026-11-15T08:30:00.250-00:00", INT64_C(1794731400250)},
        {"2026-11-16T08:29:00.250+23:59", INT64_C(1794731400250)},
        {"2026-11-14T08:31:00.250-23:59", INT64_C(1794731400250)},
        {"2026-11-15T08:30:00.25Z", INT64_C(1794731400250)},
        {"2026-11-15T08:30:00.2Z", INT64_C(1794731400200)},
        {"2026-11-15T08:30:00.2509Z", INT64_C(1794731400250)}, /* cut, not rounded */
        {"2026-11-15T08:30:00.250999999999999999999999999999999Z", INT64_C(1794731400250)},
        {"2026-11-15T08:30:00.002Z", INT64_C(1794731400002)},
        {"2000-02-29T00:00:00Z", INT64_C(951782400000)},
        {"2024-02-29T12:00:00Z", INT64_C(1709208000000)},
        {"2038-01-19T03:14:08Z", INT64_C(2147483648000)},
        {"2106-02-07T06:28:16Z", INT64_C(4294967296000)},
        {"1901-12-13T20:45:51Z", INT64_C(-2147483649000)},
        {"0001-01-01T00:00:00Z", YEAR_1},
        {"9999-12-31T23:59:59.999Z", YEAR_9999},
        {"9999-12-31T23:59:59.999999Z", YEAR_9999},
        {"0001-01-01T01:00:00+01:00", YEAR_1},
        {"9999-12-31T22:59:59.999-01:00", YEAR_9999},
        /* leap seconds: the next second's start, whatever the fraction */
        {"1990-12-31T23:59:60Z", INT64_C(662688000000)},
        {"1990-12-31T15:59:60-08:00", INT64_C(662688000000)},
        {"1991-01-01T08:59:60+09:00", INT64_C(662688000000)},
        {"2016-12-31T23:59:60.999Z", INT64_C(1483228800000)},
        {"1972-06-30T23:59:60Z", INT64_C(78796800000)},
        {"1969-06-30T23:59:60.5Z", INT64_C(-15897600000)},
        {"2024-02-29T23:59:60Z", INT64_C(1709251200000)},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        int64_t ms = UNTOUCHED;
        enum hk_code rc = hk_parse_rfc3339(hk_str_of(cases[i].text), &ms, &err);
        if (rc != HK_OK || ms != cases[i].ms)
            fail_msg("%s: %s %" PRId64 " %s", cases[i].text, hk_code_name(rc), ms, err.message);
    }
}

static void rfc3339_times_that_are_refused(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        enum hk_code rc;
        const char *says;
    } cases[] = {
        {{NULL, 0}, HK_INVALID, "YYYY-MM-DD"},
        {S(""), HK_INVALID, NULL},
        {S("2026"), HK_INVALID, "YYYY-MM-DD"},
        {S("2026-11-15"), HK_INVALID, "after the date"},
        {S("2026-11-15T"), HK_INVALID, NULL},
        {S("2026-11-15T08:30Z"), HK_INVALID, "hh:mm:ss"},
        {S("2026-11-15T08:30:00"), HK_INVALID, "no offset"},
        {S("2026-11-15T08:30:00.5"), HK_INVALID, "no offset"},
        {S("2026-11-15T08:30:00.Z"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00,5Z"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00.5.5Z"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00ZZ"), HK_INVALID, "behind the offset"},
        {S("2026-11-15T08:30:00Z "), HK_INVALID, "behind the offset"},
        {S(" 2026-11-15T08:30:00Z"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00 Z"), HK_INVALID, NULL},
        {S("2026-11-15  08:30:00Z"), HK_INVALID, NULL},
        {S("2026-11-15_08:30:00Z"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00Z\0"), HK_INVALID, "\\x00"},
        {S("2026-11-15T08:30:00\0"), HK_INVALID, NULL},
        {S("2026-11-15\0"
           "08:30:00Z"),
         HK_INVALID, NULL},
        {S("2026-11-15T08:30:00+0900"), HK_INVALID, "like +09:00"},
        {S("2026-11-15T08:30:00+09"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00+9:00"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00+24:00"), HK_INVALID, "no such offset"},
        {S("2026-11-15T08:30:00+09:60"), HK_INVALID, "no such offset"},
        {S("2026-11-15T08:30:00\xe2\x88\x92"
           "05:00"),
         HK_INVALID, NULL},
        {S("2026-11-15T08:30:00JST"), HK_INVALID, NULL},
        {S("2026-11-15T08:30:00 +09:00"), HK_INVALID, NULL},
        {S("2026-00-15T08:30:00Z"), HK_INVALID, "no such month"},
        {S("2026-13-15T08:30:00Z"), HK_INVALID, "no such month"},
        {S("2026-11-00T08:30:00Z"), HK_INVALID, "no such day"},
        {S("2026-11-31T08:30:00Z"), HK_INVALID, "no such day"},
        {S("2026-02-29T08:30:00Z"), HK_INVALID, "no such day"},
        {S("1900-02-29T08:30:00Z"), HK_INVALID, "no such day"},
        {S("2100-02-29T08:30:00Z"), HK_INVALID, "no such day"},
        {S("2024-02-30T08:30:00Z"), HK_INVALID, "no such day"},
        {S("2026-11-15T24:00:00Z"), HK_INVALID, "no such time"},
        {S("2026-11-15T08:60:00Z"), HK_INVALID, "no such time"},
        {S("2026-11-15T08:30:61Z"), HK_INVALID, "no such time"},
        {S("2026-11-15T08:30:60Z"), HK_INVALID, "second 60"},
        {S("2026-11-15T23:59:60Z"), HK_INVALID, "second 60"}, /* not the end of a month */
        {S("2016-12-31T22:59:60Z"), HK_INVALID, "second 60"},
        {S("2017-01-01T08:59:60Z"), HK_INVALID, "second 60"}, /* the first of a month, but not its start */
        {S("1800-02-29T08:30:00Z"), HK_INVALID, "no such day"},
        {S("2016-12-31T23:59:60+01:00"), HK_INVALID, "second 60"},
        {S("2026-1-15T08:30:00Z"), HK_INVALID, NULL},
        {S("26-11-15T08:30:00Z"), HK_INVALID, NULL},
        {S("02026-11-15T08:30:00Z"), HK_INVALID, NULL},
        {S("+2026-11-15T08:30:00Z"), HK_INVALID, NULL},
        {S("-026-11-15T08:30:00Z"), HK_INVALID, NULL},
        {S("2026/11/15T08:30:00Z"), HK_INVALID, NULL},
        {S("20261115T083000Z"), HK_INVALID, NULL},
        {S("2026-W46-7T08:30:00Z"), HK_INVALID, NULL},
        {S("2026-11-15T8:30:00Z"), HK_INVALID, NULL},
        {S("2026-11-15T-8:30:00Z"), HK_INVALID, NULL},
        {S("2026-11-15T+8:30:00Z"), HK_INVALID, NULL},
        {S("1794731400"), HK_INVALID, NULL},
        {S("now"), HK_INVALID, NULL},
        {S("0000-01-01T00:00:00Z"), HK_RANGE, "0001 to 9999"},
        {S("0000-12-31T23:59:59Z"), HK_RANGE, NULL},
        {S("0001-01-01T00:00:00+00:01"), HK_RANGE, NULL},
        {S("9999-12-31T23:59:59-00:01"), HK_RANGE, NULL},
        {S("9999-12-31T23:59:60Z"), HK_RANGE, NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        int64_t ms = UNTOUCHED;
        enum hk_code rc = hk_parse_rfc3339(cases[i].text, &ms, &err);
        assert_refused(cases[i].rc, rc, &err, cases[i].text);
        assert_int_equal(ms, UNTOUCHED);
        if (cases[i].says && !strstr(err.message, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.message, cases[i].says);
        assert_int_equal(hk_parse_rfc3339(cases[i].text, &ms, NULL), rc);
    }
}

static void times_outside_the_years_are_cut(void **state)
{
    (void)state;

    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {INT64_MIN, "0001-01-01T00:00:00.000Z"}, {YEAR_1 - 1, "0001-01-01T00:00:00.000Z"},
        {YEAR_1, "0001-01-01T00:00:00.000Z"},    {YEAR_1 + 1, "0001-01-01T00:00:00.001Z"},
        {-1, "1969-12-31T23:59:59.999Z"},        {0, "1970-01-01T00:00:00.000Z"},
        {YEAR_9999, "9999-12-31T23:59:59.999Z"}, {YEAR_9999 + 1, "9999-12-31T23:59:59.999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"}, {INT64_C(1794731400250), "2026-11-15T08:30:00.250Z"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[HK_TIME_TEXT_MAX];
        assert_int_equal(hk_format_rfc3339(cases[i].ms, text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
}

static int64_t random_ms(struct hk_rng *rng)
{
    return YEAR_1 + (int64_t)hk_rng_upto(rng, (uint64_t)(YEAR_9999 - YEAR_1));
}

static int64_t floor_seconds(int64_t ms)
{
    return ms / 1000 - (ms % 1000 < 0);
}

/* Writing agrees with gmtime_r, reading with timegm, and each undoes the other. */
static void the_calendar_agrees_with_the_c_library(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 5, 0);
    for (int i = 0; i < 200000; i++) {
        int64_t ms = random_ms(&rng), back = UNTOUCHED;
        char text[HK_TIME_TEXT_MAX], want[64];
        size_t len = hk_format_rfc3339(ms, text);
        time_t seconds = (time_t)floor_seconds(ms);
        struct tm tm;
        assert_non_null(gmtime_r(&seconds, &tm));
        snprintf(want, sizeof want, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ms - (int64_t)seconds * 1000));
        assert_string_equal(text, want);
        assert_int_equal(hk_parse_rfc3339((struct hk_str){text, len}, &back, NULL), HK_OK);
        assert_true(back == ms);
        assert_true(timegm(&tm) == (time_t)floor_seconds(back));
    }
}

static void every_day_of_eight_centuries_follows_the_last(void **state)
{
    (void)state;
    char text[HK_TIME_TEXT_MAX], last[HK_TIME_TEXT_MAX] = "";
    for (int64_t day = -171498; day < 120701; day++) { /* 1500-06-15 to 2300-06-21 */
        int64_t back = UNTOUCHED;
        size_t len = hk_format_rfc3339(day * 86400000, text);
        assert_true(strcmp(last, text) < 0);
        memcpy(last, text, sizeof last);
        assert_int_equal(hk_parse_rfc3339((struct hk_str){text, len}, &back, NULL), HK_OK);
        assert_true(back == day * 86400000);
    }
}

/* Of all conceivable dates exactly those are taken that timegm leaves as they are. */
static void exactly_the_dates_that_exist_are_taken(void **state)
{
    (void)state;
    static const int years[] = {1,    4,    200,  1800, 2200, 100,  400,  1600, 1700, 1900,
                                1969, 1970, 1999, 2000, 2004, 2023, 2024, 2100, 9999};
    for (size_t y = 0; y < COUNT(years); y++) {
        for (int month = 0; month <= 13; month++) {
            for (int day = 0; day <= 32; day++) {
                char text[64];
                snprintf(text, sizeof text, "%04d-%02d-%02dT00:00:00Z", years[y], month, day);
                struct tm tm = {.tm_year = years[y] - 1900, .tm_mon = month - 1, .tm_mday = day};
                time_t at = timegm(&tm);
                bool exists = tm.tm_mon == month - 1 && tm.tm_mday == day && tm.tm_year == years[y] - 1900;
                int64_t ms = UNTOUCHED;
                assert_int_equal(hk_parse_rfc3339(hk_str_of(text), &ms, NULL), exists ? HK_OK : HK_INVALID);
                assert_true(!exists || ms == (int64_t)at * 1000);
            }
        }
    }
}

static void offsets_shift_by_what_they_say(void **state)
{
    (void)state;
    for (int minutes = -1439; minutes <= 1439; minutes++) {
        char text[64];
        int away = minutes < 0 ? -minutes : minutes;
        snprintf(text, sizeof text, "2001-01-01T00:00:00%c%02d:%02d", minutes < 0 ? '-' : '+', away / 60,
                 away % 60);
        int64_t ms;
        assert_int_equal(hk_parse_rfc3339(hk_str_of(text), &ms, NULL), HK_OK);
        assert_true(ms == INT64_C(978307200000) - (int64_t)minutes * 60000);
    }
}

/* 2026-11-15T08:30:00Z, a Sunday */
#define NOW INT64_C(1794731400000)

static void http_dates_that_are_taken(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t now_ms;
        int64_t seconds;
    } cases[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", NOW, 784111777},
        {"Sunday, 06-Nov-94 08:49:37 GMT", NOW, 784111777},
        {"Sun Nov  6 08:49:37 1994", NOW, 784111777},
        {"Sun Nov 06 08:49:37 1994", NOW, 784111777}, /* 2DIGIT, as the grammar allows */
        {"Thu, 01 Jan 1970 00:00:00 GMT", NOW, 0},
        {"Thu Jan  1 00:00:00 1970", NOW, 0},
        {"Wed, 31 Dec 1969 23:59:59 GMT", NOW, -1},
        {"Tue, 29 Feb 2000 00:00:00 GMT", NOW, 951782400},
        {"Thu, 29 Feb 2024 12:00:00 GMT", NOW, 1709208000},
        {"Thu Feb 29 12:00:00 2024", NOW, 1709208000},
        {"Thursday, 29-Feb-24 12:00:00 GMT", NOW, 1709208000},
        {"Tue, 19 Jan 2038 03:14:08 GMT", NOW, INT64_C(2147483648)},
        {"Tuesday, 19-Jan-38 03:14:08 GMT", NOW, INT64_C(2147483648)},
        {"Sun, 07 Feb 2106 06:28:16 GMT", NOW, INT64_C(4294967296)},
        {"Fri, 31 Dec 9999 23:59:59 GMT", NOW, INT64_C(253402300799)},
        {"Fri Dec 31 23:59:59 9999", NOW, INT64_C(253402300799)},
        {"Mon, 01 Jan 0001 00:00:00 GMT", NOW, INT64_C(-62135596800)},
        {"Sat, 31 Dec 2016 23:59:60 GMT", NOW, INT64_C(1483228800)},
        {"Saturday, 31-Dec-16 23:59:60 GMT", NOW, INT64_C(1483228800)},
        /* two digits: up to 50 years ahead of now, and not a second more */
        {"Sunday, 15-Nov-26 08:30:00 GMT", NOW, NOW / 1000},
        {"Sunday, 15-Nov-76 08:30:00 GMT", NOW, INT64_C(3372654600)},
        {"Monday, 15-Nov-76 08:30:01 GMT", NOW, INT64_C(216894601)},
        {"Saturday, 14-Nov-76 08:30:01 GMT", NOW, INT64_C(3372568201)},
        {"Tuesday, 15-Nov-77 08:30:00 GMT", NOW, INT64_C(248430600)},
        {"Thursday, 01-Jan-70 00:00:00 GMT", 0, 0},
        {"Wednesday, 01-Jan-20 00:00:00 GMT", 0, INT64_C(1577836800)}, /* 50 years ahead of 1970 */
        {"Thursday, 02-Jan-20 00:00:00 GMT", NOW, INT64_C(1577923200)},
        {"Friday, 02-Jan-20 00:00:00 GMT", 0, INT64_C(-1577836800)}, /* one day more: 1920 */
        {"Thursday, 01-Jan-05 00:00:00 GMT", INT64_C(4090000000000),
         INT64_C(4260211200)}, /* 2099 sees 2105 */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        int64_t ms = UNTOUCHED;
        enum hk_code rc = hk_parse_http_date(hk_str_of(cases[i].text), cases[i].now_ms, &ms, &err);
        if (rc != HK_OK || ms != cases[i].seconds * 1000)
            fail_msg("%s: %s %" PRId64 " %s", cases[i].text, hk_code_name(rc), ms, err.message);
    }
}

static void http_dates_that_are_refused(void **state)
{
    (void)state;

    static const struct {
        struct hk_str text;
        enum hk_code rc;
        const char *says;
    } cases[] = {
        {{NULL, 0}, HK_INVALID, "none of the three forms"},
        {S(""), HK_INVALID, NULL},
        {S("Sun"), HK_INVALID, NULL},
        {S("Mon, 06 Nov 1994 08:49:37 GMT"), HK_INVALID, "weekday"},
        {S("Monday, 06-Nov-94 08:49:37 GMT"), HK_INVALID, "weekday"},
        {S("Mon Nov  6 08:49:37 1994"), HK_INVALID, "weekday"},
        {S("Sun, 06 Nov 1994 08:49:37 gmt"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37 UTC"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37 UT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37 +0000"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37 EST"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37 GMT "), HK_INVALID, NULL},
        {S(" Sun, 06 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37 GMTx"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37 GMT\0"), HK_INVALID, "\\x00"},
        {S("Sun, 06 Nov 1994 08:49:37\0GMT"), HK_INVALID, NULL},
        {S("sun, 06 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("SUN, 06 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 NOV 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 6 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun,  6 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun 06 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun,06 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06  Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 94 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06-Nov-1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06-Nov-94 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sunday, 06 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sunday, 06-Nov-1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sunday 06-Nov-94 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 8:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08.49.37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 08:49:37.5 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov 1994 24:00:00 GMT"), HK_INVALID, "time of day"},
        {S("Sun, 06 Nov 1994 08:60:00 GMT"), HK_INVALID, "time of day"},
        {S("Sun, 06 Nov 1994 08:49:61 GMT"), HK_INVALID, "time of day"},
        {S("Sun, 06 Nov 1994 08:49:60 GMT"), HK_INVALID, "second 60"},
        {S("Sun, 06 Nov 1994 23:59:60 GMT"), HK_INVALID, "second 60"},
        {S("Sun, 00 Nov 1994 08:49:37 GMT"), HK_INVALID, "day"},
        {S("Thu, 31 Nov 1994 08:49:37 GMT"), HK_INVALID, "day"},
        {S("Sun, 29 Feb 2026 08:49:37 GMT"), HK_INVALID, "day"},
        {S("Monday, 29-Feb-00 08:49:37 GMT"), HK_INVALID, "weekday"}, /* 2000, a Tuesday */
        {S("Sun, 06 Foo 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, +6 Nov 1994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun, 06 Nov -994 08:49:37 GMT"), HK_INVALID, NULL},
        {S("Sun Nov 6 08:49:37 1994"), HK_INVALID, NULL},
        {S("Sun Nov   6 08:49:37 1994"), HK_INVALID, NULL},
        {S("Sun Nov  16 08:49:37 1994"), HK_INVALID, NULL},
        {S("Sun Nov  6 08:49:37 94"), HK_INVALID, NULL},
        {S("Sun Nov  6 08:49:37 1994 GMT"), HK_INVALID, NULL},
        {S("Sun Nov  6 08:49:37 1994\n"), HK_INVALID, "\\x0a"},
        {S("Sun, Nov  6 08:49:37 1994"), HK_INVALID, NULL},
        {S("Sunday Nov  6 08:49:37 1994"), HK_INVALID, NULL},
        {S("1994-11-06T08:49:37Z"), HK_INVALID, NULL},
        {S("784111777"), HK_INVALID, NULL},
        {S("Sat, 01 Jan 0000 00:00:00 GMT"), HK_RANGE, "0001 to 9999"},
        {S("Fri, 31 Dec 9999 23:59:60 GMT"), HK_RANGE, NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_err err = {0};
        int64_t ms = UNTOUCHED;
        enum hk_code rc = hk_parse_http_date(cases[i].text, NOW, &ms, &err);
        assert_refused(cases[i].rc, rc, &err, cases[i].text);
        assert_int_equal(ms, UNTOUCHED);
        if (cases[i].says && !strstr(err.message, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.message, cases[i].says);
        assert_int_equal(hk_parse_http_date(cases[i].text, NOW, &ms, NULL), rc);
    }
}

static void assert_http_date(const char *text, int64_t now_ms, int64_t want_ms)
{
    int64_t ms = UNTOUCHED;
    enum hk_code rc = hk_parse_http_date(hk_str_of(text), now_ms, &ms, NULL);
    if (rc != HK_OK || ms != want_ms)
        fail_msg("%s, now %" PRId64 ": %s %" PRId64 ", not %" PRId64, text, now_ms, hk_code_name(rc), ms,
                 want_ms);
}

/* strftime is not ours, and the C locale's names are those of HTTP. */
static void http_dates_written_by_the_c_library_are_read(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 6, 0);
    const int64_t year_1000 = INT64_C(-30610224000);
    for (int i = 0; i < 100000; i++) {
        time_t seconds = (time_t)floor_seconds(random_ms(&rng));
        if (seconds < year_1000) /* %Y does not pad */
            continue;
        struct tm tm;
        char text[128];
        assert_non_null(gmtime_r(&seconds, &tm));
        int64_t ms = (int64_t)seconds * 1000;
        assert_true(strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
        assert_http_date(text, NOW, ms);
        assert_true(strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &tm) > 0);
        assert_http_date(text, NOW, ms);
        char day[32], time_of_day[32];
        assert_true(strftime(day, sizeof day, "%A, %d-%b", &tm) > 0);
        assert_true(strftime(time_of_day, sizeof time_of_day, "%H:%M:%S", &tm) > 0);
        snprintf(text, sizeof text, "%s-%02d %s GMT", day, (tm.tm_year + 1900) % 100, time_of_day);
        /* two digits suffice when now is near: less than 50 years on either side */
        int64_t now_ms =
            ms + (int64_t)hk_rng_upto(&rng, UINT64_C(2 * 1577000000000)) - INT64_C(1577000000000);
        if (now_ms < YEAR_9999)
            assert_http_date(text, now_ms, ms);
    }
}

static void no_clock_upsets_the_century_rule(void **state)
{
    (void)state;
    static const int64_t clocks[] = {INT64_MIN, YEAR_1 - 1, YEAR_1,        -1,       0,
                                     NOW,       YEAR_9999,  YEAR_9999 + 1, INT64_MAX};
    static const char *const texts[] = {"Sunday, 06-Nov-94 08:49:37 GMT", "Saturday, 31-Dec-99 23:59:59 GMT",
                                        "Monday, 01-Jan-00 00:00:00 GMT"};
    for (size_t i = 0; i < COUNT(clocks) * COUNT(texts); i++) {
        int64_t ms = 0;
        enum hk_code rc = hk_parse_http_date(hk_str_of(texts[i % 3]), clocks[i / 3], &ms, NULL);
        assert_true(rc == HK_OK || rc == HK_INVALID || rc == HK_RANGE);
        assert_true(ms >= YEAR_1 && ms <= YEAR_9999);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc3339_times_that_are_taken),
        cmocka_unit_test(rfc3339_times_that_are_refused),
        cmocka_unit_test(times_outside_the_years_are_cut),
        cmocka_unit_test(the_calendar_agrees_with_the_c_library),
        cmocka_unit_test(every_day_of_eight_centuries_follows_the_last),
        cmocka_unit_test(exactly_the_dates_that_exist_are_taken),
        cmocka_unit_test(offsets_shift_by_what_they_say),
        cmocka_unit_test(http_dates_that_are_taken),
        cmocka_unit_test(http_dates_that_are_refused),
        cmocka_unit_test(http_dates_written_by_the_c_library_are_read),
        cmocka_unit_test(no_clock_upsets_the_century_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
