/* SPDX-License-Identifier: Apache-2.0 */
/* Slices. */
#include <string.h>

#include "base/str.h"

struct hk_str hk_str_of(const char *cstr)
{
    return (struct hk_str){cstr, cstr ? strlen(cstr) : 0};
}

bool hk_str_eq(struct hk_str a, struct hk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

char hk_ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool hk_ascii_isdigit(char c)
{
    return c >= '0' && c <= '9';
}

bool hk_ascii_isalpha(char c)
{
    char l = hk_ascii_lower(c);
    return l >= 'a' && l <= 'z';
}

bool hk_str_eqi(struct hk_str a, struct hk_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (hk_ascii_lower(a.ptr[i]) != hk_ascii_lower(b.ptr[i]))
            return false;
    return true;
}

bool hk_str_starts(struct hk_str s, struct hk_str prefix)
{
    return s.len >= prefix.len && hk_str_eq((struct hk_str){s.ptr, prefix.len}, prefix);
}

bool hk_str_containsi(struct hk_str s, struct hk_str needle)
{
    if (needle.len == 0)
        return true;
    for (size_t i = 0; s.len >= needle.len && i <= s.len - needle.len; i++)
        if (hk_str_eqi((struct hk_str){s.ptr + i, needle.len}, needle))
            return true;
    return false;
}

/* Goes back to the last star only, so it is linear in practice and quadratic at the worst. */
bool hk_str_glob(const char *pattern, struct hk_str s)
{
    const char *star = NULL;
    size_t i = 0, resume = 0;
    while (i < s.len) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = i;
        } else if (*pattern && *pattern == s.ptr[i]) {
            pattern++;
            i++;
        } else if (star) {
            pattern = star;
            i = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct hk_str hk_str_trim(struct hk_str s)
{
    while (s.len && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

struct hk_str hk_str_cut(struct hk_str *rest, char sep)
{
    struct hk_str head = *rest;
    const char *at = rest->len ? memchr(rest->ptr, sep, rest->len) : NULL;
    if (!at) {
        *rest = (struct hk_str){NULL, 0};
        return head;
    }
    head.len = (size_t)(at - head.ptr);
    *rest = (struct hk_str){at + 1, rest->len - head.len - 1};
    return head;
}

bool hk_str_copy(char *out, size_t room, struct hk_str s)
{
    out[0] = '\0';
    if (s.len >= room || (s.len && memchr(s.ptr, '\0', s.len)))
        return false;
    if (s.len)
        memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return true;
}

enum {
    DISTANCE_MAX_LEN = 63,
    DISTANCE_FAR = 99
};

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

unsigned hk_str_distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    if (la > DISTANCE_MAX_LEN || lb > DISTANCE_MAX_LEN)
        return DISTANCE_FAR;
    unsigned rows[3][DISTANCE_MAX_LEN + 1];
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned swap = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + swap);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                unsigned crossed = rows[(i - 2) % 3][j - 2] + 1;
                row[j] = row[j] < crossed ? row[j] : crossed;
            }
        }
    }
    return rows[la % 3][lb];
}
