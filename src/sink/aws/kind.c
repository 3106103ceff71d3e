/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of sink at AWS share: a destination of the configuration -> the sink's options. */
#include "base/mem.h"
#include "sink/aws/probe.h"
#include "sink/kinds.h"

/* `allow` is to be freed. */
static enum hk_code options_of(const struct hk_conf_destination *conf, struct hk_aws_sink_options *out,
                               struct hk_cidr **out_allow, struct hk_err *err)
{
    static const enum hk_aws_body bodies[] = {[HK_AWS_TAKES_PAYLOAD] = HK_AWS_BODY_PAYLOAD,
                                              [HK_AWS_TAKES_EVENT] = HK_AWS_BODY_EVENT,
                                              [HK_AWS_TAKES_ENVELOPE] = HK_AWS_BODY_ENVELOPE};
    const struct hk_conf_aws *aws = hk_conf_aws(conf);
    const char *usual = conf->kind == HK_KIND_SQS ? aws->to : NULL; /* a queue's URL names its endpoint */
    *out = (struct hk_aws_sink_options){.aws = {.name = conf->name,
                                                .endpoint = aws->endpoint ? aws->endpoint : usual,
                                                .region = aws->region,
                                                .key_id = aws->access_key_id,
                                                .secret = aws->secret_access_key,
                                                .token = aws->session_token,
                                                .credentials_file = aws->credentials_file,
                                                .profile = aws->profile,
                                                .ca_file = aws->ca_file,
                                                .proxy = conf->proxy},
                                        .to = aws->to,
                                        .source = aws->source,
                                        .body = bodies[aws->body]};
    enum hk_code rc = hk_sink_allow(conf, out_allow, &out->aws.n_allow, err);
    if (rc == HK_OK)
        out->aws.allow = *out_allow;
    return rc;
}

enum hk_code hk_sink_open_aws(const struct hk_aws_service *service, const struct hk_conf_destination *conf,
                              struct hk_loop *loop, struct hk_sink **out, struct hk_err *err)
{
    struct hk_aws_sink_options o;
    struct hk_cidr *allow = NULL;
    enum hk_code rc = options_of(conf, &o, &allow, err);
    if (rc == HK_OK)
        rc = hk_aws_sink_open(loop, service, &o, out, err);
    hk_mem_free(allow);
    return rc;
}

enum hk_code hk_sink_probe_aws(const struct hk_aws_probe *probe, const struct hk_conf_destination *conf,
                               uint64_t timeout_ms, char out[HK_SINK_PROBE_MAX], struct hk_err *err)
{
    struct hk_aws_sink_options o;
    struct hk_cidr *allow = NULL;
    enum hk_code rc = options_of(conf, &o, &allow, err);
    if (rc == HK_OK)
        rc = hk_aws_probe(probe, &o, timeout_ms, out, err);
    hk_mem_free(allow);
    return rc;
}
