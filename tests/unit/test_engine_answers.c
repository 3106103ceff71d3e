/* SPDX-License-Identifier: Apache-2.0 */
/* The engine and answers that a store seldom gives: rows that changed meanwhile, empty pages, clocks that are behind, errors at
 * the wrong moment, and no memory left for one key more. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hikyaku/alloc.h>

#include "engine_puppet.h"

/* ---- memory that is over ---- */

static size_t too_much = SIZE_MAX; /* so many bytes are not to be had */

static void *resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return bytes >= too_much ? NULL : realloc(ptr, bytes);
}

static void release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static const struct hk_allocator poor = {resize, release, NULL};

enum {
    TABLE_FULL = 48, /* keys, the next of which makes the table grow: three quarters of its first 64 places */
    TABLE_BYTES = 1024
};

static struct hk_held_key held[TABLE_FULL];
static char names[TABLE_FULL][32];

static struct puppet *crowded(size_t n_dests, size_t n_keys)
{
    struct puppet *p = puppet_new(n_dests);
    for (size_t i = 0; i < n_keys; i++) {
        (void)snprintf(names[i], sizeof names[i], "held%zu", i);
        held[i] = (struct hk_held_key){.destination = hk_str_of("a"), .key = hk_str_of(names[i])};
    }
    p->held = held;
    p->n_held = n_keys;
    hk_allocator_set(&poor);
    return p;
}

static void end(struct puppet *p)
{
    too_much = SIZE_MAX;
    puppet_free(p);
    hk_allocator_set(NULL);
}

static const size_t all[] = {0, 1, 2};

/* Messages that name nobody go to the first `n` destinations. */
static void fan_out_to(struct puppet *p, size_t n)
{
    static struct hk_engine_route route;
    route = (struct hk_engine_route){"*", all, n};
    p->options.routes = &route;
    p->options.n_routes = 1;
}

static const struct hk_settle *fan_out_of(const struct hk_exchange *x)
{
    for (size_t i = 0; i < x->n_settles; i++)
        if (x->settles[i].kind == HK_SETTLE_FAN_OUT)
            return &x->settles[i];
    return NULL;
}

static void assert_fans_out(struct puppet *p, int64_t id, size_t n)
{
    until(p, HK_ACT_EXCHANGE);
    while (!fan_out_of(&p->a.exchange)) {
        puppet_exchange(p, HK_OK);
        until(p, HK_ACT_EXCHANGE);
    }
    assert_int_equal(fan_out_of(&p->a.exchange)->id, id);
    assert_int_equal(fan_out_of(&p->a.exchange)->n_fan_out, n);
    puppet_exchange(p, HK_OK);
}

static void without_memory_for_its_key_a_message_waits_and_goes_later(void **state)
{
    (void)state;
    struct puppet *p = crowded(1, TABLE_FULL);
    struct hk_head fresh = row(1, "a", "new");
    p->poll.last_id = 1;
    puppet_start(p);
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    too_much = TABLE_BYTES;
    puppet_heads(p, &fresh, 1, false);
    assert_int_equal(hk_engine_in_hand(p->engine), 0);
    assert_int_equal(p->engine->load.in_flight, 0);
    too_much = SIZE_MAX;
    until_scan(p, HK_ENGINE_SCAN_FRESH); /* it was not passed over */
    puppet_heads(p, &fresh, 1, false);
    until(p, HK_ACT_SEND);
    assert_int_equal(p->a.message->id, 1);
    end(p);
}

/* The first key gets the last place, the second none; the third is there, free, and was not taken yet. */
static void without_memory_for_one_of_its_keys_a_fan_out_takes_none(void **state)
{
    (void)state;
    struct puppet *p = crowded(3, TABLE_FULL - 2);
    fan_out_to(p, 3);
    puppet_start(p);
    struct hk_head rows[] = {row(10, "c", "k"), row(11, "c", "k")};
    give_fresh(p, rows, 2);
    assert_true(hk_dest_make_guards(&p->engine->dests[2], p->now_ms));
    hk_limiter_hold(p->engine->dests[2].limiter, p->now_ms + 10000);
    puppet_sent(p, p->slots[0], 200);
    until(p, HK_ACT_WAIT);
    assert_int_equal(hk_order_count(p->engine->order), TABLE_FULL - 1);
    struct hk_head late[] = {row(5, "", "k"), row(11, "c", "k")};
    p->poll.late = true;
    until_scan(p, HK_ENGINE_SCAN_LATE);
    too_much = TABLE_BYTES;
    puppet_heads(p, late, 1, false);
    assert_int_equal(hk_engine_in_hand(p->engine), 0);
    assert_int_equal(hk_order_count(p->engine->order), TABLE_FULL - 1);
    too_much = SIZE_MAX;
    until_scan(p, HK_ENGINE_SCAN_FRESH); /* the position went back to it */
    puppet_heads(p, late, 2, false);
    assert_fans_out(p, 5, 3);
    end(p);
}

