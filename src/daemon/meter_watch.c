/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what the relay tells. Two things must be remembered from one call to another: when an attempt began (by its slot),
 * and when a message whose attempt is over was written, until its settle is committed (by its row). The second is a small
 * hash that forgets everything when it is half full, which only happens when a lane was lost with many in hand: then some
 * latencies are not seen, and nothing else. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/meter_names.h"
#include "daemon/meter_watch.h"
#include "exec/clock.h"

struct ended {
    uint64_t key; /* 0 = free */
    int64_t created_ms;
};

struct hk_meter_watch {
    const struct hk_part_env *env;
    struct hk_metrics *m;
    struct hk_health *health;
    int64_t *began_us; /* by slot */
    size_t n_began;
    struct ended *ended;
    size_t n_ended, ended_size; /* a power of two */
    int64_t in_flight;
    struct hk_meter_names names;
};

/* ---- messages between attempt and settle ---- */

static uint64_t key_of(enum hk_source source, int64_t id)
{
    uint64_t key = (uint64_t)id * 2 + (source == HK_FROM_RETRY);
    return key ? key : UINT64_MAX;
}

static size_t home_of(const struct hk_meter_watch *w, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (w->ended_size - 1);
}

static size_t find_ended(const struct hk_meter_watch *w, uint64_t key)
{
    size_t at = home_of(w, key);
    while (w->ended[at].key && w->ended[at].key != key)
        at = (at + 1) & (w->ended_size - 1);
    return at;
}

static void remember(struct hk_meter_watch *w, const struct hk_message *m)
{
    if (w->n_ended >= w->ended_size / 2) {
        memset(w->ended, 0, w->ended_size * sizeof *w->ended);
        w->n_ended = 0;
    }
    uint64_t key = key_of(m->source, m->id);
    struct ended *e = &w->ended[find_ended(w, key)];
    w->n_ended += e->key == 0;
    *e = (struct ended){.key = key, .created_ms = m->created_ms};
}

/* Linear probing: what stood behind it moves up, unless it is at home or between home and the gap. */
static bool forget(struct hk_meter_watch *w, uint64_t key, int64_t *out_created_ms)
{
    size_t mask = w->ended_size - 1, gap = find_ended(w, key);
    if (!w->ended[gap].key)
        return false;
    *out_created_ms = w->ended[gap].created_ms;
    for (size_t at = (gap + 1) & mask; w->ended[at].key; at = (at + 1) & mask) {
        size_t home = home_of(w, w->ended[at].key);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        w->ended[gap] = w->ended[at];
        gap = at;
    }
    w->ended[gap].key = 0;
    w->n_ended--;
    return true;
}

/* ---- what is told ---- */

static void attempt_begins(void *arg, const struct hk_try *attempt)
{
    struct hk_meter_watch *w = arg;
    hk_metrics_set(w->m, HK_METER_IN_FLIGHT, 0, 0, ++w->in_flight);
    if (attempt->slot < w->n_began)
        w->began_us[attempt->slot] = hk_clock_us();
}

static void attempt_withdrawn(void *arg, const struct hk_try *attempt)
{
    struct hk_meter_watch *w = arg;
    (void)attempt;
    hk_metrics_set(w->m, HK_METER_IN_FLIGHT, 0, 0, --w->in_flight);
}

static void attempt_ended(void *arg, const struct hk_try *attempt, const struct hk_facts *facts)
{
    struct hk_meter_watch *w = arg;
    size_t dest = hk_meter_names_use(&w->names, hk_str_of(attempt->destination), attempt->dest,
                                     hk_clock_us() / 1000);
    uint64_t took_us = facts->duration_ms * 1000;
    if (attempt->slot < w->n_began)
        took_us = (uint64_t)(hk_clock_us() - w->began_us[attempt->slot]);
    hk_metrics_set(w->m, HK_METER_IN_FLIGHT, 0, 0, --w->in_flight);
    hk_metrics_observe(w->m, HK_METER_ATTEMPT_DURATION, dest, took_us);
    remember(w, attempt->message);
}

