/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku config check */
#include <string.h>

#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "desk/setup.h"

/* The file that was named, or the one that every command reads. `text`: what came from standard input. */
static int choose_file(const struct hk_cli *cli, struct hk_config_check_ask *ask, struct hk_buf *text)
{
    if (ask->file == NULL)
        ask->file = hk_cli_config_path(cli);
    if (ask->file == NULL)
        return hk_out_error(HK_EXIT_USAGE,
                            "which file? Name one, or set HIKYAKU_CONFIG; there is no ./hikyaku.yaml here");
    if (strcmp(ask->file, "-") == 0) {
        ask->file = "<stdin>";
        ask->is_text = true;
        ask->read = hk_args_read_file(stdin, text);
        ask->text = hk_buf_str(text);
    }
    return HK_EXIT_OK;
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void print_ok(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_config_checked *c = result;
    (void)ask;
    (void)hk_buf_addf(out, "%s: ok: %zu polic%s, %zu destination%s, %zu route%s", c->file, c->policies,
                      c->policies == 1 ? "y" : "ies", c->destinations, plural(c->destinations), c->routes,
                      plural(c->routes));
    if (c->rules > 0)
        (void)hk_buf_addf(out, ", %zu validation rule%s", c->rules, plural(c->rules));
    if (c->channels > 0)
        (void)hk_buf_addf(out, ", %zu channel%s", c->channels, plural(c->channels));
    if (c->found.warnings > 0)
        (void)hk_buf_addf(out, " (%zu warning%s)", c->found.warnings, plural(c->found.warnings));
    (void)hk_buf_addc(out, '\n');
}

static int report(struct hk_ask *ask)
{
    const struct hk_config_checked *c = ask->result;
    bool for_people = !hk_args_flag(ask->cli, "json");
    if (for_people)
        hk_settings_complain(&c->found);
    if (for_people && !c->ok)
        return hk_out_error(HK_EXIT_CONFIG, "%s: %zu error%s", c->file, c->found.errors,
                            plural(c->found.errors));
    int code = hk_ask_print(ask, print_ok);
    return code == HK_EXIT_OK && !c->ok ? HK_EXIT_CONFIG : code;
}

int hk_cmd_config_check(struct hk_cli *cli)
{
    struct hk_ask ask;
    struct hk_buf text;
    hk_buf_init(&text, HK_CONFIG_TEXT_MAX);
    int code = hk_ask_read(cli, &ask);
    if (code == HK_EXIT_OK)
        code = choose_file(cli, ask.request, &text);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK)
        code = report(&ask);
    hk_ask_end(&ask);
    hk_buf_fini(&text);
    return code;
}
