/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of people on a store, beside the relay: enqueue, look, cancel, retry, pause. This is a second small vtable, on a separate
 * connection, so that the relay's contract (store.h) stays small. tests/contract/admin_suite.c tests this contract.
 *
 * - Every call blocks and is one transaction. Reading takes no lock that a writer would wait for.
 * - Results belong to the handle and are valid until its next call but one; `keep` gives them to the caller.
 * - Rows may hold anything: no value makes a call fail. Texts come as the bytes that are there, cut to a bound.
 * - An act on a live message takes the write lock first and is refused (HK_BUSY) while a manifest names the message, be
 *   its relay alive or dead: it may be on its way. The relay sees the change in its next poll.
 * - Every act leaves a row in outbox_audit, in the same transaction.
 *
 * Errors are those of store.h, and besides: HK_NOTFOUND for no such message, HK_CONFLICT for a message whose state does not
 * allow it, HK_INVALID when more than one destination is meant. */
#ifndef HK_STORE_ADMIN_H
#define HK_STORE_ADMIN_H

#include <hikyaku/outbox.h>

#include "base/pool.h"
#include "core/letter.h"
#include "store/adopt.h"
#include "store/clock.h"
#include "store/definition.h"
#include "store/figures.h"
#include "store/series.h"
#include "store/store.h"

struct hk_admin;

/* ---- enqueue ---- */

struct hk_enqueue {
    struct hk_outbox_message message;
    const char *encoding; /* of the payload: NULL = utf8 */
    /* The message is a task: its message_id must be new at its destination, and stays taken until HK_TASK_TOMBSTONE_MS after its end. An
     * open dead letter is no end. HK_EXISTS; nothing is written then. */
    bool is_task;
};

#define HK_TASK_TOMBSTONE_MS INT64_C(3600000)
#define HK_TASK_FORGET_MS    (INT64_C(32) * 86400000) /* names that were given so long ago are forgotten */

/* ---- status ---- */

#define HK_COUNT_EXACT 100000 /* counts go no further; beyond they are estimates */

struct hk_count {
    uint64_t n;
    bool about; /* an estimate */
};

/* Undelivered messages by attempts made: 0, 1, 2, 3, 4, 5 to 9, 10 to 19, 20 and more. */
#define HK_ATTEMPT_BUCKETS 8

struct hk_dest_status {
    struct hk_str name; /* "" = by route, not known yet */
    struct hk_count pending, retrying, dead;
    uint64_t processing;
    bool paused;
    struct hk_str actor, reason; /* of the pause */
    int64_t since_ms;
    int64_t open_until_ms; /* its breaker is open: nothing is sent before; 0 = it is not */
};

/* The relay that was heard of last. */
struct hk_relay_status {
    bool known;   /* there is a lane */
    bool running; /* and its lease has not run out */
    int64_t lane, started_ms, until_ms;
    struct hk_str name, version;
};

struct hk_store_status {
    int64_t now_ms;
    struct hk_count due;       /* could go now, were there room and no order to keep */
    struct hk_count retrying;  /* failed, and waiting for the next attempt */
    struct hk_count scheduled; /* waiting for their not_before */
    uint64_t processing;
    struct hk_count dead; /* letters that are open */
    struct hk_count sent; /* kept; what retention took is not counted */
    struct hk_count cancelled;
    uint64_t stuck;        /* rows that the database does not let go: held, and not sent again */
    int64_t oldest_due_ms; /* since when the oldest could have gone; 0 = nothing is due */
    int64_t oldest_ms;     /* when the oldest undelivered one was written; 0 = there is none */
    struct hk_count attempts[HK_ATTEMPT_BUCKETS];
    struct hk_relay_status relay;
    uint32_t relays_running; /* where several may */
    struct hk_dest_status *
        dests; /* by name: those with undelivered or dead messages, the paused ones, those with an open breaker */
    size_t n_dests;
    bool more_dests; /* there are more than were looked at */
};

/* ---- relays ---- */

