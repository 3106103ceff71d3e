/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in which TLS can fail ends in one class, with nothing of the message sent. docs/security.md has the same
 * table. Revocation is not checked: neither libcurl nor OpenSSL look for lists by themselves. */
#include <stdio.h>

#include <hikyaku/policy.h>
#include <openssl/ssl.h>

#include "fixture.h"

#define NO_CIPHER "NULL-SHA256:ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0"
#define WEAKEST   "ALL:@SECLEVEL=0"

/* A record of TLS 1.2 that promises a handshake message of 74 bytes, and how it begins. */
#define HELLO_CUT "\x16\x03\x03\x00\x4a\x02\x00\x00\x46\x03\x03\x01\x02\x03"
#define ALERT     "\x15\x03\x03\x00\x02\x02\x50" /* fatal: internal error */

struct row {
    const char *name;
    struct server_tls tls;
    const char *ca, *host;
    struct step steps[6];
    enum hk_fault fault;
    bool with_client_cert;
};

static struct row rows[64];
static size_t n_rows;

static void add(const struct row *row)
{
    assert_true(n_rows < COUNT(rows));
    rows[n_rows] = *row;
    if (!rows[n_rows].steps[0].op)
        memcpy(rows[n_rows].steps, polite, sizeof rows[n_rows].steps);
    if (!rows[n_rows].tls.cert_file)
        rows[n_rows].tls.cert_file = certs.good;
    if (!rows[n_rows].tls.key_file)
        rows[n_rows].tls.key_file = certs.key;
    if (!rows[n_rows].host)
        rows[n_rows].host = "localhost";
    n_rows++;
}

static void add_good(void)
{
    const struct row good[] = {
        {.name = "good", .ca = certs.ca},
        {.name = "TLS 1.2", .ca = certs.ca, .tls.max_version = TLS1_2_VERSION},
        {.name = "by address", .ca = certs.ca, .host = "127.0.0.1"},
        {.name = "client certificate given",
         .ca = certs.ca,
         .tls.client_ca = certs.ca,
         .with_client_cert = true},
    };
    for (size_t i = 0; i < COUNT(good); i++)
        add(&good[i]);
}

