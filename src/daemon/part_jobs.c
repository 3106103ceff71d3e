/* SPDX-License-Identifier: Apache-2.0 */
/* Long operations that people have started in the background (desk/job.h): one thread, with a desk and a handle of the store of its
 * own, looks once a second whether a job waits, or whether a relay that had one is gone, and works on it. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "admin/pool.h"
#include "base/mem.h"
#include "daemon/part.h"
#include "desk/job.h"

enum {
    LOOK_MS = 1000,
    STOP_MS = 5000
};

struct part {
    const struct hk_part_env *env; /* for the loop's thread */
    struct hk_admin_pool *pool;
    char *url, *name; /* its own: a batch that does not end in time outlives the daemon's */
    const char *jq;
    const struct hk_jq_starter *jq_starter;
    struct hk_log *log;
    pthread_mutex_t lock; /* guards `config`, and what `wake` tells */
    pthread_cond_t wake;
    struct hk_config *config;
    atomic_bool stopping;
    atomic_bool logs;   /* the log is still there */
    atomic_uint owners; /* the part, and its thread */
};

/* What the thread has. */
struct worker {
    struct part *part;
    struct hk_config *config;
    struct hk_desk desk;
};

static void release(struct part *p)
{
    if (atomic_fetch_sub(&p->owners, 1) > 1)
        return;
    hk_config_free(p->config);
    hk_mem_free(p->url);
    hk_mem_free(p->name);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_mutex_destroy(&p->lock);
    hk_mem_free(p);
}

/* ---- on its thread ---- */

static void furnish(struct worker *w)
{
    struct part *p = w->part;
    (void)pthread_mutex_lock(&p->lock);
    bool same = w->config == p->config;
    struct hk_config *config = same ? NULL : hk_config_share(p->config);
    (void)pthread_mutex_unlock(&p->lock);
    if (same)
        return;
    hk_desk_fini(&w->desk);
    hk_config_free(w->config);
    w->config = config;
    hk_desk_init(&w->desk, w->config, p->url);
    w->desk.jq = p->jq;
    w->desk.jq_starter = p->jq_starter;
}

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
    struct worker *w = object;
    struct part *p = arg;
    if (!w)
        return;
    while (!atomic_load(&p->stopping)) {
        struct hk_job_worked worked = {.id = 0};
        struct hk_err err = {.message = ""};
        wait_for_next_look(p);
        if (atomic_load(&p->stopping))
            break;
        furnish(w);
        const struct hk_job_worker worker = {
            .owner = p->name, .lease_ms = w->config->relay.lease_ms, .stop = is_stopping, .arg = p};
        if (hk_job_work(&w->desk, &worker, &worked, &err) == HK_OK && worked.id != 0)
            log_job(p, &worked);
    }
}

static enum hk_code make_worker(void *arg, void **out_object, struct hk_err *err)
{
    struct part *p = arg;
    struct worker *w = hk_mem_zalloc(1, sizeof *w);
    if (!w)
        return hk_err_set(err, HK_NOMEM, "out of memory for jobs");
    w->part = p;
    (void)atomic_fetch_add(&p->owners, 1);
    *out_object = w;
    return HK_OK;
}

static void drop_worker(void *arg, void *object)
{
    struct worker *w = object;
    (void)arg;
    hk_desk_fini(&w->desk);
    hk_config_free(w->config);
    release(w->part);
    hk_mem_free(w);
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
    release(p);
}

static void reloaded(void *part)
{
    struct part *p = part;
    (void)pthread_mutex_lock(&p->lock);
    struct hk_config *before = p->config;
    p->config = hk_config_share(p->env->config);
    (void)pthread_mutex_unlock(&p->lock);
    hk_config_free(before);
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
    p->url = hk_mem_strdup(env->url);
    p->name = hk_mem_strdup(env->name);
    p->config = hk_config_share(env->config);
    p->jq = env->jq;
    p->jq_starter = env->jq_starter;
    p->log = env->log;
    p->logs = true;
    p->owners = 1;
    const struct hk_admin_pool_objects objects = {.make = make_worker, .drop = drop_worker, .arg = p};
    enum hk_code rc = p->url && p->name ? hk_admin_pool_start(&objects, 1, &p->pool, err)
                                        : hk_err_set(err, HK_NOMEM, "out of memory for jobs");
    if (rc == HK_OK)
        rc = hk_admin_pool_submit(p->pool, work, p);
    if (rc != HK_OK) {
        (void)hk_admin_pool_stop(p->pool, STOP_MS);
        release(p);
        return rc;
    }
    *out_part = p;
    return HK_OK;
}

const struct hk_part_ops hk_part_jobs = {
    .name = "jobs", .start = start, .draining = draining, .reloaded = reloaded, .stop = stop};
