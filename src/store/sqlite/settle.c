/* SPDX-License-Identifier: Apache-2.0 */
/* One settle, by kind. The fence was passed (exchange.c); a row of outbox that leaves is copied here and deleted
 * by the caller, with its neighbours. A row that an operator deleted by hand in the meantime is copied nowhere. */
#include "base/parse.h"
#include "base/str.h"
#include "core/letter.h"
#include "observe/crash.h"
#include "store/detail.h"
#include "store/sqlite/sqlite.h"

/* ---- attempts ---- */

static bool wants_attempt(const struct hk_store *store, const struct hk_attempt_record *attempt)
{
    if (!attempt->made)
        return false;
    switch (store->options.history) {
    case HK_STORE_HISTORY_ALL:
        return true;
    case HK_STORE_HISTORY_FAILURES:
        return attempt->failure_class != HK_CLASS_SUCCESS;
    case HK_STORE_HISTORY_NONE:
        return false;
    }
    return false;
}

void hk_sq_bind_attempt(struct hk_store *store, sqlite3_stmt *q, int at, const struct hk_attempt_record *a,
                        int64_t now_ms)
{
    hk_sq_bind_i64(store, q, at, a->started_ms);
    hk_sq_bind_u64(store, q, at + 1, a->duration_ms);
    hk_sq_bind_i64(store, q, at + 2, now_ms);
    hk_sq_bind_i64(store, q, at + 3, a->status);
    hk_sq_bind_cstr(store, q, at + 4, hk_class_name(a->failure_class));
    hk_sq_bind_text_or_null(store, q, at + 5, a->cause);
    hk_sq_bind_text_or_null(store, q, at + 6, a->error);
    hk_sq_bind_text_or_null(store, q, at + 7, a->request_headers);
    hk_sq_bind_text_or_null(store, q, at + 8, a->response_headers);
    hk_sq_bind_bytes_or_null(store, q, at + 9, a->response_body);
    hk_sq_bind_text_or_null(store, q, at + 10, a->address);
    hk_sq_bind_i64(store, q, at + 11, a->possibly_delivered);
}

static void add_attempt(struct hk_store *store, const struct hk_settle *s, int64_t now_ms)
{
    const struct hk_attempt_record *a = &s->attempt;
    if (!wants_attempt(store, a))
        return;
    sqlite3_stmt *q =
        hk_sq_use(store, s->source == HK_FROM_OUTBOX ? HK_SQ_ADD_ATTEMPT : HK_SQ_ADD_ATTEMPT_RETRY);
    hk_sq_bind_i64(store, q, 1, s->id);
    hk_sq_bind_text(store, q, 2, s->destination);
    hk_sq_bind_i64(store, q, 3, s->history.attempts);
    hk_sq_bind_attempt(store, q, 4, a, now_ms);
    hk_sq_run(store, q);
}

/* ---- into outbox_retry ---- */

static void bind_past(struct hk_store *store, sqlite3_stmt *q, const struct hk_settle *s, int64_t now_ms)
{
    const struct hk_history *h = &s->history;
    hk_sq_bind_i64(store, q, 7, h->attempts);
    hk_sq_bind_i64(store, q, 8, h->charged);
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        hk_sq_bind_i64(store, q, 9 + c - HK_CLASS_TRANSIENT, h->failures[c]);
    hk_sq_bind_u64(store, q, 14, h->prev_wait_ms);
    hk_sq_bind_i64(store, q, 15, h->first_attempt_ms);
    hk_sq_bind_i64(store, q, 16, now_ms);
    hk_sq_bind_i64(store, q, 17, s->first_failed_ms);
    hk_sq_bind_i64(store, q, 18, s->attempt.made ? s->attempt.started_ms : 0);
    hk_sq_bind_text_or_null(store, q, 19, s->attempt.cause);
    hk_sq_bind_text_or_null(store, q, 20, s->attempt.error);
    hk_sq_bind_i64(store, q, 21, s->attempt.possibly_delivered);
}

/* The time that the application asked for; one that does not parse is as good as none here. */
static int64_t not_before(struct hk_store *store, int64_t id)
{
    int64_t ms = 0;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_NOT_BEFORE);
    hk_sq_bind_i64(store, q, 1, id);
    if (hk_sq_row(store, q) && !hk_sq_time(q, 0, &ms))
        ms = 0;
    hk_sq_done(q);
    return ms;
}

/* Where to, and when. */
struct move {
    struct hk_str destination;
    int64_t due_ms;
    bool deferred;
    int crashes;
};

