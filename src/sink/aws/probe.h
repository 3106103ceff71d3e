/* SPDX-License-Identifier: Apache-2.0 */
/* Is the queue, topic, bus or stream there, and do these credentials open it? Blocks, for people who ask. */
#ifndef HK_SINK_AWS_PROBE_H
#define HK_SINK_AWS_PROBE_H

#include "sink/aws/batch.h"

#define HK_AWS_PROBE_MAX 320

struct hk_aws_probe {
    const struct hk_aws_service *service;
    const char *target;                              /* X-Amz-Target; NULL: none */
    void (*ask)(const char *to, struct hk_buf *out); /* errors are the buffer's */
    /* One line of what is there. False: this is no such answer. */
    bool (*judge)(struct hk_str body, char out[HK_AWS_PROBE_MAX]);
};

/* As hk_sink_kind.probe. */
enum hk_code hk_aws_probe(const struct hk_aws_probe *probe, const struct hk_aws_sink_options *options,
                          uint64_t timeout_ms, char out[HK_AWS_PROBE_MAX], struct hk_err *err) HK_MUSTCHECK;

#endif
