/* SPDX-License-Identifier: Apache-2.0 */
/* What the world is made of, shared by its actors. */
#ifndef HK_SIM_WORLD_IMPL_H
#define HK_SIM_WORLD_IMPL_H

#include <hikyaku/policy.h>
#include <hikyaku/rng.h>

#include "core/engine.h"
#include "cut.h"
#include "model_store.h"
#include "observe/eventlog.h"
#include "world.h"

enum {
    MAX_RELAYS = 8,
    MAX_DESTS = 20,  /* that most worlds may draw … */
    ROOM_DESTS = 32, /* … and those of world_crowd.c */
    MAX_APPS = 4,
    MAX_POLICIES = 3,
    MAX_ROUTE = 3, /* destinations of a route */
    MAX_WRONG = 3,
    TX_MAX = 3,
    STORE_EPOCH_MS = 1000000 /* small numbers read better in a trace */
};

/* One stream of randomness for each component, so that a draw more in one shifts no other. */
enum stream {
    RNG_STORE_FAULTS = 90,
    RNG_DESK,
    RNG_CROWD,
    RNG_STUCK,
    RNG_CEILING,
    RNG_RESET,
    RNG_DEFINE,
    RNG_ROOM,
    RNG_KEYLESS,
    RNG_SEATS,
    RNG_FORCE,
    RNG_TIMEOUT,
    RNG_CONFIG = 100,
    RNG_APPS,
    RNG_STORE,
    RNG_FAULTS,
    RNG_OPERATOR,
    RNG_SINKS, /* and one more for each destination */
};

/* The host's clock is wrong for a while. */
struct wrong_moment {
    int64_t at_ms, for_ms, by_ms;
};

/* What the seed makes possible, and how often. Chances are in 1/65536. */
struct config {
    size_t n_relays, n_dests, n_apps, n_policies, n_routes;
    size_t n_messages;
    size_t n_flood;     /* so many of them come first and at once, for one destination */
    int64_t fault_ms;   /* how long the first phase lasts */
    int64_t app_gap_ms; /* between transactions, on average */
    uint32_t keys;      /* 0 = none */
    uint32_t p_key, p_routed, p_unknown, p_scheduled, p_expiring, p_too_big, p_malformed, p_undecodable,
        p_poison, p_policy, p_override, p_stuck;
    uint32_t p_rollback, p_hold;
    int64_t hold_ms;
    bool ids_at_insert, hide_claimed, late_silent, late_vague;
    bool locks;        /* a store that knows of a relay's death before its lease is over */
    uint32_t p_shards; /* per poll: the relay is given other shards */
    int64_t first_id;
    uint32_t p_store_fail, p_store_slow, p_store_hang; /* per call */
    uint32_t store_ms;                                 /* usual latency at most */
    uint32_t p_crash, p_stop, p_drain;                 /* per action of a relay */
    bool clock_jumps;
    struct wrong_moment wrong[MAX_WRONG];
    size_t n_wrong;
    int64_t reset_at;        /* an operator sets the store's time back; 0 = never */
    int64_t schedule_ms;     /* so far ahead messages name times */
    int64_t operator_gap_ms; /* 0 = there is none */
    bool op_pauses, op_cancels, op_discards, op_requeues, heal_discards;
    uint64_t max_payload;
    /* the store as PostgreSQL: world_store.c */
    bool many;                         /* several live lanes */
    uint32_t p_lost_reply, p_deadlock; /* per exchange */
    int64_t full_from, full_to;        /* no room on the disk */
    int64_t keep_at, forget_at; /* a standby has all up to the one, and takes over at the other; 0 = never */
    int64_t away_to;            /* nobody answers until then */
    bool reuse;                 /* numbers come again */
    /* dead letters: world_desk.c */
    int64_t desk_gap_ms; /* 0 = nobody sits there */
    bool desk_edits, desk_renames, desk_restores, desk_bulk, desk_twice, desk_redrives;
    /* destinations that are kept in the store: world_define.c */
    size_t first_kept;     /* from this one on they are */
    int64_t define_gap_ms; /* 0 = nobody changes them */
    uint32_t p_held;       /* a relay cannot use one */
    uint32_t p_keyless;    /* per send: the message is sealed, and the relay has no key */
    int64_t force_gap_ms;  /* nobody forces messages: 0 */
    uint32_t p_timeout;    /* messages name their own */
    bool desk_hurry;       /* one act follows on the other, and most are requeues: world_crowd.c */
};

