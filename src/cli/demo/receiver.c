/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's receiver: a real HTTP server (libmicrohttpd, a thread per connection) that misbehaves as receivers do, and
 * keeps count of what it took, so that the demo's last line is the receiver's word and not the relay's. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hikyaku/rng.h>
#include <microhttpd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/demo/demo.h"

enum {
    ORDERS = 64,
    BODY_MAX = 256,
    HANG_MS = 2500,
    HANG_ON = 7,
    LIMIT_EVERY = 9
};

struct hk_demo_receiver {
    struct MHD_Daemon *server;
    pthread_mutex_t lock; /* all below */
    struct hk_rng rng;
    struct hk_demo_counts counts;
    unsigned taken[ORDERS]; /* how often each order was accepted */
};

struct request {
    char body[BODY_MAX];
    size_t len;
};

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

/* {"order":N… */
static unsigned order_of(const struct request *request)
{
    struct hk_str rest = {request->body, request->len};
    (void)hk_str_cut(&rest, ':');
    size_t n = 0;
    while (n < rest.len && hk_ascii_isdigit(rest.ptr[n]))
        n++;
    uint64_t order = 0;
    if (hk_parse_u64((struct hk_str){rest.ptr, n}, &order, NULL) != HK_OK || order >= ORDERS)
        return 0;
    return (unsigned)order;
}

static unsigned take(struct hk_demo_receiver *r, unsigned order)
{
    r->counts.accepted++;
    if (r->taken[order]++ == 0)
        r->counts.unique++;
    return MHD_HTTP_OK;
}

/* Decides under the lock; hangs outside of it. */
static unsigned judge(struct hk_demo_receiver *r, const struct request *request)
{
    unsigned order = order_of(request);
    unsigned status = 0;
    bool hang = false;
    (void)pthread_mutex_lock(&r->lock);
    unsigned n = ++r->counts.requests;
    if (hk_str_containsi((struct hk_str){request->body, request->len}, hk_str_of("poison"))) {
        r->counts.refused++;
        status = MHD_HTTP_UNPROCESSABLE_CONTENT;
    } else if (order == HANG_ON && r->counts.hung == 0) {
        r->counts.hung++;
        hang = true;
        status = take(r, order); /* acts, and answers too late: the worst case, a repeat will come */
    } else if (n % LIMIT_EVERY == 0) {
        r->counts.limited++;
        status = MHD_HTTP_TOO_MANY_REQUESTS;
    } else if (hk_rng_upto(&r->rng, 99) < 30) {
        r->counts.unavailable++;
        status = MHD_HTTP_SERVICE_UNAVAILABLE;
    } else {
        status = take(r, order);
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (hang)
        sleep_ms(HANG_MS);
    return status;
}

/* A receiver that says what it wants can be helped: the dashboard and `dead groups` show these words. */
static const char *words_of(unsigned status)
{
    if (status == MHD_HTTP_UNPROCESSABLE_CONTENT)
        return "{\"error\":\"the field poison is not allowed\"}";
    return status == MHD_HTTP_SERVICE_UNAVAILABLE ? "{\"error\":\"the shop is restarting\"}" : "";
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status)
{
    const char *words = words_of(status);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(words), (void *)(uintptr_t)words, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    if (words[0])
        (void)MHD_add_response_header(response, "Content-Type", "application/json");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS)
        (void)MHD_add_response_header(response, "Retry-After", "1");
    enum MHD_Result rc = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *size,
                              void **state)
{
    (void)url;
    (void)method;
    (void)version;
    struct request *request = *state;
    if (!request) {
        *state = hk_mem_zalloc(1, sizeof *request);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*size) {
        size_t room = sizeof request->body - request->len;
        size_t n = *size < room ? *size : room;
        memcpy(request->body + request->len, data, n);
        request->len += n;
        *size = 0;
        return MHD_YES;
    }
    return answer(connection, judge(cls, request));
}

static void completed(void *cls, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    (void)cls;
    (void)connection;
    (void)code;
    hk_mem_free(*state);
    *state = NULL;
}

enum hk_code hk_demo_receiver_start(uint64_t seed, struct hk_demo_receiver **out_receiver, unsigned *out_port,
                                    struct hk_err *err)
{
    struct hk_demo_receiver *r = hk_mem_zalloc(1, sizeof *r);
    if (!r)
        return hk_err_set(err, HK_NOMEM, "out of memory for the demo's receiver");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)pthread_mutex_init(&r->lock, NULL);
    hk_rng_seed(&r->rng, seed, 1);
    r->server = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL,
                                 NULL, handle, r, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at,
                                 MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        r->server ? MHD_get_daemon_info(r->server, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info) {
        hk_demo_receiver_stop(r);
        return hk_err_set(err, HK_IO, "the demo's receiver cannot listen on 127.0.0.1");
    }
    *out_port = info->port;
    *out_receiver = r;
    return HK_OK;
}

struct hk_demo_counts hk_demo_receiver_counts(struct hk_demo_receiver *r)
{
    (void)pthread_mutex_lock(&r->lock);
    struct hk_demo_counts counts = r->counts;
    (void)pthread_mutex_unlock(&r->lock);
    return counts;
}

bool hk_demo_receiver_has(struct hk_demo_receiver *r, unsigned order)
{
    (void)pthread_mutex_lock(&r->lock);
    bool has = order < ORDERS && r->taken[order] > 0;
    (void)pthread_mutex_unlock(&r->lock);
    return has;
}

void hk_demo_receiver_stop(struct hk_demo_receiver *r)
{
    if (!r)
        return;
    if (r->server)
        MHD_stop_daemon(r->server);
    (void)pthread_mutex_destroy(&r->lock);
    hk_mem_free(r);
}
