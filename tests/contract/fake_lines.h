/* SPDX-License-Identifier: Apache-2.0 */
/* A NATS server and a Redis that follow a script: each message gets the next of the answers that the test has given. */
#ifndef HK_TESTS_FAKE_LINES_H
#define HK_TESTS_FAKE_LINES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fake_broker.h"

struct lines_script {
    bool mute;             /* it answers nothing at all */
    const char *greeting;  /* sent in place of the usual one */
    unsigned refuse_every; /* every n-th message gets `refusal`; 0 = none */
    const char *
        refusal; /* NATS: the payload of the answer, or a whole line that begins with '-'; Redis: a whole reply */
    const char *streams;  /* NATS: the answer to a question for streams; NULL = no right to ask */
    unsigned silent_from; /* from this message on nothing is answered; 0 = never */
    unsigned cut_at;      /* the connection ends when this message is there; 0 = never */
    atomic_uint published;
};

void fake_nats_serve(int fd, void *script); /* for fake_broker_start */
void fake_redis_serve(int fd, void *script);

#endif
