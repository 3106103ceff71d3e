/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker against its documented scenarios, and against a naive model that keeps every event. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hikyaku/breaker.h>

#include "base/parse.h"
#include "check.h"
#include "failing.h"

static struct hk_breaker_options standard(void)
{
    struct hk_breaker_options o;
    hk_breaker_options_init(&o);
    return o;
}

static struct hk_breaker *make(const struct hk_breaker_options *o)
{
    struct hk_breaker *b = NULL;
    struct hk_err err;
    assert_int_equal(hk_breaker_new(o, &b, &err), HK_OK);
    return b;
}

static struct hk_rng rng_of(uint64_t seed)
{
    struct hk_rng rng;
    hk_rng_seed(&rng, seed, HK_RNG_BREAKER);
    return rng;
}

/* ---- options ---- */

static void the_defaults_are_the_standard_preset(void **state)
{
    (void)state;
    struct hk_breaker_options o = standard();
    assert_int_equal(o.failures, 5);
    assert_true(o.ratio == 0.0);
    assert_int_equal(o.min_throughput, 20);
    assert_int_equal(o.window_ms, 30000);
    assert_int_equal(o.open_ms, 10000);
    assert_true(o.open_factor == 2.0);
    assert_int_equal(o.open_cap_ms, 300000);
    assert_true(o.open_jitter == 0.1);
    assert_int_equal(o.probes, 1);
    assert_int_equal(o.successes, 1);
    assert_int_equal(hk_breaker_options_check(&o, NULL), HK_OK);
}

enum field {
    FAILURES,
    RATIO,
    RATIO_ALONE,
    WINDOW,
    OPEN,
    FACTOR,
    CAP,
    JITTER,
    PROBES,
    SUCCESSES
};

static void set_field(struct hk_breaker_options *o, enum field field, double d, uint64_t u)
{
    switch (field) {
    case FAILURES:
        o->failures = (uint32_t)u;
        break;
    case RATIO_ALONE:
        o->failures = 0;
        o->ratio = d;
        break;
    case RATIO:
        o->ratio = d;
        break;
    case WINDOW:
        o->window_ms = u;
        break;
    case OPEN:
        o->open_ms = u;
        break;
    case FACTOR:
        o->open_factor = d;
        break;
    case CAP:
        o->open_cap_ms = u;
        break;
    case JITTER:
        o->open_jitter = d;
        break;
    case PROBES:
        o->probes = (uint32_t)u;
        break;
    case SUCCESSES:
        o->successes = (uint32_t)u;
        break;
    }
}

