/* SPDX-License-Identifier: Apache-2.0 */
/* The NATS sink: publishes to JetStream and waits for its acknowledgement. One connection for all destinations of a server; a message
 * is a request whose answer comes back to an inbox under its number. */
#ifndef HK_SINK_NATS_NATS_H
#define HK_SINK_NATS_NATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/cidr.h"
#include "loop/loop.h"
#include "sink/sink.h"

/* All is copied. 0 and NULL: the default in brackets. */
struct hk_nats_options {
    const char *name;     /* the destination's */
    const char *url;      /* nats:// or tls:// */
    const char *password; /* with the url's user */
    const char *token;
    const char *creds_file;   /* a JWT and an nkey seed, or a seed alone */
    const char *subject;      /* payload/names.h */
    const char *inbox;        /* [_INBOX] */
    bool id_with_destination; /* Nats-Msg-Id is message_id/destination */
    uint32_t heartbeat_s;     /* [10] */
    bool cloudevents;
    const char *ca_file, *cert_file, *key_file;
    const struct hk_cidr *allow;
    size_t n_allow;
    size_t window; /* [HK_BROKER_WINDOW] */
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM. The loop must outlive the sink. */
enum hk_code hk_nats_open(struct hk_loop *loop, const struct hk_nats_options *options,
                          struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;

#endif
