/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku redrive plan, start, list, show, cancel */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/redrive.h"

enum {
    BAR = 30,
};

#define FOLLOW_MS 1000

/* ---- plan, start ---- */

static void write_groups(struct hk_buf *out, const struct hk_letter_groups *groups)
{
    static const struct hk_table_column columns[] = {{.title = "LETTERS", .right = true},
                                                     {.title = "MAYBE ARRIVED", .right = true},
                                                     {.title = "DESTINATION", .max_width = 30},
                                                     {.title = "REASON", .max_width = 24},
                                                     {.title = "GROUP"}};
    struct hk_table table;
    char number[HK_SHOW_NUMBER];
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < groups->n; i++) {
        hk_table_adds(&table, hk_show_count(groups->items[i].n, number));
        hk_table_adds(&table, hk_show_count(groups->items[i].maybe, number));
        hk_table_add(&table, hk_say_to(groups->items[i].destination));
        hk_table_add(&table, groups->items[i].reason);
        hk_table_add(&table, groups->items[i].fingerprint);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (groups->more)
        (void)hk_buf_adds(out, "…\n");
}

static void write_hints(struct hk_buf *out, const struct hk_redrive_plan *plan)
{
    char number[HK_SHOW_NUMBER];
    if (plan->groups.maybe > 0)
        (void)hk_buf_addf(out,
                          "%s of these letters may have arrived: a receiver that does not know repeated "
                          "message ids acts on them twice\n",
                          hk_show_count(plan->groups.maybe, number));
    if (plan->paused != NULL)
        (void)hk_buf_addf(
            out,
            "%s is paused: the redrive waits at its first letter to it until 'hikyaku destinations resume'\n",
            plan->paused);
    if (plan->unknown != NULL)
        (void)hk_buf_addf(out, "%s is not configured: messages that are requeued to it die again\n",
                          plan->unknown);
}

static void write_plan(struct hk_buf *out, const struct hk_redrive_plan *plan)
{
    char number[48], rate[HK_SHOW_NUMBER], eta[HK_SHOW_NUMBER];
    (void)hk_buf_addf(out, "%s letters fit: ", hk_say_count(plan->count, number));
    (void)hk_table_safe(out, hk_str_of(plan->filter), 1000);
    (void)hk_buf_adds(out, "\n");
    if (plan->count.n == 0)
        return;
    write_groups(out, &plan->groups);
    (void)hk_buf_addf(out, "at %s/s%s%s: about %s", hk_show_rate(plan->pace.rate_per_s, rate),
                      plan->pace.ramp_ms > 0 ? ", ramping up over a minute" : "",
                      plan->pace.canary > 0 ? ", after the canary" : "", hk_show_duration(plan->eta_ms, eta));
    if (plan->pace.abort_ratio > 0)
        (void)hk_buf_addf(out, "; stops when more than %.0f %% fail", plan->pace.abort_ratio * 100);
    (void)hk_buf_adds(out, "\n");
    if (!plan->relay_runs)
        (void)hk_buf_adds(out, "no relay is running: it would begin when one does\n");
    write_hints(out, plan);
}

static void print_plan(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    (void)ask;
    write_plan(out, result);
}

int hk_cmd_redrive_plan(struct hk_cli *cli)
{
    return hk_looking_once(cli, print_plan);
}

static void print_started(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_redrive_plan *plan = result;
    char number[48], eta[HK_SHOW_NUMBER];
    (void)ask;
    if (plan->id == 0) {
        write_plan(out, plan);
        return;
    }
    (void)hk_buf_addf(
        out,
        "redrive %" PRId64 " started: %s letters, about %s\n"
        "follow it: hikyaku redrive show %" PRId64 " --follow; stop it: hikyaku redrive cancel %" PRId64 "\n",
        plan->id, hk_say_count(plan->count, number), hk_show_duration(plan->eta_ms, eta), plan->id, plan->id);
    if (!plan->relay_runs)
        (void)hk_buf_adds(out, "no relay is running: it begins when one does\n");
    write_hints(out, plan);
}

