/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages cancel, messages retry */
#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/messages.h"

struct words {
    const char *done, *unchanged;
};

static void print(struct hk_buf *out, const struct hk_message_acted *acted, const struct words *words)
{
    (void)hk_table_safe(out, hk_str_of(acted->act.message_id), 200);
    (void)hk_buf_addf(out, ": %s", acted->is.changed > 0 ? words->done : words->unchanged);
    if (acted->is.changed > 1)
        (void)hk_buf_addf(out, " (%zu rows)", acted->is.changed);
    (void)hk_buf_addc(out, '\n');
}

static void print_cancelled(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    (void)ask;
    print(out, result, &(struct words){"cancelled: it will not be sent", "nothing to cancel"});
}

static void print_due(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    (void)ask;
    print(out, result, &(struct words){"due now", "due already, nothing was changed"});
}

static int act(const struct hk_cli *cli, hk_print_fn *print_it)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK) {
        enum hk_code rc = hk_ask_quietly(&ask);
        if (rc == HK_OK)
            code = hk_ask_print(&ask, print_it);
        else if (rc == HK_INVALID && ask.desk.wrong_field != NULL)
            code = hk_out_error(HK_EXIT_USAGE, "%s with --destination NAME", ask.err.message);
        else
            code = hk_ask_failed(&ask);
    }
    hk_ask_end(&ask);
    return code;
}

int hk_cmd_messages_cancel(struct hk_cli *cli)
{
    return act(cli, print_cancelled);
}

int hk_cmd_messages_retry(struct hk_cli *cli)
{
    return act(cli, print_due);
}
