/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd, driven by one thread of ours that waits for all listeners, for exchanges that are given back, and for the order to
 * stop. Not by the library's own threads: its time-out counts from the last byte, so that a client who sends one now and then holds a
 * connection for hours. Here every connection must have had an answer within PATIENCE_MS, or it is cut, and sooner when there are many.
 *
 * Only this thread calls the library. A connection whose exchange is out is suspended: the library does not look at it, and patience does
 * not count, since the client waits for us. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "admin/exchange.h"
#include "admin/listen.h"
#include "admin/server.h"
#include "admin/tls.h"
#include "admin/ui.h"
#include "base/mem.h"

enum {
    PATIENCE_MS = 30000, /* from connecting, or from the answer before, to the end of the next one */
    SWEEP_MS = 1000,
    CONNECTIONS = 64, /* of a listener for probes, for the library */
    CONNECTIONS_SERVICE = 256,
    HEADERS_MAX = 16384, /* of a connection, with what the library needs for itself */
    STREAM_BLOCK = 8192,
    DISCARD_MAX = 1024 * 1024 /* of a body that is refused when part of it is there */
};

struct client { /* one connection */
    struct client *next, **link;
    const struct listener *at;
    struct MHD_Connection *connection;
    int fd;
    int64_t since_ms;
    bool has_ip; /* else it came by a Unix socket */
    struct hk_ip ip;
    int64_t uid;                    /* by a Unix socket; else -1 */
    struct hk_tls_credentials *tls; /* of the session */
    bool cut;
    bool suspended;                   /* it waits for us */
    struct hk_admin_exchange *asked;  /* since its target was seen, until the library is done with it */
    struct hk_admin_exchange *stream; /* that it listens to; NULL: none */
    int64_t heard_ms;                 /* of the stream: when it was sent something */
};

struct listener {
    struct hk_admin_server *server;
    struct hk_admin_listener how;
    struct hk_admin_service service;
    struct MHD_Daemon *daemon;
    unsigned room;
};

struct hk_admin_server {
    struct hk_admin_site site;
    struct listener listeners[HK_ADMIN_LISTENERS];
    size_t n;
    struct hk_hub *hub;
    struct client *clients; /* the thread's */
    int64_t swept_ms;
    size_t
        n_open; /* the thread's: exchanges that were handed out, and whose connection is not done with them */
    pthread_t thread;
    int stop[2];        /* a pipe: its writing end is closed to end the thread */
    atomic_bool ending; /* the same, for when poll cannot say so */
};

/* ---- replies ---- */

static void add_headers(struct MHD_Response *response, const struct hk_admin_reply *reply, bool last)
{
    if (reply->content_type)
        (void)MHD_add_response_header(response, "Content-Type", reply->content_type);
    (void)MHD_add_response_header(response, "Cache-Control", reply->cache ? reply->cache : "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (last)
        (void)MHD_add_response_header(response, "Connection", "close");
    if (reply->allow)
        (void)MHD_add_response_header(response, "Allow", reply->allow);
    for (size_t i = 0; i < reply->n_headers; i++)
        (void)MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
}

static struct MHD_Response *response_of(struct hk_admin_reply *reply, bool last)
{
    size_t len = reply->body.len;
    char *body = hk_buf_detach(&reply->body);
    struct MHD_Response *response =
        body ? MHD_create_response_from_buffer_with_free_callback(len, body, hk_mem_free) : NULL;
    if (response)
        add_headers(response, reply, last);
    else
        hk_mem_free(body);
    return response;
}

/* MHD_NO closes the connection. */
static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    enum MHD_Result rc = response ? MHD_queue_response(connection, status, response) : MHD_NO;
    if (response)
        MHD_destroy_response(response);
    return rc;
}

