/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for calls that block, beside the loop. The jobs are one ring with three marks: first what is done and waits
 * for the loop, then what runs, then what waits. No job is copied or allocated, and the ring's size is the bound.
 * Not libuv's own pool: its four threads are shared by the whole process. */
#include <pthread.h>
#include <signal.h>

#include "base/mem.h"
#include "loop/loop.h"

#define MAX_JOBS 65536

struct job {
    hk_loop_fn *work;
    hk_worker_done_fn *done;
    void *arg;
};

struct hk_worker {
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more;
    struct hk_wake *wake;
    bool stop;
    size_t size;
    uint64_t reported, ran, taken; /* jobs since the start; reported <= ran <= taken */
    struct job jobs[];
};

static struct job *job_at(struct hk_worker *worker, uint64_t i)
{
    return &worker->jobs[i % worker->size];
}

static void *thread_main(void *arg)
{
    struct hk_worker *worker = arg;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!worker->stop && worker->ran == worker->taken)
            pthread_cond_wait(&worker->more, &worker->lock);
        if (worker->stop)
            break;
        struct job job = *job_at(worker, worker->ran);
        pthread_mutex_unlock(&worker->lock);
        job.work(job.arg);
        pthread_mutex_lock(&worker->lock);
        worker->ran++;
        pthread_mutex_unlock(&worker->lock);
        hk_wake_send(worker->wake); /* without the lock, which the loop wants as soon as it wakes up */
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static bool next_done(struct hk_worker *worker, struct job *out)
{
    pthread_mutex_lock(&worker->lock);
    bool any = worker->reported < worker->ran;
    if (any)
        *out = *job_at(worker, worker->reported++);
    pthread_mutex_unlock(&worker->lock);
    return any;
}

static void on_wake(void *arg)
{
    struct job job;
    while (next_done(arg, &job))
        job.done(job.arg, true);
}

/* The thread takes no signals: they are the loop's. */
static int start_thread(struct hk_worker *worker)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&worker->thread, NULL, thread_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

enum hk_code hk_worker_new(struct hk_loop *loop, size_t max_jobs, struct hk_worker **out_worker,
                           struct hk_err *err)
{
    if (max_jobs < 1 || max_jobs > MAX_JOBS)
        return hk_err_set(err, HK_RANGE, "a worker takes 1 to %d jobs", MAX_JOBS);
    struct hk_worker *worker = hk_mem_zalloc(1, sizeof *worker + max_jobs * sizeof worker->jobs[0]);
    if (!worker)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    worker->size = max_jobs;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->more, NULL);
    enum hk_code rc = hk_wake_new(loop, on_wake, worker, &worker->wake, err);
    if (rc != HK_OK)
        goto fail;
    int error = start_thread(worker);
    if (error) {
        rc = hk_err_set(err, HK_IO, "cannot start a thread: error %d", error);
        goto fail;
    }
    *out_worker = worker;
    return HK_OK;

fail:
    hk_wake_free(worker->wake);
    pthread_cond_destroy(&worker->more);
    pthread_mutex_destroy(&worker->lock);
    hk_mem_free(worker);
    return rc;
}

enum hk_code hk_worker_submit(struct hk_worker *worker, hk_loop_fn *work, hk_worker_done_fn *done, void *arg)
{
    pthread_mutex_lock(&worker->lock);
    bool full = worker->taken - worker->reported == worker->size;
    if (!full)
        *job_at(worker, worker->taken++) = (struct job){work, done, arg};
    pthread_mutex_unlock(&worker->lock);
    if (full)
        return HK_TOOBIG;
    pthread_cond_signal(&worker->more); /* without the lock, which the thread wants as soon as it wakes up */
    return HK_OK;
}

size_t hk_worker_pending(struct hk_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    size_t n = (size_t)(worker->taken - worker->reported);
    pthread_mutex_unlock(&worker->lock);
    return n;
}

void hk_worker_free(struct hk_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_signal(&worker->more);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);

    while (worker->reported < worker->taken) {
        struct job job = *job_at(worker, worker->reported);
        bool ran = worker->reported++ < worker->ran;
        job.done(job.arg, ran);
    }
    hk_wake_free(worker->wake);
    pthread_cond_destroy(&worker->more);
    pthread_mutex_destroy(&worker->lock);
    hk_mem_free(worker);
}
