/* SPDX-License-Identifier: Apache-2.0 */
/* The SQS sink. `send` collects; `flush` makes requests of up to ten messages and 256 KiB. A request ends all of its messages: each with
 * the result of its entry, or all with what became of the request. A request of several messages that is refused as a whole says nothing
 * of the single message, so each of them goes out once more alone. SQS took none of them: it is the same attempt.
 *
 * Two messages with the same key are never in one request, since the engine never has both in flight. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/aws/answer.h"
#include "sink/broker/batch.h"
#include "sink/http/body.h"
#include "sink/sqs/impl.h"

enum {
    REQUEST_MAX = 8 * 1024 * 1024, /* escaping makes six bytes of one */
    EVENT_MAX = 4 * 1024 * 1024
};

#define EVENT_TYPE   "application/cloudevents+json"
#define EVENT_SOURCE "/hikyaku"

struct hk_sqs_sink {
    struct hk_broker broker; /* first */
    struct hk_aws_client *client;
    char *queue_url;
    bool fifo, cloudevents;
    struct hk_buf event;
};

struct sqs_request {
    struct hk_aws_call call;
    struct hk_sqs_sink *sink;
    struct hk_buf body;
    struct hk_json json;
    struct hk_flight *flights[HK_AWS_BATCH_MAX];
    struct hk_batch batch;
};

static struct hk_sqs_sink *sqs_of(struct hk_broker *b)
{
    return (struct hk_sqs_sink *)b;
}

static void free_request(struct sqs_request *r)
{
    hk_buf_fini(&r->body);
    hk_mem_free(r);
}

/* ---- what SQS said ---- */

static void doubt_credentials(struct sqs_request *r, enum hk_fault fault)
{
    if (fault == HK_FAULT_BROKER_AUTH)
        hk_aws_client_doubt(r->sink->client);
}

static void send_alone(struct sqs_request *r)
{
    for (size_t i = 0; i < r->batch.n; i++) {
        struct hk_flight *f = r->flights[i];
        f->deadline_ms = f->number;
        hk_flight_requeue(f);
    }
}

/* Refused as a whole. A queue that is not there refuses each of them as well. */
static void judge_refusal(struct sqs_request *r, const struct hk_facts *facts)
{
    struct hk_aws_error error;
    bool maybe = false;
    hk_aws_error_read(facts->body, &error);
    enum hk_fault fault = hk_aws_fault(facts->status, error.code, &maybe);
    bool queue = strstr(error.code, "QueueDoesNotExist") || strstr(error.code, "NonExistentQueue");
    if (!error.code[0])
        (void)snprintf(error.code, sizeof error.code, "HTTP %d", facts->status);
    doubt_credentials(r, fault);
    if (fault == HK_FAULT_BROKER_REFUSED && r->batch.n > 1 && !queue)
        send_alone(r);
    else
        hk_batch_fail(&r->batch, fault, maybe, error.code, error.words, NULL);
}

static void judge_entry(struct sqs_request *r, struct hk_flight *f, const struct hk_aws_result *result)
{
    bool maybe = false;
    if (result->outcome == HK_AWS_TAKEN) {
        hk_flight_confirm(f, -1, 0);
        f->placed = false; /* SQS's numbers are longer than ours */
        (void)hk_str_copy(f->words, sizeof f->words, hk_str_of(result->place));
    } else if (result->outcome == HK_AWS_FAILED) {
        enum hk_fault fault = hk_aws_entry_fault(result, &maybe);
        doubt_credentials(r, fault);
        hk_flight_fail(f, fault, maybe, result->error.code, result->error.words, NULL);
    } else {
        hk_flight_fail(f, HK_FAULT_BROKER_UNKNOWN, true, NULL, NULL,
                       "the answer of SQS says nothing of this message");
    }
}