/* Looks first, and asks. What runs already is refused without a question. */
static int confirm_start(struct hk_ask *ask)
{
    struct hk_redrive_ask look = *(const struct hk_redrive_ask *)ask->request;
    struct hk_redrive_plan plan;
    char number[48], question[128];
    if (look.dry_run || hk_args_flag(ask->cli, "yes"))
        return HK_EXIT_OK;
    look.dry_run = true;
    int code = hk_looking_also(ask, ask->op, &look, &plan);
    if (code != HK_EXIT_OK || plan.twin != 0)
        return code;
    (void)snprintf(question, sizeof question, "Requeue %s dead letters?", hk_say_count(plan.count, number));
    return hk_dead_confirm(ask->cli, question);
}

int hk_cmd_redrive_start(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = confirm_start(&ask);
    if (code == HK_EXIT_OK)
        code = hk_looking_also(&ask, ask.op, ask.request, ask.result);
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print_started);
    hk_ask_end(&ask);
    return code;
}

/* ---- list ---- */

static void write_jobs(struct hk_buf *out, const struct hk_redrive_jobs *jobs)
{
    static const struct hk_table_column columns[] = {{.title = "ID", .right = true},
                                                     {.title = "STATUS"},
                                                     {.title = "REQUEUED", .right = true},
                                                     {.title = "OF", .right = true},
                                                     {.title = "ARRIVED", .right = true},
                                                     {.title = "FAILED", .right = true},
                                                     {.title = "STARTED"},
                                                     {.title = "BY", .max_width = 20},
                                                     {.title = "FILTER", .max_width = 50}};
    struct hk_table table;
    char text[64];
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < jobs->n; i++) {
        const struct hk_redrive_job *job = &jobs->items[i];
        const uint64_t numbers[] = {job->facts.requeued, job->facts.total, job->facts.resolved,
                                    job->facts.failed};
        (void)snprintf(text, sizeof text, "%" PRId64, job->id);
        hk_table_adds(&table, text);
        hk_table_adds(&table, hk_redrive_status_name(job->status));
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            hk_table_adds(&table, hk_show_count(numbers[k], text));
        hk_table_adds(&table, hk_show_ago(job->created_ms, jobs->now_ms, text));
        hk_table_add(&table, job->actor);
        hk_table_add(&table, job->filter);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void print_jobs(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_redrive_jobs *jobs = result;
    (void)ask;
    if (jobs->n == 0)
        (void)hk_buf_adds(out, "no redrives\n");
    else
        write_jobs(out, jobs);
}

int hk_cmd_redrive_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_jobs);
}

/* ---- show, cancel ---- */

static void write_bar(struct hk_buf *out, const struct hk_redrive_facts *f)
{
    uint64_t total = f->total > f->requeued ? f->total : f->requeued;
    uint64_t filled = total > 0 ? f->requeued * BAR / total : BAR;
    (void)hk_buf_addc(out, '[');
    for (uint64_t i = 0; i < BAR; i++)
        (void)hk_buf_addc(out, i < filled ? '#' : '.');
    (void)hk_buf_addf(out, "] %" PRIu64 " %%", total > 0 ? f->requeued * 100 / total : 100);
}

