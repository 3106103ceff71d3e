/* SPDX-License-Identifier: Apache-2.0 */
/* The parsing algorithms of RFC 9651, section 4.2, for what a list of items needs. Inner lists are not read: no field
 * that we look at has them, and refusing one is what ignoring a malformed field asks for. */
#include <string.h>

#include "base/str.h"
#include "core/sfield.h"

enum {
    INTEGER_DIGITS = 15,
    DECIMAL_WHOLE_DIGITS = 12,
    DECIMAL_FRACTION_DIGITS = 3
};

static bool next_is(struct hk_str s, char c)
{
    return s.len > 0 && s.ptr[0] == c;
}

static void advance(struct hk_str *rest, size_t n)
{
    rest->ptr += n;
    rest->len -= n;
}

static bool take(struct hk_str *rest, char c)
{
    if (!next_is(*rest, c))
        return false;
    advance(rest, 1);
    return true;
}

static size_t count_while(struct hk_str s, bool (*accept)(char c))
{
    size_t n = 0;
    while (n < s.len && accept(s.ptr[n]))
        n++;
    return n;
}

/* The text between the begin of `from` and the begin of `rest`. */
static struct hk_str taken_since(struct hk_str from, struct hk_str rest)
{
    return (struct hk_str){from.ptr, from.len - rest.len};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
    return c == ' ';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_key_char(char c)
{
    return is_lower(c) || hk_ascii_isdigit(c) || c == '_' || c == '-' || c == '.' || c == '*';
}

/* tchar of RFC 9110, ":" and "/" */
static bool is_token_char(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c) ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~:/", c) != NULL);
}

static bool is_base64_char(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || c == '+' || c == '/';
}

static bool is_printable(char c)
{
    return c >= 0x20 && c <= 0x7e;
}

static bool read_number(struct hk_str *rest, struct hk_sf_value *out)
{
    bool negative = take(rest, '-');
    size_t digits = count_while(*rest, hk_ascii_isdigit);
    if (digits == 0 || digits > INTEGER_DIGITS)
        return false;
    int64_t value = 0;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (rest->ptr[i] - '0');
    advance(rest, digits);
    out->type = HK_SF_INTEGER;
    out->integer = negative ? -value : value;
    if (!take(rest, '.'))
        return true;
    size_t fraction = count_while(*rest, hk_ascii_isdigit);
    advance(rest, fraction);
    out->type = HK_SF_DECIMAL;
    return digits <= DECIMAL_WHOLE_DIGITS && fraction >= 1 && fraction <= DECIMAL_FRACTION_DIGITS;
}

/* Behind the opening quote. */
static bool read_string(struct hk_str *rest, struct hk_sf_value *out)
{
    out->type = HK_SF_STRING;
    while (rest->len > 0) {
        char c = rest->ptr[0];
        advance(rest, 1);
        if (c == '"')
            return true;
        if (!is_printable(c))
            return false;
        if (c == '\\' && !take(rest, '"') && !take(rest, '\\'))
            return false;
    }
    return false;
}

static bool is_lower_hex(char c)
{
    return hk_ascii_isdigit(c) || (c >= 'a' && c <= 'f');
}

/* Behind the percent sign. That the escapes make up UTF-8 is not checked: nobody reads them. */
static bool read_display_string(struct hk_str *rest, struct hk_sf_value *out)
{
    out->type = HK_SF_DISPLAY;
    if (!take(rest, '"'))
        return false;
    while (rest->len > 0) {
        char c = rest->ptr[0];
        advance(rest, 1);
        if (c == '"')
            return true;
        if (!is_printable(c))
            return false;
        if (c != '%')
            continue;
        if (rest->len < 2 || !is_lower_hex(rest->ptr[0]) || !is_lower_hex(rest->ptr[1]))
            return false;
        advance(rest, 2);
    }
    return false;
}

static bool read_token(struct hk_str *rest, struct hk_sf_value *out)
{
    out->type = HK_SF_TOKEN;
    if (rest->len == 0 || (!hk_ascii_isalpha(rest->ptr[0]) && rest->ptr[0] != '*'))
        return false;
    advance(rest, count_while(*rest, is_token_char));
    return true;
}

/* Behind the opening colon. Padding may be missing, as the RFC lets a reader put it back. */
static bool read_bytes(struct hk_str *rest, struct hk_sf_value *out)
{
    out->type = HK_SF_BYTES;
    advance(rest, count_while(*rest, is_base64_char));
    if (take(rest, '='))
        take(rest, '=');
    return take(rest, ':');
}

static bool read_boolean(struct hk_str *rest, struct hk_sf_value *out)
{
    out->type = HK_SF_BOOLEAN;
    out->integer = next_is(*rest, '1');
    return take(rest, '1') || take(rest, '0');
}

static bool read_date(struct hk_str *rest, struct hk_sf_value *out)
{
    if (!read_number(rest, out) || out->type != HK_SF_INTEGER)
        return false;
    out->type = HK_SF_DATE;
    return true;
}

static bool read_any(struct hk_str *rest, struct hk_sf_value *out)
{
    if (take(rest, '"'))
        return read_string(rest, out);
    if (take(rest, ':'))
        return read_bytes(rest, out);
    if (take(rest, '?'))
        return read_boolean(rest, out);
    if (take(rest, '@'))
        return read_date(rest, out);
    if (take(rest, '%'))
        return read_display_string(rest, out);
    if (next_is(*rest, '-') || (rest->len > 0 && hk_ascii_isdigit(rest->ptr[0])))
        return read_number(rest, out);
    return read_token(rest, out);
}

bool hk_sf_read_value(struct hk_str *rest, struct hk_sf_value *out_value)
{
    struct hk_str from = *rest;
    struct hk_sf_value value = {0};
    if (!read_any(rest, &value))
        return false;
    value.text = taken_since(from, *rest);
    *out_value = value;
    return true;
}

static bool read_key(struct hk_str *rest, struct hk_str *out_key)
{
    struct hk_str from = *rest;
    if (rest->len == 0 || (!is_lower(rest->ptr[0]) && rest->ptr[0] != '*'))
        return false;
    advance(rest, count_while(*rest, is_key_char));
    *out_key = taken_since(from, *rest);
    return true;
}

bool hk_sf_read_param(struct hk_str *rest, bool *out_found, struct hk_str *out_key,
                      struct hk_sf_value *out_value)
{
    *out_found = take(rest, ';');
    if (!*out_found)
        return true;
    size_t spaces = count_while(*rest, is_space);
    if (spaces)
        advance(rest, spaces);
    if (!read_key(rest, out_key))
        return false;
    if (take(rest, '='))
        return hk_sf_read_value(rest, out_value);
    *out_value = (struct hk_sf_value){.type = HK_SF_BOOLEAN, .integer = 1};
    return true;
}

static void skip_blanks(struct hk_str *rest)
{
    size_t n = count_while(*rest, is_blank);
    if (n)
        advance(rest, n);
}

bool hk_sf_read_comma(struct hk_str *rest, bool *out_more)
{
    skip_blanks(rest);
    *out_more = rest->len > 0;
    if (!*out_more)
        return true;
    if (!take(rest, ','))
        return false;
    skip_blanks(rest);
    return rest->len > 0; /* a list must not end with a comma */
}

bool hk_sf_same(const struct hk_sf_value *a, const struct hk_sf_value *b)
{
    return hk_str_eq(a->text, b->text); /* it starts with what gives the type away */
}