static struct hk_sq_place place_of(const struct hk_settle *s)
{
    return (struct hk_sq_place){s->source == HK_FROM_OUTBOX ? HK_SQ_OUTBOX : HK_SQ_RETRY, s->id};
}

/* A message that was sent was small enough to be loaded; of the others nobody knows yet. */
static int is_large(struct hk_store *store, const struct hk_settle *s)
{
    return s->attempt.made ? 0 : hk_sq_large(store, place_of(s));
}

/* Into the row that was just inserted. */
static void copy_large(struct hk_store *store, const struct hk_settle *s, enum hk_sq_table table, int large)
{
    struct hk_sq_place to = {table, sqlite3_last_insert_rowid(store->db)};
    hk_sq_copy_large(store, place_of(s), to, large);
}

static void move(struct hk_store *store, const struct hk_settle *s, struct move to, int64_t now_ms)
{
    int large = is_large(store, s);
    int64_t earliest_ms = not_before(store, s->id);
    /* not_before goes by the clock, a wait by the store's time, which may be ahead of the clock. The later of the two counts. One
     * whose time has come is tried in its time, also where its relay had not heard of a jump and names a due time that is past. */
    int64_t behind_ms = (int64_t)hk_sq_behind(store, now_ms);
    bool ahead = earliest_ms > now_ms - behind_ms && earliest_ms > to.due_ms - behind_ms;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_MOVE);
    hk_sq_bind_i64(store, q, 1, s->id);
    hk_sq_bind_text(store, q, 2, to.destination);
    hk_sq_bind_i64(store, q, 3, ahead ? earliest_ms : to.due_ms);
    hk_sq_bind_i64(store, q, 4, to.deferred || ahead);
    hk_sq_bind_i64(store, q, 5, to.crashes);
    hk_sq_bind_i64(store, q, 6, large > 0);
    bind_past(store, q, s, now_ms);
    int moved = hk_sq_run(store, q);
    hk_sq_must_change(store, moved, HK_FROM_OUTBOX, s->id, "outbox_retry");
    if (moved > 0)
        copy_large(store, s, HK_SQ_RETRY, large);
}

void hk_sq_orphan(struct hk_store *store, int64_t id, int64_t now_ms)
{
    struct hk_settle nothing = {.id = id, .attempt.possibly_delivered = true};
    move(store, &nothing, (struct move){.due_ms = now_ms, .crashes = 1}, now_ms);
    hk_sq_drop_range(store, id, id);
}

static void update_retry(struct hk_store *store, enum hk_sq_id statement, const struct hk_settle *s,
                         int64_t now_ms)
{
    if (!s->attempt.made)
        hk_sq_set_aside(store, place_of(s));
    sqlite3_stmt *q = hk_sq_use(store, statement);
    hk_sq_bind_i64(store, q, 1, s->id);
    hk_sq_bind_text(store, q, 2, s->destination);
    hk_sq_bind_i64(store, q, 3, s->due_ms);
    hk_sq_bind_i64(store, q, 6, s->attempt.made);
    bind_past(store, q, s, now_ms);
    hk_sq_must_change(store, hk_sq_run(store, q), HK_FROM_RETRY, s->id, "outbox_retry");
    hk_sq_put_back(store);
}

static void run_on_retry(struct hk_store *store, enum hk_sq_id statement, int64_t id)
{
    sqlite3_stmt *q = hk_sq_use(store, statement);
    hk_sq_bind_i64(store, q, 1, id);
    hk_sq_must_change(store, hk_sq_run(store, q), HK_FROM_RETRY, id, "outbox_retry");
}

static void release_retry(struct hk_store *store, const struct hk_settle *s)
{
    hk_sq_set_aside(store, place_of(s));
    run_on_retry(store, HK_SQ_RELEASE_RETRY, s->id);
    hk_sq_put_back(store);
}

