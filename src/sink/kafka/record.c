/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/show.h"
#include "base/str.h"
#include "observe/trace.h"
#include "payload/names.h"
#include "sink/kafka/record.h"

static const char *const reserved[] = {NULL};

static const struct hk_fields_rule plain = {.names = {[HK_FIELD_OF_ID] = "message-id",
                                                      [HK_FIELD_OF_TYPE] = "event-type",
                                                      [HK_FIELD_OF_CORRELATION] = "correlation-id",
                                                      [HK_FIELD_OF_TRACEPARENT] = "traceparent",
                                                      [HK_FIELD_OF_IDEMPOTENCY] = "idempotency-key",
                                                      [HK_FIELD_OF_CONTENT_TYPE] = "content-type",
                                                      [HK_FIELD_OF_ATTEMPT] = "hikyaku-attempt"},
                                            .ce_prefix = "ce_",
                                            .reserved = reserved};

/* Id and type are attributes of the event. */
static const struct hk_fields_rule event = {.names = {[HK_FIELD_OF_CORRELATION] = "correlation-id",
                                                      [HK_FIELD_OF_TRACEPARENT] = "traceparent",
                                                      [HK_FIELD_OF_IDEMPOTENCY] = "idempotency-key",
                                                      [HK_FIELD_OF_CONTENT_TYPE] = "content-type",
                                                      [HK_FIELD_OF_ATTEMPT] = "hikyaku-attempt"},
                                            .ce_prefix = "ce_",
                                            .reserved = reserved};

void hk_kafka_record_init(struct hk_kafka_record *record)
{
    hk_fields_init(&record->headers);
    record->topic[0] = '\0';
}

void hk_kafka_record_fini(struct hk_kafka_record *record)
{
    hk_fields_fini(&record->headers);
}

/* ---- the topic ---- */

static const char *topic_wrong(struct hk_str name)
{
    if (!name.len)
        return "is empty";
    if (name.len > HK_KAFKA_TOPIC_MAX)
        return "is longer than 249 characters";
    for (size_t i = 0; i < name.len; i++)
        if (!hk_ascii_isalpha(name.ptr[i]) && !hk_ascii_isdigit(name.ptr[i]) &&
            !memchr("._-", name.ptr[i], 3))
            return "may hold letters, digits, '.', '_' and '-' only";
    return hk_str_eq(name, hk_str_of(".")) || hk_str_eq(name, hk_str_of("..")) ? "is no name" : NULL;
}

static enum hk_code make_topic(struct hk_kafka_record *record, const char *pattern,
                               const struct hk_message *msg, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_buf name;
    const struct hk_name_values values = {msg->event_type, msg->key, msg->destination};
    hk_buf_init(&name, 1024);
    hk_name_expand(hk_str_of(pattern), &values, &name);
    enum hk_code rc = HK_OK;
    const char *wrong =
        hk_buf_status(&name) == HK_TOOBIG ? "is longer than 249 characters" : topic_wrong(hk_buf_str(&name));
    if (hk_buf_status(&name) == HK_NOMEM)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    else if (wrong || !hk_str_copy(record->topic, sizeof record->topic, hk_buf_str(&name)))
        rc = hk_err_set(err, HK_INVALID, "the topic %s of this message %s", hk_show(hk_buf_str(&name), shown),
                        wrong ? wrong : "is no name");
    hk_buf_fini(&name);
    return rc;
}

/* ---- the whole ---- */

enum hk_code hk_kafka_record_build(struct hk_kafka_record *record, const struct hk_kafka_shape *shape,
                                   const struct hk_message *msg, uint32_t attempt, struct hk_err *err)
{
    struct hk_trace trace;
    struct hk_message told = *msg;
    if (!told.content_type.len)
        told.content_type = hk_str_of("application/json");
    if (!hk_trace_parse(told.traceparent, &trace))
        told.traceparent = hk_str_of("");
    enum hk_code rc = make_topic(record, shape->topic, msg, err);
    if (rc != HK_OK)
        return rc;
    return hk_fields_make(&record->headers, shape->ce_source ? &event : &plain, shape->ce_source, &told,
                          attempt, err);
}

void hk_kafka_record_show(const struct hk_kafka_record *record, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_fields_show(&record->headers, &json);
    hk_json_end(&json);
}
