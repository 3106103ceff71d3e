/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's frame: its parts, and the choice of the next action. engine_answer.c handles the store's answers, engine_choose.c
 * chooses, engine_settle.c settles.
 *
 * The lease counts from the moment at which the engine *asked for* an exchange, on the monotonic clock, so the engine never trusts it
 * for longer than the store does. Near its end, with the store out of reach, the engine ends all requests in flight: no request
 * outlives its claim. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/engine_impl.h"

enum {
    EXCHANGE_FULL = 64, /* from this many settles and claims on, an exchange does not wait for more */
    WAKE_EVERY_MS = 5
};

void hk_engine_wants_exchange(struct hk_engine *e, int64_t now_ms)
{
    if (e->exchange.oldest_ms == INT64_MAX)
        e->exchange.oldest_ms = now_ms;
}

void hk_engine_note_due(struct hk_engine *e, size_t dest, int64_t due_ms)
{
    struct hk_dest *d = &e->dests[dest];
    hk_dest_wake(e, dest);
    if (due_ms < d->retry_due_ms)
        d->retry_due_ms = due_ms;
    d->retry_look_at_ms = INT64_MIN;
}

/* The latest time that the store's clock can show, so that times computed from it are never early. */
int64_t hk_engine_store_now(const struct hk_engine *e, int64_t now_ms)
{
    return now_ms + e->clock.hi_ms;
}

int64_t hk_engine_store_now_ms(const struct hk_engine *e, int64_t now_ms)
{
    return hk_engine_store_now(e, now_ms);
}

/* ---- making and freeing ---- */

static bool allocate(struct hk_engine *e)
{
    uint32_t n = e->n_slots;
    e->slots = hk_mem_zalloc(n, sizeof *e->slots);
    e->exchange.settles = hk_mem_zalloc(n, sizeof *e->exchange.settles);
    e->exchange.settle_slots = hk_mem_zalloc(n, sizeof *e->exchange.settle_slots);
    e->exchange.wants = hk_mem_zalloc(n, sizeof *e->exchange.wants);
    e->exchange.want_slots = hk_mem_zalloc(n, sizeof *e->exchange.want_slots);
    bool rings = hk_ring_init(&e->free, n) && hk_ring_init(&e->chosen, n) && hk_ring_init(&e->ready, n) &&
                 hk_ring_init(&e->settle, n);
    return e->slots && e->exchange.settles && e->exchange.settle_slots && e->exchange.wants &&
           e->exchange.want_slots && rings && hk_hand_init(&e->hand, n) &&
           hk_dests_room(e, e->options.n_dests);
}

static enum hk_code init(struct hk_engine *e, int64_t now_ms, struct hk_err *err)
{
    if (!allocate(e))
        return hk_err_set(err, HK_NOMEM, "out of memory for the engine");
    for (size_t i = 0; i < e->options.n_dests; i++) {
        enum hk_code rc = hk_dest_begin(e, &e->options.dests[i], now_ms, err);
        if (rc != HK_OK)
            return rc;
    }
    for (uint32_t i = 0; i < e->n_slots; i++)
        hk_ring_push(&e->free, i);
    hk_rng_seed(&e->rng, e->options.seed, HK_RNG_BACKOFF);
    hk_rng_seed(&e->breaker_rng, e->options.seed, HK_RNG_BREAKER);
    return hk_order_new(hk_rng_next(&e->breaker_rng), &e->order, err);
}

static enum hk_code check_options(const struct hk_engine_options *o, struct hk_err *err)
{
    if (o->concurrency == 0 || o->concurrency > 100000)
        return hk_err_set(err, HK_RANGE, "relay.concurrency must be from 1 to 100000");
    if (o->batch == 0 || o->batch > 100000)
        return hk_err_set(err, HK_RANGE, "relay.batch must be from 1 to 100000");
    if (o->lease_ms < 100)
        return hk_err_set(err, HK_RANGE, "relay.lease must be at least 100ms");
    return HK_OK;
}

