/* SPDX-License-Identifier: Apache-2.0 */
/* SCM_RIGHTS, in one place. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/fds.h"

union room {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * HK_FDS_MAX)];
};

int hk_fds_send(int socket, char kind, const int *fds, size_t n)
{
    union room room = {.bytes = {0}};
    struct iovec packet = {.iov_base = &kind, .iov_len = 1};
    struct msghdr message = {.msg_iov = &packet,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message); /* NULL: no room, so n is 0 */
    if (!rights || n == 0 || n > HK_FDS_MAX)
        return EINVAL;
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * n);
    memcpy(CMSG_DATA(rights), fds, sizeof(int) * n);
    ssize_t sent = -1;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == 1 ? 0 : sent < 0 ? errno : EPIPE;
}

/* The kernel installs no more descriptors than there is room for, and says so. */
static void take_rights(struct msghdr *message, struct hk_fds *out)
{
    struct cmsghdr *rights = CMSG_FIRSTHDR(message);
    out->n = 0;
    if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS ||
        rights->cmsg_len < CMSG_LEN(0))
        return;
    size_t n = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    out->n = n < HK_FDS_MAX ? n : HK_FDS_MAX;
    memcpy(out->fd, CMSG_DATA(rights), out->n * sizeof(int));
}

int hk_fds_take(int socket, struct hk_fds *out)
{
    union room room = {.bytes = {0}};
    struct iovec packet = {.iov_base = &out->kind, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &packet, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
    ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? EAGAIN : EPIPE;
    take_rights(&message, out);
    out->whole = !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    return 0;
}

void hk_fds_close(const struct hk_fds *fds)
{
    for (size_t i = 0; i < fds->n; i++)
        (void)close(fds->fd[i]);
}
