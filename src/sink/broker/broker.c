/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "payload/names.h"
#include "sink/broker/broker.h"

enum {
    HIGH_BYTES = 256 * 1024, /* written and not yet out: what is queued beyond can still be taken back */
    SHOWN_MAX = 256 * 1024
};

#define SOURCE "/hikyaku"

/* ---- lists ---- */

static void take_out(struct hk_flight *f)
{
    struct hk_flight_list *from = f->in;
    if (!from)
        return;
    *(f->prev ? &f->prev->next : &from->first) = f->next;
    *(f->next ? &f->next->prev : &from->last) = f->prev;
    from->n--;
    f->in = NULL;
}

static void move_to(struct hk_flight *f, struct hk_flight_list *to)
{
    take_out(f);
    f->next = NULL;
    f->prev = to->last;
    *(to->last ? &to->last->next : &to->first) = f;
    to->last = f;
    to->n++;
    f->in = to;
}

static void free_list(struct hk_flight_list *list)
{
    for (struct hk_flight *f = list->first, *next; f; f = next) {
        next = f->next;
        hk_mem_free(f);
    }
    *list = (struct hk_flight_list){.n = 0};
}

/* ---- ending ---- */

static void end_flight(struct hk_flight *f)
{
    struct hk_broker *b = f->sink;
    f->duration_ms = hk_loop_now_ms(b->loop) - f->start_ms;
    if (b->link)
        memcpy(f->address, b->link->address, sizeof f->address);
    if (!b->ended.n && !b->running)
        hk_timer_start(b->soon, 0);
    move_to(f, &b->ended);
}

void hk_flight_written(struct hk_flight *f)
{
    f->deadline_ms = UINT64_MAX;
    move_to(f, &f->sink->written);
}

void hk_flight_requeue(struct hk_flight *f)
{
    f->redirects++;
    f->answer = NULL;
    move_to(f, &f->sink->queued);
}

void hk_broker_later(struct hk_broker *b)
{
    b->wants_later = true;
    if (!b->running)
        hk_timer_start(b->soon, 0);
}

void hk_flight_judged(struct hk_flight *f, int status)
{
    f->fault = HK_FAULT_NONE;
    f->status = status;
    f->possibly_delivered = f->placed = false;
    f->code[0] = f->words[0] = f->error[0] = '\0';
    end_flight(f);
}

void hk_flight_confirm(struct hk_flight *f, int32_t partition, int64_t sequence)
{
    f->fault = HK_FAULT_NONE;
    f->possibly_delivered = false;
    f->placed = true;
    f->partition = partition;
    f->sequence = sequence;
    end_flight(f);
}

/* Words of the other side: one line, nothing that moves a terminal's cursor. */
static void copy_plain(char *out, size_t room, const char *text)
{
    size_t n = 0;
    for (; text && text[n] && n + 1 < room; n++)
        out[n] = text[n] >= ' ' && text[n] != 0x7f ? text[n] : ' ';
    out[n] = '\0';
}

void hk_flight_fail(struct hk_flight *f, enum hk_fault fault, bool possibly_delivered, const char *code,
                    const char *words, const char *error)
{
    f->fault = fault;
    f->possibly_delivered = possibly_delivered;
    f->placed = false;
    copy_plain(f->code, sizeof f->code, code);
    copy_plain(f->words, sizeof f->words, words);
    if (error)
        copy_plain(f->error, sizeof f->error, error);
    else
        (void)snprintf(f->error, sizeof f->error, "%s%s%s", f->code, f->code[0] && f->words[0] ? " " : "",
                       f->words);
    if (!f->error[0])
        copy_plain(f->error, sizeof f->error, hk_fault_name(fault));
    end_flight(f);
}

/* Has all of it been handed to the system? */
static bool is_out(const struct hk_flight *f)
{
    return hk_link_sent(f->sink->link) >= f->written_at;
}

