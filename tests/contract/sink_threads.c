/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/check.h"
#include "base/str.h"
#include "sink_threads.h"

struct item {
    struct item *next;
    bool handed; /* to the thread */
    bool ended;  /* `done` ran, or will, without it */
    bool refused;
    uint64_t start_ms, deadline_ms;
    int64_t sequence;
    enum hk_fault fault;
    hk_sink_done_fn *done;
    void *arg;
};

/* What thread and sink share; the last of them frees it. */
struct client {
    pthread_mutex_t lock;
    pthread_cond_t news;
    unsigned users;
    bool stop, over;
    struct threads_script script;
    struct item *todo, **todo_last;
    struct item *back, **back_last;
    struct hk_wake *wake; /* NULL once the sink is closed */
    int64_t sequence;
};

struct threads_sink {
    struct hk_sink sink;
    struct hk_loop *loop;
    struct hk_timer *timer;
    struct hk_wake *wake;
    struct client *client;
    struct item *items; /* all that are not freed */
    unsigned in_flight;
    unsigned depth;
    bool was_busy, closed;
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_news = PTHREAD_COND_INITIALIZER;
static bool released;
static unsigned n_threads, n_flushes;

static void client_leave(struct client *c)
{
    (void)pthread_mutex_lock(&c->lock);
    bool last = --c->users == 0;
    (void)pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->news);
    free(c);
}

/* ---- the thread ---- */

static void hang(void)
{
    (void)pthread_mutex_lock(&all_lock);
    while (!released)
        (void)pthread_cond_wait(&all_news, &all_lock);
    (void)pthread_mutex_unlock(&all_lock);
}

static void confirm(struct client *c, struct item *item)
{
    item->sequence = ++c->sequence;
    item->refused = c->script.refuse && c->sequence % c->script.refuse == 0;
    item->next = NULL;
    *c->back_last = item;
    c->back_last = &item->next;
}

static void *work(void *arg)
{
    struct client *c = arg;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        if (!c->todo || c->script.mute) {
            (void)pthread_cond_wait(&c->news, &c->lock);
            continue;
        }
        if (c->script.stuck) {
            (void)pthread_mutex_unlock(&c->lock);
            hang();
            (void)pthread_mutex_lock(&c->lock);
            continue;
        }
        struct item *item = c->todo;
        c->todo = item->next;
        if (!c->todo)
            c->todo_last = &c->todo;
        confirm(c, item);
        hk_wake_send(c->wake);
    }
    c->over = true;
    (void)pthread_cond_broadcast(&c->news);
    (void)pthread_mutex_unlock(&c->lock);
    client_leave(c);
    (void)pthread_mutex_lock(&all_lock);
    n_threads--;
    (void)pthread_cond_broadcast(&all_news);
    (void)pthread_mutex_unlock(&all_lock);
    return NULL;
}

/* ---- the loop's side ---- */

static struct hk_sink_shown show(const struct hk_sink_result *result)
{
    static char said[128];
    (void)snprintf(said, sizeof said, "{\"code\":\"%.*s\",\"sequence\":%lld}",
                   (int)result->facts.broker_code.len, result->facts.broker_code.ptr,
                   (long long)result->facts.sequence);
    return (struct hk_sink_shown){hk_str_of("{}"), hk_str_of(said)};
}

static void tell(struct threads_sink *self, struct item *item)
{
    bool refused = item->fault == HK_FAULT_NONE && item->refused;
    struct hk_sink_result result = {
        .facts = {.fault = refused ? HK_FAULT_BROKER_REFUSED : item->fault,
                  .possibly_delivered = item->fault != HK_FAULT_NONE && item->handed,
                  .duration_ms = hk_loop_now_ms(self->loop) - item->start_ms,
                  .broker_code = hk_str_of(refused ? "312" : ""),
                  .body = hk_str_of(refused ? "NO_ROUTE" : ""),
                  .placed = item->fault == HK_FAULT_NONE && !refused,
                  .partition = -1,
                  .sequence = item->sequence,
                  .error = hk_str_of(refused                        ? "312 NO_ROUTE"
                                     : item->fault == HK_FAULT_NONE ? ""
                                                                    : hk_fault_name(item->fault))},
        .show = show,
        .address = hk_str_of("127.0.0.1:1"),
    };
    self->in_flight--;
    item->ended = true;
    item->done(item->arg, &result);
}

