/* SPDX-License-Identifier: Apache-2.0 */
/* The reserve: messages that were claimed although their destination has all the requests in flight that it may have. An
 * exchange with the store takes a while, and a quick destination has answered many requests before it is over; without a
 * reserve those places stay empty until the next exchange. So while exchanges follow closely on each other a destination may
 * be given as many more as it answered between the last two: a slow one, which answers few, gets few.
 *
 * What waits here is claimed, unsent and uncharged. It is given back as soon as its destination may not be sent to any
 * more, when it does not answer any more, and when the relay stops. While there is a reserve its destination has no free
 * place, so that an answer, which frees one, is all that has to be waited for. */
#include "core/engine_impl.h"

enum {
    SILENT_MS =
        1000 /* a destination that has not answered for so long shall not keep others from these messages */
};

/* A rate is kept by not claiming, and so are seats; and a quarter of all places stays for whoever has none yet. */
uint32_t hk_dest_room(const struct hk_engine *e, const struct hk_dest *d)
{
    bool roomy = e->load.in_flight < e->options.concurrency / 4 * 3;
    uint32_t places = hk_room_places(d);
    return roomy && !(d->conf.limiter.rate_per_s > 0) && !d->conf.shared ? places + d->ahead : places;
}

static bool may_be_sent_to(const struct hk_dest *d, int64_t now_ms)
{
    return !d->paused && !hk_dest_rests(d) && hk_dest_limit_at(d, now_ms) <= now_ms &&
           (!d->breaker || hk_breaker_state(d->breaker, now_ms) == HK_BREAKER_CLOSED);
}

bool hk_reserve_refuses(const struct hk_engine *e, const struct hk_slot *slot, int64_t now_ms)
{
    return slot->spare && !may_be_sent_to(&e->dests[slot->dest], now_ms);
}

void hk_reserve_add(struct hk_engine *e, uint32_t i)
{
    struct hk_dest *d = &e->dests[e->slots[i].dest];
    e->load.in_reserve++;
    if (d->reserve_len++)
        e->slots[d->reserve_last].next = i;
    else
        d->reserve_first = i;
    d->reserve_last = i;
}

static uint32_t take_first(struct hk_engine *e, struct hk_dest *d)
{
    uint32_t i = d->reserve_first;
    d->reserve_first = e->slots[i].next;
    d->reserve_len--;
    e->load.in_reserve--;
    return i;
}

void hk_reserve_give_back(struct hk_engine *e, struct hk_dest *d, int64_t now_ms)
{
    d->ahead = 0;
    while (d->reserve_len)
        hk_slot_give_back(e, take_first(e, d), now_ms);
}

void hk_reserve_next(struct hk_engine *e, struct hk_dest *d, int64_t now_ms)
{
    if (!d->reserve_len || d->full) /* its sink will say when there is room */
        return;
    if (may_be_sent_to(d, now_ms))
        hk_ring_push(&e->ready, take_first(e, d));
    else
        hk_reserve_give_back(e, d, now_ms);
}

void hk_reserve_look(struct hk_engine *e, int64_t now_ms)
{
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        if (d->reserve_len && (!may_be_sent_to(d, now_ms) || now_ms - d->answered_ms >= SILENT_MS))
            hk_reserve_give_back(e, d, now_ms);
    }
}

void hk_reserve_measure(struct hk_engine *e, int64_t now_ms)
{
    bool soon = now_ms - e->load.measured_ms < (int64_t)e->options.ahead_ms;
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        d->ahead = soon && !d->full && may_be_sent_to(d, now_ms) ? hk_fewer(d->answered, 2 * d->cap) : 0;
        d->answered = 0;
    }
    e->load.measured_ms = now_ms;
}
