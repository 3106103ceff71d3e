/* SPDX-License-Identifier: Apache-2.0 */
/* One log line for each retry and each dead letter, once the store has it: what failed, under which policy, when, for how long it
 * sleeps (requirement 207; docs/logs.md). A settle says what was decided; what else the line needs of the message (correlation
 * and trace ids, its policy, the error without what masks hide) is noted while the message is in hand.
 *
 * From the loop's thread. Whatever there is no memory for is left out of the line. */
#ifndef HK_RELAY_ATTEMPT_LOG_H
#define HK_RELAY_ATTEMPT_LOG_H

#include <hikyaku/policy.h>

#include "config/config.h"
#include "core/exchange.h"
#include "observe/log.h"
#include "payload/answer.h"
#include "store/store.h"

struct hk_attempt_log;

/* Logs the triggers and rules that others have put on our tables, when the relay starts; "" = none. */
void hk_attempt_log_guards(struct hk_attempt_log *al, const char *found);
enum hk_code hk_attempt_log_new(struct hk_log *log, struct hk_attempt_log **out,
                                struct hk_err *err) HK_MUSTCHECK;
void hk_attempt_log_free(struct hk_attempt_log *al);
/* An engine starts with this configuration, which outlives it: nothing is in hand. HK_NOMEM leaves all as it was. */
enum hk_code hk_attempt_log_configure(struct hk_attempt_log *al, const struct hk_config *config,
                                      struct hk_err *err) HK_MUSTCHECK;
/* A lane was acquired: nothing is in hand. */
void hk_attempt_log_forget(struct hk_attempt_log *al);
/* A sink has answered, or would not take the message, or it was refused. `policy`: the destination's own. `traceparent`: what was
 * sent, "" = the row's own. What went well is not noted. */
void hk_attempt_log_ended(struct hk_attempt_log *al, const struct hk_message *message,
                          const struct hk_policy *policy, const char *traceparent,
                          const struct hk_facts *facts, int64_t wall_ms);
/* An exchange was committed: writes the lines of its settles, and notes what was claimed. */
void hk_attempt_log_exchanged(struct hk_attempt_log *al, const struct hk_exchange *asked,
                              const struct hk_exchanged *done);

/* A destination was paused because of what it answered: nobody asked for it, and nothing goes there until somebody acts. */
void hk_attempt_log_paused(struct hk_attempt_log *al, const char *destination, const char *reason);

/* The error of an attempt without what is masked in the message's payload and header fields, added to `out`. Not HK_OK: nothing of
 * it may be shown. */
enum hk_code hk_attempt_mask_error(const struct hk_masks *masks, const struct hk_message *message,
                                   struct hk_str error, struct hk_buf *out) HK_MUSTCHECK;
/* The error of an attempt: its own, or else what the answer says (payload/answer.h); "" when nobody answered. */
struct hk_str hk_attempt_log_error(const struct hk_attempt_log *al, const struct hk_message *message,
                                   const struct hk_facts *facts, char out[HK_ANSWER_ERROR_MAX]);

/* Logs the messages that a relay had claimed when it died or lost its lease: they may have arrived, and are sent again. */
void hk_attempt_log_taken(struct hk_attempt_log *al, const struct hk_takings *takings);

/* Dead letters that nobody has looked at end here: never without a word. */
void hk_attempt_log_purged(struct hk_attempt_log *al, uint32_t open);

#endif
