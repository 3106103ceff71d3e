/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on a store whose ids are not in the order of commits, and whose relays own a part of the outbox each: what
 * turns up late, below the cursors, and what is given to a relay that is at work. The sweep would find all of it in the
 * end; that it has nothing to find shows that the store's word was enough. */
#include "engine_rig.h"

static struct rig *late_rig(size_t n_dests)
{
    return rig_new_on(n_dests, (struct hk_model_options){.ids_at_insert = true});
}

/* A transaction that has drawn its id and stays open. */
static size_t begin(struct rig *rig, const char *m, const char *dest, const char *key)
{
    return hk_model_insert(rig->model, put(rig, m, dest, key));
}

static void assert_nothing_left(struct rig *rig)
{
    for (int i = 0; i < 60 && hk_model_live(rig->model); i++) {
        for (size_t dest = 0; dest < rig->options.n_dests; dest++)
            answer_all(rig, dest, 200);
        wait_ms(rig, 60);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_int_equal(hk_engine_stats(rig->engine)->swept, 0);
}

static void a_late_row_is_taken_at_the_next_poll(void **state)
{
    (void)state;
    struct rig *rig = late_rig(2);
    rig_start(rig);
    size_t held = begin(rig, "held", "a", "");
    put_many(rig, "m", 5, "b");
    run(rig);
    assert_int_equal(count_flying(rig, 1), 5);
    hk_model_commit(rig->model, held);
    wait_ms(rig, (int64_t)rig->options.poll_max_ms);
    assert_true(in_flight(rig, "held"));
    assert_nothing_left(rig);
    assert_int_equal(rig->n_sends, 6);
    rig_free(rig);
}

static void late_rows_come_in_batches(void **state)
{
    (void)state;
    struct rig *rig = late_rig(2);
    size_t held[40];
    rig_start(rig);
    for (int i = 0; i < 40; i++) {
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "held%d", i);
        held[i] = begin(rig, name, i % 2 ? "a" : "b", "");
    }
    put_many(rig, "m", 1, "a");
    run(rig);
    for (int i = 0; i < 40; i++)
        hk_model_commit(rig->model, held[i]);
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0) + count_flying(rig, 1), CONCURRENCY);
    assert_nothing_left(rig);
    assert_int_equal(rig->n_sends, 41);
    rig_free(rig);
}

/* What is late while the engine is full is looked at all the same, and goes as soon as there is room. */
static void late_rows_are_not_lost_on_a_full_engine(void **state)
{
    (void)state;
    static const size_t both[] = {0, 1};
    static const struct hk_engine_route routes[] = {{"order", both, 2}};
    static const char *const dests[] = {"a", "", "nowhere"};
    for (size_t k = 0; k < 3; k++) {
        struct rig *rig = late_rig(2);
        rig->options.routes = routes;
        rig->options.n_routes = 1;
        rig_start(rig);
        size_t held = begin(rig, "held", dests[k], "");
        put_many(rig, "hog", CONCURRENCY + 2, "b");
        run(rig);
        assert_int_equal(count_flying(rig, 1), CONCURRENCY);
        hk_model_commit(rig->model, held);
        wait_ms(rig, 1000);
        assert_int_equal(rig->n_sends, CONCURRENCY);
        assert_true(rig->handle.late_from == rig->handle.version); /* the store was asked, and is through */
        answer(rig, "hog0", 200); /* the fresh ones and its destination take turns */
        wait_ms(rig, 60);
        answer(rig, "hog1", 200);
        wait_ms(rig, 60);
        assert_true(in_flight(rig, "held") || settled(rig, "held", "fan_out") ||
                    settled(rig, "held", "dead"));
        assert_nothing_left(rig);
        rig_free(rig);
    }
}

