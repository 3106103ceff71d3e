/* SPDX-License-Identifier: Apache-2.0 */
/* What engine and store say to each other: plain values, so that core needs to know nothing of stores. What each call
 * means is in store/store.h. */
#ifndef HK_CORE_EXCHANGE_H
#define HK_CORE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/message.h"

/* The error of a message that its relay gave back while it was being sent. It is due at once. */
#define HK_STOPPED_SENDING "the relay stopped while it was sending; it may have arrived"

/* The cause of one that waits for a key of ours. It is no attempt, and never a reason to die. */
#define HK_CAUSE_KEY_MISSING "KEY_MISSING"

/* ---- reading ---- */

#define HK_FIRST_ID INT64_MIN /* before the first row, whatever its id */

struct hk_poll_dest {
    struct hk_str name;
    int64_t open_until_ms; /* as the last hk_circuit had it; 0 = closed, resumed since, or nobody ever said */
    int64_t retry_due_ms;  /* earliest unclaimed retry row; INT64_MAX = none */
    bool paused;
};

/* What is there to do. `changed` false: nothing was committed since the last poll, neither by others nor by this store's
 * own exchange (a mere renewal is nothing), acquire or pause; the rest is not filled.
 *
 * Where ids are not in the order of commits (PostgreSQL: a sequence hands them out, transactions end when they like) a poll
 * is also the horizon: until the next one no scan of outbox shows a row that became visible after it. So of two messages
 * of a key, written one after the other, never only the second is seen: if the first lies at an id that was passed already,
 * the poll that uncovers them says `late`, and the engine reads the late ones before it goes on. On SQLite, with one writer
 * at a time, ids are in the order of commits, and `late` and `reset` are false for ever. */
struct hk_poll {
    bool changed;
    bool
        late; /* rows may have become visible at ids that scans have passed: a scan with `late` set gives them */
    /* The lane was given more of the outbox (shards), or the store is another server now, a standby that may know less and give
     * the same ids to other rows: all is to be read anew. Until it was said, nothing can be claimed. */
    bool reset;
    int64_t now_ms;
    uint32_t late_ms; /* the store's time may be later by so much: it was reckoned, not asked for */
    /* By so much the clock itself is behind now_ms, which never goes back: it was ahead once, or was set back. Leases and waits
     * go by now_ms; not_before and expires_at, which the application named, by the clock. */
    uint64_t behind_ms;
    /* Another number whenever a person has acted on a retry row or a dead letter (cancel, discard, requeue …) and so may
     * have freed a key, or holds one: the audit's last id will do. Relays' own settles do not count. */
    int64_t acts;
    int64_t definitions; /* the version of the destinations that are kept in the store; 0 = none ever were */
    int64_t last_id;     /* highest id in outbox, or above it; HK_FIRST_ID = empty */
    struct hk_poll_dest *dests; /* those with retry rows, the paused ones, and those whose breaker is open */
    size_t n_dests;
};

/* A retry scan gives only what is due and not claimed, in the order (due, id); an outbox scan all there is, claimed or
 * not, in the order of ids.
 *
 * A forced scan (retry; destination and key NULL) gives those of all destinations, in the same order.
 *
 * A late scan (outbox; destination and key NULL) gives, in the order of ids, rows that became visible since the last late
 * scan that was finished, at ids which earlier scans have passed, and that no manifest of this lane names. Rows that were
 * seen before may come again. It begins at HK_FIRST_ID and goes on behind `last_id` while `more` is set; what it covers is
 * fixed when it begins (as of the poll before it): later pages show nothing that became visible since. When it ends without
 * `more` the store regards all of that as given; one that was begun and never ended is begun again by the next one. */
struct hk_scan {
    enum hk_source source;
    bool late;
    int64_t after_id; /* outbox: only ids above; HK_FIRST_ID = from the first, whatever its id;
                         retry: with after_due_ms, the keyset (due, id) */
    int64_t after_due_ms;
    const char *
        destination; /* NULL = any (outbox); else those that name it and, in outbox, those that name none (""),
                                whose route only the engine knows; a retry scan names one */
    const char *key; /* NULL = any; else `destination` is given, too */
    bool forced;     /* retry, of any destination: only those that a person has forced (hk_store_admin_ops.retry) */
    uint32_t limit;
};

struct hk_heads {
    struct hk_head *items;
    size_t n;
    bool more;       /* the limit was reached */
    int64_t last_id; /* of the last item, to go on from; as it was given when there is none */
    int64_t last_due_ms;
    int64_t now_ms;
    uint32_t late_ms;   /* as in hk_poll */
    uint64_t behind_ms; /* as in hk_poll */
};

/* Keys that earlier messages hold: a retry row (claimed or not; but a row that was only deferred does not hold its key:
 * a scheduled message joins the order when it is due), or a dead head of a destination that blocks. The
 * store knows nothing of destinations' settings: it gives both, and the engine leaves out what does not block.
 * One entry for each row: the engine counts them. */
struct hk_held_key {
    struct hk_str destination, key;
    bool dead; /* a dead letter that is still open; else a retry row */
};

/* ---- exchange ---- */

/* A row that the relay wants in its next claim. The claim itself is the manifest, known by its id. */
struct hk_want {
    enum hk_source source;
    int64_t id;
    bool
        payload; /* false: it will not be sent (expired, unknown destination, too large), leave the payload out */
};

