/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"

/* Two neighbouring units, the smaller with two digits: 34m08s. */
static void two_units(uint64_t ms, uint64_t big_ms, char big, uint64_t small_ms, char small,
                      char out[HK_SHOW_NUMBER])
{
    uint64_t smalls = ms / small_ms + (ms % small_ms >= small_ms / 2);
    uint64_t per = big_ms / small_ms;

    if (smalls % per == 0)
        (void)snprintf(out, HK_SHOW_NUMBER, "%" PRIu64 "%c", smalls / per, big);
    else
        (void)snprintf(out, HK_SHOW_NUMBER, "%" PRIu64 "%c%02" PRIu64 "%c", smalls / per, big, smalls % per,
                       small);
}

/* Tenths, where they are not zero. */
static void seconds(uint64_t ms, char out[HK_SHOW_NUMBER])
{
    uint64_t tenths = (ms + 50) / 100;

    if (tenths % 10 == 0)
        (void)snprintf(out, HK_SHOW_NUMBER, "%" PRIu64 "s", tenths / 10);
    else
        (void)snprintf(out, HK_SHOW_NUMBER, "%" PRIu64 ".%" PRIu64 "s", tenths / 10, tenths % 10);
}

const char *hk_show_duration(uint64_t ms, char out[HK_SHOW_NUMBER])
{
    const uint64_t second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;

    if (ms == 0)
        (void)snprintf(out, HK_SHOW_NUMBER, "0s");
    else if (ms < second)
        (void)snprintf(out, HK_SHOW_NUMBER, "%" PRIu64 "ms", ms);
    else if (ms < 59950)
        seconds(ms, out);
    else if (ms < hour - second / 2)
        two_units(ms, minute, 'm', second, 's', out);
    else if (ms < 2 * day - minute / 2) /* "24h" is what people say */
        two_units(ms, hour, 'h', minute, 'm', out);
    else
        two_units(ms, day, 'd', hour, 'h', out);
    return out;
}

const char *hk_show_count(uint64_t n, char out[HK_SHOW_NUMBER])
{
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);
    size_t at = 0;

    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *hk_show_rate(double per_s, char out[HK_SHOW_NUMBER])
{
    if (per_s >= 10)
        return hk_show_count((uint64_t)(per_s + 0.5), out);
    (void)snprintf(out, HK_SHOW_NUMBER, "%.3g", per_s);
    return out;
}

const char *hk_show_about(uint64_t n, bool about, char out[HK_SHOW_NUMBER])
{
    char digits[HK_SHOW_NUMBER];
    (void)snprintf(out, HK_SHOW_NUMBER, "%s%.46s", about ? "~" : "", hk_show_count(n, digits));
    return out;
}

const char *hk_show_ago(int64_t ms, int64_t now_ms, char out[HK_SHOW_NUMBER])
{
    char text[HK_SHOW_NUMBER];
    if (ms == 0)
        (void)snprintf(out, HK_SHOW_NUMBER, "-");
    else if (ms == now_ms)
        (void)snprintf(out, HK_SHOW_NUMBER, "now");
    else if (ms < now_ms)
        (void)snprintf(out, HK_SHOW_NUMBER, "%.40s ago",
                       hk_show_duration((uint64_t)now_ms - (uint64_t)ms, text));
    else
        (void)snprintf(out, HK_SHOW_NUMBER, "in %.40s",
                       hk_show_duration((uint64_t)ms - (uint64_t)now_ms, text));
    return out;
}
