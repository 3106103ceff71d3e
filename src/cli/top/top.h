/* SPDX-License-Identifier: Apache-2.0 */
/* What `hikyaku top` shows: asked of the desk now and then, kept by value, drawn as lines. Whatever comes from rows is made
 * safe when it is drawn (cli/table.h). */
#ifndef HK_CLI_TOP_TOP_H
#define HK_CLI_TOP_TOP_H

#include "cli/ask.h"
#include "desk/status.h"

enum {
    HK_TOP_TEXT = 256,
    HK_TOP_SPARK = 40,
    HK_TOP_FAILURES = 20,
    HK_TOP_DESTS = 1000
};

enum hk_top_sort {
    HK_TOP_BY_NAME = 0,
    HK_TOP_BY_BACKLOG,
    HK_TOP_BY_DEAD,
    HK_TOP_BY_RATE,
    HK_TOP_BY_LATENCY,
    HK_TOP_NSORTS
};

struct hk_top_dest {
    char name[HK_TOP_TEXT];
    struct hk_count pending, retrying, dead, blocked;
    uint64_t processing, p50_ms, p95_ms, p99_ms;
    bool known, paused, half_open, limited;
    double in_per_s, out_per_s, ratio; /* a negative one: no attempts */
    char actor[HK_TOP_TEXT], reason[HK_TOP_TEXT], error[HK_TOP_TEXT];
    int64_t since_ms, open_until_ms, ready_at_ms, error_ms;
    float out[HK_TOP_SPARK]; /* the newest last */
};

/* A dead letter, or the last error of a destination (letter 0). */
struct hk_top_failure {
    int64_t at_ms, letter;
    char destination[HK_TOP_TEXT], text[HK_TOP_TEXT], message_id[HK_TOP_TEXT];
};

struct hk_top {
    char place[HK_STORE_PLACE_MAX];
    uint64_t interval_ms;
    bool taken;                /* there is something to show */
    char trouble[HK_TOP_TEXT]; /* "" = the store answered the last time */
    int64_t now_ms;            /* the store's time of what is shown */
    struct hk_count due, retrying, scheduled, dead, blocked;
    bool blocked_known;
    uint64_t processing;
    int64_t oldest_due_ms, oldest_ms;
    char relay[HK_TOP_TEXT];
    bool relay_running;
    uint32_t relays_running;
    struct hk_top_dest *dests; /* all, as they are shown: sorted */
    size_t n_dests;
    struct hk_top_failure failures[HK_TOP_FAILURES * 2];
    size_t n_failures;
    float in[HK_TOP_SPARK], out[HK_TOP_SPARK];
    /* what the person chose */
    enum hk_top_sort sort;
    char filter[HK_TOP_TEXT];
    bool in_failures; /* the lower list has the mark */
    size_t marked[2]; /* in the list of destinations that the filter leaves, in the list of failures */
};

/* Asks the desk; on failure `trouble` says why, and what was there stays. */
enum hk_code hk_top_take(struct hk_top *top, struct hk_desk *desk, struct hk_err *err);
/* A copy, cut to what fits at the end of a character. */
void hk_top_keep(char out[HK_TOP_TEXT], struct hk_str s);
void hk_top_fini(struct hk_top *top);
void hk_top_resort(struct hk_top *top);
/* The `i`th that the filter leaves; NULL past the last. */
const struct hk_top_dest *hk_top_dest(const struct hk_top *top, size_t i);
size_t hk_top_shown(const struct hk_top *top); /* how many the filter leaves */

/* One screen, a call for each line from the top (NULL: there was no memory for it). `width` and `rows`: of the screen; `bottom`: what stands in the last line. */
typedef void hk_top_line_fn(void *arg, unsigned row, const char *text, unsigned attributes);
void hk_top_draw(struct hk_top *top, unsigned rows, unsigned width, const char *bottom, hk_top_line_fn *line,
                 void *arg);

#endif
