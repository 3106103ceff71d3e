/* SPDX-License-Identifier: Apache-2.0 */
/* The batch sink. `send` collects; a request leaves when it is full, when no other is in flight, or when its first message has waited
 * long enough. Each request travels by an HTTP sink that belongs to this one, so connections, TLS, proxies, credentials, signatures
 * and deadlines are the same as for single messages.
 *
 * A batch must not let one bad message kill the others:
 * - The receiver may answer for each item (results.h).
 * - A status that refuses the whole request leads to two requests with half of the messages each, down to single ones. The receiver took
 *   nothing, so it is the same attempt. HTTP 413 also makes later batches smaller, until requests succeed again.
 * - A message that has failed before travels alone, so a receiver that falls over one message (HTTP 500) does so with that one only.
 *
 * In doubt a message counts as possibly delivered: a list of results that breaks off, or leaves a message out, may come from a receiver
 * that has acted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/batch/batch.h"
#include "sink/batch/item.h"
#include "sink/batch/results.h"
#include "sink/broker/load.h"
#include "sink/http/fields.h"
#include "sink/http/impl.h"

enum {
    CONNECTIONS = 64,
    ANSWER_BYTES = 1024, /* of each result */
    LEAST_BYTES = 4096,  /* a receiver that refuses less as too large means something else */
    GROW_BY = 16,        /* … th part, with each batch that was taken */
    ID_MAX = 64
};

#define BODY_MAX ((size_t)2 << 30)

struct hk_batch_sink {
    struct hk_broker broker; /* first */
    struct hk_sink *http;
    size_t messages, bytes; /* of a request, as configured … */
    size_t bytes_now;       /* … and as the receiver takes them */
    uint64_t wait_ms;
    enum hk_item_form form;
    const char *type;
    char *source; /* of events */
    size_t open;  /* requests in flight */
    uint64_t seed, n_requests;
    int64_t wall_ms; /* the newest delivery's … */
    uint64_t at_ms;  /* … and when that was */
    struct hk_buf item;
    struct hk_result *results; /* of the answer that is being read: as many as `messages` */
};

struct batch_request {
    struct hk_batch_sink *sink;
    struct hk_message msg; /* what the HTTP sink sends */
    char id[ID_MAX];
    struct hk_buf body;
    struct hk_load load;
    struct hk_flight *flights[]; /* of `load` */
};

static struct hk_batch_sink *batch_of(struct hk_broker *b)
{
    return (struct hk_batch_sink *)b;
}

static void free_request(struct batch_request *r)
{
    hk_buf_fini(&r->body);
    hk_mem_free(r);
}

/* ---- what came ---- */

static void judge(struct hk_flight *f, int status, struct hk_str part, struct hk_str hint)
{
    f->part = part;
    f->hint = hint;
    hk_flight_judged(f, status);
}

static void judge_all(struct batch_request *r, const struct hk_facts *facts)
{
    for (size_t i = 0; i < r->load.n; i++)
        judge(r->flights[i], facts->status, facts->body, (struct hk_str){"", 0});
}

static void doubt_all(struct batch_request *r, const char *why)
{
    hk_load_fail(&r->load, HK_FAULT_PROTOCOL, true, NULL, NULL, why);
}

/* Is it about what was sent, and not about the destination's state, our credentials or our pace? Then some of the messages may be fine. */
static bool refuses_content(int status)
{
    static const int others[] = {401, 407, 408, 409, 410, 423, 425, 429};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (status == others[i])
            return false;
    return status / 100 == 4;
}

static void judge_refusal(struct batch_request *r, const struct hk_facts *facts)
{
    struct hk_batch_sink *self = r->sink;
    if (facts->status == 413 && r->load.n > 1 && r->load.bytes / 2 < self->bytes_now)
        self->bytes_now = r->load.bytes / 2 > LEAST_BYTES ? r->load.bytes / 2 : LEAST_BYTES;
    if (refuses_content(facts->status) && r->load.n > 1)
        hk_load_split(&r->load, (r->load.n + 1) / 2);
    else
        judge_all(r, facts);
}

