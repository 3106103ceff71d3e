/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead list, dead export: letters that fit a filter, by keyset; for reading, as JSON, or whole as NDJSON. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/table.h"

enum {
    EXPORT_PAGE = 50,
    CUT_TEXT_MAX = 400,
    LIST_PAGE = 500,
};

/* Of each letter, to find in its error what the masks hide; a larger payload hides the error instead. */
#define LOOK_BYTES ((size_t)256 << 10)
/* Of a page, so that 50 large payloads are not in memory at once. */
#define PAGE_BYTES ((uint64_t)4 << 20)

static enum hk_code next_page(const struct hk_dead *dead, const struct hk_letter_query *query,
                              struct hk_letter_page *page, const struct hk_letters **out, struct hk_err *err)
{
    enum hk_code rc = dead->letters->list(dead->op.admin, query, page, out, err);
    if (rc == HK_OK)
        page->after_id = (*out)->last_id;
    return rc;
}

static int reveal(const struct hk_cli *cli, const struct hk_dead *dead, const struct hk_letters *found)
{
    int64_t ids[LIST_PAGE];
    for (size_t i = 0; i < found->n && i < LIST_PAGE; i++)
        ids[i] = found->items[i].id;
    return hk_dead_reveal(cli, dead, ids, found->n);
}

/* ---- list ---- */

struct list {
    const struct hk_cli *cli;
    struct hk_dead dead;
    struct hk_letter_page page;
    bool as_json;
    struct hk_table table;
    struct hk_buf out;
    struct hk_json json;
    uint64_t n, limit;
    int64_t next; /* 0 = that was all */
    struct hk_dead_seen seen;
};

static void add_row(struct list *l, const struct hk_letter *letter, int64_t now_ms)
{
    char text[64];
    struct hk_buf error;
    if (l->as_json) {
        hk_json_object(&l->json);
        hk_dead_put(&l->json, &l->dead, letter, false);
        hk_json_end(&l->json);
        return;
    }
    (void)snprintf(text, sizeof text, "%" PRId64, letter->id);
    hk_table_adds(&l->table, text);
    hk_table_add(&l->table, hk_operate_to(letter->destination));
    hk_table_add(&l->table, letter->event_type);
    hk_table_add(&l->table, letter->reason);
    (void)snprintf(text, sizeof text, "%" PRIu32, letter->attempts);
    hk_table_adds(&l->table, text);
    hk_table_adds(&l->table, hk_operate_ago(letter->first_failed_ms, now_ms, text));
    hk_table_adds(&l->table, hk_dead_status(letter));
    hk_buf_init(&error, HK_OPERATE_OUTPUT_MAX);
    hk_dead_show_text(&l->dead, letter, letter->error, &error);
    hk_table_add(&l->table, hk_buf_str(&error));
    hk_buf_fini(&error);
}

/* Until there are enough: a call of the store looks at a bounded number of rows. */
static int collect(struct list *l, const struct hk_letter_query *query)
{
    struct hk_err err = {.message = ""};
    bool more = true;
    while (more && l->n < l->limit) {
        const struct hk_letters *found = NULL;
        l->page.limit = (uint32_t)(l->limit - l->n < LIST_PAGE ? l->limit - l->n : LIST_PAGE);
        if (next_page(&l->dead, query, &l->page, &found, &err) != HK_OK)
            return hk_operate_failed(&err);
        int code = reveal(l->cli, &l->dead, found);
        if (code != HK_EXIT_OK)
            return code;
        for (size_t i = 0; i < found->n; i++)
            add_row(l, &found->items[i], found->now_ms);
        l->n += found->n;
        more = found->more;
    }
    l->next = more ? l->page.after_id : 0;
    return HK_EXIT_OK;
}

static int print(struct list *l)
{
    if (l->as_json) {
        hk_json_end(&l->json);
        hk_put_id(&l->json, "next", l->next);
        hk_json_end(&l->json);
        (void)hk_buf_addc(&l->out, '\n');
    } else {
        if (l->n > 0)
            hk_table_write(&l->table, &l->out);
        else
            (void)hk_buf_adds(&l->out, "no dead letters fit\n");
        if (l->next != 0)
            (void)hk_buf_addf(&l->out, "there are more: --after %" PRId64 "\n", l->next);
    }
    return hk_out_buffer(&l->out);
}

