/* SPDX-License-Identifier: Apache-2.0 */
/* NATS as a kind of sink: a destination of the configuration -> the sink's options. */
#include "base/mem.h"
#include "sink/kinds.h"
#include "sink/nats/nats.h"

static enum hk_code open_nats(const struct hk_conf_destination *conf, struct hk_loop *loop,
                              struct hk_sink **out, struct hk_err *err)
{
    const struct hk_conf_nats *nats = &conf->nats;
    struct hk_nats_options o = {.name = conf->name,
                                .url = nats->servers.url,
                                .password = nats->servers.password,
                                .token = nats->token,
                                .creds_file = nats->creds_file,
                                .subject = nats->subject,
                                .inbox = nats->inbox,
                                .id_with_destination = nats->msg_id == HK_NATS_ID_DESTINATION,
                                .heartbeat_s = (uint32_t)(nats->heartbeat_ms / 1000),
                                .cloudevents = nats->servers.cloudevents == HK_CLOUDEVENTS_BINARY,
                                .ca_file = nats->servers.ca_file,
                                .cert_file = nats->servers.cert_file,
                                .key_file = nats->servers.key_file};
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.n_allow, err);
    o.allow = allow;
    if (rc == HK_OK)
        rc = hk_nats_open(loop, &o, out, err);
    hk_mem_free(allow);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_nats = {.name = "nats", .open = open_nats};
