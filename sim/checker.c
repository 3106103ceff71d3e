/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the log, line by line, and judges what can be judged as it goes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "checker_impl.h"

#define CANARY "CANARY-" /* stands in payloads that must not show up anywhere */

enum {
    REPORTED_MAX = 20,
    ODD_CLOCK_MS = 150000,
    DROWSY_MS = 1500, /* a relay that woke knows the time again by then */
    CRASHES_ALONE = 3,
    CRASHES_DEAD = 4
};

void *hk_checker_grow(void *items, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return items;
    *room = *room ? *room * 2 : 64;
    void *bigger = realloc(items, *room * bytes);
    if (!bigger)
        abort();
    return bigger;
}

/* ---- small helpers ---- */

void hk_checker_complain(struct checker *c, const char *rule, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (c->result->violations++ >= REPORTED_MAX)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)hk_buf_addf(c->report, "%s: %s line %zu: %s\n", rule, c->in_dump ? "dump" : "log", c->line, text);
}

const char *hk_checker_msg_name(const struct checker *c, size_t msg)
{
    return c->msg_names.texts[msg];
}

const char *hk_checker_dest_name(const struct checker *c, size_t dest)
{
    return c->dest_names.texts[dest];
}

struct hk_str hk_checker_text(const struct checker *c, const char *key)
{
    return hk_flat_text(&c->flat, key);
}

int64_t hk_checker_number(const struct checker *c, const char *key)
{
    return hk_flat_number(&c->flat, key);
}

bool hk_checker_clock_is_odd(const struct checker *c)
{
    return c->jumped_at != INT64_MIN && c->t - c->jumped_at < ODD_CLOCK_MS;
}

/* Soon after a jump what was done may have been decided before it: then the store's time decides, which was the clock's once. */
bool hk_checker_has_come(const struct checker *c, int64_t named)
{
    return (hk_checker_clock_is_odd(c) ? c->t : c->clock) + c->options.slack_ms >= named;
}

static bool is(struct hk_str s, const char *text)
{
    return hk_str_eq(s, hk_str_of(text));
}

/* A pair of names as one: no name of ours holds a NUL. */
struct hk_str hk_checker_pair(char *out, size_t room, struct hk_str a, struct hk_str b)
{
    size_t len = a.len + 1 + b.len;
    if (len > room)
        return (struct hk_str){a.ptr, a.len};
    if (a.len)
        memcpy(out, a.ptr, a.len);
    out[a.len] = '\0';
    if (b.len)
        memcpy(out + a.len + 1, b.ptr, b.len);
    return (struct hk_str){out, len};
}

size_t hk_checker_leg(const struct checker *c, size_t msg, struct hk_str dest)
{
    char room[512];
    struct hk_str name = {c->msg_names.texts[msg], c->msg_names.lens[msg]};
    return hk_names_find(&c->leg_names, hk_checker_pair(room, sizeof room, name, dest));
}

static size_t get_dest(struct checker *c, struct hk_str name)
{
    size_t i = hk_names_get(&c->dest_names, name);
    while (c->dests.n <= i)
        *PUSH(c->dests) = (struct cdest){.order = ORDER_NONE};
    return i;
}

size_t hk_checker_msg(const struct checker *c, struct hk_str name)
{
    size_t i = hk_names_find(&c->msg_names, name);
    return i != NOBODY && i < c->msgs.n && c->msgs.items[i].alias ? c->msgs.items[i].alias - 1 : i;
}

/* The message at hand; NOBODY, with a complaint, when it was never committed (I2). */
size_t hk_checker_committed(struct checker *c)
{
    size_t i = hk_checker_msg(c, hk_checker_text(c, "m"));
    if (i != NOBODY && (c->msgs.items[i].committed || c->msgs.items[i].forgotten))
        return i;
    struct hk_str m = hk_checker_text(c, "m");
    hk_checker_complain(c, "I2", "%.*s was never committed%s", (int)m.len, m.ptr,
                        i != NOBODY && c->msgs.items[i].rolled_back ? ", but rolled back" : "");
    return NOBODY;
}

size_t hk_checker_row(struct checker *c, size_t msg)
{
    size_t i = hk_names_get(&c->row_names, hk_checker_text(c, "row"));
    while (c->rows.n <= i)
        *PUSH(c->rows) = (struct crow){.msg = msg, .leg = NOBODY, .last_send = NOBODY};
    if (msg != NOBODY)
        c->rows.items[i].msg = msg;
    return i;
}

/* ---- applications ---- */

static void add_leg(struct checker *c, size_t msg, struct hk_str dest, struct hk_str key)
{
    char room[512];
    struct hk_str name = {c->msg_names.texts[msg], c->msg_names.lens[msg]};
    (void)hk_names_get(&c->leg_names, hk_checker_pair(room, sizeof room, name, dest));
    size_t d = get_dest(c, dest);
    struct cleg *leg = PUSH(c->legs);
    *leg = (struct cleg){.msg = msg, .name = msg, .dest = d, .life = 1, .next = NOBODY};
    c->msgs.items[msg].n_legs++;
    if (!key.len || c->dests.items[leg->dest].order == ORDER_NONE)
        return;
    size_t number = hk_names_get(&c->key_names, hk_checker_pair(room, sizeof room, dest, key));
    while (c->heads.n <= number)
        *PUSH(c->heads) = NOBODY;
    leg->next = c->heads.items[number];
    c->heads.items[number] = c->legs.n - 1;
}

