/* SPDX-License-Identifier: Apache-2.0 */
/* The command table decides what is understood. getopt_long is not used: it takes abbreviations, which turn
 * into errors when an option is added, and it knows nothing of options in front of the subcommand. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/out.h"
#include "desk/op.h"

static bool name_is(const struct hk_cli_option *option, const char *name, size_t len)
{
    return strlen(option->name) == len && memcmp(option->name, name, len) == 0;
}

static const struct hk_cli_option *in_list(const struct hk_cli_option *list, const char *name, size_t len)
{
    for (; list != NULL && list->name != NULL; list++)
        if (name_is(list, name, len))
            return list;
    return NULL;
}

/* The command that the words so far name, or NULL. */
static const struct hk_cli_command *command_so_far(const struct hk_cli *cli)
{
    const struct hk_cli_command *c = cli->n_words > 0 ? hk_args_find(cli, cli->words[0], NULL) : NULL;

    if (c != NULL && c->run == NULL)
        c = cli->n_words > 1 ? hk_args_find(cli, cli->words[0], cli->words[1]) : NULL;
    return c;
}

static const struct hk_cli_option *find_option(const struct hk_cli *cli, const char *name, size_t len)
{
    const struct hk_cli_option *found = in_list(cli->globals, name, len);
    const struct hk_cli_command *own = found == NULL ? command_so_far(cli) : NULL;

    if (own != NULL)
        found = in_list(own->options, name, len);
    for (const struct hk_cli_command *c = cli->table; found == NULL && c->name != NULL; c++)
        found = in_list(c->options, name, len);
    return found;
}

/* The nearest of two candidates, as long as it is near at all. */
static void nearer(const char *candidate, const char *wanted, const char **best, unsigned *best_distance)
{
    unsigned distance = hk_str_distance(candidate, wanted);
    if (distance < *best_distance) {
        *best = candidate;
        *best_distance = distance;
    }
}

static int unknown_option(const struct hk_cli *cli, const char *arg, size_t len)
{
    char name[64];
    const char *best = NULL;
    unsigned distance = 3;

    if (hk_str_copy(name, sizeof name, (struct hk_str){arg + 2, len - 2})) {
        for (const struct hk_cli_option *o = cli->globals; o->name != NULL; o++)
            nearer(o->name, name, &best, &distance);
        for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
            for (const struct hk_cli_option *o = c->options; o != NULL && o->name != NULL; o++)
                nearer(o->name, name, &best, &distance);
    }
    if (best != NULL)
        return hk_out_error(HK_EXIT_USAGE, "unknown option '%.*s'; did you mean '--%s'?", (int)len, arg,
                            best);
    return hk_out_error(HK_EXIT_USAGE, "unknown option '%.*s'; 'hikyaku help' lists what there is", (int)len,
                        arg);
}

static int add_given(struct hk_cli *cli, const struct hk_cli_option *option, const char *value)
{
    if (cli->n_given == HK_CLI_GIVEN)
        return hk_out_error(HK_EXIT_USAGE, "too many options");
    cli->given[cli->n_given++] = (struct hk_cli_given){option, value};
    return HK_EXIT_OK;
}

/* `value` NULL: it is the next argument, to which `*i` moves. */
static int take_option(struct hk_cli *cli, const struct hk_cli_option *option, const char *value, int argc,
                       char *const *argv, int *i)
{
    if (option->kind == HK_CLI_NOTHING && value != NULL)
        return hk_out_error(HK_EXIT_USAGE, "option '--%s' takes no value", option->name);
    if (option->kind == HK_CLI_NOTHING)
        return add_given(cli, option, "");
    if (value == NULL && *i + 1 < argc)
        value = argv[++*i];
    if (value == NULL)
        return hk_out_error(HK_EXIT_USAGE, "option '--%s' needs a value: --%s %s", option->name, option->name,
                            option->value);
    return add_given(cli, option, value);
}

/* Reads the option at argv[*i]; moves `*i` to its value when that is the next argument. */
static int read_long(struct hk_cli *cli, int argc, char *const *argv, int *i)
{
    const char *arg = argv[*i];
    size_t len = strcspn(arg, "=");
    const struct hk_cli_option *option = find_option(cli, arg + 2, len - 2);

    if (option == NULL)
        return unknown_option(cli, arg, len);
    return take_option(cli, option, arg[len] == '=' ? arg + len + 1 : NULL, argc, argv, i);
}

