/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that a command may name: the presets, and those of the configuration file. */
#ifndef HK_CLI_POLICY_POLICIES_H
#define HK_CLI_POLICY_POLICIES_H

#include <hikyaku/policies.h>

#include "base/buf.h"
#include "cli/cli.h"

/* Flag, then HIKYAKU_CONFIG, then ./hikyaku.yaml if it is there; NULL: no file. */
const char *hk_cli_config_path(const struct hk_cli *cli);

/* The exit code; what is wrong has been printed unless it is HK_EXIT_OK. */
int hk_cli_policies(const struct hk_cli *cli, struct hk_policies **out_policies);
/* The policy that the first operand names, out of a set that is the caller's to free. */
int hk_cli_policy(const struct hk_cli *cli, struct hk_policies **out_policies,
                  const struct hk_policy **out_policy);
/* The same, and the policy decides without code that only some program has. */
int hk_cli_policy_to_run(const struct hk_cli *cli, struct hk_policies **out_policies,
                         const struct hk_policy **out_policy);

/* The policy as a configuration file that reads back as the same policy. */
void hk_policy_yaml(const struct hk_policy *policy, struct hk_buf *out);
/* How many of its rules, the first ones, are not its preset's. */
size_t hk_policy_own_rules(const struct hk_policy *policy);
/* Words of the configuration. `match` as it is written there, without quotes. */
void hk_policy_match_text(const struct hk_rule *rule, struct hk_buf *out);
const char *hk_policy_limit_mode_text(enum hk_limit_mode mode);
const char *hk_policy_hints_text(enum hk_hint_mode mode);
/* The kind's name; "own" for the Azure forms, which draw each wait themselves, ±20 %. */
const char *hk_policy_jitter_kind(const struct hk_backoff *b, const struct hk_jitter *j);
/* Is this a shipped preset, unchanged? */
bool hk_policy_is_preset(const struct hk_policy *policy);

/* Short, for tables: "1s x2 up to 1h", "full", "±10 %". */
#define HK_POLICY_TEXT 96
const char *hk_policy_backoff_text(const struct hk_backoff *b, char out[HK_POLICY_TEXT]);
const char *hk_policy_jitter_text(const struct hk_jitter *j, char out[HK_POLICY_TEXT]);

#endif