enum hk_code hk_engine_new(const struct hk_engine_options *options, int64_t now_ms,
                           struct hk_engine **out_engine, struct hk_err *err)
{
    enum hk_code rc = check_options(options, err);
    if (rc != HK_OK)
        return rc;
    struct hk_engine *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return hk_err_set(err, HK_NOMEM, "out of memory for the engine");
    e->options = *options;
    /* those in flight, as many again waiting to be settled, and a batch that is settled without sending */
    e->n_slots = options->concurrency * 2 + options->batch;
    e->exchange.oldest_ms = INT64_MAX;
    e->load.landings = 1;
    e->stray.due_ms = INT64_MAX;
    e->stray.look_at_ms = INT64_MIN;
    e->forced.after_due_ms = INT64_MIN;
    e->polls.wake_at_ms = INT64_MAX;
    e->reading.want_alone = HK_NO_DEST;
    e->polls.every_ms = options->poll_min_ms;
    e->call.retry_at_ms = now_ms;
    rc = init(e, now_ms, err);
    if (rc != HK_OK) {
        hk_engine_free(e);
        return rc;
    }
    *out_engine = e;
    return HK_OK;
}

void hk_engine_free(struct hk_engine *e)
{
    if (!e)
        return;
    for (uint32_t i = 0; e->slots && i < e->n_slots; i++) {
        hk_mem_free(e->slots[i].block);
        hk_mem_free(e->slots[i].record);
        hk_mem_free(e->slots[i].fan_out);
        hk_mem_free(e->slots[i].fan_key);
    }
    for (size_t i = 0; i < e->n_places; i++)
        hk_dest_fini(&e->dests[i]);
    void *blocks[] = {e->dests,
                      e->by_name,
                      e->awake,
                      e->slots,
                      e->exchange.settles,
                      e->exchange.settle_slots,
                      e->exchange.wants,
                      e->exchange.want_slots,
                      e->free.items,
                      e->chosen.items,
                      e->ready.items,
                      e->settle.items,
                      e->hand.places,
                      e->exchange.quotas,
                      e->exchange.quota_dests,
                      e->exchange.circuits,
                      e->exchange.seats,
                      e->exchange.seat_dests,
                      e->stray.name};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        hk_mem_free(blocks[i]);
    hk_order_free(e->order);
    hk_mem_free(e);
}

/* ---- what comes next ---- */

static int64_t lease_margin(const struct hk_engine *e)
{
    return (int64_t)(e->options.lease_ms / 6);
}

/* Is the lease far enough from its end to begin something under it? (Without a lane nothing is ready.) */
static bool lease_holds(const struct hk_engine *e, int64_t now_ms)
{
    return now_ms < e->lease.until_ms - lease_margin(e);
}

/* The next claimed message that may be sent. One whose time is over is given up, and none is begun near the lease's
 * end: it is given back. */
static bool next_send(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    uint32_t i;
    while (hk_ring_pop(&e->ready, &i)) {
        struct hk_slot *slot = &e->slots[i];
        struct hk_dest *d = &e->dests[slot->dest];
        if (d->full &&
            (slot->alone || slot->forced || !d->sending)) { /* nothing shows that there will be room soon */
            hk_slot_give_back(e, i, now_ms);
            continue;
        }
        if (d->full || (!slot->forced && d->sending >= hk_room_places(d))) {
            hk_reserve_add(e, i);
            continue;
        }
        uint64_t timeout_ms = hk_slot_attempt_ms(e, slot, now_ms);
        if (timeout_ms == 0 || !lease_holds(e, now_ms) || hk_reserve_refuses(e, slot, now_ms)) {
            if (timeout_ms == 0)
                hk_slot_overdue(e, i, now_ms);
            else
                hk_slot_give_back(e, i, now_ms);
            hk_reserve_next(e, d, now_ms);
            continue;
        }
        hk_slot_move(e, i, HK_MOVE_SEND);
        slot->started_ms = now_ms;
        e->load.sending++;
        *(slot->forced ? &d->forced_sending : &d->sending) += 1;
        e->stats.sends++;
        *out = (struct hk_action){.kind = HK_ACT_SEND,
                                  .slot = i,
                                  .message = &slot->message,
                                  .dest = slot->dest,
                                  .lane = e->lease.lane,
                                  .claim = slot->claim,
                                  .attempt = slot->message.history.attempts + 1,
                                  .timeout_ms = timeout_ms};
        return true;
    }
    return false;
}

static void abort_sends(struct hk_engine *e)
{
    for (uint32_t i = 0; i < e->n_slots; i++)
        if (e->slots[i].phase == HK_SLOT_SENDING)
            e->slots[i].aborted = true;
    e->abort_due = false;
}

