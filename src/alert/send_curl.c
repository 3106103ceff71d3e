/* SPDX-License-Identifier: Apache-2.0 */
/* One request or one mail by libcurl's easy interface. Each has a handle of its own, and so a connection of its own: alerts
 * are rare, and nothing of one channel can be used by another. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>
#include <hikyaku/policy.h>

#include "alert/send.h"
#include "base/proxy_curl.h"
#include "base/show.h"
#include "base/socket.h"
#include "base/str.h"
#include "base/url.h"
#include "exec/clock.h"
#include "loop/loop.h"
#include "sink/http/response.h"

#define DEFAULT_TIMEOUT_MS 10000
#define TIMEOUT_MAX_MS     600000
#define SMTP_TALK_MAX      ((size_t)64 << 10) /* of a mail server: a conversation has a few hundred bytes */

struct transfer {
    CURL *easy;
    struct curl_slist *lines;
    struct hk_response response;
    const struct hk_cidr *allow;
    size_t n_allow;
    const struct hk_proxy *proxy; /* that it goes by */
    char aim[HK_IP_TEXT_MAX + 8]; /* what the proxy is asked for */
    struct curl_slist aim_line;
    bool guarded, blocked, tried; /* some address was refused; some was not */
    struct hk_ip refused;
    struct hk_str upload; /* what is left of a mail */
    char reply[200];      /* of an SMTP server: the last one, if it was a refusal */
    size_t talked;        /* by it, in bytes */
    const atomic_bool *abandoned;
    char curl_error[CURL_ERROR_SIZE];
};

/* ---- the address policy ---- */

/* Called for every address that libcurl would connect to, after names are resolved. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct transfer *t = arg;
    struct hk_address at;
    if (!hk_address_of(&address->addr, address->addrlen, &at) ||
        (t->guarded && !t->proxy && !hk_ip_allowed(&at.ip, t->allow, t->n_allow))) {
        t->blocked = true;
        t->refused = at.ip;
        return CURL_SOCKET_BAD;
    }
    t->tried = true;
    return hk_socket(address->family, address->socktype, address->protocol);
}

/* ---- what comes in and goes out ---- */

static size_t on_http_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    enum hk_response_next next = hk_response_line(&t->response, (struct hk_str){bytes, size * n});
    return next == HK_RESPONSE_MORE ? size * n : 0;
}

static size_t on_http_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    enum hk_response_next next = hk_response_body(&t->response, (struct hk_str){bytes, size * n});
    return next == HK_RESPONSE_MORE ? size * n : 0; /* 0: enough, the transfer ends */
}

/* Lines of the conversation: the last one is worth telling, if it refuses. */
static size_t on_smtp_line(char *bytes, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    struct hk_str line = {bytes, size * n};
    t->talked += line.len;
    if (t->talked > SMTP_TALK_MAX)
        return 0; /* the transfer ends */
    while (line.len > 0 && (line.ptr[line.len - 1] == '\r' || line.ptr[line.len - 1] == '\n'))
        line.len--;
    if (hk_str_starts(line, hk_str_of("221"))) /* it says good-bye, whatever came before */
        return size * n;
    if (line.len < 3 || (line.ptr[0] != '4' && line.ptr[0] != '5') || !hk_ascii_isdigit(line.ptr[1]) ||
        !hk_ascii_isdigit(line.ptr[2])) /* the code is told as it is */
        line.len = 0;
    if (line.len >= sizeof t->reply)
        line.len = sizeof t->reply - 1;
    memcpy(t->reply, line.ptr, line.len);
    t->reply[line.len] = '\0';
    return size * n;
}

static size_t on_nothing(char *bytes, size_t size, size_t n, void *arg)
{
    (void)bytes, (void)arg;
    return size * n;
}

static size_t on_upload(char *to, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    size_t len = size * n < t->upload.len ? size * n : t->upload.len;
    memcpy(to, t->upload.ptr, len);
    t->upload.ptr += len;
    t->upload.len -= len;
    return len;
}

/* libcurl asks about once a second while nothing happens; 1 ends the transfer. */
static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    (void)down_all, (void)down, (void)up_all, (void)up;
    const struct transfer *t = arg;
    return atomic_load(t->abandoned);
}

/* ---- setting up ---- */

static long timeout_of(uint64_t ms)
{
    return ms == 0 ? DEFAULT_TIMEOUT_MS : ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : (long)ms;
}

