/* SPDX-License-Identifier: Apache-2.0 */
/* Values to parameters, results to values. All as text, but bytea and lists of numbers. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/pg/pg.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* ---- parameters ---- */

static void add_arg(struct hk_pg_args *a, const char *value, size_t len, bool binary)
{
    assert(a->n < HK_PG_PARAMS_MAX);
    a->values[a->n] = value;
    a->lengths[a->n] = (int)len;
    a->formats[a->n] = binary;
    a->n++;
}

void hk_pg_arg_null(struct hk_pg *pg, struct hk_pg_args *a)
{
    (void)pg;
    add_arg(a, NULL, 0, false);
}

void hk_pg_arg_i64(struct hk_pg *pg, struct hk_pg_args *a, int64_t value)
{
    char *text = hk_pg_alloc(pg, 1, 24);
    if (text)
        snprintf(text, 24, "%lld", (long long)value);
    add_arg(a, text, 0, false);
}

void hk_pg_arg_u64(struct hk_pg *pg, struct hk_pg_args *a, uint64_t value)
{
    hk_pg_arg_i64(pg, a, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void hk_pg_arg_bool(struct hk_pg *pg, struct hk_pg_args *a, bool value)
{
    (void)pg;
    add_arg(a, value ? "t" : "f", 0, false);
}

static bool is_plain_ascii(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '\0' || (unsigned char)s.ptr[i] >= 0x80)
            return false;
    return true;
}

/* Writes at most 3 bytes for each of `s`, and no terminator; how many. */
static size_t repair(struct hk_str s, char *out)
{
    size_t len = 0;
    while (s.len > 0) {
        uint32_t c;
        size_t n = hk_utf8_next(s, &c);
        bool bad = c == HK_UTF8_BAD || c == 0;
        memcpy(out + len, bad ? REPLACEMENT : s.ptr, bad ? 3 : n);
        len += bad ? 3 : n;
        s = (struct hk_str){s.ptr + n, s.len - n};
    }
    return len;
}

void hk_pg_arg_text(struct hk_pg *pg, struct hk_pg_args *a, struct hk_str s)
{
    bool plain = is_plain_ascii(s);
    if (s.len > INT_MAX / 3) {
        hk_pg_fail(pg, HK_TOOBIG, "a text is too long");
        s.len = 0;
    }
    char *text = hk_pg_alloc(pg, plain ? s.len + 1 : 3 * s.len + 1, 1);
    if (text && s.len && plain)
        memcpy(text, s.ptr, s.len);
    else if (text && s.len)
        repair(s, text);
    add_arg(a, text, 0, false);
}

void hk_pg_arg_text_or_null(struct hk_pg *pg, struct hk_pg_args *a, struct hk_str s)
{
    if (s.len)
        hk_pg_arg_text(pg, a, s);
    else
        hk_pg_arg_null(pg, a);
}

void hk_pg_arg_bytes(struct hk_pg *pg, struct hk_pg_args *a, struct hk_str s)
{
    if (s.len > INT_MAX) {
        hk_pg_fail(pg, HK_TOOBIG, "a value is too long");
        s.len = 0;
    }
    add_arg(a, s.len ? s.ptr : "", s.len, true);
}

static void put_be(char *out, uint64_t value, size_t bytes)
{
    for (size_t i = bytes; i-- > 0; value >>= 8)
        out[i] = (char)(value & 0xff);
}

/* In binary: hundreds of them go with every exchange, and none needs to be read digit by digit. */
void hk_pg_arg_i64s(struct hk_pg *pg, struct hk_pg_args *a, const int64_t *values, size_t n)
{
    const uint64_t head[] = {n > 0, 0, 20 /* int8 */, n, 1};
    size_t len = n ? 20 + 12 * n : 12;
    if (n > INT_MAX / 12 - 2) {
        hk_pg_fail(pg, HK_TOOBIG, "a list is too long");
        n = 0;
    }
    char *bytes = hk_pg_alloc(pg, len, 1);
    for (size_t i = 0; bytes && i < len / 4 && i < 5; i++)
        put_be(bytes + 4 * i, head[i], 4);
    for (size_t i = 0; bytes && i < n; i++) {
        put_be(bytes + 20 + 12 * i, 8, 4);
        put_be(bytes + 24 + 12 * i, (uint64_t)values[i], 8);
    }
    add_arg(a, bytes, bytes ? len : 0, true);
}

/* As an element of an array: in quotes, so that NULL is a text like any other. */
static size_t add_element(char *out, struct hk_str s)
{
    size_t len = 0;
    out[len++] = '"';
    while (s.len > 0) {
        uint32_t c;
        size_t n = hk_utf8_next(s, &c);
        bool bad = c == HK_UTF8_BAD || c == 0;
        if (c == '"' || c == '\\')
            out[len++] = '\\';
        memcpy(out + len, bad ? REPLACEMENT : s.ptr, bad ? 3 : n);
        len += bad ? 3 : n;
        s = (struct hk_str){s.ptr + n, s.len - n};
    }
    out[len++] = '"';
    return len;
}

void hk_pg_arg_texts(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_str *values, size_t n)
{
    size_t room = 3, len = 0;
    for (size_t i = 0; i < n; i++) {
        if (values[i].len > INT_MAX / 6 || room > INT_MAX / 2) {
            hk_pg_fail(pg, HK_TOOBIG, "a list is too long");
            break;
        }
        room += 3 * values[i].len + 3;
    }
    char *text = hk_pg_alloc(pg, room, 1);
    if (text) {
        text[len++] = '{';
        for (size_t i = 0; i < n; i++) {
            if (i)
                text[len++] = ',';
            len += add_element(text + len, values[i]);
        }
        text[len] = '}';
    }
    add_arg(a, text, 0, false);
}

/* ---- values ---- */

bool hk_pg_null(const PGresult *res, int row, int column)
{
    return !res || PQgetisnull(res, row, column);
}

static struct hk_str raw(const PGresult *res, int row, int column)
{
    if (hk_pg_null(res, row, column))
        return (struct hk_str){"", 0};
    return (struct hk_str){PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column)};
}