/* A key's scan comes upon a fan-out whose other destination has yet to read so far, and has no entry of the key. */
static struct puppet *fan_out_in_the_way(void)
{
    struct puppet *p = crowded(2, TABLE_FULL - 1);
    fan_out_to(p, 2);
    puppet_start(p);
    struct hk_head first[] = {row(1, "a", "k"), row(3, "a", "k")};
    give_fresh(p, first, 2);
    puppet_sent(p, p->slots[0], 200);
    struct hk_head second[] = {row(3, "a", "k"), row(4, "", "k")};
    until_scan(p, HK_ENGINE_SCAN_KEY);
    puppet_heads(p, second, 2, false);
    until(p, HK_ACT_WAIT);
    assert_int_equal(p->n_sends, 2);
    puppet_sent(p, p->slots[1], 200);
    until_scan(p, HK_ENGINE_SCAN_KEY);
    assert_int_equal(hk_order_count(p->engine->order), TABLE_FULL);
    return p;
}

static void a_table_of_keys_may_grow_under_a_keys_scan(void **state)
{
    (void)state;
    struct puppet *p = fan_out_in_the_way();
    struct hk_head fan = row(4, "", "k");
    puppet_heads(p, &fan, 1, false);
    assert_int_equal(hk_engine_in_hand(p->engine), 0);
    assert_int_equal(hk_order_count(p->engine->order), TABLE_FULL + 1);
    p->poll.last_id = 4;
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, &fan, 1, false);
    assert_fans_out(p, 4, 2);
    end(p);
}

static void what_there_is_no_memory_to_pass_over_is_left_to_the_sweep(void **state)
{
    (void)state;
    struct puppet *p = fan_out_in_the_way();
    struct hk_head fan = row(4, "", "k");
    too_much = TABLE_BYTES;
    puppet_heads(p, &fan, 1, false);
    too_much = SIZE_MAX;
    assert_int_equal(p->engine->reading.given_back, 1);
    p->poll.last_id = 4;
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, &fan, 1, false);
    assert_fans_out(p, 4, 2);
    end(p);
}

static void a_row_whose_key_was_changed_is_retried_though_nothing_can_hold_its_key(void **state)
{
    (void)state;
    struct puppet *p = crowded(1, TABLE_FULL - 1);
    struct hk_head fresh = row(1, "a", "k");
    p->poll.last_id = 1;
    puppet_start(p);
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, &fresh, 1, false);
    p->rows[0].key = hk_str_of("changed");
    until(p, HK_ACT_WAIT);
    too_much = TABLE_BYTES;
    puppet_sent(p, p->slots[0], 500);
    until(p, HK_ACT_WAIT);
    too_much = SIZE_MAX;
    assert_int_equal(hk_engine_stats(p->engine)->retried, 1);
    assert_null(hk_order_find(p->engine->order, hk_order_hash(p->engine->order, 0, hk_str_of("changed"))));
    assert_null(hk_order_find(p->engine->order, hk_order_hash(p->engine->order, 0, hk_str_of("k"))));
    end(p);
}

static void what_is_given_back_without_memory_for_its_key_is_read_by_its_destination(void **state)
{
    (void)state;
    struct puppet *p = crowded(1, 0);
    struct hk_head fresh = row(1, "a", "k");
    p->poll.last_id = 1;
    puppet_start(p);
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, &fresh, 1, false);
    until(p, HK_ACT_EXCHANGE);
    puppet_exchange(p, HK_OK);
    p->now_ms += PUPPET_LEASE_MS - 100; /* near the end of the lease: nothing is begun */
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_RELEASE);
    too_much = 0;
    puppet_exchange(p, HK_OK);
    too_much = SIZE_MAX;
    until_scan(p, HK_ENGINE_SCAN_BEHIND);
    assert_string_equal(p->a.scan.destination, "a");
    assert_int_equal(p->a.scan.after_id, 0);
    puppet_heads(p, &fresh, 1, false);
    until(p, HK_ACT_SEND);
    end(p);
}

static void a_stranger_whose_name_there_is_no_memory_for_waits_for_the_next_poll(void **state)
{
    (void)state;
    struct puppet *p = crowded(1, 0);
    puppet_start(p);
    until(p, HK_ACT_POLL);
    struct hk_poll_dest dests[] = {
        {.name = hk_str_of("gone"), .retry_due_ms = puppet_store_now(p)},
        {.name = hk_str_of("later"), .retry_due_ms = puppet_store_now(p) + 1},
        {.name = hk_str_of("paused"), .retry_due_ms = INT64_MAX, .paused = true},
    };
    p->poll.dests = dests;
    p->poll.n_dests = 3;
    too_much = 0;
    puppet_poll(p);
    assert_int_equal(p->engine->stray.due_ms, INT64_MAX);
    too_much = SIZE_MAX;
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    assert_string_equal(p->a.scan.destination, "gone");
    end(p);
}

