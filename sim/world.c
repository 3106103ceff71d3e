/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time: a heap of (time, sequence), two phases (faults, then none), and the question whether all is at rest. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "world_impl.h"

enum {
    CHECK_EVERY_MS = 200,
    CONVERGE_MS = 30 * 60 * 1000, /* after the faults ended, everything must be at rest by then */
    STEPS_MAX = 3000000
};

void hk_world_fail(struct world *w, const char *fmt, ...)
{
    if (!w->result->ok)
        return; /* the first one counts */
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(w->result->problem, sizeof w->result->problem, fmt, ap);
    va_end(ap);
    w->result->ok = false;
    w->done = true;
}

bool hk_world_chance(struct hk_rng *rng, uint32_t p)
{
    return hk_rng_upto(rng, 65535) < p;
}

int64_t hk_world_between(struct hk_rng *rng, int64_t lo, int64_t hi)
{
    return lo + (int64_t)hk_rng_upto(rng, (uint64_t)(hi > lo ? hi - lo : 0));
}

void hk_world_log(struct world *w, struct hk_event_line line)
{
    line.t = hk_world_store_now(w);
    line.behind = line.t - hk_model_clock(w->model);
    hk_eventlog_add(w->log, &line);
}

/* ---- events ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->t != b->t ? a->t < b->t : a->seq < b->seq;
}

static void *grow(void *items, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return items;
    *room = *room ? *room * 2 : 64;
    void *bigger = realloc(items, *room * bytes);
    if (!bigger)
        abort();
    return bigger;
}

static void push(struct world *w, struct event ev)
{
    w->heap = grow(w->heap, w->n_events, &w->room_events, sizeof *w->heap);
    size_t i = w->n_events++;
    for (; i > 0 && before(&ev, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = ev;
}

static struct event pop(struct world *w)
{
    struct event first = w->heap[0], last = w->heap[--w->n_events];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= w->n_events)
            break;
        if (child + 1 < w->n_events && before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (before(&last, &w->heap[child]))
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return first;
}

void hk_world_at(struct world *w, int64_t t, enum event_kind kind, size_t who, uint64_t number)
{
    push(w, (struct event){
                .t = t < w->now ? w->now : t, .seq = w->seq++, .kind = kind, .who = who, .number = number});
}

void hk_world_park(struct world *w, const struct event *ev)
{
    w->parked = grow(w->parked, w->n_parked, &w->room_parked, sizeof *w->parked);
    w->parked[w->n_parked++] = *ev;
}

/* Whose event is it? */
static size_t relay_of(const struct world *w, const struct event *ev)
{
    return ev->kind == EV_ANSWER ? w->sends[ev->who]->relay : ev->who;
}

void hk_world_unpark(struct world *w, size_t relay)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n_parked; i++) {
        struct event ev = w->parked[i];
        if (relay_of(w, &ev) == relay)
            hk_world_at(w, w->now, ev.kind, ev.who, ev.number);
        else
            w->parked[kept++] = ev;
    }
    w->n_parked = kept;
}

/* ---- the two phases ---- */

static void heal(struct world *w)
{
    w->healed = true;
    w->healed_at = w->now;
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_HEAL, .wait = hk_world_bound_ms(w)});
    for (size_t i = 0; i < w->c.n_relays; i++)
        if (w->relays[i].stopped)
            hk_world_relay_cont(w, i);
    hk_world_room_healed(w);
    hk_world_force_heal(w);
    hk_world_at(w, w->now, EV_CHECK, 0, 0);
}

static bool at_rest(struct world *w)
{
    for (size_t i = 0; i < w->c.n_apps; i++)
        if (w->apps[i].n_rows)
            return false;
    if (w->n_written < w->c.n_messages || w->redriving)
        return false;
    size_t live = hk_model_live(w->model);
    return live == 0 ||
           (!hk_world_force_pauses(w) &&
            (!w->c.heal_discards || w->c.p_stuck) && /* nobody discards a row that is stuck */
            live == hk_model_excused(w->model, w->wall_high_ms + CONVERGE_MS, hk_world_dest_blocks, w));
}

