/* SPDX-License-Identifier: Apache-2.0 */
/* Redrives as JSON. */
#include "desk/forms.h"
#include "desk/redrive.h"

static void put_pace(struct hk_json *json, const struct hk_redrive_pace *pace)
{
    hk_put_double(json, "rate_per_s", pace->rate_per_s > 0 ? pace->rate_per_s : HK_REDRIVE_RATE);
    hk_put_u64(json, "ramp_ms", pace->ramp_ms);
    hk_put_u64(json, "canary", pace->canary);
    hk_put_double(json, "abort_if_failing", pace->abort_ratio);
}

void hk_encode_redrive_plan(struct hk_json *json, const void *result)
{
    const struct hk_redrive_plan *plan = result;
    hk_json_object(json);
    if (plan->id != 0)
        hk_put_id(json, "redrive", plan->id);
    hk_put_cstr(json, "filter", plan->filter);
    hk_put_cstr(json, "to", plan->to);
    hk_put_count(json, "letters", plan->count);
    hk_put_u64(json, "may_have_arrived", plan->groups.maybe);
    put_pace(json, &plan->pace);
    hk_put_u64(json, "estimated_ms", plan->eta_ms);
    hk_put_bool(json, "relay_running", plan->relay_runs);
    hk_put_cstr(json, "paused_destination", plan->paused);
    hk_put_cstr(json, "unknown_destination", plan->unknown);
    hk_json_key(json, "groups");
    hk_json_array(json);
    for (size_t i = 0; i < plan->groups.n; i++) {
        const struct hk_letter_group *g = &plan->groups.items[i];
        hk_json_object(json);
        hk_put_str(json, "group", g->fingerprint);
        hk_put_str(json, "destination", g->destination);
        hk_put_str(json, "reason_code", g->reason);
        hk_put_u64(json, "letters", g->n);
        hk_put_u64(json, "may_have_arrived", g->maybe);
        hk_json_end(json);
    }
    hk_json_end(json);
    hk_json_end(json);
}

static void put_job(struct hk_json *json, const struct hk_redrive_job *job, int64_t now_ms)
{
    const struct hk_redrive_facts *f = &job->facts;
    bool running = job->status == HK_REDRIVE_RUNNING;
    hk_json_object(json);
    hk_put_id(json, "id", job->id);
    hk_put_cstr(json, "status", hk_redrive_status_name(job->status));
    hk_put_str(json, "filter", job->filter);
    hk_put_str(json, "to", job->to);
    put_pace(json, &job->pace);
    hk_put_u64(json, "total", f->total);
    hk_put_u64(json, "requeued", f->requeued);
    hk_put_u64(json, "resolved", f->resolved);
    hk_put_u64(json, "failed", f->failed);
    hk_put_u64(json, "struggling", f->struggling);
    hk_put_u64(json, "waiting", hk_redrive_waiting(f));
    hk_put_str(json, "actor", job->actor);
    hk_put_str(json, "reason", job->reason);
    hk_put_time(json, "created_at", job->created_ms);
    hk_put_time(json, "started_at", f->started_ms);
    hk_put_time(json, "ended_at", job->ended_ms);
    hk_put_str(json, "ending", job->ending);
    hk_put_str(json, "paused_destination", running ? job->held : (struct hk_str){"", 0});
    hk_json_key(json, "estimated_ms");
    if (running)
        hk_json_u64(json, hk_redrive_eta_ms(&job->pace, f, now_ms));
    else
        hk_json_null(json);
    hk_json_end(json);
}

void hk_encode_redrives(struct hk_json *json, const void *result)
{
    const struct hk_redrive_jobs *jobs = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < jobs->n; i++)
        put_job(json, &jobs->items[i], jobs->now_ms);
    hk_json_end(json);
    hk_put_cstr(json, "next", NULL);
    hk_json_end(json);
}

void hk_encode_redrive(struct hk_json *json, const void *result)
{
    const struct hk_redrive_shown *shown = result;
    put_job(json, &shown->job, shown->now_ms);
}
