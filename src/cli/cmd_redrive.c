/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku redrive: many dead letters requeued by a job that the relays work on: at a rate, with a canary, and only as long as it
 * goes well. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"

enum {
    GROUPS_SHOWN = 20,
    BAR = 30,
};

#define RAMP_MS   60000
#define FOLLOW_MS 1000
#define NEAR_MS   INT64_C(600000)

/* ---- what is asked for ---- */

/* "20%", or 0.2 as 20. False: said why not. */
static bool read_percent(const struct hk_cli *cli, const char *option, double *out_ratio)
{
    const char *text = hk_args_value(cli, option);
    uint64_t percent = 0;
    if (text == NULL)
        return true;
    struct hk_str digits = hk_str_of(text);
    if (digits.len > 0 && digits.ptr[digits.len - 1] == '%')
        digits.len--;
    if (hk_parse_u64(digits, &percent, NULL) != HK_OK || percent > 100) {
        (void)hk_out_error(HK_EXIT_USAGE, "--%s: a percentage like 20%% is expected", option);
        return false;
    }
    *out_ratio = (double)percent / 100;
    return true;
}

static bool read_pace(const struct hk_cli *cli, struct hk_redrive_pace *out)
{
    uint64_t canary = 0;
    *out = (struct hk_redrive_pace){.rate_per_s = HK_REDRIVE_RATE, .abort_ratio = 0.2};
    if (!hk_args_rate(cli, "rate", 0.001, 100000, &out->rate_per_s) ||
        !hk_args_u64(cli, "canary", 0, 10000, &canary) ||
        !read_percent(cli, "abort-if-failing", &out->abort_ratio))
        return false;
    out->canary = (uint32_t)canary;
    out->ramp_ms = hk_args_flag(cli, "ramp") ? RAMP_MS : 0;
    return true;
}

/* Only open letters are requeued. False: said that none are meant. */
static bool only_open(struct hk_dead_filter *filter)
{
    const unsigned open = 1u << HK_LETTER_FAILED;
    if (filter->query.statuses != 0 && (filter->query.statuses & open) == 0) {
        (void)hk_out_error(HK_EXIT_USAGE,
                           "only open letters (status:failed) are redriven, and none are meant; "
                           "'dead restore' opens what was discarded");
        return false;
    }
    filter->query.statuses = open;
    return true;
}

/* ---- plan ---- */

struct plan {
    struct hk_count count;
    struct hk_redrive_pace pace;
    uint64_t eta_ms;
    const struct hk_letter_groups *groups;
    bool relay_runs;
    char paused[HK_SHOW_MAX],
        unknown[HK_SHOW_MAX]; /* a destination at which it would not get far; "" = none */
};

/* Of the destinations in the plan, one that is paused, and one that is not in the configuration. */
static void look_at_destinations(const struct hk_dead *dead, const struct hk_names *paused, struct plan *plan)
{
    for (size_t i = 0; i < plan->groups->n; i++) {
        struct hk_str name = plan->groups->items[i].destination;
        if (hk_operate_destination(dead->op.config, name) == NULL)
            (void)hk_show(name, plan->unknown);
        if (hk_dead_is_paused(paused, name))
            (void)hk_show(name, plan->paused);
    }
}

/* One look at the letters: what the groups hold is the count. */
static enum hk_code look_at_letters(const struct hk_dead *dead, const struct hk_letter_query *query,
                                    struct plan *plan, struct hk_err *err)
{
    struct hk_letter_query told = *query;
    struct hk_dead_seen seen;
    hk_dead_seen_begin(&seen, &told);
    enum hk_code rc = dead->letters->groups(dead->op.admin, &told, GROUPS_SHOWN, &plan->groups, err);
    hk_dead_seen_end(&seen);
    if (rc != HK_OK)
        return rc;
    plan->count = (struct hk_count){.n = plan->groups->letters, .about = plan->groups->partial};
    return HK_OK;
}

