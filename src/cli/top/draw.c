/* SPDX-License-Identifier: Apache-2.0 */
/* `top` as lines of text: the same for a terminal and for --once. From 40 columns and 10 rows on everything has its place. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/top/screen.h"
#include "cli/top/top.h"

enum {
    LINE_MAX_BYTES = 4096,
    NAME_MIN = 12,
    NAME_MAX_COLUMNS = 30,
    NUMBERS = 58, /* columns that the table has beside name and state */
    HEAD_ROWS = 4,
    SPARK = 8,
    SPARK_NARROW = 4, /* where the state would have no room otherwise */
    NARROW = 90
};

struct pen {
    struct hk_buf text;
    size_t width; /* columns that are written */
    unsigned row, columns;
    hk_top_line_fn *line;
    void *arg;
};

/* Adds what still fits. */
static void put(struct pen *p, struct hk_str s)
{
    if (p->width < p->columns)
        p->width += hk_table_safe(&p->text, s, p->columns - p->width);
}

static void puts_(struct pen *p, const char *s)
{
    put(p, hk_str_of(s));
}

static void pad_to(struct pen *p, size_t column)
{
    while (p->width < column && p->width < p->columns) {
        (void)hk_buf_addc(&p->text, ' ');
        p->width++;
    }
}

/* Right-aligned in `width` columns, with a blank before. */
static void cell(struct pen *p, const char *s, size_t width)
{
    size_t len = strlen(s);
    pad_to(p, p->width + 1 + (len < width ? width - len : 0));
    puts_(p, s);
}

/* In `width` columns exactly. */
static void field(struct pen *p, struct hk_str s, size_t width)
{
    size_t end = p->width + width;
    if (p->width < p->columns)
        p->width += hk_table_safe(&p->text, s, width < p->columns - p->width ? width : p->columns - p->width);
    pad_to(p, end);
}

static void end_line(struct pen *p, unsigned attributes)
{
    p->line(p->arg, p->row++, hk_buf_status(&p->text) == HK_OK ? hk_buf_cstr(&p->text) : NULL, attributes);
    hk_buf_reset(&p->text);
    p->width = 0;
}

/* ---- numbers ---- */

/* At most seven columns, the mark of estimates included. */
static const char *compact(struct hk_count count, char out[24])
{
    const char *about = count.about ? "~" : "";
    if (count.n < 100000)
        (void)snprintf(out, 24, "%s%" PRIu64, about, count.n);
    else if (count.n < 10000000)
        (void)snprintf(out, 24, "%s%" PRIu64 "k", about, count.n / 1000);
    else
        (void)snprintf(out, 24, "%s%" PRIu64 "M", about, count.n / 1000000);
    return out;
}

static const char *rate(bool known, double per_s, char out[HK_SHOW_NUMBER])
{
    return !known ? "-" : per_s > 0 ? hk_show_rate(per_s, out) : "0";
}

static const char *percent(double ratio, char out[24])
{
    if (ratio < 0)
        return "-";
    (void)snprintf(out, 24, ratio < 1 && ratio >= 0.9995 ? "99.9%%" : "%.3g%%", ratio * 100);
    return out;
}

/* The last `n` values as bars, the highest of them at full height. */
static void spark(struct pen *p, const float history[HK_TOP_SPARK], unsigned n)
{
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, *const ascii[] = {
                                                                                         " ", ".", ".",
                                                                                         ":", ":", "-",
                                                                                         "=", "+", "#"};
    const char *const *set = hk_out_utf8() ? bars : ascii;
    float most = 0;
    n = n < HK_TOP_SPARK ? n : HK_TOP_SPARK;
    for (unsigned i = HK_TOP_SPARK - n; i < HK_TOP_SPARK; i++)
        most = history[i] > most ? history[i] : most;
    for (unsigned i = HK_TOP_SPARK - n; i < HK_TOP_SPARK; i++) {
        int height = most > 0 ? (int)(history[i] / most * 8.0F + 0.5F) : 0;
        height = height == 0 && history[i] > 0 ? 1 : height;
        puts_(p, set[height]);
    }
}

