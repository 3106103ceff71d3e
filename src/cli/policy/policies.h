/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands about policies: they show the presets and the policies of the configuration file, even if other settings of
 * the file are wrong. */
#ifndef HK_CLI_POLICY_POLICIES_H
#define HK_CLI_POLICY_POLICIES_H

#include "cli/ask.h"
#include "desk/policy.h"

/* Flag, then HIKYAKU_CONFIG, then ./hikyaku.yaml if it is there; NULL: no file. */
const char *hk_cli_config_path(const struct hk_cli *cli);

/* Asks once, as hk_ask_once. `also`, NULL or what is done with the result before it is printed, gives an exit code. */
int hk_policy_ask(const struct hk_cli *cli, int (*also)(const struct hk_ask *ask), hk_print_fn *print);
/* What a server said, without anything that moves a terminal. */
void hk_policy_make_safe(struct hk_buf *out);

#endif
