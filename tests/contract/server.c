/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted server. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "client.h"
#include "h2_gate.h"
#include "server.h"

#define REQUEST_MAX ((size_t)4 * 1024 * 1024)

struct conn {
    struct server *server;
    int fd;
    SSL *ssl;
    char *buf; /* read and not yet used */
    size_t len;
    struct h2_gate *gate; /* NULL: what comes is what the script reads */
    pthread_t thread;
    struct conn *next;
    bool done;
};

struct server {
    int fd, port;
    const struct step *steps;
    SSL_CTX *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    struct conn *conns;
    unsigned n_conns, n_requests, n_done;
    size_t sent, got;
    char *last;
    size_t last_len;
    char *given;
    bool gated;
    bool stop;
};

static void die(const char *what)
{
    perror(what);
    abort();
}

static bool stopping(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    bool stop = server->stop;
    pthread_mutex_unlock(&server->lock);
    return stop;
}

static void sleep_ms(size_t ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* ---- bytes ---- */

static bool put_raw(struct conn *c, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = c->ssl ? SSL_write(c->ssl, bytes, (int)len) : send(c->fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0) {
            if (!c->ssl && (errno == EAGAIN || errno == EINTR) && !stopping(c->server))
                continue;
            return false;
        }
        bytes += n;
        len -= (size_t)n;
        pthread_mutex_lock(&c->server->lock);
        c->server->sent += (size_t)n;
        pthread_mutex_unlock(&c->server->lock);
    }
    return true;
}

static bool put(struct conn *c, const char *bytes, size_t len)
{
    return c->gate ? h2_gate_answer(c->gate, bytes, len) : put_raw(c, bytes, len);
}

static void take(struct conn *c, const char *bytes, size_t len)
{
    size_t room = REQUEST_MAX - c->len, n = len < room ? len : room;
    memcpy(c->buf + c->len, bytes, n);
    c->len += n;
}

/* Adds to buf; false at the end of the stream or when the server stops. */
static bool get(struct conn *c)
{
    char bytes[65536];
    while (!stopping(c->server)) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        if (!(c->ssl && SSL_pending(c->ssl)) && poll(&p, 1, 20) == 0)
            continue;
        if (c->len == REQUEST_MAX)
            return false;
        size_t room = REQUEST_MAX - c->len < sizeof bytes ? REQUEST_MAX - c->len : sizeof bytes;
        ssize_t n = c->ssl ? SSL_read(c->ssl, bytes, (int)room) : recv(c->fd, bytes, room, 0);
        if (n <= 0)
            return false;
        if (!c->gate)
            take(c, bytes, (size_t)n);
        else if (!h2_gate_came(c->gate, bytes, (size_t)n))
            return false;
        pthread_mutex_lock(&c->server->lock);
        c->server->got += (size_t)n;
        pthread_mutex_unlock(&c->server->lock);
        return true;
    }
    return false;
}

static bool write_frames(void *arg, const char *bytes, size_t len)
{
    return put_raw(arg, bytes, len);
}

static void take_text(void *arg, const char *bytes, size_t len)
{
    take(arg, bytes, len);
}

static void count_request(void *arg)
{
    struct conn *c = arg;
    pthread_mutex_lock(&c->server->lock);
    c->server->n_requests++;
    pthread_mutex_unlock(&c->server->lock);
}

static bool read_frames(void *arg)
{
    return get(arg);
}

static void open_gate(struct conn *c)
{
    const struct h2_gate_calls calls = {
        .write = write_frames, .text = take_text, .asked = count_request, .read = read_frames, .arg = c};
    if (c->server->gated && c->server->steps[0].op != OP_GARBAGE)
        c->gate = h2_gate_new(&calls);
}

static void use(struct conn *c, size_t n)
{
    memmove(c->buf, c->buf + n, c->len - n);
    c->len -= n;
}