static void judge_item(struct hk_flight *f, const struct hk_result *result)
{
    if (result->status)
        judge(f, result->status, result->text, result->hint);
    else
        hk_flight_fail(f, HK_FAULT_PROTOCOL, true, NULL, NULL,
                       result->unclear ? "the result of this message has no status that can be read"
                                       : "the list of results says nothing of this message");
}

static void judge_list(struct batch_request *r)
{
    for (size_t i = 0; i < r->load.n; i++)
        judge_item(r->flights[i], &r->sink->results[i]);
}

static void grow(struct hk_batch_sink *self)
{
    size_t room = self->bytes - self->bytes_now, step = self->bytes_now / GROW_BY;
    self->bytes_now += step < room ? step : room;
}

static void judge_success(struct batch_request *r, const struct hk_sink_result *result)
{
    struct hk_result *results = r->sink->results;
    grow(r->sink);
    if (!result->whole) {
        doubt_all(r, "the answer broke off, or is too long, so its list of results cannot be read");
        return;
    }
    for (size_t i = 0; i < r->load.n; i++)
        results[i].id = r->flights[i]->msg->message_id;
    switch (hk_results_read(result->facts.body, results, r->load.n)) {
    case HK_RESULTS_LIST:
        judge_list(r);
        break;
    case HK_RESULTS_NONE:
        if (result->facts.status == 207)
            doubt_all(r, "HTTP 207 came without a list of results");
        else
            judge_all(r, &result->facts);
        break;
    case HK_RESULTS_BROKEN:
        doubt_all(r, "the list of results cannot be read");
        break;
    case HK_RESULTS_NOMEM:
        hk_load_fail(&r->load, HK_FAULT_LOCAL, true, NULL, NULL, "out of memory for the list of results");
        break;
    }
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct batch_request *r = arg;
    struct hk_batch_sink *self = r->sink;
    self->open--;
    for (size_t i = 0; i < r->load.n; i++)
        r->flights[i]->answer = result;
    hk_load_note_address(&r->load, result->address);
    if (!result->facts.status)
        hk_load_unanswered(&r->load, &result->facts);
    else if (result->facts.status / 100 == 2)
        judge_success(r, result);
    else
        judge_refusal(r, &result->facts);
    free_request(r);
    hk_broker_pump(&self->broker);
    (void)hk_broker_report(&self->broker);
}

/* ---- telling it ---- */

static struct hk_str kept(struct hk_str text)
{
    return (struct hk_str){text.ptr, text.len < HK_HTTP_KEEP_MAX ? text.len : HK_HTTP_KEEP_MAX};
}

/* What follows a flight's result, so that `show` finds the answer to the whole request. */
static struct hk_sink_shown show(const struct hk_sink_result *result)
{
    const struct hk_sink_result *answer = result->answer;
    return answer ? answer->show(answer)
                  : (struct hk_sink_shown){.request_headers = hk_str_of("{}"),
                                           .response_headers = hk_str_of("{}")};
}

/* A result that asks for a wait of its own stands in place of the answer's header fields. */
static void report(const struct hk_flight *f, struct hk_sink_result *result)
{
    static const char retry_after[] = "Retry-After";
    const struct hk_sink_result *answer = f->answer;
    result->show = show;
    result->answer = answer;
    result->facts.broker_code = (struct hk_str){"", 0};
    result->facts.body = kept(f->part);
    if (!answer)
        return;
    result->facts.headers = answer->facts.headers;
    result->facts.n_headers = answer->facts.n_headers;
    if (!f->hint.len)
        return;
    result->hint = (struct hk_header){.name = hk_str_of(retry_after), .value = f->hint};
    result->facts.headers = &result->hint;
    result->facts.n_headers = 1;
}

/* ---- making requests ---- */

static struct batch_request *new_request(struct hk_batch_sink *self)
{
    struct batch_request *r = hk_mem_alloc(sizeof *r + self->messages * sizeof r->flights[0]);
    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    r->sink = self;
    hk_load_init(&r->load, r->flights, self->messages, self->bytes_now);
    hk_buf_init(&r->body, BODY_MAX);
    return r;
}

