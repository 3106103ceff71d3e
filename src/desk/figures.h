/* SPDX-License-Identifier: Apache-2.0 */
/* Figures over time: the counts of relays, and the number of messages in the store. */
#ifndef HK_DESK_FIGURES_H
#define HK_DESK_FIGURES_H

#include "desk/desk.h"

#define HK_FIGURES_POINTS_MAX 1500
#define HK_FIGURES_ITEMS_MAX  100

struct hk_figures_ask {
    const char *since, *until; /* RFC 3339; NULL: `for_ms` before `until`; now */
    uint64_t for_ms;           /* 0: not given */
    const char *step;          /* "1m", "5m", "1h", "1d"; NULL: chosen by the length of the interval */
    const char *destination;   /* NULL: all together, and each */
    uint64_t limit;            /* destinations */
};

/* UINT64_MAX: not known. */
struct hk_point {
    int64_t at_ms; /* when the interval begins */
    uint64_t seen, sent, failed, retried, dead;
    uint64_t p50_ms, p95_ms;
    uint64_t waiting, in_flight, dead_open, oldest_ms;
};

struct hk_line {
    struct hk_str destination; /* "" = all */
    struct hk_point *points;
    size_t n;
};

struct hk_figures_found {
    int64_t now_ms, since_ms, until_ms;
    uint64_t step_ms;
    struct hk_line *items; /* all together first; then those with the most traffic */
    size_t n;
    bool more; /* there are other destinations */
};

extern const struct hk_op hk_op_figures;

#endif
