/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on many messages: cancel and restore.
 *
 * DESIGN. As admin_act.c: what could race a relay's claim first locks the lanes that own the shards, then the shards, then the lanes
 * again, then the rows; the statement behind the locks decides for each row, and says what it did. All of it is one pipeline.
 *
 * A restored message goes where a requeued letter goes, to outbox_retry, and not back to outbox: a relay may not write there, it has read
 * on behind the id, and an application's triggers would take the row for new. Rows of outbox_retry that hold a key go in the order of
 * their ids, and all of them go before rows of outbox. So messages are restored in the order of their outbox_ids. Where messages of
 * the same key still wait in outbox before one of them, they move along, and stay before it: they must not be claimed meanwhile, which
 * is what the locks are for here. */
#include "base/str.h"
#include "observe/crash.h"
#include "store/pg/letters.h"
#include "store/pg/rest.h"

#define COPY_MS 600000 /* payloads may be large, and the server copies them */

_Static_assert(HK_REF_DONE == 0 && HK_REF_GONE == 1 && HK_REF_IN_FLIGHT == 2 && HK_REF_OVERTAKING == 3 &&
                   HK_REF_FAR_BEHIND == 4 && HK_REF_LETTER == 5 && HK_REF_AGAIN == 6 && HK_REF_ERASED == 7 &&
                   HK_BEFORE_MAX == 10000 && HK_AGAIN_ROWS == 20000,
               "the numbers stand in the statements");

struct bulk {
    struct hk_admin *admin;
    const struct hk_refs_act *act;
    struct hk_refs_done out;
};

/* The ids of the act's rows in `place`, as bigint[]. */
static void arg_ids(struct bulk *b, struct hk_pg_args *a, enum hk_place place)
{
    struct hk_pg *pg = &b->admin->pg;
    int64_t *ids = hk_pg_alloc(pg, b->act->n + 1, sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; ids && i < b->act->n; i++)
        if (b->act->refs[i].place == place)
            ids[n++] = b->act->refs[i].id;
    hk_pg_arg_i64s(pg, a, ids, n);
}

static void arg_ordered(struct bulk *b, struct hk_pg_args *a)
{
    struct hk_pg *pg = &b->admin->pg;
    struct hk_str *names = hk_pg_alloc(pg, b->act->n_ordered + 1, sizeof *names);
    for (size_t i = 0; names && i < b->act->n_ordered; i++)
        names[i] = hk_str_of(b->act->ordered[i]);
    hk_pg_arg_texts(pg, a, names, names ? b->act->n_ordered : 0);
}

/* Actor, reason, the act that it belongs to, filter. */
static void arg_trail(struct bulk *b, struct hk_pg_args *a)
{
    struct hk_pg *pg = &b->admin->pg;
    const struct hk_refs_act *act = b->act;
    hk_pg_arg_text(pg, a, hk_str_of(act->actor));
    hk_pg_arg_text(pg, a, hk_str_of(act->reason));
    if (act->n > 1 || act->filter || act->act_id)
        hk_pg_arg_i64(pg, a, act->act_id);
    else
        hk_pg_arg_null(pg, a);
    if (act->filter)
        hk_pg_arg_text(pg, a, hk_str_of(act->filter));
    else
        hk_pg_arg_null(pg, a);
}

/* `of`: those that `statement` names are moved. */
static void arg_sealed(struct bulk *b, struct hk_pg_args *a, unsigned statement, enum hk_place of)
{
    struct hk_pg_args ids = {.n = 0};
    arg_ids(b, &ids, of);
    struct hk_pg_rest sealed = hk_pg_rest_read(&b->admin->pg, b->admin->options.seal, statement, &ids);
    hk_pg_arg_rest(&b->admin->pg, a, &sealed);
}

/* Which of the act's rows it is; the first, when it was named twice. */
static void note_did(struct bulk *b, enum hk_place place, int64_t id, enum hk_ref_did did)
{
    for (size_t i = 0; i < b->act->n; i++)
        if (b->act->refs[i].place == place && b->act->refs[i].id == id) {
            b->out.did[i] = did;
            b->out.changed += did == HK_REF_DONE;
            return;
        }
}

static enum hk_code begin(struct bulk *b, struct hk_admin *admin, const struct hk_refs_act *act,
                          struct hk_err *err)
{
    if (act->n > HK_REFS_MAX)
        return hk_err_set(err, HK_INVALID, "more than %d messages at a time", HK_REFS_MAX);
    hk_pg_call(&admin->pg);
    *b = (struct bulk){.admin = admin,
                       .act = act,
                       .out = {.did = hk_pg_alloc(&admin->pg, act->n + 1, sizeof *b->out.did), .n = act->n}};
    for (size_t i = 0; b->out.did && i < act->n; i++)
        b->out.did[i] = HK_REF_GONE;
    return HK_OK;
}

