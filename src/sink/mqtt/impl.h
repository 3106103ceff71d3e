/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the MQTT sink share: conn.c is the connection and its acknowledgements, publish.c one message as a packet, mqtt.c
 * opens it. */
#ifndef HK_SINK_MQTT_IMPL_H
#define HK_SINK_MQTT_IMPL_H

#include "sink/broker/broker.h"
#include "sink/mqtt/mqtt.h"
#include "sink/mqtt/wire.h"

#define HK_MQTT_IDS 1024 /* packets under way on one connection; identifiers are 1 to this */

enum hk_mqtt_slot_phase {
    HK_MQTT_FREE = 0,
    HK_MQTT_SENT,    /* PUBLISH is out */
    HK_MQTT_RELEASED /* QoS 2: PUBREL is out */
};

/* A packet identifier. It is in use until the broker has answered, also when its flight has ended before. */
struct hk_mqtt_slot {
    enum hk_mqtt_slot_phase phase;
    struct hk_flight *flight; /* NULL: its time was up */
};

struct hk_mqtt_conn {
    struct hk_link link;
    char *client_id; /* NULL: one of our own making */
    struct hk_mqtt_slot slots[HK_MQTT_IDS + 1];
    size_t n_used, next; /* next: where to look for a free one */
    size_t receive_maximum;
    uint32_t maximum_packet; /* 0 = no limit */
    uint8_t maximum_qos;
    bool retains;
    uint64_t sequence; /* of confirmed messages, on this connection */
};

struct hk_mqtt_sink {
    struct hk_broker broker;
    struct hk_mqtt_conn *conn;
    char *topic;
    unsigned qos;
    bool retain, require_subscriber;
};

extern const struct hk_link_ops hk_mqtt_conn_ops;
extern const struct hk_broker_ops hk_mqtt_broker_ops;
extern const struct hk_fields_rule hk_mqtt_fields;

bool hk_mqtt_has_slot(const struct hk_mqtt_conn *conn);
/* A free identifier. There must be one. */
uint16_t hk_mqtt_take_slot(struct hk_mqtt_conn *conn, struct hk_flight *f);
enum hk_code hk_mqtt_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err);
/* What a reason code means. */
enum hk_fault hk_mqtt_fault(uint8_t code);

#endif
