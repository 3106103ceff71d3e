/* SPDX-License-Identifier: Apache-2.0 */
/* What a redrive does next, alone and over whole jobs. */
#include <math.h>
#include <stdbool.h>

#include <hikyaku/rng.h>

#include "check.h"
#include "core/redrive.h"

#define T0 INT64_C(1763200000000)

static struct hk_redrive_next decide(struct hk_redrive_pace pace, struct hk_redrive_facts facts,
                                     int64_t after_ms)
{
    struct hk_redrive_next next;
    memset(&next, 0xff, sizeof next);
    hk_redrive_decide(&pace, &facts, T0 + after_ms, &next);
    return next;
}

/* A job that began at T0 and last requeued then. */
static struct hk_redrive_facts begun(uint64_t total, uint64_t requeued, uint64_t resolved, uint64_t failed)
{
    return (struct hk_redrive_facts){.started_ms = T0,
                                     .total = total,
                                     .requeued = requeued,
                                     .resolved = resolved,
                                     .failed = failed,
                                     .tokens_ms = T0};
}

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(hk_redrive_status_name(HK_REDRIVE_RUNNING), "running");
    assert_string_equal(hk_redrive_status_name(HK_REDRIVE_DONE), "done");
    assert_string_equal(hk_redrive_status_name(HK_REDRIVE_CANCELLED), "cancelled");
    assert_string_equal(hk_redrive_status_name(HK_REDRIVE_ABORTED), "aborted");
    assert_string_equal(hk_redrive_status_name(HK_NREDRIVE_STATUSES), "unknown");
}

/* ---- the canary ---- */

static void the_canary_goes_first(void **state)
{
    (void)state;
    struct hk_redrive_facts fresh = {.started_ms = T0, .total = 1000};
    struct hk_redrive_next next = decide((struct hk_redrive_pace){.rate_per_s = 1000, .canary = 1}, fresh, 0);
    assert_int_equal(next.step, HK_REDRIVE_REQUEUE);
    assert_int_equal(next.n, 1);

    /* three, of which one is out: two more, whatever the rate would allow */
    next = decide((struct hk_redrive_pace){.rate_per_s = 1000, .canary = 3}, begun(1000, 1, 0, 0), 400);
    assert_int_equal(next.step, HK_REDRIVE_REQUEUE);
    assert_int_equal(next.n, 2);
    /* a canary is under the rate as well */
    next = decide((struct hk_redrive_pace){.rate_per_s = 1, .canary = 3}, begun(1000, 1, 0, 0), 400);
    assert_int_equal(next.step, HK_REDRIVE_WAIT);
    assert_int_equal(next.wake_ms, T0 + 1000);
    /* and goes out in steps of what one transaction takes */
    next =
        decide((struct hk_redrive_pace){.rate_per_s = 1e5, .canary = 4000}, begun(9000, 1000, 1000, 0), 400);
    assert_int_equal(next.n, HK_REDRIVE_STEP);
}

static void the_rest_waits_until_all_canaries_arrived(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.rate_per_s = 100, .canary = 2};
    struct hk_redrive_next next = decide(pace, begun(1000, 2, 0, 0), 500);
    assert_int_equal(next.step, HK_REDRIVE_WAIT);
    assert_int_equal(next.wake_ms, T0 + 750);
    assert_int_equal(decide(pace, begun(1000, 2, 1, 0), 60000).step, HK_REDRIVE_WAIT);
    /* one that struggles may arrive yet: nothing follows, and nothing ends */
    struct hk_redrive_facts struggling = begun(1000, 2, 1, 0);
    struggling.struggling = 1;
    pace.abort_ratio = 0.2;
    assert_int_equal(decide(pace, struggling, 60000).step, HK_REDRIVE_WAIT);

    next = decide(pace, begun(1000, 2, 2, 0), 60000);
    assert_int_equal(next.step, HK_REDRIVE_REQUEUE);
    assert_int_equal(next.n, 50); /* the bucket */
    /* later nobody asks for them: a letter may be gone, or have died of something else */
    assert_int_equal(decide(pace, begun(1000, 3, 0, 0), 60000).step, HK_REDRIVE_REQUEUE);
    assert_int_equal(decide(pace, begun(1000, 100, 98, 2), 60000).step, HK_REDRIVE_REQUEUE);
}

