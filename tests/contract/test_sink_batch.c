/* SPDX-License-Identifier: Apache-2.0 */
/* The batch sink: what a request holds, and what each message makes of an answer. The same contract as any sink's stands in
 * test_sink.c; receivers that remember what they took, in tests/e2e/batch.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/failing.h"
#include "base/parse.h"
#include "fixture.h"
#include "sink/batch/batch.h"
#include "sink/http/sign.h"

#define N 3

static const char *const ids[N] = {"ord-1", "ord-2", "ord-3"};

struct bench {
    struct server *server;
    struct client client;
    char url[64];
    struct hk_message messages[N];
    struct outcome outcomes[N];
};

static void open_bench(struct bench *b, const struct step *steps, struct hk_batch_options options)
{
    memset(b, 0, sizeof *b);
    b->server = server_start(steps, NULL);
    url_of(b->url, b->server, "http", "127.0.0.1");
    struct hk_http_options http = options_for(b->url);
    http.cloudevents = http.structured = options.http.cloudevents;
    http.secrets = options.http.secrets;
    http.n_secrets = options.http.n_secrets;
    http.headers = options.http.headers;
    http.n_headers = options.http.n_headers;
    http.gzip = options.http.gzip;
    options.http = http;
    options.messages = options.messages ? options.messages : 100;
    options.bytes = options.bytes ? options.bytes : 1 << 20;
    client_open_loop(&b->client);
    assert_int_equal(hk_batch_open(b->client.loop, &options, &b->client.sink, NULL), HK_OK);
    for (size_t i = 0; i < N; i++) {
        b->messages[i] = *short_message();
        b->messages[i].message_id = hk_str_of(ids[i]);
        b->messages[i].headers = (struct hk_str){"", 0};
    }
}

static void close_bench(struct bench *b)
{
    client_close(&b->client);
    server_stop(b->server);
}

static void send_all(struct bench *b, uint64_t timeout_ms)
{
    for (size_t i = 0; i < N; i++)
        client_send(&b->client, &b->messages[i], timeout_ms, &b->outcomes[i]);
    b->client.sink->ops->flush(b->client.sink);
    client_wait(&b->client);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(b->outcomes[i].n_done, 1);
}

/* ---- answers ---- */

struct expected {
    int status;
    enum hk_fault fault;
    bool maybe;
    const char *retry_after, *body, *says; /* NULL: whatever */
};

struct row {
    const char *name;
    struct step steps[4];
    struct expected each[N];
    uint64_t timeout_ms; /* 0: 5 s */
};

#define FIRST_ONLY(list) "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" list
#define ALL(...)                                                                                             \
    {__VA_ARGS__}, {__VA_ARGS__},                                                                            \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define LIST(list)                                                                                           \
    {                                                                                                        \
        {OP_REQUEST},                                                                                        \
        {                                                                                                    \
            OP_SEND, "HTTP/1.1 207 Multi-Status\r\nRetry-After: 5\r\nConnection: close\r\n\r\n" list         \
        }                                                                                                    \
    }
#define PLAIN(text)                                                                                          \
    {                                                                                                        \
        {OP_REQUEST},                                                                                        \
        {                                                                                                    \
            OP_SEND, text                                                                                    \
        }                                                                                                    \
    }

