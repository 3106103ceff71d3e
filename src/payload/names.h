/* SPDX-License-Identifier: Apache-2.0 */
/* Names of exchanges, subjects, streams and topics, in which fields of the message may stand:
 *
 *   events.{event_type}
 *
 * {event_type}, {message_key} and {destination} are all that there is. The configuration checks them, sinks fill them in. */
#ifndef HK_PAYLOAD_NAMES_H
#define HK_PAYLOAD_NAMES_H

#include <stdbool.h>

#include <hikyaku/facts.h>

#include "base/buf.h"

struct hk_name_values {
    struct hk_str event_type, message_key, destination;
};

/* NULL: it may be used; otherwise what is wrong, as the end of a sentence. */
const char *hk_name_wrong(struct hk_str pattern);
/* Is it the same for all messages of a destination? */
bool hk_name_is_fixed(struct hk_str pattern);
/* Adds the name to `out`. The pattern is one that hk_name_wrong has nothing against. Errors are the buffer's. */
void hk_name_expand(struct hk_str pattern, const struct hk_name_values *values, struct hk_buf *out);

#endif
