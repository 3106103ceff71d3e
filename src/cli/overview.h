/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that `status` and `top` show of a store at once: its figures, those of the relays, what waits behind the head of
 * its key, all of it by destination. */
#ifndef HK_CLI_OVERVIEW_H
#define HK_CLI_OVERVIEW_H

#include "cli/operate.h"

/* One destination, whoever knows of it: the store, a relay, or (with `all`) the configuration. */
struct hk_overview_dest {
    struct hk_str name; /* "" = by route, not known yet */
    struct hk_dest_status backlog;
    struct hk_figures_sum lately;
    bool ordered; /* by key: then `blocked` counts */
    struct hk_count blocked;
};

struct hk_overview {
    const struct hk_store_status *status;
    struct hk_err no_figures; /* code HK_OK, or why relays' figures cannot be read: a right may be missing */
    bool blocked_known;       /* the configuration says which destinations keep an order */
    struct hk_count blocked;
    struct hk_overview_dest *dests; /* by name */
    size_t n_dests;
};

/* Texts belong to the handle, and are valid until its next call. */
enum hk_code hk_overview_take(const struct hk_operate *op, bool exact, bool all, struct hk_overview *out,
                              struct hk_err *err);
void hk_overview_free(struct hk_overview *overview);

/* "closed", "open", "half_open" */
const char *hk_overview_breaker(const struct hk_overview_dest *dest, int64_t now_ms);
/* Attempts that went well, of all in the window; a negative one: there were none. */
double hk_overview_ratio(const struct hk_figures_sum *lately);

#endif
