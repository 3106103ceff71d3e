/* SPDX-License-Identifier: Apache-2.0 */
/* The shell around the engine: asks it what comes next and does it.
 *
 *   loop thread:   pump() -> hk_engine_next -> sink->send ...... done -> hk_engine_on_outcome -> pump()
 *                       `-> one store job -> store thread -> done on the loop -> hk_engine_on_… -> pump()
 *
 * The store is opened, used and closed on its own thread. Its answers stay valid until its next call, and there is only
 * ever one call under way, so the loop may read them. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "exec/clock.h"
#include "observe/crash.h"
#include "observe/trace.h"
#include "relay/attempt_log.h"
#include "relay/events.h"
#include "relay/redrive.h"
#include "relay/relay.h"
#include "relay/store_settings.h"
#include "relay/wiring.h"
#include "store/store.h"

enum {
    PURGE_EVERY_MS = 10000,
    PURGE_ROWS = 500,
    BEAT_MS = 1000,
    PUMP_EVERY = 8,
    RELOAD_DRAIN_MS = 5000,
    DRAIN_STORE_MS = 3000, /* after a drain's end: for the store to take what is to be settled */
    OPEN_FOR_MS = 30000,   /* a server that is away when we begin */
    OPEN_EVERY_MS = 500,
    OPEN_JOB = 1000, /* store jobs that are not the engine's */
    CLOSE_JOB,
    REOPEN_JOB,
    PURGE_JOB,
    REDRIVE_JOB
};

struct delivery {          /* one per slot: what a sink and its callback need */
    struct delivery *next; /* to be sent in this round */
    struct hk_relay *relay;
    struct hk_action action; /* its message is the engine's, until it is told */
    const char *destination;
    char traceparent
        [HK_TRACEPARENT_SIZE]; /* sent instead of the message's own, when somebody has set it; then `onward` is what */
    struct hk_message onward; /* the sink gets: the engine's message with that in it */
};

struct hk_relay {
    struct hk_relay_options options;
    struct hk_wiring wiring;
    struct hk_engine *engine;
    struct hk_timer *timer;
    struct hk_worker *worker;
    struct hk_events *events;
    struct hk_attempt_log *attempts;
    const struct hk_store_ops *ops;
    struct hk_store *store;       /* the store thread's */
    struct hk_listener *listener; /* NULL = none: the store only polls */
    struct hk_wake *wake;         /* what the listener calls */
    enum hk_listening listening;  /* as it was last told */
    bool woken;                   /* since the last poll */
    struct hk_store_hint hint;    /* of the poll under way */
    struct hk_redriver *redriver;
    int64_t redrive_ms; /* when the step under way began */
    struct delivery *deliveries;
    uint32_t n_deliveries;
    struct delivery *first_send, **last_send; /* of this round */
    struct hk_engine_stats past;              /* of engines before a reload */

    int job; /* an action's kind, or one of ours */
    struct hk_action action;
    bool held; /* an engine's action that waits for our own job */
    enum hk_code rc;
    struct hk_err err;
    int64_t lane, store_now_ms;
    const struct hk_poll *poll;
    const struct hk_heads *heads;
    const struct hk_held_key *keys;
    size_t n_keys;
    const struct hk_exchanged *exchanged;
    struct hk_takings takings;        /* by the last acquire or poll */
    uint32_t purged, purged_open;     /* rows that retention took, open dead letters among them */
    char guards[HK_STORE_GUARDS_MAX]; /* what others put on our tables, when the store was opened */

    uint64_t took_us; /* the engine's action under way, at the store */
    int64_t beat_at_ms, purge_at_ms;
    int64_t give_up_at_ms,
        idle_give_up_at_ms; /* of a drain; `idle_…`: when nothing is in hand to be settled */
    enum hk_code ended;
    enum hk_code last_error; /* logged once until it changes */
    int failed_call;         /* which call it came from: the engine's kind of action, or OPEN_JOB */
    bool draining, stopping, opening, clock_behind, job_busy;
    bool asked_more;   /* the store, when a drain was to be given up */
    bool soon;         /* the timer is set to pump at once */
    uint32_t n_landed; /* since it was pumped last */
    const struct hk_config *reload_to;
    bool reopened; /* as `reload_to` wants it, if `reopen` is HK_OK */
    enum hk_code reopen;
    struct hk_err reopen_err;
};

static void pump(void *arg);

static int64_t now_ms(const struct hk_relay *r)
{
    return (int64_t)hk_loop_now_ms(r->options.loop);
}

/* Soon, from the loop: several events of one round are answered together. */
static void pump_soon(struct hk_relay *r)
{
    if (!r->soon)
        hk_timer_start(r->timer, 0);
    r->soon = true;
}

