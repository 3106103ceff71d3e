/* SPDX-License-Identifier: Apache-2.0 */
/* Backoff and jitter: the documents' formulas as tables, then properties over every kind, every jitter, ten
 * thousand retries and hostile parameters. Expected values are worked out here, never by the code under test. */
#include <math.h>

#include <hikyaku/backoff.h>

#include "check.h"

enum {
    S = 1000,
    N_RETRIES = 10000
};

static const struct hk_jitter none = {.kind = HK_JITTER_NONE};

static struct hk_rng seeded(uint64_t seed)
{
    struct hk_rng rng;
    hk_rng_seed(&rng, seed, HK_RNG_BACKOFF);
    return rng;
}

/* ---- tables ---- */

static void expect_ceilings(const struct hk_backoff *b, const uint64_t *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t got = hk_backoff_ceiling_ms(b, (uint32_t)i + 1);
        NOTE_IF(got != want[i], "retry %zu: got %llu, want %llu\n", i + 1, (unsigned long long)got,
                (unsigned long long)want[i]);
        assert_true(got == want[i]);
        struct hk_rng rng = seeded(i);
        bool azure = b->kind == HK_BACKOFF_AZURE_EXPONENTIAL || b->kind == HK_BACKOFF_AZURE_LINEAR;
        assert_true(azure || hk_backoff_wait_ms(b, &none, (uint32_t)i + 1, 0, &rng) == want[i]);
    }
}

static void test_fixed_linear_exponential(void **state)
{
    (void)state;
    struct hk_backoff b = {.kind = HK_BACKOFF_FIXED, .base_ms = 3 * S, .cap_ms = 60 * S};
    expect_ceilings(&b, (uint64_t[]){3 * S, 3 * S, 3 * S}, 3);
    b.kind = HK_BACKOFF_LINEAR; /* document 003: 3, 6, 9 s */
    expect_ceilings(&b, (uint64_t[]){3 * S, 6 * S, 9 * S}, 3);
    b = (struct hk_backoff){.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1 * S, .factor = 2, .cap_ms = 20 * S};
    expect_ceilings(&b, (uint64_t[]){1 * S, 2 * S, 4 * S, 8 * S, 16 * S, 20 * S, 20 * S}, 7);
    b.factor = 1.5;
    expect_ceilings(&b, (uint64_t[]){1000, 1500, 2250, 3375, 5063, 7594, 11391, 17086, 20000}, 9);
    b.factor = 1;
    expect_ceilings(&b, (uint64_t[]){1000, 1000, 1000}, 3);
}

static void test_google_sequence(void **state)
{
    (void)state;
    struct hk_backoff b = {
        .kind = HK_BACKOFF_CLOUD_TASKS, .base_ms = 10 * S, .cap_ms = 300 * S, .max_doublings = 3};
    expect_ceilings(&b, (uint64_t[]){10 * S, 20 * S, 40 * S, 80 * S, 160 * S, 240 * S, 300 * S, 300 * S}, 8);
    b.max_doublings = 0; /* linear from the start */
    expect_ceilings(&b, (uint64_t[]){10 * S, 20 * S, 30 * S, 40 * S}, 4);
    b.max_doublings = UINT32_MAX;
    expect_ceilings(&b, (uint64_t[]){10 * S, 20 * S, 40 * S, 80 * S, 160 * S, 300 * S}, 6);
}

static void test_list_repeats_its_last(void **state)
{
    (void)state;
    struct hk_backoff b = {
        .kind = HK_BACKOFF_LIST, .cap_ms = 9 * S, .n_waits = 4, .waits_ms = {0, 5 * S, 1 * S, 12 * S}};
    expect_ceilings(&b, (uint64_t[]){0, 5 * S, 1 * S, 9 * S, 9 * S}, 5);
    b.n_waits = 0;
    expect_ceilings(&b, (uint64_t[]){0, 0}, 2);
    b.n_waits = UINT32_MAX; /* never read past the array */
    b.waits_ms[HK_BACKOFF_WAITS_MAX - 1] = 7;
    assert_true(hk_backoff_ceiling_ms(&b, UINT32_MAX) == 7);
}

