/* SPDX-License-Identifier: Apache-2.0 */
/* A relay works on a job.
 *
 * DESIGN. Nothing of a job is kept in memory from one batch to the next but what its row holds: request, cursor, result so far. So a
 * batch after a crash, on another relay, and the batch after this one are the same thing. A batch that fails is dropped as a
 * whole, the row is read again, and it says where to go on: also when a connection was lost while it committed.
 *
 * What may work later (the store is busy, or away) is tried again, RETRIES times in a row. Everything else ends the job. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/job.h"
#include "desk/whoami.h"
#include "desk/wire.h"
#include "exec/clock.h"

enum {
    RETRIES = 30,
    PAUSE_MS = 1000,
    PAUSE_STEP_MS = 50
};

struct work {
    struct hk_desk *desk;
    const struct hk_job_worker *worker;
    const struct hk_op *op;
    struct hk_pool mem; /* of the job: request and what is said of it */
    void *request;
    struct hk_job job;            /* texts lie in `mem` */
    struct hk_buf cursor, result; /* of the row, as it was last written or read */
    struct hk_job_run run;        /* of this batch */
    int64_t renewed_us;
    struct hk_err *why;
};

/* ---- what a batch is given ---- */

static bool is_stopping(const struct work *w)
{
    return w->worker->stop && w->worker->stop(w->worker->arg);
}

static bool should_stop(void *arg)
{
    const struct work *w = arg;
    return w->run.lost || w->run.cancelled || is_stopping(w);
}

/* A batch that takes long keeps its lease. */
static void keep_lease(void *arg, const struct hk_progress *progress)
{
    struct work *w = arg;
    struct hk_err err = {.message = ""};
    bool cancelled = false;
    int64_t now_us = hk_clock_us();
    (void)progress;
    if (w->run.held || w->run.lost || now_us - w->renewed_us < (int64_t)w->worker->lease_ms * 1000 / 3)
        return;
    enum hk_code rc = w->desk->jobs->renew(w->desk->admin, &w->run.grip, &cancelled, &err);
    w->run.lost = rc == HK_CONFLICT;
    w->run.cancelled = rc == HK_OK && cancelled;
    if (rc == HK_OK)
        w->renewed_us = now_us;
}

bool hk_job_numbers(const struct hk_job_run *run, char between, int64_t *out, size_t n)
{
    struct hk_str rest = hk_str_of(run->cursor);
    for (size_t i = 0; i < n; i++)
        if (hk_parse_i64(hk_str_cut(&rest, between), &out[i], NULL) != HK_OK)
            return false;
    return true;
}

enum hk_code hk_job_hold(struct hk_job_run *run, struct hk_err *err)
{
    bool cancelled = false;
    enum hk_code rc = run->desk->jobs->hold(run->desk->admin, &run->grip, &cancelled, err);
    run->held = rc == HK_OK;
    run->lost = rc == HK_CONFLICT;
    run->cancelled = run->held && cancelled;
    return run->cancelled ? hk_err_set(err, HK_CANCELLED, "the job was cancelled") : rc;
}

static enum hk_role role_of(struct hk_str name)
{
    for (unsigned role = HK_ROLE_ADMIN; role > HK_ROLE_NONE; role--)
        if (hk_str_eq(name, hk_str_of(hk_role_name((enum hk_role)role))))
            return (enum hk_role)role;
    return HK_ROLE_NONE;
}

/* ---- the row ---- */

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code note_state(struct work *w, struct hk_str cursor, struct hk_str result, struct hk_err *err)
{
    hk_buf_reset(&w->cursor);
    hk_buf_reset(&w->result);
    (void)hk_buf_add(&w->cursor, cursor.ptr, cursor.len);
    (void)hk_buf_add(&w->result, result.ptr, result.len);
    return hk_buf_status(&w->cursor) == HK_OK && hk_buf_status(&w->result) == HK_OK ? HK_OK : no_memory(err);
}

/* How far it came, says the row. HK_CONFLICT: it is another's. */
static enum hk_code read_again(struct work *w, struct hk_err *err)
{
    const struct hk_job *job = NULL;
    enum hk_code rc = w->desk->jobs->find(w->desk->admin, w->job.id, &job, NULL, err);
    if (rc != HK_OK)
        return rc == HK_NOTFOUND ? HK_CONFLICT : rc;
    if (job->token != w->job.token || job->status != HK_JOB_RUNNING)
        return hk_err_set(err, HK_CONFLICT, "another relay has it, or it has ended");
    w->job.progress = job->progress;
    w->job.act_id = job->act_id;
    return note_state(w, job->cursor, job->result, err);
}

static const struct hk_op *find_op(struct hk_str name)
{
    char text[sizeof((struct hk_job_worked *)NULL)->operation];
    for (size_t i = 0; i < hk_n_ops; i++) {
        const struct hk_op *op = hk_ops[i];
        if (!op->job)
            continue;
        (void)snprintf(text, sizeof text, "%s %s", op->noun, op->verb);
        if (hk_str_eq(name, hk_str_of(text)))
            return op;
    }
    return NULL;
}

