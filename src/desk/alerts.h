/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts at the desk: list them, mute a rule for a time, send a test notice to one channel. */
#ifndef HK_DESK_ALERTS_H
#define HK_DESK_ALERTS_H

#include "desk/desk.h"

struct hk_alert_mute_ask {
    const char *rule;
    const char *until; /* RFC 3339; or NULL, and */
    uint64_t for_ms;   /* so long from now */
};

struct hk_alert_unmute_ask {
    const char *rule;
};

struct hk_alert_muted {
    const char *rule;
    int64_t until_ms; /* 0: not muted any more */
    bool changed;
};

struct hk_alert_test_ask {
    const char *channel;
};

struct hk_alert_tested {
    const char *channel, *kind;
    struct hk_err failed; /* code HK_OK: the channel took it */
    uint64_t took_ms;
};

extern const struct hk_op hk_op_alerts_list; /* the result is a struct hk_alerts_list */
extern const struct hk_op hk_op_alerts_test, hk_op_alerts_mute, hk_op_alerts_unmute;

#endif
