/* SPDX-License-Identifier: Apache-2.0 */
/* The table of held keys: against a plain list that says the same the slow way, and its queue of ready keys. */
#include <stdlib.h>

#include <hikyaku/alloc.h>
#include <hikyaku/rng.h>

#include "base/str.h"
#include "check.h"
#include "core/order.h"

static struct hk_order *make(void)
{
    struct hk_order *order = NULL;
    assert_int_equal(hk_order_new(7, &order, NULL), HK_OK);
    return order;
}

static uint64_t hash_of(const struct hk_order *order, const char *key)
{
    return hk_order_hash(order, 0, hk_str_of(key));
}

static void pass(struct hk_order *order, const char *key, int64_t id)
{
    struct hk_order_key *entry = hk_order_get(order, hash_of(order, key), 0);
    assert_non_null(entry);
    assert_true(hk_order_pass(entry, id, hk_str_of(key)));
}

static void a_key_that_nobody_holds_is_free(void **state)
{
    (void)state;
    struct hk_order *order = make();
    assert_null(hk_order_find(order, hash_of(order, "k")));
    assert_true(hk_order_free_for_first(NULL));
    assert_null(hk_order_ready(order));
    hk_order_free(order);
}

static void each_kind_of_holder_holds(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct hk_order *order = make();
        struct hk_order_key *key = hk_order_get(order, hash_of(order, "k"), 0);
        uint32_t *holder = kind == 0   ? &key->waiting
                           : kind == 1 ? &key->in_flight
                           : kind == 2 ? &key->dead
                                       : &key->unrouted;
        *holder = 1;
        assert_false(hk_order_free_for_first(key));
        hk_order_tidy(order, key->hash);
        assert_int_equal(hk_order_count(order), 1);
        *holder = 0;
        hk_order_tidy(order, key->hash);
        assert_int_equal(hk_order_count(order), 0);
        hk_order_free(order);
    }
}

static void what_was_passed_over_is_ready_once_its_key_is_free(void **state)
{
    (void)state;
    struct hk_order *order = make();
    struct hk_order_key *key = hk_order_get(order, hash_of(order, "k"), 3);
    key->in_flight = 1;
    assert_true(hk_order_pass(key, 9, hk_str_of("k")));
    assert_true(hk_order_pass(key, 5, hk_str_of("k")));
    assert_true(hk_order_pass(key, 7, hk_str_of("k")));
    hk_order_tidy(order, key->hash);
    assert_null(hk_order_ready(order));
    key->in_flight = 0;
    hk_order_tidy(order, key->hash);
    struct hk_order_key *ready = hk_order_ready(order);
    assert_ptr_equal(ready, key);
    assert_int_equal(ready->passed_id, 5);
    assert_int_equal(ready->dest, 3);
    assert_string_equal(ready->text, "k");
    ready->passed_id = HK_NONE_PASSED;
    hk_order_tidy(order, ready->hash);
    assert_null(hk_order_ready(order));
    assert_int_equal(hk_order_count(order), 0);
    hk_order_free(order);
}

static void ready_keys_come_in_turn_and_parked_ones_not(void **state)
{
    (void)state;
    struct hk_order *order = make();
    const char *keys[] = {"a", "b", "c"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        pass(order, keys[i], 1);
        hk_order_tidy(order, hash_of(order, keys[i]));
    }
    assert_string_equal(hk_order_ready(order)->text, "a");
    assert_int_equal(hk_order_queue(order), 3);
    hk_order_rotate(order);
    assert_string_equal(hk_order_ready(order)->text, "b");
    hk_order_park(hk_order_ready(order));
    assert_string_equal(hk_order_ready(order)->text, "c");
    hk_order_tidy(order, hash_of(order, "b")); /* lined up again, at the end */
    hk_order_rotate(order);
    assert_string_equal(hk_order_ready(order)->text, "a");
    hk_order_rotate(order);
    assert_string_equal(hk_order_ready(order)->text, "b");
    hk_order_free(order);
}

static void what_is_told_anew_replaces_what_was_known(void **state)
{
    (void)state;
    struct hk_order *order = make();
    hk_order_get(order, hash_of(order, "gone"), 0)->waiting = 1;
    hk_order_get(order, hash_of(order, "dead"), 0)->dead = 2;
    hk_order_get(order, hash_of(order, "mine"), 0)->in_flight = 1;
    pass(order, "gone", 4);
    hk_order_clear_held(order);
    hk_order_get(order, hash_of(order, "dead"), 0)->dead = 1;
    hk_order_settle(order);
    assert_string_equal(hk_order_ready(order)->text, "gone");
    assert_int_equal(hk_order_find(order, hash_of(order, "dead"))->dead, 1);
    assert_int_equal(hk_order_find(order, hash_of(order, "mine"))->in_flight, 1);
    hk_order_clear(order);
    assert_int_equal(hk_order_count(order), 0);
    assert_null(hk_order_ready(order));
    hk_order_free(order);
}

