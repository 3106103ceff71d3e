/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HK_SINK_SQS_IMPL_H
#define HK_SINK_SQS_IMPL_H

#include "base/json.h"
#include "sink/broker/fields.h"
#include "sink/sqs/sqs.h"

#define HK_SQS_BATCH_BYTES   (256 * 1024)  /* of the entries of one request */
#define HK_SQS_MESSAGE_BYTES (1024 * 1024) /* no queue takes more, with attributes */
#define HK_SQS_ATTRIBUTES    10
#define HK_SQS_GROUP_MAX     129

extern const struct hk_fields_rule hk_sqs_rule;

struct hk_sqs_entry {
    const struct hk_message *msg;
    const struct hk_fields *fields;
    struct hk_str body; /* the message's payload, or an event around it */
    bool fifo;
};

/* How many bytes of it SQS counts. HK_INVALID: SQS cannot carry it; HK_TOOBIG: not even alone. */
enum hk_code hk_sqs_entry_check(const struct hk_sqs_entry *entry, size_t *out_bytes,
                                struct hk_err *err) HK_MUSTCHECK;
/* Adds the entry as a JSON object. Errors are the buffer's. */
void hk_sqs_entry_write(struct hk_json *json, const struct hk_sqs_entry *entry, size_t id);
/* What stands for a key or an id in FIFO queues: itself, or its hash if SQS does not take its characters or length. */
void hk_sqs_group(struct hk_str text, char out[HK_SQS_GROUP_MAX]);

#endif
