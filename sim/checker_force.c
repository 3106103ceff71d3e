/* SPDX-License-Identifier: Apache-2.0 */
/* I28: of a destination whose concurrency all relays share no more requests are on their way than that, over all relays whose lane lives.
 * I29: what a person forces goes within the bound, though its destination be paused or broken; so many at once, and for one attempt.
 * I30: a message that names the time of its attempt has that time, no more and, as long as its policy has not yet begun to count, no
 * less; and nothing is on its way when the lease is over. */
#include "checker_impl.h"

enum {
    FORCED_MAX = 16, /* docs/runbook.md: in flight at once, of a destination and relay */
    LOOK_BACK = 2000
};

static bool is_on_way(const struct csend *s)
{
    return !s->confirmed && !s->failed && !s->orphaned && !s->gone && !s->forgotten;
}

/* ---- I28 ---- */

void hk_checker_seats(struct checker *c)
{
    const struct csend *mine = &c->sends.items[c->sends.n - 1];
    size_t dest = c->legs.items[mine->leg].dest;
    int64_t n = 0, cap = c->dests.items[dest].cap;
    if (!c->dests.items[dest].all || mine->orphaned || mine->forced)
        return;
    for (size_t i = c->sends.n; i-- > c->forgot_sends && c->sends.n - i < LOOK_BACK;) {
        const struct csend *s = &c->sends.items[i];
        const struct clane *lane = is_on_way(s) && !s->forced ? hk_checker_lane(c, s->lane) : NULL;
        n += lane && lane->live && !lane->doubted && !lane->ended && c->legs.items[s->leg].dest == dest;
    }
    if (n > cap)
        hk_checker_complain(c, "I28", "%lld sends at once to %s by all relays, of %lld", (long long)n,
                            hk_checker_dest_name(c, dest), (long long)cap);
}

/* ---- I29 ---- */

void hk_checker_force(struct checker *c, size_t msg)
{
    size_t l = hk_checker_leg(c, msg, hk_checker_text(c, "dest"));
    hk_checker_note_act(c, hk_checker_text(c, "ev"));
    if (l == NOBODY)
        return;
    struct cleg *leg = &c->legs.items[l];
    leg->forced = true;
    leg->forced_at = leg->due = c->t;
    leg->due_by_clock = c->clock;
    leg->hint_due = leg->wait_ms = 0;
}

static void check_in_time(struct checker *c, const struct cleg *leg)
{
    const struct cmsg *msg = &c->msgs.items[leg->msg];
    bool keyed = msg->key != NOBODY && c->dests.items[leg->dest].order != ORDER_NONE;
    int64_t since = leg->forced_at > c->heal_t ? leg->forced_at : c->heal_t;
    if (!c->healed || !c->bound_ms || keyed || hk_checker_clock_is_odd(c) || c->t - since <= c->bound_ms)
        return;
    hk_checker_complain(c, "I29", "%s was forced, and has waited for %lld ms", hk_checker_msg_name(c, leg->msg),
                        (long long)(c->t - since));
}

void hk_checker_forced_resume(struct checker *c, size_t dest)
{
    for (size_t i = 0; i < c->legs.n; i++) {
        const struct cleg *leg = &c->legs.items[i];
        if (leg->dest == dest && leg->state == LEG_LIVE && leg->forced && !leg->open_sends)
            check_in_time(c, leg);
    }
}

void hk_checker_forced_send(struct checker *c)
{
    const struct csend *mine = &c->sends.items[c->sends.n - 1];
    const struct cleg *leg = &c->legs.items[mine->leg];
    size_t n = 0;
    if (!mine->forced || mine->orphaned)
        return;
    check_in_time(c, leg);
    for (size_t i = c->sends.n; i-- > 0 && c->sends.n - i < LOOK_BACK;) {
        const struct csend *s = &c->sends.items[i];
        n += s->forced && s->relay == mine->relay && is_on_way(s) && c->legs.items[s->leg].dest == leg->dest;
    }
    if (c->dests.items[leg->dest].paused && n > FORCED_MAX)
        hk_checker_complain(c, "I29", "%zu forced sends at once to %s", n, hk_checker_dest_name(c, leg->dest));
}

/* ---- I30 ---- */

void hk_checker_timeout(struct checker *c, bool stands)
{
    const struct csend *mine = &c->sends.items[c->sends.n - 1];
    const struct cleg *leg = &c->legs.items[mine->leg];
    int64_t own = c->msgs.items[leg->msg].timeout;
    if (!own || !mine->timeout)
        return;
    if (mine->timeout > own)
        hk_checker_complain(c, "I30", "%s is sent with %lld ms, of %lld", hk_checker_msg_name(c, leg->msg),
                            (long long)mine->timeout, (long long)own);
    if (mine->timeout < own && stands && !leg->attempts)
        hk_checker_complain(c, "I30", "%s is sent with %lld ms, and has %lld", hk_checker_msg_name(c, leg->msg),
                            (long long)mine->timeout, (long long)own);
}

/* At an answer. A process that was stopped hears of it late. */
void hk_checker_took(struct checker *c, const struct csend *send)
{
    const struct clane *lane = hk_checker_lane(c, send->lane);
    if (c->stopped || hk_checker_clock_is_odd(c) || c->forgot_at != INT64_MIN || send->orphaned)
        return;
    if (send->timeout && c->t - send->at > send->timeout + c->options.slack_ms + 1)
        hk_checker_complain(c, "I30", "an attempt took %lld ms, of %lld", (long long)(c->t - send->at),
                            (long long)send->timeout);
    if (send->timeout && lane && lane->live && lane->until + c->options.slack_ms < c->t)
        hk_checker_complain(c, "I30", "an attempt was on its way when the lease was over");
}
