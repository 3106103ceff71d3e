/* SPDX-License-Identifier: Apache-2.0 */
/* The desk's table, from the command line's side. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/options.h"
#include "cli/out.h"

/* ---- the table of commands ---- */

/* Of all operations together; the table is made once, at the start. */
enum {
    OPTIONS_MAX = 1024,
    NAMES_MAX = 16384
};

static struct hk_cli_option options[OPTIONS_MAX];
static size_t n_options;
static char names[NAMES_MAX];
static size_t names_used;

static void add_option(struct hk_cli_option option)
{
    if (n_options == OPTIONS_MAX)
        abort(); /* a test builds the whole table */
    options[n_options++] = option;
}

/* event_type -> event-type */
static const char *option_name(const char *field)
{
    size_t len = strlen(field) + 1;
    char *name = names + names_used;
    if (len > NAMES_MAX - names_used)
        abort();
    for (size_t i = 0; i < len; i++)
        name[i] = field[i] == '_' ? '-' : field[i];
    names_used += len;
    return name;
}

static enum hk_cli_value_kind kind_of(enum hk_arg_kind kind)
{
    static const enum hk_cli_value_kind kinds[] = {
        [HK_ARG_FLAG] = HK_CLI_NOTHING,  [HK_ARG_CHOICE] = HK_CLI_CHOICE, [HK_ARG_TEXT] = HK_CLI_TEXT,
        [HK_ARG_TEXTS] = HK_CLI_TEXT,    [HK_ARG_NUMBER] = HK_CLI_TEXT,   [HK_ARG_DURATION] = HK_CLI_TEXT,
        [HK_ARG_RATE] = HK_CLI_TEXT,     [HK_ARG_BYTES] = HK_CLI_TEXT,    [HK_ARG_FILE] = HK_CLI_FILE,
        [HK_ARG_POLICY] = HK_CLI_POLICY,
    };

    return kinds[kind];
}

static void add_operand(struct hk_cli_command *command, const struct hk_arg *field)
{
    bool many = field->kind == HK_ARG_TEXTS;
    char *text = names + names_used;
    int len =
        snprintf(text, NAMES_MAX - names_used, "%s%s%s%s%s%s",
                 command->operands != NULL ? command->operands : "", command->operands != NULL ? " " : "",
                 field->required ? "" : "[", field->value, many ? "..." : "", field->required ? "" : "]");
    if (len < 0 || (size_t)len >= NAMES_MAX - names_used)
        abort();
    names_used += (size_t)len + 1;
    command->operands = text;
    command->min_operands += field->required;
    command->max_operands += many ? HK_TEXTS_MAX : 1;
    command->operand_kind = kind_of(field->kind);
    command->operand_choices = field->choices;
}

void hk_ask_describe(struct hk_cli_command *command)
{
    const struct hk_op *op = command->op;
    const struct hk_cli_option *extra = command->options;
    size_t first = n_options;
    command->name = op->noun;
    command->sub = op->verb;
    command->summary = op->summary;
    command->details = op->details;
    for (const struct hk_arg *f = op->args; f != NULL && f->name != NULL; f++) {
        if (f->subject)
            add_operand(command, f);
        else
            add_option((struct hk_cli_option){.name = option_name(f->name),
                                              .kind = kind_of(f->kind),
                                              .value = f->value,
                                              .choices = f->choices,
                                              .help = f->help});
    }
    for (; extra != NULL && extra->name != NULL; extra++)
        add_option(*extra);
    if (op->reveals)
        add_option((struct hk_cli_option)HK_REVEAL_OPTION);
    if (op->job != NULL)
        add_option((struct hk_cli_option)HK_BACKGROUND_OPTION);
    if (op->reveals || op->needs_reason) {
        add_option((struct hk_cli_option)HK_REASON_OPTION);
        add_option((struct hk_cli_option)HK_ACTOR_OPTION);
    }
    if (op->form != NULL)
        add_option((struct hk_cli_option)HK_JSON_OPTION);
    add_option((struct hk_cli_option)HK_END_OF_OPTIONS);
    command->options = n_options - first > 1 ? options + first : NULL;
}

