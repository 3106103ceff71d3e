/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which destinations have their own value in the label `destination`, and which count as "other". There are HK_METRIC_DESTS
 * such values, however many destinations there are:
 *
 *   - the configuration's come first
 *   - those of the store take what is left, in the order of their names
 *   - when nothing is left, one that sends takes the value of one of the store's at which nothing was sent for HK_METER_IDLE_MS: the
 *     longest idle first, which loses its series
 *
 * From the loop's thread alone. */
#ifndef HK_DAEMON_METER_NAMES_H
#define HK_DAEMON_METER_NAMES_H

#include "config/config.h"
#include "observe/metrics.h"
#include "relay/kept.h"

#define HK_METER_IDLE_MS (INT64_C(10) * 60 * 1000)

struct hk_meter_name {
    char name[HK_NAME_MAX]; /* "" = free */
    size_t place;           /* the engine's; SIZE_MAX = not known */
    bool of_file;
    int64_t used_ms; /* the last attempt; 0 = none yet */
};

struct hk_meter_names {
    struct hk_metrics *m;
    struct hk_meter_name names[HK_METRIC_DESTS]; /* by the index of hk_metrics_dest */
    uint64_t changes;                            /* of hk_kept_changes, as of the last look */
    bool looked;
    int64_t full_until_ms; /* nobody can give way before */
};

void hk_meter_names_init(struct hk_meter_names *names, struct hk_metrics *metrics);
/* A configuration begins. */
void hk_meter_names_configure(struct hk_meter_names *names, const struct hk_config *config);
/* Now and then: destinations of the store come and go. */
void hk_meter_names_look(struct hk_meter_names *names, const struct hk_kept *kept);
/* An attempt at a destination that the engine has at `place`. Its index. */
size_t hk_meter_names_use(struct hk_meter_names *names, struct hk_str name, size_t place, int64_t now_ms);

#endif
