/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that leave by a proxy, all of them with libcurl and in a tunnel (CONNECT, SOCKS5), also those to http:// targets: so what
 * the proxy says and what the receiver says cannot be taken for each other, and the proxy reads no message sent by https://.
 *
 * The address policy sees the target, not the proxy. The relay looks the target's name up itself, checks each address, and asks the
 * proxy for one of them by its number: there is no second look-up that could give another answer. With `resolves` the proxy gets
 * the name; then only a target that is written as an address, or as localhost, can be judged here, and the rest is the proxy's. */
#include <stdio.h>
#include <string.h>

#include "base/proxy_curl.h"
#include "base/str.h"
#include "sink/http/curl.h"

#define FRESH_MS 60000 /* then a name is asked for again */

static struct hk_curl_sink *sink_of(const struct hk_curl_transfer *c)
{
    return (struct hk_curl_sink *)c->t.self;
}

/* ---- the target ---- */

static bool is_plain_name(const char *host)
{
    for (const char *s = host; *s; s++)
        if (!hk_ascii_isalpha(*s) && !hk_ascii_isdigit(*s) && !strchr(".-_", *s))
            return false;
    return host[0] != '\0';
}

/* As libcurl reads it (0x7f.1 is 127.0.0.1), without brackets. False: out of memory, or no host that can be used. */
static bool read_host(const char *url, char out[HK_THROUGH_HOST_MAX])
{
    char *host = NULL;
    CURLU *u = curl_url();
    bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && host;
    if (ok) {
        struct hk_str name = hk_str_of(host);
        if (name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']')
            name = (struct hk_str){name.ptr + 1, name.len - 2};
        ok = hk_str_copy(out, HK_THROUGH_HOST_MAX, name);
    }
    curl_free(host);
    curl_url_cleanup(u);
    return ok;
}

static bool is_localhost(struct hk_str host)
{
    static const char end[] = ".localhost";
    size_t n = sizeof end - 1;
    if (host.len && host.ptr[host.len - 1] == '.')
        host.len--;
    return hk_str_eqi(host, hk_str_of(end + 1)) ||
           (host.len > n && hk_str_eqi((struct hk_str){host.ptr + host.len - n, n}, hk_str_of(end)));
}

/* Nobody need be asked for it. */
static bool is_known(const char *host, struct hk_ip *out)
{
    if (hk_ip_parse(hk_str_of(host), out))
        return true;
    *out = (struct hk_ip){.addr = {127, 0, 0, 1}};
    return is_localhost(hk_str_of(host));
}

bool hk_through_begin(struct hk_curl_transfer *c)
{
    const struct hk_http_sink *self = c->t.self;
    c->proxied = false;
    if (!self->proxy)
        return true;
    if (!read_host(hk_http_url(&c->t), c->host)) {
        hk_http_fail(&c->t, self->varies ? HK_FAULT_INVALID_PAYLOAD : HK_FAULT_LOCAL,
                     "the url's host cannot be read");
        return false;
    }
    c->proxied = hk_proxy_is_for(self->proxy, hk_str_of(c->host));
    struct hk_ip ip;
    if (c->proxied && !is_known(c->host, &ip) && !is_plain_name(c->host)) {
        hk_http_fail(
            &c->t, HK_FAULT_INVALID_PAYLOAD,
            "a host behind a proxy must be an address, or a name of letters, digits, '-', '_' and dots");
        return false;
    }
    return true;
}

/* ---- names that are looked up here ---- */

static struct hk_through_name *name_of(struct hk_curl_sink *self, const char *host)
{
    for (size_t i = 0; i < HK_THROUGH_NAMES; i++)
        if (self->names[i].host[0] && hk_str_eqi(hk_str_of(self->names[i].host), hk_str_of(host)))
            return &self->names[i];
    return NULL;
}

static bool waits_for(const struct hk_http_transfer *t, const char *host)
{
    const struct hk_curl_transfer *c = (const struct hk_curl_transfer *)t;
    return c->proxied && hk_str_eqi(hk_str_of(c->host), hk_str_of(host));
}

static void drop_name(struct hk_through_name *name)
{
    hk_lookup_free(name->lookup);
    *name = (struct hk_through_name){.self = name->self};
}

