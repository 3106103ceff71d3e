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
            [HK_FACT_RELAY] = "Told by",
        },
    .field = {"", "(masked)", "(not in the payload)", "(the payload cannot be read)"},
    .paused_label = "Why",
    .next = "Next",
    .dashboard = "Dashboard",
    .colon = ": ",
    .measured = "{value}[ (limit {limit})]",
    .still = " It has been so for {age}.",
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
                 .ended = "Dead letters[ for {dest}] are dealt with[: {reason}]",
                 .text = "{n} {n:message|messages}[ for {dest}] could not be delivered and {n:is a dead "
                         "letter|are dead letters} now. Nothing is lost: {n:it waits|they wait} for a "
                         "decision.",
                 .ended_text =
                     "None of them is open any more[ ({n} in all)]: they were requeued, resolved or "
                     "discarded."},
            [HK_ALERT_DEAD_LETTERS_ABOVE] =
                {.title = "{value} open dead {value:letter|letters}[ for {dest}] (limit {limit})",
                 .ended = "Open dead letters[ for {dest}] are below {limit} again",
                 .text = "{value} dead {value:letter is|letters are} open[ for {dest}], and the limit is "
                         "{limit}. They wait for a decision.",
                 .ended_text = "Enough of them have been dealt with."},
            [HK_ALERT_DEAD_LETTERS_RISING] =
                {.title = "Dead letters[ for {dest}] are rising: {value} new (limit {limit})",
                 .ended = "Dead letters[ for {dest}] have stopped rising",
                 .text = "{value} {value:message|messages}[ for {dest}] died lately; the limit is {limit}. "
                         "They wait for a decision.",
                 .ended_text = "There are not many new ones any more."},
            [HK_ALERT_OLDEST_AGE] =
                {.title = "Oldest undelivered message[ for {dest}] is {value} old (limit {limit})",
                 .ended = "No undelivered message[ for {dest}] is older than {limit} any more",
                 .text = "The oldest undelivered message[ for {dest}] has waited for {value}; the limit is "
                         "{limit}.",
                 .ended_text = "What was late has been dealt with."},
            [HK_ALERT_BREAKER_OPEN] =
                {.title = "Circuit breaker[ of {dest}] is open",
                 .ended = "Circuit breaker[ of {dest}] is closed again",
                 .text = "The destination failed too often, so nothing is sent to it for now[; {n} "
                         "{n:message waits|messages wait}]. Probes find out when it works again.",
                 .ended_text = "The destination works again, and what waited is being sent."},
            [HK_ALERT_PAUSED] =
                {.title = "Destination[ {dest}] is paused",
                 .ended = "Destination[ {dest}] is no longer paused",
                 .text = "Somebody paused it; nothing is sent to it until somebody resumes it[; {n} "
                         "{n:message waits|messages wait}].",
                 .ended_text = "What waited is being sent."},
            [HK_ALERT_STORE_UNREACHABLE] =
                {.title = "Relay[ {relay}] cannot reach its database",
                 .ended = "Relay[ {relay}] reaches its database again",
                 .text = "Nothing is delivered by this relay until it can. Messages stay in the database.",
                 .ended_text = "It goes on where it was."},
            [HK_ALERT_NO_PROGRESS] =
                {.title = "Nothing was delivered[ to {dest}] for {value}, though messages are due",
                 .ended = "Messages are delivered[ to {dest}] again",
                 .text =
                     "Nothing was sent for {value} (limit {limit}), though messages are due and nothing "
                     "holds them back: neither a pause, nor a breaker, nor a rate, nor the order of a key. "
                     "Is every relay running?",
                 .ended_text = "What was due is being sent."},
            [HK_ALERT_LAG_GROWING] =
                {.title = "Deliveries[ to {dest}] fall behind: {value} late",
                 .ended = "Deliveries[ to {dest}] no longer fall behind",
                 .text =
                     "The oldest message that is due should have gone {value} ago, and it has become later "
                     "and later[ for {limit}].",
                 .ended_text = "Deliveries keep up with what comes in."},
            [HK_ALERT_REQUEUE_FAILED] =
                {.title = "{n} requeued {n:letter|letters}[ for {dest}] died again[: {reason}]",
                 .ended = "Requeued letters[ for {dest}] that died again are dealt with[: {reason}]",
                 .text = "{n} {n:letter that was|letters that were} requeued could not be delivered this "
                         "time either: the cause is still there.",
                 .ended_text = "None of them is open any more[ ({n} in all)]."},
            [HK_ALERT_KEY_MISSING] =
                {.title = "Relay[ {relay}] lacks a key for sealed messages",
                 .ended = "Relay[ {relay}] no longer waits for a key",
                 .text = "Messages that need the key wait, and none of them is lost. Give the relay its key. "
                         "It looks for a missing file again by itself.",
                 .ended_text = "It delivers the messages that waited within 10 minutes."},
        },
    .others =
        {
            [HK_ALERT_DEAD_LETTER] =
                {.title = "{n} more dead {n:letter|letters}, of other causes",
                 .ended = "All dead letters are dealt with",
                 .text =
                     "Too many causes to tell of each: {n} more {n:message|messages} could not be delivered "
                     "and {n:is a dead letter|are dead letters} now. Nothing is lost: {n:it waits|they wait} "
                     "for a decision.",
                 .ended_text = "None is open any more[ ({n} beside those told of one by one)]."},
            [HK_ALERT_BREAKER_OPEN] =
                {.title = "{value} more circuit {value:breaker is|breakers are} open",
                 .ended = "All other circuit breakers are closed again",
                 .text =
                     "Too many destinations fail to tell of each: nothing is sent to {value} more for now. "
                     "Probes find out when they work again. Perhaps they have a cause in common.",
                 .ended_text = "These destinations work again, and what waited is being sent."},
            [HK_ALERT_PAUSED] =
                {.title = "{value} more {value:destination is|destinations are} paused",
                 .ended = "No other destination is paused any more",
                 .text = "Nothing is sent to {value} more {value:destination|destinations} until somebody "
                         "resumes {value:it|them}.",
                 .ended_text = "What waited is being sent."},
            [HK_ALERT_REQUEUE_FAILED] =
                {.title = "{n} more requeued {n:letter|letters} died again, of other causes",
                 .ended = "All requeued letters that died again are dealt with",
                 .text = "Too many causes to tell of each: {n} more {n:letter that was|letters that were} "
                         "requeued could not be delivered this time either.",
                 .ended_text = "None is open any more[ ({n} beside those told of one by one)]."},
        },
};
