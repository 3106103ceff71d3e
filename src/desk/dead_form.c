/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on dead letters as forms. */
#include "base/str.h"
#include "desk/dead.h"
#include "desk/forms.h"

const char *hk_did_name(enum hk_letter_did did)
{
    static const char *const names[] = {[HK_DID_IT] = "done",
                                        [HK_DID_NOTHING] = "unchanged",
                                        [HK_DID_NOT_FIND] = "missing",
                                        [HK_DID_REFUSE] = "refused"};
    return names[did];
}

/* Why it ended early, where it did. */
void hk_form_stopped(struct hk_form *form, struct hk_err *stopped)
{
    bool has_stopped = stopped->code != HK_OK;
    if (hk_form_if(form, "stopped", &has_stopped)) {
        hk_form_failure(form, "stopped", stopped);
        hk_form_choice(form, "stopped_code", &stopped->code, hk_code_name, HK_NCODES);
        hk_form_end(form);
    }
}

/* ---- on some, or on all that fit ---- */

static void form_item(struct hk_form *form, void *result)
{
    struct hk_dead_item *item = result;
    bool is_requeue = item->message_id.ptr != NULL, is_named = item->name.ptr != NULL;
    hk_form_id(form, "id", &item->id);
    if (hk_form_if(form, "name", &is_named)) {
        hk_form_str(form, "name", &item->name);
        hk_form_end(form);
    }
    hk_form_choice(form, "did", &item->did, hk_did_name, HK_DID_REFUSE + 1);
    if (hk_form_if(form, "message_id", &is_requeue)) {
        hk_form_str(form, "message_id", &item->message_id);
        hk_form_end(form);
    }
    hk_form_cstr(form, "error", &item->why);
}

static void form_outlook(struct hk_form *form, struct hk_dead_acted *o)
{
    if (!hk_form_if(form, "dry_run", &o->dry_run))
        return;
    hk_form_bool(form, "dry_run", &o->dry_run);
    hk_form_count(form, "letters", &o->fit);
    hk_form_uint(form, "may_have_arrived", &o->maybe);
    hk_form_count(form, "other_states", &o->others);
    hk_form_end(form);
}

static void form_done(struct hk_form *form, struct hk_dead_acted *o)
{
    bool is_done = !o->dry_run, is_restore = o->kind == HK_DEAD_RESTORE;
    if (!hk_form_if(form, "changed", &is_done))
        return;
    hk_form_uint(form, "changed", &o->done);
    hk_form_uint(form, "unchanged", &o->nothing);
    hk_form_uint(form, "missing", &o->missing);
    hk_form_uint(form, "refused", &o->refused);
    if (hk_form_if(form, "overtaken", &is_restore)) {
        hk_form_uint(form, "overtaken", &o->overtaken);
        hk_form_end(form);
    }
    hk_form_id(form, "act_id", &o->act_id);
    hk_form_cstr(form, "actor", &o->actor);
    hk_form_cstr(form, "reason", &o->reason);
    hk_form_stopped(form, &o->stopped);
    hk_form_end(form);
}

void hk_form_dead_acted(struct hk_form *form, void *result)
{
    struct hk_dead_acted *o = result;
    struct hk_form_list items = HK_FORM_ITEMS(o->items, o->n, form_item);
    items.in_a_line = true; /* there may be a thousand */
    hk_form_choice(form, "act", &o->kind, hk_dead_verb, HK_DEAD_ERASE + 1);
    form_outlook(form, o);
    form_done(form, o);
    hk_form_list(form, "items", &items);
    hk_form_uint(form, "items_in_all", &o->n_all);
    hk_form_bool(form, "named", &o->one);
    hk_form_id(form, "undone_act", &o->undone);
    hk_form_id(form, "edited_under_same_id", &o->same_edited);
}

/* ---- fix ---- */

static void form_sample(struct hk_form *form, void *result)
{
    struct hk_dead_told *told = result;
    hk_form_id(form, "id", &told->id);
    hk_form_str(form, "message_id", &told->message_id);
    hk_form_str(form, "diff", &told->text);
}

