/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku completion: scripts for three shells, all written from the command table. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/args.h"
#include "cli/out.h"

#define SCRIPT_MAX  ((size_t)1 << 18)
#define OPTIONS_MAX 256 /* different names, of all commands */

/* Policies come from where the shell is: a file in the folder, or HIKYAKU_CONFIG, may have added some. */
#define NAMES_OF_POLICIES "hikyaku policy list 2>/dev/null | sed -n '2,$s/ .*//p'"

/* Calls `each` once per option name, whichever commands share it; where only some of them give it a value, for one that
 * does. */
static void each_option(const struct hk_cli *cli,
                        void (*each)(const struct hk_cli *cli, const struct hk_cli_option *o,
                                     struct hk_buf *out),
                        struct hk_buf *out)
{
    const struct hk_cli_option *seen[OPTIONS_MAX];
    size_t n_seen = 0;

    for (const struct hk_cli_option *o = cli->globals; o->name != NULL && n_seen < OPTIONS_MAX; o++)
        seen[n_seen++] = o;
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        for (const struct hk_cli_option *o = c->options; o != NULL && o->name != NULL && n_seen < OPTIONS_MAX;
             o++) {
            size_t i = 0;
            while (i < n_seen && strcmp(seen[i]->name, o->name) != 0)
                i++;
            if (i == n_seen)
                seen[n_seen++] = o;
            else if (seen[i]->kind == HK_CLI_NOTHING)
                seen[i] = o;
        }
    for (size_t i = 0; i < n_seen; i++)
        each(cli, seen[i], out);
}

/* The words that may follow `name` ("" for the first word), with blanks between. */
static void add_words(const struct hk_cli *cli, const char *name, struct hk_buf *out)
{
    bool first = true;

    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++) {
        const char *word = name[0] == '\0' ? (c->sub == NULL ? c->name : NULL)
                                           : (strcmp(c->name, name) == 0 ? c->sub : NULL);
        if (word == NULL)
            continue;
        (void)hk_buf_addf(out, "%s%s", first ? "" : " ", word);
        first = false;
    }
}

static void add_option_names(const struct hk_cli_option *list, struct hk_buf *out)
{
    for (; list != NULL && list->name != NULL; list++)
        (void)hk_buf_addf(out, " --%s", list->name);
}

/* ---- bash ---- */

/* In front of what an option's value means: not behind the commands whose option of that name takes none. */
static void bash_unless_flag(const struct hk_cli *cli, const struct hk_cli_option *o, struct hk_buf *out)
{
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        for (const struct hk_cli_option *other = c->options; other != NULL && other->name != NULL; other++)
            if (other->kind == HK_CLI_NOTHING && strcmp(other->name, o->name) == 0)
                (void)hk_buf_addf(out, "[[ $where == ' %s%s%s' ]] || ", c->name, c->sub != NULL ? " " : "",
                                  c->sub != NULL ? c->sub : "");
}

static void bash_skip(const struct hk_cli *cli, const struct hk_cli_option *o, struct hk_buf *out)
{
    if (o->kind == HK_CLI_NOTHING)
        return;
    (void)hk_buf_addf(out, "            --%s) ", o->name);
    bash_unless_flag(cli, o, out);
    (void)hk_buf_adds(out, "((i++)) ;;\n");
}

static void bash_value(const struct hk_cli *cli, const struct hk_cli_option *o, struct hk_buf *out)
{
    if (o->kind == HK_CLI_NOTHING)
        return;
    (void)hk_buf_addf(out, "        --%s) ", o->name);
    bash_unless_flag(cli, o, out);
    if (o->kind == HK_CLI_FILE)
        (void)hk_buf_adds(out, "{ COMPREPLY=($(compgen -f -- \"$cur\")); return; } ;;\n");
    else if (o->kind == HK_CLI_CHOICE)
        (void)hk_buf_addf(out, "{ COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return; } ;;\n", o->choices);
    else
        (void)hk_buf_adds(out, "return ;;\n");
}

