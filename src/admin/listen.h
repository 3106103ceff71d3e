/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket for an address, or a path, as the configuration has it. */
#ifndef HK_ADMIN_LISTEN_H
#define HK_ADMIN_LISTEN_H

#include <stdint.h>

#include <hikyaku/error.h>

#define HK_LISTEN_TEXT_MAX 64

/* "127.0.0.1:8189", "[::1]:0", "localhost:8189"; port 0: any free one. `out_address`: what it became. HK_BUSY: taken;
 * HK_INVALID: this machine cannot listen there, and will not be able to by itself. */
enum hk_code hk_listen(const char *where, int *out_fd, char out_address[HK_LISTEN_TEXT_MAX],
                       struct hk_err *err) HK_MUSTCHECK;

/* A socket in the file system that only this user can connect to. `out_lock` is a lock on PATH.lock that keeps others from removing the
 * socket while we listen; it ends with the descriptor. HK_BUSY: somebody listens there. HK_INVALID: there is something else at that path,
 * or no socket can be there. */
enum hk_code hk_listen_unix(const char *path, int *out_fd, int *out_lock, struct hk_err *err) HK_MUSTCHECK;
/* Of the process at the other end of a Unix socket; -1: unknown. */
int64_t hk_listen_peer_uid(int fd);
/* Removes the socket and gives the lock back. */
void hk_listen_unix_end(const char *path, int lock);

#endif