/* clang-format off */
static const struct row rows[] = {
    {"200 without a body", PLAIN("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), {ALL(.status = 200, .body = "")}},
    {"200 until the end, without a body", PLAIN("HTTP/1.0 200 OK\r\n\r\n"), {ALL(.status = 200)}},
    {"202 with words", PLAIN("HTTP/1.1 202 Accepted\r\nContent-Length: 6\r\n\r\nqueued"), {ALL(.status = 202, .body = "queued")}},
    {"200 with another object", PLAIN("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"), {ALL(.status = 200)}},
    {"each its own", LIST("{\"results\":[{\"id\":\"ord-1\",\"status\":200},{\"id\":\"ord-2\",\"status\":422,\"error\":\"no such customer\"},{\"id\":\"ord-3\",\"status\":503,\"retry_after\":30}]}"),
     {{.status = 200}, {.status = 422, .body = "{\"id\":\"ord-2\",\"status\":422,\"error\":\"no such customer\"}", .retry_after = "5"}, {.status = 503, .retry_after = "30"}}},
    {"a list with 200", PLAIN(FIRST_ONLY("[{\"id\":\"ord-3\",\"status\":500},{\"id\":\"ord-2\",\"status\":204},{\"id\":\"ord-1\",\"status\":201}]")),
     {{.status = 201}, {.status = 204}, {.status = 500, .retry_after = ""}}},
    {"one is left out, and one unclear", LIST("{\"results\":[{\"id\":\"ord-1\",\"status\":200},{\"id\":\"ord-3\",\"status\":\"fine\"}]}"),
     {{.status = 200}, {.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "says nothing of this message"}, {.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "no status that can be read"}}},
    {"207 without a list", LIST(""), {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "207 came without a list")}},
    {"207 with words", LIST("fine"), {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "207 came without a list")}},
    {"a list that is no JSON", LIST("{\"results\":[{\"id\":\"ord-1\",\"status\":200}"), {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "cannot be read")}},
    {"a list that breaks off", PLAIN("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"results\":["), {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "broke off")}},
    {"200 that breaks off before its body", PLAIN("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"), {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "broke off")}},
    {"chunks that break off", PLAIN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"), {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "broke off")}},
    {"chunks", PLAIN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n[]\r\n0\r\n\r\n"), {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "says nothing of this message")}},
    {"an endless list", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n\r\n["}, {OP_ENDLESS, "          "}}, {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true, .says = "too long")}},
    {"a list that comes too slowly", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n["}, {OP_HOLD}}, {ALL(.fault = HK_FAULT_PROTOCOL, .maybe = true)}, .timeout_ms = 1500},
    {"429", PLAIN("HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"), {ALL(.status = 429, .retry_after = "7")}},
    {"503", PLAIN("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"), {ALL(.status = 503, .body = "busy")}},
    {"401", PLAIN("HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n"), {ALL(.status = 401)}},
    {"410", PLAIN("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), {ALL(.status = 410)}},
    {"422, at last for each alone", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\nno"}, {OP_AGAIN}}, {ALL(.status = 422, .body = "no")}},
    {"301", PLAIN("HTTP/1.1 301 There\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), {ALL(.status = 301)}},
    {"closed without an answer", {{OP_REQUEST}, {OP_END}}, {ALL(.fault = HK_FAULT_RESET, .maybe = true)}},
    {"no answer", {{OP_REQUEST}, {OP_HOLD}}, {ALL(.fault = HK_FAULT_TIMEOUT, .maybe = true)}, .timeout_ms = 1000},
};

/* clang-format on */

static bool is_as_expected(const struct outcome *o, const struct expected *e)
{
    return o->status == e->status && o->fault == e->fault && o->possibly_delivered == e->maybe &&
           (!e->retry_after || strcmp(o->retry_after, e->retry_after) == 0) &&
           (!e->body || strcmp(o->body, e->body) == 0) && (!e->says || strstr(o->error, e->says)) &&
           !o->code[0];
}

static void each_message_has_its_own_outcome(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        struct bench b;
        open_bench(&b, row->steps, (struct hk_batch_options){.messages = 100});
        send_all(&b, row->timeout_ms ? row->timeout_ms : 5000);
        for (size_t k = 0; k < N; k++) {
            const struct outcome *o = &b.outcomes[k];
            bool fine = is_as_expected(o, &row->each[k]);
            NOTE_IF(
                !fine,
                "%s, message %zu: status %d, fault %s, maybe %d, Retry-After %s, error \"%s\", body \"%s\"\n",
                row->name, k, o->status, hk_fault_name(o->fault), o->possibly_delivered, o->retry_after,
                o->error, o->body);
            assert_true(fine);
            assert_true(strstr(o->request_headers, "\"webhook-id\":\"batch_") != NULL);
            assert_true(o->address[0] != '\0');
        }
        close_bench(&b);
    }
}

/* ---- requests ---- */

static const char *last_request(struct bench *b)
{
    size_t len = 0;
    return server_last(b->server, &len);
}

static const char *body_of(const char *request)
{
    const char *end = strstr(request, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

static bool has_field(const char *request, const char *name, char out[512])
{
    const char *at = strstr(request, name);
    out[0] = '\0';
    if (!at || at > body_of(request))
        return false;
    at += strlen(name);
    (void)snprintf(out, 512, "%.*s", (int)strcspn(at, "\r"), at);
    return true;
}

static int64_t number_of(const char *text)
{
    uint64_t n = 0;
    assert_int_equal(hk_parse_u64(hk_str_of(text), &n, NULL), HK_OK);
    return (int64_t)n;
}

static void a_request_is_an_array_and_is_signed_as_a_whole(void **state)
{
    (void)state;
    static const char *const secrets[] = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    const struct hk_http_header tenant = {.name = "X-Tenant", .value = "acme"};
    struct bench b;
    struct hk_signer *signer = NULL;
    struct hk_buf signature;
    char id[512], when[512], text[512];
    open_bench(&b, polite,
               (struct hk_batch_options){
                   .http = {.secrets = secrets, .n_secrets = 1, .headers = &tenant, .n_headers = 1}});
    send_all(&b, 5000);
    const char *request = last_request(&b);
    assert_int_equal(server_requests(b.server), 1);
    assert_int_equal(body_of(request)[0], '[');
    assert_non_null(strstr(body_of(request), "},{\"id\":\"ord-2\","));
    assert_non_null(strstr(body_of(request), "\"attempt\":1,"));
    assert_non_null(strstr(body_of(request), "\"payload\":{\"orderId\":42}}]"));
    assert_true(has_field(request, "Content-Type: ", text) && strcmp(text, "application/json") == 0);
    assert_true(has_field(request, "Hikyaku-Batch: ", text) && strcmp(text, "3") == 0);
    assert_true(has_field(request, "X-Tenant: ", text) && strcmp(text, "acme") == 0);
    assert_false(has_field(request, "Idempotency-Key: ", text) ||
                 has_field(request, "Hikyaku-Attempt: ", text) ||
                 has_field(request, "Hikyaku-Event: ", text));
    assert_true(has_field(request, "webhook-id: ", id) && has_field(request, "webhook-timestamp: ", when));
    assert_true(has_field(request, "webhook-signature: ", text));
    hk_buf_init(&signature, 1024);
    assert_int_equal(hk_signer_new(secrets, 1, &signer, NULL), HK_OK);
    assert_int_equal(
        hk_signer_sign(signer, hk_str_of(id), number_of(when), hk_str_of(body_of(request)), &signature),
        HK_OK);
    assert_string_equal(hk_buf_cstr(&signature), text);
    char first[512];
    (void)snprintf(first, sizeof first, "%s", id);
    send_all(&b, 5000);
    assert_true(has_field(last_request(&b), "webhook-id: ", id));
    assert_string_not_equal(first, id);
    hk_signer_free(signer);
    hk_buf_fini(&signature);
    close_bench(&b);
}

static void lines_and_events_are_other_forms(void **state)
{
    (void)state;
    struct bench b;
    char text[512];
    open_bench(&b, polite, (struct hk_batch_options){.format = HK_BATCH_NDJSON});
    b.messages[1].payload = hk_str_of("{\n}");
    send_all(&b, 5000);
    assert_true(has_field(last_request(&b), "Content-Type: ", text) &&
                strcmp(text, "application/x-ndjson") == 0);
    const char *body = body_of(last_request(&b));
    assert_true(strncmp(body, "{\"id\":\"ord-1\",", 14) == 0 && body[strlen(body) - 1] == '\n');
    assert_non_null(strstr(body, "}\n{\"id\":\"ord-2\","));
    assert_non_null(strstr(body, "\"payload\":{ }}\n"));
    close_bench(&b);
    open_bench(&b, polite, (struct hk_batch_options){.http = {.cloudevents = true}});
    send_all(&b, 5000);
    assert_true(has_field(last_request(&b), "Content-Type: ", text) &&
                strcmp(text, "application/cloudevents-batch+json") == 0);
    assert_non_null(strstr(body_of(last_request(&b)), "},{\"specversion\":\"1.0\",\"id\":\"ord-2\","));
    close_bench(&b);
}

/* ---- what goes together ---- */

static void bounds_part_requests(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, polite, (struct hk_batch_options){.messages = 2});
    send_all(&b, 5000);
    assert_int_equal(server_requests(b.server), 2);
    close_bench(&b);
    open_bench(&b, polite, (struct hk_batch_options){.bytes = 10}); /* each is larger, and travels alone */
    send_all(&b, 5000);
    assert_int_equal(server_requests(b.server), 3);
    close_bench(&b);
}

/* A message that cannot be an item, with two that can. */
static void a_message_that_cannot_be_sent_does_not_hold_up_others(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, polite, (struct hk_batch_options){.messages = 100});
    b.messages[1].headers = hk_str_of("{\"Host\":\"x\"}");
    send_all(&b, 5000);
    assert_true(b.outcomes[0].status == 200 && b.outcomes[2].status == 200);
    assert_int_equal(b.outcomes[1].fault, HK_FAULT_INVALID_PAYLOAD);
    assert_false(b.outcomes[1].possibly_delivered);
    assert_int_equal(server_requests(b.server), 1);
    assert_null(strstr(body_of(last_request(&b)), "ord-2"));
    close_bench(&b);
}

static void send_try(struct bench *b, size_t i, uint32_t attempt, unsigned *done, hk_sink_done_fn *fn)
{
    const struct hk_delivery d = {.msg = &b->messages[i],
                                  .attempt = attempt,
                                  .wall_ms = 1,
                                  .timeout_ms = 5000,
                                  .done = fn,
                                  .arg = done};
    assert_int_equal(b->client.sink->ops->send(b->client.sink, &d, NULL), HK_OK);
}

static void count(void *arg, const struct hk_sink_result *result)
{
    assert_int_equal(result->facts.status, 200);
    ++*(unsigned *)arg;
}

static void a_message_that_failed_before_travels_alone(void **state)
{
    (void)state;
    struct bench b;
    unsigned done = 0;
    open_bench(&b, polite, (struct hk_batch_options){.messages = 100});
    for (size_t i = 0; i < N; i++)
        send_try(&b, i, i == 1 ? 2 : 1, &done, count);
    b.client.sink->ops->flush(b.client.sink);
    for (unsigned i = 0; i < 200 && done < N; i++)
        client_run_ms(&b.client, 50);
    assert_int_equal(done, N);
    assert_int_equal(server_requests(b.server), 3); /* one and three have it between them */
    close_bench(&b);
}

/* While a request is under way others wait for company, and no longer than they should. */
static void messages_wait_for_company_while_a_request_is_in_flight(void **state)
{
    (void)state;
    static const struct step slow[8] = {
        {OP_REQUEST}, {OP_SLEEP, NULL, 2000}, {OP_SEND, OK_EMPTY}, {OP_AGAIN}};
    for (unsigned wait_ms = 1; wait_ms <= 20000; wait_ms += 19999) {
        struct bench b;
        unsigned done = 0;
        open_bench(&b, slow, (struct hk_batch_options){.wait_ms = wait_ms});
        for (size_t i = 0; i < N; i++) {
            send_try(&b, i, 1, &done, count);
            b.client.sink->ops->flush(b.client.sink);
            client_run_ms(&b.client, 20);
        }
        for (unsigned i = 0; i < 200 && done < N; i++)
            client_run_ms(&b.client, 50);
        assert_int_equal(done, N);
        assert_int_equal(server_requests(b.server), wait_ms == 1 ? 3 : 2);
        close_bench(&b);
    }
}

/* ---- out of memory ---- */

static struct server *oom_server;
static struct hk_loop *oom_loop;
static struct hk_timer *oom_timer;

static void stop_loop(void *arg)
{
    hk_loop_stop(arg);
}

static void run_loop(uint64_t ms)
{
    hk_timer_start(oom_timer, ms);
    hk_loop_run(oom_loop);
}

static void note(void *arg, const struct hk_sink_result *result)
{
    unsigned *failed = arg;
    failed[0]++;
    if (result->facts.fault != HK_FAULT_NONE || result->facts.status != 200)
        failed[1]++;
    (void)result->show(result);
}

/* Whatever fails, each message has one outcome, and nothing is lost on the way. */
static void run_without_memory(struct failing *f)
{
    struct hk_allocator allocator = {failing_resize, failing_release, f};
    char url[64];
    url_of(url, oom_server, "http", "127.0.0.1");
    struct hk_batch_options options = {.http = options_for(url), .messages = 2, .bytes = 1 << 20};
    struct hk_sink *sink = NULL;
    struct hk_message msg = *short_message();
    unsigned counts[2] = {0, 0}, sent = 0;
    hk_allocator_set(&allocator);
    enum hk_code rc = hk_batch_open(oom_loop, &options, &sink, NULL);
    assert_true(rc == HK_OK || (rc == HK_NOMEM && f->failed));
    for (unsigned i = 0; i < N && rc == HK_OK; i++)
        sent +=
            sink->ops->send(
                sink,
                &(struct hk_delivery){
                    .msg = &msg, .attempt = 1, .wall_ms = 1, .timeout_ms = 5000, .done = note, .arg = counts},
                NULL) == HK_OK;
    if (rc == HK_OK)
        sink->ops->flush(sink);
    for (unsigned i = 0; i < 2000 && counts[0] < sent; i++)
        run_loop(5);
    assert_int_equal(counts[0], sent);
    assert_true(f->failed || counts[1] == 0);
    if (sink)
        sink->ops->close(sink);
    run_loop(0);
    hk_allocator_set(NULL);
}

static void survives_without_memory(void **state)
{
    (void)state;
    oom_server = server_start(polite, NULL);
    assert_int_equal(hk_loop_new(&oom_loop, NULL), HK_OK);
    assert_int_equal(hk_timer_new(oom_loop, stop_loop, oom_loop, &oom_timer), HK_OK);
    for (size_t k = 0;; k++) {
        struct failing f = {.fail_at = k};
        run_without_memory(&f);
        if (!f.failed)
            break;
    }
    hk_timer_free(oom_timer);
    hk_loop_free(oom_loop);
    server_stop(oom_server);
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_has_its_own_outcome),
        cmocka_unit_test(a_request_is_an_array_and_is_signed_as_a_whole),
        cmocka_unit_test(lines_and_events_are_other_forms),
        cmocka_unit_test(bounds_part_requests),
        cmocka_unit_test(a_message_that_cannot_be_sent_does_not_hold_up_others),
        cmocka_unit_test(a_message_that_failed_before_travels_alone),
        cmocka_unit_test(messages_wait_for_company_while_a_request_is_in_flight),
        cmocka_unit_test(survives_without_memory),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
