/* SPDX-License-Identifier: Apache-2.0 */
/* The relay as a machine without I/O: events go in, actions come out. The daemon and the simulator run the same code.
 *
 *        +--------- poll, scan -------- store <------------- exchange ----------+
 *        v                                                    ^                 |
 *   choose heads (slots, breaker, limiter, key order) -> claim in a manifest -> send -> facts -> decide -> settle
 *
 * The shell (the daemon or the simulator) carries out the action of hk_engine_next and reports the result. Store actions run one at
 * a time (HK_ACT_IS_STORE), sends side by side. Time is an argument: `now_ms` is monotonic; the store's time comes with its
 * answers. */
#ifndef HK_CORE_ENGINE_H
#define HK_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/breaker.h>
#include <hikyaku/policy.h>

#include "core/exchange.h"
#include "core/message.h"

struct hk_engine;

/* At most this many forced messages of a destination are in flight at once, beside its concurrency. */
#define HK_ENGINE_FORCED_MAX 16

struct hk_engine_dest {
    const char *name;
    const struct hk_policy *policy;           /* outlives the engine, or until the destination is settled */
    const struct hk_breaker_options *breaker; /* NULL = none */
    struct hk_limiter_options limiter;        /* its concurrency 0 = min(64, the engine's) */
    bool ordered;                             /* per key */
    bool held;                                /* it cannot be used now: its messages wait */
    bool shared;    /* its concurrency is that of all relays of the store together (engine_seats.c) */
    bool skip_dead; /* a dead head does not hold its key */
};

struct hk_engine_route {
    const char *event_type; /* '*' matches any text */
    const size_t *dests;    /* indexes into the destinations */
    size_t n_dests;
};

struct hk_engine_options {
    const struct hk_engine_dest *dests;
    size_t n_dests;
    const struct hk_engine_route *routes; /* for messages that name no destination; the first match wins */
    size_t n_routes;
    const struct hk_policy *(*policy_by_name)(void *arg, const char *name); /* NULL result: no such policy */
    void *policy_arg;
    uint32_t concurrency; /* sends at once, over all destinations */
    uint32_t batch;       /* heads a scan, claims an exchange */
    uint64_t batch_bytes; /* payload held in memory */
    uint64_t max_payload_bytes;
    uint64_t lease_ms;
    uint64_t poll_min_ms, poll_max_ms;
    uint64_t linger_ms; /* how long a settle waits for company */
    uint64_t
        ahead_ms; /* exchanges that follow on each other sooner claim ahead (engine_reserve.c); 0 = none do */
    bool shared;  /* other relays work on the same store: limits and breakers are kept together */
    uint32_t
        max_attempts_ceiling; /* a message may ask for more attempts than its policy, up to this; 0 = any */
    uint64_t timeout_ceiling_ms; /* a message may ask for an attempt of any length, up to this; 0 = any */
    uint64_t seed;
};

enum hk_action_kind {
    HK_ACT_WAIT = 0,  /* nothing to do before wake_ms or the next event */
    HK_ACT_ACQUIRE,   /* store: a lane with lease_ms */
    HK_ACT_POLL,      /* store */
    HK_ACT_HELD_KEYS, /* store */
    HK_ACT_SCAN,      /* store: scan */
    HK_ACT_EXCHANGE,  /* store: exchange */
    HK_ACT_PAUSE,     /* store: persist that destination `dest` is paused, and why */
    HK_ACT_RELEASE,   /* store: the lane; the last store action */
    HK_ACT_SEND,      /* sink: slot, message, dest, attempt, timeout_ms */
    HK_ACT_ABORT,     /* sinks: end every send in flight */
    HK_ACT_STOPPED    /* drained: nothing is left to do */
};

enum hk_engine_scan {
    HK_ENGINE_SCAN_FRESH = 0,
    HK_ENGINE_SCAN_BEHIND,
    HK_ENGINE_SCAN_RETRY,
    HK_ENGINE_SCAN_KEY,
    HK_ENGINE_SCAN_SWEEP,
    HK_ENGINE_SCAN_LATE,
    HK_ENGINE_SCAN_FORCED
};

