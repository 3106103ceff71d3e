/* SPDX-License-Identifier: Apache-2.0 */
/* The loop on libuv. The only file that knows libuv, so that its traps are dealt with once: handles that live until
 * their close callback, descriptors that must not be closed under a poll handle, a cached clock. */
#include <assert.h>

#include <uv.h>

#include "base/mem.h"
#include "loop/loop.h"

struct post {
    hk_loop_fn *fn;
    void *arg;
};

struct hk_loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_mutex_t lock; /* guards the ring */
    struct post posts[HK_LOOP_POSTS_MAX];
    size_t first, n;
    size_t n_made; /* handles of callers, for the assertion in free */
    struct hk_loop_shared *shared;
};

struct hk_timer {
    uv_timer_t uv;
    struct hk_loop *loop;
    hk_loop_fn *fn;
    void *arg;
};

struct hk_watch {
    uv_poll_t uv;
    struct hk_loop *loop;
    hk_watch_fn *fn;
    void *arg;
    unsigned events;
};

struct hk_wake {
    uv_async_t uv;
    struct hk_loop *loop;
    hk_loop_fn *fn;
    void *arg;
};

struct hk_signal {
    uv_signal_t uv;
    struct hk_loop *loop;
    hk_signal_fn *fn;
    void *arg;
};

static enum hk_code uv_error(struct hk_err *err, const char *what, int rc)
{
    return hk_err_set(err, rc == UV_ENOMEM ? HK_NOMEM : HK_IO, "%s: %s", what, uv_strerror(rc));
}

static void free_data(uv_handle_t *handle)
{
    hk_mem_free(handle->data);
}

/* `owner` is what the handle is part of; it goes when libuv has let go of the handle. */
static void close_handle(struct hk_loop *loop, uv_handle_t *handle, void *owner)
{
    handle->data = owner;
    loop->n_made--;
    uv_close(handle, free_data);
}

/* ---- the loop and its posts ---- */

static bool take_post(struct hk_loop *loop, struct post *out)
{
    uv_mutex_lock(&loop->lock);
    bool any = loop->n > 0;
    if (any) {
        *out = loop->posts[loop->first];
        loop->first = (loop->first + 1) % HK_LOOP_POSTS_MAX;
        loop->n--;
    }
    uv_mutex_unlock(&loop->lock);
    return any;
}

static size_t count_posts(struct hk_loop *loop)
{
    uv_mutex_lock(&loop->lock);
    size_t n = loop->n;
    uv_mutex_unlock(&loop->lock);
    return n;
}

/* Only what is there now: a function that posts itself again must not starve the sockets. */
static void on_wake(uv_async_t *wake)
{
    struct hk_loop *loop = wake->data;
    struct post post;
    for (size_t n = count_posts(loop); n > 0 && take_post(loop, &post); n--)
        post.fn(post.arg);
    if (count_posts(loop) > 0)
        uv_async_send(wake);
}

enum hk_code hk_loop_new(struct hk_loop **out_loop, struct hk_err *err)
{
    struct hk_loop *loop = hk_mem_zalloc(1, sizeof *loop);
    if (!loop)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    int rc = uv_loop_init(&loop->uv);
    if (rc < 0)
        goto no_loop;
    rc = uv_mutex_init(&loop->lock);
    if (rc < 0)
        goto no_mutex;
    rc = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (rc < 0)
        goto no_async;
    loop->wake.data = loop;
    *out_loop = loop;
    return HK_OK;

no_async:
    uv_mutex_destroy(&loop->lock);
no_mutex:
    (void)uv_loop_close(&loop->uv);
no_loop:
    hk_mem_free(loop);
    return uv_error(err, "cannot make an event loop", rc);
}

void hk_loop_free(struct hk_loop *loop)
{
    if (!loop)
        return;
    assert(loop->n_made == 0 && !loop->shared);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* the close callbacks */
    int rc = uv_loop_close(&loop->uv);
    assert(rc == 0);
    (void)rc;
    uv_mutex_destroy(&loop->lock);
    hk_mem_free(loop);
}

