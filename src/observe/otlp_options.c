/* SPDX-License-Identifier: Apache-2.0 */
/* OTEL_* as https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and …/protocol/exporter/ have it:
 * an empty variable is one that is not set, what is for traces alone wins over what is for all signals, and what cannot be
 * understood is passed over with a warning. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/url.h"
#include "observe/otlp_options.h"

#define TRACES_PATH  "/v1/traces"
#define METRICS_PATH "/v1/metrics"

enum {
    QUEUE = 8192, /* OpenTelemetry says 2048: attempts end in bursts, as they are settled */
    BATCH = 512,
    SCHEDULE_MS = 5000,
    EXPORT_MS = 30000,
    TIMEOUT_MS = 10000,
    RESOURCE_MAX = 64,
    HEADERS_MAX = 64,
    QUEUE_MAX = 1 << 20,
    VALUE_MAX = 4096,
    NAME_ROOM = 96
};

static struct hk_str get(const struct hk_otlp_env *env, const char *name)
{
    return hk_str_trim(hk_str_of(env->get(env->arg, name)));
}

/* Of two variables: the one for traces alone, else the one for all. */
static struct hk_str get_either(const struct hk_otlp_env *env, const char *traces, const char *all,
                                const char **out_name)
{
    struct hk_str value = get(env, traces);
    *out_name = value.len ? traces : all;
    return value.len ? value : get(env, all);
}

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory for telemetry");
}

static enum hk_code keep(char **out, struct hk_str s, struct hk_err *err)
{
    char *copy = hk_mem_strndup(s.ptr ? s.ptr : "", s.len);
    if (!copy)
        return no_memory(err);
    hk_mem_free(*out);
    *out = copy;
    return HK_OK;
}

/* OTEL_…TRACES… has the same name for metrics, with METRICS in it. */
static const char *of_metrics(const char *name, char room[NAME_ROOM])
{
    const char *at = strstr(name, "TRACES");
    if (!at)
        return name;
    (void)snprintf(room, NAME_ROOM, "%.*sMETRICS%s", (int)(at - name), name, at + strlen("TRACES"));
    return room;
}

/* ---- is it on, and where to ---- */

static bool names_otlp(struct hk_str list)
{
    while (list.ptr)
        if (hk_str_eqi(hk_str_trim(hk_str_cut(&list, ',')), hk_str_of("otlp")))
            return true;
    return false;
}

static bool is_off(const struct hk_otlp_env *env, bool metrics)
{
    struct hk_str exporter = get(env, "OTEL_TRACES_EXPORTER");
    if (hk_str_eqi(get(env, "OTEL_SDK_DISABLED"), hk_str_of("true")) ||
        hk_str_eqi(exporter, hk_str_of("none")))
        return true;
    if (!exporter.len || names_otlp(exporter))
        return false;
    env->warn(env->arg, "OTEL_TRACES_EXPORTER",
              metrics ? "only otlp and none are known: no metrics are sent"
                      : "only otlp and none are known: no traces are sent");
    return true;
}

static bool is_url(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] <= ' ' || (unsigned char)s.ptr[i] >= 0x7f)
            return false;
    size_t host = hk_str_starts(s, hk_str_of("http://"))    ? 7
                  : hk_str_starts(s, hk_str_of("https://")) ? 8
                                                            : 0;
    return host && s.len > host && s.ptr[host] != '/';
}

static bool ends_with(struct hk_str s, const char *end)
{
    size_t len = strlen(end);
    return s.len > len && memcmp(s.ptr + s.len - len, end, len) == 0;
}

/* One that is whole, for whichever signal, is taken for both. */
static enum hk_code join_url(struct hk_str base, bool metrics, struct hk_otlp_options *out,
                             struct hk_err *err)
{
    while (base.len && base.ptr[base.len - 1] == '/')
        base.len--;
    if (ends_with(base, TRACES_PATH))
        base.len -= strlen(TRACES_PATH);
    else if (ends_with(base, METRICS_PATH))
        base.len -= strlen(METRICS_PATH);
    struct hk_buf url;
    hk_buf_init(&url, VALUE_MAX);
    (void)hk_buf_add(&url, base.ptr, base.len);
    (void)hk_buf_adds(&url, metrics ? METRICS_PATH : TRACES_PATH);
    enum hk_code rc = hk_buf_status(&url);
    if (rc == HK_OK)
        rc = keep(&out->url, hk_buf_str(&url), err);
    else if (rc == HK_TOOBIG)
        rc = hk_err_set(err, HK_INVALID, "the telemetry endpoint is too long");
    hk_buf_fini(&url);
    return rc;
}

