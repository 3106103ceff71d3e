/* SPDX-License-Identifier: Apache-2.0 */
/* From claimed to settled: keeps a copy of the message, has it sent, asks the policy about the outcome, and makes the settle for the
 * store. Breaker, limiter and key order learn of the outcome on the way. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/engine_impl.h"
#include "core/policy_impl.h"

enum {
    KEEP_ERROR = 1024,
    KEEP_PLACE = 96,
    KEEP_SEALED = 16384,      /* of either, when it is sealed: more than either can be */
    NO_MEMORY_WAIT_MS = 30000 /* a message that there is no memory for is put off, not retried at once */
};

/* ---- copies ---- */

static struct hk_str copy_str(char **at, struct hk_str s, size_t most)
{
    size_t len = s.len < most ? s.len : most;
    struct hk_str copy = {*at, len};
    if (len)
        memcpy(*at, s.ptr, len);
    (*at)[len] = '\0'; /* some readers want a terminated string */
    *at += len + 1;
    return copy;
}

/* Every text of a message, so that none is forgotten in the sum or in the copy. */
#define MESSAGE_TEXTS(X)                                                                                     \
    X(message_id)                                                                                            \
    X(destination)                                                                                           \
    X(event_type)                                                                                            \
    X(key)                                                                                                   \
    X(headers)                                                                                               \
    X(content_type)                                                                                          \
    X(encoding) X(correlation_id) X(traceparent) X(idempotency_key) X(policy) X(last_cause) X(payload)

static bool copy_message(struct hk_slot *slot, const struct hk_message *msg)
{
    size_t bytes = 0;
#define ADD(text) bytes += msg->text.len + 1;
    MESSAGE_TEXTS(ADD)
#undef ADD
    char *at = hk_mem_alloc(bytes);
    if (!at)
        return false;
    slot->block = at;
    slot->message = *msg;
#define COPY(text) slot->message.text = copy_str(&at, msg->text, SIZE_MAX);
    MESSAGE_TEXTS(COPY)
#undef COPY
    return true;
}

/* One line for a person. Whoever sent it puts the receiver's words there; where there are none, the error of an earlier attempt
 * must not seem to be the reason. */
static struct hk_str error_of(const struct hk_facts *facts, char room[32])
{
    if (facts->error.len || facts->status <= 0)
        return facts->error;
    (void)snprintf(room, 32, "the answer was HTTP %d", facts->status);
    return hk_str_of(room);
}

/* The attempt's texts; without memory for them the attempt is settled without them. */
static void copy_record(struct hk_slot *slot, const struct hk_outcome *outcome)
{
    struct hk_attempt_record *r = &slot->settle.attempt;
    size_t answer = outcome->hushed ? 2 * KEEP_SEALED : HK_KEPT_HEADERS + HK_KEPT_BODY;
    char *at = hk_mem_alloc(KEEP_ERROR + HK_KEPT_HEADERS + answer + 128 + 5);
    if (!at)
        return;
    struct hk_outcome shown = *outcome;
    if (shown.show)
        shown.show(&shown);
    slot->record = at;
    char answered[32];
    r->error = copy_str(&at, error_of(&shown.facts, answered), KEEP_ERROR);
    r->request_headers = copy_str(&at, shown.request_headers, HK_KEPT_HEADERS);
    if (shown.hushed) {
        r->response_headers = copy_str(&at, shown.sealed_headers, KEEP_SEALED);
        r->response_body = copy_str(&at, shown.sealed_body, KEEP_SEALED);
    } else {
        r->response_headers = copy_str(&at, shown.response_headers, HK_KEPT_HEADERS);
        r->response_body = copy_str(&at, outcome->facts.body, HK_KEPT_BODY);
    }
    r->address = copy_str(&at, outcome->address, 128);
}

/* Keeps where a broker stored a delivered message. Nothing else of the answer is kept. */
static void copy_place(struct hk_slot *slot, const struct hk_facts *facts)
{
    char *text = facts->placed ? hk_mem_alloc(KEEP_PLACE) : NULL;
    if (!text)
        return;
    int n = facts->partition >= 0
                ? snprintf(text, KEEP_PLACE, "{\"partition\":\"%" PRId32 "\",\"offset\":\"%" PRId64 "\"}",
                           facts->partition, facts->sequence)
                : snprintf(text, KEEP_PLACE, "{\"sequence\":\"%" PRId64 "\"}", facts->sequence);
    slot->record = text;
    slot->settle.attempt.response_headers = (struct hk_str){text, (size_t)n};
}

