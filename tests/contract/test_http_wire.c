/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink and its connections: reuse, deadlines, names, TLS, memory. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fixture.h"
#include "ports.h"

static void a_refused_connection_is_a_connect_fault(void **state)
{
    (void)state;
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", free_port());
    struct hk_http_options options = options_for(url);
    struct client client;
    struct outcome got;
    client_open_http(&client, &options);
    for (int i = 0; i < 3; i++) {
        client_deliver(&client, short_message(), 5000, &got);
        assert_int_equal(got.fault, HK_FAULT_CONNECT);
        assert_false(got.possibly_delivered);
        assert_string_equal(got.address, "");
        assert_true(got.error[0] != '\0');
    }
    client_close(&client);
}

static void connections_are_used_again(void **state)
{
    (void)state;
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    for (int i = 0; i < 20; i++) {
        client_deliver(&f.client, short_message(), 5000, &got);
        assert_int_equal(got.status, 200);
    }
    assert_int_equal(server_connections(f.server), 1);
    assert_int_equal(server_requests(f.server), 20);
    char address[64];
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", server_port(f.server));
    assert_string_equal(got.address, address);
    tear_down(&f);
}

/* An idle connection that the server closed must neither fail the next request nor (libuv) abort the process. */
static void a_connection_closed_while_idle_is_replaced(void **state)
{
    (void)state;
    static const struct step closes[8] = {{OP_REQUEST}, {OP_SEND, OK_EMPTY}, {OP_SLEEP, NULL, 20}, {OP_END}};
    static const struct step resets[8] = {
        {OP_REQUEST}, {OP_SEND, OK_EMPTY}, {OP_SLEEP, NULL, 20}, {OP_RESET}};
    static const struct step babbles[8] = {{OP_REQUEST},
                                           {OP_SEND, OK_EMPTY},
                                           {OP_SLEEP, NULL, 20},
                                           {OP_SEND, "HTTP/1.1 500 Stray\r\nContent-Length: 0\r\n\r\n"},
                                           {OP_HOLD}};
    static const struct step twice[8] = {
        {OP_REQUEST}, {OP_SEND, OK_EMPTY "HTTP/1.1 500 Stray\r\nContent-Length: 0\r\n\r\n"}, {OP_AGAIN}};
    const struct step *const scripts[] = {closes, resets, babbles, twice};
    size_t n_scripts = by_h2 ? 2 : COUNT(scripts); /* what nobody asked for has no stream to come on */
    for (size_t s = 0; s < n_scripts; s++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, scripts[s], NULL, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        for (int i = 0; i < 4; i++) {
            client_deliver(&f.client, short_message(), 5000, &got);
            NOTE_IF(got.status != 200, "script %zu: %s\n", s, got.error);
            assert_int_equal(got.status, 200);
            bool looks = i % 2; /* with the loop seeing what comes in meanwhile, and without */
            for (int k = 0; k < 6000 && scripts[s] != twice && server_done(f.server) <= (unsigned)i; k++)
                nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            if (looks)
                client_run_ms(&f.client, 60);
        }
        assert_true(server_connections(f.server) == 4 || scripts[s] == twice);
        tear_down(&f);
    }
}

#define STRAY "HTTP/1.1 500 Stray\r\nContent-Length: 0\r\n\r\n" /* 45 bytes */

/* Answers that leave any doubt about their end take their connection with them, though they count. What comes late on it
 * would be taken for the answer to the next request, which is why each script has it ready. */