static enum hk_code make_plan(const struct hk_dead *dead, const struct hk_letter_query *query,
                              struct plan *plan, struct hk_err *err)
{
    const struct hk_relays *relays = NULL;
    const struct hk_names *paused = NULL;
    enum hk_code rc = dead->op.ops->relays(dead->op.admin, &relays, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < relays->n; i++)
        plan->relay_runs = plan->relay_runs || relays->items[i].running;
    int64_t now_ms = relays->now_ms;
    rc = dead->letters->paused(dead->op.admin, &paused, err);
    if (rc == HK_OK)
        rc = look_at_letters(dead, query, plan, err);
    if (rc != HK_OK)
        return rc;
    struct hk_redrive_facts facts = {.started_ms = now_ms, .total = plan->count.n};
    plan->eta_ms = hk_redrive_eta_ms(&plan->pace, &facts, now_ms);
    look_at_destinations(dead, paused, plan);
    return HK_OK;
}

static void put_pace(struct hk_json *json, const struct hk_redrive_pace *pace)
{
    hk_put_double(json, "rate_per_s", pace->rate_per_s > 0 ? pace->rate_per_s : HK_REDRIVE_RATE);
    hk_put_u64(json, "ramp_ms", pace->ramp_ms);
    hk_put_u64(json, "canary", pace->canary);
    hk_put_double(json, "abort_if_failing", pace->abort_ratio);
}

