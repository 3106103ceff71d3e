/* SPDX-License-Identifier: Apache-2.0 */
/* What the relays of one database may do together: buckets of tokens, books of seats and the state of breakers, kept in its tables and
 * drawn from inside the exchange. A bucket that another relay has in hand gives nothing this time: no exchange waits for one. */
#include <math.h>

#include "base/str.h"
#include "store/pg/store.h"

#define MICRO 1e6 /* rates travel as whole millionths */

static int64_t micro(double value)
{
    return value > 0 && value < 1e12 ? llrint(value * MICRO) : (int64_t)1e18;
}

struct grants {
    struct hk_pg *pg;
    struct hk_grant *grants; /* one per quota */
    size_t n;
};

static void read_grants(void *arg, PGresult *res)
{
    const struct grants *to = arg;
    for (int i = 0; hk_pg_ok(to->pg) && i < PQntuples(res); i++) {
        int64_t at = hk_pg_i64(res, i, 0) - 1;
        if (at >= 0 && (size_t)at < to->n)
            to->grants[at] =
                (struct hk_grant){.n = (uint32_t)hk_pg_i64(res, i, 1), .ready_ms = hk_pg_i64(res, i, 2)};
    }
    PQclear(res);
}

static void add_quotas(struct hk_store *store, const struct hk_exchange *x, struct hk_exchanged *done)
{
    struct hk_pg *pg = &store->pg;
    size_t n = x->n_quotas;
    struct hk_str *names = hk_pg_alloc(pg, n, sizeof *names);
    int64_t *numbers = hk_pg_alloc(pg, 4 * n, sizeof *numbers);
    struct grants *to = hk_pg_alloc(pg, 1, sizeof *to);
    if (!names || !numbers || !to)
        return;
    *to = (struct grants){.pg = pg, .grants = done->grants, .n = n};
    for (size_t i = 0; i < n; i++) {
        names[i] = hk_str_of(x->quotas[i].destination);
        numbers[i] = x->quotas[i].probe;
        numbers[n + i] = micro(x->quotas[i].rate_per_s);
        numbers[2 * n + i] = micro(x->quotas[i].burst < 1 ? 1 : x->quotas[i].burst);
        numbers[3 * n + i] = x->quotas[i].want;
    }
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_texts(pg, &a, names, n);
    for (size_t k = 0; k < 4; k++)
        hk_pg_arg_i64s(pg, &a, numbers + k * n, n);
    hk_pg_add_read(pg, HK_PG_QUOTAS, &a, read_grants, to);
}

struct seats {
    struct hk_pg *pg;
    struct hk_seats_given *given; /* one per asking */
    size_t n;
};

static void read_seats(void *arg, PGresult *res)
{
    const struct seats *to = arg;
    for (int i = 0; hk_pg_ok(to->pg) && i < PQntuples(res); i++) {
        int64_t at = hk_pg_i64(res, i, 0) - 1;
        if (at < 0 || (size_t)at >= to->n)
            continue;
        to->given[at] = (struct hk_seats_given){
            .written = hk_pg_bool(res, i, 1),
            .held = (uint32_t)hk_pg_i64(res, i, 2),
            .limit = hk_pg_null(res, i, 3) ? HK_SEATS_NO_LIMIT : (uint32_t)hk_pg_i64(res, i, 3)};
    }
    PQclear(res);
}

static void add_seats(struct hk_store *store, const struct hk_exchange *x, struct hk_exchanged *done)
{
    struct hk_pg *pg = &store->pg;
    size_t n = x->n_seats;
    struct hk_str *names = hk_pg_alloc(pg, n, sizeof *names);
    int64_t *numbers = hk_pg_alloc(pg, 3 * n, sizeof *numbers);
    struct seats *to = hk_pg_alloc(pg, 1, sizeof *to);
    if (!names || !numbers || !to)
        return;
    *to = (struct seats){.pg = pg, .given = done->seats, .n = n};
    for (size_t i = 0; i < n; i++) {
        names[i] = hk_str_of(x->seats[i].destination);
        numbers[i] = x->seats[i].most;
        numbers[n + i] = x->seats[i].hold;
        numbers[2 * n + i] = x->seats[i].want;
    }
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(pg, &a, x->lane);
    hk_pg_arg_texts(pg, &a, names, n);
    for (size_t k = 0; k < 3; k++)
        hk_pg_arg_i64s(pg, &a, numbers + k * n, n);
    hk_pg_add_read(pg, HK_PG_SEATS, &a, read_seats, to);
}

static void add_circuits(struct hk_store *store, const struct hk_exchange *x)
{
    struct hk_pg *pg = &store->pg;
    size_t n = x->n_circuits;
    struct hk_str *names = hk_pg_alloc(pg, n, sizeof *names);
    int64_t *until = hk_pg_alloc(pg, n, sizeof *until);
    if (!names || !until)
        return;
    for (size_t i = 0; i < n; i++) {
        names[i] = hk_str_of(x->circuits[i].destination);
        until[i] = hk_pg_to_row(store, x->circuits[i].open_until_ms);
    }
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_texts(pg, &a, names, n);
    hk_pg_arg_i64s(pg, &a, until, n);
    hk_pg_add(pg, HK_PG_CIRCUITS, &a);
}

void hk_pg_add_quotas(struct hk_store *store, const struct hk_exchange *x, struct hk_exchanged *done)
{
    if (x->n_circuits)
        add_circuits(store, x);
    if (x->n_quotas)
        add_quotas(store, x, done);
    if (x->n_seats)
        add_seats(store, x, done);
}
