/* SPDX-License-Identifier: Apache-2.0 */
/* Pub/Sub as a kind of sink: a destination of the configuration -> the sink's options. */
#include <stdlib.h>

#include "base/mem.h"
#include "sink/kinds.h"
#include "sink/pubsub/pubsub.h"

/* The variable that Google's own clients read. A definition of the store names its credentials itself (config/tables_google.c). */
static const char *file_of_environment(const struct hk_conf_pubsub *pubsub)
{
    const char *file = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    return file && file[0] && !pubsub->metadata_server ? file : NULL;
}

static struct hk_pubsub_options options_of(const struct hk_conf_destination *conf)
{
    const struct hk_conf_pubsub *pubsub = &conf->pubsub;
    bool given = pubsub->credentials || pubsub->credentials_file;
    return (struct hk_pubsub_options){.name = conf->name,
                                      .project = pubsub->project,
                                      .topic = pubsub->topic,
                                      .endpoint = pubsub->emulator ? pubsub->emulator : pubsub->endpoint,
                                      .emulator = pubsub->emulator != NULL,
                                      .key = pubsub->credentials,
                                      .key_file =
                                          given ? pubsub->credentials_file : file_of_environment(pubsub),
                                      .metadata = pubsub->metadata_server,
                                      .ca_file = pubsub->ca_file,
                                      .ordering = conf->order == HK_ORDER_KEY,
                                      .cloudevents = pubsub->cloudevents == HK_CLOUDEVENTS_BINARY,
                                      .proxy = conf->proxy};
}

static enum hk_code open_pubsub(const struct hk_conf_destination *conf, struct hk_loop *loop,
                                struct hk_sink **out, struct hk_err *err)
{
    struct hk_pubsub_options o = options_of(conf);
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.n_allow, err);
    o.allow = allow;
    if (rc == HK_OK)
        rc = hk_pubsub_open(loop, &o, out, err);
    hk_mem_free(allow);
    return rc;
}

static enum hk_code probe_pubsub(const struct hk_conf_destination *conf, uint64_t timeout_ms,
                                 char out[HK_SINK_PROBE_MAX], struct hk_err *err)
{
    struct hk_pubsub_options o = options_of(conf);
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.n_allow, err);
    o.allow = allow;
    if (rc == HK_OK)
        rc = hk_pubsub_probe(&o, timeout_ms, out, err);
    hk_mem_free(allow);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_pubsub = {
    .name = "pubsub", .open = open_pubsub, .probe = probe_pubsub};
