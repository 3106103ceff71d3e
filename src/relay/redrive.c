/* SPDX-License-Identifier: Apache-2.0 */
/* Redrives while a relay runs.
 *
 *   somebody acted -> look: which jobs run? -> a step of the job that is due first -> … -> it has ended
 *   a breaker closed -> start a job for what died meanwhile
 *
 * A job's whole state is its row in the store. Several relays may work on one job: the store lets one at a time, and the
 * rate is the job's. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "payload/filter.h"
#include "relay/redrive.h"
#include "relay/regroup.h"

enum {
    JOBS_MAX = 16,        /* at once; others wait */
    LOOK_EVERY_MS = 1000, /* however often somebody acts, a job's own steps included */
    BUSY_MS = 1000,       /* until a job is tried again that another relay has in hand */
    TROUBLE_MS = 5000,    /* until a store is tried again that does not answer */
    LOCK_MS = 1000,       /* a step waits no longer for a lock: the relay's own work waits with it */
    BEFORE_OPEN_MS =
        60000, /* a breaker opens after the first failures: the job also takes letters that died of these */
    WHY_MAX = 200,
    SAYINGS_MAX = JOBS_MAX /* of one piece of work: of each job one, at the most */
};

#define ACTOR       "hikyaku"
#define AUTO_REASON "auto_redrive: the breaker has closed"

/* Reasons of the dead letters that an outage leaves behind: one redrive for each, one after the other. */
static const char *const outage_reasons[] = {"RETRY_EXHAUSTED", "DEADLINE_EXCEEDED"};

enum {
    N_REASONS = sizeof outage_reasons / sizeof outage_reasons[0]
};

struct job {
    int64_t id;
    struct hk_filter *filter; /* NULL: this program cannot read it */
    int64_t wake_ms;          /* store time; 0 = at once */
    bool runs;                /* as the look in progress sees it */
    bool ours;                /* a step of ours has ended it; others say nothing of its end */
    char lacks[WHY_MAX];      /* the reason why we cannot go on with it; "" = we can */
};

/* A destination with auto_redrive. */
struct outage {
    char name[HK_NAME_MAX];
    bool of_file;      /* the configuration's, not the store's */
    uint64_t open_ms;  /* of its breaker */
    int64_t until_ms;  /* as the poll at hand has it; 0 = its breaker is closed */
    int64_t opened_ms; /* store time; 0 = its breaker is closed */
    int64_t since_ms;  /* letters that died since then are to be redriven … */
    unsigned reason;   /* … of this reason; N_REASONS = nothing is to be done */
    int64_t job;       /* of the reason before; 0 = none */
    bool waits;        /* for that job's end */
};

/* For the log, which is the loop's. */
struct saying {
    int64_t id;
    enum hk_log_level level;
    const char *what;
    struct hk_redrive_facts facts;
    char why[WHY_MAX];
};

struct hk_redriver {
    struct hk_redriver_options options;
    struct hk_keyring *keys;        /* open sealed payloads; NULL: there are none */
    struct hk_regrouper *regrouper; /* the other work on letters; it has its turn when it is due */
    bool regroups;                  /* the work under way is its */
    struct hk_admin *admin;         /* NULL: closed */
    struct job jobs[JOBS_MAX];
    size_t n_jobs;
    struct outage *outages; /* by name */
    size_t n_outages;
    uint64_t kept_changes; /* as of the last look at the destinations of the store */
    bool kept_known;
    bool look;
    int64_t look_at_ms; /* not before */
    int64_t acts;       /* of the last poll */
    int64_t at_ms;
    /* of the last work */
    enum hk_code rc, last_rc;
    bool looked;
    struct hk_err err;
    struct saying sayings[SAYINGS_MAX];
    size_t n_sayings;
    char keyless[WHY_MAX]; /* of the job that waits for a key; "" = none */
};

