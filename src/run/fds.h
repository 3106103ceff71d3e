/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that go from one process to another, with one byte that says what they are for. Over sockets of type SOCK_SEQPACKET
 * between a process and one that it forked. */
#ifndef HK_RUN_FDS_H
#define HK_RUN_FDS_H

#include <stdbool.h>
#include <stddef.h>

#define HK_FDS_MAX 4 /* in one packet */

/* What came in a packet. Its descriptors are the caller's to close, also when it is not whole. */
struct hk_fds {
    char kind;
    bool whole; /* false: there was more in it */
    size_t n;
    int fd[HK_FDS_MAX];
};

/* 0, or an errno: EPIPE, ECONNRESET or ENOTCONN: nobody is there any more; EAGAIN: too many wait. Never blocks. */
int hk_fds_send(int socket, char kind, const int *fds, size_t n);
/* 0, EAGAIN (nothing yet), or EPIPE: nobody is there any more, or an error. Never blocks. The descriptors are O_CLOEXEC. */
int hk_fds_take(int socket, struct hk_fds *out);
void hk_fds_close(const struct hk_fds *fds);

#endif
