/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "observe/trace.h"
#include "payload/target.h"
#include "sink/http/header.h"
#include "sink/kafka/record.h"

#define TEXT_MAX         ((size_t)128 * 1024)
#define OWN_HEADERS_MAX  64
#define MESSAGE_ID_NAME  "message-id"
#define EVENT_TYPE_NAME  "event-type"
#define CORRELATION_NAME "correlation-id"

void hk_kafka_record_init(struct hk_kafka_record *record)
{
    hk_buf_init(&record->text, TEXT_MAX);
    record->topic[0] = '\0';
    record->n = 0;
}

void hk_kafka_record_fini(struct hk_kafka_record *record)
{
    hk_mem_wipe(record->text.data, record->text.len);
    hk_buf_fini(&record->text);
}

const char *hk_kafka_record_name(const struct hk_kafka_record *record, size_t i)
{
    return record->text.data + record->headers[i].at;
}

struct hk_str hk_kafka_record_value(const struct hk_kafka_record *record, size_t i)
{
    size_t at = record->headers[i].at + record->headers[i].name_len + 1u;
    return (struct hk_str){record->text.data + at, record->headers[i].value_len};
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

/* What stands in braces for a part of the message; false: nothing does. */
static bool stands_for(const char *at, const struct hk_message *msg, struct hk_str *out_value,
                       size_t *out_len)
{
    const struct {
        const char *name;
        struct hk_str value;
    } fields[] = {
        {"{event_type}", msg->event_type}, {"{message_key}", msg->key}, {"{destination}", msg->destination}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        *out_len = strlen(fields[i].name);
        *out_value = fields[i].value;
        if (strncmp(at, fields[i].name, *out_len) == 0)
            return true;
    }
    return false;
}

static enum hk_code make_topic(struct hk_kafka_record *record, const char *pattern,
                               const struct hk_message *msg, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_buf name;
    hk_buf_init(&name, 1024);
    for (const char *at = pattern; *at;) {
        struct hk_str value = {at, 1};
        size_t len = 1;
        if (*at != '{' || !stands_for(at, msg, &value, &len)) {
            value = (struct hk_str){at, 1};
            len = 1;
        }
        (void)hk_buf_add(&name, value.ptr, value.len);
        at += len;
    }
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

/* ---- headers ---- */

static bool has_header(const struct hk_kafka_record *record, struct hk_str name)
{
    for (size_t i = 0; i < record->n; i++)
        if (hk_str_eqi(hk_str_of(hk_kafka_record_name(record, i)), name))
            return true;
    return false;
}

static enum hk_code add_header(struct hk_kafka_record *record, struct hk_str name, struct hk_str value,
                               struct hk_err *err)
{
    if (record->n == HK_KAFKA_HEADERS_MAX)
        return hk_err_set(err, HK_INVALID, "headers: more than %d", OWN_HEADERS_MAX);
    size_t at = record->text.len;
    hk_buf_add(&record->text, name.ptr, name.len);
    hk_buf_addc(&record->text, '\0');
    enum hk_code rc = hk_buf_add(&record->text, value.ptr, value.len);
    if (rc != HK_OK)
        return rc == HK_NOMEM ? hk_err_set(err, HK_NOMEM, "out of memory")
                              : hk_err_set(err, HK_INVALID, "headers: more than %zu bytes", TEXT_MAX);
    record->headers[record->n].at = (uint32_t)at;
    record->headers[record->n].name_len = (uint32_t)name.len;
    record->headers[record->n].value_len = (uint32_t)value.len;
    record->headers[record->n].secret = hk_header_secret(name);
    record->n++;
    return HK_OK;
}

/* Nothing where there is nothing to say. */
static enum hk_code add_text(struct hk_kafka_record *record, const char *name, struct hk_str value,
                             struct hk_err *err)
{
    return value.len ? add_header(record, hk_str_of(name), value, err) : HK_OK;
}

static enum hk_code add_cloudevents(struct hk_kafka_record *record, const char *source,
                                    const struct hk_message *msg, struct hk_str traceparent,
                                    struct hk_err *err)
{
    if (!msg->event_type.len)
        return hk_err_set(err, HK_INVALID, "a CloudEvent needs an event_type");
    char time[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(msg->created_ms, time);

    const struct {
        const char *name;
        struct hk_str value;
    } attributes[] = {{"ce_specversion", hk_str_of("1.0")}, {"ce_id", msg->message_id},
                      {"ce_source", hk_str_of(source)},     {"ce_type", msg->event_type},
                      {"ce_time", hk_str_of(time)},         {"ce_traceparent", traceparent}};
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0] && rc == HK_OK; i++)
        rc = add_text(record, attributes[i].name, attributes[i].value, err);
    return rc;
}

static enum hk_code take_own(void *arg, struct hk_str name, struct hk_str value, struct hk_err *err)
{
    struct hk_kafka_record *record = arg;
    char shown[HK_SHOW_MAX];
    uint64_t ms = 0;
    if (hk_str_eq(name, hk_str_of(HK_TARGET_TIMEOUT)) && hk_parse_duration(value, &ms, NULL) == HK_OK &&
        ms > 0)
        return HK_OK; /* the engine has read it */
    if (hk_str_eq(name, hk_str_of(HK_TARGET_TIMEOUT)))
        return hk_err_set(err, HK_INVALID, "headers: " HK_TARGET_TIMEOUT " is not a duration such as 90s");
    if (hk_target_is_name(name))
        return hk_err_set(err, HK_INVALID, "headers: %s is only for destinations with \"url: message\"",
                          hk_show(name, shown));
    if (!name.len || name.len > HK_HEADER_NAME_MAX || memchr(name.ptr, '\0', name.len))
        return hk_err_set(err, HK_INVALID, "headers: %s is no name: it must have 1 to %d bytes",
                          hk_show(name, shown), HK_HEADER_NAME_MAX);
    return has_header(record, name) ? HK_OK : add_header(record, name, value, err); /* ours win */
}

/* What the message says of itself and its own headers may say otherwise. */
static enum hk_code add_unless(struct hk_kafka_record *record, const char *name, struct hk_str value,
                               struct hk_err *err)
{
    return has_header(record, hk_str_of(name)) ? HK_OK : add_text(record, name, value, err);
}

enum hk_code hk_kafka_record_build(struct hk_kafka_record *record, const struct hk_kafka_shape *shape,
                                   const struct hk_message *msg, uint32_t attempt, struct hk_err *err)
{
    char number[16];
    int len = snprintf(number, sizeof number, "%" PRIu32, attempt);
    struct hk_str type = msg->content_type.len ? msg->content_type : hk_str_of("application/json");
    struct hk_trace trace;
    struct hk_str traceparent = hk_trace_parse(msg->traceparent, &trace) ? msg->traceparent : hk_str_of("");
    hk_buf_reset(&record->text);
    record->n = 0;
    enum hk_code rc = make_topic(record, shape->topic, msg, err);
    if (rc == HK_OK)
        rc = add_text(record, "content-type", type, err);
    if (rc == HK_OK)
        rc = add_text(record, "traceparent", traceparent, err);
    if (rc == HK_OK && shape->ce_source)
        rc = add_cloudevents(record, shape->ce_source, msg, traceparent, err);
    if (rc == HK_OK && !shape->ce_source)
        rc = add_text(record, MESSAGE_ID_NAME, msg->message_id, err);
    if (rc == HK_OK && !hk_str_eq(msg->idempotency_key, msg->message_id))
        rc = add_text(record, "idempotency-key", msg->idempotency_key, err);
    if (rc == HK_OK)
        rc = add_text(record, "hikyaku-attempt", (struct hk_str){number, (size_t)len}, err);
    if (rc == HK_OK && msg->headers.len)
        rc = hk_headers_read(msg->headers, take_own, record, err);
    if (rc == HK_OK && !shape->ce_source)
        rc = add_unless(record, EVENT_TYPE_NAME, msg->event_type, err);
    return rc == HK_OK ? add_unless(record, CORRELATION_NAME, msg->correlation_id, err) : rc;
}

void hk_kafka_record_show(const struct hk_kafka_record *record, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    for (size_t i = 0; i < record->n; i++) {
        hk_json_key(&json, hk_kafka_record_name(record, i));
        hk_json_str(&json, record->headers[i].secret ? hk_str_of("***") : hk_kafka_record_value(record, i));
    }
    hk_json_end(&json);
}