static void options_outside_their_range_are_refused_by_name(void **state)
{
    (void)state;

    static const struct {
        enum field field;
        double d;
        uint64_t u;
        enum hk_code code;
        const char *names; /* what the message must say */
    } cases[] = {
        {FAILURES, 0, 1, HK_OK, ""},
        {FAILURES, 0, 1000, HK_OK, ""},
        {FAILURES, 0, 1001, HK_RANGE, "failures"},
        {FAILURES, 0, UINT32_MAX, HK_RANGE, "failures"},
        {FAILURES, 0, 0, HK_INVALID, "failures, ratio"},
        {RATIO_ALONE, 0.5, 0, HK_OK, ""},
        {RATIO_ALONE, -0.0, 0, HK_INVALID, "failures, ratio"},
        {RATIO, 1, 0, HK_OK, ""},
        {RATIO, 1.001, 0, HK_RANGE, "ratio"},
        {RATIO, -0.001, 0, HK_RANGE, "ratio"},
        {RATIO, (double)NAN, 0, HK_INVALID, "ratio"},
        {RATIO, HUGE_VAL, 0, HK_INVALID, "ratio"},
        {WINDOW, 0, 1, HK_OK, ""},
        {WINDOW, 0, 0, HK_RANGE, "window_ms"},
        {WINDOW, 0, HK_DURATION_MAX_MS, HK_OK, ""},
        {WINDOW, 0, HK_DURATION_MAX_MS + 1, HK_RANGE, "window_ms"},
        {OPEN, 0, 0, HK_RANGE, "open_ms"},
        {OPEN, 0, HK_DURATION_MAX_MS, HK_OK, ""},
        {OPEN, 0, UINT64_MAX, HK_RANGE, "open_ms"},
        {FACTOR, 1, 0, HK_OK, ""},
        {FACTOR, 1e300, 0, HK_OK, ""},
        {FACTOR, 0.999, 0, HK_RANGE, "open_factor"},
        {FACTOR, (double)NAN, 0, HK_INVALID, "open_factor"},
        {FACTOR, HUGE_VAL, 0, HK_INVALID, "open_factor"},
        {CAP, 0, 0, HK_RANGE, "open_cap_ms"},
        {CAP, 0, HK_DURATION_MAX_MS, HK_OK, ""},
        {CAP, 0, HK_DURATION_MAX_MS + 1, HK_RANGE, "open_cap_ms"},
        {JITTER, 0, 0, HK_OK, ""},
        {JITTER, 1, 0, HK_OK, ""},
        {JITTER, 1.5, 0, HK_RANGE, "open_jitter"},
        {JITTER, -0.1, 0, HK_RANGE, "open_jitter"},
        {JITTER, (double)NAN, 0, HK_INVALID, "open_jitter"},
        {PROBES, 0, 0, HK_RANGE, "probes"},
        {PROBES, 0, UINT32_MAX, HK_OK, ""},
        {SUCCESSES, 0, 0, HK_RANGE, "successes"},
        {SUCCESSES, 0, UINT32_MAX, HK_OK, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_breaker_options o = standard();
        struct hk_err err = {0};
        struct hk_breaker *b = NULL;
        set_field(&o, cases[i].field, cases[i].d, cases[i].u);
        assert_int_equal(hk_breaker_options_check(&o, &err), cases[i].code);
        assert_int_equal(hk_breaker_new(&o, &b, &err), cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_int_equal(strncmp(err.message, cases[i].names, strlen(cases[i].names)), 0);
        assert_true((b != NULL) == (cases[i].code == HK_OK));
        hk_breaker_free(b);
    }
}

/* ---- scenarios ----
 * One character is one step: A acquire (must pass), N acquire (must be refused), S/F record success/failure of the
 * oldest permit out, s/f of the newest, R release the oldest, I isolate, X reset, +ms+ advance, -ms- step back.
 * c/o/h/i: the state must be closed, open, half-open, isolated. @ms@: ready_at must be that; @never@. */

struct script {
    struct hk_breaker *b;
    struct hk_rng rng;
    int64_t now;
    hk_breaker_permit out[64];
    size_t n_out;
};

static hk_breaker_permit take_out(struct script *s, size_t i)
{
    assert_true(i < s->n_out);
    hk_breaker_permit p = s->out[i];
    s->n_out--;
    memmove(&s->out[i], &s->out[i + 1], (s->n_out - i) * sizeof s->out[0]);
    return p;
}

/* the number, or "never", between two equal signs; *p is left on the second one */
static int64_t number_in(const char **p)
{
    char sign = **p;
    int64_t n = 0;
    for ((*p)++; **p != sign; (*p)++)
        n = **p >= '0' && **p <= '9' ? n * 10 + (**p - '0') : INT64_MAX;
    return n;
}

static void expect_state(struct script *s, enum hk_breaker_state want, const char *at)
{
    enum hk_breaker_state got = hk_breaker_state(s->b, s->now);
    if (got != want)
        fail_msg("at \"%s\": %s, not %s", at, hk_breaker_state_name(got), hk_breaker_state_name(want));
}

static void expect_ready_at(struct script *s, int64_t want, const char *at)
{
    int64_t got = hk_breaker_ready_at_ms(s->b, s->now);
    if (got != want)
        fail_msg("at \"%s\": ready at %lld", at, (long long)got);
}

static void script_acquire(struct script *s, bool want, const char *at)
{
    hk_breaker_permit p = 0;
    if (hk_breaker_acquire(s->b, s->now, &p) != want)
        fail_msg("at \"%s\": acquire is not %d", at, want);
    assert_true((p != 0) == want);
    if (want)
        s->out[s->n_out++] = p;
}

static void step(struct script *s, const char **p)
{
    const char *at = *p;
    switch (*at) {
    case 'A':
    case 'N':
        script_acquire(s, *at == 'A', at);
        break;
    case 'S':
    case 'F':
        hk_breaker_record(s->b, take_out(s, 0), *at == 'S', s->now, &s->rng);
        break;
    case 's':
    case 'f':
        hk_breaker_record(s->b, take_out(s, s->n_out - 1), *at == 's', s->now, &s->rng);
        break;
    case 'R':
        hk_breaker_release(s->b, take_out(s, 0), s->now);
        break;
    case 'I':
        hk_breaker_isolate(s->b, s->now);
        break;
    case 'X':
        hk_breaker_reset(s->b, s->now);
        break;
    case '+':
        s->now += number_in(p);
        break;
    case '-':
        s->now -= number_in(p);
        break;
    case 'c':
        expect_state(s, HK_BREAKER_CLOSED, at);
        break;
    case 'o':
        expect_state(s, HK_BREAKER_OPEN, at);
        break;
    case 'h':
        expect_state(s, HK_BREAKER_HALF_OPEN, at);
        break;
    case 'i':
        expect_state(s, HK_BREAKER_ISOLATED, at);
        break;
    case '@':
        expect_ready_at(s, number_in(p), at);
        break;
    case ' ':
        break;
    default:
        fail_msg("no such step: \"%s\"", at);
    }
}

static void run_script(const struct hk_breaker_options *o, const char *text)
{
    struct script s = {.b = make(o), .rng = rng_of(1)};
    for (const char *p = text; *p; p++)
        step(&s, &p);
    hk_breaker_free(s.b);
}

/* 3 failures within 100 ms open it for 50, 100, 200 … at most 300 ms */
static struct hk_breaker_options small(void)
{
    struct hk_breaker_options o = standard();
    o.failures = 3;
    o.window_ms = 100;
    o.open_ms = 50;
    o.open_cap_ms = 300;
    o.open_jitter = 0;
    return o;
}

static void failures_in_a_row_open_it(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "c@0@ AFAF c AF o N @50@",            /* three in a row */
        "AFAFASAF AF c AF o",                 /* a success starts the count again */
        "AF+50+AF+49+AF o",                   /* 99 ms from first to last */
        "AF+50+AF+50+AF c +50+AF c +49+AF o", /* 100 ms is too far apart, but the count slides */
        "AF+100+AF+100+AF+100+AF+100+AFc",    /* slow failures never */
        "AAA R R F AFAF o",                   /* a release is no outcome: neither failure nor success */
        "AFAF A R AF o",                      /* … and does not break a row */
        "AF+30+AF-20-AF o @80@",              /* the clock went back: taken as the latest seen */
    };
    struct hk_breaker_options o = small();
    for (size_t i = 0; i < COUNT(scripts); i++)
        run_script(&o, scripts[i]);
}

static void one_failure_can_be_enough(void **state)
{
    (void)state;
    struct hk_breaker_options o = small();
    o.failures = 1;
    run_script(&o, "ASc AFo");
}

static void open_refuses_until_its_time_has_passed(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "AFAFAF o N +49+ o N @50@ +1+ h @50@ A",
        "AFAFAF +50+ h -20- o @50@ N",        /* a query alone does not move the clock */
        "AFAFAF +50+ A -20- h N @never@ S c", /* an acquire does */
        "AFAFAF +1000+ h @1000@",
    };
    struct hk_breaker_options o = small();
    for (size_t i = 0; i < COUNT(scripts); i++)
        run_script(&o, scripts[i]);
}