/* The request as it was asked for: what its row says is checked as if somebody asked now. */
static enum hk_code read_request(struct work *w, struct hk_err *err)
{
    struct hk_wire wire;
    struct hk_wire_caller said;
    struct hk_err why = {.message = ""};
    w->op = find_op(w->job.operation);
    if (!w->op)
        return hk_err_set(err, HK_UNSUPPORTED, "this version knows no such operation");
    if (role_of(w->job.role) < w->op->role)
        return hk_err_set(err, HK_DENIED, "the rights of whoever started it do not allow it");
    w->request = hk_pool_alloc(&w->mem, 1, w->op->request_size + 1);
    enum hk_code rc = w->request ? hk_wire_init(&wire, &w->mem, err) : no_memory(err);
    if (rc != HK_OK)
        return rc;
    rc = hk_wire_add_body(&wire, w->op, w->job.request, &why);
    if (rc == HK_OK)
        rc = hk_wire_read(&wire, w->op, w->request, &said, &why);
    if (rc != HK_OK)
        return hk_err_set(err, rc, "its request cannot be read: %s%s%s", wire.wrong ? wire.wrong : "",
                          wire.wrong ? " " : "", why.message);
    return w->op->check ? w->op->check(w->desk, w->request, err) : HK_OK;
}

/* ---- one batch ---- */

static enum hk_code save(struct work *w, enum hk_job_status status, const struct hk_err *failed,
                         struct hk_err *err)
{
    const struct hk_job_save s = {.grip = w->run.grip,
                                  .status = status,
                                  .progress = w->job.progress,
                                  .act_id = w->job.act_id,
                                  .cursor = hk_buf_str(&w->cursor),
                                  .result = hk_buf_str(&w->result),
                                  .error_code = failed ? hk_code_name(failed->code) : NULL,
                                  .error = failed ? failed->message : NULL,
                                  .moved = !failed,
                                  .forget = w->op && w->op->job->forgets && status != HK_JOB_RUNNING &&
                                            status != HK_JOB_QUEUED};
    enum hk_code rc = w->desk->jobs->save(w->desk->admin, &s, err);
    w->renewed_us = hk_clock_us();
    return rc;
}

/* The result as text, which is what is kept. */
static enum hk_code write_result(struct work *w, const void *result, struct hk_err *err)
{
    struct hk_json json;
    hk_buf_reset(&w->result);
    hk_json_init(&json, &w->result, false);
    hk_op_write(w->op, &json, result);
    enum hk_code rc = hk_buf_status(&w->result);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "the result is larger than a job can keep");
}

static enum hk_code run_batch(struct work *w, struct hk_pool *mem, void *result, struct hk_err *err)
{
    const struct hk_caller caller = {.role = role_of(w->job.role),
                                     .actor = hk_pool_copy_str(mem, w->job.actor),
                                     .reason = hk_pool_copy_str(mem, w->job.reason),
                                     .may_reveal = w->job.reveal,
                                     .progress = keep_lease,
                                     .stop = should_stop,
                                     .arg = w};
    if (!caller.actor || !caller.reason)
        return no_memory(err);
    struct hk_str before = hk_buf_str(&w->result);
    enum hk_code rc = before.len > 0 ? hk_form_read(before, w->op->form, mem, result, err) : HK_OK;
    if (rc == HK_OK)
        rc = w->op->job->batch(&w->run, &caller, w->request, mem, result, err);
    return rc;
}

/* HK_OK: it is stored, with everything that it changed. */
static enum hk_code do_batch(struct work *w, struct hk_err *err)
{
    struct hk_pool mem = {.blocks = NULL};
    void *result = hk_pool_alloc(&mem, 1, w->op->result_size + 1);
    const struct hk_job_grip grip = {w->job.id, w->job.token, w->worker->lease_ms};
    w->run = (struct hk_job_run){
        .desk = w->desk, .grip = grip, .progress = w->job.progress, .act_id = w->job.act_id};
    (void)hk_str_copy(w->run.cursor, sizeof w->run.cursor, hk_buf_str(&w->cursor));
    enum hk_code rc = result ? run_batch(w, &mem, result, err) : no_memory(err);
    if (rc == HK_OK)
        rc = write_result(w, result, err);
    if (rc == HK_OK) {
        hk_buf_reset(&w->cursor);
        (void)hk_buf_adds(&w->cursor, w->run.cursor);
        w->job.progress = w->run.progress;
        w->job.act_id = w->run.act_id;
        rc = save(w, w->run.more ? HK_JOB_RUNNING : HK_JOB_DONE, NULL, err);
        w->run.lost = w->run.lost || rc == HK_CONFLICT;
    }
    if (rc != HK_OK)
        w->desk->jobs->drop(w->desk->admin);
    hk_pool_fini(&mem);
    return rc;
}

/* ---- all of them ---- */

