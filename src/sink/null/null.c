/* SPDX-License-Identifier: Apache-2.0 */
/* Confirms everything. One timer and a queue in order of time. */
#include "base/mem.h"
#include "base/str.h"
#include "sink/null/null.h"

struct delivery {
    struct delivery *next;
    uint64_t start_ms, due_ms;
    enum hk_fault fault;
    hk_sink_done_fn *done;
    void *arg;
};

struct null_sink {
    struct hk_sink sink;
    struct hk_loop *loop;
    struct hk_timer *timer;
    uint64_t latency_ms;
    struct delivery *first, *last; /* by due_ms */
    struct delivery *spare;
    bool running, closed; /* inside on_timer; close was called there */
};

static void free_list(struct delivery *d)
{
    while (d) {
        struct delivery *next = d->next;
        hk_mem_free(d);
        d = next;
    }
}

static void free_sink(struct null_sink *self)
{
    hk_timer_free(self->timer);
    free_list(self->spare);
    hk_mem_free(self);
}

/* Nearly always at the end: only a delivery whose own time-out is shorter than the latency overtakes. */
static void insert(struct null_sink *self, struct delivery *d)
{
    struct delivery **at = &self->first;
    if (self->last && self->last->due_ms <= d->due_ms)
        at = &self->last->next;
    while (*at && (*at)->due_ms <= d->due_ms)
        at = &(*at)->next;
    d->next = *at;
    *at = d;
    if (!d->next)
        self->last = d;
}

static struct hk_sink_shown show(const struct hk_sink_result *result)
{
    (void)result;
    return (struct hk_sink_shown){hk_str_of("{}"), hk_str_of("{}")};
}

static void finish(struct null_sink *self, struct delivery *d, uint64_t now_ms)
{
    struct hk_sink_result result = {
        .facts = {.fault = d->fault,
                  .status = d->fault == HK_FAULT_NONE ? 200 : 0,
                  .duration_ms = now_ms - d->start_ms,
                  .error = hk_str_of(d->fault == HK_FAULT_NONE ? "" : hk_fault_name(d->fault))},
        .show = show,
        .address = hk_str_of(""),
    };
    hk_sink_done_fn *done = d->done;
    void *arg = d->arg;
    d->next = self->spare;
    self->spare = d;
    done(arg, &result);
}

/* What is due, cut off the queue: what `done` sends now waits for the next round. */
static struct delivery *take_due(struct null_sink *self, uint64_t now_ms)
{
    struct delivery *batch = self->first;
    struct delivery **end = &batch;
    while (*end && (*end)->due_ms <= now_ms)
        end = &(*end)->next;
    self->first = *end;
    if (!self->first)
        self->last = NULL;
    *end = NULL;
    return batch;
}

static void arm(struct null_sink *self, uint64_t now_ms)
{
    if (self->first)
        hk_timer_start(self->timer, self->first->due_ms > now_ms ? self->first->due_ms - now_ms : 0);
}

static void on_timer(void *arg)
{
    struct null_sink *self = arg;
    uint64_t now_ms = hk_loop_now_ms(self->loop);
    struct delivery *batch = take_due(self, now_ms);
    self->running = true;
    while (batch) {
        struct delivery *d = batch;
        batch = d->next;
        finish(self, d, now_ms);
    }
    self->running = false;
    if (self->closed)
        free_sink(self);
    else
        arm(self, now_ms);
}

static enum hk_code null_send(struct hk_sink *sink, const struct hk_delivery *delivery, struct hk_err *err)
{
    struct null_sink *self = (struct null_sink *)sink;
    struct delivery *d = self->spare;
    if (d)
        self->spare = d->next;
    else
        d = hk_mem_alloc(sizeof *d);
    if (!d)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    uint64_t now_ms = hk_loop_now_ms(self->loop);
    bool late = delivery->timeout_ms < self->latency_ms;
    *d = (struct delivery){.start_ms = now_ms,
                           .due_ms = now_ms + (late ? delivery->timeout_ms : self->latency_ms),
                           .fault = late ? HK_FAULT_TIMEOUT : HK_FAULT_NONE,
                           .done = delivery->done,
                           .arg = delivery->arg};
    insert(self, d);
    if (self->first == d && !self->running)
        arm(self, now_ms);
    return HK_OK;
}

static void null_abort(struct hk_sink *sink)
{
    struct null_sink *self = (struct null_sink *)sink;
    for (struct delivery *d = self->first; d; d = d->next) {
        d->fault = HK_FAULT_LOCAL;
        d->due_ms = 0;
    }
    if (!self->running)
        arm(self, 0);
}

static void null_close(struct hk_sink *sink)
{
    struct null_sink *self = (struct null_sink *)sink;
    if (self->running)
        self->closed = true;
    else
        free_sink(self);
}

static const struct hk_sink_ops null_ops = {
    .name = "null", .send = null_send, .abort = null_abort, .close = null_close};

enum hk_code hk_null_open(struct hk_loop *loop, uint64_t latency_ms, struct hk_sink **out_sink,
                          struct hk_err *err)
{
    struct null_sink *self = hk_mem_zalloc(1, sizeof *self);
    if (!self || hk_timer_new(loop, on_timer, self, &self->timer) != HK_OK) {
        hk_mem_free(self);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    self->sink.ops = &null_ops;
    self->loop = loop;
    self->latency_ms = latency_ms;
    *out_sink = &self->sink;
    return HK_OK;
}
