/* SPDX-License-Identifier: Apache-2.0 */
/* EventBridge, by its JSON protocol. An event's detail is a JSON object, written as a text. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "payload/scan.h"
#include "sink/aws/entry.h"
#include "sink/eventbridge/eventbridge.h"

enum {
    TIME_BYTES = 14 /* EventBridge counts so many for the time of an event */
};

/* ---- events ---- */

static bool is_object(struct hk_str s)
{
    size_t i = 0;
    while (i < s.len && (s.ptr[i] == ' ' || s.ptr[i] == '\t' || s.ptr[i] == '\r' || s.ptr[i] == '\n'))
        i++;
    return i < s.len && s.ptr[i] == '{' && hk_scan_check(s, NULL) == HK_OK;
}

static enum hk_code check_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry,
                                size_t *out_bytes, struct hk_err *err)
{
    struct hk_str type = entry->msg->event_type;
    if (!type.len || type.len > HK_EVENTBRIDGE_TYPE_MAX)
        return hk_err_set(err, HK_INVALID,
                          "EventBridge needs an event_type of 1 to %d bytes: it is the event's detail-type",
                          HK_EVENTBRIDGE_TYPE_MAX);
    if (!is_object(entry->body))
        return hk_err_set(err, HK_INVALID, "EventBridge takes JSON objects, and the payload is none");
    size_t bytes = TIME_BYTES + strlen(sink->source) + type.len + entry->body.len;
    if (bytes > HK_EVENTBRIDGE_EVENT_BYTES)
        return hk_err_set(err, HK_TOOBIG,
                          "the event has %zu bytes, which is over the %zu that EventBridge takes", bytes,
                          HK_EVENTBRIDGE_EVENT_BYTES);
    *out_bytes = bytes;
    return HK_OK;
}

static void begin_batch(const struct hk_aws_sink *sink, struct hk_json *json, struct hk_buf *out)
{
    (void)sink;
    (void)out;
    hk_json_object(json);
    hk_json_key(json, "Entries");
    hk_json_array(json);
}

static void add_entry(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry, size_t at,
                      struct hk_json *json, struct hk_buf *out)
{
    (void)at;
    (void)out;
    hk_json_object(json);
    hk_json_key(json, "EventBusName");
    hk_json_cstr(json, sink->to);
    hk_json_key(json, "Source");
    hk_json_cstr(json, sink->source);
    hk_json_key(json, "DetailType");
    hk_json_str(json, entry->msg->event_type);
    hk_json_key(json, "Time");
    hk_json_i64(json, entry->msg->created_ms / 1000);
    hk_json_key(json, "Detail");
    hk_json_str(json, entry->body);
    hk_json_end(json);
}

static void show_event(const struct hk_aws_sink *sink, const struct hk_message *msg, struct hk_json *json)
{
    hk_json_key(json, "Source");
    hk_json_cstr(json, sink->source);
    hk_json_key(json, "DetailType");
    hk_json_str(json, msg->event_type);
}

static const char *const gone[] = {"ResourceNotFound*", NULL};

const struct hk_aws_service hk_eventbridge_service = {.kind = "eventbridge",
                                                      .title = "EventBridge",
                                                      .signs = "events",
                                                      .target = "AWSEvents.PutEvents",
                                                      .content_type = HK_AWS_JSON_1_1,
                                                      .to = "event_bus",
                                                      .fields = &hk_aws_rule,
                                                      .max_entries = HK_AWS_BATCH_MAX,
                                                      .max_bytes = HK_EVENTBRIDGE_EVENT_BYTES,
                                                      .gone = gone,
                                                      .check = check_entry,
                                                      .begin = begin_batch,
                                                      .add = add_entry,
                                                      .read = hk_aws_events_read,
                                                      .show = show_event};

/* ---- the probe ---- */

static void ask(const char *to, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_json_key(&json, "Name");
    hk_json_cstr(&json, to);
    hk_json_end(&json);
}

static bool judge(struct hk_str body, char out[HK_AWS_PROBE_MAX])
{
    char name[256];
    if (!hk_aws_text_read(body, NULL, "Name", name, sizeof name))
        return false;
    (void)snprintf(out, HK_AWS_PROBE_MAX, "the event bus is there");
    return true;
}

const struct hk_aws_probe hk_eventbridge_probe = {
    .service = &hk_eventbridge_service, .target = "AWSEvents.DescribeEventBus", .ask = ask, .judge = judge};
