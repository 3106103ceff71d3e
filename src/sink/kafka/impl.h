/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Kafka sink share.
 *
 *   sink (a destination) -> client (a cluster; shared) -> producers (librdkafka): the usual one; one that sends each record alone, made
 *   when a topic's limit is below the size of a batch; and those that a fatal error has ended, until their records have come back
 *
 * An entry is one record. The sink has it until `done` has run, the producer until librdkafka has reported on it: a record whose
 * deadline has passed is over for the sink, and still counts in its window.
 *
 * All but the callbacks of librdkafka's threads (producer.c says which) runs on the loop's thread. */
#ifndef HK_SINK_KAFKA_IMPL_H
#define HK_SINK_KAFKA_IMPL_H

#include <librdkafka/rdkafka.h>

#include "base/buf.h"
#include "sink/http/access.h"
#include "sink/kafka/kafka.h"
#include "sink/kafka/record.h"
#include "sink/kafka/verdict.h"

#define HK_KAFKA_TEXT_MAX 512

struct hk_kafka_entry {
    struct hk_kafka_entry *next, *prev;   /* of its sink's, by deadline */
    struct hk_kafka_entry *below, *above; /* of its producer's */
    struct hk_kafka_sink *sink;           /* NULL: closed */
    struct hk_kafka_producer *producer;   /* NULL: librdkafka does not have it */
    const struct hk_message *msg;
    hk_sink_done_fn *done;
    void *arg;
    uint64_t start_ms, deadline_ms, timeout_ms;
    uint32_t attempt;
    uint64_t bytes;
    bool live;    /* `done` has not run */
    bool alone;   /* it was refused in a batch, and goes by itself */
    bool aborted; /* by the contract's abort */
    /* It ended before librdkafka took it. */
    enum hk_fault fault; /* NONE: it did not */
    rd_kafka_resp_err_t code;
    char *text;
};

struct hk_kafka_sink {
    struct hk_sink sink;
    struct hk_kafka_client *client;
    struct hk_kafka_sink *next; /* of the client's */
    char *name, *topic, *ce_source;
    struct hk_kafka_shape shape;
    struct hk_kafka_entry *first, *last; /* whose `done` has not run, by deadline */
    struct hk_timer *timer;
    uint64_t timer_ms; /* set to; UINT64_MAX: not */
    uint32_t window, held;
    uint64_t window_bytes, held_bytes; /* held: by librdkafka */
    uint64_t alone_until_ms;           /* a batch of its records was too large for the topic */
    bool was_busy, closed;
};

/* What the client said last, apart from any record. */
struct hk_kafka_said {
    rd_kafka_resp_err_t code;
    enum hk_fault fault; /* NONE: nothing */
    uint64_t at_ms;
    char text[HK_KAFKA_TEXT_MAX];
};

struct hk_kafka_client {
    struct hk_loop_shared shared;
    struct hk_loop *loop;
    struct hk_buf
        settings; /* "name\0value\0" each: librdkafka's, and ours behind them. Secrets are among them. */
    struct hk_cidr *allow;
    size_t n_allow;
    char *token, *token_file, *user; /* OAUTHBEARER */
    struct hk_access *access;        /* … or tokens of an endpoint; NULL: none */
    const char *login_hint;
    struct hk_kafka_sink *sinks;
    struct hk_kafka_producer *producers, *usual, *alone;
    struct hk_kafka_said said;
    uint64_t not_before_ms; /* after a fatal error */
    struct hk_kafka_record record;
    struct hk_buf shown_request, shown_response;
    unsigned depth; /* > 0: inside one of our callbacks from the loop */
};

/* What librdkafka's threads and the loop share; it lives as long as librdkafka's handle. */
struct hk_kafka_guard;

struct hk_kafka_topic {
    struct hk_kafka_topic *next;
    rd_kafka_topic_t *topic;
};

struct hk_kafka_producer {
    struct hk_kafka_producer *next;
    struct hk_kafka_client *client;
    struct hk_kafka_guard *guard;
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    struct hk_wake *wake;
    struct hk_kafka_entry *entries;
    struct hk_kafka_topic *topics; /* used last first */
    bool wants_token;              /* that the endpoint has been asked for */
    bool retired;
    rd_kafka_resp_err_t fatal; /* why */
    char fatal_text[HK_KAFKA_TEXT_MAX];
};

/* ---- client.c ---- */

