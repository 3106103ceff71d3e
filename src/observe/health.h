/* SPDX-License-Identifier: Apache-2.0 */
/* Is the process alive, and does it do its work? What the loop's thread notes, other threads read: /livez, /readyz and the
 * service manager's watchdog all judge by this. */
#ifndef HK_OBSERVE_HEALTH_H
#define HK_OBSERVE_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>

#define HK_HEALTH_LOOP_MS  10000 /* a loop that has not turned for longer is stuck */
#define HK_HEALTH_STORE_MS 10000 /* a store that has not answered for longer is not there */

/* All times are monotonic, in ms; 0 = not yet. The members are health.c's. */
struct hk_health {
    _Atomic int64_t started_ms, turned_ms, answered_ms;
    _Atomic uint64_t turns, calls; /* of the loop; at the store, whatever it answered */
    _Atomic int store;             /* enum hk_code of its last answer */
    _Atomic bool running, draining;
};

/* ---- from the loop's thread ---- */

void hk_health_init(struct hk_health *health, int64_t now_ms);
void hk_health_turned(struct hk_health *health, int64_t now_ms, bool running); /* often; is there a relay? */
void hk_health_stored(struct hk_health *health, int64_t now_ms, enum hk_code rc);
void hk_health_drains(struct hk_health *health);

/* Is this the answer of a store at work? That another relay has it is one (a standby is well), or that our lane was taken. */
bool hk_health_store_ok(enum hk_code rc);

/* ---- from any thread ---- */

/* NULL: it is. Else why not, in a few constant words. */
const char *hk_health_live(struct hk_health *health, int64_t now_ms);
const char *hk_health_ready(struct hk_health *health, int64_t now_ms);

#endif