/* ---- the request ---- */

static bool read_bytes(struct hk_ask *ask, const char *given, struct hk_str *out)
{
    struct hk_buf buf;
    hk_buf_init(&buf, HK_ARGS_BYTES_MAX);
    bool ok = hk_args_bytes(given, &buf);
    const char *copy = ok ? hk_pool_copy(&ask->mem, hk_buf_cstr(&buf), buf.len) : NULL;
    *out = (struct hk_str){copy, buf.len};
    hk_buf_fini(&buf);
    if (copy == NULL)
        ask->err.code = HK_IO; /* the request is right, what it names cannot be read */
    return copy != NULL;
}

/* Every value given for one option, or every operand from `from` on. */
static bool read_texts(struct hk_ask *ask, const char *option, size_t from, struct hk_texts *out)
{
    const struct hk_cli *cli = ask->cli;
    size_t most = option != NULL ? cli->n_given : cli->n_operands;
    const char **items = hk_pool_alloc(&ask->mem, most + 1, sizeof *items);
    if (items == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory") == HK_EXIT_OK;
    for (size_t i = option != NULL ? 0 : from; i < most; i++) {
        if (option == NULL)
            items[out->n++] = cli->operands[i];
        else if (strcmp(cli->given[i].option->name, option) == 0)
            items[out->n++] = cli->given[i].value;
    }
    out->items = items;
    return true;
}

static bool is_choice(const char *choices, const char *value)
{
    struct hk_str rest = hk_str_of(choices);
    while (rest.len > 0)
        if (hk_str_eq(hk_str_cut(&rest, ' '), hk_str_of(value)))
            return true;
    return false;
}

/* "option '--status' takes pending, sent or dead, not 'x'" */
static bool refuse_choice(const char *name, const char *choices, const char *value)
{
    char text[256] = "";
    struct hk_str rest = hk_str_of(choices);
    size_t used = 0;
    while (rest.len > 0 && used < sizeof text) {
        struct hk_str word = hk_str_cut(&rest, ' ');
        const char *before = used == 0 ? "" : rest.len > 0 ? ", " : " or ";
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", before, (int)word.len, word.ptr);
    }
    (void)hk_out_error(HK_EXIT_USAGE, "option '--%s' takes %s, not '%s'", name, text, value);
    return false;
}

static bool read_number(const struct hk_cli *cli, const struct hk_arg *f, const char *name, void *at)
{
    uint64_t n = (uint64_t)f->fallback;
    uint64_t hi = f->hi <= 0 ? UINT64_MAX : f->hi < (double)INT64_MAX ? (uint64_t)f->hi : INT64_MAX;
    bool ok = f->kind == HK_ARG_DURATION ? hk_args_duration(cli, name, (uint64_t)f->lo, hi, &n)
                                         : hk_args_u64(cli, name, (uint64_t)f->lo, hi, &n);
    memcpy(at, &n, sizeof n);
    return ok;
}

static bool read_option(struct hk_ask *ask, const struct hk_arg *f, const char *name, void *at)
{
    const struct hk_cli *cli = ask->cli;
    const char *value = hk_args_value(cli, name);
    double rate = f->fallback;
    switch (f->kind) {
    case HK_ARG_FLAG:
        *(bool *)at = value != NULL;
        return true;
    case HK_ARG_NUMBER:
    case HK_ARG_DURATION:
        return read_number(cli, f, name, at);
    case HK_ARG_RATE: {
        bool ok = hk_args_rate(cli, name, f->lo, f->hi, &rate);
        memcpy(at, &rate, sizeof rate);
        return ok;
    }
    case HK_ARG_TEXTS:
        return read_texts(ask, name, 0, at);
    case HK_ARG_BYTES:
        return value == NULL || read_bytes(ask, value, at);
    case HK_ARG_CHOICE:
        if (value != NULL && !is_choice(f->choices, value))
            return refuse_choice(name, f->choices, value);
        break;
    case HK_ARG_TEXT:
    case HK_ARG_FILE:
    case HK_ARG_POLICY:
        break;
    }
    memcpy(at, &value, sizeof value);
    return true;
}

static bool read_request(struct hk_ask *ask)
{
    size_t n_subjects = 0;
    bool ok = true;
    for (const struct hk_arg *f = ask->op->args; ok && f != NULL && f->name != NULL; f++) {
        void *at = (char *)ask->request + f->offset;
        char name[64];
        if (f->subject && f->kind == HK_ARG_TEXTS) {
            ok = read_texts(ask, NULL, n_subjects, at);
        } else if (f->subject) {
            const char *value = n_subjects < ask->cli->n_operands ? ask->cli->operands[n_subjects] : NULL;
            memcpy(at, &value, sizeof value);
            n_subjects++;
        } else {
            (void)snprintf(name, sizeof name, "%s", f->name);
            for (char *c = name; *c != '\0'; c++)
                *c = *c == '_' ? '-' : *c;
            ok = read_option(ask, f, name, at);
        }
    }
    return ok;
}

/* --reason, or asked for on a terminal; NULL: said that it is missing. */
static const char *read_reason(const struct hk_cli *cli, char out[HK_REASON_TEXT_MAX])
{
    const char *given = hk_args_value(cli, "reason");
    out[0] = '\0';
    if (given != NULL && strlen(given) >= HK_REASON_TEXT_MAX) {
        (void)hk_out_error(HK_EXIT_USAGE, "the reason is longer than %d bytes", HK_REASON_TEXT_MAX - 1);
        return NULL;
    }
    if (given != NULL) {
        (void)snprintf(out, HK_REASON_TEXT_MAX, "%s", given);
    } else if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "Reason (it is kept): ");
        if (fgets(out, HK_REASON_TEXT_MAX, stdin) == NULL)
            out[0] = '\0';
        out[strcspn(out, "\n")] = '\0';
    }
    if (hk_str_trim(hk_str_of(out)).len > 0)
        return out;
    (void)hk_out_error(HK_EXIT_USAGE,
                       "a reason is needed: give --reason TEXT; the audit keeps it with your name");
    return NULL;
}

