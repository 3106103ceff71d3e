/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku status: what is due, what waits and for how long, what failed, and who relays. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/table.h"

static const char *const buckets[HK_ATTEMPT_BUCKETS] = {"0", "1", "2", "3", "4", "5-9", "10-19", "20+"};

/* ---- for reading ---- */

static void figure(struct hk_buf *out, const char *name, struct hk_count count, const char *note)
{
    char n[48];
    (void)hk_buf_addf(out, "%-11s %12s%s%s\n", name, hk_operate_count(count, n), note[0] != '\0' ? "  " : "",
                      note);
}

static const char *age(int64_t ms, int64_t now_ms, const char *what, char out[96])
{
    char text[HK_OUT_TEXT];
    out[0] = '\0';
    if (ms != 0)
        (void)snprintf(out, 96, "%s %s", what,
                       hk_out_duration(ms < now_ms ? (uint64_t)(now_ms - ms) : 0, text));
    return out;
}

static void write_relay(struct hk_buf *out, const struct hk_store_status *s)
{
    char left[HK_OUT_TEXT];
    if (!s->relay.known) {
        (void)hk_buf_adds(out, "no relay is running: start one with 'hikyaku run'\n");
        return;
    }
    (void)hk_buf_adds(out, s->relay.running ? "relay " : "no relay is running: ");
    (void)hk_table_safe(out, s->relay.name, 60);
    if (s->relays_running > 1)
        (void)hk_buf_addf(out, " and %" PRIu32 " more: 'hikyaku relays list' shows them\n",
                          s->relays_running - 1);
    else if (s->relay.running)
        (void)hk_buf_addf(out, " (lane %" PRId64 "), lease ends in %s unless renewed\n", s->relay.lane,
                          hk_out_duration((uint64_t)(s->relay.until_ms - s->now_ms), left));
    else
        (void)hk_buf_addf(out,
                          " stopped without a word, its lease ended %s ago; start one with 'hikyaku run'\n",
                          hk_out_duration((uint64_t)(s->now_ms - s->relay.until_ms), left));
}

static void write_attempts(struct hk_buf *out, const struct hk_store_status *s)
{
    bool any = false;
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++)
        any |= s->attempts[i].n > 0;
    if (!any)
        return;
    (void)hk_buf_adds(out, "\nundelivered by attempts made:");
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++) {
        char n[48];
        if (s->attempts[i].n > 0)
            (void)hk_buf_addf(out, "  %s: %s", buckets[i], hk_operate_count(s->attempts[i], n));
    }
    (void)hk_buf_addc(out, '\n');
}

static void add_held(struct hk_table *table, const struct hk_dest_status *d, int64_t now_ms)
{
    struct hk_buf text;
    hk_buf_init(&text, 1 << 16);
    hk_operate_held(&text, d, now_ms);
    hk_table_add(table, hk_buf_str(&text));
    hk_buf_fini(&text);
}

static void write_dests(struct hk_buf *out, const struct hk_store_status *s)
{
    static const struct hk_table_column columns[] = {{"DESTINATION", false, 40}, {"PENDING", true, 0},
                                                     {"PROCESSING", true, 0},    {"RETRYING", true, 0},
                                                     {"DEAD", true, 0},          {"", false, 120}};
    struct hk_table table;
    char n[48];
    if (s->n_dests == 0)
        return;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < s->n_dests; i++) {
        const struct hk_dest_status *d = &s->dests[i];
        if (d->name.len > 0)
            hk_table_add(&table, d->name);
        else
            hk_table_adds(&table, "(by route)");
        hk_table_adds(&table, hk_operate_count(d->pending, n));
        hk_table_adds(&table, hk_operate_count((struct hk_count){d->processing, false}, n));
        hk_table_adds(&table, hk_operate_count(d->retrying, n));
        hk_table_adds(&table, hk_operate_count(d->dead, n));
        add_held(&table, d, s->now_ms);
    }
    (void)hk_buf_addc(out, '\n');
    hk_table_write(&table, out);
    if (s->more_dests)
        (void)hk_buf_adds(out, "… and more destinations\n");
    hk_table_fini(&table);
}

