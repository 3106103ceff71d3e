/* SPDX-License-Identifier: Apache-2.0 */
/* The differences between two configurations, key by key along the option tables, so that a reload can report which settings it
 * changed and which need a restart. It never reports values, because some are secrets. */
#ifndef HK_CONFIG_DIFF_H
#define HK_CONFIG_DIFF_H

#include <stdbool.h>

#include "config/config.h"

enum hk_diff_kind {
    HK_DIFF_CHANGED = 0,
    HK_DIFF_ADDED, /* an item of a map: a destination, a policy, a header */
    HK_DIFF_REMOVED
};

/* `path` is "destinations.billing.http.url", valid during the call; one that is too long is cut. */
typedef void hk_diff_fn(void *arg, enum hk_diff_kind kind, const char *path, bool needs_restart);

/* Calls `fn` for each difference, in the order of the tables. A list is one value: any change in it is told once. */
void hk_config_diff(const struct hk_config *before, const struct hk_config *after, hk_diff_fn *fn, void *arg);

#endif
