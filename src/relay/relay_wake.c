/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications: a store that can announce new messages has a listener on a separate thread, which wakes the loop. The relay polls
 * anyway: a notification is only sooner. */
#include "observe/log.h"
#include "relay/relay_impl.h"

static void log_listening(struct hk_relay *r, enum hk_listening before, const char *why)
{
    struct hk_log_line line;
    if (r->wake.listening == before || r->wake.listening == HK_LISTENING_NOT_YET)
        return;
    bool yes = r->wake.listening == HK_LISTENING_YES;
    hk_log_begin(&line, r->options.log, HK_LOG_INFO, yes ? "listening for new messages" : "polling alone");
    if (!yes)
        hk_log_cstr(&line, "why", why);
    hk_log_end(&line);
}

static void on_wake(void *arg)
{
    struct hk_relay *r = arg;
    char why[HK_LISTENING_WHY_MAX] = "";
    enum hk_listening before = r->wake.listening;
    if (!r->wake.listener || r->stopping || !r->engine)
        return;
    r->wake.listening = r->store.ops->listening(r->wake.listener, why);
    log_listening(r, before, why);
    r->wake.woken = true;
    hk_engine_wake(r->engine, hk_relay_now_ms(r));
    hk_relay_pump_soon(r);
}

/* From the listener's thread. */
static void ring(void *arg)
{
    struct hk_relay *r = arg;
    hk_wake_send(r->wake.bell);
}

/* A busy relay needs no wake-up: it looks for messages when it can take some. */
struct hk_store_hint hk_relay_wake_hint(struct hk_relay *r)
{
    bool hungry = hk_engine_hungry(r->engine);
    struct hk_store_hint hint = {.woken = r->wake.woken && hungry,
                                 .hungry = hungry && r->wake.listening == HK_LISTENING_YES};
    r->wake.woken &= !hungry;
    return hint;
}

void hk_relay_wake_start(struct hk_relay *r)
{
    struct hk_err err = {.message = ""};
    if (!r->store.ops->listen)
        return;
    enum hk_code rc = hk_wake_new(r->options.loop, on_wake, r, &r->wake.bell, &err);
    if (rc == HK_OK)
        rc = r->store.ops->listen(r->options.url, ring, r, &r->wake.listener, &err);
    if (rc == HK_OK)
        return;
    r->wake.listening = HK_LISTENING_NO;
    log_listening(r, HK_LISTENING_NOT_YET, err.message);
}

void hk_relay_wake_stop(struct hk_relay *r)
{
    if (r->wake.listener)
        r->store.ops->unlisten(r->wake.listener);
    r->wake.listener = NULL;
    hk_wake_free(r->wake.bell);
    r->wake.bell = NULL;
}
