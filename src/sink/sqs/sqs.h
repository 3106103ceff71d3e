/* SPDX-License-Identifier: Apache-2.0 */
/* The SQS sink: sends messages to one queue of Amazon SQS, up to ten in a request, each with its own result. `to` is the queue's URL; one that
 * ends with .fifo is a FIFO queue. The endpoint is that of the URL, unless another one is given. */
#ifndef HK_SINK_SQS_SQS_H
#define HK_SINK_SQS_SQS_H

#include "sink/aws/batch.h"
#include "sink/aws/probe.h"

#define HK_SQS_MESSAGE_BYTES ((size_t)1024 * 1024) /* no queue takes more, with attributes */

extern const struct hk_aws_service hk_sqs_service;
/* Does the queue exist, and may these credentials ask about it? */
extern const struct hk_aws_probe hk_sqs_probe;

#endif
