/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints that another version of the rule made, made anew: looked at in a transaction that only reads, and written in a short
 * one, each letter on condition that nobody has changed its group meanwhile. */
#include "observe/crash.h"
#include "store/regroup.h"
#include "store/sqlite/letters.h"

static size_t look(struct hk_store *store, uint32_t limit, int64_t *ids)
{
    size_t n = 0;
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_STALE_GROUPS], limit);
    while (n < limit && hk_sq_row(store, q))
        ids[n++] = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return n;
}

static void judge(struct hk_store *store, const int64_t *ids, size_t n, const struct hk_regrouping *how,
                  struct hk_regrouped *out)
{
    struct hk_sl_reader reader;
    struct hk_pool scratch = {0};
    hk_sl_reader_open(store, true, &reader);
    for (size_t i = 0; i < n && hk_sq_ok(store); i++) {
        struct hk_letter letter;
        hk_pool_reset(&scratch);
        if (!hk_sl_read(&reader, ids[i], how->payload_max, &scratch, &letter))
            continue;
        if (!hk_regroup_judge(how, &letter, &out[i]))
            hk_sq_fail(store, SQLITE_NOMEM);
    }
    hk_sl_reader_close(&reader);
    hk_pool_fini(&scratch);
}

static uint32_t write_one(struct hk_store *store, const struct hk_regrouped *letter)
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_REGROUP], letter->id);
    hk_sq_bind_cstr(store, q, 2, letter->was);
    hk_sq_bind_cstr(store, q, 3, letter->print);
    hk_sq_bind_text_or_null(store, q, 4, hk_buf_str(&letter->error));
    int changed = hk_sq_run(store, q);
    sqlite3_finalize(q);
    return changed > 0 ? 1 : 0;
}

enum hk_code hk_sl_regroup(struct hk_admin *admin, const struct hk_regrouping *how, uint32_t *out_n,
                           struct hk_err *err)
{
    struct hk_store *store = admin->store;
    uint32_t limit = how->limit < HK_REGROUP_MAX ? how->limit : HK_REGROUP_MAX;
    hk_sq_call(store);
    int64_t *ids = hk_sq_alloc(store, limit + 1, sizeof *ids);
    struct hk_regrouped *found = hk_sq_alloc(store, limit + 1, sizeof *found);
    hk_sq_begin_read(store);
    uint32_t changed = 0;
    size_t n = ids && found ? look(store, limit, ids) : 0;
    for (size_t i = 0; i < n; i++)
        hk_regrouped_init(&found[i]);
    judge(store, ids, n, how, found);
    enum hk_code rc = hk_sq_end(store, "look for groups of older versions", err);
    if (rc == HK_OK && n) {
        (void)hk_sl_begin_act(admin);
        for (size_t i = 0; i < n; i++)
            if (found[i].id)
                changed += write_one(store, &found[i]);
        hk_crash_point("regroup");
        rc = hk_sq_end(store, "group dead letters anew", err);
    }
    for (size_t i = 0; i < n; i++)
        hk_regrouped_fini(&found[i]);
    if (rc == HK_OK)
        *out_n = changed;
    return rc;
}