static void check(struct world *w)
{
    /* one for each destination of its route, and one from before it was routed; with more there would be no end of them */
    if (hk_model_letters(w->model) > (MAX_ROUTE + 1) * w->c.n_messages) {
        hk_world_fail(w, "%zu letters of %zu messages", hk_model_letters(w->model), w->c.n_messages);
        return;
    }
    if (!w->finishing)
        hk_world_operator_heal(w);
    if (!w->finishing && at_rest(w)) {
        w->finishing = true;
        for (size_t i = 0; i < w->c.n_relays; i++)
            hk_world_relay_drain(w, i);
    }
    bool down = w->finishing;
    for (size_t i = 0; i < w->c.n_relays; i++)
        down = down && !w->relays[i].engine;
    if (down) {
        w->done = true;
        return;
    }
    if (w->now - w->healed_at > CONVERGE_MS) {
        hk_world_fail(w,
                      w->finishing ? "%zu rows live: a relay does not stop draining"
                                   : "%zu rows live: no rest after the faults ended",
                      hk_model_live(w->model));
        return;
    }
    hk_world_at(w, w->now + CHECK_EVERY_MS, EV_CHECK, 0, 0);
}

/* ---- running ---- */

static bool is_relays(const struct world *w, const struct event *ev)
{
    switch (ev->kind) {
    case EV_WAKE:
    case EV_REPLY:
    case EV_ANSWER:
    case EV_LEARN:
    case EV_ROOM:
        return true;
    case EV_APPLY:
        return w->relays[ev->who].store_waits;
    case EV_APP:
    case EV_OPERATOR:
    case EV_RECV:
    case EV_START:
    case EV_CONT:
    case EV_CLOCK:
    case EV_RESET:
    case EV_DEFINE:
    case EV_DESK:
    case EV_FORCE:
    case EV_REDRIVE:
    case EV_KEEP:
    case EV_FORGET:
    case EV_HEAL:
    case EV_CHECK:
        return false;
    }
    return false;
}

static void dispatch(struct world *w, const struct event *ev)
{
    if (is_relays(w, ev) && w->relays[relay_of(w, ev)].stopped) {
        hk_world_park(w, ev);
        return;
    }
    switch (ev->kind) {
    case EV_APP:
        hk_world_app_step(w, ev->who);
        break;
    case EV_OPERATOR:
        hk_world_operator_step(w);
        break;
    case EV_WAKE:
        hk_world_relay_wake(w, ev);
        break;
    case EV_APPLY:
        hk_world_relay_apply(w, ev);
        break;
    case EV_REPLY:
        hk_world_relay_reply(w, ev);
        break;
    case EV_RECV:
        hk_world_send_received(w, w->sends[ev->who]);
        break;
    case EV_ANSWER:
        hk_world_relay_answer(w, ev);
        break;
    case EV_START:
        hk_world_relay_start(w, ev->who);
        break;
    case EV_CONT:
        if (w->relays[ev->who].incarnation == ev->number)
            hk_world_relay_cont(w, ev->who);
        break;
    case EV_CLOCK:
        hk_world_clock_step(w, ev);
        break;
    case EV_RESET:
        hk_world_reset_step(w);
        break;
    case EV_DEFINE:
        hk_world_define_step(w);
        break;
    case EV_LEARN:
        hk_world_define_learn(w, ev);
        break;
    case EV_DESK:
        hk_world_desk_step(w);
        break;
    case EV_FORCE:
        hk_world_force_step(w);
        break;
    case EV_REDRIVE:
        hk_world_redrive_step(w);
        break;
    case EV_KEEP:
        hk_world_store_keep(w);
        break;
    case EV_FORGET:
        hk_world_store_forget(w);
        break;
    case EV_ROOM:
        hk_world_room_step(w, ev);
        break;
    case EV_HEAL:
        heal(w);
        break;
    case EV_CHECK:
        check(w);
        break;
    }
}

/* With parts left out: where no fault is to strike, it is as if all were healed. */
static void dispatch_cut(struct world *w, const struct event *ev)
{
    bool calm = hk_world_cut_calm(w, ev);
    uint64_t faults = w->result->faults;
    size_t sends = w->n_sends;
    w->healed |= calm;
    dispatch(w, ev);
    w->healed &= !calm;
    bool struck = w->result->faults != faults;
    for (size_t i = sends; i < w->n_sends; i++) /* drawn now, known later */
        struck |= w->sends[i]->outcome != OUT_OK;
    if (w->strikes && struck)
        hk_numbers_add(w->strikes, w->now);
}

