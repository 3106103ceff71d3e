/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a simulated load: bars for the terminal, SVG for everywhere else. Pure: text into a buffer. */
#ifndef HK_CLI_POLICY_CHART_H
#define HK_CLI_POLICY_CHART_H

#include "base/buf.h"
#include "desk/herd.h"

enum {
    HK_CHART_POLICY = 0,
    HK_CHART_BASELINE,
    HK_CHART_SERIES
};

/* Both series share one time axis and one scale, so that they can be compared by eye. */
struct hk_chart {
    const char *policy; /* its name */
    const char *other;  /* how the second series differs: "without jitter" */
    const struct hk_herd_options *options;
    const struct hk_herd *series[HK_CHART_SERIES];
    uint64_t span_ms; /* the time that is drawn, from 0 */
};

/* The most attempts within `bin_ms` that a picture must show in full: from recovery on. What came before, above
 * all the first requests, may be cut off and must then be labelled. */
uint64_t hk_chart_scale(const struct hk_chart *chart, uint64_t bin_ms);

/* How much time a picture should show: until the policy's own clients are served, and the outage in view. */
uint64_t hk_chart_span_ms(const struct hk_herd_options *options, const struct hk_herd *policy);

struct hk_chart_look {
    unsigned width; /* columns */
    bool utf8;
    bool color;
};

void hk_chart_text(const struct hk_chart *chart, const struct hk_chart_look *look, struct hk_buf *out);
void hk_chart_svg(const struct hk_chart *chart, struct hk_buf *out);

/* Round times, at least `ms`: between two labels of an axis, and for the width of a bar. */
uint64_t hk_chart_tick_ms(uint64_t ms);
uint64_t hk_chart_bar_ms(uint64_t ms);
/* A round count, at least `n`: 1, 2, 5, 10, 20, 25, 50 … */
uint64_t hk_chart_nice_count(uint64_t n);

#endif
