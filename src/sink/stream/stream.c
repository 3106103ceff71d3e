/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's life: LOOKING_UP -> CONNECTING (one address after the other) -> SHAKING_HANDS (TLS) -> OPEN -> OVER. Only the
 * loop moves it on: `step` does what the phase asks for, and `fail` is the only way to OVER. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/socket.h"
#include "base/str.h"
#include "base/url.h"
#include "sink/stream/tls.h"

enum {
    CONNECT_MS = 10000,
    PENDING_MAX = 64 << 20,
    READ_BYTES = 16 << 10, /* as much as a record of TLS holds */
    KEEP_BYTES = 1 << 20,  /* of the buffer, once all of it is out */
    READS_MAX = 16,        /* in a row: then others have their turn */
    WRITE_MAX = 1 << 20,
    KEEPALIVE_S = 60
};

enum phase {
    LOOKING_UP = 0,
    CONNECTING,
    SHAKING_HANDS,
    OPEN,
    OVER
};

struct hk_stream {
    struct hk_loop *loop;
    struct hk_stream_options options; /* host and allow are copies */
    char *host;
    struct hk_cidr *allow;
    enum phase phase;
    struct hk_lookup *lookup;
    struct hk_timer *clock; /* the deadline of what is under way, and whatever is to be told soon */
    struct hk_address addresses[HK_LOOKUP_MAX];
    size_t n_addresses, next;
    uint64_t deadline_ms; /* of all that comes before OPEN */
    int fd;               /* -1 = none */
    struct hk_watch *watch;
    struct hk_tls_session *tls;
    char *out;
    size_t out_len, out_at, out_room;
    uint64_t sent;
    bool write_waits_for_read; /* TLS: a write goes on when something was read … */
    bool read_waits_for_write; /* … and the other way round */
    bool told_drained;
    unsigned depth;
    bool closed;
    struct hk_stream_end end;
    char text[HK_STREAM_ERROR_MAX], address[HK_IP_TEXT_MAX + 16];
};

/* ---- ending ---- */

static void drop_socket(struct hk_stream *s)
{
    hk_watch_free(s->watch); /* before its descriptor is closed */
    s->watch = NULL;
    hk_tls_session_free(s->tls);
    s->tls = NULL;
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    s->write_waits_for_read = s->read_waits_for_write = false;
}

static void free_stream(struct hk_stream *s)
{
    drop_socket(s);
    hk_lookup_free(s->lookup);
    hk_timer_free(s->clock);
    hk_mem_free(s->host);
    hk_mem_free(s->allow);
    hk_mem_free(s->out);
    hk_mem_free(s);
}

/* It may be said from inside a function of ours: it is told from the loop. */
static void fail(struct hk_stream *s, enum hk_fault fault, bool orderly, const char *text)
{
    if (s->phase == OVER)
        return;
    if (text != s->text) {
        size_t n = strlen(text);
        n = n < sizeof s->text ? n : sizeof s->text - 1;
        for (size_t i = 0; i < n; i++)
            s->text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
        s->text[n] = '\0';
    }
    s->phase = OVER;
    s->end = (struct hk_stream_end){.fault = fault, .text = s->text, .orderly = orderly};
    drop_socket(s);
    hk_timer_start(s->clock, 0);
}

static void fail_errno(struct hk_stream *s, enum hk_fault fault, const char *what, int error)
{
    char text[HK_STREAM_ERROR_MAX];
    (void)snprintf(text, sizeof text, "%s: %s", what, strerror(error));
    fail(s, fault, false, text);
}

static void enter(struct hk_stream *s)
{
    s->depth++;
}

static void leave(struct hk_stream *s)
{
    if (--s->depth == 0 && s->closed)
        free_stream(s);
}

/* ---- connecting ---- */

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

static bool is_allowed(struct hk_stream *s, const struct hk_ip *ip)
{
    char text[HK_IP_TEXT_MAX];
    if (hk_ip_allowed(ip, s->allow, s->options.n_allow))
        return true;
    (void)hk_ip_format(ip, text);
    (void)snprintf(s->text, sizeof s->text, "blocked: %s is a %s address; `allow` lists the exceptions", text,
                   hk_ip_special(ip));
    return false;
}

static bool start_connecting(struct hk_stream *s, const struct hk_address *address)
{
    struct sockaddr_storage to;
    socklen_t len = sockaddr_of(address, s->options.port, &to);
    char text[HK_IP_TEXT_MAX];
    (void)hk_ip_format(&address->ip, text);
    (void)snprintf(s->address, sizeof s->address, address->ip.v6 ? "[%s]:%u" : "%s:%u", text,
                   (unsigned)s->options.port);
    s->fd = hk_socket(to.ss_family, SOCK_STREAM, IPPROTO_TCP);
    if (s->fd < 0)
        return false;
    set_options(s->fd);
    if (connect(s->fd, (const struct sockaddr *)&to, len) != 0 && errno != EINPROGRESS)
        return false;
    if (hk_watch_new(s->loop, s->fd, on_event, s, &s->watch, NULL) != HK_OK) {
        errno = ENOMEM;
        return false;
    }
    hk_watch_set(s->watch, HK_WATCH_WRITE);
    return true;
}

