/* SPDX-License-Identifier: Apache-2.0 */
/* The limiter against its documented scenarios, and against a model that replays every grant in whole numbers. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hikyaku/breaker.h>

#include "base/parse.h"
#include "check.h"
#include "failing.h"

static struct hk_limiter *make(double rate, double burst, uint32_t slots, uint64_t ramp_ms, double ramp_start,
                               int64_t now)
{
    struct hk_limiter_options o = {rate, burst, slots, ramp_ms, ramp_start};
    struct hk_limiter *l = NULL;
    assert_int_equal(hk_limiter_new(&o, now, &l, NULL), HK_OK);
    return l;
}

/* acquires at `now` until it is refused, at most `max` times; the slots are given back */
static unsigned drain(struct hk_limiter *l, int64_t now, unsigned max)
{
    unsigned n = 0;
    while (n < max && hk_limiter_acquire(l, now)) {
        hk_limiter_release(l);
        n++;
    }
    return n;
}

/* ---- options ---- */

static void the_defaults_limit_nothing(void **state)
{
    (void)state;
    struct hk_limiter_options o;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&o);
    assert_true(o.rate_per_s == 0.0 && o.burst == 1.0 && o.ramp_start == 0.1);
    assert_int_equal(o.concurrency, 0);
    assert_int_equal(o.ramp_ms, 0);
    assert_int_equal(hk_limiter_new(&o, 5, &l, NULL), HK_OK);
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(hk_limiter_ready_at_ms(l, 5), 5);
        assert_true(hk_limiter_acquire(l, 5));
        assert_int_equal(hk_limiter_in_flight(l), i + 1);
    }
    hk_limiter_resume(l, 5); /* there is no rate to ramp */
    assert_true(hk_limiter_acquire(l, 5));
    hk_limiter_hold(l, 7);
    assert_false(hk_limiter_acquire(l, 6));
    assert_int_equal(hk_limiter_ready_at_ms(l, 6), 7);
    assert_true(hk_limiter_acquire(l, 7));
    hk_limiter_free(l);
}

enum field {
    RATE,
    BURST,
    BURST_ALONE,
    RAMP,
    START
};

