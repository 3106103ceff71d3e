/* SPDX-License-Identifier: Apache-2.0 */
/* Redrive jobs. A job is its row; a step is one transaction that reads it, counts what became of its letters, asks
 * core/redrive.c, and does what that says. Its cost is in the letters that are on their way or dead again, not in those that
 * have arrived: what arrived is what is left. */
#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "observe/crash.h"
#include "store/sqlite/letters.h"

/* Rows that a step looks at under the write lock: some milliseconds. */
static const struct hk_sl_bound step_bound = {10000, UINT64_C(8) * 1024 * 1024};

#define JOBS_MAX   100
#define ENDING_MAX ((size_t)64 * 1024)
#define DETAIL_MAX ((size_t)512 * 1024)

static const char *const id_names[] = {[HK_REQUEUE_AUTO] = "auto",
                                       [HK_REQUEUE_SAME] = "same",
                                       [HK_REQUEUE_NEW] = "new",
                                       [HK_REQUEUE_SAME_ALWAYS] = "same"};

/* ---- the row ---- */

static uint64_t count_at(sqlite3_stmt *q, int column)
{
    int64_t value = sqlite3_column_int64(q, column);
    return value < 0 ? 0 : (uint64_t)value;
}

static enum hk_redrive_status status_at(sqlite3_stmt *q, int column)
{
    const char *name = (const char *)sqlite3_column_text(q, column);
    for (int s = 0; s < HK_NREDRIVE_STATUSES; s++)
        if (hk_str_eq(hk_str_of(name), hk_str_of(hk_redrive_status_name((enum hk_redrive_status)s))))
            return (enum hk_redrive_status)s;
    return HK_REDRIVE_CANCELLED;
}

static enum hk_requeue_id ids_at(sqlite3_stmt *q, int column)
{
    const char *name = (const char *)sqlite3_column_text(q, column);
    for (int i = HK_REQUEUE_AUTO; i <= HK_REQUEUE_NEW; i++)
        if (hk_str_eq(hk_str_of(name), hk_str_of(id_names[i])))
            return (enum hk_requeue_id)i;
    return HK_REQUEUE_AUTO;
}

static void read_job(struct hk_store *store, sqlite3_stmt *q, struct hk_redrive_job *out)
{
    *out = (struct hk_redrive_job){
        .id = sqlite3_column_int64(q, 0),
        .status = status_at(q, 1),
        .filter = hk_sa_text(store, q, 2, HK_SA_TEXT_MAX),
        .pace = {.rate_per_s = sqlite3_column_double(q, 3),
                 .ramp_ms = count_at(q, 4),
                 .canary = hk_sa_u32(q, 5),
                 .abort_ratio = sqlite3_column_double(q, 6)},
        .ids = ids_at(q, 7),
        .last_id = sqlite3_column_int64(q, 8),
        .cursor_id = sqlite3_column_int64(q, 9),
        .facts = {.total = count_at(q, 10),
                  .requeued = count_at(q, 11),
                  .exhausted = sqlite3_column_int(q, 12) != 0,
                  .tokens = sqlite3_column_double(q, 13),
                  .tokens_ms = sqlite3_column_int64(q, 14),
                  .started_ms = sqlite3_column_int64(q, 15)},
        .created_ms = sqlite3_column_int64(q, 16),
        .ended_ms = sqlite3_column_int64(q, 17),
        .actor = hk_sa_text(store, q, 18, HK_SA_TEXT_MAX),
        .reason = hk_sa_text(store, q, 19, HK_SA_TEXT_MAX),
        .ending = hk_sa_text(store, q, 20, HK_SA_TEXT_MAX),
        .held = hk_sa_text(store, q, 21, HK_SA_TEXT_MAX),
        .to = hk_sa_text(store, q, 22, HK_SA_TEXT_MAX),
    };
}

static uint64_t count(struct hk_store *store, const char *sql, int64_t id)
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, sql, id);
    uint64_t n = hk_sq_row(store, q) ? count_at(q, 0) : 0;
    sqlite3_finalize(q);
    return n;
}

