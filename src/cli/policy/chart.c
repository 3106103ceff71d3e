/* SPDX-License-Identifier: Apache-2.0 */
/* Bars in the terminal: one panel per series, over one time axis. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/out.h"
#include "cli/policy/chart.h"

enum {
    ROWS = 6,
    LABEL = 8,
    LEVELS = 8
};

#define SECOND UINT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* The first that is large enough; whole days beyond the last. */
static uint64_t first_of(const uint64_t *list, size_t n, uint64_t ms)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] >= ms)
            return list[i];
    return (ms + DAY - 1) / DAY * DAY;
}

uint64_t hk_chart_tick_ms(uint64_t ms)
{
    static const uint64_t ticks[] = {100,         200,         500,         SECOND, 2 * SECOND, 5 * SECOND,
                                     10 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE,
                                     10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR,   2 * HOUR,   3 * HOUR,
                                     6 * HOUR,    12 * HOUR,   DAY};

    return first_of(ticks, sizeof ticks / sizeof ticks[0], ms);
}

uint64_t hk_chart_bar_ms(uint64_t ms)
{
    static const uint64_t bars[] = {
        100,         200,         300,         400,         500,         SECOND,      2 * SECOND,
        3 * SECOND,  4 * SECOND,  5 * SECOND,  6 * SECOND,  8 * SECOND,  10 * SECOND, 12 * SECOND,
        15 * SECOND, 20 * SECOND, 30 * SECOND, 40 * SECOND, MINUTE,      2 * MINUTE,  3 * MINUTE,
        4 * MINUTE,  5 * MINUTE,  6 * MINUTE,  10 * MINUTE, 15 * MINUTE, 20 * MINUTE, 30 * MINUTE,
        40 * MINUTE, HOUR,        2 * HOUR,    3 * HOUR,    4 * HOUR,    6 * HOUR,    8 * HOUR,
        12 * HOUR,   DAY};

    return first_of(bars, sizeof bars / sizeof bars[0], ms);
}

uint64_t hk_chart_nice_count(uint64_t n)
{
    uint64_t power = 1;

    while (power < n / 10)
        power *= 10;
    for (;; power *= 10) {
        if (power >= n)
            return power;
        if (2 * power >= n)
            return 2 * power;
        if (power >= 10 && 5 * power / 2 >= n)
            return 5 * power / 2;
        if (5 * power >= n)
            return 5 * power;
    }
}

uint64_t hk_chart_span_ms(const struct hk_herd_options *options, const struct hk_herd *policy)
{
    uint64_t served_ms =
        policy->most_ms == UINT64_MAX ? policy->last_ms : options->outage_ms + policy->most_ms;
    uint64_t span_ms = served_ms + served_ms / 8;
    uint64_t least_ms = options->outage_ms + options->outage_ms / 4 + 1000;

    return span_ms > least_ms ? span_ms : least_ms;
}

static uint64_t most_within(const struct hk_chart *chart, uint64_t from_ms, uint64_t bin_ms)
{
    uint64_t most = 0;

    for (unsigned s = 0; s < HK_CHART_SERIES; s++)
        for (uint64_t ms = from_ms; ms < chart->span_ms; ms += bin_ms) {
            uint64_t n = hk_herd_between(chart->series[s], ms, ms + bin_ms);
            most = n > most ? n : most;
        }
    return most;
}

uint64_t hk_chart_scale(const struct hk_chart *chart, uint64_t bin_ms)
{
    uint64_t most = most_within(chart, chart->options->outage_ms / bin_ms * bin_ms, bin_ms);

    if (most == 0)
        most = most_within(chart, 0, bin_ms);
    return hk_chart_nice_count(most > 0 ? most : 1);
}

/* What one panel shows: `bar_ms` of time a column. */
struct panel {
    const struct hk_chart *chart;
    const struct hk_chart_look *look;
    const struct hk_herd *load;
    const char *color;
    unsigned columns;
    uint64_t bar_ms;
    uint64_t top; /* attempts a bar at full height */
};

static uint64_t bar(const struct panel *p, unsigned column)
{
    return hk_herd_between(p->load, column * p->bar_ms, (column + 1) * p->bar_ms);
}

/* Eighths of a row, rounded up: what is not zero is seen. */
static uint64_t height(const struct panel *p, unsigned column)
{
    uint64_t steps = (uint64_t)ROWS * LEVELS;
    uint64_t h = (bar(p, column) * steps + p->top - 1) / p->top;

    return h < steps ? h : steps;
}

