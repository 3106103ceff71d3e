/* SPDX-License-Identifier: Apache-2.0 */
/* What this relay sees of its destinations, left in the store for people: `status`, `top` and `messages explain` read it there,
 * on whatever machine they run.
 *
 *   loop: attempts and exchanges -> windows; every 5 s what has something to say is copied -> worker: one short transaction
 *         and -> tallies; when a minute is over they become rows of outbox_series -> the same worker
 *
 * Destinations of the store are met at their first attempt: most of them rest, and cost nothing here. At most MET_MAX of them are known
 * at a time; what others do is counted together. Those that this relay cannot use (relay/kept.h) are told, too, at most HELD_MAX, so that
 * people learn of it from any machine: once, when it changes, and then now and then.
 *
 * The worker has a connection of its own, opened when there is something to write and closed when there has been nothing for a
 * while. A store that is busy or gone costs figures, nothing else: what was not written is told anew 5 s later. Rows go with
 * their lane (a trigger of the schema). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/payload.h"
#include "daemon/part.h"
#include "daemon/tally.h"
#include "daemon/window.h"
#include "relay/kept.h"
#include "store/admin.h"

enum {
    TICK_MS = 5000,
    BUSY_SQLITE_MS = 1, /* SQLite has one writer: we are not going to be in its way */
    BUSY_MS = 1000,
    QUIET_TICKS = 24,            /* then the connection is closed */
    ERROR_EVERY_MS = 1000,       /* of a destination: masking takes time */
    MASKED_BYTES_MAX = 64 << 10, /* payloads that are looked through for what an error must not repeat */
    MET_MAX = 1024,              /* of the store; each that does something takes about 13 KB */
    HELD_MAX = 256,              /* that are told to be held: the first by name */
    HELD_AGAIN_MS = 60000,       /* a server of PostgreSQL that crashed has forgotten it */
    REST_MS = 10 * 60 * 1000     /* then one of the store may be forgotten */
};

struct dest {
    const char *name; /* the configuration's, or `own` */
    char *own;        /* of one of the store; NULL: it is the configuration's */
    int64_t used_ms;  /* the last attempt at one of the store; monotonic */
    size_t place;
    struct hk_window *window;   /* NULL until it does something */
    struct hk_tallies *tallies; /* the same */
    uint64_t seen;              /* as the relay counted when we looked last */
    int64_t heard_ms;           /* when `heard` was taken; 0 = never. Monotonic */
    char heard[HK_FIGURES_ERROR_MAX +
               1]; /* the last that a sink said, before it was decided whether it was a failure */
    char error[HK_FIGURES_ERROR_MAX + 1];
    int64_t heard_at_ms, error_at_ms;    /* the store's time */
    char held[HK_FIGURES_ERROR_MAX + 1]; /* why this relay cannot use it; "" = it can */
    int64_t held_at_ms;                  /* since when: the store's time */
    bool still_held;                     /* of one look */
    bool taken;                          /* a reload goes on with it elsewhere */
    bool told;                           /* the store has `said` */
    int64_t told_ms;                     /* since then; monotonic */
    struct hk_figure said;               /* without its texts, but for the breaker's, which is static */
};

/* What the worker writes: copies, so that the loop may go on. */
struct job {
    int64_t lane;
    size_t n;
    struct hk_figure *figures;
    char (*names)[256];
    char (*errors)[HK_FIGURES_ERROR_MAX + 1];
    unsigned config;
    bool close;                   /* no more than that */
    struct hk_tally_batch *batch; /* a minute that is over; NULL = none */
    enum hk_code rc;
    enum hk_code batch_rc;
    struct hk_err err;
};

struct part {
    const struct hk_part_env *env;
    const struct hk_store_admin_ops *ops;
    struct hk_admin *admin; /* the worker's */
    struct hk_worker *worker;
    struct hk_timer *timer;
    struct hk_masks *masks;
    bool no_masks;      /* there was no memory for them: errors are not repeated at all */
    struct dest *dests; /* by name */
    size_t n_dests, room, last;
    size_t n_met;     /* of them, those of the store */
    bool forgot;      /* some of these */
    unsigned config;  /* counts reloads */
    int64_t lane;     /* 0 = none */
    int64_t ahead_ms; /* the store's time less ours */
    unsigned quiet;
    bool busy, open, troubled;
    struct job job;
    /* Figures over time. */
    int64_t minute_ms;              /* that is being counted, by the store's clock; 0 = none yet */
    int64_t counted_lane;           /* the last one that we had */
    size_t named;                   /* destinations with rows of their own in this hour */
    struct hk_tallies others;       /* of the rest */
    struct hk_tally_batch *batches; /* minutes that wait to be written */
};

