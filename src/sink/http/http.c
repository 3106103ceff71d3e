/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink. A delivery's life, whatever it travels on:
 *
 *   spare -> live (with its wire) or waiting (for its turn) -> ended -> `done` -> spare
 *
 * hk_http_end is the only way out of live and waiting, and judges what happened; dispatch is the only place that calls
 * `done`, and it runs from the loop only. All deadlines of a sink are one timer, set to the earliest and never taken
 * back: arming one for each delivery would cost more than reading its answer.
 *
 * The address policy is applied to the address that is connected to, hence after all names, spellings and tricks. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/url.h"
#include "sink/http/oauth.h"

/* ---- lists ---- */

static void push(struct hk_http_list *list, struct hk_http_transfer *t)
{
    t->in = list;
    t->prev = list->last;
    t->next = NULL;
    if (list->last)
        list->last->next = t;
    else
        list->first = t;
    list->last = t;
}

static void unlink_from(struct hk_http_list *list, struct hk_http_transfer *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        list->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        list->last = t->prev;
    t->in = NULL;
}

void hk_http_move(struct hk_http_transfer *t, struct hk_http_list *to)
{
    if (t->in)
        unlink_from(t->in, t);
    push(to, t);
}

/* ---- the address policy ---- */

bool hk_http_allowed(const struct hk_http_sink *self, const struct hk_ip *ip)
{
    return hk_ip_allowed(ip, self->allow, self->n_allow);
}

void hk_http_say_blocked(struct hk_http_transfer *t, const struct hk_ip *ip)
{
    char text[HK_IP_TEXT_MAX], line[HK_HTTP_ERROR_MAX];
    (void)hk_ip_format(ip, text);
    (void)snprintf(line, sizeof line, "blocked: %s is a %s address; `allow` lists the exceptions", text,
                   hk_ip_special(ip));
    hk_http_say(t, line);
}

void hk_http_note_address(struct hk_http_transfer *t, const struct hk_ip *ip, int port)
{
    char text[HK_IP_TEXT_MAX];
    (void)hk_ip_format(ip, text);
    (void)snprintf(t->address, sizeof t->address, ip->v6 ? "[%s]:%d" : "%s:%d", text, port);
}

/* ---- what happened ---- */