/* Tells everybody who looks on. */
#define TELL(r, what, ...)                                                                                   \
    for (size_t tell_i = 0; tell_i < (r)->options.n_watches; tell_i++)                                       \
        if ((r)->options.watches[tell_i].what)                                                               \
    (r)->options.watches[tell_i].what((r)->options.watches[tell_i].arg, __VA_ARGS__)

/* ---- the store's thread ---- */

/* The old one goes only when the new one is there. No lane is held meanwhile. */
static enum hk_code reopen_store(struct hk_relay *r)
{
    struct hk_store *fresh = NULL;
    struct hk_store_options o = hk_relay_store_options(r->reload_to);
    enum hk_code rc = r->ops->open(r->options.url, &o, &fresh, &r->err);
    if (rc != HK_OK)
        return rc;
    r->ops->close(r->store);
    r->store = fresh;
    return HK_OK;
}

static enum hk_code do_own_job(struct hk_relay *r)
{
    if (r->job == OPEN_JOB) {
        struct hk_store_options o = hk_relay_store_options(r->options.config);
        o.create = r->options.create;
        enum hk_code rc = r->ops->open(r->options.url, &o, &r->store, &r->err);
        return rc != HK_OK || r->ops->guards(r->store, r->guards, NULL) == HK_OK ? rc : HK_OK;
    }
    if (r->job == REOPEN_JOB)
        return reopen_store(r);
    if (r->job == REDRIVE_JOB) {
        hk_redriver_work(r->redriver, r->redrive_ms);
        return HK_OK;
    }
    if (r->job == CLOSE_JOB) {
        hk_redriver_close(r->redriver);
        r->ops->close(r->store);
        r->store = NULL;
        return HK_OK;
    }
    struct hk_retention retention = hk_relay_retention(r->options.config);
    r->purged_open = 0;
    return r->ops->purge(r->store, &retention, PURGE_ROWS, &r->purged, &r->purged_open, &r->err);
}

static enum hk_code do_action(struct hk_relay *r)
{
    const struct hk_action *a = &r->action;
    switch (a->kind) {
    case HK_ACT_ACQUIRE:
        return r->ops->acquire(r->store, r->options.name, r->options.boot, r->options.config->relay.lease_ms,
                               &r->lane, &r->store_now_ms, &r->err);
    case HK_ACT_POLL:
        if (r->listener)
            r->ops->hint(r->store, &r->hint);
        return r->ops->poll(r->store, &r->poll, &r->err);
    case HK_ACT_HELD_KEYS:
        return r->ops->held_keys(r->store, &r->keys, &r->n_keys, &r->err);
    case HK_ACT_SCAN:
        return r->ops->scan(r->store, &a->scan, &r->heads, &r->err);
    case HK_ACT_EXCHANGE:
        return r->ops->exchange(r->store, &a->exchange, &r->exchanged, &r->err);
    case HK_ACT_PAUSE:
        return r->ops->pause(r->store, a->dest_name, true, "hikyaku", a->reason, &r->err);
    case HK_ACT_RELEASE:
        return r->ops->release(r->store, r->lane, &r->err);
    case HK_ACT_WAIT:
    case HK_ACT_SEND:
    case HK_ACT_ABORT:
    case HK_ACT_STOPPED:
        break;
    }
    return HK_UNSUPPORTED;
}

static void store_work(void *arg)
{
    struct hk_relay *r = arg;
    int64_t start_us = hk_clock_us();
    bool may_take = r->job == HK_ACT_ACQUIRE || r->job == HK_ACT_POLL;
    r->rc = r->job >= OPEN_JOB ? do_own_job(r) : do_action(r);
    if (may_take && r->ops->taken_over)
        r->ops->taken_over(r->store, &r->takings);
    r->took_us = (uint64_t)(hk_clock_us() - start_us);
}

/* Damaged, or migrated under us: nothing will mend by itself. */
static bool is_final(enum hk_code rc)
{
    return rc == HK_IO || rc == HK_UNSUPPORTED;
}

/* ---- log ---- */

/* Once when it begins, and once when it ends: when that call goes well, not another that never failed. */
static void log_store(struct hk_relay *r, enum hk_code rc, int call)
{
    struct hk_log_line line;
    if (rc == r->last_error || (rc == HK_OK && r->failed_call != call && r->failed_call != OPEN_JOB))
        return;
    r->failed_call = call;
    const char *what = rc == HK_OK         ? "store answers again"
                       : is_final(rc)      ? "store cannot be used, stopping"
                       : rc == HK_CONFLICT ? "lane lost, acquiring a new one"
                                           : "store does not answer, trying again";
    bool mild = rc == HK_OK || rc == HK_BUSY;
    hk_log_begin(&line, r->options.log, is_final(rc) ? HK_LOG_ERROR : mild ? HK_LOG_INFO : HK_LOG_WARN, what);
    if (rc != HK_OK) {
        hk_log_cstr(&line, "code", hk_code_name(rc));
        hk_log_cstr(&line, "error", r->err.message);
    }
    r->last_error = rc;
    hk_log_end(&line);
}

