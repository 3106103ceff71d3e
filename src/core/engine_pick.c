/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the next scan: late rows first; then keys that became free, destinations that fell behind or have due retries, fresh rows,
 * and the sweep. If there is nothing to scan, it says when to look again. */
#include "core/engine_impl.h"

enum {
    KEY_TRIES = 8
};

/* An ordered destination passes over messages that wait for an earlier one of their key; any other takes as many as fit. While slow
 * destinations are behind, the shared scan passes over most rows, so it reads large batches to reach the others sooner. */
static uint32_t limit_of(const struct hk_engine *e, const struct hk_dest *d)
{
    if (!d && e->share.slow_behind)
        return e->options.batch < 16 ? 16 : e->options.batch;
    uint32_t room = e->options.concurrency - e->load.in_flight;
    uint32_t own = d ? hk_fewer(hk_dest_room(e, d), hk_seats_usable(e, d)) : 0;
    if (d && !d->conf.ordered && own - d->in_flight < room) /* it has room, else it is not scanned for */
        room = own - d->in_flight;
    uint32_t limit = hk_fewer(room, e->options.batch);
    return limit < 16 ? 16 : limit; /* a few more heads cost little, and some will be passed over */
}

static void set_scan(struct hk_engine *e, enum hk_engine_scan kind, size_t dest, struct hk_action *out)
{
    struct hk_dest *d = dest == HK_NO_DEST ? NULL : &e->dests[dest];
    struct hk_scan *scan = &out->scan;
    out->purpose = (struct hk_scan_purpose){.kind = kind, .dest = dest};
    if (d)
        hk_share_turn(e, d);
    *scan = (struct hk_scan){.source = kind == HK_ENGINE_SCAN_RETRY ? HK_FROM_RETRY : HK_FROM_OUTBOX,
                             .destination = d ? d->name : NULL,
                             .limit = limit_of(e, d)};
    if (kind == HK_ENGINE_SCAN_FRESH)
        scan->after_id = e->reading.cursor;
    else if (kind == HK_ENGINE_SCAN_SWEEP)
        scan->after_id = e->reading.sweep_cursor;
    else if (d && kind == HK_ENGINE_SCAN_BEHIND)
        scan->after_id = out->purpose.after_id = d->cursor;
    else if (d && kind == HK_ENGINE_SCAN_RETRY) {
        scan->after_due_ms = d->retry_after_due_ms;
        scan->after_id = d->retry_after_id;
    }
}

static bool wants_retry(const struct hk_engine *e, struct hk_dest *d, int64_t now_ms)
{
    return !d->retries_chosen && d->retry_due_ms <= hk_engine_store_now(e, now_ms) &&
           now_ms >= d->retry_look_at_ms && hk_dest_ready(e, d, HK_FROM_RETRY, now_ms);
}

bool hk_dest_wants_scan(const struct hk_engine *e, struct hk_dest *d, int64_t now_ms)
{
    return wants_retry(e, d, now_ms) || (d->behind && hk_dest_ready(e, d, HK_FROM_OUTBOX, now_ms));
}

/* A key is not ready before its destination has read all earlier rows: they may have messages of the same key. */
static bool key_ready(struct hk_engine *e, const struct hk_order_key *key, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[key->dest];
    hk_dest_wake(e, key->dest);
    return !hk_share_key_waits(e, d) && hk_dest_ready(e, d, HK_FROM_OUTBOX, now_ms) &&
           hk_dest_read_to(e, d) >= hk_id_before(key->passed_id);
}

static bool pick_key(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    struct hk_order_key *key = hk_order_ready(e->order);
    for (int tries = 0; key && !key_ready(e, key, now_ms); tries++) {
        if (tries == KEY_TRIES)
            return false;
        hk_order_rotate(e->order); /* one destination that is not ready must not hold up the others' keys */
        key = hk_order_ready(e->order);
    }
    if (!key)
        return false;
    set_scan(e, HK_ENGINE_SCAN_KEY, key->dest, out);
    out->purpose.key = key->hash;
    out->scan.after_id = hk_id_before(key->passed_id);
    out->scan.key = key->text; /* stays until the entry goes, and the entry stays while it is passed over */
    out->scan.limit = 2;
    return true;
}

/* Of those that have something to read, whoever has waited longest: each gets its turn. */
static bool pick_dest(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    size_t next = HK_NO_DEST;
    for (size_t k = 0; k < e->n_awake; k++) {
        size_t i = e->awake[k];
        bool earlier = next == HK_NO_DEST || e->dests[i].turn < e->dests[next].turn;
        if (earlier && hk_dest_wants_scan(e, &e->dests[i], now_ms))
            next = i;
    }
    if (next == HK_NO_DEST)
        return false;
    struct hk_dest *d = &e->dests[next];
    bool behind = d->behind && hk_dest_ready(e, d, HK_FROM_OUTBOX, now_ms);
    /* both: one after the other */
    bool take_retry = wants_retry(e, d, now_ms) && !(behind && d->retry_last);
    d->retry_last = take_retry;
    set_scan(e, take_retry ? HK_ENGINE_SCAN_RETRY : HK_ENGINE_SCAN_BEHIND, next, out);
    return true;
}