/* And the connection ends: what follows is not what the client thinks. */
static enum MHD_Result refuse(const struct listener *l, struct MHD_Connection *connection,
                              const struct hk_admin_exchange *x, unsigned status, const char *detail)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, status);
    if (l->service.refuse)
        l->service.refuse(l->service.arg, x->ask.path, status, detail, &reply);
    else
        hk_admin_problem(&reply, status, detail);
    if (status == 503)
        (void)hk_admin_reply_header(&reply, "Retry-After", (struct hk_str){"1", 1});
    enum MHD_Result rc = queue(connection, reply.status, response_of(&reply, true));
    hk_buf_fini(&reply.body);
    return rc;
}

/* For the page of another origin that is listed, and for no other. */
static void add_cors(struct MHD_Response *response, const struct hk_admin_exchange *x)
{
    if (!response || !x->cors)
        return;
    (void)MHD_add_response_header(response, "Access-Control-Allow-Origin", x->cors);
    (void)MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                  "ETag, Location, Retry-After, Idempotency-Replayed");
    (void)MHD_add_response_header(response, "Vary", "Origin");
}

static enum MHD_Result send_back(struct MHD_Connection *connection, struct hk_admin_exchange *x)
{
    struct MHD_Response *response = response_of(&x->reply, false);
    if (response && x->gzipped)
        (void)MHD_add_response_header(response, "Content-Encoding", "gzip");
    if (response)
        (void)MHD_add_response_header(response, "Vary", "Accept-Encoding");
    add_cors(response, x);
    return queue(connection, x->reply.status, response);
}

/* ---- streams ---- */

static void resume(struct client *c)
{
    c->suspended = false;
    c->since_ms = c->at->server->site.now_ms();
    MHD_resume_connection(c->connection);
}

/* The library calls this again and again as long as it returns nothing, unless the connection is suspended. */
static ssize_t read_stream(void *arg, uint64_t pos, char *out, size_t max)
{
    struct hk_admin_exchange *x = arg;
    struct client *c = x->home;
    size_t n = 0;
    (void)pos;
    switch (hk_stream_read(x, out, max, &n)) {
    case HK_STREAM_SOME:
        c->heard_ms = c->at->server->site.now_ms();
        return (ssize_t)n;
    case HK_STREAM_NONE:
        c->suspended = true;
        MHD_suspend_connection(c->connection);
        return 0;
    case HK_STREAM_END:
        return MHD_CONTENT_READER_END_OF_STREAM;
    case HK_STREAM_BROKEN:
        break;
    }
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static enum MHD_Result start_stream(struct client *c, struct hk_admin_exchange *x)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, x, NULL);
    if (response)
        add_headers(response, &x->reply, true);
    add_cors(response, x);
    if (c->at->server->ending)
        hk_stream_finish(x);
    c->stream = x;
    c->heard_ms = c->at->server->site.now_ms();
    return queue(c->connection, x->reply.status, response);
}

