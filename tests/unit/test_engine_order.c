/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's order per key, its routes and schedules; and all of that without memory. */
#include "engine_rig.h"

static void order_of_a_key_is_kept(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "k1", "a", "k"));
    commit(rig, put(rig, "k2", "a", "k"));
    commit(rig, put(rig, "k3", "a", "k"));
    commit(rig, put(rig, "other", "a", "o"));
    commit(rig, put(rig, "free", "a", ""));
    run(rig);
    assert_true(in_flight(rig, "k1") && in_flight(rig, "other") && in_flight(rig, "free"));
    assert_false(in_flight(rig, "k2"));
    answer(rig, "k1", 500); /* a waiting head holds its key */
    wait_ms(rig, 90);
    assert_false(in_flight(rig, "k2"));
    wait_ms(rig, 20);
    answer(rig, "k1", 200);
    wait_ms(rig, 10);
    assert_true(in_flight(rig, "k2"));
    assert_false(in_flight(rig, "k3"));
    answer(rig, "k2", 200);
    wait_ms(rig, 10);
    assert_true(in_flight(rig, "k3"));
    answer(rig, "k3", 200);
    assert_int_equal(hk_engine_stats(rig->engine)->swept, 0);
    rig_free(rig);
}

static void a_dead_head_blocks_or_is_skipped(void **state)
{
    (void)state;
    for (int skip = 0; skip < 2; skip++) {
        struct rig *rig = rig_new(1);
        rig->dests[0].ordered = true;
        rig->dests[0].skip_dead = skip;
        rig_start(rig);
        commit(rig, put(rig, "head", "a", "k"));
        commit(rig, put(rig, "next", "a", "k"));
        run(rig);
        answer(rig, "head", 422);
        assert_true(dead_of(rig, "head", "HTTP_422"));
        wait_ms(rig, 5000);
        assert_int_equal(in_flight(rig, "next"), skip);
        if (!skip) {
            assert_true(hk_model_discard(rig->model, 0));
            wait_ms(rig, 1000); /* an operator's act shows within a second */
        }
        answer(rig, "next", 200);
        assert_int_equal(hk_model_live(rig->model), 0);
        rig_free(rig);
    }
}

/* Reading them may take long where very many are held: so they are read when a person has acted, be it soon after the last
 * time, and otherwise hardly ever. */
static void held_keys_are_read_when_people_act_and_not_for_every_commit(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "head", "a", "k"));
    commit(rig, put(rig, "next", "a", "k"));
    run(rig);
    answer(rig, "head", 422);
    wait_ms(rig, 1000);
    rig->held_took_ms = 400;
    size_t before = rig->held_reads;
    for (int i = 0; i < 300; i++) { /* half a minute of an application at work */
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "m%d", i);
        commit(rig, put(rig, name, "a", ""));
        wait_ms(rig, 100);
        answer_all(rig, 0, 200);
    }
    assert_in_range(rig->held_reads - before, 1, 3); /* in case that somebody changes the tables by hand */
    assert_true(hk_model_requeue(rig->model, 0));
    wait_ms(rig, 1000);
    answer(rig, "head", 422);
    assert_false(in_flight(rig, "next"));
    assert_true(hk_model_discard(rig->model, 0)); /* hard upon the other */
    wait_ms(rig, 1000);
    assert_true(in_flight(rig, "next"));
    rig_free(rig);
}

/* The relay does not know yet that the key has one more waiting, and claims it: that one's place is not the other's. */
static void a_requeued_message_takes_nobodys_place(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = rig->dests[0].skip_dead = true;
    rig_start(rig);
    commit(rig, put(rig, "old", "a", "k"));
    commit(rig, put(rig, "x", "a", "j"));
    run(rig);
    answer(rig, "old", 422);
    answer(rig, "x", 422);
    commit(rig, put(rig, "one", "a", "k"));
    commit(rig, put(rig, "two", "a", "k"));
    wait_ms(rig, 1000);
    assert_true(hk_model_discard(rig->model, 1)); /* the held keys are read, and not again so soon */
    wait_ms(rig, 60);
    size_t reads = rig->held_reads;
    assert_true(hk_model_requeue(rig->model, 0));
    answer(rig, "one", 500);
    wait_ms(rig, 10);
    assert_true(in_flight(rig, "old"));
    answer(rig, "old", 200);
    wait_ms(rig, 20);
    assert_int_equal(rig->held_reads, reads);
    assert_false(in_flight(rig, "two"));
    wait_ms(rig, 100);
    assert_true(in_flight(rig, "one"));
    answer(rig, "one", 200);
    wait_ms(rig, 1000);
    assert_true(in_flight(rig, "two"));
    rig_free(rig);
}