/* Its settings, as far as the checker is to know them. */
void hk_world_log_dest(struct world *w, size_t i)
{
    const struct hk_engine_dest *d = &w->engine_dests[i];
    const char *order = !d->ordered ? "none" : d->skip_dead ? "skip" : "block";
    uint64_t hint_cap = UINT64_MAX;
    for (size_t k = 0; k < w->c.n_policies; k++)
        if (hk_policy_limits(w->policies[k])->hint_cap_ms < hint_cap)
            hint_cap = hk_policy_limits(w->policies[k])->hint_cap_ms;
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_DEST,
                                           .dest = hk_str_of(d->name),
                                           .kind = hk_str_of(order),
                                           .wait = (int64_t)hint_cap,
                                           .cap = hk_world_cap(w, i),
                                           .all = d->shared,
                                           .open = d->breaker ? (int64_t)d->breaker->open_ms : 0,
                                           .until = d->breaker ? (int64_t)d->breaker->open_cap_ms : 0,
                                           .turn = w->dests[i].unknown ? 0 : w->dests[i].turn_ms});
}

static void begin(struct world *w)
{
    for (size_t i = 0; i < w->c.n_dests; i++)
        hk_world_log_dest(w, i);
    for (size_t i = 0; i < w->c.n_relays; i++)
        hk_world_at(w, (int64_t)i * 3, EV_START, i, 0);
    for (size_t i = 0; i < w->c.n_apps; i++)
        hk_world_at(w, (int64_t)i, EV_APP, i, 0);
    if (w->c.operator_gap_ms)
        hk_world_at(w, w->c.operator_gap_ms, EV_OPERATOR, 0, 0);
    if (w->c.desk_gap_ms)
        hk_world_at(w, w->c.desk_gap_ms, EV_DESK, 0, 0);
    if (w->c.force_gap_ms)
        hk_world_at(w, w->c.force_gap_ms, EV_FORCE, 0, 0);
    hk_world_clock_begin(w);
    if (w->c.reset_at)
        hk_world_at(w, w->c.reset_at, EV_RESET, 0, 0);
    if (w->c.define_gap_ms)
        hk_world_at(w, w->c.define_gap_ms, EV_DEFINE, 0, 0);
    if (w->c.forget_at) {
        hk_world_at(w, w->c.keep_at, EV_KEEP, 0, 0);
        hk_world_at(w, w->c.forget_at, EV_FORGET, 0, 0);
    }
    hk_world_at(w, w->c.fault_ms, EV_HEAL, 0, 0);
}

static void run(struct world *w)
{
    begin(w);
    while (!w->done && w->n_events) {
        struct event ev = pop(w);
        w->now = ev.t;
        dispatch_cut(w, &ev);
        if (++w->result->steps > STEPS_MAX)
            hk_world_fail(w, "no end after %d steps", STEPS_MAX);
        const char *complaint = hk_model_complaint(w->model);
        if (complaint)
            hk_world_fail(w, "%s", complaint);
    }
    if (!w->done)
        hk_world_fail(w, "nothing more happens");
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_END});
}

static void world_fini(struct world *w)
{
    for (size_t i = 0; i < w->c.n_relays; i++) {
        hk_engine_free(w->relays[i].engine);
        hk_model_reply_free(&w->relays[i].call.reply);
    }
    for (size_t i = 0; i < w->n_sends; i++)
        free(w->sends[i]);
    free(w->sends);
    free(w->heap);
    free(w->parked);
    free(w->messages);
    hk_model_free(w->model);
    hk_world_config_fini(w);
    free(w);
}

static uint64_t hash_of(const struct hk_buf *log)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < log->len; i++)
        h = (h ^ (unsigned char)log->data[i]) * 0x100000001b3u;
    return h;
}

void hk_world_run(uint64_t seed, struct hk_buf *log, struct hk_buf *dump, struct hk_world_result *out)
{
    hk_world_run_cut(seed, NULL, NULL, log, dump, out);
}

void hk_world_run_cut(uint64_t seed, const struct hk_cut *cut, struct hk_numbers *strikes, struct hk_buf *log,
                      struct hk_buf *dump, struct hk_world_result *out)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    *out = (struct hk_world_result){.ok = true};
    hk_buf_reset(log);
    hk_buf_reset(dump);
    w->result = out;
    w->cut = cut;
    w->strikes = strikes;
    w->log = log;
    hk_world_config_draw(w, seed);
    run(w);
    hk_model_dump(w->model, dump);
    if (hk_buf_status(log) != HK_OK || hk_buf_status(dump) != HK_OK)
        hk_world_fail(w, "the log is too long");
    out->messages = w->n_written;
    out->many_lanes = w->c.many;
    out->relays = w->c.n_relays;
    out->dests = w->c.n_dests;
    out->sends = w->n_sends;
    out->virtual_ms = w->now;
    out->trace_hash = hash_of(log);
    world_fini(w);
}
