/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a sink on a client of Kafka: what is taken, how it ends, and what is said of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/kafka/impl.h"

enum {
    RECORD_BYTES = 512,        /* what a record costs beside key and value */
    ABORT_MS = 250,            /* librdkafka says at once what it had not sent */
    ALONE_MS = 10 * 60 * 1000, /* then batches are tried again */
    ADDRESS_MAX = 80
};

/* ---- entries ---- */

void hk_kafka_entry_free(struct hk_kafka_entry *e)
{
    hk_mem_free(e->text);
    hk_mem_free(e);
}

/* Nearly always at the end. */
static void insert(struct hk_kafka_sink *s, struct hk_kafka_entry *e)
{
    struct hk_kafka_entry *after = s->last;
    while (after && after->deadline_ms > e->deadline_ms)
        after = after->prev;
    e->prev = after;
    e->next = after ? after->next : s->first;
    if (e->prev)
        e->prev->next = e;
    else
        s->first = e;
    if (e->next)
        e->next->prev = e;
    else
        s->last = e;
    e->live = true;
}

static void take_out(struct hk_kafka_sink *s, struct hk_kafka_entry *e)
{
    if (e->prev)
        e->prev->next = e->next;
    else
        s->first = e->next;
    if (e->next)
        e->next->prev = e->prev;
    else
        s->last = e->prev;
    e->next = e->prev = NULL;
    e->live = false;
}

static void wake_at(struct hk_kafka_sink *s, uint64_t at_ms, uint64_t now_ms)
{
    if (at_ms >= s->timer_ms)
        return;
    s->timer_ms = at_ms;
    hk_timer_start(s->timer, at_ms > now_ms ? at_ms - now_ms : 0);
}

/* ---- what is said of one that ended ---- */

struct told {
    struct hk_sink_result result;
    struct hk_kafka_client *client;
    const struct hk_kafka_entry *entry;
    struct hk_header headers[2]; /* as `show` shows them: for rules of policies */
    char error[HK_KAFKA_TEXT_MAX + 128], address[ADDRESS_MAX], words[HK_KAFKA_TEXT_MAX];
};

static void put_text(struct hk_json *json, const char *key, struct hk_str value)
{
    hk_json_key(json, key);
    hk_json_str(json, value);
}

static void put_number(struct hk_json *json, const char *key, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    put_text(json, key, hk_str_of(text));
}

static void show_answer(const struct told *t, const char *topic, struct hk_buf *out)
{
    const struct hk_facts *f = &t->result.facts;
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    put_text(&json, "topic", hk_str_of(topic));
    if (f->placed) {
        put_number(&json, "partition", f->partition);
        put_number(&json, "offset", f->sequence);
    }
    for (size_t i = 0; i < f->n_headers; i++)
        put_text(&json, i == 0 ? "code" : "error", f->headers[i].value);
    hk_json_end(&json);
}

static struct hk_str shown(const struct hk_buf *text)
{
    return hk_buf_status(text) == HK_OK ? hk_buf_str(text) : hk_str_of("{}");
}

static struct hk_sink_shown show(const struct hk_sink_result *result)
{
    const struct told *t = (const struct told *)result;
    struct hk_kafka_client *c = t->client;
    struct hk_err err;
    bool made = hk_kafka_record_build(&c->record, &t->entry->sink->shape, t->entry->msg, t->entry->attempt,
                                      &err) == HK_OK;
    hk_buf_reset(&c->shown_request);
    hk_buf_reset(&c->shown_response);
    if (made)
        hk_kafka_record_show(&c->record, &c->shown_request);
    else
        (void)hk_buf_adds(&c->shown_request, "{}");
    show_answer(t, made ? c->record.topic : t->entry->sink->topic, &c->shown_response);
    return (struct hk_sink_shown){shown(&c->shown_request), shown(&c->shown_response)};
}

/* The code, the words, and a line of both. */
static void say(struct told *t, rd_kafka_resp_err_t code, const char *words)
{
    struct hk_facts *f = &t->result.facts;
    (void)snprintf(t->words, sizeof t->words, "%s", words);
    f->broker_code = hk_str_of(code ? rd_kafka_err2name(code) : "");
    f->body = hk_str_of(t->words);
    t->headers[0] = (struct hk_header){hk_str_of("code"), f->broker_code};
    t->headers[1] = (struct hk_header){hk_str_of("error"), f->body};
    f->headers = t->headers;
    f->n_headers = code ? 2 : 0;
    if (!t->error[0])
        (void)snprintf(t->error, sizeof t->error, "%s%s%s", code ? rd_kafka_err2name(code) : "",
                       code ? ": " : "", words);
}

