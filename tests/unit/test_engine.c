/* SPDX-License-Identifier: Apache-2.0 */
/* The engine, scene by scene, through its public API. Order, routes and schedules are test_engine_order.c; what no scene
 * thought of is the simulator's (sim/). */
#include "engine_rig.h"

static void a_message_is_claimed_sent_and_settled(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    assert_true(logged(rig, "m", "\"ev\":\"claim\"")); /* on disk before it is sent */
    assert_true(in_flight(rig, "m"));
    assert_int_equal(rig->sends[0].attempt, 1);
    assert_int_equal(hk_engine_in_flight(rig->engine), 1);
    assert_false(settled(rig, "m", "sent"));
    answer(rig, "m", 204);
    assert_true(settled(rig, "m", "sent"));
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_int_equal(hk_engine_stats(rig->engine)->sent, 1);
    rig_free(rig);
}

static void a_failure_is_retried_when_due_and_not_before(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    answer(rig, "m", 500);
    wait_ms(rig, 100);
    assert_false(in_flight(rig, "m")); /* of the hundredth millisecond nobody knows how much is over */
    wait_ms(rig, 6);
    assert_true(in_flight(rig, "m"));
    assert_int_equal(found(rig, "m")->attempt, 2);
    answer(rig, "m", 500);
    wait_ms(rig, 110);
    answer(rig, "m", 500);
    assert_true(dead_of(rig, "m", "RETRY_EXHAUSTED"));
    assert_int_equal(rig->n_sends, 3);
    rig_free(rig);
}

static void a_full_destination_stops_nobody_and_is_not_walked_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig->dests[0].limiter.concurrency = 2;
    rig_start(rig);
    put_many(rig, "a", 200, "a");
    put_many(rig, "b", 100, "b");
    run(rig); /* two hang at "a"; those of "b" are answered as they come */
    for (int i = 0; i < 50; i++)
        answer_all(rig, 1, 200);
    assert_int_equal(count_flying(rig, 0), 2);
    assert_int_equal(hk_engine_stats(rig->engine)->sent, 100);
    assert_in_range(rig->rows_of_a, 200,
                    240); /* each once, but for the batches in which the engine was full */
    size_t before = rig->rows_of_a;
    for (int i = 0; i < 50; i++) { /* long after: whatever lies before the new ones of "b" is not looked at */
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "late%d", i);
        commit(rig, put(rig, name, "b", ""));
        wait_ms(rig, 60);
        answer(rig, name, 200);
    }
    assert_in_range(rig->rows_of_a - before, 0, 4 * 16); /* the sweep looks at a batch a second */
    for (int i = 0; i < 200; i++)
        answer_all(rig, 0, 200);
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_int_equal(hk_engine_stats(rig->engine)->swept, 0);
    rig_free(rig);
}

static void a_paused_destination_costs_nothing_and_goes_on_when_resumed(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig_start(rig);
    hk_model_pause(rig->model, "a", true, "operator", &reply);
    put_many(rig, "a", 20, "a");
    commit(rig, put(rig, "b", "b", ""));
    wait_ms(rig, 200);
    assert_int_equal(count_flying(rig, 0), 0);
    answer(rig, "b", 200);
    hk_model_pause(rig->model, "a", false, "operator", &reply);
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), CONCURRENCY);
    for (int i = 0; i < 20; i++)
        answer_all(rig, 0, 200);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void retries_leave_room_for_first_attempts(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "old", 20, "a");
    for (int i = 0; i < 10; i++) {
        run(rig);
        answer_all(rig, 0, 500);
    }
    size_t before = rig->n_sends;
    wait_ms(rig, 110); /* all of them are due */
    assert_int_equal(count_flying(rig, 0), CONCURRENCY - CONCURRENCY / 4);
    assert_int_equal(rig->sends[before].attempt, 2);
    put_many(rig, "new", 2, "a");
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "new0") && in_flight(rig, "new1"));
    rig_free(rig);
}

