/* SPDX-License-Identifier: Apache-2.0 */
/* A message as one item of a batch. docs/batches.md is the reference for receivers:
 *
 *   {"id":"ord-1","type":"order.created","time":"2026-11-19T09:00:00.000Z","attempt":1,"payload":{"total": 12.50}}
 *
 * The bytes of a JSON payload stay as they are; every other payload travels as base64. With CloudEvents an item is a whole event. */
#ifndef HK_SINK_BATCH_ITEM_H
#define HK_SINK_BATCH_ITEM_H

#include <stdint.h>

#include "base/buf.h"
#include "core/message.h"

enum hk_item_form {
    HK_ITEM_JSON = 0, /* an element of an array */
    HK_ITEM_LINE,     /* a line of NDJSON: line breaks between the tokens of a payload become blanks */
    HK_ITEM_EVENT     /* a CloudEvent, in an array */
};

/* Puts the item into `out` in place of what it held. `source`: of events. HK_INVALID: this message can never be an item. HK_NOMEM. */
enum hk_code hk_item_write(enum hk_item_form form, const char *source, const struct hk_message *msg,
                           uint32_t attempt, struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;

#endif
