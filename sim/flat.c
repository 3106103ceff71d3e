/* SPDX-License-Identifier: Apache-2.0 */
/* A reader for flat JSON objects. Escapes other than the short ones and \u00xx are not ours and refused. */
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

static bool read_escape(struct reader *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    const char *known = memchr(from, c, sizeof from - 1);
    if (known)
        return put(r->flat, to[known - from]);
    if (c != 'u' || r->end - r->at < 4 || r->at[0] != '0' || r->at[1] != '0')
        return false;
    int hi = hex_digit(r->at[2]), lo = hex_digit(r->at[3]);
    r->at += 4;
    return hi >= 0 && lo >= 0 && hi < 8 && put(r->flat, (char)(hi * 16 + lo));
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
