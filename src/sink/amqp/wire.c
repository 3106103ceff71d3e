/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "sink/amqp/wire.h"

enum {
    FRAME_HEAD = 7, /* type, channel, length */
    FRAME_END = 0xce
};

/* ---- reading ---- */

static struct hk_str take_short(struct hk_bytes *r)
{
    return hk_bytes_take_text(r, (size_t)hk_bytes_take(r, 1));
}

static struct hk_str take_long(struct hk_bytes *r)
{
    return hk_bytes_take_text(r, (size_t)hk_bytes_take(r, 4));
}

enum hk_amqp_next hk_amqp_read_frame(struct hk_str in, struct hk_amqp_frame *out, size_t *out_used,
                                     const char **out_why)
{
    struct hk_bytes r = {.rest = in};
    if (in.len && in.ptr[0] == 'A') {
        *out_why = "the server does not speak AMQP 0-9-1";
        return HK_AMQP_WRONG;
    }
    unsigned type = in.len ? (unsigned char)in.ptr[0] : HK_AMQP_METHOD;
    if (type != HK_AMQP_METHOD && type != HK_AMQP_HEADER && type != HK_AMQP_BODY &&
        type != HK_AMQP_HEARTBEAT) {
        *out_why = "the server sends something other than AMQP";
        return HK_AMQP_WRONG;
    }
    if (in.len < FRAME_HEAD)
        return HK_AMQP_MORE;
    struct hk_amqp_frame frame = {.type = (uint8_t)hk_bytes_take(&r, 1),
                                  .channel = (uint16_t)hk_bytes_take(&r, 2)};
    uint64_t len = hk_bytes_take(&r, 4);
    if (len > HK_AMQP_FRAME_MAX) {
        *out_why = "the server sends a frame that is too long";
        return HK_AMQP_WRONG;
    }
    if (r.rest.len < len + 1)
        return HK_AMQP_MORE;
    frame.payload = hk_bytes_take_text(&r, (size_t)len);
    if (hk_bytes_take(&r, 1) != FRAME_END) {
        *out_why = "the server sends a frame without its end";
        return HK_AMQP_WRONG;
    }
    *out = frame;
    *out_used = FRAME_HEAD + (size_t)len + 1;
    return HK_AMQP_WHOLE;
}

static void read_close(struct hk_bytes *r, struct hk_amqp_method *m)
{
    m->code = (uint16_t)hk_bytes_take(r, 2);
    m->text = take_short(r);
    m->about = (uint32_t)hk_bytes_take(r, 4);
}

bool hk_amqp_read_method(struct hk_str payload, struct hk_amqp_method *out)
{
    struct hk_bytes r = {.rest = payload};
    struct hk_amqp_method m = {.id = (uint32_t)hk_bytes_take(&r, 4)};
    switch (m.id) {
    case HK_AMQP_START:
        (void)hk_bytes_take(&r, 2); /* 0-9 */
        (void)take_long(&r);        /* the server's properties */
        m.mechanisms = take_long(&r);
        break;
    case HK_AMQP_TUNE:
        m.channel_max = (uint16_t)hk_bytes_take(&r, 2);
        m.frame_max = (uint32_t)hk_bytes_take(&r, 4);
        m.heartbeat = (uint16_t)hk_bytes_take(&r, 2);
        break;
    case HK_AMQP_CLOSE:
    case HK_AMQP_CHANNEL_CLOSE:
        read_close(&r, &m);
        break;
    case HK_AMQP_BLOCKED:
        m.text = take_short(&r);
        break;
    case HK_AMQP_FLOW:
        m.active = hk_bytes_take(&r, 1) & 1;
        break;
    case HK_AMQP_RETURN:
        m.code = (uint16_t)hk_bytes_take(&r, 2);
        m.text = take_short(&r);
        break;
    case HK_AMQP_ACK:
    case HK_AMQP_NACK:
        m.tag = hk_bytes_take(&r, 8);
        m.multiple = hk_bytes_take(&r, 1) & 1;
        break;
    default:
        break;
    }
    *out = m;
    return !r.cut;
}

/* Properties come in the order of their flags, from the highest: those before the message-id are passed over. */
bool hk_amqp_read_header(struct hk_str payload, struct hk_str *out_message_id)
{
    enum {
        FIRST = 15,
        HEADERS = 13,
        DELIVERY_MODE = 12,
        PRIORITY = 11,
        MESSAGE_ID = 7
    };

    struct hk_bytes r = {.rest = payload};
    (void)hk_bytes_take(&r, 12); /* class, weight, the body's size */
    unsigned flags = (unsigned)hk_bytes_take(&r, 2);
    *out_message_id = (struct hk_str){"", 0};
    for (unsigned bit = FIRST; bit >= MESSAGE_ID; bit--) {
        if (!(flags >> bit & 1u))
            continue;
        struct hk_str s = {"", 0};
        if (bit == HEADERS)
            (void)take_long(&r);
        else if (bit == DELIVERY_MODE || bit == PRIORITY)
            (void)hk_bytes_take(&r, 1);
        else
            s = take_short(&r);
        if (bit == MESSAGE_ID)
            *out_message_id = s;
    }
    return !r.cut;
}

/* ---- writing ---- */

void hk_amqp_u8(struct hk_buf *out, unsigned v)
{
    hk_bytes_put(out, v, 1);
}

void hk_amqp_u16(struct hk_buf *out, unsigned v)
{
    hk_bytes_put(out, v, 2);
}

void hk_amqp_u32(struct hk_buf *out, uint32_t v)
{
    hk_bytes_put(out, v, 4);
}

void hk_amqp_u64(struct hk_buf *out, uint64_t v)
{
    hk_bytes_put(out, v, 8);
}

void hk_amqp_short(struct hk_buf *out, struct hk_str s)
{
    size_t len = s.len < HK_AMQP_SHORT_MAX ? s.len : HK_AMQP_SHORT_MAX;
    hk_bytes_put(out, len, 1);
    (void)hk_buf_add(out, s.ptr, len);
}

void hk_amqp_long(struct hk_buf *out, struct hk_str s)
{
    hk_bytes_put(out, s.len, 4);
    (void)hk_buf_add(out, s.ptr, s.len);
}

size_t hk_amqp_begin(struct hk_buf *out, unsigned type, unsigned channel)
{
    hk_bytes_put(out, type, 1);
    hk_bytes_put(out, channel, 2);
    return hk_amqp_begin_table(out);
}

size_t hk_amqp_begin_method(struct hk_buf *out, unsigned channel, enum hk_amqp_id id)
{
    size_t at = hk_amqp_begin(out, HK_AMQP_METHOD, channel);
    hk_bytes_put(out, (uint64_t)id, 4);
    return at;
}

void hk_amqp_end(struct hk_buf *out, size_t at)
{
    hk_amqp_end_table(out, at);
    hk_bytes_put(out, FRAME_END, 1);
}

size_t hk_amqp_begin_table(struct hk_buf *out)
{
    size_t at = out->len;
    hk_bytes_put(out, 0, 4);
    return at;
}

void hk_amqp_end_table(struct hk_buf *out, size_t at)
{
    if (hk_buf_status(out) != HK_OK)
        return;
    size_t len = out->len - at - 4;
    for (size_t i = 0; i < 4; i++)
        out->data[at + i] = (char)(len >> 8 * (3 - i) & 0xff);
}
