/* SPDX-License-Identifier: Apache-2.0 */
/* The concurrency that relays share: an engine sends only with a seat, gives back what it does not use and what others wait for, and
 * does not believe that something was given back before the store says so. The other relay is played by the test. */
#include "engine_rig.h"

struct other {
    struct rig *rig;
    int64_t lane;
    struct hk_model_handle handle;
};

static struct rig *seats_rig(uint32_t concurrency)
{
    struct rig *rig = rig_new(2);
    rig->options.shared = true;
    rig->dests[0].shared = true;
    rig->dests[0].limiter.concurrency = concurrency;
    return rig;
}

static struct other other_begins(struct rig *rig)
{
    struct other o = {.rig = rig};
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_lanes_acquire(rig->model, &o.handle, "other", 1000000, &reply);
    o.lane = reply.lane;
    hk_model_reply_free(&reply);
    return o;
}

/* As often as it takes, while somebody has the book. */
static struct hk_seats_given other_asks(struct other *o, uint32_t most, uint32_t hold, uint32_t want)
{
    const struct hk_seat_ask ask = {.destination = "a", .most = most, .hold = hold, .want = want};
    struct hk_exchange x = {.lane = o->lane, .lease_ms = 1000000, .seats = &ask, .n_seats = 1};
    struct hk_seats_given given = {.written = false};
    while (!given.written) {
        struct hk_model_reply reply = {.rc = HK_OK};
        hk_model_exchange(o->rig->model, &o->handle, &x, &reply);
        assert_int_equal(reply.rc, HK_OK);
        given = reply.exchanged.seats[0];
        hk_model_reply_free(&reply);
    }
    return given;
}

/* What is in flight now, and not what follows. */
static void answer_these(struct rig *rig)
{
    size_t n = rig->n_sends;
    for (size_t i = 0; i < n; i++)
        if (!rig->sends[i].over && rig->sends[i].dest == 0)
            end_send(rig, &rig->sends[i], (struct hk_facts){.status = 200});
}

static void nothing_is_sent_without_a_seat(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(3);
    rig_start(rig);
    run(rig);
    struct other o = other_begins(rig);
    assert_int_equal(other_asks(&o, 3, 0, 3).held, 3);
    put_many(rig, "m", 6, "a");
    put_many(rig, "n", 4, "b");
    wait_ms(rig, 1000);
    assert_int_equal(count_flying(rig, 0), 0);
    assert_int_equal(count_flying(rig, 1), 4); /* it shares nothing */
    assert_int_equal(other_asks(&o, 3, 1, 1).held, 1);
    wait_ms(rig, 1000);
    assert_int_equal(count_flying(rig, 0), 2);
    assert_int_equal(other_asks(&o, 3, 0, 0).held, 0);
    wait_ms(rig, 1000);
    assert_int_equal(count_flying(rig, 0), 3);
    rig_free(rig);
}

static void seats_that_nobody_uses_are_given_back(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(3);
    rig_start(rig);
    put_many(rig, "m", 3, "a");
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 3);
    struct other o = other_begins(rig);
    assert_int_equal(other_asks(&o, 3, 0, 0).held, 0);
    answer(rig, "m0", 200);
    wait_ms(rig, 600); /* two are on their way yet */
    assert_int_equal(other_asks(&o, 3, 0, 3).held, 1);
    answer_all(rig, 0, 200);
    wait_ms(rig, 600);
    assert_int_equal(other_asks(&o, 3, 1, 3).held, 3);
    rig_free(rig);
}

static void who_has_all_gives_others_their_share(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(4);
    rig_start(rig);
    put_many(rig, "m", 40, "a");
    wait_ms(rig, 300);
    assert_int_equal(count_flying(rig, 0), 4);
    struct other o = other_begins(rig);
    struct hk_seats_given given = other_asks(&o, 4, 0, 4);
    assert_int_equal(given.held, 0);
    wait_ms(rig, 400); /* until it has heard */
    answer_these(rig);
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 2);
    given = other_asks(&o, 4, 0, 4);
    assert_int_equal(given.held, 2);
    answer_these(rig);
    wait_ms(rig, 300);
    assert_int_equal(count_flying(rig, 0), 2); /* as long as the other goes on asking */
    wait_ms(rig, 3000);
    given = other_asks(&o, 4, 0, 0);
    for (int i = 0; i < 5; i++) {
        answer_these(rig);
        wait_ms(rig, 300);
    }
    assert_int_equal(count_flying(rig, 0), 4);
    rig_free(rig);
}

