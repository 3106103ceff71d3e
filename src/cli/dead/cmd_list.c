/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead list, dead export: letters that fit a filter; for reading, as JSON, or whole as NDJSON. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/dead.h"
#include "desk/dead_look.h"
#include "desk/forms.h"

enum {
    CUT_TEXT_MAX = 400,
};

/* ---- list ---- */

static void add_row(struct hk_table *table, const struct hk_letter *letter, int64_t now_ms)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%" PRId64, letter->id);
    hk_table_adds(table, text);
    hk_table_add(table, hk_say_to(letter->destination));
    hk_table_add(table, letter->event_type);
    hk_table_add(table, letter->reason);
    (void)snprintf(text, sizeof text, "%" PRIu32, letter->attempts);
    hk_table_adds(table, text);
    hk_table_adds(table, hk_show_ago(letter->first_failed_ms, now_ms, text));
    hk_table_adds(table, hk_letter_state(letter));
    hk_table_add(table, letter->error);
}

static void print_letters(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"ID", true, 0},    {"DESTINATION", false, 20}, {"TYPE", false, 24},  {"REASON", false, 20},
        {"TRIES", true, 0}, {"FIRST FAILED", false, 0}, {"STATUS", false, 0}, {"ERROR", false, 60}};
    const struct hk_dead_list *list = result;
    struct hk_table table;
    (void)ask;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < list->n; i++)
        add_row(&table, &list->items[i], list->now_ms);
    if (table.n_cells > 0)
        hk_table_write(&table, out);
    else
        (void)hk_buf_adds(out, list->looked > 0 ? "no dead letters fit so far\n" : "no dead letters fit\n");
    hk_table_fini(&table);
    if (list->looked > 0)
        (void)hk_buf_addf(out,
                          "stopped after %" PRIu64 " letters; continue with --after %" PRId64
                          " (--scan N looks further at once)\n",
                          list->looked, list->next);
    else if (list->next != 0)
        (void)hk_buf_addf(out, "more: continue with --after %" PRId64 "\n", list->next);
}

int hk_cmd_dead_list(struct hk_cli *cli)
{
    return hk_looking_once(cli, print_letters);
}

/* ---- export ---- */

static void warn_of_cut(const struct hk_letter *letter)
{
    struct hk_buf text;
    hk_buf_init(&text, CUT_TEXT_MAX);
    hk_say_cut(&text, letter->payload_bytes, "dead_letters WHERE id", letter->id);
    struct hk_str line = hk_buf_str(&text);
    (void)fprintf(stderr, "hikyaku: letter %" PRId64 ": %.*s\n", letter->id, (int)line.len, line.ptr);
    hk_buf_fini(&text);
}

static bool write_letter(void *arg, const struct hk_letter *letter, bool cut)
{
    int *code = arg;
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, (size_t)1 << 32);
    hk_json_init(&json, &out, false);
    hk_form_write(&json, hk_form_dead_line, &(struct hk_dead_line){*letter, cut});
    (void)hk_buf_addc(&out, '\n');
    *code = hk_out_buffer(&out);
    if (cut)
        warn_of_cut(letter);
    return *code == HK_EXIT_OK;
}

static void tell_exported(void *arg, const struct hk_progress *progress)
{
    (void)arg;
    (void)fprintf(stderr, "\r%" PRIu64 " exported", progress->done);
}

int hk_cmd_dead_export(struct hk_cli *cli)
{
    struct hk_ask ask;
    int written = HK_EXIT_OK, code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK) {
        struct hk_dead_export_ask *request = ask.request;
        const struct hk_dead_exported *exported = ask.result;
        request->take = write_letter;
        request->arg = &written;
        if (isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) != 1)
            ask.caller.progress = tell_exported;
        code = hk_ask_run(&ask);
        if (ask.caller.progress != NULL && code == HK_EXIT_OK)
            (void)fputc('\n', stderr);
        if (code == HK_EXIT_OK)
            code = written;
        if (code == HK_EXIT_OK && exported->cut > 0)
            code = HK_EXIT_FAILURE;
    }
    hk_ask_end(&ask);
    return code;
}
