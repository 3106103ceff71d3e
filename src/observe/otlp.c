/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP by hand. Field numbers are those of opentelemetry/proto (trace/v1/trace.proto, common/v1/common.proto,
 * resource/v1/resource.proto), each named where it is used. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "observe/otlp.h"

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

enum wire {
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5
};

static size_t varint(uint64_t value, uint8_t out[10])
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

static void pb_varint(struct hk_buf *out, uint64_t value)
{
    uint8_t bytes[10];
    (void)hk_buf_add(out, bytes, varint(value, bytes));
}

static void pb_tag(struct hk_buf *out, unsigned field, enum wire wire)
{
    pb_varint(out, (uint64_t)field << 3 | wire);
}

static void pb_number(struct hk_buf *out, unsigned field, uint64_t value)
{
    pb_tag(out, field, VARINT);
    pb_varint(out, value);
}

static void pb_fixed(struct hk_buf *out, unsigned field, uint64_t value, size_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    pb_tag(out, field, n == 8 ? FIXED64 : FIXED32);
    (void)hk_buf_add(out, bytes, n);
}

static void pb_bytes(struct hk_buf *out, unsigned field, const void *bytes, size_t n)
{
    pb_tag(out, field, BYTES);
    pb_varint(out, n);
    (void)hk_buf_add(out, bytes, n);
}

/* A message inside: one byte is kept for its length, and its content moves when that is too little. */
static size_t pb_open(struct hk_buf *out, unsigned field)
{
    pb_tag(out, field, BYTES);
    (void)hk_buf_addc(out, 0);
    return out->len;
}

static void pb_close(struct hk_buf *out, size_t at)
{
    static const char zeros[9] = {0};
    uint8_t bytes[10];
    if (hk_buf_status(out) != HK_OK)
        return;
    size_t len = out->len - at, n = varint(len, bytes);
    if (n > 1 && hk_buf_add(out, zeros, n - 1) != HK_OK)
        return;
    memmove(out->data + at + n - 1, out->data + at, len);
    memcpy(out->data + at - 1, bytes, n);
}

/* Readers of protobuf refuse a whole request for one string that is not UTF-8. */
static void pb_text(struct hk_buf *out, unsigned field, struct hk_str s)
{
    size_t at = pb_open(out, field), from = 0;
    for (size_t i = 0; i < s.len;) {
        uint32_t c = (unsigned char)s.ptr[i];
        size_t n = c < 0x80 ? 1 : hk_utf8_next((struct hk_str){s.ptr + i, s.len - i}, &c);
        if (c == HK_UTF8_BAD) {
            (void)hk_buf_add(out, s.ptr + from, i - from);
            (void)hk_buf_adds(out, "\xef\xbf\xbd");
            from = i + n;
        }
        i += n;
    }
    (void)hk_buf_add(out, s.ptr + from, s.len - from);
    pb_close(out, at);
}

/* KeyValue: key 1, value 2; AnyValue: string_value 1, int_value 3. */
static void pb_attr(struct hk_buf *out, unsigned field, const struct hk_attr *attr)
{
    size_t pair = pb_open(out, field);
    pb_text(out, 1, hk_str_of(attr->key));
    size_t value = pb_open(out, 2);
    if (attr->is_text)
        pb_text(out, 1, attr->text);
    else
        pb_number(out, 3, (uint64_t)attr->number);
    pb_close(out, value);
    pb_close(out, pair);
}

static void pb_resource(struct hk_buf *out, const struct hk_resource *resource)
{
    size_t at = pb_open(out, 1); /* ResourceSpans.resource; Resource.attributes 1 */
    for (size_t i = 0; i < resource->n; i++) {
        struct hk_attr attr = {resource->attrs[i].key, true, hk_str_of(resource->attrs[i].value), 0};
        pb_attr(out, 1, &attr);
    }
    pb_close(out, at);
}

/* Event: time_unix_nano 1, name 2, attributes 3. */
static void pb_event(struct hk_buf *out, const struct hk_span_event *event)
{
    size_t at = pb_open(out, 11);
    pb_fixed(out, 1, (uint64_t)event->time_ns, 8);
    pb_text(out, 2, hk_str_of(event->name));
    for (size_t i = 0; i < event->n_attrs; i++)
        pb_attr(out, 3, &event->attrs[i]);
    pb_close(out, at);
}

/* Link: trace_id 1, span_id 2, flags 6. */
static void pb_link(struct hk_buf *out, const struct hk_trace *link)
{
    size_t at = pb_open(out, 13);
    pb_bytes(out, 1, link->trace_id, sizeof link->trace_id);
    pb_bytes(out, 2, link->span_id, sizeof link->span_id);
    pb_fixed(out, 6, link->sampled, 4);
    pb_close(out, at);
}

/* Status: message 2, code 3 (2 = error). */
static void pb_status(struct hk_buf *out, const struct hk_span *span)
{
    if (!span->failed)
        return;
    size_t at = pb_open(out, 15);
    if (span->failure.len)
        pb_text(out, 2, span->failure);
    pb_number(out, 3, 2);
    pb_close(out, at);
}

/* Span: trace_id 1, span_id 2, parent_span_id 4, name 5, kind 6, start 7, end 8, attributes 9, events 11, links 13, status 15,
 * flags 16. */