void hk_through_fini(struct hk_curl_sink *self)
{
    for (size_t i = 0; i < HK_THROUGH_NAMES; i++)
        drop_name(&self->names[i]);
}

static void fail_waiting(struct hk_curl_sink *self, const char *host, enum hk_fault fault, const char *text)
{
    for (struct hk_http_transfer *t = self->base.waiting.first, *after; t; t = after) {
        after = t->next;
        if (waits_for(t, host))
            hk_http_fail(t, fault, text);
    }
}

static void on_looked_up(void *arg, const char *error, const struct hk_address *addresses, size_t n)
{
    struct hk_through_name *name = arg;
    struct hk_curl_sink *self = name->self;
    char text[HK_HTTP_ERROR_MAX];
    hk_http_enter(&self->base);
    if (error) {
        (void)snprintf(text, sizeof text, "cannot resolve %s: %s", name->host, error);
        fail_waiting(self, name->host, HK_FAULT_DNS, text);
        drop_name(name);
    } else {
        memcpy(name->addresses, addresses, n * sizeof addresses[0]);
        name->n = n;
        name->known_ms = hk_loop_round_ms(self->base.loop);
        hk_lookup_free(name->lookup);
        name->lookup = NULL;
    }
    hk_http_leave(&self->base);
}

static bool is_wanted(const struct hk_curl_sink *self, const char *host)
{
    for (const struct hk_http_transfer *t = self->base.waiting.first; t; t = t->next)
        if (waits_for(t, host))
            return true;
    return false;
}

/* One that is empty, or else the oldest that nobody waits for. */
static struct hk_through_name *free_name(struct hk_curl_sink *self)
{
    struct hk_through_name *oldest = NULL;
    for (size_t i = 0; i < HK_THROUGH_NAMES; i++) {
        struct hk_through_name *name = &self->names[i];
        if (!name->host[0])
            return name;
        if (name->lookup && is_wanted(self, name->host))
            continue;
        if (!oldest || name->known_ms < oldest->known_ms)
            oldest = name;
    }
    if (oldest)
        drop_name(oldest);
    return oldest;
}

/* All who wait for it have their time to connect run from now on. */
static enum hk_through look_up(struct hk_curl_transfer *c)
{
    struct hk_curl_sink *self = sink_of(c);
    struct hk_err err = {.code = HK_OK};
    struct hk_through_name *name = free_name(self);
    if (!name)
        return HK_THROUGH_WAITS;
    name->self = self;
    memcpy(name->host, c->host, sizeof name->host);
    if (hk_lookup_new(self->base.loop, name->host, on_looked_up, name, &name->lookup, &err) == HK_OK)
        return HK_THROUGH_WAITS;
    drop_name(name);
    hk_http_fail(&c->t, HK_FAULT_LOCAL, err.message);
    return HK_THROUGH_OVER;
}

/* ---- the address ---- */

static enum hk_through refuse(struct hk_curl_transfer *c, const struct hk_ip *ip)
{
    c->t.fault = HK_FAULT_BLOCKED;
    hk_http_say_blocked(&c->t, ip);
    hk_http_end(&c->t);
    return HK_THROUGH_OVER;
}

static enum hk_through aim_at(struct hk_curl_transfer *c, const struct hk_ip *ip)
{
    char text[HK_IP_TEXT_MAX];
    (void)hk_ip_format(ip, text);
    (void)snprintf(c->aim, sizeof c->aim, ip->v6 ? "::[%s]:" : "::%s:", text);
    c->aim_line = (struct curl_slist){c->aim, NULL};
    curl_easy_setopt(c->easy, CURLOPT_CONNECT_TO, &c->aim_line);
    return HK_THROUGH_READY;
}

/* The first that is allowed, counted from the one that did not work last. */
static enum hk_through choose(struct hk_curl_transfer *c, const struct hk_through_name *name)
{
    for (size_t i = 0; i < name->n; i++) {
        const struct hk_ip *ip = &name->addresses[(name->at + i) % name->n].ip;
        if (hk_http_allowed(c->t.self, ip))
            return aim_at(c, ip);
    }
    return refuse(c, &name->addresses[0].ip);
}

