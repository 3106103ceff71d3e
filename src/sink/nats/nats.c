/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a destination of NATS JetStream. */
#include "base/mem.h"
#include "base/str.h"
#include "sink/nats/impl.h"

enum {
    TARGET_MAX = 4096,
    HEADERS_MAX = 512 * 1024,
    MORE_MAX = 4096
};

static struct hk_nats_sink *of(struct hk_broker *b)
{
    return (struct hk_nats_sink *)b;
}

static void forget(struct hk_broker *b, struct hk_flight *f)
{
    hk_flights_drop(&of(b)->conn->flights, f->number);
}

static void show(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    struct hk_buf *id = &b->target;
    hk_json_key(json, "subject");
    hk_json_str(json, hk_broker_target(b, of(b)->subject, msg));
    hk_json_key(json, "Nats-Msg-Id");
    hk_buf_reset(id);
    (void)hk_buf_add(id, msg->message_id.ptr, msg->message_id.len);
    if (of(b)->id_with_destination)
        (void)hk_buf_addf(id, "/%s", b->name);
    hk_json_str(json, hk_buf_str(id));
}

static void fini(struct hk_broker *b)
{
    hk_mem_free(of(b)->subject);
}

/* What makes this connection another one than those of other options. The caller wipes and frees it. */
static enum hk_code tell_apart(const struct hk_nats_options *o, struct hk_buf *more, struct hk_err *err)
{
    hk_buf_init(more, MORE_MAX);
    (void)hk_buf_addf(more, "%s %s %s", o->inbox ? o->inbox : HK_NATS_INBOX, o->token ? o->token : "",
                      o->creds_file ? o->creds_file : "");
    return hk_buf_status(more) == HK_OK ? HK_OK : hk_err_set(err, HK_INVALID, "token and inbox are too long");
}

static enum hk_code join(struct hk_broker *b, const void *options, struct hk_err *err)
{
    const struct hk_nats_options *o = options;
    struct hk_link_options link = {HK_LINK_OPTIONS(o), .ops = &hk_nats_conn_ops,
                                   .bytes = sizeof(struct hk_nats_conn), .scheme = &hk_scheme_nats, .arg = o};
    struct hk_nats_sink *n = of(b);
    struct hk_buf more;
    n->id_with_destination = o->id_with_destination;
    enum hk_code rc = hk_broker_pattern("subject", o->subject, &n->subject, err);
    if (rc == HK_OK && o->inbox && !hk_nats_subject_ok(hk_str_of(o->inbox)))
        rc = hk_err_set(err, HK_INVALID, "inbox: it must be words between dots");
    if (rc != HK_OK)
        return rc;
    rc = tell_apart(o, &more, err);
    link.more = hk_buf_cstr(&more);
    if (rc == HK_OK)
        rc = hk_broker_join(b, &link, err);
    hk_mem_wipe(more.data, more.len);
    hk_buf_fini(&more);
    n->conn = (struct hk_nats_conn *)b->link;
    return rc;
}

const struct hk_broker_ops hk_nats_broker_ops = {.name = "nats",
                                                 .bytes = sizeof(struct hk_nats_sink),
                                                 .target_max = TARGET_MAX,
                                                 .scratch_max = HEADERS_MAX,
                                                 .fields = &hk_nats_fields,
                                                 .open = join,
                                                 .write = hk_nats_publish,
                                                 .forget = forget,
                                                 .show = show,
                                                 .fini = fini};

enum hk_code hk_nats_open(struct hk_loop *loop, const struct hk_nats_options *o, struct hk_sink **out,
                          struct hk_err *err)
{
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    return hk_broker_open(&hk_nats_broker_ops, loop, &options, o, out, err);
}
