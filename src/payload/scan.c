/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner: one state, one bit per open container, no recursion, so that nothing in a text can cost more than its length. */
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "payload/scan.h"

enum state {
    WANT_VALUE = 0,
    WANT_ITEM_OR_END, /* right after [ */
    WANT_KEY_OR_END,  /* right after { */
    WANT_KEY,         /* after a comma in an object */
    WANT_COLON,
    WANT_COMMA_OR_END,
    WANT_NOTHING, /* the top value is complete */
    AT_END,
    AT_ERROR
};

void hk_scan_init(struct hk_json_scan *scan, struct hk_str text)
{
    *scan = (struct hk_json_scan){.text = text, .state = WANT_VALUE};
}

static enum hk_scan_kind fail(struct hk_json_scan *scan, size_t at, const char *why)
{
    scan->state = AT_ERROR;
    scan->why = why;
    scan->error_at = at;
    return HK_SCAN_ERROR;
}

static void skip_blanks(struct hk_json_scan *scan)
{
    const char *p = scan->text.ptr;
    while (scan->pos < scan->text.len &&
           (p[scan->pos] == ' ' || p[scan->pos] == '\n' || p[scan->pos] == '\t' || p[scan->pos] == '\r'))
        scan->pos++;
}

static void after_value(struct hk_json_scan *scan)
{
    scan->state = scan->depth ? WANT_COMMA_OR_END : WANT_NOTHING;
}

static struct hk_str slice(const struct hk_json_scan *scan, size_t from, size_t to)
{
    return (struct hk_str){scan->text.ptr + from, to - from};
}

/* ---- strings ---- */

static bool is_hex(char c)
{
    char l = hk_ascii_lower(c);
    return hk_ascii_isdigit(c) || (l >= 'a' && l <= 'f');
}

/* Bytes of the escape at `pos`; 0: it is none. */
static size_t escape_len(struct hk_str text, size_t pos)
{
    if (pos + 1 >= text.len)
        return 0;
    char c = text.ptr[pos + 1];
    if (c != 'u')
        return c && strchr("\"\\/bfnrt", c) ? 2 : 0;
    for (size_t i = 2; i < 6; i++) {
        if (pos + i >= text.len || !is_hex(text.ptr[pos + i]))
            return 0;
    }
    return 6;
}

/* Bytes of what stands at `pos` inside a string, neither its end nor an escape; 0: it may not stand there. */
static size_t plain_len(struct hk_str text, size_t pos)
{
    unsigned char c = (unsigned char)text.ptr[pos];
    if (c < 0x80)
        return c >= 0x20;
    uint32_t decoded = 0;
    size_t len = hk_utf8_next((struct hk_str){text.ptr + pos, text.len - pos}, &decoded);
    return decoded == HK_UTF8_BAD ? 0 : len;
}

/* Passes over what most strings are made of. */
static size_t skip_ascii(struct hk_str text, size_t pos)
{
    while (pos < text.len && text.ptr[pos] >= 0x20 && text.ptr[pos] < 0x7f && text.ptr[pos] != '"' &&
           text.ptr[pos] != '\\')
        pos++;
    return pos;
}

/* From the opening quote at `pos`. */
static enum hk_scan_kind string(struct hk_json_scan *scan, struct hk_scan_token *out, enum hk_scan_kind kind)
{
    const size_t start = scan->pos;
    size_t pos = skip_ascii(scan->text, start + 1);
    bool escaped = false;
    while (pos < scan->text.len && scan->text.ptr[pos] != '"') {
        bool escape = scan->text.ptr[pos] == '\\';
        size_t len = escape ? escape_len(scan->text, pos) : plain_len(scan->text, pos);
        if (!len && escape)
            return fail(scan, pos, "a backslash that begins no escape sequence of JSON");
        if (!len)
            return fail(scan, pos,
                        (unsigned char)scan->text.ptr[pos] < 0x20
                            ? "a control character inside a string; JSON writes it as \\n, \\t or \\u00XX"
                            : "the text is not UTF-8");
        escaped = escaped || escape;
        pos = skip_ascii(scan->text, pos + len);
    }
    if (pos >= scan->text.len)
        return fail(scan, start, "a string that begins here does not end");
    scan->pos = pos + 1;
    *out = (struct hk_scan_token){
        .kind = kind, .at = start, .raw = slice(scan, start, scan->pos), .escaped = escaped};
    return kind;
}

