/* SPDX-License-Identifier: Apache-2.0 */
/* The byte stream of sinks with a protocol of their own, against a server that misbehaves by script. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/ssl.h>

#include "fixture.h"
#include "sink/stream/stream.h"

#define NO_CIPHER "NULL-SHA256:ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0"
#define HELLO_CUT "\x16\x03\x03\x00\x4a\x02\x00\x00\x46\x03\x03\x01\x02\x03"
#define BIG       ((size_t)8 << 20)

static const struct hk_cidr loopback[] = {{{127}, 8, false}, {{[15] = 1}, 128, true}};
static const struct step answering[6] = {{OP_READ, NULL, 4}, {OP_SEND, "pong"}, {OP_HOLD}};

enum moment {
    NEVER = 0,
    AT_OPENED,
    AT_CAME,
    AT_DRAINED,
    AT_ENDED
};

struct user {
    struct hk_loop *loop;
    struct hk_timer *guard;
    struct hk_stream *stream;
    struct hk_stream_tls *tls;
    const char *text; /* written when it is open */
    size_t len, expect;
    enum moment close_at;
    bool stop_when_drained;
    unsigned inside; /* a function of the stream is running */
    unsigned opened, drained, ended;
    char *got;
    size_t n_got;
    enum hk_fault fault;
    bool orderly;
    char error[HK_STREAM_ERROR_MAX];
};

static void hangs(void *arg)
{
    (void)arg;
    (void)fprintf(stderr, "a stream neither opens nor ends\n");
    abort();
}

static void over(struct user *u, enum moment at)
{
    if (u->close_at == at) {
        hk_stream_close(u->stream);
        u->stream = NULL;
    }
    if (u->close_at == at || at == AT_ENDED)
        hk_loop_stop(u->loop);
}

static void on_opened(void *arg)
{
    struct user *u = arg;
    assert_int_equal(u->inside, 0);
    assert_int_equal(u->opened++, 0);
    if (u->close_at == AT_OPENED) {
        over(u, AT_OPENED);
        return;
    }
    u->inside++;
    assert_int_equal(hk_stream_write(u->stream, u->text, u->len), HK_OK);
    hk_stream_flush(u->stream);
    u->inside--;
}

static void on_came(void *arg, struct hk_str bytes)
{
    struct user *u = arg;
    assert_int_equal(u->inside, 0);
    assert_true(u->opened && !u->ended && bytes.len);
    u->got = realloc(u->got, u->n_got + bytes.len + 1);
    assert_non_null(u->got);
    memcpy(u->got + u->n_got, bytes.ptr, bytes.len);
    u->n_got += bytes.len;
    u->got[u->n_got] = '\0';
    if (u->expect && u->n_got >= u->expect)
        hk_loop_stop(u->loop);
    over(u, AT_CAME);
}

static void on_drained(void *arg)
{
    struct user *u = arg;
    assert_int_equal(u->inside, 0);
    u->drained++;
    assert_int_equal(hk_stream_pending(u->stream), 0);
    if (u->stop_when_drained)
        hk_loop_stop(u->loop);
    over(u, AT_DRAINED);
}

static void on_ended(void *arg, const struct hk_stream_end *end)
{
    struct user *u = arg;
    assert_int_equal(u->inside, 0);
    assert_int_equal(u->ended++, 0);
    u->fault = end->fault;
    u->orderly = end->orderly;
    (void)snprintf(u->error, sizeof u->error, "%s", end->text);
    assert_true(u->fault != HK_FAULT_NONE && u->error[0]);
    over(u, AT_ENDED);
}

static const struct hk_stream_calls calls = {on_opened, on_came, on_drained, on_ended};

static void begin(struct user *u)
{
    *u = (struct user){.text = "ping", .len = 4};
    assert_int_equal(hk_loop_new(&u->loop, NULL), HK_OK);
    assert_int_equal(hk_timer_new(u->loop, hangs, NULL, &u->guard), HK_OK);
}

static void connect_to(struct user *u, const char *host, int port, bool allowed, uint64_t timeout_ms)
{
    struct hk_err err;
    const struct hk_stream_options options = {.host = host,
                                              .port = (uint16_t)port,
                                              .tls = u->tls,
                                              .allow = loopback,
                                              .n_allow = allowed ? COUNT(loopback) : 0,
                                              .connect_timeout_ms = timeout_ms,
                                              .max_pending_bytes = BIG,
                                              .calls = &calls,
                                              .arg = u};
    u->inside++;
    assert_int_equal(hk_stream_open(u->loop, &options, &u->stream, &err), HK_OK);
    u->inside--;
    hk_timer_start(u->guard, 60000);
    hk_loop_run(u->loop);
}

