/* SPDX-License-Identifier: Apache-2.0 */
/* Why a message has not gone out yet, or what has become of it, and what to do about it: the one place that says so. */
#ifndef HK_DESK_EXPLAIN_H
#define HK_DESK_EXPLAIN_H

#include "desk/desk.h"

/* ---- where a message goes ---- */

enum hk_where_kind {
    HK_WHERE_OPEN = 0, /* nobody here knows: this configuration has no destinations */
    HK_WHERE_ONE,
    HK_WHERE_SEVERAL,  /* one message for each, once a relay has looked at it */
    HK_WHERE_UNKNOWN,  /* no destination has that name: a relay makes it a dead letter */
    HK_WHERE_NO_ROUTE, /* it names none, and no route takes it: likewise */
    HK_WHERE_UNUSABLE  /* the store's definition cannot be used: the message waits */
};

struct hk_where {
    enum hk_where_kind kind;
    const struct hk_conf_destination *conf; /* HK_WHERE_ONE; else NULL */
    const char *why;                        /* HK_WHERE_UNUSABLE */
};

/* Finds the destination as the engine does: by name, or by the first route that takes the event type. The result points into `mem`. */
struct hk_where hk_where(struct hk_desk *desk, struct hk_str destination, struct hk_str event_type,
                         struct hk_pool *mem);

/* ---- messages explain ---- */

struct hk_explain_ask {
    const char *message_id;
    const char *destination; /* NULL: all of them */
};

/* Texts are safe to print. What does not apply is 0 or empty. */
struct hk_cause {
    const char *cause;    /* stable: "paused", "not_due" … as hikyaku-messages(1) lists them */
    const char *code;     /* stable, one for each sentence: "not_due_scheduled" */
    struct hk_str values; /* those in the sentence, by name, as JSON (base/named.h) */
    const char *text, *advice;
    int64_t since_ms, until_ms;
    struct hk_str by, reason; /* whoever did it, and why */
    struct hk_str message_id; /* the head of its key */
    int64_t letter_id;        /* of a dead head, or of the message itself */
};

#define HK_CAUSES_MAX 10

/* One row, and all that is said about it. */
struct hk_explained {
    struct hk_str message_id;
    enum hk_state state;
    bool by_route;                         /* it names no destination */
    struct hk_str to;                      /* where it goes, be it by route; "" = not known yet */
    struct hk_cause causes[HK_CAUSES_MAX]; /* the weightiest first; there is always one */
    size_t n;
};

struct hk_explanation {
    const char *message_id;
    bool found; /* there is such a message, though perhaps to another destination */
    struct hk_explained *items;
    size_t n;
};

extern const struct hk_op hk_op_messages_explain;

#endif