/* Nobody's commit need come by: a settle of a row of outbox, which makes room, is no news for a poll. */
static void a_stranger_that_found_no_room_is_looked_for_again_without_a_poll(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    p->options.concurrency = 1;
    puppet_start(p);
    struct hk_head fresh = row(1, "a", "");
    give_fresh(p, &fresh, 1);
    assert_int_equal(p->n_sends, 1);
    until(p, HK_ACT_POLL);
    struct hk_poll_dest dest = {.name = hk_str_of("gone"), .retry_due_ms = puppet_store_now(p)};
    p->poll.dests = &dest;
    p->poll.n_dests = 1;
    puppet_poll(p);
    p->poll.changed = false;
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    struct hk_head stray = retry_row(1, "gone", "");
    puppet_heads(p, &stray, 1, false);
    puppet_sent(p, p->slots[0], 200);
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    assert_string_equal(p->a.scan.destination, "gone");
    puppet_free(p);
}

/* outbox and outbox_retry count for themselves, and a store need not answer in the order that it was asked in. */
static void two_rows_of_the_same_number_are_not_taken_for_each_other(void **state)
{
    (void)state;
    static struct hk_grant none[8];
    struct hk_message messages[2];
    struct puppet *p = puppet_new(2);
    p->options.linger_ms = 1000; /* both go along with one exchange */
    puppet_start(p);
    until(p, HK_ACT_POLL);
    struct hk_poll_dest dest = {.name = hk_str_of("a"), .retry_due_ms = puppet_store_now(p)};
    p->poll.dests = &dest;
    p->poll.n_dests = 1;
    p->poll.last_id = 1;
    puppet_poll(p);
    p->poll.changed = false;
    struct hk_head waits = retry_row(1, "a", ""), fresh = row(1, "b", "");
    for (int n = 0; n < 2; n++) {
        until(p, HK_ACT_SCAN);
        puppet_heads(p, p->a.scan.source == HK_FROM_RETRY ? &waits : &fresh, 1, false);
    }
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.n_wants, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct hk_message *found = puppet_row(p, &p->a.exchange.wants[1 - i]);
        assert_non_null(found);
        messages[i] = *found;
    }
    struct hk_exchanged done = {.now_ms = puppet_store_now(p),
                                .claim = 1,
                                .messages = messages,
                                .n_messages = 2,
                                .grants = none,
                                .stale = p->stale};
    hk_engine_on_exchange(p->engine, p->now_ms, HK_OK, &done);
    for (size_t i = 0; i < 2; i++) {
        until(p, HK_ACT_SEND);
        assert_true(hk_str_eq(p->a.message->destination, hk_str_of(p->dests[p->a.dest].name)));
        puppet_serve(p);
    }
    puppet_free(p);
}

/* A server that took over gives no claims before all was read anew: who would ask again and again is told to poll. */
static void an_exchange_that_wants_all_read_anew_is_followed_by_a_poll(void **state)
{
    (void)state;
    static struct hk_grant none[8];
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    struct hk_head fresh = row(1, "a", "");
    p->poll.last_id = 1;
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, &fresh, 1, false);
    until(p, HK_ACT_EXCHANGE);
    struct hk_exchanged done = {
        .now_ms = puppet_store_now(p), .reset = true, .grants = none, .stale = p->stale};
    hk_engine_on_exchange(p->engine, p->now_ms, HK_OK, &done);
    hk_engine_next(p->engine, p->now_ms, &p->a);
    assert_int_equal(p->a.kind, HK_ACT_POLL);
    puppet_free(p);
}

/* ---- clocks and pages ---- */

static void an_empty_answer_from_a_clock_that_is_behind_is_asked_for_again(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    until(p, HK_ACT_POLL);
    int64_t due_ms = puppet_store_now(p) + 100;
    struct hk_poll_dest dest = {.name = hk_str_of("gone"), .retry_due_ms = due_ms};
    p->poll.dests = &dest;
    p->poll.n_dests = 1;
    puppet_poll(p);
    p->poll.changed = false;
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    assert_true(puppet_store_now(p) >= due_ms);
    struct hk_heads early = {.now_ms = due_ms - 1};
    hk_engine_on_scan(p->engine, p->now_ms, HK_OK, &p->a.purpose, &early);
    assert_int_equal(p->engine->stray.due_ms, due_ms);
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    puppet_heads(p, NULL, 0, false); /* now its clock is there, and somebody else had it */
    assert_int_equal(p->engine->stray.due_ms, INT64_MAX);
    puppet_free(p);
}