/* ---- head ---- */

static void draw_title(struct pen *p, const struct hk_top *top)
{
    char line[64];
    puts_(p, "hikyaku top  ");
    if (p->columns > 60)
        field(p, hk_str_of(top->place), p->columns - 50);
    if (top->taken && !top->relay_running)
        puts_(p, "  NO RELAY IS RUNNING");
    if (top->taken && top->relay_running) {
        puts_(p, "  relay ");
        put(p, hk_str_of(top->relay));
        (void)snprintf(line, sizeof line, " and %" PRIu32 " more", top->relays_running - 1);
        if (top->relays_running > 1)
            puts_(p, line);
    }
    end_line(p, HK_ATTR_BOLD | (top->taken && !top->relay_running ? HK_ATTR_BAD : 0));
}

static void count(struct pen *p, const char *name, struct hk_count n)
{
    char text[24];
    puts_(p, p->width > 0 ? "  " : "");
    puts_(p, name);
    puts_(p, " ");
    puts_(p, compact(n, text));
}

static void draw_backlog(struct pen *p, const struct hk_top *top)
{
    char text[HK_SHOW_NUMBER];
    const struct hk_count waiting = {top->retrying.n + top->scheduled.n,
                                     top->retrying.about || top->scheduled.about};
    count(p, "due", top->due);
    count(p, "waiting", waiting);
    count(p, "processing", (struct hk_count){top->processing, false});
    if (top->blocked_known)
        count(p, "blocked", top->blocked);
    count(p, "dead", top->dead);
    if (top->oldest_due_ms != 0) {
        puts_(p, "  oldest due ");
        puts_(p,
              hk_show_duration(
                  top->oldest_due_ms < top->now_ms ? (uint64_t)(top->now_ms - top->oldest_due_ms) : 0, text));
    }
    end_line(p, 0);
}

static void draw_rates(struct pen *p, const struct hk_top *top)
{
    char text[HK_SHOW_NUMBER];
    unsigned n = p->columns > 100 ? HK_TOP_SPARK : p->columns > 60 ? 20 : 8;
    puts_(p, "in ");
    spark(p, top->in, n);
    puts_(p, " ");
    puts_(p, rate(true, (double)top->in[HK_TOP_SPARK - 1], text));
    puts_(p, "/s   out ");
    spark(p, top->out, n);
    puts_(p, " ");
    puts_(p, rate(true, (double)top->out[HK_TOP_SPARK - 1], text));
    puts_(p, "/s");
    end_line(p, 0);
}

/* ---- destinations ---- */

static size_t name_width(const struct pen *p)
{
    size_t left = p->columns > NUMBERS + 9 ? p->columns - NUMBERS - 9 : NAME_MIN;
    return left < NAME_MIN ? NAME_MIN : left > NAME_MAX_COLUMNS ? NAME_MAX_COLUMNS : left;
}

static unsigned spark_width(const struct pen *p)
{
    return p->columns < NARROW ? SPARK_NARROW : SPARK;
}

static void draw_titles(struct pen *p, const struct hk_top *top)
{
    static const char *const sorts[HK_TOP_NSORTS] = {[HK_TOP_BY_NAME] = "name",
                                                     [HK_TOP_BY_BACKLOG] = "backlog",
                                                     [HK_TOP_BY_DEAD] = "dead",
                                                     [HK_TOP_BY_RATE] = "rate",
                                                     [HK_TOP_BY_LATENCY] = "latency"};
    char title[HK_TOP_TEXT + 40];
    (void)snprintf(title, sizeof title, "BY %s", sorts[top->sort]);
    if (top->filter[0] != '\0')
        (void)snprintf(title, sizeof title, "/%s", top->filter);
    field(p, hk_str_of(title), name_width(p));
    cell(p, "PENDING", 7);
    cell(p, "RETRY", 6);
    cell(p, "DEAD", 6);
    cell(p, "IN/S", 6);
    cell(p, "OUT/S", 6);
    puts_(p, " ");
    field(p, hk_str_of("OUT"), spark_width(p));
    cell(p, "OK", 5);
    cell(p, "P95", 6);
    puts_(p, "  STATE");
    end_line(p, HK_ATTR_BOLD);
}

