/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages cancel */
#include "cli/act.h"

static hk_act_fn *cancel(const struct hk_store_admin_ops *ops)
{
    return ops->cancel;
}

int hk_cmd_messages_cancel(struct hk_cli *cli)
{
    static const struct hk_act_words words = {"cancel", "cancelled: it will not be sent",
                                              "nothing to cancel"};
    return hk_act_run(cli, cancel, &words);
}
