/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's easy interface: a command waits for its answer anyway. */
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>
#include <hikyaku/hikyaku.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/remote/http.h"

#define ANSWER_MAX ((size_t)256 << 20)

enum {
    CONNECT_MS = 10000,
    /* A long operation ends by itself after half a minute (admin/api.h); beyond that nobody will answer. */
    TOTAL_MS = 120000,
    SILENCE_S = 120, /* of an answer that is taken as it comes */
    SERVER_MAX = 1024
};

struct hk_remote_http {
    CURL *easy;
    char server[SERVER_MAX]; /* without a slash at its end */
    char socket[SERVER_MAX]; /* "" = none */
    char auth[512], ca_file[SERVER_MAX];
    char error[CURL_ERROR_SIZE];
};

static void drop_slashes(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '/')
        text[--len] = '\0';
}

static enum hk_code take_place(struct hk_remote_http *h, const struct hk_remote_place *place,
                               struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str server = hk_str_of(place->server);
    bool local = hk_str_starts(server, hk_str_of("unix:"));
    if (!local && !hk_str_starts(server, hk_str_of("http://")) &&
        !hk_str_starts(server, hk_str_of("https://")))
        return hk_err_set(err, HK_INVALID,
                          "--server takes https://HOST:PORT, http://HOST:PORT or unix:PATH, not %s",
                          hk_show(server, shown));
    if (server.len >= SERVER_MAX || strpbrk(place->server, " \t\r\n@?#") || server.len < 8)
        return hk_err_set(err, HK_INVALID,
                          "--server takes a host and a port alone: the token is --token-file's");
    (void)snprintf(h->server, sizeof h->server, "%s", local ? "http://localhost" : place->server);
    (void)snprintf(h->socket, sizeof h->socket, "%s", local ? place->server + 5 : "");
    (void)snprintf(h->ca_file, sizeof h->ca_file, "%s", place->ca_file ? place->ca_file : "");
    drop_slashes(h->server);
    if (place->token &&
        (size_t)snprintf(h->auth, sizeof h->auth, "Authorization: Bearer %s", place->token) >= sizeof h->auth)
        return hk_err_set(err, HK_INVALID, "the token is too long to be one");
    return HK_OK;
}

enum hk_code hk_remote_http_new(const struct hk_remote_place *place, struct hk_remote_http **out_http,
                                struct hk_err *err)
{
    struct hk_remote_http *h = hk_mem_zalloc(1, sizeof *h);
    if (!h)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = take_place(h, place, err);
    if (rc == HK_OK && !(h->easy = curl_easy_init()))
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        *out_http = h;
    else
        hk_remote_http_free(h);
    return rc;
}

void hk_remote_http_free(struct hk_remote_http *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->easy);
    hk_mem_wipe(h->auth, sizeof h->auth);
    hk_mem_free(h);
}

/* ---- one request ---- */

/* What libcurl's functions are given. */
struct transfer {
    CURL *easy;
    const struct hk_remote_call *call;
    struct hk_remote_answer *answer;
    bool began;   /* a body that is taken as it comes */
    bool refused; /* it is not wanted any more */
};

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!t->call->take || status < 200 || status >= 300)
        return hk_buf_add(&t->answer->body, bytes, size * n) == HK_OK ? size * n : 0;
    t->began = true;
    t->refused = !t->call->take(t->call->take_arg, (struct hk_str){bytes, size * n});
    return t->refused ? 0 : size * n;
}

static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    const struct hk_remote_call *call = ((const struct transfer *)arg)->call;
    (void)down_all, (void)down, (void)up_all, (void)up;
    return call->stop && call->stop(call->arg);
}

static bool add_line(struct curl_slist **lines, const char *line)
{
    struct curl_slist *more = curl_slist_append(*lines, line);
    if (more)
        *lines = more;
    return more != NULL;
}

static bool add_lines(const struct hk_remote_http *h, const struct hk_remote_call *call,
                      struct curl_slist **lines)
{
    char type[96];
    (void)snprintf(type, sizeof type, "Content-Type: %s", call->content_type ? call->content_type : "");
    bool good = (!call->content_type || add_line(lines, type)) && (!h->auth[0] || add_line(lines, h->auth)) &&
                add_line(lines, "Expect:");
    for (size_t i = 0; good && i < HK_REMOTE_HEADERS && call->headers[i]; i++)
        good = add_line(lines, call->headers[i]);
    return good;
}

