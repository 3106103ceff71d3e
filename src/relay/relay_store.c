/* SPDX-License-Identifier: Apache-2.0 */
/* The store's thread: it opens the store, uses it and closes it. One job is under way at a time. Its answer stays valid until the
 * next call, so the loop may read it.
 *
 * A job is a row of a table: what the store's thread does, and what the loop does with the answer. */
#include "exec/clock.h"
#include "observe/crash.h"
#include "observe/log.h"
#include "relay/clock.h"
#include "relay/relay_impl.h"
#include "relay/store_settings.h"

enum {
    PURGE_EVERY_MS = 10000,
    PURGE_AGAIN_MS = 100, /* when there is more */
    PURGE_ROWS = 500,
    OPEN_FOR_MS = 30000, /* a server that is away when we begin */
    OPEN_EVERY_MS = 500
};

static void begin_job(struct hk_relay *r, const struct hk_relay_job *job);

/* ---- what the engine asks for, on the store's thread ---- */

/* A relay that cannot seal what it writes writes nothing: it has no lane before it has the key. Once it was fetched it stays. */
static enum hk_code can_seal(struct hk_relay *r)
{
    struct hk_key key;
    struct hk_err why = {.message = ""};
    const struct hk_config *config = r->options.config;
    if (config->seal.mode != HK_SEAL_REST)
        return HK_OK;
    enum hk_code rc = hk_keyring_newest(config->keys, &key, &why);
    hk_key_wipe(&key);
    return rc == HK_OK ? HK_OK
                       : hk_err_set(&r->store.err, HK_UNAVAILABLE,
                                    "nothing is sent before payloads can be sealed (seal.mode: rest): %s",
                                    why.message);
}

static enum hk_code work_acquire(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    enum hk_code rc = can_seal(r);
    s->unsealable = rc != HK_OK;
    if (rc != HK_OK)
        return rc;
    return s->ops->acquire(s->handle, r->options.name, r->options.boot, r->options.config->relay.lease_ms,
                           &s->lane, &s->now_ms, &s->err);
}

static enum hk_code work_poll(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    s->ops->hint(s->handle, &s->hint);
    return s->ops->poll(s->handle, &s->poll, &s->err);
}

static enum hk_code work_held_keys(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    return s->ops->held_keys(s->handle, &s->keys, &s->n_keys, &s->err);
}

static enum hk_code work_scan(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    return s->ops->scan(s->handle, &s->action.scan, &s->heads, &s->err);
}

static enum hk_code work_exchange(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    return s->ops->exchange(s->handle, &s->action.exchange, &s->exchanged, &s->err);
}

static enum hk_code work_pause(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    return s->ops->pause(s->handle, s->action.dest_name, true, "hikyaku", s->action.reason, &s->err);
}

static enum hk_code work_release(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    return s->ops->release(s->handle, s->lane, &s->err);
}

/* ---- what the loop does with the answers ---- */

static void done_acquire(struct hk_relay *r)
{
    struct hk_log_line line;
    const struct hk_relay_store *s = &r->store;
    hk_engine_on_acquired(r->engine, hk_relay_now_ms(r), s->rc, s->lane, s->now_ms);
    hk_relay_sealed_acquired(r, s->unsealable ? s->err.message : NULL);
    if (s->rc != HK_OK)
        return;
    hk_crash_point("acquired");
    hk_attempt_log_forget(r->attempts);
    HK_RELAY_TELL(r, lane, HK_LANE_ACQUIRED, s->lane);
    hk_events_acquired(r->events, s->now_ms, s->lane, r->options.config->relay.lease_ms);
    hk_log_begin(&line, r->options.log, HK_LOG_INFO, "lane acquired");
    hk_log_i64(&line, "lane", s->lane);
    hk_log_cstr(&line, "relay", r->options.name);
    hk_log_end(&line);
}

static void done_poll(struct hk_relay *r)
{
    const struct hk_relay_store *s = &r->store;
    int64_t now_ms = hk_relay_now_ms(r);
    if (s->rc == HK_OK) {
        hk_redriver_polled(r->redriver, s->poll, now_ms);
        hk_kept_told(r->kept, s->poll->definitions);
        hk_clocks_polled(&r->clocks, r->options.log, s->poll);
        HK_RELAY_TELL(r, polled, s->poll);
    }
    hk_engine_on_poll(r->engine, now_ms, s->rc, s->poll);
}

static void done_held_keys(struct hk_relay *r)
{
    hk_engine_on_held_keys(r->engine, hk_relay_now_ms(r), r->store.rc, r->store.keys, r->store.n_keys);
}