static void add_item(struct batch_request *r)
{
    bool lines = r->sink->form == HK_ITEM_LINE;
    if (!lines)
        (void)hk_buf_addc(&r->body, r->load.n ? ',' : '[');
    (void)hk_buf_add(&r->body, r->sink->item.data, r->sink->item.len);
    if (lines)
        (void)hk_buf_addc(&r->body, '\n');
}

/* False: the request is full, or there is no more. */
static bool add_next(struct hk_batch_sink *self, struct batch_request *r)
{
    struct hk_flight *f = self->broker.queued.first;
    struct hk_err err = {.message = ""};
    if (!f || !hk_load_takes(&r->load, f, 0))
        return false;
    enum hk_code rc = hk_item_write(self->form, self->source, f->msg, f->attempt, &self->item, &err);
    if (rc != HK_OK) {
        hk_flight_refuse(f, rc, err.message);
        return true;
    }
    if (!hk_load_takes(&r->load, f, self->item.len))
        return false;
    add_item(r);
    hk_load_add(&r->load, f, self->item.len);
    return true;
}

/* The request's id is new each time: a receiver that keeps ids must never take one batch for another that has some of its messages. */
static void start_request(struct hk_batch_sink *self, struct batch_request *r)
{
    uint64_t now_ms = hk_loop_now_ms(self->broker.loop);
    struct hk_err err = {.message = "out of memory"};
    if (self->form != HK_ITEM_LINE)
        (void)hk_buf_addc(&r->body, ']');
    (void)snprintf(r->id, sizeof r->id, "batch_%016" PRIx64 "_%" PRIu64, self->seed, ++self->n_requests);
    r->msg = (struct hk_message){.message_id = hk_str_of(r->id),
                                 .content_type = hk_str_of(self->type),
                                 .payload = hk_buf_str(&r->body)};
    const struct hk_delivery delivery = {.msg = &r->msg,
                                         .attempt = (uint32_t)r->load.n, /* as the field Hikyaku-Batch */
                                         .wall_ms = self->wall_ms + (int64_t)(now_ms - self->at_ms),
                                         .timeout_ms = hk_load_timeout_ms(&r->load, now_ms),
                                         .done = on_answer,
                                         .arg = r};
    if (hk_buf_status(&r->body) == HK_OK && self->http->ops->send(self->http, &delivery, &err) == HK_OK) {
        self->open++;
        return;
    }
    hk_load_fail(&r->load, HK_FAULT_LOCAL, false, NULL, NULL, err.message);
    free_request(r);
}

/* Are there enough messages for a whole request, or must the first one not wait longer? */
static bool is_due(struct hk_batch_sink *self)
{
    const struct hk_flight *first = self->broker.queued.first;
    size_t n = 0, bytes = 0;
    if (!self->open || first->company || hk_loop_now_ms(self->broker.loop) >= first->start_ms + self->wait_ms)
        return true;
    for (const struct hk_flight *f = first; f && n < self->messages && bytes < self->bytes_now; f = f->next) {
        n++;
        bytes += f->msg->payload.len;
    }
    return n >= self->messages || bytes >= self->bytes_now;
}