static int list(struct list *l, const struct hk_letter_query *query)
{
    static const struct hk_table_column columns[] = {
        {"ID", true, 0},    {"DESTINATION", false, 20}, {"TYPE", false, 24},  {"REASON", false, 20},
        {"TRIES", true, 0}, {"FIRST FAILED", false, 0}, {"STATUS", false, 0}, {"ERROR", false, 60}};
    hk_buf_init(&l->out, HK_OPERATE_OUTPUT_MAX);
    hk_table_init(&l->table, columns, sizeof columns / sizeof columns[0]);
    if (l->as_json) {
        hk_json_init(&l->json, &l->out, true);
        hk_json_object(&l->json);
        hk_json_key(&l->json, "items");
        hk_json_array(&l->json);
    }
    int code = collect(l, query);
    hk_dead_seen_end(&l->seen);
    if (code == HK_EXIT_OK)
        code = print(l);
    hk_table_fini(&l->table);
    hk_buf_fini(&l->out);
    return code;
}

int hk_cmd_dead_list(struct hk_cli *cli)
{
    struct list l = {.cli = cli, .as_json = hk_args_flag(cli, "json"), .limit = 50};
    struct hk_dead_filter filter;
    uint64_t after = 0;
    if (!hk_args_u64(cli, "limit", 1, 100000, &l.limit) || !hk_args_u64(cli, "after", 1, INT64_MAX, &after))
        return HK_EXIT_USAGE;
    int code = hk_dead_filter(cli, false, &filter);
    if (code != HK_EXIT_OK)
        return code;
    code = hk_dead_open(cli, &l.dead);
    if (code == HK_EXIT_OK) {
        l.page = (struct hk_letter_page){.after_id = (int64_t)after,
                                         .oldest_first = hk_args_flag(cli, "oldest"),
                                         .details = l.dead.masks != NULL, /* headers: as the payload */
                                         .payload_max = l.dead.masks != NULL ? LOOK_BYTES : 0,
                                         .bytes_max = PAGE_BYTES};
        hk_dead_seen_begin(&l.seen, &filter.query);
        code = list(&l, &filter.query);
        hk_dead_close(&l.dead);
    }
    hk_dead_filter_free(&filter);
    return code;
}

/* ---- export ---- */

static int export_one(const struct hk_dead *dead, const struct hk_letter *letter)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, (size_t)1 << 32);
    hk_json_init(&json, &out, false);
    hk_json_object(&json);
    hk_dead_put(&json, dead, letter, true);
    hk_json_end(&json);
    (void)hk_buf_addc(&out, '\n');
    return hk_out_buffer(&out);
}

static bool is_cut(const struct hk_letter *letter)
{
    return letter->has_payload && letter->payload.len < letter->payload_bytes;
}

static void warn_of_cut(const struct hk_letter *letter)
{
    struct hk_buf text;
    hk_buf_init(&text, CUT_TEXT_MAX);
    hk_operate_cut(&text, letter->payload_bytes, "dead_letters WHERE id", letter->id);
    struct hk_str line = hk_buf_str(&text);
    (void)fprintf(stderr, "hikyaku: letter %" PRId64 ": %.*s\n", letter->id, (int)line.len, line.ptr);
    hk_buf_fini(&text);
}

static int export_page(const struct hk_dead *dead, const struct hk_letters *found, uint64_t *cut)
{
    int code = HK_EXIT_OK;
    for (size_t i = 0; i < found->n && code == HK_EXIT_OK; i++) {
        code = export_one(dead, &found->items[i]);
        if (!is_cut(&found->items[i]))
            continue;
        warn_of_cut(&found->items[i]);
        ++*cut;
    }
    return code;
}

static int export_all(const struct hk_cli *cli, const struct hk_dead *dead,
                      const struct hk_letter_query *query)
{
    struct hk_letter_page page = {.limit = EXPORT_PAGE,
                                  .oldest_first = true,
                                  .details = true,
                                  .payload_max = HK_PAYLOAD_MAX,
                                  .bytes_max = PAGE_BYTES};
    struct hk_err err = {.message = ""};
    bool more = true, progress = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) != 1;
    uint64_t n = 0, cut = 0;
    int code = HK_EXIT_OK;
    while (more && code == HK_EXIT_OK) {
        const struct hk_letters *found = NULL;
        if (next_page(dead, query, &page, &found, &err) != HK_OK)
            return hk_operate_failed(&err);
        code = reveal(cli, dead, found);
        if (code == HK_EXIT_OK)
            code = export_page(dead, found, &cut);
        n += found->n;
        more = found->more;
        if (progress)
            (void)fprintf(stderr, "\r%" PRIu64 " exported%s", n, more ? "" : "\n");
    }
    return code == HK_EXIT_OK && cut > 0 ? HK_EXIT_FAILURE : code;
}

int hk_cmd_dead_export(struct hk_cli *cli)
{
    struct hk_dead dead;
    struct hk_dead_filter filter;
    int code = hk_dead_filter(cli, false, &filter);
    if (code != HK_EXIT_OK)
        return code;
    code = hk_dead_open(cli, &dead);
    if (code == HK_EXIT_OK) {
        code = export_all(cli, &dead, &filter.query);
        hk_dead_close(&dead);
    }
    hk_dead_filter_free(&filter);
    return code;
}
