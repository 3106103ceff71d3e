/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on many messages: cancel and restore. Each call is one transaction under the write lock; rows that cannot be changed do not stop
 * the others.
 *
 * A restored message goes where a requeued letter goes, to outbox_retry, and not back to outbox: the relay has read on behind its id, and
 * an application's triggers would take it for new. Rows of outbox_retry that hold a key go in the order of their ids, and all of them go
 * before rows of outbox. So messages are restored in the order of their outbox_ids. Where messages of the same key still wait in
 * outbox before one of them, they move along, and stay before it. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "observe/crash.h"
#include "store/sqlite/letters.h"

/* Rows of outbox that manifests name. */
struct named {
    int64_t *ids;
    size_t n, room;
};

struct bulk {
    struct hk_store *store;
    const struct hk_refs_act *act;
    struct hk_refs_done out;
    struct hk_act by; /* who and why */
    struct named named;
    struct hk_sl_trail trail;
};

static void read_named(struct hk_store *store, struct named *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_NAMED_IDS]);
    while (hk_sq_row(store, q)) {
        int64_t *ids = hk_sa_grow(store, out->ids, out->n, &out->room, sizeof *ids);
        if (!ids)
            break;
        out->ids = ids;
        ids[out->n++] = sqlite3_column_int64(q, 0);
    }
    sqlite3_finalize(q);
}

static bool is_named(const struct named *named, int64_t id)
{
    for (size_t i = 0; i < named->n; i++)
        if (named->ids[i] == id)
            return true;
    return false;
}

static enum hk_code begin(struct bulk *b, struct hk_admin *admin, const struct hk_refs_act *act,
                          const char *name, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    if (act->n > HK_REFS_MAX)
        return hk_err_set(err, HK_INVALID, "more than %d messages at a time", HK_REFS_MAX);
    hk_sq_call(store);
    *b = (struct bulk){.store = store,
                       .act = act,
                       .out = {.did = hk_sq_alloc(store, act->n + 1, sizeof *b->out.did), .n = act->n},
                       .by = {.actor = act->actor, .reason = act->reason}};
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    b->out.now_ms = hk_sq_now(store);
    b->trail = (struct hk_sl_trail){.store = store,
                                    .row = {.at_ms = b->out.now_ms,
                                            .actor = hk_str_of(act->actor),
                                            .act = hk_str_of(name),
                                            .reason = hk_str_of(act->reason)},
                                    .messages = true,
                                    .many = act->n > 1 || act->filter || act->act_id,
                                    .filter = act->filter,
                                    .act_id = act->act_id};
    read_named(store, &b->named);
    hk_crash_point("act-begun");
    return HK_OK;
}

static enum hk_code end(struct bulk *b, const char *doing, struct hk_refs_done *out, struct hk_err *err)
{
    b->out.act_id = hk_sl_trail_end(&b->trail);
    hk_crash_point("act-inside");
    enum hk_code rc = hk_sq_end(b->store, doing, err);
    hk_crash_point("act-committed");
    if (rc == HK_OK)
        *out = b->out;
    return rc;
}

/* One more was changed. */
static void note_done(struct bulk *b, size_t at, int64_t cancelled_id, struct hk_str message_id,
                      struct hk_str destination)
{
    b->out.did[at] = HK_REF_DONE;
    b->out.changed++;
    hk_sl_trail_add(&b->trail, &(struct hk_audit_letter){.letter_id = cancelled_id,
                                                         .is_message = true,
                                                         .message_id = message_id,
                                                         .destination = destination});
    hk_crash_point("act-inside");
}

/* ---- cancel ---- */