static void put_plan(struct hk_json *json, const struct hk_dead_filter *filter, const struct plan *plan)
{
    hk_put_str(json, "filter", hk_buf_str(&filter->text));
    hk_put_count(json, "letters", plan->count);
    hk_put_u64(json, "may_have_arrived", plan->groups->maybe);
    put_pace(json, &plan->pace);
    hk_put_u64(json, "estimated_ms", plan->eta_ms);
    hk_put_bool(json, "relay_running", plan->relay_runs);
    hk_put_cstr(json, "paused_destination", plan->paused[0] != '\0' ? plan->paused : NULL);
    hk_put_cstr(json, "unknown_destination", plan->unknown[0] != '\0' ? plan->unknown : NULL);
    hk_json_key(json, "groups");
    hk_json_array(json);
    for (size_t i = 0; i < plan->groups->n; i++) {
        const struct hk_letter_group *g = &plan->groups->items[i];
        hk_json_object(json);
        hk_put_str(json, "group", g->fingerprint);
        hk_put_str(json, "destination", g->destination);
        hk_put_str(json, "reason_code", g->reason);
        hk_put_u64(json, "letters", g->n);
        hk_put_u64(json, "may_have_arrived", g->maybe);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void write_groups(struct hk_buf *out, const struct hk_letter_groups *groups)
{
    static const struct hk_table_column columns[] = {{.title = "LETTERS", .right = true},
                                                     {.title = "MAYBE ARRIVED", .right = true},
                                                     {.title = "DESTINATION", .max_width = 30},
                                                     {.title = "REASON", .max_width = 24},
                                                     {.title = "GROUP"}};
    struct hk_table table;
    char number[HK_OUT_TEXT];
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < groups->n; i++) {
        hk_table_adds(&table, hk_out_count(groups->items[i].n, number));
        hk_table_adds(&table, hk_out_count(groups->items[i].maybe, number));
        hk_table_add(&table, hk_operate_to(groups->items[i].destination));
        hk_table_add(&table, groups->items[i].reason);
        hk_table_add(&table, groups->items[i].fingerprint);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (groups->more)
        (void)hk_buf_adds(out, "…\n");
}

static void write_hints(struct hk_buf *out, const struct plan *plan)
{
    char number[HK_OUT_TEXT];
    if (plan->groups->maybe > 0)
        (void)hk_buf_addf(out,
                          "%s of these letters may have arrived: a receiver that does not know repeated "
                          "message ids acts on them twice\n",
                          hk_out_count(plan->groups->maybe, number));
    if (plan->paused[0] != '\0')
        (void)hk_buf_addf(
            out,
            "%s is paused: the redrive waits at its first letter to it until 'hikyaku destinations resume'\n",
            plan->paused);
    if (plan->unknown[0] != '\0')
        (void)hk_buf_addf(out, "%s is not configured: what is requeued to it dies again\n", plan->unknown);
}

static void write_plan(struct hk_buf *out, const struct hk_dead_filter *filter, const struct plan *plan)
{
    char number[48], rate[HK_OUT_TEXT], eta[HK_OUT_TEXT];
    (void)hk_buf_addf(out, "%s letters fit: ", hk_operate_count(plan->count, number));
    (void)hk_table_safe(out, hk_buf_str(&filter->text), 1000);
    (void)hk_buf_adds(out, "\n");
    if (plan->count.n == 0)
        return;
    write_groups(out, plan->groups);
    (void)hk_buf_addf(out, "at %s/s%s%s: about %s", hk_out_rate(plan->pace.rate_per_s, rate),
                      plan->pace.ramp_ms > 0 ? ", ramping up over a minute" : "",
                      plan->pace.canary > 0 ? ", after the canary" : "", hk_out_duration(plan->eta_ms, eta));
    if (plan->pace.abort_ratio > 0)
        (void)hk_buf_addf(out, "; stops when more than %.0f %% fail", plan->pace.abort_ratio * 100);
    (void)hk_buf_adds(out, "\n");
    if (!plan->relay_runs)
        (void)hk_buf_adds(out, "no relay is running: it would begin when one does\n");
    write_hints(out, plan);
}

static int show_plan(const struct hk_cli *cli, const struct hk_dead_filter *filter, const struct plan *plan)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        put_plan(&json, filter, plan);
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else {
        write_plan(&out, filter, plan);
    }
    return hk_out_buffer(&out);
}

int hk_cmd_redrive_plan(struct hk_cli *cli)
{
    struct hk_dead dead;
    struct hk_dead_filter filter;
    struct plan plan = {.groups = NULL};
    struct hk_err err = {.message = ""};
    if (!read_pace(cli, &plan.pace))
        return HK_EXIT_USAGE;
    int code = hk_dead_filter(cli, false, &filter);
    if (code != HK_EXIT_OK)
        return code;
    code = only_open(&filter) ? hk_dead_open(cli, &dead) : HK_EXIT_USAGE;
    if (code == HK_EXIT_OK) {
        code = make_plan(&dead, &filter.query, &plan, &err) == HK_OK ? show_plan(cli, &filter, &plan)
                                                                     : hk_operate_failed(&err);
        hk_dead_close(&dead);
    }
    hk_dead_filter_free(&filter);
    return code;
}

/* ---- start ---- */

static int report_started(const struct hk_cli *cli, int64_t id, const struct hk_dead_filter *filter,
                          const struct plan *plan)
{
    struct hk_buf out;
    struct hk_json json;
    char number[48], eta[HK_OUT_TEXT];
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_id(&json, "redrive", id);
        put_plan(&json, filter, plan);
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else {
        (void)hk_buf_addf(&out,
                          "redrive %" PRId64 " started: %s letters, about %s\n"
                          "follow it: hikyaku redrive show %" PRId64
                          " --follow; stop it: hikyaku redrive cancel %" PRId64 "\n",
                          id, hk_operate_count(plan->count, number), hk_out_duration(plan->eta_ms, eta), id,
                          id);
        if (!plan->relay_runs)
            (void)hk_buf_adds(&out, "no relay is running: it begins when one does\n");
        write_hints(&out, plan);
    }
    return hk_out_buffer(&out);
}

/* Ages are points in time by now, and differ between two clicks. */
static bool are_near(int64_t a_ms, int64_t b_ms)
{
    int64_t apart = a_ms > b_ms ? a_ms - b_ms : b_ms - a_ms;
    return (a_ms != 0) == (b_ms != 0) && apart <= NEAR_MS;
}

static bool same_but_for_times(const struct hk_filter *a, const struct hk_letter_query *a_query,
                               const struct hk_filter *b)
{
    struct hk_letter_query one = *a_query, other = *hk_filter_query(b);
    struct hk_buf one_text, other_text;
    if (!are_near(one.since_ms, other.since_ms) || !are_near(one.before_ms, other.before_ms))
        return false;
    one.since_ms = one.before_ms = other.since_ms = other.before_ms = 0;
    one.statuses = other.statuses = 1u << HK_LETTER_FAILED;
    hk_buf_init(&one_text, (size_t)4 * HK_FILTER_TEXT_MAX);
    hk_buf_init(&other_text, (size_t)4 * HK_FILTER_TEXT_MAX);
    hk_filter_text(a, &one, &one_text);
    hk_filter_text(b, &other, &other_text);
    bool same = hk_buf_status(&one_text) == HK_OK && hk_buf_status(&other_text) == HK_OK &&
                hk_str_eq(hk_buf_str(&one_text), hk_buf_str(&other_text));
    hk_buf_fini(&one_text);
    hk_buf_fini(&other_text);
    return same;
}

static int refuse_twin(int64_t id)
{
    return hk_out_error(HK_EXIT_TEMPORARY,
                        "redrive %" PRId64
                        " of the same letters runs already: follow it with 'hikyaku redrive "
                        "show %" PRId64 " --follow', or cancel it first",
                        id, id);
}

/* A second click, or a command that was killed and typed again. (Two at the same moment are the store's to tell apart.) */
static int check_twins(const struct hk_dead *dead, const struct hk_dead_filter *filter)
{
    const struct hk_redrive_jobs *jobs = NULL;
    struct hk_err err = {.message = ""};
    char text[HK_FILTER_TEXT_MAX + 1];
    int64_t twin = 0;
    if (dead->letters->redrive_list(dead->op.admin, 0, true, &jobs, &err) != HK_OK)
        return hk_operate_failed(&err);
    for (size_t i = 0; i < jobs->n && twin == 0; i++) {
        struct hk_filter *other = NULL;
        if (!hk_str_copy(text, sizeof text, jobs->items[i].filter) ||
            hk_filter_parse(text, 0, &other, NULL) != HK_OK)
            continue;
        if (same_but_for_times(filter->parsed, &filter->query, other))
            twin = jobs->items[i].id;
        hk_filter_free(other);
    }
    return twin != 0 ? refuse_twin(twin) : HK_EXIT_OK;
}

static int start(const struct hk_cli *cli, const struct hk_dead *dead, const struct hk_dead_filter *filter,
                 struct hk_redrive_job *job)
{
    struct plan plan = {.pace = job->pace};
    struct hk_err err = {.message = ""};
    char number[48], question[128];
    int64_t id = 0;
    int code = hk_args_flag(cli, "dry-run") ? HK_EXIT_OK : check_twins(dead, filter);
    if (code != HK_EXIT_OK)
        return code;
    if (make_plan(dead, &filter->query, &plan, &err) != HK_OK)
        return hk_operate_failed(&err);
    if (plan.count.n == 0)
        return hk_out_error(HK_EXIT_FAILURE, "no letter fits: there is nothing to redrive");
    if (hk_args_flag(cli, "dry-run"))
        return show_plan(cli, filter, &plan);
    (void)snprintf(question, sizeof question, "Requeue %s dead letters?",
                   hk_operate_count(plan.count, number));
    code = hk_dead_confirm(cli, question);
    if (code != HK_EXIT_OK)
        return code;
    job->filter = hk_buf_str(&filter->text);
    job->facts.total = plan.count.n;
    enum hk_code rc = dead->letters->redrive_start(dead->op.admin, &filter->query, job, &id, &err);
    if (rc == HK_CONFLICT)
        return hk_out_error(HK_EXIT_TEMPORARY, "%s", err.message);
    if (rc != HK_OK)
        return hk_operate_failed(&err);
    return report_started(cli, id, filter, &plan);
}

int hk_cmd_redrive_start(struct hk_cli *cli)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX];
    struct hk_dead dead;
    struct hk_dead_filter filter;
    struct hk_redrive_job job = {.id = 0};
    if (!hk_dead_filter_given(cli))
        return hk_out_error(HK_EXIT_USAGE,
                            "say which letters: --filter, --destination, --group, or --status failed for all "
                            "that are open");
    if (!read_pace(cli, &job.pace) || !hk_dead_ids(cli, &job.ids))
        return HK_EXIT_USAGE;
    const char *why = hk_args_flag(cli, "dry-run") ? "" : hk_operate_reason(cli, reason);
    if (why == NULL)
        return HK_EXIT_USAGE;
    job.actor = hk_str_of(hk_settings_actor(cli, actor));
    job.reason = hk_str_of(why);
    int code = hk_dead_filter(cli, false, &filter);
    if (code != HK_EXIT_OK)
        return code;
    code = only_open(&filter) ? hk_dead_open(cli, &dead) : HK_EXIT_USAGE;
    if (code == HK_EXIT_OK) {
        code = start(cli, &dead, &filter, &job);
        hk_dead_close(&dead);
    }
    hk_dead_filter_free(&filter);
    return code;
}

