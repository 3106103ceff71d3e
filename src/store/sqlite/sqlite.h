/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store from inside: what its files share.
 *
 *   sqlite.c    open, close, errors, transactions, busy handling, time
 *   sql/        every SQL statement (tools/sql makes C of them)
 *   schema.c    init: create and migrate
 *   lane.c      acquire, take-over, release
 *   lock.c      the lock that tells a dead owner from a living one
 *   scan.c      poll, scan, held keys: never writes
 *   row.c       rows, which may hold anything, to heads and messages
 *   exchange.c  the one transaction that settles and claims
 *   settle.c    one settle, by kind
 *   large.c     payloads that are too large for a statement to hold
 *   rest.c      payloads that are sealed when they leave outbox
 *   wal.c       is the log that we write the one that others read?
 *   stuck.c     rows that cannot be taken away
 *   keep.c      pause and purge
 *   audit.c     the trail of acts
 *
 * What this store's manifests name is kept in memory by store/manifests.c.
 *
 * Errors stick: after the first one (hk_sq_ok is false) the helpers below do nothing, and the call ends in
 * hk_sq_end, which commits or rolls back and says what went wrong. */
#ifndef HK_STORE_SQLITE_SQLITE_H
#define HK_STORE_SQLITE_SQLITE_H

#include <stdio.h>

#include <hikyaku/rng.h>
#include <sqlite3.h>

#include "base/pool.h"
#include "store/manifests.h"
#include "store/sqlite/stmt.h"
#include "store/store.h"
#include "store/stuck.h"

enum {
    HK_SQ_HEAD_TEXT_MAX = 8 * 1024, /* a longer destination, key … is refused as malformed */
    HK_SQ_TEXT_MAX = 256 * 1024,    /* the same for headers and the like; payloads have their own limit */
    HK_SQ_WHERE_MAX = 200,
    HK_SQ_LARGE = 1024 * 1024 /* a payload over this and over max_payload is moved in pieces */
};

/* The host's clock, made never to go back. */
struct hk_sq_clock {
    int64_t (*read_ms)(void *arg);
    void *arg;
    int64_t high_ms;  /* the latest time that was given out */
    int64_t wall_ms;  /* what the clock said then, when it lags behind */
    int64_t saved_ms; /* high_ms as it stands in outbox_meta */
    int64_t
        resets; /* how often operators have set the store's time back, as outbox_meta has it; -1 = not read yet */
    int64_t told_ms; /* by the clock: when a poll last said that it is behind; 0 = it is not */
};

/* Leaves room for others' transactions, see make_way. Monotonic. */
struct hk_sq_courtesy {
    int64_t began_us, ended_us; /* our last writing transaction */
    int64_t until_us;           /* others are about until then */
    int data_version;           /* as of then; 0 = not looked yet */
    bool others;                /* somebody else has committed since we looked for a reset of the clock */
};

/* A file beside the database, as it was when it was opened; inode 0 = not known. */
struct hk_sq_side {
    uint64_t device, inode;
};

/* Settles that were committed apart from the rest of their exchange, which failed after them. Who asks for them again is told
 * that they are done. */
struct hk_sq_apart {
    struct {
        int64_t claim, id;
        enum hk_source source;
    } * items;

    size_t n, room;
};

/* A transaction that several calls share: what jobs.c says. */
enum hk_sq_held {
    HK_SQ_FREE = 0, /* each call has its own */
    HK_SQ_HELD,     /* calls join it; hk_sq_end leaves it open */
    HK_SQ_LOST      /* one of them failed: it is rolled back, and all others fail until it is given up */
};