static void three_crashes_alone_four_dead(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "bad", "a", ""));
    put_many(rig, "good", 3, "a");
    for (int n = 0; n < 3; n++) {
        run(rig);
        assert_int_equal(count_flying(rig, 0), 4);
        assert_int_equal(rig->sends[rig->n_sends - 1].attempt, 1); /* a crash is no attempt */
        crash(rig);
    }
    for (int n = 0; n < 4; n++) { /* one by one now */
        assert_int_equal(count_flying(rig, 0), 1);
        if (in_flight(rig, "bad"))
            break;
        answer_all(rig, 0, 200);
        wait_ms(rig, 60);
    }
    assert_true(in_flight(rig, "bad"));
    crash(rig);
    for (int n = 0; n < 5; n++) {
        assert_true(count_flying(rig, 0) <= 1);
        answer_all(rig, 0, 200);
        wait_ms(rig, 60);
    }
    assert_true(dead_of(rig, "bad", "RELAY_CRASHED"));
    for (int n = 0; n < 3; n++) {
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "good%d", n);
        assert_true(settled(rig, name, "sent"));
    }
    rig_free(rig);
}

/* While one is chosen that is not to be sent, nothing is in flight; yet its row would be read again, and claimed twice (the rig
 * watches that). */
static void one_that_goes_alone_is_looked_for_when_nothing_is_chosen(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig->options.linger_ms = 1000;
    rig_start(rig);
    struct hk_model_msg *old = put(rig, "old", "a", "");
    old->expires_ms = store_now(rig) + 5 * LEASE_MS;
    commit(rig, old);
    commit(rig, put(rig, "bad", "a", ""));
    wait_ms(rig, 2000);
    for (int n = 0; n < 3; n++) {
        assert_true(in_flight(rig, "old") && in_flight(rig, "bad"));
        if (n == 2)
            hk_model_pause(rig->model, "a", true, "operator", &reply);
        crash(rig);
        wait_ms(rig, 2000);
    }
    commit(rig, put(rig, "busy", "b", ""));
    wait_ms(rig, 5 * LEASE_MS + LEASE_MS / 6); /* no lease is to be renewed just now */
    assert_true(in_flight(rig, "busy"));
    hk_model_pause(rig->model, "a", false, "operator", &reply);
    wait_ms(rig, 60); /* "old" is chosen, to be buried, and "bad" waits to be alone */
    assert_int_equal(hk_engine_in_hand(rig->engine), 2);
    assert_false(logged(rig, "old", "\"lane\":4"));
    answer(rig, "busy", 200);
    wait_ms(rig, 2000);
    assert_true(dead_of(rig, "old", "EXPIRED"));
    assert_true(in_flight(rig, "bad"));
    rig_free(rig);
}

static void a_settled_attempt_forgives_crashes(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    for (int n = 0; n < 2; n++) {
        crash(rig);
        crash(rig);
        crash(rig);
        answer(rig, "m", 500);
        wait_ms(rig, 110);
        assert_true(in_flight(rig, "m"));
    }
    rig_free(rig);
}

static void draining_gives_back_uncharged(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_start(rig);
    commit(rig, put(rig, "quick", "a", ""));
    commit(rig, put(rig, "slow", "b", ""));
    commit(rig, put(rig, "unsent", "b", ""));
    run(rig);
    put_many(rig, "late", 5, "a");
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 1000);
    wait_ms(rig, 500);
    assert_false(in_flight(rig, "late0")); /* nothing more is claimed */
    answer(rig, "quick", 200);
    assert_int_equal(rig->aborts, 0);
    wait_ms(rig, 501);
    assert_int_equal(rig->aborts, 1);
    answer_facts(rig, "slow", (struct hk_facts){.fault = HK_FAULT_LOCAL, .possibly_delivered = true});
    answer_facts(rig, "unsent", (struct hk_facts){.fault = HK_FAULT_LOCAL});
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    assert_true(settled(rig, "quick", "sent"));
    assert_true(settled(rig, "unsent", "release"));
    assert_true(logged(rig, "unsent", "\"n\":0,\"charged\":0"));
    /* it may have arrived, which outbox could not remember */
    assert_true(settled(rig, "slow", "retry"));
    assert_true(logged(rig, "slow", "\"n\":0,\"charged\":0"));
    assert_true(hk_str_containsi(hk_buf_str(&rig->log), hk_str_of("\"ev\":\"release\"")));
    assert_int_equal(hk_model_live(rig->model), 7);
    rig_free(rig);
}

