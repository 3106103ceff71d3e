/* SPDX-License-Identifier: Apache-2.0 */
/* The engine at its edges: nothing to send to, stopped in the middle of something, two answers that say the same, and what it
 * tells of itself. */
#include "engine_rig.h"

static struct hk_breaker_options breaker;

/* One thing that the engine says. */
static enum hk_action_kind step(struct rig *rig)
{
    hk_engine_next(rig->engine, rig->now_ms, &rig->last);
    switch (rig->last.kind) {
    case HK_ACT_WAIT:
    case HK_ACT_STOPPED:
    case HK_ACT_SEND:
    case HK_ACT_ABORT:
        break;
    default:
        call_store(rig, &rig->last);
        break;
    }
    return rig->last.kind;
}

static void step_until(struct rig *rig, enum hk_action_kind kind)
{
    for (int n = 0; n < 100; n++)
        if (step(rig) == kind)
            return;
    fail_msg("it never comes to that");
}

static void break_easily(struct rig *rig)
{
    hk_breaker_options_init(&breaker);
    breaker.failures = 1;
    breaker.window_ms = 60000;
    breaker.open_ms = 1000;
    breaker.open_factor = 1;
    breaker.open_cap_ms = 1000;
    breaker.open_jitter = 0;
    rig->dests[0].breaker = &breaker;
}

/* ---- what it is made of ---- */

static void nothing_at_all_and_more_than_anybody_needs_are_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_engine *engine = NULL;
    struct hk_engine_options o = rig->options;
    o.concurrency = 100001;
    assert_int_equal(hk_engine_new(&o, 0, &engine, NULL), HK_RANGE);
    o.concurrency = 1;
    o.batch = 100001;
    assert_int_equal(hk_engine_new(&o, 0, &engine, NULL), HK_RANGE);
    o.batch = 0;
    assert_int_equal(hk_engine_new(&o, 0, &engine, NULL), HK_RANGE);
    assert_null(engine);
    rig_free(rig);
}

static void without_any_destination_a_message_is_dead_and_says_why(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    commit(rig, put(rig, "m", "nobody", "k"));
    run(rig);
    assert_true(dead_of(rig, "m", "UNKNOWN_DESTINATION"));
    assert_false(hk_engine_hungry(rig->engine));
    rig_free(rig);
}

static void what_it_tells_of_a_destination(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_dest_view view;
    break_easily(rig);
    rig_start(rig);
    put_many(rig, "m", 2, "a");
    run(rig);
    assert_false(hk_engine_view_dest(rig->engine, 2, rig->now_ms, &view));
    assert_true(hk_engine_view_dest(rig->engine, 1, rig->now_ms, &view));
    assert_string_equal(view.name, "b");
    assert_int_equal(view.breaker, HK_BREAKER_CLOSED);
    assert_int_equal(view.seen, 0);
    assert_true(view.ready_at_ms <= rig->now_ms);
    answer(rig, "m0", 503);
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view));
    assert_int_equal(view.breaker, HK_BREAKER_OPEN);
    assert_int_equal(view.seen, 2);
    assert_int_equal(view.in_flight, 1);
    assert_int_equal(view.ready_at_ms, rig->now_ms + 1000);
    rig_free(rig);
}

/* ---- hunger ---- */

static void an_engine_with_something_to_read_is_not_hungry(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    run(rig);
    assert_true(hk_engine_hungry(rig->engine));
    put_many(rig, "m", 1, "a");
    rig->now_ms += 60;
    step_until(rig, HK_ACT_POLL); /* it knows of them */
    assert_false(hk_engine_hungry(rig->engine));
    step_until(rig, HK_ACT_SCAN); /* has chosen one */
    assert_false(hk_engine_hungry(rig->engine));
    run(rig);
    assert_true(hk_engine_hungry(rig->engine));
    rig_free(rig);
}

static void an_engine_whose_destinations_have_no_place_is_not_hungry_though_nothing_waits(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].limiter.concurrency = 1;
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    assert_false(hk_engine_hungry(rig->engine));
    answer(rig, "m0", 200);
    assert_true(hk_engine_hungry(rig->engine));
    rig_free(rig);
}

