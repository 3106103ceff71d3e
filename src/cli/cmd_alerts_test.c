/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku alerts test */
#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/alerts.h"

static void print_tested(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_alert_tested *tested = result;
    bool taken = tested->failed.code == HK_OK;
    char took[HK_SHOW_NUMBER];
    (void)ask;
    (void)hk_buf_addf(out, "%s (%s): %s after %s", tested->channel, tested->kind, taken ? "taken" : "failed",
                      hk_show_duration(tested->took_ms, took));
    if (!taken) {
        (void)hk_buf_adds(out, ": ");
        (void)hk_table_safe(out, hk_str_of(tested->failed.message), 400);
    }
    (void)hk_buf_addc(out, '\n');
}

int hk_cmd_alerts_test(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK) {
        const struct hk_alert_tested *tested = ask.result;
        code = hk_ask_print(&ask, print_tested);
        if (tested->failed.code != HK_OK)
            code = HK_EXIT_FAILURE;
    }
    hk_ask_end(&ask);
    return code;
}
