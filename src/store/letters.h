/* SPDX-License-Identifier: Apache-2.0 */
/* What people do with dead letters: look, group, repair, requeue, send, discard; and the trail that every act leaves. A
 * third small vtable, on the same handle as admin.h and under the same rules (results are valid until the handle's next
 * call but one; no value in a row makes a call fail; reading locks nothing). tests/contract/letters_suite.c is this
 * contract as a test.
 *
 * - Every act is one transaction: the letter, the retry row, the older payload, and the audit row, or nothing.
 * - An act on many letters leaves one row, with a list of its letters beside it (outbox_audit_letters): the row's detail has the
 *   digest of the list, and so the chain covers it. An act that takes several transactions leaves a row for each; those behind the
 *   first name it ("act"). Programs of schema version 4 leave a row for each letter.
 * - Acts on many messages (admin.h) leave the same, with outbox_audit_messages.
 * - An act names letters by id and says what came of each. Letters are locked in the order of their ids; one that is not in a
 *   state for the act is left as it is, and does not stop the others.
 * - A letter that was requeued lies in outbox_retry, too, with its letter_id: once sent it is resolved, when it dies again it
 *   is open again with life + 1, both in the relay's settle (store.h). */
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
    int64_t last_id; /* where to go on */
    uint64_t looked; /* letters that were looked at, at least `n`: those that did not fit, too */
    int64_t now_ms;
};

struct hk_letter_group {
    struct hk_str fingerprint, reason, failure_class, blame, destination;
    uint64_t n;
    uint64_t maybe;            /* of them may have arrived (possibly_delivered) */
    int64_t first_ms, last_ms; /* first failure of any, last failure of any */
    int64_t example_id;        /* the newest */
    struct hk_str example_error, example_event_type, example_message_id;
    uint64_t *hours; /* what `hours` of the contract counted, HK_LETTER_HOURS of them; NULL = nobody asked */
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
    int64_t next;    /* where to go on: the oldest that was looked at */
    int64_t now_ms;
};

/* Newest first: so many letters are looked at and no more. */
struct hk_letter_groups_page {
    uint32_t limit;   /* groups */
    uint64_t looks;   /* letters */
    int64_t after_id; /* `next` of an earlier page; 0 = from the newest */
};

/* Which letters of a group are counted by the hour: the newest, from this id on. */
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
    /* For the trail. One letter without any of these is a row of its own, without a list. */
    const char *filter, *program; /* which letters were meant; the jq program of a fix. NULL = none */
    int64_t act_id;               /* the act that this call goes on with; 0 = it begins one */
    /* requeue: the letter goes to this destination, and is a letter of it from now on; NULL = to its own. HK_DID_REFUSE of a letter that is
     * open: the message went there already under that id, or is on its way. */
    const char *to;
};

#define HK_LETTER_ACTS_MAX 500

enum hk_letter_did {
    HK_DID_IT = 0,
    HK_DID_NOTHING, /* it was so already (on its way, discarded …): asked twice, done once */
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
    /* That of its newest life; but a new one for a letter that somebody edited since, and that may have arrived: a request of the old
     * life may be the later one to arrive, and a receiver that knows the id drops the repair. */
    HK_REQUEUE_SAME,
    HK_REQUEUE_NEW,
    HK_REQUEUE_SAME_ALWAYS /* even then: by hand, for who knows better; no job has it */
};

struct hk_letter_edit {
    int64_t id;
    uint32_t version;                 /* that the editor saw: another one now is HK_CONFLICT */
    struct hk_str payload;            /* as it is to be stored */
    const char *actor, *reason, *act; /* "edit", "fix" */
};

/* One of many payloads that a program has changed. */
struct hk_letter_fix {
    uint32_t version;      /* that the program saw: another one now is HK_DID_REFUSE */
    struct hk_str payload; /* as it is to be stored */
};

/* ---- redrive ---- */