static bool has_left(const struct client *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* The library does not look at a suspended connection: we do. A client behind TLS is found by a heartbeat that fails. */
static void tend_stream(struct client *c, int64_t now)
{
    if (!c->suspended)
        return;
    if (has_left(c))
        hk_stream_break(c->stream);
    else if (now - c->heard_ms >= HK_ADMIN_HEARTBEAT_MS)
        hk_stream_beat(c->stream);
    else
        return;
    resume(c);
}

/* ---- a request ---- */

struct noting {
    struct hk_head_fields head;
    struct hk_admin_exchange *exchange;
    bool failed;
};

static enum MHD_Result note_header(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct noting *n = arg;
    (void)kind;
    hk_head_note(&n->head, key, value);
    n->failed = n->failed || !hk_exchange_add_header(n->exchange, key, value ? value : "");
    return MHD_YES;
}

static bool is_for_service(const struct listener *l, const struct hk_admin_exchange *x)
{
    return l->how.service && !hk_admin_route_has(x->ask.path, x->ask.role) &&
           !hk_ui_owns(l->server->site.ui_dir, x->ask.path);
}

static void answer_page(const struct listener *l, const struct hk_admin_exchange *x,
                        struct hk_admin_reply *out)
{
    const struct hk_ui_ask ask = {.method = x->ask.method,
                                  .path = x->ask.path,
                                  .dir = l->server->site.ui_dir,
                                  .if_none_match = hk_admin_exchange_header(x, "If-None-Match"),
                                  .takes_gzip = x->takes_gzip};
    hk_admin_reply_init(out, 200);
    hk_ui_answer(&ask, out);
}

/* Probes, metrics and the dashboard's files, here and now. */
static enum MHD_Result answer(const struct listener *l, struct MHD_Connection *connection,
                              const struct hk_admin_exchange *x, bool has_body)
{
    const struct hk_admin_request request = {.method = x->ask.method,
                                             .path = x->ask.path,
                                             .host = hk_admin_exchange_header(x, "Host"),
                                             .has_body = has_body,
                                             .role = x->ask.role};
    struct hk_admin_reply reply;
    if (l->how.service && hk_ui_owns(l->server->site.ui_dir, x->ask.path))
        answer_page(l, x, &reply);
    else
        hk_admin_answer(&l->server->site, &request, &reply);
    enum MHD_Result rc = queue(connection, reply.status, response_of(&reply, has_body));
    hk_buf_fini(&reply.body);
    return rc;
}

/* Root may do everything on this machine anyway. */
static enum hk_role role_of(const struct listener *l, const struct client *c)
{
    if (l->how.gate.way != HK_GATE_UNIX || c->uid == 0 || c->uid == (int64_t)geteuid())
        return l->how.role;
    return HK_ROLE_NONE;
}

/* By the rules of the listener: 0, or a status and why. */
static unsigned let_in(const struct listener *l, struct hk_admin_exchange *x,
                       const struct hk_head_fields *head, const char **out_why)
{
    const struct client *c = x->home;
    const struct hk_gate *gate = &l->how.gate;
    const struct hk_gate_ask ask = {
        .method = x->ask.method,
        .host = head->host,
        .origin = head->origin,
        .forwarded = gate->way == HK_GATE_PROXIED ? hk_exchange_join(x, "X-Forwarded-For") : NULL,
        .peer = c->has_ip ? &c->ip : NULL};
    struct hk_gate_pass pass;
    unsigned status = hk_gate_check(gate, &ask, &pass, out_why);
    if (status)
        return status;
    if (pass.has_client)
        (void)hk_ip_format(&pass.client, x->address);
    x->cors = pass.cors ? hk_admin_exchange_header(x, "Origin") : NULL;
    x->ask.address = x->address;
    x->ask.uid = c->uid;
    x->ask.way = gate->way;
    x->ask.role = role_of(l, c);
    return 0;
}

/* A browser asks whether a page of another origin may send what it wants to send. */
static enum MHD_Result answer_preflight(struct MHD_Connection *connection, const struct hk_admin_exchange *x)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (response) {
        (void)MHD_add_response_header(response, "Access-Control-Allow-Methods",
                                      "GET, POST, PUT, PATCH, DELETE");
        (void)MHD_add_response_header(
            response, "Access-Control-Allow-Headers",
            "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID");
        (void)MHD_add_response_header(response, "Access-Control-Max-Age", "600");
    }
    add_cors(response, x);
    return queue(connection, 204, response);
}

static bool is_preflight(const struct hk_admin_exchange *x)
{
    return x->cors && strcmp(x->ask.method, "OPTIONS") == 0 &&
           hk_admin_exchange_header(x, "Access-Control-Request-Method");
}

/* Before a body is read, and before anybody has work with it. True: refused, and `out` is what the library gets. `last`: a body follows
 * that nobody will read. */
static bool turn_away(const struct listener *l, struct MHD_Connection *connection,
                      const struct hk_admin_exchange *x, bool last, enum MHD_Result *out)
{
    struct hk_admin_reply reply;
    if (!l->service.admit || is_preflight(x))
        return false;
    hk_admin_reply_init(&reply, 401);
    bool admitted = l->service.admit(l->service.arg, x, &reply);
    if (!admitted) {
        struct MHD_Response *response = response_of(&reply, last);
        add_cors(response, x);
        *out = queue(connection, reply.status, response);
    }
    hk_buf_fini(&reply.body);
    return !admitted;
}

