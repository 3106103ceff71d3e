/* SPDX-License-Identifier: Apache-2.0 */
/* One libcurl easy handle for each delivery in flight: how it is set up, and what libcurl asks us on the way. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/http_impl.h"

/* ---- the address policy ---- */

static bool allowed(const struct hk_http_sink *self, const struct hk_ip *ip)
{
    for (size_t i = 0; i < self->n_allow; i++) {
        if (hk_cidr_has(&self->allow[i], ip))
            return true;
    }
    return !hk_ip_special(ip);
}

static void block(struct hk_http_transfer *t, const struct hk_ip *ip)
{
    char text[HK_IP_TEXT_MAX], line[HK_HTTP_ERROR_MAX];
    t->blocked = true;
    t->blocked_ms = hk_loop_now_ms(t->self->loop);
    uint64_t left_ms = t->deadline_ms > t->blocked_ms ? t->deadline_ms - t->blocked_ms : 0;
    hk_timer_start(t->timer, left_ms < HK_HTTP_BLOCKED_MS ? left_ms : HK_HTTP_BLOCKED_MS);
    if (!ip) {
        hk_http_say(t, "blocked: not an internet address");
        return;
    }
    (void)hk_ip_format(ip, text);
    (void)snprintf(line, sizeof line, "blocked: %s is a %s address; `allow` lists the exceptions", text,
                   hk_ip_special(ip));
    hk_http_say(t, line);
}

static bool ip_of(const struct curl_sockaddr *address, struct hk_ip *out)
{
    *out = (struct hk_ip){.v6 = address->family == AF_INET6};
    if (address->family == AF_INET && address->addrlen >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, &address->addr, sizeof in);
        memcpy(out->addr, &in.sin_addr, 4);
        return true;
    }
    if (address->family == AF_INET6 && address->addrlen >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in6;
        memcpy(&in6, (const void *)&address->addr, sizeof in6);
        memcpy(out->addr, &in6.sin6_addr, 16);
        return true;
    }
    return false;
}

/* Each name that is being resolved is a thread of libcurl's, and a dead name server holds it for half a minute: the
 * others wait, and find the answer in the cache. */
static int on_resolve(void *state, void *reserved, void *arg)
{
    (void)state, (void)reserved;
    struct hk_http_transfer *t = arg;
    struct hk_http_sink *self = t->self;
    if (self->n_resolving >= HK_HTTP_RESOLVING_MAX && !t->resolving) {
        t->again = true;
        return 1;
    }
    if (!t->resolving)
        self->n_resolving++;
    t->resolving = true;
    if (!t->connect_ms)
        t->connect_ms = hk_loop_now_ms(self->loop);
    return 0;
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct hk_http_transfer *t = arg;
    struct hk_ip ip;
    hk_http_resolved(t);
    if (!t->connect_ms)
        t->connect_ms = hk_loop_now_ms(t->self->loop);
    bool inet = ip_of(address, &ip);
    if (!inet || !allowed(t->self, &ip)) {
        block(t, inet ? &ip : NULL);
        return CURL_SOCKET_BAD;
    }
    t->tried = true;
    return hk_http_loop_open(&t->self->http, address);
}

static void note_address(struct hk_http_transfer *t, const struct hk_ip *ip, int port)
{
    char text[HK_IP_TEXT_MAX];
    (void)hk_ip_format(ip, text);
    (void)snprintf(t->address, sizeof t->address, ip->v6 ? "[%s]:%d" : "%s:%d", text, port);
}

/* Bounded, in case that every connection is. */
static bool is_spoiled(struct hk_http_transfer *t, int local_port)
{
    if (hk_http_loop_use(&t->self->http, local_port) || t->spoiled > t->self->max_connections)
        return false;
    t->spoiled++;
    return true;
}

/* The connection stands, new or used before; the request goes out now. */
static int before_request(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    (void)local_ip;
    struct hk_http_transfer *t = arg;
    struct hk_ip ip;
    hk_http_resolved(t);
    bool inet = hk_ip_parse(hk_str_of(remote_ip), &ip);
    if (!inet || !allowed(t->self, &ip)) {
        t->tried = false;
        block(t, inet ? &ip : NULL);
        return CURL_PREREQFUNC_ABORT;
    }
    if (is_spoiled(t, local_port)) {
        t->again = true;
        return CURL_PREREQFUNC_ABORT;
    }
    note_address(t, &ip, remote_port);
    t->requests++;
    t->request_ms = t->window_ms = hk_loop_now_ms(t->self->loop);
    return CURL_PREREQFUNC_OK;
}

