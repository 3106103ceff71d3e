/* SPDX-License-Identifier: Apache-2.0 */
/* The remote command line: the same commands, answered by a relay over its HTTP API. A command asks its desk as ever; the desk hands
 * the question on (hk_desk.elsewhere), and what comes back is read into the same result. */
#ifndef HK_CLI_REMOTE_REMOTE_H
#define HK_CLI_REMOTE_REMOTE_H

#include "cli/cli.h"
#include "cli/remote/http.h"
#include "desk/desk.h"
#include "desk/events.h"

struct hk_remote;

/* Which server: --server, HIKYAKU_SERVER, else what `hikyaku login` kept, unless --db, HIKYAKU_DB or a configuration name a database
 * here. *out NULL: none, the command works on the database. HK_EXIT_OK, or said what is wrong. */
int hk_remote_open(const struct hk_cli *cli, struct hk_remote **out);
/* That very one. A token goes in clear only to this machine, or when the login says that this is known (--insecure). */
struct hk_login;
int hk_remote_login(const struct hk_login *login, struct hk_remote **out);
void hk_remote_close(struct hk_remote *remote);
const char *hk_remote_name(const struct hk_remote *remote); /* the server's address, for people */
/* From now on the desk asks there. */
void hk_remote_attach(struct hk_remote *remote, struct hk_desk *desk);

/* ---- among the files of this folder ---- */

struct hk_remote {
    struct hk_remote_http *http;
    char name[256];
};

/* One call. HK_OK: 2xx, and `out` is the answer (the caller's to free in any case). Else the error that the server's problem tells,
 * as if the desk had been here; `desk->wrong_field` too. */
enum hk_code hk_remote_call(struct hk_remote *remote, struct hk_desk *desk, const struct hk_remote_call *call,
                            struct hk_pool *mem, struct hk_remote_answer *out, struct hk_err *err);
/* Operations whose request or result is no single JSON object. */
bool hk_remote_is_stream(const struct hk_op *op);
enum hk_code hk_remote_stream(struct hk_remote *remote, struct hk_desk *desk, const struct hk_op *op,
                              const struct hk_caller *caller, const void *request, struct hk_pool *mem,
                              void *result, struct hk_err *err);
/* hk_op_events. */
enum hk_code hk_remote_events(struct hk_remote *remote, struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_events_ask *ask, struct hk_pool *mem,
                              struct hk_events_told *out, struct hk_err *err);

/* ---- what `hikyaku login` keeps ---- */

#define HK_LOGIN_TEXT_MAX 1024

struct hk_login {
    char server[HK_LOGIN_TEXT_MAX], token[HK_LOGIN_TEXT_MAX], ca_file[HK_LOGIN_TEXT_MAX];
    bool insecure; /* its owner knows that the token goes over the network in clear */
};

/* The file's name; false: there is no home folder. */
bool hk_login_path(char out[HK_LOGIN_TEXT_MAX]);
/* HK_NOTFOUND: nobody has logged in. HK_DENIED: others may read the file. */
enum hk_code hk_login_read(struct hk_login *out, struct hk_err *err);
enum hk_code hk_login_write(const struct hk_login *login, struct hk_err *err);
/* A file with one line, without its end. HK_TOOBIG, HK_IO. */
enum hk_code hk_login_token_file(const char *path, char out[HK_LOGIN_TEXT_MAX], struct hk_err *err);

#endif
