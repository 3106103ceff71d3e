/* SPDX-License-Identifier: Apache-2.0 */
/* SQS as a kind of sink: a destination of the configuration -> the sink's options. */
#include "base/mem.h"
#include "sink/kinds.h"
#include "sink/sqs/sqs.h"

static struct hk_sqs_options options_of(const struct hk_conf_destination *conf)
{
    const struct hk_conf_sqs *sqs = &conf->sqs;
    return (struct hk_sqs_options){.aws = {.name = conf->name,
                                           .endpoint = sqs->endpoint ? sqs->endpoint : sqs->queue_url,
                                           .region = sqs->region,
                                           .key_id = sqs->access_key_id,
                                           .secret = sqs->secret_access_key,
                                           .token = sqs->session_token,
                                           .credentials_file = sqs->credentials_file,
                                           .profile = sqs->profile,
                                           .ca_file = sqs->ca_file,
                                           .proxy = conf->proxy},
                                   .queue_url = sqs->queue_url,
                                   .cloudevents = sqs->cloudevents == HK_CLOUDEVENTS_STRUCTURED};
}

static enum hk_code open_sqs(const struct hk_conf_destination *conf, struct hk_loop *loop,
                             struct hk_sink **out, struct hk_err *err)
{
    struct hk_sqs_options o = options_of(conf);
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.aws.n_allow, err);
    o.aws.allow = allow;
    if (rc == HK_OK)
        rc = hk_sqs_open(loop, &o, out, err);
    hk_mem_free(allow);
    return rc;
}

static enum hk_code probe_sqs(const struct hk_conf_destination *conf, uint64_t timeout_ms,
                              char out[HK_SINK_PROBE_MAX], struct hk_err *err)
{
    struct hk_sqs_options o = options_of(conf);
    struct hk_cidr *allow = NULL;
    enum hk_code rc = hk_sink_allow(conf, &allow, &o.aws.n_allow, err);
    o.aws.allow = allow;
    if (rc == HK_OK)
        rc = hk_sqs_probe(&o, timeout_ms, out, err);
    hk_mem_free(allow);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_sqs = {.name = "sqs", .open = open_sqs, .probe = probe_sqs};
