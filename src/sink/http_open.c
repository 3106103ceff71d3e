/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the HTTP sink: checked once, copied, and wiped at the end where they are secret. */
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/http_impl.h"

#define DEFAULT_CONNECT_MS   10000
#define DEFAULT_LOW_SPEED_MS 15000
#define DEFAULT_LOW_SPEED    16
#define DEFAULT_CONNECTIONS  64
#define DEFAULT_AGE_MS       300000
#define CONNECTIONS_MAX      10000

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

static enum hk_code copy_options(struct hk_http_sink *self, const struct hk_http_options *o,
                                 struct hk_err *err)
{
    bool ok = true;
    self->url = copy_or_null(o->url, &ok);
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
    self->max_age_ms = o->max_connection_age_ms ? o->max_connection_age_ms : DEFAULT_AGE_MS;
    return HK_OK;
}

static enum hk_code check_file(const char *what, const char *path, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (!path || access(path, R_OK) == 0)
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "%s %s cannot be read", what, hk_show(hk_str_of(path), shown));
}

/* As libcurl itself reads it, so that there is no second opinion. */
static enum hk_code check_url(struct hk_http_sink *self, struct hk_err *err)
{
    char *scheme = NULL, *user = NULL, *fragment = NULL;
    CURLU *url = curl_url();
    if (!url)
        return no_memory(err);
    enum hk_code rc = HK_OK;
    if (curl_url_set(url, CURLUPART_URL, self->url, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        rc = hk_err_set(err, HK_INVALID, "the url must be http:// or https:// with a host");
    else if (curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK)
        rc = hk_err_set(err, HK_INVALID,
                        "the url must not hold a user or a password: there are options for them");
    else if (curl_url_get(url, CURLUPART_FRAGMENT, &fragment, 0) == CURLUE_OK)
        rc = hk_err_set(err, HK_INVALID, "the url must not have a fragment (#…): it would not be sent");
    self->tls = rc == HK_OK && strcmp(scheme, "https") == 0;
    curl_free(scheme);
    curl_free(user);
    curl_free(fragment);
    curl_url_cleanup(url);
    return rc;
}

static enum hk_code check_options(struct hk_http_sink *self, struct hk_err *err)
{
    if (strcmp(self->method, "POST") != 0 && strcmp(self->method, "PUT") != 0 &&
        strcmp(self->method, "PATCH") != 0)
        return hk_err_set(err, HK_INVALID, "the method must be POST, PUT or PATCH");
    if (self->max_connections > CONNECTIONS_MAX)
        return hk_err_set(err, HK_INVALID, "at most %d connections", CONNECTIONS_MAX);
    if (self->key_file && !self->cert_file)
        return hk_err_set(err, HK_INVALID, "a key_file needs its cert_file");
    enum hk_code rc = check_url(self, err);
    if (rc == HK_OK)
        rc = check_file("ca_file", self->ca_file, err);
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

static enum hk_code set_up(struct hk_http_sink *self, const struct hk_http_options *o, struct hk_err *err)
{
    enum hk_code rc = check_libcurl(err);
    if (rc == HK_OK && !o->url)
        rc = hk_err_set(err, HK_INVALID, "no url");
    if (rc == HK_OK)
        rc = copy_options(self, o, err);
    if (rc == HK_OK)
        rc = check_options(self, err);
    if (rc == HK_OK)
        rc = hk_request_base_init(&self->base, o, err);
    if (rc == HK_OK && (hk_timer_new(self->loop, hk_http_on_soon, self, &self->soon) != HK_OK ||
                        hk_timer_new(self->loop, hk_http_on_abandoned, self, &self->abandoned) != HK_OK))
        rc = no_memory(err);
    if (rc == HK_OK)
        rc = hk_http_loop_init(&self->http, self->loop, hk_http_on_ran, self, err);
    if (rc != HK_OK)
        return rc;
    curl_multi_setopt(self->http.multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(self->http.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)self->max_connections);
    curl_multi_setopt(self->http.multi, CURLMOPT_MAXCONNECTS, (long)self->max_connections);
    return HK_OK;
}

enum hk_code hk_http_open(struct hk_loop *loop, const struct hk_http_options *options,
                          struct hk_sink **out_sink, struct hk_err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return no_memory(err);
    struct hk_http_sink *self = hk_mem_zalloc(1, sizeof *self);
    if (!self) {
        curl_global_cleanup();
        return no_memory(err);
    }
    self->sink.ops = &hk_http_ops;
    self->loop = loop;
    hk_buf_init(&self->shown_request, (size_t)512 * 1024);
    hk_buf_init(&self->shown_response, (size_t)64 * 1024);
    struct hk_err why = {.code = HK_OK};
    enum hk_code rc = set_up(self, options, &why);
    if (rc == HK_OK) {
        *out_sink = &self->sink;
        return HK_OK;
    }
    hk_http_destroy(self);
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, rc, "destination %s: %s",
                      hk_show(hk_str_of(options->name ? options->name : "http"), shown), why.message);
}

void hk_http_destroy(struct hk_http_sink *self)
{
    for (struct hk_http_transfer *t = self->spare.first; t;) {
        struct hk_http_transfer *next = t->next;
        hk_http_transfer_free(t);
        t = next;
    }
    hk_http_loop_fini(&self->http);
    hk_timer_free(self->soon);
    hk_timer_free(self->abandoned);
    hk_request_base_fini(&self->base);
    hk_buf_fini(&self->shown_request);
    hk_buf_fini(&self->shown_response);
    hk_secret_wipe(self->url, self->url ? strlen(self->url) : 0); /* some carry a token in the path */
    hk_mem_free(self->url);
    hk_mem_free(self->method);
    hk_mem_free(self->ca_file);
    hk_mem_free(self->cert_file);
    hk_mem_free(self->key_file);
    hk_mem_free(self->allow);
    hk_mem_free(self);
    curl_global_cleanup();
}
