/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku audit list, audit show, audit verify: show who did what and why, and check that nobody changed the audit since. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/audit.h"

/* ---- list ---- */

/* "4711", or "5,000 letters" or messages that `audit show` lists. */
static const char *letters_of(const struct hk_audit_row *row, char out[64])
{
    char number[HK_SHOW_NUMBER];
    if (row->letter_id != 0)
        (void)snprintf(out, 64, "%" PRId64, row->letter_id);
    else if (row->messages > 0)
        (void)snprintf(out, 64, "%s message%s", hk_show_count(row->messages, number),
                       row->messages == 1 ? "" : "s");
    else if (row->letters > 0)
        (void)snprintf(out, 64, "%s letter%s", hk_show_count(row->letters, number),
                       row->letters == 1 ? "" : "s");
    else
        (void)snprintf(out, 64, "-");
    return out;
}

static void print_rows(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"ID", true, 0},     {"AT", false, 0},       {"ACTOR", false, 24},       {"ACT", false, 16},
        {"LETTER", true, 0}, {"MESSAGE", false, 36}, {"DESTINATION", false, 20}, {"REASON", false, 60}};
    const struct hk_audit_rows *rows = result;
    struct hk_table table;
    char text[64], at[HK_TIME_TEXT_MAX];
    (void)ask;
    if (rows->n == 0) {
        bool some =
            hk_args_flag(ask->cli, "act") || hk_args_flag(ask->cli, "by") || hk_args_flag(ask->cli, "letter");
        (void)hk_buf_adds(out, some ? "no acts fit\n" : "nobody has done anything\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < rows->n; i++) {
        const struct hk_audit_row *row = &rows->items[i];
        (void)snprintf(text, sizeof text, "%" PRId64, row->id);
        hk_table_adds(&table, text);
        (void)hk_format_rfc3339(row->at_ms, at);
        hk_table_adds(&table, at);
        hk_table_add(&table, row->actor);
        hk_table_add(&table, row->act);
        hk_table_adds(&table, letters_of(row, text));
        hk_table_add(&table, row->message_id);
        hk_table_add(&table, row->destination);
        hk_table_add(&table, row->reason);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (rows->more)
        (void)hk_buf_addf(out, "more: continue with --after %" PRId64 "\n", rows->last_id);
}

int hk_cmd_audit_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_rows);
}

/* ---- show ---- */

/* Of messages nothing but their names: `columns` without the first and the last. */
static void write_letters(struct hk_buf *out, const struct hk_audit_letters *letters)
{
    static const struct hk_table_column columns[] = {
        {"LETTER", true, 0}, {"MESSAGE", false, 36}, {"DESTINATION", false, 20}, {"DETAIL", false, 70}};
    struct hk_table table;
    char text[64];
    bool messages = letters->items[0].is_message;
    hk_table_init(&table, messages ? columns + 1 : columns,
                  messages ? 2 : sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < letters->n; i++) {
        (void)snprintf(text, sizeof text, "%" PRId64, letters->items[i].letter_id);
        if (!messages)
            hk_table_adds(&table, text);
        hk_table_add(&table, letters->items[i].message_id);
        hk_table_add(&table, letters->items[i].destination);
        if (!messages)
            hk_table_add(&table, letters->items[i].detail);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (letters->more)
        (void)hk_buf_addf(out, "more: continue with --after %" PRId64 "\n",
                          letters->items[letters->n - 1].letter_id);
}

static void print_act(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_audit_act *act = result;
    const struct hk_audit_row *row = &act->row;
    char text[64], at[HK_TIME_TEXT_MAX];
    (void)ask;
    (void)snprintf(text, sizeof text, "%" PRId64, row->id);
    hk_say_fact(out, "act", hk_str_of(text));
    hk_say_fact(out, "what", row->act);
    (void)hk_format_rfc3339(row->at_ms, at);
    hk_say_fact(out, "at", hk_str_of(at));
    hk_say_fact(out, "actor", row->actor);
    hk_say_fact(out, "reason", row->reason);
    hk_say_fact(out, "destination", row->destination);
    hk_say_fact(out, "message", row->message_id);
    (void)snprintf(text, sizeof text, "%" PRId64, row->redrive);
    hk_say_fact(out, "redrive", hk_str_of(row->redrive != 0 ? text : ""));
    hk_say_fact(out, "filter", row->filter);
    hk_say_fact(out, "jq", row->jq);
    hk_say_fact(out,
                row->letter_id != 0  ? "letter"
                : row->messages != 0 ? "messages"
                                     : "letters",
                hk_str_of(letters_of(row, text)));
    if (act->letters.n > 0) {
        (void)hk_buf_addc(out, '\n');
        write_letters(out, &act->letters);
    }
}

int hk_cmd_audit_show(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_act);
}

/* ---- verify ---- */

static void print_verified(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_audit_verified *c = result;
    char at[HK_TIME_TEXT_MAX];
    (void)ask;
    if (c->bad_id == 0) {
        (void)hk_buf_addf(out, "%" PRIu64 " rows, the chain is whole", c->rows);
        if (c->unchained > 0)
            (void)hk_buf_addf(out, " (%" PRIu64 " from before there was one)", c->unchained);
        if (c->purged_ms != 0)
            (void)hk_buf_addf(out,
                              "\nretention has deleted %" PRIu64 " rows before them, the last ones on %.*s",
                              c->purged, (int)hk_format_rfc3339(c->purged_ms, at), at);
        if (c->begun)
            (void)hk_buf_addf(out, "\nits head: %s; kept elsewhere it proves more", c->head);
    } else if (c->bad_id > 0) {
        (void)hk_buf_addf(out, "broken at row %" PRId64 ": %s", c->bad_id, c->why);
    } else {
        (void)hk_buf_addf(out, "broken: %s", c->why);
    }
    (void)hk_buf_addc(out, '\n');
}

int hk_cmd_audit_verify(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    const struct hk_audit_verified *verified = ask.result;
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print_verified);
    if (code == HK_EXIT_OK && verified->bad_id != 0)
        code = HK_EXIT_FAILURE;
    hk_ask_end(&ask);
    return code;
}
