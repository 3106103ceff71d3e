/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku token create, list, revoke */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/table.h"
#include "desk/token.h"

static void print_token(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_token_created *done = result;
    (void)ask;
    (void)hk_buf_addf(out, "%s\n", done->token);
}

/* Beside the token, which is all that goes to standard output. */
static void tell_created(const struct hk_token_created *done)
{
    char time[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(done->expires_ms, time);
    (void)fprintf(
        stderr, "token %s (id %" PRId64 "): role %s%s, expires %s\nKeep it now: nobody can show it again.\n",
        done->name, done->id, done->role, done->reveal ? " with reveal" : "",
        done->expires_ms != 0 ? time : "never");
}

int hk_cmd_token_create(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK && !hk_args_flag(cli, "json"))
        tell_created(ask.result);
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print_token);
    hk_ask_end(&ask);
    return code;
}

static void add_token(struct hk_table *table, const struct hk_token *t, int64_t now_ms)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%" PRId64, t->id);
    hk_table_adds(table, text);
    hk_table_add(table, t->name);
    hk_table_adds(table, hk_token_state_word(t->state));
    hk_table_add(table, t->role);
    hk_table_adds(table, t->reveal ? "yes" : "no");
    hk_table_adds(table, t->expires_ms != 0 ? hk_show_ago(t->expires_ms, now_ms, text) : "never");
    hk_table_adds(table, t->last_used_ms != 0 ? hk_show_ago(t->last_used_ms, now_ms, text) : "never");
    hk_table_adds(table, hk_show_ago(t->created_ms, now_ms, text));
    hk_table_add(table, t->created_by);
    hk_table_add(table, t->reason);
}

static void print_tokens(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {{.title = "ID", .right = true},
                                                     {.title = "NAME", .max_width = 40},
                                                     {.title = "STATE"},
                                                     {.title = "ROLE", .max_width = 20},
                                                     {.title = "REVEAL"},
                                                     {.title = "EXPIRES"},
                                                     {.title = "LAST USED"},
                                                     {.title = "CREATED"},
                                                     {.title = "BY", .max_width = 30},
                                                     {.title = "REASON", .max_width = 50}};
    const struct hk_tokens *tokens = result;
    struct hk_table table;
    (void)ask;
    if (tokens->n == 0) {
        (void)hk_buf_adds(out, "no tokens: 'hikyaku token create NAME --role ROLE' makes one\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < tokens->n; i++)
        add_token(&table, &tokens->items[i], tokens->now_ms);
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (tokens->more)
        (void)hk_buf_addf(out, "only the first %d are shown\n", HK_TOKENS_MAX);
}

int hk_cmd_token_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_tokens);
}

static void print_revoked(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_token_revoked *done = result;
    (void)ask;
    (void)hk_buf_adds(out, "token ");
    (void)hk_table_safe(out, done->token.name, 200);
    (void)hk_buf_addf(out, " (id %" PRId64 "): %s\n", done->token.id,
                      done->changed ? "revoked; relays refuse it within a second" : "was revoked already");
}

int hk_cmd_token_revoke(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_revoked);
}
