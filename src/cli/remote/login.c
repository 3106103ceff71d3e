/* SPDX-License-Identifier: Apache-2.0 */
/* What `hikyaku login` keeps: server, token and certificate file, in a file that only its owner may read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/remote/remote.h"

static bool folder(char out[HK_LOGIN_TEXT_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = 0;
    if (config && config[0] == '/')
        n = snprintf(out, HK_LOGIN_TEXT_MAX, "%s/hikyaku", config);
    else if (home && home[0] == '/')
        n = snprintf(out, HK_LOGIN_TEXT_MAX, "%s/.config/hikyaku", home);
    return n > 0 && n < HK_LOGIN_TEXT_MAX - 16;
}

bool hk_login_path(char out[HK_LOGIN_TEXT_MAX])
{
    char at[HK_LOGIN_TEXT_MAX];
    return folder(at) && snprintf(out, HK_LOGIN_TEXT_MAX, "%s/login", at) < HK_LOGIN_TEXT_MAX;
}

static void take_line(struct hk_login *login, char *line)
{
    char *value = strchr(line, '=');
    line[strcspn(line, "\n")] = '\0';
    if (!value)
        return;
    *value++ = '\0';
    if (strcmp(line, "insecure") == 0)
        login->insecure = strcmp(value, "true") == 0;
    char *to = strcmp(line, "server") == 0    ? login->server
               : strcmp(line, "token") == 0   ? login->token
               : strcmp(line, "ca_file") == 0 ? login->ca_file
                                              : NULL;
    if (to)
        (void)hk_str_copy(to, HK_LOGIN_TEXT_MAX, hk_str_of(value));
}

enum hk_code hk_login_read(struct hk_login *out, struct hk_err *err)
{
    char path[HK_LOGIN_TEXT_MAX], line[HK_LOGIN_TEXT_MAX + 32];
    struct stat is;
    *out = (struct hk_login){.server = ""};
    FILE *file = hk_login_path(path) ? fopen(path, "re") : NULL;
    if (!file)
        return hk_err_set(err, HK_NOTFOUND, "nobody has logged in here");
    if (fstat(fileno(file), &is) != 0 || (is.st_mode & 077) != 0 || is.st_uid != geteuid()) {
        (void)fclose(file);
        return hk_err_set(err, HK_DENIED, "%s holds a token and others may read it: chmod 600 %s", path,
                          path);
    }
    while (fgets(line, sizeof line, file))
        take_line(out, line);
    hk_mem_wipe(line, sizeof line);
    (void)fclose(file);
    return HK_OK;
}

static bool make_folders(void)
{
    char path[HK_LOGIN_TEXT_MAX];
    if (!folder(path))
        return false;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool write_all(int fd, const struct hk_login *login)
{
    FILE *file = fdopen(fd, "w");
    if (!file) {
        (void)close(fd);
        return false;
    }
    bool good = fprintf(file, "server=%s\n", login->server) > 0;
    if (good && login->token[0])
        good = fprintf(file, "token=%s\n", login->token) > 0;
    if (good && login->ca_file[0])
        good = fprintf(file, "ca_file=%s\n", login->ca_file) > 0;
    if (good && login->insecure)
        good = fprintf(file, "insecure=true\n") > 0;
    good = good && fflush(file) == 0 && fsync(fd) == 0;
    return fclose(file) == 0 && good;
}

/* Beside the old one first: who is interrupted keeps it. */
enum hk_code hk_login_write(const struct hk_login *login, struct hk_err *err)
{
    char path[HK_LOGIN_TEXT_MAX], beside[HK_LOGIN_TEXT_MAX + 8];
    if (!hk_login_path(path))
        return hk_err_set(err, HK_IO, "there is no home folder to keep it in: set HOME or XDG_CONFIG_HOME");
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    (void)unlink(beside);
    int fd = make_folders() ? open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (fd < 0 || !write_all(fd, login) || rename(beside, path) != 0) {
        int why = errno;
        (void)unlink(beside);
        return hk_err_set(err, HK_IO, "cannot write %s: %s", path, strerror(why));
    }
    return HK_OK;
}

enum hk_code hk_login_token_file(const char *path, char out[HK_LOGIN_TEXT_MAX], struct hk_err *err)
{
    bool ours = strcmp(path, "-") != 0;
    FILE *file = ours ? fopen(path, "re") : stdin;
    if (!file)
        return hk_err_set(err, HK_IO, "cannot read the token file %s: %s", path, strerror(errno));
    size_t n = fread(out, 1, HK_LOGIN_TEXT_MAX - 1, file);
    bool failed = ferror(file) != 0;
    if (ours)
        (void)fclose(file);
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (failed)
        return hk_err_set(err, HK_IO, "cannot read the token file %s", path);
    if (!out[0] || strpbrk(out, " \t"))
        return hk_err_set(err, HK_INVALID, "%s holds no token: one line is expected", path);
    return HK_OK;
}
