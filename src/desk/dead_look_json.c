/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters as JSON. */
#include "base/parse.h"
#include "desk/dead_look.h"
#include "desk/forms.h"

/* ---- one letter ---- */

static void put_times(struct hk_json *json, const struct hk_letter *letter)
{
    hk_put_time(json, "message_created_at", letter->message_created_ms);
    hk_put_time(json, "first_failed_at", letter->first_failed_ms);
    hk_put_time(json, "last_failed_at", letter->last_failed_ms);
    hk_put_time(json, "last_attempt_at", letter->last_attempt_ms);
    hk_put_time(json, "created_at", letter->created_ms);
    hk_put_time(json, "edited_at", letter->edited_ms);
    hk_put_time(json, "requeued_at", letter->requeued_ms);
    hk_put_time(json, "sending_at", letter->sending_ms);
    hk_put_time(json, "resolved_at", letter->resolved_ms);
}

static void put_details(struct hk_json *json, const struct hk_letter *letter)
{
    hk_put_str(json, "error_detail", letter->error_detail);
    hk_put_str(json, "headers", letter->headers);
    hk_put_str(json, "content_type", letter->content_type);
    hk_put_str(json, "encoding", letter->encoding);
    hk_put_str(json, "idempotency_key", letter->idempotency_key);
    hk_put_str(json, "policy", letter->policy);
    hk_put_str(json, "expires_at", letter->expires_at);
    hk_put_limit(json, "max_attempts", letter->max_attempts);
    if (letter->has_payload)
        hk_put_bytes(json, "payload", letter->payload);
    else
        hk_put_cstr(json, "payload", NULL);
}

void hk_put_letter(struct hk_json *json, const struct hk_letter *letter, bool whole)
{
    hk_put_id(json, "id", letter->id);
    hk_put_str(json, "message_id", letter->message_id);
    hk_put_id(json, "original_outbox_id", letter->outbox_id);
    hk_put_str(json, "event_type", letter->event_type);
    hk_put_str(json, "destination", letter->destination);
    hk_put_cstr(json, "status", hk_letter_status_name(letter->status));
    hk_put_str(json, "reason_code", letter->reason);
    hk_put_str(json, "error_message", letter->error);
    hk_put_str(json, "class", letter->failure_class);
    hk_put_str(json, "fault", letter->blame);
    hk_put_str(json, "group", letter->fingerprint);
    hk_put_u64(json, "attempts", letter->attempts);
    hk_put_u64(json, "crashes", letter->crashes);
    hk_put_u64(json, "life", letter->life);
    hk_put_u64(json, "requeues", letter->requeues);
    hk_put_str(json, "requeued_as", letter->requeued_as);
    hk_put_u64(json, "payload_version", letter->version);
    hk_put_bool(json, "possibly_delivered", letter->possibly_delivered);
    hk_put_str(json, "message_key", letter->key);
    hk_put_str(json, "correlation_id", letter->correlation_id);
    hk_put_str(json, "traceparent", letter->traceparent);
    hk_put_str(json, "resolution", letter->resolution);
    hk_put_id(json, "redrive", letter->redrive);
    put_times(json, letter);
    hk_put_u64(json, "payload_bytes", letter->payload_bytes);
    if (whole)
        put_details(json, letter);
}

