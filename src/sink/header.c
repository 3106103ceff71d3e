/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for header fields. */
#include <string.h>

#include "base/str.h"
#include "sink/header.h"

static bool is_token_char(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool hk_header_name_ok(struct hk_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_token_char(name.ptr[i]))
            return false;
    }
    return name.len >= 1 && name.len <= HK_HEADER_NAME_MAX;
}

bool hk_header_value_ok(struct hk_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return value.len <= HK_HEADER_VALUE_MAX;
}

static bool listed(struct hk_str name, const char *const *list)
{
    for (; *list; list++) {
        if (hk_str_eqi(name, hk_str_of(*list)))
            return true;
    }
    return false;
}

static bool starts_with(struct hk_str name, const char *prefix)
{
    struct hk_str p = hk_str_of(prefix);
    return name.len >= p.len && hk_str_eqi((struct hk_str){name.ptr, p.len}, p);
}

bool hk_header_reserved(struct hk_str name)
{
    static const char *const names[] = {
        "host",    "content-length", "transfer-encoding", "connection",
        "te",      "trailer",        "upgrade",           "keep-alive",
        "expect",  "http2-settings", "accept-encoding",   "idempotency-key",
        "ce-id",   "ce-source",      "ce-specversion",    "ce-type",
        "ce-time", "traceparent",    "ce-traceparent",    "ce-datacontenttype",
        NULL};
    return listed(name, names) || starts_with(name, "webhook-") || starts_with(name, "proxy-");
}

bool hk_header_not_for_messages(struct hk_str name)
{
    static const char *const names[] = {"content-type", "user-agent", "authorization", "cookie", NULL};
    return hk_header_reserved(name) || listed(name, names);
}

bool hk_header_secret(struct hk_str name)
{
    static const char *const parts[] = {"auth",   "token",     "secret",  "password",
                                        "cookie", "signature", "api-key", "apikey"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (hk_str_containsi(name, hk_str_of(parts[i])))
            return true;
    }
    return false;
}