/* One lane. */
struct hk_relay_row {
    int64_t lane, started_ms, until_ms;
    bool
        running; /* its lease has not run out; else it stopped without a word and nobody has taken over yet */
    struct hk_str name, boot, version;
    uint32_t shards;  /* that it owns */
    uint64_t in_hand; /* messages in flight */
    int64_t
        oldest_due_ms; /* in its shards: since when the oldest could have gone; 0 = nothing is due. Looked for among
                              the HK_LAG_ROWS oldest rows. */
};

#define HK_LAG_ROWS   10000
#define HK_RELAYS_MAX 1000

struct hk_relays {
    int64_t now_ms;
    struct hk_relay_row *items; /* by lane, which is by age; the first HK_RELAYS_MAX */
    size_t n;
    uint32_t shards, shards_free; /* SQLite has one */
};

/* ---- blocked ---- */

/* What waits behind the head of its key, of one destination that keeps an order. */
struct hk_blocking {
    const char *destination;
    bool skip_dead; /* a dead head does not hold its key */
    struct hk_count n;
};

/* What waits for one destination, or by route for one event type. Looked for among the HK_WAITING_ROWS oldest rows of a
 * destination, in outbox and of those that are due again. */
struct hk_waiting_row {
    struct hk_str destination; /* "" = by route */
    struct hk_str event_type;  /* of those by route, cut; else "" */
    int64_t oldest_ms;         /* when the oldest was written; 0 = not known */
    int64_t due_ms; /* since when the oldest could have gone that no head of its key holds; 0 = none is due */
    bool behind;    /* some are due, and a head of their key holds them */
};

#define HK_WAITING_ROWS  1000
#define HK_WAITING_DESTS 1000

struct hk_waiting {
    int64_t now_ms;
    struct hk_waiting_row *items;
    size_t n;
};

/* ---- messages ---- */

/* Where a row lies, in the order of a listing. */
enum hk_place {
    HK_IN_RETRY = 0,
    HK_IN_OUTBOX,
    HK_IN_DEAD,
    HK_IN_CANCELLED,
    HK_IN_SENT,
    HK_NPLACES
};

/* One message at one destination. Times are 0, texts empty where they do not apply or cannot be read. */
struct hk_row {
    enum hk_place place;
    int64_t id;        /* within its place */
    int64_t outbox_id; /* as the application's INSERT was given it; 0 = not known */
    enum hk_state state;
    struct hk_str message_id, destination, event_type, key, correlation_id;
    uint32_t attempts, crashes, life;
    int64_t created_ms, next_ms, last_attempt_ms;
    int64_t done_ms; /* sent, dead or cancelled */
    struct hk_str last_error, cause;
    struct hk_str locked_by;
    int64_t locked_ms;
    int status;                  /* of the answer that confirmed it */
    struct hk_str letter_status; /* failed, discarded … */
    struct hk_str actor, reason; /* who cancelled it, and why */
    /* only from `show` */
    struct hk_str headers, content_type, encoding, traceparent, idempotency_key, policy, not_before,
        expires_at;
    struct hk_str error_detail;
    int64_t first_failed_ms;
    uint32_t max_attempts;
    uint32_t given_attempts; /* of them, that it gets: the desk says so, by its configuration */
    bool has_payload;        /* false: none was written, or it is not kept */
    uint64_t payload_bytes;
    struct hk_str payload; /* as stored; cut when shorter than payload_bytes */
};

