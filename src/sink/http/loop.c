/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl on our loop. Three kinds of descriptors come along:
 * - connections that stand: their watch stays where it is between two requests, for taking it off and putting it on
 *   again would be two system calls for each request. It is taken off for good in the close callback, before the
 *   descriptor is closed, since libuv aborts on a watched descriptor that is gone.
 * - connections in the making, which libcurl 7.88 closes behind our back when they fail: unwatched as soon as it loses
 *   interest in them.
 * - libcurl's own (the resolver thread's socket pair): the same. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/tcp.h> /* glibc's struct tcp_info ends before what we need */
#endif

#include "base/mem.h"
#include "base/socket.h"
#include "sink/http/loop.h"

struct hk_http_socket {
    struct hk_http_loop *hl;
    curl_socket_t fd;
    struct hk_watch *watch; /* NULL until libcurl wants something of it */
    unsigned wanted;
    uint64_t bound_bytes; /* of what ever came in on it; 0 = none */
    int port;             /* our end's, 0 = not asked yet */
    bool ours;            /* opened by hk_http_loop_open */
    bool tainted;         /* no other request may go out on it */
    bool stands;          /* connected, TLS included: libcurl closes it by hk_http_loop_close only */
};

static size_t find(const struct hk_http_loop *hl, curl_socket_t fd)
{
    size_t i = 0;
    while (i < hl->n && hl->sockets[i]->fd != fd)
        i++;
    return i;
}

static void drop(struct hk_http_loop *hl, size_t i)
{
    struct hk_http_socket *s = hl->sockets[i];
    hl->sockets[i] = hl->sockets[--hl->n];
    hk_watch_free(s->watch);
    hk_mem_free(s);
}

static bool make_room(struct hk_http_loop *hl)
{
    if (hl->n < hl->room)
        return true;
    size_t room = hl->room ? 2 * hl->room : 8;
    struct hk_http_socket **sockets = hk_mem_resize(hl->sockets, room * sizeof(struct hk_http_socket *));
    if (!sockets)
        return false;
    hl->sockets = sockets;
    hl->room = room;
    return true;
}

static struct hk_http_socket *add(struct hk_http_loop *hl, curl_socket_t fd, bool ours)
{
    struct hk_http_socket *s = make_room(hl) ? hk_mem_zalloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->hl = hl;
    s->fd = fd;
    s->ours = ours;
    hl->sockets[hl->n++] = s;
    return s;
}

/* ---- idle connections ---- */

/* libcurl before 8.1 reads whatever lies in a connection as the answer to its next request: a stray second answer
 * would confirm a message that nobody has seen. What is there is thrown away and no more is taken in, whereupon libcurl
 * finds the connection dead. (HTTP/2 frames and TLS alerts on an idle connection cost a reconnect as well.) */
static bool spoiled(struct hk_http_socket *s)
{
    char bytes[4096];
    bool any = false;
    for (;;) {
        ssize_t n = recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        any = true;
        if (n <= 0)
            break;
    }
    if (any)
        (void)shutdown(s->fd, SHUT_RD);
    return any;
}

/* No more is taken in or sent: libcurl finds it dead. */
static bool end_of(const struct hk_http_socket *s)
{
    (void)shutdown(s->fd, SHUT_RDWR);
    return true;
}

static int local_port(struct hk_http_socket *s)
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof at;
    if (s->port || !s->ours || getsockname(s->fd, (struct sockaddr *)&at, &len) != 0)
        return s->port;
    if (at.ss_family == AF_INET)
        s->port = ntohs(((struct sockaddr_in *)&at)->sin_port);
    else if (at.ss_family == AF_INET6)
        s->port = ntohs(((struct sockaddr_in6 *)&at)->sin6_port);
    return s->port;
}

bool hk_http_loop_use(struct hk_http_loop *hl, int port)
{
    bool good = true;
    for (size_t i = 0; i < hl->n; i++) {
        struct hk_http_socket *s = hl->sockets[i];
        if (!s->ours || local_port(s) != port)
            continue;
        s->bound_bytes = 0;
        if (s->stands && !s->wanted && (s->tainted ? end_of(s) : spoiled(s)))
            good = false;
        s->stands = true;
    }
    return good;
}