static void a_destination_is_part_of_the_key(void **state)
{
    (void)state;
    struct hk_order *order = make();
    assert_true(hk_order_hash(order, 0, hk_str_of("k")) != hk_order_hash(order, 1, hk_str_of("k")));
    struct hk_order *other = NULL;
    assert_int_equal(hk_order_new(8, &other, NULL), HK_OK);
    assert_true(hash_of(order, "k") != hash_of(other, "k"));
    hk_order_free(order);
    hk_order_free(other);
}

/* Thousands of steps; colliding hashes on purpose, so that probing and moving back are met. */
static void it_agrees_with_a_plain_list(void **state)
{
    (void)state;

    enum {
        KEYS = 300,
        STEPS = 20000
    };

    static uint32_t held[KEYS];
    struct hk_order *order = make();
    struct hk_rng rng;
    hk_rng_seed(&rng, 1, 1);
    size_t known = 0;
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)hk_rng_upto(&rng, KEYS - 1);
        uint64_t hash = (i % 7 + 1) | (uint64_t)i << 32; /* seven places for all of them */
        if (hk_rng_upto(&rng, 1)) {
            struct hk_order_key *key = hk_order_get(order, hash, 0);
            assert_non_null(key);
            known += held[i] == 0;
            key->waiting = ++held[i];
        } else if (held[i]) {
            struct hk_order_key *key = hk_order_find(order, hash);
            assert_non_null(key);
            key->waiting = --held[i];
            known -= held[i] == 0;
            hk_order_tidy(order, hash);
        }
        assert_int_equal(hk_order_count(order), known);
        for (size_t k = 0; k < KEYS; k += 37) {
            struct hk_order_key *key = hk_order_find(order, (k % 7 + 1) | (uint64_t)k << 32);
            assert_int_equal(key ? key->waiting : 0, held[k]);
        }
    }
    memset(held, 0, sizeof held);
    hk_order_free(order);
}

/* ---- out of memory ---- */

static long allowed;

static void *failing_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return allowed-- > 0 ? realloc(ptr, bytes) : NULL;
}

static void plain_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static bool fill(void)
{
    struct hk_order *order = NULL;
    struct hk_err err;
    bool whole = true;
    if (hk_order_new(1, &order, &err) != HK_OK) {
        assert_int_equal(err.code, HK_NOMEM);
        return false;
    }
    for (uint64_t i = 1; i <= 200; i++) {
        struct hk_order_key *key = hk_order_get(order, i, 0);
        whole &= key && hk_order_pass(key, 1, hk_str_of("k"));
        if (key)
            hk_order_tidy(order, i);
    }
    hk_order_free(order);
    return whole;
}

static void without_memory_it_says_so_and_leaks_nothing(void **state)
{
    (void)state;
    struct hk_allocator failing = {failing_resize, plain_release, NULL};
    bool whole = false;
    hk_allocator_set(&failing);
    for (long k = 0; !whole; k++) {
        allowed = k;
        whole = fill();
        assert_true(k < 1000);
    }
    hk_allocator_set(NULL);
}

static void a_parked_key_that_was_removed_is_skipped_and_one_alone_does_not_turn(void **state)
{
    (void)state;
    struct hk_order *order = make();
    pass(order, "a", 1);
    hk_order_tidy(order, hash_of(order, "a"));
    hk_order_rotate(order);
    assert_string_equal(hk_order_ready(order)->text, "a");
    pass(order, "b", 1);
    hk_order_tidy(order, hash_of(order, "b"));
    struct hk_order_key *a = hk_order_ready(order);
    hk_order_park(a);
    a->passed_id = HK_NONE_PASSED;
    hk_order_tidy(order, hash_of(order, "a"));
    assert_int_equal(hk_order_count(order), 1);
    assert_string_equal(hk_order_ready(order)->text, "b");
    assert_int_equal(hk_order_queue(order), 1);
    hk_order_ready(order)->waiting = 1; /* held again: its turn is over, and it stays */
    assert_null(hk_order_ready(order));
    assert_int_equal(hk_order_count(order), 1);
    hk_order_free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_nobody_holds_is_free),
        cmocka_unit_test(each_kind_of_holder_holds),
        cmocka_unit_test(what_was_passed_over_is_ready_once_its_key_is_free),
        cmocka_unit_test(ready_keys_come_in_turn_and_parked_ones_not),
        cmocka_unit_test(what_is_told_anew_replaces_what_was_known),
        cmocka_unit_test(a_destination_is_part_of_the_key),
        cmocka_unit_test(it_agrees_with_a_plain_list),
        cmocka_unit_test(without_memory_it_says_so_and_leaks_nothing),
        cmocka_unit_test(a_parked_key_that_was_removed_is_skipped_and_one_alone_does_not_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
