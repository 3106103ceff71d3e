/* SPDX-License-Identifier: Apache-2.0 */
/* A message's own URL, method and time-out. */
#include <string.h>

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
    struct hk_str authority = authority_of(rest);
    if (!authority.len || authority.ptr[0] == ':')
        return "must name a host";
    if (memchr(authority.ptr, '@', authority.len))
        return "must not hold a user name or password";
    return memchr(url.ptr, '#', url.len) ? "must not have a fragment (#): it is never sent" : NULL;
}
