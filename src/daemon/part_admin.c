/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics and the admin server. The relay's side counts (meter_watch.c), a thread asks the store what only it knows
 * (queue_gauges.c), and the server's thread shows it all; nobody waits for anybody. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <hikyaku/hikyaku.h>

#include "admin/server.h"
#include "base/mem.h"
#include "daemon/alerts.h"
#include "daemon/api_service.h"
#include "daemon/doors.h"
#include "daemon/meter_watch.h"
#include "daemon/meters.h"
#include "daemon/part.h"
#include "daemon/queue_gauges.h"
#include "exec/clock.h"
#include "store/store.h"

enum {
    N_SERVERS = 2,
    TICK_MS = 500,
    STARTING_MS = 20 /* until there is a relay: who waits for it to be ready is told soon */
};

struct part {
    const struct hk_part_env *env;
    struct hk_timer *tick;
    struct hk_health health;
    struct hk_metrics *metrics;
    struct hk_meter_watch *meter;
    struct hk_queue_gauges *gauges;
    struct hk_doors doors;
    /* One for the door with TLS, and one for all others: handshakes are work, and a flood of them delays no probe at another door. */
    struct hk_admin_server *servers[N_SERVERS];
    struct hk_admin_room *room;
    struct hk_api_service *api; /* NULL: only probes and metrics are wanted */
    struct hk_admin_service service;
    int64_t started_ms;
};

static int64_t now_ms(void)
{
    return hk_clock_us() / 1000;
}

/* ---- on the server's thread, or on one that answers the API ---- */

static void show_alerts(struct hk_metrics *m, struct hk_alerts_stats *a)
{
    hk_metrics_set(m, HK_METER_ALERTS_FIRING, 0, 0, (int64_t)atomic_load(&a->firing));
    hk_metrics_set(m, HK_METER_ALERT_LOOKS, 0, 0, (int64_t)atomic_load(&a->evaluated));
    hk_metrics_set(m, HK_METER_ALERT_LOOKS, 1, 0, (int64_t)atomic_load(&a->errors));
    hk_metrics_set(m, HK_METER_NOTICES, HK_METER_NOTICE_SENT, 0, (int64_t)atomic_load(&a->sent));
    hk_metrics_set(m, HK_METER_NOTICES, HK_METER_NOTICE_FAILED, 0, (int64_t)atomic_load(&a->failed));
    hk_metrics_set(m, HK_METER_NOTICES, HK_METER_NOTICE_GIVEN_UP, 0, (int64_t)atomic_load(&a->dropped));
}

static void refresh(void *arg)
{
    struct part *p = arg;
    struct hk_metrics *m = p->metrics;
    int64_t now = now_ms(), answered = p->health.answered_ms;
    hk_metrics_set(m, HK_METER_UPTIME, 0, 0, now - p->started_ms);
    hk_metrics_set(m, HK_METER_LOOP_AGE, 0, 0, now - p->health.turned_ms);
    hk_metrics_set(m, HK_METER_STORE_AGE, 0, 0, answered ? now - answered : HK_METRIC_UNKNOWN);
    hk_metrics_set(m, HK_METER_STORE_UP, 0, 0,
                   p->health.calls ? hk_health_store_ok((enum hk_code)p->health.store) : HK_METRIC_UNKNOWN);
    hk_metrics_set(m, HK_METER_READY, 0, 0, hk_health_ready(&p->health, now) == NULL);
    hk_metrics_set(m, HK_METER_DRAINING, 0, 0, p->health.draining);
    if (p->env->alerts)
        show_alerts(m, p->env->alerts);
    hk_queue_gauges_want(p->gauges);
}

/* ---- on the loop's thread ---- */

static void tick(void *arg)
{
    struct part *p = arg;
    hk_health_turned(&p->health, now_ms(), p->env->relay != NULL);
    hk_meter_watch_tick(p->meter);
    hk_timer_start(p->tick, p->env->relay ? TICK_MS : STARTING_MS);
}

/* ---- start ---- */

static enum hk_code set_constants(struct part *p, struct hk_err *err)
{
    const struct hk_store_ops *store = hk_store_by_url(p->env->url, err);
    if (!store)
        return HK_UNSUPPORTED;
    hk_metrics_set(p->metrics, HK_METER_START_TIME, 0, 0, hk_clock_wall_ms());
    hk_metrics_set(p->metrics, HK_METER_BUILD, 0, 0, 1);
    hk_metrics_set(p->metrics, HK_METER_RELAY, 0, 0, 1);
    enum hk_code rc = hk_metrics_inform(p->metrics, HK_METER_BUILD, "version", hk_version());
    if (rc == HK_OK)
        rc = hk_metrics_inform(p->metrics, HK_METER_RELAY, "relay", p->env->name);
    if (rc == HK_OK)
        rc = hk_metrics_inform(p->metrics, HK_METER_RELAY, "store", store->name);
    return rc;
}

