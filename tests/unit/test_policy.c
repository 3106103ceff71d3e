/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions: which attempt is the last, how long the waits are, what is charged, what a hint does; and that no
 * policy that passes the check can go on for ever. */
#include <hikyaku/alloc.h>
#include <hikyaku/breaker.h>
#include <hikyaku/policy.h>

#include "check.h"

enum {
    S = 1000,
    M = 60 * S,
    H = 60 * M
};

static struct hk_policy *policy_of(const char *preset)
{
    struct hk_policy *p = NULL;
    assert_int_equal(hk_policy_new(preset, &p, NULL), HK_OK);
    assert_int_equal(hk_policy_check(p, NULL), HK_OK);
    return p;
}

/* One message going through its life: a clock that the waits advance. */
struct life {
    const struct hk_policy *policy;
    const struct hk_overrides *overrides;
    void *instance;
    struct hk_history history;
    struct hk_rng rng;
    int64_t now_ms;
    struct hk_decision d;
};

static struct life life_of(const struct hk_policy *p)
{
    struct life life = {.policy = p, .now_ms = 1000000, .history = {.first_attempt_ms = 1000000}};
    hk_rng_seed(&life.rng, 7, HK_RNG_BACKOFF);
    return life;
}

static struct hk_decision settle(struct life *life, struct hk_facts facts)
{
    hk_policy_decide(life->policy, life->instance, life->overrides, &life->history, &facts, life->now_ms,
                     INT64_C(1790000000000), &life->rng, &life->d);
    life->now_ms += (int64_t)life->d.wait_ms;
    return life->d;
}

static struct hk_decision status(struct life *life, int code)
{
    return settle(life, (struct hk_facts){.status = code});
}

static void expect_dead(struct hk_decision d, const char *reason)
{
    NOTE_IF(d.verdict != HK_DEAD || strcmp(d.reason, reason) != 0, "%s %s, want dead %s\n",
            hk_verdict_name(d.verdict), d.reason, reason);
    assert_int_equal(d.verdict, HK_DEAD);
    assert_string_equal(d.reason, reason);
    assert_true(d.wait_ms == 0);
}

static void expect_retry(struct hk_decision d, uint64_t lo, uint64_t hi)
{
    NOTE_IF(d.verdict != HK_RETRY || d.wait_ms < lo || d.wait_ms > hi, "%s %llu, want %llu..%llu\n",
            hk_verdict_name(d.verdict), (unsigned long long)d.wait_ms, (unsigned long long)lo,
            (unsigned long long)hi);
    assert_int_equal(d.verdict, HK_RETRY);
    assert_true(d.wait_ms >= lo && d.wait_ms <= hi);
    assert_string_equal(d.reason, "");
}

/* ---- presets ---- */

/* Requirement 402: transient dies at its tenth failure after 1, 2, 4 … s; 429 at its fourth, 10 s apart; auth and
 * bad data at the first. */
static void test_sync_pipeline(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct life life = life_of(p);
    for (int n = 0; n < 9; n++)
        expect_retry(status(&life, 503), (uint64_t)S << n, (uint64_t)S << n);
    expect_dead(status(&life, 503), "RETRY_EXHAUSTED");
    assert_int_equal(life.history.attempts, 10);

    life = life_of(p);
    for (int n = 0; n < 3; n++)
        expect_retry(status(&life, 429), 10 * S, 10 * S);
    expect_dead(status(&life, 429), "RETRY_EXHAUSTED");

    static const struct {
        int status;
        const char *reason;
    } at_once[] = {{401, "AUTH_FAILED"}, {403, "AUTH_FAILED"}, {400, "HTTP_400"}, {422, "HTTP_422"}};

    for (size_t i = 0; i < COUNT(at_once); i++) {
        life = life_of(p);
        expect_dead(status(&life, at_once[i].status), at_once[i].reason);
    }
    /* at most ten tries, whatever the mixture */
    life = life_of(p);
    for (int n = 0; n < 3; n++)
        expect_retry(status(&life, 429), 10 * S, 10 * S);
    for (int n = 0; n < 6; n++)
        expect_retry(status(&life, 500), (uint64_t)S << n, (uint64_t)S << n);
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED");
    hk_policy_free(p);
}

static void test_standard(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    double total = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct life life = life_of(p);
        hk_rng_seed(&life.rng, seed, HK_RNG_BACKOFF);
        uint64_t ceiling = 1 * S;
        for (int n = 1; n < 30; n++) {
            expect_retry(settle(&life, (struct hk_facts){.fault = HK_FAULT_CONNECT}), 0, ceiling);
            ceiling = ceiling * 2 < 1 * H ? ceiling * 2 : 1 * H;
        }
        expect_dead(settle(&life, (struct hk_facts){.fault = HK_FAULT_CONNECT}), "RETRY_EXHAUSTED");
        total += (double)(life.now_ms - life.history.first_attempt_ms);
    }
    assert_true(total / 400 > 8.8 * H && total / 400 < 9.3 * H); /* "about 9 h on average" */
    assert_non_null(hk_policy_breaker(p));

    struct life life = life_of(p);
    for (int n = 0; n < 3; n++)
        expect_retry(status(&life, 302), 0, (uint64_t)S << n);
    expect_dead(status(&life, 302), "RETRY_EXHAUSTED"); /* unknown: four attempts */
    hk_policy_free(p);
}

