/* SPDX-License-Identifier: Apache-2.0 */
/* The load as a picture that stands alone: no script, no font, no link; its style follows the reader's light or
 * dark scheme. Two panels over one time axis and one scale, the policy above, what it is compared with below. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/out.h"
#include "cli/policy/chart.h"

/* Everything is laid out on a fixed canvas and scaled by whoever shows it. */
enum {
    WIDTH = 960,
    LEFT = 84,
    RIGHT = 884,
    PANEL_TOP = 154,
    PANEL_HEIGHT = 170,
    PANEL_STEP = 270, /* from one panel's top to the next one's */
    HEIGHT = PANEL_TOP + PANEL_STEP + PANEL_HEIGHT + 70,
    MARK_GAP = 46 /* between the labels of two marks */
};

static const char style[] =
    "<style>\n"
    "svg { background: #ffffff; font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; "
    "font-size: 13px; }\n"
    "text { fill: #1f2933; } .title { font-size: 20px; font-weight: 600; } .soft { fill: #5b6773; }\n"
    ".name { font-size: 15px; font-weight: 600; } .page { fill: #ffffff; }\n"
    ".grid { stroke: #e3e8ee; } .axis { stroke: #8895a3; } .down { fill: #8895a3; fill-opacity: 0.16; }\n"
    ".policy { fill: #0b7a75; } .baseline { fill: #c2500a; }\n"
    ".capacity { stroke: #5b6773; stroke-dasharray: 2 4; } .mark { stroke: #1f2933; stroke-dasharray: 5 3; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "svg { background: #12181f; } .page { fill: #12181f; }\n"
    "text { fill: #e6ebf0; } .soft { fill: #9fb0c0; } .grid { stroke: #27313c; } .axis { stroke: #66758a; }\n"
    ".down { fill: #9fb0c0; } .policy { fill: #35c9bf; } .baseline { fill: #ff9248; }\n"
    ".capacity { stroke: #9fb0c0; } .mark { stroke: #e6ebf0; }\n"
    "}\n"
    "</style>\n";

struct canvas {
    const struct hk_chart *chart;
    struct hk_buf *out;
    uint64_t bin_ms;
    uint64_t top; /* attempts a second at full height */
};

static void add_escaped(struct hk_buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '<')
            (void)hk_buf_adds(out, "&lt;");
        else if (*s == '&')
            (void)hk_buf_adds(out, "&amp;");
        else
            (void)hk_buf_addc(out, *s);
    }
}

static double x_of(const struct canvas *c, uint64_t ms)
{
    return LEFT + (double)(RIGHT - LEFT) * (double)ms / (double)c->chart->span_ms;
}

static double y_of(const struct canvas *c, int panel_top, double per_s)
{
    return panel_top + PANEL_HEIGHT * (1.0 - per_s / (double)c->top);
}

static double rate_at(const struct canvas *c, const struct hk_herd *load, uint64_t from_ms)
{
    return (double)hk_herd_between(load, from_ms, from_ms + c->bin_ms) * 1000.0 / (double)c->bin_ms;
}

/* All bars as one outline; empty stretches are left out. */
static void draw_bars(const struct canvas *c, const struct hk_herd *load, int top, const char *class_name)
{
    (void)hk_buf_addf(c->out, "<path class=\"%s\" d=\"", class_name);
    for (uint64_t ms = 0; ms < c->chart->span_ms; ms += c->bin_ms) {
        double per_s = rate_at(c, load, ms);
        uint64_t end_ms = ms + c->bin_ms < c->chart->span_ms ? ms + c->bin_ms : c->chart->span_ms;
        double y = per_s < (double)c->top ? y_of(c, top, per_s) : top;
        double floor_y = top + PANEL_HEIGHT;
        if (per_s <= 0)
            continue;
        if (floor_y - y < 1.0)
            y = floor_y - 1.0; /* what is there is seen */
        (void)hk_buf_addf(c->out, "M%.1f %.1fV%.1fH%.1fV%.1fZ", x_of(c, ms), floor_y, y, x_of(c, end_ms),
                          floor_y);
    }
    (void)hk_buf_adds(c->out, "\"/>\n");
}

