/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the store's answers to polls, scans and exchanges, and its errors. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/engine_impl.h"

enum {
    STORE_BACKOFF_MIN_MS = 50,
    STORE_BACKOFF_MAX_MS = 5000,
    ACQUIRE_BACKOFF_MAX_MS = 1000, /* while another has it: he may be gone at any time */
    HELD_KEYS_MIN_MS = 250,        /* an operator's act on a dead head shows within a second … */
    HELD_KEYS_MAX_MS = 750,
    HELD_KEYS_NET_MS = 1000, /* … and what somebody did to the tables by hand, if looking costs little */
    HELD_KEYS_NET_MAX_MS = 60000
};

/* The store read its clock between our question and its answer. So each answer gives bounds for the difference of the two clocks. A time
 * that the store only computed may have been later by `late_ms`; the upper bound allows for that, so that no due time is early. If two
 * answers contradict each other, the store's clock jumped, and only the newest counts. */
static void learn_store_time(struct hk_engine *e, int64_t now_ms, int64_t store_now_ms, uint32_t late_ms)
{
    int64_t lo = store_now_ms - now_ms, hi = store_now_ms + late_ms - e->call.asked_at_ms;
    bool fits = e->clock.known && lo <= e->clock.hi_ms && hi >= e->clock.lo_ms;
    e->clock.lo_ms = fits && e->clock.lo_ms > lo ? e->clock.lo_ms : lo;
    e->clock.hi_ms = fits && e->clock.hi_ms < hi ? e->clock.hi_ms : hi;
    e->clock.known = true;
}

/* The lane is lost, and with it everything claimed. Sends in flight run to their end, but their outcomes change nothing. */
static void lose_lane(struct hk_engine *e, int64_t now_ms)
{
    e->lease.lane = 0;
    e->stats.lanes_lost++;
    e->chosen.len = e->ready.len = e->settle.len = 0;
    e->exchange.n_wants = e->exchange.n_settles = 0;
    e->load.in_reserve = 0;
    for (size_t i = 0; i < e->n_places; i++)
        e->dests[i].reserve_len = e->dests[i].ahead = 0;
    for (size_t i = 0; i < e->n_places; i++)
        hk_seats_lost(&e->dests[i]);
    for (uint32_t i = 0; i < e->n_slots; i++) {
        struct hk_slot *slot = &e->slots[i];
        if (slot->phase == HK_SLOT_FREE || slot->phase == HK_SLOT_ORPHANED)
            continue;
        if (slot->phase == HK_SLOT_SENDING) {
            hk_slot_move(e, i, HK_MOVE_LOSE_LANE);
            slot->key = 0;
            continue;
        }
        e->stats.stale_settles += slot->phase == HK_SLOT_SETTLE || slot->phase == HK_SLOT_SETTLING;
        hk_slot_landed(e, slot, now_ms);
        hk_slot_free(e, i, HK_MOVE_LOSE_LANE);
    }
    e->abort_due = e->load.sending > 0;
    e->exchange.oldest_ms = INT64_MAX;
}

/* Reads everything from its first row again. The engine recognises the messages that it already has. */
static void read_anew(struct hk_engine *e)
{
    e->reading.cursor = e->reading.last_id = e->reading.sweep_cursor = HK_FIRST_ID;
    e->reading.late_told = e->reading.late_begun = false;
    e->keys.loaded = false;
    e->reading.given_back = 0;
    hk_forced_look(e, INT64_MIN);
    e->reading.counted_to = HK_FIRST_ID;
    for (size_t i = 0; i < e->n_places; i++) {
        struct hk_dest *d = &e->dests[i];
        d->behind = false;
        d->cursor = HK_FIRST_ID;
        d->retry_look_at_ms = INT64_MIN;
        d->retry_after_due_ms = INT64_MIN;
        d->retry_after_id = 0;
        d->retry_passed = false;
    }
}