static void half_open_lets_probes_through_and_no_more(void **state)
{
    (void)state;
    struct hk_breaker_options o = small();
    run_script(&o, "AFAFAF +50+ A N @never@ R A N S c AAAA"); /* a released probe frees its slot */
    run_script(&o, "AFAFAF +50+ A F o");
    o.probes = 2;
    o.successes = 3;
    run_script(&o, "AFAFAF +50+ AAN S h A N S h S c");
    run_script(&o, "AFAFAF +50+ AA S S A F o N");
    /* B hangs over the next half-open period: it keeps its slot there, and its outcome says nothing */
    run_script(&o, "AFAFAF +50+ AA F o @150@ +100+ h A N f o @350@ S o +200+ h AAN");
    run_script(&o, "AFAFAF +50+ AA F +100+ h A N F h A N");
    run_script(&o, "AFAFAF +50+ AA F +100+ h A N R h A N");
}

static void outcomes_from_before_it_opened_are_ignored(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "AAAAAA FFF o SSS o",             /* late successes do not close it */
        "AAAAA FFF +50+ h F h A",         /* late failures do not re-open it, nor take a slot */
        "AAAAA FFF +50+ A N S N S N s c", /* nor free the slot of a probe */
        "AAAAAA FFF +50+ A s c FFF c",    /* nor count once it is closed again */
    };
    struct hk_breaker_options o = small();
    for (size_t i = 0; i < COUNT(scripts); i++)
        run_script(&o, scripts[i]);
}

static void each_re_opening_lasts_longer_up_to_the_cap(void **state)
{
    (void)state;
    struct hk_breaker_options o = small();
    run_script(&o, "AFAFAF @50@ +50+ AF @150@ +100+ AF @350@ +200+ AF @650@ +300+ AF @950@");
    o.open_factor = 1;
    run_script(&o, "AFAFAF @50@ +50+ AF @100@ +50+ AF @150@");
    o.open_factor = 1e300; /* twice of it is infinite */
    run_script(&o, "AFAFAF @50@ +50+ AF @350@ +300+ AF @650@ +300+ AF @950@");
    o.open_factor = 1.5;
    run_script(&o, "AFAFAF @50@ +50+ AF @125@ +75+ AF @237@"); /* 112.5: the fraction is cut … */
    run_script(&o, "AFAFAF +50+ AF +75+ AF +112+ AF @405@");   /* … but carried on: 168.75 */
    o.open_ms = 1000;
    run_script(&o, "AFAFAF @300@"); /* the cap holds for the first time too */
}