/* The head is there. A reply now means that the body is not read, and that no 100 (Continue) asks for it. */
static enum MHD_Result begin(const struct listener *l, struct MHD_Connection *connection,
                             struct hk_admin_exchange *x, const char *version)
{
    struct hk_hub *hub = l->server->hub;
    struct noting n = {.exchange = x};
    struct hk_head_body body;
    enum MHD_Result refused = MHD_NO;
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, note_header, &n);
    if (n.failed)
        return MHD_NO;
    const char *why = hk_head_check(&n.head, version, &body);
    if (why)
        return refuse(l, connection, x, 400, why);
    x->takes_gzip = hk_head_takes_gzip(n.head.encodings);
    unsigned status = let_in(l, x, &n.head, &why);
    if (status)
        return refuse(l, connection, x, status, why);
    if (!is_for_service(l, x))
        return body.present ? answer(l, connection, x, true) : MHD_YES;
    if (!body.present)
        return MHD_YES;
    if (turn_away(l, connection, x, true, &refused))
        return refused;
    x->body_max = l->service.body_max(l->service.arg, x->ask.method, x->ask.path);
    hk_buf_init(&x->body, x->body_max);
    if (x->body_max == 0)
        return refuse(l, connection, x, 413, "a request without a body is expected");
    if (body.length != HK_HEAD_LENGTH_NONE && body.length > x->body_max)
        return refuse(l, connection, x, 413, "the body is too long");
    if (body.length != HK_HEAD_LENGTH_NONE && !hk_hub_has_room(hub, body.length))
        return refuse(l, connection, x, 503, "too many bodies at a time");
    return MHD_YES;
}

/* The library takes a reply before the body or after it. So the rest of a body that is refused in between is read and dropped, as far
 * as that is worth it. */
static enum MHD_Result take_body(struct hk_admin_exchange *x, const char *data, size_t *size)
{
    if (!x->refusal) {
        enum hk_code rc = hk_exchange_add_body(x, data, *size);
        if (rc != HK_OK)
            x->refusal = rc == HK_TOOBIG ? 413 : 503;
    }
    if (x->refusal)
        x->discarded += *size;
    *size = 0;
    return x->discarded > DISCARD_MAX ? MHD_NO : MHD_YES;
}

/* The service has given it back. */
static enum MHD_Result go_on(struct client *c, struct hk_admin_exchange *x, enum hk_exchange_state state)
{
    if (state == HK_EXCHANGE_OUT)
        return MHD_NO; /* the server stops */
    return x->streams ? start_stream(c, x) : send_back(c->connection, x);
}

static enum MHD_Result hand_out(const struct listener *l, struct client *c, struct hk_admin_exchange *x)
{
    enum MHD_Result refused = MHD_NO;
    if (l->server->ending)
        return refuse(l, c->connection, x, 503, "the relay is shutting down");
    if (is_preflight(x))
        return answer_preflight(c->connection, x);
    if (turn_away(l, c->connection, x, false, &refused))
        return refused;
    x->handed = true;
    l->server->n_open++;
    hk_exchange_hand_out(x);
    l->service.handle(l->service.arg, x);
    enum hk_exchange_state state = hk_exchange_state(x);
    if (state != HK_EXCHANGE_OUT)
        return go_on(c, x, state);
    MHD_suspend_connection(c->connection);
    c->suspended = true;
    return MHD_YES;
}

static struct client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* Called when the head is there, for each piece of the body, when the body is over, and when a suspended connection goes on. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data, size_t *size,
                              void **state)
{
    const struct listener *l = arg;
    struct client *c = client_of(connection);
    struct hk_admin_exchange *x = *state;
    (void)path;
    if (!c || !x)
        return MHD_NO; /* out of memory */
    x->ask.method = method;
    if (!x->begun) {
        x->begun = true;
        x->home = c;
        return begin(l, connection, x, version);
    }
    if (*size)
        return take_body(x, data, size);
    if (x->handed)
        return go_on(c, x, hk_exchange_state(x));
    if (x->refusal)
        return refuse(l, connection, x, x->refusal,
                      x->refusal == 413 ? "the body is too long" : "too many bodies at a time");
    return is_for_service(l, x) ? hand_out(l, c, x) : answer(l, connection, x, false);
}

