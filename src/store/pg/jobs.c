/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on PostgreSQL.
 *
 * DESIGN. All other transactions of this store go out whole, so that a process which is stopped half-way holds no lock. A batch of a job
 * cannot: how far it came is known only when its act has answered. So `hold` leaves its transaction open, and bounds it: the
 * server ends the session when nothing comes for HK_JOB_IDLE_MS. The row of the job is locked first, then what acts lock, the
 * audit's head last; nobody locks in another order. */
#include <stdio.h>

#include "base/str.h"
#include "observe/crash.h"
#include "store/jobs.h"
#include "store/pg/admin.h"

/* ---- the row ---- */

static struct hk_job *read_job(struct hk_pg *pg, const PGresult *res, int at)
{
    struct hk_job *job = hk_pg_alloc(pg, 1, sizeof *job);
    if (!job)
        return NULL;
    const struct hk_cells row = hk_pa_cells(pg, res, 0, at);
    int next = hk_cells_job(&row, job);
    job->request = row.text(&row, next, HK_JOB_REQUEST_MAX);
    job->cursor = row.text(&row, next + 1, HK_JOB_CURSOR_MAX);
    job->result = row.text(&row, next + 2, HK_JOB_RESULT_MAX);
    return job;
}

static enum hk_code no_such_job(int64_t id, struct hk_err *err)
{
    return hk_err_set(err, HK_NOTFOUND, "there is no job %lld", (long long)id);
}

/* ---- people ---- */

static enum hk_code create(struct hk_admin *admin, const struct hk_job_new *ask, int64_t *out_id,
                           struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    int64_t id = 0;
    if (ask->request.len > HK_JOB_REQUEST_MAX)
        return hk_err_set(err, HK_TOOBIG, "the request is larger than a job can keep");
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, ask->operation);
    hk_pg_arg_text(pg, &a, ask->request);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->reason));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->role));
    hk_pg_arg_bool(pg, &a, ask->reveal);
    hk_pg_arg_i64(pg, &a, HK_JOBS_OPEN_MAX);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PJ_TURN, NULL);
    hk_pg_add(pg, HK_PJ_CREATE, &a);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    if (res && PQntuples(res) == 1)
        id = hk_pg_i64(res, 0, 0);
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "start a job", err);
    hk_crash_point("job-created");
    if (rc == HK_OK && id == 0)
        return hk_err_set(err, HK_BUSY,
                          "%d jobs wait or run already: wait until some have ended, or cancel some",
                          HK_JOBS_OPEN_MAX);
    if (rc == HK_OK)
        *out_id = id;
    return rc;
}

static void take_list(struct hk_pg *pg, const PGresult *res, uint32_t limit, struct hk_jobs *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_job *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++) {
        out->now_ms = hk_pg_now(pg, hk_pg_i64(res, i, 0));
        if (hk_pg_null(res, i, 1))
            continue;
        out->more = out->n == limit;
        const struct hk_cells row = hk_pa_cells(pg, res, i, 1);
        if (!out->more)
            (void)hk_cells_job(&row, &items[out->n++]);
    }
    out->items = items;
}

static enum hk_code list(struct hk_admin *admin, const struct hk_job_page *page, const struct hk_jobs **out,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    uint32_t limit = page->limit < HK_JOBS_LIST_MAX ? page->limit : HK_JOBS_LIST_MAX;
    hk_pg_call(pg);
    struct hk_jobs *jobs = hk_pg_alloc(pg, 1, sizeof *jobs);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, page->before_id > 0 ? page->before_id : INT64_MAX);
    hk_pg_arg_bool(pg, &a, page->open_only);
    hk_pg_arg_i64(pg, &a, (int64_t)limit + 1);
    PGresult *res = jobs ? hk_pg_query(pg, false, HK_PJ_LIST, &a) : NULL;
    if (jobs)
        take_list(pg, res, limit, jobs);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "list jobs", err);
    if (rc == HK_OK)
        *out = jobs;
    return rc;
}

static enum hk_code find(struct hk_admin *admin, int64_t id, const struct hk_job **out, int64_t *out_now_ms,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    int64_t now_ms = 0;
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, id);
    PGresult *res = hk_pg_query(pg, false, HK_PJ_FIND, &a);
    if (res)
        now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
    const struct hk_job *job = res && !hk_pg_null(res, 0, 1) ? read_job(pg, res, 1) : NULL;
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "look at a job", err);
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
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    char was[16] = "";
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, id);
    hk_pg_arg_text(pg, &a, hk_str_of(actor));
    hk_pg_arg_text(pg, &a, hk_str_of(reason));
    PGresult *res = hk_pg_query(pg, true, HK_PJ_CANCEL, &a);
    bool found = res && PQntuples(res) == 1, ended = found && hk_pg_i64(res, 0, 1) != 0;
    if (found)
        (void)snprintf(was, sizeof was, "%.15s", PQgetvalue(res, 0, 0));
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "cancel a job", err);
    if (rc == HK_OK && !found)
        return no_such_job(id, err);
    if (rc == HK_OK && ended)
        return hk_err_set(err, HK_CONFLICT, "job %lld has ended already: %s", (long long)id, was);
    return rc;
}

/* ---- relays ---- */

static void arg_free(struct hk_admin *admin, struct hk_pg_args *a)
{
    hk_pa_arg_now(admin, a);
    hk_pg_arg_i64(&admin->pg, a, HK_JOB_LEASE_FAR);
}

