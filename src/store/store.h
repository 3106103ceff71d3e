/* SPDX-License-Identifier: Apache-2.0 */
/* The store: where messages lie. One small vtable; every call blocks, is one transaction, and runs on the thread that
 * opened the store (open one store per thread). tests/contract/store_suite.c is this contract as a test.
 *
 * What a relay does with it:
 *
 *   acquire a lane -> { poll -> scan -> exchange } … -> release
 *
 * - A *lane* is one incarnation of a running relay: an id that is never used again, and so the fencing token. It holds
 *   a lease that every exchange renews. SQLite has one live lane at a time.
 * - *scan* shows heads and changes nothing: no payload is read, nothing is locked. Where ids are not in the order of
 *   commits, scans show what the last poll saw, and a late scan what has turned up behind them (core/exchange.h).
 * - *exchange* settles what is finished and claims what has a free slot, in one transaction. Claiming writes a manifest
 *   (claim id, lane, ids) before anything is sent. A settle is fenced by its manifest: when that is gone (the lane was
 *   taken over) it changes nothing and is reported as stale.
 * - A message found in the manifest of a lane that died (mostly: whose lease ran out) goes to retry, due at once (or at its not_before),
 *   crashes + 1, no attempt charged. That happens inside acquire.
 * - A message's paused time is the store's to know, so that a restart or a hand-over does not lose it: a destination's total
 *   grows while it is paused, a retry row keeps what the total was when its first attempt was settled, and a claim gives
 *   the difference as history.paused_ms.
 * - Time is the store's: `now_ms` (Unix ms) comes back from every call and never goes back, whatever the host's clock does.
 *
 * Errors: HK_BUSY (locked by others for longer than the busy time-out, deadlock, serialization: try again, nothing was
 * done), HK_UNAVAILABLE (cannot be reached, disk full, read-only: nothing was done; try again later), HK_CONFLICT (the lane is gone:
 * acquire a new one), HK_NOMEM, HK_UNSUPPORTED (schema newer than this program), HK_NOTFOUND (no schema: `hikyaku init`),
 * HK_IO (the file is damaged: stop). After any error but HK_CONFLICT the lane still stands unless its lease ran out. */
#ifndef HK_STORE_STORE_H
#define HK_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "core/exchange.h"
#include "core/message.h"
#include "store/definition.h"

struct hk_buf;
struct hk_keyring;
struct hk_store;
struct hk_turns;

enum hk_store_history {
    HK_STORE_HISTORY_FAILURES = 0,
    HK_STORE_HISTORY_ALL,
    HK_STORE_HISTORY_NONE
};

struct hk_store_options {
    uint64_t busy_ms; /* how long to wait for a lock before HK_BUSY; 0 = 5 s */
    struct hk_turns *
        turns; /* of this process's writers (turns.h); a handle holds it as long as it is open. NULL = none */
    bool create;    /* make the schema in a database that does not exist yet */
    bool keep_sent; /* write outbox_sent */
    enum hk_store_history history;
    uint64_t max_payload_bytes; /* a longer payload is not read into memory; 0 = 1 MiB */
    /* Wait for the disk at every commit. Without, a power cut (not a crash) may undo the last commits as a whole: what
     * was settled is sent again, nothing is lost. SQLite: synchronous FULL instead of NORMAL. Set it for operators' acts. */
    bool sync_full;
    bool
        offhand; /* of the operators' side: what is written (figures) may be lost, and nobody waits for a disk */
    /* Let the lease alone tell whether another relay lives. Without, a store that can know of its death earlier (SQLite: a
     * lock that its process held, on FILE-relay) takes over at once. */
    bool lease_only;
    /* Mode `rest`: payloads that leave outbox are sealed with its newest key. NULL: they stay as they are. Lives as long as the store. */
    struct hk_keyring *seal;
    int64_t (*clock_ms)(
        void *arg); /* the host's clock, Unix ms, where it is the store's; NULL = the system's */
    void *clock_arg;
};

/* ---- housekeeping ---- */