static void on_commit(struct checker *c)
{
    size_t i = hk_names_get(&c->msg_names, hk_checker_text(c, "m"));
    while (c->msgs.n <= i)
        *PUSH(c->msgs) = (struct cmsg){.key = NOBODY};
    struct cmsg *msg = &c->msgs.items[i];
    if (msg->committed) {
        hk_checker_complain(c, "I2", "%s is committed twice", hk_checker_msg_name(c, i));
        return;
    }
    size_t hash = hk_names_get(&c->texts, hk_checker_text(c, "hash"));
    *msg = (struct cmsg){.committed = true,
                         .hash = {c->texts.texts[hash], c->texts.lens[hash]},
                         .began = hk_checker_number(c, "began"),
                         .timeout = hk_checker_number(c, "timeout"),
                         .committed_at = c->t,
                         .due = hk_checker_number(c, "due"),
                         .expires = hk_checker_number(c, "expires"),
                         .max = hk_checker_number(c, "max"),
                         .first_leg = c->legs.n};
    struct hk_str key = hk_checker_text(c, "key"), rest = hk_checker_text(c, "dest");
    msg->key = key.len ? hk_names_get(&c->texts, key) : NOBODY;
    c->result->messages++;
    do
        add_leg(c, i, hk_str_cut(&rest, ','), key);
    while (rest.ptr);
}

static void on_rollback(struct checker *c)
{
    size_t i = hk_names_get(&c->msg_names, hk_checker_text(c, "m"));
    while (c->msgs.n <= i)
        *PUSH(c->msgs) = (struct cmsg){.key = NOBODY};
    c->msgs.items[i].rolled_back = true;
}

static void on_dest(struct checker *c)
{
    struct hk_str order = hk_checker_text(c, "kind");
    size_t i = get_dest(c, hk_checker_text(c, "dest")); /* may move the array */
    struct cdest *dest = &c->dests.items[i];
    dest->order = is(order, "block") ? ORDER_BLOCK : is(order, "skip") ? ORDER_SKIP : ORDER_NONE;
    dest->cap = hk_checker_number(c, "cap");
    dest->all = hk_checker_number(c, "all");
    dest->hint_cap = hk_checker_number(c, "wait");
    dest->open_ms = hk_checker_number(c, "open");
    dest->open_most = hk_checker_number(c, "until");
    dest->turn_ms = hk_checker_number(c, "turn");
}

/* ---- lanes ---- */

struct clane *hk_checker_lane(struct checker *c, int64_t lane)
{
    for (size_t i = c->lanes.n; i-- > 0;)
        if (c->lanes.items[i].lane == lane)
            return &c->lanes.items[i];
    return NULL;
}

static void on_acquire(struct checker *c)
{
    int64_t number = hk_checker_number(c, "lane");
    /* lanes that begin at the same time may be logged in either order */
    if (c->options.many_lanes ? hk_checker_lane(c, number) != NULL : number <= c->last_lane)
        hk_checker_complain(c, "I4", "lane %lld is not a new number", (long long)number);
    c->last_lane = number;
    for (size_t i = 0; !c->options.many_lanes && i < c->lanes.n; i++) {
        struct clane *lane = &c->lanes.items[i];
        if (lane->live && !lane->dead && lane->until > c->t + c->options.slack_ms)
            hk_checker_complain(c, "I4", "lane %lld is given while %lld lives", (long long)number,
                                (long long)lane->lane);
        lane->live = false;
    }
    for (size_t i = 0; !c->options.many_lanes && i < c->rows.n; i++)
        if (c->rows.items[i].claim)
            hk_checker_complain(c, "I4", "taking over left row %s in the hands of lane %lld",
                                c->row_names.texts[i], (long long)c->rows.items[i].lane);
    *PUSH(c->lanes) = (struct clane){.lane = number,
                                     .until = hk_checker_number(c, "until"),
                                     .heard_at = c->t,
                                     .lost_at = INT64_MIN,
                                     .touched_at = INT64_MIN,
                                     .relay = hk_names_get(&c->relay_names, hk_checker_text(c, "relay")),
                                     .live = true};
}

static void on_renew(struct checker *c)
{
    struct clane *lane = hk_checker_lane(c, hk_checker_number(c, "lane"));
    if (!lane || !lane->live)
        hk_checker_complain(c, "I5", "lane %lld is gone, and was renewed",
                            (long long)hk_checker_number(c, "lane"));
    else
        hk_checker_heard(c, lane);
    hk_checker_ended(c, lane);
}

static void on_release(struct checker *c)
{
    struct clane *lane = hk_checker_lane(c, hk_checker_number(c, "lane"));
    if (!lane || !lane->live)
        hk_checker_complain(c, "I5", "lane %lld is gone, and was released",
                            (long long)hk_checker_number(c, "lane"));
    else
        lane->live = false;
}

