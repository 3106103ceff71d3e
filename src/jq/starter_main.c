/* SPDX-License-Identifier: Apache-2.0 */
/* The starter's own process. It allocates nothing, reads nothing but one byte and two descriptors at a time, and runs one program. It
 * believes its parent, but a parent that was taken over must gain no more than jq helpers: HK_JQ_STARTER_MOST of them, each as caged
 * as any other. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/sanitized.h"
#include "jq/impl.h"
#include "run/fds.h"

enum {
    CONTROL = 3, /* behind standard input, output and error, which lead nowhere */
    ENDED,       /* readable when a helper has ended */
    FIRST_OTHER,
    FILES_MOST =
        32, /* those above, a lease for each helper, what a request brings, and some for the helper's loader */
    CLOSE_MOST = 65536, /* where the system cannot close a range */
    OUT_OF_THE_WAY = CONTROL + 1
};

struct run {
    pid_t pid; /* 0 = this place is free */
    int lease;
};

struct starter {
    const char *helper;
    struct run runs[HK_JQ_STARTER_MOST];
};

/* ---- what it gives up ---- */

static void close_from(unsigned first)
{
    struct rlimit files = {.rlim_cur = CLOSE_MOST};
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
    (void)getrlimit(RLIMIT_NOFILE, &files);
    for (unsigned fd = first; fd < files.rlim_cur && fd < CLOSE_MOST; fd++)
        (void)close((int)fd);
}

static bool keep_only(int control)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    control = fcntl(control, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    null = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    bool ok = control >= 0 && null >= 0 && dup3(control, CONTROL, O_CLOEXEC) == CONTROL;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        ok = ok && dup2(null, fd) == fd;
    close_from(CONTROL + 1);
    return ok;
}

/* Lowers it, and never raises it. */
static bool limit(unsigned what, rlim_t most)
{
    struct rlimit r;
    if (getrlimit(what, &r) != 0)
        return false;
    r.rlim_max = r.rlim_max < most ? r.rlim_max : most;
    r.rlim_cur = r.rlim_max;
    return setrlimit(what, &r) == 0;
}

/* Root without them is an ordinary user with root's files, and so are the helpers: what is gone does not come back by running a
 * program, as no_new_privs is set. Some filters of system calls forbid even this; they let nobody use a capability either. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3], none[_LINUX_CAPABILITY_U32S_3];
    memset(sets, 0, sizeof sets);
    memset(none, 0, sizeof none);
    (void)syscall(SYS_capget, &head, sets);
    if (memcmp(sets, none, sizeof none) != 0)
        (void)syscall(SYS_capset, &head, none);
}

static void forget_environment(void)
{
    static char *nothing[] = {NULL};
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        explicit_bzero(*entry, strlen(*entry));
    environ = nothing;
}

/* No signal but SIGKILL ends it: Ctrl-C and the service manager's SIGTERM are for its parent, who may need it while it drains. */
static bool take_signals(void)
{
    sigset_t all, children;
    (void)sigfillset(&all);
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    return signal(SIGCHLD, SIG_DFL) != SIG_ERR && signal(SIGPIPE, SIG_DFL) != SIG_ERR &&
           sigprocmask(SIG_SETMASK, &all, NULL) == 0 &&
           signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK) == ENDED;
}

static bool give_up(int control, pid_t parent)
{
    bool ok =
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent; /* else it is gone already */
    (void)prctl(PR_SET_NAME, "hikyaku-jqstart", 0, 0, 0);
    forget_environment();
    ok = ok && keep_only(control) && take_signals() && chdir("/") == 0 &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && limit(RLIMIT_CORE, 0) &&
         limit(RLIMIT_NOFILE, FILES_MOST);
    if (!HK_SANITIZED) /* they write a file when the helper starts, before it forbids that itself */
        ok = ok && limit(RLIMIT_FSIZE, 0);
    drop_capabilities();
    return ok;
}

/* ---- helpers ---- */

static void forget(struct run *run)
{
    (void)close(run->lease);
    *run = (struct run){.pid = 0, .lease = -1};
}

static void end_run(struct run *run)
{
    (void)kill(run->pid, SIGKILL);
    while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    forget(run);
}

static void reap(struct starter *s)
{
    struct signalfd_siginfo seen;
    while (read(ENDED, &seen, sizeof seen) > 0)
        ;
    for (size_t i = 0; i < HK_JQ_STARTER_MOST; i++)
        if (s->runs[i].pid > 0 && waitpid(s->runs[i].pid, NULL, WNOHANG) == s->runs[i].pid)
            forget(&s->runs[i]);
}

/* Nobody writes on a lease: all that can be read is its end. */
static void end_released(struct starter *s)
{
    for (size_t i = 0; i < HK_JQ_STARTER_MOST; i++) {
        struct pollfd lease = {.fd = s->runs[i].lease, .events = POLLIN};
        if (s->runs[i].pid > 0 && poll(&lease, 1, 0) > 0)
            end_run(&s->runs[i]);
    }
}

static struct run *free_place(struct starter *s)
{
    for (size_t i = 0; i < HK_JQ_STARTER_MOST; i++)
        if (s->runs[i].pid == 0)
            return &s->runs[i];
    return NULL;
}

/* Takes both descriptors. The helper alone holds its socket once the caller hears that it runs. */
static void start_helper(struct starter *s, int socket, int lease)
{
    struct run *run = free_place(s);
    pid_t pid = 0;
    int answer = run ? hk_jq_spawn(s->helper, socket, &pid) : EAGAIN;
    (void)close(socket);
    bool told = send(lease, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof answer;
    if (!run || answer != 0) {
        (void)close(lease);
        return;
    }
    *run = (struct run){.pid = pid, .lease = lease};
    if (!told)
        end_run(run);
}

/* ---- requests ---- */

/* False: the parent is gone. */
static bool take_request(struct starter *s)
{
    struct hk_fds came;
    int failed = hk_fds_take(CONTROL, &came);
    if (failed)
        return failed == EAGAIN;
    if (came.kind == HK_JQ_REQUEST && came.n == HK_JQ_REQUEST_FDS && came.whole)
        start_helper(s, came.fd[0], came.fd[1]);
    else
        hk_fds_close(&came);
    return true;
}

/* Leases first: whoever closed one and then asks for another helper finds the place free. */
static void serve(struct starter *s)
{
    for (;;) {
        struct pollfd polls[2 + HK_JQ_STARTER_MOST] = {{.fd = CONTROL, .events = POLLIN},
                                                       {.fd = ENDED, .events = POLLIN}};
        for (size_t i = 0; i < HK_JQ_STARTER_MOST; i++)
            polls[2 + i] = (struct pollfd){.fd = s->runs[i].lease, .events = POLLIN};
        if (poll(polls, 2 + HK_JQ_STARTER_MOST, -1) < 0 && errno != EINTR)
            return;
        reap(s);
        end_released(s);
        if (!take_request(s))
            return;
    }
}

_Noreturn void hk_jq_starter_main(const char *helper, int control, pid_t parent)
{
    struct starter s = {.helper = helper};
    const int ready = 0;
    for (size_t i = 0; i < HK_JQ_STARTER_MOST; i++)
        s.runs[i].lease = -1;
    if (!give_up(control, parent) || send(CONTROL, &ready, sizeof ready, MSG_NOSIGNAL) != sizeof ready)
        _exit(1);
    serve(&s);
    for (size_t i = 0; i < HK_JQ_STARTER_MOST; i++)
        if (s.runs[i].pid > 0)
            end_run(&s.runs[i]);
    _exit(0);
}
