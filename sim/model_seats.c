/* SPDX-License-Identifier: Apache-2.0 */
/* The book of seats: what each living lane has of the concurrency that all relays share, and who waits for how long. One exchange has the
 * book at a time; sometimes another one has it, and then nothing is written. sql/relay.sql of the PostgreSQL store does the same. */
#include <string.h>

#include "base/str.h"
#include "model_impl.h"

enum {
    FRESH_MS = 1000, /* who has not asked for so long does not wait any more */
    LOCKED_IN = 16   /* one of so many finds the book in another's hands */
};

static struct model_seat *find(struct hk_model *model, const char *name, int64_t lane)
{
    for (size_t i = 0; i < model->seats.n; i++)
        if (model->seats.items[i].lane == lane && strcmp(model->seats.items[i].name, name) == 0)
            return &model->seats.items[i];
    return NULL;
}

static void drop_dead(struct hk_model *model)
{
    size_t n = 0;
    for (size_t i = 0; i < model->seats.n; i++)
        if (hk_model_find_lane(model, model->seats.items[i].lane))
            model->seats.items[n++] = model->seats.items[i];
    model->seats.n = n;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t want_of(const struct model_seat *s, int64_t now_ms)
{
    return now_ms - s->at_ms < FRESH_MS && s->want > s->held ? s->want : s->held;
}

/* What others have, and what they need to have their share. */
struct others {
    int64_t taken, needed, ahead; /* ahead: needed by those that have waited longer */
    uint32_t share, sharers;
};

static struct others look(const struct hk_model *model, const struct hk_seat_ask *q, const struct model_seat *me,
                          int64_t now_ms)
{
    struct others o = {.sharers = q->want > 0};
    for (size_t i = 0; i < model->seats.n; i++) {
        const struct model_seat *s = &model->seats.items[i];
        if (s == me || strcmp(s->name, q->destination) != 0)
            continue;
        o.taken += s->held;
        o.sharers += want_of(s, now_ms) > 0;
    }
    o.share = o.sharers && q->most > o.sharers ? q->most / o.sharers : 1;
    for (size_t i = 0; i < model->seats.n; i++) {
        const struct model_seat *s = &model->seats.items[i];
        uint32_t due = least(want_of(s, now_ms), o.share);
        if (s == me || strcmp(s->name, q->destination) != 0 || due <= s->held)
            continue;
        bool longer = s->since_ms < me->since_ms || (s->since_ms == me->since_ms && s->lane < me->lane);
        o.needed += due - s->held;
        o.ahead += longer ? due - s->held : 0;
    }
    return o;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static struct hk_seats_given write_book(struct hk_model *model, int64_t lane, const struct hk_seat_ask *q)
{
    int64_t now_ms = hk_model_now(model);
    struct model_seat *me = find(model, q->destination, lane);
    if (!me) {
        me = MODEL_PUSH(model->seats);
        *me = (struct model_seat){.lane = lane, .since_ms = now_ms};
        hk_model_text(me->name, hk_str_of(q->destination));
    }
    if (me->want <= me->held)
        me->since_ms = now_ms;
    struct others o = look(model, q, me, now_ms);
    int64_t free = (int64_t)q->most - o.taken - q->hold;
    int64_t fair = at_most((int64_t)o.share - q->hold, free - o.ahead);
    int64_t more = at_least(0, at_most((int64_t)q->want - q->hold, at_least(fair, free - o.needed)));
    me->held = q->hold + (uint32_t)more;
    me->want = q->want;
    me->at_ms = now_ms;
    if (more)
        me->since_ms = now_ms;
    uint32_t limit = q->most >= o.sharers ? o.share : 0;
    if (more && limit < me->held) /* it has a turn with what it was given */
        limit = me->held;
    return (struct hk_seats_given){.written = true,
                                   .held = me->held,
                                   .limit = o.needed > free - more ? limit : HK_SEATS_NO_LIMIT};
}

void hk_model_seat(struct hk_model *model, const struct hk_exchange *x, struct hk_model_reply *out)
{
    out->exchanged.seats = hk_model_reply_alloc(out, x->n_seats * sizeof *out->exchanged.seats);
    drop_dead(model);
    for (size_t i = 0; i < x->n_seats; i++)
        if (++model->books % LOCKED_IN)
            out->exchanged.seats[i] = write_book(model, x->lane, &x->seats[i]);
}
