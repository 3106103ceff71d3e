/* SPDX-License-Identifier: Apache-2.0 */
/* The test's side of a sink. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"

#define GUARD_MS 120000

const struct hk_cidr loopback_allowed[2] = {{{127}, 8, false},
                                            {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, true}};

bool by_libcurl, by_h2;

void choose_wire(int argc, char **argv)
{
    by_libcurl = argc > 1 && strcmp(argv[1], "libcurl") == 0;
    by_h2 = argc > 1 && strcmp(argv[1], "h2") == 0;
}

struct sent {
    struct client *client;
    struct outcome *out;
};

struct hk_message message_of(const char *payload, size_t len)
{
    return (struct hk_message){.id = 1,
                               .message_id = hk_str_of("msg_2Lh9"),
                               .destination = hk_str_of("billing"),
                               .event_type = hk_str_of("OrderCreated"),
                               .payload = {payload, len},
                               .created_ms = INT64_C(1794731400250),
                               .life = 1};
}

static void on_guard(void *arg)
{
    (void)arg;
    (void)fprintf(stderr, "the test hangs\n");
    abort();
}

void client_open_loop(struct client *c)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(hk_loop_new(&c->loop, NULL), HK_OK);
    assert_int_equal(hk_timer_new(c->loop, on_guard, NULL, &c->guard), HK_OK);
}

void client_open_http(struct client *c, const struct hk_http_options *options)
{
    struct hk_err err = {.code = HK_OK};
    struct hk_http_options o = *options;
    o.libcurl = by_libcurl;
    if (by_h2)
        o.version = 2;
    client_open_loop(c);
    enum hk_code rc = hk_http_open(c->loop, &o, &c->sink, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

void client_close(struct client *c)
{
    if (c->sink)
        c->sink->ops->close(c->sink);
    hk_timer_free(c->guard);
    hk_loop_free(c->loop);
}

static void copy(char *out, size_t room, struct hk_str s)
{
    size_t n = s.len < room ? s.len : room - 1;
    if (n)
        memcpy(out, s.ptr, n);
    out[n] = '\0';
}

static void on_done(void *arg, const struct hk_sink_result *r)
{
    struct sent *sent = arg;
    struct outcome *out = sent->out;
    struct client *c = sent->client;
    out->n_done++;
    out->fault = r->facts.fault;
    out->status = r->facts.status;
    out->possibly_delivered = r->facts.possibly_delivered;
    out->duration_ms = r->facts.duration_ms;
    out->n_headers = r->facts.n_headers;
    out->body_len = r->facts.body.len;
    out->placed = r->facts.placed;
    out->sequence = r->facts.sequence;
    out->partition = r->facts.partition;
    copy(out->code, sizeof out->code, r->facts.broker_code);
    copy(out->body, sizeof out->body, r->facts.body);
    copy(out->error, sizeof out->error, r->facts.error);
    struct hk_sink_shown shown = r->show(r);
    copy(out->request_headers, sizeof out->request_headers, shown.request_headers);
    copy(out->response_headers, sizeof out->response_headers, shown.response_headers);
    copy(out->address, sizeof out->address, r->address);
    for (size_t i = 0; i < r->facts.n_headers; i++) {
        if (hk_str_eqi(r->facts.headers[i].name, hk_str_of("retry-after")))
            copy(out->retry_after, sizeof out->retry_after, r->facts.headers[i].value);
    }
    free(sent);
    if (++c->got == c->want)
        hk_loop_stop(c->loop);
}

void client_send(struct client *c, const struct hk_message *msg, uint64_t timeout_ms, struct outcome *out)
{
    struct hk_err err = {.code = HK_OK};
    struct sent *sent = malloc(sizeof *sent);
    assert_non_null(sent);
    *sent = (struct sent){c, out};
    memset(out, 0, sizeof *out);
    enum hk_code rc = c->sink->ops->send(c->sink,
                                         &(struct hk_delivery){.msg = msg,
                                                               .attempt = 1,
                                                               .wall_ms = INT64_C(1794731400250),
                                                               .timeout_ms = timeout_ms,
                                                               .done = on_done,
                                                               .arg = sent},
                                         &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(out->n_done, 0); /* never from inside send */
    c->want++;
}

void client_wait(struct client *c)
{
    hk_timer_start(c->guard, GUARD_MS);
    if (c->got < c->want)
        hk_loop_run(c->loop);
    hk_timer_stop(c->guard);
    assert_int_equal(c->got, c->want);
}

static void stop_loop(void *arg)
{
    hk_loop_stop(arg);
}

void client_run_ms(struct client *c, uint64_t ms)
{
    struct hk_timer *timer;
    assert_int_equal(hk_timer_new(c->loop, stop_loop, c->loop, &timer), HK_OK);
    hk_timer_start(timer, ms);
    while (hk_timer_running(timer))
        hk_loop_run(c->loop);
    hk_timer_free(timer);
}

void client_deliver(struct client *c, const struct hk_message *msg, uint64_t timeout_ms, struct outcome *out)
{
    client_send(c, msg, timeout_ms, out);
    client_wait(c);
    assert_int_equal(out->n_done, 1);
}
