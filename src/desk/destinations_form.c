/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations as forms. */
#include "desk/definitions.h"
#include "desk/destinations.h"
#include "desk/forms.h"

static void form_row(struct hk_form *form, void *result)
{
    struct hk_dest_row *row = result;
    hk_form_text(form, "name", &row->name);
    hk_form_bool(form, "configured", &row->configured);
    hk_form_cstr(form, "from", &row->from);
    hk_form_limit(form, "version", &row->version);
    hk_form_bool(form, "also_stored", &row->also_stored);
    hk_form_cstr(form, "problem", &row->problem);
    hk_form_unusable(form, &row->unusable);
    hk_form_cstr(form, "kind", &row->kind);
    hk_form_cstr(form, "url", &row->url);
    hk_form_cstr(form, "policy", &row->policy);
    hk_form_ratio(form, "rate_per_s", &row->rate_per_s);
    hk_form_limit(form, "concurrency", &row->concurrency);
    hk_form_cstr(form, "order", &row->order);
    hk_form_count(form, "pending", &row->state.pending);
    hk_form_count(form, "retrying", &row->state.retrying);
    hk_form_count(form, "dead", &row->state.dead);
    hk_form_held(form, &row->state);
}

void hk_form_destinations(struct hk_form *form, void *result)
{
    struct hk_dests *dests = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(dests->items, dests->n, form_row));
    hk_form_null(form, "next");
    hk_form_time(form, "now", &dests->now_ms);
}

void hk_form_destination_paused(struct hk_form *form, void *result)
{
    struct hk_dest_paused *done = result;
    hk_form_cstr(form, "destination", &done->destination);
    hk_form_bool(form, "paused", &done->paused);
    hk_form_bool(form, "changed", &done->changed);
}

void hk_form_destination_tested(struct hk_form *form, void *result)
{
    struct hk_dest_tested *tested = result;
    struct hk_delivered *got = &tested->got;
    bool is_ok = got->failure_class == HK_CLASS_SUCCESS;
    uint32_t status = got->status > 0 ? (uint32_t)got->status : 0;
    hk_form_cstr(form, "destination", &tested->destination);
    hk_form_cstr(form, "kind", &tested->kind);
    hk_form_cstr(form, "url", &tested->url);
    hk_form_bool(form, "ok", &is_ok);
    hk_form_choice(form, "class", &got->failure_class, hk_class_name, HK_NCLASSES);
    hk_form_str(form, "cause", &got->cause);
    hk_form_limit(form, "status", &status);
    hk_form_choice(form, "fault", &got->fault, hk_fault_name, HK_NFAULTS);
    hk_form_uint(form, "duration_ms", &got->duration_ms);
    hk_form_str(form, "address", &got->address);
    hk_form_str(form, "error", &got->error);
    hk_form_cstr(form, "message_id", &tested->message_id);
    hk_form_str(form, "request_headers", &got->request_headers);
    hk_form_str(form, "response_headers", &got->response_headers);
    hk_form_bytes(form, "response_body", &got->body);
    if (hk_form_reads(form))
        got->status = (int)(status & INT32_MAX);
}

void hk_form_destination_defined(struct hk_form *form, void *result)
{
    struct hk_dest_defined *done = result;
    hk_form_cstr(form, "destination", &done->destination);
    hk_form_cstr(form, "did", &done->did);
    hk_form_uint(form, "version", &done->version);
    hk_form_time(form, "now", &done->now_ms);
}

void hk_form_destination_shown(struct hk_form *form, void *result)
{
    struct hk_dest_shown *shown = result;
    hk_form_cstr(form, "destination", &shown->destination);
    hk_form_cstr(form, "from", &shown->from);
    hk_form_bool(form, "also_stored", &shown->also_stored);
    hk_form_cstr(form, "kind", &shown->kind);
    hk_form_cstr(form, "url", &shown->url);
    hk_form_cstr(form, "policy", &shown->policy);
    hk_form_ratio(form, "rate_per_s", &shown->rate_per_s);
    hk_form_limit(form, "concurrency", &shown->concurrency);
    hk_form_cstr(form, "order", &shown->order);
    hk_form_cstr(form, "problem", &shown->problem);
    hk_form_unusable(form, &shown->unusable);
    hk_form_limit(form, "version", &shown->version);
    hk_form_raw(form, "definition", &shown->definition);
    hk_form_time(form, "created_at", &shown->created_ms);
    hk_form_str(form, "created_by", &shown->created_by);
    hk_form_time(form, "changed_at", &shown->changed_ms);
    hk_form_str(form, "changed_by", &shown->changed_by);
    hk_form_str(form, "reason", &shown->reason);
}

static void form_applied_row(struct hk_form *form, void *result)
{
    struct hk_dest_applied_row *row = result;
    hk_form_text(form, "destination", &row->destination);
    hk_form_cstr(form, "did", &row->did);
    hk_form_uint(form, "version", &row->version);
}

void hk_form_destinations_applied(struct hk_form *form, void *result)
{
    struct hk_dest_applied *done = result;
    hk_form_bool(form, "dry_run", &done->dry_run);
    hk_form_uint(form, "created", &done->created);
    hk_form_uint(form, "updated", &done->updated);
    hk_form_uint(form, "deleted", &done->deleted);
    hk_form_uint(form, "unchanged", &done->unchanged);
    hk_form_list(form, "items", &HK_FORM_ITEMS(done->items, done->n, form_applied_row));
    hk_form_stopped(form, &done->stopped);
}
