/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary keys, as the endpoints of instances and containers (JSON) and STS (XML) hand them out. */
#ifndef HK_SINK_AWS_KEYS_H
#define HK_SINK_AWS_KEYS_H

#include <stdint.h>

#include "sink/aws/answer.h"
#include "sink/aws/credentials.h"

struct hk_aws_keys {
    struct hk_aws_credentials credentials;
    int64_t end_ms; /* Unix time; 0: the answer does not say */
};

/* False: the answer holds no keys that can be used, and `out` is wiped. `error` then has its own code and words, which may be empty. */
bool hk_aws_keys_json(struct hk_str body, struct hk_aws_keys *out, struct hk_aws_error *error);
bool hk_aws_keys_xml(struct hk_str body, struct hk_aws_keys *out, struct hk_aws_error *error);

#endif
