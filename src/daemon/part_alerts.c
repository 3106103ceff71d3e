/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts beside the relay, on the loop: what is due goes to a thread that may wait for the store, or to a channel's thread that
 * may wait for the world. One job at the store at a time: it writes what became of notices, evaluates when it is due, and
 * claims notices for channels that are free. What must be told without the store (it cannot be reached) is decided and kept
 * here. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/ms.h"
#include "base/str.h"
#include "daemon/alerts.h"
#include "daemon/part.h"
#include "exec/clock.h"
#include "observe/crash.h"

#define POLL_MS     1000 /* notices that other relays left behind */
#define STARTING_MS 50
#define TROUBLE_MS  5000 /* the store does not answer: try again */
#define SETTLES_MAX 64
#define DIRECT_MAX  64
#define OWN_MAX     8 /* rules that need no store */
#define ERROR_MAX   512

struct part;

/* One notice on its way to one channel. */
struct errand {
    struct part *part;
    struct hk_alerts_plan *plan;
    struct hk_pool arena;
    size_t channel; /* its place in the plan */
    size_t slot;    /* whose thread takes it: the place of the same channel when it is sent */
    struct hk_notice notice;
    char id[80]; /* the same in every attempt */
    int64_t row; /* in the store; 0 = it is ours alone */
    uint32_t attempts;
    int64_t due_ms; /* of those without a row; the loop's clock */
    /* result */
    enum hk_code rc;
    uint64_t asked_ms;
    struct hk_err err;
};

struct settle {
    struct hk_alerts_settle what;
    char error[ERROR_MAX];
};

struct store_job {
    struct hk_alerts_plan *plan;
    bool evaluate;
    uint32_t free; /* channels, as bits */
    struct settle settles[SETTLES_MAX];
    size_t n_settles, settled;
    /* results */
    enum hk_code rc;
    struct hk_err err;
    struct hk_alerts_evaluated evaluated;
    struct errand *claimed[HK_ALERTS_CHANNELS_MAX];
    size_t n_claimed;
};

/* A rule that is told without the store. */
struct own {
    char name[64];
    char detail[ERROR_MAX];
    struct hk_alert alert;
    int64_t muted_ms; /* until then; 0 = it is not */
};

struct part {
    const struct hk_part_env *env;
    struct hk_alerts_stats *stats, own_stats;
    struct hk_alerts_plan *plan;    /* NULL: nobody is to be told */
    struct hk_alerts_rounds rounds; /* the store thread's */
    struct hk_worker *store, *senders[HK_ALERTS_CHANNELS_MAX];
    bool busy[HK_ALERTS_CHANNELS_MAX];
    struct hk_timer *timer;
    struct store_job job;
    bool job_busy;
    struct settle settles[SETTLES_MAX]; /* that wait for the next job */
    size_t n_settles;
    int64_t evaluate_at_ms, claim_at_ms;
    struct errand *direct[DIRECT_MAX]; /* oldest first */
    size_t n_direct;
    struct own own[OWN_MAX];
    size_t n_own;
    bool in_trouble; /* said so */
    bool stopping;
    atomic_bool abandoned; /* it stops: channels are not waited for */
};

static void pump(void *arg);

/* ---- errands ---- */

static void errand_free(struct errand *e)
{
    if (!e)
        return;
    hk_pool_wipe(&e->arena);
    hk_alerts_plan_unref(e->plan);
    hk_mem_free(e);
}

/* On a channel's thread. */
static void run_errand(void *arg)
{
    struct errand *e = arg;
    struct hk_channel channel = e->plan->channels[e->channel];
    channel.abandoned = &e->part->abandoned;
    e->rc = hk_channel_send(&channel, &e->notice, e->id, &e->asked_ms, &e->err);
    if (e->rc == HK_OK)
        hk_crash_point("alert-sent");
}