static void an_engine_that_was_told_of_late_rows_is_not_hungry(void **state)
{
    (void)state;
    struct rig *rig = rig_new_on(1, (struct hk_model_options){.ids_at_insert = true});
    rig_start(rig);
    size_t late = hk_model_insert(rig->model, put(rig, "late", "a", ""));
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    answer(rig, "m", 200);
    hk_model_commit(rig->model, late);
    rig->now_ms += 60;
    step_until(rig, HK_ACT_POLL);
    assert_false(hk_engine_hungry(rig->engine));
    run(rig);
    assert_true(in_flight(rig, "late"));
    rig_free(rig);
}

static void an_engine_whose_destinations_are_paused_or_behind_is_not_hungry(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_model_reply reply = {.rc = HK_OK};
    break_easily(rig);
    rig_start(rig);
    hk_model_pause(rig->model, "b", true, "operator", &reply);
    commit(rig, put(rig, "m0", "a", ""));
    run(rig);
    assert_true(hk_engine_hungry(rig->engine));
    answer(rig, "m0", 503); /* "a" is broken, and stays behind */
    commit(rig, put(rig, "m1", "a", ""));
    wait_ms(rig, 60);
    assert_int_equal(hk_engine_in_hand(rig->engine), 0);
    assert_false(hk_engine_hungry(rig->engine));
    rig_free(rig);
}

/* ---- exchanges ---- */

static void a_full_exchange_does_not_wait_for_company(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->options.concurrency = 200;
    rig->options.batch = 200;
    rig->options.linger_ms = 1000;
    rig->dests[0].limiter.concurrency = 200;
    rig_start(rig);
    put_many(rig, "first", 1, "a");
    run(rig);
    put_many(rig, "few", 20, "a");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 1); /* somebody may join */
    put_many(rig, "many", 64, "a");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 85);
    rig_free(rig);
}

static void what_is_ready_when_the_drain_begins_is_given_back_unsent(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", 3, "a");
    do
        step_until(rig, HK_ACT_EXCHANGE);
    while (!hk_engine_stats(rig->engine)->claimed);
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 1000);
    run(rig);
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    assert_int_equal(rig->n_sends, 0);
    assert_true(settled(rig, "m0", "release"));
    assert_int_equal(hk_engine_stats(rig->engine)->released, 3);
    assert_int_equal(hk_model_live(rig->model), 3);
    rig_free(rig);
}

static void a_lane_that_is_lost_while_draining_is_not_taken_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 100000);
    rig->refuse = HK_CONFLICT;
    wait_ms(rig, LEASE_MS / 3 + 1);
    assert_int_equal(hk_engine_stats(rig->engine)->lanes_lost, 1);
    assert_int_equal(rig->aborts, 1);
    assert_int_equal(rig->last.kind, HK_ACT_WAIT); /* for the send that was ended */
    assert_true(rig->last.wake_ms > rig->now_ms + 1000);
    size_t calls = rig->calls;
    answer_facts(rig, "m0", (struct hk_facts){.fault = HK_FAULT_LOCAL});
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    assert_int_equal(rig->calls, calls);
    rig_free(rig);
}

/* ---- outcomes ---- */

static bool shown;

static void show_headers(struct hk_outcome *outcome)
{
    shown = true;
    outcome->request_headers = hk_str_of("{\"a\":\"b\"}");
}

static void headers_are_made_only_for_what_is_written_down(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", 2, "a");
    run(rig);
    struct hk_outcome outcome = {.facts = {.status = 200}, .show = show_headers};
    shown = false;
    found(rig, "m0")->over = true;
    hk_engine_on_outcome(rig->engine, rig->now_ms, rig->sends[0].slot, &outcome);
    assert_false(shown);
    outcome.facts.status = 500;
    found(rig, "m1")->over = true;
    hk_engine_on_outcome(rig->engine, rig->now_ms, rig->sends[1].slot, &outcome);
    assert_true(shown);
    run(rig);
    rig_free(rig);
}

static void our_own_fault_says_nothing_of_the_destination(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_dest_view view;
    break_easily(rig);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    answer_facts(rig, "m0", (struct hk_facts){.fault = HK_FAULT_LOCAL});
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view));
    assert_int_equal(view.breaker, HK_BREAKER_CLOSED);
    rig_free(rig);
}

static void two_answers_that_pause_are_one_pause(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", 2, "a");
    run(rig);
    for (size_t i = 0; i < 2; i++) {
        struct hk_outcome outcome = {.facts = {.status = 410}};
        rig->sends[i].over = true;
        hk_engine_on_outcome(rig->engine, rig->now_ms, rig->sends[i].slot, &outcome);
    }
    run(rig);
    assert_int_equal(rig->pauses, 1);
    rig_free(rig);
}

