/* SPDX-License-Identifier: Apache-2.0 */
/* The real surroundings: environment variables and files. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/env.h"
#include "run/program.h"

static const char *get_variable(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

static enum hk_code refuse(int error, struct hk_err *err)
{
    char text[128];
    if (strerror_r(error, text, sizeof text) != 0)
        return hk_err_set(err, HK_IO, "error %d", error);
    return hk_err_set(err, error == ENOENT ? HK_NOTFOUND : HK_IO, "%s", text);
}

/* A pipe may be slow, but must not hold us for ever. */
static bool wait_readable(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int n = poll(&ready, 1, 5000);
    if (n == 0)
        errno = ETIMEDOUT;
    return n > 0 || (n < 0 && errno == EINTR);
}

static enum hk_code read_all(int fd, struct hk_buf *out, struct hk_err *err)
{
    char chunk[4096];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && wait_readable(fd))
            continue;
        if (n < 0)
            return refuse(errno, err);
        if (n == 0)
            return HK_OK;
        enum hk_code rc = hk_buf_add(out, chunk, (size_t)n);
        hk_mem_wipe(chunk, (size_t)n); /* it may have been a key */
        if (rc == HK_TOOBIG)
            return hk_err_set(err, rc, "over %zu bytes", out->max);
        if (rc != HK_OK)
            return hk_err_set(err, rc, "out of memory");
    }
}

static enum hk_code read_file(void *arg, const char *path, struct hk_buf *out, struct hk_err *err)
{
    (void)arg;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return refuse(errno, err);
    struct stat st = {.st_mode = 0};
    enum hk_code rc = HK_OK;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        rc = refuse(EISDIR, err);
    else
        rc = read_all(fd, out, err);
    if (rc == HK_OK && S_ISFIFO(st.st_mode) && out->len == 0)
        rc = hk_err_set(err, HK_IO, "a pipe that nobody has written to");
    (void)close(fd);
    return rc;
}

const struct hk_config_env *hk_config_env_system(void)
{
    static const struct hk_config_env env = {
        .get = get_variable, .read_file = read_file, .run = hk_program_run, .foreign_custom = true};
    return &env;
}

const struct hk_config_env *hk_config_env_operator(void)
{
    static const struct hk_config_env env = {.get = get_variable,
                                             .read_file = read_file,
                                             .run = hk_program_run,
                                             .foreign_custom = true,
                                             .without_secrets = true};
    return &env;
}
