/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that cannot be removed (store/stuck.h): records them, reads them, and tries again. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "store/pg/store.h"

void hk_pg_stick(struct hk_store *store, const struct hk_settle *s, int64_t lane, const char *why)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(pg, &a, s->id);
    hk_pg_arg_i64(pg, &a, s->claim);
    hk_pg_arg_i64(pg, &a, lane);
    hk_pg_arg_text(pg, &a, s->destination);
    hk_pg_arg_bool(pg, &a, s->kind == HK_SETTLE_SENT);
    hk_pg_arg_bool(pg, &a, s->kind == HK_SETTLE_SENT || s->attempt.possibly_delivered);
    hk_pg_arg_text(pg, &a, hk_str_of(why));
    hk_pg_arg_i64(pg, &a, s->history.attempts);
    hk_pg_arg_text_or_null(pg, &a, s->kind == HK_SETTLE_DEAD ? s->reason : (struct hk_str){0});
    hk_pg_arg_text_or_null(pg, &a, s->attempt.error);
    hk_pg_add(pg, s->source == HK_FROM_OUTBOX ? HK_PG_STICK : HK_PG_STICK_RETRY, &a);
}

void hk_pg_go_on(struct hk_pg *pg)
{
    if (!pg->conn)
        return;
    pg->rc = HK_OK;
    pg->sqlstate[0] = pg->where[0] = '\0';
}

/* What others put on our tables. Errors stick. */
static void add_guards(struct hk_store *store, const char *before, char *out, size_t room)
{
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_GUARDS, NULL);
    size_t len = strlen(out);
    for (int i = 0; hk_pg_ok(&store->pg) && i < PQntuples(res) && len < room; i++) {
        int n = snprintf(out + len, room - len, "%s%s %s on %s", i ? ", " : before, PQgetvalue(res, i, 0),
                         PQgetvalue(res, i, 1), PQgetvalue(res, i, 2));
        len += n > 0 ? (size_t)n : 0;
    }
    PQclear(res);
}

enum hk_code hk_pg_guards(struct hk_store *store, char out[HK_STORE_GUARDS_MAX], struct hk_err *err)
{
    out[0] = '\0';
    hk_pg_relay_call(store);
    add_guards(store, "", out, HK_STORE_GUARDS_MAX);
    return hk_pg_end(&store->pg, "read what others put on its tables", err);
}

const char *hk_pg_why_refused(struct hk_store *store)
{
    struct hk_pg *pg = &store->pg;
    char *why = hk_pool_alloc(hk_pg_pool(pg), 1, HK_STUCK_WHY_MAX);
    if (!why)
        return NULL;
    bool stays = strstr(pg->err.message, HK_PG_STAYS);
    if (stays)
        (void)snprintf(why, HK_STUCK_WHY_MAX, "a statement on its row changed nothing");
    else
        (void)snprintf(why, HK_STUCK_WHY_MAX, "%.200s (SQLSTATE %s)%s%s", pg->err.message, pg->sqlstate,
                       pg->where[0] ? ", in " : "", pg->where);
    hk_pg_go_on(pg);
    if (stays) {
        add_guards(store, "; found: ", why, HK_STUCK_WHY_MAX);
        (void)hk_pg_end(pg, "read what others put on its tables", NULL);
        hk_pg_go_on(pg);
    }
    return why;
}

void hk_pg_stuck_load(struct hk_store *store)
{
    int64_t retry_at_ms = store->stuck.retry_at_ms;
    hk_stuck_clear(&store->stuck);
    store->stuck.retry_at_ms = retry_at_ms;
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_STUCK, NULL);
    for (int i = 0; hk_pg_ok(&store->pg) && i < PQntuples(res); i++)
        if (!hk_stuck_add(&store->stuck, hk_pg_i64(res, i, 0) ? HK_FROM_RETRY : HK_FROM_OUTBOX,
                          hk_pg_i64(res, i, 1)))
            hk_pg_fail(&store->pg, HK_NOMEM, "out of memory");
    PQclear(res);
    store->stuck_stale = !hk_pg_ok(&store->pg);
}

/* ---- once more ---- */