/* ---- jobs ---- */

static void submit(struct hk_relay *r, int job);
static void abort_all(struct hk_relay *r);

static void stopped(struct hk_relay *r, enum hk_code rc)
{
    r->options.stopped(r->options.arg, rc);
}

static void finish(struct hk_relay *r)
{
    r->stopping = true;
    submit(r, CLOSE_JOB);
}

static void acquired(struct hk_relay *r)
{
    struct hk_log_line line;
    hk_engine_on_acquired(r->engine, now_ms(r), r->rc, r->lane, r->store_now_ms);
    if (r->rc != HK_OK)
        return;
    hk_crash_point("acquired");
    hk_attempt_log_forget(r->attempts);
    TELL(r, lane, HK_LANE_ACQUIRED, r->lane);
    hk_events_acquired(r->events, r->store_now_ms, r->lane, r->options.config->relay.lease_ms);
    hk_log_begin(&line, r->options.log, HK_LOG_INFO, "lane acquired");
    hk_log_i64(&line, "lane", r->lane);
    hk_log_cstr(&line, "relay", r->options.name);
    hk_log_end(&line);
}

static void report(struct hk_relay *r)
{
    int64_t now = now_ms(r);
    if (r->takings.n) {
        hk_attempt_log_taken(r->attempts, &r->takings);
        TELL(r, taken_over, &r->takings);
        r->takings.n = 0;
    }
    switch (r->action.kind) {
    case HK_ACT_ACQUIRE:
        acquired(r);
        break;
    case HK_ACT_POLL:
        if (r->rc == HK_OK) {
            hk_redriver_polled(r->redriver, r->poll, now);
            r->clock_behind = hk_clock_log(r->options.log, r->clock_behind, r->poll->behind_ms);
            TELL(r, polled, r->poll);
        }
        hk_engine_on_poll(r->engine, now, r->rc, r->poll);
        break;
    case HK_ACT_HELD_KEYS:
        hk_engine_on_held_keys(r->engine, now, r->rc, r->keys, r->n_keys);
        break;
    case HK_ACT_SCAN:
        hk_engine_on_scan(r->engine, now, r->rc, r->heads);
        break;
    case HK_ACT_EXCHANGE:
        if (r->rc == HK_OK) {
            hk_attempt_log_exchanged(r->attempts, &r->action.exchange, r->exchanged);
            hk_events_exchanged(r->events, &r->action.exchange, r->exchanged);
            TELL(r, exchanged, &r->action.exchange, r->exchanged);
            hk_redriver_told(r->redriver, r->action.exchange.circuits, r->action.exchange.n_circuits,
                             r->exchanged->now_ms, now);
        }
        hk_crash_point("exchanged");
        hk_engine_on_exchange(r->engine, now, r->rc, r->exchanged);
        break;
    case HK_ACT_RELEASE:
        hk_crash_point("released");
        if (r->rc == HK_OK) {
            hk_events_released(r->events, hk_engine_store_now_ms(r->engine, now), r->lane);
            TELL(r, lane, HK_LANE_RELEASED, r->lane);
        }
        hk_engine_on_done(r->engine, now, r->rc);
        break;
    case HK_ACT_PAUSE:
        if (r->rc == HK_OK)
            hk_attempt_log_paused(r->attempts, r->action.dest_name, r->action.reason);
        hk_engine_on_done(r->engine, now, r->rc);
        break;
    case HK_ACT_WAIT:
    case HK_ACT_SEND:
    case HK_ACT_ABORT:
    case HK_ACT_STOPPED:
        break;
    }
}

static void own_job_done(struct hk_relay *r)
{
    if (r->job == CLOSE_JOB) {
        stopped(r, r->ended);
        return;
    }
    if (r->job == REOPEN_JOB) {
        r->reopened = true;
        r->reopen = r->rc;
        r->reopen_err = r->err;
        pump_soon(r);
        return;
    }
    if (r->job == REDRIVE_JOB) {
        hk_crash_point("redriven");
        hk_redriver_done(r->redriver, hk_engine_store_now_ms(r->engine, now_ms(r)), now_ms(r));
    } else {
        hk_attempt_log_purged(r->attempts, r->purged_open);
        bool more = r->rc == HK_OK && r->purged == PURGE_ROWS;
        r->purge_at_ms = now_ms(r) + (more ? 100 : PURGE_EVERY_MS);
    }
    if (r->held) {
        r->held = false;
        submit(r, (int)r->action.kind);
    }
    pump_soon(r);
}

