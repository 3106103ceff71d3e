/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of sinks for SQS, SNS, EventBridge and Kinesis, and allocations that fail. What arrives, and what each answer means, is in
 * tests/e2e/aws.py and aws_services.py. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"
#include "fake_aws.h"
#include "fixture.h"
#include "sink/eventbridge/eventbridge.h"
#include "sink/kinesis/kinesis.h"
#include "sink/sns/sns.h"
#include "sink/sqs/sqs.h"
#include "sink_suite.h"

enum {
    SQS,
    SNS,
    EVENTBRIDGE,
    KINESIS,
    N_KINDS
};

static const struct hk_aws_service *const services[N_KINDS] = {&hk_sqs_service, &hk_sns_service,
                                                               &hk_eventbridge_service, &hk_kinesis_service};

static struct fake_aws quick_aws[N_KINDS] = {
    {"\"MessageBody\":", "{\"Successful\":[", "{\"Id\":\"%zu\",\"MessageId\":\"m\"}", ",", "]}"},
    {".Id=", "<PublishBatchResult><Successful>", "<member><Id>%zu</Id><MessageId>m</MessageId></member>", "",
     "</Successful></PublishBatchResult>"},
    {"\"Detail\":", "{\"Entries\":[", "{\"EventId\":\"e\"}", ",", "]}"},
    {"\"Data\":", "{\"Records\":[", "{\"SequenceNumber\":\"1\",\"ShardId\":\"s\"}", ",", "]}"}};
static struct fake_aws mute_aws = {.entry = "x", .mute = true};

static struct fake_broker *quick_broker[N_KINDS], *mute_broker;

static enum hk_code open_to(struct hk_loop *loop, int kind, const struct fake_broker *broker, size_t window,
                            struct hk_sink **out, struct hk_err *err)
{
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", fake_broker_port(broker));
    const struct hk_aws_sink_options o = {.aws = {.name = "billing",
                                                  .endpoint = url,
                                                  .region = "ap-northeast-1",
                                                  .key_id = "AKIDEXAMPLE",
                                                  .secret = "secret",
                                                  .allow = loopback_allowed,
                                                  .n_allow = 2},
                                          .to = "http://127.0.0.1/1/jobs",
                                          .window = window};
    return hk_aws_sink_open(loop, services[kind], &o, out, err);
}

static struct hk_sink *make(struct hk_loop *loop, int kind, const struct fake_broker *broker, size_t window)
{
    struct hk_sink *sink = NULL;
    return open_to(loop, kind, broker, window, &sink, NULL) == HK_OK ? sink : NULL;
}

#define MAKERS(kind)                                                                                         \
    static struct hk_sink *quick_##kind(struct hk_loop *loop)                                                \
    {                                                                                                        \
        return make(loop, kind, quick_broker[kind], 0);                                                      \
    }                                                                                                        \
    static struct hk_sink *slow_##kind(struct hk_loop *loop)                                                 \
    {                                                                                                        \
        return make(loop, kind, mute_broker, 0);                                                             \
    }                                                                                                        \
    static struct hk_sink *narrow_##kind(struct hk_loop *loop)                                               \
    {                                                                                                        \
        return make(loop, kind, quick_broker[kind], 3);                                                      \
    }
MAKERS(SQS)
MAKERS(SNS)
MAKERS(EVENTBRIDGE)
MAKERS(KINESIS)

static int run_contract(void)
{
    static const struct sink_maker makers[] = {
        {.name = "sqs", .quick = quick_SQS, .slow = slow_SQS, .narrow = narrow_SQS},
        {.name = "sns", .quick = quick_SNS, .slow = slow_SNS, .narrow = narrow_SNS},
        {.name = "eventbridge",
         .quick = quick_EVENTBRIDGE,
         .slow = slow_EVENTBRIDGE,
         .narrow = narrow_EVENTBRIDGE},
        {.name = "kinesis", .quick = quick_KINESIS, .slow = slow_KINESIS, .narrow = narrow_KINESIS}};
    return sink_suite(makers, COUNT(makers));
}