/* Not on its way, and not dead again: it has arrived, and retention may have taken it since. */
static void count_fates(struct hk_store *store, struct hk_redrive_job *job)
{
    struct hk_redrive_facts *f = &job->facts;
    if (!f->requeued)
        return;
    uint64_t waiting = count(store, hk_sl_texts[HK_SL_JOB_WAITING], job->id);
    f->failed = count(store, hk_sl_texts[HK_SL_JOB_FAILED], job->id) +
                count(store, hk_sl_texts[HK_SL_JOB_LOST], job->id);
    f->resolved = f->requeued > waiting + f->failed ? f->requeued - waiting - f->failed : 0;
    f->struggling = count(store, hk_sl_texts[HK_SL_JOB_STRUGGLING], job->id);
}

static bool find_job(struct hk_store *store, int64_t id, struct hk_redrive_job *out)
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_JOB], id);
    bool found = hk_sq_row(store, q);
    if (found)
        read_job(store, q, out);
    sqlite3_finalize(q);
    return found;
}

static enum hk_code no_such_job(int64_t id, struct hk_err *err)
{
    return hk_err_set(err, HK_NOTFOUND, "there is no redrive %lld", (long long)id);
}

/* ---- start, list ---- */

static int64_t last_letter(struct hk_store *store)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_LAST_ID]);
    int64_t id = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return id;
}

static void bind_double(struct hk_store *store, sqlite3_stmt *q, int i, double value)
{
    if (q && sqlite3_bind_double(q, i, value) != SQLITE_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
}

static int64_t insert_job(struct hk_store *store, const struct hk_redrive_job *job, int64_t last_id,
                          uint64_t total, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_JOB_START]);
    hk_sq_bind_text(store, q, 1, job->filter);
    bind_double(store, q, 2, job->pace.rate_per_s);
    hk_sq_bind_u64(store, q, 3, job->pace.ramp_ms);
    hk_sq_bind_i64(store, q, 4, job->pace.canary);
    bind_double(store, q, 5, job->pace.abort_ratio);
    hk_sq_bind_cstr(store, q, 6, id_names[job->ids]);
    hk_sq_bind_i64(store, q, 7, last_id);
    hk_sq_bind_u64(store, q, 8, total);
    hk_sq_bind_i64(store, q, 9, now_ms);
    hk_sq_bind_text(store, q, 10, job->actor);
    hk_sq_bind_text(store, q, 11, job->reason);
    hk_sq_bind_text_or_null(store, q, 12, job->to);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
    return sqlite3_last_insert_rowid(store->db);
}

/* What a job may requeue, of what its filter means: `statuses` is 0 when that is nothing. */
static struct hk_letter_query open_ones(const struct hk_letter_query *query, int64_t last_id)
{
    struct hk_letter_query open = *query;
    open.statuses = (query->statuses ? query->statuses : ~0u) & 1u << HK_LETTER_FAILED;
    if (!open.last_id || open.last_id > last_id)
        open.last_id = last_id;
    return open;
}

/* Counted before the lock is taken: it may take a while, and is a figure for people. */
static enum hk_code count_before(struct hk_store *store, const struct hk_letter_query *query,
                                 uint64_t *out_total, struct hk_err *err)
{
    hk_sq_begin_read(store);
    int64_t last_id = last_letter(store);
    struct hk_letter_query open = open_ones(query, last_id);
    if (last_id && open.statuses)
        *out_total = hk_sl_count_in(store, &open).n;
    return hk_sq_end(store, "count dead letters", err);
}

/* Of two people who start the same one the second is told. */
static int64_t running_twin(struct hk_store *store, struct hk_str filter)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_JOB_TWIN]);
    hk_sq_bind_text(store, q, 1, filter);
    int64_t id = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return id;
}

