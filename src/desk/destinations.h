/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations: list them with their waiting messages, pause and resume them, send a test message to one. */
#ifndef HK_DESK_DESTINATIONS_H
#define HK_DESK_DESTINATIONS_H

#include "desk/deliver.h"
#include "desk/desk.h"
#include "store/figures.h"

/* ---- list ---- */

struct hk_dest_row {
    struct hk_str name;          /* "" = by route, not known yet */
    bool configured;             /* else only messages name it, and there is nothing up to `state` */
    const char *from;            /* "file", "store"; NULL: nobody defines it */
    uint64_t version;            /* of the store's; 0: the file's */
    bool also_stored;            /* the file's, and the store has one of that name, too, which is not used */
    const char *problem;         /* why it cannot be used, as far as it can be seen from here; NULL: it can */
    struct hk_unusable unusable; /* what relays say of that */
    const char *kind, *policy;
    const char *url; /* its secrets hidden; NULL: it has none */
    const char *order;
    double rate_per_s;           /* a negative one: no limit */
    uint32_t concurrency;        /* 0: no limit */
    struct hk_dest_status state; /* nothing waits where the store has not seen it */
};

struct hk_dests {
    struct hk_dest_row *items; /* in the order of the configuration, then of the store */
    size_t n;
    int64_t now_ms;
};

/* ---- pause, resume ---- */

struct hk_dest_ask {
    const char *destination;
};

struct hk_dest_paused {
    const char *destination;
    bool paused;
    bool changed; /* it was not so before */
};

/* ---- test ---- */

struct hk_dest_test_ask {
    const char *destination;
    struct hk_str payload; /* ptr NULL: a test object */
};

struct hk_dest_tested {
    const char *destination, *kind;
    const char *url; /* its secrets hidden; NULL: it has none */
    const char *message_id;
    struct hk_delivered got;
};

extern const struct hk_op hk_op_destinations_list, hk_op_destinations_pause, hk_op_destinations_resume,
    hk_op_destinations_test;

#endif