static int64_t now_ms(const struct part *p)
{
    return (int64_t)hk_loop_now_ms(p->env->loop);
}

/* ---- destinations ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct dest *)a)->name, ((const struct dest *)b)->name);
}

/* The first that is not before `name`. */
static size_t place_in_order(const struct part *p, struct hk_str name, bool *out_found)
{
    size_t lo = 0, hi = p->n_dests;
    *out_found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        size_t len = strlen(p->dests[mid].name);
        int order = memcmp(p->dests[mid].name, name.ptr, len < name.len ? len : name.len);
        if (order < 0 || (order == 0 && len < name.len)) {
            lo = mid + 1;
        } else {
            hi = mid;
            *out_found = *out_found || (order == 0 && len == name.len);
        }
    }
    return lo;
}

static struct dest *find(struct part *p, struct hk_str name)
{
    bool found = false;
    if (p->last < p->n_dests && hk_str_eq(hk_str_of(p->dests[p->last].name), name))
        return &p->dests[p->last];
    size_t at = place_in_order(p, name, &found);
    if (!found)
        return NULL;
    p->last = at;
    return &p->dests[at];
}

/* Where to count; NULL: no memory, and it is not counted. */
static struct hk_window_slot *slot_of(struct part *p, struct dest *d)
{
    if (!d->window) {
        d->window = hk_mem_alloc(sizeof *d->window);
        if (d->window)
            hk_window_init(d->window, now_ms(p));
    }
    return d->window ? hk_window_at(d->window, now_ms(p)) : NULL;
}

static void free_dests(struct dest *dests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hk_mem_free(dests[i].own);
        hk_mem_free(dests[i].window);
        hk_mem_free(dests[i].tallies);
    }
    hk_mem_free(dests);
}

/* ---- over time ---- */

/* Where to count; what there is no memory for is counted among the others. */
static struct hk_tally *tally_of(struct part *p, struct dest *d)
{
    if (!d->tallies)
        d->tallies = hk_mem_zalloc(1, sizeof *d->tallies);
    return d->tallies ? &d->tallies->minute : &p->others.minute;
}

/* Those that were the first in this hour keep rows of their own; the rest share one, so that the sums are right all the same. */
static void take_dest(struct part *p, struct hk_tally_batch *batch, const struct dest *d)
{
    struct hk_tallies *t = d->tallies;
    if (!t || hk_tally_is_empty(&t->minute))
        return;
    if (!t->named && p->named < HK_SERIES_DESTS) {
        t->named = true;
        p->named++;
    }
    if (t->named && hk_tally_batch_take(batch, p->counted_lane, hk_str_of(d->name), t))
        return;
    if (!t->named) {
        hk_tally_add(&p->others.minute, &t->minute);
        t->minute = (struct hk_tally){.seen = 0};
    }
}

static void close_hour(struct part *p)
{
    for (size_t i = 0; i < p->n_dests; i++)
        if (p->dests[i].tallies) {
            p->dests[i].tallies->hour = (struct hk_tally){.seen = 0};
            p->dests[i].tallies->named = false;
        }
    p->others.hour = (struct hk_tally){.seen = 0};
    p->named = 0;
}

/* The minute is over: what was counted in it waits to be written. Without memory it is counted into the next one. */
static void close_minute(struct part *p)
{
    struct hk_tally_batch *batch = p->minute_ms > 0 && p->counted_lane > 0
                                       ? hk_tally_batch_new(p->minute_ms, 2 * ((size_t)HK_SERIES_DESTS + 1))
                                       : NULL;
    if (!batch)
        return;
    for (size_t i = 0; i < p->n_dests; i++)
        take_dest(p, batch, &p->dests[i]);
    if (!hk_tally_is_empty(&p->others.minute))
        (void)hk_tally_batch_take(batch, p->counted_lane, hk_str_of(""), &p->others);
    (void)hk_tally_batch_queue(&p->batches, batch);
}

static void turn_minute(struct part *p, int64_t store_ms)
{
    int64_t minute_ms = store_ms - store_ms % HK_SERIES_MINUTE_MS;
    if (minute_ms <= p->minute_ms)
        return;
    close_minute(p);
    if (minute_ms / HK_SERIES_HOUR_MS != p->minute_ms / HK_SERIES_HOUR_MS)
        close_hour(p);
    p->minute_ms = minute_ms;
}

