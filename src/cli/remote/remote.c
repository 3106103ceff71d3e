/* SPDX-License-Identifier: Apache-2.0 */
/* A question of the desk as an HTTP call, and its answer as a result or an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <jansson.h>

#include "base/cidr.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "cli/remote/remote.h"
#include "cli/settings.h"
#include "desk/dead.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "desk/wire.h"

#define PREFIX "/api/v1"

/* ---- problems ---- */

static enum hk_code code_named(const char *name)
{
    for (int code = HK_OK + 1; name && code < HK_NCODES; code++)
        if (strcmp(hk_code_name((enum hk_code)code), name) == 0)
            return (enum hk_code)code;
    return HK_OK;
}

/* Of answers that no relay of ours has given: a proxy's, or another program's. */
static enum hk_code code_of_status(long status)
{
    return status == 401 || status == 403 ? HK_DENIED
           : status == 404                ? HK_NOTFOUND
           : status == 429                ? HK_BUSY
           : status >= 500                ? HK_UNAVAILABLE
                                          : HK_INVALID;
}

static const char *text_member(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The field without "#/"; what is wrong with it in `out_about`. NULL: the problem is about none. */
static const char *field_of(const json_t *problem, const char **out_about)
{
    const json_t *first = json_array_get(json_object_get(problem, "errors"), 0);
    const char *pointer = text_member(first, "pointer"), *parameter = text_member(first, "parameter");
    *out_about = text_member(first, "detail");
    if (!*out_about)
        return NULL;
    return parameter ? parameter : pointer && strncmp(pointer, "#/", 2) == 0 ? pointer + 2 : NULL;
}

/* RFC 6901. */
static void unescape(char *name)
{
    char *to = name;
    for (const char *from = name; *from; from++, to++) {
        *to = *from;
        if (from[0] == '~' && (from[1] == '0' || from[1] == '1'))
            *to = *++from == '0' ? '~' : '/';
    }
    *to = '\0';
}

static enum hk_code take_problem(struct hk_desk *desk, const struct hk_remote_answer *answer,
                                 struct hk_pool *mem, struct hk_err *err)
{
    json_t *problem =
        answer->is_problem ? json_loadb(answer->body.data, answer->body.len, JSON_ALLOW_NUL, NULL) : NULL;
    const char *detail = text_member(problem, "detail"), *title = text_member(problem, "title"),
               *about = NULL;
    const char *field = field_of(problem, &about);
    enum hk_code rc = code_named(text_member(problem, "code"));
    if (rc == HK_OK)
        rc = code_of_status(answer->status);
    char *name = field ? hk_pool_copy_str(mem, hk_str_of(field)) : NULL;
    if (name) {
        unescape(name);
        desk->wrong_field = name;
        detail = about;
    }
    if (problem && answer->status == 401)
        (void)hk_err_set(
            err, rc,
            "the server takes no call without a valid token (%s): give --token-file FILE, or log in "
            "(hikyaku login URL)",
            text_member(problem, "code") ? text_member(problem, "code") : "401");
    else if (problem)
        (void)hk_err_set(err, rc, "%s", detail ? detail : title ? title : "the server refused");
    else
        (void)hk_err_set(err, rc, "the server answered HTTP %ld, which is no answer of hikyaku's API",
                         answer->status);
    json_decref(problem);
    return rc;
}

enum hk_code hk_remote_call(struct hk_remote *remote, struct hk_desk *desk, const struct hk_remote_call *call,
                            struct hk_pool *mem, struct hk_remote_answer *out, struct hk_err *err)
{
    enum hk_code rc = hk_remote_http_ask(remote->http, call, out, err);
    if (rc != HK_OK)
        return rc;
    return out->status >= 200 && out->status < 300 ? HK_OK : take_problem(desk, out, mem, err);
}

/* ---- one operation ---- */

/* So that a call which is repeated, by libcurl or by a proxy, is done once. */
static void make_key(char out[64])
{
    unsigned char random[16];
    size_t used = (size_t)snprintf(out, 64, "Idempotency-Key: ");
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        out[0] = '\0';
        return;
    }
    for (size_t i = 0; i < sizeof random; i++)
        used += (size_t)snprintf(out + used, 64 - used, "%02x", random[i]);
}

