/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on letters. Each call is one transaction under the write lock. It takes letters in the order of their ids, so that requeued
 * letters of one key keep their order. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/ms.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/encoding.h"
#include "observe/crash.h"
#include "payload/codec.h"
#include "store/sqlite/letters.h"

#define RESOLUTION_MAX ((size_t)64 * 1024)

/* A letter as an act finds it. */
struct found {
    bool there;
    enum hk_letter_status status;
    bool sending;
    struct hk_str message_id, destination, requeued_as;
    bool sealed, erased;
    bool edited_since;       /* it was last requeued */
    bool possibly_delivered; /* in some life */
    int64_t edited_ms, requeued_ms;
    int64_t expires_ms; /* 0 = never, or nobody can tell */
    uint32_t version;
};

static struct found find(struct hk_store *store, sqlite3_stmt *q, int64_t id)
{
    struct found f = {.there = false};
    hk_sq_bind_i64(store, q, 1, id);
    if (hk_sq_row(store, q)) {
        f = (struct found){
            .there = true,
            .status = hk_sl_status(q, 0),
            .sending = sqlite3_column_int(q, 1) != 0,
            .message_id = hk_sa_text(store, q, 2, SIZE_MAX),
            .destination = hk_sa_text(store, q, 3, SIZE_MAX),
            .requeued_as = hk_sa_text(store, q, 4, SIZE_MAX),
            .edited_since = sqlite3_column_int(q, 5) != 0,
            .possibly_delivered = sqlite3_column_int(q, 6) != 0,
            .edited_ms = hk_sa_time(q, 7),
            .requeued_ms = hk_sa_time(q, 8),
            .version = hk_sa_u32(q, 10),
            .sealed = hk_encoding_is_sealed(hk_sa_text(store, q, 11, SIZE_MAX)),
        };
        f.erased = hk_str_eq(hk_sa_text(store, q, 11, SIZE_MAX), hk_str_of(HK_ERASED));
        if (!hk_sq_expiry(q, 9, &f.expires_ms))
            f.expires_ms = 0;
    }
    hk_sq_done(q);
    return f;
}

static void refuse(const struct found *f, enum hk_letter_did did, struct hk_letter_done *done)
{
    done->did = f->there ? did : HK_DID_NOT_FIND;
    done->status = f->status;
    done->sending = f->sending && done->did == HK_DID_REFUSE;
}

static void leave_trail(struct hk_sl_trail *trail, int64_t id, const struct found *f, struct hk_str detail)
{
    hk_sl_trail_add(trail, &(struct hk_audit_letter){.letter_id = id,
                                                     .message_id = f->message_id,
                                                     .destination = f->destination,
                                                     .detail = detail});
}

/* ---- requeue ---- */

/* A UUID of version 7, as the table's own default makes them. */
static struct hk_str new_id(struct hk_store *store, int64_t now_ms)
{
    unsigned char b[16];
    char *text = hk_sq_alloc(store, 1, 37);
    if (!text)
        return (struct hk_str){"", 0};
    sqlite3_randomness(sizeof b, b);
    for (int i = 0; i < 6; i++)
        b[i] = (unsigned char)((uint64_t)now_ms >> (40 - 8 * i));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x70);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    (void)snprintf(text, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                   b[15]);
    return (struct hk_str){text, 36};
}

void hk_sl_requeuer_open(struct hk_sl_requeuer *r)
{
    r->read = hk_sa_prepare(r->store, hk_sl_texts[HK_SL_FIND_LETTER]);
    r->insert = hk_sa_prepare(r->store, hk_sl_texts[HK_SL_TO_RETRY]);
    r->update = hk_sa_prepare(r->store, hk_sl_texts[HK_SL_REQUEUE]);
    /* the job that had it before must not take it for arrived */
    r->lose = hk_sa_prepare(r->store, hk_sl_texts[HK_SL_LOSE]);
    r->taken = hk_sa_prepare(r->store, hk_sl_texts[HK_SL_TAKEN]);
}

