/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku alerts list */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/alerts.h"

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
    char ago[64], n[HK_SHOW_NUMBER];
    struct hk_buf about;
    hk_buf_init(&about, 4096);
    about_text(a, &about);
    hk_table_adds(table, hk_alert_status_word(a->status));
    hk_table_adds(table, hk_severity_word(a->severity));
    hk_table_add(table, a->rule);
    hk_table_add_buf(table, &about);
    hk_table_adds(table, a->count > 0 ? hk_show_count(a->count, n) : "-");
    hk_table_adds(table, hk_show_ago(status_ms(a), now_ms, ago));
    hk_table_adds(table, hk_show_ago(a->told_ms, now_ms, ago));
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
        hk_table_adds(&table, n->given_up_ms != 0 ? "given up" : hk_show_ago(n->due_ms, list->now_ms, text));
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
        hk_table_adds(&table, hk_show_ago(list->mutes[i].until_ms, list->now_ms, ago));
        hk_table_add(&table, list->mutes[i].actor);
        hk_table_add(&table, list->mutes[i].reason);
    }
    (void)hk_buf_addc(out, '\n');
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void print_alerts(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_alerts_list *list = result;
    char ago[64];
    (void)ask;
    write_alerts(out, list);
    write_notices(out, list);
    write_mutes(out, list);
    if (list->channels == 0)
        (void)hk_buf_adds(out, "\nno channels are configured: nobody gets notices\n");
    else if (list->evaluated_ms == 0)
        (void)hk_buf_adds(out, "\nno relay has looked yet: start one with 'hikyaku run'\n");
    else
        (void)hk_buf_addf(out, "\nlooked at %s by %.*s\n", hk_show_ago(list->evaluated_ms, list->now_ms, ago),
                          (int)list->relay.len, list->relay.ptr);
}

int hk_cmd_alerts_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_alerts);
}
