/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl for the exporter. No proxy but the configured one, no redirect, answers are not kept: a collector says all it has to say by its status. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>
#include <hikyaku/policy.h>

#include "base/mem.h"
#include "base/proxy_curl.h"
#include "base/socket.h"
#include "base/str.h"
#include "observe/otlp_http.h"

#define RETRY_AFTER_MAX_MS 3600000
#define ANSWER_MAX         (64 << 10) /* bytes, of header fields and of the body each: nobody reads more */

struct hk_otlp_http {
    CURL *easy;
    struct curl_slist *headers;
    bool (*hurry)(void *arg);
    void *arg;
    uint64_t retry_after_ms;
    int64_t wall_ms;
    size_t headers_len, body_len; /* of the answer so far */
};

/* Beyond the bound the transfer ends; its status counts all the same. */
static size_t take_nothing(char *data, size_t size, size_t n, void *arg)
{
    struct hk_otlp_http *http = arg;
    (void)data;
    http->body_len += size * n;
    return http->body_len <= ANSWER_MAX ? size * n : 0;
}

static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
    struct hk_otlp_http *http = arg;
    struct hk_str line = {data, size * n}, name = hk_str_cut(&line, ':');
    http->headers_len += size * n;
    if (http->headers_len > ANSWER_MAX)
        return 0;
    while (line.len && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;
    struct hk_header header = {name, hk_str_trim(line)};
    uint64_t ms;
    if (hk_str_eqi(name, hk_str_of("Retry-After")) && hk_hint_ms(&header, 1, http->wall_ms, &ms))
        http->retry_after_ms = ms < RETRY_AFTER_MAX_MS ? ms : RETRY_AFTER_MAX_MS;
    return size * n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct hk_otlp_http *http = arg;
    (void)a, (void)b, (void)c, (void)d;
    return http->hurry(http->arg) ? 1 : 0;
}

static bool add_header(struct hk_otlp_http *http, const char *line)
{
    struct curl_slist *more = curl_slist_append(http->headers, line);
    if (more)
        http->headers = more;
    return more != NULL;
}

static bool set_headers(struct hk_otlp_http *http, const struct hk_otlp_target *t)
{
    char type[96];
    (void)snprintf(type, sizeof type, "Content-Type: %s", t->content_type);
    bool ok = add_header(http, type) && add_header(http, "Expect:") &&
              (!t->gzip || add_header(http, "Content-Encoding: gzip"));
    for (size_t i = 0; ok && i < t->n_headers; i++)
        ok = add_header(http, t->headers[i]);
    return ok && curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, http->headers) == CURLE_OK;
}

static bool set_tls(CURL *easy, const struct hk_otlp_target *t)
{
    return (!t->ca_file || curl_easy_setopt(easy, CURLOPT_CAINFO, t->ca_file) == CURLE_OK) &&
           (!t->cert_file || curl_easy_setopt(easy, CURLOPT_SSLCERT, t->cert_file) == CURLE_OK) &&
           (!t->key_file || curl_easy_setopt(easy, CURLOPT_SSLKEY, t->key_file) == CURLE_OK);
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)arg, (void)purpose;
    return hk_socket(address->family, address->socktype, address->protocol);
}

static bool set_up(struct hk_otlp_http *http, const struct hk_otlp_target *t)
{
    CURL *easy = http->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
                     1L); /* the end does not wait for a name server that is silent */
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, http);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_nothing);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, http);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, http);
    return curl_easy_setopt(easy, CURLOPT_URL, t->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           hk_proxy_curl_set(easy, t->proxy) && set_tls(easy, t) && set_headers(http, t);
}

enum hk_code hk_otlp_http_open(const struct hk_otlp_target *target, struct hk_otlp_http **out,
                               struct hk_err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hk_err_set(err, HK_NOMEM, "libcurl does not start");
    struct hk_otlp_http *http = hk_mem_zalloc(1, sizeof *http);
    if (!http) {
        curl_global_cleanup();
        return hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
    }
    http->hurry = target->hurry;
    http->arg = target->arg;
    http->easy = curl_easy_init();
    if (!http->easy || !set_up(http, target)) {
        hk_otlp_http_close(http);
        return hk_err_set(err, HK_INVALID, "libcurl does not take the telemetry settings");
    }
    *out = http;
    return HK_OK;
}

void hk_otlp_http_post(struct hk_otlp_http *http, struct hk_str body, uint64_t timeout_ms, int64_t wall_ms,
                       struct hk_otlp_answer *out)
{
    long status = 0;
    char text[CURL_ERROR_SIZE] = "";
    http->retry_after_ms = 0;
    http->headers_len = http->body_len = 0;
    http->wall_ms = wall_ms;
    curl_easy_setopt(http->easy, CURLOPT_ERRORBUFFER, text);
    curl_easy_setopt(http->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(http->easy, CURLOPT_POSTFIELDS, body.ptr);
    curl_easy_setopt(http->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    CURLcode rc = curl_easy_perform(http->easy);
    bool flood = rc == CURLE_WRITE_ERROR && http->body_len > ANSWER_MAX;
    if (rc == CURLE_OK || flood)
        (void)curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
    *out = (struct hk_otlp_answer){.status = (int)status, .retry_after_ms = http->retry_after_ms};
    if (rc != CURLE_OK && !flood)
        (void)snprintf(out->error, sizeof out->error, "%.*s", (int)sizeof out->error - 1,
                       text[0] ? text : curl_easy_strerror(rc));
    curl_easy_setopt(http->easy, CURLOPT_ERRORBUFFER, NULL);
}

void hk_otlp_http_close(struct hk_otlp_http *http)
{
    if (!http)
        return;
    curl_easy_cleanup(http->easy);
    curl_slist_free_all(http->headers);
    hk_mem_free(http);
    curl_global_cleanup();
}