static void bash_operand(const struct hk_cli *cli, const struct hk_cli_command *c, struct hk_buf *out)
{
    switch (c->operand_kind) {
    case HK_CLI_NOTHING:
    case HK_CLI_TEXT:
        (void)hk_buf_adds(out, "words=");
        return;
    case HK_CLI_FILE:
        (void)hk_buf_adds(out, "words=; COMPREPLY=($(compgen -f -- \"$cur\"))");
        return;
    case HK_CLI_POLICY:
        (void)hk_buf_adds(out, "words=$(" NAMES_OF_POLICIES ")");
        return;
    case HK_CLI_CHOICE:
        (void)hk_buf_addf(out, "words='%s'", c->operand_choices);
        return;
    case HK_CLI_COMMAND:
        (void)hk_buf_adds(out, "words='");
        add_words(cli, "", out);
        (void)hk_buf_addc(out, '\'');
        return;
    }
}

static void bash_options(const struct hk_cli_command *c, struct hk_buf *out)
{
    if (c->options != NULL) {
        (void)hk_buf_adds(out, "; options=\"$options");
        add_option_names(c->options, out);
        (void)hk_buf_addc(out, '"');
    }
    (void)hk_buf_adds(out, " ;;\n");
}

static void bash_command(const struct hk_cli *cli, const struct hk_cli_command *c, struct hk_buf *out)
{
    const char *blank = c->sub != NULL ? " " : "";
    const char *sub = c->sub != NULL ? c->sub : "";
    (void)hk_buf_addf(out, "        ' %s%s%s') ", c->name, blank, sub);
    if (c->run == NULL) {
        (void)hk_buf_adds(out, "words='");
        add_words(cli, c->name, out);
        (void)hk_buf_adds(out, "' ;;\n");
        return;
    }
    bash_operand(cli, c, out);
    bash_options(c, out);
    (void)hk_buf_addf(out, "        ' %s%s%s '*) words=", c->name, blank, sub); /* behind its operand */
    bash_options(c, out);
}

static void bash(const struct hk_cli *cli, struct hk_buf *out)
{
    (void)hk_buf_adds(out, "# bash completion of hikyaku; made by 'hikyaku completion bash'\n"
                           "_hikyaku() {\n"
                           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                           "    local where= words= options= i\n"
                           "    COMPREPLY=()\n"
                           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                           "        case ${COMP_WORDS[i]} in\n");
    each_option(cli, bash_skip, out);
    (void)hk_buf_adds(out, "            -*) ;;\n"
                           "            *) where=\"$where ${COMP_WORDS[i]}\" ;;\n"
                           "        esac\n"
                           "    done\n"
                           "    case $prev in\n");
    each_option(cli, bash_value, out);
    (void)hk_buf_adds(out, "    esac\n"
                           "    options='");
    add_option_names(cli->globals, out);
    (void)hk_buf_adds(out, "'\n    case $where in\n        '') words='");
    add_words(cli, "", out);
    (void)hk_buf_adds(out, "' ;;\n");
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        bash_command(cli, c, out);
    (void)hk_buf_adds(out, "    esac\n"
                           "    [[ $cur == -* ]] && words=$options\n"
                           "    [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                           "}\n"
                           "complete -F _hikyaku hikyaku\n");
}

/* ---- zsh ---- */

/* Text inside an _arguments specification, which stands in single quotes. */
static void zsh_escaped(struct hk_buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '\'')
            (void)hk_buf_adds(out, "'\\''");
        else if (*s == '[' || *s == ']' || *s == ':' || *s == '\\')
            (void)hk_buf_addf(out, "\\%c", *s);
        else
            (void)hk_buf_addc(out, *s);
    }
}

static void zsh_action(enum hk_cli_value_kind kind, const char *choices, struct hk_buf *out)
{
    if (kind == HK_CLI_FILE)
        (void)hk_buf_adds(out, "_files");
    else if (kind == HK_CLI_POLICY)
        (void)hk_buf_adds(out, "_hikyaku_policies");
    else if (kind == HK_CLI_CHOICE)
        (void)hk_buf_addf(out, "(%s)", choices);
    else
        (void)hk_buf_addc(out, ' ');
}