static void store_done(void *arg, bool ran)
{
    struct hk_relay *r = arg;
    r->job_busy = false;
    if (!ran)
        return;
    if (r->job >= OPEN_JOB) {
        own_job_done(r);
        return;
    }
    log_store(r, r->rc, (int)r->action.kind);
    TELL(r, store_called, r->action.kind, r->rc, r->took_us);
    if (r->rc == HK_CONFLICT)
        TELL(r, lane, HK_LANE_LOST, r->lane);
    if (is_final(r->rc)) {
        r->ended = r->rc;
        abort_all(r);
        pump_soon(r);
        return;
    }
    report(r);
    pump_soon(r);
}

static void submit(struct hk_relay *r, int job)
{
    r->job = job;
    r->job_busy = true;
    r->err.message[0] = '\0';
    (void)!hk_worker_submit(r->worker, store_work, store_done, r); /* one at a time always fits */
}

/* ---- sends ---- */

/* The answers to a whole batch may come in one round of the loop. If the store had no work before its end, sends and store
 * would take turns instead of going on side by side: so it is looked after in between. */
static void landed(struct hk_relay *r)
{
    pump_soon(r);
    if (!r->job_busy && !r->draining && !r->reload_to && ++r->n_landed >= PUMP_EVERY)
        pump(r);
}

static struct hk_try attempt_of(struct delivery *d, int64_t store_ms)
{
    const struct hk_action *a = &d->action;
    return (struct hk_try){.message = a->message,
                           .destination = d->destination,
                           .dest = a->dest,
                           .n = a->attempt,
                           .slot = a->slot,
                           .store_ms = store_ms,
                           .traceparent = d->traceparent};
}

/* Everybody who looks on hears of the end, then the engine decides. */
static void ended(struct delivery *d, const struct hk_facts *facts, int64_t store_ms)
{
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    struct hk_try attempt = attempt_of(d, store_ms);
    hk_events_sent(r->events, store_ms, a->lane, a->claim, a->message, d->destination, facts);
    hk_attempt_log_ended(r->attempts, a->message, r->wiring.dests[a->dest].policy, d->traceparent, facts,
                         store_ms);
    TELL(r, attempt_ended, &attempt, facts);
}

/* An answer, and room for what it says. */
struct answer {
    const struct delivery *delivery;
    const struct hk_sink_result *result;
    char error[HK_ANSWER_ERROR_MAX];
};

static struct hk_str error_of(struct answer *answer)
{
    const struct delivery *d = answer->delivery;
    return hk_attempt_log_error(d->relay->attempts, d->action.message, &answer->result->facts, answer->error);
}

static void show(struct hk_outcome *outcome)
{
    struct answer *answer = outcome->show_arg;
    struct hk_sink_shown shown = answer->result->show(answer->result);
    outcome->request_headers = shown.request_headers;
    outcome->response_headers = shown.response_headers;
    if (!outcome->facts.error.len) /* a policy may take a 200 for a failure */
        outcome->facts.error = error_of(answer);
}

static void sent(void *arg, const struct hk_sink_result *result)
{
    struct delivery *d = arg;
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    struct answer answer = {.delivery = d, .result = result};
    struct hk_outcome outcome = {
        .facts = result->facts, .address = result->address, .show = show, .show_arg = &answer};
    int64_t now = now_ms(r), store_ms = hk_engine_store_now_ms(r->engine, now);
    hk_crash_point("sent");
    if (outcome.facts.status >= 300)
        outcome.facts.error = error_of(&answer);
    ended(d, &outcome.facts, store_ms);
    hk_engine_on_outcome(r->engine, now, a->slot, &outcome);
    landed(r);
}

static enum hk_fault fault_of(const struct hk_finding *finding)
{
    if (strcmp(finding->reason, "SCHEMA_MISMATCH") == 0)
        return HK_FAULT_SCHEMA;
    return strcmp(finding->reason, "PAYLOAD_TOO_LARGE") == 0 ? HK_FAULT_TOO_LARGE : HK_FAULT_INVALID_PAYLOAD;
}

/* A payload that is not as the rules want it is not sent: the engine makes it a dead letter, and charges no attempt. */
static bool refused(struct delivery *d, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_message *m = d->action.message;
    struct hk_finding finding;
    if (hk_validate_payload(r->wiring.validate, m->event_type, m->payload, &finding))
        return false;
    struct hk_outcome failed = {.facts = {.fault = fault_of(&finding), .error = hk_str_of(finding.text)}};
    hk_attempt_log_ended(r->attempts, m, r->wiring.dests[d->action.dest].policy, "", &failed.facts, now);
    hk_engine_on_outcome(r->engine, now, d->action.slot, &failed);
    pump_soon(r);
    return true;
}

