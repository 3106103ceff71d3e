/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of the starter. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "jq/impl.h"
#include "run/fds.h"

enum {
    ANSWER_MS = 10000, /* for what takes a millisecond, on a machine that is very busy */
    END_MS = 2000
};

struct hk_jq_starter {
    pid_t pid; /* 0 = reaped */
    int fd;    /* the control socket */
};

/* ---- hearing of it ---- */

/* False: `fd` has nothing to read, not even its end, within the time. */
static bool wait_readable(int fd, int64_t wait_ms)
{
    int64_t deadline_ms = hk_jq_now_ms() + wait_ms;
    for (;;) {
        int64_t left = deadline_ms - hk_jq_now_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int rc = poll(&p, 1, left > 0 ? (int)left : 0);
        if (rc >= 0 || errno != EINTR)
            return rc > 0;
    }
}

static enum hk_code has_ended(struct hk_err *err)
{
    return hk_err_set(err, HK_UNAVAILABLE, "%s", HK_JQ_NO_STARTER);
}

/* The int that the starter writes at once. */
static enum hk_code hear_answer(int fd, int *out_answer, struct hk_err *err)
{
    if (!wait_readable(fd, ANSWER_MS))
        return hk_err_set(err, HK_UNAVAILABLE, "the process that starts jq does not answer");
    if (recv(fd, out_answer, sizeof *out_answer, MSG_DONTWAIT) != sizeof *out_answer)
        return has_ended(err);
    return HK_OK;
}

bool hk_jq_starter_runs(const struct hk_jq_starter *starter)
{
    return !wait_readable(starter->fd, 0);
}

int hk_jq_starter_fd(const struct hk_jq_starter *starter)
{
    return starter->fd;
}

/* ---- asking it ---- */

static enum hk_code send_request(int control, const int fds[HK_JQ_REQUEST_FDS], struct hk_err *err)
{
    int failed = hk_fds_send(control, HK_JQ_REQUEST, fds, HK_JQ_REQUEST_FDS);
    if (failed == 0)
        return HK_OK;
    if (failed == EPIPE || failed == ECONNRESET || failed == ENOTCONN)
        return has_ended(err);
    return hk_err_set(err, HK_UNAVAILABLE, "the process that starts jq cannot be asked: %s",
                      strerror(failed));
}

static enum hk_code check_answer(int answer, struct hk_err *err)
{
    if (answer == 0)
        return HK_OK;
    if (answer == EAGAIN)
        return hk_err_set(err, HK_BUSY, "%d jq programs run already, and no more may: try again later",
                          HK_JQ_STARTER_MOST);
    return hk_err_set(err, HK_UNAVAILABLE, "cannot run hikyaku-jq: %s", strerror(answer));
}

enum hk_code hk_jq_starter_ask(const struct hk_jq_starter *starter, int socket, int *out_lease,
                               struct hk_err *err)
{
    int lease[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lease) != 0)
        return hk_err_set(err, HK_UNAVAILABLE, "no socket for the jq helper: %s", strerror(errno));
    int answer = 0;
    enum hk_code rc = send_request(starter->fd, (int[HK_JQ_REQUEST_FDS]){socket, lease[1]}, err);
    (void)close(lease[1]);
    if (rc == HK_OK)
        rc = hear_answer(lease[0], &answer, err);
    if (rc == HK_OK)
        rc = check_answer(answer, err);
    if (rc == HK_OK)
        *out_lease = lease[0];
    else
        (void)close(lease[0]);
    return rc;
}

/* ---- its life ---- */

/* The starter leaves the current directory. */
static enum hk_code make_absolute(const char *helper, char out[PATH_MAX], struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (helper[0] == '/' && hk_str_copy(out, PATH_MAX, hk_str_of(helper)) && access(out, X_OK) == 0)
        return HK_OK;
    if (helper[0] != '/' && realpath(helper, out) && access(out, X_OK) == 0)
        return HK_OK;
    return hk_err_set(err, HK_UNAVAILABLE, "cannot run %s: %s", hk_show(hk_str_of(helper), shown),
                      strerror(errno));
}

static enum hk_code fork_starter(struct hk_jq_starter *starter, const char *helper, struct hk_err *err)
{
    int pair[2], answer = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return hk_err_set(err, HK_UNAVAILABLE, "no socket for the process that starts jq: %s",
                          strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        hk_jq_starter_main(helper, pair[1], parent);
    starter->fd = pair[0];
    (void)close(pair[1]);
    if (pid < 0)
        return hk_err_set(err, HK_UNAVAILABLE, "the process that starts jq cannot be made: %s",
                          strerror(errno));
    starter->pid = pid;
    return hear_answer(starter->fd, &answer, err);
}

enum hk_code hk_jq_starter_open(const char *helper, struct hk_jq_starter **out, struct hk_err *err)
{
    char path[PATH_MAX];
    enum hk_code rc = make_absolute(helper, path, err);
    if (rc != HK_OK)
        return rc;
    struct hk_jq_starter *starter = hk_mem_alloc(sizeof *starter);
    if (!starter)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *starter = (struct hk_jq_starter){.fd = -1};
    rc = fork_starter(starter, path, err);
    if (rc == HK_OK)
        *out = starter;
    else
        hk_jq_starter_close(starter);
    return rc;
}

/* A process that has closed its last descriptor is about to end. */
void hk_jq_starter_reap(struct hk_jq_starter *starter)
{
    while (starter->pid > 0 && waitpid(starter->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    starter->pid = 0;
}

/* A starter that somebody stopped (SIGSTOP) does not see the end of its socket. A locked process cannot kill it either; the system
 * does so once this process ends. */
void hk_jq_starter_close(struct hk_jq_starter *starter)
{
    if (!starter)
        return;
    if (starter->fd >= 0)
        (void)shutdown(starter->fd, SHUT_WR);
    if (starter->pid > 0 && (wait_readable(starter->fd, END_MS) || kill(starter->pid, SIGKILL) == 0))
        hk_jq_starter_reap(starter);
    if (starter->fd >= 0)
        (void)close(starter->fd);
    hk_mem_free(starter);
}