/* Which messages are meant. Everything that is set must hold. */
struct hk_list {
    enum hk_state state;                            /* HK_STATE_NONE = any */
    bool live;                                      /* only what may go out yet: HK_IN_RETRY, HK_IN_OUTBOX */
    const char *destination, *correlation_id, *key; /* NULL = any */
    const char *event_type;                         /* '*' stands for any text; NULL = any */
    int64_t since_ms, before_ms;                    /* of its creation: since_ms <= it < before_ms; 0 = any */
    /* As in struct hk_letter_query, of the letter that the row would be: message_id, event_type, destination, correlation_id, error,
     * encoding and payload (up to the store's bound) are filled. */
    bool (*match)(const void *arg, const struct hk_letter *letter);
    const void *match_arg;
    struct hk_letter_sieve sieve;
    uint32_t limit;
    uint64_t
        looks; /* rows that the call looks through where no index serves this, if the store's own bound is not lower; 0 = that */
    /* go on behind this row: newest first within a place */
    bool resume;
    enum hk_place after_place;
    int64_t after_id;
    /* Cancelled messages only, and those first that applications wrote first: by outbox_id, then id; those whose outbox_id is not known
     * are the first of all. A list goes on behind `after_origin` and `after_id`, which are `last_origin` and `last_id` of the one before. */
    bool by_origin;
    int64_t after_origin;
    int64_t act_id; /* by_origin: only those in the list of this act; 0 = any */
};

/* May hold fewer than asked for and still have `more`: a call looks at a bounded number of rows. */
struct hk_rows {
    struct hk_row *items;
    size_t n;
    bool more;
    enum hk_place last_place; /* where to go on when there is more */
    int64_t last_id;
    int64_t last_origin; /* of a list by origin */
    uint64_t
        looked; /* rows that were looked through because no index serves what is asked; 0 = an index did */
};

struct hk_tried {
    int64_t id; /* rises; from `attempts` alone */
    struct hk_str destination;
    uint32_t life, n;
    int64_t started_ms;
    uint64_t duration_ms;
    int status;
    struct hk_str failure_class, cause, error, request_headers, response_headers, response_body, address;
    bool possibly_delivered;
};

struct hk_shown {
    struct hk_row *rows; /* a message_id may stand at several destinations, and at several times */
    size_t n_rows;
    struct hk_tried *attempts; /* oldest first; the last HK_TRIED_MAX */
    size_t n_attempts;
};

#define HK_SHOWN_MAX 100
#define HK_TRIED_MAX 500

/* A page of what was tried, oldest first. */
struct hk_tries {
    struct hk_tried *items;
    size_t n;
};

/* ---- why ---- */

/* Of which row, as `show` gave it. */
struct hk_why_ask {
    enum hk_place place; /* HK_IN_RETRY or HK_IN_OUTBOX */
    int64_t id;
    const char *destination; /* where it goes, be it by route */
    struct hk_str key;       /* empty, or of a destination that keeps no order: nobody looks for a head */
    bool skip_dead;
};

/* What a relay would find: facts, without judgement. */
struct hk_why {
    int64_t now_ms;
    uint32_t relays_running;
    bool paused;
    struct hk_str actor, reason; /* of the pause */
    int64_t since_ms, open_until_ms;
    /* whoever has it in hand; lane 0 = nobody */
    int64_t lane, claimed_ms, until_ms;
    struct hk_str relay;
    /* the relay whose shard it lies in has stopped without a word, and holds it until then; 0 = no such thing */
    int64_t owner_until_ms;
    struct hk_str owner;
    /* the head of its key; HK_STATE_NONE = it is free. `head_place`, `head_id`: where it lies (a dead one: its letter) */
    enum hk_state head;
    enum hk_place head_place;
    int64_t head_id, head_due_ms;
    struct hk_str head_message_id;
    /* it cannot be taken away: since when, why, and was it delivered; 0 = no such thing */
    int64_t stuck_ms;
    bool stuck_delivered;
    struct hk_str stuck_error;
    struct hk_count ahead; /* rows of outbox for the same destination that come before it */
};

/* ---- acts ---- */

struct hk_act {
    const char *message_id;
    const char *destination; /* NULL: the only one */
    const char *actor, *reason;
};

struct hk_acted {
    size_t changed;   /* rows */
    size_t unchanged; /* due already */
    int64_t now_ms;
};

/* ---- acts on many ---- */

/* A row, as `list` and `show` give it. */
struct hk_ref {
    enum hk_place place;
    int64_t id;
};

#define HK_REFS_MAX 500
/* Of one message that is restored: so many of its key may wait before it. */
#define HK_BEFORE_MAX 10000
#define HK_AGAIN_ROWS 20000

