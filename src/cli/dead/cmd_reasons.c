/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead reasons: every reason code with its rule, from the table that the program itself goes by. docs/reasons.md is what
 * --markdown prints. */
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/table.h"
#include "desk/dead_look.h"

static void write_markdown(const struct hk_reason_rows *rows, struct hk_buf *out)
{
    (void)hk_buf_adds(
        out,
        "# Reason codes\n\n"
        "Printed by `hikyaku dead reasons --markdown`. *Fault* says who has to repair something: the\n"
        "destination refused or could not be reached, or our own pipeline broke before anything was sent. Where\n"
        "a code only says that we gave up, the fault is that of the last attempt's cause.\n\n"
        "| code | rule | fault |\n|---|---|---|\n");
    for (size_t i = 0; i < rows->n; i++)
        (void)hk_buf_addf(out, "| `%s` | %s | %s |\n", rows->items[i].code, rows->items[i].rule,
                          rows->items[i].blame);
}

static void write_table(const struct hk_reason_rows *rows, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"CODE", false, 0}, {"FAULT", false, 0}, {"RULE", false, 0}};
    struct hk_table table;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < rows->n; i++) {
        hk_table_adds(&table, rows->items[i].code);
        hk_table_adds(&table, rows->items[i].blame);
        hk_table_adds(&table, rows->items[i].rule);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void print_reasons(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    if (hk_args_flag(ask->cli, "markdown"))
        write_markdown(result, out);
    else
        write_table(result, out);
}

int hk_cmd_dead_reasons(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_read(cli, &ask); /* whatever the configuration says */
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print_reasons);
    hk_ask_end(&ask);
    return code;
}