static void cancel_ref(struct bulk *b, size_t at)
{
    struct hk_ref row = b->act->refs[at];
    struct hk_store *store = b->store;
    sqlite3_stmt *q = hk_sl_prepare_for(
        store, hk_sa_texts[row.place == HK_IN_OUTBOX ? HK_SA_REF_IN_OUTBOX : HK_SA_REF_IN_RETRY], row.id);
    bool there = (row.place == HK_IN_OUTBOX || row.place == HK_IN_RETRY) && hk_sq_row(store, q);
    bool held = there && sqlite3_column_int(q, 2) != 0;
    struct hk_str message_id = there ? hk_sa_text(store, q, 0, HK_SA_TEXT_MAX) : (struct hk_str){"", 0};
    struct hk_str destination = there ? hk_sa_text(store, q, 1, HK_SA_TEXT_MAX) : (struct hk_str){"", 0};
    sqlite3_finalize(q);
    b->out.did[at] = there ? HK_REF_IN_FLIGHT : HK_REF_GONE;
    if (!there || held || (row.place == HK_IN_OUTBOX && is_named(&b->named, row.id)))
        return;
    note_done(b, at, hk_sa_cancel_row(store, row, &b->by, b->out.now_ms), message_id, destination);
}

enum hk_code hk_sa_cancel_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                               struct hk_refs_done *out, struct hk_err *err)
{
    struct bulk b;
    enum hk_code rc = begin(&b, admin, act, "cancel", err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < act->n && hk_sq_ok(b.store); i++)
        cancel_ref(&b, i);
    return end(&b, "cancel messages", out, err);
}

/* ---- restore ---- */

struct cancelled {
    size_t at; /* of the act's rows */
    int64_t id, origin, due_ms, not_before_ms, letter_id;
    bool there, fresh, deferred;
    bool again; /* the application has written its id once more */
    struct hk_str message_id, destination, key;
};

static void read_cancelled(struct bulk *b, size_t at, struct cancelled *out)
{
    struct hk_ref row = b->act->refs[at];
    struct hk_store *store = b->store;
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sa_texts[HK_SA_REF_CANCELLED], row.id);
    *out = (struct cancelled){.at = at, .id = row.id};
    if (row.place == HK_IN_CANCELLED && hk_sq_row(store, q))
        *out = (struct cancelled){
            .at = at,
            .id = row.id,
            .there = true,
            .message_id = hk_sa_text(store, q, 0, HK_SA_TEXT_MAX),
            .destination = hk_sa_text(store, q, 1, HK_SA_TEXT_MAX),
            .key = hk_sa_text(store, q, 2, SIZE_MAX),
            .origin = sqlite3_column_int64(q, 3),
            .fresh = sqlite3_column_int(q, 4) != 0,
            .due_ms = sqlite3_column_int64(q, 5),
            .deferred = sqlite3_column_int(q, 6) != 0,
            .not_before_ms = hk_sa_time(q, 7),
            .letter_id = sqlite3_column_int64(q, 8),
        };
    sqlite3_finalize(q);
}

static int by_origin(const void *a, const void *b)
{
    const struct cancelled *x = a, *y = b;
    if (x->origin != y->origin)
        return x->origin < y->origin ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* ---- written again ---- */

static int compare_text(struct hk_str a, struct hk_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_message_id(const void *a, const void *b)
{
    const struct cancelled *const *x = a, *const *y = b;
    return compare_text((*x)->message_id, (*y)->message_id);
}

/* Those whose message_id is the same stand side by side. */
static void note_again(struct cancelled **sorted, size_t n, const struct cancelled *row)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_text(sorted[mid]->message_id, row->message_id) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n && hk_str_eq(sorted[lo]->message_id, row->message_id); lo++)
        if (row->id > sorted[lo]->origin && hk_str_eq(sorted[lo]->destination, row->destination))
            sorted[lo]->again = true;
}

/* `all` by origin. One look at the newest rows of outbox for all of them: there is no index of their message_ids. */
static void find_again(struct hk_store *store, struct cancelled *all, size_t n)
{
    struct cancelled **sorted = n > 0 ? hk_sq_alloc(store, n, sizeof(struct cancelled *)) : NULL;
    if (!sorted)
        return;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &all[i];
    qsort(sorted, n, sizeof(struct cancelled *), by_message_id);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_NEWEST]);
    hk_sq_bind_i64(store, q, 1, all[0].origin);
    hk_sq_bind_i64(store, q, 2, HK_AGAIN_ROWS);
    while (hk_sq_row(store, q)) {
        const char *id = (const char *)sqlite3_column_text(q, 1),
                   *to = (const char *)sqlite3_column_text(q, 2);
        const struct cancelled row = {.id = sqlite3_column_int64(q, 0),
                                      .message_id = hk_str_of(id ? id : ""),
                                      .destination = hk_str_of(to ? to : "")};
        note_again(sorted, n, &row);
    }
    sqlite3_finalize(q);
}