static void write_text(struct hk_buf *out, const struct hk_store_status *s)
{
    char note[96];
    figure(out, "due now", s->due, age(s->oldest_due_ms, s->now_ms, "the oldest for", note));
    figure(out, "retrying", s->retrying, "waiting for their next attempt");
    figure(out, "scheduled", s->scheduled, "for later");
    figure(out, "processing", (struct hk_count){s->processing, false}, "in flight");
    figure(out, "dead", s->dead, "letters that are open");
    figure(out, "sent", s->sent, "still kept");
    figure(out, "cancelled", s->cancelled, "still kept");
    (void)hk_buf_addc(out, '\n');
    write_relay(out, s);
    if (s->oldest_ms != 0)
        (void)hk_buf_addf(out, "%s\n", age(s->oldest_ms, s->now_ms, "oldest undelivered message:", note));
    write_attempts(out, s);
    write_dests(out, s);
}

/* ---- JSON ---- */

static void put_age(struct hk_json *json, const char *key, int64_t ms, int64_t now_ms)
{
    hk_json_key(json, key);
    if (ms == 0)
        hk_json_null(json);
    else
        hk_json_i64(json, ms < now_ms ? now_ms - ms : 0);
}

static void put_relay(struct hk_json *json, const struct hk_store_status *s)
{
    hk_json_key(json, "relay");
    if (!s->relay.known) {
        hk_json_null(json);
        return;
    }
    hk_json_object(json);
    hk_put_bool(json, "running", s->relay.running);
    hk_put_id(json, "lane", s->relay.lane);
    hk_put_str(json, "name", s->relay.name);
    hk_put_str(json, "version", s->relay.version);
    hk_put_time(json, "started_at", s->relay.started_ms);
    hk_put_i64(json, "lease_left_ms", s->relay.until_ms - s->now_ms);
    hk_json_end(json);
}

static void put_dest(struct hk_json *json, const struct hk_dest_status *d)
{
    hk_json_object(json);
    hk_json_key(json, "name");
    hk_json_str(json, d->name);
    hk_put_count(json, "pending", d->pending);
    hk_put_count(json, "processing", (struct hk_count){d->processing, false});
    hk_put_count(json, "retrying", d->retrying);
    hk_put_count(json, "dead", d->dead);
    hk_put_held(json, d);
    hk_json_end(json);
}

static void write_json(struct hk_buf *out, const struct hk_store_status *s)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_put_time(&json, "now", s->now_ms);
    hk_put_count(&json, "due", s->due);
    hk_put_count(&json, "retrying", s->retrying);
    hk_put_count(&json, "scheduled", s->scheduled);
    hk_put_count(&json, "processing", (struct hk_count){s->processing, false});
    hk_put_count(&json, "dead", s->dead);
    hk_put_count(&json, "sent", s->sent);
    hk_put_count(&json, "cancelled", s->cancelled);
    put_age(&json, "oldest_due_ms", s->oldest_due_ms, s->now_ms);
    put_age(&json, "oldest_undelivered_ms", s->oldest_ms, s->now_ms);
    hk_json_key(&json, "attempts");
    hk_json_array(&json);
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++) {
        hk_json_object(&json);
        hk_put_str(&json, "attempts", hk_str_of(buckets[i]));
        hk_put_count(&json, "messages", s->attempts[i]);
        hk_json_end(&json);
    }
    hk_json_end(&json);
    put_relay(&json, s);
    hk_put_u64(&json, "relays_running", s->relays_running);
    hk_json_key(&json, "destinations");
    hk_json_array(&json);
    for (size_t i = 0; i < s->n_dests; i++)
        put_dest(&json, &s->dests[i]);
    hk_json_end(&json);
    hk_put_bool(&json, "more_destinations", s->more_dests);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

static enum hk_code ask(const struct hk_cli *cli, const struct hk_operate *op, struct hk_buf *out,
                        struct hk_err *err)
{
    const struct hk_store_status *status = NULL;
    enum hk_code rc = op->ops->status(op->admin, &status, err);
    if (rc == HK_OK && hk_args_flag(cli, "json"))
        write_json(out, status);
    else if (rc == HK_OK)
        write_text(out, status);
    return rc;
}

int hk_cmd_status(struct hk_cli *cli)
{
    return hk_operate_show(cli, ask);
}
