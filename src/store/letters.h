/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on dead letters: show, group, repair, requeue, send, discard; and the audit of each. This is a third small vtable,
 * on the same handle as admin.h and under the same rules (results are valid until the handle's next call but one; no value in
 * a row makes a call fail; reading locks nothing). tests/contract/letters_suite.c tests this contract.
 *
 * - Every act is one transaction: the letter, the retry row, the older payload, and the audit row, or nothing.
 * - An act on many letters writes one audit row, with a list of its letters beside it (outbox_audit_letters). The row's detail has
 *   the digest of the list, so the chain covers the list. An act of several transactions writes a row for each; later rows name
 *   the first one ("act"). Programs of schema version 4 write a row for each letter.
 * - Acts on many messages (admin.h) do the same with outbox_audit_messages.
 * - An act names letters by id and returns the outcome of each. It locks letters in the order of their ids. A letter whose state
 *   does not allow the act stays as it is, and does not stop the others.
 * - A requeued letter also has a row in outbox_retry, with its letter_id. The relay's settle (store.h) resolves the letter when the
 *   message is sent, and opens it again with life + 1 when the message dies again. */
#ifndef HK_STORE_LETTERS_H
#define HK_STORE_LETTERS_H

#include "core/letter.h"
#include "core/redrive.h"
#include "store/admin.h"

/* ---- reading ---- */

struct hk_letter_page {
    uint32_t limit;
    int64_t after_id;   /* 0 = from the beginning */
    bool oldest_first;  /* by id; else newest first */
    bool details;       /* the fields at the end of struct hk_letter but the payload */
    size_t payload_max; /* 0 = no payload is read */
    uint64_t bytes_max; /* of payloads: the letter that reaches it is the page's last one; 0 = any */
    uint64_t looks;     /* letters to look at, if the store's own bound of a call is not lower; 0 = that */
};

/* May hold fewer than asked for and still have `more`: a call looks at a bounded number of rows. */
struct hk_letters {
    struct hk_letter *items;
    size_t n;
    bool more;
    int64_t last_id; /* the next page begins behind it */
    uint64_t looked; /* letters that were looked at, at least `n`: also those that did not match */
    int64_t now_ms;
};

struct hk_letter_group {
    struct hk_str fingerprint, reason, failure_class, blame, destination;
    uint64_t n;
    uint64_t maybe;            /* of them may have arrived (possibly_delivered) */
    int64_t first_ms, last_ms; /* first failure of any, last failure of any */
    int64_t example_id;        /* the newest */
    struct hk_str example_error, example_event_type, example_message_id;
    uint64_t *hours; /* HK_LETTER_HOURS counts of `hours` below; NULL = not asked for */
};

#define HK_LETTER_HOURS 24

struct hk_letter_groups {
    struct hk_letter_group *items; /* the largest first */
    size_t n;
    uint64_t letters; /* in all groups, those left out included */
    uint64_t maybe;   /* of them may have arrived */
    bool more;        /* groups were left out */
    bool partial;     /* not every letter was looked at: there are more of them */
    /* where a page of letters was asked for and is partial, else 0 */
    uint64_t looked; /* letters that were looked at */
    uint64_t about;  /* estimate of `letters`, had all of them been looked at; at least `letters` */
    int64_t next;    /* the next page begins here: the oldest that was looked at */
    int64_t now_ms;
};

/* Newest first; a page looks at a bounded number of letters. */
struct hk_letter_groups_page {
    uint32_t limit;   /* groups */
    uint64_t looks;   /* letters */
    int64_t after_id; /* `next` of an earlier page; 0 = from the newest */
};

/* The letters of a group that are counted by the hour: the newest, down to this id. */
struct hk_letter_span {
    int64_t from_id; /* 0 = any */
    uint64_t looks;  /* letters to look at; the call takes off what it looked at */
};

struct hk_tally {
    struct hk_str name;
    uint64_t n;
};

#define HK_STATS_TOP  20
#define HK_STATS_DAYS 30

/* Letters that came in on a UTC day. */
struct hk_letter_day {
    int64_t day_ms; /* its beginning */
    uint64_t n;
};

