/* SPDX-License-Identifier: Apache-2.0 */
/* The requests and answers between engine and store, as plain values: core needs to know nothing of stores. store/store.h
 * explains each call. */
#ifndef HK_CORE_EXCHANGE_H
#define HK_CORE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/message.h"

/* The error of a message that its relay gave back during the send. The message is due at once. */
#define HK_STOPPED_SENDING "the relay stopped while it was sending; it may have arrived"

/* The cause of a sealed message that waits for its key. This is no attempt, and never a reason to dead-letter it. */
#define HK_CAUSE_KEY_MISSING "KEY_MISSING"

/* ---- reading ---- */

#define HK_FIRST_ID INT64_MIN /* before the first row, whatever its id */

struct hk_poll_dest {
    struct hk_str name;
    int64_t open_until_ms; /* as the last hk_circuit had it; 0 = closed, resumed since, or nobody ever said */
    int64_t retry_due_ms;  /* earliest unclaimed retry row; INT64_MAX = none */
    bool paused;
};

/* The work that there is. `changed` false: nobody committed anything since the last poll, neither others nor this store's own
 * exchange (a mere renewal does not count), acquire or pause; the other members are not filled.
 *
 * Where ids are not in the order of commits (PostgreSQL: a sequence hands them out, transactions end in any order), a poll
 * also sets the horizon: until the next poll no scan of outbox shows a row that became visible after this one. So of two messages
 * of a key, written one after the other, the engine never sees only the second. If the first has an id that scans have passed, the
 * poll that uncovers both says `late`, and the engine reads the late rows before any others. On SQLite, with one writer at a
 * time, ids are in the order of commits, and `late` and `reset` are always false. */
struct hk_poll {
    bool changed;
    bool
        late; /* rows may have become visible at ids that scans have passed: a scan with `late` set gives them */
    /* The lane got more of the outbox (shards), or the store is another server now: a standby that may know less and give the same
     * ids to other rows. The engine must read everything again. The store allows no claim before it has said so. */
    bool reset;
    int64_t now_ms;
    uint32_t
        late_ms; /* the store's time may be later by this much: the store computed it and did not read it */
    /* The clock is behind now_ms by this much, because it was ahead once or was set back, and now_ms never goes back. Leases and
     * waits follow now_ms; not_before and expires_at, which the application named, follow the clock. */
    uint64_t behind_ms;
    /* Changes whenever a person acted on a retry row or a dead letter (cancel, discard, requeue …) and so may have freed or taken a
     * key: the audit's last id, for example. Relays' own settles do not count. */
    int64_t acts;
    int64_t definitions; /* the version of the destinations that are kept in the store; 0 = none ever were */
    int64_t last_id;     /* highest id in outbox, or above it; HK_FIRST_ID = empty */
    struct hk_poll_dest *dests; /* those with retry rows, the paused ones, and those whose breaker is open */
    size_t n_dests;
};

/* A retry scan returns rows that are due and not claimed, in the order (due, id). An outbox scan returns all rows, claimed or not,
 * in the order of ids.
 *
 * A forced scan (retry; destination and key NULL) returns forced rows of all destinations, in the same order.
 *
 * A late scan (outbox; destination and key NULL) returns, in the order of ids, rows that became visible since the last complete
 * late scan, at ids which earlier scans have passed, and that no manifest of this lane names. It may return rows that were seen
 * before. It begins at HK_FIRST_ID and continues behind `last_id` while `more` is set. Its beginning fixes what it covers (as of the
 * poll before it): later pages show no row that became visible since. When it ends without `more`, the store counts all of these
 * rows as returned; the next late scan repeats one that never ended. */
struct hk_scan {
    enum hk_source source;
    bool late;
    int64_t after_id; /* outbox: only ids above; HK_FIRST_ID = from the first, whatever its id;
                         retry: with after_due_ms, the keyset (due, id) */
    int64_t after_due_ms;
    const char
        *destination; /* NULL = any (outbox); else rows that name it and, in outbox, rows that name none (""),
                                whose route only the engine knows; a retry scan names one */
    const char *key;  /* NULL = any; else `destination` is given, too */
    bool
        forced; /* retry, of any destination: only those that a person has forced (hk_store_admin_ops.retry) */
    uint32_t limit;
};

struct hk_heads {
    struct hk_head *items;
    size_t n;
    bool more;       /* the limit was reached */
    int64_t last_id; /* of the last item: the next scan begins after it. Unchanged if there are no items */
    int64_t last_due_ms;
    int64_t now_ms;
    uint32_t late_ms;   /* as in hk_poll */
    uint64_t behind_ms; /* as in hk_poll */
};

