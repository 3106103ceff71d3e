/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of notices in English. */
#include "alert/words.h"

const struct hk_words hk_words_en = {
    .level = {"[INFO] ", "[WARNING] ", "[CRITICAL] "},
    .level_update = {"[INFO, update] ", "[WARNING, update] ", "[CRITICAL, update] "},
    .over = "[RESOLVED] ",
    .test = "[TEST] ",
    .level_name = {"info", "warning", "critical"},
    .label =
        {
            [HK_FACT_SEVERITY] = "Severity",
            [HK_FACT_DESTINATION] = "Destination",
            [HK_FACT_REASON] = "Reason",
            [HK_FACT_EVENT_TYPE] = "Event type",
            [HK_FACT_COUNT] = "Messages",
            [HK_FACT_VALUE] = "Measured",
            [HK_FACT_EXAMPLE] = "Example",
            [HK_FACT_FIELDS] = "Payload",
            [HK_FACT_SINCE] = "Since",
            [HK_FACT_STORY] = "Also",
            [HK_FACT_DETAIL] = "Last error",
            [HK_FACT_RULE] = "Rule",
            [HK_FACT_RELAY] = "Relay",
        },
    .field = {"", "(masked)", "(not in the payload)", "(the payload cannot be read)"},
    .paused_label = "Why",
    .next = "Next",
    .dashboard = "Dashboard",
    .colon = ": ",
    .measured = "{value}[ (limit {limit})]",
    .still = " The alert has been firing for {age}.",
    .since = "{time} ({age} ago)",
    .story_gap = "; ",
    .story_more = "{n} more {n:alert|alerts}",
    .since_now = "{time}",
    .test_title = "hikyaku can reach this channel[ ({relay})]",
    .test_text = "This is a test. Nothing is wrong, and nothing needs to be done.",
    .units = {"d", "h", "m", "s"},
    .unit_gap = " ",
    .zone = "UTC",
    .kinds =
        {
            [HK_ALERT_DEAD_LETTER] =
                {.title = "{n} dead {n:letter|letters}[ for {dest}][: {reason}]",
                 .ended = "No open dead letters[ for {dest}] any more[: {reason}]",
                 .text = "{n} {n:message|messages}[ for {dest}] could not be delivered and became {n:a dead "
                         "letter|dead letters}. Nothing is lost: somebody has to decide what to do with "
                         "{n:it|them}.",
                 .ended_text = "They were requeued, resolved or discarded[ ({n} in total)]."},
            [HK_ALERT_DEAD_LETTERS_ABOVE] =
                {.title = "{value} open dead {value:letter|letters}[ for {dest}] (limit {limit})",
                 .ended = "Open dead letters[ for {dest}] are below {limit} again",
                 .text =
                     "{value} dead {value:letter is|letters are} open[ for {dest}]; the limit is {limit}. "
                     "Somebody has to decide what to do with {value:it|them}.",
                 .ended_text = "Enough of them were requeued, resolved or discarded."},
            [HK_ALERT_DEAD_LETTERS_RISING] =
                {.title = "Dead letters[ for {dest}] are rising: {value} new (limit {limit})",
                 .ended = "Dead letters[ for {dest}] have stopped rising",
                 .text =
                     "{value} {value:message|messages}[ for {dest}] became {value:a dead letter|dead letters} "
                     "recently; the limit is {limit}. Somebody has to decide what to do with {value:it|them}.",
                 .ended_text = "Few messages become dead letters now."},
            [HK_ALERT_OLDEST_AGE] =
                {.title = "Oldest undelivered message[ for {dest}] is {value} old (limit {limit})",
                 .ended = "No undelivered message[ for {dest}] is older than {limit} any more",
                 .text = "The oldest undelivered message[ for {dest}] has waited for {value}; the limit is "
                         "{limit}.",
                 .ended_text = "The late messages were delivered, cancelled, or became dead letters."},
            [HK_ALERT_BREAKER_OPEN] =
                {.title = "Circuit breaker[ of {dest}] is open",
                 .ended = "Circuit breaker[ of {dest}] is closed again",
                 .text = "The destination failed too often, so relays send nothing to it for now[; {n} "
                         "{n:message waits|messages wait}]. Single messages test whether it works again.",
                 .ended_text = "The destination works again, and relays send the messages that waited."},
            [HK_ALERT_PAUSED] =
                {.title = "Destination[ {dest}] is paused",
                 .ended = "Destination[ {dest}] is no longer paused",
                 .text = "Somebody paused it. Relays send nothing to it until somebody resumes it[; {n} "
                         "{n:message waits|messages wait}].",
                 .ended_text = "Relays send the messages that waited."},
            [HK_ALERT_STORE_UNREACHABLE] =
                {.title = "Relay[ {relay}] cannot reach its database",
                 .ended = "Relay[ {relay}] reaches its database again",
                 .text =
                     "This relay delivers nothing until it reaches the database. No message is lost: they stay in "
                     "the database.",
                 .ended_text = "It delivers messages again."},
            [HK_ALERT_NO_PROGRESS] =
                {.title = "Nothing was delivered[ to {dest}] for {value}, although messages are due",
                 .ended = "Messages are delivered[ to {dest}] again",
                 .text =
                     "Relays have sent nothing for {value} (limit {limit}), although messages are due and no "
                     "pause, breaker, rate limit or order of a key holds them back. Is every relay running?",
                 .ended_text = "Relays send the messages that were due."},
            [HK_ALERT_LAG_GROWING] =
                {.title = "Deliveries[ to {dest}] are falling behind: {value} late",
                 .ended = "Deliveries[ to {dest}] are no longer falling behind",
                 .text = "The oldest due message should have been sent {value} ago, and this delay has been "
                         "growing[ for {limit}].",
                 .ended_text = "Deliveries keep up with new messages."},
            [HK_ALERT_REQUEUE_FAILED] =
                {.title = "{n} requeued dead {n:letter|letters}[ for {dest}] failed again[: {reason}]",
                 .ended = "No open dead letters[ for {dest}] that failed again[: {reason}]",
                 .text = "{n} {n:dead letter was|dead letters were} requeued and could not be delivered this "
                         "time either: the cause is still there.",
                 .ended_text = "They were requeued, resolved or discarded[ ({n} in total)]."},
            [HK_ALERT_KEY_MISSING] =
                {.title = "Relay[ {relay}] lacks a key for sealed messages",
                 .ended = "Relay[ {relay}] no longer waits for a key",
                 .text = "Messages that need the key wait; none of them is lost. Give the relay its key. "
                         "If the key's file is missing, the relay looks for it again by itself.",
                 .ended_text = "Within 10 minutes the relay delivers the messages that waited."},
        },
    .others =
        {
            [HK_ALERT_DEAD_LETTER] =
                {.title = "{n} more dead {n:letter|letters}, of other causes",
                 .ended = "No open dead letters any more",
                 .text =
                     "There are too many causes for separate notices: {n} more {n:message|messages} could not be "
                     "delivered and became {n:a dead letter|dead letters}. Nothing is lost: somebody has to decide "
                     "what to do with {n:it|them}.",
                 .ended_text =
                     "All were requeued, resolved or discarded[ ({n} in addition to those in separate "
                     "notices)]."},
            [HK_ALERT_BREAKER_OPEN] =
                {.title = "{value} more circuit {value:breaker is|breakers are} open",
                 .ended = "All other circuit breakers are closed again",
                 .text =
                     "Too many destinations fail for separate notices: relays send nothing to {value} more for now. "
                     "Single messages test whether they work again. Perhaps they have a common cause.",
                 .ended_text = "These destinations work again, and relays send the messages that waited."},
            [HK_ALERT_PAUSED] =
                {.title = "{value} more {value:destination is|destinations are} paused",
                 .ended = "No other destination is paused any more",
                 .text =
                     "Relays send nothing to {value} more {value:destination|destinations} until somebody "
                     "resumes {value:it|them}.",
                 .ended_text = "Relays send the messages that waited."},
            [HK_ALERT_REQUEUE_FAILED] =
                {.title = "{n} more requeued dead {n:letter|letters} failed again, of other causes",
                 .ended = "No open dead letters that failed again",
                 .text =
                     "There are too many causes for separate notices: {n} more dead {n:letter was|letters were} "
                     "requeued and could not be delivered this time either.",
                 .ended_text =
                     "All were requeued, resolved or discarded[ ({n} in addition to those in separate "
                     "notices)]."},
        },
};
