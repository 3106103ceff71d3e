/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the heads of a scan that may be claimed. engine_pick.c decides what to scan.
 *
 * One cursor reads fresh messages once, in order. The engine does not read messages again and again that it could not take: a
 * destination that is full, paused or broken falls *behind*, and later reads its own rows from where it stopped; a held key
 * remembers its first message that was passed over. So the engine walks once over a million rows of a paused destination, and not
 * again until it is resumed.
 *
 * All of these positions may be set back at any time. The engine recognises messages in hand by their ids, passes over messages of
 * held keys again, and does not meet settled messages any more. So no row is lost that becomes visible late, below the positions:
 * if the engine cannot take it at once, a position goes back to it. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/engine_impl.h"

enum {
    CRASHES_ALONE = 3,
    NO_MEMORY_WAIT_MS = 50,
    LOOK_AGAIN_MS = 1000 /* at retry rows whose keys are held, or which are due by a clock that is behind */
};

enum verdict {
    TAKEN,
    IN_HAND,    /* a slot has it already */
    PASSED,     /* its key is held */
    DEST_FULL,  /* its destination cannot take it now */
    ENGINE_FULL /* nothing more can be taken at all */
};

/* The answer to a scan, and what the scan was for. */
struct look {
    const struct hk_scan_purpose *purpose;
    const struct hk_heads *heads;
    int64_t clock_ms; /* what the store's clock said with the heads: not_before and expires_at go by it */
    int64_t now_ms;
};

struct target {
    enum hk_intent intent;
    size_t dest, route;
    struct hk_refusal refusal;
};

static size_t route_of(const struct hk_engine *e, struct hk_str event_type)
{
    size_t i = 0;
    while (i < e->options.n_routes && !hk_str_glob(e->options.routes[i].event_type, event_type))
        i++;
    return i;
}

/* By name, or by route; HK_TO_REFUSE: there is none. A retry row without a name was orphaned on its first way: it is fanned
 * out, be it to one. */
static struct target find_dest(const struct hk_engine *e, const struct hk_head *head)
{
    struct target t = {.intent = HK_TO_SEND, .dest = HK_NO_DEST};
    if (head->destination.len) {
        t.dest = hk_engine_dest_by_name(e, head->destination);
        if (t.dest == HK_NO_DEST)
            t.intent = HK_TO_REFUSE;
        return t;
    }
    t.route = route_of(e, head->event_type);
    if (t.route == e->options.n_routes) {
        t.intent = HK_TO_REFUSE;
        return t;
    }
    const struct hk_engine_route *route = &e->options.routes[t.route];
    if (route->n_dests == 1 && head->source == HK_FROM_OUTBOX)
        t.dest = route->dests[0];
    else
        t.intent = HK_TO_FAN_OUT;
    return t;
}

/* Where a refused message was to go stays known, for its order and for the dead letter. */
static struct target aim(const struct hk_engine *e, const struct look *look, const struct hk_head *head)
{
    struct target t = find_dest(e, head);
    t.refusal = hk_refusal_of_head(e, head, t.intent != HK_TO_REFUSE, look->clock_ms);
    if (t.refusal.text)
        t.intent = HK_TO_REFUSE;
    else if (hk_head_is_early(head, look->clock_ms))
        t.intent = HK_TO_DEFER;
    return t;
}

int64_t hk_id_before(int64_t id)
{
    return id == INT64_MIN ? id : id - 1; /* HK_FIRST_ID: rows above it include the row itself */
}

int64_t hk_id_after(int64_t id)
{
    return id == INT64_MAX ? id : id + 1;
}

