/* SPDX-License-Identifier: Apache-2.0 */
/* Housekeeping: pausing destinations, and deleting what has outlived its retention. */
#include "base/str.h"
#include "store/pg/store.h"

#define AGE_MAX_MS                                                                                           \
    (UINT64_C(200) * 366 * 86400 * 1000) /* nothing is older, and PostgreSQL can still write the date */

enum hk_code hk_pg_pause(struct hk_store *store, const char *destination, bool paused, const char *actor,
                         const char *reason, struct hk_err *err)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    if (!hk_pg_is_name(destination, err))
        return HK_INVALID;
    hk_pg_call(pg);
    hk_pg_arg_text(pg, &a, hk_str_of(destination));
    hk_pg_arg_bool(pg, &a, paused);
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(actor));
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(reason));
    hk_pg_arg_now(store, &a);
    PQclear(hk_pg_query(pg, true, HK_PG_PAUSE, &a));
    return hk_pg_end(pg, paused ? "pause a destination" : "resume a destination", err);
}

static void arg_age(struct hk_pg *pg, struct hk_pg_args *a, uint64_t keep_ms)
{
    if (keep_ms > AGE_MAX_MS)
        hk_pg_arg_null(pg, a);
    else
        hk_pg_arg_u64(pg, a, keep_ms);
}

/* By the day (days.c): how many rows it has deleted by themselves; `limit`: there is more to do. */
static uint32_t purge_days(struct hk_store *store, uint64_t keep_ms, uint32_t limit)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    arg_age(pg, &a, keep_ms);
    hk_pg_arg_u64(pg, &a, limit);
    PGresult *res = hk_pg_query(pg, true, HK_PG_SENT_DAYS, &a);
    int64_t n = hk_pg_ok(pg) ? hk_pg_i64(res, 0, 0) : 0;
    PQclear(res);
    return n < 0 ? 0 : n > limit ? limit : (uint32_t)n;
}

static bool is_daily(struct hk_pg *pg)
{
    PGresult *res = hk_pg_query(pg, false, HK_PG_SENT_IS_DAILY, NULL);
    bool yes = hk_pg_ok(pg) && hk_pg_bool(res, 0, 0);
    PQclear(res);
    return yes;
}

static uint32_t purge_rows(struct hk_store *store, const struct hk_retention *r, uint32_t limit,
                           uint32_t *out_open)
{
    const uint64_t ages[] = {r->sent_ms,     r->attempts_ms,  r->cancelled_ms,
                             r->resolved_ms, r->discarded_ms, r->dead_ms};
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    hk_pg_arg_u64(pg, &a, limit);
    hk_pg_arg_now(store, &a);
    if (r->sent_rows > INT64_MAX)
        hk_pg_arg_null(pg, &a);
    else
        hk_pg_arg_u64(pg, &a, r->sent_rows);
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++)
        arg_age(pg, &a, ages[i]);
    PGresult *res = hk_pg_query(pg, true, HK_PG_PURGE, &a);
    uint32_t deleted = hk_pg_ok(pg) ? (uint32_t)hk_pg_i64(res, 0, 0) : 0;
    *out_open = hk_pg_ok(pg) ? (uint32_t)hk_pg_i64(res, 0, 1) : 0;
    PQclear(res);
    return deleted;
}

static uint32_t purge_audit(struct hk_store *store, uint64_t keep_ms, uint32_t limit)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    if (keep_ms > AGE_MAX_MS)
        return 0;
    hk_pg_arg_u64(pg, &a, limit);
    hk_pg_arg_now(store, &a);
    arg_age(pg, &a, keep_ms);
    PGresult *res = hk_pg_query(pg, true, HK_PG_PURGE_AUDIT, &a);
    uint32_t deleted = hk_pg_ok(pg) ? (uint32_t)hk_pg_i64(res, 0, 0) : 0;
    PQclear(res);
    return deleted;
}

enum hk_code hk_pg_purge(struct hk_store *store, const struct hk_retention *r, uint32_t limit,
                         uint32_t *out_deleted, uint32_t *out_open, struct hk_err *err)
{
    struct hk_retention by_row = *r;
    struct hk_pg *pg = &store->pg;
    uint32_t deleted = 0, open = 0;
    hk_pg_call(pg);
    if (is_daily(pg)) {
        deleted = purge_days(store, r->sent_ms, limit);
        by_row.sent_ms = UINT64_MAX; /* sent_rows holds as it does without */
    }
    if (hk_pg_ok(pg) && deleted < limit)
        deleted += purge_rows(store, &by_row, limit - deleted, &open);
    if (out_open) /* also when what follows fails: they are gone */
        *out_open = open;
    if (hk_pg_ok(pg) && deleted < limit)
        deleted += purge_audit(store, r->audit_ms, limit - deleted);
    enum hk_code rc = hk_pg_end(pg, "delete what has outlived its retention", err);
    if (rc == HK_OK)
        *out_deleted = deleted;
    return rc;
}
