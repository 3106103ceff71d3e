/* SPDX-License-Identifier: Apache-2.0 */
/* An MQTT 5 broker that follows a script. */
#ifndef HK_TESTS_FAKE_MQTT_H
#define HK_TESTS_FAKE_MQTT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fake_broker.h"

struct mqtt_script {
    bool mute;            /* it answers nothing at all */
    unsigned login_code;  /* of CONNACK */
    unsigned receive_max; /* 0 = not said */
    unsigned maximum_packet;
    unsigned maximum_qos_1; /* it takes no QoS 2 */
    unsigned refuse_every;  /* every n-th gets `code`; 0 = none */
    unsigned code;
    unsigned disconnect_at;      /* DISCONNECT with `code` when this one is there; 0 = never */
    unsigned silent_from;        /* from this one on nothing is answered; 0 = never */
    unsigned cut_at;             /* the connection ends when this one is there; 0 = never */
    unsigned hold;               /* answers come when so many are there; 0 = at once */
    const char *garbage;         /* sent in place of CONNACK */
    atomic_uint published, most; /* most: that were there without an answer */
};

void fake_mqtt_serve(int fd, void *script); /* for fake_broker_start */

#endif
