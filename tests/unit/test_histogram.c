/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: small values exactly, large ones within their bounds, sums without loss, and texts that are none refused. */
#include "base/histogram.h"
#include "base/str.h"
#include "check.h"

static void small_values_are_exact_and_others_within_a_sixteenth(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < UINT64_C(1) << 28; value = value < 5000 ? value + 1 : value * 3 / 2) {
        struct hk_histogram h = {.counts = {0}};
        hk_histogram_add(&h, value);
        uint64_t got = hk_histogram_quantile(&h, 0.5);
        uint64_t off = got > value ? got - value : value - got;
        NOTE_IF(off * 16 > value, "%llu became %llu\n", (unsigned long long)value, (unsigned long long)got);
        assert_true(value < 16 ? off == 0 : off * 16 <= value);
    }
    struct hk_histogram h = {.counts = {0}};
    hk_histogram_add(&h, UINT64_MAX);
    assert_int_equal(hk_histogram_count(&h), 1);
    assert_true(hk_histogram_quantile(&h, 1) >= UINT64_C(1) << 27);
}

static void quantiles_are_those_of_the_values(void **state)
{
    (void)state;
    struct hk_histogram h = {.counts = {0}};
    assert_int_equal(hk_histogram_quantile(&h, 0.99), 0);
    for (int i = 0; i < 90; i++)
        hk_histogram_add(&h, 2);
    for (int i = 0; i < 9; i++)
        hk_histogram_add(&h, 5);
    hk_histogram_add(&h, 14);
    assert_int_equal(hk_histogram_quantile(&h, 0), 2);
    assert_int_equal(hk_histogram_quantile(&h, 0.5), 2);
    assert_int_equal(hk_histogram_quantile(&h, 0.9), 2);
    assert_int_equal(hk_histogram_quantile(&h, 0.95), 5);
    assert_int_equal(hk_histogram_quantile(&h, 0.99), 5);
    assert_int_equal(hk_histogram_quantile(&h, 1), 14);
}

static void two_are_added_without_loss(void **state)
{
    (void)state;
    struct hk_histogram a = {.counts = {0}}, b = {.counts = {0}}, all = {.counts = {0}};
    for (uint64_t i = 0; i < 10000; i++) {
        hk_histogram_add(i % 3 ? &a : &b, i * i);
        hk_histogram_add(&all, i * i);
    }
    hk_histogram_merge(&a, &b);
    assert_memory_equal(&a, &all, sizeof a);
    a.counts[3] = UINT32_MAX;
    hk_histogram_merge(&a, &a);
    assert_int_equal(a.counts[3], UINT32_MAX);
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    struct hk_histogram h = {.counts = {0}}, again = {.counts = {0}};
    struct hk_buf text;
    hk_buf_init(&text, 8192);
    hk_histogram_write(&h, &text);
    assert_int_equal(text.len, 0);
    h.counts[0] = 1;
    h.counts[17] = UINT32_MAX;
    h.counts[HK_HISTOGRAM_BUCKETS - 1] = 12;
    hk_histogram_write(&h, &text);
    assert_string_equal(hk_buf_cstr(&text), "0:1 17:4294967295 207:12");
    assert_true(hk_histogram_read(&again, hk_buf_str(&text)));
    assert_memory_equal(&h, &again, sizeof h);
    for (size_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++)
        h.counts[i] = UINT32_MAX;
    hk_buf_reset(&text);
    hk_histogram_write(&h, &text);
    assert_int_equal(hk_buf_status(&text), HK_OK); /* the longest fits in what stores give it */
    hk_buf_fini(&text);
}

static void texts_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"1",
                                      ":",
                                      "1:",
                                      ":1",
                                      "1:-1",
                                      "208:1",
                                      "1:1 ",
                                      "1:1  2:1",
                                      "a:1",
                                      "1:1,2:1",
                                      "1:99999999999999999999",
                                      "1:1 2"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hk_histogram h = {.counts = {0}};
        bool taken = hk_histogram_read(&h, hk_str_of(bad[i]));
        NOTE_IF(taken && i != 6, "taken: %s\n", bad[i]);
        assert_true(!taken || i == 6); /* a blank at the end is harmless */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_are_exact_and_others_within_a_sixteenth),
        cmocka_unit_test(quantiles_are_those_of_the_values),
        cmocka_unit_test(two_are_added_without_loss),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(texts_that_are_none_are_refused),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