struct hk_letter_stats {
    int64_t now_ms;
    uint64_t by_status[HK_NLETTER_STATUSES];
    uint64_t by_blame[HK_NBLAMES]; /* of those that are open */

    struct hk_letter_day days[HK_STATS_DAYS];              /* oldest first, today included */
    struct hk_tally *reasons, *event_types, *destinations; /* all states, the most frequent first */
    size_t n_reasons, n_event_types, n_destinations;
    struct hk_letter *oldest; /* open, by first failure */
    size_t n_oldest;
    /* letters that were ever requeued, and how the last time ended */
    uint64_t requeued, requeued_resolved, requeued_failed, requeued_waiting;
};

/* An earlier payload. */
struct hk_letter_version {
    uint32_t version;
    int64_t replaced_ms;
    struct hk_str actor, reason; /* of the edit that replaced it */
    uint64_t payload_bytes;
    struct hk_str payload;
};

struct hk_audit_row {
    int64_t id, at_ms;
    struct hk_str actor, act, message_id, destination, reason;
    int64_t letter_id, redrive;  /* 0 = none */
    struct hk_str before, after; /* SHA-256 of what was changed, in hex; "" = does not apply */
    struct hk_str detail;        /* JSON object or "" */
    struct hk_str prev, hash;    /* "" in rows from before the chain */
    int64_t act_id;              /* of one letter's acts: the act that has it in its list; 0 = none */
    uint64_t letters;            /* in the lists of the whole act; 0 = it has none */
    uint64_t messages;           /* the same of an act on messages */
    struct hk_str filter, jq;    /* that the detail has, where the desk has looked; "" = none */
    struct hk_str
        list; /* where it was asked for: hk_audit_list_hash of its list as it is; "" = it has none */
};

/* A letter in the list of an act on many; or a message, whose letter_id is that of outbox_cancelled. */
struct hk_audit_letter {
    int64_t audit_id, letter_id; /* the row whose digest covers it */
    bool is_message;
    struct hk_str message_id, destination, before, after, detail;
    bool overtaken; /* a later act has discarded or restored it */
};

struct hk_letter_shown {
    struct hk_letter letter;
    struct hk_tried *attempts; /* of all lives under all of its ids, oldest first; the last HK_TRIED_MAX */
    size_t n_attempts;
    struct hk_letter_version *versions; /* oldest first */
    size_t n_versions;
    struct hk_audit_row *acts; /* oldest first */
    size_t n_acts;
    uint64_t
        blocked; /* messages that wait behind it (its key at its destination), counted to HK_COUNT_EXACT */
    int64_t now_ms;
};

struct hk_names {
    struct hk_str *items;
    size_t n;
};

#define HK_NAMES_MAX 1000

/* ---- acts ---- */

struct hk_letter_act {
    const int64_t *ids;
    size_t n; /* <= HK_LETTER_ACTS_MAX */
    const char *actor, *reason;
    /* For the audit. An act on one letter without any of these is one row without a list. */
    const char *filter,
        *program;   /* the filter that selected the letters; the jq program of a fix. NULL = none */
    int64_t act_id; /* the act that this call continues; 0 = it begins one */
    /* requeue: the letter moves to this destination; NULL = it keeps its own. HK_DID_REFUSE for an open letter: the message was
     * already sent there under that id, or is on its way. */
    const char *to;
};

#define HK_LETTER_ACTS_MAX 500

enum hk_letter_did {
    HK_DID_IT = 0,
    HK_DID_NOTHING, /* nothing to do: the letter was in that state already (on its way, discarded …) */
    HK_DID_NOT_FIND,
    HK_DID_REFUSE /* its state does not allow it: `status` and `sending_ms` say which */
};

struct hk_letter_done {
    int64_t id;
    enum hk_letter_did did;
    enum hk_letter_status status; /* afterwards */
    bool sending;                 /* refused: a send by hand has no outcome yet */
    struct hk_str message_id;     /* requeue: under which it goes out */
    int64_t begun_ms;             /* send_begin: tells this send from others of the letter */
    uint32_t version;             /* fix: of the payload, afterwards */
};

