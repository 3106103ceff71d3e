/* SPDX-License-Identifier: Apache-2.0 */
/* Long operations that people have started in the background (desk/job.h): one thread, with a desk and a handle of the store of its
 * own, looks once a second whether a job waits, or whether a relay that had one is gone, and works on it. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "admin/pool.h"
#include "base/mem.h"
#include "daemon/desks.h"
#include "daemon/part.h"
#include "desk/job.h"

enum {
    LOOK_MS = 1000,
    STOP_MS = 5000
};

struct part {
    const struct hk_part_env *env; /* for the loop's thread */
    struct hk_admin_pool *pool;
    struct hk_desks *desks; /* of one thread; the part ends with both */
    char *name;             /* its own: a batch that does not end in time outlives the daemon's */
    struct hk_log *log;
    pthread_mutex_t lock; /* guards what `wake` tells */
    pthread_cond_t wake;
    atomic_bool stopping;
    atomic_bool logs; /* the log is still there */
};

static void free_part(void *arg)
{
    struct part *p = arg;
    hk_mem_free(p->name);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_mutex_destroy(&p->lock);
    hk_mem_free(p);
}

/* ---- on its thread ---- */

static bool is_stopping(void *arg)
{
    const struct part *p = arg;
    return atomic_load(&p->stopping);
}

static void wait_for_next_look(struct part *p)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOOK_MS / 1000;
    (void)pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->stopping) && pthread_cond_timedwait(&p->wake, &p->lock, &until) == 0)
        continue;
    (void)pthread_mutex_unlock(&p->lock);
}

static void log_job(struct part *p, const struct hk_job_worked *worked)
{
    struct hk_log_line line;
    bool failed = worked->status == HK_JOB_FAILED || worked->status == HK_JOB_RUNNING;
    if (!atomic_load(&p->logs))
        return;
    hk_log_begin(&line, p->log, failed ? HK_LOG_WARN : HK_LOG_INFO,
                 worked->status == HK_JOB_RUNNING  ? "job left to another relay"
                 : worked->status == HK_JOB_QUEUED ? "job given back"
                                                   : "job ended");
    hk_log_i64(&line, "job", worked->id);
    hk_log_cstr(&line, "operation", worked->operation);
    hk_log_cstr(&line, "status", hk_job_status_name(worked->status));
    if (failed && worked->why.message[0])
        hk_log_cstr(&line, "error", worked->why.message);
    hk_log_end(&line);
}

/* The relay says itself when the store is away: here nothing is logged of it. */
static void work(void *object, void *arg)
{
    struct hk_desk_of *own = object;
    struct part *p = arg;
    if (!own)
        return;
    while (!atomic_load(&p->stopping)) {
        struct hk_job_worked worked = {.id = 0};
        struct hk_err err = {.message = ""};
        wait_for_next_look(p);
        if (atomic_load(&p->stopping))
            break;
        struct hk_desk *desk = hk_desk_of_now(own);
        const struct hk_job_worker worker = {
            .owner = p->name, .lease_ms = desk->config->relay.lease_ms, .stop = is_stopping, .arg = p};
        if (hk_job_work(desk, &worker, &worked, &err) == HK_OK && worked.id != 0)
            log_job(p, &worked);
    }
}

static enum hk_code make_worker(void *arg, void **out_object, struct hk_err *err)
{
    struct part *p = arg;
    struct hk_desk_of *own = hk_mem_zalloc(1, sizeof *own);
    if (!own)
        return hk_err_set(err, HK_NOMEM, "out of memory for jobs");
    hk_desk_of_init(own, p->desks);
    *out_object = own;
    return HK_OK;
}

static void drop_worker(void *arg, void *object)
{
    (void)arg;
    hk_desk_of_fini(object);
    hk_mem_free(object);
}

/* ---- on the loop's thread ---- */

static void ask_to_stop(struct part *p)
{
    (void)pthread_mutex_lock(&p->lock);
    atomic_store(&p->stopping, true);
    (void)pthread_cond_signal(&p->wake);
    (void)pthread_mutex_unlock(&p->lock);
}

static void draining(void *part)
{
    ask_to_stop(part);
}

static void stop(void *part)
{
    struct part *p = part;
    ask_to_stop(p);
    (void)hk_admin_pool_stop(p->pool, STOP_MS);
    atomic_store(&p->logs, false);
    hk_desks_unref(p->desks);
}

static void reloaded(void *part)
{
    struct part *p = part;
    hk_desks_reloaded(p->desks, p->env->config);
}

static enum hk_code init_wake(struct part *p)
{
    pthread_condattr_t how;
    if (pthread_condattr_init(&how) != 0)
        return HK_NOMEM;
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(&p->wake, &how);
    (void)pthread_condattr_destroy(&how);
    return failed ? HK_NOMEM : HK_OK;
}

static enum hk_code start(const struct hk_part_env *env, void **out_part, struct hk_onlooker *out_watch,
                          struct hk_err *err)
{
    struct part *p = hk_mem_zalloc(1, sizeof *p);
    (void)out_watch;
    if (!p || init_wake(p) != HK_OK) {
        hk_mem_free(p);
        return hk_err_set(err, HK_NOMEM, "out of memory for jobs");
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    p->env = env;
    p->name = hk_mem_strdup(env->name);
    p->log = env->log;
    p->logs = true;
    p->desks = hk_desks_new(env, free_part, p);
    if (!p->desks) {
        free_part(p);
        return hk_err_set(err, HK_NOMEM, "out of memory for jobs");
    }
    const struct hk_admin_pool_objects objects = {.make = make_worker, .drop = drop_worker, .arg = p};
    enum hk_code rc = p->name ? hk_admin_pool_start(&objects, 1, &p->pool, err)
                              : hk_err_set(err, HK_NOMEM, "out of memory for jobs");
    if (rc == HK_OK)
        rc = hk_admin_pool_submit(p->pool, work, p);
    if (rc != HK_OK) {
        (void)hk_admin_pool_stop(p->pool, STOP_MS);
        hk_desks_unref(p->desks);
        return rc;
    }
    *out_part = p;
    return HK_OK;
}

const struct hk_part_ops hk_part_jobs = {
    .name = "jobs", .start = start, .draining = draining, .reloaded = reloaded, .stop = stop};
