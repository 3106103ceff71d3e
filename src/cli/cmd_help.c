/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku help: everything it prints comes from the command table. */
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/out.h"

enum {
    SUMMARY_COLUMN = 24,
    OPTION_COLUMN = 20
};

/* "-h, --help", "--config FILE" */
static int option_text(const struct hk_cli_option *o, char out[64])
{
    char letter[] = "-x, ";
    bool value = o->kind != HK_CLI_NOTHING;
    letter[1] = o->letter;
    return snprintf(out, 64, "%s--%s%s%s", o->letter != 0 ? letter : "", o->name, value ? " " : "",
                    value ? o->value : "");
}

static void print_options(const struct hk_cli_option *list)
{
    char left[64];
    int width = OPTION_COLUMN;
    for (const struct hk_cli_option *o = list; o->name != NULL; o++)
        width = option_text(o, left) > width ? option_text(o, left) : width;
    for (const struct hk_cli_option *o = list; o->name != NULL; o++) {
        (void)option_text(o, left);
        (void)printf("  %-*s %s\n", width, left, o->help);
        if (o->kind == HK_CLI_CHOICE)
            (void)printf("  %-*s one of: %s\n", width, "", o->choices);
    }
}

static void print_row(const struct hk_cli_command *c)
{
    char left[64];

    (void)snprintf(left, sizeof left, "%s%s%s%s%s", c->name, c->sub != NULL ? " " : "",
                   c->sub != NULL ? c->sub : "", c->operands != NULL ? " " : "",
                   c->operands != NULL ? c->operands : "");
    (void)printf("  %-*s %s\n", SUMMARY_COLUMN, left, c->summary);
}

static void print_all(const struct hk_cli *cli)
{
    (void)printf("hikyaku: an outbox relay, and retry policies for any program\n\n"
                 "usage: hikyaku [--config FILE] [--db URL] COMMAND [OPTION…]\n\ncommands:\n");
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        if (c->run != NULL)
            print_row(c);
    (void)printf("\noptions of every command:\n");
    print_options(cli->globals);
    (void)printf("\n'hikyaku help COMMAND' says more about one. Exit codes: 0 ok, 1 failure, 2 usage,\n"
                 "69 store or daemon out of reach, 75 temporary, 78 configuration.\n");
}

static void print_group(const struct hk_cli *cli, const struct hk_cli_command *group)
{
    (void)printf("hikyaku %s: %s\n\n", group->name, group->summary);
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        if (c->run != NULL && strcmp(c->name, group->name) == 0)
            print_row(c);
}

static void print_command(const struct hk_cli *cli, const struct hk_cli_command *c)
{
    (void)printf("usage: hikyaku %s%s%s%s%s%s\n\n%s\n", c->name, c->sub != NULL ? " " : "",
                 c->sub != NULL ? c->sub : "", c->operands != NULL ? " " : "",
                 c->operands != NULL ? c->operands : "", c->options != NULL ? " [OPTION…]" : "", c->summary);
    if (c->details != NULL)
        (void)printf("\n%s\n", c->details);
    if (c->options != NULL) {
        (void)printf("\noptions:\n");
        print_options(c->options);
    }
    (void)printf("\noptions of every command:\n");
    print_options(cli->globals);
}

int hk_help_print(const struct hk_cli *cli, const char *name, const char *sub)
{
    if (name == NULL) {
        print_all(cli);
        return HK_EXIT_OK;
    }
    const struct hk_cli_command *found = hk_args_require(cli, name, sub);
    if (found == NULL)
        return HK_EXIT_USAGE;
    if (found->run == NULL)
        print_group(cli, found);
    else
        print_command(cli, found);
    return HK_EXIT_OK;
}

int hk_cmd_help(struct hk_cli *cli)
{
    return hk_help_print(cli, cli->n_operands > 0 ? cli->operands[0] : NULL,
                         cli->n_operands > 1 ? cli->operands[1] : NULL);
}
