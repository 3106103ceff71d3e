/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/aws/batch.h"
#include "sink/aws/entry.h"
#include "sink/broker/load.h"
#include "sink/http/body.h"

enum {
    REQUEST_MAX = 12 * 1024 * 1024, /* escaping makes six bytes of one */
    MADE_MAX = 4 * 1024 * 1024
};

#define EVENT_TYPE "application/cloudevents+json"
#define SOURCE     "/hikyaku"

struct aws_request {
    struct hk_aws_call call;
    struct hk_aws_sink *sink;
    struct hk_buf body;
    struct hk_json json;
    struct hk_load load;
    struct hk_flight *flights[]; /* of `load`: room for max_entries */
};

static struct hk_aws_sink *aws_of(struct hk_broker *b)
{
    return (struct hk_aws_sink *)b;
}

static void free_request(struct aws_request *r)
{
    hk_buf_fini(&r->body);
    hk_mem_free(r);
}

/* ---- what the service said ---- */

static void doubt_credentials(struct aws_request *r, enum hk_fault fault)
{
    if (fault == HK_FAULT_BROKER_AUTH)
        hk_aws_client_doubt(r->sink->client);
}

static bool is_gone(const struct hk_aws_service *service, const char *code)
{
    for (const char *const *gone = service->gone; *gone; gone++)
        if (hk_str_glob(*gone, hk_str_of(code)))
            return true;
    return false;
}

/* Refused as a whole. A queue that is not there refuses each of them as well. */
static void judge_refusal(struct aws_request *r, const struct hk_facts *facts)
{
    struct hk_aws_error error;
    bool maybe = false;
    hk_aws_error_read(facts->body, &error);
    enum hk_fault fault = hk_aws_fault(facts->status, error.code, &maybe);
    bool gone = is_gone(r->sink->service, error.code);
    if (!error.code[0])
        (void)snprintf(error.code, sizeof error.code, "HTTP %d", facts->status);
    doubt_credentials(r, fault);
    if (fault == HK_FAULT_BROKER_REFUSED && r->load.n > 1 && !gone)
        hk_load_split(&r->load, 1);
    else
        hk_load_fail(&r->load, fault, maybe, error.code, error.words, NULL);
}

static void judge_entry(struct aws_request *r, struct hk_flight *f, const struct hk_aws_result *result)
{
    bool maybe = false;
    char text[HK_LINK_TEXT_MAX];
    if (result->outcome == HK_AWS_TAKEN) {
        hk_flight_confirm(f, -1, 0);
        f->placed = false; /* AWS's numbers are longer than ours */
        (void)hk_str_copy(f->words, sizeof f->words, hk_str_of(result->place));
    } else if (result->outcome == HK_AWS_FAILED) {
        enum hk_fault fault = hk_aws_entry_fault(result, &maybe);
        doubt_credentials(r, fault);
        hk_flight_fail(f, fault, maybe, result->error.code, result->error.words, NULL);
    } else {
        (void)snprintf(text, sizeof text, "the answer of %s says nothing of this message",
                       r->sink->service->title);
        hk_flight_fail(f, HK_FAULT_BROKER_UNKNOWN, true, NULL, NULL, text);
    }
}

static void judge_entries(struct aws_request *r, const struct hk_facts *facts)
{
    char text[HK_LINK_TEXT_MAX];
    struct hk_aws_result *results = hk_mem_alloc(r->load.n * sizeof *results);
    if (results && r->sink->service->read(facts->body, results, r->load.n)) {
        for (size_t i = 0; i < r->load.n; i++)
            judge_entry(r, r->flights[i], &results[i]);
    } else {
        (void)snprintf(text, sizeof text, "the endpoint does not answer as %s does", r->sink->service->title);
        hk_load_fail(&r->load, results ? HK_FAULT_BROKER_UNKNOWN : HK_FAULT_LOCAL, true, NULL, NULL,
                     results ? text : "out of memory");
    }
    hk_mem_free(results);
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct aws_request *r = arg;
    struct hk_broker *b = &r->sink->broker;
    const struct hk_facts *facts = &result->facts;
    hk_load_note_address(&r->load, result->address);
    if (!facts->status)
        hk_load_unanswered(&r->load, facts);
    else if (facts->status == 200)
        judge_entries(r, facts);
    else
        judge_refusal(r, facts);
    free_request(r);
    hk_broker_pump(b);
}

