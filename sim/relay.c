/* SPDX-License-Identifier: Apache-2.0 */
/* A relay's process: does what the engine says as the real shell does, one store call at a time, sends side by side. And
 * what befalls processes: they crash between any two actions, are stopped past their lease, and drain. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "world_impl.h"

enum {
    ACTIONS_MAX = 5000, /* in one go */
    SPINS_MAX = 3000,   /* timers in a row that lead to nothing */
    DRAIN_MS = 2000
};

static int64_t clock_of(const struct world *w, const struct relay *r)
{
    return w->now + r->clock_ms;
}

static void log_process(struct world *w, const struct relay *r, enum hk_logged ev)
{
    hk_world_log(w, (struct hk_event_line){.ev = ev, .relay = hk_str_of(r->name)});
}

/* ---- store calls ---- */

static void start_call(struct world *w, size_t relay, const struct hk_action *action)
{
    struct relay *r = &w->relays[relay];
    struct hk_rng *rng = &w->store_rng;
    bool faulty = !w->healed;
    if (r->call.active) {
        hk_world_fail(w, "%s: two store calls at once", r->name);
        return;
    }
    r->call = (struct call){.active = true, .action = *action, .number = r->call.number + 1};
    int64_t there = hk_world_between(rng, 0, w->c.store_ms), back = hk_world_between(rng, 0, w->c.store_ms);
    if (faulty && hk_world_chance(rng, w->c.p_store_fail)) {
        r->call.refuse = hk_rng_upto(rng, 1) ? HK_BUSY : HK_UNAVAILABLE;
        w->result->faults++;
    }
    if (faulty &&
        hk_world_chance(rng,
                        w->c.p_store_slow)) { /* or: the reply is lost, and the store finds out what it did */
        *(hk_rng_upto(rng, 1) ? &there : &back) += hk_world_between(rng, 20, 500);
        w->result->faults++;
    }
    if (faulty && hk_world_chance(rng, w->c.p_store_hang)) {
        *(hk_rng_upto(rng, 1) ? &there : &back) += hk_world_between(rng, 0, 2 * (int64_t)w->options.lease_ms);
        w->result->faults++;
    }
    if (faulty)
        hk_world_store_trouble(w, &r->call);
    hk_world_at(w, w->now + there, EV_APPLY, relay, r->call.number);
    hk_world_at(w, w->now + there + back, EV_REPLY, relay, r->call.number);
}

void hk_world_relay_apply(struct world *w, const struct event *ev)
{
    struct relay *r = &w->relays[ev->who];
    if (r->call.active && r->call.number == ev->number && !r->call.applied)
        hk_world_store_apply(w, r);
}

static void answer(struct world *w, struct relay *r)
{
    struct hk_model_reply reply = r->call.reply;
    enum hk_action_kind kind = r->call.action.kind;
    int64_t now = clock_of(w, r);
    r->call.active = false;
    r->call.reply = (struct hk_model_reply){.rc = HK_OK};
    switch (kind) {
    case HK_ACT_ACQUIRE:
        if (reply.rc == HK_OK)
            r->lane = reply.lane;
        hk_engine_on_acquired(r->engine, now, reply.rc, reply.lane, reply.now_ms);
        break;
    case HK_ACT_POLL:
        hk_engine_on_poll(r->engine, now, reply.rc, &reply.poll);
        if (reply.rc == HK_OK)
            hk_world_heard(w, r, &reply.poll);
        if (reply.rc == HK_OK && reply.poll.changed)
            hk_world_define_told(w, (size_t)(r - w->relays), reply.poll.definitions);
        break;
    case HK_ACT_HELD_KEYS:
        hk_engine_on_held_keys(r->engine, now, reply.rc, reply.keys, reply.n_keys);
        break;
    case HK_ACT_SCAN:
        hk_engine_on_scan(r->engine, now, reply.rc, &r->call.action.purpose, &reply.heads);
        break;
    case HK_ACT_EXCHANGE:
        hk_engine_on_exchange(r->engine, now, reply.rc, &reply.exchanged);
        if (reply.rc == HK_OK)
            hk_world_define_told(w, (size_t)(r - w->relays), reply.exchanged.definitions);
        break;
    case HK_ACT_PAUSE:
    case HK_ACT_RELEASE:
        hk_engine_on_done(r->engine, now, reply.rc);
        break;
    case HK_ACT_WAIT:
    case HK_ACT_SEND:
    case HK_ACT_ABORT:
    case HK_ACT_STOPPED:
        abort();
    }
    hk_model_reply_free(&reply);
}

/* ---- what befalls a process ---- */

