/* SPDX-License-Identifier: Apache-2.0 */
/* One pass from left to right: at each place one of a few finders may say that a secret begins there and where it ends. What
 * stands before it (its name, "Bearer ") is kept, so that a reader knows what was hidden. */
#include <string.h>

#include "base/str.h"
#include "observe/redact.h"

/* Parts of names; a name that holds one is a secret's. Lower case, '-' and '_' left out. */
static const char *const secret_parts[] = {"authorization", "cookie",     "token",  "secret",    "password",
                                           "passwd",        "passphrase", "apikey", "signature", "credential",
                                           "privatekey",    "accesskey",  "pwd",    "sessionid", "jwt"};
/* Names that are ordinary words elsewhere: only of a URL's parameters. */
static const char *const secret_params[] = {"key", "sig", "auth", "code", "pass", "session", "sid"};

enum {
    NAME_MAX_BYTES = 64,
    AHEAD_MAX = 1024 /* how far a secret's end is looked for */
};

static bool is_name_char(char c)
{
    unsigned char low = (unsigned char)c | 0x20;
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Lower case, without '-' and '_': api_key, Api-Key and apiKey are one name. */
static struct hk_str normal_name(struct hk_str name, char room[NAME_MAX_BYTES])
{
    struct hk_str out = {room, 0};
    for (size_t i = 0; i < name.len && out.len < NAME_MAX_BYTES; i++)
        if (name.ptr[i] != '-' && name.ptr[i] != '_')
            room[out.len++] = hk_ascii_lower(name.ptr[i]);
    return out;
}

/* Every log field's name comes by here: a name is passed once, and few of its letters begin a part. */
static bool holds_part(struct hk_str normal)
{
    for (size_t at = 0; at < normal.len; at++) {
        if (!strchr("acjpst", normal.ptr[at]))
            continue;
        struct hk_str rest = {normal.ptr + at, normal.len - at};
        for (size_t i = 0; i < sizeof secret_parts / sizeof secret_parts[0]; i++)
            if (secret_parts[i][0] == rest.ptr[0] && hk_str_starts(rest, hk_str_of(secret_parts[i])))
                return true;
    }
    return false;
}

bool hk_redact_name(struct hk_str name)
{
    char room[NAME_MAX_BYTES];
    if (name.len > NAME_MAX_BYTES) /* what counts stands at the end of long names */
        name = (struct hk_str){name.ptr + name.len - NAME_MAX_BYTES, NAME_MAX_BYTES};
    return holds_part(normal_name(name, room));
}

static bool is_secret_param(struct hk_str name)
{
    char room[NAME_MAX_BYTES];
    struct hk_str normal = normal_name(name, room);
    for (size_t i = 0; i < sizeof secret_params / sizeof secret_params[0]; i++)
        if (hk_str_eq(normal, hk_str_of(secret_params[i])))
            return true;
    return false;
}

/* ---- finders: is there a secret whose introduction begins at `at`? From where to where? ---- */

struct secret {
    size_t from, to;
};

static size_t skip_spaces(struct hk_str s, size_t at)
{
    while (at < s.len && (s.ptr[at] == ' ' || s.ptr[at] == '\t'))
        at++;
    return at;
}

/* The end of a quoted text that begins behind a quote at `at`; backslashes guard the next byte. */
static size_t quoted_end(struct hk_str s, size_t at, char quote)
{
    while (at < s.len && s.ptr[at] != quote && s.ptr[at] != '\n')
        at += s.ptr[at] == '\\' && at + 1 < s.len ? 2 : 1;
    return at < s.len ? at : s.len;
}

static size_t word_end(struct hk_str s, size_t at, const char *stops)
{
    while (at < s.len && !is_space(s.ptr[at]) && !strchr(stops, s.ptr[at]))
        at++;
    return at;
}

/* A header field's value has blanks in it: to the end of the line, or of the quotes around it. */
static bool takes_line(struct hk_str name)
{
    return hk_str_containsi(name, hk_str_of("authorization")) || hk_str_containsi(name, hk_str_of("cookie"));
}

/* Behind a name: quotes around the name, then ':' or '=' (or %3D, %3A), blanks. 0 = no value follows. */
static size_t value_at(struct hk_str s, size_t at, bool *out_colon)
{
    if (at < s.len && s.ptr[at] == '\\')
        at++;
    if (at < s.len && (s.ptr[at] == '"' || s.ptr[at] == '\''))
        at++;
    at = skip_spaces(s, at);
    if (at >= s.len)
        return 0;
    *out_colon = s.ptr[at] == ':';
    if (s.ptr[at] == ':' || s.ptr[at] == '=')
        return skip_spaces(s, at + 1);
    if (s.len - at >= 3 && s.ptr[at] == '%' && s.ptr[at + 1] == '3' &&
        (s.ptr[at + 2] == 'D' || s.ptr[at + 2] == 'd' || s.ptr[at + 2] == 'A' || s.ptr[at + 2] == 'a'))
        return at + 3;
    return 0;
}

static size_t value_end(struct hk_str s, struct hk_str name, size_t *from)
{
    bool escaped = *from < s.len && s.ptr[*from] == '\\';
    size_t quote = *from + escaped;
    if (quote < s.len && (s.ptr[quote] == '"' || s.ptr[quote] == '\'')) {
        *from = quote + 1;
        return escaped ? word_end(s, *from, "\\\"'") : quoted_end(s, *from, s.ptr[quote]);
    }
    if (takes_line(name)) {
        const char *end = memchr(s.ptr + *from, '\n', s.len - *from);
        return end ? (size_t)(end - s.ptr) : s.len;
    }
    return word_end(s, *from, "&\"'<>,;)}]");
}

static bool named_secret(struct hk_str s, size_t at, struct secret *out)
{
    size_t end = at;
    while (end < s.len && is_name_char(s.ptr[end]))
        end++;
    struct hk_str name = {s.ptr + at, end - at};
    bool colon = false;
    out->from = value_at(s, end, &colon);
    if (!out->from ||
        (colon && out->from + 1 < s.len && s.ptr[out->from] == '/' && s.ptr[out->from + 1] == '/'))
        return false; /* nothing, or a URL's scheme */
    bool param = at > 0 && (s.ptr[at - 1] == '?' || s.ptr[at - 1] == '&') && is_secret_param(name);
    if (!param && !hk_redact_name(name))
        return false;
    out->to = value_end(s, name, &out->from);
    return out->to > out->from;
}

/* Words that follow "basic" and "bearer" in sentences. */
static bool is_plain_word(struct hk_str s)
{
    static const char *const words[] = {"auth",  "authentication", "authorization", "credentials",
                                        "token", "tokens",         "scheme"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (hk_str_eqi(s, hk_str_of(words[i])))
            return true;
    return false;
}

static bool scheme_secret(struct hk_str s, size_t at, struct secret *out)
{
    static const char *const schemes[] = {"bearer", "basic", "negotiate", "digest"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i]);
        if (hk_ascii_lower(s.ptr[at]) != schemes[i][0] || s.len - at <= n ||
            !hk_str_eqi((struct hk_str){s.ptr + at, n}, hk_str_of(schemes[i])))
            continue;
        size_t blank = s.ptr[at + n] == '%' && s.len - at - n > 3 ? 3
                       : s.ptr[at + n] == '+'                     ? 1
                                                                  : 0; /* %20 */
        out->from = blank ? at + n + blank : skip_spaces(s, at + n);
        out->to = word_end(s, out->from, "\"'<>,;)}]");
        struct hk_str word = {s.ptr + out->from, out->to - out->from};
        return out->from > at + n && word.len > 0 && !is_plain_word(word);
    }
    return false;
}