void hk_broker_fail_written(struct hk_broker *b, enum hk_fault fault, const char *code, const char *words,
                            const char *error)
{
    while (b->written.first) {
        struct hk_flight *f = b->written.first;
        b->ops->forget(b, f);
        hk_flight_fail(f, fault, is_out(f), code, words, error);
    }
}

void hk_broker_fail_queued(struct hk_broker *b, enum hk_fault fault, const char *code, const char *words,
                           const char *error)
{
    while (b->queued.first)
        hk_flight_fail(b->queued.first, fault, false, code, words, error);
}

/* ---- the report ---- */

struct report {
    struct hk_sink_result result;
    struct hk_flight *f;
};

static void show_request(struct hk_broker *b, const struct hk_flight *f)
{
    struct hk_json json;
    struct hk_message msg = *f->msg;
    if (b->body_type)
        msg.content_type = hk_str_of(b->body_type);
    hk_buf_reset(&b->shown_request);
    hk_json_init(&json, &b->shown_request, false);
    hk_json_object(&json);
    b->ops->show(b, f->msg, &json);
    if (hk_fields_make(&b->fields, b->ops->fields, b->ce_source, &msg, f->attempt, NULL) == HK_OK)
        hk_fields_show(&b->fields, &json);
    hk_json_end(&json);
}

static void show_response(struct hk_broker *b, const struct hk_flight *f)
{
    struct hk_json json;
    hk_buf_reset(&b->shown_response);
    hk_json_init(&json, &b->shown_response, false);
    hk_json_object(&json);
    if (f->code[0]) {
        hk_json_key(&json, "code");
        hk_json_cstr(&json, f->code);
    }
    if (f->words[0]) {
        hk_json_key(&json, "text");
        hk_json_cstr(&json, f->words);
    }
    if (f->placed && f->partition >= 0) {
        hk_json_key(&json, "partition");
        hk_json_i64(&json, f->partition);
    }
    if (f->placed) {
        hk_json_key(&json, "sequence");
        hk_json_i64(&json, f->sequence);
    }
    hk_json_end(&json);
}

static struct hk_str whole_or_empty(const struct hk_buf *buf)
{
    return hk_buf_status(buf) == HK_OK ? hk_buf_str(buf) : hk_str_of("{}");
}

static struct hk_sink_shown show(const struct hk_sink_result *result)
{
    const struct report *report = (const struct report *)result;
    struct hk_broker *b = report->f->sink;
    show_request(b, report->f);
    show_response(b, report->f);
    return (struct hk_sink_shown){whole_or_empty(&b->shown_request), whole_or_empty(&b->shown_response)};
}

static void tell(struct hk_flight *f)
{
    struct report report = {.result = {.facts = {.fault = f->fault,
                                                 .status = f->status,
                                                 .possibly_delivered = f->possibly_delivered,
                                                 .duration_ms = f->duration_ms,
                                                 .body = hk_str_of(f->words),
                                                 .error = hk_str_of(f->error),
                                                 .broker_code = hk_str_of(f->code),
                                                 .placed = f->placed,
                                                 .partition = f->partition,
                                                 .sequence = f->sequence},
                                       .show = show,
                                       .address = hk_str_of(f->address)},
                            .f = f};
    if (f->sink->ops->report)
        f->sink->ops->report(f, &report.result);
    f->done(f->arg, &report.result);
}

static const char *blocked(const struct hk_broker *b)
{
    return b->ops->blocked ? b->ops->blocked(b) : NULL;
}

static bool is_full(const struct hk_broker *b)
{
    return b->queued.n + b->written.n >= b->window || blocked(b);
}