bool hk_http_loop_idle(struct hk_http_loop *hl, int port)
{
    for (size_t i = 0; i < hl->n; i++) {
        struct hk_http_socket *s = hl->sockets[i];
        if (s->ours && local_port(s) == port && s->stands && !s->wanted)
            return true;
    }
    return false;
}

void hk_http_loop_taint(struct hk_http_loop *hl, int port)
{
    for (size_t i = 0; i < hl->n; i++) {
        if (hl->sockets[i]->ours && local_port(hl->sockets[i]) == port)
            hl->sockets[i]->tainted = true;
    }
}

/* ---- answers without end ---- */

static uint64_t came_in(curl_socket_t fd)
{
#ifdef __linux__
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t len = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
        return info.tcpi_bytes_received;
#else
    (void)fd;
#endif
    return 0;
}

void hk_http_loop_bound(struct hk_http_loop *hl, int port, uint64_t bytes)
{
    for (size_t i = 0; i < hl->n; i++) {
        struct hk_http_socket *s = hl->sockets[i];
        if (!s->ours || local_port(s) != port || s->bound_bytes)
            continue;
        s->bound_bytes = came_in(s->fd) + bytes;
        hl->bounded = true;
    }
}

int hk_http_loop_over(struct hk_http_loop *hl)
{
    bool any = false;
    for (size_t i = 0; hl->bounded && i < hl->n; i++) {
        struct hk_http_socket *s = hl->sockets[i];
        if (s->bound_bytes && came_in(s->fd) > s->bound_bytes) {
            s->bound_bytes = 0;
            return s->port;
        }
        any |= s->bound_bytes != 0;
    }
    hl->bounded = any;
    return 0;
}

/* ---- from the loop to libcurl ---- */

/* libcurl 7.88 tries a name's third address only when half of the time to connect is over, though the second was refused
 * at once: it does not look at the transfer again. Pausing it and letting it go makes it do so. */
static void nudge(CURL *easy)
{
    curl_off_t connected_us = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    if (connected_us == 0 && curl_easy_pause(easy, CURLPAUSE_RECV) == CURLE_OK)
        (void)curl_easy_pause(easy, CURLPAUSE_CONT);
}

static void act(struct hk_http_loop *hl, curl_socket_t fd, int events)
{
    int running = 0;
    hl->n_lost = 0;
    hl->spent |= curl_multi_socket_action(hl->multi, fd, events, &running) == CURLM_OUT_OF_MEMORY;
    while (hl->n_lost > 0)
        nudge(hl->lost[--hl->n_lost]);
}

static void work(struct hk_http_loop *hl, curl_socket_t fd, int events)
{
    act(hl, fd, events);
    hl->ran(hl->arg);
}

static void on_event(void *arg, unsigned events)
{
    struct hk_http_socket *s = arg;
    if (!s->wanted) {
        hk_watch_set(s->watch, 0);
        (void)spoiled(s);
        return;
    }
    int mask = (events & HK_WATCH_READ ? CURL_CSELECT_IN : 0) |
               (events & HK_WATCH_WRITE ? CURL_CSELECT_OUT : 0) |
               (events & HK_WATCH_ERROR ? CURL_CSELECT_ERR : 0);
    work(s->hl, s->fd, mask);
}

/* libcurl announces a time-out once. Should its clock be a little behind ours, it finds nothing to do yet and waits for
 * a call that would never come: so it is asked. */
static void on_timer(void *arg)
{
    struct hk_http_loop *hl = arg;
    act(hl, CURL_SOCKET_TIMEOUT, 0);
    long left_ms = -1;
    (void)curl_multi_timeout(hl->multi, &left_ms);
    if (left_ms >= 0 && !hk_timer_running(hl->timer))
        hk_timer_start(hl->timer, left_ms > 0 ? (uint64_t)left_ms : 1);
    hl->ran(hl->arg);
}

/* ---- from libcurl to the loop ---- */

static int timer_callback(CURLM *multi, long timeout_ms, void *arg)
{
    (void)multi;
    struct hk_http_loop *hl = arg;
    if (timeout_ms < 0)
        hk_timer_stop(hl->timer);
    else
        hk_timer_start(hl->timer, (uint64_t)timeout_ms);
    return 0;
}

