/* SPDX-License-Identifier: Apache-2.0 */
/* A message's states and the one table of allowed transitions. Operators' acts use it. The stores make the other transitions in SQL;
 * their contract tests try every event in every state, and compare the view with the table. Inside one engine a message has finer
 * states: engine_slot.c has their table. */
#include <string.h>

#include "core/message.h"

/* A pair that is not listed is HK_STATE_NONE: forbidden. */
static const uint8_t next_state[HK_NSTATES][HK_NEVENTS] = {
    [HK_PENDING][HK_EV_CLAIM] = HK_PROCESSING,   [HK_PENDING][HK_EV_CANCEL] = HK_STATE_CANCELLED,

    [HK_PROCESSING][HK_EV_ACK] = HK_SENT,        [HK_PROCESSING][HK_EV_RETRY] = HK_RETRYING,
    [HK_PROCESSING][HK_EV_RELEASE] = HK_PENDING, /* the view still says retrying of one that was tried before */
    [HK_PROCESSING][HK_EV_ORPHAN] = HK_RETRYING, [HK_PROCESSING][HK_EV_GIVE_UP] = HK_STATE_DEAD,

    [HK_RETRYING][HK_EV_CLAIM] = HK_PROCESSING,  [HK_RETRYING][HK_EV_CANCEL] = HK_STATE_CANCELLED,

    [HK_STATE_DEAD][HK_EV_REQUEUE] = HK_PENDING, /* a new life */
};

static const char *const names[HK_NSTATES] = {
    [HK_STATE_NONE] = "none",           [HK_PENDING] = "pending", [HK_PROCESSING] = "processing",
    [HK_RETRYING] = "retrying",         [HK_SENT] = "sent",       [HK_STATE_DEAD] = "dead",
    [HK_STATE_CANCELLED] = "cancelled",
};

enum hk_state hk_state_after(enum hk_state state, enum hk_event event)
{
    if ((unsigned)state >= HK_NSTATES || (unsigned)event >= HK_NEVENTS)
        return HK_STATE_NONE;
    return (enum hk_state)next_state[state][event];
}

const char *hk_state_name(enum hk_state state)
{
    return (unsigned)state < HK_NSTATES ? names[state] : names[HK_STATE_NONE];
}

static const struct {
    const char *column, *text;
} malformed[] = {
    {"not_before", "not_before is not a time: write it as 2026-11-15T08:30:00Z"},
    {"expires_at", "expires_at is not a time: write it as 2026-11-15T08:30:00Z"},
    {"max_attempts", "max_attempts is not a count of attempts"},
    {"encoding", "encoding is none of utf8, base64 and sealed"},
    {"message_id", "message_id is not a text"},
};

const char *hk_malformed_text(const char *column)
{
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        if (strcmp(malformed[i].column, column) == 0)
            return malformed[i].text;
    return "the row cannot be used: a column other than payload is too long";
}