static void settled(struct hk_meter_watch *w, const struct hk_settle *s, int64_t now_ms)
{
    size_t dest = hk_metrics_dest(w->m, s->destination);
    int64_t created_ms = 0;
    bool known = forget(w, key_of(s->source, s->id), &created_ms);
    hk_metrics_add(w->m, HK_METER_SETTLES, s->kind, 0, 1);
    if (s->kind == HK_SETTLE_SENT) {
        hk_metrics_add(w->m, HK_METER_SENT, dest, 0, 1);
        hk_metrics_add(w->m, HK_METER_ATTEMPTS, dest, HK_CLASS_SUCCESS, 1);
        if (known)
            hk_metrics_observe(w->m, HK_METER_INSERT_TO_ACK, dest,
                               now_ms > created_ms ? (uint64_t)(now_ms - created_ms) : 0);
        return;
    }
    if (s->kind != HK_SETTLE_RETRY && s->kind != HK_SETTLE_DEAD)
        return;
    if (s->attempt.made)
        hk_metrics_add(w->m, HK_METER_ATTEMPTS, dest, s->attempt.failure_class, 1);
    if (s->attempt.possibly_delivered)
        hk_metrics_add(w->m, HK_METER_MAYBE_DELIVERED, dest, 0, 1);
    if (s->kind == HK_SETTLE_RETRY)
        hk_metrics_add(w->m, HK_METER_RETRIES, dest, 0, 1);
    else
        hk_metrics_add(w->m, HK_METER_DEAD, dest, hk_meter_reason(s->reason), 1);
}

static void exchanged(void *arg, const struct hk_exchange *asked, const struct hk_exchanged *done)
{
    struct hk_meter_watch *w = arg;
    int64_t unused;
    for (size_t i = 0; i < asked->n_settles; i++) {
        if (done->stale[i] || hk_settle_is_stuck(done, i))
            (void)forget(w, key_of(asked->settles[i].source, asked->settles[i].id), &unused);
        else
            settled(w, &asked->settles[i], done->now_ms);
    }
}

static void store_called(void *arg, enum hk_action_kind kind, enum hk_code rc, uint64_t took_us)
{
    struct hk_meter_watch *w = arg;
    size_t call = (size_t)kind - HK_ACT_ACQUIRE;
    hk_health_stored(w->health, hk_clock_us() / 1000, rc);
    hk_metrics_observe(w->m, HK_METER_STORE_DURATION, call, took_us);
    if (rc != HK_OK)
        hk_metrics_add(w->m, HK_METER_STORE_ERRORS, call, hk_meter_code(rc), 1);
}

static void polled(void *arg, const struct hk_poll *poll)
{
    struct hk_meter_watch *w = arg;
    hk_metrics_add(w->m, HK_METER_POLLS, poll->changed, 0, 1);
}

static void lane(void *arg, enum hk_lane_event event, int64_t id)
{
    struct hk_meter_watch *w = arg;
    (void)id;
    hk_metrics_add(w->m, HK_METER_LANE_EVENTS, event, 0, 1);
    hk_metrics_set(w->m, HK_METER_LANE_HELD, 0, 0, event == HK_LANE_ACQUIRED);
}

static void taken_over(void *arg, const struct hk_takings *takings)
{
    struct hk_meter_watch *w = arg;
    for (size_t i = 0; i < takings->n; i++)
        hk_metrics_add(w->m, HK_METER_MAYBE_DELIVERED,
                       hk_metrics_dest(w->m, hk_str_of(takings->items[i].destination)), 0,
                       takings->items[i].messages);
}

void hk_meter_watch_look(struct hk_meter_watch *w, struct hk_onlooker *out)
{
    *out = (struct hk_onlooker){.arg = w,
                                .attempt_begins = attempt_begins,
                                .attempt_withdrawn = attempt_withdrawn,
                                .attempt_ended = attempt_ended,
                                .exchanged = exchanged,
                                .store_called = store_called,
                                .taken_over = taken_over,
                                .polled = polled,
                                .lane = lane};
}

/* ---- what is asked for ---- */

/* Only those that have a value of their own: states cannot be added up. */
static void show_dest(struct hk_meter_watch *w, size_t dest, const struct hk_dest_view *v)
{
    hk_metrics_set(w->m, HK_METER_SEEN, dest, 0, (int64_t)v->seen);
    hk_metrics_set(w->m, HK_METER_DEST_IN_FLIGHT, dest, 0, v->in_flight);
    hk_metrics_set(w->m, HK_METER_DEST_CONCURRENCY, dest, 0, v->concurrency);
    hk_metrics_set(w->m, HK_METER_DEST_PAUSED, dest, 0, v->paused);
    for (size_t i = HK_BREAKER_CLOSED; i <= HK_BREAKER_ISOLATED; i++)
        hk_metrics_set(w->m, HK_METER_BREAKER, dest, i, i == v->breaker);
}

