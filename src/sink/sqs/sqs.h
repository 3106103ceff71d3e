/* SPDX-License-Identifier: Apache-2.0 */
/* The SQS sink: sends messages to one queue of Amazon SQS, up to ten in a request, each with its own result. */
#ifndef HK_SINK_SQS_SQS_H
#define HK_SINK_SQS_SQS_H

#include "sink/aws/client.h"

#define HK_SQS_PROBE_MAX 320

/* All is copied. 0 and NULL: the default in brackets. */
struct hk_sqs_options {
    struct hk_aws_options aws; /* service: set here; endpoint [that of the queue_url] */
    const char *queue_url;     /* one that ends with .fifo is a FIFO queue */
    bool cloudevents;          /* the body is a structured CloudEvent */
    size_t window;             /* [HK_BROKER_WINDOW] */
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM. The loop must outlive the sink. */
enum hk_code hk_sqs_open(struct hk_loop *loop, const struct hk_sqs_options *options,
                         struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;
/* Does the queue exist, and may these credentials ask about it? As hk_sink_kind.probe. */
enum hk_code hk_sqs_probe(const struct hk_sqs_options *options, uint64_t timeout_ms,
                          char out[HK_SQS_PROBE_MAX], struct hk_err *err) HK_MUSTCHECK;

#endif
