/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile names of destinations and hostile values of labels, with zero bytes between: the page stays one that Prometheus' text format allows,
 * every line of it, and each destination is found under its own name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "observe/metrics.h"

enum {
    NAMES = 12
};

static const uint64_t bounds[] = {10, 1000};
static const char *const kinds[] = {"good", "bad", NULL};
static const struct hk_metric_def defs[] = {
    {.name = "t_sent_total", .help = "h", .type = HK_METRIC_COUNTER, .labels = {{.name = "destination"}}},
    {.name = "t_age_seconds",
     .help = "h",
     .type = HK_METRIC_GAUGE,
     .decimals = 3,
     .labels = {{.name = "destination"}, {.name = "kind", .values = kinds}}},
    {.name = "t_took_seconds",
     .help = "h",
     .type = HK_METRIC_HISTOGRAM,
     .decimals = 6,
     .labels = {{.name = "destination"}},
     .bounds = bounds,
     .n_bounds = 2},
    {.name = "t_info", .help = "h", .type = HK_METRIC_GAUGE},
};

static bool take(struct hk_str *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static size_t take_name(struct hk_str *s)
{
    size_t n = 0;
    while (n < s->len && (hk_ascii_isalpha(s->ptr[n]) || hk_ascii_isdigit(s->ptr[n]) || s->ptr[n] == '_'))
        n++;
    s->ptr += n;
    s->len -= n;
    return n;
}

/* Up to the quote that is not escaped; only \\, \" and \n are escapes. */
static void take_value(struct hk_str *s)
{
    MUST(take(s, '"'));
    while (!take(s, '"')) {
        uint32_t c;
        if (take(s, '\\'))
            MUST(s->len > 0 && strchr("\\\"n", s->ptr[0]) != NULL);
        size_t n = hk_utf8_next(*s, &c);
        MUST(n > 0 && c != HK_UTF8_BAD && c != '\n');
        s->ptr += n;
        s->len -= n;
    }
}

static void check_sample(struct hk_str line)
{
    MUST(take_name(&line) > 0);
    if (take(&line, '{')) {
        do {
            MUST(take_name(&line) > 0 && take(&line, '='));
            take_value(&line);
        } while (take(&line, ','));
        MUST(take(&line, '}'));
    }
    MUST(take(&line, ' ') && line.len > 0);
    for (size_t i = 0; i < line.len; i++)
        MUST(hk_ascii_isdigit(line.ptr[i]) || strchr("+-.eE", line.ptr[i]) != NULL ||
             hk_str_eq(line, hk_str_of("+Inf")) || hk_str_eq(line, hk_str_of("NaN")));
}

static void check_page(struct hk_str page)
{
    MUST(page.len > 0 && page.ptr[page.len - 1] == '\n');
    while (page.len > 0) {
        struct hk_str line = hk_str_cut(&page, '\n');
        if (hk_str_starts(line, hk_str_of("# HELP ")) || hk_str_starts(line, hk_str_of("# TYPE ")))
            continue;
        check_sample(line);
    }
}

static size_t read_names(const uint8_t *data, size_t size, char *text, const char **names)
{
    size_t n = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    names[n++] = text;
    for (size_t i = 0; i < size && n < NAMES; i++)
        if (text[i] == '\0')
            names[n++] = text + i + 1;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2048];
    const char *names[NAMES];
    struct hk_metrics *metrics = NULL;
    struct hk_buf page;
    if (size == 0 || size >= sizeof text)
        return 0;
    size_t n = read_names(data, size, text, names);
    MUST(hk_metrics_new(defs, sizeof defs / sizeof defs[0], &metrics, NULL) == HK_OK);
    MUST(hk_metrics_inform(metrics, 3, "version", names[n - 1]) == HK_OK);
    hk_metrics_set(metrics, 3, 0, 0, 1);
    hk_metrics_destinations(metrics, names, n - 1);
    for (size_t i = 0; i + 1 < n; i++) {
        size_t d = hk_metrics_dest(metrics, hk_str_of(names[i]));
        MUST(d <= HK_METRIC_OTHER && d == hk_metrics_find_dest(metrics, hk_str_of(names[i])));
        hk_metrics_add(metrics, 0, d, 0, data[0]);
        hk_metrics_set(metrics, 1, d, i % 2, (int64_t)data[size - 1] - 100);
        hk_metrics_observe(metrics, 2, d, (uint64_t)data[0] << (data[size - 1] % 50));
    }
    hk_buf_init(&page, (size_t)1 << 22);
    hk_metrics_write(metrics, &page);
    MUST(hk_buf_status(&page) == HK_OK);
    check_page(hk_buf_str(&page));
    hk_metrics_destinations(metrics, names + 1, n > 1 ? n - 2 : 0); /* a reload */
    hk_buf_reset(&page);
    hk_metrics_write(metrics, &page);
    check_page(hk_buf_str(&page));
    hk_buf_fini(&page);
    hk_metrics_free(metrics);
    return 0;
}
