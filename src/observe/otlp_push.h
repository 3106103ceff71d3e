/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics on their way to a collector: a thread that sends all of them every so often, and once more at the end. What a collector does not
 * take is not kept: counts are cumulative, so the next request says it as well. Nobody waits for it. */
#ifndef HK_OBSERVE_OTLP_PUSH_H
#define HK_OBSERVE_OTLP_PUSH_H

#include "observe/metrics.h"
#include "observe/otlp_options.h"

struct hk_pusher;

struct hk_pusher_stats {
    uint64_t sent, failed; /* requests */
    bool failing;          /* since the last answer; `error` says why */
    char error[200];
};

/* Both outlive it. */
enum hk_code hk_pusher_start(const struct hk_otlp_options *options, struct hk_metrics *metrics,
                             struct hk_pusher **out, struct hk_err *err) HK_MUSTCHECK;
void hk_pusher_stats(struct hk_pusher *pusher, struct hk_pusher_stats *out); /* from any thread */
/* The last request begins now, and has `flush_ms`; does not wait. */
void hk_pusher_end(struct hk_pusher *pusher, uint64_t flush_ms);
/* Waits for that. NULL is fine. */
void hk_pusher_free(struct hk_pusher *pusher);

#endif