static const struct hk_message *message_of(struct delivery *d)
{
    if (!d->traceparent[0])
        return d->action.message;
    d->onward = *d->action.message;
    d->onward.traceparent = hk_str_of(d->traceparent);
    return &d->onward;
}

static void start_send(struct delivery *d, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    if (refused(d, now))
        return;
    struct hk_sink *sink = r->wiring.sinks[a->dest];
    struct hk_err err = {.message = ""};
    int64_t store_now_ms = hk_engine_store_now_ms(r->engine, now);
    struct hk_try attempt = attempt_of(d, store_now_ms);
    hk_events_send(r->events, store_now_ms, a->lane, a, d->destination);
    TELL(r, attempt_begins, &attempt);
    hk_crash_point("send");
    enum hk_code rc =
        sink->ops->send(sink, message_of(d), a->attempt, store_now_ms, a->timeout_ms, sent, d, &err);
    if (rc == HK_OK)
        return;
    struct hk_outcome failed = {.facts = {.fault = HK_FAULT_LOCAL, .error = hk_str_of(err.message)}};
    ended(d, &failed.facts, store_now_ms);
    hk_engine_on_outcome(r->engine, now, a->slot, &failed);
    pump_soon(r);
}

static void add_send(struct hk_relay *r, const struct hk_action *a)
{
    struct delivery *d = &r->deliveries[a->slot];
    *d = (struct delivery){.relay = r, .action = *a, .destination = r->wiring.dests[a->dest].name};
    *r->last_send = d;
    r->last_send = &d->next;
}

/* After the store was given its next job, so that both go on side by side. */
static void start_sends(struct hk_relay *r, int64_t now)
{
    struct delivery *d = r->first_send;
    r->first_send = NULL;
    r->last_send = &r->first_send;
    while (d) {
        struct delivery *next = d->next;
        start_send(d, now);
        d = next;
    }
}

static void abort_all(struct hk_relay *r)
{
    for (size_t i = 0; i < r->wiring.n_dests; i++)
        r->wiring.sinks[i]->ops->abort(r->wiring.sinks[i]);
}

/* ---- engines come and go ---- */

static enum hk_code start_engine(struct hk_relay *r, const struct hk_config *config, struct hk_err *err)
{
    struct hk_wiring wiring;
    enum hk_code rc = hk_wiring_open(config, r->options.loop, &wiring, err);
    if (rc != HK_OK)
        return rc;
    struct hk_engine_options o = hk_wiring_engine(&wiring, hk_clock_seed());
    o.shared = r->ops->shared;
    uint32_t n = o.concurrency * 2 + o.batch;
    struct delivery *deliveries = hk_mem_zalloc(n, sizeof *deliveries);
    struct hk_engine *engine = NULL;
    rc = deliveries ? hk_engine_new(&o, now_ms(r), &engine, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_redriver_configure(r->redriver, config, err);
    if (rc == HK_OK)
        rc = hk_attempt_log_configure(r->attempts, config, err);
    if (rc != HK_OK) {
        hk_engine_free(engine);
        hk_mem_free(deliveries);
        hk_wiring_close(&wiring);
        return rc;
    }
    r->wiring = wiring;
    r->engine = engine;
    r->deliveries = deliveries;
    r->n_deliveries = n;
    r->options.config = config;
    return HK_OK;
}

static void add_stats(struct hk_engine_stats *sum, const struct hk_engine_stats *add)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)add;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static void end_engine(struct hk_relay *r)
{
    if (r->engine)
        add_stats(&r->past, hk_engine_stats(r->engine));
    hk_engine_free(r->engine);
    hk_wiring_close(&r->wiring);
    hk_mem_free(r->deliveries);
    r->engine = NULL;
    r->deliveries = NULL;
}

/* The old engine has drained: the next one takes over. When it cannot (the store could not be opened anew, or memory is
 * short: hk_relay_reload checked the rest) the old configuration goes on. */
static void switch_config(struct hk_relay *r)
{
    const struct hk_config *before = r->options.config;
    struct hk_err err = r->reopen_err;
    enum hk_code rc = r->reopen;
    end_engine(r);
    if (rc == HK_OK)
        rc = start_engine(r, r->reload_to, &err);
    r->reload_to = NULL;
    r->reopened = false;
    r->reopen = HK_OK;
    struct hk_err worse = {.message = ""};
    r->ended = rc == HK_OK ? HK_OK : start_engine(r, before, &worse);
    if (r->ended == HK_OK) {
        pump_soon(r);
        r->options.reloaded(r->options.arg, rc, &err);
        return;
    }
    struct hk_log_line line;
    hk_log_begin(&line, r->options.log, HK_LOG_ERROR, "cannot go on after the reload");
    hk_log_cstr(&line, "error", worse.message);
    hk_log_end(&line);
    finish(r);
}

