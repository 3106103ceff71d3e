/* SPDX-License-Identifier: Apache-2.0 */
/* One message as bytes: the method, the properties and headers, and its body in as many frames as it takes. */
#include "base/show.h"
#include "base/str.h"
#include "sink/amqp/impl.h"

enum {
    HAS_CONTENT_TYPE = 1 << 15,
    HAS_HEADERS = 1 << 13,
    HAS_DELIVERY_MODE = 1 << 12,
    HAS_CORRELATION_ID = 1 << 10,
    HAS_MESSAGE_ID = 1 << 7,
    HAS_TIMESTAMP = 1 << 6,
    HAS_TYPE = 1 << 5,
    AROUND_BODY = 8 /* bytes of a frame beside its payload */
};

static const char *const reserved[] = {"cc", "bcc", NULL}; /* routes of a message's own making */

const struct hk_fields_rule hk_amqp_fields = {
    .names = {[HK_FIELD_OF_KEY] = "hikyaku-key",
              [HK_FIELD_OF_TRACEPARENT] = "traceparent",
              [HK_FIELD_OF_IDEMPOTENCY] = "idempotency-key",
              [HK_FIELD_OF_ATTEMPT] = "hikyaku-attempt"},
    .ce_prefix = "cloudEvents_",
    .reserved = reserved,
};

static enum hk_code too_long(const char *what, struct hk_str s, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_INVALID, "%s %s is over %d bytes, which AMQP cannot carry", what,
                      hk_show(s, shown), HK_AMQP_SHORT_MAX);
}

static enum hk_code check_lengths(const struct hk_message *msg, struct hk_err *err)
{
    const struct {
        const char *what;
        struct hk_str s;
    } texts[] = {{"message_id", msg->message_id},
                 {"event_type", msg->event_type},
                 {"correlation_id", msg->correlation_id},
                 {"content_type", msg->content_type}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].s.len > HK_AMQP_SHORT_MAX)
            return too_long(texts[i].what, texts[i].s, err);
    return HK_OK;
}

static enum hk_code add_method(struct hk_amqp_sink *a, const struct hk_message *msg, struct hk_err *err)
{
    struct hk_buf *out = &a->conn->link.out;
    size_t at = hk_amqp_begin_method(out, a->channel, HK_AMQP_PUBLISH);
    hk_amqp_u16(out, 0);
    struct hk_str name = hk_broker_target(&a->broker, a->exchange, msg);
    if (name.len > HK_AMQP_SHORT_MAX || hk_buf_status(&a->broker.target) != HK_OK)
        return too_long("the exchange's name", name, err);
    hk_amqp_short(out, name);
    name = hk_broker_target(&a->broker, a->routing_key, msg);
    if (name.len > HK_AMQP_SHORT_MAX || hk_buf_status(&a->broker.target) != HK_OK)
        return too_long("the routing key", name, err);
    hk_amqp_short(out, name);
    hk_amqp_u8(out, a->mandatory);
    hk_amqp_end(out, at);
    return HK_OK;
}

static void add_headers(struct hk_buf *out, const struct hk_fields *fields)
{
    size_t table = hk_amqp_begin_table(out);
    for (size_t i = 0; i < fields->n; i++) {
        hk_amqp_short(out, fields->at[i].name);
        hk_amqp_u8(out, 'S');
        hk_amqp_long(out, fields->at[i].value);
    }
    hk_amqp_end_table(out, table);
}

static void add_properties(struct hk_amqp_sink *a, const struct hk_message *msg)
{
    struct hk_buf *out = &a->conn->link.out;
    unsigned flags = HAS_HEADERS | HAS_DELIVERY_MODE | HAS_MESSAGE_ID | HAS_TIMESTAMP;
    flags |= msg->content_type.len ? HAS_CONTENT_TYPE : 0u;
    flags |= msg->correlation_id.len ? HAS_CORRELATION_ID : 0u;
    flags |= msg->event_type.len ? HAS_TYPE : 0u;
    size_t at = hk_amqp_begin(out, HK_AMQP_HEADER, a->channel);
    hk_amqp_u16(out, 60);
    hk_amqp_u16(out, 0);
    hk_amqp_u64(out, msg->payload.len);
    hk_amqp_u16(out, flags);
    if (flags & HAS_CONTENT_TYPE)
        hk_amqp_short(out, msg->content_type);
    add_headers(out, &a->broker.fields);
    hk_amqp_u8(out, a->persistent ? 2 : 1);
    if (flags & HAS_CORRELATION_ID)
        hk_amqp_short(out, msg->correlation_id);
    hk_amqp_short(out, msg->message_id);
    hk_amqp_u64(out, (uint64_t)(msg->created_ms / 1000));
    if (flags & HAS_TYPE)
        hk_amqp_short(out, msg->event_type);
    hk_amqp_end(out, at);
}

static bool put_body(struct hk_amqp_sink *a, struct hk_str body)
{
    struct hk_amqp_conn *conn = a->conn;
    size_t most = conn->frame_max - AROUND_BODY;
    while (body.len) {
        size_t n = body.len < most ? body.len : most;
        size_t at = hk_amqp_begin(&conn->link.out, HK_AMQP_BODY, a->channel);
        (void)hk_buf_add(&conn->link.out, body.ptr, n);
        hk_amqp_end(&conn->link.out, at);
        if (!hk_link_put(&conn->link))
            return false;
        body = (struct hk_str){body.ptr + n, body.len - n};
    }
    return true;
}

enum hk_code hk_amqp_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err)
{
    struct hk_amqp_sink *a = (struct hk_amqp_sink *)b;
    struct hk_amqp_conn *conn = a->conn;
    const struct hk_message *msg = f->msg;
    hk_buf_reset(&conn->link.out);
    enum hk_code rc = check_lengths(msg, err);
    if (rc == HK_OK)
        rc = hk_fields_make(&b->fields, b->ops->fields, b->ce_source, msg, f->attempt, err);
    if (rc == HK_OK)
        rc = add_method(a, msg, err);
    size_t method = conn->link.out.len;
    if (rc == HK_OK)
        add_properties(a, msg);
    if (rc == HK_OK && conn->link.out.len - method > conn->frame_max)
        rc = hk_err_set(err, HK_INVALID, "headers: more than the %u bytes that the broker takes in one frame",
                        conn->frame_max);
    if (rc == HK_OK && !hk_flights_add(&a->flights, f))
        rc = hk_err_set(err, HK_NOMEM, "the broker leaves too many messages without a confirm");
    if (rc != HK_OK) {
        hk_buf_reset(&conn->link.out);
        return rc;
    }
    if (!hk_link_put(&conn->link) || !put_body(a, msg->payload))
        return hk_err_set(err, HK_NOMEM, "out of memory"); /* and the link has failed */
    return HK_OK;
}
