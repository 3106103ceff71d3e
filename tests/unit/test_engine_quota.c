/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as one of several on a store: it sends nothing to a destination with a rate without a token, does not ask when
 * there is nothing to send, probes only with leave, and hears of the others' breakers. */
#include "engine_rig.h"

static struct hk_breaker_options breaker;

static struct rig *shared_rig(size_t n_dests)
{
    struct rig *rig = rig_new(n_dests);
    rig->options.shared = true;
    rig->dests[0].limiter.rate_per_s = 1000;
    rig->dests[0].limiter.burst = 1000;
    return rig;
}

static void no_token_no_send_and_nothing_is_lost(void **state)
{
    (void)state;
    struct rig *rig = shared_rig(2);
    rig_start(rig);
    put_many(rig, "m", 6, "a");
    put_many(rig, "n", 4, "b");
    run(rig);
    assert_int_equal(count_flying(rig, 0), 0);
    assert_int_equal(count_flying(rig, 1), 4); /* has no rate: nobody is asked */
    rig->tokens = 2;
    wait_ms(rig, 110);
    assert_int_equal(count_flying(rig, 0), 2);
    answer_all(rig, 1, 200);
    rig->tokens = 100;
    wait_ms(rig, 110);
    answer_all(rig, 0, 200);
    wait_ms(rig, 1000);
    answer_all(rig, 0, 200);
    assert_int_equal(rig->n_sends, 10);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void who_has_nothing_to_send_asks_for_nothing(void **state)
{
    (void)state;
    struct rig *rig = shared_rig(2);
    rig->tokens = 1000;
    rig_start(rig);
    put_many(rig, "n", 4, "b");
    run(rig);
    answer_all(rig, 1, 200);
    wait_ms(rig, 5000);
    assert_int_equal(rig->asked, 0);
    put_many(rig, "m", 1, "a");
    wait_ms(rig, 100);
    answer_all(rig, 0, 200);
    wait_ms(rig, 20000);
    assert_int_equal(rig->n_sends, 5);
    assert_int_equal(rig->asked, 1);
    rig_free(rig);
}

/* One that waits for tokens asks when there will be some, not all the time. */
static void an_empty_bucket_is_not_asked_again_and_again(void **state)
{
    (void)state;
    struct rig *rig = shared_rig(1);
    rig_start(rig);
    put_many(rig, "m", 5, "a");
    wait_ms(rig, 10000); /* each time the store said: in 100 ms */
    assert_int_equal(rig->n_sends, 0);
    assert_in_range(rig->asked, 50, 102);
    rig_free(rig);
}

/* A token is good for half a second, and the next sweep is later than that. */
static void what_only_the_sweep_finds_gets_its_token_as_well(void **state)
{
    (void)state;
    struct rig *rig = rig_new_on(1, (struct hk_model_options){.ids_at_insert = true, .late_silent = true});
    rig->options.shared = true;
    rig->dests[0].limiter.rate_per_s = 1000;
    rig->dests[0].limiter.burst = 1000;
    rig->tokens = 1000;
    rig_start(rig);
    size_t held = hk_model_insert(rig->model, put(rig, "held", "a", ""));
    put_many(rig, "m", 3, "a");
    wait_ms(rig, 100);
    answer_all(rig, 0, 200);
    wait_ms(rig, 5000);
    hk_model_commit(rig->model, held);
    for (int i = 0; i < 100 && hk_model_live(rig->model); i++) {
        wait_ms(rig, 1000);
        answer_all(rig, 0, 200);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_int_equal(rig->n_sends, 4);
    rig_free(rig);
}

static void tokens_that_were_not_used_at_once_are_thrown_away(void **state)
{
    (void)state;
    struct rig *rig = shared_rig(1);
    rig->tokens = 1000;
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    size_t asked = rig->asked;
    assert_int_equal(asked, 1);
    answer_all(rig, 0, 200);
    wait_ms(rig, 1000);
    put_many(rig, "n", 1, "a");
    wait_ms(rig, 200);
    assert_int_equal(rig->asked, asked + 1);
    assert_true(in_flight(rig, "n0"));
    rig_free(rig);
}

/* A token is used a moment after it was drawn, and the bucket has filled again by then: it holds so much less. */
static void the_bucket_leaves_room_for_the_lot_that_is_on_its_way(void **state)
{
    (void)state;
    struct rig *rig = shared_rig(1);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    do {
        hk_engine_next(rig->engine, rig->now_ms, &rig->last);
        if (rig->last.kind == HK_ACT_WAIT)
            rig->now_ms = rig->last.wake_ms;
        else if (rig->last.kind != HK_ACT_EXCHANGE)
            call_store(rig, &rig->last);
    } while (rig->last.kind != HK_ACT_EXCHANGE);
    assert_int_equal(rig->last.exchange.n_quotas, 1);
    assert_true(rig->last.exchange.quotas[0].rate_per_s == 1000);
    assert_true(rig->last.exchange.quotas[0].burst == 900); /* a tenth of a second's worth */
    rig_free(rig);
}

static struct rig *broken_rig(bool shared)
{
    struct rig *rig = rig_new(1);
    hk_breaker_options_init(&breaker);
    breaker.failures = 2;
    breaker.window_ms = 60000;
    breaker.open_ms = 1000;
    breaker.open_factor = 1;
    breaker.open_cap_ms = 1000;
    breaker.open_jitter = 0;
    rig->dests[0].breaker = &breaker;
    rig->options.shared = shared;
    rig_start(rig);
    return rig;
}

static void a_breaker_that_opens_is_told_and_probing_takes_leave(void **state)
{
    (void)state;
    struct rig *rig = broken_rig(true);
    put_many(rig, "m", 6, "a");
    run(rig);
    size_t before = rig->n_sends;
    assert_int_equal(before, 6);
    answer(rig, "m0", 503);
    answer(rig, "m1", 503);
    wait_ms(rig, 10);
    assert_int_equal(rig->told, 1);
    assert_in_range(rig->told_until_ms, store_now(rig) + 900, store_now(rig) + 1000);
    answer_all(rig, 0, 503);
    wait_ms(rig, 3000); /* half-open since long, but another one has the leave */
    assert_int_equal(rig->n_sends, before);
    assert_true(rig->asked > 0);
    rig->leaves = 1;
    wait_ms(rig, 200);
    assert_int_equal(rig->n_sends, before + 1);
    rig->leaves = 100;
    answer_all(rig, 0, 200);
    wait_ms(rig, 2000);
    answer_all(rig, 0, 200);
    wait_ms(rig, 2000);
    answer_all(rig, 0, 200);
    assert_int_equal(rig->told_until_ms, 0); /* closed, and told */
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

/* Polls go past the model here: it knows of no other relays. */
static void tell_of_circuit(struct rig *rig, int64_t open_until_ms)
{
    struct hk_poll_dest dest = {
        .name = hk_str_of("a"), .retry_due_ms = INT64_MAX, .open_until_ms = open_until_ms};
    struct hk_poll poll = {
        .changed = true, .now_ms = store_now(rig), .last_id = INT64_MAX, .dests = &dest, .n_dests = 1};
    for (int n = 0; n < 1000; n++) {
        hk_engine_next(rig->engine, rig->now_ms, &rig->last);
        if (rig->last.kind == HK_ACT_POLL) {
            hk_engine_on_poll(rig->engine, rig->now_ms, HK_OK, &poll);
            return;
        }
        if (rig->last.kind == HK_ACT_WAIT)
            rig->now_ms = rig->last.wake_ms;
        else
            call_store(rig, &rig->last);
    }
    fail_msg("the engine does not poll");
}

static void anothers_open_breaker_is_ours_until_it_closes(void **state)
{
    (void)state;
    struct rig *rig = broken_rig(true);
    tell_of_circuit(rig, store_now(rig) + 5000);
    put_many(rig, "m", 3, "a");
    tell_of_circuit(rig, store_now(rig) + 5000);
    int64_t until = rig->now_ms + 4000;
    while (rig->now_ms < until) {
        tell_of_circuit(rig, until + 1001000);
        assert_int_equal(rig->n_sends, 0);
        rig->now_ms += 500;
    }
    tell_of_circuit(rig, 0);
    run(rig);
    assert_int_equal(rig->n_sends, 3);
    assert_int_equal(rig->told, 0); /* it was not ours to tell */
    rig_free(rig);
}

/* The store looks at its clock at the end of each call: then it is most behind what the engine may take it for. */
static void a_slow_store_does_not_end_an_open_breaker_early(void **state)
{
    (void)state;
    struct rig *rig = broken_rig(true);
    struct hk_model_reply reply = {.rc = HK_OK};
    struct hk_poll_dest dest = {
        .name = hk_str_of("a"), .retry_due_ms = INT64_MAX, .open_until_ms = store_now(rig) + 5000};
    rig->leaves = 100;
    put_many(rig, "m", 3, "a");
    for (int n = 0; n < 10000; n++) {
        hk_engine_next(rig->engine, rig->now_ms, &rig->last);
        if (rig->last.kind == HK_ACT_SEND)
            break;
        if (rig->last.kind == HK_ACT_WAIT) {
            rig->now_ms = rig->last.wake_ms;
        } else if (rig->last.kind == HK_ACT_ACQUIRE) {
            rig->now_ms += 300;
            hk_model_acquire(rig->model, "relay", LEASE_MS, &reply);
            rig->lane = reply.lane;
            hk_engine_on_acquired(rig->engine, rig->now_ms, reply.rc, reply.lane, reply.now_ms);
        } else if (rig->last.kind == HK_ACT_POLL) {
            rig->now_ms += 300;
            hk_engine_on_poll(rig->engine, rig->now_ms, HK_OK,
                              &(struct hk_poll){.changed = true,
                                                .now_ms = store_now(rig),
                                                .last_id = INT64_MAX,
                                                .dests = &dest,
                                                .n_dests = 1});
        } else {
            call_store(rig, &rig->last);
        }
    }
    assert_int_equal(rig->last.kind, HK_ACT_SEND);
    assert_in_range(store_now(rig), dest.open_until_ms, dest.open_until_ms + 1000);
    rig_free(rig);
}

/* Two that fail open it. */
static void break_it(struct rig *rig, const char *prefix)
{
    put_many(rig, prefix, 2, "a");
    wait_ms(rig, 50);
    assert_int_equal(count_flying(rig, 0), 2);
    answer_all(rig, 0, 503);
    wait_ms(rig, 10);
}

static void mend_it(struct rig *rig)
{
    for (int i = 0; i < 20; i++) {
        wait_ms(rig, 500);
        answer_all(rig, 0, 200);
    }
    wait_ms(rig, 50);
    assert_int_equal(rig->told_until_ms, 0);
    assert_int_equal(hk_model_live(rig->model), 0);
}

static void a_relay_that_is_alone_writes_its_breaker_down_as_well(void **state)
{
    (void)state;
    struct rig *rig = broken_rig(false);
    break_it(rig, "m");
    assert_int_equal(rig->told, 1);
    assert_in_range(rig->told_until_ms, store_now(rig) + 900, store_now(rig) + 1000);
    mend_it(rig);
    assert_int_equal(rig->told, 2); /* only when something changes */
    assert_int_equal(rig->asked, 0);
    rig_free(rig);
}

static void a_relay_that_is_started_anew_begins_where_the_last_one_ended(void **state)
{
    (void)state;
    struct rig *rig = broken_rig(false);
    breaker.open_ms = breaker.open_cap_ms = 60000;
    hk_engine_free(rig->engine);
    rig_start(rig);
    break_it(rig, "m");
    size_t before = rig->n_sends;
    hk_model_died(rig->model, "relay");
    hk_engine_free(rig->engine);
    rig_start(rig);
    put_many(rig, "n", 3, "a");
    wait_ms(rig, 50000);
    assert_int_equal(rig->n_sends, before);
    wait_ms(rig, 10000); /* half-open */
    assert_true(rig->n_sends > before);
    mend_it(rig);
    rig_free(rig);
}

/* A breaker that closed is news to others; to the relay itself it would mean to forget how long it had to be open. */
static void what_a_relay_said_itself_is_no_news(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct rig *rig = broken_rig(shared);
        breaker.open_factor = 2;
        breaker.open_cap_ms = 60000;
        hk_engine_free(rig->engine);
        rig_start(rig);
        rig->leaves = 1000;
        break_it(rig, "m");
        put_many(rig, "n", 1, "a"); /* so that polls have something to tell */
        mend_it(rig);
        break_it(rig, "o");
        assert_in_range(rig->told_until_ms, store_now(rig) + 1900, store_now(rig) + 2000);
        rig_free(rig);
    }
}

/* An operator has set the store's time back, and the relay has lost its lane, before it could tell of its breaker. */
static void a_breaker_is_told_in_the_stores_time_of_then(void **state)
{
    (void)state;
    struct rig *rig = broken_rig(true);
    put_many(rig, "m", 2, "a");
    run(rig);
    answer(rig, "m0", 503);
    run(rig);
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_died(rig->model, "relay");
    hk_model_acquire(rig->model, "another", LEASE_MS, &reply);
    hk_model_died(rig->model, "another");
    hk_model_reply_free(&reply);
    rig->set_back_ms = 500000;
    answer_all(rig, 0, 503);
    wait_ms(rig, 100);
    assert_int_equal(rig->lane, 3);
    assert_in_range(rig->told_until_ms, store_now(rig) + 800, store_now(rig) + 1000);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_token_no_send_and_nothing_is_lost),
        cmocka_unit_test(who_has_nothing_to_send_asks_for_nothing),
        cmocka_unit_test(an_empty_bucket_is_not_asked_again_and_again),
        cmocka_unit_test(what_only_the_sweep_finds_gets_its_token_as_well),
        cmocka_unit_test(tokens_that_were_not_used_at_once_are_thrown_away),
        cmocka_unit_test(the_bucket_leaves_room_for_the_lot_that_is_on_its_way),
        cmocka_unit_test(a_breaker_that_opens_is_told_and_probing_takes_leave),
        cmocka_unit_test(anothers_open_breaker_is_ours_until_it_closes),
        cmocka_unit_test(a_slow_store_does_not_end_an_open_breaker_early),
        cmocka_unit_test(a_relay_that_is_alone_writes_its_breaker_down_as_well),
        cmocka_unit_test(a_relay_that_is_started_anew_begins_where_the_last_one_ended),
        cmocka_unit_test(what_a_relay_said_itself_is_no_news),
        cmocka_unit_test(a_breaker_is_told_in_the_stores_time_of_then),
    };
    return cmocka_run_group_tests_name("engine: shared limits", tests, NULL, NULL);
}
