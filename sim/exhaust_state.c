/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the little world, for hashing.
 *
 * DESIGN
 * Two states that hash equal must have equal futures: the same decisions are open, and each leads to states that again hash
 * equal, with the same verdict. So everything goes in that anything later depends on, and as little else as can be: what goes
 * in needlessly only makes more states.
 * - Time is relative, lanes and claims are renamed by their order (canon.h). Rows keep their ids: there are few.
 * - Slots of an engine are names: they are listed in their order, renamed.
 * - Left out: counters for people (stats, seen); when attempts began and first failed (the policy here has no limit of time,
 *   so that only matters whether there was one); texts that follow from a message's id; what is stale because it is written
 *   before it is read again (of an exchange or scan that is not under way; of a free slot).
 * - Also left out, since there is none of it in this world: people, drains, redrives, audits and edits; a standby; a rate, a breaker or a
 *   pause; many lanes and shards; a reserve (ahead_ms is 0); a bound for liveness (no `heal`); destinations that come and go.
 * - Nor whether a destination is awake: that costs a look and changes nothing; nor how many slots it has, which follows.
 * - The checker remembers every send. Of one whose claim nobody can name any more only counts whether its outcome was
 *   unclear (I9).
 * Whoever adds a field to one of these structures must decide here whether it counts: the sizes are asserted. `hikyaku-sim
 * --exhaustive --plain` checks the whole: it walks all paths and complains when equal states had unequal futures. */
#include <string.h>

#include "base/str.h"
#include "checker_impl.h"
#include "core/engine_impl.h"
#include "exhaust_impl.h"
#include "model_impl.h"

#define N(canon, value) hk_canon_number((canon), (int64_t)(value))

/* ---- what engine and store both know ---- */

static void add_history(struct hk_canon *c, const struct hk_history *h)
{
    N(c, h->attempts);
    N(c, h->charged);
    for (int i = 0; i < HK_NCLASSES; i++)
        N(c, h->failures[i]);
    N(c, h->prev_wait_ms);
    N(c, h->first_attempt_ms != 0);
    N(c, h->paused_ms);
}

static void add_message(struct hk_canon *c, const struct hk_message *m)
{
    N(c, m->source);
    N(c, m->id);
    N(c, m->crashes);
    N(c, m->life);
    N(c, m->letter_id);
    N(c, m->first_failed_ms != 0);
    add_history(c, &m->history);
}

static void add_settle(struct hk_canon *c, const struct hk_settle *s)
{
    hk_canon_claim(c, s->claim);
    N(c, s->source);
    N(c, s->id);
    N(c, s->kind);
    hk_canon_due(c, s->kind == HK_SETTLE_RETRY || s->kind == HK_SETTLE_DEFER ? s->due_ms : INT64_MIN);
    add_history(c, &s->history);
    N(c, s->first_failed_ms != 0);
    N(c, s->life);
    hk_canon_text(c, s->reason);
    N(c, s->attempt.made);
    N(c, s->attempt.possibly_delivered);
    N(c, s->n_fan_out);
}

/* ---- an engine ---- */

/* The slot's number among those in use. */
static int64_t slot_name(const struct hk_engine *e, uint32_t slot)
{
    int64_t name = 0;
    for (uint32_t i = 0; i < slot; i++)
        name += e->slots[i].phase != HK_SLOT_FREE;
    return name;
}

static void add_ring(struct hk_canon *c, const struct hk_engine *e, const struct hk_ring *ring)
{
    N(c, ring->len);
    for (uint32_t i = 0; i < ring->len; i++)
        N(c, slot_name(e, ring->items[(ring->head + i) % ring->room]));
}

