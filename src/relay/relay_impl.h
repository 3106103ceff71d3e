/* SPDX-License-Identifier: Apache-2.0 */
/* The relay's parts, shared by its files:
 *
 *   relay.c         its life, and the pump: asks the engine what comes next
 *   relay_engine.c  the engine and the sinks of a configuration, and the change to the next configuration
 *   relay_store.c   the store's thread: one table of what is asked of it, and what becomes of the answers
 *   relay_send.c    deliveries, from the engine's word to the engine's ear
 *   relay_wake.c    the listener that says when there is something new */
#ifndef HK_RELAY_RELAY_IMPL_H
#define HK_RELAY_RELAY_IMPL_H

#include "observe/trace.h"
#include "relay/attempt_log.h"
#include "relay/clock.h"
#include "relay/events.h"
#include "relay/kept.h"
#include "relay/redrive.h"
#include "relay/relay.h"
#include "relay/wiring.h"
#include "store/store.h"

/* One call at the store. All of them are rows of tables in relay_store.c. */
struct hk_relay_job {
    enum hk_code (*work)(struct hk_relay *r); /* on the store's thread */
    void (*done)(struct hk_relay *r);         /* on the loop, with the answer in r->store */
    bool of_engine;                           /* it has to hear of the answer; else it is one of our own */
    bool may_take_over;                       /* lanes of relays that are gone */
};

/* The store, and its last answer, which stays valid until its next call. */
struct hk_relay_store {
    const struct hk_store_ops *ops;
    struct hk_store *handle; /* the store thread's */
    struct hk_worker *worker;
    const struct hk_relay_job *job; /* the one under way, or the last one */
    bool busy;
    struct hk_action action;   /* the engine's */
    bool held;                 /* it waits for a job of our own */
    struct hk_store_hint hint; /* of the poll under way */

    enum hk_code rc;
    struct hk_err err;
    uint64_t took_us;
    int64_t lane, now_ms; /* of the last acquire */
    bool unsealable;      /* the last acquire failed for want of a key */
    const struct hk_poll *poll;
    const struct hk_heads *heads;
    const struct hk_held_key *keys;
    size_t n_keys;
    const struct hk_exchanged *exchanged;
    struct hk_takings takings;    /* by the last acquire or poll */
    uint32_t purged, purged_open; /* rows that retention took, open dead letters among them */
    const struct hk_definitions *definitions;
    char guards[HK_STORE_GUARDS_MAX]; /* what others put on our tables, when the store was opened */

    enum hk_code last_error;               /* logged once until it changes */
    const struct hk_relay_job *failed_job; /* that it came from */
    bool away; /* a trouble was logged, whose end is to be logged, too; to wait for a lane is none */
};

struct hk_relay_delivery {          /* one per slot: what a sink and its callback need */
    struct hk_relay_delivery *next; /* to be sent in this round */
    struct hk_relay *relay;
    struct hk_action action; /* its message belongs to the engine, until the engine gets the outcome */
    const char *destination;
    struct hk_kept_sink *kept; /* that it goes through; NULL: one of the configuration's */
    char traceparent
        [HK_TRACEPARENT_SIZE]; /* sent instead of the message's own, when somebody has set it; then `onward` is what */
    struct hk_message onward; /* the sink gets: the engine's message with that in it, or opened */
    bool sealed;              /* it was sealed; `opened` has its plain text */
    struct hk_pool opened;
    struct hk_pool words; /* the receiver's, sealed, until the engine has them */
};

/* A key that some message waits for. */
struct hk_relay_keyless {
    char id[HK_KEY_ID_MAX], check[HK_KEY_CHECK_MAX];
    char why[HK_ERR_MESSAGE_MAX];
    int64_t seen_ms; /* when a message last needed it */
};

enum {
    HK_RELAY_KEYLESS_MAX = 8
};

/* Of messages that wait for a key (relay_sealed.c). */
struct hk_relay_sealed {
    int64_t next_ms; /* the last of them is looked at again */
    int64_t said_ms; /* when the log last said so; 0 = never */
    uint64_t unsaid; /* and how many came since */
    struct hk_relay_keyless keyless[HK_RELAY_KEYLESS_MAX];
    size_t n_keyless;
    bool no_lane; /* mode rest: the relay acquires no lane before it has its first key */
    char why_no_lane[HK_ERR_MESSAGE_MAX];
};

struct hk_relay_sends {
    struct hk_relay_delivery *deliveries;
    struct hk_relay_delivery *first, **last; /* of this round */
    struct hk_sink *to_flush;                /* when the round is over */
    uint32_t n_landed;                       /* since the relay was pumped last */
};

struct hk_relay_wake {
    struct hk_listener *listener; /* NULL = none: the store only polls */
    struct hk_wake *bell;         /* that the listener rings */
    enum hk_listening listening;  /* as the log last had it */
    bool woken;                   /* since the last poll */
};

struct hk_relay_drain {
    bool on;
    int64_t give_up_at_ms, idle_give_up_at_ms; /* `idle_…`: when nothing is in hand to be settled */
    bool asked_more;                           /* the store, when the drain was to be given up */
};

