/* SPDX-License-Identifier: Apache-2.0 */
/* A RabbitMQ that follows a script. */
#ifndef HK_TESTS_FAKE_AMQP_H
#define HK_TESTS_FAKE_AMQP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fake_broker.h"

struct amqp_script {
    bool mute;             /* it answers nothing at all */
    unsigned login_code;   /* closes the connection with it in place of opening the vhost */
    unsigned declare_code; /* closes the channel with it when the exchange is looked for */
    bool no_plain;
    unsigned return_every; /* every n-th is returned, then confirmed; 0 = none */
    unsigned nack_every;
    const char *poison;     /* a message with this body closes the channel … */
    unsigned poison_code;   /* … with this code */
    unsigned confirm_after; /* confirms come for so many together, with `multiple`; 0 = each by itself */
    unsigned silent_from;   /* from this one on nothing is confirmed; 0 = never */
    unsigned cut_at;        /* the connection ends when this one is there; 0 = never */
    unsigned close_at;      /* the connection is closed with code 320 then */
    bool block;             /* says that it is blocked after the first one, and unblocks 200 ms later */
    unsigned frame_max;     /* 0: 131072 */
    const char *garbage;    /* sent in place of the greeting */

    /* what came */
    atomic_uint published, channels, heartbeats;
};

void fake_amqp_serve(int fd, void *script); /* for fake_broker_start */

#endif
