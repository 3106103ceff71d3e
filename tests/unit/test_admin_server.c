/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server on real sockets: heads in pieces, bodies, replies from other threads, clients that leave, and its end. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "admin/exchange.h"
#include "admin/listen.h"
#include "admin/pool.h"
#include "admin/server.h"
#include "base/parse.h"
#include "base/str.h"
#include "check.h"

enum {
    BODY_MAX = 100000,
    HELD_MAX = HK_ADMIN_STREAMS + 32,
    ANSWER_MAX = 1 << 20
};

static atomic_int shift_ms; /* the server believes that so much time has passed */

static int64_t clock_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000 + shift_ms;
}

struct rig {
    struct hk_health health;
    struct hk_metrics *metrics;
    struct hk_admin_server *server;
    struct hk_admin_pool *pool;
    struct sockaddr_in at;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct hk_admin_exchange *held[HELD_MAX]; /* by /hold */
    size_t n_held;
    atomic_int handled;
    char said[4096]; /* by the last request */
};

static const struct hk_metric_def defs[] = {{"t_total", "T.", HK_METRIC_COUNTER, 0, {{0}}, NULL, 0}};

/* ---- the service ---- */

static size_t body_max(void *arg, const char *method, const char *path)
{
    (void)arg;
    return strcmp(method, "POST") == 0 && strcmp(path, "/none") != 0 ? BODY_MAX : 0;
}

static void reply_text(struct hk_admin_exchange *x, unsigned status, struct hk_str text)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, status);
    reply.content_type = "text/plain";
    (void)hk_buf_add(&reply.body, text.ptr, text.len);
    assert_int_equal(hk_admin_reply_header(&reply, "ETag", (struct hk_str){"\"7\"", 3}), HK_OK);
    hk_admin_exchange_reply(x, &reply);
    hk_buf_fini(&reply.body);
}

static void reply_long(struct hk_admin_exchange *x)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 200);
    reply.content_type = "text/plain";
    for (int i = 0; i < 5000; i++)
        (void)hk_buf_adds(&reply.body, "carrier ");
    hk_admin_exchange_reply(x, &reply);
    hk_buf_fini(&reply.body);
}

/* On a thread of the pool. */
static void work(void *object, void *arg)
{
    struct hk_admin_exchange *x = arg;
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    if (!object)
        reply_text(x, 503, (struct hk_str){"stopping", 8});
    else if (strcmp(ask->path, "/long") == 0)
        reply_long(x);
    else
        reply_text(x, 200, ask->body);
}

static void hold(struct rig *r, struct hk_admin_exchange *x)
{
    (void)pthread_mutex_lock(&r->lock);
    r->held[r->n_held++] = x;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static void handle(void *arg, struct hk_admin_exchange *x)
{
    struct rig *r = arg;
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    r->handled++;
    if (strcmp(ask->path, "/hold") == 0) {
        hold(r, x);
    } else if (strncmp(ask->path, "/now", 4) == 0) {
        const char *color = hk_admin_exchange_header(x, "x-color");
        (void)snprintf(r->said, sizeof r->said, "%s %s?%s %s uid=%d", ask->method, ask->path,
                       ask->query ? ask->query : "-", color ? color : "-", (int)ask->uid);
        reply_text(x, 200, (struct hk_str){r->said, strlen(r->said)});
    } else if (hk_admin_pool_submit(r->pool, work, x) != HK_OK) {
        reply_text(x, 503, (struct hk_str){"full", 4});
    }
}

static enum hk_code make_object(void *arg, void **out_object, struct hk_err *err)
{
    (void)arg, (void)err;
    *out_object = malloc(1);
    return HK_OK;
}

static void drop_object(void *arg, void *object)
{
    (void)arg;
    free(object);
}

/* ---- the client ---- */

/* `last`: the client is 127.0.0.`last`. */
static int dial_from(const struct rig *r, uint32_t last)
{
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000000 | last)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = 60};
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&r->at, sizeof r->at), 0);
    return fd;
}

static int dial(const struct rig *r)
{
    return dial_from(r, 1);
}

static void put(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the server has closed it: what was read tells why */
        bytes += n;
        len -= (size_t)n;
    }
}

static void say(int fd, const char *text)
{
    put(fd, text, strlen(text));
}

static char answer[ANSWER_MAX];
static size_t answer_len;

static const char *body_of(void)
{
    const char *end = strstr(answer, "\r\n\r\n");
    return end ? end + 4 : NULL;
}

