/* SPDX-License-Identifier: Apache-2.0 */
/* How a send by hand ended. The attempt is recorded in any case; the letter is settled only if nobody has decided
 * meanwhile. */
#include "base/str.h"
#include "observe/crash.h"
#include "store/detail.h"
#include "store/sqlite/letters.h"

/* A letter while it is being sent. */
struct sending {
    struct hk_store *store;
    int64_t id, begun_ms, now_ms;
    const struct hk_attempt_record *attempt;
    bool ok;
    /* as found */
    bool there, under_way;
    struct hk_str message_id, destination, as;
    uint32_t life, attempts;
};

static void find(struct sending *s)
{
    char begun[32];
    sqlite3_stmt *q = hk_sl_prepare_for(s->store, hk_sl_texts[HK_SL_SEND_FIND], s->id);
    hk_sq_bind_text(s->store, q, 2, hk_sl_time_text(s->begun_ms, begun));
    s->there = hk_sq_row(s->store, q);
    if (s->there) {
        s->under_way = sqlite3_column_int(q, 0) != 0;
        s->message_id = hk_sa_text(s->store, q, 1, SIZE_MAX);
        s->destination = hk_sa_text(s->store, q, 2, SIZE_MAX);
        s->as = hk_sa_text(s->store, q, 3, SIZE_MAX);
        s->life = hk_sa_u32(q, 4);
        s->attempts = hk_sa_u32(q, 5);
    }
    sqlite3_finalize(q);
}

/* Whatever the history keeps of relays' attempts: a person has made this one. */
static void add_attempt(struct sending *s)
{
    struct hk_store *store = s->store;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_ADD_ATTEMPT]);
    hk_sq_bind_text(store, q, 1, s->as);
    hk_sq_bind_text(store, q, 2, s->destination);
    hk_sq_bind_i64(store, q, 3, s->life);
    hk_sq_bind_i64(store, q, 4, (int64_t)s->attempts + 1);
    hk_sq_bind_attempt(store, q, 5, s->attempt, s->now_ms);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

static void bind_common(struct sending *s, sqlite3_stmt *q, char now[32], char started[32])
{
    hk_sq_bind_text(s->store, q, 2, hk_sl_time_text(s->now_ms, now));
    hk_sq_bind_text(s->store, q, 3, hk_sl_time_text(s->attempt->started_ms, started));
}

static void resolve(struct sending *s)
{
    char now[32], started[32];
    sqlite3_stmt *q = hk_sl_prepare_for(s->store, hk_sl_texts[HK_SL_SENT], s->id);
    bind_common(s, q, now, started);
    hk_sq_run(s->store, q);
    sqlite3_finalize(q);
}

/* Open again, with what it died of this time. */
static void reopen(struct sending *s)
{
    struct hk_store *store = s->store;
    const struct hk_attempt_record *a = s->attempt;
    struct hk_str reason = a->cause.len ? a->cause : hk_str_of("UNKNOWN");
    char now[32], started[32], print[HK_FINGERPRINT_MAX];
    hk_fingerprint(a->failure_class, reason, s->destination, a->error, print);
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_SEND_FAILED], s->id);
    bind_common(s, q, now, started);
    hk_sq_bind_text(store, q, 4, reason);
    hk_sq_bind_text_or_null(store, q, 5, a->error);
    hk_sq_bind_cstr(store, q, 6, hk_class_name(a->failure_class));
    hk_sq_bind_cstr(store, q, 7, hk_blame_name(hk_blame_of(reason, a->cause, a->status)));
    hk_sq_bind_cstr(store, q, 8, print);
    hk_sq_bind_i64(store, q, 9, a->possibly_delivered);
    struct hk_buf detail;
    hk_buf_init(&detail, HK_DETAIL_BYTES);
    hk_store_detail(&detail, a);
    enum hk_code status = hk_buf_status(&detail);
    if (status == HK_NOMEM)
        hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_bind_text_or_null(store, q, 10, status == HK_OK ? hk_buf_str(&detail) : (struct hk_str){0});
    hk_sq_run(store, q);
    sqlite3_finalize(q);
    hk_buf_fini(&detail);
}

/* Somebody has decided: it stays so, but what may have arrived may have arrived. */
static void come_late(struct sending *s)
{
    if (!s->ok && !s->attempt->possibly_delivered)
        return;
    sqlite3_stmt *q = hk_sl_prepare_for(s->store, hk_sl_texts[HK_SL_SEND_LATE], s->id);
    hk_sq_run(s->store, q);
    sqlite3_finalize(q);
}

static void settle(struct sending *s, const char *actor)
{
    char detail[64];
    const struct hk_str late = hk_str_of("too late: somebody had decided meanwhile");
    hk_crash_point("outcome-begun");
    add_attempt(s);
    hk_crash_point("outcome-inside");
    hk_sq_set_aside(s->store, (struct hk_sq_place){HK_SQ_LETTERS, s->id});
    if (!s->under_way)
        come_late(s);
    else if (s->ok)
        resolve(s);
    else
        reopen(s);
    hk_sq_put_back(s->store);
    hk_crash_point("outcome-inside");
    (void)snprintf(detail, sizeof detail, "{\"status\":%d%s}", s->attempt->status,
                   s->under_way ? "" : ",\"late\":true");
    hk_sq_audit(s->store, &(struct hk_audit_row){.at_ms = s->now_ms,
                                                 .actor = hk_str_of(actor),
                                                 .act = hk_str_of(s->ok ? "sent" : "send-failed"),
                                                 .message_id = s->message_id,
                                                 .destination = s->destination,
                                                 .reason = s->under_way ? s->attempt->error : late,
                                                 .letter_id = s->id,
                                                 .detail = hk_str_of(detail)});
}

enum hk_code hk_sl_send_end(struct hk_admin *admin, int64_t id, int64_t begun_ms, const char *actor,
                            const struct hk_attempt_record *attempt, bool ok, struct hk_err *err)
{
    struct sending s = {.store = admin->store, .id = id, .begun_ms = begun_ms, .attempt = attempt, .ok = ok};
    s.now_ms = hk_sl_begin_act(admin);
    find(&s);
    if (!s.there && hk_sq_ok(s.store)) {
        hk_sq_rollback(s.store);
        return hk_err_set(err, HK_NOTFOUND, "there is no dead letter %lld", (long long)id);
    }
    settle(&s, actor);
    hk_crash_point("outcome-inside");
    enum hk_code rc = hk_sq_end(s.store, "record how a dead letter was sent", err);
    hk_crash_point("outcome-committed");
    if (rc == HK_OK && !s.under_way)
        rc = hk_err_set(err, HK_CONFLICT,
                        "somebody has changed dead letter %lld meanwhile: the attempt is on record, and the "
                        "letter stays as it is",
                        (long long)id);
    return rc;
}