static void the_only_seat_goes_round(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(1);
    rig_start(rig);
    put_many(rig, "m", 20, "a");
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 1);
    struct other o = other_begins(rig);
    assert_int_equal(other_asks(&o, 1, 0, 1).held, 0);
    wait_ms(rig, 300);
    answer_these(rig);
    assert_int_equal(count_flying(rig, 0), 0);
    wait_ms(rig, 40);
    assert_int_equal(other_asks(&o, 1, 0, 1).held, 1);
    wait_ms(rig, 300);
    assert_int_equal(count_flying(rig, 0), 0);
    struct hk_seats_given given = other_asks(&o, 1, 1, 1);
    assert_int_equal(given.limit, 0); /* it is to give it back: the engine waits */
    (void)other_asks(&o, 1, 0, 1);
    wait_ms(rig, 300);
    assert_int_equal(count_flying(rig, 0), 1);
    rig_free(rig);
}

/* The store cannot be reached while they are given back. */
static void what_was_not_confirmed_is_given_back_again(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(2);
    rig_start(rig);
    put_many(rig, "m", 2, "a");
    wait_ms(rig, 100);
    answer_all(rig, 0, 200);
    run(rig);
    rig->refuse = HK_UNAVAILABLE;
    wait_ms(rig, 500);
    rig->refuse = HK_OK;
    struct other o = other_begins(rig);
    assert_int_equal(other_asks(&o, 2, 0, 2).held, 0); /* the book has them yet */
    wait_ms(rig, 6000);
    assert_int_equal(other_asks(&o, 2, 0, 2).held, 2);
    rig_free(rig);
}

static void a_lane_that_is_lost_has_no_seats(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(2);
    rig_start(rig);
    put_many(rig, "m", 6, "a");
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 2);
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_release(rig->model, rig->lane, &reply);
    hk_model_reply_free(&reply);
    struct other o = other_begins(rig);
    assert_int_equal(other_asks(&o, 2, 0, 2).held, 2);
    wait_ms(rig, LEASE_MS); /* its lane is gone; another one lives, so that it gets none */
    for (size_t i = 0; i < rig->n_sends; i++)
        if (!rig->sends[i].over)
            end_send(rig, &rig->sends[i], (struct hk_facts){.fault = HK_FAULT_LOCAL, .possibly_delivered = true});
    reply = (struct hk_model_reply){.rc = HK_OK};
    hk_model_release(rig->model, o.lane, &reply);
    hk_model_reply_free(&reply);
    wait_ms(rig, 3000);
    assert_int_equal(count_flying(rig, 0), 2);
    rig_free(rig);
}

static void a_destination_that_goes_leaves_no_seats_behind(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(2);
    rig_start(rig);
    put_many(rig, "m", 2, "a");
    wait_ms(rig, 60);
    answer_all(rig, 0, 200);
    assert_true(hk_engine_remove_dest(rig->engine, rig->now_ms, 0));
    wait_ms(rig, 60);
    assert_int_equal(hk_engine_find_dest(rig->engine, "a"), SIZE_MAX);
    struct other o = other_begins(rig);
    assert_int_equal(other_asks(&o, 2, 0, 2).held, 2);
    rig_free(rig);
}

static void without_the_option_nobody_is_asked(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(3);
    rig->dests[0].shared = false;
    rig_start(rig);
    run(rig);
    struct other o = other_begins(rig);
    assert_int_equal(other_asks(&o, 3, 0, 3).held, 3);
    put_many(rig, "m", 6, "a");
    wait_ms(rig, 100);
    assert_int_equal(count_flying(rig, 0), 3);
    rig_free(rig);
}

static void on_a_store_of_its_own_it_has_all_of_them(void **state)
{
    (void)state;
    struct rig *rig = seats_rig(3);
    rig->options.shared = false;
    rig_start(rig);
    put_many(rig, "m", 6, "a");
    run(rig);
    assert_int_equal(count_flying(rig, 0), 3);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_sent_without_a_seat),
        cmocka_unit_test(seats_that_nobody_uses_are_given_back),
        cmocka_unit_test(who_has_all_gives_others_their_share),
        cmocka_unit_test(the_only_seat_goes_round),
        cmocka_unit_test(what_was_not_confirmed_is_given_back_again),
        cmocka_unit_test(a_lane_that_is_lost_has_no_seats),
        cmocka_unit_test(a_destination_that_goes_leaves_no_seats_behind),
        cmocka_unit_test(without_the_option_nobody_is_asked),
        cmocka_unit_test(on_a_store_of_its_own_it_has_all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