/* UINT64_MAX = never. */
struct hk_retention {
    uint64_t sent_ms, sent_rows, discarded_ms, resolved_ms, cancelled_ms, attempts_ms, dead_ms, audit_ms;
};

/* Are relays woken by whoever writes a message (see hk_store_ops.listen)? */
enum hk_store_notify {
    HK_NOTIFY_AS_IT_IS = 0,
    HK_NOTIFY_ON,
    HK_NOTIFY_OFF
};

/* How `hikyaku init` goes about it. */
struct hk_store_init {
    enum hk_store_notify notify; /* HK_UNSUPPORTED for a store that cannot listen */
    bool partition_sent;         /* outbox_sent by the day, where hk_store_ops.partitions */
    bool allow_wal; /* may an application's existing SQLite file be switched to WAL? A new one always is. */
    struct hk_buf
        *print; /* not NULL: change nothing, add the SQL that would run (all of it for a new database) */
};

struct hk_store_inited {
    bool created;      /* the database was not there */
    uint32_t from, to; /* schema versions; 0 = there was none; equal: nothing was to be done */
    bool wal;          /* in use now (SQLite): false asks for the caller's question */
    bool two_phase;    /* HK_NOTIFY_ON, and somebody may PREPARE transactions: those cannot notify */
};

/* Names of database roles; NULL = none is wanted. */
struct hk_store_roles {
    const char *app, *relay, *viewer;
    bool notify;     /* and what being woken takes */
    bool partitions; /* and what outbox_sent by the day takes */
};

/* ---- being woken ---- */

struct hk_listener;

enum hk_listening {
    HK_LISTENING_NOT_YET = 0,
    HK_LISTENING_YES,
    HK_LISTENING_NO /* tries again by itself */
};

#define HK_LISTENING_WHY_MAX 300

/* What a poll may take into account. */
struct hk_store_hint {
    bool woken;  /* the listener says that there is something new: look, however shortly ago it was looked */
    bool all;    /* tell all there is, be it news or not */
    bool hungry; /* the listener listens, and there is nothing to do: whoever writes next shall say so */
};

#define HK_STORE_GUARDS_MAX 480

/* The encoding, and the resolution, of what was erased. */
#define HK_ERASED "erased"

/* What a lane that is gone had in hand, by destination. All of it may have been sent, and will be sent again. */
enum {
    HK_TAKEN_MAX = 32, /* what is more is added to the last one */
    HK_TAKEN_TEXT = 256
};

struct hk_taken_over {
    int64_t lane;
    char relay[HK_TAKEN_TEXT], destination[HK_TAKEN_TEXT]; /* "" = too long; destination: or by route */
    int64_t since_ms;                                      /* its oldest claim; 0 = it had nothing in hand */
    uint64_t messages;
};

struct hk_takings {
    struct hk_taken_over items[HK_TAKEN_MAX];
    size_t n;
};

/* For stores. */
void hk_takings_add(struct hk_takings *takings, const struct hk_taken_over *one);
/* What the history says of each of them. It is no attempt: its number is 0, and nothing is charged. */
#define HK_RELAY_DIED "relay died while sending; may have arrived"

struct hk_store_ops {
    const char *name; /* "sqlite" */
    bool partitions;  /* init.partition_sent is heeded */
    bool shared;      /* several lanes live at once: exchange.quotas are heeded */
    /* Creates or migrates the schema, one transaction per version; may be repeated. HK_CONFLICT: a table of ours
     * exists and is not ours. HK_UNSUPPORTED: the schema is newer than this program. */
    enum hk_code (*init)(const char *url, const struct hk_store_init *how, struct hk_store_inited *out,
                         struct hk_err *err);
    /* Adds the SQL that gives each role what it needs and no more; does not connect. NULL: this kind has no roles. */
    enum hk_code (*grants)(const char *url, const struct hk_store_roles *roles, struct hk_buf *out,
                           struct hk_err *err);
    /* `url` as the user wrote it. Checks the schema's version: HK_NOTFOUND for none and for an older one. */
    enum hk_code (*open)(const char *url, const struct hk_store_options *options, struct hk_store **out_store,
                         struct hk_err *err);
    void (*close)(struct hk_store *store); /* accepts NULL */