static void unwatch(struct hk_http_loop *hl, CURL *easy, curl_socket_t fd)
{
    size_t i = find(hl, fd);
    if (i == hl->n)
        return;
    struct hk_http_socket *s = hl->sockets[i];
    s->wanted = 0;
    s->bound_bytes = 0; /* the answer is over */
    if (s->stands)
        return;
    hk_watch_free(s->watch);
    s->watch = NULL;
    if (!s->ours)
        drop(hl, i);
    else if (hl->n_lost < sizeof hl->lost / sizeof hl->lost[0])
        hl->lost[hl->n_lost++] = easy;
}

static void watch(struct hk_http_socket *s, unsigned wanted)
{
    if (!s->watch && hk_watch_new(s->hl->loop, s->fd, on_event, s, &s->watch, NULL) != HK_OK)
        return;
    s->wanted = wanted;
    hk_watch_set(s->watch, wanted);
}

/* Out of memory is answered by doing nothing, for an error would end all transfers of this handle for ever; the one
 * that is not watched ends at its deadline. */
static int socket_callback(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)socket_arg;
    struct hk_http_loop *hl = arg;
    if (what == CURL_POLL_REMOVE) {
        unwatch(hl, easy, fd);
        return 0;
    }
    size_t i = find(hl, fd);
    struct hk_http_socket *s = i < hl->n ? hl->sockets[i] : add(hl, fd, false);
    if (s)
        watch(s, (what & CURL_POLL_IN ? HK_WATCH_READ : 0u) | (what & CURL_POLL_OUT ? HK_WATCH_WRITE : 0u));
    return 0;
}

/* An old socket with this number was closed behind our back, and libcurl, which sees numbers only, will not tell again
 * what it wants of it: the new one takes over what the old one was watched for. */
static unsigned forget_namesake(struct hk_http_loop *hl, curl_socket_t fd)
{
    size_t i = find(hl, fd);
    if (i == hl->n)
        return 0;
    unsigned wanted = hl->sockets[i]->wanted;
    drop(hl, i);
    return wanted;
}

curl_socket_t hk_http_loop_open(struct hk_http_loop *hl, const struct curl_sockaddr *address)
{
    int fd = hk_socket(address->family, address->socktype, address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    unsigned wanted = forget_namesake(hl, fd);
    struct hk_http_socket *s = add(hl, fd, true);
    if (!s) {
        (void)close(fd);
        return CURL_SOCKET_BAD;
    }
    if (wanted)
        watch(s, wanted);
    return fd;
}

int hk_http_loop_close(void *arg, curl_socket_t fd)
{
    struct hk_http_loop *hl = arg;
    size_t i = find(hl, fd);
    if (i < hl->n)
        drop(hl, i);
    return close(fd);
}

/* ---- making and ending ---- */

enum hk_code hk_http_loop_init(struct hk_http_loop *hl, struct hk_loop *loop, hk_loop_fn *ran, void *arg,
                               struct hk_err *err)
{
    *hl = (struct hk_http_loop){.loop = loop, .ran = ran, .arg = arg};
    hl->multi = curl_multi_init();
    if (!hl->multi || hk_timer_new(loop, on_timer, hl, &hl->timer) != HK_OK) {
        hk_http_loop_fini(hl);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    curl_multi_setopt(hl->multi, CURLMOPT_SOCKETFUNCTION, socket_callback);
    curl_multi_setopt(hl->multi, CURLMOPT_SOCKETDATA, hl);
    curl_multi_setopt(hl->multi, CURLMOPT_TIMERFUNCTION, timer_callback);
    curl_multi_setopt(hl->multi, CURLMOPT_TIMERDATA, hl);
    return HK_OK;
}

void hk_http_loop_fini(struct hk_http_loop *hl)
{
    if (hl->multi)
        (void)curl_multi_cleanup(hl->multi); /* closes the connections, hence first */
    while (hl->n > 0)
        drop(hl, 0);
    hk_mem_free(hl->sockets);
    hk_timer_free(hl->timer);
    *hl = (struct hk_http_loop){.multi = NULL};
}
