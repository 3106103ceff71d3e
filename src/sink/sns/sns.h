/* SPDX-License-Identifier: Apache-2.0 */
/* The SNS sink: publishes messages to one topic of Amazon SNS, up to ten in a request, each with its own result. `to` is the topic's ARN; one
 * that ends with .fifo is a FIFO topic. */
#ifndef HK_SINK_SNS_SNS_H
#define HK_SINK_SNS_SNS_H

#include "sink/aws/batch.h"
#include "sink/aws/probe.h"

#define HK_SNS_MESSAGE_BYTES ((size_t)256 * 1024) /* no topic takes more, with attributes */

extern const struct hk_aws_service hk_sns_service;
/* Does the topic exist, and may these credentials ask about it? */
extern const struct hk_aws_probe hk_sns_probe;

#endif