/* Another lane has rows of its own. */
static void turn_lane(struct part *p, int64_t number)
{
    if (number == p->counted_lane)
        return;
    close_minute(p);
    close_hour(p);
    p->counted_lane = number;
}

/* Engines count what they have seen from 0. */
static struct dest take_over(struct dest *before)
{
    struct dest d = *before;
    before->window = NULL;
    before->tallies = NULL;
    before->taken = true;
    d.own = NULL;
    d.seen = 0;
    return d;
}

/* Those of the store that the configuration does not have. Where the engine has them shows at their next attempt. */
static size_t keep_met(struct part *p, struct dest *out)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_dests; i++) {
        struct dest *d = &p->dests[i];
        if (!d->own || d->taken)
            continue;
        char *own = d->own;
        d->own = NULL;
        out[n] = take_over(d);
        out[n].own = own;
        out[n++].place = SIZE_MAX;
    }
    return n;
}

/* The configuration's destinations; what is known of those that were there before stays. */
static enum hk_code take_config(struct part *p, struct hk_err *err)
{
    size_t n = 0;
    while (hk_config_destination(p->env->config, n))
        n++;
    struct dest *dests = hk_mem_zalloc(n + p->n_met + 1, sizeof *dests);
    struct hk_masks *masks = NULL;
    if (!dests)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = hk_config_make_masks(p->env->config, &masks, err);
    if (rc != HK_OK) {
        hk_mem_free(dests);
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = hk_config_destination(p->env->config, i)->name;
        struct dest *before = find(p, hk_str_of(name));
        if (before)
            dests[i] = take_over(before);
        dests[i].name = name;
        dests[i].place = i;
    }
    p->room = n + p->n_met + 1;
    p->n_met = keep_met(p, &dests[n]);
    n += p->n_met;
    qsort(dests, n, sizeof *dests, by_name);
    for (size_t i = 0; i < p->n_dests; i++)
        if (p->dests[i].tallies) /* of those that are gone */
            hk_tally_add(&p->others.minute, &p->dests[i].tallies->minute);
    free_dests(p->dests, p->n_dests);
    hk_masks_free(p->masks);
    p->masks = masks;
    p->dests = dests;
    p->n_dests = n;
    p->last = 0;
    p->config++;
    return HK_OK;
}

/* ---- destinations of the store ---- */

/* Rows of an hour hold what was counted in it so far: one that has such rows is known until the hour ends. */
static bool may_go(const struct dest *d, int64_t now)
{
    bool counts = d->tallies && (d->tallies->named || !hk_tally_is_empty(&d->tallies->minute));
    bool held = d->held[0] != '\0' || (d->told && hk_figure_is_held(&d->said));
    return d->own && !counts && !held && now - d->used_ms >= REST_MS;
}

static void forget_resting(struct part *p)
{
    size_t n = 0;
    int64_t now = now_ms(p);
    for (size_t i = 0; i < p->n_dests; i++) {
        if (may_go(&p->dests[i], now)) {
            hk_mem_free(p->dests[i].own);
            hk_mem_free(p->dests[i].window);
            hk_mem_free(p->dests[i].tallies);
            p->n_met--;
            p->forgot = true;
        } else {
            p->dests[n++] = p->dests[i];
        }
    }
    p->n_dests = n;
}

static bool make_room(struct part *p)
{
    if (p->n_met == MET_MAX)
        forget_resting(p);
    if (p->n_met == MET_MAX)
        return false;
    if (p->n_dests < p->room)
        return true;
    size_t room = p->n_dests + p->n_dests / 2 + 16;
    struct dest *dests = hk_mem_resize(p->dests, room * sizeof *dests);
    if (!dests)
        return false;
    p->dests = dests;
    p->room = room;
    return true;
}

/* What came before one was met is not known any more; but those that came before any attempt of it are. */
static uint64_t seen_before(const struct part *p, size_t place)
{
    struct hk_dest_view view;
    bool there = p->forgot && p->env->relay && hk_relay_view_dest(p->env->relay, place, &view);
    return there ? view.seen : 0;
}

