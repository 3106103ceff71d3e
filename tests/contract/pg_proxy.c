/* SPDX-License-Identifier: Apache-2.0 */
/* See pg_proxy.h. Knows just enough of the protocol to find the end of a request and the answer to COMMIT. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pg_kind.h"
#include "pg_proxy.h"

enum {
    ROOM = 4 * 1024 * 1024
};

static atomic_int armed, armed_on;
static _Atomic(const char *) trigger;
static atomic_bool refusing, stopping;
static pthread_t thread;
static int listener = -1, held_server = -1;
static char path[300];
static char *held;
static size_t n_held;

static int open_socket(const char *where, bool listening)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || strlen(where) >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, where, strlen(where) + 1);
    if (listening)
        unlink(where);
    int rc = listening ? bind(fd, (struct sockaddr *)&address, sizeof address)
                       : connect(fd, (struct sockaddr *)&address, sizeof address);
    if (rc != 0 || (listening && listen(fd, 8) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool send_whole(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* Messages of the protocol: a letter, and a length that counts itself. Calls it with each whole one; how many bytes they
 * have in all. */
static size_t walk(const char *bytes, size_t len, char letter, const char *text, size_t *out_found)
{
    size_t at = 0;
    *out_found = SIZE_MAX;
    while (at + 5 <= len) {
        const unsigned char *b = (const unsigned char *)bytes + at;
        size_t size = 1 + ((size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4]);
        if (at + size > len)
            break;
        bool match = bytes[at] == letter &&
                     (!text || (size >= 5 + strlen(text) && memcmp(b + 5, text, strlen(text)) == 0));
        if (match && *out_found == SIZE_MAX)
            *out_found = at;
        at += size;
    }
    return at;
}

/* Reads until the last whole message is of this letter. */
static size_t read_up_to(int fd, char *buffer, char letter)
{
    size_t len = 0;
    for (;;) {
        ssize_t n = recv(fd, buffer + len, ROOM - len, 0);
        if (n <= 0)
            return len;
        len += (size_t)n;
        size_t found, whole = walk(buffer, len, letter, NULL, &found);
        if (whole == len && found != SIZE_MAX)
            return len;
    }
}

/* A client has asked something, and this is to go wrong. */
static void break_off(int client, int server, enum proxy_mode mode, char *buffer)
{
    size_t len = read_up_to(client, buffer, 'S');
    if (mode == PROXY_HOLD_REQUEST) {
        held = malloc(len);
        memcpy(held, buffer, len);
        n_held = len;
        held_server = dup(server);
    } else if (mode != PROXY_LOSE_REQUEST && send_whole(server, buffer, len)) {
        size_t found = 0;
        len = read_up_to(server, buffer, 'Z');
        walk(buffer, len, 'C', "COMMIT", &found);
        if (mode == PROXY_LOSE_COMMIT && found != SIZE_MAX)
            send_whole(client, buffer, found);
    }
}

/* False: the connection is over. */
static bool carry(int from, int to, char *buffer)
{
    ssize_t n = recv(from, buffer, ROOM, 0);
    return n > 0 && send_whole(to, buffer, (size_t)n);
}

static bool holds(const char *bytes, size_t len, const char *text)
{
    for (size_t i = 0; text && i + strlen(text) <= len; i++)
        if (memcmp(bytes + i, text, strlen(text)) == 0)
            return true;
    return false;
}

static enum proxy_mode mode_for(int client, char *buffer)
{
    enum proxy_mode mode = (enum proxy_mode)atomic_exchange(&armed, PROXY_PASS);
    if (mode != PROXY_PASS)
        return mode;
    ssize_t n = recv(client, buffer, ROOM, MSG_PEEK);
    if (n <= 0 || !holds(buffer, (size_t)n, trigger))
        return PROXY_PASS;
    trigger = NULL;
    return (enum proxy_mode)armed_on;
}

static void serve(int client, int server, char *buffer)
{
    bool open = true;
    while (open && !stopping) {
        struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
        if (poll(fds, 2, 50) <= 0)
            continue;
        if (fds[1].revents)
            open = carry(server, client, buffer);
        if (!fds[0].revents || !open)
            continue;
        enum proxy_mode mode = mode_for(client, buffer);
        if (mode != PROXY_PASS) {
            break_off(client, server, mode, buffer);
            return;
        }
        open = carry(client, server, buffer);
    }
}

static void *run(void *arg)
{
    char where[300], *buffer = arg;
    snprintf(where, sizeof where, "%s/.s.PGSQL.5432", pg_server_dir());
    while (!stopping) {
        struct pollfd fd = {.fd = listener, .events = POLLIN};
        if (poll(&fd, 1, 50) <= 0)
            continue;
        int client = accept(listener, NULL, NULL);
        int server = client < 0 || refusing ? -1 : open_socket(where, false);
        if (server >= 0)
            serve(client, server, buffer);
        if (server >= 0)
            close(server);
        if (client >= 0)
            close(client);
    }
    free(buffer);
    return NULL;
}

bool proxy_start(void)
{
    char *buffer = malloc(ROOM);
    snprintf(path, sizeof path, "%s/.s.PGSQL.5433", pg_server_dir());
    listener = open_socket(path, true);
    armed = PROXY_PASS;
    trigger = NULL;
    refusing = stopping = false;
    return buffer && listener >= 0 && pthread_create(&thread, NULL, run, buffer) == 0;
}

void proxy_stop(void)
{
    stopping = true;
    pthread_join(thread, NULL);
    close(listener);
    unlink(path);
    free(held);
    held = NULL;
    if (held_server >= 0)
        close(held_server);
    held_server = -1;
}

const char *proxy_url(void)
{
    static char url[400];
    snprintf(url, sizeof url, "postgres:///%s?host=%s&port=5433&user=postgres", pg_database(),
             pg_server_dir());
    return url;
}

void proxy_arm(enum proxy_mode mode)
{
    armed = (int)mode;
}

void proxy_arm_on(enum proxy_mode mode, const char *text)
{
    armed_on = (int)mode;
    trigger = text;
}

void proxy_refuse(bool refuse)
{
    refusing = refuse;
}

bool proxy_deliver(void)
{
    size_t found = SIZE_MAX, len = 0;
    char *buffer = malloc(ROOM);
    if (buffer && held_server >= 0 && send_whole(held_server, held, n_held))
        len = read_up_to(held_server, buffer, 'Z');
    walk(buffer, len, 'C', "COMMIT", &found);
    free(buffer);
    return found != SIZE_MAX;
}
