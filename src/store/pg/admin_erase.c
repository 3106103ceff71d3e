/* SPDX-License-Identifier: Apache-2.0 */
/* Erasing what is kept of messages in PostgreSQL: payloads, headers, and what receivers said. The rows stay. Their older versions stay in the
 * files of the tables until VACUUM has gone over them, as after every UPDATE. */
#include "base/str.h"
#include "observe/crash.h"
#include "store/pg/admin.h"

#define ERASE_MS 600000

static void arg_place(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_refs_act *act,
                      enum hk_place place)
{
    int64_t *ids = hk_pg_alloc(pg, act->n + 1, sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; ids && i < act->n; i++)
        if (act->refs[i].place == place)
            ids[n++] = act->refs[i].id;
    hk_pg_arg_i64s(pg, a, ids, n);
}

static void note(const struct hk_refs_act *act, int64_t place, int64_t id, enum hk_ref_did did,
                 struct hk_refs_done *out)
{
    for (size_t i = 0; i < act->n; i++)
        if ((int64_t)act->refs[i].place == place && act->refs[i].id == id) {
            out->did[i] = did;
            out->changed += did == HK_REF_DONE;
            return;
        }
}

enum hk_code hk_pa_erase_refs(struct hk_admin *admin, const struct hk_refs_act *act, struct hk_refs_done *out,
                              struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    if (act->n > HK_REFS_MAX)
        return hk_err_set(err, HK_INVALID, "more than %d messages at a time", HK_REFS_MAX);
    hk_pg_call(pg);
    struct hk_refs_done done = {.did = hk_pg_alloc(pg, act->n + 1, sizeof *done.did), .n = act->n};
    for (size_t i = 0; done.did && i < act->n; i++)
        done.did[i] = HK_REF_GONE;
    hk_pa_arg_now(admin, &a);
    arg_place(pg, &a, act, HK_IN_DEAD);
    arg_place(pg, &a, act, HK_IN_CANCELLED);
    arg_place(pg, &a, act, HK_IN_SENT);
    hk_pg_arg_text(pg, &a, hk_str_of(act->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(act->reason));
    uint64_t call_ms = pg->call_ms;
    pg->call_ms = ERASE_MS;
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_NO_HURRY, NULL);
    hk_pg_add(pg, HK_PA_ERASE_REFS, &a);
    hk_crash_point("act-begun");
    hk_pg_send(pg);
    hk_crash_point("act-inside");
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    for (int i = 0; res && done.did && i < PQntuples(res); i++) {
        done.now_ms = hk_pg_now(pg, hk_pg_i64(res, i, 0));
        if (!hk_pg_null(res, i, 1))
            note(act, hk_pg_i64(res, i, 1), hk_pg_i64(res, i, 2), (enum hk_ref_did)hk_pg_i64(res, i, 3),
                 &done);
    }
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "erase messages", err);
    pg->call_ms = call_ms;
    hk_crash_point("act-committed");
    if (rc == HK_OK)
        *out = done;
    return rc;
}
