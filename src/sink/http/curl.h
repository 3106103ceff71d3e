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
};

struct hk_curl_sink {
    struct hk_http_sink base; /* first */
    struct hk_http_loop http;
    struct hk_timer *abandoned;
    size_t n_resolving, n_abandoned; /* the last one is part of n_resolving */
};

/* ---- curl.c ---- */

void hk_curl_resolved(struct hk_curl_transfer *c); /* its name is */
void hk_curl_on_ran(void *sink);

/* ---- easy.c ---- */

/* The connection that is about to carry this request holds bytes that came, were decrypted, and were read by nobody. They
 * lie in no socket, and the next reader would take them for its answer. Known of OpenSSL only. */
bool hk_curl_tls_left(CURL *easy); /* tls.c */

bool hk_curl_easy_init(struct hk_curl_transfer *c); /* false: out of memory */
/* Puts the request into `easy`. False: out of memory. */
bool hk_curl_easy_load(struct hk_curl_transfer *c);

#endif