static void add_slot(struct hk_canon *c, const struct hk_slot *s)
{
    N(c, s->phase);
    N(c, s->intent);
    N(c, s->refusal.fault);
    N(c, s->source);
    N(c, s->id);
    hk_canon_claim(c, s->claim);
    N(c, s->bytes);
    N(c, s->dest);
    N(c, s->route);
    N(c, s->key != 0);
    N(c, s->fan_key != NULL);
    N(c, s->held);
    N(c, s->not_before_ms);
    N(c, s->guarded | s->counted << 1 | s->alone << 2 | s->aborted << 3 | s->gone << 4 | s->spare << 5 |
             s->unrouted << 6);
    if (s->phase >= HK_SLOT_READY)
        add_message(c, &s->message);
    if (s->phase == HK_SLOT_SETTLE || s->phase == HK_SLOT_SETTLING)
        add_settle(c, &s->settle);
}

static void add_dest(struct hk_canon *c, const struct hk_dest *d)
{
    N(c, d->in_flight);
    N(c, d->retries_in_flight);
    N(c, d->retries_chosen);
    N(c, d->sending);
    N(c, d->reserve_len);
    N(c, d->auth_in_row);
    N(c, d->rate.tokens);
    N(c, d->probe.tokens);
    N(c, d->paused | d->seen_paused << 1 | d->pause_due << 2 | d->behind << 3 | d->tell_circuit << 4);
    N(c, d->cursor);
    hk_canon_deadline(c, d->retry_look_at_ms);
    hk_canon_due(c, d->retry_due_ms);
    hk_canon_due(c, d->retry_after_due_ms);
    N(c, d->retry_after_id);
    N(c, d->retry_passed | d->retry_last << 1);
    N(c, d->limiter ? hk_limiter_in_flight(d->limiter) : 0);
    hk_canon_time(c, hk_dest_limit_at(d, c->now_ms));
}

/* One destination and one key: at most one entry. */
static void add_order(struct hk_canon *c, struct hk_order *order)
{
    N(c, hk_order_count(order));
    N(c, hk_order_queue(order));
    const struct hk_order_key *k = hk_order_find(order, hk_order_hash(order, 0, hk_str_of("k")));
    if (!k)
        return;
    N(c, k->waiting);
    N(c, k->unrouted);
    N(c, k->in_flight);
    N(c, k->dead);
    N(c, k->doubtful | k->queued << 1);
    N(c, k->passed_id);
}

static void add_call(struct hk_canon *c, const struct hk_engine *e)
{
    N(c, e->call.kind);
    hk_canon_time(c, e->call.asked_at_ms);
    if (e->call.kind != HK_ACT_EXCHANGE)
        return;
    N(c, e->exchange.n_settles);
    for (size_t i = 0; i < e->exchange.n_settles; i++) {
        N(c, slot_name(e, e->exchange.settle_slots[i]));
        add_settle(c, &e->exchange.settles[i]);
    }
    N(c, e->exchange.n_wants);
    for (size_t i = 0; i < e->exchange.n_wants; i++)
        N(c, slot_name(e, e->exchange.want_slots[i]));
}

static void add_lane(struct hk_canon *c, const struct hk_engine *e)
{
    hk_canon_lane(c, e->lease.lane);
    if (e->lease.lane) {
        hk_canon_time(c, e->lease.until_ms);
        hk_canon_deadline(c, e->lease.renew_at_ms);
    }
    N(c, e->lease.aborted);
    N(c, e->clock.known);
    N(c, e->clock.lo_ms);
    N(c, e->clock.hi_ms);
    N(c, e->call.backoff_ms);
    hk_canon_deadline(c, e->call.retry_at_ms);
}

static void add_reading(struct hk_canon *c, const struct hk_engine *e)
{
    N(c, e->keys.loaded | e->keys.stale << 1 | e->keys.doubtful << 2);
    N(c, e->keys.acts);
    N(c, e->keys.acts_read);
    hk_canon_deadline(c, e->keys.look_at_ms);
    hk_canon_deadline(c, e->keys.net_at_ms);
    hk_canon_deadline(c, e->polls.next_ms);
    hk_canon_time(c, e->polls.wake_at_ms);
    N(c, e->polls.every_ms);
    N(c, e->reading.last_id);
    N(c, e->reading.cursor);
    N(c, e->reading.late_told | e->reading.late_begun << 1);
    N(c, e->reading.sweep_cursor);
    hk_canon_deadline(c, e->reading.sweep_at_ms);
    N(c, e->reading.given_back);
    N(c, e->reading.fresh_turn | e->exchange.looked << 1);
    N(c, e->reading.want_alone);
    hk_canon_deadline(c, e->reading.last_scan_ms + (int64_t)e->options.linger_ms);
    hk_canon_time(c, e->stray.due_ms);
    N(c, e->forced.look | e->forced.left << 1 | e->reading.want_forced << 2 | e->forced.crowded << 3);
    hk_canon_deadline(c, e->forced.look ? e->forced.look_at_ms : INT64_MAX);
    hk_canon_due(c, e->forced.after_due_ms);
    N(c, e->forced.after_id);
}