static uint64_t number_at(const char *text)
{
    uint64_t n = 0;
    struct hk_str digits = {text, strspn(text, "0123456789")};
    assert_int_equal(hk_parse_u64(digits, &n, NULL), HK_OK);
    return n;
}

static bool answer_whole(void)
{
    const char *body = body_of(), *length = strstr(answer, "\r\nContent-Length: ");
    if (!body || !length || length > body)
        return false;
    return answer_len - (size_t)(body - answer) >= number_at(length + 18);
}

/* One answer, or all until the server closes it. Returns the first status; 0: there was none. */
static unsigned hear(int fd, bool to_the_end)
{
    answer_len = 0;
    answer[0] = '\0';
    for (;;) {
        ssize_t n = recv(fd, answer + answer_len, ANSWER_MAX - 1 - answer_len, 0);
        if (n <= 0)
            break;
        answer_len += (size_t)n;
        answer[answer_len] = '\0';
        if (!to_the_end && answer_whole())
            break;
    }
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (unsigned)number_at(answer + 9) : 0;
}

static unsigned ask(const struct rig *r, const char *text, bool to_the_end)
{
    int fd = dial(r);
    say(fd, text);
    unsigned status = hear(fd, to_the_end);
    (void)close(fd);
    return status;
}

static struct hk_admin_exchange *wait_held(struct rig *r, size_t n)
{
    (void)pthread_mutex_lock(&r->lock);
    while (r->n_held < n)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    struct hk_admin_exchange *x = r->held[n - 1];
    (void)pthread_mutex_unlock(&r->lock);
    return x;
}

/* ---- set up ---- */

static int set_up(void **state)
{
    static struct rig r;
    char address[HK_LISTEN_TEXT_MAX];
    memset(&r, 0, sizeof r);
    hk_health_init(&r.health, clock_ms());
    assert_int_equal(hk_metrics_new(defs, 1, &r.metrics, NULL), HK_OK);
    assert_int_equal(pthread_mutex_init(&r.lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&r.changed, NULL), 0);
    const struct hk_admin_pool_objects objects = {.make = make_object, .drop = drop_object};
    assert_int_equal(hk_admin_pool_start(&objects, 2, &r.pool, NULL), HK_OK);
    const struct hk_admin_site site = {.health = &r.health, .metrics = r.metrics, .now_ms = clock_ms};
    const struct hk_admin_service service = {.body_max = body_max, .handle = handle, .arg = &r};
    struct hk_admin_listener listener = {
        .role = HK_ROLE_ADMIN, .gate = {.way = HK_GATE_LOCAL}, .service = &service};
    assert_int_equal(hk_listen("127.0.0.1:0", &listener.fd, address, NULL), HK_OK);
    r.at = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)number_at(strchr(address, ':') + 1)),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct hk_admin_room *room = hk_admin_room_new();
    assert_non_null(room);
    assert_int_equal(hk_admin_server_start(&site, room, &listener, 1, &r.server, NULL), HK_OK);
    hk_admin_room_unref(room); /* the server keeps it */
    *state = &r;
    return 0;
}

static void stop(struct rig *r)
{
    hk_admin_server_stop(r->server);
    r->server = NULL;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    stop(r);
    assert_int_equal(hk_admin_pool_stop(r->pool, 60000), HK_OK);
    hk_metrics_free(r->metrics);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    return 0;
}

#define HOST "Host: localhost\r\n"
#define LAST "Connection: close\r\n"

/* ---- requests ---- */

static void test_a_request_arrives_as_it_was_sent(void **state)
{
    struct rig *r = *state;
    assert_int_equal(ask(r, "GET /now/%2e%2F%00x?a=%20+&b HTTP/1.1\r\n" HOST "X-COLOR: red\r\n\r\n", false),
                     200);
    assert_string_equal(body_of(), "GET /now/%2e%2F%00x?a=%20+&b red uid=-1");
    assert_non_null(strstr(answer, "ETag: \"7\"\r\n"));
    assert_non_null(strstr(answer, "Cache-Control: no-store\r\n"));
    assert_int_equal(ask(r, "GET /now? HTTP/1.1\r\n" HOST "\r\n", false), 200);
    assert_string_equal(body_of(), "GET /now? - uid=-1");
    assert_int_equal(ask(r, "DELETE /now HTTP/1.1\r\n" HOST "\r\n", false), 200);
    assert_string_equal(body_of(), "DELETE /now?- - uid=-1");
    r->handled = 0;
    assert_int_equal(ask(r, "GET /now HTTP/1.1\r\nHost: evil.example\r\n\r\n", true), 421);
    assert_int_equal(ask(r, "GET /now HTTP/1.1\r\n\r\n", true), 400);
    assert_int_equal(ask(r, "GET /livez HTTP/1.1\r\n\r\n", true), 400);
    assert_int_equal(ask(r, "GET /now HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n\r\n", true), 400);
    assert_int_equal(r->handled, 0);
}

