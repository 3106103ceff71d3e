/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP by hand. Field numbers are those of opentelemetry/proto (trace/v1/trace.proto, common/v1/common.proto,
 * resource/v1/resource.proto), each named where it is used. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "observe/otlp_impl.h"
#include "observe/protobuf.h"

#define SCOPE "hikyaku"

/* ---- spans ---- */

struct hk_span *hk_span_new(size_t room)
{
    struct hk_span *span = hk_mem_alloc(sizeof *span + room);
    if (!span)
        return NULL;
    memset(span, 0, sizeof *span);
    span->room = room;
    return span;
}

struct hk_str hk_span_keep(struct hk_span *span, struct hk_str text, size_t most)
{
    size_t left = span->room - span->used;
    size_t len = text.len < most ? text.len : most;
    len = len < left ? len : left;
    struct hk_str kept = {span->text + span->used, len};
    if (len)
        memcpy(span->text + span->used, text.ptr, len);
    span->used += len;
    return kept;
}

static void add_attr(struct hk_attr *attrs, size_t *n, size_t most, struct hk_attr attr)
{
    if (*n < most && (!attr.is_text || attr.text.len))
        attrs[(*n)++] = attr;
}

void hk_span_text(struct hk_span *span, const char *key, struct hk_str kept)
{
    add_attr(span->attrs, &span->n_attrs, HK_SPAN_ATTRS, (struct hk_attr){key, true, kept, 0});
}

void hk_span_number(struct hk_span *span, const char *key, int64_t value)
{
    add_attr(span->attrs, &span->n_attrs, HK_SPAN_ATTRS, (struct hk_attr){key, false, {NULL, 0}, value});
}

struct hk_span_event *hk_span_event(struct hk_span *span, const char *name, int64_t time_ns)
{
    if (span->n_events == HK_SPAN_EVENTS)
        return NULL;
    struct hk_span_event *event = &span->events[span->n_events++];
    *event = (struct hk_span_event){.name = name, .time_ns = time_ns};
    return event;
}

void hk_event_text(struct hk_span_event *event, const char *key, struct hk_str kept)
{
    add_attr(event->attrs, &event->n_attrs, HK_EVENT_ATTRS, (struct hk_attr){key, true, kept, 0});
}

void hk_event_number(struct hk_span_event *event, const char *key, int64_t value)
{
    add_attr(event->attrs, &event->n_attrs, HK_EVENT_ATTRS, (struct hk_attr){key, false, {NULL, 0}, value});
}

/* ---- protobuf ---- */

/* KeyValue: key 1, value 2; AnyValue: string_value 1, int_value 3. */
void hk_otlp_pb_attr(struct hk_buf *out, unsigned field, const struct hk_attr *attr)
{
    size_t pair = hk_pb_open(out, field);
    hk_pb_text(out, 1, hk_str_of(attr->key));
    size_t value = hk_pb_open(out, 2);
    if (attr->is_text)
        hk_pb_text(out, 1, attr->text);
    else
        hk_pb_number(out, 3, (uint64_t)attr->number);
    hk_pb_close(out, value);
    hk_pb_close(out, pair);
}

void hk_otlp_pb_resource(struct hk_buf *out, const struct hk_resource *resource)
{
    size_t at = hk_pb_open(out, 1); /* ResourceSpans.resource; Resource.attributes 1 */
    for (size_t i = 0; i < resource->n; i++) {
        struct hk_attr attr = {resource->attrs[i].key, true, hk_str_of(resource->attrs[i].value), 0};
        hk_otlp_pb_attr(out, 1, &attr);
    }
    hk_pb_close(out, at);
}

/* InstrumentationScope: name 1, version 2 */
void hk_otlp_pb_scope(struct hk_buf *out, const struct hk_resource *resource)
{
    size_t scope = hk_pb_open(out, 1);
    hk_pb_text(out, 1, hk_str_of(SCOPE));
    hk_pb_text(out, 2, hk_str_of(resource->version));
    hk_pb_close(out, scope);
}

/* Event: time_unix_nano 1, name 2, attributes 3. */
static void pb_event(struct hk_buf *out, const struct hk_span_event *event)
{
    size_t at = hk_pb_open(out, 11);
    hk_pb_fixed(out, 1, (uint64_t)event->time_ns, 8);
    hk_pb_text(out, 2, hk_str_of(event->name));
    for (size_t i = 0; i < event->n_attrs; i++)
        hk_otlp_pb_attr(out, 3, &event->attrs[i]);
    hk_pb_close(out, at);
}

