/* SPDX-License-Identifier: Apache-2.0 */
/* I11: order per key. Asked at each send: is anybody of the same destination and key in the way? */
#include "checker_impl.h"

/* A person who requeues or restores a message into a key that is at work: relays know of it within a second. */
enum {
    REQUEUE_MS = 1500
};

/* Was `a` there before `b` began? Messages of transactions that overlap have no order. */
static bool earlier(const struct cmsg *a, const struct cmsg *b)
{
    return a->committed_at < b->began;
}

static bool is_over(const struct checker *c, const struct cleg *leg)
{
    switch (leg->state) {
    case LEG_LIVE:
        return false;
    case LEG_DEAD: /* one that died before it was routed names no destination: it holds nobody */
        return leg->died_unrouted || c->dests.items[leg->dest].order == ORDER_SKIP;
    case LEG_SENT:
    case LEG_CANCELLED:
    case LEG_DISCARDED:
    case LEG_FORGOTTEN:
        return true;
    }
    return true;
}

/* Had it a row of its own, with a place in the order, before relays knew that a person put another in its way at `t`? */
static bool parted_by(const struct cleg *leg, int64_t t)
{
    return leg->parted_at && leg->parted_at <= t + REQUEUE_MS;
}

/* It waits for its next attempt, also if the one before was not made for want of a key: it is the head of its key. */
static bool has_begun(const struct cleg *leg)
{
    return leg->ever_sent || leg->put_off;
}

/* A requeued message goes before those who waited behind it. */
static bool requeued_in_the_way(const struct checker *c, const struct cleg *leg, const struct cleg *other)
{
    const struct cmsg *mine = &c->msgs.items[leg->msg], *its = &c->msgs.items[other->msg];
    bool waited = !(other->died_unrouted && (leg->orphaned || parted_by(leg, other->requeued_at)));
    return other->state == LEG_LIVE && earlier(its, mine) && !its->due && !mine->due && !has_begun(leg) &&
           waited && c->dests.items[leg->dest].order == ORDER_BLOCK;
}

/* Why `leg` must not be sent while `other` is as it is; NULL: it may. */
static const char *in_the_way(const struct checker *c, const struct cleg *leg, const struct cleg *other)
{
    const struct cmsg *mine = &c->msgs.items[leg->msg], *its = &c->msgs.items[other->msg];
    if (other->open_sends)
        return "is on its way";
    /* A message that was tried before its time, by a clock that was wrong, joins the order when it is tried in its time. */
    if (leg->life == 1 && other->state == LEG_LIVE && other->attempts > 0 && !other->deferred)
        return "waits for its next attempt";
    if (is_over(c, other) || leg->life > 1)
        return NULL;
    if (other->restored_at && (has_begun(leg) || leg->orphaned || parted_by(leg, other->restored_at)))
        return NULL;
    if (other->life > 1)
        return requeued_in_the_way(c, leg, other) ? "was requeued before it" : NULL;
    if (mine->due) /* joins the order when it is due, or when a relay dies with it: then it has been in hand */
        return other->state == LEG_DEAD && other->died_at < mine->due && !leg->orphaned ? "is a dead head"
                                                                                        : NULL;
    return !its->due && earlier(its, mine) ? "comes before it" : NULL;
}

void hk_checker_heard(struct checker *c, struct clane *lane)
{
    if (c->t - lane->heard_at > REQUEUE_MS) {
        lane->lost_at = lane->heard_at;
        lane->touched_at = c->t;
    }
    lane->heard_at = c->t;
    lane->until = hk_checker_number(c, "until");
}

/* Since when the relay that sends may not know what people do: it was out of touch with the store until just now. INT64_MAX: it does. */
static int64_t unheard_since(const struct checker *c)
{
    for (size_t i = c->lanes.n; i-- > 0;) {
        const struct clane *lane = &c->lanes.items[i];
        if (lane->lane != hk_checker_number(c, "lane"))
            continue;
        bool just = lane->touched_at != INT64_MIN && c->t - lane->touched_at < REQUEUE_MS;
        return just ? lane->lost_at : INT64_MAX;
    }
    return INT64_MAX;
}

/* Has a person put it there so lately that relays need not know? Those that waited already they do know. */
static bool is_new(const struct checker *c, const struct cleg *leg)
{
    bool asleep = c->woke_at != INT64_MIN && c->t - c->woke_at < REQUEUE_MS; /* it was just now */
    int64_t most = hk_checker_clock_is_odd(c) || asleep ? INT64_MAX : REQUEUE_MS, since = unheard_since(c);
    return (leg->life > 1 && (c->t - leg->requeued_at < most || leg->requeued_at >= since)) ||
           (leg->restored_at && (c->t - leg->restored_at < most || leg->restored_at >= since));
}

void hk_checker_order(struct checker *c, size_t l)
{
    const struct cleg *leg = &c->legs.items[l];
    const struct cmsg *msg = &c->msgs.items[leg->msg];
    if (msg->key == NOBODY || c->dests.items[leg->dest].order == ORDER_NONE)
        return;
    char room[512];
    struct hk_str dest = {c->dest_names.texts[leg->dest], c->dest_names.lens[leg->dest]};
    struct hk_str key = {c->texts.texts[msg->key], c->texts.lens[msg->key]};
    size_t number = hk_names_find(&c->key_names, hk_checker_pair(room, sizeof room, dest, key));
    for (size_t i = number == NOBODY ? NOBODY : c->heads.items[number]; i != NOBODY;
         i = c->legs.items[i].next) {
        const struct cleg *other = &c->legs.items[i];
        bool strays = leg->strayed || (other->strayed && other->state == LEG_LIVE);
        bool unknown = is_new(c, leg) || is_new(c, other) || strays;
        const char *why = i == l || unknown ? NULL : in_the_way(c, leg, other);
        if (why)
            hk_checker_complain(c, "I11", "%s is sent to %s while %s of its key %s",
                                hk_checker_msg_name(c, leg->msg), hk_checker_dest_name(c, leg->dest),
                                hk_checker_msg_name(c, c->legs.items[i].msg), why);
    }
}
