/* SPDX-License-Identifier: Apache-2.0 */
/* The program `hikyaku`: one table of commands drives dispatch, help, suggestions and shell completion. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/out.h"
#include "desk/adopt.h"
#include "desk/alerts.h"
#include "desk/audit.h"
#include "desk/clock.h"
#include "desk/dead.h"
#include "desk/dead_look.h"
#include "desk/definitions.h"
#include "desk/destinations.h"
#include "desk/doctor.h"
#include "desk/enqueue.h"
#include "desk/events.h"
#include "desk/explain.h"
#include "desk/figures.h"
#include "desk/job.h"
#include "desk/keys.h"
#include "desk/messages.h"
#include "desk/policy.h"
#include "desk/queues.h"
#include "desk/redrive.h"
#include "desk/setup.h"
#include "desk/status.h"
#include "desk/token.h"
#include "desk/whoami.h"

static const struct hk_cli_option globals[] = {
    {.name = "config",
     .kind = HK_CLI_FILE,
     .value = "FILE",
     .help = "configuration (default: $HIKYAKU_CONFIG, else ./hikyaku.yaml if it is there)"},
    {.name = "db",
     .kind = HK_CLI_TEXT,
     .value = "URL",
     .help = "database (default: $HIKYAKU_DB, else store: of the configuration, else sqlite:hikyaku.db)"},
    {.name = "server",
     .kind = HK_CLI_TEXT,
     .value = "URL",
     .help = "ask this relay's HTTP API, not the database (default: $HIKYAKU_SERVER, else as logged in)"},
    {.name = "token-file",
     .kind = HK_CLI_FILE,
     .value = "FILE",
     .help = "the token for --server, on one line (default: $HIKYAKU_TOKEN_FILE, else as logged in)"},
    {.name = "ca-file",
     .kind = HK_CLI_FILE,
     .value = "FILE",
     .help = "trust these certificates of a --server (default: $HIKYAKU_CA_FILE, else the system's)"},
    {.name = "insecure",
     .help =
         "send the token to an http:// --server on another machine, where everybody on the way can read it"},
    {.name = "help", .letter = 'h', .help = "say what a command does"},
    {.name = "version", .help = "print the version"},
    HK_END_OF_OPTIONS};

static const struct hk_cli_option yes_option[] = {{.name = "yes", .help = "do not ask"}, HK_END_OF_OPTIONS};

static const struct hk_cli_option json_option[] = {
    {.name = "json", .help = "print each event as a line of JSON"}, HK_END_OF_OPTIONS};

static const struct hk_cli_option actor_option[] = {HK_ACTOR_OPTION, HK_END_OF_OPTIONS};

static const struct hk_cli_option curl_option[] = {
    {.name = "curl", .help = "print the request as a curl command instead"}, HK_END_OF_OPTIONS};

static const struct hk_cli_option markdown_option[] = {
    {.name = "markdown", .help = "print them as docs/reasons.md has them"}, HK_END_OF_OPTIONS};

static const struct hk_cli_option follow_option[] = {
    {.name = "follow", .help = "wait until it has ended, and show progress"}, HK_END_OF_OPTIONS};

static const struct hk_cli_option wait_option[] = {
    {.name = "wait", .help = "wait until it has ended, and show progress"}, HK_END_OF_OPTIONS};

static const struct hk_cli_option file_option[] = {{.name = "file",
                                                    .letter = 'f',
                                                    .kind = HK_CLI_FILE,
                                                    .value = "FILE",
                                                    .help = "the same as --definitions @FILE"},
                                                   HK_END_OF_OPTIONS};

static const struct hk_cli_option demo_options[] = {
    {.name = "keep", .help = "leave it running afterwards, until Ctrl-C"}, HK_END_OF_OPTIONS};

static const struct hk_cli_option run_options[] = {
    {.name = "log-format",
     .kind = HK_CLI_CHOICE,
     .value = "FORMAT",
     .choices = "logfmt json",
     .help = "format of log lines (default: logfmt)"},
    {.name = "log-level",
     .kind = HK_CLI_CHOICE,
     .value = "LEVEL",
     .choices = "error warn info debug",
     .help = "least severe level to log (default: info)"},
    {.name = "user",
     .kind = HK_CLI_TEXT,
     .value = "USER[:GROUP]",
     .help = "started as root: become this user first"},
    {.name = "ui-dir",
     .kind = HK_CLI_FILE,
     .value = "DIR",
     .help = "serve the dashboard's files from here (tools/web folder DIR makes them)"},
    {.name = "no-sandbox", .help = "do not block system calls that a relay does not need"},
    {.name = "core-dumps", .help = "allow core dumps, although they contain secrets"},
    HK_END_OF_OPTIONS};

static const struct hk_cli_option enqueue_options[] = {
    {.name = "ndjson",
     .kind = HK_CLI_FILE,
     .value = "FILE",
     .help = "many: one JSON object a line with the names of outbox's columns; - is standard input"},
    HK_END_OF_OPTIONS};

static const struct hk_cli_option top_options[] = {
    {.name = "interval",
     .kind = HK_CLI_TEXT,
     .value = "TIME",
     .help = "refresh the screen this often (default: 2s)"},
    {.name = "once", .help = "print one screen and exit"},
    {.name = "actor",
     .kind = HK_CLI_TEXT,
     .value = "NAME",
     .help = "who pauses and resumes (default: $HIKYAKU_ACTOR, else user@host)"},
    HK_END_OF_OPTIONS};

static const struct hk_cli_option svg_option[] = {
    {.name = "svg", .kind = HK_CLI_FILE, .value = "FILE", .help = "also draw a picture into FILE"},
    HK_END_OF_OPTIONS};

static struct hk_cli_command commands[] = {
    {.name = "demo",
     .summary = "run a tour: a flaky receiver, a killed relay, and no lost message",
     .details =
         "Makes a temporary SQLite outbox, commits 20 orders, rolls one back, sends them to a receiver that\n"
         "misbehaves, kills the relay on the way, and ends with what the receiver counted.",
     .options = demo_options,
     .run = hk_cmd_demo},
    {.op = &hk_op_init, .run = hk_cmd_init},
    {.op = &hk_op_adopt, .run = hk_cmd_adopt},
    {.name = "run",
     .summary = "relay what applications commit, until stopped",
     .details =
         "SIGTERM and SIGINT drain: no new claims, what is in flight ends or is given back, exit 0. A second\n"
         "signal shortens the drain. SIGHUP reads the configuration again, all or nothing.",
     .options = run_options,
     .run = hk_cmd_run},
    {.op = &hk_op_enqueue, .options = enqueue_options, .run = hk_cmd_enqueue},
    {.op = &hk_op_status, .run = hk_cmd_status},
    {.op = &hk_op_figures, .run = hk_cmd_figures},
    {.op = &hk_op_events, .options = json_option, .run = hk_cmd_events},
    {.name = "top",
     .summary = "show the status live in a terminal; pause, resume, read dead letters",
     .details = "? shows the keys. Works in 80x24, without colours, over SSH.",
     .options = top_options,
     .run = hk_cmd_top},
    {.name = "login",
     .operands = "URL",
     .min_operands = 1,
     .max_operands = 1,
     .operand_kind = HK_CLI_TEXT,
     .summary = "store a relay's address and your token, for commands without --server",
     .details =
         "Asks for the token, or takes it from --token-file. Kept in ~/.config/hikyaku/login, for you alone. Commands\n"
         "with a database (--db, a configuration file) still work on that database.",
     .run = hk_cmd_login},
    {.name = "logout", .summary = "forget the relay and the token of 'login'", .run = hk_cmd_logout},
    {.op = &hk_op_whoami, .run = hk_cmd_whoami},
    {.name = "messages", .summary = "look at messages, cancel and restore them, hurry them"},
    {.op = &hk_op_messages_list, .run = hk_cmd_messages_list},
    {.op = &hk_op_messages_show, .run = hk_cmd_messages_show},
    {.op = &hk_op_messages_attempts, .run = hk_cmd_messages_attempts},
    {.op = &hk_op_messages_explain, .run = hk_cmd_messages_explain},
    {.op = &hk_op_messages_cancel, .options = yes_option, .run = hk_cmd_messages_cancel},
    {.op = &hk_op_messages_restore, .options = yes_option, .run = hk_cmd_messages_restore},
    {.op = &hk_op_messages_erase, .options = yes_option, .run = hk_cmd_messages_erase},
    {.op = &hk_op_messages_retry, .run = hk_cmd_messages_retry},
    {.name = "destinations", .summary = "look at destinations, create, change, pause, resume and test them"},
    {.op = &hk_op_destinations_list, .run = hk_cmd_destinations_list},
    {.op = &hk_op_destinations_show, .run = hk_cmd_destinations_show},
    {.op = &hk_op_destinations_create, .run = hk_cmd_destinations_create},
    {.op = &hk_op_destinations_update, .run = hk_cmd_destinations_update},
    {.op = &hk_op_destinations_delete, .run = hk_cmd_destinations_delete},
    {.op = &hk_op_destinations_apply, .options = file_option, .run = hk_cmd_destinations_apply},
    {.op = &hk_op_destinations_pause, .run = hk_cmd_destinations_pause},
    {.op = &hk_op_destinations_resume, .run = hk_cmd_destinations_resume},
    {.op = &hk_op_destinations_test, .run = hk_cmd_destinations_test},
    {.name = "queues", .summary = "look at the queues of Cloud Tasks, create, change, empty and pause them"},
    {.op = &hk_op_queues_list, .run = hk_cmd_queues_list},
    {.op = &hk_op_queues_show, .run = hk_cmd_queues_show},
    {.op = &hk_op_queues_create, .run = hk_cmd_queues_create},
    {.op = &hk_op_queues_update, .run = hk_cmd_queues_update},
    {.op = &hk_op_queues_delete, .run = hk_cmd_queues_delete},
    {.op = &hk_op_queues_purge, .run = hk_cmd_queues_purge},
    {.op = &hk_op_queues_pause, .run = hk_cmd_queues_pause},
    {.op = &hk_op_queues_resume, .run = hk_cmd_queues_resume},
    {.name = "relays", .summary = "look at the relays"},
    {.op = &hk_op_relays_list, .run = hk_cmd_relays_list},
    {.name = "clock", .summary = "mend what a clock that was wrong has left behind"},
    {.op = &hk_op_clock_show, .run = hk_cmd_clock_show},
    {.op = &hk_op_clock_reset, .run = hk_cmd_clock_reset},
    {.name = "dead", .summary = "dead letters: look, repair, send again, discard"},
    {.op = &hk_op_dead_list, .run = hk_cmd_dead_list},
    {.op = &hk_op_dead_groups, .run = hk_cmd_dead_groups},
    {.op = &hk_op_dead_show, .options = curl_option, .run = hk_cmd_dead_show},
    {.op = &hk_op_dead_stats, .run = hk_cmd_dead_stats},
    {.op = &hk_op_dead_export, .run = hk_cmd_dead_export},
    {.op = &hk_op_dead_reasons, .options = markdown_option, .run = hk_cmd_dead_reasons},
    {.op = &hk_op_dead_edit, .run = hk_cmd_dead_edit},
    {.op = &hk_op_dead_fix, .options = yes_option, .run = hk_cmd_dead_fix},
    {.op = &hk_op_dead_requeue, .run = hk_cmd_dead_requeue},
    {.op = &hk_op_dead_send, .run = hk_cmd_dead_send},
    {.op = &hk_op_dead_resolve, .options = yes_option, .run = hk_cmd_dead_resolve},
    {.op = &hk_op_dead_discard, .options = yes_option, .run = hk_cmd_dead_discard},
    {.op = &hk_op_dead_restore, .options = yes_option, .run = hk_cmd_dead_restore},
    {.op = &hk_op_dead_erase, .options = yes_option, .run = hk_cmd_dead_erase},
    {.op = &hk_op_dead_note, .options = actor_option, .run = hk_cmd_dead_note},
    {.name = "redrive", .summary = "requeue many dead letters as a job"},
    {.op = &hk_op_redrive_plan, .run = hk_cmd_redrive_plan},
    {.op = &hk_op_redrive_start, .options = yes_option, .run = hk_cmd_redrive_start},
    {.op = &hk_op_redrive_list, .run = hk_cmd_redrive_list},
    {.op = &hk_op_redrive_show, .options = follow_option, .run = hk_cmd_redrive_show},
    {.op = &hk_op_redrive_cancel, .run = hk_cmd_redrive_cancel},
    {.name = "job", .summary = "long operations in the background: look, wait, cancel"},
    {.op = &hk_op_job_list, .run = hk_cmd_job_list},
    {.op = &hk_op_job_show, .options = wait_option, .run = hk_cmd_job_show},
    {.op = &hk_op_job_cancel, .run = hk_cmd_job_cancel},
    {.name = "keys", .summary = "look at the keys that seal payloads, change to a new one"},
    {.op = &hk_op_keys_list, .run = hk_cmd_keys_list},
    {.op = &hk_op_keys_rotate, .run = hk_cmd_keys_rotate},
    {.op = &hk_op_keys_retire, .run = hk_cmd_keys_retire},
    {.name = "alerts", .summary = "alerts: list them, test a channel, mute a rule"},
    {.op = &hk_op_alerts_list, .run = hk_cmd_alerts_list},
    {.op = &hk_op_alerts_test, .run = hk_cmd_alerts_test},
    {.op = &hk_op_alerts_mute, .run = hk_cmd_alerts_mute},
    {.op = &hk_op_alerts_unmute, .run = hk_cmd_alerts_unmute},
    {.name = "token", .summary = "who may use the HTTP API: create, list and revoke tokens"},
    {.op = &hk_op_token_create, .run = hk_cmd_token_create},
    {.op = &hk_op_token_list, .run = hk_cmd_token_list},
    {.op = &hk_op_token_revoke, .run = hk_cmd_token_revoke},
    {.name = "audit", .summary = "who did what, and why"},
    {.op = &hk_op_audit_list, .run = hk_cmd_audit_list},
    {.op = &hk_op_audit_show, .run = hk_cmd_audit_show},
    {.op = &hk_op_audit_verify, .run = hk_cmd_audit_verify},
    {.op = &hk_op_doctor, .run = hk_cmd_doctor},
    {.name = "policy", .summary = "look at retry policies, and at what they do"},
    {.op = &hk_op_policy_list, .run = hk_cmd_policy_list},
    {.op = &hk_op_policy_show, .run = hk_cmd_policy_show},
    {.op = &hk_op_policy_plan, .run = hk_cmd_policy_plan},
    {.op = &hk_op_policy_simulate, .options = svg_option, .run = hk_cmd_policy_simulate},
    {.name = "config", .summary = "check a configuration file, and what may stand in it"},
    {.op = &hk_op_config_check, .run = hk_cmd_config_check},
    {.op = &hk_op_config_schema, .run = hk_cmd_config_schema},
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
    {.op = &hk_op_version, .run = hk_cmd_version},
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
        if (c->sub != NULL && strcmp(cli->command->name, c->name) == 0 && used < sizeof subs)
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
    struct hk_cli cli = {.program = argc > 0 ? argv[0] : "hikyaku", .table = commands, .globals = globals};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    hk_args_hide(argc, argv);
    for (struct hk_cli_command *c = commands; c->name != NULL || c->op != NULL; c++)
        if (c->op != NULL)
            hk_ask_describe(c);

    /* a reader who left shows as a failed write, and that as the exit code */
    (void)sigaction(SIGPIPE, &ignore, NULL);
    /* only to learn whether the terminal shows UTF-8; numbers stay as they are */
    (void)setlocale(LC_CTYPE, "");
    int code = hk_args_read(&cli, argc, argv);
    if (code == HK_EXIT_OK)
        code = dispatch(&cli);
    return hk_out_close(code);
}