static bool is_again(struct hk_store *store, const struct cancelled *c)
{
    if (c->again)
        return true;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_AGAIN]);
    hk_sq_bind_text(store, q, 1, c->message_id);
    hk_sq_bind_text(store, q, 2, c->destination);
    hk_sq_bind_i64(store, q, 3, c->origin);
    bool again = hk_sq_row(store, q) && sqlite3_column_int(q, 0) != 0;
    sqlite3_finalize(q);
    return again;
}

/* When it is due, and does it hold its key? What lay in outbox waits as the relay would have let it wait. */
static void schedule(struct bulk *b, struct cancelled *c)
{
    if (!c->fresh)
        return;
    c->deferred = c->not_before_ms > hk_sq_clock(b->store);
    c->due_ms = c->deferred ? c->not_before_ms : b->out.now_ms;
}

static bool is_ordered(const struct hk_refs_act *act, struct hk_str destination)
{
    for (size_t i = 0; i < act->n_ordered; i++)
        if (hk_str_eq(hk_str_of(act->ordered[i]), destination))
            return true;
    return false;
}

/* `sql` with the row's id and the time; the second one leaves a large payload out. */
static void move(struct bulk *b, int64_t id, const char *const sql[2])
{
    struct hk_store *store = b->store;
    struct hk_sq_place from = {HK_SQ_OUTBOX, id};
    int large = hk_sq_large(store, from);
    sqlite3_stmt *q = hk_sl_prepare_for(store, sql[large > 0], id);
    hk_sq_bind_i64(store, q, 2, b->out.now_ms);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
    struct hk_sq_place to = {HK_SQ_RETRY, sqlite3_last_insert_rowid(store->db)};
    hk_sq_copy_large(store, from, to, large);
    q = hk_sl_prepare_for(store, hk_sa_texts[HK_SA_DROP], id);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

/* What waits in outbox before it, of its key: moves ahead of it. Nothing moves when one of them is in flight, since it would come back
 * behind those. */
static enum hk_ref_did move_ahead(struct bulk *b, const struct cancelled *c)
{
    const char *const sql[] = {hk_sa_texts[HK_SA_MOVE_AHEAD], hk_sa_texts[HK_SA_MOVE_AHEAD_BARE]};
    struct hk_store *store = b->store;
    struct named ahead = {.ids = NULL};
    enum hk_ref_did did = HK_REF_DONE;
    size_t seen = 0;
    if (!c->fresh || c->deferred || c->key.len == 0 || !is_ordered(b->act, c->destination))
        return did;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_BEFORE]);
    hk_sq_bind_text(store, q, 1, c->destination);
    hk_sq_bind_text(store, q, 2, c->key);
    hk_sq_bind_i64(store, q, 3, c->origin);
    hk_sq_bind_i64(store, q, 4, HK_BEFORE_MAX + 1);
    while (did == HK_REF_DONE && hk_sq_row(store, q)) {
        int64_t id = sqlite3_column_int64(q, 0);
        int64_t *ids = hk_sa_grow(store, ahead.ids, ahead.n, &ahead.room, sizeof *ids);
        if (!ids)
            break;
        ahead.ids = ids;
        if (++seen > HK_BEFORE_MAX)
            did = HK_REF_FAR_BEHIND;
        else if (is_named(&b->named, id))
            did = HK_REF_OVERTAKING;
        else if (hk_sa_time(q, 1) <= hk_sq_clock(store))
            ids[ahead.n++] = id;
    }
    sqlite3_finalize(q);
    for (size_t i = 0; did == HK_REF_DONE && i < ahead.n && hk_sq_ok(store); i++)
        move(b, ahead.ids[i], sql);
    return did;
}