static void test_azure_formulas(void **state)
{
    (void)state;
    /* requirement 202's example: (2^n - 1) x 0.8 .. 1.2 delta on top of min, at most max; n = 0 at the first error */
    struct hk_backoff b = {
        .kind = HK_BACKOFF_AZURE_EXPONENTIAL, .base_ms = 10 * S, .min_ms = 1 * S, .cap_ms = 30 * S};
    expect_ceilings(&b, (uint64_t[]){1 * S, 11 * S, 30 * S, 30 * S}, 4);

    static const struct {
        uint64_t lo, hi;
    } want[] = {{1000, 1000}, {9000, 13000}, {25000, 30000}, {30000, 30000}};

    for (uint32_t n = 1; n <= 4; n++) {
        uint64_t lo, hi, least = UINT64_MAX, most = 0;
        hk_backoff_bounds_ms(&b, &none, n, &lo, &hi);
        assert_true(lo == want[n - 1].lo && hi == want[n - 1].hi);
        struct hk_rng rng = seeded(n);
        for (int i = 0; i < 20000; i++) {
            uint64_t w = hk_backoff_wait_ms(&b, &none, n, 0, &rng);
            least = w < least ? w : least;
            most = w > most ? w : most;
        }
        assert_true(least >= lo && most <= hi);
        assert_true(least - lo <= 20 && hi - most <= 20); /* the whole range is drawn from */
    }
    /* requirement 203: delta x 0.8 .. 1.2 */
    b = (struct hk_backoff){.kind = HK_BACKOFF_AZURE_LINEAR, .base_ms = 1 * S, .cap_ms = 30 * S};
    for (uint32_t n = 1; n <= 50; n++) {
        uint64_t lo, hi;
        hk_backoff_bounds_ms(&b, &none, n, &lo, &hi);
        assert_true(lo == 800 && hi == 1200);
        struct hk_rng rng = seeded(n);
        uint64_t w = hk_backoff_wait_ms(&b, &none, n, 0, &rng);
        assert_true(w >= 800 && w <= 1200);
    }
    assert_true(hk_backoff_ceiling_ms(&b, 1) == 1000);
}

/* Requirement 008: min(base x 2^(n-1), cap) x (1 ± ratio), never below 0; and never above the cap. */
static void test_ratio_formula(void **state)
{
    (void)state;
    struct hk_backoff b = {.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 2 * S, .factor = 2, .cap_ms = 60 * S};
    for (int r = 0; r <= 10; r++) {
        struct hk_jitter j = {.kind = HK_JITTER_RATIO, .ratio = r / 10.0};
        for (uint32_t n = 1; n <= 8; n++) {
            double capped = fmin(2000.0 * pow(2, n - 1), 60000.0);
            double lo = fmax(0, capped * (1 - j.ratio)), hi = fmin(60000.0, capped * (1 + j.ratio));
            struct hk_rng rng = seeded((uint64_t)r * 100 + n);
            for (int i = 0; i < 500; i++) {
                double w = (double)hk_backoff_wait_ms(&b, &j, n, 0, &rng);
                assert_true(w >= floor(lo) && w <= ceil(hi));
            }
        }
    }
}

/* Requirement 310: attempt 1 lies in 0 .. base, limits grow, never above the cap. */
static void test_full_jitter_exercise(void **state)
{
    (void)state;
    struct hk_backoff b = {.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1 * S, .factor = 2, .cap_ms = 60 * S};
    struct hk_jitter j = {.kind = HK_JITTER_FULL};
    uint64_t most[10] = {0};
    struct hk_rng rng = seeded(310);
    for (uint32_t n = 1; n <= 10; n++)
        for (int i = 0; i < 5000; i++) {
            uint64_t w = hk_backoff_wait_ms(&b, &j, n, 0, &rng);
            most[n - 1] = w > most[n - 1] ? w : most[n - 1];
        }
    assert_true(most[0] <= 1 * S && most[0] > 990);
    for (int n = 1; n < 6; n++)
        assert_true(most[n] > most[n - 1]);
    for (int n = 0; n < 10; n++)
        assert_true(most[n] <= 60 * S);
}

