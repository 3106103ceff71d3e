/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka as a kind of sink: a destination of the configuration -> the module's options. */
#include "base/mem.h"
#include "sink/kafka/kafka.h"
#include "sink/kinds.h"
#include "sink/module.h"
#include "sink/stream/stream.h"

static const char *const mechanisms[HK_NMECHANISMS] = {[HK_MECHANISM_PLAIN] = "PLAIN",
                                                       [HK_MECHANISM_SCRAM_256] = "SCRAM-SHA-256",
                                                       [HK_MECHANISM_SCRAM_512] = "SCRAM-SHA-512",
                                                       [HK_MECHANISM_OAUTHBEARER] = "OAUTHBEARER"};
static const char *const partitioners[HK_NPARTITIONERS] = {
    [HK_PARTITIONER_JAVA] = "murmur2_random", [HK_PARTITIONER_LIBRDKAFKA] = "consistent_random"};
static const char *const codecs[HK_NCODECS] = {[HK_CODEC_NONE] = "none",
                                               [HK_CODEC_GZIP] = "gzip",
                                               [HK_CODEC_SNAPPY] = "snappy",
                                               [HK_CODEC_LZ4] = "lz4",
                                               [HK_CODEC_ZSTD] = "zstd"};

static struct hk_kafka_options options_of(const struct hk_conf_destination *conf)
{
    const struct hk_conf_kafka *k = &conf->kafka;
    return (struct hk_kafka_options){.name = conf->name,
                                     .brokers = k->brokers,
                                     .topic = k->topic,
                                     .tls = k->tls,
                                     .ca_file = k->ca_file,
                                     .cert_file = k->cert_file,
                                     .key_file = k->key_file,
                                     .mechanism = hk_conf_has_sasl(k) ? mechanisms[k->sasl.mechanism] : NULL,
                                     .user = k->sasl.user,
                                     .password = k->sasl.password,
                                     .token = k->sasl.token,
                                     .token_file = k->sasl.token_file,
                                     .oauth = {.token_url = k->sasl.oauth.token_url,
                                               .client_id = k->sasl.oauth.client_id,
                                               .client_secret = k->sasl.oauth.client_secret,
                                               .scope = k->sasl.oauth.scope,
                                               .audience = k->sasl.oauth.audience,
                                               .in_body = k->sasl.oauth.style == HK_CONF_OAUTH_BODY},
                                     .partitioner = partitioners[k->partitioner],
                                     .compression = codecs[k->compression],
                                     .linger_ms = k->linger_ms,
                                     .cloudevents = k->cloudevents == HK_CLOUDEVENTS_BINARY,
                                     .window = k->window,
                                     .window_bytes = k->window_bytes};
}

/* The client reads them when it is made, with the first message: so that a wrong one is known before. */
static enum hk_code try_files(const struct hk_kafka_options *o, struct hk_err *err)
{
    struct hk_stream_tls *tls = NULL;
    const struct hk_stream_tls_files files = {o->ca_file, o->cert_file, o->key_file};
    if (!o->tls)
        return HK_OK;
    enum hk_code rc = hk_stream_tls_new(&files, &tls, err);
    hk_stream_tls_free(tls);
    return rc;
}

/* The module, and the ranges as an array; the caller frees `*out_allow`. */
static enum hk_code prepare(const struct hk_conf_destination *conf, struct hk_kafka_options *o,
                            const struct hk_kafka_calls **out_calls, struct hk_cidr **out_allow,
                            struct hk_err *err)
{
    const void *calls = NULL;
    enum hk_code rc = hk_sink_allow(conf, out_allow, &o->n_allow, err);
    o->allow = *out_allow;
    if (rc == HK_OK)
        rc = try_files(o, err);
    if (rc == HK_OK)
        rc = hk_module_load("kafka", HK_MODULE_LAYOUT(struct hk_kafka_options), &calls, err);
    *out_calls = calls;
    return rc;
}

/* Whatever goes wrong is told with the destination's name. */
static enum hk_code named(const struct hk_conf_destination *conf, enum hk_code rc, struct hk_err *err)
{
    if (rc == HK_OK || !err)
        return rc;
    struct hk_err why = *err;
    return hk_err_set(err, rc, "destination %s: %s", conf->name, why.message);
}

static enum hk_code open_kafka(const struct hk_conf_destination *conf, struct hk_loop *loop,
                               struct hk_sink **out, struct hk_err *err)
{
    struct hk_kafka_options o = options_of(conf);
    const struct hk_kafka_calls *calls = NULL;
    struct hk_cidr *allow = NULL;
    enum hk_code rc = prepare(conf, &o, &calls, &allow, err);
    if (rc == HK_OK)
        rc = calls->open(loop, &o, out, err);
    hk_mem_free(allow);
    return named(conf, rc, err);
}

static enum hk_code probe_kafka(const struct hk_conf_destination *conf, uint64_t timeout_ms,
                                char out[HK_SINK_PROBE_MAX], struct hk_err *err)
{
    struct hk_kafka_options o = options_of(conf);
    const struct hk_kafka_calls *calls = NULL;
    struct hk_cidr *allow = NULL;
    enum hk_code rc = prepare(conf, &o, &calls, &allow, err);
    if (rc == HK_OK)
        rc = calls->probe(&o, timeout_ms, out, err);
    hk_mem_free(allow);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_kafka = {.name = "kafka", .open = open_kafka, .probe = probe_kafka};