/* The first that the library says of a request. What this returns is the request's state. It may also be the last: of a query with more
 * names than it has room for the library says nothing else, but closes the connection. So the connection keeps it, too. */
static void *see_target(void *arg, const char *target, struct MHD_Connection *connection)
{
    const struct listener *l = arg;
    struct client *c = client_of(connection);
    struct hk_admin_exchange *x = c ? hk_exchange_new(l->server->hub, target) : NULL;
    if (c)
        c->asked = x;
    return x;
}

/* ---- connections ---- */

static void cut(struct client *c)
{
    c->cut = true;
    (void)shutdown(c->fd, SHUT_RDWR); /* the library finds the end of the stream, and closes it */
}

static bool is_same_peer(const struct client *a, const struct client *b)
{
    return a->has_ip == b->has_ip && a->ip.v6 == b->ip.v6 &&
           memcmp(a->ip.addr, b->ip.addr, sizeof a->ip.addr) == 0;
}

/* The one that has waited longest, and not for us; of `peer`'s alone, or of anybody's (NULL). */
static struct client *find_idle(const struct listener *l, const struct client *peer)
{
    struct client *oldest = NULL;
    for (struct client *c = l->server->clients; c; c = c->next) {
        if (c->at != l || c->cut || c->suspended || c->stream || (peer && !is_same_peer(c, peer)))
            continue;
        if (!oldest || c->since_ms <= oldest->since_ms)
            oldest = c;
    }
    return oldest;
}

/* From three quarters on one makes room for each that comes. Whoever holds a quarter of all places gets his own cut. */
static void make_room(const struct listener *l, const struct client *comer)
{
    size_t all = 0, own = 0;
    for (const struct client *c = l->server->clients; c; c = c->next) {
        if (c->at != l || c->cut)
            continue;
        all++;
        own += is_same_peer(c, comer);
    }
    if (all <= l->room / 4 * 3)
        return;
    struct client *oldest = find_idle(l, own > l->room / 4 ? comer : NULL);
    if (oldest)
        cut(oldest);
}

static void free_client(struct client *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (c->asked)
        hk_exchange_leave(c->asked);
    hk_tls_credentials_unref(c->tls);
    hk_mem_free(c);
}

