/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku alerts mute, alerts unmute */
#include "base/parse.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/table.h"
#include "desk/alerts.h"

static void print_muted(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_alert_muted *done = result;
    char time[HK_TIME_TEXT_MAX];
    (void)ask;
    (void)hk_format_rfc3339(done->until_ms, time);
    (void)hk_table_safe(out, hk_str_of(done->rule), 200);
    if (done->until_ms != 0)
        (void)hk_buf_addf(out, ": muted until %s; alerts still firing at that time are sent then\n", time);
    else
        (void)hk_buf_adds(out, done->changed ? ": not muted any more\n" : ": was not muted\n");
}

int hk_cmd_alerts_mute(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_muted);
}

int hk_cmd_alerts_unmute(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_muted);
}