static void add_engine(struct hk_canon *c, struct hk_engine *e)
{
    add_lane(c, e);
    add_reading(c, e);
    add_dest(c, &e->dests[0]);
    add_order(c, e->order);
    for (uint32_t i = 0; i < e->n_slots; i++)
        if (e->slots[i].phase != HK_SLOT_FREE)
            add_slot(c, &e->slots[i]);
    add_ring(c, e, &e->chosen);
    add_ring(c, e, &e->ready);
    add_ring(c, e, &e->settle);
    N(c, e->used_slots);
    N(c, e->load.in_flight);
    N(c, e->load.retries);
    N(c, e->load.sending);
    N(c, e->load.bytes);
    N(c,
      e->load.bytes_full | e->load.alone << 1 | e->drain.on << 2 | e->drain.aborted << 3 | e->abort_due << 4);
    hk_canon_deadline(c, e->exchange.oldest_ms);
    for (int i = 0; i < 4; i++)
        N(c, e->rng.s[i] ^ e->breaker_rng.s[i]);
    N(c, e->call.busy);
    if (e->call.busy)
        add_call(c, e);
}

/* ---- a relay's process ---- */

static void add_scan(struct hk_canon *c, const struct hk_scan *s)
{
    N(c, s->source);
    N(c, s->late | s->forced << 1);
    N(c, s->after_id);
    hk_canon_due(c, s->after_due_ms);
    N(c, (s->destination != NULL) | (s->key != NULL) << 1);
    N(c, s->limit);
}

static void add_reply(struct hk_canon *c, const struct mini_relay *r)
{
    const struct hk_model_reply *reply = &r->reply;
    N(c, reply->rc);
    if (reply->rc != HK_OK)
        return;
    if (r->call.kind == HK_ACT_ACQUIRE) {
        hk_canon_lane(c, reply->lane);
        hk_canon_time(c, reply->now_ms);
    }
    if (r->call.kind != HK_ACT_EXCHANGE)
        return;
    hk_canon_time(c, reply->exchanged.now_ms);
    hk_canon_claim(c, reply->exchanged.claim);
    N(c, reply->exchanged.n_messages);
    for (size_t i = 0; i < reply->exchanged.n_messages; i++)
        add_message(c, &reply->exchanged.messages[i]);
    for (size_t i = 0; i < r->call.exchange.n_settles; i++)
        N(c, reply->exchanged.stale[i]);
}

static void add_wire(struct hk_canon *c, const struct wire *wire)
{
    N(c, wire->stage);
    N(c, wire->end);
    N(c, wire->aborted);
    hk_canon_text(c, wire->line.m);
    N(c, wire->line.source);
    N(c, wire->line.id);
    hk_canon_lane(c, wire->line.lane);
    hk_canon_claim(c, wire->line.claim);
    N(c, wire->line.life);
    N(c, wire->line.attempt);
}

