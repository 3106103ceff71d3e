/* SPDX-License-Identifier: Apache-2.0 */
/* I24: an operator has set the store's time back to the clock. Nobody who had a lane goes on with it, no message waits for the wrong time, none
 * for less than it was meant to, and breakers are told in the right time. All times of before are reckoned anew, so that what was
 * earlier is earlier still. */
#include "base/str.h"
#include "checker_impl.h"

enum {
    IN_STEP_MS = 2000 /* by so much the store's time may be ahead, and is right all the same */
};

/* The store's clock was set forward or back. */
void hk_checker_jump(struct checker *c)
{
    int64_t by_ms = hk_checker_number(c, "wait"), before = c->clock - by_ms;
    bool odd = hk_checker_clock_is_odd(c);
    if (!odd || before > c->clock_was)
        c->clock_was = before;
    c->jumped_ms = (odd ? c->jumped_ms : 0) + (by_ms > 0 ? by_ms : 0);
    c->jumped_at = c->t;
}

/* How far the clock went forward in the last jumps: a relay that had a message in hand meanwhile reckons by the time before. */
int64_t hk_checker_jumped_ms(const struct checker *c)
{
    return hk_checker_clock_is_odd(c) ? c->jumped_ms : 0;
}

static void set_back(int64_t *t, int64_t by_ms)
{
    if (*t && *t != INT64_MIN && *t != INT64_MAX)
        *t -= by_ms;
}

static void set_legs_back(struct checker *c, int64_t by_ms)
{
    for (size_t i = 0; i < c->legs.n; i++) {
        struct cleg *leg = &c->legs.items[i];
        int64_t *times[] = {&leg->due,         &leg->hint_due,  &leg->died_at, &leg->requeued_at,
                            &leg->restored_at, &leg->parted_at, &leg->sent_at};
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++)
            set_back(times[k], by_ms);
        if (!leg->wait_ms && leg->due > c->t) /* it was to go at once */
            leg->due = c->t;
    }
    for (size_t i = 0; i < c->msgs.n; i++) {
        set_back(&c->msgs.items[i].began, by_ms);
        set_back(&c->msgs.items[i].committed_at, by_ms);
    }
}

/* Was something heard of it less than half a lease ago? The store's time goes on at half the speed of the clock. */
static bool may_run(const struct checker *c, const struct clane *lane, int64_t by_ms)
{
    int64_t silent = c->t + by_ms - lane->heard_at;
    return lane->live && !lane->dead && 2 * (silent + c->options.slack_ms + 1) < lane->until - lane->heard_at;
}

static void set_relays_back(struct checker *c, int64_t by_ms)
{
    for (size_t i = 0; i < c->lanes.n; i++) {
        struct clane *lane = &c->lanes.items[i];
        int64_t *times[] = {&lane->until, &lane->heard_at, &lane->lost_at, &lane->touched_at};
        if (may_run(c, lane, by_ms))
            hk_checker_complain(c, "I24", "the store's time is set back while lane %lld lives",
                                (long long)lane->lane);
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++)
            set_back(times[k], by_ms);
        lane->dead = lane->ended = lane->doubted = true; /* or asleep for longer than its lease */
    }
    for (size_t i = 0; i < c->guards.n; i++)
        set_back(&c->guards.items[i].until, by_ms);
    for (size_t i = 0; i < c->failing.n; i++) {
        set_back(&c->failing.items[i].first, by_ms);
        set_back(&c->failing.items[i].said, by_ms);
    }
    for (size_t i = 0; i < c->beliefs.n; i++)
        set_back(&c->beliefs.items[i].until, by_ms);
    for (size_t i = 0; i < c->jobs.n; i++)
        set_back(&c->jobs.items[i].last, by_ms);
}

void hk_checker_reset(struct checker *c)
{
    int64_t by_ms = hk_checker_number(c, "wait");
    set_legs_back(c, by_ms);
    set_relays_back(c, by_ms);
    for (size_t i = 0; i < c->dests.n; i++) {
        struct cdest *dest = &c->dests.items[i];
        int64_t *times[] = {&dest->resumed_at, &dest->open_until, &dest->idle_at, &dest->paused_at};
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++)
            set_back(times[k], by_ms);
    }
    set_back(&c->woke_at, by_ms);
    c->jumped_at = c->t;
    c->clock_was = c->clock;
    c->was_reset = true;
    hk_checker_note_act(c, hk_str_of("clock-reset"));
}

void hk_checker_ended(struct checker *c, const struct clane *lane)
{
    if (lane && lane->ended)
        hk_checker_complain(c, "I24", "lane %lld goes on, though the store's time was set back since",
                            (long long)lane->lane);
}

/* Written down after the reset: for no longer than it may be open. */
void hk_checker_told_rightly(struct checker *c, size_t dest, int64_t until)
{
    int64_t most = c->dests.items[dest].open_most;
    if (c->was_reset && most && until > c->t + most + IN_STEP_MS)
        hk_checker_complain(c, "I24", "the breaker of %s is said to be open for %lld ms, of %lld at most",
                            hk_checker_dest_name(c, dest), (long long)(until - c->t), (long long)most);
}

/* A row, or (without a message) a breaker, after the reset. */
void hk_checker_waits(struct checker *c)
{
    size_t msg = hk_checker_msg(c, hk_checker_text(c, "m"));
    size_t dest = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    if (!hk_checker_text(c, "m").len && dest != NOBODY)
        hk_checker_told_rightly(c, dest, hk_checker_number(c, "due"));
    size_t l = msg == NOBODY ? NOBODY : hk_checker_leg(c, msg, hk_checker_text(c, "dest"));
    if (l == NOBODY)
        return;
    struct cleg *leg = &c->legs.items[l];
    int64_t due = hk_checker_number(c, "due"), named = leg->life == 1 ? c->msgs.items[leg->msg].due : 0;
    int64_t latest =
        c->t + leg->wait_ms + 2 * leg->took_ms; /* from its last attempt on, by a time of half speed */
    if (named > c->t)
        leg->deferred = true;
    bool waits = !leg->unsure && !leg->forced; /* what is forced goes, when it is due or not */
    if (due > (named > latest ? named : latest) + IN_STEP_MS && waits)
        hk_checker_complain(c, "I24", "%s waits %lld ms too long after the store's time was set back",
                            hk_checker_msg_name(c, leg->msg), (long long)(due - latest));
    if (leg->drowsy && due < leg->due)
        leg->due = due; /* how long it was meant to wait nobody wrote down */
    if (leg->wait_ms && due < leg->due && due < leg->due_by_clock)
        hk_checker_complain(c, "I24", "%s waits %lld ms less after the store's time was set back",
                            hk_checker_msg_name(c, leg->msg), (long long)(leg->due - due));
}
