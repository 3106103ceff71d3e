/* SPDX-License-Identifier: Apache-2.0 */
/* What people do, and jobs for them: to letters (I3, I10, I12), to destinations (a pause is kept to), redrives (canary, rate,
 * end), and the audit (I19). And breakers (I14), which are kept to in the same way as pauses. */
#include <stdio.h>

#include "base/str.h"
#include "checker_impl.h"

enum {
    FORGOTTEN_MS = 60000,   /* so long a request may arrive of a life that a standby has forgotten */
    CHOSEN_MAX = 64,        /* sends that were chosen before a pause was known, where there is no cap */
    REDRIVE_BUCKET_MS = 500 /* docs/runbook.md: over any time t no more than rate * (t + 0.5 s), and one */
};

static bool is(struct hk_str s, const char *text)
{
    return hk_str_eq(s, hk_str_of(text));
}

/* ---- the audit ---- */

static struct cact *get_act(struct checker *c, struct hk_str act, struct hk_str m, struct hk_str dest)
{
    char pair[512], room[1024];
    size_t msg = hk_checker_msg(c, m);
    if (msg != NOBODY) /* whatever its name was then */
        m = (struct hk_str){c->msg_names.texts[msg], c->msg_names.lens[msg]};
    struct hk_str where = hk_checker_pair(pair, sizeof pair, m, dest);
    size_t i = hk_names_get(&c->act_names, hk_checker_pair(room, sizeof room, act, where));
    while (c->acts.n <= i)
        *PUSH(c->acts) = (struct cact){.told = 0};
    return &c->acts.items[i];
}

void hk_checker_note_act(struct checker *c, struct hk_str act)
{
    if (!hk_checker_text(c, "actor").len)
        hk_checker_complain(c, "I1", "nobody is named who did it");
    get_act(c, act, hk_checker_text(c, "m"), hk_checker_text(c, "dest"))->told++;
}

void hk_checker_audit_line(struct checker *c)
{
    if (!hk_checker_text(c, "actor").len)
        hk_checker_complain(c, "I19", "the audit does not say who did it");
    get_act(c, hk_checker_text(c, "act"), hk_checker_text(c, "m"), hk_checker_text(c, "dest"))->audited++;
}

static bool is_there(const struct cleg *leg)
{
    return leg->rows || leg->sents || leg->open_letters || leg->cancels ||
           (leg->letters && leg->state == LEG_DISCARDED);
}

/* I17: what the tables hold, as their owner counts it and as we do; and no message is missing. */
void hk_checker_totals_line(struct checker *c)
{
    size_t missing = 0;
    for (size_t i = 0; i < c->legs.n; i++)
        missing += c->legs.items[i].state != LEG_FORGOTTEN && !is_there(&c->legs.items[i]);

    const struct {
        const char *what;
        size_t n;
    } parts[] = {{"sent", c->n_sents}, {"dead", c->n_open}, {"over", c->n_overs}};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if ((int64_t)parts[i].n != hk_checker_number(c, parts[i].what))
            hk_checker_complain(c, "I17", "%zu are %s, and %lld are counted", parts[i].n, parts[i].what,
                                (long long)hk_checker_number(c, parts[i].what));
    if (missing)
        hk_checker_complain(c, "I17",
                            "%zu of %zu that were committed are neither waiting nor sent, dead or over",
                            missing, c->legs.n);
    c->audited = is(hk_checker_text(c, "audited"), "yes");
    c->traced = is(hk_checker_text(c, "traced"), "yes");
}

void hk_checker_audit_end(struct checker *c)
{
    for (size_t i = 0; c->audited && i < c->acts.n; i++)
        if (c->acts.items[i].told != c->acts.items[i].audited)
            hk_checker_complain(c, "I19", "%s was done %lld times, and %lld stand in the audit",
                                c->act_names.texts[i], (long long)c->acts.items[i].told,
                                (long long)c->acts.items[i].audited);
}

