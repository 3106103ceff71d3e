/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry as a part of the process: what the configuration and OTEL_* say, spans on the loop's thread, the exporters of spans and of
 * metrics on their own, and a word in the log when a collector stops taking them. Off unless an endpoint is set. */
#include <stdlib.h>
#include <time.h>

#include <hikyaku/hikyaku.h>

#include "base/mem.h"
#include "daemon/meters.h"
#include "daemon/part.h"
#include "daemon/spans.h"
#include "exec/clock.h"
#include "observe/otlp_export.h"
#include "observe/otlp_push.h"

enum {
    FLUSH_MS = 3000,
    TELL_EVERY_MS = 60000
};

struct telemetry {
    const struct hk_part_env *env;
    struct hk_otlp_options options;
    struct hk_exporter *exporter;
    struct hk_spans *spans;
    struct hk_onlooker watch; /* of the spans, whose calls go through us */
    struct hk_otlp_options push_options;
    struct hk_pusher *pusher; /* NULL: no metrics are sent */
    bool failing;             /* as it was last told */
    bool push_failing;        /* the same of metrics */
    uint64_t lost;            /* likewise */
    int64_t tell_at_ms;
};

/* ---- the environment ---- */

static const char *get_env(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

static void warn(void *arg, const char *variable, const char *why)
{
    struct telemetry *t = arg;
    struct hk_log_line line;
    hk_log_begin(&line, t->env->log, HK_LOG_WARN, "telemetry: a variable is not as it should be");
    hk_log_cstr(&line, "variable", variable);
    hk_log_cstr(&line, "why", why);
    hk_log_end(&line);
}

/* `out->url` NULL: they are not sent. */
static enum hk_code read_options(struct telemetry *t, bool metrics, struct hk_otlp_options *out,
                                 struct hk_err *err)
{
    const struct hk_conf_telemetry *conf = &t->env->config->telemetry;
    const struct hk_otlp_env env = {.get = get_env, .warn = warn, .arg = t};
    struct hk_otlp_given given = {.endpoint = conf->endpoint,
                                  .json = conf->protocol == HK_CONF_OTLP_JSON,
                                  .gzip = conf->compression == HK_CONF_COMPRESS_GZIP,
                                  .sample = conf->sample,
                                  .metrics = metrics,
                                  .interval_ms = conf->metrics_interval_ms,
                                  .instance_id = t->env->boot,
                                  .relay = t->env->name,
                                  .version = hk_version(),
                                  .proxy = hk_config_proxy_of(t->env->config, conf->proxy)};
    const struct hk_conf_header *header = NULL;
    if (!(metrics ? conf->metrics : conf->traces))
        return HK_OK;
    for (; (header = hk_conf_telemetry_header(conf, given.n_headers)) != NULL; given.n_headers++) {
        given.headers[given.n_headers].name = header->name;
        given.headers[given.n_headers].value = header->value;
    }
    return hk_otlp_options_make(&given, &env, out, err);
}

/* ---- what is told ---- */

static void log_failing(struct telemetry *t, const struct hk_exporter_stats *s)
{
    struct hk_log_line line;
    if (s->failing == t->failing)
        return;
    t->failing = s->failing;
    hk_log_begin(&line, t->env->log, s->failing ? HK_LOG_WARN : HK_LOG_INFO,
                 s->failing ? "telemetry is not taken" : "telemetry is taken again");
    hk_log_cstr(&line, "endpoint", t->options.url);
    if (s->failing)
        hk_log_cstr(&line, "error", s->error);
    hk_log_end(&line);
}

static void log_lost(struct telemetry *t, const struct hk_exporter_stats *s, int64_t now_ms)
{
    struct hk_log_line line;
    uint64_t lost = s->dropped + s->failed;
    if (lost == t->lost || now_ms < t->tell_at_ms)
        return;
    hk_log_begin(&line, t->env->log, HK_LOG_WARN, "spans lost");
    hk_log_i64(&line, "n", (int64_t)(lost - t->lost));
    hk_log_i64(&line, "dropped", (int64_t)s->dropped);
    hk_log_i64(&line, "failed", (int64_t)s->failed);
    hk_log_i64(&line, "sent", (int64_t)s->sent);
    hk_log_end(&line);
    t->lost = lost;
    t->tell_at_ms = now_ms + TELL_EVERY_MS;
}

static void log_pushing(struct telemetry *t)
{
    struct hk_log_line line;
    struct hk_pusher_stats s;
    hk_pusher_stats(t->pusher, &s);
    if (t->env->metrics) {
        hk_metrics_set(t->env->metrics, HK_METER_PUSHES, HK_METER_PUSH_SENT, 0, (int64_t)s.sent);
        hk_metrics_set(t->env->metrics, HK_METER_PUSHES, HK_METER_PUSH_FAILED, 0, (int64_t)s.failed);
    }
    if (s.failing == t->push_failing)
        return;
    t->push_failing = s.failing;
    hk_log_begin(&line, t->env->log, s.failing ? HK_LOG_WARN : HK_LOG_INFO,
                 s.failing ? "metrics are not taken" : "metrics are taken again");
    hk_log_cstr(&line, "endpoint", t->push_options.url);
    if (s.failing)
        hk_log_cstr(&line, "error", s.error);
    hk_log_end(&line);
}

static void beat(void *arg, int64_t now_ms, bool store_ok, const char *keyless)
{
    struct telemetry *t = arg;
    struct hk_exporter_stats stats;
    (void)store_ok, (void)keyless;
    if (t->pusher)
        log_pushing(t);
    if (!t->exporter)
        return;
    hk_exporter_stats(t->exporter, &stats);
    log_failing(t, &stats);
    log_lost(t, &stats, now_ms);
    if (!t->env->metrics)
        return;
    hk_metrics_set(t->env->metrics, HK_METER_SPANS, HK_METER_SPAN_SENT, 0, (int64_t)stats.sent);
    hk_metrics_set(t->env->metrics, HK_METER_SPANS, HK_METER_SPAN_FAILED, 0, (int64_t)stats.failed);
    hk_metrics_set(t->env->metrics, HK_METER_SPANS, HK_METER_SPAN_DROPPED, 0, (int64_t)stats.dropped);
}

/* ---- the relay's calls, passed on ---- */

static void begins(void *arg, const struct hk_try *attempt)
{
    const struct telemetry *t = arg;
    t->watch.attempt_begins(t->watch.arg, attempt);
}

static void ended(void *arg, const struct hk_try *attempt, const struct hk_facts *facts)
{
    const struct telemetry *t = arg;
    t->watch.attempt_ended(t->watch.arg, attempt, facts);
}

static void exchanged(void *arg, const struct hk_exchange *asked, const struct hk_exchanged *done)
{
    const struct telemetry *t = arg;
    t->watch.exchanged(t->watch.arg, asked, done);
}

static void lane(void *arg, enum hk_lane_event event, int64_t number)
{
    const struct telemetry *t = arg;
    t->watch.lane(t->watch.arg, event, number);
}

/* ---- life ---- */

static int64_t now_ns(void)
{
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void add_span(void *arg, struct hk_span *span)
{
    hk_exporter_add(arg, span);
}

static void log_stopped(const struct telemetry *t, const struct hk_exporter_stats *s)
{
    struct hk_log_line line;
    hk_log_begin(&line, t->env->log, s->dropped + s->failed > t->lost ? HK_LOG_WARN : HK_LOG_INFO,
                 "telemetry stopped");
    hk_log_i64(&line, "sent", (int64_t)s->sent);
    hk_log_i64(&line, "dropped", (int64_t)s->dropped);
    hk_log_i64(&line, "failed", (int64_t)s->failed);
    if (s->failing)
        hk_log_cstr(&line, "error", s->error);
    hk_log_end(&line);
}

/* Both have the same time, and not one after the other. */
static void stop(void *part)
{
    struct telemetry *t = part;
    struct hk_exporter_stats stats;
    hk_spans_free(t->spans);
    if (t->pusher)
        hk_pusher_end(t->pusher, FLUSH_MS);
    if (t->exporter) {
        hk_exporter_stop(t->exporter, FLUSH_MS, &stats);
        log_stopped(t, &stats);
    }
    hk_pusher_free(t->pusher);
    hk_otlp_options_free(&t->options);
    hk_otlp_options_free(&t->push_options);
    hk_mem_free(t);
}

static enum hk_code open_traces(struct telemetry *t, struct hk_err *err)
{
    enum hk_code rc = hk_exporter_start(&t->options, &t->exporter, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_spans_options spans = {.sampler = t->options.sampler,
                                           .seed = hk_clock_seed(),
                                           .add = add_span,
                                           .arg = t->exporter,
                                           .now_ns = now_ns};
    rc = hk_spans_new(&spans, t->env->config, &t->spans, err);
    if (rc == HK_OK)
        hk_spans_watch(t->spans, &t->watch);
    return rc;
}

static void log_started(const struct telemetry *t)
{
    struct hk_log_line line;
    const struct hk_otlp_options *o = t->exporter ? &t->options : &t->push_options;
    hk_log_begin(&line, t->env->log, HK_LOG_INFO, "telemetry started");
    hk_log_cstr(&line, "endpoint", o->url);
    hk_log_cstr(&line, "protocol", o->json ? "http/json" : "http/protobuf");
    if (t->pusher) {
        hk_log_cstr(&line, "metrics", t->push_options.url);
        hk_log_ms(&line, "every", t->push_options.schedule_ms);
    }
    hk_log_end(&line);
}

static enum hk_code start(const struct hk_part_env *env, void **out_part, struct hk_onlooker *out_watch,
                          struct hk_err *err)
{
    struct telemetry *t = hk_mem_zalloc(1, sizeof *t);
    if (!t)
        return hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
    t->env = env;
    enum hk_code rc = read_options(t, false, &t->options, err);
    if (rc == HK_OK)
        rc = read_options(t, true, &t->push_options, err);
    if (rc == HK_OK && t->options.url)
        rc = open_traces(t, err);
    if (rc == HK_OK && t->push_options.url && env->metrics)
        rc = hk_pusher_start(&t->push_options, env->metrics, &t->pusher, err);
    if (rc != HK_OK || (!t->exporter && !t->pusher)) {
        stop(t);
        return rc;
    }
    *out_watch = (struct hk_onlooker){.arg = t, .beat = beat};
    if (t->spans) {
        out_watch->attempt_begins = begins;
        out_watch->attempt_ended = ended;
        out_watch->exchanged = exchanged;
        out_watch->lane = lane;
    }
    log_started(t);
    *out_part = t;
    return HK_OK;
}

/* Masks and destinations may be others; where spans go waits for a restart. */
static void reloaded(void *part)
{
    struct telemetry *t = part;
    struct hk_log_line line;
    struct hk_err err = {.message = ""};
    if (!t->spans || hk_spans_configure(t->spans, t->env->config, &err) == HK_OK)
        return;
    hk_log_begin(&line, t->env->log, HK_LOG_ERROR, "telemetry keeps its old configuration");
    hk_log_cstr(&line, "error", err.message);
    hk_log_end(&line);
}

const struct hk_part_ops hk_part_telemetry = {
    .name = "telemetry", .start = start, .reloaded = reloaded, .stop = stop};
