/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of every command: its row in the command table, and the user's arguments. */
#ifndef HK_CLI_CLI_H
#define HK_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/error.h>

enum hk_exit {
    HK_EXIT_OK = 0,
    HK_EXIT_FAILURE = 1,
    HK_EXIT_USAGE = 2,
    HK_EXIT_UNAVAILABLE = 69, /* store or daemon out of reach */
    HK_EXIT_TEMPORARY = 75,
    HK_EXIT_CONFIG = 78
};

/* What stands behind an option or as an operand, so that a shell can complete it. */
enum hk_cli_value_kind {
    HK_CLI_NOTHING = 0,
    HK_CLI_TEXT, /* cannot be completed */
    HK_CLI_FILE,
    HK_CLI_POLICY,
    HK_CLI_COMMAND,
    HK_CLI_CHOICE /* one of `choices` */
};

/* Options may stand before the words: then an option of that name of any command says whether it takes a value. Where
 * commands differ (--payload) the words that stand before it decide. */
struct hk_cli_option {
    const char *name; /* without the dashes; NULL ends a list */
    char letter;      /* 0: long form only */
    enum hk_cli_value_kind kind;
    const char *value;   /* how help calls the value */
    const char *choices; /* HK_CLI_CHOICE: words with blanks between */
    const char *help;
};

struct hk_cli;
struct hk_op;

/* One row of the command table. A row with neither `run` nor `sub` introduces the group of its name. A row with `op` says only
 * how the command prints, and which options it has besides: hk_ask_describe fills in the rest from the desk's table. */
struct hk_cli_command {
    const struct hk_op *op;
    const char *name; /* NULL ends the table */
    const char *sub;
    const char *operands; /* as help shows them; NULL: none */
    size_t min_operands, max_operands;
    enum hk_cli_value_kind operand_kind;
    const char *operand_choices;
    const char *summary;
    const char *details; /* NULL: the summary says all */
    const struct hk_cli_option *options;
    int (*run)(struct hk_cli *cli); /* returns the exit code */
};

#define HK_CLI_WORDS 128
#define HK_CLI_GIVEN 32

struct hk_cli_given {
    const struct hk_cli_option *option;
    const char *value; /* "" for an option without value */
};

struct hk_cli {
    const char *program; /* as it was called */
    const struct hk_cli_command *table;
    const struct hk_cli_option *globals;
    const struct hk_cli_command *command; /* NULL until found */
    const char *words[HK_CLI_WORDS];      /* everything that is no option */
    size_t n_words;
    const char *const *operands; /* the words behind the command's */
    size_t n_operands;
    struct hk_cli_given given[HK_CLI_GIVEN];
    size_t n_given;
};

