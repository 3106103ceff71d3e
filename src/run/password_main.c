/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's process: waits for requests, and runs its command. Those who asked before a run began share its answer, so that a database
 * that comes back is not one run for each connection. Nothing is kept afterwards: a password of yesterday helps nobody. It keeps its
 * environment, which clients of clouds need, and the rights that the relay has at its start; it ends when the relay's end of the socket
 * closes, and at no signal but SIGKILL: the relay needs it while it drains. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/fds.h"
#include "run/password.h"
#include "run/program.h"

enum {
    ASKERS_MAX = 64 /* that share a run; more wait for the next one */
};

struct askers {
    int fd[ASKERS_MAX];
    size_t n;
};

/* A line end is not part of it. A password that cannot be one is refused here, where it can be said why. */
static enum hk_code trim(struct hk_buf *out, struct hk_err *err)
{
    if (out->len > 0 && out->data[out->len - 1] == '\n')
        out->len--;
    if (out->len > 0 && out->data[out->len - 1] == '\r')
        out->len--;
    if (out->len == 0)
        return hk_err_set(err, HK_INVALID, "its command printed nothing");
    for (size_t i = 0; i < out->len; i++)
        if (out->data[i] == '\n' || out->data[i] == '\0')
            return hk_err_set(err, HK_INVALID, "its command printed more than one line");
    return HK_OK;
}

static void answer_all(struct askers *askers, char failed, const char *bytes, size_t len)
{
    char packet[HK_PASSWORD_MAX + 1] = {failed};
    len = len < HK_PASSWORD_MAX ? len : HK_PASSWORD_MAX;
    if (len > 0)
        memcpy(packet + 1, bytes, len);
    for (size_t i = 0; i < askers->n; i++) {
        (void)send(askers->fd[i], packet, len + 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* it may have given up */
        (void)close(askers->fd[i]);
    }
    askers->n = 0;
    hk_mem_wipe(packet, sizeof packet);
}

static void run_for(struct askers *askers, const char *const *argv)
{
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, HK_PASSWORD_MAX);
    enum hk_code rc = hk_program_run(argv, &out, &err);
    if (rc == HK_OK)
        rc = trim(&out, &err);
    if (rc == HK_OK)
        answer_all(askers, 0, out.data, out.len);
    else
        answer_all(askers, 1, err.message, strlen(err.message));
    if (out.data)
        hk_mem_wipe(out.data, out.room);
    hk_buf_fini(&out);
}

/* False: nobody can ask any more. */
static bool collect(struct askers *askers, int control)
{
    struct hk_fds came;
    while (askers->n < ASKERS_MAX) {
        int failed = hk_fds_take(control, &came);
        if (failed)
            return failed == EAGAIN;
        if (came.kind == HK_PASSWORD_REQUEST && came.whole && came.n == 1)
            askers->fd[askers->n++] = came.fd[0];
        else
            hk_fds_close(&came);
    }
    return true;
}

_Noreturn void hk_password_main(const char *const *argv, int control)
{
    struct askers askers = {.n = 0};
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)prctl(PR_SET_NAME, "hikyaku-passwd", 0, 0, 0);
    for (bool open = true; open;) {
        struct pollfd asked = {.fd = control, .events = POLLIN};
        if (poll(&asked, 1, -1) < 0 && errno != EINTR)
            break;
        open = collect(&askers, control);
        if (askers.n > 0 && open)
            run_for(&askers, argv);
    }
    _exit(0);
}