enum hk_through hk_through_aim(struct hk_curl_transfer *c)
{
    struct hk_ip ip;
    curl_easy_setopt(c->easy, CURLOPT_CONNECT_TO, NULL);
    if (!c->proxied)
        return HK_THROUGH_READY;
    uint64_t now_ms = hk_loop_round_ms(c->t.self->loop);
    if (!c->t.connect_ms)
        c->t.connect_ms = now_ms;
    if (is_known(c->host, &ip))
        return hk_http_allowed(c->t.self, &ip) ? aim_at(c, &ip) : refuse(c, &ip);
    if (c->t.self->proxy->resolves)
        return HK_THROUGH_READY;
    struct hk_through_name *name = name_of(sink_of(c), c->host);
    if (name && name->lookup)
        return HK_THROUGH_WAITS;
    if (name && now_ms < name->known_ms + FRESH_MS)
        return choose(c, name);
    if (name)
        drop_name(name);
    return look_up(c);
}

/* ---- the handle ---- */

bool hk_through_set(CURL *easy, const struct hk_proxy *proxy, bool proxied)
{
    return hk_proxy_curl_set(easy, proxied ? proxy : NULL);
}

/* ---- what the proxy said ---- */

static enum hk_fault fault_of_connect(long status)
{
    if (status == 407 || status == 401) /* 401: tinyproxy, of a wrong password */
        return HK_FAULT_PROXY_AUTH;
    if (status == 429)
        return HK_FAULT_PROXY;
    return status >= 500 && status != 501 ? HK_FAULT_CONNECT : HK_FAULT_PROXY_REFUSED;
}

static enum hk_fault fault_of_socks(long why)
{
    switch (why) {
    case CURLPX_USER_REJECTED:
    case CURLPX_NO_AUTH:
        return HK_FAULT_PROXY_AUTH;
    case CURLPX_REPLY_NOT_ALLOWED:
    case CURLPX_REPLY_COMMAND_NOT_SUPPORTED:
    case CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED:
        return HK_FAULT_PROXY_REFUSED;
    case CURLPX_REPLY_GENERAL_SERVER_FAILURE:
    case CURLPX_REPLY_NETWORK_UNREACHABLE:
    case CURLPX_REPLY_HOST_UNREACHABLE:
    case CURLPX_REPLY_CONNECTION_REFUSED:
    case CURLPX_REPLY_TTL_EXPIRED:
        return HK_FAULT_CONNECT;
    }
    return HK_FAULT_PROXY;
}

static void say(struct hk_curl_transfer *c, long status, const char *error)
{
    char text[HK_HTTP_ERROR_MAX], said[32] = "";
    const char *what = c->t.fault == HK_FAULT_PROXY_AUTH      ? "does not take our credentials"
                       : c->t.fault == HK_FAULT_PROXY_REFUSED ? "does not let us to this target"
                       : c->t.fault == HK_FAULT_CONNECT       ? "cannot connect to the target"
                                                              : "failed";
    if (status)
        (void)snprintf(said, sizeof said, "HTTP %ld", status);
    (void)snprintf(text, sizeof text, "proxy %.64s %s (%.180s)", c->t.self->proxy->name, what,
                   status ? said : error);
    hk_http_say(&c->t, text);
}

bool hk_through_judge(struct hk_curl_transfer *c, CURLcode code)
{
    long status = 0, socks = 0;
    if (!c->proxied || c->t.requests > 0 || code == CURLE_OK ||
        hk_fault_from_curl((int)code) == HK_FAULT_LOCAL)
        return false;
    (void)curl_easy_getinfo(c->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    (void)curl_easy_getinfo(c->easy, CURLINFO_PROXY_ERROR, &socks);
    bool by_socks = hk_str_starts(hk_str_of(c->t.self->proxy->url), hk_str_of("socks5"));
    if (status / 100 == 2)
        return false; /* the tunnel stood */
    if (status)
        c->t.fault = fault_of_connect(status);
    else if (code == CURLE_PROXY)
        c->t.fault = fault_of_socks(socks);
    else if (by_socks && code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_PROXY)
        return false; /* of the target: TLS, say */
    else
        c->t.fault = HK_FAULT_PROXY;
    say(c, status, c->curl_error[0] ? c->curl_error : curl_easy_strerror(code));
    struct hk_through_name *name = name_of(sink_of(c), c->host);
    if (name && c->t.fault == HK_FAULT_CONNECT)
        name->at++; /* another address next time */
    return true;
}
