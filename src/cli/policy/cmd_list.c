/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy list */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "desk/put.h"

static bool is_default(const struct hk_policies *policies, const struct hk_policy *policy)
{
    return hk_policies_get(policies, NULL) == policy;
}

/* The Azure forms bring their own. */
static const char *jitter_text(const struct hk_policy *policy, char out[HK_POLICY_TEXT])
{
    if (hk_backoff_is_azure(hk_policy_backoff(policy)->kind))
        return "+-20%";
    return hk_policy_jitter_text(hk_policy_jitter(policy), out);
}

static void print_row(const struct hk_policies *policies, const struct hk_policy *policy, int name_width)
{
    const struct hk_limits *limits = hk_policy_limits(policy);
    char name[HK_NAME_MAX + 4], backoff[HK_POLICY_TEXT], jitter[HK_POLICY_TEXT], attempts[16] = "-",
                                                                                 elapsed[HK_OUT_TEXT] = "-";

    (void)snprintf(name, sizeof name, "%s%s", hk_policy_name(policy),
                   is_default(policies, policy) ? " *" : "");
    if (limits->max_attempts != 0)
        (void)snprintf(attempts, sizeof attempts, "%" PRIu32, limits->max_attempts);
    if (limits->max_elapsed_ms != 0)
        (void)hk_out_duration(limits->max_elapsed_ms, elapsed);
    (void)printf("%-*s  %-6s  %8s  %7s  %-12s  %s\n", name_width, name,
                 hk_policy_is_preset(policy) ? "preset" : "file", attempts, elapsed,
                 jitter_text(policy, jitter), hk_policy_backoff_text(hk_policy_backoff(policy), backoff));
}

static int print_table(const struct hk_policies *policies)
{
    const struct hk_policy *policy = NULL;
    int width = 4;

    for (size_t i = 0; (policy = hk_policies_at(policies, i)) != NULL; i++) {
        int len = (int)strlen(hk_policy_name(policy)) + (is_default(policies, policy) ? 2 : 0);
        width = len > width ? len : width;
    }
    (void)printf("%-*s  %-6s  %8s  %7s  %-12s  %s\n", width, "NAME", "FROM", "ATTEMPTS", "ELAPSED", "JITTER",
                 "BACKOFF");
    for (size_t i = 0; (policy = hk_policies_at(policies, i)) != NULL; i++)
        print_row(policies, policy, width);
    return HK_EXIT_OK;
}

static void row_json(struct hk_json *json, const struct hk_policies *policies, const struct hk_policy *policy)
{
    const struct hk_limits *limits = hk_policy_limits(policy);

    hk_json_object(json);
    hk_put_cstr(json, "name", hk_policy_name(policy));
    hk_put_bool(json, "default", is_default(policies, policy));
    hk_put_cstr(json, "origin", hk_policy_is_preset(policy) ? "preset" : "file");
    hk_put_cstr(json, "preset", hk_policy_preset(policy));
    hk_put_cstr(json, "backoff", hk_backoff_kind_name(hk_policy_backoff(policy)->kind));
    hk_put_cstr(json, "jitter", hk_policy_jitter_kind(hk_policy_backoff(policy), hk_policy_jitter(policy)));
    hk_put_bool(json, "custom", hk_policy_ops(policy, NULL) != NULL);
    hk_put_limit(json, "max_attempts", limits->max_attempts);
    hk_put_limit(json, "max_elapsed_ms", limits->max_elapsed_ms);
    hk_json_end(json);
}

static int print_json(const struct hk_policies *policies)
{
    const struct hk_policy *policy = NULL;
    struct hk_json json;
    struct hk_buf buf;

    hk_buf_init(&buf, 1 << 20);
    hk_json_init(&json, &buf, true);
    hk_json_object(&json);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; (policy = hk_policies_at(policies, i)) != NULL; i++)
        row_json(&json, policies, policy);
    hk_json_end(&json);
    hk_json_key(&json, "next");
    hk_json_null(&json);
    hk_json_end(&json);
    (void)hk_buf_addc(&buf, '\n');
    return hk_out_buffer(&buf);
}

int hk_cmd_policy_list(struct hk_cli *cli)
{
    struct hk_policies *policies = NULL;

    int code = hk_cli_policies(cli, &policies);
    if (code == HK_EXIT_OK)
        code = hk_args_flag(cli, "json") ? print_json(policies) : print_table(policies);
    hk_policies_free(policies);
    return code;
}
