/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers are those of opentelemetry/proto/metrics/v1/metrics.proto, each named where it is used. */
#include <string.h>

#include "base/str.h"
#include "observe/otlp_impl.h"
#include "observe/otlp_metrics.h"
#include "observe/protobuf.h"

enum {
    CUMULATIVE = 2, /* AggregationTemporality */
    LABELS_MAX = 8,
    LABEL_MAX = 4096
};

struct writer {
    struct hk_buf *out;
    struct hk_json json; /* of the JSON writer */
    int64_t now_ns;
    const struct hk_metric_def *def;
    bool open;         /* the metric at hand has a series */
    size_t at, data_at; /* of the protobuf writer: the metric, and its data */
    /* of the series at hand */
    struct hk_buf text;
    struct {
        size_t key, key_len, value, value_len; /* in `text` */
    } labels[LABELS_MAX];
    size_t n_labels;
};

/* ---- labels ---- */

/* Of a="b",c="d", as Prometheus escapes it. */
static void read_labels(struct writer *w, const char *labels)
{
    hk_buf_reset(&w->text);
    for (w->n_labels = 0; *labels && w->n_labels < LABELS_MAX; w->n_labels++) {
        size_t key_len = strcspn(labels, "=");
        w->labels[w->n_labels].key = w->text.len;
        w->labels[w->n_labels].key_len = key_len;
        (void)hk_buf_add(&w->text, labels, key_len);
        w->labels[w->n_labels].value = w->text.len;
        for (labels += key_len + 2; *labels && *labels != '"'; labels++) {
            bool escaped = labels[0] == '\\' && labels[1];
            labels += escaped;
            (void)hk_buf_addc(&w->text, escaped && *labels == 'n' ? '\n' : *labels);
        }
        w->labels[w->n_labels].value_len = w->text.len - w->labels[w->n_labels].value;
        labels += *labels == '"';
        labels += *labels == ',';
    }
}

static struct hk_str label_key(const struct writer *w, size_t i)
{
    return (struct hk_str){hk_buf_cstr(&w->text) + w->labels[i].key, w->labels[i].key_len};
}

static struct hk_str label_value(const struct writer *w, size_t i)
{
    return (struct hk_str){hk_buf_cstr(&w->text) + w->labels[i].value, w->labels[i].value_len};
}

/* ---- numbers ---- */

static double scaled(const struct hk_metric_def *def, int64_t value)
{
    double by = 1;
    for (unsigned i = 0; i < def->decimals; i++)
        by *= 10;
    return (double)value / by;
}

static int64_t since_ns(const struct hk_metric_sample *s)
{
    return s->since_ms * 1000000;
}

static const char *unit_of(const struct hk_metric_def *def)
{
    return strstr(def->name, "_seconds") ? "s" : "";
}

/* ---- protobuf ---- */

/* KeyValue: key 1, value 2; AnyValue: string_value 1. */
static void pb_labels(struct writer *w, unsigned field)
{
    for (size_t i = 0; i < w->n_labels; i++) {
        size_t pair = hk_pb_open(w->out, field);
        hk_pb_text(w->out, 1, label_key(w, i));
        size_t value = hk_pb_open(w->out, 2);
        hk_pb_text(w->out, 1, label_value(w, i));
        hk_pb_close(w->out, value);
        hk_pb_close(w->out, pair);
    }
}

/* NumberDataPoint: start_time_unix_nano 2, time_unix_nano 3, as_double 4, as_int 6, attributes 7. */
static void pb_number_point(struct writer *w, const struct hk_metric_sample *s)
{
    size_t at = hk_pb_open(w->out, 1); /* Gauge and Sum: data_points 1 */
    hk_pb_fixed(w->out, 2, (uint64_t)since_ns(s), 8);
    hk_pb_fixed(w->out, 3, (uint64_t)w->now_ns, 8);
    if (s->def->decimals)
        hk_pb_double(w->out, 4, scaled(s->def, s->value));
    else
        hk_pb_fixed(w->out, 6, (uint64_t)s->value, 8);
    pb_labels(w, 7);
    hk_pb_close(w->out, at);
}

