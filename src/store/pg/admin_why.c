/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps messages from going out, in PostgreSQL; see sqlite/admin_why.c for the rules of order. Here a message also waits
 * for the owner of its shard: one that has died keeps it until its lease ends. */
#include <string.h>

#include "base/str.h"
#include "store/pg/admin.h"

/* ---- how many ---- */

static void ask_blocked(struct hk_admin *admin, unsigned id, const struct hk_blocking *b, int64_t limit)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(b->destination));
    hk_pg_arg_i64(pg, &a, limit);
    hk_pg_arg_bool(pg, &a, !b->skip_dead);
    hk_pg_add(pg, id, &a);
}

static uint64_t read_count(struct hk_pg *pg)
{
    PGresult *res = hk_pg_result(pg);
    uint64_t n = res && PQntuples(res) == 1 ? hk_pa_u64(res, 0, 0) : 0;
    PQclear(res);
    return n;
}

static uint64_t ask_heads(struct hk_pg *pg)
{
    struct hk_pg_args a = {.n = 0};
    hk_pg_arg_i64(pg, &a, HK_COUNT_EXACT + 1);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_HEADS, &a);
    hk_pg_send(pg);
    return read_count(pg);
}

static void count_one(struct hk_admin *admin, struct hk_blocking *b, bool exact)
{
    struct hk_pg *pg = &admin->pg;
    int64_t limit = exact ? INT64_MAX : HK_COUNT_EXACT + 1;
    hk_pg_begin(pg, false);
    hk_pg_add(pg, exact ? HK_PA_NO_HURRY : HK_PA_AS_IT_IS, NULL);
    ask_blocked(admin, HK_PA_BLOCKED_OUTBOX, b, limit);
    ask_blocked(admin, HK_PA_BLOCKED_RETRY, b, limit);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    b->n = (struct hk_count){read_count(pg), false};
    b->n.n += read_count(pg);
}

static void take_estimates(struct hk_pg *pg, struct hk_blocking *items, size_t n)
{
    PGresult *res = hk_pg_result(pg);
    for (size_t i = 0; i < n; i++) {
        items[i].n = (struct hk_count){0, true};
        for (int row = 0; res && row < PQntuples(res); row++)
            if (strcmp(PQgetvalue(res, row, 0), items[i].destination) == 0)
                items[i].n.n = hk_pa_u64(res, row, 1);
    }
    PQclear(res);
}

/* Adds the destinations, and those of them that dead letters do not block. False: no memory, which sticks. */
static bool arg_ordered(struct hk_admin *admin, const struct hk_blocking *items, size_t n,
                        struct hk_pg_args *a)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_str *names = hk_pg_alloc(pg, n + 1, sizeof *names),
                  *skip = hk_pg_alloc(pg, n + 1, sizeof *skip);
    size_t skips = 0;
    for (size_t i = 0; names && skip && i < n; i++) {
        names[i] = hk_str_of(items[i].destination);
        if (items[i].skip_dead)
            skip[skips++] = names[i];
    }
    if (!names || !skip)
        return false;
    hk_pg_arg_texts(pg, a, names, n);
    hk_pg_arg_texts(pg, a, skip, skips);
    return true;
}

static void estimate(struct hk_admin *admin, struct hk_blocking *items, size_t n)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    if (!arg_ordered(admin, items, n, &a))
        return;
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_BLOCKED_ABOUT, &a);
    hk_pg_send(pg);
    take_estimates(pg, items, n);
}

enum hk_code hk_pa_blocked(struct hk_admin *admin, struct hk_blocking *items, size_t n, bool exact,
                           struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    uint64_t call_ms = pg->call_ms, found = 0;
    hk_pg_call(pg);
    if (exact)
        pg->call_ms = HK_PA_PATIENCE_MS;
    bool large = !exact && ask_heads(pg) > HK_COUNT_EXACT;
    for (size_t i = 0; i < n && hk_pg_ok(pg) && !large; i++) {
        count_one(admin, &items[i], exact);
        found += items[i].n.n;
        large = !exact && found > HK_COUNT_EXACT;
    }
    if (large && hk_pg_ok(pg))
        estimate(admin, items, n);
    enum hk_code rc = hk_pg_end(pg, "count what is blocked", err);
    pg->call_ms = call_ms;
    return rc;
}

/* ---- who waits ---- */

static void ask_waiting(struct hk_admin *admin, const struct hk_blocking *ordered, size_t n)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    if (!arg_ordered(admin, ordered, n, &a))
        return;
    hk_pg_arg_i64(pg, &a, HK_WAITING_ROWS);
    hk_pg_arg_i64(pg, &a, HK_WAITING_DESTS);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_WAITING, &a);
    hk_pg_send(pg);
}