/* The purpose of a scan. Only the engine reads it: the shell hands it back with the answer. */
struct hk_scan_purpose {
    enum hk_engine_scan kind;
    size_t dest;  /* whose rows; SIZE_MAX = everybody's, or those of a destination that is not configured */
    uint64_t key; /* KEY: its hash */
    int64_t after_id; /* BEHIND: from where its destination reads */
};

struct hk_action {
    enum hk_action_kind kind;
    int64_t wake_ms; /* WAIT */
    bool poll_all;   /* POLL: report everything, even if nothing changed */
    struct hk_scan scan;
    struct hk_scan_purpose purpose; /* SCAN: for hk_engine_on_scan */
    struct hk_exchange exchange;    /* valid until the answer is reported */
    size_t dest;
    const char *dest_name, *reason; /* PAUSE */
    uint32_t slot;
    const struct hk_message *message; /* SEND: valid until hk_engine_on_outcome */
    int64_t lane, claim;              /* SEND: under which it is made, for the event log */
    uint32_t attempt;
    uint64_t timeout_ms;
};

/* The sink's report, with the texts for the history (copied, bounded). */
enum {
    HK_KEPT_BODY = 4096, /* bytes of an answer that are kept */
    HK_KEPT_HEADERS = 8192
};

struct hk_outcome {
    struct hk_facts facts;
    struct hk_str request_headers, response_headers, address;
    /* NULL, or a function that fills the first two and facts.error on demand: nobody needs them after a success. */
    void (*show)(struct hk_outcome *outcome);
    void *show_arg;
    /* The receiver's words may repeat sealed parts of the message. So beside the status and `facts.error` the history keeps only
     * these sealed texts of them, which `show` fills in. */
    bool hushed;
    struct hk_str sealed_headers, sealed_body;
    /* Not 0: the relay sent nothing because it lacks the message's key. No attempt is charged, whatever the policy says, and the
     * message waits this long. `facts.error` says why. */
    uint64_t put_off_ms;
};

/* Counters that only grow. */
struct hk_engine_stats {
    uint64_t claimed, sends, sent, retried, dead, released, deferred, fanned_out;
    uint64_t stale_settles, lanes_lost, store_errors, scans, exchanges, polls;
    uint64_t stuck;   /* settles that the store refused: the row stays, and is not sent again */
    uint64_t no_room; /* of the sends: those that a sink had no room for */
    uint64_t swept;   /* found by the sweep: must stay 0 on a store whose ids are in commit order */
};

enum hk_code hk_engine_new(const struct hk_engine_options *options, int64_t now_ms,
                           struct hk_engine **out_engine, struct hk_err *err) HK_MUSTCHECK;
void hk_engine_free(struct hk_engine *engine);

/* The next thing to do. Call until HK_ACT_WAIT or HK_ACT_STOPPED. */
void hk_engine_next(struct hk_engine *engine, int64_t now_ms, struct hk_action *out_action);

/* Answers to store actions: exactly one per action. `rc` other than HK_OK: as store.h says; the other arguments are ignored. */
void hk_engine_on_acquired(struct hk_engine *engine, int64_t now_ms, enum hk_code rc, int64_t lane,
                           int64_t store_now_ms);
void hk_engine_on_poll(struct hk_engine *engine, int64_t now_ms, enum hk_code rc, const struct hk_poll *poll);
void hk_engine_on_held_keys(struct hk_engine *engine, int64_t now_ms, enum hk_code rc,
                            const struct hk_held_key *keys, size_t n);
/* `purpose`: as the action had it. */
void hk_engine_on_scan(struct hk_engine *engine, int64_t now_ms, enum hk_code rc,
                       const struct hk_scan_purpose *purpose, const struct hk_heads *heads);
