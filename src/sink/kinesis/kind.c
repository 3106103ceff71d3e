/* SPDX-License-Identifier: Apache-2.0 */
/* Kinesis as a kind of sink. */
#include "sink/kinds.h"
#include "sink/kinesis/kinesis.h"

static enum hk_code open_kinesis(const struct hk_conf_destination *conf, struct hk_loop *loop,
                                 struct hk_sink **out, struct hk_err *err)
{
    return hk_sink_open_aws(&hk_kinesis_service, conf, loop, out, err);
}

static enum hk_code probe_kinesis(const struct hk_conf_destination *conf, uint64_t timeout_ms,
                                  char out[HK_SINK_PROBE_MAX], struct hk_err *err)
{
    return hk_sink_probe_aws(&hk_kinesis_probe, conf, timeout_ms, out, err);
}

const struct hk_sink_kind hk_sink_kind_kinesis = {
    .name = "kinesis", .open = open_kinesis, .probe = probe_kinesis};