static void a_second_order_to_drain_hurries(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 25000);
    run(rig);
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms);
    run(rig);
    assert_int_equal(rig->aborts, 1);
    answer_facts(rig, "m", (struct hk_facts){.fault = HK_FAULT_LOCAL});
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    rig_free(rig);
}

static void near_the_end_of_its_lease_nothing_is_sent_and_sends_are_ended(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    assert_true(in_flight(rig, "m"));
    rig->refuse = HK_UNAVAILABLE;
    wait_ms(rig, LEASE_MS - LEASE_MS / 6 - 1);
    assert_int_equal(rig->aborts, 0);
    wait_ms(rig, 1);
    assert_int_equal(rig->aborts, 1);
    answer_facts(rig, "m", (struct hk_facts){.fault = HK_FAULT_LOCAL});
    rig->refuse = HK_OK;
    wait_ms(rig, 5100);
    assert_true(settled(rig, "m", "release"));
    assert_true(in_flight(rig, "m")); /* found again, and its first attempt still */
    assert_int_equal(found(rig, "m")->attempt, 1);
    rig_free(rig);
}

static void the_lease_is_renewed_while_a_send_is_in_flight(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    wait_ms(rig, 10 * LEASE_MS);
    assert_int_equal(rig->aborts, 0);
    answer(rig, "m", 200);
    assert_true(settled(rig, "m", "sent"));
    assert_int_equal(hk_engine_stats(rig->engine)->lanes_lost, 0);
    rig_free(rig);
}

static void a_zombie_changes_nothing_and_counts_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    rig->now_ms += LEASE_MS + 1; /* the process was stopped */
    hk_model_acquire(rig->model, "other", LEASE_MS, &reply);
    assert_int_equal(reply.rc, HK_OK);
    answer(rig, "m", 200);
    assert_int_equal(hk_engine_stats(rig->engine)->stale_settles, 1);
    assert_int_equal(hk_engine_stats(rig->engine)->lanes_lost, 1);
    assert_false(settled(rig, "m", "sent"));
    assert_int_equal(hk_model_live(rig->model), 1);
    hk_model_release(rig->model, reply.lane, &reply);
    wait_ms(rig, 10000);
    answer(rig, "m", 200);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void what_cannot_be_sent_is_dead_with_its_reason(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put(rig, "expired", "a", "")->expires_ms = store_now(rig);
    put(rig, "nowhere", "x", "");
    put(rig, "large", "a", "")->payload_bytes = 101;
    put(rig, "malformed", "a", "")->malformed = true;
    put(rig, "base64", "a", "")->undecodable = true;
    for (size_t i = 0; i < rig->n_messages; i++)
        commit(rig, &rig->messages[i]);
    wait_ms(rig, 100);
    assert_true(dead_of(rig, "expired", "EXPIRED"));
    assert_true(dead_of(rig, "nowhere", "UNKNOWN_DESTINATION"));
    assert_true(dead_of(rig, "large", "PAYLOAD_TOO_LARGE"));
    assert_true(dead_of(rig, "malformed", "VALIDATION_ERROR"));
    assert_true(dead_of(rig, "base64", "VALIDATION_ERROR"));
    assert_int_equal(rig->n_sends, 0);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void what_its_own_sink_refuses_is_dead_without_an_attempt(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_breaker_options breaker = *hk_policy_breaker(rig->policy);
    rig->dests[0].breaker = &breaker;
    struct hk_rule rule = {
        .kind = HK_MATCH_FAULT, .fault = HK_FAULT_INVALID_PAYLOAD, .to_class = HK_CLASS_TRANSIENT};
    assert_int_equal(hk_policy_add_rule(rig->policy, &rule, NULL),
                     HK_OK); /* which would retry it for nothing */
    rig_start(rig);
    for (int i = 0; i < 10; i++) { /* and the destination's breaker stays closed */
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "m%d", i);
        commit(rig, put(rig, name, "a", ""));
        wait_ms(rig, 60);
        answer_facts(
            rig, name,
            (struct hk_facts){.fault = HK_FAULT_INVALID_PAYLOAD, .error = hk_str_of("a bad header")});
        assert_true(dead_of(rig, name, "VALIDATION_ERROR"));
        assert_true(logged(rig, name, "\"n\":0,\"charged\":0"));
    }
    commit(rig, put(rig, "tried", "a", "")); /* after an attempt: that one stays counted */
    wait_ms(rig, 60);
    answer(rig, "tried", 500);
    wait_ms(rig, 110);
    answer_facts(rig, "tried", (struct hk_facts){.fault = HK_FAULT_SCHEMA});
    assert_true(dead_of(rig, "tried", "SCHEMA_MISMATCH"));
    assert_true(logged(rig, "tried", "\"n\":1,\"charged\":1"));
    commit(rig, put(rig, "sent", "a", "")); /* the destination says so: that was an attempt */
    wait_ms(rig, 60);
    answer_facts(rig, "sent", (struct hk_facts){.fault = HK_FAULT_TOO_LARGE, .status = 413});
    assert_true(dead_of(rig, "sent", "HTTP_413"));
    assert_true(logged(rig, "sent", "\"n\":1,\"charged\":1"));
    rig_free(rig);
}

