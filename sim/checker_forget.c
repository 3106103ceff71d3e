/* SPDX-License-Identifier: Apache-2.0 */
/* A standby that lagged behind has taken over. What came after `keep` never was, as far as the store goes: so what the
 * checker knows of messages, rows and lanes goes back to then. What happened outside stays: requests that were sent, and
 * receipts. So what the store forgot may be sent again, and no more. */
#include <stdlib.h>
#include <string.h>

#include "checker_impl.h"

struct ckept {
    struct cmsg *msgs;
    struct cleg *legs;
    struct crow *rows;
    struct cdest *dests;
    struct clane *lanes;
    bool *settled, *orphaned; /* of each send */
    size_t n_msgs, n_legs, n_rows, n_dests, n_lanes, n_sends;
    int64_t *told; /* of each act */
    size_t n_acts;
    int64_t last_claim, last_lane;
};

static void *copy(const void *items, size_t n, size_t bytes)
{
    void *to = malloc(n * bytes + 1);
    if (!to)
        abort();
    if (n)
        memcpy(to, items, n * bytes);
    return to;
}

void hk_checker_drop_kept(struct checker *c)
{
    struct ckept *k = c->kept;
    if (!k)
        return;
    void *blocks[] = {k->msgs, k->legs, k->rows, k->dests, k->lanes, k->settled, k->orphaned, k->told, k};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        free(blocks[i]);
    c->kept = NULL;
}

#define KEEP(k, c, what)                                                                                     \
    ((k)->what = copy((c)->what.items, (c)->what.n, sizeof *(c)->what.items), (k)->n_##what = (c)->what.n)

void hk_checker_keep(struct checker *c)
{
    hk_checker_drop_kept(c);
    struct ckept *k = calloc(1, sizeof *k);
    if (!k)
        abort();
    KEEP(k, c, msgs);
    KEEP(k, c, legs);
    KEEP(k, c, rows);
    KEEP(k, c, dests);
    KEEP(k, c, lanes);
    k->n_sends = c->sends.n;
    k->settled = calloc(k->n_sends + 1, sizeof *k->settled);
    k->orphaned = calloc(k->n_sends + 1, sizeof *k->orphaned);
    if (!k->settled || !k->orphaned)
        abort();
    for (size_t i = 0; i < k->n_sends; i++) {
        k->settled[i] = c->sends.items[i].settled;
        k->orphaned[i] = c->sends.items[i].orphaned;
    }
    k->n_acts = c->acts.n;
    k->told = calloc(k->n_acts + 1, sizeof *k->told);
    if (!k->told)
        abort();
    for (size_t i = 0; i < k->n_acts; i++)
        k->told[i] = c->acts.items[i].told;
    k->last_claim = c->last_claim;
    k->last_lane = c->last_lane;
    c->kept = k;
}

bool hk_checker_believes(const struct checker *c, int64_t lane)
{
    for (size_t i = 0; i < c->beliefs.n; i++)
        if (c->beliefs.items[i].lane == lane && c->beliefs.items[i].until + c->options.slack_ms >= c->t)
            return true;
    return false;
}

/* Their relays go by the leases that they were told of, until they ask again. */
static void forget_lanes(struct checker *c, const struct ckept *k)
{
    for (size_t i = 0; i < c->lanes.n; i++)
        if (c->lanes.items[i].live)
            *PUSH(c->beliefs) =
                (struct cbelief){.lane = c->lanes.items[i].lane, .until = c->lanes.items[i].until};
    for (size_t i = 0; i < k->n_lanes; i++) {
        struct clane *lane = &c->lanes.items[i];
        bool dead = lane->dead;
        size_t relay = lane->relay;
        *lane = k->lanes[i];
        lane->dead |= dead;
        lane->relay = relay;
        lane->doubted = true;
    }
    c->lanes.n = k->n_lanes;
}

static void forget_msgs(struct checker *c, const struct ckept *k)
{
    for (size_t i = 0; i < c->msgs.n; i++) {
        struct cmsg *msg = &c->msgs.items[i];
        if (!msg->committed || (i < k->n_msgs && k->msgs[i].committed))
            continue;
        msg->forgotten = true;
        for (size_t l = 0; l < msg->n_legs; l++)
            c->legs.items[msg->first_leg + l].state = LEG_FORGOTTEN;
    }
}

static void forget_legs(struct checker *c, const struct ckept *k)
{
    for (size_t i = 0; i < k->n_legs; i++) {
        struct cleg now = c->legs.items[i];
        c->legs.items[i] = k->legs[i];
        c->legs.items[i].acted = now.acted;
        c->legs.items[i].next = now.next;
    }
}

static void forget_rows(struct checker *c, const struct ckept *k)
{
    for (size_t i = 0; i < c->rows.n; i++) {
        struct crow now = c->rows.items[i];
        c->rows.items[i] = i < k->n_rows ? k->rows[i] : (struct crow){.msg = NOBODY, .leg = NOBODY};
        c->rows.items[i].last_send = now.last_send;
        if (c->rows.items[i].keyless) /* of the claim that stands again */
            continue;
        c->rows.items[i].keyless = now.keyless; /* a relay knows that, not the store */
        c->rows.items[i].keyless_at = now.keyless_at;
    }
}

/* What was settled since was not; and what stands under no claim that is left is nobody's. */
static void forget_sends(struct checker *c, const struct ckept *k)
{
    for (size_t i = 0; i < c->legs.n; i++)
        c->legs.items[i].open_sends = 0;
    for (size_t i = 0; i < c->sends.n; i++) {
        struct csend *s = &c->sends.items[i];
        if (i < k->n_sends && k->settled[i])
            continue;
        s->settled = false;
        s->orphaned = (i < k->n_sends && k->orphaned[i]) || c->rows.items[s->row].claim != s->claim;
        c->legs.items[s->leg].open_sends += !s->confirmed && !s->failed && !s->orphaned;
        s->forgotten |= s->orphaned;
    }
}

void hk_checker_forget(struct checker *c)
{
    const struct ckept *k = c->kept;
    if (!k)
        return;
    forget_lanes(c, k);
    forget_legs(c, k);
    forget_msgs(c, k);
    forget_rows(c, k);
    forget_sends(c, k);
    if (k->n_dests)
        memcpy(c->dests.items, k->dests, k->n_dests * sizeof *k->dests);
    for (size_t i = 0; i < c->acts.n; i++)
        c->acts.items[i].told = i < k->n_acts ? k->told[i] : 0;
    c->guards.n = c->jobs.n = 0; /* whoever goes on says so anew */
    c->forgot_sends = c->sends.n;
    c->forgot_at = c->t;
    c->last_claim = k->last_claim;
    c->last_lane = k->last_lane;
    hk_checker_drop_kept(c);
}

/* One that a standby knows nothing of is answered all the same. */
struct csend *hk_checker_forgotten_send(struct checker *c)
{
    size_t r = hk_names_find(&c->row_names, hk_checker_text(c, "row"));
    size_t relay = hk_names_get(&c->relay_names, hk_checker_text(c, "relay"));
    for (size_t i = r == NOBODY ? NOBODY : c->rows.items[r].last_send; i != NOBODY;
         i = c->sends.items[i].before) {
        struct csend *s = &c->sends.items[i];
        if (s->forgotten && s->relay == relay && s->claim == hk_checker_number(c, "claim") && !s->failed &&
            !s->confirmed && !s->gone)
            return s;
    }
    return NULL;
}
