/* SPDX-License-Identifier: Apache-2.0 */
/* Threads are counted, and joined once all have done their work. One that hangs in a call of the store must not hold up the end of the
 * process: then all are detached, and the last one out frees the pool. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "admin/pool.h"
#include "base/mem.h"

struct work {
    hk_admin_work_fn *fn;
    void *arg;
};

struct hk_admin_pool {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more;  /* work has come, or the end */
    pthread_cond_t less;  /* a thread has ended */
    struct hk_admin_pool_objects objects;
    struct work queue[HK_ADMIN_POOL_QUEUE]; /* a ring */
    size_t first, n;
    size_t threads; /* that run */
    pthread_t made[HK_ADMIN_POOL_THREADS];
    size_t n_made; /* the starter's */
    bool stopping;
    bool abandoned; /* nobody waits: the last thread frees it */
};

struct worker {
    struct hk_admin_pool *pool;
    void *object;
};

static void free_pool(struct hk_admin_pool *pool)
{
    (void)pthread_cond_destroy(&pool->more);
    (void)pthread_cond_destroy(&pool->less);
    (void)pthread_mutex_destroy(&pool->lock);
    hk_mem_free(pool);
}

/* With the lock held. */
static struct work take_first(struct hk_admin_pool *pool)
{
    struct work work = pool->queue[pool->first];
    pool->first = (pool->first + 1) % HK_ADMIN_POOL_QUEUE;
    pool->n--;
    return work;
}

static void drop_worker(struct worker *w)
{
    w->pool->objects.drop(w->pool->objects.arg, w->object);
    hk_mem_free(w);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct hk_admin_pool *pool = w->pool;
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->n == 0 && !pool->stopping)
            (void)pthread_cond_wait(&pool->more, &pool->lock);
        if (pool->stopping)
            break;
        struct work work = take_first(pool);
        (void)pthread_mutex_unlock(&pool->lock);
        work.fn(w->object, work.arg);
        (void)pthread_mutex_lock(&pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    drop_worker(w);
    (void)pthread_mutex_lock(&pool->lock);
    pool->threads--;
    bool last = pool->threads == 0 && pool->abandoned;
    (void)pthread_cond_broadcast(&pool->less);
    (void)pthread_mutex_unlock(&pool->lock);
    if (last)
        free_pool(pool);
    return NULL;
}

/* Signals are the loop's. */
static bool run_thread(struct hk_admin_pool *pool, struct worker *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&pool->made[pool->n_made], NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool->n_made += rc == 0;
    return rc == 0;
}

static enum hk_code add_worker(struct hk_admin_pool *pool, struct hk_err *err)
{
    struct worker *w = hk_mem_zalloc(1, sizeof *w);
    if (!w)
        return hk_err_set(err, HK_NOMEM, "out of memory for the pool of the admin server");
    w->pool = pool;
    enum hk_code rc = pool->objects.make(pool->objects.arg, &w->object, err);
    if (rc != HK_OK) {
        hk_mem_free(w);
        return rc;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->threads++;
    (void)pthread_mutex_unlock(&pool->lock);
    if (run_thread(pool, w))
        return HK_OK;
    (void)pthread_mutex_lock(&pool->lock);
    pool->threads--;
    (void)pthread_mutex_unlock(&pool->lock);
    drop_worker(w);
    return hk_err_set(err, HK_IO, "no thread for the pool of the admin server");
}

/* Waits on a clock that nobody sets. */
static bool init_sync(struct hk_admin_pool *pool)
{
    pthread_condattr_t how;
    if (pthread_condattr_init(&how) != 0)
        return false;
    bool good =
        pthread_condattr_setclock(&how, CLOCK_MONOTONIC) == 0 && pthread_mutex_init(&pool->lock, NULL) == 0;
    if (good && pthread_cond_init(&pool->more, &how) != 0) {
        (void)pthread_mutex_destroy(&pool->lock);
        good = false;
    }
    if (good && pthread_cond_init(&pool->less, &how) != 0) {
        (void)pthread_cond_destroy(&pool->more);
        (void)pthread_mutex_destroy(&pool->lock);
        good = false;
    }
    (void)pthread_condattr_destroy(&how);
    return good;
}

enum hk_code hk_admin_pool_start(const struct hk_admin_pool_objects *objects, size_t threads,
                                 struct hk_admin_pool **out_pool, struct hk_err *err)
{
    struct hk_admin_pool *pool = hk_mem_zalloc(1, sizeof *pool);
    if (!pool || !init_sync(pool)) {
        hk_mem_free(pool);
        return hk_err_set(err, HK_NOMEM, "out of memory for the pool of the admin server");
    }
    pool->objects = *objects;
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < threads && rc == HK_OK; i++)
        rc = add_worker(pool, err);
    if (rc == HK_OK)
        *out_pool = pool;
    else
        (void)hk_admin_pool_stop(pool, 60000); /* they have nothing to do */
    return rc;
}

enum hk_code hk_admin_pool_submit(struct hk_admin_pool *pool, hk_admin_work_fn *fn, void *arg)
{
    (void)pthread_mutex_lock(&pool->lock);
    bool room = pool->n < HK_ADMIN_POOL_QUEUE && !pool->stopping;
    if (room) {
        pool->queue[(pool->first + pool->n) % HK_ADMIN_POOL_QUEUE] = (struct work){fn, arg};
        pool->n++;
        (void)pthread_cond_signal(&pool->more);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return room ? HK_OK : HK_BUSY;
}

/* With the lock held. False: some still run when the time is over. */
static bool wait_for_threads(struct hk_admin_pool *pool, unsigned wait_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int rc = 0;
    while (pool->threads > 0 && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&pool->less, &pool->lock, &until);
    return pool->threads == 0;
}

enum hk_code hk_admin_pool_stop(struct hk_admin_pool *pool, unsigned wait_ms)
{
    if (!pool)
        return HK_OK;
    (void)pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    (void)pthread_cond_broadcast(&pool->more);
    while (pool->n > 0) {
        struct work work = take_first(pool);
        (void)pthread_mutex_unlock(&pool->lock);
        work.fn(NULL, work.arg);
        (void)pthread_mutex_lock(&pool->lock);
    }
    bool done = wait_for_threads(pool, wait_ms);
    pool->abandoned = !done;
    for (size_t i = 0; !done && i < pool->n_made; i++)
        (void)pthread_detach(pool->made[i]);
    (void)pthread_mutex_unlock(&pool->lock);
    if (!done)
        return HK_BUSY;
    for (size_t i = 0; i < pool->n_made; i++)
        (void)pthread_join(pool->made[i], NULL); /* what libraries keep for a thread goes with it */
    free_pool(pool);
    return HK_OK;
}