enum outcome {
    OUT_OK,
    OUT_5XX,
    OUT_503_HINT,
    OUT_429,
    OUT_4XX,
    OUT_401,
    OUT_410,
    OUT_3XX,
    OUT_REFUSED,    /* no connection */
    OUT_LOST_REPLY, /* acted, and the connection broke */
    OUT_LATE,       /* acts after the time-out */
    OUT_HANG,       /* never acts, never answers */
    N_OUTCOMES
};

struct dest {
    char name[HK_MODEL_TEXT];
    uint32_t weights[N_OUTCOMES], total;
    int64_t latency_ms;
    int64_t least_ms; /* no answer comes sooner */
    int64_t turn_ms;  /* it waits for a place no longer (I21); 0 = that is not judged */
    bool unknown;     /* … and not before its first answer, which shows how quick it is */
    int64_t outage_from, outage_to;
    /* its sink (world_room.c) */
    uint32_t window; /* takes so many at once; 0 = any number */
    int64_t blocked_from, blocked_to;
    int64_t together_ms; /* answers come at multiples of this; 0 = each by itself */
    struct hk_rng rng;
    struct hk_breaker_options breaker;
};

/* A destination that is kept in the store, as it is now; or as a relay has read it. */
struct defined {
    bool there;
    int64_t version;
    struct hk_engine_dest conf;
    struct hk_breaker_options breaker;
};

/* … and as a relay goes by it. */
struct learnt {
    bool there, held;
    int64_t version; /* -1 = nothing was read yet */
};

/* One request on its way. */
struct send {
    size_t relay;
    uint32_t incarnation, slot;
    size_t dest;
    const struct hk_model_msg *msg;
    struct hk_event_line line; /* texts are the world's own */
    enum outcome outcome;
    int64_t hint_s;
    uint64_t took_ms;
    bool timed_out, received, cut, aborted, over;
};

struct call {
    bool active, applied;
    struct hk_action action;
    struct hk_model_reply reply;
    enum hk_code refuse; /* HK_OK: the call has its effect */
    bool lost;           /* … and the connection breaks before it is told */
    uint64_t number;     /* of this relay's calls, over all incarnations */
};

struct relay {
    char name[HK_MODEL_TEXT];
    struct hk_engine *engine; /* NULL = down */
    uint32_t incarnation;
    bool stopped; /* SIGSTOP */
    bool draining;
    bool store_waits; /* while stopped, a call that has not had its effect waits, too */
    int64_t clock_ms; /* its monotonic clock minus the world's */
    int64_t lane;
    struct hk_model_handle handle;
    struct call call;
    uint64_t wake; /* number of the wake-up that counts */
    uint32_t idle_spins;
    uint32_t full;                     /* destinations (bits) whose sinks told it that they have no room */
    uint32_t paused;                   /* destinations (bits) that it knows to be */
    int64_t open_until_ms[ROOM_DESTS]; /* what it was told of breakers */
    size_t dest_of[ROOM_DESTS];        /* by the engine's place */
    struct defined read[ROOM_DESTS];
    struct learnt learnt[ROOM_DESTS];
    int64_t read_version;
    bool reading; /* it will be read */
};

struct app {
    size_t rows[TX_MAX];
    const struct hk_model_msg *messages[TX_MAX];
    size_t n_rows; /* of the open transaction; 0 = none is open */
};