static size_t content_length(const char *head, size_t len)
{
    static const char name[] = "\r\nContent-Length:";
    for (size_t i = 0; i + sizeof name < len; i++) {
        if (strncasecmp(head + i, name, sizeof name - 1) != 0)
            continue;
        size_t value = 0;
        for (i += sizeof name - 1; head[i] == ' '; i++)
            ;
        for (; head[i] >= '0' && head[i] <= '9'; i++)
            value = value * 10 + (size_t)(head[i] - '0');
        return value;
    }
    return 0;
}

/* How long the head is; 0 = it is not all there. */
static size_t head_bytes(const struct conn *c)
{
    for (size_t i = 0; i + 4 <= c->len; i++) {
        if (memcmp(c->buf + i, "\r\n\r\n", 4) == 0)
            return i + 4;
    }
    return 0;
}

static bool read_head(struct conn *c)
{
    while (!head_bytes(c)) {
        if (!get(c))
            return false;
    }
    return true;
}

static bool read_request(struct conn *c)
{
    for (;;) {
        size_t head = head_bytes(c);
        size_t whole = head ? head + content_length(c->buf, head) : 0;
        if (head && c->len >= whole) {
            struct server *s = c->server;
            pthread_mutex_lock(&s->lock);
            s->n_requests += !c->gate; /* which counts by itself */
            s->last_len = whole;
            memcpy(s->last, c->buf, whole);
            pthread_mutex_unlock(&s->lock);
            use(c, whole);
            return true;
        }
        if (!get(c))
            return false;
    }
}

/* Frames up to the one that ends a request, or its header block. */
static bool read_h2(struct conn *c, bool head)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (;;) {
        const unsigned char *b = (const unsigned char *)c->buf;
        size_t n = 9 + (c->len >= 9 ? (size_t)b[0] << 16 | (size_t)b[1] << 8 | b[2] : 0);
        if (c->len >= sizeof preface - 1 && memcmp(c->buf, preface, sizeof preface - 1) == 0) {
            use(c, sizeof preface - 1);
            continue;
        }
        if (c->len < 9 || c->len < n || (c->buf[0] == 'P' && c->len < sizeof preface - 1)) {
            if (!get(c))
                return false;
            continue;
        }
        bool end = b[3] <= 1 && b[4] & 1, block = b[3] == 1 && b[4] & 4; /* DATA or HEADERS that end it */
        use(c, n);
        if (!end && !(head && block))
            continue;
        pthread_mutex_lock(&c->server->lock);
        c->server->n_requests++;
        pthread_mutex_unlock(&c->server->lock);
        return true;
    }
}

/* ---- steps ---- */

static bool repeat(struct conn *c, const char *text, size_t times)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < times; i++) {
        if (!put(c, text, len))
            return false;
    }
    return true;
}

static bool endless(struct conn *c, const char *text, size_t len, size_t max_mib)
{
    char block[16384];
    size_t n = 0;
    while (n + len <= sizeof block) {
        memcpy(block + n, text, len);
        n += len;
    }
    for (size_t sent = 0; sent < max_mib << 20; sent += n) {
        if (stopping(c->server) || !put(c, block, n))
            return false;
    }
    return true;
}

static bool drip(struct conn *c, const char *text, size_t ms)
{
    for (; *text; text++) {
        if (stopping(c->server) || !put(c, text, 1))
            return false;
        sleep_ms(ms);
    }
    return true;
}

static void count_done(struct conn *c)
{
    pthread_mutex_lock(&c->server->lock);
    c->server->n_done += !c->done;
    c->done = true;
    pthread_mutex_unlock(&c->server->lock);
}

static bool hold(struct conn *c)
{
    count_done(c);
    while (get(c))
        c->len = 0;
    return true;
}

static bool reset(struct conn *c)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) != 0)
        die("SO_LINGER");
    if (c->ssl)
        SSL_set_quiet_shutdown(c->ssl, 1);
    return false;
}