/* Known from now on, if there is room. */
static void meet(struct part *p, struct hk_str name, size_t place)
{
    bool found = false;
    char *own = make_room(p) ? hk_mem_strndup(name.ptr, name.len) : NULL;
    if (!own)
        return;
    size_t at = place_in_order(p, name, &found);
    memmove(&p->dests[at + 1], &p->dests[at], (p->n_dests - at) * sizeof p->dests[0]);
    p->dests[at] = (struct dest){.name = own, .own = own, .place = place, .seen = seen_before(p, place)};
    p->n_dests++;
    p->n_met++;
    p->last = at;
}

/* NULL: there is no room. Of those of the store the engine may move one to another place. */
static struct dest *find_or_meet(struct part *p, struct hk_str name, size_t place)
{
    struct dest *d = find(p, name);
    if (!d) {
        meet(p, name, place);
        d = find(p, name);
    }
    if (!d || !d->own)
        return d;
    if (d->place != place)
        d->seen = 0; /* another engine, or defined anew: it counts from 0 */
    d->place = place;
    return d;
}

static void attempt_begins(void *arg, const struct hk_try *attempt)
{
    struct part *p = arg;
    struct dest *d = find_or_meet(p, hk_str_of(attempt->destination), attempt->dest);
    if (d && d->own)
        d->used_ms = now_ms(p);
}

/* ---- what the relay tells ---- */

/* At most `room` - 1 bytes, and no part of a character. */
static void keep(char *out, size_t room, struct hk_str text)
{
    size_t len = 0;
    while (len < text.len) {
        uint32_t c;
        size_t taken = hk_utf8_next((struct hk_str){text.ptr + len, text.len - len}, &c);
        if (len + taken >= room)
            break;
        len += taken;
    }
    if (len)
        memcpy(out, text.ptr, len);
    out[len] = '\0';
}

static void hide(const struct part *p, const struct hk_message *m, struct hk_str text, struct hk_buf *out)
{
    const struct hk_mask_about about = {
        .event_type = m->event_type, .headers = m->headers, .payloads = &m->payload, .n_payloads = 1};
    if (p->no_masks || m->payload.len > MASKED_BYTES_MAX) {
        (void)hk_buf_adds(out, "(hidden: masks apply)");
        return;
    }
    if (hk_mask_about(p->masks, &about, text, out) != HK_OK) {
        hk_buf_reset(out);
        (void)hk_buf_adds(out, "(hidden)");
    }
}

static void hear(struct part *p, struct dest *d, const struct hk_try *attempt, const struct hk_facts *facts)
{
    struct hk_buf text;
    char status[32];
    struct hk_str error = facts->error;
    if (error.len == 0) {
        (void)snprintf(status, sizeof status, facts->status ? "status %d" : "failed", facts->status);
        error = hk_str_of(status);
    }
    hk_buf_init(&text, MASKED_BYTES_MAX);
    if (p->no_masks || hk_masks_fit(p->masks, attempt->message->event_type)) {
        hide(p, attempt->message, error, &text);
        error = hk_buf_str(&text);
    }
    keep(d->heard, sizeof d->heard, error);
    d->heard_ms = now_ms(p);
    d->heard_at_ms = attempt->store_ms;
    hk_buf_fini(&text);
}

/* The error is taken here, where the payload is at hand that must not be repeated. */
static void attempt_ended(void *arg, const struct hk_try *attempt, const struct hk_facts *facts)
{
    struct part *p = arg;
    bool well = facts->fault == HK_FAULT_NONE && facts->error.len == 0 && facts->status < 300;
    struct dest *d = well ? NULL : find(p, hk_str_of(attempt->destination));
    if (d && (d->heard_ms == 0 || now_ms(p) - d->heard_ms >= ERROR_EVERY_MS))
        hear(p, d, attempt, facts);
}

static void failed(struct dest *d, const struct hk_settle *s, int64_t store_ms)
{
    if (s->attempt.made && d->heard[0] != '\0') {
        memcpy(d->error, d->heard, sizeof d->error);
        d->error_at_ms = d->heard_at_ms;
        return;
    }
    keep(d->error, sizeof d->error, s->attempt.cause);
    d->error_at_ms = store_ms;
}