static int64_t write_start(struct hk_store *store, const struct hk_redrive_job *job, uint64_t total,
                           int64_t now_ms)
{
    struct hk_buf detail;
    struct hk_json json;
    int64_t id = insert_job(store, job, last_letter(store), total, now_ms);
    hk_crash_point("redrive-inside");
    hk_buf_init(&detail, DETAIL_MAX);
    hk_json_init(&json, &detail, false);
    hk_json_object(&json);
    hk_json_key(&json, "total");
    hk_json_i64(&json, (int64_t)total);
    hk_json_key(&json, "filter");
    hk_json_str(&json, job->filter);
    if (job->to.len) {
        hk_json_key(&json, "to");
        hk_json_str(&json, job->to);
    }
    hk_json_end(&json);
    if (hk_buf_status(&detail) == HK_NOMEM)
        hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = job->actor,
                                              .act = hk_str_of("redrive-start"),
                                              .reason = job->reason,
                                              .redrive = id,
                                              .detail = hk_buf_str(&detail)});
    hk_buf_fini(&detail);
    hk_crash_point("redrive-inside");
    return id;
}

enum hk_code hk_sl_redrive_start(struct hk_admin *admin, const struct hk_letter_query *query,
                                 const struct hk_redrive_job *job, int64_t *out_id, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    uint64_t total = job->facts.total;
    hk_sq_call(store);
    enum hk_code rc = total ? HK_OK : count_before(store, query, &total, err);
    if (rc != HK_OK)
        return rc;
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    int64_t now_ms = hk_sq_now(store);
    hk_crash_point("redrive-begun");
    int64_t runs = running_twin(store, job->filter);
    if (runs && hk_sq_ok(store)) {
        hk_sq_rollback(store);
        return hk_err_set(err, HK_CONFLICT, "redrive %lld of the same letters runs already", (long long)runs);
    }
    int64_t id = write_start(store, job, total, now_ms);
    rc = hk_sq_end(store, "start a redrive", err);
    hk_crash_point("redrive-committed");
    if (rc == HK_OK)
        *out_id = id;
    return rc;
}

static void list(struct hk_store *store, int64_t id, bool running_only, struct hk_redrive_jobs *out)
{
    size_t room = 0;
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_JOBS], id);
    hk_sq_bind_i64(store, q, 2, running_only);
    hk_sq_bind_i64(store, q, 3, JOBS_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_redrive_job *jobs = hk_sa_grow(store, out->items, out->n, &room, sizeof *jobs);
        if (!jobs)
            break;
        out->items = jobs;
        read_job(store, q, &jobs[out->n]);
        count_fates(store, &jobs[out->n++]);
    }
    sqlite3_finalize(q);
    out->now_ms = hk_sq_now(store);
}

enum hk_code hk_sl_redrive_list(struct hk_admin *admin, int64_t id, bool running_only,
                                const struct hk_redrive_jobs **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_redrive_jobs *jobs = hk_sq_alloc(store, 1, sizeof *jobs);
    hk_sq_begin_read(store);
    if (jobs)
        list(store, id, running_only, jobs);
    enum hk_code rc = hk_sq_end(store, "list redrives", err);
    if (rc == HK_OK)
        *out = jobs;
    return rc;
}

/* ---- the end ---- */

static void end_job(struct hk_store *store, const struct hk_redrive_job *job, enum hk_redrive_status status,
                    struct hk_str ending, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_JOB_END], job->id);
    hk_sq_bind_cstr(store, q, 2, hk_redrive_status_name(status));
    hk_sq_bind_i64(store, q, 3, now_ms);
    hk_sq_bind_text_or_null(store, q, 4, ending);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
    hk_crash_point("redrive-ending");
}

static void audit_job(struct hk_store *store, const struct hk_redrive_job *job, const char *act,
                      struct hk_str actor, struct hk_str reason, int64_t now_ms)
{
    char detail[128];
    const struct hk_redrive_facts *f = &job->facts;
    (void)snprintf(detail, sizeof detail, "{\"requeued\":%llu,\"resolved\":%llu,\"failed\":%llu}",
                   (unsigned long long)f->requeued, (unsigned long long)f->resolved,
                   (unsigned long long)f->failed);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = actor,
                                              .act = hk_str_of(act),
                                              .reason = reason,
                                              .redrive = job->id,
                                              .detail = hk_str_of(detail)});
    hk_crash_point("redrive-ending");
}