static void form_failed(struct hk_form *form, void *result)
{
    struct hk_dead_told *told = result;
    hk_form_id(form, "id", &told->id);
    hk_form_str(form, "message_id", &told->message_id);
    hk_form_str(form, "error", &told->text);
}

void hk_form_dead_fixed(struct hk_form *form, void *result)
{
    struct hk_dead_fixed *o = result;
    struct hk_form_list samples = HK_FORM_ITEMS(o->samples, o->n_samples, form_sample);
    struct hk_form_list failures = {.items = o->failures,
                                    .n = &o->n_failures,
                                    .most = HK_DEAD_FAILURES,
                                    .size = sizeof o->failures[0],
                                    .fn = form_failed,
                                    .in_a_line = true};
    samples.in_a_line = true;
    hk_form_bool(form, "dry_run", &o->dry_run);
    hk_form_uint(form, "matched", &o->matched);
    hk_form_uint(form, "changed", &o->changed);
    hk_form_uint(form, "unchanged", &o->unchanged);
    hk_form_uint(form, "failed", &o->failed);
    hk_form_uint(form, "may_have_arrived", &o->maybe);
    hk_form_id(form, "act_id", &o->act_id);
    hk_form_stopped(form, &o->stopped);
    hk_form_list(form, "samples", &samples);
    hk_form_list(form, "failures", &failures);
    hk_form_count(form, "letters", &o->count);
}

/* ---- one ---- */

static void form_answer(struct hk_form *form, struct hk_dead_sent *sent)
{
    struct hk_delivered *got = &sent->got;
    bool is_sent = !sent->dry_run;
    if (!hk_form_if(form, "ok", &is_sent))
        return;
    hk_form_bool(form, "ok", &sent->ok);
    hk_form_choice(form, "class", &got->failure_class, hk_class_name, HK_NCLASSES);
    hk_form_str(form, "cause", &got->cause);
    hk_form_int(form, "status", &got->status);
    hk_form_uint(form, "duration_ms", &got->duration_ms);
    hk_form_bool(form, "possibly_delivered", &got->possibly_delivered);
    hk_form_str(form, "address", &got->address);
    hk_form_bytes(form, "error", &got->error);
    hk_form_bytes(form, "request_headers", &got->request_headers);
    hk_form_bytes(form, "response_headers", &got->response_headers);
    hk_form_bytes(form, "response_body", &got->body);
    hk_form_failure(form, "unrecorded", &sent->unrecorded);
    hk_form_end(form);
}

void hk_form_dead_sent(struct hk_form *form, void *result)
{
    struct hk_dead_sent *sent = result;
    hk_form_id(form, "id", &sent->id);
    hk_form_str(form, "message_id", &sent->message_id);
    hk_form_str(form, "destination", &sent->destination);
    if (hk_form_if(form, "dry_run", &sent->dry_run)) {
        hk_form_bool(form, "dry_run", &sent->dry_run);
        hk_form_end(form);
    }
    bool is_dry = sent->dry_run;
    hk_form_cstr(form, "url", &sent->url);
    if (hk_form_if(form, "payload_bytes", &is_dry)) {
        hk_form_uint(form, "payload_bytes", &sent->payload_bytes);
        hk_form_end(form);
    }
    form_answer(form, sent);
}

void hk_form_dead_opened(struct hk_form *form, void *result)
{
    struct hk_dead_opened *opened = result;
    hk_form_id(form, "id", &opened->id);
    hk_form_uint(form, "payload_version", &opened->version);
    hk_form_bytes(form, "payload", &opened->payload);
}

void hk_form_dead_edited(struct hk_form *form, void *result)
{
    struct hk_dead_edited *edited = result;
    hk_form_id(form, "id", &edited->id);
    hk_form_bool(form, "changed", &edited->changed);
    hk_form_bool(form, "dry_run", &edited->dry_run);
    hk_form_uint(form, "payload_version", &edited->version);
    hk_form_str(form, "diff", &edited->diff);
    hk_form_bool(form, "same_values", &edited->same);
    hk_form_bool(form, "same_bytes", &edited->same_bytes);
}
