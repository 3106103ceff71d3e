/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "sink/mqtt/wire.h"

enum {
    SIZE_BYTES_MAX = 4
};

/* ---- reading ---- */

/* A variable byte integer. False: it is longer than the protocol allows; cut: it is not all there. */
static bool take_size(struct hk_bytes *r, size_t *out)
{
    size_t v = 0;
    for (unsigned i = 0; i < SIZE_BYTES_MAX; i++) {
        unsigned byte = (unsigned)hk_bytes_take(r, 1);
        v |= (size_t)(byte & 0x7f) << 7 * i;
        if (r->cut || !(byte & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* How long a property's value is: so many bytes, a text (-1), two texts (-2), a variable integer (-3); 0 = there is no such one. */
static int shape_of(uint32_t id)
{
    switch (id) {
    case 0x01:
    case 0x17:
    case 0x19:
    case HK_MQTT_MAXIMUM_QOS:
    case HK_MQTT_RETAIN_AVAILABLE:
    case 0x28:
    case 0x29:
    case 0x2a:
        return 1;
    case HK_MQTT_SERVER_KEEP_ALIVE:
    case HK_MQTT_RECEIVE_MAXIMUM:
    case 0x22:
    case 0x23:
        return 2;
    case 0x02:
    case HK_MQTT_SESSION_EXPIRY:
    case 0x18:
    case HK_MQTT_MAXIMUM_PACKET:
        return 4;
    case HK_MQTT_CONTENT_TYPE:
    case 0x08:
    case HK_MQTT_CORRELATION:
    case 0x12:
    case 0x15:
    case 0x16:
    case 0x1a:
    case 0x1c:
    case HK_MQTT_REASON:
        return -1;
    case HK_MQTT_USER_PROPERTY:
        return -2;
    case 0x0b:
        return -3;
    default:
        return 0;
    }
}

static void note(struct hk_mqtt_packet *p, uint32_t id, uint32_t number, struct hk_str text)
{
    if (id == HK_MQTT_REASON)
        p->reason = text;
    else if (id == HK_MQTT_RECEIVE_MAXIMUM)
        p->receive_maximum = (uint16_t)number;
    else if (id == HK_MQTT_SERVER_KEEP_ALIVE)
        p->keep_alive = (uint16_t)number;
    else if (id == HK_MQTT_MAXIMUM_PACKET)
        p->maximum_packet = number;
    else if (id == HK_MQTT_MAXIMUM_QOS)
        p->maximum_qos = (uint8_t)number;
    else if (id == HK_MQTT_RETAIN_AVAILABLE)
        p->retains = number != 0;
}

static bool read_property(struct hk_bytes *r, struct hk_mqtt_packet *p)
{
    uint32_t id = (uint32_t)hk_bytes_take(r, 1);
    int shape = shape_of(id);
    size_t number = 0;
    struct hk_str text = {"", 0};
    if (shape > 0)
        number = hk_bytes_take(r, (size_t)shape);
    else if (shape == -3)
        return take_size(r, &number);
    else if (shape < 0)
        text = hk_bytes_take_text(r, hk_bytes_take(r, 2));
    if (shape == -2)
        text = hk_bytes_take_text(r, hk_bytes_take(r, 2));
    note(p, id, (uint32_t)number, text);
    return shape != 0;
}

static bool read_properties(struct hk_bytes *r, struct hk_mqtt_packet *p)
{
    size_t len = 0;
    if (!r->rest.len) /* all have their defaults */
        return true;
    if (!take_size(r, &len))
        return false;
    struct hk_bytes properties = {.rest = hk_bytes_take_text(r, len)};
    while (properties.rest.len)
        if (!read_property(&properties, p) || properties.cut)
            return false;
    return true;
}

static bool read_body(struct hk_bytes *r, struct hk_mqtt_packet *p)
{
    switch (p->type) {
    case HK_MQTT_CONNACK:
        (void)hk_bytes_take(r, 1); /* whether there was a session */
        p->code = (uint8_t)hk_bytes_take(r, 1);
        return read_properties(r, p) && !r->cut && p->receive_maximum;
    case HK_MQTT_PUBACK:
    case HK_MQTT_PUBREC:
    case HK_MQTT_PUBCOMP:
        p->id = (uint16_t)hk_bytes_take(r, 2);
        p->code = r->rest.len ? (uint8_t)hk_bytes_take(r, 1) : 0;
        return read_properties(r, p) && !r->cut;
    case HK_MQTT_DISCONNECT:
        p->code = r->rest.len ? (uint8_t)hk_bytes_take(r, 1) : 0;
        return read_properties(r, p) && !r->cut;
    case HK_MQTT_PINGRESP:
        return true;
    case HK_MQTT_CONNECT:
    case HK_MQTT_PUBLISH:
    case HK_MQTT_PUBREL:
    case HK_MQTT_PINGREQ:
        break;
    }
    return false;
}

enum hk_mqtt_next hk_mqtt_read(struct hk_str in, struct hk_mqtt_packet *out, size_t *out_used,
                               const char **out_why)
{
    struct hk_bytes r = {.rest = in};
    size_t len = 0;
    unsigned first = (unsigned)hk_bytes_take(&r, 1);
    *out_why = "the server says something other than MQTT 5";
    if (r.cut)
        return HK_MQTT_MORE;
    unsigned type = first >> 4;
    bool known = type == HK_MQTT_CONNACK ||
                 (type >= HK_MQTT_PUBACK && type <= HK_MQTT_PUBCOMP && type != HK_MQTT_PUBREL) ||
                 type == HK_MQTT_PINGRESP || type == HK_MQTT_DISCONNECT;
    if (!known || (first & 15))
        return HK_MQTT_WRONG;
    if (!take_size(&r, &len))
        return HK_MQTT_WRONG;
    if (r.cut)
        return HK_MQTT_MORE;
    if (len > HK_MQTT_IN_MAX) {
        *out_why = "the server sends a packet that is too long";
        return HK_MQTT_WRONG;
    }
    if (r.rest.len < len)
        return HK_MQTT_MORE;
    struct hk_bytes body = {.rest = hk_bytes_take_text(&r, len)};
    struct hk_mqtt_packet packet = {.type = (enum hk_mqtt_type)type,
                                    .reason = {"", 0},
                                    .receive_maximum = 65535,
                                    .maximum_qos = 2,
                                    .retains = true};
    if (!read_body(&body, &packet)) {
        *out_why = "the server sends a packet that cannot be read";
        return HK_MQTT_WRONG;
    }
    *out = packet;
    *out_used = in.len - r.rest.len;
    return HK_MQTT_WHOLE;
}

const char *hk_mqtt_reason(uint8_t code)
{
    static const struct {
        uint8_t code;
        const char *name;
    } reasons[] = {{0x10, "No matching subscribers"},
                   {0x80, "Unspecified error"},
                   {0x81, "Malformed Packet"},
                   {0x82, "Protocol Error"},
                   {0x83, "Implementation specific error"},
                   {0x84, "Unsupported Protocol Version"},
                   {0x85, "Client Identifier not valid"},
                   {0x86, "Bad User Name or Password"},
                   {0x87, "Not authorized"},
                   {0x88, "Server unavailable"},
                   {0x89, "Server busy"},
                   {0x8a, "Banned"},
                   {0x8b, "Server shutting down"},
                   {0x8d, "Keep Alive timeout"},
                   {0x8e, "Session taken over"},
                   {0x90, "Topic Name invalid"},
                   {0x91, "Packet Identifier in use"},
                   {0x93, "Receive Maximum exceeded"},
                   {0x95, "Packet too large"},
                   {0x96, "Message rate too high"},
                   {0x97, "Quota exceeded"},
                   {0x98, "Administrative action"},
                   {0x99, "Payload format invalid"},
                   {0x9a, "Retain not supported"},
                   {0x9b, "QoS not supported"},
                   {0x9c, "Use another server"},
                   {0x9d, "Server moved"},
                   {0x9f, "Connection rate exceeded"},
                   {0xa0, "Maximum connect time"}};

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].code == code)
            return reasons[i].name;
    return "";
}

static bool is_character(uint32_t c)
{
    return c >= 0x20 && (c < 0x7f || c > 0x9f) && (c < 0xfdd0 || c > 0xfdef) && (c & 0xfffe) != 0xfffe;
}

bool hk_mqtt_text_ok(struct hk_str s)
{
    if (s.len > HK_MQTT_TEXT_MAX || !hk_utf8_is_text(s))
        return false;
    while (s.len) {
        uint32_t c = 0;
        size_t n = hk_utf8_next(s, &c);
        if (!is_character(c))
            return false;
        s = (struct hk_str){s.ptr + n, s.len - n};
    }
    return true;
}

bool hk_mqtt_topic_ok(struct hk_str s)
{
    return s.len > 0 && hk_mqtt_text_ok(s) && !memchr(s.ptr, '+', s.len) && !memchr(s.ptr, '#', s.len);
}

/* ---- writing ---- */

void hk_mqtt_u8(struct hk_buf *out, unsigned v)
{
    hk_bytes_put(out, v, 1);
}

void hk_mqtt_u16(struct hk_buf *out, unsigned v)
{
    hk_bytes_put(out, v, 2);
}

void hk_mqtt_u32(struct hk_buf *out, uint32_t v)
{
    hk_bytes_put(out, v, 4);
}

void hk_mqtt_size(struct hk_buf *out, size_t n)
{
    do {
        hk_bytes_put(out, (uint32_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0)), 1);
        n >>= 7;
    } while (n);
}

size_t hk_mqtt_size_len(size_t n)
{
    return n < 128 ? 1 : n < 16384 ? 2 : n < 2097152 ? 3 : 4;
}

void hk_mqtt_text(struct hk_buf *out, struct hk_str s)
{
    size_t len = s.len < HK_MQTT_TEXT_MAX ? s.len : HK_MQTT_TEXT_MAX;
    hk_bytes_put(out, (uint32_t)len, 2);
    (void)hk_buf_add(out, s.ptr, len);
}

void hk_mqtt_pair(struct hk_buf *out, struct hk_str name, struct hk_str value)
{
    hk_bytes_put(out, HK_MQTT_USER_PROPERTY, 1);
    hk_mqtt_text(out, name);
    hk_mqtt_text(out, value);
}