/* ---- letters ---- */

static void rename_msg(struct checker *c, size_t m)
{
    struct hk_str as = hk_checker_text(c, "as");
    if (!as.len)
        return;
    size_t i = hk_names_get(&c->msg_names, as);
    while (c->msgs.n <= i)
        *PUSH(c->msgs) = (struct cmsg){.key = NOBODY};
    c->msgs.items[i].alias = m + 1;
}

static struct cout *find_out(struct checker *c, const struct cleg *leg, size_t name)
{
    size_t l = (size_t)(leg - c->legs.items);
    for (size_t i = 0; i < c->outs.n; i++)
        if (c->outs.items[i].leg == l && c->outs.items[i].name == name)
            return &c->outs.items[i];
    return NULL;
}

/* Under which name, and with which bytes? Other bytes need a new name as soon as a request with the old ones may be on its way: it
 * could be the later one to arrive. A standby may have forgotten that there was one. */
static void go_out(struct checker *c, struct cleg *leg)
{
    struct hk_str as = hk_checker_text(c, "as");
    if (leg->edited && leg->maybe && !as.len && c->forgot_at == INT64_MIN)
        hk_checker_complain(c, "I10", "%s was edited, may have arrived, and goes out under the same id",
                            hk_checker_msg_name(c, leg->msg));
    if (as.len) {
        leg->name = hk_names_find(&c->msg_names, as);
        leg->maybe = false;
    }
    struct hk_str hash = leg->hash.ptr ? leg->hash : c->msgs.items[leg->msg].hash;
    struct cout *out = find_out(c, leg, leg->name);
    if (out)
        out->hash = hash;
    else
        *PUSH(c->outs) = (struct cout){.leg = (size_t)(leg - c->legs.items), .name = leg->name, .hash = hash};
    leg->edited = false;
}

static void begin_life(struct checker *c, struct cleg *leg)
{
    go_out(c, leg);
    leg->state = LEG_LIVE;
    leg->life++;
    leg->requeued_at = c->t;
    leg->attempts = leg->charged = leg->due = leg->hint_due = leg->crashes = leg->wait_ms = 0;
    leg->ever_sent = leg->put_off = leg->deferred = leg->forced = false;
}

static void edit(struct checker *c, struct cleg *leg)
{
    size_t hash = hk_names_get(&c->texts, hk_checker_text(c, "hash"));
    leg->edited = true;
    leg->hash = (struct hk_str){c->texts.texts[hash], c->texts.lens[hash]};
}

static void act_on_leg(struct checker *c, struct cleg *leg)
{
    struct hk_str ev = hk_checker_text(c, "ev");
    if (is(ev, "cancel")) {
        hk_checker_end_leg(c, leg, LEG_CANCELLED);
        return;
    }
    enum leg_state wanted = is(ev, "restore") ? LEG_DISCARDED : LEG_DEAD;
    if (leg->state != wanted)
        hk_checker_complain(c, "I3", "%s is not %s", hk_checker_msg_name(c, leg->msg),
                            wanted == LEG_DEAD ? "dead" : "discarded");
    if (is(ev, "restore"))
        leg->restored_at = c->t;
    if (is(ev, "discard") || is(ev, "restore"))
        leg->state = is(ev, "discard") ? LEG_DISCARDED : LEG_DEAD;
    else if (is(ev, "edit"))
        edit(c, leg);
    else
        begin_life(c, leg);
}

/* ---- redrives ---- */

static struct cjob *find_job(struct checker *c, int64_t number)
{
    for (size_t i = 0; i < c->jobs.n; i++)
        if (c->jobs.items[i].number == number)
            return &c->jobs.items[i];
    return NULL;
}