/* Who asks: whoever may use the database may do everything. */
static int read_caller(struct hk_ask *ask)
{
    const struct hk_cli *cli = ask->cli;
    ask->caller = (struct hk_caller){.role = HK_ROLE_ADMIN,
                                     .actor = hk_settings_actor(cli, ask->actor),
                                     .may_reveal = true,
                                     .reveal = ask->op->reveals && hk_args_flag(cli, "reveal")};
    if (!ask->caller.reveal && (!ask->op->needs_reason || hk_op_is_dry_run(ask->op, ask->request)))
        return HK_EXIT_OK;
    ask->caller.reason = read_reason(cli, ask->reason);
    return ask->caller.reason != NULL ? HK_EXIT_OK : HK_EXIT_USAGE;
}

/* ---- asking ---- */

int hk_ask_error(const struct hk_err *err)
{
    enum hk_exit code = hk_settings_exit(err->code);
    if (err->code == HK_NOTFOUND || err->code == HK_CONFLICT)
        code = HK_EXIT_FAILURE;
    else if (err->code == HK_INVALID)
        code = HK_EXIT_USAGE;
    return hk_out_error(code, "%s", err->message);
}

static int say_failed(const struct hk_ask *ask)
{
    char name[64];
    const char *field = ask->desk.wrong_field;
    if (field == NULL)
        return hk_ask_error(&ask->err);
    (void)snprintf(name, sizeof name, "%s", field);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    return hk_out_error(HK_EXIT_USAGE, ask->err.message[0] == ':' ? "--%s%s" : "option '--%s' %s", name,
                        ask->err.message);
}

int hk_ask_failed(const struct hk_ask *ask)
{
    if (ask->desk.wrong_field == NULL && ask->op->store && !hk_desk_is_open(&ask->desk))
        return hk_out_error(hk_settings_exit(ask->err.code), "%s", ask->err.message);
    return say_failed(ask);
}

