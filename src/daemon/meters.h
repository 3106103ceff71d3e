/* SPDX-License-Identifier: Apache-2.0 */
/* Every metric that the process shows, by name: the table behind docs/metrics.md. */
#ifndef HK_DAEMON_METERS_H
#define HK_DAEMON_METERS_H

#include "observe/metrics.h"

enum hk_meter {
    HK_METER_INSERT_TO_ACK = 0, /* destination; ms */
    HK_METER_ATTEMPTS,          /* destination, enum hk_class */
    HK_METER_ATTEMPT_DURATION,  /* destination; us */
    HK_METER_MAYBE_DELIVERED,   /* destination */
    HK_METER_SENT,              /* destination */
    HK_METER_RETRIES,           /* destination */
    HK_METER_DEAD,              /* destination, hk_meter_reason */
    HK_METER_SEEN,              /* destination */
    HK_METER_CLAIMED,
    HK_METER_SETTLES, /* enum hk_settle_kind */
    HK_METER_STALE,
    HK_METER_STUCK,
    HK_METER_LANE_EVENTS, /* enum hk_lane_event */
    HK_METER_POLLS,       /* 0 = nothing new, 1 = something */
    HK_METER_SCANS,
    HK_METER_EXCHANGES,
    HK_METER_SWEPT,
    HK_METER_STORE_DURATION, /* hk_meter_call; us */
    HK_METER_STORE_ERRORS,   /* hk_meter_call, hk_meter_code */
    HK_METER_IN_FLIGHT,
    HK_METER_CONCURRENCY,
    HK_METER_DEST_IN_FLIGHT,   /* destination */
    HK_METER_DEST_CONCURRENCY, /* destination */
    HK_METER_DEST_PAUSED,      /* destination */
    HK_METER_BREAKER,          /* destination, enum hk_breaker_state */
    HK_METER_LANE_HELD,
    HK_METER_STORE_UP,
    HK_METER_STORE_AGE, /* ms */
    HK_METER_LOOP_AGE,  /* ms */
    HK_METER_READY,
    HK_METER_DRAINING,
    HK_METER_RELOADS,
    HK_METER_QUEUE,           /* enum hk_meter_state */
    HK_METER_QUEUE_ESTIMATED, /* enum hk_meter_state */
    HK_METER_DEST_QUEUE,      /* destination, enum hk_meter_dest_state */
    HK_METER_QUEUE_ATTEMPTS,  /* a place of hk_store_status.attempts */
    HK_METER_OLDEST_DUE,      /* ms */
    HK_METER_OLDEST,          /* ms */
    HK_METER_RELAYS,
    HK_METER_FIGURES_AGE, /* ms */
    HK_METER_FIGURES_ERRORS,
    HK_METER_LOG_DROPPED,
    HK_METER_ALERTS_FIRING,
    HK_METER_ALERT_LOOKS, /* 0 = ok, 1 = failed */
    HK_METER_NOTICES,     /* enum hk_meter_notice */
    HK_METER_SPANS,       /* enum hk_meter_span */
    HK_METER_PUSHES,      /* enum hk_meter_push */
    HK_METER_EVENT_LISTENERS,
    HK_METER_EVENT_LOOKS,
    HK_METER_EVENTS,
    HK_METER_EVENT_CUT,
    HK_METER_BUILD,
    HK_METER_RELAY,
    HK_METER_START_TIME, /* ms */
    HK_METER_UPTIME,     /* ms */
    HK_NMETERS
};

enum hk_meter_state {
    HK_METER_DUE = 0,
    HK_METER_RETRYING,
    HK_METER_SCHEDULED,
    HK_METER_PROCESSING,
    HK_METER_DEAD_OPEN,
    HK_METER_SENT_KEPT,
    HK_METER_CANCELLED,
    HK_METER_NSTATES
};

enum hk_meter_dest_state {
    HK_METER_DEST_PENDING = 0,
    HK_METER_DEST_RETRYING,
    HK_METER_DEST_PROCESSING,
    HK_METER_DEST_DEAD,
    HK_METER_NDEST_STATES
};

enum hk_meter_notice {
    HK_METER_NOTICE_SENT = 0,
    HK_METER_NOTICE_FAILED,
    HK_METER_NOTICE_GIVEN_UP
};

enum hk_meter_span {
    HK_METER_SPAN_SENT = 0,
    HK_METER_SPAN_FAILED,
    HK_METER_SPAN_DROPPED
};

enum hk_meter_push {
    HK_METER_PUSH_SENT = 0,
    HK_METER_PUSH_FAILED
};

extern const struct hk_metric_def hk_meters[HK_NMETERS];

/* Which value of the label `reason` a reason code has: every code that a relay gives its own, statuses by their hundred, all
 * else the last one, "other". */
size_t hk_meter_reason(struct hk_str code);
size_t hk_meter_code(enum hk_code code); /* of the label `code` */

#endif
