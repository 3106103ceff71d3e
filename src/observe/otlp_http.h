/* SPDX-License-Identifier: Apache-2.0 */
/* One POST after another to a collector, blocking, on the exporter's own thread. libcurl stays in otlp_http.c. */
#ifndef HK_OBSERVE_OTLP_HTTP_H
#define HK_OBSERVE_OTLP_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/proxy.h"

struct hk_otlp_http;

struct hk_otlp_target { /* texts are copied */
    const char *url;
    const char *content_type;
    bool gzip;                  /* bodies are compressed */
    const char *const *headers; /* "Name: value" */
    size_t n_headers;
    const char *ca_file, *cert_file, *key_file; /* NULL = the system's, none */
    const struct hk_proxy *proxy;               /* NULL = none */
    bool (*hurry)(
        void *arg); /* asked now and then while waiting: true ends the request. From the caller's thread */
    void *arg;
};

struct hk_otlp_answer {
    int status; /* 0 = none came */
    uint64_t retry_after_ms;
    char error[160]; /* when none came */
};

enum hk_code hk_otlp_http_open(const struct hk_otlp_target *target, struct hk_otlp_http **out,
                               struct hk_err *err) HK_MUSTCHECK;
void hk_otlp_http_post(struct hk_otlp_http *http, struct hk_str body, uint64_t timeout_ms, int64_t wall_ms,
                       struct hk_otlp_answer *out);
void hk_otlp_http_close(struct hk_otlp_http *http);

#endif
