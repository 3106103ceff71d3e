/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters on PostgreSQL from inside.
 *
 *   letters.c          list and count: what a query means, and which index gives it
 *   letters_sum.c      groups and stats
 *   letters_show.c     one letter with all that belongs to it; the audit
 *   letters_act.c      edit, requeue, resolve, discard, restore, remark, send
 *   letters_redrive.c  jobs
 *   letters_regroup.c  groups of older versions
 *   sql/letters.sql     every SQL statement
 *
 * All on the operators' handle (admin.h), and under its rule: a transaction goes out whole, so that no lock waits for a
 * person. Results lie in the call's pool and live as long. */
#ifndef HK_STORE_PG_LETTERS_H
#define HK_STORE_PG_LETTERS_H

#include "store/letters.h"
#include "store/pg/admin.h"
#include "store/pg/letters_stmt.h"

/* A letter from the columns that begin at `first`. `copy`: texts into the pool; else they point into `res`. */
void hk_pl_letter(struct hk_pg *pg, const PGresult *res, int row, int first, bool copy,
                  struct hk_letter *out);
void hk_pl_cut_payload(struct hk_letter *letter, size_t payload_max); /* PostgreSQL cuts by characters */

/* A walk over the letters that a query means, its match included, in bounded memory. */
struct hk_pl_walk {
    struct hk_admin *admin;
    const struct hk_letter_query *query;
    bool oldest_first, details;
    size_t payload_max; /* of what is given; matching takes what it needs */
    uint32_t limit;     /* letters at a time */
    int64_t window;     /* letters that one statement compares */
    int64_t above, below;
    /* results */
    bool ended;
    int64_t now_ms;
    int64_t looked;    /* letters that were matched here, */
    int64_t windows;   /* and how often the server was asked for them */
    uint64_t compared; /* letters that the server looked at */
};

void hk_pl_walk_init(struct hk_pl_walk *walk, struct hk_admin *admin, const struct hk_letter_query *query);
/* Looks at the next letters and gives those that match to `take`, until it returns false; its letter does not outlive the
 * call. False: an error sticks, or the walk has ended, or was told to. */
typedef bool hk_pl_take_fn(void *arg, const PGresult *res, int row, const struct hk_letter *letter);
bool hk_pl_walk_on(struct hk_pl_walk *walk, hk_pl_take_fn *take, void *arg);

/* Parameters of one term each; NULL and 0 are NULL. A pattern's '*' is as LIKE has it. A sieve is five of them. */
void hk_pl_arg_asked(struct hk_pg *pg, struct hk_pg_args *a, const char *text);
void hk_pl_arg_pattern(struct hk_pg *pg, struct hk_pg_args *a, const char *pattern);
void hk_pl_arg_time(struct hk_pg *pg, struct hk_pg_args *a, int64_t ms);
void hk_pl_arg_sieve(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_letter_sieve *sieve);
enum hk_pl_path hk_pl_path_of(const struct hk_letter_query *query);
/* Is there a letter on the query's path, whether it fits or not, with an id between the two? Errors stick. */
bool hk_pl_has_more(struct hk_admin *admin, const struct hk_letter_query *query, int64_t above,
                    int64_t below);
/* The parameters of a query: $1 to $16. Ids between `above` and `below`. */
void hk_pl_arg_query(struct hk_admin *admin, struct hk_pg_args *a, const struct hk_letter_query *query,
                     int64_t above, int64_t below);
void hk_pl_bounds(const struct hk_letter_query *query, int64_t *above, int64_t *below);
/* hk_store_letters_ops.count without its beginning and its end. Errors stick. */
struct hk_count hk_pl_count(struct hk_admin *admin, const struct hk_letter_query *query);
/* hk_pg_end for what reads. */
enum hk_code hk_pl_end(struct hk_admin *admin, const char *doing, struct hk_err *err);
/* From the columns of HK_PL_ACTS. */
void hk_pl_audit_row(struct hk_pg *pg, const PGresult *res, int row, int first, struct hk_audit_row *out);
const char *hk_pl_ids_name(enum hk_requeue_id ids); /* "auto", "same", "new" */

enum hk_code hk_pl_hours(struct hk_admin *admin, const char *fingerprint, struct hk_letter_span *span,
                         uint64_t out[HK_LETTER_HOURS], struct hk_err *err);
enum hk_code hk_pl_groups_page(struct hk_admin *admin, const struct hk_letter_query *query,
                               const struct hk_letter_groups_page *page, const struct hk_letter_groups **out,
                               struct hk_err *err);
enum hk_code hk_pl_groups(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                          const struct hk_letter_groups **out, struct hk_err *err);
enum hk_code hk_pl_stats(struct hk_admin *admin, const struct hk_letter_stats **out, struct hk_err *err);
enum hk_code hk_pl_show(struct hk_admin *admin, int64_t id, size_t payload_max,
                        const struct hk_letter_shown **out, struct hk_err *err);
enum hk_code hk_pl_paused(struct hk_admin *admin, const struct hk_names **out, struct hk_err *err);
enum hk_code hk_pl_find_requeued(struct hk_admin *admin, const char *message_id, int64_t *out_id,
                                 struct hk_err *err);
enum hk_code hk_pl_audit(struct hk_admin *admin, const struct hk_audit_page *page,
                         const struct hk_audit_rows **out, struct hk_err *err);

enum hk_code hk_pl_regroup(struct hk_admin *admin, const struct hk_regrouping *how, uint32_t *out_n,
                           struct hk_err *err);

enum hk_code hk_pl_act_letters(struct hk_admin *admin, int64_t act_id, int64_t after_letter_id,
                               uint32_t limit, const struct hk_audit_letters **out, struct hk_err *err);

enum hk_code hk_pl_fix(struct hk_admin *admin, const struct hk_letter_act *act,
                       const struct hk_letter_fix *fixes, const struct hk_letters_done **out,
                       struct hk_err *err);
enum hk_code hk_pl_edit(struct hk_admin *admin, const struct hk_letter_edit *edit, uint32_t *out_version,
                        struct hk_err *err);
enum hk_code hk_pl_requeue(struct hk_admin *admin, const struct hk_letter_act *act, enum hk_requeue_id ids,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_pl_resolve(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_pl_discard(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_pl_restore(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_pl_remark(struct hk_admin *admin, const struct hk_letter_act *act, const char *what,
                          const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_pl_send_begin(struct hk_admin *admin, const struct hk_letter_act *act,
                              const struct hk_letters_done **out, struct hk_err *err);
enum hk_code hk_pl_send_end(struct hk_admin *admin, int64_t id, int64_t begun_ms, const char *actor,
                            const struct hk_attempt_record *attempt, bool ok, struct hk_err *err);

enum hk_code hk_pl_redrive_start(struct hk_admin *admin, const struct hk_letter_query *query,
                                 const struct hk_redrive_job *job, int64_t *out_id, struct hk_err *err);
enum hk_code hk_pl_redrive_list(struct hk_admin *admin, int64_t id, bool running_only,
                                const struct hk_redrive_jobs **out, struct hk_err *err);
enum hk_code hk_pl_redrive_cancel(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                                  struct hk_err *err);
enum hk_code hk_pl_redrive_step(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query,
                                int64_t *out_wake_ms, bool *out_ended, struct hk_err *err);

#endif
