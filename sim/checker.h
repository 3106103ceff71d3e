/* SPDX-License-Identifier: Apache-2.0 */
/* Judges an event log, and a dump of the tables at its end, by the invariants I1 to I30 of docs/simulation.md.
 * Knows nothing of engine, store or simulator: only the log's format. */
#ifndef HK_SIM_CHECKER_H
#define HK_SIM_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct hk_check_options {
    int64_t slack_ms; /* how far the clocks of those who wrote the log may be apart */
    bool many_lanes;  /* several lanes may live at once (stores with shards) */
};

struct hk_check_result {
    size_t violations;
    size_t messages, sends, receipts, repeats, stale, orphans, busy;
};

/* Adds a line to `report` for each violation (the first 20). `dump` may be empty: then the tables are not looked at. */
void hk_check(struct hk_str log, struct hk_str dump, const struct hk_check_options *options,
              struct hk_buf *report, struct hk_check_result *out);

/* The same bit by bit, for who wants to know as it goes: `out` is up to date after each call. Whole lines only. */
struct checker;
struct checker *hk_checker_new(const struct hk_check_options *options, struct hk_buf *report,
                               struct hk_check_result *out);
void hk_checker_log(struct checker *c, struct hk_str lines);
void hk_checker_finish(struct checker *c, struct hk_str dump);
void hk_checker_free(struct checker *c); /* accepts NULL */

#endif
