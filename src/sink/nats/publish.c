/* SPDX-License-Identifier: Apache-2.0 */
/* One message as bytes: HPUB with the number of the inbox that its answer comes to. */
#include <inttypes.h>

#include "base/show.h"
#include "base/str.h"
#include "sink/http/header.h"
#include "sink/nats/impl.h"

static const char *const reserved[] = {"nats-*", NULL}; /* Nats-Rollup deletes the stream's messages */

const struct hk_fields_rule hk_nats_fields = {
    .names = {[HK_FIELD_OF_TYPE] = "Hikyaku-Event",
              [HK_FIELD_OF_KEY] = "Hikyaku-Key",
              [HK_FIELD_OF_CORRELATION] = "X-Correlation-Id",
              [HK_FIELD_OF_TRACEPARENT] = "traceparent",
              [HK_FIELD_OF_IDEMPOTENCY] = "Idempotency-Key",
              [HK_FIELD_OF_CONTENT_TYPE] = "Content-Type",
              [HK_FIELD_OF_ATTEMPT] = "Hikyaku-Attempt"},
    .ce_prefix = "ce-",
    .reserved = reserved,
};

/* A line break in one of them would be a header of somebody else's making. */
static enum hk_code check_values(const struct hk_fields *fields, const struct hk_message *msg,
                                 struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    for (size_t i = 0; i < fields->n; i++)
        if (!hk_header_value_ok(fields->at[i].value))
            return hk_err_set(err, HK_INVALID, "header %s would have a control character or be over %d bytes",
                              hk_show(fields->at[i].name, shown), HK_HEADER_VALUE_MAX);
    if (!msg->message_id.len || !hk_header_value_ok(msg->message_id))
        return hk_err_set(err, HK_INVALID, "message_id %s cannot stand in a header",
                          hk_show(msg->message_id, shown));
    return HK_OK;
}

static void add_headers(struct hk_nats_sink *n, const struct hk_message *msg, struct hk_buf *out)
{
    const struct hk_fields *fields = &n->broker.fields;
    (void)hk_buf_adds(out, "NATS/1.0\r\nNats-Msg-Id: ");
    (void)hk_buf_add(out, msg->message_id.ptr, msg->message_id.len);
    if (n->id_with_destination)
        (void)hk_buf_addf(out, "/%s", n->broker.name);
    (void)hk_buf_adds(out, "\r\n");
    for (size_t i = 0; i < fields->n; i++) {
        (void)hk_buf_add(out, fields->at[i].name.ptr, fields->at[i].name.len);
        (void)hk_buf_adds(out, ": ");
        (void)hk_buf_add(out, fields->at[i].value.ptr, fields->at[i].value.len);
        (void)hk_buf_adds(out, "\r\n");
    }
    (void)hk_buf_adds(out, "\r\n");
}

static enum hk_code make(struct hk_nats_sink *n, const struct hk_flight *f, struct hk_buf *head,
                         struct hk_err *err)
{
    struct hk_nats_conn *conn = n->conn;
    const struct hk_message *msg = f->msg;
    char shown[HK_SHOW_MAX];
    struct hk_str subject = hk_broker_target(&n->broker, n->subject, msg);
    if (hk_buf_status(&n->broker.target) != HK_OK || !hk_nats_subject_ok(subject))
        return hk_err_set(err, HK_INVALID, "subject %s cannot be published to: it must be words between dots",
                          hk_show(subject, shown));
    enum hk_code rc =
        hk_fields_make(&n->broker.fields, &hk_nats_fields, n->broker.ce_source, msg, f->attempt, err);
    if (rc == HK_OK)
        rc = check_values(&n->broker.fields, msg, err);
    if (rc != HK_OK)
        return rc;
    add_headers(n, msg, head);
    if (hk_buf_status(head) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    size_t whole = head->len + msg->payload.len;
    if (conn->info.max_payload && whole > conn->info.max_payload)
        return hk_err_set(err, HK_TOOBIG, "%zu bytes with headers: the server takes at most %" PRIu64, whole,
                          conn->info.max_payload);
    return HK_OK;
}

static bool put(struct hk_nats_sink *n, const struct hk_flight *f, const struct hk_buf *head)
{
    struct hk_nats_conn *conn = n->conn;
    struct hk_str subject = hk_buf_str(&n->broker.target), payload = f->msg->payload;
    (void)hk_buf_addf(&conn->link.out, "HPUB %.*s %s.%" PRIu64 " %zu %zu\r\n", (int)subject.len, subject.ptr,
                      conn->prefix, f->number, head->len, head->len + payload.len);
    (void)hk_buf_add(&conn->link.out, head->data, head->len);
    return hk_link_put(&conn->link) && hk_link_write(&conn->link, payload.ptr, payload.len) == HK_OK &&
           hk_link_write(&conn->link, "\r\n", 2) == HK_OK;
}

enum hk_code hk_nats_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err)
{
    struct hk_nats_sink *n = (struct hk_nats_sink *)b;
    struct hk_buf *head = &b->scratch;
    hk_buf_reset(head);
    enum hk_code rc = make(n, f, head, err);
    if (rc == HK_OK && !hk_flights_add(&n->conn->flights, f))
        rc = hk_err_set(err, HK_NOMEM, "the server leaves too many messages without an answer");
    if (rc == HK_OK && !put(n, f, head))
        rc = hk_err_set(err, HK_NOMEM, "out of memory"); /* and the link has failed */
    return rc;
}
