/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cidr.h"
#include "base/parse.h"
#include "base/servers.h"
#include "base/str.h"
#include "base/url.h"

const struct hk_server_scheme hk_scheme_amqp = {"amqp", "amqps", 5672, 5671,
                                                "must begin with amqp:// or amqps://"};

const struct hk_server_scheme hk_scheme_nats = {"nats", "tls", 4222, 4222,
                                                "must begin with nats:// or tls://"};
const struct hk_server_scheme hk_scheme_mqtt = {"mqtt", "mqtts", 1883, 8883,
                                                "must begin with mqtt:// or mqtts://"};
const struct hk_server_scheme hk_scheme_redis = {"redis", "rediss", 6379, 6379,
                                                 "must begin with redis:// or rediss://"};

static bool is_visible(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
            return false;
    return true;
}

/* Decodes %XX; what is cut, or holds a NUL, is refused. */
static bool copy_decoded(char out[HK_SERVERS_TEXT_MAX], struct hk_str part)
{
    size_t n = hk_url_decode(part, out, HK_SERVERS_TEXT_MAX - 1);
    out[n] = '\0';
    return part.len < HK_SERVERS_TEXT_MAX && !memchr(out, '\0', n);
}

static bool is_name(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]) && !memchr("-._", s.ptr[i], 3))
            return false;
    return s.len > 0;
}

static bool read_port(struct hk_str s, uint16_t *out)
{
    uint64_t port = 0;
    if (hk_parse_u64(s, &port, NULL) != HK_OK || port == 0 || port > UINT16_MAX)
        return false;
    *out = (uint16_t)port;
    return true;
}

bool hk_server_parse(struct hk_str s, uint16_t port, struct hk_server *out)
{
    struct hk_str host, rest = s;
    struct hk_ip ip;
    bool v6 = s.len && s.ptr[0] == '[';
    out->port = port;
    if (v6) {
        rest = (struct hk_str){s.ptr + 1, s.len - 1};
        host = hk_str_cut(&rest, ']');
        if (!rest.ptr || !hk_ip_parse(host, &ip) || (rest.len && rest.ptr[0] != ':'))
            return false;
        rest = rest.len ? (struct hk_str){rest.ptr + 1, rest.len - 1} : (struct hk_str){NULL, 0};
    } else {
        host = hk_str_cut(&rest, ':');
    }
    return (v6 || is_name(host)) && hk_str_copy(out->host, sizeof out->host, host) &&
           (!rest.ptr || read_port(rest, &out->port));
}

static const char *read_servers(struct hk_str list, struct hk_servers *out, uint16_t port)
{
    while (list.ptr) {
        struct hk_str one = hk_str_cut(&list, ',');
        if (out->n == HK_SERVERS_MAX)
            return "names more than 16 servers";
        if (!hk_server_parse(one, port, &out->at[out->n]))
            return "has a host or port that is not valid";
        out->n++;
    }
    return NULL;
}

static const char *read_user(struct hk_str *authority, struct hk_servers *out)
{
    const char *at = memchr(authority->ptr, '@', authority->len);
    if (!at)
        return NULL;
    struct hk_str user = {authority->ptr, (size_t)(at - authority->ptr)};
    *authority = (struct hk_str){at + 1, authority->len - user.len - 1};
    if (memchr(user.ptr, ':', user.len))
        return "must not hold a password: there is an option for it";
    if (memchr(authority->ptr, '@', authority->len) || !user.len || !copy_decoded(out->user, user))
        return "has a user that is not valid";
    return NULL;
}

const char *hk_servers_parse(struct hk_str url, const struct hk_server_scheme *scheme, struct hk_servers *out)
{
    struct hk_str rest = url, name = hk_str_cut(&rest, ':');
    memset(out, 0, sizeof *out);
    out->tls = hk_str_eqi(name, hk_str_of(scheme->tls));
    if ((!out->tls && !hk_str_eqi(name, hk_str_of(scheme->plain))) || !rest.ptr ||
        !hk_str_starts(rest, hk_str_of("//")))
        return scheme->wrong;
    rest = (struct hk_str){rest.ptr + 2, rest.len - 2};
    if (!is_visible(rest))
        return "must not hold spaces, control characters or characters that a URL escapes";
    if (memchr(rest.ptr, '?', rest.len) || memchr(rest.ptr, '#', rest.len))
        return "must not have a query or a fragment: there are options for settings";
    struct hk_str authority = hk_str_cut(&rest, '/');
    const char *wrong = read_user(&authority, out);
    if (!wrong)
        wrong = read_servers(authority, out, out->tls ? scheme->tls_port : scheme->plain_port);
    if (!wrong && rest.ptr && !copy_decoded(out->path, rest))
        wrong = "has too long a path";
    return wrong;
}