static void settled(struct part *p, const struct hk_settle *s, bool stale, int64_t store_ms)
{
    bool dead = s->kind == HK_SETTLE_DEAD;
    struct dest *d = s->attempt.made || dead ? find(p, s->destination) : NULL;
    struct hk_window_slot *slot = d ? slot_of(p, d) : NULL;
    struct hk_tally *tally = d ? tally_of(p, d) : &p->others.minute;
    if (s->attempt.made && slot) {
        slot->sent += s->kind == HK_SETTLE_SENT;
        slot->failed += s->kind != HK_SETTLE_SENT;
        hk_histogram_add(&slot->latency, s->attempt.duration_ms);
    }
    if (s->attempt.made) {
        tally->sent += s->kind == HK_SETTLE_SENT;
        tally->failed += s->kind != HK_SETTLE_SENT;
        tally->retried += s->kind == HK_SETTLE_RETRY;
        hk_histogram_add(&tally->latency, s->attempt.duration_ms);
    }
    if (slot)
        slot->dead += dead && !stale;
    tally->dead += dead && !stale;
    if (d && s->kind != HK_SETTLE_SENT)
        failed(d, s, store_ms);
}

static void exchanged(void *arg, const struct hk_exchange *asked, const struct hk_exchanged *done)
{
    struct part *p = arg;
    p->ahead_ms = done->now_ms - now_ms(p);
    turn_minute(p, done->now_ms);
    for (size_t i = 0; i < asked->n_settles; i++)
        settled(p, &asked->settles[i], done->stale[i] || hk_settle_is_stuck(done, i), done->now_ms);
}

/* Where nothing happens only polls tell the time. */
static void polled(void *arg, const struct hk_poll *poll)
{
    struct part *p = arg;
    p->ahead_ms = poll->now_ms - now_ms(p);
    turn_minute(p, poll->now_ms);
}

static void lane(void *arg, enum hk_lane_event event, int64_t number)
{
    struct part *p = arg;
    p->lane = event == HK_LANE_ACQUIRED ? number : 0;
    if (p->lane != 0)
        turn_lane(p, p->lane);
    for (size_t i = 0; i < p->n_dests; i++)
        p->dests[i].told = false;
}

/* ---- those that cannot be used here ---- */

static void hold(struct part *p, struct dest *d, const char *why)
{
    char text[sizeof d->held];
    keep(text, sizeof text, hk_str_of(why));
    d->still_held = true;
    if (strcmp(d->held, text) == 0)
        return;
    if (d->held[0] == '\0')
        d->held_at_ms = now_ms(p) + p->ahead_ms;
    memcpy(d->held, text, sizeof text);
    d->told = d->told && !hk_figure_is_held(&d->said); /* why is another */
}

static void look_for_held(struct part *p)
{
    const struct hk_kept *kept = p->env->relay ? hk_relay_kept(p->env->relay) : NULL;
    size_t left = kept ? hk_kept_counts(kept).held : 0;
    struct hk_kept_view view;
    left = left < HELD_MAX ? left : HELD_MAX;
    for (size_t i = 0; left > 0 && hk_kept_view(kept, i, &view); i++) {
        if (!view.why_held || view.of_file)
            continue;
        struct dest *d = find_or_meet(p, hk_str_of(view.name), view.place);
        if (d)
            hold(p, d, view.why_held);
        left--;
    }
    for (size_t i = 0; i < p->n_dests; i++) {
        if (!p->dests[i].still_held)
            p->dests[i].held[0] = '\0';
        p->dests[i].still_held = false;
    }
}

/* ---- what is written ---- */

static const char *breaker_name(enum hk_breaker_state state)
{
    switch (state) {
    case HK_BREAKER_CLOSED:
        return "closed";
    case HK_BREAKER_HALF_OPEN:
        return "half_open";
    case HK_BREAKER_OPEN:
    case HK_BREAKER_ISOLATED:
        break;
    }
    return "open";
}

static void look(struct part *p, struct dest *d, struct hk_figure *out)
{
    struct hk_dest_view view = {.name = NULL};
    struct hk_window_slot sum = {.seen = 0};
    int64_t now = now_ms(p);
    *out = (struct hk_figure){.breaker = hk_str_of("closed")};
    if (p->env->relay && hk_relay_view_dest(p->env->relay, d->place, &view) &&
        strcmp(view.name, d->name) == 0) {
        uint64_t more = view.seen > d->seen ? view.seen - d->seen : 0;
        struct hk_window_slot *slot = more > 0 ? slot_of(p, d) : NULL;
        d->seen = view.seen;
        if (slot) {
            slot->seen += more;
            tally_of(p, d)->seen += more;
        }
        out->in_flight = view.in_flight;
        out->breaker = hk_str_of(breaker_name(view.breaker));
        if (view.ready_at_ms > now && view.ready_at_ms < INT64_MAX / 2)
            out->ready_at_ms = view.ready_at_ms + p->ahead_ms;
    }
    if (d->window)
        out->window_ms = hk_window_sum(d->window, now, &sum);
    out->seen = sum.seen;
    out->sent = sum.sent;
    out->failed = sum.failed;
    out->dead = sum.dead;
    out->latency = sum.latency;
    bool held = d->held[0] != '\0';
    out->last_error = hk_str_of(held ? d->held : d->error);
    out->last_error_ms = held ? d->held_at_ms : d->error_at_ms;
    if (held)
        out->breaker = hk_str_of(HK_FIGURES_HELD);
}