/* By the store's time the row was due an hour ago. Its clock is a day behind that, and the row is due by the clock. */
static void what_a_clock_that_is_behind_does_not_show_is_asked_for_every_second(void **state)
{
    (void)state;
    const int64_t day_ms = 24 * 3600 * 1000;
    static const char *const whose[] = {"a", "gone"}; /* the latter is not configured */
    for (size_t i = 0; i < sizeof whose / sizeof whose[0]; i++) {
        struct puppet *p = puppet_new(1);
        puppet_start(p);
        until(p, HK_ACT_POLL);
        int64_t due_ms = puppet_store_now(p) - 3600 * 1000;
        struct hk_poll_dest dest = {.name = hk_str_of(whose[i]), .retry_due_ms = due_ms};
        p->poll.dests = &dest;
        p->poll.n_dests = 1;
        puppet_poll(p);
        p->poll.changed = false;
        until_scan(p, HK_ENGINE_SCAN_RETRY);
        struct hk_heads none = {.now_ms = puppet_store_now(p), .behind_ms = (uint64_t)day_ms};
        int64_t asked_ms = p->now_ms;
        hk_engine_on_scan(p->engine, p->now_ms, HK_OK, &p->a.purpose, &none);
        until_scan(p, HK_ENGINE_SCAN_RETRY);
        assert_in_range(p->now_ms - asked_ms, 1000, 2000);
        puppet_heads(p, NULL, 0, false); /* now the clock is there, and somebody else had it */
        assert_int_equal(i == 0 ? p->engine->dests[0].retry_due_ms : p->engine->stray.due_ms, INT64_MAX);
        puppet_free(p);
    }
}

/* The clock was a day ahead, and is right again: by the store's time both are over, by the clock neither is. */
static void not_before_and_expires_at_go_by_the_clock(void **state)
{
    (void)state;
    const int64_t day_ms = 24 * 3600 * 1000;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    until(p, HK_ACT_POLL);
    p->poll.last_id = 2;
    puppet_poll(p);
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    struct hk_head rows[] = {row(1, "a", ""), row(2, "a", "")};
    rows[0].not_before_ms = rows[1].expires_ms = puppet_store_now(p) + 3600 * 1000;
    struct hk_heads heads = {.items = rows,
                             .n = 2,
                             .last_id = 2,
                             .now_ms = puppet_store_now(p) + day_ms,
                             .behind_ms = (uint64_t)day_ms};
    hk_engine_on_scan(p->engine, p->now_ms, HK_OK, &p->a.purpose, &heads);
    assert_int_equal(p->engine->slots[0].intent, HK_TO_DEFER);
    assert_int_equal(p->engine->slots[1].intent, HK_TO_SEND);
    puppet_free(p);
}

/* Waits are counted from the store's time: from the latest that it can be, or they would end early. */
static void a_time_that_was_only_reckoned_makes_no_wait_shorter(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    until(p, HK_ACT_POLL);
    p->poll.changed = true;
    struct hk_poll poll = p->poll;
    poll.now_ms =
        puppet_store_now(p) - 23; /* as the server said, before its answer was on its way for 23 ms */
    poll.late_ms = 23;
    hk_engine_on_poll(p->engine, p->now_ms, HK_OK, &poll);
    assert_int_equal(hk_engine_store_now_ms(p->engine, p->now_ms), puppet_store_now(p));
    puppet_free(p);
}

static void retries_are_read_page_by_page_and_an_empty_last_page_is_the_end(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    until(p, HK_ACT_POLL);
    struct hk_poll_dest dest = {.name = hk_str_of("a"), .retry_due_ms = puppet_store_now(p)};
    p->poll.dests = &dest;
    p->poll.n_dests = 1;
    puppet_poll(p);
    p->poll.changed = false;
    struct hk_head due = retry_row(7, "a", "");
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    puppet_heads(p, &due, 1, true);
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    assert_int_equal(p->a.scan.after_id, 7);
    puppet_heads(p, NULL, 0, false);
    assert_int_equal(p->engine->dests[0].retry_due_ms, INT64_MAX);
    assert_int_equal(p->engine->dests[0].retry_after_id, 0);
    puppet_free(p);
}

static void ids_at_the_ends_of_their_range_have_no_neighbour_beyond(void **state)
{
    (void)state;
    assert_true(hk_id_before(INT64_MIN) == INT64_MIN);
    assert_true(hk_id_before(INT64_MAX) == INT64_MAX - 1);
    assert_true(hk_id_after(INT64_MAX) == INT64_MAX);
    assert_true(hk_id_after(INT64_MIN) == INT64_MIN + 1);
}

/* ---- order ---- */

