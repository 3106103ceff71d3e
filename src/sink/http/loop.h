/* SPDX-License-Identifier: Apache-2.0 */
/* A libcurl multi handle on our loop: its sockets become watches, its timeouts a timer. */
#ifndef HK_SINK_HTTP_LOOP_H
#define HK_SINK_HTTP_LOOP_H

#include <stddef.h>

#include <curl/curl.h>
#include <hikyaku/error.h>

#include "loop/loop.h"

struct hk_http_socket;

struct hk_http_loop {
    CURLM *multi;
    struct hk_loop *loop;
    struct hk_timer *timer;
    struct hk_http_socket **sockets; /* all that libcurl told us about, or that we opened for it */
    size_t n, room;
    CURL *lost[16]; /* whose attempt to connect failed, in this call of libcurl */
    size_t n_lost;
    bool bounded;    /* a socket is, perhaps */
    bool spent;      /* libcurl had no memory for its own tables */
    hk_loop_fn *ran; /* after libcurl worked: there may be messages to read */
    void *arg;
};

enum hk_code hk_http_loop_init(struct hk_http_loop *hl, struct hk_loop *loop, hk_loop_fn *ran, void *arg,
                               struct hk_err *err) HK_MUSTCHECK;
/* From now on at most so many bytes may come in on this connection until it is used again: libcurl shows us what a
 * chunk holds, but not what frames it, and that can go on for ever. Seen by the kernel's count; without one, no bound. */
void hk_http_loop_bound(struct hk_http_loop *hl, int local_port, uint64_t bytes);
/* The port of one on which more came in, 0 when there is none. For `ran`: libcurl has read what is to be kept. */
int hk_http_loop_over(struct hk_http_loop *hl);
/* All easy handles must have been removed. */
void hk_http_loop_fini(struct hk_http_loop *hl);

/* For CURLOPT_OPENSOCKETFUNCTION, to be called by one's own; CURL_SOCKET_BAD when it fails. */
curl_socket_t hk_http_loop_open(struct hk_http_loop *hl, const struct curl_sockaddr *address);
/* CURLOPT_CLOSESOCKETFUNCTION, with `hl` as its data. */
int hk_http_loop_close(void *hl, curl_socket_t fd);
/* The connection with this port on our side stands, and is about to carry a request. False when something came in while
 * it was idle: it was closed, or that would be taken for the answer to the next request. Such a connection is made
 * useless, so that libcurl makes another. (By its port, for libcurl does not tell the descriptor at this point.) */
bool hk_http_loop_use(struct hk_http_loop *hl, int local_port);
/* Whether it stands and nothing is under way on it. */
bool hk_http_loop_idle(struct hk_http_loop *hl, int local_port);
/* Its answer leaves doubt about where it ends: no other request goes out on it. */
void hk_http_loop_taint(struct hk_http_loop *hl, int local_port);

#endif
