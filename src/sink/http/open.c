/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the HTTP sink: checked once, copied, and wiped at the end where they are secret. */
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "sink/http/body.h"
#include "sink/http/oauth.h"
#include "sink/http/sign.h"

#define DEFAULT_CONNECT_MS   10000
#define DEFAULT_LOW_SPEED_MS 15000
#define DEFAULT_LOW_SPEED    16
#define DEFAULT_CONNECTIONS  64
#define DEFAULT_AGE_MS       300000
#define CONNECTIONS_MAX      10000
#define PINS_MAX             1024
#define START_MAX            ((size_t)16 * 1024) /* of a request: its first line and Host */

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

static char *copy_or_null(const char *text, bool *ok)
{
    char *copy = text ? hk_mem_strdup(text) : NULL;
    *ok = *ok && (copy || !text);
    return copy;
}

/* Parted by semicolons, for libcurl. */
static enum hk_code copy_pins(struct hk_http_sink *self, const struct hk_http_options *o, struct hk_err *err)
{
    struct hk_buf pins;
    enum hk_code rc = HK_OK;
    if (!o->n_pins)
        return HK_OK;
    hk_buf_init(&pins, PINS_MAX);
    for (size_t i = 0; i < o->n_pins; i++)
        (void)hk_buf_addf(&pins, "%s%s", i ? ";" : "", o->pins[i]);
    if (hk_buf_status(&pins) == HK_TOOBIG)
        rc = hk_err_set(err, HK_INVALID, "too many pins");
    else if (!(self->pins = hk_pool_copy_str(&self->kept, hk_buf_str(&pins))))
        rc = no_memory(err);
    hk_buf_fini(&pins);
    return rc;
}

/* What lies in the sink's own pool. */
static enum hk_code copy_kept(struct hk_http_sink *self, const struct hk_http_options *o, struct hk_err *err)
{
    enum hk_code rc = copy_pins(self, o, err);
    if (rc != HK_OK)
        return rc;
    if (o->socket && !(self->socket = hk_pool_copy_str(&self->kept, hk_str_of(o->socket))))
        return no_memory(err);
    if (o->hide && !(self->hide = hk_pool_copy_str(&self->kept, hk_str_of(o->hide))))
        return no_memory(err);
    if (o->proxy && !o->socket && !(self->proxy = hk_proxy_copy(o->proxy, &self->kept)))
        return no_memory(err);
    return HK_OK;
}

static enum hk_code copy_options(struct hk_http_sink *self, const struct hk_http_options *o,
                                 struct hk_err *err)
{
    bool ok = true;
    size_t at = 0;
    self->url = copy_or_null(o->url, &ok);
    self->from_message = o->from_message;
    self->varies = o->from_message || hk_url_is_template(o->url);
    self->hides_url = self->varies || hk_url_hidden(hk_str_of(o->url), &at).ptr != NULL;
    self->method = copy_or_null(o->method ? o->method : "POST", &ok);
    self->ca_file = copy_or_null(o->ca_file, &ok);
    self->cert_file = copy_or_null(o->cert_file, &ok);
    self->key_file = copy_or_null(o->key_file, &ok);
    if (o->n_allow) {
        self->allow = hk_mem_zalloc(o->n_allow, sizeof self->allow[0]);
        ok = ok && self->allow;
    }
    if (!ok)
        return no_memory(err);
    if (o->n_allow)
        memcpy(self->allow, o->allow, o->n_allow * sizeof self->allow[0]);
    self->n_allow = o->n_allow;
    self->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms : DEFAULT_CONNECT_MS;
    self->first_byte_timeout_ms = o->first_byte_timeout_ms;
    self->low_speed_ms = o->low_speed_ms ? o->low_speed_ms : DEFAULT_LOW_SPEED_MS;
    self->low_speed_bytes = o->low_speed_bytes ? o->low_speed_bytes : DEFAULT_LOW_SPEED;
    self->max_connections = o->max_connections ? o->max_connections : DEFAULT_CONNECTIONS;
    self->keep_bytes = o->keep_bytes;
    self->max_age_ms = o->max_connection_age_ms ? o->max_connection_age_ms : DEFAULT_AGE_MS;
    return copy_kept(self, o, err);
}

static enum hk_code check_file(const char *what, const char *path, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (!path || access(path, R_OK) == 0)
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "%s %s cannot be read", what, hk_show(hk_str_of(path), shown));
}

/* ---- the URL ---- */

/* Its parts as libcurl reads them, so that there is no second opinion; NULL = not there. */
struct target {
    char *scheme, *user, *fragment, *host, *zone, *port, *path, *query;
    bool tls;
};

static void free_target(struct target *u)
{
    char *parts[] = {u->scheme, u->user, u->fragment, u->host, u->zone, u->port, u->path, u->query};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        curl_free(parts[i]);
}

/* HK_NOMEM, or HK_INVALID when there is no such part. */
static enum hk_code get_part(CURLU *url, CURLUPart part, char **out)
{
    CURLUcode code = curl_url_get(url, part, out, CURLU_DEFAULT_PORT);
    if (code == CURLUE_OUT_OF_MEMORY)
        return HK_NOMEM;
    return code == CURLUE_OK && *out ? HK_OK : HK_INVALID;
}