static void judge_entries(struct sqs_request *r, const struct hk_facts *facts)
{
    struct hk_aws_result results[HK_AWS_BATCH_MAX];
    if (!hk_aws_batch_read(facts->body, results, r->batch.n)) {
        hk_batch_fail(&r->batch, HK_FAULT_BROKER_UNKNOWN, true, NULL, NULL,
                      "the endpoint does not answer as SQS does");
        return;
    }
    for (size_t i = 0; i < r->batch.n; i++)
        judge_entry(r, r->flights[i], &results[i]);
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct sqs_request *r = arg;
    struct hk_broker *b = &r->sink->broker;
    const struct hk_facts *facts = &result->facts;
    hk_batch_note_address(&r->batch, result->address);
    if (!facts->status)
        hk_batch_unanswered(&r->batch, facts);
    else if (facts->status == 200)
        judge_entries(r, facts);
    else
        judge_refusal(r, facts);
    free_request(r);
    hk_broker_pump(b);
}

/* ---- making requests ---- */

static struct sqs_request *new_request(struct hk_sqs_sink *self)
{
    struct sqs_request *r = hk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->sink = self;
    r->batch.flights = r->flights;
    hk_buf_init(&r->body, REQUEST_MAX);
    hk_json_init(&r->json, &r->body, false);
    hk_json_object(&r->json);
    hk_json_key(&r->json, "QueueUrl");
    hk_json_cstr(&r->json, self->queue_url);
    hk_json_key(&r->json, "Entries");
    hk_json_array(&r->json);
    return r;
}

static enum hk_code make_entry(struct hk_sqs_sink *self, const struct hk_flight *f, struct hk_message *msg,
                               struct hk_sqs_entry *out, size_t *out_bytes, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    *msg = *f->msg;
    *out = (struct hk_sqs_entry){
        .msg = f->msg, .fields = &self->broker.fields, .body = msg->payload, .fifo = self->fifo};
    if (self->cloudevents) {
        hk_buf_reset(&self->event);
        rc = hk_body_event(EVENT_SOURCE, msg, &self->event, err);
        msg->content_type = hk_str_of(EVENT_TYPE);
        out->body = hk_buf_str(&self->event);
    }
    if (rc == HK_OK)
        rc = hk_fields_make(&self->broker.fields, &hk_sqs_rule, NULL, msg, f->attempt, err);
    return rc == HK_OK ? hk_sqs_entry_check(out, out_bytes, err) : rc;
}

/* Does this one go with those that are in it? One that was refused in company goes alone. */
static bool goes_along(const struct sqs_request *r, const struct hk_flight *f, size_t bytes)
{
    bool alone = r->batch.n && (f->redirects || r->flights[0]->redirects);
    return !alone && hk_batch_goes_along(&r->batch, f, bytes, HK_AWS_BATCH_MAX, HK_SQS_BATCH_BYTES);
}

/* False: the request is full. */
static bool add_next(struct hk_sqs_sink *self, struct sqs_request *r)
{
    struct hk_flight *f = self->broker.queued.first;
    struct hk_message msg;
    struct hk_sqs_entry entry;
    struct hk_err err = {.message = ""};
    size_t bytes = 0;
    if (!f)
        return false;
    enum hk_code rc = make_entry(self, f, &msg, &entry, &bytes, &err);
    if (rc != HK_OK) {
        hk_flight_refuse(f, rc, err.message);
        return true;
    }
    if (!goes_along(r, f, bytes))
        return false;
    hk_sqs_entry_write(&r->json, &entry, r->batch.n);
    hk_batch_take(&r->batch, f, bytes);
    return true;
}

static void start_request(struct hk_sqs_sink *self, struct sqs_request *r)
{
    uint64_t now_ms = hk_loop_now_ms(self->broker.loop);
    struct hk_err err = {.message = "out of memory"};
    hk_json_end(&r->json);
    hk_json_end(&r->json);
    r->call = (struct hk_aws_call){.target = "AmazonSQS.SendMessageBatch",
                                   .body = hk_buf_str(&r->body),
                                   .timeout_ms = hk_batch_timeout_ms(&r->batch, now_ms),
                                   .done = on_answer,
                                   .arg = r};
    if (hk_buf_status(&r->body) == HK_OK && hk_aws_client_call(self->client, &r->call, &err) == HK_OK)
        return;
    hk_batch_fail(&r->batch, HK_FAULT_LOCAL, false, NULL, NULL, err.message);
    free_request(r);
}

