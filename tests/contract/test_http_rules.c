/* SPDX-License-Identifier: Apache-2.0 */
/* What the HTTP sink sends and to whom, what it refuses, and what it keeps of an answer. */
#include <stdio.h>
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "fixture.h"

/* ---- addresses ---- */

static void forbidden_addresses_are_blocked_in_every_spelling(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "0177.0.0x1",
        "localhost",
        "LOCALHOST",
        "127.255.255.254",
        "0",
        "0.0.0.0",
        "10.0.0.1",
        "0xa000001",
        "167772161",
        "10.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "3232235521",
        "0xc0a80001",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "4294967295",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2001::1]",
        "[2001:db8::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[100::1]",
        "[3fff::1]",
        "[4000::1]",
        "[::ffff:a9fe:a9fe]",
        "[::ffff:10.0.0.1]",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
    };
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(hosts); i++) {
        char url[128];
        (void)snprintf(url, sizeof url, "http://%s:%d/", hosts[i], 9);
        struct hk_http_options options = {.name = "x", .url = url};
        struct client client;
        struct outcome got;
        client_open_http(&client, &options);
        client_deliver(&client, short_message(), 3000, &got);
        bool good = got.fault == HK_FAULT_BLOCKED && got.address[0] == '\0' && !got.possibly_delivered &&
                    strstr(got.error, "blocked");
        NOTE_IF(!good, "%s: fault %s, error \"%s\"\n", hosts[i], hk_fault_name(got.fault), got.error);
        wrong += !good;
        client_close(&client);
    }
    assert_int_equal(wrong, 0);
}

static void an_allowed_range_is_let_through_and_no_other(void **state)
{
    (void)state;
    const struct hk_cidr one = {{127, 0, 0, 1}, 32, false};
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "[::ffff:127.0.0.1]"); /* mapped: the IPv4 range counts */
    f.options.allow = &one;
    f.options.n_allow = 1;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 3000, &got);
    NOTE_IF(got.status != 200, "%s\n", got.error);
    assert_int_equal(got.status, 200);
    tear_down(&f);

    set_up(&f, polite, NULL, "127.0.0.2");
    f.options.allow = &one;
    f.options.n_allow = 1;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 3000, &got);
    assert_int_equal(got.fault, HK_FAULT_BLOCKED);
    tear_down(&f);
}

/* A proxy would connect on our behalf, past the address policy. */
static void the_environment_has_no_say(void **state)
{
    (void)state;
    static const struct step bad[8] = {{OP_REQUEST},
                                       {OP_SEND, "HTTP/1.1 500 Proxy\r\nContent-Length: 0\r\n\r\n"}};
    struct server *proxy = server_start(bad, NULL);
    char url[64];
    url_of(url, proxy, "http", "127.0.0.1");
    assert_int_equal(setenv("http_proxy", url, 1) | setenv("ALL_PROXY", url, 1) | setenv("all_proxy", url, 1),
                     0);
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 3000, &got);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    unsetenv("all_proxy");
    assert_int_equal(got.status, 200);
    assert_int_equal(server_connections(proxy), 0);
    tear_down(&f);
    server_stop(proxy);
}

/* ---- what is sent, what is kept ---- */

