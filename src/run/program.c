/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program. It gets neither our standard input nor our open files, and its end is bounded as its output is. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/program.h"

enum {
    PATIENCE_MS = 10000,
    LOOK_MS = 5 /* how often to look whether it has ended */
};

extern char **environ;

static int64_t clock_ms(void)
{
    struct timespec t = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static enum hk_code read_output(int fd, int64_t deadline_ms, struct hk_buf *out, struct hk_err *err)
{
    char chunk[512];
    enum hk_code rc = HK_OK;
    ssize_t n = 1;
    while (rc == HK_OK && n != 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = deadline_ms - clock_ms();
        int got = left > 0 ? poll(&ready, 1, (int)left) : 0;
        if (got == 0)
            rc = hk_err_set(err, HK_TIMEOUT, "its command took longer than 10 s");
        n = got > 0 ? read(fd, chunk, sizeof chunk) : -1;
        if (n > 0 && hk_buf_add(out, chunk, (size_t)n) != HK_OK)
            rc = hk_err_set(err, HK_TOOBIG, "its command printed too much");
        if (rc == HK_OK && n < 0 && errno != EINTR)
            rc = hk_err_set(err, HK_IO, "the output of its command cannot be read");
    }
    hk_mem_wipe(chunk, sizeof chunk);
    return rc;
}

static enum hk_code spawn(const char *const *argv, int out, pid_t *pid, struct hk_err *err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char *words[HK_PROGRAM_WORDS_MAX + 1] = {NULL};
    for (size_t i = 0; i < HK_PROGRAM_WORDS_MAX && argv[i]; i++)
        memcpy(&words[i], &argv[i],
               sizeof words[i]); /* posix_spawn takes no const, and changes none of them */
    if (!words[0])
        return hk_err_set(err, HK_INVALID, "its command is empty");
    if (posix_spawn_file_actions_init(&files) != 0)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (posix_spawnattr_init(&how) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    sigset_t none; /* what we hold back, it does not */
    (void)sigemptyset(&none);
    (void)posix_spawnattr_setsigmask(&how, &none);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    int failed = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!failed)
        failed = posix_spawnp(pid, words[0], &files, &how, words, environ);
    (void)posix_spawnattr_destroy(&how);
    (void)posix_spawn_file_actions_destroy(&files);
    return failed ? hk_err_set(err, failed == ENOENT ? HK_NOTFOUND : HK_IO, "its command cannot be run: %s",
                               failed == ENOENT ? "there is no such program" : "the system refuses")
                  : HK_OK;
}

static enum hk_code judge(int status, struct hk_err *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return HK_OK;
    if (WIFEXITED(status))
        return hk_err_set(err, HK_IO, "its command ended with code %d", WEXITSTATUS(status));
    return hk_err_set(err, HK_IO, "its command was ended by a signal");
}

/* A program that has closed its output may still run. Kills it, and its children, at the deadline. */
static enum hk_code wait_for(pid_t pid, int64_t deadline_ms, struct hk_err *err)
{
    int status = 0;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return judge(status, err);
        if (got < 0 && errno != EINTR)
            return hk_err_set(err, HK_IO, "the end of its command cannot be seen");
        if (got == 0 && clock_ms() >= deadline_ms)
            break;
        if (got == 0)
            (void)poll(NULL, 0, LOOK_MS);
    }
    (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return hk_err_set(err, HK_TIMEOUT, "its command took longer than 10 s");
}

enum hk_code hk_program_run(const char *const *argv, struct hk_buf *out, struct hk_err *err)
{
    int ends[2];
    pid_t pid = 0;
    struct hk_err late;
    if (pipe(ends) != 0)
        return hk_err_set(err, HK_IO, "a pipe cannot be opened");
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    enum hk_code rc = spawn(argv, ends[1], &pid, err);
    (void)close(ends[1]);
    if (rc == HK_OK) {
        int64_t deadline_ms = clock_ms() + PATIENCE_MS;
        rc = read_output(ends[0], deadline_ms, out, err);
        if (rc != HK_OK)
            (void)kill(-pid, SIGKILL);
        enum hk_code ended = wait_for(pid, deadline_ms, rc == HK_OK ? err : &late);
        rc = rc == HK_OK ? ended : rc;
    }
    (void)close(ends[0]);
    return rc;
}
