/* SPDX-License-Identifier: Apache-2.0 */
/* Fair shares of what all destinations use together: the relay's places in flight, and the payload bytes in memory.
 *
 * A request cannot be taken back once it is sent: a destination that answers after 20 s holds its place for 20 s. Four such
 * destinations with 64 places each would hold all of the relay's 256, and a healthy fifth would wait for them. So:
 *
 *   - While more than half of the places are free, and nobody waits for one, anybody takes what its own limits allow.
 *   - A destination is *quick* if most of its last answers came within a second and few of its requests are older than that.
 *     A quick one gives its places back soon, so it may use all of its own concurrency.
 *   - Any other destination holds at most an equal share of the places, and leaves the last eighth of them free. Before
 *     its first answer it shares with all that are configured: nobody knows how many will be at work, nor how quick they are.
 *   - The last eighth is for quick destinations that hold few places. Should they all hang at once, they do not hold much.
 *     (One that has never answered may be the next healthy one: it may make its first request from half of the eighth.)
 *   - With more destinations at work than places, each waits for its turn: whoever has waited longest goes first.
 *
 * The same holds for bytes. One destination alone is not limited by any of this. */
#include "core/engine_impl.h"

enum {
    QUICK_MS = 1000,     /* an answer that took longer is slow */
    LOOK_EVERY_MS = 200, /* at the age of what is in flight */
    ANSWERS = 16,        /* that are remembered */
    SMALL = 16           /* a relay with fewer places has none to spare */
};

/* The last eighth, unless there is nobody to keep it for. */
static uint32_t kept_places(const struct hk_engine *e)
{
    uint32_t all = e->options.concurrency;
    return all < SMALL || e->n_known < 2 ? 0 : all / 8;
}

static uint32_t free_places(const struct hk_engine *e)
{
    return e->options.concurrency - e->load.in_flight;
}

/* ---- how quick a destination is ---- */

