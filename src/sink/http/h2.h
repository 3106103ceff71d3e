/* SPDX-License-Identifier: Apache-2.0 */
/* Our own HTTP/2: what h2.c (which delivery goes over which connection), h2_conn.c (connections) and h2_session.c (nghttp2,
 * frames) share.
 *
 * nghttp2 calls us while it reads or writes, and must not be called back from there. So its callbacks only note what happened
 * (`news`), and hk_h2_judge acts on that afterwards. */
#ifndef HK_SINK_HTTP_H2_H
#define HK_SINK_HTTP_H2_H

#include "loop/loop.h"
#include "sink/http/impl.h"
#include "sink/stream/stream.h"

#define HK_H2_IDLE_MS       30000 /* then a connection without streams is closed: few servers wait much longer */
#define HK_H2_TICK_MS       5000 /* how often a connection is looked at */
#define HK_H2_PING_MS       15000 /* of silence with a stream open, until the server is asked whether it lives … */
#define HK_H2_PONG_MS       10000                /* … and has so long to answer */
#define HK_H2_AGAIN_MS      1000                 /* until the next try, when a connection came to nothing */
#define HK_H2_OUT_MAX       ((size_t)256 * 1024) /* of frames that the system has not taken yet */
#define HK_H2_REPEATS_MAX   3                    /* of a request that the server says it has not processed */
#define HK_H2_STREAMS_MAX   1000
#define HK_H2_CONTINUES_MAX 16    /* frames that go on with one header block */
#define HK_H2_CHATTER_MAX   10000 /* frames without progress */
#define HK_H2_UNHEARD_MAX                                                                                    \
    ((uint64_t)2 << 20) /* bytes of no use: those of streams that were given up, and whatever else */
#define HK_H2_WHY_MAX 256

struct nghttp2_session;
struct hk_h2_block;
struct hk_h2_sink;
struct hk_h2_conn;
struct hk_h2_transfer;

/* A stream, as nghttp2 knows it: it may outlive the transfer that it was made for. */
struct hk_h2_stream {
    struct hk_h2_stream *next, *prev;
    struct hk_h2_transfer *owner; /* NULL = nobody wants what comes */
};

enum hk_h2_phase {
    HK_H2_CONNECTING = 0, /* until the server's first SETTINGS */
    HK_H2_READY,
    HK_H2_DRAINING, /* takes no more requests, and ends with the last of its streams */
    HK_H2_DEAD      /* is freed soon */
};

struct hk_h2_conn {
    struct hk_h2_conn *next, *prev;
    struct hk_h2_sink *sink;
    struct hk_stream *stream;
    struct nghttp2_session *session;
    struct hk_h2_block *blocks; /* of the session */
    struct hk_timer *clock;
    enum hk_h2_phase phase;
    struct hk_h2_stream *streams;
    size_t n_streams;
    struct hk_h2_transfer *owners; /* whose requests it carries */
    uint64_t made_ms, came_ms, idle_ms, ping_ms;
    uint64_t written; /* bytes of frames, to `stream` */
    uint64_t chatter; /* frames without progress, since the last answer */
    uint64_t unheard; /* bytes that were of no use to anybody, since the last that were */
    unsigned continues;
    bool opened;             /* bytes may go out */
    bool settled;            /* SETTINGS came */
    bool asked;              /* a PING is out */
    bool took;               /* a request */
    bool used;               /* carried an answer */
    bool news;               /* something happened to an owner */
    bool going;              /* the server said GOAWAY */
    bool no_memory;          /* an allocation of nghttp2 failed: it must not be called any more */
    char why[HK_H2_WHY_MAX]; /* it must end; "" = it need not */
    struct hk_h2_transfer *begun, *ended; /* whose first, whose last frame was made just now */
};

struct hk_h2_transfer {
    struct hk_http_transfer t;          /* first */
    struct hk_h2_transfer *next, *prev; /* of the connection's owners */
    struct hk_h2_conn *conn;            /* NULL = none */
    struct hk_h2_stream *stream;        /* NULL = it was closed */
    int32_t id;
    size_t packed; /* bytes of the payload that are in frames */
    uint64_t begin_at,
        end_at; /* where its frames begin and end in all that the connection writes; UINT64_MAX = not made yet */
    unsigned repeats;
    uint32_t code; /* that its stream was closed with */
    bool answered; /* all of the answer that is wanted is here */
    bool closed;   /* its stream is */
    bool reset;    /* by the server */
    bool whole;    /* the request was handed to the system: known when it has left its connection */
};

struct hk_h2_sink {
    struct hk_http_sink base; /* first */
    char *host, *authority, *path;
    uint16_t port;
    struct hk_stream_tls *tls_files; /* NULL: in plain, by prior knowledge */
    struct hk_h2_conn *conns;
    size_t n_conns;
    uint64_t again_ms; /* no new connection before */
};

/* ---- h2.c: what becomes of a connection's owners, and how it is made ---- */

/* Acts on the news. */
void hk_h2_judge(struct hk_h2_conn *conn);
/* The connection is over. */
void hk_h2_lost(struct hk_h2_conn *conn, enum hk_fault fault, const char *text);

/* With files of their own, they are read again for each new connection: they may have changed. */
void hk_h2_renew_tls(struct hk_h2_sink *self);

/* ---- h2_conn.c ---- */

enum hk_code hk_h2_conn_new(struct hk_h2_sink *sink, struct hk_err *err) HK_MUSTCHECK;
void hk_h2_conn_free(struct hk_h2_conn *conn);
/* It takes no more requests. */
void hk_h2_conn_drain(struct hk_h2_conn *conn);
/* Whether it takes one more. One that is too old drains. */
bool hk_h2_conn_takes(struct hk_h2_conn *conn);
/* Frames go out as far as the system takes them; what is dead goes. */
void hk_h2_conn_flush(struct hk_h2_conn *conn);

/* ---- h2_session.c: frames, by nghttp2 ---- */

enum hk_code hk_h2_session_new(struct hk_h2_conn *conn) HK_MUSTCHECK; /* HK_NOMEM */
void hk_h2_session_free(struct hk_h2_conn *conn);
/* Reads. False: it is over, and `conn->why` says why. */
bool hk_h2_session_take(struct hk_h2_conn *conn, struct hk_str bytes) HK_MUSTCHECK;
/* The next bytes to write, valid until the next call; 0: none for now. False: it is over. */
bool hk_h2_session_next(struct hk_h2_conn *conn, struct hk_str *out) HK_MUSTCHECK;
/* It neither reads nor writes any more. */
bool hk_h2_session_over(const struct hk_h2_conn *conn);
/* HK_BUSY: no more streams on this connection. HK_NOMEM. */
enum hk_code hk_h2_session_request(struct hk_h2_conn *conn, struct hk_h2_transfer *h) HK_MUSTCHECK;
/* The owner of the stream has ended before the stream did. */
void hk_h2_session_cancel(struct hk_h2_transfer *h);
void hk_h2_session_ping(struct hk_h2_conn *conn);
void hk_h2_session_goodbye(struct hk_h2_conn *conn);
/* Streams that the server takes at the same time. */
size_t hk_h2_session_room(const struct hk_h2_conn *conn);
const char *hk_h2_code_name(uint32_t code);
bool hk_h2_code_is_refusal(uint32_t code); /* the server says that it has not processed the request */

#endif
