/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners are the thread's own. Those who come wait in a list under the lock until it takes them. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "admin/events.h"
#include "admin/problem.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/event_feed.h"
#include "daemon/meters.h"
#include "exec/clock.h"

enum {
    TURN_MS = 1000,
    LINGER_MS = 20000
};

struct listener {
    struct listener *next;
    struct hk_admin_stream *stream;
    const struct hk_admin_exchange *exchange; /* the same; it lives until the stream is ended */
    unsigned types;
    char *destination; /* NULL: any */
    char *last_id;     /* NULL: a new one */
    int64_t until_ms;  /* 0: for ever */
    int64_t known_ms;  /* when it was last known that it may listen */
    bool is_open;
};

struct hk_event_feed {
    struct hk_event_host host;
    struct hk_metrics *metrics;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows, up to the thread's own */
    pthread_cond_t more, ended;
    struct listener *joining;
    size_t n_listeners; /* those who join included */
    bool has_thread, is_over, draining, stopping, abandoned;
    bool has_told; /* every listener has had its last event, and no other can come */
    /* the thread's own */
    struct listener *listeners;
    struct hk_event_watch *watch;
    struct hk_event_ring *ring;
    uint64_t epoch;
    int64_t looked_ms, look_after_ms, beat_ms, left_ms;
};

static int64_t now_ms(void)
{
    return hk_clock_us() / 1000;
}

static void free_listener(struct listener *l)
{
    hk_mem_free(l->destination);
    hk_mem_free(l->last_id);
    hk_mem_free(l);
}

/* ---- telling ---- */

/* To one, without an id: it belongs to no order. */
static void tell_one(struct listener *l, enum hk_event_type type, const char *reason)
{
    struct hk_buf json, frame;
    hk_buf_init(&json, 512);
    hk_buf_init(&frame, 1024);
    hk_event_note(&json, reason);
    hk_event_write(&frame, NULL, type, hk_buf_str(&json));
    if ((l->types >> type & 1u) != 0 && hk_buf_status(&frame) == HK_OK)
        (void)!hk_admin_stream_push(l->stream, hk_buf_str(&frame));
    hk_buf_fini(&json);
    hk_buf_fini(&frame);
}

static void push_event(void *arg, const struct hk_event_frame *event)
{
    struct listener *l = arg;
    if (hk_event_fits(event, l->types, l->destination))
        (void)!hk_admin_stream_push(l->stream, event->frame);
}

static void tell_all(void *arg, enum hk_event_type type, struct hk_str destination, struct hk_str json)
{
    struct hk_event_feed *f = arg;
    const struct hk_event_frame *event = hk_event_ring_add(f->ring, type, destination, json);
    for (struct listener *l = f->listeners; event && l; l = l->next)
        if (l->is_open)
            push_event(l, event);
    hk_metrics_add(f->metrics, HK_METER_EVENTS, 0, 0, 1);
}

/* ---- listeners ---- */

static void count_listeners(struct hk_event_feed *f, size_t gone)
{
    (void)pthread_mutex_lock(&f->lock);
    f->n_listeners -= gone;
    size_t n = f->n_listeners;
    (void)pthread_mutex_unlock(&f->lock);
    hk_metrics_set(f->metrics, HK_METER_EVENT_LISTENERS, 0, 0, (int64_t)n);
}

static void dismiss(struct hk_event_feed *f, struct listener **link, const char *reason)
{
    struct listener *l = *link;
    *link = l->next;
    if (reason)
        tell_one(l, HK_EVENT_END, reason);
    if (hk_admin_stream_is_cut(l->stream))
        hk_metrics_add(f->metrics, HK_METER_EVENT_CUT, 0, 0, 1);
    hk_admin_stream_end(l->stream);
    free_listener(l);
    count_listeners(f, 1);
}

static void dismiss_all(struct hk_event_feed *f, const char *reason)
{
    while (f->listeners)
        dismiss(f, &f->listeners, reason);
}

static void take_joining(struct hk_event_feed *f)
{
    (void)pthread_mutex_lock(&f->lock);
    struct listener *come = f->joining;
    f->joining = NULL;
    (void)pthread_mutex_unlock(&f->lock);
    while (come) {
        struct listener *l = come;
        come = l->next;
        l->next = f->listeners;
        f->listeners = l;
    }
}

/* An empty push says whether anybody is still there. */
static const char *why_leave(struct hk_event_feed *f, struct listener *l, bool *out_leaves)
{
    *out_leaves = true;
    if (hk_admin_stream_push(l->stream, (struct hk_str){"", 0}) != HK_OK)
        return NULL;
    if (l->until_ms != 0 && now_ms() >= l->until_ms)
        return "the time that was asked for is over";
    switch (f->host.may_stay(f->host.arg, l->exchange)) {
    case HK_EVENT_STAYS:
        l->known_ms = now_ms();
        break;
    case HK_EVENT_LEAVES:
        return "the token does not hold any more";
    case HK_EVENT_UNKNOWN:
        if (now_ms() - l->known_ms >= HK_EVENT_UNKNOWN_MS)
            return "the store does not answer, so that nobody can check the token";
        break;
    }
    *out_leaves = false;
    return NULL;
}