struct hk_refs_act {
    const struct hk_ref *refs;
    size_t n; /* <= HK_REFS_MAX */
    const char *actor, *reason;
    /* For the trail, as in struct hk_letter_act: one row without any of these is a row of the audit without a list. */
    const char *filter; /* which messages were meant; NULL = none */
    int64_t act_id;     /* the act that this call goes on with; 0 = it begins one */
    /* restore: destinations that keep the order of keys */
    const char *const *ordered;
    size_t n_ordered;
};

enum hk_ref_did {
    HK_REF_DONE = 0,
    HK_REF_GONE,       /* there is no such row (any more) */
    HK_REF_IN_FLIGHT,  /* cancel: a manifest names it, or the database does not let it go */
    HK_REF_OVERTAKING, /* restore: a message of its key that comes before it is in flight */
    HK_REF_FAR_BEHIND, /* restore: more than HK_BEFORE_MAX messages of its key wait before it */
    HK_REF_LETTER,     /* restore: people have decided about its dead letter since */
    HK_REF_AGAIN, /* restore: another message of its id waits for the same destination, or was written later and sent. Those that no
                  * relay has read yet are looked for among the HK_AGAIN_ROWS newest. */
    HK_REF_ERASED /* restore: nothing is left of it */
};

struct hk_refs_done {
    enum hk_ref_did *did; /* one per row, in the same order */
    size_t n, changed;
    int64_t act_id; /* of the act with a list; as it was given when nothing was changed */
    int64_t now_ms;
};

/* ---- health ---- */

enum hk_integrity {
    HK_INTEGRITY_OK = 0,
    HK_INTEGRITY_BAD,
    HK_INTEGRITY_UNFINISHED /* too large for the time that was given */
};

enum hk_note_level {
    HK_NOTE_OK = 0,
    HK_NOTE_WARN,
    HK_NOTE_FAIL
};

/* What only one kind of store can say of itself, with what to do about it. */
struct hk_health_note {
    enum hk_note_level level;
    char about[16];    /* one word or two */
    const char *code;  /* stable, one for each sentence: "vacuum_session" */
    char values[1024]; /* those in `text`, by name, as JSON (base/named.h) */
    char text[480];
};

#define HK_NOTES_MAX 24
/* About a role that may write no messages: only who serves an API that writes them has to do something. */
#define HK_NOTE_WRITING "writing"

/* Static storage or the struct's own: valid without the handle. */
struct hk_store_health {
    char engine[48];     /* "SQLite 3.40.1" */
    const char *trap;    /* what is known to go wrong with this version; NULL = nothing */
    char place[256];     /* the file, or the server */
    enum hk_code schema; /* HK_OK, or what open would say; the words are in `schema_error` */
    struct hk_err schema_error;
    uint32_t schema_version, schema_wanted; /* 0 = none */
    struct hk_health_note notes[HK_NOTES_MAX];
    size_t n_notes;
    bool is_file;     /* then the following is filled */
    char journal[16]; /* "wal" */
    enum hk_integrity integrity;
    char damage[200];                           /* HK_INTEGRITY_BAD: the first finding */
    uint64_t file_bytes, wal_bytes, free_bytes; /* UINT64_MAX = not known */
    int64_t clock_ms, high_water_ms;
};

/* ---- sealed texts ---- */

/* Where they lie, beside outbox itself. A row of a home holds one text or two: `a` is the payload (of attempts: the response's headers), `b`
 * the error's detail of a letter, or the response's body. */
enum hk_seal_home {
    HK_SEAL_RETRY = 0,
    HK_SEAL_LETTERS,
    HK_SEAL_VERSIONS, /* the letter's earlier payloads */
    HK_SEAL_CANCELLED,
    HK_SEAL_ATTEMPTS,
    HK_NSEAL_HOMES,
    HK_SEAL_OUTBOX = HK_NSEAL_HOMES /* the application's: counted, and never written */
};

struct hk_seal_row {
    int64_t id, sub; /* sub: of a letter's version; else 0 */
    struct hk_str message_id, encoding, a, b;
};