struct hk_store {
    sqlite3 *db;
    enum hk_sq_held held;
    bool has_turn; /* of options.turns */
    char *path;
    struct hk_sq_side wal, shm;
    bool cut_off;     /* they are not those any more: wal.c */
    int64_t moved_ms; /* since when the file is not where it was; 0 = it is */
    struct hk_store_options options;
    struct hk_sq_clock clock;
    struct hk_rng rng;
    int64_t busy_since_ms; /* monotonic */
    struct hk_sq_courtesy courtesy;
    sqlite3_stmt *stmts[HK_SQ_NSTMTS];
    int rc; /* SQLite's result code that sticks */
    int os_errno;
    char where[HK_SQ_WHERE_MAX]; /* SQLite's words about it */
    struct hk_pool
        pools[2]; /* this call's results, and those of the last one, which arguments may point into */
    unsigned pool;
    struct hk_manifests claims;
    struct hk_stuck stuck;
    struct hk_sq_apart apart;
    int data_version;
    bool polled;
    int64_t lane;   /* ours, or 0 */
    int lock_fd;    /* when lock_tag is not "" */
    bool lock_held; /* the last try found it in another's hands */
    char lock_tag[128];
    int64_t definitions; /* their version, as the last poll that found a change saw it */
    bool own_change;     /* we changed what a poll shows, which data_version does not tell */
    bool aside;          /* outbox_aside may have rows, in the transaction under way */
    struct hk_takings takings;
    struct hk_poll poll;
    struct hk_heads heads;
    struct hk_exchanged exchanged;
};

/* Begins a call: results of the last but one are freed, no error sticks. */
void hk_sq_call(struct hk_store *store);
/* The same, but results of earlier calls stay. */
void hk_sq_again(struct hk_store *store);
struct hk_pool *hk_sq_pool(struct hk_store *store);
void *hk_sq_alloc(struct hk_store *store, size_t count, size_t bytes); /* NULL: the error sticks */

int hk_sq_data_version(struct hk_store *store); /* changes when others commit */
bool hk_sq_begin_write(struct hk_store *store);
bool hk_sq_begin_read(struct hk_store *store);
/* Commits, or rolls back when an error sticks. Fills `err` with `doing` and what to do about it. */
enum hk_code hk_sq_end(struct hk_store *store, const char *doing, struct hk_err *err);
void hk_sq_rollback(struct hk_store *store);

bool hk_sq_ok(const struct hk_store *store);
void hk_sq_fail(struct hk_store *store, int rc); /* keeps the first */
/* What SQLite's `rc` is for our callers, and in `err` for a person. */
enum hk_code hk_sq_error(const char *path, int rc, int os_errno, const char *doing, const char *words,
                         struct hk_err *err);

/* Ready to be bound; NULL when an error sticks. All of the following accept NULL. */
sqlite3_stmt *hk_sq_use(struct hk_store *store, enum hk_sq_id id);
void hk_sq_bind_i64(struct hk_store *store, sqlite3_stmt *q, int i, int64_t value);
void hk_sq_bind_u64(struct hk_store *store, sqlite3_stmt *q, int i, uint64_t value); /* cut to INT64_MAX */
/* Not copied; empty is ''. */
void hk_sq_bind_text(struct hk_store *store, sqlite3_stmt *q, int i, struct hk_str s);
void hk_sq_bind_cstr(struct hk_store *store, sqlite3_stmt *q, int i, const char *s);
/* Empty is NULL. */
void hk_sq_bind_text_or_null(struct hk_store *store, sqlite3_stmt *q, int i, struct hk_str s);
/* TEXT, or a BLOB if it holds a NUL byte. */
void hk_sq_bind_bytes_or_null(struct hk_store *store, sqlite3_stmt *q, int i, struct hk_str s);
bool hk_sq_row(struct hk_store *store, sqlite3_stmt *q); /* steps to the next row; resets at the end */
void hk_sq_done(sqlite3_stmt *q);                        /* no more rows wanted */
int hk_sq_run(struct hk_store *store, sqlite3_stmt *q);  /* to its end; rows changed */

int64_t hk_sq_now(struct hk_store *store);
/* The clock itself, at most hk_sq_now: not_before and expires_at go by it. */
int64_t hk_sq_clock(struct hk_store *store);
/* By how much the clock is behind `now_ms`, which the store gave out a moment ago. The clock may have moved on since: then 0. */
uint64_t hk_sq_behind(const struct hk_store *store, int64_t now_ms);
void hk_sq_clock_lift(
    struct hk_store *store); /* to the high-water time of outbox_meta; or down to it, after a reset */