static void add_headers(struct hk_remote_call *call, const struct hk_op *op, const void *request,
                        char key[64], char match[64])
{
    size_t n = 0;
    key[0] = match[0] = '\0';
    if (op->changes)
        make_key(key);
    if (op == &hk_op_dead_edit && ((const struct hk_dead_edit_ask *)request)->version > 0)
        (void)snprintf(match, 64, "If-Match: \"%llu\"",
                       (unsigned long long)((const struct hk_dead_edit_ask *)request)->version);
    if (key[0])
        call->headers[n++] = key;
    if (match[0])
        call->headers[n++] = match;
}

static enum hk_code read_result(const struct hk_op *op, bool background,
                                const struct hk_remote_answer *answer, struct hk_pool *mem, void *result,
                                struct hk_err *err)
{
    struct hk_err why = {.message = ""};
    memset(result, 0, background ? sizeof(struct hk_job_shown) : op->result_size);
    enum hk_code rc =
        hk_form_read(hk_buf_str(&answer->body), background ? hk_form_job : op->form, mem, result, &why);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "the server's answer cannot be read: %s", why.message);
}

static enum hk_code ask_once(struct hk_remote *remote, struct hk_desk *desk, const struct hk_op *op,
                             const struct hk_caller *caller, const void *request, struct hk_wire_out *wire,
                             struct hk_remote_answer *answer, struct hk_pool *mem, struct hk_err *err)
{
    char key[64], match[64];
    struct hk_buf path;
    hk_buf_init(&path, (size_t)1 << 20);
    (void)hk_buf_adds(&path, PREFIX);
    (void)hk_buf_adds(&path, hk_buf_cstr(&wire->path));
    struct hk_remote_call call = {.method = wire->method,
                                  .path = hk_buf_cstr(&path),
                                  .content_type = wire->body.len ? "application/json" : NULL,
                                  .body = hk_buf_str(&wire->body),
                                  .stop = caller->stop,
                                  .arg = caller->arg};
    add_headers(&call, op, request, key, match);
    enum hk_code rc = hk_buf_status(&path) == HK_OK ? hk_remote_call(remote, desk, &call, mem, answer, err)
                                                    : hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_fini(&path);
    return rc;
}

static enum hk_code ask(void *arg, struct hk_desk *desk, const struct hk_op *op,
                        const struct hk_caller *caller, const void *request, struct hk_pool *mem,
                        void *result, struct hk_err *err)
{
    struct hk_remote *remote = arg;
    struct hk_wire_out wire;
    struct hk_remote_answer answer = {.status = 0};
    if (!op->route)
        return hk_err_set(err, HK_UNSUPPORTED,
                          "this works on the database itself, not through a server: give --db URL");
    if (hk_remote_is_stream(op))
        return hk_remote_stream(remote, desk, op, caller, request, mem, result, err);
    const struct hk_wire_caller said = {
        .reason = caller->reason, .reveal = caller->reveal, .background = caller->background};
    hk_wire_out_init(&wire);
    enum hk_code rc = hk_wire_write(op, request, &said, &wire, err);
    if (rc == HK_OK)
        rc = ask_once(remote, desk, op, caller, request, &wire, &answer, mem, err);
    if (rc == HK_OK)
        rc = read_result(op, caller->background, &answer, mem, result, err);
    hk_buf_fini(&answer.body);
    hk_wire_out_fini(&wire);
    return rc;
}

void hk_remote_attach(struct hk_remote *remote, struct hk_desk *desk)
{
    desk->elsewhere = ask;
    desk->elsewhere_arg = remote;
}

/* ---- which server ---- */

static const char *given(const struct hk_cli *cli, const char *option, const char *variable)
{
    const char *value = hk_args_value(cli, option);
    if (!value)
        value = getenv(variable);
    return value && value[0] ? value : NULL;
}

/* A database that somebody names is meant, whatever server he has logged in to. */
static bool names_database(const struct hk_cli *cli)
{
    return given(cli, "db", "HIKYAKU_DB") || hk_cli_config_path(cli);
}

