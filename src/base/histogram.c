/* SPDX-License-Identifier: Apache-2.0 */
/* Durations by buckets on a logarithmic scale. */
#include <inttypes.h>

#include "base/histogram.h"
#include "base/parse.h"

enum {
    EXACT = 16,     /* values below have a bucket each */
    EXACT_BITS = 4, /* 2^4 is the first power that is divided */
    PARTS = 8,      /* of each power of two */
    PART_BITS = 3
};

static size_t bucket_of(uint64_t value)
{
    unsigned bits = EXACT_BITS;
    if (value < EXACT)
        return (size_t)value;
    while (bits < 63 && value >> (bits + 1))
        bits++;
    size_t part = (size_t)(value >> (bits - PART_BITS)) & (PARTS - 1);
    size_t bucket = EXACT + (size_t)(bits - EXACT_BITS) * PARTS + part;
    return bucket < HK_HISTOGRAM_BUCKETS ? bucket : HK_HISTOGRAM_BUCKETS - 1;
}

static uint64_t middle_of(size_t bucket)
{
    if (bucket < EXACT)
        return bucket;
    unsigned bits = (unsigned)(bucket - EXACT) / PARTS + EXACT_BITS;
    uint64_t part = (bucket - EXACT) % PARTS, width = UINT64_C(1) << (bits - PART_BITS);
    return (PARTS + part) * width + width / 2;
}

static void add_times(struct hk_histogram *h, size_t bucket, uint64_t times)
{
    uint64_t room = UINT32_MAX - h->counts[bucket];
    h->counts[bucket] += (uint32_t)(times < room ? times : room);
}

void hk_histogram_add(struct hk_histogram *h, uint64_t value)
{
    add_times(h, bucket_of(value), 1);
}

void hk_histogram_merge(struct hk_histogram *into, const struct hk_histogram *from)
{
    for (size_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++)
        add_times(into, i, from->counts[i]);
}

uint64_t hk_histogram_count(const struct hk_histogram *h)
{
    uint64_t n = 0;
    for (size_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++)
        n += h->counts[i];
    return n;
}

uint64_t hk_histogram_quantile(const struct hk_histogram *h, double q)
{
    uint64_t n = hk_histogram_count(h), seen = 0;
    double wanted = q * (double)n;
    size_t last = 0;
    for (size_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++) {
        if (h->counts[i] == 0)
            continue;
        last = i;
        seen += h->counts[i];
        if ((double)seen >= wanted)
            break;
    }
    return n ? middle_of(last) : 0;
}

void hk_histogram_write(const struct hk_histogram *h, struct hk_buf *out)
{
    const char *before = "";
    for (size_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++) {
        if (h->counts[i] == 0)
            continue;
        (void)hk_buf_addf(out, "%s%zu:%" PRIu32, before, i, h->counts[i]);
        before = " ";
    }
}

/* The number up to `end`, or up to the text's end; `s` begins behind it afterwards. */
static bool take_number(struct hk_str *s, char end, uint64_t *out)
{
    size_t len = 0;
    while (len < s->len && s->ptr[len] != end)
        len++;
    if (hk_parse_u64((struct hk_str){s->ptr, len}, out, NULL) != HK_OK)
        return false;
    len += len < s->len;
    *s = (struct hk_str){s->ptr + len, s->len - len};
    return true;
}

bool hk_histogram_read(struct hk_histogram *h, struct hk_str text)
{
    while (text.len > 0) {
        uint64_t bucket = 0, times = 0;
        if (!take_number(&text, ':', &bucket) || !take_number(&text, ' ', &times) ||
            bucket >= HK_HISTOGRAM_BUCKETS)
            return false;
        add_times(h, (size_t)bucket, times);
    }
    return true;
}