void hk_checker_redrive(struct checker *c)
{
    struct hk_str kind = hk_checker_text(c, "kind");
    struct cjob *job = find_job(c, hk_checker_number(c, "job"));
    char act[32];
    (void)snprintf(act, sizeof act, "redrive-%.*s", (int)kind.len, kind.ptr);
    hk_checker_note_act(c, hk_str_of(act));
    if (!is(kind, "start")) {
        if (job && job->over)
            hk_checker_complain(c, "redrive", "job %lld ends a second time", (long long)job->number);
        if (job)
            job->over = true;
        return;
    }
    *PUSH(c->jobs) = (struct cjob){.number = hk_checker_number(c, "job"),
                                   .canary = hk_checker_number(c, "cap"),
                                   .rate = hk_checker_number(c, "rate"),
                                   .tokens = 1,
                                   .last = c->t};
}

static bool canary_arrived(const struct checker *c, const struct cjob *job)
{
    int64_t arrived = 0;
    for (size_t i = 0; i < c->legs.n; i++)
        arrived += c->legs.items[i].job == job->number && c->legs.items[i].job_sent;
    return arrived >= job->canary;
}

static void check_job(struct checker *c, size_t msg)
{
    struct cjob *job = find_job(c, hk_checker_number(c, "job"));
    if (!job)
        return;
    if (job->over)
        hk_checker_complain(c, "redrive", "job %lld has ended, and requeues %s", (long long)job->number,
                            hk_checker_msg_name(c, msg));
    if (job->requeued == job->canary && !canary_arrived(c, job))
        hk_checker_complain(c, "redrive", "job %lld goes on before its canary has arrived",
                            (long long)job->number);
    size_t dest = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    if (dest != NOBODY && c->dests.items[dest].paused &&
        c->t - c->dests.items[dest].paused_at >
            10 * c->options.slack_ms) /* a real step may have begun before */
        hk_checker_complain(c, "redrive", "job %lld requeues to %s, which is paused", (long long)job->number,
                            hk_checker_dest_name(c, dest));
    double rate = (double)job->rate / 1e6; /* a millisecond */
    double bucket = rate * REDRIVE_BUCKET_MS > 1 ? rate * REDRIVE_BUCKET_MS : 1;
    job->tokens += rate * (double)(c->t - job->last);
    job->tokens = (job->tokens > bucket ? bucket : job->tokens) - 1;
    job->last = c->t;
    job->requeued++;
    if (job->rate && job->tokens < -0.01 - rate * (double)c->options.slack_ms)
        hk_checker_complain(c, "redrive", "job %lld requeues faster than it may", (long long)job->number);
}

void hk_checker_act(struct checker *c)
{
    size_t m = hk_checker_committed(c);
    if (m == NOBODY)
        return;
    hk_checker_note_act(c, hk_checker_text(c, "ev"));
    rename_msg(c, m); /* may move the array */
    const struct cmsg *msg = &c->msgs.items[m];
    size_t first = msg->first_leg, n = msg->n_legs;
    size_t l = hk_checker_leg(c, m, hk_checker_text(c, "dest"));
    for (size_t i = 0; i < n; i++) {
        if (l != NOBODY && l != first + i)
            continue;
        act_on_leg(c, &c->legs.items[first + i]);
        if (hk_checker_number(c, "job")) /* else it is still the business of the job that had it */
            c->legs.items[first + i].job = hk_checker_number(c, "job");
        c->legs.items[first + i].job_sent = false;
    }
    if (is(hk_checker_text(c, "ev"), "requeue"))
        check_job(c, m);
}

/* I10: under each of its names the bytes that it was last requeued with; those of the commit before. */
void hk_checker_bytes(struct checker *c, const struct cleg *leg, struct hk_str name, struct hk_str hash)
{
    size_t i = hk_names_find(&c->msg_names, name);
    const struct cout *out = find_out(c, leg, i);
    struct hk_str right = out ? out->hash : c->msgs.items[i].hash;
    bool forgotten = c->forgot_at != INT64_MIN && c->t - c->forgot_at < FORGOTTEN_MS;
    if (!hk_str_eq(hash, right) && !forgotten)
        hk_checker_complain(c, "I10", "%s is received with other bytes", hk_checker_msg_name(c, leg->msg));
}

