/* SPDX-License-Identifier: Apache-2.0 */
/* Redrive: jobs that requeue letters step by step.
 *
 * DESIGN. A step decides here (core/redrive.c), so that it cannot be one statement; and while it thinks it must hold no lock.
 * So it reads the job and what became of its letters, decides, looks for the next letters, and then does it in one
 * transaction, on condition that nobody has done a step meanwhile: `steps` of the row is what was read, or nothing happens and
 * the answer is HK_BUSY. Letters are locked and looked at once more there: one that somebody has settled in between is
 * left out. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "observe/crash.h"
#include "store/pg/letters.h"

#define JOBS_MAX   100
#define STEP_LOOKS 5000 /* letters that one step matches, */

enum {
    STEP_PORTIONS = 10,   /* how often it asks for more, */
    STEP_COMPARES = 10000 /* and how many are compared each time: the relay's own work waits */
};

/* Columns of HK_PL_JOBS. */
enum {
    J_NOW,
    J_ID,
    J_STATUS,
    J_FILTER,
    J_RATE,
    J_RAMP_MS,
    J_CANARY,
    J_ABORT_RATIO,
    J_IDS,
    J_LAST_ID,
    J_CURSOR_ID,
    J_TOTAL,
    J_REQUEUED,
    J_EXHAUSTED,
    J_TOKENS,
    J_TOKENS_MS,
    J_STARTED_MS,
    J_CREATED_MS,
    J_ENDED_MS,
    J_ACTOR,
    J_REASON,
    J_ENDING,
    J_STEPS,
    J_RETRYING,
    J_FAILED,
    J_STRUGGLING,
    J_HELD,
    J_TO
};

/* ---- reading ---- */

static void arg_f64(struct hk_pg *pg, struct hk_pg_args *a, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.9f", value >= 0 && value < 1e15 ? value : 0);
    hk_pg_arg_text(pg, a, hk_str_of(text));
}

static double f64_at(const PGresult *res, int row, int column)
{
    double value = 0;
    if (hk_parse_decimal(hk_str_of(PQgetvalue(res, row, column)), &value, NULL) != HK_OK)
        return 0;
    return value;
}

static enum hk_redrive_status status_at(const PGresult *res, int row)
{
    struct hk_str name = hk_str_of(PQgetvalue(res, row, J_STATUS));
    for (int s = 0; s < HK_NREDRIVE_STATUSES; s++)
        if (hk_str_eq(name, hk_str_of(hk_redrive_status_name((enum hk_redrive_status)s))))
            return (enum hk_redrive_status)s;
    return HK_REDRIVE_CANCELLED; /* not ours: nobody goes on with it */
}

static enum hk_requeue_id ids_at(const PGresult *res, int row)
{
    struct hk_str name = hk_str_of(PQgetvalue(res, row, J_IDS));
    if (hk_str_eq(name, hk_str_of("same")))
        return HK_REQUEUE_SAME;
    return hk_str_eq(name, hk_str_of("new")) ? HK_REQUEUE_NEW : HK_REQUEUE_AUTO;
}

static void read_facts(const PGresult *res, int i, struct hk_redrive_facts *out)
{
    uint64_t requeued = hk_pa_u64(res, i, J_REQUEUED), failed = hk_pa_u64(res, i, J_FAILED),
             settled = failed + hk_pa_u64(res, i, J_RETRYING);
    *out = (struct hk_redrive_facts){
        .started_ms = hk_pg_i64(res, i, J_STARTED_MS),
        .total = hk_pa_u64(res, i, J_TOTAL),
        .requeued = requeued,
        .resolved = requeued > settled ? requeued - settled : 0,
        .failed = failed,
        .struggling = hk_pa_u64(res, i, J_STRUGGLING),
        .exhausted = hk_pg_bool(res, i, J_EXHAUSTED),
        .tokens = f64_at(res, i, J_TOKENS),
        .tokens_ms = hk_pg_i64(res, i, J_TOKENS_MS),
    };
}

static void read_job(struct hk_pg *pg, const PGresult *res, int i, struct hk_redrive_job *out)
{
    *out = (struct hk_redrive_job){
        .id = hk_pg_i64(res, i, J_ID),
        .status = status_at(res, i),
        .filter = hk_pg_text(pg, res, i, J_FILTER),
        .pace = {.rate_per_s = f64_at(res, i, J_RATE),
                 .ramp_ms = hk_pa_u64(res, i, J_RAMP_MS),
                 .canary = hk_pa_u32(res, i, J_CANARY),
                 .abort_ratio = f64_at(res, i, J_ABORT_RATIO)},
        .ids = ids_at(res, i),
        .last_id = hk_pg_i64(res, i, J_LAST_ID),
        .cursor_id = hk_pg_i64(res, i, J_CURSOR_ID),
        .actor = hk_pg_text(pg, res, i, J_ACTOR),
        .reason = hk_pg_text(pg, res, i, J_REASON),
        .created_ms = hk_pg_i64(res, i, J_CREATED_MS),
        .ended_ms = hk_pg_i64(res, i, J_ENDED_MS),
        .ending = hk_pg_text(pg, res, i, J_ENDING),
        .held = hk_pg_text(pg, res, i, J_HELD),
        .to = hk_pg_text(pg, res, i, J_TO),
    };
    read_facts(res, i, &out->facts);
}