int hk_ask_read(const struct hk_cli *cli, struct hk_ask *out)
{
    const struct hk_op *op = cli->command->op;
    *out = (struct hk_ask){.cli = cli, .op = op};
    out->request = hk_pool_alloc(&out->mem, 1, op->request_size + 1);
    out->result = hk_pool_alloc(&out->mem, 1, op->result_size + 1);
    if (out->request == NULL || out->result == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    if (!read_request(out))
        return out->err.code == HK_IO ? HK_EXIT_FAILURE : HK_EXIT_USAGE;
    if (op->check != NULL && op->check(&out->desk, out->request, &out->err) != HK_OK)
        return say_failed(out);
    return read_caller(out);
}

int hk_ask_elsewhere(struct hk_ask *ask, bool *out_is)
{
    int code = hk_remote_open(ask->cli, &ask->remote);
    *out_is = ask->remote != NULL;
    if (code != HK_EXIT_OK || ask->remote == NULL)
        return code;
    if (hk_config_defaults(&ask->config) != HK_OK)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    hk_desk_init(&ask->desk, ask->config, NULL);
    hk_remote_attach(ask->remote, &ask->desk);
    return HK_EXIT_OK;
}

int hk_ask_begin(const struct hk_cli *cli, struct hk_ask *out)
{
    const struct hk_op *op = cli->command->op;
    bool elsewhere = false;
    int code = hk_ask_read(cli, out);
    if (code == HK_EXIT_OK)
        code = hk_ask_elsewhere(out, &elsewhere);
    if (code != HK_EXIT_OK || elsewhere)
        return code;
    if (code == HK_EXIT_OK)
        code = hk_settings_config(cli, op->sends ? HK_FOR_SENDING : HK_FOR_ACTING, &out->config);
    const char *url = NULL;
    if (code == HK_EXIT_OK)
        code = hk_settings_url(cli, out->config, &url);
    if (code == HK_EXIT_OK)
        hk_desk_init(&out->desk, out->config, url);
    return code;
}

int hk_ask_also(struct hk_ask *ask, const struct hk_op *op, const void *request, void *result)
{
    enum hk_code rc = hk_desk_ask(&ask->desk, op, &ask->caller, request, &ask->mem, result, &ask->err);
    return rc == HK_OK ? HK_EXIT_OK : hk_ask_failed(ask);
}

enum hk_code hk_ask_quietly(struct hk_ask *ask)
{
    return hk_desk_ask(&ask->desk, ask->op, &ask->caller, ask->request, &ask->mem, ask->result, &ask->err);
}

int hk_ask_run(struct hk_ask *ask)
{
    return hk_ask_also(ask, ask->op, ask->request, ask->result);
}

int hk_ask_print(struct hk_ask *ask, hk_print_fn *print)
{
    struct hk_buf out;
    hk_buf_init(&out, HK_OUTPUT_MAX);
    if (ask->op->form != NULL && hk_args_flag(ask->cli, "json")) {
        struct hk_json json;
        hk_json_init(&json, &out, true);
        hk_op_write(ask->op, &json, ask->result);
        (void)hk_buf_addc(&out, '\n');
    } else {
        print(ask, ask->result, &out);
    }
    return hk_out_buffer(&out);
}

void hk_ask_end(struct hk_ask *ask)
{
    hk_desk_fini(&ask->desk);
    hk_remote_close(ask->remote);
    hk_config_free(ask->config);
    hk_pool_fini(&ask->mem);
}

static int ask_once(const struct hk_cli *cli, int (*begin)(const struct hk_cli *cli, struct hk_ask *out),
                    hk_print_fn *print)
{
    struct hk_ask ask;
    int code = begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print);
    hk_ask_end(&ask);
    return code;
}

int hk_ask_once(const struct hk_cli *cli, hk_print_fn *print)
{
    return ask_once(cli, hk_ask_begin, print);
}

int hk_ask_bare(const struct hk_cli *cli, hk_print_fn *print)
{
    return ask_once(cli, hk_ask_read, print);
}
