/* SPDX-License-Identifier: Apache-2.0 */
/* What the tokens of a scan mean: strings without their escapes, and numbers that other programs would round. */
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "payload/scan.h"

/* ---- what strings say ---- */

void hk_scan_chars_init(struct hk_scan_chars *chars, struct hk_str raw)
{
    *chars = (struct hk_scan_chars){raw.ptr, raw.ptr};
    if (raw.len >= 2)
        *chars = (struct hk_scan_chars){raw.ptr + 1, raw.ptr + raw.len - 1};
}

static bool is_hex(char c)
{
    char l = hk_ascii_lower(c);
    return hk_ascii_isdigit(c) || (l >= 'a' && l <= 'f');
}

static unsigned hex_value(char c)
{
    return hk_ascii_isdigit(c) ? (unsigned)(c - '0') : (unsigned)(hk_ascii_lower(c) - 'a' + 10);
}

#define NO_UNIT UINT32_MAX

/* \uXXXX at `p`, or NO_UNIT. */
static uint32_t unit_at(const char *p, const char *end)
{
    uint32_t unit = 0;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return NO_UNIT;
    for (size_t i = 2; i < 6; i++) {
        if (!is_hex(p[i]))
            return NO_UNIT;
        unit = unit << 4 | hex_value(p[i]);
    }
    return unit;
}

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

static uint32_t unescape_unit(struct hk_scan_chars *chars)
{
    uint32_t unit = unit_at(chars->p, chars->end);
    chars->p += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit;
    uint32_t low = unit_at(chars->p, chars->end);
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return 0xfffd;
    chars->p += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

size_t hk_scan_chars_next(struct hk_scan_chars *chars, char out[4])
{
    static const char letters[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";
    if (chars->p >= chars->end)
        return 0;
    struct hk_str rest = {chars->p, (size_t)(chars->end - chars->p)};
    if (*chars->p != '\\') {
        uint32_t decoded = 0;
        size_t n = hk_utf8_next(rest, &decoded);
        memcpy(out, chars->p, n);
        chars->p += n;
        return n;
    }
    if (unit_at(chars->p, chars->end) != NO_UNIT)
        return encode(unescape_unit(chars), out);
    const char *letter = rest.len > 1 && rest.ptr[1] ? strchr(letters, rest.ptr[1]) : NULL;
    out[0] = letter ? meant[letter - letters] : rest.ptr[rest.len > 1];
    chars->p += rest.len > 1 ? 2 : 1;
    return 1;
}

enum hk_code hk_scan_text(struct hk_str raw, struct hk_buf *out)
{
    struct hk_scan_chars chars;
    char c[4];
    hk_scan_chars_init(&chars, raw);
    if (!memchr(raw.ptr, '\\', raw.len))
        return hk_buf_add(out, chars.p, (size_t)(chars.end - chars.p));
    for (size_t n = 0; (n = hk_scan_chars_next(&chars, c)) > 0;)
        hk_buf_add(out, c, n);
    return out->status;
}

static bool same(const char *a, const char *b, size_t n, bool fold)
{
    struct hk_str x = {a, n};
    struct hk_str y = {b, n};
    return fold ? hk_str_eqi(x, y) : hk_str_eq(x, y);
}

/* Does what comes begin with `text`? `chars` is then behind it. */
static bool begins(struct hk_scan_chars *chars, struct hk_str text, bool fold)
{
    char c[4];
    while (text.len > 0) {
        size_t n = hk_scan_chars_next(chars, c);
        if (n == 0 || n > text.len || !same(c, text.ptr, n, fold))
            return false;
        text.ptr += n;
        text.len -= n;
    }
    return true;
}

static bool equals(struct hk_str raw, struct hk_str text, bool fold)
{
    struct hk_scan_chars chars;
    hk_scan_chars_init(&chars, raw);
    return begins(&chars, text, fold) && chars.p == chars.end;
}

bool hk_scan_text_eq(struct hk_str raw, struct hk_str text)
{
    return equals(raw, text, false);
}

bool hk_scan_text_eqi(struct hk_str raw, struct hk_str text)
{
    return equals(raw, text, true);
}

bool hk_scan_text_containsi(struct hk_str raw, struct hk_str text)
{
    struct hk_scan_chars chars;
    char c[4];
    hk_scan_chars_init(&chars, raw);
    do {
        struct hk_scan_chars from_here = chars;
        if (begins(&from_here, text, true))
            return true;
    } while (hk_scan_chars_next(&chars, c) > 0);
    return false;
}

/* ---- numbers that others would round ---- */

/* Decimal digits without the zeros at both ends. */
static size_t significant(struct hk_str mantissa)
{
    size_t n = 0, zeros = 0;
    for (size_t i = 0; i < mantissa.len; i++) {
        if (!hk_ascii_isdigit(mantissa.ptr[i]))
            continue;
        if (mantissa.ptr[i] == '0') {
            zeros += n > 0;
            continue;
        }
        n += zeros + 1;
        zeros = 0;
    }
    return n;
}

/* Beyond what a double can be at all; a few that are just not are taken as well. */
static bool is_beyond_range(struct hk_str exponent)
{
    size_t i = exponent.len > 0 && (exponent.ptr[0] == '-' || exponent.ptr[0] == '+');
    while (i < exponent.len && exponent.ptr[i] == '0')
        i++;
    struct hk_str digits_only = {exponent.ptr + i, exponent.len - i};
    return digits_only.len > 3 || (digits_only.len == 3 && memcmp(digits_only.ptr, "290", 3) > 0);
}

static bool would_round(struct hk_str number)
{
    static const struct hk_str most = {"9007199254740992", 16}; /* 2^53 */
    if (number.ptr[0] == '-')
        number = (struct hk_str){number.ptr + 1, number.len - 1};
    size_t mantissa = 0, whole = 0;
    while (mantissa < number.len && hk_ascii_lower(number.ptr[mantissa]) != 'e')
        mantissa++;
    while (whole < mantissa && number.ptr[whole] != '.')
        whole++;
    if (significant((struct hk_str){number.ptr, mantissa}) > 17)
        return true;
    if (mantissa < number.len)
        return is_beyond_range((struct hk_str){number.ptr + mantissa + 1, number.len - mantissa - 1});
    return whole > most.len || (whole == most.len && memcmp(number.ptr, most.ptr, most.len) > 0);
}

bool hk_scan_has_big_integer(struct hk_str text, size_t *out_at)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, text);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return false;
        if (kind != HK_SCAN_NUMBER || !would_round(token.raw))
            continue;
        if (out_at)
            *out_at = token.at;
        return true;
    }
}

static bool is_half(uint32_t unit, uint32_t lo, uint32_t hi)
{
    return unit >= lo && unit <= hi;
}

static bool holds_half(struct hk_str raw)
{
    const char *end = raw.ptr + raw.len;
    for (const char *p = raw.ptr; p < end;) {
        uint32_t unit = unit_at(p, end);
        bool high = is_half(unit, 0xd800, 0xdbff);
        bool pair = high && is_half(unit_at(p + 6, end), 0xdc00, 0xdfff);
        if ((high && !pair) || is_half(unit, 0xdc00, 0xdfff))
            return true;
        p += pair ? 12 : unit != NO_UNIT ? 6 : *p == '\\' ? 2 : 1;
    }
    return false;
}

bool hk_scan_has_half_pair(struct hk_str text)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, text);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return false;
        if ((kind == HK_SCAN_STRING || kind == HK_SCAN_KEY) && token.escaped && holds_half(token.raw))
            return true;
    }
}
