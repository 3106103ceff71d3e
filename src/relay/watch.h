/* SPDX-License-Identifier: Apache-2.0 */
/* Observers of a working relay: metrics, figures, telemetry. All calls come from the loop's thread, must not block and must not fail;
 * their arguments are valid during the call. A NULL member is not called. */
#ifndef HK_RELAY_WATCH_H
#define HK_RELAY_WATCH_H

#include "core/engine.h"
#include "store/store.h"

enum hk_lane_event {
    HK_LANE_ACQUIRED = 0,
    HK_LANE_RELEASED,
    HK_LANE_LOST /* another relay took over, or the lease ran out */
};

/* One attempt: from the moment that its sink is asked until it answers. */
struct hk_try {
    const struct hk_message *message;
    const char *destination; /* as the configuration names it */
    size_t dest;             /* its place there, until the next reload */
    uint32_t n;              /* of this life, from 1 */
    uint32_t slot;           /* no two that are in flight have the same */
    int64_t store_ms;        /* store time */
    /* Room for a traceparent (HK_TRACEPARENT_SIZE of observe/trace.h), "" at first. What attempt_begins writes here goes to the
     * destination instead of the row's own; at the attempt's end it is still there. */
    char *traceparent;
};

struct hk_onlooker {
    void *arg;
    void (*attempt_begins)(void *arg, const struct hk_try *attempt);
    /* Its sink had no room: it was no attempt. Instead of attempt_ended. */
    void (*attempt_withdrawn)(void *arg, const struct hk_try *attempt);
    /* Before the engine has decided what to make of it. */
    void (*attempt_ended)(void *arg, const struct hk_try *attempt, const struct hk_facts *facts);
    /* An exchange was committed: settles with `done->stale`, claims, circuits. */
    void (*exchanged)(void *arg, const struct hk_exchange *asked, const struct hk_exchanged *done);
    /* Every call of the engine's at the store, be it answered or not. */
    void (*store_called)(void *arg, enum hk_action_kind kind, enum hk_code rc, uint64_t took_us);
    /* A lane that is gone had messages in hand, which may be repeated. */
    void (*taken_over)(void *arg, const struct hk_takings *takings);
    /* A poll was answered. */
    void (*polled)(void *arg, const struct hk_poll *poll);
    void (*lane)(void *arg, enum hk_lane_event event, int64_t lane);
    /* The relay did something: rises as long as the loop turns. At least once a second, `store_ok`: whether the store's last
     * answer was none of trouble. `keyless`: why messages wait for a key that this relay lacks; NULL = none do. */
    void (*beat)(void *arg, int64_t now_ms, bool store_ok, const char *keyless);
};

#endif
