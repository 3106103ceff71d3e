/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku destinations pause and resume: one row in the store, which every relay reads. */
#include <stdio.h>

#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"

static int report(const struct hk_cli *cli, const char *name, bool paused, bool changed)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_str(&json, "destination", hk_str_of(name));
        hk_put_bool(&json, "paused", paused);
        hk_put_bool(&json, "changed", changed);
        hk_json_end(&json);
    } else {
        (void)hk_table_safe(&out, hk_str_of(name), 200);
        if (paused)
            (void)hk_buf_adds(&out, changed ? ": paused; its messages wait, and no attempt is charged"
                                            : ": was paused already; actor and reason are the new ones");
        else
            (void)hk_buf_adds(&out, changed ? ": resumed" : ": was not paused");
    }
    (void)hk_buf_addc(&out, '\n');
    return hk_out_buffer(&out);
}

/* A misspelt name would pause nothing, and say that it did. */
static bool is_known(const struct hk_operate *op, const char *name)
{
    const struct hk_store_status *status = NULL;
    struct hk_err err;
    if (hk_config_destination(op->config, 0) == NULL ||
        hk_operate_destination(op->config, hk_str_of(name)) != NULL)
        return true;
    if (op->ops->status(op->admin, &status, &err) != HK_OK)
        return true;
    for (size_t i = 0; i < status->n_dests; i++)
        if (hk_str_eq(status->dests[i].name, hk_str_of(name)))
            return true;
    return false;
}

static int set_paused(const struct hk_cli *cli, bool paused)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX], shown[HK_SHOW_MAX];
    const char *name = cli->operands[0];
    struct hk_operate op;
    struct hk_err err = {.message = ""};
    bool changed = false;
    if (name[0] == '\0')
        return hk_out_error(HK_EXIT_USAGE, "which destination? It has no name");
    if (hk_operate_reason(cli, reason) == NULL)
        return HK_EXIT_USAGE;
    int code = hk_operate_open(cli, &op);
    if (code != HK_EXIT_OK)
        return code;
    if (paused && !is_known(&op, name))
        code = hk_out_error(HK_EXIT_FAILURE,
                            "there is no destination %s; 'hikyaku destinations list' shows them",
                            hk_show(hk_str_of(name), shown));
    else if (op.ops->pause(op.admin, name, paused, hk_settings_actor(cli, actor), reason, &changed, &err) !=
             HK_OK)
        code = hk_operate_failed(&err);
    else
        code = report(cli, name, paused, changed);
    hk_operate_close(&op);
    return code;
}

int hk_cmd_destinations_pause(struct hk_cli *cli)
{
    return set_paused(cli, true);
}

int hk_cmd_destinations_resume(struct hk_cli *cli)
{
    return set_paused(cli, false);
}
