/* SPDX-License-Identifier: Apache-2.0 */
/* Starts one helper: by the process that needs it, or by the starter. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>

#include "jq/impl.h"

int64_t hk_jq_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Ctrl-C is for the caller, who ends in good order; the helper sees its socket close. What the starter blocks, the helper does not. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    (void)sigemptyset(&none);
    int rc = posix_spawnattr_setsigmask(attributes, &none);
    return rc == 0 ? posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK)
                   : rc;
}

/* Standard error leads nowhere. The helper inherits no other descriptor: all of ours are O_CLOEXEC, and it allows itself three. */
static int set_actions(posix_spawn_file_actions_t *actions, int socket)
{
    int rc = posix_spawn_file_actions_adddup2(actions, socket, STDIN_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, socket, STDOUT_FILENO);
    return rc == 0 ? posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) : rc;
}

int hk_jq_spawn(const char *helper, int socket, pid_t *out_pid)
{
    char name[] = "hikyaku-jq";
    char *argv[] = {name, NULL};
    char *envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = set_attributes(&attributes);
        if (rc == 0)
            rc = set_actions(&actions, socket);
        if (rc == 0)
            rc = posix_spawn(out_pid, helper, &actions, &attributes, argv, envp);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}
