/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that come, change and go while the engine runs. The simulator does it at random; here is what it does not: order that
 * changes, what routes name, thousands that rest, and memory that runs out. */
#include <stdlib.h>
#include <string.h>

#include "core/limiter.h"
#include "engine_puppet.h"
#include "failing.h"

static struct hk_engine_dest dest_named(const struct puppet *p, const char *name)
{
    return (struct hk_engine_dest){.name = name, .policy = p->policy, .ordered = true};
}

static size_t put(struct puppet *p, const struct hk_engine_dest *conf)
{
    size_t dest = SIZE_MAX;
    struct hk_err err;
    assert_int_equal(hk_engine_put_dest(p->engine, p->now_ms, conf, &dest, &err), HK_OK);
    assert_int_equal(dest, hk_engine_find_dest(p->engine, conf->name));
    return dest;
}

static void settle_all(struct puppet *p)
{
    until(p, HK_ACT_EXCHANGE);
    puppet_serve(p);
    until(p, HK_ACT_WAIT);
}

static void a_made_one_is_sent_to_when_a_poll_has_told_of_it(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    until(p, HK_ACT_WAIT);
    struct hk_engine_dest made = dest_named(p, "new");
    size_t dest = put(p, &made);
    until(p, HK_ACT_POLL);
    assert_true(p->a.poll_all);
    struct hk_poll_dest told = {.name = hk_str_of("new"), .retry_due_ms = INT64_MAX, .paused = true};
    p->poll.dests = &told;
    p->poll.n_dests = 1;
    puppet_poll(p);
    struct hk_head rows[] = {row(1, "new", "")};
    give_fresh(p, rows, 1);
    assert_int_equal(p->n_sends, 0); /* it was paused before we knew it */
    p->poll.n_dests = 0;
    until_scan(p, HK_ENGINE_SCAN_BEHIND);
    assert_int_equal(p->a.purpose.dest, dest);
    puppet_heads(p, rows, 1, false);
    until(p, HK_ACT_WAIT);
    assert_int_equal(p->n_sends, 1);
    puppet_free(p);
}

static void order_that_changes_waits_for_what_is_in_hand(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    p->dests[0].ordered = false;
    puppet_start(p);
    struct hk_head rows[] = {row(1, "a", "k"), row(2, "a", "k")};
    give_fresh(p, rows, 1);
    assert_int_equal(p->n_sends, 1);
    struct hk_engine_dest ordered = dest_named(p, "a");
    size_t dest = put(p, &ordered);
    assert_false(hk_engine_dest_settled(p->engine, dest));
    p->poll.last_id = 2;
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, &rows[1], 1, false);
    until(p, HK_ACT_WAIT);
    assert_int_equal(p->n_sends, 1); /* the second would go beside the first */
    puppet_sent(p, p->slots[0], 200);
    until_scan(p, HK_ENGINE_SCAN_BEHIND);
    assert_true(hk_engine_dest_settled(p->engine, dest));
    puppet_heads(p, &rows[1], 1, false);
    until(p, HK_ACT_WAIT);
    assert_int_equal(p->n_sends, 2);
    puppet_free(p);
}

static void a_removed_one_ends_what_is_on_its_way_and_its_rows_die(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(2);
    puppet_start(p);
    struct hk_head rows[] = {row(1, "a", "k"), row(2, "a", "k"), row(3, "b", "k")};
    give_fresh(p, rows, 3);
    assert_int_equal(p->n_sends, 2);
    size_t a = hk_engine_find_dest(p->engine, "a");
    assert_true(hk_engine_remove_dest(p->engine, p->now_ms, a));
    assert_false(hk_engine_dest_settled(p->engine, a));
    puppet_sent(p, p->slots[0], 200);
    settle_all(p);
    assert_true(hk_engine_dest_settled(p->engine, a));
    assert_true(hk_engine_find_dest(p->engine, "a") == SIZE_MAX);
    until_scan(p, HK_ENGINE_SCAN_FRESH); /* from before the row that was passed over */
    assert_int_equal(p->a.scan.after_id, 1);
    puppet_heads(p, &rows[1], 2, false);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.n_wants, 1);
    assert_false(p->a.exchange.wants[0].payload);
    puppet_serve(p);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.n_settles, 1);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_DEAD);
    puppet_serve(p);
    struct hk_engine_dest other = dest_named(p, "z");
    assert_int_equal(put(p, &other), a); /* its place is free */
    puppet_free(p);
}

