/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks of NATS and Redis against servers that follow a script: the contract of sinks, and what each answer means. The real servers
 * are in tests/e2e/brokers.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"
#include "fake_lines.h"
#include "fixture.h"
#include "sink/nats/nats.h"
#include "sink/redis/redis.h"
#include "sink_suite.h"

static bool by_redis;

static struct fake_broker *start(struct lines_script *script)
{
    return fake_broker_start(by_redis ? fake_redis_serve : fake_nats_serve, script);
}

static enum hk_code open_to(struct hk_loop *loop, const char *url, size_t window, struct hk_sink **out,
                            struct hk_err *err)
{
    const struct hk_nats_options nats = {.name = "billing",
                                         .url = url,
                                         .subject = "events.{event_type}",
                                         .window = window,
                                         .allow = loopback_allowed,
                                         .n_allow = 2};
    const struct hk_redis_options redis = {.name = "billing",
                                           .url = url,
                                           .stream = "events",
                                           .create = true,
                                           .window = window,
                                           .allow = loopback_allowed,
                                           .n_allow = 2};
    return by_redis ? hk_redis_open(loop, &redis, out, err) : hk_nats_open(loop, &nats, out, err);
}

static const char *url_to(const struct fake_broker *broker, char out[64])
{
    (void)snprintf(out, 64, "%s://127.0.0.1:%d", by_redis ? "redis" : "nats", fake_broker_port(broker));
    return out;
}

/* ---- the contract ---- */

#define FULL                                                                                                 \
    "{\"error\":{\"code\":400,\"err_code\":10054,\"description\":\"message size exceeds maximum allowed\"}}"

static struct lines_script quick_script, slow_script = {.mute = true}, refusing_script = {.refuse_every = 7};
static struct fake_broker *quick_broker, *slow_broker, *refusing_broker;

static struct hk_sink *make(struct hk_loop *loop, const struct fake_broker *broker, size_t window)
{
    char url[64];
    struct hk_sink *sink = NULL;
    return open_to(loop, url_to(broker, url), window, &sink, NULL) == HK_OK ? sink : NULL;
}

static struct hk_sink *quick(struct hk_loop *loop)
{
    return make(loop, quick_broker, 0);
}

static struct hk_sink *slow(struct hk_loop *loop)
{
    return make(loop, slow_broker, 0);
}

static struct hk_sink *narrow(struct hk_loop *loop)
{
    return make(loop, quick_broker, 3);
}

static struct hk_sink *refusing(struct hk_loop *loop)
{
    return make(loop, refusing_broker, 0);
}

static int run_contract(void)
{
    const struct sink_maker makers[] = {{.name = by_redis ? "redis" : "nats",
                                         .quick = quick,
                                         .slow = slow,
                                         .narrow = narrow,
                                         .refusing = refusing}};
    refusing_script.refusal = by_redis ? "-WRONGTYPE wrong kind of value\r\n" : FULL;
    quick_broker = start(&quick_script);
    slow_broker = start(&slow_script);
    refusing_broker = start(&refusing_script);
    int failed = sink_suite(makers, COUNT(makers));
    fake_broker_stop(quick_broker);
    fake_broker_stop(slow_broker);
    fake_broker_stop(refusing_broker);
    return failed;
}

/* ---- what each answer means ---- */

struct row {
    const char *name;
    struct lines_script script;
    enum hk_fault fault;
    bool possibly;
    const char *code, *says;
};

static const struct row nats_rows[] = {
    {"stored", {0}, HK_FAULT_NONE},
    {"too large for the stream",
     {.refuse_every = 1, .refusal = FULL},
     HK_FAULT_BROKER_REFUSED,
     .code = "10054",
     .says = "exceeds"},
    {"full",
     {.refuse_every = 1,
      .refusal =
          "{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum messages exceeded\"}}"},
     HK_FAULT_BROKER_THROTTLED,
     .code = "10077"},
    {"an error that nobody knows",
     {.refuse_every = 1, .refusal = "{\"error\":{\"code\":400,\"err_code\":1}}"},
     HK_FAULT_BROKER_UNKNOWN,
     true,
     "1"},
    {"nobody listens, no stream",
     {.refuse_every = 1, .refusal = "503", .streams = "{\"streams\":null}"},
     HK_FAULT_BROKER_REFUSED,
     .code = "503",
     .says = "no stream takes"},
    {"nobody listens, a stream is there",
     {.refuse_every = 1, .refusal = "503", .streams = "{\"streams\":[\"E\"]}"},
     HK_FAULT_BROKER_TRANSIENT,
     .code = "503"},
    {"nobody listens, no right to ask",
     {.refuse_every = 1, .refusal = "503"},
     HK_FAULT_BROKER_REFUSED,
     .code = "503"},
    {"a repeat of somebody else's",
     {.refuse_every = 1, .refusal = "{\"stream\":\"E\",\"seq\":1,\"duplicate\":true}"},
     HK_FAULT_BROKER_REFUSED,
     .code = "duplicate"},
    {"an answer that is none of JetStream's",
     {.refuse_every = 1, .refusal = "pong"},
     HK_FAULT_PROTOCOL,
     true,
     .says = "somebody else"},
    {"no right",
     {.refuse_every = 1,
      .refusal = "-ERR 'Permissions Violation for Publish to \"events.OrderCreated\"'\r\n"},
     HK_FAULT_BROKER_AUTH,
     .code = "-ERR",
     .says = "events.OrderCreated"},
    {"no log-in",
     {.greeting = "INFO {\"headers\":true}\r\n-ERR 'Authorization Violation'\r\n"},
     HK_FAULT_BROKER_AUTH,
     .code = "-ERR"},
    {"too old",
     {.greeting = "INFO {\"server_id\":\"x\"}\r\n"},
     HK_FAULT_PROTOCOL,
     .says = "older than NATS 2.2"},
    {"too large for the server",
     {.greeting = "INFO {\"headers\":true,\"max_payload\":10}\r\n"},
     HK_FAULT_TOO_LARGE,
     .says = "at most 10"},
    {"another protocol",
     {.greeting = "SSH-2.0-OpenSSH_9.2\r\n"},
     HK_FAULT_PROTOCOL,
     .says = "other than NATS"},
    {"the connection ends", {.cut_at = 1}, HK_FAULT_RESET, true},
    {"no answer", {.silent_from = 1}, HK_FAULT_TIMEOUT, true, .says = "not confirmed"},
    {"no greeting", {.mute = true}, HK_FAULT_TIMEOUT, .says = "not ready in time"},
};

