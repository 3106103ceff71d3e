/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Redis sink share: conn.c is the connection and its replies, publish.c one message as a command, redis.c opens
 * it, and moves it to another server of a cluster. */
#ifndef HK_SINK_REDIS_IMPL_H
#define HK_SINK_REDIS_IMPL_H

#include "sink/broker/broker.h"
#include "sink/redis/redis.h"
#include "sink/redis/wire.h"

#define HK_REDIS_REDIRECTS_MAX 5

struct hk_redis_conn {
    struct hk_link link;
    struct hk_flights flights; /* of all destinations: replies come in order */
    uint64_t answered;         /* the number of the next reply */
    unsigned greetings;        /* replies that the greeting still waits for */
};

struct hk_redis_sink {
    struct hk_broker broker;
    struct hk_redis_conn *conn;
    char *stream, *url, *password, *ca_file, *cert_file, *key_file;
    struct hk_cidr *allow;
    size_t n_allow;
    bool create;
    uint64_t max_len, dedup_ms;
    uint32_t heartbeat_s;
    /* Where a cluster says that the stream is; moving when all that is written has its reply. */
    struct hk_server to;
    bool moving, away, asking; /* away: at a server that is not of the url */
};

extern const struct hk_link_ops hk_redis_conn_ops;
extern const struct hk_broker_ops hk_redis_broker_ops;
extern const struct hk_fields_rule hk_redis_fields;

enum hk_code hk_redis_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err);
/* What a reply that is an error means, by its first word. */
enum hk_fault hk_redis_fault(struct hk_str error);
/* The stream is elsewhere: go there when that can be. */
void hk_redis_move(struct hk_redis_sink *r, const struct hk_server *to, bool ask);

#endif
