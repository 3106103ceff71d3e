/* SPDX-License-Identifier: Apache-2.0 */
/* The shell around the engine: asks the engine for the next action and carries it out.
 *
 *   loop thread:   pump -> hk_engine_next -> sink->send ...... done -> hk_engine_on_outcome -> pump
 *                      `-> one store job -> store thread -> done on the loop -> hk_engine_on_… -> pump
 *
 * Sends are relay_send.c, the store's jobs relay_store.c; what comes and goes with a configuration is relay_engine.c. */
#include <assert.h>

#include "base/mem.h"
#include "observe/log.h"
#include "relay/relay_impl.h"

enum {
    BEAT_MS = 1000,
    DRAIN_STORE_MS = 3000 /* after a drain's end: for the store to take what is to be settled */
};

int64_t hk_relay_now_ms(const struct hk_relay *r)
{
    return (int64_t)hk_loop_now_ms(r->options.loop);
}

void hk_relay_pump_soon(struct hk_relay *r)
{
    if (!r->soon)
        hk_timer_start(r->timer, 0);
    r->soon = true;
}

void hk_relay_finish(struct hk_relay *r)
{
    r->stopping = true;
    hk_relay_store_close(r);
}

/* ---- the pump ---- */

/* A step more would only keep a relay from its end, or from its next configuration. */
static int64_t redrive_at_ms(const struct hk_relay *r)
{
    return r->drain.on || r->reload.to ? INT64_MAX : hk_redriver_at_ms(r->redriver);
}

/* The same of destinations. */
static int64_t definitions_at_ms(const struct hk_relay *r)
{
    return r->drain.on || r->reload.to ? INT64_MAX : hk_kept_read_at_ms(r->kept);
}

/* With something to be settled it is worth waiting for the store: what gets through is not sent again. Without, only the
 * lane is left, and that ends by itself. */
static int64_t give_up_at(const struct hk_relay *r)
{
    return hk_engine_in_hand(r->engine) > 0 ? r->drain.give_up_at_ms : r->drain.idle_give_up_at_ms;
}

static void wait_until(struct hk_relay *r, int64_t wake_ms, int64_t now)
{
    if (r->soon)
        return;
    bool ours =
        !r->store.busy && r->store.lane; /* as hk_relay_pump asks: who waits for a lane does neither */
    if (ours && r->purge_at_ms < wake_ms)
        wake_ms = r->purge_at_ms;
    if (ours && redrive_at_ms(r) < wake_ms)
        wake_ms = redrive_at_ms(r);
    if (ours && definitions_at_ms(r) < wake_ms)
        wake_ms = definitions_at_ms(r);
    if (r->drain.on && !r->store.busy && give_up_at(r) < wake_ms)
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
    if (hk_relay_store_does(action.kind)) {
        hk_relay_store_ask(r, &action);
        return true;
    }
    if (action.kind == HK_ACT_SEND) {
        hk_relay_sends_add(r, &action);
        return true;
    }
    if (action.kind == HK_ACT_ABORT) {
        hk_relay_sends_start(r, now); /* they are among those to be ended */
        hk_relay_sends_abort(r);
        return true;
    }
    assert(action.kind == HK_ACT_WAIT || action.kind == HK_ACT_STOPPED);
    if (action.kind == HK_ACT_WAIT)
        wait_until(r, action.wake_ms, now);
    else if (!r->store.busy) /* else: our own job, and its end pumps again */
        hk_relay_engine_stopped(r);
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
    if (r->drain.on && hk_engine_in_hand(r->engine) > 0)
        r->drain.idle_give_up_at_ms = hk_relay_now_ms(r) + DRAIN_STORE_MS;
    bool late = r->drain.on && hk_relay_now_ms(r) >= give_up_at(r);
    if (late && r->store.last_error == HK_OK &&
        !r->drain.asked_more) { /* we were stopped: it was not asked at all */
        r->drain.asked_more = true;
        r->drain.give_up_at_ms = r->drain.idle_give_up_at_ms = hk_relay_now_ms(r) + DRAIN_STORE_MS;
        late = false;
    }
    if (r->ended == HK_OK && (!late || r->store.busy || hk_engine_in_flight(r->engine)))
        return false;
    if (r->store.busy || hk_engine_in_flight(r->engine))
        return true; /* their end pumps again */
    if (r->ended == HK_OK)
        r->ended = stopped_without_store(r);
    hk_relay_finish(r);
    return true;
}

static void beat(struct hk_relay *r, int64_t now)
{
    if (now < r->beat_at_ms)
        return;
    r->beat_at_ms = now + BEAT_MS;
    hk_clocks_beat(&r->clocks, r->options.log);
    const char *keyless = hk_relay_sealed_keyless(r, now);
    bool store_ok = r->store.last_error == HK_OK || r->store.last_error == HK_BUSY || r->sealed.no_lane;
    HK_RELAY_TELL(r, beat, now, store_ok, keyless);
}

