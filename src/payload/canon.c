/* SPDX-License-Identifier: Apache-2.0 */
/* DESIGN. A value is written in one canonical form, and texts of the same form say the same: no white space, names of an object in the
 * order of their bytes, strings with their escapes undone and their length in front, numbers as digits and exponent. The form is only
 * compared; nobody else reads it. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "payload/canon.h"
#include "payload/scan.h"

#define CANON_MAX ((size_t)1 << 30)
#define EXP_MAX   INT64_C(1000000000000000) /* exponents beyond are compared as they are written */

struct canon {
    struct hk_json_scan scan;
    struct hk_buf out;
    bool twins;
};

/* A member of an object, inside the form. */
struct member {
    size_t at, len;
    size_t name_len; /* of the form of its name */
};

static bool write_value(struct canon *c, const struct hk_scan_token *token);

/* ---- strings ---- */

/* The length goes in front, so that no text can look like the end of a string. Half a surrogate pair has no character: such a string
 * is compared as it is written. */
static void write_string(struct canon *c, const struct hk_scan_token *token)
{
    struct hk_str text = {token->raw.ptr + 1, token->raw.len - 2};
    struct hk_buf plain;
    hk_buf_init(&plain, CANON_MAX);
    char kind = '"';
    if (token->escaped && hk_scan_has_half_pair(token->raw)) {
        kind = '\\';
    } else if (token->escaped) {
        (void)hk_scan_text(token->raw, &plain);
        text = hk_buf_str(&plain);
    }
    hk_buf_inherit(&c->out, &plain);
    (void)hk_buf_addf(&c->out, "%c%zu:", kind, text.len);
    (void)hk_buf_add(&c->out, text.ptr, text.len);
    hk_buf_fini(&plain);
}

/* ---- numbers ---- */

/* "e+12" -> 12. False: too large to reckon with. */
static bool read_exponent(struct hk_str text, int64_t *out)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    size_t i = text.len > 0 && (negative || text.ptr[0] == '+');
    int64_t value = 0;
    for (; i < text.len; i++) {
        value = value * 10 + (text.ptr[i] - '0');
        if (value > EXP_MAX)
            return false;
    }
    *out = negative ? -value : value;
    return true;
}

/* -12.50 -> "-125" and exponent -1: no zero in front, none at the end. */
static void write_number(struct canon *c, struct hk_str raw)
{
    size_t end = 0, first = c->out.len;
    int64_t exponent = 0;
    bool point = false;
    while (end < raw.len && raw.ptr[end] != 'e' && raw.ptr[end] != 'E')
        end++;
    struct hk_str tail = {raw.ptr + end + 1, end < raw.len ? raw.len - end - 1 : 0};
    if (!read_exponent(tail, &exponent)) {
        (void)hk_buf_addc(&c->out, '?');
        (void)hk_buf_add(&c->out, raw.ptr, raw.len);
        return;
    }
    (void)hk_buf_addc(&c->out, raw.ptr[0] == '-' ? '-' : '+');
    for (size_t i = raw.ptr[0] == '-'; i < end; i++) {
        exponent -= point;
        if (raw.ptr[i] == '.')
            point = true;
        else if (raw.ptr[i] != '0' || c->out.len > first + 1)
            (void)hk_buf_addc(&c->out, raw.ptr[i]);
    }
    while (c->out.len > first + 1 && c->out.data[c->out.len - 1] == '0') {
        c->out.len--;
        exponent++;
    }
    if (c->out.len == first + 1)
        exponent = 0;                         /* zero is zero */
    bool with_point = point && exponent >= 0; /* 1.0 */
    (void)hk_buf_addf(&c->out, "%s%lld", with_point ? "." : "e", (long long)exponent);
}

/* ---- objects ---- */

struct members {
    struct member *items;
    size_t n, room;
};

static bool add_member(struct members *m, struct member one)
{
    if (m->n == m->room) {
        size_t room = m->room ? 2 * m->room : 16;
        struct member *items = hk_mem_resize(m->items, room * sizeof *items);
        if (!items)
            return false;
        m->items = items;
        m->room = room;
    }
    m->items[m->n++] = one;
    return true;
}

/* What qsort compares: where the member lies by now. */
struct placed {
    const char *ptr;
    size_t len, name_len;
    size_t turn; /* as it was written: of names that stand twice the order is kept */
};

static int by_name(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    size_t n = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->ptr, y->ptr, n);
    if (order != 0)
        return order;
    if (x->name_len != y->name_len)
        return x->name_len < y->name_len ? -1 : 1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