void hk_sl_requeuer_close(struct hk_sl_requeuer *r)
{
    sqlite3_finalize(r->read);
    sqlite3_finalize(r->insert);
    sqlite3_finalize(r->update);
    sqlite3_finalize(r->lose);
    sqlite3_finalize(r->taken);
}

static bool is_redirected(const struct hk_sl_requeuer *r, const struct found *f)
{
    return r->to.len && !hk_str_eq(r->to, f->destination);
}

/* Has the new destination had the message already, or will it, under this id? A receiver would take one for a repeat of the other. */
static bool is_taken(struct hk_sl_requeuer *r, const struct found *f, struct hk_str as, int64_t id)
{
    if (!is_redirected(r, f))
        return false;
    hk_sq_bind_text(r->store, r->taken, 1, as);
    hk_sq_bind_text(r->store, r->taken, 2, r->to);
    hk_sq_bind_i64(r->store, r->taken, 3, id);
    bool taken = hk_sq_row(r->store, r->taken) && sqlite3_column_int(r->taken, 0) != 0;
    hk_sq_done(r->taken);
    return taken;
}

static void audit_requeue(struct hk_sl_requeuer *r, const struct found *f, int64_t id, struct hk_str as)
{
    struct hk_buf detail;
    struct hk_json json;
    hk_buf_init(&detail, RESOLUTION_MAX);
    hk_json_init(&json, &detail, false);
    hk_json_object(&json);
    hk_json_key(&json, "message_id");
    hk_json_str(&json, as);
    if (is_redirected(r, f)) {
        hk_json_key(&json, "from");
        hk_json_str(&json, f->destination);
        hk_json_key(&json, "to");
        hk_json_str(&json, r->to);
    }
    hk_json_end(&json);
    if (hk_buf_status(&detail) == HK_NOMEM)
        hk_sq_fail(r->store, SQLITE_NOMEM);
    leave_trail(r->trail, id, f, hk_buf_str(&detail));
    hk_buf_fini(&detail);
}

static void crash_inside(const struct hk_sl_requeuer *r)
{
    if (r->redrive)
        hk_crash_point("redrive-inside");
    else
        hk_crash_point("act-inside");
}

static bool needs_new_id(enum hk_requeue_id ids, const struct found *f)
{
    switch (ids) {
    case HK_REQUEUE_AUTO:
        return f->edited_since;
    case HK_REQUEUE_SAME:
        return f->edited_since && f->possibly_delivered;
    case HK_REQUEUE_SAME_ALWAYS:
        return false;
    case HK_REQUEUE_NEW:
        break;
    }
    return true;
}

/* A sealed payload is bound to the message's first id: it has to be known to whoever opens it. */
static struct hk_str id_behind(struct hk_store *store, struct hk_str first, struct hk_str id)
{
    char *text = id.len ? hk_sq_alloc(store, 1, first.len + id.len + 2) : NULL;
    if (!text)
        return (struct hk_str){"", 0};
    memcpy(text, first.ptr, first.len);
    text[first.len] = HK_SEALED_AGAIN;
    memcpy(text + first.len + 1, id.ptr, id.len + 1);
    return (struct hk_str){text, first.len + id.len + 1};
}

/* Under which id, and is that the application's? */
static struct hk_str choose_id(struct hk_sl_requeuer *r, const struct found *f, bool *out_own)
{
    bool anew = needs_new_id(r->ids, f);
    *out_own = !anew && f->requeued_as.len == 0;
    if (anew) {
        struct hk_str id = new_id(r->store, r->now_ms);
        return f->sealed ? id_behind(r->store, f->message_id, id) : id;
    }
    return f->requeued_as.len ? f->requeued_as : f->message_id;
}