/* ---- the answer ---- */

static size_t taken(struct hk_http_transfer *t, enum hk_response_next next, size_t n)
{
    if (next == HK_RESPONSE_MORE)
        return n;
    t->stop = next;
    return 0; /* ends the transfer */
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct hk_http_transfer *t = arg;
    if (!t->response.any)
        t->window_ms = hk_loop_now_ms(t->self->loop);
    return taken(t, hk_response_line(&t->response, (struct hk_str){bytes, size * n}), size * n);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct hk_http_transfer *t = arg;
    return taken(t, hk_response_body(&t->response, (struct hk_str){bytes, size * n}), size * n);
}

/* ---- the handle ---- */

static bool set_files(CURL *easy, const struct hk_http_sink *self)
{
    bool ok = true;
    if (self->ca_file) /* this one alone: not the system's directory beside it */
        ok = curl_easy_setopt(easy, CURLOPT_CAINFO, self->ca_file) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
    if (self->cert_file)
        ok = ok && curl_easy_setopt(easy, CURLOPT_SSLCERT, self->cert_file) == CURLE_OK;
    if (self->key_file)
        ok = ok && curl_easy_setopt(easy, CURLOPT_SSLKEY, self->key_file) == CURLE_OK;
    return ok;
}

static bool set_strings(CURL *easy, const struct hk_http_sink *self)
{
    return curl_easy_setopt(easy, CURLOPT_URL, self->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK && /* whatever the environment says */
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           (!strcmp(self->method, "POST") ||
            curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, self->method) == CURLE_OK) &&
           set_files(easy, self);
}

/* Numbers and pointers: cannot fail with a libcurl that knows them, and hk_http_open has asked for its version. */
static void set_rules(CURL *easy, const struct hk_http_sink *self)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* else removing a handle waits for its resolver thread */
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    /* HTTP/2 by ALPN only: libcurl before 8 cannot use an h2c connection twice */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     self->tls ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT,
                     self->tls ? 1L : 0L); /* else one connection for each parallel request */
    curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN,
                     (long)(self->max_age_ms / 1000 ? self->max_age_ms / 1000 : 1));
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    /* ours is the deadline; to libcurl this is what it shares out among a name's addresses */
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)self->connect_timeout_ms + 1000);
}

static void set_callbacks(CURL *easy, struct hk_http_transfer *t)
{
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->curl_error);
    curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_resolve);
    curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, t);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, hk_http_loop_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, &t->self->http); /* a connection outlives its transfer */
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
}

struct hk_http_transfer *hk_http_transfer_new(struct hk_http_sink *self)
{
    struct hk_http_transfer *t = hk_mem_zalloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->self = self;
    hk_request_init(&t->request);
    hk_response_init(&t->response);
    t->easy = curl_easy_init();
    if (!t->easy || !set_strings(t->easy, self) ||
        hk_timer_new(self->loop, hk_http_on_deadline, t, &t->timer) != HK_OK) {
        hk_http_transfer_free(t);
        return NULL;
    }
    set_rules(t->easy, self);
    set_callbacks(t->easy, t);
    return t;
}

void hk_http_transfer_free(struct hk_http_transfer *t)
{
    if (!t)
        return;
    curl_easy_cleanup(t->easy);
    hk_timer_free(t->timer);
    hk_request_fini(&t->request);
    hk_response_fini(&t->response);
    hk_mem_free(t);
}

/* The list for libcurl is made of our own lines: nothing is copied, nothing allocated. */
void hk_http_transfer_load(struct hk_http_transfer *t, const struct hk_message *msg)
{
    static char no_expect[] = "Expect:"; /* else libcurl may wait a second for 100 Continue */
    t->lines[0] = (struct curl_slist){no_expect, NULL};
    for (size_t i = 0; i < t->request.n; i++) {
        t->lines[i].next = &t->lines[i + 1];
        t->lines[i + 1] = (struct curl_slist){t->request.text.data + t->request.lines[i].at, NULL};
    }
    t->payload_bytes = msg->payload.len;
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->lines);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)msg->payload.len);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, msg->payload.len ? msg->payload.ptr : "");
}