/* One look at the clock serves a round: it is short, and each would cost a system call on some machines. */
void hk_relay_pump(struct hk_relay *r)
{
    r->soon = false;
    r->sends.n_landed = 0;
    if (r->stopping || give_up(r))
        return;
    int64_t now = hk_relay_now_ms(r);
    beat(r, now);
    if (!r->store.busy && r->store.lane && now >= definitions_at_ms(r))
        hk_relay_store_definitions(r);
    if (!r->drain.on && !r->reload.to && hk_kept_step(r->kept, now))
        hk_relay_pump_soon(r);
    else if (!r->store.busy && r->engine)
        hk_redriver_kept(r->redriver, r->kept);
    if (!r->store.busy && r->store.lane && now >= r->purge_at_ms)
        hk_relay_store_purge(r);
    if (!r->store.busy && r->store.lane && now >= redrive_at_ms(r))
        hk_relay_store_redrive(r, now);
    r->sends.last = &r->sends.first;
    while (do_next(r, now))
        ;
    hk_relay_sends_start(r, now);
}

static void on_timer(void *arg)
{
    struct hk_relay *r = arg;
    if (r->opening)
        hk_loop_stop(r->options.loop); /* the pause between two tries is over */
    else
        hk_relay_pump(r);
}

/* ---- from outside ---- */

static void free_relay(struct hk_relay *r)
{
    hk_relay_wake_stop(r);
    hk_worker_free(r->store.worker);
    if (r->store.handle)
        r->store.ops->close(r->store.handle);
    hk_relay_engine_end(r);
    hk_kept_free(r->kept);
    hk_redriver_free(r->redriver);
    hk_attempt_log_free(r->attempts);
    hk_timer_free(r->timer);
    hk_events_close(r->events);
    hk_mem_free(r);
}

static void kept_has_room(void *arg, size_t place)
{
    hk_relay_has_room(arg, place);
}

static enum hk_code start(struct hk_relay *r, struct hk_err *err)
{
    const struct hk_redriver_options redrives = {.url = r->options.url,
                                                 .admin = hk_store_admin_by_url(r->options.url, err),
                                                 .letters = hk_store_letters_by_url(r->options.url, err),
                                                 .log = r->options.log};
    r->store.ops = hk_store_by_url(r->options.url, err);
    if (!r->store.ops || !redrives.admin || !redrives.letters)
        return HK_UNSUPPORTED;
    enum hk_code rc = hk_redriver_new(&redrives, &r->redriver, err);
    if (rc == HK_OK)
        rc = hk_attempt_log_new(r->options.log, &r->attempts, err);
    if (rc == HK_OK)
        rc = hk_kept_new(
            &(struct hk_kept_options){
                .loop = r->options.loop, .log = r->options.log, .has_room = kept_has_room, .arg = r},
            &r->kept, err);
    if (rc == HK_OK)
        rc = hk_events_open(r->options.event_log, r->options.name, &r->events, err);
    if (rc == HK_OK)
        rc = hk_timer_new(r->options.loop, on_timer, r, &r->timer);
    if (rc == HK_OK)
        rc = hk_worker_new(r->options.loop, 1, &r->store.worker, err);
    if (rc == HK_OK)
        rc = hk_relay_engine_start(r, r->options.config, err);
    if (rc == HK_OK)
        rc = hk_relay_store_open(r, err);
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
    hk_attempt_log_guards(r->attempts, r->store.guards);
    hk_relay_wake_start(r);
    hk_relay_pump_soon(r);
    *out_relay = r;
    return HK_OK;
}

void hk_relay_drain(struct hk_relay *r, uint64_t ms)
{
    r->drain.on = true;
    r->drain.give_up_at_ms = hk_relay_now_ms(r) + (int64_t)ms + DRAIN_STORE_MS;
    r->drain.idle_give_up_at_ms = hk_relay_now_ms(r) + DRAIN_STORE_MS;
    if (r->engine) /* none after a reload that failed */
        hk_engine_drain(r->engine, hk_relay_now_ms(r), hk_relay_now_ms(r) + (int64_t)ms);
    hk_relay_pump_soon(r);
}

void hk_relay_free(struct hk_relay *r)
{
    if (r)
        free_relay(r);
}

bool hk_relay_view_dest(const struct hk_relay *r, size_t dest, struct hk_dest_view *out)
{
    return r->engine && hk_engine_view_dest(r->engine, dest, hk_relay_now_ms(r), out);
}

const struct hk_kept *hk_relay_kept(const struct hk_relay *r)
{
    return r->kept;
}
