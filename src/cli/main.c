/* SPDX-License-Identifier: Apache-2.0 */
/* The program `hikyaku`: one table of commands drives dispatch, help, suggestions and shell completion. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/out.h"

#define END_OF_OPTIONS                                                                                       \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }
#define JSON_OPTION                                                                                          \
    {                                                                                                        \
        .name = "json", .help = "print JSON"                                                                 \
    }

static const struct hk_cli_option globals[] = {
    {.name = "config",
     .kind = HK_CLI_FILE,
     .value = "FILE",
     .help = "configuration (default: $HIKYAKU_CONFIG, else ./hikyaku.yaml if it is there)"},
    {.name = "help", .letter = 'h', .help = "say what a command does"},
    {.name = "version", .help = "print the version"},
    END_OF_OPTIONS};

static const struct hk_cli_option json_only[] = {JSON_OPTION, END_OF_OPTIONS};

static const struct hk_cli_option plan_options[] = {
    {.name = "attempts", .kind = HK_CLI_TEXT, .value = "N", .help = "show the first N attempts (1 to 1000)"},
    {.name = "class",
     .kind = HK_CLI_CHOICE,
     .value = "CLASS",
     .choices = "transient rate_limit auth permanent unknown",
     .help = "class of the failures (default: transient)"},
    {.name = "seed",
     .kind = HK_CLI_TEXT,
     .value = "S",
     .help = "also show the waits that hk_execute draws with this seed"},
    JSON_OPTION,
    END_OF_OPTIONS};

static const struct hk_cli_option simulate_options[] = {
    {.name = "clients", .kind = HK_CLI_TEXT, .value = "N", .help = "how many, 1 to 1000000 (default: 10000)"},
    {.name = "outage",
     .kind = HK_CLI_TEXT,
     .value = "TIME",
     .help = "how long the destination is down, up to 24h (default: 60s)"},
    {.name = "capacity",
     .kind = HK_CLI_TEXT,
     .value = "RATE",
     .help = "what it serves afterwards, e.g. 500/s (default: a tenth of the clients a second)"},
    {.name = "spread",
     .kind = HK_CLI_TEXT,
     .value = "TIME",
     .help = "the first requests come within this time (default: 1s)"},
    {.name = "seed", .kind = HK_CLI_TEXT, .value = "S", .help = "of the random waits (default: 1)"},
    {.name = "svg", .kind = HK_CLI_FILE, .value = "FILE", .help = "also draw a picture into FILE"},
    JSON_OPTION,
    END_OF_OPTIONS};

static const struct hk_cli_command commands[] = {
    {.name = "policy", .summary = "look at retry policies, and at what they do"},
    {.name = "policy",
     .sub = "list",
     .summary = "the policies by name; * marks the default",
     .options = json_only,
     .run = hk_cmd_policy_list},
    {.name = "policy",
     .sub = "show",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .operand_kind = HK_CLI_POLICY,
     .summary = "one policy in full, as YAML",
     .details = "What it prints is a configuration file: 'hikyaku config check' accepts it. Comments at the\n"
                "end say how the policy classes common answers.",
     .options = json_only,
     .run = hk_cmd_policy_show},
    {.name = "policy",
     .sub = "plan",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .operand_kind = HK_CLI_POLICY,
     .summary = "the waits between attempts, and where they end",
     .details =
         "Shows what happens to a message whose every attempt fails: how long each wait is at the least,\n"
         "usually (median of 2,001 runs) and at the most. A program that calls hk_execute with the same\n"
         "seed waits exactly as shown.",
     .options = plan_options,
     .run = hk_cmd_policy_plan},
    {.name = "policy",
     .sub = "simulate",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .operand_kind = HK_CLI_POLICY,
     .summary = "the load that many clients make on a destination that was down",
     .details =
         "Every client sends one request and follows the policy until it is served or gives up. Runs it\n"
         "twice, as it is and without jitter, and shows both.",
     .options = simulate_options,
     .run = hk_cmd_policy_simulate},
    {.name = "config", .summary = "check a configuration file, and what may stand in it"},
    {.name = "config",
     .sub = "check",
     .operands = "[FILE]",
     .max_operands = 1,
     .operand_kind = HK_CLI_FILE,
     .summary = "find every error in a configuration file",
     .details = "Each error is one line, file:line:col: message. Exit code 78 when there is one. '-' reads\n"
                "standard input.",
     .options = json_only,
     .run = hk_cmd_config_check},
    {.name = "config",
     .sub = "schema",
     .summary = "every setting with its type and default; --json: the JSON Schema",
     .options = json_only,
     .run = hk_cmd_config_schema},
    {.name = "completion",
     .operands = "bash|zsh|fish",
     .min_operands = 1,
     .max_operands = 1,
     .operand_kind = HK_CLI_CHOICE,
     .operand_choices = "bash zsh fish",
     .summary = "print the completion script of a shell",
     .details = "  bash:  source <(hikyaku completion bash)\n"
                "  zsh:   hikyaku completion zsh > \"${fpath[1]}/_hikyaku\"\n"
                "  fish:  hikyaku completion fish > ~/.config/fish/completions/hikyaku.fish",
     .run = hk_cmd_completion},
    {.name = "version", .summary = "print the version", .options = json_only, .run = hk_cmd_version},
    {.name = "help",
     .operands = "[COMMAND [SUB]]",
     .max_operands = 2,
     .operand_kind = HK_CLI_COMMAND,
     .summary = "say what a command does",
     .run = hk_cmd_help},
    {.name = NULL}};

/* A group without a subcommand is a question that was not finished. */
static int unfinished(const struct hk_cli *cli)
{
    char subs[256] = "";
    size_t used = 0;

    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        if (c->sub != NULL && cli->command->name == c->name && used < sizeof subs)
            used += (size_t)snprintf(subs + used, sizeof subs - used, "%s%s", used > 0 ? ", " : "", c->sub);
    return hk_out_error(HK_EXIT_USAGE, "'%s' what? One of: %s. 'hikyaku help %s' says more",
                        cli->command->name, subs, cli->command->name);
}

static int dispatch(struct hk_cli *cli)
{
    int code = HK_EXIT_OK;

    if (cli->n_words == 0 && hk_args_flag(cli, "help"))
        return hk_help_print(cli, NULL, NULL);
    if (cli->n_words == 0 && hk_args_flag(cli, "version"))
        cli->words[cli->n_words++] = "version";
    if (cli->n_words == 0)
        return hk_out_error(HK_EXIT_USAGE, "which command? 'hikyaku help' lists what there is");
    code = hk_args_resolve(cli);
    if (code != HK_EXIT_OK)
        return code;
    if (hk_args_flag(cli, "help"))
        return hk_help_print(cli, cli->command->name, cli->command->sub);
    if (cli->command->run == NULL)
        return unfinished(cli);
    code = hk_args_check(cli);
    return code != HK_EXIT_OK ? code : cli->command->run(cli);
}

int main(int argc, char **argv)
{
    struct hk_cli cli = {.table = commands, .globals = globals};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    /* a reader who left shows as a failed write, and that as the exit code */
    (void)sigaction(SIGPIPE, &ignore, NULL);
    /* only to learn whether the terminal shows UTF-8; numbers stay as they are */
    (void)setlocale(LC_CTYPE, "");
    int code = hk_args_read(&cli, argc, argv);
    if (code == HK_EXIT_OK)
        code = dispatch(&cli);
    return hk_out_close(code);
}
