/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server: HTTP on a thread of its own, which nothing waits for. Probes and metrics are answered on that thread (route.h);
 * everything else is an exchange, handed to a service and answered from any thread, at once or later.
 *
 * An exchange is one request and its reply. The server makes it when the head of the request is accepted, collects the body, and gives
 * it to the service's `handle`. From then on the service owns it and gives it back exactly once: by a reply, or as a stream. The client
 * may leave in between, and the server may have stopped: nobody has to know. What is given back then is dropped. */
#ifndef HK_ADMIN_SERVER_H
#define HK_ADMIN_SERVER_H

#include <hikyaku/facts.h>

#include "admin/gate.h"
#include "admin/route.h"

struct hk_admin_server;
struct hk_admin_exchange;

/* ---- requests ---- */

/* A request as it came. Everything in it lives until the exchange is given back. */
struct hk_admin_ask {
    const char *method;
    const char *path;     /* never decoded; without the query */
    const char *query;    /* what follows '?', never decoded; NULL: there is none */
    struct hk_str body;   /* whole; empty when there is none. Always NUL-terminated */
    enum hk_gate_way way; /* by which listener it came */
    enum hk_role
        role; /* what the listener grants to everybody who reaches it. On a Unix socket only the relay's own user and
                          * root have it, others none */
    const char
        *address; /* of the client, without port; "" on a Unix socket. Behind proxies: whom they speak for */
    int64_t uid;  /* of the client's process on a Unix socket; -1 elsewhere */
};

/* What the server asks of the layer above. All members run on the server's thread and must not block: a probe waits behind them. */
struct hk_admin_service {
    /* How many bytes may the body of this request have? Asked when the head is there and says that a body follows. 0: none.
     * The server refuses a longer one with 413 and closes the connection, before it is read where its length is announced. */
    size_t (*body_max)(void *arg, const char *method, const char *path);
    /* May this caller ask at all? Asked before the body is read, and again before `handle`. False: the server sends `out`, which has been
     * initialized, and reads no body. NULL: everybody may. */
    bool (*admit)(void *arg, const struct hk_admin_exchange *exchange, struct hk_admin_reply *out);
    /* Fills `out`, which has been initialized, with a refusal that the server makes itself (400, 413, 421, 503 …), as clients of this path
     * read errors. NULL: hk_admin_problem. */
    void (*refuse)(void *arg, const char *path, unsigned status, const char *detail,
                   struct hk_admin_reply *out);
    /* A whole request. Owns `exchange` from now on and gives it back exactly once, here or later, from any thread. */
    void (*handle)(void *arg, struct hk_admin_exchange *exchange);
    void *arg; /* outlives the server */
};

/* From any thread, while the exchange is owned. */
const struct hk_admin_ask *hk_admin_exchange_ask(const struct hk_admin_exchange *exchange);
/* The value of a header, whatever the case of its name; the first one of several; NULL: there is none. Of headers that may come once
 * (head.c lists them) there is never a second one. */
const char *hk_admin_exchange_header(const struct hk_admin_exchange *exchange, const char *name);

/* ---- replies ---- */

/* Gives the exchange back: it must not be touched afterwards. From any thread, also from within `handle`. Never blocks but for
 * compressing: a body over HK_ADMIN_GZIP_MIN bytes is compressed, here, when the client takes that. Takes the memory of `reply->body`
 * and leaves an empty one. A body that has failed (hk_buf_status) becomes a 503. A HEAD is answered with the head of the same reply. */
void hk_admin_exchange_reply(struct hk_admin_exchange *exchange, struct hk_admin_reply *reply);

#define HK_ADMIN_GZIP_MIN   1024
#define HK_ADMIN_BODIES_MAX ((size_t)64 << 20) /* of all requests in one room together; beyond: 503 */

/* ---- streams ---- */

/* A reply without an end, such as server-sent events; or a download, which is too long for memory. */
struct hk_admin_stream;