/* All that had ended when this began; `done` may send again, and after the last one close. */
bool hk_broker_report(struct hk_broker *b)
{
    b->running = true;
    for (size_t n = b->ended.n; n > 0 && b->ended.first; n--) {
        struct hk_flight *f = b->ended.first;
        take_out(f); /* its memory is not used again before `done` is over */
        tell(f);
        move_to(f, &b->spare);
    }
    if (b->was_busy && !b->closed && !is_full(b)) {
        b->was_busy = false;
        hk_sink_has_room(&b->sink);
    }
    if (b->wants_later && !b->closed) {
        b->wants_later = false;
        b->ops->later(b);
    }
    b->running = false;
    if (b->closed) {
        hk_broker_destroy(b);
        return false;
    }
    if (b->ended.n)
        hk_timer_start(b->soon, 0);
    return true;
}

static void on_soon(void *arg)
{
    (void)hk_broker_report(arg);
}

void hk_broker_has_room(struct hk_broker *b)
{
    if (b->was_busy && !b->running)
        hk_timer_start(b->soon, 0);
    hk_broker_pump(b);
}

/* ---- deadlines ---- */

static void look_at(struct hk_broker *b, uint64_t at_ms, uint64_t now_ms)
{
    if (at_ms >= b->clock_ms)
        return;
    b->clock_ms = at_ms;
    hk_timer_start(b->clock, at_ms > now_ms ? at_ms - now_ms : 0);
}

void hk_broker_look_at(struct hk_broker *b, uint64_t at_ms)
{
    look_at(b, at_ms, hk_loop_now_ms(b->loop));
}

static void expire(struct hk_broker *b, struct hk_flight *f)
{
    static const struct hk_link_failure none = {.fault = HK_FAULT_NONE};
    const struct hk_link_failure *why = b->link ? &b->link->failure : &none;
    const char *words = f->in == &b->queued ? blocked(b) : NULL;
    char text[HK_LINK_TEXT_MAX + 96];
    if (words) {
        hk_flight_fail(f, HK_FAULT_BROKER_THROTTLED, false, "blocked", words, NULL);
    } else if (f->in == &b->queued) {
        (void)snprintf(text, sizeof text, "timeout: %s%s%s",
                       b->link ? "the connection to the broker was not ready in time"
                               : "it was not sent in time",
                       why->fault ? "; before that: " : "", why->fault ? why->text : "");
        hk_flight_fail(f, HK_FAULT_TIMEOUT, false, NULL, NULL, text);
    } else {
        b->ops->forget(b, f);
        hk_flight_fail(f, HK_FAULT_TIMEOUT, true, NULL, NULL,
                       "timeout: the broker has not confirmed in time");
    }
}

static uint64_t expire_list(struct hk_broker *b, const struct hk_flight_list *list, uint64_t now_ms,
                            uint64_t next_ms)
{
    for (struct hk_flight *f = list->first, *next; f; f = next) {
        next = f->next;
        if (f->deadline_ms <= now_ms)
            expire(b, f);
        else if (f->deadline_ms < next_ms)
            next_ms = f->deadline_ms;
    }
    return next_ms;
}

static void on_clock(void *arg)
{
    struct hk_broker *b = arg;
    uint64_t now_ms = hk_loop_now_ms(b->loop);
    b->clock_ms = UINT64_MAX;
    uint64_t next_ms = expire_list(b, &b->written, now_ms, UINT64_MAX);
    next_ms = expire_list(b, &b->queued, now_ms, next_ms);
    if (next_ms != UINT64_MAX)
        look_at(b, next_ms, now_ms);
    hk_broker_pump(b); /* what waited behind one of them */
}

/* ---- writing ---- */

void hk_flight_refuse(struct hk_flight *f, enum hk_code rc, const char *why)
{
    enum hk_fault fault = rc == HK_INVALID  ? HK_FAULT_INVALID_PAYLOAD
                          : rc == HK_TOOBIG ? HK_FAULT_TOO_LARGE
                                            : HK_FAULT_LOCAL;
    hk_flight_fail(f, fault, false, NULL, NULL, why);
}

