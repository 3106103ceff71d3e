/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager's side: READY=1 when the relay runs, RELOADING=1 and STOPPING=1 when it does so, and WATCHDOG=1 only if
 * since the last one the loop has turned and the store's thread has come back with an answer. An answer of trouble is one, too:
 * a database that is down does not come back because its relays are killed. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/part.h"
#include "daemon/service.h"
#include "exec/clock.h"

enum {
    TICK_MS = 1000,
    TICK_MIN_MS = 50
};

struct part {
    const struct hk_part_env *env;
    struct hk_service service;
    struct hk_timer *tick;
    uint64_t tick_ms;
    uint64_t calls, told; /* at the store: so far; when the watchdog was last fed */
    bool watched, ready;
};

static void tick(void *arg)
{
    struct part *p = arg;
    if (!p->ready && p->env->relay) {
        p->ready = true;
        hk_service_tell(&p->service, "READY=1\nSTATUS=relaying");
    }
    if (p->watched && p->calls != p->told) {
        p->told = p->calls;
        hk_service_tell(&p->service, "WATCHDOG=1");
    }
    if (p->watched || !p->ready)
        hk_timer_start(p->tick, p->tick_ms);
}

static void store_called(void *arg, enum hk_action_kind kind, enum hk_code rc, uint64_t took_us)
{
    struct part *p = arg;
    (void)kind;
    (void)rc;
    (void)took_us;
    p->calls++;
}

static void log_trouble(const struct hk_part_env *env, const char *why)
{
    struct hk_log_line line;
    hk_log_begin(&line, env->log, HK_LOG_WARN, "the service manager is not told how we are");
    hk_log_cstr(&line, "error", why);
    hk_log_end(&line);
}

static void stop(void *part)
{
    struct part *p = part;
    hk_timer_free(p->tick);
    hk_service_close(&p->service);
    hk_mem_free(p);
}

static enum hk_code start(const struct hk_part_env *env, void **out_part, struct hk_onlooker *out_watch,
                          struct hk_err *err)
{
    struct hk_service service;
    struct hk_err why = {.message = ""};
    if (hk_service_open(&service, getenv("NOTIFY_SOCKET"), &why) != HK_OK)
        log_trouble(env, why.message); /* it will see for itself: nothing of ours depends on it */
    if (service.fd < 0)
        return HK_OK;
    struct part *p = hk_mem_zalloc(1, sizeof *p);
    if (!p) {
        hk_service_close(&service);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    *p = (struct part){.env = env, .service = service};
    uint64_t ms = hk_service_watchdog_ms(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), (int64_t)getpid());
    p->watched = ms > 0;
    p->tick_ms = ms > 0 && ms / 4 < TICK_MS ? ms / 4 : TICK_MS;
    p->tick_ms = p->tick_ms < TICK_MIN_MS ? TICK_MIN_MS : p->tick_ms;
    enum hk_code rc = hk_timer_new(env->loop, tick, p, &p->tick);
    if (rc != HK_OK) {
        stop(p);
        return rc;
    }
    hk_timer_start(p->tick, 0);
    *out_watch = (struct hk_onlooker){.arg = p, .store_called = store_called};
    *out_part = p;
    return HK_OK;
}

static void draining(void *part)
{
    struct part *p = part;
    hk_service_tell(&p->service, "STOPPING=1\nSTATUS=draining");
}

static void reloading(void *part)
{
    struct part *p = part;
    char text[96];
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld\nSTATUS=reloading",
                   (long long)hk_clock_us());
    hk_service_tell(&p->service, text);
}

static void reloaded(void *part)
{
    struct part *p = part;
    hk_service_tell(&p->service, "READY=1\nSTATUS=relaying");
}

const struct hk_part_ops hk_part_service = {.name = "service",
                                            .start = start,
                                            .draining = draining,
                                            .reloading = reloading,
                                            .kept = reloaded,
                                            .reloaded = reloaded,
                                            .stop = stop};