struct hk_letters_done {
    struct hk_letter_done *items; /* one per id, in the same order */
    size_t n;
    size_t changed;
    int64_t act_id; /* of the act with a list; as it was given when nothing was changed */
    int64_t now_ms;
};

enum hk_requeue_id {
    HK_REQUEUE_AUTO =
        0, /* the same id while nobody has edited the payload since it last went out, else a new one. (Edited, and
              requeued under its new id: that one may have arrived, so it is kept.) */
    /* The id of its newest life; but a new id for a letter that somebody edited since and that may have arrived. A request of the old
     * life may arrive later, and a receiver that knows the id would drop the repaired message. */
    HK_REQUEUE_SAME,
    HK_REQUEUE_NEW,
    HK_REQUEUE_SAME_ALWAYS /* the same id even then: for people who know better, not for jobs */
};

struct hk_letter_edit {
    int64_t id;
    uint32_t version;                 /* the version that the editor saw; HK_CONFLICT if it changed */
    struct hk_str payload;            /* as the store shall keep it */
    const char *actor, *reason, *act; /* "edit", "fix" */
};

/* One of many payloads that a program has changed. */
struct hk_letter_fix {
    uint32_t version;      /* the version that the program saw; HK_DID_REFUSE if it changed */
    struct hk_str payload; /* as the store shall keep it */
};

/* ---- redrive ---- */

struct hk_redrive_job {
    int64_t id;
    enum hk_redrive_status status;
    struct hk_str filter; /* as it was written; payload/filter.h reads it */
    struct hk_redrive_pace pace;
    enum hk_requeue_id ids;
    struct hk_str to;  /* destination of its letters; "" = each keeps its own */
    int64_t last_id;   /* letters above came later and do not belong to the job */
    int64_t cursor_id; /* letters up to here were looked at */
    struct hk_redrive_facts facts;
    struct hk_str actor, reason;
    int64_t created_ms, ended_ms;
    struct hk_str ending; /* why it was aborted or cancelled, and who cancelled it */
    struct hk_str
        held; /* while it runs: the paused destination of its next letter, which it waits for; "" = it does not wait */
    uint64_t eta_ms; /* the desk's estimate of the time left; UINT64_MAX = it has ended */
    /* The desk's estimate of letters that matched only after the start: part of facts.total. */
    uint64_t later;
};

struct hk_redrive_jobs {
    struct hk_redrive_job *items; /* newest first */
    size_t n;
    int64_t now_ms;
};

/* ---- groups of older versions ---- */

#define HK_REGROUP_MAX 1000

struct hk_regrouping {
    uint32_t limit; /* letters at a time, up to HK_REGROUP_MAX */
    size_t payload_max;
    /* Adds to `out_error` the error that this version would have written; if it adds nothing, the letter keeps its error. */
    void (*say)(void *arg, const struct hk_letter *letter, struct hk_buf *out_error);
    void *arg;
};

/* ---- audit ---- */

struct hk_audit_page {
    int64_t after_id; /* 0 = from the beginning */
    bool oldest_first;
    uint32_t limit;
    int64_t
        letter_id; /* 0 = any; else also acts that have it in their list: message_id to detail are that letter's */
    const char *actor, *act; /* NULL = any */
    bool parts;              /* also rows that continue an act */
    bool lists;              /* with the digests of lists */
};

struct hk_audit_rows {
    struct hk_audit_row *items;
    size_t n;
    bool more;
    int64_t last_id;
    /* the beginning of the chain: retention deleted earlier rows */
    int64_t first_id;
    struct hk_str first_prev;
    /* the beginning when purges of the audit did not yet write a row (schema version 4 and before) */
    struct hk_str unwitnessed_prev;
    struct hk_str head; /* hash of the last row, as the store remembers it */
};

struct hk_audit_letters {
    struct hk_audit_letter *items; /* by letter_id */
    size_t n;
    bool more;
};

