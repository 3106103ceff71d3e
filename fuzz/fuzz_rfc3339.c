/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 3339 times: what is taken agrees with the C library's calendar and reads back; the writer takes any number. */
#define _DEFAULT_SOURCE /* timegm */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "fuzz.h"

#define YEAR_1    INT64_C(-62135596800000)
#define YEAR_9999 INT64_C(253402300799999)

static int number_at(struct hk_str s, size_t at, size_t digits)
{
    int value = 0;
    for (size_t i = at; i < at + digits; i++)
        value = value * 10 + (s.ptr[i] - '0');
    return value;
}

/* The form is known to be right: fields stand at fixed places, the offset at the end. */
static int64_t slow_time(struct hk_str s)
{
    struct tm tm = {.tm_year = number_at(s, 0, 4) - 1900,
                    .tm_mon = number_at(s, 5, 2) - 1,
                    .tm_mday = number_at(s, 8, 2),
                    .tm_hour = number_at(s, 11, 2),
                    .tm_min = number_at(s, 14, 2),
                    .tm_sec = number_at(s, 17, 2)};
    bool leap = tm.tm_sec == 60; /* timegm makes it the next second, too */
    int ms = 0;
    for (size_t i = 20, scale = 100; s.ptr[19] == '.' && i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9';
         i++, scale /= 10)
        ms += (s.ptr[i] - '0') * (int)scale;
    int64_t offset = 0;
    if ((s.ptr[s.len - 1] | 0x20) != 'z') {
        offset = number_at(s, s.len - 5, 2) * 60 + number_at(s, s.len - 2, 2);
        offset = s.ptr[s.len - 6] == '-' ? -offset : offset;
    }
    return (int64_t)timegm(&tm) * 1000 + (leap ? 0 : ms) - offset * 60000;
}

static void check_round_trip(int64_t ms)
{
    char text[HK_TIME_TEXT_MAX];
    int64_t back;
    size_t len = hk_format_rfc3339(ms, text);
    MUST(len == 24 && strlen(text) == len);
    MUST(hk_parse_rfc3339((struct hk_str){text, len}, &back, NULL) == HK_OK);
    MUST(back == (ms < YEAR_1 ? YEAR_1 : ms > YEAR_9999 ? YEAR_9999 : ms));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str s = {(const char *)data, size};
    struct hk_err err = {0};
    int64_t ms = 4711;
    enum hk_code rc = hk_parse_rfc3339(s, &ms, &err);
    MUST(rc == HK_OK || rc == HK_INVALID || rc == HK_RANGE);
    if (rc == HK_OK) {
        MUST(ms >= YEAR_1 && ms <= YEAR_9999);
        MUST(ms == slow_time(s));
        check_round_trip(ms);
    } else {
        MUST(ms == 4711 && err.code == rc && err.message[0] == '"');
    }
    memcpy(&ms, data, size < sizeof ms ? size : sizeof ms);
    check_round_trip(ms);
    check_round_trip(ms % (YEAR_9999 + 1));
    return 0;
}