static void one_canary_that_fails_ends_the_job(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.canary = 3}; /* whatever the ratio */
    struct hk_redrive_next next = decide(pace, begun(1000, 3, 2, 1), 500);
    assert_int_equal(next.step, HK_REDRIVE_ABORT);
    assert_string_equal(next.why, "a canary failed again");
    assert_int_equal(next.n, 0);
    assert_int_equal(next.wake_ms, 0);
    assert_int_equal(decide(pace, begun(1000, 1, 0, 1), 500).step,
                     HK_REDRIVE_ABORT);               /* before the others go */
    struct hk_redrive_facts last = begun(2, 2, 1, 1); /* fewer letters than canaries */
    last.exhausted = true;
    assert_int_equal(decide(pace, last, 500).step, HK_REDRIVE_ABORT);
}

static void the_wait_for_outcomes_grows(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.canary = 1};

    static const struct {
        int64_t after_ms, wait_ms;
    } rows[] = {{-5000, 250},   {0, 250},        {1000, 250},      {1004, 251},
                {60000, 15000}, {120000, 30000}, {86400000, 30000}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_redrive_next next = decide(pace, begun(1000, 1, 0, 0), rows[i].after_ms);
        assert_int_equal(next.step, HK_REDRIVE_WAIT);
        assert_int_equal(next.wake_ms, T0 + rows[i].after_ms + rows[i].wait_ms);
    }
}

/* ---- failures ---- */

static void a_job_ends_itself_when_too_many_fail(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.rate_per_s = 100, .abort_ratio = 0.2};
    struct hk_redrive_next next = decide(pace, begun(1000, 100, 79, 21), 1000);
    assert_int_equal(next.step, HK_REDRIVE_ABORT);
    assert_string_equal(next.why, "too many failed again");
    /* more than that share: not the share itself */
    assert_int_equal(decide(pace, begun(1000, 100, 80, 20), 1000).step, HK_REDRIVE_REQUEUE);
    /* those that struggle count, too */
    struct hk_redrive_facts facts = begun(1000, 100, 79, 10);
    facts.struggling = 11;
    assert_int_equal(decide(pace, facts, 1000).step, HK_REDRIVE_ABORT);
    pace.abort_ratio = 0;
    assert_int_equal(decide(pace, facts, 1000).step, HK_REDRIVE_REQUEUE);
    pace.abort_ratio = (double)NAN;
    assert_int_equal(decide(pace, facts, 1000).step, HK_REDRIVE_REQUEUE);
    pace.abort_ratio = 1;
    assert_int_equal(decide(pace, begun(1000, 100, 0, 100), 1000).step, HK_REDRIVE_REQUEUE);
}

static void a_share_means_nothing_before_ten_outcomes(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.rate_per_s = 100, .abort_ratio = 0.2};
    assert_int_equal(decide(pace, begun(1000, 40, 0, 9), 1000).step, HK_REDRIVE_REQUEUE);
    assert_int_equal(decide(pace, begun(1000, 40, 0, 10), 1000).step, HK_REDRIVE_ABORT);
    assert_int_equal(decide(pace, begun(1000, 40, 7, 3), 1000).step, HK_REDRIVE_ABORT);
    /* fewer letters, fewer outcomes */
    assert_int_equal(decide(pace, begun(4, 3, 0, 3), 1000).step, HK_REDRIVE_REQUEUE);
    assert_int_equal(decide(pace, begun(4, 4, 0, 4), 1000).step, HK_REDRIVE_ABORT);
}

/* ---- ends ---- */

static void a_job_is_done_when_the_last_outcome_is_known(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.canary = 1, .abort_ratio = 0.2};
    struct hk_redrive_facts facts = begun(100, 100, 98, 1);
    facts.exhausted = true;
    struct hk_redrive_next next = decide(pace, facts, 2000);
    assert_int_equal(next.step, HK_REDRIVE_WAIT);
    assert_int_equal(next.wake_ms, T0 + 2500);
    facts.struggling = 1; /* there is nothing left to stop, and it may arrive yet */
    facts.total = 1;
    assert_int_equal(decide(pace, facts, 2000).step, HK_REDRIVE_WAIT);
    facts.resolved = 99;
    next = decide(pace, facts, 2000);
    assert_int_equal(next.step, HK_REDRIVE_FINISH);
    assert_int_equal(next.wake_ms, 0);
    assert_int_equal(next.n, 0);
    /* in the end every outcome counts, however few they are */
    facts = begun(100, 3, 2, 1);
    facts.exhausted = true;
    next = decide(pace, facts, 2000);
    assert_int_equal(next.step, HK_REDRIVE_ABORT);
    assert_string_equal(next.why, "too many failed again");
}

