/* SPDX-License-Identifier: Apache-2.0 */
/* Our own HTTP/1.1: what h1.c (which delivery goes where) and h1_conn.c (sockets) share. */
#ifndef HK_SINK_HTTP_H1_H
#define HK_SINK_HTTP_H1_H

#include "loop/loop.h"
#include "sink/http/h1_parse.h"
#include "sink/http/impl.h"

#define HK_H1_READ_BYTES  ((size_t)16 * 1024)  /* at once */
#define HK_H1_WRITE_BYTES ((size_t)128 * 1024) /* at once: others have their turn in between */
#define HK_H1_IDLE_MS     30000 /* then a connection is not used again: few servers wait much longer */
#define HK_H1_FRESH_MS    60000 /* then a name is asked for again */
#define HK_H1_NEXT_TRY_MS 250   /* a connection that takes longer gets company: the next address */
#define HK_H1_TRIES_MAX   2     /* at the same time, for one delivery */

struct hk_h1_transfer;
struct hk_h1_sink;

enum hk_h1_phase {
    HK_H1_CONNECTING = 0, /* for its transfer */
    HK_H1_BUSY,           /* carries its transfer's request */
    HK_H1_IDLE
};

struct hk_h1_conn {
    struct hk_h1_conn *next, *prev; /* while it is idle */
    struct hk_h1_sink *sink;
    struct hk_h1_transfer *owner; /* NULL = idle */
    struct hk_watch *watch;
    int fd;
    enum hk_h1_phase phase;
    bool used;  /* carried a request before the present one */
    bool ended; /* the other side will send no more; it may still read */
    int broken; /* errno of a write that failed, 0 = none */
    struct hk_address address;
    char text[HK_IP_TEXT_MAX + 16]; /* address and port, once it stands */
    uint64_t made_ms, idle_until_ms;
};

struct hk_h1_transfer {
    struct hk_http_transfer t;                 /* first */
    struct hk_h1_conn *tries[HK_H1_TRIES_MAX]; /* while connecting */
    struct hk_h1_conn *conn;                   /* that carries the request; NULL = none yet */
    size_t next_address;                       /* to be tried */
    uint64_t try_ms;                           /* when the last one was */
    int error;                                 /* of the last one that failed */
    size_t sent;                               /* bytes of head and payload that the system took */
    struct hk_h1_answer answer;
    bool answered; /* with a success, and the request is not all out yet: it goes on */
    bool clean;    /* nothing that came is against using the connection again */
};

struct hk_h1_sink {
    struct hk_http_sink base; /* first */
    char host[256];           /* a name; "" = addresses are all there is to know */
    uint16_t port;
    struct hk_lookup *lookup; /* under way */
    struct hk_address addresses[HK_LOOKUP_MAX];
    size_t n_addresses;
    uint64_t known_ms;       /* when the name was resolved */
    struct hk_h1_conn *idle; /* the one used last */
    size_t n_conns;
    char *room; /* to read into; untouched memory as long as nothing is sent */
};

/* ---- h1.c: what happens to a connection's owner. Each may end the transfer. ---- */

void hk_h1_connected(struct hk_h1_conn *conn);
void hk_h1_not_connected(struct hk_h1_conn *conn, int error); /* errno; frees the connection */
/* Nothing of the request was taken, on a connection that was used before: as if it had not been tried. */
void hk_h1_stale(struct hk_h1_conn *conn);
/* The connection is over: `error` (errno), or 0 = closed by the other side. */
void hk_h1_lost(struct hk_h1_conn *conn, int error);
void hk_h1_came(struct hk_h1_conn *conn, struct hk_str bytes);
/* The system has taken all of the request. */
void hk_h1_all_out(struct hk_h1_conn *conn);

/* ---- h1_conn.c ---- */

/* Starts to connect to an address that is allowed. HK_NOMEM, HK_IO: `*out_errno`. */
enum hk_code hk_h1_conn_new(struct hk_h1_transfer *owner, const struct hk_address *address,
                            struct hk_h1_conn **out_conn, int *out_errno) HK_MUSTCHECK;
void hk_h1_conn_free(struct hk_h1_conn *conn); /* closes; NULL is fine */
/* Its owner's request goes out, as much as the system takes; the rest follows by itself. */
void hk_h1_conn_send(struct hk_h1_conn *conn);
/* The idle one that was used last and can still be used; NULL = none. What turns out useless on the way is closed. */
struct hk_h1_conn *hk_h1_conn_take(struct hk_h1_sink *sink);
/* It has no owner any more. */
void hk_h1_conn_rest(struct hk_h1_conn *conn, uint64_t idle_ms);
void hk_h1_conn_own(struct hk_h1_conn *conn, struct hk_h1_transfer *owner);

#endif