/* ---- allocations that fail ---- */

/* Of this thread: the endpoint's are left alone. */
static pthread_t mine;
static unsigned long calls, fail_at;

static bool fails(void)
{
    return pthread_equal(pthread_self(), mine) && ++calls == fail_at;
}

static void *realloc_or_fail(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    return fails() ? NULL : realloc(ptr, bytes);
}

static void free_it(void *ctx, void *ptr)
{
    (void)ctx;
    free(ptr);
}

static const struct hk_allocator allocator = {.resize = realloc_or_fail, .release = free_it};

struct tally {
    struct hk_loop *loop;
    unsigned sent, done, good;
};

static void on_done(void *arg, const struct hk_sink_result *r)
{
    struct tally *t = arg;
    t->good += r->facts.fault == HK_FAULT_NONE;
    if (++t->done == t->sent)
        hk_loop_stop(t->loop);
}

static void hangs(void *arg)
{
    (void)arg;
    (void)fprintf(stderr, "allocation %lu: a delivery never ended\n", fail_at);
    abort();
}

static void send_three(struct hk_sink *sink, const struct hk_message *msg, struct tally *t)
{
    struct hk_err err = {.code = HK_OK};
    for (int i = 0; i < 3; i++) {
        const struct hk_delivery delivery = {
            .msg = msg, .attempt = 1, .timeout_ms = 30000, .done = on_done, .arg = t};
        t->sent += sink->ops->send(sink, &delivery, &err) == HK_OK;
    }
    sink->ops->flush(sink);
    if (t->sent)
        hk_loop_run(t->loop);
}

/* True: nothing failed. */
static bool survives(int kind, struct hk_loop *loop)
{
    struct tally t = {.loop = loop};
    struct hk_err err = {.code = HK_OK};
    struct hk_sink *sink = NULL;
    struct hk_message msg = message_of("{\"a\":1}", 7);
    calls = 0;
    hk_allocator_set(&allocator);
    enum hk_code rc = open_to(loop, kind, quick_broker[kind], 0, &sink, &err);
    assert_true(rc == HK_OK || rc == HK_NOMEM);
    if (sink)
        send_three(sink, &msg, &t);
    bool whole = calls < fail_at;
    assert_int_equal(t.done, t.sent);
    assert_true(!whole || (t.sent == 3 && t.good == 3));
    if (sink)
        sink->ops->close(sink);
    hk_allocator_set(NULL);
    return whole;
}

static void a_failed_allocation_ends_what_it_concerns(void **state)
{
    (void)state;
    mine = pthread_self();
    for (int kind = 0; kind < N_KINDS; kind++) {
        bool whole = false;
        for (fail_at = 1; !whole; fail_at++) {
            struct hk_loop *loop = NULL;
            struct hk_timer *guard = NULL;
            assert_int_equal(hk_loop_new(&loop, NULL), HK_OK);
            assert_int_equal(hk_timer_new(loop, hangs, NULL, &guard), HK_OK);
            hk_timer_start(guard, 60000);
            whole = survives(kind, loop);
            hk_timer_free(guard);
            hk_loop_free(loop);
        }
        assert_true(fail_at > 20); /* it did fail some */
    }
}

/* "contract": the contract of all sinks. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_failed_allocation_ends_what_it_concerns)};
    (void)argv;
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < N_KINDS; i++)
        quick_broker[i] = fake_broker_start(fake_aws_serve, &quick_aws[i]);
    mute_broker = fake_broker_start(fake_aws_serve, &mute_aws);
    int failed = argc > 1 ? run_contract() : cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < N_KINDS; i++)
        fake_broker_stop(quick_broker[i]);
    fake_broker_stop(mute_broker);
    return failed;
}
