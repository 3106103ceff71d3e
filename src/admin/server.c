/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd, driven by one thread of ours that waits for all listeners and for the order to stop. Not by the library's own
 * threads: its time-out counts from the last byte, so that a client who sends one now and then holds a connection for hours.
 * Here every connection must have had an answer within PATIENCE_MS, or it is cut, and sooner when there are many. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "admin/server.h"
#include "base/mem.h"

enum {
    PATIENCE_MS = 30000, /* from connecting, or from the answer before, to the end of the next one */
    SWEEP_MS = 1000,
    CONNECTIONS = 64, /* of a listener, for the library */
    CROWDED =
        48, /* from here on the one that has waited longest makes room: whoever opens many gets his own cut */
    HEADERS_MAX = 16384
};

struct client { /* one connection */
    struct client *next, **link;
    const struct listener *at;
    int fd;
    int64_t since_ms;
    bool cut;
};

struct listener {
    struct hk_admin_server *server;
    struct hk_admin_listener how;
    struct MHD_Daemon *daemon;
};

struct hk_admin_server {
    struct hk_admin_site site;
    struct listener listeners[HK_ADMIN_LISTENERS];
    size_t n;
    struct client *clients; /* the thread's */
    pthread_t thread;
    int stop[2];        /* a pipe: its writing end is closed to end the thread */
    atomic_bool ending; /* the same, for when poll cannot say so */
};

/* ---- a request ---- */

static enum MHD_Result find_odd(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    bool *odd = arg;
    (void)kind;
    (void)value;
    *odd = *odd || strpbrk(key, " \t") != NULL;
    return MHD_YES;
}

/* "Transfer-Encoding : chunked": the library takes it for a field that it does not know, a proxy may not. */
static bool has_odd_name(struct MHD_Connection *connection)
{
    bool odd = false;
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, find_odd, &odd);
    return odd;
}

/* Or what somebody else may take for one. */
static bool has_body(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    return (length && strcmp(length, "0") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding") ||
           has_odd_name(connection);
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, struct hk_admin_reply *reply, bool last)
{
    size_t len = reply->body.len;
    char *body = hk_buf_detach(&reply->body);
    struct MHD_Response *response =
        body ? MHD_create_response_from_buffer_with_free_callback(len, body, hk_mem_free) : NULL;
    if (!response) {
        hk_mem_free(body);
        return MHD_NO; /* closes the connection */
    }
    (void)MHD_add_response_header(response, "Content-Type", reply->content_type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (last)
        (void)MHD_add_response_header(response, "Connection", "close");
    if (reply->allow)
        (void)MHD_add_response_header(response, "Allow", reply->allow);
    enum MHD_Result rc = MHD_queue_response(connection, reply->status, response);
    MHD_destroy_response(response);
    return rc;
}

/* Called first when the headers are there, and again when the body is over. One that has a body is answered at once, so
 * that it is not read. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data, size_t *size,
                              void **state)
{
    const struct listener *l = arg;
    bool body = has_body(connection);
    (void)version;
    (void)data;
    (void)size;
    if (!*state && !body) {
        *state = arg; /* anything but NULL: seen */
        return MHD_YES;
    }
    const struct hk_admin_request request = {
        .method = method,
        .path = path,
        .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
        .has_body = body,
        .role = l->how.role,
        .loopback_only = l->how.loopback_only};
    struct hk_admin_reply reply;
    hk_admin_answer(&l->server->site, &request, &reply);
    enum MHD_Result rc = send_reply(connection, &reply, body);
    hk_buf_fini(&reply.body);
    return rc;
}

/* ---- connections ---- */

static void cut(struct client *c)
{
    c->cut = true;
    (void)shutdown(c->fd, SHUT_RDWR); /* the library finds the end of the stream, and closes it */
}

static void make_room(struct hk_admin_server *s, const struct listener *l)
{
    struct client *oldest = NULL;
    size_t n = 0;
    for (struct client *c = s->clients; c; c = c->next) {
        if (c->at != l || c->cut)
            continue;
        n++;
        if (!oldest || c->since_ms <= oldest->since_ms)
            oldest = c;
    }
    if (n > CROWDED)
        cut(oldest);
}

static void connection_changed(void *arg, struct MHD_Connection *connection, void **context,
                               enum MHD_ConnectionNotificationCode what)
{
    const struct listener *l = arg;
    struct hk_admin_server *s = l->server;
    struct client *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && c) {
        *c->link = c->next;
        if (c->next)
            c->next->link = c->link;
        hk_mem_free(c);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what != MHD_CONNECTION_NOTIFY_STARTED || !info || !(c = hk_mem_zalloc(1, sizeof *c)))
        return;
    c->at = l;
    c->fd = info->connect_fd;
    c->since_ms = s->site.now_ms();
    c->next = s->clients;
    c->link = &s->clients;
    if (c->next)
        c->next->link = &c->next;
    s->clients = c;
    *context = c;
    make_room(s, l);
}

