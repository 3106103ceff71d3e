/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, durations, sizes and rates as people write them in files and on command lines. Strict, because a value
 * that is taken for another one (90 what?) shows up as an outage and not as a message. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"

/* ---- whole and decimal numbers ---- */

static size_t count_digits(struct hk_str s)
{
    size_t n = 0;
    while (n < s.len && hk_ascii_isdigit(s.ptr[n]))
        n++;
    return n;
}

static bool all_digits(struct hk_str s)
{
    return s.len > 0 && count_digits(s) == s.len;
}

/* The value of digits; false when it is above `max`. */
static bool digits_value(struct hk_str digits, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        uint64_t digit = (uint64_t)(digits.ptr[i] - '0');
        if (value > max / 10 || digit > max - value * 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static struct hk_str skip(struct hk_str s, size_t n)
{
    return n ? (struct hk_str){s.ptr + n, s.len - n} : s;
}

enum hk_code hk_parse_u64(struct hk_str s, uint64_t *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (!all_digits(s))
        return hk_err_set(err, HK_INVALID, "%s is not a whole number: write digits only", hk_show(s, shown));
    if (!digits_value(s, UINT64_MAX, out))
        return hk_err_set(err, HK_RANGE, "%s is too large: at most %" PRIu64, hk_show(s, shown), UINT64_MAX);
    return HK_OK;
}

enum hk_code hk_parse_i64(struct hk_str s, int64_t *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    bool negative = s.len > 0 && s.ptr[0] == '-';
    struct hk_str digits = skip(s, negative);
    uint64_t value;
    if (!all_digits(digits))
        return hk_err_set(err, HK_INVALID,
                          "%s is not a whole number: write digits, with a - in front if it is negative",
                          hk_show(s, shown));
    if (!digits_value(digits, (uint64_t)INT64_MAX + negative, &value))
        return hk_err_set(err, HK_RANGE, "%s is out of range: %" PRId64 " to %" PRId64, hk_show(s, shown),
                          INT64_MIN, INT64_MAX);
    /* -1 - (value - 1) never leaves the type, even for INT64_MIN */
    *out = !negative ? (int64_t)value : value == 0 ? 0 : -1 - (int64_t)(value - 1);
    return HK_OK;
}

enum {
    DECIMAL_DIGITS = 17,
    DECIMAL_EXPONENT = 9999 /* far beyond any double: stands for all that is larger */
};

/* The digits of a decimal number without its point. */
struct decimal {
    struct hk_str whole, fraction;
};

static char decimal_digit(const struct decimal *d, size_t i)
{
    return i < d->whole.len ? d->whole.ptr[i] : d->fraction.ptr[i - d->whole.len];
}

static bool split_decimal(struct hk_str s, struct decimal *out)
{
    out->whole = (struct hk_str){s.ptr, count_digits(s)};
    out->fraction = (struct hk_str){s.ptr, 0};
    if (out->whole.len == 0)
        return false;
    struct hk_str rest = skip(s, out->whole.len);
    if (rest.len == 0)
        return true;
    out->fraction = skip(rest, 1);
    return rest.ptr[0] == '.' && all_digits(out->fraction);
}

/* How many places `at` stands left (positive) or right of the point's first digit, cut to DECIMAL_EXPONENT. */
static int decimal_exponent(const struct decimal *d, size_t at)
{
    size_t whole = d->whole.len;
    bool right = at >= whole;
    size_t n = right ? at - whole + 1 : whole - 1 - at;
    int cut = n < DECIMAL_EXPONENT ? (int)n : DECIMAL_EXPONENT;
    return right ? -cut : cut;
}

/* False: too many digits for a double. The text given to strtod has no decimal point, so that it reads the same in
 * every locale; strtod then rounds correctly, which arithmetic in doubles would not. */
static bool decimal_value(const struct decimal *d, double *out)
{
    size_t n = d->whole.len + d->fraction.len;
    size_t first = 0, end = n;
    while (first < n && decimal_digit(d, first) == '0')
        first++;
    if (first == n) {
        *out = 0;
        return true;
    }
    while (decimal_digit(d, end - 1) == '0')
        end--;
    if (end - first > DECIMAL_DIGITS)
        return false;
    char text[DECIMAL_DIGITS + sizeof "e-9999"];
    size_t len = 0;
    for (size_t i = first; i < end; i++)
        text[len++] = decimal_digit(d, i);
    snprintf(text + len, sizeof text - len, "e%d", decimal_exponent(d, end - 1));
    double value = strtod(text, NULL);
    if (!isfinite(value) || value <= 0)
        return false;
    *out = value;
    return true;
}

enum hk_code hk_parse_decimal(struct hk_str s, double *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct decimal d;
    if (!split_decimal(s, &d))
        return hk_err_set(err, HK_INVALID, "%s is not a decimal number: write it like 2 or 0.5",
                          hk_show(s, shown));
    if (!decimal_value(&d, out))
        return hk_err_set(err, HK_RANGE,
                          "%s is too large, too small or too long: at most %d significant digits",
                          hk_show(s, shown), DECIMAL_DIGITS);
    return HK_OK;
}

/* ---- durations ---- */

#define US_PER_MS UINT64_C(1000)
#define US_MAX    (HK_DURATION_MAX_MS * US_PER_MS)

static const struct {
    const char *name;
    uint64_t us;
} units[] = {
    {"w", UINT64_C(604800000000)},
    {"d", UINT64_C(86400000000)},
    {"h", UINT64_C(3600000000)},
    {"m", 60000000},
    {"s", 1000000},
    {"ms", 1000},
    {"us", 1},
};

enum {
    N_UNITS = sizeof units / sizeof units[0]
};

/* N_UNITS when there is no such unit. */
static size_t unit_by_name(struct hk_str name)
{
    size_t i = 0;
    while (i < N_UNITS && !hk_str_eq(name, hk_str_of(units[i].name)))
        i++;
    return i;
}

/* One "90m" of a duration. */
struct part {
    struct hk_str whole, fraction, unit;
};

/* Cuts the first part off `*rest`: digits, maybe a point and digits, and all up to the next digit or point. */
static void cut_part(struct hk_str *rest, struct part *out)
{
    *out = (struct part){.whole = {rest->ptr, count_digits(*rest)}};
    *rest = skip(*rest, out->whole.len);
    if (rest->len > 0 && rest->ptr[0] == '.') {
        struct hk_str behind = skip(*rest, 1);
        out->fraction = (struct hk_str){behind.ptr, count_digits(behind)};
        *rest = skip(behind, out->fraction.len);
    }
    size_t n = 0;
    while (n < rest->len && !hk_ascii_isdigit(rest->ptr[n]) && rest->ptr[n] != '.')
        n++;
    out->unit = (struct hk_str){rest->ptr, n};
    *rest = skip(*rest, n);
}

/* fraction * unit in whole microseconds; false when there is a rest. Goes from the last digit to the first: each
 * step's sum is divisible by ten if and only if the end result is whole, so nothing ever outgrows ten units. */
static bool fraction_us(struct hk_str fraction, uint64_t unit_us, uint64_t *out_us)
{
    uint64_t us = 0;
    for (size_t i = fraction.len; i > 0; i--) {
        us += (uint64_t)(fraction.ptr[i - 1] - '0') * unit_us;
        if (us % 10 != 0)
            return false;
        us /= 10;
    }
    *out_us = us;
    return true;
}

static enum hk_code duration_too_long(struct hk_str s, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_RANGE, "%s is too long: at most 36525d (100 years)", hk_show(s, shown));
}

static enum hk_code duration_too_fine(struct hk_str s, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_RANGE, "%s is not a whole number of milliseconds", hk_show(s, shown));
}