enum hk_code hk_redriver_new(const struct hk_redriver_options *options, struct hk_redriver **out_redriver,
                             struct hk_err *err)
{
    struct hk_redriver *rd = hk_mem_zalloc(1, sizeof *rd);
    if (!rd)
        return hk_err_set(err, HK_NOMEM, "out of memory for redrives");
    rd->options = *options;
    rd->acts = INT64_MIN;
    rd->at_ms = INT64_MAX;
    const struct hk_regrouper_options regroups = {
        .url = options->url, .admin = options->admin, .letters = options->letters, .log = options->log};
    enum hk_code rc = hk_regrouper_new(&regroups, &rd->regrouper, err);
    if (rc != HK_OK) {
        hk_mem_free(rd);
        return rc;
    }
    *out_redriver = rd;
    return HK_OK;
}

static void forget(struct hk_redriver *rd, size_t i)
{
    hk_filter_free(rd->jobs[i].filter);
    rd->jobs[i] = rd->jobs[--rd->n_jobs];
}

static void disconnect(struct hk_redriver *rd)
{
    rd->options.admin->close(rd->admin);
    rd->admin = NULL;
}

void hk_redriver_close(struct hk_redriver *rd)
{
    while (rd->n_jobs)
        forget(rd, rd->n_jobs - 1);
    disconnect(rd);
    hk_regrouper_close(rd->regrouper);
}

void hk_redriver_free(struct hk_redriver *rd)
{
    if (!rd)
        return;
    hk_redriver_close(rd);
    hk_regrouper_free(rd->regrouper);
    hk_mem_free(rd->outages);
    hk_mem_free(rd);
}

/* ---- outages ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct outage *)a)->name, ((const struct outage *)b)->name);
}

static struct outage *find_outage(const struct hk_redriver *rd, struct hk_str name)
{
    struct outage key = {.name = ""};
    if (!rd->n_outages || !hk_str_copy(key.name, sizeof key.name, name))
        return NULL;
    return bsearch(&key, rd->outages, rd->n_outages, sizeof key, by_name);
}

/* Appends a destination to `outages`. If it is known already, its state stays. */
static void add_outage(const struct hk_redriver *rd, struct outage *outages, size_t *n, const char *name,
                       uint64_t open_ms, bool of_file)
{
    const struct outage *before = find_outage(rd, hk_str_of(name));
    struct outage *o = &outages[*n];
    *o = before ? *before : (struct outage){.reason = N_REASONS};
    if (!hk_str_copy(o->name, sizeof o->name, hk_str_of(name)))
        return;
    o->open_ms = open_ms;
    o->of_file = of_file;
    (*n)++;
}

/* `keep_file`: those there are, of the configuration or of the store, but for the others, which `outages` has. */
static void take_outages(struct hk_redriver *rd, struct outage *outages, size_t n, bool keep_file)
{
    for (size_t i = 0; i < rd->n_outages; i++)
        if (rd->outages[i].of_file == keep_file)
            outages[n++] = rd->outages[i];
    qsort(outages, n, sizeof *outages, by_name);
    hk_mem_free(rd->outages);
    rd->outages = outages;
    rd->n_outages = n;
}

void hk_redriver_set_keys(struct hk_redriver *rd, struct hk_keyring *keys)
{
    rd->keys = keys;
}

/* Those of the store are left out until the next look at them, which tells which of them are the configuration's now. */
enum hk_code hk_redriver_configure(struct hk_redriver *rd, const struct hk_config *config, struct hk_err *err)
{
    const struct hk_conf_destination *d;
    size_t n = 0, room = 1;
    while (hk_config_destination(config, room - 1))
        room++;
    struct outage *outages = hk_mem_zalloc(room + rd->n_outages, sizeof *outages);
    if (!outages)
        return hk_err_set(err, HK_NOMEM, "out of memory for redrives");
    enum hk_code rc = hk_regrouper_configure(rd->regrouper, config, err);
    if (rc != HK_OK) {
        hk_mem_free(outages);
        return rc;
    }
    for (size_t i = 0; (d = hk_config_destination(config, i)); i++)
        if (d->auto_redrive && d->has_breaker)
            add_outage(rd, outages, &n, d->name, d->breaker.open_ms, true);
    for (size_t i = 0; i < rd->n_outages; i++) /* of which there is to be one of each name */
        if (hk_config_destination_named(config, hk_str_of(rd->outages[i].name)))
            rd->outages[i].of_file = true;
    take_outages(rd, outages, n, false);
    rd->kept_known = false;
    return HK_OK;
}

