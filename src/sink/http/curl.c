/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by libcurl: TLS, HTTP/2, and whatever our own HTTP/1.1 leaves alone. A transfer is with libcurl (live), or
 * waits until a name may be asked for again. All clocks are ours: libcurl's own deadlines would cost a third of its time.
 *
 * The address policy is applied where libcurl opens a socket, and again when a request goes out, for a connection that is
 * used again opens none. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/http/curl.h"

static struct hk_curl_transfer *curl_of(struct hk_http_transfer *t)
{
    return (struct hk_curl_transfer *)t;
}

static struct hk_curl_sink *sink_of(const struct hk_curl_transfer *c)
{
    return (struct hk_curl_sink *)c->t.self;
}

/* ---- what happened ---- */

static uint64_t sent(const struct hk_http_transfer *t, bool *out_whole)
{
    CURL *easy = ((const struct hk_curl_transfer *)t)->easy;
    curl_off_t body = 0;
    long head = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &body);
    (void)curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &head);
    uint64_t bytes = body > 0 ? (uint64_t)body : 0;
    *out_whole = t->requests > 1 || (bytes >= t->payload.len && head > 0);
    return bytes;
}

/* With TLS 1.3 a server says what it thinks of our certificate, or of there being none, after its own part of the
 * handshake: to libcurl that is a failure to read. OpenSSL's names of alerts are older than we are. */
static bool is_tls_refusal(const struct hk_curl_transfer *c, CURLcode code)
{
    static const char *const alerts[] = {"alert certificate",   "alert bad certificate",
                                         "alert unknown ca",    "alert unsupported certificate",
                                         "alert access denied", "alert handshake failure"};
    if (!hk_http_is_tls(&c->t) || c->t.response.any || (code != CURLE_RECV_ERROR && code != CURLE_SEND_ERROR))
        return false;
    for (size_t i = 0; i < sizeof alerts / sizeof alerts[0]; i++) {
        if (strstr(c->curl_error, alerts[i]))
            return true;
    }
    return false;
}

/* libcurl's codes are about its own state; what the other side did wrong while answering is not our failure. */
static enum hk_fault fault_of(const struct hk_http_transfer *t, CURLcode code)
{
    if (code == CURLE_OK || t->stop != HK_RESPONSE_MORE)
        return HK_FAULT_PROTOCOL;
    if (t->requests > 1)
        return HK_FAULT_RESET;
    bool answering = t->requests > 0;
    if (t->self->varies && !answering && (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL))
        return HK_FAULT_INVALID_PAYLOAD; /* the message's own URL */
    if (answering &&
        (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_OUT_OF_MEMORY || code == CURLE_WRITE_ERROR))
        return HK_FAULT_PROTOCOL; /* no HTTP at all, a line over libcurl's bound, a bad chunk */
    return hk_fault_from_curl((int)code);
}

static const char *text_of(const struct hk_curl_transfer *c, CURLcode code)
{
    const char *stopped = hk_http_stop_text(c->t.stop);
    if (stopped)
        return stopped;
    if (code == CURLE_OK)
        return c->t.response.final ? "the destination closes the connection, and libcurl stopped"
                                   : "the answer ended within its header lines";
    if (c->t.requests > 1)
        return "the connection was lost before an answer came";
    return c->curl_error[0] ? c->curl_error : curl_easy_strerror(code);
}

/* HTTP/2: the last status that came on the stream; NULL = none. */
static const char *stream_status(const struct hk_curl_transfer *c)
{
    struct curl_header *h = NULL;
    if (curl_easy_header(c->easy, ":status", 0, CURLH_PSEUDO, 0, &h) != CURLHE_OK)
        return NULL;
    size_t last = h->amount - 1; /* others were informational */
    return curl_easy_header(c->easy, ":status", last, CURLH_PSEUDO, 0, &h) == CURLHE_OK ? h->value : NULL;
}

/* HTTP/2: libcurl forgets a header block when its stream ends with the same bytes, and may then think that nothing came, and
 * want to repeat the request. Only the status is kept apart. It counts if the block was whole, so it is not believed where
 * the connection broke, which can be within one. What else the block said, as Retry-After, is lost. */