static void engine_stopped(struct hk_relay *r)
{
    if (!r->reload_to || r->draining)
        finish(r);
    else if (!r->reopened && !hk_relay_same_store_options(r->options.config, r->reload_to))
        submit(r, REOPEN_JOB);
    else
        switch_config(r);
}

/* ---- being woken ---- */

static void log_listening(struct hk_relay *r, enum hk_listening before, const char *why)
{
    struct hk_log_line line;
    if (r->listening == before || r->listening == HK_LISTENING_NOT_YET)
        return;
    bool yes = r->listening == HK_LISTENING_YES;
    hk_log_begin(&line, r->options.log, HK_LOG_INFO, yes ? "listening for new messages" : "polling alone");
    if (!yes)
        hk_log_cstr(&line, "why", why);
    hk_log_end(&line);
}

static void on_wake(void *arg)
{
    struct hk_relay *r = arg;
    char why[HK_LISTENING_WHY_MAX] = "";
    enum hk_listening before = r->listening;
    if (!r->listener || r->stopping || !r->engine)
        return;
    r->listening = r->ops->listening(r->listener, why);
    log_listening(r, before, why);
    r->woken = true;
    hk_engine_wake(r->engine, now_ms(r));
    pump_soon(r);
}

/* From the listener's thread. */
static void wake(void *arg)
{
    struct hk_relay *r = arg;
    hk_wake_send(r->wake);
}

/* A relay at work need not be told that there is more, and looks when it can take some. */
static void make_hint(struct hk_relay *r)
{
    bool hungry = hk_engine_hungry(r->engine);
    r->hint = (struct hk_store_hint){.woken = r->woken && hungry,
                                     .hungry = hungry && r->listening == HK_LISTENING_YES};
    r->woken &= !hungry;
}

/* It may fail: then the store polls, as it does anyway. */
static void start_listening(struct hk_relay *r)
{
    struct hk_err err = {.message = ""};
    if (!r->ops->listen)
        return;
    enum hk_code rc = hk_wake_new(r->options.loop, on_wake, r, &r->wake, &err);
    if (rc == HK_OK)
        rc = r->ops->listen(r->options.url, wake, r, &r->listener, &err);
    if (rc == HK_OK)
        return;
    r->listening = HK_LISTENING_NO;
    log_listening(r, HK_LISTENING_NOT_YET, err.message);
}

static void stop_listening(struct hk_relay *r)
{
    if (r->listener)
        r->ops->unlisten(r->listener);
    r->listener = NULL;
    hk_wake_free(r->wake);
    r->wake = NULL;
}

/* ---- the pump ---- */

/* A step more would only keep a relay from its end, or from its next configuration. */
static int64_t redrive_at_ms(const struct hk_relay *r)
{
    return r->draining || r->reload_to ? INT64_MAX : hk_redriver_at_ms(r->redriver);
}

/* With something to be settled it is worth waiting for the store: what gets through is not sent again. Without, only the
 * lane is left, and that ends by itself. */
static int64_t give_up_at(const struct hk_relay *r)
{
    return hk_engine_in_hand(r->engine) > 0 ? r->give_up_at_ms : r->idle_give_up_at_ms;
}

static void wait_until(struct hk_relay *r, int64_t wake_ms, int64_t now)
{
    if (r->soon)
        return;
    if (!r->job_busy && r->purge_at_ms < wake_ms)
        wake_ms = r->purge_at_ms;
    if (!r->job_busy && redrive_at_ms(r) < wake_ms)
        wake_ms = redrive_at_ms(r);
    if (r->draining && !r->job_busy && give_up_at(r) < wake_ms)
        wake_ms = give_up_at(r);
    if (wake_ms == INT64_MAX)
        hk_timer_stop(r->timer);
    else
        hk_timer_start(r->timer, wake_ms > now ? (uint64_t)(wake_ms - now) : 0);
}

/* False: nothing more to do in this round. */
static bool do_next(struct hk_relay *r, int64_t now)
{
    struct hk_action action;
    hk_engine_next(r->engine, now, &action);
    switch (action.kind) {
    case HK_ACT_WAIT:
        wait_until(r, action.wake_ms, now);
        return false;
    case HK_ACT_STOPPED:
        if (r->job_busy) /* our own job: its end pumps again */
            return false;
        engine_stopped(r);
        return false;
    case HK_ACT_SEND:
        add_send(r, &action);
        return true;
    case HK_ACT_ABORT:
        start_sends(r, now); /* they are among those to be ended */
        abort_all(r);
        return true;
    case HK_ACT_ACQUIRE:
    case HK_ACT_POLL:
    case HK_ACT_HELD_KEYS:
    case HK_ACT_SCAN:
    case HK_ACT_EXCHANGE:
    case HK_ACT_PAUSE:
    case HK_ACT_RELEASE:
        r->action = action;
        r->held = r->job_busy;
        if (action.kind == HK_ACT_EXCHANGE)
            hk_crash_point("exchange");
        if (action.kind == HK_ACT_POLL)
            make_hint(r);
        if (!r->held)
            submit(r, (int)action.kind);
        return true;
    }
    return false;
}