void hk_redriver_kept(struct hk_redriver *rd, const struct hk_kept *kept)
{
    struct hk_kept_view view;
    size_t n = 0, wanted = 0;
    if (rd->kept_known && rd->kept_changes == hk_kept_changes(kept))
        return;
    for (size_t i = 0; hk_kept_view(kept, i, &view); i++)
        wanted += view.auto_redrive && !view.of_file;
    struct outage *outages = hk_mem_zalloc(wanted + rd->n_outages + 1, sizeof *outages);
    if (!outages)
        return;
    for (size_t i = 0; hk_kept_view(kept, i, &view); i++)
        if (view.auto_redrive && !view.of_file)
            add_outage(rd, outages, &n, view.name, view.breaker_open_ms, false);
    take_outages(rd, outages, n, true);
    rd->kept_changes = hk_kept_changes(kept);
    rd->kept_known = true;
}

/* Breakers of other relays, and of an earlier run: the store knows only until when they are open, not since when. */
static void hear(struct hk_redriver *rd, const struct hk_poll *poll)
{
    for (size_t i = 0; i < rd->n_outages; i++)
        rd->outages[i].until_ms = 0;
    for (size_t k = 0; k < poll->n_dests; k++) {
        struct outage *o = find_outage(rd, poll->dests[k].name);
        if (o)
            o->until_ms = poll->dests[k].open_until_ms;
    }
    for (size_t i = 0; i < rd->n_outages; i++) {
        struct outage *o = &rd->outages[i];
        int64_t began_ms = o->until_ms - (int64_t)o->open_ms;
        if (o->until_ms == 0)
            o->opened_ms = 0; /* closed by another relay, which does what is to be done, or by a person */
        else if (o->opened_ms == 0)
            o->opened_ms = began_ms < poll->now_ms ? began_ms : poll->now_ms;
    }
}

static void wake(struct hk_redriver *rd, int64_t at_ms)
{
    if (at_ms < rd->at_ms)
        rd->at_ms = at_ms;
}

void hk_redriver_polled(struct hk_redriver *rd, const struct hk_poll *poll, int64_t now_ms)
{
    if (!poll->changed)
        return;
    hear(rd, poll);
    if (poll->acts == rd->acts)
        return;
    rd->acts = poll->acts;
    rd->look = true;
    wake(rd, rd->look_at_ms > now_ms ? rd->look_at_ms : now_ms);
}

void hk_redriver_told(struct hk_redriver *rd, const struct hk_circuit *circuits, size_t n,
                      int64_t store_now_ms, int64_t now_ms)
{
    for (size_t i = 0; i < n; i++) {
        struct outage *o = find_outage(rd, hk_str_of(circuits[i].destination));
        if (!o)
            continue;
        if (circuits[i].open_until_ms) {
            o->opened_ms = o->opened_ms ? o->opened_ms : store_now_ms;
            continue;
        }
        if (!o->opened_ms)
            continue;
        int64_t since_ms = o->opened_ms - BEFORE_OPEN_MS;
        o->opened_ms = 0;
        o->since_ms = since_ms;
        o->reason = 0;
        o->job = 0;
        o->waits = false;
        wake(rd, now_ms);
    }
}

static struct outage *due_outage(const struct hk_redriver *rd)
{
    for (size_t i = 0; i < rd->n_outages; i++)
        if (rd->outages[i].reason < N_REASONS && !rd->outages[i].waits)
            return &rd->outages[i];
    return NULL;
}

