/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the configuration, and the policies that the desk shows. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "cli/table.h"
#include "config/policies_impl.h"

static const char usual_path[] = "hikyaku.yaml";

const char *hk_cli_config_path(const struct hk_cli *cli)
{
    const char *path = hk_args_value(cli, "config");

    if (path == NULL)
        path = getenv("HIKYAKU_CONFIG");
    if (path != NULL && path[0] != '\0')
        return path;
    return access(usual_path, F_OK) == 0 ? usual_path : NULL;
}

static void report(void *arg, const char *line)
{
    *(bool *)arg = true;
    hk_out_complaint(line);
}

static int read_policies(const struct hk_cli *cli, struct hk_policies **out_policies)
{
    const char *path = hk_cli_config_path(cli);
    struct hk_policies *policies = NULL;
    struct hk_err err = {.code = HK_OK};
    bool reported = false;

    if (hk_policies_new(&policies, &err) != HK_OK)
        return hk_out_failure(&err);
    if (path != NULL && hk_policies_read(policies, path, true, report, &reported, &err) != HK_OK) {
        hk_policies_free(policies);
        if (err.code == HK_NOMEM)
            return hk_out_failure(&err);
        if (!reported)
            return hk_out_error(HK_EXIT_CONFIG, "%s", err.message);
        return hk_out_error(HK_EXIT_CONFIG, "the configuration '%s' has errors; policies were not read",
                            path);
    }
    *out_policies = policies;
    return HK_EXIT_OK;
}

void hk_policy_make_safe(struct hk_buf *out)
{
    struct hk_buf safe;
    if (hk_buf_status(out) != HK_OK)
        return;
    hk_buf_init(&safe, out->max);
    hk_table_safe_lines(&safe, hk_buf_str(out));
    hk_buf_reset(out);
    (void)hk_buf_add(out, hk_buf_cstr(&safe), safe.len);
    hk_buf_inherit(out, &safe);
    hk_buf_fini(&safe);
}

/* Tables and pictures show what JSON has only on request. */
static void ask_for_details(struct hk_ask *ask)
{
    if (hk_args_flag(ask->cli, "json") && hk_args_value(ask->cli, "svg") == NULL)
        return;
    for (const struct hk_arg *arg = ask->op->args; arg != NULL && arg->name != NULL; arg++)
        if (strcmp(arg->name, "details") == 0)
            *(bool *)((char *)ask->request + arg->offset) = true;
}

static int begin_here(const struct hk_cli *cli, struct hk_ask *ask, struct hk_policies **out_policies)
{
    int code = read_policies(cli, out_policies);
    if (code == HK_EXIT_OK) {
        hk_desk_init(&ask->desk, NULL, NULL);
        ask->desk.policies = *out_policies;
    }
    return code;
}

int hk_policy_ask(const struct hk_cli *cli, int (*also)(const struct hk_ask *ask), hk_print_fn *print)
{
    struct hk_policies *policies = NULL;
    struct hk_ask ask;
    bool elsewhere = false;
    int code = hk_ask_read(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_elsewhere(&ask, &elsewhere);
    if (code == HK_EXIT_OK && !elsewhere)
        code = begin_here(cli, &ask, &policies);
    if (code == HK_EXIT_OK) {
        ask_for_details(&ask);
        code = hk_ask_run(&ask);
    }
    if (code == HK_EXIT_OK && also != NULL)
        code = also(&ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print);
    hk_ask_end(&ask);
    hk_policies_free(policies);
    return code;
}