static bool exchange_due(const struct hk_engine *e, int64_t now_ms)
{
    if (now_ms >= e->lease.renew_at_ms || hk_quota_at(e) <= now_ms)
        return true;
    if (e->exchange.oldest_ms == INT64_MAX)
        return false;
    uint32_t waiting = e->settle.len + e->chosen.len;
    return waiting >= EXCHANGE_FULL + e->load.in_reserve || (e->drain.on && e->load.sending == 0) ||
           now_ms - e->exchange.oldest_ms >= (int64_t)e->options.linger_ms;
}

/* A message that goes alone is claimed alone, so that no other message is blamed if it kills the relay again. */
static bool next_goes_alone(const struct hk_engine *e)
{
    return e->chosen.len && e->slots[e->chosen.items[e->chosen.head]].alone;
}

static void fill_claims(struct hk_engine *e)
{
    uint32_t i;
    e->exchange.n_wants = 0;
    e->exchange.unknown = false;
    while (e->exchange.n_wants < e->options.batch && !(e->exchange.n_wants && next_goes_alone(e)) &&
           hk_ring_pop(&e->chosen, &i)) {
        struct hk_slot *slot = &e->slots[i];
        hk_slot_move(e, i, HK_MOVE_CLAIM);
        bool payload = slot->intent == HK_TO_SEND;
        e->exchange.unknown |= slot->refusal.fault == HK_FAULT_UNKNOWN_DESTINATION;
        e->exchange.wants[e->exchange.n_wants] =
            (struct hk_want){.source = slot->source, .id = slot->id, .payload = payload};
        e->exchange.want_slots[e->exchange.n_wants++] = i;
        if (slot->alone)
            break;
    }
}

static void fill_settles(struct hk_engine *e)
{
    uint32_t i;
    e->exchange.n_settles = 0;
    while (hk_ring_pop(&e->settle, &i)) {
        hk_slot_move(e, i, HK_MOVE_SETTLE);
        e->exchange.settles[e->exchange.n_settles] = e->slots[i].settle;
        e->exchange.settle_slots[e->exchange.n_settles++] = i;
    }
}

static void next_exchange(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    hk_reserve_measure(e, now_ms);
    e->exchange.looked = false;
    hk_quota_fill(e, now_ms);
    fill_settles(e);
    fill_claims(e);
    if (!e->chosen.len)
        e->exchange.oldest_ms = INT64_MAX;
    e->stats.exchanges++;
    *out = (struct hk_action){.kind = HK_ACT_EXCHANGE,
                              .exchange = {.lane = e->lease.lane,
                                           .lease_ms = e->options.lease_ms,
                                           .settles = e->exchange.settles,
                                           .n_settles = e->exchange.n_settles,
                                           .wants = e->exchange.wants,
                                           .n_wants = e->exchange.n_wants,
                                           .quotas = e->exchange.quotas,
                                           .n_quotas = e->exchange.n_quotas,
                                           .circuits = e->exchange.circuits,
                                           .n_circuits = e->exchange.n_circuits,
                                           .seats = e->exchange.seats,
                                           .n_seats = e->exchange.n_seats,
                                           .unknown = e->exchange.unknown}};
}

static bool next_pause(struct hk_engine *e, struct hk_action *out)
{
    for (size_t k = 0; k < e->n_awake; k++) {
        size_t i = e->awake[k];
        struct hk_dest *d = &e->dests[i];
        if (!d->pause_due)
            continue;
        e->call.pausing = i;
        *out = (struct hk_action){
            .kind = HK_ACT_PAUSE, .dest = i, .dest_name = d->name, .reason = d->pause_reason};
        return true;
    }
    return false;
}

/* Enough room to be worth a look, or long enough since the last one. */
static bool scan_worth(const struct hk_engine *e, int64_t now_ms)
{
    uint32_t room = e->options.concurrency - e->load.in_flight;
    return room >= e->options.concurrency / 8 + 1 || e->load.sending == 0 ||
           now_ms - e->reading.last_scan_ms >= (int64_t)e->options.linger_ms;
}

static bool next_stray(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    if (e->stray.due_ms > hk_engine_store_now(e, now_ms) || now_ms < e->stray.look_at_ms ||
        e->chosen.len) /* what is chosen and not claimed would be seen again */
        return false;
    *out = (struct hk_action){.kind = HK_ACT_SCAN,
                              .purpose = {.kind = HK_ENGINE_SCAN_RETRY, .dest = HK_NO_DEST},
                              .scan = {.source = HK_FROM_RETRY,
                                       .after_due_ms = INT64_MIN,
                                       .destination = e->stray.name,
                                       .limit = e->options.batch}};
    return true;
}

