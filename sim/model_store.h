/* SPDX-License-Identifier: Apache-2.0 */
/* The store of store/store.h, modelled in memory: the same calls, each atomic, with the same outcome as SQLite's. What
 * goes wrong on the way (latency, refusals, lost replies) is the world's business. Also the other side: what applications
 * and operators do to the tables. Every act that others can see is written to the event log. */
#ifndef HK_SIM_MODEL_STORE_H
#define HK_SIM_MODEL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/exchange.h"

#define HK_MODEL_TEXT 32

/* A message as the application writes it. The world owns it, and it outlives the store. */
struct hk_model_msg {
    char message_id[HK_MODEL_TEXT], destination[HK_MODEL_TEXT], event_type[HK_MODEL_TEXT], key[HK_MODEL_TEXT];
    char policy[HK_MODEL_TEXT];
    char expected[4 * HK_MODEL_TEXT]; /* for the log: every destination that it must reach */
    char payload[32];
    uint64_t payload_bytes; /* as the head tells */
    uint64_t hash;
    int64_t not_before_ms, expires_ms;
    uint64_t timeout_ms,
        timeout_logged; /* of an attempt, as it asks; as it may have it, for the log; 0 = as the policy says */
    uint32_t max_attempts; /* 0 = as the policy says */
    uint32_t max_logged;   /* what the checker is told */
    bool malformed, undecodable;
    bool poison; /* kills the relay that sends it */
    bool stuck;  /* the database does not let its row go: a trigger of the application's */
};

struct hk_model_options {
    /* As PostgreSQL: a transaction that is held open commits lower ids late. A poll is then the horizon of scans, and tells
     * what became visible below them. */
    bool ids_at_insert;
    bool
        late_silent; /* … but it does not: as where an application writes low ids itself; what the sweep is for */
    bool late_vague;   /* late scans also give what no scan has passed yet; engines must bear both */
    bool hide_claimed; /* scans of outbox leave out what a manifest names; engines must bear both */
    bool
        many; /* several lanes live at once, each with its shards, and rows are due by the clock: as PostgreSQL */
    int64_t first_id; /* of outbox, as if an application wrote its own; 0 = 1 */
    struct hk_buf *log;
    int64_t (*now_ms)(void *arg);   /* the store's time; never goes back */
    int64_t (*clock_ms)(void *arg); /* what its clock says, which may be behind; NULL = the same */
    void *now_arg;
};

struct hk_model;

struct hk_model *hk_model_new(const struct hk_model_options *options);
void hk_model_free(struct hk_model *model);

/* ---- applications ---- */

/* Returns a handle for commit and rollback. */
size_t hk_model_insert(struct hk_model *model, const struct hk_model_msg *msg);
void hk_model_commit(struct hk_model *model, size_t handle);
void hk_model_rollback(struct hk_model *model, size_t handle);

/* ---- relays: one reply for each call, with copies of all texts; free it after the engine was told ---- */

struct hk_model_reply {
    enum hk_code rc;
    int64_t now_ms, lane;
    struct hk_poll poll;
    struct hk_heads heads;
    struct hk_held_key *keys;
    size_t n_keys;
    struct hk_exchanged exchanged;
    void **blocks;
    size_t n_blocks, room_blocks;
};

enum {
    HK_MODEL_SHARDS = 16,
    HK_MODEL_ALL_SHARDS = (1 << HK_MODEL_SHARDS) - 1,
    HK_MODEL_LOST = 256
};

/* Settles of an exchange whose answer was lost, though it had its effect. Who asks for them again is told so. */
struct hk_model_lost {
    struct {
        enum hk_source source;
        int64_t claim, id;
    } settles[HK_MODEL_LOST];

    size_t n;
    int64_t stray; /* the manifest that it wrote: nobody has what it names; 0 = none */
};

/* What a relay's connection remembers between polls. */
struct hk_model_handle {
    bool polled;
    uint64_t version; /* of the last poll */
    int64_t told_ms;  /* the clock, when a poll last told of what may be due by it */
    int64_t passed;   /* highest id that a scan of outbox has shown */
    uint64_t late_from,
        late_to;   /* what a late scan covers: what became visible after the one, up to the other */
    uint32_t lost; /* shards (bits) that are not this relay's: a message lies in the shard of its key */
    uint32_t lost_at_poll; /* … as of the last poll: with fewer now, the next one says `reset` */
    /* with many lanes */
    int64_t lane, upkeep_at_ms;
    uint32_t mine, leaving;
    uint64_t boot,
        mark;      /* its lane's: as the lane's row must have them; the mark is that of the last exchange */
    bool unproven; /* on a new connection: does the store still know this lane, and all that it did? */
    struct hk_model_lost lost_reply;
};

void hk_model_acquire(struct hk_model *model, const char *relay, uint64_t lease_ms,
                      struct hk_model_reply *out);
void hk_model_release(struct hk_model *model, int64_t lane, struct hk_model_reply *out);
void hk_model_poll(struct hk_model *model, struct hk_model_handle *handle, struct hk_model_reply *out);
void hk_model_scan(struct hk_model *model, struct hk_model_handle *handle, const struct hk_scan *scan,
                   struct hk_model_reply *out);
void hk_model_held_keys(struct hk_model *model, const struct hk_model_handle *handle,
                        struct hk_model_reply *out);
void hk_model_exchange(struct hk_model *model, const struct hk_model_handle *handle,
                       const struct hk_exchange *exchange, struct hk_model_reply *out);