static void order_survives_a_crash_and_a_cancelled_head(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "head", "a", "k"));
    commit(rig, put(rig, "next", "a", "k"));
    run(rig);
    answer(rig, "head", 500);
    crash(rig); /* the new relay learns that the key is held */
    assert_true(in_flight(rig, "head"));
    answer(rig, "head", 500);
    assert_false(in_flight(rig, "next"));
    assert_true(hk_model_cancel(rig->model, 1)); /* the retry row: of outbox and outbox_retry the second */
    wait_ms(rig, 1000);
    assert_true(in_flight(rig, "next"));
    rig_free(rig);
}

static void refused_ones_keep_their_place(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    put(rig, "head", "a", "k")->payload_bytes = 101;
    commit(rig, &rig->messages[0]);
    commit(rig, put(rig, "next", "a", "k"));
    wait_ms(rig, 1000);
    assert_true(dead_of(rig, "head", "PAYLOAD_TOO_LARGE"));
    assert_false(in_flight(rig, "next")); /* behind a dead head, as if it had been sent and refused */
    rig_free(rig);
}

/* A fan-out whose destination has yet to read what lies before it waits for that, and comes with it. */
static void a_fan_out_behind_what_is_unread_comes_when_it_was_read(void **state)
{
    (void)state;
    static const size_t both[] = {0, 1};
    static const struct hk_engine_route routes[] = {{"order", both, 2}};
    struct rig *rig = rig_new(2);
    rig->options.routes = routes;
    rig->options.n_routes = 1;
    rig->dests[0].ordered = true;
    rig->dests[0].limiter.concurrency = 1;
    rig_start(rig);
    commit(rig, put(rig, "first", "a", "x"));
    commit(rig, put(rig, "second", "a", "y"));
    commit(rig, put(rig, "fan", "", "z"));
    wait_ms(rig, 60);
    assert_int_equal(rig->n_sends, 1);
    answer(rig, "first", 200);
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "second"));
    assert_int_equal(count_flying(rig, 1), 1); /* where there is a place it does not wait for one elsewhere */
    answer(rig, "second", 200);
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 1);
    assert_int_equal(hk_engine_stats(rig->engine)->swept, 0);
    rig_free(rig);
}

