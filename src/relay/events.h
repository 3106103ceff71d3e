/* SPDX-License-Identifier: Apache-2.0 */
/* The relay's part of the event log (HIKYAKU_EVENT_LOG=FILE), for the checker: what it claimed, sent, saw and settled.
 * One write per event, so that a kill cuts no line in two. */
#ifndef HK_RELAY_EVENTS_H
#define HK_RELAY_EVENTS_H

#include "core/engine.h"

struct hk_events;

/* NULL `path`: no log; all functions then do nothing. */
enum hk_code hk_events_open(const char *path, const char *relay, struct hk_events **out_events,
                            struct hk_err *err) HK_MUSTCHECK;
void hk_events_close(struct hk_events *events);

void hk_events_acquired(struct hk_events *events, int64_t store_now_ms, int64_t lane, uint64_t lease_ms);
void hk_events_released(struct hk_events *events, int64_t store_now_ms, int64_t lane);
void hk_events_exchanged(struct hk_events *events, const struct hk_exchange *asked,
                         const struct hk_exchanged *done);
void hk_events_send(struct hk_events *events, int64_t store_now_ms, int64_t lane,
                    const struct hk_action *action, const char *destination);
/* Its sink had no room, and later it had some again. */
void hk_events_busy(struct hk_events *events, int64_t store_now_ms, int64_t lane, int64_t claim,
                    const struct hk_message *message, const char *destination);
void hk_events_room(struct hk_events *events, int64_t store_now_ms, const char *destination);
/* Called before the engine gets the outcome. */
void hk_events_sent(struct hk_events *events, int64_t store_now_ms, int64_t lane, int64_t claim,
                    const struct hk_message *message, const char *destination, const struct hk_facts *facts);
/* Nothing was sent: there is no key to open the message with. */
void hk_events_keyless(struct hk_events *events, int64_t store_now_ms, int64_t lane, int64_t claim,
                       const struct hk_message *message, const char *destination);

#endif
