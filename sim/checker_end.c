/* SPDX-License-Identifier: Apache-2.0 */
/* What can only be judged at the end: is everything there (I1), repeats within their bound (I9), and do the tables say
 * what the log says (I12, I13)? */
#include <stdlib.h>

#include "base/str.h"
#include "checker_impl.h"

static bool is(struct hk_str s, const char *text)
{
    return hk_str_eq(s, hk_str_of(text));
}

/* ---- the dump ---- */

static void add_record(struct checker *c, size_t leg)
{
    *PUSH(c->records) =
        (struct crecord){.leg = leg, .life = hk_checker_number(c, "life"), .n = hk_checker_number(c, "n")};
    c->legs.items[leg].records++;
}

/* What the log must say of a message whose letter has this status, and how many lives came after the one that the letter
 * speaks of: a letter that was requeued keeps the number of the life that ended. */
static const struct {
    const char *status;
    enum leg_state state;
    int64_t later;
} letters[] = {
    {"failed", LEG_DEAD, 0},         {"retrying", LEG_LIVE, 1},       {"resolved", LEG_SENT, 1},
    {"discarded", LEG_DISCARDED, 0}, {"discarded", LEG_CANCELLED, 1}, /* requeued, and then taken back */
};

enum {
    N_LETTERS = sizeof letters / sizeof letters[0]
};

static void dump_letter(struct checker *c, struct cleg *leg)
{
    struct hk_str status = hk_checker_text(c, "status");
    bool open = is(status, "failed");
    leg->letters++;
    leg->open_letters += open;
    if (open)
        leg->told = hk_checker_number(c, "n");
    leg->letter_life = hk_checker_number(c, "life");
    for (leg->letter = 0; leg->letter < N_LETTERS; leg->letter++)
        if (is(status, letters[leg->letter].status))
            return;
    hk_checker_complain(c, "format", "no such status of a letter");
}

static void dump_leg(struct checker *c, size_t l, struct hk_str table)
{
    struct cleg *leg = &c->legs.items[l];
    if (is(table, "attempts") && !hk_checker_number(c, "n")) {
        leg->traces++;
        return;
    }
    if (is(table, "attempts")) {
        add_record(c, l);
        return;
    }
    if (is(table, "outbox") || is(table, "retry")) {
        leg->rows++;
        leg->row_due = hk_checker_number(c, "due");
        leg->told = hk_checker_number(c, "n");
    } else if (is(table, "dead")) {
        dump_letter(c, leg);
    } else if (is(table, "sent")) {
        leg->sents++;
        leg->told = hk_checker_number(c, "n");
    } else if (is(table, "cancelled")) {
        leg->cancels++;
    } else {
        hk_checker_complain(c, "format", "no such table");
    }
}

void hk_checker_dump_line(struct checker *c)
{
    struct hk_str table = hk_checker_text(c, "table");
    if (is(table, "audit")) {
        hk_checker_audit_line(c);
        return;
    }
    if (is(table, "totals")) {
        hk_checker_totals_line(c);
        return;
    }
    size_t m = hk_checker_msg(c, hk_checker_text(c, "m"));
    if (m == NOBODY || !c->msgs.items[m].committed || c->msgs.items[m].forgotten) {
        struct hk_str name = hk_checker_text(c, "m");
        hk_checker_complain(c, "I2", "%.*s is in %.*s, but was never committed", (int)name.len, name.ptr,
                            (int)table.len, table.ptr);
        return;
    }
    const struct cmsg *msg = &c->msgs.items[m];
    size_t l = hk_checker_leg(c, m, hk_checker_text(c, "dest"));
    bool trace = is(table, "attempts") && !hk_checker_number(c, "n");
    for (size_t i = 0; i < msg->n_legs; i++)
        if ((l == NOBODY && !trace) || l == msg->first_leg + i)
            dump_leg(c, msg->first_leg + i, table);
    const struct cleg *leg = &c->legs.items[l == NOBODY ? msg->first_leg : l];
    struct hk_str status = hk_checker_text(c, "status");
    c->n_sents += is(table, "sent");
    c->n_open += is(table, "dead") && is(status, "failed");
    c->n_overs += is(table, "cancelled") ||
                  (is(table, "dead") && is(status, "discarded") && leg->state == LEG_DISCARDED);
}