void hk_sl_requeue_one(struct hk_sl_requeuer *r, struct hk_letter_done *done)
{
    struct hk_store *store = r->store;
    struct found f = find(store, r->read, done->id);
    if (!f.there || f.status != HK_LETTER_FAILED) {
        refuse(&f, f.status == HK_LETTER_RETRYING && !f.sending ? HK_DID_NOTHING : HK_DID_REFUSE, done);
        done->message_id = f.requeued_as.len ? f.requeued_as : f.message_id;
        return;
    }
    char now[32];
    const struct hk_str none = {0};
    bool own = false;
    struct hk_str as = choose_id(r, &f, &own);
    if (is_taken(r, &f, as, done->id)) {
        refuse(&f, HK_DID_REFUSE, done);
        done->message_id = as;
        return;
    }
    hk_sq_bind_i64(store, r->insert, 1, done->id);
    hk_sq_bind_text(store, r->insert, 2, as);
    hk_sq_bind_i64(store, r->insert, 3, own);
    hk_sq_bind_i64(store, r->insert, 4,
                   f.expires_ms && f.expires_ms <= hk_sq_clock(store)); /* or it expires at once */
    hk_sq_bind_i64(store, r->insert, 5, r->now_ms);
    struct hk_sq_place letter = {HK_SQ_LETTERS, done->id}, retry = {.table = HK_SQ_RETRY};
    int large = hk_sq_large(store, letter);
    hk_sq_bind_i64(store, r->insert, 6, large > 0);
    hk_sq_bind_text_or_null(store, r->insert, 7, r->to);
    hk_sq_run(store, r->insert);
    retry.id = sqlite3_last_insert_rowid(store->db);
    hk_sq_copy_large(store, letter, retry, large);
    crash_inside(r);
    if (r->redrive) {
        hk_sq_bind_i64(store, r->lose, 1, done->id);
        hk_sq_bind_i64(store, r->lose, 2, r->redrive);
        hk_sq_run(store, r->lose);
    }
    hk_sq_bind_i64(store, r->update, 1, done->id);
    /* not before the edit that it carries, whatever the clock does: which of them was later decides about the next id */
    hk_sq_bind_text(store, r->update, 2, hk_sl_time_text(hk_ms_later(r->now_ms, f.edited_ms), now));
    hk_sq_bind_text_or_null(store, r->update, 3, own ? none : as);
    if (r->redrive)
        hk_sq_bind_i64(store, r->update, 4, r->redrive);
    hk_sq_bind_text_or_null(store, r->update, 5, r->to);
    if (large)
        hk_sq_set_aside(store, letter);
    hk_sq_run(store, r->update);
    hk_sq_put_back(store);
    crash_inside(r);
    audit_requeue(r, &f, done->id, as);
    crash_inside(r);
    *done = (struct hk_letter_done){
        .id = done->id, .did = HK_DID_IT, .status = HK_LETTER_RETRYING, .message_id = as};
}

/* ---- edit ---- */

static void bind_payload(struct hk_store *store, sqlite3_stmt *q, int i, struct hk_str payload)
{
    if (hk_utf8_is_text(payload))
        hk_sq_bind_text(store, q, i, payload);
    else if (q && sqlite3_bind_blob64(q, i, payload.ptr, payload.len, SQLITE_STATIC) != SQLITE_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
}

/* What it was, for the trail. */
static void hash_old(struct hk_store *store, int64_t id, char out[HK_AUDIT_HASH_MAX])
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_PAYLOAD], id);
    out[0] = '\0';
    if (hk_sq_row(store, q)) {
        const void *bytes = sqlite3_column_blob(q, 0);
        hk_digest_hex((struct hk_str){bytes, (size_t)sqlite3_column_bytes(q, 0)}, out);
    }
    sqlite3_finalize(q);
}

static void write_edit(struct hk_store *store, const struct hk_letter_edit *edit, const struct found *f,
                       int64_t now_ms)
{
    char edited[32];
    int64_t after_ms = f->requeued_ms ? f->requeued_ms + 1 : INT64_MIN; /* whatever the clock does */
    struct hk_sq_place letter = {HK_SQ_LETTERS, edit->id};
    int large = hk_sq_large(store, letter);
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_KEEP_VERSION], edit->id);
    hk_sq_bind_i64(store, q, 2, now_ms);
    hk_sq_bind_cstr(store, q, 3, edit->actor);
    hk_sq_bind_cstr(store, q, 4, edit->reason);
    hk_sq_bind_i64(store, q, 5, large > 0);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
    struct hk_sq_place version = {HK_SQ_VERSIONS, sqlite3_last_insert_rowid(store->db)};
    hk_sq_copy_large(store, letter, version, large);
    hk_crash_point("edit-inside");
    q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_EDIT], edit->id);
    bind_payload(store, q, 2, edit->payload);
    hk_sq_bind_text(store, q, 3, hk_sl_time_text(hk_ms_later(now_ms, after_ms), edited));
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

