/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads for work that may wait, behind a bounded queue. Each has an object of its own, such as a handle of the store, so that
 * no two threads share one. */
#ifndef HK_ADMIN_POOL_H
#define HK_ADMIN_POOL_H

#include <stddef.h>

#include <hikyaku/error.h>

struct hk_admin_pool;

#define HK_ADMIN_POOL_THREADS 16
#define HK_ADMIN_POOL_QUEUE   64

struct hk_admin_pool_objects {
    /* Makes the object of one thread. Runs on the thread that starts the pool, before any work. */
    enum hk_code (*make)(void *arg, void **out_object, struct hk_err *err);
    /* Frees it. Runs on the thread that has used it, when its last work is done. */
    void (*drop)(void *arg, void *object);
    void *arg; /* outlives all work */
};

/* One piece of work, on a thread of the pool. `object` NULL: the pool is stopping; do nothing but say so to whoever waits, and
 * free `arg`. */
typedef void hk_admin_work_fn(void *object, void *arg);

/* `threads`: 1 to HK_ADMIN_POOL_THREADS. */
enum hk_code hk_admin_pool_start(const struct hk_admin_pool_objects *objects, size_t threads,
                                 struct hk_admin_pool **out_pool, struct hk_err *err) HK_MUSTCHECK;
/* From any thread; never blocks. On HK_OK `fn` runs exactly once. HK_BUSY: the queue is full, or the pool is stopping; `fn` never runs. */
enum hk_code hk_admin_pool_submit(struct hk_admin_pool *pool, hk_admin_work_fn *fn, void *arg) HK_MUSTCHECK;
/* Takes no more work, gives back what has not begun (object NULL), and waits up to `wait_ms` for what has. HK_BUSY: some work goes on
 * beyond that; its thread ends by itself, and frees its object and what is left of the pool. Nobody may use the pool afterwards.
 * Accepts NULL. */
enum hk_code hk_admin_pool_stop(struct hk_admin_pool *pool, unsigned wait_ms);

#endif
