/* SPDX-License-Identifier: Apache-2.0 */
/* Redrives: plan one, start it, show its progress. The relays do the work (src/relay/redrive.c). */
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "desk/dead.h"
#include "desk/definitions.h"
#include "desk/forms.h"
#include "desk/redrive.h"
#include "desk/words.h"

enum {
    GROUPS_SHOWN = 20,
    PERCENT_DEFAULT = 20,
};

#define RAMP_MS 60000
#define NEAR_MS INT64_C(600000)

/* ---- what is asked for ---- */

/* "20%", or "20" */
static enum hk_code read_percent(struct hk_desk *desk, const char *text, double *out_ratio,
                                 struct hk_err *err)
{
    uint64_t percent = PERCENT_DEFAULT;
    struct hk_str digits = hk_str_of(text);
    if (digits.len > 0 && digits.ptr[digits.len - 1] == '%')
        digits.len--;
    if (text && (hk_parse_u64(digits, &percent, NULL) != HK_OK || percent > 100))
        return hk_desk_wrong(desk, "abort_if_failing", err, ": a percentage like 20%% is expected");
    *out_ratio = (double)percent / 100;
    return HK_OK;
}

static enum hk_code read_pace(struct hk_desk *desk, const struct hk_redrive_ask *ask,
                              struct hk_redrive_pace *out, struct hk_err *err)
{
    *out = (struct hk_redrive_pace){
        .rate_per_s = ask->rate, .canary = (uint32_t)ask->canary, .ramp_ms = ask->ramp ? RAMP_MS : 0};
    return read_percent(desk, ask->abort_if_failing, &out->abort_ratio, err);
}

/* A relay continues the job in nobody's name, and sees everything. The number of letters that contain a text would reveal masked values. */
static enum hk_code refuse_search(struct hk_desk *desk, const struct hk_caller *caller,
                                  const struct hk_letter_filter *filter, struct hk_err *err)
{
    struct hk_masks *hidden = NULL;
    enum hk_code rc = hk_desk_hidden(desk, caller, &hidden, err);
    if (rc == HK_OK && hidden && hk_filter_has_text(filter->parsed))
        rc = hk_err_set(err, HK_DENIED,
                        "masks apply: a redrive by text needs the right to reveal; name a group or a reason");
    return rc;
}

/* The relay that goes on with the job opens sealed payloads because this caller may see them. */
static enum hk_code say_opens(struct hk_letter_filter *filter, struct hk_pool *mem, struct hk_err *err)
{
    hk_filter_set_opens(filter->parsed);
    filter->text = hk_words_text(filter->parsed, &filter->query, mem);
    if (!filter->text)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return strlen(filter->text) <= HK_FILTER_TEXT_MAX
               ? HK_OK
               : hk_err_set(err, HK_INVALID, "the filter is longer than %d bytes", HK_FILTER_TEXT_MAX);
}

/* Only open letters are requeued. */
static enum hk_code read_filter(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_letter_words *words, struct hk_pool *mem,
                                struct hk_letter_filter *out, struct hk_err *err)
{
    const unsigned open = 1u << HK_LETTER_FAILED;
    enum hk_code rc = hk_letter_filter(desk, caller, words, false, mem, out, err);
    if (rc != HK_OK)
        return rc;
    rc = refuse_search(desk, caller, out, err);
    if (rc == HK_OK && caller->may_reveal && desk->config && desk->config->keys)
        rc = say_opens(out, mem, err);
    if (rc != HK_OK) {
        hk_letter_filter_free(out);
        return rc;
    }
    if (out->query.statuses == 0 || (out->query.statuses & open) != 0) {
        out->query.statuses = open;
        return HK_OK;
    }
    hk_letter_filter_free(out);
    return hk_err_set(err, HK_INVALID,
                      "a redrive requeues only open letters (status:failed), and none match; "
                      "'dead restore' opens what was discarded");
}

/* ---- plan ---- */

