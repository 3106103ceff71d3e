/* SPDX-License-Identifier: Apache-2.0 */
/* The Pub/Sub sink. `send` collects; `flush` makes requests of up to a thousand messages and 1 MiB. Pub/Sub takes all messages of a request or
 * none: the answer has an id for each, or one error. An error that may be about some of them only (INVALID_ARGUMENT) says nothing of the
 * single message, so each half of them goes out once more in a request of its own, and so on, until the bad one is alone (load.h). Pub/Sub
 * took none of them: it is the same attempt.
 *
 * Two messages with the same ordering key are never in flight together: ordering keys are for destinations with `order: key`, where the
 * engine holds the second one back until the first is sent. So a request that fails takes no order with it. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/broker/load.h"
#include "sink/pubsub/impl.h"

enum {
    REQUEST_MAX = 24 * 1024 * 1024, /* base64, and the escapes of JSON in attributes */
    DATA_MAX = 16 * 1024 * 1024
};

struct hk_pubsub_sink {
    struct hk_broker broker; /* first */
    struct hk_pubsub_client *client;
    char *project, *topic;
    bool ordering, aborted;
    struct hk_buf base64;
    struct hk_pubsub_id ids[HK_PUBSUB_BATCH_MAX]; /* of the answer that is being read */
};

struct pubsub_request {
    struct hk_message msg; /* whose payload the body is */
    struct hk_pubsub_sink *sink;
    struct hk_buf body;
    struct hk_json json;
    struct hk_load load;
    struct hk_flight *flights[]; /* of `load` */
};

static struct hk_pubsub_sink *pubsub_of(struct hk_broker *b)
{
    return (struct hk_pubsub_sink *)b;
}

/* ---- making requests ---- */

static struct pubsub_request *new_request(struct hk_pubsub_sink *self, size_t room)
{
    struct pubsub_request *r = hk_mem_zalloc(1, sizeof *r + room * sizeof r->flights[0]);
    if (!r)
        return NULL;
    r->sink = self;
    hk_load_init(&r->load, r->flights, room, HK_PUBSUB_BATCH_BYTES);
    hk_buf_init(&r->body, REQUEST_MAX);
    hk_json_init(&r->json, &r->body, false);
    hk_json_object(&r->json);
    hk_json_key(&r->json, "messages");
    hk_json_array(&r->json);
    return r;
}

static void free_request(struct pubsub_request *r)
{
    hk_buf_fini(&r->body);
    hk_mem_free(r);
}

static enum hk_code make_message(struct hk_pubsub_sink *self, const struct hk_flight *f,
                                 struct hk_pubsub_message *out, size_t *out_bytes, struct hk_err *err)
{
    struct hk_broker *b = &self->broker;
    *out = (struct hk_pubsub_message){.fields = &b->fields,
                                      .data = f->msg->payload,
                                      .ordering_key = self->ordering ? f->msg->key : hk_str_of("")};
    enum hk_code rc = hk_fields_make(&b->fields, b->ops->fields, b->ce_source, f->msg, f->attempt, err);
    return rc == HK_OK ? hk_pubsub_message_check(out, out_bytes, err) : rc;
}

static void on_answer(void *arg, const struct hk_sink_result *result);

static void start_request(struct pubsub_request *r)
{
    struct hk_pubsub_sink *self = r->sink;
    struct hk_err err = {.message = "out of memory"};
    uint64_t timeout_ms = hk_load_timeout_ms(&r->load, hk_loop_now_ms(self->broker.loop));
    hk_json_end(&r->json);
    hk_json_end(&r->json);
    r->msg.payload = hk_buf_str(&r->body);
    if (hk_buf_status(&r->body) == HK_OK &&
        hk_pubsub_client_call(self->client, &r->msg, timeout_ms, on_answer, r, &err) == HK_OK)
        return;
    hk_load_fail(&r->load, HK_FAULT_LOCAL, false, NULL, NULL, err.message);
    free_request(r);
}

/* False: the request is full. */
static bool add_next(struct hk_pubsub_sink *self, struct pubsub_request *r)
{
    struct hk_flight *f = self->broker.queued.first;
    struct hk_pubsub_message message;
    struct hk_err err = {.message = ""};
    size_t bytes = 0;
    if (!f)
        return false;
    enum hk_code rc = make_message(self, f, &message, &bytes, &err);
    if (rc != HK_OK) {
        hk_flight_refuse(f, rc, err.message);
        return true;
    }
    if (!hk_load_takes(&r->load, f, bytes))
        return false;
    hk_pubsub_message_write(&r->json, &message, &self->base64);
    hk_load_add(&r->load, f, bytes);
    return true;
}