/* Keys that earlier messages hold. The holder is a retry row, claimed or not (but a deferred row does not hold its key: a scheduled
 * message joins the order when it is due), or a dead head of a destination that blocks. The store does not know destinations'
 * settings: it returns both kinds, and the engine ignores those that do not block. There is one entry for each row, because the
 * engine counts them. */
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
        payload; /* false: leave the payload out, because the relay will not send it (expired, unknown destination, too large) */
};

enum hk_settle_kind {
    HK_SETTLE_SENT = 0,
    /* A failed attempt: into outbox_retry, due at due_ms. An attempt that was made sets crashes back to 0. Also a send that the relay
     * ended itself and that may have arrived: then no attempt counts as made. */
    HK_SETTLE_RETRY,
    HK_SETTLE_DEAD,    /* into dead_letters, atomically; a requeued message reopens its letter instead */
    HK_SETTLE_RELEASE, /* back to where it was, as if never claimed */
    HK_SETTLE_DEFER, /* not before due_ms: into outbox_retry, no attempt; counts of the row's history never shrink */
    /* Replaces the row by one retry row per destination, due now. From a retry row they inherit everything else. If it was only
     * deferred, they do not hold their keys. */
    HK_SETTLE_FAN_OUT
};

/* A row that moves from outbox to outbox_retry is never due before its own not_before. */

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
    struct hk_history history; /* as it is after this attempt; the store itself keeps paused_ms */
    int64_t first_failed_ms;
    struct hk_str message_id; /* for logs; "" = there was no memory to keep it */
    uint32_t life;
    struct hk_str destination; /* the actual one, also if the row left it to a route */
    struct hk_str reason;      /* DEAD: reason code */
    struct hk_attempt_record attempt;
    const struct hk_str *fan_out; /* FAN_OUT */
    size_t n_fan_out;
};

/* A request for tokens of a destination's limit, which all relays of a shared store use together (engine_quota.c): from the
 * bucket of `burst` tokens that fills at `rate_per_s`, or from a second bucket for probes while its breaker is open. */
struct hk_quota {
    const char *destination;
    bool probe;
    double rate_per_s, burst;
    uint32_t want;
};

struct hk_grant {
    uint32_t n;       /* tokens, at most as many as were wanted */
    int64_t ready_ms; /* when the next token will be there; store time */
};

/* A request for seats: places of a destination's concurrency, which all relays of a shared store use together (engine_seats.c). The
 * store records the seats of each live lane. A request may be repeated: it sets the lane's seats to `hold`, however many it had,
 * plus as many free ones as there are, up to `want`. All lanes together never get more than `most`. */
struct hk_seat_ask {
    const char *destination;
    uint32_t most, hold, want;
};

#define HK_SEATS_NO_LIMIT UINT32_MAX

struct hk_seats_given {
    bool written;   /* false: another relay had the record locked, and nothing changed */
    uint32_t held;  /* by this lane, from now on; at least `hold` */
    uint32_t limit; /* other lanes wait: go down to this number as soon as possible */
};

/* This relay's breaker opened or closed: polls report it to other relays and to later ones, and operators see it. */
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
    bool
        unknown; /* a want has a destination that the engine does not know: the answer must have `definitions` */
};

struct hk_exchanged {
    int64_t now_ms;
    int64_t claim; /* id of the manifest; 0 = nothing was claimed */
    struct hk_message *
        messages; /* the claimed messages, in any order, without rows that are gone or were claimed already */
    size_t n_messages;
    bool reset; /* claims need a poll first, which will also say `reset` */
    int64_t
        definitions; /* as in hk_poll, after this exchange; only if `unknown` was set. A number that no poll gave: not known */
    struct hk_grant *grants;      /* one per quota */
    struct hk_seats_given *seats; /* one per request */
    bool *stale; /* one per settle: true = its manifest was gone, or it was settled before: nothing was
                                   changed. Filled (all true) when the exchange returns HK_CONFLICT, too. */
    /* NULL, or one per settle: not NULL = why the database refused it (a constraint or trigger of the application's, or a DELETE
     * that removed nothing). The row stays where it was and is recorded as stuck, together with the settle. No scan shows it and no
     * relay claims it before the store could settle it after all. */
    const char **stuck;
};

static inline bool hk_settle_is_stuck(const struct hk_exchanged *done, size_t settle)
{
    return done->stuck && done->stuck[settle];
}

#endif
