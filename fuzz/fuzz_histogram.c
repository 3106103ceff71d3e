/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram as it stands in a table, where anybody may have written into it: what is read is written and read again, the quantiles rise, and
 * the sum of two counts what both count, as long as no bucket is full. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "fuzz.h"

static void check_order(const struct hk_histogram *h)
{
    uint64_t before = 0;
    for (int q = 0; q <= 20; q++) {
        uint64_t now = hk_histogram_quantile(h, q / 20.0);
        MUST(now >= before);
        before = now;
    }
}

static void check_again(const struct hk_histogram *h)
{
    struct hk_histogram again = {.counts = {0}};
    struct hk_buf text;
    hk_buf_init(&text, 8192);
    hk_histogram_write(h, &text);
    MUST(hk_buf_status(&text) == HK_OK && hk_histogram_read(&again, hk_buf_str(&text)));
    MUST(memcmp(h, &again, sizeof again) == 0);
    hk_buf_fini(&text);
}

static bool has_full(const struct hk_histogram *h)
{
    for (size_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++)
        if (h->counts[i] == UINT32_MAX)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str first = {(const char *)data, size / 2},
                  second = {(const char *)data + size / 2, size - size / 2};
    struct hk_histogram a = {.counts = {0}}, b = {.counts = {0}};
    if (size > 8192)
        return 0;
    (void)hk_histogram_read(
        &a, (struct hk_str){(const char *)data, size}); /* true or not: what it holds is sound */
    check_order(&a);
    check_again(&a);
    memset(&a, 0, sizeof a);
    (void)hk_histogram_read(&a, first);
    (void)hk_histogram_read(&b, second);
    uint64_t n = hk_histogram_count(&a) + hk_histogram_count(&b);
    hk_histogram_merge(&a, &b);
    MUST(has_full(&a) || hk_histogram_count(&a) == n);
    check_again(&a);
    return 0;
}