static void a_doubtful_answer_costs_the_connection_only(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 204 No Content\r\nContent-Length: 45\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 45\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        ("HTTP/1.1 103 Early Hints\r\nContent-Length: 45\r\n\r\n" OK_EMPTY),
        "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 45\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length : 45\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: b\r\n Content-Length: 45\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    };
    for (size_t s = 0; s < 2 * COUNT(answers); s++) {
        const struct step late[8] = {
            {OP_REQUEST}, {OP_SEND, answers[s / 2]}, {OP_REQUEST}, {OP_SEND, STRAY}, {OP_HOLD}};
        struct server_tls tls = {certs.good, certs.key};
        struct fixture f;
        struct outcome got;
        set_up(&f, late, s % 2 ? &tls : NULL, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        for (unsigned i = 1; i <= 3; i++) {
            client_deliver(&f.client, short_message(), 5000, &got);
            NOTE_IF(got.status >= 400 || server_connections(f.server) != i, "%s: %d %s, %u connections\n",
                    answers[s / 2], got.status, got.error, server_connections(f.server));
            assert_in_range(got.status, 200, 304);
            assert_int_equal(server_connections(f.server), i);
        }
        tear_down(&f);
    }
}

static void a_stray_answer_is_nobodys(const struct step *steps)
{
    struct server_tls tls = {certs.good, certs.key};
    struct fixture f;
    struct outcome got;
    set_up(&f, steps, &tls, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    for (unsigned i = 1; i <= 3; i++) {
        client_deliver(&f.client, short_message(), 5000, &got);
        NOTE_IF(got.status != 200, "%s: %d %s\n", steps[1].text, got.status, got.error);
        assert_int_equal(got.status, 200);
    }
    tear_down(&f);
}

/* More than an answer, in one record of TLS: what a reader has not taken is in no socket any more. */
static void what_lies_behind_an_answer_in_tls_is_nobodys_answer(void **state)
{
    (void)state;
    static const struct step with_body[8] = {{OP_REQUEST},
                                             {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
                                             {OP_SLEEP, NULL, 20},
                                             {OP_SEND, "hello" STRAY},
                                             {OP_AGAIN}},
                             chunked[8] = {{OP_REQUEST},
                                           {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
                                           {OP_SLEEP, NULL, 20},
                                           {OP_SEND, "5\r\nhello\r\n0\r\n\r\n" STRAY},
                                           {OP_AGAIN}};
    a_stray_answer_is_nobodys(with_body);
    a_stray_answer_is_nobodys(chunked);
    for (size_t at = 4096; at <= 16384 - strlen(STRAY); at += 4096 - strlen(STRAY)) {
        char *text = filled(at + sizeof STRAY);
        memcpy(text, OK_EMPTY, strlen(OK_EMPTY));
        memcpy(text + at, STRAY, sizeof STRAY);
        const struct step more[8] = {{OP_REQUEST}, {OP_SEND, text}, {OP_AGAIN}};
        a_stray_answer_is_nobodys(more);
        free(text);
    }
}

/* What leaves no doubt keeps it. */
static void a_clear_answer_keeps_the_connection(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n",
        ("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" OK_EMPTY),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nwhy",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    };
    for (size_t s = 0; s < COUNT(answers); s++) {
        const struct step again[8] = {{OP_REQUEST}, {OP_SEND, answers[s]}, {OP_AGAIN}};
        struct fixture f;
        struct outcome got;
        set_up(&f, again, NULL, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        for (unsigned i = 1; i <= 3; i++)
            client_deliver(&f.client, short_message(), 5000, &got);
        NOTE_IF(server_connections(f.server) != 1, "%s: %u\n", answers[s], server_connections(f.server));
        assert_int_equal(server_connections(f.server), 1);
        tear_down(&f);
    }
}

/* A server may say 200 after the head and read on: what it was not sent it has not got. Where it says that it will close,
 * libcurl stops sending, and then nobody knows. */
static void an_early_success_does_not_cut_the_request(void **state)
{
    (void)state;

    static const struct {
        struct step steps[8];
        bool closes;
    } scripts[] = {
        {{{OP_HEAD}, {OP_SEND, OK_EMPTY}, {OP_SLEEP, NULL, 60}, {OP_REQUEST}, {OP_AGAIN}}, false},
        {{{OP_HEAD},
          {OP_SEND, "HTTP/1.1 204 No Content\r\n\r\n"},
          {OP_SLEEP, NULL, 60},
          {OP_REQUEST},
          {OP_AGAIN}},
         false},
        {{{OP_HEAD},
          {OP_SEND, "HTTP/1.1 100 Continue\r\n\r\n" OK_EMPTY},
          {OP_SLEEP, NULL, 60},
          {OP_REQUEST},
          {OP_AGAIN}},
         false},
        {{{OP_HEAD},
          {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"},
          {OP_REPEAT, "0123456789abcdef", 65536},
          {OP_REQUEST},
          {OP_AGAIN}},
         false},
        {{{OP_HEAD}, {OP_SEND, OK_EMPTY}, {OP_SHUT}}, false},
        {{{OP_HEAD}, {OP_SEND, OK_EMPTY "and more"}, {OP_SLEEP, NULL, 60}, {OP_SEND, "and more"}, {OP_HOLD}},
         true},
        {{{OP_HEAD},
          {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
          {OP_SHUT}},
         true},
        {{{OP_HEAD}, {OP_SEND, "HTTP/1.1 200 OK\r\n\r\nuntil it ends"}, {OP_SHUT}}, true},
    };

    size_t n = 3 << 20;
    char *payload = filled(n);
    struct hk_message msg = message_of(payload, n);
    size_t n_scripts =
        by_h2 ? 4
              : COUNT(scripts); /* the others end half of a connection, or have no end that HTTP/2 knows */
    for (size_t s = 0; s < n_scripts; s++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, scripts[s].steps, NULL, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        for (size_t i = 1; i <= 2; i++) {
            client_deliver(&f.client, &msg, 10000, &got);
            NOTE_IF(got.status / 100 != 2, "script %zu: %d %s\n", s, got.status, got.error);
            if (by_libcurl && scripts[s].closes && !got.status && got.possibly_delivered)
                break;
            assert_int_equal(got.status / 100, 2);
            for (int wait = 0; wait < 1000 && server_got(f.server) < i * n; wait++)
                client_run_ms(&f.client, 10); /* what the system has taken is on its way */
            NOTE_IF(server_got(f.server) < i * n, "script %zu: %zu bytes\n", s, server_got(f.server));
            assert_true(server_got(f.server) >= i * n);
        }
        tear_down(&f);
    }
    free(payload);
}

/* The bound on repeats: a second copy is sent only by the policy's decision, which has been told that the first may have
 * arrived. */
static void a_request_that_may_have_arrived_is_not_repeated(void **state)
{
    (void)state;
    static const struct step resets[8] = {{OP_REQUEST}, {OP_SEND, OK_EMPTY}, {OP_REQUEST}, {OP_RESET}};
    static const struct step closes[8] = {{OP_REQUEST}, {OP_SEND, OK_EMPTY}, {OP_REQUEST}, {OP_END}};
    const struct step *const scripts[] = {resets, closes};
    for (size_t s = 0; s < COUNT(scripts); s++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, scripts[s], NULL, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, short_message(), 5000, &got);
        assert_int_equal(got.status, 200);
        client_deliver(&f.client, short_message(), 5000, &got);
        assert_int_equal(got.fault, HK_FAULT_RESET);
        assert_true(got.possibly_delivered);
        assert_int_equal(server_requests(f.server), 2);
        client_deliver(&f.client, short_message(), 5000, &got); /* on a new connection */
        assert_int_equal(got.status, 200);
        assert_int_equal(server_requests(f.server), 3);
        tear_down(&f);
    }
}

/* A server that took the request and died: that nobody is there any more must not look as if nothing had been sent. */
static void a_request_that_may_have_arrived_is_so_although_nobody_is_there_any_more(void **state)
{
    (void)state;
    static const struct step dies[8] = {{OP_REQUEST}, {OP_SEND, OK_EMPTY}, {OP_REQUEST}, {OP_DEAF}, {OP_END}};
    static const struct step resets[8] = {
        {OP_REQUEST}, {OP_SEND, OK_EMPTY}, {OP_REQUEST}, {OP_DEAF}, {OP_RESET}};
    const struct step *const scripts[] = {dies, resets};
    for (size_t s = 0; s < COUNT(scripts); s++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, scripts[s], NULL, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, short_message(), 5000, &got);
        assert_int_equal(got.status, 200);
        client_deliver(&f.client, short_message(), 5000, &got);
        NOTE_IF(got.fault != HK_FAULT_RESET, "fault %s, error \"%s\"\n", hk_fault_name(got.fault), got.error);
        assert_int_equal(got.fault, HK_FAULT_RESET);
        assert_true(got.possibly_delivered);
        assert_int_equal(server_requests(f.server), 2);
        client_deliver(&f.client, short_message(), 5000, &got); /* and now nothing is */
        assert_int_equal(got.fault, HK_FAULT_CONNECT);
        assert_false(got.possibly_delivered);
        tear_down(&f);
    }
}

static void connections_get_old(void **state)
{
    (void)state;
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "127.0.0.1");
    f.options.max_connection_age_ms = 1000;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 5000, &got);
    client_run_ms(&f.client, 2200);
    client_deliver(&f.client, short_message(), 5000, &got);
    assert_int_equal(got.status, 200);
    assert_int_equal(server_connections(f.server), 2);
    tear_down(&f);
}

static void many_at_once_share_the_allowed_connections(void **state)
{
    (void)state;

    enum {
        N = 500
    };
    struct fixture f;
    struct outcome *got = calloc(N, sizeof *got);
    assert_non_null(got);
    set_up(&f, polite, NULL, "127.0.0.1");
    f.options.max_connections = 16;
    client_open_http(&f.client, &f.options);
    struct hk_message msg = *short_message();
    for (int i = 0; i < N; i++)
        client_send(&f.client, &msg, 20000, &got[i]);
    client_wait(&f.client);
    for (int i = 0; i < N; i++) {
        assert_int_equal(got[i].n_done, 1);
        assert_int_equal(got[i].status, 200);
    }
    assert_int_equal(server_requests(f.server), N);
    assert_true(server_connections(f.server) <= 16);
    tear_down(&f);
    free(got);
}

static void abort_ends_everything_soon(void **state)
{
    (void)state;
    static const struct step hangs[8] = {{OP_REQUEST}, {OP_HOLD}};

    enum {
        N = 8
    };
    struct fixture f;
    struct outcome got[N];
    set_up(&f, hangs, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    struct hk_message msg = *short_message();
    for (int i = 0; i < N; i++)
        client_send(&f.client, &msg, 60000, &got[i]);
    while (server_requests(f.server) < N)
        client_run_ms(&f.client, 10);
    f.client.sink->ops->abort(f.client.sink);
    assert_int_equal(f.client.got, 0); /* never from inside abort */
    client_wait(&f.client);
    for (int i = 0; i < N; i++) {
        assert_int_equal(got[i].n_done, 1);
        assert_int_equal(got[i].fault, HK_FAULT_LOCAL);
        assert_true(got[i].possibly_delivered);
        assert_string_equal(got[i].error, "aborted");
    }
    struct outcome more;
    client_send(&f.client, &msg, 100, &more); /* it still works */
    client_wait(&f.client);
    assert_int_equal(more.fault, HK_FAULT_TIMEOUT);
    tear_down(&f);
}

static void abort_before_anything_was_sent(void **state)
{
    (void)state;
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    client_send(&f.client, short_message(), 60000, &got);
    f.client.sink->ops->abort(f.client.sink);
    client_wait(&f.client);
    assert_int_equal(got.fault, HK_FAULT_LOCAL);
    assert_false(got.possibly_delivered);
    tear_down(&f);
}

/* ---- deadlines ---- */

static void the_first_byte_has_its_own_deadline(void **state)
{
    (void)state;
    static const struct step hangs[8] = {{OP_REQUEST}, {OP_HOLD}};
    struct fixture f;
    struct outcome got;
    set_up(&f, hangs, NULL, "127.0.0.1");
    f.options.first_byte_timeout_ms = 150;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 20000, &got);
    assert_int_equal(got.fault, HK_FAULT_TIMEOUT);
    assert_true(got.duration_ms >= 150 && got.duration_ms < 10000);
    assert_non_null(strstr(got.error, "waiting for the answer"));
    tear_down(&f);
}

static void a_trickle_is_ended(void **state)
{
    (void)state;
    static const struct step head[8] = {
        {OP_REQUEST}, {OP_DRIP, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: bbbbbbbbbbbbbbbbbbbbbbbb", 60}};
    static const struct step body[8] = {
        {OP_REQUEST},
        {OP_SEND, "HTTP/1.1 200 OK\r\n\r\n"},
        {OP_DRIP, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 60}};
    static const struct step deaf[8] = {{OP_SLEEP, NULL, 20000}};

    const struct {
        const struct step *steps;
        enum hk_fault fault;
        int status;
        size_t payload;
        bool possibly;
    } cases[] = {{head, HK_FAULT_TIMEOUT, 0, 100, true},
                 {body, HK_FAULT_NONE, 200, 100, false},
                 {deaf, HK_FAULT_TIMEOUT, 0, 16 << 20, false}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, cases[i].steps, NULL, "127.0.0.1");
        f.options.low_speed_ms = 300;
        f.options.low_speed_bytes = 100;
        client_open_http(&f.client, &f.options);
        char *payload = filled(cases[i].payload);
        struct hk_message msg = message_of(payload, cases[i].payload);
        client_deliver(&f.client, &msg, 20000, &got);
        NOTE_IF(got.fault != cases[i].fault, "case %zu: %s\n", i, got.error);
        assert_int_equal(got.fault, cases[i].fault);
        assert_int_equal(got.status, cases[i].status);
        assert_int_equal(got.possibly_delivered, cases[i].possibly);
        assert_true(got.duration_ms < 10000);
        free(payload);
        tear_down(&f);
    }
}

static void waiting_for_an_answer_is_not_a_trickle(void **state)
{
    (void)state;
    static const struct step thinks[8] = {
        {OP_REQUEST}, {OP_SLEEP, NULL, 500}, {OP_SEND, OK_EMPTY}, {OP_HOLD}};
    struct fixture f;
    struct outcome got;
    set_up(&f, thinks, NULL, "127.0.0.1");
    f.options.low_speed_ms = 100;
    f.options.low_speed_bytes = 1000;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 20000, &got);
    assert_int_equal(got.status, 200);
    tear_down(&f);
}

/* Listening, but nobody accepts and the queue is full: connecting hangs. TLS that never answers does the same. */
static void connecting_has_its_own_deadline(void **state)
{
    (void)state;
    static const struct step mute[8] = {{OP_GARBAGE}, {OP_HOLD}};
    struct server_tls tls = {certs.good, certs.key};
    struct fixture f;
    struct outcome got;
    set_up(&f, mute, &tls, "127.0.0.1");
    f.options.connect_timeout_ms = 200;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 20000, &got);
    assert_int_equal(got.fault, HK_FAULT_TIMEOUT);
    assert_false(got.possibly_delivered);
    assert_true(got.duration_ms >= 200 && got.duration_ms < 10000);
    assert_non_null(strstr(got.error, "connecting"));
    tear_down(&f);
}

/* ---- TLS ---- */

static void tls_failures_have_their_own_faults(void **state)
{
    (void)state;
    static const struct step plain[8] = {
        {OP_GARBAGE}, {OP_SEND, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"}, {OP_HOLD}};
    static const struct step hangs_up[8] = {{OP_GARBAGE}, {OP_READ, NULL, 10}, {OP_RESET}};

    const struct {
        const char *name, *cert, *ca, *host;
        const struct step *steps;
        enum hk_fault fault;
    } cases[] = {
        {"good", certs.good, certs.ca, "localhost", polite, HK_FAULT_NONE},
        {"good, by address", certs.good, certs.ca, "127.0.0.1", polite, HK_FAULT_NONE},
        {"unknown authority", certs.good, certs.other_ca, "localhost", polite, HK_FAULT_TLS_VERIFY},
        {"the system's authorities", certs.good, NULL, "localhost", polite, HK_FAULT_TLS_VERIFY},
        {"expired", certs.expired, certs.ca, "localhost", polite, HK_FAULT_TLS_VERIFY},
        {"not yet valid", certs.early, certs.ca, "localhost", polite, HK_FAULT_TLS_VERIFY},
        {"for another host", certs.wrong_host, certs.ca, "localhost", polite, HK_FAULT_TLS_VERIFY},
        {"for another host, by address", certs.wrong_host, certs.ca, "127.0.0.1", polite,
         HK_FAULT_TLS_VERIFY},
        {"self-signed", certs.self_signed, certs.ca, "localhost", polite, HK_FAULT_TLS_VERIFY},
        {"plain HTTP on a TLS port", certs.good, certs.ca, "localhost", plain, HK_FAULT_TLS},
        {"reset in the handshake", certs.good, certs.ca, "localhost", hangs_up, HK_FAULT_TLS},
    };

    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct server_tls tls = {cases[i].cert, certs.key};
        struct fixture f;
        struct outcome got;
        set_up(&f, cases[i].steps, &tls, cases[i].host);
        f.options.ca_file = cases[i].ca;
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, short_message(), 5000, &got);
        bool good = got.fault == cases[i].fault && !got.possibly_delivered &&
                    got.status == (cases[i].fault == HK_FAULT_NONE ? 200 : 0) &&
                    server_requests(f.server) == (cases[i].fault == HK_FAULT_NONE);
        NOTE_IF(!good, "%s: fault %s, status %d, error \"%s\"\n", cases[i].name, hk_fault_name(got.fault),
                got.status, got.error);
        wrong += !good;
        tear_down(&f);
    }
    assert_int_equal(wrong, 0);
}

static void tls_rows_behave_as_plain_ones(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        struct step steps[6];
        enum hk_fault fault;
        int status;
        bool possibly_delivered;
        size_t payload_bytes;
    } cases[] = {
        {"closed after the request", {{OP_REQUEST}, {OP_END}}, HK_FAULT_RESET, 0, true, 0},
        {"reset after the request", {{OP_REQUEST}, {OP_RESET}}, HK_FAULT_RESET, 0, true, 0},
        {"reset after a long request", {{OP_REQUEST}, {OP_RESET}}, HK_FAULT_RESET, 0, true, 300000},
        {"reset inside the payload", {{OP_READ, NULL, 50000}, {OP_RESET}}, HK_FAULT_RESET, 0, false, 3 << 20},
        {"no answer", {{OP_REQUEST}, {OP_HOLD}}, HK_FAULT_TIMEOUT, 0, true, 0},
        {"endless body",
         {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n\r\n"}, {OP_ENDLESS, "x"}},
         HK_FAULT_NONE,
         200,
         false,
         0},
        {"truncated body",
         {{OP_REQUEST},
          {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"},
          {OP_SLEEP, NULL, 40},
          {OP_RESET}},
         HK_FAULT_NONE,
         200,
         false,
         0},
    };

    size_t wrong = 0;
    struct server_tls tls = {certs.good, certs.key};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, cases[i].steps, &tls, "localhost");
        client_open_http(&f.client, &f.options);
        size_t n = cases[i].payload_bytes ? cases[i].payload_bytes : 10;
        char *payload = filled(n);
        struct hk_message msg = message_of(payload, n);
        client_deliver(&f.client, &msg, 1500, &got);
        bool good = got.fault == cases[i].fault && got.status == cases[i].status &&
                    got.possibly_delivered == cases[i].possibly_delivered;
        NOTE_IF(!good, "%s: fault %s, status %d, possibly %d, error \"%s\"\n", cases[i].name,
                hk_fault_name(got.fault), got.status, got.possibly_delivered, got.error);
        wrong += !good;
        free(payload);
        tear_down(&f);
    }
    assert_int_equal(wrong, 0);
}

/* ---- memory ---- */

static long rss_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    }
    if (f)
        (void)fclose(f);
    return kib;
}

