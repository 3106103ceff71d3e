/* SPDX-License-Identifier: Apache-2.0 */
/* I25: destinations that are kept in the store come, change and go while relays run. A relay sends only to one that it has learnt of and can
 * use, and stops at once when it learns that it is gone; one that was paused before it learnt of it is paused. A message dies of an
 * unknown destination only if there was none when it was last in hand. (Messages that a relay has in hand to refuse them keep no order: if
 * it dies with them, and the destination comes back, they have no place in it.) */
#include <string.h>

#include "base/str.h"
#include "checker_impl.h"

enum {
    JUST_MS = 1500
};

static bool is(struct hk_str text, const char *word)
{
    return hk_str_eq(text, hk_str_of(word));
}

void hk_checker_define(struct checker *c)
{
    size_t i = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    hk_checker_note_act(c, hk_str_of("define"));
    if (i == NOBODY)
        return;
    struct cdest *dest = &c->dests.items[i];
    dest->kept = true;
    dest->there = !is(hk_checker_text(c, "kind"), "removed");
    if (is(hk_checker_text(c, "kind"), "made"))
        dest->made_line = c->line;
}

static struct clearnt *find(struct checker *c, size_t relay, size_t dest)
{
    for (size_t i = 0; i < c->learnt.n; i++)
        if (c->learnt.items[i].relay == relay && c->learnt.items[i].dest == dest)
            return &c->learnt.items[i];
    return NULL;
}

void hk_checker_learn(struct checker *c)
{
    size_t relay = hk_names_get(&c->relay_names, hk_checker_text(c, "relay"));
    size_t dest = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    struct hk_str kind = hk_checker_text(c, "kind");
    if (dest == NOBODY)
        return;
    c->dests.items[dest].kept = true;
    struct clearnt *l = find(c, relay, dest);
    if (!l) {
        l = PUSH(c->learnt);
        *l = (struct clearnt){.relay = relay, .dest = dest};
    }
    if (!l->there)
        l->line = c->line;
    if (!l->there)
        l->at = c->t;
    l->there = !is(kind, "gone");
    l->held = is(kind, "held");
}

/* For a while: what was chosen before may be claimed since. */
static bool knows(struct checker *c, size_t relay, size_t dest)
{
    const struct clearnt *l = find(c, relay, dest);
    return !c->dests.items[dest].kept || (l && l->there && c->t - l->at > JUST_MS);
}

void hk_checker_aimed(struct checker *c, struct crow *row, const struct clane *lane)
{
    row->claim_line = c->line;
    if (row->leg != NOBODY && lane)
        c->legs.items[row->leg].unaimed = !knows(c, lane->relay, c->legs.items[row->leg].dest);
}

void hk_checker_strays(struct cleg *leg)
{
    leg->orphans++;
    leg->strayed |= leg->unaimed;
}

void hk_checker_unlearn(struct checker *c, size_t relay)
{
    for (size_t i = 0; i < c->learnt.n; i++)
        if (c->learnt.items[i].relay == relay)
            c->learnt.items[i].there = false;
}

void hk_checker_defined(struct checker *c, size_t relay, size_t dest, bool forced)
{
    const struct cdest *d = &c->dests.items[dest];
    const struct clearnt *l = find(c, relay, dest);
    if (!d->kept)
        return;
    if (!l || !l->there)
        hk_checker_complain(c, "I25", "is sent to %s, which its relay does not know",
                            hk_checker_dest_name(c, dest));
    else if (l->held)
        hk_checker_complain(c, "I25", "is sent to %s, which its relay cannot use",
                            hk_checker_dest_name(c, dest));
    else if (d->paused && d->paused_line < l->line && !forced)
        hk_checker_complain(c, "I25", "is sent to %s, which was paused before its relay knew it",
                            hk_checker_dest_name(c, dest));
}

void hk_checker_unknown(struct checker *c, const struct cleg *leg, size_t claim_line)
{
    const struct cdest *d = &c->dests.items[leg->dest];
    if (d->kept && d->there && d->made_line < claim_line)
        hk_checker_complain(c, "I25", "%s dies of an unknown destination, and there is %s",
                            hk_checker_msg_name(c, leg->msg), hk_checker_dest_name(c, leg->dest));
}
