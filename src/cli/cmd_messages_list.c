/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages list */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/messages.h"
#include "exec/clock.h"

static void when(const struct hk_row *row, int64_t now_ms, char out[96])
{
    char ago[64];
    int64_t ms = row->next_ms;
    const char *word = "due ";
    if (row->state == HK_PROCESSING) {
        ms = row->locked_ms;
        word = "since ";
    } else if (row->state != HK_PENDING && row->state != HK_RETRYING) {
        ms = row->done_ms;
        word = "";
    } else if (ms <= now_ms) {
        (void)snprintf(out, 96, "due");
        return;
    }
    (void)snprintf(out, 96, "%s%s", word, hk_show_ago(ms, now_ms, ago));
}

static void add_row(struct hk_table *table, const struct hk_row *row, int64_t now_ms)
{
    char text[96], ago[64];
    hk_table_add(table, row->message_id);
    hk_table_adds(table, hk_state_name(row->state));
    hk_table_add(table, hk_say_to(row->destination));
    hk_table_add(table, row->event_type);
    (void)snprintf(text, sizeof text, "%" PRIu32, row->attempts);
    hk_table_adds(table, text);
    hk_table_adds(table, hk_show_ago(row->created_ms, now_ms, ago));
    when(row, now_ms, text);
    hk_table_adds(table, text);
    hk_table_add(table, row->state == HK_STATE_CANCELLED ? row->reason : row->last_error);
}

static void print_messages(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"MESSAGE", false, 40}, {"STATUS", false, 0},  {"DESTINATION", false, 24}, {"EVENT", false, 24},
        {"TRIES", true, 0},     {"WRITTEN", false, 0}, {"WHEN", false, 0},         {"LAST ERROR", false, 60}};
    const struct hk_messages *found = result;
    struct hk_table table;
    int64_t now_ms = hk_clock_wall_ms();
    (void)ask;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < found->n; i++)
        add_row(&table, &found->items[i], now_ms);
    if (table.n_cells == 0)
        (void)hk_buf_adds(out, found->looked > 0 ? "no messages so far\n" : "no messages\n");
    else
        hk_table_write(&table, out);
    hk_table_fini(&table);
    if (found->looked > 0)
        (void)hk_buf_addf(out,
                          "stopped after %" PRIu64
                          " rows; continue with --after %s (--scan N looks further at once)\n",
                          found->looked, found->next);
    else if (found->next[0] != '\0')
        (void)hk_buf_addf(out, "more: --after %s\n", found->next);
}

int hk_cmd_messages_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_messages);
}