/* The members that were written from `first` on are put in order. */
static bool sort_members(struct canon *c, size_t first, const struct members *m)
{
    struct placed *sorted = hk_mem_zalloc(m->n, sizeof *sorted);
    struct hk_buf copy;
    hk_buf_init(&copy, CANON_MAX);
    (void)hk_buf_add(&copy, c->out.data + first, c->out.len - first);
    bool ok = sorted && hk_buf_status(&copy) == HK_OK;
    for (size_t i = 0; ok && i < m->n; i++)
        sorted[i] =
            (struct placed){copy.data + (m->items[i].at - first), m->items[i].len, m->items[i].name_len, i};
    if (ok) {
        qsort(sorted, m->n, sizeof *sorted, by_name);
        c->out.len = first;
    }
    for (size_t i = 0; ok && i < m->n; i++) {
        (void)hk_buf_add(&c->out, sorted[i].ptr, sorted[i].len);
        c->twins = c->twins || (i > 0 && sorted[i].name_len == sorted[i - 1].name_len &&
                                memcmp(sorted[i].ptr, sorted[i - 1].ptr, sorted[i].name_len) == 0);
    }
    hk_mem_free(sorted);
    hk_buf_fini(&copy);
    return ok;
}

static bool write_object(struct canon *c)
{
    struct members m = {.items = NULL};
    struct hk_scan_token token;
    bool ok = hk_buf_addc(&c->out, '{') == HK_OK;
    size_t first = c->out.len;
    enum hk_scan_kind kind = hk_scan_next(&c->scan, &token);
    while (ok && kind == HK_SCAN_KEY) {
        struct member one = {.at = c->out.len};
        write_string(c, &token);
        one.name_len = c->out.len - one.at;
        (void)hk_scan_next(&c->scan, &token);
        ok = write_value(c, &token);
        one.len = c->out.len - one.at;
        ok = ok && hk_buf_status(&c->out) == HK_OK && add_member(&m, one);
        kind = ok ? hk_scan_next(&c->scan, &token) : HK_SCAN_ERROR;
    }
    ok = ok && kind == HK_SCAN_OBJECT_END && (m.n < 2 || sort_members(c, first, &m));
    (void)hk_buf_addc(&c->out, '}');
    hk_mem_free(m.items);
    return ok;
}

/* ---- the whole ---- */

static bool write_array(struct canon *c)
{
    struct hk_scan_token token;
    (void)hk_buf_addc(&c->out, '[');
    enum hk_scan_kind kind = hk_scan_next(&c->scan, &token);
    for (; kind != HK_SCAN_ARRAY_END; kind = hk_scan_next(&c->scan, &token))
        if (!write_value(c, &token))
            return false;
    (void)hk_buf_addc(&c->out, ']');
    return true;
}

/* False: it is not JSON, or memory is short. As deep as the scanner goes (HK_SCAN_DEPTH_MAX). */
static bool write_value(struct canon *c, const struct hk_scan_token *token)
{
    switch (token->kind) {
    case HK_SCAN_OBJECT:
        return write_object(c);
    case HK_SCAN_ARRAY:
        return write_array(c);
    case HK_SCAN_STRING:
        write_string(c, token);
        break;
    case HK_SCAN_NUMBER:
        write_number(c, token->raw);
        break;
    case HK_SCAN_TRUE:
    case HK_SCAN_FALSE:
    case HK_SCAN_NULL:
        (void)hk_buf_add(&c->out, token->raw.ptr, 1);
        break;
    case HK_SCAN_KEY:
    case HK_SCAN_OBJECT_END:
    case HK_SCAN_ARRAY_END:
    case HK_SCAN_END:
    case HK_SCAN_ERROR:
    case HK_NSCANS:
        return false;
    }
    return hk_buf_status(&c->out) == HK_OK;
}

static bool canonize(struct canon *c, struct hk_str json)
{
    struct hk_scan_token token;
    hk_buf_init(&c->out, CANON_MAX);
    hk_scan_init(&c->scan, json);
    (void)hk_scan_next(&c->scan, &token);
    return write_value(c, &token) && hk_scan_next(&c->scan, &token) == HK_SCAN_END &&
           hk_buf_status(&c->out) == HK_OK;
}

bool hk_json_same(struct hk_str a, struct hk_str b)
{
    if (hk_str_eq(a, b))
        return true;
    struct canon x = {.twins = false}, y = {.twins = false};
    bool same = canonize(&x, a) && canonize(&y, b) && hk_str_eq(hk_buf_str(&x.out), hk_buf_str(&y.out));
    hk_buf_fini(&x.out);
    hk_buf_fini(&y.out);
    return same;
}

bool hk_json_has_twins(struct hk_str json, bool *out_known)
{
    struct canon c = {.twins = false};
    *out_known = canonize(&c, json);
    hk_buf_fini(&c.out);
    return *out_known && c.twins;
}