/* Of the destinations in the plan, one that is paused, and one that is not in the configuration. */
static void look_at_destinations(struct hk_desk *desk, const struct hk_names *paused, struct hk_pool *mem,
                                 struct hk_redrive_plan *plan)
{
    char shown[HK_SHOW_MAX];
    for (size_t i = 0; i < (plan->to ? 1 : plan->groups.n); i++) {
        struct hk_str name = plan->to ? hk_str_of(plan->to) : plan->groups.items[i].destination;
        struct hk_err err = {.message = ""};
        const struct hk_conf_destination *conf = NULL;
        (void)hk_show(name, shown);
        if (hk_desk_destination(desk, name, false, mem, &conf, &err) == HK_OK && !conf)
            plan->unknown = hk_pool_copy_str(mem, hk_str_of(shown));
        if (hk_names_have(paused, name))
            plan->paused = hk_pool_copy_str(mem, hk_str_of(shown));
    }
}

/* One look at the letters: their number is the sum of the groups. */
static enum hk_code make_plan(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_letter_query *query, struct hk_pool *mem,
                              struct hk_redrive_plan *plan, struct hk_err *err)
{
    const struct hk_relays *relays = NULL;
    const struct hk_names *paused = NULL;
    const struct hk_letter_groups *groups = NULL;
    struct hk_letter_query told = *query;
    hk_letter_query_tells(&told, &caller);
    enum hk_code rc = desk->ops->relays(desk->admin, &relays, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < relays->n; i++)
        plan->relay_runs = plan->relay_runs || relays->items[i].running;
    int64_t now_ms = relays->now_ms;
    rc = desk->letters->paused(desk->admin, &paused, err);
    hk_desk_keep(desk, mem);
    if (rc == HK_OK)
        rc = desk->letters->groups(desk->admin, &told, GROUPS_SHOWN, &groups, err);
    if (rc != HK_OK)
        return rc;
    plan->groups = *groups;
    hk_desk_keep(desk, mem);
    plan->count = (struct hk_count){.n = plan->groups.letters, .about = plan->groups.partial};
    struct hk_redrive_facts facts = {.started_ms = now_ms, .total = plan->count.n};
    plan->eta_ms = hk_redrive_eta_ms(&plan->pace, &facts, now_ms);
    look_at_destinations(desk, paused, mem, plan);
    return HK_OK;
}