static enum hk_code set_url(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                            struct hk_otlp_options *out, struct hk_err *err)
{
    const char *name;
    char room[NAME_ROOM];
    struct hk_str traces = get(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    struct hk_str value =
        get_either(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", &name);
    struct hk_str base = value.len ? value : hk_str_of(given->endpoint);
    if (!base.len)
        return HK_OK;
    if (!is_url(base))
        return hk_err_set(err, HK_INVALID, "%s must be a URL that begins with http:// or https://",
                          !value.len       ? "telemetry.endpoint"
                          : given->metrics ? of_metrics(name, room)
                                           : name);
    return traces.len ? keep(&out->url, traces, err) : join_url(base, given->metrics, out, err);
}

static enum hk_code set_protocol(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                                 struct hk_otlp_options *out, struct hk_err *err)
{
    const char *name;
    char room[NAME_ROOM];
    struct hk_str value =
        get_either(env, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL", &name);
    out->json = given->json;
    if (hk_str_eq(value, hk_str_of("grpc")))
        return hk_err_set(
            err, HK_INVALID,
            "%s is grpc, which is not spoken here: use http/protobuf or http/json (collectors take both, usually "
            "on port 4318)",
            given->metrics ? of_metrics(name, room) : name);
    if (hk_str_eq(value, hk_str_of("http/json")) || hk_str_eq(value, hk_str_of("http/protobuf")))
        out->json = hk_str_eq(value, hk_str_of("http/json"));
    else if (value.len)
        env->warn(env->arg, name, "must be http/protobuf or http/json: passed over");
    return HK_OK;
}

/* ---- lists of key=value ---- */

static int hex_digit(char c)
{
    c = hk_ascii_lower(c);
    if (hk_ascii_isdigit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-encoding undone; false: it is broken, or hides a control character. */
static bool decode(struct hk_str s, struct hk_buf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '%') {
            int high = i + 2 < s.len ? hex_digit(s.ptr[i + 1]) : -1;
            int low = i + 2 < s.len ? hex_digit(s.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if ((unsigned char)c < ' ' || c == 0x7f)
            return false;
        (void)hk_buf_addc(out, c);
    }
    return hk_buf_status(out) != HK_TOOBIG;
}

typedef enum hk_code pair_fn(struct hk_otlp_options *out, struct hk_str key, struct hk_str value,
                             struct hk_err *err);

static enum hk_code read_pair(struct hk_otlp_options *out, struct hk_str pair, pair_fn *fn, bool *bad,
                              struct hk_err *err)
{
    struct hk_buf value;
    struct hk_str key = hk_str_trim(hk_str_cut(&pair, '='));
    enum hk_code rc = HK_OK;
    hk_buf_init(&value, VALUE_MAX);
    if (!key.len || !pair.ptr || !decode(hk_str_trim(pair), &value))
        *bad = true;
    else if (hk_buf_status(&value) != HK_OK)
        rc = no_memory(err);
    else
        rc = fn(out, key, hk_buf_str(&value), err);
    hk_buf_fini(&value);
    return rc;
}

static enum hk_code read_pairs(const struct hk_otlp_env *env, struct hk_otlp_options *out, const char *name,
                               struct hk_str list, pair_fn *fn, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    bool bad = false;
    while (list.ptr && rc == HK_OK) {
        struct hk_str pair = hk_str_trim(hk_str_cut(&list, ','));
        if (pair.len)
            rc = read_pair(out, pair, fn, &bad, err);
    }
    if (bad)
        env->warn(env->arg, name,
                  "must be a list of key=value, values percent-encoded: a part of it was passed over");
    return rc;
}

/* ---- header fields ---- */

static bool is_field_name(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]) &&
            !strchr("!#$%&'*+-.^_`|~", s.ptr[i]))
            return false;
    return s.len > 0 && s.len < VALUE_MAX;
}

/* As add_header writes lines. */
static bool is_line_of(const char *line, struct hk_str name)
{
    size_t len = strcspn(line, ":;");
    return hk_str_eqi((struct hk_str){line, len}, name);
}

/* A later one of the same name takes the place of the earlier. */
static enum hk_code add_header(struct hk_otlp_options *out, struct hk_str name, struct hk_str value,
                               struct hk_err *err)
{
    struct hk_buf line;
    size_t at = 0;
    if (!is_field_name(name))
        return HK_OK;
    while (at < out->n_headers && !is_line_of(out->headers[at], name))
        at++;
    if (at == HEADERS_MAX)
        return HK_OK;
    hk_buf_init(&line, VALUE_MAX * 2);
    (void)hk_buf_add(&line, name.ptr, name.len);
    (void)hk_buf_adds(&line, value.len ? ": " : ";"); /* libcurl's way to write an empty one */
    (void)hk_buf_add(&line, value.ptr ? value.ptr : "", value.len);
    enum hk_code rc =
        hk_buf_status(&line) == HK_OK ? keep(&out->headers[at], hk_buf_str(&line), err) : no_memory(err);
    hk_buf_fini(&line);
    if (rc == HK_OK && at == out->n_headers)
        out->n_headers++;
    return rc;
}

static enum hk_code set_headers(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                                struct hk_otlp_options *out, struct hk_err *err)
{
    const char *name;
    struct hk_str list =
        get_either(env, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", &name);
    enum hk_code rc = HK_OK;
    out->headers = hk_mem_zalloc(HEADERS_MAX, sizeof(char *));
    if (!out->headers)
        return no_memory(err);
    for (size_t i = 0; i < given->n_headers && rc == HK_OK; i++)
        rc = add_header(out, hk_str_of(given->headers[i].name), hk_str_of(given->headers[i].value), err);
    return rc == HK_OK ? read_pairs(env, out, name, list, add_header, err) : rc;
}

/* ---- resource ---- */

static enum hk_code add_resource(struct hk_otlp_options *out, struct hk_str key, struct hk_str value,
                                 struct hk_err *err)
{
    struct hk_resource *r = &out->resource;
    size_t at = 0;
    while (at < r->n && !hk_str_eq(hk_str_of(r->attrs[at].key), key))
        at++;
    if (at == RESOURCE_MAX)
        return HK_OK;
    enum hk_code rc = keep(&r->attrs[at].key, key, err);
    if (rc == HK_OK)
        rc = keep(&r->attrs[at].value, value, err);
    if (at == r->n)
        r->n++; /* also a half one: it is freed */
    return rc;
}

static enum hk_code set_resource(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                                 struct hk_otlp_options *out, struct hk_err *err)
{
    static const char list[] = "OTEL_RESOURCE_ATTRIBUTES";
    struct hk_str name = get(env, "OTEL_SERVICE_NAME");
    const char *const own[][2] = {{"service.name", "hikyaku"},
                                  {"service.version", given->version},
                                  {"service.instance.id", given->instance_id},
                                  {"hikyaku.relay", given->relay}};
    enum hk_code rc = HK_OK;
    out->resource.version = given->version;
    out->resource.attrs = hk_mem_zalloc(RESOURCE_MAX, sizeof out->resource.attrs[0]);
    if (!out->resource.attrs)
        return no_memory(err);
    for (size_t i = 0; i < sizeof own / sizeof own[0] && rc == HK_OK; i++)
        rc = add_resource(out, hk_str_of(own[i][0]), hk_str_of(own[i][1]), err);
    if (rc == HK_OK)
        rc = read_pairs(env, out, list, get(env, list), add_resource, err);
    return rc == HK_OK && name.len ? add_resource(out, hk_str_of("service.name"), name, err) : rc;
}

/* ---- numbers, sampler, files ---- */

static uint64_t number(const struct hk_otlp_env *env, const char *name, uint64_t least, uint64_t most,
                       uint64_t fallback)
{
    uint64_t value;
    struct hk_str text = get(env, name);
    if (!text.len)
        return fallback;
    if (hk_parse_u64(text, &value, NULL) == HK_OK && value >= least && value <= most)
        return value;
    env->warn(env->arg, name, "is not a number, or out of range: passed over");
    return fallback;
}

static void set_numbers(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                        struct hk_otlp_options *out)
{
    const uint64_t hour = 3600000;
    uint64_t all = number(env, "OTEL_EXPORTER_OTLP_TIMEOUT", 1, hour, TIMEOUT_MS);
    out->timeout_ms = number(env, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", 1, hour, all);
    out->export_ms = number(env, "OTEL_BSP_EXPORT_TIMEOUT", 1, hour, EXPORT_MS);
    out->schedule_ms = number(env, "OTEL_BSP_SCHEDULE_DELAY", 1, hour, SCHEDULE_MS);
    if (given->metrics) {
        out->export_ms = number(env, "OTEL_METRIC_EXPORT_TIMEOUT", 1, hour, EXPORT_MS);
        out->schedule_ms = number(env, "OTEL_METRIC_EXPORT_INTERVAL", 100, hour, given->interval_ms);
    }
    out->queue = (uint32_t)number(env, "OTEL_BSP_MAX_QUEUE_SIZE", 1, QUEUE_MAX, QUEUE);
    out->batch = (uint32_t)number(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, QUEUE_MAX, BATCH);
    if (out->batch > out->queue)
        out->batch = out->queue;
}

static void set_sampler(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                        struct hk_otlp_options *out)
{
    struct hk_str name = get(env, "OTEL_TRACES_SAMPLER"), arg = get(env, "OTEL_TRACES_SAMPLER_ARG");
    double ratio;
    out->sampler = (struct hk_sampler){.root = given->sample < 1 ? HK_SAMPLE_RATIO : HK_SAMPLE_ALWAYS,
                                       .parent_based = true,
                                       .ratio = given->sample};
    if (name.len && !hk_sampler_by_name(name, &out->sampler))
        env->warn(env->arg, "OTEL_TRACES_SAMPLER", "is not a sampler that is known here: passed over");
    if (!name.len || !arg.len || out->sampler.root != HK_SAMPLE_RATIO)
        return;
    if (hk_parse_decimal(arg, &ratio, NULL) == HK_OK && ratio <= 1)
        out->sampler.ratio = ratio;
    else
        env->warn(env->arg, "OTEL_TRACES_SAMPLER_ARG", "must be a number from 0 to 1: passed over");
}

static enum hk_code set_files(const struct hk_otlp_env *env, struct hk_otlp_options *out, struct hk_err *err)
{
    const struct {
        const char *traces, *all;
        char **file;
    } files[] = {{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE", &out->ca_file},
                 {"OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
                  &out->cert_file},
                 {"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "OTEL_EXPORTER_OTLP_CLIENT_KEY", &out->key_file}};

    const char *name;
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && rc == HK_OK; i++) {
        struct hk_str path = get_either(env, files[i].traces, files[i].all, &name);
        if (path.len)
            rc = keep(files[i].file, path, err);
    }
    return rc;
}

static void set_compression(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                            struct hk_otlp_options *out)
{
    const char *name;
    struct hk_str value =
        get_either(env, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION", &name);
    bool gzip = hk_str_eq(value, hk_str_of("gzip"));
    out->gzip = value.len ? gzip : given->gzip;
    if (value.len && !gzip && !hk_str_eq(value, hk_str_of("none")))
        env->warn(env->arg, name, "must be gzip or none: nothing is compressed");
}

/* ---- the whole ---- */

static const char *get_of_metrics(void *arg, const char *name)
{
    const struct hk_otlp_env *env = arg;
    char room[NAME_ROOM];
    return env->get(env->arg, of_metrics(name, room));
}

static void warn_of_metrics(void *arg, const char *variable, const char *why)
{
    const struct hk_otlp_env *env = arg;
    char room[NAME_ROOM];
    env->warn(env->arg, of_metrics(variable, room), why);
}

enum hk_code hk_otlp_options_make(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                                  struct hk_otlp_options *out, struct hk_err *err)
{
    struct hk_otlp_env of_traces = *env;
    const struct hk_otlp_env renamed = {.get = get_of_metrics, .warn = warn_of_metrics, .arg = &of_traces};
    *out = (struct hk_otlp_options){.url = NULL};
    if (given->metrics)
        env = &renamed;
    if (is_off(env, given->metrics))
        return HK_OK;
    enum hk_code rc = set_url(given, env, out, err);
    if (rc == HK_OK && out->url && hk_proxy_is_for(given->proxy, hk_url_host(hk_str_of(out->url))))
        out->proxy = given->proxy;
    if (rc != HK_OK || !out->url)
        return rc;
    rc = set_protocol(given, env, out, err);
    if (rc == HK_OK)
        rc = set_headers(given, env, out, err);
    if (rc == HK_OK)
        rc = set_files(env, out, err);
    if (rc == HK_OK)
        rc = set_resource(given, env, out, err);
    if (rc != HK_OK) {
        hk_otlp_options_free(out);
        return rc;
    }
    set_numbers(given, env, out);
    set_sampler(given, env, out);
    set_compression(given, env, out);
    return HK_OK;
}

void hk_otlp_options_free(struct hk_otlp_options *o)
{
    for (size_t i = 0; i < o->n_headers; i++)
        hk_mem_free(o->headers[i]);
    for (size_t i = 0; i < o->resource.n; i++) {
        hk_mem_free(o->resource.attrs[i].key);
        hk_mem_free(o->resource.attrs[i].value);
    }
    hk_mem_free(o->headers);
    hk_mem_free(o->resource.attrs);
    hk_mem_free(o->url);
    hk_mem_free(o->ca_file);
    hk_mem_free(o->cert_file);
    hk_mem_free(o->key_file);
    *o = (struct hk_otlp_options){.url = NULL};
}
