/* SPDX-License-Identifier: Apache-2.0 */
/* The module sink-kafka.so. */
#include "hk_version.h"
#include "sink/kafka/kafka.h"
#include "sink/module.h"

HK_API extern const struct hk_module hk_module;
const struct hk_module hk_module = {
    .version = HK_VERSION,
    .layout = HK_MODULE_LAYOUT(struct hk_kafka_options),
    .calls = &hk_kafka_calls,
};