/* The same for both kinds; as the HTTP sink has it. False: out of memory, or libcurl was built without what is needed. */
static bool set_common(struct transfer *t, const char *url, const char *protocols, const char *ca_file,
                       uint64_t timeout_ms)
{
    CURL *easy = t->easy;
    if (t->abandoned) {
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(easy, CURLOPT_XFERINFODATA, t);
    }
    bool ok = curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, protocols) == CURLE_OK &&
              hk_proxy_curl_set(easy, t->proxy);
    if (ca_file) /* this one alone: not the system's directory beside it */
        ok = ok && curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* else the end waits for a resolver thread */
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_of(timeout_ms));
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_of(timeout_ms));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->curl_error);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    return ok;
}

static bool add_line(struct transfer *t, const char *line)
{
    struct curl_slist *more = curl_slist_append(t->lines, line);
    if (more)
        t->lines = more;
    return more != NULL;
}

static bool set_http(struct transfer *t, const struct hk_send_http *r)
{
    bool ok = set_common(t, r->url, "http,https", r->ca_file, r->timeout_ms) && add_line(t, "Expect:");
    for (size_t i = 0; i < r->n_headers; i++)
        ok = ok && add_line(t, r->headers[i]);
    t->guarded = true;
    t->allow = r->allow;
    t->n_allow = r->n_allow;
    curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->lines);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, r->body.len ? r->body.ptr : "");
    curl_easy_setopt(t->easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(t->easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_http_header);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_http_body);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    return ok;
}

static bool is_loopback(CURLU *url)
{
    char *host = NULL;
    struct hk_ip ip;
    if (curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK || !host)
        return false;
    struct hk_str name = hk_str_of(host);
    if (name.len > 2 && name.ptr[0] == '[')
        name = (struct hk_str){name.ptr + 1, name.len - 2};
    const char *special = hk_ip_parse(name, &ip) ? hk_ip_special(&ip) : NULL;
    bool loopback = hk_str_eqi(name, hk_str_of("localhost")) || (special && strcmp(special, "loopback") == 0);
    curl_free(host);
    return loopback;
}

static bool stays_here(const char *url)
{
    CURLU *u = curl_url();
    bool here =
        u && curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK && is_loopback(u);
    curl_url_cleanup(u);
    return here;
}

static bool set_mail(struct transfer *t, const struct hk_send_mail *m)
{
    bool ok = set_common(t, m->url, "smtp,smtps", m->ca_file, m->timeout_ms);
    bool must = m->starttls_required || (m->user && (t->proxy || !stays_here(m->url)));
    for (size_t i = 0; i < m->n_to; i++)
        ok = ok && add_line(t, m->to[i]);
    if (m->user)
        ok = ok && curl_easy_setopt(t->easy, CURLOPT_USERNAME, m->user) == CURLE_OK &&
             curl_easy_setopt(t->easy, CURLOPT_PASSWORD, m->password ? m->password : "") == CURLE_OK;
    ok = ok && curl_easy_setopt(t->easy, CURLOPT_MAIL_FROM, m->from) == CURLE_OK;
    t->upload = m->message;
    curl_easy_setopt(t->easy, CURLOPT_MAIL_RCPT, t->lines);
    curl_easy_setopt(t->easy, CURLOPT_MAIL_RCPT_ALLLOWFAILS,
                     1L); /* one bad address does not silence the others */
    curl_easy_setopt(t->easy, CURLOPT_USE_SSL, must ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_TRY);
    /* the time-out ends with the mail, and its server may never answer the QUIT after it */
    curl_easy_setopt(t->easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, (timeout_of(m->timeout_ms) + 999) / 1000);
    curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_upload);
    curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_smtp_line);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_nothing);
    return ok;
}

/* ---- proxies ---- */

static enum hk_code say_blocked(const struct transfer *t, struct hk_err *err)
{
    char text[HK_IP_TEXT_MAX];
    (void)hk_ip_format(&t->refused, text);
    const char *what = hk_ip_special(&t->refused);
    return hk_err_set(err, HK_INVALID, "blocked: %s is a %s address; `allow` lists the exceptions", text,
                      what ? what : "forbidden");
}

