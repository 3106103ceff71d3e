/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a destination of NATS JetStream. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "payload/names.h"
#include "sink/nats/impl.h"

enum {
    HEARTBEAT_S = 10,
    NAME_MAX_BYTES = 4096,
    OUT_MAX = 640 * 1024,
    JWT_MAX = 64 * 1024,
    MORE_MAX = 4096
};

static void nothing(struct hk_broker *b)
{
    (void)b;
}

static bool may_write(struct hk_broker *b, const struct hk_flight *f)
{
    (void)b;
    (void)f;
    return true;
}

static void forget(struct hk_broker *b, struct hk_flight *f)
{
    hk_flights_drop(&((struct hk_nats_sink *)b)->conn->flights, f->number);
}

static const char *blocked(const struct hk_broker *b)
{
    (void)b;
    return NULL;
}

static void show(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    struct hk_nats_sink *n = (struct hk_nats_sink *)b;
    hk_json_key(json, "subject");
    hk_json_str(json, hk_nats_subject(n, msg));
    hk_json_key(json, "Nats-Msg-Id");
    hk_buf_reset(&n->name);
    (void)hk_buf_add(&n->name, msg->message_id.ptr, msg->message_id.len);
    if (n->id_with_destination)
        (void)hk_buf_addf(&n->name, "/%s", b->name);
    hk_json_str(json, hk_buf_str(&n->name));
}

static void fini(struct hk_broker *b)
{
    struct hk_nats_sink *n = (struct hk_nats_sink *)b;
    hk_buf_fini(&n->name);
    hk_mem_free(n->subject);
}

const struct hk_broker_ops hk_nats_broker_ops = {.name = "nats",
                                                 .fields = &hk_nats_fields,
                                                 .begin = nothing,
                                                 .end = nothing,
                                                 .may_write = may_write,
                                                 .write = hk_nats_publish,
                                                 .forget = forget,
                                                 .blocked = blocked,
                                                 .show = show,
                                                 .fini = fini};

static const struct hk_sink_ops sink_ops = {.name = "nats",
                                            .send = hk_broker_send,
                                            .flush = hk_broker_flush,
                                            .abort = hk_broker_abort,
                                            .close = hk_broker_close};

/* What is the connection's: the first destination that joins sets it, and all others have the same. */
static enum hk_code set_up_conn(struct hk_nats_conn *conn, const struct hk_nats_options *o, const char *inbox,
                                struct hk_err *err)
{
    if (conn->out.max)
        return HK_OK;
    hk_buf_init(&conn->out, OUT_MAX);
    hk_buf_init(&conn->jwt, JWT_MAX);
    hk_flights_reset(&conn->flights, 1);
    conn->inbox = hk_mem_strdup(inbox);
    conn->token = o->token ? hk_mem_strdup(o->token) : NULL;
    conn->has_key = o->creds_file != NULL;
    if (!conn->inbox || (o->token && !conn->token))
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return o->creds_file ? hk_nkey_load(o->creds_file, &conn->jwt, &conn->key, err) : HK_OK;
}

static enum hk_code join(struct hk_nats_sink *n, const struct hk_nats_options *o, struct hk_err *err)
{
    const char *inbox = o->inbox ? o->inbox : "_INBOX";
    uint32_t heartbeat_s = o->heartbeat_s ? o->heartbeat_s : HEARTBEAT_S;
    struct hk_buf more;
    hk_buf_init(&more, MORE_MAX);
    (void)hk_buf_addf(&more, "%u %s %s %s", heartbeat_s, inbox, o->token ? o->token : "",
                      o->creds_file ? o->creds_file : "");
    const struct hk_link_options link = {.ops = &hk_nats_conn_ops,
                                         .bytes = sizeof(struct hk_nats_conn),
                                         .scheme = &hk_scheme_nats,
                                         .url = o->url,
                                         .password = o->password,
                                         .ca_file = o->ca_file,
                                         .cert_file = o->cert_file,
                                         .key_file = o->key_file,
                                         .allow = o->allow,
                                         .n_allow = o->n_allow,
                                         .more = hk_buf_cstr(&more),
                                         .beat_ms = (uint64_t)heartbeat_s * 500};
    enum hk_code rc = hk_buf_status(&more) == HK_OK
                          ? hk_broker_join(&n->broker, &link, err)
                          : hk_err_set(err, HK_INVALID, "token and inbox are too long");
    hk_mem_wipe(more.data, more.len);
    hk_buf_fini(&more);
    if (rc != HK_OK)
        return rc;
    n->conn = (struct hk_nats_conn *)n->broker.link;
    return set_up_conn(n->conn, o, inbox, err);
}

static enum hk_code set_up(struct hk_nats_sink *n, struct hk_loop *loop, const struct hk_nats_options *o,
                           struct hk_err *err)
{
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    const char *wrong = hk_name_wrong(hk_str_of(o->subject));
    hk_buf_init(&n->name, NAME_MAX_BYTES);
    enum hk_code rc = hk_broker_init(&n->broker, &hk_nats_broker_ops, &sink_ops, loop, &options, err);
    if (rc == HK_OK && wrong)
        rc = hk_err_set(err, HK_INVALID, "subject: %s", wrong);
    if (rc == HK_OK && o->inbox && !hk_nats_subject_ok(hk_str_of(o->inbox)))
        rc = hk_err_set(err, HK_INVALID, "inbox: it must be words between dots");
    n->subject = hk_mem_strdup(o->subject ? o->subject : "");
    n->id_with_destination = o->id_with_destination;
    if (rc == HK_OK && !n->subject)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    return rc == HK_OK ? join(n, o, err) : rc;
}

enum hk_code hk_nats_open(struct hk_loop *loop, const struct hk_nats_options *o, struct hk_sink **out,
                          struct hk_err *err)
{
    struct hk_err why = {.message = "out of memory"};
    struct hk_nats_sink *n = hk_mem_zalloc(1, sizeof *n);
    if (!n)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = set_up(n, loop, o, &why);
    if (rc == HK_OK) {
        *out = &n->broker.sink;
        return HK_OK;
    }
    char shown[HK_SHOW_MAX];
    hk_broker_destroy(&n->broker);
    return hk_err_set(err, rc, "destination %s: %s", hk_show(hk_str_of(o->name), shown), why.message);
}