static void test_azure(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("azure-exponential");
    struct life life = life_of(p);
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    expect_retry(status(&life, 500), 9 * S, 13 * S);
    expect_retry(status(&life, 500), 25 * S, 30 * S);
    for (int n = 3; n < 10; n++)
        expect_retry(status(&life, 500), 30 * S, 30 * S);
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED"); /* ten retries, eleven attempts */
    hk_policy_free(p);
    p = policy_of("azure-linear");
    life = life_of(p);
    for (int n = 0; n < 10; n++)
        expect_retry(status(&life, 500), 800, 1200);
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED");
    hk_policy_free(p);
}

static void test_cloud_tasks(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("cloud-tasks");
    struct life life = life_of(p);
    static const int not_2xx[] = {500, 404, 401, 302, 400};
    for (unsigned n = 1; n < 100; n++) {
        uint64_t want = n <= 17 ? UINT64_C(100) << (n - 1) : (UINT64_C(100) << 16) * (n - 16);
        want = want < 1 * H ? want : 1 * H;
        /* every class but rate_limit is transient here, so that the waits go on growing */
        expect_retry(status(&life, not_2xx[n % COUNT(not_2xx)]), want, want);
    }
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED");
    life = life_of(p);
    expect_dead(settle(&life, (struct hk_facts){.fault = HK_FAULT_INVALID_PAYLOAD}), "VALIDATION_ERROR");
    hk_policy_free(p);
}

static void test_standard_webhooks(void **state)
{
    (void)state;
    static const uint64_t waits[] = {5 * S, 5 * M, 30 * M, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, 24 * H};
    struct hk_policy *p = policy_of("standard-webhooks");
    struct life life = life_of(p);
    for (size_t n = 0; n < COUNT(waits); n++)
        expect_retry(status(&life, 500), waits[n] / 10 * 9, waits[n] / 10 * 11);
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED");
    life = life_of(p);
    assert_true(status(&life, 410).pause_destination);
    hk_policy_free(p);
}

static void test_presets_are_listed_and_sound(void **state)
{
    (void)state;
    size_t n = 0;
    for (; hk_preset_name(n); n++) {
        struct hk_policy *p = policy_of(hk_preset_name(n));
        assert_true(strlen(hk_preset_summary(n)) > 10);
        assert_string_equal(hk_policy_name(p), hk_preset_name(n));
        assert_string_equal(hk_policy_preset(p), hk_preset_name(n));
        hk_policy_free(p);
    }
    assert_int_equal(n, 6);
    assert_null(hk_preset_summary(n));
    struct hk_policy *p = NULL;
    struct hk_err err;
    assert_int_equal(hk_policy_new("nope", &p, &err), HK_NOTFOUND);
    assert_null(p);
    assert_non_null(strstr(err.message, "nope"));
    assert_non_null(strstr(err.message, "standard-webhooks"));
}

/* ---- hints ---- */

static struct hk_facts answer(int code, struct hk_header *h, const char *name, const char *value)
{
    *h = (struct hk_header){{name, strlen(name)}, {value, strlen(value)}};
    return (struct hk_facts){.status = code, .headers = h, .n_headers = 1};
}

static void set_limits(struct hk_policy *p, struct hk_limits limits)
{
    assert_int_equal(hk_policy_set_limits(p, &limits, NULL), HK_OK);
}

static void test_hint_replaces_the_schedule(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_header h;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct life life = life_of(p);
        hk_rng_seed(&life.rng, seed, 1);
        struct hk_decision d = settle(&life, answer(429, &h, "Retry-After", "100"));
        expect_retry(d, 100 * S, 110 * S); /* jitter only adds */
        assert_true(d.hinted && !d.charged && d.hold_ms == d.wait_ms);
        d = settle(&life, answer(503, &h, "retry-after", "7"));
        expect_retry(d, 7 * S, 7700);
        assert_true(d.hinted && d.charged && d.hold_ms == d.wait_ms);
        /* a longer schedule is replaced, too */
        life.history.failures[HK_CLASS_TRANSIENT] = 20;
        expect_retry(settle(&life, answer(503, &h, "Retry-After", "1")), 1 * S, 1100);
    }
    hk_policy_free(p);
}

static void test_hint_is_capped_and_never_undercut(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_header h;
    struct life life = life_of(p);
    expect_retry(settle(&life, answer(429, &h, "Retry-After", "999999999999999999999")), 1 * H, 1 * H);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        life = life_of(p);
        hk_rng_seed(&life.rng, seed, 1);
        expect_retry(settle(&life, answer(429, &h, "Retry-After", "3599")), 3599 * S, 1 * H);
    }
    hk_policy_free(p);
}