static void an_address_that_policy_blocks_is_no_attempt(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_start(rig);
    struct hk_facts blocked = {.fault = HK_FAULT_BLOCKED, .error = hk_str_of("blocked: 10.0.0.1")};
    commit(rig, put(rig, "first", "a", ""));
    wait_ms(rig, 60);
    answer_facts(rig, "first", blocked);
    assert_true(dead_of(rig, "first", "BLOCKED_BY_POLICY"));
    assert_true(logged(rig, "first", "\"n\":0,\"charged\":0"));
    commit(rig, put(rig, "later", "a", "")); /* the name leads elsewhere now: what was tried stays counted */
    wait_ms(rig, 60);
    answer(rig, "later", 500);
    wait_ms(rig, 110);
    answer_facts(rig, "later", blocked);
    assert_true(dead_of(rig, "later", "BLOCKED_BY_POLICY"));
    assert_true(logged(rig, "later", "\"n\":1,\"charged\":1"));
    rig_free(rig);
}

/* Who retries it has it counted, or it would never end. */
static void an_address_that_policy_blocks_is_retried_a_bounded_number_of_times(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_rule rule = {.kind = HK_MATCH_FAULT, .fault = HK_FAULT_BLOCKED, .to_class = HK_CLASS_TRANSIENT};
    assert_int_equal(hk_policy_add_rule(rig->policy, &rule, NULL), HK_OK);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    wait_ms(rig, 60);
    answer_facts(rig, "m", (struct hk_facts){.fault = HK_FAULT_BLOCKED});
    assert_true(logged(rig, "m", "\"n\":1,\"charged\":1"));
    rig_free(rig);
}

/* Gives a message this long. */
static struct rig *rig_new_hasty(uint64_t max_elapsed_ms)
{
    struct rig *rig = rig_new(1);
    struct hk_limits limits = *hk_policy_limits(rig->policy);
    limits.max_elapsed_ms = max_elapsed_ms;
    assert_int_equal(hk_policy_set_limits(rig->policy, &limits, NULL), HK_OK);
    rig_start(rig);
    return rig;
}

static void out_of_time_is_dead_not_sent(void **state)
{
    (void)state;
    struct rig *rig = rig_new_hasty(2000);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    answer(rig, "m", 500);
    crash(rig); /* nobody is there for longer than that */
    assert_int_equal(rig->n_sends, 1);
    assert_true(dead_of(rig, "m", "DEADLINE_EXCEEDED"));
    rig_free(rig);
}

static void time_runs_from_the_first_attempt_not_from_the_last(void **state)
{
    (void)state;
    struct rig *rig = rig_new_hasty(2000);
    struct hk_limits limits = *hk_policy_limits(rig->policy);
    limits.max_attempts = 0;
    assert_int_equal(hk_policy_set_limits(rig->policy, &limits, NULL), HK_OK);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    for (int n = 0; n < 20; n++) {
        answer_all(rig, 0, 500);
        wait_ms(rig, 110);
    }
    assert_true(dead_of(rig, "m", "DEADLINE_EXCEEDED"));
    rig_free(rig);
}