struct hk_store_letters_ops {
    enum hk_code (*list)(struct hk_admin *admin, const struct hk_letter_query *query,
                         const struct hk_letter_page *page, const struct hk_letters **out,
                         struct hk_err *err);
    /* Exact up to HK_COUNT_EXACT looked at, then an estimate. */
    enum hk_code (*count)(struct hk_admin *admin, const struct hk_letter_query *query, struct hk_count *out,
                          struct hk_err *err);
    enum hk_code (*groups)(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                           const struct hk_letter_groups **out, struct hk_err *err);
    /* The same for a page of letters, in bounded time: every number covers only the letters of the page. */
    enum hk_code (*groups_page)(struct hk_admin *admin, const struct hk_letter_query *query,
                                const struct hk_letter_groups_page *page, const struct hk_letter_groups **out,
                                struct hk_err *err);
    /* Open letters of one group by the hour (of UTC) of their last failure: the last one is the hour that has begun. */
    enum hk_code (*hours)(struct hk_admin *admin, const char *fingerprint, struct hk_letter_span *span,
                          uint64_t out[HK_LETTER_HOURS], struct hk_err *err);
    enum hk_code (*stats)(struct hk_admin *admin, const struct hk_letter_stats **out, struct hk_err *err);
    /* HK_NOTFOUND. */
    enum hk_code (*show)(struct hk_admin *admin, int64_t id, size_t payload_max,
                         const struct hk_letter_shown **out, struct hk_err *err);

    /* The letter whose newest life goes, or went, under this message id, which is not its own. HK_NOTFOUND. */
    enum hk_code (*find_requeued)(struct hk_admin *admin, const char *message_id, int64_t *out_id,
                                  struct hk_err *err);

    /* Paused destinations, at most HK_NAMES_MAX. `status` says the same, but also counts messages. */
    enum hk_code (*paused)(struct hk_admin *admin, const struct hk_names **out, struct hk_err *err);

    /* HK_CONFLICT: it is not open any more, or somebody else has edited it. */
    enum hk_code (*edit)(struct hk_admin *admin, const struct hk_letter_edit *edit, uint32_t *out_version,
                         struct hk_err *err);
    /* As edit, of many letters: one of `fixes` for each id. What was refused is not open any more (`status`, `sending`), or somebody else
     * has edited it (`version`). HK_INVALID: a payload that the store cannot hold; nothing was changed. */
    enum hk_code (*fix)(struct hk_admin *admin, const struct hk_letter_act *act,
                        const struct hk_letter_fix *fixes, const struct hk_letters_done **out,
                        struct hk_err *err);
    enum hk_code (*requeue)(struct hk_admin *admin, const struct hk_letter_act *act, enum hk_requeue_id ids,
                            const struct hk_letters_done **out, struct hk_err *err);
    /* open, or a send without an outcome -> resolved. The resolution of this and of discard is "ACTOR: REASON"; "delivered"
     * and "cancelled" are the relay's words and cancel's. */
    enum hk_code (*resolve)(struct hk_admin *admin, const struct hk_letter_act *act,
                            const struct hk_letters_done **out, struct hk_err *err);
    enum hk_code (*discard)(struct hk_admin *admin, const struct hk_letter_act *act,
                            const struct hk_letters_done **out, struct hk_err *err);
    /* discarded, or a send without an outcome (which is then possibly delivered) -> open */
    enum hk_code (*restore)(struct hk_admin *admin, const struct hk_letter_act *act,
                            const struct hk_letters_done **out, struct hk_err *err);
    /* Adds an audit row ("note", "reveal") and changes nothing else. Any state. */
    enum hk_code (*remark)(struct hk_admin *admin, const struct hk_letter_act *act, const char *what,
                           const struct hk_letters_done **out, struct hk_err *err);

    /* A send by hand. begin records it beforehand; the caller then sends the message that `show` returns; end records the outcome.
     * Between the two the letter is `retrying`, holds its key, and refuses every act but resolve and restore. */
    enum hk_code (*send_begin)(struct hk_admin *admin, const struct hk_letter_act *act, /* of one letter */
                               const struct hk_letters_done **out, struct hk_err *err);
    /* `begun_ms` as send_begin gave it. `ok`: resolved; else open again. HK_CONFLICT: somebody has decided meanwhile, and may
     * even send it once more; the attempt is recorded all the same. */
    enum hk_code (*send_end)(struct hk_admin *admin, int64_t id, int64_t begun_ms, const char *actor,
                             const struct hk_attempt_record *attempt, bool ok, struct hk_err *err);