static void test_hint_counts_where_the_policy_says(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline"); /* no jitter: exact */
    struct hk_header h;
    struct life life = life_of(p);
    expect_retry(settle(&life, answer(429, &h, "Retry-After", "33")), 33 * S, 33 * S);
    expect_retry(settle(&life, answer(503, &h, "Retry-After", "33")), 33 * S, 33 * S);
    expect_retry(settle(&life, answer(500, &h, "Retry-After", "33")), 2 * S, 2 * S); /* not a 503 */
    assert_true(life.d.hold_ms == 0);
    expect_retry(settle(&life, answer(503, &h, "Retry-After", "soon")), 4 * S, 4 * S); /* malformed */
    expect_retry(settle(&life, answer(503, &h, "Retry-After", "0")), 8 * S, 8 * S);    /* asks for no wait */

    struct hk_limits limits = *hk_policy_limits(p);
    limits.hints = HK_HINTS_ALL;
    set_limits(p, limits);
    life = life_of(p);
    expect_retry(settle(&life, answer(500, &h, "x-ms-retry-after-ms", "250")), 250, 250);
    limits.hints = HK_HINTS_NONE;
    set_limits(p, limits);
    life = life_of(p);
    expect_retry(settle(&life, answer(503, &h, "Retry-After", "33")), 1 * S, 1 * S);
    limits.hints = (enum hk_hint_mode)9;
    assert_int_equal(hk_policy_set_limits(p, &limits, NULL), HK_INVALID);
    limits.hints = HK_HINTS_NONE;
    limits.mode = (enum hk_limit_mode)9;
    assert_int_equal(hk_policy_set_limits(p, &limits, NULL), HK_INVALID);
    hk_policy_free(p);
}

/* A message that dies of its 429s still tells how long the destination wants to be left alone. */
static void test_dying_message_still_holds_the_destination(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_header h;
    struct life life = life_of(p);
    life.history.failures[HK_CLASS_RATE_LIMIT] = 3;
    expect_dead(settle(&life, answer(429, &h, "Retry-After", "33")), "RETRY_EXHAUSTED");
    assert_true(life.d.hold_ms == 33 * S);
    hk_policy_free(p);
}

/* Azure's waits are random as well, so its hints spread, too. */
static void test_hints_spread_for_azure(void **state)
{
    (void)state;
    struct hk_header h;
    static const char *const presets[] = {"azure-exponential", "azure-linear"};
    for (size_t i = 0; i < COUNT(presets); i++) {
        struct hk_policy *p = policy_of(presets[i]);
        bool above = false;
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct life life = life_of(p);
            hk_rng_seed(&life.rng, seed, 1);
            above |= settle(&life, answer(429, &h, "Retry-After", "100")).wait_ms > 100 * S;
        }
        assert_true(above);
        hk_policy_free(p);
    }
}

/* A hint does not feed the decorrelated jitter: the next own wait starts from the last own one. */
static void test_hint_leaves_the_schedule_alone(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_jitter j = {.kind = HK_JITTER_DECORRELATED};
    assert_int_equal(hk_policy_set_backoff(p, hk_policy_backoff(p), &j, NULL), HK_OK);
    struct hk_header h;
    struct life life = life_of(p);
    settle(&life, answer(503, &h, "Retry-After", "3000"));
    assert_true(life.history.prev_wait_ms == 0);
    expect_retry(status(&life, 503), 1 * S, 3 * S);
    hk_policy_free(p);
}

/* ---- limits ---- */

static void test_rate_limit_costs_nothing_but_time(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_header h;
    struct life life = life_of(p);
    unsigned n = 0;
    while (settle(&life, answer(429, &h, "Retry-After", "600")).verdict == HK_RETRY)
        n++;
    expect_dead(life.d, "DEADLINE_EXCEEDED");
    assert_true(n > 100 && n <= 144); /* 24 h in steps of 10 to 11 minutes, far over 30 attempts */
    assert_int_equal(life.history.charged, 0);
    assert_true(life.now_ms - life.history.first_attempt_ms < 24 * (int64_t)H);
    hk_policy_free(p);
}

static void test_elapsed_ends_it_before_a_wait_that_does_not_fit(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_elapsed_ms = 10 * S;
    set_limits(p, limits);
    struct life life = life_of(p);
    expect_retry(status(&life, 500), 1 * S, 1 * S);       /* at 0 s */
    expect_retry(status(&life, 500), 2 * S, 2 * S);       /* at 1 s */
    expect_retry(status(&life, 500), 4 * S, 4 * S);       /* at 3 s */
    expect_dead(status(&life, 500), "DEADLINE_EXCEEDED"); /* at 7 s: 8 more do not fit */

    /* exactly at the limit does not fit, one millisecond before does */
    life = life_of(p);
    life.now_ms += 9000;
    expect_dead(status(&life, 500), "DEADLINE_EXCEEDED");
    life = life_of(p);
    life.now_ms += 8999;
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    /* long past it, and with a clock that went back */
    life = life_of(p);
    life.now_ms += 100 * H;
    expect_dead(status(&life, 500), "DEADLINE_EXCEEDED");
    life = life_of(p);
    life.now_ms -= 100 * H;
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    /* paused time does not count */
    life = life_of(p);
    life.now_ms += 9000;
    life.history.paused_ms = 1;
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    life = life_of(p);
    life.history.paused_ms = UINT64_MAX;
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    hk_policy_free(p);
}

