/* SPDX-License-Identifier: Apache-2.0 */
/* Redrives as forms. */
#include "base/str.h"
#include "desk/forms.h"
#include "desk/redrive.h"

static void form_pace(struct hk_form *form, struct hk_redrive_pace *pace)
{
    double rate = pace->rate_per_s > 0 ? pace->rate_per_s : HK_REDRIVE_RATE;
    hk_form_double(form, "rate_per_s", &rate);
    hk_form_uint(form, "ramp_ms", &pace->ramp_ms);
    hk_form_uint(form, "canary", &pace->canary);
    hk_form_double(form, "abort_if_failing", &pace->abort_ratio);
    if (hk_form_reads(form))
        pace->rate_per_s = rate;
}

static void form_group(struct hk_form *form, void *result)
{
    struct hk_letter_group *g = result;
    hk_form_str(form, "group", &g->fingerprint);
    hk_form_str(form, "destination", &g->destination);
    hk_form_str(form, "reason_code", &g->reason);
    hk_form_uint(form, "letters", &g->n);
    hk_form_uint(form, "may_have_arrived", &g->maybe);
}

void hk_form_redrive_plan(struct hk_form *form, void *result)
{
    struct hk_redrive_plan *plan = result;
    bool is_started = plan->id != 0;
    if (hk_form_if(form, "redrive", &is_started)) {
        hk_form_id(form, "redrive", &plan->id);
        hk_form_end(form);
    }
    hk_form_cstr(form, "filter", &plan->filter);
    hk_form_cstr(form, "to", &plan->to);
    hk_form_count(form, "letters", &plan->count);
    hk_form_uint(form, "may_have_arrived", &plan->groups.maybe);
    form_pace(form, &plan->pace);
    hk_form_uint(form, "estimated_ms", &plan->eta_ms);
    hk_form_bool(form, "relay_running", &plan->relay_runs);
    hk_form_cstr(form, "paused_destination", &plan->paused);
    hk_form_cstr(form, "unknown_destination", &plan->unknown);
    hk_form_list(form, "groups", &HK_FORM_ITEMS(plan->groups.items, plan->groups.n, form_group));
    hk_form_bool(form, "more_groups", &plan->groups.more);
    hk_form_id(form, "running_already", &plan->twin);
}

void hk_form_redrive_job(struct hk_form *form, void *result)
{
    struct hk_redrive_job *job = result;
    struct hk_redrive_facts *f = &job->facts;
    uint64_t waiting = hk_redrive_waiting(f);
    hk_form_id(form, "id", &job->id);
    hk_form_choice(form, "status", &job->status, hk_redrive_status_name, HK_NREDRIVE_STATUSES);
    hk_form_str(form, "filter", &job->filter);
    hk_form_str(form, "to", &job->to);
    form_pace(form, &job->pace);
    hk_form_uint(form, "total", &f->total);
    hk_form_uint(form, "matched_later", &job->later);
    hk_form_uint(form, "requeued", &f->requeued);
    hk_form_uint(form, "resolved", &f->resolved);
    hk_form_uint(form, "failed", &f->failed);
    hk_form_uint(form, "struggling", &f->struggling);
    hk_form_uint(form, "waiting", &waiting);
    hk_form_str(form, "actor", &job->actor);
    hk_form_str(form, "reason", &job->reason);
    hk_form_time(form, "created_at", &job->created_ms);
    hk_form_time(form, "started_at", &f->started_ms);
    hk_form_time(form, "ended_at", &job->ended_ms);
    hk_form_str(form, "ending", &job->ending);
    hk_form_str(form, "paused_destination", &job->held);
    hk_form_maybe(form, "estimated_ms", &job->eta_ms);
}

void hk_form_redrives(struct hk_form *form, void *result)
{
    struct hk_redrive_jobs *jobs = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(jobs->items, jobs->n, hk_form_redrive_job));
    hk_form_null(form, "next");
    hk_form_time(form, "now", &jobs->now_ms);
}

void hk_form_redrive(struct hk_form *form, void *result)
{
    struct hk_redrive_shown *shown = result;
    hk_form_redrive_job(form, &shown->job);
    hk_form_time(form, "now", &shown->now_ms);
}
