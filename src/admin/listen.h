/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket for an address as the configuration has it. */
#ifndef HK_ADMIN_LISTEN_H
#define HK_ADMIN_LISTEN_H

#include <hikyaku/error.h>

#define HK_LISTEN_TEXT_MAX 64

/* "127.0.0.1:8189", "[::1]:0", "localhost:8189"; port 0: any free one. `out_address`: what it became. HK_BUSY: taken;
 * HK_INVALID: this machine cannot listen there, and will not be able to by itself. */
enum hk_code hk_listen(const char *where, int *out_fd, char out_address[HK_LISTEN_TEXT_MAX],
                       struct hk_err *err) HK_MUSTCHECK;

#endif