void hk_world_relay_start(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    if (r->engine || w->finishing)
        return;
    if (w->maintenance && !w->healed) {
        hk_world_at(w, w->now + 100, EV_START, relay, 0);
        return;
    }
    struct hk_err err;
    r->clock_ms = hk_world_between(&w->fault_rng, 0, 1000000);
    r->stopped = r->draining = false;
    r->handle = (struct hk_model_handle){.polled = false};
    r->idle_spins = 0;
    r->paused = r->full = 0;
    memset(r->open_until_ms, 0, sizeof r->open_until_ms);
    w->options.seed = hk_rng_next(&w->fault_rng);
    if (hk_engine_new(&w->options, clock_of(w, r), &r->engine, &err) != HK_OK) {
        hk_world_fail(w, "%s: %s", r->name, err.message);
        return;
    }
    log_process(w, r, HK_LOG_START);
    hk_world_define_begin(w, relay);
    hk_world_at(w, w->now, EV_WAKE, relay, ++r->wake);
}

/* Requests that are on their way when the process ends may arrive all the same. */
static void cut_sends(struct world *w, size_t relay)
{
    for (size_t i = 0; i < w->n_sends; i++) {
        struct send *send = w->sends[i];
        if (send->relay != relay || send->incarnation != w->relays[relay].incarnation || send->over)
            continue;
        send->over = true;
        if (!send->received && hk_rng_upto(&w->fault_rng, 1))
            send->cut = true;
    }
}

static void end_process(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    cut_sends(w, relay);
    w->result->swept += w->c.ids_at_insert && w->c.late_silent ? 0 : hk_engine_stats(r->engine)->swept;
    hk_engine_free(r->engine);
    r->engine = NULL;
    r->incarnation++;
    r->call.active = false;
    hk_model_reply_free(&r->call.reply);
    r->stopped = false;
    r->wake++;
}

void hk_world_relay_crash(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    w->result->faults++;
    /* what was asked of the store may be done or not */
    if (r->call.active && !r->call.applied && hk_rng_upto(&w->fault_rng, 1))
        hk_world_store_apply(w, r);
    log_process(w, r, HK_LOG_CRASH);
    if (w->c.locks)
        hk_model_died(w->model, r->name);
    end_process(w, relay);
    hk_world_at(w, w->now + (w->healed ? 10 : hk_world_between(&w->fault_rng, 0, 4000)), EV_START, relay, 0);
}

void hk_world_relay_stop(struct world *w, size_t relay, int64_t for_ms)
{
    struct relay *r = &w->relays[relay];
    w->result->faults++;
    r->stopped = r->store_waits = true;
    log_process(w, r, HK_LOG_STOP);
    hk_world_at(w, w->now + for_ms, EV_CONT, relay, r->incarnation);
}

void hk_world_relay_cont(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    if (!r->stopped)
        return;
    r->stopped = false;
    log_process(w, r, HK_LOG_CONT);
    hk_world_unpark(w, relay);
    hk_world_at(w, w->now, EV_WAKE, relay, ++r->wake);
}

void hk_world_relay_drain(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    if (!r->engine || r->draining)
        return;
    r->draining = true;
    log_process(w, r, HK_LOG_DRAIN);
    hk_engine_drain(r->engine, clock_of(w, r), clock_of(w, r) + DRAIN_MS);
    hk_world_at(w, w->now, EV_WAKE, relay, ++r->wake);
}

/* True: the process cannot go on now. */
static bool befalls(struct world *w, size_t relay)
{
    if (w->healed)
        return false;
    if (hk_world_chance(&w->fault_rng, w->c.p_crash)) {
        hk_world_relay_crash(w, relay);
        return true;
    }
    if (hk_world_chance(&w->fault_rng, w->c.p_stop)) {
        bool waits = hk_rng_upto(&w->fault_rng, 1);
        hk_world_relay_stop(w, relay, hk_world_between(&w->fault_rng, 1, 3 * (int64_t)w->options.lease_ms));
        w->relays[relay].store_waits = waits;
        return true;
    }
    if (hk_world_chance(&w->fault_rng, w->c.p_drain))
        hk_world_relay_drain(w, relay);
    return false;
}

/* ---- doing what the engine says ---- */

static void abort_sends(struct world *w, size_t relay)
{
    for (size_t i = 0; i < w->n_sends; i++) {
        struct send *send = w->sends[i];
        if (send->relay != relay || send->incarnation != w->relays[relay].incarnation || send->over ||
            send->aborted)
            continue;
        send->cut = !send->received && hk_rng_upto(&w->fault_rng, 1);
        send->aborted = true;
        hk_world_at(w, w->now + 1, EV_ANSWER, i, send->incarnation);
    }
}

static void stopped(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    log_process(w, r, HK_LOG_EXIT);
    end_process(w, relay);
    if (!w->finishing)
        hk_world_at(w, w->now + hk_world_between(&w->fault_rng, 0, 2000), EV_START, relay, 0);
}

