/* SPDX-License-Identifier: Apache-2.0 */
/* The relay's side of the PostgreSQL store: its state, and its operations by file. */
#ifndef HK_STORE_PG_STORE_H
#define HK_STORE_PG_STORE_H

#include "store/manifests.h"
#include "store/pg/pages.h"
#include "store/pg/pg.h"
#include "store/pg/rest.h"
#include "store/pg/stmt.h"
#include "store/pg/window.h"
#include "store/stuck.h"

/* A settle, to be known again. */
struct hk_pg_settled {
    int64_t claim, id;
    enum hk_source source;
};

/* An exchange whose COMMIT was not answered: what it did is asked before anything else is done. Meanwhile what it settles
 * stands in the manifests as being settled. */
struct hk_pg_lost {
    bool pending;
    bool committed; /* the last one of which it is known */
    int64_t lane, number;
    bool claims;                   /* it may have written a manifest that we know nothing of */
    struct hk_pg_settled *settles; /* once it is known to be done, until they are repeated */
    size_t n_settles, room;
    size_t n_sure; /* of them, while it is pending: done by exchanges before it */
};

struct hk_store {
    struct hk_pg pg;
    struct hk_store_options options; /* with defaults filled in */

    /* the lane */
    int64_t lane;  /* 0 = none */
    uint64_t mine; /* shards that it owns: a set of bits */
    uint64_t
        leaving; /* those of them that are to go: not read any more, and freed when nothing of them is in hand */
    bool shards_unsure;   /* what is ours must be read again */
    int64_t upkeep_at_ms; /* store time */
    uint64_t lease_ms;    /* as the last exchange asked for it */
    int64_t number;       /* of the last exchange; only rises */
    int64_t mark;         /* the last one of this lane that is marked in the database; 0 = none */
    struct hk_manifests claims;
    struct hk_stuck stuck;
    bool stuck_stale; /* to be read again */
    struct hk_pg_lost lost;
    /* There may be a lane of ours that we know nothing of, since the answer to acquire was lost: so long, monotonic; after
     * that its lease is over. Its boot tells it. */
    int64_t lost_lane_until_ms;
    char boot[64]; /* "" = too long to be kept */
    /* Rows of hundreds of megabytes take longer to move than any statement may take: what failed for that alone is given so
     * much the next time; 0 = as usual. */
    uint64_t patience_ms;
    int64_t moving_since_us; /* monotonic */
    bool
        strays; /* there may be a manifest of this lane that nobody knows: it is given back with the next exchange */

    /* reading */
    struct hk_pg_window window;
    struct hk_pg_pages pages;              /* within its horizon */
    uint64_t connects;                     /* which connection that is about */
    bool beyond;                           /* rows lie above all ids that were read, and above the sequence */
    bool polled;                           /* since the lane was acquired, or the store opened */
    bool own_change;                       /* something is new, and no poll has told it yet */
    bool reset_due;                        /* the same of a reset */
    int64_t acts;                          /* the last one that operators left in the audit */
    int64_t definitions, definitions_acts; /* the version of the destinations, and `acts` when it was read */
    int64_t read_at_ms;                    /* when a poll last asked the server; monotonic */
    struct hk_store_hint hint;             /* for the next poll */
    bool armed;                            /* as far as we know: who writes next will say so */
    int64_t found_at_ms;                   /* when a scan last found fresh rows; monotonic */
    int64_t arm_at_ms;                     /* not before, since it was refused; monotonic */
    int64_t told_ms;                       /* what time the server said it was */
    uint64_t behind_ms;     /* by so much the server's clock is behind the time that we gave out last */
    int64_t asked_at_ms;    /* when the call began that is under way; monotonic */
    int64_t told_at_ms;     /* and when; monotonic */
    uint32_t told_late_ms;  /* so much later it may have been: the answer was on its way */
    PGresult *kept[2];      /* what heads and messages point into, beside the pools of the same call */
    struct hk_pg_rest rest; /* payloads that the exchange under way moves sealed */
    struct hk_takings takings;
    struct hk_poll poll;
    struct hk_heads heads;
    struct hk_exchanged exchanged;
};

/* ---- store.c ---- */

/* The parameter of NOW in sql/relay.sql: the time by options.clock_ms, or NULL for the server's own. */
void hk_pg_arg_now(struct hk_store *store, struct hk_pg_args *a);
/* hk_pg_call for the relay: notices a new connection, after which positions mean nothing. */
bool hk_pg_relay_call(struct hk_store *store);
/* The server said that it was so late. Returns the store's time. */
int64_t hk_pg_told(struct hk_store *store, int64_t server_ms);
/* The store's time, as it must be by now. */
/* `out_late_ms`: how much later it may be in truth, since the last answer of the server was on its way for so long. */
int64_t hk_pg_reckon(struct hk_store *store, uint32_t *out_late_ms);
/* Rows have times of the server's clock; the engine goes by the time that we give out, which may be ahead of it. 0 stays 0. */
int64_t hk_pg_to_row(const struct hk_store *store, int64_t ms);
int64_t hk_pg_of_row(const struct hk_store *store, int64_t ms);
/* Keeps `res` as long as this call's pool. Accepts NULL. */
void hk_pg_keep(struct hk_store *store, PGresult *res);
int64_t hk_pg_monotonic_us(void);