static void note_peer(struct client *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *from = info ? info->client_addr : NULL;
    c->uid = -1;
    if (c->at->how.gate.way == HK_GATE_UNIX) {
        c->uid = hk_listen_peer_uid(c->fd);
    } else if (from && from->sa_family == AF_INET) {
        c->has_ip = true;
        memcpy(c->ip.addr, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    } else if (from && from->sa_family == AF_INET6) {
        c->has_ip = c->ip.v6 = true;
        memcpy(c->ip.addr, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    }
}

/* Before the first byte of the handshake. */
static bool greet(struct client *c)
{
    struct hk_admin_tls *tls = c->at->how.tls;
    if (!tls)
        return true;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    c->tls = info && info->tls_session ? hk_admin_tls_greet(tls, info->tls_session, c->since_ms) : NULL;
    return c->tls != NULL;
}

static void connection_changed(void *arg, struct MHD_Connection *connection, void **context,
                               enum MHD_ConnectionNotificationCode what)
{
    const struct listener *l = arg;
    struct hk_admin_server *s = l->server;
    struct client *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && c) {
        free_client(c);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what != MHD_CONNECTION_NOTIFY_STARTED || !info || !(c = hk_mem_zalloc(1, sizeof *c)))
        return;
    c->at = l;
    c->connection = connection;
    c->fd = info->connect_fd;
    c->since_ms = s->site.now_ms();
    c->next = s->clients;
    c->link = &s->clients;
    if (c->next)
        c->next->link = &c->next;
    s->clients = c;
    *context = c;
    note_peer(c);
    if (!greet(c))
        cut(c);
    make_room(l, c);
}

static void answered(void *arg, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code)
{
    const struct listener *l = arg;
    struct client *c = client_of(connection);
    struct hk_admin_exchange *x = *state;
    (void)code;
    *state = NULL;
    if (c) {
        c->since_ms = l->server->site.now_ms();
        c->stream = NULL;
        c->asked = NULL;
    }
    if (!x)
        return;
    l->server->n_open -= x->handed;
    hk_exchange_leave(x);
}

static void sweep(struct hk_admin_server *s)
{
    int64_t now = s->site.now_ms();
    if (now - s->swept_ms < SWEEP_MS)
        return;
    s->swept_ms = now;
    for (struct client *c = s->clients; c; c = c->next) {
        if (c->stream)
            tend_stream(c, now);
        else if (!c->cut && !c->suspended && now - c->since_ms >= PATIENCE_MS)
            cut(c);
    }
}

/* ---- the thread ---- */

/* What was given back goes on. */
static void take_back(struct hk_admin_server *s)
{
    hk_hub_awoken(s->hub);
    struct hk_admin_exchange *next = NULL;
    for (struct hk_admin_exchange *x = hk_hub_take(s->hub); x; x = next) {
        struct client *c = x->home;
        next = x->taken;
        if (hk_stream_is_broken(x))
            cut(c); /* it may be in the middle of a write */
        if (c->suspended)
            resume(c);
    }
}

static int timeout_ms(const struct hk_admin_server *s)
{
    unsigned long long least = SWEEP_MS, ms = 0;
    bool any = s->clients != NULL;
    for (size_t i = 0; i < s->n; i++) {
        if (MHD_get_timeout(s->listeners[i].daemon, &ms) != MHD_YES)
            continue;
        any = true;
        least = ms < least ? ms : least;
    }
    return any ? (int)least : -1;
}

enum {
    POLL_STOP,
    POLL_WAKE,
    POLL_FIRST_LISTENER
};

static void turn(struct hk_admin_server *s, struct pollfd *fds, int wait_ms)
{
    if (poll(fds, (nfds_t)s->n + POLL_FIRST_LISTENER, wait_ms) < 0 && errno != EINTR)
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* no memory: later, perhaps */
    take_back(s);
    for (size_t i = 0; i < s->n; i++)
        (void)MHD_run(s->listeners[i].daemon);
    sweep(s);
}

/* Exchanges that are out may come back for a while; then connections that wait for them wait no more. */
static void end_exchanges(struct hk_admin_server *s, struct pollfd *fds)
{
    int64_t until = s->site.now_ms() + HK_ADMIN_STOP_MS, left = HK_ADMIN_STOP_MS;
    fds[POLL_STOP].fd = -1; /* it has said so */
    for (struct client *c = s->clients; c; c = c->next) {
        if (c->stream)
            hk_stream_finish(c->stream);
        if (c->stream && c->suspended)
            resume(c);
    }
    for (; s->n_open > 0 && left > 0; left = until - s->site.now_ms()) {
        int wait_ms = timeout_ms(s);
        turn(s, fds, wait_ms < 0 || wait_ms > left ? (int)left : wait_ms);
    }
    for (struct client *c = s->clients; c; c = c->next) {
        if (c->suspended) {
            cut(c);
            resume(c); /* the library cannot stop before */
        }
    }
}

static void *thread_main(void *arg)
{
    struct hk_admin_server *s = arg;
    struct pollfd fds[HK_ADMIN_LISTENERS + POLL_FIRST_LISTENER] = {
        [POLL_STOP] = {.fd = s->stop[0], .events = POLLIN},
        [POLL_WAKE] = {.fd = s->hub->wake[0], .events = POLLIN}};
    for (size_t i = 0; i < s->n; i++) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(s->listeners[i].daemon, MHD_DAEMON_INFO_EPOLL_FD);
        fds[i + POLL_FIRST_LISTENER] = (struct pollfd){.fd = info ? info->epoll_fd : -1, .events = POLLIN};
    }
    while (!fds[POLL_STOP].revents && !s->ending)
        turn(s, fds, timeout_ms(s));
    end_exchanges(s, fds);
    return NULL;
}