static void a_flapping_destination_is_left_alone_longer(void **state)
{
    (void)state;
    struct hk_breaker_options o = small();
    /* opens at 0 for 50; closes at 50; opens again at once, and after 99 ms: growth goes on */
    run_script(&o, "AFAFAF +50+ AS c AFAFAF @150@ +100+ AS c +99+ AFAFAF @449@");
    /* 100 ms without opening: forgotten */
    run_script(&o, "AFAFAF +50+ AS c AFAFAF @150@ +100+ AS c +100+ AFAFAF @300@");
    /* a reset forgets at once */
    run_script(&o, "AFAFAF +50+ AF @150@ X c AFAFAF @100@");
}

static void what_others_saw_trips_it_too(void **state)
{
    (void)state;
    struct hk_breaker_options o = standard();
    o.open_jitter = 0;
    struct hk_breaker *b = make(&o);
    struct hk_rng rng = rng_of(1);
    hk_breaker_permit before, probe;
    assert_true(hk_breaker_acquire(b, 0, &before));
    hk_breaker_trip(b, 40000, 1000);
    assert_int_equal(hk_breaker_state(b, 39999), HK_BREAKER_OPEN);
    assert_int_equal(hk_breaker_ready_at_ms(b, 1000), 40000);
    hk_breaker_record(b, before, true, 2000, &rng); /* from before: says nothing */
    hk_breaker_trip(b, 20000, 3000);                /* already open for longer */
    hk_breaker_trip(b, 2000, 3000);                 /* over already */
    assert_int_equal(hk_breaker_ready_at_ms(b, 3000), 40000);
    assert_int_equal(hk_breaker_state(b, 40000), HK_BREAKER_HALF_OPEN);
    assert_true(hk_breaker_acquire(b, 40000, &probe));
    hk_breaker_record(b, probe, false, 40000, &rng); /* grows from what it was told: 39 s, times two */
    assert_int_equal(hk_breaker_ready_at_ms(b, 40000), 40000 + 78000);
    hk_breaker_isolate(b, 50000);
    hk_breaker_trip(b, 900000, 50000);
    assert_int_equal(hk_breaker_state(b, 50000), HK_BREAKER_ISOLATED);
    hk_breaker_reset(b, 50000);
    hk_breaker_trip(b, 60000, 60000);
    assert_int_equal(hk_breaker_state(b, 60000), HK_BREAKER_CLOSED);
    hk_breaker_free(b);
}

static void a_rest_that_others_told_of_does_not_make_it_impatient(void **state)
{
    (void)state;
    struct hk_breaker_options o = standard();
    o.open_jitter = 0;
    struct hk_breaker *b = make(&o);
    struct hk_rng rng = rng_of(1);
    hk_breaker_permit probe;
    hk_breaker_trip(b, 1005, 1000); /* 5 ms are left of what another opened it for */
    assert_true(hk_breaker_acquire(b, 1005, &probe));
    hk_breaker_record(b, probe, false, 1005, &rng);
    assert_int_equal(hk_breaker_ready_at_ms(b, 1005), 1005 + 2 * (int64_t)o.open_ms);
    hk_breaker_free(b);
}

static void a_person_can_hold_it_open(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "I i N @never@ +1000000+ i N X c @1000000@ A",
        "AFAFAF I i +50+ i N I i X c AFAF c AF o @100@",
        "+1000+ I -1000- X AFAFAF @1050@",              /* its time counts as seen */
        "A I F i X AFAF c AF o",                        /* outcomes from before count for nothing */
        "AAA I X FFF c",                                /* … after the reset neither */
        "AFAF X AF c AF AF o",                          /* a reset forgets failures */
        "AFAFAF +50+ A X c AfAfAf +50+ h A N S h N s c" /* … and probes that are still out */
    };
    struct hk_breaker_options o = small();
    for (size_t i = 0; i < COUNT(scripts); i++)
        run_script(&o, scripts[i]);
}