static enum hk_code get_parts(CURLU *url, const char *text, struct target *u)
{
    CURLUcode code = curl_url_set(url, CURLUPART_URL, text, 0);
    if (code != CURLUE_OK)
        return code == CURLUE_OUT_OF_MEMORY ? HK_NOMEM : HK_INVALID;

    const struct {
        CURLUPart part;
        char **to;
        bool needed;
    } parts[] = {{CURLUPART_SCHEME, &u->scheme, true}, {CURLUPART_HOST, &u->host, true},
                 {CURLUPART_PORT, &u->port, true},     {CURLUPART_PATH, &u->path, true},
                 {CURLUPART_QUERY, &u->query, false},  {CURLUPART_USER, &u->user, false},
                 {CURLUPART_ZONEID, &u->zone, false},  {CURLUPART_FRAGMENT, &u->fragment, false}};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        enum hk_code rc = get_part(url, parts[i].part, parts[i].to);
        if (rc == HK_NOMEM || (rc != HK_OK && parts[i].needed))
            return rc;
    }
    return HK_OK;
}

static enum hk_code read_url(const char *text, struct target *u, struct hk_err *err)
{
    CURLU *url = curl_url();
    enum hk_code rc = url ? get_parts(url, text, u) : HK_NOMEM;
    curl_url_cleanup(url);
    if (rc == HK_NOMEM)
        return no_memory(err);
    u->tls = u->scheme && strcmp(u->scheme, "https") == 0;
    bool whole = u->scheme && u->host && u->port && u->path;
    if (rc != HK_OK || !whole || (!u->tls && strcmp(u->scheme, "http") != 0))
        return hk_err_set(err, HK_INVALID, "the url must be http:// or https:// with a host");
    if (!hk_utf8_is_text(hk_str_of(u->host)))
        return hk_err_set(err, HK_INVALID, "the url's host must be UTF-8 or punycode");
    if (u->user)
        return hk_err_set(err, HK_INVALID,
                          "the url must not hold a user or a password: there are options for them");
    if (u->fragment)
        return hk_err_set(err, HK_INVALID, "the url must not have a fragment (#…): it would not be sent");
    return HK_OK;
}

static bool made_of(const char *s, const char *others)
{
    for (; *s; s++) {
        if (!hk_ascii_isalpha(*s) && !hk_ascii_isdigit(*s) && !strchr(others, *s))
            return false;
    }
    return true;
}

/* Our own HTTP/1.1 does what is plain in every respect; the rest is libcurl's: TLS, zones, names beyond ASCII … */
static bool is_plain(const struct target *u)
{
    if (u->tls || u->zone || !u->host || !u->path || !u->port)
        return false;
    size_t len = strlen(u->host);
    bool name = len > 0 && len < 254 && u->host[len - 1] != '.' && made_of(u->host, ".-_");
    bool v6 = u->host[0] == '[' && made_of(u->host, "[]:.");
    return (name || v6) && made_of(u->path, "!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~") &&
           (!u->query || made_of(u->query, "!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"));
}

/* What our own HTTP/1.1 begins every request with. */
static void add_start(struct hk_buf *out, const char *method, const struct target *u)
{
    bool usual = strcmp(u->port, "80") == 0;
    (void)hk_buf_addf(out, "%s %s%s%s HTTP/1.1\r\nHost: %s%s%s\r\n", method, u->path, u->query ? "?" : "",
                      u->query ? u->query : "", u->host, usual ? "" : ":", usual ? "" : u->port);
}

/* ---- the whole ---- */

static enum hk_code check_options(const struct hk_http_sink *self, const struct hk_http_options *o,
                                  struct hk_err *err)
{
    bool get = o->bare && strcmp(self->method, "GET") == 0; /* of our own, never of a message */
    if (!get && strcmp(self->method, "POST") != 0 && strcmp(self->method, "PUT") != 0 &&
        strcmp(self->method, "PATCH") != 0)
        return hk_err_set(err, HK_INVALID, "the method must be POST, PUT or PATCH");
    if (self->max_connections > CONNECTIONS_MAX)
        return hk_err_set(err, HK_INVALID, "at most %d connections", CONNECTIONS_MAX);
    if (self->key_file && !self->cert_file)
        return hk_err_set(err, HK_INVALID, "a key_file needs its cert_file");
    enum hk_code rc = check_file("ca_file", self->ca_file, err);
    if (rc == HK_OK)
        rc = check_file("cert_file", self->cert_file, err);
    if (rc == HK_OK)
        rc = check_file("key_file", self->key_file, err);
    return rc;
}

static enum hk_code check_libcurl(struct hk_err *err)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    if (info->version_num < 0x075700) /* 7.87: CURLOPT_QUICK_EXIT */
        return hk_err_set(err, HK_UNSUPPORTED, "libcurl %s is too old: 7.87 or newer is needed",
                          info->version);
    return HK_OK;
}

