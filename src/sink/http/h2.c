/* SPDX-License-Identifier: Apache-2.0 */
/* Our own HTTP/2: h2c by prior knowledge for http://, h2 by ALPN for https://. Which delivery goes over which connection, and
 * what becomes of it.
 *
 *   waiting (for a connection with room) -> live (on a stream) -> over
 *
 * A connection takes as many requests at once as the server allows; one more is opened when all are full, one at a time. The rules
 * are those of HTTP/1.1 (h1.c): a status decides, an early 2xx counts when the request is out, and a request that may have been
 * processed is never repeated here. HTTP/2 lets a server say that a request was *not* processed (a stream above the last one
 * of a GOAWAY, REFUSED_STREAM): such a request waits for another stream, a few times, and no attempt is charged. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/http/h2.h"

static struct hk_h2_transfer *h2_of(struct hk_http_transfer *t)
{
    return (struct hk_h2_transfer *)t;
}

/* ---- on a connection ---- */

static void unmade(struct hk_h2_transfer *h)
{
    h->conn = NULL;
    h->stream = NULL;
    h->next = h->prev = NULL;
    h->id = 0;
    h->packed = 0;
    h->begin_at = h->end_at = UINT64_MAX;
    h->code = 0;
    h->answered = h->closed = h->reset = h->whole = false;
}

static void attach(struct hk_h2_transfer *h, struct hk_h2_conn *conn)
{
    h->conn = conn;
    h->prev = NULL;
    h->next = conn->owners;
    if (conn->owners)
        conn->owners->prev = h;
    conn->owners = h;
}

static bool is_out(const struct hk_h2_transfer *h)
{
    return h->end_at != UINT64_MAX && hk_stream_sent(h->conn->stream) >= h->end_at;
}

static void detach(struct hk_h2_transfer *h)
{
    struct hk_h2_conn *conn = h->conn;
    h->whole = is_out(h);
    if (h->prev)
        h->prev->next = h->next;
    else
        conn->owners = h->next;
    if (h->next)
        h->next->prev = h->prev;
    if (conn->begun == h)
        conn->begun = NULL;
    if (conn->ended == h)
        conn->ended = NULL;
    conn->idle_ms = hk_loop_round_ms(h->t.self->loop);
    h->conn = NULL;
    h->next = h->prev = NULL;
}

/* HTTP/2 lets it be known that the request was not processed: as if it had not been sent. */
static void wait_again(struct hk_h2_transfer *h)
{
    struct hk_http_transfer *t = &h->t;
    unsigned repeats = h->repeats + 1;
    hk_h2_session_cancel(h);
    detach(h);
    unmade(h);
    h->repeats = repeats;
    t->requests = 0;
    t->address[0] = '\0';
    hk_http_move(t, &t->self->waiting);
}

/* ---- what became of it ---- */

static void refused(struct hk_h2_transfer *h)
{
    h->end_at = UINT64_MAX; /* certainly not delivered */
    if (h->repeats < HK_H2_REPEATS_MAX)
        wait_again(h);
    else
        hk_http_fail(&h->t, HK_FAULT_RESET,
                     "the server refused the request again and again without processing it");
}

static void closed_without_status(struct hk_h2_transfer *h)
{
    char text[HK_HTTP_ERROR_MAX];
    if (hk_h2_code_is_refusal(h->code) && !h->t.response.any) {
        refused(h);
        return;
    }
    if (h->reset)
        (void)snprintf(text, sizeof text, "the server reset the stream without a status: %s",
                       hk_h2_code_name(h->code));
    else
        (void)snprintf(text, sizeof text, "the answer is not valid HTTP/2: %s", hk_h2_code_name(h->code));
    hk_http_fail(&h->t, h->reset ? HK_FAULT_RESET : HK_FAULT_PROTOCOL, text);
}

/* A success came before the whole request was out: does the rest go out yet? */
static void early(struct hk_h2_transfer *h)
{
    if (h->closed && h->code)
        hk_http_fail(&h->t, HK_FAULT_RESET, hk_h2_code_name(h->code));
}

static void judge(struct hk_h2_transfer *h)
{
    struct hk_http_transfer *t = &h->t;
    const char *stopped = t->response.final ? NULL : hk_http_stop_text(t->stop);
    if (stopped) {
        hk_http_fail(t, HK_FAULT_PROTOCOL, stopped);
        return;
    }
    if (!h->closed && !h->answered)
        return;
    if (h->closed && !t->response.final) {
        closed_without_status(h);
        return;
    }
    if (h->reset && h->code == 0) /* it has all that it wants (RFC 9113, 8.1) */
        t->excused = true;
    if (hk_http_early(t))
        early(h);
    else
        hk_http_end(t);
}

