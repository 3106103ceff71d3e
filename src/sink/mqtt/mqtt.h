/* SPDX-License-Identifier: Apache-2.0 */
/* The MQTT 5 sink: publishes with QoS 1 or 2 and waits for the broker's acknowledgement. One connection for all destinations of a
 * broker, without a session: what was under way when a connection ended is not sent again by the protocol, but by the relay. */
#ifndef HK_SINK_MQTT_MQTT_H
#define HK_SINK_MQTT_MQTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/cidr.h"
#include "loop/loop.h"
#include "sink/sink.h"

/* All is copied. 0 and NULL: the default in brackets. */
struct hk_mqtt_options {
    const char *name;      /* the destination's */
    const char *url;       /* mqtt:// or mqtts:// */
    const char *password;  /* with the url's user */
    const char *topic;     /* payload/names.h */
    const char *client_id; /* [hikyaku-RANDOM, one for each connection] */
    unsigned qos;          /* 1 or 2 [1] */
    bool retain;
    bool require_subscriber; /* what nobody has subscribed to is refused */
    uint32_t heartbeat_s;    /* [10] */
    bool cloudevents;
    const char *ca_file, *cert_file, *key_file;
    const struct hk_cidr *allow;
    size_t n_allow;
    size_t window; /* [HK_BROKER_WINDOW] */
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM. The loop must outlive the sink. */
enum hk_code hk_mqtt_open(struct hk_loop *loop, const struct hk_mqtt_options *options,
                          struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;

#endif