static void a_job_without_letters_is_done(void **state)
{
    (void)state;
    struct hk_redrive_facts facts = {.started_ms = T0, .exhausted = true};
    assert_int_equal(decide((struct hk_redrive_pace){.canary = 1, .abort_ratio = 0.2}, facts, 0).step,
                     HK_REDRIVE_FINISH);
    assert_int_equal(decide((struct hk_redrive_pace){.rate_per_s = 1}, facts, 0).step, HK_REDRIVE_FINISH);
}

/* Counts that do not fit together (letters purged, taken over by another job) end no arithmetic. */
static void more_outcomes_than_letters_are_none_outstanding(void **state)
{
    (void)state;
    struct hk_redrive_facts facts = begun(10, 5, 9, 3);
    facts.exhausted = true;
    assert_int_equal(decide((struct hk_redrive_pace){.rate_per_s = 1}, facts, 0).step, HK_REDRIVE_FINISH);
}

/* ---- the rate ---- */

static void a_step_is_half_a_bucket(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.rate_per_s = 100};
    /* at first one letter goes, then a quarter of a second's worth at a time */
    struct hk_redrive_facts fresh = {.started_ms = T0, .total = 1000};
    struct hk_redrive_next next = decide(pace, fresh, 0);
    assert_int_equal(next.step, HK_REDRIVE_WAIT); /* one token, and a step is 25 */
    assert_int_equal(next.wake_ms, T0 + 240);
    assert_true(fabs(next.tokens - 1) < 1e-6);

    next = decide(pace, begun(1000, 1, 1, 0), 200);
    assert_int_equal(next.step, HK_REDRIVE_WAIT);
    assert_true(fabs(next.tokens - 20) < 1e-6);
    assert_int_equal(next.wake_ms, T0 + 250);
    next = decide(pace, begun(1000, 1, 1, 0), 260);
    assert_int_equal(next.step, HK_REDRIVE_REQUEUE);
    assert_int_equal(next.n, 26);
    assert_true(fabs(next.tokens) < 1e-6);
    assert_int_equal(next.wake_ms, T0 + 510);
    /* time that nobody used is lost beyond one bucket */
    next = decide(pace, begun(1000, 1, 1, 0), 3600000);
    assert_int_equal(next.n, 50);
}

static void no_rate_or_an_absurd_one_is_the_default(void **state)
{
    (void)state;
    static const double rates[] = {0, -1, (double)NAN, -(double)INFINITY};
    for (size_t i = 0; i < COUNT(rates); i++)
        assert_int_equal(
            decide((struct hk_redrive_pace){.rate_per_s = rates[i]}, begun(1000, 1, 1, 0), 60000).n, 25);
    struct hk_redrive_next next =
        decide((struct hk_redrive_pace){.rate_per_s = (double)INFINITY}, begun(1000, 1, 1, 0), 60000);
    assert_int_equal(next.n, HK_REDRIVE_STEP);
    assert_true(isfinite(next.tokens));
    assert_int_equal(next.wake_ms, T0 + 60000); /* more tokens are there: go on at once */
}

static void what_a_store_gives_back_may_be_any_number(void **state)
{
    (void)state;
    static const double tokens[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -7, 1e300};
    static const int64_t times[] = {INT64_MIN, -1, 1, T0, T0 + 1000, INT64_MAX};
    static const uint64_t ramps[] = {0, 1, 60000, UINT64_MAX};
    for (size_t t = 0; t < COUNT(tokens); t++)
        for (size_t a = 0; a < COUNT(times); a++)
            for (size_t b = 0; b < COUNT(times); b++)
                for (size_t r = 0; r < COUNT(ramps); r++) {
                    struct hk_redrive_facts facts = {.started_ms = times[a],
                                                     .total = 1000,
                                                     .requeued = 5,
                                                     .resolved = 5,
                                                     .tokens = tokens[t],
                                                     .tokens_ms = times[b]};
                    struct hk_redrive_pace pace = {.rate_per_s = 3, .ramp_ms = ramps[r]};
                    struct hk_redrive_next next = decide(pace, facts, 1000);
                    assert_true(next.step == HK_REDRIVE_WAIT || next.step == HK_REDRIVE_REQUEUE);
                    assert_true(next.tokens >= 0 && next.tokens <= 2);
                    assert_true(next.n <= 2);
                    assert_true(next.wake_ms >= T0 + 1000 && next.wake_ms <= T0 + 31000);
                    assert_true(next.step != HK_REDRIVE_WAIT || next.wake_ms > T0 + 1000);
                }
}

