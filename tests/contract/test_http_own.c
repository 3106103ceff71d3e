/* SPDX-License-Identifier: Apache-2.0 */
/* What our own HTTP/1.1 does and libcurl does not, or not so: it believes what a server says about its patience, and
 * an address that hangs does not hold up the next. */
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out);
void freeaddrinfo(struct addrinfo *list);

static atomic_int asked;

/* Every name leads to 127.0.0.1, .2 and .3. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    (void)service, (void)hints;
    struct addrinfo *list = NULL;
    atomic_fetch_add(&asked, 1);
    if (strcmp(node, "three.example") != 0)
        return EAI_NONAME;
    for (uint8_t last = 3; last >= 1; last--) {
        struct {
            struct addrinfo info;
            struct sockaddr_in in;
        } *a = calloc(1, sizeof *a);

        assert_non_null(a);
        const uint8_t ip[4] = {127, 0, 0, last};
        a->in.sin_family = AF_INET;
        memcpy(&a->in.sin_addr, ip, 4);
        a->info = (struct addrinfo){.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_addrlen = sizeof a->in,
                                    .ai_addr = (struct sockaddr *)&a->in,
                                    .ai_next = list};
        list = &a->info;
    }
    *out = list;
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

static void a_server_that_says_how_long_it_waits_is_believed(void **state)
{
    (void)state;
    static const struct step brief[8] = {
        {OP_REQUEST},
        {OP_SEND, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n"},
        {OP_AGAIN}};
    struct fixture f;
    struct outcome got;
    set_up(&f, brief, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 5000, &got);
    client_deliver(&f.client, short_message(), 5000, &got);
    assert_int_equal(server_connections(f.server), 1);
    client_run_ms(&f.client, 4500); /* four fifths of it are over */
    client_deliver(&f.client, short_message(), 5000, &got);
    assert_int_equal(got.status, 200);
    assert_int_equal(server_connections(f.server), 2);
    tear_down(&f);
}

/* A refusal is there before the request is all out: it counts, and the rest of the request is not sent to anybody. */
static void an_early_refusal_ends_the_request(void **state)
{
    (void)state;
    static const struct step early[8] = {
        {OP_READ, NULL, 10}, {OP_SEND, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"}, {OP_HOLD}};
    struct fixture f;
    struct outcome got;
    size_t n = 16 << 20;
    char *payload = filled(n);
    struct hk_message msg = message_of(payload, n);
    set_up(&f, early, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    for (unsigned i = 1; i <= 2; i++) {
        client_deliver(&f.client, &msg, 5000, &got);
        assert_int_equal(got.status, 413);
        assert_int_equal(server_connections(f.server), i);
    }
    tear_down(&f);
    free(payload);
}

/* A name is asked for once, not for each connection. */
static void a_name_is_remembered_for_a_while(void **state)
{
    (void)state;

    enum {
        N = 8
    };
    struct fixture f;
    struct outcome got[N];
    set_up(&f, polite, NULL, "127.0.0.1");
    (void)snprintf(f.url, sizeof f.url, "http://three.example:%d/hook", server_port(f.server));
    client_open_http(&f.client, &f.options);
    struct hk_message msg = *short_message();
    atomic_store(&asked, 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++)
            client_send(&f.client, &msg, 5000, &got[i]);
        client_wait(&f.client);
        for (int i = 0; i < N; i++)
            assert_int_equal(got[i].status, 200);
    }
    assert_int_equal(atomic_load(&asked), 1);
    size_t len;
    const char *request = server_last(f.server, &len);
    assert_non_null(strstr(request, "\r\nHost: three.example:"));
    tear_down(&f);
}

/* Listens, but its queue is full: connecting to it hangs. -1: such a thing cannot be made here. */
static int deaf_listener(int port, int fillers[], size_t n)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    static const uint8_t ip[4] = {127, 0, 0, 1};
    memcpy(&at.sin_addr, ip, 4);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 0) != 0) {
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i], (struct sockaddr *)&at, sizeof at);
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return fd;
}