static void test_both_limits_must_be_spent_in_mode_all(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_limits limits = *hk_policy_limits(p);
    limits.mode = HK_LIMIT_ALL;
    limits.max_attempts = 3;
    limits.max_elapsed_ms = 20 * S;
    set_limits(p, limits);
    assert_int_equal(hk_policy_check(p, NULL), HK_OK);
    struct life life = life_of(p);
    for (int n = 0; n < 4; n++) /* 1 + 2 + 4 + 8 s; attempts are spent after three, time is not */
        expect_retry(status(&life, 500), (uint64_t)S << n, (uint64_t)S << n);
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED"); /* at 15 s, 16 more do not fit */

    life = life_of(p);
    life.now_ms += 100 * S; /* time is spent, attempts are not */
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    assert_true(hk_policy_attempt_ms(p, NULL, &life.history, life.now_ms) == 30 * S);

    limits.max_attempts = 0; /* only time is limited: it ends alone */
    set_limits(p, limits);
    life = life_of(p);
    life.now_ms += 100 * S;
    expect_dead(status(&life, 500), "DEADLINE_EXCEEDED");
    limits.max_attempts = 2; /* only attempts */
    limits.max_elapsed_ms = 0;
    set_limits(p, limits);
    life = life_of(p);
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    life.now_ms += 100 * H;
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED");
    hk_policy_free(p);
}

static void test_one_attempt_dies_of_its_cause(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_overrides once = {.max_attempts = 1};
    struct life life = life_of(p);
    life.overrides = &once;
    expect_dead(settle(&life, (struct hk_facts){.fault = HK_FAULT_TIMEOUT}), "TIMEOUT");
    struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_TRANSIENT);
    rule.max_attempts = 1;
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_TRANSIENT, &rule, NULL), HK_OK);
    life = life_of(p);
    expect_dead(settle(&life, (struct hk_facts){.fault = HK_FAULT_DNS}), "TRANSIENT_NETWORK");
    hk_policy_free(p);
}

static void test_overrides_for_one_operation(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_overrides o = {.max_attempts = 2, .max_elapsed_ms = 5 * S, .timeout_ms = 3 * S};
    struct life life = life_of(p);
    life.overrides = &o;
    assert_true(hk_policy_attempt_ms(p, &o, &life.history, life.now_ms) == 3 * S);
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    expect_dead(status(&life, 500), "RETRY_EXHAUSTED");
    o.max_attempts = 100;
    life = life_of(p);
    life.overrides = &o;
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    expect_retry(status(&life, 500), 2 * S, 2 * S);
    expect_dead(status(&life, 500), "DEADLINE_EXCEEDED");
    o = (struct hk_overrides){.timeout_ms = 0};
    assert_true(hk_policy_attempt_ms(p, &o, &life.history, life.history.first_attempt_ms) == 30 * S);
    hk_policy_free(p);
}

static void test_an_attempt_gets_what_time_is_left(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_elapsed_ms = 100 * S;
    set_limits(p, limits);
    struct hk_history history = {.first_attempt_ms = 0};
    /* not tried yet: it has waited as long as it liked, the clock starts now */
    assert_true(hk_policy_attempt_ms(p, NULL, &history, 500 * S) == 30 * S);
    history.attempts = 1;
    assert_true(hk_policy_attempt_ms(p, NULL, &history, 60 * S) == 30 * S);
    assert_true(hk_policy_attempt_ms(p, NULL, &history, 90 * S) == 10 * S);
    assert_true(hk_policy_attempt_ms(p, NULL, &history, 99999) == 1);
    assert_true(hk_policy_attempt_ms(p, NULL, &history, 100 * S) == 0);
    assert_true(hk_policy_attempt_ms(p, NULL, &history, INT64_MAX) == 0);
    limits.max_elapsed_ms = 0;
    limits.timeout_ms = 0;
    set_limits(p, limits);
    assert_true(hk_policy_attempt_ms(p, NULL, &history, 100 * S) == UINT64_MAX);
    hk_policy_free(p);
}

static void test_each_class_counts_its_own_failures(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_jitter exact = {.kind = HK_JITTER_NONE};
    assert_int_equal(hk_policy_set_backoff(p, hk_policy_backoff(p), &exact, NULL), HK_OK);
    struct life life = life_of(p);
    expect_retry(status(&life, 500), 1 * S, 1 * S);
    expect_retry(status(&life, 302), 1 * S, 1 * S);
    expect_retry(status(&life, 500), 2 * S, 2 * S);
    expect_retry(status(&life, 302), 2 * S, 2 * S);
    expect_retry(status(&life, 302), 4 * S, 4 * S);
    expect_dead(status(&life, 302), "RETRY_EXHAUSTED");
    assert_int_equal(life.history.failures[HK_CLASS_TRANSIENT], 2);
    assert_int_equal(life.history.failures[HK_CLASS_UNKNOWN], 4);
    assert_int_equal(life.history.charged, 6);
    hk_policy_free(p);
}

