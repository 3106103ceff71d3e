/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a request may enter by this listener. Pure: addresses and headers in, a verdict out. It refuses pages that reach this
 * server by their own host name (DNS rebinding), pages that send requests without their reader's intent (CSRF), and requests that bypass
 * the proxy. It does not know the caller: tokens are checked after it. */
#ifndef HK_ADMIN_GATE_H
#define HK_ADMIN_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cidr.h"

enum hk_gate_way {
    HK_GATE_OPEN = 0, /* probes for everybody: nothing is asked */
    HK_GATE_LOCAL,    /* this machine: a loopback address, without TLS */
    HK_GATE_TLS,      /* our own certificate */
    HK_GATE_PROXIED,  /* a proxy has ended TLS; from others nothing is taken */
    HK_GATE_UNIX      /* a socket in the file system */
};

/* Texts and lists are the caller's. */
struct hk_gate {
    enum hk_gate_way way;
    const char *const *hosts; /* names, without port, that clients may use */
    size_t n_hosts;
    const char *const *cors; /* origins whose pages may read answers: "https://dash.example" */
    size_t n_cors;
    const struct hk_cidr *proxies;
    size_t n_proxies;
};

struct hk_gate_ask {
    const char *method;
    const char *host, *origin,
        *forwarded;           /* headers; X-Forwarded-For: all of them, joined by commas; NULL: none */
    const struct hk_ip *peer; /* the other end of the connection; NULL: a Unix socket */
};

struct hk_gate_pass {
    bool has_client;
    struct hk_ip client; /* who asks: the peer, or whom the proxies speak for */
    bool cors;           /* the page at `origin` may read the answer */
};

/* 0: it may, and `out` is filled. Else a status, and `*out_why` says why, as a constant text. */
unsigned hk_gate_check(const struct hk_gate *gate, const struct hk_gate_ask *ask, struct hk_gate_pass *out,
                       const char **out_why);
/* localhost, 127.x.y.z or [::1], with a port or without, and nothing else behind it. */
bool hk_gate_names_loopback(const char *host);

#endif
