/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of our own HTTP/1.1: making them, writing to them, reading from them, and telling which can be used again.
 * A connection is watched for reading as long as it stands, so that a request costs no more than one system call to
 * write it, one to read its answer, and one to see that nothing else lies there. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/socket.h"
#include "sink/http/h1.h"

#define KEEPALIVE_S 60

/* ---- the idle ones, a stack ---- */

static void push_idle(struct hk_h1_conn *conn)
{
    struct hk_h1_sink *sink = conn->sink;
    conn->phase = HK_H1_IDLE;
    conn->owner = NULL;
    conn->prev = NULL;
    conn->next = sink->idle;
    if (sink->idle)
        sink->idle->prev = conn;
    sink->idle = conn;
}

static void unlink_idle(struct hk_h1_conn *conn)
{
    if (conn->phase != HK_H1_IDLE)
        return;
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        conn->sink->idle = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
}

/* ---- making and ending ---- */

static void on_event(void *arg, unsigned events);

static socklen_t sockaddr_of(const struct hk_address *address, uint16_t port, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (address->ip.v6) {
        struct sockaddr_in6 in6 = {
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = address->scope};
        memcpy(&in6.sin6_addr, address->ip.addr, 16);
        memcpy(out, &in6, sizeof in6);
        return sizeof in6;
    }
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&in.sin_addr, address->ip.addr, 4);
    memcpy(out, &in, sizeof in);
    return sizeof in;
}

static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S},
                   {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_S}};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

