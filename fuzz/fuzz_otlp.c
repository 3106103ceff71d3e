/* SPDX-License-Identifier: Apache-2.0 */
/* Spans on their way to a collector: a byte of flags, then texts of a byte of length (times four) each. As JSON they are one document that
 * jansson reads; as protobuf every length fits into what it stands in, and every text is UTF-8, for a reader refuses the whole request
 * otherwise. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "observe/otlp.h"

static struct hk_str next_text(struct hk_str *rest)
{
    size_t n = rest->len ? (unsigned char)fuzz_take(rest, 1).ptr[0] : 0;
    return fuzz_take(rest, n * 4);
}

static void fill(struct hk_span *span, uint8_t flags, struct hk_str *rest)
{
    memset(span->trace.trace_id, flags | 1, sizeof span->trace.trace_id);
    memset(span->trace.span_id, flags | 1, sizeof span->trace.span_id);
    span->kind = flags & 1 ? HK_SPAN_CLIENT : HK_SPAN_PRODUCER;
    span->has_parent = flags & 2;
    span->has_link = flags & 4;
    span->failed = flags & 8;
    span->link = span->trace;
    span->start_ns = flags & 16 ? INT64_MIN : 1;
    span->end_ns = flags & 32 ? INT64_MAX : 2;
    span->name = hk_span_keep(span, next_text(rest), 64);
    span->failure = hk_span_keep(span, next_text(rest), 200);
    for (int i = 0; i < HK_SPAN_ATTRS + 1; i++) { /* the last has no place left */
        hk_span_text(span, "key", hk_span_keep(span, next_text(rest), 256));
        if (i % 3 == 0)
            hk_span_number(span, "number", INT64_MIN + i);
    }
    struct hk_span_event *event = hk_span_event(span, "event", span->end_ns);
    MUST(event != NULL);
    for (int i = 0; i < HK_EVENT_ATTRS + 1; i++)
        hk_event_text(event, "key", hk_span_keep(span, next_text(rest), 100));
    MUST(span->used <= span->room && span->n_attrs <= HK_SPAN_ATTRS && event->n_attrs <= HK_EVENT_ATTRS);
}

/* ---- protobuf, as a reader that knows the fields meets it ---- */

static uint64_t read_varint(struct hk_str *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        MUST(in->len > 0);
        unsigned char c = (unsigned char)fuzz_take(in, 1).ptr[0];
        value |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return value;
    }
    MUST(false && "a varint of more than ten bytes");
    return 0;
}

enum message {
    REQUEST,
    RESOURCE_SPANS,
    RESOURCE,
    SCOPE_SPANS,
    SCOPE,
    SPAN,
    PAIR,
    VALUE,
    EVENT,
    LINK,
    STATUS,
    TEXT,
    ID /* of 8 or 16 bytes */
};

static const struct {
    enum message in;
    unsigned field;
    enum message is;
} children[] = {
    {REQUEST, 1, RESOURCE_SPANS},
    {RESOURCE_SPANS, 1, RESOURCE},
    {RESOURCE_SPANS, 2, SCOPE_SPANS},
    {RESOURCE, 1, PAIR},
    {SCOPE_SPANS, 1, SCOPE},
    {SCOPE_SPANS, 2, SPAN},
    {SCOPE, 1, TEXT},
    {SCOPE, 2, TEXT},
    {SPAN, 1, ID},
    {SPAN, 2, ID},
    {SPAN, 4, ID},
    {SPAN, 5, TEXT},
    {SPAN, 9, PAIR},
    {SPAN, 11, EVENT},
    {SPAN, 13, LINK},
    {SPAN, 15, STATUS},
    {PAIR, 1, TEXT},
    {PAIR, 2, VALUE},
    {VALUE, 1, TEXT},
    {EVENT, 2, TEXT},
    {EVENT, 3, PAIR},
    {LINK, 1, ID},
    {LINK, 2, ID},
    {STATUS, 2, TEXT},
};

static void check_text(struct hk_str s)
{
    while (s.len > 0) {
        uint32_t c;
        fuzz_take(&s, hk_utf8_next(s, &c));
        MUST(c != HK_UTF8_BAD);
    }
}

static size_t n_spans;

static void check_message(struct hk_str in, enum message is)
{
    if (is == TEXT) {
        check_text(in);
        return;
    }
    if (is == ID) {
        MUST(in.len == 8 || in.len == 16);
        return;
    }
    n_spans += is == SPAN;
    while (in.len > 0) {
        uint64_t tag = read_varint(&in);
        unsigned wire = tag & 7;
        size_t i = 0, n = sizeof children / sizeof children[0];
        MUST(wire == 0 || wire == 1 || wire == 2 || wire == 5);
        if (wire == 0)
            (void)read_varint(&in);
        if (wire == 1 || wire == 5) {
            size_t bytes = wire == 1 ? 8 : 4;
            MUST(fuzz_take(&in, bytes).len == bytes);
        }
        if (wire != 2)
            continue;
        uint64_t len = read_varint(&in);
        MUST(len <= in.len);
        while (i < n && (children[i].in != is || children[i].field != tag >> 3))
            i++;
        MUST(i < n);
        check_message(fuzz_take(&in, len), children[i].is);
    }
}

static void check_all(const struct hk_resource *resource, struct hk_span *const *spans, size_t n)
{
    struct hk_buf out;
    hk_buf_init(&out, (size_t)1 << 20);
    hk_otlp_json(resource, spans, n, &out);
    MUST(hk_buf_status(&out) == HK_OK);
    json_t *root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    MUST(json_is_object(root));
    json_decref(root);
    hk_buf_reset(&out);
    hk_otlp_protobuf(resource, spans, n, &out);
    MUST(hk_buf_status(&out) == HK_OK);
    n_spans = 0;
    check_message(hk_buf_str(&out), REQUEST);
    MUST(n_spans == n);
    hk_buf_fini(&out);
    for (size_t room = 1; room < 4096;
         room = room * 3 + 1) { /* too little of it: an error, and nothing behind its end */
        hk_buf_init(&out, room);
        hk_otlp_protobuf(resource, spans, n, &out);
        MUST(hk_buf_status(&out) == HK_OK || hk_buf_status(&out) == HK_TOOBIG);
        hk_buf_fini(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 4096)
        return 0;
    struct hk_str rest = {(const char *)data + 2, size - 2};
    struct hk_span *spans[2] = {hk_span_new(data[1] * 16u), hk_span_new(1024)};
    MUST(spans[0] != NULL && spans[1] != NULL);
    char value[64];
    (void)hk_str_copy(value, sizeof value, next_text(&rest));
    struct hk_resource resource = {.attrs = NULL, .version = "0"};
    resource.attrs = hk_mem_zalloc(1, sizeof resource.attrs[0]);
    MUST(resource.attrs != NULL);
    resource.attrs[0].key = value;
    resource.attrs[0].value = value;
    resource.n = 1;
    fill(spans[0], data[0], &rest);
    fill(spans[1], (uint8_t)~data[0], &rest);
    check_all(&resource, spans, 1 + data[0] / 128);
    hk_mem_free(resource.attrs);
    hk_mem_free(spans[0]);
    hk_mem_free(spans[1]);
    return 0;
}