static void without_a_book_of_policies_the_destinations_own_holds(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    struct hk_model_msg *msg = put(rig, "m", "a", "");
    assert_true(hk_str_copy(msg->policy, sizeof msg->policy, hk_str_of("special")));
    commit(rig, msg);
    run(rig);
    assert_true(in_flight(rig, "m"));
    answer(rig, "m", 500);
    assert_true(settled(rig, "m", "retry"));
    rig_free(rig);
}

static void what_may_have_arrived_was_an_attempt_whatever_the_sink_says_of_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    answer_facts(rig, "m0", (struct hk_facts){.fault = HK_FAULT_TOO_LARGE, .possibly_delivered = true});
    assert_true(logged(rig, "m0", "\"n\":1"));
    rig_free(rig);
}

static void an_answer_that_came_before_the_abort_counts(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 10);
    wait_ms(rig, 20);
    assert_int_equal(rig->aborts, 1);
    answer(rig, "m0", 200);
    assert_true(settled(rig, "m0", "sent"));
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    rig_free(rig);
}

/* ---- keys that are missing ---- */

static void put_off(struct rig *rig, const char *m, uint64_t ms)
{
    struct flying *send = found(rig, m);
    const struct hk_outcome outcome = {.facts = {.fault = HK_FAULT_LOCAL, .error = hk_str_of("no key")},
                                       .put_off_ms = ms};
    send->over = true;
    hk_engine_on_outcome(rig->engine, rig->now_ms, send->slot, &outcome);
    run(rig);
}

static void what_waits_for_a_key_is_not_charged_and_keeps_its_turn(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "m", "a", "k"));
    commit(rig, put(rig, "n", "a", "k"));
    commit(rig, put(rig, "other", "a", ""));
    run(rig);
    for (int i = 0; i < 3; i++) { /* however often: a policy would have given up or waited longer */
        put_off(rig, "m", 1000);
        assert_true(settled(rig, "m", "retry"));
        wait_ms(rig, 900);
        assert_false(in_flight(rig, "m"));
        assert_false(in_flight(rig, "n"));
        wait_ms(rig, 600);
        assert_true(in_flight(rig, "m"));
        assert_int_equal(found(rig, "m")->attempt, 1);
    }
    assert_true(in_flight(rig, "other"));
    answer(rig, "m", 200);
    wait_ms(rig, 1000);
    assert_true(in_flight(rig, "n"));
    answer(rig, "n", 200);
    answer(rig, "other", 200);
    rig_free(rig);
}

/* ---- leases, suspects, pauses ---- */

static void sends_are_ended_near_the_end_of_every_lease_not_of_the_first_alone(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    commit(rig, put(rig, "m", "a", ""));
    run(rig);
    for (size_t n = 1; n <= 2; n++) {
        assert_true(in_flight(rig, "m"));
        rig->refuse = HK_UNAVAILABLE;
        wait_ms(rig, LEASE_MS - LEASE_MS / 6);
        assert_int_equal(rig->aborts, n);
        answer_facts(rig, "m", (struct hk_facts){.fault = HK_FAULT_LOCAL});
        rig->refuse = HK_OK;
        wait_ms(rig, 5100);
    }
    rig_free(rig);
}

static void while_a_suspect_is_on_its_way_nobody_else_is_taken(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_start(rig);
    commit(rig, put(rig, "bad", "a", ""));
    run(rig);
    for (int n = 0; n < 3; n++)
        crash(rig);
    assert_true(in_flight(rig, "bad"));
    commit(rig, put(rig, "good", "b", ""));
    wait_ms(rig, 1000);
    assert_false(in_flight(rig, "good"));
    answer(rig, "bad", 200);
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "good"));
    rig_free(rig);
}

/* An answer that pauses comes while a poll is under way that knows nothing of it yet. */
static void a_pause_that_is_not_on_disk_yet_is_not_undone_by_a_poll(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_dest_view view;
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    do {
        hk_engine_next(rig->engine, rig->now_ms, &rig->last);
        if (rig->last.kind == HK_ACT_WAIT)
            rig->now_ms = rig->last.wake_ms;
        else if (rig->last.kind != HK_ACT_POLL)
            call_store(rig, &rig->last);
    } while (rig->last.kind != HK_ACT_POLL);
    struct hk_outcome outcome = {.facts = {.status = 410}};
    hk_engine_on_outcome(rig->engine, rig->now_ms, found(rig, "m0")->slot, &outcome);
    found(rig, "m0")->over = true;
    commit(rig, put(rig, "n", "b", "")); /* so that the poll tells of something */
    call_store(rig, &rig->last);
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view));
    assert_true(view.paused);
    run(rig);
    assert_int_equal(rig->pauses, 1);
    rig_free(rig);
}

