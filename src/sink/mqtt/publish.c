/* SPDX-License-Identifier: Apache-2.0 */
/* One message as a packet: topic, identifier, properties, payload. */
#include <inttypes.h>

#include "base/show.h"
#include "base/str.h"
#include "sink/mqtt/impl.h"

enum {
    PACKET_MAX = 268435455 /* what its length can say */
};

static const char *const reserved[] = {NULL};

const struct hk_fields_rule hk_mqtt_fields = {
    .names = {[HK_FIELD_OF_ID] = "id",
              [HK_FIELD_OF_TYPE] = "type",
              [HK_FIELD_OF_KEY] = "key",
              [HK_FIELD_OF_CORRELATION] = "correlation-id",
              [HK_FIELD_OF_TRACEPARENT] = "traceparent",
              [HK_FIELD_OF_IDEMPOTENCY] = "idempotency-key",
              [HK_FIELD_OF_ATTEMPT] = "attempt"},
    .ce_prefix = "ce-",
    .reserved = reserved,
};

/* Texts of MQTT are UTF-8 without control characters: a broker may end the connection for less. */
static enum hk_code check_texts(const struct hk_fields *fields, const struct hk_message *msg,
                                struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    for (size_t i = 0; i < fields->n; i++)
        if (!hk_mqtt_text_ok(fields->at[i].value))
            return hk_err_set(err, HK_INVALID, "property %s would not be text",
                              hk_show(fields->at[i].name, shown));
    return hk_mqtt_text_ok(msg->content_type) ? HK_OK
                                              : hk_err_set(err, HK_INVALID, "content_type is not text");
}

static enum hk_code check_limits(const struct hk_mqtt_sink *m, size_t whole, struct hk_err *err)
{
    const struct hk_mqtt_conn *conn = m->conn;
    if (m->qos > conn->maximum_qos)
        return hk_err_set(err, HK_INVALID, "the broker takes QoS %u at most", conn->maximum_qos);
    if (m->retain && !conn->retains)
        return hk_err_set(err, HK_INVALID, "the broker retains no messages");
    if (whole > PACKET_MAX || (conn->maximum_packet && whole > conn->maximum_packet))
        return hk_err_set(err, HK_TOOBIG, "%zu bytes with properties: the broker takes at most %" PRIu32,
                          whole, conn->maximum_packet ? conn->maximum_packet : (uint32_t)PACKET_MAX);
    return HK_OK;
}

static void add_properties(const struct hk_fields *fields, const struct hk_message *msg, struct hk_buf *out)
{
    if (msg->content_type.len) {
        hk_mqtt_u8(out, HK_MQTT_CONTENT_TYPE);
        hk_mqtt_text(out, msg->content_type);
    }
    for (size_t i = 0; i < fields->n; i++)
        hk_mqtt_pair(out, fields->at[i].name, fields->at[i].value);
}

static bool put(struct hk_mqtt_sink *m, struct hk_flight *f, const struct hk_buf *properties, size_t len)
{
    struct hk_mqtt_conn *conn = m->conn;
    struct hk_str payload = f->msg->payload;
    hk_mqtt_u8(&conn->link.out, HK_MQTT_PUBLISH << 4 | m->qos << 1 | (m->retain ? 1u : 0u));
    hk_mqtt_size(&conn->link.out, len);
    hk_mqtt_text(&conn->link.out, hk_buf_str(&m->broker.target));
    hk_mqtt_u16(&conn->link.out, hk_mqtt_take_slot(conn, f));
    hk_mqtt_size(&conn->link.out, properties->len);
    (void)hk_buf_add(&conn->link.out, properties->data, properties->len);
    return hk_link_put(&conn->link) && hk_link_write(&conn->link, payload.ptr, payload.len) == HK_OK;
}

enum hk_code hk_mqtt_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err)
{
    struct hk_mqtt_sink *m = (struct hk_mqtt_sink *)b;
    char shown[HK_SHOW_MAX];
    struct hk_buf *properties = &b->scratch;
    hk_buf_reset(properties);
    enum hk_code rc = hk_fields_make(&b->fields, &hk_mqtt_fields, b->ce_source, f->msg, f->attempt, err);
    struct hk_str topic = hk_broker_target(b, m->topic, f->msg);
    if (rc == HK_OK && (hk_buf_status(&m->broker.target) != HK_OK || !hk_mqtt_topic_ok(topic)))
        rc = hk_err_set(err, HK_INVALID, "topic %s cannot be published to", hk_show(topic, shown));
    if (rc == HK_OK)
        rc = check_texts(&b->fields, f->msg, err);
    if (rc == HK_OK)
        add_properties(&b->fields, f->msg, properties);
    if (rc == HK_OK && hk_buf_status(properties) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    size_t len =
        2 + topic.len + 2 + hk_mqtt_size_len(properties->len) + properties->len + f->msg->payload.len;
    if (rc == HK_OK)
        rc = check_limits(m, 1 + hk_mqtt_size_len(len) + len, err);
    if (rc == HK_OK && !put(m, f, properties, len))
        rc = hk_err_set(err, HK_NOMEM, "out of memory"); /* and the link has failed */
    return rc;
}
