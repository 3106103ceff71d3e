/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku figures: rows of the store come by time, so that only the points of one interval hold histograms at a time. Two looks: which
 * destinations have the most traffic, then the points of these. */
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/parse.h"
#include "base/str.h"
#include "desk/figures.h"
#include "desk/forms.h"

enum {
    LIMIT = 20
};

#define MINUTE_MS HK_SERIES_MINUTE_MS
#define HOUR_MS   HK_SERIES_HOUR_MS
#define DAY_MS    (24 * HOUR_MS)
#define UNKNOWN   UINT64_MAX
#define ROWS_MAX  2000000 /* that one call looks at */

static const struct {
    const char *name;
    int64_t ms;
} steps[] = {{"1m", MINUTE_MS}, {"5m", 5 * MINUTE_MS}, {"1h", HOUR_MS}, {"1d", DAY_MS}};

enum {
    N_STEPS = sizeof steps / sizeof steps[0]
};

/* ---- what is asked for ---- */

struct span {
    int64_t since_ms, until_ms, step_ms; /* whole steps */
    size_t n;                            /* of them */
};

static enum hk_code read_time(struct hk_desk *desk, const char *field, const char *text, int64_t *out,
                              struct hk_err *err)
{
    if (!text || hk_parse_rfc3339(hk_str_of(text), out, NULL) == HK_OK)
        return HK_OK;
    return hk_desk_wrong(desk, field, err, "is no time such as 2026-11-15T08:30:00Z");
}

/* The finest that gives a chart which can be read. */
static int64_t step_for(int64_t length_ms)
{
    return length_ms <= 2 * HOUR_MS ? MINUTE_MS : length_ms <= 2 * DAY_MS ? 5 * MINUTE_MS : HOUR_MS;
}

static enum hk_code read_span(struct hk_desk *desk, const struct hk_figures_ask *ask, int64_t now_ms,
                              struct span *out, struct hk_err *err)
{
    int64_t since_ms = 0, until_ms = now_ms, step_ms = 0;
    enum hk_code rc = read_time(desk, "until", ask->until, &until_ms, err);
    if (rc == HK_OK)
        rc = read_time(desk, "since", ask->since, &since_ms, err);
    if (rc != HK_OK)
        return rc;
    if (ask->since && ask->for_ms > 0)
        return hk_desk_wrong(desk, "for", err, "and since: give one of them");
    if (!ask->since)
        since_ms = until_ms - (ask->for_ms > 0 ? (int64_t)ask->for_ms : HOUR_MS);
    if (since_ms >= until_ms || since_ms < 0)
        return hk_desk_wrong(desk, "since", err, "is not before the end");
    for (size_t i = 0; i < N_STEPS; i++)
        if (ask->step && strcmp(ask->step, steps[i].name) == 0)
            step_ms = steps[i].ms;
    if (step_ms == 0)
        step_ms = step_for(until_ms - since_ms);
    since_ms -= since_ms % step_ms;
    int64_t n = (until_ms - since_ms + step_ms - 1) / step_ms;
    if (n > HK_FIGURES_POINTS_MAX)
        return hk_desk_wrong(desk, "step", err, "would make more than %d points: take a longer one",
                             HK_FIGURES_POINTS_MAX);
    *out = (struct span){
        .since_ms = since_ms, .until_ms = since_ms + n * step_ms, .step_ms = step_ms, .n = (size_t)n};
    return HK_OK;
}

/* ---- points ---- */

struct work {
    struct hk_desk *desk;
    struct hk_pool *mem;
    struct span span;
    struct hk_series_ask ask;
    struct hk_line **by_name;     /* the destinations, sorted */
    size_t n_names;               /* of them */
    struct hk_line *total;        /* NULL: not wanted */
    struct hk_histogram *latency; /* of each line, in the present interval */
    struct hk_figures_found *out;
    size_t at; /* the present interval */
};

