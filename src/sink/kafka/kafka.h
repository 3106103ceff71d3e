/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to a topic of Kafka. The client is librdkafka, an idempotent producer with acks=all; one for all destinations with the same
 * brokers and settings on one loop.
 *
 * This header knows nothing of librdkafka: all that uses it is the module sink-kafka.so (sink/module.h). */
#ifndef HK_SINK_KAFKA_KAFKA_H
#define HK_SINK_KAFKA_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/cidr.h"
#include "loop/loop.h"
#include "sink/http/http.h"
#include "sink/sink.h"

#define HK_KAFKA_PROBE_MAX 320

struct hk_kafka_options {
    const char *name;    /* of the destination, for messages */
    const char *brokers; /* "host:port,host:port", at which the cluster is asked for its brokers */
    const char *topic;   /* {event_type}, {message_key} and {destination} stand for the message's */
    bool tls;
    const char *ca_file, *cert_file, *key_file;
    const char *mechanism; /* NULL: no SASL; PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER */
    const char *user, *password;
    const char *token,
        *token_file; /* OAUTHBEARER: one of them, or oauth; the file is read again whenever a token runs out */
    struct hk_http_oauth oauth;     /* OAUTHBEARER: tokens by client credentials; token_url NULL: none */
    const char *partitioner;        /* librdkafka's name of it [murmur2_random: as Java's clients do] */
    const char *compression;        /* [none] */
    uint64_t linger_ms;             /* records are collected for so long */
    bool cloudevents;               /* 1.0, binary mode */
    const char *cloudevents_source; /* [/hikyaku] */
    uint32_t
        window; /* records given to the client and not ended, of this destination; then HK_BUSY [10000] */
    uint64_t window_bytes; /* [64 MiB] */
    uint32_t batch;        /* records in one batch at the most [10000] */
    const struct hk_cidr
        *allow; /* though not of the public internet; for every address that a broker announces, too */
    size_t n_allow;
};

/* What the module gives. */
struct hk_kafka_calls {
    /* Connects to nothing yet: that comes with the first message. HK_INVALID names the destination, never a secret. HK_NOMEM. */
    enum hk_code (*open)(struct hk_loop *loop, const struct hk_kafka_options *options,
                         struct hk_sink **out_sink, struct hk_err *err);
    /* Asks the cluster for its topics, and makes none; blocks, timeout_ms at the most. `out`: one line of what is there. HK_UNAVAILABLE: nobody answered in
     * time, and why; HK_NOTFOUND: no such topic; HK_DENIED: it does not let us in; as `open`. */
    enum hk_code (*probe)(const struct hk_kafka_options *options, uint64_t timeout_ms,
                          char out[HK_KAFKA_PROBE_MAX], struct hk_err *err);
};

extern const struct hk_kafka_calls hk_kafka_calls;

#endif