void hk_broker_pump(struct hk_broker *b)
{
    struct hk_link *link = b->link;
    if (!link) {
        b->ops->pump(b);
        return;
    }
    while (b->queued.first && link->phase == HK_LINK_READY && hk_stream_pending(link->stream) < HIGH_BYTES) {
        struct hk_flight *f = b->queued.first;
        struct hk_err err = {.message = ""};
        if (blocked(b) || (b->ops->may_write && !b->ops->may_write(b, f)))
            break;
        enum hk_code rc = b->ops->write(b, f, &err);
        if (f->in != &b->queued) /* writing has failed the link, and the link has ended it */
            continue;
        if (rc != HK_OK) {
            hk_flight_refuse(f, rc, err.message);
            continue;
        }
        f->written_at = hk_stream_sent(link->stream) + hk_stream_pending(link->stream);
        move_to(f, &b->written);
    }
    if (b->queued.first && link->phase != HK_LINK_READY)
        hk_link_want(link);
}

/* ---- what the link says ---- */

struct hk_broker *hk_broker_of(struct hk_link_user *user)
{
    return (struct hk_broker *)((char *)user - offsetof(struct hk_broker, user));
}

static void on_ready(struct hk_link_user *user)
{
    struct hk_broker *b = hk_broker_of(user);
    if (b->ops->begin)
        b->ops->begin(b);
    hk_broker_has_room(b);
}

static void on_lost(struct hk_link_user *user, const struct hk_link_failure *why, bool was_ready)
{
    struct hk_broker *b = hk_broker_of(user);
    const char *words = why->code[0] ? why->text : NULL;
    hk_broker_fail_written(b, why->fault, why->code, words, why->text);
    if (!was_ready)
        hk_broker_fail_queued(b, why->fault, why->code, words, why->text);
    if (b->ops->end)
        b->ops->end(b);
}

static void on_drained(struct hk_link_user *user)
{
    hk_broker_pump(hk_broker_of(user));
}

/* ---- the contract ---- */

static enum hk_code broker_send(struct hk_sink *sink, const struct hk_delivery *delivery, struct hk_err *err)
{
    struct hk_broker *b = (struct hk_broker *)sink;
    if (is_full(b)) {
        b->was_busy = true;
        return hk_err_set(err, HK_BUSY, "the broker takes no more at the moment");
    }
    struct hk_flight *f = b->spare.first;
    if (f)
        take_out(f);
    else
        f = hk_mem_alloc(sizeof *f);
    if (!f)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    uint64_t now_ms = hk_loop_now_ms(b->loop);
    *f = (struct hk_flight){.sink = b,
                            .msg = delivery->msg,
                            .attempt = delivery->attempt,
                            .done = delivery->done,
                            .arg = delivery->arg,
                            .partition = -1,
                            .start_ms = now_ms,
                            .deadline_ms = now_ms + delivery->timeout_ms};
    move_to(f, &b->queued);
    if (b->ops->queued)
        b->ops->queued(b, f, delivery);
    look_at(b, f->deadline_ms, now_ms);
    return HK_OK;
}

static void broker_flush(struct hk_sink *sink)
{
    struct hk_broker *b = (struct hk_broker *)sink;
    hk_broker_pump(b);
    if (b->link)
        hk_link_flush(b->link);
}

static void broker_abort(struct hk_sink *sink)
{
    struct hk_broker *b = (struct hk_broker *)sink;
    if (b->ops->abort)
        b->ops->abort(b);
    else
        hk_broker_fail_written(b, HK_FAULT_LOCAL, NULL, NULL, "aborted: the relay ends");
    hk_broker_fail_queued(b, HK_FAULT_LOCAL, NULL, NULL, "aborted: the relay ends");
}

static void broker_close(struct hk_sink *sink)
{
    struct hk_broker *b = (struct hk_broker *)sink;
    b->closed = true;
    if (!b->running)
        hk_broker_destroy(b);
}

/* ---- opening ---- */

