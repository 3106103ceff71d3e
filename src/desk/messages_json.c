/* SPDX-License-Identifier: Apache-2.0 */
/* enqueue and messages as JSON. */
#include "base/str.h"
#include "desk/enqueue.h"
#include "desk/explain.h"
#include "desk/forms.h"
#include "desk/messages.h"

void hk_encode_enqueued(struct hk_json *json, const void *result)
{
    const struct hk_enqueued *one = result;
    hk_json_object(json);
    hk_put_str(json, "message_id", one->message_id);
    hk_json_end(json);
}

void hk_encode_messages(struct hk_json *json, const void *result)
{
    const struct hk_messages *found = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (const struct hk_messages_page *page = found->pages; page; page = page->more)
        for (size_t i = 0; i < page->n; i++) {
            hk_json_object(json);
            hk_put_row(json, &page->items[i]);
            hk_json_end(json);
        }
    hk_json_end(json);
    hk_put_cstr(json, "next", found->next[0] ? found->next : NULL);
    hk_put_limit(json, "looked", found->looked);
    hk_json_end(json);
}

static void put_row(struct hk_json *json, const struct hk_row *row, bool payload)
{
    hk_json_object(json);
    hk_put_row(json, row);
    hk_put_str(json, "letter_status", row->letter_status);
    hk_put_str(json, "cancelled_by", row->actor);
    hk_put_str(json, "cancelled_reason", row->reason);
    hk_put_limit(json, "answer_status", row->status > 0 ? (uint64_t)row->status : 0);
    hk_put_str(json, "error_detail", row->error_detail);
    hk_put_time(json, "first_failed_at", row->first_failed_ms);
    hk_put_str(json, "not_before", row->not_before);
    hk_put_str(json, "expires_at", row->expires_at);
    hk_put_str(json, "policy", row->policy);
    hk_put_limit(json, "max_attempts", row->max_attempts);
    hk_put_str(json, "traceparent", row->traceparent);
    hk_put_str(json, "idempotency_key", row->idempotency_key);
    hk_put_str(json, "content_type", row->content_type);
    hk_put_str(json, "encoding", row->encoding);
    hk_put_str(json, "headers", row->headers);
    hk_json_key(json, "payload_bytes");
    if (row->has_payload)
        hk_json_u64(json, row->payload_bytes);
    else
        hk_json_null(json);
    if (payload && row->has_payload) {
        hk_put_bytes(json, "payload", row->payload);
        hk_put_bool(json, "payload_cut", row->payload.len < row->payload_bytes);
    }
    hk_json_end(json);
}

void hk_encode_message(struct hk_json *json, const void *result)
{
    const struct hk_message_shown *m = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < m->is.n_rows; i++)
        put_row(json, &m->is.rows[i], m->payload);
    hk_json_end(json);
    hk_json_key(json, "attempts");
    hk_json_array(json);
    for (size_t i = 0; i < m->is.n_attempts; i++)
        hk_put_attempt(json, &m->is.attempts[i]);
    hk_json_end(json);
    hk_put_cstr(json, "next", NULL);
    hk_json_end(json);
}

static void put_cause(struct hk_json *json, const struct hk_cause *c)
{
    hk_json_object(json);
    hk_put_cstr(json, "cause", c->code);
    hk_put_cstr(json, "text", c->text);
    hk_put_cstr(json, "do", c->advice);
    hk_put_time(json, "since", c->since_ms);
    hk_put_time(json, "until", c->until_ms);
    hk_put_str(json, "by", c->by);
    hk_put_str(json, "reason", c->reason);
    hk_put_str(json, "blocked_by", c->message_id);
    hk_put_id(json, "letter", c->letter_id);
    hk_json_end(json);
}

static void put_explained(struct hk_json *json, const struct hk_explained *e)
{
    hk_json_object(json);
    hk_put_str(json, "message_id", e->row->message_id);
    hk_put_str(json, "destination", e->to);
    hk_put_str(json, "status", hk_str_of(hk_state_name(e->row->state)));
    hk_put_cstr(json, "cause", e->causes[0].code);
    hk_json_key(json, "causes");
    hk_json_array(json);
    for (size_t i = 0; i < e->n; i++)
        put_cause(json, &e->causes[i]);
    hk_json_end(json);
    hk_json_end(json);
}

void hk_encode_explanation(struct hk_json *json, const void *result)
{
    const struct hk_explanation *x = result;
    hk_json_object(json);
    hk_put_cstr(json, "message_id", x->message_id);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < x->n; i++)
        put_explained(json, &x->items[i]);
    hk_json_end(json);
    hk_put_cstr(json, "cause", x->n > 0 ? x->items[0].causes[0].code : "no_such_message");
    hk_json_end(json);
}

void hk_encode_message_acted(struct hk_json *json, const void *result)
{
    const struct hk_message_acted *acted = result;
    hk_json_object(json);
    hk_put_cstr(json, "message_id", acted->act.message_id);
    hk_put_cstr(json, "act", acted->verb);
    hk_put_u64(json, "changed", acted->is.changed);
    hk_put_cstr(json, "actor", acted->act.actor);
    hk_put_cstr(json, "reason", acted->act.reason);
    hk_put_time(json, "at", acted->is.now_ms);
    hk_json_end(json);
}