static void set_field(struct hk_limiter_options *o, enum field field, double d, uint64_t u)
{
    switch (field) {
    case RATE:
        o->rate_per_s = d;
        break;
    case BURST_ALONE:
        o->rate_per_s = 0;
        o->burst = d;
        break;
    case BURST:
        o->burst = d;
        break;
    case RAMP:
        o->ramp_ms = u;
        break;
    case START:
        o->ramp_start = d;
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
        const char *names;
    } cases[] = {
        {RATE, 1.0 / 86400, 0, HK_OK, ""},
        {RATE, 1e6, 0, HK_OK, ""},
        {RATE, 0, 0, HK_OK, ""},
        {RATE, 9e-6, 0, HK_RANGE, "rate_per_s"},
        {RATE, -1, 0, HK_RANGE, "rate_per_s"},
        {RATE, 1000001, 0, HK_RANGE, "rate_per_s"},
        {RATE, (double)NAN, 0, HK_INVALID, "rate_per_s"},
        {RATE, HUGE_VAL, 0, HK_INVALID, "rate_per_s"},
        {BURST, 1, 0, HK_OK, ""},
        {BURST, 1e9, 0, HK_OK, ""},
        {BURST, 0.999, 0, HK_RANGE, "burst"},
        {BURST, 1.1e9, 0, HK_RANGE, "burst"},
        {BURST, (double)NAN, 0, HK_INVALID, "burst"},
        {BURST_ALONE, 0, 0, HK_OK, ""},
        {BURST_ALONE, (double)NAN, 0, HK_OK, ""}, /* without a rate it says nothing */
        {RAMP, 0, HK_DURATION_MAX_MS, HK_OK, ""},
        {RAMP, 0, HK_DURATION_MAX_MS + 1, HK_RANGE, "ramp_ms"},
        {START, 0, 0, HK_OK, ""},
        {START, 1, 0, HK_OK, ""},
        {START, -0.1, 0, HK_RANGE, "ramp_start"},
        {START, 1.1, 0, HK_RANGE, "ramp_start"},
        {START, (double)NAN, 0, HK_INVALID, "ramp_start"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_limiter_options o = {100, 10, 5, 1000, 0.5};
        struct hk_limiter *l = NULL;
        struct hk_err err = {0};
        set_field(&o, cases[i].field, cases[i].d, cases[i].u);
        assert_int_equal(hk_limiter_new(&o, 0, &l, &err), cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_int_equal(strncmp(err.message, cases[i].names, strlen(cases[i].names)), 0);
        assert_true((l != NULL) == (cases[i].code == HK_OK));
        if (l)
            assert_true(hk_limiter_acquire(l, 0));
        hk_limiter_free(l);
    }
}

/* ---- scenarios ---- */

static void a_full_bucket_is_spent_then_refills_at_the_rate(void **state)
{
    (void)state;
    struct hk_limiter *l = make(100, 5, 0, 0, 1, 0);
    assert_int_equal(drain(l, 0, 99), 5);
    assert_int_equal(hk_limiter_ready_at_ms(l, 0), 10);
    assert_int_equal(drain(l, 9, 99), 0);
    assert_int_equal(drain(l, 10, 99), 1);
    assert_int_equal(drain(l, 25, 99), 1);
    assert_int_equal(hk_limiter_ready_at_ms(l, 25), 30); /* the half token of before is not lost */
    assert_int_equal(drain(l, 60, 99), 4);
    assert_int_equal(drain(l, 1000, 99), 5); /* what is above the burst is lost */
    assert_int_equal(drain(l, 1009, 99), 0);
    assert_int_equal(drain(l, 500, 99), 0); /* the clock went back */
    assert_int_equal(hk_limiter_ready_at_ms(l, 500), 1010);
    assert_int_equal(drain(l, 1010, 99), 1);
    hk_limiter_free(l);
}

static void the_first_millisecond_is_exact_for_every_rate(void **state)
{
    (void)state;

    static const struct {
        double rate;
        int64_t ready;
    } cases[] = {
        {1.0 / 86400, 86400000},
        {1.0 / 3600, 3600000},
        {1.0 / 60, 60000},
        {0.1, 10000},
        {0.25, 4000},
        {1, 1000},
        {3, 334},
        {7, 143},
        {100, 10},
        {999, 2},
        {1000, 1},
        {1001, 1},
        {1e6, 1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_limiter *l = make(cases[i].rate, 1, 0, 0, 1, 0);
        assert_true(hk_limiter_acquire(l, 0));
        assert_int_equal(hk_limiter_ready_at_ms(l, 0), cases[i].ready);
        assert_false(hk_limiter_acquire(l, cases[i].ready - 1));
        assert_true(hk_limiter_acquire(l, cases[i].ready));
        hk_limiter_free(l);
    }
}

static void slots_bound_what_is_under_way(void **state)
{
    (void)state;
    struct hk_limiter *l = make(10, 3, 2, 0, 1, 0);
    assert_true(hk_limiter_acquire(l, 0));
    assert_true(hk_limiter_acquire(l, 0));
    assert_int_equal(hk_limiter_ready_at_ms(l, 0), INT64_MAX);
    assert_false(hk_limiter_acquire(l, 0));
    assert_int_equal(hk_limiter_in_flight(l), 2);
    hk_limiter_release(l);
    assert_int_equal(hk_limiter_in_flight(l), 1);
    assert_int_equal(hk_limiter_ready_at_ms(l, 0), 0); /* the refusal took no token */
    assert_true(hk_limiter_acquire(l, 0));
    hk_limiter_release(l);
    assert_int_equal(hk_limiter_ready_at_ms(l, 0), 100); /* a release brings no token back */
    hk_limiter_free(l);
}

static void a_hold_stops_everything_and_the_later_one_wins(void **state)
{
    (void)state;
    struct hk_limiter *l = make(10, 2, 0, 0, 1, 0);
    hk_limiter_hold(l, 500);
    hk_limiter_hold(l, 300);
    assert_int_equal(hk_limiter_ready_at_ms(l, 0), 500);
    assert_int_equal(drain(l, 499, 99), 0);
    assert_int_equal(drain(l, 500, 99), 2);
    hk_limiter_hold(l, 550); /* shorter than the wait for a token */
    assert_int_equal(hk_limiter_ready_at_ms(l, 500), 600);
    hk_limiter_hold(l, 800); /* the bucket fills behind it */
    assert_int_equal(hk_limiter_ready_at_ms(l, 500), 800);
    assert_int_equal(hk_limiter_ready_at_ms(l, 900), 900);
    hk_limiter_resume(l, 600); /* does not lift it */
    assert_int_equal(hk_limiter_ready_at_ms(l, 600), 800);
    assert_int_equal(drain(l, 799, 99), 0);
    assert_int_equal(drain(l, 800, 99), 2);
    hk_limiter_hold(l, INT64_MAX);
    assert_int_equal(hk_limiter_ready_at_ms(l, 800), INT64_MAX);
    hk_limiter_free(l);
}

static void after_a_resume_the_rate_rises_from_an_empty_bucket(void **state)
{
    (void)state;
    /* 1000/s, from nothing over 2 s: after x ms x^2/4000 tokens have come */
    struct hk_limiter *l = make(1000, 5000, 0, 2000, 0, 0);
    hk_limiter_resume(l, 0);
    assert_int_equal(hk_limiter_ready_at_ms(l, 0), 64); /* 63.2 */
    assert_int_equal(drain(l, 1000, 9999), 250);
    assert_int_equal(drain(l, 2000, 9999), 750);
    assert_int_equal(drain(l, 3000, 9999), 1000); /* from here on the full rate */
    hk_limiter_resume(l, 2500);                   /* late news of an earlier time: taken as 3000 */
    assert_int_equal(drain(l, 4000, 9999), 250);
    hk_limiter_free(l);

    /* half at the start: x/2 + x^2/8000 */
    l = make(1000, 5000, 0, 2000, 0.5, 0);
    hk_limiter_resume(l, 0);
    assert_int_equal(drain(l, 1000, 9999), 625);
    assert_int_equal(drain(l, 2000, 9999), 875);
    hk_limiter_free(l);

    l = make(1000, 50, 0, 2000, 0.5, 0); /* a full bucket during the ramp does not end the ramp */
    hk_limiter_resume(l, 0);
    assert_int_equal(drain(l, 1000, 9999), 50);
    assert_int_equal(drain(l, 1040, 9999), 30); /* 30.2 at three quarters of the rate */
    assert_int_equal(drain(l, 9000, 9999), 50);
    assert_int_equal(drain(l, 9040, 9999), 40);
    hk_limiter_free(l);

    l = make(1000, 50, 0, 0, 0.5, 0); /* no ramp: the full rate at once, but nothing saved up */
    hk_limiter_resume(l, 0);
    assert_int_equal(drain(l, 0, 9999), 0);
    assert_int_equal(drain(l, 40, 9999), 40);
    hk_limiter_free(l);
}

static void the_ends_of_time_do_not_overflow(void **state)
{
    (void)state;
    struct hk_limiter *l = make(1.0 / 86400, 2, 0, HK_DURATION_MAX_MS, 0, INT64_MIN);
    assert_int_equal(hk_limiter_ready_at_ms(l, INT64_MIN), INT64_MIN);
    assert_int_equal(drain(l, INT64_MIN, 99), 2);
    hk_limiter_resume(l, INT64_MIN);
    assert_true(hk_limiter_ready_at_ms(l, INT64_MIN) > INT64_MIN);
    assert_int_equal(drain(l, INT64_MAX, 99), 2);
    hk_limiter_resume(l, INT64_MAX - 5);
    assert_int_equal(hk_limiter_ready_at_ms(l, INT64_MAX - 5), INT64_MAX);
    assert_int_equal(drain(l, INT64_MAX, 99), 0);
    assert_int_equal(hk_limiter_ready_at_ms(l, INT64_MAX), INT64_MAX);
    hk_limiter_free(l);

    l = make(1, 1, 0, 0, 1, INT64_MAX - 5);
    assert_true(hk_limiter_acquire(l, INT64_MIN));
    assert_int_equal(hk_limiter_ready_at_ms(l, INT64_MAX - 5), INT64_MAX);
    assert_false(hk_limiter_acquire(l, INT64_MAX));
    hk_limiter_free(l);
}

/* one every 3 ms for a long while: what was computed in one go must not differ from what adds up */
static void rounding_does_not_add_up(void **state)
{
    (void)state;
    struct hk_limiter *l = make(1000.0 / 3, 10, 0, 0, 1, 0);
    assert_int_equal(drain(l, 0, 99), 10);
    unsigned n = 0;
    for (int64_t t = 1; t <= 3000000; t++)
        n += drain(l, t, 99);
    assert_in_range(n, 999999, 1000000);
    hk_limiter_free(l);
}

/* ---- memory ---- */

static enum hk_code make_and_free(void)
{
    struct hk_limiter_options o;
    hk_limiter_options_init(&o);
    struct hk_limiter *l = NULL;
    struct hk_err err = {0};
    enum hk_code rc = hk_limiter_new(&o, 0, &l, &err);
    assert_true((l != NULL) == (rc == HK_OK));
    assert_int_equal(err.code, rc);
    hk_limiter_free(l);
    return rc;
}

static void out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(make_and_free, HK_OK), 1);
    hk_limiter_free(NULL);
}

/* ---- the model: all grants and resumes, replayed from the start each time, in 128-bit whole numbers ----
 * With rate = rn/rd, start = sn/1000 and R the ramp (1 when there is none) one token is `unit` = 2*R*1000*1000*rd:
 * then every amount is whole. */

__extension__ typedef __int128 wide;

#define EPISODE 300

struct set {
    int64_t rn, rd;    /* rate */
    int64_t burst_tho; /* burst in thousandths */
    uint32_t slots;
    int64_t ramp;
    int64_t sn;    /* ramp_start in thousandths */
    bool in_whole; /* the limiter's doubles are whole numbers too: no tolerance at all */
};

struct event {
    bool resume;
    int64_t at;
};

struct model {
    const struct set *s;
    struct event events[EPISODE];
    size_t n_events;
    uint32_t in_flight;
    int64_t start, latest, held_until;
};

static int64_t ramp_of(const struct set *s)
{
    return s->ramp ? s->ramp : 1;
}

static wide unit(const struct set *s)
{
    return (wide)2 * ramp_of(s) * 1000 * 1000 * s->rd;
}

static wide tolerance(const struct set *s)
{
    return s->in_whole ? 0 : unit(s) / 10000000;
}

/* what comes in during the first x ms after a resume */
static wide ramp_integral(const struct set *s, int64_t x)
{
    wide r = s->ramp;
    if (x <= s->ramp)
        return s->rn * (s->sn * 2 * r * x + (1000 - s->sn) * (wide)x * x);
    return ramp_integral(s, s->ramp) + (wide)s->rn * 1000 * 2 * r * (x - s->ramp);
}

static wide came_in(const struct set *s, bool resumed, int64_t resumed_at, int64_t from, int64_t to)
{
    if (!resumed || s->ramp == 0)
        return (wide)s->rn * 1000 * 2 * ramp_of(s) * (to - from);
    return ramp_integral(s, to - resumed_at) - ramp_integral(s, from - resumed_at);
}

static wide model_tokens(const struct model *m, int64_t at)
{
    wide brim = unit(m->s) / 1000 * m->s->burst_tho;
    wide tokens = brim;
    int64_t from = m->start;
    bool resumed = false;
    int64_t resumed_at = 0;
    for (size_t i = 0; i <= m->n_events; i++) {
        int64_t to = i < m->n_events ? m->events[i].at : at;
        tokens += came_in(m->s, resumed, resumed_at, from, to);
        if (tokens > brim)
            tokens = brim;
        from = to;
        if (i == m->n_events)
            break;
        if (m->events[i].resume) {
            tokens = 0;
            resumed = true;
            resumed_at = to;
        } else {
            tokens -= unit(m->s);
        }
    }
    return tokens;
}

static void check_ready(const struct model *m, const struct hk_limiter *l, int64_t now)
{
    int64_t ready = hk_limiter_ready_at_ms(l, now);
    if (m->s->slots && m->in_flight == m->s->slots) {
        assert_int_equal(ready, INT64_MAX);
        return;
    }
    int64_t first = now > m->latest ? now : m->latest;
    bool held = first < m->held_until;
    if (held)
        first = m->held_until;
    wide one = unit(m->s);
    wide tol = tolerance(m->s);
    if (ready == (held ? first : now)) {
        assert_true(model_tokens(m, first) >= one - tol);
        return;
    }
    assert_true(ready > first);
    assert_true(model_tokens(m, ready) >= one - tol);
    assert_true(model_tokens(m, ready - 1) < one + tol);
}

static void check_acquire(struct model *m, struct hk_limiter *l, int64_t now)
{
    m->latest = now > m->latest ? now : m->latest;
    bool free_slot = m->s->slots == 0 || m->in_flight < m->s->slots;
    bool may = free_slot && m->latest >= m->held_until;
    wide tokens = model_tokens(m, m->latest);
    wide one = unit(m->s);
    bool got = hk_limiter_acquire(l, now);
    if (!may || tokens < one - tolerance(m->s))
        assert_false(got);
    else if (tokens >= one + tolerance(m->s))
        assert_true(got);
    if (!got)
        return;
    m->events[m->n_events++] = (struct event){.at = m->latest};
    m->in_flight++;
}

/* never before ready_at, always at it */
static int64_t leap(struct model *m, struct hk_limiter *l, int64_t now)
{
    int64_t ready = hk_limiter_ready_at_ms(l, now);
    if (ready == INT64_MAX || ready <= now)
        return now;
    size_t granted = m->n_events;
    check_acquire(m, l, ready - 1);
    assert_int_equal(m->n_events, granted);
    assert_int_equal(hk_limiter_ready_at_ms(l, ready - 1), ready);
    check_acquire(m, l, ready);
    assert_int_equal(m->n_events, granted + 1);
    return ready;
}

static int64_t random_wait(const struct set *s, struct hk_rng *rng)
{
    uint64_t token_ms = (uint64_t)(1000 * s->rd / s->rn) + 1;
    uint64_t most[] = {1, token_ms, token_ms * 3, token_ms * 40, (uint64_t)s->ramp / 4 + 1};
    return (int64_t)hk_rng_upto(rng, most[hk_rng_upto(rng, COUNT(most) - 1)]);
}

static int64_t act(struct model *m, struct hk_limiter *l, int64_t now, struct hk_rng *rng)
{
    uint64_t what = hk_rng_upto(rng, 99);
    if (what < 45) {
        check_acquire(m, l, now);
    } else if (what < 65 && m->in_flight > 0) {
        hk_limiter_release(l);
        m->in_flight--;
    } else if (what < 67) {
        hk_limiter_resume(l, now);
        m->latest = now > m->latest ? now : m->latest;
        m->events[m->n_events++] = (struct event){.resume = true, .at = m->latest};
    } else if (what < 69) {
        int64_t until = now + random_wait(m->s, rng) * (hk_rng_upto(rng, 1) ? 1 : -1);
        hk_limiter_hold(l, until);
        m->held_until = until > m->held_until ? until : m->held_until;
    } else if (what < 71) {
        return now - random_wait(m->s, rng); /* a clock that goes back */
    } else if (what < 80) {
        return leap(m, l, now);
    } else {
        return now + random_wait(m->s, rng);
    }
    return now;
}

/* over any interval: grants <= burst + rate * length */
static void check_grants(const struct model *m)
{
    const struct set *s = m->s;
    for (size_t i = 0; i < m->n_events; i++) {
        wide granted = 0;
        for (size_t j = i; j < m->n_events; j++) {
            granted += m->events[j].resume ? 0 : unit(s);
            wide length = m->events[j].at - m->events[i].at;
            wide most = unit(s) / 1000 * s->burst_tho + (wide)s->rn * 1000 * 2 * ramp_of(s) * length;
            assert_true(granted <= most + tolerance(s));
        }
    }
}

static size_t run_episode(const struct set *s, struct hk_rng *rng, int64_t start)
{
    static struct model m;
    m = (struct model){.s = s, .start = start, .latest = start, .held_until = INT64_MIN};
    struct hk_limiter *l = make((double)s->rn / (double)s->rd, (double)s->burst_tho / 1000, s->slots,
                                (uint64_t)s->ramp, (double)s->sn / 1000, start);
    int64_t now = start;
    for (unsigned i = 0; i < EPISODE; i++) {
        now = act(&m, l, now, rng);
        assert_int_equal(hk_limiter_in_flight(l), m.in_flight);
        check_ready(&m, l, now);
    }
    check_grants(&m);
    hk_limiter_free(l);
    return m.n_events;
}

static void it_does_what_the_model_does(void **state)
{
    (void)state;
    static const struct set sets[] = {
        {100, 1, 5000, 0, 0, 1000, true},      {1, 4, 1000, 3, 0, 1000, true},
        {1000, 1, 20500, 4, 0, 0, true},       {1, 86400, 3000, 0, 0, 1000, false},
        {1000000, 1, 1500000, 0, 0, 0, true},  {7, 3, 2300, 5, 0, 1000, false},
        {100, 1, 10000, 0, 5000, 100, false},  {50, 1, 1000, 2, 10000, 0, false},
        {1000000, 1, 2000, 0, 777, 1, false},  {1, 3600, 4000, 0, 86400000, 250, false},
        {333, 10, 1000, 1, 1000, 1000, false},
    };
    static const int64_t starts[] = {0, -1000000, INT64_MIN + 1000000000000, INT64_MAX - 1000000000000};
    for (size_t i = 0; i < COUNT(sets); i++) {
        struct hk_rng rng;
        size_t events = 0;
        hk_rng_seed(&rng, i, 6);
        for (unsigned n = 0; n < 80; n++)
            events += run_episode(&sets[i], &rng, starts[n % COUNT(starts)]);
        assert_true(events > 80 * 30); /* enough was granted to say something */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_limit_nothing),
        cmocka_unit_test(options_outside_their_range_are_refused_by_name),
        cmocka_unit_test(a_full_bucket_is_spent_then_refills_at_the_rate),
        cmocka_unit_test(the_first_millisecond_is_exact_for_every_rate),
        cmocka_unit_test(slots_bound_what_is_under_way),
        cmocka_unit_test(a_hold_stops_everything_and_the_later_one_wins),
        cmocka_unit_test(after_a_resume_the_rate_rises_from_an_empty_bucket),
        cmocka_unit_test(the_ends_of_time_do_not_overflow),
        cmocka_unit_test(rounding_does_not_add_up),
        cmocka_unit_test(out_of_memory_is_an_error_and_leaks_nothing),
        cmocka_unit_test(it_does_what_the_model_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
