/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead reasons: every reason code with its rule, from the table that the program itself goes by. docs/reasons.md is what
 * --markdown prints. */
#include <hikyaku/policy.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/table.h"

static const char *fault(const char *reason)
{
    return hk_blame_name(hk_blame_of(hk_str_of(reason), hk_str_of(""), 0));
}

static void write_json(struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; hk_reason_name(i) != NULL; i++) {
        hk_json_object(&json);
        hk_put_cstr(&json, "reason_code", hk_reason_name(i));
        hk_put_cstr(&json, "rule", hk_reason_rule(i));
        hk_put_cstr(&json, "fault", fault(hk_reason_name(i)));
        hk_json_end(&json);
    }
    hk_json_end(&json);
    hk_put_cstr(&json, "next", NULL);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

static void write_markdown(struct hk_buf *out)
{
    (void)hk_buf_adds(
        out,
        "# Reason codes\n\n"
        "Printed by `hikyaku dead reasons --markdown`. *Fault* says who has to repair something: the\n"
        "destination refused or could not be reached, or our own pipeline broke before anything was sent. Where\n"
        "a code only says that we gave up, the fault is that of the last attempt's cause.\n\n"
        "| code | rule | fault |\n|---|---|---|\n");
    for (size_t i = 0; hk_reason_name(i) != NULL; i++)
        (void)hk_buf_addf(out, "| `%s` | %s | %s |\n", hk_reason_name(i), hk_reason_rule(i),
                          fault(hk_reason_name(i)));
}

static void write_table(struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"CODE", false, 0}, {"FAULT", false, 0}, {"RULE", false, 0}};
    struct hk_table table;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; hk_reason_name(i) != NULL; i++) {
        hk_table_adds(&table, hk_reason_name(i));
        hk_table_adds(&table, fault(hk_reason_name(i)));
        hk_table_adds(&table, hk_reason_rule(i));
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

int hk_cmd_dead_reasons(struct hk_cli *cli)
{
    struct hk_buf out;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "markdown"))
        write_markdown(&out);
    else if (hk_args_flag(cli, "json"))
        write_json(&out);
    else
        write_table(&out);
    return hk_out_buffer(&out);
}