/* The message is sealed, and this relay has no key for it now: it is not sent, and the engine knows. */
static bool is_keyless(struct world *w, size_t relay, const struct hk_action *action)
{
    struct relay *r = &w->relays[relay];
    if (!w->c.p_keyless || w->healed || !hk_world_chance(&w->keyless_rng, w->c.p_keyless))
        return false;
    const struct hk_message *m = action->message;
    struct hk_outcome outcome = {.facts = {.fault = HK_FAULT_LOCAL},
                                 .put_off_ms = (uint64_t)hk_world_between(&w->keyless_rng, 3000, 8000)};
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_KEYLESS,
                                           .m = m->message_id,
                                           .dest = hk_str_of(w->dests[r->dest_of[action->dest]].name),
                                           .relay = hk_str_of(r->name),
                                           .source = m->source == HK_FROM_RETRY ? 'r' : 'o',
                                           .id = m->id,
                                           .lane = action->lane,
                                           .claim = action->claim,
                                           .life = m->life});
    hk_engine_on_outcome(r->engine, clock_of(w, r), action->slot, &outcome);
    w->result->faults++;
    return true;
}

/* False: the process is not there any more, or waits. */
static bool perform(struct world *w, size_t relay, const struct hk_action *action)
{
    struct relay *r = &w->relays[relay];
    switch (action->kind) {
    case HK_ACT_WAIT:
        if (action->wake_ms != INT64_MAX)
            hk_world_at(w, action->wake_ms - r->clock_ms, EV_WAKE, relay, ++r->wake);
        return false;
    case HK_ACT_STOPPED:
        stopped(w, relay);
        return false;
    case HK_ACT_ABORT:
        abort_sends(w, relay);
        return true;
    case HK_ACT_SEND: {
        if (is_keyless(w, relay, action)) /* the payload is opened before the sink is asked */
            return w->result->ok;
        bool room = hk_world_has_room(w, relay, r->dest_of[action->dest]);
        size_t number = hk_world_send_start(w, relay, action, room);
        if (w->result->ok && !room) {
            hk_world_room_refused(w, relay, w->sends[number]);
            return w->result->ok;
        }
        if (w->result->ok && w->sends[number]->msg->poison) {
            hk_world_relay_crash(w, relay);
            return false;
        }
        return w->result->ok;
    }
    case HK_ACT_ACQUIRE:
    case HK_ACT_POLL:
    case HK_ACT_HELD_KEYS:
    case HK_ACT_SCAN:
    case HK_ACT_EXCHANGE:
    case HK_ACT_PAUSE:
    case HK_ACT_RELEASE:
        start_call(w, relay, action);
        return true;
    }
    return false;
}

static void run(struct world *w, size_t relay)
{
    struct relay *r = &w->relays[relay];
    struct hk_action action;
    int n = 0;
    do {
        if (befalls(w, relay))
            return;
        hk_engine_next(r->engine, clock_of(w, r), &action);
        if (++n > ACTIONS_MAX)
            hk_world_fail(w, "%s: has no end of things to do at once", r->name);
    } while (perform(w, relay, &action) && !w->done);
    if (n > 1)
        r->idle_spins = 0;
    else if (++r->idle_spins > SPINS_MAX)
        hk_world_fail(w, "%s: wakes again and again for nothing", r->name);
}

void hk_world_relay_wake(struct world *w, const struct event *ev)
{
    struct relay *r = &w->relays[ev->who];
    if (r->engine && r->wake == ev->number)
        run(w, ev->who);
}

void hk_world_relay_reply(struct world *w, const struct event *ev)
{
    struct relay *r = &w->relays[ev->who];
    if (!r->engine || !r->call.active || r->call.number != ev->number)
        return;
    if (!r->call.applied) /* it waited with the process */
        hk_world_store_apply(w, r);
    answer(w, r);
    run(w, ev->who);
}

void hk_world_relay_answer(struct world *w, const struct event *ev)
{
    struct send *send = w->sends[ev->who];
    struct relay *r = &w->relays[send->relay];
    if (!r->engine || r->incarnation != send->incarnation || send->over)
        return;
    struct hk_header header;
    char value[24];
    struct hk_outcome outcome = {.facts = {.fault = HK_FAULT_NONE}};
    hk_world_send_facts(w, send, &header, value, &outcome.facts);
    if (send->aborted)
        outcome.facts = (struct hk_facts){.fault = HK_FAULT_LOCAL, .possibly_delivered = true};
    send->over = true;
    struct hk_event_line line = send->line;
    line.ev = outcome.facts.status == 200 ? HK_LOG_CONFIRM : HK_LOG_FAIL;
    line.kind = hk_str_of(outcome.facts.fault == HK_FAULT_LOCAL ? "local" : "");
    line.status = outcome.facts.status;
    line.maybe = outcome.facts.possibly_delivered;
    line.wait = outcome.facts.n_headers ? send->hint_s * 1000 : 0;
    hk_world_log(w, line);
    if (w->dests[send->dest].unknown) {
        w->dests[send->dest].unknown = false;
        hk_world_log_dest(w, send->dest);
    }
    hk_engine_on_outcome(r->engine, clock_of(w, r), send->slot, &outcome);
    hk_world_room_freed(w, send->relay, send->dest);
    run(w, send->relay);
}
