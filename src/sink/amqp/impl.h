/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the RabbitMQ sink share. conn.c is the connection (greeting, heartbeats, blocked), channel.c a destination's
 * channel (confirms, returns, closes), publish.c one message as bytes, amqp.c opens it all. */
#ifndef HK_SINK_AMQP_IMPL_H
#define HK_SINK_AMQP_IMPL_H

#include "sink/amqp/amqp.h"
#include "sink/amqp/wire.h"
#include "sink/broker/broker.h"

#define HK_AMQP_SUSPECTS_MAX HK_BROKER_WINDOW

struct hk_amqp_sink;

struct hk_amqp_conn {
    struct hk_link link;
    uint32_t frame_max;
    uint16_t channel_max;
    bool blocked;
    char blocked_text[300];
    struct hk_amqp_sink **channels; /* by number; a closing one has no owner but is taken */
    unsigned char *taken;
    size_t n_channels; /* room in both; numbers begin with 1 */
};

enum hk_amqp_phase {
    HK_AMQP_NO_CHANNEL = 0,
    HK_AMQP_OPENING, /* open, confirms and the look at the exchange are on their way */
    HK_AMQP_CHANNEL_READY
};

struct hk_amqp_sink {
    struct hk_broker broker;
    struct hk_amqp_conn *conn;
    char *exchange, *routing_key;
    bool mandatory, persistent, passive; /* passive: the exchange can be looked for when the channel opens */
    enum hk_amqp_phase phase;
    uint16_t channel;
    bool flow_stopped;
    struct hk_flights flights; /* by delivery tag */
    /* A message that was returned: its code and words, until its header says which one it is. */
    bool returning;
    char return_code[8], return_words[256];
    /* What was under way when the broker closed the channel: one of these may be why. They go alone from then on. */
    uint64_t suspects[HK_AMQP_SUSPECTS_MAX];
    size_t n_suspects;
    bool alone; /* the one that is written is one of them */
};

extern const struct hk_link_ops hk_amqp_conn_ops;
extern const struct hk_broker_ops hk_amqp_broker_ops;
extern const struct hk_fields_rule hk_amqp_fields;

/* ---- conn.c ---- */

/* A method without arguments. */
bool hk_amqp_put_method(struct hk_amqp_conn *conn, unsigned channel, enum hk_amqp_id id);
/* A close with nothing to complain of: of the connection, or of a channel. */
bool hk_amqp_put_bye(struct hk_amqp_conn *conn, unsigned channel, enum hk_amqp_id id);
/* 0: none is free. */
uint16_t hk_amqp_take_channel(struct hk_amqp_conn *conn, struct hk_amqp_sink *owner);
/* It stays taken until the broker has confirmed the close; `now`: that is done. */
void hk_amqp_leave_channel(struct hk_amqp_conn *conn, uint16_t channel, bool now);

/* ---- channel.c ---- */

void hk_amqp_channel_open(struct hk_amqp_sink *a);
void hk_amqp_channel_method(struct hk_amqp_sink *a, const struct hk_amqp_method *m);
void hk_amqp_channel_header(struct hk_amqp_sink *a, struct hk_str payload);
void hk_amqp_channel_lost(struct hk_amqp_sink *a);
bool hk_amqp_may_write(struct hk_broker *b, const struct hk_flight *f);
void hk_amqp_forget(struct hk_broker *b, struct hk_flight *f);
/* What a reply code of the broker means. */
enum hk_fault hk_amqp_fault(unsigned code);

/* ---- publish.c ---- */

enum hk_code hk_amqp_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err);

#endif