struct hk_relay_reload {
    const struct hk_config *to; /* NULL = none is under way */
    bool reopened;              /* the store was, as `to` wants it, if `rc` is HK_OK */
    enum hk_code rc;
    struct hk_err err;
};

struct hk_relay {
    struct hk_relay_options options;
    struct hk_wiring wiring;
    struct hk_engine *engine;    /* NULL after a reload that failed */
    struct hk_engine_stats past; /* of engines before a reload */
    struct hk_timer *timer;
    struct hk_events *events;
    struct hk_attempt_log *attempts;
    struct hk_redriver *redriver;
    struct hk_kept *kept; /* destinations of the store */
    int64_t redrive_ms;   /* when the step under way began */
    struct hk_relay_store store;
    struct hk_relay_sends sends;
    struct hk_relay_room *rooms; /* parallel to the wiring's sinks */
    struct hk_relay_sealed sealed;
    struct hk_relay_wake wake;
    struct hk_relay_drain drain;
    struct hk_relay_reload reload;
    int64_t beat_at_ms, purge_at_ms;
    enum hk_code ended; /* not HK_OK: why the relay cannot continue */
    struct hk_clocks clocks;
    bool stopping, opening;
    bool soon; /* the timer is set to pump at once */
};

/* A sink of the configuration calls this when it has room again. */
struct hk_relay_room {
    struct hk_relay *relay;
    size_t place;
};

/* Tells everybody who looks on. */
#define HK_RELAY_TELL(r, what, ...)                                                                          \
    for (size_t tell_i = 0; tell_i < (r)->options.n_watches; tell_i++)                                       \
        if ((r)->options.watches[tell_i].what)                                                               \
    (r)->options.watches[tell_i].what((r)->options.watches[tell_i].arg, __VA_ARGS__)

/* relay.c */
int64_t hk_relay_now_ms(const struct hk_relay *r);
/* Asks the engine what comes next, and does it. */
void hk_relay_pump(struct hk_relay *r);
/* Soon, from the loop: several events of one round are answered together. */
void hk_relay_pump_soon(struct hk_relay *r);
/* Closes the store; then `stopped`. */
void hk_relay_finish(struct hk_relay *r);

/* relay_engine.c */
enum hk_code hk_relay_engine_start(struct hk_relay *r, const struct hk_config *config, struct hk_err *err);
void hk_relay_engine_end(struct hk_relay *r);
/* The engine has drained: the relay ends, or continues with its next configuration. */
void hk_relay_engine_stopped(struct hk_relay *r);

/* relay_store.c; nothing is under way but for `ask` */
/* Opens the store on its thread, and waits for it. */
enum hk_code hk_relay_store_open(struct hk_relay *r, struct hk_err *err);
/* Is the action one for the store? */
bool hk_relay_store_does(enum hk_action_kind kind);
/* Asks what the engine wants to know, as soon as a job of our own is done. */
void hk_relay_store_ask(struct hk_relay *r, const struct hk_action *action);
void hk_relay_store_close(struct hk_relay *r);
void hk_relay_store_reopen(struct hk_relay *r);
void hk_relay_store_purge(struct hk_relay *r);
void hk_relay_store_redrive(struct hk_relay *r, int64_t now_ms);
void hk_relay_store_definitions(struct hk_relay *r);

/* relay_send.c */
void hk_relay_sends_add(struct hk_relay *r, const struct hk_action *action);
/* Called after the store got its next job, so that both run at the same time. */
void hk_relay_sends_start(struct hk_relay *r, int64_t now_ms);
void hk_relay_sends_abort(struct hk_relay *r);
/* The sink of the engine's destination takes messages again, or is another one. */
void hk_relay_has_room(struct hk_relay *r, size_t place);

/* relay_sealed.c */

/* Opens the payload of a sealed message, for the time of its delivery. False: it waits for its key, or died of being damaged, and the
 * engine knows. */
bool hk_relay_sealed_open(struct hk_relay_delivery *d, int64_t now);
/* Must the receiver's words be hidden? They may repeat what is sealed, or will be (mode `rest`). */
bool hk_relay_hides(const struct hk_relay_delivery *d);
/* What the store keeps of the receiver's answer then: sealed, or nothing if sealing fails. */
void hk_relay_sealed_words(struct hk_relay_delivery *d, struct hk_outcome *outcome);
/* The outcome as logs and the store may have it: without the receiver's answer where answers are hidden. */
struct hk_facts hk_relay_sealed_facts(const struct hk_relay_delivery *d, const struct hk_facts *facts);
/* After each try to acquire a lane. `why`: a key is missing for that; NULL = none is. */
void hk_relay_sealed_acquired(struct hk_relay *r, const char *why);
/* Forgets the keys that are there again. Returns why messages wait for a key, or NULL. */
const char *hk_relay_sealed_keyless(struct hk_relay *r, int64_t now);
/* The engine has the outcome: wipes the opened payload. */
void hk_relay_sealed_end(struct hk_relay_delivery *d);

/* relay_wake.c */
/* It may fail: then the store polls, as it does anyway. */
void hk_relay_wake_start(struct hk_relay *r);
void hk_relay_wake_stop(struct hk_relay *r);
/* Fills in the report that the next poll gives to the store. */
struct hk_store_hint hk_relay_wake_hint(struct hk_relay *r);

#endif
