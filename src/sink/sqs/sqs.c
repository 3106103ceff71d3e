/* SPDX-License-Identifier: Apache-2.0 */
/* SQS, by its JSON protocol. It takes text alone: the characters of XML 1.0, and up to ten attributes. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sink/aws/entry.h"
#include "sink/sqs/sqs.h"

#define BATCH_BYTES ((size_t)256 * 1024) /* of the entries of one request */

/* ---- messages ---- */

static enum hk_code check_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry,
                                size_t *out_bytes, struct hk_err *err)
{
    return hk_aws_attributes_check(entry, sink->service->title, HK_SQS_MESSAGE_BYTES, out_bytes, err);
}

static void begin_batch(const struct hk_aws_sink *sink, struct hk_json *json, struct hk_buf *out)
{
    (void)out;
    hk_json_object(json);
    hk_json_key(json, "QueueUrl");
    hk_json_cstr(json, sink->to);
    hk_json_key(json, "Entries");
    hk_json_array(json);
}

static void add_attribute(void *arg, struct hk_str name, struct hk_str value)
{
    struct hk_json *json = arg;
    char key[HK_AWS_ATTRIBUTE_NAME_MAX + 1];
    (void)hk_str_copy(key, sizeof key, name);
    hk_json_key(json, key);
    hk_json_object(json);
    hk_json_key(json, "DataType");
    hk_json_cstr(json, "String");
    hk_json_key(json, "StringValue");
    hk_json_str(json, value);
    hk_json_end(json);
}

static void add_ids(const struct hk_message *msg, struct hk_json *json)
{
    char group[HK_AWS_GROUP_MAX];
    hk_aws_group(hk_aws_key_of(msg), group);
    hk_json_key(json, "MessageGroupId");
    hk_json_cstr(json, group);
    hk_aws_group(msg->message_id, group);
    hk_json_key(json, "MessageDeduplicationId");
    hk_json_cstr(json, group);
}

static void add_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry, size_t at,
                      struct hk_json *json, struct hk_buf *out)
{
    const char number[2] = {(char)('0' + at), '\0'};
    hk_json_object(json);
    hk_json_key(json, "Id");
    hk_json_cstr(json, number);
    hk_json_key(json, "MessageBody");
    hk_json_str(json, entry->body);
    if (sink->fifo)
        add_ids(entry->msg, json);
    hk_json_key(json, "MessageAttributes");
    hk_json_object(json);
    hk_aws_attributes_put(entry->fields, add_attribute, json, out);
    hk_json_end(json);
    hk_json_end(json);
}

static const char *const gone[] = {"*QueueDoesNotExist*", "*NonExistentQueue*", NULL};

const struct hk_aws_service hk_sqs_service = {.kind = "sqs",
                                              .title = "SQS",
                                              .signs = "sqs",
                                              .target = "AmazonSQS.SendMessageBatch",
                                              .content_type = HK_AWS_JSON_1_0,
                                              .to = "queue_url",
                                              .fields = &hk_aws_rule,
                                              .max_entries = HK_AWS_BATCH_MAX,
                                              .max_bytes = BATCH_BYTES,
                                              .gone = gone,
                                              .check = check_entry,
                                              .begin = begin_batch,
                                              .add = add_entry,
                                              .read = hk_aws_batch_read,
                                              .show = hk_aws_show_group};

/* ---- the probe ---- */

static void ask(const char *to, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_json_key(&json, "QueueUrl");
    hk_json_cstr(&json, to);
    hk_json_key(&json, "AttributeNames");
    hk_json_array(&json);
    hk_json_cstr(&json, "ApproximateNumberOfMessages");
    hk_json_end(&json);
    hk_json_end(&json);
}

static bool judge(struct hk_str body, char out[HK_AWS_PROBE_MAX])
{
    char waiting[24];
    if (!hk_aws_text_read(body, "Attributes", "ApproximateNumberOfMessages", waiting, sizeof waiting))
        return false;
    (void)snprintf(out, HK_AWS_PROBE_MAX, "the queue is there, with about %s messages", waiting);
    return true;
}

const struct hk_aws_probe hk_sqs_probe = {
    .service = &hk_sqs_service, .target = "AmazonSQS.GetQueueAttributes", .ask = ask, .judge = judge};