/* Each address that is left gets an equal part of the time that is left. */
static void arm_connect(struct hk_stream *s, size_t left)
{
    uint64_t now_ms = hk_loop_now_ms(s->loop);
    uint64_t rest_ms = s->deadline_ms > now_ms ? s->deadline_ms - now_ms : 0;
    hk_timer_start(s->clock, rest_ms / (left ? left : 1));
}

/* `why`: how the address before failed. The first that may be connected to; else it is over. */
static void connect_next(struct hk_stream *s, enum hk_fault why, int error)
{
    bool tried = why != HK_FAULT_NONE;
    drop_socket(s);
    while (s->next < s->n_addresses) {
        const struct hk_address *address = &s->addresses[s->next++];
        if (!is_allowed(s, &address->ip))
            continue;
        s->phase = CONNECTING;
        tried = true;
        if (start_connecting(s, address)) {
            arm_connect(s, s->n_addresses - s->next + 1);
            return;
        }
        why = HK_FAULT_CONNECT;
        error = errno;
        drop_socket(s);
    }
    if (!tried)
        fail(s, HK_FAULT_BLOCKED, false, s->text);
    else if (why == HK_FAULT_TIMEOUT)
        fail(s, why, false, "timeout while connecting");
    else
        fail_errno(s, why, "cannot connect", error);
}

static void on_looked_up(void *arg, const char *error, const struct hk_address *addresses, size_t n)
{
    struct hk_stream *s = arg;
    char text[HK_STREAM_ERROR_MAX];
    enter(s);
    if (error) {
        (void)snprintf(text, sizeof text, "cannot resolve the name: %s", error);
        fail(s, HK_FAULT_DNS, false, text);
    } else {
        s->n_addresses = n < HK_LOOKUP_MAX ? n : HK_LOOKUP_MAX;
        memcpy(s->addresses, addresses, s->n_addresses * sizeof s->addresses[0]);
    }
    hk_lookup_free(s->lookup); /* with what it found */
    s->lookup = NULL;
    if (s->phase == LOOKING_UP)
        connect_next(s, HK_FAULT_NONE, 0);
    leave(s);
}

static void look_up(struct hk_stream *s)
{
    struct hk_err err = {.message = ""};
    if (hk_ip_parse(hk_str_of(s->host), &s->addresses[0].ip)) {
        s->n_addresses = 1;
        connect_next(s, HK_FAULT_NONE, 0);
    } else if (hk_url_is_localhost(hk_str_of(s->host))) {
        s->n_addresses = hk_loopbacks(s->addresses);
        connect_next(s, HK_FAULT_NONE, 0);
    } else if (hk_lookup_new(s->loop, s->host, on_looked_up, s, &s->lookup, &err) != HK_OK) {
        fail(s, HK_FAULT_LOCAL, false, err.message);
    } else {
        arm_connect(s, 1);
    }
}

/* ---- TLS ---- */

static void tls_failed(struct hk_stream *s, enum hk_tls_step step)
{
    char text[HK_STREAM_ERROR_MAX];
    if (step == HK_TLS_END && s->phase == OPEN) {
        fail(s, HK_FAULT_RESET, true, "the other side closed the connection");
        return;
    }
    hk_tls_why(s->tls, text);
    if (step == HK_TLS_UNAGREED)
        fail(s, HK_FAULT_PROTOCOL, false, text);
    else if (step == HK_TLS_UNTRUSTED)
        fail(s, HK_FAULT_TLS_VERIFY, false, text);
    else
        fail(s, step == HK_TLS_CUT && s->phase == OPEN ? HK_FAULT_RESET : HK_FAULT_TLS, false, text);
}

/* ---- writing ---- */

static void set_watch(struct hk_stream *s)
{
    bool wants_out =
        !s->told_drained && !s->write_waits_for_read; /* that it is drained is told from the loop */
    hk_watch_set(s->watch, HK_WATCH_READ | (wants_out || s->read_waits_for_write ? HK_WATCH_WRITE : 0u));
}