static void zsh_options(const struct hk_cli_option *list, struct hk_buf *out)
{
    for (; list != NULL && list->name != NULL; list++) {
        (void)hk_buf_addf(out, " \\\n        '--%s[", list->name);
        zsh_escaped(out, list->help);
        (void)hk_buf_addc(out, ']');
        if (list->kind != HK_CLI_NOTHING) {
            (void)hk_buf_addf(out, ":%s:", list->value);
            zsh_action(list->kind, list->choices, out);
        }
        (void)hk_buf_addc(out, '\'');
    }
}

static void zsh_list(const struct hk_cli *cli, const char *name, struct hk_buf *out)
{
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++) {
        const char *word = name[0] == '\0' ? (c->sub == NULL ? c->name : NULL)
                                           : (strcmp(c->name, name) == 0 ? c->sub : NULL);
        if (word == NULL)
            continue;
        (void)hk_buf_addf(out, " '%s:", word);
        zsh_escaped(out, c->summary);
        (void)hk_buf_addc(out, '\'');
    }
}

/* One branch per command; `words` has been cut down to what follows it. */
static void zsh_command(const struct hk_cli *cli, const struct hk_cli_command *c, struct hk_buf *out)
{
    (void)hk_buf_addf(out, "    '%s%s%s')\n", c->name, c->sub != NULL ? " " : "",
                      c->sub != NULL ? c->sub : "");
    if (c->run == NULL) {
        (void)hk_buf_adds(out, "        list=(");
        zsh_list(cli, c->name, out);
        (void)hk_buf_addf(out, ")\n        _describe '%s' list ;;\n", c->name);
        return;
    }
    (void)hk_buf_adds(out, "        _arguments $globals");
    zsh_options(c->options, out);
    if (c->operands != NULL) {
        (void)hk_buf_addf(out,
                          " \\\n        '1:%s:", c->operand_kind == HK_CLI_CHOICE ? "word" : c->operands);
        zsh_action(c->operand_kind, c->operand_choices, out);
        (void)hk_buf_addc(out, '\'');
    }
    (void)hk_buf_adds(out, " ;;\n");
}

static void zsh(const struct hk_cli *cli, struct hk_buf *out)
{
    (void)hk_buf_adds(out, "#compdef hikyaku\n"
                           "# zsh completion of hikyaku; made by 'hikyaku completion zsh'\n"
                           "_hikyaku_policies() {\n"
                           "    local -a names\n"
                           "    names=(${(f)\"$(" NAMES_OF_POLICIES ")\"})\n"
                           "    compadd -a names\n"
                           "}\n"
                           "_hikyaku() {\n"
                           "    local where=${words[2]} cut=1\n"
                           "    local -a list globals\n"
                           "    globals=(");
    zsh_options(cli->globals, out);
    (void)hk_buf_adds(out, ")\n    if (( CURRENT == 2 )); then\n        list=(");
    zsh_list(cli, "", out);
    (void)hk_buf_adds(
        out, ")\n        _describe 'command' list\n        return\n    fi\n    case $where in\n    ");
    bool first = true;
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        if (c->sub == NULL && c->run == NULL) {
            (void)hk_buf_addf(out, "%s%s", first ? "" : "|", c->name);
            first = false;
        }
    (void)hk_buf_adds(out, ") (( CURRENT > 3 )) && { where=\"$where ${words[3]}\"; cut=2 } ;;\n    esac\n"
                           "    words=(\"${words[1]}\" \"${(@)words[cut + 2,-1]}\")\n"
                           "    (( CURRENT -= cut ))\n"
                           "    case $where in\n");
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        zsh_command(cli, c, out);
    (void)hk_buf_adds(
        out, "    esac\n}\n"
             "if [[ $funcstack[1] == _hikyaku ]]; then _hikyaku \"$@\"; else compdef _hikyaku hikyaku; fi\n");
}

/* ---- fish ---- */

static void fish_escaped(struct hk_buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '\'' || *s == '\\')
            (void)hk_buf_addc(out, '\\');
        (void)hk_buf_addc(out, *s);
    }
}