/* A message that only timed out: what the client met meanwhile tells why. False: it met nothing. */
static bool blame(struct told *t, struct hk_kafka_guard *guard, const char *late)
{
    const struct hk_kafka_said *said = &t->client->said;
    char blocked[HK_KAFKA_TEXT_MAX];
    if (guard && hk_kafka_guard_blocked(guard, blocked)) {
        t->result.facts.fault = HK_FAULT_BLOCKED;
        (void)snprintf(t->error, sizeof t->error, "%s", blocked);
        say(t, RD_KAFKA_RESP_ERR_NO_ERROR, blocked);
        return true;
    }
    if (said->fault == HK_FAULT_NONE)
        return false;
    t->result.facts.fault = said->fault;
    (void)snprintf(t->error, sizeof t->error, "%s; the client said: %s: %s", late,
                   rd_kafka_err2name(said->code), said->text);
    say(t, said->code, said->text);
    return true;
}

static void end(struct hk_kafka_entry *e, struct told *t)
{
    struct hk_kafka_sink *s = e->sink;
    hk_sink_done_fn *done = e->done;
    void *arg = e->arg;
    t->client = s->client;
    t->entry = e;
    t->result.show = show;
    t->result.facts.duration_ms = hk_loop_now_ms(s->client->loop) - e->start_ms;
    t->result.facts.error = hk_str_of(t->error);
    t->result.address = hk_str_of(t->address);
    take_out(s, e);
    done(arg, &t->result);
    if (!e->producer)
        hk_kafka_entry_free(e);
}

/* ---- librdkafka reports ---- */

static enum hk_code hand_over(struct hk_kafka_entry *e, struct hk_err *err);

/* All of a batch are refused when only the batch is over the topic's limit. By itself it shows which it was. */
static bool goes_alone(struct hk_kafka_entry *e, const rd_kafka_message_t *m, uint64_t now_ms)
{
    struct hk_err err;
    if (m->err != RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || e->alone || e->aborted || now_ms >= e->deadline_ms)
        return false;
    e->alone = true;
    return hand_over(e, &err) == HK_OK && e->producer;
}

static void judge(struct told *t, const struct hk_kafka_entry *e, const struct hk_kafka_producer *p,
                  const rd_kafka_message_t *m)
{
    struct hk_facts *f = &t->result.facts;
    struct hk_kafka_verdict v = hk_kafka_judge(m->err, rd_kafka_message_status(m));
    f->fault = e->aborted ? HK_FAULT_LOCAL : v.fault;
    f->possibly_delivered = v.possibly_delivered;
    if (e->aborted)
        (void)snprintf(t->error, sizeof t->error, "aborted");
    if (p->retired && hk_kafka_trouble(p->fatal, p->fatal_text) != HK_FAULT_NONE && !e->aborted) {
        f->fault = hk_kafka_trouble(p->fatal, p->fatal_text);
        say(t, p->fatal, p->fatal_text);
        return;
    }
    bool late = m->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
    if (!late || e->aborted || !blame(t, p->guard, "no confirmation in time"))
        say(t, m->err,
            rd_kafka_err2str(m->err)); /* its own words are not: rd_kafka_message_errstr gives the payload */
}

static void placed(struct told *t, struct hk_kafka_producer *p, const rd_kafka_message_t *m)
{
    struct hk_facts *f = &t->result.facts;
    f->placed = true;
    f->partition = m->partition;
    f->sequence = m->offset;
    hk_kafka_guard_address(p->guard, rd_kafka_message_broker_id(m), t->address, sizeof t->address);
}

void hk_kafka_entry_back(struct hk_kafka_entry *e, struct hk_kafka_producer *p, const rd_kafka_message_t *m)
{
    struct hk_kafka_sink *s = e->sink;
    if (s) {
        s->held--;
        s->held_bytes -= e->bytes;
    }
    if (!e->live) {
        hk_kafka_entry_free(e);
        return;
    }
    uint64_t now_ms = hk_loop_now_ms(s->client->loop);
    if (goes_alone(e, m, now_ms))
        return;
    struct told t;
    t.result = (struct hk_sink_result){.facts = {.fault = HK_FAULT_NONE}};
    t.error[0] = t.address[0] = '\0';
    t.client = s->client;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        placed(&t, p, m);
    else
        judge(&t, e, p, m);
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && e->alone && s->alone_until_ms < now_ms)
        s->alone_until_ms = now_ms + ALONE_MS;
    end(e, &t);
}

/* ---- deadlines, and what ended before it began ---- */

static void end_late(struct hk_kafka_entry *e)
{
    struct told t;
    t.result = (struct hk_sink_result){.facts = {.fault = e->aborted ? HK_FAULT_LOCAL : HK_FAULT_TIMEOUT,
                                                 .possibly_delivered = e->producer != NULL}};
    t.error[0] = t.address[0] = '\0';
    t.client = e->sink->client;
    char late[64];
    (void)snprintf(late, sizeof late, "no confirmation within %" PRIu64 " ms", e->timeout_ms);
    if (e->aborted || !blame(&t, e->producer ? e->producer->guard : NULL, late))
        say(&t, RD_KAFKA_RESP_ERR_NO_ERROR, e->aborted ? "aborted" : late);
    end(e, &t);
}