/* ---- guards ---- */

void hk_slot_landed(struct hk_engine *e, struct hk_slot *slot, int64_t now_ms)
{
    if (!slot->guarded)
        return;
    struct hk_dest *d = &e->dests[slot->dest];
    slot->guarded = false;
    if (!slot->forced)
        hk_limiter_release(d->limiter);
    if (d->breaker && slot->permit)
        hk_breaker_release(d->breaker, slot->permit, now_ms);
    slot->permit = 0;
    if (!slot->counted)
        return;
    slot->counted = false;
    e->load.bytes -= slot->bytes;
    d->bytes -= slot->bytes;
    e->load.landings++;
    e->load.bytes_full = false;
    e->load.in_flight--;
    if (slot->alone)
        e->load.alone = false;
    hk_forced_has_place(e, now_ms);
    if (slot->forced) {
        hk_forced_landed(e, d, now_ms);
        return;
    }
    d->in_flight--;
    if (!d->in_flight)
        hk_share_turn(e, d);
    if (slot->source == HK_FROM_RETRY) {
        e->load.retries--;
        d->retries_in_flight--;
    }
}

/* The outcome as the breaker sees it. Our own faults say nothing about the destination. */
static void tell_breaker(struct hk_engine *e, struct hk_slot *slot, const struct hk_decision *d,
                         int64_t now_ms)
{
    struct hk_breaker *breaker = e->dests[slot->dest].breaker;
    if (!breaker || d->own_fault || !slot->permit) /* without: its breaker is another one since */
        return;
    hk_breaker_record(breaker, slot->permit, !d->unhealthy, now_ms, &e->breaker_rng);
    slot->permit = 0;
    hk_circuit_note(&e->dests[slot->dest], now_ms);
}

static void tell_dest(struct hk_dest *dest, const struct hk_decision *d, int64_t now_ms)
{
    if (d->failure_class == HK_CLASS_AUTH)
        dest->auth_in_row++;
    else if (d->failure_class == HK_CLASS_SUCCESS)
        dest->auth_in_row = 0;
    if (d->hold_ms)
        hk_limiter_hold(dest->limiter, now_ms + (int64_t)d->hold_ms);
    if (d->pause_destination && !dest->paused) {
        dest->paused = true;
        dest->pause_due = true;
        (void)hk_str_copy(dest->pause_reason, sizeof dest->pause_reason, hk_str_of(d->cause));
    }
}

/* ---- settling ---- */

static const char *dest_name(const struct hk_engine *e, const struct hk_slot *slot)
{
    return slot->dest == HK_NO_DEST ? NULL : e->dests[slot->dest].name;
}

void hk_slot_settle(struct hk_engine *e, uint32_t i, enum hk_settle_kind kind, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    struct hk_settle *s = &slot->settle;
    s->claim = slot->claim;
    s->source = slot->source;
    s->id = slot->id;
    s->kind = kind;
    s->message_id = slot->message.message_id;
    s->life = slot->message.life;
    s->reason = hk_str_of(slot->reason);
    s->destination = dest_name(e, slot) ? hk_str_of(dest_name(e, slot)) : slot->message.destination;
    hk_slot_move(e, i, HK_MOVE_DECIDE);
    hk_engine_wants_exchange(e, now_ms);
}

static void keep_history(struct hk_slot *slot)
{
    slot->settle.history = slot->message.history;
    slot->settle.first_failed_ms = slot->message.first_failed_ms;
}

/* Dead without an attempt: nothing was sent. slot->reason says why. */
static void settle_unsent(struct hk_engine *e, uint32_t i, enum hk_class cls, const char *text,
                          int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    keep_history(slot);
    if (!slot->settle.first_failed_ms)
        slot->settle.first_failed_ms = hk_engine_store_now(e, now_ms);
    slot->settle.attempt = (struct hk_attempt_record){.failure_class = cls,
                                                      .started_ms = hk_engine_store_now(e, now_ms),
                                                      .cause = hk_str_of(slot->reason),
                                                      .error = hk_str_of(text)};
    hk_slot_settle(e, i, HK_SETTLE_DEAD, now_ms);
}

