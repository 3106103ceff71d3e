/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's reserve: a quick destination is given messages before it has a free place for them, a slow or limited one is
 * not, and what waits there is sent or given back, whatever happens. */
#include "engine_rig.h"

enum {
    PLACES = 4,
    MANY = 40
};

static struct hk_breaker_options breaker;

static struct rig *quick_rig(void)
{
    struct rig *rig = rig_new(2);
    rig->options.concurrency = 64;
    rig->options.linger_ms = 5;
    rig->options.ahead_ms = 50;
    rig->dests[0].limiter.concurrency = PLACES;
    return rig;
}

/* Claimed, and neither sent nor settled without being sent. */
static size_t waiting(const struct rig *rig)
{
    const struct hk_engine_stats *stats = hk_engine_stats(rig->engine);
    return (size_t)(stats->claimed - stats->sends - stats->released);
}

/* Two of its four requests are answered at once: two more than four may be in hand. */
static void fill_reserve(struct rig *rig)
{
    rig_start(rig);
    put_many(rig, "m", MANY, "a");
    run(rig);
    assert_int_equal(count_flying(rig, 0), PLACES);
    answer(rig, "m0", 200);
    answer(rig, "m1", 200);
    wait_ms(rig, 6);
    wait_ms(rig, 6);
    assert_int_equal(count_flying(rig, 0), PLACES);
    assert_int_equal(waiting(rig), 2);
}

static void finish(struct rig *rig)
{
    for (int i = 0; i < 4 * MANY && hk_model_live(rig->model) > 0; i++) {
        answer_all(rig, 0, 200);
        assert_true(count_flying(rig, 0) <= PLACES);
        wait_ms(rig, 20);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_int_equal(waiting(rig), 0);
    rig_free(rig);
}

static void an_answer_lets_the_next_go_without_a_store(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    fill_reserve(rig);
    size_t calls = rig->calls, sends = rig->n_sends;
    rig->refuse = HK_UNAVAILABLE;
    answer(rig, "m2", 200);
    answer(rig, "m3", 200);
    assert_int_equal(rig->n_sends, sends + 2);
    assert_int_equal(count_flying(rig, 0), PLACES);
    assert_int_equal(waiting(rig), 0);
    assert_true(rig->calls >= calls);
    rig->refuse = HK_OK;
    finish(rig);
}

static void one_that_answers_slowly_gets_none(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    rig_start(rig);
    put_many(rig, "m", 12, "a");
    run(rig);
    for (int i = 0; i < 3; i++) {
        wait_ms(rig, 200); /* nothing is exchanged meanwhile */
        answer_all(rig, 0, 200);
        wait_ms(rig, 6);
        wait_ms(rig, 6);
        assert_int_equal(waiting(rig), 0);
    }
    finish(rig);
}

static void one_with_a_rate_gets_none(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    rig->dests[0].limiter.rate_per_s = 100000;
    rig->dests[0].limiter.burst = 100000;
    rig_start(rig);
    put_many(rig, "m", 12, "a");
    run(rig);
    answer(rig, "m0", 200);
    answer(rig, "m1", 200);
    wait_ms(rig, 6);
    wait_ms(rig, 6);
    assert_int_equal(count_flying(rig, 0), PLACES);
    assert_int_equal(waiting(rig), 0);
    finish(rig);
}

/* One scan asks for what fits into places and reserve, no less and no more. In small parts, a backlog takes many more statements. */
static void places_and_reserve_are_read_at_once(void **state)
{
    (void)state;

    enum {
        PLENTY = 32
    };
    struct rig *rig = quick_rig();
    rig->options.concurrency = 8 * PLENTY;
    rig->options.batch = 8 * PLENTY;
    rig->dests[0].limiter.concurrency = PLENTY;
    rig_start(rig);
    put_many(rig, "m", 10 * PLENTY, "a");
    run(rig);
    while (hk_model_live(rig->model) > 0) {
        answer_at_once(rig, 0, 200);
        wait_ms(rig, 6);
    }
    assert_int_equal(rig->least_of_a, PLENTY);
    assert_int_equal(rig->most_of_a, PLENTY);
    rig_free(rig);
}

static void some_places_stay_for_others(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    rig->options.concurrency = PLACES + 1;
    rig_start(rig);
    put_many(rig, "m", MANY, "a");
    run(rig);
    answer(rig, "m0", 200);
    answer(rig, "m1", 200);
    wait_ms(rig, 6);
    wait_ms(rig, 6);
    assert_int_equal(waiting(rig), 0);
    put_many(rig, "n", 1, "b");
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "n0"));
    answer_all(rig, 1, 200);
    finish(rig);
}

static void a_broken_destination_gives_it_back(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    hk_breaker_options_init(&breaker);
    breaker.failures = 2;
    breaker.open_ms = 1000;
    breaker.open_jitter = 0;
    rig->dests[0].breaker = &breaker;
    fill_reserve(rig);
    size_t sends = rig->n_sends;
    answer(rig, "m2", 503);
    answer(rig, "m3", 503); /* the first let one go, the second opened the breaker */
    assert_int_equal(rig->n_sends, sends + 1);
    assert_int_equal(waiting(rig), 1); /* its settle waits for the exchange */
    wait_ms(rig, 10);
    assert_int_equal(waiting(rig), 0);
    assert_int_equal(hk_engine_stats(rig->engine)->released, 1);
    finish(rig);
}

