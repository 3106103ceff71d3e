/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages retry */
#include "cli/act.h"

static hk_act_fn *retry(const struct hk_store_admin_ops *ops)
{
    return ops->retry;
}

int hk_cmd_messages_retry(struct hk_cli *cli)
{
    static const struct hk_act_words words = {"retry", "due now", "due already, nothing was changed"};
    return hk_act_run(cli, retry, &words);
}
