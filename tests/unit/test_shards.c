/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of the shards: fair, stable, and nothing leaves that is in hand. */
#include <hikyaku/rng.h>

#include "check.h"
#include "core/shards.h"

enum {
    LANES = 70
};

static struct hk_shards_plan decide(struct hk_shards_view view)
{
    struct hk_shards_plan plan;
    memset(&plan, 0xff, sizeof plan);
    hk_shards_decide(&view, &plan);
    return plan;
}

static unsigned count(uint64_t set)
{
    unsigned n = 0;
    for (; set; set &= set - 1)
        n++;
    return n;
}

static void who_is_alone_takes_all(void **state)
{
    (void)state;
    struct hk_shards_plan plan = decide((struct hk_shards_view){.n_shards = 64, .n_live = 1, .n_free = 64});
    assert_int_equal(plan.take, 64);
    assert_true(!plan.leaving && !plan.let_go && !plan.stay);
    plan = decide((struct hk_shards_view){.n_shards = 64, .n_live = 0, .n_free = 64}); /* we live */
    assert_int_equal(plan.take, 64);
}

static void what_is_in_hand_stays_until_it_is_settled(void **state)
{
    (void)state;
    struct hk_shards_view view = {.n_shards = 4, .n_live = 2, .mine = 0xf, .in_hand = 0xe};
    struct hk_shards_plan plan = decide(view);
    assert_int_equal(plan.leaving, 0x9); /* the idle one first, then the highest */
    assert_int_equal(plan.let_go, 0x1);
    view.leaving = plan.leaving;
    view.in_hand = 0x2;
    assert_int_equal(decide(view).let_go, 0x9);
}

static void what_was_to_leave_stays_when_another_has_left(void **state)
{
    (void)state;
    struct hk_shards_plan plan = decide(
        (struct hk_shards_view){.n_shards = 4, .n_live = 1, .mine = 0xf, .leaving = 0x8, .in_hand = 0x8});
    assert_true(plan.stay);
    assert_true(!plan.leaving && !plan.let_go && !plan.take);
}

static void nothing_is_taken_that_is_not_free(void **state)
{
    (void)state;
    assert_int_equal(decide((struct hk_shards_view){.n_shards = 64, .n_live = 2}).take, 0);
}

/* ---- many of them ---- */

struct crowd {
    unsigned n_shards;
    uint64_t mine[LANES], leaving[LANES];
    bool lives[LANES];
};

static uint64_t taken(const struct crowd *c)
{
    uint64_t all = 0;
    for (size_t i = 0; i < LANES; i++)
        all |= c->mine[i];
    return all;
}

/* One look of one lane; false: nothing is to be changed. */
static bool step(struct crowd *c, size_t i, uint64_t in_hand)
{
    struct hk_shards_view view = {.n_shards = c->n_shards,
                                  .mine = c->mine[i],
                                  .leaving = c->leaving[i],
                                  .in_hand = in_hand & c->mine[i],
                                  .n_free = c->n_shards - count(taken(c))};
    for (size_t k = 0; k < LANES; k++) {
        view.n_live += c->lives[k];
        view.before += c->lives[k] && k < i;
    }
    struct hk_shards_plan plan = decide(view);
    assert_true((plan.leaving & ~c->mine[i]) == 0);
    assert_true((plan.let_go & view.in_hand) == 0);
    bool changed = plan.leaving != c->leaving[i] || plan.let_go || plan.stay;
    c->mine[i] &= ~plan.let_go;
    c->leaving[i] = plan.leaving & ~plan.let_go;
    for (unsigned s = 0; plan.take && s < c->n_shards; s++)
        if (!(taken(c) >> s & 1)) {
            c->mine[i] |= UINT64_C(1) << s;
            plan.take--;
            changed = true;
        }
    return changed;
}

static void check_fair(const struct crowd *c)
{
    unsigned least = HK_SHARDS_MAX, most = 0;
    for (size_t i = 0; i < LANES; i++) {
        unsigned n = count(c->mine[i]);
        if (!c->lives[i])
            continue;
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    assert_int_equal(count(taken(c)), c->n_shards);
    assert_true(most - least <= 1);
}

static void come_and_go(struct crowd *c, struct hk_rng *rng)
{
    size_t i = (size_t)hk_rng_upto(rng, LANES - 1);
    if (!c->lives[i] || i) /* somebody always lives */
        c->lives[i] = !c->lives[i];
    c->mine[i] = c->leaving[i] = 0;
}

static void all_come_to_a_fair_share_and_rest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct hk_rng rng;
        struct crowd c = {.n_shards = seed % 2 ? 64 : 16, .lives = {true}};
        hk_rng_seed(&rng, seed, 0);
        for (int n = 0; n < 200; n++) {
            if (hk_rng_upto(&rng, 9) == 0)
                come_and_go(&c, &rng);
            size_t i = (size_t)hk_rng_upto(&rng, LANES - 1);
            if (c.lives[i])
                (void)step(&c, i, hk_rng_next(&rng));
        }
        bool changed = true;
        for (int round = 0; changed && round < 300; round++) {
            changed = false;
            for (size_t i = 0; i < LANES; i++)
                changed |= c.lives[i] && step(&c, i, 0);
        }
        assert_false(changed);
        check_fair(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_alone_takes_all),
        cmocka_unit_test(what_is_in_hand_stays_until_it_is_settled),
        cmocka_unit_test(what_was_to_leave_stays_when_another_has_left),
        cmocka_unit_test(nothing_is_taken_that_is_not_free),
        cmocka_unit_test(all_come_to_a_fair_share_and_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
