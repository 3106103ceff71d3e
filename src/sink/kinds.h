/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of sink. A kind is one struct in its own folder (http/kind.c, amqp/kind.c) and one line of the registry in kinds.c.
 *
 * A destination has exactly one section with the name of a kind. The tables of those sections stay with the configuration
 * (config/tables.c), because libhikyaku reads whole configurations and has no sinks. So this file and the kind.c files see the
 * configuration, and they are part of the relay's archive. */
#ifndef HK_SINK_KINDS_H
#define HK_SINK_KINDS_H

#include "config/config.h"
#include "loop/loop.h"
#include "sink/sink.h"

#define HK_SINK_PROBE_MAX 320

struct hk_sink_kind {
    const char *name; /* of its section */
    bool nowhere;     /* confirms without sending anything: people are warned */
    /* As the kind's own open: connects to nothing yet. The configuration may go afterwards. */
    enum hk_code (*open)(const struct hk_conf_destination *conf, struct hk_loop *loop,
                         struct hk_sink **out_sink, struct hk_err *err);
    /* Asks the other side whether it would take messages, without sending one; blocks, timeout_ms at the most. `out`: one line of what is
     * there. HK_UNAVAILABLE, HK_DENIED, HK_NOTFOUND, or as `open`. NULL: this kind does not ask. */
    enum hk_code (*probe)(const struct hk_conf_destination *conf, uint64_t timeout_ms,
                          char out[HK_SINK_PROBE_MAX], struct hk_err *err);
};

extern const struct hk_sink_kind hk_sink_kind_http;
extern const struct hk_sink_kind hk_sink_kind_null;
extern const struct hk_sink_kind hk_sink_kind_amqp;
extern const struct hk_sink_kind hk_sink_kind_nats;
extern const struct hk_sink_kind hk_sink_kind_redis;
extern const struct hk_sink_kind hk_sink_kind_mqtt;
extern const struct hk_sink_kind hk_sink_kind_kafka;
extern const struct hk_sink_kind hk_sink_kind_sqs;
extern const struct hk_sink_kind hk_sink_kind_sns;
extern const struct hk_sink_kind hk_sink_kind_eventbridge;
extern const struct hk_sink_kind hk_sink_kind_kinesis;
extern const struct hk_sink_kind hk_sink_kind_pubsub;

const struct hk_sink_kind *hk_sink_kind_of(const struct hk_conf_destination *conf);
/* The ranges that a destination allows, as one array; hk_mem_free it. HK_NOMEM. */
enum hk_code hk_sink_allow(const struct hk_conf_destination *conf, struct hk_cidr **out_allow, size_t *out_n,
                           struct hk_err *err) HK_MUSTCHECK;

/* For the kinds at AWS, which differ in their service alone (aws/kind.c). */
struct hk_aws_service;
struct hk_aws_probe;
enum hk_code hk_sink_open_aws(const struct hk_aws_service *service, const struct hk_conf_destination *conf,
                              struct hk_loop *loop, struct hk_sink **out_sink,
                              struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_sink_probe_aws(const struct hk_aws_probe *probe, const struct hk_conf_destination *conf,
                               uint64_t timeout_ms, char out[HK_SINK_PROBE_MAX],
                               struct hk_err *err) HK_MUSTCHECK;

#endif