/* Another took it over: its lease was out, and nothing is left in its hands. */
static void on_expire(struct checker *c)
{
    struct clane *lane = hk_checker_lane(c, hk_checker_number(c, "lane"));
    if (!lane || !lane->live) {
        hk_checker_complain(c, "I5", "lane %lld is gone, and was taken over",
                            (long long)hk_checker_number(c, "lane"));
        return;
    }
    if (!lane->dead && lane->until > c->t + c->options.slack_ms)
        hk_checker_complain(c, "I4", "lane %lld is taken over before its lease ran out",
                            (long long)lane->lane);
    for (size_t i = 0; i < c->rows.n; i++)
        if (c->rows.items[i].claim && c->rows.items[i].lane == lane->lane)
            hk_checker_complain(c, "I4", "taking over left row %s in the hands of lane %lld",
                                c->row_names.texts[i], (long long)lane->lane);
    lane->live = false;
}

/* A new process: what an earlier one of the same name had is not its own. */
static void on_start(struct checker *c)
{
    size_t relay = hk_names_get(&c->relay_names, hk_checker_text(c, "relay"));
    for (size_t i = 0; i < c->lanes.n; i++)
        if (c->lanes.items[i].relay == relay)
            c->lanes.items[i].relay = NOBODY;
    hk_checker_process(c, relay);
    hk_checker_room_forget(c, relay);
    hk_checker_unlearn(c, relay);
}

/* ---- claim, send, receive ---- */

static void on_claim(struct checker *c)
{
    size_t msg = hk_checker_committed(c);
    size_t r = hk_checker_row(c, msg); /* may move the array */
    struct crow *row = &c->rows.items[r];
    int64_t claim = hk_checker_number(c, "claim");
    const struct clane *lane = hk_checker_lane(c, hk_checker_number(c, "lane"));
    if (msg != NOBODY && c->msgs.items[msg].forgotten)
        hk_checker_complain(c, "I2", "%s is claimed, and the store has forgotten it",
                            hk_checker_msg_name(c, msg));
    if (row->claim)
        hk_checker_complain(c, "I4", "a row that claim %lld has in hand is claimed", (long long)row->claim);
    if (claim <= row->last_claim || (claim < c->last_claim && !c->options.many_lanes))
        hk_checker_complain(c, "I4", "claim %lld is not a new number", (long long)claim);
    if (!lane || !lane->live)
        hk_checker_complain(c, "I5", "a lane that is gone claims");
    if (msg != NOBODY && c->legs.items[c->msgs.items[msg].first_leg].stuck)
        hk_checker_complain(c, "I22", "%s is claimed, and its row is stuck", hk_checker_msg_name(c, msg));
    row->claim = row->last_claim = c->last_claim = claim;
    row->keyless = 0; /* a standby gives numbers again */
    row->lane = hk_checker_number(c, "lane");
    row->taken_line = c->line;
    if (msg != NOBODY)
        row->leg = hk_checker_leg(c, msg, hk_checker_text(c, "dest"));
    if (msg != NOBODY && row->leg != NOBODY && hk_checker_has_come(c, c->msgs.items[msg].due))
        c->legs.items[row->leg].had_come = true;
    hk_checker_aimed(c, row, lane);
    int64_t life = hk_checker_number(c, "life");
    if (msg != NOBODY && row->leg != NOBODY && life && life != c->legs.items[row->leg].life)
        hk_checker_complain(c, "I13", "is claimed in life %lld, and is in %lld", (long long)life,
                            (long long)c->legs.items[row->leg].life);
}

static void check_lease(struct checker *c, const struct crow *row)
{
    const struct clane *lane = hk_checker_lane(c, hk_checker_number(c, "lane"));
    if (hk_checker_clock_is_odd(c) || hk_checker_believes(c, hk_checker_number(c, "lane")))
        return;
    if (!row->claim || row->claim != hk_checker_number(c, "claim"))
        hk_checker_complain(c, "I4", "is sent under a claim that does not stand");
    else if (!lane || lane->until + c->options.slack_ms < c->t)
        hk_checker_complain(c, "I4", "is sent after its lease ran out");
}

/* By a clock that is behind a wait may be over sooner; and soon after a jump it may have been, before the jump. */
static bool is_over_by_clock(const struct checker *c, const struct cleg *leg)
{
    int64_t clock = hk_checker_clock_is_odd(c) && c->clock_was > c->clock ? c->clock_was : c->clock;
    return clock + c->options.slack_ms >= leg->due_by_clock;
}

/* `stands`: its claim does; else it was lost unawares, and others have tried it since. What was requeued goes when a person said so:
 * one that died of its form, or of its age, may have died before its time. A relay that slept through a reset sends what the wrong clock
 * let it claim, until it hears that its lease is over. */
static void check_due(struct checker *c, const struct cleg *leg, const struct cmsg *msg, bool stands)
{
    int64_t slack = c->options.slack_ms;
    bool unaware = !stands && leg->had_come && hk_checker_clock_is_odd(c);
    if (!hk_checker_has_come(c, msg->due) && leg->life == 1 && !unaware)
        hk_checker_complain(c, "I8", "is sent %lld ms before not_before", (long long)(msg->due - c->clock));
    if (stands && c->t + slack < leg->due && !is_over_by_clock(c, leg))
        hk_checker_complain(c, "I8", "is sent %lld ms before its next attempt is due",
                            (long long)(leg->due - c->t));
}