static void end_refused(struct hk_kafka_entry *e)
{
    struct told t;
    t.result = (struct hk_sink_result){.facts = {.fault = e->fault}};
    t.error[0] = t.address[0] = '\0';
    say(&t, e->code, e->text ? e->text : "out of memory");
    end(e, &t);
}

static void on_timer(void *arg)
{
    struct hk_kafka_sink *s = arg;
    struct hk_kafka_client *c = s->client;
    uint64_t now_ms = hk_loop_now_ms(c->loop);
    s->timer_ms = UINT64_MAX;
    hk_kafka_enter(c);
    while (!s->closed && s->first && s->first->deadline_ms <= now_ms) {
        if (s->first->fault != HK_FAULT_NONE)
            end_refused(s->first);
        else
            end_late(s->first);
    }
    hk_kafka_rooms(c);
    if (!s->closed && s->first)
        wake_at(s, s->first->deadline_ms, now_ms);
    if (!s->closed && s->was_busy && c->not_before_ms > now_ms)
        wake_at(s, c->not_before_ms, now_ms);
    hk_kafka_leave(c);
}

/* ---- room ---- */

static bool is_full(const struct hk_kafka_sink *s, uint64_t bytes)
{
    return s->held >= s->window || (s->held && s->held_bytes + bytes > s->window_bytes);
}

void hk_kafka_rooms(struct hk_kafka_client *c)
{
    if (c->depth > 1)
        return;
    uint64_t now_ms = hk_loop_now_ms(c->loop);
    for (struct hk_kafka_sink *s = c->sinks; s; s = s->next) { /* none goes while we are inside */
        if (!s->was_busy || s->closed || is_full(s, 0) || now_ms < c->not_before_ms)
            continue;
        s->was_busy = false;
        hk_sink_has_room(&s->sink);
    }
}

/* ---- sending ---- */

/* It ends in the loop's next round, without having left us. */
static void refuse(struct hk_kafka_entry *e, enum hk_fault fault, rd_kafka_resp_err_t code, const char *text)
{
    e->fault = fault;
    e->code = code;
    e->text = hk_mem_strdup(text);
    e->deadline_ms = 0;
}

static void refused_by_client(struct hk_kafka_entry *e, rd_kafka_resp_err_t code)
{
    struct hk_kafka_verdict v = hk_kafka_judge(code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
    if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        v.fault = HK_FAULT_TOO_LARGE; /* over what the client takes at all */
    if (code == RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE)
        v.fault = HK_FAULT_LOCAL;
    refuse(e, v.fault, code, rd_kafka_err2str(code));
}

/* To librdkafka. HK_OK: it has it (then it has a producer), or it is refused. HK_BUSY. */
static enum hk_code hand_over(struct hk_kafka_entry *e, struct hk_err *err)
{
    struct hk_kafka_sink *s = e->sink;
    struct hk_kafka_client *c = s->client;
    struct hk_kafka_producer *p = NULL;
    enum hk_code rc = hk_kafka_record_build(&c->record, &s->shape, e->msg, e->attempt, err);
    if (rc == HK_INVALID) {
        refuse(e, HK_FAULT_INVALID_PAYLOAD, RD_KAFKA_RESP_ERR_NO_ERROR, err->message);
        return HK_OK;
    }
    if (rc == HK_OK)
        rc = hk_kafka_client_producer(c, e->alone, &p, err);
    if (rc != HK_OK)
        return rc;
    rd_kafka_resp_err_t code = hk_kafka_producer_take(p, e, &c->record);
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && s->held)
        return hk_err_set(err, HK_BUSY, "the client's queue is full");
    if (code == RD_KAFKA_RESP_ERR__FATAL) /* its event is on the way */
        return hk_err_set(err, HK_BUSY, "the producer is made anew");
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        refused_by_client(e, code);
        return HK_OK;
    }
    s->held++;
    s->held_bytes += e->bytes;
    return HK_OK;
}

static enum hk_code no_room(struct hk_kafka_sink *s, uint64_t now_ms)
{
    s->was_busy = true;
    uint64_t at_ms = s->client->not_before_ms > now_ms ? s->client->not_before_ms : now_ms + 1000;
    wake_at(s, at_ms, now_ms);
    return HK_BUSY;
}

