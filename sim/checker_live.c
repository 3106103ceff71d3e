/* SPDX-License-Identifier: Apache-2.0 */
/* I16: in a healed system whatever is due is sent within a bound that whoever wrote the log names (lease, poll and the time
 * that all of it takes), and what a dead relay had is taken over within the same.
 * I21: a destination that has something to send and nothing on its way waits for a place no longer than its share allows,
 * however slow the others are. */
#include "checker_impl.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void hk_checker_healed(struct checker *c)
{
    c->healed = true;
    c->heal_t = c->t;
    c->bound_ms = hk_checker_number(c, "wait"); /* 0 = nobody says */
}

static bool is_judged(const struct checker *c)
{
    return c->healed && c->bound_ms && !hk_checker_clock_is_odd(c);
}

/* At a send. Who waits for others of its key is not judged: they are. */
void hk_checker_in_time(struct checker *c, const struct cleg *leg)
{
    const struct cmsg *msg = &c->msgs.items[leg->msg];
    if (!is_judged(c) || (msg->key != NOBODY && c->dests.items[leg->dest].order != ORDER_NONE))
        return;
    int64_t due = later(leg->due, later(msg->committed_at, leg->requeued_at));
    due = later(due, later(c->heal_t,
                           later(c->dests.items[leg->dest].resumed_at, c->dests.items[leg->dest].room_at)));
    int64_t late_ms = earlier(c->t - due, c->clock - msg->due); /* each by its own time */
    if (late_ms > c->bound_ms)
        hk_checker_complain(c, "I16", "%s is sent %lld ms after it could have been",
                            hk_checker_msg_name(c, leg->msg), (long long)late_ms);
}

/* At a send. Who wrote the log names the bound, of a world in which nothing else holds it up. */
void hk_checker_turn(struct checker *c, const struct cleg *leg)
{
    struct cdest *dest = &c->dests.items[leg->dest];
    const struct cmsg *msg = &c->msgs.items[leg->msg];
    int64_t ready = later(later(leg->due, msg->due), later(msg->committed_at, dest->idle_at));
    bool keyed = msg->key != NOBODY && dest->order != ORDER_NONE;
    if (dest->turn_ms && !dest->on_way && !keyed && c->t > ready + dest->turn_ms)
        hk_checker_complain(c, "I21", "%s was passed over for %lld ms, of %lld",
                            hk_checker_dest_name(c, leg->dest), (long long)(c->t - ready),
                            (long long)dest->turn_ms);
    dest->on_way++;
}

void hk_checker_answered(struct checker *c, struct cdest *dest)
{
    dest->on_way -= dest->on_way > 0;
    dest->idle_at = c->t;
}

/* At an orphan: the lease's end is when it could have been taken. */
void hk_checker_reclaimed(struct checker *c, const struct clane *lane)
{
    if (is_judged(c) && c->t > later(lane->until, c->heal_t) + c->bound_ms)
        hk_checker_complain(c, "I16", "what lane %lld had is taken over %lld ms after its lease ran out",
                            (long long)lane->lane, (long long)(c->t - lane->until));
}