/* Does it say anything that the store does not say yet? What happens is told every time, so that it stays fresh. */
static bool is_news(const struct dest *d, const struct hk_figure *f, int64_t now)
{
    const struct hk_figure *said = &d->said;
    if (f->seen || f->sent || f->failed || f->dead || f->in_flight || f->ready_at_ms)
        return true;
    if (!d->told)
        return f->last_error_ms != 0 || !hk_str_eq(f->breaker, hk_str_of("closed"));
    if (d->held[0] != '\0' && now - d->told_ms >= HELD_AGAIN_MS)
        return true;
    return said->seen || said->sent || said->failed || said->dead || said->in_flight || said->ready_at_ms ||
           !hk_str_eq(said->breaker, f->breaker) || said->last_error_ms != f->last_error_ms;
}

static void free_job(struct job *job)
{
    hk_mem_free(job->figures);
    hk_mem_free(job->names);
    hk_mem_free(job->errors);
    hk_tally_batch_free(job->batch);
    *job = (struct job){.n = 0};
}

static bool make_job(struct part *p)
{
    struct job *job = &p->job;
    *job = (struct job){.lane = p->lane, .config = p->config};
    job->figures = hk_mem_zalloc(p->n_dests + 1, sizeof *job->figures);
    job->names = hk_mem_zalloc(p->n_dests + 1, sizeof *job->names);
    job->errors = hk_mem_zalloc(p->n_dests + 1, sizeof *job->errors);
    return job->figures && job->names && job->errors;
}

static void fill_job(struct part *p)
{
    struct job *job = &p->job;
    for (size_t i = 0; i < p->n_dests; i++) {
        struct hk_figure *f = &job->figures[job->n];
        look(p, &p->dests[i], f);
        if (!is_news(&p->dests[i], f, now_ms(p)))
            continue;
        keep(job->names[job->n], sizeof job->names[0], hk_str_of(p->dests[i].name));
        keep(job->errors[job->n], sizeof job->errors[0], f->last_error);
        f->destination = hk_str_of(job->names[job->n]);
        f->last_error = hk_str_of(job->errors[job->n]);
        job->n++;
    }
}

/* ---- how much lies in the store ---- */

static uint64_t age(int64_t since_ms, int64_t now_ms)
{
    return since_ms > 0 && since_ms < now_ms ? (uint64_t)(now_ms - since_ms) : 0;
}

/* For both steps. */
static void add_level(struct hk_series_row *rows, size_t *n, const struct hk_series_row *level)
{
    const int64_t steps[] = {HK_SERIES_MINUTE_MS, HK_SERIES_HOUR_MS};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        rows[*n] = *level;
        rows[*n].step_ms = steps[i];
        rows[*n].at_ms = level->at_ms - level->at_ms % steps[i];
        (*n)++;
    }
}

static uint64_t oldest_of(const struct hk_waiting *waiting, struct hk_str destination)
{
    uint64_t oldest = 0;
    for (size_t i = 0; i < waiting->n; i++) {
        uint64_t ms = age(waiting->items[i].due_ms, waiting->now_ms);
        if (hk_str_eq(waiting->items[i].destination, destination) && ms > oldest)
            oldest = ms;
    }
    return oldest;
}