static void test_fast_first_is_for_the_first_only(void **state)
{
    (void)state;
    static const struct hk_jitter jitters[] = {{.kind = HK_JITTER_NONE},
                                               {.kind = HK_JITTER_EQUAL},
                                               {.kind = HK_JITTER_ADD, .add_ms = 500},
                                               {.kind = HK_JITTER_DECORRELATED}};
    for (int kind = 0; kind < HK_NBACKOFFS; kind++)
        for (size_t k = 0; k < COUNT(jitters); k++) {
            struct hk_backoff b = {.kind = (enum hk_backoff_kind)kind,
                                   .base_ms = 10 * S,
                                   .min_ms = 1 * S,
                                   .cap_ms = 3600 * S,
                                   .factor = 2,
                                   .fast_first = true,
                                   .n_waits = 2,
                                   .waits_ms = {5 * S, 6 * S}};
            struct hk_rng rng = seeded(1);
            uint64_t lo, hi;
            assert_true(hk_backoff_wait_ms(&b, &jitters[k], 1, 0, &rng) == 0);
            assert_true(hk_backoff_ceiling_ms(&b, 1) == 0);
            hk_backoff_bounds_ms(&b, &jitters[k], 1, &lo, &hi);
            assert_true(lo == 0 && hi == 0);
            for (uint32_t n = 2; n < 20; n++)
                assert_true(hk_backoff_wait_ms(&b, &jitters[k], n, 0, &rng) >= 1 * S);
        }
}

/* At the cap an added jitter still spreads, below it. */
static void test_added_jitter_slides_under_the_cap(void **state)
{
    (void)state;
    struct hk_backoff b = {.kind = HK_BACKOFF_FIXED, .base_ms = 10 * S, .cap_ms = 10 * S};
    struct hk_jitter j = {.kind = HK_JITTER_ADD, .add_ms = 2 * S};
    uint64_t lo, hi;
    hk_backoff_bounds_ms(&b, &j, 1, &lo, &hi);
    assert_true(lo == 8 * S && hi == 10 * S);
    b.cap_ms = 11 * S;
    hk_backoff_bounds_ms(&b, &j, 1, &lo, &hi);
    assert_true(lo == 9 * S && hi == 11 * S);
    b.cap_ms = 12 * S;
    hk_backoff_bounds_ms(&b, &j, 1, &lo, &hi);
    assert_true(lo == 10 * S && hi == 12 * S);
    j.add_ms = UINT64_MAX;
    hk_backoff_bounds_ms(&b, &j, 1, &lo, &hi);
    assert_true(lo == 0 && hi == 12 * S);
}

/* ---- properties ---- */

static const struct hk_jitter every_jitter[] = {
    {.kind = HK_JITTER_NONE},
    {.kind = HK_JITTER_RATIO, .ratio = 0.0},
    {.kind = HK_JITTER_RATIO, .ratio = 0.2},
    {.kind = HK_JITTER_RATIO, .ratio = 1.0},
    {.kind = HK_JITTER_ADD, .add_ms = 0},
    {.kind = HK_JITTER_ADD, .add_ms = 2 * S},
    {.kind = HK_JITTER_ADD, .add_ms = UINT64_MAX},
    {.kind = HK_JITTER_FULL},
    {.kind = HK_JITTER_EQUAL},
    {.kind = HK_JITTER_DECORRELATED},
};