enum hk_settle_kind {
    HK_SETTLE_SENT = 0,
    /* A failed attempt: into outbox_retry, due at due_ms; one that was made sets crashes back to 0. Also a send that the relay
     * ended itself and that may have arrived: then no attempt counts as made. */
    HK_SETTLE_RETRY,
    HK_SETTLE_DEAD,    /* into dead_letters, atomically; a requeued message reopens its letter instead */
    HK_SETTLE_RELEASE, /* back to where it was, as if never claimed */
    HK_SETTLE_DEFER, /* not before due_ms: into outbox_retry, no attempt; what the row's history counts never shrinks */
    /* one retry row per destination, due now; the original goes. From a retry row they inherit all else, above all that it
     * was only deferred: then they do not hold their keys */
    HK_SETTLE_FAN_OUT
};

/* Whatever goes from outbox to outbox_retry is never due before its own not_before. */

/* One attempt, for the history. Texts may be empty. */
struct hk_attempt_record {
    bool made; /* false: nothing was sent (expired, unknown destination …) and no attempt row is written */
    int64_t started_ms;
    uint64_t duration_ms;
    int status;
    enum hk_class failure_class;
    struct hk_str cause;            /* reason code of this attempt */
    struct hk_str error;            /* one line */
    struct hk_str request_headers;  /* JSON object, secrets masked */
    struct hk_str response_headers; /* JSON object */
    struct hk_str response_body;    /* the first 4 KiB */
    struct hk_str address;          /* connected to */
    bool possibly_delivered;
};

struct hk_settle {
    int64_t claim;
    enum hk_source source;
    int64_t id;
    enum hk_settle_kind kind;
    int64_t due_ms;            /* RETRY, DEFER */
    struct hk_history history; /* as it stands after this attempt; the store keeps paused_ms by itself */
    int64_t first_failed_ms;
    struct hk_str message_id; /* for logs; "" = there was no memory to keep it */
    uint32_t life;
    struct hk_str destination; /* resolved: what the row may have left to a route */
    struct hk_str reason;      /* DEAD: reason code */
    struct hk_attempt_record attempt;
    const struct hk_str *fan_out; /* FAN_OUT */
    size_t n_fan_out;
};

/* What a destination may get from all relays of a store together (engine_quota.c); only of stores that are shared. A
 * bucket of `burst` tokens that fills at `rate_per_s`, or the leave to probe it while it is broken, which is another one. */
struct hk_quota {
    const char *destination;
    bool probe;
    double rate_per_s, burst;
    uint32_t want;
};

struct hk_grant {
    uint32_t n;       /* tokens, at most as many as were wanted */
    int64_t ready_ms; /* when there will be another one; store time */
};

/* How many requests a destination may have in flight, of all relays of a store together (engine_seats.c); only of stores that are
 * shared. The store keeps a book of the seats that each living lane has. What a lane asks for it may ask for again: from
 * then on it has `hold`, however many it had, and as many more as can be had, up to `want`. Never are more than `most` given. */
struct hk_seat_ask {
    const char *destination;
    uint32_t most, hold, want;
};

#define HK_SEATS_NO_LIMIT UINT32_MAX

struct hk_seats_given {
    bool written;   /* false: another relay had the book, and nothing of it was changed */
    uint32_t held;  /* by this lane, from now on; at least `hold` */
    uint32_t limit; /* others wait: it is to go on with no more than these, as soon as it can */
};

/* Our breaker opened, or closed again: polls tell others, and the relay that comes next; operators see it. */
struct hk_circuit {
    const char *destination;
    int64_t open_until_ms; /* store time; 0 = closed */
};

struct hk_exchange {
    int64_t lane;
    uint64_t lease_ms; /* the lane's lease is set to now + this */
    const struct hk_settle *settles;
    size_t n_settles;
    const struct hk_want *wants;
    size_t n_wants;
    const struct hk_quota *quotas;
    size_t n_quotas;
    const struct hk_circuit *circuits;
    size_t n_circuits;
    const struct hk_seat_ask *seats;
    size_t n_seats;
    bool unknown; /* a want names a destination that nobody knows: the answer must have `definitions` */
};

struct hk_exchanged {
    int64_t now_ms;
    int64_t claim; /* id of the manifest; 0 = nothing was claimed */
    struct hk_message
        *messages; /* what was claimed, in any order; rows that are gone or claimed already are left out */
    size_t n_messages;
    bool reset; /* nothing can be claimed before a poll, which will say so, too */
    int64_t
        definitions; /* of polls, as it is after this exchange; only where `unknown` was asked. Another one than it is: nobody could say */
    struct hk_grant *grants; /* one per quota */
    struct hk_seats_given *seats; /* one per asking */
    bool *stale; /* one per settle: true = its manifest was gone, or it was settled before: nothing was
                                   changed. Filled (all true) when the exchange returns HK_CONFLICT, too. */
    /* NULL, or one per settle: not NULL = why the database refused it (a constraint or trigger of the application's, or a DELETE
     * that removes nothing). The row stays where it was, is noted as stuck, and is never shown or claimed again before the
     * store could settle it after all: what it was to become is kept. */
    const char **stuck;
};

static inline bool hk_settle_is_stuck(const struct hk_exchanged *done, size_t settle)
{
    return done->stuck && done->stuck[settle];
}

#endif
