/* SPDX-License-Identifier: Apache-2.0 */
/* The queue is a ring under a mutex that is held for a few instructions; encoding and sending happen outside of it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "observe/gzip.h"
#include "observe/otlp_export.h"
#include "observe/otlp_http.h"

enum {
    BACKOFF_MS = 500,
    BACKOFF_MAX_MS = 5000,
    BODY_MAX = 64 << 20
};

struct hk_exporter {
    const struct hk_otlp_options *options;
    struct hk_otlp_http *http;
    struct hk_rng rng;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct hk_span **ring; /* from here on under the lock */
    size_t head, n;
    bool stopping;
    int64_t stop_at_ms;
    struct hk_exporter_stats stats;
    struct hk_span **batch; /* from here on the thread's */
    size_t n_batch;
    struct hk_buf body, packed;
};

static int64_t clock_ms(clockid_t id)
{
    struct timespec ts = {0};
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

/* ---- the queue ---- */

void hk_exporter_add(struct hk_exporter *e, struct hk_span *span)
{
    (void)pthread_mutex_lock(&e->lock);
    bool full = !span || e->n == e->options->queue;
    if (full) {
        e->stats.dropped++;
    } else {
        e->ring[(e->head + e->n) % e->options->queue] = span;
        if (++e->n == e->options->batch)
            (void)pthread_cond_signal(&e->changed);
    }
    (void)pthread_mutex_unlock(&e->lock);
    if (full)
        hk_mem_free(span);
}

static void wait_until(struct hk_exporter *e, int64_t at_ms)
{
    struct timespec at = {.tv_sec = (time_t)(at_ms / 1000), .tv_nsec = (long)(at_ms % 1000) * 1000000};
    (void)pthread_cond_timedwait(&e->changed, &e->lock, &at);
}

/* Waits for a batch, or for the time to send a smaller one. False: it is over. */
static bool take_batch(struct hk_exporter *e)
{
    int64_t due_ms = now_ms() + (int64_t)e->options->schedule_ms;
    (void)pthread_mutex_lock(&e->lock);
    while (!e->stopping && e->n < e->options->batch) {
        if (now_ms() >= due_ms) {
            if (e->n > 0)
                break;
            due_ms = now_ms() + (int64_t)e->options->schedule_ms;
        }
        wait_until(e, due_ms);
    }
    bool late = e->stopping && now_ms() >= e->stop_at_ms;
    for (e->n_batch = 0; !late && e->n > 0 && e->n_batch < e->options->batch; e->n--) {
        e->batch[e->n_batch++] = e->ring[e->head];
        e->head = (e->head + 1) % e->options->queue;
    }
    (void)pthread_mutex_unlock(&e->lock);
    return e->n_batch > 0;
}

/* ---- sending ---- */

static bool hurry(void *arg)
{
    struct hk_exporter *e = arg;
    (void)pthread_mutex_lock(&e->lock);
    bool late = e->stopping && now_ms() >= e->stop_at_ms;
    (void)pthread_mutex_unlock(&e->lock);
    return late;
}

static bool may_pass(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* Counts what became of the batch, or notes that it is tried again. */
static void note(struct hk_exporter *e, const struct hk_otlp_answer *answer, bool again)
{
    (void)pthread_mutex_lock(&e->lock);
    struct hk_exporter_stats *s = &e->stats;
    s->failing = answer->status < 200 || answer->status > 299;
    if (s->failing && answer->status)
        (void)snprintf(s->error, sizeof s->error, "the collector answered HTTP %d", answer->status);
    else if (s->failing)
        (void)snprintf(s->error, sizeof s->error, "%s", answer->error);
    if (!s->failing)
        s->sent += e->n_batch;
    else if (!again)
        s->failed += e->n_batch;
    (void)pthread_mutex_unlock(&e->lock);
}

/* False: there is no time left for another try. Someone who wants us to stop does not wait for a collector that is down. */
static bool pause_before_retry(struct hk_exporter *e, uint64_t wait_ms, int64_t end_ms)
{
    int64_t at_ms =
        now_ms() + 1 + (int64_t)wait_ms; /* now_ms() leaves off a part of a millisecond: never early */
    (void)pthread_mutex_lock(&e->lock);
    while (!e->stopping && at_ms < end_ms && now_ms() < at_ms)
        wait_until(e, at_ms);
    bool go_on = !e->stopping && at_ms < end_ms;
    (void)pthread_mutex_unlock(&e->lock);
    return go_on;
}

static uint64_t backoff_ms(struct hk_exporter *e, unsigned tries, uint64_t asked_ms)
{
    uint64_t most = (uint64_t)BACKOFF_MS << (tries < 4 ? tries : 4);
    uint64_t wait = hk_rng_between(&e->rng, most / 2, most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS);
    return wait > asked_ms ? wait : asked_ms;
}

static void send_batch(struct hk_exporter *e, struct hk_str body)
{
    const struct hk_otlp_options *o = e->options;
    int64_t end_ms = now_ms() + (int64_t)o->export_ms;
    for (unsigned tries = 0;; tries++) {
        struct hk_otlp_answer answer;
        int64_t left = end_ms - now_ms();
        uint64_t timeout = left > 0 && (uint64_t)left < o->timeout_ms ? (uint64_t)left : o->timeout_ms;
        hk_otlp_http_post(e->http, body, timeout, clock_ms(CLOCK_REALTIME), &answer);
        bool again = may_pass(answer.status);
        if (again)
            note(e, &answer, true);
        again = again && pause_before_retry(e, backoff_ms(e, tries, answer.retry_after_ms), end_ms);
        if (again)
            continue;
        note(e, &answer, false);
        return;
    }
}

static void export_batch(struct hk_exporter *e)
{
    hk_buf_reset(&e->body);
    if (e->options->json)
        hk_otlp_json(&e->options->resource, e->batch, e->n_batch, &e->body);
    else
        hk_otlp_protobuf(&e->options->resource, e->batch, e->n_batch, &e->body);
    struct hk_otlp_answer none = {.error = "no memory for the request"};
    enum hk_code rc = hk_buf_status(&e->body);
    if (rc == HK_OK && e->options->gzip) {
        hk_buf_reset(&e->packed);
        rc = hk_gzip(hk_buf_str(&e->body), &e->packed);
    }
    if (rc == HK_OK)
        send_batch(e, hk_buf_str(e->options->gzip ? &e->packed : &e->body));
    else
        note(e, &none, false);
    for (size_t i = 0; i < e->n_batch; i++)
        hk_mem_free(e->batch[i]);
}

static void *run(void *arg)
{
    struct hk_exporter *e = arg;
    while (take_batch(e))
        export_batch(e);
    return NULL;
}

/* ---- life ---- */

static void free_exporter(struct hk_exporter *e)
{
    for (size_t i = 0; e->ring && i < e->n; i++)
        hk_mem_free(e->ring[(e->head + i) % e->options->queue]);
    hk_otlp_http_close(e->http);
    hk_buf_fini(&e->body);
    hk_buf_fini(&e->packed);
    hk_mem_free(e->ring);
    hk_mem_free(e->batch);
    (void)pthread_cond_destroy(&e->changed);
    (void)pthread_mutex_destroy(&e->lock);
    hk_mem_free(e);
}

static void init_waiting(struct hk_exporter *e)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&e->lock, NULL);
    (void)pthread_cond_init(&e->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

enum hk_code hk_exporter_start(const struct hk_otlp_options *o, struct hk_exporter **out, struct hk_err *err)
{
    struct hk_exporter *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
    e->options = o;
    init_waiting(e);
    hk_rng_seed(&e->rng, (uint64_t)now_ms(), HK_RNG_BACKOFF);
    hk_buf_init(&e->body, BODY_MAX);
    hk_buf_init(&e->packed, BODY_MAX);
    e->ring = hk_mem_zalloc(o->queue, sizeof(struct hk_span *));
    e->batch = hk_mem_zalloc(o->batch, sizeof(struct hk_span *));
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
                                          .arg = e};
    enum hk_code rc = e->ring && e->batch ? hk_otlp_http_open(&target, &e->http, err)
                                          : hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
    if (rc == HK_OK && pthread_create(&e->thread, NULL, run, e) != 0)
        rc = hk_err_set(err, HK_NOMEM, "no thread for telemetry");
    if (rc != HK_OK) {
        free_exporter(e);
        return rc;
    }
    *out = e;
    return HK_OK;
}

void hk_exporter_stats(struct hk_exporter *e, struct hk_exporter_stats *out)
{
    (void)pthread_mutex_lock(&e->lock);
    *out = e->stats;
    (void)pthread_mutex_unlock(&e->lock);
}

void hk_exporter_stop(struct hk_exporter *e, uint64_t flush_ms, struct hk_exporter_stats *out)
{
    (void)pthread_mutex_lock(&e->lock);
    e->stopping = true;
    e->stop_at_ms = now_ms() + (int64_t)flush_ms;
    (void)pthread_cond_signal(&e->changed);
    (void)pthread_mutex_unlock(&e->lock);
    (void)pthread_join(e->thread, NULL);
    e->stats.failed += e->n;
    if (out)
        *out = e->stats;
    free_exporter(e);
}
