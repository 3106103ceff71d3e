/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead edit: another payload for one letter, from $EDITOR or from the command line. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/dead.h"

enum {
    PATH_LENGTH = 512,
};

extern char **environ;

struct edit {
    struct hk_dead_opened opened;
    struct hk_buf after;
    char path[PATH_LENGTH]; /* what the editor works on; "" = none */
};

/* ---- the editor ---- */

static bool write_file(struct edit *e)
{
    const char *folder = getenv("TMPDIR");
    int n = snprintf(e->path, sizeof e->path, "%s/hikyaku-letter-%" PRId64 "-XXXXXX",
                     folder != NULL && folder[0] != '\0' ? folder : "/tmp", e->opened.id);
    int fd = n > 0 && (size_t)n < sizeof e->path ? mkstemp(e->path) : -1; /* nobody else may read it */
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (file == NULL) {
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot make a file for the editor: %s", strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
            (void)unlink(e->path);
        }
        e->path[0] = '\0';
        return false;
    }
    bool ok = fwrite(e->opened.payload.ptr, 1, e->opened.payload.len, file) == e->opened.payload.len;
    ok = fclose(file) == 0 && ok;
    if (!ok)
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot write %s: %s", e->path, strerror(errno));
    return ok;
}

/* NULL: none was named. */
static const char *named_editor(void)
{
    const char *visual = getenv("VISUAL"), *plain = getenv("EDITOR");
    return visual != NULL && visual[0] != '\0' ? visual : plain != NULL && plain[0] != '\0' ? plain : NULL;
}

static const char *editor(void)
{
    const char *named = named_editor();
    return named != NULL ? named : "vi";
}

/* Through the shell, since EDITOR may hold arguments. */
static bool run_editor(const struct edit *e)
{
    char command[1024];
    int n = snprintf(command, sizeof command, "exec %s \"$1\"", editor());
    if (n < 0 || (size_t)n >= sizeof command) {
        (void)hk_out_error(HK_EXIT_USAGE, "EDITOR is too long");
        return false;
    }
    char shell[] = "sh", dash_c[] = "-c", name[] = "hikyaku", path[PATH_LENGTH];
    (void)snprintf(path, sizeof path, "%s", e->path);
    char *argv[] = {shell, dash_c, command, name, path, NULL};
    pid_t pid = 0;
    int status = 0;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
    posix_spawnattr_t attributes;
    sigset_t both;
    (void)sigemptyset(&both);
    (void)sigaddset(&both, SIGINT);
    (void)sigaddset(&both, SIGQUIT);
    int rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        /* Ctrl-C is the editor's: who died of it here would leave the payload in a file, and the editor without anybody who reads it */
        (void)posix_spawnattr_setsigdefault(&attributes, &both);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        (void)sigaction(SIGINT, &ignore, &interrupt);
        (void)sigaction(SIGQUIT, &ignore, &quit);
        rc = posix_spawn(&pid, "/bin/sh", NULL, &attributes, argv, environ);
        while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        (void)sigaction(SIGINT, &interrupt, NULL);
        (void)sigaction(SIGQUIT, &quit, NULL);
        (void)posix_spawnattr_destroy(&attributes);
    }
    if (rc != 0) {
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot run the editor: %s", strerror(rc));
        return false;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    (void)hk_out_error(HK_EXIT_FAILURE, "the editor (%s) failed: nothing was changed", editor());
    return false;
}

/* Editors end the last line; the payload did not. */
static void drop_added_newline(struct edit *e)
{
    struct hk_str before = e->opened.payload;
    bool had = before.len > 0 && before.ptr[before.len - 1] == '\n';
    if (!had && e->after.len > 0 && hk_buf_cstr(&e->after)[e->after.len - 1] == '\n') {
        e->after.len--;
        e->after.data[e->after.len] = '\0';
    }
}

static bool ask_editor(struct edit *e)
{
    char from[PATH_LENGTH + 1];
    if (isatty(STDIN_FILENO) != 1 && named_editor() == NULL) {
        (void)hk_out_error(HK_EXIT_USAGE, "no terminal to edit on: give --payload TEXT, - or @FILE");
        return false;
    }
    if (!write_file(e) || !run_editor(e))
        return false;
    struct stat file;
    if (stat(e->path, &file) == 0 && !S_ISREG(file.st_mode)) { /* reading another kind might never end */
        (void)hk_out_error(HK_EXIT_FAILURE, "the editor left no plain file in %s: nothing was changed",
                           e->path);
        return false;
    }
    (void)snprintf(from, sizeof from, "@%s", e->path);
    if (!hk_args_bytes(from, &e->after))
        return false;
    drop_added_newline(e);
    return true;
}

/* ---- the whole ---- */

static void print_edited(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dead_edited *edited = result;
    (void)ask;
    hk_table_safe_lines(out, edited->diff);
    if (edited->same)
        (void)hk_buf_addf(
            out, "%" PRId64 ": nothing was changed%s\n", edited->id,
            edited->same_bytes ? "" : ": the new payload has the same values; --yes keeps it all the same");
    if (edited->changed)
        (void)hk_buf_addf(out,
                          "%" PRId64 ": the payload is version %" PRIu32
                          " now, the older one is kept\nsend it: hikyaku dead requeue %" PRId64 "\n",
                          edited->id, edited->version, edited->id);
}

/* What somebody wrote is not lost because it was refused. */
static int change(struct hk_ask *ask, struct edit *e)
{
    int code = hk_ask_run(ask);
    if (code == HK_EXIT_OK)
        return hk_ask_print(ask, print_edited);
    if (e->path[0] != '\0') {
        (void)hk_out_error(HK_EXIT_FAILURE, "what you wrote is kept in %s: give it again with --payload @%s",
                           e->path, e->path);
        e->path[0] = '\0';
    }
    return code;
}

static int edit_by_hand(struct hk_ask *ask, struct edit *e)
{
    struct hk_dead_edit_ask *request = ask->request;
    int code = hk_ask_also(ask, &hk_op_dead_open, request, &e->opened);
    if (code != HK_EXIT_OK)
        return code;
    if (!ask_editor(e))
        return HK_EXIT_FAILURE;
    request->payload = hk_buf_str(&e->after);
    request->opened = true;
    request->version = e->opened.version;
    return change(ask, e);
}

int hk_cmd_dead_edit(struct hk_cli *cli)
{
    struct hk_ask ask;
    struct edit e = {.path = ""};
    int code = hk_ask_begin(cli, &ask);
    hk_buf_init(&e.after, HK_ARGS_BYTES_MAX);
    if (code == HK_EXIT_OK) {
        const struct hk_dead_edit_ask *request = ask.request;
        code = request->payload.ptr != NULL ? change(&ask, &e) : edit_by_hand(&ask, &e);
    }
    if (e.path[0] != '\0')
        (void)unlink(e.path);
    hk_buf_fini(&e.after);
    hk_ask_end(&ask);
    return code;
}