/* A socket that is being connected; -1: `*out_errno`. */
static int start_connecting(const struct hk_address *address, uint16_t port, int *out_errno)
{
    struct sockaddr_storage to;
    socklen_t len = sockaddr_of(address, port, &to);
    int fd = hk_socket(to.ss_family, SOCK_STREAM, IPPROTO_TCP);
    if (fd >= 0) {
        set_options(fd);
        if (connect(fd, (const struct sockaddr *)&to, len) == 0 || errno == EINPROGRESS)
            return fd;
    }
    *out_errno = errno;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

enum hk_code hk_h1_conn_new(struct hk_h1_transfer *owner, const struct hk_address *address,
                            struct hk_h1_conn **out_conn, int *out_errno)
{
    struct hk_h1_sink *sink = (struct hk_h1_sink *)owner->t.self;
    struct hk_h1_conn *conn = hk_mem_zalloc(1, sizeof *conn);
    if (!conn)
        return HK_NOMEM;
    conn->sink = sink;
    conn->owner = owner;
    conn->address = *address;
    conn->made_ms = hk_loop_round_ms(sink->base.loop);
    conn->fd = start_connecting(address, sink->port, out_errno);
    if (conn->fd < 0) {
        hk_mem_free(conn);
        return HK_IO;
    }
    if (hk_watch_new(sink->base.loop, conn->fd, on_event, conn, &conn->watch, NULL) != HK_OK) {
        (void)close(conn->fd);
        hk_mem_free(conn);
        return HK_NOMEM;
    }
    hk_watch_set(conn->watch, HK_WATCH_WRITE);
    sink->n_conns++;
    *out_conn = conn;
    return HK_OK;
}

void hk_h1_conn_free(struct hk_h1_conn *conn)
{
    if (!conn)
        return;
    unlink_idle(conn);
    conn->sink->n_conns--;
    hk_watch_free(conn->watch); /* before its descriptor is closed */
    (void)close(conn->fd);
    hk_mem_free(conn);
}

/* ---- using them again ---- */

void hk_h1_conn_own(struct hk_h1_conn *conn, struct hk_h1_transfer *owner)
{
    unlink_idle(conn);
    conn->owner = owner;
    conn->phase = HK_H1_BUSY;
}

void hk_h1_conn_rest(struct hk_h1_conn *conn, uint64_t idle_ms)
{
    push_idle(conn);
    conn->used = true;
    conn->idle_until_ms = hk_loop_round_ms(conn->sink->base.loop) + idle_ms;
}

/* Something that came in while nobody had asked would be taken for the answer to the next request. */
static bool is_clean(const struct hk_h1_conn *conn)
{
    char byte;
    return recv(conn->fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

struct hk_h1_conn *hk_h1_conn_take(struct hk_h1_sink *sink)
{
    uint64_t now_ms = hk_loop_round_ms(sink->base.loop);
    while (sink->idle) {
        struct hk_h1_conn *conn = sink->idle;
        if (now_ms < conn->idle_until_ms && now_ms < conn->made_ms + sink->base.max_age_ms && is_clean(conn))
            return conn;
        hk_h1_conn_free(conn);
    }
    return NULL;
}

/* ---- writing ---- */

static size_t whole_bytes(const struct hk_h1_transfer *h)
{
    return h->t.request.text.len + h->t.payload.len;
}

static ssize_t write_some(const struct hk_h1_conn *conn)
{
    const struct hk_h1_transfer *h = conn->owner;
    struct hk_str head = {h->t.request.text.data, h->t.request.text.len}, payload = h->t.payload;
    size_t of_head = h->sent < head.len ? h->sent : head.len, of_payload = h->sent - of_head;

    /* sendmsg reads what the pointers lead to; they are not const for readv's sake */
    union {
        const char *in;
        void *out;
    } at[2] = {{head.ptr + of_head}, {of_payload ? payload.ptr + of_payload : payload.ptr}};

    size_t left = payload.len - of_payload;
    struct iovec parts[2] = {{at[0].out, head.len - of_head},
                             {at[1].out, left < HK_H1_WRITE_BYTES ? left : HK_H1_WRITE_BYTES}};
    size_t first = parts[0].iov_len ? 0 : 1;
    struct msghdr msg = {.msg_iov = parts + first, .msg_iovlen = parts[1].iov_len ? 2 - first : 1 - first};
    return sendmsg(conn->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void hk_h1_conn_send(struct hk_h1_conn *conn)
{
    struct hk_h1_transfer *h = conn->owner;
    ssize_t n = write_some(conn);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        conn->broken = errno;
        if (conn->used && h->sent == 0)
            hk_h1_stale(conn);
        else if (h->answered)
            hk_h1_lost(conn, conn->broken);
        else
            hk_watch_set(conn->watch, HK_WATCH_READ); /* an answer may lie there, or else the reason */
        return;
    }
    h->sent += n > 0 ? (size_t)n : 0;
    bool whole = h->sent == whole_bytes(h);
    unsigned reading = conn->ended ? 0 : HK_WATCH_READ;
    hk_watch_set(conn->watch, whole ? HK_WATCH_READ : reading | HK_WATCH_WRITE);
    if (whole)
        hk_h1_all_out(conn);
}

/* ---- from the loop ---- */

static void try_connect(struct hk_h1_conn *conn)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error)
        hk_h1_not_connected(conn, error);
    else
        hk_h1_connected(conn);
}

/* False: the connection may be gone. */
static bool read_some(struct hk_h1_conn *conn, bool failed)
{
    struct hk_h1_sink *sink = conn->sink;
    ssize_t n = recv(conn->fd, sink->room, HK_H1_READ_BYTES, MSG_DONTWAIT);
    if (n > 0) {
        hk_h1_came(conn, (struct hk_str){sink->room, (size_t)n});
        return false;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !failed)
        return true;
    hk_h1_lost(conn, n < 0 ? errno : 0);
    return false;
}

static void on_event(void *arg, unsigned events)
{
    struct hk_h1_conn *conn = arg;
    struct hk_http_sink *sink = &conn->sink->base;
    hk_http_enter(sink);
    switch (conn->phase) {
    case HK_H1_CONNECTING:
        try_connect(conn);
        break;
    case HK_H1_IDLE: /* nobody asked: whatever it is, the connection is no good any more */
        hk_h1_conn_free(conn);
        break;
    case HK_H1_BUSY:
        if ((!(events & HK_WATCH_READ) || conn->ended || read_some(conn, events & HK_WATCH_ERROR)) &&
            (events & HK_WATCH_WRITE) && conn->owner->sent < whole_bytes(conn->owner))
            hk_h1_conn_send(conn);
        break;
    }
    hk_http_leave(sink);
}
