/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the NATS sink share: conn.c is the connection and its answers, publish.c one message as bytes, nats.c opens it. */
#ifndef HK_SINK_NATS_IMPL_H
#define HK_SINK_NATS_IMPL_H

#include "sink/broker/broker.h"
#include "sink/nats/nats.h"
#include "sink/nats/nkey.h"
#include "sink/nats/wire.h"

#define HK_NATS_INBOX "_INBOX" /* by default */

struct hk_nats_conn {
    struct hk_link link;
    struct hk_nats_info info;
    struct hk_flights flights; /* of all destinations: answers come by number */
    char *token, *inbox;       /* token NULL: none */
    char prefix[300];          /* of this connection's inbox */
    bool has_key, greeted;     /* greeted: INFO has come, CONNECT is out */
    struct hk_nkey key;
    struct hk_buf jwt;
};

struct hk_nats_sink {
    struct hk_broker broker;
    struct hk_nats_conn *conn;
    char *subject;
    bool id_with_destination;
};

extern const struct hk_link_ops hk_nats_conn_ops;
extern const struct hk_broker_ops hk_nats_broker_ops;
extern const struct hk_fields_rule hk_nats_fields;

enum hk_code hk_nats_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err);
/* What an answer of JetStream with an error means. */
enum hk_fault hk_nats_fault(int64_t code, int64_t err_code);
/* What -ERR with these words means for the connection; HK_FAULT_NONE: nothing. */
enum hk_fault hk_nats_err_fault(struct hk_str words);

#endif