/* ---- the store's thread: log lines ---- */

static struct saying *say(struct hk_redriver *rd, int64_t id, enum hk_log_level level, const char *what)
{
    assert(rd->n_sayings < SAYINGS_MAX);
    struct saying *s = &rd->sayings[rd->n_sayings++];
    *s = (struct saying){.id = id, .level = level, .what = what};
    return s;
}

static void set_why(struct saying *s, struct hk_str why)
{
    if (why.len >= sizeof s->why)
        why.len = sizeof s->why - 1;
    (void)hk_str_copy(s->why, sizeof s->why, why);
}

static void say_begin(struct hk_redriver *rd, const struct hk_redrive_job *job)
{
    bool fresh = job->facts.requeued == 0;
    say(rd, job->id, HK_LOG_INFO, fresh ? "redrive started" : "redrive continued")->facts = job->facts;
}

static enum hk_code say_end(struct hk_redriver *rd, int64_t id, bool by_us)
{
    static const char *const what[HK_NREDRIVE_STATUSES] = {[HK_REDRIVE_DONE] = "redrive finished",
                                                           [HK_REDRIVE_CANCELLED] = "redrive cancelled",
                                                           [HK_REDRIVE_ABORTED] = "redrive aborted"};
    const struct hk_redrive_jobs *jobs = NULL;
    enum hk_code rc = rd->options.letters->redrive_list(rd->admin, id, false, &jobs, &rd->err);
    if (rc != HK_OK || jobs->n == 0)
        return rc;
    const struct hk_redrive_job *job = &jobs->items[0];
    bool cancelled = job->status == HK_REDRIVE_CANCELLED;
    if ((!by_us && !cancelled) || !what[job->status])
        return HK_OK; /* whoever ended it says so */
    struct saying *s =
        say(rd, id, job->status == HK_REDRIVE_ABORTED ? HK_LOG_WARN : HK_LOG_INFO, what[job->status]);
    s->facts = job->facts;
    set_why(s, job->ending);
    return HK_OK;
}

/* ---- the store's thread: work ---- */

static bool copy_text(struct hk_str text, char out[HK_FILTER_TEXT_MAX + 1])
{
    return hk_str_copy(out, HK_FILTER_TEXT_MAX + 1, text);
}

/* A filter that cannot be read (of a newer version) is said once; its job is left to others. */
static enum hk_code read_filter(struct hk_redriver *rd, struct job *job, const struct hk_redrive_job *row)
{
    char text[HK_FILTER_TEXT_MAX + 1];
    struct hk_err err = {.message = "the filter is too long"};
    enum hk_code rc = HK_INVALID;
    if (copy_text(row->filter, text))
        rc = hk_filter_parse(text, row->created_ms, &job->filter, &err);
    if (rc == HK_INVALID) {
        set_why(say(rd, row->id, HK_LOG_WARN, "redrive cannot be understood"), hk_str_of(err.message));
        return HK_OK;
    }
    if (rc != HK_OK)
        rd->err = err;
    return rc;
}

static struct job *find_job(struct hk_redriver *rd, int64_t id)
{
    for (size_t i = 0; i < rd->n_jobs; i++)
        if (rd->jobs[i].id == id)
            return &rd->jobs[i];
    return NULL;
}

static enum hk_code meet(struct hk_redriver *rd, const struct hk_redrive_job *row)
{
    struct job *job = find_job(rd, row->id);
    if (job) {
        job->runs = true;
        return HK_OK;
    }
    if (rd->n_jobs == JOBS_MAX)
        return HK_OK;
    job = &rd->jobs[rd->n_jobs];
    *job = (struct job){.id = row->id, .runs = true};
    enum hk_code rc = read_filter(rd, job, row);
    if (rc != HK_OK)
        return rc;
    rd->n_jobs++;
    if (job->filter)
        say_begin(rd, row);
    return HK_OK;
}