static void settle_refused(struct hk_engine *e, uint32_t i, const struct hk_refusal *refusal, int64_t now_ms)
{
    struct hk_facts facts = {.fault = refusal->fault};
    bool pause;
    enum hk_class cls = hk_default_class(&facts, hk_engine_slot(e, i)->reason, &pause);
    hk_slot_landed(e, hk_engine_slot(e, i), now_ms);
    settle_unsent(e, i, cls, refusal->text, now_ms);
}

void hk_slot_overdue(struct hk_engine *e, uint32_t i, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    hk_slot_landed(e, slot, now_ms);
    (void)hk_str_copy(slot->reason, sizeof slot->reason, hk_str_of(HK_REASON_DEADLINE));
    settle_unsent(e, i, HK_CLASS_TRANSIENT, "the policy's time was over before it could be sent again",
                  now_ms);
}

void hk_slot_give_back(struct hk_engine *e, uint32_t i, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    keep_history(slot);
    hk_slot_landed(e, slot, now_ms);
    hk_slot_settle(e, i, HK_SETTLE_RELEASE, now_ms);
}

/* We ended the send ourselves, and it may have arrived. That has to stay known: under the same id nobody may send other bytes
 * later. A row of outbox has no place for it, so the message waits in outbox_retry, due at once, and holds its key. No
 * attempt is charged. */
static void settle_doubtful(struct hk_engine *e, uint32_t i, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    int64_t store_now = hk_engine_store_now(e, now_ms);
    keep_history(slot);
    slot->settle.due_ms = store_now;
    slot->settle.attempt = (struct hk_attempt_record){.failure_class = HK_CLASS_TRANSIENT,
                                                      .started_ms = store_now - (now_ms - slot->started_ms),
                                                      .error = hk_str_of(HK_STOPPED_SENDING),
                                                      .possibly_delivered = true};
    hk_slot_landed(e, slot, now_ms);
    hk_slot_settle(e, i, HK_SETTLE_RETRY, now_ms);
}

/* The relay itself cannot send the message now (a key is missing). The message waits in outbox_retry, where it does not delay others, and
 * holds its message_key. */
static void settle_put_off(struct hk_engine *e, uint32_t i, const struct hk_outcome *outcome, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    int64_t store_now = hk_engine_store_now(e, now_ms);
    keep_history(slot);
    slot->settle.due_ms = store_now + (int64_t)outcome->put_off_ms;
    (void)hk_str_copy(slot->cause, sizeof slot->cause, hk_str_of(HK_CAUSE_KEY_MISSING));
    slot->settle.attempt = (struct hk_attempt_record){
        .failure_class = HK_CLASS_TRANSIENT, .started_ms = store_now, .cause = hk_str_of(slot->cause)};
    copy_record(slot, outcome);
    hk_slot_landed(e, slot, now_ms);
    hk_slot_settle(e, i, HK_SETTLE_RETRY, now_ms);
}

static void settle_deferred(struct hk_engine *e, uint32_t i, int64_t due_ms, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    keep_history(slot);
    slot->settle.due_ms = due_ms;
    hk_slot_settle(e, i, HK_SETTLE_DEFER, now_ms);
}

static void settle_fan_out(struct hk_engine *e, uint32_t i, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    const struct hk_engine_route *route = &e->options.routes[slot->route];
    slot->fan_out = hk_mem_zalloc(route->n_dests, sizeof *slot->fan_out);
    if (!slot->fan_out) {
        settle_deferred(e, i, hk_engine_store_now(e, now_ms) + NO_MEMORY_WAIT_MS, now_ms);
        return;
    }
    for (size_t k = 0; k < route->n_dests; k++)
        slot->fan_out[k] = hk_str_of(e->dests[route->dests[k]].name);
    keep_history(slot);
    slot->settle.due_ms = hk_engine_store_now(e, now_ms);
    slot->settle.fan_out = slot->fan_out;
    slot->settle.n_fan_out = route->n_dests;
    hk_slot_settle(e, i, HK_SETTLE_FAN_OUT, now_ms);
}

const struct hk_policy *hk_slot_policy(const struct hk_engine *e, const struct hk_slot *slot)
{
    if (slot->message.policy.len && e->options.policy_by_name)
        return e->options.policy_by_name(e->options.policy_arg, slot->message.policy.ptr);
    return e->dests[slot->dest].conf.policy;
}