struct hk_redrive_job {
    int64_t id;
    enum hk_redrive_status status;
    struct hk_str filter; /* as it was written; payload/filter.h reads it */
    struct hk_redrive_pace pace;
    enum hk_requeue_id ids;
    struct hk_str to;  /* where its letters go; "" = each to its own destination */
    int64_t last_id;   /* letters above came later and are not meant */
    int64_t cursor_id; /* letters up to here were looked at */
    struct hk_redrive_facts facts;
    struct hk_str actor, reason;
    int64_t created_ms, ended_ms;
    struct hk_str ending; /* why it was aborted or cancelled, by whom */
    struct hk_str
        held; /* while it runs: the paused destination that its next letter would go to; "" = it goes on */
    uint64_t eta_ms; /* how long it still takes, as the desk reckons; UINT64_MAX = it has ended */
    /* Letters that did not match when it was started and did when it came to them, as the desk reckons: part of facts.total. */
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
    /* The error that this version would have given to the letter, added to `out_error`; nothing: the one that it has stands. */
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
    bool parts;              /* also rows that go on with an act */
    bool lists;              /* with the digests of lists */
};

struct hk_audit_rows {
    struct hk_audit_row *items;
    size_t n;
    bool more;
    int64_t last_id;
    /* where the chain begins: retention took what lies before */
    int64_t first_id;
    struct hk_str first_prev;
    /* and where it began when a purge of the audit did not yet leave a row in it (schema version 4 and before) */
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
    /* The same of a page of letters, in a bounded time: every number is of what was looked at. */
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

    /* Destinations that are paused, the first HK_NAMES_MAX of them: what `status` says as well, but counts no messages. */
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
    /* A word to the trail: "note", "reveal". Any state. */
    enum hk_code (*remark)(struct hk_admin *admin, const struct hk_letter_act *act, const char *what,
                           const struct hk_letters_done **out, struct hk_err *err);

    /* By hand, once: begin records that it will be sent, before it is; what `show` gives is then sent; end records how that
     * went. Between the two the letter is `retrying`, holds its key, and refuses everything but resolve and restore. */
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
    /* HK_CONFLICT: it has ended. What is on its way stays on its way. */
    enum hk_code (*redrive_cancel)(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                                   struct hk_err *err);
    /* One step of a running job, in one transaction: hk_redrive_decide, and what it says. `query` is the job's filter. Of
     * what was requeued all that is neither on its way nor dead again (or discarded) counts as arrived: retention, or a
     * later job, may have taken it. A step leaves a row in the audit ("requeue", with `redrive`) with the list of its letters,
     * which goes on with the act that started the job.
     * HK_BUSY: another relay has it in hand. `*out_wake_ms`: when to ask again (store time); 0 = the job has ended: by this very step,
     * or (`*out_ended` false) before it. */
    enum hk_code (*redrive_step)(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query,
                                 int64_t *out_wake_ms, bool *out_ended, struct hk_err *err);

    /* Gives some of the open letters whose fingerprint another version of the rule made (core/letter.h) the one of this version, the
     * oldest first: one look and one short transaction. Queries that name the fingerprint of before still find them. May be
     * repeated and killed at any time, and several relays may do it at once. `*out_n`: letters that it changed, 0 = none is left. */
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
/* What `hash` of a row must be, given the row before: SHA-256 over prev and all fields but id and hash, each as
 * "<bytes>:<value>," in the order of struct hk_audit_row (at_ms, actor, act, message_id, destination, reason, letter_id,
 * redrive, before, after, detail); an id that is 0 counts as "". PostgreSQL computes the same in SQL. */
void hk_audit_hash(const struct hk_audit_row *row, char out[HK_AUDIT_HASH_MAX]);
/* The digest of a list, in the order of its letters: letter_id, message_id, destination, before, after, detail of each, in the same
 * way. */
void hk_audit_list_hash(const struct hk_audit_letter *items, size_t n, char out[HK_AUDIT_HASH_MAX]);

#endif
