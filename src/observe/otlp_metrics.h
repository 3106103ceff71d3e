/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as an OpenTelemetry collector takes them (OTLP 1.x, ExportMetricsServiceRequest): protobuf or JSON. Names, labels and values are
 * those of Prometheus' text format; what counts is cumulative, from when the series began. Pure but for the registry. */
#ifndef HK_OBSERVE_OTLP_METRICS_H
#define HK_OBSERVE_OTLP_METRICS_H

#include "observe/metrics.h"
#include "observe/otlp.h"

/* Every series that /metrics shows, at `now_ns`. Errors are the buffer's. */
void hk_otlp_metrics_protobuf(const struct hk_resource *resource, struct hk_metrics *metrics, int64_t now_ns,
                              struct hk_buf *out);
void hk_otlp_metrics_json(const struct hk_resource *resource, struct hk_metrics *metrics, int64_t now_ns,
                          struct hk_buf *out);

#endif