static void put_versions(struct hk_json *json, const struct hk_letter_shown *shown)
{
    hk_json_key(json, "versions");
    hk_json_array(json);
    for (size_t i = 0; i < shown->n_versions; i++) {
        const struct hk_letter_version *v = &shown->versions[i];
        hk_json_object(json);
        hk_put_u64(json, "version", v->version);
        hk_put_time(json, "replaced_at", v->replaced_ms);
        hk_put_str(json, "actor", v->actor);
        hk_put_str(json, "reason", v->reason);
        hk_put_u64(json, "payload_bytes", v->payload_bytes);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_acts(struct hk_json *json, const struct hk_letter_shown *shown)
{
    hk_json_key(json, "acts");
    hk_json_array(json);
    for (size_t i = 0; i < shown->n_acts; i++) {
        const struct hk_audit_row *row = &shown->acts[i];
        hk_json_object(json);
        hk_put_id(json, "id", row->id);
        hk_put_time(json, "at", row->at_ms);
        hk_put_str(json, "actor", row->actor);
        hk_put_str(json, "act", row->act);
        hk_put_str(json, "reason", row->reason);
        hk_put_str(json, "before", row->before);
        hk_put_str(json, "after", row->after);
        hk_json_end(json);
    }
    hk_json_end(json);
}

void hk_encode_letter(struct hk_json *json, const void *result)
{
    const struct hk_dead_shown *s = result;
    hk_json_object(json);
    hk_put_letter(json, &s->letter, true);
    if (s->letter.has_payload)
        hk_put_bool(json, "payload_cut", s->cut);
    hk_put_cstr(json, "did_you_mean", s->near);
    hk_put_u64(json, "blocked", s->all.blocked);
    hk_json_key(json, "attempts_made");
    hk_json_array(json);
    for (size_t i = 0; i < s->all.n_attempts; i++)
        hk_put_attempt(json, &s->all.attempts[i]);
    hk_json_end(json);
    put_versions(json, &s->all);
    put_acts(json, &s->all);
    hk_json_end(json);
}

/* ---- many ---- */

void hk_encode_letters(struct hk_json *json, const void *result)
{
    const struct hk_dead_list *list = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (const struct hk_dead_page *page = list->pages; page; page = page->more)
        for (size_t i = 0; i < page->n; i++) {
            hk_json_object(json);
            hk_put_letter(json, &page->items[i], false);
            hk_json_end(json);
        }
    hk_json_end(json);
    hk_put_id(json, "next", list->next);
    hk_json_end(json);
}

static void put_group(struct hk_json *json, const struct hk_letter_group *g)
{
    hk_json_object(json);
    hk_put_str(json, "group", g->fingerprint);
    hk_put_u64(json, "letters", g->n);
    hk_put_u64(json, "may_have_arrived", g->maybe);
    hk_put_str(json, "destination", g->destination);
    hk_put_str(json, "reason_code", g->reason);
    hk_put_str(json, "class", g->failure_class);
    hk_put_str(json, "fault", g->blame);
    hk_put_time(json, "first_failed_at", g->first_ms);
    hk_put_time(json, "last_failed_at", g->last_ms);
    hk_put_id(json, "example_id", g->example_id);
    hk_put_str(json, "example_message_id", g->example_message_id);
    hk_put_str(json, "example_event_type", g->example_event_type);
    hk_put_str(json, "example_error", g->example_error);
    hk_json_end(json);
}

void hk_encode_letter_groups(struct hk_json *json, const void *result)
{
    const struct hk_letter_groups *groups = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < groups->n; i++)
        put_group(json, &groups->items[i]);
    hk_json_end(json);
    hk_put_u64(json, "letters", groups->letters);
    hk_put_u64(json, "may_have_arrived", groups->maybe);
    hk_put_bool(json, "more", groups->more);
    hk_put_cstr(json, "next", NULL);
    hk_json_end(json);
}

/* ---- stats ---- */

static void put_tally(struct hk_json *json, const char *key, const struct hk_tally *items, size_t n)
{
    hk_json_key(json, key);
    hk_json_array(json);
    for (size_t i = 0; i < n; i++) {
        hk_json_object(json);
        hk_put_str(json, "name", items[i].name);
        hk_put_u64(json, "letters", items[i].n);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_requeued(struct hk_json *json, const struct hk_letter_stats *s)
{
    uint64_t known = s->requeued_resolved + s->requeued_failed;
    hk_json_key(json, "requeued");
    hk_json_object(json);
    hk_put_u64(json, "letters", s->requeued);
    hk_put_u64(json, "resolved", s->requeued_resolved);
    hk_put_u64(json, "failed", s->requeued_failed);
    hk_put_u64(json, "waiting", s->requeued_waiting);
    hk_json_key(json, "success_rate");
    if (known > 0)
        hk_json_double(json, (double)s->requeued_resolved / (double)known);
    else
        hk_json_null(json);
    hk_json_end(json);
}

static void put_days(struct hk_json *json, const struct hk_letter_stats *s)
{
    char day[HK_TIME_TEXT_MAX];
    hk_json_key(json, "days");
    hk_json_array(json);
    for (size_t i = 0; i < HK_STATS_DAYS; i++) {
        (void)hk_format_rfc3339(s->days[i].day_ms, day);
        hk_json_object(json);
        hk_put_str(json, "day", (struct hk_str){day, 10});
        hk_put_u64(json, "letters", s->days[i].n);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_oldest(struct hk_json *json, const struct hk_letter_stats *s)
{
    hk_json_key(json, "oldest");
    hk_json_array(json);
    for (size_t i = 0; i < s->n_oldest; i++) {
        hk_json_object(json);
        hk_put_id(json, "id", s->oldest[i].id);
        hk_put_str(json, "message_id", s->oldest[i].message_id);
        hk_put_str(json, "destination", s->oldest[i].destination);
        hk_put_str(json, "event_type", s->oldest[i].event_type);
        hk_put_str(json, "reason_code", s->oldest[i].reason);
        hk_put_time(json, "first_failed_at", s->oldest[i].first_failed_ms);
        hk_json_end(json);
    }
    hk_json_end(json);
}

void hk_encode_letter_stats(struct hk_json *json, const void *result)
{
    const struct hk_letter_stats *s = result;
    hk_json_object(json);
    hk_put_u64(json, "total", hk_letter_stats_total(s));
    for (size_t i = 0; i < HK_NLETTER_STATUSES; i++)
        hk_put_u64(json, hk_letter_status_name((enum hk_letter_status)i), s->by_status[i]);
    hk_put_u64(json, "fault_destination", s->by_blame[HK_BLAME_DESTINATION]);
    hk_put_u64(json, "fault_pipeline", s->by_blame[HK_BLAME_PIPELINE]);
    put_requeued(json, s);
    put_days(json, s);
    put_tally(json, "reasons", s->reasons, s->n_reasons);
    put_tally(json, "event_types", s->event_types, s->n_event_types);
    put_tally(json, "destinations", s->destinations, s->n_destinations);
    put_oldest(json, s);
    hk_json_end(json);
}

/* ---- reasons ---- */

void hk_encode_reasons(struct hk_json *json, const void *result)
{
    const struct hk_reason_rows *rows = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < rows->n; i++) {
        hk_json_object(json);
        hk_put_cstr(json, "reason_code", rows->items[i].code);
        hk_put_cstr(json, "rule", rows->items[i].rule);
        hk_put_cstr(json, "fault", rows->items[i].blame);
        hk_json_end(json);
    }
    hk_json_end(json);
    hk_put_cstr(json, "next", NULL);
    hk_json_end(json);
}
