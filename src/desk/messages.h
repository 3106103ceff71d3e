/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: look at them, cancel them, hurry them. */
#ifndef HK_DESK_MESSAGES_H
#define HK_DESK_MESSAGES_H

#include "desk/desk.h"

/* ---- list ---- */

struct hk_messages_ask {
    const char *status, *destination, *event_type; /* NULL: any */
    uint64_t limit;
    const char *after; /* `next` of an earlier answer; NULL: from the newest on */
};

/* Some of the rows that were found, in their order. */
struct hk_messages_page {
    struct hk_row *items;
    size_t n;
    struct hk_messages_page *more; /* NULL: that was all */
};

struct hk_messages {
    struct hk_messages_page *pages;
    char next[48]; /* "" = there are no others */
};

/* Newest first within each place. An error is not shown where a mask applies: only the payload could tell what to hide in it. */
extern const struct hk_op hk_op_messages_list;

/* ---- show ---- */

struct hk_message_show_ask {
    const char *message_id;
    bool payload; /* with it */
};

struct hk_message_shown {
    struct hk_shown is; /* masked; without masks a payload is as it is stored, else plain */
    uint32_t *attempts; /* that each row gets of the max_attempts it asks for */
    bool payload;       /* was asked for */
};

extern const struct hk_op hk_op_messages_show;

/* ---- cancel, retry ---- */

struct hk_message_act_ask {
    const char *message_id;
    const char *destination; /* NULL: the only one. HK_INVALID about it: the message goes to several. */
};

struct hk_message_acted {
    const char *verb;   /* "cancel" */
    struct hk_act act;  /* as it was asked for */
    struct hk_acted is; /* what came of it */
};

extern const struct hk_op hk_op_messages_cancel, hk_op_messages_retry;

#endif