/* Sends at once to a destination, by one relay. */
static void check_cap(struct checker *c, size_t dest, size_t relay)
{
    if (c->sends.items[c->sends.n - 1].forced)
        return;
    int64_t cap = c->dests.items[dest].cap, n = 0;
    for (size_t i = c->sends.n; cap && i-- > 0 && c->sends.n - i < 2000;) {
        const struct csend *s = &c->sends.items[i];
        n += s->relay == relay && !s->forced && c->legs.items[s->leg].dest == dest && !s->confirmed &&
             !s->failed && !s->orphaned && !s->gone;
    }
    if (n > cap)
        hk_checker_complain(c, "I15", "%lld sends at once to %s, of %lld", (long long)n,
                            hk_checker_dest_name(c, dest), (long long)cap);
}

static struct csend *send_of(struct checker *c, size_t row, int64_t claim)
{
    for (size_t i = c->rows.items[row].last_send; i != NOBODY; i = c->sends.items[i].before)
        if (c->sends.items[i].claim == claim && !c->sends.items[i].forgotten)
            return &c->sends.items[i];
    return NULL;
}

/* A row is sent at most once under a claim. */
struct csend *hk_checker_send(struct checker *c)
{
    size_t r = hk_names_find(&c->row_names, hk_checker_text(c, "row"));
    return r == NOBODY ? NULL : send_of(c, r, hk_checker_number(c, "claim"));
}

/* A standby that was promoted gives numbers again that a relay which slept still uses. */
static void check_once(struct checker *c, size_t m)
{
    const struct csend *before = hk_checker_send(c);
    bool forgot = c->forgot_at != INT64_MIN;
    if (before && !(forgot && before->relay != hk_names_get(&c->relay_names, hk_checker_text(c, "relay"))))
        hk_checker_complain(c, "I4", "%s is sent twice under one claim", hk_checker_msg_name(c, m));
}

static void on_send(struct checker *c)
{
    size_t m = hk_checker_committed(c);
    if (m == NOBODY)
        return;
    size_t l = hk_checker_leg(c, m, hk_checker_text(c, "dest"));
    if (l == NOBODY) {
        hk_checker_complain(c, "I2", "%s is sent where it was not to go", hk_checker_msg_name(c, m));
        return;
    }
    size_t r = hk_checker_row(c, NOBODY);
    struct crow *row = &c->rows.items[r];
    struct cleg *leg = &c->legs.items[l];
    check_once(c, m);
    hk_checker_unopened_send(c, row, m);
    bool stands = row->claim && row->claim == hk_checker_number(c, "claim");
    check_lease(c, row);
    check_due(c, leg, &c->msgs.items[m], stands);
    if (leg->state != LEG_LIVE && stands)
        hk_checker_complain(c, "I3", "%s is sent after its end", hk_checker_msg_name(c, m));
    if (hk_checker_number(c, "n") != leg->attempts + 1 && stands)
        hk_checker_complain(c, "I13", "attempt %lld follows attempt %lld",
                            (long long)hk_checker_number(c, "n"), (long long)leg->attempts);
    if (stands && leg->crashes >= CRASHES_DEAD) /* else its relay does not know yet that it is one of them */
        hk_checker_complain(c, "I7", "%s is sent after %lld crashes", hk_checker_msg_name(c, m),
                            (long long)leg->crashes);
    if (leg->stuck &&
        (stands || !hk_checker_clock_is_odd(c))) /* else its relay does not know that its lease is over */
        hk_checker_complain(c, "I22", "%s is sent, and its row is stuck", hk_checker_msg_name(c, leg->msg));
    if (stands)
        hk_checker_order(c, l);
    size_t relay = hk_names_get(&c->relay_names, hk_checker_text(c, "relay"));
    *PUSH(c->sends) =
        (struct csend){.leg = l,
                       .row = r,
                       .relay = relay,
                       .before = row->last_send,
                       .claim = hk_checker_number(c, "claim"),
                       .lane = hk_checker_number(c, "lane"),
                       .at = c->t,
                       .timeout = hk_checker_number(c, "timeout"),
                       .forced = leg->forced,
                       .forgotten = !stands && hk_checker_believes(c, hk_checker_number(c, "lane")),
                       .orphaned = !stands,
                       .suspect = stands && leg->crashes >= CRASHES_ALONE};
    row->last_send = c->sends.n - 1;
    hk_checker_alone(c);
    check_cap(c, leg->dest, relay);
    hk_checker_seats(c);
    hk_checker_forced_send(c);
    hk_checker_timeout(c, stands);
    hk_checker_guard(c, relay, leg->dest, leg->forced);
    hk_checker_room_asked(c, relay, leg->dest);
    hk_checker_defined(c, relay, leg->dest, leg->forced);
    if (stands)
        hk_checker_in_time(c, leg);
    hk_checker_turn(c, leg);
    if (stands || !row->claim) { /* else, after a failover, another message has a row of that number */
        row->msg = m;
        row->leg = l;
    }
    leg->open_sends += stands;
    leg->ever_sent = true;
    leg->sent_at = c->t;
    leg->maybe |= !stands; /* what comes of it nobody writes down */
    c->result->sends++;
}

