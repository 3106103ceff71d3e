/* SPDX-License-Identifier: Apache-2.0 */
/* Pub/Sub's REST, and the metadata server of Google's cloud, as a script has them: what the emulator never says. */
#ifndef HK_TESTS_FAKE_PUBSUB_H
#define HK_TESTS_FAKE_PUBSUB_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fake_broker.h"

#define FAKE_PUBSUB_LAST 16384

struct pubsub_script {
    bool mute;           /* it answers nothing at all */
    bool cut;            /* the connection ends when a request is there */
    const char *status;  /* of the answer: "503 Service Unavailable"; NULL: it takes the messages */
    const char *body;    /* of that answer; NULL: {} */
    const char *poison;  /* a request with this text in it is refused: INVALID_ARGUMENT */
    unsigned token_from; /* needs a token of the metadata server with this number at least; 0: none */
    unsigned life_s;     /* of its tokens; 0: an hour */
    bool no_account;     /* the metadata server has none */
    atomic_uint requests, messages, tokens, denied;
    char last[FAKE_PUBSUB_LAST]; /* the last publish request, head and body, cut */
};

void fake_pubsub_serve(int fd, void *script); /* for fake_broker_start */

#endif