static void done_scan(struct hk_relay *r)
{
    hk_engine_on_scan(r->engine, hk_relay_now_ms(r), r->store.rc, &r->store.action.purpose, r->store.heads);
}

static void done_exchange(struct hk_relay *r)
{
    const struct hk_relay_store *s = &r->store;
    const struct hk_exchange *asked = &s->action.exchange;
    int64_t now_ms = hk_relay_now_ms(r);
    if (s->rc == HK_OK) {
        hk_attempt_log_exchanged(r->attempts, asked, s->exchanged);
        hk_events_exchanged(r->events, asked, s->exchanged);
        HK_RELAY_TELL(r, exchanged, asked, s->exchanged);
        hk_redriver_told(r->redriver, asked->circuits, asked->n_circuits, s->exchanged->now_ms, now_ms);
    }
    hk_crash_point("exchanged");
    hk_engine_on_exchange(r->engine, now_ms, s->rc, s->exchanged);
}

static void done_pause(struct hk_relay *r)
{
    const struct hk_relay_store *s = &r->store;
    if (s->rc == HK_OK)
        hk_attempt_log_paused(r->attempts, s->action.dest_name, s->action.reason);
    hk_engine_on_done(r->engine, hk_relay_now_ms(r), s->rc);
}

static void done_release(struct hk_relay *r)
{
    const struct hk_relay_store *s = &r->store;
    int64_t now_ms = hk_relay_now_ms(r);
    hk_crash_point("released");
    if (s->rc == HK_OK) {
        hk_events_released(r->events, hk_engine_store_now_ms(r->engine, now_ms), s->lane);
        HK_RELAY_TELL(r, lane, HK_LANE_RELEASED, s->lane);
    }
    hk_engine_on_done(r->engine, now_ms, s->rc);
}

static const struct hk_relay_job engine_jobs[] = {
    [HK_ACT_ACQUIRE] = {.work = work_acquire, .done = done_acquire, .of_engine = true, .may_take_over = true},
    [HK_ACT_POLL] = {.work = work_poll, .done = done_poll, .of_engine = true, .may_take_over = true},
    [HK_ACT_HELD_KEYS] = {.work = work_held_keys, .done = done_held_keys, .of_engine = true},
    [HK_ACT_SCAN] = {.work = work_scan, .done = done_scan, .of_engine = true},
    [HK_ACT_EXCHANGE] = {.work = work_exchange, .done = done_exchange, .of_engine = true},
    [HK_ACT_PAUSE] = {.work = work_pause, .done = done_pause, .of_engine = true},
    [HK_ACT_RELEASE] = {.work = work_release, .done = done_release, .of_engine = true},
};

bool hk_relay_store_does(enum hk_action_kind kind)
{
    return (size_t)kind < sizeof engine_jobs / sizeof engine_jobs[0] && engine_jobs[kind].work;
}

/* ---- our own jobs ---- */

static enum hk_code work_open(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    struct hk_store_options o = hk_relay_store_options(r->options.config);
    o.create = r->options.create;
    o.turns = r->options.turns;
    enum hk_code rc = s->ops->open(r->options.url, &o, &s->handle, &s->err);
    return rc != HK_OK || s->ops->guards(s->handle, s->guards, NULL) == HK_OK ? rc : HK_OK;
}

static enum hk_code work_close(struct hk_relay *r)
{
    hk_redriver_close(r->redriver);
    r->store.ops->close(r->store.handle);
    r->store.handle = NULL;
    return HK_OK;
}

static void done_close(struct hk_relay *r)
{
    r->options.stopped(r->options.arg, r->ended);
}

/* The old one goes only when the new one is there. No lane is held meanwhile. */
static enum hk_code work_reopen(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    struct hk_store *fresh = NULL;
    struct hk_store_options o = hk_relay_store_options(r->reload.to);
    o.turns = r->options.turns;
    enum hk_code rc = s->ops->open(r->options.url, &o, &fresh, &s->err);
    if (rc != HK_OK)
        return rc;
    s->ops->close(s->handle);
    s->handle = fresh;
    return HK_OK;
}

static void done_reopen(struct hk_relay *r)
{
    r->reload.reopened = true;
    r->reload.rc = r->store.rc;
    r->reload.err = r->store.err;
    hk_relay_pump_soon(r);
}

/* Now the engine's, if it asked for something meanwhile. */
static void go_on(struct hk_relay *r)
{
    if (r->store.held) {
        r->store.held = false;
        begin_job(r, &engine_jobs[r->store.action.kind]);
    }
    hk_relay_pump_soon(r);
}

static enum hk_code work_purge(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    struct hk_retention retention = hk_relay_retention(r->options.config);
    s->purged_open = 0;
    return s->ops->purge(s->handle, &retention, PURGE_ROWS, &s->purged, &s->purged_open, &s->err);
}

