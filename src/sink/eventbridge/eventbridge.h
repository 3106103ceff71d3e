/* SPDX-License-Identifier: Apache-2.0 */
/* The EventBridge sink: puts events on one bus, up to ten in a request, each with its own result. `to` is the bus's name or ARN. An event has
 * no place beside its detail: the ids of a message stand in an envelope around the payload, unless the configuration says otherwise. */
#ifndef HK_SINK_EVENTBRIDGE_EVENTBRIDGE_H
#define HK_SINK_EVENTBRIDGE_EVENTBRIDGE_H

#include "sink/aws/batch.h"
#include "sink/aws/probe.h"

#define HK_EVENTBRIDGE_EVENT_BYTES ((size_t)256 * 1024) /* with its source and type; also of a request */
#define HK_EVENTBRIDGE_TYPE_MAX    128

extern const struct hk_aws_service hk_eventbridge_service;
/* Does the bus exist, and may these credentials ask about it? */
extern const struct hk_aws_probe hk_eventbridge_probe;

#endif
