/* SPDX-License-Identifier: Apache-2.0 */
/* The Kinesis sink: puts records into one data stream, up to 200 in a request, each with its own result. `to` is the stream's name or ARN. A
 * record has no place beside its data: the ids of a message stand in an envelope around the payload, unless the configuration says otherwise. */
#ifndef HK_SINK_KINESIS_KINESIS_H
#define HK_SINK_KINESIS_KINESIS_H

#include "sink/aws/batch.h"
#include "sink/aws/probe.h"

#define HK_KINESIS_RECORD_BYTES                                                                              \
    ((size_t)1024 * 1024)      /* with its partition key; a stream takes more only if it was told to */
#define HK_KINESIS_RECORDS 200 /* Kinesis takes 500; the answer is to fit into what is read of one */

extern const struct hk_aws_service hk_kinesis_service;
/* Does the stream exist, and may these credentials ask about it? */
extern const struct hk_aws_probe hk_kinesis_probe;

#endif
