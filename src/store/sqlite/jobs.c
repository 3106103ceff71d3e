/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on SQLite. Writers come one after the other: a batch holds the write lock from `hold` to `save`, so nothing slow stands in
 * between. */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "observe/crash.h"
#include "store/jobs.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"
#include "store/sqlite/jobs_sql.h" /* made of sql/jobs.sql */

static sqlite3_stmt *prepare(struct hk_store *store, enum hk_sj_id id)
{
    return hk_sa_prepare(store, hk_sj_texts[id]);
}

static int run(struct hk_store *store, sqlite3_stmt *q)
{
    int n = hk_sq_run(store, q);
    sqlite3_finalize(q);
    return n;
}

static int64_t begin_act(struct hk_store *store)
{
    hk_sq_call(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    return hk_sq_now(store);
}

/* ---- the row ---- */

/* NULL: there is none, or an error sticks. */
static struct hk_job *find_in(struct hk_store *store, int64_t id)
{
    struct hk_job *job = hk_sq_alloc(store, 1, sizeof *job);
    sqlite3_stmt *q = prepare(store, HK_SJ_FIND);
    hk_sq_bind_i64(store, q, 1, id);
    bool found = hk_sq_row(store, q);
    if (found && job) {
        const struct hk_cells row = hk_sa_cells(store, q);
        int next = hk_cells_job(&row, job);
        job->request = row.text(&row, next, HK_JOB_REQUEST_MAX);
        job->cursor = row.text(&row, next + 1, HK_JOB_CURSOR_MAX);
        job->result = row.text(&row, next + 2, HK_JOB_RESULT_MAX);
    }
    sqlite3_finalize(q);
    return found ? job : NULL;
}

static enum hk_code no_such_job(int64_t id, struct hk_err *err)
{
    return hk_err_set(err, HK_NOTFOUND, "there is no job %lld", (long long)id);
}

/* ---- the trail ---- */

struct act {
    const char *act, *actor, *reason;
    int64_t job, now_ms;
    struct hk_str operation;
};

static void audit(struct hk_store *store, const struct act *act)
{
    struct hk_buf detail;
    struct hk_json json;
    hk_buf_init(&detail, HK_SA_TEXT_MAX);
    hk_json_init(&json, &detail, false);
    hk_json_object(&json);
    hk_json_key(&json, "job");
    hk_json_i64(&json, act->job);
    hk_json_key(&json, "operation");
    hk_json_str(&json, act->operation);
    hk_json_end(&json);
    if (hk_buf_status(&detail) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = act->now_ms,
                                              .actor = hk_str_of(act->actor),
                                              .act = hk_str_of(act->act),
                                              .reason = hk_str_of(act->reason),
                                              .detail = hk_buf_str(&detail)});
    hk_buf_fini(&detail);
}

/* ---- people ---- */

static int64_t insert_job(struct hk_store *store, const struct hk_job_new *ask, int64_t now_ms)
{
    sqlite3_stmt *q = prepare(store, HK_SJ_CREATE);
    hk_sq_bind_text(store, q, 1, ask->operation);
    hk_sq_bind_text(store, q, 2, ask->request);
    hk_sq_bind_cstr(store, q, 3, ask->actor);
    hk_sq_bind_cstr(store, q, 4, ask->reason);
    hk_sq_bind_cstr(store, q, 5, ask->role);
    hk_sq_bind_i64(store, q, 6, ask->reveal);
    hk_sq_bind_i64(store, q, 7, now_ms);
    (void)run(store, q);
    return sqlite3_last_insert_rowid(store->db);
}

