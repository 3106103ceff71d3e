/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as text: RFC 3339 for people and databases, the three HTTP forms for Retry-After. The calendar is
 * our own (proleptic Gregorian, no time zones, no leap-second table), so that neither TZ nor the locale matters. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"

#define MS_PER_S   INT64_C(1000)
#define S_PER_DAY  INT64_C(86400)
#define MS_PER_DAY (S_PER_DAY * MS_PER_S)
#define MS_MIN     INT64_C(-62135596800000) /* 0001-01-01T00:00:00.000Z */
#define MS_MAX     INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

struct civil {
    int year, month, day; /* from 1 */
    int hour, minute, second, ms;
};

/* ---- the calendar ---- */

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days since 1970-01-01. Years start in March here, so that the leap day is the last one; eras have 400 years. */
static int64_t days_from_civil(int year, int month, int day)
{
    int64_t y = (int64_t)year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static struct civil civil_from_ms(int64_t unix_ms)
{
    int64_t days = floor_div(unix_ms, MS_PER_DAY);
    int64_t ms = unix_ms - days * MS_PER_DAY;
    int64_t shifted = days + 719468;
    int64_t era = floor_div(shifted, 146097);
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t m = (5 * day_of_year + 2) / 153;
    int month = (int)(m < 10 ? m + 3 : m - 9);
    return (struct civil){
        .year = (int)(year_of_era + era * 400 + (month <= 2)),
        .month = month,
        .day = (int)(day_of_year - (153 * m + 2) / 5 + 1),
        .hour = (int)(ms / 3600000),
        .minute = (int)(ms / 60000 % 60),
        .second = (int)(ms / 1000 % 60),
        .ms = (int)(ms % 1000),
    };
}

static int64_t ms_from_civil(const struct civil *t)
{
    int64_t minutes = (days_from_civil(t->year, t->month, t->day) * 24 + t->hour) * 60 + t->minute;
    return (minutes * 60 + t->second) * MS_PER_S + t->ms;
}

/* 0 is Sunday. */
static int weekday_of(const struct civil *t)
{
    int64_t days = days_from_civil(t->year, t->month, t->day) + 4; /* 1970-01-01 was a Thursday */
    return (int)(days - floor_div(days, 7) * 7);
}

/* NULL, or what is wrong with the fields, each of them taken from at most four digits. */
static const char *check_civil(const struct civil *t)
{
    if (t->month < 1 || t->month > 12)
        return "there is no such month";
    if (t->day < 1 || t->day > days_in_month(t->year, t->month))
        return "that month has no such day";
    if (t->hour > 23 || t->minute > 59 || t->second > 60)
        return "there is no such time of day";
    return NULL;
}

/* Second 60 is read as the next second's start, but only where a leap second can be: at the end of a month, UTC. */
static bool leap_second(int64_t before_ms, int64_t *out_ms)
{
    int64_t next_ms = (floor_div(before_ms, MS_PER_S) + 1) * MS_PER_S;
    if (next_ms % MS_PER_DAY != 0 || civil_from_ms(next_ms).day != 1)
        return false;
    *out_ms = next_ms;
    return true;
}

/* Fields and offset -> time. NULL, or what is wrong. */
static const char *settle(const struct civil *t, int offset_minutes, int64_t *out_ms)
{
    const char *why = check_civil(t);
    if (why)
        return why;
    struct civil whole = *t;
    whole.second = t->second == 60 ? 59 : t->second;
    int64_t ms = ms_from_civil(&whole) - (int64_t)offset_minutes * 60 * MS_PER_S;
    if (t->second == 60 && !leap_second(ms, &ms))
        return "second 60 exists only at the end of a month, 23:59:60 UTC";
    *out_ms = ms;
    return NULL;
}

/* ---- reading pieces; each takes what it reads off `*in` ---- */

static bool read_number(struct hk_str *in, size_t digits, int *out)
{
    if (in->len < digits)
        return false;
    int value = 0;
    for (size_t i = 0; i < digits; i++) {
        if (!hk_ascii_isdigit(in->ptr[i]))
            return false;
        value = value * 10 + (in->ptr[i] - '0');
    }
    in->ptr += digits;
    in->len -= digits;
    *out = value;
    return true;
}

/* Any one of `chars`. */
static bool read_char(struct hk_str *in, const char *chars)
{
    if (in->len == 0 || in->ptr[0] == '\0' || !strchr(chars, in->ptr[0]))
        return false;
    in->ptr++;
    in->len--;
    return true;
}

static bool read_text(struct hk_str *in, const char *text)
{
    struct hk_str want = hk_str_of(text);
    if (!hk_str_starts(*in, want))
        return false;
    in->ptr += want.len;
    in->len -= want.len;
    return true;
}

static bool read_name(struct hk_str *in, const char *const *names, int n_names, int *out)
{
    for (int i = 0; i < n_names; i++) {
        if (read_text(in, names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_time_of_day(struct hk_str *in, struct civil *t)
{
    return read_number(in, 2, &t->hour) && read_char(in, ":") && read_number(in, 2, &t->minute) &&
           read_char(in, ":") && read_number(in, 2, &t->second);
}

/* ---- RFC 3339 ---- */

/* ".250" and beyond: milliseconds count, further digits are cut. */
static bool read_fraction(struct hk_str *in, int *out_ms)
{
    if (!read_char(in, "."))
        return true;
    int ms = 0, digits = 0, digit;
    for (; read_number(in, 1, &digit); digits += digits < 3)
        if (digits < 3)
            ms = ms * 10 + digit;
    for (int i = digits; i < 3; i++)
        ms *= 10;
    *out_ms = ms;
    return digits > 0;
}

static const char *read_offset(struct hk_str *in, int *out_minutes)
{
    if (in->len == 0)
        return "it has no offset: end it with Z, or with one like +09:00";
    *out_minutes = 0;
    if (read_char(in, "Zz"))
        return NULL;
    bool west = in->ptr[0] == '-';
    int hours, minutes;
    if (!read_char(in, "+-") || !read_number(in, 2, &hours) || !read_char(in, ":") ||
        !read_number(in, 2, &minutes))
        return "the offset must be Z or like +09:00";
    if (hours > 23 || minutes > 59)
        return "there is no such offset";
    *out_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
    return NULL;
}

static const char *read_rfc3339(struct hk_str s, int64_t *out_ms)
{
    struct civil t = {0};
    int offset;
    if (!read_number(&s, 4, &t.year) || !read_char(&s, "-") || !read_number(&s, 2, &t.month) ||
        !read_char(&s, "-") || !read_number(&s, 2, &t.day))
        return "the date must be YYYY-MM-DD";
    if (!read_char(&s, "Tt ") || !read_time_of_day(&s, &t) || !read_fraction(&s, &t.ms))
        return "after the date come T and hh:mm:ss";
    const char *why = read_offset(&s, &offset);
    if (why)
        return why;
    if (s.len > 0)
        return "something stands behind the offset";
    return settle(&t, offset, out_ms);
}

enum hk_code hk_parse_rfc3339(struct hk_str s, int64_t *out_unix_ms, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    int64_t ms = 0;
    const char *why = read_rfc3339(s, &ms);
    if (why)
        return hk_err_set(err, HK_INVALID, "%s is not a time like 2026-11-15T08:30:00Z: %s",
                          hk_show(s, shown), why);
    if (ms < MS_MIN || ms > MS_MAX)
        return hk_err_set(err, HK_RANGE, "%s is outside the years 0001 to 9999 (UTC)", hk_show(s, shown));
    *out_unix_ms = ms;
    return HK_OK;
}

size_t hk_format_rfc3339(int64_t unix_ms, char out[HK_TIME_TEXT_MAX])
{
    int64_t ms = unix_ms < MS_MIN ? MS_MIN : unix_ms > MS_MAX ? MS_MAX : unix_ms;
    struct civil t = civil_from_ms(ms);
    int n = snprintf(out, HK_TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", t.year, t.month, t.day,
                     t.hour, t.minute, t.second, t.ms);
    assert(n > 0 && n < HK_TIME_TEXT_MAX);
    return (size_t)n;
}

/* ---- HTTP dates (RFC 9110, 5.6.7) ---- */

static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
static const char *const short_weekdays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static bool read_month(struct hk_str *in, struct civil *t)
{
    if (!read_name(in, months, 12, &t->month))
        return false;
    t->month++;
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool read_imf_fixdate(struct hk_str in, struct civil *t, int *weekday)
{
    return read_name(&in, short_weekdays, 7, weekday) && read_text(&in, ", ") &&
           read_number(&in, 2, &t->day) && read_char(&in, " ") && read_month(&in, t) && read_char(&in, " ") &&
           read_number(&in, 4, &t->year) && read_char(&in, " ") && read_time_of_day(&in, t) &&
           read_text(&in, " GMT") && in.len == 0;
}

/* "Sunday, 06-Nov-94 08:49:37 GMT"; leaves two digits in `year`. */
static bool read_rfc850(struct hk_str in, struct civil *t, int *weekday)
{
    return read_name(&in, weekdays, 7, weekday) && read_text(&in, ", ") && read_number(&in, 2, &t->day) &&
           read_char(&in, "-") && read_month(&in, t) && read_char(&in, "-") &&
           read_number(&in, 2, &t->year) && read_char(&in, " ") && read_time_of_day(&in, t) &&
           read_text(&in, " GMT") && in.len == 0;
}

/* "Sun Nov  6 08:49:37 1994" */
static bool read_asctime(struct hk_str in, struct civil *t, int *weekday)
{
    return read_name(&in, short_weekdays, 7, weekday) && read_char(&in, " ") && read_month(&in, t) &&
           read_char(&in, " ") &&
           (read_char(&in, " ") ? read_number(&in, 1, &t->day) : read_number(&in, 2, &t->day)) &&
           read_char(&in, " ") && read_time_of_day(&in, t) && read_char(&in, " ") &&
           read_number(&in, 4, &t->year) && in.len == 0;
}

/* The latest year with these two digits that is not more than 50 years ahead of now. */
static void settle_century(struct civil *t, int64_t now_unix_ms)
{
    int64_t now = now_unix_ms < MS_MIN ? MS_MIN : now_unix_ms > MS_MAX ? MS_MAX : now_unix_ms;
    struct civil limit = civil_from_ms(now);
    limit.year += 50;
    t->year = limit.year - (limit.year - t->year) % 100;
    if (ms_from_civil(t) > ms_from_civil(&limit))
        t->year -= 100;
}

static const char *read_http_date(struct hk_str s, int64_t now_unix_ms, int64_t *out_ms)
{
    struct civil t = {0};
    int weekday;
    if (read_rfc850(s, &t, &weekday))
        settle_century(&t, now_unix_ms);
    else if (!read_imf_fixdate(s, &t, &weekday) && !read_asctime(s, &t, &weekday))
        return "it has none of the three forms";
    const char *why = settle(&t, 0, out_ms);
    if (why)
        return why;
    return weekday_of(&t) == weekday ? NULL : "the weekday does not fit the date";
}

enum hk_code hk_parse_http_date(struct hk_str s, int64_t now_unix_ms, int64_t *out_unix_ms,
                                struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    int64_t ms = 0;
    const char *why = read_http_date(s, now_unix_ms, &ms);
    if (why)
        return hk_err_set(err, HK_INVALID, "%s is not an HTTP date like Sun, 06 Nov 1994 08:49:37 GMT: %s",
                          hk_show(s, shown), why);
    if (ms < MS_MIN || ms > MS_MAX)
        return hk_err_set(err, HK_RANGE, "%s is outside the years 0001 to 9999", hk_show(s, shown));
    *out_unix_ms = ms;
    return HK_OK;
}
