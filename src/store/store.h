/* SPDX-License-Identifier: Apache-2.0 */
/* The store keeps messages. It is one small vtable. Every call blocks, is one transaction, and runs on the thread that opened
 * the store (open one store per thread). tests/contract/store_suite.c tests this contract.
 *
 * A relay uses it like this:
 *
 *   acquire a lane -> { poll -> scan -> exchange } … -> release
 *
 * - A *lane* is one incarnation of a running relay: an id that is never used again, and so the fencing token. It holds
 *   a lease that every exchange renews. SQLite has one live lane at a time.
 * - *scan* returns heads and changes nothing: it reads no payload and locks nothing. Where ids are not in the order of
 *   commits, scans show rows that the last poll saw, and a late scan shows rows that became visible behind them (core/exchange.h).
 * - *exchange* settles finished messages and claims chosen ones, in one transaction. A claim writes a manifest (claim id, lane,
 *   ids) before the relay sends anything. The manifest fences its settles: if it is gone (another relay took over the lane), a
 *   settle changes nothing and is reported as stale.
 * - acquire takes over lanes that died (usually: whose lease ran out). Messages in their manifests go to retry, due at once (or at
 *   their not_before), with crashes + 1 and no attempt charged.
 * - The store keeps a message's paused time, so that a restart or take-over does not lose it. A destination's total grows while
 *   the destination is paused; a retry row keeps the total at the time of its first settle; a claim returns the difference as
 *   history.paused_ms.
 * - The store keeps the time: every call returns `now_ms` (Unix ms), which never goes back, whatever the host's clock does.
 *
 * Errors: HK_BUSY (locked by others for longer than the busy time-out, deadlock, serialization: nothing was done, retry),
 * HK_UNAVAILABLE (cannot be reached, disk full, read-only: nothing was done, retry later), HK_CONFLICT (the lane is gone:
 * acquire a new one), HK_NOMEM, HK_UNSUPPORTED (schema newer than this program), HK_NOTFOUND (no schema: `hikyaku init`),
 * HK_IO (the file is damaged: stop). After any error but HK_CONFLICT the lane is still valid, unless its lease ran out. */
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
    /* Wait for the disk at every commit. Without it, a power cut (not a crash) may undo the last commits as a whole: relays send
     * settled messages again, and no message is lost. SQLite: synchronous FULL instead of NORMAL. Set it for operators' acts. */
    bool sync_full;
    bool offhand; /* operators' side: its writes (figures) may be lost, so it never waits for a disk */
    /* Judge by the lease alone whether another relay lives. Without it, a store that learns of a death earlier (SQLite: from the
     * lock of its process on FILE-relay) takes over at once. */
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

/* Does the writer of a message wake relays (see hk_store_ops.listen)? */
enum hk_store_notify {
    HK_NOTIFY_AS_IT_IS = 0,
    HK_NOTIFY_ON,
    HK_NOTIFY_OFF
};

/* Options of `hikyaku init`. */
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
    bool wal;          /* in use now (SQLite); false: the caller has to ask the user */
    bool two_phase;    /* HK_NOTIFY_ON, and somebody may PREPARE transactions: those cannot notify */
};

/* Names of database roles; NULL = none is wanted. */
struct hk_store_roles {
    const char *app, *relay, *viewer;
    bool notify;     /* also the rights for NOTIFY */
    bool partitions; /* also the rights for daily partitions of outbox_sent */
};

/* ---- being woken ---- */

struct hk_listener;

enum hk_listening {
    HK_LISTENING_NOT_YET = 0,
    HK_LISTENING_YES,
    HK_LISTENING_NO /* tries again by itself */
};

#define HK_LISTENING_WHY_MAX 300

/* Hints for the next poll. */
struct hk_store_hint {
    bool woken;  /* the listener reported something new: look again, however recent the last look */
    bool all;    /* report everything, even if nothing changed */
    bool hungry; /* the listener listens, and the relay is idle: ask the next writer for a notification */
};

#define HK_STORE_GUARDS_MAX 480

/* The encoding of an erased payload, and the resolution of an erased letter. */
#define HK_ERASED "erased"

