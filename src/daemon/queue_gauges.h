/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics that only the store knows: queue depths, oldest ages. Read on a connection and a thread of their own, at most
 * every ten seconds and only while somebody wants them, so that neither the relay nor who scrapes ever waits for them. */
#ifndef HK_DAEMON_QUEUE_GAUGES_H
#define HK_DAEMON_QUEUE_GAUGES_H

#include <hikyaku/error.h>

#include "observe/metrics.h"

#define HK_QUEUE_GAUGES_MS 10000

struct hk_queue_gauges;

/* `url` and `metrics` outlive it. The store is opened when it is first wanted. */
enum hk_code hk_queue_gauges_new(const char *url, struct hk_metrics *metrics,
                                 struct hk_queue_gauges **out_gauges, struct hk_err *err) HK_MUSTCHECK;
/* Somebody looks: from any thread, never waits. Also says how old the figures are. */
void hk_queue_gauges_want(struct hk_queue_gauges *gauges);
/* Waits for the call under way, which the store bounds. */
void hk_queue_gauges_free(struct hk_queue_gauges *gauges);

#endif