static void test_success(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct life life = life_of(p);
    status(&life, 500);
    struct hk_decision d = status(&life, 204);
    assert_int_equal(d.verdict, HK_DELIVERED);
    assert_true(d.charged && !d.unhealthy && !d.pause_destination && d.hold_ms == 0 && d.wait_ms == 0);
    assert_string_equal(d.cause, "");
    assert_string_equal(d.reason, "");
    assert_int_equal(life.history.attempts, 2);
    hk_policy_free(p);
}

static void test_what_speaks_against_the_destination(void **state)
{
    (void)state;

    static const struct {
        struct hk_facts facts;
        bool unhealthy, pause;
    } rows[] = {
        {{.status = 500}, true, false},
        {{.fault = HK_FAULT_TIMEOUT}, true, false},
        {{.status = 302}, true, false},
        {{.fault = HK_FAULT_LOCAL}, false, false}, /* our own fault */
        {{.status = 429}, false, false},
        {{.status = 400}, false, false},
        {{.status = 401}, false, false},
        {{.status = 401, .failures_in_row = 4}, false, false},
        {{.status = 401, .failures_in_row = 5}, false, true},
        {{.status = 403, .failures_in_row = 500}, false, true},
        {{.status = 500, .failures_in_row = 500}, true, false},
        {{.status = 410}, false, true},
        {{.status = 200}, false, false},
    };
    struct hk_policy *p = policy_of("standard");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct life life = life_of(p);
        struct hk_decision d = settle(&life, rows[i].facts);
        NOTE_IF(d.unhealthy != rows[i].unhealthy || d.pause_destination != rows[i].pause, "row %zu\n", i);
        assert_int_equal(d.unhealthy, rows[i].unhealthy);
        assert_int_equal(d.pause_destination, rows[i].pause);
    }
    hk_policy_free(p);
}

static void test_counters_do_not_wrap(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_attempts = 0;
    set_limits(p, limits);
    struct life life = life_of(p);
    life.history.attempts = UINT32_MAX;
    life.history.charged = UINT32_MAX;
    life.history.failures[HK_CLASS_TRANSIENT] = UINT32_MAX;
    expect_retry(status(&life, 500), 0, 1 * H);
    assert_true(life.history.attempts == UINT32_MAX && life.history.charged == UINT32_MAX);
    hk_policy_free(p);
}

/* ---- one's own policy ---- */

struct own {
    int created, destroyed, asked;
    uint32_t last_count;
    uint64_t wait_ms;
    bool yes;
};

static bool own_should_retry(void *instance, uint32_t count, int code, const struct hk_facts *facts,
                             uint64_t *wait_ms)
{
    struct own *own = instance;
    assert_int_equal(code, facts->status);
    own->asked++;
    own->last_count = count;
    *wait_ms = own->wait_ms;
    return own->yes;
}

static const struct hk_policy_ops own_ops = {.should_retry = own_should_retry};

static void test_own_policy_decides_within_the_limits(void **state)
{
    (void)state;
    struct own own = {.wait_ms = 123, .yes = true};
    struct hk_policy *p = policy_of("standard");
    hk_policy_set_ops(p, &own_ops, &own);
    void *arg;
    assert_ptr_equal(hk_policy_ops(p, &arg), &own_ops);
    assert_ptr_equal(arg, &own);
    assert_non_null(hk_policy_ops(p, NULL));
    struct life life = life_of(p);
    life.instance = &own;
    static const int codes[] = {400, 401, 429, 500}; /* it decides for every class */
    for (unsigned n = 0; n < 29; n++) {
        expect_retry(status(&life, codes[n % 4]), 123, 123);
        assert_int_equal(own.last_count, n);
        assert_true(life.d.charged);
    }
    expect_dead(status(&life, 429), "RETRY_EXHAUSTED");
    assert_int_equal(own.asked, 30);
    life = life_of(p);
    life.instance = &own;
    own.yes = false;
    expect_dead(status(&life, 503), "HTTP_503");
    own.yes = true;
    own.wait_ms = UINT64_MAX;
    life = life_of(p);
    life.instance = &own;
    expect_dead(status(&life, 503), "DEADLINE_EXCEEDED");
    hk_policy_free(p);
}

/* ---- building and checking ---- */