/* What has piled up meanwhile goes out by the ramp, not by the bucket that filled up during the pause. */
static void a_destination_that_is_resumed_begins_with_an_empty_bucket(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig->dests[0].limiter = (struct hk_limiter_options){
        .rate_per_s = 100, .burst = 50, .ramp_ms = 10000, .ramp_start = 0.1, .concurrency = 8};
    rig_start(rig);
    hk_model_pause(rig->model, "a", true, "operator", &reply);
    wait_ms(rig, 1000);
    put_many(rig, "m", 8, "a");
    wait_ms(rig, 1000);
    assert_int_equal(rig->n_sends, 0);
    hk_model_pause(rig->model, "a", false, "operator", &reply);
    wait_ms(rig, 100);
    assert_true(rig->n_sends <= 1);
    wait_ms(rig, 2000);
    assert_int_equal(rig->n_sends, 8);
    rig_free(rig);
}

/* Our own fault says neither that the destination is well nor that it is not: the next one probes. */
static void a_probe_that_says_nothing_leaves_its_place_to_the_next(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct hk_dest_view view;
    break_easily(rig);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    answer(rig, "m0", 503);
    wait_ms(rig, 1100);
    answer_facts(rig, "m0", (struct hk_facts){.fault = HK_FAULT_LOCAL});
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view));
    assert_int_equal(view.breaker, HK_BREAKER_HALF_OPEN);
    wait_ms(rig, 200);
    assert_true(in_flight(rig, "m0"));
    rig_free(rig);
}

static void refused_credentials_are_counted_in_a_row(void **state)
{
    (void)state;
    static const int answers[] = {401, 401, 401, 401, 200, 401, 401, 401};
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", COUNT(answers), "a");
    run(rig);
    for (size_t i = 0; i < COUNT(answers); i++) {
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "m%zu", i);
        answer(rig, name, answers[i]);
    }
    assert_int_equal(rig->pauses, 0);
    rig_free(rig);
}

static void what_a_store_refused_is_tried_again_as_soon_as_it_may_be_asked(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    rig->refuse = HK_UNAVAILABLE;
    answer(rig, "m0", 200);
    rig->refuse = HK_OK;
    wait_ms(rig, 60);
    assert_true(settled(rig, "m0", "sent"));
    rig_free(rig);
}

/* A row in our hands is among the held, and does not hold up who comes after it when it is over. */
static void who_waits_for_a_retry_goes_on_though_the_keys_were_read_meanwhile(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig->dests[0].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "m", "a", "k"));
    commit(rig, put(rig, "n", "a", "k"));
    run(rig);
    answer(rig, "m", 500);
    wait_ms(rig, 110);
    assert_true(in_flight(rig, "m"));
    size_t reads = rig->held_reads;
    hk_model_pause(rig->model, "b", true, "operator", &reply); /* an act: the keys are read */
    wait_ms(rig, 1000);
    assert_true(rig->held_reads > reads);
    answer(rig, "m", 200);
    wait_ms(rig, 20);
    assert_true(in_flight(rig, "n"));
    rig_free(rig);
}

static void a_breaker_whose_opening_the_store_refused_is_told_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    break_easily(rig);
    rig_start(rig);
    put_many(rig, "m", 1, "a");
    run(rig);
    rig->refuse = HK_UNAVAILABLE;
    answer(rig, "m0", 503);
    assert_int_equal(rig->told, 0);
    rig->refuse = HK_OK;
    wait_ms(rig, 60);
    assert_int_equal(rig->told, 1);
    rig_free(rig);
}

/* There are fewer places than either could use. */
static void destinations_that_fell_behind_take_turns(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig->options.concurrency = 2;
    rig_start(rig);
    hk_model_pause(rig->model, "a", true, "operator", &reply);
    hk_model_pause(rig->model, "b", true, "operator", &reply);
    wait_ms(rig, 60);
    put_many(rig, "m", 20, "a");
    put_many(rig, "n", 20, "b");
    wait_ms(rig, 60);
    hk_model_pause(rig->model, "a", false, "operator", &reply);
    hk_model_pause(rig->model, "b", false, "operator", &reply);
    wait_ms(rig, 60);
    for (size_t i = 0; i < 8; i++) {
        assert_true(i < rig->n_sends);
        end_send(rig, &rig->sends[i], (struct hk_facts){.status = 200});
        wait_ms(rig, 60);
    }
    size_t of_b = 0;
    for (size_t i = 0; i < rig->n_sends; i++)
        of_b += rig->sends[i].dest == 1;
    assert_in_range(of_b, 3, 7);
    rig_free(rig);
}