static void late_rows_of_a_paused_destination_go_when_it_is_resumed(void **state)
{
    (void)state;
    struct hk_model_reply reply = {.rc = HK_OK};
    struct rig *rig = late_rig(2);
    rig_start(rig);
    size_t first = begin(rig, "first", "a", ""), second = begin(rig, "second", "a", "");
    hk_model_pause(rig->model, "a", true, "operator", &reply);
    commit(rig, put(rig, "usual", "a", ""));
    size_t third = begin(rig, "third", "a", "");
    put_many(rig, "b", 3, "b");
    wait_ms(rig, 60);
    hk_model_commit(rig->model, second); /* below where the destination fell behind */
    hk_model_commit(rig->model, third);  /* and above */
    wait_ms(rig, 60);
    hk_model_commit(rig->model, first); /* lower still */
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 0);
    hk_model_pause(rig->model, "a", false, "operator", &reply);
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 4);
    assert_nothing_left(rig);
    assert_int_equal(rig->n_sends, 7);
    rig_free(rig);
}

static void a_late_row_of_a_full_destination_is_sent_once_and_its_neighbours_too(void **state)
{
    (void)state;
    struct rig *rig = late_rig(1);
    rig->dests[0].limiter.concurrency = 2;
    rig_start(rig);
    size_t held = begin(rig, "held", "a", "");
    put_many(rig, "m", 6, "a");
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 2); /* m0 and m1; the destination reads for itself from m2 on */
    hk_model_commit(rig->model, held);
    wait_ms(rig, 60);
    answer(rig, "m0", 200);
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "held"));
    assert_nothing_left(rig);
    assert_int_equal(rig->n_sends, 7);
    rig_free(rig);
}

/* Who writes a key under a lock has its ids in the order of its commits, and order holds for him. */
static void order_of_a_key_holds_for_late_rows(void **state)
{
    (void)state;
    struct rig *rig = late_rig(2);
    rig->dests[0].ordered = true;
    rig_start(rig);
    size_t one = begin(rig, "one", "a", "k");
    put_many(rig, "b", 3, "b");
    wait_ms(rig, 60);
    hk_model_commit(rig->model, one); /* late, and … */
    commit(rig, put(rig, "two", "a", "k"));
    size_t three = begin(rig, "three", "a", "k");
    commit(rig, put(rig, "b9", "b", ""));
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "one") && in_flight(rig, "b9"));
    assert_false(in_flight(rig, "two")); /* … the one after it lies where it is found first */
    answer(rig, "one", 500);
    hk_model_commit(rig->model, three);
    commit(rig, put(rig, "four", "a", "k"));
    wait_ms(rig, 110);
    assert_true(in_flight(rig, "one"));
    static const char *const turn[] = {"one", "two", "three", "four"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(count_flying(rig, 0), 1);
        answer(rig, turn[i], 200);
        wait_ms(rig, 60);
    }
    assert_nothing_left(rig);
    rig_free(rig);
}

/* Without a lock: nobody can put it before what was sent already, but it goes, and before what was passed over. */
static void a_late_row_behind_its_own_key_is_never_lost(void **state)
{
    (void)state;
    struct rig *rig = late_rig(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    size_t one = begin(rig, "one", "a", "k");
    commit(rig, put(rig, "two", "a", "k"));
    commit(rig, put(rig, "three", "a", "k"));
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "two"));
    hk_model_commit(rig->model, one);
    wait_ms(rig, 60);
    assert_int_equal(count_flying(rig, 0), 1);
    answer(rig, "two", 200);
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "one"));
    assert_false(in_flight(rig, "three"));
    answer(rig, "one", 200);
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "three"));
    assert_nothing_left(rig);
    rig_free(rig);
}