static bool may_work_later(enum hk_code code)
{
    return code == HK_BUSY || code == HK_UNAVAILABLE || code == HK_NOMEM;
}

static void pause_a_while(const struct work *w)
{
    for (int ms = 0; ms < PAUSE_MS && !is_stopping(w); ms += PAUSE_STEP_MS)
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_STEP_MS * 1000000L}, NULL);
}

/* The end of a job, or of our part in it. What cannot be written now is left to whoever takes it when the lease has run out. */
static enum hk_job_status end_job(struct work *w, enum hk_job_status status, const struct hk_err *failed)
{
    struct hk_err err = {.message = ""};
    enum hk_code rc = read_again(w, &err);
    if (rc == HK_OK)
        rc = save(w, status, failed, &err);
    if (rc == HK_OK)
        return status;
    *w->why = err;
    return HK_JOB_RUNNING;
}

static enum hk_job_status give_up(struct work *w, const struct hk_err *failed)
{
    *w->why = *failed;
    return end_job(w, HK_JOB_FAILED, failed);
}

/* Reads the row again when a batch has failed: it may have been committed all the same. */
static enum hk_code next_batch(struct work *w, bool *stale, struct hk_err *err)
{
    enum hk_code rc = *stale ? read_again(w, err) : HK_OK;
    if (rc != HK_OK) {
        w->run.lost = rc == HK_CONFLICT;
        return rc;
    }
    rc = do_batch(w, err);
    *stale = rc != HK_OK;
    return rc;
}

static enum hk_job_status run_job(struct work *w)
{
    unsigned failed = 0;
    bool stale = false;
    for (;;) {
        struct hk_err err = {.message = ""};
        if (is_stopping(w))
            return end_job(w, HK_JOB_QUEUED, NULL);
        enum hk_code rc = next_batch(w, &stale, &err);
        if (rc == HK_OK && !w->run.more)
            return HK_JOB_DONE;
        if (rc == HK_OK) {
            failed = 0;
            continue;
        }
        *w->why = err;
        if (w->run.lost)
            return HK_JOB_RUNNING;
        if (w->run.cancelled)
            return end_job(w, HK_JOB_CANCELLED, NULL);
        if (is_stopping(w))
            return end_job(w, HK_JOB_QUEUED, NULL);
        if (!may_work_later(rc) || ++failed > RETRIES)
            return give_up(w, &err);
        pause_a_while(w);
    }
}

static enum hk_job_status work_on(struct work *w)
{
    struct hk_err err = {.message = ""};
    if (w->job.cancelled_by.len > 0)
        return end_job(w, HK_JOB_CANCELLED, NULL);
    enum hk_code rc = note_state(w, w->job.cursor, w->job.result, &err);
    if (rc == HK_OK)
        rc = read_request(w, &err);
    *w->why = err;
    if (rc ==
        HK_UNSUPPORTED) /* it is a newer relay's: the lease runs out, and how often it may be taken has an end */
        return HK_JOB_RUNNING;
    return rc == HK_OK ? run_job(w) : give_up(w, &err);
}

/* Texts of the job, for as long as it is worked on: the store's own are gone after its next calls. */
static enum hk_code take_job(struct work *w, bool *out_found, struct hk_err *err)
{
    const struct hk_job *job = NULL;
    bool waiting = false;
    *out_found = false;
    enum hk_code rc = w->desk->jobs->waiting(w->desk->admin, &waiting, err);
    if (rc != HK_OK || !waiting)
        return rc;
    const struct hk_job_lease lease = {w->worker->owner, w->worker->lease_ms};
    rc = w->desk->jobs->take(w->desk->admin, &lease, &job, err);
    if (rc != HK_OK || !job)
        return rc;
    w->job = *job;
    w->renewed_us = hk_clock_us();
    hk_desk_keep(w->desk, &w->mem);
    *out_found = true;
    return HK_OK;
}

enum hk_code hk_job_work(struct hk_desk *desk, const struct hk_job_worker *worker, struct hk_job_worked *out,
                         struct hk_err *err)
{
    struct hk_job_worked worked = {.id = 0};
    struct work w = {.desk = desk, .worker = worker, .why = &worked.why};
    bool found = false;
    hk_buf_init(&w.cursor, HK_JOB_CURSOR_MAX);
    hk_buf_init(&w.result, HK_JOB_RESULT_MAX);
    enum hk_code rc = hk_desk_open(desk, err);
    if (rc == HK_OK)
        rc = take_job(&w, &found, err);
    if (rc == HK_OK && found) {
        w.run.grip = (struct hk_job_grip){w.job.id, w.job.token, worker->lease_ms};
        worked.id = w.job.id;
        (void)hk_str_copy(worked.operation, sizeof worked.operation, w.job.operation);
        worked.status = work_on(&w);
    }
    hk_buf_fini(&w.cursor);
    hk_buf_fini(&w.result);
    hk_pool_fini(&w.mem);
    if (rc == HK_OK)
        *out = worked;
    return rc;
}
