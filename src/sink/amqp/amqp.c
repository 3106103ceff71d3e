/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a destination of RabbitMQ. */
#include "base/mem.h"
#include "base/str.h"
#include "payload/names.h"
#include "sink/amqp/impl.h"

enum {
    TARGET_MAX = 4096
};

static struct hk_amqp_sink *of(struct hk_broker *b)
{
    return (struct hk_amqp_sink *)b;
}

static void end(struct hk_broker *b)
{
    hk_amqp_channel_lost(of(b));
}

static const char *blocked(const struct hk_broker *b)
{
    const struct hk_amqp_conn *conn = ((const struct hk_amqp_sink *)b)->conn;
    return conn->blocked ? conn->blocked_text : NULL;
}

static void show_text(struct hk_json *json, const char *key, struct hk_str value)
{
    if (!value.len)
        return;
    hk_json_key(json, key);
    hk_json_str(json, value);
}

static void show(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    struct hk_amqp_sink *a = of(b);
    hk_json_key(json, "exchange");
    hk_json_str(json, hk_broker_target(b, a->exchange, msg));
    hk_json_key(json, "routing_key");
    hk_json_str(json, hk_broker_target(b, a->routing_key, msg));
    show_text(json, "message-id", msg->message_id);
    show_text(json, "type", msg->event_type);
    show_text(json, "correlation-id", msg->correlation_id);
    show_text(json, "content-type", msg->content_type);
}

static void close_channel(struct hk_amqp_sink *a)
{
    struct hk_amqp_conn *conn = a->conn;
    uint16_t channel = a->channel;
    if (!channel || conn->link.phase != HK_LINK_READY ||
        !hk_amqp_put_bye(conn, channel, HK_AMQP_CHANNEL_CLOSE))
        return;
    hk_amqp_leave_channel(conn, channel, false);
    hk_link_flush(&conn->link);
}

static void fini(struct hk_broker *b)
{
    struct hk_amqp_sink *a = of(b);
    if (b->link)
        close_channel(a);
    hk_flights_fini(&a->flights);
    hk_mem_free(a->exchange);
    hk_mem_free(a->routing_key);
}

static enum hk_code join(struct hk_broker *b, const void *options, struct hk_err *err)
{
    const struct hk_amqp_options *o = options;
    const struct hk_link_options link = {HK_LINK_OPTIONS(o), .ops = &hk_amqp_conn_ops,
                                         .bytes = sizeof(struct hk_amqp_conn), .scheme = &hk_scheme_amqp};
    struct hk_amqp_sink *a = of(b);
    a->mandatory = o->mandatory;
    a->persistent = o->persistent;
    enum hk_code rc = hk_broker_pattern("exchange and routing_key", o->exchange, &a->exchange, err);
    if (rc == HK_OK)
        rc = hk_broker_pattern("exchange and routing_key", o->routing_key, &a->routing_key, err);
    if (rc == HK_OK)
        rc = hk_broker_join(b, &link, err);
    if (rc != HK_OK)
        return rc;
    a->conn = (struct hk_amqp_conn *)b->link;
    a->passive = a->exchange[0] && hk_name_is_fixed(hk_str_of(a->exchange)) &&
                 hk_broker_target(b, a->exchange, NULL).len <= HK_AMQP_SHORT_MAX;
    return HK_OK;
}

const struct hk_broker_ops hk_amqp_broker_ops = {.name = "amqp",
                                                 .bytes = sizeof(struct hk_amqp_sink),
                                                 .target_max = TARGET_MAX,
                                                 .fields = &hk_amqp_fields,
                                                 .open = join,
                                                 .end = end,
                                                 .may_write = hk_amqp_may_write,
                                                 .write = hk_amqp_publish,
                                                 .forget = hk_amqp_forget,
                                                 .blocked = blocked,
                                                 .show = show,
                                                 .fini = fini};

enum hk_code hk_amqp_open(struct hk_loop *loop, const struct hk_amqp_options *o, struct hk_sink **out,
                          struct hk_err *err)
{
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    return hk_broker_open(&hk_amqp_broker_ops, loop, &options, o, out, err);
}