static void a_fan_out_waits_for_what_its_other_destination_passed_over(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(2);
    fan_out_to(p, 2);
    puppet_start(p);
    struct hk_head rows[] = {row(1, "a", "k"), row(2, "b", "k"), row(3, "b", "k"), row(4, "", "k")};
    give_fresh(p, rows, 4);
    assert_int_equal(p->n_sends, 2);
    puppet_sent(p, p->slots[0], 200);
    puppet_sent(p, p->slots[1], 200); /* both keys become free in one exchange */
    until_scan(p, HK_ENGINE_SCAN_KEY);
    assert_string_equal(p->a.scan.destination, "a");
    puppet_heads(p, &rows[3], 1, false);
    assert_int_equal(hk_engine_in_hand(p->engine), 0);
    until_scan(p, HK_ENGINE_SCAN_KEY);
    assert_string_equal(p->a.scan.destination, "b");
    puppet_heads(p, &rows[2], 2, false);
    until(p, HK_ACT_WAIT);
    assert_int_equal(p->n_sends, 3);
    puppet_sent(p, p->slots[2], 200);
    until_scan(p, HK_ENGINE_SCAN_KEY);
    puppet_heads(p, &rows[3], 1, false);
    assert_fans_out(p, 4, 2);
    puppet_free(p);
}

static void a_late_fan_out_waits_for_no_destination_that_has_read_past_it(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(2);
    fan_out_to(p, 2);
    p->options.concurrency = 1;
    puppet_start(p);
    assert_true(hk_dest_make_guards(&p->engine->dests[1], p->now_ms));
    hk_limiter_hold(p->engine->dests[1].limiter, p->now_ms + 10000);
    struct hk_head rows[] = {row(6, "b", ""), row(7, "a", "")};
    give_fresh(p, rows, 2); /* "b" stays behind, from 6 on */
    struct hk_head late[] = {row(4, "", "k"), row(6, "b", "")};
    p->poll.late = true;
    until_scan(p, HK_ENGINE_SCAN_LATE);
    puppet_heads(p, late, 1, false); /* no room */
    assert_int_equal(hk_engine_in_hand(p->engine), 1);
    puppet_sent(p, p->slots[0], 200);
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    assert_int_equal(p->a.scan.after_id, 3);
    puppet_heads(p, late, 2, false);
    assert_fans_out(p, 4, 2);
    puppet_free(p);
}

static void a_row_that_was_put_off_while_its_key_waited_is_taken_once(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    p->options.linger_ms = 1000;
    puppet_start(p);
    struct hk_head rows[] = {row(1, "a", "k"), row(2, "a", "k")};
    give_fresh(p, rows, 2);
    rows[1].not_before_ms = puppet_store_now(p) + 50000;
    p->poll.late = true;
    until_scan(p, HK_ENGINE_SCAN_LATE);
    puppet_heads(p, &rows[1], 1, false);
    assert_int_equal(hk_engine_in_hand(p->engine), 2);
    puppet_sent(p, p->slots[0], 200);
    until_scan(p, HK_ENGINE_SCAN_KEY);
    puppet_heads(p, &rows[1], 1, false);
    assert_int_equal(hk_engine_in_hand(p->engine), 1);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.n_wants, 0);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_DEFER);
    puppet_exchange(p, HK_OK);
    assert_int_equal(hk_order_count(p->engine->order), 0);
    puppet_free(p);
}

/* ---- what changed between scan and claim ---- */

static void what_only_the_claim_shows_to_be_unusable_is_dead_unsent(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct puppet *p = puppet_new(1);
        struct hk_head fresh = row(1, "a", "k");
        p->poll.last_id = 1;
        puppet_start(p);
        until_scan(p, HK_ENGINE_SCAN_FRESH);
        puppet_heads(p, &fresh, 1, false);
        p->rows[0].oversized = kind == 0;
        p->rows[0].malformed = kind == 1 ? "max_attempts" : NULL;
        p->rows[0].undecodable = kind == 2;
        until(p, HK_ACT_EXCHANGE);
        puppet_exchange(p, HK_OK);
        until(p, HK_ACT_EXCHANGE);
        const struct hk_settle *s = &p->a.exchange.settles[0];
        assert_int_equal(s->kind, HK_SETTLE_DEAD);
        assert_true(hk_str_eq(s->reason, hk_str_of(kind == 0 ? "PAYLOAD_TOO_LARGE" : "VALIDATION_ERROR")));
        assert_false(s->attempt.made);
        assert_int_equal(p->n_sends, 0);
        puppet_exchange(p, HK_OK);
        puppet_free(p);
    }
}

static void a_stale_settle_changes_nothing_and_frees_its_key(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    struct hk_head fresh = row(1, "a", "k");
    give_fresh(p, &fresh, 1);
    puppet_sent(p, p->slots[0], 500);
    p->stale[0] = true;
    until(p, HK_ACT_WAIT);
    assert_int_equal(hk_engine_stats(p->engine)->stale_settles, 1);
    assert_int_equal(hk_engine_stats(p->engine)->retried, 0);
    assert_int_equal(hk_engine_in_hand(p->engine), 0);
    assert_int_equal(hk_order_count(p->engine->order), 0);
    puppet_free(p);
}