static void log_errand(const struct errand *e, const char *event, enum hk_log_level level, uint64_t wait_ms)
{
    struct hk_log_line line;
    hk_log_begin(&line, e->part->env->log, level, event);
    hk_log_cstr(&line, "channel", e->plan->channels[e->channel].name);
    hk_log_cstr(&line, "rule", e->notice.rule);
    hk_log_cstr(&line, "notice", hk_notice_word(e->notice.kind));
    hk_log_i64(&line, "attempt", e->attempts);
    if (e->rc != HK_OK)
        hk_log_cstr(&line, "error", e->err.message);
    if (e->rc != HK_OK && wait_ms != UINT64_MAX)
        hk_log_ms(&line, "again_in", wait_ms);
    hk_log_end(&line);
}

/* What came of it: counted, logged. UINT64_MAX: it is done with, or given up; else when to try again. */
static uint64_t judge(struct errand *e)
{
    struct hk_alerts_stats *stats = e->part->stats;
    uint64_t wait_ms = UINT64_MAX;
    if (e->rc == HK_OK) {
        atomic_fetch_add(&stats->sent, 1);
        log_errand(e, "notice sent", HK_LOG_INFO, 0);
        return wait_ms;
    }
    if (e->rc == HK_CANCELLED) { /* another relay tells it, or this one when it is started again */
        log_errand(e, "notice abandoned", HK_LOG_INFO, 0);
        return 0;
    }
    atomic_fetch_add(&stats->failed, 1);
    if (e->rc != HK_INVALID)
        wait_ms = hk_notice_wait_ms(&hk_notice_retry_default, e->attempts, e->asked_ms);
    if (wait_ms == UINT64_MAX)
        atomic_fetch_add(&stats->dropped, 1);
    log_errand(e, wait_ms == UINT64_MAX ? "notice given up" : "notice failed",
               wait_ms == UINT64_MAX ? HK_LOG_ERROR : HK_LOG_WARN, wait_ms);
    return wait_ms;
}

static void add_settle(struct part *p, const struct errand *e, enum hk_notice_outcome outcome,
                       uint64_t wait_ms)
{
    if (p->n_settles == SETTLES_MAX)
        return; /* its lease runs out, and it is told again */
    struct settle *s = &p->settles[p->n_settles++];
    (void)snprintf(s->error, sizeof s->error, "%s", e->rc == HK_OK ? "" : e->err.message);
    s->what = (struct hk_alerts_settle){
        .id = e->row, .attempts = e->attempts, .outcome = outcome, .wait_ms = wait_ms};
}

static void keep_direct(struct part *p, struct errand *e)
{
    if (p->n_direct == DIRECT_MAX) {
        atomic_fetch_add(&p->stats->dropped, 1);
        errand_free(p->direct[0]);
        memmove(&p->direct[0], &p->direct[1], (DIRECT_MAX - 1) * sizeof(struct errand *));
        p->n_direct--;
    }
    p->direct[p->n_direct++] = e;
}

/* Back to where it stood: in front. */
static void return_direct(struct part *p, struct errand *e)
{
    if (p->n_direct == DIRECT_MAX) {
        atomic_fetch_add(&p->stats->dropped, 1);
        errand_free(e);
        return;
    }
    memmove(&p->direct[1], &p->direct[0], p->n_direct * sizeof(struct errand *));
    p->direct[0] = e;
    p->n_direct++;
}

static void on_errand_done(void *arg, bool ran)
{
    struct errand *e = arg;
    struct part *p = e->part;
    p->busy[e->slot] = false;
    uint64_t wait_ms = ran ? judge(e) : 0;
    bool again = wait_ms != UINT64_MAX;
    if (e->row) {
        add_settle(p, e, !again ? (e->rc == HK_OK ? HK_NOTICE_SENT : HK_NOTICE_GIVEN_UP) : HK_NOTICE_AGAIN,
                   again ? wait_ms : 0);
    } else if (again && !p->stopping) {
        e->due_ms = hk_ms_after((int64_t)hk_loop_now_ms(p->env->loop), wait_ms);
        return_direct(p, e);
        e = NULL;
    }
    errand_free(e);
    pump(p);
}