/* The limits that the message itself asks for, within the ceilings of the configuration. */
static struct hk_overrides overrides_of(const struct hk_engine *e, const struct hk_slot *slot)
{
    uint64_t ceiling_ms = e->options.timeout_ceiling_ms, asked_ms = slot->message.timeout_ms;
    return (struct hk_overrides){.max_attempts = hk_limits_attempts_within(
                                     hk_policy_limits(hk_slot_policy(e, slot)), slot->message.max_attempts,
                                     e->options.max_attempts_ceiling),
                                 .timeout_ms = ceiling_ms && asked_ms > ceiling_ms ? ceiling_ms : asked_ms};
}

uint64_t hk_slot_attempt_ms(const struct hk_engine *e, const struct hk_slot *slot, int64_t now_ms)
{
    struct hk_overrides overrides = overrides_of(e, slot);
    return hk_policy_attempt_ms(hk_slot_policy(e, slot), &overrides, &slot->message.history,
                                hk_engine_store_now(e, now_ms));
}

static void make_ready(struct hk_engine *e, uint32_t i, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    struct hk_refusal refusal = hk_refusal_of_message(&slot->message, hk_slot_policy(e, slot));
    if (refusal.text) {
        settle_refused(e, i, &refusal, now_ms);
        return;
    }
    if (e->drain.on || hk_dest_rests(&e->dests[slot->dest])) {
        hk_slot_give_back(e, i, now_ms);
        return;
    }
    hk_slot_move(e, i, HK_MOVE_READY);
}

void hk_slot_claimed(struct hk_engine *e, uint32_t i, const struct hk_message *msg, int64_t claim,
                     int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    slot->claim = claim;
    e->stats.claimed++;
    if (!copy_message(slot, msg)) {
        slot->message = (struct hk_message){.history = msg->history, .first_failed_ms = msg->first_failed_ms};
        hk_slot_landed(e, slot, now_ms);
        settle_deferred(e, i, hk_engine_store_now(e, now_ms) + NO_MEMORY_WAIT_MS, now_ms);
        return;
    }
    switch (slot->intent) {
    case HK_TO_SEND:
        make_ready(e, i, now_ms);
        break;
    case HK_TO_DEFER:
        settle_deferred(e, i, slot->not_before_ms, now_ms);
        break;
    case HK_TO_FAN_OUT:
        settle_fan_out(e, i, now_ms);
        break;
    case HK_TO_REFUSE:
        if (hk_dest_may_exist(e, slot, now_ms))
            hk_slot_give_back(e, i, now_ms);
        else
            settle_refused(e, i, &slot->refusal, now_ms);
        break;
    }
}

/* ---- the outcome of a send ---- */

static enum hk_settle_kind apply(struct hk_slot *slot, const struct hk_decision *d, int64_t store_now_ms)
{
    if (d->verdict != HK_DELIVERED && !slot->settle.first_failed_ms)
        slot->settle.first_failed_ms = store_now_ms;
    (void)hk_str_copy(slot->cause, sizeof slot->cause, hk_str_of(d->cause));
    (void)hk_str_copy(slot->reason, sizeof slot->reason, hk_str_of(d->reason));
    switch (d->verdict) {
    case HK_DELIVERED:
        return HK_SETTLE_SENT;
    case HK_RETRY:
        /* clocks count whole milliseconds: only when the next one has begun is the wait over for sure */
        slot->settle.due_ms = store_now_ms + (int64_t)d->wait_ms + 1;
        return HK_SETTLE_RETRY;
    case HK_DEAD:
        return HK_SETTLE_DEAD;
    }
    return HK_SETTLE_RELEASE;
}

