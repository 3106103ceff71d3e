/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku alerts list: what fires, what is about to, what was over lately, what could not be told, and what is muted. */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/table.h"
#include "store/alerts.h"

/* "a, HTTP_4XX" */
static void about_text(const struct hk_alert *a, struct hk_buf *out)
{
    if (hk_alert_is_of_others(a->kind, a->destination, a->reason)) {
        (void)hk_buf_adds(out, "all others");
        if (a->value > 0)
            (void)hk_buf_addf(out, ": %.0f destinations", a->value);
        return;
    }
    struct hk_str destination = hk_alert_about(a);
    (void)hk_buf_add(out, destination.ptr, destination.len);
    if (destination.len > 0 && a->reason.len > 0)
        (void)hk_buf_adds(out, ", ");
    (void)hk_buf_add(out, a->reason.ptr, a->reason.len);
    if (out->len == 0)
        (void)hk_buf_adds(out, "-");
}

/* Since when it is what it is. */
static int64_t status_ms(const struct hk_alert *a)
{
    return a->status == HK_ALERT_RESOLVED ? a->resolved_ms : a->since_ms;
}

static void add_alert(struct hk_table *table, const struct hk_alert *a, int64_t now_ms)
{
    char ago[64], n[HK_OUT_TEXT];
    struct hk_buf about;
    hk_buf_init(&about, 4096);
    about_text(a, &about);
    hk_table_adds(table, hk_alert_status_word(a->status));
    hk_table_adds(table, hk_severity_word(a->severity));
    hk_table_add(table, a->rule);
    hk_table_add(table, hk_buf_str(&about));
    hk_table_adds(table, a->count > 0 ? hk_out_count(a->count, n) : "-");
    hk_table_adds(table, hk_operate_ago(status_ms(a), now_ms, ago));
    hk_table_adds(table, hk_operate_ago(a->told_ms, now_ms, ago));
    hk_table_add(table, a->example_id);
    hk_buf_fini(&about);
}

static void write_alerts(struct hk_buf *out, const struct hk_alerts_list *list)
{
    static const struct hk_table_column columns[] = {
        {"STATUS", false, 0}, {"SEVERITY", false, 0}, {"RULE", false, 40}, {"ABOUT", false, 50},
        {"COUNT", true, 0},   {"SINCE", true, 0},     {"TOLD", true, 0},   {"EXAMPLE", false, 40}};
    struct hk_table table;
    if (list->n_alerts == 0) {
        (void)hk_buf_adds(out, "no alerts\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < list->n_alerts; i++)
        add_alert(&table, &list->alerts[i], list->now_ms);
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void write_notices(struct hk_buf *out, const struct hk_alerts_list *list)
{
    static const struct hk_table_column columns[] = {{"NOT TOLD", false, 0}, {"CHANNEL", false, 40},
                                                     {"RULE", false, 40},    {"ATTEMPTS", true, 0},
                                                     {"NEXT", true, 0},      {"ERROR", false, 80}};
    struct hk_table table;
    char text[64];
    if (list->n_notices == 0)
        return;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < list->n_notices; i++) {
        const struct hk_alerts_notice_row *n = &list->notices[i];
        hk_table_adds(&table, hk_notice_word(n->kind));
        hk_table_add(&table, n->channel);
        hk_table_add(&table, n->rule);
        (void)snprintf(text, sizeof text, "%" PRIu32, n->attempts);
        hk_table_adds(&table, text);
        hk_table_adds(&table,
                      n->given_up_ms != 0 ? "given up" : hk_operate_ago(n->due_ms, list->now_ms, text));
        hk_table_add(&table, n->last_error);
    }
    (void)hk_buf_addc(out, '\n');
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void write_mutes(struct hk_buf *out, const struct hk_alerts_list *list)
{
    static const struct hk_table_column columns[] = {
        {"MUTED", false, 40}, {"ENDS", true, 0}, {"BY", false, 40}, {"REASON", false, 60}};
    struct hk_table table;
    char ago[64];
    if (list->n_mutes == 0)
        return;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < list->n_mutes; i++) {
        hk_table_add(&table, list->mutes[i].rule);
        hk_table_adds(&table, hk_operate_ago(list->mutes[i].until_ms, list->now_ms, ago));
        hk_table_add(&table, list->mutes[i].actor);
        hk_table_add(&table, list->mutes[i].reason);
    }
    (void)hk_buf_addc(out, '\n');
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void write_text(struct hk_buf *out, const struct hk_operate *op, const struct hk_alerts_list *list)
{
    char ago[64];
    write_alerts(out, list);
    write_notices(out, list);
    write_mutes(out, list);
    if (op->config->channels.n == 0)
        (void)hk_buf_adds(out, "\nno channels are configured: nobody is told\n");
    else if (list->evaluated_ms == 0)
        (void)hk_buf_adds(out, "\nno relay has looked yet: start one with 'hikyaku run'\n");
    else
        (void)hk_buf_addf(out, "\nlooked at %s by %.*s\n",
                          hk_operate_ago(list->evaluated_ms, list->now_ms, ago), (int)list->relay.len,
                          list->relay.ptr);
}

/* ---- JSON ---- */

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

static void write_json(struct hk_buf *out, const struct hk_alerts_list *list)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; i < list->n_alerts; i++)
        put_alert(&json, &list->alerts[i]);
    hk_json_end(&json);
    hk_json_key(&json, "notices");
    hk_json_array(&json);
    for (size_t i = 0; i < list->n_notices; i++)
        put_notice(&json, &list->notices[i]);
    hk_json_end(&json);
    hk_json_key(&json, "mutes");
    hk_json_array(&json);
    for (size_t i = 0; i < list->n_mutes; i++)
        put_mute(&json, &list->mutes[i]);
    hk_json_end(&json);
    hk_put_time(&json, "evaluated_at", list->evaluated_ms);
    hk_put_str(&json, "evaluated_by", list->relay);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

static enum hk_code ask(const struct hk_cli *cli, const struct hk_operate *op, struct hk_buf *out,
                        struct hk_err *err)
{
    const struct hk_alerts_list *list = NULL;
    const struct hk_store_alerts_ops *alerts = hk_store_alerts_by_url(op->url, err);
    enum hk_code rc = alerts != NULL ? alerts->list(op->admin, &list, err) : HK_INVALID;
    if (rc == HK_OK && hk_args_flag(cli, "json"))
        write_json(out, list);
    else if (rc == HK_OK)
        write_text(out, op, list);
    return rc;
}

int hk_cmd_alerts_list(struct hk_cli *cli)
{
    return hk_operate_show(cli, ask);
}