static enum hk_code write_levels(struct part *p, int64_t minute_ms, const struct hk_store_status *s,
                                 const struct hk_waiting *waiting, struct hk_err *err)
{
    const size_t room = 2 * ((size_t)HK_SERIES_DESTS + 1);
    struct hk_series_row *rows = hk_mem_zalloc(room, sizeof *rows);
    size_t n = 0;
    if (!rows)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    struct hk_series_row total = {.at_ms = minute_ms,
                                  .lane = HK_SERIES_TOTAL,
                                  .destination = hk_str_of(""),
                                  .waiting = s->due.n + s->retrying.n + s->scheduled.n,
                                  .in_flight = s->processing,
                                  .dead_open = s->dead.n,
                                  .oldest_ms = age(s->oldest_due_ms, s->now_ms)};
    add_level(rows, &n, &total);
    for (size_t i = 0; i < s->n_dests && n < room; i++) {
        const struct hk_dest_status *d = &s->dests[i];
        const struct hk_series_row level = {.at_ms = minute_ms,
                                            .lane = HK_SERIES_LEVELS,
                                            .destination = d->name,
                                            .waiting = d->pending.n + d->retrying.n,
                                            .in_flight = d->processing,
                                            .dead_open = d->dead.n,
                                            .oldest_ms = oldest_of(waiting, d->name)};
        if (level.waiting || level.in_flight || level.dead_open)
            add_level(rows, &n, &level);
    }
    enum hk_code rc = p->ops->series_put(p->admin, rows, n, err);
    hk_mem_free(rows);
    return rc;
}

/* Once a minute one relay counts, whichever is the first: the others find its row. */
static enum hk_code keep_levels(struct part *p, int64_t minute_ms, struct hk_err *err)
{
    const struct hk_series *found = NULL;
    const struct hk_store_status *status = NULL;
    const struct hk_waiting *waiting = NULL;
    struct hk_pool mem = {.blocks = NULL};
    enum hk_code rc = p->ops->series(
        p->admin,
        &(struct hk_series_ask){
            .step_ms = HK_SERIES_MINUTE_MS, .since_ms = minute_ms, .until_ms = minute_ms + 1, .limit = 1},
        &found, err);
    if (rc != HK_OK || (found->n > 0 && found->items[0].lane == HK_SERIES_TOTAL))
        return rc;
    rc = p->ops->status(p->admin, &status, err);
    if (rc == HK_OK) {
        struct hk_store_status kept = *status;
        p->ops->keep(p->admin, &mem);
        rc = p->ops->waiting(p->admin, NULL, 0, &waiting, err);
        if (rc == HK_OK)
            rc = write_levels(p, minute_ms, &kept, waiting, err);
    }
    hk_pool_fini(&mem);
    return rc;
}

static enum hk_code write_batch(struct part *p, const struct hk_tally_batch *batch, struct hk_err *err)
{
    enum hk_code rc = batch->n > 0 ? p->ops->series_put(p->admin, batch->rows, batch->n, err) : HK_OK;
    return rc == HK_OK ? keep_levels(p, batch->minute_ms, err) : rc;
}

/* On the worker. */
static void work(void *arg)
{
    struct part *p = arg;
    struct job *job = &p->job;
    const struct hk_store_options options = {
        .busy_ms = strcmp(p->ops->name, "sqlite") == 0 ? BUSY_SQLITE_MS : BUSY_MS, .offhand = true};
    job->rc = HK_OK;
    if (job->close) {
        p->ops->close(p->admin);
        p->admin = NULL;
        return;
    }
    if (!p->admin)
        job->rc = p->ops->open(p->env->url, &options, &p->admin, &job->err);
    if (job->rc == HK_OK && job->n > 0)
        job->rc = p->ops->figures_put(p->admin, job->lane, job->figures, job->n, &job->err);
    job->batch_rc = p->admin ? HK_OK : job->rc;
    if (p->admin && job->batch)
        job->batch_rc = write_batch(p, job->batch, &job->err);
    if (job->rc == HK_OK)
        job->rc = job->batch_rc;
}

/* Once when it begins, once when it ends. A busy file is nothing to speak of, and of a lost lane the relay tells. */
static void say(struct part *p, const struct job *job)
{
    struct hk_log_line line;
    bool trouble = job->rc != HK_OK && job->rc != HK_BUSY && job->rc != HK_CONFLICT;
    if (trouble == p->troubled || job->rc == HK_BUSY)
        return;
    p->troubled = trouble;
    hk_log_begin(&line, p->env->log, trouble ? HK_LOG_WARN : HK_LOG_INFO,
                 trouble ? "figures for status are not written, trying again" : "figures are written again");
    if (trouble)
        hk_log_cstr(&line, "error", job->err.message);
    hk_log_end(&line);
}