static void judge(struct hk_engine *e, uint32_t i, const struct hk_outcome *outcome, int64_t now_ms)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    struct hk_dest *dest = &e->dests[slot->dest];
    int64_t store_now = hk_engine_store_now(e, now_ms);
    struct hk_facts facts = outcome->facts;
    struct hk_overrides overrides = overrides_of(e, slot);
    struct hk_decision d;

    keep_history(slot);
    if (slot->settle.history.attempts == 0)
        slot->settle.history.first_attempt_ms = store_now - (now_ms - slot->started_ms);
    facts.failures_in_row = dest->auth_in_row + 1;
    hk_policy_decide(hk_slot_policy(e, slot), NULL, &overrides, &slot->settle.history, &facts, store_now,
                     store_now, &e->rng, &d);
    enum hk_settle_kind kind = apply(slot, &d, store_now);
    tell_breaker(e, slot, &d, now_ms);
    tell_dest(dest, &d, now_ms);
    struct hk_refusal refusal = hk_refusal_of_decision(&facts, &d);
    if (refusal.text) {
        hk_slot_landed(e, slot, now_ms);
        settle_unsent(e, i, d.failure_class, refusal.text, now_ms);
        copy_record(slot, outcome); /* its own words, if there is memory for them */
        return;
    }
    slot->settle.attempt = (struct hk_attempt_record){.made = true,
                                                      .started_ms = store_now - (now_ms - slot->started_ms),
                                                      .duration_ms = facts.duration_ms,
                                                      .status = facts.status,
                                                      .failure_class = d.failure_class,
                                                      .cause = hk_str_of(slot->cause),
                                                      .possibly_delivered = facts.possibly_delivered};
    if (d.verdict != HK_DELIVERED)
        copy_record(slot, outcome);
    else
        copy_place(slot, &facts);
    hk_slot_landed(e, slot, now_ms);
    hk_slot_settle(e, i, kind, now_ms);
}

void hk_engine_on_outcome(struct hk_engine *e, int64_t now_ms, uint32_t i, const struct hk_outcome *outcome)
{
    struct hk_slot *slot = hk_engine_slot(e, i);
    struct hk_dest *dest = &e->dests[slot->dest];
    struct hk_refusal refusal = hk_refusal_of_facts(&outcome->facts);
    e->load.sending--;
    *(slot->forced ? &dest->forced_sending : &dest->sending) -= 1;
    dest->answered++;
    dest->answered_ms = now_ms;
    hk_share_answered(dest, now_ms - slot->started_ms);
    hk_room_answered(dest);
    if (slot->phase == HK_SLOT_ORPHANED) {
        hk_slot_landed(e, slot, now_ms);
        hk_slot_free(e, i, HK_MOVE_LEAVE);
    } else if ((slot->aborted || dest->conf.held) && outcome->facts.fault == HK_FAULT_LOCAL) {
        if (outcome->facts.possibly_delivered)
            settle_doubtful(e, i, now_ms);
        else
            hk_slot_give_back(e, i, now_ms);
    } else if (outcome->put_off_ms) {
        settle_put_off(e, i, outcome, now_ms);
    } else if (refusal.text) {
        settle_refused(e, i, &refusal, now_ms);
        copy_record(slot, outcome); /* its own words, if there is memory for them */
    } else {
        judge(e, i, outcome, now_ms);
    }
    hk_reserve_next(e, dest, now_ms);
}

/* ---- after the exchange ---- */

static void count(struct hk_engine_stats *stats, enum hk_settle_kind kind)
{
    switch (kind) {
    case HK_SETTLE_SENT:
        stats->sent++;
        break;
    case HK_SETTLE_RETRY:
        stats->retried++;
        break;
    case HK_SETTLE_DEAD:
        stats->dead++;
        break;
    case HK_SETTLE_RELEASE:
        stats->released++;
        break;
    case HK_SETTLE_DEFER:
        stats->deferred++;
        break;
    case HK_SETTLE_FAN_OUT:
        stats->fanned_out++;
        break;
    }
}

/* A key that the table has no memory for is not held: order is lost for it rather than the message. */
static void hold(struct hk_engine *e, size_t dest, struct hk_str text, bool dead)
{
    if (!e->dests[dest].conf.ordered || !text.len)
        return;
    struct hk_order_key *key = hk_order_get(e->order, hk_order_hash(e->order, dest, text), dest);
    if (!key)
        return;
    if (dead)
        key->dead++;
    else
        key->waiting++;
}

static void free_key(struct hk_engine *e, uint64_t hash)
{
    struct hk_order_key *key = hk_order_find(e->order, hash);
    if (!key)
        return;
    if (key->in_flight)
        key->in_flight--;
    if (key->waiting)
        hk_engine_note_due(e, key->dest, INT64_MIN); /* a retry row may have waited for this */
    hk_order_tidy(e->order, hash);
}