static void fan_out(struct hk_store *store, const struct hk_settle *s, int64_t now_ms)
{
    int large = s->source == HK_FROM_RETRY ? is_large(store, s) : 0;
    for (size_t i = 0; i < s->n_fan_out; i++) {
        if (s->source == HK_FROM_OUTBOX) {
            move(store, s, (struct move){.destination = s->fan_out[i], .due_ms = now_ms}, now_ms);
            continue;
        }
        sqlite3_stmt *q = hk_sq_use(store, HK_SQ_COPY_RETRY);
        hk_sq_bind_i64(store, q, 1, s->id);
        hk_sq_bind_text(store, q, 2, s->fan_out[i]);
        hk_sq_bind_i64(store, q, 3, now_ms);
        hk_sq_bind_i64(store, q, 4, large > 0);
        int copied = hk_sq_run(store, q);
        hk_sq_must_change(store, copied, HK_FROM_RETRY, s->id, "outbox_retry");
        if (copied > 0)
            copy_large(store, s, HK_SQ_RETRY, large);
    }
    if (s->source == HK_FROM_RETRY)
        run_on_retry(store, HK_SQ_DROP_RETRY, s->id);
}

/* ---- into dead_letters ---- */

static struct hk_str time_text(int64_t ms, char out[HK_TIME_TEXT_MAX])
{
    return (struct hk_str){out, hk_format_rfc3339(ms, out)};
}

/* Why it died, in a form that puts those which failed alike together. */
static void bind_cause(struct hk_store *store, sqlite3_stmt *q, const struct hk_settle *s,
                       char print[HK_FINGERPRINT_MAX])
{
    const struct hk_attempt_record *a = &s->attempt;
    hk_fingerprint(a->made ? a->failure_class : HK_CLASS_SUCCESS, s->reason, s->destination, a->error, print);
    hk_sq_bind_text_or_null(store, q, 10, hk_str_of(a->made ? hk_class_name(a->failure_class) : ""));
    hk_sq_bind_cstr(store, q, 11, hk_blame_name(hk_blame_of(s->reason, a->cause, a->status)));
    hk_sq_bind_text(store, q, 12, (struct hk_str){print, HK_FINGERPRINT_MAX - 1});
    hk_sq_bind_i64(store, q, 13, a->possibly_delivered);
}

static int write_letter(struct hk_store *store, enum hk_sq_id statement, const struct hk_settle *s,
                        struct hk_str detail, bool large, int64_t now_ms)
{
    char print[HK_FINGERPRINT_MAX];
    char first[HK_TIME_TEXT_MAX], last[HK_TIME_TEXT_MAX], attempt[HK_TIME_TEXT_MAX];
    sqlite3_stmt *q = hk_sq_use(store, statement);
    hk_sq_bind_i64(store, q, 1, s->id);
    hk_sq_bind_text(store, q, 2, s->destination);
    hk_sq_bind_text(store, q, 3, s->reason);
    hk_sq_bind_text_or_null(store, q, 4, s->attempt.error);
    hk_sq_bind_text_or_null(store, q, 5, detail);
    hk_sq_bind_i64(store, q, 6, s->history.attempts);
    hk_sq_bind_text(store, q, 7, time_text(s->first_failed_ms > 0 ? s->first_failed_ms : now_ms, first));
    hk_sq_bind_text(store, q, 8, time_text(now_ms, last));
    hk_sq_bind_text_or_null(store, q, 9,
                            s->attempt.made ? time_text(s->attempt.started_ms, attempt) : (struct hk_str){0});
    bind_cause(store, q, s, print);
    hk_sq_bind_i64(store, q, 14, large);
    return hk_sq_run(store, q);
}

static int add_letter(struct hk_store *store, const struct hk_settle *s, struct hk_str detail, int large,
                      int64_t now_ms)
{
    enum hk_sq_id statement = s->source == HK_FROM_OUTBOX ? HK_SQ_ADD_LETTER : HK_SQ_ADD_LETTER_RETRY;
    int letters = write_letter(store, statement, s, detail, large > 0, now_ms);
    if (letters > 0)
        copy_large(store, s, HK_SQ_LETTERS, large);
    return letters;
}

/* The letter that a message of outbox_retry was requeued from; 0: none. */
static int64_t letter_of(struct hk_store *store, enum hk_sq_id statement, int64_t id)
{
    sqlite3_stmt *q = hk_sq_use(store, statement);
    hk_sq_bind_i64(store, q, 1, id);
    int64_t letter = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    hk_sq_done(q);
    return letter;
}

static int reopen_letter(struct hk_store *store, const struct hk_settle *s, struct hk_str detail, int large,
                         int64_t now_ms)
{
    struct hk_sq_place letter = {HK_SQ_LETTERS, letter_of(store, HK_SQ_REOPENS, s->id)};
    if (!letter.id)
        return 0;
    if (large)
        hk_sq_clear_large(store, letter);
    int letters = write_letter(store, HK_SQ_REOPEN_LETTER, s, detail, large > 0, now_ms);
    if (letters > 0)
        hk_sq_copy_large(store, place_of(s), letter, large);
    return letters;
}

