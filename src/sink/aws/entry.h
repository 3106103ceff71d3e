/* SPDX-License-Identifier: Apache-2.0 */
/* A message as the services of AWS take it: what is text for them, names of attributes, groups of FIFO queues and topics, and an envelope for
 * services that have no place beside the payload. */
#ifndef HK_SINK_AWS_ENTRY_H
#define HK_SINK_AWS_ENTRY_H

#include "sink/aws/batch.h"

#define HK_AWS_ATTRIBUTES         10 /* SQS takes no more, and SNS hands them to SQS */
#define HK_AWS_ATTRIBUTE_NAME_MAX 256
#define HK_AWS_GROUP_MAX          129

extern const struct hk_fields_rule hk_aws_rule;

/* The characters of XML 1.0, in UTF-8. */
bool hk_aws_is_text(struct hk_str s);

/* The body and the fields as attributes; `limit`: bytes of both that `title` takes at the most. As hk_aws_service.check. */
enum hk_code hk_aws_attributes_check(const struct hk_aws_entry *entry, const char *title, size_t limit,
                                     size_t *out_bytes, struct hk_err *err) HK_MUSTCHECK;
/* Calls `add` for each attribute: what the columns of a message say comes first; the message's own headers follow one by one where they fit,
 * or together as JSON in the attribute "headers". Errors become those of `out`. */
typedef void hk_aws_attribute_fn(void *arg, struct hk_str name, struct hk_str value);
void hk_aws_attributes_put(const struct hk_fields *fields, hk_aws_attribute_fn *add, void *arg,
                           struct hk_buf *out);

/* What stands for a key or an id in FIFO queues: itself, or its hash if AWS does not take its characters or length. */
void hk_aws_group(struct hk_str text, char out[HK_AWS_GROUP_MAX]);
/* The key, or the id where there is none. */
struct hk_str hk_aws_key_of(const struct hk_message *msg);
/* hk_aws_service.show of FIFO queues and topics. */
void hk_aws_show_group(const struct hk_aws_sink *sink, const struct hk_message *msg, struct hk_json *json);

/* {"metadata":{fields},"data":payload}; a payload that is no JSON by its content type becomes "data_base64". HK_INVALID: it is JSON by its
 * content type, and is not; HK_TOOBIG, HK_NOMEM. */
enum hk_code hk_aws_envelope(const struct hk_message *msg, const struct hk_fields *fields, struct hk_buf *out,
                             struct hk_err *err) HK_MUSTCHECK;

#endif
