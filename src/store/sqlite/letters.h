/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters on SQLite from inside.
 *
 *   letters.c          one letter from its row, with as much of its payload as is wanted
 *   letters_walk.c     the letters that a query means, one after the other
 *   letters_sieve.c    which of them can match at all
 *   letters_list.c     list, count
 *   letters_show.c     show, audit: what is known of one, and the trail
 *   letters_groups.c   groups
 *   letters_stats.c    stats
 *   letters_acts.c     requeue, resolve, discard, restore, remark, edit, fix
 *   letters_trail.c    what acts leave in the audit, and their lists of letters
 *   letters_send.c     by hand
 *   letters_redrive.c  jobs
 *   letters_regroup.c  groups of older versions
 *
 * It sits on the operators' handle (admin.h). Payloads are read and written in letters.c and in the statements
 * of letters_acts.c, nowhere else. */
#ifndef HK_STORE_SQLITE_LETTERS_H
#define HK_STORE_SQLITE_LETTERS_H

#include "store/letters.h"
#include "store/sqlite/admin.h"
#include "store/sqlite/letters_sql.h" /* made of sql/letters.sql */

/* ---- one letter ---- */

struct hk_sl_reader {
    struct hk_store *store;
    sqlite3_stmt *q;
    sqlite3_blob *blob; /* kept from row to row: opening one anew costs more than reading a payload */
    bool details;
};

void hk_sl_reader_open(struct hk_store *store, bool details, struct hk_sl_reader *out);
/* False: there is no such letter, or an error sticks. Texts go into `pool`. */
bool hk_sl_read(struct hk_sl_reader *reader, int64_t id, size_t payload_max, struct hk_pool *pool,
                struct hk_letter *out);
/* The payload of a letter that has one of bytes, piece by piece: how long it is, and `n` bytes from `at`. Errors stick. */
size_t hk_sl_seek(struct hk_sl_reader *reader, int64_t id);
bool hk_sl_read_at(struct hk_sl_reader *reader, char *out, size_t n, size_t at);
void hk_sl_reader_close(struct hk_sl_reader *reader);

/* An older payload; `rowid` is that of a TEXT or a BLOB. */
void hk_sl_read_version(struct hk_store *store, int64_t rowid, size_t max, struct hk_letter_version *out);

/* How a letter's status is called in SQL's text; HK_LETTER_DISCARDED for a name that is none. */
enum hk_letter_status hk_sl_status(sqlite3_stmt *q, int column);
struct hk_str hk_sl_time_text(int64_t ms, char out[32]); /* RFC 3339 */
/* `sql` with the letter's id as ?1. To be finalized. */
sqlite3_stmt *hk_sl_prepare_for(struct hk_store *store, const char *sql, int64_t id);

/* ---- the letters that a query means ---- */

/* Ids and bytes that a call looks at, at the most. */
struct hk_sl_bound {
    uint64_t rows;
    uint64_t bytes; /* of payloads, where they are looked at */
};

struct hk_sl_walk {
    struct hk_store *store;
    const struct hk_letter_query *query;
    sqlite3_stmt *q;
    struct hk_sl_reader reader; /* where the query has `match` */
    struct hk_pool scratch;
    char *piece; /* of a payload; hk_mem's */
    struct hk_sl_bound left;
    uint64_t looked;           /* rows */
    int64_t first_id, last_id; /* that were looked at; 0 = none */
    bool ended;                /* there is none behind it */
};

struct hk_sl_range {
    int64_t after_id; /* 0 = from the beginning */
    bool oldest_first;
    const char *also; /* columns, behind all others that the walk reads: ", a, b"; NULL = none */
};

void hk_sl_walk_begin(struct hk_store *store, const struct hk_letter_query *query, struct hk_sl_range range,
                      struct hk_sl_bound bound, struct hk_sl_walk *out);
/* True: `last_id` is the next one that is meant. False: there is none, the bound was reached, or an error sticks. */
bool hk_sl_walk_next(struct hk_sl_walk *walk);
void hk_sl_walk_end(struct hk_sl_walk *walk);

/* Of the row that the walk stands on: can it match? Reads the columns that hk_sl_sieve_columns adds to the walk's. */
bool hk_sl_sieve(struct hk_sl_walk *walk);
const char *hk_sl_sieve_columns(const struct hk_letter_query *query);

/* Adds " AND …" for each term that is set. Values are bound by hk_sl_bind. */
enum {
    HK_SL_DESTINATION = 3, /* ?1 and ?2 are the caller's */
    HK_SL_REASON,
    HK_SL_FINGERPRINT,
    HK_SL_MESSAGE,
    HK_SL_CORRELATION,
    HK_SL_KEY,
    HK_SL_EVENT_TYPE,
    HK_SL_CLASS,
    HK_SL_FAULT,
    HK_SL_SINCE,
    HK_SL_BEFORE,
    HK_SL_REDRIVE
};

void hk_sl_bind(struct hk_store *store, sqlite3_stmt *q, const struct hk_letter_query *query);
/* "status IN (…)"; false: any */
bool hk_sl_statuses(struct hk_buf *sql, unsigned statuses);
int hk_sl_only_status(unsigned statuses); /* enum hk_letter_status, -1 = not just one */

/* ---- acts ---- */