static const struct row redis_rows[] = {
    {"added", {0}, HK_FAULT_NONE},
    {"no stream of that name",
     {.refuse_every = 1, .refusal = "-WRONGTYPE wrong kind of value\r\n"},
     HK_FAULT_BROKER_REFUSED,
     .code = "WRONGTYPE",
     .says = "WRONGTYPE wrong kind"},
    {"no right",
     {.refuse_every = 1, .refusal = "-NOPERM no permissions\r\n"},
     HK_FAULT_BROKER_AUTH,
     .code = "NOPERM"},
    {"full",
     {.refuse_every = 1, .refusal = "-OOM command not allowed\r\n"},
     HK_FAULT_BROKER_THROTTLED,
     .code = "OOM"},
    {"a replica",
     {.refuse_every = 1, .refusal = "-READONLY You can't write\r\n"},
     HK_FAULT_BROKER_TRANSIENT,
     .code = "READONLY"},
    {"missing", {.refuse_every = 1, .refusal = "$-1\r\n"}, HK_FAULT_BROKER_REFUSED, .code = "nil"},
    {"an error that nobody knows",
     {.refuse_every = 1, .refusal = "-NEW thing\r\n"},
     HK_FAULT_BROKER_UNKNOWN,
     true,
     "NEW"},
    {"no id", {.refuse_every = 1, .refusal = "+OK\r\n"}, HK_FAULT_PROTOCOL, true, .says = "not the id"},
    {"a circle", {.refuse_every = 1, .refusal = "-MOVED 1 nowhere\r\n"}, HK_FAULT_DNS, .says = "resolve"},
    {"not to be read",
     {.refuse_every = 1, .refusal = "-MOVED 1 :0\r\n"},
     HK_FAULT_BROKER_TRANSIENT,
     .code = "MOVED"},
    {"an address that is blocked",
     {.refuse_every = 1, .refusal = "-MOVED 1 10.9.8.7:6379\r\n"},
     HK_FAULT_BLOCKED,
     .says = "10.9.8.7"},
    {"wrong password",
     {.greeting = "-WRONGPASS invalid username-password pair\r\n"},
     HK_FAULT_BROKER_AUTH,
     .code = "WRONGPASS"},
    {"loading",
     {.greeting = "-LOADING Redis is loading the dataset in memory\r\n"},
     HK_FAULT_BROKER_TRANSIENT,
     .code = "LOADING"},
    {"another protocol",
     {.greeting = "HTTP/1.1 400 Bad Request\r\n"},
     HK_FAULT_PROTOCOL,
     .says = "other than RESP"},
    {"the connection ends", {.cut_at = 1}, HK_FAULT_RESET, true},
    {"no reply", {.silent_from = 1}, HK_FAULT_TIMEOUT, true, .says = "not confirmed"},
    {"no greeting", {.mute = true}, HK_FAULT_TIMEOUT, .says = "not ready in time"},
};

static bool holds(const struct row *row, const struct outcome *out)
{
    return out->n_done == 1 && out->fault == row->fault && out->possibly_delivered == row->possibly &&
           strcmp(out->code, row->code ? row->code : "") == 0 &&
           (!row->says || strstr(out->error, row->says)) && out->placed == (row->fault == HK_FAULT_NONE) &&
           (out->error[0] != '\0') == (row->fault != HK_FAULT_NONE);
}

static bool run_row(const struct row *row)
{
    struct lines_script script = row->script;
    struct fake_broker *broker = start(&script);
    struct client c;
    struct outcome out;
    struct hk_err err = {.message = ""};
    char url[64];
    struct hk_message msg = message_of("{}", 2);
    client_open_loop(&c);
    enum hk_code rc = open_to(c.loop, url_to(broker, url), 0, &c.sink, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    client_send(&c, &msg, 3000, &out);
    c.sink->ops->flush(c.sink);
    client_wait(&c);
    bool good = holds(row, &out);
    NOTE_IF(!good, "%s: %s, possibly %d, code \"%s\", error \"%s\"\n", row->name, hk_fault_name(out.fault),
            out.possibly_delivered, out.code, out.error);
    client_close(&c);
    fake_broker_stop(broker);
    return good;
}

static void every_answer_means_what_the_table_says(void **state)
{
    (void)state;
    const struct row *rows = by_redis ? redis_rows : nats_rows;
    size_t n = COUNT(nats_rows), wrong = 0;
    if (by_redis)
        n = COUNT(redis_rows);
    for (size_t i = 0; i < n; i++)
        wrong += !run_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

/* "nats" or "redis"; then "contract": the contract of all sinks. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_answer_means_what_the_table_says)};
    (void)signal(SIGPIPE, SIG_IGN);
    by_redis = argc > 1 && strstr(argv[1], "redis") != NULL;
    return argc > 1 && strstr(argv[1], "contract") ? run_contract()
                                                   : cmocka_run_group_tests(tests, NULL, NULL);
}
