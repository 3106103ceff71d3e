/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku job list, show, cancel */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/job.h"
#include "cli/members.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/job.h"

enum {
    BAR = 30,
    WAIT_MS = 500
};

/* ---- list ---- */

static void print_jobs(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {.title = "ID", .right = true},          {.title = "STATUS"},
        {.title = "OPERATION", .max_width = 30}, {.title = "DONE", .right = true},
        {.title = "OF", .right = true},          {.title = "CHANGED", .right = true},
        {.title = "FAILED", .right = true},      {.title = "STARTED"},
        {.title = "BY", .max_width = 20},        {.title = "REASON", .max_width = 40}};
    const struct hk_job_listed *listed = result;
    struct hk_table table;
    char text[64];
    (void)ask;
    if (listed->jobs.n == 0) {
        (void)hk_buf_adds(out, "no jobs\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < listed->jobs.n; i++) {
        const struct hk_job *job = &listed->jobs.items[i];
        (void)snprintf(text, sizeof text, "%" PRId64, job->id);
        hk_table_adds(&table, text);
        hk_table_adds(&table, hk_job_status_name(job->status));
        hk_table_add(&table, job->operation);
        hk_table_adds(&table, hk_show_count(job->progress.done, text));
        hk_table_adds(&table, job->progress.total > 0 ? hk_show_count(job->progress.total, text) : "-");
        hk_table_adds(&table, hk_show_count(job->progress.changed, text));
        hk_table_adds(&table, hk_show_count(job->progress.failed, text));
        hk_table_adds(&table, hk_show_ago(job->created_ms, listed->jobs.now_ms, text));
        hk_table_add(&table, job->actor);
        hk_table_add(&table, job->reason);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (listed->next[0] != '\0')
        (void)hk_buf_addf(out, "more: continue with --after %s\n", listed->next);
}

int hk_cmd_job_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_jobs);
}

/* ---- show, cancel ---- */

static bool has_ended(const struct hk_job *job)
{
    return job->status != HK_JOB_QUEUED && job->status != HK_JOB_RUNNING;
}

static void write_bar(struct hk_buf *out, const struct hk_job_progress *p)
{
    uint64_t total = p->total > p->done ? p->total : p->done;
    uint64_t filled = total > 0 ? p->done * BAR / total : 0;
    (void)hk_buf_addc(out, '[');
    for (uint64_t i = 0; i < BAR; i++)
        (void)hk_buf_addc(out, i < filled ? '#' : '.');
    (void)hk_buf_addf(out, "] %" PRIu64 " %%", total > 0 ? p->done * 100 / total : 0);
}

static void write_text(struct hk_buf *out, const char *name, struct hk_str text)
{
    if (text.len == 0)
        return;
    (void)hk_buf_addf(out, "%-10s ", name);
    (void)hk_table_safe(out, text, 2000);
    (void)hk_buf_addc(out, '\n');
}

static void write_times(struct hk_buf *out, const struct hk_job *job, int64_t now_ms)
{
    char text[64];
    (void)hk_buf_addf(out, "asked for  %s\n", hk_show_ago(job->created_ms, now_ms, text));
    if (job->started_ms != 0)
        (void)hk_buf_addf(out, "started    %s\n", hk_show_ago(job->started_ms, now_ms, text));
    if (job->ended_ms != 0)
        (void)hk_buf_addf(out, "ended      %s\n", hk_show_ago(job->ended_ms, now_ms, text));
}

struct items {
    struct hk_buf *out;
    uint64_t n;
};

static void write_item(void *arg, struct hk_str item)
{
    struct items *i = arg;
    if (i->n++ == 0)
        (void)hk_buf_adds(i->out, "what came of each:\n");
    hk_members_write(i->out, item);
    (void)hk_buf_addc(i->out, '\n');
}

/* The result keeps the first ones. */
static void write_items(struct hk_buf *out, const struct hk_job *job)
{
    struct items i = {.out = out};
    (void)hk_members_items(job->result, "items", write_item, &i);
    if (i.n > 0 && i.n < job->progress.done)
        (void)hk_buf_addf(out, " and %" PRIu64 " more\n", job->progress.done - i.n);
}