static void a_route_fans_out(void **state)
{
    (void)state;
    static const size_t both[] = {0, 1}, one[] = {2};
    static const struct hk_engine_route routes[] = {{"order", both, 2}, {"inv*", one, 1}};
    struct rig *rig = rig_new(3);
    rig->options.routes = routes;
    rig->options.n_routes = 2;
    rig_start(rig);
    commit(rig, put(rig, "fan", "", ""));
    struct hk_model_msg *single = put(rig, "single", "", "");
    assert_true(hk_str_copy(single->event_type, sizeof single->event_type, hk_str_of("invoice")));
    commit(rig, single);
    struct hk_model_msg *none = put(rig, "none", "", "");
    assert_true(hk_str_copy(none->event_type, sizeof none->event_type, hk_str_of("x")));
    commit(rig, none);
    wait_ms(rig, 60);
    assert_int_equal(rig->n_sends, 3);
    assert_int_equal(count_flying(rig, 0) + count_flying(rig, 1), 2);
    assert_int_equal(count_flying(rig, 2), 1);
    assert_true(dead_of(rig, "none", "UNKNOWN_DESTINATION"));
    answer_all(rig, 0, 200); /* each goes its own way */
    answer_all(rig, 1, 422);
    answer_all(rig, 2, 200);
    assert_true(dead_of(rig, "fan", "HTTP_422") && settled(rig, "fan", "sent"));
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

static void a_crash_with_a_routed_message_loses_nothing(void **state)
{
    (void)state;
    static const size_t one[] = {0};
    static const struct hk_engine_route routes[] = {{"*", one, 1}};
    struct rig *rig = rig_new(1);
    rig->options.routes = routes;
    rig->options.n_routes = 1;
    rig_start(rig);
    commit(rig, put(rig, "m", "", ""));
    run(rig);
    assert_true(in_flight(rig, "m"));
    crash(rig);
    wait_ms(rig, 100);
    answer(rig, "m", 200);
    assert_int_equal(hk_model_live(rig->model), 0);
    rig_free(rig);
}

/* It holds its key wherever it may go. When it goes nowhere that is known at once, however long it took to read the keys, and
 * though the store has nothing new to tell. */
static void an_unrouted_row_that_dies_frees_its_key(void **state)
{
    (void)state;
    static const size_t one[] = {0};
    static const struct hk_engine_route routes[] = {{"*", one, 1}};
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig->options.routes = routes;
    rig->options.n_routes = 1;
    rig_start(rig);
    struct hk_model_msg *head = put(rig, "head", "", "k");
    head->expires_ms = store_now(rig) + LEASE_MS;
    commit(rig, head);
    run(rig);
    assert_true(in_flight(rig, "head"));
    commit(rig, put(rig, "next", "a", "k"));
    rig->held_took_ms = 7000;
    crash(rig);
    rig->held_took_ms = 0;
    wait_ms(rig, 2000);
    assert_true(dead_of(rig, "head", "EXPIRED"));
    assert_true(in_flight(rig, "next"));
    rig_free(rig);
}

/* A requeued row that was chosen before it was counted among those that wait, and is gone when it is to be claimed: another of
 * the key still waits. */
static void one_that_is_gone_does_not_take_anothers_place(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig->dests[0].ordered = rig->dests[0].skip_dead = true;
    rig->options.linger_ms = 100;
    rig->held_took_ms = 100; /* and then they are not read again for 750 ms */
    rig_start(rig);
    commit(rig, put(rig, "letter", "a", "k"));
    commit(rig, put(rig, "waits", "a", "k"));
    commit(rig, put(rig, "next", "a", "k"));
    commit(rig, put(rig, "busy", "b", ""));
    commit(rig, put(rig, "old", "b", ""));
    wait_ms(rig, 2000);
    answer(rig, "letter", 422);
    wait_ms(rig, 2000);
    assert_true(in_flight(rig, "waits") && in_flight(rig, "busy"));
    answer(rig, "old", 422);
    wait_ms(rig, 2000);
    size_t reads = rig->held_reads;
    assert_true(hk_model_discard(rig->model, 1));
    for (int i = 0; i < 100 && rig->held_reads == reads; i++)
        wait_ms(rig, 10);
    assert_true(hk_model_requeue(rig->model, 0)); /* which is not heard of before the keys are read again */
    answer(rig, "waits", 500);
    for (int i = 0; i < 40 && !settled(rig, "waits", "retry"); i++)
        wait_ms(rig, 10);
    wait_ms(rig, 10);
    assert_int_equal(hk_engine_in_hand(rig->engine), 2); /* "busy", and the letter is chosen */
    assert_true(hk_model_cancel(rig->model, 1));
    assert_true(logged(rig, "letter", "\"cancel\""));
    for (int i = 0; i < 30 && !in_flight(rig, "waits"); i++) {
        wait_ms(rig, 100);
        assert_false(in_flight(rig, "next"));
    }
    assert_true(in_flight(rig, "waits"));
    rig_free(rig);
}

static void scheduled_ones_wait_and_hold_nobody(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    put(rig, "later", "a", "k")->not_before_ms =
        store_now(rig) + 400 * INT64_C(86400000); /* more than a year */
    commit(rig, &rig->messages[0]);
    commit(rig, put(rig, "now", "a", "k"));
    run(rig);
    assert_true(settled(rig, "later", "defer"));
    answer(rig, "now", 200);
    wait_ms(rig, 10000);
    assert_int_equal(rig->n_sends, 1);
    rig->now_ms = rig->messages[0].not_before_ms - 1000000 - 1; /* the machine slept */
    wait_ms(rig, 0);
    assert_false(in_flight(rig, "later"));
    wait_ms(rig, 10000);
    assert_true(in_flight(rig, "later"));
    assert_int_equal(found(rig, "later")->attempt, 1);
    rig_free(rig);
}

/* ---- out of memory ---- */

static long allowed;
static bool for_ever;

static void *failing_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    if (allowed-- == 0 || (for_ever && allowed < 0))
        return NULL;
    return realloc(ptr, bytes);
}

