/* SPDX-License-Identifier: Apache-2.0 */
/* Our own HTTP/1.1, for plain http://: which delivery goes over which connection, and what becomes of it.
 *
 *   waiting (for a connection, or for the name) -> live: connecting -> sending and reading
 *
 * A connection carries one request at a time, and is used again when its answer leaves no doubt. An answer may come while
 * the request is still going out, which is legal. A success does not end the request then: who says 200 after the head may
 * be reading on, and has got only what it was sent. Any other status does end it, and the connection with it. A request that was
 * handed to the system, in part or whole, is never repeated here: whether to is the policy's decision, and the bound on
 * repeats counts on it. Only when nothing was taken, since the other side had closed an idle connection, is another one
 * tried. Every address is checked where it is connected to; there is no other way to a socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/url.h"
#include "sink/http/h1.h"

static struct hk_h1_transfer *h1_of(struct hk_http_transfer *t)
{
    return (struct hk_h1_transfer *)t;
}

static struct hk_h1_sink *sink_of(const struct hk_h1_transfer *h)
{
    return (struct hk_h1_sink *)h->t.self;
}

/* ---- connecting ---- */

static bool has_try(const struct hk_h1_transfer *h)
{
    bool any = false;
    for (size_t i = 0; i < HK_H1_TRIES_MAX; i++)
        any |= h->tries[i] != NULL;
    return any;
}

static struct hk_h1_conn **free_try(struct hk_h1_transfer *h)
{
    for (size_t i = 0; i < HK_H1_TRIES_MAX; i++) {
        if (!h->tries[i])
            return &h->tries[i];
    }
    return NULL;
}

static void drop_tries(struct hk_h1_transfer *h)
{
    for (size_t i = 0; i < HK_H1_TRIES_MAX; i++) {
        hk_h1_conn_free(h->tries[i]);
        h->tries[i] = NULL;
    }
}

/* True: one more address is being tried, or the transfer is over. */
static bool try_next(struct hk_h1_transfer *h)
{
    struct hk_h1_sink *self = sink_of(h);
    struct hk_h1_conn **room = free_try(h);
    while (room && h->next_address < self->n_addresses) {
        const struct hk_address *address = &self->addresses[h->next_address++];
        if (!hk_http_allowed(&self->base, &address->ip)) {
            h->t.blocked = true;
            hk_http_say_blocked(&h->t, &address->ip);
            continue;
        }
        h->t.tried = true;
        enum hk_code rc = hk_h1_conn_new(h, address, room, &h->error);
        if (rc == HK_NOMEM) {
            hk_http_fail(&h->t, HK_FAULT_LOCAL, "out of memory for a connection");
            return true;
        }
        if (rc != HK_OK)
            continue;
        h->try_ms = hk_loop_round_ms(self->base.loop);
        uint64_t look_ms = h->try_ms + HK_H1_NEXT_TRY_MS;
        if (h->next_address < self->n_addresses && look_ms < h->t.look_ms)
            hk_http_look_at(&h->t, look_ms);
        return true;
    }
    return false;
}

