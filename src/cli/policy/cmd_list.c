/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy list */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/out.h"
#include "cli/policy/policies.h"

static const char *or_dash(const char *text)
{
    return text != NULL ? text : "-";
}

static void add_row(struct hk_buf *out, const struct hk_policy_row *row, int name_width)
{
    char name[HK_NAME_MAX + 4], attempts[16] = "-", elapsed[HK_SHOW_NUMBER] = "-";

    (void)snprintf(name, sizeof name, "%s%s", or_dash(row->name), row->is_default ? " *" : "");
    if (row->max_attempts != 0)
        (void)snprintf(attempts, sizeof attempts, "%" PRIu32, row->max_attempts);
    if (row->max_elapsed_ms != 0)
        (void)hk_show_duration(row->max_elapsed_ms, elapsed);
    (void)hk_buf_addf(out, "%-*s  %-6s  %8s  %7s  %-12s  %s\n", name_width, name, or_dash(row->origin),
                      attempts, elapsed, or_dash(row->jitter_text), or_dash(row->backoff_text));
}

static void print_list(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_policy_list *all = result;
    int width = 4;

    (void)ask;
    for (size_t i = 0; i < all->n; i++) {
        int len = (int)strnlen(or_dash(all->items[i].name), HK_NAME_MAX) + (all->items[i].is_default ? 2 : 0);
        width = len > width ? len : width;
    }
    (void)hk_buf_addf(out, "%-*s  %-6s  %8s  %7s  %-12s  %s\n", width, "NAME", "FROM", "ATTEMPTS", "ELAPSED",
                      "JITTER", "BACKOFF");
    for (size_t i = 0; i < all->n; i++)
        add_row(out, &all->items[i], width);
    hk_policy_make_safe(out);
}

int hk_cmd_policy_list(struct hk_cli *cli)
{
    return hk_policy_ask(cli, NULL, print_list);
}
