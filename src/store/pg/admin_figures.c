/* SPDX-License-Identifier: Apache-2.0 */
/* What relays saw lately, in PostgreSQL: one statement writes what a relay has to say of all its destinations. The table is
 * not logged and nobody waits for the commit: after a crash of the server the figures of a minute are gone. */
#include "base/str.h"
#include "store/pg/admin.h"

enum {
    LATENCY_MAX = 8 * 1024,
    NUMBERS = 9
};

static struct hk_str latency_of(struct hk_pg *pg, const struct hk_figure *f)
{
    struct hk_buf text;
    hk_buf_init(&text, LATENCY_MAX);
    hk_histogram_write(&f->latency, &text);
    const char *copy = hk_pool_copy(hk_pg_pool(pg), hk_buf_cstr(&text), text.len);
    struct hk_str latency = {copy ? copy : "", copy ? text.len : 0};
    hk_buf_fini(&text);
    return latency;
}

static void take_numbers(const struct hk_figure *f, int64_t out[NUMBERS])
{
    const int64_t numbers[NUMBERS] = {(int64_t)f->window_ms, (int64_t)f->seen, (int64_t)f->sent,
                                      (int64_t)f->failed,    (int64_t)f->dead, (int64_t)f->in_flight,
                                      f->ready_at_ms,        f->last_error_ms, 0};
    for (size_t i = 0; i < NUMBERS; i++)
        out[i] = numbers[i] > 0 ? numbers[i] : 0;
}

static void take_figures(struct hk_pg *pg, const struct hk_figure *items, size_t n, struct hk_pg_args *a)
{
    int64_t *numbers = hk_pg_alloc(pg, n * NUMBERS + 1, sizeof *numbers);
    struct hk_str *texts = hk_pg_alloc(pg, n * 4 + 1, sizeof *texts);
    if (!numbers || !texts)
        return;
    for (size_t i = 0; i < n; i++) {
        take_numbers(&items[i], numbers + i * NUMBERS);
        texts[i] = items[i].destination;
        texts[n + i] = items[i].breaker;
        texts[2 * n + i] = latency_of(pg, &items[i]);
        texts[3 * n + i] = items[i].last_error;
    }
    hk_pg_arg_texts(pg, a, texts, n);
    hk_pg_arg_i64s(pg, a, numbers, n * NUMBERS);
    for (size_t k = 1; k < 4; k++)
        hk_pg_arg_texts(pg, a, texts + k * n, n);
}

enum hk_code hk_pa_figures_put(struct hk_admin *admin, int64_t lane, const struct hk_figure *items, size_t n,
                               struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, lane);
    take_figures(pg, items, n, &a);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_OFFHAND, NULL);
    hk_pg_add(pg, HK_PA_FIGURES_PUT, &a);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    int written = hk_pg_touched(res);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "write figures", err);
    if (rc == HK_OK && n > 0 && written == 0)
        rc = hk_err_set(err, HK_CONFLICT, "%s: lane %lld is gone", pg->url.place, (long long)lane);
    return rc;
}

/* Columns of HK_PA_FIGURES. */
enum {
    C_NOW_MS,
    C_LANE,
    C_DESTINATION,
    C_AT_MS,
    C_WINDOW_MS,
    C_SEEN,
    C_SENT,
    C_FAILED,
    C_DEAD,
    C_IN_FLIGHT,
    C_READY_AT_MS,
    C_ERROR_MS,
    C_BREAKER,
    C_LATENCY,
    C_ERROR
};

static void read_one(struct hk_pg *pg, const PGresult *res, int i, int64_t now_ms, struct hk_figure *out)
{
    *out = (struct hk_figure){
        .lane = hk_pg_i64(res, i, C_LANE),
        .at_ms = hk_pg_i64(res, i, C_AT_MS),
        .destination = hk_pg_text(pg, res, i, C_DESTINATION),
        .window_ms = hk_pa_u64(res, i, C_WINDOW_MS),
        .seen = hk_pa_u64(res, i, C_SEEN),
        .sent = hk_pa_u64(res, i, C_SENT),
        .failed = hk_pa_u64(res, i, C_FAILED),
        .dead = hk_pa_u64(res, i, C_DEAD),
        .in_flight = hk_pa_u64(res, i, C_IN_FLIGHT),
        .ready_at_ms = hk_pg_i64(res, i, C_READY_AT_MS),
        .last_error_ms = hk_pg_i64(res, i, C_ERROR_MS),
        .breaker = hk_pg_text(pg, res, i, C_BREAKER),
        .last_error = hk_pg_text(pg, res, i, C_ERROR),
    };
    out->fresh = out->at_ms > now_ms - HK_FIGURES_FRESH_MS;
    (void)hk_histogram_read(&out->latency,
                            hk_str_of(PQgetvalue(res, i, C_LATENCY))); /* as far as it is one */
}

enum hk_code hk_pa_figures(struct hk_admin *admin, const struct hk_figures **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_figures *figures = &admin->figures;
    struct hk_pg_args a = {.n = 0};
    *figures = (struct hk_figures){.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, HK_FIGURES_MAX);
    PGresult *res = hk_pg_query(pg, false, HK_PA_FIGURES, &a);
    int n = res ? PQntuples(res) : 0;
    if (n > 0)
        figures->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, C_NOW_MS));
    if (n > 0 && !hk_pg_null(res, 0, C_LANE))
        figures->items = hk_pg_alloc(pg, (size_t)n, sizeof *figures->items);
    for (int i = 0; i < n && figures->items; i++)
        read_one(pg, res, i, figures->now_ms, &figures->items[figures->n++]);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read its figures", err);
    if (rc == HK_OK)
        *out = figures;
    return rc;
}
