/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku destinations pause, destinations resume */
#include "base/str.h"
#include "cli/ask.h"
#include "cli/table.h"
#include "desk/destinations.h"

static void print_paused(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dest_paused *done = result;
    (void)ask;
    (void)hk_table_safe(out, hk_str_of(done->destination), 200);
    if (done->paused)
        (void)hk_buf_adds(out, done->changed ? ": paused; its messages wait, and no attempt is charged\n"
                                             : ": was paused already; actor and reason are the new ones\n");
    else
        (void)hk_buf_adds(out, done->changed ? ": resumed\n" : ": was not paused\n");
}

int hk_cmd_destinations_pause(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_paused);
}

int hk_cmd_destinations_resume(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_paused);
}
