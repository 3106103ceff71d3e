/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku version */
#include <stdio.h>

#include <hikyaku/hikyaku.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "desk/put.h"

int hk_cmd_version(struct hk_cli *cli)
{
    struct hk_json json;
    struct hk_buf buf;

    if (!hk_args_flag(cli, "json")) {
        (void)printf("hikyaku %s\n", hk_version());
        return HK_EXIT_OK;
    }
    hk_buf_init(&buf, 1024);
    hk_json_init(&json, &buf, true);
    hk_json_object(&json);
    hk_put_cstr(&json, "version", hk_version());
    hk_json_end(&json);
    (void)hk_buf_addc(&buf, '\n');
    return hk_out_buffer(&buf);
}
