/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead edit: another payload for one letter, from $EDITOR or from the command line. Checked as the relay would check it; the older
 * one is kept. */
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
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "config/payload.h"
#include "payload/canon.h"
#include "payload/diff.h"

enum {
    DIFF_CONTEXT = 3,
    PATH_LENGTH = 512,
};

extern char **environ;

struct edit {
    const struct hk_cli *cli;
    struct hk_dead dead;
    const struct hk_letter *letter;
    struct hk_buf before, after;
    char path[PATH_LENGTH]; /* what the editor works on; "" = none */
};

/* ---- the editor ---- */

static bool write_file(struct edit *e)
{
    const char *folder = getenv("TMPDIR");
    int n = snprintf(e->path, sizeof e->path, "%s/hikyaku-letter-%" PRId64 "-XXXXXX",
                     folder != NULL && folder[0] != '\0' ? folder : "/tmp", e->letter->id);
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
    bool ok = fwrite(hk_buf_cstr(&e->before), 1, e->before.len, file) == e->before.len;
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
    bool had = e->before.len > 0 && hk_buf_cstr(&e->before)[e->before.len - 1] == '\n';
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
    if (!hk_operate_payload(from, &e->after))
        return false;
    drop_added_newline(e);
    return true;
}

/* ---- checking and keeping ---- */

/* Who copies what was shown and gives it back would write the mask over the value that it hides. */
static bool has_mask(struct hk_str json)
{
    static const char mask[] = "\"" HK_MASKED "\"";
    for (size_t i = 0; i + sizeof mask - 1 <= json.len; i++)
        if (memcmp(json.ptr + i, mask, sizeof mask - 1) == 0)
            return true;
    return false;
}

static int check(const struct edit *e)
{
    struct hk_validate *rules = NULL;
    struct hk_finding finding;
    struct hk_err err = {.message = ""};
    struct hk_str after = hk_buf_str(&e->after);
    if (hk_config_make_validate(e->dead.op.config, &rules, &err) != HK_OK)
        return hk_out_failure(&err);
    bool valid = hk_validate_payload(rules, e->letter->event_type, after, &finding);
    hk_validate_free(rules);
    if (!valid)
        return hk_out_error(HK_EXIT_FAILURE, "the new payload is not valid (%s): %s", finding.reason,
                            finding.text);
    if (after.len == 0 && e->before.len > 0 && !hk_args_flag(e->cli, "yes"))
        return hk_out_error(HK_EXIT_FAILURE, "the new payload is empty; --yes if that is meant");
    if (hk_masks_fit(e->dead.masks, e->letter->event_type) && has_mask(after) &&
        !has_mask(hk_buf_str(&e->before)) && !hk_args_flag(e->cli, "yes"))
        return hk_out_error(HK_EXIT_FAILURE,
                            "the new payload holds \"" HK_MASKED "\", which only stands for what is masked: "
                            "--reveal shows the value; --yes if that is meant");
    if (hk_scan_check(hk_buf_str(&e->before), NULL) == HK_OK && hk_scan_check(after, &err) != HK_OK &&
        !hk_args_flag(e->cli, "yes"))
        return hk_out_error(HK_EXIT_FAILURE, "it was JSON and is not any more (%s); --yes if that is meant",
                            err.message);
    return HK_EXIT_OK;
}

/* An edit makes a new message id once it is requeued: what was only laid out anew must not. --yes is for receivers that care about
 * bytes. */
static bool says_the_same(const struct edit *e)
{
    struct hk_str before = hk_buf_str(&e->before), after = hk_buf_str(&e->after);
    return hk_args_flag(e->cli, "yes") ? hk_str_eq(before, after) : hk_json_same(before, after);
}

static void add_diff(const struct edit *e, struct hk_buf *out)
{
    struct hk_buf old, new;
    hk_buf_init(&old, HK_OPERATE_OUTPUT_MAX);
    hk_buf_init(&new, HK_OPERATE_OUTPUT_MAX);
    struct hk_str before = hk_buf_str(&e->before);
    (void)hk_mask_changed(e->dead.masks, e->letter->event_type, before, before, &old);
    (void)hk_mask_changed(e->dead.masks, e->letter->event_type, before, hk_buf_str(&e->after), &new);
    if (hk_str_eq(before, hk_buf_str(&e->after)))
        (void)hk_buf_adds(out, "");
    else if (hk_buf_status(&old) != HK_OK || hk_buf_status(&new) != HK_OK)
        (void)hk_buf_adds(out, "(too large to show)\n");
    else if (hk_str_eq(hk_buf_str(&old), hk_buf_str(&new)))
        (void)hk_buf_adds(out, "(only masked fields differ)\n");
    else
        (void)hk_diff_write(out, hk_buf_str(&old), hk_buf_str(&new), DIFF_CONTEXT);
    hk_buf_fini(&old);
    hk_buf_fini(&new);
}

