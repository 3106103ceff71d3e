/* SPDX-License-Identifier: Apache-2.0 */
/* I16: in a healed system whatever is due is sent within a bound that whoever wrote the log names (lease, poll and the time
 * that all of it takes), and what a dead relay had is taken over within the same. */
#include "checker_impl.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
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
    int64_t due = later(later(leg->due, msg->due), later(msg->committed_at, leg->requeued_at));
    due = later(due, later(c->heal_t, c->dests.items[leg->dest].resumed_at));
    if (c->t > due + c->bound_ms)
        hk_checker_complain(c, "I16", "%s is sent %lld ms after it could have been",
                            hk_checker_msg_name(c, leg->msg), (long long)(c->t - due));
}

/* At an orphan: the lease's end is when it could have been taken. */
void hk_checker_reclaimed(struct checker *c, const struct clane *lane)
{
    if (is_judged(c) && c->t > later(lane->until, c->heal_t) + c->bound_ms)
        hk_checker_complain(c, "I16", "what lane %lld had is taken over %lld ms after its lease ran out",
                            (long long)lane->lane, (long long)(c->t - lane->until));
}