/* ---- I1 ---- */

/* Does a fan-out of the key wait? It does so at all of its destinations when one of them holds it up, and others wait
 * behind it there. */
static bool fan_out_waits(const struct checker *c, size_t key)
{
    for (size_t i = 0; i < c->legs.n; i++) {
        const struct cmsg *msg = &c->msgs.items[c->legs.items[i].msg];
        if (c->legs.items[i].state == LEG_LIVE && msg->key == key && msg->n_legs > 1)
            return true;
    }
    return false;
}

/* May it still lie there? */
static bool is_excused(const struct checker *c, const struct cleg *leg)
{
    const struct cmsg *msg = &c->msgs.items[leg->msg];
    if (!c->healed || leg->row_due > c->t)
        return true;
    /* a dead head of one of the message's destinations holds it back */
    for (size_t i = 0; msg->key != NOBODY && i < c->legs.n; i++) {
        const struct cleg *other = &c->legs.items[i];
        if (other->state != LEG_DEAD || c->msgs.items[other->msg].key != msg->key ||
            c->dests.items[other->dest].order != ORDER_BLOCK)
            continue;
        if (fan_out_waits(c, msg->key))
            return true;
        for (size_t k = 0; k < msg->n_legs; k++)
            if (c->legs.items[msg->first_leg + k].dest == other->dest)
                return true;
    }
    return false;
}

static void check_fate(struct checker *c, const struct cleg *leg)
{
    const char *name = hk_checker_msg_name(c, leg->msg), *dest = hk_checker_dest_name(c, leg->dest);
    bool lies = leg->rows > 0;
    if (leg->state != LEG_LIVE) {
        if (leg->state == LEG_SENT && leg->acted == 0)
            hk_checker_complain(c, "I1", "%s is sent, but %s never took it", name, dest);
        return;
    }
    if (c->has_dump && !lies && !leg->sents && !leg->letters && !leg->cancels)
        hk_checker_complain(c, "I1", "%s to %s is lost: in no table", name, dest);
    else if (!c->has_dump && c->healed)
        hk_checker_complain(c, "I1", "%s to %s has come to no end", name, dest);
    else if (lies && !is_excused(c, leg))
        hk_checker_complain(c, "I1", "%s to %s still waits, and nothing holds it", name, dest);
}

/* ---- I9 ---- */

static void check_repeats(struct checker *c)
{
    size_t *unclear = calloc(c->legs.n + 1, sizeof *unclear);
    if (!unclear)
        abort();
    for (size_t i = 0; i < c->sends.n; i++) {
        const struct csend *s = &c->sends.items[i];
        if (s->failed ? s->maybe : !s->settled && (s->orphaned || !s->confirmed))
            unclear[s->leg]++;
        else if (s->failed && s->orphaned)
            unclear[s->leg] += 0; /* it said no, whoever asked */
    }
    for (size_t l = 0; l < c->legs.n; l++) {
        const struct cleg *leg = &c->legs.items[l];
        size_t lives = leg->life > 0 ? (size_t)leg->life : 1;
        if (leg->acted > lives + unclear[l])
            hk_checker_complain(c, "I9", "%s was taken %zu times by %s; %zu outcomes were unclear",
                                hk_checker_msg_name(c, leg->msg), leg->acted,
                                hk_checker_dest_name(c, leg->dest), unclear[l]);
    }
    free(unclear);
}

/* ---- I12, I13 ---- */