static void cancel(struct hk_store *store, struct hk_redrive_job *job, const char *actor, const char *reason,
                   int64_t now_ms)
{
    struct hk_buf ending;
    hk_buf_init(&ending, ENDING_MAX);
    (void)hk_buf_addf(&ending, "%s: %s", actor, reason);
    if (hk_buf_status(&ending) == HK_NOMEM)
        hk_sq_fail(store, SQLITE_NOMEM);
    count_fates(store, job);
    end_job(store, job, HK_REDRIVE_CANCELLED, hk_buf_str(&ending), now_ms);
    audit_job(store, job, "redrive-cancel", hk_str_of(actor), hk_str_of(reason), now_ms);
    hk_buf_fini(&ending);
}

enum hk_code hk_sl_redrive_cancel(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                                  struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_redrive_job job = {0};
    int64_t now_ms = hk_sl_begin_act(admin);
    bool found = find_job(store, id, &job);
    if (hk_sq_ok(store) && (!found || job.status != HK_REDRIVE_RUNNING)) {
        hk_sq_rollback(store);
        return found ? hk_err_set(err, HK_CONFLICT, "redrive %lld has ended already: %s", (long long)id,
                                  hk_redrive_status_name(job.status))
                     : no_such_job(id, err);
    }
    cancel(store, &job, actor, reason, now_ms);
    enum hk_code rc = hk_sq_end(store, "cancel a redrive", err);
    hk_crash_point("redrive-committed");
    return rc;
}

/* ---- one step ---- */

struct step {
    struct hk_store *store;
    struct hk_redrive_job job;
    struct hk_redrive_next next;
    int64_t now_ms, wake_ms;
};

/* Where the letter would go, if that is paused; ptr NULL = it is not. */
static struct hk_str paused_destination(struct hk_store *store, int64_t letter, struct hk_str to)
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_IS_PAUSED], letter);
    hk_sq_bind_text_or_null(store, q, 2, to);
    struct hk_str name = hk_sq_row(store, q) ? hk_sa_text(store, q, 0, HK_SA_TEXT_MAX) : (struct hk_str){0};
    sqlite3_finalize(q);
    return name;
}

/* The next letters that are meant, oldest first, up to one whose destination is paused. The cursor moves on also when there is
 * none among those looked at. */
static size_t choose(struct step *s, const struct hk_letter_query *query, int64_t *ids)
{
    struct hk_sl_walk walk;
    struct hk_letter_query open = open_ones(query, s->job.last_id);
    const struct hk_sl_range range = {.after_id = s->job.cursor_id, .oldest_first = true};
    size_t n = 0;
    s->job.facts.exhausted = !open.statuses;
    if (!open.statuses)
        return 0;
    hk_sl_walk_begin(s->store, &open, range, step_bound, &walk);
    s->job.held = (struct hk_str){0};
    while (n < s->next.n && !s->job.held.ptr && hk_sl_walk_next(&walk)) {
        s->job.held = paused_destination(s->store, walk.last_id, s->job.to);
        if (!s->job.held.ptr)
            ids[n++] = walk.last_id;
    }
    if (walk.looked)
        s->job.cursor_id = s->job.held.ptr ? walk.last_id - 1 : walk.last_id;
    s->job.facts.exhausted = walk.ended && !s->job.held.ptr;
    hk_sl_walk_end(&walk);
    return n;
}

static void save(struct step *s)
{
    sqlite3_stmt *q = hk_sl_prepare_for(s->store, hk_sl_texts[HK_SL_JOB_SAVE], s->job.id);
    hk_sq_bind_i64(s->store, q, 2, s->job.cursor_id);
    hk_sq_bind_u64(s->store, q, 3, s->job.facts.requeued);
    hk_sq_bind_i64(s->store, q, 4, s->job.facts.exhausted);
    bind_double(s->store, q, 5, s->job.facts.tokens);
    hk_sq_bind_i64(s->store, q, 6, s->now_ms);
    hk_sq_bind_text_or_null(s->store, q, 7, s->job.held);
    hk_sq_run(s->store, q);
    sqlite3_finalize(q);
    hk_crash_point("redrive-inside");
}