static void edit_open(struct hk_store *store, const struct hk_letter_edit *edit, const struct found *f,
                      int64_t now_ms, struct hk_sl_trail *trail)
{
    char before[HK_AUDIT_HASH_MAX], after[HK_AUDIT_HASH_MAX], detail[48];
    hash_old(store, edit->id, before);
    hk_digest_hex(edit->payload, after);
    if (!before[0] || !after[0])
        hk_sq_fail(store, SQLITE_NOMEM);
    (void)snprintf(detail, sizeof detail, "{\"version\":%u}", (unsigned)edit->version + 1);
    hk_crash_point("edit-begun");
    write_edit(store, edit, f, now_ms);
    hk_crash_point("edit-inside");
    hk_sl_trail_add(trail, &(struct hk_audit_letter){.letter_id = edit->id,
                                                     .message_id = f->message_id,
                                                     .destination = f->destination,
                                                     .before = hk_str_of(before),
                                                     .after = hk_str_of(after),
                                                     .detail = hk_str_of(detail)});
}

static enum hk_code check_edit(const struct hk_letter_edit *edit, const struct found *f, struct hk_err *err)
{
    long long id = (long long)edit->id;
    if (!f->there)
        return hk_err_set(err, HK_NOTFOUND, "there is no dead letter %lld", id);
    if (f->status != HK_LETTER_FAILED)
        return hk_err_set(err, HK_CONFLICT, "dead letter %lld is not open any more: it is %s", id,
                          hk_letter_status_name(f->status));
    if (f->version != edit->version)
        return hk_err_set(err, HK_CONFLICT,
                          "somebody else has edited dead letter %lld meanwhile (version %u, you saw %u)", id,
                          (unsigned)f->version, (unsigned)edit->version);
    return HK_OK;
}

enum hk_code hk_sl_edit(struct hk_admin *admin, const struct hk_letter_edit *edit, uint32_t *out_version,
                        struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = hk_sl_begin_act(admin);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_FIND_LETTER]);
    struct found f = find(store, q, edit->id);
    sqlite3_finalize(q);
    struct hk_sl_trail trail = {.store = store,
                                .row = {.at_ms = now_ms,
                                        .actor = hk_str_of(edit->actor),
                                        .act = hk_str_of(edit->act),
                                        .reason = hk_str_of(edit->reason)}};
    if (hk_sq_ok(store)) {
        enum hk_code refused = check_edit(edit, &f, err);
        if (refused != HK_OK) {
            hk_sq_rollback(store);
            return refused;
        }
    }
    edit_open(store, edit, &f, now_ms, &trail);
    hk_crash_point("edit-inside");
    enum hk_code rc = hk_sq_end(store, "edit a dead letter", err);
    hk_crash_point("edit-committed");
    if (rc == HK_OK)
        *out_version = f.version + 1;
    return rc;
}

/* ---- many ---- */

struct actor {
    struct hk_store *store;
    const struct hk_letter_act *act;
    int64_t now_ms;
    struct hk_sl_requeuer *requeuer; /* requeue */
    sqlite3_stmt *find, *update;     /* the others */
    const char *name;                /* in the trail */
    struct hk_sl_trail trail;
    const struct hk_letter_fix *fixes; /* fix: one for each id */
    unsigned from;                     /* statuses that it works on, as bits */
    bool from_sending;                 /* also what is being sent without an outcome */
    enum hk_letter_status to;
    bool strict; /* not even what is so already is left in peace */
    bool remark; /* changes nothing, in any state */
};

static void bind_change(struct actor *a, int64_t id, const char now[32], struct hk_str resolution)
{
    hk_sq_bind_i64(a->store, a->update, 1, id);
    hk_sq_bind_text(a->store, a->update, 2, hk_str_of(now));
    if (a->update && sqlite3_bind_parameter_count(a->update) >= 3)
        hk_sq_bind_text(a->store, a->update, 3, resolution);
}

