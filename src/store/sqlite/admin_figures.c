/* SPDX-License-Identifier: Apache-2.0 */
/* What relays saw lately, in SQLite: written by the relay beside its own work, read by people. */
#include "base/str.h"
#include "store/sqlite/admin.h"

enum {
    LATENCY_MAX = 8 * 1024,
    NAME_MAX_BYTES = 4096
};

static void put_one(struct hk_store *store, sqlite3_stmt *q, int64_t lane, const struct hk_figure *f)
{
    struct hk_buf latency;
    const uint64_t numbers[] = {f->window_ms, f->seen, f->sent, f->failed, f->dead, f->in_flight};
    int i = 4;
    hk_buf_init(&latency, LATENCY_MAX);
    hk_histogram_write(&f->latency, &latency);
    if (q)
        sqlite3_reset(q);
    hk_sq_bind_i64(store, q, 1, lane);
    hk_sq_bind_text(store, q, 2, f->destination);
    hk_sq_bind_i64(store, q, 3, hk_sq_now(store));
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
        hk_sq_bind_u64(store, q, i++, numbers[k]);
    hk_sq_bind_i64(store, q, i++, f->ready_at_ms);
    hk_sq_bind_text(store, q, i++, f->breaker);
    hk_sq_bind_text(store, q, i++, hk_buf_str(&latency));
    hk_sq_bind_text_or_null(store, q, i++, f->last_error);
    hk_sq_bind_i64(store, q, i, f->last_error_ms);
    hk_sq_run(store, q);
    hk_buf_fini(&latency);
}

static bool stands(struct hk_store *store, int64_t lane)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_LANE_STANDS]);
    hk_sq_bind_i64(store, q, 1, lane);
    bool found = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return found;
}

enum hk_code hk_sa_figures_put(struct hk_admin *admin, int64_t lane, const struct hk_figure *items, size_t n,
                               struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    bool found = stands(store, lane);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_FIGURES_PUT]);
    for (size_t i = 0; found && i < n && hk_sq_ok(store); i++)
        put_one(store, q, lane, &items[i]);
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "write figures", err);
    if (rc == HK_OK && !found)
        rc = hk_err_set(err, HK_CONFLICT, "%s: lane %lld is gone", store->path, (long long)lane);
    return rc;
}

static uint64_t u64_at(sqlite3_stmt *q, int column)
{
    int64_t value = sqlite3_column_int64(q, column);
    return value > 0 ? (uint64_t)value : 0;
}

static void read_one(struct hk_store *store, sqlite3_stmt *q, int64_t now_ms, struct hk_figure *out)
{
    *out = (struct hk_figure){
        .lane = sqlite3_column_int64(q, 0),
        .destination = hk_sa_text(store, q, 1, NAME_MAX_BYTES),
        .at_ms = sqlite3_column_int64(q, 2),
        .window_ms = u64_at(q, 3),
        .seen = u64_at(q, 4),
        .sent = u64_at(q, 5),
        .failed = u64_at(q, 6),
        .dead = u64_at(q, 7),
        .in_flight = u64_at(q, 8),
        .ready_at_ms = sqlite3_column_int64(q, 9),
        .breaker = hk_sa_text(store, q, 10, 16),
        .last_error = hk_sa_text(store, q, 12, HK_FIGURES_ERROR_MAX),
        .last_error_ms = sqlite3_column_int64(q, 13),
    };
    out->fresh = out->at_ms > now_ms - HK_FIGURES_FRESH_MS;
    (void)hk_histogram_read(&out->latency, hk_sa_text(store, q, 11, LATENCY_MAX)); /* as far as it is one */
}

enum hk_code hk_sa_figures(struct hk_admin *admin, const struct hk_figures **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_figures *figures = &admin->figures;
    size_t room = 0;
    *figures = (struct hk_figures){.n = 0};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    hk_sq_clock_lift(store);
    figures->now_ms = hk_sq_now(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_FIGURES]);
    hk_sq_bind_i64(store, q, 1, figures->now_ms);
    hk_sq_bind_i64(store, q, 2, HK_FIGURES_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_figure *items = hk_sa_grow(store, figures->items, figures->n, &room, sizeof *items);
        if (!items)
            break;
        figures->items = items;
        read_one(store, q, figures->now_ms, &items[figures->n++]);
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read its figures", err);
    if (rc == HK_OK)
        *out = figures;
    return rc;
}