/* One of outbox that is to be sent again is due now; one of outbox_retry, as its row says. False: it is another relay's, or somebody
 * took the note away. */
static bool read_fate(struct hk_store *store, const struct hk_stuck_row *row, struct hk_member *member,
                      struct hk_settle *out)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(pg, &a, row->source == HK_FROM_RETRY);
    hk_pg_arg_i64(pg, &a, row->id);
    hk_pg_arg_i64(pg, &a, (int64_t)hk_pg_shards(store));
    PGresult *res = hk_pg_query(pg, false, HK_PG_STUCK_ONE, &a);
    bool found = hk_pg_ok(pg) && PQntuples(res) > 0;
    if (found) {
        uint32_t attempts = (uint32_t)hk_pg_i64(res, 0, 3), late_ms = 0;
        *out = (struct hk_settle){
            .source = row->source,
            .id = row->id,
            .due_ms = hk_pg_reckon(store, &late_ms),
            .history = {.attempts = attempts, .charged = attempts},
            .destination = hk_pg_text(pg, res, 0, 2),
            .reason = hk_pg_text(pg, res, 0, 4),
            .attempt = {.possibly_delivered = hk_pg_bool(res, 0, 1), .error = hk_pg_text(pg, res, 0, 5)}};
        out->kind = hk_stuck_kind(row->source, hk_pg_bool(res, 0, 0), out->reason);
        *member =
            (struct hk_member){.id = row->id, .source = row->source, .shard = (uint8_t)hk_pg_i64(res, 0, 6)};
    }
    PQclear(res);
    return hk_pg_end(pg, "read a stuck row", NULL) == HK_OK && found;
}

/* A manifest, under which it is settled as anything else is. 0: the lane is gone, or the row refuses even that. */
static int64_t reclaim(struct hk_store *store, const struct hk_stuck_row *row, const struct hk_member *member)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(pg, &a, row->id);
    hk_pg_arg_i64(pg, &a, store->lane);
    hk_pg_arg_bool(pg, &a, row->source == HK_FROM_RETRY);
    PGresult *res = hk_pg_query(pg, true, HK_PG_RECLAIM, &a);
    int64_t claim = hk_pg_ok(pg) && PQntuples(res) > 0 ? hk_pg_i64(res, 0, 0) : 0;
    PQclear(res);
    if (hk_pg_end(pg, "claim a stuck row", NULL) != HK_OK || !claim ||
        !hk_manifests_add(&store->claims, claim, member, 1))
        return 0;
    hk_manifests_commit(&store->claims);
    return claim;
}

static bool try_again(struct hk_store *store, const struct hk_stuck_row *row)
{
    struct hk_settle s;
    struct hk_member member;
    bool stale = true;
    const char *why = NULL;
    if (!read_fate(store, row, &member, &s))
        return false;
    s.claim = reclaim(store, row, &member);
    if (!s.claim || hk_pg_settle_apart(store, &s, &stale, &why) != HK_OK || stale || why)
        return false;
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, row->source == HK_FROM_RETRY);
    hk_pg_arg_i64(&store->pg, &a, row->id);
    PQclear(hk_pg_query(&store->pg, true, HK_PG_UNSTICK, &a));
    if (hk_pg_end(&store->pg, "settle a stuck row", NULL) != HK_OK)
        return false;
    hk_pg_window_wrote(&store->window);
    return true;
}

void hk_pg_unstick(struct hk_store *store, int64_t now_ms)
{
    struct hk_stuck_row row;
    size_t tries = store->stuck.n < HK_STUCK_TRIES ? store->stuck.n : HK_STUCK_TRIES;
    if (now_ms < store->stuck.retry_at_ms || !store->lane || store->lost.pending)
        return;
    store->stuck.retry_at_ms = now_ms + HK_STUCK_RETRY_MS;
    while (tries-- > 0 && store->pg.conn && hk_stuck_next(&store->stuck, &row)) {
        if (try_again(store, &row)) {
            hk_stuck_drop(&store->stuck, row.source, row.id);
            store->own_change = true;
        }
        hk_pg_go_on(&store->pg);
    }
}
