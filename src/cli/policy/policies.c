/* SPDX-License-Identifier: Apache-2.0 */
/* Which policies a command may name, and where the configuration is. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
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

int hk_cli_policies(const struct hk_cli *cli, struct hk_policies **out_policies)
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

/* The names that look like the one that was asked for, else all. */
static void list_names(const struct hk_policies *policies, const char *wanted, struct hk_buf *out)
{
    const struct hk_policy *policy = NULL;

    for (size_t i = 0; (policy = hk_policies_at(policies, i)) != NULL; i++)
        if (hk_str_distance(hk_policy_name(policy), wanted) <= 3 ||
            hk_str_containsi(hk_str_of(hk_policy_name(policy)), hk_str_of(wanted)))
            (void)hk_buf_addf(out, "%s'%s'", out->len > 0 ? " or " : "", hk_policy_name(policy));
    if (out->len > 0)
        return;
    for (size_t i = 0; (policy = hk_policies_at(policies, i)) != NULL && i < 12; i++)
        (void)hk_buf_addf(out, "%s%s", i > 0 ? ", " : "", hk_policy_name(policy));
}

static int no_such_policy(const struct hk_policies *policies, const char *wanted)
{
    struct hk_buf names;

    hk_buf_init(&names, 400);
    list_names(policies, wanted, &names);
    bool near = hk_buf_cstr(&names)[0] == '\'';
    int code = hk_out_error(HK_EXIT_FAILURE, "there is no policy '%.80s'; %s %s%s", wanted,
                            near ? "did you mean" : "there are", hk_buf_cstr(&names), near ? "?" : "");
    hk_buf_fini(&names);
    return code;
}

int hk_cli_policy(const struct hk_cli *cli, struct hk_policies **out_policies,
                  const struct hk_policy **out_policy)
{
    const char *name = cli->operands[0];
    int code = hk_cli_policies(cli, out_policies);

    if (code != HK_EXIT_OK)
        return code;
    const struct hk_policy *policy = name[0] != '\0' ? hk_policies_get(*out_policies, name) : NULL;
    if (policy == NULL)
        return no_such_policy(*out_policies, name);
    *out_policy = policy;
    return HK_EXIT_OK;
}

int hk_cli_policy_to_run(const struct hk_cli *cli, struct hk_policies **out_policies,
                         const struct hk_policy **out_policy)
{
    int code = hk_cli_policy(cli, out_policies, out_policy);

    if (code == HK_EXIT_OK && hk_policy_ops(*out_policy, NULL) != NULL)
        return hk_out_error(
            HK_EXIT_FAILURE,
            "policy '%s' decides in code that a program registers; the command line cannot plan it",
            hk_policy_name(*out_policy));
    return code;
}