static void write_job(struct hk_buf *out, const struct hk_redrive_job *job, int64_t now_ms)
{
    const struct hk_redrive_facts *f = &job->facts;
    char rate[HK_SHOW_NUMBER], text[64];
    (void)hk_buf_addf(out, "redrive %" PRId64 ": %s ", job->id, hk_redrive_status_name(job->status));
    write_bar(out, f);
    (void)hk_buf_addf(out, "\nrequeued   %" PRIu64 " of %" PRIu64, f->requeued,
                      f->total > f->requeued ? f->total : f->requeued);
    if (job->later > 0)
        (void)hk_buf_addf(out, " (%" PRIu64 " matched only after the start)", job->later);
    (void)hk_buf_addf(out,
                      "\narrived    %" PRIu64 "\nfailed     %" PRIu64 "\non the way %" PRIu64 " (%" PRIu64
                      " of them failed at least once)\n",
                      f->resolved, f->failed, hk_redrive_waiting(f), f->struggling);
    (void)hk_buf_addf(out, "rate       %s/s%s, canary %" PRIu32 ", stops at %.0f %% failing\n",
                      hk_show_rate(job->pace.rate_per_s > 0 ? job->pace.rate_per_s : HK_REDRIVE_RATE, rate),
                      job->pace.ramp_ms > 0 ? " after a ramp" : "", job->pace.canary,
                      job->pace.abort_ratio * 100);
    (void)hk_buf_adds(out, "filter     ");
    (void)hk_table_safe(out, job->filter, 1000);
    (void)hk_buf_adds(out, "\nby         ");
    (void)hk_table_safe(out, job->actor, 200);
    (void)hk_buf_adds(out, ": ");
    (void)hk_table_safe(out, job->reason, 500);
    (void)hk_buf_addf(out, ", %s\n", hk_show_ago(job->created_ms, now_ms, text));
    if (job->status == HK_REDRIVE_RUNNING && job->held.len > 0) {
        (void)hk_buf_adds(out, "waits      ");
        (void)hk_table_safe(out, job->held, 100);
        (void)hk_buf_adds(out, " is paused: the redrive continues after 'hikyaku destinations resume'\n");
    }
    if (job->status == HK_REDRIVE_RUNNING) {
        (void)hk_buf_addf(out, "left       about %s\n", hk_show_duration(job->eta_ms, rate));
        return;
    }
    (void)hk_buf_addf(out, "ended      %s", hk_show_ago(job->ended_ms, now_ms, text));
    (void)hk_buf_adds(out, job->ending.len > 0 ? ": " : "");
    (void)hk_table_safe(out, job->ending, 500);
    (void)hk_buf_addc(out, '\n');
}

static void print_job(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_redrive_shown *shown = result;
    (void)ask;
    write_job(out, &shown->job, shown->now_ms);
}

static void tell_progress(const struct hk_redrive_job *job)
{
    struct hk_buf bar;
    hk_buf_init(&bar, 256);
    write_bar(&bar, &job->facts);
    (void)fprintf(stderr, "\r%s  %" PRIu64 " requeued, %" PRIu64 " arrived, %" PRIu64 " failed ",
                  hk_buf_cstr(&bar), job->facts.requeued, job->facts.resolved, job->facts.failed);
    hk_buf_fini(&bar);
}

/* Until it has ended. Each look has memory of its own: a job may take days. */
static int follow(struct hk_ask *ask)
{
    const struct hk_redrive_shown *shown = ask->result;
    struct hk_pool mem = {.blocks = NULL};
    bool told = false;
    enum hk_code rc = HK_OK;
    for (;;) {
        rc = hk_desk_ask(&ask->desk, ask->op, &ask->caller, ask->request, &mem, ask->result, &ask->err);
        if (rc != HK_OK || shown->job.status != HK_REDRIVE_RUNNING)
            break;
        if (isatty(STDERR_FILENO) == 1) {
            tell_progress(&shown->job);
            told = true;
        }
        hk_pool_reset(&mem);
        (void)nanosleep(&(struct timespec){.tv_sec = FOLLOW_MS / 1000}, NULL);
    }
    if (told)
        (void)fprintf(stderr, "\n");
    hk_pool_move(&mem, &ask->mem);
    return rc == HK_OK ? HK_EXIT_OK : hk_ask_failed(ask);
}

int hk_cmd_redrive_show(struct hk_cli *cli)
{
    struct hk_ask ask;
    bool to_the_end = hk_args_flag(cli, "follow");
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = to_the_end ? follow(&ask) : hk_ask_run(&ask);
    if (code == HK_EXIT_OK) {
        const struct hk_redrive_shown *shown = ask.result;
        code = hk_ask_print(&ask, print_job);
        if (code == HK_EXIT_OK && to_the_end && shown->job.status == HK_REDRIVE_ABORTED)
            code = HK_EXIT_FAILURE;
    }
    hk_ask_end(&ask);
    return code;
}

int hk_cmd_redrive_cancel(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_job);
}