static enum hk_code waiting(struct hk_admin *admin, bool *out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    arg_free(admin, &a);
    PGresult *res = hk_pg_query(pg, false, HK_PJ_WAITING, &a);
    bool found = res && PQntuples(res) == 1;
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "look for jobs", err);
    if (rc == HK_OK)
        *out = found;
    return rc;
}

static enum hk_code take(struct hk_admin *admin, const struct hk_job_lease *lease, const struct hk_job **out,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args give_up = {.n = 0}, a = {.n = 0};
    hk_pg_call(pg);
    arg_free(admin, &give_up);
    hk_pg_arg_i64(pg, &give_up, HK_JOB_TRIES_MAX);
    hk_pg_arg_text(pg, &give_up, hk_str_of(HK_JOB_GIVEN_UP_CODE));
    hk_pg_arg_text(pg, &give_up, hk_str_of(HK_JOB_GIVEN_UP));
    arg_free(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(lease->owner));
    hk_pg_arg_u64(pg, &a, lease->for_ms);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PJ_GIVE_UP, &give_up);
    hk_pg_add(pg, HK_PJ_TAKE, &a);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    const struct hk_job *job = res && PQntuples(res) == 1 ? read_job(pg, res, 0) : NULL;
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "take a job", err);
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

static void arg_grip(struct hk_admin *admin, struct hk_pg_args *a, const struct hk_job_grip *grip)
{
    hk_pa_arg_now(admin, a);
    hk_pg_arg_i64(&admin->pg, a, grip->id);
    hk_pg_arg_i64(&admin->pg, a, grip->token);
}

static enum hk_code renew(struct hk_admin *admin, const struct hk_job_grip *grip, bool *out_cancel,
                          struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_again(pg);
    arg_grip(admin, &a, grip);
    hk_pg_arg_u64(pg, &a, grip->lease_ms);
    PGresult *res = hk_pg_query(pg, true, HK_PJ_RENEW, &a);
    bool ours = res && PQntuples(res) == 1, cancelled = ours && hk_pg_bool(res, 0, 0);
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "keep a job", err);
    if (rc == HK_OK && !ours)
        return lost(grip, err);
    if (rc == HK_OK)
        *out_cancel = cancelled;
    return rc;
}

static enum hk_code hold(struct hk_admin *admin, const struct hk_job_grip *grip, bool *out_cancel,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, patience = {.n = 0};
    hk_crash_point("job-before");
    hk_pg_again(pg);
    hk_pg_arg_i64(pg, &patience, HK_JOB_IDLE_MS);
    arg_grip(admin, &a, grip);
    hk_pg_arg_u64(pg, &a, grip->lease_ms);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PJ_PATIENCE, &patience);
    hk_pg_add(pg, HK_PJ_RENEW, &a);
    hk_pg_hold(pg);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    bool ours = res && PQntuples(res) == 1, cancelled = ours && hk_pg_bool(res, 0, 0);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "begin a batch of a job", err);
    if (rc == HK_OK && ours) {
        *out_cancel = cancelled;
        hk_crash_point("job-begun");
        return HK_OK;
    }
    hk_pg_unhold(pg);
    return rc == HK_OK ? lost(grip, err) : rc;
}

static void add_save(struct hk_admin *admin, const struct hk_job_save *s)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    arg_grip(admin, &a, &s->grip);
    hk_pg_arg_text(pg, &a, hk_str_of(hk_job_status_name(s->status)));
    hk_pg_arg_u64(pg, &a, s->grip.lease_ms);
    hk_pg_arg_u64(pg, &a, s->progress.done);
    hk_pg_arg_u64(pg, &a, s->progress.total);
    hk_pg_arg_u64(pg, &a, s->progress.changed);
    hk_pg_arg_u64(pg, &a, s->progress.failed);
    hk_pg_arg_i64(pg, &a, s->act_id);
    hk_pg_arg_text(pg, &a, s->cursor);
    hk_pg_arg_text_or_null(pg, &a, s->result);
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(s->error_code));
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(s->error));
    hk_pg_arg_bool(pg, &a, s->moved);
    hk_pg_arg_bool(pg, &a, s->forget);
    hk_pg_add(pg, HK_PJ_SAVE, &a);
}

static enum hk_code save(struct hk_admin *admin, const struct hk_job_save *s, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    if (s->result.len > HK_JOB_RESULT_MAX || s->cursor.len > HK_JOB_CURSOR_MAX)
        return hk_err_set(err, HK_TOOBIG, "the result is larger than a job can keep");
    hk_pg_again(pg);
    hk_pg_begin(pg, true); /* unless one is held */
    hk_crash_point("job-inside");
    add_save(admin, s);
    if (pg->held == HK_PG_HELD)
        pg->held = HK_PG_FREE; /* so that it is committed */
    hk_pg_send(pg);
    hk_crash_point("job-saved");
    PGresult *res = hk_pg_result(pg);
    bool ours = res && PQntuples(res) == 1;
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "save a job", err);
    hk_pg_unhold(pg);
    hk_crash_point("job-committed");
    return rc == HK_OK && !ours ? lost(&s->grip, err) : rc;
}

static void drop(struct hk_admin *admin)
{
    hk_pg_unhold(&admin->pg);
}

const struct hk_store_jobs_ops hk_store_jobs_postgres = {.create = create,
                                                         .list = list,
                                                         .find = find,
                                                         .cancel = cancel,
                                                         .waiting = waiting,
                                                         .take = take,
                                                         .renew = renew,
                                                         .hold = hold,
                                                         .save = save,
                                                         .drop = drop};
