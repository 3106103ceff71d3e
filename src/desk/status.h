/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a store: waiting and failed messages by destination, and the running relays. */
#ifndef HK_DESK_STATUS_H
#define HK_DESK_STATUS_H

#include "desk/desk.h"
#include "store/figures.h"

/* ---- status ---- */

struct hk_status_ask {
    bool exact;            /* count everything, however long that takes */
    bool all_destinations; /* those of the configuration too that nobody has a word about */
};

enum hk_status_breaker {
    HK_BREAKER_SEEN_CLOSED = 0,
    HK_BREAKER_SEEN_OPEN,
    HK_BREAKER_SEEN_HALF_OPEN,
    HK_BREAKER_NSEEN
};

/* Figures of a destination in the last minute, as relays measured them. */
struct hk_status_lately {
    double in_per_s, out_per_s;
    uint64_t sent, failed; /* attempts */
    uint64_t dead;
    double ratio;     /* of attempts that went well; a negative one: there were none */
    bool has_latency; /* then the following is filled */
    uint64_t p50_ms, p95_ms, p99_ms;
};

/* One destination, whoever knows of it: the store, a relay, or (with `all_destinations`) the configuration. */
struct hk_status_dest {
    struct hk_str name; /* "" = by route, not known yet */
    struct hk_dest_status backlog;
    bool known; /* a relay has reported about it lately */
    struct hk_status_lately lately;
    enum hk_status_breaker breaker;
    bool limited;        /* a limiter let nothing through when a relay looked last */
    int64_t ready_at_ms; /* then: until when */
    struct hk_str last_error;
    int64_t last_error_ms;
    struct hk_unusable unusable; /* relays that cannot use it */
    bool ordered;                /* by key: then `blocked` counts */
    struct hk_count blocked;
};

struct hk_status {
    struct hk_store_status store; /* except its destinations: `dests` has all of them */
    struct hk_count retrying;     /* messages that failed, due or not */
    struct hk_err no_figures; /* code HK_OK, or why relays' figures cannot be read: a right may be missing */
    bool blocked_known;       /* the configuration says which destinations keep an order */
    struct hk_count blocked;
    struct hk_status_dest *dests; /* by name */
    size_t n_dests;
};

extern const struct hk_op hk_op_status;
extern const char *const hk_status_buckets[HK_ATTEMPT_BUCKETS]; /* "0" … "20+" */

/* Does the store know the destination: does it have messages or dead letters there, or a pause or an open breaker? */
bool hk_status_has_backlog(const struct hk_status_dest *dest);

/* ---- relays ---- */

extern const struct hk_op hk_op_relays_list; /* the result is a struct hk_relays */

#endif