static const struct {
    uint64_t base_ms, min_ms, cap_ms;
    double factor;
    uint32_t doublings;
} every_size[] = {
    {1 * S, 1 * S, 3600 * S, 2, 16},
    {1, 0, 1, 1, 0},
    {7, 3, 1000003, 1.0000001, 5},
    {100, 0, UINT64_MAX, 2, 63},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX, 1000, UINT32_MAX},
    {UINT64_MAX / 3, 1, UINT64_MAX - 1, 1.7, 64},
    {1, UINT64_MAX, 0, 2, 1},
    {0, 0, 5 * S, 3, 1},
    {UINT64_C(1) << 63, 0, (UINT64_C(1) << 63) + 1, 2, 62},
    {1 * S, 1, 500, INFINITY, 2},
};

static struct hk_backoff backoff_of(int kind, size_t size)
{
    return (struct hk_backoff){.kind = (enum hk_backoff_kind)kind,
                               .base_ms = every_size[size].base_ms,
                               .min_ms = every_size[size].min_ms,
                               .cap_ms = every_size[size].cap_ms,
                               .factor = every_size[size].factor,
                               .max_doublings = every_size[size].doublings,
                               .n_waits = 3,
                               .waits_ms = {0, every_size[size].base_ms, every_size[size].cap_ms}};
}

static void walk(const struct hk_backoff *b, const struct hk_jitter *j, uint64_t seed)
{
    struct hk_rng rng = seeded(seed), again = seeded(seed);
    uint64_t prev = 0, prev_again = 0, ceiling_before = 0;
    for (uint32_t n = 1; n <= N_RETRIES; n++) {
        uint64_t lo, hi;
        hk_backoff_bounds_ms(b, j, n, &lo, &hi);
        uint64_t ceiling = hk_backoff_ceiling_ms(b, n);
        uint64_t wait = hk_backoff_wait_ms(b, j, n, prev, &rng);
        uint64_t same = hk_backoff_wait_ms(b, j, n, prev_again, &again);
        bool ok = lo <= wait && wait <= hi && hi <= b->cap_ms && ceiling <= b->cap_ms && wait == same &&
                  (b->kind == HK_BACKOFF_LIST || ceiling >= ceiling_before);
        NOTE_IF(
            !ok,
            "%s/%s base %llu cap %llu retry %u: wait %llu (%llu), bounds %llu..%llu, ceiling %llu after %llu\n",
            hk_backoff_kind_name(b->kind), hk_jitter_kind_name(j->kind), (unsigned long long)b->base_ms,
            (unsigned long long)b->cap_ms, n, (unsigned long long)wait, (unsigned long long)same,
            (unsigned long long)lo, (unsigned long long)hi, (unsigned long long)ceiling,
            (unsigned long long)ceiling_before);
        assert_true(ok);
        prev = wait;
        prev_again = same;
        ceiling_before = ceiling;
    }
}

static void test_bounds_cap_growth_and_seed_hold_everywhere(void **state)
{
    (void)state;
    for (int kind = 0; kind < HK_NBACKOFFS; kind++)
        for (size_t j = 0; j < COUNT(every_jitter); j++)
            for (size_t size = 0; size < COUNT(every_size); size++) {
                struct hk_backoff b = backoff_of(kind, size);
                walk(&b, &every_jitter[j], (uint64_t)kind * 1000 + j * 10 + size);
            }
}

static void test_any_retry_number(void **state)
{
    (void)state;
    struct hk_rng pick = seeded(64);
    for (int i = 0; i < 200000; i++) {
        struct hk_backoff b = backoff_of((int)hk_rng_upto(&pick, HK_NBACKOFFS - 1),
                                         (size_t)hk_rng_upto(&pick, COUNT(every_size) - 1));
        b.base_ms = hk_rng_next(&pick) >> hk_rng_upto(&pick, 63);
        b.cap_ms = hk_rng_next(&pick) >> hk_rng_upto(&pick, 63);
        b.min_ms = hk_rng_next(&pick) >> hk_rng_upto(&pick, 63);
        b.fast_first = hk_rng_upto(&pick, 1);
        struct hk_jitter j = {.kind = (enum hk_jitter_kind)hk_rng_upto(&pick, HK_NJITTERS - 1),
                              .ratio = hk_rng_unit(&pick),
                              .add_ms = hk_rng_next(&pick) >> hk_rng_upto(&pick, 63)};
        uint32_t n = (uint32_t)(hk_rng_next(&pick) >> hk_rng_upto(&pick, 63));
        uint64_t wait = hk_backoff_wait_ms(&b, &j, n, hk_rng_next(&pick), &pick);
        assert_true(wait <= b.cap_ms);
        assert_true(hk_backoff_ceiling_ms(&b, n) <= b.cap_ms);
        assert_true(n != 0 || wait == 0);
    }
}