static void pb_span(struct hk_buf *out, const struct hk_span *span)
{
    size_t at = pb_open(out, 2); /* ScopeSpans.spans */
    pb_bytes(out, 1, span->trace.trace_id, sizeof span->trace.trace_id);
    pb_bytes(out, 2, span->trace.span_id, sizeof span->trace.span_id);
    if (span->has_parent)
        pb_bytes(out, 4, span->parent_id, sizeof span->parent_id);
    pb_text(out, 5, span->name);
    pb_number(out, 6, span->kind);
    pb_fixed(out, 7, (uint64_t)span->start_ns, 8);
    pb_fixed(out, 8, (uint64_t)span->end_ns, 8);
    for (size_t i = 0; i < span->n_attrs; i++)
        pb_attr(out, 9, &span->attrs[i]);
    for (size_t i = 0; i < span->n_events; i++)
        pb_event(out, &span->events[i]);
    if (span->has_link)
        pb_link(out, &span->link);
    pb_status(out, span);
    pb_fixed(out, 16, span->trace.sampled, 4);
    pb_close(out, at);
}

void hk_otlp_protobuf(const struct hk_resource *resource, struct hk_span *const *spans, size_t n,
                      struct hk_buf *out)
{
    size_t resource_spans = pb_open(out, 1);
    pb_resource(out, resource);
    size_t scope_spans = pb_open(out, 2);
    size_t scope = pb_open(out, 1); /* InstrumentationScope: name 1, version 2 */
    pb_text(out, 1, hk_str_of(SCOPE));
    pb_text(out, 2, hk_str_of(resource->version));
    pb_close(out, scope);
    for (size_t i = 0; i < n; i++)
        pb_span(out, spans[i]);
    pb_close(out, scope_spans);
    pb_close(out, resource_spans);
}

/* ---- JSON: ids in hexadecimal, 64-bit numbers as strings, enums as numbers ---- */

static void js_text(struct hk_json *json, const char *key, struct hk_str value)
{
    hk_json_key(json, key);
    hk_json_str(json, value);
}

static void js_u64(struct hk_json *json, const char *key, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    js_text(json, key, hk_str_of(text));
}

static void js_attr(struct hk_json *json, const struct hk_attr *attr)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRId64, attr->number);
    hk_json_object(json);
    js_text(json, "key", hk_str_of(attr->key));
    hk_json_key(json, "value");
    hk_json_object(json);
    js_text(json, attr->is_text ? "stringValue" : "intValue", attr->is_text ? attr->text : hk_str_of(number));
    hk_json_end(json);
    hk_json_end(json);
}

static void js_attrs(struct hk_json *json, const struct hk_attr *attrs, size_t n)
{
    hk_json_key(json, "attributes");
    hk_json_array(json);
    for (size_t i = 0; i < n; i++)
        js_attr(json, &attrs[i]);
    hk_json_end(json);
}

static void js_ids(struct hk_json *json, const struct hk_trace *trace)
{
    char trace_id[HK_TRACE_ID_TEXT], span_id[HK_SPAN_ID_TEXT];
    hk_trace_id_text(trace, trace_id);
    hk_span_id_text(trace->span_id, span_id);
    js_text(json, "traceId", hk_str_of(trace_id));
    js_text(json, "spanId", hk_str_of(span_id));
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
        js_u64(json, "timeUnixNano", (uint64_t)event->time_ns);
        js_text(json, "name", hk_str_of(event->name));
        js_attrs(json, event->attrs, event->n_attrs);
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
        js_text(json, "message", span->failure);
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
        js_text(json, "parentSpanId", hk_str_of(parent));
    }
    js_text(json, "name", span->name);
    hk_json_key(json, "kind");
    hk_json_u64(json, span->kind);
    js_u64(json, "startTimeUnixNano", (uint64_t)span->start_ns);
    js_u64(json, "endTimeUnixNano", (uint64_t)span->end_ns);
    js_attrs(json, span->attrs, span->n_attrs);
    js_events(json, span);
    js_link_and_status(json, span);
    hk_json_end(json);
}

static void js_resource(struct hk_json *json, const struct hk_resource *resource)
{
    hk_json_key(json, "resource");
    hk_json_object(json);
    hk_json_key(json, "attributes");
    hk_json_array(json);
    for (size_t i = 0; i < resource->n; i++) {
        struct hk_attr attr = {resource->attrs[i].key, true, hk_str_of(resource->attrs[i].value), 0};
        js_attr(json, &attr);
    }
    hk_json_end(json);
    hk_json_end(json);
}

static void js_begin(struct hk_json *json, const char *key)
{
    hk_json_key(json, key);
    hk_json_array(json);
    hk_json_object(json);
}

static void js_finish(struct hk_json *json)
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
    js_begin(&json, "resourceSpans");
    js_resource(&json, resource);
    js_begin(&json, "scopeSpans");
    hk_json_key(&json, "scope");
    hk_json_object(&json);
    js_text(&json, "name", hk_str_of(SCOPE));
    js_text(&json, "version", hk_str_of(resource->version));
    hk_json_end(&json);
    hk_json_key(&json, "spans");
    hk_json_array(&json);
    for (size_t i = 0; i < n; i++)
        js_span(&json, spans[i]);
    hk_json_end(&json);
    js_finish(&json);
    js_finish(&json);
    hk_json_end(&json);
}