static const char *block(const struct hk_chart_look *look, uint64_t eighths)
{
    static const char *const fine[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};

    return (look->utf8 ? fine : plain)[eighths < LEVELS ? eighths : LEVELS];
}

static void draw_row(const struct panel *p, unsigned row, struct hk_buf *out)
{
    uint64_t below = (uint64_t)row * LEVELS;
    char label[HK_SHOW_NUMBER] = "";
    unsigned end = p->columns;

    if (row == ROWS - 1)
        (void)hk_show_count(p->top, label);
    else if (row == 0)
        (void)hk_show_count(0, label);
    while (end > 0 && height(p, end - 1) <= below)
        end--;
    (void)hk_buf_addf(out, "%*s %s%s", LABEL, label, p->look->utf8 ? "│" : "|", p->color);
    for (unsigned i = 0; i < end; i++) {
        uint64_t h = height(p, i);
        (void)hk_buf_adds(out, block(p->look, h > below ? h - below : 0));
    }
    (void)hk_buf_adds(out, p->color[0] != '\0' ? "\033[0m\n" : "\n");
}

/* Marks where the destination is down, then the times. */
static void draw_axis(const struct panel *p, struct hk_buf *out)
{
    uint64_t outage_ms = p->chart->options->outage_ms;
    uint64_t tick_ms = hk_chart_tick_ms(p->bar_ms * p->columns / 8);
    char text[HK_SHOW_NUMBER];
    unsigned at = 0;

    (void)hk_buf_addf(out, "%*s %s", LABEL, "down", p->look->utf8 ? "└" : "+");
    for (unsigned i = 0; i < p->columns; i++) {
        bool down = i * p->bar_ms + p->bar_ms / 2 < outage_ms;
        const char *mark = p->look->utf8 ? (down ? "▀" : "─") : (down ? "=" : "-");
        (void)hk_buf_adds(out, mark);
    }
    (void)hk_buf_addf(out, "\n%*s  ", LABEL, "");
    for (uint64_t ms = 0; ms / p->bar_ms < p->columns; ms += tick_ms) {
        unsigned column = (unsigned)(ms / p->bar_ms);
        size_t len = strlen(hk_show_duration(ms, text));
        if ((at > 0 && column < at + 2) || column + len > p->columns)
            continue;
        (void)hk_buf_addf(out, "%*s%s", (int)(column - at), "", text);
        at = column + (unsigned)len;
    }
    (void)hk_buf_addc(out, '\n');
}

static void draw_panel(const struct panel *p, const char *other, struct hk_buf *out)
{
    uint64_t most = 0;
    char text[HK_SHOW_NUMBER];

    for (unsigned i = 0; i < p->columns; i++)
        most = bar(p, i) > most ? bar(p, i) : most;
    (void)hk_buf_addf(out, "%*s %s%s%s: attempts per %s", LABEL, "", p->chart->policy,
                      other[0] != '\0' ? " " : "", other, hk_show_duration(p->bar_ms, text));
    if (most > p->top)
        (void)hk_buf_addf(out, " (cut off: up to %s)", hk_show_count(most, text));
    (void)hk_buf_addc(out, '\n');
    for (unsigned row = ROWS; row > 0; row--)
        draw_row(p, row - 1, out);
}

void hk_chart_text(const struct hk_chart *chart, const struct hk_chart_look *look, struct hk_buf *out)
{
    unsigned columns = look->width - LABEL - 3;
    uint64_t bar_ms = hk_chart_bar_ms((chart->span_ms + columns - 1) / columns);
    struct panel panel = {.chart = chart,
                          .look = look,
                          .bar_ms = bar_ms,
                          .columns = (unsigned)((chart->span_ms + bar_ms - 1) / bar_ms),
                          .top = hk_chart_scale(chart, bar_ms)};

    panel.load = chart->series[HK_CHART_POLICY];
    panel.color = look->color ? "\033[36m" : "";
    draw_panel(&panel, "", out);
    (void)hk_buf_addc(out, '\n');
    panel.load = chart->series[HK_CHART_BASELINE];
    panel.color = look->color ? "\033[33m" : "";
    draw_panel(&panel, chart->other, out);
    draw_axis(&panel, out);
}