/* The mean of n draws from a uniform window lies within 5 standard errors of the window's middle. */
static void expect_mean(const struct hk_backoff *b, const struct hk_jitter *j, uint64_t prev, double lo,
                        double hi)
{
    enum {
        DRAWS = 40000
    };
    struct hk_rng rng = seeded(2026);
    double sum = 0;
    for (int i = 0; i < DRAWS; i++)
        sum += (double)hk_backoff_wait_ms(b, j, 3, prev, &rng);
    double error = (hi - lo) / sqrt(12.0) / sqrt(DRAWS);
    double off = fabs(sum / DRAWS - (lo + hi) / 2);
    NOTE_IF(off > 5 * error + 0.5, "%s: mean %f, want %f\n", hk_jitter_kind_name(j->kind), sum / DRAWS,
            (lo + hi) / 2);
    assert_true(off <= 5 * error + 0.5);
}

static void test_mean_of_each_jitter(void **state)
{
    (void)state;
    struct hk_backoff b = {
        .kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 10 * S, .factor = 2, .cap_ms = 1000 * S};
    double c = 40 * S; /* third retry */
    expect_mean(&b, &(struct hk_jitter){.kind = HK_JITTER_NONE}, 0, c, c);
    expect_mean(&b, &(struct hk_jitter){.kind = HK_JITTER_RATIO, .ratio = 0.25}, 0, c * 0.75, c * 1.25);
    expect_mean(&b, &(struct hk_jitter){.kind = HK_JITTER_ADD, .add_ms = 9 * S}, 0, c, c + 9 * S);
    expect_mean(&b, &(struct hk_jitter){.kind = HK_JITTER_FULL}, 0, 0, c);
    expect_mean(&b, &(struct hk_jitter){.kind = HK_JITTER_EQUAL}, 0, c / 2, c);
    expect_mean(&b, &(struct hk_jitter){.kind = HK_JITTER_DECORRELATED}, 0, 10 * S, 30 * S);
    expect_mean(&b, &(struct hk_jitter){.kind = HK_JITTER_DECORRELATED}, 50 * S, 10 * S, 150 * S);
    b.kind = HK_BACKOFF_AZURE_LINEAR;
    expect_mean(&b, &none, 0, 8 * S, 12 * S);
    b.kind = HK_BACKOFF_AZURE_EXPONENTIAL;
    expect_mean(&b, &none, 0, 3 * 8 * S, 3 * 12 * S);
}

/* Two clients with different seeds do not meet, and jitter leaves no pile at the cap. */
static void test_no_herd_at_the_cap(void **state)
{
    (void)state;
    static const struct hk_jitter spreading[] = {{.kind = HK_JITTER_RATIO, .ratio = 0.2},
                                                 {.kind = HK_JITTER_ADD, .add_ms = 12 * S},
                                                 {.kind = HK_JITTER_FULL},
                                                 {.kind = HK_JITTER_EQUAL},
                                                 {.kind = HK_JITTER_DECORRELATED}};
    struct hk_backoff b = {.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1 * S, .factor = 2, .cap_ms = 60 * S};
    for (size_t k = 0; k < COUNT(spreading); k++) {
        unsigned at_cap = 0;
        for (uint64_t client = 0; client < 10000; client++) {
            struct hk_rng rng = seeded(client);
            at_cap += hk_backoff_wait_ms(&b, &spreading[k], 30, 20 * S, &rng) == b.cap_ms;
        }
        assert_in_range(at_cap, 0, 20);
    }
}