/* Its first probe is answered so; it takes two to close it. */
static void probe_once(int status, int64_t *out_first_ms, struct hk_circuit *out_then, size_t *out_told)
{
    struct hk_breaker_options o;
    struct puppet *p = puppet_new(1);
    hk_breaker_options_init(&o);
    o.failures = 1;
    o.successes = 2;
    o.open_ms = o.open_cap_ms = 1000;
    o.open_factor = 1;
    o.open_jitter = 0;
    p->dests[0].breaker = &o;
    puppet_start(p);
    struct hk_head fresh = row(1, "a", ""), due = retry_row(7, "a", "");
    give_fresh(p, &fresh, 1);
    puppet_sent(p, p->slots[0], 503);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.n_circuits, 1);
    int64_t first_ms = p->a.exchange.circuits[0].open_until_ms;
    struct hk_poll_dest dest = {
        .name = hk_str_of("a"), .open_until_ms = first_ms, .retry_due_ms = puppet_store_now(p)};
    p->poll.dests = &dest;
    p->poll.n_dests = 1;
    puppet_exchange(p, HK_OK);
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    assert_true(puppet_store_now(p) >= first_ms);
    dest.retry_due_ms = INT64_MAX;
    puppet_heads(p, &due, 1, false);
    until(p, HK_ACT_WAIT);
    assert_int_equal(p->n_sends, 2);
    puppet_sent(p, p->slots[1], status);
    until(p, HK_ACT_EXCHANGE);
    *out_first_ms = first_ms;
    *out_told = p->a.exchange.n_circuits;
    if (*out_told)
        *out_then = p->a.exchange.circuits[0];
    puppet_exchange(p, HK_OK);
    puppet_free(p);
}

static void a_breaker_that_opens_again_is_told_and_one_that_is_half_open_is_not(void **state)
{
    (void)state;
    int64_t first_ms;
    struct hk_circuit then = {.open_until_ms = 0};
    size_t told;
    probe_once(503, &first_ms, &then, &told);
    assert_int_equal(told, 1);
    assert_true(then.open_until_ms > first_ms);
    probe_once(200, &first_ms, &then, &told);
    assert_int_equal(told, 0);
}

/* ---- lanes and errors ---- */

/* A retry row that held its key is on its way. */
static struct puppet *held_on_its_way(void)
{
    static const struct hk_held_key k = {.destination = {"a", 1}, .key = {"k", 1}};
    struct puppet *p = puppet_new(1);
    p->held = &k;
    p->n_held = 1;
    puppet_start(p);
    until(p, HK_ACT_POLL);
    struct hk_poll_dest dest = {.name = hk_str_of("a"), .retry_due_ms = puppet_store_now(p)};
    p->poll.dests = &dest;
    p->poll.n_dests = 1;
    puppet_poll(p);
    p->poll.dests = NULL;
    p->poll.n_dests = 0;
    struct hk_head due = retry_row(7, "a", "k");
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    puppet_heads(p, &due, 1, false);
    until(p, HK_ACT_WAIT);
    assert_int_equal(p->n_sends, 1);
    return p;
}

/* Its first request is still under way, and nobody else's business any more: the new lane finds the row like any other. */
static void what_an_old_lane_still_sends_is_sent_by_the_new_one(void **state)
{
    (void)state;
    struct hk_head heads[] = {row(7, "a", "")};
    struct puppet *p = puppet_new(1);
    puppet_start(p);
    give_fresh(p, heads, 1);
    assert_int_equal(p->n_sends, 1);
    until(p, HK_ACT_EXCHANGE);
    puppet_exchange(p, HK_CONFLICT);
    give_fresh(p, heads, 1);
    assert_int_equal(p->n_sends, 2);
    puppet_sent(p, p->slots[0], 200);
    puppet_sent(p, p->slots[1], 200);
    until(p, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.n_settles, 1);
    puppet_exchange(p, HK_OK);
    assert_int_equal(hk_engine_stats(p->engine)->sent, 1);
    puppet_free(p);
}

static void one_send_may_outlive_two_lanes_and_changes_nothing(void **state)
{
    (void)state;
    struct puppet *p = held_on_its_way();
    for (int i = 0; i < 2; i++) {
        until(p, HK_ACT_EXCHANGE);
        puppet_exchange(p, HK_CONFLICT);
        until(p, HK_ACT_HELD_KEYS);
        puppet_serve(p);
        assert_int_equal(hk_engine_in_flight(p->engine), 1);
    }
    assert_int_equal(hk_engine_stats(p->engine)->lanes_lost, 2);
    puppet_sent(p, p->slots[0], 200);
    assert_int_equal(hk_engine_in_hand(p->engine), 0);
    until(p, HK_ACT_WAIT);
    assert_int_equal(hk_engine_stats(p->engine)->sent, 0);
    puppet_free(p);
}

static void a_row_in_hand_that_is_not_among_the_held_any_more_counts_once(void **state)
{
    (void)state;
    struct puppet *p = held_on_its_way();
    p->n_held = 0;
    p->poll.acts++;
    until(p, HK_ACT_HELD_KEYS);
    puppet_serve(p);
    const struct hk_order_key *key =
        hk_order_find(p->engine->order, hk_order_hash(p->engine->order, 0, hk_str_of("k")));
    assert_non_null(key);
    assert_int_equal(key->waiting, 0);
    assert_int_equal(key->in_flight, 1);
    puppet_free(p);
}

