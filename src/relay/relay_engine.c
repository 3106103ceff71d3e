/* SPDX-License-Identifier: Apache-2.0 */
/* The engine and the sinks of a configuration. They come and go together: a reload drains the engine, opens the store anew where
 * that differs, and begins with the next configuration. */
#include "base/mem.h"
#include "exec/clock.h"
#include "observe/log.h"
#include "relay/relay_impl.h"
#include "relay/store_settings.h"

enum {
    RELOAD_DRAIN_MS = 5000
};

static void on_room(void *arg)
{
    struct hk_relay_room *room = arg;
    hk_relay_has_room(room->relay, room->place);
}

static void hear_of_room(struct hk_relay *r)
{
    for (size_t i = 0; i < r->wiring.n_dests; i++) {
        r->rooms[i] = (struct hk_relay_room){.relay = r, .place = i};
        r->wiring.sinks[i]->room = on_room;
        r->wiring.sinks[i]->room_arg = &r->rooms[i];
    }
}

enum hk_code hk_relay_engine_start(struct hk_relay *r, const struct hk_config *config, struct hk_err *err)
{
    struct hk_wiring wiring;
    enum hk_code rc = hk_wiring_open(config, r->options.loop, &wiring, err);
    if (rc != HK_OK)
        return rc;
    struct hk_engine_options o = hk_wiring_engine(&wiring, hk_clock_seed());
    o.shared = r->clocks.shared = r->store.ops->shared;
    struct hk_relay_delivery *deliveries =
        hk_mem_zalloc((size_t)o.concurrency * 2 + o.batch, sizeof *deliveries); /* as many as it has slots */
    struct hk_relay_room *rooms = hk_mem_zalloc(wiring.n_dests + 1, sizeof *rooms);
    struct hk_engine *engine = NULL;
    rc = deliveries && rooms ? hk_engine_new(&o, hk_relay_now_ms(r), &engine, err)
                             : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_redriver_configure(r->redriver, config, err);
    if (rc == HK_OK)
        rc = hk_attempt_log_configure(r->attempts, config, err);
    if (rc != HK_OK) {
        hk_engine_free(engine);
        hk_mem_free(deliveries);
        hk_mem_free(rooms);
        hk_wiring_close(&wiring);
        return rc;
    }
    r->wiring = wiring;
    r->engine = engine;
    r->sends.deliveries = deliveries;
    r->rooms = rooms;
    hear_of_room(r);
    r->options.config = config;
    hk_redriver_set_keys(r->redriver, config->keys);
    hk_kept_begin(r->kept, engine, config);
    return HK_OK;
}

static void add_stats(struct hk_engine_stats *sum, const struct hk_engine_stats *add)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)add;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

void hk_relay_engine_end(struct hk_relay *r)
{
    if (r->engine)
        add_stats(&r->past, hk_engine_stats(r->engine));
    if (r->kept)
        hk_kept_end(r->kept);
    hk_engine_free(r->engine);
    hk_wiring_close(&r->wiring);
    hk_mem_free(r->sends.deliveries);
    hk_mem_free(r->rooms);
    r->rooms = NULL;
    r->engine = NULL;
    r->sends.deliveries = NULL;
}

/* The old engine has drained: the next one takes over. If that fails (the store could not be opened again, or memory is short:
 * hk_relay_reload checked everything else) the relay continues with the old configuration. */
static void switch_config(struct hk_relay *r)
{
    const struct hk_config *before = r->options.config;
    struct hk_err err = r->reload.err;
    enum hk_code rc = r->reload.rc;
    hk_relay_engine_end(r);
    if (rc == HK_OK)
        rc = hk_relay_engine_start(r, r->reload.to, &err);
    r->reload.to = NULL;
    r->reload.reopened = false;
    r->reload.rc = HK_OK;
    struct hk_err worse = {.message = ""};
    r->ended = rc == HK_OK ? HK_OK : hk_relay_engine_start(r, before, &worse);
    if (r->ended == HK_OK) {
        hk_relay_pump_soon(r);
        r->options.reloaded(r->options.arg, rc, &err);
        return;
    }
    struct hk_log_line line;
    hk_log_begin(&line, r->options.log, HK_LOG_ERROR, "cannot continue after the reload");
    hk_log_cstr(&line, "error", worse.message);
    hk_log_end(&line);
    hk_relay_finish(r);
}

void hk_relay_engine_stopped(struct hk_relay *r)
{
    if (!r->reload.to || r->drain.on)
        hk_relay_finish(r);
    else if (!r->reload.reopened && !hk_relay_same_store_options(r->options.config, r->reload.to))
        hk_relay_store_reopen(r);
    else
        switch_config(r);
}

enum hk_code hk_relay_reload(struct hk_relay *r, const struct hk_config *config, struct hk_err *err)
{
    struct hk_wiring trial;
    if (r->drain.on || r->reload.to)
        return hk_err_set(err, HK_BUSY, "a reload or a shutdown is under way already");
    enum hk_code rc = hk_wiring_open(config, r->options.loop, &trial, err);
    if (rc != HK_OK)
        return rc;
    hk_wiring_close(&trial);
    r->reload.to = config;
    hk_engine_drain(r->engine, hk_relay_now_ms(r), hk_relay_now_ms(r) + RELOAD_DRAIN_MS);
    hk_relay_pump_soon(r);
    return HK_OK;
}

struct hk_engine_stats hk_relay_stats(const struct hk_relay *r)
{
    struct hk_engine_stats sum = r->past;
    if (r->engine)
        add_stats(&sum, hk_engine_stats(r->engine));
    return sum;
}