static unsigned count_bits(unsigned bits)
{
    unsigned n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

void hk_share_answered(struct hk_dest *d, int64_t held_ms)
{
    d->quick_answers = (uint16_t)(d->quick_answers << 1 | (held_ms <= QUICK_MS));
    if (d->answers < ANSWERS)
        d->answers++;
}

/* Three of four answers came in time, and so may what is in flight. */
static bool is_quick(const struct hk_dest *d)
{
    return d->answers && 4 * count_bits(d->quick_answers) >= 3 * d->answers && 4 * d->lingering <= d->sending;
}

static void count_lingering(struct hk_engine *e, int64_t now_ms)
{
    if (now_ms < e->share.lingering_at_ms)
        return;
    e->share.lingering_at_ms = now_ms + LOOK_EVERY_MS;
    for (size_t k = 0; k < e->n_awake; k++)
        e->dests[e->awake[k]].lingering = 0;
    for (uint32_t i = 0; e->load.sending && i < e->n_slots; i++) {
        const struct hk_slot *slot = &e->slots[i];
        bool on_its_way = slot->phase == HK_SLOT_SENDING || slot->phase == HK_SLOT_ORPHANED;
        if (on_its_way && !slot->forced && now_ms - slot->started_ms > QUICK_MS)
            e->dests[slot->dest].lingering++;
    }
}

/* ---- places ---- */

void hk_share_joins(struct hk_engine *e, struct hk_dest *d)
{
    e->share.active += !d->active;
    d->active = true;
}

/* It has not answered yet, and the others may all be at work, too, without having answered. */
static bool starts_slowly(const struct hk_engine *e, const struct hk_dest *d)
{
    bool roomy = e->options.concurrency >= SMALL && e->n_known > 1;
    return !d->answers && (roomy || 2 * e->n_known > e->options.concurrency);
}

static uint32_t share_of_places(const struct hk_engine *e, const struct hk_dest *d)
{
    size_t sharers = starts_slowly(e, d) ? e->n_known : e->share.active;
    uint32_t share = (e->options.concurrency - kept_places(e)) / (uint32_t)(sharers ? sharers : 1);
    return share ? share : 1;
}

/* Not all that have work and no place can be given one. */
static bool is_scarce(const struct hk_engine *e)
{
    uint32_t free = free_places(e), kept = kept_places(e);
    return e->share.starved > (free > kept ? free - kept : 0);
}

static bool holds_few(const struct hk_engine *e, const struct hk_dest *d)
{
    return d->in_flight < (free_places(e) + 1) / 2;
}

bool hk_share_has_place(const struct hk_engine *e, const struct hk_dest *d)
{
    uint32_t free = free_places(e), kept = kept_places(e);
    if (is_quick(d))
        return free > kept || holds_few(e, d);
    if (free <= kept)
        return !d->answers && !d->in_flight && free > kept / 2;
    if (d->in_flight < share_of_places(e, d))
        return true;
    return !starts_slowly(e, d) && 2 * free > e->options.concurrency && !is_scarce(e);
}

bool hk_share_spares_retries(const struct hk_dest *d)
{
    return is_quick(d);
}

/* ---- bytes ---- */

/* Enough for a payload of a quick destination. */
static uint64_t kept_bytes(const struct hk_engine *e)
{
    uint64_t all = e->options.batch_bytes, most = e->options.max_payload_bytes;
    if (e->n_known < 2)
        return 0;
    return most < all / 8 ? all / 8 : most < all / 2 ? most : all / 2;
}

bool hk_share_has_bytes(const struct hk_engine *e, struct hk_dest *d, uint64_t bytes)
{
    uint64_t all = e->options.batch_bytes - kept_bytes(e);
    /* a payload that takes most of it would wait for ever: it is left to the engine's own bound, which makes room for it */
    if (e->n_known < 2 || is_quick(d) || !e->load.in_flight || bytes > all / 2 ||
        2 * (e->load.bytes + bytes) <= e->options.batch_bytes)
        return true;
    bool fits = e->load.bytes + bytes <= all &&
                (!d->in_flight || d->bytes + bytes <= all / (e->share.active ? e->share.active : 1));
    if (!fits)
        d->no_bytes_at = e->load.landings;
    return fits;
}

/* Nothing has landed since its next payload found no room. */
bool hk_share_lacks_bytes(const struct hk_engine *e, const struct hk_dest *d)
{
    return d->no_bytes_at == e->load.landings && e->load.in_flight;
}

/* ---- turns ---- */

static bool has_work(const struct hk_engine *e, const struct hk_dest *d, int64_t now_ms)
{
    return d->behind || d->retry_due_ms <= hk_engine_store_now(e, now_ms);
}

static bool is_active(const struct hk_engine *e, const struct hk_dest *d, int64_t now_ms)
{
    if (d->in_flight)
        return true;
    return has_work(e, d, now_ms) && !d->paused && !d->full &&
           (!d->breaker || hk_breaker_state(d->breaker, now_ms) != HK_BREAKER_OPEN);
}

void hk_share_measure(struct hk_engine *e, int64_t now_ms)
{
    count_lingering(e, now_ms);
    e->share.active = e->share.starved = e->share.slow_behind = 0;
    e->share.oldest_turn = UINT64_MAX;
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        d->active = is_active(e, d, now_ms);
        e->share.active += d->active;
        e->share.slow_behind += d->behind && !is_quick(d);
    }
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        if (d->in_flight || !hk_dest_wants_scan(e, d, now_ms))
            continue;
        e->share.starved++;
        e->share.oldest_turn = d->turn < e->share.oldest_turn ? d->turn : e->share.oldest_turn;
    }
}

void hk_share_turn(struct hk_engine *e, struct hk_dest *d)
{
    d->turn = ++e->share.turns;
}

bool hk_share_key_waits(const struct hk_engine *e, const struct hk_dest *d)
{
    return is_scarce(e) && d->turn > e->share.oldest_turn && !(is_quick(d) && holds_few(e, d));
}

bool hk_share_waits_turn(const struct hk_engine *e, size_t scanned_for, size_t dest)
{
    const struct hk_dest *d = &e->dests[dest];
    return scanned_for != dest && is_scarce(e) && !is_quick(d);
}
