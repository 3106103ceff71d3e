/* SPDX-License-Identifier: Apache-2.0 */
/* I26: a sink that has no room for a message was not asked for an attempt. The message is given back, and nothing is charged;
 * until there is room again the relay asks for no more than it had in hand. What it had chosen it may claim and give back, but
 * not again and again. */
#include "base/str.h"
#include "checker_impl.h"

enum {
    CHOSEN_MAX = 200,
    BACKS_MAX =
        4 /* a store that does not know what it claimed gives that back by itself: the relay never had it */
};

static struct cfull *full_at(struct checker *c, size_t relay, size_t dest)
{
    for (size_t i = 0; i < c->fulls.n; i++)
        if (c->fulls.items[i].relay == relay && c->fulls.items[i].dest == dest)
            return &c->fulls.items[i];
    return NULL;
}

void hk_checker_busy(struct checker *c, struct csend *s)
{
    if (!s)
        return;
    size_t dest = c->legs.items[s->leg].dest;
    c->legs.items[s->leg].open_sends -= !s->confirmed && !s->failed && !s->orphaned;
    s->failed = s->busy = true;
    c->result->busy++;
    hk_checker_answered(c, &c->dests.items[dest]);
    if (full_at(c, s->relay, dest))
        return;
    struct cfull *f = PUSH(c->fulls);
    *f = (struct cfull){.relay = s->relay, .dest = dest, .line = c->line, .t = c->t};
}

void hk_checker_room(struct checker *c)
{
    size_t relay = hk_names_get(&c->relay_names, hk_checker_text(c, "relay"));
    size_t dest = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    struct cfull *f = dest == NOBODY ? NULL : full_at(c, relay, dest);
    if (!f)
        return;
    c->dests.items[dest].room_at = c->t;
    *f = c->fulls.items[--c->fulls.n];
}

void hk_checker_room_forget(struct checker *c, size_t relay)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->fulls.n; i++)
        if (c->fulls.items[i].relay != relay)
            c->fulls.items[kept++] = c->fulls.items[i];
    c->fulls.n = kept;
}

/* At a send: the shell may have been told to make several before it heard of the first one's refusal, all at the same time. */
void hk_checker_room_asked(struct checker *c, size_t relay, size_t dest)
{
    struct cfull *f = full_at(c, relay, dest);
    int64_t cap = c->dests.items[dest].cap ? c->dests.items[dest].cap : CHOSEN_MAX;
    bool later = f && c->t > f->t + c->options.slack_ms && !hk_checker_clock_is_odd(c);
    if (f && (++f->asked > cap || later))
        hk_checker_complain(c, "I26", "%s has no room, and is sent to", hk_checker_dest_name(c, dest));
}

/* At a settle. */
void hk_checker_room_settled(struct checker *c, const struct cleg *leg, const struct csend *send,
                             struct crow *row, size_t relay, struct hk_str kind)
{
    bool release = hk_str_eq(kind, hk_str_of("release"));
    struct cfull *f = relay == NOBODY ? NULL : full_at(c, relay, leg->dest);
    if (send && send->busy && !release)
        hk_checker_complain(c, "I26", "%s found no room, and is settled as %.*s",
                            hk_checker_msg_name(c, leg->msg), (int)kind.len, kind.ptr);
    if (!f || !release || row->taken_line <= f->line)
        return;
    row->backs = row->back_line > f->line ? row->backs + 1 : 1;
    if (row->backs > BACKS_MAX)
        hk_checker_complain(c, "I26", "%s has no room, and %s is claimed and given back again and again",
                            hk_checker_dest_name(c, leg->dest), hk_checker_msg_name(c, leg->msg));
    row->back_line = c->line;
}