static const char secret_a[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
static const char secret_b[] = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

static void assert_line(const char *request, const char *line)
{
    char text[512];
    (void)snprintf(text, sizeof text, "\r\n%s\r\n", line);
    /* HTTP/2 has names in lower case alone */
    bool there =
        by_h2 ? hk_str_containsi(hk_str_of(request), hk_str_of(text)) : strstr(request, text) != NULL;
    NOTE_IF(!there, "no line \"%s\" in\n%s\n", line, request);
    assert_true(there);
}

static void the_request_is_as_documented(void **state)
{
    (void)state;
    const char *const secrets[] = {secret_a, secret_b};
    const struct hk_http_header headers[] = {{"X-Team", "orders", false},
                                             {"X-Api-Key", "k3y-s3cret", false},
                                             {"X-Hidden", "t0p", true},
                                             {"X-Empty", "", false}};
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "127.0.0.1");
    f.options.secrets = secrets;
    f.options.n_secrets = 2;
    f.options.headers = headers;
    f.options.n_headers = COUNT(headers);
    f.options.bearer = "t0ken";
    client_open_http(&f.client, &f.options);
    static const char payload[] = "{ \"b\":1,\n\"a\":\"\xc3\xa9\\u0041\" }\0tail";
    struct hk_message msg = message_of(payload, sizeof payload);
    msg.traceparent = hk_str_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    msg.idempotency_key = hk_str_of("a\"b\\c");
    msg.correlation_id = hk_str_of("order-7");
    msg.headers = hk_str_of("{\"X-Tenant\": \"7\", \"X-Team\": \"mine\", \"X-Blank\": \"  \"}");
    client_deliver(&f.client, &msg, 3000, &got);
    assert_int_equal(got.status, 200);
    size_t len;
    const char *request = server_last(f.server, &len);
    assert_memory_equal(request, "POST /hook HTTP/1.1\r\n", 21);
    assert_line(request, "Content-Type: application/json");
    assert_line(request, "User-Agent: hikyaku/0.2.0");
    assert_line(request, "webhook-id: msg_2Lh9");
    assert_line(request, "webhook-timestamp: 1794731400");
    assert_line(request, "Idempotency-Key: \"a\\\"b\\\\c\"");
    assert_line(request, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_line(request, "Authorization: Bearer t0ken");
    assert_line(request, "Hikyaku-Event: OrderCreated");
    assert_line(request, "Hikyaku-Attempt: 1");
    assert_line(request, "X-Correlation-Id: order-7");
    assert_line(request, "X-Team: orders");
    assert_line(request, "X-Tenant: 7");
    assert_line(request, "X-Empty:");
    assert_line(request, "X-Blank:");
    assert_null(strstr(request, "mine"));
    assert_null(strstr(request, "Expect"));
    assert_null(strstr(request, "Accept-Encoding"));
    assert_memory_equal(request + len - sizeof payload, payload, sizeof payload); /* unchanged */

    const char *seen = got.request_headers;
    assert_non_null(strstr(seen, "\"Authorization\":\"***\""));
    assert_non_null(strstr(seen, "\"X-Api-Key\":\"***\""));
    assert_non_null(strstr(seen, "\"X-Hidden\":\"***\""));
    assert_non_null(strstr(seen, "\"X-Team\":\"orders\""));
    assert_non_null(strstr(seen, "\"webhook-signature\":\"v1,"));
    assert_null(strstr(seen, "t0ken"));
    assert_null(strstr(seen, "k3y"));
    assert_null(strstr(seen, "t0p"));
    tear_down(&f);
}

static void cloudevents_in_binary_mode(void **state)
{
    (void)state;
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "127.0.0.1");
    f.options.cloudevents = true;
    f.options.cloudevents_source = "/shop/\xc3\xa9 \"1\"%";
    f.options.method = "PUT";
    f.options.basic_user = "Aladdin";
    f.options.basic_password = "open sesame";
    client_open_http(&f.client, &f.options);
    struct hk_message msg = *short_message();
    msg.content_type = hk_str_of("text/plain; charset=utf-8");
    msg.correlation_id = hk_str_of("order 7");
    client_deliver(&f.client, &msg, 3000, &got);
    size_t len;
    const char *request = server_last(f.server, &len);
    assert_memory_equal(request, "PUT /hook HTTP/1.1\r\n", 20);
    assert_line(request, "ce-specversion: 1.0");
    assert_line(request, "ce-id: msg_2Lh9");
    assert_line(request, "ce-source: /shop/%C3%A9%20%221%22%25");
    assert_line(request, "ce-type: OrderCreated");
    assert_line(request, "ce-time: 2026-11-15T08:30:00.250Z");
    assert_line(request, "ce-correlationid: order%207");
    assert_null(strstr(request, "Hikyaku-"));
    assert_null(strstr(request, "X-Correlation-Id"));
    assert_line(request, "Content-Type: text/plain; charset=utf-8");
    assert_line(request, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    msg.event_type = hk_str_of("");
    client_deliver(&f.client, &msg, 3000, &got);
    assert_int_equal(got.fault, HK_FAULT_INVALID_PAYLOAD);
    tear_down(&f);
}

/* Sends one message by a destination with these headers and returns the request. */
static const char *request_with(struct fixture *f, const struct hk_message *msg,
                                const struct hk_http_header *headers, size_t n)
{
    struct outcome got;
    size_t len;
    set_up(f, polite, NULL, "127.0.0.1");
    f->options.headers = headers;
    f->options.n_headers = n;
    client_open_http(&f->client, &f->options);
    client_deliver(&f->client, msg, 3000, &got);
    NOTE_IF(got.status != 200, "%s\n", got.error);
    assert_int_equal(got.status, 200);
    return server_last(f->server, &len);
}

static void fields_of_the_message_can_be_renamed_and_left_out(void **state)
{
    (void)state;
    static const struct hk_http_header moved[] = {{"X-Event-Type", "{event_type}", false},
                                                  {"X-Request-Id", "{correlation_id}", false},
                                                  {"X-Try", "{attempt}", false},
                                                  {"X-Idem", "{idempotency_key}", false},
                                                  {"X-Trace-Token", "{traceparent}", false},
                                                  {"X-Brace", "{event-type}", false}},
                                       dropped[] = {{"hikyaku-event", "", false},
                                                    {"X-Correlation-Id", "", false},
                                                    {"Hikyaku-Attempt", "", false},
                                                    {"Idempotency-Key", "", false},
                                                    {"traceparent", "", false}},
                                       fixed[] = {{"Hikyaku-Event", "order", false},
                                                  {"Idempotency-Key", "{idempotency_key}", false}};
    struct fixture f;
    struct hk_message msg = *short_message();
    msg.correlation_id = hk_str_of("order-7");
    msg.traceparent = hk_str_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    msg.headers = hk_str_of("{\"X-Idem\": \"mine\", \"X-Try\": \"7\"}");
    const char *request = request_with(&f, &msg, moved, COUNT(moved));
    assert_line(request, "X-Event-Type: OrderCreated");
    assert_line(request, "X-Request-Id: order-7");
    assert_line(request, "X-Try: 7"); /* the message's own */
    assert_line(request, "X-Idem: \"msg_2Lh9\"");
    assert_line(request, "X-Trace-Token: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_line(request, "X-Brace: {event-type}");
    static const char *const usual[] = {"Hikyaku-", "X-Correlation-Id", "Idempotency-Key", "traceparent"};
    for (size_t i = 0; i < COUNT(usual); i++)
        assert_null(strstr(request, usual[i]));
    tear_down(&f);
    msg.headers = hk_str_of("");
    request = request_with(&f, &msg, dropped, COUNT(dropped));
    for (size_t i = 0; i < COUNT(usual); i++)
        assert_null(strstr(request, usual[i]));
    tear_down(&f);
    request = request_with(&f, &msg, fixed, COUNT(fixed));
    assert_line(request, "Hikyaku-Event: order");
    assert_line(request, "Idempotency-Key: \"msg_2Lh9\"");
    tear_down(&f);
}

/* Rows may hold anything: what cannot stand in a header is written as %XX, and what would be too long is left out. */
static void fields_of_the_message_are_safe_in_any_script(void **state)
{
    (void)state;
    static char longer[4000];
    memset(longer, '%', sizeof longer - 1);

    static const struct {
        const char *event, *correlation, *headers, *lines[2];
    } cases[] = {
        {"\xe6\xb3\xa8\xe6\x96\x87.created",
         "a b",
         "",
         {"Hikyaku-Event: %E6%B3%A8%E6%96%87.created", "X-Correlation-Id: a b"}},
        {"a\r\nEvil: 1", "100%", "", {"Hikyaku-Event: a%0D%0AEvil: 1", "X-Correlation-Id: 100%25"}},
        {" a\t", "\x7f\xff\"", "", {"Hikyaku-Event: %20a%09", "X-Correlation-Id: %7F%FF\""}},
        {" ", "%", "", {"Hikyaku-Event: %20", "X-Correlation-Id: %25"}},
        {"", "", "", {"Hikyaku-Attempt: 1", NULL}},
        {longer, "c", "", {"X-Correlation-Id: c", NULL}},
        {"OrderCreated",
         "column",
         "{\"x-correlation-id\": \"own\"}",
         {"Hikyaku-Event: OrderCreated", "x-correlation-id: own"}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f;
        struct hk_message msg = *short_message();
        msg.event_type = hk_str_of(cases[i].event);
        msg.correlation_id = hk_str_of(cases[i].correlation);
        msg.headers = hk_str_of(cases[i].headers);
        const char *request = request_with(&f, &msg, NULL, 0);
        for (size_t k = 0; k < 2 && cases[i].lines[k]; k++)
            assert_line(request, cases[i].lines[k]);
        assert_null(strstr(request, "column"));
        assert_true((cases[i].event[0] && cases[i].event != longer) || !strstr(request, "Hikyaku-Event"));
        tear_down(&f);
    }
}

/* What the `openssl` program makes of the same bytes. */
static void signatures_agree_with_a_second_opinion(void **state)
{
    (void)state;
    const char *const secrets[] = {secret_a, secret_b};
    struct fixture f;
    struct outcome got;
    set_up(&f, polite, NULL, "127.0.0.1");
    f.options.secrets = secrets;
    f.options.n_secrets = 2;
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 3000, &got);
    size_t len;
    const char *request = server_last(f.server, &len);
    const char *at = strstr(request, "webhook-signature: ");
    assert_non_null(at);
    for (size_t i = 0; i < 2; i++) {
        char command[512], want[128] = "";
        (void)snprintf(command, sizeof command,
                       "key=$(printf %%s '%s' | base64 -d | od -An -v -tx1 | tr -d ' \\n'); "
                       "printf %%s 'msg_2Lh9.1794731400.{\"orderId\":42}' | "
                       "openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary | base64",
                       secrets[i] + 6);
        FILE *p = popen(command, "r"); /* NOLINT: a test */
        assert_non_null(p);
        assert_non_null(fgets(want, sizeof want, p));
        (void)pclose(p);
        want[strcspn(want, "\n")] = '\0';
        char expect[160];
        (void)snprintf(expect, sizeof expect, "%sv1,%s%s", i ? " " : "webhook-signature: ", want,
                       i ? "\r\n" : " ");
        NOTE_IF(!strstr(at, expect), "no \"%s\" in %.200s\n", expect, at);
        assert_non_null(strstr(at, expect));
    }
    tear_down(&f);
}

/* The dot parts the signed texts from each other; where nothing is signed, ids like order.42 are as good as others. */
static void a_dot_in_the_id_is_refused_only_where_it_is_signed(void **state)
{
    (void)state;
    static const char *const secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    for (size_t n = 0; n < 2; n++) {
        struct fixture f;
        struct outcome got;
        struct hk_message msg = *short_message();
        msg.message_id = hk_str_of("order.42");
        set_up(&f, polite, NULL, "127.0.0.1");
        f.options.secrets = secrets;
        f.options.n_secrets = n;
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, &msg, 3000, &got);
        assert_int_equal(got.fault, n ? HK_FAULT_INVALID_PAYLOAD : HK_FAULT_NONE);
        assert_true(n == 0 || strstr(got.error, "without a dot"));
        tear_down(&f);
    }
}

static void messages_that_cannot_be_sent_are_refused_and_nothing_goes_out(void **state)
{
    (void)state;
    static char many[8192], longer[6000];
    size_t n = 0;
    n += (size_t)snprintf(many, sizeof many, "{");
    for (int i = 0; i < 65; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, "%s\"x-%d\":\"1\"", i ? "," : "", i);
    (void)snprintf(many + n, sizeof many - n, "}");
    memset(longer, 'a', sizeof longer);
    memcpy(longer, "{\"x\":\"", 6);
    memcpy(longer + sizeof longer - 3, "\"}", 3);

    const struct {
        const char *headers, *message_id, *content_type, *idempotency_key;
    } cases[] = {
        {.headers = "{\"X\": \"a\\r\\nEvil: 1\"}"},
        {.headers = "{\"X\": \"a\\nb\"}"},
        {.headers = "{\"X\": \"a\\rb\"}"},
        {.headers = "{\"X\": \"a\\u0000b\"}"},
        {.headers = "{\"X\": \"\\u007f\"}"},
        {.headers = "{\"X\": \"\\u001b[2J\"}"},
        {.headers = "{\"X\\r\\nEvil\": \"a\"}"},
        {.headers = "{\"X Y\": \"a\"}"},
        {.headers = "{\"X:\": \"a\"}"},
        {.headers = "{\"\": \"a\"}"},
        {.headers = "{\"\xc3\xa9\": \"a\"}"},
        {.headers = "{\"Host\": \"evil\"}"},
        {.headers = "{\"hOsT\": \"evil\"}"},
        {.headers = "{\"Content-Length\": \"0\"}"},
        {.headers = "{\"Transfer-Encoding\": \"chunked\"}"},
        {.headers = "{\"TE\": \"trailers\"}"},
        {.headers = "{\"Connection\": \"close\"}"},
        {.headers = "{\"Upgrade\": \"h2c\"}"},
        {.headers = "{\"Expect\": \"100-continue\"}"},
        {.headers = "{\"Proxy-Authorization\": \"x\"}"},
        {.headers = "{\"webhook-id\": \"x\"}"},
        {.headers = "{\"Webhook-Signature\": \"x\"}"},
        {.headers = "{\"Idempotency-Key\": \"x\"}"},
        {.headers = "{\"Authorization\": \"x\"}"},
        {.headers = "{\"Cookie\": \"x\"}"},
        {.headers = "{\"Content-Type\": \"x\"}"},
        {.headers = "{\"User-Agent\": \"x\"}"},
        {.headers = "{\"ce-id\": \"x\"}"},
        {.headers = "{\"Accept-Encoding\": \"gzip\"}"},
        {.headers = "{\"X\": 1}"},
        {.headers = "{\"X\": null}"},
        {.headers = "{\"X\": [\"a\"]}"},
        {.headers = "[]"},
        {.headers = "\"x\""},
        {.headers = "{"},
        {.headers = "{\"X\": \"\xff\"}"},
        {.headers = "{\"X\":\"1\",\"X\":\"2\"}"},
        {.headers = "{\"X\":\"1\",\"x\":\"2\"}"},
        {.headers = many},
        {.headers = longer},
        {.message_id = "a\nb"},
        {.message_id = "a b"},
        {.message_id = "\xc3\xa9"},
        {.message_id = ""},
        {.content_type = "text/plain\r\nEvil: 1"},
        {.idempotency_key = "a\r\nb"},
        {.idempotency_key = "\xc3\xa9"},
    };
    struct fixture f;
    set_up(&f, polite, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_message msg = *short_message();
        struct outcome got;
        if (cases[i].headers)
            msg.headers = hk_str_of(cases[i].headers);
        if (cases[i].message_id)
            msg.message_id = hk_str_of(cases[i].message_id);
        if (cases[i].content_type)
            msg.content_type = hk_str_of(cases[i].content_type);
        if (cases[i].idempotency_key)
            msg.idempotency_key = hk_str_of(cases[i].idempotency_key);
        client_deliver(&f.client, &msg, 3000, &got);
        bool good = got.fault == HK_FAULT_INVALID_PAYLOAD && got.error[0] && !got.possibly_delivered &&
                    !strchr(got.error, '\n') && !strchr(got.error, '\x1b');
        NOTE_IF(!good, "case %zu: %s \"%s\"\n", i, hk_fault_name(got.fault), got.error);
        wrong += !good;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(server_connections(f.server), 0);
    tear_down(&f);
}

/* Many receivers say which path they do not know. */
static void an_answer_does_not_tell_the_secrets_of_the_url(void **state)
{
    (void)state;
    static const struct step echo[8] = {
        {OP_REQUEST},
        {OP_SEND, "HTTP/1.1 404 Not Found\r\nLocation: /hooks/x7YzAbCd/go\r\nContent-Length: 61\r\n\r\n"
                  "Cannot POST /hooks/x7YzAbCd?tenant=acme-corp or 'caf\xc3\xa9.12' !!"}};
    struct fixture f;
    struct outcome got;
    set_up(&f, echo, NULL, "127.0.0.1");
    (void)snprintf(f.url, sizeof f.url,
                   "http://127.0.0.1:%d/hooks/x7YzAbCd?tenant=acme-corp&%%63af%%C3%%A9.12",
                   server_port(f.server));
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 3000, &got);
    assert_int_equal(got.status, 404);
    assert_string_equal(got.body, "Cannot POST /hooks/********?tenant=********* or '********' !!");
    assert_non_null(strstr(got.response_headers, "/hooks/********/go"));
    tear_down(&f);
}

static void hints_and_headers_are_kept_within_bounds(void **state)
{
    (void)state;
    static const struct step hints[8] = {
        {OP_REQUEST},
        {OP_SEND,
         "HTTP/1.1 103 Early\r\nRetry-After: 99\r\n\r\nHTTP/1.1 429 Slow\r\nrEtRy-AfTeR:   Wed, 21 Oct 2026 07:28:00 GMT  \r\nX-A: 1\r\nSet-Cookie: s=1\r\nX-a: 2\r\nContent-Length: 0\r\n\r\n"}};
    static const struct step flood[8] = {
        {OP_REQUEST},
        {OP_SEND, "HTTP/1.1 200 OK\r\nRetry-After: 5\r\n"},
        {OP_REPEAT,
         "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
         300},
        {OP_SEND, "Content-Length: 0\r\n\r\n"},
        {OP_HOLD}};
    struct fixture f;
    struct outcome got;
    set_up(&f, hints, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 3000, &got);
    assert_int_equal(got.status, 429);
    assert_string_equal(got.retry_after, "Wed, 21 Oct 2026 07:28:00 GMT");
    assert_int_equal(got.n_headers, 5);
    assert_non_null(strstr(got.response_headers, by_h2 ? "\"x-a\":\"1, 2\"" : "\"X-A\":\"1, 2\""));
    assert_non_null(
        strstr(got.response_headers, by_h2 ? "\"set-cookie\":\"***\"" : "\"Set-Cookie\":\"***\""));
    tear_down(&f);
    set_up(&f, flood, NULL, "127.0.0.1");
    client_open_http(&f.client, &f.options);
    client_deliver(&f.client, short_message(), 3000, &got);
    assert_int_equal(got.status, 200);
    assert_string_equal(got.retry_after, "5");
    assert_int_equal(got.n_headers, HK_HTTP_HEADERS_MAX);
    tear_down(&f);
}

static void bad_options_are_refused_by_name_and_without_secrets(void **state)
{
    (void)state;
    static const char *const short_secret[] = {"whsec_c2VjcmV0"},
                             *const no_prefix[] = {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
                             *const bad_base64[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"};
    static const struct hk_http_header reserved[] = {{"Host", "x", false}},
                                       broken[] = {{"X", "s3cret\r\nEvil: 1", false}},
                                       twice[] = {{"X", "1", false}, {"x", "2", false}},
                                       moved_twice[] = {{"X", "{attempt}", false}, {"Y", "{attempt}", false}},
                                       moved_on[] = {{"X", "{attempt}", false}, {"x", "2", false}},
                                       moved_to[] = {{"User-Agent", "{attempt}", false}},
                                       key[] = {{"Idempotency-Key", "always the same", false}};
    const struct hk_http_options cases[] = {
        {.url = NULL},
        {.url = ""},
        {.url = "ftp://example.com/"},
        {.url = "file:///etc/passwd"},
        {.url = "http://"},
        {.url = "http://user:s3cret@example.com/"},
        {.url = "http://example.com/#x"},
        {.url = "http://exa mple.com/"},
        {.url = "http://example.com:99999/"},
        {.url = "http://ex\xff.com/"},
        {.url = "gopher://x/"},
        {.url = "http://x/", .method = "GET"},
        {.url = "http://x/", .method = "POST / HTTP/1.1\r\n"},
        {.url = "http://x/", .secrets = short_secret, .n_secrets = 1},
        {.url = "http://x/", .secrets = no_prefix, .n_secrets = 1},
        {.url = "http://x/", .secrets = bad_base64, .n_secrets = 1},
        {.url = "http://x/", .headers = reserved, .n_headers = 1},
        {.url = "http://x/", .headers = broken, .n_headers = 1},
        {.url = "http://x/", .headers = twice, .n_headers = 2},
        {.url = "http://x/", .headers = moved_twice, .n_headers = 2},
        {.url = "http://x/", .headers = moved_on, .n_headers = 2},
        {.url = "http://x/", .headers = moved_to, .n_headers = 1},
        {.url = "http://x/", .headers = key, .n_headers = 1},
        {.url = "http://x/", .bearer = "s3cret\r\n"},
        {.url = "http://x/", .bearer = "a", .basic_user = "b", .basic_password = "c"},
        {.url = "http://x/", .basic_user = "s3cret"},
        {.url = "http://x/", .basic_user = "a:b", .basic_password = "s3cret"},
        {.url = "https://x/", .ca_file = "/nonexistent"},
        {.url = "https://x/", .key_file = "/dev/null"},
        {.url = "http://x/", .user_agent = "a\nb"},
        {.url = "http://x/", .cloudevents = true, .cloudevents_source = ""},
        {.url = "http://x/", .max_connections = 1000000},
    };
    struct hk_loop *loop;
    assert_int_equal(hk_loop_new(&loop, NULL), HK_OK);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_http_options options = cases[i];
        struct hk_err err = {.code = HK_OK};
        struct hk_sink *sink = NULL;
        options.name = "billing";
        enum hk_code rc = hk_http_open(loop, &options, &sink, &err);
        bool good = rc == HK_INVALID && !sink && strstr(err.message, "billing") &&
                    !strstr(err.message, "s3cret") && !strstr(err.message, "MfKQ") &&
                    !strstr(err.message, "c2Vj");
        NOTE_IF(!good, "case %zu: %s %s\n", i, hk_code_name(rc), err.message);
        assert_true(good);
    }
    hk_loop_free(loop);
}

/* ---- out of memory ---- */

struct failing {
    long left; /* allocations that still succeed */
    bool for_ever;
};

static void *fail_resize(void *arg, void *ptr, size_t bytes)
{
    struct failing *f = arg;
    if (f->left-- == 0 || (f->for_ever && f->left < 0))
        return NULL;
    return realloc(ptr, bytes);
}

static void fail_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void note_result(void *arg, const struct hk_sink_result *result)
{
    struct outcome *out = arg;
    out->n_done++;
    out->status = result->facts.status;
}

static void stop(void *arg)
{
    hk_loop_stop(arg);
}

/* One delivery on a loop that was made before the trouble began. */
static enum hk_code deliver_in_need(struct hk_loop *loop, struct hk_timer *timer,
                                    const struct hk_http_options *options, struct outcome *out)
{
    struct hk_sink *sink = NULL;
    struct hk_message msg = *short_message();
    msg.headers = hk_str_of("{\"X-Tenant\": \"7\"}");
    enum hk_code rc = hk_http_open(loop, options, &sink, NULL);
    if (rc != HK_OK)
        return rc;
    rc = sink->ops->send(sink,
                         &(struct hk_delivery){.msg = &msg,
                                               .attempt = 1,
                                               .wall_ms = 1794731400250,
                                               .timeout_ms = 300,
                                               .done = note_result,
                                               .arg = out},
                         NULL);
    while (rc == HK_OK && !out->n_done) {
        hk_timer_start(timer, 10);
        hk_loop_run(loop);
    }
    sink->ops->close(sink);
    return rc;
}

static void out_of_memory_ends_a_delivery_and_nothing_else(void **state)
{
    (void)state;
    static const char *const secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    struct fixture f;
    set_up(&f, polite, NULL, "127.0.0.1");
    f.options.secrets = secrets;
    f.options.n_secrets = 1;
    f.options.cloudevents = true;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        bool done = false;
        for (long k = 0; !done && k < 500; k++) {
            struct hk_loop *loop;
            struct hk_timer *timer;
            struct outcome out = {.n_done = 0};
            assert_int_equal(hk_loop_new(&loop, NULL), HK_OK);
            assert_int_equal(hk_timer_new(loop, stop, loop, &timer), HK_OK);
            struct failing failing = {k, for_ever};
            struct hk_allocator allocator = {fail_resize, fail_release, &failing};
            hk_allocator_set(&allocator);
            enum hk_code rc = deliver_in_need(loop, timer, &f.options, &out);
            hk_timer_free(timer);
            hk_loop_free(loop);
            hk_allocator_set(NULL);
            assert_true(rc == HK_NOMEM || (rc == HK_OK && out.n_done == 1));
            done = failing.left >= 0; /* nothing failed any more */
            assert_true(!done || out.status == 200);
        }
        assert_true(done);
    }
    server_stop(f.server);
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forbidden_addresses_are_blocked_in_every_spelling),
        cmocka_unit_test(an_allowed_range_is_let_through_and_no_other),
        cmocka_unit_test(the_environment_has_no_say),
        cmocka_unit_test(the_request_is_as_documented),
        cmocka_unit_test(cloudevents_in_binary_mode),
        cmocka_unit_test(fields_of_the_message_can_be_renamed_and_left_out),
        cmocka_unit_test(fields_of_the_message_are_safe_in_any_script),
        cmocka_unit_test(signatures_agree_with_a_second_opinion),
        cmocka_unit_test(a_dot_in_the_id_is_refused_only_where_it_is_signed),
        cmocka_unit_test(messages_that_cannot_be_sent_are_refused_and_nothing_goes_out),
        cmocka_unit_test(an_answer_does_not_tell_the_secrets_of_the_url),
        cmocka_unit_test(hints_and_headers_are_kept_within_bounds),
        cmocka_unit_test(bad_options_are_refused_by_name_and_without_secrets),
        cmocka_unit_test(out_of_memory_ends_a_delivery_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, begin_with_certs, end_with_certs);
}
