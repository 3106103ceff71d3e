/* SPDX-License-Identifier: Apache-2.0 */
/* enqueue and messages as forms. */
#include "base/str.h"
#include "desk/enqueue.h"
#include "desk/explain.h"
#include "desk/forms.h"
#include "desk/messages.h"

void hk_form_taken(struct hk_form *form, void *result)
{
    hk_form_str(form, "message_id", result);
}

void hk_form_enqueued(struct hk_form *form, void *result)
{
    struct hk_enqueued *one = result;
    hk_form_str(form, "message_id", &one->message_id);
    hk_form_cstr(form, "warning", &one->warning);
}

/* ---- rows ---- */

static void form_done(struct hk_form *form, const char *key, struct hk_row *row, enum hk_state state)
{
    int64_t ms = row->state == state ? row->done_ms : 0;
    hk_form_time(form, key, &ms);
    if (hk_form_reads(form) && row->state == state)
        row->done_ms = ms;
}

/* The facts of one row, without its details. */
static void form_row(struct hk_form *form, struct hk_row *row)
{
    hk_form_id(form, "outbox_id", &row->outbox_id);
    hk_form_str(form, "message_id", &row->message_id);
    hk_form_str(form, "destination", &row->destination);
    hk_form_str(form, "event_type", &row->event_type);
    hk_form_choice(form, "status", &row->state, hk_state_name, HK_NSTATES);
    hk_form_uint(form, "attempts", &row->attempts);
    hk_form_time(form, "next_attempt_at", &row->next_ms);
    hk_form_time(form, "last_attempt_at", &row->last_attempt_ms);
    hk_form_str(form, "last_error", &row->last_error);
    hk_form_str(form, "cause", &row->cause);
    hk_form_str(form, "locked_by", &row->locked_by);
    hk_form_time(form, "locked_at", &row->locked_ms);
    hk_form_time(form, "created_at", &row->created_ms);
    form_done(form, "sent_at", row, HK_SENT);
    form_done(form, "dead_at", row, HK_STATE_DEAD);
    form_done(form, "cancelled_at", row, HK_STATE_CANCELLED);
    hk_form_str(form, "message_key", &row->key);
    hk_form_str(form, "correlation_id", &row->correlation_id);
    hk_form_uint(form, "crashes", &row->crashes);
    hk_form_uint(form, "life", &row->life);
}

static void form_listed(struct hk_form *form, void *result)
{
    struct hk_row *row = result;
    form_row(form, row);
    hk_form_str(form, "cancelled_reason", &row->reason);
}

void hk_form_messages(struct hk_form *form, void *result)
{
    struct hk_messages *found = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(found->items, found->n, form_listed));
    hk_form_chars(form, "next", found->next, sizeof found->next);
    hk_form_limit(form, "looked", &found->looked);
}

static void form_payload(struct hk_form *form, struct hk_row *row)
{
    bool is_shown = row->has_payload && row->payload.ptr;
    bool is_cut = row->payload.len < row->payload_bytes;
    uint64_t bytes = row->has_payload ? row->payload_bytes : UINT64_MAX;
    hk_form_maybe(form, "payload_bytes", &bytes);
    if (hk_form_reads(form)) {
        row->has_payload = bytes != UINT64_MAX;
        row->payload_bytes = row->has_payload ? bytes : 0;
    }
    if (hk_form_if(form, "payload_cut", &is_shown)) {
        hk_form_bytes(form, "payload", &row->payload);
        hk_form_bool(form, "payload_cut", &is_cut); /* its length says so */
        hk_form_end(form);
    }
}

static void form_shown(struct hk_form *form, void *result)
{
    struct hk_row *row = result;
    uint32_t status = row->status > 0 ? (uint32_t)row->status : 0;
    form_row(form, row);
    hk_form_str(form, "letter_status", &row->letter_status);
    hk_form_str(form, "cancelled_by", &row->actor);
    hk_form_str(form, "cancelled_reason", &row->reason);
    hk_form_limit(form, "answer_status", &status);
    hk_form_str(form, "error_detail", &row->error_detail);
    hk_form_time(form, "first_failed_at", &row->first_failed_ms);
    hk_form_str(form, "not_before", &row->not_before);
    hk_form_str(form, "expires_at", &row->expires_at);
    hk_form_str(form, "policy", &row->policy);
    hk_form_limit(form, "max_attempts", &row->max_attempts);
    hk_form_str(form, "traceparent", &row->traceparent);
    hk_form_str(form, "idempotency_key", &row->idempotency_key);
    hk_form_str(form, "content_type", &row->content_type);
    hk_form_str(form, "encoding", &row->encoding);
    hk_form_str(form, "headers", &row->headers);
    form_payload(form, row);
    hk_form_limit(form, "attempts_allowed", &row->given_attempts);
    hk_form_choice(form, "place", &row->place, hk_place_name, HK_NPLACES);
    hk_form_id(form, "place_id", &row->id);
    if (hk_form_reads(form))
        row->status = (int)(status & INT32_MAX);
}

void hk_form_message(struct hk_form *form, void *result)
{
    struct hk_message_shown *m = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(m->is.rows, m->is.n_rows, form_shown));
    hk_form_list(form, "attempts", &HK_FORM_ITEMS(m->is.attempts, m->is.n_attempts, hk_form_attempt));
    hk_form_null(form, "next");
}