static void on_recv(struct checker *c)
{
    size_t m = hk_checker_committed(c);
    if (m == NOBODY)
        return;
    size_t l = hk_checker_leg(c, m, hk_checker_text(c, "dest"));
    if (l == NOBODY) {
        hk_checker_complain(c, "I2", "%s is received where it was not to go", hk_checker_msg_name(c, m));
        return;
    }
    hk_checker_bytes(c, &c->legs.items[l], hk_checker_text(c, "m"), hk_checker_text(c, "hash"));
    c->result->receipts++;
    if (!hk_checker_number(c, "acted"))
        return;
    c->result->repeats += c->legs.items[l].acted > 0;
    c->legs.items[l].acted++;
}

static struct csend *answered(struct checker *c)
{
    struct csend *send = hk_checker_forgotten_send(c);
    if (!send)
        send = hk_checker_send(c);
    if (!send)
        hk_checker_complain(c, "I6", "an answer to nothing that was sent");
    return send;
}

static void close_send(struct checker *c, struct csend *s)
{
    if (!s->confirmed && !s->failed && !s->orphaned)
        c->legs.items[s->leg].open_sends--;
}

static void on_confirm(struct checker *c)
{
    struct csend *s = answered(c);
    if (!s)
        return;
    close_send(c, s);
    hk_checker_took(c, s);
    s->confirmed = true;
    hk_checker_answered(c, &c->dests.items[c->legs.items[s->leg].dest]);
}

static void on_fail(struct checker *c)
{
    struct csend *s = answered(c);
    if (!s)
        return;
    close_send(c, s);
    hk_checker_took(c, s);
    s->failed = true;
    s->maybe = hk_checker_number(c, "maybe");
    s->local = is(hk_checker_text(c, "kind"), "local");
    s->status = hk_checker_number(c, "status");
    struct cleg *leg = &c->legs.items[s->leg];
    leg->maybe |= s->maybe;
    int64_t wait = hk_checker_number(c, "wait"), cap = c->dests.items[leg->dest].hint_cap;
    if (!s->orphaned) /* what a relay hears that has lost the message, nobody acts upon */
        leg->hint_due = wait ? c->t + (wait < cap ? wait : cap) : 0;
    hk_checker_failing(c, s->relay, leg->dest);
    hk_checker_answered(c, &c->dests.items[leg->dest]);
}

static void on_busy(struct checker *c)
{
    hk_checker_busy(c, answered(c));
}

/* ---- settling ---- */

void hk_checker_end_leg(struct checker *c, struct cleg *leg, enum leg_state state)
{
    if (leg->state != LEG_LIVE)
        hk_checker_complain(c, "I3", "%s ends a second time in life %lld", hk_checker_msg_name(c, leg->msg),
                            (long long)leg->life);
    leg->state = state;
    leg->died_at = c->t;
}

/* Each attempt is charged once; whether one is that was told to come later, the policy says. */
static bool charged_rightly(const struct cleg *leg, int64_t charged, bool made, const struct csend *send)
{
    int64_t more = charged - leg->charged;
    return more == made || (more == 0 && send && send->status == 429);
}

static void count_attempt(struct checker *c, struct cleg *leg, bool made, const struct csend *send)
{
    int64_t n = hk_checker_number(c, "n"), charged = hk_checker_number(c, "charged"),
            max = c->msgs.items[leg->msg].max;
    if (n != leg->attempts + made)
        hk_checker_complain(c, "I13", "%s: %lld attempts are settled after %lld",
                            hk_checker_msg_name(c, leg->msg), (long long)n, (long long)leg->attempts);
    if (!charged_rightly(leg, charged, made, send))
        hk_checker_complain(c, "I13", "%s: %lld attempts are charged after %lld",
                            hk_checker_msg_name(c, leg->msg), (long long)charged, (long long)leg->charged);
    if (max && charged > max)
        hk_checker_complain(c, "I7", "%s: %lld attempts of %lld", hk_checker_msg_name(c, leg->msg),
                            (long long)charged, (long long)max);
    leg->attempts = n;
    leg->charged = charged;
    if (made)
        leg->crashes = 0;
}

static void settle_sent(struct checker *c, struct cleg *leg)
{
    struct csend *send = hk_checker_send(c);
    if (!send || !send->confirmed)
        hk_checker_complain(c, "I6", "%s is settled as sent, but nobody confirmed it",
                            hk_checker_msg_name(c, leg->msg));
    if (send)
        send->settled = true;
    count_attempt(c, leg, true, send);
    hk_checker_end_leg(c, leg, LEG_SENT);
    leg->job_sent = true;
    leg->sent++;
}

/* Refused by its own sink, or by our address policy, before anything was sent: no attempt was made. */
static bool refused_unsent(const struct csend *send, struct hk_str reason)
{
    bool of_message = is(reason, "VALIDATION_ERROR") || is(reason, "SCHEMA_MISMATCH") ||
                      is(reason, "PAYLOAD_TOO_LARGE") || is(reason, "BLOCKED_BY_POLICY");
    return of_message && !send->status && !send->maybe;
}

