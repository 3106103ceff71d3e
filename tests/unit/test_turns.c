/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of writers: one at a time, in the order in which they asked, and nobody waits for ever. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"
#include "store/turns.h"

enum {
    THREADS = 8,
    ROUNDS = 200,
    LONG_MS = 60000
};

struct crowd {
    struct hk_turns *turns;
    atomic_int inside, most, done;
    int order[THREADS];
    size_t n;
};

struct one {
    struct crowd *crowd;
    int id;
};

static void *write_often(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (!hk_turns_take(c->turns))
            continue;
        int inside = atomic_fetch_add(&c->inside, 1) + 1;
        if (inside > atomic_load(&c->most))
            atomic_store(&c->most, inside);
        sched_yield();
        atomic_fetch_sub(&c->inside, 1);
        atomic_fetch_add(&c->done, 1);
        hk_turns_give(c->turns);
    }
    return NULL;
}

static void one_writes_at_a_time_and_all_come_to_write(void **state)
{
    (void)state;
    struct crowd c = {.turns = hk_turns_new(LONG_MS)};
    pthread_t threads[THREADS];
    assert_non_null(c.turns);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_often, &c), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&c.done), THREADS * ROUNDS);
    assert_int_equal(atomic_load(&c.most), 1);
    hk_turns_unref(c.turns);
}

static void *write_once(void *arg)
{
    struct one *one = arg;
    struct crowd *c = one->crowd;
    if (hk_turns_take(c->turns)) {
        c->order[c->n++] = one->id; /* under the turn */
        hk_turns_give(c->turns);
    }
    return NULL;
}

/* Who took a turn again and again would be first each time, if it could. */
static void the_turn_goes_to_who_asked_first(void **state)
{
    (void)state;
    struct crowd c = {.turns = hk_turns_new(LONG_MS)};
    struct one waits = {&c, 1}, again = {&c, 2};
    pthread_t thread;
    assert_true(hk_turns_take(c.turns));
    assert_int_equal(pthread_create(&thread, NULL, write_once, &waits), 0);
    while (!hk_turns_has_line(c.turns))
        sched_yield();
    hk_turns_give(c.turns);
    (void)write_once(&again);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.order[0], 1);
    hk_turns_unref(c.turns);
}

static void who_waits_too_long_leaves_the_line(void **state)
{
    (void)state;
    struct hk_turns *turns = hk_turns_new(20);
    assert_true(hk_turns_take(turns));
    assert_false(hk_turns_take(turns));
    assert_false(hk_turns_has_line(turns));
    hk_turns_give(turns);
    assert_true(hk_turns_take(turns));
    hk_turns_give(turns);
    struct hk_turns *same = hk_turns_ref(turns);
    hk_turns_unref(turns);
    assert_true(hk_turns_take(same));
    hk_turns_give(same);
    hk_turns_unref(same);
    hk_turns_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_writes_at_a_time_and_all_come_to_write),
        cmocka_unit_test(the_turn_goes_to_who_asked_first),
        cmocka_unit_test(who_waits_too_long_leaves_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