/* The proxy is asked for an address that the guard has seen, as the HTTP sink does it (sink/http/through.c). */
static enum hk_code aim(struct transfer *t, const char *url, uint64_t timeout_ms, struct hk_err *err)
{
    char text[HK_IP_TEXT_MAX], host[256];
    struct hk_resolved found = {.n = 0};
    const struct hk_resolve ask = {
        .host = host, .timeout_ms = (uint64_t)timeout_of(timeout_ms), .abandoned = t->abandoned};
    size_t i = 0;
    if (!hk_str_copy(host, sizeof host, hk_url_host(hk_str_of(url))) || !host[0])
        return hk_err_set(err, HK_INVALID, "the url's host cannot be used behind a proxy");
    if (t->proxy->resolves && !hk_ip_parse(hk_str_of(host), &found.ips[0]) &&
        !hk_str_eqi(hk_str_of(host), hk_str_of("localhost")))
        return HK_OK; /* the proxy's to judge */
    enum hk_code rc = hk_send_resolve(&ask, &found, err);
    if (rc != HK_OK)
        return rc;
    while (t->guarded && i < found.n && !hk_ip_allowed(&found.ips[i], t->allow, t->n_allow))
        i++;
    t->refused = found.ips[0];
    if (i == found.n)
        return say_blocked(t, err);
    (void)hk_ip_format(&found.ips[i], text);
    (void)snprintf(t->aim, sizeof t->aim, found.ips[i].v6 ? "::[%s]:" : "::%s:", text);
    t->aim_line = (struct curl_slist){t->aim, NULL};
    curl_easy_setopt(t->easy, CURLOPT_CONNECT_TO, &t->aim_line);
    return HK_OK;
}

/* Before the options are set. */
static void choose_proxy(struct transfer *t, const struct hk_proxy *proxy, const char *url)
{
    if (hk_proxy_is_for(proxy, hk_url_host(hk_str_of(url))))
        t->proxy = proxy;
}

/* Did it fail on the way, and not by our time-out or wish? */
static bool is_proxys(const struct transfer *t, CURLcode code)
{
    return t->proxy && code != CURLE_ABORTED_BY_CALLBACK && code != CURLE_OPERATION_TIMEDOUT;
}

/* What the proxy said is not the receiver's word: a notice may be tried again. */
static enum hk_code say_proxy(const struct transfer *t, CURLcode code, struct hk_err *err)
{
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    if (status == 407 || status == 401)
        return hk_err_set(err, HK_UNAVAILABLE, "proxy %.64s does not take our credentials (HTTP %ld)",
                          t->proxy->name, status);
    return hk_err_set(err, HK_UNAVAILABLE, "by proxy %.64s: %s", t->proxy->name,
                      t->curl_error[0] ? t->curl_error : curl_easy_strerror(code));
}

/* ---- what became of it ---- */

static enum hk_code code_of(CURLcode code)
{
    switch ((int)code) {
    case CURLE_OPERATION_TIMEDOUT:
        return HK_TIMEOUT;
    case CURLE_ABORTED_BY_CALLBACK:
        return HK_CANCELLED;
    case CURLE_OUT_OF_MEMORY:
        return HK_NOMEM;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_LOGIN_DENIED:
    case CURLE_SSL_CACERT_BADFILE:
        return HK_INVALID;
    default:
        return HK_UNAVAILABLE;
    }
}

static enum hk_code say_failed(const struct transfer *t, CURLcode code, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (t->blocked && !t->tried)
        return say_blocked(t, err);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return hk_err_set(err, HK_CANCELLED, "abandoned: the relay stops");
    if (code == CURLE_USE_SSL_FAILED)
        return hk_err_set(err, HK_UNAVAILABLE,
                          "the mail server does not offer STARTTLS, which is required here");
    if (code == CURLE_LOGIN_DENIED) /* what it says may hold what it was told */
        return hk_err_set(err, t->reply[0] == '4' ? HK_UNAVAILABLE : HK_INVALID,
                          "the mail server refused user and password (%.3s)", t->reply);
    if (t->reply[0])
        return hk_err_set(err, t->reply[0] == '5' ? HK_INVALID : HK_UNAVAILABLE, "the mail server said %s",
                          hk_show(hk_str_of(t->reply), shown));
    return hk_err_set(err, code_of(code), "%s", t->curl_error[0] ? t->curl_error : curl_easy_strerror(code));
}