/* Drops the messages that were chosen and not claimed: perhaps they were read on another server, which has other row numbers. */
static void unchoose_all(struct hk_engine *e, int64_t now_ms)
{
    uint32_t i;
    while (hk_ring_pop(&e->chosen, &i)) {
        struct hk_slot *slot = &e->slots[i];
        if (slot->source == HK_FROM_RETRY && slot->dest != HK_NO_DEST)
            e->dests[slot->dest].retries_chosen--;
        hk_slot_unchoose(e, slot, now_ms);
        hk_slot_free(e, i, HK_MOVE_LEAVE);
    }
}

static void forget_positions(struct hk_engine *e)
{
    read_anew(e);
    hk_order_clear(e->order);
    e->reading.want_alone = HK_NO_DEST;
    e->stray.due_ms = INT64_MAX;
    for (size_t i = 0; i < e->n_places; i++) {
        e->dests[i].retries_chosen = 0;
        e->dests[i].retry_due_ms = INT64_MAX;
    }
}

/* True: the caller reads the answer. */
static bool answered(struct hk_engine *e, int64_t now_ms, enum hk_code rc)
{
    e->call.busy = false;
    if (rc == HK_OK) {
        e->call.backoff_ms = 0;
        return true;
    }
    if (rc == HK_CONFLICT) {
        lose_lane(e, now_ms);
        return false;
    }
    e->stats.store_errors++;
    e->call.backoff_ms = e->call.backoff_ms ? e->call.backoff_ms * 2 : STORE_BACKOFF_MIN_MS;
    bool taken = e->call.kind == HK_ACT_ACQUIRE && rc == HK_BUSY;
    uint64_t most_ms = taken ? ACQUIRE_BACKOFF_MAX_MS : STORE_BACKOFF_MAX_MS;
    if (e->call.backoff_ms > most_ms)
        e->call.backoff_ms = most_ms;
    e->call.retry_at_ms = now_ms + (int64_t)e->call.backoff_ms;
    return false;
}

static void renewed(struct hk_engine *e)
{
    e->lease.until_ms = e->call.asked_at_ms + (int64_t)e->options.lease_ms;
    e->lease.renew_at_ms = e->call.asked_at_ms + (int64_t)(e->options.lease_ms / 3);
    e->lease.aborted = false;
}

void hk_engine_on_acquired(struct hk_engine *e, int64_t now_ms, enum hk_code rc, int64_t lane,
                           int64_t store_now_ms)
{
    if (!answered(e, now_ms, rc))
        return;
    e->lease.lane = lane;
    learn_store_time(e, now_ms, store_now_ms, 0);
    renewed(e);
    forget_positions(e);
    e->polls.next_ms = now_ms;
}

/* A destination that is not configured has a name of any length. False: out of memory, the next poll tries again. */
bool hk_engine_name_stray(struct hk_engine *e, struct hk_str name)
{
    if (name.len >= e->stray.room) {
        char *longer = hk_mem_resize(e->stray.name, name.len + 1);
        if (!longer)
            return false;
        e->stray.name = longer;
        e->stray.room = name.len + 1;
    }
    return hk_str_copy(e->stray.name, e->stray.room, name);
}

static void learn_dest(struct hk_engine *e, const struct hk_poll_dest *seen)
{
    size_t i = hk_engine_dest_by_name(e, seen->name);
    if (i == HK_NO_DEST)
        return;
    hk_dest_wake(e, i);
    struct hk_dest *d = &e->dests[i];
    d->retry_due_ms = seen->retry_due_ms;
    d->seen_paused = seen->paused;
    d->seen_open_ms = seen->open_until_ms;
}

static bool is_stray(const struct hk_engine *e, const struct hk_poll_dest *seen)
{
    return hk_engine_dest_by_name(e, seen->name) == HK_NO_DEST;
}

/* The next destination with rows that nobody knows. Of those that are due each has its turn: where a scan finds nothing (the store
 * only knows the time roughly while its clock is behind), the next one is looked at. */