static void paused_time_is_not_spent_time(void **state)
{
    (void)state;
    struct hk_model_reply reply = {.rc = HK_OK};
    struct rig *rig = rig_new_hasty(2000);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    answer(rig, "m", 500);
    hk_model_pause(rig->model, "a", true, "operator", &reply);
    wait_ms(rig, 3000);
    crash(rig); /* the next relay knows it from the store */
    wait_ms(rig, 2000);
    hk_model_pause(rig->model, "a", false, "operator", &reply);
    wait_ms(rig, 100);
    answer(rig, "m", 500);
    assert_false(settled(rig, "m", "dead"));
    wait_ms(rig, 2000);
    answer_all(rig, 0, 500);
    assert_true(settled(rig, "m", "dead")); /* what came after counts, and what was before */
    rig_free(rig);
}

static void store_errors_back_off_and_lose_nothing(void **state)
{
    (void)state;

    static const enum hk_code codes[] = {HK_BUSY, HK_UNAVAILABLE, HK_NOMEM};

    for (size_t c = 0; c < COUNT(codes); c++) {
        struct rig *rig = rig_new(1);
        rig_start(rig);
        rig->refuse = codes[c];
        commit(rig, put(rig, "m", "a", ""));
        wait_ms(rig, 10000);
        /* 50 ms, doubling, at most 5 s; at most 1 s while another relay has the lane, who may be gone at any time */
        assert_in_range(rig->calls, 5, codes[c] == HK_BUSY ? 16 : 12);
        rig->refuse = HK_OK;
        wait_ms(rig, 5000);
        assert_true(in_flight(rig, "m"));
        rig->refuse = codes[c];
        answer(rig, "m", 200);
        wait_ms(rig, 1000);
        assert_false(settled(rig, "m", "sent"));
        rig->refuse = HK_OK;
        wait_ms(rig, 2000);
        assert_true(settled(rig, "m", "sent"));
        assert_true(hk_engine_stats(rig->engine)->store_errors > 5);
        assert_int_equal(hk_engine_stats(rig->engine)->stale_settles, 0);
        rig_free(rig);
    }
}

static void gone_and_refused_credentials_pause_and_it_is_on_disk(void **state)
{
    (void)state;

    static const struct {
        int status, times;
    } cases[] = {{410, 1}, {401, 5}};

    for (size_t c = 0; c < COUNT(cases); c++) {
        struct rig *rig = rig_new(2);
        rig_start(rig);
        put_many(rig, "m", 10, "a");
        run(rig);
        for (int i = 0; i < cases[c].times; i++) {
            char name[HK_MODEL_TEXT];
            assert_int_equal(rig->pauses, 0);
            (void)snprintf(name, sizeof name, "m%d", i);
            answer(rig, name, cases[c].status);
        }
        assert_int_equal(rig->pauses, 1);
        size_t before = rig->n_sends;
        wait_ms(rig, 1000);
        assert_int_equal(rig->n_sends, before);
        crash(rig); /* also after a restart */
        wait_ms(rig, 1000);
        assert_int_equal(rig->n_sends, before);
        rig_free(rig);
    }
}

static void an_open_breaker_costs_no_attempts(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_breaker_options breaker;
    hk_breaker_options_init(&breaker);
    breaker.failures = 2;
    breaker.open_ms = 5000;
    rig->dests[0].breaker = &breaker;
    rig->dests[0].limiter.concurrency = 1;
    rig_start(rig);
    put_many(rig, "a", 6, "a");
    run(rig);
    answer_all(rig, 0, 503);
    run(rig);
    answer_all(rig, 0, 503);
    size_t before = rig->n_sends;
    commit(rig, put(rig, "b", "b", ""));
    wait_ms(rig, 4000);
    assert_true(in_flight(rig, "b"));
    assert_int_equal(rig->n_sends, before + 1);
    wait_ms(rig, 2000);
    assert_int_equal(count_flying(rig, 0), 1); /* one probe */
    rig_free(rig);
}