static void test_setters_refuse_and_leave_alone(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_err err;
    const uint64_t too_long = UINT64_C(3155760000001);
    struct hk_backoff bad = *hk_policy_backoff(p);
    bad.cap_ms = 0;
    assert_int_equal(hk_policy_set_backoff(p, &bad, hk_policy_jitter(p), &err), HK_RANGE);
    assert_true(hk_policy_backoff(p)->cap_ms == 1 * H);

    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_elapsed_ms = too_long;
    assert_int_equal(hk_policy_set_limits(p, &limits, &err), HK_RANGE);
    assert_non_null(strstr(err.message, "max_elapsed"));
    limits = *hk_policy_limits(p);
    limits.timeout_ms = too_long;
    assert_int_equal(hk_policy_set_limits(p, &limits, &err), HK_RANGE);
    assert_non_null(strstr(err.message, "timeout"));
    limits = *hk_policy_limits(p);
    limits.hint_cap_ms = too_long;
    assert_int_equal(hk_policy_set_limits(p, &limits, &err), HK_RANGE);
    assert_non_null(strstr(err.message, "hint_cap"));
    limits.hint_cap_ms = 0;
    assert_int_equal(hk_policy_set_limits(p, &limits, &err), HK_RANGE);
    limits.hints = HK_HINTS_NONE;
    assert_int_equal(hk_policy_set_limits(p, &limits, &err), HK_OK);

    struct hk_class_rule rule = {.retry = true, .has_backoff = true};
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_AUTH, &rule, &err), HK_RANGE);
    assert_false(hk_policy_class(p, HK_CLASS_AUTH)->retry);
    rule = (struct hk_class_rule){.has_jitter = true, .jitter = {.kind = HK_JITTER_RATIO, .ratio = 2}};
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_AUTH, &rule, &err), HK_RANGE);
    rule = (struct hk_class_rule){.retry = false};
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_SUCCESS, &rule, &err), HK_INVALID);
    assert_int_equal(hk_policy_set_class(p, HK_NCLASSES, &rule, &err), HK_INVALID);
    assert_null(hk_policy_class(p, HK_CLASS_SUCCESS));
    assert_null(hk_policy_class(p, HK_NCLASSES));

    assert_int_equal(hk_policy_set_breaker(p, NULL, &err), HK_OK);
    assert_null(hk_policy_breaker(p));
    struct hk_breaker_options breaker;
    hk_breaker_options_init(&breaker);
    breaker.window_ms = 0;
    assert_int_not_equal(hk_policy_set_breaker(p, &breaker, &err), HK_OK);
    assert_null(hk_policy_breaker(p));
    breaker.window_ms = 5 * S;
    assert_int_equal(hk_policy_set_breaker(p, &breaker, &err), HK_OK);
    assert_true(hk_policy_breaker(p)->window_ms == 5 * S);
    hk_policy_free(p);
    hk_policy_free(NULL);
}

static void test_names_of_policies(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        bool ok;
    } rows[] = {
        {"orders", true},
        {"a", true},
        {"_x", true},
        {"1st", true},
        {"a-b.c_d", true},
        {"", false},
        {"-a", false},
        {".a", false},
        {"a b", false},
        {"a/b", false},
        {"\xc3\xa9", false},
        {"a\n", false},
        {"n23456789012345678901234567890123456789012345678901234567890123", true},
        {"n234567890123456789012345678901234567890123456789012345678901234", false},
    };
    struct hk_policy *p = policy_of("standard");
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum hk_code rc = hk_policy_set_name(p, rows[i].name, NULL);
        NOTE_IF((rc == HK_OK) != rows[i].ok, "name \"%s\"\n", rows[i].name);
        assert_int_equal(rc == HK_OK, rows[i].ok);
        assert_true(!rows[i].ok || strcmp(hk_policy_name(p), rows[i].name) == 0);
    }
    hk_policy_free(p);
}

/* Never for ever: whatever the check lets pass ends, in a bounded number of decisions. */
static void test_what_passes_the_check_ends(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 5, 5);
    static const int codes[] = {500, 429, 401, 400, 302};
    unsigned refused = 0, ended = 0;
    for (int i = 0; i < 4000; i++) {
        struct hk_policy *p = policy_of("standard");
        struct hk_limits limits = *hk_policy_limits(p);
        limits.max_attempts = (uint32_t)hk_rng_upto(&rng, 3) * 5;
        limits.max_elapsed_ms = hk_rng_upto(&rng, 2) * 600 * S;
        limits.mode = (enum hk_limit_mode)hk_rng_upto(&rng, 1);
        set_limits(p, limits);
        for (int cls = HK_CLASS_TRANSIENT; cls < HK_NCLASSES; cls++) {
            struct hk_class_rule rule = {
                .retry = hk_rng_upto(&rng, 3) > 0,
                .charge = hk_rng_upto(&rng, 1),
                .max_attempts = (uint32_t)hk_rng_upto(&rng, 1) * 4,
                .has_backoff = true,
                .backoff = {.kind = HK_BACKOFF_FIXED, .base_ms = 1 * S, .cap_ms = 1 * S}};
            assert_int_equal(hk_policy_set_class(p, (enum hk_class)cls, &rule, NULL), HK_OK);
        }
        struct hk_err err;
        if (hk_policy_check(p, &err) != HK_OK) {
            assert_non_null(strstr(err.message, "for ever"));
            refused++;
        } else {
            for (size_t c = 0; c < COUNT(codes); c++) {
                struct life life = life_of(p);
                unsigned n = 0;
                do
                    status(&life, codes[c]);
                while (life.d.verdict == HK_RETRY && ++n < 1000000);
                assert_int_equal(life.d.verdict, HK_DEAD);
                ended++;
            }
        }
        hk_policy_free(p);
    }
    assert_true(refused > 500 && ended > 500);
}