/* HistogramDataPoint: start 2, time 3, count 4, sum 5, bucket_counts 6, explicit_bounds 7, attributes 9. */
static void pb_histogram_point(struct writer *w, const struct hk_metric_sample *s)
{
    uint64_t bounds[HK_METRIC_BOUNDS];
    size_t at = hk_pb_open(w->out, 1); /* Histogram: data_points 1 */
    for (size_t i = 0; i < s->def->n_bounds; i++) {
        double bound = scaled(s->def, (int64_t)s->def->bounds[i]);
        memcpy(&bounds[i], &bound, sizeof bound);
    }
    hk_pb_fixed(w->out, 2, (uint64_t)since_ns(s), 8);
    hk_pb_fixed(w->out, 3, (uint64_t)w->now_ns, 8);
    if (s->count) /* as the classes write it: nothing that is 0 anyway */
        hk_pb_fixed(w->out, 4, s->count, 8);
    hk_pb_double(w->out, 5, scaled(s->def, s->sum));
    hk_pb_packed(w->out, 6, s->counts, s->def->n_bounds + 1);
    hk_pb_packed(w->out, 7, bounds, s->def->n_bounds);
    pb_labels(w, 9);
    hk_pb_close(w->out, at);
}

/* Metric: name 1, description 2, unit 3, gauge 5, sum 7, histogram 9. */
static void pb_begin(struct writer *w)
{
    static const unsigned data[] = {
        [HK_METRIC_COUNTER] = 7, [HK_METRIC_GAUGE] = 5, [HK_METRIC_HISTOGRAM] = 9};
    w->at = hk_pb_open(w->out, 2); /* ScopeMetrics.metrics */
    hk_pb_text(w->out, 1, hk_str_of(w->def->name));
    hk_pb_text(w->out, 2, hk_str_of(w->def->help));
    if (unit_of(w->def)[0])
        hk_pb_text(w->out, 3, hk_str_of(unit_of(w->def)));
    w->data_at = hk_pb_open(w->out, data[w->def->type]);
    w->open = true;
}

/* Sum and Histogram: aggregation_temporality 2; Sum: is_monotonic 3. */
static void pb_end(struct writer *w)
{
    if (!w->open)
        return;
    if (w->def->type != HK_METRIC_GAUGE)
        hk_pb_number(w->out, 2, CUMULATIVE);
    if (w->def->type == HK_METRIC_COUNTER)
        hk_pb_number(w->out, 3, 1);
    hk_pb_close(w->out, w->data_at);
    hk_pb_close(w->out, w->at);
    w->open = false;
}

static void pb_sample(void *arg, const struct hk_metric_def *def, const struct hk_metric_sample *s)
{
    struct writer *w = arg;
    if (!s) {
        pb_end(w);
        w->def = def;
        return;
    }
    if (!w->open)
        pb_begin(w);
    read_labels(w, s->labels);
    if (def->type == HK_METRIC_HISTOGRAM)
        pb_histogram_point(w, s);
    else
        pb_number_point(w, s);
}

/* A series without its labels would be another one. */
static void finish(struct writer *w, bool whole)
{
    if (hk_buf_status(w->out) == HK_OK && (!whole || hk_buf_status(&w->text) != HK_OK))
        w->out->status = HK_NOMEM;
    hk_buf_fini(&w->text);
}

void hk_otlp_metrics_protobuf(const struct hk_resource *resource, struct hk_metrics *metrics, int64_t now_ns,
                              struct hk_buf *out)
{
    struct writer w = {.out = out, .now_ns = now_ns};
    hk_buf_init(&w.text, LABEL_MAX);
    size_t resource_metrics = hk_pb_open(out, 1);
    hk_otlp_pb_resource(out, resource);
    size_t scope_metrics = hk_pb_open(out, 2);
    hk_otlp_pb_scope(out, resource);
    bool whole = hk_metrics_each(metrics, pb_sample, &w);
    pb_end(&w);
    hk_pb_close(out, scope_metrics);
    hk_pb_close(out, resource_metrics);
    finish(&w, whole);
}

/* ---- JSON: 64-bit numbers as strings, enums as numbers ---- */

static void js_labels(struct writer *w)
{
    hk_json_key(&w->json, "attributes");
    hk_json_array(&w->json);
    for (size_t i = 0; i < w->n_labels; i++) {
        hk_json_object(&w->json);
        hk_otlp_js_text(&w->json, "key", label_key(w, i));
        hk_json_key(&w->json, "value");
        hk_json_object(&w->json);
        hk_otlp_js_text(&w->json, "stringValue", label_value(w, i));
        hk_json_end(&w->json);
        hk_json_end(&w->json);
    }
    hk_json_end(&w->json);
}

static void js_i64(struct hk_json *json, const char *key, int64_t value)
{
    struct hk_buf text;
    hk_buf_init(&text, 32);
    hk_buf_addf(&text, "%lld", (long long)value);
    hk_otlp_js_text(json, key, hk_buf_str(&text));
    hk_buf_fini(&text);
}