static const char *state_of(const struct hk_top_dest *d, int64_t now_ms, char out[96])
{
    char text[HK_SHOW_NUMBER];
    if (d->paused)
        return "paused";
    if (d->open_until_ms > now_ms) {
        (void)snprintf(out, 96, "open %s", hk_show_duration((uint64_t)(d->open_until_ms - now_ms), text));
        return out;
    }
    return d->half_open ? "half-open" : d->limited ? "limited" : d->known ? "ok" : "-";
}

static void draw_dest(struct pen *p, const struct hk_top_dest *d, int64_t now_ms, bool marked)
{
    char n[24], text[HK_SHOW_NUMBER], state[96];
    bool open = d->open_until_ms > now_ms;
    field(p, hk_str_of(d->name[0] != '\0' ? d->name : "(by route)"), name_width(p));
    cell(p, compact(d->pending, n), 7);
    cell(p, compact(d->retrying, n), 6);
    cell(p, compact(d->dead, n), 6);
    cell(p, rate(d->known, d->in_per_s, text), 6);
    cell(p, rate(d->known, d->out_per_s, text), 6);
    puts_(p, " ");
    spark(p, d->out, spark_width(p));
    cell(p, percent(d->ratio, n), 5);
    cell(p, d->ratio < 0 ? "-" : hk_show_duration(d->p95_ms, text), 6);
    puts_(p, "  ");
    puts_(p, state_of(d, now_ms, state));
    end_line(p, (marked ? HK_ATTR_REVERSE : 0) | (open                        ? HK_ATTR_BAD
                                                  : d->paused || d->half_open ? HK_ATTR_WARN
                                                                              : 0));
}

/* From where a list is shown so that its mark is in sight. */
static size_t first_shown(size_t marked, size_t room)
{
    return marked >= room ? marked - room + 1 : 0;
}

static void draw_dests(struct pen *p, struct hk_top *top, unsigned room)
{
    size_t from = first_shown(top->marked[0], room);
    const struct hk_top_dest *d = NULL;
    unsigned end = p->row + room;
    for (size_t i = from; p->row < end && (d = hk_top_dest(top, i)) != NULL; i++)
        draw_dest(p, d, top->now_ms, !top->in_failures && i == top->marked[0]);
    if (from == 0 && hk_top_shown(top) == 0 && room > 0) {
        puts_(p, top->filter[0] != '\0' ? "no destination has that in its name" : "no destinations yet");
        end_line(p, HK_ATTR_DIM);
    }
    while (p->row < end)
        end_line(p, 0);
}

/* ---- what is known of the marked one ---- */

static void draw_detail(struct pen *p, const struct hk_top *top)
{
    const struct hk_top_dest *d = hk_top_dest(top, top->marked[0]);
    char ago[64], n[24], p50[HK_SHOW_NUMBER], p99[HK_SHOW_NUMBER], line[160];
    if (d == NULL || top->in_failures) {
        end_line(p, 0);
        return;
    }
    puts_(p, d->name[0] != '\0' ? d->name : "(by route)");
    (void)snprintf(line, sizeof line, ": %" PRIu64 " in flight, %s blocked", d->processing,
                   compact(d->blocked, n));
    puts_(p, line);
    if (d->ratio >= 0) {
        (void)snprintf(line, sizeof line, ", p50 %s, p99 %s", hk_show_duration(d->p50_ms, p50),
                       hk_show_duration(d->p99_ms, p99));
        puts_(p, line);
    }
    if (d->paused) {
        (void)snprintf(line, sizeof line, ", paused %s by ", hk_show_ago(d->since_ms, top->now_ms, ago));
        puts_(p, line);
        puts_(p, d->actor);
        puts_(p, ": ");
        puts_(p, d->reason);
    }
    end_line(p, HK_ATTR_DIM);
}

/* ---- failures ---- */