static enum hk_code look(struct hk_redriver *rd)
{
    const struct hk_redrive_jobs *jobs = NULL;
    enum hk_code rc = rd->options.letters->redrive_list(rd->admin, 0, true, &jobs, &rd->err);
    for (size_t i = 0; i < rd->n_jobs; i++)
        rd->jobs[i].runs = false;
    for (size_t i = 0; rc == HK_OK && i < jobs->n; i++)
        rc = meet(rd, &jobs->items[i]);
    for (size_t i = rd->n_jobs; rc == HK_OK && i-- > 0;) {
        if (rd->jobs[i].runs)
            continue;
        rc = say_end(rd, rd->jobs[i].id, rd->jobs[i].ours);
        if (rc == HK_OK)
            forget(rd, i);
    }
    for (size_t i = 0; i < rd->n_outages; i++)
        rd->outages[i].waits = false;
    rd->look = rc != HK_OK;
    rd->looked = true;
    return rc;
}

static struct job *first_job(struct hk_redriver *rd)
{
    struct job *first = NULL;
    for (size_t i = 0; i < rd->n_jobs; i++)
        if (rd->jobs[i].filter && (!first || rd->jobs[i].wake_ms < first->wake_ms))
            first = &rd->jobs[i];
    return first;
}

/* Said once, until we can go on again. */
static void note_lack(struct hk_redriver *rd, struct job *job, const struct hk_err *unsure)
{
    bool known = job->lacks[0] != '\0', lacks = unsure && unsure->code != HK_OK;
    (void)snprintf(job->lacks, sizeof job->lacks, "%.*s", WHY_MAX - 1, lacks ? unsure->message : "");
    if (lacks && !known)
        set_why(say(rd, job->id, HK_LOG_ERROR, "redrive waits: this relay cannot open a sealed payload"),
                hk_str_of(job->lacks));
}

static enum hk_code step(struct hk_redriver *rd, struct job *job)
{
    int64_t wake_ms = 0;
    bool ended = false;
    const struct hk_letter_query *query = hk_filter_query(job->filter);
    if (hk_filter_opens(job->filter))
        hk_filter_open_sealed(job->filter, rd->keys);
    enum hk_code rc =
        rd->options.letters->redrive_step(rd->admin, job->id, query, &wake_ms, &ended, &rd->err);
    if (rc == HK_NOTFOUND) { /* retention took it */
        forget(rd, (size_t)(job - rd->jobs));
        return HK_OK;
    }
    if (rc != HK_OK)
        return rc;
    job->wake_ms = wake_ms;
    note_lack(rd, job, query->unsure);
    if (wake_ms)
        return HK_OK;
    job->ours = job->ours || ended;
    rc = say_end(rd, job->id, job->ours);
    if (rc == HK_OK)
        forget(rd, (size_t)(job - rd->jobs)); /* else the next step finds its end again */
    return rc;
}

/* ---- auto_redrive ---- */

