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
    size_t body_bytes;               /* of all exchanges */
    int wake[2];                     /* a pipe: the server's thread waits for its first end */
};

enum hk_exchange_state {
    HK_EXCHANGE_COLLECTING = 0, /* the server's */
    HK_EXCHANGE_OUT,            /* the service's */
    HK_EXCHANGE_BACK            /* has a reply; the server's */
};

struct hk_admin_exchange {
    struct hk_hub *hub;
    struct hk_admin_exchange *next; /* of `ready` */
    enum hk_exchange_state state;   /* under the hub's lock once it has been out */
    bool left;                      /* under the lock: no connection has use for the reply */
    bool takes_gzip, gzipped;
    /* The rest is the server's thread's until it is out. */
    void *home;       /* the connection */
    bool begun;       /* its head was looked at */
    bool handed;      /* it was out */
    unsigned refusal; /* the body was too much: what follows is not kept, and this is the status */
    size_t body_max, discarded;
    struct hk_admin_ask ask;
    struct hk_pool pool; /* names, values, texts */
    struct hk_exchange_header *headers, **headers_end;
    struct hk_buf body;
    struct hk_admin_reply reply;
};

struct hk_exchange_header {
    struct hk_exchange_header *next;
    const char *name, *value;
};

/* NULL: out of memory, or out of descriptors. */
struct hk_hub *hk_hub_new(void);
void hk_hub_unref(struct hk_hub *hub);
void hk_hub_rouse(struct hk_hub *hub);                     /* wakes the server's thread */
void hk_hub_awoken(struct hk_hub *hub);                    /* and that it has noticed */
struct hk_admin_exchange *hk_hub_take(struct hk_hub *hub); /* all that are back, as a list; NULL: none */

/* `target`: the path with its query, as it came. NULL: out of memory. */
struct hk_admin_exchange *hk_exchange_new(struct hk_hub *hub, const char *target);
bool hk_exchange_add_header(struct hk_admin_exchange *x, const char *name, const char *value);
/* Keeps a piece of the body. HK_TOOBIG: over its bound; HK_BUSY: over that of all bodies; HK_NOMEM. */
enum hk_code hk_exchange_add_body(struct hk_admin_exchange *x, const char *bytes, size_t len) HK_MUSTCHECK;
/* Would a body of so many bytes fit beside the others? */
bool hk_hub_has_room(struct hk_hub *hub, uint64_t bytes);
/* From now on it is the service's. */
void hk_exchange_hand_out(struct hk_admin_exchange *x);
bool hk_exchange_is_back(struct hk_admin_exchange *x);
/* The connection is over. Frees it, now or when the service gives it back. */
void hk_exchange_leave(struct hk_admin_exchange *x);

#endif