static int by_destination(const void *a, const void *b)
{
    const struct hk_line *x = *(struct hk_line *const *)a, *y = *(struct hk_line *const *)b;
    size_t least = x->destination.len < y->destination.len ? x->destination.len : y->destination.len;
    int order = least ? memcmp(x->destination.ptr, y->destination.ptr, least) : 0;
    return order ? order
                 : (x->destination.len > y->destination.len) - (x->destination.len < y->destination.len);
}

static struct hk_line *find_line(const struct work *w, struct hk_str destination)
{
    struct hk_line key = {.destination = destination};
    const struct hk_line *wanted = &key;
    /* It is a table of pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
    struct hk_line **found =
        w->n_names > 0 ? bsearch(&wanted, w->by_name, w->n_names, sizeof *w->by_name, by_destination) : NULL;
    return found ? *found : NULL;
}

static void end_interval(struct work *w)
{
    for (size_t i = 0; i < w->out->n; i++) {
        struct hk_point *p = &w->out->items[i].points[w->at];
        if (hk_histogram_count(&w->latency[i]) > 0) {
            p->p50_ms = hk_histogram_quantile(&w->latency[i], 0.5);
            p->p95_ms = hk_histogram_quantile(&w->latency[i], 0.95);
        }
        w->latency[i] = (struct hk_histogram){.counts = {0}};
    }
}

static void raise_to(uint64_t *level, uint64_t value)
{
    if (*level == UNKNOWN || value > *level)
        *level = value;
}

static void add_levels(struct hk_point *p, const struct hk_series_row *row)
{
    raise_to(&p->waiting, row->waiting);
    raise_to(&p->in_flight, row->in_flight);
    raise_to(&p->dead_open, row->dead_open);
    raise_to(&p->oldest_ms, row->oldest_ms);
}

static void add_counts(struct work *w, struct hk_line *line, const struct hk_series_row *row)
{
    struct hk_point *p = &line->points[w->at];
    p->seen += row->seen;
    p->sent += row->sent;
    p->failed += row->failed;
    p->retried += row->retried;
    p->dead += row->dead;
    (void)hk_histogram_read(&w->latency[line - w->out->items], row->latency); /* as far as it is one */
}

/* A relay has measured this interval: counts without a row are 0. */
static void begin_levels(struct work *w)
{
    for (size_t i = 0; i < w->n_names; i++) {
        struct hk_point *p = &w->by_name[i]->points[w->at];
        raise_to(&p->waiting, 0);
        raise_to(&p->in_flight, 0);
        raise_to(&p->dead_open, 0);
        raise_to(&p->oldest_ms, 0);
    }
}

static void take_row(struct work *w, const struct hk_series_row *row)
{
    size_t at = (size_t)((row->at_ms - w->span.since_ms) / w->span.step_ms);
    if (row->at_ms < w->span.since_ms || at >= w->span.n)
        return;
    if (at != w->at)
        end_interval(w);
    w->at = at;
    if (row->lane == HK_SERIES_TOTAL) {
        if (w->total)
            add_levels(&w->total->points[at], row);
        begin_levels(w);
        return;
    }
    struct hk_line *line = find_line(w, row->destination);
    if (row->lane == HK_SERIES_LEVELS) {
        if (line)
            add_levels(&line->points[at], row);
        return;
    }
    if (w->total)
        add_counts(w, w->total, row);
    if (line)
        add_counts(w, line, row);
}

static enum hk_code read_rows(struct work *w, const struct hk_caller *caller, struct hk_err *err)
{
    const struct hk_series *found = NULL;
    uint64_t looked = 0;
    char name[HK_NAME_MAX * 4];
    do {
        enum hk_code rc = w->desk->ops->series(w->desk->admin, &w->ask, &found, err);
        if (rc != HK_OK)
            return rc;
        w->out->now_ms = found->now_ms;
        for (size_t i = 0; i < found->n; i++)
            take_row(w, &found->items[i]);
        looked += found->n;
        if (found->n > 0) {
            const struct hk_series_row *last = &found->items[found->n - 1];
            w->ask.resume = true;
            w->ask.after_at_ms = last->at_ms;
            w->ask.after_lane = last->lane;
            w->ask.after_destination = (struct hk_str){name, 0};
            if (hk_str_copy(name, sizeof name, last->destination))
                w->ask.after_destination.len = last->destination.len;
        }
        if (looked > ROWS_MAX || hk_caller_stops(caller))
            return hk_err_set(err, HK_TOOBIG,
                              "too many rows to add up at once: ask for a shorter time, or a longer step");
    } while (found->n == w->ask.limit);
    w->ask.after_destination = (struct hk_str){NULL, 0}; /* its text was here */
    end_interval(w);
    return HK_OK;
}

