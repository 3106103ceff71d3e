/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' side of the PostgreSQL store from inside.
 *
 *   admin.c          open, close, small helpers, enqueue, pause, finding a message
 *   admin_act.c      cancel and retry, and why they do not race a relay's claim
 *   admin_bulk.c     cancel and restore of many
 *   adopt.c          the trigger on an outbox table that an application has already
 *   admin_clock.c    what a clock that was wrong has left behind
 *   admin_list.c     list and show
 *   admin_status.c   status and relays
 *   admin_figures.c  what relays saw lately
 *   admin_series.c   figures over time
 *   admin_why.c      what keeps messages from going out
 *   admin_inspect.c  what `doctor` asks
 *   sql/admin.sql     every SQL statement
 *
 * It has a connection of its own (pg.h) and shares its pipelines and sticking errors. Every transaction goes out whole, an
 * act's, too: a command line that is stopped half-way holds no lock that a relay would wait for. */
#ifndef HK_STORE_PG_ADMIN_H
#define HK_STORE_PG_ADMIN_H

#include "store/admin.h"
#include "store/cells.h"
#include "store/pg/admin_stmt.h"

#define HK_PA_PATIENCE_MS ((uint64_t)3600 * 1000) /* for whoever asked that everything be counted */

struct hk_admin {
    struct hk_pg pg;
    struct hk_store_options options;
    struct hk_store_status status;
    struct hk_relays relays;
    struct hk_rows rows;
    struct hk_shown shown;
    struct hk_tries tries;
    struct hk_figures figures;
    struct hk_series series;
    struct hk_series_names series_names;
    struct hk_why why;
    struct hk_waiting waiting;
    struct hk_lane_watch lanes;
    struct hk_seal_rows seal_rows;
    struct hk_seal_uses seal_uses;
};

/* Adds the time for statements that begin with it: NULL, which is the server's own, unless a test has its own clock. */
void hk_pa_arg_now(struct hk_admin *admin, struct hk_pg_args *a);
/* Doubles in the pool: room for item `n` of an array. NULL: out of memory, which sticks. */
void *hk_pa_grow(struct hk_admin *admin, void *items, size_t n, size_t *room, size_t bytes);
uint32_t hk_pa_u32(const PGresult *res, int row, int column); /* cut to what fits */
uint64_t hk_pa_u64(const PGresult *res, int row, int column);
/* A row from a column on, as all stores read it. */
struct hk_cells hk_pa_cells(struct hk_pg *pg, const PGresult *res, int row, int first);
/* hk_pg_end for what writes: says so when nobody knows whether it was done. */
enum hk_code hk_pa_end(struct hk_admin *admin, const char *doing, struct hk_err *err);
/* The ids of outbox that may have `message_id`, as a bigint[]. Reads the table from its end in bounded statements, each a
 * transaction of its own: outbox has no index on message_id, every INSERT of every application would pay for it (measured:
 * a B-tree a fifth more CPU and twice the WAL of a row of 500 bytes, a hash index a seventh and 1.4 times). */
struct hk_str hk_pa_find(struct hk_admin *admin, const char *message_id);
/* From the columns of HK_PA_ATTEMPTS. */
void hk_pa_attempt(struct hk_pg *pg, const PGresult *res, int row, struct hk_tried *out);

enum hk_code hk_pa_status(struct hk_admin *admin, const struct hk_store_status **out, struct hk_err *err);
enum hk_code hk_pa_status_exact(struct hk_admin *admin, const struct hk_store_status **out,
                                struct hk_err *err);
enum hk_code hk_pa_waiting(struct hk_admin *admin, const struct hk_blocking *ordered, size_t n,
                           const struct hk_waiting **out, struct hk_err *err);
enum hk_code hk_pa_blocked(struct hk_admin *admin, struct hk_blocking *items, size_t n, bool exact,
                           struct hk_err *err);
enum hk_code hk_pa_why(struct hk_admin *admin, const struct hk_why_ask *ask, const struct hk_why **out,
                       struct hk_err *err);
enum hk_code hk_pa_figures(struct hk_admin *admin, const struct hk_figures **out, struct hk_err *err);
enum hk_code hk_pa_figures_put(struct hk_admin *admin, int64_t lane, const struct hk_figure *items, size_t n,
                               struct hk_err *err);
