/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are run for their output, such as the client of a key-management service. */
#ifndef HK_RUN_PROGRAM_H
#define HK_RUN_PROGRAM_H

#include <hikyaku/error.h>

#include "base/buf.h"

#define HK_PROGRAM_WORDS_MAX 32

/* Runs `argv` (up to a NULL) without a shell, in our environment, and adds what it prints to `out`, whose maximum is the caller's. The
 * program has ten seconds. It shares our standard error. Of its end only whether it was good is told; an error does not hold what it
 * printed. HK_NOTFOUND: there is no such program. HK_TIMEOUT, HK_TOOBIG, HK_IO. */
enum hk_code hk_program_run(const char *const *argv, struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;

#endif