static void end(struct user *u)
{
    hk_stream_close(u->stream);
    hk_stream_tls_free(u->tls);
    hk_timer_free(u->guard);
    hk_loop_free(u->loop);
    free(u->got);
}

static void use_tls(struct user *u, const char *ca, bool with_cert)
{
    struct hk_err err;
    const struct hk_stream_tls_files files = {
        .ca_file = ca, .cert_file = with_cert ? certs.good : NULL, .key_file = with_cert ? certs.key : NULL};
    assert_int_equal(hk_stream_tls_new(&files, &u->tls, &err), HK_OK);
}

/* ---- every way in which it can fail ---- */

struct row {
    const char *name;
    bool tls, with_cert, blocked, deaf;
    struct server_tls server;
    const char *ca, *host;
    struct step steps[6];
    enum hk_fault fault; /* NONE: it gets its pong */
    bool orderly, opens;
    const char *says;
    uint64_t timeout_ms;
};

static bool run_row(const struct row *row)
{
    struct user u;
    struct server_tls server_tls = row->server;
    if (!server_tls.cert_file)
        server_tls.cert_file = certs.good;
    if (!server_tls.key_file)
        server_tls.key_file = certs.key;
    struct server *server =
        server_start(row->steps[0].op ? row->steps : answering, row->tls ? &server_tls : NULL);
    int port = server_port(server);
    if (row->deaf) {
        server_stop(server);
        server = NULL;
    }
    begin(&u);
    if (row->fault == HK_FAULT_NONE)
        u.expect = 4;
    if (row->tls)
        use_tls(&u, row->ca, row->with_cert);
    connect_to(&u, row->host ? row->host : "localhost", port, !row->blocked,
               row->timeout_ms ? row->timeout_ms : 20000);
    bool good = u.fault == row->fault && (row->fault == HK_FAULT_NONE) == (u.ended == 0) &&
                u.orderly == row->orderly && (row->opens || row->fault == HK_FAULT_NONE) == (u.opened == 1) &&
                (!row->says || strstr(u.error, row->says)) &&
                (row->fault != HK_FAULT_NONE || strcmp(u.got, "pong") == 0);
    bool connected = server && server_connections(server) > 0;
    good = good && !(row->blocked && connected);
    NOTE_IF(!good, "%s: fault %s, opened %u, ended %u, orderly %d, %zu bytes, \"%s\"\n", row->name,
            hk_fault_name(u.fault), u.opened, u.ended, u.orderly, u.n_got, u.error);
    end(&u);
    if (server)
        server_stop(server);
    return good;
}

