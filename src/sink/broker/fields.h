/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker is told of a message beside its payload, as names and values: AMQP's headers, NATS's header lines, the fields of a
 * Redis entry, MQTT's user properties. Which of a message's columns travel under which name is one row of names for each kind of
 * broker; the message's own headers follow; the binding of CloudEvents is the same for all but for its prefix. */
#ifndef HK_SINK_BROKER_FIELDS_H
#define HK_SINK_BROKER_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/buf.h"
#include "base/json.h"
#include "core/message.h"

#define HK_FIELDS_OWN_MAX 64 /* of a message's own headers */
#define HK_FIELDS_MAX     (HK_FIELDS_OWN_MAX + 24)

enum hk_field_of {
    HK_FIELD_OF_ID = 0,
    HK_FIELD_OF_TYPE,
    HK_FIELD_OF_KEY,
    HK_FIELD_OF_CORRELATION,
    HK_FIELD_OF_TRACEPARENT,
    HK_FIELD_OF_IDEMPOTENCY, /* only where it is not the id */
    HK_FIELD_OF_CONTENT_TYPE,
    HK_FIELD_OF_ATTEMPT,
    HK_NFIELDS_OF
};

struct hk_field {
    struct hk_str name, value;
    bool secret; /* shown as "***" */
};

struct hk_fields {
    struct hk_field at[HK_FIELDS_MAX];
    size_t n;
    struct hk_buf text; /* what does not lie in the message itself */
};

struct hk_fields_rule {
    const char *names[HK_NFIELDS_OF]; /* NULL: it travels in another way, or not at all */
    const char *ce_prefix;            /* of CloudEvents attributes */
    const char *const
        *reserved; /* names that a message's own headers may not have; "x-*": nor begin so. Ends with NULL */
};

void hk_fields_init(struct hk_fields *f);
void hk_fields_fini(struct hk_fields *f);
/* Anew for this message; valid until the next call, and as long as the message is. `ce_source` NULL: no CloudEvents. HK_INVALID: the
 * message's headers cannot be sent; HK_NOMEM. */
enum hk_code hk_fields_make(struct hk_fields *f, const struct hk_fields_rule *rule, const char *ce_source,
                            const struct hk_message *msg, uint32_t attempt, struct hk_err *err) HK_MUSTCHECK;
/* As members of the JSON object that is open. */
void hk_fields_show(const struct hk_fields *f, struct hk_json *json);

#endif
