/* SPDX-License-Identifier: Apache-2.0 */
/* The library takes a head more leniently than some proxies do. Each difference is a way to hide a request in the body of another, so
 * this file refuses what can be read in two ways. */
#include <string.h>

#include "admin/head.h"
#include "base/parse.h"
#include "base/str.h"

/* RFC 9110, section 5.6.2. */
static bool is_token(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    if (!*name)
        return false;
    for (const char *c = name; *c; c++) {
        if (!hk_ascii_isalpha(*c) && !hk_ascii_isdigit(*c) && !strchr(others, *c))
            return false;
    }
    return true;
}

/* Headers that may come once, also those that only a handler reads: the second one could be the one that a proxy looked at. */
static const char *const single[] = {"Authorization", "Content-Length",   "Content-Type",    "Expect",
                                     "Host",          "If-Match",         "Idempotency-Key", "Last-Event-ID",
                                     "Origin",        "Transfer-Encoding"};

static const char **value_of(struct hk_head_fields *head, struct hk_str name)
{
    const struct {
        const char *name;
        const char **at;
    } kept[] = {{"Host", &head->host},
                {"Origin", &head->origin},
                {"Content-Length", &head->length},
                {"Transfer-Encoding", &head->coding},
                {"Accept-Encoding", &head->encodings}};

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (hk_str_eqi(name, hk_str_of(kept[i].name)))
            return kept[i].at;
    }
    return NULL;
}

void hk_head_note(struct hk_head_fields *head, const char *name, const char *value)
{
    struct hk_str key = hk_str_of(name);
    const char **at = value_of(head, key);
    head->odd = head->odd || !is_token(name);
    for (unsigned i = 0; i < sizeof single / sizeof single[0]; i++) {
        if (!hk_str_eqi(key, hk_str_of(single[i])))
            continue;
        head->doubled = head->doubled || (head->seen >> i & 1);
        head->seen |= 1U << i;
    }
    if (at && !*at)
        *at = value ? value : "";
}

const char *hk_head_check(const struct hk_head_fields *head, const char *version, struct hk_head_body *out)
{
    struct hk_head_body body = {.present = false, .length = 0};
    if (head->odd)
        return "a header's name has characters that no name may have";
    if (head->doubled)
        return "a header came twice that may come once";
    if (!head->host && strcmp(version, "HTTP/1.1") == 0)
        return "HTTP/1.1 needs a Host header";
    if (head->coding && head->length)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (head->coding) {
        if (strcmp(version, "HTTP/1.1") != 0 || !hk_str_eqi(hk_str_of(head->coding), hk_str_of("chunked")))
            return "the only Transfer-Encoding is chunked, with HTTP/1.1";
        body = (struct hk_head_body){.present = true, .length = HK_HEAD_LENGTH_NONE};
    } else if (head->length) {
        if (hk_parse_u64(hk_str_of(head->length), &body.length, NULL) != HK_OK ||
            body.length == HK_HEAD_LENGTH_NONE)
            return "Content-Length is not a number";
        body.present = body.length > 0;
    }
    *out = body;
    return NULL;
}

/* ";q=0", ";q=0.0", ";q=0.000": the client refuses that coding. */
static bool is_refused(struct hk_str parameters)
{
    while (parameters.len) {
        struct hk_str one = hk_str_trim(hk_str_cut(&parameters, ';'));
        struct hk_str value = one;
        struct hk_str name = hk_str_trim(hk_str_cut(&value, '='));
        value = hk_str_trim(value);
        if (!hk_str_eqi(name, hk_str_of("q")) || !value.len)
            continue;
        for (size_t i = 0; i < value.len; i++) {
            if (value.ptr[i] != '0' && value.ptr[i] != '.')
                return false;
        }
        return true;
    }
    return false;
}

bool hk_head_takes_gzip(const char *encodings)
{
    struct hk_str rest = hk_str_of(encodings);
    while (rest.len) {
        struct hk_str one = hk_str_cut(&rest, ',');
        struct hk_str name = hk_str_trim(hk_str_cut(&one, ';'));
        if (hk_str_eqi(name, hk_str_of("gzip")) || hk_str_eqi(name, hk_str_of("x-gzip")))
            return !is_refused(one);
    }
    return false;
}

void hk_head_split(struct hk_str target, struct hk_str *out_path, struct hk_str *out_query)
{
    struct hk_str rest = target;
    *out_path = hk_str_cut(&rest, '?');
    *out_query = rest;
}