/* Nothing is in flight, but something may be chosen that is not to be sent. */
static bool pick_alone(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    struct hk_dest *d = &e->dests[e->reading.want_alone];
    if (e->load.in_flight || d->retries_chosen)
        return false;
    if (e->reading.want_forced) {
        e->reading.want_alone = HK_NO_DEST;
        hk_forced_look(e, now_ms);
        return hk_forced_pick(e, now_ms, out);
    }
    d->retry_after_due_ms = INT64_MIN;
    d->retry_after_id = 0;
    set_scan(e, HK_ENGINE_SCAN_RETRY, e->reading.want_alone, out);
    e->reading.want_alone = HK_NO_DEST;
    return true;
}

bool hk_engine_late_due(const struct hk_engine *e)
{
    return e->reading.late_begun || e->reading.late_told;
}

/* Also when the engine is full: each late row is taken or remembered, so it never has to be scanned for again. */
static void pick_late(struct hk_engine *e, struct hk_action *out)
{
    if (!e->reading.late_begun) {
        e->reading.late_begun = true;
        e->reading.late_told = false;
        e->reading.late_cursor = HK_FIRST_ID;
    }
    set_scan(e, HK_ENGINE_SCAN_LATE, HK_NO_DEST, out);
    out->scan.late = true;
    out->scan.after_id = e->reading.late_cursor;
    out->scan.limit = e->options.batch;
}

bool hk_engine_pick_scan(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    if (hk_engine_late_due(e)) {
        pick_late(e, out);
        return true;
    }
    if (!hk_engine_can_take(e))
        return false;
    if (e->reading.want_alone != HK_NO_DEST)
        return pick_alone(e, now_ms, out);
    if (hk_forced_pick(e, now_ms, out))
        return true;
    hk_share_measure(e, now_ms);
    if (pick_key(e, now_ms, out))
        return true;
    bool fresh = e->reading.last_id > e->reading.cursor;
    if (fresh && e->reading.fresh_turn) {
        e->reading.fresh_turn = false;
        set_scan(e, HK_ENGINE_SCAN_FRESH, HK_NO_DEST, out);
        return true;
    }
    e->reading.fresh_turn = true;
    if (pick_dest(e, now_ms, out))
        return true;
    if (fresh) {
        set_scan(e, HK_ENGINE_SCAN_FRESH, HK_NO_DEST, out);
        return true;
    }
    if (now_ms < e->reading.sweep_at_ms)
        return false;
    e->reading.sweep_at_ms = now_ms + HK_SWEEP_MS;
    set_scan(e, HK_ENGINE_SCAN_SWEEP, HK_NO_DEST, out);
    return true;
}

/* store time -> monotonic time */
static int64_t mono_of(const struct hk_engine *e, int64_t store_ms)
{
    return store_ms == INT64_MAX || store_ms == INT64_MIN ? store_ms : store_ms - e->clock.hi_ms;
}

int64_t hk_engine_ready_at(struct hk_engine *e, int64_t now_ms)
{
    int64_t at = INT64_MAX;
    if (hk_engine_late_due(e) && e->keys.loaded)
        return now_ms;
    if (!hk_engine_can_take(e) || e->reading.want_alone != HK_NO_DEST)
        return at;
    if (e->reading.last_id > e->reading.cursor)
        at = e->reading.last_scan_ms + (int64_t)e->options.linger_ms;
    at = hk_ms_earlier(at, hk_ms_later(mono_of(e, e->stray.due_ms), e->stray.look_at_ms));
    at = hk_ms_earlier(at, hk_forced_at(e));
    const struct hk_order_key *key = hk_order_ready(e->order);
    if (key)
        at = hk_ms_earlier(at, hk_dest_ready_at(e, &e->dests[key->dest], HK_FROM_OUTBOX, now_ms));
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        if (d->behind)
            at = hk_ms_earlier(at, hk_dest_ready_at(e, d, HK_FROM_OUTBOX, now_ms));
        if (d->retry_due_ms == INT64_MAX || d->retries_chosen)
            continue;
        int64_t due = hk_ms_later(mono_of(e, d->retry_due_ms), d->retry_look_at_ms);
        at = hk_ms_earlier(at, hk_ms_later(due, hk_dest_ready_at(e, d, HK_FROM_RETRY, now_ms)));
    }
    return at;
}