enum hk_code hk_pa_waiting(struct hk_admin *admin, const struct hk_blocking *ordered, size_t n,
                           const struct hk_waiting **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_waiting *w = &admin->waiting;
    *w = (struct hk_waiting){.n = 0};
    hk_pg_call(pg);
    ask_waiting(admin, ordered, n);
    PGresult *res = hk_pg_result(pg);
    int rows = res ? PQntuples(res) : 0;
    w->items = hk_pg_alloc(pg, (size_t)rows + 1, sizeof *w->items);
    if (rows)
        w->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
    for (int i = 0; w->items && i < rows; i++)
        if (!hk_pg_null(res, i, 1))
            w->items[w->n++] = (struct hk_waiting_row){.destination = hk_pg_text(pg, res, i, 1),
                                                       .event_type = hk_pg_text(pg, res, i, 2),
                                                       .oldest_ms = hk_pg_i64(res, i, 3),
                                                       .due_ms = hk_pg_i64(res, i, 4),
                                                       .behind = hk_pg_bool(res, i, 5)};
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read what waits", err);
    if (rc == HK_OK)
        *out = w;
    return rc;
}

/* ---- why ---- */

static void ask(struct hk_admin *admin, const struct hk_why_ask *ask)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args place = {.n = 0}, lane = {.n = 0}, head = {.n = 0}, ahead = {.n = 0};
    const struct hk_str destination = hk_str_of(ask->destination);
    bool retry = ask->place == HK_IN_RETRY;
    hk_pa_arg_now(admin, &place);
    hk_pg_arg_text(pg, &place, destination);
    hk_pg_arg_i64(pg, &lane, ask->id);
    hk_pg_arg_bool(pg, &lane, retry);
    hk_pg_arg_i64(pg, &head, ask->id);
    hk_pg_arg_text(pg, &head, destination);
    hk_pg_arg_text(pg, &head, ask->key);
    hk_pg_arg_bool(pg, &head, retry);
    hk_pg_arg_bool(pg, &head, !ask->skip_dead);
    hk_pg_arg_i64(pg, &ahead, ask->id);
    hk_pg_arg_text(pg, &ahead, destination);
    hk_pg_arg_i64(pg, &ahead, retry ? 0 : HK_COUNT_EXACT + 1);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_WHY_PLACE, &place);
    hk_pg_add(pg, HK_PA_WHY_LANE, &lane);
    hk_pg_add(pg, HK_PA_WHY_HEAD, &head);
    hk_pg_add(pg, HK_PA_WHY_AHEAD, &ahead);
    hk_pg_add(pg, HK_PA_WHY_STUCK, &lane);
    hk_pg_send(pg);
}

static void read_place(struct hk_pg *pg, struct hk_why *out)
{
    PGresult *res = hk_pg_result(pg);
    if (res && PQntuples(res) > 0) {
        out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
        out->relays_running = hk_pa_u32(res, 0, 1);
        out->paused = hk_pg_bool(res, 0, 2);
        out->actor = hk_pg_text(pg, res, 0, 3);
        out->reason = hk_pg_text(pg, res, 0, 4);
        out->since_ms = hk_pg_i64(res, 0, 5);
        out->open_until_ms = hk_pg_i64(res, 0, 6);
    }
    PQclear(res);
}

static void read_lane(struct hk_pg *pg, struct hk_why *out)
{
    PGresult *res = hk_pg_result(pg);
    if (res && PQntuples(res) > 0) {
        out->lane = hk_pg_i64(res, 0, 0);
        out->claimed_ms = hk_pg_i64(res, 0, 1);
        out->until_ms = hk_pg_i64(res, 0, 2);
        out->relay = hk_pg_text(pg, res, 0, 3);
        out->owner_until_ms = hk_pg_i64(res, 0, 4);
        out->owner = hk_pg_text(pg, res, 0, 5);
    }
    PQclear(res);
}

static void read_head(struct hk_pg *pg, bool wanted, struct hk_why *out)
{
    PGresult *res = hk_pg_result(pg);
    if (res && wanted && PQntuples(res) > 0) {
        out->head_place = (enum hk_place)hk_pg_i64(res, 0, 0);
        out->head_id = hk_pg_i64(res, 0, 1);
        out->head_message_id = hk_pg_text(pg, res, 0, 2);
        out->head = (enum hk_state)hk_pg_i64(res, 0, 3);
        out->head_due_ms = hk_pg_i64(res, 0, 4);
    }
    PQclear(res);
}

enum hk_code hk_pa_why(struct hk_admin *admin, const struct hk_why_ask *wanted, const struct hk_why **out,
                       struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    const struct hk_str none = {"", 0};
    struct hk_why *why = &admin->why;
    *why = (struct hk_why){.actor = none,
                           .reason = none,
                           .relay = none,
                           .owner = none,
                           .head_message_id = none,
                           .stuck_error = none};
    hk_pg_call(pg);
    ask(admin, wanted);
    read_place(pg, why);
    read_lane(pg, why);
    read_head(pg, wanted->key.len > 0, why);
    PGresult *res = hk_pg_result(pg);
    why->ahead.n = res && PQntuples(res) == 1 ? hk_pa_u64(res, 0, 0) : 0;
    why->ahead.about = why->ahead.n > HK_COUNT_EXACT;
    PQclear(res);
    res = hk_pg_result(pg);
    if (res && PQntuples(res) > 0) {
        why->stuck_ms = hk_pg_i64(res, 0, 0);
        why->stuck_delivered = hk_pg_bool(res, 0, 1);
        why->stuck_error = hk_pg_text(pg, res, 0, 2);
    }
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "look what a message waits for", err);
    if (rc == HK_OK)
        *out = why;
    return rc;
}
