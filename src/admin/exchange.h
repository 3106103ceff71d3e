/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of an exchange; the service's side is in server.h. */
#ifndef HK_ADMIN_EXCHANGE_H
#define HK_ADMIN_EXCHANGE_H

#include <pthread.h>

#include "admin/head.h"
#include "admin/server.h"
#include "base/pool.h"

/* Where threads meet. It outlives the server as long as an exchange is out. */
struct hk_hub {
    pthread_mutex_t lock;            /* guards all below, and what an exchange says of itself */
    struct hk_admin_exchange *ready; /* given back; the server's thread takes them from here */
    size_t refs;                     /* the server, and each exchange */
    struct hk_admin_room *room;      /* counted there: bytes of bodies, and streams */
    int wake[2];                     /* a pipe: the server's thread waits for its first end */
    pthread_cond_t taken;            /* a client has read of a download, or will not read any more */
};

enum hk_exchange_state {
    HK_EXCHANGE_COLLECTING = 0, /* the server's */
    HK_EXCHANGE_OUT,            /* the service's */
    HK_EXCHANGE_STREAM,         /* the service's: it has the head of a reply and goes on */
    HK_EXCHANGE_BACK            /* has a reply; the server's */
};

struct hk_admin_exchange {
    struct hk_hub *hub;
    struct hk_admin_exchange *next;  /* of `ready`; under the hub's lock */
    bool listed;                     /* there */
    struct hk_admin_exchange *taken; /* the next of those that the server's thread has taken; that thread's */
    enum hk_exchange_state state;    /* under the hub's lock once it has been out */
    bool left;                       /* under the lock: no connection has use for the reply */
    bool takes_gzip, gzipped;
    /* The rest is the server's thread's until it is out. */
    void *home;       /* the connection */
    bool begun;       /* its head was looked at */
    bool handed;      /* it was out */
    unsigned refusal; /* the body was too much: what follows is not kept, and this is the status */
    size_t body_max, discarded;
    const char *cors; /* the origin whose page may read the reply; NULL: none */
    char address[HK_IP_TEXT_MAX];
    struct hk_admin_ask ask;
    struct hk_pool pool; /* names, values, texts */
    struct hk_exchange_header *headers, **headers_end;
    struct hk_buf body;
    struct hk_admin_reply reply;
    /* Of a stream, under the lock: what was pushed, how much of it has gone, and how it ends. */
    struct hk_buf out;
    size_t out_gone;
    bool streams;  /* it is one */
    bool finished; /* nothing more comes */
    bool broken;   /* the client is to be cut */
    bool overrun;  /* because it did not read */
};

struct hk_exchange_header {
    struct hk_exchange_header *next;
    const char *name, *value;
};

/* Keeps `room` for as long as it lives. NULL: out of memory, or out of descriptors. */
struct hk_hub *hk_hub_new(struct hk_admin_room *room);
void hk_hub_unref(struct hk_hub *hub);
void hk_hub_rouse(struct hk_hub *hub);  /* wakes the server's thread */
void hk_hub_awoken(struct hk_hub *hub); /* and that it has noticed */
struct hk_admin_exchange *
hk_hub_take(struct hk_hub *hub); /* all that are back, linked by `taken`; NULL: none */

/* `target`: the path with its query, as it came. NULL: out of memory. */
struct hk_admin_exchange *hk_exchange_new(struct hk_hub *hub, const char *target);
bool hk_exchange_add_header(struct hk_admin_exchange *x, const char *name, const char *value);
/* All values of a header, joined by commas. NULL: there is none, or no memory. */
const char *hk_exchange_join(struct hk_admin_exchange *x, const char *name);
/* Keeps a piece of the body. HK_TOOBIG: over its bound; HK_BUSY: over that of all bodies; HK_NOMEM. */
enum hk_code hk_exchange_add_body(struct hk_admin_exchange *x, const char *bytes, size_t len) HK_MUSTCHECK;
/* Would a body of so many bytes fit beside the others? */
bool hk_hub_has_room(struct hk_hub *hub, uint64_t bytes);
/* From now on it is the service's. */
void hk_exchange_hand_out(struct hk_admin_exchange *x);
enum hk_exchange_state hk_exchange_state(struct hk_admin_exchange *x);

enum hk_stream_read {
    HK_STREAM_SOME = 0, /* bytes */
    HK_STREAM_NONE,     /* none now */
    HK_STREAM_END,
    HK_STREAM_BROKEN
};

/* Takes what was pushed, up to `max` bytes. */
enum hk_stream_read hk_stream_read(struct hk_admin_exchange *x, char *out, size_t max, size_t *out_len);
void hk_stream_beat(struct hk_admin_exchange *x);      /* a comment; nothing in a download */
bool hk_stream_is_broken(struct hk_admin_exchange *x); /* it was pushed more than there is room for */
void hk_stream_break(struct hk_admin_exchange *x);     /* the client has left */
/* The server stops: as if the service had ended it. A download that is not whole breaks. */
void hk_stream_finish(struct hk_admin_exchange *x);
/* The connection is over. Frees it, now or when the service gives it back. */
void hk_exchange_leave(struct hk_admin_exchange *x);

#endif