static bool is_ours(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* No address is left. */
static void give_up_connecting(struct hk_h1_transfer *h)
{
    char text[HK_HTTP_ERROR_MAX];
    if (!h->t.tried) {
        h->t.fault = HK_FAULT_BLOCKED; /* its text is there already */
        hk_http_end(&h->t);
        return;
    }
    (void)snprintf(text, sizeof text, "cannot connect: %s", strerror(h->error));
    hk_http_fail(&h->t, is_ours(h->error) ? HK_FAULT_LOCAL : HK_FAULT_CONNECT, text);
}

static void connect_on(struct hk_h1_transfer *h)
{
    if (!try_next(h) && !has_try(h))
        give_up_connecting(h);
}

/* The clock: an address that does not answer gets company. */
static uint64_t look(struct hk_http_transfer *t, uint64_t now_ms)
{
    struct hk_h1_transfer *h = h1_of(t);
    struct hk_h1_sink *self = sink_of(h);
    if (!has_try(h) || h->next_address >= self->n_addresses)
        return UINT64_MAX;
    if (now_ms < h->try_ms + HK_H1_NEXT_TRY_MS)
        return h->try_ms + HK_H1_NEXT_TRY_MS;
    if (self->n_conns >= self->base.max_connections || !free_try(h) || !try_next(h))
        return UINT64_MAX;
    return h->try_ms + HK_H1_NEXT_TRY_MS;
}

/* ---- the request ---- */

static void carry(struct hk_h1_transfer *h, struct hk_h1_conn *conn)
{
    h->conn = conn;
    h->sent = 0;
    h->t.requests = 1;
    h->t.request_ms = h->t.window_ms = hk_loop_round_ms(h->t.self->loop);
    memcpy(h->t.address, conn->text, sizeof conn->text);
    hk_http_move(&h->t, &h->t.self->live);
    hk_h1_conn_own(conn, h);
    hk_h1_conn_send(conn);
}

void hk_h1_connected(struct hk_h1_conn *conn)
{
    struct hk_h1_transfer *h = conn->owner;
    for (size_t i = 0; i < HK_H1_TRIES_MAX; i++) {
        if (h->tries[i] == conn)
            h->tries[i] = NULL;
    }
    drop_tries(h); /* the slower ones */
    hk_http_note_address(&h->t, &conn->address.ip, sink_of(h)->port);
    memcpy(conn->text, h->t.address, sizeof conn->text);
    carry(h, conn);
}

void hk_h1_not_connected(struct hk_h1_conn *conn, int error)
{
    struct hk_h1_transfer *h = conn->owner;
    for (size_t i = 0; i < HK_H1_TRIES_MAX; i++) {
        if (h->tries[i] == conn)
            h->tries[i] = NULL;
    }
    hk_h1_conn_free(conn);
    h->error = error;
    connect_on(h);
}

void hk_h1_stale(struct hk_h1_conn *conn)
{
    struct hk_h1_transfer *h = conn->owner;
    hk_h1_conn_free(conn);
    h->conn = NULL;
    h->t.requests = 0;
    h->t.address[0] = '\0';
    hk_http_move(&h->t, &h->t.self->waiting);
}

/* ---- names ---- */

static void resolved(void *arg, const char *error, const struct hk_address *addresses, size_t n)
{
    struct hk_h1_sink *self = arg;
    hk_http_enter(&self->base);
    if (!error) {
        memcpy(self->addresses, addresses, n * sizeof addresses[0]);
        self->n_addresses = n;
        self->known_ms = hk_loop_round_ms(self->base.loop);
    }
    while (error && self->base.waiting.first) {
        char text[HK_HTTP_ERROR_MAX];
        (void)snprintf(text, sizeof text, "cannot resolve %s: %s", self->host, error);
        hk_http_fail(self->base.waiting.first, HK_FAULT_DNS, text);
    }
    hk_lookup_free(self->lookup);
    self->lookup = NULL;
    hk_http_leave(&self->base);
}

static bool knows_addresses(const struct hk_h1_sink *self)
{
    if (!self->host[0])
        return true;
    return self->n_addresses && hk_loop_round_ms(self->base.loop) < self->known_ms + HK_H1_FRESH_MS;
}

/* All who wait have their time to connect run from now on. */
static void resolve(struct hk_h1_sink *self)
{
    uint64_t now_ms = hk_loop_now_ms(self->base.loop);
    if (self->lookup)
        return;
    for (struct hk_http_transfer *t = self->base.waiting.first; t; t = t->next)
        t->connect_ms = now_ms;
    struct hk_err err = {.code = HK_OK};
    if (hk_lookup_new(self->base.loop, self->host, resolved, self, &self->lookup, &err) == HK_OK)
        return;
    while (self->base.waiting.first)
        hk_http_fail(self->base.waiting.first, HK_FAULT_LOCAL, err.message);
}

/* ---- whose turn it is ---- */

/* False: it has to wait. */
static bool give(struct hk_h1_sink *self, struct hk_h1_transfer *h)
{
    struct hk_h1_conn *conn = hk_h1_conn_take(self);
    if (conn) {
        carry(h, conn);
        return true;
    }
    if (self->n_conns >= self->base.max_connections)
        return false;
    if (!knows_addresses(self)) {
        resolve(self);
        return false;
    }
    if (!h->t.connect_ms)
        h->t.connect_ms = hk_loop_round_ms(self->base.loop);
    h->next_address = 0;
    hk_http_move(&h->t, &self->base.live);
    connect_on(h);
    return true;
}

static void next(struct hk_http_sink *base)
{
    while (base->waiting.first && give((struct hk_h1_sink *)base, h1_of(base->waiting.first)))
        ;
}

/* What follows the lines of the message; the payload is next. */
static enum hk_code end_head(struct hk_h1_transfer *h)
{
    char line[48];
    int len = snprintf(line, sizeof line, "Content-Length: %zu\r\n\r\n", h->t.payload.len);
    if (!hk_request_has(&h->t.request, hk_str_of("Accept")))
        hk_buf_adds(&h->t.request.text, "Accept: */*\r\n");
    return hk_buf_add(&h->t.request.text, line, (size_t)len);
}

static void begin(struct hk_http_transfer *t)
{
    struct hk_h1_transfer *h = h1_of(t);
    struct hk_h1_sink *self = sink_of(h);
    h->sent = 0;
    h->error = 0;
    h->answered = h->clean = false;
    hk_h1_answer_reset(&h->answer);
    hk_http_move(t, &self->base.waiting);
    enum hk_code rc = end_head(h);
    if (rc != HK_OK) {
        hk_http_fail(t, rc == HK_NOMEM ? HK_FAULT_LOCAL : HK_FAULT_INVALID_PAYLOAD,
                     rc == HK_NOMEM ? "out of memory" : "too many or too long header fields");
        return;
    }
    if (self->lookup)
        t->connect_ms = t->start_ms;
    next(&self->base);
}

/* ---- the answer ---- */

/* The connection may carry another request when nothing of this one is left, in either direction. */
static void finish(struct hk_h1_transfer *h)
{
    bool whole = false;
    (void)h->t.self->wire->sent(&h->t, &whole);
    if (whole && h->clean) {
        uint64_t said_ms =
            (uint64_t)h->answer.framing.idle_s * 1000 * 4 / 5; /* it may have counted before us */
        hk_h1_conn_rest(h->conn, said_ms && said_ms < HK_H1_IDLE_MS ? said_ms : HK_H1_IDLE_MS);
        h->conn = NULL;
    }
    hk_http_end(&h->t);
}

/* No more of the answer is wanted. */
static void answered(struct hk_h1_transfer *h, bool clean)
{
    h->clean = clean && hk_h1_framing_keeps(&h->answer.framing);
    if (!hk_http_early(&h->t))
        finish(h);
    else if (h->conn->broken)
        hk_http_fail(&h->t, HK_FAULT_RESET, strerror(h->conn->broken));
    else
        h->answered = true;
}

static void stopped(struct hk_h1_transfer *h, enum hk_h1_stop why)
{
    struct hk_http_transfer *t = &h->t;
    switch (why) {
    case HK_H1_ENOUGH:
        answered(h, false);
        break;
    case HK_H1_TOO_BIG:
        hk_http_fail(t, HK_FAULT_PROTOCOL, hk_http_stop_text(HK_RESPONSE_TOO_BIG));
        break;
    case HK_H1_SWITCH:
        hk_http_fail(t, HK_FAULT_PROTOCOL, hk_http_stop_text(HK_RESPONSE_BAD));
        break;
    case HK_H1_NOT_HTTP:
        hk_http_fail(t, HK_FAULT_PROTOCOL, "the answer is not HTTP/1.1");
        break;
    case HK_H1_NO_MEMORY:
        hk_http_fail(t, HK_FAULT_LOCAL, "out of memory for the answer");
        break;
    }
}

void hk_h1_came(struct hk_h1_conn *conn, struct hk_str bytes)
{
    struct hk_h1_transfer *h = conn->owner;
    size_t used = 0;
    enum hk_h1_stop why = HK_H1_ENOUGH;
    if (h->answered) {
        h->clean = false; /* nobody asked for more */
        return;
    }
    if (!h->t.response.any)
        h->t.window_ms = hk_loop_round_ms(h->t.self->loop);
    switch (hk_h1_feed(&h->answer, &h->t.response, bytes, &used, &why)) {
    case HK_H1_MORE:
        break;
    case HK_H1_DONE:
        h->t.ended = true;
        answered(h, used == bytes.len);
        break;
    case HK_H1_STOP:
        stopped(h, why);
        break;
    }
}

void hk_h1_all_out(struct hk_h1_conn *conn)
{
    if (conn->owner->answered)
        finish(conn->owner);
}

void hk_h1_lost(struct hk_h1_conn *conn, int error)
{
    struct hk_h1_transfer *h = conn->owner;
    if (!error && h->answer.state == HK_H1_UNTIL_CLOSED)
        h->t.ended = true;
    if (!error && !conn->broken && hk_http_early(&h->t)) { /* said all that it will, and may still read */
        h->answered = true;
        h->clean = false;
        conn->ended = true;
        hk_watch_set(conn->watch, HK_WATCH_WRITE);
        return;
    }
    if (conn->used && h->sent == 0 && !h->t.response.any)
        hk_h1_stale(conn);
    else if (error)
        hk_http_fail(&h->t, HK_FAULT_RESET, strerror(error));
    else if (hk_h1_cut_off(&h->answer))
        hk_http_fail(&h->t, HK_FAULT_PROTOCOL, "the answer ended within its header lines");
    else
        hk_http_fail(&h->t, HK_FAULT_RESET, "the connection was closed without an answer");
}

/* ---- the rest of the wire ---- */

static uint64_t sent(const struct hk_http_transfer *t, bool *out_whole)
{
    const struct hk_h1_transfer *h = (const struct hk_h1_transfer *)t;
    *out_whole = h->sent == t->request.text.len + t->payload.len;
    return h->sent;
}

static void leave(struct hk_http_transfer *t)
{
    struct hk_h1_transfer *h = h1_of(t);
    drop_tries(h);
    hk_h1_conn_free(h->conn);
    h->conn = NULL;
}

static struct hk_http_transfer *make(struct hk_http_sink *self)
{
    struct hk_h1_transfer *h = hk_mem_zalloc(1, sizeof *h);
    if (!h)
        return NULL;
    hk_http_transfer_init(&h->t, self);
    hk_h1_answer_init(&h->answer);
    return &h->t;
}

static void unmake(struct hk_http_transfer *t)
{
    hk_h1_answer_fini(&h1_of(t)->answer);
    hk_http_transfer_fini(t);
    hk_mem_free(t);
}

static void destroy(struct hk_http_sink *base)
{
    struct hk_h1_sink *self = (struct hk_h1_sink *)base;
    hk_lookup_free(self->lookup);
    while (self->idle)
        hk_h1_conn_free(self->idle);
    hk_http_fini(base);
    hk_mem_free(self->room);
    hk_mem_free(self);
}

static const struct hk_http_wire wire = {
    .make = make,
    .unmake = unmake,
    .begin = begin,
    .leave = leave,
    .next = next,
    .sent = sent,
    .look = look,
    .destroy = destroy,
};

struct hk_http_sink *hk_h1_new(void)
{
    struct hk_h1_sink *self = hk_mem_zalloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base.wire = &wire;
    return &self->base;
}

enum hk_code hk_h1_open(struct hk_http_sink *base, const char *host, uint16_t port, struct hk_err *err)
{
    struct hk_h1_sink *self = (struct hk_h1_sink *)base;
    struct hk_str name = hk_str_of(host);
    if (name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']')
        name = (struct hk_str){name.ptr + 1, name.len - 2};
    self->port = port;
    self->room = hk_mem_alloc(HK_H1_READ_BYTES);
    if (!self->room)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (hk_ip_parse(name, &self->addresses[0].ip)) {
        self->n_addresses = 1;
    } else if (hk_url_is_localhost(name)) {
        self->n_addresses = hk_loopbacks(self->addresses);
    } else if (!hk_str_copy(self->host, sizeof self->host, name) || name.ptr[0] == '[') {
        return hk_err_set(err, HK_INVALID, "the url's host cannot be used");
    }
    return HK_OK;
}
