/* SPDX-License-Identifier: Apache-2.0 */
/* Is the queue there, and do these credentials open it? Blocks, for people who ask. */
#include <stdio.h>

#include "base/str.h"
#include "sink/aws/answer.h"
#include "sink/sqs/impl.h"

enum {
    QUESTION_MAX = 8192,
    SHOWN_MAX = 200
};

struct probe {
    struct hk_loop *loop;
    char *out;
    struct hk_err *err;
    enum hk_code rc;
};

static enum hk_code say_refused(const struct hk_facts *facts, struct hk_err *err)
{
    bool maybe = false;
    struct hk_aws_error error;
    hk_aws_error_read(facts->body, &error);
    bool denied = hk_aws_fault(facts->status, error.code, &maybe) == HK_FAULT_BROKER_AUTH;
    bool missing = hk_str_glob("*QueueDoesNotExist*", hk_str_of(error.code)) ||
                   hk_str_glob("*NonExistentQueue*", hk_str_of(error.code));
    return hk_err_set(err,
                      denied    ? HK_DENIED
                      : missing ? HK_NOTFOUND
                                : HK_UNAVAILABLE,
                      "SQS says HTTP %d %s: %.*s", facts->status, error.code, SHOWN_MAX, error.words);
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct probe *p = arg;
    const struct hk_facts *facts = &result->facts;
    char waiting[24];
    p->rc = HK_OK;
    if (!facts->status)
        p->rc = hk_err_set(p->err, HK_UNAVAILABLE, "%.*s", (int)facts->error.len, facts->error.ptr);
    else if (facts->status / 100 != 2)
        p->rc = say_refused(facts, p->err);
    else if (!hk_aws_attribute_read(facts->body, "ApproximateNumberOfMessages", waiting, sizeof waiting))
        p->rc = hk_err_set(p->err, HK_UNAVAILABLE, "the endpoint does not answer as SQS does");
    else
        (void)snprintf(p->out, HK_SQS_PROBE_MAX, "the queue is there, with about %s messages", waiting);
    hk_loop_stop(p->loop);
}

static enum hk_code ask(struct probe *p, const struct hk_sqs_options *options, uint64_t timeout_ms,
                        struct hk_err *err)
{
    struct hk_aws_options aws = options->aws;
    struct hk_aws_client *client = NULL;
    struct hk_buf body;
    struct hk_json json;
    aws.service = "sqs";
    hk_buf_init(&body, QUESTION_MAX);
    hk_json_init(&json, &body, false);
    hk_json_object(&json);
    hk_json_key(&json, "QueueUrl");
    hk_json_cstr(&json, options->queue_url);
    hk_json_key(&json, "AttributeNames");
    hk_json_array(&json);
    hk_json_cstr(&json, "ApproximateNumberOfMessages");
    hk_json_end(&json);
    hk_json_end(&json);
    struct hk_aws_call call = {.target = "AmazonSQS.GetQueueAttributes",
                               .body = hk_buf_str(&body),
                               .timeout_ms = timeout_ms,
                               .done = on_answer,
                               .arg = p};
    enum hk_code rc = hk_buf_status(&body) == HK_OK ? hk_aws_client_open(p->loop, &aws, &client, err)
                                                    : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_aws_client_ready(client, err);
    if (rc == HK_OK)
        rc = hk_aws_client_call(client, &call, err);
    if (rc == HK_OK) {
        hk_loop_run(p->loop);
        rc = p->rc;
    }
    hk_aws_client_free(client);
    hk_buf_fini(&body);
    return rc;
}

enum hk_code hk_sqs_probe(const struct hk_sqs_options *options, uint64_t timeout_ms,
                          char out[HK_SQS_PROBE_MAX], struct hk_err *err)
{
    struct probe p = {.out = out, .err = err, .rc = HK_UNAVAILABLE};
    enum hk_code rc = hk_loop_new(&p.loop, err);
    if (rc != HK_OK)
        return rc;
    rc = ask(&p, options, timeout_ms, err);
    hk_loop_free(p.loop);
    return rc;
}