void hk_loop_run(struct hk_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

struct hk_loop_shared **hk_loop_shared(struct hk_loop *loop)
{
    return &loop->shared;
}

void hk_loop_stop(struct hk_loop *loop)
{
    uv_stop(&loop->uv);
}

uint64_t hk_loop_now_ms(struct hk_loop *loop)
{
    uv_update_time(&loop->uv);
    return uv_now(&loop->uv);
}

uint64_t hk_loop_round_ms(const struct hk_loop *loop)
{
    return uv_now(&loop->uv);
}

enum hk_code hk_loop_post(struct hk_loop *loop, hk_loop_fn *fn, void *arg)
{
    uv_mutex_lock(&loop->lock);
    bool full = loop->n == HK_LOOP_POSTS_MAX;
    if (!full)
        loop->posts[(loop->first + loop->n++) % HK_LOOP_POSTS_MAX] = (struct post){fn, arg};
    uv_mutex_unlock(&loop->lock);
    if (full)
        return HK_TOOBIG;
    (void)uv_async_send(&loop->wake);
    return HK_OK;
}

/* ---- timers ---- */

static void on_timer(uv_timer_t *uv)
{
    struct hk_timer *timer = uv->data;
    timer->fn(timer->arg);
}

enum hk_code hk_timer_new(struct hk_loop *loop, hk_loop_fn *fn, void *arg, struct hk_timer **out_timer)
{
    struct hk_timer *timer = hk_mem_alloc(sizeof *timer);
    if (!timer)
        return HK_NOMEM;
    (void)uv_timer_init(&loop->uv, &timer->uv); /* cannot fail */
    timer->uv.data = timer;
    timer->loop = loop;
    timer->fn = fn;
    timer->arg = arg;
    loop->n_made++;
    *out_timer = timer;
    return HK_OK;
}

void hk_timer_start(struct hk_timer *timer, uint64_t after_ms)
{
    uv_update_time(
        &timer->loop->uv); /* libuv counts from its cached time: after a long callback that is early */
    (void)uv_timer_start(&timer->uv, on_timer, after_ms, 0);
}

void hk_timer_stop(struct hk_timer *timer)
{
    (void)uv_timer_stop(&timer->uv);
}

bool hk_timer_running(const struct hk_timer *timer)
{
    return uv_is_active((const uv_handle_t *)&timer->uv) != 0;
}

void hk_timer_free(struct hk_timer *timer)
{
    if (timer)
        close_handle(timer->loop, (uv_handle_t *)&timer->uv, timer);
}

/* ---- descriptors ---- */

static void on_poll(uv_poll_t *uv, int status, int events)
{
    struct hk_watch *watch = uv->data;
    unsigned seen = 0;
    if (status < 0) {
        /* libuv has stopped the handle */
        watch->events = 0;
        seen = HK_WATCH_READ | HK_WATCH_WRITE | HK_WATCH_ERROR;
    }
    if (events & UV_READABLE)
        seen |= HK_WATCH_READ;
    if (events & UV_WRITABLE)
        seen |= HK_WATCH_WRITE;
    watch->fn(watch->arg, seen);
}

enum hk_code hk_watch_new(struct hk_loop *loop, int fd, hk_watch_fn *fn, void *arg,
                          struct hk_watch **out_watch, struct hk_err *err)
{
    struct hk_watch *watch = hk_mem_alloc(sizeof *watch);
    if (!watch)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    int rc = uv_poll_init(&loop->uv, &watch->uv, fd);
    if (rc < 0) {
        hk_mem_free(watch);
        return uv_error(err, "cannot watch a descriptor", rc);
    }
    watch->uv.data = watch;
    watch->loop = loop;
    watch->fn = fn;
    watch->arg = arg;
    watch->events = 0;
    loop->n_made++;
    *out_watch = watch;
    return HK_OK;
}

void hk_watch_set(struct hk_watch *watch, unsigned events)
{
    if (events == watch->events)
        return;
    watch->events = events;
    int mask = (events & HK_WATCH_READ ? UV_READABLE : 0) | (events & HK_WATCH_WRITE ? UV_WRITABLE : 0);
    int rc = mask ? uv_poll_start(&watch->uv, mask, on_poll) : uv_poll_stop(&watch->uv);
    assert(rc == 0); /* fails only for a handle that is closing or a descriptor with two watches */
    (void)rc;
}

void hk_watch_free(struct hk_watch *watch)
{
    if (watch)
        close_handle(watch->loop, (uv_handle_t *)&watch->uv, watch);
}

/* ---- wakes ---- */

static void on_async(uv_async_t *uv)
{
    struct hk_wake *wake = uv->data;
    wake->fn(wake->arg);
}

enum hk_code hk_wake_new(struct hk_loop *loop, hk_loop_fn *fn, void *arg, struct hk_wake **out_wake,
                         struct hk_err *err)
{
    struct hk_wake *wake = hk_mem_alloc(sizeof *wake);
    if (!wake)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    int rc = uv_async_init(&loop->uv, &wake->uv, on_async);
    if (rc < 0) {
        hk_mem_free(wake);
        return uv_error(err, "cannot make a wake-up", rc);
    }
    wake->uv.data = wake;
    wake->loop = loop;
    wake->fn = fn;
    wake->arg = arg;
    loop->n_made++;
    *out_wake = wake;
    return HK_OK;
}

void hk_wake_send(struct hk_wake *wake)
{
    (void)uv_async_send(&wake->uv);
}

void hk_wake_free(struct hk_wake *wake)
{
    if (wake)
        close_handle(wake->loop, (uv_handle_t *)&wake->uv, wake);
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *uv, int signum)
{
    struct hk_signal *sig = uv->data;
    sig->fn(sig->arg, signum);
}

enum hk_code hk_signal_new(struct hk_loop *loop, int signum, hk_signal_fn *fn, void *arg,
                           struct hk_signal **out_signal, struct hk_err *err)
{
    struct hk_signal *sig = hk_mem_alloc(sizeof *sig);
    if (!sig)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    int rc = uv_signal_init(&loop->uv, &sig->uv);
    if (rc < 0) {
        hk_mem_free(sig);
        return uv_error(err, "cannot watch for signals", rc);
    }
    sig->uv.data = sig;
    sig->loop = loop;
    sig->fn = fn;
    sig->arg = arg;
    loop->n_made++;
    rc = uv_signal_start(&sig->uv, on_signal, signum);
    if (rc < 0) {
        hk_signal_free(sig);
        return uv_error(err, "cannot watch for this signal", rc);
    }
    *out_signal = sig;
    return HK_OK;
}

void hk_signal_free(struct hk_signal *sig)
{
    if (sig)
        close_handle(sig->loop, (uv_handle_t *)&sig->uv, sig);
}
