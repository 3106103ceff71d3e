/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that gave up its rights can and cannot do any more. Each test is a child, for there is no way back. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "check.h"
#include "daemon/guard.h"

#define SKIPPED 77

/* Runs it in a child that ends with what it returns, 0 = good; a line says which step was not. */
static int in_child(int (*what)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(what());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int failed(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

static int lock(void)
{
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_guard_lock(&err);
    if (rc == HK_OK)
        return 0;
    (void)fprintf(stderr, "%s\n", err.message);
    return rc == HK_UNSUPPORTED ? SKIPPED : 1;
}

/* ---- what is gone ---- */

static bool gone(long rc)
{
    return rc == -1 && (errno == ENOSYS || errno == EPERM);
}

static int try_the_forbidden(void)
{
    char *const argv[] = {(char[]){"true"}, NULL};
    if (!gone(execv("/bin/true", argv)))
        return failed("execve");
    if (!gone(mount("none", "/tmp", "tmpfs", 0, NULL)))
        return failed("mount");
    if (!gone(unshare(CLONE_NEWUSER)))
        return failed("unshare");
    if (!gone(chroot("/")))
        return failed("chroot");
    if (!gone(setuid(65534)))
        return failed("setuid");
    if (!gone(socket(AF_PACKET, SOCK_RAW, 0)))
        return failed("a packet socket");
    if (!gone(mknod("/tmp/hk-guard", S_IFCHR | 0600, 0)))
        return failed("mknod");
    return 0;
}

/* The sanitizers need these themselves. */
static int try_what_sanitizers_need(void)
{
    if (HK_SANITIZED)
        return 0;
    if (!gone(ptrace(PTRACE_TRACEME, 0, NULL, NULL)))
        return failed("ptrace");
    if (!gone(kill(getppid(), 0)))
        return failed("kill");
    if (!gone(fork()))
        return failed("fork");
    if (!gone(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)))
        return failed("dumps again");
    if (mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return failed("memory to write to and to run");
    return 0;
}

static int locked_child(void)
{
    int rc = lock();
    if (rc == 0)
        rc = try_the_forbidden();
    return rc ? rc : try_what_sanitizers_need();
}

static void a_locked_process_runs_traces_and_mounts_nothing(void **state)
{
    (void)state;
    int rc = in_child(locked_child);
    if (rc == SKIPPED)
        skip();
    assert_int_equal(rc, 0);
}

/* ---- threads that were there before ---- */

static pthread_barrier_t locked;

static void *old_thread(void *arg)
{
    char *const argv[] = {(char[]){"true"}, NULL};
    pthread_barrier_wait(&locked);
    *(bool *)arg = gone(execv("/bin/true", argv));
    return NULL;
}

static int threaded_child(void)
{
    pthread_t thread;
    bool held = false;
    if (pthread_barrier_init(&locked, NULL, 2) != 0 || pthread_create(&thread, NULL, old_thread, &held) != 0)
        return failed("thread");
    int rc = lock();
    if (rc == SKIPPED)
        return rc;
    pthread_barrier_wait(&locked);
    (void)pthread_join(thread, NULL);
    return rc == 0 && held ? 0 : failed("execve by another thread");
}

static void threads_that_were_there_before_are_locked_as_well(void **state)
{
    (void)state;
    int rc = in_child(threaded_child);
    if (rc == SKIPPED)
        skip();
    assert_int_equal(rc, 0);
}

/* ---- what is left ---- */

static void *new_thread(void *arg)
{
    *(bool *)arg = true;
    return NULL;
}

static int try_files(void)
{
    char path[] = "/tmp/hk-guard-XXXXXX", byte = 'x';
    int fd = mkstemp(path);
    bool ok = fd >= 0 && pwrite(fd, &byte, 1, 0) == 1 && fsync(fd) == 0 && ftruncate(fd, 0) == 0;
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    ok = ok && fcntl(fd, F_SETLK, &all) == 0 && unlink(path) == 0;
    if (fd >= 0)
        (void)close(fd);
    return ok ? 0 : failed("files");
}

static int try_the_needed(void)
{
    pthread_t thread;
    bool ran = false;
    struct addrinfo *found = NULL;
    int pair[2];
    if (pthread_create(&thread, NULL, new_thread, &ran) != 0 || pthread_join(thread, NULL) != 0 || !ran)
        return failed("a new thread");
    if (getaddrinfo("localhost", "80", NULL, &found) != 0)
        return failed("a name");
    freeaddrinfo(found);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || socket(AF_INET, SOCK_STREAM, 0) < 0)
        return failed("sockets");
    if (raise(0) != 0 || kill(getpid(), 0) != 0)
        return failed("signals to oneself");
    void *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_READ) != 0)
        return failed("memory");
    return try_files();
}

static int working_child(void)
{
    int rc = lock();
    return rc ? rc : try_the_needed();
}

static void what_a_relay_needs_still_works(void **state)
{
    (void)state;
    int rc = in_child(working_child);
    if (rc == SKIPPED)
        skip();
    assert_int_equal(rc, 0);
}

/* ---- core dumps ---- */

static int undumped_child(void)
{
    struct rlimit core = {1, 1};
    if (hk_guard_forbid_dumps(NULL) != HK_OK)
        return failed("hk_guard_forbid_dumps");
    if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
        return failed("still dumpable");
    return getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 && core.rlim_max == 0 ? 0
                                                                                          : failed("limit");
}

static void no_core_is_dumped(void **state)
{
    (void)state;
    assert_int_equal(in_child(undumped_child), 0);
}

/* ---- identity ---- */

static int becoming_child(void)
{
    struct hk_err err = {.code = HK_OK};
    if (hk_guard_become("nobody", &err) != HK_OK)
        return failed(err.message);
    if (getuid() == 0 || geteuid() == 0 || getgid() == 0 || hk_guard_is_root())
        return failed("still root");
    gid_t groups[64];
    int n = getgroups(64, groups);
    for (int i = 0; i < n; i++) {
        if (groups[i] == 0)
            return failed("still in root's group");
    }
    if (hk_guard_become("nobody", &err) != HK_OK) /* it is already */
        return failed(err.message);
    return hk_guard_become("root", &err) == HK_INVALID && setuid(0) != 0 ? 0 : failed("root again");
}

static void root_becomes_another_user_for_good(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(becoming_child), 0);
}

static void a_user_that_is_not_there_is_named(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "no-such-user-here",
        "",
        ":",
        "nobody:no-such-group-here",
        "root:",
        "a-name-that-is-much-longer-than-any-name-of-a-user-could-ever-be-and-more"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hk_err err = {.code = HK_OK};
        assert_int_equal(hk_guard_become(bad[i], &err), HK_INVALID);
        assert_non_null(strstr(err.message, "--user"));
    }
}

int main(void)
{
    if (getenv("HIKYAKU_VALGRIND")) {
        puts("1..0 # SKIP valgrind would be locked up with us, and counts what a child inherits as leaked");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_locked_process_runs_traces_and_mounts_nothing),
        cmocka_unit_test(threads_that_were_there_before_are_locked_as_well),
        cmocka_unit_test(what_a_relay_needs_still_works),
        cmocka_unit_test(no_core_is_dumped),
        cmocka_unit_test(root_becomes_another_user_for_good),
        cmocka_unit_test(a_user_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