enum hk_code hk_broker_init(struct hk_broker *b, const struct hk_broker_ops *ops, struct hk_loop *loop,
                            const struct hk_broker_options *o, struct hk_err *err)
{
    b->sink_ops = (struct hk_sink_ops){.name = ops->name,
                                       .send = broker_send,
                                       .flush = broker_flush,
                                       .abort = broker_abort,
                                       .close = broker_close};
    b->sink.ops = &b->sink_ops;
    b->ops = ops;
    b->loop = loop;
    b->window = o->window ? o->window : HK_BROKER_WINDOW;
    b->clock_ms = UINT64_MAX;
    b->user = (struct hk_link_user){.ready = on_ready, .lost = on_lost, .drained = on_drained};
    hk_fields_init(&b->fields);
    hk_buf_init(&b->target, ops->target_max);
    hk_buf_init(&b->scratch, ops->scratch_max);
    hk_buf_init(&b->shown_request, SHOWN_MAX);
    hk_buf_init(&b->shown_response, SHOWN_MAX);
    b->name = hk_mem_strdup(o->name);
    b->ce_source =
        o->cloudevents ? hk_mem_strdup(o->cloudevents_source ? o->cloudevents_source : SOURCE) : NULL;
    if (!b->name || (o->cloudevents && !b->ce_source) || hk_timer_new(loop, on_soon, b, &b->soon) != HK_OK ||
        hk_timer_new(loop, on_clock, b, &b->clock) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return HK_OK;
}

enum hk_code hk_broker_open(const struct hk_broker_ops *ops, struct hk_loop *loop,
                            const struct hk_broker_options *o, const void *kind_options, struct hk_sink **out,
                            struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_err why = {.message = "out of memory"};
    struct hk_broker *b = hk_mem_zalloc(1, ops->bytes);
    if (!b)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = hk_broker_init(b, ops, loop, o, &why);
    if (rc == HK_OK)
        rc = ops->open(b, kind_options, &why);
    if (rc == HK_OK) {
        *out = &b->sink;
        return HK_OK;
    }
    hk_broker_destroy(b);
    return hk_err_set(err, rc, "destination %s: %s", hk_show(hk_str_of(o->name), shown), why.message);
}

enum hk_code hk_broker_pattern(const char *what, const char *pattern, char **out, struct hk_err *err)
{
    const char *wrong = hk_name_wrong(hk_str_of(pattern));
    if (wrong)
        return hk_err_set(err, HK_INVALID, "%s: %s", what, wrong);
    *out = hk_mem_strdup(pattern ? pattern : "");
    return *out ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

struct hk_str hk_broker_target(struct hk_broker *b, const char *pattern, const struct hk_message *msg)
{
    struct hk_name_values values = {.destination = hk_str_of(b->name)};
    if (msg) {
        values.event_type = msg->event_type;
        values.message_key = msg->key;
    }
    hk_buf_reset(&b->target);
    hk_name_expand(hk_str_of(pattern), &values, &b->target);
    return hk_buf_str(&b->target);
}

enum hk_code hk_broker_join(struct hk_broker *b, const struct hk_link_options *options, struct hk_err *err)
{
    return hk_link_join(b->loop, options, &b->user, &b->link, err);
}

enum hk_code hk_broker_change(struct hk_broker *b, const struct hk_link_options *options, struct hk_err *err)
{
    return hk_link_change(b->link, options, &b->user, &b->link, err);
}

void hk_broker_destroy(struct hk_broker *b)
{
    b->ops->fini(b);
    if (b->link)
        hk_link_leave(b->link, &b->user);
    hk_timer_free(b->soon);
    hk_timer_free(b->clock);
    free_list(&b->queued);
    free_list(&b->written);
    free_list(&b->ended);
    free_list(&b->spare);
    hk_fields_fini(&b->fields);
    hk_buf_fini(&b->target);
    hk_buf_fini(&b->scratch);
    hk_buf_fini(&b->shown_request);
    hk_buf_fini(&b->shown_response);
    hk_mem_free(b->ce_source);
    hk_mem_free(b->name);
    hk_mem_free(b);
}