static void plain_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

/* A small day: keys, a fan-out, a failure, a retry. True: all went well. */
static bool small_day(struct rig *rig)
{
    for (int i = 0; i < 40 && hk_model_live(rig->model); i++) {
        wait_ms(rig, 1000);
        answer_all(rig, 0, i == 0 ? 500 : 200);
        answer_all(rig, 1, 200);
    }
    return hk_model_live(rig->model) == 0;
}

static void assert_small_day(struct rig *rig, long k)
{
    bool well = small_day(rig);
    NOTE_IF(!well, "allocation %ld:\n%s", k, hk_buf_cstr(&rig->log));
    assert_true(well);
}

static struct rig *small_rig(void)
{
    static const size_t both[] = {0, 1};
    static const struct hk_engine_route routes[] = {{"*", both, 2}};
    struct rig *rig = rig_new(2);
    struct hk_limits limits = *hk_policy_limits(rig->policy);
    limits.max_attempts = 20;
    assert_int_equal(hk_policy_set_limits(rig->policy, &limits, NULL), HK_OK);
    rig->dests[0].ordered = true;
    rig->options.routes = routes;
    rig->options.n_routes = 1;
    commit(rig, put(rig, "k1", "a", "k"));
    commit(rig, put(rig, "k2", "a", "k"));
    commit(rig, put(rig, "fan", "", "k"));
    commit(rig, put(rig, "plain", "b", ""));
    for (int i = 0; i < 20000; i++) /* room for the log, so that it is not what fails */
        (void)hk_buf_adds(&rig->log, "                                        ");
    hk_buf_reset(&rig->log);
    return rig;
}

static void one_failed_allocation_loses_nothing(void **state)
{
    (void)state;
    struct hk_allocator failing = {failing_resize, plain_release, NULL};
    bool untouched = false;
    for (long k = 0; !untouched; k++) {
        struct rig *rig = small_rig();
        for_ever = false;
        allowed = k;
        hk_allocator_set(&failing);
        enum hk_code rc = hk_engine_new(&rig->options, rig->now_ms, &rig->engine, NULL);
        if (rc == HK_OK)
            assert_small_day(rig, k);
        else
            assert_int_equal(rc, HK_NOMEM);
        untouched = allowed >= 0;
        allowed = 1000000;
        hk_allocator_set(NULL);
        rig_free(rig);
        assert_true(k < 5000);
    }
}

static void no_memory_at_all_is_survived_and_passes(void **state)
{
    (void)state;
    struct hk_allocator failing = {failing_resize, plain_release, NULL};
    for (long k = 0; k < 60; k++) {
        struct rig *rig = small_rig();
        rig_start(rig);
        allowed = k;
        for_ever = true;
        hk_allocator_set(&failing);
        for (int i = 0; i < 3; i++) {
            wait_ms(rig, 1000);
            answer_all(rig, 0, 500);
            answer_all(rig, 1, 200);
        }
        for_ever = false;
        allowed = 1000000;
        hk_allocator_set(NULL);
        assert_small_day(rig, k);
        rig_free(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_a_key_is_kept),
        cmocka_unit_test(a_dead_head_blocks_or_is_skipped),
        cmocka_unit_test(held_keys_are_read_when_people_act_and_not_for_every_commit),
        cmocka_unit_test(a_requeued_message_takes_nobodys_place),
        cmocka_unit_test(order_survives_a_crash_and_a_cancelled_head),
        cmocka_unit_test(refused_ones_keep_their_place),
        cmocka_unit_test(a_fan_out_behind_what_is_unread_comes_when_it_was_read),
        cmocka_unit_test(a_route_fans_out),
        cmocka_unit_test(a_crash_with_a_routed_message_loses_nothing),
        cmocka_unit_test(an_unrouted_row_that_dies_frees_its_key),
        cmocka_unit_test(one_that_is_gone_does_not_take_anothers_place),
        cmocka_unit_test(scheduled_ones_wait_and_hold_nobody),
        cmocka_unit_test(one_failed_allocation_loses_nothing),
        cmocka_unit_test(no_memory_at_all_is_survived_and_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