/* The errand is the worker's from here on; or it is given back. */
static void dispatch(struct part *p, struct errand *e)
{
    struct hk_err err = {.message = ""};
    enum hk_code rc = HK_OK;
    if (!p->senders[e->slot])
        rc = hk_worker_new(p->env->loop, 2, &p->senders[e->slot], &err);
    if (rc == HK_OK && !p->busy[e->slot])
        rc = hk_worker_submit(p->senders[e->slot], run_errand, on_errand_done, e);
    else if (rc == HK_OK)
        rc = HK_BUSY;
    if (rc == HK_OK) {
        p->busy[e->slot] = true;
        return;
    }
    e->rc = rc;
    e->err = err;
    if (e->row)
        add_settle(p, e, HK_NOTICE_AGAIN, POLL_MS);
    errand_free(e);
}

/* ---- told without the store ---- */

static void tell_directly(struct part *p, const struct own *own, const struct hk_alert_rule *rule,
                          size_t channel, enum hk_notice_kind kind, int64_t now_ms)
{
    struct errand *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return;
    e->part = p;
    e->plan = hk_alerts_plan_ref(p->plan);
    e->channel = channel;
    e->due_ms = 0;
    hk_alerts_notice_of(p->plan, &own->alert, kind, now_ms, &e->notice);
    e->notice.rule = rule->name; /* the plan's, as all that it points to but this */
    e->notice.fingerprint = hk_pool_copy_str(&e->arena, hk_str_of(own->alert.fingerprint));
    (void)snprintf(e->id, sizeof e->id, "%s-%s-%lld", own->alert.fingerprint, hk_notice_word(kind),
                   (long long)now_ms);
    const char *detail = hk_pool_copy_str(&e->arena, e->notice.detail);
    e->notice.detail = hk_str_of(detail ? detail : "");
    if (e->notice.fingerprint)
        keep_direct(p, e);
    else
        errand_free(e);
}

static struct own *own_of(struct part *p, const struct hk_alert_rule *rule)
{
    for (size_t i = 0; i < p->n_own; i++)
        if (p->own[i].alert.kind == rule->kind && strcmp(p->own[i].name, rule->name) == 0)
            return &p->own[i];
    if (p->n_own == OWN_MAX)
        return NULL;
    struct own *own = &p->own[p->n_own++];
    *own = (struct own){.alert = {.kind = rule->kind, .severity = rule->severity}};
    (void)snprintf(own->name, sizeof own->name, "%s", rule->name);
    own->alert.rule = hk_str_of(own->name);
    hk_alert_fingerprint(own->alert.rule, hk_str_of(p->env->name), hk_str_of(""), own->alert.fingerprint);
    return own;
}

static void step_own(struct part *p, size_t r, bool holds, const char *detail)
{
    const struct hk_alert_rule *rule = &p->plan->rules[r];
    struct own *own = own_of(p, rule);
    struct hk_alert_settings settings = p->plan->settings;
    enum hk_notice_kind kind = HK_NOTICE_FIRING;
    int64_t now_ms = hk_clock_wall_ms();
    if (!own)
        return;
    const struct hk_alert_mute mute = {hk_str_of(rule->name), own->muted_ms};
    settings.mutes = &mute;
    settings.n_mutes = 1;
    own->alert.active = holds;
    (void)snprintf(own->detail, sizeof own->detail, "%s", detail);
    own->alert.detail = hk_str_of(own->detail);
    if (!hk_alert_step(&own->alert, rule, &settings, now_ms, &kind))
        return;
    for (size_t i = 0; i < p->plan->n_channels; i++)
        if (rule->channels >> i & 1u)
            tell_directly(p, own, rule, i, kind, now_ms);
}

static void on_beat(void *arg, int64_t now_ms, bool store_ok, const char *keyless)
{
    struct part *p = arg;
    (void)now_ms;
    if (!p->plan || p->stopping)
        return;
    size_t before = p->n_direct;
    for (size_t r = 0; r < p->plan->n_rules; r++)
        if (p->plan->rules[r].kind == HK_ALERT_STORE_UNREACHABLE)
            step_own(p, r, !store_ok, "");
        else if (p->plan->rules[r].kind == HK_ALERT_KEY_MISSING)
            step_own(p, r, keyless != NULL, keyless ? keyless : "");
    if (p->n_direct > before)
        pump(p);
}

