/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP dates: whatever is taken is, letter for letter, what the C library prints for that time in the same form. The
 * first eight bytes are the clock. */
#define _DEFAULT_SOURCE /* gmtime_r under strict C */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "fuzz.h"

#define YEAR_1      INT64_C(-62135596800000)
#define YEAR_9999   INT64_C(253402300799999)
#define FIFTY_YEARS INT64_C(1577923200000) /* with 13 leap days, the most there can be */

/* Prints `ms` in the form that `s` has. */
static void print_like(struct hk_str s, int64_t ms, char *out, size_t room)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char weekday[16], month[8], time_of_day[16];
    MUST(gmtime_r(&seconds, &tm) != NULL);
    strftime(month, sizeof month, "%b", &tm);
    strftime(time_of_day, sizeof time_of_day, "%H:%M:%S", &tm);
    int year = tm.tm_year + 1900;
    if (s.ptr[3] == ',') {
        strftime(weekday, sizeof weekday, "%a", &tm);
        snprintf(out, room, "%s, %02d %s %04d %s GMT", weekday, tm.tm_mday, month, year, time_of_day);
    } else if (s.ptr[3] == ' ') {
        strftime(weekday, sizeof weekday, "%a", &tm);
        snprintf(out, room, s.ptr[8] == ' ' ? "%s %s %2d %s %04d" : "%s %s %02d %s %04d", weekday, month,
                 tm.tm_mday, time_of_day, year);
    } else {
        strftime(weekday, sizeof weekday, "%A", &tm);
        snprintf(out, room, "%s, %02d-%s-%02d %s GMT", weekday, tm.tm_mday, month, year % 100, time_of_day);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t now = 0;
    size_t clock = size < sizeof now ? size : sizeof now;
    memcpy(&now, data, clock);
    struct hk_str s = {(const char *)data + clock, size - clock};
    struct hk_err err = {0};
    int64_t ms = 4711;
    enum hk_code rc = hk_parse_http_date(s, now, &ms, &err);
    MUST(rc == HK_OK || rc == HK_INVALID || rc == HK_RANGE);
    if (rc != HK_OK) {
        MUST(ms == 4711 && err.code == rc && err.message[0] == '"');
        return 0;
    }
    MUST(ms >= YEAR_1 && ms <= YEAR_9999 && ms % 1000 == 0);
    bool two_digits = s.ptr[3] != ',' && s.ptr[3] != ' ';
    if (two_digits && now >= YEAR_1 && now <= YEAR_9999)
        MUST(ms - now <= FIFTY_YEARS && now - ms <= FIFTY_YEARS + INT64_C(366) * 86400000);
    if (hk_str_containsi(s, hk_str_of(":60"))) /* a leap second is printed as what follows it */
        return 0;
    char text[128];
    print_like(s, ms, text, sizeof text);
    MUST(hk_str_eq(s, hk_str_of(text)));
    return 0;
}
