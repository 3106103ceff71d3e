/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on times in milliseconds that cannot overflow: int64_t is a point in time, uint64_t a stretch of it. */
#ifndef HK_BASE_MS_H
#define HK_BASE_MS_H

#include <stdint.h>

static inline int64_t hk_ms_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t hk_ms_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Through uint64_t: from INT64_MIN to INT64_MAX is more than an int64_t holds. `then_ms` is not after `now_ms`. */
static inline uint64_t hk_ms_since(int64_t then_ms, int64_t now_ms)
{
    return (uint64_t)now_ms - (uint64_t)then_ms;
}

/* INT64_MAX where it would be later than that. */
static inline int64_t hk_ms_after(int64_t at_ms, uint64_t ms)
{
    return hk_ms_since(at_ms, INT64_MAX) < ms ? INT64_MAX : (int64_t)((uint64_t)at_ms + ms);
}

#endif