static enum hk_code plan_redrive(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_redrive_ask *ask, struct hk_pool *mem,
                                 struct hk_redrive_plan *out, struct hk_err *err)
{
    struct hk_letter_filter filter;
    struct hk_redrive_plan plan = {.id = 0};
    enum hk_code rc = read_pace(desk, ask, &plan.pace, err);
    if (rc == HK_OK)
        rc = read_filter(desk, caller, &ask->words, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    plan.filter = filter.text;
    plan.to = ask->to;
    rc = make_plan(desk, caller, &filter.query, mem, &plan, err);
    if (rc == HK_OK)
        *out = plan;
    hk_letter_filter_free(&filter);
    return rc;
}

/* ---- start ---- */

/* Ages are points in time by now, and differ between two clicks. */
static bool are_near(int64_t a_ms, int64_t b_ms)
{
    int64_t apart = a_ms > b_ms ? a_ms - b_ms : b_ms - a_ms;
    return (a_ms != 0) == (b_ms != 0) && apart <= NEAR_MS;
}

static bool same_but_for_times(const struct hk_letter_filter *a, const struct hk_filter *b)
{
    struct hk_letter_query one = a->query, other = *hk_filter_query(b);
    struct hk_buf one_text, other_text;
    if (!are_near(one.since_ms, other.since_ms) || !are_near(one.before_ms, other.before_ms))
        return false;
    one.since_ms = one.before_ms = other.since_ms = other.before_ms = 0;
    one.statuses = other.statuses = 1u << HK_LETTER_FAILED;
    hk_buf_init(&one_text, (size_t)4 * HK_FILTER_TEXT_MAX);
    hk_buf_init(&other_text, (size_t)4 * HK_FILTER_TEXT_MAX);
    hk_filter_text(a->parsed, &one, &one_text);
    hk_filter_text(b, &other, &other_text);
    bool same = hk_buf_status(&one_text) == HK_OK && hk_buf_status(&other_text) == HK_OK &&
                hk_str_eq(hk_buf_str(&one_text), hk_buf_str(&other_text));
    hk_buf_fini(&one_text);
    hk_buf_fini(&other_text);
    return same;
}

/* A second click, or a command that was killed and typed again. (Two at the same moment are the store's to tell apart.) */
static enum hk_code find_twin(struct hk_desk *desk, const struct hk_letter_filter *filter, int64_t *out,
                              struct hk_err *err)
{
    const struct hk_redrive_jobs *jobs = NULL;
    char text[HK_FILTER_TEXT_MAX + 1];
    enum hk_code rc = desk->letters->redrive_list(desk->admin, 0, true, &jobs, err);
    for (size_t i = 0; rc == HK_OK && i < jobs->n && *out == 0; i++) {
        struct hk_filter *other = NULL;
        if (!hk_str_copy(text, sizeof text, jobs->items[i].filter) ||
            hk_filter_parse(text, 0, &other, NULL) != HK_OK)
            continue;
        if (same_but_for_times(filter, other))
            *out = jobs->items[i].id;
        hk_filter_free(other);
    }
    return rc;
}

static enum hk_code refuse_twin(int64_t id, struct hk_err *err)
{
    return hk_err_set(err, HK_BUSY,
                      "redrive %" PRId64 " of the same letters runs already: follow it with 'hikyaku redrive "
                      "show %" PRId64 " --follow', or cancel it first",
                      id, id);
}

static enum hk_code start_job(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_redrive_ask *ask, const struct hk_letter_filter *filter,
                              struct hk_redrive_plan *plan, struct hk_err *err)
{
    const struct hk_redrive_job job = {.filter = hk_str_of(filter->text),
                                       .pace = plan->pace,
                                       .ids = hk_requeue_ids(ask->same_id, ask->new_id),
                                       .to = hk_str_of(ask->to),
                                       .facts = {.total = plan->count.n},
                                       .actor = hk_str_of(caller->actor),
                                       .reason = hk_str_of(caller->reason)};
    enum hk_code rc = desk->letters->redrive_start(desk->admin, &filter->query, &job, &plan->id, err);
    if (rc != HK_CONFLICT)
        return rc;
    struct hk_err why = *err;
    return hk_err_set(err, HK_BUSY, "%s", why.message); /* once the other has ended it may work */
}

static enum hk_code check_start(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_redrive_ask *ask = request;
    struct hk_redrive_pace pace;
    if (!hk_letter_words_given(&ask->words))
        return hk_err_set(
            err, HK_INVALID,
            "say which letters: --filter, --destination, --group, or --status failed for all that are open");
    enum hk_code rc = read_pace(desk, ask, &pace, err);
    if (rc == HK_OK)
        rc = hk_requeue_to_check(desk, ask->to, err);
    return rc == HK_OK ? hk_requeue_ids_check(ask->same_id, ask->new_id, err) : rc;
}

static enum hk_code start_redrive(struct hk_desk *desk, const struct hk_caller *caller,
                                  const struct hk_redrive_ask *ask, struct hk_pool *mem,
                                  struct hk_redrive_plan *out, struct hk_err *err)
{
    struct hk_letter_filter filter;
    struct hk_redrive_plan plan = {.id = 0};
    enum hk_code rc = read_pace(desk, ask, &plan.pace, err);
    if (rc == HK_OK)
        rc = read_filter(desk, caller, &ask->words, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    plan.filter = filter.text;
    plan.to = ask->to;
    rc = find_twin(desk, &filter, &plan.twin, err);
    if (rc == HK_OK && plan.twin != 0 && !ask->dry_run)
        rc = refuse_twin(plan.twin, err);
    if (rc == HK_OK)
        rc = make_plan(desk, caller, &filter.query, mem, &plan, err);
    if (rc == HK_OK && plan.count.n == 0)
        rc = hk_err_set(err, HK_NOTFOUND, "no letter fits: there is nothing to redrive");
    if (rc == HK_OK && !ask->dry_run)
        rc = start_job(desk, caller, ask, &filter, &plan, err);
    if (rc == HK_OK)
        *out = plan;
    hk_letter_filter_free(&filter);
    return rc;
}

/* ---- list, show, cancel ---- */

uint64_t hk_redrive_waiting(const struct hk_redrive_facts *facts)
{
    uint64_t known = facts->resolved + facts->failed;
    return facts->requeued > known ? facts->requeued - known : 0;
}

static void reckon(struct hk_redrive_job *job, int64_t now_ms)
{
    bool is_running = job->status == HK_REDRIVE_RUNNING;
    struct hk_redrive_facts *f = &job->facts;
    job->later = f->requeued > f->total ? f->requeued - f->total : 0;
    f->total += job->later;
    job->eta_ms = is_running ? hk_redrive_eta_ms(&job->pace, &job->facts, now_ms) : UINT64_MAX;
    if (!is_running)
        job->held = (struct hk_str){"", 0};
}

static enum hk_code list_redrives(struct hk_desk *desk, const struct hk_caller *caller,
                                  const struct hk_redrive_list_ask *ask, struct hk_pool *mem,
                                  struct hk_redrive_jobs *out, struct hk_err *err)
{
    const struct hk_redrive_jobs *jobs = NULL;
    (void)caller;
    enum hk_code rc = desk->letters->redrive_list(desk->admin, 0, ask->running, &jobs, err);
    if (rc != HK_OK)
        return rc;
    *out = *jobs;
    hk_desk_keep(desk, mem);
    for (size_t i = 0; i < out->n; i++)
        reckon(&out->items[i], out->now_ms);
    return HK_OK;
}

static enum hk_code read_job_id(const char *text, int64_t *out, struct hk_err *err)
{
    uint64_t id = 0;
    if (hk_parse_u64(hk_str_of(text), &id, NULL) != HK_OK || id == 0 || id > INT64_MAX)
        return hk_err_set(err, HK_INVALID, "the number of a redrive is expected (hikyaku redrive list)");
    *out = (int64_t)id;
    return HK_OK;
}

static enum hk_code check_job(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_redrive_job_ask *ask = request;
    int64_t id = 0;
    (void)desk;
    return read_job_id(ask->id, &id, err);
}

static enum hk_code show_job(struct hk_desk *desk, int64_t id, struct hk_pool *mem,
                             struct hk_redrive_shown *out, struct hk_err *err)
{
    const struct hk_redrive_jobs *jobs = NULL;
    enum hk_code rc = desk->letters->redrive_list(desk->admin, id, false, &jobs, err);
    if (rc != HK_OK)
        return rc;
    if (jobs->n == 0)
        return hk_err_set(err, HK_NOTFOUND, "there is no redrive %" PRId64, id);
    *out = (struct hk_redrive_shown){.job = jobs->items[0], .now_ms = jobs->now_ms};
    reckon(&out->job, out->now_ms);
    hk_desk_keep(desk, mem);
    return HK_OK;
}

static enum hk_code show_redrive(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_redrive_job_ask *ask, struct hk_pool *mem,
                                 struct hk_redrive_shown *out, struct hk_err *err)
{
    int64_t id = 0;
    (void)caller;
    enum hk_code rc = read_job_id(ask->id, &id, err);
    return rc == HK_OK ? show_job(desk, id, mem, out, err) : rc;
}

static enum hk_code cancel_redrive(struct hk_desk *desk, const struct hk_caller *caller,
                                   const struct hk_redrive_job_ask *ask, struct hk_pool *mem,
                                   struct hk_redrive_shown *out, struct hk_err *err)
{
    int64_t id = 0;
    enum hk_code rc = read_job_id(ask->id, &id, err);
    if (rc == HK_OK)
        rc = desk->letters->redrive_cancel(desk->admin, id, caller->actor, caller->reason, err);
    return rc == HK_OK ? show_job(desk, id, mem, out, err) : rc;
}

/* ---- the table ---- */

HK_OP_RUN(plan_redrive)
HK_OP_RUN(start_redrive)
HK_OP_RUN(list_redrives)
HK_OP_RUN(show_redrive)
HK_OP_RUN(cancel_redrive)

#define PACE_ARGS                                                                                            \
    {.name = "rate",                                                                                         \
     .kind = HK_ARG_RATE,                                                                                    \
     .offset = offsetof(struct hk_redrive_ask, rate),                                                        \
     .lo = 0.001,                                                                                            \
     .hi = 100000,                                                                                           \
     .fallback = HK_REDRIVE_RATE,                                                                            \
     .value = "N/s",                                                                                         \
     .help = "requeue this many letters a second (default: 50/s)"},                                          \
        {.name = "ramp",                                                                                     \
         .offset = offsetof(struct hk_redrive_ask, ramp),                                                    \
         .help = "begin with a tenth of the rate, and reach all of it after a minute"},                      \
        {.name = "canary",                                                                                   \
         .kind = HK_ARG_NUMBER,                                                                              \
         .offset = offsetof(struct hk_redrive_ask, canary),                                                  \
         .hi = 10000,                                                                                        \
         .value = "N",                                                                                       \
         .help = "requeue this many first, and the rest only when they arrived (default: 0)"},               \
    {                                                                                                        \
        .name = "abort_if_failing", .kind = HK_ARG_TEXT,                                                     \
        .offset = offsetof(struct hk_redrive_ask, abort_if_failing), .value = "PERCENT",                     \
        .help = "stop when more than this share fails again (default: 20%; 0%: never)"                       \
    }

static const struct hk_arg plan_args[] = {HK_LETTER_WORDS(hk_redrive_ask, words), PACE_ARGS, {.name = NULL}};

static const struct hk_arg start_args[] = {HK_LETTER_WORDS(hk_redrive_ask, words),
                                           PACE_ARGS,
                                           HK_REQUEUE_ID_ARGS(hk_redrive_ask, same_id, new_id),
                                           HK_REQUEUE_TO_ARG(hk_redrive_ask, to),
                                           {.name = "dry_run",
                                            .offset = offsetof(struct hk_redrive_ask, dry_run),
                                            .help = "show the plan, change nothing"},
                                           {.name = NULL}};

static const struct hk_arg list_args[] = {{.name = "running",
                                           .offset = offsetof(struct hk_redrive_list_ask, running),
                                           .help = "list only redrives that are running"},
                                          {.name = NULL}};

static const struct hk_arg job_args[] = {{.name = "id",
                                          .kind = HK_ARG_TEXT,
                                          .subject = true,
                                          .required = true,
                                          .offset = offsetof(struct hk_redrive_job_ask, id),
                                          .value = "ID"},
                                         {.name = NULL}};

const struct hk_op hk_op_redrive_plan = {
    .noun = "redrive",
    .verb = "plan",
    .summary = "count the matching dead letters by group, and estimate how long a redrive takes",
    .route = "POST /redrives/plan",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .is_long = true,
    .args = plan_args,
    .request_size = sizeof(struct hk_redrive_ask),
    .result_size = sizeof(struct hk_redrive_plan),
    .run = plan_redrive_op,
    .form = hk_form_redrive_plan};

const struct hk_op hk_op_redrive_start = {
    .noun = "redrive",
    .verb = "start",
    .summary = "start a redrive: at a rate, with a canary, stopping when letters fail again",
    .details =
        "The relays do the work; the job survives their restarts. Letters that arrive later are not part of it.\n"
        "  hikyaku redrive start --destination billing --rate 50/s --ramp --canary 1 --abort-if-failing 20%",
    .route = "POST /redrives",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .is_long = true,
    .args = start_args,
    .request_size = sizeof(struct hk_redrive_ask),
    .result_size = sizeof(struct hk_redrive_plan),
    .check = check_start,
    .run = start_redrive_op,
    .form = hk_form_redrive_plan};

const struct hk_op hk_op_redrive_list = {.noun = "redrive",
                                         .verb = "list",
                                         .summary = "list redrives, newest first",
                                         .route = "GET /redrives",
                                         .role = HK_ROLE_VIEWER,
                                         .store = true,
                                         .args = list_args,
                                         .request_size = sizeof(struct hk_redrive_list_ask),
                                         .result_size = sizeof(struct hk_redrive_jobs),
                                         .run = list_redrives_op,
                                         .form = hk_form_redrives};

const struct hk_op hk_op_redrive_show = {.noun = "redrive",
                                         .verb = "show",
                                         .summary = "show how far a redrive has come",
                                         .details =
                                             "With --follow the exit code is 1 when it aborted itself.",
                                         .route = "GET /redrives/{id}",
                                         .role = HK_ROLE_VIEWER,
                                         .store = true,
                                         .args = job_args,
                                         .request_size = sizeof(struct hk_redrive_job_ask),
                                         .result_size = sizeof(struct hk_redrive_shown),
                                         .check = check_job,
                                         .run = show_redrive_op,
                                         .form = hk_form_redrive};

const struct hk_op hk_op_redrive_cancel = {
    .noun = "redrive",
    .verb = "cancel",
    .summary = "cancel a redrive; letters that are on their way stay on their way",
    .route = "POST /redrives/{id}/cancel",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = job_args,
    .request_size = sizeof(struct hk_redrive_job_ask),
    .result_size = sizeof(struct hk_redrive_shown),
    .check = check_job,
    .run = cancel_redrive_op,
    .form = hk_form_redrive};