enum event_kind {
    EV_APP, /* begins, or ends what it began */
    EV_OPERATOR,
    EV_WAKE,   /* a relay's timer */
    EV_APPLY,  /* a store call has its effect */
    EV_REPLY,  /* … and its answer arrives */
    EV_RECV,   /* a request arrives */
    EV_ANSWER, /* … and what came of it is known */
    EV_START,  /* a relay's process */
    EV_CONT,
    EV_CLOCK,
    EV_RESET,
    EV_DEFINE, /* an operator makes, changes or removes a destination … */
    EV_LEARN,  /* … and a relay reads it, and goes by it */
    EV_DESK,
    EV_FORCE,   /* a person forces a message */
    EV_REDRIVE, /* a step of the jobs that run */
    EV_KEEP,    /* a standby comes so far … */
    EV_FORGET,  /* … and takes over */
    EV_ROOM,    /* a relay hears that a sink has room again */
    EV_HEAL,
    EV_CHECK /* is everything at rest? */
};

struct event {
    int64_t t;
    uint64_t seq;
    enum event_kind kind;
    size_t who;      /* relay, app or send */
    uint64_t number; /* of the wake-up or the call; of the incarnation */
};

struct world {
    struct config c;
    int64_t now; /* ms */
    int64_t wall_jump_ms, wall_high_ms;
    int64_t wall_from_ms; /* the clock, up to which wall_high_ms has gone on at half its speed */
    bool is_wrong[MAX_WRONG];
    uint64_t seq;
    struct event *heap;
    size_t n_events, room_events;
    struct event *parked; /* for relays that are stopped */
    size_t n_parked, room_parked;

    struct hk_model_watch watch;
    bool maintenance; /* no relay is started */
    struct defined defined[ROOM_DESTS];
    struct hk_rng force_rng, timeout_rng, room_rng, keyless_rng, define_rng, reset_rng, config_rng, app_rng,
        store_rng, fault_rng, operator_rng, more_rng, stuck_rng, desk_rng;
    struct hk_model *model;
    struct hk_buf *log;
    struct relay relays[MAX_RELAYS];
    struct dest dests[ROOM_DESTS];
    struct hk_engine_dest engine_dests[ROOM_DESTS];
    struct hk_engine_route routes[4];
    size_t route_dests[4][MAX_ROUTE];
    struct hk_policy *policies[MAX_POLICIES];
    struct hk_engine_options options;
    struct app apps[MAX_APPS];
    struct hk_model_msg *messages;
    size_t n_written; /* messages that were inserted */
    struct send **sends;
    size_t n_sends, room_sends;

    bool redriving; /* a job may run */
    bool healed, finishing, done;
    int64_t healed_at;
    struct hk_world_result *result;
    const struct hk_cut *cut;   /* NULL = nothing is left out */
    struct hk_numbers *strikes; /* when faults struck; NULL = nobody asks */
};

/* world.c */
void hk_world_fail(struct world *w, const char *fmt, ...) HK_PRINTF(2, 3);
void hk_world_at(struct world *w, int64_t t, enum event_kind kind, size_t who, uint64_t number);
void hk_world_park(struct world *w, const struct event *ev);
void hk_world_unpark(struct world *w, size_t relay);
void hk_world_log(struct world *w, struct hk_event_line line);
void hk_world_log_dest(struct world *w, size_t i);
bool hk_world_chance(struct hk_rng *rng, uint32_t p); /* p in 1/65536 */
int64_t hk_world_between(struct hk_rng *rng, int64_t lo, int64_t hi);

/* world_clock.c */
int64_t hk_world_right_clock(const struct world *w);
int64_t hk_world_clock(void *arg);
int64_t hk_world_store_now(void *arg);
void hk_world_clock_begin(struct world *w);
void hk_world_clock_step(struct world *w, const struct event *ev);

/* world_reset.c */
void hk_world_reset_draw(struct world *w, uint64_t seed);
void hk_world_reset_step(struct world *w);

/* world_define.c */
void hk_world_define_draw(struct world *w, uint64_t seed);
void hk_world_define_step(struct world *w);
void hk_world_define_begin(struct world *w, size_t relay);
void hk_world_define_told(struct world *w, size_t relay, int64_t version);
void hk_world_define_learn(struct world *w, const struct event *ev);

