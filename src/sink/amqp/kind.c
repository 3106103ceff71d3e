/* SPDX-License-Identifier: Apache-2.0 */
/* RabbitMQ as a kind of sink: a destination of the configuration -> the sink's options. */
#include "base/mem.h"
#include "sink/amqp/amqp.h"
#include "sink/kinds.h"

static enum hk_code open_amqp(const struct hk_conf_destination *conf, struct hk_loop *loop,
                              struct hk_sink **out, struct hk_err *err)
{
    const struct hk_conf_amqp *amqp = &conf->amqp;
    struct hk_amqp_options o = {.name = conf->name,
                                .url = amqp->servers.url,
                                .password = amqp->servers.password,
                                .exchange = amqp->exchange,
                                .routing_key = amqp->routing_key,
                                .mandatory = amqp->mandatory,
                                .persistent = amqp->persistent,
                                .heartbeat_s = (uint32_t)(amqp->heartbeat_ms / 1000),
                                .cloudevents = amqp->servers.cloudevents == HK_CLOUDEVENTS_BINARY,
                                .ca_file = amqp->servers.ca_file,
                                .cert_file = amqp->servers.cert_file,
                                .key_file = amqp->servers.key_file};
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.n_allow, err);
    o.allow = allow;
    if (rc == HK_OK)
        rc = hk_amqp_open(loop, &o, out, err);
    hk_mem_free(allow);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_amqp = {.name = "amqp", .open = open_amqp};
