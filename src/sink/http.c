/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink. A transfer's life:
 *
 *   spare -> live (with libcurl | waiting for its next turn) -> ended -> `done` -> spare
 *
 * end_transfer is the only way out of live, and judges what happened; dispatch is the only place that calls `done`,
 * and it runs from the loop only. All clocks of a transfer are one timer of ours: libcurl's own deadlines would cost a
 * third of its time.
 *
 * The address policy is applied to the address that is connected to (open_socket), hence after all names, spellings and
 * tricks, and again when a request goes out (before_request), for a connection that is used again opens no socket. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/http_impl.h"

/* ---- lists ---- */

static void push(struct hk_http_list *list, struct hk_http_transfer *t)
{
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
}

/* ---- what happened ---- */

void hk_http_say(struct hk_http_transfer *t, const char *text)
{
    size_t n = strlen(text);
    n = n < sizeof t->error ? n : sizeof t->error - 1;
    for (size_t i = 0; i < n; i++) /* libcurl may quote the other side */
        t->error[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    t->error[n] = '\0';
}

/* Bytes that libcurl handed to the system. */
static uint64_t uploaded(const struct hk_http_transfer *t)
{
    curl_off_t body = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &body);
    return body > 0 ? (uint64_t)body : 0;
}

static bool sent_whole(const struct hk_http_transfer *t)
{
    long head = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &head);
    return t->requests > 0 && (t->requests > 1 || (uploaded(t) >= t->payload_bytes && head > 0));
}

/* libcurl's codes are about its own state; what the other side did wrong while answering is not our failure. */
static enum hk_fault fault_of(const struct hk_http_transfer *t, CURLcode code)
{
    if (code == CURLE_OK || t->stop != HK_RESPONSE_MORE)
        return HK_FAULT_PROTOCOL;
    bool answering = t->requests > 0;
    if (answering &&
        (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_OUT_OF_MEMORY || code == CURLE_WRITE_ERROR))
        return HK_FAULT_PROTOCOL; /* no HTTP at all, a line over libcurl's bound, a bad chunk */
    return hk_fault_from_curl((int)code);
}

static const char *text_of(const struct hk_http_transfer *t, CURLcode code)
{
    if (t->stop == HK_RESPONSE_TOO_BIG)
        return "the answer's header lines are too many or too long";
    if (t->stop == HK_RESPONSE_BAD)
        return "the answer switches to a protocol that was not asked for";
    if (code == CURLE_OK)
        return "the answer ended within its header lines";
    return t->curl_error[0] ? t->curl_error : curl_easy_strerror(code);
}

static bool is_blocked(const struct hk_http_transfer *t)
{
    return t->blocked && !t->tried;
}

static void judge_curl(struct hk_http_transfer *t, CURLcode code)
{
    if (is_blocked(t)) {
        t->fault = HK_FAULT_BLOCKED; /* its text is there already */
        return;
    }
    t->fault = fault_of(t, code);
    hk_http_say(t, text_of(t, code));
}

/* A status beats every fault: the destination has decided, whatever became of the rest of its answer. */
static void settle(struct hk_http_transfer *t)
{
    t->duration_ms = hk_loop_now_ms(t->self->loop) - t->start_ms;
    t->status = t->response.final;
    if (t->status) {
        t->fault = HK_FAULT_NONE;
        t->error[0] = '\0';
    }
    t->possibly_delivered = !t->status && t->fault != HK_FAULT_BLOCKED && sent_whole(t);
}

/* Names can be resolved (again): those that were given up do not count any more. */
void hk_http_resolved(struct hk_http_transfer *t)
{
    struct hk_http_sink *self = t->self;
    if (!t->resolving)
        return;
    t->resolving = false;
    self->n_resolving -= 1 + self->n_abandoned;
    self->n_abandoned = 0;
}

/* The thread goes on. */
static void abandon_name(struct hk_http_transfer *t)
{
    if (!t->resolving)
        return;
    t->resolving = false;
    if (t->self->n_abandoned++ == 0)
        hk_timer_start(t->self->abandoned, HK_HTTP_ABANDONED_MS);
}

static void leave_curl(struct hk_http_transfer *t)
{
    if (t->with_curl)
        (void)curl_multi_remove_handle(t->self->http.multi, t->easy);
    t->with_curl = false;
}

/* After `fault` and `error` were set. */
static void end_transfer(struct hk_http_transfer *t)
{
    struct hk_http_sink *self = t->self;
    settle(t);
    unlink_from(t->with_curl ? &self->live : &self->waiting, t);
    abandon_name(t);
    leave_curl(t);
    hk_timer_stop(t->timer);
    push(&self->ended, t);
}

/* ---- telling it ---- */

static void recycle(struct hk_http_sink *self, struct hk_http_transfer *t)
{
    if (self->n_spare >= self->max_connections) {
        hk_http_transfer_free(t);
        return;
    }
    hk_response_reset(&t->response);
    push(&self->spare, t);
    self->n_spare++;
}

