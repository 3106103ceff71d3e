/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "../unit/check.h"
#include "base/str.h"
#include "fake_mqtt.h"
#include "sink/mqtt/wire.h"

enum {
    BODY_MAX = 1 << 20,
    HELD_MAX = 64
};

struct session {
    struct mqtt_script *script;
    int fd;
    unsigned char *body;
    unsigned held[HELD_MAX], n_held;
};

static bool say(const struct session *s, struct hk_buf *out)
{
    assert_int_equal(hk_buf_status(out), HK_OK);
    bool ok = fake_write(s->fd, out->data, out->len);
    hk_buf_fini(out);
    return ok;
}

static bool answer(const struct session *s, unsigned type, unsigned id, unsigned code)
{
    struct hk_buf out;
    hk_buf_init(&out, 64);
    hk_mqtt_u8(&out, type << 4);
    hk_mqtt_size(&out, code ? 3 : 2);
    hk_mqtt_u16(&out, id);
    if (code)
        hk_mqtt_u8(&out, code);
    return say(s, &out);
}

static bool greet(const struct session *s)
{
    const struct mqtt_script *script = s->script;
    struct hk_buf out, properties;
    if (script->garbage)
        return fake_write(s->fd, script->garbage, strlen(script->garbage));
    hk_buf_init(&out, 64);
    hk_buf_init(&properties, 64);
    if (script->receive_max) {
        hk_mqtt_u8(&properties, HK_MQTT_RECEIVE_MAXIMUM);
        hk_mqtt_u16(&properties, script->receive_max);
    }
    if (script->maximum_packet) {
        hk_mqtt_u8(&properties, HK_MQTT_MAXIMUM_PACKET);
        hk_mqtt_u32(&properties, script->maximum_packet);
    }
    if (script->maximum_qos_1) {
        hk_mqtt_u8(&properties, HK_MQTT_MAXIMUM_QOS);
        hk_mqtt_u8(&properties, 1);
    }
    hk_mqtt_u8(&out, HK_MQTT_CONNACK << 4);
    hk_mqtt_size(&out, 3 + properties.len);
    hk_mqtt_u8(&out, 0);
    hk_mqtt_u8(&out, script->login_code);
    hk_mqtt_size(&out, properties.len);
    if (properties.len)
        (void)hk_buf_add(&out, properties.data, properties.len);
    hk_buf_fini(&properties);
    return say(s, &out);
}

static bool disconnect(const struct session *s)
{
    struct hk_buf out;
    hk_buf_init(&out, 64);
    hk_mqtt_u8(&out, HK_MQTT_DISCONNECT << 4);
    hk_mqtt_size(&out, 1);
    hk_mqtt_u8(&out, s->script->code);
    (void)say(s, &out);
    return false;
}

static bool acknowledge(struct session *s, unsigned qos, unsigned id, unsigned n)
{
    struct mqtt_script *script = s->script;
    unsigned type = qos == 2 ? HK_MQTT_PUBREC : HK_MQTT_PUBACK;
    unsigned code = script->refuse_every && n % script->refuse_every == 0 ? script->code : 0;
    if (!script->hold)
        return answer(s, type, id, code);
    assert_true(s->n_held < HELD_MAX);
    s->held[s->n_held++] = id;
    if (s->n_held > script->most)
        script->most = s->n_held;
    if (s->n_held < script->hold)
        return true;
    bool ok = true;
    while (ok && s->n_held)
        ok = answer(s, type, s->held[--s->n_held], code);
    return ok;
}

static bool published(struct session *s, unsigned first, size_t len)
{
    struct mqtt_script *script = s->script;
    unsigned n = ++script->published, qos = first >> 1 & 3;
    size_t topic = (size_t)s->body[0] << 8 | s->body[1];
    assert_true(qos >= 1 && qos <= 2 && topic + 4 <= len);
    unsigned id = (unsigned)s->body[topic + 2] << 8 | s->body[topic + 3];
    assert_true(id != 0);
    if (n == script->cut_at)
        return false;
    if (n == script->disconnect_at)
        return disconnect(s);
    if (script->silent_from && n >= script->silent_from)
        return true;
    return acknowledge(s, qos, id, n);
}

static bool read_packet(struct session *s)
{
    unsigned char first, byte;
    size_t len = 0;
    unsigned shift = 0;
    if (!fake_read(s->fd, &first, 1))
        return false;
    do {
        if (!fake_read(s->fd, &byte, 1))
            return false;
        len |= (size_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    assert_true(len <= BODY_MAX);
    if (len && !fake_read(s->fd, s->body, len))
        return false;
    if (s->script->mute)
        return true;
    switch (first >> 4) {
    case HK_MQTT_CONNECT:
        assert_memory_equal(s->body, "\0\4MQTT\5", 7);
        return greet(s);
    case HK_MQTT_PUBLISH:
        return published(s, first, len);
    case HK_MQTT_PUBREL:
        return answer(s, HK_MQTT_PUBCOMP, (unsigned)s->body[0] << 8 | s->body[1], 0);
    case HK_MQTT_PINGREQ:
        return fake_write(s->fd, "\xd0\x00", 2);
    default:
        return false;
    }
}

void fake_mqtt_serve(int fd, void *arg)
{
    struct session s = {.script = arg, .fd = fd, .body = malloc(BODY_MAX)};
    assert_non_null(s.body);
    while (read_packet(&s))
        ;
    free(s.body);
}