/* Messages that a dead lane had in hand, by destination. Each may have been sent, and will be sent again. */
enum {
    HK_TAKEN_MAX = 32, /* further ones are added to the last item */
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
/* The history's entry for each of them. It does not count as an attempt: its number is 0, and nothing is charged. */
#define HK_RELAY_DIED "relay died while sending; may have arrived"

struct hk_store_ops {
    const char *name; /* "sqlite" */
    bool partitions;  /* init.partition_sent is heeded */
    bool shared;      /* several lanes live at once: exchange.quotas are heeded */
    /* Creates or migrates the schema, one transaction per version; may be repeated. HK_CONFLICT: another program's table has
     * one of our names. HK_UNSUPPORTED: the schema is newer than this program. */
    enum hk_code (*init)(const char *url, const struct hk_store_init *how, struct hk_store_inited *out,
                         struct hk_err *err);
    /* Adds the SQL that grants each role the rights that it needs and no others; does not connect. NULL: this kind has no roles. */
    enum hk_code (*grants)(const char *url, const struct hk_store_roles *roles, struct hk_buf *out,
                           struct hk_err *err);
    /* `url` as the user wrote it. Checks the schema's version: HK_NOTFOUND for none and for an older one. */
    enum hk_code (*open)(const char *url, const struct hk_store_options *options, struct hk_store **out_store,
                         struct hk_err *err);
    void (*close)(struct hk_store *store); /* accepts NULL */

    /* Acquires a new lane with a fresh lease. HK_BUSY: another lane lives (its name and the time left are in `err`). Takes over the
     * messages of dead lanes, whose lease ran out or whose process is known to be gone. `boot` is random per process. */
    enum hk_code (*acquire)(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                            int64_t *out_lane, int64_t *out_now_ms, struct hk_err *err);
    /* The messages that acquire and poll took over since the last call of this. */
    void (*taken_over)(struct hk_store *store, struct hk_takings *out);
    /* Hands the lane back: messages in its manifests return to where they were, uncharged. */
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

    /* Notifications, beside polling, which never relies on them. All NULL: this kind of store only polls.
     * `listen` starts a thread that connects, and reconnects, by itself; no call waits for it. `wake` runs on that thread when
     * something may be new, and when the answer of `listening` changed; never after `unlisten`. */
    enum hk_code (*listen)(const char *url, void (*wake)(void *arg), void *arg,
                           struct hk_listener **out_listener, struct hk_err *err);
    enum hk_listening (*listening)(struct hk_listener *listener, char out_why[HK_LISTENING_WHY_MAX]);
    void (*unlisten)(struct hk_listener *listener); /* accepts NULL */
    /* For the next poll, on the store's thread. Every kind has this one. */
    void (*hint)(struct hk_store *store, const struct hk_store_hint *hint);

    /* Destinations that are kept in the store. A destination that did not change since version `known` comes without its text
     * (ptr NULL). Like every answer this one is valid until the next call. */
    enum hk_code (*definitions)(struct hk_store *store, int64_t known, const struct hk_definitions **out,
                                struct hk_err *err);

    /* Objects of others on our tables (triggers, rules, row-level security, foreign keys) that may stop us from removing a row:
     * one line, "" = none. */
    enum hk_code (*guards)(struct hk_store *store, char out[HK_STORE_GUARDS_MAX], struct hk_err *err);

    /* Deletes at most `limit` rows that are past their retention; *out_deleted < limit: no more are left. If it deletes open dead
     * letters or audit rows, it adds an audit row with their number. *out_open (may be NULL): the number of those letters. */
    enum hk_code (*purge)(struct hk_store *store, const struct hk_retention *retention, uint32_t limit,
                          uint32_t *out_deleted, uint32_t *out_open, struct hk_err *err);
};

extern const struct hk_store_ops hk_store_sqlite;
extern const struct hk_store_ops hk_store_postgres; /* only in a build with PostgreSQL */

/* By the URL's scheme, from the registry (store/kinds.h); NULL and HK_UNSUPPORTED for one that this build does not have. */
const struct hk_store_ops *hk_store_by_url(const char *url, struct hk_err *err);
/* The place that a URL names, for people: without password and parameters. */
#define HK_STORE_PLACE_MAX 512
const char *hk_store_place(const char *url, char out[HK_STORE_PLACE_MAX]);

#endif