static PGresult *ask_jobs(struct hk_admin *admin, int64_t id, bool running_only)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, id);
    hk_pg_arg_bool(pg, &a, running_only);
    hk_pg_arg_i64(pg, &a, JOBS_MAX);
    return hk_pg_query(pg, false, HK_PL_JOBS, &a);
}

enum hk_code hk_pl_redrive_list(struct hk_admin *admin, int64_t id, bool running_only,
                                const struct hk_redrive_jobs **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_redrive_jobs *jobs = hk_pg_alloc(pg, 1, sizeof *jobs);
    PGresult *res = ask_jobs(admin, id, running_only);
    int n = res && !hk_pg_null(res, 0, J_ID) ? PQntuples(res) : 0;
    if (jobs && n)
        jobs->items = hk_pg_alloc(pg, (size_t)n, sizeof *jobs->items);
    for (int i = 0; jobs && jobs->items && i < n; i++)
        read_job(pg, res, i, &jobs->items[jobs->n++]);
    if (jobs && res)
        jobs->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, J_NOW));
    PQclear(res);
    enum hk_code rc = hk_pl_end(admin, "read its redrives", err);
    if (rc == HK_OK)
        *out = jobs;
    return rc;
}

/* ---- starting and cancelling ---- */

/* What a job may requeue, of what its filter means: `statuses` is 0 when that is nothing. */
static struct hk_letter_query open_ones(const struct hk_letter_query *query)
{
    struct hk_letter_query open = *query;
    open.statuses = (query->statuses ? query->statuses : ~0u) & 1u << HK_LETTER_FAILED;
    return open;
}

enum hk_code hk_pl_redrive_start(struct hk_admin *admin, const struct hk_letter_query *query,
                                 const struct hk_redrive_job *job, int64_t *out_id, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    uint64_t total = job->facts.total;
    struct hk_letter_query open = open_ones(query);
    if (total == 0 && open.statuses)
        total = hk_pl_count(admin, &open).n;
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, job->filter);
    arg_f64(pg, &a, job->pace.rate_per_s);
    hk_pg_arg_u64(pg, &a, job->pace.ramp_ms);
    hk_pg_arg_i64(pg, &a, job->pace.canary);
    arg_f64(pg, &a, job->pace.abort_ratio);
    hk_pg_arg_text(pg, &a, hk_str_of(hk_pl_ids_name(job->ids)));
    hk_pg_arg_u64(pg, &a, total);
    hk_pg_arg_text(pg, &a, job->actor);
    hk_pg_arg_text(pg, &a, job->reason);
    hk_pg_arg_text_or_null(pg, &a, job->to);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PL_JOB_TURN, NULL);
    hk_pg_add(pg, HK_PL_JOB_START, &a);
    hk_crash_point("redrive-begun");
    hk_pg_send(pg);
    hk_crash_point("redrive-inside");
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    int64_t id = res ? hk_pg_i64(res, 0, 0) : 0, runs = res ? hk_pg_i64(res, 0, 1) : 0;
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "start a redrive", err);
    hk_crash_point("redrive-committed");
    if (rc != HK_OK)
        return rc;
    if (runs)
        return hk_err_set(err, HK_CONFLICT, "redrive %" PRId64 " of the same letters runs already", runs);
    *out_id = id;
    return HK_OK;
}

static PGresult *end_job(struct hk_pg *pg, enum hk_pl_id statement, const struct hk_pg_args *a)
{
    hk_pg_begin(pg, true);
    hk_pg_add(pg, statement, a);
    hk_pg_send(pg);
    hk_crash_point("redrive-ending");
    return hk_pg_result(pg);
}

enum hk_code hk_pl_redrive_cancel(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                                  struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, id);
    hk_pg_arg_text(pg, &a, hk_str_of(actor));
    hk_pg_arg_text(pg, &a, hk_str_of(reason));
    PGresult *res = end_job(pg, HK_PL_JOB_CANCEL, &a);
    bool found = res && PQntuples(res) == 1, ran = found && hk_pg_bool(res, 0, 0);
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "cancel a redrive", err);
    hk_crash_point("redrive-committed");
    if (rc != HK_OK)
        return rc;
    if (!found)
        return hk_err_set(err, HK_NOTFOUND, "there is no redrive %" PRId64, id);
    return ran ? HK_OK : hk_err_set(err, HK_CONFLICT, "redrive %" PRId64 " has ended already", id);
}

