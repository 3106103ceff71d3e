/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: start, list, show, cancel. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "desk/whoami.h"
#include "desk/wire.h"
#include "payload/scan.h"

/* ---- start ---- */

enum hk_code hk_job_check(const struct hk_op *op, const void *request, struct hk_err *err)
{
    if (!op->job)
        return hk_err_set(err, HK_INVALID, "this cannot run in the background");
    if (hk_op_is_dry_run(op, request))
        return hk_err_set(err, HK_INVALID, "a dry run changes nothing and is quick: leave out background");
    return HK_OK;
}

/* A row may contain anything: shows its text only if that is JSON. */
static void show_json(struct hk_str *text)
{
    if (text->len > 0 && hk_scan_check(*text, NULL) != HK_OK)
        *text = (struct hk_str){"", 0};
}

static enum hk_code show_job(struct hk_desk *desk, int64_t id, struct hk_pool *mem, struct hk_job_shown *out,
                             struct hk_err *err)
{
    const struct hk_job *job = NULL;
    int64_t now_ms = 0;
    enum hk_code rc = desk->jobs->find(desk->admin, id, &job, &now_ms, err);
    if (rc != HK_OK)
        return rc;
    *out = (struct hk_job_shown){.job = *job, .now_ms = now_ms};
    show_json(&out->job.request);
    show_json(&out->job.result);
    hk_desk_keep(desk, mem);
    return HK_OK;
}

static enum hk_code create_job(struct hk_desk *desk, const struct hk_op *op, const struct hk_caller *caller,
                               struct hk_str request, int64_t *out_id, struct hk_err *err)
{
    char name[sizeof((struct hk_job_worked *)NULL)->operation];
    (void)snprintf(name, sizeof name, "%s %s", op->noun, op->verb);
    const struct hk_job_new ask = {.operation = hk_str_of(name),
                                   .request = request,
                                   .actor = caller->actor,
                                   .reason = caller->reason ? caller->reason : "",
                                   .role = hk_role_name(caller->role),
                                   .reveal = caller->may_reveal};
    return desk->jobs->create(desk->admin, &ask, out_id, err);
}

enum hk_code hk_job_start(struct hk_desk *desk, const struct hk_op *op, const struct hk_caller *caller,
                          const void *request, struct hk_pool *mem, struct hk_job_shown *out,
                          struct hk_err *err)
{
    struct hk_buf body;
    int64_t id = 0;
    void *frozen = hk_pool_copy(mem, request, op->request_size);
    if (!frozen)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_init(&body, HK_JOB_REQUEST_MAX);
    enum hk_code rc = op->job->freeze(desk, caller, frozen, mem, err);
    if (rc == HK_OK)
        rc = hk_wire_write_fields(op, frozen, &body, err);
    if (rc == HK_OK)
        rc = create_job(desk, op, caller, hk_buf_str(&body), &id, err);
    hk_buf_fini(&body);
    return rc == HK_OK ? show_job(desk, id, mem, out, err) : rc;
}

/* ---- list, show, cancel ---- */

static bool read_id(const char *text, int64_t *out)
{
    uint64_t id = 0;
    if (!text || hk_parse_u64(hk_str_of(text), &id, NULL) != HK_OK || id == 0 || id > INT64_MAX)
        return false;
    *out = (int64_t)id;
    return true;
}

static enum hk_code check_list(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_job_list_ask *ask = request;
    int64_t id = 0;
    if (ask->after && !read_id(ask->after, &id))
        return hk_desk_wrong(desk, "after", err, "takes what an earlier list gave as next, not '%s'",
                             ask->after);
    return HK_OK;
}

