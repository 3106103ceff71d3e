/* SPDX-License-Identifier: Apache-2.0 */
/* Where spans or metrics go and how, as OpenTelemetry's environment variables have it (OTEL_*), over what a configuration says. */
#ifndef HK_OBSERVE_OTLP_OPTIONS_H
#define HK_OBSERVE_OTLP_OPTIONS_H

#include <hikyaku/error.h>

#include "base/proxy.h"
#include "observe/otlp.h"
#include "observe/trace.h"

struct hk_otlp_options { /* texts are its own */
    char *url;           /* whole, with /v1/traces or /v1/metrics; NULL: telemetry is off */
    bool json, gzip;
    char **headers; /* "Name: value" */
    size_t n_headers;
    char *ca_file, *cert_file, *key_file; /* NULL: not given */
    const struct hk_proxy *proxy;         /* as given, where it is for the url; NULL: none */
    uint64_t timeout_ms;                  /* of one request */
    uint64_t export_ms;                   /* for how long a batch is tried */
    uint64_t schedule_ms;                 /* how long spans wait for company; how often metrics are sent */
    uint32_t queue, batch;
    struct hk_sampler sampler;
    struct hk_resource resource;
};

/* What a configuration file says; the environment wins. */
struct hk_otlp_given {
    const char *endpoint; /* "" or NULL: none */
    bool json, gzip;

    struct {
        const char *name, *value;
    } headers[32];

    size_t n_headers;
    const struct hk_proxy *proxy; /* outlives the options; NULL: none */
    double sample;
    bool metrics;         /* the options are for metrics, not for traces: OTEL_EXPORTER_OTLP_METRICS_… */
    uint64_t interval_ms; /* of metrics */
    const char *instance_id, *relay, *version; /* of the resource */
};

struct hk_otlp_env {
    const char *(*get)(void *arg, const char *name); /* NULL: not set */
    /* A variable that makes no sense is passed over, as OpenTelemetry wants it, and told. */
    void (*warn)(void *arg, const char *variable, const char *why);
    void *arg;
};

/* HK_INVALID: what cannot be passed over (a protocol that we do not speak, an endpoint that is none), HK_NOMEM. */
enum hk_code hk_otlp_options_make(const struct hk_otlp_given *given, const struct hk_otlp_env *env,
                                  struct hk_otlp_options *out, struct hk_err *err) HK_MUSTCHECK;
void hk_otlp_options_free(struct hk_otlp_options *options); /* may be zeroed */

#endif