static struct item *unlink_item(struct threads_sink *self, bool (*which)(const struct item *))
{
    struct item **at = &self->items;
    while (*at && !which(*at))
        at = &(*at)->next;
    struct item *found = *at;
    if (found)
        *at = found->next;
    return found;
}

static bool is_ours_and_over(const struct item *item)
{
    return item->ended;
}

static void take_back(struct threads_sink *self)
{
    struct client *c = self->client;
    (void)pthread_mutex_lock(&c->lock);
    struct item *batch = c->back;
    c->back = NULL;
    c->back_last = &c->back;
    (void)pthread_mutex_unlock(&c->lock);
    while (batch) {
        struct item *item = batch;
        batch = item->next;
        if (!item->ended)
            tell(self, item);
        free(item);
    }
}

/* Those that the thread has never seen. Those that it has are marked, and freed when they come back. */
static void end_overdue(struct threads_sink *self, uint64_t now_ms, uint64_t *next_ms)
{
    struct client *c = self->client;
    struct item *late[256];
    size_t n = 0;
    (void)pthread_mutex_lock(&c->lock);
    for (struct item *list = c->todo; list && n < 256; list = list->next)
        if (!list->ended && list->deadline_ms <= now_ms)
            late[n++] = list;
        else if (!list->ended && list->deadline_ms < *next_ms)
            *next_ms = list->deadline_ms;
    (void)pthread_mutex_unlock(&c->lock);
    for (struct item *list = self->items; list && n < 256; list = list->next)
        if (list->deadline_ms <= now_ms)
            late[n++] = list;
        else if (list->deadline_ms < *next_ms)
            *next_ms = list->deadline_ms;
    for (size_t i = 0; i < n; i++) {
        if (late[i]->fault == HK_FAULT_NONE)
            late[i]->fault = HK_FAULT_TIMEOUT;
        tell(self, late[i]);
    }
    for (struct item *item; (item = unlink_item(self, is_ours_and_over)) != NULL;)
        free(item);
}

static void arm(struct threads_sink *self, uint64_t at_ms, uint64_t now_ms)
{
    if (at_ms != UINT64_MAX)
        hk_timer_start(self->timer, at_ms > now_ms ? at_ms - now_ms : 0);
}

static void free_sink(struct threads_sink *self);

static void on_news(void *arg)
{
    struct threads_sink *self = arg;
    uint64_t now_ms = hk_loop_now_ms(self->loop), next_ms = UINT64_MAX;
    self->depth++;
    take_back(self);
    if (!self->closed)
        end_overdue(self, now_ms, &next_ms);
    bool room = self->was_busy && self->in_flight < self->client->script.window;
    if (room && !self->closed) {
        self->was_busy = false;
        hk_sink_has_room(&self->sink);
    }
    self->depth--;
    if (self->closed && !self->depth)
        free_sink(self);
    else
        arm(self, next_ms, now_ms);
}

static enum hk_code threads_send(struct hk_sink *sink, const struct hk_delivery *delivery, struct hk_err *err)
{
    struct threads_sink *self = (struct threads_sink *)sink;
    unsigned window = self->client->script.window;
    if (window && self->in_flight >= window) {
        self->was_busy = true;
        return hk_err_set(err, HK_BUSY, "the window is full");
    }
    struct item *item = calloc(1, sizeof *item);
    if (!item)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    uint64_t now_ms = hk_loop_now_ms(self->loop);
    *item = (struct item){.start_ms = now_ms,
                          .deadline_ms = now_ms + delivery->timeout_ms,
                          .done = delivery->done,
                          .arg = delivery->arg};
    struct item **at = &self->items;
    while (*at)
        at = &(*at)->next;
    *at = item;
    self->in_flight++;
    return HK_OK;
}