static void an_address_that_hangs_does_not_hold_up_the_next(void **state)
{
    (void)state;
    struct fixture f;
    struct outcome got;
    int fillers[4] = {-1, -1, -1, -1};
    f.server = server_start_at("127.0.0.3", polite, NULL);
    if (!f.server)
        skip();
    int deaf = deaf_listener(server_port(f.server), fillers, COUNT(fillers)); /* .2 refuses, .1 hangs */
    if (deaf < 0)
        skip();
    f.options = options_for(f.url);
    (void)snprintf(f.url, sizeof f.url, "http://three.example:%d/hook", server_port(f.server));
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 9000, &got);
    NOTE_IF(got.status != 200, "%s\n", got.error);
    assert_int_equal(got.status, 200);
    assert_int_equal(strncmp(got.address, "127.0.0.3:", 10), 0);
    tear_down(&f);
    (void)close(deaf);
    for (size_t i = 0; i < COUNT(fillers); i++)
        (void)close(fillers[i]);
}

/* When its name is wanted again it is asked for again: nothing of a failure is remembered. */
static void a_name_that_fails_fails_those_who_wait_and_no_others(void **state)
{
    (void)state;

    enum {
        N = 5
    };
    struct hk_http_options options = options_for("http://nowhere.example/");
    struct client client;
    struct outcome got[N];
    struct hk_message msg = *short_message();
    client_open_http(&client, &options);
    atomic_store(&asked, 0);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < N; i++)
            client_send(&client, &msg, 5000, &got[i]);
        client_wait(&client);
        for (int i = 0; i < N; i++) {
            assert_int_equal(got[i].fault, HK_FAULT_DNS);
            assert_false(got[i].possibly_delivered);
            assert_non_null(strstr(got[i].error, "nowhere.example"));
        }
        assert_int_equal(atomic_load(&asked), round);
    }
    client_close(&client);
}

/* What libcurl's reader of URLs takes apart is put together again as it was. */
static void the_first_lines_are_as_the_url_says(void **state)
{
    (void)state;

    static const struct {
        const char *path, *line;
    } cases[] = {{"", "POST / HTTP/1.1\r\n"},
                 {"/", "POST / HTTP/1.1\r\n"},
                 {"/a/../b/./c", "POST /b/c HTTP/1.1\r\n"},
                 {"/x?a=1&b=%20", "POST /x?a=1&b=%20 HTTP/1.1\r\n"},
                 {"?q=1", "POST /?q=1 HTTP/1.1\r\n"},
                 {"/t0ken/~user/;p=1,2", "POST /t0ken/~user/;p=1,2 HTTP/1.1\r\n"},
                 {"/\xc3\xa9", "POST /%c3%a9 HTTP/1.1\r\n"}}; /* by libcurl */

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f;
        struct outcome got;
        char host[64];
        set_up(&f, polite, NULL, "127.0.0.1");
        (void)snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d%s", server_port(f.server), cases[i].path);
        (void)snprintf(host, sizeof host, "\r\nHost: 127.0.0.1:%d\r\n", server_port(f.server));
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, short_message(), 5000, &got);
        assert_int_equal(got.status, 200);
        size_t len;
        const char *request = server_last(f.server, &len);
        NOTE_IF(strncmp(request, cases[i].line, strlen(cases[i].line)) != 0, "%s\n", request);
        assert_int_equal(strncmp(request, cases[i].line, strlen(cases[i].line)), 0);
        assert_non_null(strstr(request, host));
        assert_non_null(strstr(request, "\r\nContent-Length: 14\r\n"));
        assert_non_null(strstr(request, "\r\nAccept: */*\r\n"));
        tear_down(&f);
    }
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_says_how_long_it_waits_is_believed),
        cmocka_unit_test(an_early_refusal_ends_the_request),
        cmocka_unit_test(a_name_is_remembered_for_a_while),
        cmocka_unit_test(an_address_that_hangs_does_not_hold_up_the_next),
        cmocka_unit_test(a_name_that_fails_fails_those_who_wait_and_no_others),
        cmocka_unit_test(the_first_lines_are_as_the_url_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