/* A transaction that moves messages, however large, from one table to another: as hk_pg_begin, for answers that hk_pg_read
 * gives to their readers. The end of the call is told, too. */
void hk_pg_begin_moving(struct hk_store *store);
void hk_pg_end_moving(struct hk_store *store);
uint64_t hk_pg_moving_lease(const struct hk_store *store, uint64_t lease_ms); /* with that on top */

/* ---- lane.c ---- */

void hk_pg_taken_over(struct hk_store *store, struct hk_takings *out);
enum hk_code hk_pg_acquire(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                           int64_t *out_lane, int64_t *out_now_ms, struct hk_err *err);
enum hk_code hk_pg_release(struct hk_store *store, int64_t lane, struct hk_err *err);
/* Takes over, gives up, takes: so that the live lanes share the shards. Errors stick. */
void hk_pg_upkeep(struct hk_store *store);
uint64_t hk_pg_shards(const struct hk_store *store); /* to be read; all of them without a lane */
/* Those of a lane that another store object acquired. */
uint64_t hk_pg_shards_of(struct hk_store *store, int64_t lane);
/* The lane is gone, and with it all that we had in hand. */
void hk_pg_forget_lane(struct hk_store *store);

/* ---- scan.c ---- */

/* admin_define.c */
int64_t hk_pg_definitions_version(struct hk_store *store); /* within a call */
int64_t hk_pg_definitions_now(struct hk_store *store);     /* -1: it could not be read */
enum hk_code hk_pg_definitions(struct hk_store *store, int64_t known, const struct hk_definitions **out,
                               struct hk_err *err);

enum hk_code hk_pg_poll(struct hk_store *store, const struct hk_poll **out, struct hk_err *err);
void hk_pg_hint(struct hk_store *store, const struct hk_store_hint *hint);
enum hk_code hk_pg_scan(struct hk_store *store, const struct hk_scan *scan, const struct hk_heads **out,
                        struct hk_err *err);
enum hk_code hk_pg_held_keys(struct hk_store *store, const struct hk_held_key **out, size_t *out_n,
                             struct hk_err *err);

/* ---- row.c ---- */

/* `res` in binary; texts point into it. */
void hk_pg_head(const PGresult *res, int row, enum hk_source source, struct hk_head *out);
bool hk_pg_head_due(const PGresult *res, int row, int64_t *out_due_ms,
                    int64_t *out_now_ms); /* false: there is no head */
/* Returns its manifest. */
int64_t hk_pg_message(struct hk_store *store, const PGresult *res, int row, struct hk_message *out,
                      uint8_t *out_shard);
/* A head with the rest of its message behind it. */
bool hk_pg_is_whole(const PGresult *res, int row);
void hk_pg_message_ahead(struct hk_store *store, const PGresult *res, int row, struct hk_message *out,
                         uint8_t *out_shard);

/* ---- exchange.c ---- */

enum hk_code hk_pg_exchange(struct hk_store *store, const struct hk_exchange *exchange,
                            const struct hk_exchanged **out, struct hk_err *err);
/* One settle in a transaction by itself; *out_why: it was refused, and is noted as stuck. */
enum hk_code hk_pg_settle_apart(struct hk_store *store, const struct hk_settle *settle, bool *out_stale,
                                const char **out_why);
/* Finds out what became of an exchange whose COMMIT was not answered. Errors stick: HK_CONFLICT when the lane is gone. */
void hk_pg_resolve(struct hk_store *store);

/* ---- quota.c ---- */

/* Adds what the exchange asks and tells of destinations; `done->grants` is filled when the answers are read. */
void hk_pg_add_quotas(struct hk_store *store, const struct hk_exchange *exchange, struct hk_exchanged *done);

/* ---- settle.c ---- */

/* Adds what one settle takes to the transaction under way; of a row of outbox that was sent only the attempt. */
void hk_pg_settle(struct hk_store *store, const struct hk_settle *settle, int64_t lane);

/* ---- stuck.c ---- */

/* Adds to the transaction under way that the row cannot be settled. */
void hk_pg_stick(struct hk_store *store, const struct hk_settle *settle, int64_t lane, const char *why);
/* What the error that sticks says, with what it is due to; in the call's pool. No error sticks afterwards. NULL: out of memory. */
const char *hk_pg_why_refused(struct hk_store *store);
/* Forgets the error that sticks: the transaction that it undid is tried in another way. Not when the connection is gone. */
void hk_pg_go_on(struct hk_pg *pg);
enum hk_code hk_pg_guards(struct hk_store *store, char out[HK_STORE_GUARDS_MAX], struct hk_err *err);
void hk_pg_stuck_load(struct hk_store *store);
/* Tries again what was refused, each row in a transaction by itself. Errors are left for the next time. */
void hk_pg_unstick(struct hk_store *store, int64_t now_ms);

/* ---- keep.c ---- */

enum hk_code hk_pg_pause(struct hk_store *store, const char *destination, bool paused, const char *actor,
                         const char *reason, struct hk_err *err);
enum hk_code hk_pg_purge(struct hk_store *store, const struct hk_retention *retention, uint32_t limit,
                         uint32_t *out_deleted, uint32_t *out_open, struct hk_err *err);

#endif