void hk_engine_on_exchange(struct hk_engine *engine, int64_t now_ms, enum hk_code rc,
                           const struct hk_exchanged *done);
void hk_engine_on_done(struct hk_engine *engine, int64_t now_ms, enum hk_code rc); /* PAUSE, RELEASE */

/* A send is over (also after HK_ACT_ABORT). */
void hk_engine_on_outcome(struct hk_engine *engine, int64_t now_ms, uint32_t slot,
                          const struct hk_outcome *outcome);

/* The sink of this send had no room: it sent nothing, and no attempt is charged. The engine gives the message back, and sends nothing
 * more to its destination before hk_engine_on_room. */
void hk_engine_on_busy(struct hk_engine *engine, int64_t now_ms, uint32_t slot);
/* There is room again, or the destination has another sink. May be called several times, also if it never was full. */
void hk_engine_on_room(struct hk_engine *engine, int64_t now_ms, size_t dest);

/* A notification: there may be new messages. The engine polls soon, but at most every few milliseconds, however often the shell
 * calls this. */
void hk_engine_wake(struct hk_engine *engine, int64_t now_ms);
/* Is the engine idle, with room for messages, so that a notification of new ones is useful? */
bool hk_engine_hungry(const struct hk_engine *engine);

/* ---- destinations that are created, changed and removed while the engine runs ----
 *
 * A destination has a place, a number, from its creation until it is gone; then another destination may get the number. Routes'
 * destinations cannot be removed. */

/* Creates the destination, or changes the one of that name. From now on no request uses the old settings. Requests on their way end
 * as they will. If the destination's order changes, claimed messages that were not sent are given back, uncharged. The destination
 * keeps what is known of the receiver: an open breaker, a Retry-After, the rest of its rate. */
enum hk_code hk_engine_put_dest(struct hk_engine *engine, int64_t now_ms, const struct hk_engine_dest *conf,
                                size_t *out_dest, struct hk_err *err) HK_MUSTCHECK;
/* Sends nothing more to it. It is gone when its last request has ended and is settled. Then messages that wait for it die, like all
 * messages of an unknown destination. False: a route names it, or there is no such destination. */
bool hk_engine_remove_dest(struct hk_engine *engine, int64_t now_ms, size_t dest);
/* False: a change, or its end, is not over yet. */
bool hk_engine_dest_settled(const struct hk_engine *engine, size_t dest);
/* The shell has read the store's definitions up to this version. While the store has another version, no message dies of an unknown
 * destination. */
void hk_engine_know_dests(struct hk_engine *engine, int64_t version);
/* SIZE_MAX: there is none of that name. */
size_t hk_engine_find_dest(const struct hk_engine *engine, const char *name);

/* Stop claiming; finish what is in flight until `deadline_ms`, then give it back. */
void hk_engine_drain(struct hk_engine *engine, int64_t now_ms, int64_t deadline_ms);

const struct hk_engine_stats *hk_engine_stats(const struct hk_engine *engine);
uint32_t hk_engine_in_flight(const struct hk_engine *engine);
/* Messages that are chosen, claimed, on their way or not settled yet. */
uint32_t hk_engine_in_hand(const struct hk_engine *engine);

/* The state of a destination, for people. */
struct hk_dest_view {
    const char *name;
    uint64_t seen; /* fresh messages for it that the engine has read; only grows */
    uint32_t in_flight, concurrency;
    bool paused;
    bool full;                     /* its sink has no room */
    enum hk_breaker_state breaker; /* closed, too, where it has none */
    int64_t ready_at_ms;           /* until then limiter or breaker block every send; monotonic */
};

bool hk_engine_view_dest(const struct hk_engine *engine, size_t dest, int64_t now_ms,
                         struct hk_dest_view *out); /* false: there is no such destination */
/* The engine's estimate of the store's time. */
int64_t hk_engine_store_now_ms(const struct hk_engine *engine, int64_t now_ms);

#endif