/* Bytes that went out; 0: none for now, or it has failed. */
static size_t write_once(struct hk_stream *s, const char *bytes, size_t len)
{
    size_t n = 0;
    if (s->tls) {
        enum hk_tls_step step = hk_tls_write(s->tls, bytes, len, &n);
        s->write_waits_for_read = step == HK_TLS_WANT_READ;
        if (step == HK_TLS_DONE)
            return n;
        if (step != HK_TLS_WANT_READ && step != HK_TLS_WANT_WRITE)
            tls_failed(s, step);
        return 0;
    }
    ssize_t wrote = send(s->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote >= 0)
        return (size_t)wrote;
    if (errno != EAGAIN && errno != EINTR)
        fail_errno(s, HK_FAULT_RESET, "the connection is lost", errno);
    return 0;
}

static void write_out(struct hk_stream *s)
{
    size_t budget = WRITE_MAX;
    while (s->phase == OPEN && s->out_at < s->out_len && budget) {
        size_t len = s->out_len - s->out_at < budget ? s->out_len - s->out_at : budget;
        size_t n = write_once(s, s->out + s->out_at, len);
        if (n == 0)
            break;
        s->out_at += n;
        s->sent += n;
        budget -= n;
    }
    if (s->out_at == s->out_len)
        s->out_at = s->out_len = 0;
    if (!s->out_len && s->out_room > KEEP_BYTES) {
        hk_mem_free(s->out);
        s->out = NULL;
        s->out_room = 0;
    }
    if (s->options.drained_late && s->out_len)
        s->told_drained = false;
    if (s->phase == OPEN)
        set_watch(s);
}

static void tell_drained(struct hk_stream *s)
{
    if (s->phase != OPEN || s->closed || s->out_len || s->told_drained)
        return;
    s->told_drained = true;
    set_watch(s);
    s->options.calls->drained(s->options.arg);
}

/* ---- reading ---- */

/* Bytes that came; 0: none for now, or it has failed. */
static size_t read_once(struct hk_stream *s, char *room, size_t len)
{
    size_t n = 0;
    if (s->tls) {
        enum hk_tls_step step = hk_tls_read(s->tls, room, len, &n);
        s->read_waits_for_write = step == HK_TLS_WANT_WRITE;
        if (step == HK_TLS_DONE)
            return n;
        if (step != HK_TLS_WANT_READ && step != HK_TLS_WANT_WRITE)
            tls_failed(s, step);
        return 0;
    }
    ssize_t came = recv(s->fd, room, len, MSG_DONTWAIT);
    if (came > 0)
        return (size_t)came;
    if (came == 0)
        fail(s, HK_FAULT_RESET, true, "the other side closed the connection");
    else if (errno != EAGAIN && errno != EINTR)
        fail_errno(s, HK_FAULT_RESET, "the connection is lost", errno);
    return 0;
}

/* TLS may hold bytes that the descriptor does not show: it is read until there is nothing more, or looked at again soon. */
static void read_in(struct hk_stream *s)
{
    char room[READ_BYTES];
    for (int i = 0; s->phase == OPEN && !s->closed; i++) {
        if (i == READS_MAX) {
            hk_timer_start(s->clock, 0);
            return;
        }
        size_t n = read_once(s, room, sizeof room);
        if (n == 0)
            return;
        s->options.calls->came(s->options.arg, (struct hk_str){room, n});
        if (!s->tls && n < sizeof room) /* there was no more: the loop says when there is */
            return;
    }
}

/* ---- from the loop ---- */

static void is_open(struct hk_stream *s)
{
    s->phase = OPEN;
    hk_timer_stop(s->clock);
    set_watch(s);
    s->options.calls->opened(s->options.arg);
    if (!s->closed && s->phase == OPEN)
        write_out(s);
}

static void shake_hands(struct hk_stream *s)
{
    enum hk_tls_step step = hk_tls_handshake(s->tls);
    if (step == HK_TLS_DONE)
        is_open(s);
    else if (step == HK_TLS_WANT_READ || step == HK_TLS_WANT_WRITE)
        hk_watch_set(s->watch, step == HK_TLS_WANT_READ ? HK_WATCH_READ : HK_WATCH_WRITE);
    else
        tls_failed(s, step);
}

static void start_tls(struct hk_stream *s)
{
    s->tls = hk_tls_session_new(s->options.tls, s->fd, s->host);
    if (!s->tls) {
        fail(s, HK_FAULT_LOCAL, false, "out of memory");
        return;
    }
    s->phase = SHAKING_HANDS;
    arm_connect(s, 1);
    shake_hands(s);
}

void hk_stream_secure(struct hk_stream *s, struct hk_stream_tls *tls)
{
    assert(s->phase == OPEN && !s->tls && !hk_stream_pending(s));
    s->options.tls = tls;
    s->deadline_ms = hk_loop_now_ms(s->loop) + s->options.connect_timeout_ms;
    start_tls(s);
}

