/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku alerts mute and unmute: one row in the store, which every relay reads, and one in the audit. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "exec/clock.h"
#include "store/alerts.h"

static int report(const struct hk_cli *cli, const char *rule, int64_t until_ms, bool changed)
{
    char time[HK_TIME_TEXT_MAX];
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    (void)hk_format_rfc3339(until_ms, time);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_cstr(&json, "rule", rule);
        hk_put_time(&json, "muted_until", until_ms);
        hk_put_bool(&json, "changed", changed);
        hk_json_end(&json);
    } else {
        (void)hk_table_safe(&out, hk_str_of(rule), 200);
        if (until_ms != 0)
            (void)hk_buf_addf(&out, ": muted until %s; what still is by then is told then", time);
        else
            (void)hk_buf_adds(&out, changed ? ": not muted any more" : ": was not muted");
    }
    (void)hk_buf_addc(&out, '\n');
    return hk_out_buffer(&out);
}

/* A misspelt name would mute nothing, and say that it did. Without a configuration nobody knows the names. */
static bool is_known(const struct hk_config *config, const char *name)
{
    const struct hk_conf_alert_rule *rule = hk_config_alert_rule(config, 0);
    if (rule == NULL)
        return true;
    for (size_t i = 0; (rule = hk_config_alert_rule(config, i)) != NULL; i++)
        if (rule->name != NULL && strcmp(rule->name, name) == 0)
            return true;
    return false;
}

/* False: said what is wrong. */
static bool read_end(const struct hk_cli *cli, int64_t *until_ms, uint64_t *for_ms)
{
    const char *until = hk_args_value(cli, "until"), *length = hk_args_value(cli, "for");
    struct hk_err err = {.message = ""};
    if ((until == NULL) == (length == NULL)) {
        (void)hk_out_error(HK_EXIT_USAGE, "until when? Give --until TIME or --for DURATION, one of them");
        return false;
    }
    if (length != NULL) {
        if (hk_parse_duration(hk_str_of(length), for_ms, &err) == HK_OK && *for_ms > 0)
            return true;
        (void)hk_out_error(HK_EXIT_USAGE, "--for: %s",
                           err.message[0] ? err.message : "it must be longer than 0");
        return false;
    }
    if (hk_parse_rfc3339(hk_str_of(until), until_ms, NULL) != HK_OK)
        (void)hk_out_error(HK_EXIT_USAGE, "--until is no time such as 2026-11-15T08:30:00Z");
    else if (*until_ms <= hk_clock_wall_ms())
        (void)hk_out_error(HK_EXIT_USAGE, "--until is in the past");
    else
        return true;
    return false;
}

static int act(const struct hk_cli *cli, bool mute, int64_t until_ms, uint64_t for_ms)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX], shown[HK_SHOW_MAX];
    const char *rule = cli->operands[0];
    struct hk_operate op;
    struct hk_err err = {.message = ""};
    bool changed = true;
    if (hk_operate_reason(cli, reason) == NULL)
        return HK_EXIT_USAGE;
    int code = hk_operate_open(cli, &op);
    if (code != HK_EXIT_OK)
        return code;
    const struct hk_store_alerts_ops *alerts = hk_store_alerts_by_url(op.url, &err);
    enum hk_code rc = alerts != NULL ? HK_OK : HK_INVALID;
    const char *who = hk_settings_actor(cli, actor);
    if (mute && !is_known(op.config, rule))
        code = hk_out_error(HK_EXIT_FAILURE, "there is no alert rule %s in the configuration",
                            hk_show(hk_str_of(rule), shown));
    else if (rc == HK_OK && mute)
        rc = alerts->mute(op.admin, rule, until_ms, for_ms, who, reason, &until_ms, &err);
    else if (rc == HK_OK)
        rc = alerts->unmute(op.admin, rule, who, reason, &changed, &err);
    if (rc != HK_OK)
        code = hk_operate_failed(&err);
    else if (code == HK_EXIT_OK)
        code = report(cli, rule, mute ? until_ms : 0, changed);
    hk_operate_close(&op);
    return code;
}

int hk_cmd_alerts_mute(struct hk_cli *cli)
{
    int64_t until_ms = 0;
    uint64_t for_ms = 0;
    return read_end(cli, &until_ms, &for_ms) ? act(cli, true, until_ms, for_ms) : HK_EXIT_USAGE;
}

int hk_cmd_alerts_unmute(struct hk_cli *cli)
{
    return act(cli, false, 0, 0);
}
