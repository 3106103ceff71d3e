/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, part by part: what parts them is kept, and each part is a word or hidden. */
#include <string.h>

#include "base/str.h"
#include "base/url.h"

#define WORD_MAX 20
#define ELLIPSIS "\xe2\x80\xa6"

/* "v2" */
static bool is_version(struct hk_str s)
{
    size_t i = 1;
    while (i < s.len && hk_ascii_isdigit(s.ptr[i]))
        i++;
    return s.len >= 2 && s.len <= 4 && s.ptr[0] == 'v' && i == s.len;
}

/* Small letters, in groups; random texts of any strength have digits, capitals, or are longer. */
static bool is_word(struct hk_str s)
{
    static const char *const telling[] = {"token", "secret", "key", "pass", "pwd", "auth", "sig", "cred"};
    if (s.len > WORD_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if ((s.ptr[i] < 'a' || s.ptr[i] > 'z') && !memchr("-_.", s.ptr[i], 3))
            return false;
    }
    for (size_t i = 0; i < sizeof telling / sizeof telling[0]; i++) {
        if (hk_str_containsi(s, hk_str_of(telling[i])))
            return false;
    }
    return true;
}

/* Where the path begins: behind "scheme://host:port". */
static size_t path_at(struct hk_str url)
{
    size_t at = 0;
    while (at + 3 <= url.len && memcmp(url.ptr + at, "://", 3) != 0)
        at++;
    at = at + 3 <= url.len ? at + 3 : 0;
    while (at < url.len && !memchr("/?#", url.ptr[at], 3))
        at++;
    return at;
}

struct hk_str hk_url_host(struct hk_str url)
{
    size_t end = path_at(url), at = 0;
    while (at + 3 <= end && memcmp(url.ptr + at, "://", 3) != 0)
        at++;
    at = at + 3 <= end ? at + 3 : 0;
    struct hk_str host = {url.ptr + at, end - at};
    if (host.len && host.ptr[0] == '[') {
        struct hk_str rest = {host.ptr + 1, host.len - 1};
        return hk_str_cut(&rest, ']');
    }
    return hk_str_cut(&host, ':');
}

/* The part at `at` and the end of it. Names of parameters are told from their values by the '=' before these. */
static struct hk_str part_at(struct hk_str url, size_t at)
{
    size_t end = at;
    while (end < url.len && !memchr("/?#&=;", url.ptr[end], 6))
        end++;
    return (struct hk_str){url.ptr + at, end - at};
}

static bool is_shown(struct hk_str url, size_t at, struct hk_str part)
{
    bool value = at > 0 && (url.ptr[at - 1] == '=' || url.ptr[at - 1] == '#');
    return part.len == 0 || (!value && (is_word(part) || is_version(part)));
}

struct hk_str hk_url_hidden(struct hk_str url, size_t *at)
{
    if (*at == 0)
        *at = path_at(url);
    while (*at < url.len) {
        size_t from = *at;
        struct hk_str part = part_at(url, from);
        *at = from + part.len + 1;
        if (!is_shown(url, from, part))
            return part;
    }
    *at = url.len ? url.len : 1;
    return (struct hk_str){NULL, 0};
}

static int hex_of(char c)
{
    char low = hk_ascii_lower(c);
    if (hk_ascii_isdigit(c))
        return c - '0';
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

size_t hk_url_decode(struct hk_str part, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < part.len && n < room; i++) {
        int hi = part.ptr[i] == '%' && i + 2 < part.len ? hex_of(part.ptr[i + 1]) : -1;
        int lo = hi >= 0 ? hex_of(part.ptr[i + 2]) : -1;
        out[n++] = lo >= 0 ? (char)(hi * 16 + lo) : part.ptr[i];
        i += lo >= 0 ? 2 : 0;
    }
    return n;
}

struct writer {
    char *out;
    size_t len;
    bool full;
};

/* Whole, or an ellipsis and nothing more. */
static void put(struct writer *w, struct hk_str s)
{
    if (!w->full && w->len + s.len + sizeof ELLIPSIS > HK_URL_SHOWN_MAX) {
        w->full = true;
        s = hk_str_of(ELLIPSIS);
    } else if (w->full) {
        return;
    }
    memcpy(w->out + w->len, s.ptr, s.len);
    w->len += s.len;
}

/* A user and a password are not allowed in a destination's URL; should they be there, they are not shown. */
static struct hk_str without_user(struct hk_str origin, struct writer *w)
{
    const char *slashes = origin.len ? memchr(origin.ptr, '/', origin.len) : NULL;
    struct hk_str host = origin;
    for (size_t i = 0; slashes && i < origin.len; i++) {
        if (origin.ptr[i] == '@')
            host = (struct hk_str){origin.ptr + i + 1, origin.len - i - 1};
    }
    if (host.ptr == origin.ptr)
        return origin;
    put(w, (struct hk_str){origin.ptr, (size_t)(slashes + 2 - origin.ptr)});
    put(w, hk_str_of(ELLIPSIS "@"));
    return host;
}

const char *hk_url_show(struct hk_str url, char out[HK_URL_SHOWN_MAX])
{
    struct writer w = {.out = out};
    size_t at = path_at(url);
    put(&w, without_user((struct hk_str){url.ptr, at}, &w));
    while (at < url.len) {
        struct hk_str part = part_at(url, at);
        put(&w, is_shown(url, at, part) ? part : hk_str_of(ELLIPSIS));
        at += part.len;
        if (at < url.len)
            put(&w, (struct hk_str){url.ptr + at++, 1});
    }
    out[w.len] = '\0';
    return out;
}

bool hk_url_is_localhost(struct hk_str host)
{
    static const char name[] = ".localhost";
    size_t n = sizeof name - 1;
    return hk_str_eqi(host, hk_str_of(name + 1)) ||
           (host.len > n && hk_str_eqi((struct hk_str){host.ptr + host.len - n, n}, hk_str_of(name)));
}
