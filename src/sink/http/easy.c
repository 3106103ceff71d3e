/* SPDX-License-Identifier: Apache-2.0 */
/* One libcurl easy handle for each delivery in flight: its set-up, and libcurl's callbacks. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "sink/http/curl.h"
#include "sink/http/header.h"

/* ---- the address policy ---- */

static struct hk_curl_sink *sink_of(const struct hk_curl_transfer *c)
{
    return (struct hk_curl_sink *)c->t.self;
}

static void block(struct hk_http_transfer *t, const struct hk_ip *ip)
{
    t->blocked = true;
    t->blocked_ms = hk_loop_now_ms(t->self->loop);
    uint64_t until_ms = t->blocked_ms + HK_HTTP_BLOCKED_MS;
    hk_http_look_at(t, until_ms < t->deadline_ms ? until_ms : t->deadline_ms);
    if (ip)
        hk_http_say_blocked(t, ip);
    else
        hk_http_say(t, "blocked: not an internet address");
}

/* libcurl wants to repeat a request, as its connection died: the first copy may have arrived. Refused before anything else can
 * go wrong with a new connection, which would look as if nothing had been sent. */
static bool is_repeat(struct hk_curl_transfer *c)
{
    if (c->t.requests == 0)
        return false;
    c->t.requests++;
    return true;
}

/* Each name that is being resolved is a thread of libcurl's, and a dead name server holds it for half a minute: the
 * others wait, and find the answer in the cache. */
static int on_resolve(void *state, void *reserved, void *arg)
{
    (void)state, (void)reserved;
    struct hk_curl_transfer *c = arg;
    struct hk_curl_sink *self = sink_of(c);
    if (is_repeat(c))
        return 1;
    if (self->n_resolving >= HK_HTTP_RESOLVING_MAX && !c->resolving) {
        c->again = true;
        return 1;
    }
    if (!c->resolving)
        self->n_resolving++;
    c->resolving = true;
    if (!c->t.connect_ms)
        c->t.connect_ms = hk_loop_now_ms(self->base.loop);
    return 0;
}

static curl_socket_t open_allowed(struct hk_curl_transfer *c, const struct curl_sockaddr *address)
{
    c->t.tried = true;
    return hk_http_loop_open(&sink_of(c)->http, address);
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct hk_curl_transfer *c = arg;
    struct hk_address at;
    hk_curl_resolved(c);
    if (is_repeat(c))
        return CURL_SOCKET_BAD;
    if (!c->t.connect_ms)
        c->t.connect_ms = hk_loop_now_ms(c->t.self->loop);
    bool inet = hk_address_of(&address->addr, address->addrlen, &at);
    if (c->t.self->socket && address->family == AF_UNIX) /* named by the relay's own file */
        return open_allowed(c, address);
    if (!inet || (!c->proxied && !hk_http_allowed(c->t.self, &at.ip))) { /* a proxy's is not the target's */
        block(&c->t, inet ? &at.ip : NULL);
        return CURL_SOCKET_BAD;
    }
    return open_allowed(c, address);
}

/* Bounded, in case that every connection is. */
static bool is_spoiled(struct hk_curl_transfer *c, int local_port)
{
    struct hk_http_loop *http = &sink_of(c)->http;
    if (hk_http_loop_idle(http, local_port) && hk_curl_tls_left(c->easy))
        hk_http_loop_taint(http, local_port);
    if (hk_http_loop_use(http, local_port) || c->spoiled > c->t.self->max_connections)
        return false;
    c->spoiled++;
    return true;
}

