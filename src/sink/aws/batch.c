/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/aws/batch.h"
#include "sink/aws/entry.h"
#include "sink/http/body.h"

enum {
    REQUEST_MAX = 12 * 1024 * 1024, /* escaping makes six bytes of one */
    MADE_MAX = 4 * 1024 * 1024,
    TOGETHER_MS = 10 /* one request has one deadline: those of its messages are no further apart */
};

#define EVENT_TYPE "application/cloudevents+json"
#define SOURCE     "/hikyaku"

struct aws_request {
    struct hk_aws_call call;
    struct hk_aws_sink *sink;
    struct hk_buf body;
    struct hk_json json;
    size_t n, bytes;
    struct hk_flight *flights[]; /* room for max_entries */
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

static void fail_all(struct aws_request *r, enum hk_fault fault, bool maybe, const char *code,
                     const char *words, const char *error)
{
    for (size_t i = 0; i < r->n; i++)
        hk_flight_fail(r->flights[i], fault, maybe, code, words, error);
}

static void doubt_credentials(struct aws_request *r, enum hk_fault fault)
{
    if (fault == HK_FAULT_BROKER_AUTH)
        hk_aws_client_doubt(r->sink->client);
}

static void send_alone(struct aws_request *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct hk_flight *f = r->flights[i];
        f->deadline_ms = f->number;
        hk_flight_requeue(f);
    }
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
    if (fault == HK_FAULT_BROKER_REFUSED && r->n > 1 && !gone)
        send_alone(r);
    else
        fail_all(r, fault, maybe, error.code, error.words, NULL);
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
    struct hk_aws_result *results = hk_mem_alloc(r->n * sizeof *results);
    if (results && r->sink->service->read(facts->body, results, r->n)) {
        for (size_t i = 0; i < r->n; i++)
            judge_entry(r, r->flights[i], &results[i]);
    } else {
        (void)snprintf(text, sizeof text, "the endpoint does not answer as %s does", r->sink->service->title);
        fail_all(r, results ? HK_FAULT_BROKER_UNKNOWN : HK_FAULT_LOCAL, true, NULL, NULL,
                 results ? text : "out of memory");
    }
    hk_mem_free(results);
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct aws_request *r = arg;
    struct hk_broker *b = &r->sink->broker;
    const struct hk_facts *facts = &result->facts;
    char text[HK_LINK_TEXT_MAX];
    for (size_t i = 0; i < r->n; i++)
        (void)hk_str_copy(r->flights[i]->address, sizeof r->flights[i]->address, result->address);
    if (!facts->status) {
        (void)snprintf(text, sizeof text, "%.*s", (int)facts->error.len, facts->error.ptr);
        fail_all(r, facts->fault, facts->possibly_delivered, NULL, NULL, text);
    } else if (facts->status == 200) {
        judge_entries(r, facts);
    } else {
        judge_refusal(r, facts);
    }
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

static void refuse(struct hk_flight *f, enum hk_code rc, const char *why)
{
    enum hk_fault fault = rc == HK_INVALID  ? HK_FAULT_INVALID_PAYLOAD
                          : rc == HK_TOOBIG ? HK_FAULT_TOO_LARGE
                                            : HK_FAULT_LOCAL;
    hk_flight_fail(f, fault, false, NULL, NULL, why);
}

/* Does this one go with those that are in it? */
static bool goes_along(const struct aws_request *r, const struct hk_flight *f, size_t bytes)
{
    const struct hk_aws_service *service = r->sink->service;
    if (!r->n)
        return true;
    uint64_t a = r->flights[0]->number, b = f->deadline_ms; /* number: its deadline, before it was written */
    return r->n < service->max_entries && !f->redirects && !r->flights[0]->redirects &&
           r->bytes + bytes <= service->max_bytes && (a > b ? a - b : b - a) <= TOGETHER_MS;
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
        refuse(f, rc, err.message);
        return true;
    }
    if (!goes_along(r, f, bytes))
        return false;
    self->service->add(self, &entry, r->n, &r->json, &r->body);
    f->number = f->deadline_ms;
    r->flights[r->n++] = f;
    r->bytes += bytes;
    hk_flight_written(f);
    return true;
}

static void start_request(struct hk_aws_sink *self, struct aws_request *r)
{
    uint64_t now_ms = hk_loop_now_ms(self->broker.loop), until_ms = UINT64_MAX;
    struct hk_err err = {.message = "out of memory"};
    for (size_t i = 0; i < r->n; i++)
        until_ms = r->flights[i]->number < until_ms ? r->flights[i]->number : until_ms;
    while (r->json.depth)
        hk_json_end(&r->json);
    r->call = (struct hk_aws_call){.target = self->service->target,
                                   .body = hk_buf_str(&r->body),
                                   .timeout_ms = until_ms > now_ms ? until_ms - now_ms : 1,
                                   .done = on_answer,
                                   .arg = r};
    if (hk_buf_status(&r->body) == HK_OK && hk_aws_client_call(self->client, &r->call, &err) == HK_OK)
        return;
    fail_all(r, HK_FAULT_LOCAL, false, NULL, NULL, err.message);
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
        if (r->n)
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

static const char *is_blocked(const struct hk_broker *b)
{
    (void)b;
    return NULL;
}

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
static void aws_abort(struct hk_sink *sink)
{
    struct hk_aws_sink *self = (struct hk_aws_sink *)sink;
    hk_broker_fail_queued(&self->broker, HK_FAULT_LOCAL, NULL, NULL, "aborted: the relay ends");
    hk_aws_client_abort(self->client);
}

/* ---- opening ---- */

static void set_ops(struct hk_aws_sink *self, const struct hk_aws_service *service)
{
    self->service = service;
    self->broker_ops = (struct hk_broker_ops){.name = service->kind,
                                              .fields = service->fields,
                                              .pump = aws_pump,
                                              .blocked = is_blocked,
                                              .show = show_target,
                                              .fini = aws_fini};
    self->sink_ops = (struct hk_sink_ops){.name = service->kind,
                                          .send = hk_broker_send,
                                          .flush = hk_broker_flush,
                                          .abort = aws_abort,
                                          .close = hk_broker_close};
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
    enum hk_code rc = hk_broker_init(&self->broker, &self->broker_ops, &self->sink_ops, loop, &options, err);
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