/* The dead letter that it was requeued from. `*letter_id` 0: there is none that waits for it. False: people have decided about it
 * since. */
static bool find_letter(struct bulk *b, const struct cancelled *c, int64_t *letter_id)
{
    struct hk_store *store = b->store;
    int waits = 0;
    if (c->letter_id > 0) {
        sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sa_texts[HK_SA_LETTER_WAITS], c->letter_id);
        hk_sq_bind_text(store, q, 2, c->destination);
        waits = hk_sq_row(store, q) ? sqlite3_column_int(q, 0) : 0;
        sqlite3_finalize(q);
    }
    *letter_id = waits == 1 ? c->letter_id : 0;
    return waits != 2;
}

static void reopen_letter(struct hk_store *store, int64_t id)
{
    if (!id)
        return;
    hk_sq_set_aside(store, (struct hk_sq_place){HK_SQ_LETTERS, id});
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sa_texts[HK_SA_REOPEN_LETTER], id);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
    hk_sq_put_back(store);
}

static void put_back(struct bulk *b, const struct cancelled *c, int64_t letter_id)
{
    struct hk_store *store = b->store;
    struct hk_sq_place from = {HK_SQ_CANCELS, c->id};
    int large = hk_sq_large(store, from);
    sqlite3_stmt *q =
        hk_sl_prepare_for(store, hk_sa_texts[large > 0 ? HK_SA_RESTORE_BARE : HK_SA_RESTORE], c->id);
    hk_sq_bind_i64(store, q, 2, c->due_ms);
    hk_sq_bind_i64(store, q, 3, c->deferred);
    hk_sq_bind_i64(store, q, 4, letter_id);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
    struct hk_sq_place to = {HK_SQ_RETRY, sqlite3_last_insert_rowid(store->db)};
    hk_sq_copy_large(store, from, to, large);
    reopen_letter(store, letter_id);
    q = hk_sl_prepare_for(store, hk_sa_texts[HK_SA_DROP_CANCELLED], c->id);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

static bool is_erased(struct hk_store *store, int64_t id)
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sa_texts[HK_SA_IS_ERASED], id);
    bool erased = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return erased;
}

static void restore_ref(struct bulk *b, struct cancelled *c)
{
    int64_t letter_id = 0;
    enum hk_ref_did did = c->there ? HK_REF_DONE : HK_REF_GONE;
    if (c->there && !find_letter(b, c, &letter_id))
        did = HK_REF_LETTER;
    if (did == HK_REF_DONE && is_erased(b->store, c->id))
        did = HK_REF_ERASED;
    if (did == HK_REF_DONE && is_again(b->store, c))
        did = HK_REF_AGAIN;
    if (did == HK_REF_DONE) {
        schedule(b, c);
        did = move_ahead(b, c);
    }
    b->out.did[c->at] = did;
    if (did != HK_REF_DONE)
        return;
    put_back(b, c, letter_id);
    note_done(b, c->at, c->id, c->message_id, c->destination);
}

enum hk_code hk_sa_restore_refs(struct hk_admin *admin, const struct hk_refs_act *act,
                                struct hk_refs_done *out, struct hk_err *err)
{
    struct bulk b;
    enum hk_code rc = begin(&b, admin, act, "restore", err);
    if (rc != HK_OK)
        return rc;
    struct cancelled *all = hk_sq_alloc(b.store, act->n + 1, sizeof *all);
    for (size_t i = 0; all && i < act->n; i++)
        read_cancelled(&b, i, &all[i]);
    if (all && act->n > 1)
        qsort(all, act->n, sizeof *all, by_origin);
    if (all)
        find_again(b.store, all, act->n);
    for (size_t i = 0; all && i < act->n && hk_sq_ok(b.store); i++) {
        if (i > 0 && all[i].id == all[i - 1].id) /* it was named twice */
            all[i].there = false;
        restore_ref(&b, &all[i]);
    }
    return end(&b, "restore messages", out, err);
}