static enum hk_code stopped_without_store(struct hk_relay *r)
{
    struct hk_log_line line;
    uint32_t in_hand = hk_engine_in_hand(r->engine);
    hk_log_begin(&line, r->options.log, in_hand > 0 ? HK_LOG_ERROR : HK_LOG_WARN,
                 in_hand > 0
                     ? "stopped without the store: what was in hand goes out again later"
                     : "stopped without the store: nothing was in hand, the lane ends with its lease");
    if (in_hand > 0)
        hk_log_i64(&line, "in_hand", in_hand);
    hk_log_end(&line);
    return in_hand > 0 ? HK_TIMEOUT : HK_OK;
}

/* A drain must end, also when the store does not take what is to be settled: the lease will run out, and what is in
 * hand goes to retry, uncharged. Sinks are closed only when nothing is in flight. */
static bool give_up(struct hk_relay *r)
{
    if (r->draining && hk_engine_in_hand(r->engine) > 0)
        r->idle_give_up_at_ms = now_ms(r) + DRAIN_STORE_MS;
    bool late = r->draining && now_ms(r) >= give_up_at(r);
    if (late && r->last_error == HK_OK && !r->asked_more) { /* we were stopped: it was not asked at all */
        r->asked_more = true;
        r->give_up_at_ms = r->idle_give_up_at_ms = now_ms(r) + DRAIN_STORE_MS;
        late = false;
    }
    if (r->ended == HK_OK && (!late || r->job_busy || hk_engine_in_flight(r->engine)))
        return false;
    if (r->job_busy || hk_engine_in_flight(r->engine))
        return true; /* their end pumps again */
    if (r->ended == HK_OK)
        r->ended = stopped_without_store(r);
    finish(r);
    return true;
}

static void beat(struct hk_relay *r, int64_t now)
{
    if (now < r->beat_at_ms)
        return;
    r->beat_at_ms = now + BEAT_MS;
    TELL(r, beat, now, r->last_error == HK_OK || r->last_error == HK_BUSY);
}

/* One look at the clock serves a round: it is short, and each would cost a system call on some machines. */
static void pump(void *arg)
{
    struct hk_relay *r = arg;
    if (r->opening) {
        hk_loop_stop(r->options.loop); /* the pause between two tries is over */
        return;
    }
    r->soon = false;
    r->n_landed = 0;
    if (r->stopping || give_up(r))
        return;
    int64_t now = now_ms(r);
    beat(r, now);
    if (!r->job_busy && r->lane && now >= r->purge_at_ms)
        submit(r, PURGE_JOB);
    if (!r->job_busy && r->lane && now >= redrive_at_ms(r)) {
        hk_crash_point("redrive");
        r->redrive_ms = now;
        submit(r, REDRIVE_JOB);
    }
    r->last_send = &r->first_send;
    while (do_next(r, now))
        ;
    start_sends(r, now);
}

/* ---- from outside ---- */

static void free_relay(struct hk_relay *r)
{
    stop_listening(r);
    hk_worker_free(r->worker);
    if (r->store)
        r->ops->close(r->store);
    end_engine(r);
    hk_redriver_free(r->redriver);
    hk_attempt_log_free(r->attempts);
    hk_timer_free(r->timer);
    hk_events_close(r->events);
    hk_mem_free(r);
}

/* The store is opened on its thread, but the caller wants to know whether it can be: the loop runs nothing of ours until
 * then. */
static void opened(void *arg, bool ran)
{
    struct hk_relay *r = arg;
    (void)ran;
    r->job_busy = false;
    hk_loop_stop(r->options.loop);
}

static enum hk_code open_once(struct hk_relay *r, struct hk_err *err)
{
    r->job = OPEN_JOB;
    r->job_busy = true;
    enum hk_code rc = hk_worker_submit(r->worker, store_work, opened, r);
    if (rc != HK_OK)
        return rc;
    while (r->job_busy)
        hk_loop_run(r->options.loop);
    if (r->rc != HK_OK)
        *err = r->err;
    return r->rc;
}

static bool told_to_stop(const struct hk_relay *r)
{
    return r->options.stops && *r->options.stops > 0;
}