/* The row that started the job: what it requeues goes on with that act. 0: retention has taken it. */
static int64_t find_act(struct hk_store *store, int64_t job)
{
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_JOB_ACT], job);
    int64_t id = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return id;
}

static void requeue(struct step *s, const struct hk_letter_query *query)
{
    struct hk_sl_trail trail = {.store = s->store,
                                .row = {.at_ms = s->now_ms,
                                        .actor = s->job.actor,
                                        .act = hk_str_of("requeue"),
                                        .reason = s->job.reason,
                                        .redrive = s->job.id},
                                .many = true,
                                .act_id = find_act(s->store, s->job.id)};
    struct hk_sl_requeuer r = {.store = s->store,
                               .ids = s->job.ids,
                               .to = s->job.to,
                               .redrive = s->job.id,
                               .now_ms = s->now_ms,
                               .trail = &trail};
    int64_t *ids = hk_sq_alloc(s->store, (size_t)s->next.n + 1, sizeof *ids);
    size_t n = ids ? choose(s, query, ids) : 0, done = 0;
    if (query->unsure && query->unsure->code != HK_OK) {
        s->wake_ms = s->now_ms + HK_REDRIVE_UNSURE_MS;
        return;
    }
    hk_sl_requeuer_open(&r);
    hk_crash_point("redrive-begun");
    for (size_t i = 0; i < n && hk_sq_ok(s->store); i++) {
        struct hk_letter_done one = {.id = ids[i]};
        hk_sl_requeue_one(&r, &one);
        done += one.did == HK_DID_IT;
    }
    hk_sl_requeuer_close(&r);
    (void)hk_sl_trail_end(&trail);
    s->job.facts.requeued += done;
    s->job.facts.tokens = s->next.tokens + (double)(s->next.n - done); /* what was not used stays */
    save(s);
    s->wake_ms = done < s->next.n || s->next.wake_ms < s->now_ms ? s->now_ms : s->next.wake_ms;
    if (s->job.held.ptr)
        s->wake_ms = s->now_ms + HK_REDRIVE_HELD_MS;
}

static void take_step(struct step *s, const struct hk_letter_query *query)
{
    count_fates(s->store, &s->job);
    hk_redrive_decide(&s->job.pace, &s->job.facts, s->now_ms, &s->next);
    switch (s->next.step) {
    case HK_REDRIVE_WAIT:
        s->wake_ms = s->next.wake_ms > s->now_ms ? s->next.wake_ms : s->now_ms + 1;
        break;
    case HK_REDRIVE_REQUEUE:
        requeue(s, query);
        break;
    case HK_REDRIVE_ABORT:
        end_job(s->store, &s->job, HK_REDRIVE_ABORTED, hk_str_of(s->next.why), s->now_ms);
        audit_job(s->store, &s->job, "redrive-aborted", s->job.actor, hk_str_of(s->next.why), s->now_ms);
        break;
    case HK_REDRIVE_FINISH:
        end_job(s->store, &s->job, HK_REDRIVE_DONE, (struct hk_str){0}, s->now_ms);
        audit_job(s->store, &s->job, "redrive-done", s->job.actor, s->job.reason, s->now_ms);
        break;
    }
}

enum hk_code hk_sl_redrive_step(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query,
                                int64_t *out_wake_ms, bool *out_ended, struct hk_err *err)
{
    struct step s = {.store = admin->store};
    s.now_ms = hk_sl_begin_act(admin);
    bool found = find_job(s.store, id, &s.job);
    if (!found && hk_sq_ok(s.store)) {
        hk_sq_rollback(s.store);
        return no_such_job(id, err);
    }
    bool ran = s.job.status == HK_REDRIVE_RUNNING;
    if (ran)
        take_step(&s, query);
    enum hk_code rc = hk_sq_end(s.store, "go on with a redrive", err);
    if (s.next.step != HK_REDRIVE_WAIT)
        hk_crash_point("redrive-committed");
    if (rc == HK_OK) {
        *out_wake_ms = s.wake_ms;
        *out_ended = ran && !s.wake_ms;
    }
    return rc;
}