/* ---- list, show ---- */

static uint64_t waiting(const struct hk_redrive_facts *f)
{
    uint64_t known = f->resolved + f->failed;
    return f->requeued > known ? f->requeued - known : 0;
}

static void put_job(struct hk_json *json, const struct hk_redrive_job *job, int64_t now_ms)
{
    const struct hk_redrive_facts *f = &job->facts;
    hk_put_id(json, "id", job->id);
    hk_put_cstr(json, "status", hk_redrive_status_name(job->status));
    hk_put_str(json, "filter", job->filter);
    put_pace(json, &job->pace);
    hk_put_u64(json, "total", f->total);
    hk_put_u64(json, "requeued", f->requeued);
    hk_put_u64(json, "resolved", f->resolved);
    hk_put_u64(json, "failed", f->failed);
    hk_put_u64(json, "struggling", f->struggling);
    hk_put_u64(json, "waiting", waiting(f));
    hk_put_str(json, "actor", job->actor);
    hk_put_str(json, "reason", job->reason);
    hk_put_time(json, "created_at", job->created_ms);
    hk_put_time(json, "started_at", f->started_ms);
    hk_put_time(json, "ended_at", job->ended_ms);
    hk_put_str(json, "ending", job->ending);
    hk_put_str(json, "paused_destination",
               job->status == HK_REDRIVE_RUNNING ? job->held : (struct hk_str){0});
    hk_json_key(json, "estimated_ms");
    if (job->status == HK_REDRIVE_RUNNING)
        hk_json_u64(json, hk_redrive_eta_ms(&job->pace, f, now_ms));
    else
        hk_json_null(json);
}

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
    char rate[HK_OUT_TEXT], text[64];
    (void)hk_buf_addf(out, "redrive %" PRId64 ": %s ", job->id, hk_redrive_status_name(job->status));
    write_bar(out, f);
    (void)hk_buf_addf(out,
                      "\nrequeued   %" PRIu64 " of %" PRIu64 "\narrived    %" PRIu64 "\nfailed     %" PRIu64
                      "\non the way %" PRIu64 " (%" PRIu64 " of them failed at least once)\n",
                      f->requeued, f->total, f->resolved, f->failed, waiting(f), f->struggling);
    (void)hk_buf_addf(out, "rate       %s/s%s, canary %" PRIu32 ", stops at %.0f %% failing\n",
                      hk_out_rate(job->pace.rate_per_s > 0 ? job->pace.rate_per_s : HK_REDRIVE_RATE, rate),
                      job->pace.ramp_ms > 0 ? " after a ramp" : "", job->pace.canary,
                      job->pace.abort_ratio * 100);
    (void)hk_buf_adds(out, "filter     ");
    (void)hk_table_safe(out, job->filter, 1000);
    (void)hk_buf_adds(out, "\nby         ");
    (void)hk_table_safe(out, job->actor, 200);
    (void)hk_buf_adds(out, ": ");
    (void)hk_table_safe(out, job->reason, 500);
    (void)hk_buf_addf(out, ", %s\n", hk_operate_ago(job->created_ms, now_ms, text));
    if (job->status == HK_REDRIVE_RUNNING && job->held.len > 0) {
        (void)hk_buf_adds(out, "waits      ");
        (void)hk_table_safe(out, job->held, 100);
        (void)hk_buf_adds(out, " is paused: it goes on after 'hikyaku destinations resume'\n");
    }
    if (job->status == HK_REDRIVE_RUNNING) {
        (void)hk_buf_addf(out, "left       about %s\n",
                          hk_out_duration(hk_redrive_eta_ms(&job->pace, f, now_ms), rate));
        return;
    }
    (void)hk_buf_addf(out, "ended      %s", hk_operate_ago(job->ended_ms, now_ms, text));
    (void)hk_buf_adds(out, job->ending.len > 0 ? ": " : "");
    (void)hk_table_safe(out, job->ending, 500);
    (void)hk_buf_addc(out, '\n');
}

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
            hk_table_adds(&table, hk_out_count(numbers[k], text));
        hk_table_adds(&table, hk_operate_ago(job->created_ms, jobs->now_ms, text));
        hk_table_add(&table, job->actor);
        hk_table_add(&table, job->filter);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static int print_list(const struct hk_cli *cli, const struct hk_redrive_jobs *jobs)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_json_key(&json, "items");
        hk_json_array(&json);
        for (size_t i = 0; i < jobs->n; i++) {
            hk_json_object(&json);
            put_job(&json, &jobs->items[i], jobs->now_ms);
            hk_json_end(&json);
        }
        hk_json_end(&json);
        hk_put_cstr(&json, "next", NULL);
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else if (jobs->n == 0) {
        (void)hk_buf_adds(&out, "no redrives\n");
    } else {
        write_jobs(&out, jobs);
    }
    return hk_out_buffer(&out);
}