static bool set_place(struct hk_remote_http *h)
{
    CURL *e = h->easy;
    return curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_USERAGENT, "hikyaku") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_ERRORBUFFER, h->error) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
           (!h->socket[0] || curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, h->socket) == CURLE_OK) &&
           (!h->ca_file[0] || curl_easy_setopt(e, CURLOPT_CAINFO, h->ca_file) == CURLE_OK);
}

static bool set_patience(CURL *e, bool as_it_comes)
{
    if (!as_it_comes)
        return curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)TOTAL_MS) == CURLE_OK;
    return curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S) == CURLE_OK;
}

static bool set_up(struct hk_remote_http *h, struct transfer *t, const char *url, struct curl_slist *lines)
{
    CURL *e = h->easy;
    const struct hk_remote_call *call = t->call;
    curl_easy_reset(e);
    bool good = set_place(h) && set_patience(e, call->take != NULL) &&
                curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_HTTPHEADER, lines) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_WRITEDATA, t) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_XFERINFODATA, t) == CURLE_OK;
    /* What fails on a connection that was used before, libcurl sends again: a change without a key would be made twice. */
    if (good && strcmp(call->method, "GET") != 0 && !call->headers[0])
        good = curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
    if (good && strcmp(call->method, "GET") != 0)
        good = curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len) == CURLE_OK &&
               curl_easy_setopt(e, CURLOPT_POSTFIELDS, call->body.len ? call->body.ptr : "") == CURLE_OK;
    return good;
}

/* What libcurl met, as people say it. The URL has no secrets: take_place refuses user names. */
static enum hk_code say_failed(const struct hk_remote_http *h, CURLcode code, const struct transfer *t,
                               struct hk_err *err)
{
    const char *where = h->socket[0] ? h->socket : h->server;
    const char *why = h->error[0] ? h->error : curl_easy_strerror(code);
    if (code == CURLE_OUT_OF_MEMORY)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (code == CURLE_ABORTED_BY_CALLBACK || t->refused)
        return hk_err_set(err, HK_CANCELLED, "stopped");
    if (code == CURLE_WRITE_ERROR && hk_buf_status(&t->answer->body) == HK_TOOBIG)
        return hk_err_set(err, HK_TOOBIG, "the answer of %s is larger than 256 MiB", where);
    if (t->began)
        return hk_err_set(err, HK_IO,
                          "the answer of %s ended before it was complete (%s): what came is not all", where,
                          why);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return hk_err_set(err, HK_TIMEOUT, "%s did not answer in time", where);
    return hk_err_set(err, HK_UNAVAILABLE, "cannot ask %s: %s", where, why);
}

static enum hk_code perform(struct hk_remote_http *h, const struct transfer *t, struct hk_err *err)
{
    struct hk_remote_answer *out = t->answer;
    const char *type = NULL;
    h->error[0] = '\0';
    CURLcode code = curl_easy_perform(h->easy);
    if (code != CURLE_OK)
        return say_failed(h, code, t, err);
    (void)curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &out->status);
    (void)curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &type);
    struct hk_str rest = hk_str_of(type),
                  kind = hk_str_trim(hk_str_cut(&rest, ';')); /* a proxy may add a charset */
    out->is_problem = hk_str_eqi(kind, hk_str_of("application/problem+json"));
    return HK_OK;
}

enum hk_code hk_remote_http_ask(struct hk_remote_http *h, const struct hk_remote_call *call,
                                struct hk_remote_answer *out, struct hk_err *err)
{
    struct curl_slist *lines = NULL;
    struct transfer t = {.easy = h->easy, .call = call, .answer = out};
    struct hk_buf url;
    *out = (struct hk_remote_answer){.status = 0};
    hk_buf_init(&out->body, ANSWER_MAX);
    hk_buf_init(&url, (size_t)1 << 20);
    (void)hk_buf_adds(&url, h->server);
    (void)hk_buf_adds(&url, call->path);
    bool good =
        hk_buf_status(&url) == HK_OK && add_lines(h, call, &lines) && set_up(h, &t, hk_buf_cstr(&url), lines);
    enum hk_code rc = good ? perform(h, &t, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    curl_slist_free_all(lines);
    hk_buf_fini(&url);
    return rc;
}
