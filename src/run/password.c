/* SPDX-License-Identifier: Apache-2.0 */
/* The asking side of a password's keeper. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/fds.h"
#include "run/password.h"

enum {
    ANSWER_MS = 25000 /* a run that is under way, then ours, at 10 s each, on a machine that is busy */
};

enum hk_code hk_password_keep(const char *const *argv, int *out_fd, struct hk_err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return hk_err_set(err, HK_UNAVAILABLE,
                          "password_command cannot be run, because there is no socket: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        hk_password_main(argv, pair[1]);
    }
    (void)close(pair[1]);
    if (pid > 0) {
        *out_fd = pair[0];
        return HK_OK;
    }
    (void)close(pair[0]);
    return hk_err_set(err, HK_UNAVAILABLE,
                      "password_command cannot be run, because its process cannot be made: %s",
                      strerror(errno));
}

static enum hk_code has_ended(struct hk_err *err)
{
    return hk_err_set(err, HK_UNAVAILABLE, "password_command cannot be run, because its process has ended");
}

enum hk_code hk_password_begin(int keeper, int *out_answer, struct hk_err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return hk_err_set(err, HK_UNAVAILABLE,
                          "password_command cannot be run, because there is no socket: %s", strerror(errno));
    int failed = hk_fds_send(keeper, HK_PASSWORD_REQUEST, &pair[1], 1);
    (void)close(pair[1]);
    if (failed == 0) {
        *out_answer = pair[0];
        return HK_OK;
    }
    (void)close(pair[0]);
    if (failed == EPIPE || failed == ECONNRESET || failed == ENOTCONN)
        return has_ended(err);
    return hk_err_set(err, HK_UNAVAILABLE,
                      "password_command cannot be run, because its process cannot be asked: %s",
                      strerror(failed));
}

/* The first byte says which it is: 0, and the password behind it; else why there is none. */
static enum hk_code read_answer(char *bytes, ssize_t n, struct hk_buf *out, struct hk_err *err)
{
    if (n == 0)
        return has_ended(err);
    if (n < 0)
        return hk_err_set(err, HK_UNAVAILABLE, "password_command gave no password within %d s",
                          ANSWER_MS / 1000);
    if (bytes[0] != 0)
        return hk_err_set(err, HK_UNAVAILABLE, "password_command gave no password, because %.*s", (int)n - 1,
                          bytes + 1);
    hk_buf_reset(out);
    return hk_buf_add(out, bytes + 1, (size_t)n - 1) == HK_OK ? HK_OK
                                                              : hk_err_set(err, HK_NOMEM, "out of memory");
}

enum hk_code hk_password_end(int answer, struct hk_buf *out, struct hk_err *err)
{
    char bytes[HK_PASSWORD_MAX + 1];
    ssize_t n = recv(answer, bytes, sizeof bytes, MSG_DONTWAIT);
    enum hk_code rc = read_answer(bytes, n, out, err);
    hk_mem_wipe(bytes, sizeof bytes);
    (void)close(answer);
    return rc;
}

static int64_t clock_ms(void)
{
    struct timespec t = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum hk_code hk_password_ask(int keeper, struct hk_buf *out, struct hk_err *err)
{
    int answer = -1;
    enum hk_code rc = hk_password_begin(keeper, &answer, err);
    if (rc != HK_OK)
        return rc;
    int64_t deadline_ms = clock_ms() + ANSWER_MS;
    struct pollfd ready = {.fd = answer, .events = POLLIN};
    for (int64_t left = ANSWER_MS; left > 0; left = deadline_ms - clock_ms())
        if (poll(&ready, 1, (int)left) >= 0 || errno != EINTR)
            break;
    return hk_password_end(answer, out, err);
}