/* Inside a transaction that writes: the store's time is `clock_ms` from now on, for everybody. */
void hk_sq_clock_reset(struct hk_store *store, int64_t clock_ms);
/* Has somebody done so since the time was last lifted? Then what the relay knows of times is wrong. */
bool hk_sq_clock_was_reset(struct hk_store *store);
void hk_sq_clock_save(struct hk_store *store); /* when it moved by more than a second */

/* row.c */
struct hk_str hk_sq_text(struct hk_store *store, sqlite3_stmt *q, int column); /* copied; "" for NULL */
void hk_sq_head(struct hk_store *store, sqlite3_stmt *q, enum hk_source source, struct hk_head *out);
void hk_sq_message(struct hk_store *store, sqlite3_stmt *q, enum hk_source source, struct hk_message *out);
/* 0 for NULL and ''; false: it does not parse. */
bool hk_sq_time(sqlite3_stmt *q, int column, int64_t *out_ms);
bool hk_sq_expiry(sqlite3_stmt *q, int column, int64_t *out_ms); /* 0 = never */

/* settle.c */
void hk_sq_settle(struct hk_store *store, const struct hk_settle *settle, int64_t now_ms);
/* Twelve columns of outbox_attempts, from started_ms on, as parameters from `at` on. */
void hk_sq_bind_attempt(struct hk_store *store, sqlite3_stmt *q, int at,
                        const struct hk_attempt_record *attempt, int64_t now_ms);
/* Into outbox_sent: the rows from the settle's id to `last_id`, all of which were sent alike. */
void hk_sq_keep_sent(struct hk_store *store, const struct hk_settle *settle, int64_t last_id, int64_t now_ms);
/* From outbox to outbox_retry because its relay died with it. */
void hk_sq_orphan(struct hk_store *store, int64_t id, int64_t now_ms);

/* rest.c: hk_rest and hk_rest_encoding, which copying statements call. What SQLite says. */
int hk_sq_rest_register(struct hk_store *store);

/* large.c */
enum hk_sq_table {
    HK_SQ_OUTBOX,
    HK_SQ_RETRY,
    HK_SQ_LETTERS,
    HK_SQ_VERSIONS,
    HK_SQ_CANCELS,
    HK_SQ_ASIDE
};

struct hk_sq_place {
    enum hk_sq_table table;
    int64_t id; /* the rowid */
};

/* How many bytes the payload has, when they are too many for a statement; else 0. Not of dead_letter_versions. */
int hk_sq_large(struct hk_store *store, struct hk_sq_place row);
/* Into the row `to`, which was written without payload. `bytes` is what hk_sq_large said; 0: nothing to do. */
void hk_sq_copy_large(struct hk_store *store, struct hk_sq_place from, struct hk_sq_place to, int bytes);
/* Before a statement that may change several rows replaces the payload: such a statement keeps what it replaces until it ends. */
void hk_sq_clear_large(struct hk_store *store, struct hk_sq_place row);
/* Before a row of outbox_retry or dead_letters is changed: a large payload waits elsewhere. */
void hk_sq_set_aside(struct hk_store *store, struct hk_sq_place row);
/* After that: all that wait go back to their rows. */
void hk_sq_put_back(struct hk_store *store);

/* wal.c */
void hk_sq_note_sides(struct hk_store *store);
/* Then nothing may be written, and nothing is when it is closed. */
bool hk_sq_is_cut_off(struct hk_store *store);
enum hk_code hk_sq_cut_off(const struct hk_store *store, struct hk_err *err);

/* stuck.c */
/* A trigger made a statement of ours change nothing, though its row is there: an error that sticks. */
void hk_sq_stays(struct hk_store *store, const char *table);
/* Did the statement that made `changes` leave the row where it is? Then that is an error. */
void hk_sq_must_change(struct hk_store *store, int changes, enum hk_source source, int64_t id,
                       const char *table);