static struct hk_str shown(const struct hk_buf *buf)
{
    return hk_buf_status(buf) == HK_OK ? hk_buf_str(buf) : hk_str_of("{}");
}

static void report(struct hk_http_sink *self, struct hk_http_transfer *t)
{
    struct hk_header headers[HK_HTTP_HEADERS_MAX];
    hk_buf_reset(&self->shown_request);
    hk_request_show(&t->request, &self->shown_request);
    hk_buf_reset(&self->shown_response);
    hk_response_show(&t->response, &self->shown_response);
    struct hk_sink_result result = {
        .facts = {.fault = t->fault,
                  .status = t->status,
                  .possibly_delivered = t->possibly_delivered,
                  .duration_ms = t->duration_ms,
                  .headers = headers,
                  .n_headers = hk_response_headers(&t->response, headers),
                  .body = hk_buf_str(&t->response.body),
                  .error = hk_str_of(t->error)},
        .request_headers = shown(&self->shown_request),
        .response_headers = shown(&self->shown_response),
        .address = hk_str_of(t->address),
    };
    t->done(t->arg, &result);
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

static void enter(struct hk_http_sink *self)
{
    self->depth++;
}

static void leave(struct hk_http_sink *self)
{
    dispatch(self);
    if (self->ended.first)
        hk_timer_start(self->soon, 0);
    if (--self->depth == 0 && self->closed)
        hk_http_destroy(self);
}

void hk_http_on_soon(void *arg)
{
    enter(arg);
    leave(arg);
}

/* ---- starting ---- */

static void give_to_curl(struct hk_http_transfer *t)
{
    struct hk_http_sink *self = t->self;
    t->with_curl = true;
    t->again = false;
    push(&self->live, t);
    if (curl_multi_add_handle(self->http.multi, t->easy) == CURLM_OK)
        return;
    t->fault = HK_FAULT_LOCAL;
    hk_http_say(t, "libcurl did not take the request");
    end_transfer(t);
    hk_timer_start(self->soon, 0);
}

static void start_waiting(struct hk_http_sink *self)
{
    if (self->n_resolving >= HK_HTTP_RESOLVING_MAX)
        return;
    struct hk_http_list waiting = self->waiting;
    self->waiting = (struct hk_http_list){NULL, NULL};
    while (waiting.first) {
        struct hk_http_transfer *t = waiting.first;
        unlink_from(&waiting, t);
        give_to_curl(t);
    }
}

static void on_message(struct hk_http_sink *self, const CURLMsg *message)
{
    struct hk_http_transfer *t = NULL;
    CURLcode code = message->data.result; /* gone with the handle */
    (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
    if (t->again) {
        unlink_from(&self->live, t);
        leave_curl(t);
        push(&self->waiting, t);
        return;
    }
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        hk_http_resolved(t); /* for worse: its thread has ended */
    judge_curl(t, code);
    end_transfer(t);
}

void hk_http_on_abandoned(void *arg)
{
    struct hk_http_sink *self = arg;
    enter(self);
    self->n_resolving -= self->n_abandoned;
    self->n_abandoned = 0;
    start_waiting(self);
    leave(self);
}

/* libcurl worked. */
void hk_http_on_ran(void *arg)
{
    struct hk_http_sink *self = arg;
    int left = 0;
    enter(self);
    for (CURLMsg *m = curl_multi_info_read(self->http.multi, &left); m;
         m = curl_multi_info_read(self->http.multi, &left)) {
        if (m->msg == CURLMSG_DONE)
            on_message(self, m);
    }
    start_waiting(self);
    leave(self);
}

/* ---- deadlines ---- */

static bool waits_for_answer(const struct hk_http_transfer *t)
{
    return !t->response.any && sent_whole(t);
}

static uint64_t moved(const struct hk_http_transfer *t)
{
    return uploaded(t) + t->response.head_bytes + t->response.body_bytes;
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
    uint64_t bytes = moved(t);
    bool slow = bytes - t->window_bytes < self->low_speed_bytes && !waits_for_answer(t);
    t->window_ms = now_ms;
    t->window_bytes = bytes;
    return slow;
}

/* Which deadline passed; NULL = none yet, and `*out_next_ms` is when to look again. */
static const char *passed(struct hk_http_transfer *t, uint64_t now_ms, uint64_t *out_next_ms)
{
    const struct hk_http_sink *self = t->self;
    uint64_t next = t->deadline_ms;
    if (now_ms >= t->deadline_ms)
        return "timeout: the whole delivery took too long";
    if (is_blocked(t) && now_ms >= t->blocked_ms + HK_HTTP_BLOCKED_MS)
        return t->error;
    if (!t->requests) {
        uint64_t since = t->connect_ms ? t->connect_ms : now_ms;
        if (t->connect_ms && now_ms >= since + self->connect_timeout_ms)
            return t->tried ? "timeout while connecting" : "timeout while resolving the name";
        next = sooner(next, since, self->connect_timeout_ms);
        *out_next_ms = is_blocked(t) ? sooner(next, t->blocked_ms, HK_HTTP_BLOCKED_MS) : next;
        return NULL;
    }
    if (self->first_byte_timeout_ms && !t->response.any) {
        if (now_ms >= t->request_ms + self->first_byte_timeout_ms)
            return "timeout waiting for the answer";
        next = sooner(next, t->request_ms, self->first_byte_timeout_ms);
    }
    if (is_slow(t, now_ms))
        return "timeout: hardly a byte moved";
    *out_next_ms = sooner(next, t->window_ms, self->low_speed_ms);
    return NULL;
}

void hk_http_on_deadline(void *arg)
{
    struct hk_http_transfer *t = arg;
    struct hk_http_sink *self = t->self;
    uint64_t now_ms = hk_loop_now_ms(self->loop), next_ms = 0;
    const char *why = passed(t, now_ms, &next_ms);
    if (!why) {
        hk_timer_start(t->timer, next_ms > now_ms ? next_ms - now_ms : 1);
        return;
    }
    enter(self);
    t->fault = is_blocked(t) ? HK_FAULT_BLOCKED : HK_FAULT_TIMEOUT;
    if (!is_blocked(t))
        hk_http_say(t, why);
    end_transfer(t);
    start_waiting(self);
    leave(self);
}

/* No deadline can pass before the shortest of them has, counted from now. */
static void arm(struct hk_http_transfer *t, uint64_t timeout_ms)
{
    const struct hk_http_sink *self = t->self;
    uint64_t first = sooner(timeout_ms, 0, self->connect_timeout_ms);
    first = sooner(first, 0, self->first_byte_timeout_ms);
    hk_timer_start(t->timer, sooner(first, 0, self->low_speed_ms));
}

/* ---- the contract's functions ---- */

static struct hk_http_transfer *take_spare(struct hk_http_sink *self)
{
    struct hk_http_transfer *t = self->spare.last; /* the warmest */
    if (!t)
        return hk_http_transfer_new(self);
    unlink_from(&self->spare, t);
    self->n_spare--;
    return t;
}

static void start(struct hk_http_transfer *t, uint64_t timeout_ms, hk_sink_done_fn *done, void *arg)
{
    t->done = done;
    t->arg = arg;
    t->start_ms = hk_loop_now_ms(t->self->loop);
    t->deadline_ms = timeout_ms < UINT64_MAX - t->start_ms ? t->start_ms + timeout_ms : UINT64_MAX;
    t->connect_ms = t->blocked_ms = t->request_ms = t->window_ms = t->window_bytes = 0;
    t->requests = 0;
    t->spoiled = 0;
    t->with_curl = t->resolving = t->again = t->blocked = t->tried = false;
    t->stop = HK_RESPONSE_MORE;
    t->fault = HK_FAULT_NONE;
    t->status = 0;
    t->possibly_delivered = false;
    t->duration_ms = 0;
    t->address[0] = t->error[0] = t->curl_error[0] = '\0';
}

/* A message that cannot be sent is not the caller's error: it is told like any other outcome, later. */
static void refuse(struct hk_http_transfer *t, const char *why)
{
    t->fault = HK_FAULT_INVALID_PAYLOAD;
    hk_http_say(t, why);
    push(&t->self->ended, t);
    hk_timer_start(t->self->soon, 0);
}

static enum hk_code http_send(struct hk_sink *sink, const struct hk_message *msg, uint32_t attempt,
                              int64_t wall_ms, uint64_t timeout_ms, hk_sink_done_fn *done, void *arg,
                              struct hk_err *err)
{
    (void)attempt;
    struct hk_http_sink *self = (struct hk_http_sink *)sink;
    struct hk_http_transfer *t = take_spare(self);
    if (!t)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    struct hk_err why = {.code = HK_OK};
    enum hk_code rc = hk_request_build(&t->request, &self->base, msg, wall_ms, &why);
    if (rc == HK_NOMEM) {
        recycle(self, t);
        return hk_err_set(err, HK_NOMEM, "%s", why.message);
    }
    start(t, timeout_ms, done, arg);
    if (rc != HK_OK) {
        refuse(t, why.message);
        return HK_OK;
    }
    hk_http_transfer_load(t, msg);
    arm(t, timeout_ms);
    give_to_curl(t);
    return HK_OK;
}

static void abort_all(struct hk_http_list *list)
{
    while (list->first) {
        struct hk_http_transfer *t = list->first;
        t->fault = HK_FAULT_LOCAL;
        hk_http_say(t, "aborted");
        end_transfer(t);
    }
}

static void http_abort(struct hk_sink *sink)
{
    struct hk_http_sink *self = (struct hk_http_sink *)sink;
    abort_all(&self->live);
    abort_all(&self->waiting);
    hk_timer_start(self->soon, 0);
}

static void http_close(struct hk_sink *sink)
{
    struct hk_http_sink *self = (struct hk_http_sink *)sink;
    assert(!self->live.first && !self->waiting.first && !self->ended.first);
    if (self->depth)
        self->closed = true;
    else
        hk_http_destroy(self);
}

const struct hk_sink_ops hk_http_ops = {
    .name = "http",
    .send = http_send,
    .abort = http_abort,
    .close = http_close,
};