static void connected(struct hk_stream *s)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error) {
        connect_next(s, HK_FAULT_CONNECT, error);
        return;
    }
    if (!s->options.tls) {
        is_open(s);
        return;
    }
    start_tls(s);
}

static void move_bytes(struct hk_stream *s)
{
    read_in(s);
    if (s->phase == OPEN && !s->closed)
        write_out(s);
    tell_drained(s);
}

static void on_event(void *arg, unsigned events)
{
    struct hk_stream *s = arg;
    (void)events; /* what is not there yet only costs a try */
    enter(s);
    if (s->phase == CONNECTING)
        connected(s);
    else if (s->phase == SHAKING_HANDS)
        shake_hands(s);
    else if (s->phase == OPEN)
        move_bytes(s);
    leave(s);
}

static void on_clock(void *arg)
{
    struct hk_stream *s = arg;
    enter(s);
    switch (s->phase) {
    case LOOKING_UP:
        if (s->n_addresses || s->lookup)
            fail(s, HK_FAULT_TIMEOUT, false, "timeout while resolving the name");
        else
            look_up(s);
        break;
    case CONNECTING:
        connect_next(s, HK_FAULT_TIMEOUT, 0);
        break;
    case SHAKING_HANDS:
        fail(s, HK_FAULT_TIMEOUT, false, "timeout in the TLS handshake");
        break;
    case OPEN:
        move_bytes(s);
        break;
    case OVER:
        if (!s->closed)
            s->options.calls->ended(s->options.arg, &s->end);
        break;
    }
    leave(s);
}

/* ---- for its user ---- */

enum hk_code hk_stream_open(struct hk_loop *loop, const struct hk_stream_options *options,
                            struct hk_stream **out, struct hk_err *err)
{
    struct hk_stream *s = hk_mem_zalloc(1, sizeof *s);
    if (!s)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    s->loop = loop;
    s->options = *options;
    s->fd = -1;
    s->told_drained = true;
    s->host = hk_mem_strdup(options->host);
    s->allow = hk_mem_zalloc(options->n_allow + 1, sizeof *s->allow);
    if (!s->host || !s->allow || hk_timer_new(loop, on_clock, s, &s->clock) != HK_OK) {
        free_stream(s);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    if (options->n_allow)
        memcpy(s->allow, options->allow, options->n_allow * sizeof *s->allow);
    if (!s->options.connect_timeout_ms)
        s->options.connect_timeout_ms = CONNECT_MS;
    if (!s->options.max_pending_bytes)
        s->options.max_pending_bytes = PENDING_MAX;
    s->deadline_ms = hk_loop_now_ms(loop) + s->options.connect_timeout_ms;
    hk_timer_start(s->clock, 0);
    *out = s;
    return HK_OK;
}

void hk_stream_close(struct hk_stream *s)
{
    if (!s || s->closed)
        return;
    s->closed = true;
    if (s->tls && s->phase == OPEN && !s->out_len)
        hk_tls_goodbye(s->tls);
    if (!s->depth)
        free_stream(s);
}

/* What is out is dropped when it is most of the buffer: else each write would move nearly all of it. */
static bool make_room(struct hk_stream *s, size_t len)
{
    if (s->out_at > s->out_len / 2) {
        memmove(s->out, s->out + s->out_at, s->out_len - s->out_at);
        s->out_len -= s->out_at;
        s->out_at = 0;
    }
    if (s->out_room - s->out_len >= len)
        return true;
    size_t room = s->out_room ? s->out_room : 4096;
    while (room - s->out_len < len)
        room *= 2;
    char *more = hk_mem_resize(s->out, room);
    if (!more)
        return false;
    s->out = more;
    s->out_room = room;
    return true;
}

enum hk_code hk_stream_write(struct hk_stream *s, const void *bytes, size_t len)
{
    size_t pending = s->out_len - s->out_at;
    if (len > s->options.max_pending_bytes || pending > s->options.max_pending_bytes - len)
        return HK_TOOBIG;
    if (s->out_room - s->out_len < len && !make_room(s, len))
        return HK_NOMEM;
    if (len)
        memcpy(s->out + s->out_len, bytes, len);
    s->out_len += len;
    s->told_drained = s->told_drained && s->options.drained_late;
    return HK_OK;
}

void hk_stream_flush(struct hk_stream *s)
{
    if (s->phase == OPEN && !s->closed)
        write_out(s);
}

bool hk_stream_is_quiet(const struct hk_stream *s)
{
    char byte;
    return s->phase == OPEN && recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

size_t hk_stream_pending(const struct hk_stream *s)
{
    return s->out_len - s->out_at;
}

uint64_t hk_stream_sent(const struct hk_stream *s)
{
    return s->sent;
}

const char *hk_stream_address(const struct hk_stream *s)
{
    return s->address;
}