void hk_h2_judge(struct hk_h2_conn *conn)
{
    if (!conn->news)
        return;
    conn->news = false;
    for (struct hk_h2_transfer *h = conn->owners, *next; h; h = next) {
        next = h->next;
        judge(h);
        if (h->conn == conn && (h->answered || h->closed)) /* waits until it is out */
            conn->news = true;
    }
}

/* Nothing of it was handed to the system, on a connection that had worked: as if it had not been tried. */
static bool is_stale(const struct hk_h2_transfer *h)
{
    bool untouched = h->begin_at == UINT64_MAX || hk_stream_sent(h->conn->stream) <= h->begin_at;
    return untouched && h->conn->used && h->repeats < HK_H2_REPEATS_MAX;
}

static bool stands(const struct hk_h2_conn *conn)
{
    return conn->phase == HK_H2_READY || conn->phase == HK_H2_DRAINING;
}

static bool any_stands(const struct hk_h2_sink *self)
{
    for (const struct hk_h2_conn *conn = self->conns; conn; conn = conn->next) {
        if (stands(conn))
            return true;
    }
    return false;
}

/* It never stood: those that wait have no other way, unless one stands. */
static void not_connected(struct hk_h2_sink *self, enum hk_fault fault, const char *text)
{
    if (any_stands(self))
        self->again_ms = hk_loop_round_ms(self->base.loop) + HK_H2_AGAIN_MS;
    while (!any_stands(self) && self->base.waiting.first)
        hk_http_fail(self->base.waiting.first, fault, text);
}

void hk_h2_lost(struct hk_h2_conn *conn, enum hk_fault fault, const char *given)
{
    char text[HK_HTTP_ERROR_MAX];
    bool stood = stands(conn);
    (void)snprintf(text, sizeof text, "%s%s", !stood && fault == HK_FAULT_TIMEOUT ? "while connecting: " : "",
                   given);
    conn->phase = HK_H2_DEAD;
    conn->news = false;
    while (conn->owners) {
        struct hk_h2_transfer *h = conn->owners;
        if (!h->t.response.any && is_stale(h))
            wait_again(h);
        else
            hk_http_fail(&h->t, fault, text);
    }
    if (!stood)
        not_connected(conn->sink, fault, text);
    hk_timer_start(conn->sink->base.soon, 0); /* it is freed there, if not sooner */
}

/* ---- whose turn it is ---- */

static struct hk_h2_conn *with_room(const struct hk_h2_sink *self)
{
    for (struct hk_h2_conn *conn = self->conns; conn; conn = conn->next) {
        if (hk_h2_conn_takes(conn))
            return conn;
    }
    return NULL;
}

/* One is being made, or one carries nothing and still takes nothing: its server wants no requests now. */
static bool must_wait(const struct hk_h2_sink *self)
{
    for (const struct hk_h2_conn *conn = self->conns; conn; conn = conn->next) {
        if (conn->phase == HK_H2_CONNECTING || (conn->phase == HK_H2_READY && !conn->n_streams))
            return true;
    }
    return false;
}

static void connect_one(struct hk_h2_sink *self)
{
    struct hk_err err = {.code = HK_OK};
    if (must_wait(self) || self->n_conns >= self->base.max_connections)
        return;
    if (hk_loop_round_ms(self->base.loop) < self->again_ms) {
        hk_http_look_at(self->base.waiting.first, self->again_ms);
        return;
    }
    if (hk_h2_conn_new(self, &err) != HK_OK)
        not_connected(self, HK_FAULT_LOCAL, err.message);
}

static void carry(struct hk_h2_transfer *h, struct hk_h2_conn *conn)
{
    struct hk_http_transfer *t = &h->t;
    enum hk_code rc = hk_h2_session_request(conn, h);
    if (rc == HK_NOMEM) {
        hk_http_fail(t, HK_FAULT_LOCAL, "out of memory for a request");
        return;
    }
    if (rc != HK_OK) { /* it takes no more, ever */
        hk_h2_conn_drain(conn);
        return;
    }
    attach(h, conn);
    conn->took = true;
    t->requests = 1;
    t->request_ms = t->window_ms = hk_loop_round_ms(t->self->loop);
    (void)snprintf(t->address, sizeof t->address, "%s", hk_stream_address(conn->stream));
    hk_http_move(t, &t->self->live);
}

static void next(struct hk_http_sink *base)
{
    struct hk_h2_sink *self = (struct hk_h2_sink *)base;
    struct hk_h2_conn *conn = NULL;
    while (base->waiting.first && (conn = with_room(self)) != NULL)
        carry(h2_of(base->waiting.first), conn);
    if (base->waiting.first)
        connect_one(self);
}

