/* SPDX-License-Identifier: Apache-2.0 */
/* Durations (and, since they share their digits, whole numbers, decimals, sizes and rates): nothing crashes, what is
 * taken is what a second, slower reader makes of it, and what is written reads back. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "fuzz.h"

__extension__ typedef unsigned __int128 wide;

/* The value in units of 10^-12 us, which is exact for up to 12 places; false when it cannot tell. Takes for granted
 * that the form is right, and so tests the arithmetic only. */
static bool slow_duration(struct hk_str s, wide *out)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {{"ms", 1000},
                 {"us", 1},
                 {"w", UINT64_C(604800000000)},
                 {"d", UINT64_C(86400000000)},
                 {"h", UINT64_C(3600000000)},
                 {"m", 60000000},
                 {"s", 1000000}};

    const wide one = 1000000000000;
    wide total = 0;
    for (size_t i = 0; i < s.len;) {
        wide number = 0, scale = one;
        for (bool fraction = false; i < s.len && (s.ptr[i] == '.' || hk_ascii_isdigit(s.ptr[i])); i++) {
            if (s.ptr[i] == '.') {
                fraction = true;
                continue;
            }
            number = number * 10 + (wide)(s.ptr[i] - '0') * one;
            if (fraction)
                scale *= 10;
            if (number > one * UINT64_MAX / 1000 || scale > one * one)
                return false;
        }
        size_t u = 0;
        while (!hk_str_starts((struct hk_str){s.ptr + i, s.len - i}, hk_str_of(units[u].name)))
            if (++u == sizeof units / sizeof units[0])
                return false;
        i += strlen(units[u].name);
        if (number > ((wide)1 << 127) / units[u].us || number * units[u].us % (scale / one) != 0)
            return false;
        total += number * units[u].us / (scale / one);
    }
    *out = total;
    return true;
}

static void check_round_trip(uint64_t ms)
{
    char text[HK_DURATION_TEXT_MAX];
    uint64_t back;
    size_t len = hk_format_duration(ms, text);
    MUST(len == strlen(text) && len < sizeof text);
    enum hk_code rc = hk_parse_duration((struct hk_str){text, len}, &back, NULL);
    MUST(ms <= HK_DURATION_MAX_MS ? rc == HK_OK && back == ms : rc == HK_RANGE);
}

static void check_duration(struct hk_str s)
{
    struct hk_err err = {0};
    uint64_t ms = 4711;
    enum hk_code rc = hk_parse_duration(s, &ms, &err);
    MUST(rc == HK_OK || rc == HK_INVALID || rc == HK_RANGE);
    if (rc != HK_OK) {
        MUST(ms == 4711 && err.code == rc && err.message[0] == '"');
        for (const char *c = err.message; *c; c++)
            MUST((unsigned char)*c >= 0x20 && *c != 0x7f);
        return;
    }
    MUST(ms <= HK_DURATION_MAX_MS && err.message[0] == '\0');
    check_round_trip(ms);
    wide exact;
    if (s.len > 1 && slow_duration(s, &exact))
        MUST(exact == (wide)ms * 1000 * 1000000000000);
}

static void check_others(struct hk_str s)
{
    uint64_t u = 4711, bytes;
    int64_t i;
    double d, per_s;
    enum hk_code rc_u = hk_parse_u64(s, &u, NULL);
    enum hk_code rc_i = hk_parse_i64(s, &i, NULL);
    enum hk_code rc_d = hk_parse_decimal(s, &d, NULL);
    enum hk_code rc_size = hk_parse_size(s, &bytes, NULL);
    /* what is a whole number is a size, a signed number unless too large, and a decimal of the same value */
    MUST(rc_u != HK_OK || (rc_size == HK_OK && bytes == u));
    MUST(rc_u != HK_OK || (u <= INT64_MAX ? rc_i == HK_OK && i == (int64_t)u : rc_i == HK_RANGE));
    MUST(rc_u != HK_OK || rc_d != HK_OK || fabs(d - (double)u) <= 0);
    MUST(rc_u == HK_OK || u == 4711);
    MUST(rc_d != HK_OK || (isfinite(d) && d >= 0));
    MUST(hk_parse_rate(s, &per_s, NULL) != HK_OK || (isfinite(per_s) && per_s >= 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str s = {(const char *)data, size};
    check_duration(s);
    check_others(s);
    uint64_t ms = 0;
    memcpy(&ms, data, size < sizeof ms ? size : sizeof ms);
    check_round_trip(ms);
    check_round_trip(ms % (HK_DURATION_MAX_MS + 1));
    return 0;
}
