/* SPDX-License-Identifier: Apache-2.0 */
/* AMQP 0-9-1 on the wire, as far as a publisher needs it: frames and methods as bytes, without a connection. What comes is read with
 * every length checked; what goes is written into a buffer. */
#ifndef HK_SINK_AMQP_WIRE_H
#define HK_SINK_AMQP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#include "base/buf.h"
#include "sink/broker/bytes.h"

#define HK_AMQP_FRAME_MAX 131072u /* the largest that we take, and ask for */
#define HK_AMQP_SHORT_MAX 255

enum {
    HK_AMQP_METHOD = 1,
    HK_AMQP_HEADER = 2,
    HK_AMQP_BODY = 3,
    HK_AMQP_HEARTBEAT = 8
};

/* Class and number of a method. */
#define HK_AMQP_ID(cls, number) ((uint32_t)(cls) << 16 | (number))

enum hk_amqp_id {
    HK_AMQP_START = HK_AMQP_ID(10, 10),
    HK_AMQP_START_OK = HK_AMQP_ID(10, 11),
    HK_AMQP_TUNE = HK_AMQP_ID(10, 30),
    HK_AMQP_TUNE_OK = HK_AMQP_ID(10, 31),
    HK_AMQP_OPEN = HK_AMQP_ID(10, 40),
    HK_AMQP_OPEN_OK = HK_AMQP_ID(10, 41),
    HK_AMQP_CLOSE = HK_AMQP_ID(10, 50),
    HK_AMQP_CLOSE_OK = HK_AMQP_ID(10, 51),
    HK_AMQP_BLOCKED = HK_AMQP_ID(10, 60),
    HK_AMQP_UNBLOCKED = HK_AMQP_ID(10, 61),
    HK_AMQP_CHANNEL_OPEN = HK_AMQP_ID(20, 10),
    HK_AMQP_CHANNEL_OPEN_OK = HK_AMQP_ID(20, 11),
    HK_AMQP_FLOW = HK_AMQP_ID(20, 20),
    HK_AMQP_FLOW_OK = HK_AMQP_ID(20, 21),
    HK_AMQP_CHANNEL_CLOSE = HK_AMQP_ID(20, 40),
    HK_AMQP_CHANNEL_CLOSE_OK = HK_AMQP_ID(20, 41),
    HK_AMQP_DECLARE = HK_AMQP_ID(40, 10),
    HK_AMQP_DECLARE_OK = HK_AMQP_ID(40, 11),
    HK_AMQP_PUBLISH = HK_AMQP_ID(60, 40),
    HK_AMQP_RETURN = HK_AMQP_ID(60, 50),
    HK_AMQP_ACK = HK_AMQP_ID(60, 80),
    HK_AMQP_NACK = HK_AMQP_ID(60, 120),
    HK_AMQP_SELECT = HK_AMQP_ID(85, 10),
    HK_AMQP_SELECT_OK = HK_AMQP_ID(85, 11)
};

/* ---- what comes ---- */

struct hk_amqp_frame {
    uint8_t type;
    uint16_t channel;
    struct hk_str payload;
};

enum hk_amqp_next {
    HK_AMQP_WHOLE = HK_NEXT_WHOLE,
    HK_AMQP_MORE = HK_NEXT_MORE,
    HK_AMQP_WRONG = HK_NEXT_WRONG
};

enum hk_amqp_next hk_amqp_read_frame(struct hk_str in, struct hk_amqp_frame *out, size_t *out_used,
                                     const char **out_why);

/* What a publisher wants to know of a method; the rest is zero. */
struct hk_amqp_method {
    uint32_t id;
    uint16_t code;                   /* close, return */
    struct hk_str text;              /* close, return, blocked: the broker's words */
    uint32_t about;                  /* close: the method that it is about, 0 = none */
    uint64_t tag;                    /* ack, nack */
    bool multiple;                   /* all up to the tag */
    bool active;                     /* flow */
    struct hk_str mechanisms;        /* start */
    uint16_t channel_max, heartbeat; /* tune */
    uint32_t frame_max;
};

/* False: it is cut short. A method that a publisher need not know has its id only. */
bool hk_amqp_read_method(struct hk_str payload, struct hk_amqp_method *out);
/* The content header of a message that was returned: its message-id, "" = none. False: cut short. */
bool hk_amqp_read_header(struct hk_str payload, struct hk_str *out_message_id);

/* ---- what goes: errors are the buffer's ---- */

void hk_amqp_u8(struct hk_buf *out, unsigned v);
void hk_amqp_u16(struct hk_buf *out, unsigned v);
void hk_amqp_u32(struct hk_buf *out, uint32_t v);
void hk_amqp_u64(struct hk_buf *out, uint64_t v);
void hk_amqp_short(struct hk_buf *out, struct hk_str s); /* at most HK_AMQP_SHORT_MAX bytes */
void hk_amqp_long(struct hk_buf *out, struct hk_str s);
/* A frame or a table, whose length is filled in at its end: `at` is what begin returned. */
size_t hk_amqp_begin(struct hk_buf *out, unsigned type, unsigned channel);
size_t hk_amqp_begin_method(struct hk_buf *out, unsigned channel, enum hk_amqp_id id);
void hk_amqp_end(struct hk_buf *out, size_t at);
size_t hk_amqp_begin_table(struct hk_buf *out);
void hk_amqp_end_table(struct hk_buf *out, size_t at);

#endif
