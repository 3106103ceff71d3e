/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks that have no room: what they refuse is given back uncharged, their destination waits until there is room, and the engine
 * learns how much they take. */
#include "engine_rig.h"

enum {
    WINDOW = 3, /* what the sink takes at once */
    CAP = 8
};

static struct rig *room_rig(size_t n_dests)
{
    struct rig *rig = rig_new(n_dests);
    rig->options.concurrency = 64;
    rig->options.linger_ms = 5;
    rig->dests[0].limiter.concurrency = CAP;
    return rig;
}

static void refuse(struct rig *rig, struct flying *send)
{
    send->over = true;
    hk_engine_on_busy(rig->engine, rig->now_ms, send->slot);
}

/* The sink of "a" has these on their way already and takes `window`: the rest it refuses, in the order of sending. */
static size_t refuse_beyond(struct rig *rig, size_t window)
{
    size_t taken = 0, refused = 0;
    for (size_t i = 0; i < rig->n_sends; i++) {
        struct flying *send = &rig->sends[i];
        if (send->over || send->dest != 0)
            continue;
        if (taken < window) {
            taken++;
            continue;
        }
        refuse(rig, send);
        refused++;
    }
    run(rig);
    return refused;
}

/* Those that are on their way now, and not what follows them. */
static void answer_these(struct rig *rig)
{
    for (size_t i = 0, n = rig->n_sends; i < n; i++)
        if (!rig->sends[i].over && rig->sends[i].dest == 0)
            answer(rig, rig->sends[i].m, 200);
}

static const struct hk_engine_stats *stats(const struct rig *rig)
{
    return hk_engine_stats(rig->engine);
}

static void what_is_refused_is_given_back_and_waits(void **state)
{
    (void)state;
    struct rig *rig = room_rig(2);
    rig_start(rig);
    put_many(rig, "m", 20, "a");
    run(rig);
    assert_int_equal(count_flying(rig, 0), CAP);
    assert_int_equal(refuse_beyond(rig, 0), CAP);
    wait_ms(rig, 10);
    uint64_t claimed = stats(rig)->claimed;
    assert_int_equal(stats(rig)->released, claimed);
    assert_int_equal(stats(rig)->no_room, CAP);
    assert_int_equal(stats(rig)->retried + stats(rig)->dead, 0);
    struct hk_dest_view view;
    assert_true(hk_engine_view_dest(rig->engine, 0, rig->now_ms, &view) && view.full && view.in_flight == 0);
    size_t sends = rig->n_sends;
    for (int i = 0; i < 50; i++) /* nothing is claimed meanwhile, and others go on */
        wait_ms(rig, 100);
    assert_int_equal(stats(rig)->claimed, claimed);
    assert_int_equal(rig->n_sends, sends);
    commit(rig, put(rig, "n", "b", ""));
    wait_ms(rig, 100);
    assert_true(in_flight(rig, "n"));
    answer(rig, "n", 200);
    hk_engine_on_room(rig->engine, rig->now_ms, 0);
    for (int i = 0; i < 100 && hk_model_live(rig->model) > 0; i++) {
        answer_all(rig, 0, 200);
        wait_ms(rig, 20);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_int_equal(stats(rig)->sent, 21);
    rig_free(rig);
}

/* Once it was refused something it is given what it takes, so that few messages are claimed in vain. */
static void the_engine_learns_what_a_sink_takes(void **state)
{
    (void)state;
    struct rig *rig = room_rig(1);
    rig_start(rig);
    put_many(rig, "m", 400, "a");
    run(rig);
    assert_int_equal(refuse_beyond(rig, WINDOW), CAP - WINDOW);
    size_t refused = 0;
    for (int i = 0; i < 2000 && hk_model_live(rig->model) > 0; i++) {
        answer_these(rig);
        hk_engine_on_room(rig->engine, rig->now_ms, 0);
        wait_ms(rig, 20);
        refused += refuse_beyond(rig, WINDOW);
        assert_true(count_flying(rig, 0) <= WINDOW);
    }
    assert_int_equal(hk_model_live(rig->model), 0);
    assert_in_range(refused, 1, 400 / 16); /* one more is tried now and then */
    rig_free(rig);
}

/* A broker that was blocked takes as much as before when that is over. */
static void a_refusal_beside_nothing_sets_no_bound(void **state)
{
    (void)state;
    struct rig *rig = room_rig(1);
    rig_start(rig);
    put_many(rig, "m", 300, "a");
    run(rig);
    assert_int_equal(refuse_beyond(rig, 0), CAP);
    hk_engine_on_room(rig->engine, rig->now_ms, 0);
    wait_ms(rig, 6);
    assert_int_equal(count_flying(rig, 0), 1);
    size_t most = 0;
    for (int i = 0; i < 40; i++) {
        most = count_flying(rig, 0) > most ? count_flying(rig, 0) : most;
        if (i % 2)
            answer_these(rig);
        wait_ms(rig, 20);
    }
    assert_int_equal(most, CAP);
    rig_free(rig);
}

static void order_is_kept_by_what_is_given_back(void **state)
{
    (void)state;
    struct rig *rig = room_rig(1);
    rig->dests[0].ordered = true;
    rig_start(rig);
    commit(rig, put(rig, "m1", "a", "k"));
    commit(rig, put(rig, "m2", "a", "k"));
    commit(rig, put(rig, "m3", "a", "k"));
    run(rig);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"m1", "m2", "m3"};
        assert_true(in_flight(rig, names[i]));
        assert_int_equal(count_flying(rig, 0), 1);
        refuse(rig, found(rig, names[i]));
        wait_ms(rig, 50);
        assert_int_equal(count_flying(rig, 0), 0);
        hk_engine_on_room(rig->engine, rig->now_ms, 0);
        wait_ms(rig, 50);
        assert_true(in_flight(rig, names[i]));
        answer(rig, names[i], 200);
        wait_ms(rig, 50);
    }
    assert_int_equal(stats(rig)->sent, 3);
    rig_free(rig);
}

static void a_drain_ends_beside_a_full_sink(void **state)
{
    (void)state;
    struct rig *rig = room_rig(1);
    rig_start(rig);
    put_many(rig, "m", 20, "a");
    run(rig);
    (void)refuse_beyond(rig, 2);
    hk_engine_drain(rig->engine, rig->now_ms, rig->now_ms + 1000);
    answer_these(rig);
    for (int i = 0; i < 20; i++)
        wait_ms(rig, 50);
    assert_int_equal(rig->last.kind, HK_ACT_STOPPED);
    assert_int_equal(stats(rig)->sent, 2);
    rig_free(rig);
}

static void room_that_nobody_waits_for_changes_nothing(void **state)
{
    (void)state;
    struct rig *rig = room_rig(1);
    rig_start(rig);
    hk_engine_on_room(rig->engine, rig->now_ms, 0);
    hk_engine_on_room(rig->engine, rig->now_ms, 77);
    put_many(rig, "m", 3, "a");
    run(rig);
    assert_int_equal(count_flying(rig, 0), 3);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused_is_given_back_and_waits),
        cmocka_unit_test(the_engine_learns_what_a_sink_takes),
        cmocka_unit_test(a_refusal_beside_nothing_sets_no_bound),
        cmocka_unit_test(order_is_kept_by_what_is_given_back),
        cmocka_unit_test(a_drain_ends_beside_a_full_sink),
        cmocka_unit_test(room_that_nobody_waits_for_changes_nothing),
    };
    return cmocka_run_group_tests_name("engine_room", tests, NULL, NULL);
}