/* What an act leaves in the audit. `store` and `row` (at_ms, actor, act, reason, redrive) are the caller's; the rest is from `act`. */
struct hk_sl_trail {
    struct hk_store *store;
    struct hk_audit_row row;
    bool messages; /* it is about messages: letter_id is that of outbox_cancelled */
    bool many;     /* one row with a list; else a row for its letter */
    const char *filter, *program;
    int64_t act_id; /* 0 = it begins one */
    struct hk_audit_letter *items;
    size_t n, room;
};

void hk_sl_trail_begin(struct hk_sl_trail *t, const struct hk_letter_act *act);
/* Letters in the order of their ids, each once (messages in any order); texts are copied, or of the call's pool. */
void hk_sl_trail_add(struct hk_sl_trail *t, const struct hk_audit_letter *letter);
int64_t hk_sl_trail_end(struct hk_sl_trail *t); /* the act's id; as it was given when there was no letter */
/* hk_audit_list_hash of the list of a row; "" = it has none. Inside a transaction. */
struct hk_str hk_sl_list_digest(struct hk_store *store, int64_t audit_id);

/* What a requeue needs, prepared once for many. */
struct hk_sl_requeuer {
    struct hk_store *store;
    sqlite3_stmt *read, *insert, *update, *lose, *taken;
    enum hk_requeue_id ids;
    struct hk_str to; /* "" = each to its own destination */
    int64_t redrive;  /* 0 = by hand */
    int64_t now_ms;
    struct hk_sl_trail *trail;
};

void hk_sl_requeuer_open(struct hk_sl_requeuer *r); /* store, ids, redrive, now_ms, trail are set */
void hk_sl_requeue_one(struct hk_sl_requeuer *r, struct hk_letter_done *done); /* its id is set */
void hk_sl_requeuer_close(struct hk_sl_requeuer *r);

/* A write transaction with the time of the store; hk_sq_end ends it. */
int64_t hk_sl_begin_act(struct hk_admin *admin);

enum hk_code hk_sl_list(struct hk_admin *admin, const struct hk_letter_query *query,
                        const struct hk_letter_page *page, const struct hk_letters **out, struct hk_err *err);
/* Inside a transaction. */
struct hk_count hk_sl_count_in(struct hk_store *store, const struct hk_letter_query *query);
enum hk_code hk_sl_count(struct hk_admin *admin, const struct hk_letter_query *query, struct hk_count *out,
                         struct hk_err *err);
enum hk_code hk_sl_hours(struct hk_admin *admin, const char *fingerprint, struct hk_letter_span *span,
                         uint64_t out[HK_LETTER_HOURS], struct hk_err *err);
enum hk_code hk_sl_groups_page(struct hk_admin *admin, const struct hk_letter_query *query,
                               const struct hk_letter_groups_page *page, const struct hk_letter_groups **out,
                               struct hk_err *err);
enum hk_code hk_sl_groups(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                          const struct hk_letter_groups **out, struct hk_err *err);
enum hk_code hk_sl_stats(struct hk_admin *admin, const struct hk_letter_stats **out, struct hk_err *err);
enum hk_code hk_sl_show(struct hk_admin *admin, int64_t id, size_t payload_max,
                        const struct hk_letter_shown **out, struct hk_err *err);
enum hk_code hk_sl_paused(struct hk_admin *admin, const struct hk_names **out, struct hk_err *err);
enum hk_code hk_sl_find_requeued(struct hk_admin *admin, const char *message_id, int64_t *out_id,
                                 struct hk_err *err);
enum hk_code hk_sl_audit(struct hk_admin *admin, const struct hk_audit_page *page,
                         const struct hk_audit_rows **out, struct hk_err *err);
enum hk_code hk_sl_regroup(struct hk_admin *admin, const struct hk_regrouping *how, uint32_t *out_n,
                           struct hk_err *err);

enum hk_code hk_sl_act_letters(struct hk_admin *admin, int64_t act_id, int64_t after_letter_id,
                               uint32_t limit, const struct hk_audit_letters **out, struct hk_err *err);
enum hk_code hk_sl_fix(struct hk_admin *admin, const struct hk_letter_act *act,
                       const struct hk_letter_fix *fixes, const struct hk_letters_done **out,
                       struct hk_err *err);
enum hk_code hk_sl_edit(struct hk_admin *admin, const struct hk_letter_edit *edit, uint32_t *out_version,
                        struct hk_err *err);
enum hk_code hk_sl_requeue(struct hk_admin *admin, const struct hk_letter_act *act, enum hk_requeue_id ids,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_sl_resolve(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_sl_discard(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_sl_restore(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_sl_remark(struct hk_admin *admin, const struct hk_letter_act *act, const char *what,
                          const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_sl_send_begin(struct hk_admin *admin, const struct hk_letter_act *act,
                              const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_sl_send_end(struct hk_admin *admin, int64_t id, int64_t begun_ms, const char *actor,
                            const struct hk_attempt_record *attempt, bool ok, struct hk_err *err);
enum hk_code hk_sl_redrive_start(struct hk_admin *admin, const struct hk_letter_query *query,
                                 const struct hk_redrive_job *job, int64_t *out_id, struct hk_err *err);
enum hk_code hk_sl_redrive_list(struct hk_admin *admin, int64_t id, bool running_only,
                                const struct hk_redrive_jobs **out, struct hk_err *err);
enum hk_code hk_sl_redrive_cancel(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                                  struct hk_err *err);
enum hk_code hk_sl_redrive_step(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query,
                                int64_t *out_wake_ms, bool *out_ended, struct hk_err *err);

#endif
