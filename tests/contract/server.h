/* SPDX-License-Identifier: Apache-2.0 */
/* A server for tests that does what its script says, right or wrong: each connection runs the steps from the start, on
 * a thread of its own. Loopback, a port that is free. */
#ifndef HK_TESTS_SERVER_H
#define HK_TESTS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op {
    OP_END = 0, /* close */
    OP_REQUEST, /* read one whole request */
    OP_HEAD,    /* wait for a request's head, and leave it to OP_REQUEST */
    OP_READ,    /* read n bytes */
    OP_H2,      /* HTTP/2: read a whole request, or (n = 1) its header block */
    OP_SEND,    /* send the text (n bytes when given) */
    OP_REPEAT,  /* send the text n times */
    OP_ENDLESS, /* send the text until the other side is gone, at most n MiB */
    OP_FLOOD,   /* send the n bytes until the other side is gone, at most 1 GiB */
    OP_DRIP,    /* send the text byte by byte, n ms apart */
    OP_SLEEP,   /* n ms */
    OP_HOLD,    /* wait until the other side is gone */
    OP_SHUT,    /* say that no more will be sent, and wait until the other side is gone */
    OP_RESET,   /* end with RST */
    OP_DEAF,    /* refuse all connections from now on */
    OP_AGAIN,   /* from the first step */
    OP_GARBAGE, /* before TLS: answer in plain text */
};

struct step {
    enum op op;
    const char *text;
    size_t n;
};

struct server_tls {
    const char *cert_file, *key_file;
    int max_version;       /* of TLS, as OpenSSL numbers them; 0 = the newest */
    const char *ciphers;   /* of TLS 1.2 and older; NULL = the usual */
    const char *client_ca; /* demands certificates of clients, signed by it */
    bool h2;               /* speaks HTTP/2, as far as the script does */
};

struct server;

/* With by_h2 (client.h) connections speak HTTP/2, and scripts do not notice (h2_gate.h); but not where `h2` is said of the TLS. */

struct server *server_start(const struct step *steps, const struct server_tls *tls);
/* As above, bound to an address of 127.0.0.0/8 or "::1". NULL when that address is not there. */
struct server *server_start_at(const char *ip, const struct step *steps, const struct server_tls *tls);
void server_stop(struct server *server);
int server_port(const struct server *server);
unsigned server_connections(struct server *server);
unsigned server_requests(struct server *server);
unsigned server_done(struct server *server); /* connections that it has closed, or that it only holds */
size_t server_sent(struct server *server);   /* bytes, by all connections */
size_t server_got(struct server *server);    /* bytes, by all connections */
/* The last whole request, head and body; valid until the next call. */
const char *server_last(struct server *server, size_t *out_len);

#endif
