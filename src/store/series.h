/* SPDX-License-Identifier: Apache-2.0 */
/* Figures over time: what relays counted in each minute and hour, and how much lay in the store then.
 *
 *   lane > 0                 what one run of a relay counted of a destination. "" = of destinations beyond HK_SERIES_DESTS
 *   lane HK_SERIES_LEVELS    what lay in the store for a destination, as one relay found it. "" = by route
 *   lane HK_SERIES_TOTAL     the same of all destinations; its name is ""
 *
 * Rows of an hour hold the sums of its minutes so far, or the largest level. They are written anew each minute, so that writing one
 * twice does no harm. */
#ifndef HK_STORE_SERIES_H
#define HK_STORE_SERIES_H

#include "base/str.h"

#define HK_SERIES_MINUTE_MS      ((int64_t)60 * 1000)
#define HK_SERIES_HOUR_MS        ((int64_t)60 * 60 * 1000)
#define HK_SERIES_KEEP_MINUTE_MS ((uint64_t)48 * 60 * 60 * 1000)      /* the SQL of PostgreSQL has it, too */
#define HK_SERIES_KEEP_HOUR_MS   ((uint64_t)90 * 24 * 60 * 60 * 1000) /* the same */
#define HK_SERIES_DESTS          200  /* with rows of their own, of one relay in one hour */
#define HK_SERIES_PAGE           5000 /* rows of one call */
#define HK_SERIES_LATENCY_MAX    8192 /* bytes of a histogram as text */

enum {
    HK_SERIES_TOTAL = -1,
    HK_SERIES_LEVELS = 0
};

struct hk_series_row {
    int64_t step_ms; /* HK_SERIES_MINUTE_MS or HK_SERIES_HOUR_MS */
    int64_t at_ms;   /* when the interval begins, by the store's clock */
    int64_t lane;
    struct hk_str destination;
    uint64_t seen, sent, failed, retried, dead;        /* counted; 0 in rows of levels */
    struct hk_str latency;                             /* of attempts: as base/histogram.h writes it */
    uint64_t waiting, in_flight, dead_open, oldest_ms; /* levels; oldest_ms is an age. 0 in rows of relays */
};

/* Which rows; by time, then lane, then destination. */
struct hk_series_ask {
    int64_t step_ms, since_ms, until_ms; /* since_ms <= at_ms < until_ms */
    const char *destination;             /* NULL = any */
    uint32_t limit;                      /* up to HK_SERIES_PAGE */
    /* go on behind this row */
    bool resume;
    int64_t after_at_ms, after_lane;
    struct hk_str after_destination;
};

struct hk_series {
    int64_t now_ms;
    struct hk_series_row *items;
    size_t n;
};

/* Destinations of such rows, those with the most attempts and letters first. */
struct hk_series_names {
    struct hk_str *items;
    size_t n;
};

#endif