static enum hk_code kafka_send(struct hk_sink *sink, const struct hk_delivery *d, struct hk_err *err)
{
    struct hk_kafka_sink *s = (struct hk_kafka_sink *)sink;
    uint64_t now_ms = hk_loop_now_ms(s->client->loop);
    uint64_t bytes = d->msg->payload.len + d->msg->key.len + d->msg->headers.len + RECORD_BYTES;
    if (is_full(s, bytes)) {
        (void)hk_err_set(err, HK_BUSY, "the window is full");
        return no_room(s, now_ms);
    }
    struct hk_kafka_entry *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *e = (struct hk_kafka_entry){.sink = s,
                                 .msg = d->msg,
                                 .attempt = d->attempt,
                                 .done = d->done,
                                 .arg = d->arg,
                                 .start_ms = now_ms,
                                 .timeout_ms = d->timeout_ms,
                                 .deadline_ms = now_ms + d->timeout_ms,
                                 .bytes = bytes,
                                 .alone = now_ms < s->alone_until_ms};
    enum hk_code rc = hand_over(e, err);
    if (rc != HK_OK) {
        hk_kafka_entry_free(e);
        return rc == HK_BUSY ? no_room(s, now_ms) : rc;
    }
    insert(s, e);
    wake_at(s, e->deadline_ms, now_ms);
    return HK_OK;
}

static bool all_aborted(const struct hk_kafka_client *c)
{
    for (const struct hk_kafka_sink *s = c->sinks; s; s = s->next)
        for (const struct hk_kafka_entry *e = s->first; e; e = e->next)
            if (!e->aborted)
                return false;
    return true;
}

/* A purge hits all of the client's records, those of other destinations, too. */
static void kafka_abort(struct hk_sink *sink)
{
    struct hk_kafka_sink *s = (struct hk_kafka_sink *)sink;
    uint64_t now_ms = hk_loop_now_ms(s->client->loop);
    for (struct hk_kafka_entry *e = s->first; e; e = e->next) {
        e->aborted = true;
        if (e->deadline_ms > now_ms + ABORT_MS)
            e->deadline_ms = now_ms + ABORT_MS;
    }
    if (s->first)
        wake_at(s, s->first->deadline_ms, now_ms);
    if (!all_aborted(s->client))
        return;
    for (struct hk_kafka_producer *p = s->client->producers; p; p = p->next)
        hk_kafka_producer_purge(p);
}

static void kafka_close(struct hk_sink *sink)
{
    struct hk_kafka_sink *s = (struct hk_kafka_sink *)sink;
    struct hk_kafka_client *c = s->client;
    hk_kafka_enter(c);
    s->closed = true;
    hk_kafka_leave(c);
}

static const struct hk_sink_ops kafka_ops = {
    .name = "kafka", .send = kafka_send, .abort = kafka_abort, .close = kafka_close};

/* ---- opening and closing ---- */

static void forget(struct hk_kafka_sink *s)
{
    for (struct hk_kafka_producer *p = s->client->producers; p; p = p->next)
        for (struct hk_kafka_entry *e = p->entries; e; e = e->below)
            if (e->sink == s)
                e->sink = NULL;
}

void hk_kafka_sink_free(struct hk_kafka_sink *s)
{
    if (s->client)
        forget(s);
    hk_timer_free(s->timer);
    hk_mem_free(s->name);
    hk_mem_free(s->topic);
    hk_mem_free(s->ce_source);
    hk_mem_free(s);
}

static enum hk_code make_sink(struct hk_loop *loop, const struct hk_kafka_options *o, struct hk_kafka_sink *s,
                              struct hk_err *err)
{
    const char *source = o->cloudevents_source ? o->cloudevents_source : "/hikyaku";
    s->sink.ops = &kafka_ops;
    s->name = hk_mem_strdup(o->name);
    s->topic = hk_mem_strdup(o->topic);
    s->ce_source = o->cloudevents ? hk_mem_strdup(source) : NULL;
    s->window = o->window ? o->window : 10000;
    s->window_bytes = o->window_bytes ? o->window_bytes : UINT64_C(64) << 20;
    s->timer_ms = UINT64_MAX;
    s->shape = (struct hk_kafka_shape){.topic = s->topic, .ce_source = s->ce_source};
    if (!s->name || !s->topic || (o->cloudevents && !s->ce_source) ||
        hk_timer_new(loop, on_timer, s, &s->timer) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return HK_OK;
}

static enum hk_code kafka_open(struct hk_loop *loop, const struct hk_kafka_options *o, struct hk_sink **out,
                               struct hk_err *err)
{
    struct hk_kafka_sink *s = hk_mem_zalloc(1, sizeof *s);
    enum hk_code rc = s ? make_sink(loop, o, s, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_kafka_client_get(loop, o, &s->client, err);
    if (rc != HK_OK) {
        if (s)
            hk_kafka_sink_free(s);
        return rc;
    }
    s->next = s->client->sinks;
    s->client->sinks = s;
    *out = &s->sink;
    return HK_OK;
}

const struct hk_kafka_calls hk_kafka_calls = {.open = kafka_open, .probe = hk_kafka_probe};