static void too_many_on_their_way_hold_the_next(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.rate_per_s = 100}; /* ten seconds' worth: 1,000 */
    assert_int_equal(decide(pace, begun(9000, 2000, 1050, 0), 400).n, 40);
    assert_int_equal(decide(pace, begun(9000, 2000, 1030, 0), 400).n, 30);
    struct hk_redrive_next next = decide(pace, begun(9000, 2000, 1024, 0), 400);
    assert_int_equal(next.step, HK_REDRIVE_WAIT); /* room for less than a step */
    assert_int_equal(next.wake_ms, T0 + 650);
    assert_int_equal(decide(pace, begun(9000, 2000, 10, 0), 60000).step, HK_REDRIVE_WAIT);
    pace.rate_per_s = 0.1; /* ten letters at least */
    assert_int_equal(decide(pace, begun(9000, 9, 0, 0), 60000).step, HK_REDRIVE_REQUEUE);
    assert_int_equal(decide(pace, begun(9000, 10, 0, 0), 60000).step, HK_REDRIVE_WAIT);
}

/* A whole job in which everything arrives at once and steps come a little late. Says when each letter went. */
struct run {
    int64_t at_ms[4000];
    uint32_t n[4000];
    size_t steps;
    uint64_t requeued;
    int64_t end_ms;
};

static void play(struct hk_redrive_pace pace, uint64_t letters, uint64_t late_ms, struct hk_rng *rng,
                 struct run *run)
{
    struct hk_redrive_facts facts = {.started_ms = T0, .total = letters};
    struct hk_redrive_next next = {.step = HK_REDRIVE_WAIT};
    int64_t now = T0;
    run->steps = 0;
    for (size_t asked = 0;; asked++) {
        assert_true(asked < 20000);
        facts.resolved = facts.requeued;
        hk_redrive_decide(&pace, &facts, now, &next);
        if (next.step == HK_REDRIVE_FINISH)
            break;
        if (next.step == HK_REDRIVE_REQUEUE) {
            assert_true(next.n > 0 && next.n <= HK_REDRIVE_STEP && run->steps < COUNT(run->n));
            uint64_t left = letters - facts.requeued;
            uint32_t n = next.n < left ? next.n : (uint32_t)left;
            facts.exhausted = n == left;
            facts.requeued += n;
            facts.tokens = next.tokens;
            facts.tokens_ms = now;
            run->at_ms[run->steps] = now;
            run->n[run->steps++] = n;
        } else {
            assert_int_equal(next.step, HK_REDRIVE_WAIT);
            assert_true(next.wake_ms > now);
        }
        if (!facts.exhausted)
            now = next.wake_ms + (int64_t)hk_rng_upto(rng, late_ms);
    }
    run->requeued = facts.requeued;
    run->end_ms = now;
}

/* Every window that begins and ends with a step: others hold no more. */
static void check_windows(struct hk_redrive_pace pace, const struct run *run)
{
    double burst = fmax(pace.rate_per_s / 2, 1);
    for (size_t from = 0; from < run->steps; from++) {
        double n = 0;
        for (size_t to = from; to < run->steps; to++) {
            n += run->n[to];
            double window_s = (double)(run->at_ms[to] - run->at_ms[from]) / 1000;
            assert_true(n <= pace.rate_per_s * window_s + burst + 1e-3);
        }
    }
}

static void the_rate_is_kept_over_every_window(void **state)
{
    (void)state;
    static struct run run;
    static const double rates[] = {0.7, 1, 3, 10, 50, 333, 2000, 10000};
    struct hk_rng rng;
    hk_rng_seed(&rng, 1, 1);
    for (size_t i = 0; i < COUNT(rates); i++)
        for (unsigned round = 0; round < 12; round++) {
            struct hk_redrive_pace pace = {.rate_per_s = rates[i],
                                           .ramp_ms = round % 3 ? hk_rng_upto(&rng, 60000) : 0,
                                           .canary = round % 2};
            uint64_t letters = 1 + hk_rng_upto(&rng, (uint64_t)(rates[i] * 60));
            play(pace, letters, round < 6 ? 100 : hk_rng_upto(&rng, 5000), &rng, &run);
            assert_int_equal(run.requeued, letters);
            check_windows(pace, &run);
        }
}

/* Not only not faster: a relay that is 100 ms late at each step loses nothing. */
static void the_rate_is_reached(void **state)
{
    (void)state;
    static struct run run;
    static const double rates[] = {0.5, 4, 50, 1000, 5000};
    struct hk_rng rng;
    hk_rng_seed(&rng, 2, 1);
    for (size_t i = 0; i < COUNT(rates); i++) {
        struct hk_redrive_pace pace = {.rate_per_s = rates[i]};
        uint64_t letters = (uint64_t)(rates[i] * 60);
        play(pace, letters, 100, &rng, &run);
        double took_s = (double)(run.end_ms - T0) / 1000;
        assert_true(took_s > 55 && took_s < 62);
    }
}

