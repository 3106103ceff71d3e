/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku keys list, rotate, retire */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/job.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/keys.h"

static const char *state_of(const struct hk_key_row *row)
{
    if (row->id.len == 0)
        return "not sealed";
    if (!row->configured)
        return "not configured";
    if (row->why.len)
        return "cannot be read";
    return row->seals ? "seals" : "opens";
}

static void print_keys(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {{.title = "KEY"},
                                                     {.title = "STATE"},
                                                     {.title = "OUTBOX", .right = true},
                                                     {.title = "KEPT", .right = true},
                                                     {.title = "WHY", .max_width = 60}};
    const struct hk_keys_listed *listed = result;
    struct hk_table table;
    char text[64];
    (void)ask;
    if (listed->n == 0) {
        (void)hk_buf_adds(out, "no keys, and nothing is sealed\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < listed->n; i++) {
        const struct hk_key_row *row = &listed->rows[i];
        hk_table_add(&table, row->id.len ? row->id : hk_str_of("-"));
        hk_table_adds(&table, state_of(row));
        hk_table_adds(&table, hk_show_count(row->outbox, text));
        hk_table_adds(&table, hk_show_count(row->kept, text));
        hk_table_add(&table, row->why);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

int hk_cmd_keys_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_keys);
}

/* Always a job: a relay has the keys. */
int hk_cmd_keys_rotate(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_job_start_and_say(&ask);
    hk_ask_end(&ask);
    return code;
}

static void print_retired(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_keys_retired *done = result;
    (void)ask;
    (void)hk_buf_addf(out, "key %.*s is not needed any more%s\n", (int)done->key.len, done->key.ptr,
                      done->configured ? ": take it out of seal.keys" : "");
    (void)hk_buf_adds(out, "keep it as long as you keep backups from its time\n");
}

int hk_cmd_keys_retire(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_retired);
}
