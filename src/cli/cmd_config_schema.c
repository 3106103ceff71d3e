/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku config schema */
#include "cli/ask.h"
#include "desk/setup.h"

static void print_schema(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_config_schema *schema = result;
    (void)ask;
    (void)hk_buf_add(out, schema->text.ptr, schema->text.len);
}

int hk_cmd_config_schema(struct hk_cli *cli)
{
    return hk_ask_bare(cli, print_schema);
}
