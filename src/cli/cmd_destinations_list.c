/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku destinations list */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/destinations.h"

static const char *limits_text(const struct hk_dest_row *limits, char out[96])
{
    char rate[HK_SHOW_NUMBER];
    int used = 0;
    out[0] = '\0';
    if (limits->rate_per_s > 0)
        used = snprintf(out, 96, "%s/s", hk_show_rate(limits->rate_per_s, rate));
    if (limits->concurrency > 0)
        (void)snprintf(out + used, 96 - (size_t)used, "%s%" PRIu32 " at once", used > 0 ? ", " : "",
                       limits->concurrency);
    return out[0] != '\0' ? out : "-";
}

static void add_state(struct hk_table *table, const struct hk_dest_row *row, int64_t now_ms)
{
    struct hk_buf text;
    hk_buf_init(&text, 1 << 16);
    if (!row->configured && row->name.len > 0)
        (void)hk_buf_adds(&text, "not configured here; ");
    if (row->version > 0)
        (void)hk_buf_addf(&text, "of the store, version %" PRIu64 "; ", row->version);
    if (row->also_stored)
        (void)hk_buf_adds(&text, "the store has one of that name, too, which is not used; ");
    if (row->unusable.relays > 0) {
        hk_say_unusable(&text, &row->unusable, now_ms);
        (void)hk_buf_adds(&text, "; ");
    } else if (row->problem != NULL) {
        (void)hk_buf_addf(&text, "cannot be used: %s; ", row->problem);
    }
    hk_say_held(&text, &row->state, now_ms);
    if (text.len > 2 && text.data[text.len - 2] == ';')
        text.len -= 2;
    hk_table_add_buf(table, &text);
    hk_buf_fini(&text);
}

static void add_row(struct hk_table *table, const struct hk_dest_row *row, int64_t now_ms)
{
    char limits[96], n[48];
    hk_table_add(table, hk_say_to(row->name));
    hk_table_adds(table, row->policy != NULL ? row->policy : "-");
    hk_table_adds(table, limits_text(row, limits));
    hk_table_adds(table, hk_say_count(row->state.pending, n));
    hk_table_adds(table, hk_say_count(row->state.retrying, n));
    hk_table_adds(table, hk_say_count(row->state.dead, n));
    hk_table_adds(table, row->url != NULL ? row->url : row->configured ? row->kind : "-");
    add_state(table, row, now_ms);
}

static void print_destinations(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"DESTINATION", false, 40}, {"POLICY", false, 24}, {"LIMITS", false, 0}, {"PENDING", true, 0},
        {"RETRYING", true, 0},      {"DEAD", true, 0},     {"URL", false, 60},   {"", false, 120}};
    const struct hk_dests *dests = result;
    struct hk_table table;
    (void)ask;
    if (dests->n == 0) {
        (void)hk_buf_adds(out,
                          "no destinations: the configuration names none, and the store has seen none\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < dests->n; i++)
        add_row(&table, &dests->items[i], dests->now_ms);
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

int hk_cmd_destinations_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_destinations);
}