static void done_purge(struct hk_relay *r)
{
    hk_attempt_log_purged(r->attempts, r->store.purged_open);
    bool more = r->store.rc == HK_OK && r->store.purged == PURGE_ROWS;
    r->purge_at_ms = hk_relay_now_ms(r) + (more ? PURGE_AGAIN_MS : PURGE_EVERY_MS);
    go_on(r);
}

static enum hk_code work_redrive(struct hk_relay *r)
{
    hk_redriver_work(r->redriver, r->redrive_ms);
    return HK_OK;
}

static void done_redrive(struct hk_relay *r)
{
    int64_t now_ms = hk_relay_now_ms(r);
    hk_crash_point("redriven");
    hk_redriver_done(r->redriver, hk_engine_store_now_ms(r->engine, now_ms), now_ms);
    go_on(r);
}

static enum hk_code work_definitions(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    return s->ops->definitions(s->handle, hk_kept_known(r->kept), &s->definitions, &s->err);
}

static void done_definitions(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    if (s->rc == HK_OK)
        hk_kept_take(r->kept, s->definitions, hk_relay_now_ms(r));
    else
        hk_kept_failed(r->kept, hk_relay_now_ms(r));
    go_on(r);
}

static const struct hk_relay_job open_job = {.work = work_open}; /* see `opened` */
static const struct hk_relay_job close_job = {.work = work_close, .done = done_close};
static const struct hk_relay_job reopen_job = {.work = work_reopen, .done = done_reopen};
static const struct hk_relay_job purge_job = {.work = work_purge, .done = done_purge};
static const struct hk_relay_job redrive_job = {.work = work_redrive, .done = done_redrive};
static const struct hk_relay_job definitions_job = {.work = work_definitions, .done = done_definitions};

/* ---- log ---- */

/* Damaged, or migrated under us: nothing will mend by itself. */
static bool is_final(enum hk_code rc)
{
    return rc == HK_IO || rc == HK_UNSUPPORTED;
}

/* A second relay on SQLite waits for the first one's lane: nothing is wrong with the store then. */
static const char *store_words(enum hk_code rc, const struct hk_relay_job *job)
{
    if (rc == HK_OK)
        return "store answers again";
    if (is_final(rc))
        return "store cannot be used, stopping";
    if (rc == HK_CONFLICT)
        return "lane lost, acquiring a new one";
    if (rc == HK_BUSY && job == &engine_jobs[HK_ACT_ACQUIRE])
        return "no lane yet, waiting";
    return rc == HK_BUSY ? "store is busy, trying again" : "store does not answer, trying again";
}

/* Once when it begins, and once when it ends: when that call goes well, not another that never failed. */
static void log_store(struct hk_relay *r, enum hk_code rc, const struct hk_relay_job *job)
{
    struct hk_log_line line;
    struct hk_relay_store *s = &r->store;
    if (rc == s->last_error || (rc == HK_OK && s->failed_job != job && s->failed_job != &open_job))
        return;
    s->failed_job = job;
    bool waits = rc == HK_BUSY && job == &engine_jobs[HK_ACT_ACQUIRE];
    if (rc == HK_OK && !s->away) { /* it answered all the time; "lane acquired" says the rest */
        s->last_error = rc;
        return;
    }
    s->away = rc != HK_OK && (s->away || !waits);
    const char *what = store_words(rc, job);
    bool mild = rc == HK_OK || rc == HK_BUSY;
    hk_log_begin(&line, r->options.log, is_final(rc) ? HK_LOG_ERROR : mild ? HK_LOG_INFO : HK_LOG_WARN, what);
    if (rc != HK_OK) {
        hk_log_cstr(&line, "code", hk_code_name(rc));
        hk_log_cstr(&line, "error", s->err.message);
    }
    s->last_error = rc;
    hk_log_end(&line);
}

/* ---- a job's way ---- */

static void store_work(void *arg)
{
    struct hk_relay *r = arg;
    struct hk_relay_store *s = &r->store;
    int64_t start_us = hk_clock_us();
    s->rc = s->job->work(r);
    r->clocks.asked_ms = hk_clock_us() / 1000;
    if (s->job->may_take_over && s->ops->taken_over)
        s->ops->taken_over(s->handle, &s->takings);
    s->took_us = (uint64_t)(hk_clock_us() - start_us);
}

static void report_takings(struct hk_relay *r)
{
    if (!r->store.takings.n)
        return;
    hk_attempt_log_taken(r->attempts, &r->store.takings);
    HK_RELAY_TELL(r, taken_over, &r->store.takings);
    r->store.takings.n = 0;
}