/* `h1`: it is our own HTTP/1.1. */
static enum hk_code open_wire(struct hk_http_sink *self, const struct target *u, bool h1, struct hk_err *err)
{
    uint64_t port = 0;
    if (!h1)
        return hk_http_curl_open(self, err);
    enum hk_code rc = hk_parse_u64(hk_str_of(u->port), &port, NULL);
    if (rc != HK_OK || port > UINT16_MAX)
        return hk_err_set(err, HK_INVALID, "the url's port must be a number up to 65535");
    return hk_h1_open(self, u->host, (uint16_t)port, err);
}

static enum hk_code set_up(struct hk_http_sink *self, const struct hk_http_options *o, const struct target *u,
                           bool h1, struct hk_err *err)
{
    struct hk_buf start;
    hk_buf_init(&start, START_MAX);
    enum hk_code rc = copy_options(self, o, err);
    if (rc == HK_OK)
        rc = check_options(self, o, err);
    self->max_connections += o->more_connections;
    if (rc == HK_OK && h1)
        add_start(&start, self->method, u);
    if (rc == HK_OK && hk_buf_status(&start) != HK_OK)
        rc = hk_buf_status(&start) == HK_NOMEM ? no_memory(err)
                                               : hk_err_set(err, HK_INVALID, "the url is too long");
    if (rc == HK_OK)
        rc = hk_request_base_init(&self->base, o, hk_buf_str(&start), err);
    if (rc == HK_OK && (hk_timer_new(self->loop, hk_http_on_soon, self, &self->soon) != HK_OK ||
                        hk_timer_new(self->loop, hk_http_on_clock, self, &self->clock) != HK_OK))
        rc = no_memory(err);
    if (rc == HK_OK)
        rc = open_wire(self, u, h1, err);
    if (rc == HK_OK && o->oauth)
        rc = hk_oauth_new(self, o, err);
    hk_secret_wipe(start.data, start.len); /* some carry a token in the path */
    hk_buf_fini(&start);
    return rc;
}

static enum hk_code open_sink(struct hk_loop *loop, const struct hk_http_options *o, const struct target *u,
                              struct hk_sink **out_sink, struct hk_err *err)
{
    bool proxied = u->host && !o->socket && hk_proxy_is_for(o->proxy, hk_str_of(u->host));
    if (proxied && (u->zone || !made_of(u->host, ".-_[]:")))
        return hk_err_set(err, HK_INVALID,
                          "behind a proxy the url's host must be an address or an ASCII name");
    bool h1 = !o->libcurl && !proxied && !o->socket && is_plain(u) && !hk_url_is_template(o->url);
    struct hk_http_sink *self = h1 ? hk_h1_new() : hk_http_curl_new();
    if (!self)
        return no_memory(err);
    self->sink.ops = &hk_http_ops;
    self->loop = loop;
    self->tls = u->tls;
    hk_buf_init(&self->shown_request, (size_t)512 * 1024);
    hk_buf_init(&self->shown_response, (size_t)64 * 1024);
    enum hk_code rc = set_up(self, o, u, h1, err);
    if (rc == HK_OK)
        *out_sink = &self->sink;
    else
        self->wire->destroy(self);
    return rc;
}

static enum hk_code check_and_open(struct hk_loop *loop, const struct hk_http_options *o,
                                   struct hk_sink **out_sink, struct hk_err *err)
{
    struct target u = {.tls = false};
    enum hk_code rc = check_libcurl(err);
    if (rc == HK_OK && !o->url && !o->from_message)
        return hk_err_set(err, HK_INVALID, "no url");
    if (rc == HK_OK && !o->from_message)
        rc = read_url(o->url, &u, err);
    if (rc == HK_OK)
        rc = open_sink(loop, o, &u, out_sink, err);
    free_target(&u);
    return rc;
}

enum hk_code hk_http_open(struct hk_loop *loop, const struct hk_http_options *options,
                          struct hk_sink **out_sink, struct hk_err *err)
{
    struct hk_err why = {.code = HK_OK};
    enum hk_code rc = check_and_open(loop, options, out_sink, &why);
    if (rc == HK_OK)
        return HK_OK;
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, rc, "destination %s: %s",
                      hk_show(hk_str_of(options->name ? options->name : "http"), shown), why.message);
}

void hk_http_fini(struct hk_http_sink *self)
{
    hk_access_free(self->token);
    for (struct hk_http_transfer *t = self->spare.first; t;) {
        struct hk_http_transfer *next = t->next;
        self->wire->unmake(t);
        t = next;
    }
    hk_timer_free(self->soon);
    hk_timer_free(self->clock);
    hk_request_base_fini(&self->base);
    hk_buf_fini(&self->shown_request);
    hk_buf_fini(&self->shown_response);
    hk_secret_wipe(self->url, self->url ? strlen(self->url) : 0);
    hk_mem_free(self->url);
    hk_mem_free(self->method);
    hk_mem_free(self->ca_file);
    hk_mem_free(self->cert_file);
    hk_mem_free(self->key_file);
    hk_mem_free(self->allow);
    hk_pool_wipe(&self->kept);
}