struct hk_seal_rows {
    struct hk_seal_row *items;
    size_t n; /* 0 = there are no more */
};

struct hk_seal_page {
    enum hk_seal_home home;
    int64_t after_id, after_sub; /* in the order of both */
    uint32_t limit;
    uint64_t bytes; /* the first row comes however large it is */
    bool open;      /* also payloads that are not sealed */
};

struct hk_seal_put {
    enum hk_seal_home home;
    bool second;             /* `b` of the row */
    int64_t id, sub;         /* as in struct hk_seal_row */
    struct hk_str old, text; /* changed only while it still is `old` */
    struct hk_str encoding;  /* of a payload, from now on; ptr NULL = as it is */
};

struct hk_note_act {
    const char *act, *actor, *reason;
    const char *message_id; /* NULL: it is about none */
    const char *detail;     /* a JSON object, or NULL */
};

/* How many texts there are of one key. */
struct hk_seal_use {
    unsigned home;        /* enum hk_seal_home */
    struct hk_str key_id; /* "" = payloads that are not sealed */
    uint64_t n;
};

struct hk_seal_uses {
    struct hk_seal_use *items;
    size_t n;
};

struct hk_store_admin_ops {
    const char *name;
    /* As open of store.h. Acts wait for the disk. */
    enum hk_code (*open)(const char *url, const struct hk_store_options *options, struct hk_admin **out_admin,
                         struct hk_err *err);
    void (*close)(struct hk_admin *admin); /* accepts NULL */
    /* What the last call gave stays valid as long as `into`: copy the struct, and keep what it points to. */
    void (*keep)(struct hk_admin *admin, struct hk_pool *into);

    /* All or none. `*out_ids`: their message_ids, in the same order. HK_INVALID names the message by its place, from 0. */
    enum hk_code (*enqueue)(struct hk_admin *admin, const struct hk_enqueue *items, size_t n,
                            const struct hk_str **out_ids, struct hk_err *err);
    /* In bounded time, however many rows there are. */
    enum hk_code (*status)(struct hk_admin *admin, const struct hk_store_status **out, struct hk_err *err);
    /* The same, but everything is counted, however long that takes. */
    enum hk_code (*status_exact)(struct hk_admin *admin, const struct hk_store_status **out,
                                 struct hk_err *err);
    /* Fills `n` of each. Exact up to HK_COUNT_EXACT, then estimated, unless `exact`. */
    enum hk_code (*blocked)(struct hk_admin *admin, struct hk_blocking *items, size_t n, bool exact,
                            struct hk_err *err);
    /* Who waits, and for how long, but for the order of keys: `ordered` (of which `n` is not looked at) are the destinations
     * that keep it. Pauses, breakers and rates are not looked at. Bounded. */
    enum hk_code (*waiting)(struct hk_admin *admin, const struct hk_blocking *ordered, size_t n,
                            const struct hk_waiting **out, struct hk_err *err);
    /* What keeps a row that has not gone out from doing so. Bounded. */
    enum hk_code (*why)(struct hk_admin *admin, const struct hk_why_ask *ask, const struct hk_why **out,
                        struct hk_err *err);
    /* What the relays that run have seen lately. Bounded. */
    enum hk_code (*figures)(struct hk_admin *admin, const struct hk_figures **out, struct hk_err *err);
    /* For a relay, on a handle that was opened with `offhand`: replaces what the lane says of these destinations; `at_ms`,
     * `lane` and `fresh` of the items are not looked at. A lane that is gone writes nothing: HK_CONFLICT. */
    enum hk_code (*figures_put)(struct hk_admin *admin, int64_t lane, const struct hk_figure *items, size_t n,
                                struct hk_err *err);
    /* Figures over time (store/series.h). `series` gives at most `limit` rows; fewer: there are no others. */
    enum hk_code (*series)(struct hk_admin *admin, const struct hk_series_ask *ask,
                           const struct hk_series **out, struct hk_err *err);
    /* Which destinations such rows name; `limit` of them. */
    enum hk_code (*series_names)(struct hk_admin *admin, const struct hk_series_ask *ask,
                                 const struct hk_series_names **out, struct hk_err *err);
    /* For a relay, as figures_put: what was counted replaces the row of before, of levels the largest stays. */
    enum hk_code (*series_put)(struct hk_admin *admin, const struct hk_series_row *rows, size_t n,
                               struct hk_err *err);
    /* Who relays, the dead until they are taken over included. Bounded as well. */
    enum hk_code (*relays)(struct hk_admin *admin, const struct hk_relays **out, struct hk_err *err);
    enum hk_code (*list)(struct hk_admin *admin, const struct hk_list *list, const struct hk_rows **out,
                         struct hk_err *err);
    /* `payload_max` 0: no payload is read. HK_NOTFOUND. */
    enum hk_code (*show)(struct hk_admin *admin, const char *message_id, size_t payload_max,
                         const struct hk_shown **out, struct hk_err *err);
    /* Rows of HK_IN_RETRY and HK_IN_OUTBOX as `show` gives them, by where they lie; those that are gone are left out. */
    enum hk_code (*fetch)(struct hk_admin *admin, const struct hk_ref *refs, size_t n, size_t payload_max,
                          const struct hk_shown **out, struct hk_err *err);
    /* The attempts of a message that are kept, wherever it is by now, or when it is gone: `limit` of those behind `after_id`. None is
     * no error. */
    enum hk_code (*attempts)(struct hk_admin *admin, const char *message_id, int64_t after_id, uint32_t limit,
                             const struct hk_tries **out, struct hk_err *err);

