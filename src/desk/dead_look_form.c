/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters as forms. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/dead_look.h"
#include "desk/forms.h"

/* ---- one letter ---- */

static void form_times(struct hk_form *form, struct hk_letter *letter)
{
    hk_form_time(form, "message_created_at", &letter->message_created_ms);
    hk_form_time(form, "first_failed_at", &letter->first_failed_ms);
    hk_form_time(form, "last_failed_at", &letter->last_failed_ms);
    hk_form_time(form, "last_attempt_at", &letter->last_attempt_ms);
    hk_form_time(form, "created_at", &letter->created_ms);
    hk_form_time(form, "edited_at", &letter->edited_ms);
    hk_form_time(form, "requeued_at", &letter->requeued_ms);
    hk_form_time(form, "sending_at", &letter->sending_ms);
    hk_form_time(form, "resolved_at", &letter->resolved_ms);
}

/* Without details and payload. */
static void form_facts(struct hk_form *form, void *result)
{
    struct hk_letter *letter = result;
    hk_form_id(form, "id", &letter->id);
    hk_form_str(form, "message_id", &letter->message_id);
    hk_form_id(form, "original_outbox_id", &letter->outbox_id);
    hk_form_str(form, "event_type", &letter->event_type);
    hk_form_str(form, "destination", &letter->destination);
    hk_form_choice(form, "status", &letter->status, hk_letter_status_name, HK_NLETTER_STATUSES);
    hk_form_str(form, "reason_code", &letter->reason);
    hk_form_str(form, "error_message", &letter->error);
    hk_form_str(form, "class", &letter->failure_class);
    hk_form_str(form, "fault", &letter->blame);
    hk_form_str(form, "group", &letter->fingerprint);
    hk_form_uint(form, "attempts", &letter->attempts);
    hk_form_uint(form, "crashes", &letter->crashes);
    hk_form_uint(form, "life", &letter->life);
    hk_form_uint(form, "requeues", &letter->requeues);
    hk_form_str(form, "requeued_as", &letter->requeued_as);
    hk_form_uint(form, "payload_version", &letter->version);
    hk_form_bool(form, "possibly_delivered", &letter->possibly_delivered);
    hk_form_str(form, "message_key", &letter->key);
    hk_form_str(form, "correlation_id", &letter->correlation_id);
    hk_form_str(form, "traceparent", &letter->traceparent);
    hk_form_str(form, "resolution", &letter->resolution);
    hk_form_id(form, "redrive", &letter->redrive);
    form_times(form, letter);
    hk_form_uint(form, "payload_bytes", &letter->payload_bytes);
}

static void form_whole(struct hk_form *form, struct hk_letter *letter, bool *cut)
{
    bool has_payload = letter->has_payload;
    form_facts(form, letter);
    hk_form_str(form, "error_detail", &letter->error_detail);
    hk_form_str(form, "headers", &letter->headers);
    hk_form_str(form, "content_type", &letter->content_type);
    hk_form_str(form, "encoding", &letter->encoding);
    hk_form_str(form, "idempotency_key", &letter->idempotency_key);
    hk_form_str(form, "policy", &letter->policy);
    hk_form_str(form, "expires_at", &letter->expires_at);
    hk_form_limit(form, "max_attempts", &letter->max_attempts);
    hk_form_payload(form, "payload", &letter->has_payload, &letter->payload);
    if (hk_form_if(form, "payload_cut", &has_payload)) {
        hk_form_bool(form, "payload_cut", cut);
        hk_form_end(form);
    }
}

void hk_form_dead_line(struct hk_form *form, void *result)
{
    struct hk_dead_line *line = result;
    form_whole(form, &line->letter, &line->cut);
}

static void form_version(struct hk_form *form, void *result)
{
    struct hk_letter_version *v = result;
    hk_form_uint(form, "version", &v->version);
    hk_form_time(form, "replaced_at", &v->replaced_ms);
    hk_form_str(form, "actor", &v->actor);
    hk_form_str(form, "reason", &v->reason);
    hk_form_uint(form, "payload_bytes", &v->payload_bytes);
}