/* ---- pauses and breakers ---- */

void hk_checker_pause(struct checker *c)
{
    size_t dest = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    hk_checker_note_act(c, hk_checker_text(c, "ev"));
    if (dest == NOBODY)
        return;
    if (!c->dests.items[dest].paused)
        c->dests.items[dest].paused_line = c->line;
    c->dests.items[dest].paused = is(hk_checker_text(c, "ev"), "pause");
    c->dests.items[dest].paused_at = c->t;
    if (c->dests.items[dest].paused)
        return;
    hk_checker_forced_resume(c, dest);
    c->dests.items[dest].resumed_at = c->t;
    c->dests.items[dest].open_until = 0;
    size_t kept = 0;
    for (size_t i = 0; i < c->guards.n; i++)
        if (c->guards.items[i].dest != dest)
            c->guards.items[kept++] = c->guards.items[i];
    c->guards.n = kept;
}

/* A breaker that is open, and opens once more: it goes on counting. What it lets pass it must not learn from. */
/* `own`: it is the relay's own word, and nobody knows it better; else the longest that it was told. */
static void set_guard(struct checker *c, size_t relay, size_t dest, int64_t until, bool own)
{
    for (size_t i = 0; i < c->guards.n; i++) {
        struct cguard *g = &c->guards.items[i];
        if (g->relay != relay || g->dest != dest || (g->until == INT64_MAX) != (until == INT64_MAX))
            continue;
        bool stands = c->t < g->until && until;
        *g = (struct cguard){.relay = relay,
                             .dest = dest,
                             .until = stands && g->until > until && !own ? g->until : until,
                             .sent = stands ? g->sent : 0};
        return;
    }
    *PUSH(c->guards) = (struct cguard){.relay = relay, .dest = dest, .until = until};
}

/* Who hears that a destination is broken keeps to it from then on; and who resumed it has closed its breaker, for everybody. */
static void check_told(struct checker *c, size_t dest, int64_t until)
{
    bool judged = !hk_checker_clock_is_odd(c) && c->forgot_at == INT64_MIN;
    if (judged && until > c->t && is(hk_checker_text(c, "kind"), "closed"))
        hk_checker_complain(c, "I14", "%s is broken, and a relay that hears it keeps its breaker closed",
                            hk_checker_dest_name(c, dest));
    if (judged && c->dests.items[dest].resumed_at && c->dests.items[dest].open_until != until)
        hk_checker_complain(c, "I14", "%s was resumed, and its breaker is said to be open",
                            hk_checker_dest_name(c, dest));
}

void hk_checker_closed(struct checker *c)
{
    if (is(hk_checker_text(c, "kind"), "open") && !hk_checker_clock_is_odd(c))
        hk_checker_complain(c, "I14",
                            "the breaker of %.*s was closed, and a relay that hears it keeps its own open",
                            (int)hk_checker_text(c, "dest").len, hk_checker_text(c, "dest").ptr);
}

void hk_checker_told(struct checker *c)
{
    size_t dest = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    size_t relay = hk_names_get(&c->relay_names, hk_checker_text(c, "relay"));
    int64_t until = hk_checker_number(c, "until");
    if (dest != NOBODY && until)
        check_told(c, dest, until);
    if (dest != NOBODY && (until || c->dests.items[dest].paused)) /* else it is resumed already */
        set_guard(c, relay, dest, until ? until : INT64_MAX, false);
}

static struct cfailing *failing_at(struct checker *c, size_t relay, size_t dest)
{
    for (size_t i = 0; i < c->failing.n; i++)
        if (c->failing.items[i].relay == relay && c->failing.items[i].dest == dest)
            return &c->failing.items[i];
    struct cfailing *f = PUSH(c->failing);
    *f = (struct cfailing){.relay = relay, .dest = dest};
    return f;
}

