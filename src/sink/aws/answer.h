/* SPDX-License-Identifier: Apache-2.0 */
/* What AWS says: an error of a whole request, and the result of each entry of a batch. */
#ifndef HK_SINK_AWS_ANSWER_H
#define HK_SINK_AWS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

#define HK_AWS_BATCH_MAX 10

struct hk_aws_error {
    char code[64]; /* "QueueDoesNotExist"; "" = it named none */
    char words[400];
};

/* Of an answer that is no 2xx. */
void hk_aws_error_read(struct hk_str body, struct hk_aws_error *out);
/* What it means. `*out_maybe`: the service may have acted all the same. Throttling has status 400 there as well. */
enum hk_fault hk_aws_fault(int status, const char *code, bool *out_maybe);

enum hk_aws_outcome {
    HK_AWS_SILENT = 0, /* the answer says nothing of it */
    HK_AWS_TAKEN,
    HK_AWS_FAILED
};

struct hk_aws_result {
    enum hk_aws_outcome outcome;
    char place[200]; /* taken: "MessageId …", with its sequence number if it has one */
    struct hk_aws_error error;
    bool sender_fault;
};

/* The results of n entries. False: the body is not such an answer.
 * SQS (JSON) and SNS (XML): the entries have the ids "0" to n - 1, at most HK_AWS_BATCH_MAX. */
bool hk_aws_batch_read(struct hk_str body, struct hk_aws_result *out, size_t n);
bool hk_aws_publish_read(struct hk_str body, struct hk_aws_result *out, size_t n);
/* EventBridge and Kinesis: one result for each entry, in their order. */
bool hk_aws_events_read(struct hk_str body, struct hk_aws_result *out, size_t n);
bool hk_aws_records_read(struct hk_str body, struct hk_aws_result *out, size_t n);
/* As hk_aws_fault, of one entry that failed. */
enum hk_fault hk_aws_entry_fault(const struct hk_aws_result *result, bool *out_maybe);
/* A text of a JSON object: what stands under `object` (NULL: the whole) and `name`. False: it is not there, or does not fit. */
bool hk_aws_text_read(struct hk_str body, const char *object, const char *name, char *out, size_t room);

#endif