bool hk_model_is_paused(const struct hk_model *model, const char *destination);
void hk_model_pause(struct hk_model *model, const char *destination, bool paused, const char *actor,
                    struct hk_model_reply *out);
void hk_model_reply_free(struct hk_model_reply *reply);

/* ---- several lanes at once: model_lanes.c ---- */

void hk_model_lanes_acquire(struct hk_model *model, struct hk_model_handle *handle, const char *relay,
                            uint64_t lease_ms, struct hk_model_reply *out);
/* What a relay does now and then inside a poll: takes over what dead lanes left, and its fair share of the shards.
 * HK_CONFLICT: its own lane is gone. */
enum hk_code hk_model_lanes_upkeep(struct hk_model *model, struct hk_model_handle *handle);
void hk_model_lanes_release(struct hk_model *model, struct hk_model_handle *handle, int64_t lane,
                            struct hk_model_reply *out);
/* An exchange on a connection that may break. `lost`: it has its effect, but nobody is told: HK_UNAVAILABLE. */
void hk_model_lanes_exchange(struct hk_model *model, struct hk_model_handle *handle,
                             const struct hk_exchange *exchange, bool lost, struct hk_model_reply *out);

/* ---- a standby that lags and takes over: model_failover.c ---- */

/* All up to now is on the standby. */
void hk_model_keep(struct hk_model *model);
/* The standby takes over: what came after the last hk_model_keep never was. `reuse`: numbers of sequences come again. */
void hk_model_failover(struct hk_model *model, bool reuse);
/* The relay's connection is a new one. */
void hk_model_handle_moved(struct hk_model_handle *handle);

/* ---- an operator sets the store's time back: model_reset.c ---- */

enum {
    HK_MODEL_WATCHED = 64
};

/* A lane that an operator watches. */
struct hk_model_watched {
    int64_t lane, since_ms;
    uint64_t sign;
};

struct hk_model_watch {
    struct hk_model_watched items[HK_MODEL_WATCHED];
    size_t n;
};

/* Is its time right, nearly? */
bool hk_model_in_step(const struct hk_model *model);
/* Is every relay dead, as far as one can tell? `locks`: the store knows; `now_ms`: the operator's own clock, which only goes on. */
bool hk_model_may_reset(struct hk_model *model, struct hk_model_watch *watch, uint64_t lease_ms, bool locks,
                        int64_t now_ms);
/* Its time is the clock again; before, it was `mark_ms`. */
void hk_model_reset(struct hk_model *model, int64_t mark_ms);

/* A destination was made, changed or removed; which it is only the world knows. */
void hk_model_define(struct hk_model *model, const char *destination, const char *kind);
int64_t hk_model_definitions(const struct hk_model *model);

/* Its process is gone, and the store can tell: its lane may be taken at once. */
void hk_model_died(struct hk_model *model, const char *relay);

/* ---- operators; `pick` chooses among what there is; false: nothing to do ---- */

bool hk_model_cancel(struct hk_model *model, uint64_t pick);
/* It is to go now, whatever guards its destination. `ordered`: does that keep an order? */
bool hk_model_force(struct hk_model *model, uint64_t pick, bool (*ordered)(void *arg, const char *dest),
                    void *arg);
bool hk_model_discard(struct hk_model *model, uint64_t pick);
bool hk_model_requeue(struct hk_model *model, uint64_t pick);
/* model_letters.c. Twice: as by a double click; the second time nothing may happen. */
bool hk_model_requeue_twice(struct hk_model *model, uint64_t pick);
bool hk_model_requeue_anew(struct hk_model *model, uint64_t pick); /* under a new message id */
size_t hk_model_requeue_all(struct hk_model *model);               /* what is open, in one transaction */
bool hk_model_edit(struct hk_model *model, uint64_t pick);
bool hk_model_restore(struct hk_model *model, uint64_t pick);
/* As the message is in the letter or row that has this payload now; NULL: nobody changed it so. */
const struct hk_model_msg *hk_model_version_of(const struct hk_model *model, struct hk_str message_id,
                                               struct hk_str payload);

/* ---- redrives: core/redrive.c decides ---- */

struct hk_redrive_pace;
bool hk_model_redrive_start(struct hk_model *model, const struct hk_redrive_pace *pace);
bool hk_model_redrive_cancel(struct hk_model *model, uint64_t pick);
/* What is due of the jobs that run; when to ask again; INT64_MAX = none runs. */
int64_t hk_model_redrive_step(struct hk_model *model);

/* ---- the world's questions ---- */

/* Live rows: of outbox that are visible, and of outbox_retry. */
int64_t hk_model_clock(const struct hk_model *model); /* never ahead of its time */
size_t hk_model_live(const struct hk_model *model);
/* Those of them that need not go now: behind an open dead letter of their key at a destination that blocks, or due after
 * `by_ms`. */
size_t hk_model_excused(const struct hk_model *model, int64_t by_ms,
                        bool (*blocks)(void *arg, const char *dest), void *arg);
/* Of its breaker, as it is written down; 0 = closed. */
int64_t hk_model_open_until(const struct hk_model *model, const char *destination);
/* Would a relay that asks for a lane now be told that another one lives? */
bool hk_model_lane_lives(const struct hk_model *model);
size_t hk_model_letters(const struct hk_model *model); /* whatever became of them */
size_t hk_model_open_letters(const struct hk_model *model);
/* A claim of something that a standing manifest names, or twice in one exchange: the engine's mistake. */
const char *hk_model_complaint(const struct hk_model *model);
/* The tables as JSON lines, for the checker. */
void hk_model_dump(const struct hk_model *model, struct hk_buf *out);

#endif