static enum hk_scan_kind key(struct hk_json_scan *scan, struct hk_scan_token *out)
{
    if (scan->text.ptr[scan->pos] != '"')
        return fail(scan, scan->pos,
                    scan->text.ptr[scan->pos] == '}' ? "a comma before the end of an object"
                                                     : "a name in double quotes is expected here");
    enum hk_scan_kind kind = string(scan, out, HK_SCAN_KEY);
    if (kind == HK_SCAN_KEY)
        scan->state = WANT_COLON;
    return kind;
}

/* ---- numbers and words ---- */

static size_t digits(const struct hk_json_scan *scan, size_t pos)
{
    size_t from = pos;
    while (pos < scan->text.len && hk_ascii_isdigit(scan->text.ptr[pos]))
        pos++;
    return pos - from;
}

static bool at_any(const struct hk_json_scan *scan, size_t pos, const char *set)
{
    return pos < scan->text.len && scan->text.ptr[pos] && strchr(set, scan->text.ptr[pos]);
}

static enum hk_scan_kind number(struct hk_json_scan *scan, struct hk_scan_token *out)
{
    const size_t start = scan->pos;
    size_t pos = start + (scan->text.ptr[start] == '-');
    size_t whole = digits(scan, pos);
    if (!whole)
        return fail(scan, pos, "a digit is expected here");
    if (whole > 1 && scan->text.ptr[pos] == '0')
        return fail(scan, pos, "a number must not begin with 0");
    pos += whole;
    bool fraction = at_any(scan, pos, ".");
    if (fraction) {
        size_t n = digits(scan, pos + 1);
        if (!n)
            return fail(scan, pos + 1, "a digit is expected after the point");
        pos += 1 + n;
    }
    bool exponent = at_any(scan, pos, "eE");
    if (exponent) {
        pos += 1 + at_any(scan, pos + 1, "+-");
        size_t n = digits(scan, pos);
        if (!n)
            return fail(scan, pos, "a digit is expected in the exponent");
        pos += n;
    }
    scan->pos = pos;
    *out = (struct hk_scan_token){.kind = HK_SCAN_NUMBER,
                                  .at = start,
                                  .raw = slice(scan, start, pos),
                                  .integer = !fraction && !exponent};
    return HK_SCAN_NUMBER;
}

static enum hk_scan_kind word(struct hk_json_scan *scan, struct hk_scan_token *out)
{
    static const struct {
        const char *text;
        enum hk_scan_kind kind;
    } words[] = {{"true", HK_SCAN_TRUE}, {"false", HK_SCAN_FALSE}, {"null", HK_SCAN_NULL}};
    struct hk_str rest = slice(scan, scan->pos, scan->text.len);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct hk_str text = hk_str_of(words[i].text);
        if (!hk_str_starts(rest, text))
            continue;
        *out = (struct hk_scan_token){words[i].kind, scan->pos, {rest.ptr, text.len}, false, false};
        scan->pos += text.len;
        return words[i].kind;
    }
    if (hk_str_starts(rest, hk_str_of("\xef\xbb\xbf")))
        return fail(scan, scan->pos, "a byte order mark, which JSON does not have");
    if (*rest.ptr == '\'')
        return fail(scan, scan->pos, "strings stand in double quotes");
    return fail(scan, scan->pos, "a value is expected here");
}

/* ---- structure ---- */

static enum hk_scan_kind begin_container(struct hk_json_scan *scan, struct hk_scan_token *out, bool object)
{
    if (scan->depth == HK_SCAN_DEPTH_MAX)
        return fail(scan, scan->pos, "objects and arrays are nested too deeply");
    unsigned i = scan->depth++;
    uint64_t bit = UINT64_C(1) << (i % 64);
    scan->in_object[i / 64] = object ? scan->in_object[i / 64] | bit : scan->in_object[i / 64] & ~bit;
    scan->state = object ? WANT_KEY_OR_END : WANT_ITEM_OR_END;
    enum hk_scan_kind kind = object ? HK_SCAN_OBJECT : HK_SCAN_ARRAY;
    *out = (struct hk_scan_token){kind, scan->pos, slice(scan, scan->pos, scan->pos + 1), false, false};
    scan->pos++;
    return kind;
}

static enum hk_scan_kind end_container(struct hk_json_scan *scan, struct hk_scan_token *out)
{
    enum hk_scan_kind kind = hk_scan_in_object(scan) ? HK_SCAN_OBJECT_END : HK_SCAN_ARRAY_END;
    *out = (struct hk_scan_token){kind, scan->pos, slice(scan, scan->pos, scan->pos + 1), false, false};
    scan->pos++;
    scan->depth--;
    after_value(scan);
    return kind;
}