/* ---- lines ---- */

static bool make_line(struct work *w, struct hk_str destination)
{
    struct hk_line *line = &w->out->items[w->out->n];
    line->destination = destination;
    line->points = hk_pool_alloc(w->mem, w->span.n, sizeof *line->points);
    if (!line->points)
        return false;
    line->n = w->span.n;
    for (size_t i = 0; i < line->n; i++)
        line->points[i] = (struct hk_point){.at_ms = w->span.since_ms + (int64_t)i * w->span.step_ms,
                                            .p50_ms = UNKNOWN,
                                            .p95_ms = UNKNOWN,
                                            .waiting = UNKNOWN,
                                            .in_flight = UNKNOWN,
                                            .dead_open = UNKNOWN,
                                            .oldest_ms = UNKNOWN};
    w->out->n++;
    return true;
}

static enum hk_code make_lines(struct work *w, const struct hk_figures_ask *ask, struct hk_err *err)
{
    const struct hk_series_names *names = NULL;
    struct hk_str only = hk_str_of(ask->destination ? ask->destination : "");
    const struct hk_series_names one = {.items = &only, .n = 1};
    w->ask.limit = (uint32_t)ask->limit + 1;
    enum hk_code rc =
        ask->destination ? HK_OK : w->desk->ops->series_names(w->desk->admin, &w->ask, &names, err);
    if (rc != HK_OK)
        return rc;
    hk_desk_keep(w->desk, w->mem);
    names = names ? names : &one;
    w->out->more = names->n > ask->limit;
    size_t n = w->out->more ? (size_t)ask->limit : names->n;
    w->out->items = hk_pool_alloc(w->mem, n + 1, sizeof *w->out->items);
    w->by_name = hk_pool_alloc(w->mem, n + 1, sizeof(struct hk_line *));
    w->latency = hk_pool_alloc(w->mem, n + 1, sizeof *w->latency);
    bool good = w->out->items && w->by_name && w->latency;
    if (good && !ask->destination) {
        good = make_line(w, hk_str_of(""));
        w->total = &w->out->items[0];
    }
    for (size_t i = 0; good && i < n; i++) {
        w->by_name[w->n_names++] = &w->out->items[w->out->n];
        good = make_line(w, names->items[i]);
    }
    if (!good)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    qsort(w->by_name, w->n_names, sizeof(struct hk_line *), by_destination);
    return HK_OK;
}

static enum hk_code figures(struct hk_desk *desk, const struct hk_caller *caller,
                            const struct hk_figures_ask *ask, struct hk_pool *mem,
                            struct hk_figures_found *out, struct hk_err *err)
{
    const struct hk_series *first = NULL;
    struct work w = {.desk = desk, .mem = mem, .out = out};
    *out = (struct hk_figures_found){.n = 0};
    /* the store's clock says what now is */
    enum hk_code rc = desk->ops->series(
        desk->admin, &(struct hk_series_ask){.step_ms = MINUTE_MS, .limit = 1}, &first, err);
    if (rc == HK_OK)
        rc = read_span(desk, ask, first->now_ms, &w.span, err);
    if (rc != HK_OK)
        return rc;
    w.ask = (struct hk_series_ask){.step_ms = w.span.step_ms >= HOUR_MS ? HOUR_MS : MINUTE_MS,
                                   .since_ms = w.span.since_ms,
                                   .until_ms = w.span.until_ms,
                                   .destination = ask->destination};
    out->since_ms = w.span.since_ms;
    out->until_ms = w.span.until_ms;
    out->step_ms = (uint64_t)w.span.step_ms;
    rc = make_lines(&w, ask, err);
    w.ask.limit = HK_SERIES_PAGE;
    return rc == HK_OK ? read_rows(&w, caller, err) : rc;
}