/* ---- making requests ---- */

static struct aws_request *new_request(struct hk_aws_sink *self)
{
    const struct hk_aws_service *service = self->service;
    struct aws_request *r = hk_mem_zalloc(1, sizeof *r + service->max_entries * sizeof(struct hk_flight *));
    if (!r)
        return NULL;
    r->sink = self;
    hk_load_init(&r->load, r->flights, service->max_entries, service->max_bytes);
    hk_buf_init(&r->body, REQUEST_MAX);
    hk_json_init(&r->json, &r->body, false);
    service->begin(self, &r->json, &r->body);
    return r;
}

static enum hk_code make_body(struct hk_aws_sink *self, struct hk_message *msg, struct hk_str *out,
                              struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    const char *type = NULL;
    hk_buf_reset(&self->made);
    switch (self->body) {
    case HK_AWS_BODY_PAYLOAD:
        break;
    case HK_AWS_BODY_EVENT:
        type = EVENT_TYPE;
        rc = hk_body_event(self->source, msg, &self->made, err);
        break;
    case HK_AWS_BODY_ENVELOPE:
        rc = hk_aws_envelope(msg, &self->broker.fields, &self->made, err);
        break;
    }
    *out = self->body == HK_AWS_BODY_PAYLOAD ? msg->payload : hk_buf_str(&self->made);
    msg->content_type = type ? hk_str_of(type) : msg->content_type;
    return rc;
}

/* The fields first: an envelope holds them. */
static enum hk_code make_entry(struct hk_aws_sink *self, const struct hk_flight *f, struct hk_message *msg,
                               struct hk_aws_entry *out, size_t *out_bytes, struct hk_err *err)
{
    struct hk_fields *fields = &self->broker.fields;
    const struct hk_fields_rule *rule = self->service->fields;
    *msg = *f->msg;
    *out = (struct hk_aws_entry){.msg = f->msg, .fields = fields};
    enum hk_code rc = hk_fields_make(fields, rule, NULL, msg, f->attempt, err);
    if (rc == HK_OK)
        rc = make_body(self, msg, &out->body, err);
    if (rc == HK_OK && self->body == HK_AWS_BODY_EVENT)
        rc = hk_fields_make(fields, rule, NULL, msg, f->attempt, err); /* with its content type */
    return rc == HK_OK ? self->service->check(self, out, out_bytes, err) : rc;
}

/* False: the request is full. */
static bool add_next(struct hk_aws_sink *self, struct aws_request *r)
{
    struct hk_flight *f = self->broker.queued.first;
    struct hk_message msg;
    struct hk_aws_entry entry;
    struct hk_err err = {.message = ""};
    size_t bytes = 0;
    if (!f)
        return false;
    enum hk_code rc = make_entry(self, f, &msg, &entry, &bytes, &err);
    if (rc != HK_OK) {
        hk_flight_refuse(f, rc, err.message);
        return true;
    }
    if (!hk_load_takes(&r->load, f, bytes))
        return false;
    self->service->add(self, &entry, r->load.n, &r->json, &r->body);
    hk_load_add(&r->load, f, bytes);
    return true;
}

static void start_request(struct hk_aws_sink *self, struct aws_request *r)
{
    uint64_t now_ms = hk_loop_now_ms(self->broker.loop);
    struct hk_err err = {.message = "out of memory"};
    while (r->json.depth)
        hk_json_end(&r->json);
    r->call = (struct hk_aws_call){.target = self->service->target,
                                   .body = hk_buf_str(&r->body),
                                   .timeout_ms = hk_load_timeout_ms(&r->load, now_ms),
                                   .done = on_answer,
                                   .arg = r};
    if (hk_buf_status(&r->body) == HK_OK && hk_aws_client_call(self->client, &r->call, &err) == HK_OK)
        return;
    hk_load_fail(&r->load, HK_FAULT_LOCAL, false, NULL, NULL, err.message);
    free_request(r);
}