/* A number, or part of one, without a unit. */
static enum hk_code duration_no_unit(struct hk_str s, const struct part *part, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    hk_show(s, shown);
    int n = part->whole.len < 12 ? (int)part->whole.len : 12;
    if (part->whole.ptr != s.ptr || part->fraction.len > 0 || part->whole.len > 12)
        return hk_err_set(err, HK_INVALID, "%s has a number without a unit: w, d, h, m, s, ms or us", shown);
    return hk_err_set(err, HK_INVALID, "%s has no unit: write %.*ss, %.*sms, %.*sm \xe2\x80\xa6", shown, n,
                      s.ptr, n, s.ptr, n, s.ptr);
}

/* Is the form of this part right, coming after unit `last` (N_UNITS: it is the first)? */
static enum hk_code check_part(struct hk_str s, const struct part *part, size_t last, bool is_last,
                               struct hk_err *err)
{
    char shown[HK_SHOW_MAX], shown_unit[HK_SHOW_MAX];
    hk_show(s, shown);
    if (part->whole.len == 0 || (part->fraction.ptr && part->fraction.len == 0))
        return hk_err_set(err, HK_INVALID, "%s is not a duration: write it like 30s, 250ms or 1h30m", shown);
    if (part->unit.len == 0)
        return duration_no_unit(s, part, err);
    size_t unit = unit_by_name(part->unit);
    if (unit == N_UNITS)
        return hk_err_set(err, HK_INVALID, "%s has an unknown unit %s: use w, d, h, m, s, ms or us", shown,
                          hk_show(part->unit, shown_unit));
    if (unit == last)
        return hk_err_set(err, HK_INVALID, "%s has the unit %s twice", shown, units[unit].name);
    if (last != N_UNITS && unit < last)
        return hk_err_set(err, HK_INVALID, "%s has %s after %s: write the larger unit first", shown,
                          units[unit].name, units[last].name);
    if (part->fraction.len > 0 && !is_last)
        return hk_err_set(err, HK_INVALID, "%s: only the last number may have a fraction", shown);
    return HK_OK;
}