/* Link: trace_id 1, span_id 2, flags 6. */
static void pb_link(struct hk_buf *out, const struct hk_trace *link)
{
    size_t at = hk_pb_open(out, 13);
    hk_pb_bytes(out, 1, link->trace_id, sizeof link->trace_id);
    hk_pb_bytes(out, 2, link->span_id, sizeof link->span_id);
    hk_pb_fixed(out, 6, link->sampled, 4);
    hk_pb_close(out, at);
}

/* Status: message 2, code 3 (2 = error). */
static void pb_status(struct hk_buf *out, const struct hk_span *span)
{
    if (!span->failed)
        return;
    size_t at = hk_pb_open(out, 15);
    if (span->failure.len)
        hk_pb_text(out, 2, span->failure);
    hk_pb_number(out, 3, 2);
    hk_pb_close(out, at);
}

/* Span: trace_id 1, span_id 2, parent_span_id 4, name 5, kind 6, start 7, end 8, attributes 9, events 11, links 13, status 15,
 * flags 16. */
static void pb_span(struct hk_buf *out, const struct hk_span *span)
{
    size_t at = hk_pb_open(out, 2); /* ScopeSpans.spans */
    hk_pb_bytes(out, 1, span->trace.trace_id, sizeof span->trace.trace_id);
    hk_pb_bytes(out, 2, span->trace.span_id, sizeof span->trace.span_id);
    if (span->has_parent)
        hk_pb_bytes(out, 4, span->parent_id, sizeof span->parent_id);
    hk_pb_text(out, 5, span->name);
    hk_pb_number(out, 6, span->kind);
    hk_pb_fixed(out, 7, (uint64_t)span->start_ns, 8);
    hk_pb_fixed(out, 8, (uint64_t)span->end_ns, 8);
    for (size_t i = 0; i < span->n_attrs; i++)
        hk_otlp_pb_attr(out, 9, &span->attrs[i]);
    for (size_t i = 0; i < span->n_events; i++)
        pb_event(out, &span->events[i]);
    if (span->has_link)
        pb_link(out, &span->link);
    pb_status(out, span);
    hk_pb_fixed(out, 16, span->trace.sampled, 4);
    hk_pb_close(out, at);
}

void hk_otlp_protobuf(const struct hk_resource *resource, struct hk_span *const *spans, size_t n,
                      struct hk_buf *out)
{
    size_t resource_spans = hk_pb_open(out, 1);
    hk_otlp_pb_resource(out, resource);
    size_t scope_spans = hk_pb_open(out, 2);
    hk_otlp_pb_scope(out, resource);
    for (size_t i = 0; i < n; i++)
        pb_span(out, spans[i]);
    hk_pb_close(out, scope_spans);
    hk_pb_close(out, resource_spans);
}

/* ---- JSON: ids in hexadecimal, 64-bit numbers as strings, enums as numbers ---- */

void hk_otlp_js_text(struct hk_json *json, const char *key, struct hk_str value)
{
    hk_json_key(json, key);
    hk_json_str(json, value);
}

void hk_otlp_js_u64(struct hk_json *json, const char *key, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    hk_otlp_js_text(json, key, hk_str_of(text));
}

void hk_otlp_js_attr(struct hk_json *json, const struct hk_attr *attr)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRId64, attr->number);
    hk_json_object(json);
    hk_otlp_js_text(json, "key", hk_str_of(attr->key));
    hk_json_key(json, "value");
    hk_json_object(json);
    hk_otlp_js_text(json, attr->is_text ? "stringValue" : "intValue", attr->is_text ? attr->text : hk_str_of(number));
    hk_json_end(json);
    hk_json_end(json);
}

void hk_otlp_js_attrs(struct hk_json *json, const struct hk_attr *attrs, size_t n)
{
    hk_json_key(json, "attributes");
    hk_json_array(json);
    for (size_t i = 0; i < n; i++)
        hk_otlp_js_attr(json, &attrs[i]);
    hk_json_end(json);
}