static void learn_stray(struct hk_engine *e, const struct hk_poll *poll)
{
    size_t due = 0, k = 0;
    for (size_t i = 0; i < poll->n_dests; i++)
        due += poll->dests[i].retry_due_ms <= poll->now_ms && is_stray(e, &poll->dests[i]);
    size_t turn = due ? e->stray.turn % due : 0;
    e->stray.due_ms = INT64_MAX;
    for (size_t i = 0; i < poll->n_dests; i++) {
        const struct hk_poll_dest *seen = &poll->dests[i];
        if (!is_stray(e, seen))
            continue;
        bool next = seen->retry_due_ms <= poll->now_ms ? k++ == turn : !due;
        if (next && seen->retry_due_ms < e->stray.due_ms && hk_engine_name_stray(e, seen->name))
            e->stray.due_ms = seen->retry_due_ms;
    }
}

/* A person says that it is well again. */
static void resume_dest(struct hk_dest *d, int64_t now_ms)
{
    if (hk_dest_make_guards(d, now_ms)) /* else: it was never sent to, and memory is short */
        hk_limiter_resume(d->limiter, now_ms);
    hk_circuit_resumed(d, now_ms);
    d->auth_in_row = 0;
}

/* One poll may tell of a resume and of a breaker that another relay opened since. The store closes breakers when a person
 * resumes, so that the breaker is the later news and has the last word. */
static void apply_pauses(struct hk_engine *e, int64_t now_ms)
{
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        bool ours = d->pause_due; /* and not on disk yet */
        if (!ours && d->paused && !d->seen_paused)
            resume_dest(d, now_ms);
        hk_circuit_told(e, d, d->seen_open_ms, now_ms);
        if (!ours)
            d->paused = d->seen_paused;
    }
}

void hk_engine_on_poll(struct hk_engine *e, int64_t now_ms, enum hk_code rc, const struct hk_poll *poll)
{
    if (!answered(e, now_ms, rc))
        return;
    if (!poll->changed) {
        hk_reserve_look(e, now_ms);
        hk_dests_sleep(e);
        e->polls.every_ms =
            e->polls.every_ms * 2 < e->options.poll_max_ms ? e->polls.every_ms * 2 : e->options.poll_max_ms;
        e->polls.next_ms = now_ms + (int64_t)e->polls.every_ms;
        return;
    }
    e->polls.every_ms = e->options.poll_min_ms;
    e->polls.next_ms = now_ms + (int64_t)e->polls.every_ms;
    learn_store_time(e, now_ms, poll->now_ms, poll->late_ms);
    if (poll->reset) {
        unchoose_all(e, now_ms);
        read_anew(e); /* late ones included */
    } else {
        e->reading.late_told |= poll->late;
    }
    e->reading.last_id = poll->last_id;
    e->keys.stale = true;
    e->keys.acts = poll->acts;
    hk_forced_polled(e, poll->acts, now_ms);
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        d->retry_due_ms = INT64_MAX;
        d->seen_paused = false;
        d->seen_open_ms = 0;
    }
    for (size_t i = 0; i < poll->n_dests; i++)
        learn_dest(e, &poll->dests[i]);
    learn_stray(e, poll);
    apply_pauses(e, now_ms);
    hk_dests_told(e);
    hk_reserve_look(e, now_ms);
    hk_dests_sleep(e);
}

static struct hk_order_key *held_key(struct hk_engine *e, size_t dest, const struct hk_held_key *held)
{
    const struct hk_engine_dest *conf = &e->dests[dest].conf;
    if (!conf->ordered || (held->dead && conf->skip_dead))
        return NULL;
    return hk_order_get(e->order, hk_order_hash(e->order, dest, held->key), dest);
}

static void told_held(struct hk_engine *e, size_t dest, const struct hk_held_key *held)
{
    struct hk_order_key *key = held_key(e, dest, held);
    if (key && held->dead)
        key->dead++;
    else if (key)
        key->waiting++;
}