static void answered(void *arg, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code)
{
    const struct listener *l = arg;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct client *c = info ? info->socket_context : NULL;
    (void)code;
    *state = NULL;
    if (c)
        c->since_ms = l->server->site.now_ms();
}

static void cut_the_slow(struct hk_admin_server *s)
{
    int64_t now = s->site.now_ms();
    for (struct client *c = s->clients; c; c = c->next)
        if (!c->cut && now - c->since_ms >= PATIENCE_MS)
            cut(c);
}

/* ---- the thread ---- */

static int timeout_ms(const struct hk_admin_server *s)
{
    unsigned long long least = SWEEP_MS, ms = 0;
    bool any = s->clients != NULL;
    for (size_t i = 0; i < s->n; i++) {
        if (MHD_get_timeout(s->listeners[i].daemon, &ms) != MHD_YES)
            continue;
        any = true;
        least = ms < least ? ms : least;
    }
    return any ? (int)least : -1;
}

static void *thread_main(void *arg)
{
    struct hk_admin_server *s = arg;
    struct pollfd fds[HK_ADMIN_LISTENERS + 1] = {{.fd = s->stop[0], .events = POLLIN}};
    for (size_t i = 0; i < s->n; i++) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(s->listeners[i].daemon, MHD_DAEMON_INFO_EPOLL_FD);
        fds[i + 1] = (struct pollfd){.fd = info ? info->epoll_fd : -1, .events = POLLIN};
    }
    while (!fds[0].revents && !s->ending) {
        if (poll(fds, (nfds_t)s->n + 1, timeout_ms(s)) < 0 && errno != EINTR)
            (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* no memory: later, perhaps */
        for (size_t i = 0; i < s->n; i++)
            (void)MHD_run(s->listeners[i].daemon);
        cut_the_slow(s);
    }
    return NULL;
}

/* Signals are the loop's. */
static bool start_thread(struct hk_admin_server *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&s->thread, NULL, thread_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

/* Paths are compared as they came: one that is decoded could end at a NUL and be another. */
static size_t leave_as_it_is(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg, (void)connection;
    return strlen(text);
}

/* ---- start and stop ---- */

static bool start_listener(struct hk_admin_server *s, const struct hk_admin_listener *how)
{
    struct listener *l = &s->listeners[s->n];
    *l = (struct listener){.server = s, .how = *how};
    l->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, handle, l, MHD_OPTION_LISTEN_SOCKET, how->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(PATIENCE_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX,
        MHD_OPTION_NOTIFY_CONNECTION, connection_changed, l, MHD_OPTION_NOTIFY_COMPLETED, answered, l,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_as_it_is, NULL, MHD_OPTION_END);
    s->n += l->daemon != NULL;
    return l->daemon != NULL;
}

static void free_server(struct hk_admin_server *s)
{
    while (s->n > 0)
        MHD_stop_daemon(s->listeners[--s->n].daemon);
    (void)close(s->stop[0]);
    if (s->stop[1] >= 0)
        (void)close(s->stop[1]);
    hk_mem_free(s);
}

enum hk_code hk_admin_server_start(const struct hk_admin_site *site,
                                   const struct hk_admin_listener *listeners, size_t n,
                                   struct hk_admin_server **out_server, struct hk_err *err)
{
    struct hk_admin_server *s = hk_mem_zalloc(1, sizeof *s);
    if (!s)
        return hk_err_set(err, HK_NOMEM, "out of memory for the admin server");
    s->site = *site;
    if (pipe(s->stop) != 0) {
        hk_mem_free(s);
        return hk_err_set(err, HK_IO, "no pipe for the admin server");
    }
    (void)fcntl(s->stop[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(s->stop[1], F_SETFD, FD_CLOEXEC);
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = start_listener(s, &listeners[i]);
    if (!good || !start_thread(s)) {
        free_server(s);
        return hk_err_set(err, HK_IO, "the admin server cannot start");
    }
    *out_server = s;
    return HK_OK;
}

void hk_admin_server_stop(struct hk_admin_server *s)
{
    if (!s)
        return;
    s->ending = true;
    (void)close(s->stop[1]); /* unlike a byte that is written this cannot fail */
    s->stop[1] = -1;
    (void)pthread_join(s->thread, NULL);
    free_server(s);
}
