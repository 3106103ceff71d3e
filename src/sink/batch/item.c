/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "payload/scan.h"
#include "payload/target.h"
#include "sink/batch/item.h"
#include "sink/http/body.h"
#include "sink/http/header.h"

#define JSON_TYPE "application/json"

static void put_text(struct hk_json *json, const char *key, struct hk_str value)
{
    if (!value.len)
        return;
    hk_json_key(json, key);
    hk_json_str(json, value);
}

/* ---- the message's own headers ---- */

static enum hk_code check_target(struct hk_str name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (hk_str_eq(name, hk_str_of(HK_TARGET_TIMEOUT))) /* the engine has read it */
        return HK_OK;
    return hk_err_set(
        err, HK_INVALID,
        "headers: %s is only for destinations with \"url: message\", and this one sends batches",
        hk_show(name, shown));
}

/* What could not be a header field of a request of its own is none here either: the receiver may make one of it. */
static enum hk_code put_header(void *arg, struct hk_str name, struct hk_str value, struct hk_err *err)
{
    struct hk_json *json = arg;
    char shown[HK_SHOW_MAX], key[HK_HEADER_NAME_MAX + 1];
    if (hk_target_is_name(name))
        return check_target(name, err);
    if (!hk_header_name_ok(name) || !hk_str_copy(key, sizeof key, name))
        return hk_err_set(err, HK_INVALID, "%s is not a name for a header field", hk_show(name, shown));
    if (hk_header_not_for_messages(name))
        return hk_err_set(err, HK_INVALID, "headers: %s is not for a message to set", hk_show(name, shown));
    if (!hk_header_value_ok(value))
        return hk_err_set(err, HK_INVALID,
                          "the value of header field %s has a control character or is over %d bytes",
                          hk_show(name, shown), HK_HEADER_VALUE_MAX);
    hk_json_key(json, key);
    hk_json_str(json, value);
    return HK_OK;
}

static enum hk_code put_headers(struct hk_json *json, struct hk_str headers, struct hk_err *err)
{
    if (!headers.len)
        return HK_OK;
    hk_json_key(json, "headers");
    hk_json_object(json);
    enum hk_code rc = hk_headers_read(headers, put_header, json, err);
    hk_json_end(json);
    return rc;
}

/* ---- the payload ---- */

/* Outside of strings JSON has line breaks as blank space alone, and inside of them none. */
static void join_lines(struct hk_buf *out)
{
    for (size_t i = 0; i < out->len; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
}

static void put_payload(struct hk_json *json, const struct hk_message *msg)
{
    struct hk_str type = msg->content_type.len ? msg->content_type : hk_str_of(JSON_TYPE);
    bool json_type = hk_body_is_json(type);
    if (!json_type || !hk_str_eq(type, hk_str_of(JSON_TYPE)))
        put_text(json, "content_type", type);
    if (json_type && hk_scan_check(msg->payload, NULL) == HK_OK) {
        hk_json_key(json, "payload");
        hk_json_raw(json, msg->payload);
    } else {
        hk_body_put_base64(json, "payload_base64", msg->payload);
    }
}

/* ---- the whole ---- */

static enum hk_code write_item(const struct hk_message *msg, uint32_t attempt, struct hk_buf *out,
                               struct hk_err *err)
{
    struct hk_json json;
    char time[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(msg->created_ms, time);
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    put_text(&json, "id", msg->message_id);
    put_text(&json, "type", msg->event_type);
    put_text(&json, "time", hk_str_of(time));
    hk_json_key(&json, "attempt");
    hk_json_u64(&json, attempt);
    put_text(&json, "key", msg->key);
    put_text(&json, "correlation_id", msg->correlation_id);
    put_text(&json, "idempotency_key", msg->idempotency_key);
    if (hk_request_is_traceparent(msg->traceparent))
        put_text(&json, "traceparent", msg->traceparent);
    enum hk_code rc = put_headers(&json, msg->headers, err);
    put_payload(&json, msg);
    hk_json_end(&json);
    return rc;
}

enum hk_code hk_item_write(enum hk_item_form form, const char *source, const struct hk_message *msg,
                           uint32_t attempt, struct hk_buf *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    hk_buf_reset(out);
    if (!msg->message_id.len || !hk_utf8_is_text(msg->message_id)) /* no result could name it */
        return hk_err_set(err, HK_INVALID, "message_id %s must be UTF-8 text",
                          hk_show(msg->message_id, shown));
    if (form == HK_ITEM_EVENT)
        return hk_body_event(source, msg, out, err);
    enum hk_code rc = write_item(msg, attempt, out, err);
    if (rc == HK_OK && form == HK_ITEM_LINE)
        join_lines(out);
    if (rc != HK_OK || hk_buf_status(out) == HK_OK)
        return rc;
    return hk_buf_status(out) == HK_NOMEM ? hk_err_set(err, HK_NOMEM, "out of memory")
                                          : hk_err_set(err, HK_INVALID, "the item would be too large");
}
