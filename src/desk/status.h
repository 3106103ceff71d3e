/* SPDX-License-Identifier: Apache-2.0 */
/* How things stand: what waits, what fails, who relays; all of it by destination. */
#ifndef HK_DESK_STATUS_H
#define HK_DESK_STATUS_H

#include "desk/desk.h"

/* ---- status ---- */

struct hk_status_ask {
    bool exact;            /* count everything, however long that takes */
    bool all_destinations; /* those of the configuration too that nobody has a word about */
};

/* One destination, whoever knows of it: the store, a relay, or (with `all_destinations`) the configuration. */
struct hk_status_dest {
    struct hk_str name; /* "" = by route, not known yet */
    struct hk_dest_status backlog;
    struct hk_figures_sum lately;
    bool ordered; /* by key: then `blocked` counts */
    struct hk_count blocked;
};

struct hk_status {
    struct hk_store_status store;
    struct hk_count retrying; /* messages that failed, due or not */
    struct hk_err no_figures; /* code HK_OK, or why relays' figures cannot be read: a right may be missing */
    bool blocked_known;       /* the configuration says which destinations keep an order */
    struct hk_count blocked;
    struct hk_status_dest *dests; /* by name */
    size_t n_dests;
};

extern const struct hk_op hk_op_status;
extern const char *const hk_status_buckets[HK_ATTEMPT_BUCKETS]; /* "0" … "20+" */

/* "closed", "open", "half_open" */
const char *hk_status_breaker(const struct hk_status_dest *dest, int64_t now_ms);
/* Attempts that went well, of all in the window; a negative one: there were none. */
double hk_status_ratio(const struct hk_figures_sum *lately);

/* ---- relays ---- */

extern const struct hk_op hk_op_relays_list; /* the result is a struct hk_relays */

#endif
