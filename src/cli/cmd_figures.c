/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku figures */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/figures.h"

enum {
    BARS = 40,
    HEIGHTS = 8
};

static uint64_t sum_of(const struct hk_line *line, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < line->n; i++)
        sum += *(const uint64_t *)(const void *)((const char *)&line->points[i] + offset);
    return sum;
}

static uint64_t most_of(const struct hk_line *line, size_t offset)
{
    uint64_t most = UINT64_MAX;
    for (size_t i = 0; i < line->n; i++) {
        uint64_t value = *(const uint64_t *)(const void *)((const char *)&line->points[i] + offset);
        if (value != UINT64_MAX && (most == UINT64_MAX || value > most))
            most = value;
    }
    return most;
}

/* The last that is known. */
static uint64_t last_of(const struct hk_line *line, size_t offset)
{
    for (size_t i = line->n; i > 0; i--) {
        uint64_t value = *(const uint64_t *)(const void *)((const char *)&line->points[i - 1] + offset);
        if (value != UINT64_MAX)
            return value;
    }
    return UINT64_MAX;
}

/* Attempts that went well, in up to BARS bars, the highest of them at full height. */
static void write_bars(const struct hk_line *line, char *out, size_t room)
{
    static const char *const fine[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ".", ":", ":", "-", "=", "+", "#"};
    uint64_t bars[BARS] = {0}, most = 0;
    size_t n = line->n < BARS ? line->n : BARS, used = 0;
    for (size_t i = 0; i < line->n; i++)
        bars[i * n / line->n] += line->points[i].sent;
    for (size_t i = 0; i < n; i++)
        most = bars[i] > most ? bars[i] : most;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        uint64_t height = most > 0 ? (bars[i] * HEIGHTS + most - 1) / most : 0;
        int more = snprintf(out + used, room - used, "%s", (hk_out_utf8() ? fine : plain)[height]);
        used += more > 0 ? (size_t)more : 0;
    }
}

static void add_number(struct hk_table *table, uint64_t value)
{
    char text[HK_SHOW_NUMBER];
    hk_table_adds(table, value == UINT64_MAX ? "-" : hk_show_count(value, text));
}

static void add_duration(struct hk_table *table, uint64_t ms)
{
    char text[HK_SHOW_NUMBER];
    hk_table_adds(table, ms == UINT64_MAX ? "-" : hk_show_duration(ms, text));
}

static void write_lines(struct hk_buf *out, const struct hk_figures_found *found)
{
    static const struct hk_table_column columns[] = {
        {.title = "DESTINATION", .max_width = 30}, {.title = "SENT", .right = true},
        {.title = "FAILED", .right = true},        {.title = "RETRIED", .right = true},
        {.title = "DEAD", .right = true},          {.title = "P50", .right = true},
        {.title = "P95", .right = true},           {.title = "WAITING", .right = true},
        {.title = "OPEN", .right = true},          {.title = "SENT OVER TIME"}};
    struct hk_table table;
    char bars[BARS * 4];
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < found->n; i++) {
        const struct hk_line *line = &found->items[i];
        hk_table_add(&table, line->destination.len > 0 ? line->destination : hk_str_of("(all)"));
        add_number(&table, sum_of(line, offsetof(struct hk_point, sent)));
        add_number(&table, sum_of(line, offsetof(struct hk_point, failed)));
        add_number(&table, sum_of(line, offsetof(struct hk_point, retried)));
        add_number(&table, sum_of(line, offsetof(struct hk_point, dead)));
        add_duration(&table, most_of(line, offsetof(struct hk_point, p50_ms)));
        add_duration(&table, most_of(line, offsetof(struct hk_point, p95_ms)));
        add_number(&table, last_of(line, offsetof(struct hk_point, waiting)));
        add_number(&table, last_of(line, offsetof(struct hk_point, dead_open)));
        write_bars(line, bars, sizeof bars);
        hk_table_adds(&table, bars);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void print_figures(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_figures_found *found = result;
    char since[HK_TIME_TEXT_MAX], until[HK_TIME_TEXT_MAX], step[HK_SHOW_NUMBER];
    (void)ask;
    (void)hk_format_rfc3339(found->since_ms, since);
    (void)hk_format_rfc3339(found->until_ms, until);
    (void)hk_buf_addf(out, "%s to %s, in steps of %s\n", since, until,
                      hk_show_duration(found->step_ms, step));
    write_lines(out, found);
    if (found->more)
        (void)hk_buf_adds(out, "there are more destinations: --limit N, or --destination NAME\n");
}

int hk_cmd_figures(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_figures);
}