static void aws_pump(struct hk_broker *b)
{
    struct hk_aws_sink *self = aws_of(b);
    struct hk_err err = {.message = ""};
    enum hk_fault fault = HK_FAULT_NONE;
    if (!b->queued.first)
        return;
    enum hk_code rc = hk_aws_client_ready(self->client, &fault, &err);
    if (rc == HK_BUSY)
        return;
    if (rc != HK_OK) {
        bool denied = fault == HK_FAULT_BROKER_AUTH;
        hk_broker_fail_queued(b, fault, denied ? "NoCredentials" : NULL, NULL, err.message);
        return;
    }
    while (b->queued.first) {
        struct aws_request *r = new_request(self);
        if (!r) {
            hk_broker_fail_queued(b, HK_FAULT_LOCAL, NULL, NULL, "out of memory");
            return;
        }
        while (add_next(self, r))
            continue;
        if (r->load.n)
            start_request(self, r);
        else
            free_request(r);
    }
}

static void on_wake(void *arg)
{
    hk_broker_pump(arg);
}

/* ---- the kind ---- */

static void show_target(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    const struct hk_aws_sink *self = aws_of(b);
    hk_json_key(json, self->service->to);
    hk_json_cstr(json, self->to);
    if (self->service->show)
        self->service->show(self, msg, json);
}

static void aws_fini(struct hk_broker *b)
{
    struct hk_aws_sink *self = aws_of(b);
    hk_aws_client_free(self->client);
    hk_mem_free(self->to);
    hk_mem_free(self->source);
    hk_buf_fini(&self->made);
}

/* The requests under way end soon, and their messages with them. */
static void aws_abort(struct hk_broker *b)
{
    hk_aws_client_abort(aws_of(b)->client);
}

/* ---- opening ---- */

static void set_ops(struct hk_aws_sink *self, const struct hk_aws_service *service)
{
    self->service = service;
    self->broker_ops = (struct hk_broker_ops){.name = service->kind,
                                              .fields = service->fields,
                                              .pump = aws_pump,
                                              .show = show_target,
                                              .abort = aws_abort,
                                              .fini = aws_fini};
}

static enum hk_code open_client(struct hk_aws_sink *self, const struct hk_aws_sink_options *o,
                                struct hk_err *err)
{
    struct hk_aws_options aws = o->aws;
    aws.service = self->service->signs;
    aws.content_type = self->service->content_type;
    aws.wake = on_wake;
    aws.wake_arg = self;
    return hk_aws_client_open(self->broker.loop, &aws, &self->client, err);
}

enum hk_code hk_aws_sink_open(struct hk_loop *loop, const struct hk_aws_service *service,
                              const struct hk_aws_sink_options *o, struct hk_sink **out_sink,
                              struct hk_err *err)
{
    struct hk_aws_sink *self = hk_mem_zalloc(1, sizeof *self);
    const struct hk_broker_options options = {.name = o->aws.name, .window = o->window};
    if (!self)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    set_ops(self, service);
    self->body = o->body;
    hk_buf_init(&self->made, MADE_MAX);
    enum hk_code rc = hk_broker_init(&self->broker, &self->broker_ops, loop, &options, err);
    self->to = hk_mem_strdup(o->to);
    self->source = hk_mem_strdup(o->source ? o->source : SOURCE);
    if (rc == HK_OK && (!self->to || !self->source))
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = open_client(self, o, err);
    if (rc != HK_OK) {
        hk_broker_destroy(&self->broker);
        return rc;
    }
    self->broker.body_type = o->body == HK_AWS_BODY_EVENT ? EVENT_TYPE : NULL;
    self->fifo = hk_str_glob("*.fifo", hk_str_of(self->to));
    *out_sink = &self->broker.sink;
    return HK_OK;
}
