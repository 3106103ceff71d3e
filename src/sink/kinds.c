/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of the kinds of sink. */
#include "base/mem.h"
#include "sink/kinds.h"

static const struct hk_sink_kind *const kinds[HK_NKINDS] = {
    [HK_KIND_HTTP] = &hk_sink_kind_http,       [HK_KIND_NULL] = &hk_sink_kind_null,
    [HK_KIND_AMQP] = &hk_sink_kind_amqp,       [HK_KIND_NATS] = &hk_sink_kind_nats,
    [HK_KIND_REDIS] = &hk_sink_kind_redis,     [HK_KIND_MQTT] = &hk_sink_kind_mqtt,
    [HK_KIND_KAFKA] = &hk_sink_kind_kafka,     [HK_KIND_SQS] = &hk_sink_kind_sqs,
    [HK_KIND_SNS] = &hk_sink_kind_sns,         [HK_KIND_EVENTBRIDGE] = &hk_sink_kind_eventbridge,
    [HK_KIND_KINESIS] = &hk_sink_kind_kinesis, [HK_KIND_PUBSUB] = &hk_sink_kind_pubsub,
};

enum hk_code hk_sink_allow(const struct hk_conf_destination *conf, struct hk_cidr **out, size_t *out_n,
                           struct hk_err *err)
{
    size_t n = 0;
    while (hk_conf_allow(conf, n))
        n++;
    struct hk_cidr *allow = hk_mem_zalloc(n + 1, sizeof *allow);
    if (!allow)
        return hk_err_set(err, HK_NOMEM, "out of memory for destination %s", conf->name);
    for (size_t i = 0; i < n; i++)
        allow[i] = *hk_conf_allow(conf, i);
    *out = allow;
    *out_n = n;
    return HK_OK;
}

const struct hk_sink_kind *hk_sink_kind_of(const struct hk_conf_destination *conf)
{
    return kinds[conf->kind];
}