/* config.c */
void hk_world_config_draw(struct world *w, uint64_t seed);
void hk_world_dest_draw(struct world *w, size_t i, uint64_t seed);
void hk_world_config_fini(struct world *w);

/* world_store.c */
void hk_world_store_draw(struct world *w, uint64_t seed);
/* What becomes of the call: sets `refuse` and `lost`. */
void hk_world_store_trouble(struct world *w, struct call *call);
void hk_world_store_apply(struct world *w, struct relay *r);
bool hk_world_store_full(const struct world *w);
bool hk_world_store_away(const struct world *w);
void hk_world_store_keep(struct world *w);
void hk_world_store_forget(struct world *w);

/* world_watch.c */
int64_t hk_world_bound_ms(const struct world *w); /* within this a healed world does what is due */
void hk_world_heard(struct world *w, struct relay *r, const struct hk_poll *poll);
uint32_t hk_world_cap(const struct world *w, size_t dest); /* sends at once */

/* actors.c */
void hk_world_app_cut_off(struct world *w); /* all transactions that are open are undone */
void hk_world_app_step(struct world *w, size_t app);
void hk_world_operator_step(struct world *w);
void hk_world_operator_heal(struct world *w);
bool hk_world_dest_blocks(void *arg, const char *name);

/* world_force.c */
void hk_world_seats_draw(struct world *w, uint64_t seed);
void hk_world_force_draw(struct world *w, uint64_t seed);
void hk_world_force_step(struct world *w);
void hk_world_force_heal(struct world *w);
/* Is the destination left paused, to see what forced messages do? */
bool hk_world_force_holds(const struct world *w, size_t dest);
bool hk_world_force_pauses(const struct world *w);
void hk_world_timeout_draw(struct world *w, uint64_t seed);
void hk_world_timeout_set(struct world *w, struct hk_model_msg *msg);

/* world_desk.c */
void hk_world_desk_draw(struct world *w, uint64_t seed);
void hk_world_desk_step(struct world *w);
void hk_world_redrive_step(struct world *w);

/* world_crowd.c */
void hk_world_crowd_draw(struct world *w, uint64_t seed);
bool hk_world_judges_turns(const struct world *w);

/* world_room.c */
void hk_world_room_draw(struct world *w, uint64_t seed);
bool hk_world_has_room(const struct world *w, size_t relay, size_t dest);
void hk_world_room_refused(struct world *w, size_t relay, struct send *send);
void hk_world_room_freed(struct world *w, size_t relay, size_t dest);
void hk_world_room_healed(struct world *w);
void hk_world_room_tell(struct world *w, size_t relay, size_t dest);
void hk_world_room_step(struct world *w, const struct event *ev);

/* destination.c */
/* `room`: false = it is asked for, and goes nowhere. */
size_t hk_world_send_start(struct world *w, size_t relay, const struct hk_action *action, bool room);
void hk_world_send_received(struct world *w, struct send *send);
/* Fills the facts of what came of it. `header` must outlive them. */
void hk_world_send_facts(struct world *w, struct send *send, struct hk_header *header, char value[24],
                         struct hk_facts *out);

/* cut.c */
void hk_world_cut(struct world *w); /* after it was drawn */
bool hk_world_cut_message(const struct world *w, size_t number);
bool hk_world_cut_calm(const struct world *w, const struct event *ev);

/* relay.c */
void hk_world_relay_start(struct world *w, size_t relay);
void hk_world_relay_crash(struct world *w, size_t relay);
void hk_world_relay_stop(struct world *w, size_t relay, int64_t for_ms);
void hk_world_relay_wake(struct world *w, const struct event *ev);
void hk_world_relay_apply(struct world *w, const struct event *ev);
void hk_world_relay_reply(struct world *w, const struct event *ev);
void hk_world_relay_answer(struct world *w, const struct event *ev);
void hk_world_relay_cont(struct world *w, size_t relay);
void hk_world_relay_drain(struct world *w, size_t relay);

#endif