    /* A new lane with a fresh lease. HK_BUSY: another one lives (its name and the time left are in `err`).
     * Takes over what dead lanes left: those whose lease is over, or whose process is known to be gone. `boot` is random per process. */
    enum hk_code (*acquire)(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                            int64_t *out_lane, int64_t *out_now_ms, struct hk_err *err);
    /* What acquire and poll took over since this was last asked. */
    void (*taken_over)(struct hk_store *store, struct hk_takings *out);
    /* Hands the lane back: what its manifests still name returns to where it was, uncharged. */
    enum hk_code (*release)(struct hk_store *store, int64_t lane, struct hk_err *err);

    /* Results belong to the store and are valid until its next call. */
    enum hk_code (*poll)(struct hk_store *store, const struct hk_poll **out, struct hk_err *err);
    enum hk_code (*scan)(struct hk_store *store, const struct hk_scan *scan, const struct hk_heads **out,
                         struct hk_err *err);
    enum hk_code (*held_keys)(struct hk_store *store, const struct hk_held_key **out, size_t *out_n,
                              struct hk_err *err);
    enum hk_code (*exchange)(struct hk_store *store, const struct hk_exchange *exchange,
                             const struct hk_exchanged **out, struct hk_err *err);

    /* A person or the policy pauses a destination; the relay sees it in its next poll. */
    enum hk_code (*pause)(struct hk_store *store, const char *destination, bool paused, const char *actor,
                          const char *reason, struct hk_err *err);

    /* Being woken, beside polling, which never relies on it. NULL, all of these: this kind of store only polls.
     * `listen` starts a thread that connects, and connects again, in its own time; nothing waits for it. `wake` runs
     * on that thread, when something may be new and when what `listening` says has changed; not after `unlisten`. */
    enum hk_code (*listen)(const char *url, void (*wake)(void *arg), void *arg,
                           struct hk_listener **out_listener, struct hk_err *err);
    enum hk_listening (*listening)(struct hk_listener *listener, char out_why[HK_LISTENING_WHY_MAX]);
    void (*unlisten)(struct hk_listener *listener); /* accepts NULL */
    /* For the next poll, on the store's thread. Every kind has this one. */
    void (*hint)(struct hk_store *store, const struct hk_store_hint *hint);

    /* Destinations that are kept in the store. Of those that were not changed since version `known` the text is not read: its ptr
     * is NULL. Like every answer it is valid until the next call. */
    enum hk_code (*definitions)(struct hk_store *store, int64_t known, const struct hk_definitions **out,
                                struct hk_err *err);

    /* What others have put on our tables (triggers, rules, row-level security, foreign keys) that may keep a row from being taken
     * away: one line, "" = nothing. */
    enum hk_code (*guards)(struct hk_store *store, char out[HK_STORE_GUARDS_MAX], struct hk_err *err);

    /* Deletes at most `limit` rows that have outlived their retention; *out_deleted < limit: nothing more to do. Of open dead
     * letters, and of the audit itself, the audit is told how many went; *out_open (may be NULL): how many of those letters. */
    enum hk_code (*purge)(struct hk_store *store, const struct hk_retention *retention, uint32_t limit,
                          uint32_t *out_deleted, uint32_t *out_open, struct hk_err *err);
};

extern const struct hk_store_ops hk_store_sqlite;
extern const struct hk_store_ops hk_store_postgres; /* only in a build with PostgreSQL */

/* By the URL's scheme, from the registry (store/kinds.h); NULL and HK_UNSUPPORTED for one that this build does not have. */
const struct hk_store_ops *hk_store_by_url(const char *url, struct hk_err *err);
/* What a URL names, for people: without password and parameters. */
#define HK_STORE_PLACE_MAX 512
const char *hk_store_place(const char *url, char out[HK_STORE_PLACE_MAX]);

#endif
