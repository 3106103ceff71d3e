/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku version */
#include "admin/ui.h"
#include "cli/ask.h"
#include "desk/setup.h"

static void print_version(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_version_told *told = result;
    (void)ask;
    (void)hk_buf_addf(out, "hikyaku %s\n", told->version);
    if (hk_ui_n_files == 0)
        (void)hk_buf_adds(out, "built without the dashboard: npm or its packages were not to be had\n");
}

int hk_cmd_version(struct hk_cli *cli)
{
    return hk_ask_bare(cli, print_version);
}