/* ratio rule only: half of at least 4 within 100 ms, in slices of 5 ms */
static void the_share_of_failures_opens_it(void **state)
{
    (void)state;
    struct hk_breaker_options o = small();
    o.failures = 0;
    o.ratio = 0.5;
    o.min_throughput = 4;
    run_script(&o, "AFAFAF c AF o");              /* too few, then enough */
    run_script(&o, "ASASASAFAF c AF o");          /* 2 of 5, 3 of 6 */
    run_script(&o, "AFAFAF c AS o");              /* the outcome that makes them enough may be a success */
    run_script(&o, "AFAFAF +90+ AS o");           /* up to two slices before the end they count for certain */
    run_script(&o, "AFAFAF +100+ AS AS AS AS c"); /* at window_ms never */
    run_script(&o, "AF +50+ ASASAS +50+ AFAF c AF o");
    run_script(&o, "AFAFAF c AF o +50+ A S c AFAFAF c"); /* closing forgets the outcomes */
    o.ratio = 0.1;
    o.min_throughput = 20;
    run_script(&o, "ASASASASASASASASASAS ASASASASASASASAS AF c AF o"); /* 2 of 20 is 0.1 */
    o.ratio = 1;
    o.min_throughput = 0; /* taken as 1 */
    run_script(&o, "AS AF c +100+ AF o");
    o.failures = 2; /* both rules: either opens it */
    o.min_throughput = 100;
    run_script(&o, "ASAF c AF o");
    o.window_ms = 1;
    o.min_throughput = 3;
    o.failures = 0;
    run_script(&o, "AF +1+ AF +1+ AF +1+ AF c AF c AF o");
}

static void jitter_only_adds_and_keeps_to_the_cap(void **state)
{
    (void)state;
    struct hk_breaker_options o = small();
    o.failures = 1;
    o.open_ms = 1000;
    o.open_jitter = 0.1;
    o.open_cap_ms = 1060;
    struct hk_rng rng = rng_of(7);
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (int i = 0; i < 2000; i++) {
        struct hk_breaker *b = make(&o);
        hk_breaker_permit p;
        assert_true(hk_breaker_acquire(b, 0, &p));
        hk_breaker_record(b, p, false, 0, &rng);
        int64_t at = hk_breaker_ready_at_ms(b, 0);
        least = at < least ? at : least;
        most = at > most ? at : most;
        hk_breaker_free(b);
    }
    assert_int_equal(least, 1000);
    assert_int_equal(most, 1060);
}

static void the_ends_of_time_do_not_overflow(void **state)
{
    (void)state;
    static const int64_t starts[] = {INT64_MIN, -1, 0, INT64_MAX - 10, INT64_MAX};
    struct hk_breaker_options o = standard();
    o.failures = 1;
    o.ratio = 0.5;
    o.open_ms = HK_DURATION_MAX_MS;
    o.open_cap_ms = HK_DURATION_MAX_MS;
    o.window_ms = HK_DURATION_MAX_MS;
    for (size_t i = 0; i < COUNT(starts); i++) {
        struct hk_rng rng = rng_of(i);
        struct hk_breaker *b = make(&o);
        hk_breaker_permit p;
        assert_true(hk_breaker_acquire(b, starts[i], &p));
        hk_breaker_record(b, p, false, starts[i], &rng);
        int64_t at = hk_breaker_ready_at_ms(b, starts[i]);
        assert_true(at >= starts[i]);
        if (starts[i] < INT64_MAX - 10)
            assert_int_equal(at, starts[i] + (int64_t)HK_DURATION_MAX_MS);
        else
            assert_int_equal(at, INT64_MAX);
        assert_int_equal(hk_breaker_state(b, INT64_MAX), HK_BREAKER_HALF_OPEN);
        assert_true(hk_breaker_acquire(b, INT64_MAX, &p));
        assert_false(hk_breaker_acquire(b, INT64_MAX, &p));
        hk_breaker_record(b, p, true, INT64_MIN, &rng);
        assert_int_equal(hk_breaker_state(b, INT64_MIN), HK_BREAKER_CLOSED);
        hk_breaker_free(b);
    }
}

static void states_have_names(void **state)
{
    (void)state;
    assert_string_equal(hk_breaker_state_name(HK_BREAKER_CLOSED), "closed");
    assert_string_equal(hk_breaker_state_name(HK_BREAKER_OPEN), "open");
    assert_string_equal(hk_breaker_state_name(HK_BREAKER_HALF_OPEN), "half_open");
    assert_string_equal(hk_breaker_state_name(HK_BREAKER_ISOLATED), "isolated");
    int outside = 77;
    assert_string_equal(hk_breaker_state_name((enum hk_breaker_state)outside), "unknown");
}

/* ---- memory ---- */

static enum hk_code make_and_free(void)
{
    struct hk_breaker_options o = standard();
    struct hk_breaker *b = NULL;
    struct hk_err err = {0};
    enum hk_code rc = hk_breaker_new(&o, &b, &err);
    assert_true((b != NULL) == (rc == HK_OK));
    assert_int_equal(err.code, rc);
    hk_breaker_free(b);
    return rc;
}

static void out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(make_and_free, HK_OK), 1);
    hk_breaker_free(NULL);
}

/* ---- the model: every event is kept, everything is computed again from the list ---- */

#define MODEL_EVENTS 60000

enum event_kind {
    EV_SUCCESS,
    EV_FAILURE,
    EV_TRIP,
    EV_PROBE_OK,
    EV_CLOSE,
    EV_ISOLATE,
    EV_RESET
};

