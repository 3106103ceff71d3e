/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "sink/aws/xml.h"

/* ---- elements ---- */

static bool ends_name(char c)
{
    return c == '>' || c == '/' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool stands_at(struct hk_str s, size_t at, struct hk_str what)
{
    return what.len <= s.len - at && memcmp(s.ptr + at, what.ptr, what.len) == 0;
}

/* Behind the first tag "<name …>"; s.len + 1: there is none. `*out_empty`: it is "<name/>". */
static size_t find_open(struct hk_str s, struct hk_str name, bool *out_empty)
{
    for (size_t i = 0; i + 1 < s.len; i++) {
        size_t end = i + 1 + name.len;
        if (s.ptr[i] != '<' || !stands_at(s, i + 1, name) || end >= s.len || !ends_name(s.ptr[end]))
            continue;
        const char *close = memchr(s.ptr + end, '>', s.len - end);
        if (!close)
            break;
        *out_empty = close[-1] == '/';
        return (size_t)(close - s.ptr) + 1;
    }
    return s.len + 1;
}

/* Where "</name>" begins; s.len: there is none. */
static size_t find_close(struct hk_str s, size_t from, struct hk_str name)
{
    for (size_t i = from; i + name.len + 2 < s.len; i++)
        if (s.ptr[i] == '<' && s.ptr[i + 1] == '/' && stands_at(s, i + 2, name) &&
            s.ptr[i + 2 + name.len] == '>')
            return i;
    return s.len;
}

bool hk_aws_xml_next(struct hk_str *rest, const char *name, struct hk_str *out_inner)
{
    struct hk_str s = *rest, word = hk_str_of(name);
    bool empty = false;
    size_t begin = find_open(s, word, &empty);
    if (begin > s.len)
        return false;
    size_t end = empty ? begin : find_close(s, begin, word);
    if (!empty && end == s.len)
        return false;
    size_t behind = empty ? begin : end + word.len + 3;
    *out_inner = (struct hk_str){s.ptr + begin, end - begin};
    *rest = (struct hk_str){s.ptr + behind, s.len - behind};
    return true;
}

/* ---- text ---- */

static const struct {
    const char *name;
    char c;
} entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};

/* How many bytes the entity at the start of `s` takes; 0: it is none. Numbers beyond ASCII stay as they are. */
static size_t read_entity(struct hk_str s, char *out)
{
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        *out = entities[i].c;
        if (hk_str_starts(s, hk_str_of(entities[i].name)))
            return strlen(entities[i].name);
    }
    unsigned n = 0;
    size_t i = 2;
    if (!hk_str_starts(s, hk_str_of("&#")))
        return 0;
    for (; i < s.len && i < 5 && hk_ascii_isdigit(s.ptr[i]); i++)
        n = n * 10 + (unsigned)(s.ptr[i] - '0');
    *out = (char)n;
    return i > 2 && i < s.len && s.ptr[i] == ';' && n > 0 && n < 128 ? i + 1 : 0;
}

static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static void resolve(struct hk_str text, char *out, size_t room)
{
    size_t n = 0;
    while (text.len && n + 1 < room) {
        char c = text.ptr[0];
        size_t used = c == '&' ? read_entity(text, &c) : 1;
        out[n++] = used ? c : '&';
        used = used ? used : 1;
        text = (struct hk_str){text.ptr + used, text.len - used};
    }
    if (text.len &&
        is_inside_character(text.ptr[0])) { /* cut within a character: without its beginning, too */
        while (n && is_inside_character(out[n - 1]))
            n--;
        n -= n > 0;
    }
    out[n] = '\0';
}

bool hk_aws_xml_text(struct hk_str in, const char *name, char *out, size_t room)
{
    struct hk_str inner;
    out[0] = '\0';
    if (!hk_aws_xml_next(&in, name, &inner))
        return false;
    resolve(inner, out, room);
    return true;
}
