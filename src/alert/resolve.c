/* SPDX-License-Identifier: Apache-2.0 */
/* A name for a thread that may wait, but not for as long as the system's resolver: on a loop of its own. */
#include "alert/send.h"

#define TICK_MS 200 /* how often it is asked whether all was abandoned */

struct asking {
    struct hk_loop *loop;
    struct hk_timer *timer;
    const struct hk_resolve *ask;
    uint64_t until_ms;
    struct hk_resolved *out;
    enum hk_code rc;
    struct hk_err *err;
};

static void on_found(void *arg, const char *error, const struct hk_address *addresses, size_t n)
{
    struct asking *a = arg;
    a->rc =
        error ? hk_err_set(a->err, HK_UNAVAILABLE, "cannot resolve %.200s: %s", a->ask->host, error) : HK_OK;
    for (size_t i = 0; i < n && i < HK_LOOKUP_MAX && !error; i++)
        a->out->ips[a->out->n++] = addresses[i].ip;
    hk_loop_stop(a->loop);
}

static void on_tick(void *arg)
{
    struct asking *a = arg;
    if (a->ask->abandoned && atomic_load(a->ask->abandoned))
        a->rc = hk_err_set(a->err, HK_CANCELLED, "abandoned: the relay stops");
    else if (hk_loop_now_ms(a->loop) >= a->until_ms)
        a->rc = hk_err_set(a->err, HK_TIMEOUT, "timeout while resolving %.200s", a->ask->host);
    else
        hk_timer_start(a->timer, TICK_MS);
    if (!hk_timer_running(a->timer))
        hk_loop_stop(a->loop);
}

enum hk_code hk_send_resolve(const struct hk_resolve *ask, struct hk_resolved *out, struct hk_err *err)
{
    struct asking a = {.ask = ask, .out = out, .err = err};
    struct hk_lookup *lookup = NULL;
    out->n = 0;
    enum hk_code rc = hk_loop_new(&a.loop, err);
    if (rc != HK_OK)
        return rc;
    a.until_ms = hk_loop_now_ms(a.loop) + ask->timeout_ms;
    rc = hk_timer_new(a.loop, on_tick, &a, &a.timer);
    if (rc == HK_OK)
        rc = hk_lookup_new(a.loop, ask->host, on_found, &a, &lookup, err);
    if (rc == HK_OK) {
        hk_timer_start(a.timer, TICK_MS < ask->timeout_ms ? TICK_MS : ask->timeout_ms);
        hk_loop_run(a.loop);
        rc = a.rc;
    }
    hk_lookup_free(lookup); /* its thread ends when it ends */
    hk_timer_free(a.timer);
    hk_loop_free(a.loop);
    return rc;
}
