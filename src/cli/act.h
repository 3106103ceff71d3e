/* SPDX-License-Identifier: Apache-2.0 */
/* One act of a person on one message: the frame that cancel and retry share. */
#ifndef HK_CLI_ACT_H
#define HK_CLI_ACT_H

#include "cli/operate.h"

typedef enum hk_code hk_act_fn(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                               struct hk_err *err);

struct hk_act_words {
    const char *verb;      /* "cancel" */
    const char *done;      /* "cancelled" */
    const char *unchanged; /* said when nothing was to be changed */
};

/* `pick` chooses the store's operation. The exit code; all has been said. */
int hk_act_run(const struct hk_cli *cli, hk_act_fn *(*pick)(const struct hk_store_admin_ops *ops),
               const struct hk_act_words *words);

#endif
