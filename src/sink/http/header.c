/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for header fields. */
#include "base/str.h"
#include "sink/http/header.h"

/* Which bytes a token is made of (RFC 9110), and which a value may hold: every header byte of every message passes here. */
enum {
    TOKEN = 1,
    VALUE = 2
};

#define T (TOKEN | VALUE)
#define V VALUE

/* clang-format off */
static const unsigned char kinds[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, V, 0, 0, 0, 0, 0, 0, /* tab */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    V, T, V, T, T, T, T, T, V, V, T, T, V, T, T, V, /*  !"#$%&'()*+,-./ */
    T, T, T, T, T, T, T, T, T, T, V, V, V, V, V, V, /* 0-9 :;<=>? */
    V, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, /* @ A-O */
    T, T, T, T, T, T, T, T, T, T, T, V, V, V, T, T, /* P-Z [\]^_ */
    T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, /* ` a-o */
    T, T, T, T, T, T, T, T, T, T, T, V, T, V, T, 0, /* p-z {|}~ */
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* beyond ASCII */
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
};

/* clang-format on */

static bool all_of(struct hk_str s, unsigned char kind)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!(kinds[(unsigned char)s.ptr[i]] & kind))
            return false;
    }
    return true;
}

bool hk_header_name_ok(struct hk_str name)
{
    return name.len >= 1 && name.len <= HK_HEADER_NAME_MAX && all_of(name, TOKEN);
}

bool hk_header_value_ok(struct hk_str value)
{
    return value.len <= HK_HEADER_VALUE_MAX && all_of(value, VALUE);
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

bool hk_header_not_for_tasks(struct hk_str name)
{
    static const char *const names[] = {"host",
                                        "content-length",
                                        "transfer-encoding",
                                        "connection",
                                        "te",
                                        "trailer",
                                        "upgrade",
                                        "keep-alive",
                                        "expect",
                                        "http2-settings",
                                        "accept-encoding",
                                        "content-type",
                                        "user-agent",
                                        "traceparent",
                                        NULL};
    return listed(name, names) || starts_with(name, "proxy-") || starts_with(name, "x-cloudtasks-");
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
