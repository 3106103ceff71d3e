/* SPDX-License-Identifier: Apache-2.0 */
/* Figures over time, in SQLite. */
#include "store/sqlite/admin.h"

enum {
    NAME_MAX_BYTES = 4096
};

static void put_row(struct hk_store *store, sqlite3_stmt *q, const struct hk_series_row *r)
{
    const int64_t key[] = {r->step_ms, r->at_ms, r->lane};
    const uint64_t counted[] = {r->seen, r->sent, r->failed, r->retried, r->dead};
    const uint64_t levels[] = {r->waiting, r->in_flight, r->dead_open, r->oldest_ms};
    int i = 1;
    if (q)
        sqlite3_reset(q);
    for (size_t k = 0; k < sizeof key / sizeof key[0]; k++)
        hk_sq_bind_i64(store, q, i++, key[k]);
    hk_sq_bind_text(store, q, i++, r->destination);
    for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++)
        hk_sq_bind_u64(store, q, i++, counted[k]);
    hk_sq_bind_text(store, q, i++, r->latency);
    for (size_t k = 0; k < sizeof levels / sizeof levels[0]; k++)
        hk_sq_bind_u64(store, q, i++, levels[k]);
    hk_sq_run(store, q);
}

enum hk_code hk_sa_series_put(struct hk_admin *admin, const struct hk_series_row *rows, size_t n,
                              struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_write(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_SERIES_PUT]);
    for (size_t i = 0; i < n && hk_sq_ok(store); i++)
        put_row(store, q, &rows[i]);
    sqlite3_finalize(q);
    return hk_sq_end(store, "write figures", err);
}

static uint64_t u64_at(sqlite3_stmt *q, int column)
{
    int64_t value = sqlite3_column_int64(q, column);
    return value > 0 ? (uint64_t)value : 0;
}

static void read_row(struct hk_store *store, sqlite3_stmt *q, struct hk_series_row *out)
{
    *out = (struct hk_series_row){
        .step_ms = sqlite3_column_int64(q, 0),
        .at_ms = sqlite3_column_int64(q, 1),
        .lane = sqlite3_column_int64(q, 2),
        .destination = hk_sa_text(store, q, 3, NAME_MAX_BYTES),
        .seen = u64_at(q, 4),
        .sent = u64_at(q, 5),
        .failed = u64_at(q, 6),
        .retried = u64_at(q, 7),
        .dead = u64_at(q, 8),
        .latency = hk_sa_text(store, q, 9, HK_SERIES_LATENCY_MAX),
        .waiting = u64_at(q, 10),
        .in_flight = u64_at(q, 11),
        .dead_open = u64_at(q, 12),
        .oldest_ms = u64_at(q, 13),
    };
}

static void bind_ask(struct hk_store *store, sqlite3_stmt *q, const struct hk_series_ask *ask)
{
    hk_sq_bind_i64(store, q, 1, ask->step_ms);
    hk_sq_bind_i64(store, q, 2, ask->since_ms);
    hk_sq_bind_i64(store, q, 3, ask->until_ms);
    if (ask->destination)
        hk_sq_bind_cstr(store, q, 4, ask->destination);
    hk_sq_bind_i64(store, q, 5, ask->limit);
}

enum hk_code hk_sa_series(struct hk_admin *admin, const struct hk_series_ask *ask,
                          const struct hk_series **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_series *series = &admin->series;
    size_t room = 0;
    *series = (struct hk_series){.n = 0};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    hk_sq_clock_lift(store);
    series->now_ms = hk_sq_now(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_SERIES]);
    bind_ask(store, q, ask);
    hk_sq_bind_i64(store, q, 6, ask->resume ? ask->after_at_ms : INT64_MIN);
    hk_sq_bind_i64(store, q, 7, ask->after_lane);
    hk_sq_bind_text(store, q, 8, ask->resume ? ask->after_destination : hk_str_of(""));
    while (hk_sq_row(store, q)) {
        struct hk_series_row *items = hk_sa_grow(store, series->items, series->n, &room, sizeof *items);
        if (!items)
            break;
        series->items = items;
        read_row(store, q, &items[series->n++]);
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read figures", err);
    if (rc == HK_OK)
        *out = series;
    return rc;
}

enum hk_code hk_sa_series_names(struct hk_admin *admin, const struct hk_series_ask *ask,
                                const struct hk_series_names **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_series_names *names = &admin->series_names;
    size_t room = 0;
    *names = (struct hk_series_names){.n = 0};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_SERIES_NAMES]);
    bind_ask(store, q, ask);
    while (hk_sq_row(store, q)) {
        struct hk_str *items = hk_sa_grow(store, names->items, names->n, &room, sizeof *items);
        if (!items)
            break;
        names->items = items;
        items[names->n++] = hk_sa_text(store, q, 0, NAME_MAX_BYTES);
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read figures", err);
    if (rc == HK_OK)
        *out = names;
    return rc;
}
