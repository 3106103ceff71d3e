/* SPDX-License-Identifier: Apache-2.0 */
/* Members that the JSON of several operations has. */
#include "base/str.h"
#include "desk/forms.h"

void hk_form_count_members(struct hk_form *form, void *result)
{
    struct hk_count *count = result;
    hk_form_uint(form, "n", &count->n);
    hk_form_bool(form, "estimate", &count->about);
}

void hk_form_count(struct hk_form *form, const char *key, struct hk_count *count)
{
    hk_form_object(form, key, NULL, hk_form_count_members, count);
}

void hk_form_exact(struct hk_form *form, const char *key, uint64_t *n)
{
    struct hk_count count = {*n, false};
    hk_form_count(form, key, &count);
    if (hk_form_reads(form))
        *n = count.n;
}

void hk_form_held(struct hk_form *form, struct hk_dest_status *dest)
{
    hk_form_bool(form, "paused", &dest->paused);
    hk_form_str(form, "paused_by", &dest->actor);
    hk_form_str(form, "paused_reason", &dest->reason);
    hk_form_time(form, "paused_at", &dest->since_ms);
    hk_form_time(form, "breaker_open_until", &dest->open_until_ms);
}

void hk_put_count(struct hk_json *json, const char *key, struct hk_count count)
{
    hk_json_key(json, key);
    hk_json_object(json);
    hk_put_u64(json, "n", count.n);
    hk_put_bool(json, "estimate", count.about);
    hk_json_end(json);
}

void hk_put_held(struct hk_json *json, const struct hk_dest_status *dest)
{
    hk_put_bool(json, "paused", dest->paused);
    hk_put_str(json, "paused_by", dest->actor);
    hk_put_str(json, "paused_reason", dest->reason);
    hk_put_time(json, "paused_at", dest->since_ms);
    hk_put_time(json, "breaker_open_until", dest->open_until_ms);
}

void hk_put_row(struct hk_json *json, const struct hk_row *row)
{
    hk_put_id(json, "outbox_id", row->outbox_id);
    hk_put_str(json, "message_id", row->message_id);
    hk_put_str(json, "destination", row->destination);
    hk_put_str(json, "event_type", row->event_type);
    hk_put_str(json, "status", hk_str_of(hk_state_name(row->state)));
    hk_put_u64(json, "attempts", row->attempts);
    hk_put_time(json, "next_attempt_at", row->next_ms);
    hk_put_time(json, "last_attempt_at", row->last_attempt_ms);
    hk_put_str(json, "last_error", row->last_error);
    hk_put_str(json, "cause", row->cause);
    hk_put_str(json, "locked_by", row->locked_by);
    hk_put_time(json, "locked_at", row->locked_ms);
    hk_put_time(json, "created_at", row->created_ms);
    hk_put_time(json, "sent_at", row->state == HK_SENT ? row->done_ms : 0);
    hk_put_time(json, "dead_at", row->state == HK_STATE_DEAD ? row->done_ms : 0);
    hk_put_time(json, "cancelled_at", row->state == HK_STATE_CANCELLED ? row->done_ms : 0);
    hk_put_str(json, "message_key", row->key);
    hk_put_str(json, "correlation_id", row->correlation_id);
    hk_put_u64(json, "crashes", row->crashes);
    hk_put_u64(json, "life", row->life);
}

void hk_put_attempt(struct hk_json *json, const struct hk_tried *a)
{
    hk_json_object(json);
    hk_put_str(json, "destination", a->destination);
    hk_put_u64(json, "life", a->life);
    hk_put_u64(json, "attempt", a->n);
    hk_put_time(json, "started_at", a->started_ms);
    hk_put_u64(json, "duration_ms", a->duration_ms);
    hk_put_limit(json, "status", a->status > 0 ? (uint64_t)a->status : 0);
    hk_put_str(json, "class", a->failure_class);
    hk_put_str(json, "cause", a->cause);
    hk_put_str(json, "error", a->error);
    hk_put_str(json, "address", a->address);
    hk_put_str(json, "request_headers", a->request_headers);
    hk_put_str(json, "response_headers", a->response_headers);
    hk_put_bytes(json, "response_body", a->response_body);
    hk_put_bool(json, "possibly_delivered", a->possibly_delivered);
    hk_json_end(json);
}