/* Signals are the loop's. */
static bool start_thread(struct hk_admin_server *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&s->thread, NULL, thread_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

/* Paths are compared as they came: one that is decoded could end at a NUL and be another. */
static size_t leave_as_it_is(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg, (void)connection;
    return strlen(text);
}

/* ---- start and stop ---- */

/* The library takes its options by pointers to what it does not change. */
static void *unconst(const char *text)
{
    void *out;
    memcpy(&out, &text, sizeof out);
    return out;
}

static bool start_listener(struct hk_admin_server *s, const struct hk_admin_listener *how)
{
    struct listener *l = &s->listeners[s->n];
    *l =
        (struct listener){.server = s, .how = *how, .room = how->service ? CONNECTIONS_SERVICE : CONNECTIONS};
    if (how->service)
        l->service = *how->service;
    const struct MHD_OptionItem with_tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, how->tls ? unconst(hk_admin_tls_cert(how->tls)) : NULL},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, how->tls ? unconst(hk_admin_tls_key(how->tls)) : NULL},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, unconst(hk_admin_tls_priorities)},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem without[] = {{MHD_OPTION_END, 0, NULL}};
    l->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (how->tls ? MHD_USE_TLS : 0U), 0, NULL, NULL, handle, l,
        MHD_OPTION_LISTEN_SOCKET, how->fd, MHD_OPTION_CONNECTION_LIMIT, l->room,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(PATIENCE_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADERS_MAX, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, l, MHD_OPTION_NOTIFY_COMPLETED,
        answered, l, MHD_OPTION_URI_LOG_CALLBACK, see_target, l, MHD_OPTION_UNESCAPE_CALLBACK, leave_as_it_is,
        NULL, MHD_OPTION_ARRAY, how->tls ? with_tls : without, MHD_OPTION_END);
    s->n += l->daemon != NULL;
    return l->daemon != NULL;
}

static void free_server(struct hk_admin_server *s)
{
    while (s->n > 0)
        MHD_stop_daemon(s->listeners[--s->n].daemon);
    (void)close(s->stop[0]);
    if (s->stop[1] >= 0)
        (void)close(s->stop[1]);
    hk_hub_unref(s->hub);
    hk_mem_free(s);
}

enum hk_code hk_admin_server_start(const struct hk_admin_site *site, struct hk_admin_room *room,
                                   const struct hk_admin_listener *listeners, size_t n,
                                   struct hk_admin_server **out_server, struct hk_err *err)
{
    struct hk_admin_server *s = hk_mem_zalloc(1, sizeof *s);
    if (!s)
        return hk_err_set(err, HK_NOMEM, "out of memory for the admin server");
    s->site = *site;
    s->hub = hk_hub_new(room);
    if (!s->hub || pipe(s->stop) != 0) {
        hk_hub_unref(s->hub);
        hk_mem_free(s);
        return hk_err_set(err, HK_IO, "no descriptors for the admin server");
    }
    (void)fcntl(s->stop[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(s->stop[1], F_SETFD, FD_CLOEXEC);
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = start_listener(s, &listeners[i]);
    if (!good || !start_thread(s)) {
        free_server(s);
        return hk_err_set(err, HK_IO, "the admin server cannot start");
    }
    *out_server = s;
    return HK_OK;
}

void hk_admin_server_end(struct hk_admin_server *s)
{
    if (!s || s->stop[1] < 0)
        return;
    s->ending = true;
    (void)close(s->stop[1]); /* unlike a byte that is written this cannot fail */
    s->stop[1] = -1;
}

void hk_admin_server_stop(struct hk_admin_server *s)
{
    if (!s)
        return;
    hk_admin_server_end(s);
    (void)pthread_join(s->thread, NULL);
    free_server(s);
}