struct event {
    enum event_kind kind;
    int64_t at;
    int64_t open_until; /* EV_TRIP */
};

struct model_permit {
    hk_breaker_permit permit;
    bool probe;
    size_t given; /* how many events there were when it was given */
};

struct model {
    struct hk_breaker_options o;
    struct hk_rng rng;
    struct event events[MODEL_EVENTS];
    size_t n_events;
    struct model_permit out[64];
    size_t n_out;
    int64_t latest;
};

static bool is_turn(enum event_kind kind)
{
    return kind == EV_TRIP || kind == EV_CLOSE || kind == EV_ISOLATE || kind == EV_RESET;
}

/* the last change of state, as an index; n_events when there was none */
static size_t last_turn(const struct model *m)
{
    for (size_t i = m->n_events; i > 0; i--)
        if (is_turn(m->events[i - 1].kind))
            return i - 1;
    return m->n_events;
}

static enum hk_breaker_state model_state(const struct model *m, int64_t now)
{
    size_t t = last_turn(m);
    if (now < m->latest)
        now = m->latest;
    if (t == m->n_events || m->events[t].kind == EV_CLOSE || m->events[t].kind == EV_RESET)
        return HK_BREAKER_CLOSED;
    if (m->events[t].kind == EV_ISOLATE)
        return HK_BREAKER_ISOLATED;
    return now < m->events[t].open_until ? HK_BREAKER_OPEN : HK_BREAKER_HALF_OPEN;
}

static uint32_t model_probes_out(const struct model *m)
{
    size_t reset = 0;
    for (size_t i = m->n_events; i > 0 && !reset; i--)
        if (m->events[i - 1].kind == EV_RESET)
            reset = i;
    uint32_t n = 0;
    for (size_t i = 0; i < m->n_out; i++)
        n += m->out[i].probe && m->out[i].given >= reset;
    return n;
}

static int64_t model_ready_at(const struct model *m, int64_t now)
{
    switch (model_state(m, now)) {
    case HK_BREAKER_CLOSED:
        return now;
    case HK_BREAKER_OPEN:
        return m->events[last_turn(m)].open_until;
    case HK_BREAKER_HALF_OPEN:
        return model_probes_out(m) < m->o.probes ? now : INT64_MAX;
    case HK_BREAKER_ISOLATED:
        break;
    }
    return INT64_MAX;
}

static void model_add(struct model *m, enum event_kind kind)
{
    assert_true(m->n_events < MODEL_EVENTS);
    m->events[m->n_events++] = (struct event){.kind = kind, .at = m->latest};
}

/* how many times in a row it has re-opened, with the trip at index `i` */
static unsigned model_reopenings(const struct model *m, size_t i)
{
    unsigned k = 0;
    for (; i > 0 && m->events[i - 1].kind != EV_RESET; i--) {
        const struct event *e = &m->events[i - 1];
        k += e->kind == EV_TRIP;
        if (e->kind != EV_CLOSE)
            continue;
        const struct event *next = e;
        while (next->kind != EV_TRIP)
            next++;
        if ((uint64_t)next->at - (uint64_t)e->at >= m->o.window_ms)
            break; /* it had been well for long enough */
    }
    return k;
}

static void model_trip(struct model *m)
{
    model_add(m, EV_TRIP);
    struct event *e = &m->events[m->n_events - 1];
    double ms = (double)m->o.open_ms;
    for (unsigned k = model_reopenings(m, m->n_events - 1); k > 0 && ms < 1e18; k--)
        ms *= m->o.open_factor;
    if (ms > (double)m->o.open_cap_ms)
        ms = (double)m->o.open_cap_ms;
    uint64_t span = (uint64_t)(ms * m->o.open_jitter);
    uint64_t open = (uint64_t)ms + (span ? hk_rng_upto(&m->rng, span) : 0);
    if (open > m->o.open_cap_ms)
        open = m->o.open_cap_ms;
    e->open_until = (uint64_t)INT64_MAX - (uint64_t)m->latest < open ? INT64_MAX : m->latest + (int64_t)open;
}

static uint64_t slice_of(const struct model *m, int64_t t)
{
    uint64_t width = m->o.window_ms / 20 + (m->o.window_ms % 20 != 0);
    return ((uint64_t)t + (UINT64_C(1) << 63)) / width;
}

