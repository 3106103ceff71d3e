/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages explain */
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/explain.h"

static void write_answer(struct hk_buf *out, const struct hk_explained *e)
{
    (void)hk_table_safe(out, e->message_id, 200);
    (void)hk_buf_adds(out, " to ");
    (void)hk_table_safe(out, hk_say_to(e->by_route ? hk_str_of("") : e->to), 200);
    if (e->by_route && e->to.len > 0)
        (void)hk_buf_addf(out, " %.*s", (int)e->to.len, e->to.ptr);
    (void)hk_buf_addf(out, ", %s\n", hk_state_name(e->state));
    for (size_t i = 0; i < e->n; i++) {
        (void)hk_buf_addf(out, "  %s  %s  [%s]\n", i == 0 ? "why " : "also", e->causes[i].text,
                          e->causes[i].cause);
        (void)hk_buf_addf(out, "  do    %s\n", e->causes[i].advice);
    }
}

static void print_explanation(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_explanation *x = result;
    (void)ask;
    for (size_t i = 0; i < x->n; i++) {
        (void)hk_buf_adds(out, i > 0 ? "\n" : "");
        write_answer(out, &x->items[i]);
    }
}

/* 1 where there is no such message. */
static int print(struct hk_ask *ask)
{
    const struct hk_explanation *x = ask->result;
    char name[HK_SHOW_MAX];
    int code = hk_ask_print(ask, print_explanation);
    if (code != HK_EXIT_OK || x->n > 0)
        return code;
    if (hk_args_flag(ask->cli, "json"))
        return HK_EXIT_FAILURE;
    return hk_out_error(HK_EXIT_FAILURE, "there is no message %s%s", hk_show(hk_str_of(x->message_id), name),
                        x->found ? " to that destination" : "");
}

int hk_cmd_messages_explain(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK)
        code = print(&ask);
    hk_ask_end(&ask);
    return code;
}
