/* SPDX-License-Identifier: Apache-2.0 */
/* A message as one of PubsubMessage: data in base64, attributes, and an ordering key. What Pub/Sub would refuse for its form is refused
 * here, since it refuses the whole request with it. */
#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "sink/pubsub/impl.h"

enum {
    OVERHEAD = 24 /* of a message in protobuf, and a little more */
};

#define COMMON_NAMES                                                                                         \
    [HK_FIELD_OF_ID] = "message-id", [HK_FIELD_OF_TYPE] = "event-type",                                      \
    [HK_FIELD_OF_CORRELATION] = "correlation-id", [HK_FIELD_OF_TRACEPARENT] = "traceparent",                 \
    [HK_FIELD_OF_IDEMPOTENCY] = "idempotency-key", [HK_FIELD_OF_CONTENT_TYPE] = "content-type",              \
    [HK_FIELD_OF_ATTEMPT] = "hikyaku-attempt"

static const char *const reserved[] = {"goog*", "message-key", NULL};

const struct hk_fields_rule hk_pubsub_rule = {
    .names = {COMMON_NAMES, [HK_FIELD_OF_KEY] = "message-key"},
    .ce_prefix = "ce-",
    .reserved = reserved,
};

const struct hk_fields_rule hk_pubsub_ordered_rule = {
    .names = {COMMON_NAMES},
    .ce_prefix = "ce-",
    .reserved = reserved,
};

static bool is_utf8(struct hk_str s)
{
    while (s.len) {
        uint32_t c = 0;
        size_t n = hk_utf8_next(s, &c);
        if (c == HK_UTF8_BAD)
            return false;
        s = (struct hk_str){s.ptr + n, s.len - n};
    }
    return true;
}

static enum hk_code check_attribute(const struct hk_field *field, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    (void)hk_show(field->name, shown);
    if (!field->name.len || field->name.len > HK_PUBSUB_NAME_MAX)
        return hk_err_set(err, HK_INVALID, "attribute %s: a name has 1 to %d bytes in Pub/Sub", shown,
                          HK_PUBSUB_NAME_MAX);
    if (field->value.len > HK_PUBSUB_VALUE_MAX)
        return hk_err_set(err, HK_INVALID, "attribute %s has %zu bytes; Pub/Sub takes %d", shown,
                          field->value.len, HK_PUBSUB_VALUE_MAX);
    if (!is_utf8(field->name) || !is_utf8(field->value))
        return hk_err_set(err, HK_INVALID, "attribute %s is not UTF-8", shown);
    return HK_OK;
}

enum hk_code hk_pubsub_message_check(const struct hk_pubsub_message *m, size_t *out_bytes, struct hk_err *err)
{
    size_t bytes = OVERHEAD + m->data.len + m->ordering_key.len;
    for (size_t i = 0; i < m->fields->n; i++) {
        enum hk_code rc = check_attribute(&m->fields->at[i], err);
        if (rc != HK_OK)
            return rc;
        bytes += OVERHEAD + m->fields->at[i].name.len + m->fields->at[i].value.len;
    }
    if (m->ordering_key.len > HK_PUBSUB_KEY_MAX)
        return hk_err_set(err, HK_INVALID, "message_key has %zu bytes; Pub/Sub takes %d", m->ordering_key.len,
                          HK_PUBSUB_KEY_MAX);
    if (!is_utf8(m->ordering_key))
        return hk_err_set(err, HK_INVALID, "message_key is not UTF-8");
    if (bytes > HK_PUBSUB_MESSAGE_BYTES)
        return hk_err_set(err, HK_TOOBIG, "the message has %zu bytes with its attributes; Pub/Sub takes %zu",
                          bytes, HK_PUBSUB_MESSAGE_BYTES);
    *out_bytes = bytes;
    return HK_OK;
}

void hk_pubsub_message_write(struct hk_json *json, const struct hk_pubsub_message *m, struct hk_buf *base64)
{
    hk_buf_reset(base64);
    (void)hk_buf_add_base64(base64, m->data.ptr, m->data.len);
    hk_buf_inherit(json->out, base64);
    hk_json_object(json);
    hk_json_key(json, "data");
    hk_json_str(json, hk_buf_str(base64));
    hk_json_key(json, "attributes");
    hk_json_object(json);
    for (size_t i = 0; i < m->fields->n; i++) {
        char name[HK_PUBSUB_NAME_MAX + 1];
        (void)hk_str_copy(name, sizeof name, m->fields->at[i].name);
        hk_json_key(json, name);
        hk_json_str(json, m->fields->at[i].value);
    }
    hk_json_end(json);
    if (m->ordering_key.len) {
        hk_json_key(json, "orderingKey");
        hk_json_str(json, m->ordering_key);
    }
    hk_json_end(json);
}