    /* `job`: filter, pace, ids, to, actor, reason are read, and facts.total: how many letters it means, for people; 0 = what count
     * says of `query`. HK_CONFLICT: a job of the same filter runs already; err names it. */
    enum hk_code (*redrive_start)(struct hk_admin *admin, const struct hk_letter_query *query,
                                  const struct hk_redrive_job *job, int64_t *out_id, struct hk_err *err);
    enum hk_code (*redrive_list)(struct hk_admin *admin, int64_t id /* 0 = the last 100 */, bool running_only,
                                 const struct hk_redrive_jobs **out, struct hk_err *err);
    /* HK_CONFLICT: it has ended. Letters that it requeued already are still sent. */
    enum hk_code (*redrive_cancel)(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                                   struct hk_err *err);
    /* Carries out one step of a running job in one transaction, as hk_redrive_decide says. `query` is the job's filter. A
     * requeued letter counts as arrived if it is neither on its way nor dead again (or discarded), because retention or a
     * later job may have removed it. A step writes an audit row ("requeue", with `redrive`) with the list of its letters; the row
     * continues the act that started the job.
     * A step that `query` is unsure of (core/letter.h) does nothing, and comes again after HK_REDRIVE_UNSURE_MS.
     * HK_BUSY: another relay is working on it. `*out_wake_ms`: when to call again (store time); 0 = the job has ended, in this
     * step or (`*out_ended` false) before it. */
    enum hk_code (*redrive_step)(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query,
                                 int64_t *out_wake_ms, bool *out_ended, struct hk_err *err);

    /* Computes this version's fingerprint for open letters whose fingerprint another version of the rule made (core/letter.h), the
     * oldest first: one look and one short transaction. Queries by the old fingerprint still find them. May be repeated and
     * killed at any time, and several relays may do it at once. `*out_n`: letters that it changed, 0 = none is left. */
    enum hk_code (*regroup)(struct hk_admin *admin, const struct hk_regrouping *how, uint32_t *out_n,
                            struct hk_err *err);

    enum hk_code (*audit)(struct hk_admin *admin, const struct hk_audit_page *page,
                          const struct hk_audit_rows **out, struct hk_err *err);
    /* The letters of an act, or its messages: those behind `after_letter_id`. None: it has no list, or retention has taken it. */
    enum hk_code (*act_letters)(struct hk_admin *admin, int64_t act_id, int64_t after_letter_id,
                                uint32_t limit, const struct hk_audit_letters **out, struct hk_err *err);
};

extern const struct hk_store_letters_ops hk_store_letters_sqlite;
extern const struct hk_store_letters_ops hk_store_letters_postgres; /* where it was built in */

/* As hk_store_by_url. */
const struct hk_store_letters_ops *hk_store_letters_by_url(const char *url, struct hk_err *err);

/* ---- the audit's chain ---- */

#define HK_AUDIT_HASH_MAX 65
/* SHA-256 in hex; "" when out of memory. */
void hk_digest_hex(struct hk_str bytes, char out[HK_AUDIT_HASH_MAX]);
/* Are these two the same, in hex? Takes the same time whatever they are. */
bool hk_digest_eq(const char a[HK_AUDIT_HASH_MAX], const char b[HK_AUDIT_HASH_MAX]);
/* Computes `hash` of a row, given the row before: SHA-256 over prev and all fields but id and hash, each as
 * "<bytes>:<value>," in the order of struct hk_audit_row (at_ms, actor, act, message_id, destination, reason, letter_id,
 * redrive, before, after, detail); an id that is 0 counts as "". PostgreSQL computes the same in SQL. */
void hk_audit_hash(const struct hk_audit_row *row, char out[HK_AUDIT_HASH_MAX]);
/* The digest of a list, in the order of its letters: letter_id, message_id, destination, before, after, detail of each, in the same
 * way. */
void hk_audit_list_hash(const struct hk_audit_letter *items, size_t n, char out[HK_AUDIT_HASH_MAX]);

#endif