/* A row that is still to be routed (its relay died with it) may go to any destination that the routes name. A letter that
 * names none holds nobody. */
static void told_held_unrouted(struct hk_engine *e, const struct hk_held_key *held)
{
    for (size_t i = 0; i < e->n_places && !held->dead; i++) {
        bool named = false;
        for (size_t r = 0; r < e->options.n_routes; r++)
            for (size_t k = 0; k < e->options.routes[r].n_dests; k++)
                named |= e->options.routes[r].dests[k] == i;
        struct hk_order_key *key = named ? held_key(e, i, held) : NULL;
        if (key)
            key->unrouted++;
    }
}

/* Messages that this relay has claimed count as in flight, not as waiting. */
static void forget_held_in_hand(struct hk_engine *e)
{
    for (uint32_t i = 0; i < e->n_slots; i++) {
        const struct hk_slot *slot = &e->slots[i];
        if (slot->phase == HK_SLOT_FREE || !slot->held || !slot->key)
            continue;
        struct hk_order_key *key = hk_order_find(e->order, slot->key);
        assert(key); /* it is in flight */
        if (key->waiting)
            key->waiting--;
    }
}

void hk_engine_on_held_keys(struct hk_engine *e, int64_t now_ms, enum hk_code rc,
                            const struct hk_held_key *keys, size_t n)
{
    if (!answered(e, now_ms, rc))
        return;
    int64_t took_ms =
        now_ms -
        e->call.asked_at_ms; /* a tenth of the store's time may go into it, as long as a second allows */
    e->keys.loaded = true;
    e->keys.stale = e->keys.doubtful = false;
    e->keys.acts_read = e->keys.acts;
    e->keys.look_at_ms =
        now_ms + hk_ms_earlier(hk_ms_later(took_ms * 10, HELD_KEYS_MIN_MS), HELD_KEYS_MAX_MS);
    e->keys.net_at_ms =
        now_ms + hk_ms_earlier(hk_ms_later(took_ms * 100, HELD_KEYS_NET_MS), HELD_KEYS_NET_MAX_MS);
    hk_order_clear_held(e->order);
    for (size_t i = 0; i < n; i++) {
        size_t dest = hk_engine_dest_by_name(e, keys[i].destination);
        if (dest != HK_NO_DEST)
            told_held(e, dest, &keys[i]);
        else if (!keys[i].destination.len)
            told_held_unrouted(e, &keys[i]);
    }
    forget_held_in_hand(e);
    hk_order_settle(e->order);
}

/* A sweep that has to walk over what was deleted, and may not be cleaned up yet, takes a hundredth of the time. */
static void rest_from_sweep(struct hk_engine *e, int64_t now_ms)
{
    int64_t took_ms = now_ms - e->call.asked_at_ms;
    int64_t rest_ms = took_ms < HK_SWEEP_REST_MS / 100 ? 100 * took_ms : HK_SWEEP_REST_MS;
    if (!e->reading.given_back)
        e->reading.sweep_at_ms = hk_ms_later(e->reading.sweep_at_ms, now_ms + rest_ms);
}

void hk_engine_on_scan(struct hk_engine *e, int64_t now_ms, enum hk_code rc,
                       const struct hk_scan_purpose *purpose, const struct hk_heads *heads)
{
    if (!answered(e, now_ms, rc))
        return;
    learn_store_time(e, now_ms, heads->now_ms, heads->late_ms);
    if (purpose->kind == HK_ENGINE_SCAN_SWEEP)
        rest_from_sweep(e, now_ms);
    if (!e->drain.on)
        hk_engine_choose(e, now_ms, purpose, heads);
}