/* The exchange is over, and nothing was sent yet. The simulator's relays send at once, and so never come here. */
static void one_that_goes_is_not_sent_what_is_ready_for_it(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(2);
    puppet_start(p);
    struct hk_head rows[] = {row(1, "a", "k"), row(2, "b", "k")};
    p->poll.last_id = 2;
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, rows, 2, false);
    until(p, HK_ACT_EXCHANGE);
    puppet_serve(p);
    assert_true(hk_engine_remove_dest(p->engine, p->now_ms, hk_engine_find_dest(p->engine, "a")));
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->n_sends, 1); /* to the other one */
    assert_int_equal(p->a.exchange.n_settles, 1);
    assert_int_equal(p->a.exchange.settles[0].id, 1);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_RELEASE);
    puppet_free(p);
}

/* What it had chosen is to be read again, and the answer to a scan from further on must not make that forgotten. */
static void one_that_goes_while_it_is_scanned_for_leaves_no_row_behind(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(2);
    p->options.linger_ms = 1000; /* the next page is read before what was chosen is claimed */
    puppet_start(p);
    until(p, HK_ACT_WAIT);
    struct hk_poll_dest told = {.name = hk_str_of("a"), .retry_due_ms = INT64_MAX, .paused = true};
    p->poll.dests = &told;
    p->poll.n_dests = 1;
    struct hk_head rows[] = {row(1, "a", "k"), row(2, "a", "l")};
    give_fresh(p, rows, 2);
    p->poll.n_dests = 0;
    until_scan(p, HK_ENGINE_SCAN_BEHIND);
    puppet_heads(p, rows, 1, true);
    hk_engine_next(p->engine, p->now_ms, &p->a);
    assert_int_equal(p->a.kind, HK_ACT_SCAN);
    assert_int_equal(p->a.purpose.kind, HK_ENGINE_SCAN_BEHIND);
    assert_int_equal(p->a.scan.after_id, 1);
    assert_true(hk_engine_remove_dest(p->engine, p->now_ms, hk_engine_find_dest(p->engine, "a")));
    puppet_heads(p, NULL, 0, false);
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    assert_int_equal(p->a.scan.after_id, 0);
    puppet_free(p);
}

static void an_unknown_one_is_asked_for_before_its_messages_die(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    hk_engine_know_dests(p->engine, 7); /* the store's answers say 0 */
    struct hk_head rows[] = {row(1, "new", "")};
    p->poll.last_id = 1;
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, rows, 1, false);
    until(p, HK_ACT_EXCHANGE);
    puppet_serve(p);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_RELEASE);
    puppet_serve(p);
    hk_engine_know_dests(p->engine, 0);
    until_scan(p, HK_ENGINE_SCAN_SWEEP);
    puppet_heads(p, rows, 1, false);
    until(p, HK_ACT_EXCHANGE);
    puppet_serve(p);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_DEAD);
    puppet_free(p);
}

/* A person forced its message before anybody knew it, and it is paused from the first moment on. */
static void a_forced_one_is_looked_for_when_its_destination_is_made_meanwhile(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    struct hk_poll_dest told = {.name = hk_str_of("new"), .retry_due_ms = 0, .paused = true};
    p->poll.dests = &told;
    p->poll.n_dests = 1;
    struct hk_head waiting = row(1, "new", "");
    waiting.source = HK_FROM_RETRY;
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    puppet_heads(p, &waiting, 1, false);
    until(p, HK_ACT_EXCHANGE);
    struct hk_engine_dest made = dest_named(p, "new");
    (void)put(p, &made);
    puppet_serve(p);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_RELEASE);
    puppet_serve(p);
    until(p, HK_ACT_SCAN);
    assert_int_equal(p->a.purpose.kind, HK_ENGINE_SCAN_FORCED);
    puppet_free(p);
}

static void what_a_route_names_stays(void **state)
{
    (void)state;
    static const size_t dests[] = {0};
    static const struct hk_engine_route route = {.event_type = "*", .dests = dests, .n_dests = 1};
    struct puppet *p = puppet_new(2);
    p->options.routes = &route;
    p->options.n_routes = 1;
    puppet_start(p);
    struct hk_engine_dest a = dest_named(p, "a");
    struct hk_err err;
    size_t dest;
    assert_int_equal(hk_engine_put_dest(p->engine, p->now_ms, &a, &dest, &err), HK_INVALID);
    assert_false(hk_engine_remove_dest(p->engine, p->now_ms, 0));
    assert_false(hk_engine_remove_dest(p->engine, p->now_ms, 99));
    assert_true(hk_engine_remove_dest(p->engine, p->now_ms, 1));
    puppet_free(p);
}

