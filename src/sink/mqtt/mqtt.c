/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a destination of MQTT. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "payload/names.h"
#include "sink/mqtt/impl.h"

enum {
    HEARTBEAT_S = 10,
    NAME_MAX_BYTES = 65536,
    OUT_MAX = 2 * 1024 * 1024,
    MORE_MAX = 512
};

static void nothing(struct hk_broker *b)
{
    (void)b;
}

static bool may_write(struct hk_broker *b, const struct hk_flight *f)
{
    (void)f;
    return hk_mqtt_has_slot(((struct hk_mqtt_sink *)b)->conn);
}

/* The identifier stays in use: the broker will answer to it yet. */
static void forget(struct hk_broker *b, struct hk_flight *f)
{
    struct hk_mqtt_conn *conn = ((struct hk_mqtt_sink *)b)->conn;
    if (conn->slots[f->number].flight == f)
        conn->slots[f->number].flight = NULL;
}

static const char *blocked(const struct hk_broker *b)
{
    (void)b;
    return NULL;
}

static void show(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    hk_json_key(json, "topic");
    hk_json_str(json, hk_mqtt_topic((struct hk_mqtt_sink *)b, msg));
    if (!msg->content_type.len)
        return;
    hk_json_key(json, "content-type");
    hk_json_str(json, msg->content_type);
}

static void fini(struct hk_broker *b)
{
    struct hk_mqtt_sink *m = (struct hk_mqtt_sink *)b;
    hk_buf_fini(&m->name);
    hk_mem_free(m->topic);
}

const struct hk_broker_ops hk_mqtt_broker_ops = {.name = "mqtt",
                                                 .fields = &hk_mqtt_fields,
                                                 .begin = nothing,
                                                 .end = nothing,
                                                 .may_write = may_write,
                                                 .write = hk_mqtt_publish,
                                                 .forget = forget,
                                                 .blocked = blocked,
                                                 .show = show,
                                                 .fini = fini};

static const struct hk_sink_ops sink_ops = {.name = "mqtt",
                                            .send = hk_broker_send,
                                            .flush = hk_broker_flush,
                                            .abort = hk_broker_abort,
                                            .close = hk_broker_close};

static enum hk_code join(struct hk_mqtt_sink *m, const struct hk_mqtt_options *o, struct hk_err *err)
{
    char more[MORE_MAX];
    uint32_t heartbeat_s = o->heartbeat_s ? o->heartbeat_s : HEARTBEAT_S;
    (void)snprintf(more, sizeof more, "%u %s", heartbeat_s, o->client_id ? o->client_id : "");
    const struct hk_link_options link = {.ops = &hk_mqtt_conn_ops,
                                         .bytes = sizeof(struct hk_mqtt_conn),
                                         .scheme = &hk_scheme_mqtt,
                                         .url = o->url,
                                         .password = o->password,
                                         .ca_file = o->ca_file,
                                         .cert_file = o->cert_file,
                                         .key_file = o->key_file,
                                         .allow = o->allow,
                                         .n_allow = o->n_allow,
                                         .more = more};
    enum hk_code rc = hk_broker_join(&m->broker, &link, err);
    if (rc != HK_OK)
        return rc;
    m->conn = (struct hk_mqtt_conn *)m->broker.link;
    if (m->conn->out.max)
        return HK_OK;
    hk_buf_init(&m->conn->out, OUT_MAX);
    m->conn->heartbeat_s = heartbeat_s;
    m->conn->client_id = o->client_id ? hk_mem_strdup(o->client_id) : NULL;
    return o->client_id && !m->conn->client_id ? hk_err_set(err, HK_NOMEM, "out of memory") : HK_OK;
}

static enum hk_code set_up(struct hk_mqtt_sink *m, struct hk_loop *loop, const struct hk_mqtt_options *o,
                           struct hk_err *err)
{
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    const char *wrong = hk_name_wrong(hk_str_of(o->topic));
    hk_buf_init(&m->name, NAME_MAX_BYTES);
    enum hk_code rc = hk_broker_init(&m->broker, &hk_mqtt_broker_ops, &sink_ops, loop, &options, err);
    if (rc == HK_OK && wrong)
        rc = hk_err_set(err, HK_INVALID, "topic: %s", wrong);
    m->topic = hk_mem_strdup(o->topic ? o->topic : "");
    m->qos = o->qos == 2 ? 2 : 1;
    m->retain = o->retain;
    m->require_subscriber = o->require_subscriber;
    if (rc == HK_OK && !m->topic)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    return rc == HK_OK ? join(m, o, err) : rc;
}

enum hk_code hk_mqtt_open(struct hk_loop *loop, const struct hk_mqtt_options *o, struct hk_sink **out,
                          struct hk_err *err)
{
    struct hk_err why = {.message = "out of memory"};
    struct hk_mqtt_sink *m = hk_mem_zalloc(1, sizeof *m);
    if (!m)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = set_up(m, loop, o, &why);
    if (rc == HK_OK) {
        *out = &m->broker.sink;
        return HK_OK;
    }
    char shown[HK_SHOW_MAX];
    hk_broker_destroy(&m->broker);
    return hk_err_set(err, rc, "destination %s: %s", hk_show(hk_str_of(o->name), shown), why.message);
}
