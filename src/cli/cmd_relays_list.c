/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku relays list: the running relays, their shards, messages in hand, and lag. */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/table.h"

static uint64_t since(int64_t ms, int64_t now_ms)
{
    return ms < now_ms ? (uint64_t)now_ms - (uint64_t)ms : 0;
}

static const char *lease_text(const struct hk_relay_row *r, int64_t now_ms, char out[96])
{
    char text[HK_SHOW_NUMBER];
    if (r->running)
        (void)snprintf(out, 96, "%s left", hk_show_duration((uint64_t)r->until_ms - (uint64_t)now_ms, text));
    else
        (void)snprintf(out, 96, "ended %s ago: stopped without a word",
                       hk_show_duration(since(r->until_ms, now_ms), text));
    return out;
}

static void add_row(struct hk_table *table, const struct hk_relay_row *r, int64_t now_ms)
{
    char text[96], n[HK_SHOW_NUMBER], ago[64];
    hk_table_add(table, r->name);
    (void)snprintf(text, sizeof text, "%" PRId64, r->lane);
    hk_table_adds(table, text);
    hk_table_add(table, r->boot);
    hk_table_add(table, r->version);
    hk_table_adds(table, hk_show_ago(r->started_ms, now_ms, ago));
    (void)snprintf(text, sizeof text, "%" PRIu32, r->shards);
    hk_table_adds(table, text);
    hk_table_adds(table, hk_show_count(r->in_hand, n));
    hk_table_adds(table, r->oldest_due_ms != 0 ? hk_show_duration(since(r->oldest_due_ms, now_ms), n) : "-");
    hk_table_adds(table, lease_text(r, now_ms, text));
}

static void print_relays(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_relays *relays = result;
    static const struct hk_table_column columns[] = {
        {"RELAY", false, 40},   {"LANE", true, 0},    {"BOOT", false, 20},
        {"VERSION", false, 20}, {"STARTED", true, 0}, {"SHARDS", true, 0},
        {"IN HAND", true, 0},   {"LAG", true, 0},     {"LEASE", false, 0}};
    struct hk_table table;
    (void)ask;
    if (relays->n == 0) {
        (void)hk_buf_adds(out, "no relay is running: start one with 'hikyaku run'\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < relays->n; i++)
        add_row(&table, &relays->items[i], relays->now_ms);
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (relays->shards_free > 0)
        (void)hk_buf_addf(out,
                          "%" PRIu32 " of %" PRIu32 " shards are nobody's: the next upkeep shares them out\n",
                          relays->shards_free, relays->shards);
}

int hk_cmd_relays_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_relays);
}
