/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: words with zero bytes between. Whatever is given, it is read, resolved and checked against the very table of
 * the program without running anything, and what came of it is in that table. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define main hikyaku_main /* for its table of commands */
int hikyaku_main(int argc, char **argv);
#include "cli/main.c"
#include "fuzz.h"
#undef main

enum {
    ARGS = 160
};

/* What is wrong is said on stderr: thousands of times a second that is of no use, and the fuzzer itself speaks there. */
static void speak_to(bool nobody)
{
    static int real = -1, nowhere = -1;
    if (real < 0) {
        real = dup(STDERR_FILENO);
        nowhere = open("/dev/null", O_WRONLY);
    }
    MUST(real >= 0 && nowhere >= 0 && dup2(nobody ? nowhere : real, STDERR_FILENO) == STDERR_FILENO);
}

static bool in_table(const struct hk_cli_command *command)
{
    for (const struct hk_cli_command *c = commands; c->name != NULL; c++)
        if (c == command)
            return true;
    return false;
}

static bool has_option(const struct hk_cli_option *list, const struct hk_cli_option *option)
{
    for (; list != NULL && list->name != NULL; list++)
        if (strcmp(list->name, option->name) == 0)
            return true;
    return false;
}

static void check(struct hk_cli *cli)
{
    uint64_t number = 7;
    double rate = 7;
    MUST(cli->n_given <= HK_CLI_GIVEN && cli->n_words <= HK_CLI_WORDS);
    if (cli->n_words == 0 ||
        hk_args_resolve(cli) != HK_EXIT_OK) /* without a word dispatch() asks which one */
        return;
    MUST(in_table(cli->command) && cli->n_operands <= cli->n_words);
    if (cli->command->run == NULL || hk_args_check(cli) != HK_EXIT_OK)
        return;
    MUST(cli->n_operands >= cli->command->min_operands && cli->n_operands <= cli->command->max_operands);
    for (size_t i = 0; i < cli->n_given; i++) {
        const struct hk_cli_option *option = cli->given[i].option;
        MUST(has_option(cli->command->options, option) || has_option(globals, option));
        MUST(cli->given[i].value != NULL && hk_args_value(cli, option->name) != NULL);
        if (!hk_args_u64(cli, option->name, 1, 9, &number) ||
            !hk_args_duration(cli, option->name, 1, 9, &number) ||
            !hk_args_rate(cli, option->name, 1, 9, &rate))
            continue;
        MUST(number >= 1 && number <= 9 && rate >= 1 && rate <= 9);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_cli cli = {.program = "hikyaku", .table = commands, .globals = globals};
    char text[4096], *args[ARGS] = {NULL};
    int n = 0;
    if (size >= sizeof text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    args[n++] = text;
    for (size_t i = 0; i < size && n + 1 < ARGS; i++)
        if (text[i] == '\0')
            args[n++] = text + i + 1;
    speak_to(true);
    if (hk_args_read(&cli, n, args) == HK_EXIT_OK)
        check(&cli);
    speak_to(false);
    return 0;
}