/* The exchange changed nothing: its settles and claims wait for the next one. */
static void exchange_undone(struct hk_engine *e, int64_t now_ms)
{
    for (size_t k = 0; k < e->exchange.n_settles; k++)
        hk_slot_move(e, e->exchange.settle_slots[k], HK_MOVE_UNDO);
    for (size_t k = 0; k < e->exchange.n_wants; k++) {
        uint32_t i = e->exchange.want_slots[k];
        if (!e->drain.on) {
            hk_slot_move(e, i, HK_MOVE_UNDO);
            continue;
        }
        hk_slot_unchoose(e, &e->slots[i], now_ms);
        hk_slot_free(e, i, HK_MOVE_LEAVE);
    }
    if (e->exchange.n_settles + e->exchange.n_wants)
        hk_engine_wants_exchange(e, now_ms);
    e->exchange.looked = true; /* a store that only can be read must not seem to be well */
    e->exchange.n_settles = e->exchange.n_wants = 0;
}

static void settles_done(struct hk_engine *e, const struct hk_exchanged *done)
{
    for (size_t k = 0; k < e->exchange.n_settles; k++) {
        uint32_t i = e->exchange.settle_slots[k];
        if (done->stale[k]) {
            e->stats.stale_settles++;
            hk_slot_free_keys(e, &e->slots[i]);
        } else if (hk_settle_is_stuck(done, k)) {
            hk_slot_stuck(e, &e->slots[i]);
        } else {
            hk_slot_settled(e, &e->slots[i]);
        }
        hk_slot_free(e, i, HK_MOVE_LEAVE);
    }
    e->exchange.n_settles = 0;
}

/* Mostly in the order they were asked for, so the search starts behind the last one found. */
static const struct hk_message *find_claimed(const struct hk_exchanged *done, const struct hk_slot *slot,
                                             size_t *at)
{
    for (size_t n = 0; n < done->n_messages; n++) {
        size_t k = (*at + n) % done->n_messages;
        if (done->messages[k].source != slot->source || done->messages[k].id != slot->id)
            continue;
        *at = k + 1;
        return &done->messages[k];
    }
    return NULL;
}

static void claims_done(struct hk_engine *e, const struct hk_exchanged *done, int64_t now_ms)
{
    size_t at = 0;
    for (size_t k = 0; k < e->exchange.n_wants; k++) {
        uint32_t i = e->exchange.want_slots[k];
        struct hk_slot *slot = &e->slots[i];
        const struct hk_message *msg = find_claimed(done, slot, &at);
        if (slot->source == HK_FROM_RETRY && slot->dest != HK_NO_DEST)
            e->dests[slot->dest].retries_chosen--;
        if (msg) {
            hk_slot_claimed(e, i, msg, done->claim, now_ms);
            continue;
        }
        /* gone meanwhile: cancelled, or settled by somebody */
        slot->gone = true;
        hk_slot_unchoose(e, slot, now_ms);
        hk_slot_free(e, i, HK_MOVE_LEAVE);
    }
    e->exchange.n_wants = 0;
}

void hk_engine_on_exchange(struct hk_engine *e, int64_t now_ms, enum hk_code rc,
                           const struct hk_exchanged *done)
{
    if (!answered(e, now_ms, rc)) {
        hk_quota_undone(e);
        hk_seats_undone(e, now_ms);
        if (rc != HK_CONFLICT)
            exchange_undone(e, now_ms);
        return;
    }
    learn_store_time(e, now_ms, done->now_ms, 0);
    renewed(e);
    hk_quota_granted(e, done->grants, now_ms);
    hk_seats_told(e, done->seats, now_ms);
    e->told_dests = done->definitions;
    settles_done(e, done);
    claims_done(e, done, now_ms);
    if (done->reset)
        e->polls.next_ms = now_ms;
}

void hk_engine_on_done(struct hk_engine *e, int64_t now_ms, enum hk_code rc)
{
    bool pause = e->call.kind == HK_ACT_PAUSE;
    if (!answered(e, now_ms, rc))
        return;
    if (!pause) {
        e->lease.lane = 0;
        return;
    }
    e->dests[e->call.pausing].pause_due = false;
}