/* False ends the connection. */
static bool run_step(struct conn *c, const struct step *s)
{
    switch (s->op) {
    case OP_END:
        return false;
    case OP_REQUEST:
        return read_request(c);
    case OP_HEAD:
        return read_head(c);
    case OP_H2:
        return read_h2(c, s->n == 1);
    case OP_READ:
        while (c->len < s->n) {
            if (!get(c))
                return false;
        }
        use(c, s->n);
        return true;
    case OP_DEAF:
        return shutdown(c->server->fd, SHUT_RDWR) == 0;
    case OP_SEND:
        return put(c, s->text, s->n ? s->n : strlen(s->text));
    case OP_REPEAT:
        return repeat(c, s->text, s->n);
    case OP_ENDLESS:
        return endless(c, s->text, strlen(s->text), s->n ? s->n : 1024);
    case OP_FLOOD:
        return endless(c, s->text, s->n, 1024);
    case OP_DRIP:
        return drip(c, s->text, s->n);
    case OP_SLEEP:
        for (size_t ms = 0; ms < s->n && !stopping(c->server); ms += 20)
            sleep_ms(20);
        return true;
    case OP_HOLD:
        return hold(c);
    case OP_SHUT:
        (void)shutdown(c->fd, SHUT_WR);
        return hold(c);
    case OP_RESET:
        return reset(c);
    case OP_AGAIN:
    case OP_GARBAGE:
        return true;
    }
    return false;
}

static bool start_tls(struct conn *c)
{
    if (!c->server->ctx || c->server->steps[0].op == OP_GARBAGE)
        return true;
    c->ssl = SSL_new(c->server->ctx);
    if (c->ssl && SSL_set_fd(c->ssl, c->fd) && SSL_accept(c->ssl) == 1)
        return true;
    (void)shutdown(c->fd, SHUT_WR); /* the alert must not be lost to a reset */
    SSL_free(c->ssl);
    c->ssl = NULL;
    (void)hold(c);
    return false;
}

static void *conn_main(void *arg)
{
    struct conn *c = arg;
    struct timeval tv = {.tv_sec = 0, .tv_usec = 100000};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (start_tls(c)) {
        open_gate(c);
        const struct step *s = c->server->steps;
        while (!stopping(c->server) && run_step(c, s))
            s = s->op == OP_AGAIN ? c->server->steps : s + 1;
    }
    if (c->ssl) {
        (void)SSL_shutdown(c->ssl);
        SSL_free(c->ssl);
    }
    (void)close(c->fd);
    count_done(c);
    h2_gate_free(c->gate);
    free(c->buf);
    return NULL;
}

/* ---- the server ---- */

static void take_connection(struct server *server, int fd)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c || !(c->buf = malloc(REQUEST_MAX)))
        die("malloc");
    c->server = server;
    c->fd = fd;
    pthread_mutex_lock(&server->lock);
    c->next = server->conns;
    server->conns = c;
    server->n_conns++;
    pthread_mutex_unlock(&server->lock);
    if (pthread_create(&c->thread, NULL, conn_main, c) != 0)
        die("pthread_create");
}

static void *server_main(void *arg)
{
    struct server *server = arg;
    while (!stopping(server)) {
        struct pollfd p = {.fd = server->fd, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0)
            continue;
        int fd = accept(server->fd, NULL, NULL);
        if (fd >= 0)
            take_connection(server, fd);
        else
            sleep_ms(20); /* deaf */
    }
    return NULL;
}

