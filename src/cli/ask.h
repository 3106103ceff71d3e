/* SPDX-License-Identifier: Apache-2.0 */
/* How a command asks the desk: argv becomes a request, the result is printed for people or as JSON. */
#ifndef HK_CLI_ASK_H
#define HK_CLI_ASK_H

#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "cli/settings.h"
#include "desk/desk.h"

#define HK_OUTPUT_MAX      ((size_t)256 << 20)
#define HK_REASON_TEXT_MAX 512

/* Options of the operation's fields, and those that every operation of its kind has: fills a row of the command table. */
void hk_ask_describe(struct hk_cli_command *command);

struct hk_ask {
    const struct hk_cli *cli;
    const struct hk_op *op;
    struct hk_config *config;
    struct hk_remote *remote; /* that the desk asks; NULL: it asks the database */
    struct hk_desk desk;
    struct hk_caller caller;
    struct hk_pool mem;
    void *request, *result; /* of the operation, in `mem` */
    struct hk_err err;
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX];
};

/* Reads the command line into the request, asks for a reason where one is needed, reads the configuration. HK_EXIT_OK, or said
 * what is wrong; hk_ask_end in any case. */
int hk_ask_begin(const struct hk_cli *cli, struct hk_ask *out);
/* Where a server is to be asked: makes a desk that asks there, without any configuration of this machine, and `*out_is` is true.
 * HK_EXIT_OK, or said what is wrong. */
int hk_ask_elsewhere(struct hk_ask *ask, bool *out_is);
/* The same without the configuration: the caller makes the desk. */
int hk_ask_read(const struct hk_cli *cli, struct hk_ask *out);
/* Asks. HK_EXIT_OK, or said what is wrong. */
int hk_ask_run(struct hk_ask *ask);
/* Asks, and says nothing: for a command that has words of its own for some errors. hk_ask_failed says the others. */
enum hk_code hk_ask_quietly(struct hk_ask *ask);
/* The same for another operation than the command's. */
int hk_ask_also(struct hk_ask *ask, const struct hk_op *op, const void *request, void *result);
/* Says what the desk said in `ask->err`, and gives the exit code: 75 for what may work later, 1 for what does not fit the
 * state of things, 2 for a wrong request. */
int hk_ask_failed(const struct hk_ask *ask);
/* The same for an error that is in a result, or of a desk without such an `ask`. */
int hk_ask_error(const struct hk_err *err);
/* The result: as JSON when that was asked for, else as `print` writes it. */
typedef void hk_print_fn(const struct hk_ask *ask, const void *result, struct hk_buf *out);
int hk_ask_print(struct hk_ask *ask, hk_print_fn *print);
void hk_ask_end(struct hk_ask *ask);

/* All of it, for a command that asks once. */
int hk_ask_once(const struct hk_cli *cli, hk_print_fn *print);
/* The same where nothing of the configuration is needed. */
int hk_ask_bare(const struct hk_cli *cli, hk_print_fn *print);

#endif
