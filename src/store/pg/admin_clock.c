/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that was wrong, in PostgreSQL: the server's. Relays have a high-water mark in memory only, and lose it when they are
 * stopped; what was written with the wrong time stays in rows (clock.h).
 *
 * First a look, then what is to be mended as one transaction that goes out whole, with the times of the look. It changes nothing if a
 * relay has begun or woken in between. A relay that wakes later finds that its lane has ended. */
#include <string.h>

#include "base/buf.h"
#include "store/pg/admin.h"

#define DETAIL_MAX ((size_t)4096)

static void arg_state(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_clock_state *state)
{
    hk_pg_arg_i64(pg, a, state->clock_ms);
    hk_pg_arg_i64(pg, a, state->mark_ms);
}

static void look(struct hk_admin *admin, struct hk_clock_state *out)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, at = {.n = 0};
    hk_pa_arg_now(admin, &a);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_CLOCK_NOW, &a);
    hk_pg_add(pg, HK_PA_CLOCK_MARK, NULL);
    hk_pg_send(pg);
    PGresult *now = hk_pg_result(pg), *res = hk_pg_result(pg);
    if (now && res) {
        out->clock_ms = hk_pg_i64(now, 0, 0);
        int64_t written_ms = hk_pg_i64(res, 0, 0);
        out->mark_ms = written_ms > out->clock_ms ? written_ms : out->clock_ms;
    }
    PQclear(now);
    PQclear(res);
    if (!hk_pg_ok(pg) || hk_clock_in_step(out))
        return;
    arg_state(pg, &at, out);
    res = hk_pg_query(pg, false, HK_PA_CLOCK_COUNTS, &at);
    for (int i = 0; res && i < HK_NCLOCK_PARTS; i++)
        out->rows[i] = hk_pa_u64(res, 0, i);
    PQclear(res);
}

/* What changes when any relay does anything; "" when it could not be read. */
static struct hk_str read_sign(struct hk_pg *pg)
{
    PGresult *res = hk_pg_query(pg, false, HK_PA_CLOCK_SIGN, NULL);
    struct hk_str sign = res ? hk_pg_text(pg, res, 0, 0) : hk_str_of("");
    PQclear(res);
    return sign;
}

/* Which have a lease by the server's clock: dead or not? */
static enum hk_code check_lanes(struct hk_admin *admin, struct hk_clock_state *state, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    enum hk_code worst = HK_OK;
    hk_pg_arg_i64(pg, &a, state->clock_ms);
    PGresult *res = hk_pg_query(pg, false, HK_PA_CLOCK_LANES, &a);
    for (int i = 0; res && i < PQntuples(res) && worst != HK_CONFLICT; i++) {
        state->lease_ms = hk_lane_lease(state->lease_ms, hk_pg_i64(res, i, 3));
        enum hk_code rc = hk_lane_watch(&admin->lanes, hk_pg_i64(res, i, 0), hk_pg_i64(res, i, 2),
                                        state->lease_ms, hk_pg_text(pg, res, i, 1), err);
        if (rc != HK_OK)
            worst = rc;
    }
    PQclear(res);
    return worst;
}

/* `sign`: of before the lanes were looked at. */
static void mend(struct hk_admin *admin, const struct hk_clock_ask *ask, struct hk_str sign,
                 struct hk_clock_state *state)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args at = {.n = 0}, audit = {.n = 0}, still = {.n = 0}, fence = {.n = 0};
    uint64_t call_ms = pg->call_ms;
    pg->call_ms = HK_PA_PATIENCE_MS;
    arg_state(pg, &at, state);
    hk_pg_arg_text(pg, &still, sign);
    hk_pg_arg_i64(pg, &fence, state->clock_ms);
    hk_pg_arg_i64(pg, &audit, state->clock_ms);
    hk_pg_arg_text(pg, &audit, hk_str_of(ask->actor));
    hk_pg_arg_text(pg, &audit, hk_str_of(ask->reason));
    struct hk_buf detail;
    hk_buf_init(&detail, DETAIL_MAX);
    hk_clock_detail(&detail, state); /* as many as the look found */
    if (hk_buf_status(&detail) != HK_OK)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    hk_pg_arg_text(pg, &audit, hk_buf_str(&detail));
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_NO_HURRY, NULL);
    hk_pg_add(pg, HK_PA_CLOCK_STOP, NULL);
    hk_pg_add(pg, HK_PA_CLOCK_STILL, &still);
    for (unsigned i = 0; i < HK_NCLOCK_PARTS; i++)
        hk_pg_add(pg, HK_PA_CLOCK_WAITS + i, &at);
    hk_pg_add(pg, HK_PA_CLOCK_FENCE, &fence);
    hk_pg_add(pg, HK_PA_CLOCK_AUDIT, &audit);
    hk_pg_send(pg);
    hk_buf_fini(&detail);
    for (int i = 0; i < 3; i++)
        PQclear(hk_pg_result(pg));
    for (int i = 0; i < HK_NCLOCK_PARTS; i++) {
        PGresult *res = hk_pg_result(pg);
        state->rows[i] = (uint64_t)hk_pg_touched(res);
        PQclear(res);
    }
    PQclear(hk_pg_result(pg));
    PQclear(hk_pg_result(pg));
    pg->call_ms = call_ms;
    state->mended = true;
}

enum hk_code hk_pa_clock(struct hk_admin *admin, const struct hk_clock_ask *ask, struct hk_clock_state *out,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_clock_state state = {.of_server = true, .lease_ms = ask->lease_ms};
    enum hk_code refused = HK_OK;
    hk_pg_call(pg);
    look(admin, &state);
    if (ask->reason && hk_pg_ok(pg) && !hk_clock_in_step(&state)) {
        struct hk_str sign = read_sign(pg);
        refused = hk_clock_check(&state, err);
        if (refused == HK_OK)
            refused = check_lanes(admin, &state, err);
        if (refused == HK_OK && hk_pg_ok(pg))
            mend(admin, ask, sign, &state);
    }
    bool runs = !hk_pg_ok(pg) && strcmp(pg->sqlstate, "22P02") == 0; /* as CLOCK_STILL lets it fail */
    struct hk_err broken = {.message = ""};
    enum hk_code rc = hk_pa_end(admin, ask->reason ? "reset the clock" : "look at the clock", &broken);
    if (runs)
        return hk_lane_runs(hk_str_of("of this store"), err);
    if (rc != HK_OK)
        return hk_err_set(err, rc, "%s", broken.message);
    if (refused == HK_OK || refused == HK_BUSY)
        *out = state;
    return refused;
}
