/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint of AWS for tests: it answers each request of a batch as SQS, SNS, EventBridge or Kinesis does. Not checked: signatures, which
 * moto checks in tests/e2e/aws.py. */
#ifndef HK_TESTS_FAKE_AWS_H
#define HK_TESTS_FAKE_AWS_H

#include "fake_broker.h"

struct fake_aws {
    const char *entry;        /* what each entry of a request has once: "\"MessageBody\":" */
    const char *before, *one, /* of the answer; "%zu" in `one` is the entry's number */
        *between, *after;
    bool mute; /* reads, and never answers */
};

void fake_aws_serve(int fd, void *fake_aws);

#endif