static void add_relay(struct hk_canon *c, const struct mini *w, const struct mini_relay *r)
{
    N(c, r->stopped);
    hk_canon_deadline(c, r->wake_ms);
    N(c, r->handle.polled);
    N(c, r->handle.version == w->model->version);
    N(c, r->store);
    if (r->store == ASKED && r->call.kind == HK_ACT_SCAN)
        add_scan(c, &r->call.scan);
    if (r->store == ASKED && r->call.kind == HK_ACT_EXCHANGE)
        hk_canon_lane(c, r->call.exchange.lane);
    if (r->store == DONE)
        add_reply(c, r);
    if (r->engine->call.busy && r->call.kind == HK_ACT_SCAN) {
        N(c, r->call.purpose.kind);
        N(c, r->call.purpose.dest);
    }
    add_engine(c, r->engine);
    for (uint32_t i = 0; i < WIRES; i++)
        if (r->wires[i].stage != IDLE) {
            N(c, slot_name(r->engine, i));
            add_wire(c, &r->wires[i]);
        }
}

/* ---- the store ---- */

static void add_row(struct hk_canon *c, const struct model_row *row)
{
    N(c, row->id);
    N(c, row->numbered | row->visible << 1 | row->deferred << 2);
    hk_canon_text(c, hk_str_of(row->msg->message_id));
    hk_canon_claim(c, row->claim);
    hk_canon_due(c, row->due_ms ? row->due_ms : INT64_MIN);
    N(c, row->crashes);
    N(c, row->life);
    N(c, row->letter);
    N(c, row->first_failed_ms != 0);
    add_history(c, &row->history);
}

static void add_rows(struct hk_canon *c, const struct model_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        if (!rows->items[i].gone)
            add_row(c, &rows->items[i]);
    N(c, -1);
}

static void add_store(struct hk_canon *c, const struct hk_model *m)
{
    add_rows(c, &m->outbox);
    add_rows(c, &m->retry);
    N(c, m->next_outbox);
    N(c, m->next_retry);
    N(c, m->acts);
    for (size_t i = 0; i < m->lanes.n; i++) {
        hk_canon_lane(c, m->lanes.items[i].lane);
        hk_canon_time(c, m->lanes.items[i].until_ms > c->now_ms ? m->lanes.items[i].until_ms : c->now_ms);
        hk_canon_text(c, hk_str_of(m->lanes.items[i].relay));
        N(c, m->lanes.items[i].dead);
    }
    for (size_t i = 0; i < m->letters.n; i++) {
        hk_canon_text(c, hk_str_of(m->letters.items[i].msg->message_id));
        hk_canon_text(c, hk_str_of(m->letters.items[i].reason));
        N(c, m->letters.items[i].status);
        N(c, m->letters.items[i].attempts);
        N(c, m->letters.items[i].life);
    }
    for (size_t i = 0; i < m->ends.n; i++) {
        hk_canon_text(c, hk_str_of(m->ends.items[i].msg->message_id));
        N(c, m->ends.items[i].attempts);
        N(c, m->ends.items[i].life);
        N(c, m->ends.items[i].cancelled);
    }
    for (size_t i = 0; i < m->attempts.n; i++) {
        hk_canon_text(c, hk_str_of(m->attempts.items[i].msg->message_id));
        N(c, m->attempts.items[i].life);
        N(c, m->attempts.items[i].n);
    }
    N(c, m->paused.n);
}

/* ---- the checker ---- */

static void add_leg(struct hk_canon *c, const struct checker *k, const struct cleg *leg)
{
    hk_canon_text(c, hk_str_of(k->msg_names.texts[leg->msg]));
    N(c, leg->state);
    N(c, leg->life);
    N(c, leg->attempts);
    N(c, leg->charged);
    hk_canon_deadline(c, leg->due);
    N(c, leg->hint_due);
    N(c, leg->crashes);
    N(c, leg->acted);
    N(c, leg->sent);
    N(c, leg->open_sends);
    N(c, leg->ever_sent | leg->died_unrouted << 1 | leg->orphaned << 2 | (leg->parted_at != 0) << 3);
}

static void add_crow(struct hk_canon *c, const struct mini *w, const struct checker *k, const char *name)
{
    size_t i = hk_names_find(&k->row_names, hk_str_of(name));
    N(c, i != NOBODY);
    if (i == NOBODY)
        return;
    const struct crow *row = &k->rows.items[i];
    N(c, row->msg);
    N(c, row->leg);
    hk_canon_claim(c, row->claim);
    hk_canon_lane(c, row->lane && row->claim ? row->lane : 0);
    N(c, (row->last_claim & INT32_MAX) < w->model->next_claim); /* a new one is a new number */
}

