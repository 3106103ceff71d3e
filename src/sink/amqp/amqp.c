/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a destination of RabbitMQ. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "payload/names.h"
#include "sink/amqp/impl.h"

enum {
    HEARTBEAT_S = 10,
    NAME_MAX_BYTES = 4096,
    OUT_MAX = HK_AMQP_FRAME_MAX + 64 * 1024 + 256 * 1024 /* one frame, and headers before they are counted */
};

static struct hk_amqp_sink *of(struct hk_broker *b)
{
    return (struct hk_amqp_sink *)b;
}

/* The channel opens when there is something to send. */
static void begin(struct hk_broker *b)
{
    (void)b;
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
    hk_json_str(json, hk_amqp_name(a, a->exchange, msg));
    hk_json_key(json, "routing_key");
    hk_json_str(json, hk_amqp_name(a, a->routing_key, msg));
    show_text(json, "message-id", msg->message_id);
    show_text(json, "type", msg->event_type);
    show_text(json, "correlation-id", msg->correlation_id);
    show_text(json, "content-type", msg->content_type);
}

static void close_channel(struct hk_amqp_sink *a)
{
    struct hk_amqp_conn *conn = a->conn;
    if (!a->channel || conn->link.phase != HK_LINK_READY)
        return;
    size_t at = hk_amqp_begin_method(&conn->out, a->channel, HK_AMQP_CHANNEL_CLOSE);
    hk_amqp_u16(&conn->out, 200);
    hk_amqp_short(&conn->out, hk_str_of("bye"));
    hk_amqp_u32(&conn->out, 0);
    hk_amqp_end(&conn->out, at);
    uint16_t channel = a->channel;
    if (hk_amqp_put(conn)) {
        hk_amqp_leave_channel(conn, channel, false);
        hk_link_flush(&conn->link);
    }
}

static void fini(struct hk_broker *b)
{
    struct hk_amqp_sink *a = of(b);
    if (b->link)
        close_channel(a);
    hk_flights_fini(&a->flights);
    hk_buf_fini(&a->name);
    hk_mem_free(a->exchange);
    hk_mem_free(a->routing_key);
}

const struct hk_broker_ops hk_amqp_broker_ops = {.name = "amqp",
                                                 .fields = &hk_amqp_fields,
                                                 .begin = begin,
                                                 .end = end,
                                                 .may_write = hk_amqp_may_write,
                                                 .write = hk_amqp_publish,
                                                 .forget = hk_amqp_forget,
                                                 .blocked = blocked,
                                                 .show = show,
                                                 .fini = fini};

static const struct hk_sink_ops sink_ops = {.name = "amqp",
                                            .send = hk_broker_send,
                                            .flush = hk_broker_flush,
                                            .abort = hk_broker_abort,
                                            .close = hk_broker_close};

static enum hk_code join(struct hk_amqp_sink *a, const struct hk_amqp_options *o, struct hk_err *err)
{
    char more[32];
    uint32_t heartbeat_s = o->heartbeat_s ? o->heartbeat_s : HEARTBEAT_S;
    (void)snprintf(more, sizeof more, "heartbeat %u", heartbeat_s);
    const struct hk_link_options link = {.ops = &hk_amqp_conn_ops,
                                         .bytes = sizeof(struct hk_amqp_conn),
                                         .scheme = &hk_scheme_amqp,
                                         .url = o->url,
                                         .password = o->password,
                                         .ca_file = o->ca_file,
                                         .cert_file = o->cert_file,
                                         .key_file = o->key_file,
                                         .allow = o->allow,
                                         .n_allow = o->n_allow,
                                         .more = more};
    enum hk_code rc = hk_broker_join(&a->broker, &link, err);
    if (rc != HK_OK)
        return rc;
    a->conn = (struct hk_amqp_conn *)a->broker.link;
    a->conn->heartbeat_s = (uint16_t)heartbeat_s;
    if (!a->conn->out.max)
        hk_buf_init(&a->conn->out, OUT_MAX);
    return HK_OK;
}

static enum hk_code set_up(struct hk_amqp_sink *a, struct hk_loop *loop, const struct hk_amqp_options *o,
                           struct hk_err *err)
{
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    const char *wrong = hk_name_wrong(hk_str_of(o->exchange));
    wrong = wrong ? wrong : hk_name_wrong(hk_str_of(o->routing_key));
    hk_buf_init(&a->name, NAME_MAX_BYTES);
    enum hk_code rc = hk_broker_init(&a->broker, &hk_amqp_broker_ops, &sink_ops, loop, &options, err);
    if (rc == HK_OK && wrong)
        rc = hk_err_set(err, HK_INVALID, "exchange and routing_key: %s", wrong);
    a->exchange = hk_mem_strdup(o->exchange ? o->exchange : "");
    a->routing_key = hk_mem_strdup(o->routing_key ? o->routing_key : "");
    a->mandatory = o->mandatory;
    a->persistent = o->persistent;
    if (rc == HK_OK && (!a->exchange || !a->routing_key))
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = join(a, o, err);
    a->passive = rc == HK_OK && a->exchange[0] && hk_name_is_fixed(hk_str_of(a->exchange)) &&
                 hk_amqp_name(a, a->exchange, NULL).len <= HK_AMQP_SHORT_MAX;
    return rc;
}

enum hk_code hk_amqp_open(struct hk_loop *loop, const struct hk_amqp_options *o, struct hk_sink **out,
                          struct hk_err *err)
{
    struct hk_err why = {.message = "out of memory"};
    struct hk_amqp_sink *a = hk_mem_zalloc(1, sizeof *a);
    if (!a)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = set_up(a, loop, o, &why);
    if (rc == HK_OK) {
        *out = &a->broker.sink;
        return HK_OK;
    }
    char shown[HK_SHOW_MAX];
    hk_broker_destroy(&a->broker);
    return hk_err_set(err, rc, "destination %s: %s", hk_show(hk_str_of(o->name), shown), why.message);
}