static void a_key_of_a_paused_destination_holds_up_no_other_key(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig->dests[0].ordered = rig->dests[1].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "a1", "a", "k"));
    commit(rig, put(rig, "a2", "a", "k"));
    commit(rig, put(rig, "b1", "b", "k"));
    commit(rig, put(rig, "b2", "b", "k"));
    run(rig);
    hk_model_pause(rig->model, "a", true, "operator", &reply);
    wait_ms(rig, 60);
    answer(rig, "a1", 200);
    answer(rig, "b1", 200);
    wait_ms(rig, 60);
    assert_false(in_flight(rig, "a2"));
    assert_true(in_flight(rig, "b2"));
    rig_free(rig);
}

/* The next poll tells this of destination a, or nothing: how is the destination then? */
static struct hk_dest_view poll_tells(struct rig *rig, bool paused, int64_t open_until_ms)
{
    struct hk_dest_view view;
    struct hk_poll_dest dest = {
        .name = hk_str_of("a"), .paused = paused, .open_until_ms = open_until_ms, .retry_due_ms = INT64_MAX};
    struct hk_poll poll = {
        .changed = true, .dests = &dest, .n_dests = paused || open_until_ms, .last_id = HK_FIRST_ID};
    hk_engine_next(rig->engine, rig->now_ms, &rig->last);
    while (rig->last.kind != HK_ACT_POLL) {
        if (rig->last.kind == HK_ACT_WAIT)
            rig->now_ms = rig->last.wake_ms;
        else
            call_store(rig, &rig->last);
        hk_engine_next(rig->engine, rig->now_ms, &rig->last);
    }
    poll.now_ms = store_now(rig);
    hk_engine_on_poll(rig->engine, rig->now_ms, HK_OK, &poll);
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view));
    return view;
}

/* A store lists a destination as long as there is something to tell of it. */
static void a_breaker_that_no_poll_tells_of_any_more_is_closed(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    break_easily(rig);
    rig_start(rig);
    run(rig);
    assert_int_equal(poll_tells(rig, false, store_now(rig) + 60000).breaker, HK_BREAKER_OPEN);
    assert_int_equal(poll_tells(rig, false, 0).breaker, HK_BREAKER_CLOSED);
    rig_free(rig);
}

/* Resumed, tried by another relay and found broken, all between two polls of ours. */
static void a_breaker_that_opened_since_the_resume_is_kept_to(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    break_easily(rig);
    rig_start(rig);
    run(rig);
    int64_t first_ms = store_now(rig) + 60000;
    struct hk_dest_view view = poll_tells(rig, true, first_ms);
    assert_true(view.paused && view.breaker == HK_BREAKER_OPEN);
    view = poll_tells(rig, false, first_ms + 7000);
    assert_true(!view.paused && view.breaker == HK_BREAKER_OPEN);
    view = poll_tells(rig, true, first_ms + 7000);
    view = poll_tells(rig, false, 0);
    assert_true(!view.paused && view.breaker == HK_BREAKER_CLOSED);
    rig_free(rig);
}

/* ---- together with others ---- */

static void who_waits_for_a_leave_to_probe_goes_on_when_another_one_has_probed(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    break_easily(rig);
    rig->options.shared = true;
    rig_start(rig);
    put_many(rig, "m", 3, "a");
    run(rig);
    answer(rig, "m0", 503);
    answer_all(rig, 0, 503);
    wait_ms(rig, 2000); /* half-open, and no leave */
    assert_int_equal(rig->n_sends, 3);
    assert_true(rig->asked > 0);
    struct hk_poll_dest dest = {.name = hk_str_of("a"), .open_until_ms = 1, .retry_due_ms = store_now(rig)};
    struct hk_poll poll = {.changed = true, .now_ms = store_now(rig), .dests = &dest, .n_dests = 1};
    for (int i = 0; i < 2; i++) { /* open no more since long, then closed */
        while (step(rig) != HK_ACT_WAIT)
            ;
        do {
            rig->now_ms = rig->last.wake_ms;
            hk_engine_next(rig->engine, rig->now_ms, &rig->last);
            if (rig->last.kind == HK_ACT_POLL)
                break;
            if (rig->last.kind != HK_ACT_WAIT)
                call_store(rig, &rig->last);
        } while (true);
        poll.now_ms = store_now(rig);
        poll.last_id = HK_FIRST_ID;
        dest.open_until_ms = i == 0 ? 1 : 0;
        hk_engine_on_poll(rig->engine, rig->now_ms, HK_OK, &poll);
    }
    run(rig);
    wait_ms(rig, 200);
    assert_true(count_flying(rig, 0) > 0); /* without leave */
    rig_free(rig);
}

