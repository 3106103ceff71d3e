/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that was wrong, in SQLite: the high-water mark, and what was written with its time (clock.h). All of it is one transaction
 * under the write lock, and under the relays' lock, so that no relay begins meanwhile. */
#include "base/buf.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"

enum {
    SLICE_ROWS = 1000
};

/* They take the clock and the mark. */
static sqlite3_stmt *bind_times(struct hk_store *store, unsigned id, const struct hk_clock_state *state)
{
    sqlite3_stmt *q = hk_sq_use(store, (enum hk_sq_id)id);
    hk_sq_bind_i64(store, q, 1, state->clock_ms);
    hk_sq_bind_i64(store, q, 2, state->mark_ms);
    return q;
}

/* Rows can be ahead of the mark, too: where somebody has set it back by hand. */
static int64_t latest_written(struct hk_store *store)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_CLOCK_MARK);
    int64_t ms = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    hk_sq_done(q);
    return ms;
}

static void look(struct hk_store *store, struct hk_clock_state *out)
{
    hk_sq_clock_lift(store);
    out->mark_ms = hk_sq_now(store);
    out->clock_ms = hk_sq_clock(store);
    int64_t written_ms = latest_written(store);
    if (written_ms > out->mark_ms)
        out->mark_ms = written_ms;
    if (hk_clock_in_step(out))
        return;
    sqlite3_stmt *q = bind_times(store, HK_SQ_CLOCK_COUNTS, out);
    bool found = hk_sq_row(store, q);
    for (int i = 0; found && i < HK_NCLOCK_PARTS; i++)
        out->rows[i] = (uint64_t)sqlite3_column_int64(q, i);
    hk_sq_done(q);
}

/* The rows of outbox_retry may be many: slice by slice, all in one transaction. */
static uint64_t mend_retries(struct hk_store *store, unsigned id, const struct hk_clock_state *state)
{
    uint64_t rows = 0;
    int64_t from = INT64_MIN;
    bool more = true;
    while (more && hk_sq_ok(store)) {
        sqlite3_stmt *end = hk_sq_use(store, HK_SQ_CLOCK_SLICE_END);
        hk_sq_bind_i64(store, end, 1, from);
        hk_sq_bind_i64(store, end, 2, SLICE_ROWS);
        more = hk_sq_row(store, end);
        int64_t to = more ? sqlite3_column_int64(end, 0) : INT64_MAX;
        hk_sq_done(end);
        sqlite3_stmt *q = bind_times(store, id, state);
        hk_sq_bind_i64(store, q, 3, from);
        hk_sq_bind_i64(store, q, 4, to);
        rows += (uint64_t)hk_sq_run(store, q);
        from = to;
    }
    return rows;
}

static void mend(struct hk_store *store, const struct hk_clock_ask *ask, struct hk_clock_state *state)
{
    struct hk_buf detail;
    state->rows[HK_CLOCK_WAITS] = mend_retries(store, HK_SQ_CLOCK_WAITS, state);
    state->rows[HK_CLOCK_DUE] = mend_retries(store, HK_SQ_CLOCK_DUE, state);
    for (unsigned i = HK_CLOCK_DUE + 1; i < HK_NCLOCK_PARTS; i++)
        state->rows[i] = (uint64_t)hk_sq_run(store, bind_times(store, HK_SQ_CLOCK_WAITS + i, state));
    hk_sq_clock_reset(store, state->clock_ms);
    hk_buf_init(&detail, HK_SA_TEXT_MAX);
    hk_clock_detail(&detail, state);
    if (hk_buf_status(&detail) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = state->clock_ms,
                                              .actor = hk_str_of(ask->actor),
                                              .act = hk_str_of("clock-reset"),
                                              .reason = hk_str_of(ask->reason),
                                              .detail = hk_buf_str(&detail)});
    hk_buf_fini(&detail);
    state->mended = true;
}

/* HK_OK: it may be mended. */
static enum hk_code may_mend(struct hk_admin *admin, struct hk_clock_state *state, struct hk_err *err)
{
    enum hk_code rc = hk_clock_check(state, err);
    return rc == HK_OK ? hk_sq_lanes_dead(admin->store, &admin->lanes, &state->lease_ms, err) : rc;
}

static enum hk_code reset(struct hk_admin *admin, const struct hk_clock_ask *ask,
                          struct hk_clock_state *state, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_lock(store);
    hk_sq_begin_write(store);
    look(store, state);
    if (hk_sq_ok(store) && !hk_clock_in_step(state)) {
        enum hk_code refused = may_mend(admin, state, err);
        if (refused != HK_OK && hk_sq_ok(store)) {
            hk_sq_rollback(store);
            hk_sq_unlock(store);
            return refused;
        }
        mend(store, ask, state);
    }
    enum hk_code rc = hk_sq_end(store, "reset the clock", err);
    hk_sq_unlock(store);
    return rc;
}

enum hk_code hk_sa_clock(struct hk_admin *admin, const struct hk_clock_ask *ask, struct hk_clock_state *out,
                         struct hk_err *err)
{
    struct hk_clock_state state = {.of_server = false, .lease_ms = ask->lease_ms};
    enum hk_code rc;
    hk_sq_call(admin->store);
    if (ask->reason) {
        rc = reset(admin, ask, &state, err);
    } else {
        hk_sq_begin_read(admin->store);
        look(admin->store, &state);
        rc = hk_sq_end(admin->store, "look at the clock", err);
    }
    if (rc == HK_OK || rc == HK_BUSY)
        *out = state;
    return rc;
}
