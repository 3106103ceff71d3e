/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku config schema */
#include "cli/args.h"
#include "cli/out.h"
#include "config/config.h"

#define SCHEMA_MAX ((size_t)4 << 20)

int hk_cmd_config_schema(struct hk_cli *cli)
{
    struct hk_buf buf;

    hk_buf_init(&buf, SCHEMA_MAX);
    if (hk_args_flag(cli, "json"))
        hk_config_schema_json(&buf);
    else
        hk_config_schema_text(&buf);
    if (buf.len > 0 && buf.data[buf.len - 1] != '\n')
        (void)hk_buf_addc(&buf, '\n');
    return hk_out_buffer(&buf);
}
