/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/str.h"
#include "sink/aws/probe.h"

enum {
    QUESTION_MAX = 8192,
    SHOWN_MAX = 200
};

struct asking {
    const struct hk_aws_probe *probe;
    struct hk_loop *loop;
    struct hk_aws_client *client;
    struct hk_aws_call call;
    struct hk_timer *clock;
    char *out;
    struct hk_err *err;
    uint64_t end_ms;
    bool running, ended;
    enum hk_code rc;
};

static void end_asking(struct asking *a, enum hk_code rc)
{
    a->rc = rc;
    a->ended = true;
    if (a->running)
        hk_loop_stop(a->loop);
}

static enum hk_code say_refused(const struct asking *a, const struct hk_facts *facts)
{
    bool maybe = false, missing = facts->status == 404;
    struct hk_aws_error error;
    hk_aws_error_read(facts->body, &error);
    bool denied = hk_aws_fault(facts->status, error.code, &maybe) == HK_FAULT_BROKER_AUTH;
    for (const char *const *gone = a->probe->service->gone; *gone; gone++)
        missing = missing || hk_str_glob(*gone, hk_str_of(error.code));
    return hk_err_set(a->err,
                      denied    ? HK_DENIED
                      : missing ? HK_NOTFOUND
                                : HK_UNAVAILABLE,
                      "%s says HTTP %d %s: %.*s", a->probe->service->title, facts->status, error.code,
                      SHOWN_MAX, error.words);
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct asking *a = arg;
    const struct hk_facts *facts = &result->facts;
    enum hk_code rc = HK_OK;
    if (!facts->status)
        rc = hk_err_set(a->err, HK_UNAVAILABLE, "%.*s", (int)facts->error.len, facts->error.ptr);
    else if (facts->status / 100 != 2)
        rc = say_refused(a, facts);
    else if (!a->probe->judge(facts->body, a->out))
        rc = hk_err_set(a->err, HK_UNAVAILABLE, "the endpoint does not answer as %s does",
                        a->probe->service->title);
    end_asking(a, rc);
}

/* Also when credentials have come. */
static void on_ready(void *arg)
{
    struct asking *a = arg;
    enum hk_fault fault = HK_FAULT_NONE;
    uint64_t now_ms = hk_loop_now_ms(a->loop);
    enum hk_code rc = hk_aws_client_ready(a->client, &fault, a->err);
    if (rc == HK_BUSY)
        return;
    hk_timer_stop(a->clock);
    a->call.timeout_ms = a->end_ms > now_ms ? a->end_ms - now_ms : 1;
    if (rc == HK_OK)
        rc = hk_aws_client_call(a->client, &a->call, a->err);
    if (rc != HK_OK)
        end_asking(a, rc);
}

static void on_clock(void *arg)
{
    struct asking *a = arg;
    end_asking(a, hk_err_set(a->err, HK_UNAVAILABLE, "no AWS credentials came in time"));
}

static enum hk_code run(struct asking *a, const struct hk_aws_sink_options *o, uint64_t timeout_ms,
                        struct hk_err *err)
{
    struct hk_aws_options aws = o->aws;
    aws.service = a->probe->service->signs;
    aws.content_type = a->probe->service->content_type;
    aws.wake = on_ready;
    aws.wake_arg = a;
    enum hk_code rc = hk_timer_new(a->loop, on_clock, a, &a->clock);
    if (rc != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    rc = hk_aws_client_open(a->loop, &aws, &a->client, err);
    if (rc != HK_OK)
        return rc;
    a->end_ms = hk_loop_now_ms(a->loop) + timeout_ms;
    hk_timer_start(a->clock, timeout_ms);
    on_ready(a);
    a->running = true;
    if (!a->ended)
        hk_loop_run(a->loop);
    return a->rc;
}

enum hk_code hk_aws_probe(const struct hk_aws_probe *probe, const struct hk_aws_sink_options *options,
                          uint64_t timeout_ms, char out[HK_AWS_PROBE_MAX], struct hk_err *err)
{
    struct hk_buf body;
    struct asking a = {.probe = probe, .out = out, .err = err, .rc = HK_UNAVAILABLE};
    hk_buf_init(&body, QUESTION_MAX);
    probe->ask(options->to, &body);
    a.call = (struct hk_aws_call){
        .target = probe->target, .body = hk_buf_str(&body), .done = on_answer, .arg = &a};
    enum hk_code rc = hk_buf_status(&body) == HK_OK ? hk_loop_new(&a.loop, err)
                                                    : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK) {
        rc = run(&a, options, timeout_ms, err);
        hk_aws_client_free(a.client);
        hk_timer_free(a.clock);
        hk_loop_free(a.loop);
    }
    hk_buf_fini(&body);
    return rc;
}
