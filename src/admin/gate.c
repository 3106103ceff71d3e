/* SPDX-License-Identifier: Apache-2.0 */
/* The rules, in the order in which they are asked: the address, the Host, the Origin. */
#include <string.h>

#include "admin/gate.h"
#include "base/str.h"

/* ---- Host ---- */

/* What follows the colon, as far as anything does. */
static bool is_port(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!hk_ascii_isdigit(s.ptr[i]))
            return false;
    }
    return s.len <= 5;
}

/* "name", "name:port", "[v6]", "[v6]:port". `out_ip` is filled and true is in `out_is_ip` when it is an address. */
static bool parse_host(struct hk_str host, struct hk_str *out_name, bool *out_is_ip, struct hk_ip *out_ip)
{
    struct hk_str rest = host;
    *out_is_ip = false;
    if (rest.len && rest.ptr[0] == '[') {
        rest = (struct hk_str){rest.ptr + 1, rest.len - 1};
        *out_name = hk_str_cut(&rest, ']');
        *out_is_ip = true;
        if (!rest.ptr || hk_str_cut(&rest, ':').len || !hk_ip_parse(*out_name, out_ip) || !out_ip->v6)
            return false;
    } else {
        *out_name = hk_str_cut(&rest, ':');
        *out_is_ip = hk_ip_parse(*out_name, out_ip) && !out_ip->v6;
    }
    return is_port(rest) && out_name->len > 0;
}

static bool is_loopback_ip(const struct hk_ip *ip)
{
    const char *special = hk_ip_special(ip);
    return special && strcmp(special, "loopback") == 0;
}

bool hk_gate_names_loopback(const char *host)
{
    struct hk_str name;
    struct hk_ip ip;
    bool is_ip = false;
    if (!parse_host(hk_str_of(host), &name, &is_ip, &ip))
        return false;
    return is_ip ? is_loopback_ip(&ip) : hk_str_eqi(name, hk_str_of("localhost"));
}

static bool is_listed(struct hk_str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (hk_str_eqi(name, hk_str_of(list[i])))
            return true;
    }
    return false;
}

/* A name can be made to lead here by whoever owns it; an address cannot, so that elsewhere than on loopback any will do. */
static bool takes_host(const struct hk_gate *gate, const char *host)
{
    struct hk_str name;
    struct hk_ip ip;
    bool is_ip = false;
    if (gate->way == HK_GATE_OPEN || gate->way == HK_GATE_UNIX || !host)
        return true;
    if (!parse_host(hk_str_of(host), &name, &is_ip, &ip))
        return false;
    if (hk_gate_names_loopback(host) || is_listed(name, gate->hosts, gate->n_hosts))
        return true;
    return is_ip && gate->way != HK_GATE_LOCAL;
}

/* ---- Origin ---- */

static bool changes_something(const char *method)
{
    return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 && strcmp(method, "OPTIONS") != 0;
}

/* "host" and "host:443" are the same with https. */
static struct hk_str without_port(struct hk_str authority, const char *port)
{
    size_t n = strlen(port);
    if (authority.len > n && memcmp(authority.ptr + authority.len - n, port, n) == 0)
        authority.len -= n;
    return authority;
}

/* Is it a page of ours, loaded from the Host that it sends its request to? */
static bool is_own_origin(enum hk_gate_way way, const char *origin, const char *host)
{
    static const char http[] = "http://", https[] = "https://";
    struct hk_str text = hk_str_of(origin);
    bool secure = hk_str_starts(text, hk_str_of(https));
    if (!host || (!secure && !hk_str_starts(text, hk_str_of(http))))
        return false;
    if ((way == HK_GATE_TLS && !secure) || (way == HK_GATE_LOCAL && secure))
        return false;
    size_t scheme = secure ? sizeof https - 1 : sizeof http - 1;
    struct hk_str authority = {text.ptr + scheme, text.len - scheme};
    const char *port = secure ? ":443" : ":80";
    return authority.len > 0 &&
           hk_str_eqi(without_port(authority, port), without_port(hk_str_of(host), port));
}

/* ---- who asks ---- */

static bool is_proxy(const struct hk_gate *gate, const struct hk_ip *ip)
{
    for (size_t i = 0; i < gate->n_proxies; i++) {
        if (hk_cidr_has(&gate->proxies[i], ip))
            return true;
    }
    return false;
}

/* "192.0.2.1", "192.0.2.1:1234", "2001:db8::1", "[2001:db8::1]:1234". */
static bool parse_hop(struct hk_str text, struct hk_ip *out)
{
    struct hk_str name;
    struct hk_ip ip;
    bool is_ip = false;
    if (!hk_ip_parse(text, &ip) && (!parse_host(text, &name, &is_ip, &ip) || !is_ip))
        return false;
    *out = hk_ip_unmap(&ip);
    return true;
}

/* Each proxy adds whom it heard from at the end. So the last address that is no proxy of ours is the client: what stands before it,
 * the client may have written. */
static void find_client(const struct hk_gate *gate, const char *forwarded, struct hk_ip *client)
{
    struct hk_str rest = hk_str_of(forwarded);
    while (rest.len && is_proxy(gate, client)) {
        size_t at = rest.len;
        while (at > 0 && rest.ptr[at - 1] != ',')
            at--;
        struct hk_str hop = hk_str_trim((struct hk_str){rest.ptr + at, rest.len - at});
        if (!parse_hop(hop, client))
            return; /* "unknown", or worse: as far as we can tell it is the proxy */
        rest.len = at > 0 ? at - 1 : 0;
    }
}

unsigned hk_gate_check(const struct hk_gate *gate, const struct hk_gate_ask *ask, struct hk_gate_pass *out,
                       const char **out_why)
{
    struct hk_gate_pass pass = {.has_client = ask->peer != NULL};
    if (ask->peer)
        pass.client = hk_ip_unmap(ask->peer);
    if (gate->way == HK_GATE_PROXIED) {
        if (!ask->peer || !is_proxy(gate, &pass.client)) {
            *out_why = "requests come here through the proxy (admin.trusted_proxies)";
            return 403;
        }
        find_client(gate, ask->forwarded, &pass.client);
    }
    if (!takes_host(gate, ask->host)) {
        *out_why = gate->way == HK_GATE_LOCAL ? "this address is for this machine: ask for localhost"
                                              : "this name is not in admin.hosts";
        return 421;
    }
    if (ask->origin && gate->way != HK_GATE_OPEN) {
        pass.cors = is_listed(hk_str_of(ask->origin), gate->cors, gate->n_cors);
        if (changes_something(ask->method) && !pass.cors &&
            !is_own_origin(gate->way, ask->origin, ask->host)) {
            *out_why = "a page of another origin may change nothing here (admin.cors)";
            return 403;
        }
    }
    *out = pass;
    return 0;
}