int hk_cmd_redrive_list(struct hk_cli *cli)
{
    struct hk_dead dead;
    const struct hk_redrive_jobs *jobs = NULL;
    struct hk_err err = {.message = ""};
    int code = hk_dead_open(cli, &dead);
    if (code != HK_EXIT_OK)
        return code;
    if (dead.letters->redrive_list(dead.op.admin, 0, hk_args_flag(cli, "running"), &jobs, &err) != HK_OK)
        code = hk_operate_failed(&err);
    else
        code = print_list(cli, jobs);
    hk_dead_close(&dead);
    return code;
}

static int print_job(const struct hk_cli *cli, const struct hk_redrive_job *job, int64_t now_ms)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        put_job(&json, job, now_ms);
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else {
        write_job(&out, job, now_ms);
    }
    return hk_out_buffer(&out);
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

/* Until it has ended, when that was asked for. */
static int show(const struct hk_cli *cli, const struct hk_dead *dead, int64_t id)
{
    const struct hk_redrive_jobs *jobs = NULL;
    struct hk_err err = {.message = ""};
    bool follow = hk_args_flag(cli, "follow"), told = false;
    for (;;) {
        if (dead->letters->redrive_list(dead->op.admin, id, false, &jobs, &err) != HK_OK)
            return hk_operate_failed(&err);
        if (jobs->n == 0)
            return hk_out_error(HK_EXIT_FAILURE, "there is no redrive %" PRId64, id);
        if (!follow || jobs->items[0].status != HK_REDRIVE_RUNNING)
            break;
        if (isatty(STDERR_FILENO) == 1) {
            tell_progress(&jobs->items[0]);
            told = true;
        }
        (void)nanosleep(&(struct timespec){.tv_sec = FOLLOW_MS / 1000}, NULL);
    }
    if (told)
        (void)fprintf(stderr, "\n");
    int code = print_job(cli, &jobs->items[0], jobs->now_ms);
    return code == HK_EXIT_OK && follow && jobs->items[0].status == HK_REDRIVE_ABORTED ? HK_EXIT_FAILURE
                                                                                       : code;
}