static void change(struct actor *a, int64_t id)
{
    char now[32];
    struct hk_buf resolution;
    hk_buf_init(&resolution, RESOLUTION_MAX);
    (void)hk_buf_addf(&resolution, "%s: %s", a->act->actor, a->act->reason);
    if (hk_buf_status(&resolution) == HK_NOMEM)
        hk_sq_fail(a->store, SQLITE_NOMEM);
    (void)hk_sl_time_text(a->now_ms, now);
    bind_change(a, id, now, hk_buf_str(&resolution));
    hk_sq_set_aside(a->store, (struct hk_sq_place){HK_SQ_LETTERS, id});
    hk_sq_run(a->store, a->update);
    hk_sq_put_back(a->store);
    hk_buf_fini(&resolution);
}

static void act_on_one(struct actor *a, struct hk_letter_done *done)
{
    struct found f = find(a->store, a->find, done->id);
    bool fits = a->remark || (f.sending ? a->from_sending : (a->from & 1u << f.status) != 0);
    fits = fits && (a->remark || !f.erased);
    if (!f.there || !fits) {
        bool so_already = !a->strict && !f.sending && f.status == a->to;
        refuse(&f, so_already ? HK_DID_NOTHING : HK_DID_REFUSE, done);
        return;
    }
    if (!a->remark)
        change(a, done->id);
    hk_crash_point("act-inside");
    leave_trail(&a->trail, done->id, &f, (struct hk_str){"", 0});
    hk_crash_point("act-inside");
    done->did = HK_DID_IT;
    done->begun_ms = a->now_ms;
    done->status = a->remark ? f.status : a->to;
    done->message_id = f.requeued_as.len ? f.requeued_as : f.message_id;
}

static void fix_one(struct actor *a, const struct hk_letter_fix *fix, struct hk_letter_done *done)
{
    struct found f = find(a->store, a->find, done->id);
    done->version = f.version;
    if (!f.there || f.status != HK_LETTER_FAILED || f.version != fix->version) {
        refuse(&f, HK_DID_REFUSE, done);
        return;
    }
    const struct hk_letter_edit edit = {.id = done->id,
                                        .version = fix->version,
                                        .payload = fix->payload,
                                        .actor = a->act->actor,
                                        .reason = a->act->reason};
    edit_open(a->store, &edit, &f, a->now_ms, &a->trail);
    hk_crash_point("act-inside");
    done->did = HK_DID_IT;
    done->status = f.status;
    done->version = fix->version + 1;
}

struct turn {
    int64_t id;
    size_t at;
};

