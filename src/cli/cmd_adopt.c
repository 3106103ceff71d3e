/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku adopt */
#include <inttypes.h>

#include "cli/ask.h"
#include "desk/adopt.h"

static void print_adopted(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_adopt_ask *asked = ask->request;
    const struct hk_adopt_done *done = result;
    int len = (int)done->table.len;
    const char *table = done->table.ptr;
    if (!done->applied) { /* as it is: it is to be piped */
        (void)hk_buf_add(out, done->sql.ptr, done->sql.len);
        return;
    }
    if (asked->undo) {
        (void)hk_buf_addf(out, "%s: rows of %.*s no longer become messages\n", done->place, len, table);
        return;
    }
    (void)hk_buf_addf(out, "%s: each new row of %.*s becomes a message\n", done->place, len, table);
    if (asked->existing)
        (void)hk_buf_addf(out, "%s: %" PRIu64 " row%s that waited %s copied\n", done->place, done->copied,
                          done->copied == 1 ? "" : "s", done->copied == 1 ? "was" : "were");
}

int hk_cmd_adopt(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_adopted);
}
