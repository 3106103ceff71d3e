/* SPDX-License-Identifier: Apache-2.0 */
/* A message's own URL, method and time-out. */
#include <string.h>

#include "base/cidr.h"
#include "base/parse.h"
#include "base/str.h"
#include "payload/scan.h"
#include "payload/target.h"

#define TIMEOUT_TEXT_MAX 32

/* Copies what a string token says. */
static bool copy_text(struct hk_str raw, char *out, size_t room)
{
    struct hk_buf text;
    hk_buf_init(&text, room);
    bool fits = hk_scan_text(raw, &text) == HK_OK && hk_str_copy(out, room, hk_buf_str(&text));
    hk_buf_fini(&text);
    return fits;
}

bool hk_target_read(struct hk_str headers, const char *name, char *out, size_t room)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    bool here = false; /* the next value is the one */
    if (!headers.len || !hk_str_containsi(headers, hk_str_of(name)))
        return false;
    hk_scan_init(&scan, headers);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return false;
        if (kind == HK_SCAN_KEY)
            here = scan.depth == 1 && hk_scan_text_eq(token.raw, hk_str_of(name));
        else if (here)
            return kind == HK_SCAN_STRING && copy_text(token.raw, out, room);
    }
}

uint64_t hk_target_timeout_ms(struct hk_str headers)
{
    char text[TIMEOUT_TEXT_MAX];
    uint64_t ms = 0;
    if (!hk_target_read(headers, HK_TARGET_TIMEOUT, text, sizeof text) ||
        hk_parse_duration(hk_str_of(text), &ms, NULL) != HK_OK)
        return 0;
    return ms;
}

bool hk_target_method_ok(struct hk_str method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (hk_str_eq(method, hk_str_of(known[i])))
            return true;
    return false;
}

bool hk_target_method_has_body(struct hk_str method)
{
    return hk_str_eq(method, hk_str_of("POST")) || hk_str_eq(method, hk_str_of("PUT")) ||
           hk_str_eq(method, hk_str_of("PATCH"));
}

static struct hk_str authority_of(struct hk_str rest)
{
    size_t n = 0;
    while (n < rest.len && !memchr("/?#", rest.ptr[n], 3))
        n++;
    return (struct hk_str){rest.ptr, n};
}

/* Behind the host: nothing, or a colon and a port (which may be empty). */
static bool is_port(struct hk_str text)
{
    uint64_t port = 0;
    if (text.len < 2)
        return !text.len || text.ptr[0] == ':';
    struct hk_str digits = {text.ptr + 1, text.len - 1};
    return text.ptr[0] == ':' && hk_ascii_isdigit(digits.ptr[0]) &&
           hk_parse_u64(digits, &port, NULL) == HK_OK && port > 0 && port <= UINT16_MAX;
}

static const char *authority_wrong(struct hk_str authority)
{
    struct hk_ip ip;
    if (!authority.len || authority.ptr[0] == ':')
        return "must name a host";
    if (memchr(authority.ptr, '@', authority.len))
        return "must not hold a user name or password";
    bool bracket = authority.ptr[0] == '[';
    const char *end = memchr(authority.ptr, bracket ? ']' : ':', authority.len);
    size_t n = end ? (size_t)(end - authority.ptr) : authority.len;
    struct hk_str rest = {authority.ptr + n + bracket, authority.len - n - (end ? bracket : 0)};
    struct hk_str host = {authority.ptr + bracket, n - bracket};
    if (bracket && (!end || !hk_ip_parse(host, &ip) || !memchr(host.ptr, ':', host.len)))
        return "must hold an IPv6 address in its brackets";
    return is_port(rest) ? NULL : "must have a port from 1 to 65535 behind its colon";
}

const char *hk_target_url_wrong(struct hk_str url)
{
    static const char *const schemes[] = {"http://", "https://"};
    struct hk_str rest = {NULL, 0};
    if (url.len > HK_TARGET_URL_MAX)
        return "must not be longer than 2083 bytes";
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);
        if (url.len > n && hk_str_eqi((struct hk_str){url.ptr, n}, hk_str_of(schemes[i])))
            rest = (struct hk_str){url.ptr + n, url.len - n};
    }
    if (!rest.ptr)
        return "must begin with http:// or https://, and name a host";
    for (size_t i = 0; i < url.len; i++)
        if (url.ptr[i] <= ' ' || url.ptr[i] > '~' || strchr("\"<>\\^`{|}", url.ptr[i]))
            return "must not hold spaces, control characters, quotes or other characters that a URL escapes";
    const char *wrong = authority_wrong(authority_of(rest));
    if (wrong)
        return wrong;
    return memchr(url.ptr, '#', url.len) ? "must not have a fragment (#): it is never sent" : NULL;
}