static int find_place(const struct hk_cli *cli, struct hk_login *out)
{
    struct hk_err err = {.message = ""};
    const char *server = given(cli, "server", "HIKYAKU_SERVER");
    const char *token_file = given(cli, "token-file", "HIKYAKU_TOKEN_FILE");
    const char *ca_file = given(cli, "ca-file", "HIKYAKU_CA_FILE");
    *out = (struct hk_login){.server = ""};
    enum hk_code rc = !server && names_database(cli) ? HK_NOTFOUND : hk_login_read(out, &err);
    if (rc != HK_OK && rc != HK_NOTFOUND)
        return hk_out_failure(&err);
    if (server && strcmp(server, out->server) != 0) /* another server gets no token that is not its own */
        *out = (struct hk_login){.server = ""};
    if (server && !hk_str_copy(out->server, sizeof out->server, hk_str_of(server)))
        return hk_out_error(HK_EXIT_USAGE, "--server is too long");
    if (ca_file && !hk_str_copy(out->ca_file, sizeof out->ca_file, hk_str_of(ca_file)))
        return hk_out_error(HK_EXIT_USAGE, "--ca-file is too long");
    out->insecure = out->insecure || hk_args_flag(cli, "insecure");
    if (token_file && hk_login_token_file(token_file, out->token, &err) != HK_OK)
        return hk_out_error(HK_EXIT_USAGE, "%s", err.message);
    return HK_EXIT_OK;
}

/* http:// to a name or an address that is not this machine's. */
static bool goes_in_clear(struct hk_str server)
{
    const struct hk_str http = {"http://", 7};
    const char *special = NULL;
    struct hk_ip ip;
    if (!hk_str_starts(server, http))
        return false;
    struct hk_str host = {server.ptr + http.len, server.len - http.len};
    host = hk_str_cut(&host, '/');
    if (host.len > 0 && host.ptr[0] == '[') {
        host = (struct hk_str){host.ptr + 1, host.len - 1};
        host = hk_str_cut(&host, ']');
    } else {
        host = hk_str_cut(&host, ':');
    }
    if (hk_ip_parse(host, &ip))
        special = hk_ip_special(&ip);
    return !hk_str_eqi(host, hk_str_of("localhost")) && !(special && strcmp(special, "loopback") == 0);
}

int hk_remote_login(const struct hk_login *login, struct hk_remote **out)
{
    struct hk_err err = {.message = ""};
    if (login->token[0] && !login->insecure && goes_in_clear(hk_str_of(login->server)))
        return hk_out_error(
            HK_EXIT_USAGE,
            "the token would go to %.200s in clear, for everybody on the way to read: use https://, or "
            "--insecure to send it anyway",
            login->server);
    struct hk_remote *remote = hk_mem_zalloc(1, sizeof *remote);
    const struct hk_remote_place place = {.server = login->server,
                                          .token = login->token[0] ? login->token : NULL,
                                          .ca_file = login->ca_file[0] ? login->ca_file : NULL};
    enum hk_code rc = remote ? hk_remote_http_new(&place, &remote->http, &err)
                             : hk_err_set(&err, HK_NOMEM, "out of memory");
    if (rc != HK_OK) {
        hk_mem_free(remote);
        return hk_out_error(rc == HK_INVALID ? HK_EXIT_USAGE : HK_EXIT_FAILURE, "%s", err.message);
    }
    (void)snprintf(remote->name, sizeof remote->name, "%.255s", login->server);
    *out = remote;
    return HK_EXIT_OK;
}

int hk_remote_open(const struct hk_cli *cli, struct hk_remote **out)
{
    struct hk_login login;
    *out = NULL;
    if (given(cli, "server", "HIKYAKU_SERVER") && hk_args_value(cli, "db"))
        return hk_out_error(HK_EXIT_USAGE,
                            "--server and --db exclude each other: ask a relay, or the database");
    int code = find_place(cli, &login);
    if (code != HK_EXIT_OK || !login.server[0] ||
        (names_database(cli) && !given(cli, "server", "HIKYAKU_SERVER")))
        return code;
    code = hk_remote_login(&login, out);
    hk_mem_wipe(login.token, sizeof login.token);
    return code;
}

const char *hk_remote_name(const struct hk_remote *remote)
{
    return remote->name;
}

void hk_remote_close(struct hk_remote *remote)
{
    if (!remote)
        return;
    hk_remote_http_free(remote->http);
    hk_mem_free(remote);
}