static void test_a_body_comes_whole_in_whatever_pieces(void **state)
{
    struct rig *r = *state;
    static const char text[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\nhello world";
    int fd = dial(r);
    for (size_t i = 0; i + 1 < sizeof text; i++)
        put(fd, text + i, 1);
    assert_int_equal(hear(fd, false), 200);
    assert_string_equal(body_of(), "hello world");
    say(fd, "POST /echo HTTP/1.1\r\n" HOST
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n");
    assert_int_equal(hear(fd, false), 200);
    assert_string_equal(body_of(), "hello world");
    (void)close(fd);
    static char large[BODY_MAX + 200];
    int head =
        snprintf(large, sizeof large, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", BODY_MAX);
    memset(large + head, 'x', BODY_MAX);
    fd = dial(r);
    put(fd, large, (size_t)head + BODY_MAX);
    assert_int_equal(hear(fd, false), 200);
    assert_int_equal(strspn(body_of(), "x"), BODY_MAX);
    (void)close(fd);
}

static void test_several_requests_in_one_packet_are_answered_in_order(void **state)
{
    struct rig *r = *state;
    assert_int_equal(ask(r,
                         "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
                         "GET /livez HTTP/1.1\r\n" HOST "\r\n"
                         "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\ntwo"
                         "GET /now/three HTTP/1.1\r\n" HOST LAST "\r\n",
                         true),
                     200);
    const char *one = strstr(answer, "\r\none"), *ok = strstr(answer, "{\"status\":\"ok\"}"),
               *two = strstr(answer, "\r\ntwo"), *three = strstr(answer, "/now/three");
    assert_true(one && ok && two && three && one < ok && ok < two && two < three);
    assert_int_equal(r->handled, 3);
}

static void test_what_is_too_much_is_refused_before_it_is_read(void **state)
{
    struct rig *r = *state;

    static const struct {
        const char *text;
        unsigned status;
    } cases[] = {
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100001\r\n\r\n", 413},
        {"POST /none HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", 413},
        {"POST /none HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 413},
        {"GET /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551614\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 200000\r\n\r\n", 413},
        {"POST /livez HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", 405},
        {"GET /livez HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", 413},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned status = ask(r, cases[i].text, true);
        NOTE_IF(status != cases[i].status, "%s: %u\n", cases[i].text, status);
        assert_int_equal(status, cases[i].status);
        assert_non_null(strstr(answer, "Connection: close\r\n"));
        assert_null(strstr(answer, " 100 "));
    }
    assert_int_equal(r->handled, 0);
}

static void test_chunks_beyond_the_bound_are_refused(void **state)
{
    struct rig *r = *state;
    int fd = dial(r);
    static char chunk[4096 + 8];
    memcpy(chunk, "1000\r\n", 6);
    memset(chunk + 6, 'x', 4096);
    memcpy(chunk + 6 + 4096, "\r\n", 2);
    say(fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 30; i++) /* 120 KiB: the client gets to know */
        put(fd, chunk, sizeof chunk);
    say(fd, "0\r\n\r\n");
    assert_int_equal(hear(fd, true), 413);
    (void)close(fd);
    fd = dial(r);
    say(fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 4096; i++) /* 16 MiB: it is cut */
        put(fd, chunk, sizeof chunk);
    assert_int_equal(hear(fd, true), 0);
    (void)close(fd);
    assert_int_equal(r->handled, 0);
}

static void test_a_body_is_asked_for_once_its_head_is_accepted(void **state)
{
    struct rig *r = *state;
    int fd = dial(r);
    say(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    answer_len = 0;
    while (answer_len < 25) {
        ssize_t n = recv(fd, answer + answer_len, 25 - answer_len, 0);
        assert_true(n > 0);
        answer_len += (size_t)n;
    }
    assert_memory_equal(answer, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    say(fd, "hello");
    assert_int_equal(hear(fd, false), 200);
    assert_string_equal(body_of(), "hello");
    (void)close(fd);
}

static void test_heads_that_can_be_read_in_two_ways_are_refused(void **state)
{
    struct rig *r = *state;
    static const char *const heads[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 0\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Host: other\r\n",
        "Authorization: a\r\nAuthorization: b\r\n",
        "X(y): z\r\n",
    };

    for (size_t i = 0; i < COUNT(heads); i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "POST /echo HTTP/1.1\r\n" HOST "%s\r\n0\r\n\r\nGET /now/smuggled HTTP/1.1\r\n" HOST
                       "\r\n",
                       heads[i]);
        unsigned status = ask(r, text, true);
        NOTE_IF(status < 400 || strstr(answer, "smuggled"), "%s: %u %s\n", heads[i], status, answer);
        assert_in_range(status, 400, 499);
        assert_null(strstr(answer, "smuggled"));
    }
    assert_int_equal(r->handled, 0);
}

/* The library tells us of the target, and then closes the connection without another word. Nothing may stay behind: the sanitizer
 * looks when the program ends. */
static void test_a_query_of_more_names_than_there_is_room_for_leaves_nothing(void **state)
{
    struct rig *r = *state;
    char text[8192] = "GET /now?";
    size_t used = strlen(text);
    for (int i = 0; i < 1200; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "a%d&", i % 100);
    (void)snprintf(text + used, sizeof text - used, " HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 3; i++)
        (void)ask(r, text, true);
    assert_int_equal(r->handled, 0);
    assert_int_equal(ask(r, "GET /now HTTP/1.1\r\n" HOST "\r\n", false), 200);
}

/* ---- replies ---- */

static void test_long_replies_are_compressed_for_those_who_take_it(void **state)
{
    struct rig *r = *state;
    assert_int_equal(ask(r, "GET /long HTTP/1.1\r\n" HOST "\r\n", false), 200);
    assert_null(strstr(answer, "Content-Encoding"));
    assert_non_null(strstr(answer, "Vary: Accept-Encoding\r\n"));
    assert_int_equal(strlen(body_of()), 40000);
    assert_int_equal(ask(r, "GET /long HTTP/1.1\r\n" HOST "Accept-Encoding: br, gzip;q=0.5\r\n\r\n", false),
                     200);
    assert_non_null(strstr(answer, "Content-Encoding: gzip\r\n"));
    assert_memory_equal(body_of(), "\x1f\x8b", 2);
    assert_in_range(answer_len, 1, 2000);
    assert_int_equal(ask(r, "GET /long HTTP/1.1\r\n" HOST "Accept-Encoding: gzip;q=0\r\n\r\n", false), 200);
    assert_null(strstr(answer, "Content-Encoding"));
    assert_int_equal(ask(r, "GET /now HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n", false), 200);
    assert_null(strstr(answer, "Content-Encoding"));
}

static void test_head_is_answered_without_the_body(void **state)
{
    struct rig *r = *state;
    assert_int_equal(ask(r, "HEAD /long HTTP/1.1\r\n" HOST LAST "\r\n", true), 200);
    assert_non_null(strstr(answer, "Content-Length: 40000\r\n"));
    assert_string_equal(body_of(), "");
}

static void test_a_reply_may_come_later_and_probes_do_not_wait(void **state)
{
    struct rig *r = *state;
    int fd = dial(r);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    struct hk_admin_exchange *x = wait_held(r, 1);
    assert_int_equal(ask(r, "GET /livez HTTP/1.1\r\n" HOST "\r\n", false), 200);
    assert_int_equal(ask(r, "GET /metrics HTTP/1.1\r\n" HOST "\r\n", false), 200);
    reply_text(x, 202, (struct hk_str){"late", 4});
    assert_int_equal(hear(fd, false), 202);
    assert_string_equal(body_of(), "late");
    say(fd, "GET /now HTTP/1.1\r\n" HOST "\r\n"); /* the connection lives on */
    assert_int_equal(hear(fd, false), 200);
    (void)close(fd);
}

static void test_a_client_may_leave_while_it_waits(void **state)
{
    struct rig *r = *state;
    for (size_t i = 0; i < 20; i++) {
        int fd = dial(r);
        say(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
        (void)wait_held(r, i + 1);
        const struct linger hard = {.l_onoff = 1};
        if (i % 2)
            assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
        (void)close(fd);
    }
    for (size_t i = 0; i < 20; i++)
        reply_text(wait_held(r, i + 1), 200, (struct hk_str){"to nobody", 9});
    assert_int_equal(ask(r, "GET /now HTTP/1.1\r\n" HOST "\r\n", false), 200);
}

static void test_a_thousand_connections_are_answered(void **state)
{
    struct rig *r = *state;

    enum {
        AT_A_TIME = 100
    };

    for (int round = 0; round < 10; round++) {
        int fds[AT_A_TIME];
        for (int i = 0; i < AT_A_TIME; i++) {
            fds[i] = dial(r);
            say(fds[i], "GET /now HTTP/1.1\r\n" HOST "\r\n");
        }
        for (int i = 0; i < AT_A_TIME; i++) {
            assert_int_equal(hear(fds[i], false), 200);
            (void)close(fds[i]);
        }
    }
    assert_int_equal(r->handled, 1000);
}

static void test_idle_connections_make_room_for_others(void **state)
{
    struct rig *r = *state;

    enum {
        IDLE = 900
    };

    static int fds[IDLE];
    int held = dial(r), other = dial_from(r, 2);
    say(other, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel");
    say(held, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    struct hk_admin_exchange *x = wait_held(r, 1);
    for (int i = 0; i < IDLE; i++) {
        fds[i] = dial(r);
        say(fds[i], i % 2 ? "GET /n" : "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 50000\r\n\r\nx");
        if (i % 100 == 0)
            assert_int_equal(ask(r, "GET /livez HTTP/1.1\r\n" HOST "\r\n", false), 200);
    }
    assert_int_equal(ask(r, "GET /now HTTP/1.1\r\n" HOST "\r\n", false), 200);
    reply_text(x, 200, (struct hk_str){"still", 5}); /* one that waits for us is not cut */
    assert_int_equal(hear(held, false), 200);
    (void)close(held);
    say(other, "lo"); /* nor is one who holds a single place, when somebody else holds many */
    assert_int_equal(hear(other, false), 200);
    assert_string_equal(body_of(), "hello");
    (void)close(other);
    for (int i = 0; i < IDLE; i++)
        (void)close(fds[i]);
}

/* The server's thread goes through what it has taken while others push: what is listed again meanwhile must not change that list. */
static void test_what_was_taken_stays_a_list_while_it_is_pushed_to(void **state)
{
    (void)state;

    enum {
        STREAMS = 3
    };
    struct hk_admin_room *room = hk_admin_room_new();
    assert_non_null(room);
    struct hk_hub *hub = hk_hub_new(room);
    hk_admin_room_unref(room);
    struct hk_admin_exchange *x[STREAMS];
    struct hk_admin_stream *streams[STREAMS];
    struct hk_admin_reply head = {.status = 200};
    for (int i = 0; i < STREAMS; i++) {
        x[i] = hk_exchange_new(hub, "/events");
        assert_non_null(x[i]);
        hk_exchange_hand_out(x[i]);
        assert_int_equal(hk_admin_exchange_stream(x[i], &head, &streams[i]), HK_OK);
    }
    const struct hk_admin_exchange *at = hk_hub_take(hub);
    for (int n = STREAMS; n > 0; n--) {
        assert_non_null(at);
        assert_int_equal(hk_admin_stream_push(streams[n - 1], hk_str_of("more")), HK_OK);
        at = at->taken;
    }
    assert_null(at);
    int again = 0;
    for (at = hk_hub_take(hub); at; at = at->taken)
        again++;
    assert_int_equal(again, STREAMS);
    for (int i = 0; i < STREAMS; i++) {
        hk_admin_stream_end(streams[i]);
        hk_exchange_leave(x[i]);
    }
    hk_hub_unref(hub);
}

/* Of two servers, as a relay has them that listens with TLS and without. */
static void test_all_bodies_together_have_a_bound(void **state)
{
    static char piece[1 << 20];
    const size_t half = HK_ADMIN_BODIES_MAX / 2;
    struct hk_admin_room *room = hk_admin_room_new();
    assert_non_null(room);
    struct hk_hub *hub = hk_hub_new(room), *other = hk_hub_new(room);
    hk_admin_room_unref(room);
    assert_true(hub && other);
    struct hk_admin_exchange *one = hk_exchange_new(other, "/one"), *two = hk_exchange_new(hub, "/two");
    (void)state;
    assert_true(one && two);
    for (struct hk_admin_exchange *x = one; x; x = x == one ? two : NULL) {
        x->body_max = HK_ADMIN_BODIES_MAX;
        hk_buf_init(&x->body, x->body_max);
        for (size_t n = 0; n < half; n += sizeof piece)
            assert_int_equal(hk_exchange_add_body(x, piece, sizeof piece), HK_OK);
    }
    assert_int_equal(hk_exchange_add_body(two, piece, 1), HK_BUSY);
    assert_false(hk_hub_has_room(hub, 1));
    hk_exchange_leave(one);
    assert_true(hk_hub_has_room(hub, half));
    assert_false(hk_hub_has_room(hub, half + 1));
    assert_int_equal(hk_exchange_add_body(two, piece, 1), HK_OK);
    hk_exchange_leave(two);
    hk_hub_unref(hub);
    hk_hub_unref(other);
}

static void test_all_streams_together_have_a_bound(void **state)
{
    struct hk_admin_exchange *x[HK_ADMIN_STREAMS + 1];
    struct hk_admin_stream *streams[HK_ADMIN_STREAMS];
    struct hk_admin_reply head = {.status = 200};
    struct hk_admin_room *room = hk_admin_room_new();
    assert_non_null(room);
    struct hk_hub *hubs[2] = {hk_hub_new(room), hk_hub_new(room)};
    hk_admin_room_unref(room);
    (void)state;
    assert_true(hubs[0] && hubs[1]);
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = hk_exchange_new(hubs[i % 2], "/events");
        assert_non_null(x[i]);
        hk_exchange_hand_out(x[i]);
    }
    for (size_t i = 0; i < HK_ADMIN_STREAMS; i++)
        assert_int_equal(hk_admin_exchange_stream(x[i], &head, &streams[i]), HK_OK);
    struct hk_admin_exchange *late = x[HK_ADMIN_STREAMS];
    assert_int_equal(hk_admin_exchange_stream(late, &head, &streams[1]), HK_BUSY);
    hk_exchange_leave(x[1]); /* of the other hub */
    hk_admin_stream_end(streams[1]);
    assert_int_equal(hk_admin_exchange_stream(late, &head, &streams[1]), HK_OK);
    x[1] = late;
    for (size_t i = 0; i < HK_ADMIN_STREAMS; i++) {
        hk_exchange_leave(x[i]);
        hk_admin_stream_end(streams[i]);
    }
    hk_hub_unref(hubs[0]);
    hk_hub_unref(hubs[1]);
}

static void test_headers_of_a_reply_are_checked(void **state)
{
    (void)state;
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 200);
    assert_int_equal(hk_admin_reply_header(&reply, "Location", (struct hk_str){"/a\r\nX: y", 8}), HK_INVALID);
    char wide[HK_ADMIN_VALUE_MAX];
    memset(wide, 'a', sizeof wide);
    assert_int_equal(hk_admin_reply_header(&reply, "Location", (struct hk_str){wide, sizeof wide}),
                     HK_TOOBIG);
    for (int i = 0; i < HK_ADMIN_REPLY_HEADERS; i++)
        assert_int_equal(hk_admin_reply_header(&reply, "X", (struct hk_str){"y", 1}), HK_OK);
    assert_int_equal(hk_admin_reply_header(&reply, "X", (struct hk_str){"y", 1}), HK_TOOBIG);
    hk_buf_fini(&reply.body);
}

/* ---- streams ---- */

static struct hk_admin_stream *open_stream(struct hk_admin_exchange *x)
{
    struct hk_admin_reply head;
    struct hk_admin_stream *stream = NULL;
    hk_admin_reply_init(&head, 200);
    head.content_type = "text/event-stream";
    enum hk_code rc = hk_admin_exchange_stream(x, &head, &stream);
    hk_buf_fini(&head.body);
    if (rc == HK_OK)
        return stream;
    assert_int_equal(rc, HK_BUSY);
    reply_text(x, 503, (struct hk_str){"full", 4});
    return NULL;
}

static enum hk_code push(struct hk_admin_stream *stream, const char *text)
{
    return hk_admin_stream_push(stream, (struct hk_str){text, strlen(text)});
}

/* Reads until `text` was there. */
static void hear_text(int fd, const char *text)
{
    answer_len = 0;
    do {
        ssize_t n = recv(fd, answer + answer_len, ANSWER_MAX - 1 - answer_len, 0);
        assert_true(n > 0);
        answer_len += (size_t)n;
        answer[answer_len] = '\0';
    } while (!strstr(answer, text));
}

static int dial_held(struct rig *r)
{
    int fd = dial(r);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    return fd;
}

static void test_a_stream_sends_what_is_pushed(void **state)
{
    struct rig *r = *state;
    int fd = dial_held(r);
    struct hk_admin_stream *stream = open_stream(wait_held(r, 1));
    hear_text(fd, "\r\n\r\n");
    assert_non_null(strstr(answer, "text/event-stream"));
    for (int i = 0; i < 100; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "data: %d\n\n", i);
        assert_int_equal(push(stream, text), HK_OK);
        if (i % 10 == 0)
            hear_text(fd, text);
    }
    hk_admin_stream_end(stream);
    hear_text(fd, "data: 99\n\n");
    (void)hear(fd, true);
    assert_true(answer_len < 16); /* the last chunk at most */
    (void)close(fd);
}

static void test_a_client_that_does_not_read_is_cut(void **state)
{
    struct rig *r = *state;
    static char block[8192];
    memset(block, 'x', sizeof block - 1);
    int fd = dial_held(r), other = dial_held(r);
    struct hk_admin_stream *stream = open_stream(wait_held(r, 1)), *second = open_stream(wait_held(r, 2));
    size_t pushed = 0;
    while (push(stream, block) == HK_OK)
        assert_true(++pushed < 100000); /* 800 MiB: no buffer of the system is that large */
    assert_true(pushed >= HK_ADMIN_STREAM_MAX / sizeof block);
    assert_int_equal(push(stream, "x"), HK_UNAVAILABLE);
    hk_admin_stream_end(stream);
    (void)hear(fd, true); /* to the end */
    assert_int_equal(push(second, "data: here\n\n"), HK_OK);
    hear_text(other, "data: here\n\n");
    hk_admin_stream_end(second);
    (void)close(fd);
    (void)close(other);
}

static void test_a_listener_that_leaves_is_noticed(void **state)
{
    struct rig *r = *state;
    int fd = dial_held(r);
    struct hk_admin_stream *stream = open_stream(wait_held(r, 1));
    hear_text(fd, "\r\n\r\n");
    (void)close(fd);
    while (hk_admin_stream_push(stream, (struct hk_str){NULL, 0}) == HK_OK) /* nothing: it asks */
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    hk_admin_stream_end(stream);
}

static void test_silence_is_broken_and_patience_cuts_only_the_idle(void **state)
{
    struct rig *r = *state;
    int fd = dial_held(r), held = dial(r), idle = dial(r), half = dial(r);
    struct hk_admin_stream *stream = open_stream(wait_held(r, 1));
    hear_text(fd, "\r\n\r\n");
    say(held, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    struct hk_admin_exchange *x = wait_held(r, 2);
    say(idle, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(hear(idle, false), 200);
    say(half, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel");
    assert_int_equal(ask(r, "GET /livez HTTP/1.1\r\n" HOST "\r\n", false), 200);
    shift_ms += HK_ADMIN_HEARTBEAT_MS;
    hear_text(fd, ":\n\n");
    shift_ms += HK_ADMIN_HEARTBEAT_MS;
    hear_text(fd, ":\n\n");
    assert_int_equal(hear(idle, true), 0);
    assert_int_equal(hear(half, true), 0);
    reply_text(x, 200, (struct hk_str){"late", 4});
    assert_int_equal(hear(held, false), 200);
    assert_int_equal(push(stream, "data: on\n\n"), HK_OK);
    hear_text(fd, "data: on\n\n");
    hk_admin_stream_end(stream);
    (void)close(fd);
    (void)close(held);
    (void)close(idle);
    (void)close(half);
}

static void test_streams_are_counted(void **state)
{
    struct rig *r = *state;
    struct hk_admin_stream *streams[HK_ADMIN_STREAMS];
    int fds[HK_ADMIN_STREAMS + 1];
    for (size_t i = 0; i < HK_ADMIN_STREAMS; i++) {
        fds[i] = dial_held(r);
        streams[i] = open_stream(wait_held(r, i + 1));
        assert_non_null(streams[i]);
    }
    fds[HK_ADMIN_STREAMS] = dial_held(r);
    assert_null(open_stream(wait_held(r, HK_ADMIN_STREAMS + 1)));
    assert_int_equal(hear(fds[HK_ADMIN_STREAMS], false), 503);
    stop(r); /* and they end with the server */
    for (size_t i = 0; i < HK_ADMIN_STREAMS; i++) {
        assert_int_equal(hear(fds[i], true), 200);
        assert_non_null(strstr(answer, "\r\n0\r\n")); /* as it should */
        assert_int_equal(push(streams[i], "late"), HK_UNAVAILABLE);
        hk_admin_stream_end(streams[i]);
    }
    for (size_t i = 0; i <= HK_ADMIN_STREAMS; i++)
        (void)close(fds[i]);
}

/* ---- the end ---- */

static void *reply_soon(void *arg)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    reply_text(arg, 200, (struct hk_str){"in time", 7});
    return NULL;
}

static void test_the_end_waits_for_what_is_out(void **state)
{
    struct rig *r = *state;
    pthread_t thread;
    int fd = dial(r);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(pthread_create(&thread, NULL, reply_soon, wait_held(r, 1)), 0);
    stop(r);
    (void)pthread_join(thread, NULL);
    assert_int_equal(hear(fd, true), 200);
    assert_string_equal(body_of(), "in time");
    (void)close(fd);
}

static void test_the_end_does_not_wait_for_ever(void **state)
{
    struct rig *r = *state;
    int fds[3];
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = dial(r);
        say(fds[i], "GET /hold HTTP/1.1\r\n" HOST "\r\n");
        (void)wait_held(r, i + 1);
    }
    stop(r);
    for (size_t i = 0; i < COUNT(fds); i++) {
        assert_int_equal(hear(fds[i], true), 0);
        (void)close(fds[i]);
        reply_text(r->held[i], 200,
                   (struct hk_str){"too late", 8}); /* the server is gone, and nobody minds */
    }
}

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int waiting, ran, refused;
};

static void wait_at_gate(void *object, void *arg)
{
    struct gate *g = arg;
    (void)pthread_mutex_lock(&g->lock);
    if (!object) {
        g->refused++;
    } else {
        g->waiting++;
        (void)pthread_cond_broadcast(&g->changed);
        while (!g->open)
            (void)pthread_cond_wait(&g->changed, &g->lock);
        g->ran++;
        (void)pthread_cond_broadcast(&g->changed);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

static void test_a_pool_is_bounded_and_ends(void **state)
{
    (void)state;
    struct hk_admin_pool *pool = NULL;
    static struct gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const struct hk_admin_pool_objects objects = {.make = make_object, .drop = drop_object};
    assert_int_equal(hk_admin_pool_start(&objects, 1, &pool, NULL), HK_OK);
    assert_int_equal(hk_admin_pool_submit(pool, wait_at_gate, &g), HK_OK);
    (void)pthread_mutex_lock(&g.lock);
    while (g.waiting == 0)
        (void)pthread_cond_wait(&g.changed, &g.lock);
    (void)pthread_mutex_unlock(&g.lock);
    for (int i = 0; i < HK_ADMIN_POOL_QUEUE; i++)
        assert_int_equal(hk_admin_pool_submit(pool, wait_at_gate, &g), HK_OK);
    assert_int_equal(hk_admin_pool_submit(pool, wait_at_gate, &g), HK_BUSY);
    assert_int_equal(hk_admin_pool_stop(pool, 10), HK_BUSY); /* one is at work */
    (void)pthread_mutex_lock(&g.lock);
    assert_int_equal(g.refused, HK_ADMIN_POOL_QUEUE);
    g.open = true;
    (void)pthread_cond_broadcast(&g.changed);
    while (g.ran == 0)
        (void)pthread_cond_wait(&g.changed, &g.lock);
    (void)pthread_mutex_unlock(&g.lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_arrives_as_it_was_sent),
        TEST(test_a_body_comes_whole_in_whatever_pieces),
        TEST(test_several_requests_in_one_packet_are_answered_in_order),
        TEST(test_what_is_too_much_is_refused_before_it_is_read),
        TEST(test_chunks_beyond_the_bound_are_refused),
        TEST(test_a_body_is_asked_for_once_its_head_is_accepted),
        TEST(test_heads_that_can_be_read_in_two_ways_are_refused),
        TEST(test_a_query_of_more_names_than_there_is_room_for_leaves_nothing),
        TEST(test_long_replies_are_compressed_for_those_who_take_it),
        TEST(test_head_is_answered_without_the_body),
        TEST(test_a_reply_may_come_later_and_probes_do_not_wait),
        TEST(test_a_client_may_leave_while_it_waits),
        TEST(test_a_thousand_connections_are_answered),
        TEST(test_idle_connections_make_room_for_others),
        cmocka_unit_test(test_what_was_taken_stays_a_list_while_it_is_pushed_to),
        cmocka_unit_test(test_all_bodies_together_have_a_bound),
        cmocka_unit_test(test_all_streams_together_have_a_bound),
        cmocka_unit_test(test_headers_of_a_reply_are_checked),
        TEST(test_a_stream_sends_what_is_pushed),
        TEST(test_a_client_that_does_not_read_is_cut),
        TEST(test_a_listener_that_leaves_is_noticed),
        TEST(test_silence_is_broken_and_patience_cuts_only_the_idle),
        TEST(test_streams_are_counted),
        TEST(test_the_end_waits_for_what_is_out),
        TEST(test_the_end_does_not_wait_for_ever),
        cmocka_unit_test(test_a_pool_is_bounded_and_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