static void an_exchange_that_fails_while_draining_leaves_its_claims_where_they_are(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    struct hk_head fresh = row(1, "a", "k");
    p->poll.last_id = 1;
    puppet_start(p);
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, &fresh, 1, false);
    until(p, HK_ACT_EXCHANGE);
    hk_engine_drain(p->engine, p->now_ms, p->now_ms + 1000);
    puppet_exchange(p, HK_IO);
    assert_int_equal(hk_engine_in_hand(p->engine), 0);
    until(p, HK_ACT_RELEASE);
    assert_int_equal(p->n_sends, 0);
    puppet_free(p);
}

/* Its late rows wait as well: nothing of outbox is read before the keys are known. */
static void without_the_held_keys_the_engine_waits_for_the_store_and_does_not_spin(void **state)
{
    (void)state;
    struct puppet *p = puppet_new(1);
    fan_out_to(p, 1);
    p->options.linger_ms = 1000;
    puppet_start(p);
    struct hk_head fresh = row(1, "a", "");
    give_fresh(p, &fresh, 1);
    struct hk_poll_dest unrouted = {.name = hk_str_of(""), .retry_due_ms = puppet_store_now(p)};
    p->poll.dests = &unrouted;
    p->poll.n_dests = 1;
    struct hk_head orphan = retry_row(7, "", "k");
    until_scan(p, HK_ENGINE_SCAN_RETRY);
    p->poll.n_dests = 0;
    puppet_heads(p, &orphan, 1, false);
    until(p, HK_ACT_EXCHANGE);
    puppet_exchange(p, HK_OK); /* claimed; that it fans out is still to be told */
    p->poll.late = true;
    for (int n = 0; n < 1000; n++) {
        hk_engine_next(p->engine, p->now_ms, &p->a);
        if (p->a.kind == HK_ACT_EXCHANGE)
            break;
        if (p->a.kind == HK_ACT_SCAN && p->a.purpose.kind == HK_ENGINE_SCAN_LATE)
            hk_engine_on_scan(p->engine, p->now_ms, HK_IO, &p->a.purpose, NULL);
        else
            puppet_serve(p);
    }
    assert_int_equal(p->a.kind, HK_ACT_EXCHANGE);
    assert_int_equal(p->a.exchange.settles[0].kind, HK_SETTLE_FAN_OUT);
    puppet_exchange(p, HK_OK);
    assert_true(hk_engine_late_due(p->engine));
    until(p, HK_ACT_HELD_KEYS);
    hk_engine_on_held_keys(p->engine, p->now_ms, HK_IO, NULL, 0);
    hk_engine_next(p->engine, p->now_ms, &p->a);
    assert_int_equal(p->a.kind, HK_ACT_WAIT);
    assert_true(p->a.wake_ms > p->now_ms + 1);
    puppet_free(p);
}

/* ---- slots ---- */

