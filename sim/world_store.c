/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the world: its calls, as one lane at a time has them or as many share it, and what befalls it: a full disk,
 * deadlocks, a connection that breaks when an exchange has had its effect. */
#include <stdlib.h>

#include "world_impl.h"

static uint32_t maybe(struct hk_rng *rng, uint32_t in_100, uint32_t lo, uint32_t hi)
{
    return hk_rng_upto(rng, 99) < in_100 ? (uint32_t)hk_rng_between(rng, lo, hi) : 0;
}

/* From a stream of its own: worlds without these are what they were. */
void hk_world_store_draw(struct world *w, uint64_t seed)
{
    struct hk_rng *rng = &w->more_rng;
    struct config *c = &w->c;
    hk_rng_seed(rng, seed, RNG_STORE_FAULTS);
    c->many = hk_rng_upto(rng, 99) < 70 && c->ids_at_insert;
    w->options.shared = c->many;
    if (c->many)
        c->locks = false;
    c->p_lost_reply = c->many ? maybe(rng, 40, 100, 8000) : 0;
    c->p_deadlock = maybe(rng, 20, 100, 8000);
    if (hk_rng_upto(rng, 4) == 0) {
        c->full_from = hk_world_between(rng, 0, c->fault_ms);
        c->full_to = c->full_from + hk_world_between(rng, 100, 4 * (int64_t)w->options.lease_ms);
    }
    if (c->many && hk_rng_upto(rng, 2) == 0) {
        c->forget_at = hk_world_between(rng, 10, c->fault_ms - 1);
        c->keep_at = c->forget_at - hk_world_between(rng, 1, hk_rng_upto(rng, 1) ? 300 : 5000);
        c->away_to = c->forget_at + hk_world_between(rng, 0, 2000);
        c->reuse = hk_rng_upto(rng, 3) != 0;
    }
}

bool hk_world_store_full(const struct world *w)
{
    return !w->healed && w->now >= w->c.full_from && w->now < w->c.full_to;
}

bool hk_world_store_away(const struct world *w)
{
    return !w->healed && w->c.forget_at && w->now >= w->c.forget_at && w->now < w->c.away_to;
}

void hk_world_store_keep(struct world *w)
{
    hk_model_keep(w->model);
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_KEEP});
}

/* Every connection breaks: what was asked and not done is not done, and what is open is undone. */
void hk_world_store_forget(struct world *w)
{
    if (w->healed)
        return;
    w->result->faults++;
    hk_world_app_cut_off(w);
    for (size_t i = 0; i < w->c.n_relays; i++) {
        struct relay *r = &w->relays[i];
        hk_model_handle_moved(&r->handle);
        if (r->call.active && !r->call.applied)
            r->call.refuse = HK_UNAVAILABLE;
    }
    hk_model_failover(w->model, w->c.reuse);
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_FORGET});
}

static bool writes(enum hk_action_kind kind)
{
    return kind == HK_ACT_ACQUIRE || kind == HK_ACT_EXCHANGE || kind == HK_ACT_PAUSE ||
           kind == HK_ACT_RELEASE;
}

void hk_world_store_trouble(struct world *w, struct call *call)
{
    bool exchange = call->action.kind == HK_ACT_EXCHANGE;
    if (exchange && hk_world_chance(&w->more_rng, w->c.p_deadlock)) {
        call->refuse = HK_BUSY;
        w->result->faults++;
    }
    if (exchange && hk_world_chance(&w->more_rng, w->c.p_lost_reply)) {
        call->lost = true;
        w->result->faults++;
    }
}

/* As if other relays came and went. In the end all is ours. */
static void share_out(struct world *w, struct relay *r)
{
    if (w->healed)
        r->handle.lost = 0;
    else if (hk_world_chance(&w->fault_rng, w->c.p_shards))
        r->handle.lost = (uint32_t)hk_rng_upto(&w->fault_rng, HK_MODEL_ALL_SHARDS);
}

static void poll(struct world *w, struct relay *r)
{
    if (!w->c.many)
        share_out(w, r);
    else if (hk_model_lanes_upkeep(w->model, &r->handle) == HK_CONFLICT)
        r->call.reply.rc = HK_CONFLICT;
    if (r->call.action.poll_all)
        r->handle.polled = false;
    if (r->call.reply.rc == HK_OK)
        hk_model_poll(w->model, &r->handle, &r->call.reply);
}

static void acquire(struct world *w, struct relay *r)
{
    if (w->c.many)
        hk_model_lanes_acquire(w->model, &r->handle, r->name, w->options.lease_ms, &r->call.reply);
    else
        hk_model_acquire(w->model, r->name, w->options.lease_ms, &r->call.reply);
}

static void exchange(struct world *w, struct relay *r)
{
    const struct hk_exchange *x = &r->call.action.exchange;
    if (w->c.many)
        hk_model_lanes_exchange(w->model, &r->handle, x, r->call.lost, &r->call.reply);
    else
        hk_model_exchange(w->model, &r->handle, x, &r->call.reply);
}

static void release(struct world *w, struct relay *r)
{
    if (w->c.many)
        hk_model_lanes_release(w->model, &r->handle, r->lane, &r->call.reply);
    else
        hk_model_release(w->model, r->lane, &r->call.reply);
}

void hk_world_store_apply(struct world *w, struct relay *r)
{
    struct call *call = &r->call;
    const struct hk_action *a = &call->action;
    call->applied = true;
    if (call->refuse == HK_OK && writes(a->kind) && hk_world_store_full(w))
        call->refuse = HK_UNAVAILABLE;
    if (hk_world_store_away(w))
        call->refuse = HK_UNAVAILABLE;
    call->reply.rc = call->refuse;
    if (call->refuse != HK_OK)
        return;
    switch (a->kind) {
    case HK_ACT_ACQUIRE:
        acquire(w, r);
        break;
    case HK_ACT_POLL:
        poll(w, r);
        break;
    case HK_ACT_HELD_KEYS:
        hk_model_held_keys(w->model, &r->handle, &call->reply);
        break;
    case HK_ACT_SCAN:
        hk_model_scan(w->model, &r->handle, &a->scan, &call->reply);
        break;
    case HK_ACT_EXCHANGE:
        exchange(w, r);
        break;
    case HK_ACT_PAUSE:
        hk_model_pause(w->model, a->dest_name, true, r->name, &call->reply);
        break;
    case HK_ACT_RELEASE:
        release(w, r);
        break;
    case HK_ACT_WAIT:
    case HK_ACT_SEND:
    case HK_ACT_ABORT:
    case HK_ACT_STOPPED:
        abort();
    }
}
