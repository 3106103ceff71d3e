/* SPDX-License-Identifier: Apache-2.0 */
/* MQTT 5 on the wire, as far as a publisher needs it. */
#ifndef HK_SINK_MQTT_WIRE_H
#define HK_SINK_MQTT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#include "base/buf.h"
#include "sink/broker/bytes.h"

#define HK_MQTT_IN_MAX   65536u /* of a packet: those to us are short */
#define HK_MQTT_TEXT_MAX 65535u

enum hk_mqtt_type {
    HK_MQTT_CONNECT = 1,
    HK_MQTT_CONNACK = 2,
    HK_MQTT_PUBLISH = 3,
    HK_MQTT_PUBACK = 4,
    HK_MQTT_PUBREC = 5,
    HK_MQTT_PUBREL = 6,
    HK_MQTT_PUBCOMP = 7,
    HK_MQTT_PINGREQ = 12,
    HK_MQTT_PINGRESP = 13,
    HK_MQTT_DISCONNECT = 14
};

enum {
    HK_MQTT_CONTENT_TYPE = 0x03,
    HK_MQTT_CORRELATION = 0x09,
    HK_MQTT_SESSION_EXPIRY = 0x11,
    HK_MQTT_SERVER_KEEP_ALIVE = 0x13,
    HK_MQTT_REASON = 0x1f,
    HK_MQTT_RECEIVE_MAXIMUM = 0x21,
    HK_MQTT_MAXIMUM_QOS = 0x24,
    HK_MQTT_RETAIN_AVAILABLE = 0x25,
    HK_MQTT_USER_PROPERTY = 0x26,
    HK_MQTT_MAXIMUM_PACKET = 0x27
};

/* A packet from the broker; what it does not say is as the protocol's default. */
struct hk_mqtt_packet {
    enum hk_mqtt_type type;
    uint16_t id; /* PUBACK, PUBREC, PUBCOMP */
    uint8_t code;
    struct hk_str reason;                 /* in words */
    uint16_t receive_maximum, keep_alive; /* CONNACK; keep_alive 0 = as we wanted */
    uint32_t maximum_packet;              /* 0 = no limit */
    uint8_t maximum_qos;
    bool retains;
};

enum hk_mqtt_next {
    HK_MQTT_WHOLE = HK_NEXT_WHOLE,
    HK_MQTT_MORE = HK_NEXT_MORE,
    HK_MQTT_WRONG = HK_NEXT_WRONG
};

enum hk_mqtt_next hk_mqtt_read(struct hk_str in, struct hk_mqtt_packet *out, size_t *out_used,
                               const char **out_why);

/* What a reason code is called; "" = it is none that we know. */
const char *hk_mqtt_reason(uint8_t code);
/* UTF-8 without control characters and what is no character: brokers end the connection for others. */
bool hk_mqtt_text_ok(struct hk_str s);
/* A topic that can be published to: UTF-8 without wildcards. */
bool hk_mqtt_topic_ok(struct hk_str s);

/* ---- what goes: errors are the buffer's ---- */

void hk_mqtt_u8(struct hk_buf *out, unsigned v);
void hk_mqtt_u16(struct hk_buf *out, unsigned v);
void hk_mqtt_u32(struct hk_buf *out, uint32_t v);
void hk_mqtt_size(struct hk_buf *out, size_t n); /* a variable byte integer: up to 268435455 */
void hk_mqtt_text(struct hk_buf *out, struct hk_str s);
void hk_mqtt_pair(struct hk_buf *out, struct hk_str name, struct hk_str value); /* a user property */
size_t hk_mqtt_size_len(size_t n);

#endif