/* clang-format off: a table */
static void every_failure_has_its_fault(void **state)
{
    (void)state;
    const struct row rows[] = {
        {"plain"},
        {"plain, by address", .host = "127.0.0.1"},
        {"TLS", .tls = true, .ca = certs.ca},
        {"TLS 1.2", .tls = true, .ca = certs.ca, .server.max_version = TLS1_2_VERSION},
        {"TLS, by address", .tls = true, .ca = certs.ca, .host = "127.0.0.1"},
        {"our certificate", .tls = true, .ca = certs.ca, .server.client_ca = certs.ca, .with_cert = true},

        {"expired", .tls = true, .ca = certs.ca, .server.cert_file = certs.expired,
         .fault = HK_FAULT_TLS_VERIFY, .says = "expired"},
        {"not yet valid", .tls = true, .ca = certs.ca, .server.cert_file = certs.early,
         .fault = HK_FAULT_TLS_VERIFY},
        {"another host", .tls = true, .ca = certs.ca, .server.cert_file = certs.wrong_host,
         .fault = HK_FAULT_TLS_VERIFY},
        {"another host, by address", .tls = true, .ca = certs.ca, .server.cert_file = certs.wrong_host,
         .host = "127.0.0.1", .fault = HK_FAULT_TLS_VERIFY},
        {"self-signed", .tls = true, .ca = certs.ca, .server.cert_file = certs.self_signed,
         .fault = HK_FAULT_TLS_VERIFY},
        {"an unknown authority", .tls = true, .ca = certs.other_ca, .fault = HK_FAULT_TLS_VERIFY},
        {"none of the system's", .tls = true, .fault = HK_FAULT_TLS_VERIFY},
        {"no chain", .tls = true, .ca = certs.ca, .server.cert_file = certs.no_chain,
         .fault = HK_FAULT_TLS_VERIFY},
        {"signed by no authority", .tls = true, .ca = certs.ca, .server.cert_file = certs.by_leaf,
         .fault = HK_FAULT_TLS_VERIFY},
        {"a short key", .tls = true, .ca = certs.ca,
         .server = {.cert_file = certs.weak, .key_file = certs.weak_key}, .fault = HK_FAULT_TLS_VERIFY},

        {"TLS 1.1", .tls = true, .ca = certs.ca,
         .server = {.max_version = TLS1_1_VERSION, .ciphers = "ALL:@SECLEVEL=0"}, .fault = HK_FAULT_TLS},
        {"no cipher", .tls = true, .ca = certs.ca,
         .server = {.max_version = TLS1_2_VERSION, .ciphers = NO_CIPHER}, .fault = HK_FAULT_TLS},
        {"our certificate is missing", .tls = true, .ca = certs.ca,
         .server = {.client_ca = certs.ca, .max_version = TLS1_2_VERSION}, .fault = HK_FAULT_TLS},
        {"plain text", .tls = true, .ca = certs.ca,
         .steps = {{OP_GARBAGE}, {OP_SEND, "AMQP\1\1\0\11"}, {OP_HOLD}}, .fault = HK_FAULT_TLS},
        {"closed before the handshake", .tls = true, .ca = certs.ca, .steps = {{OP_GARBAGE}, {OP_END}},
         .fault = HK_FAULT_TLS},
        {"reset in the handshake", .tls = true, .ca = certs.ca,
         .steps = {{OP_GARBAGE}, {OP_READ, NULL, 10}, {OP_RESET}}, .fault = HK_FAULT_TLS},
        {"the handshake is cut off", .tls = true, .ca = certs.ca,
         .steps = {{OP_GARBAGE}, {OP_READ, NULL, 200}, {OP_SEND, HELLO_CUT, 14}, {OP_SHUT}},
         .fault = HK_FAULT_TLS},
        {"a handshake without an end", .tls = true, .ca = certs.ca, .steps = {{OP_GARBAGE}, {OP_HOLD}},
         .fault = HK_FAULT_TIMEOUT, .timeout_ms = 300},
        {"a handshake byte by byte", .tls = true, .ca = certs.ca,
         .steps = {{OP_GARBAGE}, {OP_DRIP, HELLO_CUT "xxxxxxxxxxxxxxxxxxxx", 100}, {OP_HOLD}},
         .fault = HK_FAULT_TIMEOUT, .timeout_ms = 300},

        {"nobody listens", .deaf = true, .fault = HK_FAULT_CONNECT},
        {"blocked", .blocked = true, .fault = HK_FAULT_BLOCKED, .says = "loopback"},
        {"blocked, by address", .blocked = true, .host = "127.0.0.1", .fault = HK_FAULT_BLOCKED,
         .says = "127.0.0.1"},
        {"ended", .steps = {{OP_READ, NULL, 4}, {OP_END}}, .fault = HK_FAULT_RESET, .orderly = true,
         .opens = true},
        {"half closed", .steps = {{OP_READ, NULL, 4}, {OP_SHUT}}, .fault = HK_FAULT_RESET, .orderly = true,
         .opens = true},
        {"reset", .steps = {{OP_READ, NULL, 4}, {OP_RESET}}, .fault = HK_FAULT_RESET, .opens = true},
        {"close_notify", .tls = true, .ca = certs.ca, .steps = {{OP_READ, NULL, 4}, {OP_END}},
         .fault = HK_FAULT_RESET, .orderly = true, .opens = true},
        {"no close_notify", .tls = true, .ca = certs.ca, .steps = {{OP_READ, NULL, 4}, {OP_RESET}},
         .fault = HK_FAULT_RESET, .opens = true},
    };
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        wrong += !run_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

/* clang-format on */

/* ---- much, and cut off ---- */

static void much_goes_out_and_comes_back(void **state)
{
    (void)state;
    char *text = filled(BIG), digits[1001];
    for (size_t i = 0; i < sizeof digits - 1; i++)
        digits[i] = (char)('0' + i % 10);
    digits[sizeof digits - 1] = '\0';
    for (int tls = 0; tls < 2; tls++) {
        const struct step steps[8] = {{OP_READ, NULL, BIG / 4},  {OP_READ, NULL, BIG / 4},
                                      {OP_READ, NULL, BIG / 4},  {OP_READ, NULL, BIG / 4},
                                      {OP_REPEAT, digits, 3000}, {OP_HOLD}};
        const struct server_tls server_tls = {.cert_file = certs.good, .key_file = certs.key};
        struct server *server = server_start(steps, tls ? &server_tls : NULL);
        struct user u;
        begin(&u);
        u.text = text;
        u.len = BIG;
        u.expect = 3000000;
        if (tls)
            use_tls(&u, certs.ca, false);
        connect_to(&u, "localhost", server_port(server), true, 20000);
        NOTE_IF(u.ended, "%s\n", u.error);
        assert_int_equal(u.ended, 0);
        assert_int_equal(u.drained, 1);
        assert_int_equal(u.n_got, 3000000);
        for (size_t i = 0; i < u.n_got; i++)
            assert_int_equal(u.got[i], '0' + (int)(i % 10));
        assert_int_equal(hk_stream_sent(u.stream), BIG);
        assert_int_equal(hk_stream_pending(u.stream), 0);
        end(&u);
        server_stop(server);
    }
    free(text);
}

/* What came before the cut came whole and in order; and never is more said to be sent than was written. */
static void a_cut_at_any_byte_ends_it_once(void **state)
{
    (void)state;
    static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (size_t n = 1; n < sizeof text; n += 5) {
        for (int tls = 0; tls < 2; tls++) {
            const struct step steps[6] = {
                {OP_READ, NULL, n}, {OP_SEND, text, n}, {OP_SLEEP, NULL, 2}, {n % 2 ? OP_RESET : OP_END}};
            const struct server_tls server_tls = {.cert_file = certs.good, .key_file = certs.key};
            struct server *server = server_start(steps, tls ? &server_tls : NULL);
            struct user u;
            begin(&u);
            u.text = text;
            u.len = sizeof text - 1;
            if (tls)
                use_tls(&u, certs.ca, false);
            connect_to(&u, "localhost", server_port(server), true, 20000);
            assert_int_equal(u.ended, 1);
            assert_int_equal(u.fault, HK_FAULT_RESET);
            assert_true(u.n_got <= n && (u.n_got == 0 || memcmp(u.got, text, u.n_got) == 0));
            assert_true(hk_stream_sent(u.stream) <= sizeof text - 1);
            end(&u);
            server_stop(server);
        }
    }
}

static void a_stream_that_is_not_read_keeps_what_it_was_given(void **state)
{
    (void)state;
    const struct step steps[6] = {{OP_READ, NULL, 1000}, {OP_RESET}};
    struct server *server = server_start(steps, NULL);
    char *text = filled(BIG);
    struct user u;
    begin(&u);
    u.text = text;
    u.len = BIG;
    connect_to(&u, "127.0.0.1", server_port(server), true, 20000);
    assert_int_equal(u.ended, 1);
    assert_true(hk_stream_sent(u.stream) < BIG);
    assert_int_equal(hk_stream_sent(u.stream) + hk_stream_pending(u.stream), BIG);
    assert_int_equal(hk_stream_write(u.stream, text, BIG), HK_TOOBIG);
    free(text);
    end(&u);
    server_stop(server);
}

static void any_call_may_close_it(void **state)
{
    (void)state;
    for (int tls = 0; tls < 2; tls++) {
        for (int at = AT_OPENED; at <= AT_ENDED; at++) {
            const struct step steps[6] = {
                {at == AT_DRAINED ? OP_HOLD : OP_READ, NULL, 4}, {OP_SEND, "pong"}, {OP_END}};
            const struct server_tls server_tls = {.cert_file = certs.good, .key_file = certs.key};
            struct server *server = server_start(steps, tls ? &server_tls : NULL);
            struct user u;
            begin(&u);
            u.close_at = (enum moment)at;
            if (tls)
                use_tls(&u, certs.ca, false);
            connect_to(&u, "localhost", server_port(server), true, 20000);
            assert_null(u.stream);
            assert_int_equal(u.ended, at == AT_ENDED);
            end(&u);
            server_stop(server);
        }
    }
    struct user u;
    begin(&u);
    const struct hk_stream_options options = {.host = "localhost", .port = 1, .calls = &calls, .arg = &u};
    assert_int_equal(hk_stream_open(u.loop, &options, &u.stream, NULL), HK_OK);
    end(&u); /* before anything happened */
}

static void files_that_cannot_be_used_are_named(void **state)
{
    (void)state;
    struct hk_stream_tls *tls = NULL;
    struct hk_err err;
    const struct hk_stream_tls_files files[] = {
        {.ca_file = "/no/such/ca.pem"},
        {.ca_file = certs.key},
        {.ca_file = certs.ca, .cert_file = "/no/such/cert.pem"},
        {.ca_file = certs.ca, .cert_file = certs.good, .key_file = "/no/such/key.pem"},
        {.ca_file = certs.ca, .cert_file = certs.good, .key_file = certs.weak_key}, /* another one's */
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        assert_int_equal(hk_stream_tls_new(&files[i], &tls, &err), HK_INVALID);
        assert_true(strstr(err.message, "_file ") != NULL);
        assert_null(tls);
    }
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failure_has_its_fault),
        cmocka_unit_test(much_goes_out_and_comes_back),
        cmocka_unit_test(a_cut_at_any_byte_ends_it_once),
        cmocka_unit_test(a_stream_that_is_not_read_keeps_what_it_was_given),
        cmocka_unit_test(any_call_may_close_it),
        cmocka_unit_test(files_that_cannot_be_used_are_named),
    };
    return cmocka_run_group_tests(tests, begin_with_certs, end_with_certs);
}