enum hk_code hk_parse_duration(struct hk_str s, uint64_t *out_ms, struct hk_err *err)
{
    if (hk_str_eq(s, hk_str_of("0"))) {
        *out_ms = 0;
        return HK_OK;
    }
    uint64_t total_us = 0;
    bool too_fine = false;
    bool too_long = false;
    size_t last = N_UNITS;
    struct hk_str rest = s;
    do {
        struct part part;
        cut_part(&rest, &part);
        enum hk_code rc = check_part(s, &part, last, rest.len == 0, err);
        if (rc != HK_OK)
            return rc;
        last = unit_by_name(part.unit);
        uint64_t count = 0, extra_us = 0;
        too_long |= !digits_value(part.whole, US_MAX / units[last].us, &count);
        too_fine |= !fraction_us(part.fraction, units[last].us, &extra_us);
        total_us += count * units[last].us + extra_us; /* at most N_UNITS * (US_MAX + a week): no overflow */
    } while (rest.len > 0);
    /* malformed comes before out of range, whichever stands first */
    if (too_long || total_us > US_MAX)
        return duration_too_long(s, err);
    if (too_fine || total_us % US_PER_MS != 0)
        return duration_too_fine(s, err);
    *out_ms = total_us / US_PER_MS;
    return HK_OK;
}

/* Appends "<n><unit>" unless n is 0. */
static size_t add_unit(char *out, size_t len, uint64_t n, const char *unit)
{
    if (n == 0)
        return len;
    return len + (size_t)snprintf(out + len, HK_DURATION_TEXT_MAX - len, "%" PRIu64 "%s", n, unit);
}

/* Seconds and what is left below: "1.5s" reads better than "1s500ms", "250ms" better than "0.25s". */
static size_t add_seconds(char *out, size_t len, uint64_t ms)
{
    if (ms < 1000 || ms % 1000 == 0)
        return ms < 1000 ? add_unit(out, len, ms, "ms") : add_unit(out, len, ms / 1000, "s");
    uint64_t fraction = ms % 1000;
    int places = 3;
    for (; fraction % 10 == 0; fraction /= 10)
        places--;
    return len + (size_t)snprintf(out + len, HK_DURATION_TEXT_MAX - len, "%" PRIu64 ".%0*" PRIu64 "s",
                                  ms / 1000, places, fraction);
}

size_t hk_format_duration(uint64_t ms, char out[HK_DURATION_TEXT_MAX])
{
    uint64_t days = ms / 86400000;
    bool weeks = days % 7 == 0; /* "2w", but "90d" and not "12w6d" */
    size_t len = 0;
    out[0] = '\0';
    len = add_unit(out, len, weeks ? days / 7 : days, weeks ? "w" : "d");
    len = add_unit(out, len, ms / 3600000 % 24, "h");
    len = add_unit(out, len, ms / 60000 % 60, "m");
    len = add_seconds(out, len, ms % 60000);
    if (len == 0)
        len = (size_t)snprintf(out, HK_DURATION_TEXT_MAX, "0s");
    return len;
}

/* ---- sizes and rates ---- */

enum hk_code hk_parse_size(struct hk_str s, uint64_t *out_bytes, struct hk_err *err)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } sizes[] = {
        {"", 1},
        {"B", 1},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
    };

    char shown[HK_SHOW_MAX];
    struct hk_str digits = {s.ptr, count_digits(s)};
    struct hk_str unit = skip(s, digits.len);
    size_t i = 0, n = sizeof sizes / sizeof sizes[0];
    while (i < n && !hk_str_eq(unit, hk_str_of(sizes[i].name)))
        i++;
    if (digits.len == 0 || i == n)
        return hk_err_set(err, HK_INVALID,
                          "%s is not a size: write digits and B, KiB, MiB, GiB, KB, MB, GB or nothing",
                          hk_show(s, shown));
    uint64_t count;
    if (!digits_value(digits, UINT64_MAX / sizes[i].bytes, &count))
        return hk_err_set(err, HK_RANGE, "%s is too large: at most %" PRIu64 " bytes", hk_show(s, shown),
                          UINT64_MAX);
    *out_bytes = count * sizes[i].bytes;
    return HK_OK;
}

/* 0 when it is no unit of a rate. */
static unsigned rate_seconds(struct hk_str unit)
{
    if (unit.len != 1)
        return 0;
    return unit.ptr[0] == 's' ? 1 : unit.ptr[0] == 'm' ? 60 : unit.ptr[0] == 'h' ? 3600 : 0;
}

enum hk_code hk_parse_rate(struct hk_str s, double *out_per_s, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str rest = s;
    struct hk_str number = hk_str_cut(&rest, '/');
    unsigned seconds = rate_seconds(rest);
    double count = 0;
    enum hk_code rc = hk_parse_decimal(number, &count, NULL);
    if (rc == HK_INVALID || seconds == 0)
        return hk_err_set(err, HK_INVALID, "%s is not a rate: write it like 100/s, 6000/m or 0.5/s",
                          hk_show(s, shown));
    if (rc != HK_OK)
        return hk_err_set(err, rc, "%s is too large, too small or too long", hk_show(s, shown));
    *out_per_s = count / seconds;
    return HK_OK;
}
