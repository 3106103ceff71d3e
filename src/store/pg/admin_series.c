/* SPDX-License-Identifier: Apache-2.0 */
/* Figures over time, in PostgreSQL. Nobody waits for the commit: after a crash of the server the last minute may be missing. */
#include "store/pg/admin.h"

enum {
    NUMBERS = 12
};

static void take_numbers(const struct hk_series_row *r, int64_t out[NUMBERS])
{
    const int64_t numbers[NUMBERS] = {
        r->step_ms,
        r->at_ms,
        r->lane,
        (int64_t)r->seen,
        (int64_t)r->sent,
        (int64_t)r->failed,
        (int64_t)r->retried,
        (int64_t)r->dead,
        (int64_t)r->waiting,
        (int64_t)r->in_flight,
        (int64_t)r->dead_open,
        (int64_t)r->oldest_ms,
    };
    for (size_t i = 0; i < NUMBERS; i++)
        out[i] = i == 2 || numbers[i] > 0 ? numbers[i] : 0;
}

enum hk_code hk_pa_series_put(struct hk_admin *admin, const struct hk_series_row *rows, size_t n,
                              struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    int64_t *numbers = hk_pg_alloc(pg, n * NUMBERS + 1, sizeof *numbers);
    struct hk_str *texts = hk_pg_alloc(pg, n * 2 + 1, sizeof *texts);
    for (size_t i = 0; numbers && texts && i < n; i++) {
        take_numbers(&rows[i], numbers + i * NUMBERS);
        texts[i] = rows[i].destination;
        texts[n + i] = rows[i].latency.ptr ? rows[i].latency : hk_str_of("");
    }
    if (numbers && texts) {
        hk_pg_arg_i64s(pg, &a, numbers, n * NUMBERS);
        hk_pg_arg_texts(pg, &a, texts, n);
        hk_pg_arg_texts(pg, &a, texts + n, n);
    }
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_OFFHAND, NULL);
    hk_pg_add(pg, HK_PA_SERIES_PUT, &a);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    PQclear(hk_pg_result(pg));
    return hk_pg_end(pg, "write figures", err);
}

static void read_row(struct hk_pg *pg, const PGresult *res, int i, struct hk_series_row *out)
{
    *out = (struct hk_series_row){
        .step_ms = hk_pg_i64(res, i, 1),
        .at_ms = hk_pg_i64(res, i, 2),
        .lane = hk_pg_i64(res, i, 3),
        .destination = hk_pg_text(pg, res, i, 4),
        .seen = hk_pa_u64(res, i, 5),
        .sent = hk_pa_u64(res, i, 6),
        .failed = hk_pa_u64(res, i, 7),
        .retried = hk_pa_u64(res, i, 8),
        .dead = hk_pa_u64(res, i, 9),
        .latency = hk_pg_text(pg, res, i, 10),
        .waiting = hk_pa_u64(res, i, 11),
        .in_flight = hk_pa_u64(res, i, 12),
        .dead_open = hk_pa_u64(res, i, 13),
        .oldest_ms = hk_pa_u64(res, i, 14),
    };
}

static void arg_ask(struct hk_pg *pg, const struct hk_series_ask *ask, struct hk_pg_args *a)
{
    hk_pg_arg_i64(pg, a, ask->step_ms);
    hk_pg_arg_i64(pg, a, ask->since_ms);
    hk_pg_arg_i64(pg, a, ask->until_ms);
    if (ask->destination)
        hk_pg_arg_text(pg, a, hk_str_of(ask->destination));
    else
        hk_pg_arg_null(pg, a);
    hk_pg_arg_i64(pg, a, ask->limit);
}

enum hk_code hk_pa_series(struct hk_admin *admin, const struct hk_series_ask *ask,
                          const struct hk_series **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_series *series = &admin->series;
    *series = (struct hk_series){.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    arg_ask(pg, ask, &a);
    hk_pg_arg_i64(pg, &a, ask->resume ? ask->after_at_ms : INT64_MIN);
    hk_pg_arg_i64(pg, &a, ask->after_lane);
    hk_pg_arg_text(pg, &a, ask->resume ? ask->after_destination : hk_str_of(""));
    PGresult *res = hk_pg_query(pg, false, HK_PA_SERIES, &a);
    int n = res ? PQntuples(res) : 0;
    if (n > 0)
        series->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
    if (n > 0 && !hk_pg_null(res, 0, 1))
        series->items = hk_pg_alloc(pg, (size_t)n, sizeof *series->items);
    for (int i = 0; i < n && series->items; i++)
        read_row(pg, res, i, &series->items[series->n++]);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read figures", err);
    if (rc == HK_OK)
        *out = series;
    return rc;
}

enum hk_code hk_pa_series_names(struct hk_admin *admin, const struct hk_series_ask *ask,
                                const struct hk_series_names **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_series_names *names = &admin->series_names;
    *names = (struct hk_series_names){.n = 0};
    hk_pg_call(pg);
    arg_ask(pg, ask, &a);
    PGresult *res = hk_pg_query(pg, false, HK_PA_SERIES_NAMES, &a);
    int n = res ? PQntuples(res) : 0;
    names->items = n > 0 ? hk_pg_alloc(pg, (size_t)n, sizeof *names->items) : NULL;
    for (int i = 0; i < n && names->items; i++)
        names->items[names->n++] = hk_pg_text(pg, res, i, 0);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read figures", err);
    if (rc == HK_OK)
        *out = names;
    return rc;
}