void hk_checker_failing(struct checker *c, size_t relay, size_t dest)
{
    struct cfailing *f = failing_at(c, relay, dest);
    if (!f->first)
        f->first = c->t;
}

/* One of the failures since then has opened it, and from there it is open for as long as it was told to be, or longer. */
static void check_opened(struct checker *c, size_t relay, size_t dest, int64_t until)
{
    struct cfailing *f = failing_at(c, relay, dest);
    int64_t open_ms = c->dests.items[dest].open_ms;
    bool opens = until && until != f->said; /* else it was open, and is only said to be again */
    if (opens && f->first && until < f->first + open_ms && !hk_checker_clock_is_odd(c))
        hk_checker_complain(c, "I14", "the breaker of %s opens for %lld ms, of %lld at least",
                            hk_checker_dest_name(c, dest), (long long)(until - f->first), (long long)open_ms);
    f->first = 0;
    f->said = until;
}

/* Its own relay wrote it down: it knows. One that closes, whosever it is, the others may close with it. */
void hk_checker_breaker(struct checker *c)
{
    size_t dest = hk_names_find(&c->dest_names, hk_checker_text(c, "dest"));
    if (dest != NOBODY)
        c->dests.items[dest].open_until = hk_checker_number(c, "until");
    for (size_t i = 0; !hk_checker_number(c, "until") && i < c->guards.n; i++)
        if (c->guards.items[i].dest == dest && c->guards.items[i].until != INT64_MAX)
            c->guards.items[i].until = 0;
    for (size_t i = 0; i < c->lanes.n && dest != NOBODY; i++)
        if (c->lanes.items[i].lane == hk_checker_number(c, "lane") && c->lanes.items[i].live) {
            check_opened(c, c->lanes.items[i].relay, dest, hk_checker_number(c, "until"));
            hk_checker_told_rightly(c, dest, hk_checker_number(c, "until"));
            set_guard(c, c->lanes.items[i].relay, dest, hk_checker_number(c, "until"), true);
        }
}

void hk_checker_process(struct checker *c, size_t relay)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->guards.n; i++)
        if (c->guards.items[i].relay != relay)
            c->guards.items[kept++] = c->guards.items[i];
    c->guards.n = kept;
    kept = 0;
    for (size_t i = 0; i < c->draining.n; i++)
        if (c->draining.items[i] != relay)
            c->draining.items[kept++] = c->draining.items[i];
    c->draining.n = kept;
    kept = 0;
    for (size_t i = 0; i < c->failing.n; i++)
        if (c->failing.items[i].relay != relay)
            c->failing.items[kept++] = c->failing.items[i];
    c->failing.n = kept;
}

void hk_checker_drain(struct checker *c)
{
    *PUSH(c->draining) = hk_names_get(&c->relay_names, hk_checker_text(c, "relay"));
}

/* What was chosen before it was known may still go, and no more: at most as many as go at once. Of a breaker: one less, for the
 * one that opened it, and its first probe, which may seem early to another clock. Who drains begins nothing (I18). */
void hk_checker_guard(struct checker *c, size_t relay, size_t dest, bool forced)
{
    int64_t cap = c->dests.items[dest].cap ? c->dests.items[dest].cap : CHOSEN_MAX;
    for (size_t i = 0; !forced && i < c->guards.n; i++) {
        struct cguard *g = &c->guards.items[i];
        if (g->relay != relay || g->dest != dest || c->t >= g->until || hk_checker_clock_is_odd(c))
            continue;
        if (++g->sent > cap)
            hk_checker_complain(c, g->until == INT64_MAX ? "pause" : "I14", "%s is %s, and is sent to",
                                hk_checker_dest_name(c, dest), g->until == INT64_MAX ? "paused" : "broken");
    }
    for (size_t i = 0; i < c->draining.n; i++)
        if (c->draining.items[i] == relay)
            hk_checker_complain(c, "I18", "the relay drains, and begins another send");
}