static void fish_option(const struct hk_cli_option *o, const char *condition, struct hk_buf *out)
{
    (void)hk_buf_addf(out, "complete -c hikyaku%s -l %s", condition, o->name);
    if (o->letter != 0)
        (void)hk_buf_addf(out, " -s %c", o->letter);
    if (o->kind == HK_CLI_FILE)
        (void)hk_buf_adds(out, " -r -F");
    else if (o->kind == HK_CLI_CHOICE)
        (void)hk_buf_addf(out, " -x -a '%s'", o->choices);
    else if (o->kind != HK_CLI_NOTHING)
        (void)hk_buf_adds(out, " -x");
    (void)hk_buf_adds(out, " -d '");
    fish_escaped(out, o->help);
    (void)hk_buf_adds(out, "'\n");
}

static void fish_operand(const struct hk_cli_command *c, const char *condition, struct hk_buf *out)
{
    if (c->operand_kind == HK_CLI_FILE)
        (void)hk_buf_addf(out, "complete -c hikyaku%s -F\n", condition);
    else if (c->operand_kind == HK_CLI_POLICY)
        (void)hk_buf_addf(out, "complete -c hikyaku%s -a '(__hikyaku_policies)'\n", condition);
    else if (c->operand_kind == HK_CLI_CHOICE)
        (void)hk_buf_addf(out, "complete -c hikyaku%s -a '%s'\n", condition, c->operand_choices);
}

static void fish_command(const struct hk_cli *cli, const struct hk_cli_command *c, struct hk_buf *out)
{
    struct hk_buf words, condition;

    hk_buf_init(&words, 1024);
    hk_buf_init(&condition, 2048);
    add_words(cli, c->sub == NULL ? "" : c->name, &words);
    hk_buf_inherit(out, &words);
    if (c->sub == NULL)
        (void)hk_buf_addf(out, "complete -c hikyaku -n 'not __fish_seen_subcommand_from %s' -a %s -d '",
                          hk_buf_cstr(&words), c->name);
    else
        (void)hk_buf_addf(out,
                          "complete -c hikyaku -n '__fish_seen_subcommand_from %s; and not "
                          "__fish_seen_subcommand_from %s' -a %s -d '",
                          c->name, hk_buf_cstr(&words), c->sub);
    fish_escaped(out, c->summary);
    (void)hk_buf_adds(out, "'\n");
    (void)hk_buf_addf(&condition, " -n '__fish_seen_subcommand_from %s%s%s'", c->name,
                      c->sub != NULL ? "; and __fish_seen_subcommand_from " : "",
                      c->sub != NULL ? c->sub : "");
    hk_buf_inherit(out, &condition);
    for (const struct hk_cli_option *o = c->options; o != NULL && o->name != NULL; o++)
        fish_option(o, hk_buf_cstr(&condition), out);
    fish_operand(c, hk_buf_cstr(&condition), out);
    hk_buf_fini(&words);
    hk_buf_fini(&condition);
}

static void fish(const struct hk_cli *cli, struct hk_buf *out)
{
    (void)hk_buf_adds(out, "# fish completion of hikyaku; made by 'hikyaku completion fish'\n"
                           "function __hikyaku_policies\n    " NAMES_OF_POLICIES "\nend\n"
                           "complete -c hikyaku -f\n");
    for (const struct hk_cli_option *o = cli->globals; o->name != NULL; o++)
        fish_option(o, "", out);
    for (const struct hk_cli_command *c = cli->table; c->name != NULL; c++)
        fish_command(cli, c, out);
}

int hk_cmd_completion(struct hk_cli *cli)
{
    static const struct {
        const char *name;
        void (*write)(const struct hk_cli *cli, struct hk_buf *out);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    struct hk_buf buf;

    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(cli->operands[0], shells[i].name) == 0) {
            hk_buf_init(&buf, SCRIPT_MAX);
            shells[i].write(cli, &buf);
            return hk_out_buffer(&buf);
        }
    return hk_out_error(HK_EXIT_USAGE, "there is no completion for '%s'; there is bash, zsh and fish",
                        cli->operands[0]);
}