/* Somebody's act on a retry row or a dead letter may have freed a key: when to look; INT64_MAX = no need. */
static int64_t held_keys_at(const struct hk_engine *e)
{
    if (e->keys.doubtful)
        return e->keys.look_at_ms;
    if (!e->keys.any_ordered || !e->keys.stale)
        return INT64_MAX;
    return e->keys.acts != e->keys.acts_read ? e->keys.look_at_ms : e->keys.net_at_ms;
}

static bool held_keys_due(const struct hk_engine *e, int64_t now_ms)
{
    if (e->chosen.len) /* what is chosen may be gone: only what is claimed is surely among the held */
        return false;
    return !e->keys.loaded || held_keys_at(e) <= now_ms;
}

static bool next_scan(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    if (!e->keys.loaded)
        return false;
    bool worth = scan_worth(e, now_ms) || hk_engine_late_due(e);
    if (!next_stray(e, now_ms, out) && !(worth && hk_engine_pick_scan(e, now_ms, out)))
        return false;
    out->kind = HK_ACT_SCAN;
    e->reading.last_scan_ms = now_ms;
    e->stats.scans++;
    return true;
}

/* Before an exchange, the engine scans once, so that the exchange can claim what the scan finds. It never delays a renewal of the lease
 * for that. */
static bool next_exchange_or_scan(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    bool look =
        !e->exchange.looked && e->chosen.len < e->settle.len && now_ms < e->lease.renew_at_ms && !e->drain.on;
    e->exchange.looked = true;
    if (!look || !next_scan(e, now_ms, out))
        next_exchange(e, now_ms, out);
    return true;
}

/* With a lane, and nobody else at the store. */
static bool next_with_lane(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    if (next_pause(e, out))
        return true;
    if (!e->drain.on && held_keys_due(e, now_ms)) {
        *out = (struct hk_action){.kind = HK_ACT_HELD_KEYS};
        return true;
    }
    if (exchange_due(e, now_ms))
        return next_exchange_or_scan(e, now_ms, out);
    if (e->drain.on) {
        if (e->used_slots)
            return false;
        *out = (struct hk_action){.kind = HK_ACT_RELEASE};
        return true;
    }
    if (now_ms >= hk_ms_earlier(e->polls.next_ms, e->polls.wake_at_ms)) {
        *out = (struct hk_action){.kind = HK_ACT_POLL, .poll_all = e->n_untold > 0};
        e->polls.last_ms = now_ms;
        e->polls.wake_at_ms = INT64_MAX; /* who asks from now on means the next one */
        e->stats.polls++;
        return true;
    }
    if (next_scan(e, now_ms, out))
        return true;
    if (e->exchange.oldest_ms == INT64_MAX || e->load.sending)
        return false;
    next_exchange(e, now_ms, out); /* nobody is on the way who could join it */
    return true;
}

static bool next_store(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    if (now_ms < e->call.retry_at_ms)
        return false;
    if (e->lease.lane)
        return next_with_lane(e, now_ms, out);
    if (e->drain.on)
        return false;
    *out = (struct hk_action){.kind = HK_ACT_ACQUIRE};
    return true;
}

static int64_t wake_at(struct hk_engine *e, int64_t now_ms)
{
    int64_t at = INT64_MAX;
    if (e->load.sending && e->lease.lane && !e->lease.aborted)
        at = e->lease.until_ms - lease_margin(e);
    if (e->drain.on && !e->drain.aborted)
        at = hk_ms_earlier(at, e->drain.deadline_ms);
    if (e->call.busy)
        return at;
    int64_t work = INT64_MAX;
    if (e->lease.lane) {
        work = hk_ms_earlier(e->lease.renew_at_ms,
                             e->drain.on ? INT64_MAX : hk_ms_earlier(e->polls.next_ms, e->polls.wake_at_ms));
        if (e->exchange.oldest_ms != INT64_MAX)
            work = hk_ms_earlier(work, e->exchange.oldest_ms + (int64_t)e->options.linger_ms);
        if (!e->drain.on)
            work = hk_ms_earlier(work, hk_engine_ready_at(e, now_ms));
        if (!e->drain.on)
            work = hk_ms_earlier(work, held_keys_at(e));
        work = hk_ms_earlier(work, hk_quota_at(e));
    }
    if (work < e->call.retry_at_ms || (!e->lease.lane && !e->drain.on))
        work = e->call.retry_at_ms;
    at = hk_ms_earlier(at, work);
    return at > now_ms ? at : now_ms + 1;
}

