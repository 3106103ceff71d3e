/* SPDX-License-Identifier: Apache-2.0 */
/* Erasing what is kept of messages in SQLite: payloads, headers, and what receivers said. The rows stay. What SQLite frees in its file it
 * overwrites (secure_delete); what the WAL holds of it goes with the next checkpoint. */
#include "base/str.h"
#include "observe/crash.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"

static const enum hk_sa_id named[HK_NPLACES] = {
    [HK_IN_DEAD] = HK_SA_NAME_DEAD, [HK_IN_CANCELLED] = HK_SA_NAME_CANCELLED, [HK_IN_SENT] = HK_SA_NAME_SENT};

static struct hk_str message_of(struct hk_store *store, const struct hk_ref *ref)
{
    struct hk_str id = {NULL, 0};
    if (ref->place != HK_IN_DEAD && ref->place != HK_IN_CANCELLED && ref->place != HK_IN_SENT)
        return id;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[named[ref->place]]);
    hk_sq_bind_i64(store, q, 1, ref->id);
    if (hk_sq_row(store, q))
        id = hk_sa_text(store, q, 0, SIZE_MAX);
    sqlite3_finalize(q);
    return id;
}

static int run_for(struct hk_store *store, enum hk_sa_id statement, struct hk_str message_id, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[statement]);
    hk_sq_bind_text(store, q, 1, message_id);
    if (q && sqlite3_bind_parameter_count(q) >= 2)
        hk_sq_bind_i64(store, q, 2, now_ms);
    int changed = hk_sq_run(store, q);
    sqlite3_finalize(q);
    return changed;
}

static bool is_on_its_way(struct hk_store *store, struct hk_str message_id)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_ON_ITS_WAY]);
    hk_sq_bind_text(store, q, 1, message_id);
    bool is = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return is;
}

static enum hk_ref_did erase_one(struct hk_store *store, const struct hk_ref *ref,
                                 const struct hk_refs_act *act, int64_t now_ms)
{
    static const enum hk_sa_id steps[] = {HK_SA_ERASE_ATTEMPTS, HK_SA_ERASE_VERSIONS, HK_SA_ERASE_LETTERS,
                                          HK_SA_ERASE_PAST, HK_SA_ERASE_CANCELLED};
    struct hk_str message_id = message_of(store, ref);
    if (!message_id.ptr)
        return HK_REF_GONE;
    if (is_on_its_way(store, message_id))
        return HK_REF_IN_FLIGHT;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        (void)run_for(store, steps[i], message_id, now_ms);
        hk_crash_point("act-inside");
    }
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = hk_str_of(act->actor),
                                              .act = hk_str_of("erase"),
                                              .message_id = message_id,
                                              .reason = hk_str_of(act->reason)});
    return HK_REF_DONE;
}

enum hk_code hk_sa_erase_refs(struct hk_admin *admin, const struct hk_refs_act *act, struct hk_refs_done *out,
                              struct hk_err *err)
{
    struct hk_store *store = admin->store;
    if (act->n > HK_REFS_MAX)
        return hk_err_set(err, HK_INVALID, "more than %d messages at a time", HK_REFS_MAX);
    hk_sq_call(store);
    if (sqlite3_exec(store->db, "PRAGMA secure_delete = ON", NULL, NULL, NULL) != SQLITE_OK)
        hk_sq_fail(store, sqlite3_errcode(store->db));
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    struct hk_refs_done done = {
        .did = hk_sq_alloc(store, act->n + 1, sizeof *done.did), .n = act->n, .now_ms = hk_sq_now(store)};
    hk_crash_point("act-begun");
    for (size_t i = 0; done.did && i < act->n && hk_sq_ok(store); i++) {
        done.did[i] = erase_one(store, &act->refs[i], act, done.now_ms);
        done.changed += done.did[i] == HK_REF_DONE;
    }
    enum hk_code rc = hk_sq_end(store, "erase messages", err);
    hk_crash_point("act-committed");
    if (rc == HK_OK)
        *out = done;
    return rc;
}