static const struct hk_cli_option *with_letter(const struct hk_cli_option *options, char letter)
{
    for (const struct hk_cli_option *o = options; o != NULL && o->name != NULL; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

static int read_short(struct hk_cli *cli, int argc, char *const *argv, int *i)
{
    const char *arg = argv[*i];
    const struct hk_cli_option *option = arg[2] == '\0' ? with_letter(cli->globals, arg[1]) : NULL;
    for (const struct hk_cli_command *c = cli->table; option == NULL && arg[2] == '\0' && c->name != NULL;
         c++)
        option = with_letter(c->options, arg[1]);
    if (option != NULL)
        return take_option(cli, option, NULL, argc, argv, i);
    return hk_out_error(HK_EXIT_USAGE, "unknown option '%s'; 'hikyaku help' lists what there is", arg);
}

static int read_word(struct hk_cli *cli, const char *arg)
{
    if (cli->n_words == HK_CLI_WORDS)
        return hk_out_error(HK_EXIT_USAGE, "too many arguments, from '%s' on", arg);
    cli->words[cli->n_words++] = arg;
    return HK_EXIT_OK;
}

int hk_args_read(struct hk_cli *cli, int argc, char *const *argv)
{
    bool words_only = false;
    int code = HK_EXIT_OK;

    for (int i = 1; i < argc && code == HK_EXIT_OK; i++) {
        const char *arg = argv[i];
        if (words_only || arg[0] != '-' || arg[1] == '\0')
            code = read_word(cli, arg);
        else if (strcmp(arg, "--") == 0)
            words_only = true;
        else if (arg[1] == '-')
            code = read_long(cli, argc, argv, &i);
        else
            code = read_short(cli, argc, argv, &i);
    }
    return code;
}

static bool same_sub(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

const struct hk_cli_command *hk_args_find(const struct hk_cli *cli, const char *name, const char *sub)
{
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0 && same_sub(c->sub, sub))
            return c;
    return NULL;
}

static void unknown_command(const struct hk_cli *cli, const char *name)
{
    const char *best = NULL;
    unsigned distance = 3;

    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        nearer(c->name, name, &best, &distance);
    if (best != NULL)
        (void)hk_out_error(HK_EXIT_USAGE, "unknown command '%s'; did you mean '%s'?", name, best);
    else
        (void)hk_out_error(HK_EXIT_USAGE, "unknown command '%s'; 'hikyaku help' lists what there is", name);
}

static void unknown_sub(const struct hk_cli *cli, const char *name, const char *sub)
{
    const char *best = NULL;
    unsigned distance = 3;

    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        if (c->sub != NULL && strcmp(c->name, name) == 0)
            nearer(c->sub, sub, &best, &distance);
    if (best != NULL)
        (void)hk_out_error(HK_EXIT_USAGE, "unknown command '%s %s'; did you mean '%s %s'?", name, sub, name,
                           best);
    else
        (void)hk_out_error(HK_EXIT_USAGE, "unknown command '%s %s'; 'hikyaku help %s' lists what there is",
                           name, sub, name);
}

const struct hk_cli_command *hk_args_require(const struct hk_cli *cli, const char *name, const char *sub)
{
    const struct hk_cli_command *top = hk_args_find(cli, name, NULL);

    if (top == NULL) {
        unknown_command(cli, name);
        return NULL;
    }
    if (sub == NULL)
        return top;
    const struct hk_cli_command *found = hk_args_find(cli, name, sub);
    if (found == NULL)
        unknown_sub(cli, name, sub);
    return found;
}

int hk_args_resolve(struct hk_cli *cli)
{
    const struct hk_cli_command *top = hk_args_require(cli, cli->words[0], NULL);
    size_t used = 1;

    if (top == NULL)
        return HK_EXIT_USAGE;
    if (top->run == NULL && cli->n_words > 1) {
        top = hk_args_require(cli, cli->words[0], cli->words[1]);
        used = 2;
    }
    if (top == NULL)
        return HK_EXIT_USAGE;
    cli->command = top;
    cli->operands = cli->words + used;
    cli->n_operands = cli->n_words - used;
    return HK_EXIT_OK;
}

static const char *sub_of(const struct hk_cli_command *command)
{
    return command->sub != NULL ? command->sub : "";
}

bool hk_args_is_global(const struct hk_cli *cli, const char *option)
{
    return in_list(cli->globals, option, strlen(option)) != NULL;
}

static bool asks_servers(const struct hk_cli_command *command)
{
    bool stays = strcmp(command->name, "config") == 0 || strcmp(command->name, "version") == 0;
    return strcmp(command->name, "top") == 0 || (!stays && command->op != NULL && command->op->route != NULL);
}

static int check_options(const struct hk_cli *cli)
{
    const struct hk_cli_command *command = cli->command;

    for (size_t i = 0; i < cli->n_given; i++) {
        const char *name = cli->given[i].option->name;
        bool place = strcmp(name, "db") == 0 || strcmp(name, "config") == 0 ||
                     strcmp(name, "server") == 0; /* never another one by mistake */
        if (place && cli->given[i].value[0] == '\0')
            return hk_out_error(HK_EXIT_USAGE, "option '--%s' is empty: is a variable not set?", name);
        if (strcmp(name, "server") == 0 && !asks_servers(command))
            return hk_out_error(HK_EXIT_USAGE, "'%s%s%s' works on this machine: it takes no '--server'",
                                command->name, command->sub != NULL ? " " : "", sub_of(command));
        if (in_list(cli->globals, name, strlen(name)) == NULL &&
            in_list(command->options, name, strlen(name)) == NULL)
            return hk_out_error(HK_EXIT_USAGE, "'%s%s%s' takes no option '--%s'", command->name,
                                command->sub != NULL ? " " : "", sub_of(command), name);
    }
    return HK_EXIT_OK;
}

int hk_args_check(struct hk_cli *cli)
{
    const struct hk_cli_command *command = cli->command;
    const char *blank = command->sub != NULL ? " " : "";
    int code = check_options(cli);

    if (code != HK_EXIT_OK)
        return code;
    if (cli->n_operands < command->min_operands)
        return hk_out_error(HK_EXIT_USAGE, "something is missing: hikyaku %s%s%s %s", command->name, blank,
                            sub_of(command), command->operands);
    if (cli->n_operands > command->max_operands)
        return hk_out_error(HK_EXIT_USAGE, "unexpected argument '%s': hikyaku %s%s%s%s%s",
                            cli->operands[command->max_operands], command->name, blank, sub_of(command),
                            command->operands != NULL ? " " : "",
                            command->operands != NULL ? command->operands : "");
    return HK_EXIT_OK;
}

const char *hk_args_value(const struct hk_cli *cli, const char *option)
{
    for (size_t i = cli->n_given; i > 0; i--)
        if (strcmp(cli->given[i - 1].option->name, option) == 0)
            return cli->given[i - 1].value;
    return NULL;
}

bool hk_args_flag(const struct hk_cli *cli, const char *option)
{
    return hk_args_value(cli, option) != NULL;
}

bool hk_args_u64(const struct hk_cli *cli, const char *option, uint64_t lo, uint64_t hi, uint64_t *value)
{
    const char *text = hk_args_value(cli, option);
    uint64_t number = 0;

    if (text == NULL)
        return true;
    if (hk_parse_u64(hk_str_of(text), &number, NULL) != HK_OK || number < lo || number > hi) {
        (void)hk_out_error(HK_EXIT_USAGE,
                           "option '--%s' takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'",
                           option, lo, hi, text);
        return false;
    }
    *value = number;
    return true;
}

bool hk_args_duration(const struct hk_cli *cli, const char *option, uint64_t lo_ms, uint64_t hi_ms,
                      uint64_t *value_ms)
{
    const char *text = hk_args_value(cli, option);
    char lo[HK_DURATION_TEXT_MAX], hi[HK_DURATION_TEXT_MAX];
    uint64_t ms = 0;

    if (text == NULL)
        return true;
    if (hk_parse_duration(hk_str_of(text), &ms, NULL) != HK_OK || ms < lo_ms || ms > hi_ms) {
        (void)hk_format_duration(lo_ms, lo);
        (void)hk_format_duration(hi_ms, hi);
        (void)hk_out_error(HK_EXIT_USAGE,
                           "option '--%s' takes a time from %s to %s, such as 250ms, 60s or 1h30m, not '%s'",
                           option, lo, hi, text);
        return false;
    }
    *value_ms = ms;
    return true;
}

bool hk_args_rate(const struct hk_cli *cli, const char *option, double lo, double hi, double *value_per_s)
{
    const char *text = hk_args_value(cli, option);
    double rate = 0;

    if (text == NULL)
        return true;
    if (hk_parse_rate(hk_str_of(text), &rate, NULL) != HK_OK || rate < lo || rate > hi) {
        (void)hk_out_error(
            HK_EXIT_USAGE,
            "option '--%s' takes a rate from %g/s to %.0f/s, such as 100/s or 6000/m, not '%s'", option, lo,
            hi, text);
        return false;
    }
    *value_per_s = rate;
    return true;
}

enum hk_code hk_args_read_file(FILE *file, struct hk_buf *out)
{
    char chunk[16384];
    size_t n = 0;
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        if (hk_buf_add(out, chunk, n) != HK_OK)
            break;
    return ferror(file) ? HK_IO : hk_buf_status(out);
}

bool hk_args_bytes(const char *given, struct hk_buf *out)
{
    if (given[0] != '@' && strcmp(given, "-") != 0)
        return hk_buf_adds(out, given) == HK_OK ||
               hk_out_error(HK_EXIT_FAILURE, "out of memory") == HK_EXIT_OK;
    bool named = given[0] == '@';
    const char *name = named ? given + 1 : "standard input";
    FILE *file = named ? fopen(name, "rb") : stdin;
    if (file == NULL) {
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", name, strerror(errno));
        return false;
    }
    errno = 0;
    bool ok = hk_args_read_file(file, out) == HK_OK;
    if (!ok)
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", name,
                           hk_buf_status(out) != HK_OK ? "it is too large" : strerror(errno));
    if (named)
        (void)fclose(file);
    return ok;
}