static void test_check_finds_what_setters_could_not_see(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_err err;
    /* a class's jitter was fine with the policy's backoff, until that became Azure's */
    struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_UNKNOWN);
    rule.has_jitter = true;
    rule.jitter.kind = HK_JITTER_EQUAL;
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_UNKNOWN, &rule, &err), HK_OK);
    struct hk_backoff azure = {.kind = HK_BACKOFF_AZURE_LINEAR, .base_ms = 1 * S, .cap_ms = 9 * S};
    struct hk_jitter none = {.kind = HK_JITTER_NONE};
    assert_int_equal(hk_policy_set_backoff(p, &azure, &none, &err), HK_OK);
    assert_int_equal(hk_policy_check(p, &err), HK_INVALID);
    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_attempts = 0;
    limits.max_elapsed_ms = 0;
    set_limits(p, limits);
    assert_int_equal(hk_policy_check(p, &err), HK_RANGE);
    assert_non_null(strstr(err.message, "for ever"));
    hk_policy_free(p);
}

static void *no_memory(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    (void)ptr;
    (void)bytes;
    return NULL;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard"), *copy = NULL, *none = NULL;
    struct hk_err err;
    assert_int_equal(hk_policy_copy(p, &copy, &err), HK_OK);
    assert_memory_equal(hk_policy_backoff(p), hk_policy_backoff(copy), sizeof(struct hk_backoff));
    hk_policy_free(copy);
    hk_allocator_set(&(struct hk_allocator){no_memory, NULL, NULL});
    enum hk_code made = hk_policy_new("standard", &none, &err);
    enum hk_code copied = hk_policy_copy(p, &none, &err);
    hk_allocator_set(NULL);
    assert_int_equal(made, HK_NOMEM);
    assert_int_equal(copied, HK_NOMEM);
    assert_null(none);
    hk_policy_free(p);
}

static void test_verdict_names(void **state)
{
    (void)state;
    assert_string_equal(hk_verdict_name(HK_DELIVERED), "delivered");
    assert_string_equal(hk_verdict_name(HK_RETRY), "retry");
    assert_string_equal(hk_verdict_name(HK_DEAD), "dead");
    assert_string_equal(hk_verdict_name((enum hk_verdict)9), "none");
}

/* The operation's first retry only, whatever the classes; and never after a rate limit. */
static void test_fast_first_is_once_for_the_operation(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_backoff fast = *hk_policy_backoff(p);
    struct hk_jitter none = {.kind = HK_JITTER_NONE};
    fast.fast_first = true;
    assert_int_equal(hk_policy_set_backoff(p, &fast, &none, NULL), HK_OK);
    struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_RATE_LIMIT);
    rule.backoff.fast_first = true;
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_RATE_LIMIT, &rule, NULL), HK_OK);
    struct life life = life_of(p);
    expect_retry(status(&life, 503), 0, 0);
    expect_retry(status(&life, 302), 1 * S, 1 * S);
    expect_retry(status(&life, 503), 2 * S, 2 * S);
    life = life_of(p);
    expect_retry(status(&life, 429), 10 * S, 10 * S);
    expect_retry(status(&life, 503), 1 * S, 1 * S);
    hk_policy_free(p);
}

/* Ten retries are ten retries, whatever they are for: a 429 a second for a day would be hammering. */
static void test_azure_presets_charge_rate_limits(void **state)
{
    (void)state;
    static const char *const presets[] = {"azure-exponential", "azure-linear"};
    for (size_t i = 0; i < COUNT(presets); i++) {
        struct hk_policy *p = policy_of(presets[i]);
        struct life life = life_of(p);
        while (status(&life, 429).verdict == HK_RETRY)
            ;
        assert_int_equal(life.history.attempts, 11);
        hk_policy_free(p);
    }
}

/* ---- what mutations of the code had survived ---- */

static void test_small_print_of_decisions(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct life life = life_of(p);
    status(&life, 429);
    assert_true(life.d.hold_ms == 10 * S); /* without a hint, too */
    struct hk_header h;
    life = life_of(p);
    expect_retry(settle(&life, answer(504, &h, "Retry-After", "33")), 1 * S, 1 * S);
    expect_retry(settle(&life, answer(502, &h, "Retry-After", "33")), 2 * S, 2 * S);
    /* a rate limit that kills its message holds the destination all the same */
    struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_RATE_LIMIT);
    rule.retry = false;
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_RATE_LIMIT, &rule, NULL), HK_OK);
    life = life_of(p);
    expect_dead(settle(&life, answer(429, &h, "Retry-After", "33")), "RATE_LIMITED");
    assert_true(life.d.hold_ms == 33 * S);
    hk_policy_free(p);
}

static void test_decorrelated_grows_from_its_own_class(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_jitter j = {.kind = HK_JITTER_DECORRELATED};
    assert_int_equal(hk_policy_set_backoff(p, hk_policy_backoff(p), &j, NULL), HK_OK);
    uint64_t longest = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct life life = life_of(p);
        hk_rng_seed(&life.rng, seed, 1);
        uint64_t before = 1 * S;
        for (int n = 0; n < 8; n++) {
            uint64_t most = 3 * before < 1 * H ? 3 * before : 1 * H;
            expect_retry(status(&life, 500), 1 * S, most);
            before = life.d.wait_ms;
        }
        longest = before > longest ? before : longest;
        expect_retry(status(&life, 302), 1 * S, 3 * S); /* another class starts anew */
    }
    assert_true(longest > 60 * S); /* it does remember its previous wait */
    hk_policy_free(p);
}