void hk_http_say(struct hk_http_transfer *t, const char *text)
{
    size_t n = strlen(text);
    n = n < sizeof t->error ? n : sizeof t->error - 1;
    for (size_t i = 0; i < n; i++) /* it may quote the other side */
        t->error[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    t->error[n] = '\0';
}

const char *hk_http_stop_text(enum hk_response_next stop)
{
    switch (stop) {
    case HK_RESPONSE_TOO_BIG:
        return "the answer's header lines are too many or too long";
    case HK_RESPONSE_BAD:
        return "the answer switches to a protocol that was not asked for";
    case HK_RESPONSE_MORE:
    case HK_RESPONSE_ENOUGH:
        break;
    }
    return NULL;
}

static bool sent_whole(const struct hk_http_transfer *t)
{
    bool whole = false;
    if (t->requests > 0)
        (void)t->self->wire->sent(t, &whole);
    return whole;
}

bool hk_http_early(const struct hk_http_transfer *t)
{
    return t->response.final / 100 == 2 && !t->excused && !sent_whole(t);
}

/* Whose connection broke under the rest of a request may have acted on its beginning, or on nothing. */
static void settle_early(struct hk_http_transfer *t)
{
    char text[HK_HTTP_ERROR_MAX + 64];
    if (t->fault != HK_FAULT_TIMEOUT && t->fault != HK_FAULT_LOCAL)
        t->fault = HK_FAULT_RESET;
    (void)snprintf(text, sizeof text, "HTTP %d came before the whole request was out; then: %s",
                   t->response.final, t->error[0] ? t->error : "the connection was closed");
    hk_http_say(t, text);
    t->possibly_delivered = true;
}

/* A status beats every fault: the destination has decided, whatever became of the rest of its answer. But it cannot have
 * taken what it was not sent. */
static void settle(struct hk_http_transfer *t)
{
    t->duration_ms = hk_loop_round_ms(t->self->loop) - t->start_ms;
    if (hk_http_early(t)) {
        settle_early(t);
        return;
    }
    t->status = t->response.final;
    if (t->status) {
        t->fault = HK_FAULT_NONE;
        t->error[0] = '\0';
    }
    t->possibly_delivered = !t->status && t->fault != HK_FAULT_BLOCKED && sent_whole(t);
}

static void dispatch_soon(struct hk_http_sink *self)
{
    if (!self->depth)
        hk_timer_start(self->soon, 0);
}

void hk_http_end(struct hk_http_transfer *t)
{
    settle(t);
    t->self->wire->leave(t);
    if (!hk_oauth_again(t))
        hk_http_move(t, &t->self->ended);
    dispatch_soon(t->self);
}

void hk_http_fail(struct hk_http_transfer *t, enum hk_fault fault, const char *text)
{
    t->fault = fault;
    hk_http_say(t, text);
    hk_http_end(t);
}

/* ---- telling it ---- */

void hk_http_transfer_init(struct hk_http_transfer *t, struct hk_http_sink *self)
{
    t->self = self;
    hk_request_init(&t->request);
    hk_response_init(&t->response);
    if (self->base.bare)
        hk_response_keep(&t->response, HK_HTTP_READ_MAX);
    if (self->keep_bytes)
        hk_response_keep(&t->response, self->keep_bytes);
}

void hk_http_transfer_fini(struct hk_http_transfer *t)
{
    hk_request_fini(&t->request);
    hk_response_fini(&t->response);
}

static void recycle(struct hk_http_sink *self, struct hk_http_transfer *t)
{
    if (self->n_spare >= self->max_connections) {
        self->wire->unmake(t);
        return;
    }
    hk_response_reset(&t->response);
    hk_request_shrink(&t->request);
    hk_http_move(t, &self->spare);
    self->n_spare++;
}

struct report {
    struct hk_sink_result result; /* first: `show` finds the rest behind it */
    struct hk_http_transfer *t;
};

static struct hk_str shown(const struct hk_buf *buf)
{
    return hk_buf_status(buf) == HK_OK ? hk_buf_str(buf) : hk_str_of("{}");
}

static struct hk_sink_shown show(const struct hk_sink_result *result)
{
    const struct hk_http_transfer *t = ((const struct report *)result)->t;
    struct hk_http_sink *self = t->self;
    hk_buf_reset(&self->shown_request);
    hk_request_show(&t->request, &self->shown_request);
    hk_buf_reset(&self->shown_response);
    hk_response_show(&t->response, &self->shown_response);
    return (struct hk_sink_shown){shown(&self->shown_request), shown(&self->shown_response)};
}

/* Also without what stands before it: "Bearer …". */
static void hide_secrets(struct hk_http_transfer *t)
{
    for (size_t i = 0; i < t->request.n; i++) {
        struct hk_str value = hk_request_value(&t->request, i);
        if (!t->request.lines[i].secret)
            continue;
        hk_response_hide(&t->response, value);
        (void)hk_str_cut(&value, ' ');
        if (value.ptr)
            hk_response_hide(&t->response, value);
    }
}

const char *hk_http_url(const struct hk_http_transfer *t)
{
    return t->self->varies ? hk_buf_cstr(&t->request.url) : t->self->url;
}

const char *hk_http_method(const struct hk_http_transfer *t)
{
    return t->request.method[0] ? t->request.method : t->self->method;
}

bool hk_http_is_tls(const struct hk_http_transfer *t)
{
    static const char https[] = "https:";
    struct hk_str url = hk_str_of(hk_http_url(t));
    return url.len >= sizeof https &&
           hk_str_eqi((struct hk_str){url.ptr, sizeof https - 1}, hk_str_of(https));
}

/* A receiver that says which path it does not know says its secret. */
static void hide_url(struct hk_http_transfer *t)
{
    struct hk_str url = hk_str_of(hk_http_url(t));
    size_t at = 0;
    for (struct hk_str part = hk_url_hidden(url, &at); part.ptr; part = hk_url_hidden(url, &at)) {
        char plain[256];
        hk_response_hide(&t->response, part);
        if (memchr(part.ptr, '%', part.len))
            hk_response_hide(&t->response, (struct hk_str){plain, hk_url_decode(part, plain, sizeof plain)});
    }
}

static void report(struct hk_http_sink *self, struct hk_http_transfer *t)
{
    hide_secrets(t);
    if (self->hides_url)
        hide_url(t);
    if (self->hide)
        hk_response_hide(&t->response, hk_str_of(self->hide));
    struct report report = {
        .result = {.facts = {.fault = t->fault,
                             .status = t->status,
                             .possibly_delivered = t->possibly_delivered,
                             .duration_ms = t->duration_ms,
                             .headers = self->headers,
                             .n_headers = hk_response_headers(&t->response, self->headers),
                             .body = hk_buf_str(&t->response.body),
                             .error = hk_str_of(t->error)},
                   .show = show,
                   .address = hk_str_of(t->address),
                   .whole = t->ended && t->response.body_kept},
        .t = t,
    };
    t->done(t->arg, &report.result);
}

/* What ended until now; `done` may send again, abort, and after the last one close. */
static void dispatch(struct hk_http_sink *self)
{
    struct hk_http_list batch = self->ended;
    self->ended = (struct hk_http_list){NULL, NULL};
    while (batch.first) {
        struct hk_http_transfer *t = batch.first;
        unlink_from(&batch, t);
        report(self, t);
        recycle(self, t);
    }
}

void hk_http_enter(struct hk_http_sink *self)
{
    self->depth++;
}

void hk_http_leave(struct hk_http_sink *self)
{
    hk_oauth_next(self);
    self->wire->next(self);
    dispatch(self);
    if (self->ended.first)
        hk_timer_start(self->soon, 0);
    if (--self->depth == 0 && self->closed)
        self->wire->destroy(self);
}

void hk_http_on_soon(void *arg)
{
    hk_http_enter(arg);
    hk_http_leave(arg);
}

/* ---- deadlines ---- */

static bool is_blocked(const struct hk_http_transfer *t)
{
    return t->blocked && !t->tried;
}

/* The next moment to look, at most `at`. */
static uint64_t sooner(uint64_t at, uint64_t since, uint64_t after)
{
    return after && since + after < at ? since + after : at;
}

static bool is_slow(struct hk_http_transfer *t, uint64_t now_ms)
{
    const struct hk_http_sink *self = t->self;
    if (now_ms < t->window_ms + self->low_speed_ms)
        return false;
    bool whole = false;
    uint64_t bytes = self->wire->sent(t, &whole) + t->response.head_bytes + t->response.body_bytes;
    bool thinks = whole && !t->response.any; /* the other side does */
    bool slow = bytes - t->window_bytes < self->low_speed_bytes && !thinks;
    t->window_ms = now_ms;
    t->window_bytes = bytes;
    return slow;
}

/* No request is under way yet. */
static const char *connect_passed(struct hk_http_transfer *t, uint64_t now_ms, uint64_t *next_ms)
{
    const struct hk_http_sink *self = t->self;
    uint64_t since = t->connect_ms ? t->connect_ms : now_ms;
    if (is_blocked(t) && now_ms >= t->blocked_ms + HK_HTTP_BLOCKED_MS)
        return t->error;
    if (t->connect_ms && now_ms >= since + self->connect_timeout_ms)
        return t->tried ? "timeout while connecting" : "timeout while resolving the name";
    *next_ms = sooner(*next_ms, since, self->connect_timeout_ms);
    if (is_blocked(t))
        *next_ms = sooner(*next_ms, t->blocked_ms, HK_HTTP_BLOCKED_MS);
    if (self->wire->look) {
        uint64_t at_ms = self->wire->look(t, now_ms);
        *next_ms = at_ms < *next_ms ? at_ms : *next_ms;
    }
    return NULL;
}

/* Which deadline passed; NULL = none yet, and `*next_ms` is when to look again. */
static const char *passed(struct hk_http_transfer *t, uint64_t now_ms, uint64_t *next_ms)
{
    const struct hk_http_sink *self = t->self;
    *next_ms = t->deadline_ms;
    if (now_ms >= t->deadline_ms)
        return "timeout: the whole delivery took too long";
    if (!t->requests)
        return connect_passed(t, now_ms, next_ms);
    if (self->first_byte_timeout_ms && !t->response.any) {
        if (now_ms >= t->request_ms + self->first_byte_timeout_ms)
            return "timeout waiting for the answer";
        *next_ms = sooner(*next_ms, t->request_ms, self->first_byte_timeout_ms);
    }
    if (is_slow(t, now_ms))
        return "timeout: hardly a byte moved";
    *next_ms = sooner(*next_ms, t->window_ms, self->low_speed_ms);
    return NULL;
}

static void set_clock(struct hk_http_sink *self, uint64_t at_ms, uint64_t now_ms)
{
    if (hk_timer_running(self->clock) && self->clock_ms <= at_ms)
        return;
    self->clock_ms = at_ms;
    hk_timer_start(self->clock, at_ms > now_ms ? at_ms - now_ms : 0);
}

void hk_http_look_at(struct hk_http_transfer *t, uint64_t at_ms)
{
    t->look_ms = at_ms;
    set_clock(t->self, at_ms, hk_loop_round_ms(t->self->loop));
}

static void look(struct hk_http_transfer *t, uint64_t now_ms)
{
    uint64_t next_ms = 0;
    const char *why = passed(t, now_ms, &next_ms);
    if (!t->in || t->in == &t->self->ended) /* the wire found out that it is over */
        return;
    if (!why) {
        t->look_ms = next_ms > now_ms ? next_ms : now_ms + 1;
        return;
    }
    if (t->in == &t->self->unauthorized) {
        hk_http_fail(t, HK_FAULT_TOKEN, "the token endpoint did not answer in time");
    } else if (is_blocked(t)) {
        t->fault = HK_FAULT_BLOCKED; /* its text is there already */
        hk_http_end(t);
    } else {
        hk_http_fail(t, HK_FAULT_TIMEOUT, why);
    }
}

/* Looks at those that are due; returns when the first of the others is. */
static uint64_t look_at_all(struct hk_http_list *list, uint64_t now_ms)
{
    uint64_t next_ms = UINT64_MAX;
    for (struct hk_http_transfer *t = list->first, *next; t; t = next) {
        next = t->next;
        if (t->look_ms <= now_ms)
            look(t, now_ms);
        if (t->in == list && t->look_ms < next_ms)
            next_ms = t->look_ms;
    }
    return next_ms;
}

void hk_http_on_clock(void *arg)
{
    struct hk_http_sink *self = arg;
    uint64_t now_ms = hk_loop_now_ms(self->loop);
    hk_http_enter(self);
    uint64_t live_ms = look_at_all(&self->live, now_ms);
    uint64_t waiting_ms = look_at_all(&self->waiting, now_ms);
    uint64_t next_ms = live_ms < waiting_ms ? live_ms : waiting_ms;
    uint64_t unauthorized_ms = look_at_all(&self->unauthorized, now_ms);
    next_ms = unauthorized_ms < next_ms ? unauthorized_ms : next_ms;
    if (next_ms != UINT64_MAX)
        set_clock(self, next_ms, now_ms);
    hk_http_leave(self);
}

/* ---- the contract's functions ---- */

static struct hk_http_transfer *take_spare(struct hk_http_sink *self)
{
    struct hk_http_transfer *t = self->spare.last; /* the warmest */
    if (!t)
        return self->wire->make(self);
    unlink_from(&self->spare, t);
    self->n_spare--;
    return t;
}

static void unsent(struct hk_http_transfer *t)
{
    t->connect_ms = t->blocked_ms = t->request_ms = t->window_ms = t->window_bytes = 0;
    t->requests = 0;
    t->blocked = t->tried = t->excused = t->ended = false;
    t->stop = HK_RESPONSE_MORE;
    t->fault = HK_FAULT_NONE;
    t->status = 0;
    t->possibly_delivered = false;
    t->duration_ms = 0;
    t->address[0] = t->error[0] = '\0';
}

static void start(struct hk_http_transfer *t, const struct hk_delivery *delivery)
{
    uint64_t timeout_ms = delivery->timeout_ms;
    t->done = delivery->done;
    t->arg = delivery->arg;
    t->start_ms = hk_loop_now_ms(t->self->loop);
    t->deadline_ms = timeout_ms < UINT64_MAX - t->start_ms ? t->start_ms + timeout_ms : UINT64_MAX;
    unsent(t);
}

/* A message that cannot be sent is not the caller's error: it is told like any other outcome, later. */
static void refuse(struct hk_http_transfer *t, const char *why)
{
    t->fault = HK_FAULT_INVALID_PAYLOAD;
    hk_http_say(t, why);
    hk_http_move(t, &t->self->ended);
    dispatch_soon(t->self);
}

/* No deadline can pass before the shortest of them has, counted from now. */
static void arm(struct hk_http_transfer *t)
{
    const struct hk_http_sink *self = t->self;
    uint64_t at_ms = sooner(t->deadline_ms, t->start_ms, self->connect_timeout_ms);
    at_ms = sooner(at_ms, t->start_ms, self->first_byte_timeout_ms);
    hk_http_look_at(t, sooner(at_ms, t->start_ms, self->low_speed_ms));
}

void hk_http_rewind(struct hk_http_transfer *t)
{
    hk_response_reset(&t->response);
    unsent(t);
    hk_http_look_at(t, hk_loop_round_ms(t->self->loop) + 1);
}

static enum hk_code http_send(struct hk_sink *sink, const struct hk_delivery *delivery, struct hk_err *err)
{
    struct hk_http_sink *self = (struct hk_http_sink *)sink;
    const struct hk_message *msg = delivery->msg;
    struct hk_http_transfer *t = take_spare(self);
    if (!t)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    struct hk_err why = {.code = HK_OK};
    enum hk_code rc =
        hk_request_build(&t->request, &self->base, msg, delivery->attempt, delivery->wall_ms, &why);
    if (rc == HK_NOMEM) {
        recycle(self, t);
        return hk_err_set(err, HK_NOMEM, "%s", why.message);
    }
    start(t, delivery);
    if (rc != HK_OK) {
        refuse(t, why.message);
        return HK_OK;
    }
    t->payload = t->request.body;
    t->response.read_max = HK_HTTP_READ_MAX + self->keep_bytes + 2 * (uint64_t)msg->payload.len;
    arm(t);
    if (self->token)
        hk_oauth_begin(t);
    else
        self->wire->begin(t);
    return HK_OK;
}

static void abort_all(struct hk_http_list *list)
{
    while (list->first)
        hk_http_fail(list->first, HK_FAULT_LOCAL, "aborted");
}

static void http_abort(struct hk_sink *sink)
{
    struct hk_http_sink *self = (struct hk_http_sink *)sink;
    abort_all(&self->unauthorized); /* first: none of them gets a turn by the others' end */
    abort_all(&self->waiting);
    abort_all(&self->live);
}

static void http_close(struct hk_sink *sink)
{
    struct hk_http_sink *self = (struct hk_http_sink *)sink;
    assert(!self->live.first && !self->waiting.first && !self->unauthorized.first && !self->ended.first);
    if (self->depth)
        self->closed = true;
    else
        self->wire->destroy(self);
}

void hk_http_discard(struct hk_sink *sink)
{
    struct hk_http_sink *self = (struct hk_http_sink *)sink;
    if (!self)
        return;
    http_abort(sink);
    while (self->ended.first) {
        struct hk_http_transfer *t = self->ended.first;
        unlink_from(&self->ended, t);
        recycle(self, t);
    }
    http_close(sink);
}

const struct hk_sink_ops hk_http_ops = {
    .name = "http",
    .send = http_send,
    .abort = http_abort,
    .close = http_close,
};