static void add_unverified(void)
{
    const struct row bad[] = {
        {.name = "expired", .ca = certs.ca, .tls.cert_file = certs.expired},
        {.name = "not yet valid", .ca = certs.ca, .tls.cert_file = certs.early},
        {.name = "for another host", .ca = certs.ca, .tls.cert_file = certs.wrong_host},
        {.name = "for another host, by address",
         .ca = certs.ca,
         .tls.cert_file = certs.wrong_host,
         .host = "127.0.0.1"},
        {.name = "self-signed", .ca = certs.ca, .tls.cert_file = certs.self_signed},
        {.name = "an unknown authority", .ca = certs.other_ca},
        {.name = "none of the system's authorities", .ca = NULL},
        {.name = "an authority is missing in between", .ca = certs.ca, .tls.cert_file = certs.no_chain},
        {.name = "signed by what is no authority", .ca = certs.ca, .tls.cert_file = certs.by_leaf},
        {.name = "a key that is too short",
         .ca = certs.ca,
         .tls = {.cert_file = certs.weak, .key_file = certs.weak_key}},
        {.name = "expired, by TLS 1.2",
         .ca = certs.ca,
         .tls = {.cert_file = certs.expired, .max_version = TLS1_2_VERSION}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct row row = bad[i];
        row.fault = HK_FAULT_TLS_VERIFY;
        add(&row);
    }
}

static void add_broken(void)
{
    static const char plain[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    const struct row bad[] = {
        {.name = "TLS 1.1 at the most", .tls = {.max_version = TLS1_1_VERSION, .ciphers = WEAKEST}},
        {.name = "TLS 1.0 at the most", .tls = {.max_version = TLS1_VERSION, .ciphers = WEAKEST}},
        {.name = "no cipher in common", .tls = {.max_version = TLS1_2_VERSION, .ciphers = NO_CIPHER}},
        {.name = "client certificate demanded", .tls.client_ca = certs.ca},
        {.name = "client certificate demanded, TLS 1.2",
         .tls = {.client_ca = certs.ca, .max_version = TLS1_2_VERSION}},
        {.name = "client certificate of another authority",
         .tls.client_ca = certs.other_ca,
         .with_client_cert = true},
        {.name = "plain HTTP on a TLS port", .steps = {{OP_GARBAGE}, {OP_SEND, plain}, {OP_HOLD}}},
        {.name = "another protocol",
         .steps = {{OP_GARBAGE}, {OP_SEND, "SSH-2.0-OpenSSH_9.2\r\n"}, {OP_HOLD}}},
        {.name = "zeros", .steps = {{OP_GARBAGE}, {OP_SEND, "\0\0\0\0\0\0\0\0", 8}, {OP_HOLD}}},
        {.name = "closed before the handshake", .steps = {{OP_GARBAGE}, {OP_END}}},
        {.name = "closed in the handshake", .steps = {{OP_GARBAGE}, {OP_READ, NULL, 200}, {OP_END}}},
        {.name = "reset in the handshake", .steps = {{OP_GARBAGE}, {OP_READ, NULL, 10}, {OP_RESET}}},
        {.name = "handshake cut off, closed",
         .steps = {{OP_GARBAGE}, {OP_READ, NULL, 200}, {OP_SEND, HELLO_CUT, 14}, {OP_SHUT}}},
        {.name = "handshake cut off, reset",
         .steps = {{OP_GARBAGE},
                   {OP_READ, NULL, 200},
                   {OP_SEND, HELLO_CUT, 14},
                   {OP_SLEEP, NULL, 20},
                   {OP_RESET}}},
        {.name = "an alert", .steps = {{OP_GARBAGE}, {OP_READ, NULL, 200}, {OP_SEND, ALERT, 7}, {OP_SHUT}}},
        {.name = "an endless record",
         .steps = {{OP_GARBAGE}, {OP_SEND, "\x16\x03\x03\xff\xff", 5}, {OP_ENDLESS, "x", 4}}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct row row = bad[i];
        row.ca = certs.ca;
        row.fault = HK_FAULT_TLS;
        add(&row);
    }
    const struct row mute = {
        .name = "silence", .ca = certs.ca, .steps = {{OP_GARBAGE}, {OP_HOLD}}, .fault = HK_FAULT_TIMEOUT};
    add(&mute);
}

static bool run_row(const struct row *row)
{
    struct fixture f;
    struct outcome got;
    set_up(&f, row->steps, &row->tls, row->host);
    f.options.ca_file = row->ca;
    f.options.connect_timeout_ms = row->fault == HK_FAULT_TIMEOUT ? 300 : 8000;
    if (row->with_client_cert) {
        f.options.cert_file = certs.good;
        f.options.key_file = certs.key;
    }
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 10000, &got);
    bool sound = row->fault == HK_FAULT_NONE;
    bool late = row->tls.client_ca && !row->tls.max_version; /* TLS 1.3: it may stand behind the request */
    bool good = got.fault == row->fault && got.status == (sound ? 200 : 0) &&
                (late || !got.possibly_delivered) && server_requests(f.server) == sound;
    NOTE_IF(!good, "%s: fault %s, status %d, possibly %d, %u requests, error \"%s\"\n", row->name,
            hk_fault_name(got.fault), got.status, got.possibly_delivered, server_requests(f.server),
            got.error);
    tear_down(&f);
    return good;
}

static void every_failure_of_tls_has_its_class_and_sends_nothing(void **state)
{
    (void)state;
    size_t wrong = 0;
    add_good();
    add_unverified();
    add_broken();
    for (size_t i = 0; i < n_rows; i++)
        wrong += !run_row(&rows[i]);
    print_message("# %zu rows\n", n_rows);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failure_of_tls_has_its_class_and_sends_nothing),
    };
    return cmocka_run_group_tests(tests, begin_with_certs, end_with_certs);
}
