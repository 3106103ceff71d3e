/* SPDX-License-Identifier: Apache-2.0 */
/* A reader for flat JSON objects. Halves of surrogate pairs by themselves are refused. */
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "flat.h"

struct reader {
    struct hk_flat *flat;
    const char *at, *end;
};

static bool eat(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool put(struct hk_flat *flat, char c)
{
    if (flat->used == sizeof flat->texts)
        return false;
    flat->texts[flat->used++] = c;
    return true;
}

static int hex_digit(char c)
{
    if (hk_ascii_isdigit(c))
        return c - '0';
    c = hk_ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four digits. */
static bool read_hex(struct reader *r, uint32_t *out)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = r->at < r->end ? hex_digit(*r->at++) : -1;
        if (digit < 0)
            return false;
        value = value * 16 + (uint32_t)digit;
    }
    *out = value;
    return true;
}

static bool put_char(struct hk_flat *flat, uint32_t c)
{
    if (c < 0x80)
        return put(flat, (char)c);
    if (c < 0x800)
        return put(flat, (char)(0xc0 | c >> 6)) && put(flat, (char)(0x80 | (c & 63)));
    bool lead = c < 0x10000 ? put(flat, (char)(0xe0 | c >> 12))
                            : put(flat, (char)(0xf0 | c >> 18)) && put(flat, (char)(0x80 | (c >> 12 & 63)));
    return lead && put(flat, (char)(0x80 | (c >> 6 & 63))) && put(flat, (char)(0x80 | (c & 63)));
}

static bool read_escape(struct reader *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    const char *known = memchr(from, c, sizeof from - 1);
    if (known)
        return put(r->flat, to[known - from]);
    uint32_t u, low;
    if (c != 'u' || !read_hex(r, &u) || (u >= 0xdc00 && u < 0xe000))
        return false;
    if (u >= 0xd800 && u < 0xdc00) {
        if (!eat(r, '\\') || !eat(r, 'u') || !read_hex(r, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        u = 0x10000 + ((u - 0xd800) << 10 | (low - 0xdc00));
    }
    return put_char(r->flat, u);
}

static bool read_text(struct reader *r, struct hk_str *out)
{
    struct hk_flat *flat = r->flat;
    size_t start = flat->used;
    if (!eat(r, '"'))
        return false;
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if (c == '\\' ? !read_escape(r) : (unsigned char)c < 0x20 || !put(flat, c))
            return false;
    }
    *out = (struct hk_str){flat->texts + start, flat->used - start};
    return eat(r, '"');
}

static bool read_number(struct reader *r, int64_t *out)
{
    const char *start = r->at;
    while (r->at < r->end && (*r->at == '-' || hk_ascii_isdigit(*r->at)))
        r->at++;
    return hk_parse_i64((struct hk_str){start, (size_t)(r->at - start)}, out, NULL) == HK_OK;
}

static const struct hk_flat_field *find(const struct hk_flat *flat, struct hk_str key)
{
    for (size_t i = 0; i < flat->n; i++)
        if (hk_str_eq(flat->fields[i].key, key))
            return &flat->fields[i];
    return NULL;
}

static bool read_field(struct reader *r)
{
    struct hk_flat_field field = {.number = 0};
    if (!read_text(r, &field.key) || !eat(r, ':') || find(r->flat, field.key))
        return false;
    bool text = r->at < r->end && *r->at == '"';
    if (text ? !read_text(r, &field.text) : !read_number(r, &field.number))
        return false;
    if (r->flat->n == HK_FLAT_FIELDS)
        return false;
    r->flat->fields[r->flat->n++] = field;
    return true;
}

bool hk_flat_parse(struct hk_flat *flat, struct hk_str line)
{
    struct reader r = {flat, line.ptr, line.ptr + line.len};
    flat->n = flat->used = 0;
    if (!eat(&r, '{'))
        return false;
    do {
        if (!read_field(&r))
            return false;
    } while (eat(&r, ','));
    return eat(&r, '}') && r.at == r.end;
}

struct hk_str hk_flat_text(const struct hk_flat *flat, const char *key)
{
    const struct hk_flat_field *field = find(flat, hk_str_of(key));
    return field && field->text.ptr ? field->text : hk_str_of("");
}

int64_t hk_flat_number(const struct hk_flat *flat, const char *key)
{
    const struct hk_flat_field *field = find(flat, hk_str_of(key));
    return field ? field->number : 0;
}