/* The connection stands, new or used before; the request goes out now. */
static int before_request(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    (void)local_ip;
    struct hk_curl_transfer *c = arg;
    struct hk_http_transfer *t = &c->t;
    struct hk_ip ip;
    hk_curl_resolved(c);
    bool inet = hk_ip_parse(hk_str_of(remote_ip), &ip);
    if (!t->self->socket && (!inet || (!c->proxied && !hk_http_allowed(t->self, &ip)))) {
        t->tried = false;
        block(t, inet ? &ip : NULL);
        return CURL_PREREQFUNC_ABORT;
    }
    if (is_spoiled(c, local_port)) {
        c->again = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (is_repeat(c))
        return CURL_PREREQFUNC_ABORT;
    t->requests = 1;
    c->local_port = local_port;
    if (t->self->socket)
        (void)snprintf(t->address, sizeof t->address, "unix socket");
    else
        hk_http_note_address(t, &ip, remote_port);
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

/* Chunks: what frames them is seen by nobody but the kernel. */
static void bound_framing(const struct hk_curl_transfer *c, struct hk_str line)
{
    if (hk_str_eqi(hk_str_cut(&line, ':'), hk_str_of("transfer-encoding")))
        hk_http_loop_bound(&sink_of(c)->http, c->local_port, 4 * c->t.response.read_max);
}

static void note_field(struct hk_curl_transfer *c, struct hk_str line)
{
    struct hk_str value = line;
    struct hk_str name = hk_str_cut(&value, ':');
    if (!value.ptr || !hk_header_name_ok(name)) /* also the rest of a value, on a line of its own */
        c->framing.odd = true;
    else
        (void)hk_h1_framing_field(&c->framing, name, hk_str_trim(value));
}

/* libcurl uses a connection again after a 204 that announces a body, and the like: it must not. */
static void watch_framing(struct hk_curl_transfer *c, struct hk_str line)
{
    while (line.len && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;
    if (c->t.response.final) /* trailers */
        return;
    if (hk_str_starts(line, hk_str_of("HTTP/"))) {
        c->h1 = hk_str_starts(line, hk_str_of("HTTP/1."));
        hk_h1_framing_begin(&c->framing, hk_str_starts(line, hk_str_of("HTTP/1.0")));
    } else if (line.len) {
        note_field(c, line);
    } else {
        (void)hk_h1_framing_end(&c->framing, c->t.response.status);
        if (c->h1 && !hk_h1_framing_keeps(&c->framing))
            hk_http_loop_taint(&sink_of(c)->http, c->local_port);
    }
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct hk_http_transfer *t = &((struct hk_curl_transfer *)arg)->t;
    bound_framing(arg, (struct hk_str){bytes, size * n});
    watch_framing(arg, (struct hk_str){bytes, size * n});
    if (!t->response.any)
        t->window_ms = hk_loop_now_ms(t->self->loop);
    return taken(t, hk_response_line(&t->response, (struct hk_str){bytes, size * n}), size * n);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct hk_http_transfer *t = &((struct hk_curl_transfer *)arg)->t;
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
    if (self->cert_file) /* a session that is taken up again has the old certificate's rights */
        curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    if (self->pins)
        ok = ok && curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, self->pins) == CURLE_OK;
    if (self->socket)
        ok = ok && curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, self->socket) == CURLE_OK;
    return ok;
}

static bool set_strings(CURL *easy, const struct hk_http_sink *self)
{
    return (!self->url || self->varies || curl_easy_setopt(easy, CURLOPT_URL, self->url) == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           hk_through_set(easy, self->proxy, false) && curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           (!strcmp(self->method, "POST") ||
            curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, self->method) == CURLE_OK) &&
           set_files(easy, self);
}

/* HTTP/2 by ALPN only: libcurl before 8 cannot use an h2c connection twice. */
static void set_version(CURL *easy, bool h2)
{
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     h2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT,
                     h2 ? 1L : 0L); /* else one connection for each parallel request */
}

/* Numbers and pointers: cannot fail with a libcurl that knows them, and hk_http_open has asked for its version. */
static void set_rules(CURL *easy, const struct hk_http_sink *self)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* else removing a handle waits for its resolver thread */
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, self->base.url_template ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    set_version(easy, self->tls && self->version != 1);
    curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN,
                     (long)(self->max_age_ms / 1000 ? self->max_age_ms / 1000 : 1));
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    /* each handle keeps both, and libcurl's defaults are 16 and 64 KiB */
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 4096L);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
    /* ours is the deadline; to libcurl this is what it shares out among a name's addresses */
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)self->connect_timeout_ms + 1000);
}

static void set_callbacks(CURL *easy, struct hk_curl_transfer *c)
{
    curl_easy_setopt(easy, CURLOPT_PRIVATE, c);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->curl_error);
    curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_resolve);
    curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, c);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, c);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, hk_http_loop_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA,
                     &sink_of(c)->http); /* a connection outlives its transfer */
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, c);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
}

bool hk_curl_easy_init(struct hk_curl_transfer *c)
{
    c->easy = curl_easy_init();
    if (!c->easy || !set_strings(c->easy, c->t.self))
        return false;
    set_rules(c->easy, c->t.self);
    set_callbacks(c->easy, c);
    return true;
}

/* libcurl wants terminated lines, and "Name;" for a field without a value. */
static char *line_for_curl(struct hk_request *request, size_t i)
{
    char *line = request->text.data + request->lines[i].at;
    size_t name_len = request->lines[i].name_len, value_len = request->lines[i].value_len;
    line[name_len] = value_len ? ':' : ';';
    line[value_len ? name_len + 2 + value_len : name_len + 1] = '\0';
    return line;
}

/* The message names the URL and perhaps the method. A handle carries one request after another: each sets all of it. */
static bool set_target(struct hk_curl_transfer *c)
{
    const char *method = hk_http_method(&c->t);
    bool body = hk_target_method_has_body(hk_str_of(method));
    curl_easy_setopt(c->easy, CURLOPT_NOBODY, 0L);
    curl_easy_setopt(c->easy, body ? CURLOPT_POST : CURLOPT_HTTPGET, 1L);
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(c->easy, CURLOPT_NOBODY, 1L);
    set_version(c->easy, hk_http_is_tls(&c->t) && c->t.self->version != 1);
    return curl_easy_setopt(c->easy, CURLOPT_URL, hk_http_url(&c->t)) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK;
}

/* The list for libcurl is made of our own lines: nothing is copied, nothing allocated. */
bool hk_curl_easy_load(struct hk_curl_transfer *c)
{
    static char no_expect[] = "Expect:"; /* else libcurl may wait a second for 100 Continue */
    struct hk_request *request = &c->t.request;
    struct hk_str payload = c->t.payload;
    c->lines[0] = (struct curl_slist){no_expect, NULL};
    for (size_t i = 0; i < request->n; i++) {
        c->lines[i].next = &c->lines[i + 1];
        c->lines[i + 1] = (struct curl_slist){line_for_curl(request, i), NULL};
    }
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->lines);
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)payload.len);
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, payload.len ? payload.ptr : "");
    if (c->t.self->proxy && !hk_through_set(c->easy, c->t.self->proxy, c->proxied))
        return false;
    return !c->t.self->varies || set_target(c);
}