static void remember_status(struct hk_curl_transfer *c, CURLcode code)
{
    bool by_stream = code == CURLE_HTTP2_STREAM || code == CURLE_HTTP2 || code == CURLE_GOT_NOTHING;
    if (c->t.response.final || c->h1 || !(by_stream || c->t.requests > 1))
        return;
    const char *status = stream_status(c);
    if (status)
        hk_response_final(&c->t.response, hk_str_of(status));
}

/* HTTP/2: the other side ended the stream without an error, though the request was not all out. That is how it says that it
 * has all that it wants (RFC 9113, 8.1). libcurl has a text only for streams that ended with one. */
static bool is_excused(const struct hk_curl_transfer *c, CURLcode code)
{
    if (c->h1 || !c->t.response.final)
        return false;
    return code == CURLE_OK || (code == CURLE_HTTP2_STREAM && !c->curl_error[0]);
}

static void judge(struct hk_curl_transfer *c, CURLcode code)
{
    struct hk_http_transfer *t = &c->t;
    remember_status(c, code);
    t->excused = is_excused(c, code);
    t->ended = code == CURLE_OK && t->stop == HK_RESPONSE_MORE;
    if (t->blocked && !t->tried) {
        t->fault = HK_FAULT_BLOCKED; /* its text is there already */
        return;
    }
    if (hk_through_judge(c, code))
        return;
    t->fault = is_tls_refusal(c, code) ? HK_FAULT_TLS : fault_of(t, code);
    hk_http_say(t, text_of(c, code));
}

/* ---- names ---- */

/* Names can be resolved (again): those that were given up do not count any more. */
void hk_curl_resolved(struct hk_curl_transfer *c)
{
    struct hk_curl_sink *self = sink_of(c);
    if (!c->resolving)
        return;
    c->resolving = false;
    self->n_resolving -= 1 + self->n_abandoned;
    self->n_abandoned = 0;
}

/* The thread goes on. */
static void abandon_name(struct hk_curl_transfer *c)
{
    if (!c->resolving)
        return;
    c->resolving = false;
    if (sink_of(c)->n_abandoned++ == 0)
        hk_timer_start(sink_of(c)->abandoned, HK_HTTP_ABANDONED_MS);
}

static void on_abandoned(void *arg)
{
    struct hk_curl_sink *self = arg;
    hk_http_enter(&self->base);
    self->n_resolving -= self->n_abandoned;
    self->n_abandoned = 0;
    hk_http_leave(&self->base);
}

/* ---- a transfer's way ---- */

static void leave_curl(struct hk_curl_transfer *c)
{
    if (c->with_curl)
        (void)curl_multi_remove_handle(sink_of(c)->http.multi, c->easy);
    c->with_curl = false;
}

static void leave(struct hk_http_transfer *t)
{
    abandon_name(curl_of(t));
    leave_curl(curl_of(t));
}

static void give_to_curl(struct hk_curl_transfer *c)
{
    c->with_curl = true;
    c->again = false;
    hk_http_move(&c->t, &c->t.self->live);
    if (curl_multi_add_handle(sink_of(c)->http.multi, c->easy) != CURLM_OK)
        hk_http_fail(&c->t, HK_FAULT_LOCAL, "libcurl did not take the request");
}

/* To libcurl, or first to those who look the target's name up. */
static void start(struct hk_curl_transfer *c)
{
    switch (hk_through_aim(c)) {
    case HK_THROUGH_READY:
        give_to_curl(c);
        break;
    case HK_THROUGH_WAITS:
        if (c->t.in != &c->t.self->waiting)
            hk_http_move(&c->t, &c->t.self->waiting);
        break;
    case HK_THROUGH_OVER:
        break;
    }
}

static void begin(struct hk_http_transfer *t)
{
    struct hk_curl_transfer *c = curl_of(t);
    c->spoiled = 0;
    c->local_port = 0;
    c->h1 = false;
    hk_h1_framing_reset(&c->framing);
    c->resolving = false;
    c->curl_error[0] = '\0';
    if (!hk_through_begin(c))
        return;
    if (hk_curl_easy_load(c))
        start(c);
    else
        hk_http_fail(t, HK_FAULT_LOCAL, "out of memory");
}