void hk_form_attempts(struct hk_form *form, void *result)
{
    struct hk_attempts *page = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(page->items, page->n, hk_form_attempt));
    hk_form_id(form, "next", &page->next);
}

/* ---- explain ---- */

static void form_cause(struct hk_form *form, void *result)
{
    struct hk_cause *c = result;
    hk_form_cstr(form, "cause", &c->cause);
    hk_form_cstr(form, "text", &c->text);
    hk_form_cstr(form, "do", &c->advice);
    hk_form_time(form, "since", &c->since_ms);
    hk_form_time(form, "until", &c->until_ms);
    hk_form_str(form, "by", &c->by);
    hk_form_str(form, "reason", &c->reason);
    hk_form_str(form, "blocked_by", &c->message_id);
    hk_form_id(form, "letter", &c->letter_id);
    hk_form_cstr(form, "code", &c->code);
    hk_form_raw(form, "values", &c->values);
}

static void form_explained(struct hk_form *form, void *result)
{
    struct hk_explained *e = result;
    const char *weightiest = e->causes[0].cause;
    hk_form_str(form, "message_id", &e->message_id);
    hk_form_str(form, "destination", &e->to);
    hk_form_choice(form, "status", &e->state, hk_state_name, HK_NSTATES);
    hk_form_cstr(form, "cause", &weightiest);
    hk_form_list(form, "causes",
                 &(struct hk_form_list){.items = e->causes,
                                        .n = &e->n,
                                        .most = HK_CAUSES_MAX,
                                        .size = sizeof e->causes[0],
                                        .fn = form_cause});
    hk_form_bool(form, "by_route", &e->by_route);
}

void hk_form_explanation(struct hk_form *form, void *result)
{
    struct hk_explanation *x = result;
    const char *weightiest = x->n > 0 ? x->items[0].causes[0].cause : "no_such_message";
    hk_form_cstr(form, "message_id", &x->message_id);
    hk_form_list(form, "items", &HK_FORM_ITEMS(x->items, x->n, form_explained));
    hk_form_cstr(form, "cause", &weightiest);
    hk_form_bool(form, "found", &x->found);
}

/* ---- acts ---- */

void hk_form_message_acted(struct hk_form *form, void *result)
{
    struct hk_message_acted *acted = result;
    hk_form_cstr(form, "message_id", &acted->act.message_id);
    hk_form_cstr(form, "act", &acted->verb);
    hk_form_uint(form, "changed", &acted->is.changed);
    hk_form_cstr(form, "actor", &acted->act.actor);
    hk_form_cstr(form, "reason", &acted->act.reason);
    hk_form_time(form, "at", &acted->is.now_ms);
}

static void form_item(struct hk_form *form, void *result)
{
    struct hk_messages_item *item = result;
    hk_form_str(form, "message_id", &item->message_id);
    hk_form_str(form, "destination", &item->destination);
    hk_form_choice(form, "did", &item->did, hk_did_name, HK_DID_REFUSE + 1);
    hk_form_cstr(form, "error", &item->why);
}

static void form_example(struct hk_form *form, void *result)
{
    struct hk_row *row = result;
    hk_form_str(form, "message_id", &row->message_id);
    hk_form_str(form, "destination", &row->destination);
    hk_form_str(form, "event_type", &row->event_type);
    hk_form_choice(form, "status", &row->state, hk_state_name, HK_NSTATES);
    hk_form_time(form, "created_at", &row->created_ms);
}

static void form_outlook(struct hk_form *form, struct hk_messages_acted *o)
{
    struct hk_form_list examples = HK_FORM_ITEMS(o->examples, o->n_examples, form_example);
    examples.in_a_line = true;
    if (!hk_form_if(form, "dry_run", &o->dry_run))
        return;
    hk_form_bool(form, "dry_run", &o->dry_run);
    hk_form_uint(form, "messages", &o->fit);
    hk_form_uint(form, "other_states", &o->others);
    hk_form_list(form, "examples", &examples);
    hk_form_end(form);
}

static void form_acted(struct hk_form *form, struct hk_messages_acted *o)
{
    bool is_done = !o->dry_run;
    if (!hk_form_if(form, "changed", &is_done))
        return;
    hk_form_uint(form, "changed", &o->done);
    hk_form_uint(form, "unchanged", &o->nothing);
    hk_form_uint(form, "missing", &o->missing);
    hk_form_uint(form, "refused", &o->refused);
    hk_form_id(form, "act_id", &o->act_id);
    hk_form_cstr(form, "actor", &o->actor);
    hk_form_cstr(form, "reason", &o->reason);
    hk_form_time(form, "at", &o->at_ms);
    hk_form_stopped(form, &o->stopped);
    hk_form_end(form);
}

void hk_form_messages_acted(struct hk_form *form, void *result)
{
    struct hk_messages_acted *o = result;
    struct hk_form_list items = HK_FORM_ITEMS(o->items, o->n, form_item);
    items.in_a_line = true; /* there may be a thousand */
    hk_form_choice(form, "act", &o->kind, hk_messages_verb, HK_MESSAGES_ERASE + 1);
    hk_form_cstr(form, "message_id", &o->message_id);
    form_outlook(form, o);
    form_acted(form, o);
    hk_form_uint(form, "not_cancelled_any_more", &o->overtaken);
    hk_form_list(form, "items", &items);
    hk_form_uint(form, "items_in_all", &o->n_all);
    hk_form_id(form, "undone_act", &o->undone);
}