enum hk_code hk_pa_series(struct hk_admin *admin, const struct hk_series_ask *ask,
                          const struct hk_series **out, struct hk_err *err);
enum hk_code hk_pa_series_names(struct hk_admin *admin, const struct hk_series_ask *ask,
                                const struct hk_series_names **out, struct hk_err *err);
enum hk_code hk_pa_erase_refs(struct hk_admin *admin, const struct hk_refs_act *act, struct hk_refs_done *out,
                              struct hk_err *err);
enum hk_code hk_pa_seal_page(struct hk_admin *admin, const struct hk_seal_page *page,
                             const struct hk_seal_rows **out, struct hk_err *err);
enum hk_code hk_pa_seal_put(struct hk_admin *admin, const struct hk_seal_put *put, bool *out_changed,
                            struct hk_err *err);
enum hk_code hk_pa_seal_uses(struct hk_admin *admin, const struct hk_seal_uses **out, struct hk_err *err);
enum hk_code hk_pa_note(struct hk_admin *admin, const struct hk_note_act *note, struct hk_err *err);
enum hk_code hk_pa_series_put(struct hk_admin *admin, const struct hk_series_row *rows, size_t n,
                              struct hk_err *err);
enum hk_code hk_pa_relays(struct hk_admin *admin, const struct hk_relays **out, struct hk_err *err);
enum hk_code hk_pa_list(struct hk_admin *admin, const struct hk_list *list, const struct hk_rows **out,
                        struct hk_err *err);
enum hk_code hk_pa_show(struct hk_admin *admin, const char *message_id, size_t payload_max,
                        const struct hk_shown **out, struct hk_err *err);
enum hk_code hk_pa_fetch(struct hk_admin *admin, const struct hk_ref *refs, size_t n, size_t payload_max,
                         const struct hk_shown **out, struct hk_err *err);
enum hk_code hk_pa_attempts(struct hk_admin *admin, const char *message_id, int64_t after_id, uint32_t limit,
                            const struct hk_tries **out, struct hk_err *err);
/* admin_define.c */
enum hk_code hk_pa_definitions(struct hk_admin *admin, const char *name, const struct hk_definitions **out,
                               struct hk_err *err);
enum hk_code hk_pa_definitions_of(struct hk_admin *admin, const struct hk_str *names, size_t n,
                                  const struct hk_definitions **out, struct hk_err *err);
enum hk_code hk_pa_define(struct hk_admin *admin, const struct hk_define *ask, struct hk_defined *out,
                          struct hk_err *err);
enum hk_code hk_pa_undefine(struct hk_admin *admin, const struct hk_undefine *ask, struct hk_defined *out,
                            struct hk_err *err);

enum hk_code hk_pa_adopt(struct hk_admin *admin, const struct hk_adopt *ask, struct hk_adopted *out,
                         struct hk_err *err);
enum hk_code hk_pa_clock(struct hk_admin *admin, const struct hk_clock_ask *ask, struct hk_clock_state *out,
                         struct hk_err *err);
enum hk_code hk_pa_cancel(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                          struct hk_err *err);
enum hk_code hk_pa_retry(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err);
enum hk_code hk_pa_force(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err);

enum hk_code hk_pa_cancel_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                               struct hk_refs_done *out, struct hk_err *err);
enum hk_code hk_pa_restore_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                                struct hk_refs_done *out, struct hk_err *err);

/* What is worth a warning. */
struct hk_pa_limits {
    int64_t held_s;      /* a transaction that has been open for longer keeps vacuum from its work */
    int64_t held_xids;   /* the same for a slot, which has no age but this */
    int64_t connections; /* fewer than this are left */
    int64_t clock_ms;    /* the server's clock is off by more */
};

/* hk_pa_inspect, with limits that a test can reach. */
enum hk_code hk_pa_inspect_with(const char *url, const struct hk_pa_limits *limits,
                                struct hk_store_health *out, struct hk_err *err);
enum hk_code hk_pa_inspect(const char *url, uint64_t integrity_ms, struct hk_store_health *out,
                           struct hk_err *err);

#endif