static void sqs_pump(struct hk_broker *b)
{
    struct hk_sqs_sink *self = sqs_of(b);
    struct hk_err err = {.message = ""};
    if (!b->queued.first)
        return;
    enum hk_code rc = hk_aws_client_ready(self->client, &err);
    if (rc != HK_OK) {
        bool denied = rc == HK_DENIED;
        hk_broker_fail_queued(b, denied ? HK_FAULT_BROKER_AUTH : HK_FAULT_LOCAL,
                              denied ? "NoCredentials" : NULL, NULL, err.message);
        return;
    }
    while (b->queued.first) {
        struct sqs_request *r = new_request(self);
        if (!r) {
            hk_broker_fail_queued(b, HK_FAULT_LOCAL, NULL, NULL, "out of memory");
            return;
        }
        while (add_next(self, r))
            continue;
        if (r->batch.n)
            start_request(self, r);
        else
            free_request(r);
    }
}

/* ---- the kind ---- */

static const char *is_blocked(const struct hk_broker *b)
{
    (void)b;
    return NULL;
}

static void show_target(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    char group[HK_SQS_GROUP_MAX];
    hk_json_key(json, "queue_url");
    hk_json_cstr(json, sqs_of(b)->queue_url);
    if (!sqs_of(b)->fifo)
        return;
    hk_sqs_group(msg->key.len ? msg->key : msg->message_id, group);
    hk_json_key(json, "MessageGroupId");
    hk_json_cstr(json, group);
}

static void sqs_fini(struct hk_broker *b)
{
    struct hk_sqs_sink *self = sqs_of(b);
    hk_aws_client_free(self->client);
    hk_mem_free(self->queue_url);
    hk_buf_fini(&self->event);
}

/* The requests under way end soon, and their messages with them. */
static void sqs_abort(struct hk_sink *sink)
{
    struct hk_sqs_sink *self = (struct hk_sqs_sink *)sink;
    hk_broker_fail_queued(&self->broker, HK_FAULT_LOCAL, NULL, NULL, "aborted: the relay ends");
    hk_aws_client_abort(self->client);
}

static const struct hk_broker_ops broker_ops = {.name = "sqs",
                                                .fields = &hk_sqs_rule,
                                                .pump = sqs_pump,
                                                .blocked = is_blocked,
                                                .show = show_target,
                                                .fini = sqs_fini};

static const struct hk_sink_ops sink_ops = {.name = "sqs",
                                            .send = hk_broker_send,
                                            .flush = hk_broker_flush,
                                            .abort = sqs_abort,
                                            .close = hk_broker_close};

enum hk_code hk_sqs_open(struct hk_loop *loop, const struct hk_sqs_options *o, struct hk_sink **out_sink,
                         struct hk_err *err)
{
    struct hk_sqs_sink *self = hk_mem_zalloc(1, sizeof *self);
    const struct hk_broker_options options = {.name = o->aws.name, .window = o->window};
    struct hk_aws_options aws = o->aws;
    if (!self)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_init(&self->event, EVENT_MAX);
    self->cloudevents = o->cloudevents;
    aws.service = "sqs";
    enum hk_code rc = hk_broker_init(&self->broker, &broker_ops, &sink_ops, loop, &options, err);
    self->broker.body_type = o->cloudevents ? EVENT_TYPE : NULL;
    if (rc == HK_OK && !(self->queue_url = hk_mem_strdup(o->queue_url)))
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_aws_client_open(loop, &aws, &self->client, err);
    if (rc != HK_OK) {
        hk_broker_destroy(&self->broker);
        return rc;
    }
    size_t len = strlen(self->queue_url);
    self->fifo = len > 5 && strcmp(self->queue_url + len - 5, ".fifo") == 0;
    *out_sink = &self->broker.sink;
    return HK_OK;
}