static int by_id(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* In the order of ids, whatever order they were named in. */
static void act_on_all(struct actor *a, struct hk_letters_done *out)
{
    size_t n = a->act->n;
    struct turn *turns = hk_sq_alloc(a->store, n + 1, sizeof *turns);
    out->items = hk_sq_alloc(a->store, n + 1, sizeof *out->items);
    if (!turns || !out->items)
        return;
    for (size_t i = 0; i < n; i++)
        turns[i] = (struct turn){a->act->ids[i], i};
    qsort(turns, n, sizeof *turns, by_id);
    for (size_t i = 0; i < n && hk_sq_ok(a->store); i++) {
        struct hk_letter_done *done = &out->items[turns[i].at];
        *done = (struct hk_letter_done){.id = turns[i].id, .message_id = {"", 0}};
        if (a->requeuer)
            hk_sl_requeue_one(a->requeuer, done);
        else if (a->fixes)
            fix_one(a, &a->fixes[turns[i].at], done);
        else
            act_on_one(a, done);
        out->changed += done->did == HK_DID_IT;
    }
    out->n = n;
    out->act_id = hk_sl_trail_end(&a->trail);
}

static enum hk_code run(struct hk_admin *admin, struct actor *a, const char *sql, const char *doing,
                        const struct hk_letters_done **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    if (a->act->n > HK_LETTER_ACTS_MAX)
        return hk_err_set(err, HK_INVALID, "at most %d dead letters at a time", HK_LETTER_ACTS_MAX);
    a->store = store;
    a->now_ms = hk_sl_begin_act(admin);
    a->trail.store = store;
    a->trail.row = (struct hk_audit_row){.at_ms = a->now_ms,
                                         .actor = hk_str_of(a->act->actor),
                                         .act = hk_str_of(a->name),
                                         .reason = hk_str_of(a->act->reason)};
    hk_sl_trail_begin(&a->trail, a->act);
    hk_crash_point("act-begun");
    struct hk_letters_done *done = hk_sq_alloc(store, 1, sizeof *done);
    a->find = hk_sa_prepare(store, hk_sl_texts[HK_SL_FIND_LETTER]);
    a->update = sql ? hk_sa_prepare(store, sql) : NULL;
    if (a->requeuer) {
        a->requeuer->store = store;
        a->requeuer->now_ms = a->now_ms;
        a->requeuer->trail = &a->trail;
        hk_sl_requeuer_open(a->requeuer);
    }
    if (done) {
        done->now_ms = a->now_ms;
        act_on_all(a, done);
    }
    if (a->requeuer)
        hk_sl_requeuer_close(a->requeuer);
    sqlite3_finalize(a->find);
    sqlite3_finalize(a->update);
    enum hk_code rc = hk_sq_end(store, doing, err);
    hk_crash_point("act-committed");
    if (rc == HK_OK)
        *out = done;
    return rc;
}

enum hk_code hk_sl_requeue(struct hk_admin *admin, const struct hk_letter_act *act, enum hk_requeue_id ids,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    struct hk_sl_requeuer requeuer = {.ids = ids, .to = hk_str_of(act->to)};
    struct actor a = {.act = act, .name = "requeue", .requeuer = &requeuer};
    return run(admin, &a, NULL, "requeue dead letters", out, err);
}

enum hk_code hk_sl_resolve(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    struct actor a = {.act = act,
                      .name = "resolve",
                      .from = 1u << HK_LETTER_FAILED,
                      .from_sending = true,
                      .to = HK_LETTER_RESOLVED};
    return run(admin, &a, hk_sl_texts[HK_SL_RESOLVE], "resolve dead letters", out, err);
}

enum hk_code hk_sl_discard(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    struct actor a = {
        .act = act, .name = "discard", .from = 1u << HK_LETTER_FAILED, .to = HK_LETTER_DISCARDED};
    return run(admin, &a, hk_sl_texts[HK_SL_DISCARD], "discard dead letters", out, err);
}

enum hk_code hk_sl_restore(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    struct actor a = {.act = act,
                      .name = "restore",
                      .from = 1u << HK_LETTER_DISCARDED,
                      .from_sending = true,
                      .to = HK_LETTER_FAILED};
    return run(admin, &a, hk_sl_texts[HK_SL_RESTORE], "restore dead letters", out, err);
}

enum hk_code hk_sl_remark(struct hk_admin *admin, const struct hk_letter_act *act, const char *what,
                          const struct hk_letters_done **out, struct hk_err *err)
{
    struct actor a = {.act = act, .name = what, .remark = true};
    return run(admin, &a, NULL, "add to the trail", out, err);
}

/* The attempt is on record before it is made. */
enum hk_code hk_sl_send_begin(struct hk_admin *admin, const struct hk_letter_act *act,
                              const struct hk_letters_done **out, struct hk_err *err)
{
    struct actor a = {
        .act = act, .name = "send", .from = 1u << HK_LETTER_FAILED, .to = HK_LETTER_RETRYING, .strict = true};
    if (act->n != 1)
        return hk_err_set(err, HK_INVALID, "dead letters are sent by hand one by one");
    return run(admin, &a, hk_sl_texts[HK_SL_SEND_BEGIN], "begin to send a dead letter", out, err);
}

enum hk_code hk_sl_fix(struct hk_admin *admin, const struct hk_letter_act *act,
                       const struct hk_letter_fix *fixes, const struct hk_letters_done **out,
                       struct hk_err *err)
{
    struct actor a = {.act = act, .name = "fix", .fixes = fixes};
    return run(admin, &a, NULL, "fix dead letters", out, err);
}