static void a_ramp_begins_with_a_tenth_and_grows_evenly(void **state)
{
    (void)state;
    static struct run run;
    struct hk_rng rng;
    hk_rng_seed(&rng, 3, 1);
    struct hk_redrive_pace pace = {.rate_per_s = 100, .ramp_ms = 60000};
    play(pace, 5000, 0, &rng, &run);
    double by_10 = 0, by_60 = 0, by_70 = 0;
    for (size_t i = 0; i < run.steps; i++) {
        int64_t at = run.at_ms[i] - T0;
        by_10 += at <= 10000 ? run.n[i] : 0;
        by_60 += at <= 60000 ? run.n[i] : 0;
        by_70 += at <= 70000 ? run.n[i] : 0;
    }
    assert_true(by_10 > 165 && by_10 < 178);   /* 10/s at first, 25/s then: 175, and one */
    assert_true(by_60 > 3270 && by_60 < 3302); /* 55/s in the mean */
    assert_true(by_70 > 4270 && by_70 < 4302); /* then all of it */
}

/* ---- how long yet ---- */

static void the_rest_takes_what_the_rate_says(void **state)
{
    (void)state;
    struct hk_redrive_pace pace = {.rate_per_s = 100};
    struct hk_redrive_facts facts = begun(10000, 0, 0, 0);
    assert_in_range(hk_redrive_eta_ms(&pace, &facts, T0), 100000, 100001);
    facts.requeued = 4000;
    assert_in_range(hk_redrive_eta_ms(&pace, &facts, T0), 60000, 60001);
    /* later, and with what the last step left */
    facts.tokens = 10;
    facts.tokens_ms = T0 + 30000;
    assert_in_range(hk_redrive_eta_ms(&pace, &facts, T0 + 30000), 59900, 59901);
    assert_in_range(hk_redrive_eta_ms(&pace, &facts, T0 + 30100), 59800, 59801);
    facts.requeued = 10001;
    assert_int_equal(hk_redrive_eta_ms(&pace, &facts, T0), 0);
    facts = begun(10000, 0, 0, 0);
    facts.exhausted = true;
    assert_int_equal(hk_redrive_eta_ms(&pace, &facts, T0), 0);
    pace.rate_per_s = 1e-300;
    assert_true(hk_redrive_eta_ms(&pace, &(struct hk_redrive_facts){.total = 1000}, 0) == INT64_MAX);
}

static void a_ramp_is_part_of_the_estimate(void **state)
{
    (void)state;
    static struct run run;
    struct hk_rng rng;
    hk_rng_seed(&rng, 4, 1);
    static const uint64_t letters[] = {50, 1000, 3300, 9000};
    for (size_t i = 0; i < COUNT(letters); i++) {
        struct hk_redrive_pace pace = {.rate_per_s = 100, .ramp_ms = 60000};
        struct hk_redrive_facts facts = {.started_ms = T0, .total = letters[i]};
        uint64_t eta = hk_redrive_eta_ms(&pace, &facts, T0);
        play(pace, letters[i], 0, &rng, &run);
        int64_t took = run.end_ms - T0;
        assert_true((int64_t)eta <= took + 1000 && took <= (int64_t)eta + 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(the_canary_goes_first),
        cmocka_unit_test(the_rest_waits_until_all_canaries_arrived),
        cmocka_unit_test(one_canary_that_fails_ends_the_job),
        cmocka_unit_test(the_wait_for_outcomes_grows),
        cmocka_unit_test(a_job_ends_itself_when_too_many_fail),
        cmocka_unit_test(a_share_means_nothing_before_ten_outcomes),
        cmocka_unit_test(a_job_is_done_when_the_last_outcome_is_known),
        cmocka_unit_test(a_job_without_letters_is_done),
        cmocka_unit_test(more_outcomes_than_letters_are_none_outstanding),
        cmocka_unit_test(a_step_is_half_a_bucket),
        cmocka_unit_test(no_rate_or_an_absurd_one_is_the_default),
        cmocka_unit_test(what_a_store_gives_back_may_be_any_number),
        cmocka_unit_test(too_many_on_their_way_hold_the_next),
        cmocka_unit_test(the_rate_is_kept_over_every_window),
        cmocka_unit_test(the_rate_is_reached),
        cmocka_unit_test(a_ramp_begins_with_a_tenth_and_grows_evenly),
        cmocka_unit_test(the_rest_takes_what_the_rate_says),
        cmocka_unit_test(a_ramp_is_part_of_the_estimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