static void a_late_scan_that_the_store_refused_is_made_again(void **state)
{
    (void)state;
    struct rig *rig = late_rig(1);
    rig_start(rig);
    size_t held = begin(rig, "held", "a", "");
    commit(rig, put(rig, "m", "a", ""));
    wait_ms(rig, 60);
    hk_model_commit(rig->model, held);
    do { /* up to the late scan */
        rig->now_ms++;
        hk_engine_next(rig->engine, rig->now_ms, &rig->last);
        if (rig->last.kind == HK_ACT_SCAN && rig->last.scan.late)
            rig->refuse = HK_BUSY;
        if (rig->last.kind != HK_ACT_WAIT)
            call_store(rig, &rig->last);
    } while (rig->refuse == HK_OK);
    rig->refuse = HK_OK;
    wait_ms(rig, 200);
    assert_true(in_flight(rig, "held"));
    rig_free(rig);
}

/* An application may write ids of its own. The lowest that there is cannot be told from "nothing was read": that one row is
 * left to the sweep. */
static void ids_below_one_are_ids_like_any_other(void **state)
{
    (void)state;
    static const int64_t firsts[] = {-5, INT64_MIN};
    for (size_t k = 0; k < COUNT(firsts); k++) {
        struct rig *rig = rig_new_on(2, (struct hk_model_options){.first_id = firsts[k]});
        rig->dests[0].ordered = true;
        rig->dests[1].limiter.concurrency = 1; /* falls behind */
        rig_start(rig);
        commit(rig, put(rig, "b0", "b", ""));
        for (int i = 0; i < 4; i++) {
            char name[HK_MODEL_TEXT];
            (void)snprintf(name, sizeof name, "k%d", i);
            commit(rig, put(rig, name, "a", "k"));
        }
        put_many(rig, "b1", 6, "b");
        for (int i = 0; i < 4; i++) {
            char name[HK_MODEL_TEXT];
            (void)snprintf(name, sizeof name, "k%d", i);
            wait_ms(rig, 10);
            assert_int_equal(count_flying(rig, 0), 1);
            answer(rig, name, 200);
        }
        assert_int_equal(count_flying(rig, 1), 1);
        for (int i = 0; i < 20; i++) {
            answer_all(rig, 1, 200);
            wait_ms(rig, 200);
        }
        assert_int_equal(hk_model_live(rig->model), 0);
        assert_int_equal(hk_engine_stats(rig->engine)->swept, firsts[k] == INT64_MIN);
        assert_int_equal(rig->n_sends, 11);
        rig_free(rig);
    }
}

/* ---- shards that are given to a relay at work ---- */

static void what_is_given_later_is_read_from_its_first_row(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_start(rig);
    put_many(rig, "m", 12, "a");
    rig->handle.lost = 0x1111; /* a quarter of it is another relay's */
    for (int i = 0; i < 10; i++) {
        wait_ms(rig, 500);
        answer_all(rig, 0, 200);
    }
    assert_in_range(rig->n_sends, 1, 11);
    rig->handle.lost = 0;
    wait_ms(rig, 60);
    assert_true(count_flying(rig, 0) > 0);
    assert_nothing_left(rig);
    assert_int_equal(rig->n_sends, 12);
    rig_free(rig);
}

/* Every position goes back: what is in hand, passed over, behind or waiting for its next attempt is neither claimed twice
 * (the rig watches that) nor sent twice nor lost. */
static void with_rows_in_hand_a_reset_claims_nothing_twice_and_loses_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new(3);
    struct hk_model_reply reply = {.rc = HK_OK};
    rig->dests[0].ordered = true;
    rig->dests[1].limiter.concurrency = 2;
    rig_start(rig);
    hk_model_pause(rig->model, "c", true, "operator", &reply);
    commit(rig, put(rig, "k1", "a", "k"));
    commit(rig, put(rig, "k2", "a", "k"));
    commit(rig, put(rig, "j1", "a", "j"));
    commit(rig, put(rig, "j2", "a", "j"));
    put_many(rig, "b", 5, "b");
    put_many(rig, "c", 3, "c");
    wait_ms(rig, 60);
    answer(rig, "j1", 500); /* holds its key from outbox_retry */
    size_t sends = rig->n_sends;
    for (int i = 0; i < 3; i++) {
        rig->handle.lost = HK_MODEL_ALL_SHARDS;
        wait_ms(rig, 10);
        rig->handle.lost = 0;
        wait_ms(rig, 10);
    }
    assert_int_equal(rig->n_sends, sends);
    assert_true(in_flight(rig, "k1"));
    answer(rig, "k1", 200);
    wait_ms(rig, 100);
    assert_true(in_flight(rig, "k2") && in_flight(rig, "j1"));
    assert_false(in_flight(rig, "j2"));
    hk_model_pause(rig->model, "c", false, "operator", &reply);
    assert_nothing_left(rig);
    assert_int_equal(rig->n_sends, 4 + 1 + 5 + 3);
    rig_free(rig);
}

