/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "observe/gzip.h"
#include "observe/otlp_http.h"
#include "observe/otlp_metrics.h"
#include "observe/otlp_push.h"

enum {
    LOOK_MS = 1000, /* what must be asked of the store first has so long to come */
    BODY_MAX = 64 << 20
};

struct hk_pusher {
    const struct hk_otlp_options *options;
    struct hk_metrics *metrics;
    struct hk_otlp_http *http;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping; /* from here on under the lock */
    int64_t stop_at_ms;
    struct hk_pusher_stats stats;
    struct hk_buf body, packed; /* the thread's */
};

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts = {0};
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t now_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* False: it is to end. */
static bool wait_for(struct hk_pusher *p, uint64_t ms)
{
    int64_t at_ms = now_ms() + 1 + (int64_t)ms;
    struct timespec at = {.tv_sec = (time_t)(at_ms / 1000), .tv_nsec = (long)(at_ms % 1000) * 1000000};
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stopping && now_ms() < at_ms)
        (void)pthread_cond_timedwait(&p->changed, &p->lock, &at);
    bool go_on = !p->stopping;
    (void)pthread_mutex_unlock(&p->lock);
    return go_on;
}

static bool hurry(void *arg)
{
    struct hk_pusher *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    bool late = p->stopping && now_ms() >= p->stop_at_ms;
    (void)pthread_mutex_unlock(&p->lock);
    return late;
}

static void note(struct hk_pusher *p, const struct hk_otlp_answer *answer)
{
    (void)pthread_mutex_lock(&p->lock);
    struct hk_pusher_stats *s = &p->stats;
    s->failing = answer->status < 200 || answer->status > 299;
    s->sent += !s->failing;
    s->failed += s->failing;
    if (s->failing && answer->status)
        (void)snprintf(s->error, sizeof s->error, "the collector answered HTTP %d", answer->status);
    else if (s->failing)
        (void)snprintf(s->error, sizeof s->error, "%s", answer->error);
    (void)pthread_mutex_unlock(&p->lock);
}

static void push(struct hk_pusher *p)
{
    const struct hk_otlp_options *o = p->options;
    struct hk_otlp_answer answer = {.error = "no memory for the request"};
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    hk_buf_reset(&p->body);
    hk_buf_reset(&p->packed);
    if (o->json)
        hk_otlp_metrics_json(&o->resource, p->metrics, now_ns, &p->body);
    else
        hk_otlp_metrics_protobuf(&o->resource, p->metrics, now_ns, &p->body);
    enum hk_code rc = hk_buf_status(&p->body);
    if (rc == HK_OK && o->gzip)
        rc = hk_gzip(hk_buf_str(&p->body), &p->packed);
    uint64_t timeout_ms = o->timeout_ms < o->export_ms ? o->timeout_ms : o->export_ms;
    if (rc == HK_OK)
        hk_otlp_http_post(p->http, hk_buf_str(o->gzip ? &p->packed : &p->body), timeout_ms, now_ns / 1000000,
                          &answer);
    note(p, &answer);
}

/* Figures that come from the store are asked for first. */
static void *run(void *arg)
{
    struct hk_pusher *p = arg;
    uint64_t look_ms = p->options->schedule_ms / 2 < LOOK_MS ? p->options->schedule_ms / 2 : LOOK_MS;
    bool go_on = true;
    while (go_on) {
        go_on = wait_for(p, p->options->schedule_ms - look_ms);
        hk_metrics_look(p->metrics);
        go_on = go_on && wait_for(p, look_ms);
        hk_metrics_look(p->metrics);
        push(p);
    }
    return NULL;
}

/* ---- life ---- */

static void free_pusher(struct hk_pusher *p)
{
    hk_otlp_http_close(p->http);
    hk_buf_fini(&p->body);
    hk_buf_fini(&p->packed);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    hk_mem_free(p);
}

static void init_waiting(struct hk_pusher *p)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

enum hk_code hk_pusher_start(const struct hk_otlp_options *o, struct hk_metrics *metrics,
                             struct hk_pusher **out, struct hk_err *err)
{
    struct hk_pusher *p = hk_mem_zalloc(1, sizeof *p);
    if (!p)
        return hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
    p->options = o;
    p->metrics = metrics;
    init_waiting(p);
    hk_buf_init(&p->body, BODY_MAX);
    hk_buf_init(&p->packed, BODY_MAX);
    const struct hk_otlp_target target = {.url = o->url,
                                          .content_type =
                                              o->json ? "application/json" : "application/x-protobuf",
                                          .gzip = o->gzip,
                                          .headers = (const char *const *)o->headers,
                                          .n_headers = o->n_headers,
                                          .ca_file = o->ca_file,
                                          .cert_file = o->cert_file,
                                          .key_file = o->key_file,
                                          .proxy = o->proxy,
                                          .hurry = hurry,
                                          .arg = p};
    enum hk_code rc = hk_otlp_http_open(&target, &p->http, err);
    if (rc == HK_OK && pthread_create(&p->thread, NULL, run, p) != 0)
        rc = hk_err_set(err, HK_NOMEM, "no thread for telemetry");
    if (rc != HK_OK) {
        free_pusher(p);
        return rc;
    }
    *out = p;
    return HK_OK;
}

void hk_pusher_stats(struct hk_pusher *p, struct hk_pusher_stats *out)
{
    (void)pthread_mutex_lock(&p->lock);
    *out = p->stats;
    (void)pthread_mutex_unlock(&p->lock);
}

void hk_pusher_end(struct hk_pusher *p, uint64_t flush_ms)
{
    (void)pthread_mutex_lock(&p->lock);
    p->stopping = true;
    p->stop_at_ms = now_ms() + (int64_t)flush_ms;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

void hk_pusher_free(struct hk_pusher *p)
{
    if (!p)
        return;
    (void)pthread_join(p->thread, NULL);
    free_pusher(p);
}