static void check_listeners(struct hk_event_feed *f)
{
    for (struct listener **link = &f->listeners; *link;) {
        bool leaves = false;
        const char *why = why_leave(f, *link, &leaves);
        if (leaves)
            dismiss(f, link, why);
        else
            link = &(*link)->next;
    }
}

/* After a look: whoever came before it goes on where it was cut off, or begins here. */
static void open_listeners(struct hk_event_feed *f)
{
    for (struct listener *l = f->listeners; l; l = l->next) {
        if (l->is_open)
            continue;
        l->is_open = true;
        if (l->last_id && !hk_event_ring_replay(f->ring, l->last_id, push_event, l))
            tell_one(l, HK_EVENT_RESET, "events behind that Last-Event-ID are not kept");
        tell_one(l, HK_EVENT_OPEN, NULL);
    }
}

static void beat(struct hk_event_feed *f)
{
    if (now_ms() - f->beat_ms < HK_EVENT_BEAT_MS)
        return;
    f->beat_ms = now_ms();
    for (struct listener *l = f->listeners; l; l = l->next)
        tell_one(l, HK_EVENT_HEARTBEAT, NULL);
}

/* ---- looking ---- */

static void rest(struct hk_event_feed *f)
{
    hk_event_watch_free(f->watch);
    hk_event_ring_free(f->ring);
    f->watch = NULL;
    f->ring = NULL;
    f->look_after_ms = 0;
    f->host.close(f->host.arg);
}

static bool prepare(struct hk_event_feed *f)
{
    if (!f->watch)
        f->watch = hk_event_watch_new();
    if (!f->ring)
        f->ring = hk_event_ring_new((uint64_t)hk_clock_wall_ms() * 1000 + f->epoch++ % 1000);
    return f->watch && f->ring;
}

static void look(struct hk_event_feed *f)
{
    struct hk_err err = {.message = ""};
    int64_t began = now_ms();
    if (began < f->look_after_ms || !prepare(f))
        return;
    hk_metrics_add(f->metrics, HK_METER_EVENT_LOOKS, 0, 0, 1);
    enum hk_code rc = hk_event_watch_look(f->watch, f->host.desk(f->host.arg), tell_all, f, &err);
    f->look_after_ms = began + hk_event_look_after_ms(now_ms() - began);
    if (rc == HK_OK)
        open_listeners(f);
}

/* With the lock. True: there may be something to do. */
static bool wait_for_turn(struct hk_event_feed *f)
{
    struct timespec until;
    bool idle = !f->joining && !f->listeners && !f->watch;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += TURN_MS / 1000;
    int rc = 0;
    while (!f->joining && !f->draining && !f->stopping && rc != ETIMEDOUT)
        rc =
            idle ? pthread_cond_wait(&f->more, &f->lock) : pthread_cond_timedwait(&f->more, &f->lock, &until);
    return !f->stopping;
}

static void turn(struct hk_event_feed *f, bool draining)
{
    take_joining(f);
    if (draining) {
        dismiss_all(f, "the relay is shutting down");
        return;
    }
    check_listeners(f);
    if (f->listeners) {
        f->left_ms = now_ms();
        look(f);
        beat(f);
    } else if (f->watch && now_ms() - f->left_ms < LINGER_MS) {
        look(f);
    } else if (f->watch) {
        rest(f);
    }
}

static void free_feed(struct hk_event_feed *f)
{
    (void)pthread_cond_destroy(&f->more);
    (void)pthread_cond_destroy(&f->ended);
    (void)pthread_mutex_destroy(&f->lock);
    hk_mem_free(f);
}

static void *thread_main(void *arg)
{
    struct hk_event_feed *f = arg;
    (void)pthread_mutex_lock(&f->lock);
    while (wait_for_turn(f)) {
        bool draining = f->draining;
        (void)pthread_mutex_unlock(&f->lock);
        turn(f, draining);
        (void)pthread_mutex_lock(&f->lock);
        if (draining && !f->joining)
            break;
    }
    (void)pthread_mutex_unlock(&f->lock);
    take_joining(f);
    dismiss_all(f, "the relay is shutting down");
    (void)pthread_mutex_lock(&f->lock);
    f->has_told = true;
    (void)pthread_cond_broadcast(&f->ended);
    (void)pthread_mutex_unlock(&f->lock);
    rest(f);
    f->host.ended(f->host.arg);
    (void)pthread_mutex_lock(&f->lock);
    f->is_over = true;
    bool last = f->abandoned;
    (void)pthread_cond_broadcast(&f->ended);
    (void)pthread_mutex_unlock(&f->lock);
    if (last)
        free_feed(f);
    return NULL;
}

