/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer. It only ever appends to the buffer, whose first error sticks, so nothing here checks for one. */
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void hk_json_init(struct hk_json *json, struct hk_buf *out, bool pretty)
{
    *json = (struct hk_json){.out = out, .pretty = pretty};
}

static void newline(struct hk_json *json)
{
    if (!json->pretty)
        return;
    hk_buf_addc(json->out, '\n');
    for (unsigned i = 0; i < json->depth; i++)
        hk_buf_adds(json->out, "  ");
}

/* The comma and the new line that come before an array's item or an object's key. */
static void separate(struct hk_json *json)
{
    bool *has_items = &json->has_items[json->depth - 1];
    if (*has_items)
        hk_buf_addc(json->out, ',');
    *has_items = true;
    newline(json);
}

/* To be called before any value. */
static void begin_value(struct hk_json *json)
{
    if (json->depth == 0)
        return;
    bool in_object = json->is_object[json->depth - 1];
    assert(in_object == json->after_key);
    if (!in_object)
        separate(json);
    json->after_key = false;
}

static void open_container(struct hk_json *json, bool is_object)
{
    begin_value(json);
    assert(json->depth < HK_JSON_DEPTH);
    json->is_object[json->depth] = is_object;
    json->has_items[json->depth] = false;
    json->depth++;
    hk_buf_addc(json->out, is_object ? '{' : '[');
}

void hk_json_object(struct hk_json *json)
{
    open_container(json, true);
}

void hk_json_array(struct hk_json *json)
{
    open_container(json, false);
}

void hk_json_end(struct hk_json *json)
{
    assert(json->depth > 0 && !json->after_key);
    json->depth--;
    if (json->has_items[json->depth])
        newline(json);
    hk_buf_addc(json->out, json->is_object[json->depth] ? '}' : ']');
}

static void add_escape(struct hk_buf *out, uint32_t c)
{
    static const char named[][2] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                    {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if ((uint32_t)named[i][0] == c) {
            hk_buf_add(out, (char[]){'\\', named[i][1]}, 2);
            return;
        }
    }
    if (c < 0x10000)
        hk_buf_addf(out, "\\u%04x", (unsigned)c);
    else
        hk_buf_addf(out, "\\u%04x\\u%04x", 0xd800 + (unsigned)((c - 0x10000) >> 10),
                    0xdc00 + (unsigned)(c & 0x3ff));
}

/* What moves a terminal's cursor, turns the direction of a line or cannot be seen is written as an escape: JSON is looked at
 * by people, too, and to programs the value is the same. */
static bool is_plain(uint32_t c)
{
    if (c < 0x7f)
        return c >= 0x20 && c != '"' && c != '\\';
    return c != HK_UTF8_BAD && !hk_utf8_is_unruly(c);
}

static void add_quoted(struct hk_buf *out, struct hk_str s)
{
    hk_buf_addc(out, '"');
    size_t plain = 0; /* bytes before `s` that need no change and are not added yet */
    while (s.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        if (is_plain(c)) {
            plain += taken;
        } else {
            hk_buf_add(out, s.ptr - plain, plain);
            plain = 0;
            if (c == HK_UTF8_BAD)
                hk_buf_adds(out, REPLACEMENT);
            else
                add_escape(out, c);
        }
        s.ptr += taken;
        s.len -= taken;
    }
    if (plain)
        hk_buf_add(out, s.ptr - plain, plain);
    hk_buf_addc(out, '"');
}

void hk_json_key(struct hk_json *json, const char *key)
{
    assert(json->depth > 0 && json->is_object[json->depth - 1] && !json->after_key);
    separate(json);
    add_quoted(json->out, hk_str_of(key));
    hk_buf_adds(json->out, json->pretty ? ": " : ":");
    json->after_key = true;
}

void hk_json_str(struct hk_json *json, struct hk_str s)
{
    begin_value(json);
    add_quoted(json->out, s);
}

void hk_json_cstr(struct hk_json *json, const char *s)
{
    if (s)
        hk_json_str(json, hk_str_of(s));
    else
        hk_json_null(json);
}

void hk_json_u64(struct hk_json *json, uint64_t value)
{
    begin_value(json);
    hk_buf_addf(json->out, "%" PRIu64, value);
}

void hk_json_i64(struct hk_json *json, int64_t value)
{
    begin_value(json);
    hk_buf_addf(json->out, "%" PRId64, value);
}

/* printf writes the locale's decimal mark, of one byte or more; JSON knows only the point. */
static void use_point(char *text)
{
    static const char kept[] = "0123456789+-eE";
    char *to = text;
    bool in_mark = false;
    for (const char *from = text; *from; from++) {
        bool keep = strchr(kept, *from) != NULL;
        if (keep || !in_mark)
            *to++ = keep ? *from : '.';
        in_mark = !keep;
    }
    *to = '\0';
}

void hk_json_double(struct hk_json *json, double value)
{
    if (!isfinite(value)) {
        hk_json_null(json);
        return;
    }
    /* Up to DBL_DIG digits survive reading back, and %g drops trailing zeros, so fewer need not be tried;
     * except below DBL_MIN, where precision dwindles. */
    char text[64];
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits++ < DBL_DECIMAL_DIG && strtod(text, NULL) != value);
    use_point(text);
    begin_value(json);
    hk_buf_adds(json->out, text);
}

void hk_json_bool(struct hk_json *json, bool value)
{
    begin_value(json);
    hk_buf_adds(json->out, value ? "true" : "false");
}

void hk_json_null(struct hk_json *json)
{
    begin_value(json);
    hk_buf_adds(json->out, "null");
}

void hk_json_raw(struct hk_json *json, struct hk_str value)
{
    if (value.len == 0) { /* no value at all would break the document around it */
        hk_json_null(json);
        return;
    }
    begin_value(json);
    hk_buf_add(json->out, value.ptr, value.len);
}