static void draw_failure(struct pen *p, const struct hk_top *top, size_t i)
{
    const struct hk_top_failure *f = &top->failures[i];
    char ago[64], id[48];
    bool marked = top->in_failures && i == top->marked[1];
    field(p, hk_str_of(hk_show_ago(f->at_ms, top->now_ms, ago)), 12);
    puts_(p, " ");
    field(p, hk_str_of(f->destination), p->columns > 100 ? 20 : 12);
    puts_(p, " ");
    if (f->letter != 0) {
        (void)snprintf(id, sizeof id, "dead letter %" PRId64 " ", f->letter);
        puts_(p, id);
    }
    puts_(p, f->text);
    if (f->message_id[0] != '\0') {
        puts_(p, " ");
        puts_(p, f->message_id);
    }
    end_line(p, (marked ? HK_ATTR_REVERSE : 0) | (f->letter != 0 ? HK_ATTR_BAD : 0));
}

static void draw_failures(struct pen *p, const struct hk_top *top, unsigned room)
{
    unsigned end = p->row + room;
    if (room == 0)
        return;
    puts_(p, "RECENT FAILURES");
    end_line(p, HK_ATTR_BOLD);
    for (size_t i = first_shown(top->marked[1], room > 1 ? room - 1 : 1); p->row < end && i < top->n_failures;
         i++)
        draw_failure(p, top, i);
    if (top->n_failures == 0 && p->row < end) {
        puts_(p, "none");
        end_line(p, HK_ATTR_DIM);
    }
    while (p->row < end)
        end_line(p, 0);
}

/* ---- the whole ---- */

static void draw_trouble(struct pen *p, const struct hk_top *top)
{
    puts_(p, "the store does not answer, trying again: ");
    puts_(p, top->trouble);
    end_line(p, HK_ATTR_BAD | HK_ATTR_BOLD);
}

static void draw_body(struct pen *p, struct hk_top *top, unsigned rows)
{
    size_t shown = hk_top_shown(top);
    unsigned fixed = HEAD_ROWS + 3; /* titles, detail, a blank between */
    unsigned room = rows > fixed + 2 ? rows - fixed : 2;
    unsigned failures = room / 3 > 3 ? room / 3 : room > 5 ? 3 : 0;
    unsigned dests = room - failures;
    size_t wanted = 1 + (top->n_failures > 0 ? top->n_failures : 1);
    if (failures > wanted) { /* what one list does not need, the other may have */
        dests += failures - (unsigned)wanted;
        failures = (unsigned)wanted;
    }
    if (shown < dests && failures > 0) {
        unsigned spare = dests - (unsigned)(shown > 0 ? shown : 1);
        dests -= spare;
        failures += spare;
    }
    draw_titles(p, top);
    draw_dests(p, top, dests);
    draw_detail(p, top);
    end_line(p, 0);
    draw_failures(p, top, failures);
}

void hk_top_draw(struct hk_top *top, unsigned rows, unsigned width, const char *bottom, hk_top_line_fn *line,
                 void *arg)
{
    struct pen p = {.columns = width, .line = line, .arg = arg};
    size_t shown = hk_top_shown(top);
    hk_buf_init(&p.text, LINE_MAX_BYTES);
    if (top->marked[0] >= shown)
        top->marked[0] = shown > 0 ? shown - 1 : 0;
    if (top->marked[1] >= top->n_failures)
        top->marked[1] = top->n_failures > 0 ? top->n_failures - 1 : 0;
    draw_title(&p, top);
    if (top->trouble[0] != '\0')
        draw_trouble(&p, top);
    if (top->taken) {
        draw_backlog(&p, top);
        draw_rates(&p, top);
        if (top->trouble[0] == '\0')
            end_line(&p, 0);
        draw_body(&p, top, rows > 1 ? rows - 1 : 1);
    }
    while (p.row + 1 < rows)
        end_line(&p, 0);
    puts_(&p, bottom);
    p.row = rows > 0 ? rows - 1 : 0;
    end_line(&p, HK_ATTR_DIM);
    hk_buf_fini(&p.text);
}