static void form_act(struct hk_form *form, void *result)
{
    struct hk_audit_row *row = result;
    hk_form_id(form, "id", &row->id);
    hk_form_time(form, "at", &row->at_ms);
    hk_form_str(form, "actor", &row->actor);
    hk_form_str(form, "act", &row->act);
    hk_form_str(form, "reason", &row->reason);
    hk_form_str(form, "before", &row->before);
    hk_form_str(form, "after", &row->after);
}

void hk_form_letter(struct hk_form *form, void *result)
{
    struct hk_dead_shown *s = result;
    uint32_t present = s->all.letter.version;
    form_whole(form, &s->letter, &s->cut);
    hk_form_cstr(form, "did_you_mean", &s->near);
    hk_form_uint(form, "blocked", &s->all.blocked);
    hk_form_list(form, "attempts_made", &HK_FORM_ITEMS(s->all.attempts, s->all.n_attempts, hk_form_attempt));
    hk_form_list(form, "versions", &HK_FORM_ITEMS(s->all.versions, s->all.n_versions, form_version));
    hk_form_list(form, "acts", &HK_FORM_ITEMS(s->all.acts, s->all.n_acts, form_act));
    hk_form_time(form, "now", &s->all.now_ms);
    hk_form_uint(form, "present_version", &present);
    hk_form_bool(form, "masked", &s->masked);
    hk_form_cstr(form, "url", &s->url);
    if (hk_form_reads(form)) {
        s->all.letter = s->letter;
        s->all.letter.version = present;
    }
}

/* ---- many ---- */

void hk_form_letters(struct hk_form *form, void *result)
{
    struct hk_dead_list *list = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(list->items, list->n, form_facts));
    hk_form_id(form, "next", &list->next);
    hk_form_limit(form, "looked", &list->looked);
    hk_form_time(form, "now", &list->now_ms);
}

static void form_hour(struct hk_form *form, void *result)
{
    hk_form_uint(form, NULL, (uint64_t *)result);
}

static void form_group(struct hk_form *form, void *result)
{
    struct hk_letter_group *g = result;
    hk_form_str(form, "group", &g->fingerprint);
    hk_form_uint(form, "letters", &g->n);
    hk_form_uint(form, "may_have_arrived", &g->maybe);
    hk_form_str(form, "destination", &g->destination);
    hk_form_str(form, "reason_code", &g->reason);
    hk_form_str(form, "class", &g->failure_class);
    hk_form_str(form, "fault", &g->blame);
    hk_form_time(form, "first_failed_at", &g->first_ms);
    hk_form_time(form, "last_failed_at", &g->last_ms);
    hk_form_id(form, "example_id", &g->example_id);
    hk_form_str(form, "example_message_id", &g->example_message_id);
    hk_form_str(form, "example_event_type", &g->example_event_type);
    hk_form_str(form, "example_error", &g->example_error);
    size_t n_hours = HK_LETTER_HOURS;
    bool has_hours = g->hours != NULL;
    if (hk_form_if(form, "hours", &has_hours)) {
        hk_form_list(form, "hours",
                     &(struct hk_form_list){.items = &g->hours,
                                            .n = &n_hours,
                                            .size = sizeof g->hours[0],
                                            .fn = form_hour,
                                            .are_values = true,
                                            .in_a_line = true});
        hk_form_end(form);
    }
    if (hk_form_reads(form) && n_hours != HK_LETTER_HOURS)
        g->hours = NULL;
}

void hk_form_letter_groups(struct hk_form *form, void *result)
{
    struct hk_letter_groups *groups = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(groups->items, groups->n, form_group));
    hk_form_uint(form, "letters", &groups->letters);
    hk_form_uint(form, "may_have_arrived", &groups->maybe);
    hk_form_bool(form, "more", &groups->more);
    hk_form_bool(form, "partial", &groups->partial);
    hk_form_limit(form, "looked", &groups->looked);
    hk_form_limit(form, "about", &groups->about);
    hk_form_id(form, "next", &groups->next);
    hk_form_time(form, "now", &groups->now_ms);
}