/* A standby that lags takes over: it has not heard of what was chosen, and gives its id to another message. */
static void what_was_chosen_on_another_server_is_not_claimed(void **state)
{
    (void)state;
    for (int call = 0; call < 2; call++) { /* the first on the new connection: an exchange, or a poll */
        struct rig *rig = rig_new(2);
        rig->options.linger_ms = 1000;
        rig_start(rig);
        commit(rig, put(rig, "first", "b", ""));
        wait_ms(rig, 1100);
        hk_model_keep(rig->model);
        commit(rig, put(rig, "forgotten", "a", ""));
        wait_ms(rig, 60);
        assert_false(logged(rig, "forgotten", "claim"));
        assert_int_equal(hk_engine_in_hand(rig->engine), 2);
        hk_model_failover(rig->model, true);
        hk_model_handle_moved(&rig->handle);
        commit(rig, put(rig, "another", "b", ""));
        rig->now_ms += call ? 60 : 1000;
        wait_ms(rig, 2500);
        assert_int_equal(count_flying(rig, 0), 0);
        assert_true(in_flight(rig, "another"));
        assert_nothing_left(rig);
        assert_int_equal(rig->n_sends, 2);
        rig_free(rig);
    }
}

static void keys_that_are_held_in_what_is_given_are_known_before_it_is_read(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "head", "a", "k"));
    run(rig);
    answer(rig, "head", 500);
    hk_engine_free(rig->engine); /* the next relay begins without it … */
    rig->now_ms += LEASE_MS + 1;
    rig_start(rig);
    rig->handle.lost = HK_MODEL_ALL_SHARDS;
    commit(rig, put(rig, "next", "a", "k"));
    wait_ms(rig, 1000);
    assert_int_equal(count_flying(rig, 0), 0);
    rig->handle.lost = 0; /* … and is given it */
    wait_ms(rig, 60);
    assert_true(in_flight(rig, "head"));
    assert_false(in_flight(rig, "next"));
    assert_nothing_left(rig);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_row_is_taken_at_the_next_poll),
        cmocka_unit_test(late_rows_come_in_batches),
        cmocka_unit_test(late_rows_are_not_lost_on_a_full_engine),
        cmocka_unit_test(late_rows_of_a_paused_destination_go_when_it_is_resumed),
        cmocka_unit_test(a_late_row_of_a_full_destination_is_sent_once_and_its_neighbours_too),
        cmocka_unit_test(order_of_a_key_holds_for_late_rows),
        cmocka_unit_test(a_late_row_behind_its_own_key_is_never_lost),
        cmocka_unit_test(a_late_scan_that_the_store_refused_is_made_again),
        cmocka_unit_test(ids_below_one_are_ids_like_any_other),
        cmocka_unit_test(what_is_given_later_is_read_from_its_first_row),
        cmocka_unit_test(with_rows_in_hand_a_reset_claims_nothing_twice_and_loses_nothing),
        cmocka_unit_test(what_was_chosen_on_another_server_is_not_claimed),
        cmocka_unit_test(keys_that_are_held_in_what_is_given_are_known_before_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
