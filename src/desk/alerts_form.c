/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts as forms. */
#include "base/str.h"
#include "desk/alerts.h"
#include "desk/forms.h"

static void form_field(struct hk_form *form, void *result)
{
    struct hk_alert_field *f = result;
    hk_form_str(form, "path", &f->path);
    hk_form_choice(form, "state", &f->state, hk_alert_field_word, HK_NALERT_FIELD_STATES);
    hk_form_str(form, "value", &f->value);
}

void hk_form_alert(struct hk_form *form, void *result)
{
    struct hk_alert *a = result;
    struct hk_str about = hk_alert_about(a), detail = hk_alert_detail(a);
    hk_form_chars(form, "fingerprint", a->fingerprint, sizeof a->fingerprint);
    hk_form_choice(form, "status", &a->status, hk_alert_status_word, HK_NALERT_STATUSES);
    hk_form_choice(form, "severity", &a->severity, hk_severity_word, HK_ALERT_CRITICAL + 1);
    hk_form_str(form, "rule", &a->rule);
    hk_form_choice(form, "when", &a->kind, hk_alert_kind_word, HK_NALERT_KINDS);
    hk_form_str(form, "destination", &about);
    hk_form_str(form, "reason", &a->reason);
    hk_form_str(form, "event_type", &a->event_type);
    hk_form_uint(form, "count", &a->count);
    hk_form_double(form, "value", &a->value);
    hk_form_double(form, "threshold", &a->threshold);
    hk_form_str(form, "example_id", &a->example_id);
    hk_form_list(form, "fields", &HK_FORM_ITEMS(a->named, a->n_named, form_field));
    hk_form_str(form, "detail", &detail);
    hk_form_time(form, "since", &a->since_ms);
    hk_form_time(form, "fired_at", &a->fired_ms);
    hk_form_time(form, "resolved_at", &a->resolved_ms);
    hk_form_time(form, "told_at", &a->told_ms);
    hk_form_bool(form, "told", &a->told);
    if (hk_form_reads(form)) {
        a->destination = about;
        a->detail = detail;
    }
}

static void form_notice(struct hk_form *form, void *result)
{
    struct hk_alerts_notice_row *n = result;
    int64_t next_ms = n->given_up_ms != 0 ? 0 : n->due_ms;
    hk_form_id(form, "id", &n->id);
    hk_form_str(form, "fingerprint", &n->fingerprint);
    hk_form_choice(form, "notice", &n->kind, hk_notice_word, HK_NOTICE_TEST + 1);
    hk_form_str(form, "rule", &n->rule);
    hk_form_str(form, "channel", &n->channel);
    hk_form_uint(form, "attempts", &n->attempts);
    hk_form_time(form, "created_at", &n->created_ms);
    hk_form_time(form, "next_at", &next_ms);
    hk_form_time(form, "given_up_at", &n->given_up_ms);
    hk_form_str(form, "last_error", &n->last_error);
    if (hk_form_reads(form))
        n->due_ms = next_ms;
}

static void form_mute(struct hk_form *form, void *result)
{
    struct hk_alerts_mute_row *m = result;
    hk_form_str(form, "rule", &m->rule);
    hk_form_time(form, "until", &m->until_ms);
    hk_form_time(form, "since", &m->since_ms);
    hk_form_str(form, "actor", &m->actor);
    hk_form_str(form, "reason", &m->reason);
}

void hk_form_alerts(struct hk_form *form, void *result)
{
    struct hk_alerts_list *list = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(list->alerts, list->n_alerts, hk_form_alert));
    hk_form_list(form, "notices", &HK_FORM_ITEMS(list->notices, list->n_notices, form_notice));
    hk_form_list(form, "mutes", &HK_FORM_ITEMS(list->mutes, list->n_mutes, form_mute));
    hk_form_time(form, "evaluated_at", &list->evaluated_ms);
    hk_form_str(form, "evaluated_by", &list->relay);
    hk_form_time(form, "now", &list->now_ms);
    hk_form_uint(form, "channels", &list->channels);
}

void hk_form_alert_muted(struct hk_form *form, void *result)
{
    struct hk_alert_muted *done = result;
    hk_form_cstr(form, "rule", &done->rule);
    hk_form_time(form, "muted_until", &done->until_ms);
    hk_form_bool(form, "changed", &done->changed);
}

void hk_form_alert_tested(struct hk_form *form, void *result)
{
    struct hk_alert_tested *tested = result;
    bool is_taken = tested->failed.code == HK_OK;
    hk_form_cstr(form, "channel", &tested->channel);
    hk_form_cstr(form, "kind", &tested->kind);
    hk_form_bool(form, "taken", &is_taken);
    hk_form_uint(form, "took_ms", &tested->took_ms);
    hk_form_failure(form, "error", &tested->failed);
}