/* Those who look on hear of it before the engine does. */
static void engine_job_done(struct hk_relay *r)
{
    struct hk_relay_store *s = &r->store;
    log_store(r, s->rc, s->job);
    HK_RELAY_TELL(r, store_called, s->action.kind, s->rc, s->took_us);
    if (s->rc == HK_CONFLICT)
        HK_RELAY_TELL(r, lane, HK_LANE_LOST, s->lane);
    if (is_final(s->rc)) {
        r->ended = s->rc;
        hk_relay_sends_abort(r);
    } else {
        report_takings(r);
        s->job->done(r);
    }
    hk_relay_pump_soon(r);
}

static void store_done(void *arg, bool ran)
{
    struct hk_relay *r = arg;
    r->store.busy = false;
    if (!ran)
        return;
    if (r->store.job->of_engine)
        engine_job_done(r);
    else
        r->store.job->done(r);
}

static void begin_job(struct hk_relay *r, const struct hk_relay_job *job)
{
    r->store.job = job;
    r->store.busy = true;
    r->store.err.message[0] = '\0';
    (void)!hk_worker_submit(r->store.worker, store_work, store_done, r); /* one at a time always fits */
}

void hk_relay_store_ask(struct hk_relay *r, const struct hk_action *action)
{
    r->store.action = *action;
    r->store.held = r->store.busy;
    if (action->kind == HK_ACT_EXCHANGE)
        hk_crash_point("exchange");
    if (action->kind == HK_ACT_POLL) {
        r->store.hint = hk_relay_wake_hint(r);
        r->store.hint.all = action->poll_all;
    }
    if (!r->store.held)
        begin_job(r, &engine_jobs[action->kind]);
}

void hk_relay_store_close(struct hk_relay *r)
{
    begin_job(r, &close_job);
}

void hk_relay_store_reopen(struct hk_relay *r)
{
    begin_job(r, &reopen_job);
}

void hk_relay_store_purge(struct hk_relay *r)
{
    begin_job(r, &purge_job);
}

void hk_relay_store_redrive(struct hk_relay *r, int64_t now_ms)
{
    hk_crash_point("redrive");
    r->redrive_ms = now_ms;
    begin_job(r, &redrive_job);
}

void hk_relay_store_definitions(struct hk_relay *r)
{
    begin_job(r, &definitions_job);
}

/* ---- opening ---- */

/* The store is opened on its thread, but the caller wants to know whether it can be: the loop runs nothing of ours until
 * then. */
static void opened(void *arg, bool ran)
{
    struct hk_relay *r = arg;
    (void)ran;
    r->store.busy = false;
    hk_loop_stop(r->options.loop);
}

static enum hk_code open_once(struct hk_relay *r, struct hk_err *err)
{
    r->store.job = &open_job;
    r->store.busy = true;
    enum hk_code rc = hk_worker_submit(r->store.worker, store_work, opened, r);
    if (rc != HK_OK)
        return rc;
    while (r->store.busy)
        hk_loop_run(r->options.loop);
    if (r->store.rc != HK_OK)
        *err = r->store.err;
    return r->store.rc;
}

static bool told_to_stop(const struct hk_relay *r)
{
    return r->options.stops && *r->options.stops > 0;
}

/* A server that restarts just now does not end a relay that begins. A server that refuses our settings does. */
static bool may_mend(const struct hk_relay *r, enum hk_code rc, const struct hk_err *err)
{
    return r->store.ops->shared && (rc == HK_UNAVAILABLE || rc == HK_BUSY || rc == HK_TIMEOUT) &&
           err->errclass == HK_ERRCLASS_TEMPORARY;
}

enum hk_code hk_relay_store_open(struct hk_relay *r, struct hk_err *err)
{
    int64_t give_up_at_ms = hk_relay_now_ms(r) + OPEN_FOR_MS;
    enum hk_code rc = open_once(r, err);
    while (rc != HK_OK && !told_to_stop(r) && may_mend(r, rc, err) && hk_relay_now_ms(r) < give_up_at_ms) {
        log_store(r, rc, &open_job);
        r->opening = true;
        hk_timer_start(r->timer, OPEN_EVERY_MS);
        hk_loop_run(r->options.loop);
        r->opening = false;
        if (!told_to_stop(r))
            rc = open_once(r, err);
    }
    if (rc == HK_OK && r->store.last_error != HK_OK)
        log_store(r, rc, &open_job);
    r->purge_at_ms = hk_relay_now_ms(r) + PURGE_EVERY_MS;
    return told_to_stop(r) ? HK_CANCELLED : rc;
}