static int64_t higher(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint32_t three_quarters(uint32_t n)
{
    return n - n / 4;
}

/* Room is kept for first attempts against a flood of retries. */
int64_t hk_dest_ready_at(const struct hk_engine *e, const struct hk_dest *d, enum hk_source source,
                         int64_t now_ms)
{
    if (d->paused || d->full || hk_dest_rests(d) || d->in_flight >= hk_dest_room(e, d) ||
        !hk_share_has_place(e, d) || hk_share_lacks_bytes(e, d))
        return INT64_MAX;
    if (source == HK_FROM_RETRY &&
        (d->retries_in_flight >= three_quarters(d->cap) ||
         (e->load.retries >= three_quarters(e->options.concurrency) && !hk_share_spares_retries(d))))
        return INT64_MAX;
    if (hk_quota_waits(e, d, now_ms))
        return INT64_MAX;
    int64_t at = hk_ms_later(hk_dest_limit_at(d, now_ms), hk_seats_ready_at(e, d));
    return d->breaker ? hk_ms_later(at, hk_breaker_ready_at_ms(d->breaker, now_ms)) : at;
}

bool hk_dest_ready(const struct hk_engine *e, struct hk_dest *d, enum hk_source source, int64_t now_ms)
{
    return hk_dest_ready_at(e, d, source, now_ms) <= now_ms && hk_seats_ready(e, d) &&
           hk_quota_ready(e, d, now_ms);
}

/* hk_dest_ready has said yes, at this very moment: none of them refuses. */
static void guards_acquire(const struct hk_engine *e, struct hk_dest *d, struct hk_slot *slot, int64_t now_ms)
{
    bool limiter = hk_limiter_acquire(d->limiter, now_ms), breaker = true;
    if (d->breaker)
        breaker = hk_breaker_acquire(d->breaker, now_ms, &slot->permit);
    assert(limiter && breaker);
    hk_quota_take(e, d, now_ms);
    hk_seats_take(d, now_ms);
}

/* ---- order ---- */

/* Is it this message's turn among those of its key? */
static bool key_allows(const struct hk_engine *e, const struct hk_head *head, size_t dest)
{
    uint64_t hash = hk_order_hash(e->order, dest, head->key);
    const struct hk_order_key *key = hk_order_find(e->order, hash);
    if (head->source ==
        HK_FROM_RETRY) /* without anybody waiting it was only deferred, and joins behind a dead head */
        return head->key_first && (!key || (!key->in_flight && (key->waiting || !key->dead)));
    if (!hk_order_free_for_first(key))
        return false;
    return !key || head->id <= key->passed_id; /* a key's own scan has set it to what it found */
}

/* The destinations at which a message has a place in the order: its own, or all of its fan-out. A deferred one has none
 * yet; a retry row that is fanned out keeps the place that it has. */
static size_t ordered_dests(const struct hk_engine *e, const struct hk_head *head, const struct target *t,
                            const size_t **out)
{
    bool routed = t->dest == HK_NO_DEST && !head->destination.len && t->route < e->options.n_routes;
    *out = routed ? e->options.routes[t->route].dests : &t->dest;
    if (!head->key.len || t->intent == HK_TO_DEFER || (t->dest == HK_NO_DEST && !routed))
        return 0;
    if (routed)
        return head->source == HK_FROM_OUTBOX ? e->options.routes[t->route].n_dests : 0;
    return 1;
}

int64_t hk_dest_read_to(const struct hk_engine *e, const struct hk_dest *d)
{
    return d->behind ? d->cursor : higher(d->cursor, e->reading.cursor);
}

/* Are there rows before it that the destination has yet to read? (One that goes to a single destination is not looked at
 * before them in the first place.) */
static bool unread_before(const struct hk_engine *e, const struct look *look, const struct hk_head *head,
                          size_t dest)
{
    const struct hk_dest *d = &e->dests[dest];
    if (look->purpose->kind == HK_ENGINE_SCAN_FRESH)
        return d->behind && d->cursor < head->id;
    return look->purpose->dest != dest && hk_dest_read_to(e, d) < head->id;
}

static bool keys_allow(const struct hk_engine *e, const struct look *look, const struct hk_head *head,
                       const struct target *t)
{
    const size_t *dests;
    size_t n = ordered_dests(e, head, t, &dests);
    for (size_t k = 0; k < n; k++) {
        if (!e->dests[dests[k]].conf.ordered)
            continue;
        if (!key_allows(e, head, dests[k]) ||
            (t->dest == HK_NO_DEST && unread_before(e, look, head, dests[k])))
            return false;
    }
    return true;
}

/* Takes the key's turn; false when out of memory, and then nothing is changed. */
static bool key_take(struct hk_engine *e, const struct hk_head *head, uint64_t hash, size_t dest)
{
    struct hk_order_key *key = hk_order_get(e->order, hash, dest);
    if (!key)
        return false;
    key->in_flight++;
    if (head->source == HK_FROM_RETRY && key->waiting)
        key->waiting--;
    if (head->source == HK_FROM_OUTBOX && key->passed_id <= head->id)
        key->passed_id = hk_id_after(head->id); /* more may follow */
    return true;
}

static bool fan_take(struct hk_engine *e, const struct hk_head *head, struct hk_slot *slot)
{
    const struct hk_engine_route *route = &e->options.routes[slot->route];
    slot->fan_key = hk_mem_strndup(head->key.ptr, head->key.len);
    for (size_t k = 0; slot->fan_key && k < route->n_dests; k++) {
        size_t dest = route->dests[k];
        if (!e->dests[dest].conf.ordered || key_take(e, head, hk_order_hash(e->order, dest, head->key), dest))
            continue;
        hk_slot_free_keys(e, slot); /* a key that was not taken is not held either: nothing to give back */
    }
    return slot->fan_key != NULL;
}

/* Takes the turns of all its keys; false when out of memory. */
static bool keys_take(struct hk_engine *e, const struct hk_head *head, const struct target *t,
                      struct hk_slot *slot)
{
    const size_t *dests;
    size_t n = ordered_dests(e, head, t, &dests);
    if (n == 0)
        return true;
    if (t->dest == HK_NO_DEST)
        return fan_take(e, head, slot);
    if (!e->dests[t->dest].conf.ordered)
        return true;
    uint64_t hash = hk_order_hash(e->order, t->dest, head->key);
    const struct hk_order_key *key = hk_order_find(e->order, hash);
    slot->held = head->source == HK_FROM_RETRY && key && key->waiting;
    if (!key_take(e, head, hash, t->dest))
        return false;
    slot->key = hash;
    return true;
}

/* ---- taking ---- */

bool hk_engine_can_take(const struct hk_engine *e)
{
    return !e->load.alone && !e->load.bytes_full && e->free.len && e->load.in_flight < e->options.concurrency;
}

static bool bytes_full(struct hk_engine *e, const struct hk_head *head)
{
    e->load.bytes_full = e->load.in_flight && e->load.bytes + head->payload_bytes > e->options.batch_bytes;
    return e->load.bytes_full;
}

/* hk_slot_landed takes it back. */
static void count_in_flight(struct hk_engine *e, struct hk_slot *slot)
{
    struct hk_dest *d = &e->dests[slot->dest];
    slot->counted = true;
    e->load.in_flight++;
    e->load.bytes += slot->bytes;
    d->bytes += slot->bytes;
    e->load.alone |= slot->alone;
    if (slot->forced) {
        d->forced++;
        return;
    }
    d->in_flight++;
    slot->spare = d->in_flight > d->cap;
    hk_share_joins(e, d);
    if (slot->source == HK_FROM_RETRY) {
        e->load.retries++;
        d->retries_in_flight++;
    }
}

/* Fills a free slot: there is one, the engine is not full. */
static struct hk_slot *take_slot(struct hk_engine *e, const struct hk_head *head, const struct target *t,
                                 int64_t now_ms)
{
    uint32_t i = 0;
    bool is_free = hk_ring_pop(&e->free, &i);
    assert(is_free);
    struct hk_slot *slot = hk_engine_slot(e, i);
    *slot = (struct hk_slot){.intent = t->intent,
                             .refusal = t->refusal,
                             .source = head->source,
                             .id = head->id,
                             .dest = t->dest,
                             .route = t->route,
                             .unrouted = head->source == HK_FROM_RETRY && !head->destination.len,
                             .not_before_ms = head->not_before_ms};
    slot->born = e->puts;
    e->used_slots++;
    if (t->dest != HK_NO_DEST)
        hk_dest_wake(e, t->dest);
    if (t->dest != HK_NO_DEST)
        e->dests[t->dest].in_hand++;
    hk_hand_add(e, i);
    hk_slot_move(e, i, HK_MOVE_TAKE);
    hk_engine_wants_exchange(e, now_ms);
    return slot;
}

static void untake_slot(struct hk_engine *e, struct hk_slot *slot)
{
    e->chosen.len--; /* it was the last one pushed */
    hk_slot_free(e, (uint32_t)(slot - e->slots), HK_MOVE_LEAVE);
}

/* Everything but sending: takes a slot and its turn, and nothing else. */
static enum verdict take_unsent(struct hk_engine *e, const struct hk_head *head, const struct target *t,
                                int64_t now_ms)
{
    struct hk_slot *slot = take_slot(e, head, t, now_ms);
    if (!keys_take(e, head, t, slot)) {
        untake_slot(e, slot);
        return ENGINE_FULL;
    }
    if (head->source == HK_FROM_RETRY && t->dest != HK_NO_DEST)
        e->dests[t->dest].retries_chosen++;
    return TAKEN;
}

static enum verdict take_to_send(struct hk_engine *e, const struct look *look, const struct hk_head *head,
                                 const struct target *t)
{
    int64_t now_ms = look->now_ms;
    struct hk_dest *d = &e->dests[t->dest];
    if (!hk_dest_make_guards(d, now_ms)) {
        e->call.retry_at_ms = now_ms + NO_MEMORY_WAIT_MS; /* else it would be looked for again at once */
        return ENGINE_FULL;
    }
    struct hk_slot *slot = take_slot(e, head, t, now_ms);
    slot->forced = look->purpose->kind == HK_ENGINE_SCAN_FORCED;
    slot->guarded = true;
    if (!slot->forced)
        guards_acquire(e, d, slot, now_ms);
    if (!keys_take(e, head, t, slot)) {
        hk_slot_landed(e, slot, now_ms);
        untake_slot(e, slot);
        return ENGINE_FULL;
    }
    slot->bytes = head->payload_bytes;
    slot->alone = head->crashes >= CRASHES_ALONE;
    if (slot->source == HK_FROM_RETRY)
        d->retries_chosen++;
    count_in_flight(e, slot);
    return TAKEN;
}

static enum verdict consider(struct hk_engine *e, const struct look *look, const struct hk_head *head)
{
    if (head->source == HK_FROM_OUTBOX && hk_hand_has(e, head->id))
        return IN_HAND;
    if (!hk_engine_can_take(e))
        return ENGINE_FULL;
    struct target t = aim(e, look, head);
    if (t.dest != HK_NO_DEST)
        hk_dest_wake(e, t.dest); /* it may have to ask for leave */
    if (t.intent == HK_TO_SEND && (hk_share_waits_turn(e, look->purpose->dest, t.dest) ||
                                   !hk_share_has_bytes(e, &e->dests[t.dest], head->payload_bytes)))
        return DEST_FULL;
    if (bytes_full(e, head))
        return ENGINE_FULL;
    if (t.intent == HK_TO_SEND && !hk_dest_ready(e, &e->dests[t.dest], head->source, look->now_ms))
        return DEST_FULL;
    if (!keys_allow(e, look, head, &t))
        return PASSED;
    if (t.intent != HK_TO_SEND)
        return take_unsent(e, head, &t, look->now_ms);
    if (head->crashes >= CRASHES_ALONE && e->load.in_flight) {
        e->reading.want_alone = t.dest; /* let what is in flight end first */
        e->reading.want_forced = false;
        return ENGINE_FULL;
    }
    return take_to_send(e, look, head, &t);
}

/* Of a message that a person has forced: what guards its destination is not asked. */
static enum verdict consider_forced(struct hk_engine *e, const struct look *look, const struct hk_head *head)
{
    if (!hk_engine_can_take(e)) {
        e->forced.crowded = true;
        return ENGINE_FULL;
    }
    struct target t = aim(e, look, head);
    if (t.dest == HK_NO_DEST && look->now_ms < e->stray.look_at_ms)
        return PASSED; /* the store was asked for it just now */
    if (t.dest != HK_NO_DEST)
        hk_dest_wake(e, t.dest);
    if (t.intent == HK_TO_SEND && !hk_forced_fits(&e->dests[t.dest]))
        return DEST_FULL;
    if (bytes_full(e, head))
        return ENGINE_FULL;
    if (!keys_allow(e, look, head, &t))
        return PASSED;
    if (t.intent != HK_TO_SEND)
        return take_unsent(e, head, &t, look->now_ms);
    if (head->crashes >= CRASHES_ALONE && e->load.in_flight) {
        e->reading.want_alone = t.dest;
        e->reading.want_forced = true;
        return ENGINE_FULL;
    }
    return take_to_send(e, look, head, &t);
}

void hk_slot_unchoose(struct hk_engine *e, struct hk_slot *slot, int64_t now_ms)
{
    struct hk_order_key *key = slot->key ? hk_order_find(e->order, slot->key) : NULL;
    if (key && slot->held && slot->gone) /* it may not have been counted: then it took another's place */
        key->doubtful = e->keys.doubtful = true;
    else if (key)
        key->waiting += slot->held;
    hk_slot_free_keys(e, slot);
    hk_slot_landed(e, slot, now_ms);
}

/* ---- what each kind of scan makes of the verdicts ---- */

/* The destination that a fresh head goes to, if it has one. */
static size_t fresh_dest(const struct hk_engine *e, const struct hk_head *head)
{
    struct target t = find_dest(e, head);
    return t.intent == HK_TO_SEND ? t.dest : HK_NO_DEST;
}

/* Remembers at each of its destinations that it was passed over. A key that is free all the same (another destination of
 * the fan-out is in the way) is not lined up: that other one will come back to the message. */
static void pass_keys(struct hk_engine *e, const struct hk_head *head)
{
    struct target t = find_dest(e, head);
    const size_t *dests;
    size_t n = ordered_dests(e, head, &t, &dests);
    for (size_t k = 0; k < n; k++) {
        if (!e->dests[dests[k]].conf.ordered)
            continue;
        struct hk_order_key *key =
            hk_order_get(e->order, hk_order_hash(e->order, dests[k], head->key), dests[k]);
        if (!key || !hk_order_pass(key, head->id, head->key))
            e->reading.given_back++; /* out of memory: the sweep will find it */
    }
}

/* False: the scan ends here, and this head is to be seen again. */
static bool look_fresh(struct hk_engine *e, const struct look *look, const struct hk_head *head)
{
    size_t dest = fresh_dest(e, head);
    if (dest != HK_NO_DEST && (e->dests[dest].behind || head->id <= e->dests[dest].cursor))
        return true;
    switch (consider(e, look, head)) {
    case TAKEN:
    case IN_HAND:
        return true;
    case PASSED:
        pass_keys(e, head);
        return true;
    case DEST_FULL:
        e->dests[dest].behind = true;
        e->dests[dest].cursor = hk_id_before(head->id);
        hk_share_joins(e, &e->dests[dest]);
        return true;
    case ENGINE_FULL:
        return false;
    }
    return false;
}

static void count_seen(struct hk_engine *e, const struct hk_head *head)
{
    size_t dest = fresh_dest(e, head);
    if (dest != HK_NO_DEST && head->id > e->reading.counted_to)
        e->dests[dest].seen++;
}

static void scanned_fresh(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    for (size_t i = 0; i < heads->n; i++) {
        if (!look_fresh(e, look, &heads->items[i]))
            return;
        count_seen(e, &heads->items[i]);
        e->reading.cursor = heads->items[i].id;
    }
    if (!heads->more)
        e->reading.last_id = e->reading.cursor; /* all seen, until a poll says otherwise */
}

/* Does the message go, or fan out, to the destination? */
static bool concerns(const struct hk_engine *e, const struct hk_head *head, size_t dest)
{
    struct target t = find_dest(e, head);
    if (t.intent != HK_TO_FAN_OUT)
        return t.dest == dest;
    const struct hk_engine_route *route = &e->options.routes[t.route];
    for (size_t k = 0; k < route->n_dests; k++)
        if (route->dests[k] == dest)
            return true;
    return false;
}

/* A fan-out that has a place in the destination's order waited for it to read so far. */
static bool is_for_behind(const struct hk_engine *e, const struct hk_head *head, size_t dest)
{
    return fresh_dest(e, head) == dest ||
           (head->key.len && e->dests[dest].conf.ordered && concerns(e, head, dest));
}

static void scanned_behind(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    struct hk_dest *d = &e->dests[look->purpose->dest];
    if (d->cursor != look->purpose->after_id) /* it was set back meanwhile: it reads on from there */
        return;
    for (size_t i = 0; i < heads->n; i++) {
        const struct hk_head *head = &heads->items[i];
        if (is_for_behind(e, head,
                          look->purpose->dest)) { /* else: it names none, and its route leads elsewhere */
            enum verdict v = consider(e, look, head);
            if (v == DEST_FULL || v == ENGINE_FULL)
                return;
            if (v == PASSED)
                pass_keys(e, head);
        }
        d->cursor = head->id;
    }
    if (!heads->more)
        d->behind = false;
}

/* Nothing is due yet: the store's time has not come as far as we thought, or its clock, by which the row is due, is behind. */
static bool is_early(const struct hk_heads *heads, int64_t due_ms)
{
    return !heads->n && heads->now_ms - (int64_t)heads->behind_ms < due_ms;
}

/* A clock that is behind may be so for a day. */
static int64_t soon_ms(const struct hk_engine *e, const struct hk_heads *heads)
{
    return heads->behind_ms ? LOOK_AGAIN_MS : (int64_t)e->options.poll_min_ms + 1;
}

/* All that is due was seen, and the next poll tells what will be. But nobody's commit need precede it when rows are left
 * whose keys are held, or when the store's clock has not come so far: then we look again by ourselves. */
static void seen_all_retries(struct hk_engine *e, struct hk_dest *d, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    bool early = d->retry_after_id == 0 && is_early(heads, d->retry_due_ms);
    if (d->retry_passed)
        d->retry_look_at_ms = look->now_ms + LOOK_AGAIN_MS;
    else if (early)
        d->retry_look_at_ms = look->now_ms + soon_ms(e, heads);
    else
        d->retry_due_ms = INT64_MAX;
    d->retry_after_due_ms = INT64_MIN;
    d->retry_after_id = 0;
    d->retry_passed = false;
}

/* Rows of a destination that is not configured: all of them are refused, or fanned out. */
static void scanned_stray(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    bool early = is_early(heads, e->stray.due_ms);
    size_t i = 0;
    while (i < heads->n && consider(e, look, &heads->items[i]) == TAKEN)
        i++;
    e->stray.turn += !heads->n;
    if (early || i < heads->n)
        e->stray.look_at_ms = look->now_ms + soon_ms(e, heads);
    else
        e->stray.due_ms = INT64_MAX;
}

static void scanned_retry(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    if (look->purpose->dest == HK_NO_DEST) {
        scanned_stray(e, look);
        return;
    }
    struct hk_dest *d = &e->dests[look->purpose->dest];
    for (size_t i = 0; i < heads->n; i++) {
        enum verdict v = consider(e, look, &heads->items[i]);
        if (v == DEST_FULL || v == ENGINE_FULL)
            return;
        if (v == PASSED)
            d->retry_passed = true;
    }
    if (!heads->more) {
        seen_all_retries(e, d, look);
        return;
    }
    d->retry_after_due_ms = heads->last_due_ms;
    d->retry_after_id = heads->last_id;
}

/* Notes that scans passed over messages of the key from `id` on; HK_NONE_PASSED: none. */
static void set_passed(struct hk_engine *e, uint64_t hash, int64_t id)
{
    struct hk_order_key *key = hk_order_find(e->order, hash);
    assert(key); /* nothing happens to a free key while it is scanned for */
    key->passed_id = id;
    hk_order_tidy(e->order, hash);
}

static void scanned_key(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    size_t i = 0;
    while (i < heads->n && !concerns(e, &heads->items[i], look->purpose->dest))
        i++;
    if (i == heads->n) {
        set_passed(e, look->purpose->key, heads->more ? hk_id_after(heads->last_id) : HK_NONE_PASSED);
        return;
    }
    set_passed(e, look->purpose->key, heads->items[i].id);
    enum verdict v = consider(e, look, &heads->items[i]);
    if (v == TAKEN || v == IN_HAND) {
        int64_t rest = heads->more ? hk_id_after(heads->last_id) : HK_NONE_PASSED;
        set_passed(e, look->purpose->key, i + 1 < heads->n ? heads->items[i + 1].id : rest);
    } else if (v == PASSED) {
        pass_keys(e, &heads->items[i]); /* may move the table */
        /* our key is free: another of its destinations holds it up, and will read it when free */
        hk_order_park(hk_order_find(e->order, look->purpose->key));
    }
}

/* Passed over on purpose: its key or its destination will come back to it. */
static bool is_known(struct hk_engine *e, const struct hk_head *head)
{
    size_t dest = fresh_dest(e, head);
    if (hk_hand_has(e, head->id) || (dest != HK_NO_DEST && e->dests[dest].behind))
        return true;
    struct target t = find_dest(e, head);
    const size_t *dests;
    size_t n = ordered_dests(e, head, &t, &dests);
    bool known = false;
    for (size_t k = 0; k < n; k++) {
        uint64_t hash = hk_order_hash(e->order, dests[k], head->key);
        const struct hk_order_key *key = hk_order_find(e->order, hash);
        known |= key && key->passed_id <= head->id;
        hk_order_tidy(e->order, hash); /* was it parked? */
    }
    return known;
}

/* There is no room for it now: a position goes back to it. Its destination's own, or else the one of all. */
static void look_from(struct hk_engine *e, const struct hk_head *head, size_t dest)
{
    int64_t before = hk_id_before(head->id);
    if (dest != HK_NO_DEST) {
        hk_dest_wake(e, dest);
        e->dests[dest].behind = true;
        e->dests[dest].cursor = before;
        return;
    }
    e->reading.last_id = higher(e->reading.last_id, e->reading.cursor);
    e->reading.cursor = before;
}

/* The safety net below the cursor: takes messages that are neither claimed nor knowingly passed over. */
static void scanned_sweep(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    for (size_t i = 0; i < heads->n && heads->items[i].id <= e->reading.cursor; i++) {
        const struct hk_head *head = &heads->items[i];
        enum verdict v = is_known(e, head) ? IN_HAND : consider(e, look, head);
        if (v == ENGINE_FULL) {
            if (!hk_engine_can_take(e)) /* it was not in vain: on as soon as there is room */
                e->reading.sweep_at_ms = look->now_ms;
            return;
        }
        if (v == PASSED)
            pass_keys(e, head);
        if (v == DEST_FULL) /* the next time round it may find no room again: leaves do not last that long */
            look_from(e, head, fresh_dest(e, head));
        if ((v == TAKEN || v == DEST_FULL) && e->reading.given_back)
            e->reading.given_back--;
        else if (v == TAKEN || v == DEST_FULL)
            e->stats.swept++;
        e->reading.sweep_cursor = head->id;
    }
    if (!heads->more || heads->last_id >= e->reading.cursor)
        e->reading.sweep_cursor = HK_FIRST_ID;
}

/* ---- what turns up late ---- */

/* Is its row above everything read so far? Then the regular scan will reach it. */
static bool is_unread(struct hk_engine *e, const struct hk_head *head, size_t dest)
{
    int64_t to = dest == HK_NO_DEST ? e->reading.cursor : hk_dest_read_to(e, &e->dests[dest]);
    if (head->id <= to)
        return false;
    e->reading.last_id = higher(e->reading.last_id, head->id);
    return true;
}

/* Rows that became visible below what was read. Nothing else is read of outbox before all of them were looked at, so that
 * one of theirs never waits behind what was written after it. Each is taken, or remembered: a full engine is no reason to
 * stop. */
static void scanned_late(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    for (size_t i = 0; i < heads->n; i++) {
        const struct hk_head *head = &heads->items[i];
        size_t dest = fresh_dest(e, head);
        if (is_unread(e, head, dest))
            continue;
        count_seen(e, head);
        switch (consider(e, look, head)) {
        case TAKEN:
        case IN_HAND:
            break;
        case PASSED:
            pass_keys(e, head);
            break;
        case DEST_FULL:
        case ENGINE_FULL:
            look_from(e, head, dest);
            break;
        }
    }
    e->reading.late_cursor = heads->last_id;
    e->reading.late_begun = heads->more;
}

static void scanned_forced(struct hk_engine *e, const struct look *look)
{
    const struct hk_heads *heads = look->heads;
    bool all = true;
    for (size_t i = 0; i < heads->n; i++)
        all &= consider_forced(e, look, &heads->items[i]) == TAKEN;
    hk_forced_seen(e, heads, all, look->now_ms);
}

void hk_engine_choose(struct hk_engine *e, int64_t now_ms, const struct hk_scan_purpose *purpose,
                      const struct hk_heads *heads)
{
    static void (*const scanned[])(struct hk_engine *, const struct look *) = {
        [HK_ENGINE_SCAN_FRESH] = scanned_fresh,   [HK_ENGINE_SCAN_BEHIND] = scanned_behind,
        [HK_ENGINE_SCAN_RETRY] = scanned_retry,   [HK_ENGINE_SCAN_KEY] = scanned_key,
        [HK_ENGINE_SCAN_SWEEP] = scanned_sweep,   [HK_ENGINE_SCAN_LATE] = scanned_late,
        [HK_ENGINE_SCAN_FORCED] = scanned_forced,
    };
    const struct look look = {.purpose = purpose,
                              .heads = heads,
                              .clock_ms = heads->now_ms - (int64_t)heads->behind_ms,
                              .now_ms = now_ms};
    scanned[purpose->kind](e, &look);
}
