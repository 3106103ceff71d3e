/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that sleeps until it is wanted. After a while without anybody who wants it, it gives its connection back. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/mem.h"
#include "daemon/meters.h"
#include "daemon/queue_gauges.h"
#include "exec/clock.h"
#include "store/admin.h"

enum {
    IDLE_S = 60,
    BUSY_MS = 2000
};

struct hk_queue_gauges {
    const char *url;
    struct hk_metrics *m;
    const struct hk_store_admin_ops *ops;
    struct hk_admin *admin; /* the thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* all below; never held during a call at the store */
    pthread_cond_t more;
    bool wanted, stop;
    int64_t tried_ms; /* when figures were last asked for; 0 = never */
    int64_t read_ms;  /* when they last came */
};

static int64_t now_ms(void)
{
    return hk_clock_us() / 1000;
}

/* ---- from figures to gauges ---- */

static void set_count(struct hk_metrics *m, enum hk_meter_state state, struct hk_count count)
{
    hk_metrics_set(m, HK_METER_QUEUE, state, 0, (int64_t)count.n);
    hk_metrics_set(m, HK_METER_QUEUE_ESTIMATED, state, 0, count.about);
}

static int64_t age(int64_t now, int64_t since)
{
    return since == 0 || since > now ? 0 : now - since;
}

static void set_totals(struct hk_metrics *m, const struct hk_store_status *s)
{
    set_count(m, HK_METER_DUE, s->due);
    set_count(m, HK_METER_RETRYING, s->retrying);
    set_count(m, HK_METER_SCHEDULED, s->scheduled);
    set_count(m, HK_METER_PROCESSING, (struct hk_count){.n = s->processing});
    set_count(m, HK_METER_DEAD_OPEN, s->dead);
    set_count(m, HK_METER_SENT_KEPT, s->sent);
    set_count(m, HK_METER_CANCELLED, s->cancelled);
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++)
        hk_metrics_set(m, HK_METER_QUEUE_ATTEMPTS, i, 0, (int64_t)s->attempts[i].n);
    hk_metrics_set(m, HK_METER_OLDEST_DUE, 0, 0, age(s->now_ms, s->oldest_due_ms));
    hk_metrics_set(m, HK_METER_OLDEST, 0, 0, age(s->now_ms, s->oldest_ms));
    hk_metrics_set(m, HK_METER_RELAYS, 0, 0, s->relays_running ? s->relays_running : s->relay.running);
}

/* Destinations that the store does not name have nothing; those that nobody configured are added up. */
static void set_dests(struct hk_metrics *m, const struct hk_store_status *s)
{
    int64_t depth[HK_METRIC_DESTS + 1][HK_METER_NDEST_STATES] = {{0}};
    for (size_t i = 0; i < s->n_dests; i++) {
        const struct hk_dest_status *d = &s->dests[i];
        int64_t *of = depth[hk_metrics_find_dest(m, d->name)];
        of[HK_METER_DEST_PENDING] += (int64_t)d->pending.n;
        of[HK_METER_DEST_RETRYING] += (int64_t)d->retrying.n;
        of[HK_METER_DEST_PROCESSING] += (int64_t)d->processing;
        of[HK_METER_DEST_DEAD] += (int64_t)d->dead.n;
    }
    for (size_t i = 0; i <= HK_METRIC_DESTS; i++)
        for (size_t j = 0; j < HK_METER_NDEST_STATES; j++)
            hk_metrics_set(m, HK_METER_DEST_QUEUE, i, j, depth[i][j]);
}

/* ---- the thread ---- */