/* ---- a step ---- */

struct step {
    struct hk_admin *admin;
    struct hk_redrive_job job;
    int64_t steps; /* as they were read */
    int64_t now_ms;
    /* what is to be requeued */
    int64_t ids[HK_REDRIVE_STEP];
    size_t n, want;
    bool enough; /* there are more */
    int64_t cursor_id;
    bool exhausted;
    PGresult *paused;   /* names of destinations */
    struct hk_str held; /* the one of them that the next letter would go to; ptr NULL = none */
};

static bool is_paused(const struct step *s, struct hk_str destination)
{
    for (int i = 0; s->paused && i < PQntuples(s->paused); i++)
        if (hk_str_eq(hk_str_of(PQgetvalue(s->paused, i, 0)), destination))
            return true;
    return false;
}

static bool take_id(void *arg, const PGresult *res, int row, const struct hk_letter *letter)
{
    struct step *s = arg;
    struct hk_str to = s->job.to.len ? s->job.to : letter->destination;
    if (s->n < s->want && is_paused(s, to))
        s->held =
            s->job.to.len ? to : hk_pg_text(&s->admin->pg, res, row, HK_PL_W_LETTER + HK_PL_C_DESTINATION);
    s->enough = s->n == s->want || s->held.ptr;
    if (s->held.ptr)
        s->cursor_id = letter->id - 1;
    if (s->enough)
        return false;
    s->ids[s->n++] = letter->id;
    s->cursor_id = letter->id;
    return true;
}

/* The next letters that fit, oldest first. Those that are being sent by hand are `retrying`, and so not meant. */
static void find_letters(struct step *s, const struct hk_letter_query *query)
{
    struct hk_letter_query next = open_ones(query);
    struct hk_pl_walk walk;
    hk_pl_walk_init(&walk, s->admin, &next);
    walk.oldest_first = true;
    walk.limit = query->match ? HK_REDRIVE_STEP : (uint32_t)s->want + 1;
    walk.window = STEP_COMPARES;
    if (s->job.cursor_id > walk.above)
        walk.above = s->job.cursor_id;
    if (s->job.last_id < INT64_MAX && s->job.last_id + 1 < walk.below)
        walk.below = s->job.last_id + 1;
    s->cursor_id = s->job.cursor_id;
    walk.ended = !next.statuses;
    bool more = next.statuses != 0;
    for (int i = 0; more && i < STEP_PORTIONS && walk.looked < STEP_LOOKS; i++)
        more = hk_pl_walk_on(&walk, take_id, s);
    s->exhausted = walk.ended && !s->enough;
    if (s->exhausted)
        s->cursor_id = s->job.last_id;
    else if (more) /* it looked at enough for now, and took what fitted up to there */
        s->cursor_id = walk.above;
}

static bool write_step(struct step *s, double tokens)
{
    struct hk_pg *pg = &s->admin->pg;
    struct hk_pg_args lock = {.n = 0}, a = {.n = 0};
    hk_pg_arg_i64s(pg, &lock, s->ids, s->n);
    hk_pa_arg_now(s->admin, &a);
    hk_pg_arg_i64s(pg, &a, s->ids, s->n);
    hk_pg_arg_text(pg, &a, s->job.actor);
    hk_pg_arg_text(pg, &a, s->job.reason);
    hk_pg_arg_text(pg, &a, hk_str_of(hk_pl_ids_name(s->job.ids)));
    hk_pg_arg_i64(pg, &a, s->job.id);
    hk_pg_arg_i64(pg, &a, s->steps);
    hk_pg_arg_i64(pg, &a, s->cursor_id);
    hk_pg_arg_bool(pg, &a, s->exhausted);
    arg_f64(pg, &a, tokens);
    hk_pg_arg_i64(pg, &a, s->now_ms);
    hk_pg_arg_text_or_null(pg, &a, s->held);
    hk_pg_arg_text_or_null(pg, &a, s->job.to);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PL_LOCK, &lock);
    hk_pg_add(pg, HK_PL_STEP, &a);
    hk_crash_point("redrive-begun");
    hk_pg_send(pg);
    hk_crash_point("redrive-inside");
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    bool ours = res && PQntuples(res) == 1;
    uint64_t done = ours ? hk_pa_u64(res, 0, 0) : 0;
    s->job.facts.requeued += done;
    s->job.facts.tokens = tokens + (double)(s->n - done);
    PQclear(res);
    return ours;
}