int hk_cmd_demo(struct hk_cli *cli);
int hk_cmd_init(struct hk_cli *cli);
int hk_cmd_adopt(struct hk_cli *cli);
int hk_cmd_run(struct hk_cli *cli);
int hk_cmd_enqueue(struct hk_cli *cli);
int hk_cmd_status(struct hk_cli *cli);
int hk_cmd_top(struct hk_cli *cli);
int hk_cmd_login(struct hk_cli *cli);
int hk_cmd_logout(struct hk_cli *cli);
int hk_cmd_whoami(struct hk_cli *cli);
int hk_cmd_messages_list(struct hk_cli *cli);
int hk_cmd_events(struct hk_cli *cli);
int hk_cmd_figures(struct hk_cli *cli);
int hk_cmd_messages_show(struct hk_cli *cli);
int hk_cmd_messages_attempts(struct hk_cli *cli);
int hk_cmd_messages_explain(struct hk_cli *cli);
int hk_cmd_messages_cancel(struct hk_cli *cli);
int hk_cmd_messages_restore(struct hk_cli *cli);
int hk_cmd_messages_erase(struct hk_cli *cli);
int hk_cmd_messages_retry(struct hk_cli *cli);
int hk_cmd_destinations_list(struct hk_cli *cli);
int hk_cmd_destinations_show(struct hk_cli *cli);
int hk_cmd_destinations_create(struct hk_cli *cli);
int hk_cmd_destinations_update(struct hk_cli *cli);
int hk_cmd_destinations_delete(struct hk_cli *cli);
int hk_cmd_destinations_apply(struct hk_cli *cli);
int hk_cmd_destinations_pause(struct hk_cli *cli);
int hk_cmd_destinations_resume(struct hk_cli *cli);
int hk_cmd_destinations_test(struct hk_cli *cli);
int hk_cmd_queues_list(struct hk_cli *cli);
int hk_cmd_queues_show(struct hk_cli *cli);
int hk_cmd_queues_create(struct hk_cli *cli);
int hk_cmd_queues_update(struct hk_cli *cli);
int hk_cmd_queues_delete(struct hk_cli *cli);
int hk_cmd_queues_purge(struct hk_cli *cli);
int hk_cmd_queues_pause(struct hk_cli *cli);
int hk_cmd_queues_resume(struct hk_cli *cli);
int hk_cmd_relays_list(struct hk_cli *cli);
int hk_cmd_clock_show(struct hk_cli *cli);
int hk_cmd_clock_reset(struct hk_cli *cli);
int hk_cmd_keys_list(struct hk_cli *cli);
int hk_cmd_keys_rotate(struct hk_cli *cli);
int hk_cmd_keys_retire(struct hk_cli *cli);
int hk_cmd_dead_list(struct hk_cli *cli);
int hk_cmd_dead_groups(struct hk_cli *cli);
int hk_cmd_dead_show(struct hk_cli *cli);
int hk_cmd_dead_stats(struct hk_cli *cli);
int hk_cmd_dead_export(struct hk_cli *cli);
int hk_cmd_dead_reasons(struct hk_cli *cli);
int hk_cmd_dead_edit(struct hk_cli *cli);
int hk_cmd_dead_fix(struct hk_cli *cli);
int hk_cmd_dead_requeue(struct hk_cli *cli);
int hk_cmd_dead_send(struct hk_cli *cli);
int hk_cmd_dead_resolve(struct hk_cli *cli);
int hk_cmd_dead_discard(struct hk_cli *cli);
int hk_cmd_dead_restore(struct hk_cli *cli);
int hk_cmd_dead_erase(struct hk_cli *cli);
int hk_cmd_dead_note(struct hk_cli *cli);
int hk_cmd_redrive_plan(struct hk_cli *cli);
int hk_cmd_redrive_start(struct hk_cli *cli);
int hk_cmd_redrive_list(struct hk_cli *cli);
int hk_cmd_redrive_show(struct hk_cli *cli);
int hk_cmd_redrive_cancel(struct hk_cli *cli);
int hk_cmd_job_list(struct hk_cli *cli);
int hk_cmd_job_show(struct hk_cli *cli);
int hk_cmd_job_cancel(struct hk_cli *cli);
int hk_cmd_alerts_list(struct hk_cli *cli);
int hk_cmd_alerts_test(struct hk_cli *cli);
int hk_cmd_alerts_mute(struct hk_cli *cli);
int hk_cmd_alerts_unmute(struct hk_cli *cli);
int hk_cmd_token_create(struct hk_cli *cli);
int hk_cmd_token_list(struct hk_cli *cli);
int hk_cmd_token_revoke(struct hk_cli *cli);
int hk_cmd_audit_list(struct hk_cli *cli);
int hk_cmd_audit_show(struct hk_cli *cli);
int hk_cmd_audit_verify(struct hk_cli *cli);
int hk_cmd_doctor(struct hk_cli *cli);
int hk_cmd_policy_list(struct hk_cli *cli);
int hk_cmd_policy_show(struct hk_cli *cli);
int hk_cmd_policy_plan(struct hk_cli *cli);
int hk_cmd_policy_simulate(struct hk_cli *cli);
int hk_cmd_config_check(struct hk_cli *cli);
int hk_cmd_config_schema(struct hk_cli *cli);
int hk_cmd_completion(struct hk_cli *cli);
int hk_cmd_help(struct hk_cli *cli);
int hk_cmd_version(struct hk_cli *cli);

/* Help for the words that the user gave: the whole, a group, or one command. */
int hk_help_print(const struct hk_cli *cli, const char *name, const char *sub);

#endif
