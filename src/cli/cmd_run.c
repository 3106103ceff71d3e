/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku run: the relay. The process itself is daemon/main.c. */
#include <stdlib.h>

#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "cli/settings.h"
#include "daemon/main.h"

static const char *config_path(const void *arg)
{
    return hk_cli_config_path(arg);
}

int hk_cmd_run(struct hk_cli *cli)
{
    struct hk_daemon_options options = {.config_path = config_path,
                                        .arg = cli,
                                        .log_format = hk_args_value(cli, "log-format"),
                                        .log_level = hk_args_value(cli, "log-level"),
                                        .user = hk_args_value(cli, "user"),
                                        .ui_dir = hk_args_value(cli, "ui-dir"),
                                        .ui_ticket = getenv("HIKYAKU_UI_TICKET"),
                                        .core_dumps = hk_args_flag(cli, "core-dumps"),
                                        .no_sandbox = hk_args_flag(cli, "no-sandbox")};
    struct hk_daemon *daemon = NULL;
    struct hk_config *config = NULL;
    struct hk_err err = {.message = ""};
    if (hk_daemon_new(&options, &daemon, &err) != HK_OK)
        return hk_out_error(HK_EXIT_USAGE, "%s", err.message);
    int code = hk_settings_config(cli, HK_FOR_SENDING, &config);
    enum hk_code rc = HK_OK;
    const char *url = NULL;
    if (code == HK_EXIT_OK)
        code = hk_settings_url(cli, config, &url);
    if (code == HK_EXIT_OK)
        rc = hk_daemon_run(daemon, config, url, &err);
    else
        hk_config_free(config);
    hk_daemon_free(daemon);
    return rc == HK_OK ? code : hk_out_error(hk_settings_exit(rc), "%s", err.message);
}
