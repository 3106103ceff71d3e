/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts as JSON. */
#include "desk/alerts.h"
#include "desk/forms.h"

static void put_alert(struct hk_json *json, const struct hk_alert *a)
{
    hk_json_object(json);
    hk_put_cstr(json, "fingerprint", a->fingerprint);
    hk_put_cstr(json, "status", hk_alert_status_word(a->status));
    hk_put_cstr(json, "severity", hk_severity_word(a->severity));
    hk_put_str(json, "rule", a->rule);
    hk_put_cstr(json, "when", hk_alert_kind_word(a->kind));
    hk_put_str(json, "destination", hk_alert_about(a));
    hk_put_str(json, "reason", a->reason);
    hk_put_str(json, "event_type", a->event_type);
    hk_put_u64(json, "count", a->count);
    hk_put_double(json, "value", a->value);
    hk_put_double(json, "threshold", a->threshold);
    hk_put_str(json, "example_id", a->example_id);
    hk_put_str(json, "detail", hk_alert_detail(a));
    hk_put_time(json, "since", a->since_ms);
    hk_put_time(json, "fired_at", a->fired_ms);
    hk_put_time(json, "resolved_at", a->resolved_ms);
    hk_put_time(json, "told_at", a->told_ms);
    hk_put_bool(json, "told", a->told);
    hk_json_end(json);
}

static void put_notice(struct hk_json *json, const struct hk_alerts_notice_row *n)
{
    hk_json_object(json);
    hk_put_id(json, "id", n->id);
    hk_put_str(json, "fingerprint", n->fingerprint);
    hk_put_cstr(json, "notice", hk_notice_word(n->kind));
    hk_put_str(json, "rule", n->rule);
    hk_put_str(json, "channel", n->channel);
    hk_put_u64(json, "attempts", n->attempts);
    hk_put_time(json, "created_at", n->created_ms);
    hk_put_time(json, "next_at", n->given_up_ms != 0 ? 0 : n->due_ms);
    hk_put_time(json, "given_up_at", n->given_up_ms);
    hk_put_str(json, "last_error", n->last_error);
    hk_json_end(json);
}

static void put_mute(struct hk_json *json, const struct hk_alerts_mute_row *m)
{
    hk_json_object(json);
    hk_put_str(json, "rule", m->rule);
    hk_put_time(json, "until", m->until_ms);
    hk_put_time(json, "since", m->since_ms);
    hk_put_str(json, "actor", m->actor);
    hk_put_str(json, "reason", m->reason);
    hk_json_end(json);
}

void hk_encode_alerts(struct hk_json *json, const void *result)
{
    const struct hk_alerts_list *list = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < list->n_alerts; i++)
        put_alert(json, &list->alerts[i]);
    hk_json_end(json);
    hk_json_key(json, "notices");
    hk_json_array(json);
    for (size_t i = 0; i < list->n_notices; i++)
        put_notice(json, &list->notices[i]);
    hk_json_end(json);
    hk_json_key(json, "mutes");
    hk_json_array(json);
    for (size_t i = 0; i < list->n_mutes; i++)
        put_mute(json, &list->mutes[i]);
    hk_json_end(json);
    hk_put_time(json, "evaluated_at", list->evaluated_ms);
    hk_put_str(json, "evaluated_by", list->relay);
    hk_json_end(json);
}

void hk_encode_alert_muted(struct hk_json *json, const void *result)
{
    const struct hk_alert_muted *done = result;
    hk_json_object(json);
    hk_put_cstr(json, "rule", done->rule);
    hk_put_time(json, "muted_until", done->until_ms);
    hk_put_bool(json, "changed", done->changed);
    hk_json_end(json);
}

void hk_encode_alert_tested(struct hk_json *json, const void *result)
{
    const struct hk_alert_tested *tested = result;
    hk_json_object(json);
    hk_put_cstr(json, "channel", tested->conf->name);
    hk_put_cstr(json, "kind", hk_conf_channel_kind_name(tested->conf->kind));
    hk_put_bool(json, "taken", tested->failed.code == HK_OK);
    hk_put_u64(json, "took_ms", tested->took_ms);
    hk_put_cstr(json, "error", tested->failed.code == HK_OK ? NULL : tested->failed.message);
    hk_json_end(json);
}
