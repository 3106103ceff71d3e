/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku version */
#include "cli/ask.h"
#include "desk/setup.h"

static void print_version(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_version_told *told = result;
    (void)ask;
    (void)hk_buf_addf(out, "hikyaku %s\n", told->version);
}

int hk_cmd_version(struct hk_cli *cli)
{
    return hk_ask_bare(cli, print_version);
}
