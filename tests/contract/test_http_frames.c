/* SPDX-License-Identifier: Apache-2.0 */
/* Our own HTTP/2 against frames, right and wrong: what each of them comes to, and that no server takes our memory. */
#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "fixture.h"
#include "frames.h"

struct row {
    const char *name;
    struct step steps[10];
    enum hk_fault fault;
    int status;
    bool possibly_delivered;
    uint64_t timeout_ms;
    size_t payload_bytes;
    const char *says;
    unsigned requests; /* that the server must have seen; 0 = any number */
};

#define PING               FRAME("\x8", "\6", "\0", "\0") "abcdefgh"
#define WINDOW(n)          FRAME("\4", "\x8", "\0", "\0") n
#define MORE(n)            FRAME("\4", "\x8", "\0", "\1") "\0\0\0" n
#define SETTING(id, value) FRAME("\6", "\4", "\0", "\0") "\0" id value
#define FIELD_A_B          "\x40\1a\1b"
#define FIELDS_16          FIELD_A_B FIELD_A_B FIELD_A_B FIELD_A_B
#define ASKED                                                                                                \
    {OP_SEND, BYTES(SETTINGS)},                                                                              \
    {                                                                                                        \
        OP_H2                                                                                                \
    }

/* clang-format off */
static const struct row rows[] = {
    /* what is fine */
    {"200", {ASKED, {OP_SEND, BYTES(BLOCK_END(S200))}, {OP_HOLD}}, .status = 200, .requests = 1},
    {"200 with a body", {ASKED, {OP_SEND, BYTES(BLOCK(S200) DATA FRAME("\0", "\0", "\1", "\1"))}, {OP_HOLD}}, .status = 200},
    {"hints before", {ASKED, {OP_SEND, BYTES(HINTS HINTS BLOCK_END(S200))}, {OP_HOLD}}, .status = 200},
    {"a header block in two pieces", {ASKED, {OP_SEND, BYTES(BLOCK_PART(S200) FRAME("\0", "\x9", "\4", "\1") FRAME("\0", "\0", "\1", "\1"))}, {OP_HOLD}}, .status = 200},
    {"trailers", {ASKED, {OP_SEND, BYTES(BLOCK(S200) DATA FRAME("\5", "\1", "\5", "\1") FIELD_A_B)}, {OP_HOLD}}, .status = 200},
    {"frames of an unknown kind", {ASKED, {OP_SEND, BYTES(FRAME("\3", "\x63", "\xff", "\1") "abc" BLOCK_END(S200))}, {OP_HOLD}}, .status = 200},
    {"SETTINGS in between", {ASKED, {OP_SEND, BYTES(SETTING("\1", "\0\0\0\0") SETTING("\5", "\0\1\0\0") PING BLOCK_END(S200))}, {OP_HOLD}}, .status = 200},
    {"a body that never ends", {ASKED, {OP_SEND, BYTES(BLOCK(S200))}, {OP_FLOOD, BYTES(DATA)}}, .status = 200},
    {"trailers that never end", {ASKED, {OP_SEND, BYTES(BLOCK(S200) DATA FRAME("\5", "\1", "\1", "\1") FIELD_A_B)}, {OP_FLOOD, BYTES(FRAME("\5", "\x9", "\0", "\1") FIELD_A_B)}}, .status = 200},
    {"a status, then garbage", {ASKED, {OP_SEND, BYTES(BLOCK(S200) "\xff\xff\xff\0\0\0\0\0\1garbage")}, {OP_HOLD}}, .status = 200},
    {"a status, then silence", {ASKED, {OP_SEND, BYTES(BLOCK(S200))}, {OP_HOLD}}, .status = 200, .timeout_ms = 1500},
    {"a pushed request", {ASKED, {OP_SEND, BYTES(FRAME("\7", "\5", "\4", "\1") "\0\0\0\2\x82\x84\x87" BLOCK_END(S200))}, {OP_HOLD}}, .status = 200},

    /* not processed: sent again by itself, a few times, and certainly not delivered */
    {"refused once", {ASKED, {OP_SEND, BYTES(RST("\7"))}, {OP_H2}, {OP_SEND, BYTES(BLOCK_END_OF("\3", S200))}, {OP_HOLD}}, .status = 200, .requests = 2},
    {"refused for ever", {ASKED, {OP_SEND, BYTES(RST("\7"))}, {OP_H2}, {OP_SEND, BYTES(RST_OF("\3", "\7"))}, {OP_H2}, {OP_SEND, BYTES(RST_OF("\5", "\7"))}, {OP_H2}, {OP_SEND, BYTES(RST_OF("\7", "\7"))}, {OP_HOLD}}, HK_FAULT_RESET, .says = "refused", .requests = 4},
    {"going away, below the request, always", {ASKED, {OP_SEND, BYTES(GOAWAY_AT("\0", "\0"))}, {OP_HOLD}}, HK_FAULT_RESET, .says = "refused", .requests = 4},
    {"refused after hints", {ASKED, {OP_SEND, BYTES(HINTS RST("\7"))}, {OP_HOLD}}, HK_FAULT_RESET, .possibly_delivered = true, .requests = 1},

    /* nobody knows */
    {"going away with the request, and closed", {ASKED, {OP_SEND, BYTES(GOAWAY("\0"))}, {OP_END}}, HK_FAULT_RESET, .possibly_delivered = true, .requests = 1},
    {"going away for a reason", {ASKED, {OP_SEND, BYTES(GOAWAY("\xb"))}, {OP_END}}, HK_FAULT_RESET, .possibly_delivered = true, .says = "ENHANCE_YOUR_CALM", .requests = 1},
    {"reset", {ASKED, {OP_SEND, BYTES(RST("\2"))}, {OP_HOLD}}, HK_FAULT_RESET, .possibly_delivered = true, .says = "INTERNAL_ERROR", .requests = 1},
    {"cancelled", {ASKED, {OP_SEND, BYTES(RST("\x8"))}, {OP_HOLD}}, HK_FAULT_RESET, .possibly_delivered = true, .says = "CANCEL"},
    {"closed", {ASKED, {OP_END}}, HK_FAULT_RESET, .possibly_delivered = true, .requests = 1},
    {"reset as a connection", {ASKED, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"no answer", {ASKED, {OP_HOLD}}, HK_FAULT_TIMEOUT, .possibly_delivered = true, .timeout_ms = 1500, .requests = 1},
    {"hints and no more", {ASKED, {OP_SEND, BYTES(HINTS)}, {OP_HOLD}}, HK_FAULT_TIMEOUT, .possibly_delivered = true, .timeout_ms = 1500},

    /* going away, and the answer comes yet */
    {"going away with the request", {ASKED, {OP_SEND, BYTES(GOAWAY("\0"))}, {OP_SLEEP, NULL, 60}, {OP_SEND, BYTES(BLOCK_END(S200))}, {OP_END}}, .status = 200, .requests = 1},
    {"a notice that it will go away", {ASKED, {OP_SEND, BYTES(FRAME("\x8", "\7", "\0", "\0") "\x7f\xff\xff\xff\0\0\0\0" BLOCK_END(S200) GOAWAY("\0"))}, {OP_END}}, .status = 200, .requests = 1},

    /* no request went out */
    {"no HTTP/2", {{OP_SEND, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .says = "does not speak HTTP/2"},
    {"another protocol", {{OP_SEND, "SSH-2.0-OpenSSH_9.2\r\n"}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .says = "does not speak HTTP/2"},
    {"closed at once", {{OP_END}}, HK_FAULT_RESET},
    {"no SETTINGS", {{OP_HOLD}}, HK_FAULT_TIMEOUT, .says = "SETTINGS"},
    {"answers before SETTINGS", {{OP_SEND, BYTES(BLOCK_END(S200))}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .says = "does not speak HTTP/2"},
    {"no room for streams", {{OP_SEND, BYTES(SETTING("\3", "\0\0\0\0"))}, {OP_HOLD}}, HK_FAULT_TIMEOUT, .timeout_ms = 1500},
    {"no room at first", {{OP_SEND, BYTES(SETTING("\3", "\0\0\0\0"))}, {OP_SLEEP, NULL, 100}, {OP_SEND, BYTES(SETTING("\3", "\0\0\0\1"))}, {OP_H2}, {OP_SEND, BYTES(BLOCK_END(S200))}, {OP_HOLD}}, .status = 200, .requests = 1},

    {"going away at once, always", {{OP_SEND, BYTES(SETTINGS GOAWAY_AT("\0", "\0"))}, {OP_HOLD}}, HK_FAULT_TIMEOUT, .timeout_ms = 2500},

    /* windows */
    {"a window of nothing", {{OP_SEND, BYTES(SETTING("\4", "\0\0\0\0"))}, {OP_HOLD}}, HK_FAULT_TIMEOUT, .timeout_ms = 1500},
    {"a window that opens byte by byte", {{OP_SEND, BYTES(SETTING("\4", "\0\0\0\0"))}, {OP_H2, NULL, 1}, {OP_SEND, BYTES(MORE("\1") MORE("\1") MORE("\3"))}, {OP_SEND, BYTES(MORE("\x9"))}, {OP_H2}, {OP_SEND, BYTES(BLOCK_END(S200))}, {OP_HOLD}}, .status = 200},
    {"a window opened by SETTINGS", {{OP_SEND, BYTES(SETTING("\4", "\0\0\0\0"))}, {OP_H2, NULL, 1}, {OP_SEND, BYTES(SETTING("\4", "\0\0\1\0"))}, {OP_H2}, {OP_SEND, BYTES(BLOCK_END(S200))}, {OP_HOLD}}, .status = 200},
    {"a window beyond its bound", {ASKED, {OP_SEND, BYTES(WINDOW("\x7f\xff\xff\xff"))}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "FLOW_CONTROL_ERROR"},
    {"a step of nothing", {ASKED, {OP_SEND, BYTES(WINDOW("\0\0\0\0"))}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a request that is not read", {{OP_SEND, BYTES(SETTINGS)}, {OP_SLEEP, NULL, 5000}}, HK_FAULT_TIMEOUT, .timeout_ms = 1500, .payload_bytes = 1 << 20},

    /* no HTTP/2 after all */
    {"DATA without a status", {ASKED, {OP_SEND, BYTES(DATA)}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a block without a status", {ASKED, {OP_SEND, BYTES(FRAME("\5", "\1", "\5", "\1") FIELD_A_B)}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a status of two digits", {ASKED, {OP_SEND, BYTES(FRAME("\4", "\1", "\5", "\1") "\x8\2" "20")}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"101", {ASKED, {OP_SEND, BYTES(FRAME("\5", "\1", "\4", "\1") "\x8\3" "101")}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"hints that end the stream", {ASKED, {OP_SEND, BYTES(FRAME("\5", "\1", "\5", "\1") "\x8\3" "103")}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"an unknown entry of the table", {ASKED, {OP_SEND, BYTES(FRAME("\1", "\1", "\5", "\1") "\xff")}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "COMPRESSION_ERROR"},
    {"a frame that is too long", {ASKED, {OP_SEND, BYTES("\xff\xff\xff\0\0\0\0\0\1")}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "FRAME_SIZE_ERROR"},
    {"an answer to a request that nobody made", {ASKED, {OP_SEND, BYTES(BLOCK_END_OF("\x9", S200))}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"SETTINGS of five bytes", {ASKED, {OP_SEND, BYTES(FRAME("\5", "\4", "\0", "\0") "abcde")}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},

    /* floods */
    {"a header block without end", {ASKED, {OP_SEND, BYTES(BLOCK_PART(S200))}, {OP_FLOOD, BYTES(FRAME("\5", "\x9", "\0", "\1") FIELD_A_B)}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"empty pieces of a header block", {ASKED, {OP_SEND, BYTES(BLOCK_PART(S200))}, {OP_FLOOD, BYTES(FRAME("\0", "\x9", "\0", "\1"))}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a storm of hints", {ASKED, {OP_FLOOD, BYTES(HINTS)}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "too many or too long"},
    {"a storm of SETTINGS", {ASKED, {OP_FLOOD, BYTES(SETTINGS)}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "flood"},
    {"a storm of PING", {ASKED, {OP_FLOOD, BYTES(PING)}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "flood"},
    {"a storm of unknown frames", {ASKED, {OP_FLOOD, BYTES(FRAME("\0", "\x63", "\0", "\1"))}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "flood"},
    {"a storm of empty DATA", {ASKED, {OP_SEND, BYTES(BLOCK(S500))}, {OP_FLOOD, BYTES(FRAME("\0", "\0", "\0", "\1"))}}, .status = 500},
    {"a storm before SETTINGS", {{OP_FLOOD, BYTES(PING)}}, HK_FAULT_PROTOCOL, .says = "does not speak HTTP/2"},
};

/* clang-format on */

static bool row_holds(const struct row *row, const struct outcome *got)
{
    return got->fault == row->fault && got->status == row->status &&
           got->possibly_delivered == row->possibly_delivered &&
           (row->fault == HK_FAULT_NONE) == (got->error[0] == '\0') &&
           (!row->says || strstr(got->error, row->says)) && got->body_len <= HK_HTTP_KEEP_MAX;
}

static bool run_row(const struct row *row)
{
    struct fixture f;
    struct outcome got;
    uint64_t timeout_ms = row->timeout_ms ? row->timeout_ms : 10000;
    char *payload = row->payload_bytes ? filled(row->payload_bytes) : NULL;
    struct hk_message msg =
        message_of(payload ? payload : "{\"orderId\":42}", payload ? row->payload_bytes : 14);
    set_up(&f, row->steps, NULL, "127.0.0.1");
    f.options.version = 2;
    f.options.connect_timeout_ms = 2000;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, &msg, timeout_ms, &got);
    bool bounded = server_sent(f.server) < (size_t)64 << 20; /* what socket buffers take in, not a GiB */
    bool holds =
        row_holds(row, &got) && bounded && (!row->requests || server_requests(f.server) == row->requests);
    NOTE_IF(!holds, "%s: fault %s, status %d, possibly %d, %u requests, %zu bytes, error \"%s\"\n", row->name,
            hk_fault_name(got.fault), got.status, got.possibly_delivered, server_requests(f.server),
            server_sent(f.server), got.error);
    tear_down(&f);
    free(payload);
    return holds;
}

static void every_behaviour_ends_in_its_documented_fault(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        wrong += !run_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

/* Its neighbours on the same connection are answered all the same. */
static void a_stream_that_is_reset_takes_no_other_with_it(void **state)
{
    (void)state;
    static const struct step steps[10] = {ASKED,
                                          {OP_H2},
                                          {OP_H2},
                                          {OP_SEND, BYTES(RST_OF("\3", "\2"))},
                                          {OP_SEND, BYTES(BLOCK_END_OF("\5", S204))},
                                          {OP_SEND, BYTES(BLOCK_END_OF("\1", S500))},
                                          {OP_HOLD}};
    struct fixture f;
    struct outcome got[3];
    set_up(&f, steps, NULL, "127.0.0.1");
    f.options.version = 2;
    client_open_http(&f.client, &f.options);
    for (size_t i = 0; i < COUNT(got); i++)
        client_send(&f.client, short_message(), 10000, &got[i]);
    client_wait(&f.client);
    assert_int_equal(server_connections(f.server), 1);
    assert_int_equal(got[0].status, 500);
    assert_int_equal(got[1].fault, HK_FAULT_RESET);
    assert_true(got[1].possibly_delivered);
    assert_int_equal(got[2].status, 204);
    tear_down(&f);
}

/* One that gets no answer in time is told to the server, and leaves the connection to the next. */
static void a_delivery_that_ends_early_frees_its_stream(void **state)
{
    (void)state;
    static const struct step steps[10] = {
        {OP_SEND, BYTES(SETTING("\3", "\0\0\0\1"))}, {OP_H2},  {OP_SEND, BYTES(PING)}, {OP_H2},
        {OP_SEND, BYTES(BLOCK_END_OF("\3", S200))},  {OP_HOLD}};
    struct fixture f;
    struct outcome got[2];
    set_up(&f, steps, NULL, "127.0.0.1");
    f.options.version = 2;
    f.options.max_connections = 1;
    client_open_http(&f.client, &f.options);
    client_send(&f.client, short_message(), 1000, &got[0]);
    client_send(&f.client, short_message(), 20000, &got[1]);
    client_wait(&f.client);
    assert_int_equal(got[0].fault, HK_FAULT_TIMEOUT);
    assert_true(got[0].possibly_delivered);
    assert_int_equal(got[1].status, 200);
    assert_int_equal(server_connections(f.server), 1);
    tear_down(&f);
}

/* A server that lives answers a PING; one that does not is left, and others are tried. */
static void a_connection_that_is_dead_is_left(void **state)
{
    (void)state;
    static const struct step steps[10] = {ASKED, {OP_SLEEP, NULL, 60000}, {OP_END}};
    struct fixture f;
    struct outcome got;
    set_up(&f, steps, NULL, "127.0.0.1");
    f.options.version = 2;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 120000, &got);
    assert_int_equal(got.fault, HK_FAULT_TIMEOUT);
    assert_non_null(strstr(got.error, "PING"));
    assert_true(got.possibly_delivered);
    tear_down(&f);
}

/* ---- TLS ---- */

static void pin_of(const char *file, char out[64])
{
    unsigned char digest[EVP_MAX_MD_SIZE], *der = NULL;
    unsigned n = 0;
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    X509 *cert = PEM_read_X509(f, NULL, NULL, NULL);
    assert_non_null(cert);
    (void)fclose(f);
    int len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);
    assert_true(len > 0);
    assert_int_equal(EVP_Digest(der, (size_t)len, digest, &n, EVP_sha256(), NULL), 1);
    (void)snprintf(out, 64, "sha256//");
    (void)EVP_EncodeBlock((unsigned char *)out + strlen(out), digest, (int)n);
    OPENSSL_free(der);
    X509_free(cert);
}

static void deliver_by_tls(const char *const *pins, size_t n_pins, bool h2, struct outcome *got)
{
    static const struct step steps[10] = {ASKED, {OP_SEND, BYTES(BLOCK_END(S204))}, {OP_HOLD}};
    const struct server_tls tls = {certs.good, certs.key, .h2 = h2};
    struct fixture f;
    set_up(&f, steps, &tls, "localhost");
    f.options.version = 2;
    f.options.pins = pins;
    f.options.n_pins = n_pins;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 10000, got);
    assert_int_equal(server_requests(f.server), got->status ? 1 : 0);
    tear_down(&f);
}

static void a_pinned_key_must_be_there(void **state)
{
    (void)state;
    char right[64], wrong[64] = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    const char *const pins[] = {wrong, right};
    struct outcome got;
    pin_of(certs.good, right);
    deliver_by_tls(pins, 2, true, &got);
    assert_int_equal(got.status, 204);
    deliver_by_tls(pins, 1, true, &got);
    assert_int_equal(got.fault, HK_FAULT_TLS_VERIFY);
    assert_non_null(strstr(got.error, "pinned"));
    assert_false(got.possibly_delivered);
}

static void a_server_that_does_not_agree_to_it_sees_no_request(void **state)
{
    (void)state;
    struct outcome got;
    deliver_by_tls(NULL, 0, true, &got);
    assert_int_equal(got.status, 204);
    deliver_by_tls(NULL, 0, false, &got);
    assert_int_equal(got.fault, HK_FAULT_PROTOCOL);
    assert_non_null(strstr(got.error, "ALPN"));
    assert_false(got.possibly_delivered);
}

/* What it cannot do is refused where the sink is opened, not when a message waits. */
static void what_it_cannot_do_is_refused(void **state)
{
    (void)state;
    static const struct hk_http_options wrong[] = {
        {.url = "http://a.example/{event_type}", .version = 2},
        {.from_message = true, .version = 2},
        {.url = "http://a.example/", .socket = "/tmp/x", .version = 2},
        {.url = "http://b\xc3\xbc"
                "cher.example/",
         .version = 2},
    };
    struct client client;
    client_open_loop(&client);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct hk_err err = {.code = HK_OK};
        assert_int_equal(hk_http_open(client.loop, &wrong[i], &client.sink, &err), HK_INVALID);
        assert_non_null(strstr(err.message, "version 2"));
    }
    client_close(&client);
}

int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_behaviour_ends_in_its_documented_fault),
        cmocka_unit_test(a_stream_that_is_reset_takes_no_other_with_it),
        cmocka_unit_test(a_delivery_that_ends_early_frees_its_stream),
        cmocka_unit_test(a_pinned_key_must_be_there),
        cmocka_unit_test(a_server_that_does_not_agree_to_it_sees_no_request),
        cmocka_unit_test(what_it_cannot_do_is_refused),
    };
    const struct CMUnitTest slow[] = {cmocka_unit_test(a_connection_that_is_dead_is_left)};
    return argc > 1 ? cmocka_run_group_tests(slow, begin_with_certs, end_with_certs)
                    : cmocka_run_group_tests(tests, begin_with_certs, end_with_certs);
}
