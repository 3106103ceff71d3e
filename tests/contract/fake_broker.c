/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/check.h"
#include "fake_broker.h"

enum {
    CONNECTIONS_MAX = 256
};

struct fake_broker {
    fake_serve_fn *serve;
    void *arg;
    int listener, port;
    pthread_t thread;
    pthread_mutex_t lock;
    int fds[CONNECTIONS_MAX];
    pthread_t threads[CONNECTIONS_MAX];
    unsigned n;
    bool stop;
};

struct connection {
    struct fake_broker *broker;
    int fd;
};

static void *serve_one(void *arg)
{
    struct connection c = *(struct connection *)arg;
    free(arg);
    c.broker->serve(c.fd, c.broker->arg);
    (void)shutdown(c.fd, SHUT_RDWR); /* closed when the broker is: its number must not be another's before */
    return NULL;
}

static void take_one(struct fake_broker *b, int fd)
{
    struct connection *c = malloc(sizeof *c);
    assert_non_null(c);
    *c = (struct connection){b, fd};
    (void)pthread_mutex_lock(&b->lock);
    assert_true(b->n < CONNECTIONS_MAX);
    b->fds[b->n] = fd;
    assert_int_equal(pthread_create(&b->threads[b->n], NULL, serve_one, c), 0);
    b->n++;
    (void)pthread_mutex_unlock(&b->lock);
}

static void *run(void *arg)
{
    struct fake_broker *b = arg;
    int fd;
    while ((fd = accept(b->listener, NULL, NULL)) >= 0)
        take_one(b, fd);
    return NULL;
}

struct fake_broker *fake_broker_start(fake_serve_fn *serve, void *arg)
{
    struct fake_broker *b = calloc(1, sizeof *b);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    assert_non_null(b);
    b->serve = serve;
    b->arg = arg;
    b->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(b->listener >= 0);
    assert_int_equal(bind(b->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(b->listener, 64), 0);
    assert_int_equal(getsockname(b->listener, (struct sockaddr *)&at, &len), 0);
    b->port = ntohs(at.sin_port);
    assert_int_equal(pthread_mutex_init(&b->lock, NULL), 0);
    assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
    return b;
}

void fake_broker_stop(struct fake_broker *b)
{
    if (!b)
        return;
    (void)shutdown(b->listener, SHUT_RDWR);
    (void)pthread_join(b->thread, NULL);
    for (unsigned i = 0; i < b->n; i++) {
        (void)shutdown(b->fds[i], SHUT_RDWR);
        (void)pthread_join(b->threads[i], NULL);
        (void)close(b->fds[i]);
    }
    (void)close(b->listener);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

int fake_broker_port(const struct fake_broker *b)
{
    return b->port;
}

unsigned fake_broker_connections(struct fake_broker *b)
{
    (void)pthread_mutex_lock(&b->lock);
    unsigned n = b->n;
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

bool fake_read(int fd, void *room, size_t len)
{
    char *at = room;
    while (len) {
        ssize_t n = recv(fd, at, len, 0);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool fake_write(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}