/* One with the same settings on that loop, or a new one; connects to nothing. */
enum hk_code hk_kafka_client_get(struct hk_loop *loop, const struct hk_kafka_options *options,
                                 struct hk_kafka_client **out_client, struct hk_err *err) HK_MUSTCHECK;
/* Around all that may run a `done`. Sinks that were closed, and a client without any, go when the last one leaves. */
void hk_kafka_enter(struct hk_kafka_client *client);
void hk_kafka_leave(struct hk_kafka_client *client);
/* The producer to use now, made if there is none. HK_BUSY: not yet, after a fatal error. */
enum hk_code hk_kafka_client_producer(struct hk_kafka_client *client, bool alone,
                                      struct hk_kafka_producer **out, struct hk_err *err) HK_MUSTCHECK;
void hk_kafka_client_said(struct hk_kafka_client *client, rd_kafka_resp_err_t code, const char *text);
/* The settings of these options, and librdkafka's configuration of them; NULL: HK_INVALID. The settings hold secrets: wipe them. */
void hk_kafka_settings(struct hk_buf *out, const struct hk_kafka_options *options);
rd_kafka_conf_t *hk_kafka_conf(const struct hk_buf *settings, struct hk_err *err);

/* ---- producer.c ---- */

enum hk_code hk_kafka_producer_new(struct hk_kafka_client *client, bool alone, struct hk_kafka_producer **out,
                                   struct hk_err *err) HK_MUSTCHECK;
/* Bounded: what takes longer goes on in a thread of its own. Its entries come back to nobody. */
void hk_kafka_producer_free(struct hk_kafka_producer *producer);
/* RD_KAFKA_RESP_ERR_NO_ERROR: it has the entry. */
rd_kafka_resp_err_t hk_kafka_producer_take(struct hk_kafka_producer *producer, struct hk_kafka_entry *entry,
                                           const struct hk_kafka_record *record);
void hk_kafka_producer_purge(struct hk_kafka_producer *producer);
void hk_kafka_producer_retire(struct hk_kafka_producer *producer, rd_kafka_resp_err_t why, const char *text);

/* ---- guard.c: from any thread ---- */

struct hk_kafka_guard *hk_kafka_guard_new(const struct hk_cidr *allow, size_t n_allow);
void hk_kafka_guard_free(struct hk_kafka_guard *guard);
/* librdkafka's connect_cb. */
int hk_kafka_guard_connect(int fd, const struct sockaddr *addr, int len, const char *broker, void *guard);
/* A broker cannot be reached because its address was refused just now: which, and why. */
bool hk_kafka_guard_blocked(struct hk_kafka_guard *guard, char out[HK_KAFKA_TEXT_MAX]);
/* Where a broker was connected to; "" = never. */
void hk_kafka_guard_address(struct hk_kafka_guard *guard, int32_t broker, char *out, size_t room);

/* ---- token.c ---- */

/* librdkafka asks for a token of OAUTHBEARER: the one of the configuration or of a file, now; else when the endpoint has given one. */
void hk_kafka_token_refresh(struct hk_kafka_producer *producer);
/* Of the client whose endpoint is to be asked. HK_INVALID, HK_NOMEM. */
enum hk_code hk_kafka_token_open(struct hk_kafka_client *client, const struct hk_kafka_options *options,
                                 struct hk_err *err) HK_MUSTCHECK;
/* The same for a probe: waits for the endpoint, timeout_ms at the most. NONE: librdkafka has a token; else why not. */
enum hk_fault hk_kafka_token_fetch(rd_kafka_t *rk, const struct hk_kafka_options *options,
                                   uint64_t timeout_ms, char why[HK_KAFKA_TEXT_MAX]);

/* ---- probe.c ---- */

enum hk_code hk_kafka_probe(const struct hk_kafka_options *options, uint64_t timeout_ms,
                            char out[HK_KAFKA_PROBE_MAX], struct hk_err *err) HK_MUSTCHECK;

/* ---- kafka.c ---- */

/* librdkafka reports on an entry; it may be freed. */
void hk_kafka_entry_back(struct hk_kafka_entry *entry, struct hk_kafka_producer *producer,
                         const rd_kafka_message_t *message);
void hk_kafka_entry_free(struct hk_kafka_entry *entry);
void hk_kafka_sink_free(struct hk_kafka_sink *sink);
/* Those that were busy and are no more. */
void hk_kafka_rooms(struct hk_kafka_client *client);

#endif