/* The place in today's plan of the channel that an errand is for; false: it is not there any more. */
static bool place_of(const struct part *p, const struct errand *e, size_t *out)
{
    const char *name = e->plan->channels[e->channel].name;
    for (size_t i = 0; p->plan && i < p->plan->n_channels; i++)
        if (strcmp(p->plan->channels[i].name, name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* Each channel's in order. Returns when the next is due. */
static int64_t dispatch_direct(struct part *p, int64_t now_ms, uint32_t *out_waiting)
{
    int64_t next_ms = INT64_MAX;
    uint32_t waiting = 0;
    for (size_t i = 0; i < p->n_direct;) {
        struct errand *e = p->direct[i];
        size_t place = 0;
        bool there = place_of(p, e, &place), first = there && !(waiting >> place & 1u);
        bool goes = first && e->due_ms <= now_ms && !p->busy[place];
        if (there && !goes) {
            waiting |= UINT32_C(1) << place;
            if (first && !p->busy[place])
                next_ms = hk_ms_earlier(next_ms, e->due_ms);
            i++;
            continue;
        }
        p->n_direct--;
        memmove(&p->direct[i], &p->direct[i + 1], (p->n_direct - i) * sizeof(struct errand *));
        if (goes) {
            e->attempts++;
            e->slot = place;
            dispatch(p, e);
        } else { /* its channel is gone */
            errand_free(e);
        }
    }
    *out_waiting = waiting;
    return next_ms;
}

/* ---- the store's thread ---- */

static struct errand *errand_of(struct part *p, struct hk_alerts_plan *plan,
                                const struct hk_alerts_claimed *claimed)
{
    struct errand *e = hk_mem_zalloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->part = p;
    e->row = claimed->id;
    e->attempts = claimed->attempts;
    for (size_t i = 0; i < plan->n_channels; i++)
        if (hk_str_eq(claimed->channel, hk_str_of(plan->channels[i].name)))
            e->channel = e->slot = i;
    e->notice = (struct hk_notice){.kind = claimed->kind, .relay = plan->relay, .link = plan->link};
    e->notice.rule = hk_pool_copy_str(&e->arena, claimed->rule);
    e->notice.fingerprint = hk_pool_copy_str(&e->arena, claimed->fingerprint);
    (void)snprintf(e->id, sizeof e->id, "%.*s-%lld", (int)(claimed->fingerprint.len & 63u),
                   claimed->fingerprint.ptr, (long long)claimed->id);
    if (e->notice.rule && e->notice.fingerprint &&
        hk_alerts_facts_read(claimed->facts, &e->arena, &e->notice) == HK_OK)
        return e;
    hk_pool_wipe(&e->arena);
    hk_mem_free(e);
    return NULL;
}

/* Those that could not be written stay at the front. */
static void write_settles(struct part *p, struct store_job *job)
{
    while (job->settled < job->n_settles && job->rc == HK_OK) {
        struct settle *s = &job->settles[job->settled];
        s->what.error = hk_str_of(s->error);
        job->rc = hk_alerts_settle(&p->rounds, &s->what, &job->err);
        job->settled += job->rc == HK_OK;
    }
}

static void run_store_job(void *arg)
{
    struct part *p = arg;
    struct store_job *job = &p->job;
    const struct hk_alerts_claims *claims = NULL;
    write_settles(p, job);
    if (job->rc == HK_OK && job->evaluate)
        job->rc = hk_alerts_evaluate(&p->rounds, job->plan, &job->evaluated, &job->err);
    if (job->rc == HK_OK && job->free)
        job->rc = hk_alerts_claim(&p->rounds, job->plan, job->free, &claims, &job->err);
    for (size_t i = 0; claims && i < claims->n; i++) {
        struct errand *e = errand_of(p, job->plan, &claims->items[i]);
        if (e)
            job->claimed[job->n_claimed++] = e;
    }
    if (job->rc != HK_OK && job->rc != HK_BUSY)
        hk_alerts_rounds_close(&p->rounds);
}

/* ---- the loop ---- */

static void log_trouble(struct part *p, enum hk_code rc, const struct hk_err *err)
{
    struct hk_log_line line;
    bool bad = rc != HK_OK && rc != HK_BUSY;
    if (bad == p->in_trouble)
        return;
    p->in_trouble = bad;
    hk_log_begin(&line, p->env->log, bad ? HK_LOG_WARN : HK_LOG_INFO,
                 bad ? "alerts cannot be evaluated" : "alerts are evaluated again");
    if (bad)
        hk_log_cstr(&line, "error", err->message);
    hk_log_end(&line);
}

static void take_evaluated(struct part *p, const struct store_job *job, int64_t now_ms)
{
    const struct hk_alerts_evaluated *e = &job->evaluated;
    p->evaluate_at_ms = hk_ms_after(now_ms, job->rc != HK_OK ? TROUBLE_MS
                                            : e->more        ? 0
                                                             : job->plan->interval_ms);
    if (job->rc != HK_OK)
        atomic_fetch_add(&p->stats->errors, 1);
    if (job->rc != HK_OK || !e->mine)
        return;
    atomic_fetch_add(&p->stats->evaluated, 1);
    atomic_store(&p->stats->firing, e->firing);
    for (size_t r = 0; r < job->plan->n_rules; r++) {
        const struct hk_alert_rule *rule = &job->plan->rules[r];
        struct own *own = hk_alert_kind_is_own(rule->kind) ? own_of(p, rule) : NULL;
        if (own)
            own->muted_ms = e->muted_ms[r];
    }
}

static void on_store_done(void *arg, bool ran)
{
    struct part *p = arg;
    struct store_job *job = &p->job;
    int64_t now_ms = (int64_t)hk_loop_now_ms(p->env->loop);
    p->job_busy = false;
    size_t left = ran ? job->n_settles - job->settled : job->n_settles;
    size_t room = SETTLES_MAX - p->n_settles; /* newer ones came meanwhile */
    left = left < room ? left : room;
    memmove(&p->settles[left], &p->settles[0], p->n_settles * sizeof p->settles[0]);
    memcpy(&p->settles[0], &job->settles[job->n_settles - left], left * sizeof p->settles[0]);
    p->n_settles += left;
    if (ran) {
        log_trouble(p, job->rc, &job->err);
        if (job->evaluate)
            take_evaluated(p, job, now_ms);
        uint64_t poll_ms = job->plan->interval_ms < POLL_MS ? job->plan->interval_ms : POLL_MS;
        p->claim_at_ms = hk_ms_after(now_ms, job->rc == HK_OK ? poll_ms : TROUBLE_MS);
    }
    for (size_t i = 0; i < job->n_claimed; i++) {
        struct errand *e = job->claimed[i];
        e->plan = hk_alerts_plan_ref(job->plan);
        if (p->stopping) {
            e->rc = HK_CANCELLED;
            add_settle(p, e, HK_NOTICE_AGAIN, 0);
            errand_free(e);
        } else {
            dispatch(p, e);
        }
    }
    hk_alerts_plan_unref(job->plan);
    job->plan = NULL;
    pump(p);
}

static uint32_t free_channels(const struct part *p, uint32_t waiting)
{
    uint32_t free = 0;
    for (size_t i = 0; i < p->plan->n_channels; i++)
        if (!p->busy[i] && !(waiting >> i & 1u))
            free |= UINT32_C(1) << i;
    return free;
}

static void submit(struct part *p, bool evaluate, uint32_t free)
{
    struct hk_err err = {.message = ""};
    struct store_job *job = &p->job;
    enum hk_code rc = p->store ? HK_OK : hk_worker_new(p->env->loop, 1, &p->store, &err);
    if (rc == HK_OK) {
        *job = (struct store_job){.plan = hk_alerts_plan_ref(p->plan),
                                  .evaluate = evaluate,
                                  .free = free,
                                  .n_settles = p->n_settles};
        memcpy(job->settles, p->settles, p->n_settles * sizeof p->settles[0]);
        rc = hk_worker_submit(p->store, run_store_job, on_store_done, p);
        if (rc != HK_OK)
            hk_alerts_plan_unref(job->plan);
    }
    if (rc != HK_OK) {
        log_trouble(p, rc, &err);
        p->evaluate_at_ms = p->claim_at_ms = hk_ms_after((int64_t)hk_loop_now_ms(p->env->loop), TROUBLE_MS);
        return;
    }
    p->n_settles = 0;
    p->job_busy = true;
}

/* Does what is due, and knows when to look again. */
static void pump(void *arg)
{
    struct part *p = arg;
    uint32_t waiting = 0;
    if (p->stopping || !p->plan)
        return;
    if (!p->env->relay) { /* it opens the store, and perhaps makes it */
        hk_timer_start(p->timer, STARTING_MS);
        return;
    }
    int64_t now_ms = (int64_t)hk_loop_now_ms(p->env->loop);
    int64_t next_ms = dispatch_direct(p, now_ms, &waiting);
    if (!p->job_busy) {
        bool evaluate = now_ms >= p->evaluate_at_ms;
        uint32_t free = free_channels(p, waiting);
        bool trouble = p->in_trouble && now_ms < p->claim_at_ms;
        bool claim = free && (now_ms >= p->claim_at_ms || evaluate || (p->n_settles && !trouble));
        if (evaluate || claim || (p->n_settles && !trouble))
            submit(p, evaluate, claim || evaluate ? free : 0);
    }
    if (!p->job_busy)
        next_ms = hk_ms_earlier(next_ms, hk_ms_earlier(p->evaluate_at_ms, p->claim_at_ms));
    if (next_ms != INT64_MAX)
        hk_timer_start(p->timer, next_ms > now_ms ? (uint64_t)(next_ms - now_ms) : 1);
}

/* ---- the part ---- */

static void stop(void *arg)
{
    struct part *p = arg;
    struct hk_err err = {.message = ""};
    p->stopping = true;
    atomic_store(&p->abandoned, true);
    hk_timer_free(p->timer);
    hk_worker_free(p->store); /* its job ends first: what it has claimed is given back */
    for (size_t i = 0; i < HK_ALERTS_CHANNELS_MAX; i++)
        hk_worker_free(p->senders[i]);
    /* no sooner: until now it was the worker's. It is opened anew if need be */
    hk_alerts_rounds_close(&p->rounds);
    for (size_t i = 0; i < p->n_settles; i++) { /* or they would be told again */
        p->settles[i].what.error = hk_str_of(p->settles[i].error);
        if (hk_alerts_settle(&p->rounds, &p->settles[i].what, &err) != HK_OK)
            break;
    }
    hk_alerts_rounds_close(&p->rounds);
    for (size_t i = 0; i < p->n_direct; i++)
        errand_free(p->direct[i]);
    hk_alerts_plan_unref(p->plan);
    hk_mem_free(p);
}

static enum hk_code start(const struct hk_part_env *env, void **out_part, struct hk_onlooker *out_watch,
                          struct hk_err *err)
{
    struct part *p = hk_mem_zalloc(1, sizeof *p);
    if (!p)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    p->env = env;
    p->stats = env->alerts ? env->alerts : &p->own_stats;
    enum hk_code rc = hk_alerts_rounds_init(&p->rounds, env->url, env->name, err);
    if (rc == HK_OK)
        rc = hk_alerts_plan_new(env->config, env->name, &p->plan, err);
    if (rc == HK_OK && hk_timer_new(env->loop, pump, p, &p->timer) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc != HK_OK) {
        hk_alerts_plan_unref(p->plan);
        hk_mem_free(p);
        return rc;
    }
    hk_timer_start(p->timer, 1);
    out_watch->arg = p;
    out_watch->beat = on_beat;
    *out_part = p;
    return HK_OK;
}

/* What is under way ends with the plan that it began with. */
static void reloaded(void *arg)
{
    struct part *p = arg;
    struct hk_alerts_plan *plan = NULL;
    struct hk_err err = {.message = ""};
    if (hk_alerts_plan_new(p->env->config, p->env->name, &plan, &err) != HK_OK) {
        struct hk_log_line line;
        hk_log_begin(&line, p->env->log, HK_LOG_ERROR, "alerts keep their old configuration");
        hk_log_cstr(&line, "error", err.message);
        hk_log_end(&line);
        return;
    }
    hk_alerts_plan_unref(p->plan);
    p->plan = plan;
    p->evaluate_at_ms = 0;
    pump(p);
}

const struct hk_part_ops hk_part_alerts = {
    .name = "alerts", .start = start, .reloaded = reloaded, .stop = stop};
