/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as forms. */
#include "base/str.h"
#include "desk/forms.h"
#include "desk/job.h"

void hk_form_job_head(struct hk_form *form, void *result)
{
    struct hk_job *job = result;
    hk_form_id(form, "id", &job->id);
    hk_form_choice(form, "status", &job->status, hk_job_status_name, HK_NJOB_STATUSES);
    hk_form_str(form, "operation", &job->operation);
    hk_form_uint(form, "done", &job->progress.done);
    hk_form_limit(form, "total", &job->progress.total);
    hk_form_uint(form, "changed", &job->progress.changed);
    hk_form_uint(form, "failed", &job->progress.failed);
    hk_form_id(form, "act_id", &job->act_id);
    hk_form_str(form, "error_code", &job->error_code);
    hk_form_str(form, "error", &job->error);
    hk_form_str(form, "cancelled_by", &job->cancelled_by);
    hk_form_str(form, "cancel_reason", &job->cancel_reason);
    hk_form_str(form, "actor", &job->actor);
    hk_form_str(form, "reason", &job->reason);
    hk_form_str(form, "role", &job->role);
    hk_form_str(form, "relay", &job->owner);
    hk_form_time(form, "created_at", &job->created_ms);
    hk_form_time(form, "started_at", &job->started_ms);
    hk_form_time(form, "ended_at", &job->ended_ms);
}

void hk_form_jobs(struct hk_form *form, void *result)
{
    struct hk_job_listed *listed = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(listed->jobs.items, listed->jobs.n, hk_form_job_head));
    hk_form_chars(form, "next", listed->next, sizeof listed->next);
    hk_form_time(form, "now", &listed->jobs.now_ms);
}

void hk_form_job(struct hk_form *form, void *result)
{
    struct hk_job_shown *shown = result;
    hk_form_job_head(form, &shown->job);
    hk_form_raw(form, "request", &shown->job.request);
    hk_form_raw(form, "result", &shown->job.result);
    hk_form_time(form, "now", &shown->now_ms);
}