static enum hk_code create(struct hk_admin *admin, const struct hk_job_new *ask, int64_t *out_id,
                           struct hk_err *err)
{
    struct hk_store *store = admin->store;
    if (ask->request.len > HK_JOB_REQUEST_MAX)
        return hk_err_set(err, HK_TOOBIG, "the request is larger than a job can keep");
    int64_t now_ms = begin_act(store);
    sqlite3_stmt *q = prepare(store, HK_SJ_OPEN);
    bool full = hk_sq_row(store, q) && sqlite3_column_int64(q, 0) >= HK_JOBS_OPEN_MAX;
    sqlite3_finalize(q);
    if (full) {
        hk_sq_rollback(store);
        return hk_err_set(err, HK_BUSY,
                          "%d jobs wait or run already: wait until some have ended, or cancel some",
                          HK_JOBS_OPEN_MAX);
    }
    int64_t id = insert_job(store, ask, now_ms);
    audit(store, &(struct act){"job-start", ask->actor, ask->reason, id, now_ms, ask->operation});
    enum hk_code rc = hk_sq_end(store, "start a job", err);
    hk_crash_point("job-created");
    if (rc == HK_OK)
        *out_id = id;
    return rc;
}

static void list_in(struct hk_store *store, const struct hk_job_page *page, struct hk_jobs *out)
{
    size_t room = 0;
    uint32_t limit = page->limit < HK_JOBS_LIST_MAX ? page->limit : HK_JOBS_LIST_MAX;
    sqlite3_stmt *q = prepare(store, HK_SJ_LIST);
    hk_sq_bind_i64(store, q, 1, page->before_id > 0 ? page->before_id : INT64_MAX);
    hk_sq_bind_i64(store, q, 2, page->open_only);
    hk_sq_bind_i64(store, q, 3, (int64_t)limit + 1);
    while (!out->more && hk_sq_row(store, q)) {
        out->more = out->n == limit;
        struct hk_job *items = out->more ? NULL : hk_sa_grow(store, out->items, out->n, &room, sizeof *items);
        if (!items)
            break;
        out->items = items;
        const struct hk_cells row = hk_sa_cells(store, q);
        (void)hk_cells_job(&row, &items[out->n++]);
    }
    sqlite3_finalize(q);
    out->now_ms = hk_sq_now(store);
}

static enum hk_code list(struct hk_admin *admin, const struct hk_job_page *page, const struct hk_jobs **out,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_jobs *jobs = hk_sq_alloc(store, 1, sizeof *jobs);
    hk_sq_begin_read(store);
    if (jobs)
        list_in(store, page, jobs);
    enum hk_code rc = hk_sq_end(store, "list jobs", err);
    if (rc == HK_OK)
        *out = jobs;
    return rc;
}

static enum hk_code find(struct hk_admin *admin, int64_t id, const struct hk_job **out, int64_t *out_now_ms,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_read(store);
    const struct hk_job *job = find_in(store, id);
    int64_t now_ms = hk_sq_now(store);
    enum hk_code rc = hk_sq_end(store, "look at a job", err);
    if (rc == HK_OK && !job)
        return no_such_job(id, err);
    if (rc == HK_OK) {
        *out = job;
        if (out_now_ms)
            *out_now_ms = now_ms;
    }
    return rc;
}

static enum hk_code cancel(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                           struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store);
    const struct hk_job *job = find_in(store, id);
    if (hk_sq_ok(store) && (!job || job->ended_ms != 0)) {
        hk_sq_rollback(store);
        return job ? hk_err_set(err, HK_CONFLICT, "job %lld has ended already: %s", (long long)id,
                                hk_job_status_name(job->status))
                   : no_such_job(id, err);
    }
    if (job && job->cancelled_by.len == 0) {
        sqlite3_stmt *q = prepare(store, HK_SJ_CANCEL);
        hk_sq_bind_i64(store, q, 1, id);
        hk_sq_bind_i64(store, q, 2, now_ms);
        hk_sq_bind_cstr(store, q, 3, actor);
        hk_sq_bind_cstr(store, q, 4, reason);
        (void)run(store, q);
        audit(store, &(struct act){"job-cancel", actor, reason, id, now_ms, job->operation});
    }
    return hk_sq_end(store, "cancel a job", err);
}

