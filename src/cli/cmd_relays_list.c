/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku relays list: who relays, how much of the outbox is theirs, what they have in hand, and how far behind they are. */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/table.h"

static uint64_t since(int64_t ms, int64_t now_ms)
{
    return ms < now_ms ? (uint64_t)now_ms - (uint64_t)ms : 0;
}

static const char *lease_text(const struct hk_relay_row *r, int64_t now_ms, char out[96])
{
    char text[HK_OUT_TEXT];
    if (r->running)
        (void)snprintf(out, 96, "%s left", hk_out_duration((uint64_t)r->until_ms - (uint64_t)now_ms, text));
    else
        (void)snprintf(out, 96, "ended %s ago: stopped without a word",
                       hk_out_duration(since(r->until_ms, now_ms), text));
    return out;
}

static void add_row(struct hk_table *table, const struct hk_relay_row *r, int64_t now_ms)
{
    char text[96], n[HK_OUT_TEXT], ago[64];
    hk_table_add(table, r->name);
    (void)snprintf(text, sizeof text, "%" PRId64, r->lane);
    hk_table_adds(table, text);
    hk_table_add(table, r->boot);
    hk_table_add(table, r->version);
    hk_table_adds(table, hk_operate_ago(r->started_ms, now_ms, ago));
    (void)snprintf(text, sizeof text, "%" PRIu32, r->shards);
    hk_table_adds(table, text);
    hk_table_adds(table, hk_out_count(r->in_hand, n));
    hk_table_adds(table, r->oldest_due_ms != 0 ? hk_out_duration(since(r->oldest_due_ms, now_ms), n) : "-");
    hk_table_adds(table, lease_text(r, now_ms, text));
}

static void write_text(struct hk_buf *out, const struct hk_relays *relays)
{
    static const struct hk_table_column columns[] = {
        {"RELAY", false, 40},   {"LANE", true, 0},    {"BOOT", false, 20},
        {"VERSION", false, 20}, {"STARTED", true, 0}, {"SHARDS", true, 0},
        {"IN HAND", true, 0},   {"LAG", true, 0},     {"LEASE", false, 0}};
    struct hk_table table;
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

static void put_row(struct hk_json *json, const struct hk_relay_row *r, int64_t now_ms)
{
    hk_json_object(json);
    hk_put_str(json, "name", r->name);
    hk_put_id(json, "lane", r->lane);
    hk_put_str(json, "boot", r->boot);
    hk_put_str(json, "version", r->version);
    hk_put_bool(json, "running", r->running);
    hk_put_time(json, "started_at", r->started_ms);
    hk_put_u64(json, "shards", r->shards);
    hk_put_u64(json, "in_hand", r->in_hand);
    hk_json_key(json, "lag_ms");
    if (r->oldest_due_ms != 0)
        hk_json_u64(json, since(r->oldest_due_ms, now_ms));
    else
        hk_json_null(json);
    hk_put_i64(json, "lease_left_ms",
               r->until_ms < 0 ? -now_ms : r->until_ms - now_ms); /* rows may hold anything */
    hk_json_end(json);
}

static void write_json(struct hk_buf *out, const struct hk_relays *relays)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; i < relays->n; i++)
        put_row(&json, &relays->items[i], relays->now_ms);
    hk_json_end(&json);
    hk_json_key(&json, "next");
    hk_json_null(&json);
    hk_put_u64(&json, "shards", relays->shards);
    hk_put_u64(&json, "shards_free", relays->shards_free);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

static enum hk_code ask(const struct hk_cli *cli, const struct hk_operate *op, struct hk_buf *out,
                        struct hk_err *err)
{
    const struct hk_relays *relays = NULL;
    enum hk_code rc = op->ops->relays(op->admin, &relays, err);
    if (rc == HK_OK && hk_args_flag(cli, "json"))
        write_json(out, relays);
    else if (rc == HK_OK)
        write_text(out, relays);
    return rc;
}

int hk_cmd_relays_list(struct hk_cli *cli)
{
    return hk_operate_show(cli, ask);
}