static void settle_dead(struct checker *c, struct cleg *leg)
{
    struct hk_str reason = hk_checker_text(c, "reason");
    const struct cmsg *msg = &c->msgs.items[leg->msg];
    const struct csend *send = hk_checker_send(c);
    count_attempt(c, leg, send && send->failed && !refused_unsent(send, reason), send);
    if (is(reason, "RETRY_EXHAUSTED") && msg->max && msg->n_legs == 1 && leg->charged != msg->max)
        hk_checker_complain(c, "I7", "%s is exhausted after %lld attempts of %lld",
                            hk_checker_msg_name(c, leg->msg), (long long)leg->charged, (long long)msg->max);
    if (is(reason, "RELAY_CRASHED") && leg->crashes < CRASHES_DEAD)
        hk_checker_complain(c, "I7", "%s is dead as a crasher after %lld crashes",
                            hk_checker_msg_name(c, leg->msg), (long long)leg->crashes);
    if (is(reason, "EXPIRED") && !hk_checker_has_come(c, msg->expires))
        hk_checker_complain(c, "I23", "%s expires %lld ms before its time", hk_checker_msg_name(c, leg->msg),
                            (long long)(msg->expires - c->clock));
    if (is(reason, "UNKNOWN_DESTINATION"))
        hk_checker_unknown(c, leg, c->rows.items[hk_checker_row(c, NOBODY)].claim_line);
    if (!reason.len)
        hk_checker_complain(c, "I12", "%s is dead without a reason", hk_checker_msg_name(c, leg->msg));
    hk_checker_end_leg(c, leg, LEG_DEAD);
}

/* A relay that ends its own send gives the message back, and charges nothing. */
static bool is_given_back(const struct checker *c, const struct cleg *leg, const struct csend *send)
{
    return send && send->local && send->maybe && hk_checker_number(c, "n") == leg->attempts;
}

static bool is_of_outbox(const struct checker *c)
{
    struct hk_str row = hk_checker_text(c, "row");
    return row.len && row.ptr[0] == 'o';
}

static void settle_retry(struct checker *c, struct cleg *leg)
{
    const struct csend *send = hk_checker_send(c);
    bool keyless = hk_checker_waits_for_key(c, leg);
    if (!keyless && (!send || !send->failed))
        hk_checker_complain(c, "I6", "%s is to be retried, but no attempt failed",
                            hk_checker_msg_name(c, leg->msg));
    leg->put_off |= keyless;
    bool made = !keyless && !is_given_back(c, leg, send);
    count_attempt(c, leg, made, send);
    leg->forced = false;
    int64_t max = c->msgs.items[leg->msg].max;
    if (made && max && c->msgs.items[leg->msg].n_legs == 1 && leg->charged >= max)
        hk_checker_complain(c, "I7", "%s is to be retried after %lld attempts of %lld",
                            hk_checker_msg_name(c, leg->msg), (long long)leg->charged, (long long)max);
    leg->due = hk_checker_number(c, "due");
    leg->due_by_clock = leg->due - (c->t - c->clock);
    leg->took_ms = c->t - leg->sent_at + hk_checker_jumped_ms(c);
    leg->wait_ms = made && leg->due > c->t ? leg->due - c->t : 0;
    leg->unsure = made && leg->due <= c->t && hk_checker_clock_is_odd(c);
    leg->drowsy = c->woke_at != INT64_MIN && c->t - c->woke_at < DROWSY_MS;
    int64_t named = c->msgs.items[leg->msg].due;
    leg->deferred = leg->life == 1 && is_of_outbox(c) && named > leg->due_by_clock && named > c->clock;
    bool hinted =
        !keyless && !hk_checker_clock_is_odd(c); /* an answer that was never settled asks for nothing */
    if (leg->due + c->options.slack_ms < leg->hint_due && hinted)
        hk_checker_complain(c, "I8", "%s: the next attempt is %lld ms before what the destination asked for",
                            hk_checker_msg_name(c, leg->msg), (long long)(leg->hint_due - leg->due));
}

/* Released or deferred: as if nothing had been sent, so nothing may have arrived. */
static void settle_unsent(struct checker *c, struct cleg *leg)
{
    const struct csend *send = hk_checker_send(c);
    if (send && (send->confirmed || send->maybe))
        hk_checker_complain(c, "I6", "%s is given back as unsent, and may have arrived",
                            hk_checker_msg_name(c, leg->msg));
    count_attempt(c, leg, false, NULL);
}

/* To one leg, or to all of a message that is not routed yet. */
static void settle_leg(struct checker *c, struct cleg *leg, struct hk_str kind)
{
    hk_checker_keyless_settled(c, leg, kind);
    if (is(kind, "sent"))
        settle_sent(c, leg);
    else if (is(kind, "dead"))
        settle_dead(c, leg);
    else if (is(kind, "retry"))
        settle_retry(c, leg);
    else
        settle_unsent(c, leg);
    if (is(kind, "defer"))
        leg->due = leg->due_by_clock = hk_checker_number(c, "due");
}

static void part(struct checker *c, const struct cmsg *msg)
{
    for (size_t i = 0; i < msg->n_legs; i++)
        c->legs.items[msg->first_leg + i].parted_at = c->t;
}