static void draw_grid(const struct canvas *c, int top)
{
    char text[HK_SHOW_NUMBER];

    for (unsigned i = 0; i <= 2; i++) {
        double y = y_of(c, top, (double)c->top * i / 2);
        (void)hk_buf_addf(c->out, "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                          i == 0 ? "axis" : "grid", LEFT, y, RIGHT, y);
        if (i == 1 && c->top % 2 != 0)
            continue;
        (void)hk_buf_addf(c->out, "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                          LEFT - 10, y + 4, hk_show_count(c->top * i / 2, text));
    }
    (void)hk_buf_addf(c->out,
                      "<text class=\"soft\" transform=\"translate(20 %d) rotate(-90)\" "
                      "text-anchor=\"middle\">attempts per second</text>\n",
                      top + PANEL_HEIGHT / 2);
}

static void draw_outage(const struct canvas *c, int top)
{
    double width = x_of(c, c->chart->options->outage_ms) - LEFT;

    (void)hk_buf_addf(c->out, "<rect class=\"down\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", LEFT,
                      top, width, PANEL_HEIGHT);
    if (width > 40)
        (void)hk_buf_addf(c->out,
                          "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                          LEFT + width / 2, top - 10, width > 120 ? "destination down" : "down");
}

/* Beside the panel, where no bar can be. */
static void draw_capacity(const struct canvas *c, int top)
{
    double capacity = c->chart->options->capacity_per_s;
    double y = y_of(c, top, capacity);
    char text[HK_SHOW_NUMBER];

    if (capacity > (double)c->top)
        return;
    (void)hk_buf_addf(c->out, "<line class=\"capacity\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                      x_of(c, c->chart->options->outage_ms), y, RIGHT + 4, y);
    (void)hk_buf_addf(
        c->out,
        "<text class=\"soft\" x=\"%d\" y=\"%.1f\">capacity<tspan x=\"%d\" dy=\"15\">%s/s</tspan></text>\n",
        RIGHT + 8, y - 4, RIGHT + 8, hk_show_rate(capacity, text));
}

/* When half, 99 % and all of the clients were served; their labels stand above the panel, apart from each other. */
static void draw_marks(const struct canvas *c, const struct hk_herd *load, int top)
{
    const struct {
        const char *label;
        uint64_t ms;
    } marks[] = {{"50 %", load->half_ms}, {"99 %", load->most_ms}, {"all", load->all_ms}};

    double free_x = 0;

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        uint64_t outage_ms = c->chart->options->outage_ms;
        if (marks[i].ms == UINT64_MAX || outage_ms + marks[i].ms > c->chart->span_ms)
            continue;
        double x = x_of(c, outage_ms + marks[i].ms);
        double text_x = x > free_x ? x : free_x;
        if (text_x > RIGHT - 10)
            text_x = RIGHT - 10;
        (void)hk_buf_addf(c->out, "<path class=\"mark\" d=\"M%.1f %dV%d\" fill=\"none\"/>\n", x, top - 4,
                          top + PANEL_HEIGHT);
        (void)hk_buf_addf(c->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", text_x,
                          top - 10, marks[i].label);
        free_x = text_x + MARK_GAP;
    }
}

static void add_served(struct hk_buf *out, const char *share, uint64_t ms)
{
    char text[HK_SHOW_NUMBER];

    if (ms == UINT64_MAX)
        (void)hk_buf_addf(out, " · %s never", share);
    else
        (void)hk_buf_addf(out, " · %s after %s", share, hk_show_duration(ms, text));
}

static void draw_caption(const struct canvas *c, unsigned series, int top)
{
    const struct hk_herd *load = c->chart->series[series];
    char peak[HK_SHOW_NUMBER], attempts[HK_SHOW_NUMBER];

    (void)hk_buf_addf(c->out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" rx=\"2\"/>\n",
                      series == HK_CHART_POLICY ? "policy" : "baseline", LEFT, top - 66);
    (void)hk_buf_addf(c->out, "<text class=\"name\" x=\"%d\" y=\"%d\">", LEFT + 20, top - 55);
    add_escaped(c->out, c->chart->policy);
    if (series == HK_CHART_BASELINE) {
        (void)hk_buf_addc(c->out, ' ');
        add_escaped(c->out, c->chart->other);
    }
    (void)hk_buf_adds(c->out, "</text>\n");
    (void)hk_buf_addf(
        c->out,
        "<text class=\"soft\" x=\"%d\" y=\"%d\">%s attempts · peak after recovery %s/s · served: ", LEFT,
        top - 36, hk_show_count(load->attempts, attempts), hk_show_count(load->peak_up, peak));
    char half[HK_SHOW_NUMBER];
    if (load->half_ms == UINT64_MAX)
        (void)hk_buf_adds(c->out, "50 % never");
    else
        (void)hk_buf_addf(c->out, "50 %% after %s", hk_show_duration(load->half_ms, half));
    add_served(c->out, "99 %", load->most_ms);
    add_served(c->out, "all", load->all_ms);
    if (load->dead > 0)
        (void)hk_buf_addf(c->out, " · %s dead letters", hk_show_count(load->dead, peak));
    (void)hk_buf_adds(c->out, "</text>\n");
}

/* What the picture leaves out: the tops of bars that do not fit, and the time behind the axis. */
static void draw_rest(const struct canvas *c, const struct hk_herd *load, int top)
{
    double most = 0;
    char text[HK_SHOW_NUMBER];

    for (uint64_t ms = 0; ms < c->chart->span_ms; ms += c->bin_ms)
        most = rate_at(c, load, ms) > most ? rate_at(c, load, ms) : most;
    (void)hk_buf_addf(c->out, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", RIGHT, top - 55);
    if (most > (double)c->top)
        (void)hk_buf_addf(c->out, "↑ cut off, up to %s/s", hk_show_rate(most, text));
    if (load->last_ms > c->chart->span_ms)
        (void)hk_buf_addf(c->out, "%sgoes on until %s →", most > (double)c->top ? " · " : "",
                          hk_show_duration(load->last_ms, text));
    (void)hk_buf_adds(c->out, "</text>\n");
}

static void draw_time_axis(const struct canvas *c)
{
    uint64_t tick_ms = hk_chart_tick_ms(c->chart->span_ms / 10);
    int y = PANEL_TOP + PANEL_STEP + PANEL_HEIGHT;
    char text[HK_SHOW_NUMBER];

    for (uint64_t ms = 0; ms <= c->chart->span_ms; ms += tick_ms)
        (void)hk_buf_addf(c->out,
                          "<path class=\"axis\" d=\"M%.1f %dv5\"/><text class=\"soft\" x=\"%.1f\" y=\"%d\" "
                          "text-anchor=\"middle\">%s</text>\n",
                          x_of(c, ms), y, x_of(c, ms), y + 20, hk_show_duration(ms, text));
    (void)hk_buf_addf(
        c->out,
        "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">time since the destination went "
        "down (bars of %s)</text>\n",
        (LEFT + RIGHT) / 2, y + 46, hk_show_duration(c->bin_ms, text));
}

static void draw_head(const struct canvas *c)
{
    const struct hk_herd_options *o = c->chart->options;
    char clients[HK_SHOW_NUMBER], outage[HK_SHOW_NUMBER], rate[HK_SHOW_NUMBER];

    (void)hk_buf_addf(
        c->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
        "role=\"img\">\n<title>Load on a destination after an outage, policy ",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    add_escaped(c->out, c->chart->policy);
    (void)hk_buf_addf(c->out, "</title>\n%s<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", style, WIDTH,
                      HEIGHT);
    (void)hk_buf_addf(
        c->out, "<text class=\"title\" x=\"%d\" y=\"38\">After an outage: who comes back when?</text>\n",
        LEFT);
    (void)hk_buf_addf(
        c->out,
        "<text class=\"soft\" x=\"%d\" y=\"62\">%s clients, one request each; down for %s, then it "
        "serves %s a second and answers 503 to the rest</text>\n",
        LEFT, hk_show_count(o->clients, clients), hk_show_duration(o->outage_ms, outage),
        hk_show_rate(o->capacity_per_s, rate));
}

/* Peaks are told per second, so bars are no finer where seconds can still be told apart. */
static uint64_t bin_of(uint64_t span_ms)
{
    uint64_t bin_ms = hk_chart_bar_ms(span_ms / 400);
    return bin_ms < 1000 && span_ms >= 60000 ? 1000 : bin_ms;
}

void hk_chart_svg(const struct hk_chart *chart, struct hk_buf *out)
{
    static const char *const classes[HK_CHART_SERIES] = {"policy", "baseline"};
    struct canvas c = {.chart = chart, .out = out, .bin_ms = bin_of(chart->span_ms)};

    uint64_t per_bin = hk_chart_scale(chart, c.bin_ms);
    c.top = hk_chart_nice_count((per_bin * 1000 + c.bin_ms - 1) / c.bin_ms);
    draw_head(&c);
    for (unsigned s = 0; s < HK_CHART_SERIES; s++) {
        int top = PANEL_TOP + (int)s * PANEL_STEP;
        draw_caption(&c, s, top);
        draw_grid(&c, top);
        draw_outage(&c, top);
        draw_bars(&c, chart->series[s], top, classes[s]);
        draw_capacity(&c, top);
        draw_marks(&c, chart->series[s], top);
        draw_rest(&c, chart->series[s], top);
    }
    draw_time_axis(&c);
    (void)hk_buf_adds(out, "</svg>\n");
}
