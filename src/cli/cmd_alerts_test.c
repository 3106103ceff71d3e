/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku alerts test: one notice to one channel, now, and what came of it. The store is not touched. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "daemon/alerts.h"
#include "exec/clock.h"

static int report(const struct hk_cli *cli, const struct hk_channel *channel, enum hk_code rc,
                  const struct hk_err *err, uint64_t took_ms)
{
    struct hk_buf out;
    struct hk_json json;
    char took[HK_OUT_TEXT];
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_cstr(&json, "channel", channel->name);
        hk_put_cstr(&json, "kind", hk_channel_kind_name(channel->kind));
        hk_put_bool(&json, "taken", rc == HK_OK);
        hk_put_u64(&json, "took_ms", took_ms);
        hk_put_cstr(&json, "error", rc == HK_OK ? NULL : err->message);
        hk_json_end(&json);
    } else {
        (void)hk_buf_addf(&out, "%s (%s): %s after %s", channel->name, hk_channel_kind_name(channel->kind),
                          rc == HK_OK ? "taken" : "failed", hk_out_duration(took_ms, took));
        if (rc != HK_OK) {
            (void)hk_buf_adds(&out, ": ");
            (void)hk_table_safe(&out, hk_str_of(err->message), 400);
        }
    }
    (void)hk_buf_addc(&out, '\n');
    int printed = hk_out_buffer(&out);
    return rc == HK_OK ? printed : HK_EXIT_FAILURE;
}

static int send_test(const struct hk_cli *cli, const struct hk_config *config,
                     const struct hk_channel *channel)
{
    char id[48], host[64] = "here";
    struct hk_err err = {.message = ""};
    uint64_t asked_ms = 0;
    int64_t now_ms = hk_clock_wall_ms(), began_us = hk_clock_us();
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(id, sizeof id, "test-%016" PRIx64, hk_clock_seed());
    const struct hk_notice notice = {.kind = HK_NOTICE_TEST,
                                     .severity = HK_ALERT_INFO,
                                     .about = HK_ALERT_DEAD_LETTER,
                                     .rule = "test",
                                     .fingerprint = id,
                                     .since_ms = now_ms,
                                     .at_ms = now_ms,
                                     .destination = hk_str_of(""),
                                     .reason = hk_str_of(""),
                                     .event_type = hk_str_of(""),
                                     .example_id = hk_str_of(""),
                                     .detail = hk_str_of(""),
                                     .relay = host,
                                     .link = config->alerts.link};
    enum hk_code rc = hk_channel_send(channel, &notice, id, &asked_ms, &err);
    return report(cli, channel, rc, &err, (uint64_t)(hk_clock_us() - began_us) / 1000);
}

static const struct hk_conf_channel *find(const struct hk_config *config, const char *name)
{
    const struct hk_conf_channel *channel = NULL;
    for (size_t i = 0; (channel = hk_config_channel(config, i)) != NULL; i++)
        if (strcmp(channel->name, name) == 0)
            return channel;
    return NULL;
}

int hk_cmd_alerts_test(struct hk_cli *cli)
{
    struct hk_config *config = NULL;
    struct hk_pool arena = {NULL};
    struct hk_channel channel;
    struct hk_err err = {.message = ""};
    char shown[HK_SHOW_MAX];
    int code = hk_settings_config(cli, HK_FOR_SENDING, &config);
    if (code != HK_EXIT_OK)
        return code;
    const struct hk_conf_channel *conf = find(config, cli->operands[0]);
    if (conf == NULL)
        code = hk_out_error(HK_EXIT_FAILURE, "no channel %s is configured",
                            hk_show(hk_str_of(cli->operands[0]), shown));
    else if (hk_alerts_channel(config, conf, &arena, &channel, &err) != HK_OK)
        code = hk_out_failure(&err);
    else
        code = send_test(cli, config, &channel);
    hk_pool_wipe(&arena);
    hk_config_free(config);
    return code;
}
