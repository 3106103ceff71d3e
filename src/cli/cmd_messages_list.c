/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages list: by keyset, newest first within retry, outbox, dead, cancelled, sent. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/table.h"
#include "config/payload.h"
#include "exec/clock.h"

struct printer {
    struct hk_masks *masks;
    bool as_json;
    struct hk_table table;
    struct hk_buf out;
    struct hk_json json;
    uint64_t n, limit;
    int64_t now_ms;
    char next[48]; /* the cursor; "" = that was all */
};

/* "PLACE:ID" */
static bool read_cursor(const char *text, struct hk_list *list)
{
    struct hk_str id = hk_str_of(text);
    struct hk_str place = hk_str_cut(&id, ':');
    list->resume = true;
    return id.ptr != NULL && hk_place_by_name(place, &list->after_place) &&
           hk_parse_i64(id, &list->after_id, NULL) == HK_OK;
}

static bool state_by_name(const char *name, enum hk_state *out)
{
    for (int s = HK_PENDING; s < HK_NSTATES; s++)
        if (strcmp(name, hk_state_name((enum hk_state)s)) == 0) {
            *out = (enum hk_state)s;
            return true;
        }
    return false;
}

static int read_options(const struct hk_cli *cli, struct hk_list *list, uint64_t *limit)
{
    const char *status = hk_args_value(cli, "status"), *after = hk_args_value(cli, "after");
    *limit = 50;
    list->destination = hk_args_value(cli, "destination");
    list->event_type = hk_args_value(cli, "event-type");
    if (!hk_args_u64(cli, "limit", 1, 100000, limit))
        return HK_EXIT_USAGE;
    if (status != NULL && !state_by_name(status, &list->state))
        return hk_out_error(
            HK_EXIT_USAGE,
            "option '--status' takes pending, processing, retrying, sent, dead or cancelled, not '%s'",
            status);
    if (after != NULL && !read_cursor(after, list))
        return hk_out_error(HK_EXIT_USAGE,
                            "option '--after' takes what an earlier list gave as next, not '%s'", after);
    return HK_EXIT_OK;
}

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
    (void)snprintf(out, 96, "%s%s", word, hk_operate_ago(ms, now_ms, ago));
}

static void add_row(struct hk_table *table, const struct hk_row *row, int64_t now_ms)
{
    char text[96], ago[64];
    hk_table_add(table, row->message_id);
    hk_table_adds(table, hk_state_name(row->state));
    hk_table_add(table, hk_operate_to(row->destination));
    hk_table_add(table, row->event_type);
    (void)snprintf(text, sizeof text, "%" PRIu32, row->attempts);
    hk_table_adds(table, text);
    hk_table_adds(table, hk_operate_ago(row->created_ms, now_ms, ago));
    when(row, now_ms, text);
    hk_table_adds(table, text);
    hk_table_add(table, row->state == HK_STATE_CANCELLED ? row->reason : row->last_error);
}

static void put_rows(struct printer *p, const struct hk_rows *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* what it says may be what a mask hides, and only the payload could tell */
        if (rows->items[i].last_error.len > 0 && hk_masks_fit(p->masks, rows->items[i].event_type))
            rows->items[i].last_error = hk_str_of("(masks apply: messages show)");
        if (!p->as_json) {
            add_row(&p->table, &rows->items[i], p->now_ms);
            continue;
        }
        hk_json_object(&p->json);
        hk_put_row(&p->json, &rows->items[i]);
        hk_json_end(&p->json);
    }
    p->n += n;
}

/* One more than wanted is asked for, so that `next` is there only when there is a next one. */
static enum hk_code read_pages(const struct hk_operate *op, struct hk_list *list, struct printer *p,
                               struct hk_err *err)
{
    const struct hk_rows *rows = NULL;
    bool more = true;
    while (more) {
        list->limit = (uint32_t)(p->limit - p->n + 1 < 1000 ? p->limit - p->n + 1 : 1000);
        enum hk_code rc = op->ops->list(op->admin, list, &rows, err);
        if (rc != HK_OK)
            return rc;
        bool over = rows->n > p->limit - p->n;
        put_rows(p, rows, over ? (size_t)(p->limit - p->n) : rows->n);
        more = rows->more && !over;
        if (over) {
            /* of the last one that is shown; it may have come with an earlier page */
            enum hk_place place = list->after_place;
            int64_t id = list->after_id;
            if (rows->n > 1) {
                place = rows->items[rows->n - 2].place;
                id = rows->items[rows->n - 2].id;
            }
            (void)snprintf(p->next, sizeof p->next, "%s:%" PRId64, hk_place_name(place), id);
        }
        list->resume = true;
        list->after_place = rows->last_place;
        list->after_id = rows->last_id;
    }
    return HK_OK;
}

static void finish(struct printer *p)
{
    if (p->as_json) {
        hk_json_end(&p->json);
        hk_put_cstr(&p->json, "next", p->next[0] != '\0' ? p->next : NULL);
        hk_json_end(&p->json);
        (void)hk_buf_addc(&p->out, '\n');
        return;
    }
    if (p->n == 0)
        (void)hk_buf_adds(&p->out, "no messages\n");
    else
        hk_table_write(&p->table, &p->out);
    if (p->next[0] != '\0')
        (void)hk_buf_addf(&p->out, "more: --after %s\n", p->next);
}

static int list_messages(const struct hk_cli *cli, struct hk_list *list, uint64_t limit)
{
    static const struct hk_table_column columns[] = {
        {"MESSAGE", false, 40}, {"STATUS", false, 0},  {"DESTINATION", false, 24}, {"EVENT", false, 24},
        {"TRIES", true, 0},     {"WRITTEN", false, 0}, {"WHEN", false, 0},         {"LAST ERROR", false, 60}};
    struct printer p = {.as_json = hk_args_flag(cli, "json"), .limit = limit, .now_ms = hk_clock_wall_ms()};
    struct hk_operate op;
    struct hk_err err = {.message = ""};
    int code = hk_operate_open(cli, &op);
    if (code != HK_EXIT_OK)
        return code;
    hk_buf_init(&p.out, HK_OPERATE_OUTPUT_MAX);
    hk_table_init(&p.table, columns, sizeof columns / sizeof columns[0]);
    hk_json_init(&p.json, &p.out, true);
    if (p.as_json) {
        hk_json_object(&p.json);
        hk_json_key(&p.json, "items");
        hk_json_array(&p.json);
    }
    enum hk_code rc = hk_config_make_masks(op.config, &p.masks, &err);
    if (rc == HK_OK)
        rc = read_pages(&op, list, &p, &err);
    if (rc == HK_OK) {
        finish(&p);
        code = hk_out_buffer(&p.out);
    } else {
        code = hk_operate_failed(&err);
        hk_buf_fini(&p.out);
    }
    hk_table_fini(&p.table);
    hk_masks_free(p.masks);
    hk_operate_close(&op);
    return code;
}

int hk_cmd_messages_list(struct hk_cli *cli)
{
    struct hk_list list = {.state = HK_STATE_NONE};
    uint64_t limit = 0;
    int code = read_options(cli, &list, &limit);
    return code != HK_EXIT_OK ? code : list_messages(cli, &list, limit);
}