static void settle_legs(struct checker *c, struct crow *row)
{
    struct hk_str kind = hk_checker_text(c, "kind");
    if (row->msg == NOBODY)
        return;
    const struct cmsg *msg = &c->msgs.items[row->msg];
    if (is(kind, "fan_out")) {
        part(c, msg);
        return;
    }
    size_t l = hk_checker_leg(c, row->msg, hk_checker_text(c, "dest"));
    if (l != NOBODY) {
        const struct clane *lane = hk_checker_lane(c, row->lane);
        hk_checker_room_settled(c, &c->legs.items[l], hk_checker_send(c), row, lane ? lane->relay : NOBODY,
                                kind);
        settle_leg(c, &c->legs.items[l], kind);
        return;
    }
    for (size_t i = 0; i < msg->n_legs; i++) {
        settle_leg(c, &c->legs.items[msg->first_leg + i], kind);
        c->legs.items[msg->first_leg + i].died_unrouted = true;
        c->legs.items[msg->first_leg + i].shared_letter |= msg->n_legs > 1;
    }
}

static void on_settle(struct checker *c)
{
    size_t r = hk_checker_row(c, NOBODY); /* may move the array */
    struct crow *row = &c->rows.items[r];
    bool stands = row->claim && row->claim == hk_checker_number(c, "claim") &&
                  row->lane == hk_checker_number(c, "lane");
    if (!hk_checker_number(c, "rows")) {
        c->result->stale++;
        const struct clane *its = hk_checker_lane(c, hk_checker_number(c, "lane"));
        if (stands && !(its && its->doubted))
            hk_checker_complain(c, "I5", "a settle under a claim that stands changed nothing");
        return;
    }
    const struct clane *lane = hk_checker_lane(c, hk_checker_number(c, "lane"));
    if (!stands || !lane || !lane->live)
        hk_checker_complain(c, "I5", "a stale settle changed something");
    settle_legs(c, row);
    row->claim = 0;
}

/* To one leg, or to all of a message that is not routed yet: delivered, or as good as dead. */
static void stick_leg(struct checker *c, struct cleg *leg, bool sent)
{
    struct csend *send = hk_checker_send(c);
    if (sent && (!send || !send->confirmed))
        hk_checker_complain(c, "I6", "%s is stuck as sent, but nobody confirmed it",
                            hk_checker_msg_name(c, leg->msg));
    if (sent && send)
        send->settled = true;
    hk_checker_end_leg(c, leg, sent ? LEG_SENT : LEG_DEAD);
    leg->stuck = true;
}

/* The database refused a settle (or the orphaning): the row stays where it is. */
static void on_stuck(struct checker *c)
{
    size_t r = hk_checker_row(c, NOBODY); /* may move the array */
    struct crow *row = &c->rows.items[r];
    struct hk_str kind = hk_checker_text(c, "kind");
    if (!row->claim || row->claim != hk_checker_number(c, "claim"))
        hk_checker_complain(c, "I5", "a row is stuck that was in nobody's hand");
    struct csend *s = is(kind, "orphan") ? send_of(c, r, row->claim) : NULL;
    if (s) {
        close_send(c, s);
        s->orphaned = true;
    }
    row->claim = 0;
    if (row->msg == NOBODY)
        return;
    const struct cmsg *msg = &c->msgs.items[row->msg];
    size_t l = hk_checker_leg(c, row->msg, hk_checker_text(c, "dest"));
    for (size_t i = 0; i < msg->n_legs; i++) {
        struct cleg *leg = &c->legs.items[msg->first_leg + i];
        if (l != NOBODY && l != msg->first_leg + i)
            continue;
        stick_leg(c, leg, is(kind, "sent"));
        leg->died_unrouted = l == NOBODY;
    }
}

static void on_orphan(struct checker *c)
{
    size_t r = hk_checker_row(c, NOBODY); /* may move the array */
    struct crow *row = &c->rows.items[r];
    const struct clane *lane = hk_checker_lane(c, hk_checker_number(c, "lane"));
    if (!row->claim || row->claim != hk_checker_number(c, "claim"))
        hk_checker_complain(c, "I5", "a row is orphaned that was in nobody's hand");
    if (lane && !lane->dead && lane->until > c->t + c->options.slack_ms)
        hk_checker_complain(c, "I4", "a row is taken from lane %lld before its lease ran out",
                            (long long)lane->lane);
    if (lane)
        hk_checker_reclaimed(c, lane);
    c->result->orphans++;
    struct csend *s = send_of(c, r, row->claim);
    if (s) {
        close_send(c, s);
        s->orphaned = true;
        c->legs.items[s->leg].maybe |= !s->failed || s->maybe;
    }
    row->claim = 0;
    if (row->msg == NOBODY)
        return;
    const struct cmsg *msg = &c->msgs.items[row->msg];
    size_t l = row->leg, named = hk_checker_leg(c, row->msg, hk_checker_text(c, "dest"));
    if (named != NOBODY)
        hk_checker_strays(&c->legs.items[named]);
    for (size_t i = 0; i < msg->n_legs; i++)
        if (l == NOBODY || l == msg->first_leg + i) {
            c->legs.items[msg->first_leg + i].crashes++;
            c->legs.items[msg->first_leg + i].orphaned = true;
            c->legs.items[msg->first_leg + i].deferred =
                c->legs.items[msg->first_leg + i].life == 1 && msg->due > c->clock;
            c->legs.items[msg->first_leg + i].wait_ms = 0;
        }
}

/* ---- lines ---- */

static void on_stop(struct checker *c)
{
    c->stopped = true;
}

