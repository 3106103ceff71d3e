/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy list */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/out.h"
#include "cli/policy/policies.h"

/* The Azure forms bring their own. */
static const char *jitter_text(const struct hk_policy *policy, char out[HK_POLICY_TEXT])
{
    if (hk_backoff_is_azure(hk_policy_backoff(policy)->kind))
        return "+-20%";
    return hk_policy_jitter_text(hk_policy_jitter(policy), out);
}

static void add_row(struct hk_buf *out, const struct hk_policy *policy, bool fallback, int name_width)
{
    const struct hk_limits *limits = hk_policy_limits(policy);
    char name[HK_NAME_MAX + 4], backoff[HK_POLICY_TEXT], jitter[HK_POLICY_TEXT],
        attempts[16] = "-", elapsed[HK_SHOW_NUMBER] = "-";

    (void)snprintf(name, sizeof name, "%s%s", hk_policy_name(policy), fallback ? " *" : "");
    if (limits->max_attempts != 0)
        (void)snprintf(attempts, sizeof attempts, "%" PRIu32, limits->max_attempts);
    if (limits->max_elapsed_ms != 0)
        (void)hk_show_duration(limits->max_elapsed_ms, elapsed);
    (void)hk_buf_addf(out, "%-*s  %-6s  %8s  %7s  %-12s  %s\n", name_width, name,
                      hk_policy_is_preset(policy) ? "preset" : "file", attempts, elapsed,
                      jitter_text(policy, jitter),
                      hk_policy_backoff_text(hk_policy_backoff(policy), backoff));
}

static void print_list(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_policy_list *all = result;
    const struct hk_policy *policy = NULL;
    int width = 4;

    (void)ask;
    for (size_t i = 0; (policy = hk_policies_at(all->policies, i)) != NULL; i++) {
        int len = (int)strlen(hk_policy_name(policy)) + (policy == all->fallback ? 2 : 0);
        width = len > width ? len : width;
    }
    (void)hk_buf_addf(out, "%-*s  %-6s  %8s  %7s  %-12s  %s\n", width, "NAME", "FROM", "ATTEMPTS", "ELAPSED",
                      "JITTER", "BACKOFF");
    for (size_t i = 0; (policy = hk_policies_at(all->policies, i)) != NULL; i++)
        add_row(out, policy, policy == all->fallback, width);
}

int hk_cmd_policy_list(struct hk_cli *cli)
{
    return hk_policy_ask(cli, NULL, print_list);
}