static enum hk_code list_jobs(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_job_list_ask *ask, struct hk_pool *mem,
                              struct hk_job_listed *out, struct hk_err *err)
{
    const struct hk_jobs *jobs = NULL;
    struct hk_job_page page = {.limit = (uint32_t)ask->limit, .open_only = ask->running};
    (void)caller;
    (void)read_id(ask->after, &page.before_id);
    enum hk_code rc = desk->jobs->list(desk->admin, &page, &jobs, err);
    if (rc != HK_OK)
        return rc;
    *out = (struct hk_job_listed){.jobs = *jobs};
    if (jobs->more && jobs->n > 0)
        (void)snprintf(out->next, sizeof out->next, "%" PRId64, jobs->items[jobs->n - 1].id);
    hk_desk_keep(desk, mem);
    return HK_OK;
}

static enum hk_code check_job(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_job_ask *ask = request;
    int64_t id = 0;
    (void)desk;
    return read_id(ask->job_id, &id)
               ? HK_OK
               : hk_err_set(err, HK_INVALID, "the number of a job is expected (hikyaku job list)");
}

static enum hk_code show(struct hk_desk *desk, const struct hk_caller *caller, const struct hk_job_ask *ask,
                         struct hk_pool *mem, struct hk_job_shown *out, struct hk_err *err)
{
    int64_t id = 0;
    (void)caller;
    (void)read_id(ask->job_id, &id);
    return show_job(desk, id, mem, out, err);
}

static enum hk_code cancel(struct hk_desk *desk, const struct hk_caller *caller, const struct hk_job_ask *ask,
                           struct hk_pool *mem, struct hk_job_shown *out, struct hk_err *err)
{
    int64_t id = 0;
    (void)read_id(ask->job_id, &id);
    enum hk_code rc = desk->jobs->cancel(desk->admin, id, caller->actor, caller->reason, err);
    return rc == HK_OK ? show_job(desk, id, mem, out, err) : rc;
}

/* ---- the table ---- */

HK_OP_RUN(list_jobs)
HK_OP_RUN(show)
HK_OP_RUN(cancel)

static const struct hk_arg list_args[] = {
    {.name = "running",
     .offset = offsetof(struct hk_job_list_ask, running),
     .help = "list only waiting and running jobs"},
    {HK_ARG(hk_job_list_ask, limit, HK_ARG_NUMBER, "N", "list at most this many (default: 50)"), .lo = 1,
     .hi = HK_JOBS_LIST_MAX, .fallback = 50},
    {HK_ARG(hk_job_list_ask, after, HK_ARG_TEXT, "CURSOR", "continue where an earlier list ended")},
    {.name = NULL}};

static const struct hk_arg job_args[] = {{HK_SUBJECT(hk_job_ask, job_id, "ID", NULL)}, {.name = NULL}};

const struct hk_op hk_op_job_list = {.noun = "job",
                                     .verb = "list",
                                     .summary = "list jobs, newest first",
                                     .route = "GET /jobs",
                                     .role = HK_ROLE_VIEWER,
                                     .store = true,
                                     .args = list_args,
                                     .request_size = sizeof(struct hk_job_list_ask),
                                     .result_size = sizeof(struct hk_job_listed),
                                     .check = check_list,
                                     .run = list_jobs_op,
                                     .form = hk_form_jobs};

const struct hk_op hk_op_job_show = {
    .noun = "job",
    .verb = "show",
    .summary = "show how far a job has come, and its result",
    .details = "With --wait the exit code is 1 when the job failed or was cancelled.",
    .route = "GET /jobs/{job_id}",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = job_args,
    .request_size = sizeof(struct hk_job_ask),
    .result_size = sizeof(struct hk_job_shown),
    .check = check_job,
    .run = show_op,
    .form = hk_form_job};

const struct hk_op hk_op_job_cancel = {
    .noun = "job",
    .verb = "cancel",
    .summary = "cancel a job before its next batch; what it has changed stays changed",
    .route = "POST /jobs/{job_id}/cancel",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = job_args,
    .request_size = sizeof(struct hk_job_ask),
    .result_size = sizeof(struct hk_job_shown),
    .check = check_job,
    .run = cancel_op,
    .form = hk_form_job};