/* ---- relays ---- */

static void bind_free(struct hk_store *store, sqlite3_stmt *q, int64_t now_ms)
{
    hk_sq_bind_i64(store, q, 1, now_ms);
    hk_sq_bind_i64(store, q, 2, HK_JOB_LEASE_FAR);
}

static enum hk_code waiting(struct hk_admin *admin, bool *out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = prepare(store, HK_SJ_WAITING);
    bind_free(store, q, hk_sq_now(store));
    bool found = hk_sq_row(store, q);
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "look for jobs", err);
    if (rc == HK_OK)
        *out = found;
    return rc;
}

static void give_up(struct hk_store *store, int64_t id, int64_t now_ms)
{
    sqlite3_stmt *q = prepare(store, HK_SJ_GIVE_UP);
    hk_sq_bind_i64(store, q, 1, id);
    hk_sq_bind_i64(store, q, 2, now_ms);
    hk_sq_bind_cstr(store, q, 3, HK_JOB_GIVEN_UP_CODE);
    hk_sq_bind_cstr(store, q, 4, HK_JOB_GIVEN_UP);
    (void)run(store, q);
}

/* The next one that may be taken; those that were taken too often end here. 0: there is none. */
static int64_t next_free(struct hk_store *store, int64_t now_ms)
{
    for (;;) {
        sqlite3_stmt *q = prepare(store, HK_SJ_FREE);
        bind_free(store, q, now_ms);
        int64_t id = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
        bool often = id && hk_sa_u32(q, 1) >= HK_JOB_TRIES_MAX;
        sqlite3_finalize(q);
        if (!often || !hk_sq_ok(store))
            return id;
        give_up(store, id, now_ms);
    }
}

static enum hk_code take(struct hk_admin *admin, const struct hk_job_lease *lease, const struct hk_job **out,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    const struct hk_job *job = NULL;
    int64_t now_ms = begin_act(store), id = next_free(store, now_ms);
    if (id) {
        sqlite3_stmt *q = prepare(store, HK_SJ_TAKE);
        hk_sq_bind_i64(store, q, 1, id);
        hk_sq_bind_i64(store, q, 2, now_ms);
        hk_sq_bind_cstr(store, q, 3, lease->owner);
        hk_sq_bind_u64(store, q, 4, lease->for_ms);
        (void)run(store, q);
        job = find_in(store, id);
    }
    enum hk_code rc = hk_sq_end(store, "take a job", err);
    if (rc == HK_OK)
        *out = job;
    if (job)
        hk_crash_point("job-taken");
    return rc;
}

static enum hk_code lost(const struct hk_job_grip *grip, struct hk_err *err)
{
    return hk_err_set(err, HK_CONFLICT, "job %lld is not in this relay's hands any more",
                      (long long)grip->id);
}

/* Inside a transaction. False: it is not ours, or an error sticks. */
static bool renew_in(struct hk_store *store, const struct hk_job_grip *grip, bool *out_cancel)
{
    sqlite3_stmt *q = prepare(store, HK_SJ_RENEW);
    hk_sq_bind_i64(store, q, 1, grip->id);
    hk_sq_bind_i64(store, q, 2, grip->token);
    hk_sq_bind_i64(store, q, 3, hk_sq_now(store) + (int64_t)grip->lease_ms);
    bool ours = run(store, q) == 1;
    q = prepare(store, HK_SJ_IS_CANCELLED);
    hk_sq_bind_i64(store, q, 1, grip->id);
    *out_cancel = hk_sq_row(store, q) && sqlite3_column_int(q, 0) != 0;
    sqlite3_finalize(q);
    return ours;
}

