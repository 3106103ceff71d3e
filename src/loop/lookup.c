/* SPDX-License-Identifier: Apache-2.0 */
/* Names. The system's resolver blocks, up to half a minute when its server is dead, and cannot be told to stop: so each
 * question gets a thread of its own, which outlives the one who asked if it must. Both hold the lookup, and the last one
 * frees it. */
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/str.h"
#include "loop/loop.h"

struct hk_lookup {
    pthread_mutex_t lock; /* guards all below */
    struct hk_wake *wake; /* NULL: nobody waits any more */
    bool done;            /* the thread's part */
    int error;            /* of getaddrinfo */
    struct hk_address addresses[HK_LOOKUP_MAX];
    size_t n;

    hk_lookup_fn *fn; /* the loop's alone */
    void *arg;
    char host[256]; /* before the thread began */
};

static void destroy(struct hk_lookup *lookup)
{
    pthread_mutex_destroy(&lookup->lock);
    hk_mem_free(lookup);
}

size_t hk_loopbacks(struct hk_address *out)
{
    out[0] = (struct hk_address){.ip = {.addr = {[15] = 1}, .v6 = true}};
    out[1] = (struct hk_address){.ip = {.addr = {127, 0, 0, 1}}};
    return 2;
}

bool hk_address_of(const struct sockaddr *at, size_t len, struct hk_address *out)
{
    *out = (struct hk_address){.ip = {.v6 = at->sa_family == AF_INET6}};
    if (at->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, (const void *)at, sizeof in);
        memcpy(out->ip.addr, &in.sin_addr, 4);
        return true;
    }
    if (at->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in6;
        memcpy(&in6, (const void *)at, sizeof in6);
        memcpy(out->ip.addr, &in6.sin6_addr, 16);
        out->scope = in6.sin6_scope_id;
        return true;
    }
    return false;
}

static size_t read_addresses(const struct addrinfo *list, struct hk_address out[HK_LOOKUP_MAX])
{
    size_t n = 0;
    for (; list && n < HK_LOOKUP_MAX; list = list->ai_next)
        n += hk_address_of(list->ai_addr, list->ai_addrlen, &out[n]);
    return n;
}

static void *thread_main(void *arg)
{
    struct hk_lookup *lookup = arg;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int error = getaddrinfo(lookup->host, NULL, &hints, &list);

    pthread_mutex_lock(&lookup->lock);
    lookup->n = error == 0 ? read_addresses(list, lookup->addresses) : 0;
    lookup->error = error;
    lookup->done = true;
    bool wanted = lookup->wake != NULL;
    if (wanted)
        hk_wake_send(lookup->wake);
    pthread_mutex_unlock(&lookup->lock);

    if (error == 0)
        freeaddrinfo(list);
    if (!wanted)
        destroy(lookup);
    return NULL;
}

/* On the loop, when the thread is done with it. */
static void on_wake(void *arg)
{
    struct hk_lookup *lookup = arg;
    pthread_mutex_lock(&lookup->lock);
    bool done = lookup->done;
    pthread_mutex_unlock(&lookup->lock);
    hk_lookup_fn *fn = lookup->fn;
    if (!done || !fn)
        return;
    lookup->fn = NULL;
    const char *error = lookup->error    ? gai_strerror(lookup->error)
                        : lookup->n == 0 ? "the name has no address"
                                         : NULL;
    fn(lookup->arg, error, lookup->addresses, lookup->n); /* may free it */
}

/* Takes no signals: they are the loop's. */
static int start_thread(struct hk_lookup *lookup)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, thread_main, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        (void)pthread_detach(thread);
    return rc;
}

enum hk_code hk_lookup_new(struct hk_loop *loop, const char *host, hk_lookup_fn *fn, void *arg,
                           struct hk_lookup **out_lookup, struct hk_err *err)
{
    struct hk_lookup *lookup = hk_mem_zalloc(1, sizeof *lookup);
    if (!lookup)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    pthread_mutex_init(&lookup->lock, NULL);
    lookup->fn = fn;
    lookup->arg = arg;
    enum hk_code rc = hk_str_copy(lookup->host, sizeof lookup->host, hk_str_of(host))
                          ? hk_wake_new(loop, on_wake, lookup, &lookup->wake, err)
                          : hk_err_set(err, HK_TOOBIG, "a name of more than 255 characters");
    int error = rc == HK_OK ? start_thread(lookup) : 0;
    if (error)
        rc = hk_err_set(err, HK_IO, "cannot start a thread: error %d", error);
    if (rc != HK_OK) {
        hk_wake_free(lookup->wake);
        destroy(lookup);
        return rc;
    }
    *out_lookup = lookup;
    return HK_OK;
}

void hk_lookup_free(struct hk_lookup *lookup)
{
    if (!lookup)
        return;
    pthread_mutex_lock(&lookup->lock);
    struct hk_wake *wake = lookup->wake;
    lookup->wake = NULL;
    bool done = lookup->done;
    pthread_mutex_unlock(&lookup->lock);
    hk_wake_free(wake);
    if (done)
        destroy(lookup);
}