void hk_meter_watch_tick(struct hk_meter_watch *w)
{
    struct hk_dest_view view;
    hk_metrics_set(w->m, HK_METER_LOG_DROPPED, 0, 0, (int64_t)hk_log_dropped(w->env->log));
    if (!w->env->relay)
        return;
    struct hk_engine_stats stats = hk_relay_stats(w->env->relay);
    hk_metrics_set(w->m, HK_METER_CLAIMED, 0, 0, (int64_t)stats.claimed);
    hk_metrics_set(w->m, HK_METER_STALE, 0, 0, (int64_t)stats.stale_settles);
    hk_metrics_set(w->m, HK_METER_STUCK, 0, 0, (int64_t)stats.stuck);
    hk_metrics_set(w->m, HK_METER_SCANS, 0, 0, (int64_t)stats.scans);
    hk_metrics_set(w->m, HK_METER_EXCHANGES, 0, 0, (int64_t)stats.exchanges);
    hk_metrics_set(w->m, HK_METER_SWEPT, 0, 0, (int64_t)stats.swept);
    hk_meter_names_look(&w->names, hk_relay_kept(w->env->relay));
    for (size_t i = 0; i < HK_METRIC_DESTS; i++) {
        const struct hk_meter_name *name = &w->names.names[i];
        if (name->name[0] && hk_relay_view_dest(w->env->relay, name->place, &view) &&
            strcmp(view.name, name->name) == 0)
            show_dest(w, i, &view);
    }
}

/* ---- configurations come and go ---- */

/* Without memory they stay as they are, and what does not fit is not measured. */
static void make_room(struct hk_meter_watch *w, const struct hk_config *c)
{
    size_t slots = (size_t)c->relay.concurrency * 2 + c->relay.batch, size = 1024;
    while (size < slots * 4)
        size *= 2;
    int64_t *began = hk_mem_zalloc(slots, sizeof *began);
    struct ended *ended = hk_mem_zalloc(size, sizeof *ended);
    if (!began || !ended) {
        hk_mem_free(began);
        hk_mem_free(ended);
        return;
    }
    hk_mem_free(w->began_us);
    hk_mem_free(w->ended);
    w->began_us = began;
    w->n_began = slots;
    w->ended = ended;
    w->ended_size = size;
    w->n_ended = 0;
}

static void use_config(struct hk_meter_watch *w)
{
    const struct hk_config *c = w->env->config;
    make_room(w, c);
    hk_meter_names_configure(&w->names, c);
    hk_metrics_set(w->m, HK_METER_CONCURRENCY, 0, 0, c->relay.concurrency);
}

void hk_meter_watch_reloaded(struct hk_meter_watch *w)
{
    use_config(w);
    hk_meter_watch_tick(w);
    hk_metrics_add(w->m, HK_METER_RELOADS, 0, 0, 1);
}

enum hk_code hk_meter_watch_new(const struct hk_part_env *env, struct hk_metrics *metrics,
                                struct hk_health *health, struct hk_meter_watch **out_watch,
                                struct hk_err *err)
{
    struct hk_meter_watch *w = hk_mem_zalloc(1, sizeof *w);
    if (w) {
        w->env = env;
        w->m = metrics;
        w->health = health;
        hk_meter_names_init(&w->names, metrics);
        use_config(w);
    }
    if (!w || !w->ended) {
        hk_meter_watch_free(w);
        return hk_err_set(err, HK_NOMEM, "out of memory for metrics");
    }
    hk_metrics_set(metrics, HK_METER_IN_FLIGHT, 0, 0, 0);
    hk_metrics_set(metrics, HK_METER_LANE_HELD, 0, 0, 0);
    *out_watch = w;
    return HK_OK;
}

void hk_meter_watch_free(struct hk_meter_watch *w)
{
    if (!w)
        return;
    hk_mem_free(w->began_us);
    hk_mem_free(w->ended);
    hk_mem_free(w);
}