/* A server that restarts just now must not end a relay that begins; what it says of our settings does. */
static bool may_mend(const struct hk_relay *r, enum hk_code rc, const struct hk_err *err)
{
    return r->ops->shared && (rc == HK_UNAVAILABLE || rc == HK_BUSY || rc == HK_TIMEOUT) &&
           err->errclass == HK_ERRCLASS_TEMPORARY;
}

static enum hk_code open_store(struct hk_relay *r, struct hk_err *err)
{
    int64_t give_up_at_ms = now_ms(r) + OPEN_FOR_MS;
    enum hk_code rc = open_once(r, err);
    while (rc != HK_OK && !told_to_stop(r) && may_mend(r, rc, err) && now_ms(r) < give_up_at_ms) {
        log_store(r, rc, OPEN_JOB);
        r->opening = true;
        hk_timer_start(r->timer, OPEN_EVERY_MS);
        hk_loop_run(r->options.loop);
        r->opening = false;
        if (!told_to_stop(r))
            rc = open_once(r, err);
    }
    if (rc == HK_OK && r->last_error != HK_OK)
        log_store(r, rc, OPEN_JOB);
    return told_to_stop(r) ? HK_CANCELLED : rc;
}

static enum hk_code start(struct hk_relay *r, struct hk_err *err)
{
    const struct hk_redriver_options redrives = {.url = r->options.url,
                                                 .admin = hk_store_admin_by_url(r->options.url, err),
                                                 .letters = hk_store_letters_by_url(r->options.url, err),
                                                 .log = r->options.log};
    r->ops = hk_store_by_url(r->options.url, err);
    if (!r->ops || !redrives.admin || !redrives.letters)
        return HK_UNSUPPORTED;
    enum hk_code rc = hk_redriver_new(&redrives, &r->redriver, err);
    if (rc == HK_OK)
        rc = hk_attempt_log_new(r->options.log, &r->attempts, err);
    if (rc == HK_OK)
        rc = hk_events_open(r->options.event_log, r->options.name, &r->events, err);
    if (rc == HK_OK)
        rc = hk_timer_new(r->options.loop, pump, r, &r->timer);
    if (rc == HK_OK)
        rc = hk_worker_new(r->options.loop, 1, &r->worker, err);
    if (rc == HK_OK)
        rc = start_engine(r, r->options.config, err);
    if (rc == HK_OK)
        rc = open_store(r, err);
    return rc;
}

enum hk_code hk_relay_start(const struct hk_relay_options *options, struct hk_relay **out_relay,
                            struct hk_err *err)
{
    struct hk_relay *r = hk_mem_zalloc(1, sizeof *r);
    if (!r)
        return hk_err_set(err, HK_NOMEM, "out of memory for the relay");
    r->options = *options;
    enum hk_code rc = start(r, err);
    if (rc != HK_OK) {
        free_relay(r);
        return rc;
    }
    hk_attempt_log_guards(r->attempts, r->guards);
    start_listening(r);
    r->purge_at_ms = now_ms(r) + PURGE_EVERY_MS;
    pump_soon(r);
    *out_relay = r;
    return HK_OK;
}

void hk_relay_drain(struct hk_relay *r, uint64_t ms)
{
    r->draining = true;
    r->give_up_at_ms = now_ms(r) + (int64_t)ms + DRAIN_STORE_MS;
    r->idle_give_up_at_ms = now_ms(r) + DRAIN_STORE_MS;
    if (r->engine) /* none after a reload that could not go on */
        hk_engine_drain(r->engine, now_ms(r), now_ms(r) + (int64_t)ms);
    pump_soon(r);
}

enum hk_code hk_relay_reload(struct hk_relay *r, const struct hk_config *config, struct hk_err *err)
{
    struct hk_wiring trial;
    if (r->draining || r->reload_to)
        return hk_err_set(err, HK_BUSY, "a reload or a shutdown is under way already");
    enum hk_code rc = hk_wiring_open(config, r->options.loop, &trial, err);
    if (rc != HK_OK)
        return rc;
    hk_wiring_close(&trial);
    r->reload_to = config;
    hk_engine_drain(r->engine, now_ms(r), now_ms(r) + RELOAD_DRAIN_MS);
    pump_soon(r);
    return HK_OK;
}

void hk_relay_free(struct hk_relay *r)
{
    if (r)
        free_relay(r);
}

struct hk_engine_stats hk_relay_stats(const struct hk_relay *r)
{
    struct hk_engine_stats sum = r->past;
    if (r->engine)
        add_stats(&sum, hk_engine_stats(r->engine));
    return sum;
}

bool hk_relay_view_dest(const struct hk_relay *r, size_t dest, struct hk_dest_view *out)
{
    return r->engine && hk_engine_view_dest(r->engine, dest, now_ms(r), out);
}