static void batch_pump(struct hk_broker *b)
{
    struct hk_batch_sink *self = batch_of(b);
    while (b->queued.first && self->open < CONNECTIONS) {
        if (!is_due(self)) {
            hk_broker_look_at(b, b->queued.first->start_ms + self->wait_ms);
            return;
        }
        struct batch_request *r = new_request(self);
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

/* ---- the kind ---- */

/* One that failed before travels alone: whatever is wrong with it harms no other. */
static void batch_queued(struct hk_broker *b, struct hk_flight *flight, const struct hk_delivery *delivery)
{
    struct hk_batch_sink *self = batch_of(b);
    self->wall_ms = delivery->wall_ms;
    self->at_ms = hk_loop_now_ms(b->loop);
    if (delivery->attempt > 1)
        flight->company = 1;
}

static void batch_fini(struct hk_broker *b)
{
    struct hk_batch_sink *self = batch_of(b);
    hk_http_discard(self->http);
    hk_mem_free(self->source);
    hk_mem_free(self->results);
    hk_buf_fini(&self->item);
}

/* The requests under way end soon, and their messages with them. */
static void batch_abort(struct hk_broker *b)
{
    batch_of(b)->http->ops->abort(batch_of(b)->http);
}

static const struct hk_broker_ops broker_ops = {.name = "batch",
                                                .queued = batch_queued,
                                                .pump = batch_pump,
                                                .report = report,
                                                .abort = batch_abort,
                                                .fini = batch_fini};

/* The fields that say something of a single message say nothing of a batch; the number of messages goes out in
 * place of the number of the attempt. */
static enum hk_code open_http(struct hk_batch_sink *self, const struct hk_batch_options *o,
                              struct hk_err *err)
{
    static const struct hk_http_header own[] = {{.name = "Hikyaku-Batch", .value = HK_STANDS_FOR_ATTEMPT},
                                                {.name = "Idempotency-Key", .value = ""}};
    struct hk_http_options http = o->http;
    size_t n = 0;
    struct hk_http_header *headers = hk_mem_zalloc(o->http.n_headers + 2, sizeof *headers);
    if (!headers)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    bool has_key = false;
    for (size_t i = 0; i < o->http.n_headers; i++) {
        headers[n++] = o->http.headers[i];
        has_key = has_key || hk_str_eqi(hk_str_of(o->http.headers[i].name), hk_str_of(own[1].name));
    }
    headers[n++] = own[0];
    if (!has_key)
        headers[n++] = own[1];
    http.headers = headers;
    http.n_headers = n;
    http.cloudevents = http.structured = false;
    http.keep_bytes = HK_HTTP_READ_MAX + self->messages * ANSWER_BYTES;
    http.max_connections = CONNECTIONS;
    http.more_connections = 0;
    enum hk_code rc = hk_http_open(self->broker.loop, &http, &self->http, err);
    hk_mem_free(headers);
    return rc;
}

static enum hk_code set_up(struct hk_batch_sink *self, const struct hk_batch_options *o, struct hk_err *err)
{
    const char *source = o->http.cloudevents_source ? o->http.cloudevents_source : "/hikyaku";
    bool lines = o->format == HK_BATCH_NDJSON;
    if (o->messages < 1 || o->messages > HK_BATCH_MESSAGES_MAX || o->bytes < 1)
        return hk_err_set(err, HK_INVALID, "a batch holds 1 to %d messages", HK_BATCH_MESSAGES_MAX);
    self->messages = o->messages;
    self->bytes = self->bytes_now = o->bytes;
    self->wait_ms = o->wait_ms;
    self->form = o->http.cloudevents ? HK_ITEM_EVENT : lines ? HK_ITEM_LINE : HK_ITEM_JSON;
    self->type = o->http.cloudevents ? "application/cloudevents-batch+json"
                 : lines             ? "application/x-ndjson"
                                     : "application/json";
    if (getrandom(&self->seed, sizeof self->seed, GRND_NONBLOCK) != (ssize_t)sizeof self->seed)
        return hk_err_set(err, HK_IO, "the system gives no random number for the ids of batches");
    self->source = hk_mem_strdup(source);
    self->results = hk_mem_zalloc(self->messages, sizeof *self->results);
    return self->source && self->results ? open_http(self, o, err)
                                         : hk_err_set(err, HK_NOMEM, "out of memory");
}

enum hk_code hk_batch_open(struct hk_loop *loop, const struct hk_batch_options *o, struct hk_sink **out_sink,
                           struct hk_err *err)
{
    struct hk_batch_sink *self = hk_mem_zalloc(1, sizeof *self);
    const struct hk_broker_options options = {.name = o->http.name ? o->http.name : "http",
                                              .window = o->window};
    if (!self)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_init(&self->item, BODY_MAX);
    enum hk_code rc = hk_broker_init(&self->broker, &broker_ops, loop, &options, err);
    if (rc == HK_OK)
        rc = set_up(self, o, err);
    if (rc != HK_OK) {
        hk_broker_destroy(&self->broker);
        return rc;
    }
    *out_sink = &self->broker.sink;
    return HK_OK;
}
