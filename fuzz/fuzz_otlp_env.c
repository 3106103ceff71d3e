/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTelemetry's variables, which whoever starts a relay sets for many programs at once: lines of NAME=value. Whatever they say, what is made
 * of them can be sent: a URL without blanks, header fields that are one line each, numbers within their bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "observe/otlp_options.h"

static const char *const names[] = {
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_EXPORT_TIMEOUT",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
};

enum {
    NAMES = sizeof names / sizeof names[0]
};

struct variables {
    const char *values[NAMES];
};

static const char *get(void *arg, const char *name)
{
    const struct variables *v = arg;
    for (size_t i = 0; i < NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return v->values[i];
    return NULL;
}

static void warn(void *arg, const char *variable, const char *why)
{
    (void)arg;
    MUST(variable != NULL && why != NULL && why[0] != '\0');
}

static void check_line(const char *line)
{
    for (const char *p = line; *p; p++)
        MUST((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void check(const struct hk_otlp_options *o)
{
    if (o->url == NULL)
        return;
    MUST(strncmp(o->url, "http://", 7) == 0 || strncmp(o->url, "https://", 8) == 0);
    MUST(strpbrk(o->url, " \t\r\n") == NULL);
    for (size_t i = 0; i < o->n_headers; i++) {
        check_line(o->headers[i]);
        size_t len = strcspn(o->headers[i], ":;"); /* libcurl writes an empty one with a semicolon */
        MUST(len > 0 && o->headers[i][len] != '\0');
        for (size_t k = 0; k < i; k++)
            MUST(!hk_str_eqi((struct hk_str){o->headers[i], len},
                             (struct hk_str){o->headers[k], strcspn(o->headers[k], ":;")}));
    }
    for (size_t i = 0; i < o->resource.n; i++)
        MUST(o->resource.attrs[i].key != NULL &&
             o->resource.attrs[i].value != NULL); /* escaped where they are written */
    MUST(o->batch >= 1 && o->queue >= o->batch && o->timeout_ms > 0);
    MUST(o->sampler.ratio >= 0 && o->sampler.ratio <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct variables v = {.values = {NULL}};
    struct hk_otlp_options options = {.url = NULL};
    struct hk_err err = {.message = ""};
    if (size > 32768)
        return 0;
    char *text = malloc(size + 1);
    MUST(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = text; line != NULL;) { /* "5=value": the variable's place in the list, as a letter */
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        size_t which = (size_t)((unsigned char)line[0] - 'a');
        if (line[0] != '\0' && which < NAMES)
            v.values[which] = line + 1;
        line = end != NULL ? end + 1 : NULL;
    }
    struct hk_otlp_given given = {
        .endpoint = "http://127.0.0.1:4318", .sample = 1, .instance_id = "i", .relay = "r", .version = "0"};
    struct hk_otlp_env env = {.get = get, .warn = warn, .arg = &v};
    enum hk_code rc = hk_otlp_options_make(&given, &env, &options, &err);
    MUST(rc == HK_OK || (rc == HK_INVALID && err.message[0] != '\0'));
    if (rc == HK_OK)
        check(&options);
    hk_otlp_options_free(&options);
    free(text);
    return 0;
}