static bool model_should_trip(const struct model *m)
{
    uint64_t width = m->o.window_ms / 20 + (m->o.window_ms % 20 != 0);
    uint64_t slices = m->o.window_ms / width;
    unsigned in_a_row = 0;
    unsigned total = 0;
    unsigned failed = 0;
    bool row = true;
    for (size_t i = m->n_events; i > 0 && !is_turn(m->events[i - 1].kind); i--) {
        const struct event *e = &m->events[i - 1];
        if ((uint64_t)m->latest - (uint64_t)e->at >= m->o.window_ms)
            break;
        row = row && e->kind == EV_FAILURE;
        in_a_row += row;
        if (slice_of(m, m->latest) - slice_of(m, e->at) < slices) {
            total++;
            failed += e->kind == EV_FAILURE;
        }
    }
    if (m->o.failures && m->events[m->n_events - 1].kind == EV_FAILURE && in_a_row >= m->o.failures)
        return true;
    return m->o.ratio > 0 && total >= m->o.min_throughput && (double)failed / total >= m->o.ratio;
}

static void model_record(struct model *m, struct model_permit p, bool success)
{
    size_t t = last_turn(m);
    if (t != m->n_events && p.given <= t)
        return; /* given before the last change of state */
    if (!p.probe) {
        model_add(m, success ? EV_SUCCESS : EV_FAILURE);
        if (model_should_trip(m))
            model_trip(m);
        return;
    }
    if (!success) {
        model_trip(m);
        return;
    }
    model_add(m, EV_PROBE_OK);
    uint32_t ok = 0;
    for (size_t i = m->n_events; m->events[i - 1].kind == EV_PROBE_OK; i--)
        ok++;
    if (ok >= m->o.successes)
        model_add(m, EV_CLOSE);
}

/* ---- the random walk ---- */

struct walk {
    struct hk_breaker *b;
    struct model m;
    struct hk_rng rng;    /* given to the breaker; the model has a copy */
    struct hk_rng choice; /* drives the walk */
    int64_t now;
    uint64_t health; /* chance of success, in percent */
    unsigned seen[4];
};

static uint64_t pick(struct walk *w, uint64_t n)
{
    return hk_rng_upto(&w->choice, n - 1);
}

static void walk_time(struct walk *w)
{
    int64_t ready = hk_breaker_ready_at_ms(w->b, w->now);
    uint64_t by = 0;
    switch (pick(w, 10)) {
    case 0:
        by = pick(w, 3);
        break;
    case 1:
        by = pick(w, w->m.o.window_ms * 2);
        break;
    case 2: /* a clock that goes back */
        if (w->now > INT64_MIN + 100000)
            w->now -= (int64_t)pick(w, w->m.o.window_ms * 2);
        return;
    case 3:
    case 4:
        if (ready != INT64_MAX && ready > w->now)
            w->now = ready - (int64_t)pick(w, 2);
        return;
    case 5:
        by = pick(w, w->m.o.window_ms / 4 + 1);
        break;
    default:
        break;
    }
    if (w->now < INT64_MAX - (int64_t)by)
        w->now += (int64_t)by;
}

static void walk_acquire(struct walk *w)
{
    struct model *m = &w->m;
    if (m->n_out == COUNT(m->out))
        return;
    m->latest = w->now > m->latest ? w->now : m->latest;
    enum hk_breaker_state s = model_state(m, w->now);
    bool want = s == HK_BREAKER_CLOSED || (s == HK_BREAKER_HALF_OPEN && model_probes_out(m) < m->o.probes);
    hk_breaker_permit p = 0;
    assert_int_equal(hk_breaker_acquire(w->b, w->now, &p), want);
    assert_int_equal(p != 0, want);
    if (want)
        m->out[m->n_out++] = (struct model_permit){p, s == HK_BREAKER_HALF_OPEN, m->n_events};
}

static void walk_give_back(struct walk *w, bool record)
{
    struct model *m = &w->m;
    if (m->n_out == 0)
        return;
    size_t i = pick(w, m->n_out);
    struct model_permit p = m->out[i];
    m->out[i] = m->out[--m->n_out];
    m->latest = w->now > m->latest ? w->now : m->latest;
    if (!record) {
        hk_breaker_release(w->b, p.permit, w->now);
        return;
    }
    bool success = pick(w, 100) < w->health;
    hk_breaker_record(w->b, p.permit, success, w->now, &w->rng);
    model_record(m, p, success);
}

static void walk_operator(struct walk *w)
{
    bool isolate = pick(w, 2);
    w->m.latest = w->now > w->m.latest ? w->now : w->m.latest;
    model_add(&w->m, isolate ? EV_ISOLATE : EV_RESET);
    if (isolate)
        hk_breaker_isolate(w->b, w->now);
    else
        hk_breaker_reset(w->b, w->now);
}

static void walk_compare(struct walk *w, int64_t at)
{
    enum hk_breaker_state s = hk_breaker_state(w->b, at);
    assert_int_equal(s, model_state(&w->m, at));
    assert_int_equal(hk_breaker_ready_at_ms(w->b, at), model_ready_at(&w->m, at));
    w->seen[s]++;
}