static enum hk_code renew(struct hk_admin *admin, const struct hk_job_grip *grip, bool *out_cancel,
                          struct hk_err *err)
{
    struct hk_store *store = admin->store;
    bool cancelled = false;
    hk_sq_again(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    bool ours = renew_in(store, grip, &cancelled);
    enum hk_code rc = hk_sq_end(store, "keep a job", err);
    if (rc == HK_OK && !ours)
        return lost(grip, err);
    if (rc == HK_OK)
        *out_cancel = cancelled;
    return rc;
}

static enum hk_code hold(struct hk_admin *admin, const struct hk_job_grip *grip, bool *out_cancel,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    bool cancelled = false;
    hk_crash_point("job-before");
    hk_sq_again(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    bool ours = renew_in(store, grip, &cancelled);
    if (!hk_sq_ok(store))
        return hk_sq_end(store, "begin a batch of a job", err);
    if (!ours) {
        hk_sq_rollback(store);
        return lost(grip, err);
    }
    store->held = HK_SQ_HELD;
    *out_cancel = cancelled;
    hk_crash_point("job-begun");
    return HK_OK;
}

static bool save_in(struct hk_store *store, const struct hk_job_save *s)
{
    int64_t now_ms = hk_sq_now(store);
    const uint64_t counts[] = {s->progress.done, s->progress.total, s->progress.changed, s->progress.failed};
    sqlite3_stmt *q = prepare(store, HK_SJ_SAVE);
    hk_sq_bind_i64(store, q, 1, s->grip.id);
    hk_sq_bind_i64(store, q, 2, s->grip.token);
    hk_sq_bind_cstr(store, q, 3, hk_job_status_name(s->status));
    hk_sq_bind_i64(store, q, 4, s->status == HK_JOB_RUNNING ? now_ms + (int64_t)s->grip.lease_ms : 0);
    hk_sq_bind_i64(store, q, 5, s->status == HK_JOB_RUNNING || s->status == HK_JOB_QUEUED ? 0 : now_ms);
    for (int i = 0; i < 4; i++)
        hk_sq_bind_u64(store, q, 6 + i, counts[i]);
    hk_sq_bind_i64(store, q, 10, s->act_id);
    hk_sq_bind_text(store, q, 11, s->cursor);
    hk_sq_bind_text_or_null(store, q, 12, s->result);
    hk_sq_bind_text_or_null(store, q, 13, hk_str_of(s->error_code));
    hk_sq_bind_text_or_null(store, q, 14, hk_str_of(s->error));
    hk_sq_bind_i64(store, q, 15, s->moved);
    hk_sq_bind_i64(store, q, 16, s->forget);
    return run(store, q) == 1;
}

static enum hk_code save(struct hk_admin *admin, const struct hk_job_save *s, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    if (s->result.len > HK_JOB_RESULT_MAX || s->cursor.len > HK_JOB_CURSOR_MAX)
        return hk_err_set(err, HK_TOOBIG, "the result is larger than a job can keep");
    hk_sq_again(store);
    hk_sq_begin_write(store); /* unless one is held */
    if (store->held == HK_SQ_FREE)
        hk_sq_clock_lift(store);
    hk_crash_point("job-inside");
    bool ours = save_in(store, s);
    hk_crash_point("job-saved");
    if (hk_sq_ok(store) && !ours) {
        hk_sq_rollback(store);
        store->held = HK_SQ_FREE;
        return lost(&s->grip, err);
    }
    store->held = HK_SQ_FREE;
    enum hk_code rc = hk_sq_end(store, "save a job", err);
    hk_crash_point("job-committed");
    return rc;
}

static void drop(struct hk_admin *admin)
{
    struct hk_store *store = admin->store;
    if (store->held == HK_SQ_HELD)
        hk_sq_rollback(store);
    store->held = HK_SQ_FREE;
}

const struct hk_store_jobs_ops hk_store_jobs_sqlite = {.create = create,
                                                       .list = list,
                                                       .find = find,
                                                       .cancel = cancel,
                                                       .waiting = waiting,
                                                       .take = take,
                                                       .renew = renew,
                                                       .hold = hold,
                                                       .save = save,
                                                       .drop = drop};