/* CURLE_WRITE_ERROR: we had enough of it. */
static void take_answer(const struct transfer *t, CURLcode code, struct hk_send_answer *out)
{
    struct hk_header headers[HK_HTTP_HEADERS_MAX];
    uint64_t retry_ms = 0;
    size_t n = hk_response_headers(&t->response, headers);
    size_t len = t->response.body.len < HK_SEND_TEXT_MAX ? t->response.body.len : HK_SEND_TEXT_MAX;
    out->status = t->response.final;
    out->retry_ms = hk_hint_ms(headers, n, hk_clock_wall_ms(), &retry_ms) ? retry_ms : 0;
    hk_buf_add(&out->text, hk_buf_cstr(&t->response.body), len);
    out->cut = (code != CURLE_OK && code != CURLE_WRITE_ERROR) || hk_buf_status(&t->response.body) != HK_OK ||
               hk_buf_status(&out->text) != HK_OK;
}

static enum hk_code begin(struct transfer *t, struct hk_err *err)
{
    *t = (struct transfer){.easy = NULL};
    hk_response_init(&t->response);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hk_err_set(err, HK_NOMEM, "libcurl cannot be used");
    t->easy = curl_easy_init();
    return t->easy ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static void end(struct transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->lines);
    hk_response_fini(&t->response);
    curl_global_cleanup();
}

enum hk_code hk_send_http(const struct hk_send_http *request, struct hk_send_answer *out, struct hk_err *err)
{
    struct transfer t;
    enum hk_code rc = begin(&t, err);
    t.abandoned = request->abandoned;
    choose_proxy(&t, request->proxy, request->url);
    if (rc == HK_OK && !set_http(&t, request))
        rc = hk_err_set(err, HK_NOMEM, "libcurl did not take the request");
    if (rc == HK_OK && t.proxy)
        rc = aim(&t, request->url, request->timeout_ms, err);
    if (rc == HK_OK) {
        CURLcode code = curl_easy_perform(t.easy);
        if (t.response.final) /* an answer outranks whatever came after it */
            take_answer(&t, code, out);
        else if (is_proxys(&t, code))
            rc = say_proxy(&t, code, err);
        else
            rc = say_failed(&t, code, err);
    }
    end(&t);
    return rc;
}

enum hk_code hk_send_mail(const struct hk_send_mail *mail, struct hk_err *err)
{
    struct transfer t;
    enum hk_code rc = begin(&t, err);
    t.abandoned = mail->abandoned;
    choose_proxy(&t, mail->proxy, mail->url);
    if (rc == HK_OK && !set_mail(&t, mail))
        rc = hk_err_set(err, HK_NOMEM, "libcurl did not take the mail");
    if (rc == HK_OK && t.proxy)
        rc = aim(&t, mail->url, mail->timeout_ms, err);
    if (rc == HK_OK) {
        CURLcode code = curl_easy_perform(t.easy);
        hk_send_hide(t.reply, strlen(t.reply), hk_str_of(mail->password));
        if (code != CURLE_OK && t.talked == 0 && is_proxys(&t, code))
            rc = say_proxy(&t, code, err);
        else if (code != CURLE_OK)
            rc = say_failed(&t, code, err);
    }
    end(&t);
    return rc;
}

/* ---- URLs ---- */

static const char no_memory[] =
    "out of memory"; /* says nothing of the URL: a notice must not be given up for it */

static const char *url_wrong(CURLU *u, const char *url, bool mail)
{
    char *scheme = NULL, *user = NULL;
    const char *why = NULL;
    CURLUcode code = curl_url_set(u, CURLUPART_URL, url, 0), has_user = CURLUE_NO_USER;
    if (code == CURLUE_OK)
        code = curl_url_get(u, CURLUPART_SCHEME, &scheme, 0);
    if (code == CURLUE_OK)
        has_user = curl_url_get(u, CURLUPART_USER, &user, 0);
    if (code == CURLUE_OUT_OF_MEMORY || has_user == CURLUE_OUT_OF_MEMORY)
        why = no_memory;
    else if (code != CURLUE_OK)
        why = "the url cannot be read";
    else if (mail && strcmp(scheme, "smtp") != 0 && strcmp(scheme, "smtps") != 0)
        why = "the url must be smtp:// or smtps:// with a host";
    else if (!mail && strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
        why = "the url must be http:// or https:// with a host";
    else if (has_user == CURLUE_OK)
        why = "the url must not hold a user or a password";
    curl_free(scheme);
    curl_free(user);
    return why;
}

enum hk_code hk_send_check_url(const char *url, bool mail, struct hk_err *err)
{
    CURLU *u = curl_url();
    if (!u)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    const char *why = url && url[0] ? url_wrong(u, url, mail) : "there is no url";
    curl_url_cleanup(u);
    return why ? hk_err_set(err, why == no_memory ? HK_NOMEM : HK_INVALID, "%s", why) : HK_OK;
}
