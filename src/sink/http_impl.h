/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP sink share: http.c (a delivery's life), http_easy.c (what libcurl asks us) and http_open.c
 * (options). */
#ifndef HK_SINK_HTTP_IMPL_H
#define HK_SINK_HTTP_IMPL_H

#include <curl/curl.h>

#include "base/buf.h"
#include "base/cidr.h"
#include "sink/http.h"
#include "sink/http_loop.h"
#include "sink/request.h"
#include "sink/response.h"

/* Each name that is being resolved is a thread of libcurl's, and a dead name server holds it for half a minute. */
#define HK_HTTP_RESOLVING_MAX 4
/* After an address was refused, the name's others have this long to be tried: libcurl may wait for minutes. */
#define HK_HTTP_BLOCKED_MS   1000
#define HK_HTTP_ABANDONED_MS 5000 /* how long a thread that nobody waits for any more counts */
#define HK_HTTP_ERROR_MAX    320

struct hk_http_transfer {
    struct hk_http_transfer *next, *prev;
    struct hk_http_sink *self;
    CURL *easy;
    struct hk_timer *timer;
    struct hk_request request;
    struct curl_slist lines[HK_REQUEST_LINES_MAX + 1];
    struct hk_response response;
    char curl_error[CURL_ERROR_SIZE];

    hk_sink_done_fn *done;
    void *arg;
    size_t payload_bytes;
    uint64_t start_ms, deadline_ms;
    uint64_t connect_ms; /* when it began to connect, 0 = not yet (it waits for a connection) */
    uint64_t request_ms; /* when the request began to go out */
    uint64_t window_ms;  /* when the present window for the speed began */
    uint64_t window_bytes;
    unsigned
        requests; /* times that a request went out: libcurl repeats it when a used connection turns out dead */
    bool with_curl; /* in the multi handle */
    bool resolving;
    bool
        again; /* not over: to be given to libcurl once more, since it was not its turn or its connection was bad */
    unsigned spoiled;    /* connections that were */
    bool blocked, tried; /* some address was refused; some was not */
    uint64_t blocked_ms; /* when the last one was */
    enum hk_response_next stop;
    char address[HK_IP_TEXT_MAX + 16];

    /* the verdict */
    enum hk_fault fault;
    int status;
    bool possibly_delivered;
    uint64_t duration_ms;
    char error[HK_HTTP_ERROR_MAX];
};

struct hk_http_list {
    struct hk_http_transfer *first, *last;
};

struct hk_http_sink {
    struct hk_sink sink;
    struct hk_loop *loop;
    struct hk_http_loop http;
    struct hk_timer *soon, *abandoned;
    struct hk_request_base base;
    char *url, *method, *ca_file, *cert_file, *key_file;
    bool tls;
    struct hk_cidr *allow;
    size_t n_allow;
    uint64_t connect_timeout_ms, first_byte_timeout_ms, low_speed_ms, max_age_ms;
    uint32_t low_speed_bytes, max_connections;
    struct hk_http_list live, waiting, ended, spare;
    size_t n_spare, n_resolving, n_abandoned; /* the last one is part of n_resolving */
    struct hk_buf shown_request, shown_response;
    unsigned depth; /* > 0: inside one of our callbacks from the loop */
    bool closed;    /* close was called there */
};

extern const struct hk_sink_ops hk_http_ops;

/* http.c */
void hk_http_say(struct hk_http_transfer *t, const char *text); /* sets t->error, printable */
void hk_http_resolved(struct hk_http_transfer *t);              /* its name is */
void hk_http_on_ran(void *sink);
void hk_http_on_soon(void *sink);
void hk_http_on_abandoned(void *sink);
void hk_http_on_deadline(void *transfer);

/* http_easy.c */
struct hk_http_transfer *hk_http_transfer_new(struct hk_http_sink *self); /* NULL: out of memory */
void hk_http_transfer_free(struct hk_http_transfer *t);
void hk_http_transfer_load(struct hk_http_transfer *t,
                           const struct hk_message *msg); /* puts the request into `easy` */

/* http_open.c */
void hk_http_destroy(struct hk_http_sink *self);

#endif
