/* SPDX-License-Identifier: Apache-2.0 */
/* A password that a program prints, fetched anew for each connection: tokens of a cloud live for minutes. A relay at work may start no
 * program (daemon/guard.h), so it forks a keeper before: a process that runs the one configured command whenever it is asked, and
 * answers with what that printed. Whoever takes the relay over gains no program but this one. The password is in no argument, no file and
 * no log. */
#ifndef HK_RUN_PASSWORD_H
#define HK_RUN_PASSWORD_H

#include <hikyaku/error.h>

#include "base/buf.h"

#define HK_PASSWORD_MAX (16 * 1024) /* bytes: tokens with many claims are long */

/* The parameter of a store's URL that names the keeper's descriptor. Only this process adds it: no URL that anybody wrote may have it. */
#define HK_PASSWORD_PARAMETER "hikyaku_password_fd"

/* Forks the keeper of `argv` (up to a NULL). The process must have no second thread yet. `*out_fd` is what hk_password_ask takes; the
 * keeper ends once it is closed, or this process has ended. HK_UNAVAILABLE. */
enum hk_code hk_password_keep(const char *const *argv, int *out_fd, struct hk_err *err) HK_MUSTCHECK;

/* Begins to ask, by any thread. `*out_answer` becomes readable, within about 25 s. Never blocks. HK_UNAVAILABLE. */
enum hk_code hk_password_begin(int keeper, int *out_answer, struct hk_err *err) HK_MUSTCHECK;
/* Takes the answer and closes `answer`. `out` is untouched unless it is HK_OK, and has room for HK_PASSWORD_MAX; wipe it. On failure
 * `err` says what became of the command, and never what it printed. HK_UNAVAILABLE. */
enum hk_code hk_password_end(int answer, struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;
/* Both, with the wait between them. */
enum hk_code hk_password_ask(int keeper, struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;

/* ---- inside ---- */

#define HK_PASSWORD_REQUEST 'P'

/* The keeper, to its end. */
_Noreturn void hk_password_main(const char *const *argv, int control);

#endif
