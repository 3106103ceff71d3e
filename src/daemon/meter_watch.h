/* SPDX-License-Identifier: Apache-2.0 */
/* What the relay does, as metrics: looks on (relay/watch.h) and counts. All of it on the loop's thread. */
#ifndef HK_DAEMON_METER_WATCH_H
#define HK_DAEMON_METER_WATCH_H

#include "daemon/meters.h"
#include "daemon/part.h"
#include "observe/health.h"

struct hk_meter_watch;

/* `metrics` and `health`, which it feeds as well, outlive it; so does `env`, whose relay and configuration it looks at in its own calls only. */
enum hk_code hk_meter_watch_new(const struct hk_part_env *env, struct hk_metrics *metrics,
                                struct hk_health *health, struct hk_meter_watch **out_watch,
                                struct hk_err *err) HK_MUSTCHECK;
void hk_meter_watch_free(struct hk_meter_watch *watch);
/* Sets what it wants to see. */
void hk_meter_watch_look(struct hk_meter_watch *watch, struct hk_onlooker *out);
/* The configuration is another one. */
void hk_meter_watch_reloaded(struct hk_meter_watch *watch);
/* Now and then: what is not told but asked for. */
void hk_meter_watch_tick(struct hk_meter_watch *watch);

#endif