/* What was chosen for the reserve comes back from the store when its destination is broken, and has free places. */
static void what_is_claimed_while_the_breaker_opens_is_not_sent(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    hk_breaker_options_init(&breaker);
    breaker.failures = 2;
    breaker.open_ms = 1000;
    breaker.open_jitter = 0;
    rig->dests[0].breaker = &breaker;
    rig_start(rig);
    put_many(rig, "m", MANY, "a");
    run(rig);
    answer(rig, "m0", 200);
    answer(rig, "m1", 200);
    wait_ms(rig, 6);
    struct hk_action action;
    for (bool claims = false; !claims;) {
        hk_engine_next(rig->engine, rig->now_ms, &action);
        if (action.kind == HK_ACT_WAIT)
            rig->now_ms = action.wake_ms;
        else if (!(claims = action.kind == HK_ACT_EXCHANGE && action.exchange.n_wants))
            call_store(rig, &action);
    }
    assert_int_equal(count_flying(rig, 0), PLACES); /* all of these claims are for the reserve */
    size_t sends = rig->n_sends, claims = action.exchange.n_wants;
    end_send(rig, found(rig, "m2"), (struct hk_facts){.status = 503});
    end_send(rig, found(rig, "m3"), (struct hk_facts){.status = 503});
    call_store(rig, &action);
    run(rig);
    assert_int_equal(rig->n_sends, sends);
    wait_ms(rig, 10);
    assert_int_equal(hk_engine_stats(rig->engine)->released, claims);
    finish(rig);
}

static void one_that_asks_for_a_pause_gives_it_back(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    fill_reserve(rig);
    size_t sends = rig->n_sends;
    const struct hk_header wait = {hk_str_of("Retry-After"), hk_str_of("2")};
    answer_facts(rig, "m2", (struct hk_facts){.status = 429, .headers = &wait, .n_headers = 1});
    wait_ms(rig, 10);
    assert_int_equal(rig->n_sends, sends);
    assert_int_equal(hk_engine_stats(rig->engine)->released, 2);
    finish(rig);
}

static void one_that_falls_silent_gives_it_back(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    fill_reserve(rig);
    size_t sends = rig->n_sends;
    wait_ms(rig, 1100);
    assert_int_equal(waiting(rig), 0);
    assert_int_equal(hk_engine_stats(rig->engine)->released, 2);
    assert_int_equal(rig->n_sends, sends);
    finish(rig);
}

static void who_stops_gives_it_back(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    fill_reserve(rig);
    size_t sends = rig->n_sends;
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 1000);
    run(rig);
    answer_all(rig, 0, 200);
    wait_ms(rig, 20);
    assert_int_equal(rig->n_sends, sends);
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    assert_int_equal(waiting(rig), 0);
    rig_free(rig);
}

static void without_its_lane_nothing_of_it_is_sent(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    struct hk_action action;
    fill_reserve(rig);
    size_t sends = rig->n_sends;
    rig->now_ms += 60;
    hk_engine_next(rig->engine, rig->now_ms, &action);
    assert_int_equal(action.kind, HK_ACT_POLL);
    hk_engine_on_poll(rig->engine, rig->now_ms, HK_CONFLICT, NULL);
    wait_ms(rig, LEASE_MS / 2);
    assert_int_equal(rig->n_sends, sends);
    wait_ms(rig, LEASE_MS); /* its next lane; the old one's requests still have all the places */
    assert_int_equal(rig->n_sends, sends);
    for (size_t i = 0; i < sends; i++)
        if (!rig->sends[i].over)
            end_send(rig, &rig->sends[i], (struct hk_facts){.status = 200});
    for (int i = 0; i < 4 * MANY && hk_model_live(rig->model) > 0; i++) {
        answer_all(rig, 0, 200);
        wait_ms(rig, 20);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    for (size_t i = sends; i < rig->n_sends; i++)
        assert_int_equal(rig->sends[i].m[0], 'm');
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 1000);
    wait_ms(rig, 20);
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    rig_free(rig);
}

/* One that is called and may not be sent any more must not keep the others waiting. */
static void near_the_end_of_the_lease_all_of_it_is_given_back(void **state)
{
    (void)state;
    struct rig *rig = quick_rig();
    rig->dests[0].limiter.concurrency = 1;
    rig_start(rig);
    put_many(rig, "m", MANY, "a");
    run(rig);
    answer(rig, "m0", 200);
    wait_ms(rig, 6);
    answer(rig, "m1", 200);
    answer(rig, "m2", 200);
    wait_ms(rig, 6);
    assert_int_equal(waiting(rig), 2);
    rig->refuse = HK_UNAVAILABLE;
    wait_ms(rig, LEASE_MS - LEASE_MS / 6);
    assert_int_equal(rig->aborts, 1);
    for (size_t i = 0; i < rig->n_sends; i++)
        if (!rig->sends[i].over)
            end_send(rig, &rig->sends[i], (struct hk_facts){.fault = HK_FAULT_LOCAL});
    do
        hk_engine_next(rig->engine, ++rig->now_ms, &rig->last);
    while (rig->last.kind == HK_ACT_WAIT);
    assert_int_equal(rig->last.kind, HK_ACT_EXCHANGE);
    assert_int_equal(rig->last.exchange.n_settles, 3);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_lets_the_next_go_without_a_store),
        cmocka_unit_test(one_that_answers_slowly_gets_none),
        cmocka_unit_test(one_with_a_rate_gets_none),
        cmocka_unit_test(places_and_reserve_are_read_at_once),
        cmocka_unit_test(some_places_stay_for_others),
        cmocka_unit_test(a_broken_destination_gives_it_back),
        cmocka_unit_test(what_is_claimed_while_the_breaker_opens_is_not_sent),
        cmocka_unit_test(one_that_asks_for_a_pause_gives_it_back),
        cmocka_unit_test(one_that_falls_silent_gives_it_back),
        cmocka_unit_test(who_stops_gives_it_back),
        cmocka_unit_test(without_its_lane_nothing_of_it_is_sent),
        cmocka_unit_test(near_the_end_of_the_lease_all_of_it_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
