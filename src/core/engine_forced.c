/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that a person forced. The engine sends them now, past their destination's pause, breaker, rate, concurrency and fair
 * share, and a forced attempt does not count for the breaker. Still in force are: the order of the key, the relay's own places and
 * bytes, a drain, the lease, and the rule that a destination which this relay cannot use gets nothing. Each destination has at most
 * HK_ENGINE_FORCED_MAX of them in flight.
 *
 * The store marks such a row, and removes the mark with the attempt. Only a person sets the mark, and polls report that people acted:
 * then one scan looks for marked rows of all destinations. So relays without forced messages pay nothing. */
#include "core/engine_impl.h"

enum {
    LOOK_MIN_MS = 50,    /* people may act often, as a redrive does */
    LOOK_AGAIN_MS = 1000 /* at those that could not be taken: a key is held, a destination cannot be used */
};

void hk_forced_look(struct hk_engine *e, int64_t now_ms)
{
    int64_t at_ms = e->forced.look ? hk_ms_earlier(e->forced.look_at_ms, now_ms) : now_ms;
    e->forced.look = true;
    e->forced.look_at_ms = at_ms;
    e->forced.left = false;
    e->forced.after_due_ms = INT64_MIN;
    e->forced.after_id = 0;
}

void hk_forced_polled(struct hk_engine *e, int64_t acts, int64_t now_ms)
{
    if (acts == e->forced.acts)
        return;
    e->forced.acts = acts;
    hk_forced_look(e, hk_ms_later(now_ms, e->forced.looked_ms + LOOK_MIN_MS));
}

int64_t hk_forced_at(const struct hk_engine *e)
{
    return e->forced.look && !e->chosen.len ? e->forced.look_at_ms : INT64_MAX;
}

/* Only while nothing is chosen and unclaimed: such a message would be found again. */
bool hk_forced_pick(struct hk_engine *e, int64_t now_ms, struct hk_action *out)
{
    if (hk_forced_at(e) > now_ms)
        return false;
    out->purpose = (struct hk_scan_purpose){.kind = HK_ENGINE_SCAN_FORCED, .dest = HK_NO_DEST};
    out->scan = (struct hk_scan){.source = HK_FROM_RETRY,
                                 .forced = true,
                                 .after_due_ms = e->forced.after_due_ms,
                                 .after_id = e->forced.after_id,
                                 .limit = e->options.batch};
    return true;
}

void hk_forced_seen(struct hk_engine *e, const struct hk_heads *heads, bool all, int64_t now_ms)
{
    struct hk_engine_forced *f = &e->forced;
    f->left |= !all;
    f->looked_ms = now_ms;
    if (heads->more) {
        f->after_due_ms = heads->last_due_ms;
        f->after_id = heads->last_id;
        f->look_at_ms = now_ms;
        return;
    }
    f->look = f->left;
    f->look_at_ms = now_ms + LOOK_AGAIN_MS;
    f->left = false;
    f->after_due_ms = INT64_MIN;
    f->after_id = 0;
}

bool hk_forced_fits(const struct hk_dest *d)
{
    return !hk_dest_rests(d) && !d->full && d->forced < HK_ENGINE_FORCED_MAX;
}

/* Those that were left may fit now. */
void hk_forced_has_room(struct hk_engine *e, int64_t now_ms)
{
    e->forced.look_at_ms = hk_ms_earlier(e->forced.look_at_ms, now_ms);
}

void hk_forced_landed(struct hk_engine *e, struct hk_dest *d, int64_t now_ms)
{
    if (d->forced-- == HK_ENGINE_FORCED_MAX)
        hk_forced_has_room(e, now_ms);
}

/* A place is free, and forced messages wait for one: the engine looks for them at once. Otherwise other messages would take the place
 * before the next look, up to a second later, and of messages that must go alone each would wait for another look. */
void hk_forced_has_place(struct hk_engine *e, int64_t now_ms)
{
    if (!e->forced.crowded)
        return;
    e->forced.crowded = false;
    hk_forced_has_room(e, now_ms);
}