/* Deletes rows of outbox from `first` to `last`, all of which may go. */
void hk_sq_drop_range(struct hk_store *store, int64_t first, int64_t last);
/* Is the error that sticks one of a trigger or a constraint, which concerns single rows? */
bool hk_sq_refused(const struct hk_store *store);
/* Notes, in the transaction under way, that the row cannot be settled. */
void hk_sq_stick(struct hk_store *store, const struct hk_settle *settle, int64_t now_ms, const char *why);
void hk_sq_stuck_load(struct hk_store *store);
/* Tries again what was refused, each row in a transaction by itself. Errors are left for the next time. */
void hk_sq_unstick(struct hk_store *store, int64_t now_ms);

/* lane.c */
struct hk_lane_watch;
/* HK_OK: every relay that holds a lane is dead. As hk_lane_watch. After hk_sq_lock. */
enum hk_code hk_sq_lanes_dead(struct hk_store *store, struct hk_lane_watch *watch, uint64_t *lease_ms,
                              struct hk_err *err);

/* audit.c */
struct hk_audit_row;
/* Adds the row to the trail; its prev and hash are filled in here. */
void hk_sq_audit(struct hk_store *store, const struct hk_audit_row *row);
uint32_t hk_sq_purge_audit(struct hk_store *store, int64_t now_ms, uint64_t keep_ms,
                           uint32_t limit); /* rows deleted */

/* schema.c */
enum hk_code hk_sq_init(const char *url, const struct hk_store_init *how, struct hk_store_inited *out,
                        struct hk_err *err);
/* HK_NOTFOUND, HK_CONFLICT, HK_UNSUPPORTED: as store.h says of open. */
enum hk_code hk_sq_check_schema(sqlite3 *db, const char *path, struct hk_err *err);
/* The path in "sqlite:PATH"; HK_INVALID, HK_NOMEM. Free it with hk_mem_free. */
enum hk_code hk_sq_path(const char *url, char **out_path, struct hk_err *err);
/* Opens with our settings and SQLite's own busy handler. `created`: the file was not there, or empty. */
enum hk_code hk_sq_connect(const char *path, bool create, sqlite3 **out_db, bool *out_created,
                           struct hk_err *err);

/* lock.c */
/* Takes the lock if it is free, and if there are locks here; lock_tag tells. */
void hk_sq_lock(struct hk_store *store);
void hk_sq_unlock(struct hk_store *store);

void hk_sq_taken_over(struct hk_store *store, struct hk_takings *out);
enum hk_code hk_sq_acquire(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                           int64_t *out_lane, int64_t *out_now_ms, struct hk_err *err);
enum hk_code hk_sq_release(struct hk_store *store, int64_t lane, struct hk_err *err);
/* admin_define.c */
int64_t hk_sq_definitions_version(struct hk_store *store);
enum hk_code hk_sq_definitions(struct hk_store *store, int64_t known, const struct hk_definitions **out,
                               struct hk_err *err);

void hk_sq_hint(struct hk_store *store, const struct hk_store_hint *hint);
enum hk_code hk_sq_poll(struct hk_store *store, const struct hk_poll **out, struct hk_err *err);
enum hk_code hk_sq_scan(struct hk_store *store, const struct hk_scan *scan, const struct hk_heads **out,
                        struct hk_err *err);
enum hk_code hk_sq_held_keys(struct hk_store *store, const struct hk_held_key **out, size_t *out_n,
                             struct hk_err *err);
enum hk_code hk_sq_exchange(struct hk_store *store, const struct hk_exchange *exchange,
                            const struct hk_exchanged **out, struct hk_err *err);
enum hk_code hk_sq_guards(struct hk_store *store, char out[HK_STORE_GUARDS_MAX], struct hk_err *err);
enum hk_code hk_sq_pause(struct hk_store *store, const char *destination, bool paused, const char *actor,
                         const char *reason, struct hk_err *err);
enum hk_code hk_sq_purge(struct hk_store *store, const struct hk_retention *retention, uint32_t limit,
                         uint32_t *out_deleted, uint32_t *out_open, struct hk_err *err);

#endif
