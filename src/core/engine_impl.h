/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's parts, shared by the files that choose, send and settle. */
#ifndef HK_CORE_ENGINE_IMPL_H
#define HK_CORE_ENGINE_IMPL_H

#include "base/ms.h"
#include "core/engine.h"
#include "core/order.h"

#define HK_NO_DEST       SIZE_MAX
#define HK_SWEEP_MS      1000 /* one batch of the sweep */
#define HK_SWEEP_REST_MS 30000

static inline uint32_t hk_fewer(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A slot holds one message from being chosen until its settle is on disk. */
enum hk_phase {
    HK_SLOT_FREE = 0,
    HK_SLOT_CHOSEN,   /* will be claimed in the next exchange */
    HK_SLOT_CLAIMING, /* in the exchange that is under way */
    HK_SLOT_READY,    /* claimed, on disk: may be sent */
    HK_SLOT_SENDING,
    HK_SLOT_SETTLE,   /* outcome known, will be settled in the next exchange */
    HK_SLOT_SETTLING, /* in the exchange that is under way */
    HK_SLOT_ORPHANED, /* still being sent, but the lane is gone: its outcome changes nothing */
    HK_NPHASES
};

/* An event of a slot. The table in engine_slot.c says which phase follows. */
enum hk_move {
    HK_MOVE_TAKE = 0,  /* a scan chose its message */
    HK_MOVE_CLAIM,     /* an exchange that claims it begins */
    HK_MOVE_READY,     /* the claim is on disk, and the message is to be sent */
    HK_MOVE_SEND,      /* the shell gets the action to send it */
    HK_MOVE_DECIDE,    /* its settle is known */
    HK_MOVE_SETTLE,    /* an exchange that settles it begins */
    HK_MOVE_UNDO,      /* that exchange changed nothing */
    HK_MOVE_LEAVE,     /* the engine is done with the message, or never had it */
    HK_MOVE_LOSE_LANE, /* another relay may have the message now */
    HK_NMOVES
};

/* Why a message is claimed. All but HK_TO_SEND are settled without sending. */
enum hk_intent {
    HK_TO_SEND = 0,
    HK_TO_DEFER,   /* its not_before is in the future */
    HK_TO_FAN_OUT, /* its route names several destinations */
    HK_TO_REFUSE   /* engine_refuse.c */
};

/* Why a message is dead without an attempt. */
struct hk_refusal {
    enum hk_fault fault; /* the fact that makes class and reason code */
    const char *text;    /* static storage; NULL = it is not refused */
};

struct hk_slot {
    enum hk_phase phase;
    enum hk_intent intent;
    struct hk_refusal refusal; /* HK_TO_REFUSE */
    enum hk_source source;
    int64_t id;
    int64_t claim;
    uint64_t bytes;
    size_t dest;   /* HK_NO_DEST: none */
    uint64_t born; /* how many destinations had been made when the engine took it */
    size_t route;
    uint64_t key;  /* hash; 0 = not ordered, or a fan-out */
    char *fan_key; /* a fan-out's key, held at each of its destinations that is ordered; NULL = none */
    bool held;     /* a retry row that held its key (and was not only deferred) when it was taken */
    int64_t not_before_ms;
    bool guarded;  /* holds a breaker permit (if any) and a limiter slot */
    bool counted;  /* is in the counts of what is in flight */
    bool spare;    /* taken when its destination had no place for it */
    bool unrouted; /* of retry, without a destination: it holds its key wherever it may go */
    bool forced;   /* by a person: past everything that guards its destination (engine_forced.c) */
    bool alone;    /* nothing else is in flight beside it: it has crashed relays before */
    bool aborted;
    bool gone;     /* its row was not there any more */
    uint32_t next; /* in its destination's reserve */
    hk_breaker_permit permit;
    struct hk_message message; /* texts and payload in `block` */
    void *block;
    int64_t started_ms;      /* monotonic */
    struct hk_settle settle; /* texts in `record` */
    struct hk_str *fan_out;
    char cause[HK_REASON_MAX], reason[HK_REASON_MAX];
    void *record;
};

/* Tokens that the store gave (engine_quota.c). */
struct hk_meter {
    uint32_t tokens;
    int64_t until_ms;  /* they are thrown away then; monotonic, as all here */
    int64_t ask_at_ms; /* not before */
    bool asks;         /* there is work for one */
};

/* Of the concurrency that all relays share (engine_seats.c); times are monotonic. */
struct hk_seats {
    uint32_t held;     /* the store's book has no fewer of this lane's */
    uint32_t limit;    /* others wait: no more of them are to be used */
    bool asks;         /* there is work, and no seat for it */
    bool unsure;       /* the book may have more: it was not confirmed what was written last */
    int64_t ask_at_ms; /* not before */
    int64_t used_ms;   /* a seat was taken last */
    int64_t heard_ms;  /* the book was read last */
};

enum hk_dest_state {
    HK_DEST_IN_USE = 0,
    HK_DEST_CHANGING, /* takes nothing until nothing is in hand: then it is what `next` says */
    HK_DEST_LEAVING   /* takes nothing until nothing is in hand: then it is gone */
};

struct hk_dest {
    char *name;                 /* NULL = a free place */
    struct hk_engine_dest conf; /* its breaker's options are our copy */
    struct hk_dest_next *next;  /* CHANGING: its next configuration (engine_dests.c); else NULL */
    enum hk_dest_state state;
    bool awake;                 /* is in the list of those that have something to do */
    bool untold;                /* no poll has reported about it since it was made */
    uint64_t put;               /* the number of its making */
    uint32_t in_hand;           /* slots */
    struct hk_breaker *breaker; /* NULL = none, or it was never needed: then it is closed … */
    struct hk_limiter *limiter; /* … and lets everything through; NULL: it was never needed */
    uint32_t cap;
    uint32_t in_flight, retries_in_flight; /* chosen to sending */
    uint32_t retries_chosen;               /* not claimed yet: their rows would be read again */
    uint32_t sending;
    uint32_t reserve_first, reserve_last, reserve_len; /* engine_reserve.c */
    uint32_t ahead;                                    /* how many messages beyond the cap may be claimed */
    uint32_t answered;                                 /* requests, since the last exchange began */
    bool full;       /* its sink has no room, and has not said since that there is some (engine_room.c) */
    uint32_t places; /* sends at once that it gets; 0 = as many as its cap */
    uint32_t
        bound; /* sends that its sink took before it refused one; 0 = it has refused none while others were on their way … */
    uint32_t bound_before; /* … and the value before the present series of refusals */
    uint32_t within;       /* answers since one place more was tried */
    int64_t answered_ms;   /* the last one; monotonic */
    uint16_t quick_answers,
        answers;          /* engine_share.c: of the last ones, a bit each; and how many those are */
    uint32_t lingering;   /* requests on their way for longer than a quick one takes */
    uint64_t bytes;       /* of its payloads, in flight */
    uint64_t no_bytes_at; /* how many had landed when there was no room for its next payload */
    uint64_t turn;        /* since when it waits for one: a number that grows */
    bool active;          /* has something in flight, or to send */
    uint32_t auth_in_row;
    uint64_t seen; /* fresh messages for it that came by */
    struct hk_meter rate, probe;
    struct hk_seats seats;
    uint32_t forced, forced_sending; /* in flight, on their way: beside the other counts */
    enum hk_breaker_state circuit;   /* as it was last seen … */
    int64_t circuit_open_ms;         /* … and until when; monotonic */
    int64_t circuit_seen_ms;         /* the breaker's end that polls reported, as the engine last used it */
    int64_t seen_open_ms;            /* by the last poll */
    bool tell_circuit;
    bool paused, seen_paused;
    bool pause_due; /* to be persisted */
    char pause_reason[HK_REASON_MAX];
    bool behind;    /* rows up to the engine's cursor were passed over: this destination reads for itself */
    int64_t cursor; /* highest id that was looked at for it, when behind or after */
    int64_t retry_look_at_ms; /* monotonic: not before, be it due or not */
    int64_t retry_due_ms;     /* store time; INT64_MAX = none known */
    int64_t retry_after_due_ms, retry_after_id;
    bool retry_passed; /* some of those seen since the first were not taken: their keys are held */
    bool retry_last;   /* the last scan for it was for retries */
};

struct hk_ring { /* slot numbers, first in, first out */
    uint32_t *items;
    uint32_t head, len, room;
};

/* Slot numbers + 1, placed by the ids of their rows of outbox; 0 = free. */
struct hk_hand {
    uint32_t *places;
    uint32_t mask;
};

/* ---- the engine's parts; times are monotonic unless they say otherwise ---- */

/* The lane, and until when it is surely ours. */
struct hk_engine_lease {
    int64_t lane; /* 0 = none */
    int64_t until_ms, renew_at_ms;
    bool aborted; /* what was in flight was ended for its sake */
};

/* The store's clock: bounds of the store's time minus the monotonic time. */
struct hk_engine_clock {
    int64_t lo_ms, hi_ms;
    bool known;
};

/* The one action that may be under way at the store. */
struct hk_engine_call {
    bool busy;
    enum hk_action_kind kind;
    int64_t asked_at_ms;
    int64_t retry_at_ms; /* not before, after an error */
    uint64_t backoff_ms;
    size_t pausing; /* the destination of a pause */
};

/* State of reading the keys that retry rows and dead heads hold. The keys themselves are in `order`. */
struct hk_engine_keys {
    bool any_ordered; /* destination */
    bool loaded;
    bool stale;              /* something was committed since they were read */
    bool doubtful;           /* some counts may be wrong: as if a person had acted */
    int64_t acts, acts_read; /* of people: as of the last poll, and when the keys were asked for */
    int64_t look_at_ms;      /* not again before, even if people act … */
    int64_t net_at_ms;       /* … nor before, if nobody is known to have */
};

struct hk_engine_polls {
    int64_t next_ms, last_ms;
    int64_t wake_at_ms; /* a poll that was asked for; INT64_MAX = none was */
    uint64_t every_ms;
};

/* How far outbox was read by what all destinations read together. */
struct hk_engine_reading {
    int64_t last_id, cursor; /* the cursor: highest id that was looked at for everybody */
    int64_t counted_to;      /* rows up to here were counted as seen before the cursor was set back */
    bool late_told;          /* a poll reported late rows, and no late scan has begun since */
    bool late_begun;         /* a late scan has begun, and continues from late_cursor */
    int64_t late_cursor;
    int64_t sweep_cursor, sweep_at_ms;
    uint32_t given_back; /* rows of outbox below the cursor that were released: the sweep will find them */
    bool fresh_turn;
    size_t want_alone; /* a destination whose next message must go alone; HK_NO_DEST = none … */
    bool want_forced;  /* … and that was forced */
    int64_t last_scan_ms;
};

/* Claimed messages, over all destinations. */
struct hk_engine_load {
    uint32_t in_flight, retries, sending; /* chosen to sending, retry rows among them; sending alone */
    uint32_t in_reserve;
    int64_t measured_ms; /* when the reserves were (engine_reserve.c) */
    uint64_t landings;   /* messages that are no longer in flight; from 1 */
    uint64_t bytes;
    bool bytes_full; /* the next payload does not fit: nothing is looked for before one has landed */
    bool alone;
};

/* Fair shares (engine_share.c). */
struct hk_engine_share {
    uint32_t active;             /* destinations at work … */
    uint32_t starved;            /* … those that have work and no place … */
    uint32_t slow_behind;        /* … and those that are behind, and not quick */
    uint64_t turns, oldest_turn; /* given so far; of those that are starved */
    int64_t lingering_at_ms;     /* when to count again what lingers */
};

/* Messages that people have forced (engine_forced.c). */
struct hk_engine_forced {
    bool look;                     /* there may be some */
    bool left;                     /* some of those seen since the first were not taken */
    bool crowded;                  /* because the relay had no place for them */
    int64_t look_at_ms, looked_ms; /* not before; the last one; monotonic */
    int64_t acts;                  /* of people, as of the last poll */
    int64_t after_due_ms, after_id;
};

struct hk_engine_drain {
    bool on, aborted;
    int64_t deadline_ms;
};

/* The exchange under way, and when the next one is due. */
struct hk_engine_exchange {
    struct hk_settle *settles; /* parallel to settle_slots */
    uint32_t *settle_slots;
    size_t n_settles;
    struct hk_want *wants; /* parallel to want_slots */
    uint32_t *want_slots;
    size_t n_wants;
    struct hk_quota *quotas; /* parallel to quota_dests */
    size_t *quota_dests;
    size_t n_quotas;
    struct hk_circuit *circuits;
    size_t n_circuits;
    struct hk_seat_ask *seats; /* parallel to seat_dests */
    size_t *seat_dests;
    size_t n_seats;
    size_t room;       /* destinations that quotas (two each) and circuits have room for */
    int64_t oldest_ms; /* since when something waits for the next one; INT64_MAX = nothing */
    bool looked;       /* before the one that is due */
    bool unknown;      /* a want names a destination that nobody knows */
};

/* A destination with retry rows that is not configured (any more). */
struct hk_engine_stray {
    int64_t due_ms; /* store time; INT64_MAX = none known */
    int64_t look_at_ms;
    char *name; /* "" = left to the routes */
    size_t room;
    size_t turn; /* scans that found nothing */
};

struct hk_engine {
    struct hk_engine_options options;
    struct hk_dest *dests;
    size_t n_places, dests_room; /* of them, free ones included */
    size_t n_known;              /* destinations; those that leave are known until they are gone */
    size_t *by_name;             /* their places, sorted by name */
    size_t *awake;               /* places of those that have something to do, in their order */
    size_t n_awake;
    size_t n_untold, n_unsettled; /* without a poll; changing or leaving */
    uint64_t puts;                /* destinations that were made */
    int64_t known_dests;          /* the version of the definitions that the shell has reported … */
    int64_t told_dests;           /* … and the one that the last exchange saw */
    struct hk_slot *slots;
    uint32_t n_slots, used_slots;
    struct hk_hand hand;
    struct hk_ring free, chosen, ready, settle;
    struct hk_order *order;
    struct hk_rng rng, breaker_rng;
    struct hk_engine_stats stats;
    struct hk_engine_lease lease;
    struct hk_engine_clock clock;
    struct hk_engine_call call;
    struct hk_engine_keys keys;
    struct hk_engine_polls polls;
    struct hk_engine_reading reading;
    struct hk_engine_load load;
    struct hk_engine_share share;
    struct hk_engine_exchange exchange;
    struct hk_engine_stray stray;
    struct hk_engine_forced forced;
    struct hk_engine_drain drain;
    bool abort_due; /* the lane was lost with sends on their way */
};

/* engine_slot.c */
bool hk_ring_init(struct hk_ring *ring, uint32_t room); /* false: out of memory */
void hk_ring_push(struct hk_ring *ring,
                  uint32_t item); /* there is room: a ring is as long as there are slots */
bool hk_ring_pop(struct hk_ring *ring, uint32_t *out_item);
struct hk_slot *hk_engine_slot(struct hk_engine *e, uint32_t i);
/* The only writer of a slot's phase. It also puts the slot into the queue of its new phase (free, chosen, ready, settle); who took
 * it out of the one before is the caller. Asserts that the table lists the move. */
void hk_slot_move(struct hk_engine *e, uint32_t i, enum hk_move move);
/* The slot's message left the engine by that move: frees its memory and its place. */
void hk_slot_free(struct hk_engine *e, uint32_t i, enum hk_move move);

/* engine.c */
void hk_engine_wants_exchange(struct hk_engine *e, int64_t now_ms);
/* A retry row of the destination is due then (store time). */
void hk_engine_note_due(struct hk_engine *e, size_t dest, int64_t due_ms);
int64_t hk_engine_store_now(const struct hk_engine *e, int64_t now_ms);

/* A destination that is not configured has a name of any length. False: out of memory, the next poll tries again. */
bool hk_engine_name_stray(struct hk_engine *e, struct hk_str name);

/* engine_dests.c */
/* HK_NO_DEST: there is none of that name. */
size_t hk_engine_dest_by_name(const struct hk_engine *e, struct hk_str name);
bool hk_dests_room(struct hk_engine *e, size_t n); /* makes room for `n` destinations; false: out of memory */
/* Makes one that is not there yet. */
enum hk_code hk_dest_begin(struct hk_engine *e, const struct hk_engine_dest *conf, int64_t now_ms,
                           struct hk_err *err);
void hk_dest_fini(struct hk_dest *d);
/* It has something to do, or may have: it is looked at until it sleeps again. */
void hk_dest_wake(struct hk_engine *e, size_t dest);
/* After a poll: puts destinations that have nothing to do to sleep. */
void hk_dests_sleep(struct hk_engine *e);
/* A poll was complete: destinations that waited for it begin. */
void hk_dests_told(struct hk_engine *e);
/* Changes or removes the destinations that waited for this, now that the engine has none of their messages. */
void hk_dests_settle(struct hk_engine *e, int64_t now_ms);
/* It takes nothing now, whatever it has to do. */
bool hk_dest_rests(const struct hk_dest *d);
/* Its limiter, and its breaker if it has one, are made when they are first needed. False: out of memory. */
bool hk_dest_make_guards(struct hk_dest *d, int64_t now_ms);
int64_t hk_dest_limit_at(const struct hk_dest *d, int64_t now_ms);
/* A message names a destination that we know nothing of: may the store know more by now? */
bool hk_dest_may_exist(struct hk_engine *e, const struct hk_slot *slot, int64_t now_ms);
/* Such a message is back where it was. */
void hk_dest_given_back(struct hk_engine *e, const struct hk_slot *slot);

/* engine_hand.c */
bool hk_hand_init(struct hk_hand *hand, uint32_t n_slots); /* false: out of memory */
void hk_hand_add(struct hk_engine *e, uint32_t slot);
void hk_hand_remove(struct hk_engine *e, uint32_t slot);
/* A row of outbox. What a lost lane has left in flight is nobody's: a standby that took over may have forgotten its claim, and shows
 * the row again. */
bool hk_hand_has(const struct hk_engine *e, int64_t id);

/* engine_pick.c */
/* Fills `scan` and `purpose` of the action. False: there is nothing to scan for. */
bool hk_engine_pick_scan(struct hk_engine *e, int64_t now_ms, struct hk_action *out);
bool hk_engine_late_due(const struct hk_engine *e);
/* When some destination that has work will be ready again. */
int64_t hk_engine_ready_at(struct hk_engine *e, int64_t now_ms);

/* Does the destination have rows to read for itself, and may it take messages? */
bool hk_dest_wants_scan(const struct hk_engine *e, struct hk_dest *d, int64_t now_ms);

/* engine_choose.c */
/* The ids directly before and after an id. */
int64_t hk_id_before(int64_t id);
int64_t hk_id_after(int64_t id);
bool hk_engine_can_take(const struct hk_engine *e);
/* When the destination may take one more; INT64_MAX: not before something else happens. */
int64_t hk_dest_ready_at(const struct hk_engine *e, const struct hk_dest *d, enum hk_source source,
                         int64_t now_ms);
bool hk_dest_ready(const struct hk_engine *e, struct hk_dest *d, enum hk_source source, int64_t now_ms);
/* Up to which id everything of the destination was looked at. */
int64_t hk_dest_read_to(const struct hk_engine *e, const struct hk_dest *d);
void hk_engine_choose(struct hk_engine *e, int64_t now_ms, const struct hk_scan_purpose *purpose,
                      const struct hk_heads *heads);
/* Gives back what a chosen message holds: breaker permit, limiter slot, place in the key's order. */
void hk_slot_unchoose(struct hk_engine *e, struct hk_slot *slot, int64_t now_ms);

/* engine_reserve.c */
/* How many of its messages the engine may have claimed. */
uint32_t hk_dest_room(const struct hk_engine *e, const struct hk_dest *d);
/* Ready, but its destination has no free place. */
void hk_reserve_add(struct hk_engine *e, uint32_t i);
/* It was taken as a spare, and its destination may not be sent to any more. */
bool hk_reserve_refuses(const struct hk_engine *e, const struct hk_slot *slot, int64_t now_ms);
/* There is a free place. */
void hk_reserve_next(struct hk_engine *e, struct hk_dest *d, int64_t now_ms);
void hk_reserve_give_back(struct hk_engine *e, struct hk_dest *d, int64_t now_ms);
/* Gives back spare messages that may no longer be sent, or whose destination makes no progress. */
void hk_reserve_look(struct hk_engine *e, int64_t now_ms);
/* An exchange begins: how many did each destination answer since the last one began? */
void hk_reserve_measure(struct hk_engine *e, int64_t now_ms);

/* engine_room.c */
/* How many sends at once the destination may have. */
uint32_t hk_room_places(const struct hk_dest *d);
/* A request was answered: it may have more, if it was bound. */
void hk_room_answered(struct hk_dest *d);

/* engine_share.c */
/* A request of the destination is over, and held its place for so long. */
void hk_share_answered(struct hk_dest *d, int64_t held_ms);
/* It has something in flight now, or to read. */
void hk_share_joins(struct hk_engine *e, struct hk_dest *d);
/* May the destination hold one more of the relay's places? */
bool hk_share_has_place(const struct hk_engine *e, const struct hk_dest *d);
/* A flood of others' retries does not hold up its own. */
bool hk_share_spares_retries(const struct hk_dest *d);
/* May the destination hold `bytes` more? If not, the engine does not look for its messages before another message has landed. */
bool hk_share_has_bytes(const struct hk_engine *e, struct hk_dest *d, uint64_t bytes);
bool hk_share_lacks_bytes(const struct hk_engine *e, const struct hk_dest *d);
/* Before the engine picks a scan: counts the destinations at work, and those that wait for a turn. */
void hk_share_measure(struct hk_engine *e, int64_t now_ms);
/* The destination is looked for, or has nothing in flight any more: from now on it waits for its next turn. */
void hk_share_turn(struct hk_engine *e, struct hk_dest *d);
/* Is a key of the destination to wait for those that were looked for longer ago? */
bool hk_share_key_waits(const struct hk_engine *e, const struct hk_dest *d);
/* Others wait for a place, and the scan is for another destination, or for all: this one gets a place in its turn. */
bool hk_share_waits_turn(const struct hk_engine *e, size_t scanned_for, size_t dest);

/* engine_quota.c */
/* May the destination take one more, as far as others are concerned? If not it is asked for. */
bool hk_quota_ready(const struct hk_engine *e, struct hk_dest *d, int64_t now_ms);
bool hk_quota_waits(const struct hk_engine *e, const struct hk_dest *d, int64_t now_ms);
void hk_quota_take(const struct hk_engine *e, struct hk_dest *d, int64_t now_ms);
int64_t hk_quota_at(const struct hk_engine *e); /* when an exchange is due for their sake */
void hk_quota_fill(struct hk_engine *e, int64_t now_ms);
void hk_quota_granted(struct hk_engine *e, const struct hk_grant *grants, int64_t now_ms);
void hk_quota_undone(struct hk_engine *e);
/* An outcome was recorded with its breaker: has that changed? */
void hk_circuit_note(struct hk_dest *d, int64_t now_ms);
/* A person resumed the destination: its breaker closes, and reports about it that were still to be sent are dropped. */
void hk_circuit_resumed(struct hk_dest *d, int64_t now_ms);
/* A poll reports the breakers of other relays. */
void hk_circuit_told(struct hk_engine *e, struct hk_dest *d, int64_t open_until_ms, int64_t now_ms);

/* engine_seats.c */
/* How many messages the engine may have chosen for it, as far as other relays are concerned: UINT32_MAX where they are not. */
uint32_t hk_seats_usable(const struct hk_engine *e, const struct hk_dest *d);
/* When there may be one more; INT64_MAX: it is asked for. */
int64_t hk_seats_ready_at(const struct hk_engine *e, const struct hk_dest *d);
bool hk_seats_ready(const struct hk_engine *e, struct hk_dest *d); /* if there is none it is asked for */
void hk_seats_take(struct hk_dest *d, int64_t now_ms);
/* Does the store's book have, or may it have, some of this lane's? */
bool hk_seats_owed(const struct hk_dest *d);
int64_t hk_seats_at(const struct hk_dest *d); /* when an exchange is due */
/* Adds to the exchange what is to be asked, or given back. */
void hk_seats_ask(struct hk_engine *e, size_t dest, int64_t now_ms);
void hk_seats_told(struct hk_engine *e, const struct hk_seats_given *given, int64_t now_ms);
void hk_seats_undone(struct hk_engine *e, int64_t now_ms);
void hk_seats_lost(struct hk_dest *d); /* with the lane */

/* engine_forced.c */
/* Something has happened by which there may be some. */
void hk_forced_look(struct hk_engine *e, int64_t now_ms);
void hk_forced_polled(struct hk_engine *e, int64_t acts, int64_t now_ms);
bool hk_forced_pick(struct hk_engine *e, int64_t now_ms, struct hk_action *out);
int64_t hk_forced_at(const struct hk_engine *e);
/* A scan for them is over: were all of them taken? */
void hk_forced_seen(struct hk_engine *e, const struct hk_heads *heads, bool all, int64_t now_ms);
/* May one more go there? */
bool hk_forced_fits(const struct hk_dest *d);
void hk_forced_has_room(struct hk_engine *e, int64_t now_ms);
void hk_forced_landed(struct hk_engine *e, struct hk_dest *d, int64_t now_ms);
void hk_forced_has_place(struct hk_engine *e, int64_t now_ms);

/* engine_refuse.c */
/* Is its not_before in the future? */
bool hk_head_is_early(const struct hk_head *head, int64_t clock_ms);
/* Of what a scan shows. `has_target`: there is a destination that it goes to, or a route. */
struct hk_refusal hk_refusal_of_head(const struct hk_engine *e, const struct hk_head *head, bool has_target,
                                     int64_t clock_ms);
/* Of what a claim gives. `policy`: NULL = the one that it names does not exist. */
struct hk_refusal hk_refusal_of_message(const struct hk_message *msg, const struct hk_policy *policy);
/* Of a send that never was: the message cannot be made a request. */
struct hk_refusal hk_refusal_of_facts(const struct hk_facts *facts);
/* Our own address policy let nothing out, and that is what the message dies of. */
struct hk_refusal hk_refusal_of_decision(const struct hk_facts *facts, const struct hk_decision *d);

/* engine_settle.c */
/* The message is claimed: keep a copy, and make it ready or settle it at once. */
void hk_slot_claimed(struct hk_engine *e, uint32_t i, const struct hk_message *msg, int64_t claim,
                     int64_t now_ms);
/* The policy that the message or its destination names; NULL when the message names one that does not exist. */
const struct hk_policy *hk_slot_policy(const struct hk_engine *e, const struct hk_slot *slot);
/* How long an attempt that starts now may take; 0: there is no time left. */
uint64_t hk_slot_attempt_ms(const struct hk_engine *e, const struct hk_slot *slot, int64_t now_ms);
/* No longer in flight (sent, refused, released): free its guards. */
void hk_slot_landed(struct hk_engine *e, struct hk_slot *slot, int64_t now_ms);
void hk_slot_settle(struct hk_engine *e, uint32_t i, enum hk_settle_kind kind, int64_t now_ms);
/* Gives back the key's turn, or the turns of a fan-out. */
void hk_slot_free_keys(struct hk_engine *e, struct hk_slot *slot);
/* Its time was over before it could be sent. */
void hk_slot_overdue(struct hk_engine *e, uint32_t i, int64_t now_ms);
/* Claimed, and given back unsent, uncharged. */
void hk_slot_give_back(struct hk_engine *e, uint32_t i, int64_t now_ms);
/* The settle is on disk: bring order and cursors up to date. */
void hk_slot_settled(struct hk_engine *e, struct hk_slot *slot);
/* The store refused the settle: the row stays, and is not shown again. */
void hk_slot_stuck(struct hk_engine *e, struct hk_slot *slot);

#endif