/* ---- the table ---- */

static void form_point(struct hk_form *form, void *result)
{
    struct hk_point *p = result;
    hk_form_time(form, "at", &p->at_ms);
    hk_form_uint(form, "seen", &p->seen);
    hk_form_uint(form, "attempts_ok", &p->sent);
    hk_form_uint(form, "attempts_failed", &p->failed);
    hk_form_uint(form, "retried", &p->retried);
    hk_form_uint(form, "dead", &p->dead);
    hk_form_maybe(form, "latency_p50_ms", &p->p50_ms);
    hk_form_maybe(form, "latency_p95_ms", &p->p95_ms);
    hk_form_maybe(form, "waiting", &p->waiting);
    hk_form_maybe(form, "in_flight", &p->in_flight);
    hk_form_maybe(form, "dead_open", &p->dead_open);
    hk_form_maybe(form, "oldest_due_ms", &p->oldest_ms);
}

static void form_line(struct hk_form *form, void *result)
{
    struct hk_line *line = result;
    struct hk_form_list points = HK_FORM_ITEMS(line->points, line->n, form_point);
    points.in_a_line = true;
    hk_form_str(form, "destination", &line->destination);
    hk_form_list(form, "points", &points);
}

void hk_form_figures(struct hk_form *form, void *result)
{
    struct hk_figures_found *found = result;
    hk_form_time(form, "now", &found->now_ms);
    hk_form_time(form, "since", &found->since_ms);
    hk_form_time(form, "until", &found->until_ms);
    hk_form_uint(form, "step_ms", &found->step_ms);
    hk_form_list(form, "items", &HK_FORM_ITEMS(found->items, found->n, form_line));
    hk_form_bool(form, "more_destinations", &found->more);
    hk_form_null(form, "next");
}

HK_OP_RUN(figures)

static const struct hk_arg figures_args[] = {
    {HK_ARG(hk_figures_ask, since, HK_ARG_TEXT, "TIME",
            "begin at this time (default: an hour before the end)")},
    {HK_ARG(hk_figures_ask, until, HK_ARG_TEXT, "TIME", "end at this time (default: now)")},
    {.name = "for",
     .kind = HK_ARG_DURATION,
     .offset = offsetof(struct hk_figures_ask, for_ms),
     .lo = (double)MINUTE_MS,
     .hi = 400.0 * (double)DAY_MS,
     .value = "DURATION",
     .help = "instead of --since: this long before the end (default: 1h)"},
    {HK_ARG(hk_figures_ask, step, HK_ARG_CHOICE, "STEP",
            "the length of an interval (default: 1m up to 2 hours, 5m up to 2 days, else 1h)"),
     .choices = "1m 5m 1h 1d"},
    {HK_ARG(hk_figures_ask, destination, HK_ARG_TEXT, "NAME", "only this destination")},
    {HK_ARG(hk_figures_ask, limit, HK_ARG_NUMBER, "N", "at most this many destinations (default: 20)"),
     .lo = 1, .hi = HK_FIGURES_ITEMS_MAX, .fallback = LIMIT},
    {.name = NULL}};

const struct hk_op hk_op_figures = {
    .noun = "figures",
    .summary = "show counts of sent and failed messages over time",
    .details =
        "Relays write their counts once a minute: the last one may be missing. Minutes are kept for 48 hours,\n"
        "hours for 90 days.",
    .route = "GET /figures",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = figures_args,
    .request_size = sizeof(struct hk_figures_ask),
    .result_size = sizeof(struct hk_figures_found),
    .run = figures_op,
    .form = hk_form_figures};