/* ---- checks and names ---- */

static void test_check_names_the_field(void **state)
{
    (void)state;
    const struct hk_backoff good = {.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1, .factor = 2, .cap_ms = 1};
    const uint64_t too_long = UINT64_C(3155760000001);
    static const struct hk_jitter full = {.kind = HK_JITTER_FULL};

    struct row {
        struct hk_backoff b;
        struct hk_jitter j;
        enum hk_code code;
        const char *names;
    } rows[] = {
        {good, none, HK_OK, ""},
        {good, full, HK_OK, ""},
        {good, {.kind = HK_NJITTERS}, HK_INVALID, "jitter"},
        {good, {.kind = HK_JITTER_RATIO, .ratio = 1.01}, HK_RANGE, "ratio"},
        {good, {.kind = HK_JITTER_RATIO, .ratio = -0.01}, HK_RANGE, "ratio"},
        {good, {.kind = HK_JITTER_RATIO, .ratio = NAN}, HK_RANGE, "ratio"},
        {good, {.kind = HK_JITTER_ADD, .add_ms = too_long}, HK_RANGE, "add"},
        {{.kind = HK_NBACKOFFS, .base_ms = 1, .cap_ms = 1}, none, HK_INVALID, "kind"},
        {{.kind = HK_BACKOFF_FIXED, .base_ms = 0, .cap_ms = 1}, none, HK_RANGE, "base"},
        {{.kind = HK_BACKOFF_FIXED, .base_ms = too_long, .cap_ms = 1}, none, HK_RANGE, "base"},
        {{.kind = HK_BACKOFF_FIXED, .base_ms = 1, .cap_ms = 0}, none, HK_RANGE, "cap"},
        {{.kind = HK_BACKOFF_FIXED, .base_ms = 1, .cap_ms = too_long}, none, HK_RANGE, "cap"},
        {{.kind = HK_BACKOFF_FIXED, .base_ms = 1, .cap_ms = 1, .min_ms = too_long}, none, HK_RANGE, "min"},
        {{.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1, .cap_ms = 1, .factor = 0.99},
         none,
         HK_RANGE,
         "factor"},
        {{.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1, .cap_ms = 1, .factor = NAN},
         none,
         HK_RANGE,
         "factor"},
        {{.kind = HK_BACKOFF_EXPONENTIAL, .base_ms = 1, .cap_ms = 1, .factor = 1001},
         none,
         HK_RANGE,
         "factor"},
        {{.kind = HK_BACKOFF_LIST, .cap_ms = 1}, none, HK_RANGE, "waits"},
        {{.kind = HK_BACKOFF_LIST, .cap_ms = 1, .n_waits = 33}, none, HK_RANGE, "waits"},
        {{.kind = HK_BACKOFF_LIST, .cap_ms = 1, .n_waits = 1, .waits_ms = {too_long}},
         none,
         HK_RANGE,
         "waits[0]"},
        {{.kind = HK_BACKOFF_LIST, .cap_ms = 1, .n_waits = 2, .waits_ms = {1, 0}}, none, HK_RANGE, "waits"},
        {{.kind = HK_BACKOFF_LIST, .cap_ms = 1, .n_waits = 2, .waits_ms = {0, 1}}, full, HK_OK, ""},
        {{.kind = HK_BACKOFF_LIST, .cap_ms = 1, .n_waits = 1, .waits_ms = {1}},
         {.kind = HK_JITTER_DECORRELATED},
         HK_INVALID,
         "decorrelated"},
        {{.kind = HK_BACKOFF_AZURE_LINEAR, .base_ms = 1, .cap_ms = 1}, none, HK_OK, ""},
        {{.kind = HK_BACKOFF_AZURE_LINEAR, .base_ms = 1, .cap_ms = 1}, full, HK_INVALID, "azure-linear"},
        {{.kind = HK_BACKOFF_AZURE_EXPONENTIAL, .base_ms = 1, .cap_ms = 1},
         full,
         HK_INVALID,
         "azure-exponential"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_err err = {.message = ""};
        assert_int_equal(hk_backoff_check(&rows[i].b, &rows[i].j, &err), rows[i].code);
        NOTE_IF(!strstr(err.message, rows[i].names), "row %zu: %s\n", i, err.message);
        assert_non_null(strstr(err.message, rows[i].names));
    }
}

static void test_names_round_trip(void **state)
{
    (void)state;
    for (int k = 0; k < HK_NBACKOFFS; k++)
        assert_int_equal(hk_backoff_kind_by_name(hk_backoff_kind_name((enum hk_backoff_kind)k)), k);
    for (int k = 0; k < HK_NJITTERS; k++)
        assert_int_equal(hk_jitter_kind_by_name(hk_jitter_kind_name((enum hk_jitter_kind)k)), k);
    assert_int_equal(hk_backoff_kind_by_name("Fixed"), HK_NBACKOFFS);
    assert_int_equal(hk_jitter_kind_by_name(""), HK_NJITTERS);
    assert_string_equal(hk_backoff_kind_name(HK_NBACKOFFS), "unknown");
    assert_string_equal(hk_jitter_kind_name(HK_NJITTERS), "unknown");
}

/* A kind out of range falls back to the cap or the ceiling; it never reads past a table. */
static void test_kinds_out_of_range_are_harmless(void **state)
{
    (void)state;
    struct hk_backoff b = {.kind = HK_NBACKOFFS, .base_ms = 1, .cap_ms = 9};
    struct hk_jitter j = {.kind = HK_NJITTERS};
    struct hk_rng rng = seeded(1);
    assert_true(hk_backoff_wait_ms(&b, &j, 5, 0, &rng) == 9);
}

/* Half of an odd wait is the larger half, and the bounds know of fast_first. */
static void test_odd_halves_and_fast_bounds(void **state)
{
    (void)state;
    struct hk_backoff b = {.kind = HK_BACKOFF_FIXED, .base_ms = 7, .cap_ms = 100};
    struct hk_jitter equal = {.kind = HK_JITTER_EQUAL}, apart = {.kind = HK_JITTER_DECORRELATED};
    uint64_t lo, hi;
    hk_backoff_bounds_ms(&b, &equal, 1, &lo, &hi);
    assert_true(lo == 4 && hi == 7);
    b.fast_first = true;
    hk_backoff_bounds_ms(&b, &apart, 2, &lo, &hi);
    assert_true(lo == 7 && hi == 21);
    b.fast_first = false;
    hk_backoff_bounds_ms(&b, &apart, 2, &lo, &hi);
    assert_true(lo == 7 && hi == 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed_linear_exponential),
        cmocka_unit_test(test_google_sequence),
        cmocka_unit_test(test_list_repeats_its_last),
        cmocka_unit_test(test_azure_formulas),
        cmocka_unit_test(test_ratio_formula),
        cmocka_unit_test(test_full_jitter_exercise),
        cmocka_unit_test(test_fast_first_is_for_the_first_only),
        cmocka_unit_test(test_added_jitter_slides_under_the_cap),
        cmocka_unit_test(test_bounds_cap_growth_and_seed_hold_everywhere),
        cmocka_unit_test(test_any_retry_number),
        cmocka_unit_test(test_mean_of_each_jitter),
        cmocka_unit_test(test_no_herd_at_the_cap),
        cmocka_unit_test(test_check_names_the_field),
        cmocka_unit_test(test_names_round_trip),
        cmocka_unit_test(test_kinds_out_of_range_are_harmless),
        cmocka_unit_test(test_odd_halves_and_fast_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
