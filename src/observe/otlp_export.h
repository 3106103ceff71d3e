/* SPDX-License-Identifier: Apache-2.0 */
/* Spans on their way to a collector: a bounded queue and a thread that sends it in batches. Who adds a span never waits: when the
 * queue is full the span is dropped and counted. What a collector does not take is tried again for a while, then counted as well. */
#ifndef HK_OBSERVE_OTLP_EXPORT_H
#define HK_OBSERVE_OTLP_EXPORT_H

#include "observe/otlp.h"
#include "observe/otlp_options.h"

struct hk_exporter;

struct hk_exporter_stats {
    uint64_t sent;    /* spans that a collector took */
    uint64_t dropped; /* the queue was full, or there was no memory */
    uint64_t failed;  /* the collector did not take them */
    bool failing;     /* since the last answer; `error` says why */
    char error[200];
};

/* `options` must outlive the exporter. */
enum hk_code hk_exporter_start(const struct hk_otlp_options *options, struct hk_exporter **out,
                               struct hk_err *err) HK_MUSTCHECK;
/* The span becomes the exporter's, whatever happens. NULL is one that there was no memory for. Never waits for the network; from one
 * thread. */
void hk_exporter_add(struct hk_exporter *exporter, struct hk_span *span);
void hk_exporter_stats(struct hk_exporter *exporter, struct hk_exporter_stats *out); /* from any thread */
/* Sends what is left for at most `flush_ms`, then gives up the rest (counted as failed). The exporter is no more; `out` may be NULL. */
void hk_exporter_stop(struct hk_exporter *exporter, uint64_t flush_ms, struct hk_exporter_stats *out);

#endif
