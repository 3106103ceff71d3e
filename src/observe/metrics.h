/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, gauges and histograms that one thread fills and another one shows in Prometheus' text format.
 *
 * - What there is, is a table (struct hk_metric_def), so that the number of series is bounded by it: a label's values are
 *   fixed words, or the destinations that the configuration names. Whatever else would be a value counts for "other".
 * - Adding, setting and observing take no lock and may be called from any thread.
 * - Texts are escaped when they are shown: no value can break a line. */
#ifndef HK_OBSERVE_METRICS_H
#define HK_OBSERVE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"

enum hk_metric_type {
    HK_METRIC_COUNTER = 0, /* 0 at first */
    HK_METRIC_GAUGE,       /* not shown before it was set */
    HK_METRIC_HISTOGRAM
};

/* A dimension. `name` NULL and `values` given: each value is a whole `a="b",c="d"`, for labels that go together.
 * `values` NULL and `name` given: the destinations. */
struct hk_metric_label {
    const char *name;
    const char *const *values; /* up to a NULL */
};

#define HK_METRIC_LABELS  2
#define HK_METRIC_DESTS   256             /* that get a value of their own; the others are "other" */
#define HK_METRIC_OTHER   HK_METRIC_DESTS /* its index */
#define HK_METRIC_UNKNOWN INT64_MIN       /* a gauge set to this is not shown */

struct hk_metric_def {
    const char *name, *help; /* shown as they are: no line ends, no backslashes */
    enum hk_metric_type type;
    unsigned decimals; /* values are whole numbers of 10^-decimals: 3 = milliseconds, shown as seconds */
    struct hk_metric_label labels[HK_METRIC_LABELS];
    const uint64_t *bounds; /* of a histogram's buckets, rising; it has one label at the most */
    size_t n_bounds;
};

struct hk_metrics;

/* `defs` outlives it. A metric is known by its place there. */
enum hk_code hk_metrics_new(const struct hk_metric_def *defs, size_t n_defs, struct hk_metrics **out_metrics,
                            struct hk_err *err) HK_MUSTCHECK;
void hk_metrics_free(struct hk_metrics *metrics);

/* Labels that every series of the metric has, for what is known once: a version, a name. Before others look on. HK_NOMEM. */
enum hk_code hk_metrics_inform(struct hk_metrics *metrics, size_t metric, const char *label,
                               const char *value) HK_MUSTCHECK;

/* From any thread. `i`, `j`: which value of its first and its second label; 0 where it has none. */
void hk_metrics_add(struct hk_metrics *metrics, size_t metric, size_t i, size_t j, uint64_t n);
void hk_metrics_set(struct hk_metrics *metrics, size_t metric, size_t i, size_t j, int64_t value);
void hk_metrics_observe(struct hk_metrics *metrics, size_t metric, size_t i, uint64_t value);
int64_t hk_metrics_get(struct hk_metrics *metrics, size_t metric, size_t i, size_t j); /* no histogram */

/* The destinations from now on; those that go lose their series, those that stay keep them. One thread does this. */
void hk_metrics_destinations(struct hk_metrics *metrics, const char *const *names, size_t n);
/* One more, from the same thread: its index, or HK_METRIC_OTHER when all places are taken or the name is none. */
size_t hk_metrics_add_dest(struct hk_metrics *metrics, struct hk_str name);
/* It loses its series, and its place is free; from the same thread. */
void hk_metrics_drop_dest(struct hk_metrics *metrics, size_t dest);
/* A destination's index; HK_METRIC_OTHER when it has none. From the thread that names them … */
size_t hk_metrics_dest(const struct hk_metrics *metrics, struct hk_str name);
/* … and from any other. */
size_t hk_metrics_find_dest(struct hk_metrics *metrics, struct hk_str name);

/* What is asked before anybody is shown anything: sets what only it knows. From any thread; set before others look on. */
void hk_metrics_on_look(struct hk_metrics *metrics, void (*fn)(void *arg), void *arg);
void hk_metrics_look(struct hk_metrics *metrics);

/* One series as it is now. */
struct hk_metric_sample {
    const struct hk_metric_def *def;
    const char *labels;     /* as Prometheus writes them: a="b",c="d" */
    int64_t since_ms;       /* when it began, Unix ms */
    int64_t value;          /* of a counter, of a gauge */
    const uint64_t *counts; /* of a histogram: one for each bucket, n_bounds + 1 of them */
    uint64_t count;         /* their sum */
    int64_t sum;
};

#define HK_METRIC_BOUNDS 32 /* no histogram has more */

/* Every series of every metric that is shown, one metric after the other; `fn` with `sample` NULL: the next metric begins. False when there
 * was no memory: some are left out. */
bool hk_metrics_each(struct hk_metrics *metrics,
                     void (*fn)(void *arg, const struct hk_metric_def *def, const struct hk_metric_sample *sample),
                     void *arg);

/* All of it, in Prometheus' text format. From any thread. Errors are the buffer's. */
void hk_metrics_write(struct hk_metrics *metrics, struct hk_buf *out);

#endif