static void pubsub_pump(struct hk_broker *b)
{
    struct hk_pubsub_sink *self = pubsub_of(b);
    while (b->queued.first) {
        size_t n = b->queued.n < HK_PUBSUB_BATCH_MAX ? b->queued.n : HK_PUBSUB_BATCH_MAX;
        struct pubsub_request *r = new_request(self, n);
        self->aborted = false;
        if (!r) {
            hk_broker_fail_queued(b, HK_FAULT_LOCAL, NULL, NULL, "out of memory");
            return;
        }
        while (add_next(self, r))
            continue;
        if (r->load.n)
            start_request(r);
        else
            free_request(r);
    }
}

/* ---- what Pub/Sub said ---- */

static void judge_refusal(struct pubsub_request *r, const struct hk_facts *facts)
{
    struct hk_pubsub_error error;
    bool maybe = false, some = false;
    hk_pubsub_error_read(facts->body, facts->status, &error);
    enum hk_fault fault = hk_pubsub_fault(&error, facts->status, &maybe, &some);
    if (some && r->load.n > 1 && !r->sink->aborted)
        hk_load_split(&r->load, (r->load.n + 1) / 2);
    else
        hk_load_fail(&r->load, fault, maybe, error.code, error.words, NULL);
}

static void judge_ids(struct pubsub_request *r, const struct hk_facts *facts)
{
    struct hk_pubsub_id *ids = r->sink->ids;
    if (!hk_pubsub_ids_read(facts->body, ids, r->load.n)) {
        hk_load_fail(&r->load, HK_FAULT_BROKER_UNKNOWN, true, NULL, NULL,
                     "the endpoint does not answer as Pub/Sub does: it has no id for each message");
        return;
    }
    for (size_t i = 0; i < r->load.n; i++) {
        struct hk_flight *f = r->flights[i];
        hk_flight_confirm(f, -1, 0);
        f->placed = false; /* Pub/Sub's ids are no places */
        (void)snprintf(f->words, sizeof f->words, "messageId %.47s", ids[i].text);
    }
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct pubsub_request *r = arg;
    struct hk_broker *b = &r->sink->broker;
    const struct hk_facts *facts = &result->facts;
    hk_load_note_address(&r->load, result->address);
    if (!facts->status)
        hk_load_unanswered(&r->load, facts);
    else if (facts->status == 200)
        judge_ids(r, facts);
    else
        judge_refusal(r, facts);
    free_request(r);
    hk_broker_pump(b);
}

/* ---- the kind ---- */

static void show_target(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    const struct hk_pubsub_sink *self = pubsub_of(b);
    char topic[600];
    (void)snprintf(topic, sizeof topic, "projects/%s/topics/%s", self->project, self->topic);
    hk_json_key(json, "topic");
    hk_json_cstr(json, topic);
    if (!self->ordering || !msg->key.len)
        return;
    hk_json_key(json, "orderingKey");
    hk_json_str(json, msg->key);
}

static void pubsub_fini(struct hk_broker *b)
{
    struct hk_pubsub_sink *self = pubsub_of(b);
    hk_pubsub_client_free(self->client);
    hk_mem_free(self->project);
    hk_mem_free(self->topic);
    hk_buf_fini(&self->base64);
}

/* The requests under way end soon, and their messages with them. */
static void pubsub_abort(struct hk_broker *b)
{
    struct hk_pubsub_sink *self = pubsub_of(b);
    self->aborted = true;
    hk_pubsub_client_abort(self->client);
}

static const struct hk_broker_ops broker_ops = {.name = "pubsub",
                                                .fields = &hk_pubsub_rule,
                                                .pump = pubsub_pump,
                                                .show = show_target,
                                                .abort = pubsub_abort,
                                                .fini = pubsub_fini};

static const struct hk_broker_ops ordered_ops = {.name = "pubsub",
                                                 .fields = &hk_pubsub_ordered_rule,
                                                 .pump = pubsub_pump,
                                                 .show = show_target,
                                                 .abort = pubsub_abort,
                                                 .fini = pubsub_fini};

enum hk_code hk_pubsub_open(struct hk_loop *loop, const struct hk_pubsub_options *o,
                            struct hk_sink **out_sink, struct hk_err *err)
{
    struct hk_pubsub_sink *self = hk_mem_zalloc(1, sizeof *self);
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    if (!self)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_init(&self->base64, DATA_MAX);
    self->ordering = o->ordering;
    enum hk_code rc =
        hk_broker_init(&self->broker, o->ordering ? &ordered_ops : &broker_ops, loop, &options, err);
    self->project = hk_mem_strdup(o->project);
    self->topic = hk_mem_strdup(o->topic);
    if (rc == HK_OK && (!self->project || !self->topic))
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_pubsub_client_open(loop, o, "publish", &self->client, err);
    if (rc == HK_OK)
        *out_sink = &self->broker.sink;
    else
        hk_broker_destroy(&self->broker);
    return rc;
}