#ifdef __SANITIZE_ADDRESS__
#define GROWTH_MAX_KIB 32768 /* its quarantine */
#else
#define GROWTH_MAX_KIB 8192 /* the server's threads are in it */
#endif

/* 25 answers at once, each of up to a GiB: read to their bound and dropped. */
/* The thread sanitizer's own tables grow with every access. */
#if defined(__SANITIZE_THREAD__)
#define GROWTH_IS_NOT_OURS true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GROWTH_IS_NOT_OURS true
#endif
#endif
#ifndef GROWTH_IS_NOT_OURS
#define GROWTH_IS_NOT_OURS false
#endif

static void endless_answers_take_no_memory(void **state)
{
    (void)state;

    enum {
        N = 25
    };
    static const struct step body[8] = {
        {OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n\r\n"}, {OP_ENDLESS, "0123456789abcdef"}};
    static const struct step head[8] = {{OP_REQUEST},
                                        {OP_SEND, "HTTP/1.1 200 OK\r\n"},
                                        {OP_ENDLESS, "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"}};
    static const struct step line[8] = {
        {OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nX: "}, {OP_ENDLESS, "aaaaaaaaaaaaaaaa"}};
    static const struct step gzip[8] = {
        {OP_REQUEST},
        {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\3", 54},
        {OP_ENDLESS, "\1\1\1\1"}};
    const struct step *const scripts[] = {body, head, line, gzip};
    struct outcome *got = calloc(N, sizeof *got);
    assert_non_null(got);
    for (size_t s = 0; s < COUNT(scripts); s++) {
        struct fixture f;
        set_up(&f, scripts[s], NULL, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        struct hk_message msg = *short_message();
        long before = 0;
        for (int round = 0; round < 3; round++) {
            if (round == 1)
                before = rss_kib();
            for (int i = 0; i < N; i++)
                client_send(&f.client, &msg, 10000, &got[i]);
            client_wait(&f.client);
            for (int i = 0; i < N; i++)
                assert_true(got[i].fault == HK_FAULT_PROTOCOL || got[i].status == 200);
        }
        long grown = rss_kib() - before;
        NOTE_IF(grown >= GROWTH_MAX_KIB, "script %zu: grown by %ld KiB\n", s, grown);
        assert_true(GROWTH_IS_NOT_OURS || grown < GROWTH_MAX_KIB);
        tear_down(&f);
    }
    free(got);
}

/* The address sanitizer keeps freed memory for a while, which would count as growth. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    /* What the others are about is how HTTP/1.1 says where an answer ends; test_http_frames has HTTP/2's own. */
    const struct CMUnitTest of_h2[] = {
        cmocka_unit_test(a_refused_connection_is_a_connect_fault),
        cmocka_unit_test(connections_are_used_again),
        cmocka_unit_test(a_connection_closed_while_idle_is_replaced),
        cmocka_unit_test(an_early_success_does_not_cut_the_request),
        cmocka_unit_test(a_request_that_may_have_arrived_is_not_repeated),
        cmocka_unit_test(a_request_that_may_have_arrived_is_so_although_nobody_is_there_any_more),
        cmocka_unit_test(connections_get_old),
        cmocka_unit_test(many_at_once_share_the_allowed_connections),
        cmocka_unit_test(abort_ends_everything_soon),
        cmocka_unit_test(abort_before_anything_was_sent),
        cmocka_unit_test(the_first_byte_has_its_own_deadline),
        cmocka_unit_test(waiting_for_an_answer_is_not_a_trickle),
        cmocka_unit_test(connecting_has_its_own_deadline),
        cmocka_unit_test(tls_failures_have_their_own_faults),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_connection_is_a_connect_fault),
        cmocka_unit_test(connections_are_used_again),
        cmocka_unit_test(a_connection_closed_while_idle_is_replaced),
        cmocka_unit_test(a_doubtful_answer_costs_the_connection_only),
        cmocka_unit_test(what_lies_behind_an_answer_in_tls_is_nobodys_answer),
        cmocka_unit_test(a_clear_answer_keeps_the_connection),
        cmocka_unit_test(an_early_success_does_not_cut_the_request),
        cmocka_unit_test(a_request_that_may_have_arrived_is_not_repeated),
        cmocka_unit_test(a_request_that_may_have_arrived_is_so_although_nobody_is_there_any_more),
        cmocka_unit_test(connections_get_old),
        cmocka_unit_test(many_at_once_share_the_allowed_connections),
        cmocka_unit_test(abort_ends_everything_soon),
        cmocka_unit_test(abort_before_anything_was_sent),
        cmocka_unit_test(the_first_byte_has_its_own_deadline),
        cmocka_unit_test(a_trickle_is_ended),
        cmocka_unit_test(waiting_for_an_answer_is_not_a_trickle),
        cmocka_unit_test(connecting_has_its_own_deadline),
        cmocka_unit_test(tls_failures_have_their_own_faults),
        cmocka_unit_test(tls_rows_behave_as_plain_ones),
        cmocka_unit_test(endless_answers_take_no_memory),
    };
    return by_h2 ? cmocka_run_group_tests(of_h2, begin_with_certs, end_with_certs)
                 : cmocka_run_group_tests(tests, begin_with_certs, end_with_certs);
}