static void those_that_rest_are_not_looked_at(void **state)
{
    (void)state;

    enum {
        MANY = 10000
    };
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    until(p, HK_ACT_WAIT);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "d%05d", (i * 7919) % MANY);
        struct hk_engine_dest conf = dest_named(p, name);
        (void)put(p, &conf);
    }
    until(p, HK_ACT_POLL);
    puppet_poll(p);
    assert_int_equal(p->engine->n_known, MANY + 1);
    assert_int_equal(p->engine->n_awake, 0);
    struct hk_head rows[] = {row(1, "d00042", ""), row(2, "d09999", "")};
    give_fresh(p, rows, 2);
    assert_int_equal(p->n_sends, 2);
    assert_int_equal(p->engine->n_awake, 2);
    size_t guards = 0;
    for (size_t i = 0; i < p->engine->n_places; i++)
        guards += p->engine->dests[i].limiter != NULL;
    assert_int_equal(guards, 2);
    puppet_free(p);
}

static void a_changed_limit_keeps_what_the_bucket_holds(void **state)
{
    (void)state;
    struct hk_limiter_options o;
    struct hk_limiter *l;
    hk_limiter_options_init(&o);
    o.rate_per_s = 1;
    o.burst = 10;
    assert_int_equal(hk_limiter_new(&o, 0, &l, NULL), HK_OK);
    for (int i = 0; i < 10; i++)
        assert_true(hk_limiter_acquire(l, 0));
    hk_limiter_hold(l, 700);
    o.rate_per_s = 10;
    hk_limiter_change(l, &o, 0); /* empty before, empty now, but it fills sooner */
    assert_int_equal(hk_limiter_in_flight(l), 10);
    assert_false(hk_limiter_acquire(l, 600)); /* held */
    for (int i = 0; i < 7; i++)
        assert_true(hk_limiter_acquire(l, 700));
    assert_false(hk_limiter_acquire(l, 700));
    o.burst = 2;
    hk_limiter_change(l, &o, 100000); /* full, and more than fits */
    assert_true(hk_limiter_acquire(l, 100000) && hk_limiter_acquire(l, 100000));
    assert_false(hk_limiter_acquire(l, 100000));
    hk_limiter_free(l);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (long k = 0;; k++) {
        struct puppet *p = puppet_new(1);
        struct hk_breaker_options breaker;
        struct hk_err err;
        size_t dest = SIZE_MAX;
        puppet_start(p);
        hk_breaker_options_init(&breaker);
        struct hk_engine_dest conf = dest_named(p, "a"), made = dest_named(p, "new");
        conf.breaker = made.breaker = &breaker;
        conf.ordered = k % 2;
        struct failing f = {.fail_at = (size_t)k / 2};
        struct hk_allocator allocator = {failing_resize, failing_release, &f};
        hk_allocator_set(&allocator);
        enum hk_code rc = hk_engine_put_dest(p->engine, p->now_ms, &conf, &dest, &err);
        if (rc == HK_OK)
            rc = hk_engine_put_dest(p->engine, p->now_ms, &made, &dest, &err);
        hk_allocator_set(NULL);
        assert_int_equal(rc, f.failed ? HK_NOMEM : HK_OK);
        until(p, HK_ACT_WAIT);
        puppet_free(p);
        if (!f.failed && k % 2)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_made_one_is_sent_to_when_a_poll_has_told_of_it),
        cmocka_unit_test(order_that_changes_waits_for_what_is_in_hand),
        cmocka_unit_test(a_removed_one_ends_what_is_on_its_way_and_its_rows_die),
        cmocka_unit_test(one_that_goes_is_not_sent_what_is_ready_for_it),
        cmocka_unit_test(one_that_goes_while_it_is_scanned_for_leaves_no_row_behind),
        cmocka_unit_test(an_unknown_one_is_asked_for_before_its_messages_die),
        cmocka_unit_test(a_forced_one_is_looked_for_when_its_destination_is_made_meanwhile),
        cmocka_unit_test(what_a_route_names_stays),
        cmocka_unit_test(those_that_rest_are_not_looked_at),
        cmocka_unit_test(a_changed_limit_keeps_what_the_bucket_holds),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