static void test_own_policy_waits_are_bounded(void **state)
{
    (void)state;
    struct own own = {.wait_ms = UINT64_MAX, .yes = true};
    struct hk_policy *p = policy_of("standard");
    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_elapsed_ms = 0;
    set_limits(p, limits);
    hk_policy_set_ops(p, &own_ops, &own);
    struct life life = life_of(p);
    life.instance = &own;
    expect_retry(status(&life, 500), UINT64_C(3155760000000), UINT64_C(3155760000000));
    static const struct hk_policy_ops hollow = {.should_retry = NULL};
    hk_policy_set_ops(p, &hollow, NULL);
    assert_int_equal(hk_policy_check(p, NULL), HK_INVALID);
    hk_policy_free(p);
}

static void test_a_class_with_its_own_limit_needs_no_other(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("cloud-tasks"); /* no time limit */
    struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_RATE_LIMIT);
    rule.charge = false;
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_RATE_LIMIT, &rule, NULL), HK_OK);
    assert_int_equal(hk_policy_check(p, NULL), HK_RANGE);
    rule.max_attempts = 7;
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_RATE_LIMIT, &rule, NULL), HK_OK);
    assert_int_equal(hk_policy_check(p, NULL), HK_OK);
    hk_policy_free(p);
}

static void test_cloud_tasks_in_full(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("cloud-tasks");
    assert_true(hk_policy_limits(p)->timeout_ms == 10 * M);
    assert_int_equal(hk_policy_limits(p)->mode, HK_LIMIT_ALL);
    assert_int_equal(hk_policy_class(p, HK_CLASS_UNKNOWN)->max_attempts, 0);
    char cause[HK_REASON_MAX];
    bool pause;
    assert_int_equal(hk_policy_classify(p, &(struct hk_facts){.status = 100}, cause, &pause),
                     HK_CLASS_UNKNOWN);
    struct life life = life_of(p);
    for (int n = 0; n < 20; n++) /* certificates are retried like everything else */
        assert_int_equal(settle(&life, (struct hk_facts){.fault = HK_FAULT_TLS_VERIFY}).verdict, HK_RETRY);
    hk_policy_free(p);
}

/* Google counts retries, whatever they were for: a 404 between two 500s does not begin the waits anew. */
static void test_cloud_tasks_counts_all_failures(void **state)
{
    static const int statuses[] = {500, 404, 500, 429, 302};
    struct hk_policy *p = policy_of("cloud-tasks");
    struct life life = life_of(p);
    for (size_t i = 0; i < 5 && !*state; i++)
        assert_int_equal(settle(&life, (struct hk_facts){.status = statuses[i]}).wait_ms, UINT64_C(100) << i);
    hk_policy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sync_pipeline),
        cmocka_unit_test(test_standard),
        cmocka_unit_test(test_azure),
        cmocka_unit_test(test_cloud_tasks),
        cmocka_unit_test(test_standard_webhooks),
        cmocka_unit_test(test_presets_are_listed_and_sound),
        cmocka_unit_test(test_hint_replaces_the_schedule),
        cmocka_unit_test(test_hint_is_capped_and_never_undercut),
        cmocka_unit_test(test_hint_counts_where_the_policy_says),
        cmocka_unit_test(test_dying_message_still_holds_the_destination),
        cmocka_unit_test(test_hints_spread_for_azure),
        cmocka_unit_test(test_hint_leaves_the_schedule_alone),
        cmocka_unit_test(test_rate_limit_costs_nothing_but_time),
        cmocka_unit_test(test_elapsed_ends_it_before_a_wait_that_does_not_fit),
        cmocka_unit_test(test_both_limits_must_be_spent_in_mode_all),
        cmocka_unit_test(test_one_attempt_dies_of_its_cause),
        cmocka_unit_test(test_overrides_for_one_operation),
        cmocka_unit_test(test_an_attempt_gets_what_time_is_left),
        cmocka_unit_test(test_each_class_counts_its_own_failures),
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_what_speaks_against_the_destination),
        cmocka_unit_test(test_counters_do_not_wrap),
        cmocka_unit_test(test_own_policy_decides_within_the_limits),
        cmocka_unit_test(test_setters_refuse_and_leave_alone),
        cmocka_unit_test(test_names_of_policies),
        cmocka_unit_test(test_what_passes_the_check_ends),
        cmocka_unit_test(test_check_finds_what_setters_could_not_see),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_verdict_names),
        cmocka_unit_test(test_fast_first_is_once_for_the_operation),
        cmocka_unit_test(test_azure_presets_charge_rate_limits),
        cmocka_unit_test(test_small_print_of_decisions),
        cmocka_unit_test(test_decorrelated_grows_from_its_own_class),
        cmocka_unit_test(test_own_policy_waits_are_bounded),
        cmocka_unit_test(test_a_class_with_its_own_limit_needs_no_other),
        cmocka_unit_test(test_cloud_tasks_in_full),
        cmocka_unit_test(test_cloud_tasks_counts_all_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