    /* A pending or retrying message never leaves: into outbox_cancelled. */
    enum hk_code (*cancel)(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                           struct hk_err *err);
    /* A waiting message is due now; its history stays. */
    enum hk_code (*retry)(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                          struct hk_err *err);
    /* The same, and relays send it past pause, breaker, rate and concurrency of its destination, once. HK_CONFLICT, too: a route leads it,
     * or it has a key and was not tried yet. */
    enum hk_code (*force)(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                          struct hk_err *err);
    /* Many, of HK_IN_RETRY and HK_IN_OUTBOX: those that are in flight or gone do not stop the others. One transaction, and one row of the
     * audit with the list of what was cancelled (outbox_audit_messages). */
    enum hk_code (*cancel_refs)(struct hk_admin *admin, const struct hk_refs_act *act,
                                struct hk_refs_done *out, struct hk_err *err);
    /* The same of HK_IN_CANCELLED: back to outbox_retry, with message_id, attempts, times and all, in the order of their outbox_ids. What was
     * tried holds its key again. At a destination that keeps order, what was not tried and waits before it in outbox moves to
     * outbox_retry with it: it stays before it. A dead letter that it was requeued from waits for the outcome again. */
    enum hk_code (*restore_refs)(struct hk_admin *admin, const struct hk_refs_act *act,
                                 struct hk_refs_done *out, struct hk_err *err);
    /* Erases all that is kept of the messages of these rows, in HK_IN_DEAD, HK_IN_CANCELLED and HK_IN_SENT: payloads, earlier ones, headers,
     * and what receivers said; of their rows the encoding is HK_ERASED from then on, and open letters are discarded. HK_REF_IN_FLIGHT:
     * the message waits, is on its way, or is being sent by hand. Leaves "erase" in the audit, of each message. */
    enum hk_code (*erase_refs)(struct hk_admin *admin, const struct hk_refs_act *act,
                               struct hk_refs_done *out, struct hk_err *err);
    /* `*out_changed`: false when it was so already (a pause then has a new actor and reason). Who resumes says that the destination is
     * well: its breaker closes, too, whether it was paused or not. */
    enum hk_code (*pause)(struct hk_admin *admin, const char *destination, bool paused, const char *actor,
                          const char *reason, bool *out_changed, struct hk_err *err);

