/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku login, logout, whoami: choose the server, and show the name and role there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/whoami.h"

/* ---- whoami ---- */

static void print_whoami(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_whoami *who = result;
    (void)hk_table_safe(out, who->name, 0);
    (void)hk_buf_addf(out, ": %s%s", hk_role_name(who->role),
                      who->reveal ? ", may reveal masked fields" : "");
    if (ask->remote != NULL)
        (void)hk_buf_addf(out, ", at %s", hk_remote_name(ask->remote));
    (void)hk_buf_addc(out, '\n');
}

int hk_cmd_whoami(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_whoami);
}

/* ---- login ---- */

/* From a terminal, without showing it. */
static bool ask_token(char out[HK_LOGIN_TEXT_MAX])
{
    struct termios shown, hidden;
    if (isatty(STDIN_FILENO) != 1 || tcgetattr(STDIN_FILENO, &shown) != 0)
        return false;
    hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    (void)fprintf(stderr, "Token (it is not shown; empty for none): ");
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    bool got = fgets(out, HK_LOGIN_TEXT_MAX, stdin) != NULL;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    (void)fputc('\n', stderr);
    out[strcspn(out, "\r\n")] = '\0';
    return got;
}

static int take_login(const struct hk_cli *cli, struct hk_login *out)
{
    struct hk_err err = {.message = ""};
    const char *token_file = hk_args_value(cli, "token-file"), *ca_file = hk_args_value(cli, "ca-file");
    *out = (struct hk_login){.server = "", .insecure = hk_args_flag(cli, "insecure")};
    if (!hk_str_copy(out->server, sizeof out->server, hk_str_of(cli->operands[0])) ||
        !hk_str_copy(out->ca_file, sizeof out->ca_file, hk_str_of(ca_file)))
        return hk_out_error(HK_EXIT_USAGE, "the server's address is too long");
    if (strpbrk(out->server, "\r\n") || strpbrk(out->ca_file, "\r\n"))
        return hk_out_error(HK_EXIT_USAGE, "the server's address holds a line end");
    if (token_file != NULL && hk_login_token_file(token_file, out->token, &err) != HK_OK)
        return hk_out_error(HK_EXIT_USAGE, "%s", err.message);
    if (token_file == NULL && !ask_token(out->token))
        return hk_out_error(HK_EXIT_USAGE,
                            "no terminal to ask for the token: give --token-file FILE, - is standard input");
    return HK_EXIT_OK;
}

/* The name is what the server says: it may move no cursor. */
static int say_logged_in(const struct hk_login *login, const struct hk_whoami *who, const char *path)
{
    struct hk_buf out;
    hk_buf_init(&out, HK_OUTPUT_MAX);
    (void)hk_buf_addf(&out, "logged in to %s as ", login->server);
    (void)hk_table_safe(&out, who->name, 0);
    (void)hk_buf_addf(&out, " (%s); kept in %s\n", hk_role_name(who->role), path);
    return hk_out_buffer(&out);
}

/* Kept only if the server knows who asks. */
static int try_login(const struct hk_cli *cli, const struct hk_login *login)
{
    struct hk_ask ask = {.cli = cli, .op = &hk_op_whoami};
    struct hk_whoami who = {.reveal = false};
    int code = hk_remote_login(login, &ask.remote);
    if (code == HK_EXIT_OK) {
        ask.caller = (struct hk_caller){.role = HK_ROLE_ADMIN, .actor = ""};
        hk_desk_init(&ask.desk, NULL, NULL);
        hk_remote_attach(ask.remote, &ask.desk);
        code = hk_ask_also(&ask, &hk_op_whoami, NULL, &who);
    }
    if (code == HK_EXIT_OK) {
        struct hk_err err = {.message = ""};
        char path[HK_LOGIN_TEXT_MAX];
        if (hk_login_write(login, &err) != HK_OK)
            code = hk_out_failure(&err);
        else if (hk_login_path(path))
            code = say_logged_in(login, &who, path);
    }
    hk_ask_end(&ask);
    return code;
}

int hk_cmd_login(struct hk_cli *cli)
{
    struct hk_login login;
    int code = take_login(cli, &login);
    if (code == HK_EXIT_OK)
        code = try_login(cli, &login);
    hk_mem_wipe(&login, sizeof login);
    return code;
}

int hk_cmd_logout(struct hk_cli *cli)
{
    char path[HK_LOGIN_TEXT_MAX];
    (void)cli;
    if (!hk_login_path(path) || (unlink(path) != 0 && errno == ENOENT)) {
        (void)printf("nobody was logged in\n");
        return HK_EXIT_OK;
    }
    if (access(path, F_OK) == 0)
        return hk_out_error(HK_EXIT_FAILURE, "cannot remove %s", path);
    (void)printf("logged out; the token itself is good until it is revoked (hikyaku token revoke)\n");
    return HK_EXIT_OK;
}