static void check_tables(struct checker *c, const struct cleg *leg)
{
    const char *name = hk_checker_msg_name(c, leg->msg), *dest = hk_checker_dest_name(c, leg->dest);
    size_t places = leg->rows + leg->open_letters + leg->sents + leg->cancels;
    if (leg->stuck && leg->state != LEG_FORGOTTEN) {
        if (leg->rows != 1 || places != 1)
            hk_checker_complain(c, "I22", "%s to %s is stuck, and its row is not where it was", name, dest);
        return;
    }
    if (leg->letters > 1)
        hk_checker_complain(c, "I12", "%s to %s has %zu letters", name, dest, leg->letters);
    if (places > 1)
        hk_checker_complain(c, "I12", "%s to %s stands in %zu tables at once", name, dest, places);
    if (leg->state == LEG_DEAD && leg->open_letters != 1)
        hk_checker_complain(c, "I12", "%s to %s is dead without a letter", name, dest);
    if (leg->state == LEG_LIVE && leg->open_letters)
        hk_checker_complain(c, "I12", "%s to %s has a letter, but did not die", name, dest);
    if (leg->state == LEG_SENT && leg->rows)
        hk_checker_complain(c, "I12", "%s to %s is sent, and lies there still", name, dest);
}

/* The letter of a message that died, in whatever state it is now. */
static void check_letter(struct checker *c, const struct cleg *leg)
{
    const char *name = hk_checker_msg_name(c, leg->msg), *dest = hk_checker_dest_name(c, leg->dest);
    if (leg->stuck || leg->state == LEG_FORGOTTEN || (leg->shared_letter && leg->life > 1))
        return; /* the latter: whose end it tells of, nobody can say */
    if (leg->letters == 0 && (leg->life > 1 || leg->state == LEG_DISCARDED))
        hk_checker_complain(c, "I12", "%s to %s has died, and its letter is gone", name, dest);
    if (leg->letters != 1 || leg->letter == N_LETTERS)
        return;
    size_t l = leg->letter;
    if (l + 1 < N_LETTERS && leg->state == letters[l + 1].state &&
        is(hk_str_of(letters[l].status), letters[l + 1].status))
        l++;
    if (leg->state != letters[l].state)
        hk_checker_complain(c, "I12", "%s to %s: its letter is %s, and the log tells another story", name,
                            dest, letters[l].status);
    else if (leg->letter_life + letters[l].later != leg->life)
        hk_checker_complain(c, "I12", "%s to %s is in life %lld, and its letter speaks of %lld", name, dest,
                            (long long)leg->life, (long long)leg->letter_life);
}

static int by_leg_life_n(const void *a, const void *b)
{
    const struct crecord *x = a, *y = b;
    if (x->leg != y->leg)
        return x->leg < y->leg ? -1 : 1;
    if (x->life != y->life)
        return x->life < y->life ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n);
}

/* Each relay that died with it left a line. */
static void check_traces(struct checker *c, const struct cleg *leg)
{
    if (c->traced && c->forgot_at == INT64_MIN && leg->traces != leg->orphans)
        hk_checker_complain(c, "I13", "%s to %s: %zu relays died with it, and %zu lines tell so",
                            hk_checker_msg_name(c, leg->msg), hk_checker_dest_name(c, leg->dest),
                            leg->orphans, leg->traces);
}

/* Unique, without gaps, from 1 in each life. */
static void check_records(struct checker *c)
{
    if (c->records.n)
        qsort(c->records.items, c->records.n, sizeof *c->records.items, by_leg_life_n);
    for (size_t i = 0; i < c->records.n; i++) {
        const struct crecord *r = &c->records.items[i], *last = i ? r - 1 : NULL;
        bool first = !last || last->leg != r->leg || last->life != r->life;
        if (r->n != (first ? 1 : last->n + 1))
            hk_checker_complain(c, "I13", "%s to %s, life %lld: attempt %lld stands where %lld should",
                                hk_checker_msg_name(c, c->legs.items[r->leg].msg),
                                hk_checker_dest_name(c, c->legs.items[r->leg].dest), (long long)r->life,
                                (long long)r->n, (long long)(first ? 1 : last->n + 1));
    }
}

void hk_checker_end(struct checker *c)
{
    if (!c->ended)
        c->healed = false; /* cut off: nothing need be over */
    check_repeats(c);
    for (size_t l = 0; l < c->legs.n; l++) {
        check_fate(c, &c->legs.items[l]);
        if (c->has_dump) {
            check_tables(c, &c->legs.items[l]);
            check_letter(c, &c->legs.items[l]);
            check_traces(c, &c->legs.items[l]);
        }
    }
    check_records(c);
    hk_checker_audit_end(c);
}