void hk_slot_free_keys(struct hk_engine *e, struct hk_slot *slot)
{
    if (slot->key)
        free_key(e, slot->key);
    slot->key = 0;
    if (!slot->fan_key)
        return;
    const struct hk_engine_route *route = &e->options.routes[slot->route];
    for (size_t k = 0; k < route->n_dests; k++)
        if (e->dests[route->dests[k]].conf.ordered)
            free_key(e, hk_order_hash(e->order, route->dests[k], hk_str_of(slot->fan_key)));
    hk_mem_free(slot->fan_key);
    slot->fan_key = NULL;
}

static void fanned_out(struct hk_engine *e, const struct hk_slot *slot)
{
    const struct hk_engine_route *route = &e->options.routes[slot->route];
    if (slot->unrouted) /* rare; whether the new rows hold their keys depends on the old one */
        e->keys.loaded = false;
    for (size_t k = 0; k < route->n_dests; k++) {
        if (slot->source == HK_FROM_OUTBOX)
            hold(e, route->dests[k], slot->message.key, false);
        hk_engine_note_due(e, route->dests[k], slot->settle.due_ms);
    }
}

/* The row is back in its table. A row of outbox is below the cursor then. */
static void released(struct hk_engine *e, const struct hk_slot *slot)
{
    if (slot->source == HK_FROM_RETRY) {
        if (slot->held)
            hold(e, slot->dest, slot->message.key, false);
        hk_engine_note_due(e, slot->dest, INT64_MIN);
        if (slot->forced)
            hk_forced_look(e, INT64_MIN);
        return;
    }
    struct hk_order_key *key = slot->key ? hk_order_find(e->order, slot->key) : NULL;
    if (key && hk_order_pass(key, slot->id, slot->message.key))
        return; /* it is the first that its key reads again */
    struct hk_dest *d = &e->dests[slot->dest];
    if (hk_dest_read_to(e, d) < slot->id)
        return;
    d->behind = true;
    d->cursor = hk_id_before(slot->id);
}

/* A message that a person requeued may have been claimed before its row was counted among those that wait, and then it was
 * another one's place that it took. Who comes after them waits until the keys were read again. */
static void doubt(struct hk_engine *e, const struct hk_slot *slot)
{
    struct hk_order_key *key =
        slot->message.letter_id && slot->key ? hk_order_get(e->order, slot->key, slot->dest) : NULL;
    if (key)
        key->doubtful = e->keys.doubtful = true;
}

/* The row stays in its table, and no scan shows it again. Its key is free if it was delivered; if not, it holds it: as a retry
 * that waits if it was one, else as a dead head does. */
void hk_slot_stuck(struct hk_engine *e, struct hk_slot *slot)
{
    bool dead = slot->source == HK_FROM_OUTBOX;
    e->stats.stuck++;
    if (slot->dest != HK_NO_DEST && slot->settle.kind != HK_SETTLE_SENT &&
        !(dead && e->dests[slot->dest].conf.skip_dead))
        hold(e, slot->dest, slot->message.key, dead);
    doubt(e, slot);
    e->keys.doubtful |= slot->unrouted;
    hk_slot_free_keys(e, slot);
}

void hk_slot_settled(struct hk_engine *e, struct hk_slot *slot)
{
    enum hk_settle_kind kind = slot->settle.kind;
    count(&e->stats, kind);
    if (kind == HK_SETTLE_FAN_OUT)
        fanned_out(e, slot);
    if (slot->dest != HK_NO_DEST) {
        if (kind == HK_SETTLE_RETRY)
            hold(e, slot->dest, slot->message.key, false);
        if (kind == HK_SETTLE_RETRY || kind == HK_SETTLE_DEFER)
            hk_engine_note_due(e, slot->dest, slot->settle.due_ms);
        if (kind == HK_SETTLE_RELEASE)
            released(e, slot);
        if (kind == HK_SETTLE_DEAD && !e->dests[slot->dest].conf.skip_dead)
            hold(e, slot->dest, slot->message.key, true);
    } else if (kind == HK_SETTLE_RELEASE) {
        hk_dest_given_back(e, slot);
    }
    doubt(e, slot);
    e->keys.doubtful |= slot->unrouted; /* which of them are free now is not known by itself */
    hk_slot_free_keys(e, slot);
}
