/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: look at them, cancel them, hurry them. */
#ifndef HK_DESK_MESSAGES_H
#define HK_DESK_MESSAGES_H

#include "desk/desk.h"

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