/* False: the engine ended the process rather than make the move. */
static bool move_is_made(enum hk_phase phase, enum hk_move move, enum hk_phase *out_to)
{
    int status, to[2];
    assert_int_equal(pipe(to), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct hk_slot slot = {.phase = phase};
        uint32_t room = 0;
        struct hk_ring ring = {.items = &room, .room = 1};
        struct hk_engine e = {.slots = &slot, .free = ring, .chosen = ring, .ready = ring, .settle = ring};
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        hk_slot_move(&e, 0, move);
        _exit(write(to[1], &slot.phase, sizeof slot.phase) == sizeof slot.phase ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    bool made = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    assert_true(made || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    if (made)
        assert_int_equal(read(to[0], out_to, sizeof *out_to), sizeof *out_to);
    (void)close(to[0]);
    (void)close(to[1]);
    return made;
}

static const struct {
    enum hk_phase from;
    enum hk_move move;
    enum hk_phase to;
} moves[] = {
    {HK_SLOT_FREE, HK_MOVE_TAKE, HK_SLOT_CHOSEN},
    {HK_SLOT_CHOSEN, HK_MOVE_CLAIM, HK_SLOT_CLAIMING},
    {HK_SLOT_CHOSEN, HK_MOVE_LEAVE, HK_SLOT_FREE},
    {HK_SLOT_CHOSEN, HK_MOVE_LOSE_LANE, HK_SLOT_FREE},
    {HK_SLOT_CLAIMING, HK_MOVE_UNDO, HK_SLOT_CHOSEN},
    {HK_SLOT_CLAIMING, HK_MOVE_READY, HK_SLOT_READY},
    {HK_SLOT_CLAIMING, HK_MOVE_DECIDE, HK_SLOT_SETTLE},
    {HK_SLOT_CLAIMING, HK_MOVE_LEAVE, HK_SLOT_FREE},
    {HK_SLOT_CLAIMING, HK_MOVE_LOSE_LANE, HK_SLOT_FREE},
    {HK_SLOT_READY, HK_MOVE_SEND, HK_SLOT_SENDING},
    {HK_SLOT_READY, HK_MOVE_DECIDE, HK_SLOT_SETTLE},
    {HK_SLOT_READY, HK_MOVE_LOSE_LANE, HK_SLOT_FREE},
    {HK_SLOT_SENDING, HK_MOVE_DECIDE, HK_SLOT_SETTLE},
    {HK_SLOT_SENDING, HK_MOVE_LOSE_LANE, HK_SLOT_ORPHANED},
    {HK_SLOT_SETTLE, HK_MOVE_SETTLE, HK_SLOT_SETTLING},
    {HK_SLOT_SETTLE, HK_MOVE_LOSE_LANE, HK_SLOT_FREE},
    {HK_SLOT_SETTLING, HK_MOVE_UNDO, HK_SLOT_SETTLE},
    {HK_SLOT_SETTLING, HK_MOVE_LEAVE, HK_SLOT_FREE},
    {HK_SLOT_SETTLING, HK_MOVE_LOSE_LANE, HK_SLOT_FREE},
    {HK_SLOT_ORPHANED, HK_MOVE_LEAVE, HK_SLOT_FREE},
};

static void a_slot_makes_the_listed_moves_and_no_other(void **state)
{
    (void)state;
    for (int phase = 0; phase < HK_NPHASES; phase++)
        for (int move = 0; move < HK_NMOVES; move++) {
            size_t i = 0;
            enum hk_phase to = HK_NPHASES;
            while (i < COUNT(moves) && ((int)moves[i].from != phase || (int)moves[i].move != move))
                i++;
            bool made = move_is_made((enum hk_phase)phase, (enum hk_move)move, &to);
            NOTE_IF(made != (i < COUNT(moves)), "phase %d, move %d\n", phase, move);
            assert_int_equal(made, i < COUNT(moves));
            if (made)
                assert_int_equal(to, moves[i].to);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_for_its_key_a_message_waits_and_goes_later),
        cmocka_unit_test(without_memory_for_one_of_its_keys_a_fan_out_takes_none),
        cmocka_unit_test(a_table_of_keys_may_grow_under_a_keys_scan),
        cmocka_unit_test(what_there_is_no_memory_to_pass_over_is_left_to_the_sweep),
        cmocka_unit_test(a_row_whose_key_was_changed_is_retried_though_nothing_can_hold_its_key),
        cmocka_unit_test(what_is_given_back_without_memory_for_its_key_is_read_by_its_destination),
        cmocka_unit_test(a_stranger_whose_name_there_is_no_memory_for_waits_for_the_next_poll),
        cmocka_unit_test(a_stranger_that_found_no_room_is_looked_for_again_without_a_poll),
        cmocka_unit_test(two_rows_of_the_same_number_are_not_taken_for_each_other),
        cmocka_unit_test(an_exchange_that_wants_all_read_anew_is_followed_by_a_poll),
        cmocka_unit_test(an_empty_answer_from_a_clock_that_is_behind_is_asked_for_again),
        cmocka_unit_test(a_time_that_was_only_reckoned_makes_no_wait_shorter),
        cmocka_unit_test(not_before_and_expires_at_go_by_the_clock),
        cmocka_unit_test(what_a_clock_that_is_behind_does_not_show_is_asked_for_every_second),
        cmocka_unit_test(retries_are_read_page_by_page_and_an_empty_last_page_is_the_end),
        cmocka_unit_test(ids_at_the_ends_of_their_range_have_no_neighbour_beyond),
        cmocka_unit_test(a_fan_out_waits_for_what_its_other_destination_passed_over),
        cmocka_unit_test(a_late_fan_out_waits_for_no_destination_that_has_read_past_it),
        cmocka_unit_test(a_row_that_was_put_off_while_its_key_waited_is_taken_once),
        cmocka_unit_test(what_only_the_claim_shows_to_be_unusable_is_dead_unsent),
        cmocka_unit_test(a_stale_settle_changes_nothing_and_frees_its_key),
        cmocka_unit_test(a_breaker_that_opens_again_is_told_and_one_that_is_half_open_is_not),
        cmocka_unit_test(what_an_old_lane_still_sends_is_sent_by_the_new_one),
        cmocka_unit_test(one_send_may_outlive_two_lanes_and_changes_nothing),
        cmocka_unit_test(a_row_in_hand_that_is_not_among_the_held_any_more_counts_once),
        cmocka_unit_test(an_exchange_that_fails_while_draining_leaves_its_claims_where_they_are),
        cmocka_unit_test(without_the_held_keys_the_engine_waits_for_the_store_and_does_not_spin),
        cmocka_unit_test(a_slot_makes_the_listed_moves_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