/* A request must not outlive its lease, and a drain must end. */
static bool must_abort(struct hk_engine *e, int64_t now_ms)
{
    if (e->load.sending && e->lease.lane && now_ms >= e->lease.until_ms - lease_margin(e) &&
        !e->lease.aborted) {
        e->lease.aborted = true;
        return true;
    }
    if (e->drain.on && !e->drain.aborted && now_ms >= e->drain.deadline_ms) {
        e->drain.aborted = true;
        return e->load.sending > 0;
    }
    return e->abort_due;
}

void hk_engine_next(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    *out = (struct hk_action){.kind = HK_ACT_WAIT};
    hk_dests_settle(e, now_ms);
    if (must_abort(e, now_ms)) {
        abort_sends(e);
        out->kind = HK_ACT_ABORT;
        return;
    }
    if (next_send(e, now_ms, out))
        return;
    if (!e->call.busy && next_store(e, now_ms, out)) {
        e->call.busy = true;
        e->call.kind = out->kind;
        e->call.asked_at_ms = now_ms;
        return;
    }
    *out = (struct hk_action){.kind = HK_ACT_WAIT};
    if (e->drain.on && !e->lease.lane && !e->call.busy && !e->load.sending)
        out->kind = HK_ACT_STOPPED;
    else
        out->wake_ms = wake_at(e, now_ms);
}

void hk_engine_drain(struct hk_engine *e, int64_t now_ms, int64_t deadline_ms)
{
    uint32_t i;
    e->drain.on = true;
    e->drain.deadline_ms = deadline_ms;
    while (hk_ring_pop(&e->chosen, &i)) { /* not claimed yet: as if never seen */
        hk_slot_unchoose(e, &e->slots[i], now_ms);
        hk_slot_free(e, i, HK_MOVE_LEAVE);
    }
    while (hk_ring_pop(&e->ready, &i))
        hk_slot_give_back(e, i, now_ms);
    for (size_t k = 0; k < e->n_awake; k++)
        hk_reserve_give_back(e, &e->dests[e->awake[k]], now_ms);
}

void hk_engine_wake(struct hk_engine *e, int64_t now_ms)
{
    int64_t at_ms = hk_ms_later(now_ms, hk_ms_after(e->polls.last_ms, WAKE_EVERY_MS));
    e->polls.wake_at_ms = hk_ms_earlier(e->polls.wake_at_ms, at_ms);
}

bool hk_engine_hungry(const struct hk_engine *e)
{
    if (!e->lease.lane || e->drain.on || !hk_engine_can_take(e) || hk_engine_late_due(e) || e->chosen.len ||
        e->reading.last_id > e->reading.cursor)
        return false;
    for (size_t k = 0; k < e->n_awake; k++) {
        const struct hk_dest *d = &e->dests[e->awake[k]];
        if (!d->behind && !d->paused && !d->full && d->in_flight < d->cap)
            return true;
    }
    return e->n_awake < e->n_known;
}

const struct hk_engine_stats *hk_engine_stats(const struct hk_engine *e)
{
    return &e->stats;
}

uint32_t hk_engine_in_flight(const struct hk_engine *e)
{
    return e->load.sending;
}

uint32_t hk_engine_in_hand(const struct hk_engine *e)
{
    return e->used_slots;
}

bool hk_engine_view_dest(const struct hk_engine *e, size_t dest, int64_t now_ms, struct hk_dest_view *out)
{
    if (dest >= e->n_places || !e->dests[dest].name)
        return false;
    const struct hk_dest *d = &e->dests[dest];
    int64_t at = hk_dest_limit_at(d, now_ms);
    *out = (struct hk_dest_view){
        .name = d->name,
        .seen = d->seen,
        .in_flight = d->sending + d->forced_sending,
        .concurrency = d->cap,
        .paused = d->paused,
        .full = d->full,
        .breaker = d->breaker ? hk_breaker_state(d->breaker, now_ms) : HK_BREAKER_CLOSED,
        .ready_at_ms = d->breaker ? hk_ms_later(at, hk_breaker_ready_at_ms(d->breaker, now_ms)) : at,
    };
    return true;
}
