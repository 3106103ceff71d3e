/* SPDX-License-Identifier: Apache-2.0 */
/* Proxies: their table, what must hold within one, and which of them a destination, a channel or the telemetry goes by.
 *
 * Only the relay's own file makes a proxy, and names its address. So that address needs no `allow`, which is about where messages may
 * go; and a definition of the store can name a proxy, but neither make one nor go around the relay's own. */
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"

#define AT(type, member) .offset = offsetof(type, member)

static bool is_socks(const char *url)
{
    return hk_str_starts(hk_str_of(url), hk_str_of("socks5"));
}

bool hk_text_check_proxy_url(struct hk_str s, char why[HK_WHY_MAX])
{
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    for (size_t i = 0; i < HK_COUNT(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (!hk_str_starts(s, hk_str_of(schemes[i])))
            continue;
        struct hk_str rest = {s.ptr + n, s.len - n};
        if (memchr(rest.ptr, '@', rest.len))
            return hk_text_refuse(why,
                                  "must not hold a user name or password: use \"user\" and \"password\"");
        if (rest.len && rest.ptr[rest.len - 1] == '/')
            rest.len--;
        return hk_text_is_authority_with_port(rest) ||
               hk_text_refuse(
                   why, "must be a host and a port behind the scheme, such as http://proxy.internal:3128");
    }
    return hk_text_refuse(why, "must begin with http://, https://, socks5:// or socks5h://");
}

bool hk_text_check_direct(struct hk_str s, char why[HK_WHY_MAX])
{
    return hk_proxy_pattern_ok(s) ||
           hk_text_refuse(why, "must be a host, .example for all below it, an address, a range, or *");
}

static const struct hk_word dns_words[] = {
    {"relay", HK_CONF_DNS_RELAY}, {"proxy", HK_CONF_DNS_PROXY}, {NULL, 0}};

static const struct hk_opt direct_elem = {
    .type = HK_OPT_STRING, .min = 1, .max = 253, .check = hk_text_check_direct, .example = ".internal"};

static const struct hk_opt proxy_opts[HK_PROXY_NOPTS] = {
    [HK_PROXY_URL_OPT] = {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_proxy, proxy.url),
                          .min = 1, .max = 512, .check = hk_text_check_proxy_url,
                          .example = "http://proxy.internal:3128",
                          .help =
                              "http:// and https:// (CONNECT), socks5://, or socks5h:// (with dns: proxy)"},
    [HK_PROXY_USER_OPT] = {"user", HK_OPT_STRING, AT(struct hk_conf_proxy, proxy.user), .min = 1, .max = 255,
                           .check = hk_text_check_user, .otherwise = "none", .example = "relay",
                           .help = "user name"},
    [HK_PROXY_PASSWORD_OPT] = {"password", HK_OPT_STRING, HK_OPT_SECRET,
                               AT(struct hk_conf_proxy, proxy.password), .min = 1, .max = 255,
                               .check = hk_text_check_printable, .otherwise = "none",
                               .example = "\"${PROXY_PASSWORD}\"",
                               .help = "only as ${VARIABLE} or ${file:PATH}"},
    [HK_PROXY_CA_OPT] = {"ca_file", HK_OPT_PATH, AT(struct hk_conf_proxy, proxy.ca_file), .min = 1,
                         .max = 4096, .otherwise = "the system's", .example = "ca.pem",
                         .help = "authorities to trust for an https:// proxy, PEM"},
    [HK_PROXY_DNS_OPT] = {"dns", HK_OPT_ENUM, AT(struct hk_conf_proxy, dns), .words = dns_words,
                          .fallback = "relay",
                          .help = "who looks up the target's name: the relay, which then checks the address "
                                  "and gives the proxy that one, or the proxy (docs/security.md)"},
    [HK_PROXY_DIRECT_OPT] = {"no_proxy", HK_OPT_LIST, HK_OPT_ONE, AT(struct hk_conf_proxy, direct), .max = 64,
                             .elem = &direct_elem, .otherwise = "none", .example = "[.internal, 10.0.0.0/8]",
                             .help = "hosts that are reached without it: as URLs have them, not looked up"},
};

const struct hk_opt_table hk_proxy_table = {
    .name = "proxy",
    .where = "proxies.NAME",
    .size = sizeof(struct hk_conf_proxy),
    .opts = proxy_opts,
    .n_opts = HK_PROXY_NOPTS,
    .name_offset = offsetof(struct hk_conf_proxy, proxy.name),
    .example = "{ url: http://proxy.internal:3128 }",
    .check = hk_check_proxy,
};

static void check_credentials(struct hk_walk *walk, const struct hk_yaml_node *node)
{
    const struct hk_yaml_node *user = hk_yaml_get(node, "user"), *password = hk_yaml_get(node, "password");
    if (!user != !password)
        hk_walk_error(walk, (user ? user : password)->key_at, "\"%s\" needs \"%s\" as well",
                      user ? "user" : "password", user ? "password" : "user");
    if (password && !password->secret)
        hk_walk_error(
            walk, password->at,
            "\"password\" must be a reference such as \"${PROXY_PASSWORD}\" or \"${file:proxy.pw}\"");
}

void hk_check_proxy(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_proxy *conf = section;
    const struct hk_yaml_node *dns = hk_yaml_get(node, "dns"), *ca = hk_yaml_get(node, "ca_file");
    if (hk_str_eq(hk_str_of(conf->proxy.name), hk_str_of(HK_CONF_NO_PROXY)))
        hk_walk_error(walk, node->key_at,
                      "no proxy can be called \"none\": that word means that there is none");
    check_credentials(walk, node);
    if (hk_walk_failed(walk) || !conf->proxy.url)
        return;
    bool by_scheme = hk_str_starts(hk_str_of(conf->proxy.url), hk_str_of("socks5h:"));
    if (by_scheme && dns && conf->dns == HK_CONF_DNS_RELAY)
        hk_walk_error(walk, dns->at, "socks5h:// means dns: proxy; use socks5:// with dns: relay");
    if (ca && !hk_str_starts(hk_str_of(conf->proxy.url), hk_str_of("https:")))
        hk_walk_warn(walk, ca->key_at, "\"ca_file\" has no effect: the proxy is not reached by https://");
    if (conf->proxy.user && !is_socks(conf->proxy.url) &&
        hk_str_starts(hk_str_of(conf->proxy.url), hk_str_of("http:")) &&
        !hk_text_url_is_local(conf->proxy.url))
        hk_walk_warn(walk, hk_yaml_get(node, "password")->key_at,
                     "user and password travel to the proxy unencrypted: its URL is http, not https");
    conf->proxy.resolves = by_scheme || conf->dns == HK_CONF_DNS_PROXY;
    conf->proxy.direct = conf->direct.items;
    conf->proxy.n_direct = conf->direct.n;
}

/* ---- whose proxy ---- */

const struct hk_conf_proxy *hk_config_proxy(const struct hk_config *config, size_t i)
{
    const struct hk_conf_proxy *items = config->proxies.items;
    return i < config->proxies.n ? &items[i] : NULL;
}

const struct hk_proxy *hk_config_proxy_of(const struct hk_config *config, const char *name)
{
    const struct hk_conf_proxy *p = NULL;
    if (!name)
        name = config->default_proxy;
    for (size_t i = 0; name && (p = hk_config_proxy(config, i)) != NULL; i++)
        if (p->proxy.name && strcmp(p->proxy.name, name) == 0)
            return &p->proxy;
    return NULL;
}
