/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pg/rest.h"
#include "store/rest.h"

static void seal_row(struct hk_pg *pg, struct hk_keyring *keys, const PGresult *res, int row,
                     struct hk_pg_rest *out)
{
    struct hk_err err = {.message = ""};
    struct hk_str stored = {PQgetvalue(res, row, 3), (size_t)PQgetlength(res, row, 3)}, sealed;
    enum hk_code rc = hk_rest_seal(keys, hk_pg_text(pg, res, row, 1), stored, hk_pg_pool(pg), &sealed, &err);
    if (rc != HK_OK) {
        hk_pg_fail(pg, rc == HK_UNAVAILABLE ? HK_BUSY : rc, err.message);
        return;
    }
    struct hk_str encoding = hk_rest_encoding(hk_pg_text(pg, res, row, 2), hk_pg_pool(pg));
    if (!encoding.ptr)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    out->ids[out->n] = hk_pg_i64(res, row, 0);
    out->encodings[out->n] = encoding;
    out->payloads[out->n] = sealed;
    out->n++;
}

struct hk_pg_rest hk_pg_rest_read(struct hk_pg *pg, struct hk_keyring *keys, unsigned statement,
                                  const struct hk_pg_args *args)
{
    struct hk_pg_rest rest = {.n = 0};
    if (!keys || !hk_pg_ok(pg))
        return rest;
    PGresult *res = hk_pg_query(pg, false, statement, args);
    size_t n = res ? (size_t)PQntuples(res) : 0;
    rest.ids = hk_pg_alloc(pg, n + 1, sizeof *rest.ids);
    rest.encodings = hk_pg_alloc(pg, n + 1, sizeof *rest.encodings);
    rest.payloads = hk_pg_alloc(pg, n + 1, sizeof *rest.payloads);
    for (size_t i = 0; i < n && hk_pg_ok(pg); i++)
        seal_row(pg, keys, res, (int)i, &rest);
    PQclear(res);
    return rest;
}

void hk_pg_arg_rest(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_pg_rest *rest)
{
    hk_pg_arg_i64s(pg, a, rest->ids, rest->n);
    hk_pg_arg_texts(pg, a, rest->encodings, rest->n);
    hk_pg_arg_texts(pg, a, rest->payloads, rest->n);
}

void hk_pg_arg_rest_of(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_pg_rest *rest, int64_t id)
{
    struct hk_pg_rest one = {.n = 0};
    for (size_t i = 0; i < rest->n && !one.n; i++)
        if (rest->ids[i] == id)
            one = (struct hk_pg_rest){rest->ids + i, rest->encodings + i, rest->payloads + i, 1};
    hk_pg_arg_rest(pg, a, &one);
}