static bool is_port(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isdigit(s.ptr[i]))
            return false;
    return true;
}

/* user:password@ behind "://". A password that holds a '/' is not a URL's any more, but people write it: when what stands before the
 * first '/' is not host:port, the '@' is looked for behind it as well. */
static bool url_secret(struct hk_str s, size_t at, struct secret *out)
{
    static const char mark[] = "://";
    if (s.len - at < 3 || memcmp(s.ptr + at, mark, 3) != 0 || !memchr(s.ptr + at, '@', s.len - at))
        return false;
    out->from = at + 3;
    size_t authority = word_end(s, out->from, "/?#\"'<>");
    size_t whole = word_end(s, out->from, "\"'<>");
    struct hk_str host = {s.ptr + out->from, authority - out->from};
    const char *colon = host.len ? memchr(host.ptr, ':', host.len) : NULL;
    bool odd = colon && host.ptr[0] != '[' &&
               !is_port((struct hk_str){colon + 1, (size_t)(host.ptr + host.len - colon - 1)});
    out->to = out->from;
    for (size_t i = out->from; i < (odd ? whole : authority); i++)
        if (s.ptr[i] == '@')
            out->to = i;
    return out->to > out->from;
}

static bool look_secret(struct hk_str s, size_t at, struct secret *out)
{
    static const char signing[] = "whsec_", web_token[] = "eyJ";
    struct hk_str rest = {s.ptr + at, s.len - at};
    if (rest.ptr[0] != signing[0] && rest.ptr[0] != web_token[0])
        return false;
    out->from = at;
    if (hk_str_starts(rest, hk_str_of(signing)))
        out->from = at + strlen(signing);
    else if (!hk_str_starts(rest, hk_str_of(web_token)))
        return false;
    out->to = word_end(s, at, "&\"'<>,;)}]");
    return out->to - at > 12;
}

/* All but a URL's begin where a word does. */
static bool find_secret(struct hk_str s, size_t at, struct secret *out)
{
    char c = s.ptr[at];
    if (c == ':')
        return url_secret(s, at, out);
    if (!is_name_char(c) || (at > 0 && is_name_char(s.ptr[at - 1])))
        return false;
    return look_secret(s, at, out) || scheme_secret(s, at, out) || named_secret(s, at, out);
}

/* ---- the pass ---- */

/* Most values are one word, in which nothing can be introduced; what tells by its own look would begin with one of two letters. */
static bool is_one_word(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_name_char(s.ptr[i]))
            return false;
    return s.len == 0 || (s.ptr[0] != 'w' && s.ptr[0] != 'e');
}

size_t hk_redact(struct hk_str text, char *out, size_t room, size_t *out_read)
{
    const size_t stars = strlen(HK_REDACTED);
    struct hk_str s = text;
    struct secret hidden = {0};
    size_t len = 0, at = 0;
    if (s.len <= room && is_one_word(s)) {
        if (s.len)
            memcpy(out, s.ptr, s.len);
        *out_read = s.len;
        return s.len;
    }
    if (s.len > room + AHEAD_MAX)
        s.len = room + AHEAD_MAX;
    /* nothing is shown that could not be looked ahead from, however much was hidden before it */
    size_t shown = s.len < text.len ? room : s.len;
    while (at < shown && len < room) {
        if (!find_secret(s, at, &hidden)) {
            out[len++] = s.ptr[at++];
            continue;
        }
        size_t before = hidden.from - at;
        if (len + before + stars > room)
            break;
        memcpy(out + len, s.ptr + at, before);
        memcpy(out + len + before, HK_REDACTED, stars);
        len += before + stars;
        at = hidden.to;
    }
    *out_read = at;
    return len;
}