static void threads_flush(struct hk_sink *sink)
{
    struct threads_sink *self = (struct threads_sink *)sink;
    struct client *c = self->client;
    uint64_t now_ms = hk_loop_now_ms(self->loop), next_ms = UINT64_MAX;
    if (!self->items)
        return;
    (void)pthread_mutex_lock(&c->lock);
    for (struct item *item = self->items; item; item = item->next) {
        item->handed = true;
        next_ms = item->deadline_ms < next_ms ? item->deadline_ms : next_ms;
    }
    for (const struct item *item = c->todo; item; item = item->next)
        next_ms = !item->ended && item->deadline_ms < next_ms ? item->deadline_ms : next_ms;
    *c->todo_last = self->items;
    while (*c->todo_last)
        c->todo_last = &(*c->todo_last)->next;
    self->items = NULL;
    n_flushes++;
    (void)pthread_cond_signal(&c->news);
    (void)pthread_mutex_unlock(&c->lock);
    arm(self, next_ms, now_ms);
}

static void abort_list(struct item *list)
{
    for (; list; list = list->next)
        if (!list->ended) {
            list->fault = HK_FAULT_LOCAL;
            list->deadline_ms = 0;
        }
}

static void threads_abort(struct hk_sink *sink)
{
    struct threads_sink *self = (struct threads_sink *)sink;
    (void)pthread_mutex_lock(&self->client->lock);
    abort_list(self->client->todo);
    (void)pthread_mutex_unlock(&self->client->lock);
    abort_list(self->items);
    hk_timer_start(self->timer, 0);
}

static void free_list(struct item *list)
{
    while (list) {
        struct item *next = list->next;
        free(list);
        list = next;
    }
}

/* The thread is asked to end, and waited for up to a bound; what it is stuck with ends in its own time. */
static void end_client(struct client *c)
{
    struct timespec until;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
    until.tv_nsec += HK_SINK_CLOSE_MS / 8 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_mutex_lock(&c->lock);
    c->stop = true;
    (void)pthread_cond_broadcast(&c->news);
    while (!c->over && pthread_cond_timedwait(&c->news, &c->lock, &until) == 0)
        ;
    free_list(c->todo);
    free_list(c->back);
    c->todo = c->back = NULL;
    c->wake = NULL;
    (void)pthread_mutex_unlock(&c->lock);
    client_leave(c);
}

static void free_sink(struct threads_sink *self)
{
    end_client(self->client);
    hk_timer_free(self->timer);
    hk_wake_free(self->wake);
    free_list(self->items);
    free(self);
}

static void threads_close(struct hk_sink *sink)
{
    struct threads_sink *self = (struct threads_sink *)sink;
    assert_int_equal(self->in_flight, 0);
    self->closed = true;
    if (!self->depth)
        free_sink(self);
}

static const struct hk_sink_ops ops = {.name = "threads",
                                       .send = threads_send,
                                       .flush = threads_flush,
                                       .abort = threads_abort,
                                       .close = threads_close};

struct hk_sink *threads_open(struct hk_loop *loop, const struct threads_script *script)
{
    struct threads_sink *self = calloc(1, sizeof *self);
    struct client *c = calloc(1, sizeof *c);
    pthread_t thread;
    assert_non_null(self);
    assert_non_null(c);
    *c = (struct client){.users = 2, .script = *script};
    c->todo_last = &c->todo;
    c->back_last = &c->back;
    self->sink.ops = &ops;
    self->loop = loop;
    self->client = c;
    assert_int_equal(hk_timer_new(loop, on_news, self, &self->timer), HK_OK);
    assert_int_equal(hk_wake_new(loop, on_news, self, &self->wake, NULL), HK_OK);
    c->wake = self->wake;
    assert_int_equal(pthread_mutex_init(&c->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&c->news, NULL), 0);
    (void)pthread_mutex_lock(&all_lock);
    n_threads++;
    released = false;
    (void)pthread_mutex_unlock(&all_lock);
    assert_int_equal(pthread_create(&thread, NULL, work, c), 0);
    assert_int_equal(pthread_detach(thread), 0);
    return &self->sink;
}

unsigned threads_flushes(void)
{
    return n_flushes;
}

void threads_release(void)
{
    (void)pthread_mutex_lock(&all_lock);
    released = true;
    (void)pthread_cond_broadcast(&all_news);
    while (n_threads)
        (void)pthread_cond_wait(&all_news, &all_lock);
    (void)pthread_mutex_unlock(&all_lock);
}
