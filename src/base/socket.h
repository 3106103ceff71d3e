/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that opens sockets. None of ours may block: a thread that hangs in one is beyond any time-out, and libcurl does
 * not look whether it could make a socket non-blocking itself. None is inherited by a program that we start. */
#ifndef HK_BASE_SOCKET_H
#define HK_BASE_SOCKET_H

#include <sys/socket.h>

/* As socket(2). */
static inline int hk_socket(int family, int type, int protocol)
{
    return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
}

#endif
