/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a destination of MQTT. */
#include "base/mem.h"
#include "sink/mqtt/impl.h"

enum {
    TARGET_MAX = 65536,
    PROPERTIES_MAX = 1024 * 1024
};

static struct hk_mqtt_sink *of(struct hk_broker *b)
{
    return (struct hk_mqtt_sink *)b;
}

static bool may_write(struct hk_broker *b, const struct hk_flight *f)
{
    (void)f;
    return hk_mqtt_has_slot(of(b)->conn);
}

/* The identifier stays in use: the broker will answer to it yet. */
static void forget(struct hk_broker *b, struct hk_flight *f)
{
    struct hk_mqtt_conn *conn = of(b)->conn;
    if (conn->slots[f->number].flight == f)
        conn->slots[f->number].flight = NULL;
}

static void show(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    hk_json_key(json, "topic");
    hk_json_str(json, hk_broker_target(b, of(b)->topic, msg));
    if (!msg->content_type.len)
        return;
    hk_json_key(json, "content-type");
    hk_json_str(json, msg->content_type);
}

static void fini(struct hk_broker *b)
{
    hk_mem_free(of(b)->topic);
}

static enum hk_code join(struct hk_broker *b, const void *options, struct hk_err *err)
{
    const struct hk_mqtt_options *o = options;
    const struct hk_link_options link = {
        HK_LINK_OPTIONS(o),        .ops = &hk_mqtt_conn_ops, .bytes = sizeof(struct hk_mqtt_conn),
        .scheme = &hk_scheme_mqtt, .more = o->client_id,     .arg = o};
    struct hk_mqtt_sink *m = of(b);
    m->qos = o->qos == 2 ? 2 : 1;
    m->retain = o->retain;
    m->require_subscriber = o->require_subscriber;
    enum hk_code rc = hk_broker_pattern("topic", o->topic, &m->topic, err);
    if (rc == HK_OK)
        rc = hk_broker_join(b, &link, err);
    m->conn = (struct hk_mqtt_conn *)b->link;
    return rc;
}

const struct hk_broker_ops hk_mqtt_broker_ops = {.name = "mqtt",
                                                 .bytes = sizeof(struct hk_mqtt_sink),
                                                 .target_max = TARGET_MAX,
                                                 .scratch_max = PROPERTIES_MAX,
                                                 .fields = &hk_mqtt_fields,
                                                 .open = join,
                                                 .may_write = may_write,
                                                 .write = hk_mqtt_publish,
                                                 .forget = forget,
                                                 .show = show,
                                                 .fini = fini};

enum hk_code hk_mqtt_open(struct hk_loop *loop, const struct hk_mqtt_options *o, struct hk_sink **out,
                          struct hk_err *err)
{
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    return hk_broker_open(&hk_mqtt_broker_ops, loop, &options, o, out, err);
}