    /* Destinations that are kept here: the one of that name (none: `n` is 0), or all (NULL). */
    enum hk_code (*definitions)(struct hk_admin *admin, const char *name, const struct hk_definitions **out,
                                struct hk_err *err);
    /* Those of these names; a name that is not kept here is left out. Reads no others. */
    enum hk_code (*definitions_of)(struct hk_admin *admin, const struct hk_str *names, size_t n,
                                   const struct hk_definitions **out, struct hk_err *err);
    /* Makes or changes one. HK_CONFLICT: it is there, or has another version; HK_NOTFOUND: it is not there; HK_RANGE: there are too
     * many. */
    enum hk_code (*define)(struct hk_admin *admin, const struct hk_define *ask, struct hk_defined *out,
                           struct hk_err *err);
    /* HK_NOTFOUND; HK_CONFLICT: it has another version, or messages wait for it (looked for among the oldest 100,000) and
     * nobody forces it. Whether it is paused stays known. */
    enum hk_code (*undefine)(struct hk_admin *admin, const struct hk_undefine *ask, struct hk_defined *out,
                             struct hk_err *err);

    /* What a clock that was ahead has left behind, and mends it if `ask` has a reason: one transaction, and one row in the audit.
     * Where the clock is in step nothing is changed. HK_CONFLICT: a relay runs, HK_BUSY: nobody can tell yet whether one does (ask
     * again on this handle), HK_RANGE: the clock itself cannot be right. */
    enum hk_code (*clock)(struct hk_admin *admin, const struct hk_clock_ask *ask, struct hk_clock_state *out,
                          struct hk_err *err);

    /* Rows that hold something sealed, in pages. */
    enum hk_code (*seal_page)(struct hk_admin *admin, const struct hk_seal_page *page,
                              const struct hk_seal_rows **out, struct hk_err *err);
    /* `*out_changed` false: the row is gone, or holds another text by now. Joins a transaction that is held (jobs.h). */
    enum hk_code (*seal_put)(struct hk_admin *admin, const struct hk_seal_put *put, bool *out_changed,
                             struct hk_err *err);
    /* Reads all of it: as long as that takes. */
    enum hk_code (*seal_uses)(struct hk_admin *admin, const struct hk_seal_uses **out, struct hk_err *err);
    /* A row of the audit. */
    enum hk_code (*note)(struct hk_admin *admin, const struct hk_note_act *act, struct hk_err *err);

    /* A trigger on an outbox table that the application has already (adopt.h): the SQL, and if `ask` has a reason it runs, with one row
     * in the audit, in one transaction. HK_INVALID: no such table, or one that cannot be read as an outbox. */
    enum hk_code (*adopt)(struct hk_admin *admin, const struct hk_adopt *ask, struct hk_adopted *out,
                          struct hk_err *err);

    /* Needs no handle: says what is wrong with a store that cannot be opened, too. Errors only when it cannot be reached at
     * all. `integrity_ms` bounds the look at its pages. */
    enum hk_code (*inspect)(const char *url, uint64_t integrity_ms, struct hk_store_health *out,
                            struct hk_err *err);
};

extern const struct hk_store_admin_ops hk_store_admin_sqlite;
extern const struct hk_store_admin_ops hk_store_admin_postgres; /* where it was built in */

/* As hk_store_by_url. */
const struct hk_store_admin_ops *hk_store_admin_by_url(const char *url, struct hk_err *err);

/* For stores: it cannot be forced. */
enum hk_code hk_force_refused(const struct hk_act *act, struct hk_err *err);

/* definition.c: what the stores say. `was`: the version that is there; 0 = none */
enum hk_code hk_definition_refused(int64_t wanted, int64_t was, struct hk_err *err);
enum hk_code hk_definition_busy(struct hk_err *err);
enum hk_code hk_definition_full(uint32_t max, struct hk_err *err);
/* As a JSON array, which both kinds of SQL can look into. Errors are the buffer's. */
void hk_definition_names(const struct hk_str *names, size_t n, struct hk_buf *out);

const char *hk_place_name(enum hk_place place); /* "outbox", "retry" … */
bool hk_place_by_name(struct hk_str name, enum hk_place *out);

#endif