/* `dry_run`: nothing was kept; it was not to be, or it is as it was. */
static int report(const struct edit *e, uint32_t version, bool dry_run)
{
    struct hk_buf out, diff;
    struct hk_json json;
    int64_t id = e->letter->id;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    hk_buf_init(&diff, HK_OPERATE_OUTPUT_MAX);
    add_diff(e, &diff);
    if (hk_args_flag(e->cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_id(&json, "id", id);
        hk_put_bool(&json, "changed", !dry_run);
        hk_put_bool(&json, "dry_run", hk_args_flag(e->cli, "dry-run"));
        hk_put_u64(&json, "payload_version", version);
        hk_put_str(&json, "diff", hk_buf_str(&diff));
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else {
        hk_table_safe_lines(&out, hk_buf_str(&diff));
        if (dry_run && says_the_same(e))
            (void)hk_buf_addf(&out, "%" PRId64 ": nothing was changed%s\n", id,
                              hk_str_eq(hk_buf_str(&e->before), hk_buf_str(&e->after))
                                  ? ""
                                  : ": the new payload has the same values; --yes keeps it all the same");
        if (!dry_run)
            (void)hk_buf_addf(&out,
                              "%" PRId64 ": the payload is version %" PRIu32
                              " now, the older one is kept\nsend it: hikyaku dead requeue %" PRId64 "\n",
                              id, version, id);
    }
    hk_buf_fini(&diff);
    return hk_out_buffer(&out);
}

static int store(struct edit *e, const char *reason, bool *out_kept)
{
    char actor[HK_ACTOR_MAX];
    struct hk_err err = {.message = ""};
    uint32_t version = e->letter->version + 1;
    struct hk_letter_edit by = {.actor = hk_settings_actor(e->cli, actor), .reason = reason, .act = "edit"};
    enum hk_code rc =
        hk_letter_replace(&e->dead.op.desk, e->letter, hk_buf_str(&e->after), &by, &version, &err);
    *out_kept = rc == HK_OK;
    return rc == HK_OK ? report(e, version, false) : hk_operate_failed(&err);
}

/* ---- the whole ---- */

static int load(struct edit *e, int64_t id)
{
    const struct hk_letter_shown *shown = NULL;
    struct hk_err err = {.message = ""};
    bool decoded = true;
    hk_buf_reset(&e->before);
    if (e->dead.letters->show(e->dead.op.admin, id, HK_PAYLOAD_MAX, &shown, &err) != HK_OK)
        return hk_operate_failed(&err);
    e->letter = &shown->letter;
    if (e->letter->status != HK_LETTER_FAILED)
        return hk_out_error(HK_EXIT_FAILURE, "letter %" PRId64 " is %s: only an open one can be edited", id,
                            hk_dead_status(e->letter));
    if (e->letter->payload.len < e->letter->payload_bytes)
        return hk_dead_too_large(e->letter, "edited");
    struct hk_str payload = hk_dead_payload(e->letter, &e->before, &decoded);
    if (decoded && e->before.len == 0)
        (void)hk_buf_add(&e->before, payload.ptr, payload.len);
    return decoded && hk_buf_status(&e->before) == HK_OK
               ? HK_EXIT_OK
               : hk_out_error(HK_EXIT_FAILURE, "the payload cannot be read%s",
                              decoded ? "" : ": it is not base64");
}

static int change(struct edit *e, const char *reason)
{
    bool kept = false;
    int code = check(e);
    if (code == HK_EXIT_OK && hk_args_flag(e->cli, "dry-run"))
        return report(e, e->letter->version, true);
    if (code == HK_EXIT_OK)
        code = store(e, reason, &kept);
    if (!kept && e->path[0] != '\0') {
        (void)hk_out_error(HK_EXIT_FAILURE, "what you wrote is kept in %s: give it again with --payload @%s",
                           e->path, e->path);
        e->path[0] = '\0';
    }
    return code;
}

/* Does a mask hide any of it? That masks fit its event type is not enough: the fields may not be there. */
static bool has_masked(const struct edit *e)
{
    struct hk_buf shown;
    hk_buf_init(&shown, HK_OPERATE_OUTPUT_MAX);
    (void)hk_mask_payload(e->dead.masks, e->letter->event_type, hk_buf_str(&e->before), &shown);
    bool masked = hk_buf_status(&shown) != HK_OK || !hk_str_eq(hk_buf_str(&shown), hk_buf_str(&e->before));
    hk_buf_fini(&shown);
    return masked;
}

static int edit(struct edit *e, const char *reason)
{
    const char *given = hk_args_value(e->cli, "payload");
    int64_t id = 0;
    int code = hk_dead_find(e->cli, &e->dead, e->cli->operands[0], &id);
    if (code == HK_EXIT_OK)
        code = load(e, id);
    if (code != HK_EXIT_OK)
        return code;
    if (given == NULL && has_masked(e))
        return hk_out_error(
            HK_EXIT_FAILURE,
            "its payload has masked fields: --reveal opens it in the editor, and is recorded; or give "
            "--payload");
    code = hk_dead_reveal(e->cli, &e->dead, &id,
                          1); /* with --payload, too: the difference shows the older one */
    if (code != HK_EXIT_OK)
        return code;
    if (e->dead.revealed)
        code = load(e, id); /* the letter's texts lived on the call before */
    if (code != HK_EXIT_OK)
        return code;
    if (given != NULL ? !hk_operate_payload(given, &e->after) : !ask_editor(e))
        return HK_EXIT_FAILURE;
    if (says_the_same(e))
        return report(e, e->letter->version, true);
    return change(e, reason);
}

int hk_cmd_dead_edit(struct hk_cli *cli)
{
    char why[HK_REASON_TEXT_MAX];
    struct edit e = {.cli = cli};
    const char *reason = hk_args_flag(cli, "dry-run") ? "" : hk_operate_reason(cli, why);
    if (reason == NULL)
        return HK_EXIT_USAGE;
    int code = hk_dead_open(cli, &e.dead);
    if (code != HK_EXIT_OK)
        return code;
    hk_buf_init(&e.before, HK_PAYLOAD_MAX);
    hk_buf_init(&e.after, HK_PAYLOAD_MAX);
    code = edit(&e, reason);
    if (e.path[0] != '\0')
        (void)unlink(e.path);
    hk_buf_fini(&e.before);
    hk_buf_fini(&e.after);
    hk_dead_close(&e.dead);
    return code;
}
