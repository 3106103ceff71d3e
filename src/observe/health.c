/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement: alive is a loop that turns; ready is that, and a store that answers, and no drain. */
#include <stddef.h>

#include "observe/health.h"

void hk_health_init(struct hk_health *h, int64_t now_ms)
{
    *h = (struct hk_health){.store = HK_OK};
    h->started_ms = now_ms;
    h->turned_ms = now_ms;
}

void hk_health_turned(struct hk_health *h, int64_t now_ms, bool running)
{
    h->turned_ms = now_ms;
    h->running = running;
    h->turns++;
}

void hk_health_stored(struct hk_health *h, int64_t now_ms, enum hk_code rc)
{
    h->store = (int)rc;
    h->calls++;
    if (hk_health_store_ok(rc))
        h->answered_ms = now_ms;
}

void hk_health_drains(struct hk_health *h)
{
    h->draining = true;
}

bool hk_health_store_ok(enum hk_code rc)
{
    return rc == HK_OK || rc == HK_BUSY || rc == HK_CONFLICT;
}

const char *hk_health_live(struct hk_health *h, int64_t now_ms)
{
    return now_ms - h->turned_ms > HK_HEALTH_LOOP_MS ? "the loop does not turn" : NULL;
}

const char *hk_health_ready(struct hk_health *h, int64_t now_ms)
{
    const char *stuck = hk_health_live(h, now_ms);
    if (stuck)
        return stuck;
    if (h->draining)
        return "draining";
    if (!h->running || h->answered_ms == 0)
        return hk_health_store_ok((enum hk_code)h->store) ? "starting" : "the store does not answer";
    if (!hk_health_store_ok((enum hk_code)h->store) || now_ms - h->answered_ms > HK_HEALTH_STORE_MS)
        return "the store does not answer";
    return NULL;
}