/* With the lock. Signals are the loop's. */
static bool begin_thread(struct hk_event_feed *f)
{
    sigset_t all, before;
    if (f->has_thread)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    f->has_thread = pthread_create(&f->thread, NULL, thread_main, f) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return f->has_thread;
}

/* ---- from other threads ---- */

struct hk_event_feed *hk_event_feed_new(const struct hk_event_host *host, struct hk_metrics *metrics)
{
    struct hk_event_feed *f = hk_mem_zalloc(1, sizeof *f);
    pthread_condattr_t how;
    if (!f)
        return NULL;
    f->host = *host;
    f->metrics = metrics;
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_condattr_init(&how);
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&f->more, &how);
    (void)pthread_cond_init(&f->ended, &how);
    (void)pthread_condattr_destroy(&how);
    return f;
}

static void refuse(struct hk_admin_exchange *x, const char *why)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 503);
    hk_admin_problem(&reply, 503, why);
    (void)hk_admin_reply_header(&reply, "Retry-After", hk_str_of("5"));
    hk_admin_exchange_reply(x, &reply);
}

static struct listener *make_listener(const struct hk_events_ask *ask, const char *last_id)
{
    struct listener *l = hk_mem_zalloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->destination = ask->destination ? hk_mem_strdup(ask->destination) : NULL;
    l->last_id = last_id ? hk_mem_strdup(last_id) : NULL;
    l->known_ms = now_ms();
    l->until_ms = ask->for_ms > 0 ? now_ms() + (int64_t)ask->for_ms : 0;
    if (hk_event_types(ask->types, &l->types) && (!ask->destination || l->destination) &&
        (!last_id || l->last_id))
        return l;
    free_listener(l);
    return NULL;
}

static enum hk_code open_stream(struct hk_admin_exchange *x, struct hk_admin_stream **out)
{
    struct hk_admin_reply head;
    hk_admin_reply_init(&head, 200);
    head.content_type = "text/event-stream";
    (void)hk_admin_reply_header(&head, "X-Accel-Buffering", hk_str_of("no")); /* nginx passes it on at once */
    return hk_admin_exchange_stream(x, &head, out);
}

void hk_event_feed_join(struct hk_event_feed *f, struct hk_admin_exchange *x, const struct hk_events_ask *ask,
                        const char *last_id)
{
    struct listener *l = make_listener(ask, last_id);
    (void)pthread_mutex_lock(&f->lock);
    bool ends = f->draining || f->stopping, good = l && !ends && begin_thread(f);
    if (good && open_stream(x, &l->stream) != HK_OK) {
        good = false;
        free_listener(l);
        l = NULL;
    }
    if (good) {
        l->exchange = x;
        l->next = f->joining;
        f->joining = l;
        f->n_listeners++;
        hk_metrics_set(f->metrics, HK_METER_EVENT_LISTENERS, 0, 0, (int64_t)f->n_listeners);
        (void)pthread_cond_signal(&f->more);
    }
    (void)pthread_mutex_unlock(&f->lock);
    if (good)
        return;
    if (l)
        free_listener(l);
    refuse(x, ends ? "the relay is shutting down" : "too many listen already");
}

void hk_event_feed_drain(struct hk_event_feed *f)
{
    (void)pthread_mutex_lock(&f->lock);
    f->draining = true;
    (void)pthread_cond_signal(&f->more);
    (void)pthread_mutex_unlock(&f->lock);
}

static struct timespec in_ms(unsigned wait_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000 + 1;
    return until;
}

void hk_event_feed_wait(struct hk_event_feed *f, unsigned wait_ms)
{
    struct timespec until = in_ms(wait_ms);
    int rc = 0;
    (void)pthread_mutex_lock(&f->lock);
    while (f->has_thread && !f->has_told && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&f->ended, &f->lock, &until);
    (void)pthread_mutex_unlock(&f->lock);
}

void hk_event_feed_free(struct hk_event_feed *f, unsigned wait_ms)
{
    if (!f)
        return;
    struct timespec until = in_ms(wait_ms);
    (void)pthread_mutex_lock(&f->lock);
    f->stopping = true;
    (void)pthread_cond_signal(&f->more);
    int rc = 0;
    while (f->has_thread && !f->is_over && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&f->ended, &f->lock, &until);
    bool has_thread = f->has_thread, over = f->is_over;
    f->abandoned = has_thread && !over;
    if (f->abandoned)
        (void)pthread_detach(f->thread);
    (void)pthread_mutex_unlock(&f->lock);
    if (has_thread && !over)
        return;
    if (has_thread)
        (void)pthread_join(f->thread, NULL);
    else
        f->host.ended(f->host.arg);
    free_feed(f);
}
