/* SPDX-License-Identifier: Apache-2.0 */
/* Strict parsing and printing of numbers, durations, sizes, rates and times. The whole slice must match;
 * no leading or trailing blanks, no locale, no overflow: HK_INVALID for what is malformed, HK_RANGE for what does
 * not fit. `err` may be NULL. Out parameters change only on success. */
#ifndef HK_BASE_PARSE_H
#define HK_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

/* The longest time that we take from outside: 100 years of 365.25 days. */
#define HK_DURATION_MAX_MS UINT64_C(3155760000000)

/* Decimal digits only ("+5", "0x5", " 5", "" are refused). */
enum hk_code hk_parse_u64(struct hk_str s, uint64_t *out, struct hk_err *err) HK_MUSTCHECK;
/* The same with an optional '-' in front. */
enum hk_code hk_parse_i64(struct hk_str s, int64_t *out, struct hk_err *err) HK_MUSTCHECK;
/* digits[.digits], no exponent, no sign, at most 17 significant digits; exact to the nearest double. */
enum hk_code hk_parse_decimal(struct hk_str s, double *out, struct hk_err *err) HK_MUSTCHECK;
/* "250ms", "1h30m", "1.5s", "2d", "1w": units w d h m s ms us in falling order, each at most once; a fraction
 * only on the last; "0" alone is allowed, any other bare number is refused with a hint. Result in ms; a rest below
 * 1 ms is refused rather than rounded. At most HK_DURATION_MAX_MS. */
enum hk_code hk_parse_duration(struct hk_str s, uint64_t *out_ms, struct hk_err *err) HK_MUSTCHECK;
/* "512", "64KiB", "4MiB", "1GiB", also KB MB GB (powers of 1000) and B. */
enum hk_code hk_parse_size(struct hk_str s, uint64_t *out_bytes, struct hk_err *err) HK_MUSTCHECK;
/* "100/s", "6000/m", "1000/h", "0.5/s": events per second. */
enum hk_code hk_parse_rate(struct hk_str s, double *out_per_s, struct hk_err *err) HK_MUSTCHECK;
/* "2026-11-15T08:30:00.250Z", offsets, lower-case t/z, a space instead of T; second 60 is taken as the next
 * second's start only where a leap second can be (23:59:60Z at a month's end); digits past ms are cut. Unix ms,
 * years 0001-9999. */
enum hk_code hk_parse_rfc3339(struct hk_str s, int64_t *out_unix_ms, struct hk_err *err) HK_MUSTCHECK;
/* All three forms of RFC 9110 5.6.7; `now_unix_ms` settles the century of the RFC 850 form (a year that looks more
 * than 50 years ahead is in the past). A weekday that does not fit the date is refused. Case-sensitive, GMT only. */
enum hk_code hk_parse_http_date(struct hk_str s, int64_t now_unix_ms, int64_t *out_unix_ms,
                                struct hk_err *err) HK_MUSTCHECK;

/* Shortest exact form: "1h30m", "1.5s", "250ms", "90d", "2w", "0s". Returns the length; `out` takes
 * HK_DURATION_TEXT_MAX bytes. */
#define HK_DURATION_TEXT_MAX 48
size_t hk_format_duration(uint64_t ms, char out[HK_DURATION_TEXT_MAX]);
/* "2026-11-15T08:30:00.250Z"; a time outside the years 0001-9999 is cut to the nearest of them. */
#define HK_TIME_TEXT_MAX 32
size_t hk_format_rfc3339(int64_t unix_ms, char out[HK_TIME_TEXT_MAX]);

#endif
