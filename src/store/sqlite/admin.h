/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' side of the SQLite store from inside.
 *
 *   admin.c          open, close, small helpers, enqueue, pause, audit
 *   admin_act.c      cancel and retry
 *   admin_bulk.c     cancel and restore of many
 *   adopt.c          the trigger on an outbox table that an application has already
 *   admin_clock.c    what a clock that was wrong has left behind
 *   admin_list.c     list and show
 *   admin_status.c   status and relays
 *   admin_figures.c  what relays saw lately
 *   admin_series.c   figures over time
 *   admin_why.c      what keeps messages from going out
 *   admin_inspect.c  what `doctor` asks
 *
 * It sits on a store of its own (sqlite.h) and shares its transactions, time, busy handling and sticking errors. Its
 * statements are prepared for each call: a person waits for them, not a relay. */
#ifndef HK_STORE_SQLITE_ADMIN_H
#define HK_STORE_SQLITE_ADMIN_H

#include "store/admin.h"
#include "store/cells.h"
#include "store/sqlite/admin_sql.h" /* made of sql/admin.sql */
#include "store/sqlite/sqlite.h"

enum {
    HK_SA_TEXT_MAX = 64 * 1024, /* longer texts are cut */
};

struct hk_admin {
    struct hk_store *store;
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

/* What manifests name: `held` by claim, `named` by row of outbox. */
#define HK_SA_NAMED                                                                                          \
    "held AS MATERIALIZED (SELECT c.claim, c.claimed_ms, r.name, c.ids FROM outbox_claim c "                 \
    "JOIN outbox_relay r ON r.lane = c.lane), "                                                              \
    "named AS MATERIALIZED (SELECT CAST(j.value AS INTEGER) AS id, h.claimed_ms, h.name FROM held h "        \
    "JOIN json_each(CASE WHEN json_valid(h.ids) THEN h.ids ELSE '[]' END) j) "

/* NULL when an error sticks. To be finalized by the caller, before the transaction ends. */
sqlite3_stmt *hk_sa_prepare(struct hk_store *store, const char *sql);
/* Copied, at most `max` bytes of it; "" for NULL. */
struct hk_str hk_sa_text(struct hk_store *store, sqlite3_stmt *q, int column, size_t max);
int64_t hk_sa_time(sqlite3_stmt *q, int column); /* RFC 3339; 0 for what is none */
uint32_t hk_sa_u32(sqlite3_stmt *q, int column); /* cut to what fits */
/* The row that the statement stands on, as all stores read it. */
struct hk_cells hk_sa_cells(struct hk_store *store, sqlite3_stmt *q);
bool hk_sa_is_glob(const char *pattern); /* has it a '*'? */
/* For GLOB: '*' stands for any text, all else for itself. */
void hk_sa_bind_glob(struct hk_store *store, sqlite3_stmt *q, int i, const char *pattern);
/* Doubles in the pool: room for item `n` of an array. NULL: out of memory, which sticks. */
void *hk_sa_grow(struct hk_store *store, void *items, size_t n, size_t *room, size_t bytes);
void hk_sa_audit(struct hk_store *store, const char *act, const char *message_id, struct hk_str destination,
                 const char *actor, const char *reason, int64_t now_ms);

typedef void hk_sa_sample_fn(void *arg, sqlite3_stmt *q);
/* Looks at evenly spaced stretches of a table's ids: `each` sees destination and number of rows that `condition` holds
 * for, and for how many of these `also` does, once for each stretch that has some. How many times more rows the table has
 * than were looked at. */
double hk_sa_sample(struct hk_store *store, const char *table, const char *condition, const char *also,
                    hk_sa_sample_fn *each, void *arg);

enum hk_code hk_sa_status(struct hk_admin *admin, const struct hk_store_status **out, struct hk_err *err);
enum hk_code hk_sa_status_exact(struct hk_admin *admin, const struct hk_store_status **out,
                                struct hk_err *err);
enum hk_code hk_sa_waiting(struct hk_admin *admin, const struct hk_blocking *ordered, size_t n,
                           const struct hk_waiting **out, struct hk_err *err);
enum hk_code hk_sa_blocked(struct hk_admin *admin, struct hk_blocking *items, size_t n, bool exact,
                           struct hk_err *err);
enum hk_code hk_sa_why(struct hk_admin *admin, const struct hk_why_ask *ask, const struct hk_why **out,
                       struct hk_err *err);
enum hk_code hk_sa_figures(struct hk_admin *admin, const struct hk_figures **out, struct hk_err *err);
enum hk_code hk_sa_figures_put(struct hk_admin *admin, int64_t lane, const struct hk_figure *items, size_t n,
                               struct hk_err *err);
enum hk_code hk_sa_series(struct hk_admin *admin, const struct hk_series_ask *ask,
                          const struct hk_series **out, struct hk_err *err);
enum hk_code hk_sa_series_names(struct hk_admin *admin, const struct hk_series_ask *ask,
                                const struct hk_series_names **out, struct hk_err *err);
enum hk_code hk_sa_erase_refs(struct hk_admin *admin, const struct hk_refs_act *act, struct hk_refs_done *out,
                              struct hk_err *err);
enum hk_code hk_sa_seal_page(struct hk_admin *admin, const struct hk_seal_page *page,
                             const struct hk_seal_rows **out, struct hk_err *err);
enum hk_code hk_sa_seal_put(struct hk_admin *admin, const struct hk_seal_put *put, bool *out_changed,
                            struct hk_err *err);
enum hk_code hk_sa_seal_uses(struct hk_admin *admin, const struct hk_seal_uses **out, struct hk_err *err);
enum hk_code hk_sa_note(struct hk_admin *admin, const struct hk_note_act *note, struct hk_err *err);
enum hk_code hk_sa_series_put(struct hk_admin *admin, const struct hk_series_row *rows, size_t n,
                              struct hk_err *err);
enum hk_code hk_sa_relays(struct hk_admin *admin, const struct hk_relays **out, struct hk_err *err);
enum hk_code hk_sa_list(struct hk_admin *admin, const struct hk_list *list, const struct hk_rows **out,
                        struct hk_err *err);
void hk_sa_attempt(struct hk_store *store, sqlite3_stmt *q, struct hk_tried *out);
enum hk_code hk_sa_show(struct hk_admin *admin, const char *message_id, size_t payload_max,
                        const struct hk_shown **out, struct hk_err *err);
enum hk_code hk_sa_fetch(struct hk_admin *admin, const struct hk_ref *refs, size_t n, size_t payload_max,
                         const struct hk_shown **out, struct hk_err *err);
enum hk_code hk_sa_attempts(struct hk_admin *admin, const char *message_id, int64_t after_id, uint32_t limit,
                            const struct hk_tries **out, struct hk_err *err);
/* admin_define.c */
enum hk_code hk_sa_definitions(struct hk_admin *admin, const char *name, const struct hk_definitions **out,
                               struct hk_err *err);
enum hk_code hk_sa_definitions_of(struct hk_admin *admin, const struct hk_str *names, size_t n,
                                  const struct hk_definitions **out, struct hk_err *err);
enum hk_code hk_sa_define(struct hk_admin *admin, const struct hk_define *ask, struct hk_defined *out,
                          struct hk_err *err);
enum hk_code hk_sa_undefine(struct hk_admin *admin, const struct hk_undefine *ask, struct hk_defined *out,
                            struct hk_err *err);

enum hk_code hk_sa_adopt(struct hk_admin *admin, const struct hk_adopt *ask, struct hk_adopted *out,
                         struct hk_err *err);
enum hk_code hk_sa_clock(struct hk_admin *admin, const struct hk_clock_ask *ask, struct hk_clock_state *out,
                         struct hk_err *err);
enum hk_code hk_sa_cancel(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                          struct hk_err *err);
enum hk_code hk_sa_retry(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err);
enum hk_code hk_sa_force(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err);
/* Moves a row of outbox or outbox_retry, which nobody has in hand, to outbox_cancelled: its id there. */
int64_t hk_sa_cancel_row(struct hk_store *store, struct hk_ref row, const struct hk_act *act, int64_t now_ms);
enum hk_code hk_sa_cancel_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                               struct hk_refs_done *out, struct hk_err *err);
enum hk_code hk_sa_restore_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                                struct hk_refs_done *out, struct hk_err *err);
enum hk_code hk_sa_inspect(const char *url, uint64_t integrity_ms, struct hk_store_health *out,
                           struct hk_err *err);

#endif