int64_t hk_pg_i64(const PGresult *res, int row, int column)
{
    int64_t value = 0;
    if (hk_parse_i64(raw(res, row, column), &value, NULL) != HK_OK)
        return 0;
    return value;
}

bool hk_pg_bool(const PGresult *res, int row, int column)
{
    return hk_str_eq(raw(res, row, column), hk_str_of("t"));
}

struct hk_str hk_pg_text(struct hk_pg *pg, const PGresult *res, int row, int column)
{
    struct hk_str s = raw(res, row, column);
    if (!s.len || !hk_pg_ok(pg))
        return (struct hk_str){"", 0};
    s.ptr = hk_pool_copy(hk_pg_pool(pg), s.ptr, s.len);
    if (!s.ptr) {
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
        return (struct hk_str){"", 0};
    }
    return s;
}

static unsigned hex_digit(char c)
{
    if (hk_ascii_isdigit(c))
        return (unsigned)(c - '0');
    c = hk_ascii_lower(c);
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 0;
}

/* bytea_output is hex in our sessions. */
struct hk_str hk_pg_bytes(struct hk_pg *pg, const PGresult *res, int row, int column)
{
    struct hk_str s = raw(res, row, column);
    if (!hk_str_starts(s, hk_str_of("\\x")))
        return (struct hk_str){"", 0};
    size_t len = (s.len - 2) / 2;
    char *out = hk_pg_alloc(pg, len + 1, 1);
    if (!out)
        return (struct hk_str){"", 0};
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(hex_digit(s.ptr[2 + 2 * i]) << 4 | hex_digit(s.ptr[3 + 2 * i]));
    return (struct hk_str){out, len};
}

int hk_pg_touched(PGresult *res)
{
    uint64_t n = 0;
    if (!res || hk_parse_u64(hk_str_of(PQcmdTuples(res)), &n, NULL) != HK_OK)
        return 0;
    return n > INT_MAX ? INT_MAX : (int)n;
}

/* As hk_sq_now: when the server's clock is set back our time goes on at half its speed until the clock has caught up. */
int64_t hk_pg_now(struct hk_pg *pg, int64_t server_ms)
{
    if (server_ms >= pg->high_ms) {
        pg->high_ms = pg->wall_ms = server_ms;
        return server_ms;
    }
    if (server_ms < pg->wall_ms || pg->wall_ms == 0)
        pg->wall_ms = server_ms;
    int64_t half_ms = (server_ms - pg->wall_ms) / 2;
    pg->wall_ms += 2 * half_ms;
    pg->high_ms += half_ms;
    return pg->high_ms;
}

bool hk_pg_is_name(const char *destination, struct hk_err *err)
{
    if (strlen(destination) <= HK_PG_DESTINATION_MAX)
        return true;
    (void)hk_err_set(err, HK_INVALID, "no destination has a name of more than %d bytes",
                     HK_PG_DESTINATION_MAX);
    return false;
}
