/* SPDX-License-Identifier: Apache-2.0 */
/* The wire that is libcurl: what curl.c (a transfer's way through it) and easy.c (what it asks us) share. */
#ifndef HK_SINK_HTTP_CURL_H
#define HK_SINK_HTTP_CURL_H

#include <curl/curl.h>

#include "sink/http/h1_framing.h"
#include "sink/http/impl.h"
#include "sink/http/loop.h"

/* Each name that is being resolved is a thread of libcurl's, and a dead name server holds it for half a minute. */
#define HK_HTTP_RESOLVING_MAX 4
#define HK_HTTP_ABANDONED_MS  5000 /* how long a thread that nobody waits for any more counts */

#define HK_THROUGH_NAMES    8
#define HK_THROUGH_HOST_MAX 256

struct hk_curl_transfer {
    struct hk_http_transfer t; /* first */
    CURL *easy;
    struct curl_slist lines[HK_REQUEST_LINES_MAX + 1];
    char curl_error[CURL_ERROR_SIZE];
    bool with_curl; /* in the multi handle */
    bool resolving;
    bool
        again; /* not over: to be given to libcurl once more, since it was not its turn or its connection was bad */
    unsigned spoiled; /* connections that were */
    int local_port;   /* of the connection that it is on, 0 = none yet */
    bool h1;          /* the answer is one of HTTP/1, and this is what it says of its end: */
    struct hk_h1_framing framing;
    bool proxied;                   /* goes by the sink's proxy, and then: */
    char host[HK_THROUGH_HOST_MAX]; /* the target's, without brackets */
    char aim[HK_IP_TEXT_MAX + 8];   /* the address that the proxy is asked for, as libcurl has it */
    struct curl_slist aim_line;
};

/* A target's name that is looked up here, since a proxy gets an address; host "" = a free place. */
struct hk_through_name {
    struct hk_curl_sink *self;
    char host[HK_THROUGH_HOST_MAX];
    struct hk_lookup *lookup; /* under way */
    struct hk_address addresses[HK_LOOKUP_MAX];
    size_t n, at; /* `at`: where to begin */
    uint64_t known_ms;
};

struct hk_curl_sink {
    struct hk_http_sink base; /* first */
    struct hk_http_loop http;
    struct hk_timer *abandoned;
    size_t n_resolving, n_abandoned; /* the last one is part of n_resolving */
    struct hk_through_name names[HK_THROUGH_NAMES];
};

/* ---- curl.c ---- */

void hk_curl_resolved(struct hk_curl_transfer *c); /* its name is */
void hk_curl_on_ran(void *sink);

/* ---- through.c: proxies ---- */

enum hk_through {
    HK_THROUGH_READY = 0, /* libcurl may have it */
    HK_THROUGH_WAITS,     /* for its target's name */
    HK_THROUGH_OVER       /* it has ended */
};

/* Does it go by the proxy? False: it has ended. */
bool hk_through_begin(struct hk_curl_transfer *c);
/* Finds and checks the address that the proxy is asked for. */
enum hk_through hk_through_aim(struct hk_curl_transfer *c);
/* Tells the handle which way to go. False: out of memory, or not for this libcurl. */
bool hk_through_set(CURL *easy, const struct hk_proxy *proxy, bool proxied);
/* Was it the proxy that failed? Then the transfer's fault and text say so. */
bool hk_through_judge(struct hk_curl_transfer *c, CURLcode code);
void hk_through_fini(struct hk_curl_sink *self);

/* ---- easy.c ---- */

/* The connection that is about to carry this request holds bytes that came, were decrypted, and were read by nobody. They
 * lie in no socket, and the next reader would take them for its answer. Known of OpenSSL only. */
bool hk_curl_tls_left(CURL *easy); /* tls.c */

bool hk_curl_easy_init(struct hk_curl_transfer *c); /* false: out of memory */
/* Puts the request into `easy`. False: out of memory. */
bool hk_curl_easy_load(struct hk_curl_transfer *c);

#endif