static bool read_id(const struct hk_cli *cli, int64_t *out)
{
    uint64_t id = 0;
    if (hk_parse_u64(hk_str_of(cli->operands[0]), &id, NULL) != HK_OK || id == 0 || id > INT64_MAX) {
        (void)hk_out_error(HK_EXIT_USAGE, "the number of a redrive is expected (hikyaku redrive list)");
        return false;
    }
    *out = (int64_t)id;
    return true;
}

int hk_cmd_redrive_show(struct hk_cli *cli)
{
    struct hk_dead dead;
    int64_t id = 0;
    if (!read_id(cli, &id))
        return HK_EXIT_USAGE;
    int code = hk_dead_open(cli, &dead);
    if (code != HK_EXIT_OK)
        return code;
    code = show(cli, &dead, id);
    hk_dead_close(&dead);
    return code;
}

/* ---- cancel ---- */

int hk_cmd_redrive_cancel(struct hk_cli *cli)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX];
    struct hk_dead dead;
    struct hk_err err = {.message = ""};
    int64_t id = 0;
    if (!read_id(cli, &id))
        return HK_EXIT_USAGE;
    const char *why = hk_operate_reason(cli, reason);
    if (why == NULL)
        return HK_EXIT_USAGE;
    int code = hk_dead_open(cli, &dead);
    if (code != HK_EXIT_OK)
        return code;
    if (dead.letters->redrive_cancel(dead.op.admin, id, hk_settings_actor(cli, actor), why, &err) != HK_OK)
        code = hk_operate_failed(&err);
    else
        code = show(cli, &dead, id);
    hk_dead_close(&dead);
    return code;
}