static bool read_figures(struct hk_queue_gauges *g)
{
    struct hk_err err = {.message = ""};
    const struct hk_store_status *status = NULL;
    const struct hk_store_options options = {.busy_ms = BUSY_MS};
    enum hk_code rc = HK_OK;
    if (!g->admin)
        rc = g->ops->open(g->url, &options, &g->admin, &err);
    if (rc == HK_OK)
        rc = g->ops->status(g->admin, &status, &err);
    if (rc == HK_OK) {
        set_totals(g->m, status);
        set_dests(g->m, status);
        return true;
    }
    hk_metrics_add(g->m, HK_METER_FIGURES_ERRORS, 0, 0, 1);
    g->ops->close(g->admin); /* a connection that failed once is not trusted */
    g->admin = NULL;
    return false;
}

/* With the lock. True: wanted; false: nobody came for a while, or the end is near. */
static bool wait_for_want(struct hk_queue_gauges *g)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_S;
    int rc = 0;
    while (!g->wanted && !g->stop && rc != ETIMEDOUT)
        rc = g->admin ? pthread_cond_timedwait(&g->more, &g->lock, &until)
                      : pthread_cond_wait(&g->more, &g->lock);
    return g->wanted && !g->stop;
}

static void *thread_main(void *arg)
{
    struct hk_queue_gauges *g = arg;
    (void)pthread_mutex_lock(&g->lock);
    while (!g->stop) {
        bool wanted = wait_for_want(g), good = false;
        (void)pthread_mutex_unlock(&g->lock);
        if (wanted) {
            good = read_figures(g);
        } else {
            g->ops->close(g->admin);
            g->admin = NULL;
        }
        (void)pthread_mutex_lock(&g->lock);
        g->wanted = false;
        if (good)
            g->read_ms = now_ms();
    }
    (void)pthread_mutex_unlock(&g->lock);
    g->ops->close(g->admin);
    return NULL;
}

/* ---- from outside ---- */

void hk_queue_gauges_want(struct hk_queue_gauges *g)
{
    int64_t now = now_ms();
    (void)pthread_mutex_lock(&g->lock);
    if (!g->wanted && (g->tried_ms == 0 || now - g->tried_ms >= HK_QUEUE_GAUGES_MS)) {
        g->wanted = true;
        g->tried_ms = now;
        (void)pthread_cond_signal(&g->more);
    }
    int64_t read_ms = g->read_ms;
    (void)pthread_mutex_unlock(&g->lock);
    hk_metrics_set(g->m, HK_METER_FIGURES_AGE, 0, 0, read_ms ? now - read_ms : HK_METRIC_UNKNOWN);
}

/* Signals are the loop's. */
static int start_thread(struct hk_queue_gauges *g)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&g->thread, NULL, thread_main, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

enum hk_code hk_queue_gauges_new(const char *url, struct hk_metrics *metrics,
                                 struct hk_queue_gauges **out_gauges, struct hk_err *err)
{
    const struct hk_store_admin_ops *ops = hk_store_admin_by_url(url, err);
    if (!ops)
        return HK_UNSUPPORTED;
    struct hk_queue_gauges *g = hk_mem_zalloc(1, sizeof *g);
    if (!g)
        return hk_err_set(err, HK_NOMEM, "out of memory for metrics");
    g->url = url;
    g->m = metrics;
    g->ops = ops;
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_cond_init(&g->more, NULL);
    if (start_thread(g) != 0) {
        (void)pthread_cond_destroy(&g->more);
        (void)pthread_mutex_destroy(&g->lock);
        hk_mem_free(g);
        return hk_err_set(err, HK_NOMEM, "no thread for the metrics of the queue");
    }
    *out_gauges = g;
    return HK_OK;
}

void hk_queue_gauges_free(struct hk_queue_gauges *g)
{
    if (!g)
        return;
    (void)pthread_mutex_lock(&g->lock);
    g->stop = true;
    (void)pthread_cond_signal(&g->more);
    (void)pthread_mutex_unlock(&g->lock);
    (void)pthread_join(g->thread, NULL);
    (void)pthread_cond_destroy(&g->more);
    (void)pthread_mutex_destroy(&g->lock);
    hk_mem_free(g);
}
