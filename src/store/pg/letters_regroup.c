/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints that another version of the rule made, made anew: one statement looks, the other writes, each letter on condition that
 * nobody has changed its group meanwhile. No lock is held in between. */
#include "base/str.h"
#include "observe/crash.h"
#include "store/pg/letters.h"
#include "store/regroup.h"

static int look(struct hk_admin *admin, const struct hk_regrouping *how, uint32_t limit,
                struct hk_regrouped *found)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_arg_i64(pg, &a, limit);
    hk_pg_arg_i64(pg, &a, (int64_t)how->payload_max);
    PGresult *res = hk_pg_query(pg, false, HK_PL_STALE_GROUPS, &a);
    int n = res ? PQntuples(res) : 0;
    for (int i = 0; i < n; i++) {
        struct hk_letter letter;
        hk_pl_letter(pg, res, i, 0, false, &letter);
        hk_regrouped_init(&found[i]);
        if (!hk_regroup_judge(how, &letter, &found[i]))
            hk_pg_fail(pg, HK_NOMEM, "out of memory");
    }
    PQclear(res);
    return n;
}

static uint32_t write_all(struct hk_admin *admin, const struct hk_regrouped *found, int n)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    int64_t *ids = hk_pg_alloc(pg, (size_t)n, sizeof *ids);
    struct hk_str *texts = hk_pg_alloc(pg, 3 * (size_t)n, sizeof *texts);
    size_t count = 0, room = (size_t)n;
    for (int i = 0; ids && texts && i < n; i++) {
        if (!found[i].id)
            continue;
        ids[count] = found[i].id;
        texts[count] = hk_str_of(found[i].was);
        texts[room + count] = hk_str_of(found[i].print);
        texts[2 * room + count++] = hk_buf_str(&found[i].error);
    }
    if (!count)
        return 0;
    hk_pg_arg_i64s(pg, &a, ids, count);
    for (size_t k = 0; k < 3; k++)
        hk_pg_arg_texts(pg, &a, texts + k * room, count);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PL_REGROUP, &a);
    hk_pg_send(pg);
    hk_crash_point("regroup");
    PGresult *res = hk_pg_result(pg);
    uint32_t changed = (uint32_t)hk_pg_touched(res);
    PQclear(res);
    return changed;
}

enum hk_code hk_pl_regroup(struct hk_admin *admin, const struct hk_regrouping *how, uint32_t *out_n,
                           struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    uint32_t limit = how->limit < HK_REGROUP_MAX ? how->limit : HK_REGROUP_MAX;
    hk_pg_call(pg);
    struct hk_regrouped *found = hk_pg_alloc(pg, limit + 1, sizeof *found);
    int n = found ? look(admin, how, limit, found) : 0;
    uint32_t changed = n && hk_pg_ok(pg) ? write_all(admin, found, n) : 0;
    for (int i = 0; i < n; i++)
        hk_regrouped_fini(&found[i]);
    enum hk_code rc = hk_pa_end(admin, "group dead letters anew", err);
    if (rc == HK_OK)
        *out_n = changed;
    return rc;
}