static void next(struct hk_http_sink *base)
{
    struct hk_curl_sink *self = (struct hk_curl_sink *)base;
    if (self->n_resolving >= HK_HTTP_RESOLVING_MAX)
        return;
    for (struct hk_http_transfer *t = base->waiting.first, *after; t; t = after) {
        after = t->next;
        start(curl_of(t));
    }
}

static void on_message(struct hk_curl_sink *self, const CURLMsg *message)
{
    struct hk_curl_transfer *c = NULL;
    CURLcode code = message->data.result; /* gone with the handle */
    (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&c);
    if (c->again) {
        leave_curl(c);
        hk_http_move(&c->t, &self->base.waiting);
        return;
    }
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        hk_curl_resolved(c); /* for worse: its thread has ended */
    judge(c, code);
    hk_http_end(&c->t);
}

/* A connection took in more than any answer may be long. */
static void end_endless(struct hk_curl_sink *self)
{
    int port = hk_http_loop_over(&self->http);
    struct hk_http_transfer *t = port ? self->base.live.first : NULL;
    while (t && curl_of(t)->local_port != port)
        t = t->next;
    if (t)
        hk_http_fail(t, HK_FAULT_PROTOCOL, hk_http_stop_text(HK_RESPONSE_TOO_BIG));
}

/* libcurl 7.88 then divides by zero when it comes back to the connection: so that one must end. Which one it does not say. */
static void end_spent(struct hk_curl_sink *self)
{
    while (self->http.spent && self->base.live.first)
        hk_http_fail(self->base.live.first, HK_FAULT_LOCAL, "out of memory in libcurl");
    self->http.spent = false;
}

/* libcurl worked. */
void hk_curl_on_ran(void *arg)
{
    struct hk_curl_sink *self = arg;
    int left = 0;
    hk_http_enter(&self->base);
    for (CURLMsg *m = curl_multi_info_read(self->http.multi, &left); m;
         m = curl_multi_info_read(self->http.multi, &left)) {
        if (m->msg == CURLMSG_DONE)
            on_message(self, m);
    }
    end_spent(self);
    end_endless(self);
    hk_http_leave(&self->base);
}

/* ---- making and ending ---- */

static void unmake(struct hk_http_transfer *t)
{
    struct hk_curl_transfer *c = curl_of(t);
    curl_easy_cleanup(c->easy);
    hk_http_transfer_fini(t);
    hk_mem_free(c);
}

static struct hk_http_transfer *make(struct hk_http_sink *self)
{
    struct hk_curl_transfer *c = hk_mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    hk_http_transfer_init(&c->t, self);
    if (hk_curl_easy_init(c))
        return &c->t;
    unmake(&c->t);
    return NULL;
}

static void destroy(struct hk_http_sink *base)
{
    struct hk_curl_sink *self = (struct hk_curl_sink *)base;
    hk_through_fini(self);
    hk_http_fini(base); /* the easy handles, hence before the multi handle */
    hk_http_loop_fini(&self->http);
    hk_timer_free(self->abandoned);
    hk_mem_free(self);
    curl_global_cleanup();
}

static const struct hk_http_wire wire = {
    .make = make,
    .unmake = unmake,
    .begin = begin,
    .leave = leave,
    .next = next,
    .sent = sent,
    .destroy = destroy,
};

struct hk_http_sink *hk_http_curl_new(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return NULL;
    struct hk_curl_sink *self = hk_mem_zalloc(1, sizeof *self);
    if (!self) {
        curl_global_cleanup();
        return NULL;
    }
    self->base.wire = &wire;
    return &self->base;
}

enum hk_code hk_http_curl_open(struct hk_http_sink *base, struct hk_err *err)
{
    struct hk_curl_sink *self = (struct hk_curl_sink *)base;
    if (hk_timer_new(base->loop, on_abandoned, self, &self->abandoned) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = hk_http_loop_init(&self->http, base->loop, hk_curl_on_ran, self, err);
    if (rc != HK_OK)
        return rc;
    curl_multi_setopt(self->http.multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(self->http.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)base->max_connections);
    curl_multi_setopt(self->http.multi, CURLMOPT_MAXCONNECTS, (long)base->max_connections);
    return HK_OK;
}