/* A requeued message dies into the letter that it came from, unless somebody deleted that, or another of its fan-out has
 * died into it. */
static void bury(struct hk_store *store, const struct hk_settle *s, int64_t now_ms)
{
    struct hk_buf detail;
    hk_buf_init(&detail, HK_DETAIL_BYTES);
    hk_store_detail(&detail, &s->attempt);
    enum hk_code status = hk_buf_status(&detail);
    if (status == HK_NOMEM)
        hk_sq_fail(store, SQLITE_NOMEM);
    struct hk_str text = status == HK_OK ? hk_buf_str(&detail) : (struct hk_str){0};
    int large = is_large(store, s);

    hk_crash_point("bury-begun");
    if (s->source == HK_FROM_OUTBOX) {
        int letters = add_letter(store, s, text, large, now_ms);
        hk_sq_must_change(store, letters, s->source, s->id, "dead_letters");
    } else {
        int letters = reopen_letter(store, s, text, large, now_ms);
        if (!letters)
            letters = add_letter(store, s, text, large, now_ms);
        hk_sq_must_change(store, letters, s->source, s->id, "dead_letters");
        hk_crash_point("bury-inside");
        run_on_retry(store, HK_SQ_DROP_RETRY, s->id);
    }
    hk_crash_point("bury-inside");
    hk_buf_fini(&detail);
}

/* ---- sent ---- */

void hk_sq_keep_sent(struct hk_store *store, const struct hk_settle *s, int64_t last_id, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sq_use(store, s->source == HK_FROM_OUTBOX ? HK_SQ_KEEP_SENT : HK_SQ_KEEP_SENT_RETRY);
    hk_sq_bind_i64(store, q, 1, s->id);
    hk_sq_bind_text(store, q, 2, s->destination);
    hk_sq_bind_i64(store, q, 3, s->history.attempts);
    hk_sq_bind_i64(store, q, 4, s->attempt.status);
    hk_sq_bind_i64(store, q, 5, now_ms);
    hk_sq_bind_i64(store, q, 6, last_id);
    hk_sq_run(store, q);
}

/* A row of outbox is kept and deleted by the caller, in runs. */
static void sent(struct hk_store *store, const struct hk_settle *s, int64_t now_ms)
{
    if (s->source == HK_FROM_OUTBOX)
        return;
    hk_crash_point("arrive-begun");
    if (store->options.keep_sent)
        hk_sq_keep_sent(store, s, s->id, now_ms);
    hk_crash_point("arrive-inside");
    if (letter_of(store, HK_SQ_RETRY_LETTER, s->id)) {
        char now[HK_TIME_TEXT_MAX];
        sqlite3_stmt *q = hk_sq_use(store, HK_SQ_RESOLVE_LETTER);
        hk_sq_bind_i64(store, q, 1, s->id);
        hk_sq_bind_text(store, q, 2, time_text(now_ms, now));
        hk_sq_run(store, q);
    }
    hk_crash_point("arrive-inside");
    run_on_retry(store, HK_SQ_DROP_RETRY, s->id);
    hk_crash_point("arrive-inside");
}

void hk_sq_settle(struct hk_store *store, const struct hk_settle *s, int64_t now_ms)
{
    bool fresh = s->source == HK_FROM_OUTBOX;
    add_attempt(store, s, now_ms);
    switch (s->kind) {
    case HK_SETTLE_SENT:
        sent(store, s, now_ms);
        break;
    case HK_SETTLE_RETRY:
        if (fresh)
            move(store, s, (struct move){.destination = s->destination, .due_ms = s->due_ms}, now_ms);
        else
            update_retry(store, HK_SQ_UPDATE_RETRY, s, now_ms);
        break;
    case HK_SETTLE_DEAD:
        bury(store, s, now_ms);
        break;
    case HK_SETTLE_RELEASE:
        if (!fresh) /* of outbox: the manifest is written again without it */
            release_retry(store, s);
        break;
    case HK_SETTLE_DEFER:
        if (fresh)
            move(store, s,
                 (struct move){.destination = s->destination, .due_ms = s->due_ms, .deferred = true}, now_ms);
        else
            update_retry(store, HK_SQ_DEFER_RETRY, s, now_ms);
        break;
    case HK_SETTLE_FAN_OUT:
        fan_out(store, s, now_ms);
        break;
    }
}