static void a_hint_holds_the_destination(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_header header = {hk_str_of("Retry-After"), hk_str_of("3")};
    rig_start(rig);
    rig->dests[0].limiter.concurrency = 1;
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    answer_facts(rig, "m", (struct hk_facts){.status = 429, .headers = &header, .n_headers = 1});
    commit(rig, put(rig, "next", "a", ""));
    wait_ms(rig, 2999);
    assert_int_equal(rig->n_sends, 1);
    wait_ms(rig, 400);
    assert_true(in_flight(rig, "m") && in_flight(rig, "next"));
    rig_free(rig);
}

static void memory_in_flight_is_bounded(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->options.batch_bytes = 250;
    rig_start(rig);
    for (int i = 0; i < 6; i++) {
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "m%d", i);
        put(rig, name, "a", "")->payload_bytes = 100;
        commit(rig, &rig->messages[i]);
    }
    run(rig);
    assert_int_equal(count_flying(rig, 0), 2);
    for (int i = 0; i < 6; i++)
        answer_all(rig, 0, 200);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void low_ids_that_nobody_told_of_are_swept_up_within_a_second(void **state)
{
    (void)state;
    struct rig *rig = rig_new_on(2, (struct hk_model_options){.ids_at_insert = true, .late_silent = true});
    rig_start(rig);
    size_t held = hk_model_insert(rig->model, put(rig, "held", "a", ""));
    put_many(rig, "m", 5, "b");
    run(rig);
    answer_all(rig, 1, 200);
    hk_model_commit(rig->model, held);
    wait_ms(rig, 1100);
    assert_true(in_flight(rig, "held"));
    assert_int_equal(hk_engine_stats(rig->engine)->swept, 1);
    rig_free(rig);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_engine *engine = NULL;
    struct hk_engine_options o = rig->options;
    o.concurrency = 0;
    assert_int_equal(hk_engine_new(&o, 0, &engine, NULL), HK_RANGE);
    o = rig->options;
    o.batch = 100001;
    assert_int_equal(hk_engine_new(&o, 0, &engine, NULL), HK_RANGE);
    o = rig->options;
    o.lease_ms = 99;
    assert_int_equal(hk_engine_new(&o, 0, &engine, NULL), HK_RANGE);
    assert_null(engine);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_claimed_sent_and_settled),
        cmocka_unit_test(a_failure_is_retried_when_due_and_not_before),
        cmocka_unit_test(a_full_destination_stops_nobody_and_is_not_walked_again),
        cmocka_unit_test(a_paused_destination_costs_nothing_and_goes_on_when_resumed),
        cmocka_unit_test(retries_leave_room_for_first_attempts),
        cmocka_unit_test(three_crashes_alone_four_dead),
        cmocka_unit_test(one_that_goes_alone_is_looked_for_when_nothing_is_chosen),
        cmocka_unit_test(a_settled_attempt_forgives_crashes),
        cmocka_unit_test(draining_gives_back_uncharged),
        cmocka_unit_test(a_second_order_to_drain_hurries),
        cmocka_unit_test(near_the_end_of_its_lease_nothing_is_sent_and_sends_are_ended),
        cmocka_unit_test(the_lease_is_renewed_while_a_send_is_in_flight),
        cmocka_unit_test(a_zombie_changes_nothing_and_counts_it),
        cmocka_unit_test(what_cannot_be_sent_is_dead_with_its_reason),
        cmocka_unit_test(what_its_own_sink_refuses_is_dead_without_an_attempt),
        cmocka_unit_test(an_address_that_policy_blocks_is_no_attempt),
        cmocka_unit_test(an_address_that_policy_blocks_is_retried_a_bounded_number_of_times),
        cmocka_unit_test(out_of_time_is_dead_not_sent),
        cmocka_unit_test(time_runs_from_the_first_attempt_not_from_the_last),
        cmocka_unit_test(paused_time_is_not_spent_time),
        cmocka_unit_test(store_errors_back_off_and_lose_nothing),
        cmocka_unit_test(gone_and_refused_credentials_pause_and_it_is_on_disk),
        cmocka_unit_test(an_open_breaker_costs_no_attempts),
        cmocka_unit_test(a_hint_holds_the_destination),
        cmocka_unit_test(memory_in_flight_is_bounded),
        cmocka_unit_test(low_ids_that_nobody_told_of_are_swept_up_within_a_second),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