/* ---- stats ---- */

static void form_tally(struct hk_form *form, void *result)
{
    struct hk_tally *tally = result;
    hk_form_str(form, "name", &tally->name);
    hk_form_uint(form, "letters", &tally->n);
}

static void form_requeued(struct hk_form *form, void *result)
{
    struct hk_letter_stats *s = result;
    uint64_t known = s->requeued_resolved + s->requeued_failed;
    double rate = known > 0 ? (double)s->requeued_resolved / (double)known : -1;
    hk_form_uint(form, "letters", &s->requeued);
    hk_form_uint(form, "resolved", &s->requeued_resolved);
    hk_form_uint(form, "failed", &s->requeued_failed);
    hk_form_uint(form, "waiting", &s->requeued_waiting);
    hk_form_ratio(form, "success_rate", &rate);
}

static void form_day(struct hk_form *form, void *result)
{
    struct hk_letter_day *day = result;
    char when[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(day->day_ms, when);
    struct hk_str date = {when, 10};
    hk_form_str(form, "day", &date);
    hk_form_uint(form, "letters", &day->n);
    if (!hk_form_reads(form) || date.len != 10)
        return;
    (void)snprintf(when, sizeof when, "%.10sT00:00:00Z", date.ptr);
    if (hk_parse_rfc3339(hk_str_of(when), &day->day_ms, NULL) != HK_OK)
        day->day_ms = 0;
}

static void form_oldest(struct hk_form *form, void *result)
{
    struct hk_letter *letter = result;
    hk_form_id(form, "id", &letter->id);
    hk_form_str(form, "message_id", &letter->message_id);
    hk_form_str(form, "destination", &letter->destination);
    hk_form_str(form, "event_type", &letter->event_type);
    hk_form_str(form, "reason_code", &letter->reason);
    hk_form_time(form, "first_failed_at", &letter->first_failed_ms);
}

void hk_form_letter_stats(struct hk_form *form, void *result)
{
    struct hk_letter_stats *s = result;
    uint64_t total = hk_letter_stats_total(s);
    hk_form_uint(form, "total", &total);
    for (size_t i = 0; i < HK_NLETTER_STATUSES; i++)
        hk_form_uint(form, hk_letter_status_name((enum hk_letter_status)i), &s->by_status[i]);
    hk_form_uint(form, "fault_destination", &s->by_blame[HK_BLAME_DESTINATION]);
    hk_form_uint(form, "fault_pipeline", &s->by_blame[HK_BLAME_PIPELINE]);
    hk_form_object(form, "requeued", NULL, form_requeued, s);
    hk_form_list(form, "days",
                 &(struct hk_form_list){
                     .items = s->days, .most = HK_STATS_DAYS, .size = sizeof s->days[0], .fn = form_day});
    hk_form_list(form, "reasons", &HK_FORM_ITEMS(s->reasons, s->n_reasons, form_tally));
    hk_form_list(form, "event_types", &HK_FORM_ITEMS(s->event_types, s->n_event_types, form_tally));
    hk_form_list(form, "destinations", &HK_FORM_ITEMS(s->destinations, s->n_destinations, form_tally));
    hk_form_list(form, "oldest", &HK_FORM_ITEMS(s->oldest, s->n_oldest, form_oldest));
    hk_form_time(form, "now", &s->now_ms);
}

/* ---- reasons ---- */

static void form_reason(struct hk_form *form, void *result)
{
    struct hk_reason_row *row = result;
    hk_form_cstr(form, "reason_code", &row->code);
    hk_form_cstr(form, "rule", &row->rule);
    hk_form_cstr(form, "fault", &row->blame);
}

void hk_form_reasons(struct hk_form *form, void *result)
{
    struct hk_reason_rows *rows = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(rows->items, rows->n, form_reason));
    hk_form_null(form, "next");
}