static void walk_step(struct walk *w)
{
    uint64_t what = pick(w, 1000);
    if (what < 5)
        walk_operator(w);
    else if (what < 10)
        w->health = pick(w, 5) * 25;
    else if (what < 450)
        walk_acquire(w);
    else if (what < 500)
        walk_give_back(w, false);
    else if (what < 850)
        walk_give_back(w, true);
    else
        walk_time(w);
    walk_compare(w, w->now);
    if (pick(w, 20) == 0) {
        walk_compare(w, INT64_MIN);
        walk_compare(w, INT64_MAX);
    }
}

static void run_walk(const struct hk_breaker_options *o, uint64_t seed, int64_t start, unsigned seen[4])
{
    struct walk *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->b = make(o);
    w->m.o = *o;
    w->m.latest = INT64_MIN;
    w->m.rng = w->rng = rng_of(seed);
    hk_rng_seed(&w->choice, seed, 99);
    w->now = start;
    w->health = 50;
    for (unsigned i = 0; i < 20000; i++)
        walk_step(w);
    for (unsigned i = 0; i < 4; i++)
        seen[i] += w->seen[i];
    hk_breaker_free(w->b);
    free(w);
}

static void it_does_what_the_model_does(void **state)
{
    (void)state;
    static const struct hk_breaker_options sets[] = {
        {5, 0, 20, 30000, 10000, 2, 300000, 0.1, 1, 1},
        {3, 0, 0, 100, 50, 1.5, 300, 0.5, 2, 3},
        {0, 0.5, 6, 1000, 200, 2, 5000, 0, 3, 2},
        {4, 0.3, 5, 47, 10, 3, 1000, 1, 4, 2},
        {1, 0, 0, 1, 1, 1, 1, 0, 1, 1},
        {1000, 0.9, 3, 333, 100, 2, 90, 0.1, 1, 2},
        {7, 1, 2, 7, 20, 1.1, 100, 0.3, 8, 8},
    };
    static const int64_t starts[] = {0, INT64_MIN, INT64_MAX - 500000, -3};
    for (size_t i = 0; i < COUNT(sets); i++) {
        unsigned seen[4] = {0};
        for (size_t j = 0; j < COUNT(starts); j++)
            run_walk(&sets[i], i * 10 + j, starts[j], seen);
        /* the walk is of use only if it goes everywhere */
        for (unsigned s = 0; s < 4; s++)
            assert_true(seen[s] > 500 || (s == HK_BREAKER_OPEN && sets[i].open_cap_ms == 1));
    }
}

static void a_short_trip_does_not_shorten_what_has_grown(void **state)
{
    (void)state;
    struct hk_breaker_options o = standard();
    o.open_jitter = 0;
    struct hk_breaker *b = make(&o);
    struct hk_rng rng = rng_of(1);
    hk_breaker_permit probe;
    hk_breaker_trip(b, 40000, 0);
    assert_true(hk_breaker_acquire(b, 40000, &probe));
    hk_breaker_record(b, probe, false, 40000, &rng); /* open for 80 s */
    hk_breaker_trip(b, 130000, 120000);              /* another's, for 10 s */
    assert_int_equal(hk_breaker_ready_at_ms(b, 120000), 130000);
    assert_true(hk_breaker_acquire(b, 130000, &probe));
    hk_breaker_record(b, probe, false, 130000, &rng);
    assert_int_equal(hk_breaker_ready_at_ms(b, 130000), 130000 + 160000);
    hk_breaker_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_the_standard_preset),
        cmocka_unit_test(options_outside_their_range_are_refused_by_name),
        cmocka_unit_test(failures_in_a_row_open_it),
        cmocka_unit_test(one_failure_can_be_enough),
        cmocka_unit_test(open_refuses_until_its_time_has_passed),
        cmocka_unit_test(half_open_lets_probes_through_and_no_more),
        cmocka_unit_test(outcomes_from_before_it_opened_are_ignored),
        cmocka_unit_test(each_re_opening_lasts_longer_up_to_the_cap),
        cmocka_unit_test(a_flapping_destination_is_left_alone_longer),
        cmocka_unit_test(a_person_can_hold_it_open),
        cmocka_unit_test(what_others_saw_trips_it_too),
        cmocka_unit_test(a_rest_that_others_told_of_does_not_make_it_impatient),
        cmocka_unit_test(the_share_of_failures_opens_it),
        cmocka_unit_test(jitter_only_adds_and_keeps_to_the_cap),
        cmocka_unit_test(the_ends_of_time_do_not_overflow),
        cmocka_unit_test(states_have_names),
        cmocka_unit_test(out_of_memory_is_an_error_and_leaks_nothing),
        cmocka_unit_test(it_does_what_the_model_does),
        cmocka_unit_test(a_short_trip_does_not_shorten_what_has_grown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