#define HK_ADMIN_STREAMS      128                 /* at a time, in one room */
#define HK_ADMIN_STREAM_MAX   ((size_t)256 << 10) /* that a client has not read yet */
#define HK_ADMIN_HEARTBEAT_MS 15000 /* after so much silence the server sends a comment, ":\n\n" */

/* Gives the exchange back as a stream, with `head`'s status, type and headers. From any thread; never blocks. HK_BUSY: there are
 * HK_ADMIN_STREAMS already; the exchange is still the caller's and wants a reply. On HK_OK the stream is the caller's until
 * hk_admin_stream_end. A stream is not compressed, and patience does not cut it. */
enum hk_code hk_admin_exchange_stream(struct hk_admin_exchange *exchange, const struct hk_admin_reply *head,
                                      struct hk_admin_stream **out_stream) HK_MUSTCHECK;
/* Sends bytes, all of them or none. From any thread; never blocks. HK_UNAVAILABLE: nobody listens any more (the client has left, has not
 * read for too long and was cut, or the server is stopping): nothing that is pushed later will arrive either. */
enum hk_code hk_admin_stream_push(struct hk_admin_stream *stream, struct hk_str bytes);
/* Sends bytes of a download, all of them, and waits while the client has not read HK_ADMIN_STREAM_MAX of what it was sent. Not on the
 * server's thread. HK_UNAVAILABLE: as above. HK_TIMEOUT: the client took less than HK_ADMIN_DOWNLOAD_PIECE within
 * HK_ADMIN_DOWNLOAD_MS, and was cut. */
enum hk_code hk_admin_stream_write(struct hk_admin_stream *stream, struct hk_str bytes) HK_MUSTCHECK;
#define HK_ADMIN_DOWNLOAD_PIECE ((size_t)64 << 10)
#define HK_ADMIN_DOWNLOAD_MS    30000
/* Was it cut because its client has not read for too long? */
bool hk_admin_stream_is_cut(struct hk_admin_stream *stream);
/* The last of it; what was pushed still goes out. Exactly once, also after HK_UNAVAILABLE and after the server's end. */
void hk_admin_stream_end(struct hk_admin_stream *stream);
/* In its place, of a download that failed: the client sees that the end is missing. */
void hk_admin_stream_fail(struct hk_admin_stream *stream);

/* ---- start and stop ---- */

struct hk_admin_tls;

struct hk_admin_listener {
    int fd;              /* listening, non-blocking; the server's from now on, also when it cannot start */
    enum hk_role role;   /* of whoever asks there */
    struct hk_gate gate; /* who may come in; what it points to outlives the server */
    struct hk_admin_tls *tls;               /* of HK_GATE_TLS; outlives the server */
    const struct hk_admin_service *service; /* copied; NULL: probes and metrics alone */
};

#define HK_ADMIN_LISTENERS 3

/* What bodies and streams may take, of all servers that were started with it: a process has several servers, and one room. */
struct hk_admin_room;

/* NULL: out of memory. */
struct hk_admin_room *hk_admin_room_new(void);
/* Servers, and exchanges that outlive them, keep it as long as they need it. Accepts NULL. */
void hk_admin_room_unref(struct hk_admin_room *room);

/* `site` and what it points to outlive the server. */
enum hk_code hk_admin_server_start(const struct hk_admin_site *site, struct hk_admin_room *room,
                                   const struct hk_admin_listener *listeners, size_t n,
                                   struct hk_admin_server **out_server, struct hk_err *err) HK_MUSTCHECK;
/* Tells it to stop, and does not wait: for several at once. hk_admin_server_stop must follow. Accepts NULL. */
void hk_admin_server_end(struct hk_admin_server *server);
/* Ends all streams, refuses new exchanges, waits up to HK_ADMIN_STOP_MS for those that are out, and cuts the rest. At once when none is out. No `handle`
 * runs afterwards; exchanges that are still out may be given back at any time. Accepts NULL. */
void hk_admin_server_stop(struct hk_admin_server *server);

#define HK_ADMIN_STOP_MS 3000

#endif