static void on_force(struct checker *c)
{
    size_t m = hk_checker_committed(c);
    if (m == NOBODY)
        return;
    hk_checker_force(c, m);
    size_t r = hk_checker_row(c, m);
    c->rows.items[r].leg = hk_checker_leg(c, m, hk_checker_text(c, "dest"));
}

static void on_cont(struct checker *c)
{
    c->woke_at = c->t;
}

static void on_last(struct checker *c)
{
    c->ended = true;
}

static const struct {
    const char *name;
    void (*on)(struct checker *c);
} events[] = {
    {"renew", on_renew},
    {"claim", on_claim},
    {"send", on_send},
    {"recv", on_recv},
    {"confirm", on_confirm},
    {"fail", on_fail},
    {"busy", on_busy},
    {"room", hk_checker_room},
    {"keyless", hk_checker_keyless},
    {"settle", on_settle},
    {"stuck", on_stuck},
    {"commit", on_commit},
    {"rollback", on_rollback},
    {"acquire", on_acquire},
    {"release", on_release},
    {"expire", on_expire},
    {"orphan", on_orphan},
    {"cancel", hk_checker_act},
    {"discard", hk_checker_act},
    {"requeue", hk_checker_act},
    {"restore", hk_checker_act},
    {"edit", hk_checker_act},
    {"redrive", hk_checker_redrive},
    {"told", hk_checker_told},
    {"closed", hk_checker_closed},
    {"breaker", hk_checker_breaker},
    {"exit", hk_checker_exit},
    {"dest", on_dest},
    {"clock", hk_checker_jump},
    {"reset", hk_checker_reset},
    {"waits", hk_checker_waits},
    {"heal", hk_checker_healed},
    {"end", on_last},
    {"pause", hk_checker_pause},
    {"resume", hk_checker_pause},
    {"start", on_start},
    {"crash", hk_checker_crash},
    {"define", hk_checker_define},
    {"learn", hk_checker_learn},
    {"keep", hk_checker_keep},
    {"forget", hk_checker_forget},
    {"stop", on_stop},
    {"force", on_force},
    {"cont", on_cont},
    {"drain", hk_checker_drain},
};

static void check_log_line(struct checker *c)
{
    struct hk_str ev = hk_checker_text(c, "ev");
    c->t = hk_checker_number(c, "t");
    c->clock = c->t - hk_checker_number(c, "behind");
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        if (is(ev, events[i].name)) {
            events[i].on(c);
            return;
        }
    hk_checker_complain(c, "format", "no such event");
}

static bool holds_canary(struct hk_str line)
{
    const char *end = line.ptr + line.len;
    size_t len = strlen(CANARY);
    for (const char *p = line.ptr; (p = memchr(p, CANARY[0], (size_t)(end - p))); p++)
        if ((size_t)(end - p) >= len && memcmp(p, CANARY, len) == 0)
            return true;
    return false;
}

static void each_line(struct checker *c, struct hk_str text, void (*on)(struct checker *c))
{
    while (text.len) {
        struct hk_str line = hk_str_cut(&text, '\n');
        c->line++;
        if (!line.len)
            continue;
        if (holds_canary(line))
            hk_checker_complain(c, "I20", "a payload is told that is nobody's business");
        if (hk_flat_parse(&c->flat, line))
            on(c);
        else
            hk_checker_complain(c, "format", "not a line of ours");
    }
}

static void fini(struct checker *c)
{
    struct names *names[] = {&c->msg_names,   &c->leg_names, &c->row_names, &c->dest_names,
                             &c->relay_names, &c->key_names, &c->texts,     &c->act_names};
    void *blocks[] = {c->msgs.items,   c->legs.items,    c->rows.items,  c->dests.items,    c->sends.items,
                      c->lanes.items,  c->records.items, c->heads.items, c->beliefs.items,  c->guards.items,
                      c->outs.items,   c->jobs.items,    c->acts.items,  c->draining.items, c->failing.items,
                      c->learnt.items, c->fulls.items};
    hk_checker_drop_kept(c);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        hk_names_fini(names[i]);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        free(blocks[i]);
    free(c);
}

struct checker *hk_checker_new(const struct hk_check_options *options, struct hk_buf *report,
                               struct hk_check_result *out)
{
    struct checker *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *out = (struct hk_check_result){.violations = 0};
    c->options = *options;
    c->report = report;
    c->result = out;
    c->jumped_at = c->forgot_at = c->woke_at = INT64_MIN;
    return c;
}

void hk_checker_log(struct checker *c, struct hk_str lines)
{
    each_line(c, lines, check_log_line);
}

void hk_checker_finish(struct checker *c, struct hk_str dump)
{
    c->in_dump = c->has_dump = dump.len > 0;
    c->line = 0;
    each_line(c, dump, hk_checker_dump_line);
    hk_checker_end(c);
}

void hk_checker_free(struct checker *c)
{
    if (c)
        fini(c);
}

void hk_check(struct hk_str log, struct hk_str dump, const struct hk_check_options *options,
              struct hk_buf *report, struct hk_check_result *out)
{
    struct checker *c = hk_checker_new(options, report, out);
    hk_checker_log(c, log);
    hk_checker_finish(c, dump);
    hk_checker_free(c);
}
