/* SPDX-License-Identifier: Apache-2.0 */
/* MQTT as a kind of sink: a destination of the configuration -> the sink's options. */
#include "base/mem.h"
#include "sink/kinds.h"
#include "sink/mqtt/mqtt.h"

static enum hk_code open_mqtt(const struct hk_conf_destination *conf, struct hk_loop *loop,
                              struct hk_sink **out, struct hk_err *err)
{
    const struct hk_conf_mqtt *mqtt = &conf->mqtt;
    struct hk_mqtt_options o = {.name = conf->name,
                                .url = mqtt->servers.url,
                                .password = mqtt->servers.password,
                                .topic = mqtt->topic,
                                .client_id = mqtt->client_id,
                                .qos = mqtt->qos,
                                .retain = mqtt->retain,
                                .require_subscriber = mqtt->require_subscriber,
                                .heartbeat_s = (uint32_t)(mqtt->heartbeat_ms / 1000),
                                .cloudevents = mqtt->servers.cloudevents == HK_CLOUDEVENTS_BINARY,
                                .ca_file = mqtt->servers.ca_file,
                                .cert_file = mqtt->servers.cert_file,
                                .key_file = mqtt->servers.key_file};
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.n_allow, err);
    o.allow = allow;
    if (rc == HK_OK)
        rc = hk_mqtt_open(loop, &o, out, err);
    hk_mem_free(allow);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_mqtt = {.name = "mqtt", .open = open_mqtt};