static void done(void *arg, bool ran)
{
    struct part *p = arg;
    struct job *job = &p->job;
    p->busy = false;
    if (ran && !job->close)
        say(p, job);
    if (job->batch && (!ran || job->batch_rc != HK_OK)) { /* later; the oldest comes first again */
        job->batch->next = p->batches;
        p->batches = job->batch;
        job->batch = NULL;
    }
    for (size_t i = 0; ran && !job->close && job->rc == HK_OK && i < job->n; i++) {
        if (job->config != p->config || job->lane != p->lane)
            break; /* there are others now */
        struct dest *d = find(p, hk_str_of(job->names[i]));
        if (!d)
            continue; /* forgotten meanwhile */
        d->said = job->figures[i];
        d->said.destination = d->said.last_error = (struct hk_str){"", 0};
        d->told = true;
        d->told_ms = now_ms(p);
    }
    free_job(job);
}

static void submit(struct part *p)
{
    p->busy = hk_worker_submit(p->worker, work, done, p) == HK_OK;
    if (!p->busy)
        done(p, false);
}

static void tick(void *arg)
{
    struct part *p = arg;
    hk_timer_start(p->timer, TICK_MS);
    if (p->busy || p->lane == 0)
        return;
    look_for_held(p);
    if (!make_job(p)) {
        free_job(&p->job);
        return;
    }
    fill_job(p);
    bool news = p->job.n > 0, minute = p->batches != NULL;
    p->quiet = news ? 0 : p->quiet + 1;
    p->job.close = p->quiet >= QUIET_TICKS && p->open && !minute;
    if (minute) {
        p->job.batch = p->batches;
        p->batches = p->batches->next;
        p->job.batch->next = NULL;
    }
    if (news || minute || p->job.close) {
        p->open = news || minute;
        submit(p);
    } else {
        free_job(&p->job);
    }
}

/* ---- a part ---- */

/* What was counted since the last minute, when the relay ends in order: on a store that has answered so far. */
static void write_last(struct part *p)
{
    struct hk_err err = {.message = ""};
    close_minute(p);
    for (struct hk_tally_batch *b = p->batches; b && p->admin && !p->troubled; b = b->next)
        if (b->n > 0 && p->ops->series_put(p->admin, b->rows, b->n, &err) != HK_OK)
            break;
    while (p->batches) {
        struct hk_tally_batch *first = p->batches;
        p->batches = first->next;
        hk_tally_batch_free(first);
    }
}

static void stop(void *arg)
{
    struct part *p = arg;
    hk_timer_free(p->timer);
    hk_worker_free(p->worker);
    write_last(p);
    if (p->ops && p->admin)
        p->ops->close(p->admin);
    free_dests(p->dests, p->n_dests);
    hk_masks_free(p->masks);
    hk_mem_free(p);
}

static enum hk_code start(const struct hk_part_env *env, void **out_part, struct hk_onlooker *out_watch,
                          struct hk_err *err)
{
    struct part *p = hk_mem_zalloc(1, sizeof *p);
    if (!p)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    p->env = env;
    p->ops = hk_store_admin_by_url(env->url, err);
    enum hk_code rc = p->ops ? take_config(p, err) : err->code;
    if (rc == HK_OK)
        rc = hk_worker_new(env->loop, 1, &p->worker, err);
    if (rc == HK_OK)
        rc = hk_timer_new(env->loop, tick, p, &p->timer);
    if (rc != HK_OK) {
        stop(p);
        return rc;
    }
    hk_timer_start(p->timer, TICK_MS);
    *out_watch = (struct hk_onlooker){.arg = p,
                                      .attempt_begins = attempt_begins,
                                      .attempt_ended = attempt_ended,
                                      .exchanged = exchanged,
                                      .polled = polled,
                                      .lane = lane};
    *out_part = p;
    return HK_OK;
}

/* Without memory the old destinations would point into a configuration that goes: nothing is counted then. */
static void reloaded(void *arg)
{
    struct part *p = arg;
    struct hk_err err = {.message = ""};
    p->no_masks = take_config(p, &err) != HK_OK;
    for (size_t i = 0; i < p->n_dests; i++) { /* they were masked by other rules, or by none */
        p->dests[i].error[0] = '\0';
        p->dests[i].error_at_ms = 0;
    }
    if (p->no_masks) {
        free_dests(p->dests, p->n_dests);
        p->dests = NULL;
        p->n_dests = p->room = p->n_met = 0;
        p->config++;
    }
}

const struct hk_part_ops hk_part_figures = {
    .name = "figures", .start = start, .reloaded = reloaded, .stop = stop};