static void a_reserve_is_given_back_when_a_person_pauses_its_destination(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig->options.concurrency = 64;
    rig->options.linger_ms = 5;
    rig->options.ahead_ms = 50;
    rig->dests[0].limiter.concurrency = 4;
    rig_start(rig);
    put_many(rig, "m", 40, "a");
    run(rig);
    answer(rig, "m0", 200);
    answer(rig, "m1", 200);
    wait_ms(rig, 6);
    wait_ms(rig, 6);
    const struct hk_engine_stats *stats = hk_engine_stats(rig->engine);
    assert_int_equal(stats->claimed - stats->sends, 2); /* in reserve */
    hk_model_pause(rig->model, "a", true, "operator", &reply);
    wait_ms(rig, 100);
    assert_int_equal(stats->released, 2);
    assert_int_equal(count_flying(rig, 0), 4);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_at_all_and_more_than_anybody_needs_are_refused),
        cmocka_unit_test(without_any_destination_a_message_is_dead_and_says_why),
        cmocka_unit_test(what_it_tells_of_a_destination),
        cmocka_unit_test(an_engine_with_something_to_read_is_not_hungry),
        cmocka_unit_test(an_engine_whose_destinations_have_no_place_is_not_hungry_though_nothing_waits),
        cmocka_unit_test(an_engine_that_was_told_of_late_rows_is_not_hungry),
        cmocka_unit_test(an_engine_whose_destinations_are_paused_or_behind_is_not_hungry),
        cmocka_unit_test(a_full_exchange_does_not_wait_for_company),
        cmocka_unit_test(what_is_ready_when_the_drain_begins_is_given_back_unsent),
        cmocka_unit_test(a_lane_that_is_lost_while_draining_is_not_taken_again),
        cmocka_unit_test(headers_are_made_only_for_what_is_written_down),
        cmocka_unit_test(our_own_fault_says_nothing_of_the_destination),
        cmocka_unit_test(two_answers_that_pause_are_one_pause),
        cmocka_unit_test(without_a_book_of_policies_the_destinations_own_holds),
        cmocka_unit_test(what_may_have_arrived_was_an_attempt_whatever_the_sink_says_of_it),
        cmocka_unit_test(an_answer_that_came_before_the_abort_counts),
        cmocka_unit_test(what_waits_for_a_key_is_not_charged_and_keeps_its_turn),
        cmocka_unit_test(sends_are_ended_near_the_end_of_every_lease_not_of_the_first_alone),
        cmocka_unit_test(while_a_suspect_is_on_its_way_nobody_else_is_taken),
        cmocka_unit_test(a_pause_that_is_not_on_disk_yet_is_not_undone_by_a_poll),
        cmocka_unit_test(a_destination_that_is_resumed_begins_with_an_empty_bucket),
        cmocka_unit_test(a_breaker_that_no_poll_tells_of_any_more_is_closed),
        cmocka_unit_test(a_breaker_that_opened_since_the_resume_is_kept_to),
        cmocka_unit_test(a_probe_that_says_nothing_leaves_its_place_to_the_next),
        cmocka_unit_test(refused_credentials_are_counted_in_a_row),
        cmocka_unit_test(what_a_store_refused_is_tried_again_as_soon_as_it_may_be_asked),
        cmocka_unit_test(who_waits_for_a_retry_goes_on_though_the_keys_were_read_meanwhile),
        cmocka_unit_test(a_breaker_whose_opening_the_store_refused_is_told_again),
        cmocka_unit_test(destinations_that_fell_behind_take_turns),
        cmocka_unit_test(a_key_of_a_paused_destination_holds_up_no_other_key),
        cmocka_unit_test(who_waits_for_a_leave_to_probe_goes_on_when_another_one_has_probed),
        cmocka_unit_test(a_reserve_is_given_back_when_a_person_pauses_its_destination),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