static void begin(struct hk_http_transfer *t)
{
    struct hk_h2_transfer *h = h2_of(t);
    unmade(h);
    h->repeats = 0;
    hk_http_move(t, &t->self->waiting);
    next(t->self);
    if (!t->self->depth && !hk_timer_running(t->self->soon)) /* its caller may not flush */
        hk_timer_start(t->self->soon, 0);
}

static void flush(struct hk_http_sink *base)
{
    struct hk_h2_sink *self = (struct hk_h2_sink *)base;
    for (struct hk_h2_conn *conn = self->conns, *after; conn; conn = after) {
        after = conn->next;
        hk_h2_conn_flush(conn);
    }
}

/* ---- the rest of the wire ---- */

static uint64_t sent(const struct hk_http_transfer *t, bool *out_whole)
{
    const struct hk_h2_transfer *h = (const struct hk_h2_transfer *)t;
    *out_whole = h->conn ? is_out(h) : h->whole;
    return h->packed;
}

/* Nothing came for as long as it waited: others are not to wait there as well. */
static void suspect(struct hk_h2_transfer *h)
{
    if (h->t.fault == HK_FAULT_TIMEOUT && h->conn->came_ms < h->t.request_ms)
        hk_h2_conn_drain(h->conn);
}

static void leave(struct hk_http_transfer *t)
{
    struct hk_h2_transfer *h = h2_of(t);
    if (!h->conn)
        return;
    suspect(h);
    hk_h2_session_cancel(h);
    detach(h);
}

static struct hk_http_transfer *make(struct hk_http_sink *self)
{
    struct hk_h2_transfer *h = hk_mem_zalloc(1, sizeof *h);
    if (!h)
        return NULL;
    hk_http_transfer_init(&h->t, self);
    unmade(h);
    return &h->t;
}

static void unmake(struct hk_http_transfer *t)
{
    hk_http_transfer_fini(t);
    hk_mem_free(t);
}

static void destroy(struct hk_http_sink *base)
{
    struct hk_h2_sink *self = (struct hk_h2_sink *)base;
    while (self->conns)
        hk_h2_conn_free(self->conns);
    hk_http_fini(base);
    hk_stream_tls_free(self->tls_files);
    hk_mem_free(self->host);
    hk_mem_free(self->authority);
    if (self->path)
        hk_mem_wipe(self->path, strlen(self->path)); /* some carry a token in it */
    hk_mem_free(self->path);
    hk_mem_free(self);
}

static const struct hk_http_wire wire = {
    .make = make,
    .unmake = unmake,
    .begin = begin,
    .leave = leave,
    .next = next,
    .sent = sent,
    .flush = flush,
    .destroy = destroy,
};

struct hk_http_sink *hk_h2_new(void)
{
    struct hk_h2_sink *self = hk_mem_zalloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base.wire = &wire;
    return &self->base;
}

static enum hk_code read_tls(const struct hk_http_sink *base, struct hk_stream_tls **out, struct hk_err *err)
{
    const struct hk_stream_tls_files files = {.ca_file = base->ca_file,
                                              .cert_file = base->cert_file,
                                              .key_file = base->key_file,
                                              .pins = base->pins,
                                              .alpn = "h2"};
    return hk_stream_tls_new(&files, out, err);
}

/* Files that cannot be read just now leave the older ones in use. No other connection is in the making, which could need them. */
void hk_h2_renew_tls(struct hk_h2_sink *self)
{
    struct hk_stream_tls *tls = NULL;
    bool own = self->tls_files && (self->base.ca_file || self->base.cert_file);
    if (!own || read_tls(&self->base, &tls, NULL) != HK_OK)
        return;
    hk_stream_tls_free(self->tls_files);
    self->tls_files = tls;
}

enum hk_code hk_h2_open(struct hk_http_sink *base, const struct hk_h2_target *target, struct hk_err *err)
{
    struct hk_h2_sink *self = (struct hk_h2_sink *)base;
    struct hk_str host = hk_str_of(target->host);
    if (host.len > 2 && host.ptr[0] == '[')
        host = (struct hk_str){host.ptr + 1, host.len - 2};
    self->port = target->port;
    self->host = hk_mem_zalloc(1, host.len + 1);
    self->authority = hk_mem_strdup(target->authority);
    self->path = hk_mem_strdup(target->path);
    if (!self->host || !self->authority || !self->path)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    memcpy(self->host, host.ptr, host.len);
    return base->tls ? read_tls(base, &self->tls_files, err) : HK_OK;
}
