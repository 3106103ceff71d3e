/* SPDX-License-Identifier: Apache-2.0 */
/* Retry-After and the millisecond headers. The first eight bytes are the clock, the rest is cut at newlines into header
 * values, whose names take turns. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <hikyaku/policy.h>

#include "base/parse.h"
#include "base/str.h"
#include "fuzz.h"

enum {
    HEADERS_MAX = 9
};

/* 0: no wait. */
static uint64_t hint(const struct hk_header *headers, size_t n, int64_t wall_ms)
{
    uint64_t ms = 4711;
    bool found = hk_hint_ms(headers, n, wall_ms, &ms);
    MUST(found ? ms > 0 && ms <= HK_DURATION_MAX_MS : ms == 4711);
    return found ? ms : 0;
}

/* Digits by another road: the value in seconds, as far as it matters. False: not digits. */
static bool slow_seconds(struct hk_str s, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(s.ptr[i] - '0');
        if (value > 9999999999)
            value = 9999999999;
    }
    *out = value;
    return s.len > 0;
}

static void check_one(struct hk_str value, int64_t wall_ms)
{
    struct hk_header header = {hk_str_of("retry-AFTER"), value};
    uint64_t ms = hint(&header, 1, wall_ms), seconds;
    struct hk_str trimmed = hk_str_trim(value);
    int64_t at;
    if (slow_seconds(trimmed, &seconds))
        MUST(ms == (seconds > HK_DURATION_MAX_MS / 1000 ? HK_DURATION_MAX_MS : seconds * 1000));
    else if (hk_parse_http_date(trimmed, wall_ms, &at, NULL) != HK_OK || at <= wall_ms)
        MUST(ms == 0);
    else
        MUST(ms > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Retry-After", "retry-after-ms", "X-MS-Retry-After-MS"};
    int64_t wall_ms = 0;
    size_t clock = size < sizeof wall_ms ? size : sizeof wall_ms;
    memcpy(&wall_ms, data, clock);
    struct hk_str rest = {(const char *)data + clock, size - clock};
    struct hk_header headers[HEADERS_MAX], backwards[HEADERS_MAX], renamed[HEADERS_MAX];
    size_t n = 0;
    for (; rest.len > 0 && n < HEADERS_MAX; n++) {
        headers[n] = (struct hk_header){hk_str_of(names[n % 3]), hk_str_cut(&rest, '\n')};
        check_one(headers[n].value, wall_ms);
    }
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        backwards[n - 1 - i] = headers[i];
        renamed[i] = (struct hk_header){hk_str_of("RETRY-after"), headers[i].value};
        uint64_t one = hint(&renamed[i], 1, wall_ms);
        most = one > most ? one : most;
    }
    /* the order of headers does not matter; of one name, the largest counts */
    MUST(hint(headers, n, wall_ms) == hint(backwards, n, wall_ms));
    MUST(hint(renamed, n, wall_ms) == most);
    return 0;
}