static void js_number(struct writer *w, const struct hk_metric_sample *s)
{
    if (!s->def->decimals) {
        js_i64(&w->json, "asInt", s->value);
        return;
    }
    hk_json_key(&w->json, "asDouble");
    hk_json_double(&w->json, scaled(s->def, s->value));
}

static void js_histogram(struct writer *w, const struct hk_metric_sample *s)
{
    hk_otlp_js_u64(&w->json, "count", s->count);
    hk_json_key(&w->json, "sum");
    hk_json_double(&w->json, scaled(s->def, s->sum));
    hk_json_key(&w->json, "bucketCounts");
    hk_json_array(&w->json);
    for (size_t i = 0; i <= s->def->n_bounds; i++) {
        struct hk_buf text;
        hk_buf_init(&text, 32);
        hk_buf_addf(&text, "%llu", (unsigned long long)s->counts[i]);
        hk_json_str(&w->json, hk_buf_str(&text));
        hk_buf_fini(&text);
    }
    hk_json_end(&w->json);
    hk_json_key(&w->json, "explicitBounds");
    hk_json_array(&w->json);
    for (size_t i = 0; i < s->def->n_bounds; i++)
        hk_json_double(&w->json, scaled(s->def, (int64_t)s->def->bounds[i]));
    hk_json_end(&w->json);
}

static void js_begin(struct writer *w)
{
    static const char *const data[] = {
        [HK_METRIC_COUNTER] = "sum", [HK_METRIC_GAUGE] = "gauge", [HK_METRIC_HISTOGRAM] = "histogram"};
    hk_json_object(&w->json);
    hk_otlp_js_text(&w->json, "name", hk_str_of(w->def->name));
    hk_otlp_js_text(&w->json, "description", hk_str_of(w->def->help));
    hk_otlp_js_text(&w->json, "unit", hk_str_of(unit_of(w->def)));
    hk_json_key(&w->json, data[w->def->type]);
    hk_json_object(&w->json);
    if (w->def->type != HK_METRIC_GAUGE) {
        hk_json_key(&w->json, "aggregationTemporality");
        hk_json_u64(&w->json, CUMULATIVE);
    }
    if (w->def->type == HK_METRIC_COUNTER) {
        hk_json_key(&w->json, "isMonotonic");
        hk_json_bool(&w->json, true);
    }
    hk_json_key(&w->json, "dataPoints");
    hk_json_array(&w->json);
    w->open = true;
}

static void js_end(struct writer *w)
{
    for (int i = 0; w->open && i < 3; i++) /* data points, data, the metric */
        hk_json_end(&w->json);
    w->open = false;
}

static void js_sample(void *arg, const struct hk_metric_def *def, const struct hk_metric_sample *s)
{
    struct writer *w = arg;
    if (!s) {
        js_end(w);
        w->def = def;
        return;
    }
    if (!w->open)
        js_begin(w);
    read_labels(w, s->labels);
    hk_json_object(&w->json);
    js_labels(w);
    hk_otlp_js_u64(&w->json, "startTimeUnixNano", (uint64_t)since_ns(s));
    hk_otlp_js_u64(&w->json, "timeUnixNano", (uint64_t)w->now_ns);
    if (def->type == HK_METRIC_HISTOGRAM)
        js_histogram(w, s);
    else
        js_number(w, s);
    hk_json_end(&w->json);
}

void hk_otlp_metrics_json(const struct hk_resource *resource, struct hk_metrics *metrics, int64_t now_ns,
                          struct hk_buf *out)
{
    struct writer w = {.out = out, .now_ns = now_ns};
    hk_buf_init(&w.text, LABEL_MAX);
    hk_json_init(&w.json, out, false);
    hk_json_object(&w.json);
    hk_otlp_js_begin(&w.json, "resourceMetrics");
    hk_otlp_js_resource(&w.json, resource);
    hk_otlp_js_begin(&w.json, "scopeMetrics");
    hk_otlp_js_scope(&w.json, resource);
    hk_json_key(&w.json, "metrics");
    hk_json_array(&w.json);
    bool whole = hk_metrics_each(metrics, js_sample, &w);
    js_end(&w);
    hk_json_end(&w.json);
    hk_otlp_js_finish(&w.json);
    hk_otlp_js_finish(&w.json);
    hk_json_end(&w.json);
    finish(&w, whole);
}