static int listen_at(const char *ip, int *out_port)
{
    struct sockaddr_storage at = {.ss_family = AF_INET};
    struct sockaddr_in *in = (struct sockaddr_in *)&at;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&at;
    socklen_t len = sizeof *in;
    if (strchr(ip, ':')) {
        at.ss_family = AF_INET6;
        len = sizeof *in6;
        inet_pton(AF_INET6, ip, &in6->sin6_addr);
    } else {
        inet_pton(AF_INET, ip, &in->sin_addr);
    }
    int fd = socket(at.ss_family, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    *out_port = ntohs(at.ss_family == AF_INET6 ? in6->sin6_port : in->sin_port);
    return fd;
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                     unsigned in_len, void *arg)
{
    (void)ssl, (void)arg, (void)in, (void)in_len;
    *out = (const unsigned char *)"h2";
    *out_len = 2;
    return SSL_TLSEXT_ERR_OK;
}

/* Or the contrary. */
static void harden(SSL_CTX *ctx, const struct server_tls *tls)
{
    if (tls->max_version && (SSL_CTX_set_min_proto_version(ctx, 0) != 1 ||
                             SSL_CTX_set_max_proto_version(ctx, tls->max_version) != 1))
        die("TLS version");
    if (tls->ciphers && SSL_CTX_set_cipher_list(ctx, tls->ciphers) != 1)
        die("ciphers");
    if (tls->h2 || by_h2)
        SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
    if (tls->client_ca) {
        if (SSL_CTX_load_verify_locations(ctx, tls->client_ca, NULL) != 1)
            die("client authority");
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
}

struct server *server_start_at(const char *ip, const struct step *steps, const struct server_tls *tls)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server || !(server->last = malloc(REQUEST_MAX)))
        die("malloc");
    server->steps = steps;
    server->gated = by_h2 && !(tls && tls->h2);
    server->fd = listen_at(ip, &server->port);
    if (server->fd < 0) {
        free(server->last);
        free(server);
        return NULL;
    }
    pthread_mutex_init(&server->lock, NULL);
    if (tls) {
        server->ctx = SSL_CTX_new(TLS_server_method());
        if (server->ctx)
            SSL_CTX_set_security_level(server->ctx, 0); /* what is weak is for the client to refuse */
        if (!server->ctx || SSL_CTX_use_certificate_chain_file(server->ctx, tls->cert_file) != 1 ||
            SSL_CTX_use_PrivateKey_file(server->ctx, tls->key_file, SSL_FILETYPE_PEM) != 1)
            die("certificate");
        harden(server->ctx, tls);
    }
    if (pthread_create(&server->thread, NULL, server_main, server) != 0)
        die("pthread_create");
    return server;
}

struct server *server_start(const struct step *steps, const struct server_tls *tls)
{
    struct server *server = server_start_at("127.0.0.1", steps, tls);
    if (!server)
        die("listen");
    return server;
}

void server_stop(struct server *server)
{
    if (!server)
        return;
    pthread_mutex_lock(&server->lock);
    server->stop = true;
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->thread, NULL);
    (void)close(server->fd);
    while (server->conns) {
        struct conn *c = server->conns;
        server->conns = c->next;
        pthread_join(c->thread, NULL);
        free(c);
    }
    pthread_mutex_destroy(&server->lock);
    SSL_CTX_free(server->ctx);
    free(server->given);
    free(server->last);
    free(server);
}

int server_port(const struct server *server)
{
    return server->port;
}

unsigned server_connections(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned n = server->n_conns;
    pthread_mutex_unlock(&server->lock);
    return n;
}

unsigned server_requests(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned n = server->n_requests;
    pthread_mutex_unlock(&server->lock);
    return n;
}

unsigned server_done(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned n = server->n_done;
    pthread_mutex_unlock(&server->lock);
    return n;
}

size_t server_sent(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t n = server->sent;
    pthread_mutex_unlock(&server->lock);
    return n;
}

size_t server_got(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t n = server->got;
    pthread_mutex_unlock(&server->lock);
    return n;
}

const char *server_last(struct server *server, size_t *out_len)
{
    pthread_mutex_lock(&server->lock);
    free(server->given);
    server->given = malloc(server->last_len + 1);
    if (!server->given)
        die("malloc");
    memcpy(server->given, server->last, server->last_len);
    server->given[server->last_len] = '\0';
    *out_len = server->last_len;
    pthread_mutex_unlock(&server->lock);
    return server->given;
}
