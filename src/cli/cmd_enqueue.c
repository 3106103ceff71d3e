/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku enqueue: one message from options, or many lines from a file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "desk/enqueue.h"
#include "desk/forms.h"
#include "exec/clock.h"

/* ---- one ---- */

static void print_one(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_enqueued *one = result;
    (void)ask;
    (void)hk_buf_add(out, one->message_id.ptr, one->message_id.len);
    (void)hk_buf_addc(out, '\n');
}

static int enqueue_one(const struct hk_cli *cli)
{
    struct hk_ask ask;
    const char *event_type = hk_args_value(cli, "event-type");
    if (event_type == NULL || event_type[0] == '\0')
        return hk_out_error(HK_EXIT_USAGE, "which event? Give --event-type NAME");
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK) {
        const struct hk_enqueued *one = ask.result;
        enum hk_code rc = hk_ask_quietly(&ask);
        if (one->warning != NULL)
            (void)hk_out_error(HK_EXIT_OK, "warning: %s", one->warning);
        code = rc == HK_OK ? hk_ask_print(&ask, print_one) : hk_ask_failed(&ask);
    }
    hk_ask_end(&ask);
    return code;
}

/* ---- many ---- */

struct many {
    struct hk_ask ask;
    FILE *file;
    struct hk_buf line;
    bool as_json, progress;
    int64_t shown_ms;
    struct hk_buf out;
    struct hk_json json;
};

static enum hk_code next_line(void *arg, struct hk_str *out, struct hk_err *err)
{
    struct many *m = arg;
    int c = 0;
    hk_buf_reset(&m->line);
    while ((c = getc_unlocked(m->file)) != EOF && c != '\n')
        if (hk_buf_addc(&m->line, (char)c) != HK_OK)
            return HK_TOOBIG;
    if (c == EOF && ferror(m->file))
        return hk_err_set(err, HK_IO, "cannot read the lines");
    *out = (struct hk_str){c == EOF && m->line.len == 0 ? NULL : hk_buf_cstr(&m->line), m->line.len};
    return HK_OK;
}

static bool flush_out(struct many *m)
{
    bool ok = hk_buf_status(&m->out) == HK_OK &&
              (m->out.len == 0 || fwrite(hk_buf_cstr(&m->out), 1, m->out.len, stdout) == m->out.len);
    hk_buf_reset(&m->out);
    return ok;
}

static enum hk_code print_ids(void *arg, const struct hk_str *ids, size_t n, struct hk_err *err)
{
    struct many *m = arg;
    for (size_t i = 0; i < n; i++) {
        if (m->as_json) {
            hk_form_write(&m->json, hk_form_taken, &ids[i]);
        } else {
            (void)hk_buf_add(&m->out, ids[i].ptr, ids[i].len);
            (void)hk_buf_addc(&m->out, '\n');
        }
    }
    return flush_out(m) ? HK_OK : hk_err_set(err, HK_IO, "cannot write the message ids");
}

static void show_count(uint64_t n, const char *end)
{
    char count[HK_SHOW_NUMBER];
    (void)fprintf(stderr, "\r%s enqueued%s", hk_show_count(n, count), end);
}

static void show_progress(void *arg, const struct hk_progress *progress)
{
    struct many *m = arg;
    int64_t now_ms = hk_clock_wall_ms();
    if (now_ms - m->shown_ms < 200)
        return;
    m->shown_ms = now_ms;
    show_count(progress->done, "");
}

static int stopped(const struct many *m, const struct hk_enqueued_lines *done)
{
    const struct hk_err *err = &m->ask.err;
    enum hk_exit code = err->code == HK_BUSY ? HK_EXIT_TEMPORARY : HK_EXIT_FAILURE;
    char count[HK_SHOW_NUMBER];
    if (m->progress)
        (void)fprintf(stderr, "\n");
    if (done->messages == 0)
        return hk_out_error(code, "%s (nothing was committed)", err->message);
    return hk_out_error(
        code, "%s (committed: %s messages, lines 1 to %" PRIu64 "; nothing from line %" PRIu64 " on)",
        err->message, hk_show_count(done->messages, count), done->lines, done->lines + 1);
}

static int ask_lines(struct many *m)
{
    const struct hk_enqueue_lines_ask request = {next_line, print_ids, m};
    struct hk_enqueued_lines done = {.messages = 0};
    struct hk_ask *ask = &m->ask;
    if (m->progress) {
        ask->caller.progress = show_progress;
        ask->caller.arg = m;
    }
    enum hk_code rc =
        hk_desk_ask(&ask->desk, &hk_op_enqueue_lines, &ask->caller, &request, &ask->mem, &done, &ask->err);
    if (rc != HK_OK)
        return hk_desk_is_open(&ask->desk) ? stopped(m, &done) : hk_ask_failed(ask);
    if (m->progress)
        show_count(done.messages, "\n");
    return HK_EXIT_OK;
}

static int run_many(struct many *m)
{
    hk_buf_init(&m->line, HK_LINE_MAX);
    hk_buf_init(&m->out, HK_OUTPUT_MAX);
    hk_json_init(&m->json, &m->out, false);
    if (m->as_json) {
        hk_json_object(&m->json);
        hk_json_key(&m->json, "items");
        hk_json_array(&m->json);
    }
    int code = ask_lines(m);
    if (m->as_json && hk_desk_is_open(&m->ask.desk)) {
        hk_json_end(&m->json);
        hk_json_key(&m->json, "next");
        hk_json_null(&m->json);
        hk_json_end(&m->json);
        (void)hk_buf_addc(&m->out, '\n');
        if (!flush_out(m) && code == HK_EXIT_OK)
            code = HK_EXIT_FAILURE;
    }
    hk_buf_fini(&m->line);
    hk_buf_fini(&m->out);
    return code;
}

static int enqueue_many(const struct hk_cli *cli, const char *path)
{
    struct many m = {
        .file = stdin, .as_json = hk_args_flag(cli, "json"), .progress = isatty(STDERR_FILENO) == 1};
    for (size_t i = 0; i < cli->n_given; i++) {
        const char *name = cli->given[i].option->name;
        if (!hk_args_is_global(cli, name) && strcmp(name, "ndjson") != 0 && strcmp(name, "json") != 0)
            return hk_out_error(HK_EXIT_USAGE, "with '--ndjson' each line says it all: leave out '--%s'",
                                name);
    }
    if (strcmp(path, "-") != 0)
        m.file = fopen(path, "rb");
    if (m.file == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", path, strerror(errno));
    int code = hk_ask_begin(cli, &m.ask);
    if (code == HK_EXIT_OK)
        code = run_many(&m);
    hk_ask_end(&m.ask);
    if (m.file != stdin)
        (void)fclose(m.file);
    return code;
}

int hk_cmd_enqueue(struct hk_cli *cli)
{
    const char *path = hk_args_value(cli, "ndjson");
    return path != NULL ? enqueue_many(cli, path) : enqueue_one(cli);
}