static bool write_end(struct step *s, enum hk_redrive_status status, const char *why)
{
    struct hk_pg *pg = &s->admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(s->admin, &a);
    hk_pg_arg_i64(pg, &a, s->job.id);
    hk_pg_arg_i64(pg, &a, s->steps);
    hk_pg_arg_text(pg, &a, hk_str_of(hk_redrive_status_name(status)));
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(why));
    hk_pg_arg_text(pg, &a, hk_str_of(status == HK_REDRIVE_DONE ? "redrive-done" : "redrive-aborted"));
    PGresult *res = end_job(pg, HK_PL_JOB_END, &a);
    bool ours = res && PQntuples(res) == 1;
    PQclear(res);
    return ours;
}

/* Requeues; when to ask again follows from how the job stands then. False: somebody else had it. */
static bool go_on(struct step *s, const struct hk_letter_query *query, struct hk_redrive_next *next,
                  int64_t *out_wake_ms)
{
    struct hk_pg_args a = {.n = 0};
    hk_pg_arg_i64(&s->admin->pg, &a, HK_NAMES_MAX);
    s->want = next->n < HK_REDRIVE_STEP ? next->n : HK_REDRIVE_STEP;
    s->paused = hk_pg_query(&s->admin->pg, false, HK_PL_PAUSED, &a);
    find_letters(s, query);
    PQclear(s->paused);
    if (query->unsure && query->unsure->code != HK_OK) {
        *out_wake_ms = s->now_ms + HK_REDRIVE_UNSURE_MS;
        return true;
    }
    bool waits = s->held.ptr && s->n == 0; /* as it did before: nothing is to be written */
    *out_wake_ms = s->now_ms + HK_REDRIVE_HELD_MS;
    if (waits && s->cursor_id == s->job.cursor_id && hk_str_eq(s->held, s->job.held))
        return true;
    double tokens = next->tokens + (double)(s->want - s->n); /* those that found no letter are still there */
    if (!hk_pg_ok(&s->admin->pg) || !write_step(s, tokens))
        return false;
    if (s->held.ptr)
        return true;
    s->job.facts.exhausted = s->exhausted;
    s->job.facts.tokens_ms = s->now_ms;
    hk_redrive_decide(&s->job.pace, &s->job.facts, s->now_ms, next);
    *out_wake_ms = next->step == HK_REDRIVE_WAIT && next->wake_ms > s->now_ms ? next->wake_ms : s->now_ms;
    return true;
}

static bool do_step(struct step *s, const struct hk_letter_query *query, int64_t *out_wake_ms)
{
    struct hk_redrive_next next;
    hk_redrive_decide(&s->job.pace, &s->job.facts, s->now_ms, &next);
    switch (next.step) {
    case HK_REDRIVE_WAIT:
        *out_wake_ms = next.wake_ms;
        return true;
    case HK_REDRIVE_REQUEUE:
        return go_on(s, query, &next, out_wake_ms);
    case HK_REDRIVE_ABORT:
        *out_wake_ms = 0;
        return write_end(s, HK_REDRIVE_ABORTED, next.why);
    case HK_REDRIVE_FINISH:
        *out_wake_ms = 0;
        return write_end(s, HK_REDRIVE_DONE, NULL);
    }
    return false;
}

/* False: there is no such job. */
static bool read_step(struct step *s, int64_t id)
{
    struct hk_pg *pg = &s->admin->pg;
    PGresult *res = ask_jobs(s->admin, id, false);
    bool found = res && id != 0 && !hk_pg_null(res, 0, J_ID);
    if (found) {
        read_job(pg, res, 0, &s->job);
        s->steps = hk_pg_i64(res, 0, J_STEPS);
        s->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, J_NOW));
    }
    PQclear(res);
    return found;
}

enum hk_code hk_pl_redrive_step(struct hk_admin *admin, int64_t id, const struct hk_letter_query *query,
                                int64_t *out_wake_ms, bool *out_ended, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct step s = {.admin = admin};
    int64_t wake_ms = 0;
    hk_pg_call(pg);
    bool found = read_step(&s, id), ours = true;
    if (found && hk_pg_ok(pg) && s.job.status == HK_REDRIVE_RUNNING)
        ours = do_step(&s, query, &wake_ms);
    enum hk_code rc = hk_pa_end(admin, "go on with a redrive", err);
    if (s.want || !wake_ms) /* else it only waits */
        hk_crash_point("redrive-committed");
    if (rc != HK_OK)
        return rc;
    if (!found)
        return hk_err_set(err, HK_NOTFOUND, "there is no redrive %" PRId64, id);
    if (!ours)
        return hk_err_set(err, HK_BUSY, "another relay has redrive %" PRId64 " in hand", id);
    *out_wake_ms = wake_ms;
    *out_ended = s.job.status == HK_REDRIVE_RUNNING && !wake_ms;
    return HK_OK;
}
