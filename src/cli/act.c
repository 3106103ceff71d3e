/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of cancel and retry: who, why, on what, and what came of it. */
#include <stdio.h>

#include "base/str.h"
#include "cli/act.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"

static int report(const struct hk_cli *cli, const struct hk_act *act, const struct hk_act_words *words,
                  const struct hk_acted *acted)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_str(&json, "message_id", hk_str_of(act->message_id));
        hk_put_str(&json, "act", hk_str_of(words->verb));
        hk_put_u64(&json, "changed", acted->changed);
        hk_put_str(&json, "actor", hk_str_of(act->actor));
        hk_put_str(&json, "reason", hk_str_of(act->reason));
        hk_put_time(&json, "at", acted->now_ms);
        hk_json_end(&json);
    } else {
        (void)hk_table_safe(&out, hk_str_of(act->message_id), 200);
        (void)hk_buf_addf(&out, ": %s", acted->changed > 0 ? words->done : words->unchanged);
        if (acted->changed > 1)
            (void)hk_buf_addf(&out, " (%zu rows)", acted->changed);
    }
    (void)hk_buf_addc(&out, '\n');
    return hk_out_buffer(&out);
}

int hk_act_run(const struct hk_cli *cli, hk_act_fn *(*pick)(const struct hk_store_admin_ops *ops),
               const struct hk_act_words *words)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX];
    struct hk_operate op;
    struct hk_acted acted = {.changed = 0};
    struct hk_err err = {.message = ""};
    struct hk_act act = {.message_id = cli->operands[0],
                         .destination = hk_args_value(cli, "destination"),
                         .actor = hk_settings_actor(cli, actor),
                         .reason = hk_operate_reason(cli, reason)};
    if (act.reason == NULL)
        return HK_EXIT_USAGE;
    int code = hk_operate_open(cli, &op);
    if (code != HK_EXIT_OK)
        return code;
    enum hk_code rc = pick(op.ops)(op.admin, &act, &acted, &err);
    if (rc == HK_INVALID)
        code = hk_out_error(HK_EXIT_USAGE, "%s with --destination NAME", err.message);
    else if (rc != HK_OK)
        code = hk_operate_failed(&err);
    else
        code = report(cli, &act, words, &acted);
    hk_operate_close(&op);
    return code;
}