static enum hk_scan_kind value(struct hk_json_scan *scan, struct hk_scan_token *out)
{
    char c = scan->text.ptr[scan->pos];
    if (c == '{' || c == '[')
        return begin_container(scan, out, c == '{');
    if (c == ']' && scan->depth && !hk_scan_in_object(scan))
        return fail(scan, scan->pos, "a comma before the end of an array");
    enum hk_scan_kind kind = c == '"'                          ? string(scan, out, HK_SCAN_STRING)
                             : c == '-' || hk_ascii_isdigit(c) ? number(scan, out)
                                                               : word(scan, out);
    if (kind != HK_SCAN_ERROR)
        after_value(scan);
    return kind;
}

static enum hk_scan_kind at_text_end(struct hk_json_scan *scan)
{
    switch ((enum state)scan->state) {
    case WANT_NOTHING:
    case AT_END:
        scan->state = AT_END;
        return HK_SCAN_END;
    case AT_ERROR:
        return HK_SCAN_ERROR;
    case WANT_VALUE:
    case WANT_ITEM_OR_END:
    case WANT_KEY_OR_END:
    case WANT_KEY:
    case WANT_COLON:
    case WANT_COMMA_OR_END:
        break;
    }
    return fail(scan, scan->pos, scan->depth ? "the text ends too early" : "the text is empty");
}

/* A comma or a colon leads to the next token; here it is passed over. False: an error was noted. */
static bool skip_separator(struct hk_json_scan *scan)
{
    char c = scan->text.ptr[scan->pos];
    if (scan->state == WANT_COLON && c == ':') {
        scan->state = WANT_VALUE;
    } else if (scan->state == WANT_COMMA_OR_END && c == ',') {
        scan->state = hk_scan_in_object(scan) ? WANT_KEY : WANT_VALUE;
    } else {
        fail(scan, scan->pos,
             scan->state == WANT_COLON ? "a colon is expected after the name"
             : hk_scan_in_object(scan) ? "a comma or } is expected here"
                                       : "a comma or ] is expected here");
        return false;
    }
    scan->pos++;
    skip_blanks(scan);
    return true;
}

static bool at_close(const struct hk_json_scan *scan)
{
    char c = scan->text.ptr[scan->pos];
    if (scan->state == WANT_COMMA_OR_END)
        return c == (hk_scan_in_object(scan) ? '}' : ']');
    return (scan->state == WANT_KEY_OR_END && c == '}') || (scan->state == WANT_ITEM_OR_END && c == ']');
}

enum hk_scan_kind hk_scan_next(struct hk_json_scan *scan, struct hk_scan_token *out)
{
    if (scan->state < AT_END)
        skip_blanks(scan);
    if (scan->state >= AT_END || scan->pos >= scan->text.len)
        return at_text_end(scan);
    if (at_close(scan))
        return end_container(scan, out);
    if ((scan->state == WANT_COLON || scan->state == WANT_COMMA_OR_END) && !skip_separator(scan))
        return HK_SCAN_ERROR;
    if (scan->pos >= scan->text.len)
        return at_text_end(scan);
    if (scan->state == WANT_NOTHING)
        return fail(scan, scan->pos, "there is more text after the end of the value");
    if (scan->state == WANT_KEY || scan->state == WANT_KEY_OR_END)
        return key(scan, out);
    return value(scan, out);
}

bool hk_scan_leave(struct hk_json_scan *scan)
{
    struct hk_scan_token token;
    unsigned outer = scan->depth - 1;
    while (scan->depth > outer) {
        if (hk_scan_next(scan, &token) == HK_SCAN_ERROR)
            return false;
    }
    return true;
}

/* ---- whole texts ---- */

enum hk_code hk_scan_check(struct hk_str text, struct hk_err *err)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    enum hk_scan_kind kind = HK_SCAN_END;
    hk_scan_init(&scan, text);
    do
        kind = hk_scan_next(&scan, &token);
    while (kind != HK_SCAN_END && kind != HK_SCAN_ERROR);
    return kind == HK_SCAN_END ? HK_OK : hk_scan_err(&scan, err);
}

enum hk_code hk_scan_err(const struct hk_json_scan *scan, struct hk_err *err)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < scan->error_at; i++) {
        unsigned char c = (unsigned char)scan->text.ptr[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xc0) != 0x80) {
            column++; /* once per character */
        }
    }
    if (line == 1)
        return hk_err_set(err, HK_INVALID, "not JSON: byte %zu: %s", scan->error_at, scan->why);
    return hk_err_set(err, HK_INVALID, "not JSON: byte %zu (line %zu, column %zu): %s", scan->error_at, line,
                      column, scan->why);
}
