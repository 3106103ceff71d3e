/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts go by a proxy: by their text alone, so that the answer cannot change between two look-ups. */
#include <string.h>

#include "base/cidr.h"
#include "base/proxy.h"
#include "base/str.h"

static struct hk_str bare(struct hk_str host)
{
    if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        return (struct hk_str){host.ptr + 1, host.len - 2};
    if (host.len > 1 && host.ptr[host.len - 1] == '.') /* the same name */
        host.len--;
    return host;
}

static bool is_name(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]) && !memchr(".-_", s.ptr[i], 3))
            return false;
    return s.len > 0 && s.len <= 253;
}

bool hk_proxy_pattern_ok(struct hk_str pattern)
{
    struct hk_cidr range;
    struct hk_str name = pattern;
    if (hk_str_eq(pattern, hk_str_of("*")) || hk_cidr_parse(bare(pattern), &range, NULL) == HK_OK)
        return true;
    if (name.len > 1 && name.ptr[0] == '.')
        name = (struct hk_str){name.ptr + 1, name.len - 1};
    return is_name(name) && name.ptr[0] != '.';
}

static bool ends_with(struct hk_str host, struct hk_str end)
{
    return host.len > end.len && hk_str_eqi((struct hk_str){host.ptr + host.len - end.len, end.len}, end);
}

static bool matches(struct hk_str pattern, struct hk_str host)
{
    struct hk_cidr range;
    struct hk_ip ip;
    if (hk_str_eq(pattern, hk_str_of("*")))
        return true;
    if (hk_cidr_parse(bare(pattern), &range, NULL) == HK_OK)
        return hk_ip_parse(host, &ip) && hk_cidr_has(&range, &ip);
    if (pattern.ptr[0] != '.')
        return hk_str_eqi(bare(pattern), host);
    return ends_with(host, pattern) || hk_str_eqi((struct hk_str){pattern.ptr + 1, pattern.len - 1}, host);
}

bool hk_proxy_is_for(const struct hk_proxy *proxy, struct hk_str host)
{
    if (!proxy)
        return false;
    for (size_t i = 0; i < proxy->n_direct; i++) {
        struct hk_str pattern = hk_str_of(proxy->direct[i]);
        if (pattern.len && matches(pattern, bare(host)))
            return false;
    }
    return true;
}

static bool copy_text(const char **out, const char *text, struct hk_pool *pool)
{
    *out = text ? hk_pool_copy_str(pool, hk_str_of(text)) : NULL;
    return *out || !text;
}

const struct hk_proxy *hk_proxy_copy(const struct hk_proxy *proxy, struct hk_pool *pool)
{
    struct hk_proxy *p = hk_pool_alloc(pool, 1, sizeof *p);
    const char **direct = hk_pool_alloc(pool, proxy->n_direct + 1, sizeof *direct);
    if (!p || !direct)
        return NULL;
    *p = (struct hk_proxy){.resolves = proxy->resolves, .direct = direct, .n_direct = proxy->n_direct};
    bool ok = copy_text(&p->name, proxy->name, pool) && copy_text(&p->url, proxy->url, pool) &&
              copy_text(&p->user, proxy->user, pool) && copy_text(&p->password, proxy->password, pool) &&
              copy_text(&p->ca_file, proxy->ca_file, pool);
    for (size_t i = 0; ok && i < proxy->n_direct; i++)
        ok = copy_text(&direct[i], proxy->direct[i], pool);
    return ok ? p : NULL;
}
