/* SPDX-License-Identifier: Apache-2.0 */
/* A message as a record of Kafka: its topic and its headers. Key and value are the message's own bytes. */
#ifndef HK_SINK_KAFKA_RECORD_H
#define HK_SINK_KAFKA_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/buf.h"
#include "core/message.h"
#include "sink/broker/fields.h"

#define HK_KAFKA_TOPIC_MAX 249

struct hk_kafka_record {
    char topic[HK_KAFKA_TOPIC_MAX + 1];
    struct hk_fields headers;
};

struct hk_kafka_shape {
    const char *topic;     /* with fields in braces (payload/names.h) */
    const char *ce_source; /* NULL: no CloudEvents */
};

void hk_kafka_record_init(struct hk_kafka_record *record);
void hk_kafka_record_fini(struct hk_kafka_record *record);

/* Valid until the next call, and as long as the message is. HK_INVALID: this message can never be a record, and why. HK_NOMEM. */
enum hk_code hk_kafka_record_build(struct hk_kafka_record *record, const struct hk_kafka_shape *shape,
                                   const struct hk_message *msg, uint32_t attempt,
                                   struct hk_err *err) HK_MUSTCHECK;

/* Adds a JSON object of the headers, with secrets masked. */
void hk_kafka_record_show(const struct hk_kafka_record *record, struct hk_buf *out);

#endif