static void free_part(struct part *p)
{
    hk_api_service_stop(p->api);
    for (size_t i = 0; i < N_SERVERS; i++)
        hk_admin_server_end(p->servers[i]);
    for (size_t i = 0; i < N_SERVERS; i++)
        hk_admin_server_stop(p->servers[i]);
    hk_api_service_free(p->api);
    hk_admin_room_unref(p->room);
    hk_doors_close(&p->doors);
    hk_queue_gauges_free(p->gauges);
    hk_timer_free(p->tick);
    hk_meter_watch_free(p->meter);
    hk_metrics_free(p->metrics);
    hk_mem_free(p);
}

static enum hk_code start_metrics(struct part *p, struct hk_err *err)
{
    enum hk_code rc = hk_metrics_new(hk_meters, HK_NMETERS, &p->metrics, err);
    if (rc == HK_OK)
        hk_metrics_on_look(p->metrics, refresh, p);
    if (rc == HK_OK)
        rc = set_constants(p, err);
    if (rc == HK_OK)
        rc = hk_meter_watch_new(p->env, p->metrics, &p->health, &p->meter, err);
    if (rc == HK_OK)
        rc = hk_timer_new(p->env->loop, tick, p, &p->tick);
    if (rc == HK_OK)
        rc = hk_queue_gauges_new(p->env->url, p->metrics, &p->gauges, err);
    return rc;
}

static struct hk_admin_site site_of(struct part *p)
{
    return (struct hk_admin_site){.health = &p->health,
                                  .metrics = p->metrics,
                                  .refresh = refresh,
                                  .arg = p,
                                  .now_ms = now_ms,
                                  .ui_dir = p->env->ui_dir};
}

/* Wherever somebody may be let in: everywhere but at the door for probes. */
static enum hk_code start_api(struct part *p, struct hk_err *err)
{
    const struct hk_admin_site site = site_of(p);
    for (size_t i = 0; i < p->doors.n; i++) {
        if (p->doors.listeners[i].gate.way == HK_GATE_OPEN)
            continue;
        enum hk_code rc = p->api ? HK_OK : hk_api_service_new(p->env, &site, &p->api, err);
        if (rc != HK_OK)
            return rc;
        p->service = hk_api_service_ops(p->api);
        p->doors.listeners[i].service = &p->service;
    }
    return HK_OK;
}

/* The sockets belong to the servers then, also when it cannot be. */
static enum hk_code start_servers(struct part *p, struct hk_err *err)
{
    const struct hk_admin_site site = site_of(p);
    p->room = hk_admin_room_new();
    enum hk_code rc = p->room ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory for the admin server");
    for (size_t i = 0; i < N_SERVERS; i++) {
        struct hk_admin_listener chosen[HK_ADMIN_LISTENERS];
        size_t n = 0;
        for (size_t j = 0; j < p->doors.n; j++)
            if ((p->doors.listeners[j].tls != NULL) == (i == 1))
                chosen[n++] = p->doors.listeners[j];
        for (size_t j = 0; rc != HK_OK && j < n; j++)
            (void)close(chosen[j].fd);
        if (n > 0 && rc == HK_OK)
            rc = hk_admin_server_start(&site, p->room, chosen, n, &p->servers[i], err);
    }
    return rc;
}

/* Metrics may be sent to a collector, also where nobody may come and ask for them. */
static bool may_push(const struct hk_part_env *env)
{
    return env->config->telemetry.endpoint[0] || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") ||
           getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
}

static enum hk_code start(const struct hk_part_env *env, void **out_part, struct hk_onlooker *out_watch,
                          struct hk_err *err)
{
    struct part *p = hk_mem_zalloc(1, sizeof *p);
    if (!p)
        return HK_OK; /* without memory for it the relay goes on */
    p->env = env;
    enum hk_code rc = hk_doors_open(&p->doors, &env->config->admin, env->log, err);
    if (rc != HK_OK || (p->doors.n == 0 && !may_push(env))) {
        if (rc == HK_OK)
            hk_doors_shut(&p->doors);
        hk_mem_free(p);
        return rc; /* nothing is wanted, or it cannot be */
    }
    p->started_ms = now_ms();
    hk_health_init(&p->health, p->started_ms);
    rc = start_metrics(p, err);
    if (rc == HK_OK)
        rc = start_api(p, err);
    if (rc == HK_OK)
        rc = start_servers(p, err);
    else
        hk_doors_shut(&p->doors);
    if (rc != HK_OK) {
        free_part(p);
        return rc;
    }
    hk_meter_watch_look(p->meter, out_watch);
    hk_timer_start(p->tick, 0);
    *out_part = p;
    return HK_OK;
}

/* ---- later ---- */

static void draining(void *part)
{
    struct part *p = part;
    hk_health_drains(&p->health);
    hk_api_service_drain(p->api);
}

static void reloaded(void *part)
{
    struct part *p = part;
    hk_meter_watch_reloaded(p->meter);
    if (p->api)
        hk_api_service_reloaded(p->api, p->env->config);
    hk_doors_reloaded(&p->doors);
}

static void stop(void *part)
{
    free_part(part);
}

static struct hk_metrics *metrics(void *part)
{
    struct part *p = part;
    return p->metrics;
}

const struct hk_part_ops hk_part_admin = {.name = "admin",
                                          .start = start,
                                          .draining = draining,
                                          .reloaded = reloaded,
                                          .stop = stop,
                                          .metrics = metrics};