static void print_job(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_job_shown *shown = result;
    const struct hk_job *job = &shown->job;
    const struct hk_job_progress *p = &job->progress;
    (void)ask;
    (void)hk_buf_addf(out, "job %" PRId64 ": ", job->id);
    (void)hk_table_safe(out, job->operation, 60);
    (void)hk_buf_addf(out, ", %s ", hk_job_status_name(job->status));
    write_bar(out, p);
    (void)hk_buf_addf(out, "\nlooked at  %" PRIu64, p->done);
    if (p->total > 0)
        (void)hk_buf_addf(out, " of about %" PRIu64, p->total);
    (void)hk_buf_addf(out, "\nchanged    %" PRIu64 "\nfailed     %" PRIu64 "\n", p->changed, p->failed);
    if (job->act_id != 0)
        (void)hk_buf_addf(out,
                          "act        %" PRId64 " ('hikyaku audit show %" PRId64 "' lists what it changed)\n",
                          job->act_id, job->act_id);
    write_text(out, "error", job->error);
    write_text(out, "cancelled", job->cancelled_by);
    write_text(out, "", job->cancel_reason);
    write_text(out, "by", job->actor);
    write_text(out, "reason", job->reason);
    write_text(out, "relay", job->owner);
    write_text(out, "request", job->request);
    write_times(out, job, shown->now_ms);
    if (job->status == HK_JOB_RUNNING && job->cancelled_by.len > 0)
        (void)hk_buf_adds(out, "it ends before its next batch\n");
    write_items(out, job);
}

static void tell_progress(const struct hk_job *job)
{
    struct hk_buf bar;
    hk_buf_init(&bar, 256);
    write_bar(&bar, &job->progress);
    (void)fprintf(stderr, "\r%s  %" PRIu64 " looked at, %" PRIu64 " changed, %" PRIu64 " failed ",
                  hk_buf_cstr(&bar), job->progress.done, job->progress.changed, job->progress.failed);
    hk_buf_fini(&bar);
}

/* Until it has ended. Each look has memory of its own: a job may take long. */
static int wait_for_end(struct hk_ask *ask)
{
    const struct hk_job_shown *shown = ask->result;
    struct hk_pool mem = {.blocks = NULL};
    bool told = false;
    enum hk_code rc = HK_OK;
    for (;;) {
        rc = hk_desk_ask(&ask->desk, ask->op, &ask->caller, ask->request, &mem, ask->result, &ask->err);
        if (rc != HK_OK || has_ended(&shown->job))
            break;
        if (isatty(STDERR_FILENO) == 1) {
            tell_progress(&shown->job);
            told = true;
        }
        hk_pool_reset(&mem);
        (void)nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    }
    if (told)
        (void)fprintf(stderr, "\n");
    hk_pool_move(&mem, &ask->mem);
    return rc == HK_OK ? HK_EXIT_OK : hk_ask_failed(ask);
}

int hk_cmd_job_show(struct hk_cli *cli)
{
    struct hk_ask ask;
    bool to_the_end = hk_args_flag(cli, "wait");
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = to_the_end ? wait_for_end(&ask) : hk_ask_run(&ask);
    if (code == HK_EXIT_OK) {
        const struct hk_job_shown *shown = ask.result;
        code = hk_ask_print(&ask, print_job);
        if (code == HK_EXIT_OK && to_the_end && shown->job.status != HK_JOB_DONE)
            code = HK_EXIT_FAILURE;
    }
    hk_ask_end(&ask);
    return code;
}

int hk_cmd_job_cancel(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_job);
}

/* ---- start ---- */

static void print_started(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_job_shown *shown = result;
    (void)ask;
    (void)hk_buf_addf(out,
                      "job %" PRId64 " waits for a relay\n"
                      "follow it: hikyaku job show %" PRId64 " --wait; stop it: hikyaku job cancel %" PRId64
                      "\n",
                      shown->job.id, shown->job.id, shown->job.id);
}

int hk_job_start_and_say(struct hk_ask *ask)
{
    struct hk_job_shown *shown = hk_pool_alloc(&ask->mem, 1, sizeof *shown);
    ask->caller.background = true;
    if (shown == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    if (hk_job_check(ask->op, ask->request, &ask->err) != HK_OK)
        return hk_ask_error(&ask->err);
    int code = hk_ask_also(ask, ask->op, ask->request, shown);
    if (code != HK_EXIT_OK)
        return code;
    ask->op = &hk_op_job_show; /* whose result it is */
    ask->result = shown;
    return hk_ask_print(ask, print_started);
}