static void add_sends(struct hk_canon *c, const struct checker *k)
{
    int64_t unclear[MESSAGES_MAX] = {0};
    for (size_t i = 0; i < k->sends.n; i++) {
        const struct csend *s = &k->sends.items[i];
        if (!hk_canon_has_claim(c, s->claim)) {
            unclear[s->leg] += s->failed ? s->maybe : !s->settled && (s->orphaned || !s->confirmed);
            continue;
        }
        hk_canon_text(c, hk_str_of(k->row_names.texts[s->row]));
        N(c, s->leg);
        hk_canon_claim(c, s->claim);
        N(c, s->confirmed | s->failed << 1 | s->maybe << 2 | s->orphaned << 3 | s->settled << 4 |
                 s->suspect << 5 | s->local << 6);
        N(c, s->status);
    }
    for (int i = 0; i < MESSAGES_MAX; i++)
        N(c, unclear[i]);
}

/* When the store heard of a lane matters only where people act, and nobody does here. */
static void add_clanes(struct hk_canon *c, const struct mini *w, const struct checker *k)
{
    for (size_t i = 0; i < k->lanes.n; i++) {
        const struct clane *lane = &k->lanes.items[i];
        if (!lane->live && !hk_canon_has_lane(c, lane->lane))
            continue;
        hk_canon_lane(c, lane->lane);
        hk_canon_time(c, lane->until < c->now_ms ? c->now_ms - 1 : lane->until);
        hk_canon_text(c, hk_str_of(lane->relay == NOBODY ? "" : k->relay_names.texts[lane->relay]));
        N(c, lane->live | lane->dead << 1);
    }
    N(c, k->last_lane < w->model->next_lane);
}

static void add_checker(struct hk_canon *c, const struct mini *w)
{
    static const char *const rows[] = {"o1", "o2", "r1", "r2"};
    const struct checker *k = w->checker;
    N(c, k->result->violations);
    for (size_t i = 0; i < k->legs.n; i++)
        add_leg(c, k, &k->legs.items[i]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        add_crow(c, w, k, rows[i]);
    N(c, k->rows.n);
    add_sends(c, k);
    add_clanes(c, w, k);
}

#if UINTPTR_MAX == UINT64_MAX
/* A field more or less: is it hashed above, or said why not? Then, the new size.
 * Nobody shares seats there, nor forces a message, and nothing is told of time-outs.
 * Of engine_share.c nothing is hashed: the one destination of these worlds shares with nobody. */
#define LOOKED_AT(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "struct " #type " has changed")
LOOKED_AT(
    hk_engine,
    1160); /* its sinks always have room, so that what engine_room.c keeps stays 0; at most one name is a stray */
LOOKED_AT(hk_slot, 912); /* nobody names a timeout or a time to wait for, or reads why an attempt failed */
LOOKED_AT(hk_dest, 480);
LOOKED_AT(hk_model, 672);
LOOKED_AT(model_row, 216); /* none of its rows is stuck, and nobody sets its time back */
LOOKED_AT(
    checker,
    4328); /* nobody edits or requeues there, so that `outs` is empty; no clock is behind or jumps; no sink is full */
LOOKED_AT(cleg, 336);
LOOKED_AT(crow, 96); /* nothing is sealed there, so that `keyless` is 0 */
LOOKED_AT(csend, 96);
LOOKED_AT(clane, 56);
#endif

struct hk_hash128 hk_mini_hash(const struct mini *w, struct hk_canon *canon)
{
    hk_canon_begin(canon, w->now_ms);
    N(canon, w->n_committed);
    N(canon, w->faults);
    N(canon, w->wrong != NULL);
    for (int i = 0; i < RELAYS; i++)
        add_relay(canon, w, &w->relays[i]);
    add_store(canon, w->model);
    add_checker(canon, w);
    return hk_canon_hash(canon);
}