static void outage_filter(const struct outage *o, char *out, size_t room)
{
    char since[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(o->since_ms, since);
    (void)snprintf(out, room, "destination:%s reason:%s since:%s", o->name, outage_reasons[o->reason], since);
}

/* Does such a job run for this destination, or (`before`) an older one than that? */
static enum hk_code find_auto_job(struct hk_redriver *rd, const struct outage *o, int64_t before,
                                  bool *out_found)
{
    const struct hk_redrive_jobs *jobs = NULL;
    char begin[128];
    *out_found = false;
    (void)snprintf(begin, sizeof begin, "destination:%s ", o->name);
    enum hk_code rc = rd->options.letters->redrive_list(rd->admin, 0, true, &jobs, &rd->err);
    for (size_t i = 0; rc == HK_OK && i < jobs->n; i++) {
        const struct hk_redrive_job *job = &jobs->items[i];
        if (hk_str_eq(job->actor, hk_str_of(ACTOR)) && hk_str_starts(job->filter, hk_str_of(begin)) &&
            (!before || job->id < before))
            *out_found = true;
    }
    return rc;
}

/* Two relays may have had the same thought at once: the older job stays. */
static enum hk_code start_job(struct hk_redriver *rd, struct outage *o, const struct hk_letter_query *query,
                              const char *filter, uint64_t total)
{
    const struct hk_redrive_job job = {.filter = hk_str_of(filter),
                                       .facts = {.total = total},
                                       .pace = {.canary = 1, .abort_ratio = 0.2},
                                       .ids = HK_REQUEUE_AUTO,
                                       .actor = hk_str_of(ACTOR),
                                       .reason = hk_str_of(AUTO_REASON)};
    bool older = false;
    int64_t id = 0;
    enum hk_code rc = rd->options.letters->redrive_start(rd->admin, query, &job, &id, &rd->err);
    if (rc == HK_CONFLICT) {
        o->reason = N_REASONS;
        return HK_OK;
    }
    if (rc != HK_OK)
        return rc;
    o->job = id;
    o->reason++;
    rd->look = true;
    rc = find_auto_job(rd, o, id, &older);
    if (rc != HK_OK || !older)
        return HK_OK; /* it has been started: the rest is a nicety */
    o->reason = N_REASONS;
    return rd->options.letters->redrive_cancel(rd->admin, id, ACTOR, "another relay has started one",
                                               &rd->err);
}

/* The cause is not gone when the job before it says so; and where nothing died nothing is started. */
static enum hk_code start_auto(struct hk_redriver *rd, struct outage *o)
{
    char text[256];
    struct hk_filter *filter = NULL;
    struct hk_count count = {.n = 0};
    outage_filter(o, text, sizeof text);
    enum hk_code rc = hk_filter_parse(text, 0, &filter, &rd->err);
    if (rc != HK_OK)
        return rc;
    struct hk_letter_query query = *hk_filter_query(filter);
    query.statuses = 1u << HK_LETTER_FAILED;
    rc = rd->options.letters->count(rd->admin, &query, &count, &rd->err);
    if (rc == HK_OK && count.n)
        rc = start_job(rd, o, &query, text, count.n);
    else if (rc == HK_OK)
        o->reason++;
    hk_filter_free(filter);
    return rc;
}

static enum hk_code look_after(struct hk_redriver *rd, struct outage *o)
{
    const struct hk_redrive_jobs *jobs = NULL;
    bool runs = false;
    enum hk_code rc = find_auto_job(rd, o, 0, &runs);
    if (rc != HK_OK)
        return rc;
    if (runs) {
        o->waits = o->job != 0; /* our own: its end is an act, and that brings the next look */
        o->reason = o->waits ? o->reason : N_REASONS;
        return HK_OK;
    }
    if (o->job) {
        rc = rd->options.letters->redrive_list(rd->admin, o->job, false, &jobs, &rd->err);
        if (rc != HK_OK)
            return rc;
        if (jobs->n && jobs->items[0].status != HK_REDRIVE_DONE) {
            o->reason = N_REASONS;
            return HK_OK;
        }
    }
    return start_auto(rd, o);
}

static enum hk_code do_work(struct hk_redriver *rd, int64_t now_ms)
{
    struct outage *outage = due_outage(rd);
    struct job *job = first_job(rd);
    if (rd->look && now_ms >= rd->look_at_ms)
        return look(rd);
    if (outage)
        return look_after(rd, outage);
    return job ? step(rd, job) : HK_OK;
}

void hk_redriver_work(struct hk_redriver *rd, int64_t now_ms)
{
    const struct hk_store_options options = {.busy_ms = LOCK_MS};
    rd->regroups = now_ms >= hk_regrouper_at_ms(rd->regrouper);
    if (rd->regroups) {
        hk_regrouper_work(rd->regrouper);
        return;
    }
    rd->n_sayings = 0;
    rd->looked = false;
    rd->err.message[0] = '\0';
    rd->rc = rd->admin ? HK_OK : rd->options.admin->open(rd->options.url, &options, &rd->admin, &rd->err);
    if (rd->rc == HK_OK)
        rd->rc = do_work(rd, now_ms);
    bool idle = rd->rc == HK_OK && !rd->look && !rd->n_jobs && !due_outage(rd);
    bool broken = rd->rc != HK_OK && rd->rc != HK_BUSY;
    if (idle || broken)
        disconnect(rd);
    rd->look = rd->look || broken;
}

/* ---- the loop ---- */

int64_t hk_redriver_at_ms(const struct hk_redriver *rd)
{
    int64_t at_ms = hk_regrouper_at_ms(rd->regrouper);
    return rd->at_ms < at_ms ? rd->at_ms : at_ms;
}

const char *hk_redriver_keyless(const struct hk_redriver *rd)
{
    return rd->keyless[0] ? rd->keyless : NULL;
}

static void log_saying(struct hk_redriver *rd, const struct saying *s)
{
    struct hk_log_line line;
    hk_log_begin(&line, rd->options.log, s->level, s->what);
    hk_log_i64(&line, "redrive", s->id);
    if (s->facts.total) {
        hk_log_i64(&line, "letters", (int64_t)s->facts.total);
        hk_log_i64(&line, "requeued", (int64_t)s->facts.requeued);
        hk_log_i64(&line, "arrived", (int64_t)s->facts.resolved);
        hk_log_i64(&line, "failed", (int64_t)s->facts.failed);
    }
    if (s->why[0])
        hk_log_cstr(&line, "why", s->why);
    hk_log_end(&line);
}

/* Once when it begins; when it ends the redrives' own lines say so. */
static void log_trouble(struct hk_redriver *rd)
{
    struct hk_log_line line;
    bool said = rd->rc == rd->last_rc || rd->rc == HK_OK || rd->rc == HK_BUSY;
    rd->last_rc = rd->rc == HK_BUSY ? rd->last_rc : rd->rc;
    if (said)
        return;
    hk_log_begin(&line, rd->options.log, HK_LOG_WARN, "redrives cannot continue, trying again");
    hk_log_cstr(&line, "code", hk_code_name(rd->rc));
    hk_log_cstr(&line, "error", rd->err.message);
    hk_log_end(&line);
}

static int64_t next_at_ms(struct hk_redriver *rd, int64_t store_now_ms, int64_t now_ms)
{
    if (rd->rc == HK_BUSY)
        return now_ms + BUSY_MS;
    if (rd->rc != HK_OK)
        return now_ms + TROUBLE_MS;
    const struct job *job = first_job(rd);
    int64_t at = rd->look ? rd->look_at_ms : INT64_MAX;
    if (due_outage(rd))
        at = now_ms;
    if (job) {
        int64_t step_at = job->wake_ms > store_now_ms ? now_ms + (job->wake_ms - store_now_ms) : now_ms;
        at = step_at < at ? step_at : at;
    }
    return at > now_ms ? at : now_ms;
}

void hk_redriver_done(struct hk_redriver *rd, int64_t store_now_ms, int64_t now_ms)
{
    if (rd->regroups) {
        hk_regrouper_done(rd->regrouper, now_ms);
        return;
    }
    rd->keyless[0] = '\0';
    for (size_t i = 0; i < rd->n_jobs && !rd->keyless[0]; i++)
        memcpy(rd->keyless, rd->jobs[i].lacks, sizeof rd->keyless);
    for (size_t i = 0; i < rd->n_sayings; i++)
        log_saying(rd, &rd->sayings[i]);
    rd->n_sayings = 0;
    log_trouble(rd);
    if (rd->looked)
        rd->look_at_ms = now_ms + LOOK_EVERY_MS;
    rd->at_ms = next_at_ms(rd, store_now_ms, now_ms);
}
