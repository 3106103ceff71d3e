/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a broker, which all destinations of that broker share: same servers, same user, same certificates, same address
 * policy. It connects when somebody wants it, to one server after the other; waits longer and longer when none can be had; and says
 * to its users what became of it. What is said over it is its kind's (struct hk_link_ops).
 *
 * All calls of ops and users run from the loop, never from inside a function of this file but hk_link_fail, which runs `lost`. None of
 * them may leave the link. */
#ifndef HK_SINK_BROKER_LINK_H
#define HK_SINK_BROKER_LINK_H

#include <hikyaku/rng.h>

#include "base/buf.h"
#include "base/servers.h"
#include "loop/loop.h"
#include "sink/broker/bytes.h"
#include "sink/stream/stream.h"

#define HK_LINK_TEXT_MAX     640
#define HK_LINK_HEARTBEAT_S  10
#define HK_LINK_SILENT_BEATS 4 /* a beat is half a heartbeat: so a broker is given two */

enum hk_link_phase {
    HK_LINK_IDLE = 0, /* nobody wants it */
    HK_LINK_WAITING,  /* until it may be tried again */
    HK_LINK_CONNECTING,
    HK_LINK_GREETING, /* the stream is open: the protocol's own beginning */
    HK_LINK_READY
};

/* Why there is no connection. */
struct hk_link_failure {
    enum hk_fault fault;
    char code[32]; /* the broker's own; "" = it named none */
    char text[HK_LINK_TEXT_MAX];
};

struct hk_link;

struct hk_link_ops {
    const char *kind;
    size_t out_max; /* of hk_link.out: the longest that the kind composes in it */
    bool tls_later; /* it begins in plain: hk_link_secure when it is time */
    /* The link is new: sets up what is the kind's, from hk_link_options.arg. After an error `fini` runs. NULL: nothing to do. */
    enum hk_code (*init)(struct hk_link *link, const void *arg, struct hk_err *err);
    void (*opened)(struct hk_link *link); /* the stream is: say hello. hk_link_ready when that is done */
    /* Reads the first unit of `in` and acts on it, which may lose the connection. WRONG loses it. A unit that is not whole comes again
     * with more behind it. */
    enum hk_next (*read)(struct hk_link *link, struct hk_str in, size_t *out_used, const char **out_why);
    void (*lost)(struct hk_link *link); /* forget what belonged to the connection */
    /* Writes something that the broker answers, once in beat_ms while connected. The link itself ends a connection on which nothing
     * has come for HK_LINK_SILENT_BEATS of them. */
    void (*beat)(struct hk_link *link);
    void (*bye)(struct hk_link *link);  /* about to be closed in peace; NULL: nothing to say */
    void (*fini)(struct hk_link *link); /* frees what the longer struct holds; NULL: nothing */
};

/* A destination that uses it. */
struct hk_link_user {
    struct hk_link_user *next;
    void (*ready)(struct hk_link_user *user);
    /* The connection is lost, or (`was_ready` false) cannot be had: nothing that waits for it should wait on. */
    void (*lost)(struct hk_link_user *user, const struct hk_link_failure *why, bool was_ready);
    void (*drained)(struct hk_link_user *user);
};

struct hk_link_options {
    const struct hk_link_ops *ops;
    size_t bytes; /* of the kind's longer struct, which begins with struct hk_link */
    const struct hk_server_scheme *scheme;
    const char *url, *password;
    const char *ca_file, *cert_file, *key_file;
    const struct hk_cidr *allow;
    size_t n_allow;
    const char *more;     /* of the kind: links that differ in it are two; NULL = nothing */
    uint32_t heartbeat_s; /* 0: HK_LINK_HEARTBEAT_S */
    const void *arg;      /* for ops->init */
};

/* The members of a kind's own options that all kinds have under these names. */
#define HK_LINK_OPTIONS(o)                                                                                   \
    .url = (o)->url, .password = (o)->password, .ca_file = (o)->ca_file, .cert_file = (o)->cert_file,        \
    .key_file = (o)->key_file, .allow = (o)->allow, .n_allow = (o)->n_allow, .heartbeat_s = (o)->heartbeat_s

struct hk_link {
    struct hk_loop_shared shared;
    const struct hk_link_ops *ops;
    struct hk_loop *loop;
    struct hk_buf key; /* what makes two links one */
    struct hk_servers servers;
    char *password; /* NULL: none */
    struct hk_stream_tls *tls;
    struct hk_cidr *allow;
    size_t n_allow;
    bool has_cert;
    bool secured; /* tls_later: by TLS from here on */
    struct hk_link_user *users;
    enum hk_link_phase phase;
    bool wanted; /* somebody has something to send */
    uint64_t ready_ms;
    struct hk_stream *stream;
    struct hk_buf in;                  /* what came and is not whole yet */
    struct hk_buf out;                 /* what the kind composes: hk_link_put */
    uint64_t sent;                     /* by the connection before */
    char address[HK_IP_TEXT_MAX + 16]; /* of the last connection; "" = there was none */
    struct hk_timer *timer;            /* the deadline of the greeting, the wait, or the next beat */
    size_t server;                     /* of the list: the one in use */
    size_t failed;                     /* servers, since one could be had */
    uint64_t wait_ms;
    uint32_t heartbeat_s;
    uint64_t
        beat_ms; /* half of it; the kind changes it to what the broker wants, before hk_link_ready; 0 = no beats */
    unsigned quiet; /* beats since something came */
    struct hk_rng rng;
    struct hk_link_failure failure; /* the last one; fault NONE: there was none */
};

/* The link of these options on this loop: a new one, or that of others. HK_INVALID, HK_NOMEM. Nothing is connected to yet. */
enum hk_code hk_link_join(struct hk_loop *loop, const struct hk_link_options *options,
                          struct hk_link_user *user, struct hk_link **out_link,
                          struct hk_err *err) HK_MUSTCHECK;
/* From one link to another, which may be the same. On error nothing has changed. */
enum hk_code hk_link_change(struct hk_link *link, const struct hk_link_options *options,
                            struct hk_link_user *user, struct hk_link **out_link,
                            struct hk_err *err) HK_MUSTCHECK;
/* The last one closes it. */
void hk_link_leave(struct hk_link *link, struct hk_link_user *user);

void hk_link_want(struct hk_link *link); /* connects, if it is not connected or about to */
/* As hk_stream_sent, of the connection that is, or was. */
uint64_t hk_link_sent(const struct hk_link *link);

/* ---- for the kind ---- */

void hk_link_ready(struct hk_link *link);
/* From inside `read`, of the last bytes that came. `opened` runs again. */
void hk_link_secure(struct hk_link *link);
/* One more server to go to, as the broker names it; it is checked like the others. One that is known, or too much, is left out. */
void hk_link_learn(struct hk_link *link, const struct hk_server *server);
/* It is of no use any more. `code` may be NULL. */
void hk_link_fail(struct hk_link *link, enum hk_fault fault, const char *code, const char *text);
/* HK_NOMEM and HK_TOOBIG have failed the link. */
enum hk_code hk_link_write(struct hk_link *link, const void *bytes, size_t len);
/* Writes what is in `out`, and empties it. What was written during the greeting is wiped: there may be a password in it. False: the link
 * has failed. */
bool hk_link_put(struct hk_link *link);
void hk_link_flush(struct hk_link *link);

#endif