/* Sends what was put together: `n_before` statements whose results nobody needs, and the act. Its result: HK_OK with what was
 * done. `column`: of the place, or of the id where all are of `place`. */
static enum hk_code finish(struct bulk *b, int n_before, const char *doing, enum hk_place place,
                           struct hk_refs_done *out, struct hk_err *err)
{
    struct hk_pg *pg = &b->admin->pg;
    hk_crash_point("act-begun");
    hk_pg_send(pg);
    hk_crash_point("act-inside");
    for (int i = 0; i < n_before; i++)
        PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    if (res && b->out.did) {
        int at = place == HK_IN_CANCELLED ? 2 : 3;
        b->out.now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
        b->out.act_id = hk_pg_null(res, 0, 1) ? b->act->act_id : hk_pg_i64(res, 0, 1);
        for (int i = 0; i < PQntuples(res); i++)
            if (!hk_pg_null(res, i, at))
                note_did(b,
                         at == 2                ? place
                         : hk_pg_i64(res, i, 2) ? HK_IN_OUTBOX
                                                : HK_IN_RETRY,
                         hk_pg_i64(res, i, at), (enum hk_ref_did)hk_pg_i64(res, i, at + 1));
    }
    PQclear(res);
    enum hk_code rc = hk_pa_end(b->admin, doing, err);
    hk_crash_point("act-committed");
    if (rc == HK_OK)
        *out = b->out;
    return rc;
}

enum hk_code hk_pa_cancel_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                               struct hk_refs_done *out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args rows = {.n = 0}, retries = {.n = 0}, a = {.n = 0};
    struct bulk b = {.admin = admin};
    enum hk_code rc = begin(&b, admin, act, err);
    if (rc != HK_OK)
        return rc;
    arg_ids(&b, &rows, HK_IN_OUTBOX);
    arg_ids(&b, &rows, HK_IN_RETRY);
    arg_ids(&b, &retries, HK_IN_RETRY);
    hk_pa_arg_now(admin, &a);
    arg_ids(&b, &a, HK_IN_OUTBOX);
    arg_ids(&b, &a, HK_IN_RETRY);
    arg_trail(&b, &a);
    arg_sealed(&b, &a, HK_PA_UNSEALED, HK_IN_OUTBOX);
    uint64_t call_ms = pg->call_ms;
    pg->call_ms = COPY_MS;
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_LOCK_LANES_OF_REFS, &rows);
    hk_pg_add(pg, HK_PA_LOCK_SHARDS_OF_REFS, &rows);
    hk_pg_add(pg, HK_PA_LOCK_LANES_OF_REFS, &rows);
    hk_pg_add(pg, HK_PA_LOCK_RETRY_REFS, &retries);
    hk_pg_add(pg, HK_PA_NO_HURRY, NULL);
    hk_pg_add(pg, HK_PA_CANCEL_REFS, &a);
    rc = finish(&b, 5, "cancel messages", HK_IN_OUTBOX, out, err);
    pg->call_ms = call_ms;
    return rc;
}

enum hk_code hk_pa_restore_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                                struct hk_refs_done *out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args keys = {.n = 0}, a = {.n = 0};
    struct bulk b = {.admin = admin};
    enum hk_code rc = begin(&b, admin, act, err);
    if (rc != HK_OK)
        return rc;
    arg_ids(&b, &keys, HK_IN_CANCELLED);
    arg_ordered(&b, &keys);
    hk_pa_arg_now(admin, &a);
    arg_ids(&b, &a, HK_IN_CANCELLED);
    arg_trail(&b, &a);
    arg_ordered(&b, &a);
    arg_sealed(&b, &a, HK_PA_UNSEALED_BEFORE, HK_IN_CANCELLED);
    uint64_t call_ms = pg->call_ms;
    pg->call_ms = COPY_MS;
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_LOCK_LANES_OF_KEYS, &keys);
    hk_pg_add(pg, HK_PA_LOCK_SHARDS_OF_KEYS, &keys);
    hk_pg_add(pg, HK_PA_LOCK_LANES_OF_KEYS, &keys);
    hk_pg_add(pg, HK_PA_LOCK_CANCELLED_LETTERS, &keys);
    hk_pg_add(pg, HK_PA_NO_HURRY, NULL);
    hk_pg_add(pg, HK_PA_RESTORE_REFS, &a);
    rc = finish(&b, 5, "restore messages", HK_IN_CANCELLED, out, err);
    pg->call_ms = call_ms;
    return rc;
}
