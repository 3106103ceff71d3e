/* SPDX-License-Identifier: Apache-2.0 */
/* How often which durations occurred, in bounded memory: buckets that grow with what they hold, so that a quantile is off by
 * 6 % at most whatever the range. Buckets of all histograms are the same, so that two are added without loss. */
#ifndef HK_BASE_HISTOGRAM_H
#define HK_BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Values below 16 have a bucket each, each power of two above has eight; what is above 2^28 counts into the last. */
#define HK_HISTOGRAM_BUCKETS 208

struct hk_histogram {
    uint32_t counts[HK_HISTOGRAM_BUCKETS]; /* stay at their maximum once they have reached it */
};

void hk_histogram_add(struct hk_histogram *histogram, uint64_t value);
void hk_histogram_merge(struct hk_histogram *into, const struct hk_histogram *from);
uint64_t hk_histogram_count(const struct hk_histogram *histogram);
/* The value that a share of `q` (0 to 1) does not exceed, as the middle of its bucket; 0 when it is empty. */
uint64_t hk_histogram_quantile(const struct hk_histogram *histogram, double q);

/* "bucket:count bucket:count …", empty for an empty one. */
void hk_histogram_write(const struct hk_histogram *histogram, struct hk_buf *out);
/* Adds what such a text says. False: it is none (what was read until then has been added). */
bool hk_histogram_read(struct hk_histogram *histogram, struct hk_str text);

#endif
