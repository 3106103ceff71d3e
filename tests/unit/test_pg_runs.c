/* SPDX-License-Identifier: Apache-2.0 */
/* Ids in runs: the same ids come out as went in, whatever they are. */
#include <stdlib.h>

#include <hikyaku/rng.h>

#include "check.h"
#include "store/pg/runs.h"

enum {
    MANY = 600
};

/* As the statements read them. */
static size_t unfold(const struct hk_pg_run *runs, size_t n, int64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(runs[i].hi >= runs[i].lo);
        uint64_t span = (uint64_t)runs[i].hi - (uint64_t)runs[i].lo;
        assert_true(span < 64);
        for (uint64_t bit = 0; bit <= span; bit++)
            if (runs[i].bits >> bit & 1) {
                assert_true(count < MANY);
                out[count++] = (int64_t)((uint64_t)runs[i].lo + bit);
            }
        assert_true(span == 63 || runs[i].bits >> (span + 1) == 0);
    }
    return count;
}

static size_t check(const int64_t *ids, size_t n)
{
    struct hk_pg_run runs[MANY];
    int64_t back[MANY];
    size_t n_runs = hk_pg_runs(ids, n, runs);
    assert_true(n_runs <= n);
    assert_int_equal(unfold(runs, n_runs, back), n);
    if (n)
        assert_memory_equal(back, ids, n * sizeof *ids);
    return n_runs;
}

static void neighbours_share_a_run_and_strangers_do_not(void **state)
{
    (void)state;
    int64_t ids[MANY] = {0};
    assert_int_equal(check(ids, 0), 0);
    for (int i = 0; i < 500; i++)
        ids[i] = 1000 + i;
    assert_int_equal(check(ids, 1), 1);
    assert_int_equal(check(ids, 64), 1);
    assert_int_equal(check(ids, 65), 2);
    assert_int_equal(check(ids, 500), 8);
    for (int i = 0; i < 500; i++)
        ids[i] = 1000 + 8 * i; /* a gap that is still walked over */
    assert_int_equal(check(ids, 8), 1);
    for (int i = 0; i < 500; i++)
        ids[i] = 1000 + 9 * i;
    assert_int_equal(check(ids, 500), 500);
}

static void the_ends_of_the_range_are_ids_like_others(void **state)
{
    (void)state;
    const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    assert_int_equal(check(ends, COUNT(ends)), 3);
}

static void whatever_goes_in_comes_out(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 3, 0);
    for (int round = 0; round < 300; round++) {
        int64_t ids[MANY], id = (int64_t)hk_rng_upto(&rng, 1000) - 500;
        uint64_t most = 1 + hk_rng_upto(&rng, 20);
        size_t n = (size_t)hk_rng_upto(&rng, MANY);
        for (size_t i = 0; i < n; i++)
            ids[i] = id += (int64_t)hk_rng_between(&rng, 1, most);
        check(ids, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_share_a_run_and_strangers_do_not),
        cmocka_unit_test(the_ends_of_the_range_are_ids_like_others),
        cmocka_unit_test(whatever_goes_in_comes_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
