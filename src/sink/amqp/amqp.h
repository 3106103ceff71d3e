/* SPDX-License-Identifier: Apache-2.0 */
/* The RabbitMQ sink: a publisher of AMQP 0-9-1 with confirms. One connection for all destinations of a broker, one channel for each
 * destination, so that a channel that the broker closes takes no other destination along. Delivered means confirmed: for a persistent
 * message on a durable queue it is on the broker's disk, for a quorum queue on most of its members'. */
#ifndef HK_SINK_AMQP_AMQP_H
#define HK_SINK_AMQP_AMQP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/cidr.h"
#include "loop/loop.h"
#include "sink/sink.h"

/* All is copied. 0 and NULL: the default in brackets. */
struct hk_amqp_options {
    const char *name;        /* the destination's */
    const char *url;         /* amqp:// or amqps://, with a vhost behind the slash [/] */
    const char *password;    /* with the url's user [guest, both] */
    const char *exchange;    /* payload/names.h; "" is the default exchange */
    const char *routing_key; /* payload/names.h */
    bool mandatory;          /* what no queue takes is refused */
    bool persistent;
    uint32_t heartbeat_s; /* [10] */
    bool cloudevents;     /* 1.0, binary mode */
    const char *ca_file, *cert_file, *key_file;
    const struct hk_cidr *allow; /* though not of the public internet */
    size_t n_allow;
    size_t window; /* deliveries under way [HK_BROKER_WINDOW] */
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM. The loop must outlive the sink. */
enum hk_code hk_amqp_open(struct hk_loop *loop, const struct hk_amqp_options *options,
                          struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;

#endif