static void js_ids(struct hk_json *json, const struct hk_trace *trace)
{
    char trace_id[HK_TRACE_ID_TEXT], span_id[HK_SPAN_ID_TEXT];
    hk_trace_id_text(trace, trace_id);
    hk_span_id_text(trace->span_id, span_id);
    hk_otlp_js_text(json, "traceId", hk_str_of(trace_id));
    hk_otlp_js_text(json, "spanId", hk_str_of(span_id));
    hk_json_key(json, "flags");
    hk_json_u64(json, trace->sampled);
}

static void js_events(struct hk_json *json, const struct hk_span *span)
{
    hk_json_key(json, "events");
    hk_json_array(json);
    for (size_t i = 0; i < span->n_events; i++) {
        const struct hk_span_event *event = &span->events[i];
        hk_json_object(json);
        hk_otlp_js_u64(json, "timeUnixNano", (uint64_t)event->time_ns);
        hk_otlp_js_text(json, "name", hk_str_of(event->name));
        hk_otlp_js_attrs(json, event->attrs, event->n_attrs);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void js_link_and_status(struct hk_json *json, const struct hk_span *span)
{
    if (span->has_link) {
        hk_json_key(json, "links");
        hk_json_array(json);
        hk_json_object(json);
        js_ids(json, &span->link);
        hk_json_end(json);
        hk_json_end(json);
    }
    hk_json_key(json, "status");
    hk_json_object(json);
    if (span->failed) {
        hk_otlp_js_text(json, "message", span->failure);
        hk_json_key(json, "code");
        hk_json_u64(json, 2);
    }
    hk_json_end(json);
}

static void js_span(struct hk_json *json, const struct hk_span *span)
{
    char parent[HK_SPAN_ID_TEXT];
    hk_json_object(json);
    js_ids(json, &span->trace);
    if (span->has_parent) {
        hk_span_id_text(span->parent_id, parent);
        hk_otlp_js_text(json, "parentSpanId", hk_str_of(parent));
    }
    hk_otlp_js_text(json, "name", span->name);
    hk_json_key(json, "kind");
    hk_json_u64(json, span->kind);
    hk_otlp_js_u64(json, "startTimeUnixNano", (uint64_t)span->start_ns);
    hk_otlp_js_u64(json, "endTimeUnixNano", (uint64_t)span->end_ns);
    hk_otlp_js_attrs(json, span->attrs, span->n_attrs);
    js_events(json, span);
    js_link_and_status(json, span);
    hk_json_end(json);
}

void hk_otlp_js_resource(struct hk_json *json, const struct hk_resource *resource)
{
    hk_json_key(json, "resource");
    hk_json_object(json);
    hk_json_key(json, "attributes");
    hk_json_array(json);
    for (size_t i = 0; i < resource->n; i++) {
        struct hk_attr attr = {resource->attrs[i].key, true, hk_str_of(resource->attrs[i].value), 0};
        hk_otlp_js_attr(json, &attr);
    }
    hk_json_end(json);
    hk_json_end(json);
}

void hk_otlp_js_scope(struct hk_json *json, const struct hk_resource *resource)
{
    hk_json_key(json, "scope");
    hk_json_object(json);
    hk_otlp_js_text(json, "name", hk_str_of(SCOPE));
    hk_otlp_js_text(json, "version", hk_str_of(resource->version));
    hk_json_end(json);
}

void hk_otlp_js_begin(struct hk_json *json, const char *key)
{
    hk_json_key(json, key);
    hk_json_array(json);
    hk_json_object(json);
}

void hk_otlp_js_finish(struct hk_json *json)
{
    hk_json_end(json);
    hk_json_end(json);
}

void hk_otlp_json(const struct hk_resource *resource, struct hk_span *const *spans, size_t n,
                  struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_otlp_js_begin(&json, "resourceSpans");
    hk_otlp_js_resource(&json, resource);
    hk_otlp_js_begin(&json, "scopeSpans");
    hk_otlp_js_scope(&json, resource);
    hk_json_key(&json, "spans");
    hk_json_array(&json);
    for (size_t i = 0; i < n; i++)
        js_span(&json, spans[i]);
    hk_json_end(&json);
    hk_otlp_js_finish(&json);
    hk_otlp_js_finish(&json);
    hk_json_end(&json);
}
